"""Purify by mixing alone: Appendix C on a finite space, Appendix D on a net of small cubes.

Theory B1 is exact and never worse than the cited lemma. On continuous spaces mixing alone fails.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

from flint import arb

from zerodelta.channels.mixes import FiniteMix, GridMix
from zerodelta.errors import GuaranteeError, ParameterError, require
from zerodelta.exact.logs import ball, upper
from zerodelta.exact.rational import Rational, as_count, as_positive
from zerodelta.paper.algorithm_01_02 import proving_steps, publish, purify_ball
from zerodelta.privacy.claims import ApproxDP, PureDP
from zerodelta.privacy.parameters import as_log_delta, log_delta_from
from zerodelta.privacy.release import Release
from zerodelta.privacy.steps import Step
from zerodelta.privacy.theorems.mixing import as_weight, largest_log_delta
from zerodelta.spaces import Box, Finite, FiniteSpace
from zerodelta.spine.verbs import Paying, debited
from zerodelta.value import value

if TYPE_CHECKING:
    from typing_extensions import Unpack


@partial(debited, like=purify_ball)
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
    **paying: Unpack[Paying],
) -> Release:
    """Publish the choice of an (ε, δ)-DP mechanism, or with probability ω a uniform one.

    Use it to compare with Algorithm 2; `zd.purify` chooses ω by itself.

    Parameters
    ----------
    value : object
        The choice of the mechanism. Any object is mapped into the space first.
    space : FiniteSpace
        The set of possible outputs, a finite space of `zerodelta.purification`.
    base_epsilon : number, optional
        ε of the mechanism; all of `epsilon` by default, because mixing costs no ε.
    mixing_weight : number
        The probability ω of a uniform element.

    Returns
    -------
    Release
        Its value is an element of the space. `GuaranteeError` if `epsilon` is below
        `mixed_epsilon`, the smallest that B1 proves.

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
    return publish(value, channel, f"the space {space!r}", PureDP(total), steps)


def mixed_epsilon(
    *,
    size: int,
    base_epsilon: Rational,
    mixing_weight: Rational,
    log_delta: float | None = None,
    delta: Rational | None = None,
) -> Fraction:
    """Return the ε that B1 proves, max(ε, ln(1 + (1-ω)δ|Y|/ω)), rounded up.

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
    """Return the exact largest loss of mixing over all (ε, δ)-DP mechanisms, rounded up.

    This is ln max{1 + (1-ω)δN/ω, ((1-ω)(e^ε+δ) + ω(1+e^ε)/N)/((1-ω)(1-δ) + ω(1+e^ε)/N)}, N >= 2
    (B1, "Tightness").

    >>> round(worst_epsilon(size=2, base_epsilon=1, log_delta=-1.0, mixing_weight="1/2"), 6)
    0.685649
    """
    base = as_positive(base_epsilon, "base_epsilon")
    w = as_weight(mixing_weight, "mixing_weight")
    log_of, count = log_delta_from(delta, log_delta), as_count(size, "size", minimum=2)

    def worst() -> arb:
        """Return the largest log ratio after mixing, over shared and disjoint supports."""
        delta_ball, factor = ball(log_of).exp(), ball(base).exp()
        floor = ball(w / count) * (1 + factor)
        unmixed = ball(1 - w)
        # an element that only one of two laws has, and the ratio where both have mass
        disjoint = 1 + ball((1 - w) / w * count) * delta_ball
        shared = (unmixed * (factor + delta_ball) + floor) / (unmixed * (1 - delta_ball) + floor)
        return disjoint.max(shared).log()

    return upper(worst)


def continuous_example(*, delta: Rational, mixing_weight: Rational) -> tuple[Fraction, Fraction]:
    """Return the masses at f(D) and of the uniform part after mixing δ·Dirac + (1-δ)·Uniform.

    A neighbor's law has no mass at f(D), so that for each ω < 1 a positive δ remains.

    >>> continuous_example(delta="1/10", mixing_weight="1/2")
    (Fraction(1, 20), Fraction(19, 20))
    """
    d, w = as_positive(delta, "delta"), as_weight(mixing_weight, "mixing_weight")
    # theory A12: the uniform part is 1 - δ + δω (printed: 1 - δ - δω, which does not add up to 1).
    return (1 - w) * d, 1 - d + d * w


# -- Appendix D (`sec:baseline`): a net of small cubes plus mixing, corrected (theory B2) ---------
# The printed parameters do not give 2ε-DP in low dimension (A12); `printed_net` computes their true
# loss.


@partial(debited, like=mix_choice)
def mix_on_grid(
    value: Any,
    *,
    box: Box,
    epsilon: Rational,
    base_epsilon: Rational | None = None,
    log_delta: float | None = None,
    delta: Rational | None = None,
    mixing_weight: Rational,
    base_steps: tuple[Step, ...] = (),
    **paying: Unpack[Paying],
) -> Release:
    """Publish the cell of an (ε, δ)-DP mechanism's vector, or with probability ω a uniform cell.

    Use it to compare with Algorithm 1; `zd.purify` chooses channel and ω by itself.

    Parameters
    ----------
    value : object
        The output of the mechanism. Any object is projected onto the box first.
    box : Box
        The box that contains the output; it has K^d cells, K as large as δ allows.
    mixing_weight : number
        The probability ω of a uniform cell.

    Returns
    -------
    Release
        Its value is the center of a cell. `GuaranteeError` if δ is too large even for one cell.

    Notes
    -----
    **Guarantee**: pure ε-DP, if ln δ + d ln K <= ln(ω/(1-ω)) + ln(e^ε - 1)
    (theory B2).
    **Neighbors**: replace-one.
    **Error**: rms rounding plus ω times the rms width of the box.

    Examples
    --------
    >>> release = mix_on_grid(
    ...     0.3, box=Box(0, 1), epsilon=1, log_delta=-40.0, mixing_weight="1e-9"
    ... )
    >>> release.value.round(3), release.certificate.claim.exact_epsilon
    (array([0.3]), Fraction(1, 1))

    """
    total = as_positive(epsilon, "epsilon")
    base = total if base_epsilon is None else as_positive(base_epsilon, "base_epsilon")
    require(
        base <= total,
        "base_epsilon",
        base_epsilon,
        expected=f"at most epsilon = {float(total):g}",
        remedy="omit base_epsilon: the mechanism may spend all of epsilon",
    )
    log_of = log_delta_from(delta, log_delta)
    steps = proving_steps(epsilon=base, log_delta=log_of, base_steps=base_steps)
    channel = channel_for(box=box, epsilon=total, log_delta=log_of, mixing_weight=mixing_weight)
    return publish(value, channel, f"the box {box!r}", PureDP(total), steps)


def channel_for(
    *, box: Box, epsilon: Rational, log_delta: float, mixing_weight: Rational
) -> GridMix:
    """Return the finest grid that (ε, δ) allows with this mixing weight."""
    weight = as_weight(mixing_weight, "mixing_weight")
    # theory A12: K from B2's condition at the mechanism's ε, instead of 2⌊R/Δ⌋ and "2ε".
    allowed = largest_log_delta(epsilon=epsilon, weight=weight, log_mass=0.0)
    log_cells = math.nextafter(allowed - as_log_delta(log_delta), -math.inf)
    if log_cells < 0:
        raise GuaranteeError(
            f"ln δ = {float(log_delta):.6g} exceeds {allowed:.6g}, the largest that one cell "
            f"allows at this ε and weight: add noise to the base, or allow a larger mixing_weight."
        )
    return GridMix(lattice=box.grid(1), mixing_weight=weight).finest(log_cells, weight)


@value
class PrintedNet:
    """Δ and K as printed, with the claimed loss and the true loss of mixing."""

    spacing: float
    cells: int
    claimed_epsilon: float
    worst_epsilon: float


def printed_net(
    *,
    side: Rational,
    dimension: int,
    base_epsilon: Rational,
    mixing_weight: Rational,
    log_delta: float | None = None,
    delta: Rational | None = None,
) -> PrintedNet:
    """Return the printed net on [0, R]^d: Δ = 2R(δ/2ω)^(1/d) log d, K = 2⌊R/Δ⌋, "2ε"-DP.

    >>> net = printed_net(
    ...     side=1, dimension=2, base_epsilon="0.1", log_delta=-30.0, mixing_weight="0.01"
    ... )
    >>> net.claimed_epsilon, round(net.worst_epsilon, 2)
    (0.2, 1.63)
    """
    width, d = float(as_positive(side, "side")), as_count(dimension, "dimension", minimum=1)
    weight = as_weight(mixing_weight, "mixing_weight")
    # theory A12: log d is 0 for d = 1, and for small d the net is too fine for 2ε.
    if d == 1:
        raise ParameterError(
            "dimension", d, expected="at least 2: the printed Δ is 0 for d = 1", remedy="use B2"
        )
    log_of = log_delta_from(delta, log_delta)
    log_power = (log_of - math.log(2 * weight)) / d
    spacing = 2 * width * math.exp(log_power) * math.log(d)
    cells = 2 * math.floor(width / spacing)
    if cells < 2:
        raise ParameterError(
            "log_delta", log_of, expected="so small that Δ <= R", remedy="pass a smaller log_delta"
        )
    return PrintedNet(
        spacing=spacing,
        cells=cells,
        claimed_epsilon=2 * float(as_positive(base_epsilon, "base_epsilon")),
        worst_epsilon=worst_epsilon(
            size=cells**d, base_epsilon=base_epsilon, log_delta=log_of, mixing_weight=weight
        ),
    )
