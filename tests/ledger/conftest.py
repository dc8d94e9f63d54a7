"""Ledgers for tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import zerodelta as zd
from zerodelta.ledger.store import close_all


@pytest.fixture
def path(tmp_path: Path) -> Iterator[str]:
    yield str(tmp_path / "budget.db")
    close_all()


@pytest.fixture
def ledger(path: str) -> zd.Ledger:
    return zd.Ledger(path, budget=1)
