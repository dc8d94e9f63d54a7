"""Finite spaces: sizes equal enumeration, numbering is a bijection, exact at any size."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spaces.every_space import enumerated
from zerodelta.errors import ParameterError
from zerodelta.spaces import Finite, FiniteSpace, Multiset, Subsets, WithExtra
from zerodelta.spaces.finite import rank, unrank


@pytest.mark.parametrize(
    ("space", "elements"),
    list(enumerated()),
    ids=lambda case: "elements" if isinstance(case, set) else repr(case)[:40],
)
def test_numbering_is_a_bijection_onto_the_enumerated_elements(
    space: FiniteSpace, elements: set[Any]
) -> None:
    assert space.size == len(elements)
    numbered = [space.element(index) for index in range(space.size)]
    assert set(numbered) == elements
    assert [space.index(element) for element in numbered] == list(range(space.size))
    assert all(space.project(element) == element for element in elements)
    assert all(space.contains(element) for element in elements)
    for outside in (-1, space.size, 0.0, "0", None, True):
        with pytest.raises(ParameterError):
            space.element(outside)  # type: ignore[arg-type]


@given(st.data())
@settings(deadline=None)
def test_large_numbers_round_trip(data: st.DataObject) -> None:
    of = data.draw(st.sampled_from([10, 1000, 10**6, 2**40, 2**53 + 1, 2**210]))
    size = data.draw(st.integers(1, 10) | st.integers(1, min(of, 60)))
    count = math.comb(of, size)
    last = st.sampled_from([0, 1, count // 2, count - 2, count - 1]).filter(lambda n: n >= 0)
    number = data.draw(last | st.integers(0, count - 1))
    subset = unrank(number, of=of, size=size)
    assert rank(subset) == number
    assert all(a < b for a, b in itertools.pairwise([-1, *subset, of]))


def test_binomial_thresholds_are_decided_exactly() -> None:
    """The number just below a binomial and the binomial itself differ in their last item."""
    for of, place in ((10**6, 999), (2**40, 500), (2**60, 3), (1200, 1000)):
        for item in (of - 1, (of + place) // 2, place):
            exact = math.comb(item, place)
            assert unrank(exact, of=of, size=place)[-1] == item
            assert unrank(exact - 1, of=of, size=place)[-1] == item - 1


@pytest.mark.parametrize(
    "value",
    [3, 3.0, np.int8(3), np.uint64(3), np.float32(3), np.array(3), np.array(3.0)],
    ids=repr,
)
def test_whole_numbers_of_any_type_are_indices(value: Any) -> None:
    assert Finite(16).project(value) == 3
    assert type(Finite(16).project(value)) is int
    assert Subsets(of=9, size=2).project([value]) == (0, 3)
    assert Multiset(9, 2).project([value]) == (0, 3)


NEAREST: list[tuple[FiniteSpace, Any, Any]] = [
    (Finite(16), 7.4, 7),
    (Finite(16), np.float32(7.6), 8),
    (Finite(16), np.array(8.02), 8),
    (Finite(16), -0.3, 0),
    (Finite(16), -1, 0),
    (Finite(16), -1e300, 0),
    (Finite(16), 15.4, 15),
    (Finite(16), 16, 15),
    (Finite(16), 10**400, 15),
    (Finite(16), Fraction(29, 10), 3),
    (Finite([0.1, 1, 10.0]), 0.8, 1),
    (Finite([0.1, 1, 10.0]), -5, 0.1),
    (Finite([0.1, 1, 10.0]), 10**400, 10.0),
    (Finite([10, 1]), 5.5, 10),  # a tie: the one listed first
    (Finite([math.inf, 1.0]), 1e300, 1.0),
    (Finite([math.inf, 1.0]), math.inf, math.inf),
    (WithExtra(Finite(4), "none"), 2.9, 3),
    (WithExtra(Finite(4), 4), 3.9, 3),
    (WithExtra(Finite(4), 4), 4, 4),
    (Multiset(9, 2), [2.6, 4], (3, 4)),
]


@pytest.mark.parametrize(("space", "value", "element"), NEAREST, ids=str)
def test_a_finite_number_is_the_nearest_element(
    space: FiniteSpace, value: Any, element: Any
) -> None:
    assert space.project(value) == element
    assert space.denotes(value)


def test_numbers_are_no_options_among_texts_and_truths() -> None:
    for space in (Finite(["a", 1]), Finite([False, True]), Finite([None, 3])):
        assert not space.denotes(0.75)
        assert space.project(0.75) == space.element(0)


def test_a_decision_is_an_index() -> None:
    assert Finite(2).project(np.float64(0.7) > 0.5) == 1
    assert Finite(2).project(True) == 1
    assert Finite([False, True]).project(np.True_) is True


def test_an_equal_value_is_replaced_by_the_option_itself() -> None:
    class Sneaky(str):
        secret = 1

    option = Finite(["a", "b"]).project(Sneaky("b"))
    assert option == "b"
    assert type(option) is str


def test_subsets_keep_the_first_valid_items_and_fill_with_the_smallest() -> None:
    space = Subsets(of=10, size=3)
    assert space.project([9, 4, 4, 7, 1]) == (4, 7, 9)
    assert space.project([-1, 10, 2.5, "3", None, 5]) == (0, 1, 5)
    assert space.project([0, 1]) == (0, 1, 2)
    assert space.project(np.argsort([3, 1, 2, 0, 9, 9, 9, 9, 9, 9])) == (1, 2, 3)
    assert space.project({8, 9}) == (0, 8, 9)


def test_containing_is_stricter_than_projecting() -> None:
    space = Subsets(of=10, size=3)
    assert space.contains([2, 1, 0])
    wrong: list[Any] = [[1, 2], [1, 2, 3, 4], [1, 1, 2], [1, 1, 2, 3], [1, 2, 10], "123"]
    for value in [*wrong, [1, 2, None]]:
        assert not space.contains(value)
    multiset = Multiset(3, 2)
    assert multiset.contains([1, 1])
    wrong = [[1], [1, 1, 1], [1, 3], [1, None], 7]
    for value in wrong:
        assert not multiset.contains(value)
    assert not Finite(3).contains(3)
    assert not Finite(3).contains(0.5)


def test_endless_values_end() -> None:
    assert Subsets(of=10, size=3).project(itertools.repeat(5)) == (0, 1, 5)
    assert Multiset(10, 3).project(itertools.count(2)) == (2, 3, 4)


@pytest.mark.parametrize(
    "options",
    [0, -1, True, 2.0, None, "ab", {"a", "b"}, {"a": 1}, [], ["a", "a"], [1, True], [math.nan],
     [object()], [["a"]], [(1, math.nan)], [len]],
    ids=lambda options: type(options).__name__,
)  # fmt: skip
def test_malformed_options_are_refused(options: Any) -> None:
    with pytest.raises(ParameterError):
        Finite(options)


@pytest.mark.parametrize(("of", "size"), [(0, 1), (3, 0), (3, 4), (3.0, 1), ("3", 1)])
def test_malformed_subsets_are_refused(of: Any, size: Any) -> None:
    with pytest.raises(ParameterError):
        Subsets(of=of, size=size)


def test_malformed_multisets_are_refused() -> None:
    for universe, size in ((0, 1), (3, 0), ("ab", 1), (3, 1.0)):
        with pytest.raises(ParameterError):
            Multiset(universe, size)  # type: ignore[arg-type]


def test_options_may_be_arrays() -> None:
    assert Finite(np.array([2, 5])).project(5.0) == 5
    assert Finite(range(3)) == Finite([0, 1, 2])
    assert Finite(3) != Finite([0, 1, 2])
