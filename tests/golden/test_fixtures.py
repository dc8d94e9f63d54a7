"""Files written before a change open after it, hold the same, verify; other formats are refused.

They are written by `python tests/golden/fixtures/write.py`, once for each format.
"""

from __future__ import annotations

import json
import re
import shutil
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import zerodelta as zd
from golden.fixtures.write import (
    BUDGET,
    CONTENTS,
    FOLDER,
    LEDGER,
    PAID,
    RAISED,
    RELEASES,
    REMOVED,
    SCHEMA,
    SIGNED,
    SIGNER,
    contents,
    schema,
)
from golden.golden import alike, proves_its_claim
from golden.rows import people
from zerodelta.privacy.steps import digest_of

KEPT: dict[str, Any] = json.loads((FOLDER / CONTENTS).read_text(encoding="utf-8"))
SAVED = [*RELEASES, *REMOVED, SIGNED, PAID]
every = pytest.mark.parametrize("name", SAVED)


def place(name: str) -> Path:
    return FOLDER / f"{name}.json"


def release(name: str) -> zd.records.Release:
    found = zd.load(place(name))
    made: zd.records.Release = getattr(found, "release_", found)
    return made


@pytest.mark.parametrize("name", [*RELEASES, *REMOVED])
def test_a_saved_release_holds_what_it_held(name: str) -> None:
    assert alike(contents(zd.load(place(name))), KEPT[name])


@every
def test_a_saved_release_verifies_for_just_its_epsilon(name: str) -> None:
    proves_its_claim(release(name).certificate)


@pytest.mark.parametrize("name", [name for name in SAVED if name != "naive-bayes"])
def test_it_is_written_again_to_the_same_bytes(name: str, tmp_path: Path) -> None:
    zd.load(place(name)).save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == place(name).read_bytes()


@every
def test_one_changed_digit_is_refused(name: str, tmp_path: Path) -> None:
    text = place(name).read_text(encoding="utf-8")
    last = max(text.rfind('"value": '), 0)
    found = re.compile(r"[0-9]").search(text, last)
    assert found
    at, digit = found.start(), "8" if found[0] != "8" else "7"
    (tmp_path / "changed.json").write_text(text[:at] + digit + text[at + 1 :], encoding="utf-8")
    with pytest.raises(zd.errors.RecordError):
        zd.load(tmp_path / "changed.json")


def test_the_signature_is_its_signers() -> None:
    assert zd.load(place(SIGNED), signed_by=FOLDER / SIGNER).value == release(SIGNED).value
    with pytest.raises(zd.errors.RecordError, match="sign"):
        zd.load(place("mean"), signed_by=FOLDER / SIGNER)


# -- formats that are not this one ----------------------------------------------------------------


def _with_schema(name: str, step: int, folder: Path) -> tuple[Path, str]:
    text = place(name).read_text(encoding="utf-8")
    family, _, number = json.loads(text)["schema"].rpartition("/")
    other = f"{family}/{int(number) + step}"
    path = folder / "other.json"
    path.write_text(text.replace(f"{family}/{number}", other, 1), encoding="utf-8")
    return path, other


@pytest.mark.parametrize("step", [-1, 1])
def test_a_release_of_another_format_is_refused_by_its_name(step: int, tmp_path: Path) -> None:
    path, other = _with_schema("mean", step, tmp_path)
    with pytest.raises(zd.errors.RecordError, match=re.escape(other)) as refused:
        zd.load(path)
    assert REMEDY[step] in str(refused.value)
    assert REMEDY[-step] not in str(refused.value)


REMEDY = {-1: "with the version of zerodelta that wrote it", 1: "pip install --upgrade zerodelta"}
"""What reads a file of an older format, and of a newer one."""


@pytest.mark.parametrize("step", [-1, 1])
def test_a_certificate_of_another_format_is_refused(step: int) -> None:
    data = json.loads(release("mean").certificate.to_json())
    family, _, number = data["schema"].rpartition("/")
    data["schema"] = f"{family}/{int(number) + step}"
    body = {name: part for name, part in data.items() if name != "digest"}
    for text in (json.dumps(data), json.dumps({**body, "digest": digest_of(body)})):
        for read in (zd.records.Certificate.from_json, zd.verify):
            with pytest.raises(zd.errors.CertificateError, match="schema") as refused:
                read(text)
            assert REMEDY[step] in str(refused.value)
            assert REMEDY[-step] not in str(refused.value)


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    return Path(shutil.copy(FOLDER / LEDGER, tmp_path / LEDGER))


_VERSION = slice(60, 64)
"""Where SQLite keeps the number of a program's own format."""


@pytest.mark.parametrize("step", [-1, 1])
def test_a_ledger_of_another_format_is_refused_and_left_alone(step: int, ledger: Path) -> None:
    content = bytearray(ledger.read_bytes())
    version = int.from_bytes(content[_VERSION], "big")
    content[_VERSION] = (version + step).to_bytes(4, "big")
    ledger.write_bytes(content)
    with pytest.raises(zd.errors.LedgerError, match=r"file|format|version|newer"):
        zd.Ledger(ledger, data="people")
    assert ledger.read_bytes() == bytes(content)


# -- the ledger and the schema --------------------------------------------------------------------


def test_the_ledger_has_what_was_paid(ledger: Path) -> None:
    account = zd.Ledger(ledger, data="people")
    assert account.budget == Fraction(RAISED)
    assert account.spent == Fraction(1, 2) + Fraction(1, 3) + 1
    assert RAISED > BUDGET
    assert account.account(analyst="ana").budget == 1
    # the file, the account, one debit, the analyst, one more, the raised budget, the last debit
    assert account.verify([place(PAID)]) == 7
    with pytest.raises(zd.errors.LedgerError):
        account.verify([zd.mean(people(), "age", epsilon=1, ledger=other(ledger))])


def other(ledger: Path) -> zd.Ledger:
    return zd.Ledger(ledger.with_name("other.db"), budget=1)


def test_the_ledger_pays_again(ledger: Path) -> None:
    account = zd.Ledger(ledger, data="people")
    before = account.remaining
    found = zd.mean(people(name="people"), "age", epsilon=1, ledger=account)
    assert account.remaining == before - 1
    assert account.verify([place(PAID), found]) == 8


def test_the_schema_declares_what_it_declared() -> None:
    read = zd.data.read_schema(FOLDER / SCHEMA)
    assert read == schema()
    assert read.to_toml() == (FOLDER / SCHEMA).read_text(encoding="utf-8")


def test_a_schema_with_an_unknown_table_is_refused_by_its_name(tmp_path: Path) -> None:
    text = (FOLDER / SCHEMA).read_text(encoding="utf-8")
    (tmp_path / SCHEMA).write_text(text + "\n[later]\nx = 1\n", encoding="utf-8")
    with pytest.raises(zd.errors.ParameterError, match="later"):
        zd.data.read_schema(tmp_path / SCHEMA)


def test_every_saved_file_is_read_here() -> None:
    files = {path.name for path in FOLDER.iterdir() if path.is_file() and path.suffix != ".py"}
    assert files == {f"{name}.json" for name in SAVED} | {CONTENTS, LEDGER, SCHEMA, SIGNER}
