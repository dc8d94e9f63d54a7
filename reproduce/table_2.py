"""Table 2 (`tab: dp_erm`): utility and run time of three pure mechanisms for convex losses.

The problem is that of Table 1's first row. Times are of our code on this machine, and the only
numbers of the reproduction that differ from run to run.
"""

from __future__ import annotations

import time
from fractions import Fraction
from typing import Any

from reproduce.erm_rows import RADIUS, balanced_steps, linear_excess, two_points
from reproduce.rates import Experiment, Point
from zerodelta.exact.bits import ReplayBits
from zerodelta.paper.algorithm_01 import corollary_1
from zerodelta.paper.algorithm_04 import pure_dp_sgd
from zerodelta.paper.baselines import exponential_mechanism_on_grid, laplace_noisy_descent
from zerodelta.training.loss_functions import Hinge

__all__ = ["RUN_TIME", "UTILITY"]

_CELLS = 401
"""The largest number of cells a side."""


def _run(variant: str, point: Point, label: str) -> tuple[float, float]:
    """Return the excess risk of one release and the seconds it took."""
    rows, dimension, total = int(point["n"]), int(point["d"]), Fraction(str(point["epsilon"]))
    features, labels, length = two_points(rows, dimension)
    size: dict[str, Any] = {
        "loss": Hinge(classes=(0, 1)),
        "radius": RADIUS,
        "data_norm": 1,
        "bits": ReplayBits(label),
    }
    start = time.perf_counter()
    if variant == "laplace":
        release = laplace_noisy_descent(features, labels, epsilon=total, **size)
    elif variant == "purified":
        half, target = total / 2, corollary_1(rows=rows, dimension=dimension).log_delta
        steps = balanced_steps(rows=rows, dimension=dimension, epsilon=half, log_delta=target)
        release = pure_dp_sgd(features, labels, epsilon=total, steps=steps, batch=rows, **size)
    else:
        release = exponential_mechanism_on_grid(
            features, labels, epsilon=total, cells=grid_cells(rows, dimension, total), **size
        )
    seconds = time.perf_counter() - start
    return linear_excess(release.value, length), seconds


def grid_cells(rows: int, dimension: int, epsilon: Fraction) -> int:
    """Return an odd number of cells a side, about nε/d: cells as wide as the error to expect."""
    most = int(2 ** (18 / dimension))  # more grid points take minutes
    wanted = min(rows * float(epsilon) / (2 * dimension), most, _CELLS)
    return max(3, 2 * int(wanted / 2) + 1)


def measure_utility(variant: str, point: Point, label: str) -> list[float]:
    """Return the excess empirical risk."""
    return [_run(variant, point, label)[0]]


def measure_time(variant: str, point: Point, label: str) -> list[float]:
    """Return seconds."""
    return [_run(variant, point, label)[1]]


_VARIANTS = {
    "laplace": "Laplace noisy GD (lem: laplace_NGD)",
    "purified": "purified DP-SGD (Algorithm 4)",
    "exponential": "exponential mechanism on a grid",
}

UTILITY = Experiment(
    key="table_2_utility",
    problem="Pure DP-ERM: utility",
    label="tab: dp_erm",
    quantity="excess empirical risk",
    setting="a linear loss on the l2 ball of diameter 1, L = 1, as in the first row of Table 1",
    variants=_VARIANTS,
    formulas={"laplace": "√(d/(nε))", "purified": "d/(nε)", "exponential": "d/(nε)"},
    exponents={
        "laplace": {"n": -0.5, "d": 0.5, "epsilon": -0.5},
        "purified": {"n": -1, "d": 1, "epsilon": -1},
        "exponential": {"n": -1, "d": 1, "epsilon": -1},
    },
    base={"n": 400, "d": 2, "epsilon": 2},
    sweeps={"n": (50, 100, 200, 400, 800), "d": (1, 2, 3, 4), "epsilon": (0.5, 1, 2, 4)},
    quick={"n": (50, 200), "d": (1, 2), "epsilon": (0.5, 2)},
    own_base={"laplace": {"n": 3200}, "purified": {"n": 1600}},
    own_sweeps={
        "laplace/n": (800, 1600, 3200, 6400, 12_800),
        "purified/n": (100, 200, 400, 800, 1600),
        "laplace/d": (1, 2, 4, 8, 16),
        "purified/d": (1, 2, 4, 8, 16),
    },
    own_quick={"laplace/n": (400, 1600)},
    repeats=10,
    quick_repeats=1,
    measure=measure_utility,
)

RUN_TIME = Experiment(
    key="table_2_time",
    problem="Pure DP-ERM: run time",
    label="tab: dp_erm",
    quantity="seconds",
    setting="the same runs; one thread",
    variants=_VARIANTS,
    formulas={
        "laplace": "n²ε",
        "purified": "n²ε^1.5 + d",
        "exponential": "d⁴n³ or d³n⁴ε (random walk)",
    },
    exponents={"laplace": {"n": 2}, "purified": {"n": 2}, "exponential": {"n": 3}},
    base=UTILITY.base,
    sweeps={"n": UTILITY.sweeps["n"]},
    own_sweeps={
        "laplace/n": (3200, 6400, 12_800, 25_600),
        "purified/n": (400, 800, 1600, 3200),
        "exponential/n": (100, 200, 400, 800),
    },
    quick={"n": UTILITY.quick["n"]},
    repeats=2,
    quick_repeats=1,
    measure=measure_time,
    average="median",
    alone=True,
)
