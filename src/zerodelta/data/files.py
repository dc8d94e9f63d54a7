"""Paths and patterns of files that hold one table together, in the order of their names."""

from __future__ import annotations

import glob
import re
from collections.abc import Sequence
from os import PathLike, fspath
from pathlib import Path, PurePath
from typing import Any

from zerodelta.data.columns import own_sequence
from zerodelta.errors import ParameterError, require

_URL = re.compile(r"(?is)[a-z][\w+.-]+:/|.*://")
"""A scheme (a drive has one letter), as pathlib writes it too."""


def is_path(source: object) -> bool:
    """Tell whether this is a path or pattern, or a list of `pathlib.Path`.

    A list of texts is a column: that would have to be decided by what its rows are.
    """
    if isinstance(source, (list, tuple)):
        # a cell may be there: nothing but its type is looked at
        return any(issubclass(type(first), PurePath) for first in own_sequence(source)[:1])
    return isinstance(source, (str, PathLike))


def found_files(source: Any) -> tuple[Path, ...]:
    """Return the files that a path, a pattern or a list of them names, sorted by name."""
    given = source if isinstance(source, (list, tuple)) else [source]
    files: set[Path] = set()
    for each in given:
        require(
            isinstance(each, (str, PathLike)),
            "source",
            type(each),
            expected="paths",
            remedy="pass a list of pathlib.Path",
        )
        name = fspath(each)
        try:
            matched = _matching(name)
        except (OSError, ValueError, RuntimeError):  # no path of this system
            matched = []
        if not matched and _URL.match(name):
            raise ParameterError(
                "source",
                expected="a path of this machine: a URL is neither opened nor repeated here, as it "
                "may hold a password",
                remedy="open what it leads to with DuckDB, Polars or Spark, and pass that",
            )
        if not matched:
            raise ParameterError(
                "source",
                name,
                expected="a file, or a pattern that matches some",
                remedy='check the path; name the files of a folder as "folder/*.parquet"',
            )
        files.update(matched)
    return tuple(sorted(files, key=str))


def _matching(name: str) -> list[Path]:
    path = Path(name).expanduser()
    if path.is_file():
        return [path]
    found = [Path(each) for each in glob.glob(str(path), recursive=True)]
    return [each for each in found if each.is_file()]


def same_names(names: Sequence[tuple[str, ...]], kind: str) -> tuple[str, ...]:
    """Return the names of the columns, which all files must have, in any order."""
    first = sorted(names[0])
    require(
        all(sorted(each) == first for each in names),
        "source",
        expected=f"{kind} files with the same column names",
        remedy="open files of other columns by themselves",
    )
    return names[0]


def shown_files(source: Any, files: Sequence[Path], kind: str) -> str:
    """Return what a source of files is, in one line: its own name, no contents."""
    if len(files) == 1:
        return f"{kind} file {files[0].name}"
    if isinstance(source, (str, PathLike)):
        return f"{len(files)} {kind} files {Path(fspath(source)).name}"
    return f"{len(files)} {kind} files"
