"""Jobs in TOML, schemas to fill in, and what a release leaves in its folder."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import zerodelta as zd
from cli.people import PLANTED, asked, run
from zerodelta.cli.jobs import read_jobs

JOBS = """\
data = "people.csv"
schema = "people.toml"
ledger = "people.ledger"
budget = 1
out = "out"

[[release]]
task = "mean"
name = "income"
columns = "income"
by = "city"
epsilon = 0.25

[[release]]
task = "logistic"
columns = ["age", "income"]
target = "member"
epsilon = "1/2"
"""


@pytest.fixture
def job(people: Path) -> Path:
    path = people / "job.toml"
    path.write_text(JOBS, encoding="utf-8")
    return path


def test_a_plan_of_several_releases_spends_nothing(job: Path) -> None:
    code, output = run("plan", job, "--json")
    assert code == 0, output
    assert [each["price"] for each in json.loads(output)] == ["1/4", "1/2"]
    assert not (job.parent / "people.ledger").exists()
    code, output = run("plan", job)
    assert "[income]" in output
    assert "[2-logistic]" in output


def test_several_releases_are_made_and_paid_for(job: Path) -> None:
    code, output = run("release", job)
    assert code == 0, output
    files = [job.parent / "out" / name / "release.json" for name in ("income", "2-logistic")]
    code, output = run("verify", *files, "--json")
    assert code == 0
    told = {"releases": 2, "epsilon": "3/4", "neighbors": "replace"}
    assert json.loads(output)["totals"] == {"people": told}
    assert run("verify", *files, "--epsilon", "0.7")[0] == 1
    code, output = run("plan", job)
    assert "NOT covered" in output  # 1/4 is left, 1/2 is asked


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('task = "mean"', 'task = "men"', 'did you mean "mean"?'),
        ("columns =", "colums =", 'did you mean "columns"?'),
        ('by = "city"', 'q = "1/2"', "option"),
        ("epsilon = 0.25", "", "epsilon"),
        ('target = "member"', "", "target"),
        ("budget = 1", "budget = [", "TOML"),
        ('name = "income"', 'name = "../x"', "folder"),
    ],
)
def test_malformed_jobs_are_refused_with_the_remedy(
    job: Path, old: str, new: str, words: str
) -> None:
    assert JOBS.count(old) >= 1
    job.write_text(JOBS.replace(old, new, 1), encoding="utf-8")
    code, output = run("release", job)
    assert code == 2, output
    assert words in output
    assert len(output.strip().splitlines()) == 1
    assert not (job.parent / "people.ledger").exists()


def test_paths_of_a_job_are_relative_to_its_folder(job: Path) -> None:
    first, _ = read_jobs(job)
    assert first.data == str(job.parent / "people.csv")
    assert first.ledger == str(job.parent / "people.ledger")


# -- init ----------------------------------------------------------------------------------------


def test_a_template_has_names_and_nothing_of_a_row(people: Path) -> None:
    (people / "people.toml").unlink()
    code, output = run("init", people / "people.csv", "--header")
    assert code == 0, output
    text = (people / "people.toml").read_text(encoding="utf-8")
    assert "# income = {number = [LOWER, UPPER]}" in text
    cells = (people / "people.csv").read_text(encoding="utf-8").splitlines()[1].split(",")
    assert str(PLANTED) not in text
    assert cells[1] not in text
    code, output = run(
        "mean", people / "people.csv", "income", "--epsilon", 1, "--schema", people / "people.toml"
    )
    assert code == 2
    assert "columns" in output


def test_a_filled_in_template_works(people: Path) -> None:
    (people / "people.toml").unlink()
    assert run("init", people / "people.csv", "--header")[0] == 0
    path = people / "people.toml"
    text = path.read_text(encoding="utf-8")
    path.write_text(
        text.replace("# income = {number = [LOWER, UPPER]}", "income = {number = [0, 200000]}")
    )
    assert run(*asked(people, "mean", "-", "income"))[0] == 0


def test_without_a_header_no_line_is_read(people: Path, tmp_path: Path) -> None:
    path = tmp_path / "secret.csv"
    path.write_text("smith,41\n", encoding="utf-8")
    assert run("init", path, "--no-header")[0] == 0
    text = (tmp_path / "secret.toml").read_text(encoding="utf-8")
    assert "smith" not in text
    assert "41" not in text
    assert "header = false" in text


@pytest.mark.parametrize(
    ("quote", "name", "told"), [(None, "age", ""), ("none", r'"\"age\""', "none")]
)
def test_names_are_unquoted_as_cells_will_be(
    quote: str | None, name: str, told: str, tmp_path: Path
) -> None:
    path = tmp_path / "people.csv"
    path.write_text('"age"\n"41"\n', encoding="utf-8")
    asked = () if quote is None else ("--quote", quote)
    assert run("init", path, "--header", *asked)[0] == 0
    text = (tmp_path / "people.toml").read_text(encoding="utf-8")
    assert f"# {name} = {{number = [LOWER, UPPER]}}" in text
    assert (f'[file]\nquote = "{told}"\n' in text) is (quote is not None)


def test_nobody_guesses_whether_there_is_a_header(people: Path) -> None:
    code, output = run("init", people / "people.csv", "--schema", people / "new.toml")
    assert code == 2
    assert "--no-header" in output
    assert not (people / "new.toml").exists()


# -- what is written -----------------------------------------------------------------------------


def test_values_are_written_as_csv_and_parquet_with_their_intervals(people: Path) -> None:
    out = people / "out"
    words = [*asked(people, "mean", "-", "income", "--by", "city"), "--out", out, "--parquet"]
    assert run(*words)[0] == 0
    with (out / "value.csv").open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    table = pq.read_table(out / "value.parquet").to_pydict()
    assert [line["city"] for line in lines] == table["city"] == ["oslo", "rome"]
    release = zd.load(out / "release.json")
    assert [float(line["income_mean"]) for line in lines] == list(release.value["income_mean"])
    lower, upper = release.interval()
    assert table["income_mean_lower"] == list(lower["income_mean"])
    assert table["income_mean_upper"] == list(upper["income_mean"])


def test_files_of_unknown_keys_have_the_warning_in_each_line(people: Path) -> None:
    words = [*asked(people, "heavy-hitters", "-", "surname"), "--parquet"]
    code, output = run(*words, "--epsilon", "40", "--out", people / "o", "--json")
    assert code == 0, output
    (note,) = json.loads(output)["notes"]
    assert "a key that noise invented" in note
    with (people / "o" / "value.csv").open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    assert {line["surname"] for line in lines} >= {"smith", "lee"}
    assert {line["note"] for line in lines} == {note}
    assert set(pq.read_table(people / "o" / "value.parquet").to_pydict()["note"]) == {note}
    code, output = run(*words, "--epsilon", "1/1000", "--out", people / "none")
    assert code == 0, output
    written = (people / "none" / "value.csv").read_text(encoding="utf-8")
    none = "no key was found: half of those with about"  # but for one in 100 runs
    assert (none in output) is (none in written)
    assert written.count("\n") >= 2


def test_a_key_that_is_a_formula_or_an_escape_is_harmless(tmp_path: Path) -> None:
    lines = ["name"] + ["=1+1"] * 500 + ["\x1b[31m"] * 500
    (tmp_path / "people.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    schema = 'name = "<b>x"\n[columns]\nname = {category = ["=1+1", "\\u001b[31m", "<script>"]}\n'
    (tmp_path / "people.toml").write_text(schema, encoding="utf-8")
    code, output = run(*asked(tmp_path, "count", "-", "--by", "name"), "--out", tmp_path / "o")
    assert code == 0, output
    assert "\x1b" not in output
    text = (tmp_path / "o" / "value.csv").read_text(encoding="utf-8")
    assert '\n"\'=1+1",' in text
    page = (tmp_path / "o" / "report.html").read_text(encoding="utf-8")
    assert "<script" not in page
    assert "<b>x" not in page
    assert "&lt;script&gt;" in page


def test_verify_reads_the_standard_input(people: Path) -> None:
    assert run(*asked(people, "mean", "-", "income"), "--out", people / "o")[0] == 0
    text = (people / "o" / "release.json").read_text(encoding="utf-8")
    code, output = run("verify", "-", "--json", stdin=text)
    assert code == 0, output
    (found,) = json.loads(output)["files"]
    assert found["task"] == "mean"
    code, output = run("verify", "-", "--json", stdin=text.replace('"mean"', '"sum"'))
    assert code == 1
    assert not json.loads(output)["verified"]


# -- ledger, advise, version, help ---------------------------------------------------------------


def test_a_ledger_is_shown_exported_raised_and_verified(people: Path) -> None:
    place = people / "l"
    words = [*asked(people, "mean", "-", "income"), "--ledger", place, "--budget", 1]
    assert run(*words, "--out", people / "o")[0] == 0
    code, output = run("ledger", "show", place, "--json")
    (account,) = json.loads(output)
    assert (account["data"], account["spent"], account["left"]) == ("people", "1/4", "3/4")
    assert "people" in run("ledger", "show", place)[1]
    assert "mean(income)" in run("ledger", "history", place)[1]
    assert json.loads(run("ledger", "history", place, "--json")[1])[-1]["booked"] == "1/4"
    code, output = run("ledger", "raise", place, "--to", 2, "--reason", "the board")
    assert code == 0
    assert "7/4 of 2 left" in output
    assert run("ledger", "raise", place, "--to", 1, "--reason", "less")[0] == 2
    assert run("ledger", "export", place, "--out", people / "l.csv", "--format", "csv")[0] == 0
    assert "the board" in (people / "l.csv").read_text(encoding="utf-8")
    assert run("ledger", "verify", place, people / "o" / "release.json")[0] == 0
    assert run("ledger", "show", people / "people.csv")[0] == 3
    (people / "o" / "release.json").write_text("{}", encoding="utf-8")
    code, output = run("ledger", "verify", place, people / "o" / "release.json", "--json")
    assert code == 1
    assert "NOT VERIFIED" in output


def test_advice_is_given_before_there_is_data() -> None:
    words = ("advise", "mean", "n=10000", "dimension=5", "epsilon=1", "data_norm=1")
    code, output = run(*words)
    assert code == 0
    assert "k-norm" in output
    (found,) = json.loads(run(*words, "--json")[1])
    assert found["best"] == "k-norm"
    assert run("advise", "men")[0] == 2
    assert run("advise", "mean", "n")[0] == 2


def test_the_version_is_printed() -> None:
    assert run("--version") == (0, f"zerodelta {zd.__version__}\n")
    assert run("version") == (0, f"zerodelta {zd.__version__}\n")


def test_help_loads_nothing_heavy() -> None:

    program = """
import os
import subprocess
import sys
from zerodelta.cli import app
try:
    app(["--help"])
except SystemExit:
    pass
heavy = ("numpy", "scipy", "flint", "narwhals", "sklearn", "pandas", "sqlite3", "rich.table")
print([name for name in heavy if name in sys.modules], file=sys.stderr)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stderr == "[]\n"
    assert "Exit codes" in done.stdout


def test_commands_work_where_the_terminal_knows_no_greek(people: Path) -> None:

    done = subprocess.run(
        [sys.executable, "-m", "zerodelta", *asked(people, "mean", "-", "income", "--by", "city")],
        capture_output=True,
        check=False,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert done.returncode == 0, done.stderr
    assert b"oslo" in done.stdout
    assert done.stderr == b""
