"""`verify`, `audit` and `demo`: what they print, how they exit, what they never import."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import zerodelta as zd
from privacy.theorem_cases import CASES
from zerodelta.cli import app
from zerodelta.cli import demo as audit_tasks
from zerodelta.cli.verify_files import MEANING
from zerodelta.privacy.readable import LARGEST_TEXT

PROTECTS = "  protects one row of the data (replace)"
SAMPLERS = ("noise", "argmax", "integers", "bits")


@pytest.fixture
def certificate() -> zd.records.Certificate:
    claim = zd.GaussianDP("1/10")
    return zd.plan(zd.Finite(16), epsilon="3/4", base=claim).certificate(claim)


@pytest.fixture
def good(tmp_path: Path, certificate: zd.records.Certificate) -> Path:
    path = tmp_path / "good.json"
    path.write_text(certificate.to_json(), encoding="utf-8")
    return path


def run(*arguments: str | Path) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["verify", *map(str, arguments)])
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result.exit_code, result.output


def test_a_proven_certificate_prints_its_summary_and_exits_with_0(
    good: Path, certificate: zd.records.Certificate
) -> None:
    code, output = run(good)
    assert code == 0
    assert output == f"{good}: {certificate.summary}\n{PROTECTS}\n{MEANING}\n"
    assert "0.75" in output


def test_explain_prints_every_step_as_it_is(
    good: Path, certificate: zd.records.Certificate
) -> None:
    code, output = run(good, "--explain")
    assert code == 0
    assert output == f"{good}: {certificate.explain()}\n{MEANING}\n"
    assert "[asserted]" in output  # square brackets are not taken for markup
    assert "theorem B1" in output


@pytest.mark.parametrize("as_text", [True, False])
def test_a_release_file_with_a_certificate_inside_is_accepted(
    tmp_path: Path, certificate: zd.records.Certificate, as_text: bool
) -> None:
    path = tmp_path / "release.json"
    text = certificate.to_json()
    path.write_text(json.dumps({"value": 3, "certificate": text if as_text else json.loads(text)}))
    assert run(path) == (0, f"{path}: {certificate.summary}\n{PROTECTS}\n{MEANING}\n")


def test_a_forged_certificate_exits_with_1_and_says_why(
    tmp_path: Path, certificate: zd.records.Certificate
) -> None:
    data = json.loads(certificate.to_json())
    data["claim"]["epsilon"] = "1/2"
    path = tmp_path / "forged.json"
    path.write_text(json.dumps(data))
    code, output = run(path)
    assert code == 1
    assert "NOT VERIFIED" in output
    assert "digest does not match" in output


@pytest.mark.parametrize(
    "content",
    [b"", b"no json", b"[]", b"3", b'{"certificate": 3}', b"\xff\xfe", b"[" * 100_000, b'"x"'],
)
def test_unreadable_files_exit_with_1_and_no_traceback(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "broken.json"
    path.write_bytes(content)
    code, output = run(path)
    assert code == 1
    assert "NOT VERIFIED" in output


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"value": 3', '"value": 4, "value": 3'),
        ('"certificate": {', '"certificate": {}, "certificate": {'),
        ('"epsilon": "3/4"', '"epsilon": "1/100", "epsilon": "3/4"'),
        ('"size": 16', '"size": 1, "size": 16'),
        ('"note": {', '"note": {"deep": [{"a": 1, "a": 2}], '),
    ],
)
def test_a_release_file_in_which_a_name_occurs_twice_is_refused_at_every_depth(
    tmp_path: Path, certificate: zd.records.Certificate, old: str, new: str
) -> None:
    inner = json.loads(certificate.to_json())
    text = json.dumps({"value": 3, "note": {"x": 0.5}, "certificate": inner})
    path = tmp_path / "release.json"
    path.write_text(text)
    assert run(path)[0] == 0
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))
    code, output = run(path)
    assert code == 1
    assert "twice" in output
    assert MEANING not in output


def test_a_file_of_more_than_ten_megabytes_is_refused_unread(
    tmp_path: Path, certificate: zd.records.Certificate
) -> None:
    path = tmp_path / "large.json"
    path.write_text(certificate.to_json() + " " * LARGEST_TEXT)
    code, output = run(path)
    assert code == 1
    assert "more than 10000000 bytes" in output


def test_a_claim_with_a_delta_above_0_is_refused_unless_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "gaussian.json"
    path.write_text(CASES["adaptive-zcdp"].to_json(), encoding="utf-8")
    code, output = run(path)
    assert code == 1
    assert "that is not pure, as it allows a δ above 0: pass --impure" in output
    assert run(path, "--impure")[0] == 0
    assert run(path, "--impure", "--epsilon", "100")[0] == 1


def test_proven_refuses_what_a_caller_asserts(good: Path, tmp_path: Path) -> None:
    assert run(good)[0] == 0
    code, output = run(good, "--proven")
    assert code == 1
    assert "the weakest step is asserted" in output
    saved = tmp_path / "mean.json"
    zd.mean([1.0], bounds=(0, 1), epsilon=1).save(saved)
    assert run(saved, "--proven")[0] == 0


def test_the_command_says_what_verified_means_once(good: Path) -> None:
    code, output = run(good, good)
    assert code == 0
    assert output.count(MEANING) == 1
    for words in ("steps prove the claim", "not mean that these steps were run", "nobody has sign"):
        assert words in MEANING


def test_one_file_that_cannot_be_read_among_good_ones_exits_with_1(
    good: Path, tmp_path: Path
) -> None:
    for path in (tmp_path / "missing.json", tmp_path):
        code, output = run(good, path, good)
        assert code == 1
        assert "cannot be read" in output
        assert output.count("ε = 0.75") == 2


def test_verifying_loads_no_sampler(good: Path, tmp_path: Path) -> None:
    saved = tmp_path / "saved.json"
    zd.mean([1.0], bounds=(0, 1), epsilon=1).save(saved)
    code = f"""
import sys
from pathlib import Path
from zerodelta.cli.verify_files import report
from zerodelta.privacy.verify import verify
verify(Path({str(good)!r}).read_text())
assert report(Path({str(good)!r}), explain=True).good
assert report(Path({str(saved)!r}), explain=True).saved
names = [f"zerodelta.exact.{{name}}" for name in {SAMPLERS!r}]
assert "zerodelta.exact.logs" in sys.modules
print([name for name in names if name in sys.modules])
print([name for name in sys.modules if name.startswith(("zerodelta.purify", "zerodelta.mech"))])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[]\n[]\n"


def test_the_samplers_named_above_exist() -> None:
    home = Path(zd.__file__).parent / "exact"
    assert all((home / f"{name}.py").exists() for name in SAMPLERS)


def test_the_demonstration_ends_in_verified_releases_and_a_report(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["demo", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    files = [tmp_path / name / "release.json" for name in ("table", "features", "model")]
    code, output = run(*files, "--epsilon", "3")
    assert code == 0
    assert "'tumors': 3 releases, together pure ε = 2.5 (replace)" in output
    assert "1/2 of 3 left" in result.output
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "3 releases, together pure ε = 2.5 (replace)" in page
    names = zd.load(files[1]).value
    assert zd.load(files[2]).coef_.shape == (1, len(names))
    again = CliRunner().invoke(app, ["demo", "--out", str(tmp_path)])
    assert again.exit_code == 0, again.output
    assert (tmp_path / "run-2" / "report.html").exists()


def audited(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["audit", *arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result.exit_code, result.output


def test_audit_tries_to_refute_our_own_tasks() -> None:
    code, output = audited("mode", "mean", "--samples", "100", "--confidence", "0.999999")
    assert code == 0
    first, second, last = output.splitlines()
    assert first.startswith("mode ")
    assert second.startswith("mean ")
    assert "not refuted" in first
    assert last == audit_tasks.MEANING


def test_audit_prints_json_and_exits_with_1_if_a_claim_is_refuted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    leak = audit_tasks.AuditedTask(run=lambda rows, epsilon: rows, datasets=(0, 1))
    monkeypatch.setitem(audit_tasks.TASKS, "leak", leak)
    code, output = audited("leak", "--samples", "400", "--epsilon", "1/2", "--json")
    assert code == 1
    (found,) = json.loads(output)
    assert found["violated"]
    assert found["claimed"] == "1/2"
    assert found["epsilon_lower"] > 2


def test_every_audited_task_runs() -> None:
    code, output = audited("--samples", "40", "--confidence", "0.999999", "--json")
    assert code == 0
    assert [each["task"] for each in json.loads(output)] == list(audit_tasks.TASKS)


def test_audit_refuses_unknown_tasks_and_malformed_numbers() -> None:
    for arguments, words in (
        (("men",), 'did you mean "mean"?'),
        (("mean", "--epsilon", "0"), "epsilon"),
        (("mean", "--confidence", "1"), "confidence"),
        (("mean", "--samples", "3"), "samples"),
    ):
        code, output = audited(*arguments)
        assert code == 2
        assert words in output
