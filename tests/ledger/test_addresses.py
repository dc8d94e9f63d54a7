"""An address is a path or a URL, and shows no password; a file is recognized by a keyed hash."""

from __future__ import annotations

import hashlib
import hmac
import json
import pickle
from pathlib import Path
from typing import Any

import pytest

import zerodelta as zd
from zerodelta.ledger import postgres as postgres_store
from zerodelta.ledger.store import as_address, is_url, schema_of, secrets_of
from zerodelta.privacy.release_file import content_of

WORD = "s3cret"

CLEAN = {
    f"postgresql://ana:{WORD}@db.example/budgets": "postgresql://ana@db.example/budgets",
    f"postgres://ana:{WORD}@db.example/budgets": "postgresql://ana@db.example/budgets",
    f"POSTGRESQL://ana:{WORD}@db.example/b": "postgresql://ana@db.example/b",
    f"Postgres://ana:{WORD}@h1:5432,h2:5433/b": "postgresql://ana@h1:5432,h2:5433/b",
    f"postgresql://ana:{WORD}@[::1]:5432/b": "postgresql://ana@[::1]:5432/b",
    f"postgresql://:{WORD}@h/b": "postgresql://@h/b",
    f"postgresql://ana:x:{WORD}@h/b": "postgresql://ana@h/b",
    f"postgresql:///b?password={WORD}": "postgresql:///b",
    f"postgresql:///b?host=/run/db&p%61ssword={WORD}&port=3": "postgresql:///b?host=/run/db&port=3",
    f"postgresql://h/b?sslmode=require&sslpassword={WORD}": "postgresql://h/b?sslmode=require",
    f"postgresql://h/b?oauth_client_secret={WORD}": "postgresql://h/b",
    f"postgresql://h/b?scram_client_key={WORD}": "postgresql://h/b",
    f"postgresql://h/b?PASSWORD={WORD}": "postgresql://h/b",
    "postgresql:///b?sslmode=verify-full&&sslrootcert=/x&passfile=/y": (
        "postgresql:///b?sslmode=verify-full&sslrootcert=/x&passfile=/y"
    ),
    "postgresql://": "postgresql://",
    "postgresql:///b?options=-csearch_path%3Dteam%20-cx%3D1": (
        "postgresql:///b?options=-csearch_path%3Dteam%20-cx%3D1"
    ),
}


@pytest.mark.parametrize("given", CLEAN)
def test_a_url_is_kept_without_its_secrets(given: str) -> None:
    address = as_address(given)
    assert address == CLEAN[given]
    assert is_url(address)
    assert (WORD in given) is any(WORD in value for value in secrets_of(address).values())
    assert as_address(address) == address


REFUSED: list[Any] = [
    f"postgresql+psycopg://ana:{WORD}@h/b",
    f"postgresql+asyncpg://ana:{WORD}@h/b",
    f"mysql://ana:{WORD}@h/b",
    f"sqlite:///{WORD}",
    f"file://{WORD}",
    f" postgresql://ana:{WORD}@h/b",
    f"postgresql://ana:{WORD}@h/b c",
    f"postgresql://ana:x@{WORD}@h/b",
    f"postgresql://ana:x/{WORD}@h/b",
    f"postgresql://ana:1/{WORD}@h/b",
    f"postgresql://ana:1?{WORD}@h/b",
    f"postgresql://ana:1#{WORD}@h/b",
    f"postgresql://ana:x#{WORD}@h/b",
    f"postgresql://h:{WORD}/b",
    f"postgresql://h/b#{WORD}",
    f"folder/postgresql://ana:{WORD}@h/b",
    f"host=h dbname=b password={WORD}",
    f"host=h PASSWORD = {WORD}",
    f"user=ana passwd={WORD} host=h",
    f"PGPASSWORD={WORD} psql",
    f"postgresql://h/b?user=ana&pass={WORD}",
    f"postgresql://h/b?pwd={WORD}",
    f"postgresql://h/b?{WORD}",
    f"postgresql://h/b?sslmode=require&{WORD}",
    f"postgres:/ana:{WORD}@h/b",
    f"postgresql:ana:{WORD}@h/b",
    f"postgresql//ana:{WORD}@h/b",
    f"//ana:{WORD}@h/b",
    f"ana:{WORD}@h/b",
    f"ana:x/{WORD}@h/b",
    Path(f"postgresql://ana:{WORD}@h/b"),
]


@pytest.mark.parametrize("given", REFUSED)
def test_what_is_no_address_is_refused_and_not_repeated(
    given: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    table = [[1.0]]
    uses: list[Any] = [
        lambda: zd.Ledger(given, budget=1),
        lambda: zd.open(table, columns={"0": zd.number(0, 1)}, ledger=given, budget=1),
    ]
    for use in uses:
        with pytest.raises(zd.errors.ParameterError, match="a path, or a URL") as caught:
            use()
        shown = [str(caught.value), repr(caught.value), repr(pickle.dumps(caught.value))]
        assert not [text for text in shown if WORD in text]
    assert list(tmp_path.rglob("*")) == []


@pytest.mark.parametrize("given", ["a b.ledger", "c:/x", "b@h/x", "x?y#z", "a:b", "x=y"])
def test_other_paths_are_paths(given: str, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    assert Path(as_address(given)).is_absolute()
    assert not is_url(as_address(given))


@pytest.mark.parametrize("given", [*REFUSED, *CLEAN])
def test_data_are_not_read_from_a_url_which_is_not_repeated(given: Any) -> None:
    """What is meant as the ledger may be passed as the data."""
    with pytest.raises(zd.errors.ParameterError) as caught:
        zd.open(given, columns={"a": zd.number(0, 1)})
    assert WORD not in str(caught.value)
    assert WORD not in repr(pickle.dumps(caught.value))


def test_the_schema_is_that_of_the_options() -> None:
    assert schema_of("postgresql://h/b") == "public"
    assert schema_of("postgresql://h/b?options=-csearch_path%3Dteam") == "team"
    assert schema_of("postgresql://h/b?options=-c%20search_path%3Dteam%20-cx%3Dy") == "team"
    for odd in ("%22%24user%22", "Team", "team,public", "a%3Bdrop", ""):
        with pytest.raises(zd.errors.ParameterError, match="one schema"):
            schema_of(f"postgresql://h/b?options=-csearch_path%3D{odd}")


def test_all_secrets_reach_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    psycopg = pytest.importorskip("psycopg", reason="pip install 'zerodelta[postgres]'")
    given: dict[str, Any] = {}

    def connect(url: str, **options: Any) -> Any:
        given.update(options, url=url)
        raise psycopg.OperationalError(WORD)

    monkeypatch.setattr(psycopg, "connect", connect)
    address = as_address(f"postgresql://ana:{WORD}%2F1@h/b?sslpassword={WORD}2")
    with pytest.raises(zd.errors.LedgerError) as caught:
        postgres_store.PostgresStore(address)
    assert WORD not in str(caught.value)
    assert (given["url"], given["password"], given["sslpassword"]) == (
        *("postgresql://ana@h/b", f"{WORD}/1", f"{WORD}2"),
    )
    assert given["tcp_user_timeout"] <= 120_000
    assert given["keepalives"] == 1


def test_the_command_line_shows_an_address_without_its_password(url: str, tmp_path: Path) -> None:
    from cli.people import asked, run, write_people
    from ledger.postgres_server import PASSWORD

    people = write_people(tmp_path)
    words = [*asked(people, "mean", "-", "income"), "--ledger", url, "--budget", 1]
    commands: list[list[Any]] = [
        [*words, "--out", people / "o"],
        [*words, "--again", "--dry-run"],
        [*words, "--again", "--dry-run", "--json"],
        *[["ledger", each, url] for each in ("show", "history", "verify")],
        ["ledger", "verify", url, people / "o" / "release.json", "--json"],
        ["ledger", "verify", url, people / "people.csv"],
        ["report", people / "o" / "release.json", "--ledger", url, "--out", people / "r.html"],
    ]
    codes, shown = zip(*(run(*command) for command in commands), strict=True)
    assert codes == (0, 0, 0, 0, 0, 0, 0, 1, 0)
    assert shown[1].count("postgresql://owner@127.0.0.1") == 1
    shown += ((people / "r.html").read_text(encoding="utf-8"),)
    shown += ((people / "o" / "release.json").read_text(encoding="utf-8"),)
    assert not [text for text in shown if "s3cret" in text or PASSWORD in text]


# -- recognition ----------------------------------------------------------------------------------


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
