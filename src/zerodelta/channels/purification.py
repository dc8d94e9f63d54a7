"""Plan a purification (the channel, and the condition on the base mechanism), and carry it out.

A plan is made from public numbers before any data is touched. Only `Plan.purify` sees a value that
was computed from data.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, final

from zerodelta import spaces
from zerodelta.channels.channel import Mixing, as_claim
from zerodelta.channels.kernels import SmoothMix
from zerodelta.channels.mixes import ProfileMix
from zerodelta.channels.search import (
    Candidate,
    PlannedChannel,
    Target,
    ranked,
    ranked_candidates,
    smooth_candidates,
)
from zerodelta.data.source import Protection, Sealed
from zerodelta.errors import CertificateError, GuaranteeError, require
from zerodelta.exact.bits import BitSource, current_bits
from zerodelta.exact.rational import Rational
from zerodelta.privacy.certificate import Certificate
from zerodelta.privacy.claims import Calibration, Claim, GaussianDP, PureDP, calibrate
from zerodelta.privacy.composition import zcdp_cost
from zerodelta.privacy.readable import equals, large
from zerodelta.privacy.release import Release
from zerodelta.privacy.steps import Status, Step
from zerodelta.spaces import Space, is_known
from zerodelta.spine.plan import ReleasePlan
from zerodelta.spine.run import run
from zerodelta.spine.verbs import Paying, debited

if TYPE_CHECKING:
    from typing_extensions import Unpack


_NEARLY_ONE = -(2.0**-20)
"""The ln δ for calibration where a plan allows any base (ln δ >= 0)."""


@final
@dataclass(frozen=True, kw_only=True, repr=False)
class Plan:
    """The channel that publishes on a space, and the condition on the base mechanism.

    `zd.plan` returns it; print it for the table of channels. Each of `log_delta`, `rho`, `variance`
    and `sigma` is a sufficient condition on the base. With channel "smooth" they describe the
    vector itself: it must have noise of exactly that `variance`, which is all that may be spent,
    and `rho` and `log_delta` are its cost.

    Parameters
    ----------
    space : Space
        The values that may be published: a space of `zerodelta.purification`.
    target : Target
        The inputs: ε and the mixing probability, a base, a resolution, a sensitivity.
    purifier : PlannedChannel
        The chosen channel.
    base : Claim or None
        The stated claim of the base mechanism.
    compared : tuple of Candidate
        The channels that were compared, the chosen one first.

    """

    space: Space
    target: Target
    purifier: PlannedChannel
    base: Claim | None
    compared: tuple[Candidate, ...]

    @property
    def epsilon(self) -> Fraction:
        """The pure ε of a release."""
        return self.target.epsilon

    @property
    def sensitivity(self) -> Fraction | None:
        """The stated l2 sensitivity of the internal vector."""
        return self.target.sensitivity

    @cached_property
    def candidates(self) -> tuple[Candidate, ...]:
        """All channels of the printed table; Theorem S takes long and is planned only here."""
        first = self.compared[0]
        if isinstance(self.purifier, SmoothMix):
            return self.compared
        best_first = ranked([*self.compared, *smooth_candidates(self.space, self.target)])
        return (first, *(candidate for candidate in best_first if candidate is not first))

    @property
    def mixing_weight(self) -> Fraction:
        """The probability of publishing a random element instead."""
        return self.purifier.mixing_weight

    @cached_property
    def log_delta(self) -> float:
        """The largest ln δ(ε) of the base; for Theorem S, that of the planned vector."""
        if isinstance(self.purifier, SmoothMix):
            return GaussianDP(mu_squared=2 * self.purifier.step_taken.rho).log_delta(self.epsilon)
        return self.purifier.log_delta_required(self.epsilon)

    @cached_property
    def calibration(self) -> Calibration:
        """The condition on the base as ρ, μ² and a Gaussian variance, computed at the first use."""
        rho, variance = Fraction(0), None  # a profile with zeros allows no base with a δ
        if isinstance(self.purifier, SmoothMix):
            step = self.purifier.step_taken
            rho, variance = step.rho, step.variance * self.purifier.spacing**2
        elif self.log_delta > -math.inf:
            calibration = calibrate(
                epsilon=self.epsilon,
                log_delta=min(self.log_delta, _NEARLY_ONE),
                sensitivity=self.sensitivity,
            )
            return replace(calibration, log_delta=self.log_delta)
        return Calibration(
            epsilon=self.epsilon,
            log_delta=self.log_delta,
            rho=rho,
            mu_squared=2 * rho,
            variance=variance,
        )

    @property
    def rho(self) -> Fraction:
        """The largest zCDP parameter of a base that this plan makes pure."""
        return self.calibration.rho

    @property
    def variance(self) -> Fraction | None:
        """The smallest Gaussian variance for the stated sensitivity."""
        return self.calibration.variance

    @property
    def sigma(self) -> float | None:
        """The smallest Gaussian noise scale for the stated sensitivity, rounded up."""
        variance = self.calibration.variance
        return None if variance is None else math.nextafter(math.sqrt(variance), math.inf)

    @property
    def predicted_error(self) -> float:
        """The expected error: of the channel, and of the Gaussian noise if it is planned too."""
        return self.compared[0].error

    def certificate(self, claim: Claim, *, steps: tuple[Step, ...] = ()) -> Certificate:
        """Return the verified certificate of a release; `steps` are proven base steps, if any.

        Without them the claim is caller-asserted, and the certificate says `asserted`.
        """
        return self._release(claim, steps).certificate(
            current_bits(), Protection(neighbors=claim.neighbors)
        )

    def purify(self, value: Any, *, claim: Claim | None = None) -> Release:
        """Publish a value of a base mechanism with `claim` (default: the planned base), pure ε-DP.

        Any object is mapped into the space; no error depends on the value. With channel "smooth"
        the value is the raw noisy vector, in the units of the space. Raises `GuaranteeError` if
        the claim does not reach ε.
        """
        base = as_claim(claim if claim is not None else self.base, "claim")
        # sealed, so that a value which looks like a source of rows is not read as one
        sealed: Sealed[Any] = Sealed(value, reads=(), neighbors=base.neighbors)
        try:
            return run(self._release(base), sealed)
        except CertificateError:
            if self.purifier.proves(self.epsilon, base):
                raise
            raise GuaranteeError(_shortfall(self, base)) from None

    def _release(self, claim: Claim, steps: tuple[Step, ...] = ()) -> ReleasePlan[Any]:
        """Return the release plan of one value; without proven `steps` the claim is asserted."""
        # a Rényi curve tabulates the orders that its answers used: this one is needed for the proof
        as_claim(claim, "claim").log_delta(self.epsilon)
        neighbors = claim.neighbors
        if not steps and self.purifier.rests_on_claim:
            numbers, asserted = claim.numbers(), Status.ASSERTED
            steps = (Step(theorem="given", numbers=numbers, status=asserted, neighbors=neighbors),)
        return ReleasePlan(
            claim=PureDP(self.epsilon, neighbors=neighbors),
            steps=(*steps, replace(self.purifier.step(), neighbors=neighbors)),
            answer=self._publish,
            error=self.purifier.expected_error(),
            public=(f"the space {self.space!r}", "every number in the steps"),
            assumed=self._assumed(),
            bare_rows=any(step.theorem != "given" for step in steps),
        )

    def _publish(self, value: Any, bits: BitSource) -> Any:
        """Project a value on the space, apply the channel, and project what it draws."""
        if isinstance(self.purifier, SmoothMix):  # projecting first would void Theorem S
            published = self.purifier.apply(self.purifier.on_lattice(value), bits)
        else:
            published = self.purifier.apply(self.space.project(value), bits)
        # a channel may cover more than the space, such as the box around a ball
        return self.space.project(published)

    def _assumed(self) -> tuple[str, ...]:
        """Return what the channel needs of the value or profile besides the claim, in words."""
        if isinstance(self.purifier, SmoothMix):
            return (
                "the value handed in is the raw vector: an element of the space plus Gaussian "
                f"noise of variance {equals(self.variance)} a coordinate, neither projected nor "
                "averaged",
            )
        if isinstance(self.purifier, ProfileMix):
            return ("the profile holds for every element and every pair of neighbors",)
        return ()

    def __repr__(self) -> str:
        rows = [f"Plan for {self.space!r}: pure ε {equals(self.epsilon)}, δ = 0", *self._needs()]
        rows.append(f"  {'channel':<55}    weight      nats      error")
        for candidate in self.candidates:
            mark = "->" if candidate is self.candidates[0] else "  "
            rows.append(
                f"  {mark} {candidate.channel:<14}{candidate.name:<38} "
                f"{float(candidate.weight):9.2e} {candidate.log_ratio:9.5g} {candidate.error:10.4g}"
                f"{' *' if candidate.reservation else ''}"
            )
        rows += [
            f"  * only by channel={candidate.channel!r}: {candidate.reservation}"
            for candidate in self.candidates
            if candidate.reservation
        ]
        warning = large(self.epsilon)
        return "\n".join([*rows, *([f"  beware: {warning}"] if warning else [])])

    def _needs(self) -> list[str]:
        """Return the lines of the printed plan about the condition on the base."""
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


def _shortfall(planned: Plan, claim: Claim) -> str:
    """Return the message that says by how much a claim misses the plan's condition."""
    if isinstance(planned.purifier, SmoothMix):
        return (
            f"Theorem S was planned for one Gaussian vector with ρ {equals(planned.rho)} in all, "
            f"and this claim has ρ {equals(zcdp_cost(claim))}: the vector needs noise of exactly "
            "the planned variance and nothing else may be spent. Plan again for the noise you "
            "have, or use another channel."
        )
    actual = claim.log_delta(planned.epsilon)
    return (
        f"the base mechanism does not reach ε {equals(planned.epsilon)}: ln δ(ε) is {actual:.6g}, "
        f"the plan needs {planned.log_delta:.6g}, {actual - planned.log_delta:.4g} nats less. "
        f"Add noise until ρ <= {float(planned.rho):.4g}, or plan with a larger ε, a larger "
        "mixing_probability or a coarser resolution."
    )


# -- The planner: `zd.plan` and `zd.purify` -------------------------------------------------------

DEFAULT_MIXING_PROBABILITY = Fraction(1, 100)


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

    Use it before the base mechanism runs: the plan says how much noise it must add.

    Parameters
    ----------
    space : Space
        The values that may be published: a space of `zerodelta.purification`.
    epsilon : int, float, Fraction or str
        The pure ε of the release.
    mixing_probability : number, default 1/100
        The largest mixing weight allowed: the probability of publishing a random element.
    resolution : number, optional
        The spacing of the lattice. By default the best one for `base` or `sensitivity`, else B2's
        optimal split for the mixing probability.
    sensitivity : number, optional
        The l2 sensitivity of the internal vector: resolution is then traded against the Gaussian
        noise that the base will need.
    base : PureDP, ApproxDP, GaussianDP, ZCDP or RDP, optional
        The claim of the internal mechanism: the plan has the finest resolution that it allows.
    prior : sequence of numbers, optional
        On a finite space, public probabilities to replace the answer from.
    profile : sequence of numbers, optional
        On a finite space, bounds on P(y) - e^ε P'(y) for each element y, in place of `base`.
    channel : str, optional
        The name of one row of the printed table, instead of the smallest predicted error. Two are
        selected by name only: "local-uniform" (unbiased away from the edge of a box, with the
        grid's error) and "smooth" (Theorem S on an l2 ball, with `sensitivity`). With "smooth" you
        assert that the value will be the *raw* vector: an element of the ball plus Gaussian noise
        of exactly `plan.variance` per coordinate, neither projected nor averaged.

    Returns
    -------
    Plan
        The condition on the base (`log_delta`, `rho`, `sigma`), and `purify` to publish with.
        `GuaranteeError`, with the number of missing nats, if `base` cannot reach ε.

    Notes
    -----
    **Guarantee**: `purify` is pure ε-DP at no extra ε (theory B1, B2, R(v), K, S2).
    **Neighbors**: those of the base's claim. **Error**: `predicted_error`, before any data.

    Examples
    --------
    >>> from zerodelta.spaces import Ball, Finite
    >>> round(plan(Finite(37), epsilon="0.83", mixing_probability="0.01").log_delta, 4)
    -7.9488
    >>> smooth = plan(Ball(10, 1), epsilon=1, sensitivity="1/500", channel="smooth")
    >>> other = plan(Ball(10, 1), epsilon=1, sensitivity="1/500")
    >>> smooth.predicted_error < other.predicted_error, smooth.sigma < other.sigma
    (True, True)

    """
    require(
        is_known(space),
        "space",
        space,
        expected=f"a space of zerodelta.purification ({', '.join(spaces.__all__)}), no subclass",
        remedy="say what may be published, such as zd.Finite(16) or zd.Ball(10, 1.0)",
    )
    target = Target.of(
        epsilon=epsilon,
        mixing_probability=mixing_probability,
        resolution=resolution,
        sensitivity=sensitivity,
    )
    pointwise = None
    if profile is not None:
        pointwise = ProfileMix(space=space, at_epsilon=target.epsilon, profile=profile)  # type: ignore[arg-type]
    claim = base if base is not None or pointwise is None else pointwise.claim()
    if claim is not None:
        log_delta = as_claim(claim, "base").log_delta(target.epsilon)
        target = replace(target, log_delta=log_delta)
    first, *others = ranked_candidates(
        space, target, prior=prior, profile=pointwise, channel=channel
    )
    purifier = first.build(target)
    if isinstance(purifier, Mixing):  # replace the approximate closed forms by exact numbers
        first = replace(
            first,
            weight=purifier.mixing_weight,
            log_ratio=purifier.log_mass,
            error=first.error if sensitivity is not None else purifier.expected_error(),
        )
    if isinstance(purifier, SmoothMix):
        claim = GaussianDP(mu_squared=2 * purifier.step_taken.rho)
    return Plan(
        space=space,
        target=target,
        purifier=purifier,
        base=claim,
        compared=(first, *others),
    )


@partial(debited, like=plan)
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
    **paying: Unpack[Paying],
) -> Release:
    """Publish the value of a mechanism with a δ on a space, under pure ε-DP, in one call.

    Use it for a value that you already have. To choose the channel before the mechanism runs, and
    the noise that it needs, see `plan`.

    Parameters
    ----------
    value : object
        The mechanism's answer. Any object is mapped into the space.
    space : Space
        The values that may be published: a space of `zerodelta.purification`.
    claim : PureDP, ApproxDP, GaussianDP, ZCDP or RDP
        The claim of the mechanism; it may be left out only with a `profile`.
    profile : sequence of numbers, optional
        On a finite space, bounds on P(y) - e^ε P'(y) for each element y, in place of `claim`.

    Returns
    -------
    Release
        Its `value` is an element of the space: the nearest one to the given value, rounded, or
        with probability at most `mixing_probability` a random one. `GuaranteeError`, with the
        number of missing nats, if the claim cannot reach ε.

    Notes
    -----
    **Guarantee**: pure ε-DP by B1, B2 or R(v), whichever the plan chose. The claim is
    caller-asserted, so the certificate is `asserted`. Public: everything but the value.
    **Neighbors**: those of the claim. **Error**: `release.error`, what publishing adds.

    Examples
    --------
    >>> from zerodelta.privacy.claims import GaussianDP
    >>> from zerodelta.spaces import Finite
    >>> mode = {"space": Finite(16), "claim": GaussianDP("1/100"), "epsilon": 1}
    >>> purify(3, **mode).value
    3
    >>> purify(0, space=Finite(2), profile=["1/1000", 0], epsilon=1).certificate.status.value
    'asserted'

    """
    planned = plan(
        space,
        epsilon=epsilon,
        mixing_probability=mixing_probability,
        resolution=resolution,
        base=claim,
        prior=prior,
        profile=profile,
        channel=channel,
    )
    return planned.purify(value)
