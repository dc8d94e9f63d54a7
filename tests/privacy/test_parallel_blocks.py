"""Groups that are answered apart: their claim for add-remove, and nothing else, counts twice."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from zerodelta.errors import CertificateError
from zerodelta.exact.bits import SystemBits
from zerodelta.privacy.certificate import Certificate
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.parameters import Neighbors
from zerodelta.privacy.steps import Part, Step
from zerodelta.privacy.verify import base_claim, proves_epsilon, verify
from zerodelta.spine.plan import issue

F = Fraction
REPLACE, ADD_REMOVE = Neighbors.REPLACE, Neighbors.ADD_REMOVE


def laplace(relation: Neighbors = ADD_REMOVE, **changed: Any) -> Step:
    numbers = {"sensitivity": 1, "scale": 8, **changed}
    return Step(theorem="rounded-laplace", numbers=numbers, neighbors=relation)


def groups(relation: Neighbors = REPLACE, *, unit_rows: int = 1) -> Step:
    numbers = {"blocks": 12, "unit_rows": unit_rows}
    return Step(theorem="parallel-blocks", numbers=numbers, neighbors=relation)


@pytest.mark.parametrize("unit_rows", [1, 5])
def test_a_group_that_is_asked_several_times_adds_up_before_it_counts_twice(unit_rows: int) -> None:
    steps = (laplace(), laplace(count=3), groups(unit_rows=unit_rows))
    whole = F(4, 8) * 2 * unit_rows
    assert verify(Certificate(claim=PureDP(whole), steps=steps))
    with pytest.raises(CertificateError, match="do not prove ε"):
        verify(Certificate(claim=PureDP(whole - F(1, 10**9)), steps=steps))


def test_a_claim_for_replaced_rows_of_a_group_is_not_enough() -> None:
    """A replacement within a group says nothing about a row that leaves it."""
    steps = (laplace(REPLACE), groups())
    with pytest.raises(CertificateError, match="mixed neighboring relations"):
        verify(Certificate(claim=PureDP(10), steps=steps))
    assert not proves_epsilon(groups(), base_claim((laplace(REPLACE),)), F(10))
    assert proves_epsilon(groups(), base_claim((laplace(),)), F(1, 4))


def test_the_claim_is_for_replace_only() -> None:
    claim = PureDP(10, neighbors=ADD_REMOVE)
    with pytest.raises(CertificateError, match="replace claim only"):
        verify(Certificate(claim=claim, steps=(laplace(), groups(ADD_REMOVE))))


def test_a_group_that_is_not_pure_proves_nothing() -> None:
    gaussian = Step(
        theorem="rounded-gaussian",
        numbers={"sensitivity_squared": 1, "variance": 10**6},
        neighbors=ADD_REMOVE,
    )
    with pytest.raises(CertificateError, match="do not prove ε"):
        verify(Certificate(claim=PureDP(100), steps=(gaussian, groups())))


def test_what_holds_for_replaced_rows_only_does_not_go_by_group() -> None:
    step = Step(
        theorem="k-norm-sufficient-statistics",
        numbers={"target_weight": "3/2", "scale": 5},
        neighbors=ADD_REMOVE,
    )
    with pytest.raises(CertificateError, match="replace-one relation only"):
        verify(Certificate(claim=PureDP(100), steps=(step, groups())))


def test_it_is_one_of_several_parts() -> None:
    """Keys by groups and a table of sums: each part has its own relation inside, ε adds up."""
    table = Step(
        theorem="partition-laplace",
        numbers={"cells": 24, "row_total": 2, "unit_rows": 1, "scale": 16},
    )
    parts = (Part(steps=(laplace(), groups()), epsilon=F(1, 4)), Part(steps=(table,)))
    issued = issue(claim=PureDP("1/2"), steps=None, parts=parts, bits=SystemBits(), public=())
    assert verify(issued.to_json(), epsilon="1/2") == PureDP("1/2")
    wrong = (parts[0], Part(steps=(laplace(),), epsilon=F(1, 4)))
    with pytest.raises(CertificateError, match="mixed"):
        verify(Certificate(claim=PureDP("1/2"), parts=wrong))


def test_the_explanation_says_what_the_steps_before_are_for() -> None:
    text = Certificate(claim=PureDP("1/4"), steps=(laplace(), groups())).explain()
    assert "each of 12 disjoint groups is answered by the steps before" in text
    assert "one row of the group added or removed" in text
