"""A kernel's noise, and a uniform point with noise, are drawn from the laws that are judged.

Elsewhere `test_apply_on_every_path` compares exactly, each sampler having its exact test. The sum
of a uniform point and noise has its closed form here only: chi-square on replayed bits.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest

from channels.cases import MIXING
from channels.channel_laws import Row, body_of, fit, row, values_of
from zerodelta.channels.kernels import KernelMix
from zerodelta.spaces import Ball

F = Fraction
LEAST = 1e-4
DRAWS = 500


@pytest.mark.parametrize("name", [name for name in MIXING if name.startswith(("kernel", "cube"))])
def test_apply_has_the_law(name: str) -> None:
    built: Any = MIXING[name]
    purifier = replace(built, mixing_weight=F(1, 2))  # the law of each branch is seen
    value = values_of(purifier)[0]
    # a window outside of which next to nothing is drawn, where the ball folds the law inwards
    reach = 8 if name == "kernel-l1-2d" else None
    found = fit(purifier, value, row(purifier, value, reach), DRAWS)
    assert found.outside < 1e-4
    assert found.p_value > LEAST


def disc_law(purifier: KernelMix, center: tuple[int, int], reach: int) -> Row:
    """The law of disc smoothing in floats: Gauss-Legendre over each cell of radial densities."""
    nodes, weights = np.polynomial.legendre.leggauss(12)
    scale, radius = float(purifier.scale), purifier.body.radius

    def uniform_density(rho: Any) -> Any:
        s, share = np.polynomial.legendre.leggauss(200)
        total = np.zeros_like(rho)
        # ∫ s e^(-s/b) θ(s) ds, s = inner..outer by a cosine change of variable at both ends
        inner, outer = np.abs(rho - radius), rho + radius
        angle = (s + 1) * math.pi / 2
        for a, w in zip(angle, share, strict=True):
            at = (inner + outer) / 2 - (outer - inner) / 2 * math.cos(a)
            jacobian = (outer - inner) / 2 * math.sin(a) * math.pi / 2
            cosine = np.clip((at**2 + rho**2 - radius**2) / (2 * at * rho), -1, 1)
            total += w * jacobian * at * np.exp(-at / scale) * 2 * np.arccos(cosine)
        whole = 2 * math.pi * scale * (scale - (inner + scale) * np.exp(-inner / scale))
        total += np.where(rho < radius, whole, 0.0)
        return total / (2 * math.pi**2 * scale**2 * radius**2)

    radii = np.linspace(1e-6, 2.0 * reach, 4000)
    table = uniform_density(radii)
    densities = (
        lambda rho: np.exp(-rho / scale) / (2 * math.pi * scale**2),
        lambda rho: np.interp(rho, radii, table),
    )

    @cache
    def mass(i: int, j: int, which: int) -> float:
        total = 0.0
        for u, v in itertools.product((-0.25, 0.25), repeat=2):
            x, y = np.meshgrid(i + u + nodes / 4, j + v + nodes / 4)
            at = densities[which](np.hypot(x, y))
            total += float(np.sum(np.outer(weights, weights) * at)) / 16
        return total

    w = float(purifier.mixing_weight)
    law: Row = {}
    for i in range(-reach, reach + 1):
        for j in range(-reach, reach + 1):
            kept = mass(abs(i - center[0]), abs(j - center[1]), 0)
            law[i, j] = (1 - w) * kept + w * mass(abs(i), abs(j), 1)
    return law


def test_disc_smoothing_has_the_law() -> None:
    purifier = KernelMix(
        body=body_of(Ball(2, 1).lattice(1)), noise_norm=2, scale=F(1, 2), mixing_weight=F(1, 2)
    )
    for center in ((0, 0), (1, -1)):
        value = np.array(center, dtype=float)
        settled = tuple(int(k) for k in purifier.body.centered(value))
        found = fit(purifier, value, disc_law(purifier, (settled[0], settled[1]), 6), DRAWS)
        assert found.outside < 1e-3
        assert found.p_value > LEAST
