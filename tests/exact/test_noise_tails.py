"""Tails of noise laws against other formulas for them, and quantiles that are the least."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from flint import acb, arb
from scipy.integrate import quad
from scipy.special import gammaincc

from zerodelta.exact.logs import precision
from zerodelta.exact.noise_tails import NOISE_LAWS, Law

TWENTIETH = Fraction(1, 20)


def law(family: str, scale: Fraction | int, dimension: int = 1, norm: float = 1.0) -> Law:
    return NOISE_LAWS[family, norm](scale=Fraction(scale), dimension=dimension)


def rounded_mass(scale: Fraction, k: int) -> arb:
    """P(|round(Laplace)| <= k), one integer after the other (theory R(vi))."""
    half = arb(1) / (2 * arb(scale.numerator) / scale.denominator)
    sinh = half.sinh()
    return (
        1 - (-half).exp() + sum((2 * sinh * (-2 * half * i).exp() for i in range(1, k + 1)), arb(0))
    )


def discrete_mass(scale: Fraction, k: int) -> arb:
    """P(|z| <= k) of discrete Laplace noise, one integer after the other."""
    q = (-arb(scale.denominator) / scale.numerator).exp()
    return (1 - q) / (1 + q) * (1 + sum((2 * q**i for i in range(1, k + 1)), arb(0)))


@pytest.mark.parametrize(
    ("family", "mass"), [("laplace", rounded_mass), ("geometric", discrete_mass)]
)
@pytest.mark.parametrize(
    "scale", [Fraction(1, 10), Fraction(1), Fraction(2), Fraction(7, 3), Fraction(40)]
)
@pytest.mark.parametrize("level", [Fraction(1, 2), Fraction(19, 20), Fraction(999, 1000)])
def test_the_interval_of_an_integer_is_the_smallest_that_covers(
    family: str, mass: Callable[[Fraction, int], arb], scale: Fraction, level: Fraction
) -> None:
    noise = law(family, scale)
    with precision(128):
        k = noise.integer_radius(1 - level)
        wanted = arb(level.numerator) / level.denominator
        assert mass(scale, k) >= wanted
        assert k == 0 or mass(scale, k - 1) < wanted
        if family == "geometric":
            assert noise.tail(Fraction(k)).overlaps(1 - mass(scale, k))
            assert noise.tail(Fraction(-1)) == 1
    if family == "laplace":
        assert k == max(0, math.ceil(float(scale) * math.log(1 / (1 - level)) - 0.5))


def test_coverage_at_small_scales_is_what_the_theory_says() -> None:
    covers = [
        float(rounded_mass(Fraction(b), law("laplace", b).integer_radius(TWENTIETH)))
        for b in (1, 2)
    ]
    assert [round(each, 3) for each in covers] == [0.970, 0.961]


@pytest.mark.parametrize("scale", [Fraction(1, 8), Fraction(1), Fraction(2), Fraction(9, 2)])
@pytest.mark.parametrize("form", [(1, 1), (1, -1), (1, Fraction(2, 3)), (3, 1)], ids=str)
def test_forms_of_discrete_laplace_noise_are_covered(
    scale: Fraction, form: tuple[Fraction, ...]
) -> None:
    """All pairs of integers far into the tails; from scale 1 on, rounding costs little."""
    coefficients = tuple(map(Fraction, form))
    reach = math.ceil(40 * scale) + 2
    z = np.arange(-reach, reach + 1)
    mass = np.exp(-np.abs(z) / float(scale))
    mass = np.outer(mass, mass) / mass.sum() ** 2
    sizes = np.abs(float(form[0]) * z[:, None] + float(form[1]) * z[None, :])
    radius = float(law("geometric", scale).form_radius(coefficients, TWENTIETH))
    assert mass[sizes <= radius].sum() >= 0.95
    narrow = radius - float(sum(map(abs, coefficients)) + scale / 10)
    assert scale < 1 or mass[sizes <= narrow].sum() < 0.95
    lines = np.array([[float(c) for c in coefficients]] * 2)
    half = float(sum(map(abs, coefficients))) / 2
    near = (radius - half) * np.array([1.003, 0.99])
    assert law("geometric", scale).exceeded(lines, near, TWENTIETH).tolist() == [
        True,
        False,
    ]


@pytest.mark.parametrize("p", [1, 2, 3, 6, 9])
def test_a_count_has_the_tail_of_its_simplices(p: int) -> None:
    """Σ_k C(p,k)²/C(2p,p) · k/p · E(1 - t/G)₊^k, each mean as e^(-t) times a polynomial."""
    for t in (Fraction(1, 3), Fraction(4), Fraction(11)):
        total = Fraction(0)
        for k in range(1, p + 1):
            mean = sum(
                math.comb(p - k, i) * t ** (p - k - i) * math.factorial(k + i)
                for i in range(p - k + 1)
            )
            weight = Fraction(math.comb(p, k) ** 2 * k, math.comb(2 * p, p) * p)
            total += weight * mean / math.factorial(p)
        exact = (
            2 * arb(total.numerator) / total.denominator * (-arb(t.numerator) / t.denominator).exp()
        )
        assert law("counts", 3, p).tail(3 * t).overlaps(exact)


@pytest.mark.parametrize("d", [1, 2, 5])
def test_a_coordinate_in_a_cube_has_the_tail_of_its_integral(d: int) -> None:
    """E(1 - t/G)₊ for G ~ Gamma(d+1), integrated."""
    for t in (Fraction(1, 2), Fraction(5)):

        def density(g: acb, _: bool, t: Fraction = t) -> acb:
            return (
                (1 - acb(t.numerator) / t.denominator / g) * g**d * (-g).exp() / math.factorial(d)
            )

        exact = acb.integral(density, acb(t.numerator) / t.denominator, 120).real
        found = law("k-norm", 1, d, math.inf).tail(t)
        assert abs(float((exact - found).mid())) < 1e-12


@pytest.mark.parametrize("d", [1, 2, 3, 4, 7])
def test_a_coordinate_in_a_ball_has_the_tail_of_the_sphere(d: int) -> None:
    """The density of one coordinate is that of a Bessel function: integrated here by quadrature."""
    from scipy.special import gamma, kv

    nu = d / 2
    scale = math.sqrt(math.pi) * gamma(nu + 0.5) * 2**nu
    for t in (0.3, 4.0, 9.0):
        exact = 2 * quad(lambda x: x**nu * kv(nu, x) / scale, t, 80, epsabs=1e-13)[0]
        found = float(law("k-norm", 2, d, 2.0).tail(2 * Fraction(t)).mid())
        assert exact - 1e-11 <= found <= exact + (1e-11 if d % 2 else 2e-5)


def laplace_pair_tail(c: float, d: float, x: float) -> float:
    if c == d:
        return (1 + x / (2 * c)) * math.exp(-x / c)
    return (c * c * math.exp(-x / c) - d * d * math.exp(-x / d)) / (c * c - d * d)


@pytest.mark.parametrize("pair", [(1.0, 0.3), (1.0, -1.0), (0.999, 1.0), (1.0, 1e-12)])
def test_two_laplace_noises_exceed_what_their_tail_says(pair: tuple[float, float]) -> None:
    noise, a = law("laplace", 2), Fraction(1, 20)
    low, high = 0.0, 100.0
    for _ in range(60):
        middle = (low + high) / 2
        far = laplace_pair_tail(2 * abs(pair[0]), 2 * abs(pair[1]), middle) <= 0.05
        low, high = (low, middle) if far else (middle, high)
    just = np.array([high * 0.9999, high * 1.003])
    assert noise.exceeded(np.array([pair, pair]), just, a).tolist() == [False, True]


@pytest.mark.parametrize("coefficients", [(1.0, -0.25), (0.6, 0.6), (1.0, 0.0)])
@pytest.mark.parametrize("d", [2, 3, 6])
def test_two_coordinates_in_a_cube_exceed_what_their_integral_says(
    coefficients: tuple[float, float], d: int
) -> None:
    a, b = map(abs, coefficients)

    def above(y: float) -> float:
        """P(|a U + b V| > y): the mean over U of the tail of V."""
        steps = np.linspace(-1, 1, 4001)[:-1] + 1 / 4000
        left = y - a * steps
        if b == 0:
            return max(0.0, 1 - y / a)
        return float(2 * np.mean(np.clip((1 - left / b) / 2, 0, 1)))

    def tail(x: float) -> float:
        found = quad(
            lambda g: above(x / g) * g**d * math.exp(-g) / math.factorial(d), 1e-9, 60, limit=200
        )
        return float(found[0])

    found = float(
        law("k-norm", 1, d, math.inf).form_radius(tuple(map(Fraction, coefficients)), TWENTIETH)
    )
    if b == 0:  # one coefficient: the least integer
        assert tail(found + 0.5) <= 0.05
        assert tail(found - 0.5) > 0.05
    else:
        assert tail(found - (a + b) / 2) == pytest.approx(0.05, abs=3e-4)


def test_forms_of_counts_noise_have_the_laws_that_symmetry_gives_them() -> None:
    """All p + 1 counts that add up to 0 are alike: minus a sum of p, or a difference of two."""
    p, line = 4, np.ones((1, 4))
    noise = law("counts", 5, p)
    k = law("counts", 5 << 30, p).integer_radius(TWENTIETH) / (1 << 30)
    edge = np.array([k * 0.9995]), np.array([k * 1.0005])
    assert not noise.exceeded(line, edge[0], TWENTIETH)[0]
    assert noise.exceeded(line, edge[1], TWENTIETH)[0]
    low = float(noise.form_radius((Fraction(1), Fraction(-1)), TWENTIETH)) - 1
    # z_1 - z_2 = (z_1 + z_1 + rest) with roles of the counts exchanged: knots 0, 1, -1 and -1, 0, 1
    same = float(noise.form_radius((Fraction(2), *[Fraction(1)] * 3), TWENTIETH)) - 2.5
    assert low == pytest.approx(same, rel=1e-3)


@pytest.mark.parametrize("r", [2, 3, 10])
def test_equal_laplace_noises_have_the_tail_of_a_sum_of_gammas(r: int) -> None:
    """P(|Γ_r - Γ'_r| > x): the mean over one of them of the tail of the other."""
    found = float(law("laplace", 1).form_radius((Fraction(1),) * r, TWENTIETH)) - r / 2

    def above(u: float) -> float:
        return float(gammaincc(r, found + u)) * u ** (r - 1) * math.exp(-u) / math.factorial(r - 1)

    assert 2 * quad(above, 0, 100)[0] == pytest.approx(0.05, abs=1e-8)


def test_what_complete_counts_leave_is_covered() -> None:
    k = law("counts", 2, 3).integer_radius(TWENTIETH)
    assert law("counts", 2, 3).rest_radius(3, TWENTIETH) == k + 2
    many = law("laplace", 2).rest_radius(50, TWENTIETH)
    noise = np.random.default_rng(3).laplace(scale=2, size=(20_000, 50)).round().sum(axis=1)
    assert np.mean(np.abs(noise) <= many) >= 0.95
    assert many < 3 * np.quantile(np.abs(noise), 0.95)


@pytest.mark.parametrize("scale", [Fraction(1, 1000), Fraction(1, 2), Fraction(2), Fraction(2**40)])
def test_what_complete_counts_with_discrete_noise_leave_is_covered(scale: Fraction) -> None:
    """A difference of two negative binomials; of a normal law Chernoff covers √(2 ln 40)/1.96."""
    many = law("geometric", scale).rest_radius(50, TWENTIETH)
    q, generator = math.exp(-1 / scale), np.random.default_rng(3)
    pair = generator.negative_binomial(50, 1 - q, size=(2, 200_000)).astype(float)
    beyond = np.abs(pair[0] - pair[1])
    assert np.mean(beyond <= many) >= 0.95
    assert many <= 1.42 * np.quantile(beyond, 0.95) + 1


def test_tails_of_many_counts_and_of_wide_scales_are_found_quickly_and_rightly() -> None:
    wide = Fraction(2**60)
    k = law("laplace", wide).integer_radius(TWENTIETH)
    assert k == pytest.approx(2**60 * math.log(20), rel=1e-12)
    many = law("counts", 100, 4096).integer_radius(TWENTIETH)
    assert many == pytest.approx(
        200 * math.log(20), rel=1e-2
    )  # nearly Laplace noise of twice the scale
    assert law("laplace", 1).form_radius((Fraction(0),), TWENTIETH) == 0
