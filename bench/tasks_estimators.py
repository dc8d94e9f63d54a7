"""Measure estimators for `bench/tasks.py`: logistic, multinomial and linear regression.

Rows have length at most 1; skewed ones are scaled by bounds that are 1, 2 and 20 times as wide as
they could be, and ours is told these bounds instead of the length. In-sample excess is over the
non-private minimum on the same rows. Held out, synthetic data is judged by its true law (no label
noise): excess over the true parameters; real data by rows left out, in 20 splits: excess over the
best of several non-private penalties.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from bench.tasks_peers import ask
from bench.tasks_rows import EPSILONS, Metric, Row, measured
from scipy.special import logsumexp
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.linear_model import LogisticRegression as PlainLogistic
from sklearn.model_selection import train_test_split

from zerodelta.sklearn import LinearRegression, LogisticRegression

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]

PENALTIES = (1.0, 0.001, 0.01, 0.1, 10.0, 100.0)
"""diffprivlib's C: its default, and those among which the oracle chooses."""
FRESH = 20_000
"""Rows on which synthetic models are judged."""
SPLITS = 20
"""Ways to leave out rows of real data; every rival learns from each equally often."""


def ball_rows(rng: np.random.Generator, n: int, d: int) -> Floats:
    """Return normal rows of length about 0.8, cut to length 1."""
    rows = 0.8 * rng.normal(size=(n, d)) / math.sqrt(d)
    cut: Floats = rows / np.maximum(1, np.linalg.norm(rows, axis=1, keepdims=True))
    return cut


def scores(value: dict[str, Any], rows: Floats) -> Floats:
    """Return one column of scores for each line of coefficients."""
    found: Floats = rows @ np.asarray(value["coef"]).T + np.asarray(value["intercept"])
    return found


def _published(model: Any) -> dict[str, Any]:
    return {"coef": np.atleast_2d(model.coef_), "intercept": np.atleast_1d(model.intercept_)}


def log_loss(found: Floats, chances: Floats) -> float:
    """Return the mean log loss of scores where the labels have these chances."""
    if found.shape[1] == 1:
        found = np.column_stack([np.zeros(len(found)), found])
    return float(np.mean(logsumexp(found, axis=1) - (found * chances).sum(axis=1)))


def misclassified(found: Floats, labels: Labels) -> float:
    """Return the share of rows whose best score is not their label's."""
    guess = (found[:, 0] > 0).astype(int) if found.shape[1] == 1 else found.argmax(axis=1)
    return float((guess != labels).mean())


def _one_hot(labels: Labels) -> Floats:
    return np.eye(int(labels.max()) + 1)[labels]


@dataclass(frozen=True)
class Problem:
    """Rows and labels to learn from and to judge by."""

    x: Floats
    y: Labels
    x_out: Floats
    y_out: Labels
    chances: Floats
    """Of the labels of the rows left out: the true ones, or those seen."""
    least: float
    """The held-out loss that the excess is over."""

    @functools.cached_property
    def least_inside(self) -> float:
        plain = _published(PlainLogistic(C=1e4, max_iter=5000).fit(self.x, self.y))
        return log_loss(scores(plain, self.x), _one_hot(self.y))

    def misclassified(self, value: dict[str, Any]) -> tuple[float, float]:
        inside = misclassified(scores(value, self.x), self.y)
        return inside, misclassified(scores(value, self.x_out), self.y_out)

    def excess(self, value: dict[str, Any]) -> tuple[float, float]:
        inside = log_loss(scores(value, self.x), _one_hot(self.y))
        held = log_loss(scores(value, self.x_out), self.chances)
        return inside - self.least_inside, held - self.least


def classification(
    case: str, problems: list[Problem], runs: int, public: dict[str, Any] | None = None
) -> list[Row]:
    """Return mean misclassified shares and, for two classes, median excess risks.

    `public` is what ours is told of the rows: by default that their length is at most 1.
    """
    told = {"data_norm": 1} if public is None else public
    classes = int(problems[0].y.max()) + 1
    metrics: dict[str, Metric] = {"misclassified": lambda v, i: problems[i].misclassified(v)}
    # One-against-rest scores are no log-probabilities of a softmax: there only labels compare.
    if classes == 2:
        metrics["excess risk"] = lambda v, i: problems[i].excess(v)

    def ours(epsilon: float, i: int) -> dict[str, Any]:
        model = LogisticRegression(epsilon=epsilon, classes=list(range(classes)), **told)
        return _published(model.fit(problems[i].x, problems[i].y))

    theirs = ask(
        "diffprivlib",
        "logistic",
        {"x": [one.x for one in problems], "y": [one.y for one in problems]},
        epsilons=EPSILONS,
        runs=runs,
        variants=PENALTIES,
    )
    return measured(
        task="logistic" if classes == 2 else "multinomial",
        case=case,
        ours=ours,
        theirs={"diffprivlib": theirs},
        metrics=metrics,
        runs=runs,
        sets=len(problems),
        heavy={"excess risk"},
    )


def _synthetic(n: int, d: int, classes: int, runs: int) -> list[Row]:
    rng = np.random.default_rng((n, d, classes))
    rows = ball_rows(rng, n + FRESH, d)
    lines = rng.normal(size=(d, classes))
    logits = rows @ lines
    logits *= 2 / (logits - logits.mean(axis=1, keepdims=True)).std()
    chances = np.exp(logits - logsumexp(logits, axis=1, keepdims=True))
    labels = np.argmax(logits + rng.gumbel(size=logits.shape), axis=1)
    fresh = chances[n:]
    least = float(-np.mean((fresh * np.log(fresh)).sum(axis=1)))
    problem = Problem(rows[:n], labels[:n], rows[n:], labels[n:], fresh, least)
    kinds = f", {classes} classes" if classes > 2 else ""
    return classification(f"synthetic d={d}, n={n:.0e}{kinds}", [problem], runs)


WIDTHS: dict[str, Any] = {"": 1.0, ", bounds x 2": 2.0, ", bounds x 20": 20.0}
WIDTHS[", one bound x 20"] = np.array([20.0, 1.0, 1.0, 1.0])


def _skewed(n: int, classes: int, width: str, runs: int) -> list[Row]:
    """Incomes, children, years and ages in a corner of their bounds, as wide as `width` says.

    Both are given the same rows in [-1/2, 1/2]; the default of ours cuts none at these n and ε.
    """
    rng = np.random.default_rng((n, classes, 77))
    made = [
        np.minimum(rng.exponential(20, n + FRESH), 200),
        np.minimum(rng.poisson(1.2, n + FRESH), 10),
        np.minimum(rng.exponential(3, n + FRESH), 40),
        rng.uniform(18, 60, n + FRESH),
    ]
    x, top = np.column_stack(made), np.array([200.0, 10.0, 40.0, 100.0]) * WIDTHS[width]
    score = (x - [20, 1.2, 3, 40]) @ [0.06, 0.5, -0.3, 0.02] + 0.5
    logits = np.outer(score, np.arange(classes)) - np.arange(classes) ** 2 * (classes - 2) / 2
    chances = np.exp(logits - logsumexp(logits, axis=1, keepdims=True))
    labels = np.argmax(logits + rng.gumbel(size=logits.shape), axis=1)
    least = float(-np.mean((chances[n:] * np.log(chances[n:])).sum(axis=1)))
    rows = (2 * x / top - 1) / 2
    problem = Problem(rows[:n], labels[:n], rows[n:], labels[n:], chances[n:], least)
    kinds = f", {classes} classes" if classes > 2 else ""
    case = f"skewed d=4, n={n:.0e}{kinds}{width}"
    return classification(case, [problem], runs, {"bounds": (-0.5, 0.5)})


def _real(name: str, data: tuple[Floats, Labels], rounds: int) -> list[Row]:
    """Columns are divided by public-looking largest values, rows by √d; 30 % are held out."""
    x, y = data
    scaled = x / np.abs(x).max(axis=0).clip(1e-9) / math.sqrt(x.shape[1])
    problems = [_split(scaled, y, seed) for seed in range(SPLITS)]
    n, d = problems[0].x.shape
    return classification(f"{name} d={d}, n={n}", problems, rounds * SPLITS)


def _split(x: Floats, y: Labels, seed: int) -> Problem:
    x_in, x_out, y_in, y_out = train_test_split(x, y, test_size=0.3, random_state=seed, stratify=y)
    least, held = math.nan, _one_hot(y_out)
    if held.shape[1] == 2:
        rivals = (PlainLogistic(C=c, max_iter=5000).fit(x_in, y_in) for c in (1, 10, 100, 1e3, 1e4))
        least = min(log_loss(scores(_published(rival), x_out), held) for rival in rivals)
    return Problem(x_in, y_in, x_out, y_out, held, least)


def logistic(runs: int) -> list[Row]:
    rows = []
    for d in (5, 20, 50):
        for n in (1000, 10_000, 100_000):
            # The fewer parameters, the more their errors vary, and the less a run takes.
            times = 3 * runs if d == 5 else runs if n < 100_000 else runs // 4
            rows += _synthetic(n, d, 2, times)
    for n in (1000, 10_000, 100_000):
        for width in WIDTHS:
            rows += _skewed(n, 2, width, runs if n < 100_000 else runs // 4)
    rows += _real("breast_cancer", load_breast_cancer(return_X_y=True), runs // 2)
    x, y = load_digits(return_X_y=True)
    rows += _real("digits, odd or even", (x, y % 2), runs // 2)
    three = (y == 3) | (y == 8)
    return rows + _real("digits, 3 or 8", (x[three], (y[three] == 8).astype(np.int64)), runs // 2)


def multinomial(runs: int) -> list[Row]:
    rows = []
    for n in (1000, 10_000):
        for d, classes in ((5, 3), (20, 5)):
            rows += _synthetic(n, d, classes, runs)
        for width in WIDTHS:
            rows += _skewed(n, 3, width, runs)
    loads: dict[str, Callable[..., Any]] = {
        "digits": load_digits,
        "iris": load_iris,
        "wine": load_wine,
    }
    for name, load in loads.items():
        rows += _real(name, load(return_X_y=True), runs // 10)
    return rows


@dataclass(frozen=True)
class Line:
    """Rows in a cube inside the unit ball, so that both kinds of public bounds fit them.

    The first n are to learn from, the others to judge by.
    """

    x: Floats
    y: Floats
    truth: Floats
    n: int

    @classmethod
    def drawn(cls, n: int, d: int, seed: int) -> Line:
        rng = np.random.default_rng((n, d, seed))
        x = rng.uniform(-1, 1, size=(n + FRESH, d)) / math.sqrt(d)
        line = x @ rng.normal(size=d)
        truth = 0.3 * line / line.std() + 0.1
        return cls(x, np.clip(truth + 0.15 * rng.normal(size=len(x)), -1, 1), truth, n)

    @functools.cached_property
    def least_inside(self) -> float:
        full = np.column_stack([self.x, np.ones(len(self.x))])[: self.n]
        solved = full @ np.linalg.lstsq(full, self.y[: self.n], rcond=None)[0]
        return float(np.mean((solved - self.y[: self.n]) ** 2))

    def squares(self, value: dict[str, Any]) -> tuple[float, float]:
        gaps = (scores(value, self.x)[:, 0] - self.y) ** 2
        return float(gaps[: self.n].mean()), float(gaps[self.n :].mean())

    def excess(self, value: dict[str, Any]) -> tuple[float, float]:
        gaps = (scores(value, self.x)[:, 0] - self.truth)[self.n :]
        return self.squares(value)[0] - self.least_inside, float(np.mean(gaps**2))


def linear(runs: int) -> list[Row]:
    """Each run is about fresh rows."""
    rows = []
    for d in (2, 10, 20, 50):
        for n in (1000, 10_000, 100_000):
            times = 5 * runs if d == 2 else runs if n < 100_000 else runs // 4
            lines = [Line.drawn(n, d, seed) for seed in range(times)]
            rows += _linear_case(f"d={d}, n={n:.0e}", lines)
    return rows


def _linear_case(case: str, lines: list[Line]) -> list[Row]:
    n, d = lines[0].n, lines[0].x.shape[1]

    def ours(epsilon: float, i: int) -> dict[str, Any]:
        model = LinearRegression(epsilon=epsilon, data_norm=1, bounds_y=(-1, 1))
        return _published(model.fit(lines[i].x[:n], lines[i].y[:n]))

    theirs = ask(
        "diffprivlib",
        "linear",
        {"x": [line.x[:n] for line in lines], "y": [line.y[:n] for line in lines]},
        epsilons=EPSILONS,
        runs=len(lines),
        half=1 / math.sqrt(d),
    )
    metrics: dict[str, Metric] = {
        "mean squared error": lambda v, i: lines[i].squares(v),
        "excess over least squares": lambda v, i: lines[i].excess(v),
    }
    return measured(
        task="linear regression",
        case=case,
        ours=ours,
        theirs={"diffprivlib": theirs},
        metrics=metrics,
        runs=len(lines),
        sets=len(lines),
        heavy=metrics,
    )
