"""The planner's answers are those of `advise`, its snippets run, and its server tells no more."""

from __future__ import annotations

import http.client
import json
import os
import random
import shlex
import socket
import string
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from typer.testing import CliRunner

import zerodelta as zd
from zerodelta.cli import app
from zerodelta.errors import ParameterError
from zerodelta.spine.run import preview
from zerodelta.tasks.registry import INDEX, TASKS
from zerodelta.ui import server as planned
from zerodelta.ui import server as ui_server
from zerodelta.ui.server import (
    FIELDS,
    HOST,
    PlannerServer,
    advise_arguments,
    answer,
    as_value,
    break_even,
    form_of_all,
    planners,
)

PLANNERS = planners()


def test_every_task_of_the_advisor_has_a_form() -> None:
    assert set(PLANNERS) == {advice.task for advice in zd.advise()}
    for form in form_of_all()["tasks"].values():
        assert set(form["fields"]) <= set(FIELDS)


@pytest.mark.parametrize("task", PLANNERS)
def test_every_task_is_forecast_as_by_advise_and_has_curves(task: str) -> None:
    found = answer({"task": task})
    planner = PLANNERS[task]
    given = {name: as_value(name, FIELDS[name].start) for name in ("epsilon", *planner.fields)}
    advice = zd.advise(task, **advise_arguments(planner, given))
    assert [each["name"] for each in found["methods"]] == [each.name for each in advice]
    assert found["methods"][0]["error"] == advice.best.error
    assert found["reason"] == advice.reason
    for name, curve in found["curves"].items():
        place = curve["x"].index(curve["asked"])
        assert curve["lines"][advice.best.name][place] == advice.best.error, name
        assert all(len(line) == len(curve["x"]) for line in curve["lines"].values())


def test_more_privacy_and_fewer_rows_cost_accuracy() -> None:
    curves = answer({"task": "mean"})["curves"]
    for name in ("n", "epsilon"):
        line = curves[name]["lines"]["partition"]
        assert line == sorted(line, reverse=True)


def test_a_wish_is_what_advise_solves_for() -> None:
    wish = answer({"task": "mean", "wish": "0.01"})["wish"]
    asked: dict[str, Any] = {"dimension": 5, "bounds": (0, "100"), "missing": "skip"}
    asked["error"] = "0.01"
    assert wish["epsilon"]["value"] == zd.advise("mean", n=10_000, **asked).numbers["epsilon"]
    assert wish["n"]["value"] == zd.advise("mean", epsilon=1, **asked).n
    assert "refused" in answer({"task": "mean", "wish": "-1"})["wish"]["epsilon"]


def test_an_answer_that_is_late_is_what_was_computed_until_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = answer({"task": "mean", "wish": "0.01"})
    asks: list[str] = []

    def counted(task: str, **numbers: Any) -> Any:
        asks.append(task)
        return zd.advise(task, **numbers)

    monkeypatch.setattr(planned, "advise", counted)
    found = answer({"task": "mean", "wish": "0.01"}, lambda: True)
    assert asks == ["mean"]
    assert (found["late"], whole["late"]) == (True, False)
    assert found["methods"] == whole["methods"]
    assert "too long" in found["wish"]["epsilon"]["refused"]
    for name, curve in found["curves"].items():
        assert curve["x"] == whole["curves"][name]["x"]
        assert {value for line in curve["lines"].values() for value in line} == {None}
    pays = break_even({}, lambda: True)
    assert pays["from"] == break_even({})["from"]
    assert set(pays["sizes"]["lines"]["break-even"]) == {None}


@pytest.mark.parametrize("task", PLANNERS)
def test_no_forecast_begins_once_it_is_late(task: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is being searched: the accuracy of a wish, the useful number of rows, a curve."""
    known, begun = TASKS[task].forecast, [0]
    assert known is not None
    methods, blind = known.methods, known.blind

    def counted(numbers: Any) -> Any:
        begun[0] += 1
        return methods(numbers)

    def guessed(numbers: Any) -> float:
        assert blind is not None
        begun[0] += 1
        return blind(numbers)

    slower = replace(known, methods=counted, blind=None if blind is None else guessed)
    described = import_module(f"zerodelta.tasks.{INDEX[task].file}")
    monkeypatch.setitem(described.TASKS, task, replace(TASKS[task], forecast=slower))
    advice = answer({"task": task})
    wish = f"{advice['methods'][0]['error'] / 3:.3g}"
    begun[0] = 0
    whole, needed = answer({"task": task, "wish": wish}), begun[0]
    assert not whole["late"]
    for most in (4, needed // 4, needed // 2):
        begun[0] = 0

        def late(most: int = most) -> bool:
            return begun[0] >= most

        cut = answer({"task": task, "wish": wish}, late)
        assert cut["late"]
        assert begun[0] <= max(most, 2) + 1  # a share of a blind answer's error is two forecasts
        assert cut["methods"] == whole["methods"]


def test_the_least_number_of_a_field_is_allowed() -> None:
    for name, field in FIELDS.items():
        assert float(as_value(name, f"{field.minimum}")) == field.minimum


def test_break_even_is_where_the_two_curves_cross() -> None:
    found = break_even({"epsilon": "1", "rounds": "6", "outcomes": "16"})
    assert found["from"] == 6  # docs/study.md, printed by bench/study_break_even.py
    assert found["gain"] > 1
    assert break_even({"epsilon": "1", "rounds": "5", "outcomes": "16"})["gain"] <= 1
    sizes = found["sizes"]["lines"]["break-even"]
    assert sizes == sorted(sizes)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("n", "0"),
        ("n", "1.5"),
        ("n", "x"),
        ("n", ""),
        ("n", "1" * 50),
        ("epsilon", "-1"),
        ("epsilon", "nan"),
    ],
)
def test_a_number_that_is_none_is_refused_by_name(name: str, text: str) -> None:
    with pytest.raises(ParameterError, match=f"^{name}"):
        answer({"task": "mean", name: text})
    with pytest.raises(ParameterError, match="task"):
        answer({"task": text})


ROWS = 2000
NUMBERS = [f"x{i}" for i in range(5)]
CELLS: dict[str, Callable[[], Any]] = {
    **{name: lambda: random.randrange(2) for name in NUMBERS},
    **{name: lambda: random.randrange(100) for name in ("income", "x")},
    "y": lambda: random.randrange(2),
    "city": lambda: f"city {random.randrange(12)}",
    "item": lambda: f"item {random.randrange(100)}",
    "word": lambda: random.choice(["salt", "sugar"]),
}


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a file with all columns of all snippets."""
    folder = tmp_path_factory.mktemp("people")
    lines = [
        ",".join(CELLS),
        *(",".join(str(make()) for make in CELLS.values()) for _ in range(ROWS)),
    ]
    (folder / "people.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


SCHEMA = {
    **dict.fromkeys(NUMBERS, "boolean = true"),
    **dict.fromkeys(("income", "x"), "number = [0, 100]"),
    "city": f"category = {[f'city {i}' for i in range(12)]}",
    "item": f"category = {[f'item {i}' for i in range(100)]}",
    "word": f'text = 10, alphabet = "{string.ascii_lowercase}"',
}


@pytest.mark.parametrize("task", [name for name in PLANNERS if PLANNERS[name].shell])
def test_every_shell_snippet_is_a_command_that_plans_the_job(task: str, people: Path) -> None:
    snippet = answer({"task": task, "epsilon": "1"})["shell"]
    binary = task in ("queries", "synthesize")
    kinds = {
        name: kind if binary or name not in NUMBERS else "number = [0, 100]"
        for name, kind in SCHEMA.items()
    }
    kinds["y"] = "number = [0, 100]" if task in ("linear", "select_features") else "boolean = true"
    if task == "trimmed_mean":
        kinds["income"] += ', missing = "none"'
    lines = [f"{name} = {{{kind}}}" for name, kind in kinds.items()]
    schema = people / f"{task}.toml"
    schema.write_text("[columns]\n" + "\n".join(lines) + "\n", encoding="utf-8")
    words = shlex.split(snippet.replace("people.csv", str(people / "people.csv")))
    spelled = [f"x{i}" for word in words for i in range(5) if word == "x{0..4}"]
    place = words.index("x{0..4}") if spelled else 1
    command = [*words[1:place], *spelled, *words[place + bool(spelled) :]]
    command[command.index("people.toml")] = str(schema)
    done = CliRunner().invoke(app, [*command[: command.index("--out")], "--dry-run"])
    assert done.exit_code == 0, done.output


def test_every_python_snippet_runs_and_saves_what_verifies(people: Path) -> None:
    """All in one process, as a reader would paste them, each in its own name space."""
    snippets = {task: answer({"task": task, "epsilon": "1"})["python"] for task in PLANNERS}
    program = (
        "import json, os, sys\n"
        "for task, snippet in json.load(sys.stdin).items():\n"
        "    exec(snippet, {})\n"
        "    if 'release = ' in snippet:\n"
        "        os.rename('release.json', task + '.json')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        input=json.dumps(snippets),
        capture_output=True,
        text=True,
        check=False,
        cwd=people,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == 0, done.stderr
    saved = {path.stem for path in people.glob("*.json")}
    assert saved == set(PLANNERS) - {"select_model"}
    for task in saved:
        release = zd.load(people / f"{task}.json")
        certificate = getattr(release, "certificate_", None) or release.certificate
        assert zd.verify(certificate, epsilon=1), task


OTHER_UNITS = {"vote", "study", "select_model", "select_features", "classifier", "correlation"}
"""A release of these states something else than what their methods are compared by."""


@pytest.mark.parametrize("changed", [{}, {"epsilon": "1/3", "width": "7", "classes": "2"}])
@pytest.mark.parametrize("task", sorted(PLANNERS.keys() - OTHER_UNITS))
def test_the_forecast_is_that_of_the_python_snippet(
    task: str, changed: dict[str, str], people: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the same rows, in the same unit, and for cells that may be missing if they may there."""
    monkeypatch.chdir(people)
    found = answer({"task": task, "n": str(ROWS), **changed})
    made = preview(lambda: exec(found["python"], {}))
    stated = [made.error, *(method.error for method in made.methods[:1])]
    near = [pytest.approx(each, rel=1e-9) for each in stated if isinstance(each, float)]
    assert found["methods"][0]["error"] in near


def test_what_no_missing_cell_would_save_is_told() -> None:
    found = answer({"task": "mean"})
    given: dict[str, Any] = {"n": 10_000, "dimension": 5, "bounds": (0, "100"), "epsilon": "1"}
    assert found["complete"]["error"] == zd.advise("mean", **given).best.error
    assert found["complete"]["error"] < found["methods"][0]["error"]
    assert answer({"task": "histogram"})["complete"] is None


@pytest.fixture(scope="module")
def server() -> Iterator[PlannerServer]:
    with PlannerServer() as made:
        running = threading.Thread(target=made.serve_forever, args=(0.05,), daemon=True)
        running.start()
        yield made
        made.shutdown()
        running.join()


def get(server: PlannerServer, path: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection(HOST, server.server_port, timeout=30)
    try:
        connection.request("GET", path, headers=headers)
        answered = connection.getresponse()
        return answered.status, dict(answered.getheaders()), answered.read()
    finally:
        connection.close()


def test_the_server_answers_on_the_loopback_address_only(server: PlannerServer) -> None:
    assert server.server_address[0] == HOST == "127.0.0.1"
    assert get(server, "/", Host="rebound.example")[0] == 403


@pytest.mark.parametrize("path", ["/", "/planner.js", "/api/plan?task=mean"])
@pytest.mark.parametrize("site", ["cross-site", "same-site", "anything"])
def test_pages_of_others_cannot_ask(server: PlannerServer, path: str, site: str) -> None:
    assert get(server, path, **{"Sec-Fetch-Site": site})[0] == 403
    for own in ("same-origin", "none"):
        assert get(server, path, **{"Sec-Fetch-Site": own})[0] == 200


def test_who_sends_nothing_is_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ui_server._Handler, "timeout", 0.05)
    with PlannerServer() as made:
        running = threading.Thread(target=made.serve_forever, args=(0.05,), daemon=True)
        running.start()
        with socket.create_connection((HOST, made.server_port), timeout=30) as silent:
            silent.sendall(b"GET / HTTP/1.1\r\n")
            assert silent.recv(1) == b""  # closed by the server
        made.shutdown()
        running.join()


def test_requests_do_not_wait_for_ever_and_are_cut_short(
    server: PlannerServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert 0 < ui_server._Handler.timeout <= 60
    monkeypatch.setattr(ui_server, "_SECONDS", -1.0)
    assert asked(server, "/api/plan", task="mean")["late"] is True
    monkeypatch.setattr(ui_server, "_PATIENCE", 0.01)
    with server.one_at_a_time:
        status, _, body = get(server, "/api/plan?task=mean")
    assert (status, list(json.loads(body))) == (503, ["refused"])
    assert get(server, "/api/plan?task=mean")[0] == 200


@pytest.mark.parametrize("path", ["/", "/planner.css", "/planner.js", "/chart.js", "/favicon.ico"])
def test_files_come_with_a_policy_that_lets_nothing_else_in(
    server: PlannerServer, path: str
) -> None:
    status, headers, body = get(server, path)
    assert status == 200
    assert body
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert b"http://" not in body.replace(b"http://www.w3.org/2000/svg", b"")
    assert b"https://" not in body


@pytest.mark.parametrize("path", ["/../server.py", "/static/planner.js", "/api", "/%2e%2e/x"])
def test_there_is_nothing_else(server: PlannerServer, path: str) -> None:
    assert get(server, path)[0] == 404


def asked(server: PlannerServer, path: str, **request: Any) -> Any:
    status, _, body = get(server, f"{path}?{urlencode(request)}")
    assert status == 200
    return json.loads(body)


def test_answers_are_plain_json_and_refusals_say_why(server: PlannerServer) -> None:
    assert asked(server, "/api/form") == json.loads(json.dumps(form_of_all()))
    assert asked(server, "/api/plan", task="median")["methods"][0]["name"] == "permute-and-flip"
    assert asked(server, "/api/break-even", rounds=1000)["from"] == 6
    assert asked(server, "/api/plan", task="mean", n="x")["refused"].startswith("n = 'x': expected")
    assert asked(server, "/api/plan", task="<b>")["refused"].startswith("task = ")
    assert get(server, "/api/plan?task=" + "x" * 3000)[0] == 414


def test_the_command_says_where_and_ends_with_an_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(PlannerServer, "serve_forever", interrupted)
    done = CliRunner().invoke(app, ["ui", "--no-browser"])
    assert done.exit_code == 0
    assert "http://127.0.0.1:" in done.output


def test_a_port_that_is_taken_is_refused_in_one_line(server: PlannerServer) -> None:
    done = CliRunner().invoke(app, ["ui", "--no-browser", "--port", str(server.server_port)])
    assert done.exit_code == 2
    assert "--port 0" in done.output
    assert "Traceback" not in done.output
