"""Norm balls hold every point of their lattice; boxes with unequal sides have equal spacing."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import zerodelta as zd
from channels.channel_laws import body_of, lattice_points
from privacy.chains import forged
from zerodelta.channels.mixes import GridMix, UnequalGridMix
from zerodelta.errors import CertificateError
from zerodelta.privacy.theorems.mixing import largest_log_delta
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


# -- unequal sides --------------------------------------------------------------------------------


BOXES = [
    zd.Box(0, [1, 100]),
    zd.Box([-1, 0, 2], [1, 5, "7/3"]),
    zd.Box(np.zeros(50), np.arange(1.0, 51.0)),
    zd.Box(0, [1e-9, 1, 1e9]),
]


@pytest.mark.parametrize("box", BOXES, ids=repr)
@pytest.mark.parametrize("nats", [8.0, 30.0, 50.0])
def test_equal_spacing_has_a_smaller_error_than_equal_numbers_of_cells(
    box: zd.Box, nats: float
) -> None:
    base = zd.ApproxDP(1, -nats - 3 * box.dimension)
    plan = zd.plan(box, epsilon=1, base=base)
    channel = plan.purifier
    assert isinstance(channel, UnequalGridMix)
    assert zd.verify(plan.certificate(base).to_json())
    allowed = largest_log_delta(epsilon=1, weight=channel.mixing_weight, log_mass=0.0)
    same = math.exp(min((allowed - base.exact_log_delta) / box.dimension, 34.0))
    equal = GridMix(lattice=box.grid(max(1, int(same))), mixing_weight=channel.mixing_weight)
    assert channel.expected_error() <= equal.expected_error() * (1 + 1e-9)
    cut = box.widths() / channel.lattice.counts
    spacing = cut[channel.lattice.counts > 1].max()
    assert (cut <= spacing * (1 + 1e-9)).all()
    assert (cut[channel.lattice.counts > 1] > spacing / 2 * (1 - 1e-9)).all()


def test_equal_sides_have_equal_numbers_of_cells() -> None:
    base = zd.ApproxDP(1, -50.0)
    assert isinstance(zd.plan(zd.Box(0, 1, dimension=3), epsilon=1, base=base).purifier, GridMix)
    shifted = zd.Box([0, 5], [1, 6])
    assert isinstance(zd.plan(shifted, epsilon=1, base=base).purifier, GridMix)


def test_thousands_of_sides_are_planned_and_many_more_with_one_number() -> None:
    many = zd.Box(0, np.arange(1.0, 4001.0))
    plan = zd.plan(many, epsilon=1, base=zd.ApproxDP(1, -20000.0))
    assert isinstance(plan.purifier, UnequalGridMix)
    more = zd.plan(zd.Box(0, np.arange(1.0, 5001.0)), epsilon=1, base=zd.ApproxDP(1, -20000.0))
    assert isinstance(more.purifier, GridMix)


def test_a_grid_with_a_side_too_few_in_its_certificate_is_caught() -> None:
    base = zd.ApproxDP(1, -30.0)
    plan = zd.plan(zd.Box(0, [1, 10, 100]), epsilon=1, base=base)
    certificate = plan.certificate(base)
    sides = certificate.steps[-1].numbers["sides"]
    assert sides == [list(pair) for pair in plan.purifier.lattice.sides()]  # type: ignore[union-attr]

    def finer(data: Any) -> None:
        data["parts"][0]["steps"][-1]["numbers"]["sides"][-1][0] *= 2

    with pytest.raises(CertificateError, match="understated"):
        zd.verify(forged(certificate, finer))
    for broken in ([[3]], [[3, 0]], [[0, 3]], [3, 3], [["x", 1]], 7):

        def malformed(data: Any, broken: Any = broken) -> None:
            data["parts"][0]["steps"][-1]["numbers"]["sides"] = broken

        with pytest.raises(CertificateError):
            zd.verify(forged(certificate, malformed))
