"""A real PostgreSQL server on loopback, for tests: made in a folder, started, killed, started."""

from __future__ import annotations

import itertools
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

_NUMBERS = itertools.count()

PASSWORD = "s3cret/of:the@owner"


def binaries() -> Path | None:
    """Return the folder of the server's programs; Debian keeps them off the path."""
    found = shutil.which("initdb")
    folders = [Path(found).resolve().parent] if found else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((each for each in folders if (each / "postgres").exists()), None)


class Server:
    """One server; as root it runs as the user nobody, because PostgreSQL refuses root."""

    def __init__(self, programs: Path) -> None:
        self.programs, self.folder = programs, Path(tempfile.mkdtemp(prefix="zd-postgres-"))
        self.data = self.folder / "data"
        self.user: dict[str, Any] = {}
        if os.getuid() == 0:
            nobody = pwd.getpwnam("nobody")
            os.chown(self.folder, nobody.pw_uid, nobody.pw_gid)
            self.user = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
        os.chmod(self.folder, 0o755)
        secret = self.folder / "password"
        secret.write_text(PASSWORD)
        os.chmod(secret, 0o644)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        options = ["-A", "scram-sha-256", "-U", "owner", f"--pwfile={secret}", "-E", "UTF8"]
        self._run("initdb", "-D", self.data, *options)
        secret.unlink()
        self.process = self.start()

    def _run(self, program: str, *arguments: object) -> None:
        command = [str(self.programs / program), *map(str, arguments)]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, cwd=self.folder, **self.user
        )
        assert done.returncode == 0, done.stderr

    def start(self) -> subprocess.Popen[bytes]:
        """Start the server, and wait until it answers."""
        settings = [f"port={self.port}", "listen_addresses=127.0.0.1", "max_connections=40"]
        settings += [f"unix_socket_directories={self.folder}"]
        command = [str(self.programs / "postgres"), "-D", str(self.data)]
        for setting in settings:
            command += ["-c", setting]
        log = open(self.folder / "log", "ab")  # noqa: SIM115
        self.process = subprocess.Popen(
            command, stdout=log, stderr=log, cwd=self.folder, start_new_session=True, **self.user
        )
        log.close()
        for _ in range(600):
            ready = subprocess.run(
                [str(self.programs / "pg_isready"), "-h", "127.0.0.1", "-p", str(self.port)],
                capture_output=True,
                check=False,
            )
            if ready.returncode == 0:
                return self.process
            time.sleep(0.1)
        raise AssertionError((self.folder / "log").read_text())

    def kill(self) -> None:
        """Kill it and all of its processes, as a power cut would."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def remove(self) -> None:
        """End it, and remove all: nothing has to be written any more."""
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def url(self, database: str, *, password: str = "s3cret%2Fof%3Athe%40owner") -> str:
        """Return the address of a database, with the password."""
        return f"postgresql://owner:{password}@127.0.0.1:{self.port}/{database}"

    def new_database(self, name: str) -> str:
        """Make a database, and return its address."""
        import psycopg

        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        connection.close()
        return self.url(name)


def as_user(url: str, name: str) -> str:
    """Return the address of a database for another user, whose password is p."""
    return url.replace("owner:s3cret%2Fof%3Athe%40owner", f"{name}:p")


def new_analyst(url: str, *, rights: str = "SELECT, INSERT") -> str:
    """Make a user with the rights on a ledger that docs/ledger.md names; return the name."""
    import psycopg

    name = f"analyst_{next(_NUMBERS)}"
    with psycopg.connect(url) as connection:
        connection.execute(f"CREATE ROLE {name} LOGIN PASSWORD 'p'")
        for table in ("entry", "saved"):
            connection.execute(f"GRANT {rights} ON public.zerodelta_{table} TO {name}")
    connection.close()
    return name
