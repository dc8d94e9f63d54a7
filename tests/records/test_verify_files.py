"""Saved releases verified as files, and who vouches for them."""

from __future__ import annotations

import json
import stat
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zerodelta as zd
from cli.people import run as command
from zerodelta.cli.verify_files import MEANING, SIGNED, UNCHECKED, UNSIGNED
from zerodelta.privacy.steps import digest_of


def run(*arguments: str | Path) -> tuple[int, str]:
    return command("verify", *arguments)


def opened(**options: Any) -> Any:
    table = np.zeros(100, dtype=[("age", np.float64), ("id", np.int64)])
    return zd.open(table, columns={"age": zd.number(0, 120)}, **{"name": "people", **options})


def saved(data: Any, path: Path, epsilon: str) -> Path:
    zd.sum(data, "age", epsilon=epsilon).save(path)
    return path


def test_a_release_is_told_with_what_it_belongs_to(tmp_path: Path) -> None:
    data = opened(ledger=tmp_path / "l", budget=5)
    path = saved(data, tmp_path / "a.json", "1/4")
    code, output = run(path)
    assert code == 0
    assert "says that it is sum of 'people', 2" in output
    assert "says that it was paid for with entry 3 of ledger " in output
    assert "protects one row of the table (replace)" in output
    assert "no ledger counted" not in output
    assert "ask whether one person is in one row only" in output
    assert UNSIGNED in output
    assert output.endswith(MEANING + "\n")
    assert "[proven]" in run(path, "--explain")[1]


def test_releases_of_one_data_set_add_up(tmp_path: Path) -> None:
    data = opened()
    one, two = (saved(data, tmp_path / f"{e[-1]}.json", e) for e in ("1/4", "1/2"))
    copy = tmp_path / "copy.json"
    copy.write_bytes(one.read_bytes())
    code, output = run(one, two, copy)
    assert code == 0
    assert "'people': 2 releases, together pure ε = 0.75 (replace)" in output
    assert run(one, two, "--epsilon", "3/4")[0] == 0
    code, output = run(one, two, "--epsilon", "0.7")
    assert code == 1
    assert "'people': NOT VERIFIED" in output
    other = saved(opened(name="others"), tmp_path / "other.json", "1")
    assert "2 releases" not in run(one, other)[1]
    unnamed = [saved(opened(name=None), tmp_path / f"n{i}.json", "1") for i in range(2)]
    assert "2 releases name no data set" in run(*unnamed)[1]
    assert "names no" not in run(unnamed[0])[1]
    alone = tmp_path / "certificate.json"
    alone.write_text(zd.load(one).certificate.to_json())
    code, output = run(one, two, alone)
    assert code == 0
    assert "'people': 2 releases, together pure ε = 0.75 (replace)" in output
    assert "1 release names no data set: it is not added up" in output  # a certificate alone


def test_the_same_asked_twice_at_once_counts_twice(tmp_path: Path) -> None:
    """Nothing but the random name tells them apart, if their values are the same by chance."""
    data = opened(name="people")
    releases = [replace(zd.sum(data, "age", epsilon="1/4"), value=7.0, sums=()) for _ in range(2)]
    for place, release in enumerate(releases):
        assert release.record is not None
        content = replace(release, record=replace(release.record, time="2026-01-02T03:04:05Z"))
        content.save(tmp_path / f"{place}.json")
    code, output = run(tmp_path / "0.json", tmp_path / "1.json")
    assert code == 0
    assert "'people': 2 releases, together pure ε = 0.5 (replace)" in output


def test_two_files_of_one_release_are_refused(tmp_path: Path) -> None:
    path = saved(opened(), tmp_path / "a.json", "1/4")
    replace(zd.load(path), value=7.0, sums=()).save(tmp_path / "b.json")
    code, output = run(path, tmp_path / "b.json")
    assert code == 1
    assert "two different files say that they are the release" in output


@pytest.mark.parametrize("name", [[1], {}, 3, True])
def test_odd_names_are_refused(tmp_path: Path, name: Any) -> None:
    path = saved(opened(), tmp_path / "a.json", "1/4")
    content = {n: part for n, part in json.loads(path.read_text()).items() if n != "digest"}
    content["record"]["data"][0]["name"] = name
    path.write_text(json.dumps({**content, "digest": digest_of(content)}))
    code, output = run(path)
    assert code == 1
    assert "the record is not one of this version" in output


def test_relations_are_converted_and_units_are_not(tmp_path: Path) -> None:
    plain = saved(opened(), tmp_path / "plain.json", "1/4")
    added = [
        saved(opened(neighbors="add-remove", expected_rows=100), tmp_path / f"add{i}.json", "1/4")
        for i in range(2)
    ]
    assert "together pure ε = 0.75 (replace)" in run(plain, added[0])[1]
    assert "together pure ε = 0.5 (add-remove)" in run(*added)[1]
    assert run(*added, "--epsilon", "1")[0] == 0
    assert run(*added, "--epsilon", "0.9")[0] == 1  # asked for replace
    assert run(*added, "--epsilon", "1/2", "--neighbors", "add-remove")[0] == 0
    code, output = run(plain, "--neighbors", "add-remove")
    assert code == 1
    assert "says nothing about adding" in output
    unit = saved(opened(unit="id", max_rows=2, units=9), tmp_path / "unit.json", "1/4")
    code, output = run(plain, unit)
    assert code == 1
    assert "protect different units" in output
    code, output = run(unit)
    assert code == 0
    assert "protects one id, at most 2 of its rows; a unit is one 'id' (replace)" in output
    assert 'ask whether one person has one "id" only' in output
    assert run(unit, "--unit", "id")[0] == 0
    for wrong in (("--unit", "customer"), ("--epsilon", "0.2")):
        assert run(unit, *wrong)[0] == 1
    assert run(unit, plain, "--unit", "id")[0] == 1


def test_what_no_ledger_counted_says_so(tmp_path: Path) -> None:
    assert "no ledger counted its ε" in run(saved(opened(), tmp_path / "a.json", "1/4"))[1]


@pytest.mark.parametrize(("epsilon", "large"), [("5", False), ("6", True)])
def test_a_large_epsilon_is_asked_about(tmp_path: Path, epsilon: str, large: bool) -> None:
    path = saved(opened(), tmp_path / "a.json", epsilon)
    code, output = run(path)
    assert code == 0
    assert (f"beware: ε = {epsilon} is large" in output) is large
    assert bool(json.loads(run(path, "--json")[1])["files"][0]["beware"]) is large
    other = saved(opened(), tmp_path / "b.json", "1/100")
    assert ("'people': beware: ε = " in run(path, other)[1]) is True
    assert "beware" not in run(other, saved(opened(), tmp_path / "c.json", "4.99"))[1]


def test_two_releases_of_one_entry_are_refused(tmp_path: Path) -> None:
    path = saved(opened(ledger=tmp_path / "l", budget=5), tmp_path / "a.json", "1/4")
    data = json.loads(path.read_text())
    content = {name: part for name, part in data.items() if name != "digest"}
    content |= {"value": 7.0, "sums": []}
    other = tmp_path / "b.json"
    other.write_text(json.dumps({**content, "digest": digest_of(content)}))
    code, output = run(path, other)
    assert code == 1
    assert "one of them is not what was released" in output


def test_a_ledger_finds_what_no_digest_can(tmp_path: Path) -> None:
    """A forger computes digests; the ledger noted that of the file, and what was asked."""
    data = opened(ledger=tmp_path / "l", budget=5)
    path = saved(data, tmp_path / "a.json", "1/4")
    ledger = zd.Ledger(tmp_path / "l", data="people")
    assert ledger.verify(records=[path, zd.load(path), zd.load(path).record]) == 3
    whole = json.loads(path.read_text())
    for name, value, said in (
        ("value", 7.0, "changed after it was saved"),
        ("record", {**whole["record"], "task": "count"}, "something else than was paid for"),
    ):
        forgery = {**whole, name: value, "sums": []}
        content = {n: part for n, part in forgery.items() if n != "digest"}
        forged = tmp_path / f"{name}.json"
        forged.write_text(json.dumps({**content, "digest": digest_of(content)}))
        zd.load(forged)
        for form in (forged, forged.read_text(), json.loads(forged.read_text())):
            with pytest.raises(zd.errors.LedgerError, match=said):
                ledger.verify(records=[form])
    assert ledger.verify(records=[whole]) == 3
    forged.write_text(path.read_text().replace('"sum"', '"mean"'))
    with pytest.raises(zd.errors.LedgerError, match="digest does not match"):
        ledger.verify(records=[forged])


def test_what_two_ledgers_paid_for_is_verified_with_each(tmp_path: Path) -> None:
    data = opened(ledger=tmp_path / "l", budget=5)
    second = zd.Ledger(tmp_path / "m", budget=5)
    zd.sum(data, "age", epsilon=1, ledger=second).save(tmp_path / "a.json")
    for ledger in (second, zd.Ledger(tmp_path / "l", data="people")):
        assert ledger.verify(records=[tmp_path / "a.json"]) == 3
    third = zd.Ledger(tmp_path / "n", budget=5)
    with pytest.raises(zd.errors.LedgerError, match="another ledger"):
        third.verify(records=[tmp_path / "a.json"])


def test_names_cannot_write_on_the_terminal(tmp_path: Path) -> None:
    path = saved(opened(name="a\x1b[2Jb"), tmp_path / "a.json", "1/4")
    code, output = run(path)
    assert code == 0
    assert "\x1b" not in output


def test_odd_questions_exit_with_2(tmp_path: Path) -> None:
    path = saved(opened(), tmp_path / "a.json", "1/4")
    for odd in (("--neighbors", "both"), ("--epsilon", "much")):
        code, output = run(path, *odd)
        assert code == 2
        assert odd[0][2:] in output


# -- signatures -----------------------------------------------------------------------------------


pytest.importorskip("cryptography", reason="pip install 'zerodelta[sign]'")


@pytest.fixture
def keys(tmp_path: Path) -> tuple[Path, Path]:
    code, output = command("keys", tmp_path / "mine")
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
        code, output = run(path, "--signed-by", public)
        assert code == 0
        assert f"signed by {raw}" in output
        assert SIGNED in output
    told = run(one)[1]
    assert "checked with --signed-by" in told
    assert UNCHECKED in told
    assert "nobody has signed" not in told
    again = zd.load(two)
    again.save(tmp_path / "copy.json")
    assert (tmp_path / "copy.json").read_bytes() == two.read_bytes()


def test_what_is_not_signed_so_is_refused(keys: tuple[Path, Path], tmp_path: Path) -> None:
    private, public = keys
    command("keys", tmp_path / "other")
    path = tmp_path / "income.json"
    income().save(path)
    with pytest.raises(zd.errors.RecordError, match="not signed by"):
        zd.load(path, signed_by=public)
    income().sign(private).save(tmp_path / "signed.json")
    with pytest.raises(zd.errors.RecordError, match="not signed by"):
        zd.load(tmp_path / "signed.json", signed_by=tmp_path / "other.pub")
    code, output = run(path, "--signed-by", public)
    assert code == 1
    assert "NOT VERIFIED: it is not signed by" in output
    (tmp_path / "plain.json").write_text(income().certificate.to_json())
    assert "a certificate alone" in run(tmp_path / "plain.json", "--signed-by", public)[1]


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
        assert run(path, "--signed-by", public)[0] == 1


def test_an_estimator_is_signed_as_a_whole(keys: tuple[Path, Path], tmp_path: Path) -> None:
    private, public = keys
    model = zd.sklearn.KMeans(n_clusters=2, epsilon=1, bounds=(0, 1)).fit([[0.5, 0.5]] * 30)
    model.save(tmp_path / "model.json", sign=private)
    again = zd.load(tmp_path / "model.json", signed_by=public)
    assert again.cluster_centers_.tolist() == model.cluster_centers_.tolist()


def test_odd_keys_are_refused(keys: tuple[Path, Path], tmp_path: Path) -> None:
    private, public = keys
    assert command("keys", tmp_path / "mine")[0] == 2  # a key is not written over
    for odd in (public, tmp_path, tmp_path / "none.key"):
        with pytest.raises(zd.errors.ParameterError, match="zerodelta keys"):
            income().sign(odd)
        assert not (tmp_path / "x.json").exists()
    income().save(tmp_path / "x.json")
    for odd in (private, tmp_path / "none.pub"):
        with pytest.raises(zd.errors.ParameterError, match=r"\.pub"):
            zd.load(tmp_path / "x.json", signed_by=odd)
    assert run(tmp_path / "x.json", "--signed-by", "nobody")[0] == 2


def test_without_the_extra_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from zerodelta import errors

    monkeypatch.setattr(errors, "find_spec", lambda _: None)
    with pytest.raises(ImportError, match=r"zerodelta\[sign\]"):
        income().sign(tmp_path / "x.key")
    code, output = command("keys", tmp_path / "x")
    assert code == 2
    assert "zerodelta[sign]" in output
    assert "cryptography" not in sys.modules or not (tmp_path / "x.key").exists()
