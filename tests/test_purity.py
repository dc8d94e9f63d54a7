"""The assertion of privacy fails where privacy, tightness or a pair to compare is missing."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from typing import Any

import pytest

from purity import assert_impure, assert_pure
from zerodelta.audit.exact import datasets, rounded_laplace_pmf, rounded_laplace_tail, shifted

ROWS = list(datasets([0, 1], 2))


def released(scale: int | Fraction) -> Any:
    pmf, tail = (partial(f, scale=scale) for f in (rounded_laplace_pmf, rounded_laplace_tail))
    return {rows: shifted(pmf, tail, center=sum(rows), low=-2, high=4) for rows in ROWS}


def test_a_sum_with_laplace_noise_passes_and_half_the_noise_is_a_mistake() -> None:
    assert_pure(released(2), epsilon="1/2", tight=True, mistake=released(1))
    assert_impure(released(1), epsilon="1/2")


@pytest.mark.parametrize(
    ("scale", "named", "said"),
    [
        (1, {}, "more than 1/2"),
        (3, {"tight": True}, "none of 4 pairs"),
        (2, {"mistake": released(3)}, "none of 4 pairs"),
        (2, {"pairs": []}, "no neighbors"),
    ],
)
def test_what_is_not_so_fails(scale: int, named: dict[str, Any], said: str) -> None:
    with pytest.raises(AssertionError, match=said):
        assert_pure(released(scale), epsilon="1/2", **named)


def test_a_law_may_be_a_function() -> None:
    laws = released(2)
    pairs = [((0, 0), (0, 1))]
    assert_pure(lambda rows: laws[rows], pairs, epsilon="1/2", mistake=released(1).__getitem__)
