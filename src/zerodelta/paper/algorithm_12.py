"""Algorithm 12 (`alg: mode`): release the most frequent item, `thm:mode` (theory A5, C5).

The test "is the mode stable?" decides between the mode and a uniform item. With the right threshold
that alone is pure ε-DP; the paper goes on through the binary embedding and pays 2ε.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from zerodelta.channels.wasserstein import AlgorithmTwo, laplace_scale
from zerodelta.data.columns import as_cells, as_objects
from zerodelta.data.options import Options
from zerodelta.data.source import Source
from zerodelta.errors import ParameterError
from zerodelta.exact.arb import ball, lower
from zerodelta.exact.bits import BitSource, SystemBits
from zerodelta.exact.integers import uniform_below
from zerodelta.exact.rational import Rational, as_count, as_positive
from zerodelta.paper.algorithm_09 import noisy_test, paper_threshold
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.issue import issue
from zerodelta.privacy.neighbors import Neighbors
from zerodelta.privacy.parameters import as_relation
from zerodelta.privacy.release import Release
from zerodelta.privacy.step import Step
from zerodelta.privacy.theorems.testing import free_mode_threshold, proposed_release_claim
from zerodelta.spaces import Finite

__all__ = [
    "embedded_mode",
    "failed_test",
    "mode",
    "paper_log_delta",
    "stable_mode",
    "wrong_probability",
]

_PUBLIC = ("the universe of items",)
_LARGEST = 1 << 53

Array = npt.NDArray[Any]


def paper_log_delta(*, points: int, epsilon: Rational) -> float:
    """Return ln δ = -d ln(8d³/ε), d = ⌈log2 N⌉ at least 1, rounded down.

    >>> round(paper_log_delta(points=1024, epsilon=1), 3)
    -89.872
    """
    d = max(1, (as_count(points, "points", minimum=1) - 1).bit_length())
    exact = as_positive(epsilon, "epsilon")
    # theory A5: Theorem 3 needs (2d)^3 = 8d³ here; the algorithm prints 2d³
    value = lower(lambda: -ball(8 * d**3 / exact).log() * d)
    if value >= 0:
        raise ParameterError(
            "epsilon",
            epsilon,
            expected=f"less than {8 * d**3} for {points} items (else ln δ is not below 0)",
            remedy="use `mode`, which needs no δ",
        )
    return value


def stable_mode(items: Any, universe: Finite, *, unknown: int | None = None) -> tuple[int, int]:
    """Return the mode's index and ⌈gap/2⌉ - 1, a hidden distance that one row moves by at most 1.

    gap is the lead of the mode over the second most frequent item of the whole universe. Ties go
    to the smallest index (theory A5: a fixed public rule). Items outside the universe count
    nowhere, or for the index `unknown`. Only items that occur are ever stored.
    """
    indices, counts = _counts(items, universe, unknown)
    if len(counts) == 0:
        return 0, -1
    places = np.flatnonzero(counts == counts.max())
    best = int(places[np.argmin(indices[places])])
    second = int(np.delete(counts, best).max(initial=0))
    return int(indices[best]), -(-(int(counts[best]) - second) // 2) - 1


def mode(
    items: Any,
    *,
    universe: int | Iterable[Any] | Finite,
    epsilon: Rational,
    unknown: Any = None,
    neighbors: Neighbors = Neighbors.REPLACE,
    bits: BitSource | None = None,
) -> Release:
    """Release the most frequent item, or a uniform item of the universe if its lead is small.

    No mixing: the failures of the test are the mixing (theory C5).

    **Neighbors**: replace-one (default) or add-remove; the same proof covers both.
    **Guarantee**: pure ε-DP: dp·(N + e^ε - 1) <= e^ε - 1, dp = e^(-ετ)/2 (theory C5).
    **Public**: the universe, a list of items or a number N for the integers 0..N-1 (N up to 2^53;
    it is never enumerated). An item outside it, a NaN and whatever is no item count nowhere, or
    for the public item `unknown`.
    **Error**: P(wrong) = (1-1/N)·e^(-ε(⌈gap/2⌉-1-τ))/2, see `wrong_probability`; depends on the
    unseen gap.

    >>> mode(["tea"] * 90 + ["coffee"] * 10, universe=["tea", "coffee", "milk"], epsilon=1).value
    'tea'
    """
    bits = SystemBits() if bits is None else bits
    space, exact = _universe(universe), as_positive(epsilon, "epsilon")
    relation, spare_index = as_relation(neighbors), _unknown(unknown, space)
    threshold = free_mode_threshold(points=space.size, epsilon=exact)
    numbers = {
        "points": space.size,
        "epsilon": exact,
        "threshold": threshold,
        "noise": "real",
    }
    certificate = issue(
        claim=PureDP(exact, neighbors=relation),
        steps=(Step(theorem="stable-mode", numbers=numbers, neighbors=relation),),
        bits=bits,
        public=_PUBLIC,
    )
    found, distance = stable_mode(items, space, unknown=spare_index)
    passed = noisy_test(distance, epsilon=exact, threshold=threshold, bits=bits)
    drawn = int(uniform_below(space.size, size=1, bits=bits)[0])
    return Release(
        value=space.element(found if passed else drawn),
        certificate=certificate,
        error="depends on unseen data",
    )


def embedded_mode(
    items: Any,
    *,
    universe: int | Iterable[Any] | Finite,
    epsilon: Rational,
    log_delta: float | None = None,
    unknown: Any = None,
    bits: BitSource | None = None,
) -> Release:
    """Release the most frequent item as the paper does: noisy test, then Algorithm 2.

    **Neighbors**: replace-one.
    **Guarantee**: pure 2ε-DP (theory A5, C3, and B3 on the binary code).
    **Public**: the universe, as for `mode`.
    **Error**: the paper's bound, P(wrong) <= 3/N if the lead is at least 4⌈ln(1/δ)/ε⌉ (for N not
    tiny, theory A4); `mode` needs a quarter of the lead at half the privacy cost.

    >>> release = embedded_mode([7] * 4000, universe=1024, epsilon=1)
    >>> release.certificate.claim
    PureDP(epsilon=2, bounded_range=0, neighbors=replace)
    """
    bits = SystemBits() if bits is None else bits
    space, exact = _universe(universe), as_positive(epsilon, "epsilon")
    spare_index = _unknown(unknown, space)
    target = paper_log_delta(points=space.size, epsilon=exact) if log_delta is None else log_delta
    threshold = paper_threshold(epsilon=exact, log_delta=target)
    zero = Fraction(0)
    claim = proposed_release_claim(
        test_epsilon=exact,
        release_epsilon=zero,
        threshold=threshold,
        noise="real",
        neighbors=Neighbors.REPLACE,
    )
    length = max(1, (space.size - 1).bit_length())
    purifier = AlgorithmTwo(
        space=space,
        scale=laplace_scale(
            norm=math.inf,
            dimension=length,
            diameter=1,
            weight=Fraction(1, 1 << length),
            claim=claim,
            epsilon=exact,
            extra_epsilon=exact,
        ),
        base_epsilon=exact,
    )
    numbers = {
        "test_epsilon": exact,
        "release_epsilon": zero,
        "threshold": threshold,
        "noise": "real",
    }
    certificate = issue(
        claim=PureDP(2 * exact),
        steps=(Step(theorem="propose-test-release", numbers=numbers), purifier.step()),
        bits=bits,
        public=_PUBLIC,
    )
    found, distance = stable_mode(items, space, unknown=spare_index)
    passed = noisy_test(distance, epsilon=exact, threshold=threshold, bits=bits)
    # theory A5: ⊥ becomes a uniform item *before* Algorithm 2, and nobody is told (a ⊥ in the
    # clear voids the guarantee)
    drawn = int(uniform_below(space.size, size=1, bits=bits)[0])
    value = purifier.apply(space.element(found if passed else drawn), bits)
    return Release(value=value, certificate=certificate, error="depends on unseen data")


def wrong_probability(*, points: int, epsilon: Rational, gap: int) -> float:
    """Return the probability that `mode` releases another item than a mode with this lead.

    >>> wrong_probability(points=1024, epsilon=1, gap=40) < 1e-5
    True
    """
    exact = as_positive(epsilon, "epsilon")
    threshold = free_mode_threshold(points=points, epsilon=exact)
    return (1 - 1 / points) * failed_test(gap, threshold=threshold, epsilon=exact)


def failed_test(gap: int, *, threshold: Fraction, epsilon: Fraction) -> float:
    """Return the probability that a mode with this lead fails its test, and an item is drawn."""
    beyond = float(epsilon) * (-(-as_count(gap, "gap") // 2) - 1 - float(threshold))
    return math.exp(-beyond) / 2 if beyond >= 0 else 1 - math.exp(beyond) / 2


def _universe(universe: int | Iterable[Any] | Finite) -> Finite:
    space = universe if isinstance(universe, Finite) else Finite(universe)
    if space.options is None and space.size > _LARGEST:
        raise ParameterError(
            "universe", space.size, expected="at most 2^53 items", remedy="list the items instead"
        )
    Options(space, "universe")  # refuses items that are read alike
    return space


def _unknown(unknown: Any, space: Finite) -> int | None:
    if unknown is None:
        return None
    index = Options(space).find(unknown)
    if index is None:
        raise ParameterError(
            "unknown",
            unknown,
            expected="an item of the universe, or None to count unknown items nowhere",
            remedy="add it to the universe",
        )
    return index


def _counts(items: Any, space: Finite, unknown: int | None) -> tuple[Array, Array]:
    """Return the indices that occur and how often, from the items alone."""
    if isinstance(items, Source):  # its own code would read the rows, and the claim is proven
        raise ParameterError(
            "items",
            type(items),
            expected="a list, an array or a series with one item for each row",
            remedy="pass such items, or call zd.mode, which says what it assumes of a source",
        )
    cells = as_objects(items) if isinstance(items, (list, tuple)) else as_cells(items)
    if cells.ndim == 2 and cells.shape[1] == 1:
        cells = cells[:, 0]
    if cells.ndim != 1:
        raise ParameterError(
            "columns of items", cells.shape[1:], expected="one", remedy="pass one column"
        )
    places = Options(space).places(cells)
    if unknown is not None:
        places = np.where(places < 0, unknown, places)
    indices, counts = np.unique(places[places >= 0], return_counts=True)
    return indices, counts
