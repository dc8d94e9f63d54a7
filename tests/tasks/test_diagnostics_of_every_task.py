"""`diagnostics=` of every verb and estimator: a part of one certificate, and one run of a query."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import zerodelta as zd
import zerodelta.sklearn
from data.fake_spark import frame as spark_frame
from data.opening import opened
from golden.golden import call_of
from public import CALLABLE, public
from zerodelta.data import arrays as polars_reader
from zerodelta.data import readers as duckdb_reader
from zerodelta.data.arrays import ArraySource
from zerodelta.data.isolation import reveal
from zerodelta.data.spark import Cluster
from zerodelta.mechanisms.partition_noise import PartitionNoise
from zerodelta.mechanisms.stable_queries import Median
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.release import Diagnostics
from zerodelta.tasks.registry import verbs
from zerodelta.testing import replayed

SHARE = Fraction(1, 10)
NO_RELEASE_OF_ROWS = {"ApproxDP", "PureDP", "advise", "calibrate", "is_purifier", "plan", "purify"}
NO_RELEASE_OF_ROWS |= {"verify"}

COLUMNS: dict[str, Any] = {
    "age": zd.number(0, 100, missing=None),
    "income": zd.number(-1000, 3000),
    "member": zd.boolean(),
    "city": zd.category(["oslo", "rome"], other=True),
}
NUMBERS = ["age", "income", "member"]


def table(rows: int = 120) -> pa.Table:
    """A quarter of the ages is clipped, and a tenth of the incomes cannot be read."""
    place = np.arange(rows)
    income = [None if i % 10 == 7 else 10.0 * i for i in place.tolist()]
    age = np.where(place % 4 == 0, 120.0, place % 100)
    city = np.array(["oslo", "rome", "bonn"])[place % 3]
    named = {"who": place // 2, "age": age, "income": income, "member": place % 3 == 0}
    return pa.table({**named, "city": city})


def asked(data: Any, **options: Any) -> Any:
    publish = zd.Finite(["no", "yes"])
    study = zd.Study(data[NUMBERS], publish=publish, rounds=2, functions=False, **options)
    return study.run(lambda s: "yes" if s.mean("age") > 30 else "no")


def descended(data: Any, **options: Any) -> Any:
    columns = data[["age", "member"]]
    study = zd.Study(columns, publish=zd.Ball(1, 2), rounds=2, functions=False, **options)
    return study.minimize(zd.models.Logistic(), data_norm=1)


def selected(data: Any, *, train: bool = False, **options: Any) -> Any:
    if not train:
        return zd.select_model(
            data, {"a": 0, "b": 1}, columns=NUMBERS, score=lambda i, rows: rows[:, i], **options
        )
    networks = {
        name: zd.models.NetworkModel(
            features=["age"], label="member", lower=(0,), upper=(100,), units=units
        )
        for name, units in (("one", 1), ("two", 2))
    }
    return zd.select_model(data, networks, columns=["age", "member"], rounds=1, **options)


def fitted(name: str, *, label: str | None, **parameters: Any) -> Callable[..., Any]:
    def fit(data: Any, **options: Any) -> Any:
        model = getattr(zerodelta.sklearn, name)(**parameters, **options)
        features = data[[name for name in ("age", "income") if name != label]]
        model.fit(features, *([] if label is None else [data[label]]))
        assert model.diagnostics_ is model.release_.diagnostics
        return model.release_

    return fit


QUERY = Median(bounds=(0, 100), steps=50)
THRESHOLDS: Any = {"age": [30, 60]}
CASES: dict[str, tuple[str, Callable[..., Any]]] = {
    "Study": ("Study", asked),
    "Study, minimize": ("Study", descended),
    "answer_queries": ("answer_queries", lambda d, **o: zd.answer_queries(d, ["city"], **o)),
    "bounded_local_sensitivity": (
        "bounded_local_sensitivity",
        lambda d, **o: zd.queries.bounded_local_sensitivity(d, "age", query=QUERY, **o),
    ),
    "count": ("count", lambda d, **o: zd.count(d, "income", **o)),
    "decision_tree": (
        "decision_tree",
        lambda d, **o: zd.decision_tree(d, NUMBERS, label="member", thresholds=THRESHOLDS, **o),
    ),
    "histogram": ("histogram", lambda d, **o: zd.histogram(d, "city", **o)),
    "kmeans": ("kmeans", lambda d, **o: zd.kmeans(d, NUMBERS, clusters=2, **o)),
    "mean": ("mean", lambda d, **o: zd.mean(d, NUMBERS, **o)),
    "median": ("median", lambda d, **o: zd.median(d, "age", **o)),
    "mode": ("mode", lambda d, **o: zd.mode(d, "city", **o)),
    "propose_test_release": (
        "propose_test_release",
        lambda d, **o: zd.queries.propose_test_release(
            d, "age", query=QUERY, proposed_bound=1, **o
        ),
    ),
    "propose_test_release, own query": (
        "propose_test_release",
        lambda d, **o: zd.queries.propose_test_release(
            d["age"],
            query=lambda rows: np.mean(np.concatenate(list(rows.blocks()))),
            stability=lambda rows, bound: 0,
            proposed_bound=1,
            bounds=(0, 100),
            **o,
        ),
    ),
    "quantile": ("quantile", lambda d, **o: zd.quantile(d, "income", q="1/4", **o)),
    "select": (
        "select",
        lambda d, **o: zd.select(d, ["age", "member"], bounds=(0, 100), **o),
    ),
    "select_features": (
        "select_features",
        lambda d, **o: zd.select_features(d, NUMBERS, target="member", size=1, **o),
    ),
    "select_features, study": (
        "select_features",
        lambda d, **o: zd.select_features(d, NUMBERS, target="member", size=1, method="gram", **o),
    ),
    "select_model": ("select_model", selected),
    "select_model, study": ("select_model", lambda d, **o: selected(d, train=True, **o)),
    "sum": ("sum", lambda d, **o: zd.sum(d, "income", **o)),
    "synthesize": ("synthesize", lambda d, **o: zd.synthesize(d, ["city", "member"], **o)),
    "trimmed_mean": ("trimmed_mean", lambda d, **o: zd.trimmed_mean(d, "age", trim="1/10", **o)),
    "quantiles": ("quantiles", lambda d, **o: zd.quantiles(d, "age", q=[0.2, 0.5, 0.8], **o)),
    "cdf": ("cdf", lambda d, **o: zd.cdf(d, "age", at=[20, 50], **o)),
    "table": ("table", lambda d, **o: zd.table(d, by="city", of={"age": "mean"}, **o)),
    "table, filtered": (
        "table",
        lambda d, **o: zd.table(d.where("age >= 0"), of={"age": ["mean", "std"]}, **o),
    ),
    "variance": ("variance", lambda d, **o: zd.variance(d, "age", **o)),
    "std": ("std", lambda d, **o: zd.std(d, "age", **o)),
    "covariance": ("covariance", lambda d, **o: zd.covariance(d, ["age", "income"], **o)),
    "correlation": ("correlation", lambda d, **o: zd.correlation(d, ["age", "income"], **o)),
    "pca": ("pca", lambda d, **o: zd.pca(d, ["age", "income"], **o)),
    "top_k": ("top_k", lambda d, **o: zd.top_k(d, "city", k=2, **o)),
    "heavy_hitters": ("heavy_hitters", lambda d, **o: zd.heavy_hitters(d, "city", **o)),
    "vote": (
        "vote",
        lambda d, **o: zd.queries.vote(d, lambda rows: 0, NUMBERS, options=[0, 1], **o),
    ),
    "KMeans": ("KMeans", fitted("KMeans", label=None, n_clusters=2)),
    "LinearRegression": ("LinearRegression", fitted("LinearRegression", label="income")),
    "LogisticRegression": ("LogisticRegression", fitted("LogisticRegression", label="member")),
    "LogisticRegression, study": (
        "LogisticRegression",
        fitted("LogisticRegression", label="member", method="descent"),
    ),
    "NearestCentroid": ("NearestCentroid", fitted("NearestCentroid", label="member")),
    "PCA": ("PCA", fitted("PCA", label=None)),
    "RandomForestClassifier": (
        "RandomForestClassifier",
        fitted("RandomForestClassifier", label="member"),
    ),
    "MLPClassifier": ("MLPClassifier", fitted("MLPClassifier", label="member", rounds=2)),
    "SparseRegression": ("SparseRegression", fitted("SparseRegression", label="income")),
}


def as_in_golden(name: str) -> Callable[..., Any]:
    """Return a verb asked as in its golden case, of a data set with the same columns."""
    (_, *others), given = call_of(name)
    return lambda data, **options: public(name)(data, *others, **{**given, **options})


LISTED = {name for name, _ in CASES.values()}
CASES |= {name: (name, as_in_golden(name)) for name in verbs() if name not in LISTED}
every = pytest.mark.parametrize("case", CASES)


def public_names() -> set[str]:
    """All verbs and estimators that take an ε."""
    estimators = {name: getattr(zerodelta.sklearn, name) for name in zerodelta.sklearn.__all__}
    asking = {
        name
        for name, called in {**CALLABLE, **estimators}.items()
        if "epsilon" in _parameters(called)
    }
    return asking - NO_RELEASE_OF_ROWS


def _parameters(named: Callable[..., Any]) -> set[str]:
    return set(inspect.signature(named).parameters)


def test_every_verb_and_estimator_is_asked_here() -> None:
    assert public_names() == {name for name, _ in CASES.values()}


@every
def test_the_parts_add_up_to_the_epsilon_that_was_asked(case: str) -> None:
    name, verb = CASES[case]
    called = getattr(zerodelta.sklearn, name, None) or public(name)
    assert inspect.signature(called).parameters["diagnostics"].default is None
    release = verb(zd.open(table(), columns=COLUMNS), epsilon=2, diagnostics=SHARE)
    *parts, last = release.certificate.parts
    assert (sum(part.epsilon for part in parts), last.epsilon) == (2 * (1 - SHARE), 2 * SHARE)
    assert [step.theorem.partition("-")[0] for step in last.steps] == ["partition"]
    claim = zd.verify(release.certificate, epsilon=2)
    assert isinstance(claim, PureDP)
    assert claim.exact_epsilon == 2
    assert isinstance(release.diagnostics, Diagnostics)
    without = verb(zd.open(table(), columns=COLUMNS), epsilon=2)
    assert without.diagnostics is None
    assert len(without.certificate.parts) == len(parts)


@every
def test_without_their_noise_the_fractions_are_those_of_the_rows(
    case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PartitionNoise, "apply", lambda _self, sums, _bits: sums)
    _, verb = CASES[case]
    options = {"epsilon": 2, "diagnostics": SHARE}
    read = verb(zd.open(table(), columns=COLUMNS), **options).diagnostics
    judged = 1 - np.array([read.clipped, read.unreadable]).sum()
    assert read.used == pytest.approx(judged)
    # ages alone, incomes alone, cities and members; and both: no income is missing beside an age
    # that is clipped, 7 is odd
    known = [(1 / 4, 0.0), (0.0, 1 / 10), (0.0, 0.0), (1 / 4, 1 / 10)]
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
    _, verb = CASES[case]
    runs, data = Runs(monkeypatch), zd.open(SOURCES[source](), columns=COLUMNS)
    if source == "Spark" and case in ("top_k", "heavy_hitters"):
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
