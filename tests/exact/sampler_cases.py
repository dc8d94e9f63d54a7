"""Every sampler of integers with its exact law: one registry, one suite of checks (test_samplers).

A case draws with its scale multiplied by `factor`: 1 is the sampler, 0.98 and 1.02 are the mutants
that the tests must reject.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from completeness.noises import NOISES, AddedNoise
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
DRAWS = 1_000_000
"""In each chi-square test; a hundred times as many in the slow one."""


class Cells(Protocol):
    def cells(self, lo: int, hi: int) -> list[float]:
        """Return the floats P(Z < lo), P(lo), ..., P(hi), P(Z > hi) for a chi-square test."""


@dataclass(frozen=True, kw_only=True)
class Case:
    name: str
    draw: Callable[[Fraction, int, BitSource], Sample]
    law: Cells
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
    """Draw `size` vectors of scale 3 and return one number of each: a coordinate."""

    def draw(factor: Fraction, size: int, bits: BitSource) -> Sample:
        vectors = rounded_k_norm(
            norm=norm, dimension=dimension, scale=3 * factor, size=size, bits=bits
        )
        return np.asarray(vectors[:, -1])

    return draw


def _sup_of_cube(dimension: int) -> Callable[[Fraction, int, BitSource], Sample]:
    """Rounding is monotone and odd, so max|round(z)| = round(max|z|), and that is Gamma(d)."""

    def draw(factor: Fraction, size: int, bits: BitSource) -> Sample:
        vectors = rounded_k_norm(
            norm=math.inf, dimension=dimension, scale=3 * factor, size=size, bits=bits
        )
        return np.asarray(np.abs(vectors).max(axis=1))

    return draw


Draw = Callable[[Fraction, int, BitSource], Sample]


def _scaled(sampler: Callable[..., Sample], scale: Fraction | int, **more: Any) -> Draw:
    return lambda f, n, b: sampler(scale=scale * f, size=n, bits=b, **more)


def _gaussian(variance: Fraction | int) -> Draw:
    return lambda f, n, b: rounded_gaussian(variance=variance * f * f, size=n, bits=b)


HALF, THREE, SEVEN = Fraction(1, 2), Fraction(3), Fraction(7)
_MARGINAL = _marginal_three(THREE)
_LAWS: dict[str, tuple[Draw, Law, tuple[int, int]]] = {
    "Laplace, scale 1/2": (
        _scaled(rounded_laplace, HALF), probabilities.rounded_laplace(HALF), (-5, 5),
    ),
    "Laplace, scale 7": (
        _scaled(rounded_laplace, SEVEN), probabilities.rounded_laplace(SEVEN), (-80, 80),
    ),
    "discrete Laplace, scale 1/2": (
        _scaled(discrete_laplace, HALF), probabilities.DiscreteLaplace(HALF), (-5, 5),
    ),
    "discrete Laplace, scale 7": (
        _scaled(discrete_laplace, SEVEN), probabilities.DiscreteLaplace(SEVEN), (-80, 80),
    ),
    "exponential, scale 3": (
        _scaled(rounded_exponential, THREE), probabilities.rounded_exponential(THREE), (0, 40),
    ),
    "Gaussian, variance 1/2": (_gaussian(HALF), probabilities.rounded_gaussian(HALF), (-4, 4)),
    "Gaussian, variance 50": (
        _gaussian(50), probabilities.rounded_gaussian(Fraction(50)), (-36, 36),
    ),
    "Student-t, 1 degree, scale 3": (
        _scaled(rounded_student_t, THREE, degrees=1),
        probabilities.rounded_student_t(1, THREE),
        (-60, 60),
    ),
    "Student-t, 3 degrees, scale 7": (
        _scaled(rounded_student_t, SEVEN, degrees=3),
        probabilities.rounded_student_t(3, SEVEN),
        (-70, 70),
    ),
    "l1 K-norm, one of 3 coordinates": (
        _k_norm(1, 3), probabilities.rounded_laplace(THREE), (-30, 30),
    ),
    "l2 K-norm in one dimension": (
        _k_norm(2, 1), probabilities.rounded_laplace(THREE), (-30, 30),
    ),
    "l2 K-norm, one of 3 coordinates": (_k_norm(2, 3), _MARGINAL, (-35, 35)),
    "linf K-norm, one of 2 coordinates": (_k_norm(math.inf, 2), _MARGINAL, (-35, 35)),
    "linf K-norm, largest of 4 coordinates": (
        _sup_of_cube(4), probabilities.rounded_gamma(4, THREE), (0, 60),
    ),
}  # fmt: skip


@dataclass(frozen=True)
class _Formula:
    """The law of an entry of NOISES, summed up to where nothing is left."""

    noise: AddedNoise
    far: int = 400

    def cells(self, lo: int, hi: int) -> list[float]:
        below, inner, above = (
            [self.noise.probability(self.noise.exact, k) for k in part]
            for part in (range(-self.far, lo), range(lo, hi + 1), range(hi + 1, self.far + 1))
        )
        return [math.fsum(below), *inner, math.fsum(above)]


def _added(noise: AddedNoise) -> Case:
    law = _Formula(noise)
    likely = [
        k for k, p in enumerate(law.cells(-law.far, law.far)[1:-1], -law.far) if DRAWS * p > 20
    ]
    return Case(
        name=noise.label,
        draw=lambda f, n, b: noise.scaled(noise.exact["scale"] * f).noise(n, b),
        law=law,
        cells=(min(likely), max(likely)),
    )


CASES = [
    *(
        Case(name=name, draw=draw, law=law, cells=cells)
        for name, (draw, law, cells) in _LAWS.items()
    ),
    *map(_added, NOISES),
]
