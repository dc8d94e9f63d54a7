"""Made-up rows: they fit the schema, come from public numbers alone, and are always the same."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import zerodelta as zd
from data.test_kinds import KINDS
from zerodelta.data.declare import Date
from zerodelta.data.kinds import Number, Text
from zerodelta.data.schema import Schema
from zerodelta.errors import ParameterError


def test_made_up_cells_are_read_to_everything_that_is_declared() -> None:
    rows = zd.fake(KINDS, rows=5000)
    assert rows.dtype.names == tuple(KINDS)
    for name, kind in KINDS.items():
        read = kind.read(rows[name])
        if isinstance(kind, Text):
            assert len(set(read) - {None}) > 5
        elif kind.size is None:
            assert isinstance(kind, Number)
            present = read[~np.isnan(read)]
            lower, upper = map(float, kind.bounds)
            width = upper - lower
            assert lower <= present.min() < lower + width / 100
            assert upper - width / 100 < present.max() <= upper
            assert 0 < np.isnan(read).sum() < 500
        else:
            expected = set(range(kind.size))
            assert set(read.tolist()) == expected, name
            if not isinstance(kind, Date):
                counts = np.bincount(read.astype(int))
                assert counts.min() > 0.9 * 5000 / kind.size


def test_columns_are_unrelated() -> None:
    kinds = {name: zd.number(-1, 1, missing=None) for name in "abcdef"}
    rows = zd.fake(kinds, rows=10_000)
    table = np.column_stack([rows[name] for name in kinds])
    correlations = np.corrcoef(table.T) - np.eye(6)
    assert np.abs(correlations).max() < 0.02


def test_made_up_rows_have_units() -> None:
    schema = Schema(columns={"age": zd.number(0, 9)}, unit="who", max_rows=3)
    counts = np.unique(zd.fake(schema, rows=300)["who"], return_counts=True)[1]
    assert len(counts) == 100
    many = Schema(columns={"age": zd.number(0, 9)}, unit="who", max_rows=3, units=20)
    assert len(np.unique(zd.fake(many, rows=300)["who"])) == 20
    opened = SimpleNamespace(
        kinds=schema.columns, protection=SimpleNamespace(unit="who", max_rows=3)
    )
    assert str(zd.fake(opened, rows=300).tolist()) == str(zd.fake(schema, rows=300).tolist())


def test_made_up_rows_are_always_the_same_and_make_a_frame() -> None:
    rows = zd.fake(KINDS, rows=50)
    assert str(rows.tolist()) == str(zd.fake(KINDS, rows=50).tolist())
    assert str(rows[:20].tolist()) != str(rows[20:40].tolist())
    assert list(pd.DataFrame(rows).columns) == list(KINDS)


def test_a_format_is_followed() -> None:
    kind = zd.date("0999-01-01", "2024-12-31", by="year", format="%%%d/%m,%Y")
    rows = zd.fake({"d": kind}, rows=100)
    assert not np.isnan(kind.read(rows["d"])).any()


def test_what_declares_nothing_is_refused() -> None:
    with pytest.raises(ParameterError, match=r"^people = "):
        zd.fake(3)
    with pytest.raises(ParameterError, match=r"^column 'a' = 3"):
        zd.fake({"a": 3})
    with pytest.raises(ParameterError, match=r"^rows = 0"):
        zd.fake(KINDS, rows=0)
