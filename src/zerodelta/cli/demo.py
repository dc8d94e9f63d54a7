"""Run `zerodelta demo`, an example from schema to report, and `zerodelta audit`.

The data of the example (569 tumors, shipped with scikit-learn) are public, so it may also print how
accurate the published model is. Of private data only the releases may be shown.
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
from zerodelta.cli.jobs import Job, plan_job, run_job
from zerodelta.cli.refusals import say
from zerodelta.cli.shown import prepare, say_plan, say_release, write
from zerodelta.cli.verify_files import Demand, report, totals
from zerodelta.errors import did_you_mean, require
from zerodelta.exact.rational import number_text
from zerodelta.privacy.readable import write_new
from zerodelta.value import value

HELD_OUT = 169
BUDGET = 3

BOUNDS: dict[str, tuple[Any, Any]] = {  # public: the range of such measurements in any patient
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
    """Run the example, write all its files to a folder, and return the folder."""
    out = _unused_folder(out)
    out.mkdir(parents=True, exist_ok=True)
    data, schema, fresh = _write_data(out)
    shared: dict[str, Any] = {
        "data": str(data),
        "schema": str(schema),
        "ledger": str(out / "tumors.ledger"),
    }

    _title("1. The schema: the public description of the file (names, kinds, bounds)")
    say(schema.read_text(encoding="utf-8").rstrip())

    table = Job(
        task="table",
        epsilon="1/2",
        options={"by": "malignant", "of": {"mean radius": ["mean"], "mean texture": ["mean"]}},
        budget=str(BUDGET),
        out=str(out / "table"),
        **shared,
    )
    _title("2. The plan: price, guarantee and expected error, before a row is read")
    say_plan(table, plan_job(table), None)

    _title("3. The table, paid for by a ledger")
    files = [_run_and_show(table)]

    _title("4. Three of ten features, chosen by a private selection")
    chosen = Job(
        task="select-features",
        epsilon="1",
        target="malignant",
        options={"size": 3},
        out=str(out / "features"),
        **shared,
    )
    files.append(_run_and_show(chosen))
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
    files.append(_run_and_show(model))
    _say_accuracy(files[-1], names, fresh)

    _title("6. Anyone can verify the claims")
    demand = Demand(epsilon=BUDGET)
    verdicts = [report(path, demand, explain=False) for path in files]
    for path, verdict in zip(files, verdicts, strict=True):
        say(f"{path}: {verdict.text if verdict.good else 'NOT VERIFIED: ' + verdict.text}")
    total = totals(verdicts, demand)
    say("" if total is None else total.text)

    _title("7. One page for those who approve the releases")
    page = out / "report.html"
    report_files(files, page, shared["ledger"])
    say(f"open {page} in a browser; then try, on a file of your own:")
    say("  zerodelta init people.csv --header")
    say("  zerodelta --help")
    return out


def _unused_folder(out: Path) -> Path:
    """Return a folder without an earlier example, whose releases are not overwritten."""
    folder, number = out, 1
    while (folder / "tumors.ledger").exists():
        number += 1
        folder = out / f"run-{number}"
    return folder


def _title(text: str) -> None:
    say(f"\n== {text} ==")


def _run_and_show(job: Job) -> Path:
    """Run a job, print its result, and return the path of the saved release."""
    prepare(job)
    done = run_job(job)
    written = write(job, done)
    say_release(job, done, written)
    return written.files[0]


def _write_data(out: Path) -> tuple[Path, Path, tuple[Any, Any]]:
    """Write rows and schema; return their paths, and the held-out features and labels."""
    tumors = load_breast_cancer()
    order = np.random.default_rng(0).permutation(len(tumors.target))  # public: the split of rows
    columns = [list(tumors.feature_names).index(name) for name in BOUNDS]
    features, labels = tumors.data[order][:, columns], 1 - tumors.target[order]
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
    """Print how often the saved model is right on rows that it was not trained on."""
    features, labels = fresh
    columns = [list(BOUNDS).index(name) for name in names]
    rows = np.empty(len(labels), dtype=[(name, np.float64) for name in names])
    for name, column in zip(names, columns, strict=True):
        rows[name] = features[:, column]
    accuracy = float(np.mean(zd.load(path).predict(rows) == labels))
    baseline = float(1 - labels.mean())
    say(f"accuracy on {HELD_OUT} other tumors: {accuracy:.0%} (always benign: {baseline:.0%})")


# -- `zerodelta audit`: tasks attacked as black boxes, on made-up neighboring data sets ------------

MEANING = (
    "Not refuted means: these samples show no event that contradicts the claim. That is no proof, "
    "as rare events may never occur in samples; the proof is the certificate: zerodelta verify."
)


@value
class AuditedTask:
    """A task, and two data sets that differ in one row as much as rows can."""

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
"""The audited tasks by name; their data sets are made up here."""


def audit_tasks(
    names: Iterable[str], *, epsilon: Fraction, samples: int, confidence: Fraction
) -> Iterable[tuple[str, LowerBound]]:
    """Yield a lower bound on the ε of each task; all hold together with the stated confidence."""
    chosen = list(names) or list(TASKS)
    for name in chosen:
        require(
            name in TASKS,
            "task",
            name,
            f"one of {', '.join(TASKS)}",
            did_you_mean(name, TASKS, "pass one of these names, or none for all"),
        )
    confidence_of_one = 1 - (1 - confidence) / len(chosen)  # Bonferroni over the tasks
    for name in chosen:
        task = TASKS[name]
        yield (
            name,
            lower_bound(
                lambda rows, task=task: task.run(rows, epsilon),
                *task.datasets,
                samples=samples,
                epsilon=epsilon,
                confidence=confidence_of_one,
            ),
        )


def line(name: str, bound: LowerBound) -> str:
    """Return the line about one task."""
    verdict = "VIOLATED" if bound.violated else "not refuted"
    return (
        f"{name:<10} claimed ε = {number_text(bound.claimed or Fraction(0))}, measured "
        f"ε >= {bound.epsilon_lower:.3f} in {bound.samples} samples: {verdict}"
    )


def as_json(name: str, bound: LowerBound) -> dict[str, Any]:
    """Return the bound of one task as plain numbers and texts."""
    return {
        "task": name,
        "claimed": number_text(bound.claimed or Fraction(0)),
        "epsilon_lower": bound.epsilon_lower,
        "confidence": number_text(bound.confidence),
        "samples": bound.samples,
        "guesses": bound.guesses,
        "right": bound.right,
        "rule": bound.rule,
        "violated": bound.violated,
    }
