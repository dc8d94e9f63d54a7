"""Units: at most max_rows rows of each, chosen by its own rows alone, in any order."""

from __future__ import annotations

import itertools
import math
import threading
import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import zerodelta as zd
from data.odd_cells import ODD, objects
from data.opening import opened
from zerodelta.data import units
from zerodelta.data import units as ids_of_units
from zerodelta.data.arrays import array_reader
from zerodelta.data.cells import category
from zerodelta.data.chosen import OpenedDataset, Unit
from zerodelta.data.dataset import Dataset
from zerodelta.data.readers import Reader
from zerodelta.data.units import Bounded, Bounding, unit_ids
from zerodelta.errors import ParameterError

Row = tuple[Any, float, Any]
"""An id, a number and a text."""


def bounded(rows: list[Row], most: int, *, cuts: list[int] | None = None, **limits: Any) -> Bounded:
    """Return what is kept; each cut is where a batch ends, and every second one ends a part."""
    bounding = Bounding(max_rows=most, **limits)
    ends = [0, *sorted(cuts or []), len(rows)]
    for i, (start, end) in enumerate(itertools.pairwise(ends)):
        batch = rows[start:end]
        numbers = np.array([row[1] for row in batch], dtype=np.float64)
        texts = objects([row[2] for row in batch])
        bounding.add(i // 2, objects([row[0] for row in batch]), [numbers, texts])
    return bounding.finish()


def kept(rows: list[Row], most: int, **how: Any) -> list[Row]:
    flags = np.concatenate(bounded(rows, most, **how).kept)
    assert len(flags) == len(rows)
    return [plain(row) for row, flag in zip(rows, flags, strict=True) if flag]


def plain(row: Row) -> Row:
    number = None if math.isnan(row[1]) else row[1] + 0.0
    return (row[0], number, row[2])  # type: ignore[return-value]


def by_id(rows: list[Row]) -> dict[Any, Counter[Row]]:
    found: dict[Any, Counter[Row]] = {}
    for row in rows:
        found.setdefault(row[0], Counter())[row] += 1
    return found


ids = st.sampled_from(["ann", "bob", "7", None, "é"])
numbers = st.sampled_from([0.0, -0.0, 1.0, 2.0, 1e300, math.nan])
contents = st.tuples(numbers, st.sampled_from([None, "", "x", "y"]))
tables = st.lists(st.tuples(ids, contents).map(lambda row: (row[0], *row[1])), max_size=30)


@given(tables, st.lists(contents, max_size=12), ids, st.integers(1, 4))
def test_replacing_a_unit_changes_at_most_max_rows_of_the_rows_kept(
    rows: list[Row], others: list[tuple[float, Any]], who: Any, most: int
) -> None:
    replaced = [row for row in rows if row[0] != who]
    replaced += [(who, *cells) for cells in others]
    before, after = by_id(kept(rows, most)), by_id(kept(replaced, most))
    for each in {*before, *after} - {who}:
        assert before[each] == after[each]
    for found, table in ((before, rows), (after, replaced)):
        for each, chosen in found.items():
            there = Counter(plain(row) for row in table if row[0] == each)
            assert chosen <= there
            assert chosen.total() == min(most, there.total())


@given(tables, st.randoms(), st.integers(1, 4), st.lists(st.integers(0, 30), max_size=5))
def test_order_batches_parts_and_memory_do_not_matter(
    rows: list[Row], random: Any, most: int, cuts: list[int]
) -> None:
    expected = Counter(kept(rows, most))
    cuts = [cut for cut in cuts if cut <= len(rows)]
    assert Counter(kept(rows, most, cuts=cuts)) == expected
    assert Counter(kept(rows, most, cuts=cuts, memory=0)) == expected
    shuffled = list(rows)
    random.shuffle(shuffled)
    assert Counter(kept(shuffled, most, cuts=cuts, memory=200)) == expected


@pytest.mark.parametrize("bits", [0, 1, 3])
def test_ties_are_settled_by_the_contents(bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a first hash of few bits nearly all rows tie: still at most m, in any order."""
    digests = units._row_hashes

    def short(who: Any, columns: Any) -> Any:
        first, second = digests(who, columns)
        return first & np.uint64((1 << bits) - 1), second

    monkeypatch.setattr(units, "_row_hashes", short)
    rows: list[Row] = [(who, float(i), "x") for who in "abc" for i in range(20)]
    expected = kept(rows, 5)
    assert Counter(row[0] for row in expected) == {"a": 5, "b": 5, "c": 5}
    assert Counter(kept(rows[::-1], 5)) == Counter(expected)


def test_hashes_that_all_collide_keep_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(who: Any, columns: Any) -> Any:
        return np.zeros(len(who), dtype=np.uint64), np.zeros(len(who), dtype=np.uint64)

    monkeypatch.setattr(units, "_row_hashes", nothing)
    rows: list[Row] = [(who, float(i), "x") for who in "abc" for i in range(20)]
    assert Counter(row[0] for row in kept(rows, 5)) == {"a": 5, "b": 5, "c": 5}


def test_units_whose_hashes_agree_in_half_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    def half(column: Any) -> Any:
        found = unit_ids(column)
        found["high"] = 5
        return found

    monkeypatch.setattr(units, "unit_ids", half)
    rows: list[Row] = [(who, float(i), "x") for i in range(20) for who in "abc"]
    assert Counter(row[0] for row in kept(rows, 2)) == {"a": 2, "b": 2, "c": 2}


def test_different_units_keep_different_values() -> None:
    """A hash of the contents alone would keep the same value of all 1000."""
    rows: list[Row] = [(who, float(value), None) for who in range(1000) for value in range(10)]
    values = Counter(row[1] for row in kept(rows, 1))
    assert values.total() == 1000
    assert all(50 <= values[float(value)] <= 150 for value in range(10))


def test_equal_values_are_hashed_alike() -> None:
    """Minus zero is zero, and any NaN a missing cell."""
    odd = np.array([0x7FF8000000000123], dtype=np.uint64).view(np.float64)[0]
    for one, other in ((0.0, -0.0), (math.nan, odd)):
        tables = [
            [(who, value, None) for who in range(50) for value in (first, 1.0, 2.0, 3.0)]
            for first in (one, other)
        ]
        chosen = [bounded(table, 2).kept[0].tolist() for table in tables]
        assert chosen[0] == chosen[1]


def test_copies_of_a_row_count_one_by_one() -> None:
    """Half of each unit's rows are equal: without a copy number all or none of them are kept."""
    rows: list[Row] = [(who, 0.0, None) for who in range(200) for _ in range(20)]
    rows += [(who, 1.0 + i, None) for who in range(200) for i in range(20)]
    copies = Counter(row[0] for row in kept(rows, 10) if row[1] == 0.0)
    assert 900 <= copies.total() <= 1100
    assert all(0 < copies[who] < 10 for who in range(200))


def test_rows_without_an_id_are_one_unit() -> None:
    rows: list[Row] = [
        (cell, 1.0, None) for cell in (None, math.nan, "", "nan", [1], b"\xff", (1,))
    ]
    found = bounded([*rows, ("a", 1.0, None)], 2)
    assert found.units == 2
    assert int(found.kept[0][:7].sum()) == 2
    assert bool(found.kept[0][7])


FORMS: dict[str, Callable[[list[int]], Any]] = {
    "objects": objects,
    "texts": lambda cells: objects([f" {cell} " for cell in cells]),
    "bytes": lambda cells: objects([str(cell).encode() for cell in cells]),
    "mixed": lambda cells: objects([float(c) if i % 2 else str(c) for i, c in enumerate(cells)]),
    "int64": np.array,
    "int16": lambda cells: np.array(cells, dtype=np.int16),
    "float64": lambda cells: np.array(cells, dtype=np.float64),
    "float32": lambda cells: np.array(cells, dtype=np.float32),
    "Arrow": pa.array,
    "Arrow texts": lambda cells: pa.array(list(map(str, cells))),
    "Arrow dictionary": lambda cells: pa.array(list(map(str, cells))).dictionary_encode(),
    "Arrow floats": lambda cells: pa.array(cells, type=pa.float64()),
    "Arrow decimals": lambda cells: pa.array(cells, type=pa.decimal128(9, 2)),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_physical_form_of_ids_is_compared_alike(form: str) -> None:
    cells = [0, 1, -1, 7, 1000, 7]
    assert unit_ids(FORMS[form](cells)).tolist() == unit_ids(np.array(cells)).tolist()


@pytest.mark.parametrize("kind", ["f8", "f4", "f2", "i8", "u8", "g"])
@pytest.mark.filterwarnings("error")
def test_typed_ids_are_compared_like_single_cells(kind: str) -> None:
    values = [0, 1, 2.5, 0.1, 2**53 - 1, 2**53, 2**53 + 2, 2**60, 2**63, -1, math.inf, math.nan]
    if kind[0] in "iu":
        ends = np.iinfo(kind)
        values = [v for v in values if isinstance(v, int) and ends.min <= v <= ends.max]
    with np.errstate(all="ignore"):
        cells = np.array(values).astype(kind) if kind[0] not in "iu" else np.array(values, kind)
    assert unit_ids(cells).tolist() == [unit_ids(objects([c])).tolist()[0] for c in cells]


WORDS = ["true", "FALSE", "False", "nan", "NaN", "null", "NULL", "None", "inf", "NONE", "", "yes"]
TEXTS: dict[str, Callable[[list[Any]], Any]] = {
    "objects": objects,
    "Arrow": lambda texts: pa.array(texts, pa.string()),
    "Arrow bytes": lambda texts: pa.array([t and t.encode() for t in texts], pa.binary()),
    "Arrow dictionary": lambda texts: pa.array(texts, pa.string()).dictionary_encode(),
}
spelled = st.one_of(
    st.none(),
    st.sampled_from(WORDS),
    st.builds("{}{}{}".format, st.sampled_from([" ", ""]), st.sampled_from(WORDS), st.just(" ")),
    st.integers().map(str),
    st.integers(-(10**19), 10**19).map(lambda whole: f"{whole:+025d}"),
    st.text("0123456789+-.eE xT", max_size=8),
    st.text("user-_#é0129", min_size=4, max_size=9),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=9),
)


@pytest.mark.parametrize("form", TEXTS)
@given(st.lists(spelled, max_size=30))
def test_texts_are_compared_by_what_they_are_read_to(form: str, texts: list[Any]) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(ids_of_units, "_FEWEST_AT_ONCE", 0)
        found = unit_ids(TEXTS[form](texts))
    assert found.tolist() == ids_of_units._key_ids([category(text) for text in texts]).tolist()


def test_batches_with_the_same_and_with_other_dictionaries_are_told_apart() -> None:
    texts = [f"user-{i % 7}" for i in range(50)] + ["7", None, "true"] * 10
    dictionary = pa.array(texts).dictionary_encode()
    batches = [dictionary.slice(0, 40), dictionary.slice(40), pa.array(texts).dictionary_encode()]
    batches += [pa.array(["bob", "user-1"] * 20).dictionary_encode(), dictionary.slice(5, 9)]
    kept_rows = []
    for plain in (False, True):
        rows = Bounding(max_rows=2)
        for batch in batches:
            cells = objects(batch.to_pylist()) if plain else batch
            rows.add(0, cells, [np.arange(float(len(batch)))])
        kept_rows.append(rows.finish().kept[0].tolist())
    assert kept_rows[0] == kept_rows[1]


def test_different_ids_are_different_units() -> None:
    cells = ["a", "A", "é", "e", 1, "1.5", 2**63, 2**63 + 1, -(2**63), "x" * 5000, None, "inf"]
    cells += [uuid.UUID(int=1), uuid.UUID(int=2), "2024-01-01", 1e300, 10**400]
    assert len(set(unit_ids(objects(cells)).tolist())) == len(cells)


@pytest.mark.filterwarnings("error")
def test_an_odd_id_changes_no_other_and_raises_nothing() -> None:
    plain_ids = unit_ids(objects(["a", 1, None]))
    for odd in ODD:
        found = unit_ids(objects(["a", 1, None, ODD[odd]]))
        assert found[:3].tolist() == plain_ids.tolist(), odd


def test_units_are_counted() -> None:
    rows: list[Row] = [(i % 17, 0.0, None) for i in range(100)]
    assert bounded(rows, 1).units == bounded(rows, 99, memory=0, cuts=[9, 50]).units == 17
    nobody = bounded([], 1)
    assert (len(nobody.kept[0]), nobody.units) == (0, 0)
    empty = Bounding(max_rows=1).finish()
    assert (empty.kept, empty.units) == ((), 0)


def test_parts_may_be_added_by_threads() -> None:
    bounding = Bounding(max_rows=2, memory=10_000)
    expected = Bounding(max_rows=2)
    who, values = np.arange(6000) % 700, np.arange(6000.0)

    def add(part: int) -> None:
        for start in range(0, 1500, 100):
            rows = slice(part * 1500 + start, part * 1500 + start + 100)
            bounding.add(part, who[rows], [values[rows]])

    threads = [threading.Thread(target=add, args=(part,)) for part in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected.add(0, who, [values])
    assert np.concatenate(bounding.finish().kept).tolist() == expected.finish().kept[0].tolist()


def test_nothing_stays_in_the_folder(tmp_path: Path) -> None:
    bounding = Bounding(max_rows=1, memory=0, folder=str(tmp_path))
    bounding.add(0, np.arange(10), [np.arange(10.0)])
    assert list(tmp_path.iterdir()) == []
    assert bounding.finish().units == 10


def test_max_rows_is_a_positive_integer() -> None:
    for wrong in (0, -1, 1.5, True, "3"):
        with pytest.raises(ParameterError, match=r"^max_rows = "):
            Bounding(max_rows=wrong)  # type: ignore[arg-type]


def test_two_rows_made_to_agree_in_both_hashes_are_chosen_by_their_own_order() -> None:
    """The hash is public, so somebody can make two different rows that agree in all of its bits.

    Which of them is kept must not change with the rows of other units (theory V).
    """
    first = [19141.0, 11097.0]
    second = [float.fromhex("0x1.d10fa53d40112p+291"), float.fromhex("0x1.20f01a4097c01p-371")]

    def kept_of_7(other: int) -> list[float]:
        ids = np.concatenate([[7, 7], np.repeat(np.arange(100, 2100), 2), [other, other]])
        filled = np.random.default_rng(5).integers(0, 1000, 4000).astype(float)
        one = np.concatenate([first, filled, [1.0, 2.0]])
        two = np.concatenate([second, np.zeros(4002)])
        rows = Bounding(max_rows=1)
        rows.add(0, ids, [one, two])
        found: list[float] = one[:2][rows.finish().kept[0][:2]].tolist()
        return found

    assert {tuple(kept_of_7(other)) for other in range(100_000, 100_200)} in (
        {(first[0],)},
        {(first[1],)},
    )


@pytest.mark.parametrize("name", ["\0", ""])
def test_no_declared_column_shows_the_numbers_of_units(name: str) -> None:
    """Names of internal columns are no texts, so none that a source has can be one of them."""
    rows = np.array([(7.0, 3.0), (8.0, 4.0), (7.0, 5.0)], dtype=[("who", float), ("x", float)])
    base = OpenedDataset(
        reader=renamed(array_reader(rows), name),
        kinds={name: zd.number(0, 9)},
        unit=Unit(column="who", max_rows=2),
    )
    people = Dataset(base)
    (block,) = opened(people).blocks()
    assert block.tolist() == [[3.0], [4.0], [5.0]]
    assert people.by_unit is not None
    numbered = np.concatenate(list(opened(people.by_unit).blocks()))
    assert numbered[:, 0].tolist() == [3.0, 4.0, 5.0]
    assert numbered[0, 1] == numbered[2, 1] != numbered[1, 1]
    assert np.concatenate(list(opened(people.presence_only).blocks())).tolist() == [[1.0]] * 3


def renamed(reader: Reader, name: str) -> Reader:
    """Cells whose last column has another name, which no source of ours hands out."""
    names = ("who", name)

    def scan(columns: tuple[str, ...], batch: int, numbers: frozenset[str]) -> Any:
        found = [reader.names[names.index(each)] for each in columns]
        return reader.scan(tuple(found), batch, numbers)

    return replace(reader, names=names, scan=scan)
