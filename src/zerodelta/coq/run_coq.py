"""Coq itself, where it is installed, and the compiled proofs/ that it checks files against."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import final

__all__ = ["INSTALL", "Verdict", "missing", "run_coq"]

INSTALL = (
    "apt-get install coq libcoq-mathcomp-algebra libcoq-mathcomp-algebra-tactics libcoq-interval, "
    "then `make proofs`"
)
"""What makes Coq check files, on Debian."""


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """Whether Coq accepts a file, which Coq, and its words if it does not."""

    accepted: bool
    version: str
    message: str


def missing(proofs: Path) -> str | None:
    """Return what is missing to check a file, None if nothing is."""
    if shutil.which("coqc") is None:
        return f"Coq is not installed: {INSTALL}"
    if not (proofs / "Numbers.vo").exists():
        return f"the proofs in {proofs} are not compiled: run `make proofs`, or pass --proofs"
    return None


def run_coq(text: str, proofs: Path) -> Verdict:
    """Let Coq check the text of a file against the compiled proofs in that folder."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "release.v"
        path.write_text(text, encoding="utf-8")
        command = ["coqc", "-Q", str(proofs.resolve()), "Zerodelta", "-w", "none", str(path)]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
    return Verdict(accepted=run.returncode == 0, version=_version(), message=run.stderr.strip())


def _version() -> str:
    """Return the version as Coq says it, such as "8.16.1"."""
    run = subprocess.run(["coqc", "-print-version"], capture_output=True, text=True, check=True)
    return run.stdout.split()[0]
