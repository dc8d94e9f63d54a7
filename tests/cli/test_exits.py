"""How commands end: exit codes, one line, no value of data, and files and ledger after Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import zerodelta as zd
from cli.people import PLANTED, asked, run
from zerodelta.cli import app, jobs, outputs


def test_a_budget_that_does_not_cover_it_exits_with_3_and_reads_nothing(people: Path) -> None:
    mean = asked(people, "mean", "-", "income")
    paying = ["--ledger", people / "l", "--budget", "1/8"]
    code, output = run(*mean, *paying, "--out", people / "o")
    assert code == 3
    assert "zerodelta ledger raise" in output
    assert len(output.splitlines()) == 1
    assert list((people / "o").iterdir()) == []


def test_what_was_asked_before_exits_with_3_and_is_paid_for_once_more_with_again(
    people: Path,
) -> None:
    mean = [*asked(people, "mean", "-", "income"), "--ledger", people / "l"]
    assert run(*mean, "--budget", 1, "--out", people / "a")[0] == 0
    code, output = run(*mean, "--out", people / "b")
    assert code == 3
    assert "--again" in output
    assert str(people / "a" / "release.json") in output
    assert run(*mean, "--out", people / "b", "--again")[0] == 0
    assert zd.Ledger(people / "l", data="people").spent == 1 / 2


def test_a_folder_with_a_release_is_refused_before_anything_is_spent(people: Path) -> None:
    paying = ["--ledger", people / "l", "--budget", 1, "--out", people / "o"]
    assert run(*asked(people, "mean", "-", "income"), *paying)[0] == 0
    code, output = run(*asked(people, "median", "-", "income"), *paying)
    assert code == 2
    assert "not written over" in output
    assert zd.Ledger(people / "l", data="people").spent == 1 / 4


def test_a_folder_that_cannot_be_made_is_refused_before_anything_is_spent(people: Path) -> None:
    place = people / "people.csv" / "out"
    ledger = ["--ledger", people / "l", "--budget", 1]
    code, output = run(*asked(people, "mean", "-", "income"), *ledger, "--out", place)
    assert code == 2
    assert len(output.splitlines()) == 1
    assert not (people / "l").exists()


@pytest.mark.parametrize("debug", [(), ("--debug",)])
def test_an_unexpected_error_shows_no_value_not_even_with_debug(
    people: Path, monkeypatch: pytest.MonkeyPatch, debug: tuple[str, ...]
) -> None:
    def fails(job: jobs.Job) -> Any:
        row = [PLANTED]
        raise ValueError(f"cannot convert {row[0]}")

    monkeypatch.setattr(jobs, "released", fails)
    code, output = run(*debug, *asked(people, "mean", "-", "income"))
    assert code == 4
    assert str(PLANTED) not in output
    assert "cannot convert" not in output
    assert "ValueError" in output
    assert ("test_exits.py" in output) is bool(debug)


def test_debug_is_taken_wherever_it_stands(people: Path) -> None:
    code, output = run(*asked(people, "mean", "-", "nothing"), "--debug")
    assert code == 2
    assert "no values are shown" in output


def test_locals_are_never_printed_by_anyone(people: Path) -> None:
    assert app.pretty_exceptions_show_locals is False
    program = f"""
from zerodelta.cli import app, jobs
def fails(job):
    row = {PLANTED!r}
    raise RuntimeError(row)
jobs.released = fails
app({asked(people, "mean", "-", "income")!r})
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 4
    # the program's own text, with the planted value in it, is not quoted either
    assert str(PLANTED) not in done.stdout + done.stderr


def test_an_interrupt_before_the_release_is_saved_leaves_a_debit_and_no_file(
    people: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(job: jobs.Job, made: jobs.Made) -> list[Path]:
        raise KeyboardInterrupt

    monkeypatch.setattr(outputs, "write", interrupted)
    mean = [*asked(people, "mean", "-", "income"), "--ledger", people / "l", "--budget", 1]
    code, output = run(*mean, "--out", people / "o")
    assert code == 130
    assert "stays spent" in output
    assert list((people / "o").iterdir()) == []
    ledger = zd.Ledger(people / "l", data="people")
    assert ledger.spent == 1 / 4
    assert ledger.verify() == len(ledger.history) + 1  # the first entry is the ledger's own


def test_an_interrupt_while_the_record_is_written_waits_until_it_is_there(
    people: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save = jobs.Made.save

    def slow(made: jobs.Made, path: Path, *, sign: str | None) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        save(made, path, sign=sign)

    monkeypatch.setattr(jobs.Made, "save", slow)
    monkeypatch.setattr(signal, "getsignal", lambda number: signal.default_int_handler)
    code, _ = run(*asked(people, "mean", "-", "income"), "--out", people / "o")
    assert code == 130
    assert [path.name for path in (people / "o").iterdir()] == ["release.json"]
    assert zd.load(people / "o" / "release.json").record.task == "mean"


def test_ctrl_c_in_a_real_process_leaves_ledger_and_files_consistent(people: Path) -> None:
    arguments = [*asked(people, "mean", "-", "income"), "--ledger", str(people / "l")]
    arguments += ["--budget", "1", "--out", str(people / "o")]
    program = f"""
import signal, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background ignores it
from zerodelta.cli import app
from zerodelta.spine.run import Opened
def slow(self, value):
    print("paid", flush=True)
    time.sleep(60)
Opened.release = slow
app({arguments!r})
"""
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "paid\n"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in errors
    assert list((people / "o").iterdir()) == []
    ledger = zd.Ledger(people / "l", data="people")
    assert ledger.spent == 1 / 4
    ledger.verify()


def test_usage_errors_exit_with_2() -> None:
    assert run("mean")[0] == 2
    assert run("nothing")[0] == 2


@pytest.mark.parametrize(
    "command", [("init", "--header"), ("release",), ("plan",), ("report",), ("ledger", "show")]
)
def test_files_that_are_not_there_are_told_in_one_line(
    tmp_path: Path, command: tuple[str, ...]
) -> None:
    code, output = run(*command, tmp_path / "nothing.csv")
    assert code in (1, 2, 3)
    assert len(output.strip().splitlines()) == 1
    assert not list(tmp_path.iterdir())
