"""The mean: exact laws of the real pipeline on all small neighbors, forecasts, bounds."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import arb, ctx

import zerodelta as zd
from purity import assert_pure
from tasks.disc_laws import disc_law
from tasks.noise_laws import law
from tasks.spying import first, recorded
from zerodelta.audit.exact import (
    datasets,
    max_log_ratio,
    neighbors,
)
from zerodelta.data.rows import Rows
from zerodelta.exact.logs import ball
from zerodelta.mechanisms.sum_noise import KNorm
from zerodelta.tasks import statistics as module
from zerodelta.tasks.statistics import mean, mean_methods

EPSILON, HALF = Fraction(3, 4), Fraction(1, 2)
CASES: dict[str, tuple[dict[str, Any], float]] = {
    "box": ({"bounds": (0, 2)}, math.inf),
    "l1": ({"data_norm": 1, "norm": 1}, 1),
    "l2": ({"data_norm": 1}, 2),
}


def sums_of(
    monkeypatch: pytest.MonkeyPatch, rows: list[Any], method: str, public: Any, steps: int = 1
) -> dict[Any, tuple[KNorm, tuple[int, ...]]]:
    """Mechanism and exact integer sums for every dataset, on a lattice of so many steps."""
    monkeypatch.setattr(module, "_steps", lambda *_: steps)
    calls = recorded(monkeypatch, KNorm, "apply", first)
    found = {}
    for table in datasets(rows, 2):
        mean(np.array(table, dtype=float), epsilon=EPSILON, method=method, **public)
        mechanism, sums, *_ = calls[-1]
        found[table] = mechanism, tuple(int(value) for value in sums)
    return found


def law_of(factor: Fraction | int) -> Callable[[Any], Any]:
    """The law of what is handed over, its noise times a factor."""
    return lambda handed: law(handed[0], handed[1], factor, low=-3, high=3, window=range(-3, 4))


@pytest.mark.parametrize("method", ["auto", "laplace", "k-norm", "k-norm-max"])
def test_one_column_is_pure_on_every_pair_of_neighbors(
    monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    found = sums_of(monkeypatch, [(0,), (1,), (2,), (9,), (math.nan,)], method, {"bounds": (0, 2)})
    by_sums = {(found[a], found[b]) for a, b in neighbors(found)}
    assert_pure(law_of(1), by_sums, epsilon=EPSILON, tight=True, mistake=law_of(HALF))


@pytest.mark.parametrize(
    ("name", "method"), [("box", "k-norm-max"), ("box", "laplace"), ("l1", "laplace")]
)
def test_two_columns_are_pure_on_every_pair_of_neighbors(
    monkeypatch: pytest.MonkeyPatch, name: str, method: str
) -> None:
    public, _ = CASES[name]
    rows = list(itertools.product((-1, 0, 1, 2), repeat=2))[:: 1 if name == "l1" else 2]
    found = sums_of(monkeypatch, rows, method, public)
    by_sums = {(found[a], found[b]) for a, b in neighbors(found)}
    assert len(by_sums) > 10
    assert_pure(law_of(1), by_sums, epsilon=EPSILON, mistake=law_of(HALF))


def plane_moves(monkeypatch: pytest.MonkeyPatch) -> tuple[KNorm, set[tuple[int, int]]]:
    """The mechanism for an l2 ball of two steps, and all moves of the sum of two rows."""
    rows = [*itertools.product((-1.0, -0.5, 0.0, 0.6, 1.0), repeat=2), (math.nan, 1.0), (0.0, 9.0)]
    found = sums_of(monkeypatch, rows, "k-norm", {"data_norm": 1}, steps=2)
    (mechanism,) = {noise for noise, _ in found.values()}
    sums = {table: total for table, (_, total) in found.items()}
    moves = {(sums[a][0] - sums[b][0], sums[a][1] - sums[b][1]) for a, b in neighbors(sums)}
    return mechanism, moves


def plane_loss(moves: set[tuple[int, int]], scale: Fraction) -> arb:
    """The largest loss over moves; noise is added, so nothing but the move matters."""
    largest = arb(0)
    for move in moves:
        largest = largest.max(max_log_ratio(disc_law((0, 0), scale, 12), disc_law(move, scale, 12)))
    return largest


def test_the_l2_ball_is_pure_on_every_pair_of_neighbors(monkeypatch: pytest.MonkeyPatch) -> None:
    """The law of the noisy sum, cell by cell; half of the noise is the radius for the diameter."""
    mechanism, moves = plane_moves(monkeypatch)
    assert (mechanism.norm, mechanism.dimension) == (2, 2)
    assert len(moves) > 20
    assert max(x * x + y * y for x, y in moves) == 16
    with ctx.workprec(200):
        loss = plane_loss(moves, mechanism.scale)
        assert ball(EPSILON * Fraction(99, 100)) < loss
        assert loss < ball(EPSILON)
        assert plane_loss(moves, mechanism.scale / 2) > ball(EPSILON)


def test_rows_that_are_not_pulled_into_the_l2_ball_are_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def unbounded(self: Any, columns: Any, lattice: Any) -> Any:
        rows = np.clip(np.concatenate(list(self.blocks())), -1, 1)
        return np.nan_to_num(np.rint(2 * rows)).sum(axis=0).astype(np.int64)

    monkeypatch.setattr(Rows, "sum", unbounded)
    mechanism, moves = plane_moves(monkeypatch)
    with ctx.workprec(200):
        assert plane_loss(moves, mechanism.scale) > ball(EPSILON)


@pytest.mark.parametrize("dimension", [1, 2, 5, 64])
@pytest.mark.parametrize("norm", [1, 2, math.inf])
@pytest.mark.parametrize("noise", [1, 2, math.inf])
def test_the_sensitivity_covers_the_worst_rows(dimension: int, norm: float, noise: float) -> None:
    """Unit vectors and vectors of equal coordinates are the extreme rows of the three balls."""
    stretch = module.stretch(norm, noise, dimension)
    for used in (1, dimension):
        length = 1.0 if norm == math.inf else used ** (-1 / norm)
        row = [length] * used
        reach = max(row) if noise == math.inf else sum(x**noise for x in row) ** (1 / noise)
        assert float(stretch) >= reach * (1 - 1e-12)
    assert float(stretch) <= max(1.0, dimension ** (1 / noise - (1 / norm if norm else 0))) * (
        1 + 1e-9
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dimension", "public", "best"),
    [
        (1, {"bounds": (0, 1)}, "k-norm-max"),
        (10, {"bounds": (0, 1)}, "k-norm-max"),
        (10, {"data_norm": 1}, "k-norm"),
        (10, {"data_norm": 1, "norm": 1}, "laplace"),
    ],
)
def test_forecasts_are_what_is_measured_and_the_pick_is_the_best(
    dimension: int, public: Any, best: str
) -> None:
    """600 repetitions of 10 coordinates: a standard error of at most 5 %; 1.25 is five of them."""
    rows = np.random.default_rng(1).random((2000, dimension)) / dimension
    truth, measured, forecast = rows.mean(axis=0), {}, {}
    for method in ("laplace", "k-norm", "k-norm-max"):
        releases = [mean(rows, epsilon=1, method=method, **public) for _ in range(600)]
        measured[method] = np.mean([np.abs(r.value - truth).mean() for r in releases])
        forecast[method] = releases[0].error
        assert 1 / 1.25 < measured[method] / forecast[method] < 1.25
    norm = public.get("norm", 2 if "data_norm" in public else math.inf)
    assert mean_methods(epsilon=1, n=2000, dimension=dimension, norm=norm)[0].name == best
    assert forecast[best] == min(forecast.values())


def test_quantizing_is_negligible() -> None:
    for n, epsilon in ((1, 1), (1000, Fraction(1, 10)), (10**7, 1), (10**6, 10)):
        for norm, dimension in ((2, 100), (math.inf, 1)):
            steps = module._steps(n, Fraction(epsilon), dimension, norm)
            noise = 2 / (n * Fraction(epsilon))
            assert Fraction(1, 2 * steps) <= noise / 50  # half a quantum, bound 1
            assert n * steps <= 2**62


def test_the_value_is_the_mean_up_to_noise_and_lies_within_the_bounds() -> None:
    rows = np.column_stack([np.full(10**5, 3.0), np.full(10**5, -40.0)])
    release = mean(rows, bounds=([0, -50], [10, 50]), epsilon=5)
    assert release.value == pytest.approx([3, -40], abs=0.02)
    assert zd.verify(release.certificate)
    assert release.certificate.status.value == "proven"
    for _ in range(20):
        assert 0 <= mean([0.5], bounds=(0, 1), epsilon="1/100").value <= 1
        assert np.linalg.norm(mean(np.ones((1, 3)), data_norm=1, epsilon="1/9").value) < 1 + 1e-9


def test_a_list_of_rows_is_a_table_and_an_odd_row_changes_no_other() -> None:
    rows: list[Any] = [[1, 4], (1.0, "4"), np.array([1, 4])] * 3000
    for odd in ([1, 4], 7, [7], [7, 7, 7], None):
        found = mean([rows[0], odd, *rows], bounds=([0, 0], [5, 5]), epsilon=5).value
        assert found == pytest.approx([1, 4], abs=0.02)
    assert mean([[1], [3]] * 3000, bounds=(0, 5), epsilon=5).value == pytest.approx(2, abs=0.02)
    assert mean([*([1, 3] * 3000), [1, 3]], bounds=(0, 5), epsilon=5).value == pytest.approx(
        2, abs=0.02
    )
    with pytest.raises(zd.errors.ParameterError, match=r"^columns of rows = 2"):
        zd.median([[1, 2], [3, 4]], bounds=(0, 5), epsilon=1)
    with pytest.raises(zd.errors.ParameterError, match=r"^columns of rows = 2"):
        zd.trimmed_mean([[1, 2], [3, 4]], trim="1/10", bounds=(0, 5), epsilon=1)
