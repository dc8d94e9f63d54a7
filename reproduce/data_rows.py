"""Measure rows 4 and 5 of Table 1: bounding the local sensitivity, and the mode.

The predictions are the errors of the noise that a run's certificate states. They leave out the
mixing branch, which has a probability below 10⁻⁴ and is not met in these runs.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
from scipy.integrate import quad
from scipy.special import erfcx

from reproduce.erm_rows import LOG_DELTA
from reproduce.rates import Experiment, Point
from reproduce.reference import generator_of, noisy_histogram_finds, noisy_histogram_success
from zerodelta.exact.bits import BitSource, ReplayBits
from zerodelta.mechanisms.noisy_test import ClearLead, noisy_test
from zerodelta.mechanisms.stable_queries import CustomQuery
from zerodelta.paper.algorithm_09_10_11 import (
    paper_threshold,
    pure_bounded_local_sensitivity,
)
from zerodelta.paper.algorithm_12_13 import embedded_mode, mode, stable_mode
from zerodelta.privacy.release import Release
from zerodelta.privacy.steps import Step
from zerodelta.spaces import Box, Finite
from zerodelta.tasks.robust import bounded_local_sensitivity
from zerodelta.testing import replayed

__all__ = ["LOCAL_SENSITIVITY", "MODE", "stated"]

_WIDTH = 1 << 20
_FINENESS = 16
"""Cells to a unit: rounding is small beside the noise."""

_RUNS, _SUCCESSES = 40, 36


def stated(step: Step, name: str) -> float:
    """Return a number of a certificate's step."""
    return float(Fraction(step.numbers[name]))


def _bounded_release(variant: str, point: Point, bits: BitSource) -> tuple[CustomQuery, Release]:
    """Release the center of a box by a query of constant local sensitivity."""
    dimension, total = int(point["d"]), Fraction(str(point["epsilon"]))
    box, local = Box(0, _WIDTH, dimension=dimension), float(point["local"])
    center = box.middle()
    query = CustomQuery(
        function=lambda rows: center,
        grid=box.grid(_WIDTH * _FINENESS + 1),
        local=lambda rows: local,
        change=1,
    )
    if variant == "modern":
        return query, replayed(bits)(bounded_local_sensitivity)(
            [0], query=query, epsilon=total, mixing_probability="1e-6"
        )
    share = total / (2 if variant == "before" else 3)
    weight = min(Fraction(1, 100), Fraction(1, _WIDTH) / share**2)
    log_delta = math.log(2 * weight) - dimension * math.log(16 * dimension * _WIDTH * share)
    # the draft of Algorithm 11 is what comes out when purification does next to nothing
    vanishing = variant == "before"
    return query, replayed(bits)(pure_bounded_local_sensitivity)(
        [0],
        query=query,
        epsilon=2 * share + (10**12 if vanishing else share),
        base_epsilon=share,
        log_delta=LOG_DELTA if vanishing else log_delta,
        mixing_weight=Fraction(1, 10**12) if vanishing else weight,
    )


def measure_local_sensitivity(variant: str, point: Point, label: str) -> list[float]:
    """Return the l2 error for a query of constant local sensitivity at the center of a box."""
    query, release = _bounded_release(variant, point, ReplayBits(label))
    return [float(np.linalg.norm(release.value - query.grid.box.middle()))]


def predict_local_sensitivity(variant: str, point: Point) -> float:
    """Return E‖noise‖ for Laplace noise of scale (local sensitivity + margin)/ε₂.

    The bound is the local sensitivity in cells plus the margin of the certificate plus centered
    noise, so that is its mean. Algorithm 1's own noise is added in quadrature.
    """
    query, release = _bounded_release(variant, point, ReplayBits("prediction"))
    first, *others = release.certificate.steps
    cells = query.local_sensitivity([0]) + stated(first, "threshold")
    scale = cells / stated(first, "release_epsilon")
    dimension = int(point["d"])
    # what the certificate says of Algorithm 1 is in cells, too
    added = sum(2 * dimension * stated(step, "scale") ** 2 for step in others)
    return math.hypot(laplace_length(dimension) * scale, math.sqrt(added)) / _FINENESS


@cache
def laplace_length(dimension: int) -> float:
    """Return E‖Z‖₂ for d independent Laplace(1) numbers.

    E√S = ∫ (1 - E e^(-sS)) s^(-3/2) ds/(2√π), and E e^(-sZ²) = √π/(2√s)·erfcx(1/(2√s)).

    >>> round(laplace_length(1), 6)
    1.0
    """

    def integrand(u: float) -> float:  # s = u²
        kept = math.sqrt(math.pi) / (2 * u) * erfcx(1 / (2 * u))
        return float(1 - kept**dimension) / u**2

    return float(sum(quad(integrand, *ends, limit=400)[0] for ends in ((0, 1), (1, math.inf)))) / (
        math.sqrt(math.pi)
    )


def measure_mode(variant: str, point: Point, label: str) -> list[float]:
    """Return the smallest lead with which 36 of 40 releases are the mode, by bisection."""
    low, high = 0, 2
    while not _mode_found(variant, point, high, f"{label}/{high}"):
        low, high = high, 2 * high
    while high - low > max(1, low // 200):
        middle = (low + high) // 2
        if _mode_found(variant, point, middle, f"{label}/{middle}"):
            high = middle
        else:
            low = middle
    return [float(high)]


def _mode_found(variant: str, point: Point, lead: int, label: str) -> bool:
    size, total = 2 ** int(point["bits"]), Fraction(str(point["epsilon"]))
    space, item, bits = Finite(size), size // 2, ReplayBits(label)
    generator, items, misses = generator_of(label), np.full(lead, item), 0
    for _ in range(_RUNS):
        if variant == "before":
            threshold = paper_threshold(base_epsilon=total, log_delta=LOG_DELTA)
            drawn, distance = stable_mode(items, space)
            passed = noisy_test(distance, epsilon=total, threshold=threshold, bits=bits)
            value: Any = drawn if passed else None
        elif variant == "after":
            value = replayed(bits)(embedded_mode)(items, universe=space, epsilon=total).value
        elif variant == "modern":
            value = replayed(bits)(mode)(items, universe=space, epsilon=total).value
        else:
            size_and_noise: Any = {"size": size, "epsilon": float(total), "generator": generator}
            value = item if noisy_histogram_finds(lead, **size_and_noise) else None
        misses += value != item
        if misses > _RUNS - _SUCCESSES:
            return False
    return True


def predict_mode(variant: str, point: Point) -> float:
    """Return the smallest lead for which the probability of the mode is 9/10 or more."""
    size, total = 2 ** int(point["bits"]), Fraction(str(point["epsilon"]))
    wanted = _SUCCESSES / _RUNS
    if variant == "laplace":
        return _smallest(
            lambda lead: noisy_histogram_success(lead, size=size, epsilon=float(total)) >= wanted
        )
    unspoiled = 1.0
    if variant == "before":
        threshold = paper_threshold(base_epsilon=total, log_delta=LOG_DELTA)
        test = ClearLead(items=size, epsilon=total, threshold=threshold)
    elif variant == "modern":
        test = ClearLead.for_epsilon(epsilon=total, items=size)
    else:
        released = replayed("x")(embedded_mode)([0], universe=Finite(size), epsilon=total)
        first, second = released.certificate.steps
        test = ClearLead(
            items=size,
            epsilon=Fraction(first.numbers["test_epsilon"]),
            threshold=Fraction(first.numbers["threshold"]),
        )
        flip, length = math.exp(-1 / (2 * stated(second, "scale"))) / 2, int(point["bits"])
        unspoiled = (1 - stated(second, "weight") * (1 - 1 / size)) * (1 - flip) ** length
    return _smallest(lambda lead: (1 - test.fails(lead)) * unspoiled >= wanted)


def _smallest(good: Any) -> float:
    """Return the smallest lead that is good; leads that are larger are good, too."""
    low, high = 0, 2
    while not good(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if good(middle) else (middle, high)
    return float(high)


LOCAL_SENSITIVITY = Experiment(
    key="local_sensitivity",
    problem="Bounding the local sensitivity",
    label="thm: util_loc_release",
    quantity="l2 error",
    setting=(
        "a query of constant local sensitivity (in l1) in a cube of side 2²⁰; it is small where d "
        "or ε varies, so that the second term of the rate counts, and large where it varies itself"
    ),
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
    predicted=predict_local_sensitivity,
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
        "laplace": "Laplace histogram, pure (reference code)",
    },
    formulas={
        "before": "ln(1/δ)/ε",
        "after": "ln|X|/ε",
        "modern": "ln|X|/ε",
        "laplace": "ln|X|/ε",
    },
    exponents={
        "before": {"bits": 0, "epsilon": -1},
        "after": {"bits": 1, "epsilon": -1},
        "modern": {"bits": 1, "epsilon": -1},
        "laplace": {"bits": 1, "epsilon": -1},
    },
    base={"bits": 16, "epsilon": 1},
    sweeps={"bits": (4, 8, 16, 32, 40), "epsilon": (0.25, 0.5, 1, 2)},
    quick={"bits": (8, 32), "epsilon": (0.5, 2)},
    repeats=12,
    quick_repeats=1,
    measure=measure_mode,
    predicted=predict_mode,
    axes={"bits": "log₂|X|"},
)
