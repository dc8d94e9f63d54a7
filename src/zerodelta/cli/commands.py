"""The options of all commands, in one table, and a command for each task.

Texts only, so that `zerodelta --help` imports nothing else: what a command takes is described in
the file of its task, which is loaded when the command is called.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from operator import getitem
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias, cast, final

import typer
from typer.core import TyperCommand

from zerodelta.tasks.registry import COMMANDS, INDEX, TASKS
from zerodelta.value import value

if TYPE_CHECKING:
    from zerodelta.tasks.task import Command

Kind: TypeAlias = Literal[
    "text", "path", "number", "count", "numbers", "groups", "lists", "weights", "flag"
]


@value
class Option:
    """An argument of a release: how it is written, in commands and jobs, and its help."""

    kind: Kind
    help: str


SHARED: Final[Mapping[str, Option]] = {
    "epsilon": Option(kind="number", help="The privacy loss, such as 1/4."),
    "schema": Option(kind="path", help="The declared columns; `zerodelta init`."),
    "where": Option(kind="text", help='Which rows, such as "age >= 18".'),
    "expected_rows": Option(kind="count", help="About how many, where that is private."),
    "ledger": Option(kind="path", help="Who pays: a file or a URL."),
    "budget": Option(kind="number", help="ε in all, when the ledger is opened."),
    "analyst": Option(kind="text", help="Whose account of it pays."),
    "records": Option(kind="path", help="Saved releases that the ledger must know."),
    "again": Option(kind="flag", help="Pay for it once more."),
    "out": Option(kind="path", help="The folder to write to."),
    "parquet": Option(kind="flag", help="Write value.parquet, too."),
    "sign": Option(kind="path", help="A private key to sign with."),
}
"""What every release takes; a job checks that a TOML file has them as these kinds."""

OPTIONS: Final[Mapping[str, Option]] = {
    "by": Option(kind="groups", help="Groups: a column, several, or age:0,18,65 to cut numbers."),
    "of": Option(kind="lists", help="Statistics, as income=mean,median; may be repeated."),
    "q": Option(kind="number", help="Which quantile, such as 0.9."),
    "quantiles": Option(kind="numbers", help="Which quantiles, such as 0.1,0.5,0.9."),
    "at": Option(kind="numbers", help="At which numbers."),
    "bins": Option(kind="numbers", help="Edges that cut numbers into bins, such as 0,18,65."),
    "k": Option(kind="count", help="How many."),
    "trim": Option(kind="number", help="Which fraction to leave out at each end."),
    "clusters": Option(kind="count", help="How many clusters."),
    "components": Option(kind="count", help="How many components."),
    "size": Option(kind="count", help="How many to choose, or how many rows to make."),
    "thresholds": Option(kind="lists", help="Where to split, as age=18,40; may be repeated."),
    "workload": Option(kind="count", help="All tables of so many columns."),
    "false_keys": Option(kind="number", help="How many invented keys are allowed on average."),
    "goal": Option(kind="text", help="What ε is shared for."),
    "weights": Option(kind="weights", help="What matters more: income_mean=3; may be repeated."),
    "method": Option(kind="text", help="Which method; by default the best forecast."),
    "diagnostics": Option(kind="number", help="A share of ε to tell how rows were read, 1/100."),
    "hidden_units": Option(kind="count", help="Hidden units."),
    "radius": Option(kind="number", help="How far rows reach to a corner of their bounds; 1: all."),
    "rounds": Option(kind="count", help="Training rounds."),
    "trees": Option(kind="count", help="How many trees."),
    "depth": Option(kind="count", help="How deep they are."),
    "no_intercept": Option(kind="flag", help="Without an intercept."),
}
"""What some tasks take, by the names that the command line and jobs use."""

_TYPES: Final[Mapping[Kind, Any]] = {
    **dict.fromkeys(("text", "path", "number", "numbers"), str | None),
    **dict.fromkeys(("groups", "lists", "weights"), list[str] | None),
    "count": int | None,
    "flag": bool,
}
"""As what the command line reads them."""


def add_tasks(app: typer.Typer) -> None:
    """Give the application a command for each task that has one."""
    for command, task in COMMANDS.items():
        app.command(command, cls=_TaskCommand, short_help=INDEX[task].help)(lambda: None)


@final
class _TaskCommand(TyperCommand):
    """The command of a task in the list of all; what it takes is found out when it is called."""

    def make_context(self, info_name: Any, args: Any, parent: Any = None, **extra: Any) -> Any:
        return whole_command(str(self.name)).make_context(info_name, args, parent, **extra)


def whole_command(name: str) -> Any:
    """Return the command of a task with all that it takes."""
    task = COMMANDS[name]
    command = TASKS[task].command
    assert command is not None
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command(name, help=_help(INDEX[task].help, command))(_function(name, command))
    return typer.main.get_command(app)


def _help(line: str, command: Command) -> str:
    example = f"zerodelta {command.example} --epsilon 1/4 --schema people.toml --out out"
    return (
        f"{line}\n\nPublishes {command.publishes}.\n\n\b\nExample:\n  {example}\n"
        f"  {example.replace('--out out', '--dry-run')}"
    )


def _function(name: str, command: Command) -> Callable[..., None]:
    def run(**given: Any) -> None:
        from zerodelta.cli.jobs import Job, parsed
        from zerodelta.cli.shown import run_jobs

        words = {option: given.pop(option) for option in command.options}
        options = {
            option: parsed(option, word)
            for option, word in words.items()
            if word is not False and word not in (None, [])  # 0 is a number
        }
        as_json, dry_run = given.pop("json"), given.pop("dry_run")
        columns = tuple(given.pop("columns", None) or ())
        job = Job(task=name, columns=columns, options=options, **given)
        run_jobs([job], dry_run=dry_run, as_json=as_json, alone=True)

    parameters = _parameters(command)
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    return run


def _parameters(command: Command) -> list[inspect.Parameter]:
    several = "The column." if command.columns == "one" else "The columns."
    arguments = [
        _parameter("data", str, typer.Argument(help="A CSV or Parquet file."), ...),
    ]
    if command.columns != "none":
        arguments.append(
            _parameter("columns", list[str] | None, typer.Argument(help=several), None)
        )
    if command.target is not None:
        arguments.append(
            _parameter("target", str, typer.Option(help="The column to explain."), ...)
        )
    options = {name: OPTIONS[name] for name in command.options} | {
        **SHARED,
        "dry_run": Option(kind="flag", help="Only plan: read and spend nothing."),
        "json": Option(kind="flag", help="Print JSON."),
    }
    for name, option in options.items():
        needed = name == "epsilon"
        default = ... if needed else False if option.kind == "flag" else None
        said_as = typer.Option(f"--{name.replace('_', '-')}", help=option.help)
        arguments.append(_parameter(name, str if needed else _TYPES[option.kind], said_as, default))
    return arguments


def _parameter(name: str, kind: Any, said_as: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        annotation=getitem(cast(Any, Annotated), (kind, said_as)),
        default=inspect.Parameter.empty if default is ... else default,
    )
