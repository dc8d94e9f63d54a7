"""What the advisor knows: each task's question, public inputs, unit of error, and call.

A task that has a question is forecast by that question's own plan, which no rows ever see.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from typing import Any, TypeAlias, final

import numpy as np

from zerodelta.channels.planner import plan
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
from zerodelta.tasks.answer_queries import queries_methods
from zerodelta.tasks.covariance import CovarianceQuestion
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
from zerodelta.tasks.trimmed_mean import trimmed_mean_methods

__all__ = ["TASKS", "Task"]

Numbers: TypeAlias = Mapping[str, Any]

# what bench/tasks_forecasts.py found
_CLOSE = "the winner's was within a factor of 1.5 of what was measured"
_ROUGH = (
    "within a factor of 4 if rows fill their bound evenly and the signal is moderate;\n       if "
    "not, pass row_length= (typical distance of a row from the mean row / data_norm) and\n       "
    "signal= (typical size of a prediction: log-odds, or part of half the targets' range):\n       "
    "short rows cost 10 times more, and strongly correlated ones 3 times"
)


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class Task:
    """A task by its public numbers: what must be given, what may be, and what follows."""

    unit: str
    call: str
    methods: Callable[[Numbers], tuple[Method, ...]]
    needs: Mapping[str, str]
    """Each number that must be given ("a|b": one of them), with an example."""
    allows: Mapping[str, Any] = field(default_factory=dict)
    """Each number that may be given, with its default."""
    calls: Mapping[str, str] = field(default_factory=dict)
    """How to call a winner of this name, where that is not `call`."""
    reliable: str = _CLOSE
    blind: Callable[[Numbers], float] | None = None
    """The error of an answer that reads no rows; by default what is forecast for one row."""


def _planned(question: type[Any], *, columns: Callable[[Numbers], int], **fixed: Any) -> Any:
    """Return the forecast by a question's own plan: its fields are numbers, or fixed here."""
    names = {each.name for each in fields(question)}

    def methods(given: Numbers) -> tuple[Method, ...]:
        asked = question(**fixed, **{name: v for name, v in given.items() if name in names})
        skips = _as_skip(given.get("missing"))
        facts = Facts(rows=given.get("n", 1), columns=("",) * columns(given), may_miss=skips)
        weighed: tuple[Method, ...] = asked.plan(facts, given["epsilon"]).methods
        return weighed

    return methods


def _as_skip(missing: Any) -> bool:
    """Return whether missing cells are skipped, from what the caller would pass."""
    require(
        missing is None or (isinstance(missing, str) and missing == "skip"),
        "missing",
        missing,
        expected='"skip" (a missing cell counts nowhere) or None (none is missing)',
        remedy='pass missing="skip", or leave it out',
    )
    return missing is not None


def _simple(function: Callable[..., tuple[Method, ...]], **renamed: str) -> Any:
    """Return a forecast that passes all numbers on, some of them under another name."""
    return lambda given: function(**{renamed.get(name, name): v for name, v in given.items()})


def _counted(function: Callable[..., tuple[Method, ...]]) -> Any:
    """Return a forecast that takes the universe as the function itself does."""
    return lambda given: function(**{**given, "universe": as_universe(given["universe"]).size})


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


_N, _D, _EPSILON = "n=10_000", "dimension=10", "epsilon=1"
_ROWS = {"n": _N, "epsilon": _EPSILON}
_TABLE = {"n": _N, "dimension": _D, "epsilon": _EPSILON}
_FIT = {"intercept": True, "row_length": None, "signal": None}
_CLASSIFY = (
    "zerodelta.sklearn.LogisticRegression(data_norm=…, classes=[…], fit_intercept={intercept}, "
    "epsilon={epsilon}).fit(rows, labels)"
)
_BOUNDED = "zerodelta.sklearn.{}(bounds=…, classes=[…], {}epsilon={{epsilon}}).fit(rows, labels)"
_MEDIAN = Task(
    unit="expected rank error, in rows",
    call="zd.median(rows, bounds=…, epsilon={epsilon})",
    methods=_simple(quantile_methods, grid="points"),
    needs=_ROWS,
    allows={"grid": None},
    blind=lambda given: given["n"] / 2,
)
_QUERIES = Task(
    unit="expected absolute error of a frequency, averaged over all cells of all tables",
    call="zd.answer_queries(rows, domain=…, workload={workload}, epsilon={epsilon})",
    methods=_simple(queries_methods),
    needs={**_ROWS, "domain": 'domain={"sex": 2, "age": 8}'},
    allows={"workload": None},
)

TASKS: dict[str, Task] = {
    "mean": Task(
        unit="expected absolute error of a coordinate, in the unit of the data",
        call="zd.mean(rows, bounds={bounds}, data_norm={data_norm}, norm={norm}, "
        "epsilon={epsilon}, missing={missing})",
        methods=_planned(MeanQuestion, columns=_widest),
        needs={**_ROWS, "bounds|data_norm": "bounds=(0, 100)"},
        allows={"dimension": None, "bounds": None, "data_norm": None, "norm": 2, "missing": None},
    ),
    "histogram": Task(
        unit="expected absolute error of a count",
        call="zd.histogram(items, universe={universe}, epsilon={epsilon})",
        methods=_counted(histogram_methods),
        needs={"universe": "universe=100", "epsilon": _EPSILON},
        allows={"complete": False},
    ),
    "select": Task(
        unit="largest expected gap between the best score and the chosen one's",
        call="zd.select(scores, sensitivity={sensitivity}, epsilon={epsilon})",
        methods=_simple(select_methods),
        needs={"options": "options=10", "epsilon": _EPSILON},
        allows={"sensitivity": 1, "monotone": False},
        reliable="for the scores that are hardest to tell apart; usually much less",
    ),
    "mode": Task(
        unit="largest expected gap between the mode's count and the released item's",
        call="zd.mode(items, universe={universe}, epsilon={epsilon})",
        methods=_counted(mode_methods),
        needs={**_ROWS, "universe": "universe=100"},
        reliable="for the counts that are hardest to tell apart; usually much less",
        blind=lambda given: given["n"],
    ),
    "quantile": replace(
        _MEDIAN,
        call="zd.quantile(rows, q={q}, bounds=…, margin={margin}, epsilon={epsilon})",
        allows={"grid": None, "q": "1/2", "margin": None},
    ),
    "median": _MEDIAN,
    "trimmed_mean": Task(
        unit="expected absolute error, in the unit of the data",
        call="zd.trimmed_mean(rows, trim={trim}, bounds={bounds}, spread={spread}, "
        "epsilon={epsilon})",
        methods=_simple(trimmed_mean_methods),
        needs={**_ROWS, "trim": "trim=0.1", "bounds": "bounds=(0, 100)"},
        allows={"spread": None},
        reliable="for normal rows of that spread (a tenth of the width if not given)",
        blind=_spread,
    ),
    "queries": _QUERIES,
    "synthesize": replace(
        _QUERIES,
        call="zd.synthesize(rows, domain=…, workload={workload}, size={size}, epsilon={epsilon})",
        methods=_simple(synthesis_methods),
        allows={"workload": None, "size": None},
    ),
    "linear": Task(
        unit="expected excess of the mean squared error",
        call="zerodelta.sklearn.LinearRegression(data_norm=…, bounds_y={bounds_y}, "
        "fit_intercept={intercept}, epsilon={epsilon}).fit(rows, targets)",
        methods=_linear,
        needs=_TABLE,
        allows={"bounds_y": (-1, 1), **_FIT},
        reliable=_ROUGH,
    ),
    "logistic": Task(
        unit="expected excess of the mean logistic loss, in nats",
        call=_CLASSIFY,
        methods=_simple(classifier_methods),
        needs=_TABLE,
        allows=_FIT,
        reliable=_ROUGH,
    ),
    "multinomial": Task(
        unit="expected excess of the mean log loss, in nats",
        call=_CLASSIFY,
        methods=_classes(classifier_methods),
        needs={**_TABLE, "classes": "classes=3"},
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
        reliable="curves fitted to four small data sets: a guide to the choice, see "
        "bench/tables_classifiers.py",
        blind=lambda _: 1.0,
    ),
    "covariance": Task(
        unit="expected absolute error of a covariance, averaged over the matrix",
        call="zd.covariance(rows, bounds={bounds}, data_norm={data_norm}, epsilon={epsilon})",
        methods=_planned(CovarianceQuestion, columns=_widest),
        needs={**_ROWS, "bounds|data_norm": "bounds=(0, 100)"},
        allows={"dimension": None, "bounds": None, "data_norm": None},
        blind=_even_spread,
    ),
    "pca": Task(
        unit="expected absolute error of a covariance, averaged over the matrix",
        call="zd.pca(rows, bounds={bounds}, data_norm={data_norm}, epsilon={epsilon})",
        methods=_planned(ComponentsQuestion, columns=_widest),
        needs={**_ROWS, "bounds|data_norm": "bounds=(0, 100)"},
        allows={"dimension": None, "bounds": None, "data_norm": None},
        blind=_even_spread,
    ),
    "kmeans": Task(
        unit="expected inertia relative to the best, less 1",
        call="zd.kmeans(rows, clusters={clusters}, bounds=…, epsilon={epsilon})",
        methods=_planned(KMeansQuestion, columns=lambda given: given["dimension"], bounds=(0, 1)),
        needs={**_TABLE, "clusters": "clusters=5"},
        reliable="within a factor of 4 for compact clusters; a mean over rare runs that miss one",
    ),
    "select_features": Task(
        unit="largest noise to expect in a covariance of features and target in [-1, 1]",
        call="zd.select_features(rows, target=…, size={size}, bounds=…, target_bounds=…, "
        "epsilon={epsilon})",
        methods=_planned(
            FeaturesQuestion,
            columns=lambda given: given["dimension"] + 1,
            target=-1,
            bounds=(-1, 1),
            target_bounds=(-1, 1),
        ),
        needs={**_TABLE, "size": "size=3"},
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
            "epsilon": _EPSILON,
        },
        allows={"mixing_probability": Fraction(1, 1000)},
        reliable="exact",
    ),
}
"""All tasks by name."""
