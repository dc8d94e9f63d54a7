"""Plan and run a noisy descent: exact noisy steps inside, one pure release at the end (C1).

The plan is a function of public numbers. The last iterate is published on the l2-ball lattice
around the public start (R(v)), on the cube's grid (B2), or as the raw last step (S2), whichever is
predicted to add the least noise. The certificate is verified before a row is read.
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
# The weight of each gradient in the published point determines how much the noise of its round
# harms (evidence 5). The schedule is a function of public numbers.

Variances: TypeAlias = tuple[tuple[int, Fraction], ...]
"""Pairs of a number of consecutive rounds and the variance of the noise in each of them."""

_GROUPS = 10
"""The number of groups of rounds with the same noise. More groups would lower the noise slightly,
but each is a step of the certificate."""


@value
class StepSizes:
    """`count` steps that shrink linearly from `first`, with momentum and averaging.

    A velocity v <- m·v + (1-m)·g moves the parameters by -size·v, so momentum m changes the path
    and not its length. The published point is the mean of the last iterates, the part `average` of
    all.

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
        """The number of last iterates that are averaged, at least one."""
        return max(1, math.ceil(self.count * as_rational(self.average, "average")))

    def sizes(self) -> Floats:
        """Return the length of each step, for a gradient that is a mean over rows."""
        first = float(as_rational(self.first, "step"))
        fractions: Floats = np.arange(self.count, 0, -1) / self.count
        return first * fractions

    def weights(self, *, unfinished: bool = False) -> Floats:
        """Return the factor of each gradient in the published point, if nothing is projected.

        `unfinished`: for the point before the last step instead.
        """
        keep = float(as_rational(self.momentum, "momentum"))
        last = self.count - unfinished
        averaged = max(1, self.averaged - unfinished)
        # step s is part of all later iterates: this fraction of the averaged ones
        later = np.minimum(last - np.arange(last), averaged) / averaged
        weights, carried = np.zeros(last), 0.0
        direct = self.sizes()[:last] * later  # of a velocity in the step that it is used for
        for s in range(last - 1, -1, -1):  # momentum carries a gradient to all later velocities
            carried = direct[s] + keep * carried
            weights[s] = (1 - keep) * carried
        return weights

    def variances(self, scale: Fraction, *, unfinished: bool = False) -> Variances:
        """Return (count, variance) of groups of consecutive rounds; `scale` is Δ²/μ² in total.

        Rounds with larger weights get less noise. For a total of μ² (Lemma R2) the best variance
        that is constant within each group is √(n_g/q_g) Σ_h √(n_h q_h), with n the number of rounds
        and q the sum of their squared weights; it is rounded up to seven digits.
        """
        groups = self._groups(unfinished)
        total = float(scale) * sum(math.sqrt(n * q) for n, q in groups)
        return tuple((n, decimal_up(math.sqrt(n / q) * total)) for n, q in groups)

    def spread(self, *, unfinished: bool = False) -> float:
        """Return the noise of the published point per coordinate, in units of Δ/μ.

        A single release of the point with this sensitivity would have the same noise.
        """
        return sum(math.sqrt(n * q) for n, q in self._groups(unfinished))

    def _groups(self, unfinished: bool) -> list[tuple[int, float]]:
        """Return the number of rounds and the sum of squared weights of each group."""
        weights = self.weights(unfinished=unfinished)
        parts = np.array_split(weights, min(_GROUPS, len(weights)))
        return [(len(part), float((part * part).sum())) for part in parts]


@final
class Iterates:
    """Take projected steps from the center of the ball, with momentum and an average.

    The iterates are a deterministic function of the noisy gradient sums. `unit` converts an integer
    gradient sum to a mean gradient.
    """

    def __init__(self, *, ball: Ball, sizes: StepSizes, unit: float) -> None:
        self._ball, self._unit = ball, unit
        self._lengths = sizes.sizes()
        self._keep = float(as_rational(sizes.momentum, "momentum"))
        self._averaged_from = sizes.count - sizes.averaged
        self._steps_taken = 0
        self.theta = ball.middle()
        """The point of the next gradient."""
        self._velocity = np.zeros(ball.dimension)
        self._mean, self._averaged = ball.middle(), 0

    def step(self, noisy: IntegerArray) -> None:
        """Move by a noisy gradient sum with momentum, project to the ball, and average."""
        with np.errstate(all="ignore"):  # a point that overflows is projected to the center
            gradient = noisy.astype(np.float64) * self._unit
            self._velocity = self._keep * self._velocity + (1 - self._keep) * gradient
            moved = self.theta - self._lengths[self._steps_taken] * self._velocity
        self.theta = self._ball.project(moved)
        if self._steps_taken >= self._averaged_from:
            self._averaged += 1
            self._mean = self._mean + (self.theta - self._mean) / self._averaged
        self._steps_taken += 1

    def point(self) -> Floats:
        """Return the mean of the last iterates; before averaging starts, the last iterate."""
        return self._mean if self._averaged else self.theta

    def base(self, spacing: Fraction) -> npt.NDArray[Any]:
        """Return the point before the last gradient, in integer lattice units around the center.

        Its norm is at most ⌊radius/spacing⌋, verified in integers: S2's radius relies on it.
        """
        limit = self._ball.radius // spacing
        with np.errstate(all="ignore"):
            start = self.point() - self._lengths[-1] * self._keep * self._velocity
            offset = self._ball.centered(start) / float(spacing)
        rounded = np.array([_nearest_integer(value) for value in offset], dtype=np.object_)
        square = int((rounded * rounded).sum())
        if square <= limit * limit:
            return rounded
        length = math.isqrt(square) + 1  # at least ‖k‖: |k|·limit/length has norm at most `limit`
        # dtype object: without it NumPy converts integers on both sides of 2^63 to floats
        return np.array([_toward_zero(int(k) * limit, length) for k in rounded], dtype=np.object_)


def _nearest_integer(value: float) -> int:
    """Round a float, and replace infinity and NaN by 0."""
    return round(value) if math.isfinite(value) else 0


def _toward_zero(number: int, divisor: int) -> int:
    """Return number/divisor rounded toward 0."""
    return number // divisor if number >= 0 else -(-number // divisor)


# -- Theorem S as the ending of a descent: the raw last step with wider noise (theory C1) ---------
# The last step is short, so noise much wider than its own sensitivity asks for costs little ε, and
# hides the noise that is left from the internal steps. How ε is divided between the two is searched
# in floats, for the least predicted error. The result is then built and certified exactly.

_MAXIMUM_SLACK = math.log(1e8)
"""The slack that is used to reduce the mixing weight: at most eight decades, as in every other
channel."""


@value
class SmoothEnding:
    """S2 for the last step, the noise of the internal rounds before it, and the predicted error."""

    channel: SmoothMix
    variances: Variances
    error: float


@value
class _Search:
    """S2's condition in the units of the parameters, in floats."""

    dimension: int
    epsilon: float
    nats: float
    """ln(w/(1-w)) + ln(e^ε - 1) at the largest weight."""
    odds: float
    """w/(1-w) at the largest weight."""
    before: float
    """The sensitivity of the point before the last step."""
    moved: float
    """The sensitivity of the last step."""
    reach: float
    """The largest distance of the last step's center from the start."""

    def cost(self, sigma: float, rho: float) -> tuple[float, float]:
        """Return the left side of S2 at the best order 1 + `excess`, and the best τ²."""

        def at(log_excess: float) -> tuple[float, float]:
            """Return S2's left side at the order 1 + e^log_excess, and the best τ² there."""
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
        """Return the smallest mixing weight, which uses up the slack of S2's condition."""
        odds = self.odds * math.exp(-min(max(slack, 0.0), _MAXIMUM_SLACK))
        return odds / (1 + odds)

    def best_rho(self, sigma: float) -> float | None:
        """Return the best ρ for the internal steps; None if S2 fails for this σ."""

        def fits(log_rho: float) -> bool:
            return math.isfinite(self.error(sigma, math.exp(log_rho)))

        low = math.log(self.epsilon**2) - 40.0
        high = math.log(self.epsilon) + 3.0
        if not fits(low):
            return None
        for _ in range(30):  # bisect for the largest ρ that S2 allows; the best is just below
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
    """Return the best ending by S2; None if the descent has one step or S2 fails."""
    if sizes.count < 2:
        return None
    # one lattice unit is the move of the point for an integer 1 in the last gradient sum
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
    predicted_error = search.error(sigma, rho)
    cost, _ = search.cost(sigma, rho + search.moved**2 / (2 * sigma**2))
    weight = min(mixing_probability, decimal_up(search.weight(search.nats - cost), 3))
    channel, variances = _certified_ending(
        ball, sizes, spacing, bound, rows, sigma=sigma, rho=rho, weight=weight, epsilon=epsilon
    )
    return SmoothEnding(
        channel=replace(channel, status=status), variances=variances, error=predicted_error
    )


def _certified_ending(
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
    """Return S2's channel and the internal rounds' variances, such that S2 holds exactly.

    The search used floats. If S2 just fails, all variances are increased by a factor.
    """
    squared, factor = (2 * bound) ** 2, Fraction(1)
    while True:
        scale = squared * factor / Fraction(2 * rho)
        variances = sizes.variances(scale, unfinished=True)
        step = GaussianStep(
            dimension=ball.dimension,
            variance=decimal_up(float(factor) * (sigma / float(spacing)) ** 2),
            radius=Fraction(ball.radius // spacing + rows * bound),
            sensitivity=Fraction(2 * bound),
        )
        internal = sum((count * squared / (2 * v) for count, v in variances), Fraction(0))
        total_rho = internal + step.rho
        channel = SmoothMix.best(
            ball, step, rho=total_rho, epsilon=epsilon, weight=weight, spacing=spacing
        )
        if channel.slack(epsilon, total_rho) >= 0:
            return channel, variances
        factor *= factor + Fraction(1, 10**6)  # 1e-6 more, then about twice as much each time


Rounds: TypeAlias = Callable[[Iterable[int]], Iterable[int]]


@value(repr=False)
class Descent:
    """The public plan of a noisy gradient descent, ready to be certified.

    `variances` lists (count, variance) of groups of consecutive rounds: the noise on each integer
    gradient sum, in squared quanta. A `SmoothMix` ending has one more round, with wider noise.
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
    endings: tuple[tuple[str, float], ...]
    """The compared endings with their predicted errors, best first."""
    unit: str | None = None
    """The protected unit; None: a row."""
    max_rows: int = 1
    """The number of rows of a unit that count."""
    weight: int | None = None
    """The number of rows to which the gradient sum of a unit is clipped; None: no clipping."""
    rows_public: bool = True
    """Whether `rows` is the exact number of rows, or an expected one."""
    neighbors: Neighbors = Neighbors.REPLACE

    @property
    def squared(self) -> int:
        """The squared sensitivity of an integer gradient sum, to one row."""
        return (_bounds_moved(self.neighbors) * self.bound) ** 2

    @property
    def clip(self) -> float:
        """The norm to which gradients are clipped."""
        return float(self.bound * self.quantum)

    def release_plan(
        self, *, assumed: tuple[str, ...] = (), rounds: Rounds = iter
    ) -> ReleasePlan[Gradients]:
        """Return the plan of the release; `assumed` lists premises of the surrounding program."""
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
        """Return the step of `count` rounds with this variance."""
        numbers = {"sensitivity_squared": self.squared, "variance": variance, "count": count}
        return Step(theorem="rounded-gaussian", numbers=numbers, status=self.status)

    def _last_gaussian(self) -> tuple[Step, ...]:
        """Return the step of a raw last round, if the plan has one."""
        if isinstance(self.channel, SmoothMix):
            return (self._gaussian(1, self.channel.step_taken.variance),)
        return ()

    def _unit_lines(self) -> list[str]:
        """Return the lines of `repr` about a protected unit."""
        if self.unit is None:
            return []
        if self.weight is None:
            return [f"  units            up to {self.max_rows} rows of a unit count"]
        return [
            f"  units            up to {self.max_rows} rows of a unit count; their sum is clipped "
            f"to that of {self.weight}"
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
            if noise is None:  # all planned variances are used: the plan has a raw ending
                return self._publish_raw(iterates, exact, bits)
            iterates.step(noise.apply(exact, bits))
        # theory A6.7: only this point is published; no iterate, loss or stopping decision is
        return self.ball.project(self.channel.apply(iterates.point(), bits))

    def _publish_raw(self, iterates: Iterates, exact: IntegerArray, bits: BitSource) -> Floats:
        """Publish the noisy last step itself, which is not projected before mixing (theory C1)."""
        assert isinstance(self.channel, SmoothMix)
        noise = RoundedGaussian(
            sensitivity_squared=Fraction(self.squared),
            variance=self.channel.step_taken.variance,
        )
        raw = iterates.base(self.channel.spacing) - noise.apply(exact, bits).astype(np.object_)
        return self.channel.apply(raw, bits)

    def __repr__(self) -> str:
        mu = math.sqrt(_claim(self.variances, self.squared).mu_squared)  # for one row
        raw = isinstance(self.channel, SmoothMix)
        moved = _bounds_moved(self.neighbors) * self.clip
        noise = self.sizes.spread(unfinished=raw) * moved / self.rows / mu
        path = self.clip * float(self.sizes.sizes().sum())
        lines = [
            f"Descent of {self.sizes.count} rounds on {self.rows} rows: "
            f"pure ε = {float(self.epsilon):g}, δ = 0",
            f"  publishes        one element of {self.ball!r}",
            f"  gradients        clipped to {self.clip:g}; longest path {path:.4g}",
            *self._unit_lines(),
            f"  internal noise   {noise:.3g} a coordinate (μ = {mu:.4g})",
            "  ending                                       predicted l2 error",
        ]
        lines += [
            f"  {'->' if i == 0 else '  '} {name:<40} {error:10.4g}"
            for i, (name, error) in enumerate(self.endings)
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
    """Choose, of several endings, the descent whose published point has the least noise.

    Only public numbers of the gradients are used. Where a unit of several rows is protected, a
    gradient sum may move by all of them (theory V). The raw last step is considered for single rows
    only, and if there are certainly at most `gradients.rows` rows (`rows_bound`).

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
    bounds_moved = _bounds_moved(protects.neighbors)
    # theory V2: the clipped sum of a unit's rows moves a gradient sum like `weight` rows
    unit_rows = protects.max_rows if gradients.weight is None else gradients.weight
    moved = bounds_moved * gradients.lipschitz / gradients.rows * unit_rows
    purification = plan(
        ball,
        epsilon=epsilon,
        mixing_probability=mixing_probability,
        sensitivity=moved * Fraction(sizes.spread()),
    )
    assert isinstance(purification.purifier, Mixing)
    squared = (bounds_moved * gradients.bound * unit_rows) ** 2
    scale = squared / purification.calibration.mu_squared
    variances = sizes.variances(scale)
    # variances are rounded, and the calibration is that of one release: add noise until it fits
    while _claim(variances, squared).log_delta(purification.epsilon) > purification.log_delta:
        scale *= 1 + Fraction(1, 10**6)
        variances = sizes.variances(scale)
    channel: Mixing | SmoothMix = purification.purifier
    endings = [(c.name, c.error) for c in purification.compared if not c.reservation]
    smooth = None
    # S2's numbers: the move of the last step for one replaced row, and its largest norm for n rows
    if protects.unit is None and protects.neighbors is Neighbors.REPLACE and rows_bound:
        smooth = best_smooth_ending(
            ball,
            sizes,
            epsilon=purification.epsilon,
            mixing_probability=as_rational(mixing_probability, "mixing_probability"),
            rows=gradients.rows,
            bound=gradients.bound,
            quantum=gradients.quantum,
            status=gradients.status,
        )
    if smooth is not None:
        endings.append(("raw last step, wider Gaussian (S2)", smooth.error))
        if smooth.error < purification.predicted_error:
            channel, variances = smooth.channel, smooth.variances
    return Descent(
        ball=ball,
        epsilon=purification.epsilon,
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
        error=min(error for _, error in endings),
        endings=tuple(sorted(endings, key=lambda ending: ending[1])),
    )


def _bounds_moved(neighbors: Neighbors) -> int:
    """Return the sensitivity of a gradient sum to one row, as a multiple of a row's bound."""
    # theory A6.1: a replaced row takes one gradient away and adds another
    return 1 if neighbors is Neighbors.ADD_REMOVE else 2


def _claim(variances: Variances, squared: int) -> GaussianDP:
    """Return the claim of all internal rounds together (R2)."""
    mu_squared = sum((count * squared / v for count, v in variances), Fraction(0))
    return GaussianDP(mu_squared=mu_squared)
