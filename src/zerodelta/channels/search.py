"""The least predicted error over mixing weight and resolution, and the channels ranked by it.

Closed forms in floats (B1, B2, and the Gaussian profile's leading term) find the optimum; whatever
they find is then built and certified exactly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TypeAlias

import numpy as np

from zerodelta.channels.channel import Mixing
from zerodelta.channels.kernels import Body, KernelMix, SmoothMix, least_point
from zerodelta.channels.mixes import (
    FiniteMix,
    GaussianMix,
    GridMix,
    LaplaceMix,
    LocalUniformMix,
    PriorMix,
    ProfileMix,
    UnequalGridMix,
)
from zerodelta.errors import GuaranteeError, did_you_mean, is_name, require
from zerodelta.exact.rational import Rational, as_positive
from zerodelta.privacy.readable import equals
from zerodelta.privacy.theorems.mixing import as_weight, largest_log_delta, smallest_weight
from zerodelta.spaces import Ball, Box, FiniteSpace, Space
from zerodelta.value import value

PlannedChannel: TypeAlias = Mixing | ProfileMix | SmoothMix

_WEIGHTS = [10 ** (-step / 4) for step in range(33)]
"""Fractions of the largest weight that are tried: four a decade, eight decades."""

_LARGEST_EPSILON = 10**6
_MOST_SIDES = 4096
"""A certificate lists the cells of so many different sides at most."""

_KERNEL_CELLS = 15
"""Cells per side of a local uniform kernel: odd, so that it has a middle, and 2^49 times it is
below 2^53. The bias is then a thirtieth of a cell of the grid with the same nats."""


@value
class Target:
    """What is fixed in advance: ε, the largest weight; a base, a resolution, a sensitivity."""

    epsilon: Fraction
    mixing_probability: Fraction
    log_delta: float | None = None
    resolution: float | None = None
    sensitivity: Fraction | None = None

    @staticmethod
    def of(
        *,
        epsilon: Rational,
        mixing_probability: Rational,
        resolution: Rational | None = None,
        sensitivity: Rational | None = None,
    ) -> Target:
        """Return a caller's numbers, checked."""
        weight = as_weight(mixing_probability, "mixing_probability")
        return Target(
            epsilon=_in_range(epsilon, "epsilon", most=_LARGEST_EPSILON),
            mixing_probability=_in_range(weight, "mixing_probability"),
            resolution=None if resolution is None else float(_in_range(resolution, "resolution")),
            sensitivity=None if sensitivity is None else _in_range(sensitivity, "sensitivity"),
        )

    def nats(self, weight: float) -> float:
        """Return ln(w/(1-w)) + ln(e^ε - 1)."""
        t = float(self.epsilon)
        grown = math.log(math.expm1(t)) if t < 700 else t
        return math.log(weight) - math.log1p(-weight) + grown

    def noise(self, log_ratio: float, weight: float, dimension: int) -> float:
        """Return the l2 norm of the Gaussian noise that a base needs for this many nats.

        δ_μ(t) is about φ(a) μ/(a(a+μ)) with a = t/μ - μ/2 (the tails' leading terms).
        """
        if self.sensitivity is None:
            return 0.0
        t, nats = float(self.epsilon), max(log_ratio - self.nats(weight), 1e-9)
        exponent = nats
        for _ in range(3):
            a = math.sqrt(2 * exponent)
            mu = 2 * t / (math.sqrt(a * a + 2 * t) + a)
            saved = math.log(math.sqrt(2 * math.pi) * max(a * (a + mu) / mu, 1.0))
            exponent = max(nats - saved, nats / 4)
        return float(self.sensitivity) / mu * math.sqrt(dimension)


@value
class Candidate:
    """A class of channels at its best weight and log-ratio, with the predicted error.

    `kind` is a channel of that class, whose resolution is still to be set, or the channel itself.
    """

    kind: PlannedChannel
    weight: Fraction
    log_ratio: float
    error: float

    @property
    def channel(self) -> str:
        """The word by which `plan(channel=…)` picks it."""
        return self.kind.word

    @property
    def name(self) -> str:
        """What it does."""
        return self.kind.title

    @property
    def reservation(self) -> str:
        """Why it is picked by its name only, if so."""
        return self.kind.reservation

    def build(self, target: Target) -> PlannedChannel:
        """Return the channel, within what is certainly left for its mass ratio."""
        if not isinstance(self.kind, Mixing):
            return self.kind
        if target.log_delta is None:
            return self.kind.finest(self.log_ratio, self.weight)
        allowed = largest_log_delta(epsilon=target.epsilon, weight=self.weight, log_mass=0.0)
        limit = math.nextafter(allowed - target.log_delta, -math.inf)
        if target.resolution is not None:
            limit = min(limit, self.log_ratio)
        return self.kind.finest(limit, self.weight)


def _in_range(value: Rational, name: str, *, most: int = 10**100) -> Fraction:
    """Return a positive number that neither vanishes nor overflows where plans use floats."""
    exact = as_positive(value, name)
    require(
        Fraction(1, 10**100) <= exact <= most,
        name,
        value,
        expected=f"a number between 1e-100 and {float(most):g}",
        remedy="state it in other units, or plan for something realistic",
    )
    return exact


# --- one channel: weight and resolution ----------------------------------------------------------


def best_candidate(channel: Mixing, target: Target) -> Candidate | None:
    """Return the best channel of this class, or None if the base cannot reach even the coarsest."""
    if target.log_delta is None and (target.sensitivity is None or channel.dimension == 0):
        return _at_largest_weight(channel, target)
    if channel.dimension == 0 and target.log_delta not in (None, -math.inf):
        return _at_smallest_weight(channel, target, target.log_delta)
    least, found = channel.log_ratio_at(), []
    for share in _WEIGHTS:
        # a share of the largest weight, never above it, rounded to three digits to be read
        weight = Fraction(f"{float(target.mixing_probability) * share:.3g}")
        option = _at_weight(channel, target, min(weight, target.mixing_probability), least)
        found += [] if option is None else [option]
    return min(found, key=lambda candidate: candidate.error, default=None)


def _at_largest_weight(channel: Mixing, target: Target) -> Candidate:
    """Without base noise to trade against: the largest weight, and B2's optimal split.

    At the optimum rounding gets d times what mixing gets; a given resolution is kept.
    """
    mixing = float(target.mixing_probability) * channel.displacement()
    if target.resolution is not None:
        log_ratio = channel.log_ratio_at(target.resolution)
    else:
        log_ratio = _log_ratio_of(channel, mixing * max(channel.dimension, 1))
    error = channel.rounding(log_ratio) + mixing
    return Candidate(
        kind=channel, weight=target.mixing_probability, log_ratio=log_ratio, error=error
    )


def _at_smallest_weight(channel: Mixing, target: Target, log_delta: float) -> Candidate | None:
    """On a finite space there is nothing to trade the weight against."""
    mass = channel.log_ratio_at()
    if target.nats(float(target.mixing_probability)) - log_delta < mass:
        return None
    smallest = smallest_weight(epsilon=target.epsilon, log_delta=log_delta, log_mass=mass)
    weight = min(target.mixing_probability, smallest)
    error = float(weight) * channel.displacement()
    return Candidate(kind=channel, weight=weight, log_ratio=mass, error=error)


def _at_weight(channel: Mixing, target: Target, exact: Fraction, least: float) -> Candidate | None:
    weight, asked = float(exact), None
    if target.resolution is not None:
        asked = max(least, channel.log_ratio_at(target.resolution))
    if target.log_delta is not None:
        log_ratio = target.nats(weight) - target.log_delta
        log_ratio = log_ratio if asked is None else min(log_ratio, asked)
        if log_ratio < least:
            return None
        error = channel.rounding(log_ratio)
    else:  # trade rounding against the base's own noise, which grows with the nats it must hide

        def noisy(nats: float) -> float:
            noise = target.noise(nats, weight, channel.dimension)
            return math.hypot(noise, channel.rounding(nats))

        most = least + 40.0 * max(channel.dimension, 1)
        log_ratio = least_point(noisy, least, most, rounds=30) if asked is None else asked
        error = noisy(log_ratio)
    error += weight * channel.displacement()
    return Candidate(kind=channel, weight=exact, log_ratio=log_ratio, error=error)


def _log_ratio_of(channel: Mixing, rounding: float) -> float:
    """Return the nats at which the rounding error is as given (at least the coarsest)."""
    low = channel.log_ratio_at()
    high = low + 40.0 * max(channel.dimension, 1)
    if channel.rounding(low) <= rounding:
        return low
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if channel.rounding(middle) > rounding else (low, middle)
    return high


# --- all channels of a space ---------------------------------------------------------------------


def channels_for(
    space: Space, weight: Fraction, prior: Sequence[Rational] | None = None
) -> list[Mixing]:
    """Return a channel of every class that can publish on a space, the usual winner first.

    Their resolution is to be searched (`finest`). A prior is for finite spaces, and refused else.
    """
    with_prior: list[Mixing] = []
    if prior is not None:
        with_prior = [PriorMix(space=space, mixing_weight=weight, prior=prior)]  # type: ignore[arg-type]
    if isinstance(space, FiniteSpace):
        return [FiniteMix(space=space, mixing_weight=weight), *with_prior]
    if isinstance(space, Box):
        local = LocalUniformMix(
            lattice=space.grid(_KERNEL_CELLS), mixing_weight=weight, kernel_cells=_KERNEL_CELLS
        )
        if _has_unequal_sides(space):
            one_cell = space.unequal_grid([1] * space.dimension)
            return [UnequalGridMix(lattice=one_cell, mixing_weight=weight), local]
        return [GridMix(lattice=space.grid(1), mixing_weight=weight), local]
    if not isinstance(space, Ball):
        raise TypeError(f"not a space: {type(space).__name__}")
    if space.norm == math.inf:
        return channels_for(space.bounding_box(), weight)
    lattice = space.lattice(space.radius)
    grid = GridMix(lattice=space.bounding_box().grid(1), mixing_weight=weight)
    if space.norm == 1:
        return [LaplaceMix(lattice=lattice, mixing_weight=weight), grid]
    kernel = KernelMix(
        body=Body(lattice=lattice), noise_norm=2, scale=Fraction(1), mixing_weight=weight
    )
    return [GaussianMix(lattice=lattice, mixing_weight=weight), grid, kernel]


def _has_unequal_sides(box: Box) -> bool:
    """Tell whether equal spacing is worth it, and can be stated in a short certificate."""
    widths = np.unique(box.widths())
    return bool(widths[-1] > widths[0] * (1 + 1e-6) and len(widths) <= _MOST_SIDES)


def ranked_candidates(
    space: Space,
    target: Target,
    *,
    prior: Sequence[Rational] | None,
    profile: ProfileMix | None,
    channel: str | None,
) -> tuple[Candidate, ...]:
    """Return the candidates, the chosen one first and the others from the least error on.

    The choice is `channel`; without it the caller's profile or prior, and without these the least
    predicted error among those without a reservation. Theorem S is costly to weigh and among them
    only if it was asked for (`smooth_candidates`).
    """
    mixing = channels_for(space, target.mixing_probability, prior)
    words = [each.word for each in mixing]
    words += ["smooth"] * (isinstance(space, Ball) and space.norm == 2)
    words += ["profile"] * (profile is not None)
    _check_channel(channel, words, target)
    found = [best for each in mixing if (best := best_candidate(each, target)) is not None]
    if channel == "smooth":
        found += smooth_candidates(space, target)
    if profile is not None and (weight := profile.mixing_weight) <= target.mixing_probability:
        error = profile.expected_error()
        found.append(Candidate(kind=profile, weight=weight, log_ratio=0.0, error=error))
    best_first = ranked(found)
    given = "profile" if profile is not None else "prior" if prior is not None else None
    wanted = channel or given
    chosen = [
        candidate
        for candidate in best_first
        if (candidate.channel == wanted if wanted else not candidate.reservation)
    ]
    if not chosen:
        asked = [each for each in mixing if wanted in (None, each.word)]
        raise GuaranteeError(_out_of_reach(asked, target))
    return (chosen[0], *(candidate for candidate in best_first if candidate is not chosen[0]))


def smooth_candidates(space: Space, target: Target) -> list[Candidate]:
    """Return Theorem S, where it can be planned: on an l2 ball, for a sensitivity and no base."""
    if not isinstance(space, Ball) or space.norm != 2 or target.sensitivity is None:
        return []
    if target.log_delta is not None:
        return []
    built = SmoothMix.planned(
        space,
        sensitivity=min(target.sensitivity, 2 * space.radius),  # vectors of the ball are no farther
        epsilon=target.epsilon,
        mixing_probability=target.mixing_probability,
    )
    if built is None:
        return []
    nats, error = built.log_ratio(), built.predicted_error()
    return [Candidate(kind=built, weight=built.mixing_weight, log_ratio=nats, error=error)]


def ranked(found: list[Candidate]) -> list[Candidate]:
    """Return the least error first; among errors within a hundredth, what asks least of the base.

    Without a base or a sensitivity every channel is built for the same error.
    """
    least = min((candidate.error for candidate in found), default=0.0) * 1.01
    return sorted(found, key=lambda candidate: (max(candidate.error, least), candidate.log_ratio))


def _check_channel(channel: str | None, words: list[str], target: Target) -> None:
    if channel is None:
        return
    require(
        is_name(channel, words),
        "channel",
        channel,
        expected=f"one of {', '.join(map(repr, words))} on this space",
        remedy=did_you_mean(channel, words, "leave it out to let the plan choose"),
    )
    require(
        channel != "smooth" or (target.sensitivity is not None and target.log_delta is None),
        "channel",
        channel,
        expected="a sensitivity and no base: Theorem S fixes the noise of the internal vector",
        remedy="plan(space, epsilon=…, sensitivity=…, channel='smooth') first, add its noise, "
        "then plan.purify(the raw vector)",
    )


def _out_of_reach(channels: list[Mixing], target: Target) -> str:
    if not channels:
        return (
            f"no noise or weight within reason reaches ε {equals(target.epsilon)} by this channel: "
            "allow a larger ε or mixing probability, or another channel."
        )
    actual = 0.0 if target.log_delta is None else target.log_delta
    least = min(channel.log_ratio_at() for channel in channels)
    needed = target.nats(float(target.mixing_probability)) - least
    return (
        f"the claim cannot reach ε {equals(target.epsilon)} on this space: ln δ(ε) is {actual:.6g} "
        f"and would have to be {needed:.6g}; it misses by {actual - needed:.4g} nats. Add noise to "
        "the base mechanism, publish something smaller, or allow a larger ε or mixing probability."
    )
