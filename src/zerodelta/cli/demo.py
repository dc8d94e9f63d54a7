"""`zerodelta demo` and `zerodelta audit`: the main job from end to end, and our own tasks attacked.

The data (569 tumors, shipped with scikit-learn) are public, so that this demonstration may also
show how accurate the published model is. With your own data only the releases may leave the room.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer

import zerodelta as zd
from zerodelta.audit import LowerBound, lower_bound
from zerodelta.cli.files import report_files
from zerodelta.cli.jobs import Job, planned, released
from zerodelta.cli.refusals import say
from zerodelta.cli.shown import prepare, say_plan, say_release, write
from zerodelta.cli.verify_files import Demand, report, totals
from zerodelta.errors import did_you_mean, require
from zerodelta.exact.rational import number_text
from zerodelta.privacy.readable import write_new
from zerodelta.value import value

HELD_OUT = 169
BUDGET = 3

BOUNDS: dict[
    str, tuple[Any, Any]
] = {  # public: what such measurements may be, whoever the patients are
    "mean radius": (5, 30),
    "mean texture": (5, 40),
    "mean perimeter": (30, 200),
    "mean area": (100, 2600),
    "mean smoothness": ("0.05", "0.17"),
    "mean compactness": (0, "0.4"),
    "mean concavity": (0, "0.5"),
    "mean concave points": (0, "0.25"),
    "mean symmetry": ("0.1", "0.35"),
    "mean fractal dimension": ("0.04", "0.1"),
}


def run(out: Path) -> Path:
    """Run the demonstration, write everything into a folder, and return it."""
    out = _free(out)
    out.mkdir(parents=True, exist_ok=True)
    data, schema, fresh = _write_data(out)
    shared: dict[str, Any] = {
        "data": str(data),
        "schema": str(schema),
        "ledger": str(out / "tumors.ledger"),
    }

    _title("1. The schema: what is public of the file (names, kinds, bounds; nothing from rows)")
    say(schema.read_text(encoding="utf-8").rstrip())

    table = Job(
        task="table",
        epsilon="1/2",
        options={"by": "malignant", "of": {"mean radius": ["mean"], "mean texture": ["mean"]}},
        budget=str(BUDGET),
        out=str(out / "table"),
        **shared,
    )
    _title("2. The plan: what it would cost, before a row is read")
    say_plan(table, planned(table), None)

    _title("3. The table, paid for by a ledger")
    files = [_released(table)]

    _title("4. Three of ten features, chosen by a private selection")
    chosen = Job(
        task="select-features",
        epsilon="1",
        target="malignant",
        options={"size": 3},
        out=str(out / "features"),
        **shared,
    )
    files.append(_released(chosen))
    names = tuple(zd.load(files[-1]).value)

    _title("5. A logistic regression on them: a model that zd.load restores")
    model = Job(
        task="logistic",
        epsilon="1",
        columns=names,
        target="malignant",
        out=str(out / "model"),
        **shared,
    )
    files.append(_released(model))
    _say_accuracy(files[-1], names, fresh)

    _title("6. Anyone can check what is claimed")
    demand = Demand(epsilon=BUDGET)
    verdicts = [report(path, demand, explain=False) for path in files]
    for path, verdict in zip(files, verdicts, strict=True):
        say(f"{path}: {verdict.text if verdict.good else 'NOT VERIFIED: ' + verdict.text}")
    total = totals(verdicts, demand)
    say("" if total is None else total.text)

    _title("7. One page for those who have to approve it")
    page = out / "report.html"
    report_files(files, page, shared["ledger"])
    say(f"open {page} in a browser; then try, on a file of your own:")
    say("  zerodelta init people.csv --header")
    say("  zerodelta --help")
    return out


def _free(out: Path) -> Path:
    """Return a folder without an earlier demonstration, whose releases are not written over."""
    place, number = out, 1
    while (place / "tumors.ledger").exists():
        number += 1
        place = out / f"run-{number}"
    return place


def _title(text: str) -> None:
    say(f"\n== {text} ==")


def _released(job: Job) -> Path:
    prepare(job)
    made = released(job)
    written = write(job, made)
    say_release(job, made, written)
    return written.files[0]


def _write_data(out: Path) -> tuple[Path, Path, tuple[Any, Any]]:
    """Write rows and schema, and return held-out features and labels beside them."""
    found = load_breast_cancer()
    order = np.random.default_rng(0).permutation(len(found.target))  # public: who is held out
    places = [list(found.feature_names).index(name) for name in BOUNDS]
    features, labels = found.data[order][:, places], 1 - found.target[order]
    data, schema = out / "tumors.csv", out / "tumors.toml"
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow([*BOUNDS, "malignant"])
    rows = zip(features[:-HELD_OUT].tolist(), labels[:-HELD_OUT].tolist(), strict=True)
    writer.writerows([*row, label] for row, label in rows)
    write_new(data, text.getvalue())
    kinds: dict[str, Any] = {
        name: zd.number(low, high, missing=None) for name, (low, high) in BOUNDS.items()
    }
    declared = zd.data.Schema(columns={**kinds, "malignant": zd.boolean()}, name="tumors")
    write_new(schema, declared.to_toml())
    return data, schema, (features[-HELD_OUT:], labels[-HELD_OUT:])


def _say_accuracy(path: Path, names: tuple[str, ...], fresh: tuple[Any, Any]) -> None:
    features, labels = fresh
    columns = [list(BOUNDS).index(name) for name in names]
    rows = np.empty(len(labels), dtype=[(name, np.float64) for name in names])
    for name, column in zip(names, columns, strict=True):
        rows[name] = features[:, column]
    right = float(np.mean(zd.load(path).predict(rows) == labels))
    always = float(1 - labels.mean())
    say(f"{right:.0%} of {HELD_OUT} other tumors right (always benign: {always:.0%})")


# -- `zerodelta audit`: our own tasks as black boxes, on made-up neighboring rows -----------------

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
