"""Mistakes that would release something meaningless are refused, with a remedy."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest

import zerodelta as zd
from tasks.spying import NoBits
from zerodelta.errors import ParameterError, did_you_mean
from zerodelta.spaces import Finite
from zerodelta.tasks.features import select_features
from zerodelta.testing import replayed

COLUMN, TABLE = np.linspace(0, 1, 50), np.linspace(0, 1, 150).reshape(50, 3)


def scores(given: Any, **public: Any) -> Any:
    return replayed(NoBits())(zd.select)(given, epsilon=1, **public)


@pytest.mark.parametrize(
    "rows",
    [
        *(TABLE, TABLE.tolist(), [tuple(row) for row in TABLE], list(TABLE)),
        *({"a": [1, 2], "b": [3]}, pl.DataFrame(TABLE)),
    ],
    ids=["array", "lists", "tuples", "list of arrays", "mapping of lists", "frame"],
)
def test_a_table_of_rows_is_not_a_list_of_scores(rows: Any) -> None:
    with pytest.raises(ParameterError, match=r"^scores = .*bounds=\(lower, upper\)"):
        scores(rows, sensitivity=1)


@pytest.mark.parametrize("rows", [COLUMN, COLUMN.tolist(), TABLE[:, :1], TABLE[:, :0]])
def test_a_table_of_options_has_two_columns_at_least(rows: Any) -> None:
    """One column is most often a list of scores, of which the sum was then the only option."""
    with pytest.raises(ParameterError, match=r"^columns of rows = .*sensitivity="):
        scores(rows, bounds=(0, 1))


def test_a_spread_beyond_all_floats_is_only_a_bad_guess() -> None:
    for spread in (10**400, 1e-320):
        release = zd.trimmed_mean(COLUMN, trim=0.1, bounds=(0, 1), spread=spread, epsilon=1)
        assert 0 <= release.value <= 1


# -- near misses ----------------------------------------------------------------------------------

NAMES: list[tuple[Callable[[Any], Any], str, str]] = [
    (lambda m: zd.kmeans(TABLE, clusters=2, bounds=(0, 1), epsilon=1, method=m), "Loyd", "lloyd"),
    (
        lambda m: zd.median(COLUMN, bounds=(0, 1), epsilon=1, method=m),
        "flip",
        "permute-and-flip",
    ),
    (lambda m: zd.mean(COLUMN, bounds=(0, 1), epsilon=1, method=m), "Laplace", "laplace"),
    (lambda m: zd.mode([0, 1], universe=2, epsilon=1, method=m), "Auto", "auto"),
    (
        lambda m: select_features(
            TABLE, target=0, size=1, bounds=(0, 1), target_bounds=(0, 1), epsilon=1, method=m
        ),
        "step-wise",
        "stepwise",
    ),
    (lambda task: zd.advise(task, n=10, epsilon=1), "k-means", "kmeans"),
    (lambda task: zd.advise(task, n=10, epsilon=1), "trimmed mean", "trimmed_mean"),
    (
        lambda name: zd.advise("mode", n=10, universe=3, epsilon=1, **{name: 2}),
        "univers",
        "universe",
    ),
    (lambda name: zd.plan(Finite(16), epsilon=1, channel=name), "unifrom", "uniform"),
]


@pytest.mark.parametrize(("call", "given", "meant"), NAMES)
def test_near_misses_are_named(call: Callable[[str], Any], given: str, meant: str) -> None:
    with pytest.raises(ParameterError) as caught:
        call(given)
    assert str(caught.value).endswith(f'did you mean "{meant}"?')
    with pytest.raises(ParameterError) as caught:
        call("zzzzzz")
    assert "did you mean" not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "meant"),
    [("linear_regression", "linear"), ("logistic_regression", "logistic"), ("feat", "features")],
)
def test_a_longer_or_shorter_name_is_recognized(given: str, meant: str) -> None:
    known = ["mean", "linear", "logistic", "features"]
    assert did_you_mean(given, known, "no") == f'did you mean "{meant}"?'
    assert did_you_mean("xy", known, "no") == did_you_mean("a", known, "no") == "no"


def test_advice_on_a_regression_names_its_task() -> None:
    with pytest.raises(ParameterError, match=r'did you mean "linear"\?$'):
        zd.advise("linear_regression", n=100, dimension=5, epsilon=1)


def test_a_long_wrong_name_takes_no_time() -> None:
    assert did_you_mean("auto" * 10**6, ["auto"], "no") == "no"


SECRET = pl.DataFrame({"a": [7313.0]})


@pytest.mark.parametrize(
    "rows",
    [SECRET, SECRET["a"], SECRET.to_numpy(), SECRET.to_arrow(), SECRET["a"].to_arrow()],
    ids=["frame", "series", "array", "arrow table", "arrow array"],
)
def test_rows_in_place_of_a_parameter_are_not_shown(rows: Any) -> None:
    """Somebody who mixes up the arguments must not read rows in a message, or in a saved error."""
    with pytest.raises(ParameterError, match=r"^bounds = <\w+ of shape \(1,( 1)?\)>") as found:
        replayed(NoBits())(zd.mean)(COLUMN, bounds=rows, epsilon=1)
    copy = pickle.loads(pickle.dumps(found.value))
    assert str(copy) == str(found.value)
    assert "7313" not in str(copy)
    assert "7313" not in repr(vars(found.value))
