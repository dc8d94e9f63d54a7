"""Every space and lattice maps every object to an element, and says so in JSON."""

from __future__ import annotations

import json
import math
import pickle
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from spaces.every_space import LARGE, SPACES
from spaces.garbage import GARBAGE, anything
from zerodelta.privacy.steps import Step
from zerodelta.spaces import (
    Ball,
    BallLattice,
    Box,
    EuclideanSpace,
    Finite,
    FiniteSpace,
    GridLattice,
    Multiset,
    Space,
    Subsets,
    WithExtra,
)
from zerodelta.spaces.lattices import UnequalGrid

LATTICES: list[GridLattice | UnequalGrid | BallLattice] = [
    Box(0, 1).grid(1),
    Box([-1, 2], ["1/3", 10**9]).grid(7),
    Box(0, 1, dimension=2).grid(2**53),
    Ball(2, 1, norm=math.inf, center=[1, "1/3"]).grid(5),
    *(Ball(2, 1, norm=norm).lattice(gap) for norm in (1, 2) for gap in ("1/10", "2", "1e-9")),
    *(Ball(2, 2, norm=norm, center=[1e100, "1/3"]).lattice("1/8") for norm in (1, 2)),
    *(Ball(1, 2**50, norm=norm).lattice("1/4") for norm in (1, 2)),
    Box([0, -1], [1, 5]).unequal_grid([2, 3]),
    Box([0, 2, -1], [1e-9, 10**9, "1/3"]).unequal_grid([2**53, 1, 7]),
]


def check_space(space: Space, value: Any) -> None:
    element = space.project(value)
    assert space.contains(element)
    assert isinstance(space.contains(value), bool)
    assert space.denotes(value) or not space.contains(value)
    again = space.project(element)
    if isinstance(space, FiniteSpace):
        assert again == element
        index = space.index(value)
        assert type(index) is int
        assert 0 <= index < space.size
        assert space.element(index) == element
        assert type(space.element(index)) is type(element)
    if isinstance(space, EuclideanSpace):
        assert element.dtype == np.float64
        assert element.shape == (space.dimension,)
        assert np.array_equal(again, element)
        if type(value) is np.ndarray:
            assert not np.shares_memory(element, value)


def check_lattice(lattice: GridLattice | UnequalGrid | BallLattice, value: Any) -> None:
    integers = lattice.quantize(value)
    assert integers.dtype == np.int64
    assert lattice.contains(integers)
    assert isinstance(lattice.contains(value), bool)
    points = lattice.points(integers)
    space = lattice.ball if isinstance(lattice, BallLattice) else lattice.box
    assert space.contains(points)


@pytest.mark.parametrize("space", SPACES, ids=repr)
def test_every_kind_of_garbage_becomes_an_element(space: Space) -> None:
    for value in GARBAGE:
        check_space(space, value)


@pytest.mark.parametrize("lattice", LATTICES, ids=repr)
def test_every_kind_of_garbage_becomes_a_lattice_point(
    lattice: GridLattice | UnequalGrid | BallLattice,
) -> None:
    for value in GARBAGE:
        check_lattice(lattice, value)


@given(anything())
@settings(max_examples=150, deadline=None)
def test_anything_becomes_an_element(value: Any) -> None:
    for space in SPACES:
        check_space(space, value)
    for lattice in LATTICES:
        check_lattice(lattice, value)


@pytest.mark.parametrize(
    ("space", "tries"),
    [
        *((space, 20) for space in SPACES if isinstance(space, FiniteSpace)),
        *((s, 1) for s in LARGE),
    ],
    ids=lambda case: repr(case)[:60],
)
def test_an_element_has_the_number_by_which_it_is_asked_for(space: FiniteSpace, tries: int) -> None:
    """At the ends, in the middle, and anywhere: of spaces that no test enumerates, too."""
    size, generator = space.size, random.Random(0)
    places = {
        0,
        1,
        size // 2,
        size - 2,
        size - 1,
        *(generator.randrange(size) for _ in range(tries)),
    }
    for index in places:
        if 0 <= index < size:
            assert space.index(space.element(index)) == index


def test_what_is_no_element_becomes_the_fixed_one() -> None:
    for value in (None, "x", math.nan, math.inf, object(), [3, 4]):
        assert Finite(16).project(value) == 0
        assert Finite(["a", "b"]).project(value) == "a"
        for space in (Finite(16), Finite(["a", "b"]), Finite([0.5, 3]), Box(0, 1)):
            assert not space.denotes(value)
        assert not WithExtra(Finite(16), "none").denotes(value)
    for value in (None, "12", math.nan, [1, math.nan], [math.inf, 0], [[1, 2]], [1, 2, 3], 5):
        assert Box([0, 2], [1, 4]).project(value).tolist() == [0.5, 3.0]
        assert Ball(2, 9, center=[1, 2]).project(value).tolist() == [1.0, 2.0]
    assert Subsets(of=9, size=3).project(None) == (0, 1, 2)
    assert Multiset(["x", "y"], 2).project(object()) == ("x", "x")


@pytest.mark.parametrize("space", SPACES, ids=repr)
def test_description_survives_json_and_a_proof_step(space: Space) -> None:
    numbers = space.describe()
    assert json.loads(json.dumps(numbers)) == numbers
    assert dict(Step(theorem="uniform-mixing", numbers=numbers).numbers) == numbers
    assert pickle.loads(pickle.dumps(space)) == space


def test_different_spaces_have_different_descriptions() -> None:
    odd: list[Any] = ["1", 1, 1.0, True, None, "none", (1,), ("tuple", 1), ("1",), -math.inf, 1e308]
    spaces = [*SPACES, Finite(2), Finite([0, 1]), *(Finite([option]) for option in odd)]
    spaces += [WithExtra(Finite(3), option) for option in odd if option not in (0, 1, 2)]
    written = [json.dumps(space.describe()) for space in spaces]
    assert len(set(written)) == len(written)
