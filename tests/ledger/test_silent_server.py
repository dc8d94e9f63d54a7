"""A server that says nothing any more holds up its own ledger for a while, and no other one."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import zerodelta as zd
from ledger.postgres_server import Server
from ledger.spenders import EPSILON, charge
from zerodelta.ledger import postgres as postgres_line
from zerodelta.ledger import postgres as postgres_store
from zerodelta.ledger.store import close_all

psycopg: Any = pytest.importorskip("psycopg", reason="pip install 'zerodelta[postgres]'")


class Line:
    """Hands on what a client and a server say, until the client says a word; keeps the line."""

    def __init__(self, port: int) -> None:
        self.port, self.last_word = port, b"\0never"
        self.silent = threading.Event()
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.ends: list[socket.socket] = [self.listening]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client = self.listening.accept()[0]
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self.port))
            self.ends += [client, server]
            for one, other, asks in ((client, server, True), (server, client, False)):
                threading.Thread(target=self._hand_on, args=(one, other, asks), daemon=True).start()

    def _hand_on(self, one: socket.socket, other: socket.socket, asks: bool) -> None:
        try:
            while said := one.recv(1 << 16):
                if asks and self.last_word in said:
                    self.silent.set()
                    other.sendall(said)  # the server hears it, and nobody hears the server
                elif not self.silent.is_set():
                    other.sendall(said)
        except OSError:
            pass

    def cut(self) -> None:
        """Close all ends."""
        for each in self.ends:
            each.close()

    def url(self, url: str) -> str:
        """Return the address of the same database on this line."""
        return url.replace(f":{self.port}/", f":{self.listening.getsockname()[1]}/")


@pytest.fixture
def line(server: Server) -> Iterator[Line]:
    made = Line(server.port)
    yield made
    close_all()
    made.cut()


@pytest.mark.parametrize("word", [b"COMMIT\0", b"INSERT INTO", b"BEGIN", b"SELECT 1"])
def test_one_that_falls_silent_is_given_up(
    url: str, line: Line, path: str, word: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The line stays open and is acknowledged, so that no timeout of TCP ever ends it."""
    ledger, other = zd.Ledger(line.url(url), budget=1), zd.Ledger(path, budget=1)
    ledger.debit(charge())
    said: list[str] = []

    def spend() -> None:
        try:
            ledger.debit(charge())
        except zd.errors.LedgerError as error:
            said.append(str(error))

    monkeypatch.setattr(postgres_line, "_DEADLINE", 1.5)
    monkeypatch.setattr(postgres_line, "_CONNECTING", 2)
    line.last_word = word
    waiting = threading.Thread(target=spend, daemon=True)
    waiting.start()
    assert line.silent.wait(30)
    other.debit(charge())  # is not held up by the one that waits
    assert waiting.is_alive()
    waiting.join(60)
    assert not waiting.is_alive()
    assert "the server does not answer" in said[0]
    assert other.spent == EPSILON
    close_all()
    assert zd.Ledger(url).spent == (2 if word == b"COMMIT\0" else 1) * EPSILON


def test_others_need_not_wait_for_one_who_is_gone(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server ends a transaction in which nothing is asked any more."""
    settings = dict(postgres_line._SETTINGS)
    assert settings["idle_in_transaction_session_timeout"] == "60s"
    assert postgres_line._PATIENCE == 120
    assert settings["statement_timeout"] == "150s"
    assert 150 < postgres_line._DEADLINE <= 300
    settings["idle_in_transaction_session_timeout"] = "200ms"
    monkeypatch.setattr(postgres_line, "_SETTINGS", tuple(settings.items()))
    ledger = zd.Ledger(url, budget=1)
    gone, here = (postgres_store.PostgresStore(ledger.address) for _ in range(2))

    def hold_up_others() -> None:
        with gone.writing():
            with here.writing():  # waits until the server ends the other transaction
                pass
            gone.find(1)

    with pytest.raises(zd.errors.LedgerError, match="does not answer"):
        hold_up_others()
    gone.close()
    here.close()


def test_a_server_that_never_answers_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setattr(postgres_line, "_CONNECTING", 2)
        with pytest.raises(zd.errors.LedgerError, match="the server does not answer"):
            zd.Ledger(f"postgresql://ana:x@127.0.0.1:{silent.getsockname()[1]}/b", budget=1)


def test_a_ledger_is_not_held_up_by_another(
    path: str, ledger: zd.Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each address has a lock of its own."""
    from zerodelta.ledger.ledger import connected

    other = zd.Ledger(tmp_path / "other.db", budget=1)
    told: list[int] = []
    with connected(ledger.address):
        work = threading.Thread(target=lambda: told.append(other.debit(charge()).entry))
        work.start()
        work.join(60)
        assert told == [3]
