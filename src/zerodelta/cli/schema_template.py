"""`zerodelta init`: a schema to be filled in by somebody who knows what the columns may hold.

Only the names of columns are read, and only where they are declared to be no person's row. Kinds,
bounds and categories are never taken from rows: they would be published with every release.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from zerodelta.data.find_reader import reader_of

_HEAD = """\
# What is public of {file}: its columns, and who is protected. Fill it in from what you know of
# the columns, never from their rows: bounds and categories are published with every release.
name = {name}

[columns]
# One line for each column that may be used; leave the others out. Kinds:
#   age = {{number = [0, 120], integer = true}}   what lies outside is clipped
#   income = {{number = [0, 200000]}}             missing = "none" if no cell is missing: less noise
#   city = {{category = ["oslo", "rome"], other = true}}
#   member = {{boolean = true}}
#   joined = {{date = [2020-01-01, 2026-12-31], by = "month"}}
#   surname = {{text = 20, alphabet = "abcdefghijklmnopqrstuvwxyz"}}   texts that nobody listed
"""

_TAIL = """
# Who is protected, if one person may have several rows:
# [unit]
# column = "customer_id"
# max_rows = 3
"""


def names_in(data: Path, *, header: bool, file: Mapping[str, Any]) -> Sequence[str]:
    """Return the names of columns: from the header, or from a Parquet file's schema."""
    parquet = data.suffix.lower() in (".parquet", ".pq")
    return reader_of(data, dict(file)).names if header or parquet else ()


def template(data: Path, names: Sequence[str], *, header: bool, file: Mapping[str, Any]) -> str:
    """Return the text of a schema without any kind filled in."""
    text = _HEAD.format(file=_text(data.name), name=_text(data.name.partition(".")[0] or "data"))
    for name in names:
        bare = name.isascii() and name.replace("_", "").replace("-", "").isalnum()
        text += f"# {name if bare else _text(name)} = {{number = [LOWER, UPPER]}}\n"
    if not header:
        text += "# The file has no header: list all its columns, in their order.\n"
    text += _TAIL
    told = {**file, **({} if header else {"header": False})}
    if told.get("quote", "") is None:
        told["quote"] = "none"
    if told:
        lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in told.items()]
        text += "\n[file]\n" + "\n".join(lines) + "\n"
    return text


def _text(name: str) -> str:
    return json.dumps(name, ensure_ascii=False).replace("\x7f", "\\u007f")
