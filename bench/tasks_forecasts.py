"""Forecast against measured error of every task, and whether the advisor's pick was the best.

Each cell runs the methods on the same data at pure ε in {0.5, 1, 2}; a ratio is the forecast over
the mean measured error of the picked method. The constants of the regression forecasts were fitted
on the designs of `regressions` and `classifications` (at other signals and seeds); `held_out` has
data that no constant has seen: real data sets, correlated and short rows, weak and strong signals,
where the advisor is told what a user could know (the rows' length to one digit; for the synthetic
ones the signal, too).
`--quick` takes a quarter of the repetitions.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table
from sklearn.cluster import KMeans
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.linear_model import LogisticRegression

import zerodelta as zd
from zerodelta.tasks.advise import advise
from zerodelta.tasks.answer_queries import answer_queries
from zerodelta.tasks.regression import fit_linear, fit_logistic, fit_multinomial
from zerodelta.tasks.select import worst_gap

EPSILONS = (0.5, 1, 2)
WITHIN = {"linear": 4.0, "logistic": 4.0, "multinomial": 4.0, "kmeans": 4.0}
NOT_MEASURED = {"descent", ("queries", "purified")}
"""Slow, and tens of times behind by forecast: "best" means the best of those that were run."""

Floats = npt.NDArray[np.float64]
Measure = Callable[[str, np.random.Generator], float]


@dataclass(frozen=True)
class Cell:
    """One problem: what the advisor is asked, and one run of a method on fresh data."""

    task: str
    asked: dict[str, Any]
    measure: Measure
    runs: int
    data: str = ""

    @property
    def name(self) -> str:
        """The numbers in short."""
        short = {k: len(v) if isinstance(v, dict) else v for k, v in self.asked.items()}
        numbers = ", ".join(f"{k}={v}" for k, v in short.items())
        return f"{self.task}, {self.data}: {numbers}" if self.data else numbers


def means() -> Iterator[Cell]:
    for epsilon in EPSILONS:
        for d in (1, 5, 50):
            for bound in ({"bounds": (-1, 1)}, {"data_norm": 1}):

                def measure(
                    method: str,
                    rng: np.random.Generator,
                    d: int = d,
                    epsilon: float = epsilon,
                    bound: dict[str, Any] = bound,
                ) -> float:
                    rows = np.clip(rng.normal(size=(20_000, d)) / (3 * math.sqrt(d)), -1, 1)
                    rows /= np.maximum(1, np.linalg.norm(rows, axis=1, keepdims=True))
                    found = zd.mean(rows, epsilon=epsilon, method=method, **bound).value
                    return float(np.abs(found - rows.mean(axis=0)).mean())

                asked = {"n": 20_000, "dimension": d, "epsilon": epsilon, **bound}
                yield Cell("mean", asked, measure, 1200 // d if d < 50 else 60)


def histograms() -> Iterator[Cell]:
    for epsilon in EPSILONS:
        for size in (2, 20, 1000):

            def measure(
                method: str, rng: np.random.Generator, size: int = size, epsilon: float = epsilon
            ) -> float:
                items = rng.integers(size, size=2000)
                found = zd.histogram(items, universe=size, epsilon=epsilon, method=method).value
                return float(np.abs(found - np.bincount(items, minlength=size)).mean())

            yield Cell(
                "histogram", {"universe": size, "epsilon": epsilon}, measure, 2000 // size + 8
            )


def selections() -> Iterator[Cell]:
    for epsilon in EPSILONS:
        for options in (2, 10, 100):
            lead = _hardest(options, 2 / epsilon)

            def measure(
                method: str,
                rng: np.random.Generator,
                options: int = options,
                epsilon: float = epsilon,
                lead: float = lead,
            ) -> float:
                scores = [0.0] * options
                best = int(rng.integers(options))
                scores[best] = lead
                found = zd.select(scores, sensitivity=1, epsilon=epsilon, method=method).value
                return 0.0 if found == best else lead

            yield Cell("select", {"options": options, "epsilon": epsilon}, measure, 1500)


def _hardest(options: int, scale: float) -> float:
    """Return the lead that attains the worst gap of permute-and-flip."""
    leads = np.linspace(0.05, 4 + 2 * math.log(options), 400) * scale
    x = np.exp(-leads / scale)
    wrong = 1 + np.expm1(options * np.log1p(-x)) / (options * x)
    lead = float(leads[np.argmax(leads * wrong)])
    assert abs(worst_gap(options, scale) - (leads * wrong).max()) < 0.01 * scale
    return lead


def modes() -> Iterator[Cell]:
    for epsilon in EPSILONS:
        for size in (2, 10, 100):
            lead = max(1, round(_hardest(size, 2 / epsilon)))
            counts = np.full(size, 20)
            counts[0] += lead
            items = np.repeat(np.arange(size), counts)

            def measure(
                method: str,
                _: np.random.Generator,
                size: int = size,
                epsilon: float = epsilon,
                lead: int = lead,
                items: npt.NDArray[np.int64] = items,
            ) -> float:
                found = zd.mode(items, universe=size, epsilon=epsilon, method=method).value
                return 0.0 if found == 0 else float(lead)

            asked = {"n": len(items), "universe": size, "epsilon": epsilon}
            yield Cell("mode", asked, measure, 600)


def quantiles() -> Iterator[Cell]:
    for epsilon in EPSILONS:
        for n in (1000, 20_000):

            def measure(
                method: str, rng: np.random.Generator, n: int = n, epsilon: float = epsilon
            ) -> float:
                rows = np.sort(rng.normal(size=n))
                found = zd.median(rows, bounds=(-10, 10), epsilon=epsilon, method=method).value
                below = int(np.searchsorted(rows, found, side="left"))
                not_above = int(np.searchsorted(rows, found, side="right"))
                return float(max(0, below - n // 2, n // 2 - not_above))

            yield Cell("median", {"n": n, "epsilon": epsilon}, measure, 400)


def trimmed_means() -> Iterator[Cell]:
    for epsilon in EPSILONS:
        for n in (1000, 10_000, 100_000):

            def measure(
                method: str, rng: np.random.Generator, n: int = n, epsilon: float = epsilon
            ) -> float:
                rows = np.sort(np.clip(rng.normal(size=n) * 8 + 50, 0, 100))
                cut = n // 10
                found = zd.trimmed_mean(
                    rows, trim="0.1", bounds=(0, 100), spread=8, epsilon=epsilon, method=method
                ).value
                return float(abs(found - float(rows[cut : n - cut].mean())))

            asked = {"n": n, "trim": "0.1", "bounds": (0, 100), "spread": 8, "epsilon": epsilon}
            yield Cell("trimmed_mean", asked, measure, 150 if n < 100_000 else 40)


def marginals() -> Iterator[Cell]:
    for epsilon in EPSILONS:
        for d, way in ((6, 2), (8, 2), (8, 3)):
            domain = dict.fromkeys(range(d), 2)

            def measure(
                method: str,
                rng: np.random.Generator,
                d: int = d,
                way: int = way,
                epsilon: float = epsilon,
                domain: dict[int, int] = domain,
            ) -> float:
                chance = rng.uniform(0.2, 0.8, size=d)
                rows = (rng.uniform(size=(20_000, d)) < chance).astype(np.int64)
                rows[:, 1] ^= rows[:, 0] & (rng.uniform(size=20_000) < 0.5)
                found = answer_queries(
                    rows, domain=domain, workload=way, epsilon=epsilon, method=method
                ).value
                errors = []
                for columns, table in found.items():
                    places = np.ravel_multi_index(rows[:, list(columns)].T, (2,) * way)
                    true = np.bincount(places, minlength=2**way) / len(rows)
                    errors.append(np.abs(np.asarray(table).reshape(-1) - true).mean())
                return float(np.mean(errors))

            asked = {"n": 20_000, "domain": domain, "workload": way, "epsilon": epsilon}
            yield Cell("queries", asked, measure, 6)


def design(kind: str, n: int, d: int, rng: np.random.Generator) -> Floats:
    """Rows of length at most 1: all of length 1, or in a cube."""
    if kind == "sphere":
        rows = rng.normal(size=(n, d))
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))
    return np.asarray(rng.uniform(-1, 1, size=(n, d)) / math.sqrt(d))


def regressions() -> Iterator[Cell]:
    for epsilon in EPSILONS:
        for d in (1, 2, 3, 10, 20):
            for n in (1000, 10_000, 100_000):

                def measure(
                    method: str,
                    rng: np.random.Generator,
                    d: int = d,
                    n: int = n,
                    epsilon: float = epsilon,
                ) -> float:
                    x = design(rng.choice(["sphere", "cube"]), n, d, rng)
                    line = x @ rng.normal(size=d)
                    y = np.clip(0.3 * line / line.std() + 0.1 + 0.15 * rng.normal(size=n), -1, 1)
                    full = np.column_stack([x, np.ones(n)])
                    best = full @ np.linalg.lstsq(full, y, rcond=None)[0]
                    model = fit_linear(
                        x, y, epsilon=epsilon, data_norm=1, bounds_y=(-1, 1), method=method
                    ).value
                    return float(np.mean((model.decision(x)[:, 0] - best) ** 2))

                asked = {"n": n, "dimension": d, "epsilon": epsilon}
                yield Cell("linear", asked, measure, 60 if d <= 3 else 16)


def classifications() -> Iterator[Cell]:
    for classes in (2, 4):
        for epsilon in EPSILONS:
            for d in (2, 5, 20):
                for n in (1000, 10_000):

                    def measure(
                        method: str,
                        rng: np.random.Generator,
                        d: int = d,
                        n: int = n,
                        epsilon: float = epsilon,
                        classes: int = classes,
                    ) -> float:
                        x = design(rng.choice(["sphere", "cube"]), n, d, rng)
                        logits = x @ rng.normal(size=(d, classes if classes > 2 else 1))
                        logits *= 2 / logits.std()
                        if classes == 2:
                            logits = np.column_stack([np.zeros(n), logits[:, 0]])
                        y = np.argmax(logits + rng.gumbel(size=logits.shape), axis=1)
                        plain = LogisticRegression(C=1e4, max_iter=300).fit(x, y)
                        scores = plain.decision_function(x).reshape(n, -1)
                        fit = fit_logistic if classes == 2 else fit_multinomial
                        model = fit(
                            x, y, epsilon=epsilon, data_norm=1, classes=list(range(classes))
                        ).value
                        return _log_loss(model.decision(x), y) - _log_loss(scores, y)

                    asked = {"n": n, "dimension": d, "epsilon": epsilon}
                    if classes > 2:
                        asked["classes"] = classes
                    task = "multinomial" if classes > 2 else "logistic"
                    yield Cell(task, asked, measure, 12)


def _log_loss(scores: Floats, labels: npt.NDArray[np.int64]) -> float:
    if scores.shape[1] == 1:
        scores = np.column_stack([np.zeros(len(scores)), scores[:, 0]])
    most = scores.max(axis=1, keepdims=True)
    total = most[:, 0] + np.log(np.exp(scores - most).sum(axis=1))
    return float(np.mean(total - scores[np.arange(len(labels)), labels]))


def clusterings() -> Iterator[Cell]:
    for epsilon in EPSILONS:
        for n in (2000, 20_000):
            for d in (2, 5, 10):

                def measure(
                    method: str,
                    rng: np.random.Generator,
                    d: int = d,
                    n: int = n,
                    epsilon: float = epsilon,
                ) -> float:
                    centres = rng.uniform(0.15, 0.85, size=(4, d))
                    while min(_distances(centres)) < 0.3:
                        centres = rng.uniform(0.15, 0.85, size=(4, d))
                    spread = 0.06 * rng.normal(size=(n, d))
                    rows = np.clip(centres[rng.integers(4, size=n)] + spread, 0, 1)
                    plain = KMeans(4, n_init=4, random_state=0).fit(rows).inertia_
                    found = zd.kmeans(
                        rows, clusters=4, bounds=(0, 1), epsilon=epsilon, method=method
                    ).value
                    gaps = ((rows[:, None, :] - np.asarray(found)[None]) ** 2).sum(axis=2)
                    return float(gaps.min(axis=1).sum() / plain - 1)

                asked = {"n": n, "dimension": d, "clusters": 4, "epsilon": epsilon}
                yield Cell("kmeans", asked, measure, 60)  # a missed cluster is rare, and dear


def _distances(points: Floats) -> list[float]:
    return [float(np.linalg.norm(a - b)) for a, b in combinations(points, 2)]


def held_out() -> Iterator[Cell]:
    """Data on which nothing was fitted; the rows are scaled by public-looking bounds."""
    for epsilon in EPSILONS:
        x, y = load_diabetes(return_X_y=True)
        yield _line("diabetes", np.clip(x / 0.2, -1, 1) / math.sqrt(10), (y - 173) / 173, epsilon)
        for data, load in (("breast_cancer", load_breast_cancer), ("digits", load_digits)):
            x, labels = load(return_X_y=True)
            scaled = np.clip(x / x.max(axis=0).clip(1e-9), 0, 1) / math.sqrt(x.shape[1])
            yield _labels(data, scaled, labels, epsilon)
        rng = np.random.default_rng(11)
        for n, d in ((3000, 4), (30_000, 15)):
            mixed = rng.normal(size=(n, d)) @ np.linalg.qr(rng.normal(size=(d, d)))[0]
            mixed *= np.linspace(1, 0.3, d) * 0.5 / math.sqrt(d)  # short, and not round
            mixed /= np.maximum(1, np.linalg.norm(mixed, axis=1, keepdims=True))
            for signal in (0.1, 0.4):
                line = mixed @ rng.normal(size=d)
                y = signal * line / line.std() + 0.1 * rng.standard_t(3, size=n)
                yield _line("correlated", mixed, y, epsilon, signal)
            for signal in (1.0, 4.0):
                line = mixed @ rng.normal(size=d)
                chance = 1 / (1 + np.exp(-signal * line / line.std()))
                drawn = (rng.uniform(size=n) < chance).astype(np.int64)
                yield _labels("correlated", mixed, drawn, epsilon, signal)


def _line(
    name: str, x: Floats, targets: Floats, epsilon: float, signal: float | None = None
) -> Cell:
    y = np.clip(targets, -1, 1)
    full = np.column_stack([x, np.ones(len(x))])
    best = full @ np.linalg.lstsq(full, y, rcond=None)[0]

    def measure(method: str, _: np.random.Generator) -> float:
        model = fit_linear(x, y, epsilon=epsilon, data_norm=1, bounds_y=(-1, 1), method=method)
        return float(np.mean((model.value.decision(x)[:, 0] - best) ** 2))

    asked = {"n": len(x), "dimension": x.shape[1], "epsilon": epsilon, **_hints(x, signal)}
    return Cell("linear", asked, measure, 24, name)


def _hints(x: Floats, signal: float | None) -> dict[str, float]:
    """What a user may know of rows without looking: their length to one digit, and a signal."""
    length = float(np.sqrt(np.mean((x * x).sum(axis=1))))
    return {"row_length": float(f"{length:.1g}")} | ({} if signal is None else {"signal": signal})


def _labels(
    name: str,
    x: Floats,
    labels: npt.NDArray[np.int64],
    epsilon: float,
    signal: float | None = None,
) -> Cell:
    classes = int(labels.max()) + 1
    fit = fit_logistic if classes == 2 else fit_multinomial
    plain = LogisticRegression(C=1e2, max_iter=2000).fit(x, labels)
    least = _log_loss(plain.decision_function(x).reshape(len(x), -1), labels)

    def measure(_: str, __: np.random.Generator) -> float:
        model = fit(x, labels, epsilon=epsilon, data_norm=1, classes=list(range(classes))).value
        return _log_loss(model.decision(x), labels) - least

    asked = {"n": len(x), "dimension": x.shape[1], "epsilon": epsilon, **_hints(x, signal)}
    if classes > 2:
        asked["classes"] = classes
    return Cell("multinomial" if classes > 2 else "logistic", asked, measure, 12, name)


TASKS: dict[str, Callable[[], Iterator[Cell]]] = {
    "mean": means,
    "histogram": histograms,
    "select": selections,
    "mode": modes,
    "median": quantiles,
    "trimmed_mean": trimmed_means,
    "queries": marginals,
    "linear": regressions,
    "classification": classifications,
    "kmeans": clusterings,
    "held_out": held_out,
}


def run(cell: Cell, quick: bool, table: Table) -> tuple[bool, bool]:
    """Measure one cell, add its line, and tell whether forecast and pick were right."""
    advice = advise(cell.task, **cell.asked)
    runs = max(4, cell.runs // 4) if quick else cell.runs
    found: dict[str, float] = {}
    for method in advice:
        if NOT_MEASURED & {method.name, (cell.task, method.name)} or method.error == math.inf:
            continue
        rng = np.random.default_rng(7)
        found[method.name] = float(np.mean([cell.measure(method.name, rng) for _ in range(runs)]))
    best = advice.best
    ratio = best.error / found[best.name]
    limit = WITHIN.get(cell.task, 1.5)
    close = 1 / limit <= ratio <= limit
    right = found[best.name] <= 1.1 * min(found.values())
    others = ", ".join(f"{name} {error:.3g}" for name, error in found.items() if name != best.name)
    table.add_row(
        cell.name,
        best.name,
        f"{best.error:.3g}",
        f"{found[best.name]:.3g}",
        f"{ratio:.2f}" + ("" if close else " !"),
        ("yes" if right else "NO") + (f" ({others})" if others else ""),
    )
    return close, right


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tasks", nargs="*", choices=[*TASKS, []], help="all if none is named")
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    console = Console(width=150)
    every: list[tuple[bool, bool]] = []
    for name in arguments.tasks or TASKS:
        started = time.perf_counter()
        table = Table(title=name)
        for column in ("cell", "pick", "forecast", "measured", "ratio", "best or within 10 %"):
            table.add_column(column)
        results = [run(cell, arguments.quick, table) for cell in TASKS[name]()]
        every += results
        console.print(table)
        close, right = (sum(column) for column in zip(*results, strict=True))
        took = time.perf_counter() - started
        console.print(
            f"{name}: forecast in range {close}/{len(results)}, pick best or within 10 % "
            f"{right}/{len(results)} ({took:.0f} s)\n"
        )
    close, right = (sum(column) for column in zip(*every, strict=True))
    console.print(f"all: forecast in range {close}/{len(every)}, pick {right}/{len(every)}")


if __name__ == "__main__":
    main()
