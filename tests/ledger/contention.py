"""Many processes on one ledger, killed or not: what they were told is what stands in it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import zerodelta as zd
from ledger import spenders
from ledger.postgres_server import PASSWORD
from ledger.spenders import EPSILON, charge
from zerodelta.ledger.store import as_address, close_all


def debits(ledger: zd.Ledger) -> list[int]:
    """Return the numbers of the entries that are debits."""
    return [row["number"] for row in ledger.history if row["kind"] == "debit"]


def contend(address: str, *, processes: int, threads: int, times: int) -> None:
    """Let all ask for a little more than there is, and compare what was told with what is there."""
    asked = processes * threads * times
    covered = asked * 19 // 20
    ledger = zd.Ledger(address, budget=covered * EPSILON)
    close_all()
    told = _ran("many", address, processes, threads, times)
    entries = debits(ledger)
    assert sorted(told["acknowledged"]) == entries  # none lost, none twice
    assert len(entries) == covered  # none overspent, none refused that was covered
    assert ledger.remaining == 0
    assert ledger.verify() == covered + 2
    print(f"{asked} reservations, {asked / told['seconds']:.0f} a second")


def kill(address: str, *, times: int) -> None:
    """Kill who spends at any instant, so often: nothing that was told is lost."""
    ledger = zd.Ledger(address, budget=10**6)
    close_all()
    told = _ran("kill", address, times)["acknowledged"]
    entries = debits(ledger)
    assert len(set(told)) == len(told)
    assert set(told) <= set(entries)  # what was told counts
    assert len(entries) - len(told) <= 2 * times  # at most one of each process was not told
    assert ledger.spent == len(entries) * EPSILON
    assert ledger.verify() == len(entries) + 2
    ledger.debit(charge())


def _ran(how: str, address: str, *numbers: int) -> dict[str, Any]:
    """Run spenders, which take a password from the environment."""
    command = [sys.executable, spenders.__file__, how, as_address(address), *map(str, numbers)]
    environment = {**os.environ, "PGPASSWORD": PASSWORD}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found
