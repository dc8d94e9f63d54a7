"""Define the commands of the command line, each a thin wrapper of the library.

Heavy modules are imported inside of the commands, so that `zerodelta --help` prints at once.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import zerodelta
from zerodelta.cli.commands import add_tasks
from zerodelta.cli.refusals import ExitCode, GuardedGroup, examples, say

if TYPE_CHECKING:
    from zerodelta.ledger.ledger import Ledger


# -- `zerodelta ledger`: accounts, history, checks and exports of a ledger ------------------------

ledger_app = typer.Typer(
    help="Show, check or export a ledger; open accounts, raise a budget.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)

_Address = Annotated[str, typer.Argument(metavar="LEDGER", help="A ledger: a file or a URL.")]
_Data = Annotated[
    str | None,
    typer.Option("--data", help="The data set; needed if the ledger has several.", metavar="NAME"),
]
_Analyst = Annotated[
    str | None,
    typer.Option("--analyst", help="An analyst's account of the data set.", metavar="NAME"),
]
_Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@ledger_app.command(epilog=examples("zerodelta ledger show people.ledger"))
def show(address: _Address, as_json: _Json = False) -> None:
    """Show the budget of each account, what it has spent, and what is left."""
    from zerodelta.cli.shown import as_text, say_json

    accounts = _accounts(address)
    if as_json:
        say_json(accounts)
        return
    heads = ("data", "analyst", "budget", "spent", "left", "neighbors", "unit")
    lines = [[account[head] for head in heads] for account in accounts]
    say(as_text(heads, lines, (False, False, True, True, True, False, False)))


@ledger_app.command(epilog=examples('zerodelta ledger history people.ledger --data "people 2026"'))
def history(
    address: _Address, data: _Data = None, analyst: _Analyst = None, as_json: _Json = False
) -> None:
    """Show all entries of a data set's account, the oldest first."""
    entries = _account(address, data, analyst).history
    say(entries.to_json() if as_json else repr(entries))


@ledger_app.command(
    "verify", epilog=examples("zerodelta ledger verify people.ledger out/release.json")
)
def verify_ledger(
    address: _Address,
    records: Annotated[list[Path] | None, typer.Argument(help="Saved releases.")] = None,
    as_json: _Json = False,
) -> None:
    """Check all entries and saved releases; exit with 1 if not valid."""
    from zerodelta.errors import CertificateError, LedgerError
    from zerodelta.ledger.store import shown_address

    ledger = _account(address, None, default_to_first=True)
    try:
        number = ledger.verify(records or ())
    except (LedgerError, CertificateError) as error:
        if as_json:
            say(json.dumps({"verified": False, "problem": str(error)}, ensure_ascii=False))
        say(f"{shown_address(address)}: NOT VERIFIED: {error}", to_errors=True)
        raise typer.Exit(int(ExitCode.NOT_VERIFIED)) from None
    if as_json:
        say(json.dumps({"verified": True, "entries": number, "records": len(records or ())}))
        return
    paid = f"; {len(records)} saved releases were paid for as they state" if records else ""
    say(f"{shown_address(address)}: {number} entries, each as it was written{paid}")


@ledger_app.command(
    epilog=examples("zerodelta ledger export people.ledger --out a.csv --format csv")
)
def export(
    address: _Address,
    out: Annotated[Path, typer.Option(help="The file to write.")],
    data: _Data = None,
    analyst: _Analyst = None,
    format_: Annotated[
        str, typer.Option("--format", help="json, csv or registry (of deployments).")
    ] = "json",
) -> None:
    """Write the history of a data set to a file."""
    _account(address, data, analyst).export(out, format=format_)
    say(f"wrote {out}")


@ledger_app.command(
    "raise",
    epilog=examples('zerodelta ledger raise people.ledger --to 3 --reason "board, 2026-11-02"'),
)
def raise_(
    address: _Address,
    to: Annotated[str, typer.Option(help="The new budget.")],
    reason: Annotated[str, typer.Option(help="The reason, which the history keeps.")],
    data: _Data = None,
    analyst: _Analyst = None,
) -> None:
    """Raise the budget of a data set; the history keeps the reason."""
    ledger = _account(address, data, analyst)
    ledger.raise_budget(to, reason)
    say(ledger.line)


@ledger_app.command(
    "open", epilog=examples("zerodelta ledger open people.ledger --analyst ana --budget 1/2")
)
def open_(
    address: _Address,
    budget: Annotated[
        str | None, typer.Option(help="The total ε; optional for an analyst.", metavar="NUMBER")
    ] = None,
    data: _Data = None,
    analyst: _Analyst = None,
) -> None:
    """Open an account of a data set, or of an analyst under it."""
    from zerodelta.ledger.ledger import Ledger

    say(Ledger(address, budget=budget, data=data, analyst=analyst).line)


def _accounts(address: str) -> list[dict[str, Any]]:
    """Return all accounts of a ledger."""
    from zerodelta.exact.rational import number_text
    from zerodelta.ledger.ledger import reading
    from zerodelta.ledger.store import as_address

    with reading(as_address(address)) as (_, balances):
        return [
            {
                "data": data,
                "analyst": analyst,
                "budget": None if account.limit is None else number_text(account.limit),
                "spent": number_text(account.spent),
                "left": number_text(balances.remaining((data, analyst))),
                "neighbors": account.neighbors.value,
                "unit": account.unit,
            }
            for (data, analyst), account in balances.accounts.items()
        ]


def _account(
    address: str, data: str | None, analyst: str | None = None, *, default_to_first: bool = False
) -> Ledger:
    """Return an account; without the name of the data set the only one, or the first."""
    from zerodelta.cli.jobs import account_of
    from zerodelta.errors import require

    if data is None:
        names = list(dict.fromkeys(account["data"] for account in _accounts(address)))
        certain = len(names) == 1 or (default_to_first and bool(names))
        require(certain, "data", expected=f"one of {', '.join(names)}", remedy="pass --data NAME")
        data = names[0]
    return account_of(address, data, analyst)


_ABOUT = """Publish results under pure differential privacy (delta = 0).

\b
Examples:
  zerodelta init people.csv --header          writes people.toml, a schema to fill in
  zerodelta mean people.csv income --by city --epsilon 1/4 --schema people.toml --dry-run
  zerodelta mean people.csv income --by city --epsilon 1/4 --schema people.toml
      --ledger people.ledger --budget 1 --out out
  zerodelta verify out/release.json
  zerodelta report out/release.json --out report.html

\b
Exit codes: 0 success, 1 not verified, 2 refused (nothing was spent),
3 refused by the ledger, 4 failed, 130 interrupted."""

app = typer.Typer(
    cls=GuardedGroup,
    help=_ABOUT,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    pretty_exceptions_show_locals=False,  # a local may hold a row
)


def _print_version(wanted: bool) -> None:
    if wanted:
        say(f"zerodelta {zerodelta.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show where an error was raised, without any value.")
    ] = False,
) -> None:
    pass


@app.command()
def version() -> None:
    """Print the version of zerodelta."""
    say(f"zerodelta {zerodelta.__version__}")


@app.command(epilog=examples("zerodelta init people.csv --header"))
def init(
    data: Annotated[Path, typer.Argument(help="A data file, such as people.csv.", metavar="DATA")],
    header: Annotated[
        bool | None,
        typer.Option("--header/--no-header", help="Say whether the first line holds names."),
    ] = None,
    schema: Annotated[
        Path | None, typer.Option(help="The file to write; by default beside the data.")
    ] = None,
    delimiter: Annotated[
        str | None, typer.Option(help="The character between cells.", metavar="CHARACTER")
    ] = None,
    quote: Annotated[
        str | None,
        typer.Option(
            help='The character around cells, by default "; "none" if no cell is quoted.',
            metavar="CHARACTER",
        ),
    ] = None,
) -> None:
    """Write a schema to fill in; only the names of columns are read."""
    from zerodelta.cli.files import names_in, template
    from zerodelta.data.arrays import stores_names
    from zerodelta.errors import require
    from zerodelta.privacy.readable import write_new

    if not data.is_file():
        require(False, "data", str(data), "an existing file", "check the path")
    file: dict[str, Any] = {} if delimiter is None else {"delimiter": delimiter}
    if quote is not None:
        file["quote"] = None if quote == "none" else quote
    if header is None and not stores_names(data):
        remedy = "pass --header, or --no-header if the first line is a person's row"
        expected = "a statement whether the first line holds the names of the columns"
        require(sys.stdin.isatty(), "header", expected=expected, remedy=remedy)
        header = typer.confirm("Does the first line hold the names of the columns?")
    has_names = header is None or header
    names = names_in(data, header=has_names, file=file)
    path = schema if schema is not None else data.with_suffix(".toml")
    write_new(path, template(data, names, header=has_names, file=file), name="--schema")
    say(f"wrote {path}: fill in kinds and bounds from what you know, never from the rows")


@app.command(epilog=examples("zerodelta release job.toml"))
def release(
    job: Annotated[Path, typer.Argument(help="A TOML file of one or several jobs.")],
    as_json: _Json = False,
) -> None:
    """Run the releases of a job file, in order."""
    _run(job, dry_run=False, as_json=as_json)


@app.command(
    epilog=examples(
        "zerodelta plan job.toml",
        "zerodelta mean people.csv income --epsilon 1/4 --schema people.toml --dry-run",
    )
)
def plan(
    job: Annotated[Path, typer.Argument(help="A TOML file of one or several jobs.")],
    as_json: _Json = False,
) -> None:
    """Show price, guarantee and output of a job; spend nothing."""
    _run(job, dry_run=True, as_json=as_json)


def _run(path: Path, *, dry_run: bool, as_json: bool) -> None:
    """Run all jobs of a TOML file."""
    from zerodelta.cli.jobs import read_jobs
    from zerodelta.cli.shown import run_jobs

    jobs = read_jobs(path)
    run_jobs(jobs, dry_run=dry_run, as_json=as_json, alone=jobs[0].name is None)


@app.command(
    epilog=examples(
        "zerodelta advise", "zerodelta advise mean n=10000 dimension=5 epsilon=1 data_norm=1"
    )
)
def advise(
    task: Annotated[
        str | None, typer.Argument(help="A task, such as mean; by default all tasks.")
    ] = None,
    numbers: Annotated[
        list[str] | None,
        typer.Argument(help="Its public numbers, such as n=10000 dimension=5 epsilon=1."),
    ] = None,
    as_json: _Json = False,
) -> None:
    """Compare the methods of a task by their predicted errors."""
    from zerodelta.errors import require

    arguments: dict[str, Any] = {}
    for assignment in numbers or ():
        name, equals_sign, text = assignment.partition("=")
        require(equals_sign, "numbers", assignment, "NAME=NUMBER", "write n=10000, say")
        arguments[name] = _number(text)
    advice: Any = zerodelta.advise(task, **arguments)
    if not as_json:
        say(str(advice))
        return
    from zerodelta.cli.shown import say_json

    listed = list(advice) if task is None else [advice]
    say_json(
        [
            {
                "task": one.task,
                "best": one.best.name,
                "reason": one.reason,
                "methods": [{"name": m.name, "error": m.error, "why": m.why} for m in one],
            }
            for one in listed
        ]
    )


def _number(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


@app.command(
    epilog=examples(
        "zerodelta verify out/*/release.json --epsilon 1",
        "cat release.json | zerodelta verify - --json",
    )
)
def verify(
    files: Annotated[
        list[str], typer.Argument(help="Certificates or saved releases; - reads stdin.")
    ],
    explain: Annotated[bool, typer.Option("--explain", help="Print every step.")] = False,
    epsilon: Annotated[
        str | None,
        typer.Option(help="The largest ε allowed, for each release and for a data set's total."),
    ] = None,
    neighbors: Annotated[
        str, typer.Option(help="The relation to verify: replace or add-remove.")
    ] = "replace",
    unit: Annotated[
        str | None, typer.Option(help="The unit to protect; by default the one that is claimed.")
    ] = None,
    proven: Annotated[
        bool, typer.Option("--proven", help="Refuse asserted and idealized steps.")
    ] = False,
    impure: Annotated[
        bool, typer.Option("--impure", help="Also accept claims with a delta above 0.")
    ] = False,
    signed_by: Annotated[
        str | None, typer.Option(help="The public key of the required signer, or its file.")
    ] = None,
    as_json: _Json = False,
) -> None:
    """Check that certificates prove what they claim.

    The command exits with 1 if one does not. The claim of each certificate is derived again from
    its steps. For saved releases it is also checked that the digest matches, that record and
    certificate state the same claim, and that the value does not contradict its noisy sums and
    bounds, if it has any; the ε of all releases of one data set is added up.

    Verified means that the steps prove the claim, not that they were run: for that you have to
    trust the signer. Somebody who changes a file and computes its digest again is detected only by
    a signature.
    """
    from zerodelta.cli import verify_files
    from zerodelta.privacy.release import as_public

    public = None if signed_by is None else as_public(signed_by)
    demand = verify_files.Demand(
        epsilon=epsilon,
        neighbors=neighbors,
        unit=unit,
        proven=proven,
        impure=impure,
        signed_by=public,
    )
    verdicts = []
    for path in files:
        verdict = verify_files.report(path, demand, explain=explain)
        if not as_json:
            text = verdict.text if verdict.good else f"NOT VERIFIED: {verdict.text}"
            say(f"{path}: {text}", to_errors=not verdict.good)
        verdicts.append(verdict)
    total = verify_files.totals(verdicts, demand)
    good = all(verdict.good for verdict in [*verdicts, *([] if total is None else [total])])
    if as_json:
        by_file = [verify_files.as_json(p, v) for p, v in zip(files, verdicts, strict=True)]
        sums = verify_files.totals_as_json(total)
        problem = None if total is None or total.good else total.text
        summary = {"verified": good, "files": by_file, "totals": sums, "problem": problem}
        say(json.dumps(summary, indent=2, ensure_ascii=False))
    else:
        if total is not None and total.text:
            say(total.text, to_errors=not total.good)
        if any(verdict.good for verdict in verdicts):
            signed = any(v.saved is not None and v.saved.signatures for v in verdicts if v.good)
            meaning = verify_files.UNCHECKED if signed else verify_files.MEANING
            say(meaning if public is None else verify_files.SIGNED)
    if not good:
        raise typer.Exit(int(ExitCode.NOT_VERIFIED))


@app.command(
    epilog=examples(
        "zerodelta report income.json age.json --ledger people.ledger --out report.html"
    )
)
def report(
    files: Annotated[list[Path], typer.Argument(help="Saved releases.")],
    out: Annotated[Path, typer.Option(help="The page to write.")] = Path("report.html"),
    ledger: Annotated[str | None, typer.Option(help="The ledger that paid for them.")] = None,
    as_json: _Json = False,
) -> None:
    """Write an HTML page about saved releases."""
    from zerodelta.cli.files import report_files

    report_files(files, out, ledger)
    say(json.dumps({"report": str(out), "releases": len(files)}) if as_json else f"wrote {out}")


@app.command(epilog=examples("zerodelta audit mean mode --samples 5000"))
def audit(
    tasks: Annotated[
        list[str] | None, typer.Argument(help="mean, sum, median, …; by default all of them.")
    ] = None,
    epsilon: Annotated[str, typer.Option(help="The ε of the releases, to be refuted.")] = "1",
    samples: Annotated[int, typer.Option(help="The number of releases of each task.")] = 2000,
    confidence: Annotated[
        str, typer.Option(help="The confidence of all lower bounds together.")
    ] = "0.999",
    as_json: _Json = False,
) -> None:
    """Attack zerodelta's own tasks to refute their ε.

    The command exits with 1 if an ε is refuted. Each task is run many times on two neighboring,
    made-up data sets, at a few milliseconds a release. To attack another mechanism, call
    zerodelta.audit.lower_bound.
    """
    from zerodelta.audit.sampled import as_confidence
    from zerodelta.cli import demo as audit_tasks
    from zerodelta.exact.rational import as_positive

    bounds = []
    for name, bound in audit_tasks.audit_tasks(
        tasks or (),
        epsilon=as_positive(epsilon, "epsilon"),
        samples=samples,
        confidence=as_confidence(confidence),
    ):
        bounds.append((name, bound))
        if not as_json:
            say(audit_tasks.line(name, bound))
    if as_json:
        rows = [audit_tasks.as_json(name, bound) for name, bound in bounds]
        say(json.dumps(rows, indent=2, ensure_ascii=False))
    else:
        say(audit_tasks.MEANING)
    if any(bound.violated for _, bound in bounds):
        raise typer.Exit(int(ExitCode.NOT_VERIFIED))


@app.command(epilog=examples("zerodelta prove out/release.json"))
def prove(
    file: Annotated[Path, typer.Argument(help="A certificate, or a release, as JSON.")],
    out: Annotated[
        Path | None, typer.Option(help="The file for Coq; by default beside the certificate.")
    ] = None,
    proofs: Annotated[
        Path, typer.Option(help="The repository's folder proofs/, compiled with `make proofs`.")
    ] = Path("proofs"),
) -> None:
    """Write a certificate's proof for Coq, and let Coq check it.

    Exit with 1 if the certificate is not verified, or if Coq refuses the proof. If Coq is not
    installed, the file is only written.
    """
    from zerodelta.cli.files import prove as run

    good, text = run(file, out or file.with_suffix(".v"), proofs)
    say(text, to_errors=not good)
    if not good:
        raise typer.Exit(int(ExitCode.NOT_VERIFIED))


@app.command()
def keys(
    name: Annotated[Path, typer.Argument(help="Name of the files NAME.key and NAME.pub.")] = Path(
        "zerodelta"
    ),
) -> None:
    """Create a pair of keys to sign and verify releases."""
    from zerodelta.privacy.release import make_keys

    private, public = Path(f"{name}.key"), Path(f"{name}.pub")
    key = make_keys(private, public)
    say(f"{private}: keep it secret; zerodelta mean … --sign {private}")
    say(f"{public}: give it to others; zerodelta verify --signed-by {public}")
    say(key)


app.add_typer(ledger_app, name="ledger")


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="The folder to write, created if missing.")] = Path(
        "demo-output"
    ),
) -> None:
    """Run an example on real data, from schema to report."""
    from zerodelta.errors import require_extra

    require_extra("sklearn", "sklearn")
    from zerodelta.cli.demo import run

    run(out)


@app.command()
def ui(
    port: Annotated[int, typer.Option(help="A port of this computer; 0 for any free one.")] = 0,
    browser: Annotated[bool, typer.Option(help="Open the page in a browser.")] = True,
) -> None:
    """Open the planner, a local page that compares methods.

    It shows predicted errors, break-even points and code snippets. It reads no data, and nothing
    leaves this computer. Ctrl-C ends it.
    """
    import webbrowser

    from zerodelta.errors import ParameterError
    from zerodelta.ui import serve

    def started(address: str) -> None:
        say(f"planner: {address} (Ctrl-C ends it)")
        if browser:
            webbrowser.open(address)

    try:
        serve(port, started)
    except (OSError, OverflowError):
        expected, remedy = "a free port of this computer", "pass --port 0 for any free one"
        raise ParameterError("port", port, expected=expected, remedy=remedy) from None


add_tasks(app)
