"""The methods that release tables: their forecasts, the choice among them, the plan of a release.

`answer_queries` and `synthesize` differ only in what they make of the answers: post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, TypeAlias

from zerodelta.data.rows import Rows
from zerodelta.errors import is_name, require
from zerodelta.exact.bits import BitSource
from zerodelta.exact.rational import Rational
from zerodelta.marginals.domain import (
    MOST_CELLS,
    Cells,
    Domain,
    TableWorkload,
    Tabulated,
    check_memory,
    code_rows,
    count_rows,
    out_of_domain_codes,
)
from zerodelta.marginals.fit import Answers, fit
from zerodelta.marginals.mwem import TableRounds
from zerodelta.marginals.strategies import (
    MOST_FITTED,
    Strategy,
    best_rounds,
    box_strategy,
    rounds_error,
    table_strategy,
    tables_error,
)
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.parameters import Neighbors, as_usable_epsilon
from zerodelta.spine.plan import Facts, Method, ReleasePlan, choose, ranked
from zerodelta.value import value

Mechanism: TypeAlias = Strategy | TableRounds

_CLEARLY = 0.75
_NAMES = ("k-norm", "counts", "laplace", "mwem")
_ELSEWHERE = {"purified": "zerodelta.paper.multiset_mwem"}

_COUNTING = {Neighbors.REPLACE: ("counts", "laplace"), Neighbors.ADD_REMOVE: ("laplace",)}
"""Noise on the cells themselves, which show how many rows there are where that is private.

Noise fitted to the two cells of a replaced row gains nothing where a row comes or goes (theory H).
"""


Candidate: TypeAlias = tuple[Method, Mechanism | None]
"""A method with its forecast, and what carries it out; None where it does not apply.

Errors are expected absolute errors of a frequency, averaged over all cells.
"""


@value
class TableMethods:
    """What can release these tables of `rows` rows with this ε; all public."""

    domain: Domain
    workload: TableWorkload
    epsilon: Fraction
    rows: int
    counted: bool = True
    """Whether that is the number of rows, which is public, or a public guess."""
    neighbors: Neighbors = Neighbors.REPLACE

    def weigh(self, method: str) -> tuple[Candidate, tuple[Method, ...]]:
        """Return the named method, or for "auto" the best, and all methods, best first."""
        counting = _COUNTING[self.neighbors]
        require(
            self.counted or is_name(method, ("auto", *counting)),
            "method",
            method,
            expected=f"one of {sorted(counting)}: the others divide by the number of rows, which "
            f"is private{'' if 'counts' in counting else ', or are for replaced rows'}",
            remedy='pass method="auto", or release the tables of all rows, without a filter',
        )
        names = _NAMES if self.counted else counting
        candidates = {name: self.candidate(name) for name in names}
        methods = ranked(*(found for found, _ in candidates.values()))
        return candidates[choose(methods, method, elsewhere=_ELSEWHERE).name], methods

    def candidate(self, name: str) -> Candidate:
        """Return one method, planned and forecast."""
        if name == "mwem":
            return self._rounds()
        count, strategy = len(self.workload.tables), self._strategy(name)
        moves = count if self.neighbors is Neighbors.ADD_REMOVE else 2 * count
        spends, why = {
            "k-norm": (
                "ε on orthogonal coefficients, each measured once, split among orders",
                "tables share coefficients: small tables of many columns need the least noise",
            ),
            "counts": (f"ε/{count} on each table", "noise fitted to the two cells of a row"),
            "laplace": (
                f"ε on {count} tables together",
                f"independent noise; one row has l1 sensitivity {moves}",
            ),
        }[name]
        error = math.inf if strategy is None else self._error(strategy)
        if strategy is None:
            why = "too many cells"
        return Method(name=name, error=error, spends=spends, why=why), strategy

    def _error(self, strategy: Strategy) -> float:
        return tables_error(self.domain, self.workload, strategy.variances(self.rows))

    def _strategy(self, name: str) -> Strategy | None:
        domain, workload, epsilon = self.domain, self.workload, self.epsilon
        if name != "k-norm":
            joint, related = name == "counts", self.neighbors
            return table_strategy(domain, workload, epsilon, joint=joint, neighbors=related)
        highest = max(map(len, workload.tables))
        full = box_strategy(domain, workload, epsilon, self.rows)
        if full is None or domain.cells > MOST_FITTED:  # what is not measured must be fitted
            return full
        lower = (
            box_strategy(domain, workload, epsilon, self.rows, order=order)
            for order in range(1, highest)
        )
        errors = [(self._error(part), i, part) for i, part in enumerate(lower) if part is not None]
        error, _, best = min(errors, default=(math.inf, 0, full))
        # a guess about data must promise a lot to beat what is certain
        return best if error < _CLEARLY * self._error(full) else full

    def _rounds(self) -> Candidate:
        domain, workload, epsilon, rows = self.domain, self.workload, self.epsilon, self.rows
        if domain.cells > MOST_FITTED:
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
    whole: bool,
    value: Callable[[Answers], Any],
    extra_error: float = 0.0,
    declared: bool = False,
) -> ReleasePlan[Any]:
    """Return the plan that releases `value` of the tables; with `whole` they are always fitted.

    Where the number of rows is private, frequencies are fractions of what the noisy cells add up
    to. `declared`: the rows are those of a data set, whose columns hold codes.
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
    (chosen, mechanism), weighed = methods.weigh(method)
    require(
        mechanism is not None,
        "method",
        chosen.name,
        expected=f"one that applies to {domain.cells} cells: {chosen.why}",
        remedy='pass method="auto", or ask for smaller tables',
    )
    assert mechanism is not None

    def answer(rows: Rows | Sequence[Cells], bits: BitSource) -> Any:
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
        return value(_answers(mechanism, data, bits, whole=whole))

    return ReleasePlan(
        claim=PureDP(methods.epsilon, neighbors=facts.neighbors),
        steps=mechanism.steps(),
        answer=answer,
        error=chosen.error + extra_error,
        methods=tuple(replace(m, error=m.error + extra_error) for m in weighed),
        public=("the domain", "the workload", *(() if private else ("the number of rows",))),
    )


def _answers(mechanism: Mechanism, data: Tabulated, bits: BitSource, *, whole: bool) -> Answers:
    if isinstance(mechanism, TableRounds):
        return mechanism.run(data, bits)
    estimate = mechanism.measure(data, bits)
    small = data.domain.cells <= (MOST_CELLS if whole else MOST_FITTED)
    return Answers(fitted=fit(estimate) if small else None, estimate=estimate)
