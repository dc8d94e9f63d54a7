"""Pure MWEM on whole tables: choose a badly fitted one, measure all its cells, fit (theory C10.6).

A table costs as much as one of its cells: replacing a row moves two of them by one. The fitted
distribution is a function of earlier answers only, so ε adds up over the rounds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import final

import numpy as np

from zerodelta.exact.arrays import Floats, Integers
from zerodelta.exact.bits import BitSource
from zerodelta.exact.exact_sums import IntegerArray
from zerodelta.mechanisms.laplace import RoundedLaplace
from zerodelta.mechanisms.selection import PermuteAndFlip
from zerodelta.privacy.step import Step
from zerodelta.tables.bases import margin
from zerodelta.tables.distribution import Answers, fit
from zerodelta.tables.domain import Columns, Domain, TableWorkload
from zerodelta.tables.estimate import table_estimate
from zerodelta.tables.streamed_counts import Tabulated

_SENSITIVITY = 2
"""How far replacing one row moves a table, in l1."""


@final
class TableRounds:
    """T rounds with ε/(2T) for the choice of a table and ε/(2T) for its cells; all public."""

    def __init__(
        self, domain: Domain, workload: TableWorkload, epsilon: Fraction, rounds: int
    ) -> None:
        share = epsilon / (2 * rounds)
        self._domain, self._tables = domain, workload.tables
        self.rounds = rounds
        self.select = PermuteAndFlip.for_epsilon(epsilon=share, sensitivity=_SENSITIVITY)
        self.noise = RoundedLaplace.for_epsilon(epsilon=share, sensitivity=_SENSITIVITY)

    def steps(self) -> tuple[Step, ...]:
        """Return the proof steps."""
        return tuple(
            replace(step, numbers={**step.numbers, "count": self.rounds})
            for step in (self.select.step(), self.noise.step())
        )

    def run(self, data: Tabulated, bits: BitSource) -> Answers:
        """Return what was measured and the last fit."""
        tables = {table: data.table(table) for table in self._tables}
        return self.play(
            tables,
            data.rows,
            choose=lambda scores: self.select.select(scores, bits),
            measure=lambda counts: self.noise.apply(counts, bits),
        )

    def play(
        self,
        tables: dict[Columns, Integers],
        rows: int,
        *,
        choose: Callable[[Integers], int],
        measure: Callable[[Integers], IntegerArray],
    ) -> Answers:
        """Run the rounds; data enters only what `choose` and `measure` are given."""
        noisy: dict[Columns, Floats] = {}
        weights = np.full(self._domain.sizes, 1 / self._domain.cells)
        variance = 2 * float(self.noise.scale) ** 2
        left = list(self._tables)
        for turn in range(self.rounds):
            scores = [self._score(weights, table, tables[table], rows) for table in left]
            chosen = left.pop(choose(np.array(scores, dtype=np.int64)))
            cells = measure(tables[chosen].reshape(-1)).astype(np.float64)
            noisy[chosen] = cells.reshape(self._domain.shape(chosen))
            estimate = table_estimate(self._domain, noisy, dict.fromkeys(noisy, variance), rows)
            last = turn + 1 == self.rounds
            found = fit(estimate) if last else fit(estimate, penalties=(100.0,))
            weights = found.weights.reshape(self._domain.sizes)
        return Answers(fitted=found, estimate=estimate)

    def _score(self, weights: Floats, table: Columns, counts: Integers, rows: int) -> int:
        """Return Σ|round(n p) - counts| less the noise of measuring it: sensitivity 2."""
        expected = np.rint(margin(weights, table) * rows).astype(np.int64)
        noise = round(float(self.noise.scale) * counts.size)
        return int(np.abs(expected - counts).sum()) - noise
