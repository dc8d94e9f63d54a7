"""Appendix C (`sec:discrete`): folklore mixing on a finite space, its cited bound and B1.

B1 is exact and never worse than the cited lemma; on continuous spaces mixing alone fails.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from flint import arb

from zerodelta.channels.finite_mix import FiniteMix
from zerodelta.errors import GuaranteeError
from zerodelta.exact.arb import ball, upper
from zerodelta.exact.bits import BitSource
from zerodelta.exact.rational import Rational, as_count, as_positive
from zerodelta.paper.algorithm_01 import proving_steps, publish
from zerodelta.privacy.claims import ApproxDP, PureDP
from zerodelta.privacy.parameters import log_delta_from
from zerodelta.privacy.release import Release
from zerodelta.privacy.step import Step
from zerodelta.privacy.theorems.mixing import as_weight
from zerodelta.spaces import Finite, FiniteSpace
from zerodelta.spine.paying import Paying, debited

if TYPE_CHECKING:
    from typing_extensions import Unpack


@debited
def mix_choice(
    value: Any,
    *,
    space: FiniteSpace,
    epsilon: Rational,
    base_epsilon: Rational | None = None,
    log_delta: float | None = None,
    delta: Rational | None = None,
    mixing_weight: Rational,
    base_steps: tuple[Step, ...] = (),
    bits: BitSource | None = None,
    **paying: Unpack[Paying],
) -> Release:
    """Publish the choice of an (ε, δ)-DP mechanism, or with probability ω a uniform one.

    Use it to compare with Algorithm 2; `zd.purify` chooses ω by itself.

    Parameters
    ----------
    value : object
        What the mechanism chose. Any object whatever is mapped into the space first.
    space : Finite, Subsets or Multiset
        What may be published.
    epsilon : number
        The pure ε of the release.
    base_epsilon : number, optional
        ε of the mechanism; all of `epsilon` by default, because nothing else has a price.
    log_delta, delta : number
        ln δ or δ of the mechanism, one of the two.
    mixing_weight : number
        The probability ω of a uniform element.
    base_steps : tuple of Step
        The proof steps of (ε, δ); without them it is caller-asserted, and so is the certificate.
    bits : BitSource, optional
        Replayed bits for tests; never for data.

    Returns
    -------
    Release
        Its value is an element of the space. `GuaranteeError` if `epsilon` is below
        `mixed_epsilon`, which says how much is needed.

    Notes
    -----
    **Guarantee**: pure DP with `epsilon` >= max(ε, ln(1 + (1-ω)δ|Y|/ω)) (theory B1).
    **Neighbors**: replace-one.
    **Error**: another element with probability ω(1 - 1/|Y|).

    Examples
    --------
    >>> from zerodelta.spaces import Finite
    >>> release = mix_choice(
    ...     2, space=Finite(10), epsilon=1, log_delta=-40.0, mixing_weight="1e-9"
    ... )
    >>> release.value, release.certificate.claim.exact_epsilon
    (2, Fraction(1, 1))

    """
    total = as_positive(epsilon, "epsilon")
    base = total if base_epsilon is None else as_positive(base_epsilon, "base_epsilon")
    log_of = log_delta_from(delta, log_delta)
    steps = proving_steps(epsilon=base, log_delta=log_of, base_steps=base_steps)
    channel = FiniteMix(space=space, mixing_weight=as_weight(mixing_weight, "mixing_weight"))
    if not channel.proves(total, ApproxDP(base, log_of)):
        needed = mixed_epsilon(
            size=space.size, base_epsilon=base, log_delta=log_of, mixing_weight=mixing_weight
        )
        raise GuaranteeError(
            f"mixing proves ε = {float(needed):.6g} here, not {float(total):.6g}: pass that "
            f"epsilon, add noise to the base, or allow a larger mixing_weight."
        )
    return publish(
        value,
        channel,
        claim=PureDP(total),
        steps=steps,
        public=(f"the space {space!r}", "every number in the steps"),
        bare_rows=bool(base_steps),
        bits=bits,
    )


def mixed_epsilon(
    *,
    size: int,
    base_epsilon: Rational,
    mixing_weight: Rational,
    log_delta: float | None = None,
    delta: Rational | None = None,
) -> Fraction:
    """Return what B1 proves, max(ε, ln(1 + (1-ω)δ|Y|/ω)), rounded up; at most the cited bound.

    >>> mixed_epsilon(size=10, base_epsilon="1/10", log_delta=-20.0, mixing_weight="1/100")
    Fraction(1, 10)
    """
    base, count = as_positive(base_epsilon, "base_epsilon"), as_count(size, "size", minimum=1)
    claim = ApproxDP(base, log_delta_from(delta, log_delta))
    # theory A12: the cited bound is valid but weak; B1 is exact above the zero-cost threshold.
    weight = as_weight(mixing_weight, "mixing_weight")
    channel = FiniteMix(space=Finite(count), mixing_weight=weight)
    return base if channel.proves(base, claim) else Fraction(channel.epsilon(claim))


def printed_epsilon(
    *,
    size: int,
    base_epsilon: Rational,
    mixing_weight: Rational,
    log_delta: float | None = None,
    delta: Rational | None = None,
) -> float:
    """Return ε + ln(1 + δ|Y|e^-ε/ω), the bound the paper cites, rounded up."""
    base = as_positive(base_epsilon, "base_epsilon")
    weight = as_weight(mixing_weight, "mixing_weight")
    log_of, count = log_delta_from(delta, log_delta), as_count(size, "size", minimum=1)

    def cited() -> arb:
        return ball(base) + (ball(count / weight) * (ball(log_of) - ball(base)).exp()).log1p()

    return upper(cited)


def worst_epsilon(
    *,
    size: int,
    base_epsilon: Rational,
    mixing_weight: Rational,
    log_delta: float | None = None,
    delta: Rational | None = None,
) -> float:
    """Return the exact worst loss of mixing over all (ε, δ)-DP bases (B1, "Tightness"), rounded up.

    This is ln max{1 + (1-ω)δN/ω, ((1-ω)(e^ε+δ) + ω(1+e^ε)/N)/((1-ω)(1-δ) + ω(1+e^ε)/N)}, N >= 2.

    >>> round(worst_epsilon(size=2, base_epsilon=1, log_delta=-1.0, mixing_weight="1/2"), 6)
    0.685649
    """
    base = as_positive(base_epsilon, "base_epsilon")
    w = as_weight(mixing_weight, "mixing_weight")
    log_of, count = log_delta_from(delta, log_delta), as_count(size, "size", minimum=2)

    def worst() -> arb:
        lost, factor = ball(log_of).exp(), ball(base).exp()
        floor = ball(w / count) * (1 + factor)
        kept = ball(1 - w)
        alone = 1 + ball((1 - w) / w * count) * lost
        both = (kept * (factor + lost) + floor) / (kept * (1 - lost) + floor)
        return alone.max(both).log()

    return upper(worst)


def continuous_example(*, delta: Rational, mixing_weight: Rational) -> tuple[Fraction, Fraction]:
    """Return the masses at f(D) and of the uniform part after mixing δ·Dirac + (1-δ)·Uniform.

    The first is what a neighbor's law does not have there: δ stays, whatever ω < 1.

    >>> continuous_example(delta="1/10", mixing_weight="1/2")
    (Fraction(1, 20), Fraction(19, 20))
    """
    d, w = as_positive(delta, "delta"), as_weight(mixing_weight, "mixing_weight")
    # theory A12: the uniform part is 1 - δ + δω (printed: 1 - δ - δω, which does not add up to 1).
    return (1 - w) * d, 1 - d + d * w
