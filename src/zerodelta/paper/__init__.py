"""The paper's algorithms by number, corrected, for reproduction and comparison.

Where to look: `algorithm_01` … `algorithm_16` (the paper's numbers), `appendix_c` and `appendix_d`
(its discussions), `baselines` (what it compares with), `frank_wolfe_pure` (the directly pure
variant that wins; of MWEM it is in `tables/mwem.py`), `paper_map` (every label of the paper, and
where it is here).
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType


def __getattr__(name: str) -> ModuleType:
    if name not in __dir__():
        raise AttributeError(f"module 'zerodelta.paper' has no attribute {name!r}")
    return import_module(f"zerodelta.paper.{name}")


def __dir__() -> list[str]:
    return sorted(module.name for module in iter_modules(__path__))
