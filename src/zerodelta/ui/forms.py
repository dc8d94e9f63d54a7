"""The public numbers that the planner page asks for, and the calls that it shows.

Which numbers, and how a task is called, its own file says: `zerodelta.tasks.task.Planner`.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from zerodelta.data.declare import text
from zerodelta.errors import ParameterError, require
from zerodelta.exact.rational import as_positive
from zerodelta.tasks.registry import COMMANDS, TASKS
from zerodelta.tasks.task import Planner, Task
from zerodelta.value import value

# -- The numbers: names, limits, and what they start with -----------------------------------------
# Limits are there because a forecast must come back while one moves a slider; the library itself
# takes larger numbers.


@value
class Field:
    """One number of the form."""

    label: str
    least: float
    most: float
    start: str
    whole: bool = True
    hint: str = ""
    passed: Callable[[Any], Mapping[str, Any]] | None = None
    """How `advise` is given it, where that is not by its own name."""


FIELDS: Mapping[str, Field] = {
    "epsilon": Field(
        label="ε, the privacy parameter", least=0.001, most=100, start="1", whole=False
    ),
    "n": Field(label="n, the number of rows", least=1, most=10**9, start="10000"),
    "dimension": Field(label="columns", least=1, most=1000, start="5"),
    "width": Field(
        label="width of the bounds",
        least=0.001,
        most=10**12,
        start="100",
        whole=False,
        hint="values lie between 0 and this",
        passed=lambda width: {"bounds": (0, width)},
    ),
    "groups": Field(
        label="groups", least=1, most=2000, start="12", passed=lambda groups: {"by": groups}
    ),
    "options": Field(label="options to choose from", least=2, most=500, start="10"),
    "universe": Field(label="items that can occur", least=2, most=10**6, start="100"),
    "k": Field(label="keys to publish", least=1, most=1000, start="10"),
    "letters": Field(
        label="letters of a key",
        least=1,
        most=40,
        start="10",
        passed=lambda letters: {"universe": text(letters, alphabet=string.ascii_lowercase)},
    ),
    "levels": Field(
        label="quantiles",
        least=1,
        most=50,
        start="3",
        hint="evenly spaced levels",
        passed=lambda count: {"q": [f"{place}/{count + 1}" for place in range(1, count + 1)]},
    ),
    "values": Field(
        label="values of the curve",
        least=2,
        most=500,
        start="10",
        passed=lambda values: {"at": values},
    ),
    "classes": Field(label="classes", least=2, most=100, start="3"),
    "thresholds": Field(label="thresholds of all columns", least=1, most=80, start="4"),
    "clusters": Field(label="clusters", least=1, most=100, start="5"),
    "size": Field(label="features to choose", least=1, most=50, start="3"),
    "rounds": Field(
        label="internal queries",
        least=1,
        most=10**6,
        start="1000",
        passed=lambda rounds: {"questions": rounds},
    ),
    "outcomes": Field(
        label="size of the result",
        least=2,
        most=10**15,
        start="16",
        hint="one of so many outcomes is published",
        passed=lambda outcomes: {"publish": outcomes},
    ),
}
"""Every number by its name in a request."""


def as_value(name: str, text: str) -> Any:
    """Return the number that a text spells: an integer, or the text of an exact decimal.

    >>> as_value("n", "2000"), as_value("epsilon", "1/4")
    (2000, '1/4')
    """
    field, told = FIELDS[name], text.strip().replace("_", "").replace(" ", "")
    expected = f"{'a whole number' if field.whole else 'a number'} from {field.least:,.12g} to "
    expected += f"{field.most:,.12g}"
    try:
        require(len(told) <= 40, name, expected=expected, remedy="pass fewer digits")
        number = as_positive(told, name)
    except ParameterError:
        raise ParameterError(
            name, text[:40], expected=expected, remedy="correct this field"
        ) from None
    least = Fraction(str(field.least))  # as it is written: 0.001 itself is allowed
    fits = least <= number <= field.most and not (field.whole and number.denominator > 1)
    require(fits, name, text[:40], expected, "correct this field")
    return int(number) if field.whole else told


# -- The tasks ------------------------------------------------------------------------------------


def planners() -> dict[str, Planner]:
    """Return what is asked for each task that the page has."""
    found = ((name, task.planner) for name, task in TASKS.items())
    return {name: planner for name, planner in found if planner is not None}


def numbers_asked(planner: Planner, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what `advise` is asked with the numbers of the page."""
    found: dict[str, Any] = dict(planner.fixed)
    for name, number in planner.asks(given).items():
        passed = FIELDS[name].passed if name in FIELDS else None
        found |= {name: number} if passed is None else passed(number)
    return found


_OUT = "--epsilon {epsilon} --schema people.toml --out out"
_CODE = "# no command: the job needs a function of yours, see the Python"


def snippets(task: Task, given: Mapping[str, Any], best: str) -> dict[str, str]:
    """Return the job in Python and on the command line, for the best method."""
    planner = task.planner
    assert planner is not None
    imports, call = "import zerodelta as zd\n", planner.python
    estimator, arguments = planner.winners.get(best, (task.estimator, ""))
    if task.verb is not None:
        if not call.endswith("\n"):
            call = f'release = zd.{task.verb.__name__}({call}, epsilon="{{epsilon}}")\n'
    else:
        imports += f"from zerodelta.sklearn import {estimator}\n"
        call = f'release = {estimator}({arguments}epsilon="{{epsilon}}")'
        call += '.fit(people[names], people["y"])\n'
    save = 'release.save("release.json")\n' if "release = " in call else ""
    python = f"{imports}\n{planner.people}{call}{save}"
    shell = f"zerodelta {_command(task, estimator)} people.csv {planner.shell} {_OUT}"
    shell = shell if planner.shell else _CODE
    for name, number in {**given, **_lists(given)}.items():
        python, shell = (text.replace("{" + name + "}", str(number)) for text in (python, shell))
    return {"python": python, "shell": shell}


def _command(task: Task, estimator: str) -> str:
    """Return the command of a task, or of the estimator that its best method is."""
    for command, name in COMMANDS.items():
        found = TASKS[name]
        if found is task or (task.command is None and found.estimator == estimator):
            return command
    return ""


def _lists(given: Mapping[str, Any]) -> dict[str, str]:
    """Return what stands for several columns, levels or values on the command line."""
    columns, levels, values = (given.get(name, 1) for name in ("dimension", "levels", "values"))
    cuts = given.get("thresholds", 1)
    return {
        "names": "x0" if columns == 1 else f"x{{0..{columns - 1}}}",  # the shell spells them out
        "parts": ",".join(f"{place / (levels + 1):.4g}" for place in range(1, levels + 1)),
        "cuts": ",".join(f"{100 * place / (cuts + 1):.4g}" for place in range(1, cuts + 1)),
        "edges": ",".join(f"{100 * place / values:.4g}" for place in range(values)),
    }
