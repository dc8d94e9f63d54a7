"""Released values as the lines of a CSV file: keys are anyone's words, and some begin a formula."""

from __future__ import annotations

import csv
import io
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from zerodelta.errors import printable

_FORMULAS = frozenset("=+-@|%")
"""What a cell begins with that a spreadsheet takes for a formula, or a command."""

_CUTS = frozenset(";,|")
"""Where a program that was told another delimiter begins a new cell, quoted or not."""


def csv_lines(heads: Iterable[Any], lines: Iterable[Iterable[Any]]) -> str:
    r"""Return a CSV file, every cell quoted.

    Texts are on one line without control or direction characters; ' stands before what a
    spreadsheet would run, also after a ; inside of a text. Numbers are as they are.

    >>> print(csv_lines(["key", "count"], [["tea", -3], [" =1+1", 2], ["a;=1\x1b", 1]]), end="")
    "key","count"
    "tea","-3"
    "' =1+1","2"
    "a;'=1\x1b","1"
    """
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n", quoting=csv.QUOTE_ALL)
    for line in (heads, *lines):
        writer.writerow([_harmless(cell) if isinstance(cell, str) else cell for cell in line])
    return file.getvalue()


def noted(columns: Mapping[str, Sequence[Any]], note: str) -> dict[str, Sequence[Any]]:
    """Return columns with one more that has a note in each line, so that no line loses it.

    >>> noted({"key": [], "count": []}, "no key was found")
    {'key': [None], 'count': [None], 'note': ['no key was found']}
    """
    if not note:
        return dict(columns)
    name = "note"
    while name in columns:
        name += "_"
    lines = max(map(len, columns.values()), default=0)
    filled = columns if lines else {each: [None] for each in columns}
    return {**filled, name: [note] * max(lines, 1)}


def _harmless(cell: str) -> str:
    """Return a text with ' wherever a cell might begin that a spreadsheet runs.

    >>> [_harmless(cell) for cell in ("＝1", "a-b; c=d", "x;  -1")]
    ["'＝1", 'a-b; c=d', "x;  '-1"]
    """
    text = printable(cell)
    made: list[str] = []
    begins, space = True, ""
    for c in text:
        if begins and c in ' "':
            space += c
            continue
        if begins and unicodedata.normalize("NFKC", c) in _FORMULAS:
            made.append(f"'{space}" if not made else f"{space}'")
            space = ""
        made.append(space + c)
        begins, space = c in _CUTS, ""
    return "".join(made) + space
