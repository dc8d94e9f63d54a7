"""Every channel that can publish on a space, weighed against the same target, and the choice."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from zerodelta.channels.candidate import Candidate, Target
from zerodelta.channels.families import families_for
from zerodelta.channels.family import Family
from zerodelta.channels.mix import ProfileMix
from zerodelta.channels.search import best_candidate
from zerodelta.channels.smooth_search import smooth_candidate
from zerodelta.errors import GuaranteeError, ParameterError, did_you_mean
from zerodelta.exact.rational import Rational, as_positive, as_rational
from zerodelta.privacy.readable import equals
from zerodelta.spaces import Ball, FiniteSpace, Space

__all__ = ["as_prior", "as_profile", "ranked_candidates"]


def ranked_candidates(
    space: Space,
    target: Target,
    *,
    prior: tuple[int, ...] | None,
    profile: ProfileMix | None,
    channel: str | None,
) -> tuple[Candidate, ...]:
    """Return the candidates, the chosen one first and the others from the least error on.

    The choice is `channel`; without it the caller's profile or prior, and without these the least
    predicted error among those without a reservation.
    """
    families = families_for(space, prior)
    smooth = space if isinstance(space, Ball) and space.norm == 2 else None
    names = [family.channel for family in families]
    names += ["smooth"] * (smooth is not None) + ["profile"] * (profile is not None)
    _check_channel(channel, names, target)
    found = [best_candidate(family, target) for family in families]
    if smooth is not None and target.log_delta is None:
        found.append(smooth_candidate(smooth, target))
    if profile is not None:
        found.append(_profile_candidate(profile, target))
    ranked = _ranked([candidate for candidate in found if candidate is not None])
    given = "profile" if profile is not None else "prior" if prior is not None else None
    wanted = channel or given
    chosen = [
        candidate
        for candidate in ranked
        if (candidate.channel == wanted if wanted else not candidate.reservation)
    ]
    if not chosen:
        asked = [family for family in families if wanted in (None, family.channel)]
        raise GuaranteeError(_out_of_reach(asked, target))
    return (chosen[0], *(candidate for candidate in ranked if candidate is not chosen[0]))


def as_prior(prior: Sequence[Rational] | None, space: Space) -> tuple[int, ...] | None:
    """Return public probabilities as whole weights; only their ratios count.

    >>> from zerodelta.spaces import Finite
    >>> as_prior(["1/2", "1/3", "1/6"], Finite(3))
    (3, 2, 1)
    """
    if prior is None:
        return None
    _, entries = _one_for_each(prior, "prior", space)
    exact = [as_positive(entry, "prior") for entry in entries]
    unit = math.lcm(*(entry.denominator for entry in exact))
    return tuple(int(entry * unit) for entry in exact)


def as_profile(
    profile: Sequence[Rational] | None, space: Space, epsilon: Fraction
) -> ProfileMix | None:
    """Return the channel with the optimal prior for pointwise bounds at `epsilon`."""
    if profile is None:
        return None
    finite, entries = _one_for_each(profile, "profile", space)
    exact = tuple(as_rational(entry, "profile") for entry in entries)
    return ProfileMix(space=finite, epsilon=epsilon, profile=exact)


def _one_for_each(
    numbers: Sequence[Rational], name: str, space: Space
) -> tuple[FiniteSpace, list[Rational]]:
    try:
        entries = list(numbers)
    except TypeError:  # nothing to iterate over
        entries = []
    if not isinstance(space, FiniteSpace) or isinstance(numbers, str) or len(entries) != space.size:
        raise ParameterError(
            name,
            numbers,
            expected="one number for each element of a finite space",
            remedy="list them in the order of the space's indices",
        )
    return space, entries


def _check_channel(channel: str | None, names: list[str], target: Target) -> None:
    if channel is None:
        return
    if channel not in names:
        raise ParameterError(
            "channel",
            channel,
            expected=f"one of {', '.join(map(repr, names))} on this space",
            remedy=did_you_mean(channel, names, "leave it out to let the plan choose"),
        )
    if channel == "smooth" and (target.sensitivity is None or target.log_delta is not None):
        raise ParameterError(
            "channel",
            channel,
            expected="a sensitivity and no base: Theorem S fixes the noise of the hidden vector",
            remedy="plan(space, epsilon=…, sensitivity=…, channel='smooth') first, add its noise, "
            "then plan.purify(the raw vector)",
        )


def _profile_candidate(channel: ProfileMix, target: Target) -> Candidate | None:
    if channel.mixing_weight > target.mixing_probability:
        return None
    return Candidate(
        channel="profile",
        name="a draw in proportion to a profile (B1)",
        weight=channel.mixing_weight,
        budget=0.0,
        error=channel.expected_error(),
        build=lambda: channel,
    )


def _ranked(found: list[Candidate]) -> list[Candidate]:
    """Return the least error first; among errors within a hundredth, what asks least of the base.

    Without a base or a sensitivity every family is built for the same error.
    """
    least = min((candidate.error for candidate in found), default=0.0) * 1.01
    return sorted(found, key=lambda candidate: (max(candidate.error, least), candidate.budget))


def _out_of_reach(families: list[Family], target: Target) -> str:
    if not families:
        return (
            f"no noise or weight within reason reaches ε {equals(target.epsilon)} by this channel: "
            "allow a larger ε or mixing probability, or another channel."
        )
    actual = 0.0 if target.log_delta is None else target.log_delta
    least = min(family.least_budget() for family in families)
    needed = target.nats(float(target.mixing_probability)) - least
    return (
        f"the claim cannot reach ε {equals(target.epsilon)} on this space: ln δ(ε) is {actual:.6g} "
        f"and would have to be {needed:.6g}; it misses by {actual - needed:.4g} nats. Add noise to "
        "the base mechanism, publish something smaller, or allow a larger ε or mixing probability."
    )
