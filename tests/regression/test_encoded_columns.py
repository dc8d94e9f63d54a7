"""Declared columns as features: what each becomes, within which length, and back to the units."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import zerodelta as zd
from zerodelta.regression.encoded_columns import Encoding

pandas = pytest.importorskip("pandas")

NAN = float("nan")
KINDS = {
    "age": zd.number(0, 100),
    "change": zd.number(-10, 30, missing=None),
    "city": zd.category(["oslo", "rome"], other=True),
    "member": zd.boolean(),
    "smokes": zd.boolean(missing=True),
    "since": zd.date("2020-01-01", "2020-12-31", by="month"),
}
ENCODING = Encoding.of(KINDS)


def test_a_category_is_one_column_for_each_label() -> None:
    assert ENCODING.names == (
        *("age", "change", "city=oslo", "city=rome", "city=other", "member"),
        *("smokes=False", "smokes=True", "smokes=missing", "since"),
    )
    assert ENCODING.width == len(ENCODING.names) == 10
    rows = np.array([[30.0, 99.0, 2.0, 1.0, 0.0, 11.0], [NAN, 0.0, NAN, 0.0, 2.0, 0.0]])
    np.testing.assert_array_equal(
        ENCODING(rows),
        [[30, 30, 0, 0, 1, 1, 1, 0, 0, 11], [NAN, 0, NAN, NAN, NAN, 0, 0, 0, 1, 0]],
    )


def test_numbers_are_scaled_by_their_bounds_and_categories_are_not() -> None:
    rows = np.array([[0.0, -10.0, 0.0, 0.0, 0.0, 0.0], [75.0, 40.0, 1.0, 1.0, 1.0, 11.0]])
    np.testing.assert_array_equal(
        ENCODING.to_unit(centered=True)(rows),
        [[-1, -1, 1, 0, 0, -1, 1, 0, 0, -1], [0.5, 1, 0, 1, 0, 1, 0, 1, 0, 1]],
    )
    np.testing.assert_array_equal(
        ENCODING.to_unit(centered=False)(rows),
        [[0, -1 / 3, 1, 0, 0, 0, 1, 0, 0, 0], [0.75, 1, 0, 1, 0, 1, 0, 1, 0, 1]],
    )


cells = st.floats(allow_nan=False, allow_infinity=True, width=64)


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.tuples(cells, cells, st.integers(0, 2), st.integers(0, 1)), min_size=1),
    st.booleans(),
)
def test_no_scaled_row_is_longer_than_the_corner(
    rows: list[tuple[float, ...]], centered: bool
) -> None:
    kinds = {name: KINDS[name] for name in ("age", "change", "city", "member")}
    encoding = Encoding.of(kinds).to_unit(centered=centered)
    found = encoding(np.array(rows))
    squares = [math.fsum(entry * entry for entry in row) for row in found]
    assert max(squares) <= encoding.box.corner**2 + 1e-15 == 4 + 1e-15
    # each row by itself: whatever the others are
    np.testing.assert_array_equal(found[-1:], encoding(np.array(rows[-1:])))


def test_categories_count_in_full_half_way_of_the_numbers() -> None:
    numbers = {str(i): zd.number(0, 1) for i in range(16)}
    boxes = [Encoding.of(dict(list(numbers.items())[:k])).box for k in (1, 4, 16)]
    assert [box.half_way for box in boxes] == [1, 1, 2]
    assert [box.reach(Fraction(1, 4)) for box in boxes] == [0.25, 0.5, 1]
    city = {"city": KINDS["city"]}
    assert Encoding.of(city).box.half_way == Encoding.of(city).box.corner == 1
    both = Encoding.of({**numbers, **city}).box
    assert (both.half_way, both.corner) == (math.sqrt(5), math.sqrt(17))
    assert both.reach(Fraction(1, 2)) == math.sqrt(5)


@pytest.mark.parametrize("centered", [True, False])
def test_coefficients_in_units_give_the_same_scores(centered: bool) -> None:
    encoding = ENCODING.to_unit(centered=centered)
    rng = np.random.default_rng(3)
    rows = np.column_stack(
        [
            rng.uniform(0, 100, 50),
            rng.uniform(-10, 30, 50),
            *(rng.integers(0, size, 50) for size in (3, 2, 3, 12)),
        ]
    )
    lines, constants = rng.normal(size=(2, 10)), rng.normal(size=2)
    slopes, intercept = encoding.in_units(lines, constants)
    np.testing.assert_allclose(
        ENCODING(rows) @ slopes.T + intercept, encoding(rows) @ lines.T + constants, atol=1e-12
    )
    if not centered:  # lines through the origin stay so
        np.testing.assert_array_equal(intercept, constants)


def test_rows_to_predict_are_read_by_the_schema() -> None:
    names = ["age", "city", "member"]
    encoding = Encoding.of({name: KINDS[name] for name in names}).to_unit(centered=True)
    frame = pandas.DataFrame(
        {"member": ["yes", "no", None], "city": ["rome", "bonn", None], "age": ["20", 400, "x"]}
    )
    expected = [[20, 0, 1, 0, 1], [100, 0, 0, 1, 0], [50, 0, 0, 1, 0.5]]
    np.testing.assert_array_equal(encoding.read(frame), expected)
    np.testing.assert_array_equal(encoding.read(frame[names].to_numpy()), expected)
    np.testing.assert_array_equal(encoding.read(frame[names].to_numpy().tolist()), expected)
    closed = Encoding.of({"city": zd.category(["oslo", "rome"])})
    np.testing.assert_array_equal(closed.read([["oslo"], ["bonn"]]), [[1, 0], [0, 0]])
    with pytest.raises(zd.errors.ParameterError, match="3 columns"):
        encoding.read(np.zeros((2, 4)))
    with pytest.raises(zd.errors.ParameterError, match="age"):
        encoding.read(frame[["city", "member"]])


def test_texts_are_no_features() -> None:
    with pytest.raises(zd.errors.ParameterError, match="note"):
        Encoding.of({"note": zd.text(length=20)})
