"""Rows and targets of every kind: what an entry is decides neither an error nor another entry."""

from __future__ import annotations

import importlib
import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from data.test_columns import Hostile
from estimators.instances import ALL, PRIVATE, examples, name
from estimators.test_estimators import fit_alike
from zerodelta.regression.rows import ClassLabels, Targets

every = pytest.mark.parametrize("estimator", ALL, ids=name)
supervised = pytest.mark.parametrize("estimator", PRIVATE[:-1], ids=name)


@every
@pytest.mark.parametrize("entry", [[1, 2], (), Hostile(), np.ones(2)], ids=repr)
def test_no_entry_of_a_list_of_rows_raises(estimator: Any, entry: Any) -> None:
    rows, y = examples()
    listed, labels = rows.tolist(), y.tolist()
    listed[3][1] = labels[5] = entry
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clone(estimator).fit(listed, labels)


@every
@pytest.mark.parametrize("odd", [7, [1.0], [], Hostile(), None], ids=repr)
def test_no_row_of_a_list_raises(estimator: Any, odd: Any) -> None:
    rows, y = examples()
    listed = rows.tolist()
    found = clone(estimator).fit([listed[0], odd, *listed[2:]], y)  # the first has the width
    assert found.n_features_in_ == 3
    with pytest.raises(ValueError, match="2D array"):
        clone(estimator).fit([1.0, 2.0, 3.0], y[:3])


@supervised
def test_masked_targets_count_as_nothing(estimator: Any) -> None:
    rows, y = examples()
    missing: Any = y.astype(object)
    missing[4] = None
    masked = np.ma.masked_array(y, np.arange(len(y)) == 4)
    one, two, three = fit_alike(estimator, (rows, missing), (rows, masked), (rows, y.tolist()))
    np.testing.assert_array_equal(one, two)
    assert one.shape == three.shape


def test_masked_labels_are_no_class_and_masked_targets_no_number() -> None:
    labels = np.ma.masked_equal(np.array([0, 1, 1]), 0)
    places = ClassLabels((0, 1))
    np.testing.assert_array_equal(places(labels), [np.nan, 1, 1])
    targets = Targets.of((0, 1), True)(labels)
    assert np.isnan(targets).tolist() == [True, False, False]
    assert places([[0], [1], 0]).tolist() == [0, 1, 0]


def test_bytes_are_read_as_the_text_that_numpy_makes_of_them_beside_a_text() -> None:
    alone, beside = np.array([b"a", b"b"]), np.array([b"a", "b"])
    assert alone.dtype.kind != beside.dtype.kind
    for labels in (alone, beside, [b"a", "b"]):
        assert ClassLabels(("a", "b"))(labels).tolist() == [0, 1]


@supervised
@pytest.mark.parametrize("kind", ["array", "chunked", "pandas", "polars"])
@pytest.mark.parametrize("stray", [None, 1])
def test_a_null_among_targets_raises_nothing(estimator: Any, kind: str, stray: Any) -> None:
    rows, y = examples()
    values = [stray, *map(int, y[1:])]
    module = importlib.import_module("pyarrow" if kind in ("array", "chunked") else kind)
    build = {"array": "array", "pandas": "Series", "polars": "Series"}.get(kind)
    given = getattr(module, build)(values) if build else module.chunked_array([values])
    listed, found = fit_alike(estimator, (rows, values), (rows, given))
    np.testing.assert_array_equal(listed, found)
