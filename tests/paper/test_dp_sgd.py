"""DP-SGD and pure DP-SGD: chains re-derived by hand, an exact lattice case, utility, failures."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from flint import arb, ctx
from mpmath import mp, mpf

from channels.channel_laws import mixed
from purity import assert_pure
from reference.chi_square import goodness_of_fit
from study.stages import read
from zerodelta.audit.exact import (
    datasets,
    neighbors,
    rounded_gaussian_pmf,
    rounded_gaussian_tail,
)
from zerodelta.channels.mixes import GaussianMix
from zerodelta.errors import CertificateError, ParameterError
from zerodelta.exact.bits import ReplayBits, SystemBits
from zerodelta.mechanisms.sum_noise import RoundedGaussian
from zerodelta.paper import algorithm_03 as noisy_descent
from zerodelta.paper.algorithm_03 import (
    PlannedDescent,
    descend,
    dp_sgd,
    plan_descent,
    printed_parameters,
)
from zerodelta.paper.algorithm_04 import lattice_channel, pure_dp_sgd, pure_dp_sgd_on_lattice
from zerodelta.privacy.certificate import Certificate
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.steps import Status
from zerodelta.privacy.verify import verify
from zerodelta.spaces import Ball
from zerodelta.testing import replayed
from zerodelta.training.gradient_sums import Gradients
from zerodelta.training.gradients import gradients_of
from zerodelta.training.losses import Hinge, Logistic, Squared

F = Fraction


def table(rows: int = 400, dimension: int = 3) -> tuple[Any, Any]:
    rng = np.random.default_rng(rows + dimension)
    features = rng.normal(size=(rows, dimension))
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    return features, (features @ np.ones(dimension) > 0).astype(np.float64)


OPTIONS: dict[str, Any] = {"loss": Logistic(), "data_norm": 1, "radius": 3, "steps": 30}


def gaussian_log_delta(mu_squared: Fraction, epsilon: float) -> Any:
    """ln of Φ(μ/2 - ε/μ) - e^ε Φ(-μ/2 - ε/μ), in 60 digits."""
    with mp.workdps(60):
        mu = mp.sqrt(mpf(mu_squared.numerator) / mu_squared.denominator)
        kept = mp.ncdf(mu / 2 - epsilon / mu)
        return mp.log(kept - mp.exp(epsilon) * mp.ncdf(-mu / 2 - epsilon / mu))


def sampled_log_delta(numbers: Any, epsilon: float, order: int) -> Any:
    """Lemma WOR by its plain sum at one order, and theory B6's conversion."""
    with mp.workdps(60):
        gamma = mpf(numbers["batch"]) / numbers["rows"]
        ratio = F(numbers["sensitivity_squared"]) / F(numbers["variance"])
        square = mpf(ratio.numerator) / ratio.denominator
        total = mp.fsum(
            mp.binomial(order, k)
            * (1 - gamma) ** (order - k)
            * gamma**k
            * mp.exp(mpf(k * (k - 1)) * square / 2)
            for k in range(order + 1)
        )
        divergence = numbers["steps"] * mp.log(2 * total - 1) / (order - 1)
        a = mpf(order)
        return (a - 1) * (divergence - epsilon) + (a - 1) * mp.log(1 - 1 / a) - mp.log(a)


# --- the chain, by hand --------------------------------------------------------------------------


def test_the_full_batch_chain_re_derived_by_hand() -> None:
    features, labels = table()
    certificate = pure_dp_sgd(
        features, labels, epsilon="3/2", base_epsilon=1, batch=400, **OPTIONS
    ).certificate
    assert verify(certificate)
    assert certificate.status is Status.PROVEN
    gaussian, channel = (dict(step.numbers) for step in certificate.steps)
    n, d, w = 400, 3, F(1, 400**2)
    # (2L)²: the integer gradients are at most 2^14·2^16 long (theory A6.1)
    assert gaussian["sensitivity_squared"] == (2 * 2**30) ** 2
    assert gaussian["count"] == 30
    mu_squared = 30 * F(gaussian["sensitivity_squared"]) / F(gaussian["variance"])
    log_delta = gaussian_log_delta(mu_squared, 1.0)
    wanted = math.log(2 * w) - d * math.log(16 * d * n * n)  # Corollary 1
    assert log_delta <= wanted
    assert log_delta >= wanted - 1e-3  # and no more noise than needed
    # Theorem W: Δ_1 = √d·2R((1-w)δ/((1+e^ε)w))^(1/d), and 2Δ_1/b <= ε'
    shrink = ((1 - w) / w * F(math.exp(wanted)) / F(1 + math.e)) ** F(1, d)
    radius = math.sqrt(d) * int(channel["diameter"]) * float(shrink)
    assert F(channel["weight"]) == w
    assert 2 * radius / float(F(channel["scale"])) <= 0.5 * (1 + 1e-9)
    assert 2 * radius / float(F(channel["scale"])) >= 0.5 * (1 - 1e-3)
    claim = certificate.claim
    assert isinstance(claim, PureDP)
    assert claim.exact_epsilon == F(3, 2)
    with pytest.raises(CertificateError):
        verify(Certificate(claim=PureDP("1.49"), steps=certificate.steps))


def test_the_subsampled_chain_re_derived_by_hand() -> None:
    features, labels = table()
    certificate = dp_sgd(
        features, labels, epsilon=1, log_delta=-30.0, batch=40, **OPTIONS
    ).certificate
    assert verify(certificate)
    (step,) = certificate.steps
    assert step.theorem == "sampling-without-replacement"
    assert step.numbers["rows"] == 400
    assert step.numbers["batch"] == 40
    assert step.numbers["steps"] == 30
    assert step.numbers["sensitivity_squared"] == (2 * 2**30) ** 2
    best = min(sampled_log_delta(step.numbers, 1.0, order) for order in range(2, 160))
    assert best <= -30
    assert best >= -30 - 0.1


def test_the_lattice_chain_re_derived_by_hand() -> None:
    features, labels = table()
    certificate = pure_dp_sgd_on_lattice(features, labels, epsilon=1, **OPTIONS).certificate
    assert verify(certificate)
    assert certificate.status is Status.PROVEN
    gaussian, channel = (dict(step.numbers) for step in certificate.steps)
    mu_squared = 30 * F(gaussian["sensitivity_squared"]) / F(gaussian["variance"])
    d, bound = channel["dimension"], channel["bound"]
    variance, w = float(F(channel["variance"])), float(F(channel["weight"]))
    steps = 256  # the power of two above nε/√d = 231
    assert bound == math.floor((steps + math.sqrt(d) / 2) ** 2)
    mass = d / 2 * math.log(2 * math.pi * variance) + (bound + d / 12) / (2 * variance)
    spare = math.log(w / (1 - w)) + math.log(math.e - 1) - mass
    assert gaussian_log_delta(mu_squared, 1.0) <= spare + 1e-9
    assert gaussian_log_delta(mu_squared, 1.0) >= spare - 1e-3


# --- one dimension, exactly ----------------------------------------------------------------------


class Fixed:
    """Adds this number: shows what the run makes of each noisy sum."""

    def __init__(self, noise: int) -> None:
        self.noise = noise

    def apply(self, sums: Any, bits: Any) -> Any:
        return sums + self.noise


def lattice_law(
    plan: PlannedDescent, channel: GaussianMix, edges: dict[int, int]
) -> dict[int, arb]:
    """The exact law of the lattice point: cell k is a range of noisy sums, found in `edges`."""
    center = int(plan.gradients.total(np.zeros(1), None)[0])

    def above(total: int) -> Any:
        return rounded_gaussian_tail(total - center, variance=plan.variance)

    with ctx.workprec(512):
        cells = sorted(edges)  # the cell k is reached by sums >= edges[k], and < edges of the next
        tails = [above(edges[k]) for k in cells] + [arb(0)]
        tails[0] = arb(1)
        kept = {k: tails[i] - tails[i + 1] for i, k in enumerate(cells)}
        drawn = {k: rounded_gaussian_pmf(k, variance=channel.variance) for k in range(-9, 10)}
    law: dict[int, arb] = mixed(kept, drawn, channel.mixing_weight)
    return law


def cell_edges(plan: PlannedDescent, channel: GaussianMix) -> dict[int, int]:
    """For -k of each lattice point k, the smallest noisy sum that leads to it: θ falls with it."""
    center = int(plan.gradients.total(np.zeros(1), None)[0])

    def cell(total: int) -> int:
        theta = descend(
            plan.gradients,
            ball=plan.ball,
            steps=1,
            batch=plan.batch,
            noise=Fixed(total - center),  # type: ignore[arg-type]
            rates=plan.rates(),
            regularization=0.0,
            bits=SystemBits(),
        )
        return -int(channel.lattice.quantize(theta)[0])

    far = 1 << 45
    edges = {cell(-far): -far}
    for k in range(cell(-far) + 1, cell(far) + 1):
        low, high = -far, far
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if cell(middle) >= k else (middle, high)
        if cell(high) == k:
            edges[k] = high
    return edges


def one_dimensional(scale: Fraction) -> dict[Any, dict[int, arb]]:
    """The law of the published lattice point for every dataset of two rows (x, y), one step."""
    values = [(1.0, -1.0), (1.0, 1.0), (0.5, 1.0), (math.nan, 0.0)]
    laws = {}
    edges: dict[int, int] = {}
    for rows in datasets(values, 2):
        features, labels = (np.array(column) for column in zip(*rows, strict=True))
        gradients = read(
            gradients_of(features, labels, loss=Squared(label_bound=1), radius=1, data_norm=1)
        )
        channel = lattice_channel(
            ball=Ball(1, 1), rows=2, epsilon=1, mixing_weight=F(1, 20), resolution=F(1, 3)
        )
        plan = plan_descent(
            gradients,
            epsilon=1,
            log_delta=channel.log_delta_required(1),
            radius=1,
            steps=1,
            batch=2,
        )
        edges = edges or cell_edges(plan, channel)  # the same for every dataset
        plan = replace(plan, variance=plan.variance * scale)
        laws[tuple(map(str, rows))] = lattice_law(plan, channel, edges)
    return laws


def test_one_dimensional_descent_on_the_lattice_is_exactly_pure() -> None:
    laws = one_dimensional(F(1))
    assert len(laws) == 16
    assert len(list(neighbors(laws))) == 48
    assert_pure(laws, epsilon=1, mistake=one_dimensional(F(1, 12)))


# --- parameters, batches, utility, failures ------------------------------------------------------


def test_the_printed_parameters_are_integers_of_at_least_one() -> None:
    printed = printed_parameters(
        rows=10**4, dimension=10, epsilon=F(1, 2), log_delta=-200.0, lipschitz=2.0
    )
    assert printed.batch == math.ceil(2 * math.sqrt(10 * 200 / 0.5))
    assert printed.steps == math.ceil(10**8 / 4 / 2000)
    assert printed.variance == 416 * 4 * 200 / 0.5
    tiny = printed_parameters(rows=1, dimension=3, epsilon=1, log_delta=-50.0, lipschitz=1.0)
    assert (tiny.batch, tiny.steps) == (1, 1)


class Recorder(Gradients):
    """Gradient sums of zero that remember which rows were asked for."""

    rows, dimension, bound, quantum, status = 4, 3, 1, F(1), Status.PROVEN

    def __init__(self) -> None:
        self.batches: list[tuple[int, ...]] = []
        self.thetas: list[Any] = []

    def total(self, theta: Any, chosen: Any = None) -> Any:
        self.batches.append(() if chosen is None else tuple(sorted(chosen.tolist())))
        self.thetas.append(theta)
        return np.zeros(3, dtype=np.int64)


def recorded(*, batch: int, steps: int, variance: int) -> Recorder:
    recorder = Recorder()
    descend(
        recorder,
        ball=Ball(3, 10**6),
        steps=steps,
        batch=batch,
        noise=RoundedGaussian(sensitivity_squared=F(4), variance=F(variance)),
        rates=lambda _: batch / 4,  # undoes n/b: θ moves by minus the noise
        regularization=0.0,
        bits=ReplayBits(f"batches of {batch}"),
    )
    return recorder


@pytest.mark.parametrize("batch", [1, 2, 3])
def test_batches_are_uniform_subsets_independent_of_the_batch_before(batch: int) -> None:
    batches = recorded(batch=batch, steps=20_000, variance=100).batches
    cells = list(combinations(range(4), batch))
    pairs = Counter(zip(batches[::2], batches[1::2], strict=True))
    counts = [pairs[pair] for pair in product(cells, cells)]
    assert sum(counts) == 10_000
    assert goodness_of_fit(counts, [1 / len(counts)] * len(counts)) > 1e-3


def test_every_step_has_fresh_noise_of_the_given_variance_also_across_blocks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(noisy_descent, "_NOISE_ENTRIES", 50)  # 16 steps, and one is left over
    steps = 20_001
    noise = -np.diff(np.array(recorded(batch=4, steps=steps, variance=9).thetas), axis=0)
    assert noise.shape == (steps - 1, 3)
    assert np.array_equal(noise, np.rint(noise))
    values = range(-12, 13)
    counts = [int(np.count_nonzero(noise == k)) for k in values]
    law = [float(rounded_gaussian_pmf(k, variance=F(9)).mid()) for k in values]
    assert goodness_of_fit([*counts, noise.size - sum(counts)], [*law, 1 - sum(law)]) > 1e-3
    for lag in (1, 2, 15, 16, 17):
        correlation = float(np.mean(noise[lag:] * noise[:-lag])) / 9
        assert abs(correlation) < 5 / math.sqrt(noise.size)


def test_a_target_beyond_every_renyi_order_is_refused_instead_of_searched_for() -> None:
    features, labels = table(100)
    with pytest.raises(ParameterError, match=r"^log_delta = .*batch= all rows"):
        dp_sgd(features, labels, epsilon=F(1, 1000), log_delta=-3000.0, batch=50, **OPTIONS)
    release = dp_sgd(features, labels, epsilon=F(1, 1000), log_delta=-3000.0, batch=100, **OPTIONS)
    assert release.certificate.status is Status.PROVEN


def risk(theta: Any, features: Any, labels: Any) -> float:
    return float(np.mean(np.log1p(np.exp(-(2 * labels - 1) * (features @ theta)))))


@pytest.mark.parametrize("batch", [4000, 400])
def test_pure_sgd_learns_and_keeps_within_its_forecast(batch: int) -> None:
    features, labels = table(4000)
    best = risk(3 * np.ones(3) / math.sqrt(3), features, labels)
    for algorithm, epsilon in ((pure_dp_sgd, 8), (pure_dp_sgd_on_lattice, 4)):
        release = replayed("learns")(algorithm)(
            features,
            labels,
            loss=Logistic(),
            data_norm=1,
            radius=3,
            steps=60,
            epsilon=epsilon,
            batch=batch,
        )
        found = risk(release.value, features, labels)
        assert found < math.log(2) - 0.1
        assert isinstance(release.error, float)
        assert found - best <= release.error
        assert "NOT PRIVATE" in release.certificate.summary


def test_strongly_convex_averaging_finds_the_regularized_minimum() -> None:
    features = np.linspace(-1, 1, 20_000).reshape(-1, 1)
    labels, strength = features[:, 0] / 2, 0.5
    release = replayed("strong")(dp_sgd)(
        features,
        labels,
        loss=Squared(label_bound=1),
        data_norm=1,
        radius=1,
        epsilon=2,
        log_delta=-20.0,
        regularization=strength,
        steps=80,
        batch=20_000,
    )
    second = float(np.mean(features**2))
    assert abs(float(release.value[0]) - second / 2 / (second + strength)) < 0.02


@pytest.mark.parametrize("batch", [50, 9])
def test_nothing_in_the_data_raises_or_warns(batch: int) -> None:
    features, labels = table(50, 2)
    features[0], features[1, 1], features[2] = math.nan, math.inf, 1e300
    labels[3:6] = math.nan, 17.0, -math.inf
    for loss in (Logistic(), Hinge(), Squared(label_bound=1)):
        release = pure_dp_sgd(
            features, labels, loss=loss, data_norm=1, radius=1, epsilon=2, steps=4, batch=batch
        )
        assert Ball(2, 1).contains(release.value)


def test_one_row_has_no_corollary_1_but_can_be_run_with_given_parameters() -> None:
    row, label = np.ones((1, 2)), np.ones(1)
    options: dict[str, Any] = {"loss": Logistic(), "data_norm": 2, "radius": 1, "epsilon": 2}
    with pytest.raises(ParameterError, match="rows"):
        pure_dp_sgd(row, label, **options)
    release = pure_dp_sgd(row, label, mixing_weight="1/10", log_delta=-20.0, **options)
    assert verify(release.certificate)


def test_the_plan_states_the_seconds_of_the_printed_parameters_before_anything_runs() -> None:
    features, labels = table(100)
    printed = printed_parameters(rows=100, dimension=3, epsilon=1, delta="1e-9", lipschitz=1.0)
    options = {**OPTIONS, "steps": None, "epsilon": 1, "delta": "1e-9"}
    assert dp_sgd(features, labels, **options).seconds == printed.seconds
    longer = printed_parameters(rows=10_000, dimension=3, epsilon=1, delta="1e-9", lipschitz=1.0)
    assert longer.seconds > 1000 * printed.seconds  # T grows like n²
