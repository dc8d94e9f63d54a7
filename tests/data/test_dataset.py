"""Declared columns of any source: what is read, what stays private, and whose code reads it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import zerodelta as zd
from attacks.public_calls import CALLS
from data.opening import opened
from data.sources import HOLDERS, Holder, csv, relation
from golden.golden import CASES
from public import public
from zerodelta.data.arrays import ArraySource
from zerodelta.data.dataset import Dataset
from zerodelta.data.rowwise import Block
from zerodelta.data.source import Source, Ticket
from zerodelta.paper import algorithm_12_13 as algorithm_12
from zerodelta.privacy.steps import Status
from zerodelta.records import Certificate
from zerodelta.tasks.registry import verbs

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


TABLE = pa.table(dict(zip(("who", *COLUMNS), zip(*ROWS, strict=True), strict=True)))


def frame() -> Any:
    return pd.DataFrame(ROWS, columns=TABLE.column_names, dtype=object)


def quoted(rows: pa.Table, folder: Path) -> Path:
    path = csv(rows, folder)
    text = path.read_text().replace(",", '","').replace("\n", '"\n"')
    path.write_text('"' + text.removesuffix('"'))
    return path


KINDS = ("pandas objects", "csv", "parquet", "duckdb", "polars lazy")
sources = pytest.mark.parametrize(
    "source", [*map(HOLDERS.__getitem__, KINDS), quoted], ids=[*KINDS, "quoted csv"]
)


def table(people: Dataset) -> Any:
    return np.concatenate([np.empty((0, len(people.columns))), *opened(people).blocks()])


@sources
def test_every_source_is_read_alike(source: Holder, tmp_path: Path) -> None:
    people = zd.open(source(TABLE, tmp_path), columns=COLUMNS)
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
def test_a_unit_keeps_so_many_rows_whatever_the_source(source: Holder, tmp_path: Path) -> None:
    """The rule is fixed: the same rows of ann are kept from every source."""
    two = zd.open(source(TABLE, tmp_path), columns=COLUMNS, unit="who", max_rows=2)
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


def test_where_rows_come_and_go_their_number_is_not_asked_for(tmp_path: Path) -> None:
    people = zd.open(csv(TABLE, tmp_path), columns=COLUMNS, neighbors="add-remove")
    with pytest.raises(zd.errors.ParameterError, match="expected_rows"):
        zd.mean(people, "age", epsilon=1)


def test_the_certificate_says_who_is_protected_and_what_is_assumed(tmp_path: Path) -> None:
    def certificate(source: Any) -> zd.records.Certificate:
        return zd.mean(zd.open(source, columns=COLUMNS), "age", epsilon=1).certificate

    assert certificate(csv(TABLE, tmp_path)).summary.endswith(": proven")
    assert certificate(csv(TABLE, tmp_path)).row == "one line of the file"
    assert certificate(frame()).summary.endswith("proven under 1 assumption")
    assert certificate(relation(TABLE)).status.value == "asserted"


def test_columns_that_were_not_declared_are_refused_by_name(tmp_path: Path) -> None:
    people = zd.open(csv(TABLE, tmp_path), columns=COLUMNS)
    with pytest.raises(zd.errors.ParameterError, match="declared"):
        people["height"]
    with pytest.raises(zd.errors.ParameterError, match="height"):
        zd.open(csv(TABLE, tmp_path), columns={"height": zd.number(0, 1)})
    with pytest.raises(zd.errors.ParameterError, match="whose"):
        zd.open(csv(TABLE, tmp_path), columns=COLUMNS, unit="whose", max_rows=1)
    with pytest.raises(zd.errors.ParameterError, match="max_rows"):
        zd.open(csv(TABLE, tmp_path), columns=COLUMNS, unit="who")
    with pytest.raises(zd.errors.ParameterError, match="unit"):
        zd.open(csv(TABLE, tmp_path), columns=COLUMNS, max_rows=1)
    with pytest.raises(zd.errors.ParameterError, match="columns"):
        zd.open(csv(TABLE, tmp_path))


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


# -- sources of others ----------------------------------------------------------------------------


class Foreign(Source):
    """A source that somebody else wrote: it could count the rows it has seen."""

    def __init__(self, table: Any) -> None:
        self._table = np.asarray(table, dtype=np.float64)

    @property
    def rows(self) -> int:
        return len(self._table)

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(str(i) for i in range(self._table.shape[1]))

    def blocks(self, ticket: Ticket) -> Iterator[Block]:
        yield self._table.copy()


ONE, TWO = np.ones((200, 1)), np.ones((200, 2))
PREMISE = "the source's own code yields each row by itself, keeps no state and shows nothing"
ON_A_WORD = {"bounded_local_sensitivity", "propose_test_release", "select_model", "vote"}
"""Verbs that rest on functions of the caller, with the source among what they are given."""
OF_DATA_SETS = {"heavy_hitters", "table", "top_k"}
"""Verbs that need declared columns: they refuse a source of another's."""
METHODS = {
    (case.partition(", ")[0], case.partition(", method=")[2])
    for case in CASES
    if case.partition(", ")[0] in set(verbs()) - ON_A_WORD - OF_DATA_SETS
}
"""Every verb that reads a `Source`, and all of its methods."""
MORE: dict[str, dict[str, Any]] = {
    "select": {"sensitivity": None, "bounds": (0, 100)},
    "trimmed_mean": {"spread": "1/10"},
}
"""What a fuzzed call does not say."""


def ask(verb: str, method: str, source: Callable[[Any], Any]) -> Certificate:
    """Ask the fuzzed call of a verb of a source."""
    (rows, *others), options = CALLS[verb]
    if "universe" in options:
        rows, options = [0, 1, 2] * 20, {**options, "universe": 3}
    given = np.asarray(rows if verb != "select" else TWO, dtype=np.float64)
    chosen = {**options, **MORE.get(verb, {}), **({"method": method} if method else {})}
    release = public(verb)(source(given.reshape(len(given), -1)), *others, **chosen)
    certificate: Certificate = release.certificate
    return certificate


def test_a_verb_of_declared_columns_refuses_a_source_that_is_not_ours() -> None:
    with pytest.raises(zd.errors.ParameterError, match=r"zd\.open"):
        zd.table(Foreign(TWO), of={"0": "mean"}, bounds=(0, 1), epsilon=1)


@pytest.mark.parametrize(("verb", "method"), sorted(METHODS))
def test_a_source_that_is_not_ours_is_asserted_with_its_premise(verb: str, method: str) -> None:
    try:
        ours = ask(verb, method, ArraySource)
    except zd.errors.ParameterError as refused:
        if not re.match("method = .*one of", str(refused)):  # not offered for so many columns
            raise
        return
    foreign = ask(verb, method, Foreign)
    assert foreign.status is Status.ASSERTED
    assert set(foreign.assumed) - set(ours.assumed) == {PREMISE}
    assert foreign.assumed.count(PREMISE) == 1
    assert ours.status is Status.PROVEN
    assert foreign.assertions == 1
    assert foreign.summary.endswith("conditional on 1 caller assertion")
    zd.verify(foreign)


def test_scoring_fixed_candidates_of_a_foreign_source_names_its_premise() -> None:
    release = zd.select_model(
        Foreign(TWO), {"a": 0, "b": 1}, epsilon=1, score=lambda column, rows: rows[:, column]
    )
    assert release.certificate.status is Status.ASSERTED
    assert PREMISE in release.certificate.assumed


def test_the_paper_mode_of_a_foreign_source_is_asserted() -> None:
    class Iterable(Foreign):
        def __iter__(self) -> Iterator[float]:
            return iter([0.0] * 200)

        def __len__(self) -> int:
            return 200

    for rows in (Foreign(ONE), Iterable(ONE), ArraySource(ONE)):
        for release in (algorithm_12.mode, algorithm_12.embedded_mode):
            certificate = release(rows, universe=3, epsilon=1).certificate
            ours = isinstance(rows, ArraySource)
            assert certificate.status is (Status.PROVEN if ours else Status.ASSERTED)
            assert (PREMISE in certificate.assumed) is not ours
