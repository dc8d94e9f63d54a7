"""Plans: which channel, mixing weight and resolution publish on a space with the least error.

A plan is made of public numbers before any data is touched, says what the base mechanism must
satisfy, and issues the certificate; the data only ever meets `Plan.purify`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, final

from zerodelta.channels.candidate import Candidate, PlannedChannel, Target
from zerodelta.channels.candidates import as_prior, as_profile, ranked_candidates
from zerodelta.channels.channel import Mixing, as_claim
from zerodelta.channels.mix import ProfileMix
from zerodelta.channels.smooth import SmoothMix
from zerodelta.errors import GuaranteeError, ParameterError
from zerodelta.exact.bits import BitSource, SystemBits
from zerodelta.exact.rational import Rational, as_positive
from zerodelta.privacy.calibration import Calibration, calibrate
from zerodelta.privacy.certificate import Certificate
from zerodelta.privacy.claims import Claim, GaussianDP, PureDP
from zerodelta.privacy.composition import zcdp_cost
from zerodelta.privacy.issue import issue
from zerodelta.privacy.readable import equals
from zerodelta.privacy.release import Release
from zerodelta.privacy.step import Status, Step
from zerodelta.privacy.theorems.mixing import as_weight
from zerodelta.spaces import Space, is_known

__all__ = ["Plan", "plan", "purify"]

DEFAULT_MIXING_PROBABILITY = Fraction(1, 100)
_LARGEST_EPSILON = 10**6
_NEARLY_ONE = -(2.0**-20)
"""The ln δ to calibrate for where a plan would allow any base (ln δ >= 0)."""


@final
@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class Plan:
    """What will be published, how, and what the base mechanism must satisfy.

    `log_delta`: the base's ln δ(ε) may be at most this. `rho`: ρ-zCDP is enough. `variance` and
    `sigma`: Gaussian noise of that size is enough for the given l2 sensitivity.

    With channel "smooth" they describe the vector itself: it must have noise of exactly that
    `variance`, and `rho` and `log_delta` are what it then has; there is nothing to spend besides.
    """

    space: Space
    epsilon: Fraction
    purifier: PlannedChannel
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
        if not steps and not isinstance(self.purifier, ProfileMix):  # a profile says it all
            steps = (given,)
        rows_read = any(step.theorem != "given" for step in steps)
        return issue(
            claim=PureDP(self.epsilon, neighbors=claim.neighbors),
            steps=(*steps, replace(self.purifier.step(), neighbors=claim.neighbors)),
            bits=SystemBits() if bits is None else bits,
            public=(f"the space {self.space!r}", "every number in the steps"),
            assumed=self._assumed(),
            bare_rows=rows_read,
        )

    def _assumed(self) -> tuple[str, ...]:
        """Return what is taken on the caller's word besides the claim."""
        if isinstance(self.purifier, SmoothMix):
            return (
                "the value handed in is the raw vector: an element of the space plus Gaussian "
                f"noise of variance {equals(self.variance)} a coordinate, neither projected nor "
                "averaged",
            )
        if isinstance(self.purifier, ProfileMix):
            return ("the profile holds for every element and every pair of neighbors",)
        return ()

    def purify(
        self, value: Any, *, claim: Claim | None = None, bits: BitSource | None = None
    ) -> Release:
        """Publish a value computed by a base mechanism with `claim` (default: the planned base).

        Any object whatever is mapped into the space; nothing is raised because of the value. With
        channel "smooth" the value is the raw noisy vector, in the units of the space.
        """
        base = claim if claim is not None else self.base
        base = as_claim(base, "claim")
        if not self.purifier.proves(self.epsilon, base):
            raise GuaranteeError(_shortfall(self, base))
        source = SystemBits() if bits is None else bits
        certificate = self.certificate(base, bits=source)
        if isinstance(self.purifier, SmoothMix):  # projecting first would void Theorem S
            published = self.purifier.apply(self.purifier.on_lattice(value), source)
        else:
            published = self.purifier.apply(self.space.project(value), source)
        return Release(
            # a channel may cover more than the space, such as the box around a ball
            value=self.space.project(published),
            certificate=certificate,
            error=self.purifier.expected_error(),
        )

    def __repr__(self) -> str:
        rows = [f"Plan for {self.space!r}: pure ε {equals(self.epsilon)}, δ = 0", *self._needs()]
        rows.append(
            "  channel                                              weight     nats      error"
        )
        for candidate in self.candidates:
            mark = "->" if candidate is self.candidates[0] else "  "
            rows.append(
                f"  {mark} {candidate.channel:<9}{candidate.name:<38} "
                f"{float(candidate.weight):9.2e} {candidate.budget:9.5g} {candidate.error:10.4g}"
                f"{' *' if candidate.reservation else ''}"
            )
        rows += [
            f"  * only by channel={candidate.channel!r}: {candidate.reservation}"
            for candidate in self.candidates
            if candidate.reservation
        ]
        return "\n".join(rows)

    def _needs(self) -> list[str]:
        """Say what the base must satisfy."""
        if isinstance(self.purifier, ProfileMix):
            return ["  base must satisfy  the pointwise profile it was planned with"]
        if isinstance(self.purifier, SmoothMix):
            return [
                f"  value must be      the raw vector with Gaussian noise of σ = {self.sigma:.6g}"
            ]
        base = f"ln δ(ε) <= {self.log_delta:.6g},  or ρ <= {float(self.rho):.6g}"
        rows = [f"  base must satisfy  {base}"]
        if self.sigma is not None and self.sensitivity is not None:
            rows.append(
                f"  or Gaussian noise  σ >= {self.sigma:.6g} "
                f"for l2 sensitivity {float(self.sensitivity):g}"
            )
        return rows


def plan(
    space: Space,
    *,
    epsilon: Rational,
    mixing_probability: Rational = DEFAULT_MIXING_PROBABILITY,
    resolution: Rational | None = None,
    sensitivity: Rational | None = None,
    base: Claim | None = None,
    prior: Sequence[Rational] | None = None,
    profile: Sequence[Rational] | None = None,
    channel: str | None = None,
) -> Plan:
    """Choose channel, mixing weight and resolution for a space, from public numbers only.

    `mixing_probability` is the largest mixing weight allowed. With `base` (what the internal
    mechanism satisfies) the plan publishes as finely as that allows; with `sensitivity` (the l2
    sensitivity of the internal vector) it trades resolution against the noise the base will need;
    otherwise `resolution` sets the spacing, or B2's optimal split for the mixing probability does.

    On a finite space `prior` lists public probabilities to replace the answer from, and `profile`
    bounds on P(y) - e^ε P'(y) for each element y, which take the place of `base`.

    `channel` picks one row of the printed table by name instead of the least predicted error.
    Two are chosen in no other way: "window" (unbiased away from the edge of a box, at the grid's
    error) and **"smooth"** (Theorem S on an l2 ball, with `sensitivity`). By "smooth" you say that
    the value will be the *raw* vector: an element of the ball plus Gaussian noise of exactly
    `plan.variance` a coordinate, neither projected nor averaged.

    >>> from zerodelta.spaces import Ball, Finite
    >>> round(plan(Finite(37), epsilon="0.83", mixing_probability="0.01").log_delta, 4)
    -7.9488
    >>> smooth = plan(Ball(10, 1), epsilon=1, sensitivity="1/500", channel="smooth")
    >>> other = plan(Ball(10, 1), epsilon=1, sensitivity="1/500")
    >>> smooth.predicted_error < other.predicted_error, smooth.sigma < other.sigma
    (True, True)
    """
    if not is_known(space):
        raise ParameterError(
            "space",
            space,
            expected="a space of this library, no subclass: Finite, Subsets, Multiset, Box or Ball",
            remedy="say what may be published, such as zd.Finite(16) or zd.Ball(10, 1.0)",
        )
    exact_epsilon = _in_range(epsilon, "epsilon", most=_LARGEST_EPSILON)
    pointwise = as_profile(profile, space, exact_epsilon)
    claim = base if base is not None or pointwise is None else pointwise.claim()
    target = Target(
        epsilon=exact_epsilon,
        mixing_probability=_in_range(
            as_weight(mixing_probability, "mixing_probability"), "mixing_probability"
        ),
        log_delta=None if claim is None else as_claim(claim, "base").log_delta(exact_epsilon),
        resolution=None if resolution is None else float(_in_range(resolution, "resolution")),
        sensitivity=None if sensitivity is None else _in_range(sensitivity, "sensitivity"),
    )
    first, *others = ranked_candidates(
        space, target, prior=as_prior(prior, space), profile=pointwise, channel=channel
    )
    purifier = first.build()
    if isinstance(purifier, Mixing):  # its closed forms were approximate
        first = replace(
            first,
            weight=purifier.mixing_weight,
            budget=purifier.log_mass,
            error=first.error if sensitivity is not None else purifier.expected_error(),
        )
    if isinstance(purifier, SmoothMix):
        claim = GaussianDP(mu_squared=2 * purifier.step_taken.rho)
    calibration = _calibration(purifier, target)
    return Plan(
        space=space,
        epsilon=target.epsilon,
        purifier=purifier,
        log_delta=calibration.log_delta,
        base=claim,
        calibration=calibration,
        sensitivity=target.sensitivity,
        candidates=(first, *others),
    )


def purify(
    value: Any,
    *,
    space: Space,
    claim: Claim | None = None,
    epsilon: Rational,
    mixing_probability: Rational = DEFAULT_MIXING_PROBABILITY,
    resolution: Rational | None = None,
    prior: Sequence[Rational] | None = None,
    profile: Sequence[Rational] | None = None,
    channel: str | None = None,
) -> Release:
    """Publish a value of a mechanism with `claim` on `space`, pure ε-DP, in one call.

    The options are those of `plan`; only with a `profile` may the claim be left out. Raises
    `GuaranteeError`, with the number of nats missing, if the claim cannot reach ε.

    Neighbors: those of the claim. Guarantee: B1/B2/R(v), whichever the plan chose; the claim itself
    is the caller's word, so the certificate is `asserted`. Public: everything but the value.

    >>> from zerodelta.privacy.claims import GaussianDP
    >>> from zerodelta.spaces import Finite
    >>> release = purify(3, space=Finite(16), claim=GaussianDP("1/10"), epsilon=1)
    >>> release.certificate.claim.exact_epsilon
    Fraction(1, 1)
    >>> purify(0, space=Finite(2), profile=["1/1000", 0], epsilon=1).certificate.status.value
    'asserted'
    """
    made = plan(
        space,
        epsilon=epsilon,
        mixing_probability=mixing_probability,
        resolution=resolution,
        base=claim,
        prior=prior,
        profile=profile,
        channel=channel,
    )
    return made.purify(value)


def _calibration(purifier: PlannedChannel, target: Target) -> Calibration:
    """Return what the base must satisfy; for Theorem S, what the planned vector has."""
    if isinstance(purifier, SmoothMix):
        step = purifier.step_taken
        return Calibration(
            epsilon=target.epsilon,
            log_delta=GaussianDP(mu_squared=2 * step.rho).log_delta(target.epsilon),
            rho=step.rho,
            mu_squared=2 * step.rho,
            variance=step.variance * purifier.spacing**2,
        )
    log_delta = purifier.log_delta_required(target.epsilon)
    if log_delta == -math.inf:
        return Calibration(
            epsilon=target.epsilon,
            log_delta=log_delta,
            rho=Fraction(0),
            mu_squared=Fraction(0),
            variance=None,
        )
    found = calibrate(
        epsilon=target.epsilon,
        log_delta=min(log_delta, _NEARLY_ONE),
        sensitivity=target.sensitivity,
    )
    return replace(found, log_delta=log_delta)


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


def _shortfall(made: Plan, claim: Claim) -> str:
    if isinstance(made.purifier, SmoothMix):
        return (
            f"Theorem S was planned for one Gaussian vector with ρ {equals(made.rho)} in all, and "
            f"this claim has ρ {equals(zcdp_cost(claim))}: the vector needs noise of exactly the "
            "planned variance and nothing else may be spent. Plan again for the noise you have, "
            "or use another channel."
        )
    actual = claim.log_delta(made.epsilon)
    return (
        f"the base mechanism does not reach ε {equals(made.epsilon)}: ln δ(ε) is {actual:.6g}, the "
        f"plan needs {made.log_delta:.6g}, {actual - made.log_delta:.4g} nats less. "
        f"Add noise until ρ <= {float(made.rho):.4g}, or plan with a larger ε, a larger "
        "mixing_probability or a coarser resolution."
    )
