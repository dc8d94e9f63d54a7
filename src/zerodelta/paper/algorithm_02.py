"""Algorithm 2 (`alg:discrete`) and Theorem 3 (`thm:index_embed`): purification of a finite choice.

The choice is written in binary, Algorithm 1 runs in the unit cube, and every coordinate is rounded
back to a bit. For comparison: B1 (`appendix_c`) needs no embedding and no extra ε.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from flint import arb

from zerodelta.channels.wasserstein import AlgorithmTwo, laplace_scale
from zerodelta.exact.arb import ball, lower
from zerodelta.exact.bits import BitSource
from zerodelta.exact.rational import Rational, as_count, as_positive
from zerodelta.paper.algorithm_01 import proving_steps, publish
from zerodelta.privacy.claims import ApproxDP, PureDP
from zerodelta.privacy.parameters import log_delta_from, split_epsilon
from zerodelta.privacy.release import Release
from zerodelta.privacy.step import Step
from zerodelta.spaces import FiniteSpace
from zerodelta.spine.paying import Paying, debited

if TYPE_CHECKING:
    from typing_extensions import Unpack

_LEAST_SCALE = Fraction(1, 1 << 12)
"""Noise of this scale flips a bit with probability e^-2048; a larger scale is private too."""


@debited
def purify_choice(
    value: Any,
    *,
    space: FiniteSpace,
    epsilon: Rational,
    base_epsilon: Rational | None = None,
    log_delta: float | None = None,
    delta: Rational | None = None,
    base_steps: tuple[Step, ...] = (),
    bits: BitSource | None = None,
    **paying: Unpack[Paying],
) -> Release:
    """Publish the choice of an (ε, δ)-DP mechanism under pure DP (Algorithm 2).

    Use it to reproduce Algorithm 2; `mix_choice` and `zd.purify` need no embedding, no extra ε.

    Parameters
    ----------
    value : object
        u_apx of the paper, what the mechanism chose. Any object whatever is mapped into the space
        first.
    space : Finite, Subsets or Multiset
        Y of the paper, what may be published, of any size; d = ⌈log2 |Y|⌉ bits, ω = 2^-d.
    epsilon : number
        2ε of the paper (ε + ε' in general): the pure ε of the release.
    base_epsilon : number, optional
        ε of the paper, that of the mechanism; half of `epsilon` by default. The rest is ε', which
        pays for the Laplace noise.
    log_delta, delta : number
        ln δ or δ of the mechanism, one of the two; Theorem 3's is `theorem_3_log_delta`.
    base_steps : tuple of Step
        The proof steps of (ε, δ); without them it is caller-asserted, and so is the certificate.
    bits : BitSource, optional
        Replayed bits for tests; never for data.

    Returns
    -------
    Release
        Its value is u_pure, an element of the space.

    Notes
    -----
    **Guarantee**: pure DP with ε + ε' for every δ (Theorem 3 by Theorem W on the cube, A4).
    **Neighbors**: replace-one.
    **Error**: the probability of another element, at most 1 - `theorem_3` if ln δ is below
    `theorem_3_log_delta`.

    Examples
    --------
    >>> from zerodelta.spaces import Finite
    >>> log_delta = theorem_3_log_delta(code_length=30, base_epsilon=1)
    >>> release = purify_choice(5, space=Finite(1 << 30), epsilon=2, log_delta=log_delta)
    >>> release.value, release.certificate.claim.exact_epsilon
    (5, Fraction(2, 1))

    """
    base, _ = split_epsilon(epsilon, base_epsilon)
    log_of = log_delta_from(delta, log_delta)
    steps = proving_steps(epsilon=base, log_delta=log_of, base_steps=base_steps)
    channel = choice_channel_for(space=space, epsilon=epsilon, base_epsilon=base, log_delta=log_of)
    return publish(
        value,
        channel,
        claim=PureDP(epsilon),
        steps=steps,
        public=(f"the space {space!r}", "every number in the steps"),
        bare_rows=bool(base_steps),
        bits=bits,
    )


def choice_channel_for(
    *,
    space: FiniteSpace,
    epsilon: Rational,
    base_epsilon: Rational | None = None,
    log_delta: float,
) -> AlgorithmTwo:
    """Return Algorithm 2 with the smallest proven noise."""
    base, extra = split_epsilon(epsilon, base_epsilon)
    length = code_length(space.size)
    scale = laplace_scale(
        # theory A4: the cube is an linf ball of diameter 1, not an l_1 ball of radius d/2.
        norm=math.inf,
        dimension=length,
        diameter=1,
        weight=Fraction(1, 1 << length),
        claim=ApproxDP(base, log_delta),
        epsilon=base,
        extra_epsilon=extra,
    )
    return AlgorithmTwo(space=space, scale=max(scale, _LEAST_SCALE), base_epsilon=base)


def code_length(size: int) -> int:
    """Return d = ⌈log2 |Y|⌉, at least 1.

    >>> [code_length(size) for size in (1, 2, 3, 16, 17)]
    [1, 1, 2, 4, 5]
    """
    # theory A4: |Y| need not be a power of two; codes beyond it are decoded by a fixed public rule.
    return max(1, (as_count(size, "size", minimum=1) - 1).bit_length())


def theorem_3_log_delta(*, code_length: int, base_epsilon: Rational) -> float:
    """Return the largest float below ln(ε^d/(2d)^(3d)), the δ of Theorem 3.

    Parameters
    ----------
    code_length : int
        d, the number of bits.
    base_epsilon : number
        ε, half of the total.

    Returns
    -------
    float
        ln δ.

    Examples
    --------
    >>> round(theorem_3_log_delta(code_length=4, base_epsilon=1), 4)
    -24.9533

    """
    d = as_count(code_length, "code_length", minimum=1)
    exact = as_positive(base_epsilon, "base_epsilon")

    def log() -> arb:
        return d * (ball(exact).log() - 3 * ball(2 * d).log())

    return math.nextafter(lower(log), -math.inf)


def theorem_3(code_length: int) -> float:
    """Return (1 - 2^-d)(1 - (d/2)e^-d), a bound on P[u_pure = u_apx] that holds for every d.

    >>> round(theorem_3(10), 4)
    0.9988
    """
    d = as_count(code_length, "code_length", minimum=1)
    # theory A4: the uniform branch must *not* be taken, and the noise stays below 1/2 everywhere.
    return (1 - 2.0**-d) * (1 - d / 2 * math.exp(-d))


def printed_theorem_3(code_length: int) -> float:
    """Return 1 - 2^-d - (d/2)e^-d, the bound as printed (weaker by the product of the two)."""
    d = as_count(code_length, "code_length", minimum=1)
    return 1 - 2.0**-d - d / 2 * math.exp(-d)
