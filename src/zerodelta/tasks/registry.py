"""What the advisor knows: each task's question, public inputs, unit of error, and call.

A task that has a question is forecast by that question's own plan, which no rows ever see.
"""

from __future__ import annotations

import math
import numbers
import string
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from zerodelta.channels.purification import plan
from zerodelta.data.declare import category, text
from zerodelta.data.keys import GroupKeys, KeySource, bins
from zerodelta.errors import require
from zerodelta.exact.rational import as_count, as_positive
from zerodelta.regression.classes import compare_classifiers
from zerodelta.regression.classifiers import classifier_methods
from zerodelta.regression.linear import linear_methods
from zerodelta.regression.rows import Targets, as_classes
from zerodelta.spaces import Finite
from zerodelta.spine.plan import Facts, Method, ReleasePlan, ranked
from zerodelta.spine.public_inputs import as_bounds, as_universe, each_bounds, needed
from zerodelta.study.plan import Schedule, StudyPlan
from zerodelta.tables.found_keys import plan_keys
from zerodelta.tables.grouped import grouped
from zerodelta.tables.parts import AskedColumn, as_statistics
from zerodelta.tables.table import GOALS
from zerodelta.tasks.advised_task import (
    CLOSE,
    EPSILON,
    ROWS,
    UNMEASURED,
    Numbers,
    Task,
    as_skip,
    planned,
    simple,
)
from zerodelta.tasks.choices import mode_methods, select_methods
from zerodelta.tasks.covariance import ComponentsQuestion, CovarianceQuestion
from zerodelta.tasks.distributions import CdfQuestion, as_values, histogram_methods
from zerodelta.tasks.features import FeaturesQuestion, TreeQuestion
from zerodelta.tasks.keys import HeavyHittersQuestion, keyed, known_keys, top_k_methods
from zerodelta.tasks.kmeans import KMeansQuestion
from zerodelta.tasks.marginals import queries_methods, synthesis_methods
from zerodelta.tasks.models import LEAST_ROWS, PARAMETERS, vote_or_study
from zerodelta.tasks.quantiles import QuantilesQuestion, as_levels, quantile_methods
from zerodelta.tasks.robust import trimmed_mean_methods
from zerodelta.tasks.second_moments import STEPS, Products
from zerodelta.tasks.statistics import CountQuestion, MeanQuestion, SumQuestion
from zerodelta.tasks.table import TableQuestion

# -- Table tasks ----------------------------------------------------------------------------------
# What the advisor knows of tables, keys, distributions and votes; each is forecast by its plan.

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


_ROUGH = (
    "within a factor of 4 in bench/tasks_forecasts.py if rows fill their bound evenly and the\n"
    "       signal is moderate; if not, pass row_length= (typical distance of a row from the mean\n"
    "       row / data_norm) and signal= (typical size of a prediction: log-odds, or part of half\n"
    "       the targets' range): short rows cost 10 times more, strongly correlated ones 3 times"
)

_MOST_THRESHOLDS = 80


def _counted(function: Callable[..., tuple[Method, ...]]) -> Any:
    """Return a forecast that takes the universe as the function itself does."""
    return lambda given: function(**{**given, "universe": as_universe(given["universe"]).size})


def _histogram(given: Numbers) -> tuple[Method, ...]:
    """Return the forecast for counts of items, or of numbers between edges."""
    universe, cut = given["universe"], given["bins"]
    require(
        universe is None or cut is None,
        "bins",
        cut,
        expected="nothing beside universe",
        remedy="pass bins= for numbers, or universe= for items",
    )
    if universe is not None:
        size = as_universe(universe).size
    else:
        size = as_count(cut, "bins", minimum=1) if isinstance(cut, int) else bins(cut).size
    return histogram_methods(epsilon=given["epsilon"], universe=size, complete=given["complete"])


def _widest(given: Numbers) -> int:
    """Return the number of columns: as given, or as many as there are bounds."""
    ends = given["bounds"] if isinstance(given["bounds"], (tuple, list)) else ()
    return max(given["dimension"] or 1, *map(np.size, ends), 1)


def _advice_tasks_spread(given: Numbers) -> float:
    """Return how far the middle of the bounds is from a trimmed mean, if the spread is public."""
    lower, upper = as_bounds(given["bounds"])
    half, spread = (upper - lower) / 2, given["spread"]
    return float(half if spread is None else min(as_positive(spread, "spread"), half))


def _linear(given: Numbers) -> tuple[Method, ...]:
    unit = Targets.of(given["bounds_y"], given["intercept"]).half
    found = linear_methods(**{name: v for name, v in given.items() if name != "bounds_y"})
    return tuple(replace(method, error=method.error * unit**2) for method in found)


def _classes(function: Callable[..., tuple[Method, ...]]) -> Any:
    """Return a forecast that takes the classes, or their number."""

    def methods(given: Numbers) -> tuple[Method, ...]:
        classes = given["classes"]
        count = classes if isinstance(classes, numbers.Number) else len(as_classes(classes))
        return function(**{**given, "classes": count})

    return methods


def _even_spread(given: Numbers) -> float:
    """Return the mean error of a covariance matrix of zeros, for columns spread evenly."""
    products = Products.of(_widest(given), bounds=given["bounds"], data_norm=given["data_norm"])
    return float(np.mean((products.unit * STEPS) ** 2)) / 3 / products.columns


def _correlation(given: Numbers) -> tuple[Method, ...]:
    """Return the forecast of covariances over the variances of columns spread evenly."""
    columns, ball = _widest(given), given["bounds"] is None
    asked = {**given, "bounds": None if ball else (-1, 1), "data_norm": 1 if ball else None}
    found = planned(CovarianceQuestion, columns=lambda _: columns, correlations=True)(asked)
    Products.of(columns, bounds=given["bounds"], data_norm=given["data_norm"])  # refuses odd ones
    inverse = columns + 2 if ball else 3
    return tuple(replace(method, error=method.error * inverse) for method in found)


def _tree(given: Numbers) -> tuple[Method, ...]:
    """Return the forecast of one choice among all trees with so many thresholds."""
    count = as_count(given["thresholds"], "thresholds", minimum=1)
    require(count <= _MOST_THRESHOLDS, "thresholds", count, "at most 80 in all", "pass fewer")
    question = TreeQuestion(label="0", thresholds={"1": range(count)})
    made = question.plan(Facts(rows=given["n"], columns=("0", "1")), given["epsilon"])
    chosen = Method(
        name="permute-and-flip",
        error=float(made.error),  # type: ignore[arg-type]
        spends="ε on one choice among all trees",
        why="a row moves the number of rows that a tree has right by one",
    )
    return (chosen,)


def _study(given: Numbers) -> tuple[Method, ...]:
    publish = given["publish"]
    space = Finite(publish) if isinstance(publish, int) else publish
    made = StudyPlan(
        publishing=plan(
            space, epsilon=given["epsilon"], mixing_probability=given["mixing_probability"]
        ),
        rows=1,
        schedule=Schedule.of(as_count(given["questions"], "questions", minimum=1)),
        selects=False,
        rowwise=True,
    )
    pays = f"a study pays from {made.break_even} questions on"
    return ranked(
        Method(
            name="study",
            error=made.noise_per_query,
            spends=f"ε on one element of the space; {made.rounds} internal queries, μ = "
            f"{made.mu:.3g} together",
            why=pays,
        ),
        Method(
            name="pure composition",
            error=made.noise_by_basic_composition,
            spends=f"ε/{made.rounds} on each of {made.rounds} questions, every answer published",
            why=f"few questions, or answers that are wanted themselves; {pays}",
        ),
    )


_TABLE = {"n": ROWS["n"], "dimension": "dimension=10", "epsilon": EPSILON}
_FIT = {"intercept": True, "row_length": None, "signal": None}
_CLASSIFY = (
    "zerodelta.sklearn.LogisticRegression(data_norm=…, classes=[…], fit_intercept={intercept}, "
    "epsilon={epsilon}).fit(rows, labels)"
)
_BOUNDED = "zerodelta.sklearn.{}(bounds=…, classes=[…], {}epsilon={{epsilon}}).fit(rows, labels)"
_MEDIAN = Task(
    unit="expected rank error, in rows",
    call="zd.median(rows, bounds=…, epsilon={epsilon})",
    methods=simple(quantile_methods, grid="points"),
    reliable=CLOSE,
    needs=ROWS,
    allows={"grid": None},
    blind=lambda given: given["n"] / 2,
)
_QUERIES = Task(
    unit="expected absolute error of a frequency, averaged over all cells of all tables",
    call="zd.answer_queries(rows, domain=…, workload={workload}, epsilon={epsilon})",
    methods=simple(queries_methods),
    reliable=CLOSE,
    needs={**ROWS, "domain": 'domain={"sex": 2, "age": 8}'},
    allows={"workload": None},
    typical={"domain": {"sex": 2, "age": 8}},
)

TASKS: dict[str, Task] = {
    "mean": Task(
        unit="expected absolute error of a coordinate, in the unit of the data",
        call="zd.mean(rows, bounds={bounds}, data_norm={data_norm}, norm={norm}, "
        "epsilon={epsilon}, missing={missing})",
        methods=planned(MeanQuestion, columns=_widest),
        reliable=CLOSE,
        needs={**ROWS, "bounds|data_norm": "bounds=(0, 100)"},
        allows={"dimension": None, "bounds": None, "data_norm": None, "norm": 2, "missing": None},
        typical={"bounds": (0, 100)},
    ),
    "histogram": Task(
        unit="expected absolute error of a count",
        call="zd.histogram(items, universe={universe}, bins={bins}, epsilon={epsilon})",
        methods=_histogram,
        reliable=CLOSE,
        needs={"universe|bins": "universe=100", "epsilon": EPSILON},
        allows={"universe": None, "bins": None, "complete": False},
        typical={"universe": 100},
    ),
    "select": Task(
        unit="largest expected gap between the best score and the chosen one's",
        call="zd.select(scores, sensitivity={sensitivity}, epsilon={epsilon})",
        methods=simple(select_methods),
        needs={"options": "options=10", "epsilon": EPSILON},
        allows={"sensitivity": 1, "monotone": False},
        typical={"options": 10},
        reliable="for the scores that are hardest to tell apart; usually much less",
    ),
    "mode": Task(
        unit="largest expected gap between the mode's count and the released item's",
        call="zd.mode(items, universe={universe}, epsilon={epsilon})",
        methods=_counted(mode_methods),
        needs={**ROWS, "universe": "universe=100"},
        reliable="for the counts that are hardest to tell apart; usually much less",
        blind=lambda given: given["n"],
        typical={"universe": 100},
    ),
    "quantile": replace(
        _MEDIAN,
        call="zd.quantile(rows, q={q}, bounds=…, margin={margin}, epsilon={epsilon})",
        reliable=f"at q=1/2 {CLOSE};\n       {UNMEASURED} at other levels",
        allows={"grid": None, "q": "1/2", "margin": None},
    ),
    "median": _MEDIAN,
    "trimmed_mean": Task(
        unit="expected absolute error, in the unit of the data",
        call="zd.trimmed_mean(rows, trim={trim}, bounds={bounds}, spread={spread}, "
        "epsilon={epsilon})",
        methods=simple(trimmed_mean_methods),
        needs={**ROWS, "trim": "trim=0.1", "bounds": "bounds=(0, 100)"},
        allows={"spread": None},
        reliable="for normal rows of that spread (a tenth of the width if not given)",
        blind=_advice_tasks_spread,
        typical={"trim": "0.1", "bounds": (0, 100)},
    ),
    "queries": _QUERIES,
    "synthesize": replace(
        _QUERIES,
        call="zd.synthesize(rows, domain=…, workload={workload}, size={size}, epsilon={epsilon})",
        methods=simple(synthesis_methods),
        reliable=UNMEASURED,
        allows={"workload": None, "size": None},
    ),
    "linear": Task(
        unit="expected excess of the mean squared error",
        call="zerodelta.sklearn.LinearRegression(data_norm=…, bounds_y={bounds_y}, "
        "fit_intercept={intercept}, epsilon={epsilon}).fit(rows, targets)",
        methods=_linear,
        needs=_TABLE,
        allows={"bounds_y": (-1, 1), **_FIT},
        typical={"dimension": 10},
        reliable=_ROUGH,
    ),
    "logistic": Task(
        unit="expected excess of the mean logistic loss, in nats",
        call=_CLASSIFY,
        methods=simple(classifier_methods),
        needs=_TABLE,
        allows=_FIT,
        typical={"dimension": 10},
        reliable=_ROUGH,
    ),
    "multinomial": Task(
        unit="expected excess of the mean log loss, in nats",
        call=_CLASSIFY,
        methods=_classes(classifier_methods),
        needs={**_TABLE, "classes": "classes=3"},
        typical={"dimension": 10, "classes": 3},
        allows=_FIT,
        reliable=_ROUGH,
    ),
    "classifier": Task(
        unit="expected error rate, where one in ten is mistaken without noise",
        call=_CLASSIFY.format(intercept=True, epsilon="{epsilon}"),
        calls={
            "nearest centroid": _BOUNDED.format("NearestCentroid", ""),
            "nearest centroid, l2": _BOUNDED.format("NearestCentroid", 'block="l2", '),
            "forest": _BOUNDED.format("RandomForestClassifier", ""),
        },
        methods=_classes(compare_classifiers),
        needs={**_TABLE, "classes": "classes=3"},
        typical={"dimension": 10, "classes": 3},
        reliable="curves fitted to four small data sets: a guide to the choice, see "
        "bench/tables_classifiers.py",
        blind=lambda _: 1.0,
    ),
    "covariance": Task(
        unit="expected absolute error of a covariance, averaged over the matrix",
        call="zd.covariance(rows, bounds={bounds}, data_norm={data_norm}, epsilon={epsilon}, "
        "missing={missing})",
        methods=planned(CovarianceQuestion, columns=_widest),
        reliable=UNMEASURED,
        needs={**ROWS, "bounds|data_norm": "bounds=(0, 100)"},
        allows={"dimension": None, "bounds": None, "data_norm": None, "missing": None},
        typical={"dimension": 5, "bounds": (0, 100)},
        blind=_even_spread,
    ),
    "correlation": Task(
        unit="expected absolute error of a correlation, for columns spread evenly",
        call="zd.correlation(rows, bounds={bounds}, data_norm={data_norm}, epsilon={epsilon}, "
        "missing={missing})",
        methods=_correlation,
        needs={**ROWS, "bounds|data_norm": "bounds=(0, 100)"},
        allows={"dimension": None, "bounds": None, "data_norm": None, "missing": None},
        typical={"dimension": 5, "bounds": (0, 100)},
        reliable="it grows as the variances fall, which are private",
        blind=lambda _: 0.5,
    ),
    "pca": Task(
        unit="expected absolute error of a covariance, averaged over the matrix",
        call="zd.pca(rows, bounds={bounds}, data_norm={data_norm}, epsilon={epsilon}, "
        "missing={missing})",
        methods=planned(ComponentsQuestion, columns=_widest),
        reliable=UNMEASURED,
        needs={**ROWS, "bounds|data_norm": "bounds=(0, 100)"},
        allows={"dimension": None, "bounds": None, "data_norm": None, "missing": None},
        typical={"dimension": 5, "bounds": (0, 100)},
        blind=_even_spread,
    ),
    "kmeans": Task(
        unit="expected inertia relative to the best, less 1",
        call="zd.kmeans(rows, clusters={clusters}, bounds=…, epsilon={epsilon})",
        methods=planned(KMeansQuestion, columns=lambda given: given["dimension"], bounds=(0, 1)),
        needs={**_TABLE, "clusters": "clusters=5"},
        typical={"dimension": 10, "clusters": 5},
        reliable="within a factor of 4 for the compact clusters of bench/tasks_forecasts.py;\n"
        "       a mean over rare runs that miss one",
    ),
    "decision_tree": Task(
        unit="part of the rows that the chosen tree has wrong, and the best one right, at most",
        call="zd.decision_tree(people, label=…, thresholds=…, epsilon={epsilon})",
        methods=_tree,
        needs={**ROWS, "thresholds": "thresholds=12"},
        typical={"thresholds": 12},
        reliable="a bound: choices are better where few trees are good",
        blind=lambda _: 0.5,
    ),
    "select_features": Task(
        unit="largest noise to expect in a covariance of features and target in [-1, 1]",
        call="zd.select_features(rows, target=…, size={size}, bounds=…, target_bounds=…, "
        "epsilon={epsilon})",
        methods=planned(
            FeaturesQuestion,
            columns=lambda given: given["dimension"] + 1,
            target=-1,
            bounds=(-1, 1),
            target_bounds=(-1, 1),
        ),
        needs={**_TABLE, "size": "size=3"},
        typical={"dimension": 10, "size": 3},
        reliable="a guide to the choice, not the error of the choice",
        blind=lambda _: 1.0,
    ),
    "study": Task(
        unit="noise of a question, in units of its sensitivity",
        call="zd.Study(rows, epsilon={epsilon}, publish=…, rounds={questions})",
        methods=_study,
        needs={
            "questions": "questions=100",
            "publish": "publish=16, one of so many outcomes, or a space such as zd.Ball(10, 1)",
            "epsilon": EPSILON,
        },
        allows={"mixing_probability": Fraction(1, 1000)},
        typical={"questions": 100, "publish": 16},
        reliable="exact",
    ),
    **TABLE_TASKS,
}
"""All tasks by name."""
