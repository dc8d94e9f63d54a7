"""Measure the releases that a ledger can pay for in a second, against the disk's syncs.

    python bench/ledger.py [--folder /on/the/disk] [--seconds 5] [--url postgresql://…]

A debit counts once it is on the disk: no ledger can be faster than the disk syncs one small write
after another. The bar is 500 debits a second, or half of that rate. A reservation and its commit
are one transaction here.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path

from rich.console import Console
from rich.table import Table

import zerodelta as zd
from zerodelta.data.source import Charge
from zerodelta.privacy.parameters import Neighbors

BAR = 500


def rate(work: Callable[[], object], seconds: float) -> float:
    """Return how often something can be done in a second."""
    work()
    done, began = 0, time.perf_counter()
    while time.perf_counter() - began < seconds:
        work()
        done += 1
    return done / (time.perf_counter() - began)


def synced_writes(folder: Path) -> Callable[[], object]:
    """Return a write of one WAL frame at the end of a file, synced as SQLite does."""
    handle = os.open(folder / "synced", os.O_CREAT | os.O_RDWR)
    frame = bytes(4096 + 24)

    def write() -> None:
        os.write(handle, frame)
        (os.fdatasync if hasattr(os, "fdatasync") else os.fsync)(handle)

    return write


def debit(ledger: zd.Ledger) -> Callable[[], object]:
    """Return one debit."""
    charge = Charge(
        epsilon=Fraction(1, 10**6),
        neighbors=Neighbors.REPLACE,
        unit=None,
        task="mean(income)",
        question=None,
        certificate="0" * 64,
    )
    return lambda: ledger.debit(charge)


def in_threads(address: str, threads: int, seconds: float) -> float:
    """Return how often threads debit in a second, together."""
    work = debit(zd.Ledger(address))
    with ThreadPoolExecutor(threads) as crew:
        return sum(crew.map(lambda _: rate(work, seconds), range(threads)))


def in_processes(address: str, processes: int, threads: int, seconds: float) -> float:
    """Return how often threads of forked processes debit in a second, together."""
    pipes = []
    for _ in range(processes):
        read, write = os.pipe()
        if os.fork() == 0:
            os.write(write, str(in_threads(address, threads, seconds)).encode())
            os._exit(0)
        os.close(write)
        pipes.append(read)
    total = sum(float(os.read(pipe, 100)) for pipe in pipes)
    for _ in pipes:
        os.wait()
    return total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path.cwd())
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--url")
    options = parser.parse_args()
    table = Table("what", "per second", "of the disk's rate")
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        disk = rate(synced_writes(Path(folder)), options.seconds)
        table.add_row("synced writes of 4 KiB", f"{disk:.0f}", "1.00")
        ledger = zd.Ledger(Path(folder) / "budget.db", budget=10**6)
        one = rate(debit(ledger), options.seconds)
        table.add_row("debits, one thread", f"{one:.0f}", f"{one / disk:.2f}")
        four = in_processes(ledger.address, 4, 4, options.seconds)
        table.add_row("debits, 4 processes × 4 threads", f"{four:.0f}", f"{four / disk:.2f}")
        ledger.verify()
    if options.url:
        served = rate(debit(zd.Ledger(options.url, budget=10**6)), options.seconds)
        table.add_row("debits on PostgreSQL, one thread", f"{served:.0f}", f"{served / disk:.2f}")
    Console().print(table)
    met = one >= min(BAR, disk / 2)
    print(f"bar: {min(BAR, disk / 2):.0f} a second: {'met' if met else 'missed'}")
    sys.exit(not met)


if __name__ == "__main__":
    main()
