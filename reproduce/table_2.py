"""Measure Table 2 (`tab: dp_erm`): utility and run time of pure mechanisms for convex losses.

The problem is that of Table 1's first row. The run time is counted as the paper counts it, in
gradients of single rows, from the integers that the printed formulas give: no clock is read.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from reproduce.erm_rows import DescentSetup, convex_bound, linear_excess, two_points
from reproduce.rates import Experiment, Point
from zerodelta.paper.algorithm_03 import printed_parameters
from zerodelta.paper.baselines import (
    exponential_mechanism_on_grid,
    grid_points,
    laplace_noisy_descent,
    laplace_steps,
)
from zerodelta.spaces import Ball
from zerodelta.testing import replayed
from zerodelta.training.losses import Hinge

__all__ = ["RUN_TIME", "UTILITY", "gradient_count", "grid_cells"]

_RADIUS = Fraction(1, 2)
_CELLS = 401
"""The largest number of cells a side."""


def _point(point: Point) -> tuple[int, int, Fraction]:
    return int(point["n"]), int(point["d"]), Fraction(str(point["epsilon"]))


def grid_cells(rows: int, dimension: int, epsilon: Fraction) -> int:
    """Return an odd number of cells a side, about nε/d: cells as wide as the error to expect."""
    most = int(2 ** (17 / dimension))  # more grid points take minutes
    wanted = min(rows * float(epsilon) / (2 * dimension), most, _CELLS)
    return max(3, 2 * int(wanted / 2) + 1)


def measure_utility(variant: str, point: Point, label: str) -> list[float]:
    """Return the excess empirical risk of one release."""
    rows, dimension, total = _point(point)
    features, labels, length = two_points(rows, dimension)
    loss = Hinge(classes=(0, 1))
    size: dict[str, Any] = {"loss": loss, "radius": _RADIUS, "data_norm": 1}
    if variant == "laplace":
        release = replayed(label)(laplace_noisy_descent)(features, labels, epsilon=total, **size)
    elif variant == "purified":
        setup = DescentSetup.of("after", point)
        steps = setup.balanced()
        release = replayed(label)(setup.release)(features, labels, loss=loss, steps=steps)
    else:
        release = replayed(label)(exponential_mechanism_on_grid)(
            features, labels, epsilon=total, cells=grid_cells(rows, dimension, total), **size
        )
    return [linear_excess(release.value, length)]


def predicted_utility(variant: str, point: Point) -> float:
    """Return the bound of the two lemmas; for the exponential mechanism the expectation itself."""
    rows, dimension, total = _point(point)
    if variant == "purified":
        setup = DescentSetup.of("after", point)
        return convex_bound(setup, steps=setup.balanced())
    if variant == "laplace":
        steps = laplace_steps(rows=rows, dimension=dimension, epsilon=total)
        scale = 2 * math.sqrt(dimension) * steps / float(total)
        return 2 * math.sqrt((rows**2 + 2 * dimension * scale**2) / steps) / rows
    cells = grid_cells(rows, dimension, total)
    points = grid_points(ball=Ball(dimension, _RADIUS), cells=cells)
    length = two_points(rows, dimension)[2]
    excess = length * (float(_RADIUS) - points.sum(axis=1) / math.sqrt(dimension))
    # a row's score has sensitivity 2Lr = 1, so P(θ) ∝ exp(-nε excess/2)
    weights = np.exp(-rows * float(total) * (excess - excess.min()) / 2)
    return float((weights * excess).sum() / weights.sum())


def gradient_count(variant: str, point: Point) -> int:
    """Return how many gradients of single rows a run evaluates: batch times steps.

    >>> gradient_count("purified", {"n": 1000, "d": 5, "epsilon": 2})
    88412
    """
    rows, dimension, total = _point(point)
    if variant == "laplace":
        return rows * laplace_steps(rows=rows, dimension=dimension, epsilon=total)
    setup = DescentSetup.of("after", point)
    if variant == "full":
        return rows * setup.balanced()
    printed = printed_parameters(
        rows=rows,
        dimension=dimension,
        epsilon=setup.epsilon,
        log_delta=setup.log_delta,
        lipschitz=1.0,
    )
    return printed.batch * printed.steps


def measure_count(variant: str, point: Point, label: str) -> list[float]:
    """Return the count; nothing is random, so the label is not used."""
    return [float(gradient_count(variant, point))]


def predicted_count(variant: str, point: Point) -> float:
    """Return the printed formula before anything is rounded to an integer."""
    rows, dimension, total = _point(point)
    if variant == "laplace":
        return float(total) * rows**2 / (2 * dimension)
    setup = DescentSetup.of("after", point)
    if variant == "full":
        # T = (nμ)²/(4d) and σ = 2√T/μ, so μ = 2√T/σ
        return float(rows**3 / (dimension * setup.noise(1) ** 2))
    nats = -setup.log_delta
    return 2 * rows**2 * math.pow(setup.epsilon, 1.5) / math.sqrt(dimension * nats)


UTILITY = Experiment(
    key="table_2_utility",
    problem="Pure DP-ERM: utility",
    label="tab: dp_erm",
    quantity="excess empirical risk",
    setting=(
        "a linear loss on the l2 ball of diameter 1, L = 1, as in the first row of Table 1; the "
        "formula is the bound of the lemmas, for the exponential mechanism its expected error"
    ),
    variants={
        "laplace": "Laplace noisy GD (lem: laplace_NGD)",
        "purified": "purified DP-SGD (Algorithm 4)",
        "exponential": "exponential mechanism on a grid",
    },
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
    repeats=12,
    quick_repeats=1,
    measure=measure_utility,
    predicted=predicted_utility,
)

RUN_TIME = Experiment(
    key="table_2_gradients",
    problem="Pure DP-ERM: run time",
    label="tab: dp_erm",
    quantity="gradients of single rows",
    setting=(
        "batch times steps, counted and not run: the parameters of Algorithm 4 as printed (random "
        "batches, Corollary 1's δ at half of ε), the full batches of the runs above, and Laplace "
        "descent; the exponential mechanism's d⁴n³ ∨ d³n⁴ε is for a Markov chain, where ours draws "
        "exactly from all grid points; the formula is the printed one, not rounded to integers"
    ),
    variants={
        "laplace": "Laplace noisy GD (lem: laplace_NGD)",
        "purified": "purified DP-SGD with the printed batches (Algorithm 4)",
        "full": "purified DP-SGD with full batches, as run above",
    },
    formulas={
        "laplace": "n²ε/d",
        "purified": "n²ε^1.5/d (thm:dp-sgd-pure)",
        "full": "n³ε²/d² (ours)",
    },
    exponents={
        "laplace": {"n": 2, "d": -1, "epsilon": 1},
        "purified": {"n": 2, "d": -1, "epsilon": 1.5},
        "full": {"n": 3, "d": -2, "epsilon": 2},
    },
    base={"n": 10_000, "d": 10, "epsilon": 2},
    sweeps={
        "n": (1000, 2000, 4000, 8000, 16_000, 32_000),
        "d": (2, 4, 8, 16, 32, 64),
        "epsilon": (0.25, 0.5, 1, 2, 4, 8),
    },
    quick={"n": (1000, 8000), "d": (4, 32), "epsilon": (0.5, 4)},
    repeats=1,
    quick_repeats=1,
    measure=measure_count,
    predicted=predicted_count,
)
