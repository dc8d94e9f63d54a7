"""One cell: the grammar of numbers, categories and booleans, and arrays equal to their cells."""

from __future__ import annotations

import math
import warnings
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from data.odd_cells import ODD
from zerodelta.data.cells import LARGEST, boolean, category, number, numbers

NUMBERS: list[tuple[Any, float]] = [
    ("1", 1.0),
    (" +1.5e3 ", 1500.0),
    ("-.5", -0.5),
    ("5.", 5.0),
    ("1E-2", 0.01),
    ("0.1", 0.1),
    ("9007199254740993", 9007199254740992.0),  # half even
    ("1e400", LARGEST),
    ("-1e4000", -LARGEST),
    ("true", 1.0),
    ("FALSE", 0.0),
    (b"2.5", 2.5),
    (np.str_("2.5"), 2.5),
    (np.bytes_(b"2.5"), 2.5),
    (True, 1.0),
    (np.bool_(False), 0.0),
    (10**400, LARGEST),
    (-(10**400), -LARGEST),
    (2**53 + 1, 2.0**53),
    (np.uint64(2**64 - 1), 2.0**64),
    (math.inf, LARGEST),
    (np.float32(-math.inf), -LARGEST),
    (np.float32(0.1), float(np.float32(0.1))),
    (np.longdouble("1e4000"), LARGEST),
    (Decimal("0.1"), 0.1),
    (Decimal("-1e4000"), -LARGEST),
    (Decimal("Infinity"), LARGEST),
    (Fraction(1, 3), 1 / 3),
    (Fraction(-(10**400), 3), -LARGEST),
    (2 + 0j, 2.0),
    (np.complex64(2), 2.0),
]
MISSING: list[Any] = [
    *("", " ", "inf", "-inf", "nan", "NaN", "Infinity", "1_000", "0x10", "1,5", "１", "٣", "1 2"),
    *("1\n", "\t1", "+ 1", "--1", "1e", "e5", ".", "1.2.3", "yes", "x", "1d0", "1j", b"\xff"),
    *(None, math.nan, Decimal("NaN"), Decimal("sNaN"), 1 + 2j, complex(1, math.nan), [1], (1,), {}),
    *(np.datetime64("2020"), np.timedelta64(1, "s"), np.ones(1), bytearray(b"1"), type),
]


def same(found: float, expected: float) -> bool:
    return found == expected or (math.isnan(found) and math.isnan(expected))


@pytest.mark.parametrize(("cell", "expected"), NUMBERS, ids=repr)
def test_a_number_is_rounded_correctly_and_clipped(cell: Any, expected: float) -> None:
    assert number(cell) == expected


@pytest.mark.parametrize("cell", MISSING, ids=repr)
def test_what_spells_no_number_is_missing(cell: Any) -> None:
    assert math.isnan(number(cell))


@given(st.floats() | st.integers() | st.fractions() | st.booleans())
def test_numbers_and_the_texts_that_python_writes_for_them_are_one(value: Any) -> None:
    if isinstance(value, Fraction):
        assert number(value) == value.numerator / value.denominator
    elif value == value and abs(value) < math.inf:
        assert number(value) == number(str(value)) == number(f" {value} ".encode())
        assert category(value) == category(str(value)) == category(f" {value} ".encode())


@given(st.text(alphabet="0123456789.eE+-_x, \n１ntrufalsi"))
def test_a_text_is_a_number_only_if_python_reads_the_same_one(text: str) -> None:
    found = number(text)
    if not math.isnan(found) and text.strip(" ").lower() not in ("true", "false"):
        assert found == max(-LARGEST, min(LARGEST, float(text)))
        assert text.isascii()
        assert not set(text) & set("_x\nni")


KEYS: list[tuple[Any, Any]] = [
    ("a", "a"),
    (" a", " a"),
    ("True ", 1),
    ("tRuE", 1),
    (False, 0),
    ("01", 1),
    ("1.0", 1),
    (1.0, 1),
    (np.int8(1), 1),
    (b"1", 1),
    ("-0", 0),
    (-0.0, 0),
    ("0.10", 0.1),
    (np.float32(0.1), 0.1),
    (np.float16(0.1), 0.1),
    (Decimal("0.1"), 0.1),
    (Fraction(1, 10), 0.1),
    (2**60 + 1, 2**60 + 1),
    (str(2**60 + 1), 2**60 + 1),
    (Decimal(2**60 + 1), 2**60 + 1),
    (Fraction(2**60 + 1), 2**60 + 1),
    (1e22, 10**22),
    ("1e22", 10**22),
    (2.0**120, 1329227995784916 * 10**21),
    (2**120, 2**120),
    (math.inf, "inf"),
    ("inf", "inf"),
    ("-1e400", "-inf"),
    (np.float32(123456789), 123456790),  # its own shortest decimal
    (2 + 0j, 2),
    (np.complex64(0.1), 0.1),
    ("yes", "yes"),
    ("nan ", "nan "),
    ((1, "01", (True, None)), (1, 1, (1, None))),
]


@pytest.mark.parametrize(("cell", "key"), KEYS, ids=repr)
def test_a_category_is_a_text_or_the_shortest_decimal(cell: Any, key: Any) -> None:
    found = category(cell)
    assert found == key
    assert type(found) is type(key)


@pytest.mark.parametrize(
    "cell",
    [*("", "nan", "NaN", "null", "None", b"\xff", None, math.nan, Decimal("sNaN"), [1], {}, 1j)],
    ids=repr,
)
def test_what_is_no_category_is_missing(cell: Any) -> None:
    assert category(cell) is None


def test_long_integers_are_compared_digit_by_digit() -> None:
    whole = 10**5000 + 7
    text = "1" + "0" * 4999 + "7"
    assert category(whole) == category(f"+00{text}") == text
    assert category(-whole) == category(f"-{text}") == f"-{text}"
    assert category(10**599) == category("1" + "0" * 599) == 10**599
    assert category(10**600) == category("01" + "0" * 600) == "1" + "0" * 600
    deep: Any = 1
    for _ in range(10**5):
        deep = (deep,)
    assert isinstance(category(deep), tuple)  # read to a fixed depth


def test_an_exact_category_is_a_text() -> None:
    cells = ["01", "1", 1, np.int8(1), 1.5, np.float32(0.1), True, b"01", "true", 10**700]
    found = [category(cell, exact=True) for cell in cells]
    assert found[:-1] == ["01", "1", "1", "1", "1.5", "0.1", "True", "01", "true"]
    assert found[-1] == "1" + "0" * 700
    for cell in ("", "nan", None, math.nan, b"\xff", [1], object()):
        assert category(cell, exact=True) is None


def test_booleans() -> None:
    cell: Any
    for cell in (True, "true", "YES", b"yes", 1, 1.0, "1.0", " 1 ", np.int8(1), Decimal(1)):
        assert boolean(cell) == 1.0
    for cell in (False, "No", "FALSE", 0, -0.0, "0", "-0.0", np.bool_(False)):
        assert boolean(cell) == 0.0
    for cell in (2, 0.5, "y", "", None, math.nan, [1], b"\xff", "１"):
        assert math.isnan(boolean(cell))


ARRAYS = st.sampled_from([np.float64, np.float32, np.float16, np.longdouble, np.complex64]).flatmap(
    lambda kind: hnp.arrays(kind, st.integers(0, 20))
) | st.sampled_from(["?", "b", "B", "i8", "u8", ">f8", ">i4", "U5", "S5"]).flatmap(
    lambda kind: hnp.arrays(kind, st.integers(0, 20))
)


@given(ARRAYS)
def test_an_array_of_any_type_is_its_cells_one_by_one(array: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        expected = [number(cell) for cell in array]
        assert all(map(same, numbers(array).tolist(), expected))
        listed = np.fromiter(array, dtype=object, count=len(array))
        assert all(map(same, numbers(listed).tolist(), expected))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", ODD)
def test_no_cell_raises_or_warns_whatever_it_is(name: str) -> None:
    for read in (number, boolean):
        assert type(read(ODD[name])) is float
    for exact in (False, True):
        assert isinstance(category(ODD[name], exact=exact), (int, float, str, tuple, type(None)))


def test_an_integer_of_very_many_digits_is_missing_as_a_number_and_as_a_text(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All digits of a number are only written out where they are few enough to take no time."""
    longest = 10**30_000 - 1
    text = "9" * 30_000
    for sign in (1, -1):
        spelled = text if sign == 1 else f"-{text}"
        assert category(sign * longest) == category(spelled) == spelled
        assert category(Fraction(sign * longest)) == category(Decimal(spelled)) == spelled
    monkeypatch.setattr("zerodelta.data.cells._digits", lambda whole: pytest.fail("written out"))
    for sign in (1, -1):
        spelled = f"{'-' if sign < 0 else ''}1{'0' * 30_000}"
        for cell in (sign * (longest + 1), spelled, Decimal(spelled), spelled.encode()):
            assert category(cell) is None
    assert category(10**400_000) is category("7" * 400_000) is None
    assert number(10**400_000) == number("7" * 400_000) == LARGEST
