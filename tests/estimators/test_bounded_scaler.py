"""`BoundedScaler`: which rows reach the ball, and bounds by the names of columns."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone

from estimators.instances import ALL, name
from zerodelta.errors import ParameterError
from zerodelta.sklearn import BoundedScaler

CORNER = [[1.0] * 9]


@pytest.mark.parametrize("columns", [1, 2, 3, 4, 9, 64])
def test_by_default_the_norm_is_reached_at_a_corner_and_no_row_is_clipped(columns: int) -> None:
    """A scaler knows neither ε nor what is learned: its default may not lose the size of rows."""
    corner = np.ones(columns)
    scaler = BoundedScaler(bounds=(-1, 1), data_norm=1)
    inside, at = scaler.transform(np.outer([0.5, 1], corner))
    np.testing.assert_allclose(inside, 0.5 * corner / math.sqrt(columns))
    np.testing.assert_allclose(at, corner / math.sqrt(columns))


@pytest.mark.parametrize(("radius", "part"), [(1, 1.0), ("0.6", 0.6), ("1/2", 0.5)])
def test_rows_beyond_the_radius_keep_their_direction_and_have_the_norm(
    radius: Any, part: float
) -> None:
    scaler = BoundedScaler(bounds=(-1, 1), data_norm=1, radius=radius)
    np.testing.assert_allclose(scaler.transform(CORNER), [[1 / 3] * 9])
    np.testing.assert_allclose(scaler.transform([[0.1] * 9]), [[0.1 / (3 * part)] * 9])


def test_a_clipped_row_is_the_same_whatever_rows_are_beside_it() -> None:
    rows = np.random.default_rng(1).uniform(-1, 1, size=(300, 17))
    rows[7, 3] = math.nan
    scaler = BoundedScaler(bounds=(-1, 1), data_norm=1, radius="1/2")
    whole = scaler.transform(rows)
    np.testing.assert_array_equal(whole, [scaler.transform([row])[0] for row in rows])
    np.testing.assert_array_equal(whole, scaler.transform(np.asfortranarray(rows)))
    assert np.isnan(whole[7]).all()  # such a row counts as nothing in every estimator
    assert np.nanmax(np.linalg.norm(whole, axis=1)) <= 1 + 1e-15


@pytest.mark.parametrize("radius", [0, -1, "1.01", 2, math.nan, "far"])
def test_a_malformed_radius_is_refused(radius: Any) -> None:
    with pytest.raises(ParameterError, match="radius"):
        BoundedScaler(bounds=(-1, 1), data_norm=1, radius=radius).fit(CORNER)


def test_a_radius_without_a_norm_is_refused() -> None:
    with pytest.raises(ParameterError, match=r"^radius = 1: .*pass data_norm=1"):
        BoundedScaler(bounds=(-1, 1), radius=1).fit(CORNER)


# -- bounds by name --------------------------------------------------------------------------------

FRAMES: list[Any] = [pd.DataFrame, pl.DataFrame, pa.table]
BY_NAME = {"income": (0, 500), "age": (0, 100), "score": (-1, 1)}
COLUMNS = {"age": [50.0, 100.0], "score": [0.5, -1.0], "income": [250.0, 999.0]}
frames = pytest.mark.parametrize("frame", FRAMES, ids=["pandas", "polars", "pyarrow"])


@frames
def test_bounds_by_name_are_in_any_order(frame: Any) -> None:
    rows = frame(COLUMNS)
    expected = [[0, 0.5, 0], [1, -1, 1]]
    for bounds in (BY_NAME, dict(reversed(BY_NAME.items()))):
        scaler = BoundedScaler(bounds=bounds)
        np.testing.assert_array_equal(scaler.transform(rows), expected)
        np.testing.assert_array_equal(scaler.fit(rows).transform(rows), expected)


@frames
def test_missing_and_extra_names_are_named(frame: Any) -> None:
    rows = frame(COLUMNS)
    missing = {key: pair for key, pair in BY_NAME.items() if key != "age"}
    with pytest.raises(ParameterError, match=r"no bounds for \['age'\]"):
        BoundedScaler(bounds=missing).fit(rows)
    with pytest.raises(ParameterError, match=r"no columns \['height'\]"):
        BoundedScaler(bounds={**BY_NAME, "height": (0, 3)}).fit(rows)
    with pytest.raises(ParameterError, match=r"'score': 3.*pair"):
        BoundedScaler(bounds={**BY_NAME, "score": 3}).fit(rows)


def test_names_need_a_frame() -> None:
    with pytest.raises(ParameterError, match=r"no names.*data frame"):
        BoundedScaler(bounds=BY_NAME).fit(np.zeros((2, 3)))


@pytest.mark.parametrize("estimator", [e for e in ALL if "bounds" in e.get_params()], ids=name)
def test_every_estimator_takes_bounds_by_name(estimator: Any) -> None:
    made = clone(estimator).set_params(bounds=BY_NAME)
    rows = pd.DataFrame(COLUMNS)
    found = made.fit(rows, np.array([0, 1]))
    assert found.feature_names_in_.tolist() == ["age", "score", "income"]
    with pytest.raises(ParameterError, match="no bounds for"):
        clone(made).set_params(bounds={"age": (0, 1)}).fit(rows, np.array([0, 1]))
