"""The compiled proofs/, where Coq is installed and `make proofs` was run."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

PROOFS = Path(__file__).resolve().parents[2] / "proofs"


def _up_to_date() -> bool:
    sources = list(PROOFS.glob("*.v"))
    return all(
        source.with_suffix(".vo").exists()
        and source.with_suffix(".vo").stat().st_mtime >= source.stat().st_mtime
        for source in sources
    )


needs_coq = pytest.mark.skipif(
    shutil.which("coqc") is None or not _up_to_date(),
    reason="Coq is not installed, or the proofs are not compiled: run `make proofs`",
)
