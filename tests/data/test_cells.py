"""One cell: numbers, categories, booleans and options, the same in every type of array."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import zerodelta as zd
from data.odd_cells import ODD, objects
from zerodelta.data.cells import LARGEST, OptionIndex, boolean, category, number, numbers
from zerodelta.data.keys import tally
from zerodelta.errors import ParameterError
from zerodelta.marginals.domain import as_domain
from zerodelta.paper.algorithm_12_13 import mode as paper_mode
from zerodelta.paper.algorithm_12_13 import stable_mode
from zerodelta.regression.rows import as_classes
from zerodelta.spaces import Finite
from zerodelta.spine.public_inputs import as_universe
from zerodelta.training.losses import Logistic, Multinomial

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


def test_a_number_is_rounded_correctly_and_clipped() -> None:
    assert [number(cell) for cell, _ in NUMBERS] == [value for _, value in NUMBERS]


def test_what_spells_no_number_is_missing() -> None:
    assert [cell for cell in MISSING if not math.isnan(number(cell))] == []


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
def test_no_cell_raises_or_warns_whatever_it_is() -> None:
    for name, cell in ODD.items():
        assert type(number(cell)) is type(boolean(cell)) is float, name
        for exact in (False, True):
            found = category(cell, exact=exact)
            assert isinstance(found, (int, float, str, tuple, type(None))), name


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


# -- options --------------------------------------------------------------------------------------


OPTIONS: list[Any] = [
    3,
    2**53,
    [0, 1, 2],
    ["0", "1", "2"],
    ["True", "False"],
    [0.1, 1.5, math.inf],
    ["a", 1, None, 2.5],
    ["b", 2**53 + 1, 2**53],
    [10**400, (1, 2), 1e300, -5, 2**63, 2**64 - 1, -(2**63)],
    [0, 2**40, -(2**40), 2.0**60],
    [0.1, 0.2, 1 / 3, 16777216, 65504, 1e-7, 123456790],
    ["f", "m", ""],
]
TYPES = ["f8", "f4", "f2", "g", "c8", "?", "b", "u1", "i4", "i8", "u8", ">f4", ">i8", "U4", "S4"]
NEAR = [0.0, 0.1, 0.2, 1 / 3, 1.0, 1.5, 2.0, 2.5, 5.0, 65504.0, 2.0**24, 2.0**53, 2.0**60, 1e300]
NEAR += [-5.0, math.inf, -math.inf, math.nan, 123456792.0, -0.0, 1e-7, 2.0**63, 2.0**64]


def one_by_one(options: OptionIndex, cells: Any) -> list[int]:
    return [-1 if (place := options.find(cell)) is None else place for cell in cells]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("options", OPTIONS, ids=repr)
@pytest.mark.parametrize("kind", ["f8", "f4", "f2", "g", "c8"])
def test_whole_arrays_of_floats_are_found_like_single_cells(kind: str, options: Any) -> None:
    with np.errstate(all="ignore"):
        cells = np.array(NEAR).astype(kind)
    found = OptionIndex(options)
    assert found.places(cells).tolist() == one_by_one(found, cells)
    listed = np.fromiter(cells, dtype=object, count=len(cells))
    assert found.places(listed).tolist() == one_by_one(found, cells)


@given(
    st.sampled_from(OPTIONS),
    st.sampled_from(TYPES).flatmap(lambda kind: hnp.arrays(kind, st.integers(0, 12))),
)
def test_whole_arrays_of_any_type_are_found_like_single_cells(options: Any, cells: Any) -> None:
    found = OptionIndex(options)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert found.places(cells).tolist() == one_by_one(found, cells)


@given(st.lists(st.floats(width=32, allow_nan=False), min_size=1, max_size=8, unique=True))
def test_a_float32_is_found_by_its_own_shortest_decimal(values: list[float]) -> None:
    cells = np.array(values, dtype=np.float32)
    keys = {str(cell) for cell in cells}
    texts = [str(cell) for cell in cells]
    if len(keys) == len(values) and not {"0.0", "-0.0"} <= keys:
        assert OptionIndex(texts).places(cells).tolist() == list(range(len(values)))


@pytest.mark.parametrize("size", [1, 3, 2**24 + 3, 2**53])
@pytest.mark.parametrize("kind", ["f8", "f4", "f2", "i8", "u8", "i1", "?"])
def test_integers_below_a_size_are_found_like_single_cells(kind: str, size: int) -> None:
    values = [0, 1, 2, 3, 127, 2**24 - 1, 2**24, 2**24 + 2, 2**53 - 1, 2**53, 2**63]
    with np.errstate(all="ignore"):
        cells = np.array(values, dtype=np.uint64).astype(kind)
    found = OptionIndex(size)
    assert found.places(cells).tolist() == one_by_one(found, cells)


ALIKE: list[list[Any]] = [
    ["1", "1.0"],
    ["1", 1],
    [True, "1"],
    ["true", "TRUE"],
    ["True", "1"],
    ["01", "1"],
    ["nan", None],
    ["", None],
    ["", "nan"],
    ["0.1", 0.1],
    ["0.10", "0.1"],
    ["1e400", "inf"],
    ["1e22", 10**22],
    ["a", 0.5, "0.50"],
    [np.float64(2**120), 2**120],
    [(1, 2), ("1", 2)],
]


def tree(options: list[Any]) -> Any:
    classes = (options[0], options[1])
    return zd.decision_tree(np.zeros((5, 2)), thresholds={0: [0.5]}, classes=classes, epsilon=1)


PLACES: dict[str, Callable[[list[Any]], Any]] = {
    "OptionIndex": OptionIndex,
    "histogram": lambda options: zd.histogram([1], universe=options, epsilon=1),
    "mode": lambda options: zd.mode([1], universe=options, epsilon=1),
    "paper mode": lambda options: paper_mode([1], universe=options, epsilon=1),
    "answer_queries": lambda options: zd.answer_queries(
        np.zeros((3, 1)), domain={0: options}, workload=1, epsilon=1
    ),
    "synthesize": lambda options: zd.synthesize(np.zeros((3, 1)), domain={0: options}, epsilon=1),
    "classes": as_classes,
    "classifier": lambda options: zd.sklearn.LogisticRegression(
        epsilon=1, data_norm=1.0, classes=options
    ).fit(np.zeros((4, 1)), [0, 1, 0, 1]),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("options", ALIKE, ids=repr)
def test_options_that_are_read_alike_are_refused(options: list[Any], place: str) -> None:
    if place == "OptionIndex" and options[1] == 2**120:
        assert OptionIndex(options).find(2**120) == 1  # unequal decimals, unlike the hashes
        return
    if place in ("classes", "classifier") and options[1] == 2**120:
        options = [2**120, str(2**120)]
    with pytest.raises(ParameterError, match=r"differ|distinct|read"):
        PLACES[place](options)


@pytest.mark.parametrize("options", [["1", "1.0"], [2**60, 2**60 + 1], [1, True]], ids=repr)
def test_classes_that_are_one_float_are_refused(options: list[Any]) -> None:
    for refuse in (
        lambda: tree(options),
        lambda: Logistic(classes=(options[0], options[1])),
        lambda: Multinomial(classes=(5, options[0], options[1])),
    ):
        with pytest.raises(ParameterError, match=r"^classes = "):
            refuse()


def test_an_option_that_no_cell_can_be_is_refused() -> None:
    for option in (object(), [1], np.datetime64("2020")):
        with pytest.raises(ParameterError, match=r"^classes = "):
            as_classes([1, option])


def test_missing_cells_are_the_option_none_and_no_other() -> None:
    cells = [None, math.nan, pd.NA, "nan", "", b"\xff", [1], object(), "x", "a"]
    assert one_by_one(OptionIndex(["a", None]), cells) == [1, 1, 1, 1, 1, 1, 1, 1, -1, 0]
    assert one_by_one(OptionIndex(["a", "b"]), cells) == [-1] * 9 + [0]


@pytest.mark.filterwarnings("error")
def test_one_none_loses_no_other_row_of_short_floats() -> None:
    """As a list, as objects, as a frame: histogram, tables and labels."""
    short = [np.float32(0.1), np.float32(0.2), np.float32(0.1)]
    options = [0.1, 0.2]
    columns: list[Any] = [short, [*short, None], np.array(short), pd.Series(short)]
    columns += [pd.Series([*short, None], dtype=object), pd.Series([*short, None], dtype="float32")]
    columns += [np.array([*short, None], dtype=object)]
    for column in columns:
        assert tally(column, as_universe(options)).dense(2).tolist() == [2, 1]
        assert stable_mode(column, Finite(options)) == (0, 0)


def test_equal_hashes_do_not_merge_cells() -> None:
    """A float and an integer may be equal, and have different decimals."""
    large = np.float64(2**120)
    for cells in ([large, 2**120], [2**120, large]):
        assert tally(cells, as_universe([2**120])).dense(1).tolist() == [1]
        assert tally(cells, as_universe([float(large)])).dense(1).tolist() == [1]


@pytest.mark.filterwarnings("error")
def test_no_odd_cell_raises_when_it_is_looked_up() -> None:
    for found in map(OptionIndex, OPTIONS):
        for name, odd in ODD.items():
            cells = objects([0, odd, "a"])
            assert found.places(cells)[[0, 2]].tolist() == one_by_one(found, [0, "a"]), name


def test_a_domain_names_the_column_whose_categories_are_read_alike() -> None:
    with pytest.raises(ParameterError, match="domain of 'city'"):
        as_domain({"age": 3, "city": ["1", "01"]})


def test_exact_integers_and_fractions_are_found() -> None:
    found = OptionIndex([2**60, 2**60 + 1, Fraction(1, 2)])
    assert found.places(np.array([2**60 + 1, 2**60, 5])).tolist() == [1, 0, -1]
    assert found.places(np.array([2**60 + 1, 2**60], dtype=np.uint64)).tolist() == [1, 0]
    assert one_by_one(found, [str(2**60 + 1), "0.5", 0.5, np.float16(0.5)]) == [1, 2, 2, 2]
