"""Estimators of `bench/tasks.py`: logistic, multinomial and linear regression.

Rows have length at most 1. In-sample excess is over the non-private minimum on the same rows. Held
out, synthetic data is judged by its true law (no label noise): excess over the true parameters;
real data by rows left out: excess over the best of several non-private penalties there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
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


def _one_hot(labels: Labels, classes: int) -> Floats:
    return np.eye(classes)[labels]


def classification(
    *,
    task: str,
    case: str,
    train: tuple[Floats, Labels],
    test: tuple[Floats, Labels],
    chances: Floats | None,
    least: float,
    runs: int,
) -> list[Row]:
    """Return excess risk and misclassified share; `chances` are the true ones of the test rows.

    `least` is the held-out loss that the excess is over.
    """
    x, y = train
    classes = int(max(y.max(), test[1].max())) + 1
    known = list(range(classes))
    held = _one_hot(test[1], classes) if chances is None else chances
    seen = _one_hot(y, classes)
    plain = _published(PlainLogistic(C=1e4, max_iter=5000).fit(x, y))
    minimum = log_loss(scores(plain, x), seen)
    # One-against-rest scores are no log-probabilities of a softmax: there only labels compare.
    metrics: dict[str, Metric] = {
        "misclassified": lambda value: (
            misclassified(scores(value, x), y),
            misclassified(scores(value, test[0]), test[1]),
        ),
    }
    if classes == 2:
        metrics["excess risk"] = lambda value: (
            log_loss(scores(value, x), seen) - minimum,
            log_loss(scores(value, test[0]), held) - least,
        )

    def ours(epsilon: float) -> dict[str, Any]:
        model = LogisticRegression(epsilon=epsilon, data_norm=1, classes=known)
        return _published(model.fit(x, y))

    theirs = ask(
        "diffprivlib",
        "logistic",
        {"x": x, "y": y},
        epsilons=EPSILONS,
        runs=runs,
        variants=PENALTIES,
    )
    return measured(
        task=task,
        case=case,
        ours=ours,
        theirs={"diffprivlib": theirs},
        metrics=metrics,
        runs=runs,
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
    return classification(
        task="logistic" if classes == 2 else "multinomial",
        case=f"synthetic d={d}, n={n:.0e}" + (f", {classes} classes" if classes > 2 else ""),
        train=(rows[:n], labels[:n]),
        test=(rows[n:], labels[n:]),
        chances=fresh,
        least=float(-np.mean((fresh * np.log(fresh)).sum(axis=1))),
        runs=runs,
    )


def _real(name: str, data: tuple[Floats, Labels], runs: int) -> list[Row]:
    """Columns are divided by public-looking largest values, rows by √d; 30 % are held out."""
    x, y = data
    scaled = x / np.abs(x).max(axis=0).clip(1e-9) / math.sqrt(x.shape[1])
    classes = int(y.max()) + 1
    x_in, x_out, y_in, y_out = train_test_split(
        scaled, y, test_size=0.3, random_state=0, stratify=y
    )
    rivals = (PlainLogistic(C=c, max_iter=5000).fit(x_in, y_in) for c in (1, 10, 100, 1e3, 1e4))
    held = _one_hot(y_out, classes)
    least = min(log_loss(scores(_published(rival), x_out), held) for rival in rivals)
    return classification(
        task="logistic" if classes == 2 else "multinomial",
        case=f"{name} d={x.shape[1]}, n={len(x_in)}",
        train=(x_in, y_in),
        test=(x_out, y_out),
        chances=None,
        least=least,
        runs=runs,
    )


def logistic(runs: int) -> list[Row]:
    rows = []
    for d in (5, 20, 50):
        for n in (1000, 10_000, 100_000):
            rows += _synthetic(n, d, 2, runs if n < 100_000 else max(3, runs // 4))
    rows += _real("breast_cancer", load_breast_cancer(return_X_y=True), runs)
    x, y = load_digits(return_X_y=True)
    rows += _real("digits, odd or even", (x, y % 2), runs)
    three = (y == 3) | (y == 8)
    return rows + _real("digits, 3 or 8", (x[three], (y[three] == 8).astype(np.int64)), runs)


def multinomial(runs: int) -> list[Row]:
    rows = []
    for n in (1000, 10_000):
        for d, classes in ((5, 3), (20, 5)):
            rows += _synthetic(n, d, classes, runs)
    loads: dict[str, Callable[..., Any]] = {
        "digits": load_digits,
        "iris": load_iris,
        "wine": load_wine,
    }
    for name, load in loads.items():
        rows += _real(name, load(return_X_y=True), runs)
    return rows


def linear(runs: int) -> list[Row]:
    """Rows in a cube inside the unit ball, so that both kinds of public bounds fit them."""
    rows = []
    for d in (2, 10, 20, 50):
        for n in (1000, 10_000, 100_000):
            rng = np.random.default_rng((n, d))
            half = 1 / math.sqrt(d)
            x = rng.uniform(-half, half, size=(n + FRESH, d))
            line = x @ rng.normal(size=d)
            truth = 0.3 * line / line.std() + 0.1
            y = np.clip(truth + 0.15 * rng.normal(size=len(x)), -1, 1)
            rows += _linear_case(f"d={d}, n={n:.0e}", x, y, truth, n, runs)
    return rows


def _linear_case(case: str, x: Floats, y: Floats, truth: Floats, n: int, runs: int) -> list[Row]:
    full = np.column_stack([x, np.ones(len(x))])
    solved = full[:n] @ np.linalg.lstsq(full[:n], y[:n], rcond=None)[0]
    minimum = float(np.mean((solved - y[:n]) ** 2))

    def ours(epsilon: float) -> dict[str, Any]:
        model = LinearRegression(epsilon=epsilon, data_norm=1, bounds_y=(-1, 1))
        return _published(model.fit(x[:n], y[:n]))

    def squares(value: dict[str, Any]) -> tuple[float, float]:
        gaps = (scores(value, x)[:, 0] - y) ** 2
        return float(gaps[:n].mean()), float(gaps[n:].mean())

    def excess(value: dict[str, Any]) -> tuple[float, float]:
        found = scores(value, x)[:, 0]
        inside = float(np.mean((found[:n] - y[:n]) ** 2)) - minimum
        return inside, float(np.mean((found[n:] - truth[n:]) ** 2))

    runs = runs if n < 100_000 else max(3, runs // 4)
    theirs = ask(
        "diffprivlib",
        "linear",
        {"x": x[:n], "y": y[:n]},
        epsilons=EPSILONS,
        runs=runs,
        half=float(np.abs(x).max()),
    )
    return measured(
        task="linear regression",
        case=case,
        ours=ours,
        theirs={"diffprivlib": theirs},
        metrics={"mean squared error": squares, "excess over least squares": excess},
        runs=runs,
    )
