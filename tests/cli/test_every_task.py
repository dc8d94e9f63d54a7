"""Every task and estimator has a command, and docs/command-line.md shows what they print."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

import zerodelta as zd
from cli.people import PLANTED, asked, run, write_people
from zerodelta.cli.refusals import ExitCode
from zerodelta.tasks.registry import COMMANDS, TASKS

TAKEN = {name: task.command for name, task in TASKS.items() if task.command is not None}
"""How the command line takes each task."""


def example(people: Path, command: str) -> list[str]:
    return asked(people, *TAKEN[COMMANDS[command]].example.split())


@pytest.mark.parametrize("task", COMMANDS)
def test_a_task_is_released_saved_and_verified(people: Path, task: str) -> None:
    out = people / "out"
    code, output = run(*example(people, task), "--out", out, "--json")
    assert code == 0, output
    told = json.loads(output)
    assert told["claim"]["epsilon"] == "1/4"
    assert told["value"]
    assert sorted(Path(each) for each in told["files"]) == sorted(out.iterdir())
    assert run("verify", out / "release.json", "--epsilon", "1/4")[0] == 0
    loaded = zd.load(out / "release.json")
    assert hasattr(loaded, "predict" if task != "pca" else "transform") is bool(
        TASKS[COMMANDS[task]].estimator
    )
    assert (out / "report.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    release = getattr(loaded, "release_", loaded)
    planned = json.loads(run(*example(people, task), "--dry-run", "--json")[1])
    assert planned["claim"] == release.certificate.body()["claim"]
    if task != "mlp":  # a study's certificate says how its program ended
        assert planned["public"] == list(release.certificate.public)
        assert planned["assumed"] == list(release.certificate.assumed)
        assert isinstance(planned["error"], str) or planned["error"] == release.error


@pytest.mark.parametrize("task", COMMANDS)
def test_a_dry_run_tells_the_price_and_leaves_nothing_behind(people: Path, task: str) -> None:
    before = sorted(people.rglob("*"))
    arguments = [*example(people, task), "--ledger", people / "l", "--budget", 1, "--dry-run"]
    code, output = run(*arguments, "--json")
    assert code == 0, output
    told = json.loads(output)
    assert told["price"] == "1/4"
    assert told["publishes"] == TAKEN[COMMANDS[task]].publishes
    assert run(*arguments)[0] == 0
    assert sorted(people.rglob("*")) == before


@pytest.mark.parametrize("task", COMMANDS)
def test_a_task_refuses_bad_input_in_one_line(people: Path, task: str) -> None:
    good = example(people, task)
    no_schema = good[: good.index("--schema")]
    zero = [*good, "--epsilon", "0"]
    missing_file = [good[0], str(people / "nobody.csv"), *good[2:]]
    for arguments in (no_schema, zero, missing_file):
        code, output = run(*arguments, "--out", people / "out")
        assert code == 2, output
        assert len(output.strip().splitlines()) == 1
        assert "Traceback" not in output
    assert not list((people / "out").glob("*"))


@pytest.mark.parametrize("task", COMMANDS)
def test_help_shows_an_example(task: str) -> None:
    code, output = run(task, "--help")
    assert code == 0
    assert f"zerodelta {TAKEN[COMMANDS[task]].example}" in " ".join(output.split())


def test_people_see_a_table_and_never_a_row(people: Path) -> None:
    code, output = run(*asked(people, "mean", "-", "income", "--by", "city"), "--out", people / "o")
    assert code == 0
    assert "oslo" in output
    assert "95 % interval" in output
    assert "pure differential privacy, ε = 0.25, δ = 0: proven" in output
    written = "".join(p.read_text(encoding="utf-8") for p in (people / "o").iterdir())
    assert str(PLANTED) not in output + written


def test_numbers_are_cut_into_groups_and_quantiles_are_asked_in_tables(people: Path) -> None:
    words = asked(people, "table", "-", "--by", "city", "--by", "age:0,18,120")
    code, output = run(*words, "--of", "income=mean,quantiles:0.1:0.9", "--json")
    assert code == 0, output
    (grid,) = json.loads(output)["value"]
    assert grid["age"] == ["[0, 18)", "[18, 120]"] * 2
    assert {"city", "count", "income_mean", "income_mean_lower"} <= grid.keys()


def test_shares_are_weighed_on_the_command_line_and_in_jobs(people: Path) -> None:
    words = asked(people, "table", "-", "--by", "city", "--of", "income=mean,median")
    code, output = run(*words, "--weights", "income_mean=3", "--dry-run")
    assert code == 0, output
    assert "goal: equal shares" in output
    assert "75.0% of ε" in output
    assert "; alone ±" in output
    code, output = run(*words, "--weights", "income=3", "--dry-run")
    assert code == 2
    assert "income_mean" in output
    code, output = run(*words, "--goal", "least total error", "--dry-run")
    assert "goal: least total error" in output
    job = people / "weighed.toml"
    lines = ['task = "table"', 'data = "people.csv"', 'schema = "people.toml"', 'by = "city"']
    lines += ["epsilon = 1", 'of = {income = ["mean", "median"]}', "weights = {income_mean = 3}"]
    job.write_text("\n".join(lines), encoding="utf-8")
    code, output = run("plan", job)
    assert code == 0, output
    assert "75.0% of ε" in output


def test_a_filter_is_asked_with_where(people: Path) -> None:
    words = [*asked(people, "mean", "-", "income"), "--where", "age >= 18", "--json"]
    code, output = run(*words)
    assert code == 0, output
    out = people / "o"
    assert run(*words, "--out", out)[0] == 0
    assert zd.load(out / "release.json").record.data[0]["where"] == ["age >= 18"]


def test_plan_and_release_say_what_is_to_be_asked_and_that_nobody_counted(tmp_path: Path) -> None:
    people = write_people(tmp_path)
    paying = ("--ledger", people / "l", "--budget", 1)
    for more, counted in (((), False), (paying, True)):
        code, plan = run(*asked(people, "mean", "-", "income"), *more, "--dry-run")
        assert code == 0, plan
        assert "to be asked" in plan
        assert "one person is in one row only" in plan
        assert ("no ledger counted its ε" in plan) is not counted
        code, made = run(*asked(people, "mean", "-", "income"), *more)
        assert ("no ledger counted its ε" in made) is not counted
        assert "beware" not in plan + made
    found = json.loads(run(*asked(people, "mean", "-", "income"), "--json")[1])
    assert found["entries"] == []
    assert found["to_ask"][-1].startswith("no ledger counted its ε")


@pytest.mark.parametrize(("epsilon", "large"), [("5", False), ("5.01", True), ("20", True)])
def test_a_large_epsilon_is_asked_about_before_and_after(
    tmp_path: Path, epsilon: str, large: bool
) -> None:
    words = [*asked(write_people(tmp_path), "mean", "-", "income"), "--epsilon", epsilon]
    for more in (("--dry-run",), ()):
        code, output = run(*words, *more)
        assert code == 0, output
        assert (
            "a suspicion of 50 % about one person may rise to more than 99 %" in output
        ) is large
        assert bool(json.loads(run(*words, *more, "--json")[1])["beware"]) is large
    advised = run("advise", "mean", "n=1000", "bounds=[0, 1]", f"epsilon={epsilon}")[1]
    assert ("beware: ε" in advised) is large


@pytest.mark.parametrize("task", ["logistic", "pca"])
def test_how_long_rows_are_is_an_option_and_is_told(people: Path, task: str) -> None:
    """Clipped rows in a corner of their bounds have a larger forecast, and the model says it."""
    if task == "logistic":
        words = ["logistic", "people.csv", "age", "income", "--target", "member"]
    else:
        words = ["pca", "people.csv", "age", "income"]
    out, errors = people / "out", {}
    for radius in ("1", "1/4"):
        code, output = run(*asked(people, *words), "--radius", radius, "--dry-run", "--json")
        assert code == 0, output
        errors[radius] = json.loads(output)["error"]
    if task == "logistic":
        assert errors["1/4"] > errors["1"]
        told = run(*asked(people, *words), "--radius", "1/4", "--dry-run")[1]
        assert "in nats" in told
        assert "a quarter of their bounds" in " ".join(told.split())
        code, output = run(*asked(people, *words), "--radius", "1/4", "--out", out)
        assert code == 0
        assert "are clipped to length 0.35355 before they are scored" in " ".join(output.split())
        assert zd.load(out / "release.json").data_norm_ == pytest.approx(0.35355, abs=1e-5)
    assert run(*asked(people, *words), "--radius", "2", "--dry-run")[0] != 0


# -- the page -------------------------------------------------------------------------------------


PAGE = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"(?:`([\w.]+)`:\n\n)?^```(toml|console)\n(.*?)^```$", PAGE, re.M | re.S)


def test_the_page_runs_from_top_to_bottom(people: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(people)
    Path("people.toml").unlink()
    commands = 0
    for name, kind, text in BLOCKS:
        if kind == "toml":
            Path(name).write_text(text, encoding="utf-8")
            continue
        for part in re.split(r"^\$ ", text, flags=re.M)[1:]:
            line, _, shown = part.partition("\n")
            code, output = run(*shlex.split(line)[1:])
            assert code == 0, (line, output)
            assert not shown or output == shown, line
            commands += 1
    assert commands == 10
    assert Path("report.html").exists()


def test_every_command_and_exit_code_is_on_the_page() -> None:
    missing = [name for name in COMMANDS if f"`{name}`" not in PAGE]
    assert not missing, (
        f"{missing}: name a command in the table of docs/command-line.md; one of an estimator is "
        "written by python -m reproduce.estimator_list"
    )
    for code in ExitCode:
        assert f"| {int(code)} |" in PAGE
