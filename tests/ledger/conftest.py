"""Ledgers for tests."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import zerodelta as zd
from ledger.postgres_server import Server, binaries
from zerodelta.ledger.store import close_all


@pytest.fixture
def path(tmp_path: Path) -> Iterator[str]:
    yield str(tmp_path / "budget.db")
    close_all()


NUMBERS = itertools.count()


@pytest.fixture(scope="module")  # one that is killed has few databases to recover
def server() -> Iterator[Server]:
    pytest.importorskip("psycopg", reason="pip install 'zerodelta[postgres]'")
    programs = binaries()
    if programs is None or not hasattr(os, "fork"):
        pytest.skip("PostgreSQL is not installed here: apt-get install postgresql")
    made = Server(programs)
    yield made
    close_all()
    made.remove()


@pytest.fixture
def url(server: Server) -> Iterator[str]:
    yield server.new_database(f"budgets_{next(NUMBERS)}")
    close_all()


@pytest.fixture
def ledger(path: str) -> zd.Ledger:
    return zd.Ledger(path, budget=1)
