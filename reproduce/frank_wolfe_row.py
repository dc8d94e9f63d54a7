"""Measure row 3 of Table 1: empirical risk minimization over an l1 ball (`sec:DP-FW`).

The rate is that of the worst problem, so each variant gets the one that is hard for its own number
of steps: a mean spread over T vertices. The steps are then too few to balance it (what T steps
leave is of order 1/T), and the vertices differ by as little as the noise.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from reproduce.erm_rows import LOG_DELTA
from reproduce.rates import Experiment, Floats, Point
from zerodelta.paper.algorithm_01_02 import laplace_scale
from zerodelta.paper.algorithm_05_06 import approximate_frank_wolfe
from zerodelta.paper.algorithm_07_08 import (
    printed_log_delta,
    printed_measurements,
    printed_mixing_weight,
    pure_frank_wolfe,
    recovery_error,
    tolerance,
)
from zerodelta.privacy.claims import ApproxDP, calibrate
from zerodelta.spaces import Ball
from zerodelta.testing import replayed
from zerodelta.training.frank_wolfe import frank_wolfe_pure, step_epsilon
from zerodelta.training.polytopes import curvature, optimization_error

__all__ = ["FRANK_WOLFE", "iterations", "spread_rows"]

_STEPS = 1 << 16


def _exact(value: float) -> Fraction:
    return Fraction(str(value))


def spread_rows(rows: int, dimension: int, *, vertices: int, length: float) -> Floats:
    """Return rows at the first `vertices` vertices in turn: their mean is spread over them."""
    features = np.zeros((rows, dimension))
    features[np.arange(rows), np.arange(rows) % min(vertices, dimension)] = length
    return features


def iterations(variant: str, point: Point) -> int:
    """Return T: the paper's √(β‖C‖₁nε/L₁) over √(4 ln 2d), which its Θ̃ leaves open.

    A noisy choice then costs 4L₁‖C‖₁T ln(2d)/(nε) = β‖C‖₁²/T. With (ε, δ) the same balance has
    √(8Tρ) for ε, ρ the zCDP of (ε, δ): T is of order (nε)^⅔.
    """
    total, logs = _exact(point["epsilon"]), 4 * math.log(2 * point["d"])
    ratio = point["beta"] * point["C"] * point["n"] / (point["L"] * logs)
    if variant == "before":
        rho = float(calibrate(epsilon=total, log_delta=LOG_DELTA).rho)
        return max(1, round(math.pow(ratio * math.sqrt(8 * rho), 2 / 3)))
    share = total if variant == "modern" else total / 2
    return max(1, round(math.sqrt(ratio * float(share))))


def measure_frank_wolfe(variant: str, point: Point, label: str) -> list[float]:
    """Return the excess of the mean of β‖θ - x‖²/2 over the l1 ball of radius C."""
    beta, length = float(point["beta"]), float(point["C"])
    dimension, rounds = int(point["d"]), iterations(variant, point)
    features = spread_rows(int(point["n"]), dimension, vertices=rounds, length=length)
    common: dict[str, Any] = {
        "loss": lambda theta, rows: beta * (theta - rows),
        "domain": Ball(dimension, _exact(point["C"]), norm=1),
        "lipschitz": _exact(point["L"]),
        "epsilon": _exact(point["epsilon"]),
        "iterations": rounds,
        "smoothness": _exact(point["beta"]),
        "steps": _STEPS,
    }
    if variant == "before":
        release = replayed(label)(approximate_frank_wolfe)(features, log_delta=LOG_DELTA, **common)
    elif variant == "modern":
        release = replayed(label)(frank_wolfe_pure)(features, method="composition", **common)
    else:
        lines = dimension if variant == "plain" else None
        release = replayed(label)(pure_frank_wolfe)(features, measurements=lines, **common)
    return [beta * float(((release.value - features.mean(axis=0)) ** 2).sum()) / 2]


def predicted_frank_wolfe(variant: str, point: Point) -> float:
    """Return 2Γ/(T+2), plus the expected gap of a noisy choice, plus what purification adds."""
    rows, dimension, total = int(point["n"]), int(point["d"]), _exact(point["epsilon"])
    slope, length, rounds = point["L"], point["C"], iterations(variant, point)
    gamma = curvature(smoothness=_exact(point["beta"]), length=_exact(length))
    base = total if variant in ("before", "modern") else total / 2
    lines = (
        dimension
        if variant == "plain"
        else printed_measurements(iterations=rounds, dimension=dimension, rows=rows)
    )
    weight = printed_mixing_weight(rows=rows)
    log_delta = (
        LOG_DELTA
        if variant == "before"
        else printed_log_delta(measurements=lines, rows=rows, mixing_weight=weight)
    )
    share = (
        total / rounds
        if variant == "modern"
        else step_epsilon(epsilon=base, log_delta=log_delta, iterations=rounds)
    )
    gap = 4 * slope * length * math.log(2 * dimension) / (rows * float(share))
    error = optimization_error(curvature=gamma, iterations=rounds) + gap
    if variant in ("before", "modern"):
        return error
    sketched = lines < dimension
    scale = float(
        laplace_scale(
            norm=2 if sketched else 1,
            dimension=lines,
            diameter=(4 if sketched else 2) * _exact(length),
            weight=weight,
            claim=ApproxDP(base, log_delta),
            epsilon=base,
            extra_epsilon=total - base,
        )
    )
    if not sketched:
        return error + slope * lines * scale + 2 * slope * length / rows
    recovered = recovery_error(
        sparsity=rounds, tolerance=tolerance(noise_scale=scale, measurements=lines, rows=rows)
    )
    return error + slope * recovered + 6 * slope * length / rows


_BEFORE = {"n": -2 / 3, "d": 0, "epsilon": -2 / 3, "L": 2 / 3, "beta": 1 / 3, "C": 4 / 3}
_PURE = {"n": -0.5, "d": 0, "epsilon": -0.5, "L": 0.5, "beta": 0.5, "C": 1.5}

FRANK_WOLFE = Experiment(
    key="dp_erm_l1",
    problem="DP-ERM, l1 ball",
    label="thm: dp-fw-pure",
    quantity="excess empirical risk",
    setting=(
        "the mean of β‖θ - x‖²/2 over the l1 ball of radius C, gradients bounded by L, T chosen "
        "so that noise and steps cost the same, and the mean spread over T vertices, which is hard "
        "for T steps; k = 16T lines of the sketch; the formula is the bound of the proof"
    ),
    variants={
        "before": "Frank-Wolfe, (ε, 10⁻⁶)-DP (Algorithm 6)",
        "after": "purified through a sketch, sparse recovery (Algorithm 7)",
        "plain": "purified without a sketch (Algorithm 7 with k = d)",
        "modern": "pure composition, no purification (theory C2)",
    },
    formulas={
        "before": "(ln d)^⅔ ln(1/δ)^⅓ L^⅔β^⅓C^(4/3)/(nε)^⅔",
        "after": "√(ln d·LβC³/(nε))",
        "plain": "√(ln d·LβC³/(nε))",
        "modern": "√(ln d·LβC³/(nε))",
    },
    exponents={"before": _BEFORE, "after": _PURE, "plain": _PURE, "modern": _PURE},
    # for Algorithm 7: T = 6, k = 96
    base={"n": 324, "d": 4000, "epsilon": 16, "L": 2, "beta": 1, "C": 1},
    own_base={"before": {"n": 2000, "d": 256, "epsilon": 8}},
    sweeps={
        "n": (81, 144, 324, 576),
        "d": (1000, 2000, 4000, 8000),
        "epsilon": (4, 7, 16, 28),
        "L": (2, 4.5, 8),
        "beta": (0.25, 0.44, 1),
        "C": (0.25, 0.44, 1),
    },
    own_sweeps={
        "before/n": (500, 1000, 2000, 4000),
        "before/d": (64, 256, 1024),
        "before/epsilon": (2, 4, 8, 16),
    },
    quick={
        "n": (81, 144),
        "d": (500, 1000),
        "epsilon": (4, 8),
        "L": (2, 4),
        "beta": (0.5, 1),
        "C": (0.5, 1),
    },
    quick_base={"n": 144, "d": 500, "epsilon": 8, "L": 2, "beta": 1, "C": 1},
    repeats=12,
    quick_repeats=1,
    measure=measure_frank_wolfe,
    predicted=predicted_frank_wolfe,
    axes={"beta": "β"},
)
