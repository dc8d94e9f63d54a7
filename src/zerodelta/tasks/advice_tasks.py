"""What the advisor knows: each task's question, public inputs, unit of error, and call.

A task that has a question is forecast by that question's own plan, which no rows ever see.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from zerodelta.channels.planner import plan
from zerodelta.data.group_keys import bins
from zerodelta.errors import require
from zerodelta.exact.rational import as_count, as_positive
from zerodelta.regression.classifier_forecast import compare_classifiers
from zerodelta.regression.classifiers import classifier_methods
from zerodelta.regression.label_values import Targets, as_classes
from zerodelta.regression.linear import linear_methods
from zerodelta.spaces import Finite
from zerodelta.spine.facts import Facts
from zerodelta.spine.methods import Method, ranked
from zerodelta.spine.public_inputs import as_bounds, as_universe
from zerodelta.study.study_plan import Schedule, StudyPlan
from zerodelta.tasks.advised_task import (
    CLOSE,
    EPSILON,
    ROWS,
    UNMEASURED,
    Numbers,
    Task,
    planned,
    simple,
)
from zerodelta.tasks.answer_queries import queries_methods
from zerodelta.tasks.covariance import CovarianceQuestion
from zerodelta.tasks.decision_tree import TreeQuestion
from zerodelta.tasks.histogram import histogram_methods
from zerodelta.tasks.kmeans import KMeansQuestion
from zerodelta.tasks.mean import MeanQuestion
from zerodelta.tasks.mode import mode_methods
from zerodelta.tasks.pca import ComponentsQuestion
from zerodelta.tasks.quantile import quantile_methods
from zerodelta.tasks.second_moments import STEPS, Products
from zerodelta.tasks.select import select_methods
from zerodelta.tasks.select_features import FeaturesQuestion
from zerodelta.tasks.synthesize import synthesis_methods
from zerodelta.tasks.table_tasks import TABLE_TASKS
from zerodelta.tasks.trimmed_mean import trimmed_mean_methods

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


def _spread(given: Numbers) -> float:
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
        blind=_spread,
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
            "naive Bayes": _BOUNDED.format("GaussianNB", ""),
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
