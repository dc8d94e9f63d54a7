"""Functions of rows in a study: failures stay inside, and the integers are always the same."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from sampling import replaced
from study.small_studies import Watched, made
from zerodelta.data.arrays import ArraySource
from zerodelta.errors import ParameterError

# --- functions of rows ---------------------------------------------------------------------------


def test_a_row_that_raises_counts_as_the_center_and_is_not_seen(capsys: Any) -> None:
    def fragile(rows: Any) -> Any:
        if (rows[:, 0] == 9).any():
            raise RuntimeError("row 9")
        warnings.warn("a row says so", stacklevel=1)
        return rows[:, 0] / rows[:, 1]

    rows = np.array([[1.0, 1.0], [9.0, 1.0], [3.0, 0.0], [1.0, 2.0]] * 5)
    exact = exact_sums(rows, fragile, rowwise=False)
    assert exact == exact_sums(rows, fragile, rowwise=True)
    lattice = 1 << 20  # bounds (0, 1): 1 and x/0 are the top, 1/2 the center; 9 counts as it
    assert exact == [10 * lattice]
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("rowwise", [False, True])
@pytest.mark.parametrize(
    "function",
    [
        lambda rows: rows[:, 5],
        lambda rows: "text",
        lambda rows: None,
        lambda rows: np.zeros((len(rows), 2, 2)),
        lambda rows: rows[:, 0].astype(str),
        lambda rows: 1 / 0,
        int,
        lambda rows: sys.exit(),
    ],
)
def test_a_function_that_never_works_is_refused_before_data_is_touched(
    function: Any, rowwise: bool
) -> None:
    source = Watched()
    study = made(rows=source, rowwise=rowwise, selects=True)
    questions: list[Callable[[], Any]] = [
        lambda: study.count(function),
        lambda: study.mean(function),
        lambda: study.gradient(function, clip=1),
        lambda: study.histogram(function, size=2),
        lambda: study.covariance(function, data_norm=1),
        lambda: study.select(function),
    ]
    for question in questions:
        with pytest.raises(ParameterError):
            question()
    assert source.reads == 0
    assert study._shares.untouched


# --- the integers that are summed ----------------------------------------------------------------


def exact_sums(rows: Any, function: Any, *, batch: int | None = None, **options: Any) -> list[int]:
    """The integers before noise, as the study sums them."""
    seen: list[Any] = []
    study = made(rows=ArraySource(rows, batch=batch), **options)
    study._noised = lambda sums, *_: seen.append(sums.tolist()) or sums  # type: ignore[method-assign,func-returns-value]
    study.sum(function)
    return list(seen[0])


RANDOM = np.random.default_rng(5).normal(0.4, 0.5, size=(1003, 6))


def looked_at(rows: Any) -> list[Any]:
    """The integers of every kind of question."""
    seen: list[Any] = []
    study = made(rows=rows, rounds=20)
    study._noised = lambda sums, *_: seen.append(sums.tolist()) or sums  # type: ignore[method-assign,func-returns-value]
    study.sum([0, 1, 2])
    study.sum(lambda block: np.sqrt(np.abs(block)) * block[:, :1])
    study.count(lambda block: block[:, 0] > block[:, 1])
    study.gradient(lambda block: np.tanh(block) - 0.25, clip="1/3")
    study.histogram(lambda block: np.floor(np.abs(block[:, 0]) * 4), size=5)

    def noisy_gram(sums: Any, *_: Any) -> Any:
        seen.append(sums.tolist())
        return sums.astype(float)

    with replaced({"noisy_gram": noisy_gram}):
        study.covariance(data_norm=2)
    return seen


def test_order_batches_layout_and_threads_never_change_the_integers() -> None:
    expected = looked_at(RANDOM)
    assert len(expected) == 7  # the covariance has a vector and a matrix
    order = np.random.default_rng(6).permutation(len(RANDOM))
    assert looked_at(RANDOM[order]) == expected
    assert looked_at(RANDOM[::-1]) == expected
    assert looked_at(np.asfortranarray(RANDOM)) == expected
    for batch in (1, 2, 7, 100, 1002, 5000):
        assert looked_at(ArraySource(RANDOM, batch=batch)) == expected
    for threads in (1, 2):
        with threadpool_limits(limits=threads):
            assert looked_at(RANDOM) == expected


def test_one_row_more_or_less_does_change_them() -> None:
    """The comparison above can fail."""
    other = RANDOM.copy()
    other[500, 0] += 1e-3
    assert all(looked_at(other)[i] != looked_at(RANDOM)[i] for i in (0, 1, 3))
