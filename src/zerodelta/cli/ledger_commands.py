"""`zerodelta ledger`: what was spent, by whom, and whether the file is what it says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from zerodelta.cli.refusals import ExitCode, examples, say

if TYPE_CHECKING:
    from zerodelta.ledger.ledger import Ledger

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
    from zerodelta.ledger.addresses import shown

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
    from zerodelta.ledger.addresses import as_address
    from zerodelta.ledger.connections import reading

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
