"""A planned descent: exact noisy gradient steps inside, one pure release at the end (theory C1).

Made of public numbers only. The last iterate is published on the l2-ball lattice around the public
start (R(v)), on the cube's grid (B2), or as the raw last step (S2), whichever is predicted to add
the least noise; the certificate is verified before a row is read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from fractions import Fraction
from typing import TypeAlias

import numpy as np

from zerodelta.channels.channel import Mixing
from zerodelta.channels.planner import plan
from zerodelta.channels.smooth import SmoothMix
from zerodelta.data.protection import Protection
from zerodelta.exact.arrays import Floats
from zerodelta.exact.bits import BitSource
from zerodelta.exact.exact_sums import IntegerArray
from zerodelta.exact.rational import Rational, as_rational
from zerodelta.mechanisms.gaussian import RoundedGaussian
from zerodelta.privacy.claims import GaussianDP, PureDP
from zerodelta.privacy.neighbors import Neighbors
from zerodelta.privacy.step import Status, Step
from zerodelta.spaces import Ball
from zerodelta.spine.release_plan import ReleasePlan, rows_told, units_step
from zerodelta.training.gradient_sums import Gradients
from zerodelta.training.iterates import Iterates, StepSizes, Variances
from zerodelta.training.smooth_descent import best_smooth_ending
from zerodelta.value import value

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
                rows_told(self.rows, public=self.rows_public),
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
            RoundedGaussian(sensitivity_squared=self.squared, variance=variance)
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
            sensitivity_squared=self.squared, variance=self.channel.step_taken.variance
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
    >>> from zerodelta.training.loss_functions import Squared
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
    rivals = [(c.name, c.error) for c in made.weighed if not c.reservation]
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
