"""One release on any source: the integers are identical, whatever the engine, batches, threads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import zerodelta as zd
from data.opening import opened
from data.sources import HOLDERS, structured
from zerodelta.data import chosen as base
from zerodelta.data import rows
from zerodelta.data.rows import Rows
from zerodelta.exact.fixed_point import FixedPoint
from zerodelta.exact.sums import exact_product
from zerodelta.training.gradient_sums import Examples
from zerodelta.training.gradients import LinearGradients
from zerodelta.training.losses import Huber, Logistic, Multinomial

ROWS = 1003
CITIES = ["oslo", "rome", "bern"]
COLUMNS = {
    "x": zd.number(-2, 2),
    "y": zd.number(-1, 3, missing=None),
    "z": zd.number(0, 1000, missing="1/2"),
    "city": zd.category(CITIES),
    "member": zd.boolean(),
    "label": zd.number(0, 1, missing=None),
}
BALL = FixedPoint.ball(dimension=3, bound=2, steps=1 << 20)
BOX = FixedPoint.box(dimension=3, lower=[-2, -1, 0], upper=[2, 3, 1000], steps=1 << 30)


def table() -> pa.Table:
    rng = np.random.default_rng(5)
    x, y, z = rng.normal(size=(3, ROWS))
    z = 500 + 100 * z
    x[::50], y[::70], z[::31] = np.nan, 1e308, -1e300
    x[1], x[2], y[3] = 2.0, np.nextafter(2, 3), 5e-324
    cities = rng.choice([*CITIES, "paris"], ROWS).astype(object)
    member, label = rng.integers(0, 2, (2, ROWS))
    cities[::40] = None
    return pa.table(
        {
            "x": pa.array(x, from_pandas=True),
            "y": y,
            "z": z,
            "city": pa.array(cities, pa.string()),
            "member": member.astype(bool),
            "label": label.astype(float),
        }
    )


TABLE = table()


SOURCES = ("structured array", "pandas", "polars", "polars lazy", "arrow", "csv", "duckdb")
FILES = ("parquet", "parquet, 7 groups", "parquet, 100 groups")


def gradients(people: Any, loss: Any, *, once: bool) -> list[int]:
    chosen = people[["x", "y", "z", "label"]]
    made = LinearGradients(
        Examples.of(chosen, label="label"), loss=loss, radius=3, data_norm=2, clip="1/2"
    ).on(opened(chosen))
    theta = np.linspace(-0.5, 0.7, made.dimension)
    found: list[int] = (made.total_once(theta) if once else made.total(theta)).tolist()
    return found


LOSSES = {"logistic": Logistic(), "huber": Huber(label_bound=1), "two": Multinomial(classes=(0, 1))}


def answers(people: Any) -> dict[str, Any]:
    numbers: Rows = opened(people[["x", "y", "z"]])
    keys: Rows = opened(people[["city", "member", "x"]])
    found = {
        "sum in a box": numbers.sum([0, 1, 2], BOX),
        "sum in a ball": numbers.sum([0, 1, 2], BALL),
        "sum of whole rows": numbers.sum([0, 1, 2], BALL, joint=True),
        "gram": numbers.gram([0, 1, 2], BALL),
        "counts": keys.counts("city", 3),
        "counts with others": keys.counts("city", 4, invalid=3),
        "counts by both": keys.group_sums(("city", "member"), (3, 2), None, None),
        "moments": keys.group_sums(
            ("city",),
            (3,),
            "x",
            FixedPoint.box(dimension=1, lower=-2, upper=2, steps=1000),
            degree=2,
        ),
    }
    named = {name: total.tolist() for name, total in found.items()}
    for name, loss in LOSSES.items():
        named[f"gradient, {name}"] = gradients(people, loss, once=True)
    return named


def expected() -> dict[str, Any]:
    """The same numbers by their definitions, from one table in memory."""
    whole = TABLE.to_pandas()
    numbers = whole[["x", "y", "z"]].to_numpy()  # no y and no z is missing
    complete = np.where(np.isnan(numbers).any(axis=1, keepdims=True), np.nan, numbers)
    ball, box = BALL.quantize(complete), BOX.quantize(numbers)
    codes = whole["city"].map({city: i for i, city in enumerate(CITIES)}).to_numpy()
    member = whole["member"].to_numpy()
    counts = [int((codes == i).sum()) for i in range(3)]
    lattice = FixedPoint.box(dimension=1, lower=-2, upper=2, steps=1000)
    k = lattice.quantize(numbers[:, :1])[:, 0]
    moments = []
    for i in range(3):
        there = (codes == i) & ~np.isnan(numbers[:, 0])
        moments.append(
            [counts[i], int(there.sum()), int(k[there].sum()), int((k[there] ** 2).sum())]
        )
    return {
        "sum in a box": [sum(column) for column in box.T.tolist()],
        "sum in a ball": [sum(column) for column in BALL.quantize(numbers).T.tolist()],
        "sum of whole rows": [sum(column) for column in ball.T.tolist()],
        "gram": exact_product(ball, ball, bounds=(1 << 20, 1 << 20)).tolist(),
        "counts": counts,
        "counts with others": [*counts, ROWS - sum(counts)],
        "counts by both": [
            [int(((codes == i) & (member == flag)).sum())]
            for i in range(3)
            for flag in (False, True)
        ],
        "moments": moments,
    }


@pytest.fixture(scope="module")
def reference() -> dict[str, Any]:
    people = zd.open(structured(TABLE), columns=COLUMNS)
    kept = {
        f"gradient, {name}": gradients(people, loss, once=False) for name, loss in LOSSES.items()
    }
    return expected() | kept


@pytest.mark.parametrize(("threads", "batch"), [(1, 1 << 16), (2, 1 << 16), (5, 37)])
@pytest.mark.parametrize("source", [*SOURCES, *FILES])
def test_every_source_gives_the_same_integers(
    source: str,
    threads: int,
    batch: int,
    reference: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rows, "processors", lambda: threads)
    monkeypatch.setattr(rows, "_FEWEST_ENTRIES", 0)
    monkeypatch.setattr(base, "_BATCH", batch)
    people = zd.open(HOLDERS[source](TABLE, tmp_path), columns=COLUMNS)
    assert answers(people) == reference


@pytest.mark.parametrize("size", [70_000, ROWS])
def test_many_keys_are_counted_where_they_are(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "_LARGE_TABLE", 1000)
    keys = np.random.default_rng(0).integers(-5, size + 5, ROWS).astype(float)
    keys[:3] = np.nan, 0.5, 1e300
    people = zd.open(keys[:, None], columns={"0": zd.number(-9, 99_999)})
    right = [int((keys == key).sum()) for key in range(size)]
    assert opened(people).counts(0, size).tolist() == right
    right[7] += ROWS - sum(right)
    assert opened(people).counts(0, size, invalid=7).tolist() == right


@pytest.mark.parametrize("invalid", [None, 2])
@pytest.mark.parametrize("groups", [1, 7])
def test_columns_are_counted_as_they_are_stored(
    groups: int, invalid: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Texts by their dictionaries, integers as such: what floats of the same cells give."""
    rng = np.random.default_rng(1)
    texts = rng.choice([*CITIES, "elsewhere", "", "1.0"], ROWS).tolist()
    integers = rng.integers(-3, 8, ROWS)
    integers[:3] = [2**62, -(2**62), 2**53 + 1]
    table = pa.table(
        {
            "text": texts,
            "null": [None if i % 5 == 0 else text for i, text in enumerate(texts)],
            "int64": integers,
            "uint64": np.abs(integers).astype(np.uint64) * 2,
            "int8": (integers % 100).astype(np.int8),
            "gap": pa.array([None if i % 7 == 0 else int(k) for i, k in enumerate(integers)]),
        }
    )
    path = tmp_path / "stored.parquet"
    pq.write_table(table, path, row_group_size=-(-ROWS // groups))
    city = zd.category(CITIES)
    kinds = {
        **dict.fromkeys(("text", "null"), city),
        **{name: zd.number(-9, 99, integer=True) for name in ("int64", "uint64", "int8", "gap")},
    }
    people = zd.open(path, columns=kinds)
    monkeypatch.setattr(rows, "processors", lambda: 2)
    for name in kinds:
        found = {}
        for entries in (0, 1 << 60):  # in threads, as stored; in one, as floats
            monkeypatch.setattr(rows, "_FEWEST_ENTRIES", entries)
            found[entries] = opened(people[[name]]).counts(0, 3, invalid=invalid).tolist()
        codes = [CITIES.index(c) if c in CITIES else -1 for c in table[name].to_pylist()]
        if isinstance(kinds[name], type(kinds["int8"])):
            codes = [k if k is not None and 0 <= k < 3 else -1 for k in table[name].to_pylist()]
        right = [codes.count(key) for key in range(3)]
        if invalid is not None:
            right[invalid] += codes.count(-1)
        assert found == {0: right, 1 << 60: right}, name
