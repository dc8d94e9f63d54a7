"""The most frequent item: selection on counts, or the stability test (theory C10.1, C5)."""

from __future__ import annotations

from typing import Any

import numpy as np

from zerodelta.exact.bits import BitSource, SystemBits
from zerodelta.exact.integers import uniform_below
from zerodelta.exact.rational import Rational, as_count
from zerodelta.paper.algorithm_09 import noisy_test
from zerodelta.paper.algorithm_12 import failed_test
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.parameters import as_usable_epsilon
from zerodelta.privacy.release import Release
from zerodelta.privacy.step import Step
from zerodelta.privacy.theorems.testing import free_mode_threshold
from zerodelta.spaces import Finite
from zerodelta.spine.methods import Method, choose, ranked
from zerodelta.spine.transition import issue_for
from zerodelta.tasks.counting import Tally, as_universe, item_count, stray_index, tally
from zerodelta.tasks.items import as_items
from zerodelta.tasks.select import SELECTIONS, worst_gap

__all__ = ["mode", "mode_methods"]

_PUBLIC = ("the universe of items",)


def mode(
    items: Any,
    *,
    universe: Any = None,
    epsilon: Rational,
    unknown: Any = None,
    method: str = "auto",
    bits: BitSource | None = None,
) -> Release:
    """Release the most frequent item of a public universe.

    **Releases**: one item. `method`: "permute-and-flip" or "exponential" on the counts, or
    "stability" (the mode if its lead is clear, else a uniform item).
    **Neighbors**: replace-one: one count falls by 1, another rises by 1.
    **Guarantee**: pure ε-DP (PF, EM; C5), proven.
    **Public**: the universe, a list of items or N for the integers 0..N-1, N up to 2^53; it is
    never enumerated. A number and a text that spells it are one item. An item outside the universe
    counts nowhere, or for the public item `unknown`.
    **Error**: the largest expected gap between the mode's count and the released item's.

    >>> mode(["tea"] * 90 + ["coffee"] * 10, universe=["tea", "coffee", "milk"], epsilon=1).value
    'tea'
    >>> mode(np.full(2000, 2**40 - 1), universe=2**40, epsilon=1).value == 2**40 - 1
    True
    """
    bits = SystemBits() if bits is None else bits
    space, exact = as_universe(universe), as_usable_epsilon(epsilon)
    stray, items = stray_index(unknown, space), as_items(items)
    chosen = choose(mode_methods(epsilon=exact, n=item_count(items), universe=space.size), method)
    if chosen.name == "stability":
        threshold = free_mode_threshold(points=space.size, epsilon=exact)
        numbers = {"points": space.size, "epsilon": exact, "threshold": threshold, "noise": "real"}
        step = Step(theorem="stable-mode", numbers=numbers)
        certificate = issue_for(
            items, claim=PureDP(exact), steps=(step,), bits=bits, public=_PUBLIC
        )
        found, distance = _stable(tally(items, space, stray=stray))
        passed = noisy_test(distance, epsilon=exact, threshold=threshold, bits=bits)
        drawn = int(uniform_below(space.size, size=1, bits=bits)[0])
        index = found if passed else drawn
    else:
        mechanism = SELECTIONS[chosen.name].for_epsilon(epsilon=exact, sensitivity=1)
        certificate = issue_for(
            items, claim=PureDP(exact), steps=(mechanism.step(),), bits=bits, public=_PUBLIC
        )
        counted = tally(items, space, stray=stray)
        levels, members = _levels(counted, space)
        winner = mechanism.select(levels, bits, members=members)
        place = int(uniform_below(int(members[winner]), size=1, bits=bits)[0])
        index = _member(counted, int(levels[winner]), place)
    return Release(value=space.element(index), certificate=certificate, error=chosen.error)


def mode_methods(*, epsilon: Rational, n: int, universe: int) -> tuple[Method, ...]:
    """Return the ways to release a mode, best first.

    Errors are the largest expected gaps between the mode's count and the released item's. For the
    stability test that is a race of two items with half of the rows each: a draw is an item that
    hardly occurs.

    >>> [method.name for method in mode_methods(epsilon=1, n=1000, universe=10)]
    ['permute-and-flip', 'exponential', 'stability']
    """
    exact, size = as_usable_epsilon(epsilon), as_count(universe, "universe", minimum=1)
    rows = as_count(n, "n")
    reasons = {
        "permute-and-flip": "close races cost little: a wrong item is nearly as frequent",
        "exponential": "as permute-and-flip, with a slightly larger gap",
    }
    chosen = [
        Method(
            name=name,
            error=min(float(rows), worst_gap(size, 2 / exact, method=name)),
            spends="ε on one choice",
            why=reason,
        )
        for name, reason in reasons.items()
    ]
    return ranked(
        *chosen,
        Method(
            name="stability",
            error=_stability_error(exact, rows, size),
            spends="ε on one test",
            why="a close race is lost to a uniform item of the universe",
        ),
    )


def _stability_error(epsilon: Any, rows: int, size: int) -> float:
    """Return the largest expected gap over races of two items: lead g, all others do not occur.

    A failed test publishes the second item with probability 1/N, one that does not occur with
    1 - 2/N.
    """
    if size == 1:
        return 0.0
    threshold, worst = free_mode_threshold(points=size, epsilon=epsilon), 0.0
    for gap in sorted({*range(min(rows, 64) + 1), *np.geomspace(1, max(rows, 1), 64).astype(int)}):
        failed = failed_test(int(gap), threshold=threshold, epsilon=epsilon)
        if failed * rows <= worst:  # nothing costs more than all rows, and later gaps fail less
            break
        lost = gap / size + (1 - 2 / size) * (rows + gap) / 2
        worst = max(worst, failed * lost)
    return float(worst)


def _stable(counted: Tally) -> tuple[int, int]:
    """Return the mode (ties: the smallest index) and ⌈lead/2⌉ - 1, which one row moves by <= 1."""
    if len(counted.counts) == 0:
        return 0, -1
    best = int(np.argmax(counted.counts))
    second = int(np.delete(counted.counts, best).max(initial=0))
    return int(counted.indices[best]), -(-(int(counted.counts[best]) - second) // 2) - 1


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
