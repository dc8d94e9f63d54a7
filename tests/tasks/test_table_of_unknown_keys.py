"""Tables by keys that nobody listed: exact on all neighbors of tiny data, values, one reading."""

from __future__ import annotations

import itertools
import string
from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import zerodelta as zd
from mechanisms.exact_laws import laplace_law, published_law
from purity import assert_pure
from sampling import Replace
from tasks.test_quantiles import spied
from tasks.test_table_is_private import Handed, handed, norm
from zerodelta.mechanisms import quantile_plan
from zerodelta.mechanisms.key_noise import UnknownKeys
from zerodelta.tables.grouped import Table

__all__ = ["handed"]  # a fixture

EPSILON = Fraction(3, 4)
HALF = EPSILON / 2
TINY = zd.text(1, alphabet="ab")
KINDS = {"name": TINY, "y": zd.number(-1, 1, missing=None), "keep": zd.boolean()}
Row = tuple[str, float, bool]
Rows = tuple[Row, ...]
ALL: list[Row] = [(n, y, True) for n in "abc" for y in (-1.0, 1.0)]
FOUND: list[list[tuple[str, int]]] = [[], [("a", 9)], [("b", 9)], [("a", 9), ("b", 9)]]
SURE = "1/10000000"
NAMES = zd.text(12, alphabet=string.ascii_lowercase)


@pytest.fixture
def finding(monkeypatch: pytest.MonkeyPatch) -> tuple[list[Any], list[Any]]:
    """What is asked for keys, and which keys are found: the caller says it."""
    asked: list[Any] = []
    found: list[Any] = []

    def apply(self: UnknownKeys, counts: dict[Any, int], bits: Any) -> list[Any]:
        asked.append((self, (counts.get("a", 0), counts.get("b", 0))))
        return list(found)

    monkeypatch.setattr(UnknownKeys, "apply", apply)
    return asked, found


def frame(rows: Rows) -> pd.DataFrame:
    columns = list(zip(*rows, strict=True)) if rows else [(), (), ()]
    return pd.DataFrame(dict(zip(("name", "y", "keep"), map(list, columns), strict=True)))


def opened(rows: Rows, relation: str) -> Any:
    if relation == "unit":
        both = frame((*rows, ("a", 1.0, True)))
        both["id"] = [7] * len(rows) + [8]
        return zd.open(both, columns=KINDS, unit="id", max_rows=2, units=2)
    if relation == "add-remove":
        return zd.open(frame(rows), columns=KINDS, neighbors=relation, expected_rows=2)
    data = zd.open(frame(rows), columns=KINDS)
    return data.where("keep") if relation == "where" else data


def neighbors(relation: str) -> Iterator[tuple[Rows, Rows]]:
    if relation == "unit":
        lists = [each for size in (1, 2) for each in itertools.combinations(ALL, size)]
        yield from itertools.combinations(lists, 2)
        return
    cells = [*ALL, *((n, 1.0, False) for n in "ab")] if relation == "where" else ALL
    for other in cells:
        for one, two in itertools.combinations(cells, 2):
            if relation == "add-remove":
                yield (one, other), (other,)
            else:
                yield (one, other), (two, other)


RELATIONS = ["replace", "where", "add-remove", "unit"]


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("keys", FOUND, ids=str)
def test_keys_cost_half_and_statistics_of_whatever_is_found_the_other_half(
    handed: list[Handed], finding: Any, relation: str, keys: list[Any]
) -> None:
    asked, found = finding
    found[:] = keys
    known: dict[Rows, Any] = {}
    units = 2 if relation == "unit" else 1

    def seen(rows: Rows) -> Any:
        if rows not in known:
            asked.clear()
            handed.clear()
            release = zd.mean(opened(rows, relation), "y", by="name", epsilon=EPSILON)
            (keyed,), (summed,) = asked, handed
            parts = [part.epsilon for part in release.certificate.parts]
            assert parts == [HALF, HALF]
            known[rows] = keyed, summed
        return known[rows]

    pairs = [(seen(a), seen(b)) for a, b in neighbors(relation)]
    # nothing of the mechanisms is the rows', and the scale is not that of the found keys
    ((used, _), (noise, _)) = pairs[0][0]
    for keyed, summed in known.values():
        assert (keyed[0].noise, keyed[0].thresholds) == (used.noise, used.thresholds)
        assert summed[0] == noise
    moves = 1 if relation == "add-remove" else 2
    assert noise.method == "laplace"
    assert noise.scale == moves * 2 * units / HALF
    assert noise.cells == 2 * (len(keys) + 1)

    counts = {(a[0][1], b[0][1]) for a, b in pairs}
    assert_pure(law_of_keys(used), counts, epsilon=HALF)
    sums = {(a[1][1], b[1][1]) for a, b in pairs}
    sizes = [norm(noise, [x - y for x, y in zip(a, b, strict=True)]) for a, b in sums]
    assert max(sizes) / noise.scale == HALF
    if not keys and relation != "unit":  # by exact laws, too
        exact = partial(laplace_law, scale=noise.scale, high=4)
        assert_pure(exact, sums, epsilon=HALF, tight=True)


def law_of_keys(used: UnknownKeys) -> Any:
    """The law of the keys of one letter that are published, by their counts."""
    rates: dict[str, Any] = {"up": used.noise.up, "down": used.noise.down}
    return partial(published_law, least=used.thresholds[0], **rates, high=5)


@pytest.mark.parametrize("relation", RELATIONS)
def test_counts_alone_are_the_numbers_that_passed(finding: Any, relation: str) -> None:
    """All of ε goes to the keys; there is no second look."""
    asked, found = finding
    found[:] = [("b", 40), ("a", 90)]
    known = {}
    units = 2 if relation == "unit" else 1
    for pair in neighbors(relation):
        for rows in pair:
            asked.clear()
            release = zd.count(opened(rows, relation), by="name", epsilon=EPSILON)
            ((used, counts),) = asked
            assert used.noise.epsilon * units == EPSILON
            known[rows] = counts
    shown = release.value
    assert shown["name"].tolist() == ["a", "b"]
    assert shown["count"].tolist() == [90 - used.noise.median, 40 - used.noise.median]
    pairs = {(known[a], known[b]) for a, b in neighbors(relation)}
    assert_pure(law_of_keys(used), pairs, epsilon=EPSILON)
    assert "no interval" in str(release.error)
    assert release.sums == ()


@pytest.mark.parametrize("keys", FOUND, ids=str)
def test_quantiles_are_drawn_from_the_found_groups_at_one_rate(
    monkeypatch: pytest.MonkeyPatch, replace: Replace, finding: Any, keys: list[Any]
) -> None:
    """γ = share/(8(1 - min g)), whichever keys are found; all other rows are one group."""
    monkeypatch.setattr(quantile_plan, "aimed_levels", lambda levels, **_: tuple(levels))
    calls, (_, found) = spied(replace), finding
    found[:] = keys
    rows: Rows = (("a", 1.0, True), ("b", -1.0, True), ("c", 1.0, True), ("a", -1.0, True))
    of: Any = {"y": [{"quantiles": ["1/4", "1/2"]}]}
    release = zd.table(zd.open(frame(rows), columns=KINDS), by="name", of=of, epsilon=EPSILON)
    plan: Any = release.plan
    share = plan.parts[-1].epsilon
    assert {rate for _, _, rate in calls} == {share / (8 * Fraction(3, 4))}
    sizes = {"a": 2, "b": 1}
    wanted = [sizes[key] for key, _ in keys]
    assert [len(drawn) for drawn, _, _ in calls] == [*wanted, 4 - sum(wanted)]
    assert sum(part.epsilon for part in plan.parts) + plan.found.epsilon == EPSILON
    (step,) = release.certificate.parts[-1].steps
    assert step.numbers["groups"] == 3  # a, b, and all others: found or not


def test_the_certificate_is_for_all_keys_there_can_be() -> None:
    texts = pd.DataFrame({"name": ["ann"] * 500 + ["bob"] * 300, "y": [1.0] * 800})
    data = zd.open(texts, columns={"name": NAMES, "y": zd.number(-1, 1)})
    size = sum(26**length for length in range(1, 13))
    of: Any = {"y": ["mean", "median"]}
    certificates = []
    for chosen in (data, zd.open(texts[:799], columns={"name": NAMES, "y": zd.number(-1, 1)})):
        release = zd.table(chosen, by="name", of=of, epsilon=1)
        certificates.append([part.steps for part in release.certificate.parts])
        assert zd.verify(release.certificate, epsilon=1)
    keys, sums, drawn = certificates[0]
    assert keys[0].numbers["keys"] == size
    assert sums[0].numbers["cells"] == 3 * (size + 1)
    assert drawn[0].numbers["groups"] == size + 1


# Values.

N = 30_000
RNG = np.random.default_rng(5)
PEOPLE = pd.DataFrame(
    {
        "name": RNG.choice(["ann", "bob", "other"], N, p=[0.6, 0.3, 0.1]),
        "year": RNG.integers(2001, 2003, N),
        "income": RNG.uniform(0, 100, N),
    }
)
PEOPLE.loc[::50, "name"] = "NOT A NAME"
COLUMNS: Any = {
    "name": NAMES,
    "year": zd.number(0, 2**60, integer=True),
    "income": zd.number(0, 100),
}


def test_values_are_those_of_the_found_keys_and_all_other_rows() -> None:
    data = zd.open(PEOPLE, columns=COLUMNS)
    of: Any = {"income": ["mean", "std", "median", "count"]}
    release = zd.table(data, by="name", of=of, epsilon=40, false_keys=SURE)
    shown = release.value
    assert shown["name"].tolist() == ["ann", "bob", "other"]
    assert shown["count"].sum() == N  # every row is in a line
    assert "a key that noise invented" in str(release.error)
    assert "the keys of name that are found" in str(release.plan)
    assert "50.0% of ε" in str(release.plan)
    rest = ~PEOPLE["name"].isin(["ann", "bob"])
    for line, rows in zip(
        shown.itertuples(),
        [PEOPLE[PEOPLE["name"] == "ann"], PEOPLE[PEOPLE["name"] == "bob"], PEOPLE[rest]],
        strict=True,
    ):
        assert abs(line.count - len(rows)) < 20
        assert abs(line.income_mean - rows["income"].mean()) < 1
        assert abs(line.income_std - rows["income"].std()) < 1
        assert abs(line.income_median - rows["income"].median()) < 3


def test_only_found_tuples_are_shown_and_one_line_for_all_others() -> None:
    data = zd.open(PEOPLE, columns=COLUMNS)
    options: Any = {"by": ["name", "year"], "epsilon": 40, "false_keys": SURE}
    shown = zd.table(data, of={"income": "mean"}, **options).value
    pairs = list(zip(shown["name"], shown["year"], strict=True))
    assert len(pairs) == 7
    assert pairs[-1] == ("other", "other")
    assert set(pairs[:-1]) == {(n, y) for n in ("ann", "bob", "other") for y in ("2001", "2002")}
    assert abs(shown["count"].iloc[-1] - N / 50) < 20
    short = zd.mean(data, "income", by=["name", "year"], epsilon=40).value
    assert set(zip(short["name"], short["year"], strict=True)) >= set(pairs)
    assert len(zd.sum(data, "income", by="name", epsilon=40).value) >= 3


def test_the_kind_of_a_bare_frame_is_said_in_the_call() -> None:
    records = PEOPLE.to_records(index=False)
    options: Any = {"by": {"name": NAMES}, "bounds": (0, 100), "epsilon": 20}
    release = zd.table(records, of={"income": "mean"}, false_keys=SURE, **options)
    assert isinstance(release.value, Table)
    assert release.value["name"].tolist() == ["ann", "bob", "other"]
    ends = map(repr, release.interval(0.95))
    for text in (repr(release.value), release.value._repr_html_(), repr(release), *ends):
        assert "a key that noise invented" in text
    counts = zd.count(records, by={"name": NAMES}, epsilon=20).value
    assert "a key that noise invented" in repr(counts)


def test_no_key_at_all_leaves_one_line() -> None:
    few = zd.open(PEOPLE[:30], columns=COLUMNS)
    for _ in range(5):
        shown = zd.table(few, by="name", of={"income": "mean"}, epsilon="1/100", false_keys=SURE)
        assert shown.value["name"].tolist() == ["other"]
        assert shown.value["count"].tolist() == [30]
        none = zd.table(few, by="name", of={"income": "count"}, epsilon="1/100", false_keys=SURE)
        assert len(none.value) == 1
    assert len(zd.count(few, by="name", epsilon=1).value.columns) == 3


def test_large_numbers_and_categories_are_keys_exactly(tmp_path: Any) -> None:
    """Neighbors among 64-bit numbers are one float; a category has its own codes."""
    path = tmp_path / "hashes.csv"
    lines = [f"{2**63 + i % 2},{'yes' if i % 4 < 2 else 'no'},{i % 2}" for i in range(4000)]
    path.write_text("\n".join(["hash,new,x", *lines]))
    data = zd.open(
        path,
        columns={
            "hash": zd.number(0, 2**64 - 1, integer=True),
            "new": zd.boolean(),
            "x": zd.number(0, 1),
        },
    )
    shown = zd.mean(data, "x", by=["hash", "new"], epsilon=1000).value
    found = {
        (hashed, new): round(mean, 1)
        for hashed, new, mean in zip(shown["hash"], shown["new"], shown["x_mean"], strict=True)
        if hashed != "other"
    }
    wanted = {(2**63 + i, new): float(i) for i in (0, 1) for new in (True, False)}
    assert {key: found[key] for key in wanted} == wanted


def test_rows_are_counted_where_they_are_kept_and_filtered() -> None:
    old = zd.open(PEOPLE, columns=COLUMNS).where("year >= 2002")
    shown = zd.table(old, by="name", of={"income": "mean"}, epsilon=40, false_keys=SURE).value
    wanted = PEOPLE[PEOPLE["year"] >= 2002]["name"].value_counts()
    assert abs(shown["count"].iloc[0] - wanted["ann"]) < 20
    people = PEOPLE.assign(id=np.arange(N) // 3)
    units = zd.open(people, columns=COLUMNS, unit="id", max_rows=1)
    kept = zd.table(units, by="name", of={"income": "mean"}, epsilon=40, false_keys=SURE).value
    assert abs(kept["count"].sum() - N / 3) < 60


def test_a_query_is_run_once_for_keys_and_statistics() -> None:
    runs: list[int] = []

    def seen(rows: Any) -> Any:
        runs.append(len(rows))
        return rows

    lazy = pl.from_pandas(PEOPLE).lazy().map_batches(seen)
    data = zd.open(lazy, columns=COLUMNS)
    assert data.rows == N
    runs.clear()
    release = zd.table(data, by="name", of={"income": ["mean", "median"]}, epsilon=1)
    assert runs == [N]
    assert release.certificate.status.value == "asserted"
