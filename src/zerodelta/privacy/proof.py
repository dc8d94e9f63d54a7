"""What the steps of one part prove together: base steps give a claim, a channel makes it pure.

The theorems are judged by the functions that calibrated them, from their numbers alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from zerodelta.errors import CertificateError
from zerodelta.privacy.claim import Claim
from zerodelta.privacy.claims import ZCDP, ApproxDP, GaussianDP, PureDP
from zerodelta.privacy.composition import Composed, simplest, transcript_claim, zcdp_cost
from zerodelta.privacy.neighbors import Neighbors
from zerodelta.privacy.readable import equals
from zerodelta.privacy.step import Part, Step
from zerodelta.privacy.theorems.group_privacy import ClippedUnits, Units, UnitVotes
from zerodelta.privacy.theorems.mechanisms import PermuteAndFlip, RoundedGaussian
from zerodelta.privacy.theorems.registry import theorem_of
from zerodelta.privacy.theorems.theorem import Base, Channel, Theorem
from zerodelta.privacy.theorems.transport import NumericalError

_LAST = "theorem 'unit-votes' is about permute-and-flip before it, and the last step."


def base_claim(steps: tuple[Step, ...]) -> Composed:
    """Return what the base steps prove together."""
    if not steps:
        raise CertificateError("a step is missing: no base mechanism is stated; add its step.")
    return _together([_base(theorem_of(step)) for step in steps], steps[0].neighbors)


def proves_epsilon(step: Step, claim: Composed | None, epsilon: Fraction) -> bool:
    """Tell whether the channel step, on a base with `claim`, certainly proves pure ε-DP."""
    channel = theorem_of(step)
    if not isinstance(channel, Channel):
        raise CertificateError(f"unknown theorem {step.theorem!r}: no channel has that label.")
    return _proves(channel, claim, epsilon)


def check_proof(steps: tuple[Step, ...], claim: Claim) -> None:
    """Refuse a part whose steps do not prove the claim."""
    if not steps:
        raise CertificateError("a step is missing: a part has no steps.")
    *before, last = (theorem_of(step) for step in steps)
    if units_of(steps) is not None:
        _check_absent_rows((*before, last))
    if isinstance(last, UnitVotes):
        _check_votes(before)
        check_proof(steps[:-1], claim)
        return
    if isinstance(last, Units):
        if type(claim) is not PureDP or claim.bounded_range:
            raise CertificateError("theorem 'units' is about plain pure DP; the claim is not.")
        _check_once(steps[:-1])
        row = PureDP(last.of_row(claim.exact_epsilon), neighbors=claim.neighbors)
        check_proof(steps[:-1], row)
        return
    units = units_of(steps)
    if isinstance(units, UnitVotes):
        raise CertificateError(_LAST)
    bases = [_base(theorem) for theorem in (before if units is None else before[:-1])]
    _check_real_minimum(bases, last)
    if isinstance(last, Channel):
        _check_channel(bases, last, claim, units)
        return
    # one PureDP of many pure steps forgets their √k, so a claimed δ or ρ is compared with all
    together = _together([*bases, _base(last)], claim.neighbors)
    proven = together if type(claim) in (ApproxDP, ZCDP) else simplest(together)
    if not _implies(proven, claim):
        raise CertificateError(f"the steps do not prove the claim: they give {_told(proven)}.")


def proven_epsilon(part: Part, claim: Claim) -> Fraction:
    """Return the pure ε of one part of several, stated or that of its base steps."""
    if part.epsilon is not None:
        check_proof(part.steps, PureDP(part.epsilon, neighbors=claim.neighbors))
        return part.epsilon
    last = theorem_of(part.steps[-1]) if part.steps else None
    if isinstance(last, Units):
        _check_once(part.steps[:-1])
        _check_absent_rows(tuple(map(theorem_of, part.steps)))
        return proven_epsilon(Part(steps=part.steps[:-1]), claim) * last.max_rows
    if isinstance(last, UnitVotes):
        _check_votes([theorem_of(step) for step in part.steps[:-1]])
        return proven_epsilon(Part(steps=part.steps[:-1]), claim)
    if isinstance(last, Channel):
        raise CertificateError("one of several parts ends in a channel: it has to state its ε.")
    alone = simplest(base_claim(part.steps))
    if type(alone) is not PureDP:
        raise CertificateError("one of several parts is not pure, and only pure parts add up.")
    theorems = [theorem_of(step) for step in part.steps]
    _check_real_minimum([_base(theorem) for theorem in theorems[:-1]], theorems[-1])
    return alone.exact_epsilon


def units_of(steps: tuple[Step, ...]) -> Units | ClippedUnits | UnitVotes | None:
    """Return the step that says that a unit has several rows; None if rows are protected.

    It is the last one, or the one before a channel that is.
    """
    found = [theorem_of(step) for step in steps[-2:]]
    if len(found) == 2 and isinstance(found[1], Channel):
        found.pop()
    last = found[-1] if found else None
    return last if isinstance(last, (Units, ClippedUnits, UnitVotes)) else None


def _check_votes(before: Sequence[Theorem]) -> None:
    """Refuse votes of units that are not counted by permute-and-flip: one of them moves by one."""
    flips = [theorem for theorem in before if isinstance(theorem, PermuteAndFlip)]
    if not (len(flips) == len(before) == 1 and flips[0].sensitivity >= 1 and not flips[0].monotone):
        raise CertificateError(
            "theorem 'unit-votes' is about permute-and-flip on votes, which move by 1 up or down: "
            "another step goes before it."
        )


def _check_absent_rows(theorems: tuple[Theorem, ...]) -> None:
    """Refuse units where a theorem needs the number of rows: that of a unit's rows is private."""
    for theorem in theorems:
        if theorem.every_row:
            raise CertificateError(
                f"theorem {theorem.label!r} needs the number of rows, so it says nothing of units."
            )


def _check_once(steps: tuple[Step, ...]) -> None:
    if units_of(steps) is not None:
        raise CertificateError("theorem 'units' is about the whole part, and stated twice.")


def _base(theorem: Theorem) -> Base:
    if isinstance(theorem, UnitVotes):
        raise CertificateError(_LAST)
    if isinstance(theorem, (Units, ClippedUnits)):
        last = "" if isinstance(theorem, ClippedUnits) else "the last step, or "
        raise CertificateError(
            f"theorem {theorem.label!r} is about all steps before it: only {last}the one before "
            "a channel, is."
        )
    if not isinstance(theorem, Base):
        raise CertificateError(f"theorem {theorem.label!r} is a channel: only the last step is.")
    return theorem


def _together(bases: list[Base], neighbors: Neighbors) -> Composed:
    return transcript_claim((base.claim(neighbors), base.count) for base in bases)


def _check_real_minimum(before: list[Base], last: Theorem) -> None:
    """Refuse a minimizer in real numbers (C9) that is not published by Theorem N, with its error.

    No computer holds that minimizer, so a certificate without N is about something else.
    """
    if type(last) is NumericalError and last.error > 0:
        return
    if any(isinstance(theorem, Base) and theorem.real_valued for theorem in (*before, last)):
        raise CertificateError(
            "a step is missing: theorem C9 is about a real minimizer, which only Theorem N with a "
            "positive error publishes."
        )


def _check_channel(
    bases: list[Base], channel: Channel, claim: Claim, units: Units | ClippedUnits | None
) -> None:
    if type(claim) is not PureDP:
        raise CertificateError("a purified release claims pure DP; this one claims something else.")
    if claim.bounded_range:
        raise CertificateError("no channel proves a bounded range: claim plain pure DP.")
    base = _together(bases, channel.before(claim.neighbors)) if bases else None
    if bases:
        channel.check_before(bases[-1], claim.neighbors)
    if units is not None:
        if base is None or not channel.any_neighbors:
            raise CertificateError(
                f"theorem {channel.label!r} is not about units: 'units' is the last step here."
            )
        if isinstance(units, ClippedUnits) and not all(type(b) is RoundedGaussian for b in bases):
            raise CertificateError(
                "theorem 'clipped-units' is about sums with Gaussian noise: another step goes "
                "before it."
            )
        base = units.of_unit(base)
    if not _proves(channel, base, claim.exact_epsilon):
        raise CertificateError(
            f"the steps do not prove ε {equals(claim.exact_epsilon)}: the condition of theorem "
            f"{channel.label!r} fails there, so ε is understated."
        )


def _proves(channel: Channel, base: Composed | None, epsilon: Fraction) -> bool:
    if channel.whole and base is not None:
        raise CertificateError(
            f"theorem {channel.label!r} is about the whole base mechanism: no base step goes "
            "before."
        )
    if base is None and not channel.whole:
        raise CertificateError("a step is missing: the channel has no base mechanism before it.")
    return channel.proves(base or Composed(), epsilon)


def _implies(proven: Claim, claimed: Claim) -> bool:
    """Tell whether the proven claim certainly gives the claimed one."""
    if type(claimed) is PureDP:
        return (
            type(proven) is PureDP
            and proven.exact_epsilon <= claimed.exact_epsilon
            and (proven.bounded_range or not claimed.bounded_range)
        )
    if type(claimed) is GaussianDP:
        return type(proven) is GaussianDP and proven.mu_squared <= claimed.mu_squared
    if type(claimed) is ZCDP:
        return zcdp_cost(proven) <= claimed.rho
    if type(claimed) is ApproxDP:
        return proven.log_delta(claimed.exact_epsilon) <= claimed.exact_log_delta
    # the same family first: a curve is tabulated only to be compared with one of its own kind
    return type(proven) is type(claimed) and bool(proven.numbers() == claimed.numbers())


def _told(proven: Claim) -> str:
    """Name what was proven; a curve is not tabulated for the sake of a message."""
    if type(proven) is PureDP:
        return f"pure DP with ε {equals(proven.exact_epsilon)}"
    if type(proven) is GaussianDP:
        return f"Gaussian DP with μ² {equals(proven.mu_squared)}"
    if type(proven) is ZCDP:
        return f"zCDP with ρ {equals(proven.rho)}"
    return "a weaker curve" if type(proven) is not ApproxDP else "a larger δ"
