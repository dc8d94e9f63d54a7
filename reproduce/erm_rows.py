"""Measure rows 1 and 2 of Table 1: empirical risk minimization over an l2 ball (`sec:dp-erm`).

Each problem is one whose minimum is known, so that the excess risk is exact. Random bits are
replayed from a label: the data is made up, and the numbers come out the same each time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

import numpy as np

from reproduce.rates import Experiment, Floats, Point
from zerodelta.channels.channel import Purifier
from zerodelta.paper.algorithm_01_02 import channel_for, corollary_1
from zerodelta.paper.algorithm_03 import dp_sgd
from zerodelta.paper.algorithm_04 import lattice_channel, pure_dp_sgd, pure_dp_sgd_on_lattice
from zerodelta.privacy.claims import calibrate
from zerodelta.privacy.release import Release
from zerodelta.spaces import Ball
from zerodelta.testing import replayed
from zerodelta.training.losses import Hinge, Loss

__all__ = [
    "LOG_DELTA",
    "SGD",
    "STRONGLY_CONVEX",
    "DescentSetup",
    "average_variance",
    "balanced_steps",
    "convex_bound",
    "linear_excess",
    "two_points",
]

LOG_DELTA = math.log(1e-6)
"""ln δ of every "before": an ordinary approximate-DP δ."""

MEAN, INNER_MEAN = 0.5, 0.25
"""The length of the mean, for rows of length 1: the second is inside the ball of radius 1/2."""

STRONG_STEPS = 100


def two_points(
    rows: int, dimension: int, *, norm: float = 1.0, mean: float = MEAN
) -> tuple[Floats, Floats, float]:
    """Return rows ±norm·v of mean about mean·norm·v, v = (1, …, 1)/√d, labels 1, that length."""
    features = np.full((rows, dimension), norm / math.sqrt(dimension))
    flipped = round((1 - mean) / 2 * rows)
    features[:flipped] *= -1
    return features, np.ones(rows), norm * (1 - 2 * flipped / rows)


def linear_excess(theta: Floats, length: float, *, radius: float = 0.5) -> float:
    """Return the excess of 1 - length·⟨θ, v⟩ over its minimum on the ball."""
    along = float(theta.sum()) / math.sqrt(len(theta))
    return length * (radius - along)


def balanced_steps(*, rows: int, dimension: int, epsilon: Fraction, log_delta: float) -> int:
    """Return T = (nμ)²/(4d): where the noise and the step size cost the same.

    The paper's n²ε²/(dℓ) up to a constant, from the exact μ of (ε, δ).
    """
    allowed = calibrate(epsilon=epsilon, log_delta=log_delta).mu_squared
    return max(1, math.ceil(rows**2 * float(allowed) / (4 * dimension)))


@final
@dataclass(frozen=True, kw_only=True)
class DescentSetup:
    """One variant of descent at one point: the ε and ln δ of its run, and what publishes it."""

    variant: str
    rows: int
    dimension: int
    total: Fraction
    lipschitz: Fraction
    diameter: Fraction
    epsilon: Fraction
    log_delta: float
    channel: Purifier | None

    @staticmethod
    def of(variant: str, point: Point) -> DescentSetup:
        """Return what `release` runs: before, after or modern."""
        rows, dimension, total = int(point["n"]), int(point["d"]), Fraction(str(point["epsilon"]))
        diameter = Fraction(str(point.get("C", 1)))
        ball, epsilon, log_delta = Ball(dimension, diameter / 2), total, LOG_DELTA
        channel: Purifier | None = None
        if variant == "after":
            printed = corollary_1(rows=rows, dimension=dimension, diameter=diameter)
            epsilon, log_delta = total / 2, printed.log_delta
            channel = channel_for(
                ball=ball,
                epsilon=total,
                log_delta=log_delta,
                mixing_weight=printed.mixing_weight,
            )
        elif variant == "modern":
            lattice = lattice_channel(
                ball=ball, rows=rows, epsilon=total, mixing_weight=Fraction(1, rows**2)
            )
            channel, log_delta = lattice, lattice.log_delta_required(total)
        return DescentSetup(
            variant=variant,
            rows=rows,
            dimension=dimension,
            total=total,
            lipschitz=Fraction(str(point.get("L", 1))),
            diameter=diameter,
            epsilon=epsilon,
            log_delta=log_delta,
            channel=channel,
        )

    def balanced(self) -> int:
        """Return T for a convex loss."""
        return balanced_steps(
            rows=self.rows,
            dimension=self.dimension,
            epsilon=self.epsilon,
            log_delta=self.log_delta,
        )

    def release(self, features: Floats, labels: Floats, *, loss: Loss, **options: Any) -> Release:
        """Run it with full batches; `steps` and `regularization` are passed on."""
        common: dict[str, Any] = {
            "loss": loss,
            "radius": self.diameter / 2,
            "data_norm": self.lipschitz,
            "batch": self.rows,
            "epsilon": self.total,
            **options,
        }
        if self.variant == "before":
            return dp_sgd(features, labels, log_delta=self.log_delta, **common)
        if self.variant == "after":
            return pure_dp_sgd(features, labels, **common)
        weight = Fraction(1, self.rows**2)
        return pure_dp_sgd_on_lattice(features, labels, mixing_weight=weight, **common)

    def noise(self, steps: int) -> float:
        """Return the deviation σ = 2L√T/μ of the noise on a sum of gradients."""
        mu_squared = calibrate(epsilon=self.epsilon, log_delta=self.log_delta).mu_squared
        return 2 * float(self.lipschitz) * math.sqrt(steps / float(mu_squared))

    def published(self) -> float:
        """Return the rms distance that publishing adds."""
        return 0.0 if self.channel is None else self.channel.expected_error()


def convex_bound(setup: DescentSetup, *, steps: int) -> float:
    """Return 2C√((n²L² + dσ²)/T)/n of `lem: dp-sgd-cvx-lip`, plus L times what publishing adds."""
    n, slope = setup.rows, float(setup.lipschitz)
    moment = (n * slope) ** 2 + setup.dimension * setup.noise(steps) ** 2
    run = 2 * float(setup.diameter) * math.sqrt(moment / steps) / n
    return run + slope * setup.published()


def average_variance(steps: int) -> float:
    """Return Σ w_s² of the weights with which step s enters the average of a quadratic's descent.

    θ_{t+1} = (1 - 2/(t+1)) θ_t + (2/(t+1)) z_t is the mean of the z_s with weights s, and iterates
    are averaged with weights t + 1: together w_s = 4s(1/s + … + 1/T)/(T(T+3)). For large T the sum
    is 16∫u²ln²u du/T = 32/(27T).

    >>> average_variance(1), abs(average_variance(10**5) * 10**5 - 32 / 27) < 0.001
    (1.0, True)
    """
    s = np.arange(1, steps + 1)
    tails = np.cumsum(1 / s[::-1])[::-1]
    weights = 4 * s * tails / (steps * (steps + 3))
    return float((weights**2).sum())


def measure_sgd(variant: str, point: Point, label: str) -> list[float]:
    """Return the excess risk of one run on a linear loss."""
    setup = DescentSetup.of(variant, point)
    features, labels, length = two_points(setup.rows, setup.dimension, norm=float(setup.lipschitz))
    # margins are at most 1 in size, so the hinge is a linear function: the hard case of the rate
    release = replayed(label)(setup.release)(
        features,
        labels,
        loss=Hinge(classes=(0, 1)),
        steps=setup.balanced(),
    )
    return [linear_excess(release.value, length, radius=float(setup.diameter) / 2)]


def predicted_sgd(variant: str, point: Point) -> float:
    """Return the convergence lemma's bound with the noise that the run has."""
    setup = DescentSetup.of(variant, point)
    return convex_bound(setup, steps=setup.balanced())


def measure_strongly_convex(variant: str, point: Point, label: str) -> list[float]:
    """Return the excess of 1 - ⟨θ, mean⟩ + λ‖θ‖²/2, whose minimum is inside at mean/λ."""
    setup, strength = DescentSetup.of(variant, point), float(point["lambda"])
    features, labels, length = two_points(
        setup.rows, setup.dimension, norm=float(setup.lipschitz), mean=INNER_MEAN
    )
    release = replayed(label)(setup.release)(
        features,
        labels,
        loss=Hinge(classes=(0, 1)),
        steps=STRONG_STEPS,
        regularization=Fraction(str(point["lambda"])),
    )
    best = np.full(setup.dimension, length / strength / math.sqrt(setup.dimension))
    return [strength * float(((release.value - best) ** 2).sum()) / 2]


def predicted_strongly_convex(variant: str, point: Point) -> float:
    """Return λ/2 times the variance of the average, as if no iterate left the ball.

    Exact for this loss but for that, and for the rounding of gradients.
    """
    setup, strength = DescentSetup.of(variant, point), float(point["lambda"])
    step = setup.noise(STRONG_STEPS) / (setup.rows * strength)
    spread = setup.dimension * step**2 * average_variance(STRONG_STEPS)
    return strength * (spread + setup.published() ** 2) / 2


_VARIANTS = {
    "before": "DP-SGD, (ε, 10⁻⁶)-DP (Algorithm 3)",
    "after": "purified by Algorithm 1 (Algorithm 4)",
    "modern": "published through the lattice, no ε' (theory C1)",
}

SGD = Experiment(
    key="dp_erm",
    problem="DP-ERM, convex",
    label="thm:dp-sgd-pure",
    quantity="excess empirical risk",
    setting=(
        "a linear loss on the l2 ball of diameter C, rows of length L with a mean half as long; "
        "full batches, T = (nμ)²/(4d) steps; the formula is the convergence lemma's bound"
    ),
    variants=_VARIANTS,
    formulas={"before": "√(d ln(1/δ))·LC/(nε)", "after": "d·LC/(nε)", "modern": "d·LC/(nε)"},
    exponents={
        "before": {"n": -1, "d": 0.5, "epsilon": -1, "L": 1, "C": 1},
        "after": {"n": -1, "d": 1, "epsilon": -1, "L": 1, "C": 1},
        "modern": {"n": -1, "d": 1, "epsilon": -1, "L": 1, "C": 1},
    },
    base={"n": 2000, "d": 5, "epsilon": 2, "L": 1, "C": 1},
    own_base={"before": {"n": 250}, "modern": {"n": 1000}},
    sweeps={
        "n": (500, 1000, 2000, 4000),
        "d": (2, 4, 8, 16, 32),
        "epsilon": (1, 2, 4, 8),
        "L": (0.25, 0.5, 1, 2),
        "C": (0.25, 0.5, 1, 2),
    },
    own_sweeps={
        "before/n": (64, 128, 256, 512),
        "before/epsilon": (0.5, 1, 2, 4),
        "modern/n": (250, 500, 1000, 2000),
        "modern/epsilon": (0.5, 1, 2, 4),
    },
    quick={"n": (500, 1000), "d": (8, 32), "epsilon": (1, 2), "L": (0.5, 1), "C": (0.5, 1)},
    own_quick={
        "before/n": (64, 128),
        "modern/n": (125, 250),
        "before/epsilon": (0.5, 1),
        "modern/epsilon": (0.5, 1),
    },
    repeats=12,
    quick_repeats=1,
    measure=measure_sgd,
    predicted=predicted_sgd,
)

STRONGLY_CONVEX = Experiment(
    key="dp_erm_strongly_convex",
    problem="DP-ERM, strongly convex",
    label="thm:dp-sgd-pure",
    quantity="excess empirical risk",
    setting=(
        "a linear loss plus λ‖θ‖²/2 on the l2 ball of diameter 1, its minimum at distance "
        f"L/(4λ) from the center; full batches, T = {STRONG_STEPS} steps; the formula is the "
        "variance of the average"
    ),
    variants=_VARIANTS,
    formulas={
        "before": "d ln(1/δ)·L²/(λn²ε²)",
        "after": "d²·L²/(λn²ε²)",
        "modern": "d²·L²/(λn²ε²)",
    },
    exponents={
        "before": {"n": -2, "d": 1, "epsilon": -2, "L": 2, "lambda": -1},
        "after": {"n": -2, "d": 2, "epsilon": -2, "L": 2, "lambda": -1},
        "modern": {"n": -2, "d": 2, "epsilon": -2, "L": 2, "lambda": -1},
    },
    base={"n": 10_000, "d": 5, "epsilon": 2, "L": 1, "lambda": 1},
    sweeps={
        "n": (2500, 5000, 10_000, 20_000, 40_000),
        "d": (2, 4, 8, 16, 32),
        "epsilon": (0.5, 1, 2, 4, 8),
        "L": (0.25, 0.5, 1),
        "lambda": (1, 2, 4, 8),
    },
    quick={
        "n": (2500, 20_000),
        "d": (4, 16),
        "epsilon": (1, 4),
        "L": (0.5, 1),
        "lambda": (1, 2),
    },
    repeats=16,
    quick_repeats=2,
    measure=measure_strongly_convex,
    predicted=predicted_strongly_convex,
    axes={"lambda": "λ"},
)
