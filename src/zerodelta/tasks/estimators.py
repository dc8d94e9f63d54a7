"""Describe the estimators, studies and `purify` as tasks, without loading scikit-learn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from numbers import Number
from typing import Any

from zerodelta.channels.purification import plan, purify
from zerodelta.exact.rational import as_count
from zerodelta.regression.classes import NOISELESS_ERROR, compare_classifiers
from zerodelta.regression.classifiers import classifier_methods
from zerodelta.regression.encoded_columns import RowBox
from zerodelta.regression.linear import linear_methods
from zerodelta.regression.objective import LOG_ODDS
from zerodelta.regression.rows import Targets, as_classes
from zerodelta.spaces import Finite
from zerodelta.spine.plan import Method, ranked
from zerodelta.study.plan import Schedule, StudyPlan
from zerodelta.study.study import Study
from zerodelta.tasks.registry import INDEX, Fitted
from zerodelta.tasks.task import (
    EPSILON,
    LABELED,
    METHOD,
    PERCENT,
    TABLE,
    Command,
    Forecast,
    Numbers,
    Planner,
    Task,
    simple,
)

# -- Forecasts ------------------------------------------------------------------------------------


def _linear(numbers: Numbers) -> tuple[Method, ...]:
    """Return the forecast for linear regression, in squared units of the target."""
    unit = Targets.of(numbers["bounds_y"], numbers["intercept"]).half
    methods = linear_methods(**{name: v for name, v in numbers.items() if name != "bounds_y"})
    return tuple(replace(method, error=method.error * unit**2) for method in methods)


def _class_count(numbers: Numbers) -> Any:
    """Return the number of classes, given as such or by their list."""
    classes = numbers["classes"]
    return classes if isinstance(classes, Number) else len(as_classes(classes))


def _classes(function: Callable[..., tuple[Method, ...]]) -> Any:
    """Return a forecast that takes the list of classes, or their number."""

    def methods(numbers: Numbers) -> tuple[Method, ...]:
        return function(**{**numbers, "classes": _class_count(numbers)})

    return methods


def _study(numbers: Numbers) -> tuple[Method, ...]:
    """Return the forecast for a study, and for publishing every answer instead."""
    publish = numbers["publish"]
    space = Finite(publish) if isinstance(publish, int) else publish
    study = StudyPlan(
        publishing=plan(
            space, epsilon=numbers["epsilon"], mixing_probability=numbers["mixing_probability"]
        ),
        rows=1,
        schedule=Schedule.of(as_count(numbers["questions"], "questions", minimum=1)),
        selects=False,
        rowwise=True,
    )
    pays = f"a study pays from {study.break_even} questions on"
    return ranked(
        Method(
            name="study",
            error=study.noise_per_query,
            spends=f"ε on one element of the space; {study.rounds} internal queries, μ = "
            f"{study.mu:.3g} together",
            why=pays,
        ),
        Method(
            name="pure composition",
            error=study.noise_by_basic_composition,
            spends=f"ε/{study.rounds} on each of {study.rounds} questions, every answer published",
            why=f"better for few questions, or if every answer is to be published; {pays}",
        ),
    )


_ROUGH = (
    "within a factor of 4 in bench/tasks_forecasts.py if rows fill their bound evenly and the\n"
    "       signal is moderate; if not, pass row_length= (typical distance of a row from the mean\n"
    "       row / data_norm) and signal= (typical size of a prediction: log-odds, or part of half\n"
    "       the targets' range): short rows cost 10 times more, strongly correlated ones 3 times"
)
_FIT = {"intercept": True, "row_length": None, "signal": None}
_LOGISTIC = Forecast(
    unit="expected excess of the mean logistic loss, in nats",
    call="zerodelta.sklearn.LogisticRegression(data_norm=…, classes=[…], "
    "fit_intercept={intercept}, epsilon={epsilon}).fit(rows, labels)",
    methods=simple(classifier_methods),
    needs=TABLE,
    allows=_FIT,
    typical={"dimension": 10},
    reliable=_ROUGH,
)
_ERROR_RATE = "the error rate: the part of new rows that get a wrong class, if classes are separate"
_WINNERS = {
    "nearest centroid": ("NearestCentroid", ""),
    "nearest centroid, l2": ("NearestCentroid", 'block="l2", '),
    "forest": ("RandomForestClassifier", ""),
}
"""The estimator of each method of classification, and its argument."""

# -- Numbers and texts of the planner page --------------------------------------------------------


def _boxed(numbers: Numbers) -> Numbers:
    """Return the numbers with the row length of columns that are scaled by their bounds."""
    box = RowBox(numbers=numbers["dimension"])
    return {**numbers, "row_length": box.expected(box.corner, LOG_ODDS).row_length}


def _planner(title: str, kind: str, **more: Any) -> Planner:
    """Return the planner of a model for features and a label of this kind."""
    return Planner(
        title=title,
        fields=("n", "dimension", *(("classes",) if "{classes}" in kind else ())),
        people=LABELED.replace("{kind}", kind),
        shell="{names} --target y",
        **more,
    )


_SEVERAL_CLASSES = "zd.category(list(range({classes})))"

# -- The tasks ------------------------------------------------------------------------------------

TASKS: dict[str, Task] = {
    "linear": Task(
        estimator="LinearRegression",
        error="in squared units of the target: how much larger the mean squared error is than the "
        "best line's, for rows that fill a quarter of their bounds, or all of data_norm",
        forecast=Forecast(
            unit="expected excess of the mean squared error",
            call="zerodelta.sklearn.LinearRegression(data_norm=…, bounds_y={bounds_y}, "
            "fit_intercept={intercept}, epsilon={epsilon}).fit(rows, targets)",
            methods=_linear,
            needs=TABLE,
            allows={"bounds_y": (-1, 1), **_FIT},
            typical={"dimension": 10},
            reliable=_ROUGH,
        ),
        command=Command(
            target="y",
            options=("no_intercept", *METHOD),
            publishes="coefficients and an intercept",
            example="linear people.csv age --target income",
        ),
        planner=_planner(
            "Linear regression", "zd.number(0, 100)", fixed={"bounds_y": (0, 100)}, asks=_boxed
        ),
    ),
    "sparse_linear": Task(
        estimator="SparseRegression",
        error="in squared units of the target: how much larger the mean squared error is than the "
        "best line's, where few features matter",
        command=Command(
            target="y",
            options=("no_intercept", *METHOD),
            publishes="coefficients and an intercept",
            example="sparse-linear people.csv age --target income",
        ),
    ),
    "logistic": Task(
        estimator="LogisticRegression",
        error="in nats: how much larger the mean log loss is than the best line's, for rows that "
        "fill a quarter of their bounds, or all of data_norm",
        forecast=_LOGISTIC,
        command=Command(
            target="y",
            options=("no_intercept", "radius", *METHOD),
            publishes="coefficients and intercepts",
            example="logistic people.csv age income --target member",
        ),
        planner=_planner("Logistic regression, two classes", "zd.boolean()", asks=_boxed),
    ),
    "multinomial": Task(
        estimator="LogisticRegression",
        forecast=replace(
            _LOGISTIC,
            unit="expected excess of the mean log loss, in nats",
            methods=_classes(classifier_methods),
            needs={**TABLE, "classes": "classes=3"},
            typical={"dimension": 10, "classes": 3},
        ),
        no_command="is the command logistic",
        planner=_planner("Logistic regression, more classes", _SEVERAL_CLASSES, asks=_boxed),
    ),
    "classifier": Task(
        estimator="LogisticRegression",
        forecast=Forecast(
            unit="expected error rate: the part of new rows that get a wrong class",
            call=_LOGISTIC.call.replace("{intercept}", "True"),
            calls={
                name: f"zerodelta.sklearn.{estimator}(bounds=…, classes=[…], {argument}"
                "epsilon={epsilon}).fit(rows, labels)"
                for name, (estimator, argument) in _WINNERS.items()
            },
            methods=_classes(compare_classifiers),
            needs={**TABLE, "classes": "classes=3"},
            typical={"dimension": 10, "classes": 3},
            reliable="curves fitted to four small data sets: a guide to the choice, see "
            "bench/tables_classifiers.py.\n"
            "       Even without noise some rows that a guess mistakes are mistaken:\n       "
            + ", ".join(f"{part:g} ({name})" for name, part in NOISELESS_ERROR.items()),
            blind=lambda numbers: 1 - 1 / _class_count(numbers),
        ),
        no_command="is one of several commands, by the best method",
        planner=_planner("Classifier: which of all", _SEVERAL_CLASSES, winners=_WINNERS),
    ),
    "random_forest": Task(
        estimator="RandomForestClassifier",
        error=_ERROR_RATE,
        command=Command(
            target="y",
            options=("trees", "depth", "diagnostics"),
            renamed={"trees": "n_estimators", "depth": "max_depth"},
            publishes="trees and their leaves",
            example="random-forest people.csv age income --target member",
        ),
    ),
    "mlp": Task(
        estimator="MLPClassifier",
        error="in nats: how much larger the mean log loss is than without noise, for rows that "
        "fill their bounds evenly",
        command=Command(
            target="y",
            options=("hidden_units", "rounds", "diagnostics"),
            publishes="its weights",
            example="mlp people.csv age income --target member",
        ),
    ),
    "study": Task(
        verb=Study,
        forecast=Forecast(
            unit="noise of a question, in units of its sensitivity",
            call="zd.Study(rows, epsilon={epsilon}, publish=…, rounds={questions})",
            methods=_study,
            needs={
                "questions": "questions=100",
                "publish": "publish=16 for 16 outcomes, or a space such as zd.Ball(10, 1)",
                "epsilon": EPSILON,
            },
            allows={"mixing_probability": Fraction(1, 1000)},
            typical={"questions": 100, "publish": 16},
            reliable="exact",
        ),
        no_command="takes a Python function",
        planner=Planner(
            title="Study: many internal queries, one small result",
            fields=("rounds", "outcomes"),
            people=PERCENT + "study = zd.Study(\n"
            '    people, epsilon="{epsilon}", publish=zd.Finite({outcomes}), rounds={rounds}, '
            "functions=False\n)\n",
            python='release = study.run(lambda s: {outcomes} * s.mean("income") / 100)\n',
        ),
    ),
    "purify": Task(verb=purify, no_command="takes a value, not data"),
}


def _fitted(name: str, fits: Fitted) -> Task:
    """Return the task of an estimator that the index describes."""
    return Task(
        estimator=fits.estimator,
        error=_ERROR_RATE,
        command=Command(
            target="y",
            options=("diagnostics",),
            publishes=fits.publishes,
            example=f"{name.replace('_', '-')} people.csv age income --target {fits.target}",
        ),
    )


TASKS |= {name: _fitted(name, listed.fits) for name, listed in INDEX.items() if listed.fits}
