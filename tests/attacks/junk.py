"""Values that nobody meant: what a program passes where another type, size or sense is expected."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import strategies as st

import zerodelta as zd


def _generator() -> Any:
    yield from (1, 2)


ODD: list[Any] = [
    None, True, False, 0, 1, -1, 2, 7, 10**5, 2**63, -(2**63), 10**30, 10**400, -(10**400),
    0.0, -0.0, 0.5, 1.5, math.nan, math.inf, -math.inf, 5e-324, 1e308, 1e-30,
    Fraction(1, 3), Fraction(-1, 2), Fraction(10**400, 3), Decimal("NaN"), Decimal("sNaN"),
    Decimal("0.1"), Decimal("1e5000"), 1j, np.float64("nan"), np.float32(0.5), np.int8(-1),
    np.bool_(True), np.datetime64("NaT"), np.array(3.0), np.array([]), np.zeros((2, 0)),
    np.zeros((2, 3)), np.array([None, "x"], dtype=object), np.array([1, 2]), np.array(["a"]),
    "", " ", "x", "a", "0", "1/2", "1/0", "-1/2", "nan", "inf", "1e400", "1e-400", "1e999999999",
    "9" * 5000, "auto", "١", "\ud800", "\x00", "a" * 10_000, "age >= 18", "../x", b"", b"x",
    [], [1], [1, 2], [2, 1], [1, 1], ["a", "b"], [[1, 2], [3]], [None], [math.nan], [[]],
    (), (1,), (0, 1), (1, 0), (0, 0), (0, math.inf), (math.nan, 1), ("0", "1"), (None, None),
    ([0, 0, 0], [1, 1, 1]), ([0], [1, 1]), {}, {"a": 1}, {1: 2}, {"a": [0, 1]}, {0: [1]},
    {None: None}, {"0": "mean"}, set(), {1, 2}, frozenset({"a"}), range(3),
    slice(None), Ellipsis, NotImplemented, object(), object, int, len, lambda *_: None,
    lambda: None, iter([1]), Exception("x"), zd, zd.Finite(2), zd.Box(0, 1), zd.Ball(2, 1),
    zd.purification.PureDP(1), zd.GaussianDP(1),
    zd.records.Neighbors.ADD_REMOVE, zd.number(0, 1), zd.boolean(),
    zd.bins([0, 1]), memoryview(b"x"),
]  # fmt: skip
"""Each by itself has been a mistake of somebody."""

_LEAVES = st.one_of(
    st.sampled_from(ODD),
    st.builds(_generator),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    st.binary(max_size=4),
    st.fractions(max_denominator=50),
    st.decimals(),
)
JUNK = st.one_of(
    _LEAVES,
    st.recursive(
        _LEAVES,
        lambda inner: st.one_of(
            st.lists(inner, max_size=4),
            st.lists(inner, max_size=4).map(tuple),
            st.dictionaries(
                st.one_of(st.text(max_size=4), st.integers(), st.none()), inner, max_size=3
            ),
        ),
        max_leaves=6,
    ),
)
