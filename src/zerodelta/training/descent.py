"""A planned descent: its schedule, exact noisy steps inside, one pure release at the end (C1).

Made of public numbers only. The last iterate is published on the l2-ball lattice around the public
start (R(v)), on the cube's grid (B2), or as the raw last step (S2), whichever is predicted to add
the least noise; the certificate is verified before a row is read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from fractions import Fraction
from typing import Any, TypeAlias, final

import numpy as np
import numpy.typing as npt

from zerodelta.channels.channel import Mixing
from zerodelta.channels.kernels import SmoothMix, minimum_point
from zerodelta.channels.purification import plan
from zerodelta.data.source import Protection
from zerodelta.errors import require
from zerodelta.exact.arrays import Floats
from zerodelta.exact.bits import BitSource
from zerodelta.exact.rational import Rational, as_count, as_positive, as_rational, decimal_up
from zerodelta.exact.sums import IntegerArray
from zerodelta.mechanisms.sum_noise import RoundedGaussian
from zerodelta.privacy.claims import GaussianDP, PureDP
from zerodelta.privacy.parameters import Neighbors
from zerodelta.privacy.steps import Status, Step
from zerodelta.privacy.theorems.smoothing import GaussianStep
from zerodelta.spaces import Ball
from zerodelta.spine.plan import ReleasePlan, row_count_sentence, units_step
from zerodelta.training.gradient_sums import Gradients
from zerodelta.value import value

# -- The public schedule of a descent, and its iterates as a function of noisy sums (theory C1) ---
# The weight of each gradient in what is published tells where noise hurts, and how much of it will
# be left (evidence 5). Everything about the schedule is a function of public numbers.

Variances: TypeAlias = tuple[tuple[int, Fraction], ...]
"""Numbers of consecutive rounds, and the variance of the noise in each of them."""

_GROUPS = 10
"""Rounds of a group have the same noise, so that a certificate has few steps."""


@value
class StepSizes:
    """`count` steps that shrink linearly from `first`, with momentum; the last ones are averaged.

    A velocity v <- m·v + (1-m)·g moves the parameters by -size·v, so momentum m changes the path
    and not its length. The published point is the mean of the last `average` of the iterates.

    >>> StepSizes(count=4, first=2).sizes()
    array([2. , 1.5, 1. , 0.5])
    >>> StepSizes(count=4, first=2, average="1/2").weights()
    array([2.  , 1.5 , 1.  , 0.25])
    """

    count: int
    first: Rational
    momentum: Rational = 0
    average: Rational = Fraction(1, 5)

    def __post_init__(self) -> None:
        as_count(self.count, "steps", minimum=1)
        as_positive(self.first, "step")
        for name in ("momentum", "average"):
            share = as_rational(getattr(self, name), name)
            require(
                0 <= share <= 1 and not (name == "momentum" and share == 1),
                name,
                getattr(self, name),
                expected="a share between 0 and 1 (momentum below 1)",
                remedy="pass momentum=0.9 or average=0.2, say",
            )

    @property
    def averaged(self) -> int:
        """How many of the last iterates are averaged: at least one."""
        return max(1, math.ceil(self.count * as_rational(self.average, "average")))

    def sizes(self) -> Floats:
        """Return the length of each step, for a gradient that is a mean over rows."""
        first = float(as_rational(self.first, "step"))
        left: Floats = np.arange(self.count, 0, -1) / self.count
        return first * left

    def weights(self, *, unfinished: bool = False) -> Floats:
        """Return by how much each gradient moves the published point if nothing is projected.

        `unfinished`: the point after all steps but the last, without the last gradient.
        """
        keep = float(as_rational(self.momentum, "momentum"))
        last = self.count - unfinished
        averaged = max(1, self.averaged - unfinished)
        later = np.minimum(last - np.arange(last), averaged) / averaged  # iterates that saw step s
        result, carried = np.zeros(last), 0.0
        reach = self.sizes()[:last] * later
        for s in range(last - 1, -1, -1):
            carried = reach[s] + keep * carried
            result[s] = (1 - keep) * carried
        return result

    def variances(self, scale: Fraction, *, unfinished: bool = False) -> Variances:
        """Return (count, variance) of groups of consecutive rounds; `scale` is Δ²/μ², of them all.

        Rounds that count more in the end get less noise: for a total of μ² (Lemma R2) the variance
        is the best one that is constant within each group, √(n_g/q_g) Σ_h √(n_h q_h), with n the
        number of rounds and q the sum of their squared weights; rounded up to seven digits.
        """
        groups = self._groups(unfinished)
        total = float(scale) * sum(math.sqrt(n * q) for n, q in groups)
        return tuple((n, decimal_up(math.sqrt(n / q) * total)) for n, q in groups)

    def spread(self, *, unfinished: bool = False) -> float:
        """Return the noise of the published point, in units of Δ/μ a coordinate.

        This is the sensitivity that a single release of the point would have.
        """
        return sum(math.sqrt(n * q) for n, q in self._groups(unfinished))

    def _groups(self, unfinished: bool) -> list[tuple[int, float]]:
        weights = self.weights(unfinished=unfinished)
        parts = np.array_split(weights, min(_GROUPS, len(weights)))
        return [(len(part), float((part * part).sum())) for part in parts]


@final
class Iterates:
    """The deterministic half of a descent: projected steps, as a function of noisy sums only.

    From the center of the ball, with momentum and an average.

    `unit` turns an integer gradient sum into a mean gradient.
    """

    def __init__(self, *, ball: Ball, sizes: StepSizes, unit: float) -> None:
        self._ball, self._unit = ball, unit
        self._lengths = sizes.sizes()
        self._keep = float(as_rational(sizes.momentum, "momentum"))
        self._averaged_from = sizes.count - sizes.averaged
        self._taken = 0
        self.theta = ball.middle()
        """Where the next gradient is taken."""
        self._velocity = np.zeros(ball.dimension)
        self._mean, self._counted = ball.middle(), 0

    def step(self, noisy: IntegerArray) -> None:
        """Move by one noisy gradient sum."""
        with np.errstate(all="ignore"):  # whatever overflows is projected to the center
            gradient = noisy.astype(np.float64) * self._unit
            self._velocity = self._keep * self._velocity + (1 - self._keep) * gradient
            moved = self.theta - self._lengths[self._taken] * self._velocity
        self.theta = self._ball.project(moved)
        if self._taken >= self._averaged_from:
            self._counted += 1
            self._mean = self._mean + (self.theta - self._mean) / self._counted
        self._taken += 1

    def point(self) -> Floats:
        """Return the mean of the last iterates (the last one, if none is to be averaged yet)."""
        return self._mean if self._counted else self.theta

    def base(self, spacing: Fraction) -> npt.NDArray[Any]:
        """Return what the last step starts from, in whole lattice units around the center.

        Its norm is at most ⌊radius/spacing⌋, verified in integers: S2's radius relies on it.
        """
        most = self._ball.radius // spacing
        with np.errstate(all="ignore"):
            start = self.point() - self._lengths[-1] * self._keep * self._velocity
            offset = self._ball.centered(start) / float(spacing)
        rounded = np.array([_whole(value) for value in offset], dtype=np.object_)
        square = int((rounded * rounded).sum())
        if square <= most * most:
            return rounded
        length = math.isqrt(square) + 1
        # objects from the start: NumPy makes floats of integers on both sides of 2^63
        return np.array([_toward_zero(int(k) * most, length) for k in rounded], dtype=np.object_)


def _whole(value: float) -> int:
    return round(value) if math.isfinite(value) else 0


def _toward_zero(number: int, divisor: int) -> int:
    """Return number/divisor without its fraction; |k|·most/⌈‖k‖⌉ has norm at most `most`."""
    return number // divisor if number >= 0 else -(-number // divisor)


# -- Theorem S as the ending of a descent: the raw last step, with noise of its own (theory C1) ---
# The last step is short, so noise much wider than it needs costs little of ε and smooths what the
# internal steps before it left. How much goes to either is searched in floats, for the least
# predicted error; whatever is found is then built and certified exactly.

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
        best = minimum_point(lambda u: at(u)[0], guess - 4, guess + 4, rounds=30)
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
            minimum_point(lambda u: self.error(sigma, math.exp(u)), low - 1.0, low, rounds=12)
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
    sigma = math.exp(minimum_point(error, middle - 1, middle + 1, rounds=12))
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


Rounds: TypeAlias = Callable[[Iterable[int]], Iterable[int]]


@value(repr=False)
class Descent:
    """A run of noisy gradient descent, ready to be certified; everything here is public.

    `variances` lists (count, variance) of groups of consecutive rounds: the noise on each integer
    gradient sum, in squared quanta. A `SmoothMix` ending has one more round, with its own noise.
    """

    ball: Ball
    epsilon: Fraction
    sizes: StepSizes
    rows: int
    bound: int
    quantum: Fraction
    status: Status
    assumed: tuple[str, ...]
    variances: Variances
    channel: Mixing | SmoothMix
    error: float
    rivals: tuple[tuple[str, float], ...]
    unit: str | None = None
    """Who is protected, if it is not a row."""
    max_rows: int = 1
    """How many rows of one unit count."""
    weight: int | None = None
    """Like how many rows they count at most, if what they add up to is clipped."""
    rows_public: bool = True
    """Whether `rows` is the number of rows, or one to plan with."""
    neighbors: Neighbors = Neighbors.REPLACE

    @property
    def squared(self) -> int:
        """The squared sensitivity of an integer gradient sum, to one row."""
        return (_moves(self.neighbors) * self.bound) ** 2

    @property
    def clip(self) -> float:
        """The norm to which gradients are clipped."""
        return float(self.bound * self.quantum)

    def release_plan(
        self, *, assumed: tuple[str, ...] = (), rounds: Rounds = iter
    ) -> ReleasePlan[Gradients]:
        """Return what is certified and how it is run; `assumed` of the program around it."""
        return ReleasePlan(
            claim=PureDP(self.epsilon, neighbors=self.neighbors),
            steps=tuple(
                replace(step, neighbors=self.neighbors)
                for step in (
                    *(self._gaussian(count, variance) for count, variance in self.variances),
                    *self._last_gaussian(),
                    *units_step(self.unit, self.max_rows, weight=self.weight),
                    self.channel.step(),
                )
            ),
            unit=self.unit,
            answer=lambda gradients, bits: self.run(gradients, bits, rounds),
            error=self.error,
            public=(
                f"the ball {self.ball!r}, whose center is the start",
                row_count_sentence(self.rows, public=self.rows_public),
                f"the schedule {self.sizes!r}, and clipping to {self.clip:g}",
                "every number in the steps",
            ),
            assumed=(*assumed, *self.assumed),
        )

    def _gaussian(self, count: int, variance: Fraction) -> Step:
        numbers = {"sensitivity_squared": self.squared, "variance": variance, "count": count}
        return Step(theorem="rounded-gaussian", numbers=numbers, status=self.status)

    def _last_gaussian(self) -> tuple[Step, ...]:
        if isinstance(self.channel, SmoothMix):
            return (self._gaussian(1, self.channel.step_taken.variance),)
        return ()

    def _told_of_units(self) -> list[str]:
        if self.unit is None:
            return []
        if self.weight is None:
            return [f"  units            all {self.max_rows} rows of one count"]
        return [
            f"  units            the {self.max_rows} rows of one count like {self.weight} at most: "
            "their sum is clipped"
        ]

    def iterates(self) -> Iterates:
        """Return the iterates at their public start."""
        return Iterates(ball=self.ball, sizes=self.sizes, unit=float(self.quantum) / self.rows)

    def run(self, gradients: Gradients, bits: BitSource, rounds: Rounds = iter) -> Floats:
        """Return the published point. Rows are reached through noisy integer sums only."""
        iterates = self.iterates()
        noises = (
            RoundedGaussian(sensitivity_squared=Fraction(self.squared), variance=variance)
            for count, variance in self.variances
            for _ in range(count)
        )
        for _ in rounds(range(self.sizes.count)):
            exact, noise = gradients.total(iterates.theta), next(noises, None)
            if noise is None:  # public: the plan has a raw ending
                return self._publish_raw(iterates, exact, bits)
            iterates.step(noise.apply(exact, bits))
        # theory A6.7: this point is all that leaves; no iterate, loss or stopping decision.
        return self.ball.project(self.channel.apply(iterates.point(), bits))

    def _publish_raw(self, iterates: Iterates, exact: IntegerArray, bits: BitSource) -> Floats:
        """Publish the last step itself: unprojected until it is mixed (theory C1)."""
        assert isinstance(self.channel, SmoothMix)
        noise = RoundedGaussian(
            sensitivity_squared=Fraction(self.squared),
            variance=self.channel.step_taken.variance,
        )
        raw = iterates.base(self.channel.spacing) - noise.apply(exact, bits).astype(np.object_)
        return self.channel.apply(raw, bits)

    def __repr__(self) -> str:
        mu = math.sqrt(_claim(self.variances, self.squared).mu_squared)  # of one row
        raw = isinstance(self.channel, SmoothMix)
        moved = _moves(self.neighbors) * self.clip
        noise = self.sizes.spread(unfinished=raw) * moved / self.rows / mu
        path = self.clip * float(self.sizes.sizes().sum())
        lines = [
            f"Descent of {self.sizes.count} rounds on {self.rows} rows: "
            f"pure ε = {float(self.epsilon):g}, δ = 0",
            f"  publishes        one element of {self.ball!r}",
            f"  gradients        clipped to {self.clip:g}; longest path {path:.4g}",
            *self._told_of_units(),
            f"  internal noise   {noise:.3g} a coordinate (μ = {mu:.4g})",
            "  ending                                       predicted l2 error",
        ]
        lines += [
            f"  {'->' if i == 0 else '  '} {name:<40} {error:10.4g}"
            for i, (name, error) in enumerate(self.rivals)
        ]
        return "\n".join(lines)


def plan_descent(
    gradients: Gradients,
    *,
    ball: Ball,
    epsilon: Rational,
    mixing_probability: Rational,
    sizes: StepSizes,
    protection: Protection | None = None,
    rows_bound: bool = True,
) -> Descent:
    """Return the descent whose published point is predicted to have the least noise.

    Nothing of the gradients but their public numbers is used. Where a unit of several rows is
    protected, all of them may move a gradient sum (theory V); the raw last step is not weighed, nor
    is it unless there are surely at most `gradients.rows` rows (`rows_bound`), which it rests on.

    >>> from dataclasses import replace
    >>> from zerodelta.training.gradients import gradients_of
    >>> from zerodelta.training.losses import Squared
    >>> x = np.linspace(-1, 1, 200).reshape(-1, 1)
    >>> loss = Squared(label_bound=1)
    >>> gradients = gradients_of(x, x[:, 0] / 2, loss=loss, radius=1, data_norm=1)
    >>> descent = plan_descent(
    ...     gradients, ball=Ball(1, 1), epsilon=1, mixing_probability="0.01",
    ...     sizes=StepSizes(count=20, first="1/2"),
    ... )
    >>> from zerodelta.spine.run import run
    >>> def answer(rows, bits):
    ...     return descent.run(gradients.on(rows), bits)
    >>> release = run(replace(descent.release_plan(), answer=answer), gradients.source)
    >>> release.certificate.claim.exact_epsilon, release.certificate.status.value
    (Fraction(1, 1), 'proven')
    """
    protects = Protection() if protection is None else protection
    moves = _moves(protects.neighbors)
    # theory V2: clipped together the rows of a unit move a sum like fewer rows
    times = protects.max_rows if gradients.weight is None else gradients.weight
    moved = moves * gradients.lipschitz / gradients.rows * times
    made = plan(
        ball,
        epsilon=epsilon,
        mixing_probability=mixing_probability,
        sensitivity=moved * Fraction(sizes.spread()),
    )
    assert isinstance(made.purifier, Mixing)
    squared = (moves * gradients.bound * times) ** 2
    scale = squared / made.calibration.mu_squared
    variances = sizes.variances(scale)
    while _claim(variances, squared).log_delta(made.epsilon) > made.log_delta:
        scale *= 1 + Fraction(1, 10**6)
        variances = sizes.variances(scale)
    channel: Mixing | SmoothMix = made.purifier
    rivals = [(c.name, c.error) for c in made.compared if not c.reservation]
    smooth = None
    # S2 is about the move of the last step for one replaced row, and how far all rows move it
    if protects.unit is None and protects.neighbors is Neighbors.REPLACE and rows_bound:
        smooth = best_smooth_ending(
            ball,
            sizes,
            epsilon=made.epsilon,
            mixing_probability=as_rational(mixing_probability, "mixing_probability"),
            rows=gradients.rows,
            bound=gradients.bound,
            quantum=gradients.quantum,
            status=gradients.status,
        )
    if smooth is not None:
        rivals.append(("raw last step, wider Gaussian (S2)", smooth.error))
        if smooth.error < made.predicted_error:
            channel, variances = smooth.channel, smooth.variances
    return Descent(
        ball=ball,
        epsilon=made.epsilon,
        sizes=sizes,
        rows=gradients.rows,
        bound=gradients.bound,
        quantum=gradients.quantum,
        status=gradients.status,
        unit=protects.unit,
        max_rows=protects.max_rows,
        neighbors=protects.neighbors,
        weight=gradients.weight,
        assumed=gradients.assumed(),
        variances=variances,
        channel=channel,
        error=min(error for _, error in rivals),
        rivals=tuple(sorted(rivals, key=lambda rival: rival[1])),
    )


def _moves(neighbors: Neighbors) -> int:
    """Return how many bounds a row can move a gradient sum by."""
    # theory A6.1: the sum has sensitivity 2L, not L, where a row is replaced
    return 1 if neighbors is Neighbors.ADD_REMOVE else 2


def _claim(variances: Variances, squared: int) -> GaussianDP:
    """Return what the internal rounds satisfy together (R2)."""
    mu_squared = sum((count * squared / v for count, v in variances), Fraction(0))
    return GaussianDP(mu_squared=mu_squared)
