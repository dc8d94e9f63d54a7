"""Every space and lattice maps every object to an element, and says so in JSON."""

from __future__ import annotations

import json
import math
import pickle
from dataclasses import FrozenInstanceError, fields
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from spaces.garbage import GARBAGE, anything
from zerodelta.errors import ParameterError
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
    lattice_from_numbers,
    space_from_numbers,
)
from zerodelta.spaces.lattices import UnequalGrid

SPACES: list[Space] = [
    Finite(1),
    Finite(16),
    Finite(10**30),
    Finite(["a", "b", 3, 2.5, None, (1, ("x", True)), math.inf]),
    Finite([False, True]),
    Subsets(of=7, size=3),
    Subsets(of=5, size=5),
    Subsets(of=10**3, size=3),
    Multiset(4, 3),
    Multiset(["x", "y"], 2),
    Multiset(2**40, 5),
    WithExtra(Finite(16), "none"),
    WithExtra(Finite(["a", 2.5]), None),
    WithExtra(Subsets(of=5, size=2), (1, "x")),
    Box(0, 1),
    Box("1/3", 1, dimension=2),
    Box([-1, 1e-200], ["1e100", 2e-150]),
    *(Ball(2, 1, norm=norm) for norm in (1, 2, math.inf)),
    *(Ball(1, "1/7", norm=norm, center=3) for norm in (1, 2, math.inf)),
    *(Ball(2, 2, norm=norm, center=[1e100, "1/3"]) for norm in (1, 2, math.inf)),
    *(Ball(2, "1e-150", norm=norm) for norm in (1, 2, math.inf)),
]

DESCRIBED: list[GridLattice | BallLattice] = [
    Box(0, 1).grid(1),
    Box([-1, 2], ["1/3", 10**9]).grid(7),
    Box(0, 1, dimension=2).grid(2**53),
    Ball(2, 1, norm=math.inf, center=[1, "1/3"]).grid(5),
    *(Ball(2, 1, norm=norm).lattice(gap) for norm in (1, 2) for gap in ("1/10", "2", "1e-9")),
    *(Ball(2, 2, norm=norm, center=[1e100, "1/3"]).lattice("1/8") for norm in (1, 2)),
    *(Ball(1, 2**50, norm=norm).lattice("1/4") for norm in (1, 2)),
]

LATTICES: list[GridLattice | UnequalGrid | BallLattice] = [
    *DESCRIBED,
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
@settings(max_examples=300, deadline=None)
def test_anything_becomes_an_element(value: Any) -> None:
    for space in SPACES:
        check_space(space, value)
    for lattice in LATTICES:
        check_lattice(lattice, value)


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
    assert space_from_numbers(json.loads(json.dumps(numbers))) == space
    assert dict(Step(theorem="uniform-mixing", numbers=numbers).numbers) == numbers
    assert pickle.loads(pickle.dumps(space)) == space
    assert hash(space_from_numbers(numbers)) == hash(space)


@pytest.mark.parametrize("lattice", DESCRIBED, ids=repr)
def test_lattice_description_survives_json(lattice: GridLattice | BallLattice) -> None:
    numbers = lattice.describe()
    assert lattice_from_numbers(json.loads(json.dumps(numbers))) == lattice
    assert dict(Step(theorem="grid-mixing", numbers=numbers).numbers) == numbers


def test_option_types_survive_json() -> None:
    options: list[Any] = ["1", 2, 3.0, True, None, (0.1, (False,)), -math.inf, "tuple"]
    space = Finite(options)
    again = space_from_numbers(json.loads(json.dumps(space.describe())))
    assert isinstance(again, Finite)
    assert repr(again.options) == repr(tuple(options))


@pytest.mark.parametrize(
    "numbers",
    [
        None,
        {},
        {"kind": "cube"},
        {"kind": ["box"]},
        {"kind": "finite"},
        {"kind": "finite", "of": 0},
        {"kind": "finite", "of": True},
        {"kind": "finite", "of": 2.5},
        {"kind": "finite", "of": "ab"},
        {"kind": "finite", "of": []},
        {"kind": "finite", "of": ["a", "a"]},
        {"kind": "finite", "of": ["a", ["float", "nan"]]},
        {"kind": "finite", "of": ["a", ["float", "x"]]},
        {"kind": "finite", "of": ["a", ["list", 1]]},
        {"kind": "finite", "of": 3, "more": 1},
        {"kind": "subsets", "of": 3, "chosen": 4},
        {"kind": "subsets", "of": "3", "chosen": 1},
        {"kind": "multiset", "universe": {"a": 1}, "chosen": 1},
        {"kind": "box", "lower": 1, "upper": 0, "dimension": 1},
        {"kind": "box", "lower": 0, "upper": "x", "dimension": 1},
        {"kind": "box", "lower": [0, 0], "upper": 1, "dimension": 3},
        {"kind": "with-extra", "of": [["kind", "finite"], ["of", 3]], "extra": 2},
        {"kind": "with-extra", "of": [["kind", "finite"]], "extra": "none"},
        {"kind": "with-extra", "of": "finite", "extra": "none"},
        {"kind": "with-extra", "of": [["kind", "with-extra"]], "extra": "none"},
        {"kind": "with-extra", "of": list(map(list, Box(0, 1).describe().items())), "extra": 1},
        {"kind": "ball", "dimension": 2, "radius": 0, "norm": 2, "center": 0},
        {"kind": "ball", "dimension": 2, "radius": 1, "norm": 3, "center": 0},
        {"kind": "ball", "dimension": 2, "radius": 1, "norm": 2, "center": None},
    ],
)
def test_malformed_descriptions_are_refused(numbers: Any) -> None:
    with pytest.raises(ParameterError):
        space_from_numbers(numbers)


def test_a_lattice_with_a_wrong_bound_is_refused() -> None:
    numbers = Ball(5, 1).lattice("1/10").describe()
    for wrong in (numbers["bound"] - 1, numbers["bound"] + 1, str(numbers["bound"]), None):
        with pytest.raises(ParameterError, match="bound"):
            lattice_from_numbers({**numbers, "bound": wrong})
    with pytest.raises(ParameterError):
        lattice_from_numbers({**numbers, "kind": "grid"})
    with pytest.raises(ParameterError):
        lattice_from_numbers(Ball(5, 1).describe())


@pytest.mark.parametrize("space", SPACES, ids=repr)
def test_spaces_are_immutable(space: Space) -> None:
    for field in fields(space):  # type: ignore[arg-type]
        with pytest.raises(FrozenInstanceError):
            setattr(space, field.name, 3)
