"""Measure objective perturbation on fixed public features, a rival of line (d) of the study.

Features that no row has touched (random cosines, or the tanh units with which the Study's network
starts), of length at most 1, and a pure ε-DP logistic or softmax regression on them. Number, kind
and width are tuned on other seeds of each data set, as the other rivals of that line are.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import product

import numpy as np
import numpy.typing as npt
from bench.fits import fit_logistic, fit_multinomial
from bench.study_training import FRESH_SEED, NOT_TUNED_ON, OTHER_SEEDS, TUNED_ON, Problem
from rich.table import Table

Floats = npt.NDArray[np.float64]
Setting = tuple[str, int, float]

SETTINGS: list[Setting] = list(product(("cosines", "tanh"), (16, 40), (1.0, 2.0, 4.0)))


def features(problem: Problem, rows: Floats, setting: Setting) -> Floats:
    """Return features of length at most 1, from inputs scaled to [-1, 1] by public bounds."""
    kind, number, width = setting
    network = problem.network
    lower, upper = (np.array([float(x) for x in ends]) for ends in (network.lower, network.upper))
    scaled = np.clip(2 * (rows[:, :-1] - lower) / (upper - lower) - 1, -1, 1)
    rng = np.random.default_rng(99)  # public: it draws no noise
    weights = rng.normal(size=(scaled.shape[1], number)) * width
    if kind == "cosines":
        made = np.cos(scaled @ weights + rng.uniform(0, 2 * math.pi, number))
    else:
        through = rng.uniform(-1, 1, size=(number, scaled.shape[1]))
        made = np.tanh(2 * (scaled @ weights - (weights.T * through).sum(axis=1)))
    fixed: Floats = made / math.sqrt(number)
    return fixed


def by_fixed_features(
    problem: Problem, rows: Floats, test: Floats, setting: Setting, *, epsilon: float = 1
) -> float:
    """Return the accuracy on the test rows of one pure ε-DP fit."""
    classes = list(problem.network.classes)
    fit = fit_logistic if len(classes) == 2 else fit_multinomial
    x = features(problem, rows, setting)
    model = fit(x, rows[:, -1], epsilon=epsilon, data_norm=1, classes=classes).value
    scores = model.decision(features(problem, test, setting))
    place = (scores[:, 0] > 0).astype(int) if scores.shape[1] == 1 else scores.argmax(axis=1)
    return float((np.array(classes)[place] == test[:, -1]).mean())


def accuracies(problem: Problem, rows: int, setting: Setting, seeds: Iterable[int]) -> Floats:
    """Return one accuracy for each seed."""
    return np.array(
        [by_fixed_features(problem, *problem.split(rows, seed), setting) for seed in seeds]
    )


def tuned_setting(problem: Problem, rows: int) -> Setting:
    """Return the best setting on other seeds."""
    candidates = SETTINGS
    for used, kept in ((4, 4), (12, 1)):
        means = {s: accuracies(problem, rows, s, OTHER_SEEDS[:used]).mean() for s in candidates}
        candidates = sorted(means, key=means.__getitem__, reverse=True)[:kept]
    return candidates[0]


def fixed_features(*, runs: int = 20) -> Table:
    """Return the line, to be read beside those of `study_training.line_d` (same seeds)."""
    table = Table(
        "data",
        "n",
        "accuracy",
        "setting (kind, number, width)",
        title=f"(d) fixed features + objective perturbation, ε = 1, {runs} fresh seeds, ± s.e.",
    )
    for problem, rows in product((*TUNED_ON, *NOT_TUNED_ON), (3000, 10_000)):
        setting = tuned_setting(problem, rows)
        measured = accuracies(problem, rows, setting, range(FRESH_SEED, FRESH_SEED + runs))
        error = measured.std(ddof=1) / math.sqrt(runs)
        shown = ", ".join(str(part) for part in setting)
        table.add_row(problem.name, str(rows), f"{measured.mean():.4f} ± {error:.4f}", shown)
    return table
