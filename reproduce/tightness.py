"""Compute the tightness example (`ex:tightness`, `fig:example`) of the step from TV to W∞.

μ has an atom of mass Δ^d at the center of the unit ball and is uniform outside the ball of radius
Δ; ν is uniform. TV = Δ^d and W∞ = Δ, so every valid bound is at least Δ.
"""

from __future__ import annotations

import itertools
import math
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import maximum_bipartite_matching
from scipy.special import betainc

__all__ = ["bottleneck", "lens_radius", "tightness"]

Floats: TypeAlias = npt.NDArray[np.float64]

PAPER_CONVEX, PAPER_BALL, THEOREM_W = 8.0, 4.0, 2.0
"""Δ is multiplied by these: the paper's lemma for convex sets (R = 2r) and for balls; theory B3."""


def tightness(
    *, radius: float, dimensions: tuple[int, ...], grids: dict[int, int]
) -> dict[str, object]:
    """Return the bounds on W∞ for several dimensions, and W∞ itself found by matching on grids."""
    measured = []
    for dimension, cells in grids.items():
        transport, variation, spacing = bottleneck(radius, dimension=dimension, cells=cells)
        measured.append(
            {
                "dimension": dimension,
                "cells": cells,
                "spacing": spacing,
                "total_variation": variation,
                "transport": transport,
            }
        )
    return {
        "radius": radius,
        "dimensions": list(dimensions),
        "log_total_variation": [d * math.log(radius) for d in dimensions],
        "exact": [radius for _ in dimensions],
        "theorem_w": [THEOREM_W * radius for _ in dimensions],
        "lens": [lens_radius(radius, dimension=d) for d in dimensions],
        "paper_ball": [PAPER_BALL * radius for _ in dimensions],
        "paper_convex": [PAPER_CONVEX * radius for _ in dimensions],
        "measured": measured,
    }


def lens_radius(radius: float, *, dimension: int) -> float:
    """Return the sharp l2 radius: Δ' with Lens(Δ') = Δ^d times the unit ball (theory B3).

    Lens = volume of B(e1, Δ') inside the unit ball; no smaller Δ' is valid for all pairs.

    >>> round(lens_radius(0.25, dimension=1), 6)
    0.5
    """
    target = dimension * math.log(radius)

    def gap(log_lens_radius: float) -> float:
        t = math.exp(log_lens_radius)
        own = math.log(_cap(t / 2, dimension)) + dimension * log_lens_radius
        other = _cap(1 - t * t / 2, dimension)
        return float(np.logaddexp(own, math.log(other) if other > 0 else -math.inf)) - target

    return math.exp(float(brentq(gap, math.log(radius), min(0.0, math.log(2 * radius)) + 1e-9)))


def _cap(height: float, dimension: int) -> float:
    """Return P(U_1 > height) for U uniform in the unit ball, 0 <= height <= 1."""
    return float(betainc((dimension + 1) / 2, 0.5, 1 - height * height)) / 2


def bottleneck(radius: float, *, dimension: int, cells: int) -> tuple[float, float, float]:
    """Return W∞ and TV of the example on a grid, by bottleneck matching, and the grid's spacing.

    ν has one atom of equal mass at each grid point of the ball; μ moves those within `radius` to
    the center. W∞ is the smallest α for which the points can be matched within α.
    """
    axis = (np.arange(cells) - (cells - 1) / 2) * (2 / cells)
    points = np.array(list(itertools.product(axis, repeat=dimension)))
    points = points[(points**2).sum(axis=1) <= 1]
    moved = np.where((points**2).sum(axis=1, keepdims=True) <= radius**2, 0.0, points)
    distances = np.sqrt(((points[:, None, :] - moved[None, :, :]) ** 2).sum(axis=2))
    candidates = np.unique(distances)
    low, high = 0, len(candidates) - 1
    while low < high:
        middle = (low + high) // 2
        graph = csr_matrix(distances <= candidates[middle])
        if (maximum_bipartite_matching(graph, perm_type="column") >= 0).all():
            high = middle
        else:
            low = middle + 1
    shifted = float((points != moved).any(axis=1).mean())
    return float(candidates[low]), shifted, 2 / cells
