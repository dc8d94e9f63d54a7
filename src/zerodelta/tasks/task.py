"""Describe a task, one verb or estimator, once and for all, in the file of the verb.

The command line, the planner page, the advisor, reports, the reference and the tests are all
derived from these descriptions. A forecast comes from the plan of the question, without rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, fields
from typing import Any, Literal, TypeAlias

import numpy as np

from zerodelta.errors import require
from zerodelta.spine.plan import Facts, Method
from zerodelta.value import value

Numbers: TypeAlias = Mapping[str, Any]

EPSILON = "epsilon=1"
ROWS = {"n": "n=10_000", "epsilon": EPSILON}
"""The numbers that most forecasts need, with examples."""
TABLE = {"n": ROWS["n"], "dimension": "dimension=10", "epsilon": EPSILON}

CLOSE = "the winner's was within a factor of 1.5 of what bench/tasks_forecasts.py measured"
UNMEASURED = "no script in bench/ measured how far it is from errors"
"""Texts for `Forecast.reliable`: a task that states a factor names the script that measured it."""


@value
class Forecast:
    """The description of a task for the advisor: its numbers, and the errors that follow."""

    unit: str
    call: str
    methods: Callable[[Numbers], tuple[Method, ...]]
    reliable: str
    """How far a forecast may be from what is measured, and which script measured that."""
    needs: Mapping[str, str]
    """Each required number ("a|b": one of them), with an example."""
    allows: Mapping[str, Any] = field(default_factory=dict)
    """Each optional number, with its default."""
    calls: Mapping[str, str] = field(default_factory=dict)
    """The call for a winning method of this name, where that is not `call`."""
    blind: Callable[[Numbers], float] | None = None
    """The error of a guess that reads no rows; by default the forecast for one row."""
    few: str = "the error exceeds a tenth of that of a guess without rows"
    """The sentence that explains why fewer rows than the advisor asks for are of no use."""
    shows: Callable[[Numbers], str] | None = None
    """A text with further errors, where a release has several."""
    typical: Mapping[str, Any] = field(default_factory=dict)
    """Besides n and ε, the numbers with which the task appears in the list of all tasks."""


@value
class Command:
    """The command of a task; its line of help is in `zerodelta.tasks.registry`."""

    publishes: str
    example: str
    """The command without `zerodelta` and without the options that all commands have."""
    columns: Literal["none", "one", "some", "several"] = "some"
    """"one": at most one; "some": one or more; "several": passed as a list, even a single one."""
    target: str | None = None
    """The parameter that names the column to explain; "y" for an estimator."""
    options: tuple[str, ...] = ()
    """Names in `zerodelta.cli.commands.OPTIONS`."""
    needs: tuple[str, ...] = ()
    """The required ones among the options."""
    renamed: Mapping[str, str] = field(default_factory=dict)
    """For an option with another name, the name of the verb's parameter."""


STATISTIC = ("by", "diagnostics")
METHOD = ("method", "diagnostics")
"""Options that many commands have."""


@value
class Planner:
    """The fields of a task on the planner page, and the calls that the page shows.

    Texts may name numbers of the page in braces; other braces stay as they are.
    """

    title: str
    fields: tuple[str, ...]
    """Names in `zerodelta.ui.server.FIELDS`, besides ε."""
    people: str
    """The Python code that opens the data set of the example."""
    python: str = ""
    """The arguments of the verb before ε; or, if it ends with a line break, complete code."""
    shell: str = ""
    """The arguments after the file on the command line; empty if there is no command."""
    fixed: Mapping[str, Any] = field(default_factory=dict)
    """Further numbers for the advisor, the same for all requests."""
    asks: Callable[[Numbers], Numbers] = dict
    """The function from the numbers of the page to those for the advisor."""
    winners: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """For each method its estimator and arguments before ε, where the best method decides."""


SKIPPED = {"missing": "skip"}
"""Planner pages assume that cells of a data set may be missing."""

INCOME = 'people = zd.open("people.csv", columns={"income": zd.number(0, {width})})\n'
PERCENT = INCOME.replace("{width}", "100")
NAMES = (
    'names = [f"x{i}" for i in range({dimension})]\n'
    'people = zd.open("people.csv", columns={name: zd.number(0, 100) for name in names})\n'
)
LABELED = (
    'names = [f"x{i}" for i in range({dimension})]\n'
    "columns = {name: zd.number(0, 100) for name in names}\n"
    'people = zd.open("people.csv", columns={**columns, "y": {kind}})\n'
)
ITEMS = (
    'items = zd.category([f"item {i}" for i in range({universe})])\n'
    'people = zd.open("people.csv", columns={"item": items})\n'
)
"""Data sets of the planner's examples: one column, several, with a label, of items."""


def planner_of_columns(title: str) -> Planner:
    """Return the planner of a task for several columns of numbers with the same bounds."""
    return Planner(
        title=title,
        fields=("n", "dimension", "width"),
        fixed=SKIPPED,
        people=NAMES.replace("100", "{width}"),
        python="people, names",
        shell="{names}",
    )


UNKNOWN_ERROR = "by the measure that the documentation of the task names"


@value
class Task:
    """The description of a verb, an estimator, or both for one job."""

    verb: Callable[..., Any] | None = None
    estimator: str = ""
    """A class of `zerodelta.sklearn`, which the command fits."""
    error: str = UNKNOWN_ERROR
    """The unit of the error of a release."""
    page: Literal["statistics", "choices", "models", ""] = ""
    """The page of the reference with the verb."""
    forecast: Forecast | None = None
    command: Command | None = None
    no_command: str = ""
    """The reason why there is no command."""
    planner: Planner | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The names under which releases are recorded: those of the verb and the estimator."""
        verb = () if self.verb is None else (self.verb.__name__,)
        return (*verb, self.estimator) if self.estimator else verb


# -- Forecasts ------------------------------------------------------------------------------------


def planned(question: type[Any], *, columns: Callable[[Numbers], int], **fixed: Any) -> Any:
    """Return the forecast by the plan of a question, whose fields are numbers or `fixed`."""
    names = {entry.name for entry in fields(question)}

    def methods(numbers: Numbers) -> tuple[Method, ...]:
        """Return the methods of the plan for these public numbers, best first."""
        stated = question(**fixed, **{name: v for name, v in numbers.items() if name in names})
        facts = facts_of(numbers, columns=("",) * columns(numbers))
        ranked: tuple[Method, ...] = stated.plan(facts, numbers["epsilon"]).methods
        return ranked

    return methods


def facts_of(numbers: Numbers, *, columns: tuple[str, ...] = ("0",)) -> Facts:
    """Return the public facts of imagined rows: their number, and whether cells may be missing."""
    return Facts(
        rows=numbers.get("n", 1), columns=columns, may_miss=as_skip(numbers.get("missing"))
    )


def as_skip(missing: Any) -> bool:
    """Return whether missing cells are skipped, from the argument `missing` of the call."""
    require(
        missing is None or (isinstance(missing, str) and missing == "skip"),
        "missing",
        missing,
        expected='"skip" (a missing cell is not counted) or None (no cell is missing)',
        remedy='pass missing="skip", or leave it out',
    )
    return missing is not None


def simple(function: Callable[..., tuple[Method, ...]], **renamed: str) -> Any:
    """Return a forecast that passes all numbers to a function, some under another name."""
    return lambda numbers: function(**{renamed.get(name, name): v for name, v in numbers.items()})


def width_of(numbers: Numbers) -> int:
    """Return the number of columns: as stated, or the number of bounds."""
    bounds = numbers["bounds"]
    ends = bounds if isinstance(bounds, (tuple, list)) else ()
    return max(numbers["dimension"] or 1, *map(np.size, ends), 1)
