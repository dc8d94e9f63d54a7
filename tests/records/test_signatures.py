"""Ed25519 signatures of saved releases: who vouches for them."""

from __future__ import annotations

import json
import stat
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import zerodelta as zd
from zerodelta.cli import app
from zerodelta.cli.verify_files import SIGNED, UNCHECKED

pytest.importorskip("cryptography", reason="pip install 'zerodelta[sign]'")


def run(*arguments: str | Path) -> tuple[int, str]:
    result = CliRunner().invoke(app, [*map(str, arguments)])
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result.exit_code, result.output


@pytest.fixture
def keys(tmp_path: Path) -> tuple[Path, Path]:
    code, output = run("keys", tmp_path / "mine")
    assert code == 0
    assert len(output.split()[-1]) == 64
    return tmp_path / "mine.key", tmp_path / "mine.pub"


def income() -> Any:
    return zd.mean([30.0], bounds=(0, 100), epsilon=1)


def test_what_is_signed_is_loaded_and_verified(keys: tuple[Path, Path], tmp_path: Path) -> None:
    private, public = keys
    assert stat.S_IMODE(private.stat().st_mode) == 0o600
    one, two = tmp_path / "one.json", tmp_path / "two.json"
    income().save(one, sign=private)
    signed = income().sign(private)
    signed.save(two)
    raw = signed.signatures[0].key
    for path in (one, two):
        assert zd.load(path, signed_by=public).value == zd.load(path, signed_by=raw).value
        code, output = run("verify", path, "--signed-by", public)
        assert code == 0
        assert f"signed by {raw}" in output
        assert SIGNED in output
    told = run("verify", one)[1]
    assert "checked with --signed-by" in told
    assert UNCHECKED in told
    assert "nobody has signed" not in told
    again = zd.load(two)
    again.save(tmp_path / "copy.json")
    assert (tmp_path / "copy.json").read_bytes() == two.read_bytes()


def test_what_is_not_signed_so_is_refused(keys: tuple[Path, Path], tmp_path: Path) -> None:
    private, public = keys
    run("keys", tmp_path / "other")
    path = tmp_path / "income.json"
    income().save(path)
    with pytest.raises(zd.errors.RecordError, match="not signed by"):
        zd.load(path, signed_by=public)
    income().sign(private).save(tmp_path / "signed.json")
    with pytest.raises(zd.errors.RecordError, match="not signed by"):
        zd.load(tmp_path / "signed.json", signed_by=tmp_path / "other.pub")
    code, output = run("verify", path, "--signed-by", public)
    assert code == 1
    assert "NOT VERIFIED: it is not signed by" in output
    (tmp_path / "plain.json").write_text(income().certificate.to_json())
    assert "a certificate alone" in run("verify", tmp_path / "plain.json", "--signed-by", public)[1]


def test_a_wrong_signature_is_refused(keys: tuple[Path, Path], tmp_path: Path) -> None:
    private, public = keys
    path = tmp_path / "income.json"
    income().save(path, sign=private)
    data = json.loads(path.read_text())
    other = tmp_path / "other.json"
    income().save(other, sign=private)
    (found,) = data["signatures"]
    of_other = json.loads(other.read_text())["signatures"][0]["signature"]
    for wrong in (of_other, "00" * 64, "zz", "", found["signature"][:-2]):
        path.write_text(json.dumps({**data, "signatures": [{**found, "signature": wrong}]}))
        with pytest.raises(zd.errors.RecordError, match="do not rely on it"):
            zd.load(path, signed_by=public)
        assert run("verify", path, "--signed-by", public)[0] == 1


def test_an_estimator_is_signed_as_a_whole(keys: tuple[Path, Path], tmp_path: Path) -> None:
    private, public = keys
    model = zd.sklearn.KMeans(n_clusters=2, epsilon=1, bounds=(0, 1)).fit([[0.5, 0.5]] * 30)
    model.save(tmp_path / "model.json", sign=private)
    again = zd.load(tmp_path / "model.json", signed_by=public)
    assert again.cluster_centers_.tolist() == model.cluster_centers_.tolist()


def test_odd_keys_are_refused(keys: tuple[Path, Path], tmp_path: Path) -> None:
    private, public = keys
    assert run("keys", tmp_path / "mine")[0] == 2  # a key is not written over
    for odd in (public, tmp_path, tmp_path / "none.key"):
        with pytest.raises(zd.errors.ParameterError, match="zerodelta keys"):
            income().sign(odd)
        assert not (tmp_path / "x.json").exists()
    income().save(tmp_path / "x.json")
    for odd in (private, tmp_path / "none.pub"):
        with pytest.raises(zd.errors.ParameterError, match=r"\.pub"):
            zd.load(tmp_path / "x.json", signed_by=odd)
    assert run("verify", tmp_path / "x.json", "--signed-by", "nobody")[0] == 2


def test_without_the_extra_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from zerodelta import errors

    monkeypatch.setattr(errors, "find_spec", lambda _: None)
    with pytest.raises(ImportError, match=r"zerodelta\[sign\]"):
        income().sign(tmp_path / "x.key")
    code, output = run("keys", tmp_path / "x")
    assert code == 2
    assert "zerodelta[sign]" in output
    assert "cryptography" not in sys.modules or not (tmp_path / "x.key").exists()
