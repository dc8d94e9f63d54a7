"""What the advisor knows of tables, keys, distributions and votes; each is forecast by its plan."""

from __future__ import annotations

import math
import string
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from zerodelta.data.declare import category, text
from zerodelta.data.group_keys import GroupKeys
from zerodelta.data.key_source import KeySource
from zerodelta.errors import require
from zerodelta.exact.rational import as_count
from zerodelta.spine.facts import Facts
from zerodelta.spine.methods import Method
from zerodelta.spine.public_inputs import each_bounds, needed
from zerodelta.spine.release_plan import ReleasePlan
from zerodelta.tables.asked_columns import AskedColumn, as_statistics
from zerodelta.tables.grouped_data import grouped
from zerodelta.tables.table_plan import GOALS
from zerodelta.tables.unknown_keys import plan_keys
from zerodelta.tasks.advised_task import CLOSE, ROWS, Numbers, Task, as_skip, planned, simple
from zerodelta.tasks.cdf import CdfQuestion, as_values
from zerodelta.tasks.count import CountQuestion
from zerodelta.tasks.heavy_hitters import HeavyHittersQuestion, keyed
from zerodelta.tasks.quantiles import QuantilesQuestion, as_levels
from zerodelta.tasks.sum import SumQuestion
from zerodelta.tasks.table import TableQuestion
from zerodelta.tasks.top_k import known_keys, top_k_methods
from zerodelta.tasks.vote_or_study import LEAST_ROWS, PARAMETERS, vote_or_study

_GUESSED = {"count": 1.0, "sum": 0.5, "mean": 0.5, "std": 0.5, "variance": 0.25}
"""How far a guess without rows may be off, relative to what errors of a table are relative to."""

_EXAMPLE = 'pass by=12, so many groups, or by={"city": 12, "age": zd.bins([0, 18, 65])}'


def _keys(by: Any) -> Any:
    """Return the keys of a table: numbers stand for as many groups."""
    if by is None:
        return None
    whole = by if isinstance(by, Mapping) else {"group": by}
    given = isinstance(by, Mapping) or type(by) is int
    require(given, "by", by, "how many groups there are, or a kind for each key", _EXAMPLE)
    return {
        name: category(range(as_count(how, "by", minimum=1))) if type(how) is int else how
        for name, how in whole.items()
    }


def _table(given: Numbers) -> ReleasePlan[Any]:
    """Return the plan of a table, for columns without rows."""
    by, of, skip = _keys(given["by"]), as_statistics(given["of"]), as_skip(given["missing"])
    names = dict.fromkeys([*(by or {}), *of])
    none = np.zeros(0, dtype=[(name, np.float64) for name in names])
    data = grouped(none, by=by, of=of, bounds=given["bounds"], missing=given["missing"])
    question = TableQuestion(
        keys=data.keys,
        columns=data.columns,
        complete=data.complete,
        goal=given["goal"],
        weights=given["weights"],
    )
    facts = Facts(rows=given["n"], columns=tuple(names), may_miss=skip)
    return question.plan(facts, given["epsilon"])


def _of_table(given: Numbers) -> tuple[Method, ...]:
    return tuple(_table(given).methods)


def _blind(given: Numbers) -> float:
    """Return the relative error of a table without rows: middles, and the largest variance."""
    asked = [each for column in as_statistics(given["of"]).values() for each in column]
    # a quantile that is guessed is half of the group's rows away
    found = [_GUESSED[each] if isinstance(each, str) else 0.5 for each in asked]
    return min(found) if given["goal"] != GOALS[2] else math.sqrt(sum(each**2 for each in found))


def _spread(statistic: str) -> Any:
    """Return the forecast for one statistic of all rows, in the unit of the data."""

    def methods(given: Numbers) -> tuple[Method, ...]:
        width, skip = _width(given), as_skip(given["missing"])
        columns = tuple(
            AskedColumn(name=str(place), bounds=ends, missing=skip, statistics=(statistic,))
            for place, ends in enumerate(each_bounds(given["bounds"], width))
        )
        question = TableQuestion(keys=GroupKeys(), columns=columns, complete=True, only=statistic)
        made = question.plan(Facts(rows=given["n"], may_miss=skip), given["epsilon"])
        assert isinstance(made.error, float)
        return tuple(replace(method, error=made.error) for method in made.methods)

    return methods


def _width(given: Numbers) -> int:
    """Return the number of columns: as given, or as many as there are bounds."""
    bounds = given["bounds"]
    ends = bounds if isinstance(bounds, (tuple, list)) else ()
    return max(given["dimension"] or 1, *map(np.size, ends), 1)


def _total(given: Numbers) -> float:
    """Return how far n times the middle of the bounds may be from a sum, on average."""
    ends = each_bounds(given["bounds"], _width(given))
    widths = float(sum(upper - lower for lower, upper in ends))
    return float(given["n"]) * widths / (2 * len(ends))


def _count(given: Numbers) -> tuple[Method, ...]:
    """Return the forecast for rows that a condition keeps: the number of all of them is public."""
    facts = Facts(rows=given["n"], may_miss=True, drops=True)
    return tuple(CountQuestion(rows_only=True).plan(facts, given["epsilon"]).methods)


def _quantiles(given: Numbers) -> tuple[Method, ...]:
    question = QuantilesQuestion(
        q=as_levels(given["q"]), bounds=(0, 1), grid=given["grid"], margin=given["margin"]
    )
    facts = Facts(rows=given["n"], may_miss=as_skip(given["missing"]))
    return tuple(question.plan(facts, given["epsilon"]).methods)


def _cdf(given: Numbers) -> tuple[Method, ...]:
    at = given["at"]
    values = range(as_count(at, "at", minimum=1)) if type(at) is int else at
    question = CdfQuestion(
        at=None if values is None else as_values(values), bounds=(0, 1), grid=given["grid"]
    )
    facts = Facts(rows=given["n"], may_miss=as_skip(given["missing"]))
    return tuple(question.plan(facts, given["epsilon"]).methods)


def _universe(universe: Any) -> KeySource:
    """Return the keys there can be, without rows."""
    names = list(universe) if isinstance(universe, Mapping) else ["0"]
    none = np.zeros(0, dtype=[(name, object) for name in names])
    return keyed(none, None, needed(universe, "universe", "pass universe=1000"))[0]


def _top_k(given: Numbers) -> tuple[Method, ...]:
    source = _universe(given["universe"])
    if not known_keys(source):
        return _heavy(given)
    return top_k_methods(epsilon=given["epsilon"], keys=source.universe.size, k=given["k"])


def _heavy(given: Numbers) -> tuple[Method, ...]:
    question = HeavyHittersQuestion(
        source=_universe(given["universe"]), false_keys=given["false_keys"]
    )
    return tuple(question.plan(Facts(rows=given["n"]), given["epsilon"]).methods)


def _found(given: Numbers) -> float:
    """Return what makes a tenth of the rows the count that is found in half of the cases."""
    made = plan_keys(
        _universe(given["universe"]), epsilon=given["epsilon"], false_keys=given["false_keys"]
    )
    return float(given["n"]) * made.error / max(1, made.half_found)


_SUM = Task(
    unit="expected absolute error of a sum, in the unit of the data, averaged over the columns",
    call="zd.sum(rows, bounds={bounds}, epsilon={epsilon}, missing={missing})",
    methods=planned(SumQuestion, columns=_width),
    reliable=CLOSE,
    needs={**ROWS, "bounds": "bounds=(0, 100)"},
    allows={"dimension": None, "missing": None},
    blind=_total,
    typical={"bounds": (0, 100)},
)
_VOTE = Task(
    unit="largest expected loss of mean score by the choice, in parts of the range of a score",
    call="zd.vote(rows, choose, options=[…], least_rows={least_rows}, epsilon={epsilon})",
    methods=simple(vote_or_study),
    needs={**ROWS, "options": "options=8"},
    allows={"parameters": PARAMETERS, "least_rows": LEAST_ROWS},
    reliable="a vote's for the scores that are hardest to tell apart, usually much less;\n"
    "       a study's depends on how training takes noise: a guide to the choice",
    blind=lambda _: 0.5,
    typical={"options": 8},
)
_KEYS = Task(
    unit="expected absolute error of the count of a published key",
    call="zd.heavy_hitters(keys, universe=…, false_keys={false_keys}, epsilon={epsilon})",
    methods=_heavy,
    reliable=CLOSE,
    needs={**ROWS, "universe": "universe=zd.text(10, alphabet=…)"},
    allows={"false_keys": "1/100"},
    blind=_found,
    few="a key that is in every tenth row is missed more often than not",
    typical={"universe": text(10, alphabet=string.ascii_lowercase)},
)

TABLE_TASKS: dict[str, Task] = {
    "count": Task(
        unit="expected absolute error of a number of rows that meet a condition",
        call="zd.count(people.where(…), epsilon={epsilon})",
        methods=_count,
        reliable=CLOSE,
        needs=ROWS,
        blind=lambda given: given["n"] / 2,
    ),
    "sum": _SUM,
    "variance": replace(
        _SUM,
        unit="expected absolute error, in the squared unit of the data, averaged over all places "
        "of\n       the mean between the bounds",
        call="zd.variance(rows, bounds={bounds}, epsilon={epsilon}, missing={missing})",
        methods=_spread("variance"),
        blind=None,
    ),
    "std": replace(
        _SUM,
        unit="expected absolute error, in the unit of the data",
        call="zd.std(rows, bounds={bounds}, epsilon={epsilon}, missing={missing})",
        methods=_spread("std"),
        reliable=f"{CLOSE},\n       where bounds are three standard deviations away",
        blind=None,
    ),
    "table": Task(
        unit="largest expected error of a cell of an average group, relative to the width of its "
        "column",
        call="zd.table(people, by=…, of=…, bounds=…, goal={goal}, epsilon={epsilon})",
        methods=_of_table,
        reliable=CLOSE,
        needs={**ROWS, "of": 'of={"income": ["mean"]}'},
        allows={"by": None, "bounds": None, "missing": None, "goal": GOALS[0], "weights": None},
        blind=_blind,
        shows=lambda given: str(_table(given).details),
        typical={"of": {"income": ["mean", "variance"]}, "by": 12, "bounds": (0, 100)},
    ),
    "quantiles": Task(
        unit="expected rank error in rows, averaged over the levels",
        call="zd.quantiles(rows, q={q}, bounds=…, epsilon={epsilon})",
        methods=_quantiles,
        reliable=CLOSE,
        needs={**ROWS, "q": "q=[0.25, 0.5, 0.75]"},
        allows={"grid": None, "margin": None, "missing": None},
        blind=lambda given: given["n"] / 2,
        typical={"q": [0.25, 0.5, 0.75]},
    ),
    "cdf": Task(
        unit="expected absolute error of a share of the rows",
        call="zd.cdf(rows, at=…, epsilon={epsilon})",
        methods=_cdf,
        reliable=CLOSE,
        needs=ROWS,
        allows={"at": None, "grid": None, "missing": None},
        blind=lambda _: 0.5,
        typical={"at": 10},
    ),
    "top_k": replace(
        _KEYS,
        unit="largest expected gap between a count that is wanted and the one in its place; of "
        "keys\n       that nobody can list, the expected absolute error of a count",
        call="zd.top_k(keys, universe=…, k={k}, false_keys={false_keys}, epsilon={epsilon})",
        methods=_top_k,
        needs={**ROWS, "universe": "universe=1000", "k": "k=10"},
        reliable="for the counts that are hardest to tell apart; usually much less",
        blind=lambda given: given["n"] / as_count(given["k"], "k", minimum=1),
        few="the gap exceeds a tenth of the count of k keys that share all rows",
        typical={"universe": 1000, "k": 10},
    ),
    "heavy_hitters": _KEYS,
    "vote": _VOTE,
    "select_model": replace(
        _VOTE,
        call="zd.select_model(rows, candidates, fit=…, train=…, score=…, rounds=…, "
        "least_rows={least_rows}, epsilon={epsilon})",
    ),
}
"""Tasks by name, which `TASKS` lists with all others."""
