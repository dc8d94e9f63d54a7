"""List the estimators: the first sentence of each, and its command.

`python -m reproduce.estimator_list` writes the list of docs/sklearn.md again. A test checks that
the page has it.
"""

from __future__ import annotations

import inspect
from pathlib import Path

from zerodelta import sklearn
from zerodelta.tasks.registry import COMMANDS, TASKS

PAGE = Path(__file__).resolve().parent.parent / "docs" / "sklearn.md"
START, END = "<!-- written by `python -m reproduce.estimator_list` -->", "<!-- end of the list -->"


def render(page: str) -> str:
    """Return the page with its list written again."""
    before, _, rest = page.partition(START)
    _, _, after = rest.partition(END)
    rows = "\n".join(map(_row, sklearn.__all__))
    return f"{before}{START}\n\n| | | command |\n|---|---|---|\n{rows}\n\n{END}{after}"


def _row(name: str) -> str:
    sentence = str(inspect.getdoc(getattr(sklearn, name))).partition("\n")[0]
    commands = [
        f"`zerodelta {command}`"
        for command, task in COMMANDS.items()
        if TASKS[task].estimator == name
    ]
    return f"| `{name}` | {sentence} | {', '.join(commands) or '-'} |"


if __name__ == "__main__":
    PAGE.write_text(render(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
