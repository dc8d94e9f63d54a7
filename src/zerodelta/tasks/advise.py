"""`advise`: which pure mechanism will be the most accurate, before any data is there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from zerodelta.errors import ParameterError, did_you_mean, require
from zerodelta.exact.rational import Rational, as_count, as_positive
from zerodelta.spine.methods import Method
from zerodelta.tasks.advice import Advice
from zerodelta.tasks.advice_tasks import TASKS, Task

__all__ = ["advise"]

_LONGEST = 60


def advise(
    task: str,
    *,
    n: int | None = None,
    dimension: int | None = None,
    epsilon: Rational | None = None,
    **options: Any,
) -> Advice:
    """Compare all methods of a task at this ε. Use it before there is data: it reads none.

    The forecasts are those of ``method="auto"`` and of a release's `error`: the same plan, without
    rows.

    Parameters
    ----------
    task : str
        "mean", "histogram", "select", "mode", "quantile", "median", "trimmed_mean", "queries",
        "synthesize", "linear", "logistic", "multinomial", "classifier" (all of them), "covariance",
        "pca", "kmeans", "select_features", or "study" (internal queries against pure composition).
    n : int, optional
        The number of rows.
    dimension : int, optional
        The number of columns, or of features.
    epsilon : int, float, Fraction or str
        The privacy parameter.
    **options
        What else the task needs, as for the function itself; what is missing is listed.

    Returns
    -------
    Advice
        Print it for a table; `best`, `reason`, `useful_from`, `plot()`.

    **Guarantee**: none is needed. **Error**: how far forecasts were off is printed with them.

    >>> advice = advise("mean", n=10_000, dimension=5, epsilon=1, data_norm=1)
    >>> advice.best.name, [method.name for method in advice]
    ('k-norm', ['k-norm', 'laplace', 'k-norm-max'])
    >>> print(advise("study", questions=1000, publish=16, epsilon=1).reason)
    study, 14.1 times less error than pure composition: a study pays from 6 questions on

    """
    require(
        isinstance(task, str) and task in TASKS,
        "task",
        task,
        expected=f"one of {', '.join(sorted(TASKS))}",
        remedy=did_you_mean(task, TASKS, "pass its name"),
    )
    known = TASKS[task]
    given = {"n": n, "dimension": dimension, "epsilon": epsilon, **options}
    numbers = _numbers(task, known, {k: v for k, v in given.items() if v is not None})

    def forecast(asked: Mapping[str, Any]) -> tuple[Method, ...]:
        return known.methods({**known.allows, **asked})

    def blind(asked: Mapping[str, Any]) -> float:
        if known.blind is None:
            return forecast({**asked, "n": 1})[0].error
        return known.blind({**known.allows, **asked})

    methods = forecast(numbers)
    call = known.calls.get(methods[0].name, known.call)
    told = {name: _shown(value) for name, value in {**known.allows, **numbers}.items()}
    return Advice(
        task=task,
        numbers=numbers,
        unit=known.unit,
        reliable=known.reliable,
        call=call.format(**told),
        methods=methods,
        forecast=forecast,
        blind=None if "n" not in known.needs else blind,
        complete=forecast({**numbers, "missing": None})[0] if numbers.get("missing") else None,
    )


def _shown(value: Any) -> str:
    """Return a value as it is written in a call; a long list is left to the caller."""
    text = f'"{value}"' if isinstance(value, str) and value == "skip" else str(value)
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
    as_positive(given["epsilon"], "epsilon")
    return {number: given[number] for number in known if number in given}
