"""Measure Study against its rivals at equal total pure ε, in one run: lines (a) to (f).

(a) 1 of 16 after 1000 adaptive queries, (b) features, (c) trained networks, and a tree,
(d) two moons and three data sets nothing was tuned on, (e) k-means, (f) run time and memory.
Name some lines to run only those: `python bench/study.py a f`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.study_fixed_features import fixed_features
from bench.study_kmeans import line_e
from bench.study_selection import line_a, line_b, line_c, line_tree
from bench.study_training import line_d, line_f

LINES: dict[str, Callable[[], Any]] = {
    "a": line_a,
    "b": line_b,
    "c": line_c,
    "tree": line_tree,
    "d": lambda: [*line_d(), fixed_features()],
    "f": line_f,
}


def main() -> None:
    console = Console(width=120)
    chosen = sys.argv[1:] or [*LINES, "e"]
    for name in chosen:
        console.rule(f"({name})")
        if name == "e":
            line_e(console)
            continue
        tables = LINES[name]()
        for table in tables if isinstance(tables, list) else [tables]:
            console.print(table)


if __name__ == "__main__":
    main()
