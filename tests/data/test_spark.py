"""Spark: what a partition yields, and that any partitions give the integers of NumPy."""

from __future__ import annotations

import datetime
import importlib.util
import os
import pickle
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import zerodelta as zd
from data.full_releases import RELEASES
from data.opening import opened
from zerodelta.data import spark as spark_rows
from zerodelta.data import spark as spark_workers
from zerodelta.data.arrays import reader_of
from zerodelta.data.dataset import Dataset
from zerodelta.data.keys import GroupKey, GroupKeys, tally
from zerodelta.data.readers import FOREIGN_CODE, Reader
from zerodelta.data.rows import Rows
from zerodelta.exact.bits import SystemBits
from zerodelta.exact.fixed_point import FixedPoint
from zerodelta.exact.sums import exact_total
from zerodelta.marginals.domain import as_domain, as_workload, count_rows
from zerodelta.mechanisms import ranks as near_ranks
from zerodelta.mechanisms.joint_quantiles import CELL_BITS, JointExponential
from zerodelta.mechanisms.partition_noise import power_sums
from zerodelta.mechanisms.ranks import Aim, GridRows, as_points
from zerodelta.mechanisms.runs import GroupedColumn
from zerodelta.regression.features import Features
from zerodelta.regression.statistics import LENGTH, exact_statistics
from zerodelta.spaces import Finite
from zerodelta.spine import plan as facts
from zerodelta.training.gradient_sums import Examples
from zerodelta.training.gradients import CallableGradients, LinearGradients
from zerodelta.training.losses import Logistic, Multinomial
from zerodelta.training.models import TanhNetwork

pa = pytest.importorskip("pyarrow")
fake = importlib.import_module("data.fake_spark")

ROOT = Path(__file__).parents[2]

FINE = FixedPoint.box(dimension=1, lower=0, upper=120, steps=2**40)
PAIR = FixedPoint.ball(dimension=2, bound=200, steps=2**20)
KEYS = GroupKeys(
    keys=(
        GroupKey(name="city", labels=(0, 1, 2)),
        GroupKey(name="age", labels=(0, 1), bins=zd.bins([0, 20, 90])),
    )
)


def last_but_one(block: Any) -> Any:
    return block[:, -2:-1]


QUESTIONS: dict[str, Callable[[Rows], Any]] = {
    "sum": lambda rows: rows.sum(["age"], FINE),
    "joint sum": lambda rows: rows.sum(["age", "height"], PAIR, joint=True),
    "function": lambda rows: rows.sum(lambda block: block[:, :1] / 2, FINE),
    "gram": lambda rows: rows.gram(["age", "height"], PAIR),
    "counts": lambda rows: rows.counts("city", 3, invalid=1),
    "counts nowhere": lambda rows: rows.counts("city", 2),
    "group sums": lambda rows: rows.group_sums(["city"], [3], "age", FINE, degree=3),
    "table": lambda rows: np.column_stack(
        [
            (
                found := power_sums(
                    rows, KEYS, ["height", "age"], [FINE] * 2, [2, 1], missing=[False, True]
                )
            )[0]
        ]
        + found[1]
    ),
    "rows of groups": lambda rows: rows.group_sums(["city", "member"], [3, 2], None, None),
}

NETWORK = TanhNetwork(lower=(0, 0, 0), upper=(120, 200, 2), units=2)


def gradient(rows: Rows, loss: Any) -> Any:
    examples = Examples(source=rows, label=3)
    made = LinearGradients(examples, loss=loss, radius=1, data_norm=200, clip="50")
    return made.total(np.linspace(-0.01, 0.02, made.dimension))


def network(rows: Rows) -> Any:
    examples = Examples(source=rows, label=3)
    made = CallableGradients(
        examples, gradient=NETWORK.gradient, radius=9, clip=1, dimension=NETWORK.parameters
    )
    return made.total(NETWORK.start())


def ranks(rows: Rows, size: int) -> Any:
    column = GridRows(rows=rows, points=as_points((0, 120), size), skip=True)
    found = column.groups(lambda count: Aim(first=count // 2, last=(count + 1) // 2), reach=3)
    groups = zip(found.scores.tolist(), found.members.tolist(), strict=True)
    below = [*column.ranks(size // 3), *column.ranks(0)]
    return np.array([*below, *(number for group in groups for number in group)])


def tables(rows: Rows) -> Any:
    domain = as_domain({"city": 3, "member": 2})
    asked = as_workload(2, domain)
    options: Any = {"unknown": domain.sizes, "declared": True, "planned": 9, "private": True}
    counted = count_rows(rows, domain, asked, **options)
    return np.concatenate([counted.table((0, 1)).ravel(), counted.table((1,))])


def places(rows: Rows, size: int) -> Any:
    """The places of all rows by group on a grid, and how many are at each of a smaller one."""
    column = GroupedColumn(
        rows=rows, keys=KEYS, column="height", points=as_points((0, 200), size), skip=True
    )
    read_first = JointExponential.for_epsilon(epsilon=1, levels=["1/2"], groups=6).ranks_read_first
    runs = column.runs(SystemBits(), read_first=partial(read_first, points=size))
    found = [one.borders(0, one.count) >> CELL_BITS for one in runs]
    few = GroupedColumn(
        rows=rows, keys=KEYS, column="age", points=as_points((0, 120), 5), skip=True
    )
    return np.concatenate([*found, few.counts()])


QUESTIONS |= {
    "gradient": lambda rows: gradient(rows, Logistic()),
    "gradients of classes": lambda rows: gradient(rows, Multinomial(classes=(0, 1))),
    "gradient of a network": network,
    "statistics": lambda rows: exact_statistics(Features.of(3, 200, True, length=LENGTH), rows),
    "mode": lambda rows: tally(rows.mapped(last_but_one, ("0",)), Finite(2)).dense(2),
    "mode of many": lambda rows: tally(rows, Finite(5000), unknown=7).dense(5000),
    "ranks": lambda rows: ranks(rows, 121),
    "ranks on a fine grid": lambda rows: ranks(rows, 1 << 40),
    "tables": tables,
    "places by group": lambda rows: places(rows, 121),
    "places by group on a fine grid": lambda rows: places(rows, 1 << 40),
}

OF_UNITS = ("sum", "table", "mode", "ranks")
"""What a real cluster is asked of units, too: their rows are bounded before any question."""

COLUMNS: dict[str, Any] = {
    "age": zd.number(0, 120),
    "height": zd.number(0, 200, missing=None),
    "city": zd.category(["oslo", "rome"], other=True),
    "member": zd.boolean(),
}
ODD_TEXTS = ["", "x", "nan", "inf", " 1 ", "1e400", "9" * 400, '"', ",", ";\n", "é", "\x00", "TRUE"]
ODD_TEXTS += ["-1e4000", "0x10", "1_000", "oslo", "40.0", "1,5", "\ud7ff", "NULL", "\r\n"]
ODD_NUMBERS = [None, np.nan, np.inf, -np.inf, 1e308, -1e308, -0.0, 5e-324, 2**53 + 1.0, 40.0]

rows_of = st.lists(
    st.tuples(
        st.sampled_from(["ann", "bob", "7", None]),
        st.one_of(st.none(), st.sampled_from(ODD_TEXTS), st.integers(-5, 130).map(str)),
        st.one_of(st.sampled_from(ODD_NUMBERS), st.floats(allow_nan=True)),
        st.sampled_from(["oslo", "rome", "paris", None, ""]),
        st.sampled_from([True, False, None]),
    ),
    max_size=25,
)
TYPES = [pa.string(), pa.string(), pa.float64(), pa.string(), pa.bool_()]


def table(rows: list[Any]) -> Any:
    cells = list(zip(*rows, strict=True)) or [()] * len(TYPES)
    columns = [pa.array(each, kind) for each, kind in zip(cells, TYPES, strict=True)]
    return pa.table(columns, names=["who", *COLUMNS])


def answers(people: Dataset) -> dict[str, list[Any]]:
    """The integers, and whether they are Python's: a plan tells which, so it must agree, too."""
    rows = opened(people)
    found = {name: ask(rows) for name, ask in QUESTIONS.items()}
    return {name: [str(each.dtype), each.tolist()] for name, each in found.items()}


def kept(people: Dataset) -> list[str]:
    found = np.concatenate([np.empty((0, len(people.columns))), *opened(people).blocks()])
    return sorted(str(row) for row in found.tolist())


OPTIONS: list[dict[str, Any]] = [
    {},
    {"unit": "who", "max_rows": 1},
    {"unit": "who", "max_rows": 3},
    {"neighbors": "add-remove", "expected_rows": 10},
]


@pytest.mark.parametrize("options", OPTIONS, ids=["rows", "one", "three", "add-remove"])
@given(
    rows=rows_of,
    partitions=st.integers(1, 4),
    batch=st.integers(1, 7),
    filtered=st.booleans(),
)
@settings(max_examples=20)
def test_any_partitions_and_batches_give_the_integers_of_one_table(
    rows: list[Any], partitions: int, batch: int, filtered: bool, options: dict[str, Any]
) -> None:
    cells = table(rows)
    spread = fake.frame(cells, partitions=partitions, batch=batch)
    there, here = (zd.open(source, columns=COLUMNS, **options) for source in (spread, cells))
    if filtered:
        there, here = (people.where("not (height < 40)") for people in (there, here))
    assert (there.rows, there.row_count_is_public) == (here.rows, here.row_count_is_public)
    assert answers(there) == answers(here)
    assert kept(there) == kept(here)


@pytest.mark.parametrize("most", [1, 2, 5])
@pytest.mark.parametrize("partitions", [1, 3])
def test_of_crowded_units_the_same_rows_are_kept(most: int, partitions: int) -> None:
    """All units have more rows than count, some of them several times the same."""
    who = [None, "ann", "bob", "7", *map(str, range(10, 30))]
    rows = [(each, str(i), float(i), "oslo", True) for i in range(6) for each in who]
    rows += [(each, "90", 90.0, "rome", False) for each in who for _ in range(4)]
    spread = fake.frame(table(rows), partitions=partitions, batch=7)
    columns = {**COLUMNS, "who": zd.text(length=10)}  # a text is in the hash, too
    there, here = (
        zd.open(each, columns=columns, unit="who", max_rows=most)[list(COLUMNS)]
        for each in (spread, table(rows))
    )
    assert there.rows == here.rows == most * len(who)
    assert len(kept(there)) == most * len(who)
    assert kept(there) == kept(here)
    assert answers(there) == answers(here)


def test_cells_of_every_physical_type_are_read_as_from_a_table() -> None:
    day = datetime.date(2020, 5, 1)
    odd = pa.table(
        {
            "whole": pa.array([2**63 - 1, -(2**63), 0, None]),
            "decimal": pa.array([Decimal("1.25"), Decimal("-3"), None, Decimal("9" * 20)]),
            "day": pa.array([day, None, datetime.date(1, 1, 1), datetime.date(9999, 12, 31)]),
            "time": pa.array([datetime.datetime(2020, 5, 1, 23)] * 3 + [None], pa.timestamp("us")),
            "bytes": pa.array([b"oslo", b"\xff", None, b""]),
            "list": pa.array([[1], [2.5], None, []]),
            "Whole": pa.array([1, 2, 3, 4]),
        }
    )
    dates = zd.date("2020-01-01", "2020-12-31")
    columns = {
        "whole": zd.number(0, 10),
        "decimal": zd.number(0, 10),
        "list": zd.number(0, 10),
        "day": dates,
        "time": dates,
        "bytes": zd.category(["oslo"]),
        "Whole": zd.number(0, 9),
    }
    there, here = (zd.open(each, columns=columns) for each in (fake.frame(odd, partitions=2), odd))
    assert kept(there) == kept(here)


def batches(*columns: Any) -> Any:
    named = [f"c{i}" for i in range(len(columns))]
    return pa.table([pa.array(each, pa.float64()) for each in columns], names=named).to_batches(2)


def added(total: Any) -> Any:
    return exact_total(spark_workers.decoded((b.to_pylist()[0] for b in total), (3,)), (3,))


@pytest.mark.parametrize("piece", [1, 2, 3, 1 << 17])
def test_a_partition_yields_its_sums_in_pieces(piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_workers, "_ENTRIES_SENT", piece)

    def work(block: Any) -> Any:
        return np.array([len(block), int(np.nansum(block)), -7])

    monkeypatch.setattr(spark_workers, "_BLOCK_ROWS", 1)
    found = list(spark_workers.sum_rows(work, (3,), batches([1, 2, 3, 4, np.nan])))
    assert len(found) == -(-3 // piece)
    assert added(found).tolist() == [5, 10, -7 * 3]  # blocks of 2, 2 and 1
    empty = list(spark_workers.sum_rows(work, (3,), []))
    assert added(empty).tolist() == [0, 0, 0]


def test_sums_beyond_64_bits_are_exact() -> None:
    def work(block: Any) -> Any:
        return np.full(3, -(2**62), dtype=np.int64)

    one = list(spark_workers.sum_rows(work, (3,), batches([1.0])))
    assert not one[0].to_pylist()[0]["wide"]
    assert added(one * 5).tolist() == [-5 * 2**62] * 3
    larger = list(
        spark_workers.sum_rows(lambda block: work(block).astype(object) * 8, (3,), batches([1.0]))
    )
    assert larger[0].to_pylist()[0]["wide"]
    assert added([*larger, *one]).tolist() == [-9 * 2**62] * 3


def test_a_worker_shows_nothing_of_what_it_was_told() -> None:
    def work(block: Any) -> Any:
        raise ValueError("a secret")

    with pytest.raises(RuntimeError) as raised:
        list(spark_workers.sum_rows(work, (3,), batches([1.0])))
    assert str(raised.value) == "a partition could not be read to its end"
    assert raised.value.__context__ is None
    people = zd.open(fake.frame(table([("ann", "1", 1.0, "oslo", True)])), columns=COLUMNS)
    rows = opened(people)
    alone: Any = {"bound": 1, "threads": 1, "stored": False, "number": None}
    with pytest.raises(zd.errors.ParameterError, match="read to the end") as fixed:
        list(rows.held.partials(work, (3,), keyed=False, **alone))
    assert fixed.value.__context__ is None


def test_what_a_worker_gets_has_no_rows() -> None:
    people = zd.open(fake.frame(table([("ann", "31337", 1.0, "oslo", True)])), columns=COLUMNS)
    sent = pickle.dumps(people.chosen)
    assert b"31337" not in sent
    there = pickle.loads(sent)
    assert there.needed == people.chosen.needed
    assert there.read({name: pa.array(["1"]) for name in there.needed}).tolist() == [[1, 1, 2, 1]]


def test_a_data_frame_is_told_by_its_type_and_asserted() -> None:
    cells = table([("ann", "40", 1.0, "oslo", True)] * 50)
    reader = reader_of(fake.frame(cells))
    assert (reader.text, reader.premise) == ("Spark DataFrame", FOREIGN_CODE)
    assert reader.names == ("who", *COLUMNS)
    people = zd.open(fake.frame(cells, partitions=3), columns=COLUMNS)
    certificate = zd.mean(people, "age", epsilon=1).certificate
    assert certificate.status.value == "asserted"
    assert FOREIGN_CODE in certificate.assumed
    assert certificate.row == "one row of the result"


def test_streams_and_clusters_without_the_library_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cells = table([("ann", "40", 1.0, "oslo", True)])
    endless = fake.frame(cells)
    endless.isStreaming = True
    with pytest.raises(zd.errors.ParameterError, match="not a stream"):
        zd.open(endless, columns=COLUMNS)
    people = zd.open(fake.frame(cells), columns=COLUMNS)
    monkeypatch.setattr(fake.DataFrame, "collect", lambda self: [{"version": "0.0"}])
    with pytest.raises(zd.errors.ParameterError, match="on the workers"):
        opened(people)
    monkeypatch.setattr(fake.DataFrame, "sparkSession", None)
    with pytest.raises(zd.errors.ParameterError, match="on the workers") as refused:
        opened(people)
    assert refused.value.__context__ is None


@pytest.mark.parametrize("most", [0, 3, 100])
def test_crowded_cells_are_counted_by_the_workers(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cell with many rows is counted point by point, one with few sends its rows."""
    monkeypatch.setattr(near_ranks, "_HELD", most)
    monkeypatch.setattr(near_ranks, "_ONE_PASS", 8)
    monkeypatch.setattr(near_ranks, "_CELL_BITS", 3)
    ages = [str(age) for age in [3, 50, 50, 51, 52, 52, 60, 60, 60, 61, 90, 119] * 5]
    cells = table([("ann", age, 1.0, "oslo", True) for age in ages])
    there, here = (
        ranks(opened(zd.open(each, columns=COLUMNS)), 121)
        for each in (fake.frame(cells, partitions=3), cells)
    )
    assert there.tolist() == here.tolist()


def test_quantiles_leave_the_rows_where_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    cities = ["rome", "oslo"]
    cells = [("ann", str(i % 90), float(i % 200), cities[i % 2], True) for i in range(400)]
    people = zd.open(fake.frame(table(cells), partitions=3, batch=50), columns=COLUMNS)
    monkeypatch.delattr(spark_rows.OnCluster, "blocks")
    monkeypatch.setattr(Reader, "parts", None)
    middle = {"oslo": 100, "rome": 99}
    for grid in (None, 41):
        asked: Any = {"q": ["1/4", "1/2"], "grid": grid, "epsilon": 1000}
        low, half = zd.quantiles(people, "height", **asked).value
        assert abs(low - 50) <= 5
        assert abs(half - 100) <= 5
    found = zd.table(people, by="city", of={"height": ["median"]}, epsilon=1000).value
    medians = dict(zip(found["city"], found["height_median"], strict=True))
    assert all(abs(medians[city] - middle[city]) <= 5 for city in middle)


def test_what_is_too_large_for_the_driver_is_refused_before_it_is_paid_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells = table([("ann", str(age), 1.0, "oslo", True) for age in range(40)])
    columns = {"age": zd.number(0, 120, missing=None)}
    ledger = zd.Ledger(tmp_path / "l", budget=1, data="people")
    monkeypatch.setattr(facts, "MOST_COLLECTED", 39)
    people = zd.open(fake.frame(cells), columns=columns, name="people")
    asked: Any = {"trim": "1/4", "epsilon": 1, "ledger": ledger}
    with pytest.raises(
        zd.errors.ParameterError, match="rows = 40: expected rows that fit into memory"
    ):
        zd.trimmed_mean(people, "age", **asked)
    assert ledger.spent == 0
    guessed = facts.Facts(rows=None, expected_rows=20, columns=("a", "b"), remote=True)
    assert not guessed.may_hold(8)
    monkeypatch.setattr(facts, "MOST_COLLECTED", 40)
    assert guessed.may_hold(8)
    zd.trimmed_mean(people, "age", **asked)
    assert ledger.spent == 1


def test_rows_come_to_the_driver_up_to_a_public_number(monkeypatch: pytest.MonkeyPatch) -> None:
    cells = table([("ann", "40", 1.0, "oslo", True)] * 9)
    people = zd.open(fake.frame(cells), columns=COLUMNS)
    monkeypatch.setattr(spark_rows, "MOST_COLLECTED", 35)
    with pytest.raises(zd.errors.ParameterError, match="at most 8 rows"):
        list(opened(people).blocks())
    few = people[["age", "member"]]
    assert sum(map(len, opened(few).blocks())) == 9


# -- Spark itself -----------------------------------------------------------------------------


def java_version() -> int:
    """Return the version of Java that Spark will start; 0 if there is none."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java") if home is None else str(Path(home) / "bin" / "java")
    if java is None or not Path(java).exists():
        return 0
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'version "(\d+)', said)
    return 0 if found is None else int(found[1])


def run(job: str, mode: str, folder: Path) -> list[str]:
    """Run a job of `spark_jobs.py` in a process of its own; return what it says it checked."""
    for module in ("pyspark", *(["grpc"] if mode == "connect" else [])):
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed: pip install 'zerodelta[spark]'")
    if java_version() < 17:
        pytest.skip("Spark needs Java 17 or later")
    paths = [str(ROOT / "src"), str(ROOT / "tests"), str(ROOT)]
    done = subprocess.run(
        [sys.executable, "-m", "data.spark_jobs", job, mode, str(folder)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYSPARK_PYTHON": sys.executable},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-5000:]
    assert "Traceback" not in done.stderr, done.stderr[-5000:]
    return done.stdout.split("\n")[:-1]


@pytest.mark.parametrize("mode", ["classic", pytest.param("connect", marks=pytest.mark.slow)])
def test_a_cluster_gives_the_integers_of_one_table(mode: str, tmp_path: Path) -> None:
    """One job for each kind of sum, over all odd rows; for rows, and for units."""
    checked = run("integers", mode, tmp_path)
    assert checked == [
        *(f"rows: {name}" for name in [*QUESTIONS, "blocks"]),
        *(f"units: {name}" for name in [*OF_UNITS, "blocks"]),
        "retried",
        "forgotten",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["classic", "connect"])
def test_whole_releases_whose_rows_stay_on_the_cluster(mode: str, tmp_path: Path) -> None:
    asked = [*RELEASES, "median", "synthetic rows", "unit mean", "study"]
    assert run("releases", mode, tmp_path) == asked
