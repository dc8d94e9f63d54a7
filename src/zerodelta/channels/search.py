"""Minimize the predicted error over mixing weight and resolution, and rank channels by it.

Closed forms in floats (B1, B2, and the leading term of the Gaussian profile) find the optimum. The
channel is then built and certified exactly, so an inaccurate search costs accuracy, never privacy:
that is why the constants below could be chosen by hand.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TypeAlias

import numpy as np

from zerodelta.channels.channel import Mixing
from zerodelta.channels.kernels import Body, KernelMix, SmoothMix, minimum_point
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
"""Fractions of the largest weight that are tried, four a decade over eight decades. By hand: the
error is flat near its minimum, so a factor 10^(1/8) in the weight hardly changes it."""

_LARGEST_EPSILON = 10**6
_MAX_SIDES = 4096
"""The largest number of different side lengths that a certificate lists."""

_KERNEL_CELLS = 15
"""Cells per side of a local uniform kernel. Odd, so that it has a middle; small enough that 2^49
cells of it stay below 2^53, where floats end. By hand: the bias of half a cell is then a thirtieth
of a cell of the grid with the same nats."""

_NATS_SEARCHED = 40.0
"""The range of log-ratios per coordinate that is searched; `MAX_NATS` = 34 ends every channel."""


@value
class Target:
    """The inputs of a plan: ε, the largest weight, and perhaps a base, resolution, sensitivity."""

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
        """Check a caller's numbers."""
        weight = as_weight(mixing_probability, "mixing_probability")
        return Target(
            epsilon=_in_range(epsilon, "epsilon", maximum=_LARGEST_EPSILON),
            mixing_probability=_in_range(weight, "mixing_probability"),
            resolution=None if resolution is None else float(_in_range(resolution, "resolution")),
            sensitivity=None if sensitivity is None else _in_range(sensitivity, "sensitivity"),
        )

    def nats(self, weight: float) -> float:
        """Return ln(w/(1-w)) + ln(e^ε - 1)."""
        t = float(self.epsilon)
        log_expm1 = math.log(math.expm1(t)) if t < 700 else t  # e^700 is near a float's limit
        return math.log(weight) - math.log1p(-weight) + log_expm1

    def noise(self, log_ratio: float, weight: float, dimension: int) -> float:
        """Return the l2 norm of the Gaussian noise that a base needs for a channel of this ratio.

        Its ln δ(t) may be at most -nats, nats = `log_ratio` - `self.nats(weight)`. For Gaussian
        noise δ_μ(t) is about φ(a) μ/(a(a+μ)) with a = t/μ - μ/2, the leading term of both tails.
        """
        if self.sensitivity is None:
            return 0.0
        t, nats = float(self.epsilon), max(log_ratio - self.nats(weight), 1e-9)
        # solve a²/2 + ln(√(2π) a(a+μ)/μ) = nats by a few fixed-point rounds: channels are compared
        # with the result, and certified without it
        exponent = nats
        for _ in range(3):
            a = math.sqrt(2 * exponent)
            mu = 2 * t / (math.sqrt(a * a + 2 * t) + a)
            log_factor = math.log(math.sqrt(2 * math.pi) * max(a * (a + mu) / mu, 1.0))
            exponent = max(nats - log_factor, nats / 4)
        return float(self.sensitivity) / mu * math.sqrt(dimension)


@value
class Candidate:
    """A class of channels at its best weight and log-ratio, with the predicted error.

    `kind` is a channel of that class whose resolution is still to be set, or the final channel.
    """

    kind: PlannedChannel
    weight: Fraction
    log_ratio: float
    error: float

    @property
    def channel(self) -> str:
        """The word by which `plan(channel=…)` selects it."""
        return self.kind.word

    @property
    def name(self) -> str:
        """Its description."""
        return self.kind.title

    @property
    def reservation(self) -> str:
        """The reason why it is selected by name only; empty otherwise."""
        return self.kind.reservation

    def build(self, target: Target) -> PlannedChannel:
        """Return the finest channel whose log-ratio certainly meets the condition of B1."""
        if not isinstance(self.kind, Mixing):
            return self.kind
        if target.log_delta is None:
            return self.kind.finest(self.log_ratio, self.weight)
        # B1 with ln M on one side: ln M <= ln(w/(1-w)) + ln(e^ε - 1) - ln δ(ε), rounded down
        allowed = largest_log_delta(epsilon=target.epsilon, weight=self.weight, log_mass=0.0)
        limit = math.nextafter(allowed - target.log_delta, -math.inf)
        if target.resolution is not None:
            limit = min(limit, self.log_ratio)
        return self.kind.finest(limit, self.weight)


def _in_range(value: Rational, name: str, *, maximum: int = 10**100) -> Fraction:
    """Return a positive number that neither vanishes nor overflows where plans use floats."""
    exact = as_positive(value, name)
    require(
        Fraction(1, 10**100) <= exact <= maximum,
        name,
        value,
        expected=f"a number between 1e-100 and {float(maximum):g}",
        remedy="state it in other units, or plan for something realistic",
    )
    return exact


# --- The best weight and resolution of one class of channels -------------------------------------


def best_candidate(channel: Mixing, target: Target) -> Candidate | None:
    """Return the best channel of this class; None if the base does not allow even the coarsest."""
    if target.log_delta is None and (target.sensitivity is None or channel.dimension == 0):
        return _at_largest_weight(channel, target)
    if channel.dimension == 0 and target.log_delta not in (None, -math.inf):
        return _at_smallest_weight(channel, target, target.log_delta)
    coarsest, candidates = channel.log_ratio_at(), []
    for share in _WEIGHTS:
        # three digits, so that people can read the weight; `min`, as rounding may exceed the limit
        weight = Fraction(f"{float(target.mixing_probability) * share:.3g}")
        candidate = _at_weight(channel, target, min(weight, target.mixing_probability), coarsest)
        candidates += [] if candidate is None else [candidate]
    return min(candidates, key=lambda candidate: candidate.error, default=None)


def _at_largest_weight(channel: Mixing, target: Target) -> Candidate:
    """Return the candidate of the largest weight, with B2's optimal split or the stated resolution.

    Without base noise to trade against, rounding is d times the error of mixing at the optimum.
    """
    mixing = float(target.mixing_probability) * channel.displacement()
    if target.resolution is not None:
        log_ratio = channel.log_ratio_at(target.resolution)
    else:
        log_ratio = _log_ratio_at_rounding(channel, mixing * max(channel.dimension, 1))
    error = channel.rounding(log_ratio) + mixing
    return Candidate(
        kind=channel, weight=target.mixing_probability, log_ratio=log_ratio, error=error
    )


def _at_smallest_weight(channel: Mixing, target: Target, log_delta: float) -> Candidate | None:
    """Return the candidate of the smallest weight that a base allows, on a finite space.

    Nothing is rounded there, so only the weight matters. None if even the largest is too small.
    """
    mass = channel.log_ratio_at()
    if target.nats(float(target.mixing_probability)) - log_delta < mass:
        return None
    smallest = smallest_weight(epsilon=target.epsilon, log_delta=log_delta, log_mass=mass)
    weight = min(target.mixing_probability, smallest)
    error = float(weight) * channel.displacement()
    return Candidate(kind=channel, weight=weight, log_ratio=mass, error=error)


def _at_weight(
    channel: Mixing, target: Target, exact: Fraction, coarsest: float
) -> Candidate | None:
    """Return the candidate of one weight; None if the base does not allow the coarsest channel."""
    weight, stated = float(exact), None
    if target.resolution is not None:
        stated = max(coarsest, channel.log_ratio_at(target.resolution))
    if target.log_delta is not None:
        log_ratio = target.nats(weight) - target.log_delta
        log_ratio = log_ratio if stated is None else min(log_ratio, stated)
        if log_ratio < coarsest:
            return None
        error = channel.rounding(log_ratio)
    else:  # a finer channel needs a smaller δ, so more noise in the base: find the best trade-off

        def total_error(nats: float) -> float:
            noise = target.noise(nats, weight, channel.dimension)
            return math.hypot(noise, channel.rounding(nats))

        finest = coarsest + _NATS_SEARCHED * max(channel.dimension, 1)
        if stated is None:
            log_ratio = minimum_point(total_error, coarsest, finest, rounds=30)
        else:
            log_ratio = stated
        error = total_error(log_ratio)
    error += weight * channel.displacement()
    return Candidate(kind=channel, weight=exact, log_ratio=log_ratio, error=error)


def _log_ratio_at_rounding(channel: Mixing, rounding: float) -> float:
    """Return the log-ratio of a rounding error, at least that of the coarsest channel."""
    low = channel.log_ratio_at()
    high = low + _NATS_SEARCHED * max(channel.dimension, 1)
    if channel.rounding(low) <= rounding:
        return low
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if channel.rounding(middle) > rounding else (low, middle)
    return high


# --- All channels of a space ---------------------------------------------------------------------


def channels_for(
    space: Space, weight: Fraction, prior: Sequence[Rational] | None = None
) -> list[Mixing]:
    """Return a channel of every class that can publish on a space, the usual winner first.

    Their resolution is a placeholder: `finest` sets it. A prior is refused on other than finite
    spaces.
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
    """Tell whether a box has different sides, few enough to be listed in a certificate."""
    widths = np.unique(box.widths())
    return bool(widths[-1] > widths[0] * (1 + 1e-6) and len(widths) <= _MAX_SIDES)


def ranked_candidates(
    space: Space,
    target: Target,
    *,
    prior: Sequence[Rational] | None,
    profile: ProfileMix | None,
    channel: str | None,
) -> tuple[Candidate, ...]:
    """Return the candidates: the chosen one first, the others by predicted error.

    The chosen one has the name `channel`; without a name it is the caller's profile or prior, and
    without these the one of least predicted error among those without a reservation. Theorem S
    takes long to plan, so it is compared only if it is named (see `smooth_candidates`).
    """
    mixing = channels_for(space, target.mixing_probability, prior)
    words = [kind.word for kind in mixing]
    words += ["smooth"] * (isinstance(space, Ball) and space.norm == 2)
    words += ["profile"] * (profile is not None)
    _check_channel(channel, words, target)
    candidates = [best for kind in mixing if (best := best_candidate(kind, target)) is not None]
    if channel == "smooth":
        candidates += smooth_candidates(space, target)
    if profile is not None and (weight := profile.mixing_weight) <= target.mixing_probability:
        error = profile.expected_error()
        candidates.append(Candidate(kind=profile, weight=weight, log_ratio=0.0, error=error))
    best_first = ranked(candidates)
    default = "profile" if profile is not None else "prior" if prior is not None else None
    word = channel or default
    eligible = [
        candidate
        for candidate in best_first
        if (candidate.channel == word if word else not candidate.reservation)
    ]
    if not eligible:
        tried = [kind for kind in mixing if word in (None, kind.word)]
        raise GuaranteeError(_out_of_reach(tried, target))
    chosen = eligible[0]
    return (chosen, *(candidate for candidate in best_first if candidate is not chosen))


def smooth_candidates(space: Space, target: Target) -> list[Candidate]:
    """Return Theorem S as a candidate: on an l2 ball, for a sensitivity without a base."""
    if not isinstance(space, Ball) or space.norm != 2 or target.sensitivity is None:
        return []
    if target.log_delta is not None:
        return []
    built = SmoothMix.planned(
        space,
        sensitivity=min(target.sensitivity, 2 * space.radius),  # no two vectors are further apart
        epsilon=target.epsilon,
        mixing_probability=target.mixing_probability,
    )
    if built is None:
        return []
    nats, error = built.log_ratio(), built.predicted_error()
    return [Candidate(kind=built, weight=built.mixing_weight, log_ratio=nats, error=error)]


def ranked(candidates: list[Candidate]) -> list[Candidate]:
    """Return the candidates by error; those within 1 % of the smallest by log-ratio.

    A smaller log-ratio needs less noise in the base. Without a base or a sensitivity all channels
    are built for the same error, and the log-ratio decides.
    """
    best = min((candidate.error for candidate in candidates), default=0.0) * 1.01
    return sorted(candidates, key=lambda c: (max(c.error, best), c.log_ratio))


def _check_channel(channel: str | None, words: list[str], target: Target) -> None:
    """Refuse an unknown channel, and "smooth" without the inputs that it needs."""
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
    """Return the message that says by how many nats the base misses the coarsest channel."""
    if not channels:
        return (
            f"no noise or weight that was tried reaches ε {equals(target.epsilon)} by this "
            "channel: allow a larger ε or mixing probability, or another channel."
        )
    actual = 0.0 if target.log_delta is None else target.log_delta
    coarsest = min(channel.log_ratio_at() for channel in channels)
    needed = target.nats(float(target.mixing_probability)) - coarsest
    return (
        f"the claim cannot reach ε {equals(target.epsilon)} on this space: ln δ(ε) is {actual:.6g} "
        f"and would have to be {needed:.6g}; it misses by {actual - needed:.4g} nats. Add noise to "
        "the base mechanism, publish something smaller, or allow a larger ε or mixing probability."
    )
