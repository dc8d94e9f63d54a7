"""The command line: one function a command, each a thin wrapper of the library."""

from __future__ import annotations

import typer
from rich.console import Console

import zerodelta

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
