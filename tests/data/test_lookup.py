"""Entries among options: the types that a stray entry gives to a whole array change nothing."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import zerodelta as zd
from zerodelta.data.lookup import Lookup, is_plain
from zerodelta.errors import ParameterError
from zerodelta.spaces import Finite

VALUES: list[list[Any]] = [
    [0, 1, 2, 2**53 + 1],
    [True, False],
    [0.1, 1.5, 3.0, 1e300],
    ["a", "b", ""],
]
STRAYS: list[Any] = ["x", b"x", 1j, math.nan, 0.25]
OPTIONS: list[Any] = [
    3,
    [0, 1, 2],
    ["0", "1", "2"],
    ["00", "0", "1", "a"],
    [True, False],
    ["True", "False"],
    [0.1, 1.5, math.inf],
    ["0.1", "1.5"],
    ["a", 1, None, 2.5],
    ["b", 2**53 + 1, 2**53],
    [10**400, (1, 2), 1e300],
]


def places(array: Any, space: Finite) -> list[int | None]:
    lookup = Lookup(space, array.dtype)
    return [lookup.find(value) for value in array.tolist()]


@pytest.mark.parametrize("options", OPTIONS, ids=repr)
@pytest.mark.parametrize("values", VALUES, ids=repr)
def test_a_stray_changes_no_other_place_whatever_numpy_makes_of_the_array(
    values: list[Any], options: Any
) -> None:
    space = Finite(options)
    plain = np.array(values)
    for stray in STRAYS:
        if plain.dtype.kind in "iu" and isinstance(stray, (float, complex)):
            plain = np.array(values[:-1])  # beyond 2^53, NumPy itself loses digits
        spoiled = np.array([*plain.tolist(), stray])
        assert places(spoiled, space)[:-1] == places(plain, space)


def test_equality_comes_first_and_then_numbers() -> None:
    found = Lookup(Finite(["01", "1", "x", 2.5, None, (1, 2)]))
    for value, place in [("01", 0), (1, 1), ("1.0", 1), (1.0, 1), (b"x", 2), ("2.50", 3)]:
        assert found.find(value) == place
    for value in (None, math.nan, "nan", np.float64("nan")):
        assert found.find(value) == 4
    assert found.find((1, 2)) == 5
    for value in ([1], {}, "y", b"\xff", object(), np.datetime64("2020-01-01"), math.inf, 2j):
        assert found.find(value) is None


def test_short_floats_are_compared_in_their_own_type() -> None:
    for kind in (np.float16, np.float32):
        column = np.array([0.1, 1 / 3, 5, math.nan, math.inf], dtype=kind)
        space = Finite([0.1, 1 / 3, 5, 1e300, 10**400])
        assert places(column, space) == [0, 1, 2, None, None]


def test_a_number_beside_a_text_that_spells_it_is_refused() -> None:
    cases: list[list[Any]] = [[1, "1"], ["1.0", True], ["a", 0.5, "0.50"]]
    for options in cases:
        with pytest.raises(ParameterError, match="no number beside a text"):
            Lookup(Finite(options))


def test_integers_are_the_whole_numbers() -> None:
    options: list[Any] = [3, "4", 2.5, math.inf, "x", None, 5.0]
    assert Lookup(Finite(options)).integers == {3: 0, 4: 1, 5: 6}


def test_types_with_a_hash_and_a_comparison_of_their_own_are_not_plain() -> None:
    class Hostile(type):
        def __hash__(cls) -> int:
            raise RuntimeError("secret")

        def __eq__(cls, other: object) -> bool:
            raise RuntimeError("secret")

    class Item(metaclass=Hostile):
        pass

    assert not is_plain(Item())
    assert all(map(is_plain, ["a", b"a", 1, 1.5, 1j, True, None, np.int8(1), np.float32(1)]))
    assert not any(map(is_plain, [[], (), np.ones(1), {}]))
    items = [0, 1, Item()]
    assert zd.mode(items, universe=[0, 1], epsilon=50).value in (0, 1)
    rows = np.array([[item] for item in items], dtype=object)
    release = zd.answer_queries(rows, domain={0: [0, 1]}, workload=1, epsilon=1)
    assert release.value[(0,)].shape == (2,)
