"""Every verb and estimator is one described task, and what describes it is true of it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from golden.golden import CASES
from public import CALLABLE
from zerodelta import sklearn
from zerodelta.cli.commands import OPTIONS
from zerodelta.report.contents import error_in_words
from zerodelta.tasks import registry
from zerodelta.tasks.registry import COMMANDS, INDEX, TASKS, task_recorded_as
from zerodelta.tasks.task import Task

PUBLISHES_NOTHING = {"BoundedScaler"}


def called(task: Task) -> Callable[..., Any]:
    """Return what a command calls."""
    found = getattr(sklearn, task.estimator) if task.estimator else task.verb
    assert callable(found)
    return found


def test_every_verb_and_estimator_is_described_and_has_a_golden_release() -> None:
    """A golden release is replayed, frozen and asked on neighbors; see tests/replay."""
    verbs = {
        name
        for name, called in CALLABLE.items()
        if inspect.isfunction(called) or name == "Study"
        if {"epsilon", "ledger"} <= inspect.signature(called).parameters.keys()
    }
    described = {name for task in TASKS.values() for name in task.names}
    public = verbs | {*sklearn.__all__} - PUBLISHES_NOTHING
    assert described == public, (
        f"{sorted(described ^ public)}: describe a new verb in TASKS at the end of its file, and "
        "list it in INDEX of src/zerodelta/tasks/registry.py; an estimator with `fits=` in INDEX, "
        "or, with options of its own, in TASKS of src/zerodelta/tasks/estimators.py, too"
    )
    cases = {case.partition(", ")[0].removeprefix("sklearn.") for case in CASES}
    assert described <= cases, (
        f"{sorted(described - cases)}: add a golden case of a verb to tests/golden/verbs.py, or an "
        "instance of an estimator to tests/estimators/instances.py, and run tests/golden/write.py"
    )


def test_the_index_lists_what_the_files_describe() -> None:
    folder = Path(str(registry.__file__)).parent
    for path in folder.glob("*.py"):
        listed = {name for name, entry in INDEX.items() if entry.file == path.stem}
        has_tasks = "\nTASKS: dict[str, Task] = {" in path.read_text(encoding="utf-8")
        assert bool(listed) is has_tasks, path.name
        if listed:
            module = __import__(f"zerodelta.tasks.{path.stem}", fromlist=["TASKS"])
            assert set(module.TASKS) == listed
    assert set(TASKS) == set(INDEX)
    assert len(TASKS) == len(INDEX)


@pytest.mark.parametrize("name", TASKS)
def test_a_task_has_a_command_or_says_why_not(name: str) -> None:
    task = TASKS[name]
    assert (name in COMMANDS.values()) is (task.command is not None)
    assert (task.command is None) is bool(task.no_command)
    assert (task.verb is None) is (task.page == "") or name in ("study", "purify")
    assert (task.planner is None) is (task.forecast is None)


@pytest.mark.parametrize("name", COMMANDS.values())
def test_a_command_takes_what_its_task_does(name: str) -> None:
    command = TASKS[name].command
    assert command is not None
    parameters = inspect.signature(called(TASKS[name])).parameters
    fit = {"no_intercept": "fit_intercept", **command.renamed}
    assert {fit.get(option, option) for option in command.options} <= parameters.keys()
    assert set(command.needs) | set(command.renamed) <= set(command.options)
    needed = {fit.get(option, option) for option in command.needs}
    for parameter in parameters.values():
        if parameter.default is parameter.empty and parameter.kind is parameter.KEYWORD_ONLY:
            assert parameter.name in {*needed, command.target, "epsilon"}, parameter.name


def test_every_option_is_one_of_some_task() -> None:
    commands = [task.command for task in TASKS.values() if task.command is not None]
    assert {option for command in commands for option in command.options} == set(OPTIONS)


def test_the_error_of_a_release_is_told_as_its_task_says() -> None:
    for name in ("median", "answer_queries", "LogisticRegression"):
        task = task_recorded_as(name)
        assert task is not None
        assert name in task.names
        assert error_in_words(task, 0.25).endswith(task.error)
    assert "documentation" in error_in_words(task_recorded_as("somebody's"), 1.0)
