"""Synthetic rows: the caller's kind of table, tables kept by rounding, speed, refusals."""

from __future__ import annotations

import importlib
import itertools
from typing import Any

import numpy as np
import pytest

import zerodelta as zd
from tasks.test_answer_queries import binary
from zerodelta.marginals.domain import as_domain, as_workload, row_writer
from zerodelta.marginals.fit import rounded_cells, whole_rows
from zerodelta.tasks.marginals import answer_queries, synthesize


def tables(rows: Any, size: int = 2) -> list[Any]:
    found = []
    for pair in itertools.combinations(range(rows.shape[1]), 2):
        table = np.zeros((size, size))
        np.add.at(table, tuple(rows[:, i] for i in pair), 1 / len(rows))
        found.append(table)
    return found


def distance(a: Any, b: Any) -> float:
    return float(np.mean([np.abs(x - y).mean() for x, y in zip(a, b, strict=True)]))


@pytest.mark.parametrize(("columns", "size"), [(6, 1000), (12, 2000), (14, 700)])
def test_whole_rows_keep_the_tables(columns: int, size: int) -> None:
    """Fewer and more cells than rows; sampling would be off by about 0.4/√size per cell."""
    draw = np.random.default_rng(3)
    weights = draw.dirichlet(np.full(1 << columns, 0.3))
    domain = as_domain(dict.fromkeys(range(columns), 2))
    pairs = list(itertools.combinations(range(columns), 2))
    codes = whole_rows(weights, domain, as_workload(pairs, domain), size)
    assert codes.shape == (size, columns)
    cube = weights.reshape((2,) * columns)
    wanted = [cube.sum(axis=tuple(i for i in range(columns) if i not in pair)) for pair in pairs]
    assert distance(tables(codes), wanted) < 0.1 * 0.4 / np.sqrt(size)


def test_rounding_adds_up() -> None:
    draw = np.random.default_rng(4)
    for cells, size in ((1, 5), (7, 3), (50, 1000), (4096, 10), (3, 1)):
        weights = draw.dirichlet(np.ones(cells))
        counts = rounded_cells(weights, size)
        assert counts.sum() == size
        assert counts.min() >= 0
        assert np.abs(np.cumsum(counts) - np.cumsum(weights) * size).max() < max(1, cells / 2)


def test_rows_have_the_tables_of_the_data_within_the_forecast() -> None:
    rows, domain = binary("clusters", 12, 100_000), dict.fromkeys(range(12), 2)
    release = synthesize(rows, domain=domain, epsilon=1)
    assert release.value.shape == rows.shape
    assert release.value.dtype.kind == "i"
    assert distance(tables(release.value), tables(rows)) < 1.5 * float(release.error)
    assert zd.verify(release.certificate)
    assert release.certificate.status.value == "proven"


@pytest.mark.parametrize("size", [3, 20, 100, 1000])
@pytest.mark.parametrize("kind", ["independent", "clusters", "chain"])
def test_the_forecast_knows_how_few_rows_are_made(kind: str, size: int) -> None:
    rows, domain = binary(kind, 8, 20_000), dict.fromkeys(range(8), 2)
    release = synthesize(rows, domain=domain, epsilon=10, size=size)
    found = distance(tables(release.value), tables(rows))
    assert 0.25 * float(release.error) < found < 2.5 * float(release.error)


@pytest.mark.parametrize("method", ["k-norm", "laplace", "counts", "mwem"])
def test_every_method_makes_rows_with_the_certificate_of_the_tables(method: str) -> None:
    rows, domain = binary("chain", 4, 300), dict.fromkeys(range(4), 2)
    release = synthesize(rows, domain=domain, epsilon=1, size=50, method=method)
    assert release.value.shape == (50, 4)
    assert set(np.unique(release.value)) <= {0, 1}
    same = answer_queries(rows, domain=domain, epsilon=1, method=method)
    assert release.certificate.to_json() == same.certificate.to_json()


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_frames_come_back_as_frames_of_the_same_kind(library: str) -> None:
    frames = importlib.import_module(library)
    build = {"pandas": "DataFrame", "polars": "DataFrame", "pyarrow": "table"}[library]
    data = {"sex": ["f", "m", None, "x"] * 500, "age": [0, 1, 2, 1] * 500, "id": [1] * 2000}
    frame = getattr(frames, build)(data)
    domain = {"age": 3, "sex": ["f", "m", "other"]}
    value = synthesize(frame, domain=domain, epsilon=20, unknown="other").value
    assert type(value) is type(frame)
    columns = getattr(value, "column_names", None) or list(value.columns)
    assert columns == ["age", "sex"]
    assert len(value) == 2000
    entries = value["sex"].to_pylist() if library == "pyarrow" else list(value["sex"])
    assert set(entries) <= {"f", "m", "other"}
    assert abs(entries.count("other") - 1000) < 50
    if library != "pandas":
        with pytest.raises(zd.errors.ParameterError, match="only texts"):
            synthesize(frame, domain={"sex": ["f", 3], "age": 2}, epsilon=1)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize(
    ("categories", "kind"),
    [
        ([2.5, 1], float),
        ([1, 2.5], float),
        ([True, 3], int),
        ([False, True], bool),
        (["x", None], str),
        ([1, 2.5, None], float),
    ],
    ids=str,
)
def test_columns_of_frames_have_the_types_of_the_categories(
    library: str, categories: list[Any], kind: type
) -> None:
    """Whichever of them occur in the rows that are written."""
    frames = importlib.import_module(library)
    build = {"pandas": "DataFrame", "polars": "DataFrame", "pyarrow": "table"}[library]
    frame = getattr(frames, build)({"b": [1.0, 2.5]})
    write = row_writer(frame, as_domain({"b": categories}))
    written = [write(np.full((2, 1), code)) for code in range(len(categories))]
    written.append(write(np.arange(len(categories)).reshape(-1, 1)))
    types = {str(table.schema if library != "pandas" else table.dtypes["b"]) for table in written}
    assert len(types) == 1
    column = written[-1]["b"]
    entries = column.to_pylist() if library == "pyarrow" else column.to_list()
    present = [entry for entry, given in zip(entries, categories, strict=True) if given is not None]
    assert {type(entry) for entry in present} == {kind}
    assert present == [given for given in categories if given is not None]


def test_frames_with_numbered_columns_keep_them() -> None:
    pandas = importlib.import_module("pandas")
    frame = pandas.DataFrame(np.array([[0, 1], [1, 1]] * 500))
    value = synthesize(frame, domain={1: 2, 0: 2}, epsilon=9, size=8).value
    assert value.columns.tolist() == [1, 0]
    assert value.index.tolist() == list(range(8))
    assert value[0].sum() == 4


def test_one_column_is_enough() -> None:
    rows = np.array([0, 1, 1, 1] * 1000)
    value = synthesize(rows, domain={0: 2}, epsilon=5, size=8).value
    assert value[:, 0].sum() == 6


def test_arrays_have_the_types_of_the_categories() -> None:
    rows = np.array([["a", 1.5], ["b", 2.5]], dtype=object)
    cases: list[tuple[Any, Any]] = [
        ({0: ["a", "b"], 1: [1.5, 2.5]}, "O"),
        ({1: [1.5, 2.5]}, "f"),
        ({0: [1, 2], 1: [True, False]}, "i"),
    ]
    for domain, kind in cases:
        value = synthesize(rows, domain=domain, workload=1, epsilon=1, size=9).value
        assert value.dtype.kind == kind
        assert value.shape == (9, len(domain))
        for i, options in enumerate(domain.values()):
            assert set(value[:, i].tolist()) <= set(options)


def test_rows_go_to_cells_that_rounding_left_empty() -> None:
    """Eight cells of 0.4 rows each are 3 rows together, though every one rounds to none."""
    table = np.array([[20, 6], [20, 7], [20, 7], [13, 7]]) / 100
    weights = np.broadcast_to(table[None, :, :, None] / 8, (2, 4, 2, 4)).reshape(-1)
    domain = as_domain({0: 2, 1: 4, 2: 2, 3: 4})
    rows = whole_rows(weights, domain, as_workload([(1, 2)], domain), 50)
    counts = np.zeros((4, 2))
    np.add.at(counts, (rows[:, 1], rows[:, 2]), 1)
    assert len(rows) == 50
    assert np.abs(counts - 50 * table).max() < 1
