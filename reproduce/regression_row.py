"""Measure row 6 of Table 1: linear regression by AdaSSP (Algorithm 13)."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from reproduce.data_rows import stated
from reproduce.erm_rows import LOG_DELTA
from reproduce.rates import Experiment, Floats, Point
from zerodelta.data.row_queries import trial_rows
from zerodelta.exact.bits import BitSource, ReplayBits
from zerodelta.paper.algorithm_12_13 import adassp, lattice_adassp, pure_adassp
from zerodelta.paper.gaussian_statistics import (
    GaussianStatistics,
    LatticeAdassp,
    calibrated_statistics,
)
from zerodelta.privacy.release import Release
from zerodelta.testing import replayed

__all__ = ["REGRESSION"]


def _problem(point: Point) -> tuple[Floats, Floats, Floats]:
    """Return rows s·e_j, exact targets ⟨θ*, x⟩ and θ*; XᵀX/n = (s²/d)·I, s² = `spread`."""
    dimension = int(point["d"])
    features = _axes(int(point["n"]), dimension, math.sqrt(point["spread"]))
    best = np.full(dimension, point["theta"] / math.sqrt(dimension))
    return features, features @ best, best


@lru_cache(maxsize=1)
def _axes(rows: int, dimension: int, length: float) -> Floats:
    features = np.zeros((rows, dimension))
    features[np.arange(rows), np.arange(rows) % dimension] = length
    features.setflags(write=False)
    return features


def _options(point: Point) -> dict[str, Any]:
    """Return ‖X‖ and ‖Y‖ = 2‖X‖‖θ*‖: the paper assumes ‖Y‖ of the order of ‖X‖‖θ*‖."""
    norm = Fraction(str(point["norm"]))
    return {"data_norm": norm, "target_bound": 2 * norm * Fraction(str(point["theta"]))}


def _through_lattice(point: Point) -> dict[str, Any]:
    """Return the options of `lattice_adassp`: w = 1/n², and a lattice finer than the noise."""
    rows, dimension = int(point["n"]), int(point["d"])
    return {
        "epsilon": Fraction(str(point["epsilon"])),
        "mixing_weight": Fraction(1, rows**2),
        # the ball is about n/(2m√d) wide and the noise md/n, with m² about 180d/ε²
        "resolution": max(rows, round((rows * point["epsilon"]) ** 2 / (360 * dimension**2.5))),
        **_options(point),
    }


def _release(variant: str, point: Point, bits: BitSource) -> Release:
    features, target, _ = _problem(point)
    total, size = Fraction(str(point["epsilon"])), _options(point)
    if variant == "before":
        return replayed(bits)(adassp)(features, target, epsilon=total, log_delta=LOG_DELTA, **size)
    if variant == "after":
        return replayed(bits)(pure_adassp)(features, target, epsilon=total, **size)
    return replayed(bits)(lattice_adassp)(features, target, **_through_lattice(point))


def _plain_statistics(point: Point) -> GaussianStatistics:
    """Return XᵀX and Xᵀy with Gaussian noise, and nothing else: SSP without a penalty."""
    return calibrated_statistics(
        int(point["d"]),
        **_options(point),
        epsilon=Fraction(str(point["epsilon"])),
        log_delta=LOG_DELTA,
        eigenvalue=False,
    )


def measure_regression(variant: str, point: Point, label: str) -> list[float]:
    """Return the excess of (1/2n)‖y - Xθ‖² on rows on the axes."""
    features, target, best = _problem(point)
    bits = ReplayBits(label)
    if variant == "plain":
        table = np.column_stack([features, target])
        rows = trial_rows(table, tuple(map(str, range(table.shape[1]))))
        value = _plain_statistics(point).solve(rows, bits, ridge=0.0)
    else:
        value = np.asarray(_release(variant, point, bits).value)
    residual = features @ (value - best)
    return [float((residual**2).mean()) / 2]


def predict_regression(variant: str, point: Point) -> float:
    """Return the excess to first order in the noise E₁ on XᵀX and E₂ on Xᵀy.

    θ̃ - θ* = (XᵀX)⁻¹(E₂ - E₁θ*), where E₁ has variance (m‖X‖²)² on and half of it off the diagonal
    and E₂ has (m‖X‖‖Y‖)², so E‖E₁θ*‖² = (m‖X‖²‖θ*‖)²(d+1)/2; plus the rounding to the lattice. The
    penalty is 0 for these numbers of rows, and Algorithm 1's own noise is 2⁻³⁰ of the radius.
    """
    rows, dimension = int(point["n"]), int(point["d"])
    norm, theta, curvature = point["norm"], point["theta"], point["spread"] / dimension
    rounding = 0.0
    if variant == "plain":
        multiplier = float(_plain_statistics(point).multiplier_squared)
    elif variant == "modern":
        plan = LatticeAdassp.plan(rows=rows, dimension=dimension, **_through_lattice(point))
        multiplier = float(plan.statistics.multiplier_squared)
        rounding = plan.channel.kept_error() ** 2
    else:
        certificate = _release(variant, point, ReplayBits("prediction")).certificate
        multiplier = stated(certificate.steps[0], "multiplier_squared")
    noise = multiplier * norm**4 * theta**2 * ((dimension + 1) / 2 + 4 * dimension)
    return (noise / (rows * curvature) ** 2 + rounding) * curvature / 2


REGRESSION = Experiment(
    key="linear_regression",
    problem="Linear regression",
    label="thm: util_adassp",
    quantity="excess mean squared error",
    setting=(
        "rows on the axes, so that λ_min = s²/d for rows of length s; exact linear labels; "
        "‖Y‖ = 2‖X‖‖θ*‖"
    ),
    variants={
        "before": "AdaSSP, (ε, 10⁻⁶)-DP",
        "after": "purified by Algorithm 1 (Algorithm 13)",
        "modern": "no eigenvalue query, lattice, no ε' (theory C6)",
        "plain": "Gaussian mechanism on XᵀX, Xᵀy (SSP), (ε, 10⁻⁶)-DP",
    },
    formulas={
        "before": "d ln(1/δ) ‖X‖⁴‖θ*‖²/(λ_min n²ε²)",
        "after": "d² ‖X‖⁴‖θ*‖²/(λ_min n²ε²)",
        "modern": "d² ‖X‖⁴‖θ*‖²/(λ_min n²ε²)",
        "plain": "as AdaSSP, for a well-conditioned XᵀX",
    },
    exponents={
        # in d: with 1/λ_min = d
        "before": {"n": -2, "d": 2, "epsilon": -2, "norm": 4, "theta": 2, "spread": -1},
        "after": {"n": -2, "d": 3, "epsilon": -2, "norm": 4, "theta": 2, "spread": -1},
        "modern": {"n": -2, "d": 3, "epsilon": -2, "norm": 4, "theta": 2, "spread": -1},
        "plain": {"n": -2, "d": 2, "epsilon": -2, "norm": 4, "theta": 2, "spread": -1},
    },
    base={"n": 50_000, "d": 5, "epsilon": 2, "norm": 1, "theta": 0.5, "spread": 1},
    sweeps={
        "n": (12_500, 25_000, 50_000, 100_000),
        "d": (2, 4, 8, 16),
        "epsilon": (0.5, 1, 2, 4),
        "norm": (1, 1.5, 2, 3),
        "theta": (0.125, 0.25, 0.5, 1),
        "spread": (0.125, 0.25, 0.5, 1),
    },
    quick={"n": (25_000, 50_000), "d": (2, 8), "epsilon": (1, 4)},
    quick_base={"n": 50_000},
    repeats=48,
    quick_repeats=1,
    measure=measure_regression,
    predicted=predict_regression,
    axes={"norm": "‖X‖", "theta": "‖θ*‖", "spread": "d·λ_min"},
)
