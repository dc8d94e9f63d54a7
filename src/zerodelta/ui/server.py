"""The planner page: what it asks, the plans it answers with, its server on the loopback address.

It has four static files and two answers, takes no data, writes nothing, and is no part of any
privacy claim. A page of another origin can neither ask it, nor read its answers, nor be one of its
frames. Answers are computed one at a time, each for a few seconds at most. Which numbers a task
asks for, and how it is called, its own file says: `zerodelta.tasks.task.Planner`.
"""

from __future__ import annotations

import json
import math
import string
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import Any, TypeAlias, TypeVar, final
from urllib.parse import parse_qsl, urlsplit

from zerodelta.data.declare import text
from zerodelta.errors import ParameterError, ZeroDeltaError, did_you_mean, require
from zerodelta.exact.rational import as_positive
from zerodelta.tasks.advise import Advice, advise, solved
from zerodelta.tasks.registry import COMMANDS, TASKS, address
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
            call = f'release = {address(task.verb.__name__)}({call}, epsilon="{{epsilon}}")\n'
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


# -- Planned --------------------------------------------------------------------------------------
# The planner's answers: forecasts, curves, what a wished accuracy takes, break-even, snippets.
#
# Everything is a function of the public numbers in a request; `advise` reads no rows, and neither
# does anything here.

_T = TypeVar("_T")

_POINTS = 13
_REACH = 100.0
_AXES = {"n": "number of rows n", "epsilon": "ε", "rounds": "internal queries"}
_SIZES = tuple(10**power for power in range(1, 16))


class _LateError(Exception):
    """A search asks for one more forecast when the time for the answer is over."""


def _never() -> bool:
    return False


def _unless(late: Callable[[], bool], forecast: Callable[[Any], _T]) -> Callable[[Any], _T]:
    """Return the forecast, of which none begins once it is late."""

    def timely(numbers: Any) -> _T:
        if late():
            raise _LateError
        return forecast(numbers)

    return timely


def form_of_all() -> dict[str, Any]:
    """Return the tasks, their numbers, and what the page says of each number."""
    fields = {
        name: {
            "label": field.label,
            "least": field.least,
            "most": field.most,
            "start": field.start,
            "whole": field.whole,
            "hint": field.hint,
        }
        for name, field in FIELDS.items()
    }
    tasks = {
        name: {"title": planner.title, "fields": ["epsilon", *planner.fields]}
        for name, planner in planners().items()
    }
    return {"fields": fields, "tasks": tasks}


def answer(request: Mapping[str, str], late: Callable[[], bool] = _never) -> dict[str, Any]:
    """Return what the page shows for one task at these numbers; once it is late, without the rest.

    >>> found = answer({"task": "mean", "n": "10000", "dimension": "5", "width": "100"})
    >>> found["methods"][0]["name"], found["complete"]["name"], found["axes"]
    ('partition', 'k-norm-max', ['n', 'epsilon'])
    """
    task, planner = _asked_about(request.get("task", ""))
    given = _numbers(request, planner.fields)
    advice = advise(task, **numbers_asked(planner, given))
    axes = [name for name in _AXES if name in given]
    timely = replace(
        advice,
        forecast=_unless(late, advice.forecast),
        blind=None if advice.blind is None else _unless(late, advice.blind),
    )
    wish = _wish(timely, request.get("wish", "").strip())
    return {
        "task": task,
        "unit": " ".join(advice.unit.split()),
        "reliable": " ".join(advice.reliable.split()),
        "complete": None
        if advice.complete is None
        else {"name": advice.complete.name, "error": _finite(advice.complete.error)},
        "reason": advice.reason,
        "useful": _useful(timely),
        "methods": [
            {
                "name": method.name,
                "error": _finite(method.error),
                "times": _ratio(method.error, advice.best.error),
                "spends": method.spends,
                "why": method.why,
            }
            for method in advice
        ],
        "axes": axes,
        "curves": {name: _curve(planner, given, name, advice, late) for name in axes},
        "late": late(),
        "wish": wish,
        **snippets(TASKS[task], given, advice.best.name),
    }


def break_even(request: Mapping[str, str], late: Callable[[], bool] = _never) -> dict[str, Any]:
    """Return from how many internal queries on purification pays, and how much.

    >>> found = break_even({"epsilon": "1", "rounds": "1000", "outcomes": "16"})
    >>> found["from"], round(found["gain"], 1)
    (6, 14.1)
    """
    given = _numbers(request, ("rounds", "outcomes"))
    epsilon, size = given["epsilon"], given["outcomes"]
    noise = _study_noise(epsilon, size, given["rounds"])
    steps = _steps("rounds", given["rounds"])
    pairs = [_study_noise(epsilon, size, value) for value in steps]
    return {
        "from": _pays_from(epsilon, size),
        "gain": noise["pure composition"] / noise["study"],
        "asked": given["rounds"],
        "noise": {
            "x": steps,
            "lines": {name: [pair[name] for pair in pairs] for name in pairs[0]},
        },
        "sizes": {
            "x": list(_SIZES),
            "lines": {
                "break-even": [None if late() else _pays_from(epsilon, size) for size in _SIZES]
            },
        },
    }


def _asked_about(task: str) -> tuple[str, Planner]:
    known = planners()
    if task not in known:
        expected = f"one of {', '.join(sorted(known))}"
        remedy = did_you_mean(task, known, "choose one")
        raise ParameterError("task", task[:40], expected=expected, remedy=remedy)
    return task, known[task]


def _numbers(request: Mapping[str, str], names: Sequence[str]) -> dict[str, Any]:
    """Return ε and other numbers as the page sends them, or as they start."""
    return {
        name: as_value(name, request.get(name, FIELDS[name].start)) for name in ("epsilon", *names)
    }


def _steps(name: str, asked: Any) -> list[Any]:
    """Return numbers around the one that was asked, evenly spaced in logarithms."""
    field, center = FIELDS[name], float(_number(asked))
    exponents = [2 * place / (_POINTS - 1) - 1 for place in range(_POINTS)]
    values = [min(max(center * _REACH**e, field.least), field.most) for e in exponents]
    if field.whole:
        return sorted({max(1, round(value)) for value in values})
    return sorted({float(f"{value:.4g}") for value in values})


def _curve(
    planner: Planner,
    given: Mapping[str, Any],
    name: str,
    advice: Advice,
    late: Callable[[], bool],
) -> dict[str, Any]:
    """Return the errors of all methods against one of the numbers."""
    values = _steps(name, given[name])
    lines: dict[str, list[float | None]] = {method.name: [] for method in advice}
    for number in values:
        found: dict[str, float] = {}
        if not late():
            # so few rows, or so small an ε, that no method applies
            with suppress(ZeroDeltaError):
                numbers = numbers_asked(planner, {**given, name: number})
                found = {m.name: m.error for m in advise(advice.task, **numbers)}
        for label, line in lines.items():
            line.append(_finite(found.get(label, math.inf)))
    return {"title": _AXES[name], "x": values, "asked": float(_number(given[name])), "lines": lines}


def _useful(advice: Advice) -> int | None:
    """Return from how many rows on the answer is useful; None, too, once it is late."""
    try:
        return advice.useful_from
    except _LateError:
        return None


def _wish(advice: Advice, text: str) -> dict[str, Any] | None:
    """Return which ε, and how many rows, a wished error takes, as `advise` solves for it.

    None without a wish.
    """
    if not text:
        return None

    def found(sought: str) -> dict[str, Any]:
        def error(value: Any) -> float:
            return advice.forecast({**advice.numbers, sought: value})[0].error

        try:
            wanted = float(as_positive(text, "error"))
            return {"value": solved(error, sought, wanted, advice.unit)}
        except ParameterError as refused:
            return {"refused": str(refused)}
        except _LateError:
            return {"refused": "that takes too long to find here; ask zd.advise."}

    return {name: found(name) for name in ("epsilon", *(["n"] if "n" in advice.numbers else []))}


def _study_noise(epsilon: str, size: int, rounds: int) -> dict[str, float]:
    found = advise("study", questions=rounds, publish=size, epsilon=epsilon)
    return {method.name: method.error for method in found}


def _pays_from(epsilon: str, size: int) -> int:
    """Return the least number of internal queries from which on a study has less noise.

    Noise grows like the square root of their number, and by pure composition like the number.
    """
    low, high = 0, 1
    while not _pays(epsilon, size, high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _pays(epsilon, size, middle) else (middle, high)
    return high


def _pays(epsilon: str, size: int, rounds: int) -> bool:
    noise = _study_noise(epsilon, size, rounds)
    return noise["study"] < noise["pure composition"]


def _number(value: Any) -> float:
    """Return a number that may be the text of a fraction."""
    if not isinstance(value, str):
        return float(value)
    above, _, below = value.partition("/")
    return float(above) / float(below or 1)


def _finite(error: float) -> float | None:
    return float(error) if 0 < error < math.inf else None


def _ratio(error: float, best: float) -> float | None:
    return _finite(error / best) if best > 0 else None


HOST = "127.0.0.1"
_LONGEST = 2000
"""Characters of an address; requests of the page have a few hundred."""
_SECONDS = 3.0
"""After so many an answer is sent without what it lacks."""
_PATIENCE = 20.0
"""Seconds that a request waits for others, or a connection for its next bytes."""

_STATIC = {
    "/": ("planner.html", "text/html; charset=utf-8"),
    "/planner.css": ("planner.css", "text/css; charset=utf-8"),
    "/planner.js": ("planner.js", "text/javascript; charset=utf-8"),
    "/chart.js": ("chart.js", "text/javascript; charset=utf-8"),
    "/favicon.ico": ("planner.svg", "image/svg+xml"),
}
_Ask: TypeAlias = Callable[[Mapping[str, str], Callable[[], bool]], dict[str, Any]]
_ANSWERS: Mapping[str, _Ask] = {
    "/api/form": lambda _request, _late: form_of_all(),
    "/api/plan": answer,
    "/api/break-even": break_even,
}
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


@final
class PlannerServer(ThreadingHTTPServer):
    """Serves the planner on a port of this computer; 0 takes a free one."""

    daemon_threads = True

    def __init__(self, port: int = 0) -> None:
        super().__init__((HOST, port), _Handler)
        self.one_at_a_time = threading.Lock()

    @property
    def address(self) -> str:
        """Where to look."""
        return f"http://{HOST}:{self.server_port}/"


@final
class _Handler(BaseHTTPRequestHandler):
    """Answers GET requests for the page, its files and its numbers."""

    server: PlannerServer
    server_version, sys_version = "zerodelta", ""
    timeout = _PATIENCE

    def do_GET(self) -> None:
        """Answer one request."""
        parts = urlsplit(self.path)
        names = {f"{host}:{self.server.server_port}" for host in (HOST, "localhost")}
        if self.headers.get("Host") not in names:  # another name that leads here: not our page
            self._send(403, "text/plain; charset=utf-8", b"not served under this name")
        elif self.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin"):
            self._send(403, "text/plain; charset=utf-8", b"not served to other pages")
        elif len(self.path) > _LONGEST:
            self._send(414, "text/plain; charset=utf-8", b"too long")
        elif parts.path in _STATIC:
            name, kind = _STATIC[parts.path]
            self._send(200, kind, (files("zerodelta.ui") / "static" / name).read_bytes())
        elif parts.path in _ANSWERS:
            self._answer(_ANSWERS[parts.path], dict(parse_qsl(parts.query)))
        else:
            self._send(404, "text/plain; charset=utf-8", b"there is no such page")

    def _answer(self, ask: _Ask, request: Mapping[str, str]) -> None:
        status, found = 503, {"refused": "the planner is busy with other requests."}
        if self.server.one_at_a_time.acquire(timeout=_PATIENCE):
            until = time.monotonic() + _SECONDS
            try:
                status, found = 200, ask(request, lambda: time.monotonic() > until)
            except (ZeroDeltaError, ValueError, ArithmeticError) as error:
                status, found = 200, {"refused": str(error)}  # half typed is no failure of the page
            finally:
                self.server.one_at_a_time.release()
        body = json.dumps(found, ensure_ascii=False).encode("utf-8")
        self._send(status, "application/json; charset=utf-8", body)

    def _send(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, header in _HEADERS.items():
            self.send_header(name, header)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Log nothing."""


def serve(port: int, started: Callable[[str], None]) -> None:
    """Serve the planner until interrupted; `started` is told its address."""
    with PlannerServer(port) as server:
        started(server.address)
        try:
            server.serve_forever(poll_interval=0.2)
        except KeyboardInterrupt:
            return
