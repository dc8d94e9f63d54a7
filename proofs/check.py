"""What every theorem of proofs/ rests on, as Coq prints it, against what is allowed.

`make proofs` runs this after the files are compiled. The algebra rests on no axiom at all; what is
about real numbers rests on axioms of Coq's library of real numbers only; what Coq-Interval computes
also rests on Coq's machine integers. Anything else fails, and so does an unproved statement.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent
FILES = [line for line in (ROOT / "_CoqProject").read_text().split() if line.endswith(".v")]
THEOREM = re.compile(r"^(?:Theorem|Corollary) (\w+)", re.MULTILINE)
COMMENT = re.compile(r"\(\*.*?\*\)", re.DOTALL)
UNPROVED = re.compile(
    r"\b(Axioms?|Admitted|admit|Parameters?|Conjecture|give_up|bypass_check|type_in_type"
    r"|Unset (?:Guard|Positivity|Universe) Checking)\b"
)
OUTSIDE = re.compile(r"^(Hypothes[ie]s|Variables?|Context)\b", re.MULTILINE)

CLOSED = "Closed under the global context"
REALS = {
    "ClassicalDedekindReals.sig_not_dec",
    "ClassicalDedekindReals.sig_forall_dec",
    "FunctionalExtensionality.functional_extensionality_dep",
    "Classical_Prop.classic",
}
"""The axioms of Coq's own real numbers."""
MACHINE_INTEGERS = re.compile(r"^(PrimInt63|Uint63)\.")
ABOUT_REALS = {"PureDP.v", "Totals.v", "Laplace.v", "Numbers.v"}


def theorems() -> dict[str, list[str]]:
    """Return the theorems of each file, in order."""
    return {name: THEOREM.findall(_code(name)) for name in FILES}


def _code(name: str) -> str:
    return COMMENT.sub("", (ROOT / name).read_text(encoding="utf-8"))


def unproved() -> list[str]:
    """Return what is stated without a proof: words Coq takes on trust, loose hypotheses."""
    found = []
    for name in FILES:
        code = _code(name)
        found += [f"{name}: {match[0]}" for match in UNPROVED.finditer(code)]
        open_sections = 0
        for line in code.splitlines():
            open_sections += line.startswith("Section ") - line.startswith("End ")
            if not open_sections and OUTSIDE.match(line):
                found.append(f"{name}: outside of a section: {line}")
    return found


def assumptions(names: dict[str, list[str]]) -> dict[str, set[str]]:
    """Return the axioms that Coq prints for each theorem; for those about real numbers, by file.

    A whole file is asked about at once where each theorem would list the same library again.
    """
    lines = [f"From Zerodelta Require {file.removesuffix('.v')}." for file in names]
    asked = []
    for file, found in names.items():
        module = file.removesuffix(".v")
        if file in ABOUT_REALS:
            listed = ", ".join(f"@{module}.{name}" for name in found)
            lines.append(f"Definition all_of_{module} := ({listed}).")
            asked.append((f"{file}: {', '.join(found)}", f"all_of_{module}"))
        else:
            asked += [(f"{file}: {name}", f"{module}.{name}") for name in found]
    lines += [f"Print Assumptions {what}.\nEval compute in tt." for _, what in asked]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "Assumptions.v"
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        run = subprocess.run(
            ["coqc", "-Q", str(ROOT), "Zerodelta", "-w", "none", str(path)],
            capture_output=True,
            text=True,
            check=False,
        )
    if run.returncode:
        raise SystemExit(f"Coq refuses the list of theorems:\n{run.stderr}")
    printed = re.split(r"^ *= tt\n *: unit\n?", run.stdout, flags=re.MULTILINE)[:-1]
    if len(printed) != len(asked):
        raise SystemExit(f"Coq printed {len(printed)} answers for {len(asked)} questions.")
    return {told: _axioms(text) for (told, _), text in zip(asked, printed, strict=True)}


def _axioms(printed: str) -> set[str]:
    if CLOSED in printed:
        return set()
    lines = [
        line for line in printed.splitlines() if line and not line.startswith((" ", "Axioms:"))
    ]
    named = [re.match(r"([\w.]+)(?: :|$)", line) for line in lines]
    found = {name[1] if name else f"{line!r}" for name, line in zip(named, lines, strict=True)}
    return found or {f"something that was not understood: {printed}"}


def forbidden(theorem: str, axioms: set[str]) -> set[str]:
    """Return the axioms that the theorem may not rest on."""
    file = theorem.partition(":")[0]
    allowed = REALS if file in ABOUT_REALS else set()
    return {
        axiom
        for axiom in axioms - allowed
        if not (file == "Numbers.v" and MACHINE_INTEGERS.match(axiom))
    }


def main() -> int:
    """Print what every theorem rests on; return 1 if that is not allowed."""
    bad = [f"stated without a proof: {what}" for what in unproved()]
    for theorem, axioms in assumptions(theorems()).items():
        machine = {axiom for axiom in axioms if MACHINE_INTEGERS.match(axiom)}
        told = sorted(axioms - machine) + (["Coq's machine integers"] if machine else [])
        print(f"{theorem}\n    {', '.join(told) if told else CLOSED}")
        if wrong := forbidden(theorem, axioms):
            bad.append(f"{theorem} rests on {', '.join(sorted(wrong))}")
    if bad:
        print(*bad, sep="\n", file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
