"""Code of others that touches cells: libraries that panic, cells and containers that are tampered.

Nothing of it raises, prints, or runs where it need not; where it must run, the rows are asserted.
"""

from __future__ import annotations

import datetime
import os
import signal
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import zerodelta as zd
from data.opening import opened
from zerodelta.data.arrays import ArraySource
from zerodelta.data.cells import boolean, category, number
from zerodelta.data.columns import Unread, array_cells, is_known
from zerodelta.data.declare import as_pattern, day
from zerodelta.data.isolation import quietly
from zerodelta.data.units import unit_ids

FAR = 2**31 - 1
N = 60


@pytest.fixture(autouse=True)
def nothing_is_shown(capfd: pytest.CaptureFixture[str]) -> Iterator[None]:
    yield
    captured = capfd.readouterr()
    assert captured.out == captured.err == ""


# -- NumPy and pandas ---------------------------------------------------------------------------


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("shape", [(3,), (3, 1)])
def test_a_text_of_no_characters_is_missing(order: str, shape: tuple[int, ...]) -> None:
    codes = np.array([0x110000, ord("1"), 0x7FFFFFFF], dtype=f"{order}u4").reshape(*shape)
    texts = codes.view(f"{order}U1")
    assert zd.histogram(texts, universe=["1", "2"], epsilon=99).value.tolist() == [1, 0]
    assert 0 <= zd.mean(texts.reshape(-1), bounds=(0, 1), epsilon=99).value <= 1
    assert array_cells(texts).reshape(-1).tolist() == [None, "1", None]
    masked = np.ma.MaskedArray(texts, mask=np.zeros(shape, np.bool_))
    assert array_cells(masked).reshape(-1).tolist() == [None, "1", None]
    people = zd.open(texts, columns={"0": zd.category(["1", "2"])})
    assert zd.histogram(people, epsilon=99).value.tolist() == [1, 0]


@pytest.mark.parametrize("place", [0, 1])
def test_a_row_of_no_characters_changes_no_other(place: int) -> None:
    rows: list[Any] = [["1", "2"], ["1", "2"]]
    rows[place] = np.array([0x110000, ord("2")], dtype="u4").view("U1")
    expected = [["1", "1"], ["2", "2"]]
    expected[0][place] = None  # type: ignore[call-overload]
    assert [cells.tolist() for cells in Unread(rows).read()] == expected


def test_a_code_without_a_category_is_one_missing_cell() -> None:
    column = pd.Series(pd.Categorical.from_codes([0, 1, 0, 1], categories=["a", "b"]))
    codes = column.array._codes
    codes.flags.writeable = True
    codes[1:] = [2, -2, 1]
    assert Unread(column).read()[0].tolist() == ["a", None, None, "b"]


def test_the_label_of_a_row_decides_nothing() -> None:
    column = pd.Series([0.0, 1.0], index=["columns", "schema"])  # pandas has labels as attributes
    assert 0 <= zd.mean(column, bounds=(0, 1), epsilon=1).value <= 1


# -- Polars -----------------------------------------------------------------------------------


def dates(far: int = FAR, unit: Any = pl.Date) -> pl.Series:
    kind = pl.Int32 if unit == pl.Date else pl.Int64
    column: pl.Series = pl.Series("when", [far] + [0] * (N - 1), dtype=kind).cast(unit)
    return column


def no_text() -> Any:
    """Return texts, the first of which is none; files may hold it, and Arrow does not look."""
    places = pa.py_buffer(np.arange(N + 1, dtype=np.int32))
    return pa.StringArray.from_buffers(N, places, pa.py_buffer(b"\xff" + b"z" * (N - 1)))


PANICS: dict[str, pl.Series] = {
    "date": dates(),
    "datetime": dates(2**62, pl.Datetime("ms")),
    "zoned": dates(2**62, pl.Datetime("ms", "Europe/Oslo")),
    "duration": dates(2**62, pl.Duration("ms")),
    "list": dates().implode().extend(dates(0).implode()).gather([0] * N).alias("when"),
    "structure": pl.DataFrame({"a": dates()}).to_struct("when"),
    "text": pl.Series("when", no_text()),
    "category": pl.Series("when", no_text().dictionary_encode()),
}


@pytest.mark.parametrize("name", PANICS)
def test_a_date_that_python_has_not_raises_nowhere(name: str) -> None:
    column = PANICS[name]
    frame = pl.DataFrame({"when": column, "city": ["a", "b"] * (N // 2)})
    domain = {"when": ["a", "b"], "city": ["a", "b"]}
    lines: dict[str, Callable[[], Any]] = {
        "mode": lambda: zd.mode(column, universe=["a", "b"], epsilon=1),
        "histogram": lambda: zd.histogram(column, universe=["a", "b"], epsilon=1),
        "column": lambda: zd.histogram(frame, "when", universe=["a", "b"], epsilon=1),
        "queries": lambda: zd.answer_queries(frame, domain=domain, epsilon=1),
        "rows": lambda: zd.synthesize(frame, domain=domain, epsilon=1),
        "top": lambda: zd.top_k(column, k=1, universe=["a", "b"], epsilon=1),
        "paper": lambda: zd.paper.mode(column, universe=["a", "b"], epsilon=1),
    }
    for ask in lines.values():
        assert ask().certificate.status.value == "proven"
    features = np.zeros((N, 2))
    for model in (
        zd.sklearn.LogisticRegression(epsilon=1, data_norm=1, classes=["a", "b"]),
        zd.sklearn.NearestCentroid(epsilon=1, bounds=(0, 1), classes=["a", "b"]),
        zd.sklearn.LinearRegression(epsilon=1, data_norm=1, bounds_y=(0, 1)),
    ):
        assert model.fit(features, column).certificate_.status.value == "proven"


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("name", PANICS)
def test_a_date_that_python_has_not_is_a_missing_cell_of_a_data_set(name: str, lazy: bool) -> None:
    frame = pl.DataFrame({"when": PANICS[name]})
    kinds: dict[str, Any] = {
        "date": zd.date("1970-01-01", "1970-12-31"),
        "number": zd.number(0, 1),
        "category": zd.category(["a"]),
        "boolean": zd.boolean(),
    }
    for kind in kinds.values():
        people = zd.open(frame.lazy() if lazy else frame, columns={"when": kind})
        (block,) = opened(people).blocks()
        assert block.shape == (N, 1)
        assert np.isnan(block[0]).all()
        dated = kind is kinds["date"] and name in ("date", "datetime", "zoned")
        np.testing.assert_array_equal(block[1:, 0], 0 if dated else np.nan)
    texts = zd.open(frame, columns={"when": zd.text(20, alphabet="ab")}, unit="when", max_rows=1)
    assert zd.top_k(texts, "when", k=1, epsilon=1).certificate.status.value == "proven"


@pytest.mark.parametrize("kind", [pl.Date, pl.Datetime("ms"), pl.Datetime("us"), pl.Datetime("ns")])
@pytest.mark.parametrize("zone", [None, "Asia/Tokyo"])
def test_dates_of_polars_are_read_as_those_of_arrow(kind: Any, zone: str | None) -> None:
    when = [datetime.date(1960 + 3 * i, 1 + i % 12, 1 + i) for i in range(20)]
    column = pl.Series("when", [*when, None]).cast(kind)
    if zone is not None and kind != pl.Date:
        column = column.dt.replace_time_zone(zone)
    kinds = {"when": zd.date("1950-01-01", "2030-12-31", by="day")}
    found = [
        np.concatenate(list(opened(zd.open(source, columns=kinds)).blocks()))
        for source in (column, column.to_frame().to_arrow())
    ]
    assert np.isnan(found[0]).sum() == 1
    np.testing.assert_array_equal(found[0], found[1])


@pytest.mark.parametrize(
    "cells",
    [
        ["a", None, "1.5"],
        [b"a", None, b"\xff"],
        [True, None, False],
        [1, None, 2**63 - 1],
        [1.5, None, float("nan")],
        [None, None, None],
    ],
)
def test_other_cells_of_polars_are_what_they_were(cells: list[Any]) -> None:
    found = Unread(pl.Series("0", cells)).read()[0].tolist()
    assert [type(cell) for cell in found if cell == cell] == [
        type(cell) for cell in (cells if float not in map(type, cells) else [1.5]) if cell == cell
    ]
    assert [cell for cell in found if cell == cell and cell is not None] == [
        cell for cell in cells if cell == cell and cell is not None
    ]


# -- signals ----------------------------------------------------------------------------------


class Column:
    """A container of the caller's: `made` is what it is converted by."""

    def __init__(self, made: Callable[[], Any], shape: Any = (N,)) -> None:
        self._made, self.shape = made, shape

    def __array__(self, *_: Any, **__: Any) -> Any:
        return self._made()

    def __len__(self) -> int:
        return N

    def __iter__(self) -> Any:
        return iter(self._made())


def raising(kind: type[BaseException]) -> Callable[[], Any]:
    def made() -> Any:
        raise kind("s3cr3t")

    return made


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit, RuntimeError])
def test_what_a_container_raises_is_a_column_of_missing_cells(kind: type[BaseException]) -> None:
    given = Column(raising(kind))
    release = zd.histogram(given, universe=["a", "b"], epsilon=50, unknown="b")
    assert release.value.tolist() == [0, N]
    rows = np.zeros((N, 2))
    model = zd.sklearn.LogisticRegression(epsilon=1, data_norm=1, classes=["a", "b"])
    assert model.fit(rows, given).certificate_.status.value == "asserted"


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Started in the background a process ignores this signal."""
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, previous)


@pytest.mark.usefixtures("interruptible")
def test_a_signal_still_interrupts() -> None:
    def interrupted() -> Any:
        signal.raise_signal(signal.SIGINT)
        return np.zeros(N)

    with pytest.raises(KeyboardInterrupt) as told:
        zd.histogram(Column(interrupted), universe=["a", "b"], epsilon=1)
    assert told.value.args == ()
    with pytest.raises(KeyboardInterrupt):
        quietly(signal.raise_signal, signal.SIGINT)
    assert quietly(raising(KeyboardInterrupt), otherwise=3) == 3


# -- cells ------------------------------------------------------------------------------------


class Hostile:
    """Its code raises, whatever is asked; it is never run."""

    def __getattribute__(self, name: str) -> Any:
        raise SystemExit("s3cr3t")

    def __int__(self) -> Any:
        raise SystemExit("s3cr3t")

    __index__ = __eq__ = __lt__ = __hash__ = __format__ = __mod__ = __float__ = __int__  # type: ignore[assignment]


class Whole(int):
    def __index__(self) -> Any:
        raise SystemExit("s3cr3t")

    __eq__ = __lt__ = __hash__ = __le__ = __format__ = __index__  # type: ignore[assignment]


def tampered(kind: type, **parts: Any) -> Any:
    cell: Any = object.__new__(kind)
    for name, part in parts.items():
        object.__setattr__(cell, name, part)
    return cell


TAMPERED: dict[str, Callable[[], Any]] = {
    "uuid of nothing": lambda: tampered(UUID),
    "uuid of code": lambda: tampered(UUID, int=Hostile()),
    "uuid of a subclass": lambda: tampered(UUID, int=Whole(7)),
    "uuid of a text": lambda: tampered(UUID, int="s3cr3t"),
    "uuid too large": lambda: tampered(UUID, int=1 << 128),
    "uuid below 0": lambda: tampered(UUID, int=-1),
    "fraction of nothing": lambda: tampered(Fraction),
    "fraction of code": lambda: tampered(Fraction, _numerator=Hostile(), _denominator=1),
    "fraction over code": lambda: tampered(Fraction, _numerator=1, _denominator=Hostile()),
    "fraction of a subclass": lambda: tampered(Fraction, _numerator=Whole(1), _denominator=2),
    "fraction over 0": lambda: tampered(Fraction, _numerator=1, _denominator=0),
    "fraction over -1": lambda: tampered(Fraction, _numerator=1, _denominator=-1),
    "fraction of a text": lambda: tampered(Fraction, _numerator="1", _denominator=1),
}
"""Made anew in each test: others look at all objects that there are."""


@pytest.mark.parametrize("name", TAMPERED)
def test_a_tampered_cell_is_missing_and_none_of_its_code_runs(name: str) -> None:
    cell = TAMPERED[name]()
    assert np.isnan(number(cell))
    assert category(cell) is None
    assert category(cell, exact=True) is None
    assert category((cell,)) == (None,)
    assert np.isnan(boolean(cell))
    assert day(cell, as_pattern(None)) == day(None, as_pattern(None))
    listed = np.empty(N, dtype=object)
    listed.fill(cell)
    assert (unit_ids(listed) == unit_ids(np.array([None] * N))).all()
    people = zd.open(listed, columns={"0": zd.text(40)}, unit="0", max_rows=N)
    assert np.isnan(np.concatenate(list(opened(people).blocks()))).all()
    rows = [cell] + ["a"] * (N - 1)
    assert zd.histogram(rows, universe=["a"], epsilon=99).value.tolist() == [N - 1]
    assert 0 <= zd.mean(rows, bounds=(0, 1), epsilon=1).value <= 1
    assert zd.select([cell, 1], sensitivity=1, epsilon=99).value == 1


def test_a_plain_uuid_and_fraction_are_what_they_were() -> None:
    one = UUID("12345678-1234-5678-1234-567812345678")
    assert category(one) == category(one, exact=True) == str(one)
    assert category(UUID(int=0)) == "00000000-0000-0000-0000-000000000000"
    assert category(UUID(int=(1 << 128) - 1)) == "ffffffff-ffff-ffff-ffff-ffffffffffff"
    assert category(Fraction(6, 3)) == 2
    assert category(Fraction(1, 2)) == number(Fraction(1, 2)) == 0.5


def test_types_of_ids_are_compared_by_identity() -> None:
    """A type may have a hash of its own, which raises."""

    class Meta(type):
        def __hash__(cls) -> int:
            raise SystemExit("s3cr3t")

        def __eq__(cls, other: object) -> bool:
            raise SystemExit("s3cr3t")

    class Odd(metaclass=Meta):
        pass

    ids = [Odd(), *map(str, range(200))]
    people = zd.open(
        [[who, 1.0] for who in ids], columns={"1": zd.number(0, 1)}, unit="0", max_rows=1
    )
    assert people.rows == 201
    assert 0 <= zd.mean(people, "1", epsilon=1).value <= 1


@pytest.mark.parametrize("first", ["a query", b"x", 3, None, ()])
def test_a_pair_of_cells_is_not_asked_what_it_is(first: Any) -> None:
    """Two rows in a tuple are no query and its connection."""
    pytest.importorskip("duckdb")
    people = zd.open((first, Hostile()), columns={"0": zd.category(["a query"])})
    assert people.rows == 2
    again = zd.open([Hostile(), first], columns={"0": zd.category(["a query"])})
    assert again.rows == 2


# -- containers -------------------------------------------------------------------------------


class Mixing(Column):
    """Each of its cells depends on all others."""

    def __init__(self, cells: Any) -> None:
        super().__init__(lambda: np.full_like(cells, cells.max()), np.shape(cells))


class Frame:
    """A frame of the caller's, by the protocol of narwhals."""

    def __init__(self, native: Any) -> None:
        self._native = native

    def __narwhals_dataframe__(self) -> Any:
        import narwhals as nw

        return nw.from_native(self._native)._compliant_frame


class Masked(np.ma.MaskedArray):
    pass


class Tables(pd.DataFrame):  # type: ignore[misc]
    pass


class Kind(pd.api.extensions.ExtensionDtype):  # type: ignore[misc]
    name, type, kind, na_value = "kind", object, "O", None

    @classmethod
    def construct_array_type(cls) -> Any:
        return Taught


class Taught(pd.api.extensions.ExtensionArray):  # type: ignore[misc]
    def __init__(self, cells: Any) -> None:
        self._cells = np.asarray(cells, dtype=object)

    @classmethod
    def _from_sequence(cls, cells: Any, **_: Any) -> Any:
        return cls(cells)

    @property
    def dtype(self) -> Any:
        return Kind()

    def __len__(self) -> int:
        return len(self._cells)

    def __getitem__(self, item: Any) -> Any:
        found = self._cells[item]
        return Taught(found) if isinstance(found, np.ndarray) else found

    def isna(self) -> Any:
        return np.zeros(len(self), dtype=np.bool_)

    def copy(self) -> Any:
        return Taught(self._cells.copy())

    @property
    def nbytes(self) -> int:
        return self._cells.nbytes


class Inherited(pd.arrays.IntegerArray):  # type: ignore[misc]
    """Of a type that pandas wrote, with code of its own."""


class Extended(pa.ExtensionType):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__(pa.int64(), "ours")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage: Any, serialized: bytes) -> Any:
        return cls()


def extended() -> Any:
    return pa.ExtensionArray.from_storage(Extended(), pa.array([1] * N))


class Forged(Mixing):
    """It says that it is of a library; nothing there is it."""

    __module__ = "pandas"


ONES, TWO = np.ones(N), np.ones((N, 2))
ASSERTED: dict[str, Any] = {
    "array protocol": Mixing(ONES),
    "without a shape": Column(lambda: np.ones(N), shape=None),
    "forged": Forged(ONES),
    "range": range(N),
    "memory": memoryview(b"1" * N),
    "taught": pd.Series(Taught([1] * N)),
    "masked subclass": Masked(ONES),
    "pandas subclass": pd.Series(Inherited(np.ones(N, np.int64), np.zeros(N, np.bool_))),
    "arrow extension": extended(),
    "arrow extension inside": pa.StructArray.from_arrays([extended()], ["a"]),
}
PROVEN: dict[str, Any] = {
    "list": [1] * N,
    "tuple": (1,) * N,
    "array": ONES,
    "masked": np.ma.MaskedArray(ONES),
    "memory map": ONES.view(np.memmap),
    "pandas": pd.Series(ONES),
    "pandas objects": pd.Series([1] * N, dtype=object),
    "pandas category": pd.Series(["1"] * N, dtype="category"),
    "pandas text": pd.Series(["1"] * N, dtype="string"),
    "pandas nullable": pd.Series([1] * N, dtype="Int64"),
    "pandas arrow": pd.Series([1] * N, dtype="int64[pyarrow]"),
    "pandas sparse": pd.Series(pd.arrays.SparseArray([1] * N)),
    "pandas dates": pd.Series(pd.date_range("2020-01-01", periods=N)),
    "pandas periods": pd.Series(pd.period_range("2020-01", periods=N)),
    "pandas intervals": pd.Series(pd.interval_range(0, N)),
    "pandas index": pd.Index([1] * N),
    "pandas range": pd.RangeIndex(N),
    "pandas extension": pd.array([1] * N, dtype="Int64"),
    "polars": pl.Series([1] * N),
    "arrow": pa.array([1] * N),
    "arrow chunks": pa.chunked_array([[1] * N]),
    "arrow dictionary": pa.array(["1"] * N).dictionary_encode(),
    "arrow lists": pa.array([[1]] * N),
    "arrow structures": pa.array([{"a": 1}] * N),
    "arrow maps": pa.array([[("a", 1)]] * N, pa.map_(pa.string(), pa.int64())),
}


@pytest.mark.parametrize("name", [*ASSERTED, *PROVEN])
def test_what_no_library_that_we_know_reads_is_asserted(name: str) -> None:
    rows = ASSERTED[name] if name in ASSERTED else PROVEN[name]
    expected = "asserted" if name in ASSERTED else "proven"
    assert is_known(rows) is (name in PROVEN)
    domain = {"0": ["1", "2"]}
    asked: list[Any] = [
        zd.mode(rows, universe=["1", "2"], epsilon=1),
        zd.histogram(rows, universe=["1", "2"], epsilon=1),
    ]
    features = np.zeros((N, 2))
    model = zd.sklearn.LogisticRegression(epsilon=1, data_norm=1, classes=["1", "2"])
    asked.append(model.fit(features, rows).release_)
    if isinstance(rows, (np.ndarray, list, tuple, pd.Series, pl.Series, pa.Array)):
        series = rows.rename("0") if isinstance(rows, pd.Series) else rows
        asked.append(zd.synthesize(series, domain=domain, epsilon=1))
        people = zd.open(rows, columns={Unread(rows).names[0]: zd.category(["1", "2"])})
        asked.append(zd.mode(people, epsilon=1))
    assert {each.certificate.status.value for each in asked} == {expected}
    for each in asked:
        told = "the source's own code" in str(each.certificate.body())
        assert told is (expected == "asserted")


@pytest.mark.parametrize(
    "rows",
    [Frame(pd.DataFrame({"0": ONES})), Tables({"0": ONES}), pd.DataFrame({"0": Taught([1] * N)})],
)
def test_frames_of_others_are_asserted(rows: Any) -> None:
    assert not is_known(rows)
    kinds = {"0": zd.number(0, 1)}
    release = zd.mean(zd.open(rows, columns=kinds), "0", epsilon=1)
    assert release.certificate.status.value == "asserted"


def test_features_of_others_are_asserted() -> None:
    labels = [0, 1] * (N // 2)
    for rows in (Mixing(TWO), Column(lambda: TWO, shape=None), Mixing(np.ones((N, 3)))):
        made = zd.sklearn.LogisticRegression(epsilon=1, data_norm=1, classes=[0, 1])
        assert made.fit(rows, labels).certificate_.status.value == "asserted"
        centers = zd.sklearn.KMeans(n_clusters=2, epsilon=1, bounds=(0, 1)).fit(rows)
        assert centers.certificate_.status.value == "asserted"


class Listed(list):  # type: ignore[type-arg]
    """A list whose own methods mix its rows, or never end; those of `list` are used."""

    def __iter__(self) -> Any:
        raise SystemExit("s3cr3t")

    __getitem__ = __len__ = __reversed__ = __contains__ = __iter__  # type: ignore[assignment]


def test_a_list_is_read_by_the_methods_of_lists() -> None:
    items, rows = Listed(["a", "b"] * 30), Listed([Listed([1.0, 2.0])] * N)
    release = zd.histogram(items, universe=["a", "b"], epsilon=99)
    assert (release.value.tolist(), release.certificate.status.value) == ([30, 30], "proven")
    found = zd.mean(rows, bounds=(0, 2), epsilon=10**4)
    assert found.certificate.status.value == "proven"
    np.testing.assert_allclose(found.value, [1, 2], atol=0.1)
    people = zd.open(rows, columns={"1": zd.number(0, 2)})
    assert np.concatenate(list(opened(people).blocks())).tolist() == [[2.0]] * N
    model = zd.sklearn.LogisticRegression(epsilon=1, data_norm=1, classes=["a", "b"])
    assert model.fit(rows, items).certificate_.status.value == "proven"
    assert zd.synthesize(rows, domain={0: [1, 3], 1: [2, 4]}, epsilon=1).certificate.status


def test_what_can_be_read_only_once_is_refused_unread() -> None:
    def items() -> Iterator[str]:
        os._exit(7)
        yield "a"

    for ask in (
        lambda: zd.mode(items(), universe=["a"], epsilon=1),
        lambda: zd.histogram(items(), universe=["a"], epsilon=1),
        lambda: ArraySource.with_labels(np.zeros((3, 2)), items()),
    ):
        with pytest.raises(zd.errors.ParameterError, match="pass"):
            ask()


def test_a_container_that_lies_about_its_length_has_missing_cells() -> None:
    for shape in ((N,), (N - 1,), (N + 1,)):
        found = Unread(Column(lambda: np.ones(N), shape=shape)).read()
        expected = [1.0] * N if shape == (N,) else [None] * shape[0]
        assert [cells.tolist() for cells in found] == [expected]
    rows = [[1, 2]] * 3
    shut = Unread(rows)
    rows.append([3, 4])
    assert [cells.tolist() for cells in shut.read()] == [[None] * 3] * 2
