"""`zd.plan` and `zd.purify`: which channel, weight and resolution publish with the least error.

A plan is made of public numbers before any data is touched (`purification_plan`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from zerodelta.channels.channel import Mixing, as_claim
from zerodelta.channels.finite_mix import ProfileMix
from zerodelta.channels.purification_plan import Plan
from zerodelta.channels.search import Target, ranked_candidates
from zerodelta.channels.smooth import SmoothMix
from zerodelta.errors import require
from zerodelta.exact.rational import Rational
from zerodelta.privacy.claim import Claim
from zerodelta.privacy.claims import GaussianDP
from zerodelta.privacy.release import Release
from zerodelta.spaces import Space, is_known
from zerodelta.spine.paying import Paying, debited

if TYPE_CHECKING:
    from typing_extensions import Unpack

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
    space : Finite, Subsets, Multiset, Box or Ball
        What may be published.
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
        What the internal mechanism satisfies: the plan publishes as finely as that allows.
    prior : sequence of numbers, optional
        On a finite space, public probabilities to replace the answer from.
    profile : sequence of numbers, optional
        On a finite space, bounds on P(y) - e^ε P'(y) for each element y, in place of `base`.
    channel : str, optional
        One row of the printed table by name, instead of the least predicted error. Two are chosen
        in no other way: "local-uniform" (unbiased away from the edge of a box, at the grid's error)
        and "smooth" (Theorem S on an l2 ball, with `sensitivity`). By "smooth" you say that the
        value will be the *raw* vector: an element of the ball plus Gaussian noise of exactly
        `plan.variance` a coordinate, neither projected nor averaged.

    Returns
    -------
    Plan
        What the base must satisfy (`log_delta`, `rho`, `sigma`), and `purify` to publish with.
        `GuaranteeError`, with the number of nats missing, if `base` cannot reach ε.

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
        expected="a space of this library, no subclass: Finite, Subsets, Multiset, Box or Ball",
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
    if isinstance(purifier, Mixing):  # its closed forms were approximate
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
        weighed=(first, *others),
    )


@debited
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

    Use it for a value that you have; to decide how to publish before the mechanism runs, and how
    much noise it needs, see `plan`.

    Parameters
    ----------
    value : object
        What the mechanism returned. Any object whatever is mapped into the space.
    space : Finite, Subsets, Multiset, Box or Ball
        What may be published.
    claim : PureDP, ApproxDP, GaussianDP, ZCDP or RDP
        What the mechanism satisfies; it may be left out with a `profile` only.
    epsilon : int, float, Fraction or str
        The pure ε of the release.
    mixing_probability, resolution, prior, profile, channel
        As in `plan`.

    Returns
    -------
    Release
        `value` is an element of the space: the nearest, rounded, to the one given, or with
        probability at most `mixing_probability` a random one. `GuaranteeError`, with the number of
        nats missing, if the claim cannot reach ε.

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
