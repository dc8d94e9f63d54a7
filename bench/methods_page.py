"""Print the page "Choose a method" of the site: what `zd.advise` says of every task."""

from __future__ import annotations

import math

import zerodelta as zd

HEAD = """# Choose a method

`method="auto"` takes the method with the least predicted error, and `zd.advise` shows all of them
before there is data. This page is what it says of every task at typical numbers (n = 10 000 rows
where that matters, ε = 1), printed by `bench/methods_page.py`. Yours are different: ask
`print(zd.advise("mean", n=…, epsilon=…, bounds=…))`, or move them on the
[planner page](command-line.md#the-planner-page).

*Useful from*: with that many rows the error is a tenth of that of a guess without any. *×*: the
predicted error over the best one's.
"""


def number(value: int) -> str:
    return f"{value:,}".replace(",", " ")


def lines() -> list[str]:
    """Return the page, line by line."""
    page_lines = [HEAD]
    for advice in zd.advise():
        useful_rows = advice.useful_from
        numbers = ", ".join(
            f"{name} = {short(value)}"
            for name, value in advice.numbers.items()
            if name not in ("n", "epsilon")
        )
        useful = "" if useful_rows is None else f" Useful from n ≈ {number(useful_rows)}."
        unit = " ".join(advice.unit.split())
        page_lines += [
            f"## {advice.task}",
            "",
            f"{f'For {numbers}. ' if numbers else ''}Error: {unit}.{useful}",
            "",
            "| method | × | when |",
            "|---|---|---|",
        ]
        for method in advice:
            times = method.error / advice.best.error
            shown = f"{times:.2g}" if math.isfinite(times) else "–"
            page_lines.append(f"| {method.name} | {shown} | {cell(method.why)} |")
        page_lines += ["", f"`{cell(advice.call)}`", ""]
    return page_lines


def short(value: object) -> str:
    if isinstance(value, dict):
        return f"{len(value)} columns"
    text = str(value)
    return text if len(text) < 60 else text[:57] + "…"


def cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "∣")


def page() -> str:
    return "\n".join(lines()).rstrip() + "\n"


if __name__ == "__main__":
    print(page(), end="")
