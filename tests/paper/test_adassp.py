"""Algorithm 13: the joint sensitivities, the chain by hand, exact statistics, failures (A9, C6)."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import zerodelta as zd
from data.opening import opened
from zerodelta.audit.exact import certainly_impure, certainly_pure, rounded_gaussian_pmf
from zerodelta.exact.logs import ball, lower, upper
from zerodelta.paper.algorithm_12_13 import (
    adassp,
    lattice_adassp,
    paper_multiplier_squared,
    pure_adassp,
)
from zerodelta.paper.gaussian_statistics import (
    STEPS,
    GaussianStatistics,
    below_smallest_eigenvalue,
    trust_radius,
)
from zerodelta.privacy.parameters import Neighbors
from zerodelta.privacy.theorems.mixing import GaussianNet
from zerodelta.privacy.theorems.regression import GaussianSufficientStatistics
from zerodelta.regression.rows import LabeledRows

F = Fraction
RNG = np.random.default_rng(7)
X = RNG.normal(size=(3000, 3)) / 3
Y = X @ np.array([0.5, -0.3, 0.1]) + RNG.normal(size=3000) / 50
PUBLIC: dict[str, Any] = {"data_norm": 1, "target_bound": 1}


def shift(x: Any, y: float, x2: Any, y2: float, rest: Any) -> tuple[float, float]:
    """The squared joint shift of (XᵀX, Xᵀy) and of λ_min, rows of norm at most 1."""
    gram = np.outer(x, x) - np.outer(x2, x2)
    pair = float((gram**2).sum() + ((x * y - x2 * y2) ** 2).sum())
    first = np.linalg.eigvalsh(rest + np.outer(x, x))[0]
    second = np.linalg.eigvalsh(rest + np.outer(x2, x2))[0]
    return pair, pair + float((first - second) ** 2)


def constant(eigenvalue: bool) -> float:
    theorem = GaussianSufficientStatistics(
        row_bound_squared=10**12, multiplier_squared=F(1), eigenvalue=int(eigenvalue)
    )
    return float(theorem.sensitivity_squared(Neighbors.REPLACE))


def test_the_joint_sensitivities_are_attained_and_never_exceeded() -> None:
    best_pair = best_triple = 0.0
    for angle in np.linspace(0, math.pi, 721):
        x, x2 = np.array([1.0, 0.0]), np.array([math.cos(angle), math.sin(angle)])
        # a dataset whose matrix has its smallest eigenvector where xxᵀ - x'x'ᵀ is largest
        values, vectors = np.linalg.eigh(np.outer(x, x) - np.outer(x2, x2))
        top = vectors[:, int(np.argmax(values))]
        rest = 1e6 * (np.eye(2) - np.outer(top, top))
        for y2 in (-1.0, 1.0):
            pair, triple = shift(x, 1.0, x2, y2, rest)
            best_pair, best_triple = max(best_pair, pair), max(best_triple, triple)
    assert best_pair == pytest.approx(9 / 2, abs=1e-4)
    assert best_triple == pytest.approx(16 / 3, abs=1e-4)
    for _ in range(3000):
        x, x2 = (v / np.linalg.norm(v) * RNG.uniform() ** 0.3 for v in RNG.normal(size=(2, 2)))
        ends = RNG.choice([-1.0, 1.0], 2)
        pair, triple = shift(x, ends[0], x2, ends[1], np.diag(RNG.uniform(0, 3, 2)))
        assert pair <= constant(False) + 1e-9
        assert triple <= constant(True) + 1e-9


def test_the_printed_noise_violates_its_claim_at_the_delta_of_purification() -> None:
    """theory A9: ln δ(1) = -94.0 at ℓ = 100, -856.8 at ℓ = 1000; fine at ℓ = 50."""
    for log_delta, found in ((-100.0, -94.0), (-1000.0, -856.8)):
        squared = paper_multiplier_squared(epsilon=1, log_delta=log_delta)
        claim = zd.GaussianDP(mu_squared=F(16, 3) / squared)
        assert claim.log_delta(1) == pytest.approx(found, abs=0.1)
        assert claim.log_delta(1) > log_delta
    ordinary = paper_multiplier_squared(epsilon=1, log_delta=-50.0)
    assert zd.GaussianDP(mu_squared=F(16, 3) / ordinary).log_delta(1) <= -50.0


@pytest.mark.parametrize("size", [1, 2, 5, 12])
def test_the_integer_below_the_smallest_eigenvalue_is_exact(size: int) -> None:
    for _ in range(20):
        rows = RNG.integers(-50, 51, (size + 3, size))
        gram = rows.T @ rows
        exact = np.linalg.eigvalsh(gram.astype(float))[0]
        found = below_smallest_eigenvalue(gram)
        assert found < exact + 1e-6
        assert found + 1 >= exact - 1e-6


def test_an_integer_eigenvalue_is_never_reached() -> None:
    assert below_smallest_eigenvalue(np.diag([7, 9, 7])) == 6
    assert below_smallest_eigenvalue(np.zeros((4, 4), dtype=int)) == -1
    assert below_smallest_eigenvalue(np.full((3, 3), 2**62, dtype=object)) == -1


def test_the_chain_of_adassp_by_hand() -> None:
    certificate = adassp(X, Y, epsilon=1, log_delta=-30.0, **PUBLIC).certificate
    (step,) = certificate.steps
    squared, u = F(str(step.numbers["multiplier_squared"])), F(1, STEPS**2)
    mu_squared = (F(16, 3) + 2 * u + u**2) / squared
    assert certificate.claim == zd.GaussianDP(mu_squared=mu_squared)
    assert certificate.claim.log_delta(1) <= -30.0
    assert certificate.claim.log_delta(1) > -30.0 - 1e-6
    assert certificate.status.value == "proven"
    assert zd.verify(certificate.to_json())


def test_the_chain_of_the_lattice_variant_by_hand() -> None:
    weight = F(1, 1000)
    release = lattice_adassp(X, Y, epsilon=1, mixing_weight=weight, resolution=500, **PUBLIC)
    base, channel = release.certificate.steps
    mu_squared = F(9, 2) / F(str(base.numbers["multiplier_squared"]))
    bound, d = int(str(channel.numbers["bound"])), 3
    assert bound == math.floor((500 + math.sqrt(d) / 2) ** 2)
    tau = F(bound, d) + F(1, 12)
    mass = GaussianNet(dimension=d, bound=bound, variance=tau, weight=weight).log_mass
    by_hand = d / 2 * math.log(2 * math.pi * tau) + (bound + d / 12) / (2 * tau)
    assert mass == pytest.approx(by_hand, rel=1e-12)
    allowed = lower(lambda: ball(weight / (1 - weight)).log() + ball(1).expm1().log()) - mass
    found = zd.GaussianDP(mu_squared=mu_squared).log_delta(1)
    assert found <= allowed
    assert found > allowed - 1e-6
    assert release.certificate.claim == zd.purification.PureDP(1)
    assert zd.verify(release.certificate)


def test_the_chain_of_the_paper_s_variant_by_hand() -> None:
    release = pure_adassp(X, Y, epsilon="3/2", base_epsilon=1, **PUBLIC)
    base, channel = release.certificate.steps
    u = F(1, STEPS**2)
    mu_squared = (F(16, 3) + 2 * u + u**2) / F(str(base.numbers["multiplier_squared"]))
    log_delta = zd.GaussianDP(mu_squared=mu_squared).log_delta(1)
    weight, scale = F(str(channel.numbers["weight"])), F(str(channel.numbers["scale"]))
    assert weight == F(1, 3000**2)
    # Δ_1 = √d D ((1-w)δ/((1+e)w))^(1/d), and 2Δ_1/b <= ε'
    log_radius = (math.log((1 - weight) / weight) - math.log1p(math.e) + log_delta) / 3
    diameter = int(str(channel.numbers["diameter"]))
    cost = 2 * math.sqrt(3) * diameter * math.exp(log_radius) / float(scale)
    assert cost == pytest.approx(0.5, rel=1e-9)
    assert release.certificate.claim == zd.purification.PureDP(F(3, 2))
    assert np.linalg.norm(release.value) <= float(trust_of(base)) * (1 + 1e-9)


def trust_of(base: Any) -> Fraction:
    factor = math.sqrt(3 * math.log(2 * 9 / 0.05)) / 2
    multiplier = math.sqrt(F(str(base.numbers["multiplier_squared"])))
    return trust_radius(rows=3000, dimension=3, multiplier=multiplier, ridge_factor=factor, scale=1)


def test_one_dimensional_lattice_case_is_pure_exactly() -> None:
    """d = 1: noisy (XᵀX, Xᵀy) to a three-point lattice, mixed; all pairs of rows; Arb balls.

    In units where A = 1 the statistics of one row are (x², xy), x and y in {-1, 0, 1}.
    """
    epsilon, weight, squared = F(1), F(1, 4), F(9, 2) / F(1, 5)

    def answer(gram: int, moment: int) -> int:
        return 0 if gram <= 0 else max(-1, min(1, round(moment / gram)))

    reach = 30
    laws = {}
    for x, y in itertools.product((-1, 0, 1), repeat=2):
        law: dict[int, Any] = {-1: 0, 0: 0, 1: 0}
        for a, b in itertools.product(range(-reach, reach + 1), repeat=2):
            chance = pmf(a - x * x, squared) * pmf(b - x * y, squared)
            law[answer(a, b)] = law[answer(a, b)] + chance
        far = 4 * upper(lambda: (ball(F(reach - 1)) / (2 * ball(squared)).sqrt()).erfc())
        law = {k: p.union(p + far) for k, p in law.items()}
        laws[x, y] = law
    mixed = {
        row: {k: p * ball(1 - weight) + ball(weight / 3) for k, p in law.items()}
        for row, law in laws.items()
    }
    pairs = list(itertools.combinations(laws, 2))
    delta = zd.GaussianDP(mu_squared=F(1, 5)).log_delta(1)
    assert math.exp(delta) * 3 * 3 <= math.e - 1  # B1 with w = 1/4
    assert all(certainly_pure(mixed[a], mixed[b], epsilon) for a, b in pairs)
    assert not any(certainly_impure(mixed[a], mixed[b], epsilon) for a, b in pairs)


_PMF: dict[tuple[int, Fraction], Any] = {}


def pmf(k: int, variance: Fraction) -> Any:
    if (k, variance) not in _PMF:
        _PMF[k, variance] = rounded_gaussian_pmf(k, variance=variance)
    return _PMF[k, variance]


def test_rows_beyond_the_bounds_are_scaled_and_bad_ones_are_zero() -> None:
    statistics = GaussianStatistics(
        dimension=2,
        data_norm=F(1),
        target_bound=F(1),
        multiplier_squared=F(1),
        eigenvalue=False,
    )
    rows = np.array([[30.0, 40.0], [math.nan, 1.0], [math.inf, 0.0], [0.0, 0.5]])
    targets = np.array([9.0, 1.0, 1.0, math.nan])
    gram, moments = statistics._exact(opened(LabeledRows(rows, targets)))
    # (0.6, 0.8) and, clipped like any large number, (1, 0); rows with a missing cell are zero
    assert gram[0, 0] == pytest.approx(1.36 * STEPS**2, rel=1e-4)
    assert gram[1, 1] == pytest.approx(0.64 * STEPS**2, rel=1e-4)
    assert int(gram[0, 0] + gram[1, 1]) <= 2 * STEPS**2
    assert moments[0] == pytest.approx(1.6 * STEPS**2, rel=1e-4)


@pytest.mark.parametrize("rows", [1, 2, 5])
def test_tiny_and_singular_data_are_answered(rows: int) -> None:
    x, y = np.zeros((rows, 2)), np.full(rows, math.nan)
    for value in (
        adassp(x, y, epsilon=1, log_delta=-20.0, **PUBLIC).value,
        pure_adassp(x, y, epsilon=2, **PUBLIC).value,
        lattice_adassp(x, y, epsilon=1, mixing_weight="0.01", **PUBLIC).value,
    ):
        assert np.isfinite(value).all()


def test_a_solver_that_fails_gives_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any) -> Any:
        raise np.linalg.LinAlgError("singular")

    monkeypatch.setattr(np.linalg, "solve", fails)
    assert not adassp(X, Y, epsilon=1, log_delta=-20.0, **PUBLIC).value.any()


def test_with_enough_rows_the_coefficients_are_found() -> None:
    x = RNG.normal(size=(200_000, 3)) / 3
    truth = np.array([0.5, -0.3, 0.1])
    y = x @ truth
    for value in (
        adassp(x, y, epsilon=1, log_delta=-20.0, **PUBLIC).value,
        lattice_adassp(x, y, epsilon=1, mixing_weight="0.00001", **PUBLIC).value,
        pure_adassp(x, y, epsilon=2, **PUBLIC).value,
    ):
        assert np.abs(value - truth).max() < 0.1
