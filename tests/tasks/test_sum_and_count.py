"""Sums and counts: one row moves the integers by the stated sensitivity, and no more."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zerodelta as zd
from zerodelta.data.arrays import ArraySource
from zerodelta.mechanisms.partition_noise import PartitionNoise
from zerodelta.mechanisms.sum_noise import KNorm
from zerodelta.spine.plan import Facts
from zerodelta.spine.run import planned
from zerodelta.tasks.choices import SelectQuestion
from zerodelta.tasks.quantiles import QuantileQuestion
from zerodelta.tasks.statistics import CountQuestion, MeanQuestion, SumQuestion

pandas = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")
pyarrow = pytest.importorskip("pyarrow")

NAN = math.nan
BOUNDS = [(0, 10), (50, 100), (-3, 7), (-9, -2)]
relations = pytest.mark.parametrize("neighbors", ["replace", "add-remove"])


@pytest.fixture
def handed(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return what the mechanisms are handed, with no noise on it, and the mechanisms."""
    seen: list[Any] = []

    def without_noise(mechanism: Any, sums: Any, bits: Any) -> Any:
        seen.append((mechanism, np.array(sums, dtype=object)))
        return np.array(sums, dtype=object)

    for kind in (KNorm, PartitionNoise):
        monkeypatch.setattr(kind, "apply", without_noise)
    return seen


def opened(cells: list[float], bounds: tuple[int, int], missing: Any, neighbors: str) -> Any:
    return zd.open(
        np.array(cells),
        columns={"0": zd.number(*bounds, missing=missing)},
        neighbors=neighbors,
        expected_rows=2 if neighbors == "add-remove" else None,
    )


def pairs(cells: list[float], neighbors: str) -> list[tuple[list[float], list[float]]]:
    if neighbors == "add-remove":
        return [([one, two], [one]) for one, two in itertools.product(cells, cells)]
    return [([one, two], [one, three]) for one, two, three in itertools.product(cells, repeat=3)]


@relations
@pytest.mark.parametrize("missing", ["skip", None])
@pytest.mark.parametrize("bounds", BOUNDS, ids=str)
def test_one_row_moves_a_sum_by_the_stated_sensitivity_and_no_more(
    handed: list[Any], bounds: tuple[int, int], missing: Any, neighbors: str
) -> None:
    """Over all neighbors of two rows, odd cells among them; it is reached, so the noise is too."""
    lower, upper = bounds
    cells = [NAN, -math.inf, float(lower), (lower + upper) / 2, float(upper), 1e308]
    largest = 0
    for pair in pairs(cells, neighbors):
        handed.clear()
        for data in pair:
            if neighbors == "replace":  # an array fills nothing in: a NaN gets as far as the sum
                zd.sum(np.array(data), bounds=bounds, missing=missing, epsilon="1/2")
            else:
                zd.sum(opened(data, bounds, missing, neighbors), epsilon="1/2")
        (mechanism, first), (_, second) = handed
        largest = max(largest, abs(first[0] - second[0]))
    assert largest == mechanism.sensitivity
    assert mechanism.scale == mechanism.sensitivity / Fraction(1, 2)


@relations
@pytest.mark.parametrize("missing", ["skip", None])
@pytest.mark.parametrize("order", list(itertools.permutations(BOUNDS[:3])), ids=str)
def test_one_row_moves_no_sum_of_several_columns_by_more_than_was_stated(
    handed: list[Any], order: tuple[tuple[int, int], ...], missing: Any, neighbors: str
) -> None:
    """Each column has bounds of its own: the noise on all is for the one that moves most."""
    ends = np.array(order, dtype=float)
    rows = [ends[:, 0], ends[:, 1], ends.mean(axis=1), np.full(3, NAN)]
    names = ["a", "b", "c"]
    columns = {n: zd.number(*each, missing=missing) for n, each in zip(names, order, strict=True)}
    largest = 0
    for pair in pairs([*range(len(rows))], neighbors):
        handed.clear()
        for data in pair:
            table = pandas.DataFrame([rows[int(i)] for i in data], columns=names)
            expected = 2 if neighbors == "add-remove" else None
            people = zd.open(table, columns=columns, neighbors=neighbors, expected_rows=expected)
            zd.sum(people, epsilon=1)
        (mechanism, first), (_, second) = handed
        largest = max(largest, max(abs(first - second)))
    assert largest == mechanism.sensitivity == mechanism.scale


def test_sums_of_columns_far_from_zero_are_exact(handed: list[Any]) -> None:
    """So many widths away that the whole numbers of quanta are beyond 64 bits."""
    far = float(2**60)
    values = np.array([[far, far + 2**11]] * 30)
    for columns in (values[:, 0], values):
        found = zd.sum(columns, bounds=(2**60, 2**60 + 2**11), epsilon=1).value
        expected = [float(30 * 2**60), float(30 * (2**60 + 2**11))]
        assert np.ravel(found).tolist() == expected[: np.size(found)]


def test_a_sum_is_that_of_the_values_that_are_there(handed: list[Any]) -> None:
    """Up to half a quantum for each row: half the width of the bounds is at least 2^10 quanta."""
    cells = [1.0, NAN, 4.0, 99.0]
    for missing, total in (("skip", 15.0), (None, 20.0), (3, 18.0)):
        release = zd.sum(np.array(cells), bounds=(0, 10), missing=missing, epsilon=1)
        assert abs(release.value - total) <= len(cells) * 5 / 2**11


@relations
def test_a_count_moves_by_one_and_has_noise_for_it(handed: list[Any], neighbors: str) -> None:
    for pair in pairs([NAN, 3.0, math.inf], neighbors):
        handed.clear()
        for data in pair:
            zd.count(opened(data, (0, 10), "skip", neighbors), "0", epsilon="1/2")
        (mechanism, first), (_, second) = handed
        present = [np.count_nonzero(~np.isnan(data)) for data in pair]
        assert [first[0], second[0]] == present
        assert abs(first[0] - second[0]) <= 1
        assert mechanism.scale == 2


# -- where the number of rows is public -----------------------------------------------------------

TABLE = {"x": [1.0, None, 3.0], "y": [0.0, 1.0, 1.0]}
KINDS: dict[str, Any] = {"x": zd.number(0, 3), "y": zd.boolean()}


def test_the_number_of_rows_costs_nothing_where_it_is_public() -> None:
    frame = pandas.DataFrame(TABLE)
    known = zd.open(frame, columns=KINDS)
    containers = (frame.to_numpy(), frame.to_numpy().tolist(), frame["x"], frame)
    for source in (*containers, polars.DataFrame(TABLE), pyarrow.table(TABLE), known, known["x"]):
        release = zd.count(source, epsilon=1)
        assert (release.value, release.error) == (3, 0.0)
        assert zd.verify(release.certificate, epsilon=0, proven=False) == zd.purification.PureDP(0)
        (step,) = release.certificate.steps
        assert step.theorem == "public"


def test_no_count_that_is_private_is_free(tmp_path: Path) -> None:
    """Filters, units, add-remove, and the present cells of a column."""
    frame = pandas.DataFrame(TABLE)
    whole = zd.open(frame, columns=KINDS)
    complete = {"x": zd.number(0, 3, missing=None), "y": zd.boolean()}
    asked: list[tuple[Any, dict[str, Any]]] = [
        (whole.where("y"), {}),
        (whole.where("y", expected_rows=3), {}),
        (whole.where("y or not y"), {}),
        (zd.open(frame, columns=complete).where("y"), {"columns": "x"}),
        (zd.open(frame, columns=KINDS, unit="y", max_rows=2), {}),
        (zd.open(frame, columns=KINDS, unit="y", max_rows=2, units=2), {}),
        (zd.open(frame, columns=complete, unit="y", max_rows=1), {"columns": "x"}),
        (zd.open(frame, columns=KINDS, neighbors="add-remove", expected_rows=3), {}),
        (whole, {"columns": "x"}),
        (frame, {"columns": "x"}),
        (np.array([1.0, NAN, 2.0]), {"missing": "skip"}),
        (frame["x"], {"missing": "skip"}),
    ]
    for source, given in asked:
        certificate = zd.count(source, epsilon=1, **given).certificate
        assert certificate.steps[0].theorem == "partition-laplace"
        assert certificate.claim.exact_epsilon == 1  # type: ignore[attr-defined]


def test_a_count_without_a_public_number_has_noise_even_if_no_row_is_dropped() -> None:
    for rows_only in (True, False):
        plan = CountQuestion(rows_only=rows_only).plan(Facts(rows=None, expected_rows=3), 1)
        assert [step.theorem for step in plan.steps] == ["partition-laplace"]
        assert plan.claim == zd.purification.PureDP(1)


def test_present_cells_are_those_of_one_column() -> None:
    with pytest.raises(zd.errors.ParameterError, match="one column"):
        zd.count(pandas.DataFrame(TABLE), missing="skip", epsilon=1)


# -- what missing=None would cost -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "columns"),
    [
        (MeanQuestion(bounds=(0, 10)), 1),
        (MeanQuestion(bounds=(0, 10)), 3),
        (SumQuestion(bounds=(5, 10)), 1),
        (SelectQuestion(options=range(2), bounds=(5, 10)), 2),
        (QuantileQuestion(q="1/2", bounds=(0, 10)), 1),
    ],
    ids=lambda each: type(each).__name__,
)
def test_a_plan_shows_what_it_would_forecast_if_nothing_were_missing(
    question: Any, columns: int
) -> None:
    cells = np.ones((100, columns))
    skipping, whole = (ArraySource(cells, missing=missing) for missing in ("skip", None))
    plan = planned(question, skipping, 1)
    assert plan.complete_error == planned(question, whole, 1).error <= plan.error
    assert planned(question, whole, 1).complete_error is None
    kind = {str(place): zd.number(0, 10) for place in range(columns)}
    dropping = zd.open(cells, columns=kind).where("`0` > 3")
    assert planned(question, dropping, 1).complete_error is None


def test_a_method_for_missing_cells_only_has_no_other_forecast() -> None:
    source = ArraySource(np.ones(10), missing="skip")
    question = MeanQuestion(bounds=(0, 10), method="partition")
    assert planned(question, source, 1).complete_error is None


def test_advice_shows_both() -> None:
    asked: dict[str, Any] = {"n": 1000, "epsilon": 1, "bounds": (0, 100)}
    both, alone = zd.advise("mean", **asked, missing="skip"), zd.advise("mean", **asked)
    assert (both.complete, alone.complete) == (alone.best, None)
    assert both.best.error > alone.best.error
    assert f"with missing=None, if no cell is missing: error {alone.best.error:.3g}" in str(both)
    assert 'missing="skip"' in both.call
    with pytest.raises(zd.errors.ParameterError, match="skip"):
        zd.advise("mean", **asked, missing=3)
