"""How commands end: exit codes, one line, no value of data, and files and ledger after Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

import zerodelta as zd
from cli.people import PLANTED, asked, run
from zerodelta.cli import app, jobs
from zerodelta.cli import shown as outputs
from zerodelta.cli.refusals import held_interrupts
from zerodelta.report import page


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
    assert "never overwritten" in output
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

    monkeypatch.setattr(outputs, "run_job", fails)
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
from zerodelta.cli import app, shown
def fails(job):
    row = {PLANTED!r}
    raise RuntimeError(row)
shown.run_job = fails
app({asked(people, "mean", "-", "income")!r})
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 4
    # the program's own text, with the planted value in it, is not quoted either
    assert str(PLANTED) not in done.stdout + done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_while_the_record_is_written_waits_until_it_is_there(
    people: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    save = jobs.FinishedJob.save

    def slow(made: jobs.FinishedJob, path: Path, *, sign: str | None) -> None:
        os.kill(os.getpid(), number)
        save(made, path, sign=sign)

    monkeypatch.setattr(jobs.FinishedJob, "save", slow)
    known = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        code, _ = run(*asked(people, "mean", "-", "income"), "--out", people / "o")
    finally:
        signal.signal(signal.SIGINT, known)
    assert code == 130
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    assert [path.name for path in (people / "o").iterdir()] == ["release.json"]
    assert zd.load(people / "o" / "release.json").record.task == "mean"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_held_signals_go_to_whoever_handles_them_in_the_end(number: int) -> None:
    seen: list[int] = []
    known = signal.signal(number, lambda got, _: seen.append(got))
    try:
        with held_interrupts():
            os.kill(os.getpid(), number)
            assert seen == []
        assert seen == [number]
        signal.signal(number, signal.SIG_IGN)
        with held_interrupts():
            os.kill(os.getpid(), number)
        assert signal.getsignal(number) is signal.SIG_IGN
    finally:
        signal.signal(number, known)
    assert seen == [number]


def test_a_signal_that_a_program_around_python_handles_is_left_to_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known = signal.getsignal
    strange: dict[int, Any] = {
        signal.SIGHUP: None
    }  # what Python says of a handler that it did not install
    monkeypatch.setattr(
        signal, "getsignal", lambda each: strange[each] if each in strange else known(each)
    )
    before = [known(each) for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
    with held_interrupts():
        assert known(signal.SIGHUP) is before[-1]
    assert [known(each) for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)] == before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_of_a_real_process_leaves_ledger_and_files_consistent(
    people: Path, number: int
) -> None:
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
        process.send_signal(number)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in errors
    assert "stays spent" in errors
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


JOBS = """\
data = "people.csv"
schema = "people.toml"
ledger = "l"
budget = "1"

[[release]]
task = "mean"
columns = "income"
epsilon = "{first}"

[[release]]
task = "{task}"
columns = "{column}"
epsilon = "1/2"
"""


def test_a_mistake_in_a_later_job_is_found_before_an_earlier_one_is_paid_for(people: Path) -> None:
    job = people / "job.toml"
    job.write_text(JOBS.format(first="1/2", task="median", column="incme"), encoding="utf-8")
    code, output = run("release", job, "--json")
    assert code == 2
    assert "incme" in output
    assert not (people / "l").exists()


def test_jobs_that_the_budget_does_not_cover_together_are_refused_before_the_first(
    people: Path,
) -> None:
    job = people / "job.toml"
    job.write_text(JOBS.format(first="3/4", task="median", column="income"), encoding="utf-8")
    assert "this is covered" in run("plan", job)[1]
    assert "this is NOT covered" in run("plan", job)[1]
    code, output = run("release", job)
    assert code == 3
    assert "2-median costs 1/2, but only 1/4" in output
    assert not (people / "l").exists()
    job.write_text(JOBS.format(first="1/2", task="median", column="income"), encoding="utf-8")
    assert "NOT covered" not in run("plan", job)[1]
    assert run("release", job)[0] == 0
    assert zd.Ledger(people / "l", data="people").remaining == 0


def test_what_was_paid_for_is_told_in_json_whatever_becomes_of_the_next_job(
    people: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = jobs.run_job

    def fails(job: jobs.Job) -> Any:
        if job.task == "median":
            raise KeyboardInterrupt
        return made(job)

    monkeypatch.setattr(outputs, "run_job", fails)
    job = people / "job.toml"
    job.write_text(JOBS.format(first="1/2", task="median", column="income"), encoding="utf-8")
    code, output = run("release", job, "--json")
    assert code == 130
    assert json.loads(output[: output.rindex("]") + 1])[0]["value"][0]["mean"]


def test_a_file_that_is_no_private_key_is_refused_before_anything_is_spent(people: Path) -> None:
    mean = asked(people, "mean", "-", "income")
    paying = ["--ledger", people / "l", "--budget", 1, "--out", people / "o"]
    code, output = run(*mean, *paying, "--sign", people / "people.csv")
    assert code == 2
    assert "private key" in output
    assert not (people / "l").exists()


@pytest.mark.parametrize("name", ["value.csv", "report.html", "value-2.parquet"])
def test_a_file_of_somebody_s_is_not_written_over(people: Path, name: str) -> None:
    (people / "people.csv").rename(people / name)
    schema = ["--schema", people / "people.toml", "--epsilon", 1, "--out", people]
    code, output = run("mean", people / name, "income", *schema)
    assert code == 2
    assert name in output
    assert (people / name).read_text(encoding="utf-8").startswith("age,income")


def test_what_cannot_be_written_any_more_is_told_beside_the_release(
    people: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, *_content: Any, **_name: Any) -> None:
        raise OSError(28, "No space left on device", str(path))

    save = jobs.FinishedJob.save

    def taken(made: jobs.FinishedJob, path: Path, *, sign: str | None) -> None:
        if path.is_relative_to(people):
            raise OSError(28, "No space left on device", str(path))
        save(made, path, sign=sign)

    monkeypatch.setattr(outputs, "write_new", full)
    monkeypatch.setattr(page, "write_new", full)
    monkeypatch.setattr(jobs.FinishedJob, "save", taken)
    monkeypatch.setattr(tempfile, "mkdtemp", lambda prefix: str(people.parent))
    code, output = run(*asked(people, "mean", "-", "income"), "--out", people / "o")
    assert code == 4
    assert "ε = 0.25" in output
    assert f"wrote {people.parent / 'release.json'}" in output
    for name in ("release.json", "value.csv", "report.html"):
        assert f"{people / 'o' / name} could not be written" in output
    assert zd.load(people.parent / "release.json").record.task == "mean"


@pytest.mark.parametrize(
    "words",
    [
        ("prove", "o/release.json", "--out"),
        ("report", "o/release.json", "--out"),
        ("ledger", "export", "l", "--out"),
        ("ledger", "export", "l", "--format", "csv", "--out"),
        ("ledger", "export", "l", "--format", "registry", "--out"),
        ("init", "people.csv", "--header", "--schema"),
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_no_command_writes_over_a_file(
    people: Path, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(people)
    paying = ["--ledger", "l", "--budget", 1, "--out", "o"]
    assert run(*asked(people, "mean", "-", "income"), *paying)[0] == 0
    mine = people / "mine.txt"
    mine.write_text("my own", encoding="utf-8")
    there = sorted(people.iterdir())
    code, output = run(*words, mine)
    assert code == 2, output
    assert "nothing is overwritten" in output
    assert len(output.strip().splitlines()) == 1
    assert mine.read_text(encoding="utf-8") == "my own"
    assert run(*words, "new.txt")[0] == 0
    assert (people / "new.txt").read_text(encoding="utf-8")
    assert sorted(people.iterdir()) == sorted([*there, people / "new.txt"])


def test_a_demonstration_writes_over_no_file(tmp_path: Path) -> None:
    mine = tmp_path / "tumors.csv"
    mine.write_text("my own", encoding="utf-8")
    code, output = run("demo", "--out", tmp_path)
    assert code == 2
    assert "nothing is overwritten" in output
    assert mine.read_text(encoding="utf-8") == "my own"


def test_remedies_are_those_of_the_command_line(people: Path) -> None:
    for words in (
        asked(people, "mean", "-", "nothing"),
        asked(people, "mean", "-", "city"),
        [*asked(people, "mean", "-", "income"), "--budget", "1"],
        [*asked(people, "mean", "-", "income"), "--ledger", str(people / "l")],
        [*asked(people, "mean", "-", "income"), "--epsilon", "0"],
        asked(people, "mean", "-", "income", "--by", "nothing"),
        asked(people, "logistic", "-", "age", "--target", "income"),
        asked(people, "mode", "-", "surname"),
    ):
        code, output = run(*words)
        assert code in (2, 3)
        assert "zd." not in output
        assert "=(" not in output


@pytest.mark.parametrize(
    "words",
    [
        ("kmeans", "-", "age", "--clusters", "0"),
        ("top-k", "-", "city", "--k", "0"),
        ("mlp", "-", "age", "--target", "member", "--rounds", "0"),
        ("trimmed-mean", "-", "income", "--trim", ""),
    ],
)
def test_an_option_of_zero_or_nothing_is_refused_and_not_left_out(
    people: Path, words: tuple[str, ...]
) -> None:
    paying = ["--ledger", people / "l", "--budget", 1]
    code, output = run(*asked(people, *words), *paying)
    assert code == 2, output
    assert not (people / "l").exists() or zd.Ledger(people / "l", data="people").spent == 0


@pytest.mark.parametrize(
    "line",
    ["columns = 5", "columns = [5]", "data = 5", "epsilon = true", 'again = "no"', "out = 3"],
)
def test_a_job_with_a_line_of_another_kind_is_refused_in_one_line(people: Path, line: str) -> None:
    given = {"task": '"mean"', "data": '"people.csv"', "epsilon": '"1/4"', "columns": '"income"'}
    given |= {"schema": '"people.toml"', line.split(" = ")[0]: line.split(" = ")[1]}
    job = people / "job.toml"
    job.write_text("".join(f"{name} = {text}\n" for name, text in given.items()), encoding="utf-8")
    code, output = run("release", job)
    assert code == 2, output
    assert len(output.strip().splitlines()) == 1
