"""List the options of all commands, and make a command for each task.

Only texts are here, so that `zerodelta --help` imports nothing else: the arguments of a command
are described in the file of its task, which is imported when the command is called.
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
    """An option of a release: the kind of its value in commands and jobs, and its help text."""

    kind: Kind
    help: str


SHARED: Final[Mapping[str, Option]] = {
    "epsilon": Option(kind="number", help="The privacy loss ε, such as 1/4."),
    "schema": Option(kind="path", help="The declared columns; `zerodelta init` writes a template."),
    "where": Option(kind="text", help='A condition on rows, such as "age >= 18".'),
    "expected_rows": Option(kind="count", help="A guess of the row count, if that is private."),
    "ledger": Option(kind="path", help="The ledger that pays: a file or a URL."),
    "budget": Option(kind="number", help="The total ε, to open a new account in the ledger."),
    "analyst": Option(kind="text", help="The analyst whose account in the ledger pays."),
    "records": Option(kind="path", help="A folder of saved releases; the ledger must know them."),
    "again": Option(kind="flag", help="Pay again for a question that was released before."),
    "out": Option(kind="path", help="The folder for the release and its report."),
    "parquet": Option(kind="flag", help="Also write value.parquet."),
    "sign": Option(kind="path", help="A private key to sign with; see `zerodelta keys`."),
}
"""The options of every release; a job checks their kinds in a TOML file."""

OPTIONS: Final[Mapping[str, Option]] = {
    "by": Option(kind="groups", help="Group by columns; age:0,18,65 cuts numbers into groups."),
    "of": Option(kind="lists", help="Statistics, such as income=mean,median; may be repeated."),
    "q": Option(kind="number", help="The level of the quantile, such as 0.9."),
    "quantiles": Option(kind="numbers", help="The levels of the quantiles, such as 0.1,0.5,0.9."),
    "at": Option(kind="numbers", help="The numbers below which rows are counted, such as 18,65."),
    "bins": Option(kind="numbers", help="Edges that cut numbers into bins, such as 0,18,65."),
    "k": Option(kind="count", help="The number of options or texts."),
    "trim": Option(kind="number", help="The fraction of rows to leave out at each end."),
    "clusters": Option(kind="count", help="The number of clusters."),
    "components": Option(kind="count", help="The number of components."),
    "size": Option(kind="count", help="The number of columns to choose, or of rows to make."),
    "thresholds": Option(kind="lists", help="Split points, such as age=18,40; may be repeated."),
    "workload": Option(kind="count", help="Columns per table: 2 for all tables of two columns."),
    "false_keys": Option(kind="number", help="The expected number of invented keys allowed."),
    "goal": Option(kind="text", help="The rule that divides ε among the statistics."),
    "weights": Option(kind="weights", help="Weights of statistics: income_mean=3; repeatable."),
    "method": Option(kind="text", help="The method; by default the one with the best forecast."),
    "diagnostics": Option(kind="number", help="A share of ε for counts of clipped cells: 1/100."),
    "hidden_units": Option(kind="count", help="The number of hidden units."),
    "radius": Option(kind="number", help="Clip rows to this share of the longest possible row."),
    "rounds": Option(kind="count", help="The number of training rounds."),
    "trees": Option(kind="count", help="The number of trees."),
    "depth": Option(kind="count", help="The depth of the trees."),
    "no_intercept": Option(kind="flag", help="Fit no intercept."),
}
"""The options of some tasks, by their names in commands and jobs."""

_TYPES: Final[Mapping[Kind, Any]] = {
    **dict.fromkeys(("text", "path", "number", "numbers"), str | None),
    **dict.fromkeys(("groups", "lists", "weights"), list[str] | None),
    "count": int | None,
    "flag": bool,
}
"""Type of an option's value on the command line."""

_METAVARS: Final[Mapping[Kind, str]] = {
    "text": "TEXT",
    "path": "PATH",
    "number": "NUMBER",
    "count": "INTEGER",
    "numbers": "NUMBERS",
    "groups": "COLUMNS",
    "lists": "COLUMN=LIST",
    "weights": "NAME=NUMBER",
}
"""Placeholder of an option's value in `--help`."""


def add_tasks(app: typer.Typer) -> None:
    """Give the application a command for each task that has one."""
    for command, task in COMMANDS.items():
        app.command(command, cls=_TaskCommand, short_help=INDEX[task].help)(lambda: None)


@final
class _TaskCommand(TyperCommand):
    """The command of a task, whose arguments are looked up when it is called."""

    def make_context(self, info_name: Any, args: Any, parent: Any = None, **extra: Any) -> Any:
        return task_command(str(self.name)).make_context(info_name, args, parent, **extra)


def task_command(name: str) -> Any:
    """Return a task as a command with a typer option for each of its arguments."""
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
    """Return the function that typer calls for a command, with its options as signature."""

    def run(**arguments: Any) -> None:
        """Run one job from the parsed arguments of the command line."""
        from zerodelta.cli.jobs import Job, parsed
        from zerodelta.cli.shown import run_jobs

        words = {option: arguments.pop(option) for option in command.options}
        options = {
            option: parsed(option, word)
            for option, word in words.items()
            if word is not False and word not in (None, [])  # keeps the number 0
        }
        as_json, dry_run = arguments.pop("json"), arguments.pop("dry_run")
        columns = tuple(arguments.pop("columns", None) or ())
        job = Job(task=name, columns=columns, options=options, **arguments)
        run_jobs([job], dry_run=dry_run, as_json=as_json, alone=True)

    parameters = _parameters(command)
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


_DATA = "A data file, such as people.csv."


def _parameters(command: Command) -> list[inspect.Parameter]:
    """Return the typer parameters of a command: file, columns, target, options."""
    columns_help = "The column." if command.columns == "one" else "The columns."
    arguments = [
        _parameter("data", str, typer.Argument(help=_DATA, metavar="DATA"), ...),
    ]
    if command.columns != "none":
        arguments.append(
            _parameter(
                "columns",
                list[str] | None,
                typer.Argument(help=columns_help, metavar="COLUMN"),
                None,
            )
        )
    if command.target is not None:
        target = typer.Option(help="The column to explain.", metavar="COLUMN")
        arguments.append(_parameter("target", str, target, ...))
    options = {
        "epsilon": SHARED["epsilon"],
        "schema": SHARED["schema"],
        **{name: OPTIONS[name] for name in command.options},
        **SHARED,
        "dry_run": Option(kind="flag", help="Only plan: spend nothing, read no cell."),
        "json": Option(kind="flag", help="Print JSON."),
    }
    for name, option in options.items():
        needed = name == "epsilon"
        default = ... if needed else False if option.kind == "flag" else None
        declared = typer.Option(
            f"--{name.replace('_', '-')}", help=option.help, metavar=_METAVARS.get(option.kind)
        )
        kind = str if needed else _TYPES[option.kind]
        arguments.append(_parameter(name, kind, declared, default))
    return arguments


def _parameter(name: str, kind: Any, declared: Any, default: Any) -> inspect.Parameter:
    """Return a parameter of a command's function, as typer reads it from a signature."""
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        annotation=getitem(cast(Any, Annotated), (kind, declared)),
        default=inspect.Parameter.empty if default is ... else default,
    )
