"""Feature selection: what it may see of a row, what its certificate proves, what it finds."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

from data.opening import opened
from zerodelta.channels.purification import plan
from zerodelta.data.arrays import ArraySource
from zerodelta.exact.fixed_point import FixedPoint
from zerodelta.privacy.release import Release
from zerodelta.privacy.verify import verify
from zerodelta.spaces import Subsets
from zerodelta.tasks.features import MethodName, select_features
from zerodelta.training.features import (
    FeatureTable,
    Stepwise,
    _sum,
    best_subset,
    new_products,
    with_residual,
)

BOTH = pytest.mark.parametrize("method", ["gram", "stepwise"])
STEPS = 1 << 20


def suppressed(rows: int = 3000) -> Any:
    """Columns 1 and 3 are alike and their difference is the target; 0 and 2 are noise."""
    rng = np.random.default_rng(3)
    common, x = rng.normal(size=rows), rng.normal(size=(rows, 4))
    x[:, 1], x[:, 3] = common + 0.5 * x[:, 1], common + 0.5 * x[:, 3]
    return np.column_stack([x, x[:, 1] - x[:, 3]])


def chosen(rows: Any, method: MethodName = "auto", **options: Any) -> Release:
    given: dict[str, Any] = {
        "target": -1,
        "size": 2,
        "epsilon": 200,
        "mixing_probability": "1e-12",
        "bounds": (-4, 4),
        "target_bounds": (-3, 3),
        **options,
    }
    return select_features(rows, method=method, **given)


@BOTH
def test_an_obvious_pair_is_found(method: MethodName) -> None:
    assert chosen(suppressed(), method).value == (1, 3)


def test_the_hidden_gram_matrix_needs_no_bounds_but_a_norm() -> None:
    release = chosen(suppressed(), bounds=None, data_norm=4)
    assert release.value == (1, 3)
    assert release.certificate.steps[0].theorem == "adaptive-gaussian"


def test_an_offset_of_features_and_target_changes_nothing() -> None:
    """Without the constant in the Gram matrix the means would look like effects."""
    rows = suppressed()
    rows[:, 0] += 2.5
    rows[:, 4] += 20
    found = [
        chosen(rows, method, bounds=(-7, 7), target_bounds=(16, 24)).value
        for method in ("gram", "stepwise")
    ]
    assert found == [(1, 3), (1, 3)]


def test_names_are_published_for_named_columns_and_positions_for_arrays() -> None:
    rows = suppressed()
    frame = pd.DataFrame(rows, columns=list("abcdy"))
    assert chosen(frame, target="y").value == ("b", "d")
    moved = np.column_stack([rows[:, 4], rows[:, :4]])
    assert chosen(moved, target=0).value == (2, 4)
    assert chosen(rows, features=[3, 0, 1]).value in ((3, 1), (1, 3))


def test_the_study_spends_exactly_what_the_space_allows() -> None:
    release = chosen(suppressed(), "gram", epsilon=1, mixing_probability="1/50")
    expected = plan(Subsets(of=4, size=2), epsilon=1, mixing_probability="1/50")
    first, last = release.certificate.steps
    assert Fraction(first.numbers["mu_squared"]) == expected.calibration.mu_squared
    assert last == expected.purifier.step()
    assert verify(release.certificate)


def test_stepwise_counts_every_choice_and_every_fit() -> None:
    flips, fits = chosen(suppressed(), "stepwise", size=3, epsilon=1).certificate.steps
    assert (flips.theorem, flips.numbers["count"]) == ("permute-and-flip", 3)
    assert (fits.theorem, fits.numbers["count"]) == ("k-norm-noise", 3)
    # ε = 2Δ/b for a choice whose scores move both ways, Δ/b for a fit; Δ is two ranges of 2^20
    spent = 3 * Fraction(2 * 2 * STEPS) / Fraction(flips.numbers["scale"])
    spent += 3 * Fraction(2 * STEPS) / Fraction(fits.numbers["scale"])
    assert spent == 1
    assert Fraction(fits.numbers["quantum"]) * STEPS == 1  # products lie in [-1, 1]
    assert int(flips.numbers["sensitivity"]) == int(fits.numbers["sensitivity"]) == 2 * STEPS


def table(rows: Any, **options: Any) -> FeatureTable:
    given: dict[str, Any] = {"bounds": (-1, 1), "data_norm": None, "target_bounds": (-1, 1)}
    names = [str(i) for i in range(rows.shape[1])]
    return FeatureTable.of(names, target=-1, features=None, **{**given, **options})


def test_replacing_a_row_moves_what_stepwise_adds_up_by_two_ranges_at_most() -> None:
    """All pairs of extreme rows, far outside the bounds too; two ranges are reached."""
    values = [-1e9, -1.0, 0.0, 1.0, np.nan, np.inf]
    rows = np.array(list(itertools.product(values, repeat=3)))
    made = table(rows)
    functions: list[Callable[[Any], Any]] = [
        lambda block: with_residual(made, block, [1], np.array([0.3, -5.0])),
        lambda block: new_products(made, block, [0, 1]),
    ]
    for function in functions:
        width = function(rows).shape[1]
        lattice = FixedPoint.box(dimension=width, lower=-1, upper=1, steps=STEPS)
        each = np.stack([opened(ArraySource(row[None])).sum(function, lattice) for row in rows])
        assert (each.max(axis=0) - each.min(axis=0)).max() == 2 * STEPS


def test_a_row_that_lacks_a_cell_adds_nothing() -> None:
    """To no product, whichever cell that is, and whatever is in the others."""
    made = table(np.zeros((1, 3)))
    for missing in range(3):
        rows = np.full((1, 3), 0.75)
        rows[0, missing] = np.nan
        source = opened(ArraySource(rows))
        weights = np.array([0.3, -0.5])
        assert not _sum(source, lambda block: new_products(made, block, []), 1).any()
        assert not _sum(source, lambda block: new_products(made, block, [1, 0]), 3).any()
        residual = _sum(source, lambda block: with_residual(made, block, [1], weights), 2)  # noqa: B023
        assert not residual.any()


def test_what_is_left_of_the_target_is_clipped_before_it_is_weighed() -> None:
    """A score is at most the feature, and what is added up of a row is within one range."""
    made, rows = table(np.zeros((1, 3))), np.array([[0.5, 1.0, 0.0], [-0.5, 1.0, 0.25]])
    weights = np.array([0.5, -4.0])  # leaves 3.5 and 3.75 of the target
    assert with_residual(made, rows, [1], weights).tolist() == [[0.5, 1.0], [-0.5, 1.0]]
    for value in (5.0, -1.5, 1.0):
        far = _sum(opened(ArraySource(rows[:1])), lambda block: block[:, :1] * 2 * value, 1)  # noqa: B023
        assert far.tolist() == [math.copysign(STEPS, value)]


@pytest.mark.parametrize("norm", [0.5, 2])
def test_a_row_of_features_is_no_longer_than_the_norm(norm: float) -> None:
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(200, 4)) * 10.0 ** rng.integers(-200, 200, size=(200, 1))
    with np.errstate(all="ignore"):  # as `evaluate` does
        scaled, _ = table(rows, bounds=None, data_norm=norm).within_norm(rows)
    lengths = np.sqrt((scaled**2).sum(axis=0))
    assert (lengths <= norm * (1 + 1e-12)).all()
    assert (lengths > 0.99 * norm).any()


def test_what_is_made_of_a_row_does_not_depend_on_the_batch() -> None:
    rows = np.random.default_rng(7).normal(size=(257, 6))
    made = table(rows, data_norm=1)
    whole, factors = made.within_norm(rows)
    assert 0 < factors.min() < factors.max() <= 1
    for part in (1, 3, 16, 100):
        pieces = [made.within_norm(rows[i : i + part])[0] for i in range(0, len(rows), part)]
        assert np.array_equal(np.concatenate(pieces, axis=1), whole)


def test_auto_takes_the_less_noisy_way_by_public_numbers_only() -> None:
    dense = np.zeros((1000, 31))
    assert _theorem(chosen(dense, epsilon=1)) == "permute-and-flip"
    assert _theorem(chosen(dense, epsilon=1, data_norm="0.2", size=10)) == "adaptive-gaussian"
    assert _theorem(chosen(dense + 7, epsilon=1)) == "permute-and-flip"
    four, two = (
        Stepwise(table=table(dense), size=size, epsilon=Fraction(1), rows=1000).noise
        for size in (4, 2)
    )
    assert four == 2 * two


def _theorem(release: Release) -> str:
    return release.certificate.steps[0].theorem


def test_exchanges_undo_a_misleading_first_choice() -> None:
    """Column 2 is a noisy copy of the signal: the best alone, useless beside 0 and 1."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(5000, 3))
    signal = x[:, 0] + x[:, 1]
    x[:, 2] = signal + 0.7 * x[:, 2]
    sigma, cross = x.T @ x / 5000, x.T @ signal / 5000
    assert int((cross**2 / np.diagonal(sigma)).argmax()) == 2
    assert sorted(best_subset(sigma, cross, 2, 0.0)) == [0, 1]
