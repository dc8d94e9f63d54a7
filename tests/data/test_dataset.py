"""Declared columns of any source: what is read, what counts nowhere, and what stays private."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zerodelta as zd
from data.opening import opened
from zerodelta.data.dataset import Dataset

pandas = pytest.importorskip("pandas")

COLUMNS: dict[str, Any] = {
    "age": zd.number(0, 120),
    "city": zd.category(["oslo", "rome"], other=True),
    "member": zd.boolean(),
}
ROWS = [
    ("ann", 17, "oslo", True),
    ("ann", 30, "rome", False),
    ("bob", 40, "paris", True),
    ("ann", 50, "oslo", None),
    (None, None, "oslo", True),
    ("bob", 60, None, False),
]
NAN = float("nan")


def frame() -> Any:
    return pandas.DataFrame(ROWS, columns=["who", "age", "city", "member"]).astype(object)


def csv(folder: Path) -> Any:
    path = folder / "people.csv"
    lines = ["who,age,city,member"]
    lines += [",".join("" if cell is None else str(cell) for cell in row) for row in ROWS]
    path.write_text("\n".join(lines) + "\n")
    return path


def quoted(folder: Path) -> Any:
    path = csv(folder)
    text = path.read_text().replace(",", '","').replace("\n", '"\n"')
    path.write_text('"' + text.removesuffix('"'))
    return path


def parquet(folder: Path) -> Any:
    table = frame().convert_dtypes()
    path = folder / "people.parquet"
    pytest.importorskip("pyarrow")
    table.to_parquet(path)
    return path


def sql(folder: Path) -> Any:
    duckdb = pytest.importorskip("duckdb")
    return duckdb.sql(f"select * from '{parquet(folder)}'")


def lazy(folder: Path) -> Any:
    return pytest.importorskip("polars").scan_parquet(parquet(folder))


SOURCES: dict[str, Callable[[Path], Any]] = {
    "frame": lambda _folder: frame(),
    "csv": csv,
    "quoted csv": quoted,
    "parquet": parquet,
    "duckdb": sql,
    "polars": lazy,
}
sources = pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)


def table(people: Dataset) -> Any:
    return np.concatenate([np.empty((0, len(people.columns))), *opened(people).blocks()])


@sources
def test_every_source_is_read_alike(source: Callable[[Path], Any], tmp_path: Path) -> None:
    people = zd.open(source(tmp_path), columns=COLUMNS)
    np.testing.assert_array_equal(
        table(people),
        [[17, 0, 1], [30, 1, 0], [40, 2, 1], [50, 0, NAN], [NAN, 0, 1], [60, 2, 0]],
    )
    np.testing.assert_array_equal(table(people["city"]), [[0], [1], [2], [0], [0], [2]])
    np.testing.assert_array_equal(
        table(people[["member", "age"]].where("age >= 40")),
        [[NAN, NAN], [NAN, NAN], [1, 40], [NAN, 50], [NAN, NAN], [0, 60]],
    )
    assert people.rows == 6
    assert people.row_count_is_public


@sources
def test_a_unit_keeps_so_many_rows_whatever_the_source(
    source: Callable[[Path], Any], tmp_path: Path
) -> None:
    """The rule is fixed: the same rows of ann are kept from every source."""
    two = zd.open(source(tmp_path), columns=COLUMNS, unit="who", max_rows=2)
    ages = table(two["age"])[:, 0]
    assert len(ages) == 5  # two of ann's three rows, bob's two, and the one without an id
    assert {40.0, 60.0} < set(ages[~np.isnan(ages)])
    assert np.isnan(ages).sum() == 1
    assert set(ages[~np.isnan(ages)]) == KEPT_OF_ANN | {40.0, 60.0}
    assert (two.rows, two.row_count_is_public) == (3 * 2, False)


KEPT_OF_ANN = {
    age
    for age in table(
        zd.open(frame(), columns=COLUMNS, unit="who", max_rows=2)["age"].where("age != 40")
    )[:, 0]
    if age in (17.0, 30.0, 50.0)
}


def test_filters_come_after_the_bound() -> None:
    """If the filter came first, one unit could bring other rows of its own into the release."""
    people = zd.open(frame(), columns=COLUMNS, unit="who", max_rows=1)
    kept = {age for age in table(people["age"])[:, 0] if age in (17.0, 30.0, 50.0)}
    (of_ann,) = kept
    others = {17.0, 30.0, 50.0} - kept
    left = table(people["age"].where(f"age != {of_ann:g}"))[:, 0]
    assert not others & set(left)


def test_nothing_tells_how_many_rows_a_filter_leaves() -> None:
    none, some = (zd.open(frame(), columns=COLUMNS).where(f"age > {age}") for age in (110, 1))
    assert none.rows == some.rows == 6
    assert repr(none).replace("110", "1") == repr(some)
    assert [len(block) for block in opened(none).blocks()] == [6]
    with pytest.raises(TypeError):
        len(none)  # type: ignore[arg-type]
    for people in (none, some):
        assert isinstance(zd.count(people, epsilon=1).value, int)
        assert 0 <= zd.mean(people, "age", epsilon=1).value <= 120


def test_a_guess_stands_in_only_where_the_number_is_private() -> None:
    people = zd.open(frame(), columns=COLUMNS, expected_rows=99)
    assert (people.rows, people.row_count_is_public) == (6, True)
    assert zd.count(people, epsilon=1).value == 6
    adults = people.where("age >= 18")
    assert (adults.rows, adults.row_count_is_public) == (99, False)
    fewer = people.where("age >= 18", expected_rows=3)
    assert (fewer.rows, fewer.row_count_is_public) == (3, False)
    customers = zd.open(frame(), columns=COLUMNS, unit="who", max_rows=2, expected_rows=7)
    assert (customers.rows, customers.row_count_is_public) == (7, False)


def test_a_public_number_of_rows_costs_nothing() -> None:
    release = zd.count(zd.open(frame(), columns=COLUMNS), epsilon=1)
    assert (release.value, release.error) == (6, 0.0)
    assert zd.verify(release.certificate) == zd.purification.PureDP(0)


def test_where_rows_come_and_go_their_number_is_not_asked_for(tmp_path: Path) -> None:
    people = zd.open(csv(tmp_path), columns=COLUMNS, neighbors="add-remove")
    with pytest.raises(zd.errors.ParameterError, match="expected_rows"):
        zd.mean(people, "age", epsilon=1)
    known = zd.open(csv(tmp_path), columns=COLUMNS, neighbors="add-remove", expected_rows=10)
    certificate = zd.mean(known, "age", epsilon=1).certificate
    assert zd.verify(certificate, epsilon=1, neighbors="add-remove").neighbors.value == "add-remove"
    assert zd.verify(certificate, epsilon=2).exact_epsilon == 1  # type: ignore[attr-defined]


def test_the_certificate_says_who_is_protected_and_what_is_assumed(tmp_path: Path) -> None:
    def certificate(source: Any, **options: Any) -> zd.records.Certificate:
        return zd.mean(zd.open(source, columns=COLUMNS, **options), "age", epsilon=1).certificate

    assert certificate(csv(tmp_path)).summary.endswith(": proven")
    assert certificate(csv(tmp_path)).row == "one line of the file"
    assert certificate(frame()).summary.endswith("proven under 1 assumption")
    assert certificate(sql(tmp_path)).status.value == "asserted"
    unit = certificate(csv(tmp_path), unit="who", max_rows=2)
    assert (unit.unit, unit.row) == ("who", "one who, at most 2 of its rows")
    assert zd.verify(unit, unit="who", epsilon=1) == zd.purification.PureDP(1)
    with pytest.raises(zd.errors.CertificateError, match="who"):
        zd.verify(unit, epsilon=1)


def test_columns_that_were_not_declared_are_refused_by_name(tmp_path: Path) -> None:
    people = zd.open(csv(tmp_path), columns=COLUMNS)
    with pytest.raises(zd.errors.ParameterError, match="declared"):
        people["height"]
    with pytest.raises(zd.errors.ParameterError, match="height"):
        zd.open(csv(tmp_path), columns={"height": zd.number(0, 1)})
    with pytest.raises(zd.errors.ParameterError, match="whose"):
        zd.open(csv(tmp_path), columns=COLUMNS, unit="whose", max_rows=1)
    with pytest.raises(zd.errors.ParameterError, match="max_rows"):
        zd.open(csv(tmp_path), columns=COLUMNS, unit="who")
    with pytest.raises(zd.errors.ParameterError, match="unit"):
        zd.open(csv(tmp_path), columns=COLUMNS, max_rows=1)
    with pytest.raises(zd.errors.ParameterError, match="columns"):
        zd.open(csv(tmp_path))


def test_columns_of_two_data_sets_are_not_put_together() -> None:
    first, second = (zd.open(frame(), columns=COLUMNS) for _ in range(2))
    with pytest.raises(zd.errors.ParameterError, match="same data set"):
        first["age"].with_columns_of(second["member"])
    with pytest.raises(zd.errors.ParameterError, match="same data set"):
        first["age"].with_columns_of(first["member"].where("age > 3"))
    assert first["age"].with_columns_of(first["member"]).columns == ("age", "member")


def test_a_data_set_shows_what_was_declared_and_no_row() -> None:
    people = zd.open(frame(), columns=COLUMNS, unit="who", max_rows=2, name="people")
    shown = repr(people.where("member"))
    for text in ("people", "number(0, 120)", "where member", "one who, at most 2 of its rows"):
        assert text in shown
    assert "ann" not in shown
    assert "paris" not in shown
