"""Coq itself, where it is installed, and the compiled proofs/ that it checks files against."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from zerodelta.value import value

INSTALL = (
    "apt-get install coq libcoq-mathcomp-algebra libcoq-mathcomp-algebra-tactics libcoq-interval, "
    "then `make proofs`"
)
"""What makes Coq check files, on Debian."""

_OF_COQ = {
    "ClassicalDedekindReals.sig_not_dec",
    "ClassicalDedekindReals.sig_forall_dec",
    "FunctionalExtensionality.functional_extensionality_dep",
    "Classical_Prop.classic",
}
"""The axioms of Coq's own real numbers; its machine integers are the only others."""
_MACHINE_INTEGERS = ("PrimInt63.", "Uint63.")


@value
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


def run_coq(text: str, proofs: Path, *, axioms: bool = False) -> Verdict:
    """Let Coq check the text of a file against the compiled proofs in that folder.

    With `axioms` Coq also lists what the theorems rest on (some seconds), and more than Coq's own
    real numbers and machine integers is refused: something in that folder is not proved.
    """
    theorems = re.findall(r"^Theorem (\w+)", text, re.MULTILINE) if axioms else []
    if theorems:
        listed = ", ".join(f"@{name}" for name in theorems)
        text += f"Definition all_of_it := ({listed}).\nPrint Assumptions all_of_it.\n"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "release.v"
        path.write_text(text, encoding="utf-8")
        command = ["coqc", "-Q", str(proofs.resolve()), "Zerodelta", "-w", "none", str(path)]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
    accepted, message = run.returncode == 0, run.stderr.strip()
    if accepted and theorems and (more := _other_axioms(run.stdout)):
        accepted, message = False, f"the proofs rest on more than Coq's axioms: {', '.join(more)}"
    return Verdict(accepted=accepted, version=_version(), message=message)


def _other_axioms(printed: str) -> list[str]:
    """Return what Coq lists that is not its own; whatever is not understood is listed too."""
    if printed.strip() == "Closed under the global context":
        return []
    first, *lines = re.findall(r"^\S.*", printed, re.MULTILINE) or ["nothing was listed"]
    names = [line.split(" :")[0] for line in lines]
    other = [n for n in names if n not in _OF_COQ and not n.startswith(_MACHINE_INTEGERS)]
    return other if first == "Axioms:" and names else [first, *other]


def _version() -> str:
    """Return the version as Coq says it, such as "8.16.1"."""
    run = subprocess.run(["coqc", "-print-version"], capture_output=True, text=True, check=True)
    return run.stdout.split()[0]
