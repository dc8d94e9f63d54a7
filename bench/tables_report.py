"""Print errors, seconds and lines of `bench/tables.py` as Markdown."""

from __future__ import annotations

import ast
import inspect
import json
import math
import subprocess
import sys
import tempfile
import textwrap
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

EPSILON, OURS, TUMULT = 1, "zerodelta", "Tumult (clock)"
RELATIONS = {"replace": "one replaced row", "add-remove": "one added or removed row"}


def lines_of(function: Callable[..., Any]) -> int:
    """Count the lines of a function's body: no comments, no docstring, no blank lines."""
    text = textwrap.dedent(inspect.getsource(function))
    node = ast.parse(text).body[0]
    assert isinstance(node, ast.FunctionDef)
    docstring = ast.get_docstring(node) is not None
    first = node.body[1 if docstring else 0].lineno
    body = text.splitlines()[first - 1 : node.end_lineno]
    return sum(bool(line.strip()) and not line.strip().startswith("#") for line in body)


class Report:
    """Errors, seconds and lines of one relation, by task and by who answered."""

    def __init__(self, relation: str, told: Sequence[Mapping[str, Any]] = ()) -> None:
        self.relation, self.told = relation, told
        self.errors: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
        self.cost: dict[str, dict[str, tuple[float, int]]] = defaultdict(dict)

    def add(
        self, task: str, who: str, runs: int, ask: Callable[[], Any], lines: int, score: Any
    ) -> None:
        """Ask some times, and keep the scores of the answers."""
        seconds = []
        for _ in range(runs):
            start = time.process_time()
            answer = ask()
            seconds.append(time.process_time() - start)
            for name, error in score(answer).items():
                self.errors[f"{task}: {name}"][who].append(error)
        self.cost[task][who] = float(np.median(seconds)), lines
        print(self.relation, task, who, f"{sum(seconds):.1f} s", file=sys.stderr, flush=True)

    def add_told(self, task: str, called: str, score: Any, form: Callable[[Any], Any]) -> None:
        """Keep what Tumult answered in its own process, if asked; seconds are the clock's."""
        told = [each for each in self.told if each["task"] == called]
        for each in told:
            for name, error in score(form(each["answer"])).items():
                self.errors[f"{task}: {name}"][TUMULT].append(error)
        if told:
            clock = float(np.median([each["seconds"] for each in told]))
            self.cost[task][TUMULT] = clock, told[0]["lines"]

    def show(self) -> None:
        """Print both tables."""
        if not self.errors:
            return
        found = [who for each in self.errors.values() for who in each]
        names = [name for name in dict.fromkeys(found) if name != OURS]
        print(f"\n### {RELATIONS[self.relation].capitalize()}, ε = {EPSILON}: mean errors\n")
        header(["task: error", OURS, *names, "best peer over ours"])
        for task, by in self.errors.items():
            others = [name for name in names if name in by and not name.startswith("zd.")]
            others = [name for name in others if len(by[name]) > 1] or others  # one run is luck
            best = min(others, key=lambda name: np.mean(by[name]), default=None)
            cells = [number(by[name]) if name in by else "" for name in (OURS, *names)]
            print(row([task, *cells, ratio(by, best)]))
        print(f"\n### {RELATIONS[self.relation].capitalize()}: processor seconds (lines)\n")
        header(["task", OURS, *names, "fastest peer over ours"])
        for task, cost in self.cost.items():
            told = [f"{cost[n][0]:.2g} ({cost[n][1]})" if n in cost else "" for n in (OURS, *names)]
            skipped = ("zd.", TUMULT)
            times = [cost[n][0] for n in names if n in cost and not n.startswith(skipped)]
            print(row([task, *told, f"{min(times) / cost[OURS][0]:.1f}" if times else ""]))


def tumult(python: str, frame: Any, relation: str) -> list[Any]:
    """Ask Tumult twice for each task, at ε/2 where a row is replaced: it adds or removes one."""
    epsilon = EPSILON / 2 if relation == "replace" else EPSILON
    script = Path(__file__).with_name("tables_tumult.py")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "people.parquet"
        frame.write_parquet(path)
        command = [python, str(script), str(path), str(epsilon), "2"]
        found = subprocess.run(command, stdout=subprocess.PIPE, cwd=folder, check=True, text=True)
    return [json.loads(line) for line in found.stdout.splitlines()]


def header(names: Sequence[str]) -> None:
    print(row(names))
    print("|---" * len(names) + "|")


def row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def number(errors: Sequence[float]) -> str:
    value = float(np.mean(errors))
    return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"


def ratio(by: Mapping[str, list[float]], best: str | None) -> str:
    """Return the best peer's error over ours, with a standard error."""
    if best is None or not np.mean(by[OURS]):
        return ""
    pair = [np.array(by[name]) for name in (best, OURS)]
    top, bottom = (float(each.mean()) for each in pair)
    if len(pair[0]) == 1:
        return f"{top / bottom:.2f} ({best}, one run)"
    spread = [each.std(ddof=1) / math.sqrt(len(each)) / each.mean() for each in pair if each.mean()]
    return f"{top / bottom:.2f} ± {top / bottom * math.hypot(*spread):.2f} ({best})"
