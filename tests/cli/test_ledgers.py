"""Ledgers of several people on the command line: analysts, saved releases, second names."""

from __future__ import annotations

import json
import shutil
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import zerodelta as zd
from cli.people import asked, run
from ledger.spenders import as_a_new_process
from zerodelta.cli.jobs import read_jobs
from zerodelta.errors import ParameterError

JOB = """\
data = "people.csv"
schema = "people.toml"
ledger = "l"
records = "out"
analyst = "ana"
task = "mean"
columns = "age"
epsilon = "1/4"
"""


@pytest.fixture
def ledger(people: Path) -> Path:
    """An account of the people, and one of ana."""
    place = people / "l"
    assert run("ledger", "open", place, "--data", "people", "--budget", 1)[0] == 0
    code, output = run("ledger", "open", place, "--analyst", "ana", "--budget", "1/2")
    assert code == 0
    assert "1/2 of 1/2 left" in output
    return place


@pytest.mark.parametrize("url", ["postgresql://ana:s3cret@[h/b", "postgresql:ana:s3cret@h/b"])
def test_a_url_in_a_job_is_no_path_and_not_repeated(people: Path, url: str) -> None:
    job = people / "job.toml"
    job.write_text(JOB.replace('"l"', f'"{url}"'), encoding="utf-8")
    for command in ("plan", "release"):
        code, output = run(command, job)
        assert (code, "s3cret" in output) == (2, False)
        assert "the address is not repeated here" in output


def test_an_analyst_pays(people: Path, ledger: Path) -> None:
    words = [*asked(people, "mean", "-", "income"), "--ledger", ledger, "--analyst", "ana"]
    assert "1/2 left for it" in run(*words, "--dry-run")[1]
    code, output = run(*words, "--out", people / "o", "--json")
    assert code == 0, output
    assert json.loads(output)["remaining"] == "1/4"
    shown = json.loads(run("ledger", "show", ledger, "--json")[1])
    assert [(each["analyst"], each["spent"]) for each in shown] == [(None, "1/4"), ("ana", "1/4")]
    assert '"analyst": "ana"' in run("ledger", "history", ledger, "--analyst", "ana", "--json")[1]
    said = ("ledger", "raise", ledger, "--analyst", "ana", "--to", "3/4", "--reason", "agreed")
    assert "1/2 of 3/4 left" in run(*said)[1]
    for unknown in ("anna", "bob"):
        code, output = run(*words[:-1], unknown)
        assert (code, zd.Ledger(ledger, data="people").entries) == (2, 4)
        assert "an analyst who has an account of 'people': ana" in output
    code, output = run(*asked(people, "mean", "-", "income"), "--analyst", "ana")
    assert code == 2
    assert "expected a ledger" in output


def test_a_job_names_its_analyst_and_its_records(people: Path, ledger: Path) -> None:
    path = people / "job.toml"
    path.write_text(JOB, encoding="utf-8")
    (job,) = read_jobs(path)
    assert (job.analyst, job.records) == ("ana", str(people / "out"))
    assert run("release", path)[0] == 2  # there is no such folder
    (people / "out").mkdir()
    assert run("release", path)[0] == 0
    assert zd.Ledger(ledger, data="people", analyst="ana").spent == Fraction("1/4")
    path.write_text(JOB.replace('ledger = "l"\n', ""), encoding="utf-8")
    with pytest.raises(ParameterError, match="a ledger"):
        read_jobs(path)


def test_saved_releases_show_what_a_ledger_has_forgotten(people: Path, ledger: Path) -> None:
    old = shutil.copy(ledger, people / "old")
    out = people / "out"
    out.mkdir()
    words = [*asked(people, "mean", "-", "income"), "--ledger", ledger, "--records", out]
    assert run(*words, "--out", out / "first")[0] == 0
    as_a_new_process()
    shutil.copy(old, ledger)
    as_a_new_process()
    for more in ((), ("--dry-run",)):
        code, output = run(*words, "--again", *more)
        assert code == 3
        assert "which is not in it" in output
    assert zd.Ledger(ledger, data="people").spent == 0


def test_saved_releases_show_that_another_ledger_is_in_its_place(
    people: Path, ledger: Path
) -> None:
    """A new one knows nothing of what was spent, and none of its entries is asked for."""
    out = people / "out"
    out.mkdir()
    words = [*asked(people, "mean", "-", "income"), "--ledger", ledger, "--records", out]
    assert run(*words, "--out", out / "first")[0] == 0
    as_a_new_process()
    ledger.unlink()
    for more in ((), ("--dry-run",)):
        code, output = run(*words, "--budget", 1, *more)
        assert code == 3
        assert "was paid for with another ledger" in output
    assert zd.Ledger(ledger, data="people").spent == 0
    other = zd.Ledger(ledger, data="others", budget=1)  # other people, in that folder too
    assert other.demand(out) == 0


def test_a_second_schema_opens_no_second_budget(people: Path) -> None:
    words = [*asked(people, "mean", "-", "income"), "--ledger", people / "l", "--budget", 1]
    assert run(*words)[0] == 0
    schema = people / "people.toml"
    text = schema.read_text(encoding="utf-8")
    schema.write_text(text.replace('name = "people"', 'name = "people 2026"'), encoding="utf-8")
    code, output = run(*words)
    assert code == 2
    assert "'people', under which this file has an account" in output


def test_no_password_is_printed(people: Path) -> None:
    """Of a server that is not there, in whatever way a ledger is named."""
    server = "://ana:s3cret@127.0.0.1:1/budgets"
    words = asked(people, "mean", "-", "income")
    for scheme in ("postgresql", "mysql"):
        url = scheme + server
        commands: list[list[Any]] = [
            [*words, "--ledger", url, "--budget", 1],
            [*words, "--ledger", url, "--budget", 1, "--dry-run"],
            [*words, "--ledger", url, "--analyst", "ana", "--records", people],
            ["mean", url, "income", "--epsilon", 1, "--schema", people / "people.toml"],
            *[["ledger", each, url] for each in ("show", "history", "verify", "open")],
            ["ledger", "export", url, "--out", people / "x.json"],
            ["ledger", "raise", url, "--to", 2, "--reason", "why"],
        ]
        for command in commands:
            code, output = run(*command)
            assert code in (2, 3)
            assert "s3cret" not in output
