"""Modes, histograms, quantiles and robust means of data sets: declared universes and bounds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import zerodelta as zd
from sampling import Replace
from zerodelta.data.keys import tally
from zerodelta.mechanisms.stable_queries import Median
from zerodelta.spaces import Finite

CITIES = zd.category(["oslo", "rome"], other=True)


def people(**options: Any) -> Any:
    cells = {
        "city": ["oslo", "rome", "oslo", "bern", "oslo", None] * 150,
        "age": np.arange(900) % 9,
        "day": ["2024-03-01", "2024-05-02", "2024-03-31"] * 300,
        "member": pd.Series([True, "yes", 0] * 300, dtype=object),
    }
    columns = {
        "city": CITIES,
        "age": zd.number(0, 8, missing=None, integer=True),
        "day": zd.date("2024-01-01", "2024-06-30"),
        "member": zd.boolean(),
    }
    return zd.open(pd.DataFrame(cells), columns=columns, **options)


def test_universes_and_bounds_come_from_the_schema() -> None:
    rows = people()
    assert zd.mode(rows, "city", epsilon=9).value == "oslo"
    assert zd.mode(rows["city"], epsilon=9).value == "oslo"
    assert zd.mode(rows, "day", epsilon=9).value == "2024-03"
    assert zd.mode(rows, "member", epsilon=9).value is True
    counts = zd.histogram(rows, "city", epsilon=99).value
    assert counts.tolist() == [450, 150, 300]
    assert zd.histogram(rows, "day", epsilon=99).value.tolist() == [0, 0, 600, 0, 300, 0]
    assert zd.histogram(rows.where("age < 3"), "member", epsilon=99).value.tolist() == [100, 200]
    assert zd.median(rows, "age", epsilon=9).value == 4
    assert zd.quantile(rows, "age", q=1, margin=0, epsilon=99).value == 8
    assert zd.median(rows.where("age >= 6"), "age", epsilon=9).value == 7
    assert 3 < zd.trimmed_mean(rows, "age", trim="1/10", epsilon=9).value < 5
    assert zd.queries.propose_test_release(
        rows, "age", query=Median(bounds=(0, 8), steps=4), proposed_bound=8, epsilon=9
    ).value == pytest.approx(4, abs=4)


def test_whole_numbers_have_their_own_grid() -> None:
    found = {zd.median(people(), "age", epsilon="1/100").value for _ in range(20)}
    assert found <= set(range(9))


def test_add_remove_needs_half_the_noise_for_counts_and_a_median() -> None:
    replaced = people().where("age < 9")
    added = people(neighbors="add-remove", expected_rows=900)

    def scale(release: zd.records.Release) -> float:
        return float(release.certificate.steps[0].numbers["scale"])

    assert scale(zd.mode(replaced, "city", epsilon=1)) == 2
    assert scale(zd.mode(added, "city", epsilon=1)) == 1
    assert scale(zd.median(replaced, "age", epsilon=1)) == 2
    assert scale(zd.median(added, "age", epsilon=1)) == 2  # its scores are in halves of a row
    laplace = zd.histogram(added, "city", epsilon=1).certificate.steps[0]
    assert (laplace.neighbors.value, float(laplace.numbers["scale"])) == ("add-remove", 1)


def test_frames_name_their_columns() -> None:
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame({"city": ["oslo", "rome", "oslo"] * 99, "age": [1.0, 2.0, None] * 99})
    assert zd.mode(frame, "city", universe=["oslo", "rome"], epsilon=9).value == "oslo"
    assert len(zd.histogram(frame, "city", universe=["oslo", "rome"], epsilon=9).value) == 2
    assert 1 <= zd.median(frame, "age", bounds=(1, 2), grid=2, epsilon=9).value <= 2
    for wrong in ("town", ["city"]):
        with pytest.raises(zd.errors.ParameterError, match="columns = "):
            zd.mode(frame, wrong, universe=["oslo"], epsilon=1)  # type: ignore[arg-type]
    with pytest.raises(zd.errors.ParameterError, match="missing=None"):
        zd.trimmed_mean(frame, "age", trim="1/10", bounds=(0, 3), epsilon=1)
    kept = zd.trimmed_mean(frame, "age", trim="1/10", bounds=(0, 3), epsilon=9, missing=None)
    assert 0 <= kept.value <= 3


def test_scores_are_columns_of_one_range() -> None:
    table = np.tile([0.0, 1.0, 0.2], (500, 1))
    kind = zd.number(0, 1, missing=None)
    rows = zd.open(table, columns={str(i): kind for i in range(3)})
    assert zd.select(rows, epsilon=9).value == "1"
    assert zd.select(rows, ["0", "2"], epsilon=9).value == "2"
    mixed = zd.open(table, columns={"0": kind, "1": zd.number(0, 2)})
    with pytest.raises(zd.errors.ParameterError, match="same bounds"):
        zd.select(mixed, epsilon=1)
    assert zd.select(mixed, bounds=(0, 1), epsilon=9).value == "1"


@pytest.mark.parametrize("size", [5, 1 << 25])
def test_items_are_counted_block_by_block(replace: Replace, size: int) -> None:
    """The same tally from any number of blocks, for universes of any size."""
    items = np.random.default_rng(2).integers(-1, 7, 1000)
    wanted = tally(items, Finite(size), unknown=3)
    replace("keys._BLOCK", 7)
    replace("keys._MOST_WAITING", 20)
    found = tally(items, Finite(size), unknown=3)
    assert found.indices.tolist() == wanted.indices.tolist()
    assert found.counts.tolist() == wanted.counts.tolist()
    assert int(found.counts.sum()) == 1000
    expected = np.where((items < 0) | (items >= size), 3, items)
    assert found.counts.tolist() == np.bincount(expected)[found.indices].tolist()
