"""Choose among the methods that release tables by their forecasts, and plan the release.

`answer_queries` and `synthesize` use the same plan and differ in the post-processing of answers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, TypeAlias, final

import numpy as np

from zerodelta.data.rows import Rows
from zerodelta.errors import is_name, require
from zerodelta.exact.arrays import Floats, Integers
from zerodelta.exact.bits import BitSource
from zerodelta.exact.rational import Rational
from zerodelta.exact.sums import IntegerArray
from zerodelta.marginals.bases import margin
from zerodelta.marginals.domain import (
    MAXIMUM_CELLS,
    Cells,
    Columns,
    Domain,
    TableWorkload,
    Tabulated,
    check_memory,
    code_rows,
    count_rows,
    out_of_domain_codes,
)
from zerodelta.marginals.fit import Answers, fit
from zerodelta.marginals.strategies import (
    MAXIMUM_FITTED_CELLS,
    Strategy,
    best_rounds,
    box_strategy,
    rounds_error,
    table_estimate,
    table_strategy,
    tables_error,
)
from zerodelta.mechanisms.selection import PermuteAndFlip
from zerodelta.mechanisms.sum_noise import RoundedLaplace
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.parameters import Neighbors, as_usable_epsilon
from zerodelta.privacy.steps import Step
from zerodelta.spine.plan import Facts, Method, ReleasePlan, choose, ranked
from zerodelta.value import value

# -- Table rounds ---------------------------------------------------------------------------------
# Pure MWEM on tables: choose a badly fitted table, measure all its cells, fit (theory C10.6).
# Measuring all cells costs no more than one, because a replaced row moves two cells by one. The
# fitted distribution is a function of earlier answers only, so ε adds up over the rounds.

_SENSITIVITY = 2
"""The l1 sensitivity of a table to a replaced row."""


@final
class TableRounds:
    """The public plan of T rounds: ε/(2T) for the choice of a table and ε/(2T) for its cells."""

    def __init__(
        self, domain: Domain, workload: TableWorkload, epsilon: Fraction, rounds: int
    ) -> None:
        share = epsilon / (2 * rounds)
        self._domain, self._tables = domain, workload.tables
        self.rounds = rounds
        self.select = PermuteAndFlip.for_epsilon(epsilon=share, sensitivity=_SENSITIVITY)
        self.noise = RoundedLaplace.for_epsilon(epsilon=share, sensitivity=_SENSITIVITY)

    def steps(self) -> tuple[Step, ...]:
        """Return the certificate's steps."""
        return self.select.step().times(self.rounds), self.noise.step().times(self.rounds)

    def run(self, data: Tabulated, bits: BitSource) -> Answers:
        """Return the noisy measurements and the last fit."""
        tables = {table: data.table(table) for table in self._tables}
        return self.rounds_on(
            tables,
            data.rows,
            choose=lambda scores: self.select.select(scores, bits),
            measure=lambda counts: self.noise.apply(counts, bits),
        )

    def rounds_on(
        self,
        tables: dict[Columns, Integers],
        rows: int,
        *,
        choose: Callable[[Integers], int],
        measure: Callable[[Integers], IntegerArray],
    ) -> Answers:
        """Run the rounds; exact tables reach only `choose`, as scores, and `measure`."""
        noisy: dict[Columns, Floats] = {}
        weights = np.full(self._domain.sizes, 1 / self._domain.cells)
        variance = 2 * float(self.noise.scale) ** 2
        unmeasured = list(self._tables)
        for number in range(self.rounds):
            scores = [self._score(weights, table, tables[table], rows) for table in unmeasured]
            chosen = unmeasured.pop(choose(np.array(scores, dtype=np.int64)))
            cells = measure(tables[chosen].reshape(-1)).astype(np.float64)
            noisy[chosen] = cells.reshape(self._domain.shape(chosen))
            estimate = table_estimate(self._domain, noisy, dict.fromkeys(noisy, variance), rows)
            last = number + 1 == self.rounds
            fitted = fit(estimate) if last else fit(estimate, penalties=(100.0,))
            weights = fitted.weights.reshape(self._domain.sizes)
        return Answers(fitted=fitted, estimate=estimate)

    def _score(self, weights: Floats, table: Columns, counts: Integers, rows: int) -> int:
        """Return Σ|round(n p) - counts| less its expected noise when measured; sensitivity 2."""
        expected = np.rint(margin(weights, table) * rows).astype(np.int64)
        noise = round(float(self.noise.scale) * counts.size)
        return int(np.abs(expected - counts).sum()) - noise


# -- Methods --------------------------------------------------------------------------------------

Mechanism: TypeAlias = Strategy | TableRounds

_CLEARLY_BETTER = 0.75
"""The largest ratio of forecasts at which a strategy that leaves out coefficients is preferred."""

_NAMES = ("k-norm", "counts", "laplace", "mwem")
_ELSEWHERE = {"purified": "zerodelta.paper.multiset_mwem"}

_CELL_METHODS = {Neighbors.REPLACE: ("counts", "laplace"), Neighbors.ADD_REMOVE: ("laplace",)}
"""The methods with noise on cells. Noisy cells add up to a noisy number of rows, so that these work
where that number is private. "counts" has noise for the two cells of a replaced row, which gains
nothing for an added or removed row (theory H)."""


Candidate: TypeAlias = tuple[Method, Mechanism | None]
"""A method with its forecast, and its mechanism, None where it does not apply.

The forecast is the expected absolute error of a frequency, averaged over all cells.
"""


@value
class TableMethods:
    """The methods that can release these tables of `rows` rows with this ε."""

    domain: Domain
    workload: TableWorkload
    epsilon: Fraction
    rows: int
    counted: bool = True
    """Whether `rows` is the exact number, which then is public, or an expected number."""
    neighbors: Neighbors = Neighbors.REPLACE

    def choose(self, name: str) -> tuple[Candidate, tuple[Method, ...]]:
        """Return the named method, or for "auto" the best, and all methods, best first."""
        on_cells = _CELL_METHODS[self.neighbors]
        require(
            self.counted or is_name(name, ("auto", *on_cells)),
            "method",
            name,
            expected=f"one of {sorted(on_cells)}: the others divide by the number of rows, which "
            f"is private{'' if 'counts' in on_cells else ', or are for replaced rows'}",
            remedy='pass method="auto", or release the tables of all rows, without a filter',
        )
        names = _NAMES if self.counted else on_cells
        candidates = {known: self.candidate(known) for known in names}
        methods = ranked(*(method for method, _ in candidates.values()))
        return candidates[choose(methods, name, elsewhere=_ELSEWHERE).name], methods

    def candidate(self, name: str) -> Candidate:
        """Return a method's forecast and its strategy; None if there are too many cells."""
        if name == "mwem":
            return self._rounds()
        count, strategy = len(self.workload.tables), self._strategy(name)
        sensitivity = count if self.neighbors is Neighbors.ADD_REMOVE else 2 * count
        spends, why = {
            "k-norm": (
                "ε on orthogonal coefficients, each measured once, split among orders",
                "tables share coefficients: small tables of many columns need the least noise",
            ),
            "counts": (f"ε/{count} on each table", "noise fitted to the two cells of a row"),
            "laplace": (
                f"ε on {count} tables together",
                f"independent noise; one row has l1 sensitivity {sensitivity}",
            ),
        }[name]
        error = math.inf if strategy is None else self._error(strategy)
        if strategy is None:
            why = "too many cells"
        return Method(name=name, error=error, spends=spends, why=why), strategy

    def _error(self, strategy: Strategy) -> float:
        """Return the forecast of a strategy."""
        return tables_error(self.domain, self.workload, strategy.variances(self.rows))

    def _strategy(self, name: str) -> Strategy | None:
        """Return the best strategy of a method; None if it does not apply."""
        domain, workload, epsilon = self.domain, self.workload, self.epsilon
        if name != "k-norm":
            return table_strategy(
                domain, workload, epsilon, joint=name == "counts", neighbors=self.neighbors
            )
        highest = max(map(len, workload.tables))
        full = box_strategy(domain, workload, epsilon, self.rows)
        # coefficients that are not measured must be fitted, which the number of cells limits
        if full is None or domain.cells > MAXIMUM_FITTED_CELLS:
            return full
        lower = (
            box_strategy(domain, workload, epsilon, self.rows, order=order)
            for order in range(1, highest)
        )
        errors = [(self._error(part), i, part) for i, part in enumerate(lower) if part is not None]
        error, _, best = min(errors, default=(math.inf, 0, full))
        # the forecast of unmeasured coefficients is a guess, that of `full` is exact
        return best if error < _CLEARLY_BETTER * self._error(full) else full

    def _rounds(self) -> Candidate:
        """Return the method "mwem", which measures the worst table in each round."""
        domain, workload, epsilon, rows = self.domain, self.workload, self.epsilon, self.rows
        if domain.cells > MAXIMUM_FITTED_CELLS:
            spends = "ε/2 on choosing, ε/2 on measuring tables"
            why = "the domain has more than 2^20 cells, and every round goes through all of them"
            return Method(name="mwem", error=math.inf, spends=spends, why=why), None
        rounds = best_rounds(domain, workload, epsilon, rows)
        method = Method(
            name="mwem",
            error=rounds_error(domain, workload, epsilon, rows, rounds),
            spends=f"ε/2 on choosing, ε/2 on measuring {rounds} of {len(workload.tables)} tables",
            why="tables that look alike are not measured; its error depends on the data (a guess)",
        )
        return method, TableRounds(domain, workload, epsilon, rounds)


def tables_plan(
    domain: Domain,
    workload: TableWorkload,
    *,
    facts: Facts,
    epsilon: Rational,
    unknown: Any,
    method: str,
    always_fit: bool,
    value: Callable[[Answers], Any],
    extra_error: float = 0.0,
    declared: bool = False,
) -> ReleasePlan[Any]:
    """Plan noisy tables by the chosen method; `value` makes the result of the answers.

    With `always_fit` a distribution is fitted even to more than 2^20 cells. Where the number of
    rows is private, frequencies are fractions of the total of noisy cells. `declared`: the rows are
    those of a data set, whose columns hold codes.
    """
    planned, private = facts.planned_rows, facts.rows is None
    if declared:
        check_memory(facts, domain, workload)
    methods = TableMethods(
        domain=domain,
        workload=workload,
        epsilon=as_usable_epsilon(epsilon),
        rows=planned,
        counted=not private,
        neighbors=facts.neighbors,
    )
    codes = out_of_domain_codes(unknown, domain)
    (chosen, mechanism), compared = methods.choose(method)
    require(
        mechanism is not None,
        "method",
        chosen.name,
        expected=f"a method that applies to {domain.cells} cells: {chosen.why}",
        remedy='pass method="auto", or ask for smaller tables',
    )
    assert mechanism is not None

    def answer(rows: Rows | Sequence[Cells], bits: BitSource) -> Any:
        """Count the rows in the tables, add noise, and return the value made of them."""
        data: Tabulated
        if isinstance(rows, Rows):
            data = count_rows(
                rows,
                domain,
                workload,
                unknown=codes,
                declared=declared,
                planned=planned,
                private=private,
            )
        else:
            data = code_rows(rows, domain, codes)
        return value(_answers(mechanism, data, bits, always_fit=always_fit))

    return ReleasePlan(
        claim=PureDP(methods.epsilon, neighbors=facts.neighbors),
        steps=mechanism.steps(),
        answer=answer,
        error=chosen.error + extra_error,
        methods=tuple(replace(m, error=m.error + extra_error) for m in compared),
        public=("the domain", "the workload", *(() if private else ("the number of rows",))),
    )


def _answers(
    mechanism: Mechanism, data: Tabulated, bits: BitSource, *, always_fit: bool
) -> Answers:
    """Measure with the mechanism, and fit a distribution if there are not too many cells."""
    if isinstance(mechanism, TableRounds):
        return mechanism.run(data, bits)
    estimate = mechanism.measure(data, bits)
    small = data.domain.cells <= (MAXIMUM_CELLS if always_fit else MAXIMUM_FITTED_CELLS)
    return Answers(fitted=fit(estimate) if small else None, estimate=estimate)
