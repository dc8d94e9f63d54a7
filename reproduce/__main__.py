"""`make reproduce`: the paper's figures and tables, measured again, with progress bars."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from reproduce.run import EXPERIMENTS, reproduce

__all__ = ["run"]


def run(
    out: Path,
    *,
    quick: bool,
    keep: Path | None = None,
    only: Sequence[str] = (),
    most: int | None = None,
    console: Console | None = None,
) -> Path:
    """Write everything into `out`, drawing a bar for figures, runs and pictures."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console) as progress:
        bars = {
            name: progress.add_task(name, total=None) for name in ("Figures", "Tables", "Pictures")
        }

        def report(stage: str, done: int, total: int) -> None:
            bar = bars.get(stage, bars["Tables"])
            name = stage if stage in bars else f"Tables: {stage}"
            progress.update(bar, description=name, completed=done, total=total)

        return reproduce(out, quick=quick, keep=keep, only=only, most=most, report=report)


def main() -> None:
    """Write SVGs, reproduce.html and reproduce.json."""
    parser = argparse.ArgumentParser(prog="python -m reproduce", description=main.__doc__)
    parser.add_argument("--out", type=Path, default=Path("reproduced"), help="made if missing")
    parser.add_argument("--quick", action="store_true", help="two points to a curve, no slopes")
    parser.add_argument(
        "--keep", type=Path, help="write what the site shows below this folder, too"
    )
    parser.add_argument("--only", nargs="+", choices=EXPERIMENTS, default=(), help="some rows only")
    parser.add_argument("--repeats", type=int, help="at most so many a point, for a rough run")
    arguments = parser.parse_args()
    console = Console()
    options: dict[str, Any] = {
        "keep": arguments.keep,
        "only": arguments.only,
        "most": arguments.repeats,
    }
    written = run(arguments.out, quick=arguments.quick, console=console, **options)
    console.print(f"wrote {written}")


if __name__ == "__main__":
    main()
