"""Serve the planner page on the loopback address, and compute its answers.

It serves static files and answers about public numbers; it reads no data, writes nothing, and no
privacy claim depends on it. Pages of other origins can neither send requests, nor read answers, nor
embed the page. Answers are computed one at a time, for at most a few seconds each. Each task
describes its own form: `zerodelta.tasks.task.Planner`.
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

# -- The numbers of the form: names, limits and initial values ------------------------------------
# The limits keep forecasts fast enough for a slider; the library itself accepts larger numbers.


@value
class Field:
    """One number of the form."""

    label: str
    minimum: float
    maximum: float
    start: str
    integer: bool = True
    hint: str = ""
    as_arguments: Callable[[Any], Mapping[str, Any]] | None = None
    """Converts the number to arguments of `advise`, if it is not one by its own name."""


FIELDS: Mapping[str, Field] = {
    "epsilon": Field(
        label="ε, the privacy parameter", minimum=0.001, maximum=100, start="1", integer=False
    ),
    "n": Field(label="n, the number of rows", minimum=1, maximum=10**9, start="10000"),
    "dimension": Field(label="columns", minimum=1, maximum=1000, start="5"),
    "width": Field(
        label="width of the bounds",
        minimum=0.001,
        maximum=10**12,
        start="100",
        integer=False,
        hint="values lie between 0 and this",
        as_arguments=lambda width: {"bounds": (0, width)},
    ),
    "groups": Field(
        label="groups",
        minimum=1,
        maximum=2000,
        start="12",
        as_arguments=lambda groups: {"by": groups},
    ),
    "options": Field(label="options to choose from", minimum=2, maximum=500, start="10"),
    "universe": Field(label="items that can occur", minimum=2, maximum=10**6, start="100"),
    "k": Field(label="keys to publish", minimum=1, maximum=1000, start="10"),
    "letters": Field(
        label="letters of a key",
        minimum=1,
        maximum=40,
        start="10",
        as_arguments=lambda letters: {"universe": text(letters, alphabet=string.ascii_lowercase)},
    ),
    "levels": Field(
        label="quantiles",
        minimum=1,
        maximum=50,
        start="3",
        hint="evenly spaced levels",
        as_arguments=lambda count: {"q": [f"{place}/{count + 1}" for place in range(1, count + 1)]},
    ),
    "values": Field(
        label="values of the curve",
        minimum=2,
        maximum=500,
        start="10",
        as_arguments=lambda values: {"at": values},
    ),
    "classes": Field(label="classes", minimum=2, maximum=100, start="3"),
    "thresholds": Field(label="thresholds of all columns", minimum=1, maximum=80, start="4"),
    "clusters": Field(label="clusters", minimum=1, maximum=100, start="5"),
    "size": Field(label="features to choose", minimum=1, maximum=50, start="3"),
    "rounds": Field(
        label="internal queries",
        minimum=1,
        maximum=10**6,
        start="1000",
        as_arguments=lambda rounds: {"questions": rounds},
    ),
    "outcomes": Field(
        label="size of the result",
        minimum=2,
        maximum=10**15,
        start="16",
        hint="number of outcomes, one of which is published",
        as_arguments=lambda outcomes: {"publish": outcomes},
    ),
}
"""The numbers of the form by their names in a request."""


def as_value(name: str, text: str) -> Any:
    """Return the number in a text: an integer, or the text of an exact decimal or fraction.

    >>> as_value("n", "2000"), as_value("epsilon", "1/4")
    (2000, '1/4')
    """
    field, digits = FIELDS[name], text.strip().replace("_", "").replace(" ", "")
    expected = f"{'a whole number' if field.integer else 'a number'} from {field.minimum:,.12g} to "
    expected += f"{field.maximum:,.12g}"
    try:
        require(len(digits) <= 40, name, expected=expected, remedy="pass fewer digits")
        number = as_positive(digits, name)
    except ParameterError:
        raise ParameterError(
            name, text[:40], expected=expected, remedy="correct this field"
        ) from None
    minimum = Fraction(str(field.minimum))  # exactly 0.001, not the float nearest to it
    fits = minimum <= number <= field.maximum and not (field.integer and number.denominator > 1)
    require(fits, name, text[:40], expected, "correct this field")
    return int(number) if field.integer else digits


# -- The tasks ------------------------------------------------------------------------------------


def planners() -> dict[str, Planner]:
    """Return the forms of all tasks that have one."""
    forms = ((name, task.planner) for name, task in TASKS.items())
    return {name: planner for name, planner in forms if planner is not None}


def advise_arguments(planner: Planner, numbers: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of `advise` for the numbers of the form."""
    arguments: dict[str, Any] = dict(planner.fixed)
    for name, number in planner.asks(numbers).items():
        as_arguments = FIELDS[name].as_arguments if name in FIELDS else None
        arguments |= {name: number} if as_arguments is None else as_arguments(number)
    return arguments


_OUT = "--epsilon {epsilon} --schema people.toml --out out"
_CODE = "# no command: this job needs a function of yours, see the Python code"


def snippets(task: Task, numbers: Mapping[str, Any], best: str) -> dict[str, str]:
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
    for name, number in {**numbers, **_lists(numbers)}.items():
        python, shell = (text.replace("{" + name + "}", str(number)) for text in (python, shell))
    return {"python": python, "shell": shell}


def _command(task: Task, estimator: str) -> str:
    """Return the name of a task's command, or of the estimator that is its best method."""
    for command, name in COMMANDS.items():
        described = TASKS[name]
        if described is task or (task.command is None and described.estimator == estimator):
            return command
    return ""


def _lists(numbers: Mapping[str, Any]) -> dict[str, str]:
    """Return the columns, levels, cuts and values of a snippet, as texts for the command line."""
    columns, levels, values = (numbers.get(name, 1) for name in ("dimension", "levels", "values"))
    cuts = numbers.get("thresholds", 1)
    return {
        "names": "x0" if columns == 1 else f"x{{0..{columns - 1}}}",  # the shell expands it
        "parts": ",".join(f"{i / (levels + 1):.4g}" for i in range(1, levels + 1)),
        "cuts": ",".join(f"{100 * i / (cuts + 1):.4g}" for i in range(1, cuts + 1)),
        "edges": ",".join(f"{100 * i / values:.4g}" for i in range(values)),
    }


# -- Answers: forecasts, curves, the ε and n for a wished accuracy, break-even, snippets ----------
# All of them are functions of the public numbers in a request; nothing here reads rows.

_T = TypeVar("_T")

_POINTS = 13
_REACH = 100.0
_AXES = {"n": "number of rows n", "epsilon": "ε", "rounds": "internal queries"}
_SIZES = tuple(10**power for power in range(1, 16))


class _LateError(Exception):
    """A search needs another forecast, but the time for the answer is over."""


def _never() -> bool:
    return False


def _unless(late: Callable[[], bool], forecast: Callable[[Any], _T]) -> Callable[[Any], _T]:
    """Return the forecast, which raises `_LateError` once it is late."""

    def timely(numbers: Any) -> _T:
        if late():
            raise _LateError
        return forecast(numbers)

    return timely


def form_of_all() -> dict[str, Any]:
    """Return the tasks and their numbers, with labels, limits and hints."""
    fields = {
        name: {
            "label": field.label,
            "minimum": field.minimum,
            "maximum": field.maximum,
            "start": field.start,
            "integer": field.integer,
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
    """Return the answer for one task at the numbers of a request; leave out parts once it is late.

    >>> plan = answer({"task": "mean", "n": "10000", "dimension": "5", "width": "100"})
    >>> plan["methods"][0]["name"], plan["complete"]["name"], plan["axes"]
    ('partition', 'k-norm-max', ['n', 'epsilon'])
    """
    task, planner = _known_task(request.get("task", ""))
    numbers = _numbers(request, planner.fields)
    advice = advise(task, **advise_arguments(planner, numbers))
    axes = [name for name in _AXES if name in numbers]
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
        "curves": {name: _curve(planner, numbers, name, advice, late) for name in axes},
        "late": late(),
        "wish": wish,
        **snippets(TASKS[task], numbers, advice.best.name),
    }


def break_even(request: Mapping[str, str], late: Callable[[], bool] = _never) -> dict[str, Any]:
    """Return the number of internal queries from which purification pays, and the gain.

    >>> pays = break_even({"epsilon": "1", "rounds": "1000", "outcomes": "16"})
    >>> pays["from"], round(pays["gain"], 1)
    (6, 14.1)
    """
    numbers = _numbers(request, ("rounds", "outcomes"))
    epsilon, size = numbers["epsilon"], numbers["outcomes"]
    noise = _study_noise(epsilon, size, numbers["rounds"])
    steps = _steps("rounds", numbers["rounds"])
    pairs = [_study_noise(epsilon, size, value) for value in steps]
    return {
        "from": _pays_from(epsilon, size),
        "gain": noise["pure composition"] / noise["study"],
        "asked": numbers["rounds"],
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


def _known_task(task: str) -> tuple[str, Planner]:
    """Return a task's name and planner; refuse an unknown name with a suggestion."""
    known = planners()
    if task not in known:
        expected = f"one of {', '.join(sorted(known))}"
        remedy = did_you_mean(task, known, "choose one")
        raise ParameterError("task", task[:40], expected=expected, remedy=remedy)
    return task, known[task]


def _numbers(request: Mapping[str, str], names: Sequence[str]) -> dict[str, Any]:
    """Return ε and other numbers of a request, or their initial values."""
    return {
        name: as_value(name, request.get(name, FIELDS[name].start)) for name in ("epsilon", *names)
    }


def _steps(name: str, center: Any) -> list[Any]:
    """Return numbers around a center, evenly spaced in logarithms."""
    field, middle = FIELDS[name], float(_number(center))
    exponents = [2 * i / (_POINTS - 1) - 1 for i in range(_POINTS)]
    values = [min(max(middle * _REACH**e, field.minimum), field.maximum) for e in exponents]
    if field.integer:
        return sorted({max(1, round(value)) for value in values})
    return sorted({float(f"{value:.4g}") for value in values})


def _curve(
    planner: Planner,
    numbers: Mapping[str, Any],
    name: str,
    advice: Advice,
    late: Callable[[], bool],
) -> dict[str, Any]:
    """Return the errors of all methods as functions of one of the numbers."""
    values = _steps(name, numbers[name])
    lines: dict[str, list[float | None]] = {method.name: [] for method in advice}
    for number in values:
        errors: dict[str, float] = {}
        if not late():
            # no method may apply to few rows or a small ε
            with suppress(ZeroDeltaError):
                arguments = advise_arguments(planner, {**numbers, name: number})
                errors = {m.name: m.error for m in advise(advice.task, **arguments)}
        for label, line in lines.items():
            line.append(_finite(errors.get(label, math.inf)))
    return {
        "title": _AXES[name],
        "x": values,
        "asked": float(_number(numbers[name])),
        "lines": lines,
    }


def _useful(advice: Advice) -> int | None:
    """Return the number of rows from which the answer is useful; None if there is none, or late."""
    try:
        return advice.useful_from
    except _LateError:
        return None


def _wish(advice: Advice, text: str) -> dict[str, Any] | None:
    """Return the ε, and the number of rows, that a wished error needs.

    None without a wish.
    """
    if not text:
        return None

    def solution(sought: str) -> dict[str, Any]:
        """Return the value of one number at which the forecast error is the wished one."""

        def error(value: Any) -> float:
            return advice.forecast({**advice.numbers, sought: value})[0].error

        try:
            wished = float(as_positive(text, "error"))
            return {"value": solved(error, sought, wished, advice.unit)}
        except ParameterError as refused:
            return {"refused": str(refused)}
        except _LateError:
            return {"refused": "this takes too long here; call zd.advise."}

    return {name: solution(name) for name in ("epsilon", *(["n"] if "n" in advice.numbers else []))}


def _study_noise(epsilon: str, size: int, rounds: int) -> dict[str, float]:
    advice = advise("study", questions=rounds, publish=size, epsilon=epsilon)
    return {method.name: method.error for method in advice}


def _pays_from(epsilon: str, size: int) -> int:
    """Return the smallest number of internal queries at which a study has less noise.

    Its noise grows with the square root of that number, that of pure composition linearly.
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
    """Return a number, or the text of a number or fraction, as a float."""
    if not isinstance(value, str):
        return float(value)
    numerator, _, denominator = value.partition("/")
    return float(numerator) / float(denominator or 1)


def _finite(error: float) -> float | None:
    return float(error) if 0 < error < math.inf else None


def _ratio(error: float, best: float) -> float | None:
    return _finite(error / best) if best > 0 else None


HOST = "127.0.0.1"
_MAXIMUM_ADDRESS = 2000
"""Maximum length of a request's address; those of the page have a few hundred characters."""
_SECONDS = 3.0
"""Seconds after which an answer is sent without its missing parts."""
_PATIENCE = 20.0
"""Seconds that a request waits for others, or a connection for its next bytes."""

_STATIC = {
    "/": ("planner.html", "text/html; charset=utf-8"),
    "/planner.css": ("planner.css", "text/css; charset=utf-8"),
    "/planner.js": ("planner.js", "text/javascript; charset=utf-8"),
    "/chart.js": ("chart.js", "text/javascript; charset=utf-8"),
    "/favicon.ico": ("planner.svg", "image/svg+xml"),
}
_Answer: TypeAlias = Callable[[Mapping[str, str], Callable[[], bool]], dict[str, Any]]
_ANSWERS: Mapping[str, _Answer] = {
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
    """Serves the planner on a port of this computer; 0 means any free port."""

    daemon_threads = True

    def __init__(self, port: int = 0) -> None:
        super().__init__((HOST, port), _Handler)
        self.one_at_a_time = threading.Lock()

    @property
    def address(self) -> str:
        """The address of the page."""
        return f"http://{HOST}:{self.server_port}/"


@final
class _Handler(BaseHTTPRequestHandler):
    """Answers GET requests for the page, its files and its numbers."""

    server: PlannerServer
    server_version, sys_version = "zerodelta", ""
    timeout = _PATIENCE

    def do_GET(self) -> None:
        """Send a static file or a computed answer; refuse requests from other hosts and pages."""
        parts = urlsplit(self.path)
        names = {f"{host}:{self.server.server_port}" for host in (HOST, "localhost")}
        if self.headers.get("Host") not in names:  # DNS rebinding: another name for this address
            self._send(403, "text/plain; charset=utf-8", b"not served under this name")
        elif self.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin"):
            self._send(403, "text/plain; charset=utf-8", b"not served to other pages")
        elif len(self.path) > _MAXIMUM_ADDRESS:
            self._send(414, "text/plain; charset=utf-8", b"too long")
        elif parts.path in _STATIC:
            name, kind = _STATIC[parts.path]
            self._send(200, kind, (files("zerodelta.ui") / "static" / name).read_bytes())
        elif parts.path in _ANSWERS:
            self._answer(_ANSWERS[parts.path], dict(parse_qsl(parts.query)))
        else:
            self._send(404, "text/plain; charset=utf-8", b"there is no such page")

    def _answer(self, compute: _Answer, request: Mapping[str, str]) -> None:
        """Compute an answer, one request at a time within a time limit, and send it as JSON."""
        status, content = 503, {"refused": "the planner is busy with other requests."}
        if self.server.one_at_a_time.acquire(timeout=_PATIENCE):
            deadline = time.monotonic() + _SECONDS
            try:
                status, content = 200, compute(request, lambda: time.monotonic() > deadline)
            except (ZeroDeltaError, ValueError, ArithmeticError) as error:
                status, content = 200, {"refused": str(error)}  # numbers may be half typed
            finally:
                self.server.one_at_a_time.release()
        body = json.dumps(content, ensure_ascii=False).encode("utf-8")
        self._send(status, "application/json; charset=utf-8", body)

    def _send(self, status: int, kind: str, body: bytes) -> None:
        """Send a response with the security headers."""
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
    """Serve the planner until it is interrupted; `started` is called with its address."""
    with PlannerServer(port) as server:
        started(server.address)
        try:
            server.serve_forever(poll_interval=0.2)
        except KeyboardInterrupt:
            return
