"""Provide the paper's Algorithms 1 to 16 by number, corrected, with flat names.

*Purifying Approximate Differential Privacy with Randomized Post-processing* (Lin, Wang, Ma, Wang).
Files are named for the algorithms (`algorithm_01_02` … `algorithm_14_16`); `appendices` has
Appendices C and D, and `baselines` the mechanisms that the paper compares with. docs/paper.md
maps each label of the paper to a file and a name.

>>> import zerodelta as zd
>>> zd.paper.pure_dp_sgd is zd.paper.algorithm_04.pure_dp_sgd
True
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import Any

_HOME = {
    "purify_ball": "paper.algorithm_01_02",
    "LqBall": "paper.convex_sets",
    "ConvexSet": "paper.convex_sets",
    "corollary_1": "paper.algorithm_01_02",
    "theorem_3_log_delta": "paper.algorithm_01_02",
    "printed_parameters": "paper.algorithm_03",
    "purify_choice": "paper.algorithm_01_02",
    "dp_sgd": "paper.algorithm_03",
    "pure_dp_sgd": "paper.algorithm_04",
    "pure_dp_sgd_on_lattice": "paper.algorithm_04",
    "frank_wolfe": "paper.algorithm_05_06",
    "approximate_frank_wolfe": "paper.algorithm_05_06",
    "pure_frank_wolfe": "paper.algorithm_07_08",
    "sparse_recovery": "paper.algorithm_07_08",
    "frank_wolfe_pure": "training.frank_wolfe",
    "propose_test_release": "paper.algorithm_09_10_11",
    "pure_propose_test_release": "paper.algorithm_09_10_11",
    "pure_bounded_local_sensitivity": "paper.algorithm_09_10_11",
    "mode": "paper.algorithm_12_13",
    "embedded_mode": "paper.algorithm_12_13",
    "adassp": "paper.algorithm_12_13",
    "pure_adassp": "paper.algorithm_12_13",
    "lattice_adassp": "paper.algorithm_12_13",
    "mwem": "paper.algorithm_14_16",
    "approximate_mwem": "paper.algorithm_14_16",
    "proportional_sampling": "exact.integers",
    "embedded_mwem": "paper.algorithm_14_16",
    "multiset_mwem": "paper.algorithm_14_16",
    "pure_mwem": "paper.multiplicative_weights",
    "mix_choice": "paper.appendices",
    "mix_on_grid": "paper.appendices",
    "laplace_noisy_descent": "paper.baselines",
    "exponential_mechanism_on_grid": "paper.baselines",
}
"""The module of each name, imported on first use."""


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"zerodelta.{_HOME[name]}"), name)
    if name in _modules():
        return import_module(f"zerodelta.paper.{name}")
    raise AttributeError(f"module 'zerodelta.paper' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*_HOME, *_modules()])


def _modules() -> set[str]:
    return {module.name for module in iter_modules(__path__)}
