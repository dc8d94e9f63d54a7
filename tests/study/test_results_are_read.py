"""Every finite number is the nearest element; what is no element publishes `otherwise`."""

from __future__ import annotations

import contextlib
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from study.small_studies import made
from zerodelta.errors import ParameterError
from zerodelta.spaces import Ball, Box, Finite, Multiset, Space, Subsets
from zerodelta.study.study import Study

OPTIONS: dict[str, Any] = {"otherwise": "none", "mixing_probability": "1e-12"}
HUGE: list[Any] = [
    10**400,
    Fraction(10**400),
    Decimal("1e400"),
    Decimal("1e99999"),
    np.float64(1e300),
]
if np.finfo(np.longdouble).max > 1e309:
    HUGE.append(np.longdouble("1e400"))


@pytest.mark.parametrize("number", HUGE)
def test_a_huge_number_is_the_nearest_element(number: Any) -> None:
    assert made(publish=Finite(16), **OPTIONS).publish(number).value == 15
    assert made(publish=Finite(16), **OPTIONS).publish(-number).value == 0
    assert made(publish=Finite([0.5, 2.0]), **OPTIONS).publish(number).value == 2.0
    box = Box((0, 0), (1, 1))
    assert box.denotes([number, -number])
    assert box.project([number, -number]).tolist() == [1.0, 0.0]
    assert Ball(1, 2).project(number).tolist() == [2.0]


@pytest.mark.parametrize("number", [Fraction(7, 2) + 1, Decimal("4.5"), np.longdouble("4.5")])
def test_numbers_of_all_kinds_are_read_exactly(number: Any) -> None:
    assert Finite(16).project(number) == 4  # of two at the same distance, the even one
    assert Box(0, 10).project(number).tolist() == [4.5]


@pytest.mark.parametrize(
    "value",
    [np.ma.masked, np.ma.array(3, mask=True), Decimal("NaN"), Decimal("Infinity"), np.inf, None],
)
def test_what_is_no_number_is_otherwise(value: Any) -> None:
    assert made(publish=Finite(16), **OPTIONS).publish(value).value == "none"
    assert not Box(0, 10).denotes(value)


def test_a_masked_vector_is_no_vector() -> None:
    assert not Box((0, 0), (1, 1)).denotes(np.ma.array([0.5, 0.5], mask=[True, False]))
    assert Box((0, 0), (1, 1)).denotes(np.ma.array([0.5, 0.5]))


@pytest.mark.parametrize(
    ("space", "good", "bad"),
    [
        (Subsets(of=5, size=2), [3, 1], [[np.nan, 3], ["junk", 3], [3], [99, 3], [3, 3]]),
        (Multiset(5, 2), [3, 3], [[np.nan, 3], ["junk", 3], [3], [1, 2, 3]]),
    ],
)  # fmt: skip
def test_a_set_with_something_else_in_it_is_otherwise(space: Space, good: Any, bad: Any) -> None:
    assert made(publish=space, **OPTIONS).publish(good).value == tuple(sorted(good))
    for value in bad:
        assert made(publish=space, **OPTIONS).publish(value).value == "none"
    assert made(publish=space, **OPTIONS).publish(iter(good)).value == "none"  # is read only once


# --- the rehearsal -------------------------------------------------------------------------------


def test_a_rehearsal_has_the_plan_of_the_study() -> None:
    seen = []

    def program(study: Study) -> tuple[int, int]:
        seen.append(study.plan)
        return (0, 0)

    study = made(publish=Ball(2, 1), resolution="3/10")
    study.run(program)
    assert seen[0] is seen[1] is study.plan
    assert study.plan.mu != made(publish=Ball(2, 1)).plan.mu


def test_a_rehearsal_remembers_a_refusal_that_the_program_catches() -> None:
    def program(study: Study) -> int:
        with contextlib.suppress(ParameterError):
            study.publish("zzz")
        return 1

    with pytest.raises(ParameterError, match="zzz"):
        made().run(program)
