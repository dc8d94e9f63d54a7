"""The physical lines of a text file, as bytes: a record ends at LF, whatever stands in it.

Lines are cut before anything is decoded or split into cells, so that no line can swallow, split or
retype another. Threads read pieces of a file: a piece holds the lines that begin in it.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import IO, cast

import numpy as np

LONGEST_LINE = 1 << 20
"""Bytes before the LF; a longer line is an empty one, that is, a row of missing cells."""

_BLOCK = 1 << 20


def open_bytes(path: Path) -> IO[bytes]:
    """Open a file, decompressing one that ends in .gz."""
    if path.suffix.lower() == ".gz":
        return cast(IO[bytes], gzip.open(path, "rb"))
    return open(path, "rb", buffering=0)


def first_line(file: IO[bytes], *, longest: int = LONGEST_LINE) -> tuple[bytes | None, int]:
    r"""Return the first line, None if it is too long, and where the second one begins.

    >>> import io
    >>> first_line(io.BytesIO(b"age,income\n40,100\n"))
    (b'age,income', 11)
    """
    file.seek(0)
    start = b""
    while len(start) <= longest and b"\n" not in start and (block := file.read(_BLOCK)):
        start += block
    line, end, _ = start.partition(b"\n")
    return (None if len(line) > longest else line), len(line) + len(end)


def count_lines(file: IO[bytes]) -> int:
    r"""Return the number of lines; the last one may lack its LF.

    >>> import io
    >>> count_lines(io.BytesIO(b"a\n\nb")), count_lines(io.BytesIO(b""))
    (3, 0)
    """
    file.seek(0)
    lines, last = 0, b"\n"
    while block := file.read(_BLOCK):
        lines += newlines(block)
        last = block[-1:]
    return lines + (last != b"\n")


def newlines(chunk: bytes) -> int:
    """Return the number of LF bytes."""
    return int(np.count_nonzero(np.frombuffer(chunk, dtype=np.uint8) == 10))


def line_chunks(
    file: IO[bytes],
    start: int = 0,
    stop: int | None = None,
    *,
    block: int = _BLOCK,
    longest: int = LONGEST_LINE,
) -> Iterator[bytes]:
    r"""Yield the lines that begin in [start, stop) as chunks of whole lines, each ended by LF.

    A line of more than `longest` bytes comes as an empty one; no more than that is ever held.

    >>> import io
    >>> list(line_chunks(io.BytesIO(b"1\n22\n333"), 1, 6))
    [b'22\n', b'333\n']
    """
    block = min(block, longest)  # so that only a line begun in an earlier block can be too long
    position = max(0, start - 1)  # a line begins at `start` if the byte before it is LF
    file.seek(position)
    skipping, last, dropped = start > 0, False, False
    rest = b""
    while not last and (data := file.read(block)):
        if skipping:
            begin = data.find(b"\n") + 1
            skipping = begin == 0
            position += begin or len(data)
            data = data[begin or len(data) :]
            if stop is not None and position >= stop:
                return
        if stop is not None and position + len(data) >= stop:
            end = data.find(b"\n", max(0, stop - 1 - position)) + 1
            last, data = end > 0, data[: end or len(data)]
        position += len(data)
        first, cut = data.find(b"\n"), data.rfind(b"\n") + 1
        if dropped or len(rest) + (first if cut else len(data)) > longest:
            dropped, rest = True, b""
        if not cut:
            rest = b"" if dropped else rest + data
            continue
        yield data[first:cut] if dropped else rest + data[:cut]
        dropped, rest = False, data[cut:]
    if rest or dropped:
        yield rest + b"\n"
