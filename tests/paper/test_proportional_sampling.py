"""Algorithm 15: the alias table has exactly the probabilities of the weights."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reference.chi_square import goodness_of_fit
from zerodelta.errors import ParameterError
from zerodelta.exact.integers import AliasTable, integer_weights, proportional_sampling
from zerodelta.testing import replayed


def law(table: AliasTable) -> list[Fraction]:
    """P(i), read off the table: a uniform column, then a uniform height in it."""
    count = len(table.limits)
    mass = [0] * count
    for i in range(count):
        mass[i] += int(table.limits[i])
        mass[int(table.others[i])] += table.total - int(table.limits[i])
    return [Fraction(m, count * table.total) for m in mass]


@settings(max_examples=300, deadline=None)
@given(st.lists(st.integers(0, 2**40), min_size=1, max_size=30).filter(any))
def test_every_item_has_exactly_its_share(weights: list[int]) -> None:
    table = AliasTable.of(np.array(weights, dtype=np.int64))
    assert law(table) == [Fraction(weight, sum(weights)) for weight in weights]
    assert ((table.limits >= 0) & (table.limits <= table.total)).all()


def test_draws_follow_the_table() -> None:
    weights = np.array([5, 0, 1, 10, 3])
    drawn = replayed("alias")(proportional_sampling)(weights, size=20_000)
    counts = np.bincount(drawn, minlength=5).tolist()
    assert goodness_of_fit(counts, [5 / 19, 0.0, 1 / 19, 10 / 19, 3 / 19]) > 1e-4


def test_a_large_table_is_exact_too() -> None:
    weights = integer_weights(np.random.default_rng(3).random(1 << 12))
    table = AliasTable.of(weights)
    assert law(table) == [Fraction(int(w), int(weights.sum())) for w in weights]


def test_weights_from_floats_are_total() -> None:
    assert integer_weights(np.array([np.nan, -1.0, np.inf, 0.0])).tolist() == [1, 1, 1, 1]
    assert integer_weights(np.array([1e-300, 1e-300])).tolist() == [2**40, 2**40]


@pytest.mark.parametrize("weights", [[], [0, 0], [-1, 2], [2**62, 2**62]])
def test_weights_that_are_none_are_refused(weights: list[int]) -> None:
    with pytest.raises(ParameterError):
        AliasTable.of(np.array(weights, dtype=np.int64))
