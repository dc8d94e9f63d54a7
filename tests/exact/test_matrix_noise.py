"""Matrix Laplace noise: its law in one and two dimensions, its loss, and how it is rounded."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from purity import assert_pure
from reference.chi_square import goodness_of_fit
from zerodelta.audit.exact import rounded_laplace_pmf
from zerodelta.exact import noise as samplers
from zerodelta.exact.bits import ReplayBits
from zerodelta.exact.float_balls import FloatBalls
from zerodelta.exact.noise import ROOT, quantum_of, rounded_matrix_laplace
from zerodelta.exact.noise_tails import MatrixLaw
from zerodelta.mechanisms.sum_noise import DIAGONAL, OFF_DIAGONAL, MatrixLaplace
from zerodelta.privacy.parameters import Neighbors

SCALE = Fraction(7, 3)


def drawn(dimension: int, scale: Fraction, draws: int, label: str) -> Any:
    bits = ReplayBits(label)
    return np.array(
        [rounded_matrix_laplace(dimension=dimension, scale=scale, bits=bits) for _ in range(draws)]
    )


@pytest.mark.parametrize(("factor", "fits"), [(1, True), (Fraction(9, 10), False)])
def test_in_one_dimension_it_is_rounded_laplace_noise(factor: Fraction, fits: bool) -> None:
    found = drawn(1, SCALE * factor, 6000, "one")[:, 0]
    reach = range(-9, 10)
    expected = [float(rounded_laplace_pmf(k, scale=SCALE)) for k in reach]
    counts = [int(np.count_nonzero(found == k)) for k in reach]
    cells = [*counts, len(found) - sum(counts)], [*expected, 1 - sum(expected)]
    assert (goodness_of_fit(*cells) > 1e-3) is fits


# -- two dimensions: the density by a formula that shares nothing with the sampler -----------------


_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(80)


def density(trace: Any, gap: Any) -> Any:
    """The density of Z, up to a constant, by trace and distance of its eigenvalues, for a = 1.

    It is e^(-tr Z) times the integral of e^(-2 tr W) over W >= 0, W >= -Z. With W = t·1 + v, v in
    the plane of traceless matrices, both conditions are discs of v: of radius t around 0, and of
    radius t + tr Z/2 around a point at distance gap/2. They meet from some t on; t is that plus u².
    """
    trace, apart = np.asarray(trace, float)[..., None], np.asarray(gap, float)[..., None] / 2
    start = np.maximum(np.maximum(0.0, -trace / 2), (apart - trace / 2) / 2)
    u = 2 * (1 + _NODES)  # up to 4: e^(-4·16) is nothing
    t = start + u * u
    values = np.exp(-4 * t) * _lens(t, t + trace / 2, apart) * 2 * u
    return np.exp(-trace[..., 0]) * (values * _WEIGHTS * 2).sum(axis=-1)


def _lens(r: Any, s: Any, apart: Any) -> Any:
    """The area that two discs have in common."""
    with np.errstate(all="ignore"):
        x = np.clip((apart**2 + r * r - s * s) / (2 * apart * r), -1, 1)
        y = np.clip((apart**2 + s * s - r * r) / (2 * apart * s), -1, 1)
        corner = (r + s - apart) * (apart + r - s) * (apart - r + s) * (apart + r + s)
        lens = r * r * np.arccos(x) + s * s * np.arccos(y) - np.sqrt(np.maximum(corner, 0)) / 2
    inside = apart <= np.abs(r - s)
    return np.where(inside, math.pi * np.minimum(r, s) ** 2, np.where(r + s <= apart, 0.0, lens))


def log_density(matrices: Any) -> Any:
    values = np.linalg.eigvalsh(matrices)
    return np.log(density(values.sum(axis=-1), values[..., 1] - values[..., 0]))


GRID = np.array([[[a, c], [c, b]] for a, b, c in itertools.product((-3, -1, 0, 0.5, 2), repeat=3)])
SQUARES = np.array(
    [np.outer(row, row) for row in itertools.product((-1.0, -0.5, 0.0, 1.0), repeat=2)]
)


@pytest.mark.parametrize("relation", [Neighbors.ADD_REMOVE, Neighbors.REPLACE])
def test_no_pair_of_rows_loses_more_than_the_theorem_says(relation: Neighbors) -> None:
    moves = SQUARES
    if relation is Neighbors.REPLACE:
        moves = np.array([p - q for p, q in itertools.permutations(SQUARES, 2)])
    largest = max(np.trace(square) for square in SQUARES)
    before, after = log_density(GRID), log_density(GRID[:, None] + moves)
    loss = float(np.abs(after - before[:, None]).max())
    epsilon = float(
        MatrixLaplace(
            dimension=2, squared_length=Fraction(largest), scale=Fraction(1), neighbors=relation
        ).epsilon
    )
    assert loss <= epsilon + 1e-7, "beyond the error of the quadrature"
    assert loss > epsilon * 0.9, "half of the noise, or s for s², would lose more"


@pytest.mark.parametrize(
    ("degrees", "matrices", "fits"), [(3, 2, True), (2, 2, False), (3, 1, False)]
)
def test_draws_in_two_dimensions_have_that_density(degrees: int, matrices: int, fits: bool) -> None:
    """By the trace and by the distance of the eigenvalues; other Wishart laws are told apart."""
    rng = np.random.default_rng(1)
    if fits:
        fine = drawn(2, Fraction(10**6), 6000, "two") / 1e6
        found = np.stack([fine[:, 0], fine[:, 1] / float(ROOT), fine[:, 2]], axis=1)
    else:
        g = rng.normal(size=(6000, matrices, 2, degrees))
        w = g @ g.transpose(0, 1, 3, 2) / 2
        z = w[:, 0] - w[:, 1] if matrices == 2 else w[:, 0]
        found = np.stack([z[:, 0, 0], z[:, 0, 1], z[:, 1, 1]], axis=1)
    trace = found[:, 0] + found[:, 2]
    apart = np.hypot(found[:, 0] - found[:, 2], 2 * found[:, 1])
    edges: tuple[list[float], list[float]] = ([-40, -2, -0.5, 0.5, 2, 40], [0, 1, 2, 4, 40])
    counts = np.histogram2d(trace, apart, bins=edges)[0].ravel()
    cells = itertools.product(itertools.pairwise(edges[0]), itertools.pairwise(edges[1]))
    wanted = np.array([_mass(traces, gaps) for traces, gaps in cells])
    assert (goodness_of_fit([int(x) for x in counts], list(wanted / wanted.sum())) > 1e-3) is fits


def _mass(traces: tuple[float, float], gaps: tuple[float, float]) -> float:
    """∫ of the density over a cell; matrices with these eigenvalues have volume ∝ gap."""
    (ta, tb), (ga, gb) = ((max(a, -14.0), min(b, 14.0)) for a, b in (traces, gaps))
    t, w = np.polynomial.legendre.leggauss(40)
    trace, gap = (ta + tb + (tb - ta) * t) / 2, (ga + gb + (gb - ga) * t) / 2
    values = density(trace[:, None], gap[None, :]) * gap
    return float(w @ values @ w) * (tb - ta) * (gb - ga)


# -- rounding, and the joint law -------------------------------------------------------------------


def test_floats_and_arb_round_the_same_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    noise = MatrixLaplace.for_epsilon(epsilon=1, dimension=4, squared_length=4 << 22)
    sums = np.arange(10) * 1_000_003
    fast = [noise.apply(sums, ReplayBits(str(label))).tolist() for label in range(10)]
    nearest = FloatBalls.nearest

    def undecided(self: FloatBalls) -> Any:
        integers, decided = nearest(self)
        return integers, np.zeros_like(decided)

    monkeypatch.setattr(FloatBalls, "nearest", undecided)
    slow = [noise.apply(sums, ReplayBits(str(label))).tolist() for label in range(10)]
    assert fast == slow


def test_an_undecided_entry_is_extended_with_its_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """A center that puts the first entry on a boundary for all that 64 bits of each line say."""
    bits = ReplayBits("boundary")
    words = bits.words(2 * 2 * 3).reshape(2, 6)
    lines = samplers._Lines(words, bits)
    value = lines.nearest(0, 1, factor=Fraction(1 << 40), shift=Fraction(0))
    again = samplers._Lines(words, bits)
    assert again.nearest(1, 0, factor=Fraction(1 << 40), shift=Fraction(0)) == value
    deep = Fraction(1 << 90)
    first = lines.nearest(0, 1, factor=deep, shift=Fraction(0))
    assert lines.nearest(0, 1, factor=deep, shift=Fraction(0)) == first
    assert abs(first / deep - value / (1 << 40)) < Fraction(1, 1 << 39)


def test_the_radius_covers_what_words_leave_open() -> None:
    """Both ends of a line of short words: the products of the two differ by less than radii say."""
    words = np.full((2, 6), 3 << 40, dtype=np.uint64)
    found = [samplers._products(words + np.uint64(step)) for step in (0, 1)]
    apart = np.abs(found[0].middle - found[1].middle)
    assert (apart <= found[0].radius + found[1].radius).all()
    assert (apart > 2.0**-50).any(), "the words leave something open"


def test_a_radius_covers_sums_between_the_integers() -> None:
    """A sum at a half is rounded by up to 1/2, in either direction, after the noise."""
    law, a = MatrixLaw(scale=Fraction(3, 10), dimension=1), Fraction(1, 4)
    center, draws = Fraction(1, 2), 4000
    bits, radius = ReplayBits("between"), law.integer_radius(a)
    found = [
        rounded_matrix_laplace(dimension=1, scale=law.scale, center=[center], bits=bits)[0]
        for _ in range(draws)
    ]
    outside = sum(abs(int(k) - center) > radius for k in found)
    assert outside <= a * draws + 4 * math.sqrt(draws * float(a))
    assert law.integer_radius(a) >= 1


def test_entries_have_their_variances_and_are_uncorrelated() -> None:
    d = 3
    found = drawn(d, Fraction(1000), 3000, "joint") / 1000
    covariance = np.cov(found.T)
    assert np.diag(covariance) == pytest.approx([d + 1] * 6, rel=0.15)
    off = covariance[~np.eye(6, dtype=bool)]
    assert np.abs(off).max() < 5 * (d + 1) / math.sqrt(3000)


def test_a_center_is_added_before_rounding() -> None:
    tiny = Fraction(1, 10**9)
    center = [Fraction(1, 4), Fraction(3, 4), Fraction(9, 10)]
    draw = rounded_matrix_laplace(dimension=2, scale=tiny, center=center, bits=ReplayBits("center"))
    assert draw.tolist() == [0, 1, 1]


@pytest.mark.parametrize("exponent", [0, 5, 12, 13, 40, 200])
def test_noise_is_thousands_of_quanta(exponent: int) -> None:
    quantum = quantum_of(Fraction(1 << exponent))
    assert quantum == max(1, 1 << max(0, exponent - 12))


def test_sums_of_any_size_are_published(monkeypatch: pytest.MonkeyPatch) -> None:
    """The published number times the quantum is within a quantum and the noise of the sum."""
    noise = MatrixLaplace.for_epsilon(epsilon=1, dimension=2, squared_length=10)
    for end in (-(2**63), -1, 0, 2**63 - 1, 2**80):
        sums = np.array([end, 0, -end], dtype=object)
        published = noise.apply(sums, ReplayBits("ends"))
        reach = 10**4 * float(noise.scale)
        assert all(
            abs(int(p) * noise.quantum - int(s)) < reach
            for p, s in zip(published, sums, strict=True)
        )


@pytest.mark.parametrize("exponent", [4, 40])
def test_what_is_published_is_the_sum_and_noise_of_its_scale(exponent: int) -> None:
    """In units of the quantum, whole and fractional: the mean square is (d+1)·(70b)² everywhere."""
    noise = MatrixLaplace.for_epsilon(epsilon=1, dimension=2, squared_length=3 << exponent)
    sums, bits, draws = np.array([-(10**15) - 7, 3, 10**20]), ReplayBits("published"), 3000
    found = [noise.apply(sums, bits).astype(object) for _ in range(draws)]
    published = np.array(found) * noise.quantum - sums
    spread = published.astype(float) / float(DIAGONAL * noise.scale)
    assert (spread**2).mean(axis=0) == pytest.approx([3, 3, 3], rel=0.2)
    assert np.abs(spread.mean(axis=0)).max() < 5 * math.sqrt(3 / draws)


def test_the_weight_is_about_the_root_of_two() -> None:
    assert Fraction(OFF_DIAGONAL, DIAGONAL) == ROOT
    assert 2 < ROOT**2 < 2 * (1 + Fraction(1, 10_000)) ** 2


# -- tails of linear forms -------------------------------------------------------------------------


@pytest.mark.parametrize("width", [2, 3, 6, 21])
@pytest.mark.parametrize("a", [Fraction(1, 3), Fraction(1, 20), Fraction(1, 1000)])
def test_no_form_exceeds_its_reach_more_often(width: int, a: Fraction) -> None:
    law = MatrixLaw(scale=Fraction(1), dimension=width)
    reach, rng, draws = float(law.reach(a)), np.random.default_rng(width), 40_000
    spectra = [[1.0], [0.5**0.5, -(0.5**0.5)], [width**-0.5] * width]
    fractions = []
    for spectrum in spectra:
        chi = rng.chisquare(width + 1, size=(2, draws, len(spectrum)))
        form = ((chi[0] - chi[1]) / 2 * spectrum).sum(axis=1)
        fractions.append(np.mean(np.abs(form) > reach))
    slack = 4 * math.sqrt(float(a) / draws)
    assert max(fractions) < float(a) + slack
    assert max(fractions) > 0.6 * float(a) - slack, "the bound is far from what is needed"


def test_the_bound_of_all_forms_is_at_least_the_tail_of_an_entry() -> None:
    law = MatrixLaw(scale=Fraction(3), dimension=5)
    for t, excess in ((9, 0.1), (15, 0.01), (30, 1e-5), (60, 1e-9)):
        of_entry = float(law._diagonal.tail(Fraction(t)).mid())
        assert of_entry <= float(law.tail(Fraction(t)).mid()) <= of_entry * 1.001 + excess


def test_a_rounded_entry_is_pure_on_small_integers() -> None:
    """One column of integers k <= 2: the released k² + noise is Laplace noise of scale s²/ε."""
    epsilon = Fraction(1)
    noise = MatrixLaplace.for_epsilon(
        epsilon=epsilon, dimension=1, squared_length=4, neighbors=Neighbors.ADD_REMOVE
    )
    scale = noise.scale * DIAGONAL

    def law(total: int) -> dict[int, Any]:
        return {k: rounded_laplace_pmf(k - DIAGONAL * total, scale=scale) for k in range(-300, 600)}

    pairs = [(0, square) for square in (1, 4)]
    assert_pure(law, pairs, epsilon=epsilon, tight=epsilon * Fraction(999, 1000))
