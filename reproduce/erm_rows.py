"""Rows 1 to 3 of Table 1: empirical risk minimization over l2 and l1 balls (`sec:dp-erm`).

Each problem is one whose minimum is known, so that the excess risk is exact. Random bits are
replayed from a label: the data is made up, and the numbers come out the same each time.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from reproduce.rates import Experiment, Floats, Point
from zerodelta.exact.bits import ReplayBits
from zerodelta.paper.algorithm_01 import corollary_1
from zerodelta.paper.algorithm_03 import dp_sgd
from zerodelta.paper.algorithm_04 import lattice_channel, pure_dp_sgd, pure_dp_sgd_on_lattice
from zerodelta.paper.algorithm_06 import approximate_frank_wolfe
from zerodelta.paper.algorithm_07 import pure_frank_wolfe
from zerodelta.privacy.calibration import calibrate
from zerodelta.spaces import Ball
from zerodelta.training.frank_wolfe import best_iterations, frank_wolfe_pure
from zerodelta.training.loss_functions import Hinge

__all__ = ["FRANK_WOLFE", "LOG_DELTA", "SGD", "STRONGLY_CONVEX", "balanced_steps", "two_points"]

LOG_DELTA = math.log(1e-6)
"""ln δ of every "before": an ordinary approximate-DP δ."""

RADIUS = Fraction(1, 2)
MEAN = 0.5
_WEIGHT = Fraction(1, 1000)


def two_points(rows: int, dimension: int) -> tuple[Floats, Floats, float]:
    """Return rows ±v with mean about v/2, v = (1, …, 1)/√d, all labels 1, and the mean's length."""
    features = np.full((rows, dimension), 1 / math.sqrt(dimension))
    flipped = round((1 - MEAN) / 2 * rows)
    features[:flipped] *= -1
    return features, np.ones(rows), 1 - 2 * flipped / rows


def linear_excess(theta: Floats, length: float) -> float:
    """Return the excess of 1 - length·⟨θ, v⟩ over its minimum on the ball of radius 1/2."""
    along = float(theta.sum()) / math.sqrt(len(theta))
    return length * (float(RADIUS) - along)


def balanced_steps(*, rows: int, dimension: int, epsilon: Fraction, log_delta: float) -> int:
    """Return T = (nμ)²/(4d): where the noise and the step size cost the same.

    The paper's n²ε²/(dℓ) up to a constant, from the exact μ of (ε, δ).
    """
    allowed = calibrate(epsilon=epsilon, log_delta=log_delta).mu_squared
    return max(1, math.ceil(rows**2 * float(allowed) / (4 * dimension)))


def _point(point: Point) -> tuple[int, int, Fraction]:
    return int(point["n"]), int(point["d"]), Fraction(str(point["epsilon"]))


def _sgd(variant: str, point: Point, label: str, **options: Any) -> tuple[Floats, float]:
    """Run one variant on the two-point problem; `steps` balances unless given."""
    rows, dimension, total = _point(point)
    features, labels, length = two_points(rows, dimension)
    bits = ReplayBits(label)
    # margins are at most 1/2 in size, so the hinge is a linear function: the hard case of the rate
    common: dict[str, Any] = {
        "loss": Hinge(classes=(0, 1)),
        "radius": RADIUS,
        "data_norm": 1,
        "batch": rows,
    }
    common |= options

    def steps(epsilon: Fraction, log_delta: float) -> int:
        return int(
            options.get("steps")
            or balanced_steps(rows=rows, dimension=dimension, epsilon=epsilon, log_delta=log_delta)
        )

    if variant == "before":
        common["steps"] = steps(total, LOG_DELTA)
        release = dp_sgd(features, labels, epsilon=total, log_delta=LOG_DELTA, bits=bits, **common)
    elif variant == "after":
        target = corollary_1(rows=rows, dimension=dimension).log_delta
        common["steps"] = steps(total / 2, target)
        release = pure_dp_sgd(features, labels, epsilon=total, bits=bits, **common)
    else:
        channel = lattice_channel(
            ball=Ball(dimension, RADIUS), rows=rows, epsilon=total, mixing_weight=_WEIGHT
        )
        common["steps"] = steps(total, channel.log_delta_required(total))
        release = pure_dp_sgd_on_lattice(
            features, labels, epsilon=total, mixing_weight=_WEIGHT, bits=bits, **common
        )
    return release.value, length


def measure_sgd(variant: str, point: Point, label: str) -> list[float]:
    """Return the excess risk of one run on a linear loss."""
    theta, length = _sgd(variant, point, label)
    return [linear_excess(theta, length)]


def measure_strongly_convex(variant: str, point: Point, label: str) -> list[float]:
    """Return the excess of 1 - ⟨θ, mean⟩ + ‖θ‖²/2, whose minimum is at the mean (radius 1/2)."""
    theta, length = _sgd(variant, point, label, regularization=1, steps=100)
    best = np.full(len(theta), length / math.sqrt(len(theta)))
    return [float(((theta - best) ** 2).sum()) / 2]


def measure_frank_wolfe(variant: str, point: Point, label: str) -> list[float]:
    """Return the excess of the mean of ‖θ - x‖²/2 over the l1 ball; the mean is 4-sparse."""
    rows, dimension, total = _point(point)
    mean = np.zeros(dimension)
    mean[:4] = 0.25
    count = round(rows / 4)
    features = np.zeros((rows, dimension))
    for j in range(4):  # a quarter of the rows at each of four corners
        features[j * count : (j + 1) * count if j < 3 else rows, j] = 1.0
    mean = features.mean(axis=0)
    size: dict[str, Any] = {
        "loss": _residuals,
        "domain": Ball(dimension, 1, norm=1),
        "lipschitz": 2,
        "bits": ReplayBits(label),
        "steps": 1 << 16,
    }
    if variant == "before":
        rounds = _balanced_rounds(rows=rows, dimension=dimension, epsilon=total)
        release = approximate_frank_wolfe(
            features, epsilon=total, log_delta=LOG_DELTA, iterations=rounds, **size
        )
    elif variant == "after":
        half = total / 2
        # the paper's √(nε) with the constants of theory C10.7, which its Θ leaves open
        rounds = best_iterations(
            rows=rows, epsilon=half, smoothness=1, lipschitz=2, domain=size["domain"]
        )
        release = pure_frank_wolfe(features, epsilon=total, iterations=rounds, **size)
    else:
        release = frank_wolfe_pure(
            features, epsilon=total, smoothness=1, method="composition", **size
        )
    return [float(((release.value - mean) ** 2).sum()) / 2]


def _balanced_rounds(*, rows: int, dimension: int, epsilon: Fraction) -> int:
    """Return the T that minimizes 8/T + (4L/n) ln(2d)·√(T/8ρ), L = 2: of order (nε)^⅔."""
    rho = float(calibrate(epsilon=epsilon, log_delta=LOG_DELTA).rho)
    ratio = 16 * rows * math.sqrt(8 * rho) / (8 * math.log(2 * dimension))
    return max(1, int(math.exp(math.log(ratio) * 2 / 3)))


def _residuals(theta: Floats, rows: Floats) -> Floats:
    return theta - rows


SGD = Experiment(
    key="dp_erm",
    problem="DP-ERM, convex",
    label="thm:dp-sgd-pure",
    quantity="excess empirical risk",
    setting=(
        "a linear loss on the l2 ball of diameter 1, rows of length 1 with a mean of length 1/2; "
        "full batches, T = (nμ)²/(4d) steps"
    ),
    variants={
        "before": "DP-SGD, (ε, 10⁻⁶)-DP (Algorithm 3)",
        "after": "purified by Algorithm 1 (Algorithm 4)",
        "modern": "published through the lattice, no ε' (theory C1)",
    },
    formulas={"before": "√(d ln(1/δ))·LC/(nε)", "after": "d·LC/(nε)", "modern": "d·LC/(nε)"},
    exponents={
        "before": {"n": -1, "d": 0.5, "epsilon": -1},
        "after": {"n": -1, "d": 1, "epsilon": -1},
        "modern": {"n": -1, "d": 1, "epsilon": -1},
    },
    base={"n": 2000, "d": 5, "epsilon": 2},
    own_base={"before": {"n": 250}, "modern": {"n": 1000}},
    sweeps={
        "n": (500, 1000, 2000, 4000),
        "d": (2, 4, 8, 16, 32),
        "epsilon": (1, 2, 4, 8),
    },
    own_sweeps={
        "before/n": (64, 128, 256, 512),
        "before/epsilon": (0.5, 1, 2, 4),
        "modern/n": (125, 250, 500, 1000),
        "modern/epsilon": (0.5, 1, 2, 4),
    },
    quick={"n": (500, 1000), "d": (8, 32), "epsilon": (1, 2)},
    own_quick={
        "before/n": (64, 128),
        "modern/n": (125, 250),
        "before/epsilon": (0.5, 1),
        "modern/epsilon": (0.5, 1),
    },
    repeats=8,
    quick_repeats=1,
    measure=measure_sgd,
)

STRONGLY_CONVEX = Experiment(
    key="dp_erm_strongly_convex",
    problem="DP-ERM, strongly convex",
    label="thm:dp-sgd-pure",
    quantity="excess empirical risk",
    setting="the same with ‖θ‖²/2 added (λ = 1); full batches, T = 100 steps",
    variants=SGD.variants,
    formulas={
        "before": "d ln(1/δ)·L²/(λn²ε²)",
        "after": "d²·L²/(λn²ε²)",
        "modern": "d²·L²/(λn²ε²)",
    },
    exponents={
        "before": {"n": -2, "d": 1, "epsilon": -2},
        "after": {"n": -2, "d": 2, "epsilon": -2},
        "modern": {"n": -2, "d": 2, "epsilon": -2},
    },
    base={"n": 10_000, "d": 5, "epsilon": 2},
    sweeps={
        "n": (2500, 5000, 10_000, 20_000, 40_000),
        "d": (2, 4, 8, 16, 32),
        "epsilon": (0.5, 1, 2, 4, 8),
    },
    quick={"n": (2500, 20_000), "d": (4, 16), "epsilon": (1, 4)},
    repeats=32,
    quick_repeats=2,
    measure=measure_strongly_convex,
)

FRANK_WOLFE = Experiment(
    key="dp_erm_l1",
    problem="DP-ERM, l1 ball",
    label="thm: dp-fw-pure",
    quantity="excess empirical risk",
    setting="the mean of ‖θ - x‖²/2 over the l1 ball, a minimizer on a face of 4 vertices",
    variants={
        "before": "Frank-Wolfe, (ε, 10⁻⁶)-DP (Algorithm 6)",
        "after": "purified (Algorithm 7; k ≥ d, so without sketch)",
        "modern": "pure composition, no purification (theory C2)",
    },
    formulas={
        "before": "(ln d)^⅔ ln(1/δ)^⅓/(nε)^⅔",
        "after": "√(ln d/(nε))",
        "modern": "√(ln d/(nε))",
    },
    exponents={
        "before": {"n": -2 / 3, "d": 0, "epsilon": -2 / 3},
        "after": {"n": -0.5, "d": 0, "epsilon": -0.5},
        "modern": {"n": -0.5, "d": 0, "epsilon": -0.5},
    },
    base={"n": 2000, "d": 64, "epsilon": 16},
    sweeps={
        "n": (500, 1000, 2000, 4000, 8000),
        "d": (16, 64, 256),
        "epsilon": (2, 4, 8, 16, 32),
    },
    quick={"n": (250, 500), "d": (16, 32), "epsilon": (2, 4)},
    quick_base={"n": 500, "d": 32, "epsilon": 4},
    repeats=3,
    quick_repeats=1,
    measure=measure_frank_wolfe,
)
