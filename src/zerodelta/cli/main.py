"""The command line: one function a command, each a thin wrapper of the library."""

from __future__ import annotations

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
