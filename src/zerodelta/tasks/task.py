"""What a task is: one verb or estimator, described once, in the file of the verb.

The command line, the planner page, the advisor, reports, the reference and the tests read it here.
A forecast is made by the question's own plan, which no rows ever see.
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
"""What most forecasts need, with examples."""
TABLE = {"n": ROWS["n"], "dimension": "dimension=10", "epsilon": EPSILON}

CLOSE = "the winner's was within a factor of 1.5 of what bench/tasks_forecasts.py measured"
UNMEASURED = "no script in bench/ measured how far it is from errors"
"""How far a forecast may be off: a task that states a factor names the script that measured it."""


@value
class Forecast:
    """What the advisor knows: what must be given, what may be, and the errors that follow."""

    unit: str
    call: str
    methods: Callable[[Numbers], tuple[Method, ...]]
    reliable: str
    """How far a forecast may be from what is measured, and which script measured that."""
    needs: Mapping[str, str]
    """Each number that must be given ("a|b": one of them), with an example."""
    allows: Mapping[str, Any] = field(default_factory=dict)
    """Each number that may be given, with its default."""
    calls: Mapping[str, str] = field(default_factory=dict)
    """How to call a winner of this name, where that is not `call`."""
    blind: Callable[[Numbers], float] | None = None
    """The error of an answer that reads no rows; by default what is forecast for one row."""
    few: str = "the error exceeds a tenth of that of a guess without rows"
    """What is the matter with fewer rows than are useful."""
    shows: Callable[[Numbers], str] | None = None
    """More of what the numbers buy, where a release has several errors."""
    typical: Mapping[str, Any] = field(default_factory=dict)
    """Beside n and ε, numbers with which the task is listed among all others."""


@value
class Command:
    """How the command line takes a task; `zerodelta.tasks.registry` has its line of help."""

    publishes: str
    example: str
    """What follows `zerodelta`, before the options that all commands have."""
    columns: Literal["none", "one", "some", "several"] = "some"
    """At most one; one or more; a list, even of one."""
    target: str | None = None
    """The parameter that names the column to explain; "y" for an estimator."""
    options: tuple[str, ...] = ()
    """Names in `zerodelta.cli.commands.OPTIONS`."""
    needs: tuple[str, ...] = ()
    renamed: Mapping[str, str] = field(default_factory=dict)
    """What the verb itself calls an option, where that is another name."""


STATISTIC = ("by", "diagnostics")
METHOD = ("method", "diagnostics")
"""Options that many commands have."""


@value
class Planner:
    """What the planner page asks for a task, and the calls that it shows.

    Texts may name numbers of the page in braces; other braces are their own.
    """

    title: str
    fields: tuple[str, ...]
    """Names in `zerodelta.ui.server.FIELDS`, beside ε."""
    people: str
    """How the data set of the example is opened, in Python."""
    python: str = ""
    """What the verb is called with before ε; or, with its end of line, what is done instead."""
    shell: str = ""
    """What follows the file on the command line; empty for what takes a Python function."""
    fixed: Mapping[str, Any] = field(default_factory=dict)
    """What else the advisor is given."""
    asks: Callable[[Numbers], Numbers] = dict
    """What the advisor is given instead of some numbers."""
    winners: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """The estimator, and its arguments before ε, where the best method decides which it is."""


SKIPPED = {"missing": "skip"}
"""Cells of a data set may be missing, unless its columns say otherwise."""

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


UNKNOWN_ERROR = "by the measure that the documentation of the task names"


@value
class Task:
    """A verb, an estimator, or both for one job: all that is said of it anywhere."""

    verb: Callable[..., Any] | None = None
    estimator: str = ""
    """A name of `zerodelta.sklearn`: what the command fits, and what is fitted where no verb is."""
    error: str = UNKNOWN_ERROR
    """What the error of a release is counted in."""
    page: Literal["statistics", "choices", "models", ""] = ""
    """Of the reference, where the verb is."""
    forecast: Forecast | None = None
    command: Command | None = None
    no_command: str = ""
    """Why there is no command."""
    planner: Planner | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """What its releases are recorded under: the names of verb and estimator."""
        verb = () if self.verb is None else (self.verb.__name__,)
        return (*verb, self.estimator) if self.estimator else verb


# -- Forecasts ------------------------------------------------------------------------------------


def planned(question: type[Any], *, columns: Callable[[Numbers], int], **fixed: Any) -> Any:
    """Return the forecast by a question's own plan: its fields are numbers, or fixed here."""
    names = {each.name for each in fields(question)}

    def methods(given: Numbers) -> tuple[Method, ...]:
        asked = question(**fixed, **{name: v for name, v in given.items() if name in names})
        facts = facts_of(given, columns=("",) * columns(given))
        weighed: tuple[Method, ...] = asked.plan(facts, given["epsilon"]).methods
        return weighed

    return methods


def facts_of(given: Numbers, *, columns: tuple[str, ...] = ("0",)) -> Facts:
    """Return what is known of rows that nobody has: their number, and whether cells may miss."""
    return Facts(rows=given.get("n", 1), columns=columns, may_miss=as_skip(given.get("missing")))


def as_skip(missing: Any) -> bool:
    """Return whether missing cells are skipped, from what the caller would pass."""
    require(
        missing is None or (isinstance(missing, str) and missing == "skip"),
        "missing",
        missing,
        expected='"skip" (a missing cell counts nowhere) or None (none is missing)',
        remedy='pass missing="skip", or leave it out',
    )
    return missing is not None


def simple(function: Callable[..., tuple[Method, ...]], **renamed: str) -> Any:
    """Return a forecast that passes all numbers on, some of them under another name."""
    return lambda given: function(**{renamed.get(name, name): v for name, v in given.items()})


def width_of(given: Numbers) -> int:
    """Return the number of columns: as given, or as many as there are bounds."""
    bounds = given["bounds"]
    ends = bounds if isinstance(bounds, (tuple, list)) else ()
    return max(given["dimension"] or 1, *map(np.size, ends), 1)
