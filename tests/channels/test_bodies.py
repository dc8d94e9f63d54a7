"""The norm ball that a kernel mixes over holds every point of its lattice, and hardly more."""

from __future__ import annotations

import math

import numpy as np
import pytest

from channels.channel_laws import body_of, lattice_points
from zerodelta.spaces import Ball, BallLattice, Box, GridLattice

LATTICES: dict[str, GridLattice | BallLattice] = {
    **{
        f"l{norm} of radius {radius}": Ball(2, radius, norm=norm).lattice(1)
        for norm in (1, 2)
        for radius in (1, 2, "3/2", "5/2", "29/10", 4)
    },
    **{f"{cells} cells": Box(0, 1, dimension=2).grid(cells) for cells in (1, 3, 5, 9)},
}


@pytest.mark.parametrize("name", LATTICES)
def test_every_point_of_the_lattice_lies_in_the_body(name: str) -> None:
    body = body_of(LATTICES[name])
    lengths = []
    for integers in lattice_points(body.lattice):
        centered = [int(k) for k in body.centered(body.lattice.points(np.array(integers)))]
        sizes = [abs(k) for k in centered]
        if body.norm == 2:
            assert sum(k * k for k in sizes) <= body.radius**2
        lengths.append(max(sizes) if body.norm == math.inf else math.hypot(*sizes))
        assert (sum(sizes) if body.norm == 1 else max(sizes)) <= body.radius
    assert body.radius < max(1.0, max(lengths)) + 2
