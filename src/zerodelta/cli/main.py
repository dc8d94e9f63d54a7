"""The command line: one function a command, each a thin wrapper of the library; and its ledgers.

Whatever is heavy is imported inside of a command, so that `zerodelta --help` is there at once.
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


# -- `zerodelta ledger`: what was spent, by whom, and whether the file is what it says ------------

ledger_app = typer.Typer(
    help="Show, check, export a ledger; raise its budget.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)

_Address = Annotated[str, typer.Argument(help="A ledger: a file or a URL.")]
_Data = Annotated[str | None, typer.Option("--data", help="Which data set, if there are several.")]
_Analyst = Annotated[str | None, typer.Option("--analyst", help="Whose account, under it.")]
_Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@ledger_app.command(epilog=examples("zerodelta ledger show people.ledger"))
def show(address: _Address, as_json: _Json = False) -> None:
    """Show what each account may spend, has spent, and has left."""
    from zerodelta.cli.shown import as_text, say_json

    found = _accounts(address)
    if as_json:
        say_json(found)
        return
    heads = ("data", "analyst", "budget", "spent", "left", "neighbors", "unit")
    lines = [[each[head] for head in heads] for each in found]
    say(as_text(heads, lines, (False, False, True, True, True, False, False)))


@ledger_app.command(epilog=examples('zerodelta ledger history people.ledger --data "people 2026"'))
def history(
    address: _Address, data: _Data = None, analyst: _Analyst = None, as_json: _Json = False
) -> None:
    """Show all entries of a data set's account, the oldest first."""
    found = _account(address, data, analyst).history
    say(found.to_json() if as_json else repr(found))


@ledger_app.command(
    "verify", epilog=examples("zerodelta ledger verify people.ledger out/release.json")
)
def verify_ledger(
    address: _Address,
    records: Annotated[list[Path] | None, typer.Argument(help="Saved releases.")] = None,
    as_json: _Json = False,
) -> None:
    """Check every hash and sum, and saved releases, if any; exit with 1 if something is wrong."""
    from zerodelta.errors import CertificateError, LedgerError
    from zerodelta.ledger.store import shown

    ledger = _account(address, None, any_of_them=True)
    try:
        number = ledger.verify(records or ())
    except (LedgerError, CertificateError) as error:
        if as_json:
            say(json.dumps({"verified": False, "problem": str(error)}, ensure_ascii=False))
        say(f"{shown(address)}: NOT VERIFIED: {error}", to_errors=True)
        raise typer.Exit(int(ExitCode.NOT_VERIFIED)) from None
    if as_json:
        say(json.dumps({"verified": True, "entries": number, "records": len(records or ())}))
        return
    also = f", {len(records)} saved releases are as they were paid for" if records else ""
    say(f"{shown(address)}: {number} entries, each as it was written{also}")


@ledger_app.command(
    epilog=examples("zerodelta ledger export people.ledger --out a.csv --format csv")
)
def export(
    address: _Address,
    out: Annotated[Path, typer.Option(help="The file to write.")],
    data: _Data = None,
    analyst: _Analyst = None,
    form: Annotated[str, typer.Option("--format", help="json, csv or registry.")] = "json",
) -> None:
    """Write the history of a data set to a file."""
    _account(address, data, analyst).export(out, format=form)
    say(f"wrote {out}")


@ledger_app.command(
    "raise",
    epilog=examples('zerodelta ledger raise people.ledger --to 3 --reason "board, 2026-11-02"'),
)
def raise_(
    address: _Address,
    to: Annotated[str, typer.Option(help="The new budget.")],
    reason: Annotated[str, typer.Option(help="Why; it stays in the history.")],
    data: _Data = None,
    analyst: _Analyst = None,
) -> None:
    """Allow more to be spent on a data set; an entry says so, and why."""
    ledger = _account(address, data, analyst)
    ledger.raise_budget(to, reason)
    say(ledger.line)


@ledger_app.command(
    "open", epilog=examples("zerodelta ledger open people.ledger --analyst ana --budget 1/2")
)
def open_(
    address: _Address,
    budget: Annotated[str | None, typer.Option(help="ε in all; an analyst needs none.")] = None,
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
                "left": number_text(balances.left((data, analyst))),
                "neighbors": account.neighbors.value,
                "unit": account.unit,
            }
            for (data, analyst), account in balances.accounts.items()
        ]


def _account(
    address: str, data: str | None, analyst: str | None = None, *, any_of_them: bool = False
) -> Ledger:
    from zerodelta.cli.jobs import account_of
    from zerodelta.errors import require

    if data is None:
        names = list(dict.fromkeys(each["data"] for each in _accounts(address)))
        one = len(names) == 1 or (any_of_them and bool(names))
        require(one, "data", expected=f"one of {', '.join(names)}", remedy="pass --data NAME")
        data = names[0]
    return account_of(address, data, analyst)


_ABOUT = """Publish results under pure differential privacy (delta = 0).

\b
Examples:
  zerodelta init people.csv --header          a schema to fill in: people.toml
  zerodelta mean people.csv income --by city --epsilon 1/4 --schema people.toml --dry-run
  zerodelta mean people.csv income --by city --epsilon 1/4 --schema people.toml
      --ledger people.ledger --budget 1 --out out
  zerodelta verify out/release.json
  zerodelta report out/release.json --out report.html

\b
Exit codes: 0 good, 1 not verified, 2 malformed (nothing was spent),
3 the ledger refused, 4 failed, 130 interrupted."""

app = typer.Typer(
    cls=GuardedGroup,
    help=_ABOUT,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    pretty_exceptions_show_locals=False,  # a local may hold a row
)


def _version(wanted: bool) -> None:
    if wanted:
        say(f"zerodelta {zerodelta.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show where an error was raised; never a value.")
    ] = False,
) -> None:
    pass


@app.command()
def version() -> None:
    """Print the version of zerodelta."""
    say(f"zerodelta {zerodelta.__version__}")


@app.command(epilog=examples("zerodelta init people.csv --header"))
def init(
    data: Annotated[Path, typer.Argument(help="A CSV or Parquet file.")],
    header: Annotated[
        bool | None,
        typer.Option("--header/--no-header", help="Whether the first line holds names."),
    ] = None,
    schema: Annotated[
        Path | None, typer.Option(help="The file to write; by default beside the data.")
    ] = None,
    delimiter: Annotated[str | None, typer.Option(help="Between cells.")] = None,
    quote: Annotated[
        str | None, typer.Option(help='Around cells, by default "; none: no cell is quoted.')
    ] = None,
) -> None:
    """Write a schema to be filled in: names of columns only, nothing is taken from rows."""
    from zerodelta.cli.files import names_in, template
    from zerodelta.errors import require
    from zerodelta.privacy.readable import write_new

    if not data.is_file():
        require(False, "data", str(data), "a file that is there", "check the path")
    file: dict[str, Any] = {} if delimiter is None else {"delimiter": delimiter}
    if quote is not None:
        file["quote"] = None if quote == "none" else quote
    if header is None and data.suffix.lower() not in (".parquet", ".pq"):
        remedy = "pass --header, or --no-header if the first line is a person's row"
        require(sys.stdin.isatty(), "header", expected="to be told what it is", remedy=remedy)
        header = typer.confirm("Does the first line hold the names of the columns?")
    told = header is None or header
    names = names_in(data, header=told, file=file)
    path = schema if schema is not None else data.with_suffix(".toml")
    write_new(path, template(data, names, header=told, file=file), name="--schema")
    say(f"wrote {path}: fill in kinds and bounds from what you know, never from the rows")


@app.command(epilog=examples("zerodelta release job.toml"))
def release(
    job: Annotated[Path, typer.Argument(help="A job, or several, in TOML.")], as_json: _Json = False
) -> None:
    """Run the releases of a job file, in their order."""
    _run(job, dry_run=False, as_json=as_json)


@app.command(
    epilog=examples(
        "zerodelta plan job.toml",
        "zerodelta mean people.csv income --epsilon 1/4 --schema people.toml --dry-run",
    )
)
def plan(
    job: Annotated[Path, typer.Argument(help="A job, or several, in TOML.")], as_json: _Json = False
) -> None:
    """Tell what a job would cost, promise and publish: reads no row and spends nothing."""
    _run(job, dry_run=True, as_json=as_json)


def _run(path: Path, *, dry_run: bool, as_json: bool) -> None:
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
    task: Annotated[str | None, typer.Argument(help="Such as mean; all if none is named.")] = None,
    numbers: Annotated[
        list[str] | None, typer.Argument(help="What it needs, as n=10000 dimension=5 epsilon=1.")
    ] = None,
    as_json: _Json = False,
) -> None:
    """Compare the methods of a task before there is data."""
    from zerodelta.errors import require

    given: dict[str, Any] = {}
    for each in numbers or ():
        name, found, text = each.partition("=")
        require(found, "numbers", each, "NAME=NUMBER", "write n=10000, say")
        given[name] = _number(text)
    found_advice: Any = zerodelta.advise(task, **given)
    if not as_json:
        say(str(found_advice))
        return
    from zerodelta.cli.shown import say_json

    listed = list(found_advice) if task is None else [found_advice]
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
    files: Annotated[list[str], typer.Argument(help="Certificates, or releases; - is stdin.")],
    explain: Annotated[bool, typer.Option("--explain", help="Print every step.")] = False,
    epsilon: Annotated[
        str | None, typer.Option(help="The most that each, and all of a data set, may cost.")
    ] = None,
    neighbors: Annotated[str, typer.Option(help="replace or add-remove.")] = "replace",
    unit: Annotated[
        str | None, typer.Option(help="Who must be protected; by default as each claims.")
    ] = None,
    proven: Annotated[
        bool, typer.Option("--proven", help="Refuse asserted and idealized steps.")
    ] = False,
    impure: Annotated[
        bool, typer.Option("--impure", help="Accept claims with a delta above 0, too.")
    ] = False,
    signed_by: Annotated[
        str | None, typer.Option(help="A public key, or its file, that must have signed.")
    ] = None,
    as_json: _Json = False,
) -> None:
    """Re-derive the claim of each certificate; exit with 1 if one does not prove what it says.

    Of saved releases also that the digest matches, that record and certificate state the same
    claim, that the value is what its noisy sums give, and what those of one data set cost in all.
    Whoever changes all of it and computes the digest anew is not found so. The steps prove the
    claim: that is what is checked. Not that they were run; for that there is the word of whoever
    signed, if somebody did.
    """
    from zerodelta.cli import verify_files as found
    from zerodelta.privacy.release import as_public

    public = None if signed_by is None else as_public(signed_by)
    demand = found.Demand(
        epsilon=epsilon,
        neighbors=neighbors,
        unit=unit,
        proven=proven,
        impure=impure,
        signed_by=public,
    )
    verdicts = []
    for path in files:
        one = found.report(path, demand, explain=explain)
        if not as_json:
            said = one.text if one.good else f"NOT VERIFIED: {one.text}"
            say(f"{path}: {said}", to_errors=not one.good)
        verdicts.append(one)
    total = found.totals(verdicts, demand)
    good = all(each.good for each in [*verdicts, *([] if total is None else [total])])
    if as_json:
        listed = [found.as_json(path, one) for path, one in zip(files, verdicts, strict=True)]
        sums = found.totals_as_json(total)
        problem = None if total is None or total.good else total.text
        report_ = {"verified": good, "files": listed, "totals": sums, "problem": problem}
        say(json.dumps(report_, indent=2, ensure_ascii=False))
    else:
        if total is not None and total.text:
            say(total.text, to_errors=not total.good)
        if any(each.good for each in verdicts):
            say(found.MEANING if public is None else found.SIGNED)
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
    ledger: Annotated[str | None, typer.Option(help="The ledger of their data.")] = None,
    as_json: _Json = False,
) -> None:
    """Write one HTML page about saved releases, for those who have to approve them."""
    from zerodelta.cli.files import report_files

    report_files(files, out, ledger)
    say(json.dumps({"report": str(out), "releases": len(files)}) if as_json else f"wrote {out}")


@app.command(epilog=examples("zerodelta audit mean mode --samples 5000"))
def audit(
    tasks: Annotated[
        list[str] | None, typer.Argument(help="mean, sum, median, …; all if none is named.")
    ] = None,
    epsilon: Annotated[str, typer.Option(help="The ε to release with, and to refute.")] = "1",
    samples: Annotated[int, typer.Option(help="Releases of each task.")] = 2000,
    confidence: Annotated[str, typer.Option(help="Of all bounds together.")] = "0.999",
    as_json: _Json = False,
) -> None:
    """Run our own tasks on made-up neighboring rows and try to refute their ε; exit with 1 if so.

    A few milliseconds a release. A bound on another mechanism: zerodelta.audit.lower_bound.
    """
    from zerodelta.audit.sampled import as_confidence
    from zerodelta.cli import demo as audit_tasks
    from zerodelta.exact.rational import as_positive

    found = []
    for name, bound in audit_tasks.audit_tasks(
        tasks or (),
        epsilon=as_positive(epsilon, "epsilon"),
        samples=samples,
        confidence=as_confidence(confidence),
    ):
        found.append((name, bound))
        if not as_json:
            say(audit_tasks.line(name, bound))
    if as_json:
        rows = [audit_tasks.as_json(name, bound) for name, bound in found]
        say(json.dumps(rows, indent=2, ensure_ascii=False))
    else:
        say(audit_tasks.MEANING)
    if any(bound.violated for _, bound in found):
        raise typer.Exit(int(ExitCode.NOT_VERIFIED))


@app.command(epilog=examples("zerodelta prove out/release.json"))
def prove(
    file: Annotated[Path, typer.Argument(help="A certificate, or a release, as JSON.")],
    out: Annotated[
        Path | None, typer.Option(help="Where to write the file for Coq; beside it by default.")
    ] = None,
    proofs: Annotated[
        Path, typer.Option(help="The folder proofs/ of the repository, compiled by `make proofs`.")
    ] = Path("proofs"),
) -> None:
    """Write the proof of a certificate for Coq, with its own numbers, and let Coq check it.

    Exit with 1 if the certificate is not verified, or if Coq refuses it. Where Coq is missing the
    file is only written.
    """
    from zerodelta.cli.files import prove as run

    good, text = run(file, out or file.with_suffix(".v"), proofs)
    say(text, to_errors=not good)
    if not good:
        raise typer.Exit(int(ExitCode.NOT_VERIFIED))


@app.command()
def keys(
    name: Annotated[Path, typer.Argument(help="Writes NAME.key and NAME.pub.")] = Path("zerodelta"),
) -> None:
    """Make a pair of Ed25519 keys, to sign releases with and to check who signed."""
    from zerodelta.privacy.release import make_keys

    private, public = Path(f"{name}.key"), Path(f"{name}.pub")
    key = make_keys(private, public)
    say(f"{private}: keep it secret; zerodelta mean … --sign {private}")
    say(f"{public}: give it to others; zerodelta verify --signed-by {public}")
    say(key)


app.add_typer(ledger_app, name="ledger")


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Where to write; made if missing.")] = Path(
        "demo-output"
    ),
) -> None:
    """Show all of it on real data: schema, plan, table, model, ledger, report."""
    from zerodelta.errors import require_extra

    require_extra("sklearn", "sklearn")
    from zerodelta.cli.demo import run

    run(out)


@app.command()
def ui(
    port: Annotated[int, typer.Option(help="Of this computer; 0 takes a free one.")] = 0,
    browser: Annotated[bool, typer.Option(help="Open the page.")] = True,
) -> None:
    """Open the planner: predicted errors, break-even and snippets, on a page of this computer only.

    No data goes in, and nothing leaves this computer. Ctrl-C ends it.
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
        expected, remedy = "a free port of this computer", "pass --port 0 for any"
        raise ParameterError("port", port, expected=expected, remedy=remedy) from None


add_tasks(app)
