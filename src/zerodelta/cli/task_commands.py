"""A command for each task and estimator, made from the table of forms; and jobs from TOML files."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from fractions import Fraction
from operator import getitem
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast, final

import typer

from zerodelta.cli.task_forms import FORMS, OPTIONS, Form

if TYPE_CHECKING:
    from zerodelta.cli.jobs import Job
    from zerodelta.ledger.ledger import Ledger
    from zerodelta.spine.preview import Preview

_TYPES: dict[str, Any] = {
    "text": str | None,
    "number": str | None,
    "count": int | None,
    "numbers": str | None,
    "names": list[str] | None,
    "groups": list[str] | None,
    "lists": list[str] | None,
    "weights": list[str] | None,
    "flag": bool,
}

_COMMON: tuple[tuple[str, Any, Any], ...] = (
    ("epsilon", Annotated[str, typer.Option(help="The privacy loss, such as 1/4.")], ...),
    (
        "schema",
        Annotated[str | None, typer.Option(help="The declared columns; `zerodelta init`.")],
        None,
    ),
    ("where", Annotated[str | None, typer.Option(help='Which rows, such as "age >= 18".')], None),
    (
        "expected_rows",
        Annotated[int | None, typer.Option(help="About how many, where that is private.")],
        None,
    ),
    ("ledger", Annotated[str | None, typer.Option(help="Who pays: a file or a URL.")], None),
    (
        "budget",
        Annotated[str | None, typer.Option(help="ε in all, when the ledger is opened.")],
        None,
    ),
    ("analyst", Annotated[str | None, typer.Option(help="Whose account of it pays.")], None),
    (
        "records",
        Annotated[str | None, typer.Option(help="Saved releases that the ledger must know.")],
        None,
    ),
    ("again", Annotated[bool, typer.Option("--again", help="Pay for it once more.")], False),
    ("out", Annotated[str | None, typer.Option(help="The folder to write to.")], None),
    (
        "parquet",
        Annotated[bool, typer.Option("--parquet", help="Write value.parquet, too.")],
        False,
    ),
    ("sign", Annotated[str | None, typer.Option(help="A private key to sign with.")], None),
    (
        "dry_run",
        Annotated[bool, typer.Option("--dry-run", help="Only plan: read and spend nothing.")],
        False,
    ),
    ("as_json", Annotated[bool, typer.Option("--json", help="Print JSON.")], False),
)


def add_tasks(app: typer.Typer) -> None:
    """Give the application a command for each form."""
    for name, form in FORMS.items():
        panel = "Models" if form.estimator or form.target else "Statistics"
        app.command(name, help=_help(form), short_help=form.help, rich_help_panel=panel)(
            _command(name, form)
        )


def _help(form: Form) -> str:
    line = f"zerodelta {form.example} --epsilon 1/4 --schema people.toml --out out"
    return (
        f"{form.help}\n\nPublishes {form.publishes}.\n\n\b\nExample:\n  {line}\n"
        f"  {line.replace('--out out', '--dry-run')}"
    )


def _command(name: str, form: Form) -> Callable[..., None]:
    def command(**given: Any) -> None:
        from zerodelta.cli.jobs import Job, parsed

        options = {
            option: parsed(option, given.pop(option))
            for option in form.options
            if given[option] is not False and given[option] not in (None, [])  # 0 is a number
        }
        for option in form.options:
            given.pop(option, None)
        as_json, dry_run = given.pop("as_json"), given.pop("dry_run")
        columns = tuple(given.pop("columns", None) or ())
        job = Job(task=name, columns=columns, options=options, **given)
        run_jobs([job], dry_run=dry_run, as_json=as_json, alone=True)

    parameters = _parameters(form)
    signature = inspect.Signature(parameters)
    command.__signature__ = signature  # type: ignore[attr-defined]
    command.__annotations__ = {each.name: each.annotation for each in parameters}
    command.__name__ = name.replace("-", "_")
    return command


def _parameters(form: Form) -> list[inspect.Parameter]:
    words = {"one": "The column.", "some": "The columns.", "several": "The columns."}
    said: list[tuple[str, Any, Any]] = [
        ("data", Annotated[str, typer.Argument(help="A CSV or Parquet file.")], ...)
    ]
    if form.columns != "none":
        told = words[form.columns]
        said.append(("columns", Annotated[list[str] | None, typer.Argument(help=told)], None))
    if form.target is not None:
        said.append(("target", Annotated[str, typer.Option(help="The column to explain.")], ...))
    for name in form.options:
        option = OPTIONS[name]
        flag = f"--{name.replace('_', '-')}"
        said_as = _TYPES[option.value]
        kind = getitem(cast(Any, Annotated), (said_as, typer.Option(flag, help=option.help)))
        said.append((name, kind, False if option.value == "flag" else None))
    return [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            annotation=kind,
            default=inspect.Parameter.empty if default is ... else default,
        )
        for name, kind, default in (*said, *_COMMON)
    ]


def run_jobs(jobs: Sequence[Job], *, dry_run: bool, as_json: bool, alone: bool) -> None:
    """Plan or run jobs, one after the other, and print what came out."""
    from zerodelta.cli import jobs as run
    from zerodelta.cli import outputs, shown
    from zerodelta.cli.refusals import IncompleteError, say

    funds = Funds()
    if not dry_run:
        for job in jobs:
            outputs.prepare(job)
        if not alone:  # a mistake in a later job is found before an earlier one is paid for
            funds.check([(job, run.planned(job)) for job in jobs])
    told: list[Any] = []
    problems: list[str] = []
    try:
        for i, job in enumerate(jobs):
            if not alone and not as_json:
                say(f"{'' if i == 0 else chr(10)}[{job.name or job.task}]")
            if dry_run:
                found, left = run.planned(job), funds.left(job)
                line = funds.line(job, found)
                if as_json:
                    told.append(shown.plan_as_json(job, found, left))
                else:
                    shown.say_plan(job, found, line)
                continue
            made = run.released(job)
            files = outputs.write(job, made)
            problems += files.problems
            if as_json:
                told.append(shown.release_as_json(job, made, files))
            else:
                shown.say_release(job, made, files)
    finally:  # what was paid for is told, whatever became of the jobs after it
        if as_json and told:
            shown.say_json(told[0] if alone else told)
    if problems:
        raise IncompleteError(f"the release was paid for and made, but {'; '.join(problems)}")


@final
class Funds:
    """What the ledgers of some jobs have left, as their jobs are planned one after the other."""

    def __init__(self) -> None:
        self._left: dict[tuple[str, str | None, str | None], Fraction] = {}

    def line(self, job: Job, found: Preview) -> str | None:
        """Say what is left for a job, and whether that covers it; None without a ledger."""
        from zerodelta.exact.rational import number_text
        from zerodelta.ledger.addresses import shown

        left = self.left(job)
        if left is None:
            return None
        price = self._take(job, found)
        covered = price is not None and price <= left
        opened = "would be opened with" if _account(job) is None else "has"
        verdict = "this is covered" if covered else "this is NOT covered"
        told = f"{shown(job.ledger or '')} {opened} {number_text(max(left, Fraction(0)))}"
        return f"{told} left for it; {verdict}"

    def left(self, job: Job) -> Fraction | None:
        """Return what is left for a job; None without a ledger or a budget."""
        return self._left.get(_whose(job), _limit(job))

    def check(self, planned: Sequence[tuple[Job, Preview]]) -> None:
        """Refuse jobs that their ledgers do not cover together."""
        from zerodelta.errors import BudgetError
        from zerodelta.exact.rational import number_text

        for job, found in planned:
            left = self.left(job)
            price = self._take(job, found)
            if left is not None and price is not None and price > left:
                raise BudgetError(
                    f"{job.name} asks for {number_text(price)}, where "
                    f"{number_text(max(left, Fraction(0)))} of the ledger would be left after the "
                    "jobs before it: nothing was spent or read. Ask for less, or "
                    "ledger.raise_budget(to, reason)."
                )

    def _take(self, job: Job, found: Preview) -> Fraction | None:
        left, account = self.left(job), _account(job)
        if left is None or found.price is None:
            return None
        price = found.price if account is None else account.price([found])
        self._left[_whose(job)] = left - price
        return price


def _whose(job: Job) -> tuple[str, str | None, str | None]:
    import zerodelta as zd

    name = None if job.schema is None else zd.read_schema(job.schema).name
    return job.ledger or "", name, job.analyst


def _limit(job: Job) -> Fraction | None:
    from zerodelta.exact.rational import as_positive

    account = _account(job)
    if account is not None:
        return account.remaining
    return None if job.ledger is None or job.budget is None else as_positive(job.budget, "budget")


def _account(job: Job) -> Ledger | None:
    """Return the account that would pay, if it is there already."""
    import zerodelta as zd
    from zerodelta.cli.jobs import account_of
    from zerodelta.ledger.addresses import as_address, is_url
    from zerodelta.ledger.ledger import DEFAULT_DATA, Ledger

    address = None if job.ledger is None else as_address(job.ledger)
    if address is None or not (is_url(address) or Path(address).exists()):
        return None
    name = zd.read_schema(str(job.schema)).name
    data = DEFAULT_DATA if name is None else name
    try:
        whole = Ledger(address, data=data)
    except zd.ParameterError:  # no account of these data yet
        return None
    if job.records is not None:
        whole.demand(job.records)
    return account_of(address, data, job.analyst)
