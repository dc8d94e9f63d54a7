"""People for every test of the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.people import write_people


@pytest.fixture
def people(tmp_path: Path) -> Path:
    return write_people(tmp_path)
