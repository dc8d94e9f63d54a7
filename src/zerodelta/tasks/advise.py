"""`advise`: which pure mechanism will be the most accurate, before any data is there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, overload

from zerodelta.errors import ParameterError, did_you_mean, require
from zerodelta.exact.rational import Rational, as_count, as_positive
from zerodelta.spine.methods import Method
from zerodelta.tasks.accuracy_first import START, aimed, solved, sought_for
from zerodelta.tasks.advice import Advice, AllAdvice
from zerodelta.tasks.advice_tasks import TASKS
from zerodelta.tasks.advised_task import Task

_LONGEST = 60

_COMPLETE = ";\n       no script in bench/ measured it where cells are skipped"


@overload
def advise(task: None = None, *, epsilon: Rational | None = None) -> AllAdvice: ...


@overload
def advise(
    task: str,
    *,
    n: int | None = None,
    dimension: int | None = None,
    epsilon: Rational | None = None,
    error: Rational | None = None,
    **options: Any,
) -> Advice: ...


def advise(
    task: str | None = None,
    *,
    n: int | None = None,
    dimension: int | None = None,
    epsilon: Rational | None = None,
    error: Rational | None = None,
    **options: Any,
) -> Advice | AllAdvice:
    """Compare all methods of a task at this ε. Use it before there is data: it reads none.

    The forecasts are those of ``method="auto"`` and of a release's `error`: the same plan, without
    rows. With `error` it says which ε, or how many rows, an accuracy takes.

    Parameters
    ----------
    task : str, optional
        "mean", "histogram", "select", "mode", "quantile", "median", "trimmed_mean", "queries",
        "synthesize", "linear", "logistic", "multinomial", "classifier" (all of them), "covariance",
        "correlation", "pca", "kmeans", "decision_tree", "select_features", "count", "sum",
        "variance", "std", "table", "quantiles", "cdf", "top_k", "heavy_hitters", "vote",
        "select_model", or "study" (internal queries against pure composition).
        Without it all are listed, with the number of rows from which on each is useful.
    n : int, optional
        The number of rows.
    dimension : int, optional
        The number of columns, or of features.
    epsilon : int, float, Fraction or str
        The privacy parameter.
    error : number, optional
        The largest forecast error, in the unit that is printed: leave out `epsilon`, or `n`, and
        the least that reaches it is found, rounded up to three digits.
    **options
        What else the task needs, as for the function itself; what is missing is listed.

    Returns
    -------
    Advice
        Print it for a table; `best`, `reason`, `epsilon`, `n`, `useful_from`, `plot()`. Without a
        task it has one for each, by name.

    **Guarantee**: none is needed. **Error**: how far forecasts were off is printed with them.

    >>> advice = advise("mean", n=10_000, dimension=5, epsilon=1, data_norm=1)
    >>> advice.best.name, [method.name for method in advice]
    ('k-norm', ['k-norm', 'laplace', 'k-norm-max'])
    >>> print(advise("study", questions=1000, publish=16, epsilon=1).reason)
    study, 14.1 times less error than pure composition: a study pays from 6 questions on
    >>> ages = {"of": {"age": ["mean"]}, "by": 12, "bounds": (0, 120)}
    >>> float(advise("table", n=200_000, error="0.01", **ages).epsilon)
    0.0104
    >>> advise("table", epsilon=1, error="0.01", **ages).n
    2080

    """
    if task is None:
        return _all(epsilon, {"n": n, "dimension": dimension, "error": error, **options})
    require(
        isinstance(task, str) and task in TASKS,
        "task",
        task,
        expected=f"one of {', '.join(sorted(TASKS))}",
        remedy=did_you_mean(task, TASKS, "pass its name"),
    )
    known = TASKS[task]
    given = {"n": n, "dimension": dimension, "epsilon": epsilon, **options}
    given = {name: value for name, value in given.items() if value is not None}

    def forecast(asked: Mapping[str, Any]) -> tuple[Method, ...]:
        return known.methods({**known.allows, **asked})

    def blind(asked: Mapping[str, Any]) -> float:
        if known.blind is None:
            return forecast({**asked, "n": 1})[0].error
        return known.blind({**known.allows, **asked})

    aim = None
    if error is None:
        numbers = _numbers(task, known, given)
    else:
        sought = sought_for(given, has_rows="n" in known.needs)
        numbers = _numbers(task, known, {**given, sought: START[sought]})
        wanted = float(as_positive(error, "error"))
        numbers[sought] = solved(
            lambda value: forecast({**numbers, sought: value})[0].error, sought, wanted, known.unit
        )
        aim = f"for an error of at most {error}: {aimed(sought, numbers[sought])}"
    methods = forecast(numbers)
    call = known.calls.get(methods[0].name, known.call)
    told = {name: _shown(value) for name, value in {**known.allows, **numbers}.items()}
    shows = known.shows
    return Advice(
        task=task,
        numbers=numbers,
        unit=known.unit,
        reliable=known.reliable + (_COMPLETE if numbers.get("missing") else ""),
        call=call.format(**told),
        methods=methods,
        forecast=forecast,
        blind=None if "n" not in known.needs else blind,
        complete=forecast({**numbers, "missing": None})[0] if numbers.get("missing") else None,
        few=known.few,
        shows=None if shows is None else lambda asked: shows({**known.allows, **asked}),
        aim=aim,
    )


def _all(epsilon: Rational | None, others: Mapping[str, Any]) -> AllAdvice:
    """Return the advice for all tasks, each with typical numbers."""
    for name, entry in others.items():
        remedy = 'name a task, such as zd.advise("mean", …)'
        require(entry is None, name, entry, "nothing but epsilon without a task", remedy)
    exact = 1 if epsilon is None else epsilon
    return AllAdvice(
        each=tuple(
            advise(
                task,
                **known.typical,
                epsilon=exact,
                n=START["n"] if "n" in known.needs else None,
            )
            for task, known in TASKS.items()
        )
    )


def _shown(value: Any) -> str:
    """Return a value as it is written in a call; a long list is left to the caller."""
    word = isinstance(value, str) and value[:1].isalpha()
    text = f'"{value}"' if word else str(value)
    return text if len(text) <= _LONGEST else "…"


def _numbers(name: str, task: Task, given: dict[str, Any]) -> dict[str, Any]:
    """Return the numbers of the task in a fixed order; refuse what is missing or unknown."""
    order = [part for need in task.needs for part in need.split("|")]
    known = list(dict.fromkeys([*order, *task.allows]))
    missing = [need for need in task.needs if not any(part in given for part in need.split("|"))]
    unknown = [number for number in given if number not in known]
    if missing or unknown:
        may = ", ".join(number for number in task.allows if number not in order)
        needs, lacking = (", ".join(some).replace("|", " or ") for some in (task.needs, missing))
        example = f'such as advise("{name}", {", ".join(task.needs.values())})'
        raise ParameterError(
            lacking or unknown[0],
            None if missing else given[unknown[0]],
            expected=f'for "{name}": {needs}' + (f"; optional: {may}" if may else ""),
            remedy=did_you_mean(unknown[0] if unknown else None, sorted(known), example),
        )
    for count in ("n", "dimension"):
        if count in given:
            given[count] = as_count(given[count], count, minimum=1)
            most = {"n": 1 << 53, "dimension": 1 << 20}[count]
            require(given[count] <= most, count, given[count], f"at most {most}", "pass less")
    as_positive(given["epsilon"], "epsilon")
    return {number: given[number] for number in known if number in given}
