"""Compare a vote of blocks and a study on callers' models, and check the choice of `auto`.

    python bench/vote_or_study.py [--runs 20]

Polynomials of degree 1 to 8, trained in a study on one internal Gram matrix each, in a block by
least squares; and columns of which one predicts the label, whose only parameter is a mean. Printed
is the mean loss of the choice (expected score of the best candidate less that of the chosen one, in
parts of the range of a score, × 1e3), each candidate trained on all rows, with its standard error.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial import chebyshev
from rich.console import Console
from rich.table import Table

import zerodelta as zd
from zerodelta.tasks.models import vote_or_study


class Problem(NamedTuple):
    """Candidates by name, fresh rows, and how both ways train and score."""

    candidates: dict[str, Any]
    rows: Callable[[int, np.random.Generator], Any]
    train: Callable[..., Any]
    fit: Callable[..., Any]
    score: Callable[..., Any]
    parameters: int


def _curve(n: int, rng: np.random.Generator) -> Any:
    x = rng.uniform(-1, 1, size=n)
    return np.column_stack([x, 0.7 * np.sin(4 * x) + rng.normal(0, 0.3, size=n)])


def _gram(degree: int, rows: Any) -> Any:
    """Products of Chebyshev features and label, all within (-1, 1)."""
    features = chebyshev.chebvander(rows[:, 0], degree)
    every = np.column_stack([features, np.clip(rows[:, 1], -1, 1)])
    first, second = np.triu_indices(degree + 2)
    return every[:, first] * every[:, second]


def _solved(degree: int, means: Any) -> Any:
    gram = np.zeros((degree + 2, degree + 2))
    gram[np.triu_indices(degree + 2)] = means
    gram = np.triu(gram) + np.triu(gram, 1).T
    ridge = 0.01 * np.eye(degree + 1)
    return np.linalg.solve(gram[:-1, :-1] + ridge, gram[:-1, -1])


def _trained(study: zd.Study, degree: int) -> Any:
    return _solved(degree, study.mean(lambda rows: _gram(degree, rows), bounds=(-1, 1)))


def _near(degree: int, parameters: Any, rows: Any) -> Any:
    return 1 - np.minimum((chebyshev.chebval(rows[:, 0], parameters) - rows[:, 1]) ** 2, 1)


POLYNOMIALS = Problem(
    candidates={str(degree): degree for degree in range(1, 9)},
    rows=_curve,
    train=_trained,
    fit=lambda degree, rows: _solved(degree, _gram(degree, rows).mean(axis=0)),
    score=_near,
    parameters=9,
)


def _columns(n: int, rng: np.random.Generator) -> Any:
    labels = rng.random(n) < 0.5
    right = rng.random((n, 8)) < np.array([0.5, 0.5, 0.5, 0.6, 0.5, 0.5, 0.55, 0.5])
    return np.column_stack([right == labels[:, None], labels]).astype(float)


COLUMNS = Problem(
    candidates={str(column): column for column in range(8)},
    rows=_columns,
    train=lambda study, column: study.mean(
        lambda rows: rows[:, column] == rows[:, -1], bounds=(0, 1)
    ),
    fit=lambda column, rows: np.mean(rows[:, column] == rows[:, -1]),
    score=lambda column, agrees, rows: (rows[:, column] == rows[:, -1]) == (agrees > 0.5),
    parameters=1,
)


def losses(problem: Problem, n: int, epsilon: str, method: str, runs: int) -> Any:
    """The loss of each run, by fresh rows."""
    rng, runs_losses = np.random.default_rng(11), []
    public = problem.rows(200_000, rng)
    for _ in range(runs):
        rows = problem.rows(n, rng)
        means = {
            name: float(np.mean(problem.score(model, problem.fit(model, rows), public)))
            for name, model in problem.candidates.items()
        }
        chosen = zd.select_model(
            rows,
            problem.candidates,
            train=problem.train,
            fit=problem.fit,
            score=problem.score,
            rounds=1,
            method=method,
            epsilon=epsilon,
            example=problem.rows(200, rng),
        ).value
        runs_losses.append(max(means.values()) - means[chosen])
    return 1e3 * np.array(runs_losses)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    runs = parser.parse_args().runs
    table = Table(title=f"loss × 1e3, {runs} runs")
    for column in ("problem", "n", "ε", "vote", "study", "forecasts", "auto", "right"):
        table.add_column(column)
    for name, problem in (("polynomials", POLYNOMIALS), ("columns", COLUMNS)):
        for n in (300, 1000, 5000, 20_000):
            for epsilon in ("1/4", "1"):
                by_way = {way: losses(problem, n, epsilon, way, runs) for way in ("vote", "study")}
                methods = vote_or_study(
                    n=n,
                    options=len(problem.candidates),
                    epsilon=epsilon,
                    parameters=problem.parameters,
                )
                means = {way: float(values.mean()) for way, values in by_way.items()}
                errors = {way: float(values.std() / runs**0.5) for way, values in by_way.items()}
                pick = methods[0].name
                slack = 2 * sum(errors.values())
                right = means[pick] <= 1.1 * min(means.values()) + slack
                table.add_row(
                    name,
                    str(n),
                    epsilon,
                    *(f"{means[way]:.3g} ± {errors[way]:.2g}" for way in ("vote", "study")),
                    ", ".join(f"{values.name} {1e3 * values.error:.3g}" for values in methods),
                    pick,
                    "yes" if right else "NO",
                )
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
