"""`diagnostics=` of every verb and estimator: a part of one certificate, and one run of a query."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pytest

import zerodelta as zd
import zerodelta.sklearn
from data.fake_spark import frame as spark_frame
from data.opening import opened
from golden.on_people import RELEASES, table
from golden.rows import COLUMNS
from public import CALLABLE, public
from zerodelta.data import arrays as polars_reader
from zerodelta.data import readers as duckdb_reader
from zerodelta.data.arrays import ArraySource
from zerodelta.data.isolation import reveal
from zerodelta.data.spark import Cluster
from zerodelta.mechanisms.partition_noise import PartitionNoise
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.release import Diagnostics
from zerodelta.testing import replayed

SHARE = Fraction(1, 10)
NO_RELEASE_OF_ROWS = {"ApproxDP", "PureDP", "advise", "calibrate", "is_purifier", "plan", "purify"}
NO_RELEASE_OF_ROWS |= {"verify"}

NUMBERS = ["age", "income", "member"]


def descended(data: Any, **options: Any) -> Any:
    columns = data[["age", "member"]]
    study = zd.Study(columns, publish=zd.Ball(1, 2), rounds=2, functions=False, **options)
    return study.minimize(zd.models.Logistic(), data_norm=1)


CASES: dict[str, Callable[..., Any]] = {**RELEASES, "Study, minimize": descended}
every = pytest.mark.parametrize("case", CASES)


def called(case: str) -> str:
    """Return the public name that a case calls."""
    return case.partition(", ")[0].removeprefix("sklearn.")


def public_names() -> set[str]:
    """All verbs and estimators that take an ε."""
    estimators = {name: getattr(zerodelta.sklearn, name) for name in zerodelta.sklearn.__all__}
    asking = {
        name
        for name, found in {**CALLABLE, **estimators}.items()
        if "epsilon" in _parameters(found)
    }
    return asking - NO_RELEASE_OF_ROWS


def _parameters(named: Callable[..., Any]) -> set[str]:
    return set(inspect.signature(named).parameters)


def test_every_verb_and_estimator_is_asked_here() -> None:
    """Of a whole data set without any option: that is a case of tests/golden."""
    assert public_names() == set(map(called, CASES))


@every
def test_the_parts_add_up_to_the_epsilon_that_was_asked(case: str) -> None:
    verb = CASES[case]
    name = called(case)
    found = getattr(zerodelta.sklearn, name, None) or public(name)
    assert inspect.signature(found).parameters["diagnostics"].default is None
    release = verb(zd.open(table(), columns=COLUMNS), epsilon=2, diagnostics=SHARE)
    *parts, last = release.certificate.parts
    assert (sum(part.epsilon for part in parts), last.epsilon) == (2 * (1 - SHARE), 2 * SHARE)
    assert [step.theorem.partition("-")[0] for step in last.steps] == ["partition"]
    claim = zd.verify(release.certificate, epsilon=2)
    assert isinstance(claim, PureDP)
    assert claim.exact_epsilon == 2
    assert isinstance(release.diagnostics, Diagnostics)
    without = verb(zd.open(table(), columns=COLUMNS), epsilon=2, diagnostics=None)
    assert without.diagnostics is None
    assert len(without.certificate.parts) == len(parts)


@every
def test_without_their_noise_the_fractions_are_those_of_the_rows(
    case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PartitionNoise, "apply", lambda _self, sums, _bits: sums)
    verb = CASES[case]
    options = {"epsilon": 2, "diagnostics": SHARE}
    read = verb(zd.open(table(), columns=COLUMNS), **options).diagnostics
    judged = 1 - np.array([read.clipped, read.unreadable]).sum()
    assert read.used == pytest.approx(judged)
    # ages alone, incomes alone, cities and members; both: no income is missing beside an age
    # that is clipped, 7 is odd; notes alone, of which "" and "milk" are no keys, and beside ages;
    # incomes with bounds of their own
    known = [(1 / 4, 0.0), (0.0, 1 / 10), (0.0, 0.0), (1 / 4, 1 / 10)]
    known += [(0.0, 2 / 5), (3 / 20, 2 / 5), (9 / 10, 1 / 10)]
    assert (read.clipped, read.unreadable) in [pytest.approx(each) for each in known]


class Runs:
    """How often rows of a query were asked for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.number = 0
        for reader in (duckdb_reader, polars_reader):
            monkeypatch.setattr(reader, "_rows", self._counting(reader._rows))
        monkeypatch.setattr(Cluster, "mapped", self._counting(Cluster.mapped))

    def _counting(self, rows: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any) -> Any:
            self.number += 1
            return rows(*arguments)

        return counted


SOURCES: dict[str, Callable[[], Any]] = {
    "DuckDB": lambda: duckdb.from_arrow(table()),
    "Polars": lambda: pl.from_arrow(table()).lazy(),  # type: ignore[union-attr]
    "Spark": lambda: spark_frame(table(), partitions=2),
}


@every
@pytest.mark.parametrize("source", SOURCES)
def test_a_query_is_run_once_for_a_ticket(
    case: str, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    verb = CASES[case]
    runs, data = Runs(monkeypatch), zd.open(SOURCES[source](), columns=COLUMNS)
    counts_keys = called(case) in ("top_k", "heavy_hitters") or case == "table, text keys"
    if source == "Spark" and counts_keys:
        with pytest.raises(zd.errors.ParameterError, match="not counted on a cluster"):
            verb(data, epsilon=2, diagnostics=SHARE)
        return
    release = verb(data, epsilon=2, diagnostics=SHARE)
    assert runs.number == 1
    assert isinstance(release.diagnostics, Diagnostics)


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("where", [None, "city == 'oslo'"])
@pytest.mark.parametrize("who", [{}, {"unit": "who", "max_rows": 1, "units": 60}])
def test_the_copy_has_the_rows_of_a_plain_scan(
    source: str, where: str | None, who: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for given in (table(), SOURCES[source]()):
        runs = Runs(monkeypatch)
        data = zd.open(given, columns=COLUMNS, **who)
        chosen = data if where is None else data.where(where)
        options: dict[str, Any] = {"epsilon": 2, "diagnostics": SHARE}
        with replayed("a release"):
            releases = [
                zd.mean(chosen, ["income", "age"], **options),
                zd.histogram(chosen, "city", **options),  # three codes, as there are three readings
            ]
        found.append(([(list(each.value), each.diagnostics) for each in releases], runs.number))
    (plain, none), (queried, runs_of_two) = found
    assert plain == queried
    assert (none, runs_of_two) == (0, 2)


def test_columns_of_one_copy_have_their_own_counts() -> None:
    rows = np.array([[0.0, 2.0], [1.0, 2.0], [1.0, np.nan]])
    copied = opened(ArraySource(rows), keep=True)
    first, last = (copied.chosen((name,), may_miss=False) for name in copied.columns)
    assert first.counts(0, 3).tolist() == [1, 2, 0]
    assert last.counts(0, 3).tolist() == [0, 0, 2]
    assert first.counts(0, 3).tolist() == [1, 2, 0]
    turned = copied.chosen(copied.columns[::-1], may_miss=False)
    np.testing.assert_array_equal(np.concatenate(list(turned.blocks())), rows[:, ::-1])
    assert turned.counts(1, 3).tolist() == [1, 2, 0]


def test_a_program_cannot_change_how_rows_are_said_to_be_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The fractions do not go through the channel: they are read before an answer is there."""
    monkeypatch.setattr(PartitionNoise, "apply", lambda _self, sums, _bits: sums)
    rows = np.full((100, 1), 0.5)
    options: dict[str, Any] = {"publish": zd.Finite(2), "rounds": 1, "bounds": (0, 1)}
    study = zd.Study(rows, epsilon=1, diagnostics=SHARE, **options)

    def program(asked: Any) -> int:
        answer = asked.mean(0)
        rows[:] = 7.0 if reveal(answer) > 0 else 8.0
        return 0

    release = study.run(program, rehearse=False)
    assert release.diagnostics == Diagnostics(used=1.0, clipped=0.0, unreadable=0.0)


def test_a_rehearsal_reads_no_row() -> None:
    seen: list[Any] = []
    study = zd.Study(
        zd.open(table(), columns=COLUMNS)[NUMBERS],
        epsilon=1,
        publish=zd.Finite(2),
        rounds=1,
        diagnostics=SHARE,
    )

    def program(asked: Any) -> None:
        seen.append(asked._opened.ticket.used)
        asked.mean("age")
        seen.append(asked._opened.ticket.used)
        asked.publish(1)

    release = study.run(program)
    assert seen == [False, False, False, True]
    assert release.diagnostics is not None
    assert release.diagnostics.used == release.diagnostics.used
