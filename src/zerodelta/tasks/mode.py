"""The most frequent item: selection on counts, or a test of its lead (theory C10.1, C5)."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from zerodelta.data.items import Tally, as_items, tally
from zerodelta.exact.bits import BitSource
from zerodelta.exact.rational import Rational, as_count, as_float, as_positive
from zerodelta.mechanisms.diagnostics import diagnosis
from zerodelta.mechanisms.key_noise import FOR_COUNTS, KeyNoise
from zerodelta.mechanisms.noisy_test import ClearLead
from zerodelta.mechanisms.noisy_top import NoisyTop, gap_of, wish_for
from zerodelta.mechanisms.selection import (
    SELECTIONS,
    Selection,
    gap_at,
    selection_methods,
    worst_gap,
)
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.neighbors import Neighbors
from zerodelta.privacy.parameters import as_usable_epsilon
from zerodelta.privacy.release import Release
from zerodelta.spaces import Finite
from zerodelta.spine.facts import Facts
from zerodelta.spine.methods import Method, choose, ranked
from zerodelta.spine.paying import Paying, debited
from zerodelta.spine.public_inputs import as_universe, codes_of, labels_of, unknown_index
from zerodelta.spine.release_plan import ReleasePlan
from zerodelta.spine.run import ask, run
from zerodelta.value import value

if TYPE_CHECKING:
    from typing_extensions import Unpack

_FEW_ITEMS = 100
"""Up to so many items permute-and-flip is as good in close races, and better in others."""


@debited
def mode(
    items: Any,
    columns: str | None = None,
    *,
    universe: Any = None,
    epsilon: Rational,
    unknown: Any = None,
    method: str = "auto",
    expected_gap: Rational | None = None,
    diagnostics: Rational | None = None,
    bits: BitSource | None = None,
    **paying: Unpack[Paying],
) -> Release:
    """Release the most frequent item of a public universe, like `statistics.mode`, but private.

    Use it if only the winner matters, for any size of the universe: it is never enumerated. For
    all counts see `histogram`.

    Parameters
    ----------
    items : data set, list, array, series, frame or Source
        What `zd.open` returns, or one item for each row, of any type; a number and a text that
        spells it are one item. A missing item counts nowhere, unless it is in the universe.
    columns : str, optional
        Which column of a data set (a category, a boolean or a date) or a frame.
    universe : list or int
        All items there can be, or N for the integers 0..N-1, N up to 2^53. Public; for a data set
        as declared, with "missing" and "other" where these are options.
    epsilon : number
        The privacy loss, as an int, a float, a Fraction or a text such as "1/2".
    unknown : item
        The public item for which items outside the universe count; nowhere if not given.
    method : str
        "permute-and-flip" or "exponential" on the counts, "asymmetric" (for more than 100 items:
        noise that falls faster upwards, where there are many items that could win by it),
        "stability" (the mode if its lead is clear, else a uniform item), or "auto", the one with
        the least predicted error.
    expected_gap : number, optional
        About how far the mode is ahead of all other items, known without the rows: methods are
        compared, and the asymmetric one is tuned, at that gap instead of the worst one.
    diagnostics : number, optional
        The share of ε, such as "1/100", for `release.diagnostics`, of a data set: which fractions
        of the rows were used and unreadable.
    bits : BitSource
        Replayed bits for tests; never for data.

    Returns
    -------
    Release
        Its value is one item of the universe.

    Notes
    -----
    **Guarantee**: pure ε-DP (theory C10.1; "asymmetric": U, "stability": C5), proven.
    **Neighbors**: replace-one: one count falls by 1, another rises by 1; or what the data set says.
    Under add-remove all counts move one way, which needs half the noise.
    **Error**: the largest expected gap between the mode's count and the released item's.

    Examples
    --------
    >>> mode(["tea"] * 90 + ["coffee"] * 10, universe=["tea", "coffee", "milk"], epsilon=1).value
    'tea'
    >>> import zerodelta as zd
    >>> drinks = zd.category(["tea", "coffee"], other=True)
    >>> people = zd.open(["tea", "coffee", "tea", None] * 99, columns={"0": drinks})
    >>> mode(people, "0", epsilon=1).value
    'tea'

    """
    codes = codes_of(items, columns, unknown=unknown, universe=universe)
    if codes is not None:
        coded = ModeQuestion(
            universe=labels_of(codes), coded=True, method=method, expected_gap=expected_gap
        )
        beside = diagnosis(diagnostics, codes)
        return ask(coded, codes, epsilon=epsilon, bits=bits, beside=beside)
    diagnosis(diagnostics, None)
    source, count = as_items(items, columns)
    question = ModeQuestion(
        universe=universe, unknown=unknown, method=method, expected_gap=expected_gap
    )
    return run(question.plan(Facts(rows=count), epsilon), source, bits=bits)


@value
class ModeQuestion:
    """The most frequent item of a public universe is asked."""

    universe: Any
    unknown: Any = None
    method: str = "auto"
    coded: bool = False
    """Whether rows hold the places 0, 1, … of the items in the universe."""
    expected_gap: Rational | None = None

    def plan(self, facts: Facts, epsilon: Rational) -> ReleasePlan[Any]:
        """Choose the method and calibrate it."""
        exact, related = as_usable_epsilon(epsilon), facts.neighbors
        space = self.universe if self.coded else as_universe(self.universe)
        unknown = None if self.coded else unknown_index(self.unknown, space)
        read = Finite(space.size) if self.coded else space
        monotone = related is Neighbors.ADD_REMOVE  # a row adds 1 to one count, and to no other
        methods = mode_methods(
            epsilon=exact,
            n=facts.planned_rows,
            universe=space.size,
            monotone=monotone,
            expected_gap=self.expected_gap,
        )
        chosen = choose(methods, self.method)
        mechanism: ClearLead | Selection | NoisyTop
        if chosen.name == "stability":
            mechanism = ClearLead.for_epsilon(epsilon=exact, items=space.size, neighbors=related)
        elif chosen.name == "asymmetric":
            noise = _noise(exact, space.size, self.expected_gap)
            mechanism = NoisyTop(noise=noise, size=space.size, k=1)
        else:
            mechanism = SELECTIONS[chosen.name].for_epsilon(
                epsilon=exact, sensitivity=1, monotone=monotone, neighbors=related
            )

        def answer(items: Any, bits: BitSource) -> Any:
            counted = tally(items, read, unknown=unknown)
            if isinstance(mechanism, ClearLead):
                return space.element(mechanism.apply(counted, bits))
            if isinstance(mechanism, NoisyTop):
                ((winner, _),) = mechanism.apply(counted.indices, counted.counts, bits)
                return space.element(winner)
            levels, members = _levels(counted, space)
            winner, place = mechanism.select_member(levels, members, bits)
            return space.element(_member(counted, int(levels[winner]), place))

        return ReleasePlan(
            claim=PureDP(exact, neighbors=related),
            steps=(
                mechanism.noise.step(space.size)
                if isinstance(mechanism, NoisyTop)
                else mechanism.step(),
            ),
            answer=answer,
            error=chosen.error,
            methods=methods,
            public=("the universe of items",),
        )


def mode_methods(
    *,
    epsilon: Rational,
    n: int,
    universe: int,
    monotone: bool = False,
    expected_gap: Rational | None = None,
) -> tuple[Method, ...]:
    """Return the methods that release a mode, best first; `monotone`: under add-remove.

    Errors are the largest expected gaps between the mode's count and the released item's, or those
    where the mode is ahead by `expected_gap`. For the stability test that is a race of two items
    with half of the rows each: a draw is an item that hardly occurs.

    >>> [method.name for method in mode_methods(epsilon=1, n=1000, universe=10)]
    ['permute-and-flip', 'exponential', 'stability']
    """
    exact, size = as_usable_epsilon(epsilon), as_count(universe, "universe", minimum=1)
    rows, scale = as_count(n, "n"), (1 if monotone else 2) / exact
    gap = None if expected_gap is None else as_positive(expected_gap, "expected_gap")

    def lost(name: str) -> float:
        if gap is None:
            return min(float(rows), worst_gap(size, scale, method=name))
        return min(float(rows), gap_at(size, scale, as_float(gap, "expected_gap"), method=name))

    chosen = selection_methods(
        lost,
        "close races cost little: a wrong item is nearly as frequent",
        "as permute-and-flip, with a slightly larger gap",
    )
    stability = Method(
        name="stability",
        error=_stability_error(exact, rows, size),
        spends="ε on one test",
        why="a close race is lost to a uniform item of the universe",
    )
    if monotone or size <= _FEW_ITEMS:
        return ranked(*chosen, stability)
    asymmetric = Method(
        name="asymmetric",
        error=min(float(rows), gap_of(_noise(exact, size, gap), size - 1, gap)),
        spends="ε on all counts together",
        why="many items could win by noise, which falls faster upwards than downwards",
    )
    return ranked(*chosen, asymmetric, stability)


def _noise(epsilon: Fraction, size: int, expected_gap: Rational | None) -> KeyNoise:
    """Return the noise of the asymmetric method, under replace-one."""
    many = math.log(size)
    wish = FOR_COUNTS if expected_gap is None else wish_for(many, epsilon, expected_gap)
    return KeyNoise.for_epsilon(epsilon=epsilon, log_keys=many, wish=wish)


@lru_cache(maxsize=64)
def _stability_error(epsilon: Fraction, rows: int, size: int) -> float:
    """Return the largest expected gap over races of two items: lead g, all others do not occur.

    A failed test publishes the second item with probability 1/N, one that does not occur with
    1 - 2/N.
    """
    if size == 1:
        return 0.0
    test, worst = ClearLead.for_epsilon(epsilon=epsilon, items=size), 0.0
    for gap in sorted({*range(min(rows, 64) + 1), *np.geomspace(1, max(rows, 1), 64).astype(int)}):
        failed = test.fails(int(gap))
        if failed * rows <= worst:  # nothing costs more than all rows, and later gaps fail less
            break
        lost = gap / size + (1 - 2 / size) * (rows + gap) / 2
        worst = max(worst, failed * lost)
    return float(worst)


def _levels(counted: Tally, space: Finite) -> tuple[Any, Any]:
    """Return the different counts, 0 included, and how many items have each."""
    levels, members = np.unique(counted.counts, return_counts=True)
    unseen = space.size - len(counted.indices)
    if unseen:
        levels, members = np.append(levels, 0), np.append(members, unseen)
    return levels.astype(np.int64), members.astype(np.int64)


def _member(counted: Tally, level: int, place: int) -> int:
    """Return the item of that rank among those with this count, in the universe's order."""
    if level > 0:
        return int(counted.indices[np.flatnonzero(counted.counts == level)[place]])
    before = counted.indices - np.arange(len(counted.indices))  # items unseen before each seen one
    return place + int(np.searchsorted(before, place, side="right"))
