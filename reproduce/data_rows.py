"""Rows 4 to 7 of Table 1: local sensitivity, mode, linear regression, query release."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from reproduce.erm_rows import LOG_DELTA
from reproduce.rates import Experiment, Floats, Point
from zerodelta.exact.bits import BitSource, ReplayBits
from zerodelta.mechanisms.custom_query import CustomQuery
from zerodelta.mechanisms.noisy_test import noisy_test
from zerodelta.paper.algorithm_09 import paper_threshold
from zerodelta.paper.algorithm_11 import bounded_local_sensitivity, pure_bounded_local_sensitivity
from zerodelta.paper.algorithm_12 import embedded_mode, mode, stable_mode
from zerodelta.paper.algorithm_13 import adassp, lattice_adassp, pure_adassp
from zerodelta.paper.algorithm_14 import approximate_mwem, paper_rounds
from zerodelta.paper.algorithm_16 import embedded_mwem
from zerodelta.spaces import Box, Finite
from zerodelta.tables.mwem import pure_mwem
from zerodelta.tables.workloads import Marginals

__all__ = ["LOCAL_SENSITIVITY", "MODE", "QUERIES", "REGRESSION"]

_WIDTH = 1 << 20
_FINENESS = 16
"""Cells to a unit: rounding is small beside the noise."""

_RUNS, _SUCCESSES = 10, 9


def measure_local_sensitivity(variant: str, point: Point, label: str) -> list[float]:
    """Return the l2 error for a query of constant local sensitivity at the center of a box."""
    dimension, total = int(point["d"]), Fraction(str(point["epsilon"]))
    local = float(point["local"])
    box = Box(0, _WIDTH, dimension=dimension)
    center = box.middle()
    query = CustomQuery(
        function=lambda rows: center,
        grid=box.grid(_WIDTH * _FINENESS + 1),
        local=lambda rows: local,
        change=1,
    )
    bits = ReplayBits(label)
    if variant == "modern":
        release = bounded_local_sensitivity(
            [0], query=query, epsilon=total, mixing_weight="1e-6", bits=bits
        )
    else:
        share = total / (2 if variant == "before" else 3)
        weight = min(Fraction(1, 100), Fraction(1, _WIDTH) / share**2)
        log_delta = math.log(2 * weight) - dimension * math.log(16 * dimension * _WIDTH * share)
        # the draft of Algorithm 11 is what comes out when purification does next to nothing
        vanishing = variant == "before"
        release = pure_bounded_local_sensitivity(
            [0],
            query=query,
            epsilon=share,
            extra_epsilon=Fraction(10**12) if vanishing else share,
            log_delta=LOG_DELTA if vanishing else log_delta,
            mixing_weight=Fraction(1, 10**12) if vanishing else weight,
            bits=bits,
        )
    return [float(np.linalg.norm(release.value - center))]


def measure_mode(variant: str, point: Point, label: str) -> list[float]:
    """Return the smallest lead with which 9 of 10 releases are the mode, by bisection."""
    size, total = 2 ** int(point["bits"]), Fraction(str(point["epsilon"]))
    space, item, bits = Finite(size), size // 2, ReplayBits(label)
    low, high = 0, 2
    while not _mode_found(variant, space, item, high, total, bits):
        low, high = high, 2 * high
    while high - low > max(1, low // 200):
        middle = (low + high) // 2
        if _mode_found(variant, space, item, middle, total, bits):
            high = middle
        else:
            low = middle
    return [float(high)]


def _mode_found(
    variant: str, space: Finite, item: int, lead: int, total: Fraction, bits: BitSource
) -> bool:
    items, hits = np.full(lead, item), 0
    for run in range(_RUNS):
        if variant == "before":
            threshold = paper_threshold(epsilon=total, log_delta=LOG_DELTA)
            found, distance = stable_mode(items, space)
            passed = noisy_test(distance, epsilon=total, threshold=threshold, bits=bits)
            value: Any = found if passed else None
        elif variant == "after":
            value = embedded_mode(items, universe=space, epsilon=total / 2, bits=bits).value
        else:
            value = mode(items, universe=space, epsilon=total, bits=bits).value
        hits += value == item
        if run + 1 - hits > _RUNS - _SUCCESSES:
            return False
    return True


def measure_regression(variant: str, point: Point, label: str) -> list[float]:
    """Return the excess of (1/2n)‖y - Xθ‖² on rows ±e_j, y = ⟨θ*, x⟩, ‖θ*‖ = 1/2."""
    rows, dimension = int(point["n"]), int(point["d"])
    total = Fraction(str(point["epsilon"]))
    features = np.zeros((rows, dimension))
    features[np.arange(rows), np.arange(rows) % dimension] = 1.0
    best = np.full(dimension, 0.5 / math.sqrt(dimension))
    target = features @ best
    size: dict[str, Any] = {"data_norm": 1, "target_bound": 1, "bits": ReplayBits(label)}
    if variant == "before":
        release = adassp(features, target, epsilon=total, log_delta=LOG_DELTA, **size)
    elif variant == "after":
        half = total / 2
        release = pure_adassp(features, target, epsilon=half, extra_epsilon=half, **size)
    else:
        release = lattice_adassp(
            features,
            target,
            epsilon=total,
            mixing_weight=Fraction(1, rows**2),
            # the ball is about n/(2m√d) wide and the noise md/n, with m² about 180d/ε²
            resolution=max(rows, round((rows * float(total)) ** 2 / (360 * dimension**2.5))),
            **size,
        )
    residual = features @ (np.asarray(release.value) - best)
    return [float((residual**2).mean()) / 2]


def measure_queries(variant: str, point: Point, label: str) -> list[float]:
    """Return the largest error of a two-way marginal on correlated bits."""
    rows, dimension = int(point["n"]), int(point["d"])
    total = Fraction(str(point["epsilon"]))
    workload = Marginals(dimension=dimension, order=2)
    people = _correlated_bits(rows, dimension)
    truth, bits = workload.answers(people), ReplayBits(label)
    if variant == "before":
        rounds = paper_rounds(
            rows=rows,
            workload=workload,
            epsilon=total,
            log_delta=LOG_DELTA,
            failure=0.01,
        )
        weights = approximate_mwem(
            people,
            workload=workload,
            rounds=rounds,
            epsilon=total,
            log_delta=LOG_DELTA,
            bits=bits,
        ).value
        answers = workload.totals(weights) / weights.sum()
    elif variant == "after":
        half = total / 2
        sample = embedded_mwem(
            people, workload=workload, epsilon=half, extra_epsilon=half, bits=bits
        ).value
        answers = workload.answers(sample)
    else:
        weights = pure_mwem(people, workload=workload, epsilon=total, bits=bits).value
        answers = workload.totals(weights)
    return [float(np.abs(answers - truth).max())]


def _correlated_bits(rows: int, dimension: int) -> Floats:
    """Return made-up rows: neighboring columns agree nine times in ten, and ones are rare."""
    generator = np.random.default_rng(7)
    table = np.empty((rows, dimension))
    table[:, 0] = generator.random(rows) < 0.2
    for j in range(1, dimension):
        fresh = generator.random(rows) < 0.2
        table[:, j] = np.where(generator.random(rows) < 0.9, table[:, j - 1], fresh)
    return table


LOCAL_SENSITIVITY = Experiment(
    key="local_sensitivity",
    problem="Bounding the local sensitivity",
    label="thm: util_loc_release",
    quantity="l2 error",
    setting="a query of small constant local sensitivity in a cube of side 2²⁰",
    variants={
        "before": "the draft of Algorithm 11, (ε, 10⁻⁶)-DP",
        "after": "purified by Algorithm 1 (Algorithm 11)",
        "modern": "uniform mixing, no ε' (theory C4)",
    },
    formulas={
        "before": "√d (Δ_local + ln(1/δ)/ε)/ε",
        "after": "√d Δ_local/ε + d^1.5/ε²",
        "modern": "√d Δ_local/ε + d^1.5/ε²",
    },
    exponents={
        "before": {"d": 0.5, "epsilon": -2, "local": 1},
        "after": {"d": 1.5, "epsilon": -2, "local": 1},
        "modern": {"d": 1.5, "epsilon": -2, "local": 1},
    },
    base={"d": 4, "epsilon": 3, "local": 0.5},
    sweeps={
        "d": (1, 2, 4, 8, 16),
        "epsilon": (0.5, 1, 2, 4),
        "local": (1000, 3000, 10_000, 30_000),
    },
    quick={"d": (2, 8), "epsilon": (1, 4), "local": (1000, 10_000)},
    repeats=150,
    quick_repeats=15,
    measure=measure_local_sensitivity,
    axes={"local": "Δ_local"},
)

MODE = Experiment(
    key="mode",
    problem="Mode release",
    label="thm:mode",
    quantity="lead needed for 9 successes in 10",
    setting="one item repeated, in a universe of 2^b items (b = log₂|X|)",
    variants={
        "before": "distance to instability, (ε, 10⁻⁶)-DP",
        "after": "purified by Algorithm 2 (Algorithm 12)",
        "modern": "free mixing, no ε' (theory C5)",
    },
    formulas={"before": "ln(1/δ)/ε", "after": "ln|X|/ε", "modern": "ln|X|/ε"},
    exponents={
        "before": {"bits": 0, "epsilon": -1},
        "after": {"bits": 1, "epsilon": -1},
        "modern": {"bits": 1, "epsilon": -1},
    },
    base={"bits": 16, "epsilon": 1},
    sweeps={"bits": (4, 8, 16, 32, 40), "epsilon": (0.25, 0.5, 1, 2)},
    quick={"bits": (8, 32), "epsilon": (0.5, 2)},
    repeats=6,
    quick_repeats=1,
    measure=measure_mode,
    average="median",
    axes={"bits": "log₂|X|"},
)

REGRESSION = Experiment(
    key="linear_regression",
    problem="Linear regression",
    label="thm: util_adassp",
    quantity="excess mean squared error",
    setting="rows on the axes, so λ_min = 1/d; exact linear labels",
    variants={
        "before": "AdaSSP, (ε, 10⁻⁶)-DP",
        "after": "purified by Algorithm 1 (Algorithm 13)",
        "modern": "no eigenvalue query, lattice, no ε' (theory C6)",
    },
    formulas={
        "before": "d ln(1/δ)/(λ_min n²ε²), here d² ln(1/δ)/(n²ε²)",
        "after": "d²/(λ_min n²ε²), here d³/(n²ε²)",
        "modern": "d²/(λ_min n²ε²), here d³/(n²ε²)",
    },
    exponents={
        "before": {"n": -2, "d": 2, "epsilon": -2},
        "after": {"n": -2, "d": 3, "epsilon": -2},
        "modern": {"n": -2, "d": 3, "epsilon": -2},
    },
    base={"n": 200_000, "d": 5, "epsilon": 2},
    sweeps={
        "n": (25_000, 50_000, 100_000, 200_000, 400_000),
        "d": (2, 4, 8, 16),
        "epsilon": (0.5, 1, 2, 4),
    },
    quick={"n": (50_000, 200_000), "d": (2, 8), "epsilon": (1, 4)},
    repeats=32,
    quick_repeats=1,
    measure=measure_regression,
)

QUERIES = Experiment(
    key="query_release",
    problem="Query release",
    label="thm:query_pmw",
    quantity="largest error of an answer",
    setting="all two-way marginals of d correlated bits",
    variants={
        "before": "MWEM, (ε, 10⁻⁶)-DP (Algorithm 14)",
        "after": "sampled and purified (Algorithm 16)",
        "modern": "pure MWEM, no purification (theory C7)",
    },
    formulas={
        "before": "√ln k (d ln(1/δ))^¼/√(nε)",
        "after": "(d ln k)^⅓/(nε)^⅓",
        "modern": "(d ln k)^⅓/(nε)^⅓",
    },
    exponents={
        "before": {"n": -0.5, "d": 0.25, "epsilon": -0.5},
        "after": {"n": -1 / 3, "d": 1 / 3, "epsilon": -1 / 3},
        "modern": {"n": -1 / 3, "d": 1 / 3, "epsilon": -1 / 3},
    },
    base={"n": 10_000, "d": 8, "epsilon": 1},
    sweeps={
        "n": (1000, 3000, 10_000, 30_000, 100_000),
        "d": (4, 6, 8, 12),
        "epsilon": (0.25, 0.5, 1, 2, 4),
    },
    own_sweeps={"after/n": (1000, 10_000, 100_000, 1_000_000)},
    quick={"n": (1000, 5000), "d": (4, 8), "epsilon": (0.5, 2)},
    quick_base={"n": 3000},
    repeats=4,
    quick_repeats=1,
    measure=measure_queries,
)
