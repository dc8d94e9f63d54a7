"""Trimmed means: smooth sensitivity by brute force, exact laws of all methods, forecasts."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from flint import arb, ctx

import zerodelta as zd
from data.opening import opened
from paper.test_propose_test_release import free_law
from purity import assert_pure
from reference.chi_square import goodness_of_fit
from tasks.noise_laws import laplace
from zerodelta.audit.exact import (
    Law,
    certainly_impure,
    certainly_pure,
    datasets,
    max_log_ratio,
    rounded_laplace_pmf,
)
from zerodelta.data.arrays import ArraySource
from zerodelta.errors import GuaranteeError, ParameterError
from zerodelta.exact.bits import ReplayBits
from zerodelta.exact.logs import ball
from zerodelta.mechanisms import noisy_test as smooth_noise
from zerodelta.mechanisms.noisy_test import SmoothNoise, best_smooth_noise
from zerodelta.mechanisms.stable_queries import TrimmedMean, order_of, reaches
from zerodelta.privacy.theorems.testing import largest_noise_ratio, smooth_sensitivity_epsilon
from zerodelta.tasks import robust as module
from zerodelta.tasks.robust import trimmed_mean, trimmed_mean_methods
from zerodelta.testing import replayed

F = Fraction
STEPS, COUNT = 2, 4
EVERY = [d for d in datasets(range(-STEPS, STEPS + 1), COUNT) if d == tuple(sorted(d))]
PAIRS = sorted(
    {
        (tuple(sorted(a)), tuple(sorted((*a[:-1], x))))
        for a in datasets(range(-STEPS, STEPS + 1), COUNT)
        for x in range(-STEPS, STEPS + 1)
    }
)


def total(rows: tuple[int, ...], trim: int) -> int:
    return sum(sorted(rows)[trim : len(rows) - trim])


@cache
def local(rows: tuple[int, ...], trim: int) -> int:
    return max(abs(total(rows, trim) - total(b, trim)) for a, b in PAIRS if a == rows)


def smooth(noise: SmoothNoise, rows: tuple[int, ...], trim: int) -> Fraction:
    order = order_of(np.array(rows), steps=STEPS)
    return noise.sensitivity(order, count=COUNT, trim=trim, steps=STEPS)


@pytest.mark.parametrize("trim", [0, 1])
def test_reaches_are_the_largest_local_sensitivities_within_k_changes(trim: int) -> None:
    within = {d: {d} for d in EVERY}
    for k in range(COUNT + 1):
        for d in EVERY:
            order, changes = order_of(np.array(d), steps=STEPS), np.array([k])
            (found,) = reaches(order, kept=(trim + 1, COUNT - trim), changes=changes)
            assert found == max(local(other, trim) for other in within[d])
        within = {d: {b for a, b in PAIRS if a in near} for d, near in within.items()}


@pytest.mark.parametrize("trim", [0, 1])
@pytest.mark.parametrize("decay", [F(1, 2), F(9, 10), F(60000, 65536)])
def test_the_smooth_sensitivity_is_smooth_on_every_pair_of_neighbors(
    trim: int, decay: Fraction
) -> None:
    noise = SmoothNoise.of(epsilon=3, degrees=3, decay=decay)
    found = {d: smooth(noise, d, trim) for d in EVERY}
    assert all(found[d] >= local(d, trim) and found[d] > 0 for d in EVERY)
    assert all(found[a] * decay <= found[b] for a, b in PAIRS)


@pytest.mark.parametrize("trim", [0, 1])
@pytest.mark.parametrize("most", [1, 2, 3])
def test_what_lies_beyond_the_last_change_counts_as_the_whole_range(
    trim: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of many rows only so many changes are looked at; it is smooth all the same."""
    monkeypatch.setattr(smooth_noise, "_MOST_CHANGES", most)
    noise = SmoothNoise.of(epsilon=3, degrees=3, decay=F(9, 10))
    found = {d: smooth(noise, d, trim) for d in EVERY}
    assert len(noise.weights(COUNT)) == most + 1
    assert all(found[d] >= local(d, trim) for d in EVERY)
    assert all(found[a] * F(9, 10) <= found[b] for a, b in PAIRS)


def student_tail(x: Fraction, degrees: Fraction) -> arb:
    """P(T > x) = I_{ν/(ν+x²)}(ν/2, 1/2)/2 for x >= 0."""
    if x < 0:
        return 1 - student_tail(-x, degrees)
    part = ball(degrees / (degrees + x * x))
    return part.beta_lower(ball(degrees / 2), ball(F(1, 2)), regularized=True) / 2


def smooth_law(center: int, scale: Fraction, degrees: Fraction, reach: int) -> Law:
    """The law of center + round(scale · T) on -reach..reach and beyond."""
    with ctx.workprec(256):
        tails = [
            student_tail((y - F(1, 2) - center) / scale, degrees) for y in range(-reach, reach + 2)
        ]
        law: dict[Any, arb] = {
            y: tails[i] - tails[i + 1] for i, y in enumerate(range(-reach, reach + 1))
        }
        return {-math.inf: 1 - tails[0], **law, math.inf: tails[-1]}


@pytest.mark.parametrize(
    ("degrees", "decay"), [(1, F(3, 4)), (2, F(4, 5)), (3, F(9, 10)), (6, F(15, 16))]
)
@pytest.mark.parametrize("trim", [0, 1])
def test_smooth_sensitivity_is_pure_on_every_pair_of_neighbors(
    degrees: int, decay: Fraction, trim: int
) -> None:
    epsilon = F(3, 2)
    noise = SmoothNoise.of(epsilon=epsilon, degrees=degrees, decay=decay)
    laws, half = {}, {}
    for d in EVERY:
        scale = smooth(noise, d, trim) / noise.ratio
        laws[d] = smooth_law(total(d, trim), scale, noise.degrees, 12)
        half[d] = smooth_law(total(d, trim), scale / 2, noise.degrees, 12)
    assert_pure(laws, PAIRS, epsilon=epsilon, mistake=half if trim else None)


def test_the_theorem_is_nearly_attained_and_the_local_sensitivity_alone_is_caught() -> None:
    """S and q both move, on a fine lattice; noise scaled to LS itself is not private."""
    epsilon, decay = F(1), F(9, 10)
    noise = SmoothNoise.of(epsilon=epsilon, degrees=3, decay=decay)
    size = 100 * noise.ratio
    cells = range(0, 2000, 20)

    def law(center: int, scale: Fraction) -> Law:
        with ctx.workprec(256):
            return {
                y: student_tail((y - F(1, 2) - center) / scale, noise.degrees)
                - student_tail((y + F(1, 2) - center) / scale, noise.degrees)
                for y in cells
            }

    near = law(0, size / noise.ratio)
    far = law(-math.floor(size * decay), size * decay / noise.ratio)
    assert certainly_pure(near, far, epsilon)
    assert float(max_log_ratio(near, far)) > 0.9
    jumped = law(0, size / noise.ratio / 100)  # a local sensitivity that falls to a hundredth
    assert certainly_impure(near, jumped, epsilon)


def test_the_theorem_s_formula_and_its_inverse() -> None:
    for nu in (1, 2, 3, 6):
        for share in (F(1, 10), F(1, 2), F(9, 10)):
            epsilon = F(1)
            decay = F(math.exp(-float(epsilon * share / nu)))
            c = largest_noise_ratio(epsilon=epsilon, degrees=nu, decay=decay)
            beta = -math.log(decay)
            formula = ((nu + 1) * math.sqrt(float(c) ** 2 / nu + beta**2) + (nu - 1) * beta) / 2
            assert formula == pytest.approx(1, rel=1e-12)
            grid = np.tan(np.linspace(0, math.pi / 2, 20_001)[:-1]) * math.sqrt(nu)
            slope = (nu + 1) * grid / (nu + grid**2)
            sup = float((float(c) * slope + beta * np.abs(1 - grid * slope)).max())
            assert sup == pytest.approx(1, rel=1e-6)  # theorem SS is this supremum
            with pytest.raises(GuaranteeError):
                smooth_sensitivity_epsilon(
                    epsilon=epsilon, degrees=nu, decay=decay, ratio=c * (1 + F(1, 10**9))
                )
    with pytest.raises(GuaranteeError):
        largest_noise_ratio(epsilon=1, degrees=3, decay="0.5")
    wrongs: list[dict[str, Any]] = [{"degrees": "1/2"}, {"decay": 1}, {"decay": 0}, {"epsilon": 0}]
    for wrong in wrongs:
        with pytest.raises(ParameterError):
            largest_noise_ratio(**{"epsilon": 1, "degrees": 3, "decay": "0.9", **wrong})


@pytest.fixture
def coarse(monkeypatch: pytest.MonkeyPatch) -> None:
    """Five values a row."""
    monkeypatch.setattr(module, "_steps", lambda *_: STEPS)


def as_table(rows: tuple[int, ...]) -> Any:
    return np.array(rows, dtype=float)


@pytest.mark.usefixtures("coarse")
@pytest.mark.parametrize("method", ["smooth-sensitivity", "laplace"])
def test_the_release_has_the_law(method: str) -> None:
    rows, bounds = (-2, 0, 1, 1), (-2, 2)
    public: dict[str, Any] = {"trim": "1/4", "bounds": bounds, "epsilon": 2, "method": method}
    step = trimmed_mean(as_table(rows), **public).certificate.steps[0]
    if method == "laplace":
        scale = F(str(step.numbers["scale"]))
        law: Any = {y: rounded_laplace_pmf(y - 1, scale=scale) for y in range(-60, 61)}
    else:
        numbers = {name: F(str(value)) for name, value in step.numbers.items()}
        noise = SmoothNoise(**numbers)
        law = smooth_law(1, smooth(noise, rows, 1) / noise.ratio, noise.degrees, 60)
    expected = dict.fromkeys(range(-4, 5), 0.0)  # clamped to the bounds: sums -4..4
    for y, p in law.items():
        expected[int(min(max(y, -4), 4))] += float(p)
    bits = ReplayBits(method)
    drawn = Counter(
        round(2 * replayed(bits)(trimmed_mean)(as_table(rows), **public).value) for _ in range(2000)
    )
    assert goodness_of_fit([drawn[y] for y in expected], list(expected.values())) > 1e-4


@pytest.mark.usefixtures("coarse")
def test_propose_test_release_is_pure_on_every_pair_of_neighbors() -> None:
    public: dict[str, Any] = {"trim": "1/4", "bounds": (-2, 2), "epsilon": 1, "spread": "1/2"}
    release = trimmed_mean(as_table(EVERY[0]), **public, method="propose-test-release")
    assert zd.verify(release.certificate)
    numbers = release.certificate.steps[0].numbers
    query = TrimmedMean(bounds=(-2, 2), steps=STEPS, trim=1)
    split = F(str(numbers["test_epsilon"])), F(str(numbers["release_epsilon"]))
    tau, bound = F(str(numbers["threshold"])), int(str(numbers["sensitivity"]))
    assert sum(split) == 1
    laws = {d: free_law(query, d, bound, split, tau, "real") for d in EVERY}
    assert_pure(laws, PAIRS, epsilon=1)


@pytest.mark.usefixtures("coarse")
def test_laplace_noise_is_pure_on_every_pair_of_neighbors() -> None:
    release = trimmed_mean(
        as_table(EVERY[0]), trim="1/4", bounds=(-2, 2), epsilon=1, method="laplace"
    )
    scale = F(str(release.certificate.steps[0].numbers["scale"]))

    full, half = (
        lambda center, scale=used: laplace(center, scale, low=-9, high=9)
        for used in (scale, scale / 2)
    )
    sums = {(total(a, 1), total(b, 1)) for a, b in PAIRS}
    assert_pure(full, sums, epsilon=1, mistake=half)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "epsilon"), [(1000, 1), (10_000, "1/2")])
def test_forecasts_for_normal_rows(n: int, epsilon: Any) -> None:
    """Three datasets, 60 releases each of heavy-tailed noise: within 1.5 of the forecast."""
    public: dict[str, Any] = {"trim": "0.1", "bounds": (0, 100), "spread": 4}
    for method in trimmed_mean_methods(epsilon=epsilon, n=n, **public):
        errors = []
        for seed in range(3):
            rows = np.random.default_rng(seed).normal(50, 4, n)
            cut = n // 10
            truth = np.sort(rows)[cut : n - cut].mean()
            for _ in range(60):
                release = trimmed_mean(rows, epsilon=epsilon, method=method.name, **public)
                errors.append(abs(release.value - truth))
        measured = float(np.mean(errors))
        assert 1 / 1.5 < measured / method.error < 1.5


def test_the_default_fits_the_size_of_the_data() -> None:
    few = trimmed_mean_methods(epsilon="1/2", n=5, trim=0.1)
    assert few[0].name == "laplace"
    many = trimmed_mean_methods(epsilon=1, n=10**5, trim=0.1)
    assert many[0].name == "smooth-sensitivity"
    assert [m.error for m in many if m.name == "propose-test-release"] == [math.inf]
    guessed = trimmed_mean_methods(epsilon=1, n=10**5, trim=0.1, spread="1/20")
    tested = next(m for m in guessed if m.name == "propose-test-release")
    assert tested.error < 1.5 * guessed[0].error


@pytest.mark.parametrize("epsilon", ["1/10", "1/2", 2])
@pytest.mark.parametrize("n", [100, 1000, 10_000])
def test_without_a_guess_no_spread_costs_much_more_than_with_the_right_one(
    n: int, epsilon: Any
) -> None:
    """Least worst regret: below 2.5 for all spreads from a tenth to a millionth of the width."""
    changes = np.unique(np.geomspace(1, min(n, 4000), 200).astype(np.int64)) - 1
    plan = module.TrimmedMeanQuestion(trim="0.1", bounds=(0, 1)).tuned(n, epsilon)
    for power in np.linspace(1, 6, 16):
        guess = 10 ** -float(power)
        reach = module._model(n, n // 10, 2**30, guess * 2**31, changes)
        best = best_smooth_noise(epsilon=F(epsilon), guesses=[reach], changes=changes)
        regret = plan.smooth.error(reach, changes) / best.error(reach, changes)
        assert regret < 2.5


def test_wide_bounds_do_not_ruin_the_default() -> None:
    """Incomes within a billion: noise for a spread of a tenth of the width errs by 1e5 and more."""
    rows = np.random.default_rng(5).lognormal(10, 1, 10_000)
    truth = np.sort(rows)[1000:9000].mean()
    errors = [
        abs(trimmed_mean(rows, trim="0.1", bounds=(0, 10**9), epsilon="1/10").value - truth)
        for _ in range(40)
    ]
    assert np.median(errors) < 1000


@pytest.mark.parametrize("spread", [None, 1])
def test_rounding_to_the_lattice_is_far_below_the_noise(spread: Any) -> None:
    """Equal rows between two points of a wide lattice; the noise is for 1."""
    rows = np.random.default_rng(5).normal(0.37, 0.01, 10_000)
    public: dict[str, Any] = {"trim": "0.1", "bounds": (-(10**8), 10**8), "spread": spread}
    plan = module.TrimmedMeanQuestion(**public).tuned(len(rows), 1)
    quantum = 10**8 / plan.query.steps
    assert quantum < 1e-3
    kept = plan.query.read(opened(ArraySource(rows)))[1000:9000]
    assert abs(plan.value(int(kept.sum())) - np.sort(rows)[1000:9000].mean()) < quantum


def test_without_a_guess_the_error_is_said_to_depend_on_unseen_data() -> None:
    """Both ends of what is said are the forecasts with the guesses that they are for."""
    public: dict[str, Any] = {"trim": 0.1, "bounds": (0, 1000), "epsilon": 1}
    guessed = trimmed_mean(np.linspace(20, 60, 1000), spread=100, **public)
    said = trimmed_mean(np.linspace(20, 60, 1000), **public).error
    assert isinstance(guessed.error, float)
    assert isinstance(said, str)
    assert said.startswith("depends on unseen data: from ")
    narrow, wide = (float(word) for word in re.findall(r"\d\S*e\S+|\d+\.\d+", said))
    assert 0 < narrow < wide / 100
    assert 1 / 2.5 < guessed.error / wide <= 1.1


def test_only_plain_noise_is_kept_with_the_release() -> None:
    public: dict[str, Any] = {"trim": "0.1", "bounds": (0, 10), "epsilon": 1, "spread": 1}
    for method in ("smooth-sensitivity", "propose-test-release", "laplace"):
        release = trimmed_mean(np.linspace(0, 10, 100), method=method, **public)
        assert (release.noise is None) is (method != "laplace")
        if release.noise is not None:
            expected = float(release.noise.scale * release.noise.unit)  # type: ignore[operator]
            assert expected == pytest.approx(float(release.error), rel=1e-3)


def test_where_more_changes_weigh_nothing_the_sensitivity_is_that_of_one_row() -> None:
    """Every row replaced by every value; the mean leaves out one row at each end."""
    noise = SmoothNoise(epsilon=F(1), degrees=F(2), decay=F(1, 2**30), ratio=F(1))
    values = range(-2, 3)

    def kept(rows: tuple[int, ...]) -> int:
        return sum(sorted(rows)[1:-1])

    for rows in itertools.combinations_with_replacement(values, 5):
        moved = max(
            abs(kept((*rows[:i], value, *rows[i + 1 :])) - kept(rows))
            for i in range(5)
            for value in values
        )
        order = order_of(np.array(rows), steps=2)
        found = noise.sensitivity(order, count=5, trim=1, steps=2)
        assert moved <= found < moved + F(1, 1000)
