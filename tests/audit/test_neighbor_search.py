"""The search finds the pair that leaks, and judges it on fresh samples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import zerodelta as zd
from zerodelta import audit
from zerodelta.audit.sampled import small_neighbors
from zerodelta.privacy.parameters import Neighbors
from zerodelta.testing import replayed


@pytest.mark.parametrize("n", [1, 2, 3])
def test_every_pair_of_multisets_is_listed_once(n: int) -> None:
    found = {
        frozenset([tuple(sorted(a)), tuple(sorted(b))])
        for a, b in small_neighbors([0, 1, 2], n, Neighbors.REPLACE)
    }
    tables = list(audit.datasets([0, 1, 2], n))
    expected = {frozenset([tuple(sorted(a)), tuple(sorted(b))]) for a, b in audit.neighbors(tables)}
    assert found == expected


def test_pairs_of_add_remove_differ_in_one_row() -> None:
    for larger, smaller in small_neighbors([0, 1], 3, Neighbors.ADD_REMOVE):
        assert larger[1:] == smaller


def search(mechanism: Any, **options: Any) -> audit.LowerBound:
    given = {"n": 3, "epsilon": 1, "samples": 20_000, "vectorized": True, **options}
    return replayed("coins")(audit.search)(mechanism, [0, 1, 7], **given)


def test_the_pair_that_leaks_is_found() -> None:
    rng = np.random.default_rng(2)

    def leaky(rows: list[int], count: int) -> Any:
        total = sum(rows) if 7 not in rows[1:] else 3.0 * rows.count(7)  # wrong for two sevens
        return np.rint(100 * (min(total, 20) + rng.laplace(scale=7, size=count)))

    def correct(rows: list[int], count: int) -> Any:
        return np.rint(100 * (sum(rows) + rng.laplace(scale=7, size=count)))

    assert not search(correct, confidence="0.999").violated
    found = search(leaky, epsilon="1/2", samples=40_000)
    assert found.violated
    assert any(7 in rows for rows in found.pair)


def test_a_domain_of_one_value_has_no_neighbors_under_replace() -> None:
    for domain in ([], [1]):
        with pytest.raises(zd.errors.ParameterError, match="domain"):
            audit.search(lambda rows: 0, domain, n=2)
