"""What the advisor knows: each task's public numbers, its forecast, and how it is called."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, TypeAlias, final

from zerodelta.exact.rational import as_count, as_positive
from zerodelta.purify.plan import plan
from zerodelta.spaces import Finite
from zerodelta.study.plan import Schedule, StudyPlan
from zerodelta.tasks.answer_queries import queries_methods
from zerodelta.tasks.histogram import histogram_methods
from zerodelta.tasks.kmeans_forecast import kmeans_methods
from zerodelta.tasks.mean import mean_methods
from zerodelta.tasks.methods import Method, ranked
from zerodelta.tasks.mode import mode_methods
from zerodelta.tasks.public_inputs import as_bounds
from zerodelta.tasks.quantile import quantile_methods
from zerodelta.tasks.regression.classification import logistic_methods, multinomial_methods
from zerodelta.tasks.regression.linear import linear_methods
from zerodelta.tasks.regression.reading import as_target_bounds
from zerodelta.tasks.select import select_methods
from zerodelta.tasks.select_features import predicted_noise
from zerodelta.tasks.trimmed_mean import trimmed_mean_methods

__all__ = ["TASKS", "Task"]

Numbers: TypeAlias = Mapping[str, Any]

# what bench/tasks_forecasts.py found
_CLOSE = "the winner's was within a factor of 1.5 of what was measured"
_ROUGH = (
    "for rows that fill their bound evenly (then within a factor of 4); the true one depends on "
    "unseen data:\n       short rows, correlated features and strong signals have 10 times more "
    "and beyond"
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
    reliable: str = _CLOSE


def _mean(given: Numbers) -> tuple[Method, ...]:
    norm, bound = given["norm"], as_positive(given["data_norm"] or 1, "data_norm")
    if given["data_norm"] is None:
        lower, upper = as_bounds(given["bounds"])
        norm, bound = math.inf, (upper - lower) / 2
    return mean_methods(
        epsilon=given["epsilon"],
        n=given["n"],
        dimension=given["dimension"],
        norm=norm,
        bound=bound,
    )


def _linear(given: Numbers) -> tuple[Method, ...]:
    low, high = as_target_bounds(given["bounds_y"])
    squared = float((high - low) / 2) ** 2
    found = linear_methods(
        epsilon=given["epsilon"],
        n=given["n"],
        dimension=given["dimension"],
        intercept=given["intercept"],
    )
    return tuple(
        Method(name=m.name, error=m.error * squared, spends=m.spends, why=m.why) for m in found
    )


def _features(given: Numbers) -> tuple[Method, ...]:
    n, d, size = (given[name] for name in ("n", "dimension", "size"))
    noise = predicted_noise(n=n, features=d, size=size, epsilon=given["epsilon"])
    return ranked(
        Method(
            name="gram",
            error=noise["gram"],
            spends=f"ε on one set out of {math.comb(d, size):.3g}, one hidden Gram matrix",
            why="one hidden question whatever the search; its noise follows a row's length",
        ),
        Method(
            name="stepwise",
            error=noise["stepwise"],
            spends=f"ε on {size} choices and {size} fits, one by one",
            why="its noise follows the number of features chosen, not of those there are",
        ),
    )


def _study(given: Numbers) -> tuple[Method, ...]:
    publish = given["publish"]
    space = Finite(publish) if isinstance(publish, int) else publish
    made = StudyPlan(
        publishing=plan(space, epsilon=given["epsilon"], failure=given["failure"]),
        rows=1,
        schedule=Schedule.of(as_count(given["questions"], "questions", minimum=1)),
        selects=False,
        rowwise=True,
    )
    pays = f"a study pays from {made.break_even} questions on"
    return ranked(
        Method(
            name="study",
            error=made.noise_per_question,
            spends=f"ε on one element of the space; {made.rounds} hidden questions, μ = "
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


def _simple(function: Callable[..., tuple[Method, ...]], **renamed: str) -> Any:
    """Return a forecast that passes all numbers on, some of them under another name."""
    return lambda given: function(**{renamed.get(name, name): v for name, v in given.items()})


_N, _D, _EPSILON = "n=10_000", "dimension=10", "epsilon=1"
_ROWS = {"n": _N, "epsilon": _EPSILON}
_TABLE = {"n": _N, "dimension": _D, "epsilon": _EPSILON}
_MEDIAN = Task(
    unit="expected rank error, in rows",
    call="zd.median(rows, bounds=…, epsilon={epsilon})",
    methods=_simple(quantile_methods, grid="points"),
    needs=_ROWS,
    allows={"grid": None},
)
_QUERIES = Task(
    unit="expected absolute error of a frequency, averaged over all cells of all tables",
    call="zd.answer_queries(rows, domain=…, workload={workload}, epsilon={epsilon})",
    methods=_simple(queries_methods),
    needs={**_ROWS, "domain": 'domain={"sex": 2, "age": 8}'},
    allows={"workload": 2},
)

TASKS: dict[str, Task] = {
    "mean": Task(
        unit="expected absolute error of a coordinate, in the unit of the data",
        call="zd.mean(rows, bounds=… or data_norm=…, epsilon={epsilon})",
        methods=_mean,
        needs={**_ROWS, "bounds|data_norm": "bounds=(0, 100)"},
        allows={"dimension": 1, "bounds": None, "data_norm": None, "norm": 2},
    ),
    "histogram": Task(
        unit="expected absolute error of a count",
        call="zd.histogram(items, universe={universe}, epsilon={epsilon})",
        methods=_simple(histogram_methods),
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
        methods=_simple(mode_methods),
        needs={**_ROWS, "universe": "universe=100"},
        reliable="for the counts that are hardest to tell apart; usually much less",
    ),
    "quantile": replace(
        _MEDIAN,
        call="zd.quantile(rows, q={q}, bounds=…, epsilon={epsilon})",
        allows={"grid": None, "q": "1/2"},
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
    ),
    "queries": _QUERIES,
    "synthesize": _QUERIES,
    "linear": Task(
        unit="expected excess of the mean squared error",
        call="fit_linear(rows, targets, data_norm=…, bounds_y={bounds_y}, epsilon={epsilon})",
        methods=_linear,
        needs=_TABLE,
        allows={"bounds_y": (-1, 1), "intercept": True},
        reliable=_ROUGH,
    ),
    "logistic": Task(
        unit="expected excess of the mean logistic loss, in nats",
        call="fit_logistic(rows, labels, data_norm=…, classes=[…], epsilon={epsilon})",
        methods=_simple(logistic_methods),
        needs=_TABLE,
        allows={"intercept": True},
        reliable=_ROUGH,
    ),
    "multinomial": Task(
        unit="expected excess of the mean log loss, in nats",
        call="fit_multinomial(rows, labels, data_norm=…, classes=[…], epsilon={epsilon})",
        methods=_simple(multinomial_methods),
        needs={**_TABLE, "classes": "classes=3"},
        allows={"intercept": True},
        reliable=_ROUGH,
    ),
    "kmeans": Task(
        unit="expected inertia relative to the best, less 1",
        call="zd.kmeans(rows, clusters={clusters}, bounds=…, epsilon={epsilon})",
        methods=lambda given: kmeans_methods(
            rows=as_count(given["n"], "n", minimum=1),
            clusters=as_count(given["clusters"], "clusters", minimum=1),
            epsilon=float(as_positive(given["epsilon"], "epsilon")),
            dimension=as_count(given["dimension"], "dimension", minimum=1),
        ),
        needs={**_TABLE, "clusters": "clusters=5"},
        reliable="for compact clusters that a grid tells apart; one that is missed costs far more",
    ),
    "select_features": Task(
        unit="largest noise to expect in a covariance of features and target in [-1, 1]",
        call="zd.select_features(rows, target=…, size={size}, bounds=…, target_bounds=…, "
        "epsilon={epsilon})",
        methods=_features,
        needs={**_TABLE, "size": "size=3"},
        reliable="a guide to the choice, not the error of the choice",
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
        allows={"failure": Fraction(1, 1000)},
        reliable="exact",
    ),
}
"""All tasks by name."""
