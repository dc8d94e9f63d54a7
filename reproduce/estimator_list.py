"""List the estimators with their first sentences and commands, and the commands of models.

`python -m reproduce.estimator_list` writes the list of docs/sklearn.md and the line of models in
docs/command-line.md again. Tests check that the pages have them.
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path

from zerodelta import sklearn
from zerodelta.tasks.registry import COMMANDS, TASKS

_DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGES = (_DOCS / "sklearn.md", _DOCS / "command-line.md")
START, END = "<!-- written by `python -m reproduce.estimator_list` -->", "<!-- end of the list -->"
_LINE = re.compile(r"^(\| a model \| .*: )`.*` \|$", re.MULTILINE)


def render(page: str) -> str:
    """Return a page with its list, or its line of models, written again."""
    if START in page:
        before, _, rest = page.partition(START)
        _, _, after = rest.partition(END)
        rows = "\n".join(map(_row, sklearn.__all__))
        page = f"{before}{START}\n\n| | | command |\n|---|---|---|\n{rows}\n\n{END}{after}"
    models = [name for name, task in COMMANDS.items() if TASKS[task].estimator or name == "tree"]
    line = ", ".join(f"`{name}`" for name in models)
    return _LINE.sub(lambda found: f"{found[1]}{line} |", page)


def _row(name: str) -> str:
    sentence = str(inspect.getdoc(getattr(sklearn, name))).partition("\n")[0]
    commands = [
        f"`zerodelta {command}`"
        for command, task in COMMANDS.items()
        if TASKS[task].estimator == name
    ]
    return f"| `{name}` | {sentence} | {', '.join(commands) or '-'} |"


if __name__ == "__main__":
    for path in PAGES:
        path.write_text(render(path.read_text(encoding="utf-8")), encoding="utf-8")
