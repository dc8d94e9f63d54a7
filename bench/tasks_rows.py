"""Rows of the tables of `bench/tasks.py`: errors of ours and of rivals, ratios, and the count."""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from bench.tasks_peers import Answers
from rich.table import Table

EPSILONS = (0.5, 1.0, 2.0)
OURS, ORACLE = "zerodelta", "best C"
STAND_IN = " (not counted: peers answer another question)"
Numbers: TypeAlias = tuple[float, ...]
Metric: TypeAlias = Callable[[Any], Numbers]


@dataclass(frozen=True, kw_only=True)
class Row:
    """Errors (one, or in-sample and held-out) and seconds by rival; ours is `OURS`."""

    task: str
    case: str
    epsilon: float
    metric: str
    errors: dict[str, Numbers]
    seconds: dict[str, float]
    doubts: dict[str, Numbers] = field(default_factory=dict)
    """Standard errors of the logarithms of `errors`; none where they are not known."""

    def surely_behind(self, rivals: Iterable[str]) -> int:
        """Return how many numbers are 10 % behind one of these by two standard errors or more."""
        places = range(len(self.errors[OURS]))
        return sum(any(self._behind(name, i) for name in rivals) for i in places)

    def _behind(self, rival: str, i: int) -> bool:
        ours, theirs = self.errors[OURS][i], self.errors[rival][i]
        doubts = [self.doubts[name][i] if name in self.doubts else 0.0 for name in (OURS, rival)]
        return ours > 1.1 * theirs * math.exp(2 * math.hypot(*doubts))

    def ratios(self, rivals: Iterable[str]) -> Numbers:
        """Return ours over the best of these rivals, number by number."""
        known = [self.errors[name] for name in rivals if name in self.errors]
        if not known:
            return ()
        return tuple(
            ours / max(least, 1e-300)
            for ours, least in zip(self.errors[OURS], np.min(known, axis=0), strict=True)
        )

    @property
    def rivals(self) -> list[str]:
        return [name for name in self.errors if name != OURS]

    @property
    def defaults(self) -> list[str]:
        return [name for name in self.rivals if name != ORACLE]


def measured(
    *,
    task: str,
    case: str,
    ours: Callable[[float], Any],
    theirs: dict[str, list[dict[str, Answers]]],
    metrics: dict[str, Metric],
    runs: int,
) -> list[Row]:
    """Run ours, take medians of each metric, and set the peers' beside it.

    A peer's first variant is its default; with several, the best of them is chosen for each number
    by an oracle that sees the true error.
    """
    rows = []
    for number, epsilon in enumerate(EPSILONS):
        values, seconds = [], []
        for _ in range(runs):
            start = time.process_time()
            values.append(ours(epsilon))
            seconds.append(time.process_time() - start)
        answers = {name: found[number] for name, found in theirs.items() if found[number]}
        times = {OURS: float(np.median(seconds))}
        times |= {name: next(iter(kinds.values())).seconds for name, kinds in answers.items()}
        for metric, error in metrics.items():
            found = {OURS: [_median(error, values)]}
            for name, kinds in answers.items():
                found[name] = [_median(error, kind.values) for kind in kinds.values()]
                if len(kinds) > 1:
                    found[ORACLE] = [tuple(min(pairs) for pairs in zip(*found[name], strict=True))]
            errors, doubts = (
                {name: tuple(pair[i] for pair in kinds[0]) for name, kinds in found.items()}
                for i in (0, 1)
            )
            rows.append(
                Row(
                    task=task,
                    case=case,
                    epsilon=epsilon,
                    metric=metric,
                    errors=errors,
                    seconds=times,
                    doubts=doubts,
                )
            )
    return rows


def _median(error: Metric, values: list[Any]) -> tuple[tuple[float, float], ...]:
    """Return each number's median and the standard error of its logarithm, by bootstrap."""
    found = np.array([error(value) for value in values])
    picks = np.random.default_rng(0).integers(len(found), size=(200, len(found)))
    again = np.log(np.maximum(np.median(found[picks], axis=1), 1e-300)).std(axis=0)
    middle = np.median(found, axis=0)
    return tuple((float(m), float(s)) for m, s in zip(middle, again, strict=True))


def show(rows: list[Row], *, runs: str) -> Table:
    """Return the table of one task."""
    names = list(dict.fromkeys(name for row in rows for name in row.errors))
    both = " (in-sample · held-out)" if any(len(row.errors[OURS]) > 1 for row in rows) else ""
    table = Table(title=f"{rows[0].task}: median error{both}, {runs}")
    for column in ("case", "ε", "metric", *names):
        table.add_column(column, justify="left" if column in ("case", "metric") else "right")
    ends = ("ours / best rival", "ours / default", "seconds", "time / diffprivlib", "/ OpenDP")
    for column in ends:
        table.add_column(column, justify="right")
    for row in rows:
        cells = [_cell(row.errors[name]) if name in row.errors else "-" for name in names]
        times = [
            f"{row.seconds[OURS] / row.seconds[peer]:.2g}" if peer in row.seconds else "-"
            for peer in ("diffprivlib", "OpenDP")
        ]
        table.add_row(
            row.case,
            f"{row.epsilon:g}",
            row.metric,
            *cells,
            _ratios(row.ratios(row.rivals)),
            _ratios(row.ratios(row.defaults)),
            f"{row.seconds[OURS]:.2g}",
            *times,
        )
    return table


def _cell(numbers: Numbers) -> str:
    return " · ".join(f"{number:.3g}" for number in numbers)


def _ratios(ratios: Numbers) -> str:
    return " · ".join(f"{ratio:.2f}" + ("!" if ratio > 1.1 else "") for ratio in ratios) or "-"


def count(rows: list[Row]) -> tuple[Table, str]:
    """Return how often ours is best or near it, by metric, and the sentence about all."""
    table = Table("task", "metric", "numbers", "best or within 10 %", "> 10 % behind a default")
    table.add_column("by two standard errors")
    tallies: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for row in rows:
        against_all, against_default = row.ratios(row.rivals), row.ratios(row.defaults)
        tally = tallies[row.task, row.metric]
        if row.task.endswith(STAND_IN):
            continue
        tally[0] += len(against_all)
        tally[1] += sum(ratio <= 1.1 for ratio in against_all)
        tally[2] += sum(ratio > 1.1 for ratio in against_default)
        tally[3] += row.surely_behind(row.defaults)
    for (task, metric), tally in tallies.items():
        table.add_row(task, metric, *(str(number) for number in tally))
    total, near, behind, surely = (sum(column) for column in zip(*tallies.values(), strict=True))
    share = near / total if total else math.nan
    return table, (
        f"best or within 10 % of the best in {near} of {total} rows ({share:.0%}); "
        f"worse than a peer's default by more than 10 % in {behind} rows, by two standard errors "
        f"in {surely} of them"
    )
