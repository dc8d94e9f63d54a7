"""OpenDP: tasks of ours as measurements, with the map of their certificate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl
import pytest

import zerodelta as zd
from zerodelta.errors import CertificateError, ParameterError
from zerodelta.interop.opendp import measurement

dp: Any = pytest.importorskip("opendp.prelude", reason="the bridge's extra is not installed")
OpenDPException: Any = pytest.importorskip("opendp.mod").OpenDPException


@pytest.fixture(autouse=True)
def _features() -> Iterator[None]:
    dp.enable_features("contrib", "honest-but-curious")
    yield
    dp.disable_features("honest-but-curious")


def median(rows: Any) -> zd.records.Release:
    return zd.median(rows, bounds=(0, 100), epsilon="1/2")


def test_a_task_is_a_measurement_with_the_map_of_its_certificate() -> None:
    rows = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=1000)
    made = measurement(
        median,
        example=[50.0] * 1000,
        input_domain=rows,
        input_metric=dp.change_one_distance(),
        output="f64",
    )
    assert made.output_measure == dp.max_divergence()
    assert [made.map(d) for d in (0, 1, 3)] == [0.0, 0.5, 1.5]
    assert abs(made([30.0] * 1000) - 30) < 1
    assert zd.verify(made.certificate, epsilon="1/2") == zd.purification.PureDP("1/2")
    context = dp.Context.compositor(
        data=[30.0] * 1000,
        privacy_unit=(dp.change_one_distance(), 1),
        privacy_loss=dp.loss_of(epsilon=1.0),
        split_evenly_over=2,
        domain=rows,
    )
    assert 0 <= context(made) <= 100


def test_a_task_for_added_or_removed_rows_costs_twice_where_rows_change() -> None:
    def count(rows: Any) -> zd.records.Release:
        source = zd.open(
            pl.DataFrame({"x": rows}),
            columns={"x": zd.number(0, 10)},
            neighbors="add-remove",
            expected_rows=100,
        )
        return zd.count(source, epsilon="1/2")

    options: Any = {
        "example": [1.0] * 10,
        "input_domain": dp.vector_domain(dp.atom_domain(T=float, nan=False)),
    }
    for metric in (dp.symmetric_distance(), dp.insert_delete_distance()):
        made = measurement(count, input_metric=metric, **options)
        assert [made.map(d) for d in (1, 2)] == [0.5, 1.0]
        assert made([3.0] * 1000) > 900
    changed = measurement(count, input_metric=dp.change_one_distance(), **options)
    assert [changed.map(d) for d in (1, 2)] == [1.0, 2.0]


def test_a_task_with_a_public_number_of_rows_needs_a_metric_that_keeps_it() -> None:
    rows = dp.vector_domain(dp.atom_domain(T=float, nan=False))
    for metric in (dp.symmetric_distance(), dp.insert_delete_distance()):
        with pytest.raises(ParameterError, match="number of rows is public"):
            measurement(median, example=[5.0] * 9, input_domain=rows, input_metric=metric)
    with pytest.raises(ParameterError, match="input_metric"):
        measurement(median, example=[5.0], input_domain=rows, input_metric=dp.l1_distance(T=float))
    with pytest.raises(ParameterError, match="task"):
        measurement(
            lambda rows: 3,  # type: ignore[arg-type, return-value]
            example=[5.0],
            input_domain=rows,
            input_metric=dp.change_one_distance(),
        )


def test_a_task_that_fails_says_nothing_of_its_rows() -> None:
    def failing(rows: Any) -> zd.records.Release:
        if rows[0] > 6:
            raise ValueError(f"SECRET {rows[0]}")
        return median(rows)

    made = measurement(
        failing,
        example=[5.0] * 9,
        input_domain=dp.vector_domain(dp.atom_domain(T=float, nan=False)),
        input_metric=dp.change_one_distance(),
    )
    with pytest.raises(OpenDPException) as failure:
        made([77.0] * 9)
    assert "SECRET" not in str(failure.value)
    assert "77" not in str(failure.value)


def test_a_task_may_look_at_the_order_of_rows_where_the_metric_does() -> None:
    """Rows in another order are at distance 0, or not at a finite one."""

    def first(block: Any) -> str:
        return "high" if block[0, 0] > 5 else "low"

    def task(rows: Any) -> zd.records.Release:
        array = np.asarray(rows)[:, np.newaxis]
        return zd.queries.vote(array, first, options=["low", "high"], blocks=64, epsilon=8)

    rows = [10.0] * 500 + [0.0] * 500

    def published(metric: Any) -> Counter[str]:
        domain = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=1000)
        made = measurement(task, example=[1.0] * 1000, input_domain=domain, input_metric=metric)
        assert made.map(0) == 0.0
        return Counter(made(rows) for _ in range(24))

    ordered = published(dp.hamming_distance())
    assert ordered == {"high": 24}  # misses with probability below e^-200
    unordered = published(dp.change_one_distance())
    assert set(unordered) == {"low", "high"}  # misses with probability 2^-23


def test_a_certificate_for_units_is_not_one_for_rows() -> None:
    def task(rows: Any) -> zd.records.Release:
        frame = pl.DataFrame({"id": [str(k) for k in range(len(rows))], "x": rows})
        columns = {"id": zd.text(alphabet="0123456789", length=4), "x": zd.number(0, 10)}
        source = zd.open(frame, columns=columns, unit="id", max_rows=2)
        return zd.count(source, epsilon="1/2")

    with pytest.raises(CertificateError, match="id"):
        measurement(
            task,
            example=[1.0] * 10,
            input_domain=dp.vector_domain(dp.atom_domain(T=float, nan=False)),
            input_metric=dp.change_one_distance(),
        )


def test_every_run_must_repeat_the_claim_of_the_example() -> None:
    def turning(rows: Any) -> zd.records.Release:
        few = len(rows) < 5
        source = zd.open(
            pl.DataFrame({"x": rows}),
            columns={"x": zd.number(0, 10)},
            neighbors="add-remove" if few else "replace",
            expected_rows=10 if few else None,
        )
        return zd.mean(source["x"], epsilon="1/2")

    made = measurement(
        turning,
        example=[1.0] * 10,
        input_domain=dp.vector_domain(dp.atom_domain(T=float, nan=False)),
        input_metric=dp.change_one_distance(),
    )
    assert 0 <= made([1.0] * 10) <= 10
    with pytest.raises(OpenDPException, match="certificate"):
        made([1.0] * 4)
