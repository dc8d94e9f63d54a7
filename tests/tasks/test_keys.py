"""heavy_hitters and top_k: every relation, every kind of key, hostile cells, and what is shown."""

from __future__ import annotations

import csv
import io
import itertools
import string
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import zerodelta as zd
from tasks.related import added, filtered, of_units, replaced
from tasks.spying import recorded
from zerodelta.data.keys import GROUP, KeySource, keys_in, universe_of
from zerodelta.data.source import Ticket
from zerodelta.exact.bits import ReplayBits, SystemBits
from zerodelta.mechanisms.key_noise import NoisyTop, UnknownKeys
from zerodelta.privacy.certificate import Certificate
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.parameters import Neighbors
from zerodelta.privacy.steps import Part
from zerodelta.report.contents import grids_of
from zerodelta.tables.found_keys import FoundKeys, KeysPlan, plan_keys
from zerodelta.tasks.keys import top_k_methods
from zerodelta.testing import replayed

LETTERS = string.ascii_lowercase
NAMES = zd.text(12, alphabet=LETTERS)
VALUES = [0.0, 1.0, 3.0]
RELATIONS = [replaced(VALUES, 2), filtered(VALUES, 2), added(VALUES, 2), of_units(VALUES)]
SURE = Fraction(1, 10**7)
"""So few false keys that none is seen."""


COUNTING: dict[str, Any] = {
    "heavy_hitters": (zd.heavy_hitters, UnknownKeys, lambda counts, _: dict(counts)),
    "top_k": (
        partial(zd.top_k, k=1),
        NoisyTop,
        lambda keys, counts, _: dict(zip(keys.tolist(), counts.tolist(), strict=True)),
    ),
}


@pytest.mark.parametrize("name", COUNTING)
@pytest.mark.parametrize("relation", RELATIONS, ids=lambda each: each.name)
def test_each_row_that_counts_counts_for_its_key(
    monkeypatch: pytest.MonkeyPatch, relation: Any, name: str
) -> None:
    """With a filter, missing cells, units, added rows; and ε is that of a row of the unit."""
    verb, mechanism, counted = COUNTING[name]
    calls = recorded(monkeypatch, mechanism, "apply", lambda *_: [])
    kind = zd.number(0, 3, integer=True)
    for key in relation.keys:
        release = verb(relation.open(key, kind), "0", epsilon=1)
        used, *handed, _ = calls[-1]
        assert counted(*handed) == Counter(int(value) for value in relation.counted(key))
        assert used.noise.epsilon * relation.max_rows == 1
        assert used.noise.neighbors is relation.neighbors
    claim = release.certificate.claim
    assert claim.neighbors is relation.neighbors
    assert isinstance(claim, PureDP)
    assert claim.exact_epsilon == 1


def test_a_filter_and_units_hold_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two rows of each unit are kept first, then the condition is asked."""
    calls = recorded(monkeypatch, UnknownKeys, "apply", lambda *_: [])
    table = np.array(
        [(1, "ann", 20)] * 5 + [(2, "bob", 30)] * 5 + [(3, "ann", 90)],
        dtype=[("id", int), ("name", object), ("age", int)],
    )
    columns = {"name": NAMES, "age": zd.number(0, 120, integer=True)}
    people = zd.open(table, columns=columns, unit="id", max_rows=2)
    zd.heavy_hitters(people.where("age < 80"), "name", epsilon=1)
    assert calls[-1][1] == {"ann": 2, "bob": 2}
    zd.heavy_hitters(people.where("age < 25"), "name", epsilon=1)
    assert calls[-1][1] == {"ann": 2}


# What a key is.


def keys_of(cells: Any, kind: Any) -> dict[Any, int]:
    data = zd.open(cells, columns={"0": kind})
    certificate = zd.count(data, epsilon=1).certificate
    opened: dict[Any, int] = KeySource(data).open(Ticket(certificate))
    return opened


class Hostile:
    """A cell whose every method raises."""

    def __eq__(self, other: object) -> bool:
        raise RuntimeError

    def __hash__(self) -> int:
        raise RuntimeError

    def __str__(self) -> str:
        raise RuntimeError


def test_cells_that_are_no_keys_count_nowhere() -> None:
    odd = [
        None,
        "",
        "nan",
        "UPPER",
        "toolongtobeaname",
        "a b",
        "\x1b[2J",
        3,
        1.5,
        float("nan"),
        b"\xff",
    ]
    cells = np.array([*odd, ["x"], {}, (), Hostile(), "\ud800", "ann", "ann", b"ann"], dtype=object)
    assert keys_of(cells, NAMES) == {"ann": 3}


NUMBERS = [2.0**60, -(2.0**60), 2.0**53, 2.0**53 - 1, 2.0**53 + 2, -(2.0**53), 2.0**63, 2.0**64]
NUMBERS += [5.0, 2.5, 3.5, -0.0, 0.4, float("nan"), float("inf"), float("-inf"), 1e300]


def key_alone(cell: Any, kind: Any, dtype: Any) -> Any:
    (key,) = keys_in({"0": kind}, {"0": np.array([cell], dtype=dtype)}, None)
    return key


@pytest.mark.parametrize("dtype", [np.float64, object])
def test_the_key_of_a_number_is_its_own_whatever_is_beside_it(dtype: Any) -> None:
    """A batch is read as each of its rows is read alone, also beyond 2^53 and beside a NaN."""
    kind = zd.number(-(2**62), 2**64 - 1, integer=True)
    alone = {place: key_alone(cell, kind, dtype) for place, cell in enumerate(NUMBERS)}
    for one, two in itertools.product(range(len(NUMBERS)), repeat=2):
        cells = np.array([NUMBERS[one], NUMBERS[two]], dtype=dtype)
        found = keys_in({"0": kind}, {"0": cells}, None)
        assert [str(key) for key in found] == [str(alone[one]), str(alone[two])]


def test_a_row_that_lacks_a_part_of_its_key_counts_nowhere() -> None:
    """A missing code is not the first one."""
    city, kind = zd.category(["oslo", "rome"]), zd.number(0, 9, integer=True)
    cells = [("rome", 1), (None, 1), ("oslo", None), ("bonn", 2), (None, None), ("oslo", 10)]
    rows = np.array(cells, dtype=[("a", object), ("b", object)])
    people = zd.open(rows, columns={"a": city, "b": kind})
    ticket = Ticket(zd.count(people, epsilon=1).certificate)
    assert KeySource(people).open(ticket) == {(1, 1): 1}
    assert KeySource(people[["a"]]).open(ticket) == {0: 2, 1: 1}


INTEGERS = [2**60 + 1, -(2**60) - 1, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63), 0, 7, None]


def as_csv(cells: Any, folder: Path) -> Path:
    lines = ["" if cell is None else str(cell) for cell in cells]
    (folder / "keys.csv").write_text("\n".join(["0,1", *(f"{line},x" for line in lines)]) + "\n")
    return folder / "keys.csv"


def as_parquet(cells: Any, folder: Path) -> Path:
    pq.write_table(pa.table({"0": pa.array(cells, pa.int64())}), folder / "keys.parquet")
    return folder / "keys.parquet"


COLUMNS: dict[str, Any] = {
    "arrow": lambda cells, _: pa.table({"0": pa.array(cells, pa.int64())}),
    "pieces": lambda cells, _: pa.table(
        {"0": pa.chunked_array([pa.array([cell], pa.int64()) for cell in cells])}
    ),
    "dictionary": lambda cells, _: pa.table({"0": pa.array(cells, pa.int64()).dictionary_encode()}),
    "pandas": lambda cells, _: pd.DataFrame({"0": pd.array(cells, "Int64")}),
    "polars": lambda cells, _: pl.DataFrame({"0": pl.Series(cells, dtype=pl.Int64)}),
    "list": lambda cells, _: cells,
    "csv": as_csv,
    "parquet": as_parquet,
    "duckdb": lambda cells, _: duckdb.connect().from_arrow(
        pa.table({"0": pa.array(cells, pa.int64())})
    ),
}


@pytest.mark.parametrize("column", COLUMNS)
def test_a_missing_cell_changes_no_large_key_beside_it(column: str, tmp_path: Path) -> None:
    """A library makes floats of integers with a missing one; then 2^60 + 1 would be 2^60."""
    kind = zd.number(-(2**63), 2**63 - 1, integer=True)  # both ends occur
    for cells in (INTEGERS, INTEGERS[:-1]):
        source = COLUMNS[column](cells, tmp_path)
        assert keys_of(source, kind) == dict.fromkeys(INTEGERS[:-1], 1)


@pytest.mark.parametrize("name", ["pandas", "csv", "parquet", "duckdb", "polars"])
def test_large_keys_with_numbers_beside_them_are_exact(name: str, tmp_path: Path) -> None:
    """A table by unknown keys reads the same cells once, for keys and for numbers."""
    kind = zd.number(-(2**63), 2**63 - 1, integer=True)
    people = zd.open(COLUMNS[name](INTEGERS, tmp_path), columns={"0": kind})
    certificate = zd.count(people, epsilon=1).certificate
    opened = KeySource(people[["0"]], of=["0"]).open(Ticket(certificate))
    assert opened.counts() == dict.fromkeys(INTEGERS[:-1], 1)


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int64, np.uint64])
def test_bounds_of_keys_are_those_declared_whatever_the_type_of_the_column(kind: Any) -> None:
    ends = np.iinfo(kind)
    numbers = [ends.min, ends.min + 1, 0, 1, 2, 3, 100, ends.max - 1, ends.max]
    cells = np.array(numbers, dtype=kind)
    around = {end + by for end in (int(ends.min), 0, 2, int(ends.max)) for by in (-2, -1, 0, 1, 2)}
    for lower, upper in itertools.combinations(sorted(around), 2):
        expected = Counter(n for n in numbers if lower <= n <= upper)
        assert keys_of(cells, zd.number(lower, upper, integer=True)) == expected


def test_whole_numbers_are_exact_beyond_floats() -> None:
    kind = zd.number(0, 2**64 - 1, integer=True)
    large = np.array([2**64 - 1, 2**64 - 2, 2**63, 2**63, 5], dtype=np.uint64)
    expected = {2**64 - 1: 1, 2**64 - 2: 1, 2**63: 2, 5: 1}
    assert keys_of(large, kind) == expected
    assert keys_of(np.array([str(n) for n in large.tolist()], dtype=object), kind) == expected
    assert keys_of(large.tolist(), kind) == expected
    floats = np.array([1.0, 2.4, np.nan, np.inf, -1.0, 1e300])
    assert keys_of(floats, zd.number(0, 7, integer=True)) == {1: 1, 2: 1}
    odd = np.array([None, "x", "3", 3.0, True, 10**400, Hostile()], dtype=object)
    assert keys_of(odd, zd.number(0, 7, integer=True)) == {3: 2, 1: 1}


def test_more_keys_than_can_be_counted_are_refused() -> None:
    with pytest.raises(zd.errors.ParameterError, match=r"^columns"):
        universe_of({column: zd.text(20, alphabet="ab") for column in "xyz"})


def test_products_categories_dates_and_booleans_are_keys() -> None:
    table = np.array(
        [("oslo", "2024-01-05", True)] * 900 + [("rome", "2024-02-05", False)] * 400,
        dtype=[("city", object), ("day", object), ("new", object)],
    )
    columns = {
        "city": NAMES,
        "day": zd.date("2024-01-01", "2024-12-31", by="month"),
        "new": zd.boolean(),
    }
    people = zd.open(table, columns=columns)
    found = zd.heavy_hitters(people, epsilon=50, false_keys=SURE).value
    assert [key[0] for key in found.names] == ["oslo", "rome"]
    assert [key[2] for key in found.names] == [True, False]
    assert all(abs(count - true) < 9 for count, true in zip(found.counts, (900, 400), strict=True))
    top = zd.top_k(people, ["day", "new"], k=2, epsilon=50).value
    assert [key[1] for key in top.names] == [True, False]
    assert top.false_keys == 0
    assert top.warning == ""


# Values.


def test_counts_err_as_forecast() -> None:
    """Far above the threshold all are published, minus the median of the noise."""
    names = [f"{a}{b}" for a in LETTERS for b in LETTERS[:10]]
    cells = np.array(names * 300, dtype=object)
    for goal in ("counts", "keys"):
        bits = ReplayBits(f"counts {goal}")
        release = replayed(bits)(zd.heavy_hitters)(cells, universe=NAMES, epsilon=1, goal=goal)
        found = dict(release.value)
        errors = [abs(found[name] - 300) for name in names]
        assert isinstance(release.error, float)
        assert release.error / 1.3 < np.mean(errors) < release.error * 1.3
        assert abs(np.median([found[name] - 300 for name in names])) <= 1


def test_top_k_of_known_keys_has_the_values_and_any_k() -> None:
    items = np.repeat(np.arange(1000), np.arange(1000)[::-1])
    release = zd.top_k(items, universe=5000, k=1000, epsilon=20)
    assert len(release.value) == 1000
    found = dict(release.value)
    assert all(abs(found[i] - (999 - i)) < 20 for i in range(500))
    assert zd.verify(release.certificate, epsilon=20, proven=False)


def test_top_k_chooses_its_noise_by_the_forecast() -> None:
    assert top_k_methods(epsilon=1, keys=5, k=3)[0].name == "symmetric"
    assert top_k_methods(epsilon=1, keys=10**5, k=10)[0].name == "asymmetric"
    far = top_k_methods(epsilon=1, keys=10**5, k=10, expected_gap=500)
    assert far[0].error < 1e-6
    (only,) = top_k_methods(epsilon=1, keys=10**5, k=10, neighbors=Neighbors.ADD_REMOVE)
    assert only.name == "symmetric"


def test_general_scores_in_one_draw_or_peeled() -> None:
    scores = {"a": 10, "b": 90_000, "c": 50_000, "d": float("nan"), "e": Hostile(), "f": -3}
    for method in ("auto", "joint", "peeling"):
        release = zd.top_k(scores=scores, sensitivity=1, k=2, epsilon=1, method=method)
        assert release.value == ["b", "c"]
        assert release.certificate.status.value == "asserted"
    assert zd.top_k(scores=[3, 900, 70], sensitivity=1, k=1, epsilon=1).value == [1]
    peeled = zd.top_k(scores=scores, sensitivity=1, k=3, epsilon=1, method="peeling")
    claim = zd.verify(peeled.certificate)
    assert isinstance(claim, PureDP)
    assert claim.exact_epsilon == 1


# As groups of a table.


def test_found_keys_are_a_part_of_a_plan_and_become_groups() -> None:
    people = zd.open(["ann"] * 5000 + ["bob"] * 3000 + ["zoe"], columns={"0": NAMES})
    source = KeySource(people["0"])
    alone = plan_keys(source, epsilon=1)
    assert (alone.epsilon, alone.remaining_epsilon) == (Fraction(1), Fraction(0))
    plan = plan_keys(source, epsilon=1, statistics=True, false_keys=SURE)
    assert (plan.epsilon, plan.remaining_epsilon) == (Fraction(1, 2), Fraction(1, 2))
    others = plan_keys(source, epsilon=plan.remaining_epsilon).part
    both = Certificate(claim=PureDP(1), parts=(plan.part, others))
    assert isinstance(plan.part, Part)
    assert zd.verify(both)
    found = plan.apply({"ann": 5000, "bob": 3000, "zoe": 1}, SystemBits())
    groups, labels = plan.groups_of(found)
    assert groups == {"ann": 0, "bob": 1}
    assert labels == [("ann",), ("bob",), ("other",)]
    assert plan.groups_of([]) == ({}, [("other",)])
    assert plan.groups_of([("other", 5)]) == ({}, [("other",)])


def test_rows_are_those_of_the_found_keys() -> None:
    """The same rows count as for the keys: bounded and filtered by what was declared."""
    table = np.array(
        [(1, "ann", 20)] * 5 + [(2, "bob", 30)] * 2 + [(3, "zoe", 40), (4, "bob", 90)],
        dtype=[("id", int), ("name", object), ("age", int)],
    )
    columns = {"name": NAMES, "age": zd.number(0, 120)}
    people = zd.open(table, columns=columns, unit="id", max_rows=2).where("age < 80")
    ticket = Ticket(zd.count(people, epsilon=1).certificate)
    rows = KeySource(people["name"], of=["age"]).open(ticket)
    assert rows.counts() == KeySource(people["name"]).open(ticket) == {"ann": 2, "bob": 2, "zoe": 1}
    grouped = rows.by_group({"bob": 0, "nobody": 1}, 2)
    assert grouped.columns == (GROUP, "age")
    found = np.concatenate(list(grouped.blocks()))
    assert sorted(found.tolist()) == [[0, 30], [0, 30], [2, 20], [2, 20], [2, 40]]
    # changing the rows in between changes nothing
    table["name"] = "ann"
    assert rows.counts() == {"ann": 2, "bob": 2, "zoe": 1}


def test_keys_that_no_cell_is_read_to_are_not_published() -> None:
    """ "01" is read as 1, and "nan" is missing."""
    people = zd.open(["a"], columns={"0": zd.text(3, alphabet="01an")})
    plan = plan_keys(KeySource(people), epsilon="1/100", false_keys=50)
    bits = ReplayBits("impossible")
    for _ in range(20):
        found = plan.apply({}, bits)
        assert not {"01", "001", "nan", "00"} & {key for key, _ in found}


# What is shown.

EVIL = [
    "<script>alert(1)</script>",
    "=cmd|' /C calc'!A0",
    "\x1b[2J\x1b]0;x\x07",
    "a\u202eb",
    "+1",
    "@x",
]


def test_what_somebody_chose_as_a_key_is_shown_escaped() -> None:
    shown = FoundKeys(pairs=tuple((key, 9 - i) for i, key in enumerate(EVIL)), false_keys=1.0)
    page = shown._repr_html_()
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    for text in (repr(shown), page, shown.to_csv()):
        assert not {"\x1b", "\x07", "\u202e"} & set(text)
    cells = [row[0] for row in csv.reader(io.StringIO(shown.to_csv()))][1:]
    assert not any(cell[:1] in "=+-@" for cell in cells)
    assert shown.to_dict()["key"] == EVIL


def test_a_list_with_more_than_one_false_key_says_how_many_may_be_invented() -> None:
    top = zd.top_k(["ann"] * 900, universe=NAMES, k=3, epsilon=1, false_keys=2)
    assert "of these keys may be invented" in repr(top)


def test_a_sequence_of_pairs() -> None:
    shown = FoundKeys(pairs=((("a", 1), 5), (("b", 2), 3)), columns=("name", "year"))
    assert shown[0] == (("a", 1), 5)
    assert list(shown) == list(shown[:])
    assert (shown.names, shown.counts, len(shown)) == ([("a", 1), ("b", 2)], [5, 3], 2)
    assert shown.to_dict() == {"name": ["a", "b"], "year": [1, 2], "count": [5, 3]}
    assert "may be invented" not in repr(shown)
    many = FoundKeys(pairs=tuple((i, 1) for i in range(30)))
    assert "and 10 more" in repr(many)


VERBS: dict[str, Callable[..., zd.records.Release]] = {
    "heavy_hitters": partial(zd.heavy_hitters, epsilon=1),
    "top_k": partial(zd.top_k, k=10, epsilon=1),
    "counts of a table": partial(zd.count, by="0", epsilon=1),
    "statistics of a table": partial(zd.table, by="0", of={"1": "mean"}, epsilon=1),
}


def opened(names: list[str]) -> Any:
    table = np.array([(name, 0.5) for name in names], dtype=[("0", object), ("1", float)])
    return zd.open(table, columns={"0": NAMES, "1": zd.number(0, 1)})


def released(name: str, names: list[str], **options: Any) -> tuple[zd.records.Release, KeysPlan]:
    """The release of a verb, and how its keys are found."""
    people = opened(names)
    listed = name in ("heavy_hitters", "top_k")
    release = VERBS[name](people[["0"]] if listed else people, **options)
    statistics = name == "statistics of a table"
    source = KeySource(people[["0"]])
    return release, plan_keys(source, epsilon=1, statistics=statistics)


@pytest.mark.parametrize("name", VERBS)
def test_by_default_one_list_in_a_hundred_has_an_invented_key(name: str, tmp_path: Path) -> None:
    release, plan = released(name, ["ann"] * 2000)
    assert 0.002 < plan.mechanism.false_keys <= 0.01
    release.save(tmp_path / "release.json")
    again = zd.load(tmp_path / "release.json")
    (grid,) = grids_of(again)
    lists = float(f"{1 / plan.mechanism.false_keys:.2g}")
    for text in (repr(again), repr(again.value), again.value._repr_html_(), grid.note):
        assert f"about one of {lists:,.0f} such lists has a key that noise invented" in text


@pytest.mark.parametrize("name", VERBS)
def test_a_list_without_keys_says_how_many_rows_a_key_needs(name: str) -> None:
    release, plan = replayed("none")(released)(name, ["ann"])
    (grid,) = grids_of(release)
    for text in (repr(release.value), release.value._repr_html_(), grid.note):
        assert f"no key was found: half of those with about {plan.found_from:,} rows are" in text


def test_a_key_with_so_many_rows_is_found_in_half_of_the_lists() -> None:
    plan, bits = plan_keys(KeySource(opened([])[["0"]]), epsilon=1), ReplayBits("half found")
    thresholds = plan.mechanism.thresholds  # one for each length
    length = thresholds.index(sorted(thresholds)[len(thresholds) // 2])
    key = plan.mechanism.universe.key((length, 0))
    found = [plan.apply({key: plan.found_from}, bits) for _ in range(400)]
    assert 140 < sum(key in dict(each) for each in found) < 260  # 6 standard deviations


def test_frames_of_unknown_keys_keep_the_warning(tmp_path: Path) -> None:
    frame = pd.DataFrame({"0": ["ann"] * 900, "1": [0.5] * 900})
    people = zd.open(frame, columns={"0": NAMES, "1": zd.number(0, 1)})
    release = zd.table(people, by="0", of={"1": "mean"}, epsilon=2)
    assert "noise invented" in release.value.attrs["note"]
    assert "noise invented" in grids_of(release)[0].note
    release.save(tmp_path / "release.json")
    assert "noise invented" in zd.load(tmp_path / "release.json").value.note


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize("name", ["counts of a table", "statistics of a table"])
def test_frames_without_keys_say_how_many_rows_a_key_needs(name: str, kind: str) -> None:
    """Frames have no place for it; what is made of them does."""
    frame: Any = pa.table({"0": ["ann"], "1": [0.5]})
    frame = {"pandas": frame.to_pandas(), "polars": pl.from_arrow(frame)}.get(kind, frame)
    people = zd.open(frame, columns={"0": NAMES, "1": zd.number(0, 1)})
    release = replayed("none")(VERBS[name])(people)
    (grid,) = grids_of(release)
    for text in (release._repr_html_(), release.to_frame("pandas").attrs["note"], grid.note):
        assert "no key was found: half of those with about " in text


def test_a_csv_file_has_the_warning_in_each_line() -> None:
    shown = FoundKeys(pairs=(("a", 5), ("b", 4)), columns=("note",), false_keys=0.01)
    lines = list(csv.DictReader(io.StringIO(shown.to_csv())))
    assert [line["note_"][:24] for line in lines] == ["about one of 100 such li"] * 2
    none = FoundKeys(pairs=(), false_keys=0.01, found_from=1234)
    (line,) = csv.DictReader(io.StringIO(none.to_csv()))
    assert line["note"].startswith("no key was found: half of those with about 1,234 rows are")
    assert (line["key"], line["count"]) == ("", "")
    assert FoundKeys(pairs=(("a", 5),)).to_csv() == '"key","count"\n"a","5"\n'
