"""The command line: one function a command, each a thin wrapper of the library."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

import zerodelta
from zerodelta.errors import ZeroDeltaError, require_extra

__all__ = ["app"]

app = typer.Typer(
    help="Publish results under pure differential privacy (delta = 0).",
    no_args_is_help=True,
    add_completion=False,
)


@app.callback()
def _root() -> None:
    """Publish results under pure differential privacy (delta = 0)."""


@app.command()
def version() -> None:
    """Print the version of zerodelta."""
    Console().print(f"zerodelta {zerodelta.__version__}", highlight=False)


@app.command()
def verify(
    files: Annotated[list[Path], typer.Argument(help="Certificates, or releases, as JSON.")],
    explain: Annotated[bool, typer.Option("--explain", help="Print every step.")] = False,
    epsilon: Annotated[
        str | None, typer.Option(help="The most that each, and all of a data set, may cost.")
    ] = None,
    neighbors: Annotated[str, typer.Option(help="replace or add-remove.")] = "replace",
    unit: Annotated[str | None, typer.Option(help="Whom it protects, if not a row.")] = None,
    signed_by: Annotated[
        str | None, typer.Option(help="A public key, or its file, that must have signed.")
    ] = None,
) -> None:
    """Re-derive the claim of each certificate; exit with 1 if one does not prove what it says.

    Of saved releases also that value, record and certificate belong together, and what those of one
    data set cost in all. The steps prove the claim: that is what is checked. Not that they were
    run; for that there is the word of whoever signed, if somebody did.
    """
    from zerodelta.cli.verify_files import (  # here, so that other commands start faster
        MEANING,
        SIGNED,
        Demand,
        report,
        totals,
    )
    from zerodelta.privacy.signatures import as_public

    with _refusals():
        public = None if signed_by is None else as_public(signed_by)
        demand = Demand(epsilon=epsilon, neighbors=neighbors, unit=unit, signed_by=public)
        verdicts = []
        for path in files:
            found = report(path, demand, explain=explain)
            said = found.text if found.good else f"NOT VERIFIED: {found.text}"
            _print(f"{path}: {said}", to_errors=not found.good)
            verdicts.append(found)
        total = totals(verdicts, demand)
    if total is not None:
        _print(total.text, to_errors=not total.good)
        verdicts.append(total)
    if any(each.good for each in verdicts):
        _print(MEANING if public is None else SIGNED, to_errors=False)
    if not all(each.good for each in verdicts):
        raise typer.Exit(1)


@app.command()
def audit(
    tasks: Annotated[
        list[str] | None, typer.Argument(help="mean, sum, median, …; all if none is named.")
    ] = None,
    epsilon: Annotated[str, typer.Option(help="The ε to release with, and to refute.")] = "1",
    samples: Annotated[int, typer.Option(help="Releases of each task.")] = 2000,
    confidence: Annotated[str, typer.Option(help="Of all bounds together.")] = "0.999",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Run our own tasks on made-up neighboring rows and try to refute their ε; exit with 1 if so.

    A few milliseconds a release. A bound on another mechanism: zerodelta.audit.lower_bound.
    """
    from zerodelta.audit.sampled_bound import as_confidence  # here, so that others start faster
    from zerodelta.cli import audit_tasks
    from zerodelta.exact.rational import as_positive

    try:
        found = []
        for name, bound in audit_tasks.audit_tasks(
            tasks or (),
            epsilon=as_positive(epsilon, "epsilon"),
            samples=samples,
            confidence=as_confidence(confidence),
        ):
            found.append((name, bound))
            if not as_json:
                _print(audit_tasks.line(name, bound), to_errors=False)
    except zerodelta.ParameterError as error:
        _print(str(error), to_errors=True)
        raise typer.Exit(2) from None
    if as_json:
        rows = [audit_tasks.as_json(name, bound) for name, bound in found]
        _print(json.dumps(rows, indent=2, ensure_ascii=False), to_errors=False)
    else:
        _print(audit_tasks.MEANING, to_errors=False)
    if any(bound.violated for _, bound in found):
        raise typer.Exit(1)


@app.command()
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
    from zerodelta.cli.prove_file import prove as run  # here, so that other commands start faster

    good, text = run(file, out or file.with_suffix(".v"), proofs)
    _print(text, to_errors=not good)
    if not good:
        raise typer.Exit(1)


@app.command()
def keys(
    name: Annotated[Path, typer.Argument(help="Writes NAME.key and NAME.pub.")] = Path("zerodelta"),
) -> None:
    """Make a pair of Ed25519 keys, to sign releases with and to check who signed."""
    from zerodelta.privacy.signatures import make_keys

    private, public = Path(f"{name}.key"), Path(f"{name}.pub")
    with _refusals():
        key = make_keys(private, public)
    _print(f"{private}: keep it secret; release.save(…, sign={str(private)!r})", to_errors=False)
    _print(f"{public}: give it to others; zerodelta verify --signed-by {public}", to_errors=False)
    _print(key, to_errors=False)


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Where to write; made if missing.")] = Path(
        "demo-output"
    ),
) -> None:
    """Select features and fit a model on real data, pure ε-DP; check both certificates."""
    require_extra("sklearn", "sklearn")
    require_extra("matplotlib", "plot")
    from zerodelta.cli.demo import run  # here, so that other commands start faster

    _print(f"wrote {run(out)}", to_errors=False)


@app.command()
def ui(
    port: Annotated[int, typer.Option(help="Of this computer; 0 takes a free one.")] = 0,
    browser: Annotated[bool, typer.Option(help="Open the page.")] = True,
) -> None:
    """Open the planner: predicted errors, break-even and snippets, on a page of this computer only.

    No data goes in, and nothing leaves this computer. Ctrl-C ends it.
    """
    import webbrowser  # here, so that other commands start faster

    from zerodelta.ui import serve

    def started(address: str) -> None:
        _print(f"planner: {address} (Ctrl-C ends it)", to_errors=False)
        if browser:
            webbrowser.open(address)

    try:
        serve(port, started)
    except (OSError, OverflowError):
        _print(f"port {port} cannot be used: pass --port 0 for a free one.", to_errors=True)
        raise typer.Exit(2) from None


@contextmanager
def _refusals() -> Iterator[None]:
    """Say what is wrong with what was asked in one line, and exit with 2."""
    try:
        yield
    except (ZeroDeltaError, ImportError) as error:
        _print(str(error), to_errors=True)
        raise typer.Exit(2) from None


def _print(text: str, *, to_errors: bool) -> None:
    """Print as it is, without Rich's markup; what the terminal cannot show becomes "?"."""
    encoding = (sys.stderr if to_errors else sys.stdout).encoding or "utf-8"
    typer.echo(text.encode(encoding, "replace").decode(encoding), err=to_errors)
