"""Intervals cover with at least their level, computed exactly or from draws with fixed bits."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from mechanisms.exact_laws import counts_pmf
from reference.row_polynomials import coordinates, weights
from zerodelta.audit.exact import discrete_laplace_pmf
from zerodelta.exact.bits import ReplayBits
from zerodelta.exact.noise import discrete_laplace, rounded_count_noise, rounded_k_norm
from zerodelta.exact.noise_tails import NoiseLaw
from zerodelta.exact.sums import BernsteinCells, ChebyshevBlock
from zerodelta.privacy.intervals import Level, intervals
from zerodelta.privacy.statistics import Measurement

LEVEL = Level(level=Fraction(19, 20))


def floats(pmf: Any) -> float:
    return float(pmf.ball().mid()) if hasattr(pmf, "ball") else float(pmf)


def laplace(scale: int | Fraction) -> NoiseLaw:
    return NoiseLaw(family="geometric", scale=Fraction(scale), unit=Fraction(1))


def table(law: NoiseLaw, integers: Any, row: Any, statistic: Any, **more: Any) -> Measurement:
    forms = tuple((*row.form(power, 0), Fraction(0)) for power in range(row.degrees[0] + 1))
    return Measurement(
        law=law,
        integers=np.asarray(integers),
        forms={"y": forms},
        bounds={"y": (Fraction(-1), Fraction(1))},
        statistics={"y": ("y", statistic)},
        **more,
    )


def covered(found: dict[str, Any], name: str, truth: float) -> Any:
    low, high = found[name]
    return (low <= truth) & (truth <= high)


@pytest.mark.parametrize("truth", [(5, 3), (40, 2), (3, 3), (0, 9)])
def test_fieller_covers_for_every_noise_that_laplace_pairs_can_have(truth: tuple[int, int]) -> None:
    """P1 with M = 2 at ε = 1, all outcomes: the mean of (v - u)/(u + v)."""
    scale, far = Fraction(4), 60
    mass = np.array([floats(discrete_laplace_pmf(k, scale=scale)) for k in range(-far, far + 1)])
    noise = np.array(list(itertools.product(range(-far, far + 1), repeat=2)))
    weights = np.outer(mass, mass).reshape(-1)
    sums = table(laplace(scale), noise + np.array(truth), BernsteinCells(degree=1, steps=1), "mean")
    mean = (truth[1] - truth[0]) / sum(truth)
    right = covered(intervals([sums], LEVEL), "y", mean)
    assert weights[right].sum() >= 0.95
    assert weights[right].sum() <= 0.985  # not by much: rounding is a quarter of the noise here


def test_fieller_covers_for_every_noise_that_two_counts_can_have() -> None:
    """P2 with p = 2: whether the true mean is excluded, outcome by outcome."""
    scale, far, truth = Fraction(3), 24, (6, 4)
    law = NoiseLaw(family="counts", scale=scale, unit=Fraction(1), dimension=2)
    m = (truth[1] - truth[0]) / sum(truth)
    line = np.array([[-(1 + m), 1 - m]])  # (v - u) - m (u + v)
    total = 0.0
    cells = itertools.product(range(-far, far + 1), repeat=2)
    for cell in cells:
        gap = abs(line[0] @ np.array(cell)) - np.abs(line).sum() / 2
        if not law.noise.exceeded(line, np.array([gap]), Fraction(1, 20))[0]:
            total += floats(
                counts_pmf(tuple(map(abs, cell)) if cell[0] * cell[1] > 0 else cell, scale)
            )
    assert 0.95 <= total <= 0.985


RUNS = 10_000


def drawn(family: str, runs: int = RUNS) -> tuple[NoiseLaw, Any, Any]:
    """Noise lines of a law, and what a row adds."""
    bits = ReplayBits("intervals")
    if family == "laplace":
        noise = discrete_laplace(scale=2000, size=2 * runs, bits=bits).reshape(runs, 2)
        return laplace(2000), noise, BernsteinCells(degree=1, steps=500)
    if family == "triple":
        noise = discrete_laplace(scale=80_000, size=3 * runs, bits=bits).reshape(runs, 3)
        return laplace(80_000), noise, BernsteinCells(degree=2, steps=100)
    if family == "block":
        noise = rounded_k_norm(norm=math.inf, dimension=3, scale=20_000, size=runs, bits=bits)
        law = NoiseLaw(
            family="k-norm", norm=math.inf, scale=Fraction(20_000), unit=Fraction(1), dimension=3
        )
        return law, noise, ChebyshevBlock(columns=1, degree=2, steps=100)
    each = [rounded_count_noise(dimension=2, scale=1000, bits=bits) for _ in range(runs)]
    law = NoiseLaw(family="counts", scale=Fraction(1000), unit=Fraction(1), dimension=2)
    return law, np.array(each), BernsteinCells(degree=1, steps=500)


@pytest.mark.parametrize("family", ["laplace", "triple", "block"])
@pytest.mark.parametrize("rows", [30, 1000])
def test_means_are_covered_as_often_as_said_and_no_more(family: str, rows: int) -> None:
    law, noise, row = drawn(family)
    steps = row.steps
    y = np.random.default_rng(5).integers(-steps // 2, steps, size=rows)
    adds = coordinates(row, y[:, None]) if family == "block" else weights(row, y)
    sums = table(law, adds.sum(axis=0) + noise, row, "mean")
    share = covered(intervals([sums], LEVEL), "y", float(y.mean() / steps)).mean()
    assert 0.943 <= share <= 0.957


@pytest.mark.parametrize("family", ["triple", "block"])
def test_deviations_are_covered(family: str) -> None:
    law, noise, row = drawn(family)
    y = np.random.default_rng(6).integers(-100, 101, size=400)
    adds = coordinates(row, y[:, None]) if family == "block" else weights(row, y)
    for statistic, truth in (("std", y.std() / 100), ("variance", y.var() / 100**2)):
        sums = table(law, adds.sum(axis=0) + noise, row, statistic)
        assert covered(intervals([sums], LEVEL), "y", float(truth)).mean() >= 0.95


def test_the_box_of_a_deviation_has_half_of_a_for_each_side() -> None:
    """Its corners follow from two ratios, the means of y and y², at half of a."""
    law, _, row = drawn("block", runs=1)
    lines = coordinates(row, np.arange(-100, 101)[:, None]).sum(axis=0)[None, :]
    half = Level(level=Fraction(39, 40))
    (first_low,), (first_high,) = intervals([table(law, lines, row, "mean")], half)["y"]
    (low,), (high,) = intervals([table(law, lines, row, "variance")], LEVEL)["y"]
    assert first_low == pytest.approx(-first_high, rel=1e-3)
    forms = (table(law, lines, row, "mean").forms["y"][i] for i in (0, 2))
    second = Measurement(
        law=law,
        integers=lines,
        forms={"y": tuple(forms)},
        bounds={"y": (Fraction(-1), Fraction(1))},
        statistics={"y": ("y", "mean")},
    )
    (second_low,), (second_high,) = intervals([second], half)["y"]
    assert low == pytest.approx(second_low - first_high**2, rel=1e-6)
    assert high == pytest.approx(second_high, rel=1e-6)


def test_joint_counts_noise_is_covered_too() -> None:
    law, noise, row = drawn("counts", runs=200)
    y = np.random.default_rng(7).integers(-500, 501, size=50)
    sums = table(law, weights(row, y).sum(axis=0) + noise, row, "mean", joint=True)
    assert covered(intervals([sums], LEVEL), "y", float(y.mean() / 500)).mean() >= 0.93


def counts(scale: int, integers: Any, **more: Any) -> Measurement:
    return Measurement(
        law=laplace(scale),
        integers=np.asarray(integers).reshape(-1, 1),
        forms={None: ((Fraction(1), Fraction(0)),)},
        bounds={},
        statistics={"count": (None, "count")},
        **more,
    )


@pytest.mark.parametrize("cells", [2, 7, 100])
def test_simultaneous_intervals_are_the_smallest_that_cover_all_cells(cells: int) -> None:
    scale = 3
    sums = counts(scale, np.full(cells, 1000))
    low, high = intervals([sums], Level(level=Fraction(9, 10), simultaneous=True))["count"]
    (k,) = set(high - 1000)
    assert set(low) == {1000 - k}

    def all_of(k: int) -> float:
        q = math.exp(-1 / scale)
        return float((1 - 2 * q ** (k + 1) / (1 + q)) ** cells)

    assert all_of(k) >= 0.9 > all_of(k - 1)


def test_what_the_others_leave_is_not_taken_for_independent_of_them() -> None:
    """Of 7 counts that add up the last has the noise of all others: shares of a add up."""
    together = Level(level=Fraction(9, 10), simultaneous=True)
    free = counts(3, np.full(6, 1000), rows=9000, rest=6)
    assert together.share([free], 1) == Fraction(1, 70)
    assert together.share([counts(3, np.full(7, 1000))], 1) > Fraction(1, 70)


def test_known_facts_cut_intervals_and_leave_a_point_at_worst() -> None:
    low, high = intervals([counts(2, [-40, 1, 5, 99], rows=20)], LEVEL)["count"]
    assert low.tolist() == [0, 0, 0, 20]
    assert high.tolist() == [0, 7, 11, 20]


def test_a_group_without_a_positive_count_may_have_any_mean() -> None:
    row = BernsteinCells(degree=1, steps=10)
    sums = table(laplace(40), [[-3000, -2000], [20, -20], [4000, 4000]], row, "mean")
    low, high = intervals([sums], LEVEL)["y"]
    assert (low[0], high[0]) == (low[1], high[1]) == (-1, 1)
    assert -0.1 < low[2] < 0 < high[2] < 0.1


def test_quantizing_is_added() -> None:
    row = BernsteinCells(degree=1, steps=10)
    one, other = (
        intervals([table(laplace(1), [[4000, 6000]], row, "mean", resolution=r)], LEVEL)["y"]
        for r in (Fraction(0), Fraction(1, 20))
    )
    assert one[0] - other[0] == pytest.approx(0.05)
    assert other[1] - one[1] == pytest.approx(0.05)


def test_population_intervals_cover_and_units_make_them_wider() -> None:
    """Rows of a biased coin, drawn anew with the noise: Hoeffding's bound is far from tight."""
    generator, runs, n = np.random.default_rng(9), 400, 200
    row = BernsteinCells(degree=2, steps=2)
    noise = discrete_laplace(scale=32, size=3 * runs, bits=ReplayBits("p")).reshape(runs, 3)
    y = np.where(generator.uniform(size=(runs, n)) < 0.3, 2, -2)
    lines = np.array([weights(row, each).sum(axis=0) for each in y]) + noise
    truths = {"mean": -0.4, "std": math.sqrt(1 - 0.16), "variance": 1 - 0.16}
    for statistic, truth in truths.items():
        sums = table(laplace(32), lines, row, statistic)
        found = intervals([sums], Level(level=Fraction(9, 10), population=True))
        assert covered(found, "y", truth).mean() >= 0.9
        units = Level(level=Fraction(9, 10), population=True, unit_rows=3)
        wide = intervals([sums], units)
        assert np.all(wide["y"][1] - wide["y"][0] >= found["y"][1] - found["y"][0])
    sample = intervals([table(laplace(32), lines, row, "mean")], Level(level=Fraction(9, 10)))["y"]
    asked = Level(level=Fraction(9, 10), population=True)
    low, high = intervals([table(laplace(32), lines, row, "mean")], asked)["y"]
    assert np.all(low < sample[0])
    assert np.all(high > sample[1])


def test_a_variance_helps_where_values_are_close_together() -> None:
    """Empirical Bernstein: many rows near each other, at hardly any noise."""
    near = np.zeros(100_000, dtype=np.int64)
    triple, pair = BernsteinCells(degree=2, steps=50), BernsteinCells(degree=1, steps=50)
    asked = Level(level=Fraction(19, 20), population=True)
    widths = []
    for row in (triple, pair):
        lines = weights(row, near).sum(axis=0)[None, :]
        low, high = intervals([table(laplace(1), lines, row, "mean")], asked)["y"]
        widths.append(float(high[0] - low[0]))
    assert widths[0] < widths[1] / 5
    far = 2 * math.sqrt(2 * math.log(2 / (0.05 / 3)) / 100_000)
    assert widths[1] == pytest.approx(far, rel=1e-2)
    units = Level(level=Fraction(19, 20), population=True, unit_rows=4)
    lines = weights(pair, near).sum(axis=0)[None, :]
    low, high = intervals([table(laplace(1), lines, pair, "mean")], units)["y"]
    assert high[0] - low[0] == pytest.approx(4 * far, rel=1e-2)


def test_the_more_precise_of_two_counts_is_taken() -> None:
    wide, tight = counts(20, [100]), counts(1, [100])
    for order in ([wide, tight], [tight, wide]):
        low, high = intervals(order, LEVEL)["count"]
        assert (low[0], high[0]) == (97, 103)
