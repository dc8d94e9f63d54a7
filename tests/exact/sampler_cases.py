"""Every sampler of integers with its exact law: one registry, one suite of checks (test_samplers).

A case draws with its scale multiplied by `factor`: 1 is the sampler, 0.98 and 1.02 are the mutants
that the tests must reject.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from reference import probabilities
from reference.chi_square import goodness_of_fit
from reference.intervals import Interval
from reference.probabilities import Law, RoundedLaw, exp_rational
from zerodelta.exact.bits import BitSource
from zerodelta.exact.noise import (
    discrete_laplace,
    rounded_exponential,
    rounded_gaussian,
    rounded_k_norm,
    rounded_laplace,
    rounded_student_t,
)

Sample = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Case:
    name: str
    draw: Callable[[Fraction, int, BitSource], Sample]
    law: Law
    cells: tuple[int, int]


def p_value(case: Case, sample: Sample) -> float:
    return p_value_of_counts(case, tally(case, sample))


def tally(case: Case, sample: Sample) -> npt.NDArray[np.int64]:
    low, high = case.cells
    clipped = np.clip(sample, low - 1, high + 1) - (low - 1)
    return np.bincount(clipped.astype(np.int64), minlength=high - low + 3)


def p_value_of_counts(case: Case, counts: npt.NDArray[np.int64]) -> float:
    low, high = case.cells
    return goodness_of_fit(counts.tolist(), case.law.cells(low, high))


def _marginal_three(scale: Fraction) -> RoundedLaw:
    """One coordinate of l2 K-norm noise in R³ (and of linf noise in R²).

    Its density is (1 + |x|/b) e^(-|x|/b) / (4b), so P(X > x) = (2 + x/b) e^(-x/b) / 4 for x >= 0.
    """

    def cdf(x: Fraction) -> Interval:
        ratio = abs(x) / scale
        tail = exp_rational(-ratio) * (2 + ratio) / 4
        return tail if x < 0 else 1 - tail

    return RoundedLaw(cdf)


def _k_norm(norm: float, dimension: int) -> Callable[[Fraction, int, BitSource], Sample]:
    """Draw `size` vectors and return one number of each: a coordinate."""

    def draw(scale: Fraction, size: int, bits: BitSource) -> Sample:
        vectors = rounded_k_norm(norm=norm, dimension=dimension, scale=scale, size=size, bits=bits)
        return np.asarray(vectors[:, -1])

    return draw


def _sup_of_cube(dimension: int) -> Callable[[Fraction, int, BitSource], Sample]:
    """Rounding is monotone and odd, so max|round(z)| = round(max|z|), and that is Gamma(d)."""

    def draw(scale: Fraction, size: int, bits: BitSource) -> Sample:
        vectors = rounded_k_norm(
            norm=math.inf, dimension=dimension, scale=scale, size=size, bits=bits
        )
        return np.asarray(np.abs(vectors).max(axis=1))

    return draw


def _cases() -> list[Case]:
    half, three, seven = Fraction(1, 2), Fraction(3), Fraction(7)
    return [
        Case(
            name="Laplace, scale 1/2",
            draw=lambda f, n, b: rounded_laplace(scale=half * f, size=n, bits=b),
            law=probabilities.rounded_laplace(half),
            cells=(-5, 5),
        ),
        Case(
            name="Laplace, scale 7",
            draw=lambda f, n, b: rounded_laplace(scale=seven * f, size=n, bits=b),
            law=probabilities.rounded_laplace(seven),
            cells=(-80, 80),
        ),
        Case(
            name="discrete Laplace, scale 1/2",
            draw=lambda f, n, b: discrete_laplace(scale=half * f, size=n, bits=b),
            law=probabilities.DiscreteLaplace(half),
            cells=(-5, 5),
        ),
        Case(
            name="discrete Laplace, scale 7",
            draw=lambda f, n, b: discrete_laplace(scale=seven * f, size=n, bits=b),
            law=probabilities.DiscreteLaplace(seven),
            cells=(-80, 80),
        ),
        Case(
            name="exponential, scale 3",
            draw=lambda f, n, b: rounded_exponential(scale=three * f, size=n, bits=b),
            law=probabilities.rounded_exponential(three),
            cells=(0, 40),
        ),
        Case(
            name="Gaussian, variance 1/2",
            draw=lambda f, n, b: rounded_gaussian(variance=half * f * f, size=n, bits=b),
            law=probabilities.rounded_gaussian(half),
            cells=(-4, 4),
        ),
        Case(
            name="Gaussian, variance 50",
            draw=lambda f, n, b: rounded_gaussian(variance=50 * f * f, size=n, bits=b),
            law=probabilities.rounded_gaussian(Fraction(50)),
            cells=(-36, 36),
        ),
        Case(
            name="Student-t, 1 degree, scale 3",
            draw=lambda f, n, b: rounded_student_t(degrees=1, scale=three * f, size=n, bits=b),
            law=probabilities.rounded_student_t(1, three),
            cells=(-60, 60),
        ),
        Case(
            name="Student-t, 3 degrees, scale 7",
            draw=lambda f, n, b: rounded_student_t(degrees=3, scale=seven * f, size=n, bits=b),
            law=probabilities.rounded_student_t(3, seven),
            cells=(-70, 70),
        ),
        Case(
            name="l1 K-norm, one of 3 coordinates",
            draw=lambda f, n, b: _k_norm(1, 3)(three * f, n, b),
            law=probabilities.rounded_laplace(three),
            cells=(-30, 30),
        ),
        Case(
            name="l2 K-norm in one dimension",
            draw=lambda f, n, b: _k_norm(2, 1)(three * f, n, b),
            law=probabilities.rounded_laplace(three),
            cells=(-30, 30),
        ),
        Case(
            name="l2 K-norm, one of 3 coordinates",
            draw=lambda f, n, b: _k_norm(2, 3)(three * f, n, b),
            law=_marginal_three(three),
            cells=(-35, 35),
        ),
        Case(
            name="linf K-norm, one of 2 coordinates",
            draw=lambda f, n, b: _k_norm(math.inf, 2)(three * f, n, b),
            law=_marginal_three(three),
            cells=(-35, 35),
        ),
        Case(
            name="linf K-norm, largest of 4 coordinates",
            draw=lambda f, n, b: _sup_of_cube(4)(three * f, n, b),
            law=probabilities.rounded_gamma(4, three),
            cells=(0, 60),
        ),
    ]


CASES = _cases()
