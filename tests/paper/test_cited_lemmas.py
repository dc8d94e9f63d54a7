"""The paper's lemmas that other code only rests on, each checked by itself on small cases."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from scipy.special import gammaincc

from paper.iterates import iterate
from zerodelta.audit.exact import (
    ExpRational,
    certainly_impure,
    certainly_pure,
    extreme_pairs,
    max_log_ratio,
    rounded_laplace_pmf,
    rounded_laplace_tail,
    shifted,
)
from zerodelta.marginals.mwem import sampling_error
from zerodelta.paper.algorithm_07_08 import (
    gaussian_sketch,
    recovery_error,
    sparse_recovery,
    tolerance,
)
from zerodelta.privacy.claims import ZCDP
from zerodelta.privacy.theorems.smoothing import log_transport_radius
from zerodelta.testing import replayed
from zerodelta.training.polytopes import L1Ball

F = Fraction
RNG = np.random.default_rng

# --- the route of Theorem 1 ----------------------------------------------------------------------


def close_pair(
    p: list[Fraction], q: list[Fraction], factor: Fraction
) -> tuple[list[Fraction], list[Fraction]]:
    """The pair of theory A1.5: within a ratio of `factor`, made from p and q by moving mass."""
    first, second = list(p), list(q)
    for i, (a, b) in enumerate(zip(p, q, strict=True)):
        excess = max(a - factor * b, F(0)) / (1 + factor)
        shortfall = max(b - factor * a, F(0)) / (1 + factor)
        first[i] += shortfall - excess
        second[i] += excess - shortfall
    surplus = 1 - sum(first, F(0))  # what the first lacks, the second has too much
    if surplus < 0:
        second, first = close_pair(q, p, factor)
        return first, second
    gaps = [max(b - a, F(0)) for a, b in zip(first, second, strict=True)]
    share = surplus / sum(gaps, F(0)) if surplus else F(0)
    assert share <= F(1, 2)
    first = [a + share * gap for a, gap in zip(first, gaps, strict=True)]
    second = [b - share * gap for b, gap in zip(second, gaps, strict=True)]
    return first, second


def test_approximate_privacy_is_closeness_to_a_pure_pair() -> None:
    """`lem:appox_DP_eq_def`, exactly, for every extreme (ln 2, δ)-DP pair on three outcomes."""
    factor, delta = F(2), F(1, 10)
    for p, q in extreme_pairs(3, factor, delta):
        first, second = close_pair(list(p), list(q), factor)
        assert sum(first) == sum(second) == 1
        assert certainly_pure(dict(enumerate(first)), dict(enumerate(second)), epsilon_exp=factor)
        for law, near in ((p, first), (q, second)):
            moved = sum(max(a - b, F(0)) for a, b in zip(law, near, strict=True))
            assert moved <= delta / (1 + factor)


def test_the_two_definitions_of_transport_agree() -> None:
    """`lem:equiv_W_infty` for equally heavy points on a line: best matching against all sets."""
    for seed in range(20):
        mu, nu = np.sort(RNG(seed).integers(0, 30, size=(2, 6)), axis=1)
        coupled = int(np.abs(mu - nu).max())  # on a line, matching in order is the best
        best = min(
            max(abs(a - b) for a, b in zip(mu, order, strict=True))
            for order in itertools.permutations(nu)
        )
        assert best == coupled

        def covered(alpha: int, mu: np.ndarray = mu, nu: np.ndarray = nu) -> bool:
            near = np.abs(mu[:, None] - nu[None, :]) <= alpha
            sets = itertools.product([False, True], repeat=len(mu))
            return all(sum(u) <= near[list(u)].any(axis=0).sum() for u in sets)

        assert covered(coupled)
        assert coupled == 0 or not covered(coupled - 1)


def test_mixing_turns_total_variation_into_transport() -> None:
    """`lem:W_infty_TV_q` in one dimension, with Theorem W's radius and not less than half of it."""
    cells, weight, log_delta = 400, F(1, 10), math.log(1 / 200)
    moved = 0.9 / 400  # (1-w)δ/(1+e^0): what may be moved from one end of the unit interval
    radius = math.exp(
        log_transport_radius(dimension=1, diameter=1, weight=weight, epsilon=0, log_delta=log_delta)
    )
    floor = float(weight) / cells
    mu, nu = np.full(cells, floor), np.full(cells, floor)
    mu[0], nu[-1] = mu[0] + moved, nu[-1] + moved
    mu[cells // 2] += 1 - mu.sum()
    nu[cells // 2] += 1 - nu.sum()
    quantiles = np.linspace(1e-6, 1 - 1e-6, 20_001)
    paths = [np.searchsorted(np.cumsum(law), quantiles) / cells for law in (mu, nu)]
    transport = float(np.abs(paths[0] - paths[1]).max())
    assert transport <= radius + 1 / cells
    assert transport >= radius / 2 - 1 / cells


def test_laplace_noise_on_laws_within_a_distance_is_pure() -> None:
    """`lem:laplace_wasserstein` on a lattice: points move by at most 3, noise of scale 6."""
    noise = partial(rounded_laplace_pmf, scale=6), partial(rounded_laplace_tail, scale=6)
    rows = {y: shifted(*noise, center=y, low=-2, high=12) for y in range(11)}

    def law(centers: list[int]) -> dict[float, ExpRational]:
        moved = list(zip(centers, (F(1, 2), F(1, 3), F(1, 6)), strict=True))
        return {z: sum((rows[y][z] * p for y, p in moved), ExpRational.of(0)) for z in rows[0]}

    assert certainly_pure(law([0, 4, 10]), law([3, 2, 7]), F(1, 2))
    alone = rows[0], rows[3]  # tight: a single point that moves by all of it
    assert certainly_pure(*alone, F(1, 2))
    assert certainly_impure(*alone, F(49, 100))


def test_the_weak_triangle_inequality() -> None:
    """`lem:weak_triangle`: the loss from μ to ν is at most the sum of the losses through π."""
    for seed in range(30):
        draws = RNG(seed).integers(1, 50, size=(3, 4))
        mu, pi, nu = ({i: F(int(v), int(row.sum())) for i, v in enumerate(row)} for row in draws)
        direct, there, back = (max_log_ratio(*pair) for pair in ((mu, nu), (mu, pi), (pi, nu)))
        assert float(direct) <= float(there) + float(back) + 1e-12


# --- accounting ----------------------------------------------------------------------------------


@pytest.mark.parametrize("rho", ["1/10000", "1/100", "1/4"])
@pytest.mark.parametrize("log_delta", [-5.0, -50.0, -5000.0])
def test_our_conversion_of_zcdp_is_never_worse_than_the_lemma(rho: str, log_delta: float) -> None:
    """`lem: zCDP_to_DP`: ε <= ρ + 2√(ρ ln 1/δ)."""
    value = float(F(rho))
    assert ZCDP(rho).epsilon(log_delta) <= value + 2 * math.sqrt(-value * log_delta)


# --- Frank-Wolfe and sparse recovery -------------------------------------------------------------


def test_an_iterate_has_at_most_as_many_coordinates_as_steps() -> None:
    """`lem: sparse-fw` for the l1 ball, whose vertices have one coordinate each."""
    ball = L1Ball(dimension=50, radius=F(2))
    for steps in (1, 5, 49, 80):
        theta = iterate(ball, RNG(steps).integers(0, ball.size, size=steps).tolist())
        assert np.count_nonzero(theta) <= min(steps, 50)
        assert np.abs(theta).sum() <= 2 + 1e-12


def test_a_shorter_vector_differs_from_a_sparse_one_by_a_numerically_sparse_one() -> None:
    """`lem: diff_eff_sparse`, in integers: x s-sparse, ‖x'‖₁ <= ‖x‖₁, ‖x'-x‖₁² <= 4s‖x'-x‖₂²."""
    for seed in range(200):
        rng = RNG(seed)
        sparsity = int(rng.integers(1, 5))
        x = np.zeros(20, dtype=np.int64)
        x[rng.choice(20, sparsity, replace=False)] = rng.integers(-50, 51, size=sparsity)
        other = rng.integers(-3, 4, size=20)
        if np.abs(other).sum() > np.abs(x).sum():
            other = np.roll(x, 1) if seed % 2 else np.zeros_like(x)
        v = other - x
        assert int(np.abs(v).sum()) ** 2 <= 4 * sparsity * int((v**2).sum())


def distortion_of(phi: np.ndarray, sparsity: int) -> float:
    """The smallest e for which φ is (e, s)-RIP, over all supports."""
    worst = 0.0
    for support in itertools.combinations(range(phi.shape[1]), sparsity):
        values = np.linalg.svd(phi[:, support], compute_uv=False) ** 2
        worst = max(worst, abs(values[0] - 1), abs(values[-1] - 1))
    return worst


def test_a_gaussian_sketch_is_nearly_an_isometry_on_sparse_vectors() -> None:
    """`lem:construct_RIP` in the small: the distortion falls with the number of measurements."""
    distortions = [distortion_of(replayed("rip")(gaussian_sketch)(k, 10), 2) for k in (40, 4000)]
    assert distortions[1] < 0.25
    assert distortions[1] < distortions[0]


def test_rip_with_a_margin_covers_numerically_sparse_vectors() -> None:
    """`lem:RIP_RWC` where 25s/e² covers every coordinate: e/5 on all vectors, so e on some."""
    e, sparsity, d = 0.9, 1, 20
    assert 25 * sparsity / e**2 >= d
    phi = replayed("rwc")(gaussian_sketch)(4000, d)
    assert distortion_of(phi, d) <= e / 5
    for seed in range(50):
        x = np.exp(-3.0 * RNG(seed).permutation(d))  # numerically sparse, not sparse
        assert np.abs(x).sum() ** 2 <= (1 + 0.2 * sparsity) * (x @ x)
        assert abs(((phi @ x) ** 2).sum() / (x @ x) - 1) <= e


def test_recovery_errs_by_at_most_the_lemma() -> None:
    """`lem: l1_rec` with a distortion that is known, because it holds for all vectors."""
    phi = replayed("lp")(gaussian_sketch)(200, 12)
    e = distortion_of(phi, 12)
    assert e < 1
    for seed in range(5):
        rng = RNG(seed)
        theta = np.zeros(12)
        theta[rng.choice(12, 2, replace=False)] = rng.normal(size=2)
        noise = rng.laplace(scale=1e-3, size=200)
        xi = float(np.abs(noise).sum())
        found = sparse_recovery(
            phi @ theta + noise,
            phi,
            tolerance=xi,
        )
        bound = recovery_error(sparsity=2, tolerance=xi, distortion=e)
        assert np.abs(found - theta).sum() <= bound


def test_a_laplace_vector_is_longer_than_the_tolerance_at_most_once_in_n() -> None:
    """`lem: conc_l1_exp`, exactly: ‖X‖₁ is Gamma(k), so P is a regularized incomplete gamma."""
    for k, n in itertools.product((1, 2, 10, 200, 5000), (2, 100, 10**6)):
        threshold = tolerance(noise_scale=1.0, measurements=k, rows=n)
        assert gammaincc(k, threshold) <= 1 / n


# --- query release -------------------------------------------------------------------------------


def test_a_sampled_query_is_off_by_as_much_as_the_lemma_says_at_most() -> None:
    """`lem: sampling_bound` for one query, exactly: binomial tails against 2e^(-2mα²)."""
    for m, share in itertools.product((1, 5, 40), (F(1, 10), F(1, 2))):
        pmf = [math.comb(m, k) * share**k * (1 - share) ** (m - k) for k in range(m + 1)]
        for alpha in (F(1, 20), F(1, 5), F(1, 2)):
            off = sum(p for k, p in enumerate(pmf) if abs(F(k, m) - share) >= alpha)
            assert off <= 2 * math.exp(-2 * m * alpha**2)
        mean = sum(p * abs(F(k, m) - share) for k, p in enumerate(pmf))
        assert mean <= sampling_error(queries=2, sample_size=m)
