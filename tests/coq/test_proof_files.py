"""What `zerodelta prove` writes and says, with Coq and without."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import zerodelta as zd
from coq.compiled import PROOFS, needs_coq
from coq.edge_certificates import certificate
from privacy.theorem_cases import CASES
from zerodelta.cli import app
from zerodelta.coq.proof_file import proof_file, run_coq
from zerodelta.coq.statements import FORMAL_CHANNELS, FORMAL_STEPS
from zerodelta.privacy.steps import Step

PURE = {label: made for label, made in CASES.items() if type(made.claim) is zd.purification.PureDP}


def run(*arguments: str | Path) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["prove", *map(str, arguments)])
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result.exit_code, result.output


@pytest.fixture
def release(tmp_path: Path) -> Path:
    path = tmp_path / "release.json"
    path.write_text(certificate(0, valid=True).to_json(), encoding="utf-8")
    return path


@pytest.mark.parametrize("label", sorted(PURE))
def test_every_label_has_a_theorem_or_is_taken_on_paper(label: str) -> None:
    written = proof_file(PURE[label])
    formal = FORMAL_STEPS.keys() | FORMAL_CHANNELS.keys() | {"parallel-blocks", "units"}
    steps = {step.theorem for step in PURE[label].steps}
    assert written.is_empty is not bool(steps & formal)
    for step in steps - formal:
        assert any(step in what for what in written.paper)
    assert all(f"proved on paper only: {what}\n" in written.text for what in written.paper)


def test_the_verdict_on_a_table_names_the_law_that_is_drawn(tmp_path: Path) -> None:
    """The theorem states round(Laplace); the sampler of tables draws the geometric law."""
    kinds = {"city": zd.category(["oslo", "rome"]), "age": zd.number(0, 120)}
    cells = np.zeros(100, dtype=[("city", "U4"), ("age", np.float64)])
    people = zd.open(cells, columns=kinds, neighbors="add-remove", expected_rows=100)
    release = zd.table(people, by="city", of={"age": ["mean"]}, epsilon=1)
    assert release.sums[0].law.family == "geometric"
    release.save(tmp_path / "table.json")
    code, output = run(tmp_path / "table.json", "--proofs", tmp_path)
    assert code == 0
    assert "proved on paper only: partition-laplace (P1): that the noise drawn has" in output
    assert "the two-sided geometric law" in output
    assert "the two-sided geometric law" in (tmp_path / "table.v").read_text(encoding="utf-8")


def test_the_claimed_epsilon_is_in_the_theorem() -> None:
    made = PURE["stable-mode"]
    assert made.claim == zd.purification.PureDP("1/2")
    assert "/ outputs Y) (1/2)." in proof_file(made).text


def test_a_claim_that_is_not_pure_is_refused() -> None:
    with pytest.raises(zd.errors.CertificateError, match="not pure"):
        proof_file(CASES["adaptive-zcdp"])


def test_several_parts_add_up_in_one_theorem() -> None:
    made = certificate(9, valid=True)
    text = proof_file(made).text
    assert re.findall(r"^Theorem (\w+)", text, re.MULTILINE) == [
        *("part_1_step_1", "part_1", "part_2_step_1", "part_3_step_1", "part_3"),
        *("part_4_step_1", "part_4", "release"),
    ]
    counts = [part.steps[0].numbers["count"] for part in made.parts]
    assert [int(n) for n in re.findall(r"INR n_1 = (\d+) ->", text)] == [n for n in counts if n > 1]
    assert text.count("apply (parts_add_up") == 4


def test_several_steps_in_a_group_add_up_before_the_groups_do() -> None:
    flip = {"sensitivity": 1, "scale": 10, "monotone": False}
    group = Step(
        theorem="permute-and-flip", numbers=flip, neighbors=zd.records.Neighbors.ADD_REMOVE
    )
    blocks = Step(theorem="parallel-blocks", numbers={"blocks": 7, "unit_rows": 1})
    made = zd.records.Certificate(claim=zd.purification.PureDP("4/5"), steps=(group, group, blocks))
    text = proof_file(made).text
    assert "let costs := [:: (1/5)] ++ [:: (1/5)] in" in text
    assert "pure_DP_events (add_remove_rows 1) (M g) (2/5)" in text


def test_a_unit_costs_as_many_times_as_it_has_rows() -> None:
    steps = (
        Step(theorem="rounded-laplace", numbers={"sensitivity": 1, "scale": 10}),
        Step(theorem="units", numbers={"max_rows": 3}),
    )
    made = zd.records.Certificate(claim=zd.purification.PureDP("3/10"), steps=steps, unit="person")
    text = proof_file(made).text
    assert "INR k = 3" in text
    assert "pure_DP_events neighbors M (1/10) ->" in text
    assert "M (3/10)." in text


def test_without_coq_the_file_is_written(release: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    code, output = run(release)
    assert code == 0
    assert "not checked by Coq: Coq is not installed: apt-get install coq" in output
    assert release.with_suffix(".v").read_text(encoding="utf-8").startswith("(* pure differential")


def test_without_compiled_proofs_the_file_is_written(release: Path, tmp_path: Path) -> None:
    code, output = run(release, "--proofs", tmp_path, "--out", tmp_path / "other.v")
    assert code == 0
    assert "not checked by Coq" in output
    assert (tmp_path / "other.v").exists()


def test_what_is_not_verified_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    path.write_text(certificate(1, valid=False).to_json(), encoding="utf-8")
    code, output = run(path)
    assert code == 1
    assert "NOT VERIFIED" in output
    assert not path.with_suffix(".v").exists()


def test_a_certificate_that_coq_says_nothing_about_says_so(tmp_path: Path) -> None:
    path = tmp_path / "quantiles.json"
    path.write_text(PURE["joint-quantiles"].to_json(), encoding="utf-8")
    code, output = run(path)
    assert code == 0
    assert "Coq has no theorem about these steps" in output
    assert "proved on paper only: joint-quantiles (Q)" in output


@needs_coq
def test_coq_accepts_and_says_what(release: Path) -> None:
    code, output = run(release, "--proofs", PROOFS)
    assert code == 0
    assert "Coq 8." in output
    assert "accepts: ε" in output
    assert "δ = 0, if the steps proved on paper hold\nproved on paper only: given (B6)" in output


@needs_coq
def test_coq_accepts_a_table_and_a_selection(tmp_path: Path) -> None:
    rows = [0.1, 0.2, 0.6, 0.7]
    for name, release in {
        "table": zd.histogram(rows, bins=[0, 0.5, 1], epsilon=1),
        "selection": zd.quantile(rows, q=0.5, bounds=(0, 1), epsilon=1),
    }.items():
        path = tmp_path / f"{name}.json"
        path.write_text(release.certificate.to_json(), encoding="utf-8")
        code, output = run(path, "--proofs", PROOFS)
        assert code == 0
        assert "accepts: ε = 1, δ = 0" in output


BAD = "x *) Axiom bad : False. (*"


@pytest.mark.parametrize("name", [f"{BAD}.v", 'a"b.v', "two\nlines.v", "ε.v", "a-b.v", "1.v", ""])
def test_no_name_of_a_file_is_read_as_coq(name: str) -> None:
    text = proof_file(certificate(0, valid=True), name).text
    assert text == proof_file(certificate(0, valid=True), "release.v").text
    assert "Zerodelta other_1.v\n" in proof_file(certificate(0, valid=True), "other_1.v").text


def test_no_name_in_a_certificate_is_in_the_file() -> None:
    steps = (
        Step(theorem="rounded-laplace", numbers={"sensitivity": 1, "scale": 10}),
        Step(theorem="units", numbers={"max_rows": 3}),
    )
    made = zd.records.Certificate(
        claim=zd.purification.PureDP("3/10"), steps=steps, unit=f'{BAD} "'
    )
    assert "bad" not in proof_file(made).text


@needs_coq
def test_coq_refuses_what_rests_on_an_axiom() -> None:
    text = "Axiom bad : False.\nTheorem part_1 : False.\nProof. exact bad. Qed.\n"
    assert run_coq(text, PROOFS).accepted
    verdict = run_coq(text, PROOFS, axioms=True)
    assert not verdict.accepted
    assert verdict.message == "the proofs rest on more than Coq's axioms: bad"
    assert run_coq("Theorem part_1 : True. Proof. exact I. Qed.\n", PROOFS, axioms=True).accepted


@pytest.mark.parametrize("ends", ["exit 1", "kill -9 $$", "exit 0", "echo Done", "echo Axioms:"])
def test_a_coq_that_fails_accepts_nothing(
    ends: str, release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    coq = tmp_path / "coqc"
    coq.write_text(f'#!/bin/sh\n[ "$1" = -print-version ] && echo 8.16.1 && exit\n{ends}\n')
    coq.chmod(0o755)
    (tmp_path / "Numbers.vo").touch()
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    code, output = run(release, "--proofs", tmp_path)
    assert code == 1
    assert "Coq 8.16.1 REFUSES" in output
    assert "accepts:" not in output


@needs_coq
def test_what_coq_only_adds_up_is_said(tmp_path: Path) -> None:
    part = PURE["joint-quantiles"].parts[0]
    claim = PURE["joint-quantiles"].claim
    assert isinstance(claim, zd.purification.PureDP)
    path = tmp_path / "two.json"
    made = zd.records.Certificate(
        claim=zd.purification.PureDP(2 * claim.exact_epsilon), parts=(part, part)
    )
    path.write_text(made.to_json(), encoding="utf-8")
    code, output = run(path, "--proofs", PROOFS)
    assert code == 0
    only = "proved on paper only"
    assert f"it only added up: every step is {only}\n{only}: joint-q" in output
