"""What the advisor knows of one task, and how a question without rows is asked for its plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, fields
from typing import Any, TypeAlias

from zerodelta.errors import require
from zerodelta.spine.facts import Facts
from zerodelta.spine.methods import Method
from zerodelta.value import value

Numbers: TypeAlias = Mapping[str, Any]

EPSILON = "epsilon=1"
ROWS = {"n": "n=10_000", "epsilon": EPSILON}
"""What most tasks need, with examples."""

CLOSE = "the winner's was within a factor of 1.5 of what bench/tasks_forecasts.py measured"
UNMEASURED = "no script in bench/ measured how far it is from errors"
"""How far a forecast may be off: a task that states a factor names the script that measured it."""


@value
class Task:
    """A task by its public numbers: what must be given, what may be, and what follows."""

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


def planned(question: type[Any], *, columns: Callable[[Numbers], int], **fixed: Any) -> Any:
    """Return the forecast by a question's own plan: its fields are numbers, or fixed here."""
    names = {each.name for each in fields(question)}

    def methods(given: Numbers) -> tuple[Method, ...]:
        asked = question(**fixed, **{name: v for name, v in given.items() if name in names})
        skips = as_skip(given.get("missing"))
        facts = Facts(rows=given.get("n", 1), columns=("",) * columns(given), may_miss=skips)
        weighed: tuple[Method, ...] = asked.plan(facts, given["epsilon"]).methods
        return weighed

    return methods


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
