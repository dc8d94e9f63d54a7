"""Files that are written once: each is there as a whole or not at all, and replaces no other."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from zerodelta.errors import ParameterError


def write_new(
    path: str | os.PathLike[str], content: bytes | str, *, name: str = "path", mode: int = 0o666
) -> None:
    """Write a new file; one that is there is refused, unless it holds just that.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "a.txt")
    >>> write_new(path, "first")
    >>> write_new(path, "first")
    >>> write_new(path, "second")
    Traceback (most recent call last):
    ...
    zerodelta.errors.ParameterError: path = ...: expected a new file, as ...
    """
    data = content.encode("utf-8") if isinstance(content, str) else content
    place = Path(os.path.abspath(path))
    beside = place.with_name(f"{place.name}.{secrets.token_hex(8)}")
    try:
        handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY, mode)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if not _named(beside, place) and not _holds(place, data):
            raise ParameterError(
                name,
                os.fspath(path),
                expected="a new file, as nothing is written over",
                remedy="choose another name, or move what is there",
            )
    except OSError as error:  # it names the file beside it
        raise OSError(error.errno, error.strerror or str(error), os.fspath(path)) from None
    finally:
        beside.unlink(missing_ok=True)


_BINARY = getattr(os, "O_BINARY", 0)


def _holds(place: Path, data: bytes) -> bool:
    return place.is_file() and place.stat().st_size == len(data) and place.read_bytes() == data


def _named(beside: Path, place: Path) -> bool:
    """Give a whole file its name; False if that is taken."""
    try:
        os.link(beside, place)
    except FileExistsError:
        return False
    except OSError:  # no links on this file system: the name is taken first
        try:
            place.open("xb").close()
        except FileExistsError:
            return False
        try:
            beside.replace(place)
        except BaseException:
            place.unlink(missing_ok=True)
            raise
    return True
