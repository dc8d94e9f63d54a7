"""`zerodelta audit`: our own tasks as black boxes, on made-up neighboring rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

import numpy as np

import zerodelta as zd
from zerodelta.audit import LowerBound, lower_bound
from zerodelta.errors import did_you_mean, require
from zerodelta.exact.rational import number_text
from zerodelta.value import value

MEANING = (
    "Not refuted means: no event was found in these samples that shows more than the claim. It is "
    "no proof, and rare events are never seen; the proof is the certificate: zerodelta verify."
)


@value
class AuditedTask:
    """A task, and two datasets that differ in one row as much as rows can."""

    run: Callable[[Any, Fraction], Any]
    datasets: tuple[Any, Any]


_LOW_HIGH = np.array([0.0, 0.0]), np.array([0.0, 1.0])
_TIPPED = np.array([0.0, 0.0, 1.0]), np.array([0.0, 1.0, 1.0])
_ITEMS = ["a", "a"], ["a", "b"]
_SCORES = np.array([[1.0, 0.0], [1.0, 0.0]]), np.array([[1.0, 0.0], [0.0, 1.0]])

TASKS: dict[str, AuditedTask] = {
    "mean": AuditedTask(
        run=lambda rows, epsilon: zd.mean(rows, bounds=(0, 1), epsilon=epsilon), datasets=_LOW_HIGH
    ),
    "sum": AuditedTask(
        run=lambda rows, epsilon: zd.sum(rows, bounds=(0, 1), epsilon=epsilon), datasets=_LOW_HIGH
    ),
    "variance": AuditedTask(
        run=lambda rows, epsilon: zd.variance(rows, bounds=(0, 1), epsilon=epsilon),
        datasets=(np.zeros(8), np.eye(8)[0]),
    ),
    "median": AuditedTask(
        run=lambda rows, epsilon: zd.median(rows, bounds=(0, 1), grid=3, epsilon=epsilon),
        datasets=_TIPPED,
    ),
    "histogram": AuditedTask(
        run=lambda rows, epsilon: zd.histogram(rows, universe=["a", "b"], epsilon=epsilon),
        datasets=_ITEMS,
    ),
    "mode": AuditedTask(
        run=lambda rows, epsilon: zd.mode(rows, universe=["a", "b"], epsilon=epsilon),
        datasets=_ITEMS,
    ),
    "select": AuditedTask(
        run=lambda rows, epsilon: zd.select(rows, bounds=(0, 1), epsilon=epsilon), datasets=_SCORES
    ),
}
"""The tasks by name; the datasets are public, made up here."""


def audit_tasks(
    names: Iterable[str], *, epsilon: Fraction, samples: int, confidence: Fraction
) -> Iterable[tuple[str, LowerBound]]:
    """Yield the lower bound of each task; all are right together with the stated confidence."""
    chosen = list(names) or list(TASKS)
    for name in chosen:
        require(
            name in TASKS,
            "task",
            name,
            f"one of {', '.join(TASKS)}",
            did_you_mean(name, TASKS, "pass one of these names, or none for all"),
        )
    each = 1 - (1 - confidence) / len(chosen)  # so many chances of a false alarm
    for name in chosen:
        task = TASKS[name]
        yield (
            name,
            lower_bound(
                lambda rows, task=task: task.run(rows, epsilon),
                *task.datasets,
                samples=samples,
                epsilon=epsilon,
                confidence=each,
            ),
        )


def line(name: str, found: LowerBound) -> str:
    """Return what is printed of one task."""
    verdict = "VIOLATED" if found.violated else "not refuted"
    return (
        f"{name:<10} claimed ε = {number_text(found.claimed or Fraction(0))}, found "
        f"ε >= {found.epsilon_lower:.3f} in {found.samples} samples: {verdict}"
    )


def as_json(name: str, found: LowerBound) -> dict[str, Any]:
    """Return the same as plain numbers and texts."""
    return {
        "task": name,
        "claimed": number_text(found.claimed or Fraction(0)),
        "epsilon_lower": found.epsilon_lower,
        "confidence": number_text(found.confidence),
        "samples": found.samples,
        "guesses": found.guesses,
        "right": found.right,
        "rule": found.rule,
        "violated": found.violated,
    }
