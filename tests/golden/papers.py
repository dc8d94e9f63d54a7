"""A case of every function of `zerodelta.paper`, with small parameters."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import zerodelta as zd
from golden.rows import LABELS, NUMBERS, SPARSE, TARGET
from golden.verbs import Case, with_methods

_MEDIAN = zd.queries.Median(bounds=(0, 1), steps=100)
_ROWS = NUMBERS[:, 0]
_SUM = zd.queries.CustomQuery(
    function=len, grid=zd.Box(0, 1000).grid(1001), change=1, local=lambda rows: 0
)
_TWO_WAY = zd.queries.Marginals(dimension=3)
_L1 = zd.Ball(3, 1, norm=1)
_SMALL: dict[str, Any] = {"loss": zd.models.Logistic(), "data_norm": 2, "radius": 1}
_LINE: dict[str, Any] = {"data_norm": 2, "target_bound": 1}
_PTR: dict[str, Any] = {"query": _MEDIAN, "proposed_bound": "1/5"}


def _pull(theta: Any, rows: Any) -> Any:
    return theta - rows


_WOLFE: dict[str, Any] = {"loss": _pull, "domain": _L1, "lipschitz": 3, "iterations": 3}

_CASES: dict[str, Case] = {
    "purify_ball": lambda f: f(
        [0.3, -0.2],
        ball=zd.Ball(2, 1),
        epsilon="3/2",
        base_epsilon=1,
        log_delta=-60.0,
        mixing_weight="1/100",
    ),
    "purify_ball, q=3": lambda f: f(
        [0.3, -0.2],
        ball=zd.paper.LqBall(2, 1, norm=3),
        epsilon=2,
        log_delta=-60.0,
        mixing_weight="1/100",
    ),
    "LqBall": lambda f: [f(2, 1, norm=3).project([2.0, 2.0]), repr(f(2, 1, norm=3).enclosing())],
    "ConvexSet": lambda f: f(
        dimension=2, inner_radius="1/2", diameter=1, norm=math.inf, volume=1
    ).log_delta(radius="1/1000", mixing_weight="1/100", base_epsilon=1),
    "corollary_1": lambda f: f(rows=100, dimension=2),
    "theorem_3_log_delta": lambda f: f(code_length=4, base_epsilon=1),
    "printed_parameters": lambda f: f(
        rows=1000, dimension=5, epsilon=1, log_delta=-50.0, lipschitz=1
    ),
    "purify_choice": lambda f: f(
        5,
        space=zd.Finite(16),
        epsilon=2,
        log_delta=zd.paper.theorem_3_log_delta(code_length=4, base_epsilon=1),
    ),
    "dp_sgd": lambda f: f(NUMBERS, LABELS, epsilon=1, delta="1e-9", steps=5, batch=20, **_SMALL),
    "pure_dp_sgd": lambda f: f(NUMBERS, LABELS, epsilon=2, steps=5, batch=20, **_SMALL),
    "pure_dp_sgd_on_lattice": lambda f: f(
        NUMBERS, LABELS, epsilon=1, steps=5, mixing_weight="1/100", **_SMALL
    ),
    "frank_wolfe": lambda f: f(lambda t: t - [0.25, -0.5, 0.0], domain=_L1, iterations=20),
    "approximate_frank_wolfe": lambda f: f(SPARSE, epsilon=1, delta="1e-9", **_WOLFE),
    "approximate_frank_wolfe, advanced": lambda f: f(
        SPARSE, epsilon=1, delta="1e-9", composition="advanced", **_WOLFE
    ),
    "pure_frank_wolfe": lambda f: f(SPARSE, epsilon=1, mixing_weight="1/100", **_WOLFE),
    "sparse_recovery": lambda f: f(
        np.array([0.5, 0.5]), np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]]), tolerance=0.0
    ),
    **with_methods(
        "frank_wolfe_pure",
        lambda f, **o: f(SPARSE, epsilon=1, smoothness=1, **_WOLFE, **o),
        *("composition", "transcript"),
    ),
    "propose_test_release": lambda f: f(_ROWS, epsilon=2, log_delta=-20.0, **_PTR),
    "pure_propose_test_release": lambda f: f(
        _ROWS, epsilon=3, delta=1e-15, mixing_weight="1/100", **_PTR
    ),
    "pure_bounded_local_sensitivity": lambda f: f(
        [0] * 300, query=_SUM, epsilon=3, delta=1e-20, mixing_weight="1/100"
    ),
    "mode": lambda f: f(
        ["tea"] * 90 + ["coffee"] * 10, universe=["tea", "coffee", "milk"], epsilon=1
    ),
    "embedded_mode": lambda f: f([7] * 400, universe=16, epsilon=2),
    "adassp": lambda f: f(NUMBERS, TARGET, epsilon=1, delta=1e-9, **_LINE),
    "pure_adassp": lambda f: f(NUMBERS, TARGET, epsilon=2, **_LINE),
    "lattice_adassp": lambda f: f(NUMBERS, TARGET, epsilon=1, mixing_weight="1/100", **_LINE),
    "mwem": lambda f: f(SPARSE, workload=_TWO_WAY, rounds=3, rho="1/10"),
    "approximate_mwem": lambda f: f(
        SPARSE, workload=_TWO_WAY, rounds=3, epsilon=8, log_delta=-20.0
    ),
    "proportional_sampling": lambda f: f(np.array([3, 7, 1]), size=8),
    "embedded_mwem": lambda f: f(SPARSE, workload=_TWO_WAY, epsilon=8, sample_size=5, rounds=3),
    "multiset_mwem": lambda f: f(SPARSE, workload=_TWO_WAY, epsilon=4, sample_size=5, rounds=3),
    "pure_mwem": lambda f: f(
        [0, 1, 1, 1] * 30, workload=zd.queries.LinearQueries([[0, 1]]), epsilon=10, rounds=3
    ),
    "mix_choice": lambda f: f(
        2, space=zd.Finite(10), epsilon=1, log_delta=-40.0, mixing_weight="1/100"
    ),
    "mix_on_grid": lambda f: f(
        0.3, box=zd.Box(0, 1), epsilon=1, log_delta=-40.0, mixing_weight="1/100"
    ),
    "laplace_noisy_descent": lambda f: f(NUMBERS, LABELS, epsilon=1, steps=3, **_SMALL),
    "exponential_mechanism_on_grid": lambda f: f(NUMBERS, LABELS, epsilon=1, cells=3, **_SMALL),
}

_DELTA: dict[str, Any] = {"base_epsilon": 1, "log_delta": -30.0}
_ROUND: dict[str, Any] = {"smoothness": 1, "length": 2, "lipschitz": 3}

_FORMULAS: dict[str, dict[str, Case]] = {
    "algorithm_01_02": {
        "channel_for": lambda f: f(
            ball=zd.Ball(2, 1), epsilon=2, log_delta=-60.0, mixing_weight="1/100"
        ),
        "printed_theorem_1": lambda f: f(dimension=2, radius=3.0, scale_power=0.5),
        "proving_steps": lambda f: f(epsilon=1, log_delta=-30.0, base_steps=()),
        "theorem_1": lambda f: f(
            dimension=2, norm=3, diameter=2.0, scale=0.5, mixing_weight=0.01, error_norm=1
        ),
        "choice_channel_for": lambda f: f(space=zd.Finite(16), epsilon=2, log_delta=-60.0),
        "theorem_3": lambda f: f(10),
    },
    "algorithm_04": {
        "default_resolution": lambda f: f(ball=zd.Ball(4, 1), rows=1000, epsilon=1),
        "lattice_channel": lambda f: f(
            ball=zd.Ball(2, 1), rows=1000, epsilon=1, mixing_weight="1/100"
        ),
    },
    "algorithm_05_06": {
        "balanced_iterations": lambda f: f(
            rows=10_000, epsilon=1, delta="1e-6", vertices=20, **_ROUND
        ),
        "printed_noise_scale": lambda f: f(
            lipschitz=1, length=1, iterations=10, epsilon=1, log_delta=-20.0, rows=1000
        ),
    },
    "algorithm_07_08": {
        "gaussian_sketch": lambda f: f(2, 3),
        "printed_iterations": lambda f: f(rows=1000, base_epsilon=1, **_ROUND),
        "printed_log_delta": lambda f: f(measurements=80, rows=1000, mixing_weight="1/1000"),
        "printed_measurements": lambda f: f(iterations=5, dimension=2000, rows=1000),
        "printed_mixing_weight": lambda f: f(rows=1000),
        "tolerance": lambda f: f(noise_scale=0.001, measurements=80, rows=1000, spacing=0.5),
        "recovery_error": lambda f: f(sparsity=4, tolerance=0.01, distortion=0.5),
    },
    "algorithm_09_10_11": {
        "paper_threshold": lambda f: f(**_DELTA),
        "split_in_three": lambda f: f(3, None),
        "paper_margin": lambda f: f(local_change=2, **_DELTA),
    },
    "algorithm_12_13": {
        "mode_log_delta": lambda f: f(points=1024, base_epsilon=1),
        "stable_mode": lambda f: f(["a"] * 9 + ["b"], zd.Finite(["a", "b", "c"])),
        "wrong_probability": lambda f: f(points=1024, epsilon=1, gap=40),
        "adassp_log_delta": lambda f: f(rows=1000, dimension=5, radius=1, mixing_weight="1/100"),
        "paper_multiplier_squared": lambda f: f(epsilon=1, log_delta=-30.0),
    },
    "algorithm_14_16": {
        "paper_rho": lambda f: f(epsilon=1, log_delta=-100.0),
        "paper_rounds": lambda f: f(
            rows=10_000, workload=_TWO_WAY, epsilon=1, log_delta=-100.0, failure=0.01
        ),
        "paper_sample_size": lambda f: f(rows=10_000, workload=_TWO_WAY, base_epsilon=1),
    },
    "appendices": {
        "continuous_example": lambda f: f(delta="1/10", mixing_weight="1/2"),
        "mixed_epsilon": lambda f: f(size=10, mixing_weight="1/100", **_DELTA),
        "printed_epsilon": lambda f: f(size=10, mixing_weight="1/100", **_DELTA),
        "worst_epsilon": lambda f: f(size=2, base_epsilon=1, log_delta=-1.0, mixing_weight="1/2"),
        "channel_for": lambda f: f(
            box=zd.Box(0, 1), epsilon=1, log_delta=-40.0, mixing_weight="1/100"
        ),
        "printed_net": lambda f: f(side=1, dimension=2, mixing_weight="1/100", **_DELTA),
    },
    "baselines": {
        "grid_points": lambda f: f(ball=zd.Ball(2, 1), cells=3),
        "laplace_steps": lambda f: f(rows=1000, dimension=5, epsilon=1),
    },
}

OF_FILES = {
    f"paper.{file}.{name}": case
    for file, cases in _FORMULAS.items()
    for name, case in cases.items()
}
"""What the files have beside the flat names: formulas, and a step inside a release."""
CASES = {f"paper.{name}": case for name, case in _CASES.items()} | OF_FILES

INNER = {
    *("publish", "release_point", "plan_descent", "descend", "descent_seconds", "plan_embedded"),
    *("forecast", "paper_release", "paper_round_mechanisms", "calibrated_statistics"),
    *("below_smallest_eigenvalue", "trust_radius", "adassp_error"),
    *("drift", "round_epsilon", "multiplicative_weights", "pure_rounds", "best_rounds"),
    *("sampling_error", "plan_multiset", "laplace_scale", "code_length"),
}
"""Functions of the paper's files that only its releases can call, with what they have planned."""
