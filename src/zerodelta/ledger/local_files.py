"""Whether a file can be a ledger where it is: on a disk of this machine, under one name only.

SQLite keeps a log and a memory beside a file, by its name. Processes that see others of these see
another ledger, and would each spend what is left.
"""

from __future__ import annotations

import os
from contextlib import suppress
from glob import escape
from pathlib import Path

from zerodelta.errors import LedgerError

_LOCAL = ("ext4", "xfs", "btrfs", "zfs", "f2fs", "overlay", "tmpfs", "apfs")
"""File systems of one machine, whose processes share memory, as WAL needs."""

_ALLOWED = "ZERODELTA_FILE_SYSTEMS"
"""The variable of the environment that names others, separated by commas."""

_FILES = ("", "-wal", "-shm")


def file_system(path: str, mounts: str) -> str:
    """Return the kind of file system that a path is on, by the text of /proc/self/mounts.

    >>> file_system("/home/ana/x", "a / ext4 rw 0 0" + chr(10) + "b:/home /home nfs4 rw 0 0")
    'nfs4'
    """
    best, kind = "", ""
    for line in mounts.splitlines():
        fields = line.split(" ")
        if len(fields) < 3:
            continue
        place = fields[1].replace("\\040", " ").rstrip("/") + "/"
        if (path + "/").startswith(place) and len(place) >= len(best):
            best, kind = place, fields[2]
    return kind


def refuse_remote(path: str) -> None:
    """Refuse a place that two machines may share; where the system does not tell, nobody does."""
    try:
        mounts = Path("/proc/self/mounts").read_text(encoding="utf-8", errors="replace")
    except OSError:  # not on Linux
        return
    kind = file_system(os.path.realpath(Path(path).parent), mounts)
    allowed = {each.strip() for each in os.environ.get(_ALLOWED, "").split(",")} - {""}
    if kind not in {*_LOCAL, *allowed}:
        raise LedgerError(
            f"the ledger {path} is on a file system that is not known to be of this machine only "
            f"({kind}): on one of a network two machines may both spend what is left. Use a local "
            f"disk, or PostgreSQL; or, of a local disk, {_ALLOWED}={kind} (docs/ledger.md)."
        )


def refuse_links(path: str) -> None:
    """Refuse a file with a second name: under that one it would have another WAL."""
    if os.stat(path).st_nlink > 1:  # one that whoever makes it has not removed yet?
        for other in Path(path).parent.glob(f"{escape(Path(path).name)}.*.new"):
            with suppress(OSError):
                if other.samefile(path):
                    other.unlink()
    if os.stat(path).st_nlink > 1:
        raise LedgerError(
            f"the ledger {path} has a second name (a hard link), under which others could spend "
            "what is left once more: remove that name, which find -samefile shows."
        )


def identities(path: str) -> list[tuple[int, int] | None]:
    """Return which files stand under a ledger's names."""
    return [_identity(path + end) for end in _FILES]


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino
