"""Plans: which channel, mixing weight and resolution publish on a space with the least error.

A plan is made of public numbers before any data is touched, says what the base mechanism must
satisfy, and issues the certificate; the data only ever meets `Plan.purify`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, final

from zerodelta.errors import GuaranteeError, ParameterError
from zerodelta.exact.bits import BitSource, SystemBits
from zerodelta.exact.rational import Rational, as_positive
from zerodelta.privacy.calibration import Calibration, calibrate
from zerodelta.privacy.certificate import Certificate
from zerodelta.privacy.claims import Claim, PureDP
from zerodelta.privacy.issue import issue
from zerodelta.privacy.release import Release
from zerodelta.privacy.step import Status, Step
from zerodelta.privacy.theorems.mixing import as_weight, largest_log_delta, smallest_weight
from zerodelta.privacy.wording import equals
from zerodelta.purify.channel import Mixing, as_claim
from zerodelta.purify.families import Family, families_for
from zerodelta.purify.search import Candidate, Target, best_candidate
from zerodelta.spaces import FiniteSpace, Space

__all__ = ["Plan", "plan", "purify"]

DEFAULT_FAILURE = Fraction(1, 100)
_LARGEST_EPSILON = 10**6
_NEARLY_ONE = -(2.0**-20)
"""The ln δ to calibrate for where a plan would allow any base (ln δ >= 0)."""


@final
@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class Plan:
    """What will be published, how, and what the base mechanism must satisfy.

    `log_delta`: the base's ln δ(ε) may be at most this. `rho`: ρ-zCDP is enough. `variance` and
    `sigma`: Gaussian noise of that size is enough for the given l2 sensitivity.
    """

    space: Space
    epsilon: Fraction
    purifier: Mixing
    log_delta: float
    base: Claim | None
    calibration: Calibration
    sensitivity: Fraction | None
    candidates: tuple[Candidate, ...]

    @property
    def mixing_weight(self) -> Fraction:
        """The probability of publishing a random element instead."""
        return self.purifier.mixing_weight

    @property
    def rho(self) -> Fraction:
        """The largest zCDP parameter of a base that this plan makes pure."""
        return self.calibration.rho

    @property
    def variance(self) -> Fraction | None:
        """The smallest Gaussian variance for the given sensitivity."""
        return self.calibration.variance

    @property
    def sigma(self) -> float | None:
        """The smallest Gaussian noise scale for the given sensitivity, rounded up."""
        variance = self.calibration.variance
        return None if variance is None else math.nextafter(math.sqrt(variance), math.inf)

    @property
    def predicted_error(self) -> float:
        """The expected error: of the channel, and of the Gaussian noise if it is planned too."""
        return self.candidates[0].error

    def certificate(
        self, claim: Claim, *, steps: tuple[Step, ...] = (), bits: BitSource | None = None
    ) -> Certificate:
        """Return the verified certificate of a release; `steps` are proven base steps, if any.

        Without them the claim is the caller's word, and the certificate says `asserted`.
        """
        as_claim(claim, "claim").log_delta(self.epsilon)  # so that a curve tabulates its order
        given = Step(
            theorem="given",
            numbers=claim.numbers(),
            status=Status.ASSERTED,
            neighbors=claim.neighbors,
        )
        channel = replace(self.purifier.step(), neighbors=claim.neighbors)
        return issue(
            claim=PureDP(self.epsilon, neighbors=claim.neighbors),
            steps=(*(steps or (given,)), channel),
            bits=SystemBits() if bits is None else bits,
            public=(f"the space {self.space!r}", "every number in the steps"),
        )

    def purify(
        self, value: Any, *, claim: Claim | None = None, bits: BitSource | None = None
    ) -> Release:
        """Publish a value computed by a base mechanism with `claim` (default: the planned base).

        Any object whatever is mapped into the space; nothing is raised because of the value.
        """
        base = claim if claim is not None else self.base
        base = as_claim(base, "claim")
        if not self.purifier.proves(self.epsilon, base):
            raise GuaranteeError(_shortfall(self, base))
        source = SystemBits() if bits is None else bits
        certificate = self.certificate(base, bits=source)
        # a channel may cover more than the space, such as the box around a ball
        published = self.purifier.apply(self.space.project(value), source)
        return Release(
            value=self.space.project(published),
            certificate=certificate,
            error=self.purifier.expected_error(),
        )

    def __repr__(self) -> str:
        rows = [
            f"Plan for {self.space!r}: pure ε {equals(self.epsilon)}, δ = 0",
            f"  base must satisfy  ln δ(ε) <= {self.log_delta:.6g},  or ρ <= {float(self.rho):.6g}",
        ]
        if self.sigma is not None and self.sensitivity is not None:
            rows.append(
                f"  or Gaussian noise  σ >= {self.sigma:.6g} "
                f"for l2 sensitivity {float(self.sensitivity):g}"
            )
        rows.append("  channel                                    weight     nats      error")
        for candidate in self.candidates:
            mark = "->" if candidate is self.candidates[0] else "  "
            rows.append(
                f"  {mark} {candidate.name:<38} {float(candidate.weight):9.2e} "
                f"{candidate.budget:9.5g} {candidate.error:10.4g}"
            )
        return "\n".join(rows)


def plan(
    space: Space,
    *,
    epsilon: Rational,
    failure: Rational = DEFAULT_FAILURE,
    resolution: Rational | None = None,
    sensitivity: Rational | None = None,
    base: Claim | None = None,
) -> Plan:
    """Choose channel, mixing weight and resolution for a space, from public numbers only.

    `failure` is the largest mixing weight allowed. With `base` (what the hidden mechanism
    satisfies) the plan publishes as finely as that allows; with `sensitivity` (the l2 sensitivity
    of the hidden vector) it trades resolution against the Gaussian noise the base will need;
    otherwise `resolution` sets the spacing, or B2's optimal split for the given `failure` does.

    >>> from zerodelta.spaces import Finite
    >>> round(plan(Finite(37), epsilon="0.83", failure="0.01").log_delta, 4)
    -7.9488
    """
    exact_epsilon = _in_range(epsilon, "epsilon", most=_LARGEST_EPSILON)
    exact_sensitivity = None if sensitivity is None else _in_range(sensitivity, "sensitivity")
    target = Target(
        epsilon=exact_epsilon,
        failure=_in_range(as_weight(failure, "failure"), "failure"),
        log_delta=None if base is None else as_claim(base, "base").log_delta(exact_epsilon),
        resolution=None if resolution is None else float(_in_range(resolution, "resolution")),
        sensitivity=None if exact_sensitivity is None else float(exact_sensitivity),
    )
    if not isinstance(space, Space):
        raise ParameterError(
            "space",
            space,
            expected="a space: Finite, Subsets, Multiset, Box or Ball",
            remedy="say what may be published, such as zd.Finite(16) or zd.Ball(10, 1.0)",
        )
    families = families_for(space)
    found = [best for family in families if (best := best_candidate(family, target)) is not None]
    if not found:
        raise GuaranteeError(_out_of_reach(families, target))
    ranked = _ranked(found)
    purifier = _built(ranked[0], target)
    chosen = replace(
        ranked[0],
        weight=purifier.mixing_weight,
        budget=purifier.log_mass,
        error=ranked[0].error if sensitivity is not None else purifier.expected_error(),
    )
    log_delta = purifier.log_delta_required(target.epsilon)
    return Plan(
        space=space,
        epsilon=target.epsilon,
        purifier=purifier,
        log_delta=log_delta,
        base=base,
        calibration=calibrate(
            epsilon=target.epsilon,
            log_delta=min(log_delta, _NEARLY_ONE),
            sensitivity=exact_sensitivity,
        ),
        sensitivity=exact_sensitivity,
        candidates=(chosen, *ranked[1:]),
    )


def purify(
    value: Any,
    *,
    space: Space,
    claim: Claim,
    epsilon: Rational,
    failure: Rational = DEFAULT_FAILURE,
    resolution: Rational | None = None,
) -> Release:
    """Publish a value of a mechanism with `claim` on `space`, pure ε-DP, in one call.

    Raises `GuaranteeError`, with the number of nats missing, if the claim cannot reach ε.

    Neighbors: those of the claim. Guarantee: B1/B2/R(v), whichever the plan chose; the claim itself
    is the caller's word, so the certificate is `asserted`. Public: everything but the value.

    >>> from zerodelta.privacy.claims import GaussianDP
    >>> from zerodelta.spaces import Finite
    >>> release = purify(3, space=Finite(16), claim=GaussianDP("1/10"), epsilon=1)
    >>> release.certificate.claim.exact_epsilon
    Fraction(1, 1)
    """
    made = plan(space, epsilon=epsilon, failure=failure, resolution=resolution, base=claim)
    return made.purify(value)


def _ranked(found: list[Candidate]) -> list[Candidate]:
    """Return the least error first; among errors within a hundredth, what asks least of the base.

    Without a base or a sensitivity every family is built for the same error.
    """
    least = min(candidate.error for candidate in found) * 1.01
    return sorted(found, key=lambda candidate: (max(candidate.error, least), candidate.budget))


def _in_range(value: Rational, name: str, *, most: int = 10**100) -> Fraction:
    """Return a positive number that neither vanishes nor overflows where plans use floats."""
    exact = as_positive(value, name)
    if not Fraction(1, 10**100) <= exact <= most:
        raise ParameterError(
            name,
            value,
            expected=f"a number between 1e-100 and {float(most):g}",
            remedy="state it in other units, or plan for something realistic",
        )
    return exact


def _built(candidate: Candidate, target: Target) -> Mixing:
    """Build the channel within the certified budget; on a finite space, at the smallest weight."""
    weight = candidate.weight
    if target.log_delta is None:
        return candidate.family.build(candidate.budget, weight)
    finite = isinstance(getattr(candidate.family, "space", None), FiniteSpace)
    if finite and target.log_delta > -math.inf:
        weight = min(
            target.failure,
            smallest_weight(
                epsilon=target.epsilon,
                log_delta=target.log_delta,
                log_mass=candidate.family.least_budget(),
            ),
        )
    # what is certainly left for the mass ratio at this weight
    allowed = largest_log_delta(epsilon=target.epsilon, weight=weight, log_mass=0.0)
    budget = math.nextafter(allowed - target.log_delta, -math.inf)
    if target.resolution is not None:
        budget = min(budget, candidate.budget)
    return candidate.family.build(budget, weight)


def _shortfall(made: Plan, claim: Claim) -> str:
    actual = claim.log_delta(made.epsilon)
    return (
        f"the base mechanism does not reach ε {equals(made.epsilon)}: ln δ(ε) is {actual:.6g}, the "
        f"plan needs {made.log_delta:.6g}, {actual - made.log_delta:.4g} nats less. "
        f"Add noise until ρ <= {float(made.rho):.4g}, or plan with a larger ε, a larger failure "
        "probability or a coarser resolution."
    )


def _out_of_reach(families: list[Family], target: Target) -> str:
    actual = 0.0 if target.log_delta is None else target.log_delta
    least = min(family.least_budget() for family in families)
    needed = target.nats(float(target.failure)) - least
    return (
        f"the claim cannot reach ε {equals(target.epsilon)} on this space: ln δ(ε) is {actual:.6g} "
        f"and would have to be {needed:.6g}; it misses by {actual - needed:.4g} nats. Add noise to "
        "the base mechanism, publish something smaller, or allow a larger ε or failure probability."
    )
