"""Compute the numbers of Figure 1 (`fig:myth`) and of the f-DP figure (`fig:f-DP`).

Both are formulae: nothing is sampled here.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from zerodelta.channels.mixes import FiniteMix
from zerodelta.privacy.claims import GaussianDP, calibrate
from zerodelta.spaces import Finite

__all__ = ["figure_1", "figure_f_dp", "pair_vertices", "trade_off", "trade_off_vertices"]

Floats: TypeAlias = npt.NDArray[np.float64]

_LOG_10 = math.log(10)

_RELATIONS = {
    # l1 and l2² sensitivity of a histogram
    "add/remove one row": (Fraction(1), Fraction(1)),
    "replace one row": (Fraction(2), Fraction(2)),
}


def figure_1(*, points: int) -> dict[str, object]:
    """Return the variance per count of a histogram at ε = 1, Laplace and analytic Gaussian.

    The caption does not say which neighbors; both are here. `crossing` is the δ above which
    Gaussian noise has the smaller variance.
    """
    powers = np.linspace(-1.0, -16.0, points).tolist()
    variances = [
        float(_variance(calibrate(epsilon=1, log_delta=power * _LOG_10, sensitivity=1).variance))
        for power in powers
    ]
    relations = {}
    for name, (length, square) in _RELATIONS.items():
        laplace = 2 * length**2
        crossing = GaussianDP(mu_squared=square / laplace).log_delta(1)
        relations[name] = {
            "laplace": float(laplace),
            "gaussian": [float(square) * variance for variance in variances],
            "crossing_log10_delta": crossing / _LOG_10,
        }
    return {"epsilon": 1, "log10_delta": powers, "relations": relations}


def _variance(found: Fraction | None) -> Fraction:
    return Fraction(0) if found is None else found


def trade_off(alpha: Floats, *, epsilon: float, delta: float) -> Floats:
    """Return f_{ε,δ}(α) = max(0, 1 - δ - e^ε α, e^-ε (1 - δ - α)): the least type II error.

    >>> trade_off(np.array([0.0, 1.0]), epsilon=1.0, delta=0.25)
    array([0.75, 0.  ])
    """
    steep = 1 - delta - math.exp(epsilon) * alpha
    flat = math.exp(-epsilon) * (1 - delta - alpha)
    return np.maximum(0.0, np.maximum(steep, flat))


def trade_off_vertices(*, epsilon: float, delta: float) -> list[tuple[float, float]]:
    """Return the vertices of f_{ε,δ}, from left to right; between them it is linear.

    >>> trade_off_vertices(epsilon=0.0, delta=0.5)
    [(0.0, 0.5), (0.25, 0.25), (0.5, 0.0), (1.0, 0.0)]
    """
    kink = (1 - delta) / (1 + math.exp(epsilon))
    end = [(1 - delta, 0.0)] if delta > 0 else []
    return [(0.0, 1 - delta), (kink, kink), *end, (1.0, 0.0)]


def pair_vertices(first: Floats, second: Floats) -> list[tuple[float, float]]:
    """Return the vertices of the trade-off curve of two finite distributions (Neyman-Pearson).

    Outcomes are rejected in the order of their likelihood ratios, the most telling first; outcomes
    of one ratio make one straight piece.

    >>> pair_vertices(np.array([0.5, 0.5]), np.array([0.25, 0.75]))
    [(0.0, 1.0), (0.5, 0.25), (1.0, 0.0)]
    """
    slopes: dict[float, tuple[float, float]] = {}
    for p, q in zip(first.tolist(), second.tolist(), strict=True):
        ratio = round(q / p, 12) if p > 0 else math.inf
        before = slopes.get(ratio, (0.0, 0.0))
        slopes[ratio] = (before[0] + p, before[1] + q)
    # free rejections (first = 0) come first: the curve starts below them
    alpha, beta = 0.0, 1.0 - slopes.pop(math.inf, (0.0, 0.0))[1]
    vertices = [(alpha, beta)]
    for ratio in sorted(slopes, reverse=True):
        alpha, beta = alpha + slopes[ratio][0], beta - slopes[ratio][1]
        vertices.append((alpha, beta))
    vertices[-1] = (1.0, max(0.0, round(beta, 12)))
    return vertices


def figure_f_dp(*, epsilon: float, extra_epsilon: float, delta: float) -> dict[str, object]:
    """Return the three curves of the paper, and that of a purified worst case, as vertices.

    The worst (ε, δ) pair (reveal with probability δ, else randomized response) on its four
    outcomes, mixed by B1 so that it is ε-DP: no ε' was needed.
    """
    # outcomes: "it is D", "it is D'", "probably D", "probably D'"
    share = math.exp(epsilon) / (1 + math.exp(epsilon))
    pair = np.array(
        [
            [delta, 0.0, (1 - delta) * share, (1 - delta) * (1 - share)],
            [0.0, delta, (1 - delta) * (1 - share), (1 - delta) * share],
        ]
    )
    weight = _smallest_weight(epsilon, delta, outcomes=4)
    mixed = (1 - float(weight)) * pair + float(weight) / 4
    total = epsilon + extra_epsilon
    cross = delta / (math.exp(total) - math.exp(epsilon))
    return {
        "epsilon": epsilon,
        "extra_epsilon": extra_epsilon,
        "delta": delta,
        "approximate": trade_off_vertices(epsilon=epsilon, delta=delta),
        "pure": trade_off_vertices(epsilon=epsilon, delta=0.0),
        "pure_total": trade_off_vertices(epsilon=total, delta=0.0),
        "purified": pair_vertices(mixed[0], mixed[1]),
        "mixing_weight": float(weight),
        # 1 - δ - e^ε α = 1 - e^(ε+ε') α: right of it f_{ε,δ} is *above* f_{ε+ε',0}
        "crossing_alpha": cross,
        "crossing_beta": 1 - math.exp(total) * cross,
        "largest_purified_excess": _excess(mixed, epsilon),
    }


def _smallest_weight(epsilon: float, delta: float, *, outcomes: int) -> Fraction:
    """Return the smallest thousandth w for which `FiniteMix` purifies (ε, δ) at ε."""
    for thousandth in range(1, 1000):
        channel = FiniteMix(space=Finite(outcomes), mixing_weight=Fraction(thousandth, 1000))
        if channel.log_delta_required(epsilon) >= math.log(delta):
            return channel.mixing_weight
    return Fraction(999, 1000)


def _excess(pair: Floats, epsilon: float) -> float:
    """Return max |ln P/P'| - ε; at most 0, up to rounding, if the pair is ε-DP."""
    return float(np.abs(np.log(pair[0] / pair[1])).max()) - epsilon
