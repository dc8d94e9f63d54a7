"""Tables and, where it fits in memory, a distribution over all cells, released by one method.

`answer_queries` and `synthesize` differ only in what they make of this: post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any, final

from zerodelta.errors import ParameterError
from zerodelta.exact.bits import BitSource
from zerodelta.privacy.certificate import Certificate
from zerodelta.privacy.claims import PureDP
from zerodelta.spine.methods import Method, choose, ranked
from zerodelta.spine.transition import for_source, issue_for
from zerodelta.tables.bases import Floats, margin
from zerodelta.tables.codes import code_rows
from zerodelta.tables.distribution import Fit, answer, fit
from zerodelta.tables.domain import MOST_CELLS, Columns, Domain, Workload
from zerodelta.tables.forecast import (
    MOST_FITTED,
    best_rounds,
    rounds_error,
    tables_error,
)
from zerodelta.tables.mwem_rounds import Rounds
from zerodelta.tables.sample import sample_plan, sampled
from zerodelta.tables.strategies import (
    Strategy,
    box_strategy,
    table_strategy,
)

__all__ = ["Published", "forecasts", "publish"]

_CLEARLY = 0.75
_PUBLIC = ("the domain", "the workload", "the number of rows")


@final
@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Published:
    """Everything here is private: a function of noisy answers and of public numbers."""

    table: Callable[[Columns], Floats]
    weights: Floats | None
    certificate: Certificate
    method: Method


def publish(
    rows: Any,
    domain: Domain,
    workload: Workload,
    *,
    epsilon: Fraction,
    unknown: Any,
    method: str,
    bits: BitSource,
    whole: bool,
) -> Published:
    """Release the tables; with `whole` also a distribution over all cells."""
    data = code_rows(rows, domain, unknown=unknown)
    methods = forecasts(domain, workload, epsilon, data.rows)
    chosen = _applicable(choose(methods, method), domain)
    if chosen.name == "purified":
        plan = sample_plan(domain, workload, epsilon, data.rows)
        assert plan is not None
        weights, release = sampled(plan, data, bits)
        return Published(
            table=partial(margin, weights.reshape(domain.sizes)),
            weights=weights,
            certificate=for_source(release.certificate, rows),
            method=chosen,
        )
    if chosen.name == "mwem":
        rounds = Rounds(
            domain, workload, epsilon, best_rounds(domain, workload, epsilon, data.rows)
        )
        certificate = _certificate(rows, rounds.steps(), epsilon, bits)
        estimate, found = rounds.run(data, bits)
        return Published(
            table=partial(answer, estimate=estimate, fitted=found),
            weights=found.weights,
            certificate=certificate,
            method=chosen,
        )
    strategy = _strategy(chosen.name, domain, workload, epsilon, data.rows)
    assert strategy is not None
    certificate = _certificate(rows, strategy.steps(), epsilon, bits)
    estimate = strategy.measure(data, bits)
    fitted: Fit | None = None
    if domain.cells <= (MOST_CELLS if whole else MOST_FITTED):
        fitted = fit(estimate)
    return Published(
        table=partial(answer, estimate=estimate, fitted=fitted),
        weights=None if fitted is None else fitted.weights,
        certificate=certificate,
        method=chosen,
    )


@lru_cache(maxsize=64)
def forecasts(
    domain: Domain, workload: Workload, epsilon: Fraction, rows: int
) -> tuple[Method, ...]:
    """Return the methods, best first; errors are expected absolute errors of a cell, over n."""
    count = len(workload.tables)
    found = []
    for name, spends, why in (
        (
            "k-norm",
            "ε on orthogonal coefficients, each measured once, split among orders",
            "tables share coefficients: small tables of many columns need the least noise",
        ),
        ("counts", f"ε/{count} on each table", "noise fitted to the two cells that a row moves"),
        (
            "laplace",
            f"ε on {count} tables together",
            f"independent noise for a move of {2 * count} cells",
        ),
    ):
        strategy = _strategy(name, domain, workload, epsilon, rows)
        if strategy is None:
            found.append(Method(name=name, error=math.inf, spends=spends, why="too many cells"))
            continue
        error = tables_error(domain, workload, strategy.variances(rows))
        found.append(Method(name=name, error=error, spends=spends, why=why))
    return ranked(
        *found,
        _rounds_forecast(domain, workload, epsilon, rows),
        _sample_forecast(domain, workload, epsilon, rows),
    )


def _rounds_forecast(domain: Domain, workload: Workload, epsilon: Fraction, rows: int) -> Method:
    if domain.cells > MOST_FITTED:
        return Method(
            name="mwem",
            error=math.inf,
            spends="ε/2 on choosing, ε/2 on measuring tables",
            why="the domain has more than 2^20 cells, and every round goes through all of them",
        )
    count, rounds = len(workload.tables), best_rounds(domain, workload, epsilon, rows)
    return Method(
        name="mwem",
        error=rounds_error(domain, workload, epsilon, rows, rounds),
        spends=f"ε/2 on choosing, ε/2 on measuring {rounds} of {count} tables",
        why="tables that look alike are not measured; its error depends on the data (a guess)",
    )


def _sample_forecast(domain: Domain, workload: Workload, epsilon: Fraction, rows: int) -> Method:
    plan = sample_plan(domain, workload, epsilon, rows)
    if plan is None:
        return Method(
            name="purified",
            error=math.inf,
            spends="ε on hidden rounds and mixing",
            why="too many cells for a table of all queries",
        )
    return Method(
        name="purified",
        error=plan.error,
        spends=f"ε on {plan.rounds} hidden rounds, mixed over multisets of {plan.sample_size} rows",
        why="a bound on the largest error; the published sample is small",
    )


def _strategy(
    name: str, domain: Domain, workload: Workload, epsilon: Fraction, rows: int
) -> Strategy | None:
    if name != "k-norm":
        return table_strategy(domain, workload, epsilon, joint=name == "counts")
    highest = max(map(len, workload.tables))
    orders = range(1, highest + 1) if domain.cells <= MOST_FITTED else [highest]
    found = [box_strategy(domain, workload, epsilon, rows, order=order) for order in orders]
    full = found[-1]
    if full is None:
        return None
    errors = [
        math.inf if part is None else tables_error(domain, workload, part.variances(rows))
        for part in found
    ]
    best = min(range(len(found)), key=lambda place: errors[place])
    # a guess about data must promise a lot to beat what is certain
    return found[best] if errors[best] < _CLEARLY * errors[-1] else full


def _applicable(method: Method, domain: Domain) -> Method:
    if math.isfinite(method.error):
        return method
    raise ParameterError(
        "method",
        method.name,
        expected=f"one that applies to {domain.cells} cells: {method.why}",
        remedy='pass method="auto", or ask for smaller tables',
    )


def _certificate(
    rows: Any, steps: tuple[Any, ...], epsilon: Fraction, bits: BitSource
) -> Certificate:
    return issue_for(rows, claim=PureDP(epsilon), steps=steps, bits=bits, public=_PUBLIC)
