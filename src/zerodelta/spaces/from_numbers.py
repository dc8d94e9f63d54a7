"""Spaces and lattices read back from the numbers of a certificate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from zerodelta.errors import ParameterError
from zerodelta.spaces.ball import Ball
from zerodelta.spaces.box import Box
from zerodelta.spaces.finite import Finite
from zerodelta.spaces.lattices import BallLattice, GridLattice
from zerodelta.spaces.multiset import Multiset
from zerodelta.spaces.space import Space, named_numbers
from zerodelta.spaces.subsets import Subsets
from zerodelta.spaces.with_extra import WithExtra

_SPACES: dict[str, type[Space]] = {
    "finite": Finite,
    "subsets": Subsets,
    "multiset": Multiset,
    "box": Box,
    "ball": Ball,
    "with-extra": WithExtra,
}


def is_known(space: object) -> bool:
    """Tell whether this is a space that this library wrote: a subclass may publish anything."""
    return any(type(space) is kind for kind in _SPACES.values())


def space_from_numbers(numbers: Mapping[str, Any]) -> Space:
    """Return the space of a description; the inverse of `Space.describe`.

    >>> space_from_numbers({"kind": "subsets", "of": 100, "chosen": 5})
    Subsets(of=100, size=5)
    """
    kind = _kind(numbers)
    if kind not in _SPACES:
        raise _unknown(kind, list(_SPACES))
    return _SPACES[kind].from_numbers(numbers)


def lattice_from_numbers(numbers: Mapping[str, Any]) -> GridLattice | BallLattice:
    """Return the lattice of a description, refusing one whose bound does not follow from it.

    >>> lattice_from_numbers(Ball(3, 1).lattice("1/8").describe()).log_count_upper()
    7.987864096085688
    """
    kind = _kind(numbers)
    if kind == "grid":
        names = ("lower", "upper", "dimension", "cells")
        lower, upper, dimension, cells = named_numbers(numbers, kind, names)
        return Box(lower, upper, dimension=dimension).grid(cells)
    if kind == "ball-lattice":
        dimension, radius, norm, center, spacing, bound = named_numbers(
            numbers, kind, ("dimension", "radius", "norm", "center", "spacing", "bound")
        )
        lattice = Ball(dimension, radius, norm=norm, center=center).lattice(spacing)
        if type(bound) is not int or lattice.bound != bound:
            raise ParameterError(
                "bound", bound, expected=f"{lattice.bound}", remedy="use describe() unchanged"
            )
        return lattice
    raise _unknown(kind, ["grid", "ball-lattice"])


def _kind(numbers: Mapping[str, Any]) -> str:
    return str(numbers.get("kind")) if isinstance(numbers, Mapping) else type(numbers).__name__


def _unknown(kind: str, known: list[str]) -> ParameterError:
    return ParameterError(
        "kind", kind, expected=f"one of {', '.join(known)}", remedy="use describe() unchanged"
    )
