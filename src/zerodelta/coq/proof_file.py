"""Write a certificate as a file for Coq, with one theorem for each step, and run Coq on it.

Coq decides whether the numbers prove the claim; nothing is decided here. Steps for which Coq has no
theorem are listed: they are proved on paper only (docs/theory.md).
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import final

from zerodelta.coq.statements import (
    FORMAL_CHANNELS,
    FORMAL_STEPS,
    PUBLIC,
    coq_number,
    mixture_theorem,
    step_epsilon,
    step_theorem,
)
from zerodelta.errors import CertificateError
from zerodelta.privacy.certificate import Certificate
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.composition import Composed, transcript_claim
from zerodelta.privacy.parameters import Neighbors
from zerodelta.privacy.steps import Part
from zerodelta.privacy.theorems.noise import ParallelBlocks
from zerodelta.privacy.theorems.subsampling import UnitTheorem
from zerodelta.privacy.theorems.theorem import BaseTheorem, ChannelTheorem, Theorem
from zerodelta.privacy.verify import theorem_of, units_of
from zerodelta.value import value

_HEAD = """\
(* {claim}
   certificate {digest}
   written by `zerodelta prove`; check it in the folder of the compiled proofs/:
   coqc -Q proofs Zerodelta {name}
{paper}*)
From mathcomp Require Import ssralg ssrint.
From Zerodelta Require Import Numbers.
Local Open Scope R_scope.
"""


@value
class ProofFile:
    """The text that Coq has to accept, and the parts of the certificate proved on paper only."""

    text: str
    paper: tuple[str, ...]
    epsilon: Fraction
    only_adds_up: bool
    """Whether Coq only adds up the ε of the steps, and has no theorem about any of them."""

    @property
    def is_empty(self) -> bool:
        """Tell whether Coq has no theorem about any step."""
        return "\nTheorem " not in self.text


def proof_file(certificate: Certificate, name: str = "release.v") -> ProofFile:
    """Return the text of a file for Coq that proves a pure certificate, part by part.

    >>> import zerodelta as zd
    >>> claim = zd.ApproxDP(1, -100.0)
    >>> file = proof_file(zd.plan(zd.Finite(16), epsilon=1, base=claim).certificate(claim))
    >>> "uniform_mixing" in file.text, file.paper
    (True, ('given (B6): the base mechanism satisfies its stated claim',))
    """
    claim = certificate.claim
    if type(claim) is not PureDP:
        raise CertificateError("the claim is not pure: only pure claims are written for Coq.")
    written = _Written(neighbors=claim.neighbors)
    parts = certificate.parts
    for number, part in enumerate(parts, start=1):
        stated = part.epsilon if len(parts) > 1 else claim.exact_epsilon
        written.costs.append(_part(part, stated, f"part_{number}", written))
    if claim.bounded_range:
        written.paper.append("bounded range: that the claim has one")
    total = sum(written.costs, Fraction(0))
    if len(parts) > 1 or total != claim.exact_epsilon:
        costs = [(cost, 1) for cost in written.costs]
        written.texts.append(_sum(costs, claim.exact_epsilon, "release"))
    paper = tuple(dict.fromkeys(written.paper))
    head = _HEAD.format(
        claim=f"pure differential privacy, epsilon = {claim.exact_epsilon}, delta = 0",
        digest=certificate.digest,
        name=_file_name(name),
        paper="".join(f"   proved on paper only: {premise}\n" for premise in paper),
    )
    text = "\n".join((head, *written.texts))
    return ProofFile(
        text=text,
        paper=paper,
        epsilon=claim.exact_epsilon,
        only_adds_up=bool(written.texts) and not written.proved,
    )


def _file_name(name: str) -> str:
    """Return the name if it is a plain file name, else "release.v": it stands in a Coq comment.

    >>> _file_name("out_1.v"), _file_name("x *) Axiom bad : False. (*.v")
    ('out_1.v', 'release.v')
    """
    return name if re.fullmatch(r"[A-Za-z]\w*\.v", name, re.ASCII) else "release.v"


@final
@dataclass(kw_only=True, slots=True)
class _Written:
    """The theorems, remarks and costs that were written so far."""

    neighbors: Neighbors
    texts: list[str] = field(default_factory=list)
    paper: list[str] = field(default_factory=list)
    costs: list[Fraction] = field(default_factory=list)
    proved: set[str] = field(default_factory=set)
    """The labels of the steps and channels for which Coq has a theorem."""


def _part(part: Part, stated: Fraction | None, name: str, written: _Written) -> Fraction:
    """Write the theorems of one part, and return the ε that they prove for it."""
    *before, last = (theorem_of(step) for step in part.steps)
    if isinstance(last, UnitTheorem):
        if last.asserted:
            written.paper.append(f"{last.label} ({last.section}): that a unit moves one vote only")
        row = None if stated is None else last.of_row(stated)
        inner = _part(Part(steps=part.steps[:-1], epsilon=row), row, name, written)
        unit = inner * last.times if stated is None else stated
        if not last.asserted:
            written.texts.append(_units(last, inner, unit, f"{name}_unit"))
        return unit
    if isinstance(last, ChannelTheorem):
        if stated is None:
            raise CertificateError("a part that ends in a channel has to state its ε.")
        _channel(part, before, last, stated, name, written)
        return stated
    bases = _bases([*before, last])
    if len(bases) == 1 and bases[0].count == 1 and stated is not None:
        return _single_step(bases[0], stated, name, written)
    costs = list(_steps(bases, written.neighbors, name, written))
    return _sum_of_steps(costs, stated, name, written)


def _sum_of_steps(
    costs: list[tuple[Fraction, int]], stated: Fraction | None, name: str, written: _Written
) -> Fraction:
    """Write that repeated costs add up to at most the stated ε, and return the total."""
    total = sum((cost * times for cost, times in costs), Fraction(0)) if stated is None else stated
    if stated is not None or costs != [(total, 1)]:
        written.texts.append(_sum(costs, total, name))
    return total


def _single_step(base: BaseTheorem, stated: Fraction, name: str, written: _Written) -> Fraction:
    """Write the only step of a part with the ε of the part, or with its own ε if that is fixed."""
    computed = step_epsilon(base, written.neighbors)
    epsilon = computed if computed is not None and base.label in _FIXED else stated
    text = step_theorem(base, written.neighbors, epsilon, name)
    if text is None:
        return _on_paper(base, computed, written)
    _note(base, written)
    written.texts.append(text)
    return epsilon


_STATED = "the base mechanism satisfies its stated claim"

_FIXED = ("pure-propose-test-release", "pure-local-sensitivity", "stable-mode")
"""Labels whose theorems have a condition on the ε that follows from their own numbers."""


def _steps(
    bases: list[BaseTheorem], neighbors: Neighbors, name: str, written: _Written
) -> Iterator[tuple[Fraction, int]]:
    """Write one theorem for each step, with its own ε; yield that ε and the step's repetitions."""
    for number, base in enumerate(bases, start=1):
        epsilon, step_name = step_epsilon(base, neighbors), f"{name}_step_{number}"
        text = None if epsilon is None else step_theorem(base, neighbors, epsilon, step_name)
        if epsilon is None or text is None:
            epsilon = _on_paper(base, epsilon, written)
        else:
            _note(base, written)
            written.texts.append(text)
        yield epsilon, base.count


def _on_paper(base: BaseTheorem, epsilon: Fraction | None, written: _Written) -> Fraction:
    """List a step for which Coq has no theorem; return its ε."""
    if epsilon is None:
        raise CertificateError(f"the steps prove no pure DP: {base.label!r} is not pure.")
    remark = _STATED if base.asserted else f"ε = {epsilon}"
    written.paper.append(f"{base.label} ({base.section}): {remark}")
    return epsilon


def _note(theorem: Theorem, written: _Written) -> None:
    """Note a label for which Coq has a theorem, and the premise that is proved on paper only."""
    written.proved.add(theorem.label)
    formal = FORMAL_STEPS.get(theorem.label)
    paper = formal.paper if formal else FORMAL_CHANNELS[theorem.label][1]
    if paper:
        written.paper.append(f"{theorem.label} ({theorem.section}): {paper}")


def _bases(theorems: list[Theorem]) -> list[BaseTheorem]:
    """Return the theorems as theorems of single mechanisms; refuse those of a whole chain."""
    bases = [theorem for theorem in theorems if isinstance(theorem, BaseTheorem)]
    if len(bases) != len(theorems):
        raise CertificateError("a theorem about all steps before it is not the last one.")
    return bases


def _channel(
    part: Part,
    before: list[Theorem],
    channel: ChannelTheorem,
    stated: Fraction,
    name: str,
    written: _Written,
) -> None:
    """Write the theorem of a part that ends in a channel, as Coq, or as a paper premise."""
    if isinstance(channel, ParallelBlocks):
        costs = list(_steps(_bases(before), Neighbors.ADD_REMOVE, name, written))
        one_row = _sum_of_steps(costs, None, f"{name}_group", written)
        written.texts.append(_groups(channel, one_row, stated, name))
        return
    units = units_of(part.steps)
    bases = _bases(before if units is None else before[:-1])
    base = _composed(bases, units, channel.before(written.neighbors)) if bases else None
    mixture = mixture_theorem(channel, base, stated, name)
    if mixture is None:
        labels = ", ".join(dict.fromkeys(theorem.label for theorem in (*before, channel)))
        written.paper.append(f"{channel.label} ({channel.section}): all of {labels}, ε = {stated}")
        return
    for theorem in (*bases, channel):
        if theorem.asserted:
            written.paper.append(f"{theorem.label} ({theorem.section}): {_STATED}")
    if mixture.profile_on_paper:
        labels = ", ".join(dict.fromkeys(theorem.label for theorem in before))
        written.paper.append(f"the profile ln δ(ε) of the base mechanism (B6): {labels}")
    _note(channel, written)
    written.texts.append(mixture.text)


def _composed(
    bases: list[BaseTheorem], units: UnitTheorem | None, neighbors: Neighbors
) -> Composed:
    """Return the claim of all steps together, converted to one of units if needed."""
    base = transcript_claim((step.claim(neighbors), step.count) for step in bases)
    if units is None:
        return base
    units.check_bases(bases)
    return units.of_unit(base)


def _groups(channel: ParallelBlocks, one_row: Fraction, stated: Fraction, name: str) -> str:
    """Return the theorem that disjoint groups cost no more than one of them (P3), for Coq."""
    t, rows = coq_number(one_row), coq_number(channel.unit_rows)
    return f"""\
Theorem {name} (Row T : eqType) (G : finType) (group : Row -> option G)
    (M : G -> seq Row -> T -> R) (unit_rows : nat) : INR unit_rows = {rows} ->
  (forall g d y, 0 <= M g d y) -> (forall g d d', perm_eq d d' -> M g d =1 M g d') ->
  (forall g, pure_DP_events (add_remove_rows 1) (M g) {t}) ->
  pure_DP_events (replace_rows unit_rows) (by_group group M) {coq_number(stated)}.
Proof.
intros m M0 order H; apply groups_replace with (t := {t}); try assumption; rewrite ?m; number.
Qed.
"""


def _units(units: UnitTheorem, row: Fraction, unit: Fraction, name: str) -> str:
    """Return the theorem that turns the ε of one row into that of a unit's rows, for Coq."""
    return f"""\
Theorem {name} {PUBLIC} (T : eqType) (M : D -> T -> R) (k : nat) :
  INR k = {units.times} -> (forall d y, 0 <= M d y) ->
  pure_DP_events neighbors M {coq_number(row)} ->
  pure_DP_events (changes neighbors k) M {coq_number(unit)}.
Proof.
intros m M0 H; apply units with (row := {coq_number(row)});
  [number | exact M0 | exact H | rewrite m; number].
Qed.
"""


def _sum(costs: list[tuple[Fraction, int]], total: Fraction, name: str) -> str:
    """Return the theorem that repeated steps of these costs cost at most the total, for Coq."""
    repeated = {f"n_{i}": times for i, (_, times) in enumerate(costs, start=1) if times > 1}
    listed = " ++ ".join(
        f"nseq n_{i} {coq_number(cost)}" if times > 1 else f"[:: {coq_number(cost)}]"
        for i, (cost, times) in enumerate(costs, start=1)
    )
    counts = f" ({' '.join(repeated)} : nat)" if repeated else ""
    hypotheses = "".join(f"  INR {count} = {times} ->\n" for count, times in repeated.items())
    names = "".join(f"m_{count} " for count in repeated)
    rewrites = "".join(f" ?m_{count}" for count in repeated)
    return f"""\
(* the steps one after another, each chosen by the answers before it *)
Theorem {name} {PUBLIC} (T : eqType) (K : D -> seq T -> T -> R){counts} :
{hypotheses}  let costs := {listed} in
  (forall d h y, 0 <= K d h y) ->
  (forall h, (size h < size costs)%N ->
     pure_DP_events neighbors (fun d => K d h) (nth 0 costs (size h))) ->
  pure_DP_events neighbors
    (fun d (ys : (size costs).-tuple T) => transcript (K d) [::] ys)
    {coq_number(total)}.
Proof.
intros {names}costs K0 H; apply (parts_add_up (costs := costs) K0 H); unfold costs.
rewrite ?sum_more ?sum_repeated ?big_cons ?big_nil{rewrites}; number.
Qed.
"""


# -- Running Coq on a file, with the compiled proofs/ ----------------------------------------------

INSTALL = (
    "apt-get install coq libcoq-mathcomp-algebra libcoq-mathcomp-algebra-tactics libcoq-interval, "
    "then `make proofs`"
)
"""The commands that install Coq on Debian, and compile the proofs."""

_COQ_AXIOMS = {
    "ClassicalDedekindReals.sig_not_dec",
    "ClassicalDedekindReals.sig_forall_dec",
    "FunctionalExtensionality.functional_extensionality_dep",
    "Classical_Prop.classic",
}
"""The axioms of Coq's real numbers; besides these only machine integers are allowed."""
_MACHINE_INTEGERS = ("PrimInt63.", "Uint63.")


@value
class CoqVerdict:
    """Whether Coq accepts a file, Coq's version, and its message if it does not."""

    accepted: bool
    version: str
    message: str


def missing(proofs: Path) -> str | None:
    """Return what is missing to check a file, with the remedy; None if nothing is."""
    if shutil.which("coqc") is None:
        return f"Coq is not installed: {INSTALL}"
    if not (proofs / "Numbers.vo").exists():
        return f"the proofs in {proofs} are not compiled: run `make proofs`, or pass --proofs"
    return None


def run_coq(text: str, proofs: Path, *, axioms: bool = False) -> CoqVerdict:
    """Let Coq check the text of a file against the compiled proofs in that folder.

    With `axioms` Coq also lists the axioms that the theorems rest on (some seconds). Axioms other
    than those of Coq's real numbers and machine integers are refused: something is not proved.
    """
    theorems = re.findall(r"^Theorem (\w+)", text, re.MULTILINE) if axioms else []
    if theorems:
        listed = ", ".join(f"@{name}" for name in theorems)
        text += f"Definition all_theorems := ({listed}).\nPrint Assumptions all_theorems.\n"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "release.v"
        path.write_text(text, encoding="utf-8")
        command = ["coqc", "-Q", str(proofs.resolve()), "Zerodelta", "-w", "none", str(path)]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
    accepted, message = run.returncode == 0, run.stderr.strip()
    if accepted and theorems and (others := _other_axioms(run.stdout)):
        accepted, message = False, f"the proofs rest on more than Coq's axioms: {', '.join(others)}"
    return CoqVerdict(accepted=accepted, version=_version(), message=message)


def _other_axioms(printed: str) -> list[str]:
    """Return the axioms in Coq's output that are not allowed, and lines that cannot be read."""
    if printed.strip() == "Closed under the global context":
        return []
    first, *lines = re.findall(r"^\S.*", printed, re.MULTILINE) or ["nothing was listed"]
    names = [line.split(" :")[0] for line in lines]
    other = [n for n in names if n not in _COQ_AXIOMS and not n.startswith(_MACHINE_INTEGERS)]
    return other if first == "Axioms:" and names else [first, *other]


def _version() -> str:
    """Return Coq's version, such as "8.16.1"."""
    run = subprocess.run(["coqc", "-print-version"], capture_output=True, text=True, check=True)
    return run.stdout.split()[0]
