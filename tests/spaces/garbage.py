"""Objects that a program might hand over instead of an answer: all must be mapped, none raise."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp


class Raises:
    """Raises from whatever method is tried, and not only ordinary exceptions."""

    def __init__(self, error: type[BaseException]) -> None:
        object.__setattr__(self, "error", error)

    def __getattribute__(self, name: str) -> Any:
        raise object.__getattribute__(self, "error")

    def _raise(self, *_: object) -> Any:
        raise object.__getattribute__(self, "error")

    __iter__ = __len__ = __getitem__ = __index__ = __int__ = __float__ = __array__ = _raise
    __hash__ = __eq__ = __bool__ = __complex__ = __lt__ = __abs__ = __next__ = _raise


class Lies:
    """Claims to be equal to everything, to be an int, and to have a length it has not."""

    __class__ = int  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0

    def __len__(self) -> int:
        return 2**62

    def __index__(self) -> int:
        return 2**70

    def __getitem__(self, index: object) -> object:
        return self


class NotAnArray:
    def __array__(self, *_: object, **__: object) -> Any:
        return "no array"


def half_way() -> Iterator[int]:
    yield 1
    raise ValueError("half way")


class Endless:
    """Makes a fresh endless iterator each time."""

    def __init__(self, item: object) -> None:
        self.item = item

    def __iter__(self) -> Iterator[object]:
        return itertools.repeat(self.item)


def objects(*items: object) -> Any:
    array = np.empty(len(items), dtype=object)
    for index, item in enumerate(items):
        array[index] = item
    return array


RECURSIVE: list[Any] = []
RECURSIVE.append(RECURSIVE)

GARBAGE: list[Any] = [
    None, "", "3", "abc", b"", b"\x01\x02", bytearray(b"1"), True, np.True_, ..., NotImplemented,
    -1, 2**63, 10**400, -(10**400), 0.5, math.nan, math.inf, -math.inf, 1e308, 5e-324, -0.0,
    1j, np.complex128(1 + 1j), np.array([1j, 2j]), Decimal("NaN"), Decimal("sNaN"),
    Decimal("1e999"),
    Fraction(1, 3), Fraction(10**400), np.float16(math.inf), np.longdouble("1e4000"), np.int8(-1),
    [], (), {}, set(), [[]], [[1, 2], [3]], [[1, 2], [3, 4]], [None], [math.nan, 1], [1, math.inf],
    ["1", "2"], [1, "a"], [10**400, 1], [Decimal("sNaN"), 1], {"a": 1}, {3: 4, 1: 2}, {1, 2},
    np.array(3), np.array(math.nan), np.array([]), np.zeros((2, 0)), np.zeros((1, 2)),
    np.array([1.0, math.nan]), np.array(["a", "b"]), np.array([None, 1], dtype=object),
    np.array([1, 2], dtype="datetime64[s]"), np.ma.masked_array([1.0, 2.0], mask=[True, False]),
    np.array([2**63, 1], dtype=np.uint64), np.full(2, np.longdouble("1e4000")),
    np.array([(1, 2.0)], dtype=[("a", int), ("b", float)]), np.zeros(2, dtype=bool), np.ma.masked,
    object(), object, int, len, lambda: 1, ValueError("x"), range(10**12), range(2), slice(1),
    Endless(0), Endless(None), Endless(math.nan), NotAnArray(), Lies(), RECURSIVE,
    [Lies(), Lies()], *map(Raises, (ValueError, SystemExit, KeyboardInterrupt, RecursionError)),
    [Raises(ValueError), Raises(KeyboardInterrupt)], objects(Raises(ValueError), 1),
]  # fmt: skip


def anything() -> st.SearchStrategy[Any]:
    """Draw scalars, arrays of any shape and type, nested containers, and the list above."""
    scalars = st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=3),
        st.binary(max_size=3), st.complex_numbers(), st.fractions(), st.decimals(),
        st.integers(0, len(GARBAGE) - 1).map(GARBAGE.__getitem__),
    )  # fmt: skip
    arrays = hnp.arrays(
        hnp.scalar_dtypes(), hnp.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=4)
    )
    nested = st.recursive(
        scalars, lambda inner: st.lists(inner, max_size=4) | st.tuples(inner, inner), max_leaves=8
    )
    floats = st.lists(st.floats(width=64), min_size=1, max_size=4)
    return st.one_of(nested, arrays, floats, st.lists(st.integers(-3, 12), max_size=8))
