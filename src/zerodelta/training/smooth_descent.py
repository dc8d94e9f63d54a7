"""Theorem S as the ending of a descent: the raw last step, with noise of its own (theory C1).

The last step is short, so noise much wider than it needs costs little of ε and smooths what the
internal steps before it left. How much goes to either is searched in floats, for the least
predicted error; whatever is found is then built and certified exactly.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

from zerodelta.channels.smooth import SmoothMix, least_point
from zerodelta.exact.rational import as_rational, decimal_up
from zerodelta.privacy.step import Status
from zerodelta.privacy.theorems.smoothing import GaussianStep
from zerodelta.spaces import Ball
from zerodelta.training.iterates import StepSizes, Variances
from zerodelta.value import value

_MOST_SLACK = math.log(1e8)
"""The weight is reduced by eight decades at most, like every other channel's."""


@value
class SmoothEnding:
    """S2 for the last step, the noise of the internal rounds before it, and the predicted error."""

    channel: SmoothMix
    variances: Variances
    error: float


@value
class _Search:
    """S2's condition in the units of the parameters, in floats.

    `before` is the sensitivity of the point before the last step, `moved` that of the last step,
    `reach` the largest distance of its center from the start.
    """

    dimension: int
    epsilon: float
    nats: float
    """ln(w/(1-w)) + ln(e^ε - 1) at the largest weight."""
    odds: float
    before: float
    moved: float
    reach: float

    def cost(self, sigma: float, rho: float) -> tuple[float, float]:
        """Return the left side of S2 at its best order, and the best τ²."""

        def at(log_excess: float) -> tuple[float, float]:
            excess = math.exp(log_excess)
            order, reach = 1 + excess, self.reach + excess * self.moved
            root = math.sqrt(reach**2 + 4 * self.dimension * sigma**2)
            extra = reach * (reach + root) / (2 * self.dimension)
            spread = self.dimension / 2 * math.log1p(extra / sigma**2) + reach**2 / (2 * extra)
            kappa = excess * log_excess - order * math.log(order)
            return kappa + excess * (order * rho - self.epsilon) + spread, sigma**2 + extra

        guess = math.log(max(self.epsilon / (2 * rho), 1e-6))
        best = least_point(lambda u: at(u)[0], guess - 4, guess + 4, rounds=30)
        return at(best)

    def error(self, sigma: float, rho: float) -> float:
        """Return the predicted error with ρ spent on the internal steps; inf if S2 fails."""
        cost, wide = self.cost(sigma, rho + self.moved**2 / (2 * sigma**2))
        if cost > self.nats:
            return math.inf
        noise = self.dimension * (self.before**2 / (2 * rho) + sigma**2)
        weight = self.weight(self.nats - cost)
        return math.sqrt(noise) + weight * math.sqrt(self.dimension * (wide + sigma**2))

    def weight(self, slack: float) -> float:
        """Return the weight that uses up the slack."""
        odds = self.odds * math.exp(-min(max(slack, 0.0), _MOST_SLACK))
        return odds / (1 + odds)

    def best_rho(self, sigma: float) -> float | None:
        """Return the best ρ for the internal steps; None if this σ proves nothing."""

        def fits(log_rho: float) -> bool:
            return math.isfinite(self.error(sigma, math.exp(log_rho)))

        low = math.log(self.epsilon**2) - 40.0
        high = math.log(self.epsilon) + 3.0
        if not fits(low):
            return None
        for _ in range(30):
            middle = (low + high) / 2
            low, high = (middle, high) if fits(middle) else (low, middle)
        return math.exp(
            least_point(lambda u: self.error(sigma, math.exp(u)), low - 1.0, low, rounds=12)
        )


def best_smooth_ending(
    ball: Ball,
    sizes: StepSizes,
    *,
    epsilon: Fraction,
    mixing_probability: Fraction,
    rows: int,
    bound: int,
    quantum: Fraction,
    status: Status,
) -> SmoothEnding | None:
    """Return S2's best ending of the descent; None if there is a single step, or no proof."""
    if sizes.count < 2:
        return None
    # one lattice unit is what one integer of the last gradient sum moves the point by
    share = 1 - as_rational(sizes.momentum, "momentum")
    spacing = Fraction(float(sizes.sizes()[-1])) * share * quantum / rows
    unit = 2 * float(bound * quantum) / rows
    t, odds = float(epsilon), float(mixing_probability / (1 - mixing_probability))
    search = _Search(
        dimension=ball.dimension,
        epsilon=t,
        nats=math.log(odds) + (math.log(math.expm1(t)) if t < 700 else t),
        odds=odds,
        before=unit * sizes.spread(unfinished=True),
        moved=float(2 * bound * spacing),
        reach=float(ball.radius + rows * bound * spacing),
    )

    def error(log_sigma: float) -> float:
        sigma = math.exp(log_sigma)
        rho = search.best_rho(sigma)
        return math.inf if rho is None else search.error(sigma, rho)

    start = math.log(float(ball.radius))
    grid = [start + step for step in range(-12, 9)]
    middle = min(grid, key=error)
    sigma = math.exp(least_point(error, middle - 1, middle + 1, rounds=12))
    rho = search.best_rho(sigma)
    if rho is None:
        return None
    found = search.error(sigma, rho)
    cost, _ = search.cost(sigma, rho + search.moved**2 / (2 * sigma**2))
    weight = min(mixing_probability, decimal_up(search.weight(search.nats - cost), 3))
    channel, variances = _built(
        ball, sizes, spacing, bound, rows, sigma=sigma, rho=rho, weight=weight, epsilon=epsilon
    )
    return SmoothEnding(channel=replace(channel, status=status), variances=variances, error=found)


def _built(
    ball: Ball,
    sizes: StepSizes,
    spacing: Fraction,
    bound: int,
    rows: int,
    *,
    sigma: float,
    rho: float,
    weight: Fraction,
    epsilon: Fraction,
) -> tuple[SmoothMix, Variances]:
    """Return S2 and the internal rounds' noise, slightly more of it until S2 certainly holds."""
    squared, more = (2 * bound) ** 2, Fraction(1)
    while True:
        scale = squared * more / Fraction(2 * rho)
        variances = sizes.variances(scale, unfinished=True)
        step = GaussianStep(
            dimension=ball.dimension,
            variance=decimal_up(float(more) * (sigma / float(spacing)) ** 2),
            radius=Fraction(ball.radius // spacing + rows * bound),
            sensitivity=Fraction(2 * bound),
        )
        internal = sum((count * squared / (2 * v) for count, v in variances), Fraction(0))
        whole = internal + step.rho
        channel = SmoothMix.best(
            ball, step, rho=whole, epsilon=epsilon, weight=weight, spacing=spacing
        )
        if channel.slack(epsilon, whole) >= 0:
            return channel, variances
        more *= 1 + (more - 1) + Fraction(1, 10**6)
