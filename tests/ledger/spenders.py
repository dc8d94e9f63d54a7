"""Processes that spend from one ledger, for tests: `python spenders.py many|kill ADDRESS …`.

A process of its own, without threads of pytest, so that it may fork.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import zerodelta as zd
from zerodelta.data.source import Charge
from zerodelta.ledger import store
from zerodelta.privacy.parameters import Neighbors

EPSILON = Fraction(1, 1000)


def charge(
    epsilon: Fraction | str | int = EPSILON,
    *,
    neighbors: Neighbors = Neighbors.REPLACE,
    unit: str | None = None,
    question: str | None = None,
    again: bool = False,
) -> Charge:
    return Charge(
        epsilon=Fraction(epsilon),
        neighbors=neighbors,
        unit=unit,
        task="mean(income)",
        question=question,
        certificate="0" * 64,
        again=again,
    )


def as_a_new_process() -> None:
    """Close what is open, and forget what was seen, as only the end of a process does."""
    store.close_all()
    store._PLACES.clear()


def in_a_process(code: str, *arguments: object) -> str:
    """Return what a process that runs the code prints; it may import from this file."""
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), *sys.path]),
        },
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


def forked(work: Callable[[int], None]) -> tuple[int, int]:
    """Run work(pipe) in a child; return its process and the end of the pipe to read from."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        try:
            work(write)
        finally:
            os._exit(0)
    os.close(write)
    return child, read


def everything(pipe: int) -> list[int]:
    """Return the numbers that were written to a pipe, until it was closed."""
    with os.fdopen(pipe) as file:
        return [int(line) for line in file.read().splitlines()]


def spend(ledger: zd.Ledger, times: int, pipe: int) -> None:
    """Debit so often, and write down each entry as soon as it counts; stop when refused."""
    for _ in range(times):
        try:
            receipt = ledger.debit(charge())
        except zd.errors.LedgerError:
            raise
        except zd.errors.BudgetError:
            return
        os.write(pipe, f"{receipt.entry}\n".encode())


def many(address: str, processes: int, threads: int, times: int) -> dict[str, object]:
    """Spend in threads of processes."""

    def work(pipe: int) -> None:
        ledger = zd.Ledger(address)
        crew = [threading.Thread(target=spend, args=(ledger, times, pipe)) for _ in range(threads)]
        for each in crew:
            each.start()
        for each in crew:
            each.join()

    began = time.monotonic()
    zd.Ledger(address)  # opens a connection, which a fork must not inherit
    children = [forked(work) for _ in range(processes)]
    readers: list[list[int]] = [[] for _ in children]

    def drain(place: int, pipe: int) -> None:
        readers[place] = everything(pipe)

    draining = [
        threading.Thread(target=drain, args=(place, pipe))
        for place, (_, pipe) in enumerate(children)
    ]
    for each in draining:
        each.start()
    for each in draining:
        each.join()
    for child, _ in children:
        os.waitpid(child, 0)
    acknowledged = [entry for entries in readers for entry in entries]
    return {"acknowledged": acknowledged, "seconds": time.monotonic() - began}


def kill(address: str, times: int) -> dict[str, object]:
    """Kill two spending processes at a random instant, again and again."""
    acknowledged = []
    instants = random.Random(17)
    for _ in range(times):
        children = [forked(lambda pipe: spend(zd.Ledger(address), 10**9, pipe)) for _ in range(2)]
        time.sleep(instants.uniform(0, 0.03))
        for child, _ in children:
            os.kill(child, signal.SIGKILL)
        for child, pipe in children:
            acknowledged += everything(pipe)
            os.waitpid(child, 0)
    return {"acknowledged": acknowledged}


if __name__ == "__main__":
    numbers = list(map(int, sys.argv[3:]))
    told = many(sys.argv[2], *numbers) if sys.argv[1] == "many" else kill(sys.argv[2], *numbers)
    print(json.dumps(told))
