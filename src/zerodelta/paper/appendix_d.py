"""Appendix D (`sec:baseline`): a net of small cubes plus mixing, done right (theory B2).

The printed parameters do not give 2ε-DP in low dimension (A12); they are here to show by how much.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from zerodelta.channels.grid_mix import GridMix
from zerodelta.errors import GuaranteeError, ParameterError, require
from zerodelta.exact.bits import BitSource
from zerodelta.exact.rational import Rational, as_count, as_positive
from zerodelta.paper.algorithm_01 import proving_steps, publish
from zerodelta.paper.appendix_c import worst_epsilon
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.parameters import as_log_delta, log_delta_from
from zerodelta.privacy.release import Release
from zerodelta.privacy.step import Step
from zerodelta.privacy.theorems.mixing import as_weight, largest_log_delta
from zerodelta.spaces import Box
from zerodelta.spine.paying import Paying, debited
from zerodelta.value import value

if TYPE_CHECKING:
    from typing_extensions import Unpack


@debited
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
    bits: BitSource | None = None,
    **paying: Unpack[Paying],
) -> Release:
    """Publish the cell of an (ε, δ)-DP mechanism's vector, or with probability ω a uniform cell.

    Use it to compare with Algorithm 1; `zd.purify` chooses channel and ω by itself.

    Parameters
    ----------
    value : object
        What the mechanism returned. Any object whatever is projected onto the box first.
    box : Box
        In which the output lies; it has K^d cells, K as large as δ allows.
    epsilon : number
        The pure ε of the release.
    base_epsilon : number, optional
        ε of the mechanism; all of `epsilon` by default, because nothing else has a price.
    log_delta, delta : number
        ln δ or δ of the mechanism, one of the two.
    mixing_weight : number
        The probability ω of a uniform cell.
    base_steps : tuple of Step
        The proof steps of (ε, δ); without them it is caller-asserted, and so is the certificate.
    bits : BitSource, optional
        Replayed bits for tests; never for data.

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
        remedy="leave it out: all of epsilon is the mechanism's",
    )
    log_of = log_delta_from(delta, log_delta)
    steps = proving_steps(epsilon=base, log_delta=log_of, base_steps=base_steps)
    channel = channel_for(box=box, epsilon=total, log_delta=log_of, mixing_weight=mixing_weight)
    return publish(
        value,
        channel,
        claim=PureDP(epsilon),
        steps=steps,
        public=(f"the box {box!r}", "every number in the steps"),
        bare_rows=bool(base_steps),
        bits=bits,
    )


def channel_for(
    *, box: Box, epsilon: Rational, log_delta: float, mixing_weight: Rational
) -> GridMix:
    """Return the finest grid that (ε, δ) allows with this mixing weight."""
    weight = as_weight(mixing_weight, "mixing_weight")
    # theory A12: K from B2's condition at the base's own ε, instead of 2⌊R/Δ⌋ and "2ε".
    allowed = largest_log_delta(epsilon=epsilon, weight=weight, log_mass=0.0)
    budget = math.nextafter(allowed - as_log_delta(log_delta), -math.inf)
    if budget < 0:
        raise GuaranteeError(
            f"ln δ = {float(log_delta):.6g} exceeds {allowed:.6g}, what even one cell needs at "
            f"this ε and weight: add noise to the base, or allow a larger mixing_weight."
        )
    return GridMix(lattice=box.grid(1), mixing_weight=weight).finest(budget, weight)


@value
class PrintedNet:
    """Δ and K as printed, with the loss that is claimed and the one that mixing really has."""

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
    # theory A12: log d is 0 for d = 1, and for small d the net is far too fine for 2ε.
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
            "log_delta", log_of, expected="so small that Δ <= R", remedy="pass a smaller one"
        )
    return PrintedNet(
        spacing=spacing,
        cells=cells,
        claimed_epsilon=2 * float(as_positive(base_epsilon, "base_epsilon")),
        worst_epsilon=worst_epsilon(
            size=cells**d, base_epsilon=base_epsilon, log_delta=log_of, mixing_weight=weight
        ),
    )
