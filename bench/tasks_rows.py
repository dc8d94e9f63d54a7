"""Make the rows of the tables of `bench/tasks.py`: errors of zerodelta and rivals, ratios."""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from bench.tasks_peers import Asked
from rich.table import Table

EPSILONS = (0.5, 1.0, 2.0)
OURS, ORACLES = "zerodelta", {"diffprivlib": "best C", "OpenDP": "best grid"}
TINY = 1e-300
STAND_IN = " (not counted: peers answer another question)"
Floats: TypeAlias = npt.NDArray[np.float64]
Numbers: TypeAlias = tuple[float, ...]
Metric: TypeAlias = Callable[[Any, int], Numbers]
"""Errors of what was published about this data set."""


class Ratio(NamedTuple):
    """Ours over the best rival's, and the standard error of its logarithm."""

    value: float
    doubt: float

    @property
    def behind(self) -> bool:
        return self.value > 1.1

    @property
    def surely_behind(self) -> bool:
        return self.value > 1.1 * math.exp(2 * self.doubt)

    def __str__(self) -> str:
        return f"{self.value:.2f}±{self.value * self.doubt:.2f}" + "!" * self.behind


class Estimate(NamedTuple):
    """Averages of the errors, one or in-sample and held-out, and the same of resampled ones.

    Resampling picks the same data sets or runs for all rivals: what data does to all cancels.
    """

    errors: Floats
    again: Floats

    @classmethod
    def of(cls, errors: Floats, sets: int, average: Callable[..., Any]) -> Estimate:
        """Run i was about data set i, modulo their number; with only one, runs are resampled."""
        units = errors.reshape(-1, sets if sets > 1 else len(errors), errors.shape[-1])
        picks = np.random.default_rng(0).integers(units.shape[1], size=(200, units.shape[1]))
        flat = (units[:, pick].reshape(errors.shape) for pick in picks)
        return cls(average(errors, axis=0), np.array([average(one, axis=0) for one in flat]))

    @classmethod
    def best(cls, kinds: list[Estimate]) -> Estimate:
        """Return the least of each number: the choice of an oracle."""
        errors, again = (np.array(parts) for parts in zip(*kinds, strict=True))
        chosen, every = errors.argmin(axis=0), np.arange(errors.shape[1])
        return cls(errors[chosen, every], again[chosen, :, every].T)


@dataclass(frozen=True, kw_only=True)
class Row:
    """Errors and seconds by rival; ours is `OURS`."""

    task: str
    case: str
    epsilon: float
    metric: str
    found: dict[str, Estimate]
    seconds: dict[str, float]

    def ratios(self, rivals: Iterable[str]) -> list[Ratio]:
        """Return ours over the best of these rivals, number by number."""
        known = [self.found[name] for name in rivals if name in self.found]
        if not known:
            return []
        (ours, mine), (theirs, others) = self.found[OURS], Estimate.best(known)
        doubts = (_log(mine) - _log(others)).std(axis=0)
        values = ours / np.maximum(theirs, TINY)
        return [Ratio(*pair) for pair in zip(values.tolist(), doubts.tolist(), strict=True)]

    @property
    def rivals(self) -> list[str]:
        return [name for name in self.found if name != OURS]

    @property
    def defaults(self) -> list[str]:
        return [name for name in self.rivals if name not in ORACLES.values()]


def _log(errors: Floats) -> Floats:
    return np.log(np.maximum(errors, TINY))


def measured(
    *,
    task: str,
    case: str,
    ours: Callable[[float, int], Any],
    theirs: dict[str, Asked],
    metrics: dict[str, Metric],
    runs: int,
    sets: int = 1,
    heavy: Collection[str] = (),
) -> list[Row]:
    """Run ours on data set i modulo `sets`, average each metric, and set the peers' beside it.

    The average is the mean, or the median of metrics with `heavy` tails.
    A peer's first variant is its default; with several, the best of them is chosen for each number
    by an oracle that sees the true error.
    """
    rows = []
    for number, epsilon in enumerate(EPSILONS):
        values, seconds = [], []
        for run in range(runs):
            start = time.process_time()
            values.append(ours(epsilon, run % sets))
            seconds.append(time.process_time() - start)
        answers = {name: asked.result()[number] for name, asked in theirs.items()}
        answers = {name: kinds for name, kinds in answers.items() if kinds}
        times = {OURS: float(np.median(seconds))}
        times |= {name: next(iter(kinds.values())).seconds for name, kinds in answers.items()}
        for metric, error in metrics.items():
            average = np.median if metric in heavy else np.mean

            def estimate(
                published: list[Any], error: Metric = error, average: Any = average
            ) -> Estimate:
                errors = np.array([error(value, i % sets) for i, value in enumerate(published)])
                return Estimate.of(errors, sets, average)

            found = {OURS: estimate(values)}
            for name, kinds in answers.items():
                each = [estimate(kind.values) for kind in kinds.values()]
                found[name] = each[0]
                if len(each) > 1:
                    found[ORACLES[name]] = Estimate.best(each)
            rows.append(
                Row(
                    task=task,
                    case=case,
                    epsilon=epsilon,
                    metric=metric,
                    found=found,
                    seconds=times,
                )
            )
    return rows


def show(rows: list[Row], what: str) -> Table:
    """Return the table of one task; `what` says of which averages."""
    names = list(dict.fromkeys(name for row in rows for name in row.found))
    both = any(len(row.found[OURS].errors) > 1 for row in rows)
    table = Table(title=f"{rows[0].task}: {what}" + " (in-sample · held-out)" * both)
    for column in ("case", "ε", "metric", *names):
        table.add_column(column, justify="left" if column in ("case", "metric") else "right")
    ends = ("ours / best rival", "ours / default", "seconds", "time / diffprivlib", "/ OpenDP")
    for column in ends:
        table.add_column(column, justify="right")
    for row in rows:
        cells = [_cell(row.found[name].errors) if name in row.found else "-" for name in names]
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


def _cell(numbers: Floats) -> str:
    return " · ".join(f"{number:.3g}" for number in numbers)


def _ratios(ratios: list[Ratio]) -> str:
    return " · ".join(map(str, ratios)) or "-"


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
        tally[1] += sum(not ratio.behind for ratio in against_all)
        tally[2] += sum(ratio.behind for ratio in against_default)
        tally[3] += sum(ratio.surely_behind for ratio in against_default)
    for (task, metric), tally in tallies.items():
        table.add_row(task, metric, *(str(number) for number in tally))
    total, near, behind, surely = (sum(column) for column in zip(*tallies.values(), strict=True))
    share = near / total if total else math.nan
    return table, (
        f"best or within 10 % of the best in {near} of {total} rows ({share:.0%}); "
        f"worse than a peer's default by more than 10 % in {behind} rows, by two standard errors "
        f"in {surely} of them"
    )
