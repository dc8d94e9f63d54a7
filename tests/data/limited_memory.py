"""A release in a process whose memory is limited, run by `test_kept_copy.py`.

    python -m data.limited_memory "mean" small.parquet large.parquet 64000000 folder

What libraries and a release of a few rows take is measured first; what is allowed comes on top.
"""

from __future__ import annotations

import resource
import sys
from pathlib import Path

import pyarrow.parquet as pq

import zerodelta as zd
from data.full_releases import COLUMNS, RELEASES, run

EVERYTHING = "everything at once"


def anonymous() -> int:
    """Return how many bytes of memory, not of files, this process has asked for."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmData:")) * 1024


def read(path: str) -> None:
    """Read a file into one table, which a large one does not allow."""
    try:
        pq.read_table(path)
    except MemoryError:  # Arrow's, too
        print("refused")
        sys.exit()


if __name__ == "__main__":
    name, small, large, allowed, folder = sys.argv[1:]
    memory = int(allowed) // 8
    if name == EVERYTHING:
        read(small)
    else:
        RELEASES[name][0](zd.open(small, columns=COLUMNS))
    limit = anonymous() + int(allowed)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    if name == EVERYTHING:
        read(large)
    people = zd.open(large, columns=COLUMNS, memory=memory, folder=folder)
    run(name, people, pq.read_metadata(large).num_rows)
    print("released")
