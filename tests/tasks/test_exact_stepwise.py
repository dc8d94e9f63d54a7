"""Stepwise feature selection by exact enumeration: the real code on all small neighbors.

A choice of one feature is walked on every path of its draws. Of two features the transcript is
taken (noisy fit, choice, noisy fit, choice), of which what is published is a function.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, partial
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from flint import arb, ctx

from mechanisms.exact_laws import cube_pmf
from purity import assert_pure
from sampling import replaced
from tasks import scripted
from tasks.related import unordered, unordered_pairs
from tasks.scripted import once
from zerodelta.audit.exact import (
    ExpRational,
    certainly_impure,
    permute_and_flip_law,
    rounded_laplace_pmf,
    rounded_laplace_tail,
    shifted,
)
from zerodelta.exact.logs import ball
from zerodelta.mechanisms.selection import PermuteAndFlip
from zerodelta.mechanisms.sum_noise import KNorm
from zerodelta.spine.plan import issue
from zerodelta.tasks.features import select_features
from zerodelta.testing import replayed

F = Fraction
Rows = tuple[int, ...]
"""Places in a universe of rows."""

Patches = Mapping[str, Any]


def selected(universe: Any, rows: Rows, size: int, epsilon: Fraction) -> Any:
    return replayed(scripted.ScriptedBits())(select_features)(
        np.array([universe[i] for i in rows], dtype=np.float64),
        target=-1,
        size=size,
        epsilon=epsilon,
        bounds=(-1, 1),
        target_bounds=(-1, 1),
        method="stepwise",
    ).value


PUBLIC: dict[str, Any] = {
    "features._STEPS": 1,
    "issue": once(issue),
}


# --- one feature of two --------------------------------------------------------------------------

PAIR = [(1, 1, 1), (1, -1, -1), (1, -1, 1)]
"""Two features and a target: the products with it are (1, 1), (-1, 1) and (1, -1)."""

COUNT, EPSILON, MOST = 4, F(6), 10
"""A noisy sum of the target beyond 10 fits it by more than 2, so all residuals are cut to 1."""


def noisy_sum(self: KNorm, sums: Any, bits: Any) -> Any:
    chances = shifted(
        partial(rounded_laplace_pmf, scale=self.scale),
        partial(rounded_laplace_tail, scale=self.scale),
        center=int(sums[0]),
        low=-MOST,
        high=MOST,
    )
    joined = {-math.inf: -MOST - 1, math.inf: MOST + 1}
    return np.array([scripted.draw({joined.get(k, k): p for k, p in chances.items()})])


DRAWN: dict[str, Any] = {
    **PUBLIC,
    "KNorm.apply": noisy_sum,
    "exponential_argmax": scripted.flipped,
}


def walked(some: Iterable[Rows], mutant: Patches) -> dict[Rows, dict[Any, ExpRational]]:
    """The exact law of (noisy sum, choice) for each dataset; and that the choice is published."""
    found: dict[Rows, dict[Any, ExpRational]] = {}
    with replaced(DRAWN), replaced(mutant):
        for rows in some:
            run = partial(selected, PAIR, rows, 1, EPSILON)
            found[rows] = {}
            for path, p, value in scripted.paths(run, exact=True):
                assert value == (path[-1],)
                found[rows][path] = p
    return found


WALKED = cache(lambda: walked(unordered(range(3), COUNT), {}))


def test_noisy_sums_that_are_joined_lead_to_the_same() -> None:
    run = partial(selected, PAIR, (0, 1, 2, 2), 1, EPSILON)
    with replaced(DRAWN):
        for sign in (-1, 1):
            near, far = (
                {path[-1]: p for path, p, _ in scripted.paths(run, (sign * noisy,), exact=True)}
                for noisy in (MOST + 1, 10**6)
            )
            assert near == far


def test_the_published_feature_is_pure_on_every_pair_of_neighbors() -> None:
    laws = {}
    for rows, mass in WALKED().items():
        laws[rows] = {
            feature: sum((p for path, p in mass.items() if path[-1] == feature), ExpRational.of(0))
            for feature in (0, 1)
        }
        assert laws[rows][0] + laws[rows][1] == 1
    pairs = unordered_pairs(range(3), COUNT)
    assert_pure(laws, pairs, epsilon=EPSILON, tight=EPSILON * F(2, 5))


def test_fit_and_choice_are_exactly_epsilon() -> None:
    pairs = unordered_pairs(range(3), COUNT)
    assert_pure(WALKED(), pairs, epsilon=EPSILON, tight=True)


def half(mechanism: Any) -> Any:
    """The mechanism for half the sensitivity."""

    class Half:
        @staticmethod
        def for_epsilon(*, sensitivity: Any, **options: Any) -> Any:
            return mechanism.for_epsilon(sensitivity=F(sensitivity) / 2, **options)

    return Half


WORST = (0, 0, 1, 2), (0, 0, 2, 2)


@pytest.mark.parametrize("mechanism", [KNorm, PermuteAndFlip])
def test_half_the_sensitivity_is_caught(mechanism: Any) -> None:
    laws = walked(WORST, {f"features.{mechanism.__name__}": half(mechanism)})
    one, two = WORST
    assert certainly_impure(laws[one], laws[two], EPSILON)


# --- two features of three -----------------------------------------------------------------------

TRIPLE = [(1, 1, 1, 1), (1, -1, -1, -1), (1, -1, 1, 1)]
"""Three features and a target."""

TWO = F(4)
FIRST = [-9, 9]
SECOND = [(9, 0, 1), (3, -2, -9)]
"""Noisy fits: the sum of the target, and the products of the feature that was chosen first."""


@dataclass
class Transcript:
    """Fixed answers of two steps, and what the mechanisms were handed."""

    fits: tuple[tuple[int, ...], ...]
    choices: tuple[int, int]
    sums: list[tuple[Fraction, tuple[int, ...]]] = field(default_factory=list)
    scores: list[tuple[Fraction, tuple[int, ...]]] = field(default_factory=list)

    def fit(self, mechanism: KNorm, sums: Any) -> Any:
        assert mechanism.norm == math.inf
        self.sums.append((mechanism.scale, tuple(int(x) for x in sums)))
        return np.array(self.fits[len(self.sums) - 1])

    def choose(self, mechanism: PermuteAndFlip, scores: Any) -> int:
        self.scores.append((mechanism.scale, tuple(int(x) for x in scores)))
        return self.choices[len(self.scores) - 1]

    def of(self, rows: Rows) -> Transcript:
        """Select two features of these rows along these answers."""
        with (
            replaced(PUBLIC),
            patch.object(KNorm, "apply", lambda m, s, _: self.fit(m, s)),
            patch.object(PermuteAndFlip, "select", lambda m, s, _: self.choose(m, s)),
        ):
            selected(TRIPLE, rows, 2, TWO)
        assert len(self.sums) == len(self.scores) == 2
        return self


@cache
def cube_mass(cell: tuple[int, ...], scale: Fraction) -> arb:
    """P(round(z) = cell) for exp(-max|z_i|/b) / (d! (2b)^d), from d dimensions to one.

    It is ∫ V(m) e^(-m/b)/b dm over d! (2b)^d, V(m) the volume of the cell within max|z_i| <= m: a
    product of pieces min(2m, 1), or m - |k| + 1/2 cut to [0, 1], polynomials between half-integers.
    """
    with ctx.workprec(scripted.BITS):
        total, most = arb(0), max(abs(k) for k in cell)
        for twice in range(2 * most + 1):
            low, high = F(twice, 2), F(twice + 1, 2)
            volume = [F(1)]
            for k in map(abs, cell):
                volume = _times(volume, _piece(k, low))
            total += _integral(volume, low, scale) - _integral(volume, high, scale)
        total += _integral([F(1)], F(2 * most + 1, 2), scale)
        return total / (math.factorial(len(cell)) * ball((2 * scale) ** len(cell)))


def _piece(k: int, low: Fraction) -> list[Fraction]:
    """The length of the cell of k within [-m, m], as a polynomial in m just above `low`."""
    if k == 0:
        return [F(0), F(2)] if low < F(1, 2) else [F(1)]
    start = k - F(1, 2)
    return [F(0)] if low < start else [-start, F(1)] if low < start + 1 else [F(1)]


def _times(one: list[Fraction], two: list[Fraction]) -> list[Fraction]:
    product = [F(0)] * (len(one) + len(two) - 1)
    for (i, x), (j, y) in itertools.product(enumerate(one), enumerate(two)):
        product[i + j] += x * y
    return product


def _integral(polynomial: list[Fraction], low: Fraction, scale: Fraction) -> arb:
    """∫ P(m) e^(-m/b)/b dm from low to ∞: e^(-low/b) Σ b^j P^(j)(low)."""
    total, left = F(0), list(polynomial)
    for power in range(len(polynomial)):
        total += scale**power * sum((c * low**i for i, c in enumerate(left)), F(0))
        left = [i * c for i, c in enumerate(left)][1:]
    return ball(total) * (-ball(low / scale)).exp()


def test_the_cube_law_is_a_law() -> None:
    scale = F(2, 3)
    cells = itertools.product(range(-9, 10), repeat=3)
    with ctx.workprec(scripted.BITS):
        laplace = rounded_laplace_pmf(3, scale=scale).ball()
        assert abs(cube_mass((3,), scale) - laplace) < 1e-100
        for cell in ((0, 0), (1, 0), (2, -2), (-1, 3)):
            assert abs(cube_mass(cell, scale) - cube_pmf(*cell, scale).ball()) < 1e-100
        whole = sum((cube_mass(tuple(sorted(map(abs, c))), F(1, 4)) for c in cells), arb(0))
        assert 1 - 1e-12 < whole < 1


def loss(one: Transcript, two: Transcript, fitting: Fraction, choosing: Fraction) -> arb:
    """ln of the ratio of the probabilities of this transcript."""
    total = arb(0)
    for noisy, (scale, mine), (_, other) in zip(one.fits, one.sums, two.sums, strict=True):
        p, q = (
            cube_mass(
                tuple(sorted(abs(a - b) for a, b in zip(noisy, z, strict=True))), scale * fitting
            )
            for z in (mine, other)
        )
        total += (p / q).log()
    for choice, (scale, mine), (_, other) in zip(one.choices, one.scores, two.scores, strict=True):
        p, q = (
            permute_and_flip_law(z, scale=scale * choosing)[choice].ball() for z in (mine, other)
        )
        total += (p / q).log()
    return total


@cache
def transcripts() -> list[dict[Rows, Transcript]]:
    answers = itertools.product(FIRST, SECOND, range(3), range(2))
    return [
        {rows: Transcript(((z,), v), (i, j)).of(rows) for rows in unordered(range(3), COUNT)}
        for z, v, i, j in answers
    ]


def largest_loss(fitting: Fraction, choosing: Fraction) -> arb:
    largest = arb(0)
    for said, (a, b) in itertools.product(transcripts(), unordered_pairs(range(3), COUNT)):
        for x, y in ((a, b), (b, a)):
            largest = largest.max(loss(said[x], said[y], fitting, choosing))
    return largest


def test_two_steps_are_pure_on_every_pair_of_neighbors() -> None:
    with ctx.workprec(scripted.BITS):
        found = largest_loss(F(1), F(1))
        assert found < ball(TWO)
        assert found > ball(TWO * F(3, 5))


@pytest.mark.slow
@pytest.mark.parametrize("choosing", [F(1), F(1, 2)], ids=["fits", "both"])
def test_half_the_noise_of_two_steps_is_caught(choosing: Fraction) -> None:
    with ctx.workprec(scripted.BITS):
        assert largest_loss(F(1, 2), choosing) > ball(TWO)
