"""Algorithm 12 (`alg: mode`): release the most frequent item, `thm:mode` (theory A5, C5).

The test "is the mode stable?" decides between the mode and a uniform item. With the right threshold
that alone is pure ε-DP; the paper goes on through the binary embedding and pays 2ε.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from zerodelta.channels.wasserstein import AlgorithmTwo, laplace_scale
from zerodelta.data.items import as_items, tally
from zerodelta.errors import require
from zerodelta.exact.arb import ball, lower
from zerodelta.exact.bits import BitSource
from zerodelta.exact.rational import Rational, as_count, as_positive
from zerodelta.mechanisms.noisy_test import ClearLead
from zerodelta.paper.algorithm_09 import paper_threshold
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.neighbors import Neighbors
from zerodelta.privacy.parameters import as_relation, log_delta_from, split_epsilon
from zerodelta.privacy.release import Release
from zerodelta.privacy.step import Step
from zerodelta.privacy.theorems.testing import proposed_release_claim
from zerodelta.spaces import Finite
from zerodelta.spine.paying import Paying, debited
from zerodelta.spine.public_inputs import as_universe, unknown_index
from zerodelta.spine.release_plan import ReleasePlan
from zerodelta.spine.run import run

if TYPE_CHECKING:
    from typing_extensions import Unpack

_PUBLIC = ("the universe of items",)


def mode_log_delta(*, points: int, base_epsilon: Rational) -> float:
    """Return ln δ = -d ln(8d³/ε), d = ⌈log2|X|⌉ at least 1, rounded down.

    >>> round(mode_log_delta(points=1024, base_epsilon=1), 3)
    -89.872
    """
    d = max(1, (as_count(points, "points", minimum=1) - 1).bit_length())
    exact = as_positive(base_epsilon, "base_epsilon")
    # theory A5: Theorem 3 needs (2d)^3 = 8d³ here; the algorithm prints 2d³
    value = lower(lambda: -ball(8 * d**3 / exact).log() * d)
    require(
        value < 0,
        "base_epsilon",
        base_epsilon,
        expected=f"less than {8 * d**3} for {points} items (else ln δ is not below 0)",
        remedy="use `mode`, which needs no δ",
    )
    return value


def stable_mode(items: Any, universe: Finite, *, unknown: int | None = None) -> tuple[int, int]:
    """Return the mode's index and ⌈lead/2⌉ - 1, of items that are public (`ClearLead`)."""
    return ClearLead.stability(tally(items, universe, unknown=unknown))


@debited
def mode(
    items: Any,
    *,
    universe: int | Iterable[Any] | Finite,
    epsilon: Rational,
    unknown: Any = None,
    neighbors: Neighbors = Neighbors.REPLACE,
    bits: BitSource | None = None,
    **paying: Unpack[Paying],
) -> Release:
    """Release the most frequent item if its lead is clear, as ``zd.mode(method="stability")`` does.

    Use it to compare with the paper's `embedded_mode`; `zd.mode` has better methods too.

    Parameters
    ----------
    items : list, array or series
        The dataset D, one item for each row.
    universe : list, int or Finite
        The public set 𝒳 of all items, or N for the integers 0..N-1.
    epsilon : number
        The pure ε of the release.
    unknown : item, optional
        The public item for which items outside the universe count; nowhere if not given.
    neighbors : Neighbors
        REPLACE or ADD_REMOVE; the same proof covers both.
    bits : BitSource, optional
        Replayed bits for tests; never for data.

    Returns
    -------
    Release
        Its value is one item of the universe.

    Notes
    -----
    **Guarantee**: pure ε-DP: dp·(N + e^ε - 1) <= e^ε - 1, dp = e^(-ετ)/2 (theory C5): the failures
    of the test are the mixing.
    **Neighbors**: replace-one (default) or add-remove.
    **Error**: the lead, in rows, from which on 9 of 10 releases are the mode.

    Examples
    --------
    >>> mode(["tea"] * 90 + ["coffee"] * 10, universe=["tea", "coffee", "milk"], epsilon=1).value
    'tea'

    """
    space, exact, relation = (
        as_universe(universe),
        as_positive(epsilon, "epsilon"),
        as_relation(neighbors),
    )
    index, (source, _) = unknown_index(unknown, space), as_items(items)
    test = ClearLead.for_epsilon(epsilon=exact, items=space.size, neighbors=relation)

    def answer(items: Any, bits: BitSource) -> Any:
        return space.element(test.apply(tally(items, space, unknown=index), bits))

    plan: ReleasePlan[Any] = ReleasePlan(
        claim=PureDP(exact, neighbors=relation),
        steps=(test.step(),),
        answer=answer,
        error=_needed_lead(test),
        public=_PUBLIC,
    )
    return run(plan, source, bits=bits)


@debited
def embedded_mode(
    items: Any,
    *,
    universe: int | Iterable[Any] | Finite,
    epsilon: Rational,
    base_epsilon: Rational | None = None,
    log_delta: float | None = None,
    delta: Rational | None = None,
    unknown: Any = None,
    bits: BitSource | None = None,
    **paying: Unpack[Paying],
) -> Release:
    """Release the most frequent item as the paper does: noisy test, then Algorithm 2.

    Use it to reproduce Algorithm 12; `mode` needs a quarter of the lead at half the privacy cost.

    Parameters
    ----------
    items, universe, unknown
        As in `mode`.
    epsilon : number
        2ε of the paper (ε + ε' in general): the pure ε of the release.
    base_epsilon : number, optional
        ε of the test; half of `epsilon` by default. The rest is ε' of Algorithm 2.
    log_delta, delta : number, optional
        ln δ or δ of the test, at most one of the two; `mode_log_delta` by default.
    bits : BitSource, optional
        Replayed bits for tests; never for data.

    Returns
    -------
    Release
        Its value is one item of the universe.

    Notes
    -----
    **Guarantee**: pure DP with ε + ε' (theory A5, C3, and B3 on the binary code).
    **Neighbors**: replace-one.
    **Error**: the lead, in rows, from which on 9 of 10 releases are the mode; inf if ω = 2^-d alone
    prevents it. The paper's bound: P(wrong) <= 3/|X| from a lead of 4⌈ln(1/δ)/ε⌉ on (for |X| not
    tiny, theory A4).

    Examples
    --------
    >>> release = embedded_mode([7] * 4000, universe=1 << 30, epsilon=2)
    >>> release.value, release.certificate.claim.exact_epsilon
    (7, Fraction(2, 1))

    """
    space, (base, extra) = as_universe(universe), split_epsilon(epsilon, base_epsilon)
    index, (source, _) = unknown_index(unknown, space), as_items(items)
    if delta is None and log_delta is None:
        log_delta = mode_log_delta(points=space.size, base_epsilon=base)
    log_of = log_delta_from(delta, log_delta)
    numbers: dict[str, Any] = {
        "test_epsilon": base,
        "release_epsilon": Fraction(0),
        "threshold": paper_threshold(base_epsilon=base, log_delta=log_of),
        "noise": "real",
    }
    test = ClearLead(items=space.size, epsilon=base, threshold=numbers["threshold"])
    length = max(1, (space.size - 1).bit_length())
    scale = laplace_scale(
        norm=math.inf,
        dimension=length,
        diameter=1,
        weight=Fraction(1, 1 << length),
        claim=proposed_release_claim(**numbers, neighbors=Neighbors.REPLACE),
        epsilon=base,
        extra_epsilon=extra,
    )
    purifier = AlgorithmTwo(space=space, scale=scale, base_epsilon=base)

    def answer(items: Any, bits: BitSource) -> Any:
        # theory A5: ⊥ becomes a uniform item *before* Algorithm 2, and nobody is told (a ⊥ in the
        # clear voids the guarantee)
        draft = test.apply(tally(items, space, unknown=index), bits)
        return purifier.apply(space.element(draft), bits)

    plan: ReleasePlan[Any] = ReleasePlan(
        claim=PureDP(base + extra),
        steps=(Step(theorem="propose-test-release", numbers=numbers), purifier.step()),
        answer=answer,
        error=_needed_lead(test, kept=1 - purifier.expected_error()),
        public=_PUBLIC,
    )
    return run(plan, source, bits=bits)


def _needed_lead(test: ClearLead, *, kept: float = 1.0) -> float:
    """Return the lead with which 9 of 10 releases are the mode, if purification keeps so many.

    A failed test draws the mode now and then.
    """
    if test.items == 1:
        return 0.0
    return test.lead_for((1 - 9 / 10 / kept) / (1 - 1 / test.items))


def wrong_probability(*, points: int, epsilon: Rational, gap: int) -> float:
    """Return the probability that `mode` releases another item than a mode with this lead.

    >>> wrong_probability(points=1024, epsilon=1, gap=40) < 1e-5
    True
    """
    test = ClearLead.for_epsilon(epsilon=as_positive(epsilon, "epsilon"), items=points)
    return (1 - 1 / points) * test.fails(as_count(gap, "gap"))
