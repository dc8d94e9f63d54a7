"""An owner recognizes a file by a keyed hash, which no entry, record or export contains."""

from __future__ import annotations

import hashlib
import hmac
import json
from pathlib import Path

import pytest

import zerodelta as zd
from zerodelta.privacy.release_file import content_of

KEY = b"a secret of some length"


def test_the_owner_recognizes_a_file(tmp_path: Path, ledger: zd.Ledger) -> None:
    people, other = tmp_path / "people.csv", tmp_path / "other.csv"
    people.write_text("age\n30\n" * 200_000)
    other.write_text("age\n31\n")
    ledger.remember(people, KEY)
    ledger.remember(people, KEY)
    assert ledger.recognize(people, KEY)
    assert not ledger.recognize(other, KEY)
    assert not ledger.recognize(people, b"another secret key")
    assert not ledger.account("other", budget=1).recognize(people, KEY)
    with people.open("a") as file:
        file.write("\n")
    assert not ledger.recognize(people, KEY)


def test_the_hash_is_in_no_entry_record_or_export(tmp_path: Path, ledger: zd.Ledger) -> None:
    people = tmp_path / "people.csv"
    people.write_text("age\n30\n")
    before = ledger.verify()
    ledger.remember(people, KEY)
    mac = hmac.new(KEY, people.read_bytes(), hashlib.sha256).hexdigest()
    assert mac.encode() in b"".join(each.read_bytes() for each in tmp_path.glob("budget.db*"))
    assert ledger.verify() == before
    data = zd.open(people, columns={"age": zd.number(0, 9)}, ledger=ledger)
    release = zd.sum(data, "age", epsilon="1/100")
    said = [json.dumps(content_of(release)), repr(ledger), repr(ledger.history), repr(data)]
    for kind in ("json", "csv", "registry"):
        ledger.export(tmp_path / kind, format=kind)
        said.append((tmp_path / kind).read_text())
    plain = hashlib.sha256(people.read_bytes()).hexdigest()
    assert not any(mac in text or plain in text for text in said)


@pytest.mark.parametrize("key", ["a secret of some length", b"short", None])
def test_odd_keys_are_refused(tmp_path: Path, ledger: zd.Ledger, key: object) -> None:
    people = tmp_path / "people.csv"
    people.write_text("age\n30\n")
    with pytest.raises(zd.errors.ParameterError, match="at least 16 bytes"):
        ledger.remember(people, key)  # type: ignore[arg-type]
