"""The mode: exact laws on all small neighbors, items of every kind, ten million of them."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import zerodelta as zd
from paper.test_mode import law as stability_law
from purity import assert_impure, assert_pure
from reference.chi_square import goodness_of_fit
from tasks.noise_laws import assert_chosen_purely
from tasks.spying import recorded, zero
from zerodelta.audit.exact import (
    datasets,
    neighbors,
    permute_and_flip_law,
)
from zerodelta.data.keys import KeyCounts, tally
from zerodelta.exact.bits import ReplayBits
from zerodelta.mechanisms.noisy_test import ClearLead
from zerodelta.mechanisms.selection import PermuteAndFlip
from zerodelta.spaces import Finite
from zerodelta.tasks.choices import _member, mode, mode_methods
from zerodelta.testing import replayed

EPSILON = Fraction(1)


@pytest.mark.parametrize(("size", "rows"), [(2, 4), (3, 3), (4, 2)])
def test_modes_are_pure_on_every_pair_of_neighbors(
    monkeypatch: pytest.MonkeyPatch, size: int, rows: int
) -> None:
    """Levels with members, as handed to the mechanism, are the counts of the whole universe."""
    calls, handed = recorded(monkeypatch, PermuteAndFlip, "select", zero), {}
    for items in datasets([*range(size), 99], rows):
        mode(list(items), universe=size, epsilon=EPSILON, method="permute-and-flip")
        used, levels, *_, named = calls[-1]
        counts = tuple(items.count(item) for item in range(size))
        assert dict(zip(levels.tolist(), named["members"].tolist(), strict=True)) == Counter(counts)
        handed[items] = used.scale, counts
    assert_chosen_purely(handed, neighbors(handed), epsilon=EPSILON)


def test_the_monotone_scale_is_caught() -> None:
    """One count rises and one falls: noise for scores that move one way is too little."""
    laws = {
        d: permute_and_flip_law([d.count(i) for i in range(2)], scale=1)
        for d in datasets(range(2), 6)
    }
    assert_impure(laws, epsilon=1)


@pytest.mark.parametrize("size", [2, 3])
def test_the_stability_method_is_pure_on_every_pair_of_neighbors(size: int) -> None:
    certificate = mode([0], universe=size, epsilon=EPSILON, method="stability").certificate
    tau = Fraction(str(certificate.steps[0].numbers["threshold"]))
    laws = {d: stability_law(d, size, EPSILON, tau, "real") for d in datasets(range(size), 4)}
    assert_pure(laws, epsilon=EPSILON)
    lower = {d: stability_law(d, 4, EPSILON, tau / 2, "real") for d in datasets(range(4), 3)}
    assert_impure(lower, epsilon=EPSILON)


@pytest.mark.parametrize("method", ["permute-and-flip", "stability"])
def test_the_release_has_the_law(method: str) -> None:
    items, size = [0, 2, 2, 2, 3, 3], 6
    counts = [items.count(i) for i in range(size)]
    if method == "stability":
        certificate = mode([0], universe=size, epsilon=2, method=method).certificate
        tau = Fraction(str(certificate.steps[0].numbers["threshold"]))
        exact = stability_law(tuple(items), size, Fraction(2), tau, "real")
    else:
        exact = permute_and_flip_law(counts, scale=1)
    bits = ReplayBits(method)
    drawn = Counter(
        replayed(bits)(mode)(items, universe=size, epsilon=2, method=method).value
        for _ in range(800)
    )
    expected = [float(exact[i]) for i in range(size)]
    assert goodness_of_fit([drawn[i] for i in range(size)], expected) > 1e-4


def test_members_of_a_level_are_the_items_with_that_count() -> None:
    counts = [0, 2, 0, 0, 1, 2, 0]
    seen = np.flatnonzero(counts)
    counted = KeyCounts(indices=seen, counts=np.array(counts)[seen])
    for level in (0, 1, 2):
        wanted = [i for i, c in enumerate(counts) if c == level]
        assert [_member(counted, level, place) for place in range(len(wanted))] == wanted


def brute_force(items: Any, space: Finite) -> dict[int, int]:
    found = Counter(space.find(item) for item in items)
    found.pop(None, None)
    return {int(k): v for k, v in found.items() if k is not None}


class Hostile:
    """An item that raises whatever is done with it."""

    def __hash__(self) -> int:
        raise RuntimeError("secret")

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("secret")

    def __float__(self) -> float:
        raise RuntimeError("secret")


ITEMS: dict[str, Any] = {
    "mixed": [3, 1, 3, 99, -1, 2.5, float("nan"), None, "x", [1, 2], 2001, 1999],
    "texts": ["a", "b", "a", "zz", ["a"], None, 7, 7.0],
    "hostile": [3, 1, "a", Hostile(), "b", 2],
    "int64": np.array([3, 1, 3, 99, -1, 2001, 2001, -3, 2**62, -(2**63)]),
    "uint8": np.array([3, 1, 255], dtype=np.uint8),
    "uint64": np.array([2**64 - 1, 3, 3], dtype=np.uint64),
    "float": np.array([3.0, 1.0, 3.5, np.nan, np.inf, -0.0]),
    "column": np.array([[3], [1]]),
    "array of texts": np.array(["a", "b", "a", "zz"]),
    "object": np.array(["a", 3, None, 1, 7], dtype=object),
    "empty": np.array([], dtype=int),
    "none": [],
}


@pytest.mark.parametrize("universe", [5, 2**40, ["b", "a", 7], [2001, 1999, -3]], ids=str)
@pytest.mark.parametrize("items", ITEMS.values(), ids=ITEMS)
def test_items_are_counted_as_if_one_by_one(items: Any, universe: Any) -> None:
    space = Finite(universe)
    found = tally(items, space)
    listed = items.reshape(-1).tolist() if isinstance(items, np.ndarray) else items
    counts = dict(zip(found.indices.tolist(), found.counts.tolist(), strict=True))
    assert counts == brute_force(listed, space)
    assert found.indices.tolist() == sorted(found.indices.tolist())


class Liar:
    """An item that is equal to every other one, but only once."""

    asked = False

    def __hash__(self) -> int:
        return hash(1)

    def __eq__(self, other: object) -> bool:
        self.asked, before = True, self.asked
        return not before


def test_an_item_that_equals_others_takes_none_with_it() -> None:
    for universe in (3, [0, 1, 2]):
        found = tally([Liar(), *[1] * 50], Finite(universe)).dense(3).tolist()
        assert found[1] in (50, 51)


def test_unknown_items_count_for_the_item_that_was_named() -> None:
    space = Finite(10)
    assert tally([7, 99, 99], space, unknown=4).indices.tolist() == [4, 7]
    assert tally([7, 99], space, unknown=7).counts.tolist() == [2]
    assert mode([7, 99, 99] * 50, universe=10, unknown=4, epsilon=5).value == 4


def test_ties_go_to_the_smallest_index_in_the_stability_test() -> None:
    assert ClearLead.stability(tally([7, 3, 3, 7], Finite(10))) == (3, -1)
    assert ClearLead.stability(tally([], Finite(10))) == (0, -1)
    assert ClearLead.stability(tally([7, 7, 7], Finite(10))) == (7, 1)


def test_the_default_and_the_forecast() -> None:
    for n, universe in ((0, 5), (10, 2), (1000, 10), (10**6, 100), (10**6, 101), (10**6, 2**40)):
        methods = mode_methods(epsilon=1, n=n, universe=universe)
        few = universe <= 100
        assert methods[0].name == ("permute-and-flip" if few else "asymmetric")
        assert methods[0].error <= n
        # under add-remove nothing is gained by two directions
        names = {m.name for m in mode_methods(epsilon=1, n=n, universe=universe, monotone=True)}
        assert "asymmetric" not in names


def test_a_known_gap_decides() -> None:
    """Where the mode is far ahead permute-and-flip is surer; in a close race it is not."""
    for gap, best in ((20, "asymmetric"), (150, "permute-and-flip")):
        methods = mode_methods(epsilon=1, n=10**6, universe=10**5, expected_gap=gap)
        assert methods[0].name == best
        assert all(method.error <= gap for method in methods if method.name != "stability")


@pytest.mark.parametrize("universe", [1000, 2**40])
def test_the_asymmetric_mode_has_its_forecast_error(universe: int) -> None:
    """One item leads all others by the gap that is worst for the method, or nearly."""
    (method,) = (
        m for m in mode_methods(epsilon=1, n=10**6, universe=universe) if m.name == "asymmetric"
    )
    gap = 10 if universe == 1000 else 33
    bits = ReplayBits("asymmetric mode")
    items, lost = [7] * gap, 0
    runs = 300
    for _ in range(runs):
        release = replayed(bits)(mode)(items, universe=universe, epsilon=1, method="asymmetric")
        lost += release.value != 7
    assert method.error / 1.5 < gap * lost / runs < method.error * 1.5
    drawn = mode(items, universe=universe, epsilon=1, method="asymmetric")
    assert zd.verify(drawn.certificate, epsilon=1, proven=True)
