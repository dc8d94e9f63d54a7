"""Mechanisms to audit, with seeds of their own, so that a test is the same in every run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def lattice_laplace(scale: float, seed: int) -> Callable[[float, int], Any]:
    """Return a total with Laplace noise, rounded to thousandths: only the scale can be wrong."""
    rng = np.random.default_rng(seed)
    return lambda total, count: np.rint(1000 * (total + rng.laplace(scale=scale, size=count)))


def float_laplace(seed: int) -> Callable[[float, int], Any]:
    """Return a total with Laplace noise in plain floats, as libraries without care draw it."""
    rng = np.random.default_rng(seed)

    def mechanism(total: float, count: int) -> Any:
        uniform = rng.random(count) - 0.5
        return total - np.sign(uniform) * np.log1p(-2 * np.abs(uniform))

    return mechanism


def randomized_response(odds: float, seed: int) -> Callable[[int], str]:
    """Return the truth with the given odds."""
    rng = np.random.default_rng(seed)
    return lambda truth: "yes" if (rng.random() < odds / (1 + odds)) == bool(truth) else "no"
