"""The command line: one function a command, each a thin wrapper of the library."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

import zerodelta
from zerodelta.errors import require_extra

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
) -> None:
    """Re-derive the claim of each certificate; exit with 1 if one does not prove what it says.

    The steps prove the claim: that is what is checked. Not that they were run; nobody has signed
    them.
    """
    from zerodelta.cli.verify_files import (  # here, so that other commands start faster
        MEANING,
        report,
    )

    verdicts = []
    for path in files:
        good, text = report(path, explain=explain)
        _print(f"{path}: {text}" if good else f"{path}: NOT VERIFIED: {text}", to_errors=not good)
        verdicts.append(good)
    if any(verdicts):
        _print(MEANING, to_errors=False)
    if not all(verdicts):
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


def _print(text: str, *, to_errors: bool) -> None:
    """Print as it is, without Rich's markup; what the terminal cannot show becomes "?"."""
    encoding = (sys.stderr if to_errors else sys.stdout).encoding or "utf-8"
    typer.echo(text.encode(encoding, "replace").decode(encoding), err=to_errors)
