"""Measure studies that train a model: lines (d) and (f) of `bench/study.py`.

(d): `Study.minimize` as shipped, with its defaults, on seeds that tuned nothing. Rivals get the
same network, start, ball and clipping, and noise of their exact scale in floats (which changes no
number below); they are tuned on other seeds of each data set, ours is not. (f): as shipped, beside
plain NumPy. Replace-one neighbors.
"""

from __future__ import annotations

import math
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table
from sklearn.datasets import make_circles, make_moons

from zerodelta.privacy.claims import calibrate
from zerodelta.spaces import Ball
from zerodelta.study.study import Study
from zerodelta.training.descent import StepSizes
from zerodelta.training.losses import Logistic
from zerodelta.training.models import TanhNetwork

Floats: TypeAlias = npt.NDArray[np.float64]

# -- (d) a network of tanh units -------------------------------------------------------------------

RADIUS, ROUNDS, HELD_OUT = "2.5", 100, 4000
OTHER_SEEDS, FRESH_SEED = range(2000, 2040), 1000


@dataclass(frozen=True, kw_only=True)
class Problem:
    """Rows (features, label) of a seed, and the network with its public bounds."""

    name: str
    network: TanhNetwork
    make: Callable[[int, int], Floats]

    def split(self, rows: int, seed: int) -> tuple[Floats, Floats]:
        """Return rows to train on and rows to test on."""
        made = self.make(rows + HELD_OUT, seed)
        return made[:rows], made[rows:]

    def accuracy(self, theta: Floats, rows: Floats) -> float:
        return float((self.network.predict(theta, rows[:, :-1]) == rows[:, -1]).mean())


def _moons(noise: float) -> Problem:
    def make(rows: int, seed: int) -> Floats:
        return np.column_stack(make_moons(rows, noise=noise, random_state=seed))

    network = TanhNetwork(lower=("-1.5", -1), upper=("2.5", "1.5"))
    return Problem(name=f"two moons, noise {noise}", network=network, make=make)


def _exclusive_or(rows: int, seed: int) -> Floats:
    x = np.random.default_rng(seed).uniform(-1, 1, size=(rows, 2))
    return np.column_stack([x, x[:, 0] * x[:, 1] > 0])


def _circles(rows: int, seed: int) -> Floats:
    return np.column_stack(make_circles(rows, noise=0.1, factor=0.4, random_state=seed))


def _blobs(rows: int, seed: int) -> Floats:
    rng = np.random.default_rng(seed)
    centers = np.array([[0.5, 0, 0.2, 0.1], [-0.3, 0.4, 0, -0.2], [-0.2, -0.4, -0.2, 0.3]])
    labels = rng.integers(3, size=rows)
    return np.column_stack([centers[labels] + 0.2 * rng.normal(size=(rows, 4)), labels])


TUNED_ON = (_moons(0.1), _moons(0.15))
NOT_TUNED_ON = (
    Problem(
        name="exclusive or", network=TanhNetwork(lower=(-1, -1), upper=(1, 1)), make=_exclusive_or
    ),
    Problem(
        name="circles",
        network=TanhNetwork(lower=("-1.3", "-1.3"), upper=("1.3", "1.3")),
        make=_circles,
    ),
    Problem(
        name="three blobs in 4-d",
        network=TanhNetwork(lower=(-1,) * 4, upper=(1,) * 4, classes=(0, 1, 2)),
        make=_blobs,
    ),
)


def by_study(problem: Problem, rows: Floats) -> Floats:
    """Return what `Study.minimize` publishes at ε = 1, with its defaults."""
    network = problem.network
    study = Study(
        rows,
        epsilon=1,
        publish=Ball(network.parameters, RADIUS, center=network.start()),
        rounds=ROUNDS,
        mixing_probability=min(Fraction(1, 100), Fraction(10, len(rows))),
    )
    return np.asarray(study.minimize(network).value)


def float_descent(
    network: TanhNetwork, rows: Floats, sizes: StepSizes, noise: Callable[[int], Floats]
) -> Floats:
    """Return the end of the descent that `minimize` runs, with other noise on mean gradients."""
    start = network.start()
    theta, kept = start, []
    for t, size in enumerate(sizes.sizes()):
        gradients = network.gradient(theta, rows)
        lengths = np.sqrt((gradients * gradients).sum(axis=1))
        mean = gradients.T @ (1 / np.maximum(1, lengths)) / len(rows)
        moved = theta - size * (mean + noise(t)) - start
        theta = start + moved / max(1.0, float(np.linalg.norm(moved)) / float(RADIUS))
        if t >= sizes.count - sizes.averaged:
            kept.append(theta)
    end: Floats = np.mean(kept, axis=0)
    return end


Setting: TypeAlias = tuple[float, ...]
Rival: TypeAlias = Callable[[Problem, Floats, Setting, np.random.Generator], Floats]


def _schedule(count: int, path: float, average: float) -> StepSizes:
    return StepSizes(count=count, first=2 * path / (count + 1), average=Fraction(str(average)))


def pure_composition(
    problem: Problem, rows: Floats, setting: Setting, rng: np.random.Generator
) -> Floats:
    """T steps with l2 K-norm noise, whose ε_t add up to 1, more for steps that count more.

    ε_t ∝ weight^⅓ does better than equal shares, and than ⅔, the best if nothing fed back.
    """
    steps, path, average = setting
    sizes = _schedule(int(steps), path, average)
    shares = sizes.weights() ** (1 / 3)
    scales = shares.sum() / shares * 2 / len(rows)
    dimension = problem.network.parameters

    def noise(t: int) -> Floats:
        direction = rng.normal(size=dimension)
        drawn: Floats = direction / np.linalg.norm(direction) * rng.gamma(dimension) * scales[t]
        return drawn

    return float_descent(problem.network, rows, sizes, noise)


def approximate(
    problem: Problem, rows: Floats, setting: Setting, rng: np.random.Generator
) -> Floats:
    """The same descent with Gaussian noise for (1, 1e-6), published as it is.

    The same rule for its path, too: noise of a share (its own) of the radius, at most 160.
    """
    network = problem.network
    mu_squared = calibrate(epsilon=1, log_delta=math.log(1e-6)).mu_squared
    unit = _schedule(ROUNDS, 1, 0.2)
    noise_of_unit = unit.spread() * 2 / len(rows) * math.sqrt(network.parameters / mu_squared)
    path = min(network.path, setting[0] * float(RADIUS) / noise_of_unit)
    sizes = _schedule(ROUNDS, path, 0.2)
    scale = Fraction(4) / mu_squared
    deviations = [
        math.sqrt(variance) / len(rows)
        for count, variance in sizes.variances(scale)
        for _ in range(count)
    ]
    return float_descent(
        network,
        rows,
        sizes,
        lambda t: rng.normal(scale=deviations[t], size=network.parameters),
    )


def not_private(
    problem: Problem, rows: Floats, setting: Setting, rng: np.random.Generator
) -> Floats:
    """The same descent without noise."""
    sizes = _schedule(ROUNDS, problem.network.path, 0.2)
    return float_descent(problem.network, rows, sizes, lambda t: np.zeros(1))


PURE_STEPS = {3000: (4.0, 6.0, 9.0, 12.0, 17.0, 25.0), 10_000: (9.0, 12.0, 17.0, 25.0, 36.0, 50.0)}
PURE_PATHS, PURE_AVERAGES = (10.0, 16.0, 25.0, 40.0, 64.0), (0.2, 0.5)
APPROXIMATE_GRID: list[Setting] = [(0.25,), (0.45,), (0.8,)]


def measure(
    rival: Rival,
    problem: Problem,
    rows: int,
    setting: Setting,
    seeds: Iterable[int],
    *,
    draws: int = 1,
) -> Floats:
    """Return the accuracy for each seed, a mean over some draws of the noise."""
    found = []
    for seed in seeds:
        train, test = problem.split(rows, seed)
        ends = (
            rival(problem, train, setting, np.random.default_rng((seed, draw)))
            for draw in range(draws)
        )
        found.append(np.mean([problem.accuracy(end, test) for end in ends]))
    return np.array(found)


def tuned(rival: Rival, problem: Problem, rows: int, grid: list[Setting], seeds: range) -> Setting:
    """Return the best setting on these seeds, by a race: with few seeds, luck would choose."""
    candidates, draws = grid, 4 if rows < 5000 else 1  # few rows: the noise decides more
    for used, kept in ((len(seeds) // 8, 10), (len(seeds) // 3, 3), (len(seeds), 1)):
        scores = {
            setting: measure(rival, problem, rows, setting, seeds[:used], draws=draws).mean()
            for setting in candidates
        }
        candidates = sorted(scores, key=scores.__getitem__, reverse=True)[:kept]
    return candidates[0]


def line_d(*, runs: int = 20) -> list[Table]:
    """Return the accuracy on fresh rows at ε = 1: where defaults were tuned, and where not."""
    tables, on_moons = [], dict[int, Setting]()
    for title, problems in (
        ("(d) two moons, on which the defaults were tuned", TUNED_ON),
        ("(d) the same defaults on data they were not tuned on", NOT_TUNED_ON),
    ):
        table = Table(
            "data",
            "n",
            "Study",
            "pure composition",
            "… as tuned on moons",
            "(1, 1e-6)",
            "not private",
            "Study - pure",
            title=f"{title}: accuracy at ε = 1, {runs} fresh seeds, ± standard error",
        )
        for problem, rows in product(problems, (3000, 10_000)):
            grid: list[Setting] = list(product(PURE_STEPS[rows], PURE_PATHS, PURE_AVERAGES))
            setting = tuned(pure_composition, problem, rows, grid, OTHER_SEEDS)
            on_moons.setdefault(rows, setting)
            table.add_row(problem.name, str(rows), *_line(problem, rows, setting, on_moons, runs))
        tables.append(table)
    return tables


def _line(
    problem: Problem, rows: int, setting: Setting, on_moons: dict[int, Setting], runs: int
) -> list[str]:
    seeds = range(FRESH_SEED, FRESH_SEED + runs)
    ours = np.array(
        [
            problem.accuracy(by_study(problem, train), test)
            for seed in seeds
            for train, test in [problem.split(rows, seed)]
        ]
    )
    pure = measure(pure_composition, problem, rows, setting, seeds, draws=10)
    moved = measure(pure_composition, problem, rows, on_moons[rows], seeds, draws=10)
    share = tuned(approximate, problem, rows, APPROXIMATE_GRID, OTHER_SEEDS[:8])
    gaussian = measure(approximate, problem, rows, share, seeds)
    plain = measure(not_private, problem, rows, (), seeds[:5])
    found = f"\nT {setting[0]:g}, path {setting[1]:g}, average {setting[2]:g}"
    return [
        _mean(ours),
        _mean(pure) + found,
        _mean(moved),
        _mean(gaussian) + f"\nnoise {share[0]:g} of radius",
        f"{plain.mean():.3f}",
        _mean(ours - pure),
    ]


def _mean(values: Floats) -> str:
    deviation = float(values.std(ddof=1)) if len(values) > 1 else math.nan
    return f"{values.mean():.4f} ± {deviation / math.sqrt(len(values)):.4f}"


# -- (f) run time and memory -----------------------------------------------------------------------

WIDTH = 20


def logistic_rows(rows: int) -> Floats:
    """Return features of norm about 0.9 and a label, filled in block by block."""
    rng = np.random.default_rng(3)
    truth, table = rng.normal(size=WIDTH), np.empty((rows, WIDTH + 1))
    for start in range(0, rows, 10_000):
        part = table[start : start + 10_000]
        part[:, :-1] = rng.normal(size=(len(part), WIDTH)) / 5
        chance = 1 / (1 + np.exp(-3 * part[:, :-1] @ truth))
        part[:, -1] = rng.random(len(part)) < chance
    return table


def private_logistic(table: Floats) -> Floats:
    """Return the parameters that a study of 100 rounds publishes: planning, reading and all."""
    study = Study(table, epsilon=1, publish=Ball(WIDTH, 20), rounds=ROUNDS)
    return np.asarray(study.minimize(Logistic(), data_norm="3/2").value)


def plain_logistic(features: Floats, labels: Floats, block: int) -> Floats:
    """Return the end of the same float descent, not private: the same steps and average."""
    sizes = StepSizes(count=ROUNDS, first=Fraction(16, 9))  # 1 / (curvature 1/4 · norm 3/2 squared)
    theta, kept = np.zeros(WIDTH), []
    for t, size in enumerate(sizes.sizes()):
        gradient = np.zeros(WIDTH)
        for start in range(0, len(labels), block):
            part = features[start : start + block]
            residuals = part @ -theta
            np.exp(residuals, out=residuals)
            residuals += 1
            np.reciprocal(residuals, out=residuals)
            residuals -= labels[start : start + block]
            gradient += part.T @ residuals
        theta = theta - size / len(labels) * gradient
        if t >= sizes.count - sizes.averaged:
            kept.append(theta)
    end: Floats = np.mean(kept, axis=0)
    return end


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def memory(rows: int) -> float:
    """Return the peak of memory above what imports and a tiny run take, over the data's size."""
    private_logistic(logistic_rows(1000))
    before = _peak()
    table = logistic_rows(rows)
    private_logistic(table)
    return (_peak() - before) / table.nbytes


def line_f(*, rows: int = 1_000_000, times: int = 3) -> Table:
    """Return seconds (best of a few, taken in turns) of both descents, and our peak of memory."""
    # through a shell that forks: a direct child's ru_maxrss counts what its parent held
    command = ["/bin/sh", "-c", '"$0" "$1" --memory "$2"; exit $?']
    command += [sys.executable, __file__, str(rows)]
    completed = subprocess.run(command, check=True, capture_output=True, text=True)
    row_table = logistic_rows(rows)
    features, labels = np.ascontiguousarray(row_table[:, :-1]), row_table[:, -1].copy()
    ours, single_block, blocks = list[float](), list[float](), list[float]()
    for _ in range(times):
        times_at = [time.perf_counter()]
        private = private_logistic(row_table)
        times_at.append(time.perf_counter())
        theta = plain_logistic(features, labels, rows)
        times_at.append(time.perf_counter())
        plain_logistic(features, labels, 8192)
        times_at.append(time.perf_counter())
        for kind, seconds in zip((ours, single_block, blocks), np.diff(times_at), strict=True):
            kind.append(float(seconds))
    table = Table(
        "logistic regression",
        "measured",
        "target",
        title=f"(f) T = {ROUNDS} rounds, n = {rows}, d = {WIDTH}, full batch",
    )
    table.add_row("Study.minimize, seconds", f"{min(ours):.2f}", "")
    table.add_row("float descent, not private, seconds", f"{min(single_block):.2f}", "")
    table.add_row("  ratio", f"{min(ours) / min(single_block):.2f}", "at most 2.5")
    table.add_row("float descent in blocks of 8192 rows, seconds", f"{min(blocks):.2f}", "")
    table.add_row("  ratio", f"{min(ours) / min(blocks):.2f}", "at most 2.5")
    table.add_row(
        "peak memory of ours, data included, / data", f"{float(completed.stdout):.2f}", "at most 2"
    )
    distance = float(np.linalg.norm(private - theta) / np.linalg.norm(theta))
    table.add_row("distance of the two results / their norm", f"{distance:.3f}", "")
    return table


def main() -> None:
    """Print both lines; with `--memory ROWS`, one number."""
    if sys.argv[1:2] == ["--memory"]:
        print(memory(int(sys.argv[2])))
        return
    console = Console(width=160)
    for table in line_d():
        console.print(table)
    console.print(line_f())


if __name__ == "__main__":
    main()
