"""A page about claims of other kinds: add-remove, units, signed files, and what adds up."""

from __future__ import annotations

import json
import re
import shlex
from fractions import Fraction
from html import unescape
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zerodelta as zd
from cli.people import asked, run, write_people
from zerodelta.privacy.release import make_keys
from zerodelta.report import page_of_releases
from zerodelta.report.contents import after_upper, factor_text, grids_of, percent_text

HALF = Fraction(1, 2)


def opened(**given: Any) -> Any:
    table = np.zeros(100, dtype=[("age", np.float64), ("who", "U4")])
    table["who"] = [f"p{i // 2}" for i in range(100)]
    kinds = {"age": zd.number(0, 120, missing=None), "who": zd.text(4, alphabet="p0123456789")}
    return zd.open(table, columns=kinds, name="people", expected_rows=100, **given)


def text_of(page: str) -> str:
    return unescape(re.sub(r"<[^>]+>", "", page))


def risen(epsilon: int) -> str:
    return percent_text(after_upper(HALF, Fraction(epsilon)), up=True)


def test_what_a_row_holds_is_told_at_twice_the_epsilon_of_add_remove() -> None:
    """A row replaced is one removed and one added: e^ε bounds only whether it is there."""
    page = page_of_releases([zd.sum(opened(neighbors="add-remove"), "age", epsilon=1)])
    told = text_of(page)
    assert f"a suspicion of 50 % rises to at most {risen(2)} (at ε = 2: add-remove" in told
    assert risen(1) not in told
    assert "ε = 1 (add-remove), δ = 0" in told
    assert f"which is at most {factor_text(Fraction(2))}" in told
    assert (
        "For the question whether it is in the data at all, the factor is at most "
        f"{factor_text(Fraction(1))}." in told
    )


def test_releases_for_rows_and_for_units_are_not_added_up() -> None:
    row = zd.sum(opened(), "age", epsilon=1)
    unit = zd.sum(opened(unit="who", max_rows=2), "age", epsilon=2)
    told = text_of(page_of_releases([row, unit], files=["row.json", "unit.json"]))
    assert "ε = 3" not in told
    assert "they do not add up" in told
    assert f"Of one row: a suspicion of 50 % rises to at most {risen(1)}" in told
    assert f"Of the rows of one who: a suspicion of 50 % rises to at most {risen(2)}" in told
    assert "Release 1: pure differential privacy with ε = 1" in told
    assert "Release 2: pure differential privacy with ε = 2" in told
    assert "zerodelta verify row.json\n" in told.replace("zerodelta verify unit", "\nzerodelta v")
    assert "zerodelta verify unit.json --unit who" in told


def test_the_command_on_a_page_verifies_its_file_and_prints_its_digests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(write_people(tmp_path))
    unit = '\n[unit]\ncolumn = "surname"\nmax_rows = 2\n'
    with Path("people.toml").open("a", encoding="utf-8") as file:
        file.write(unit)
    code, output = run(
        *asked(tmp_path, "sum", "-", "income"), "--expected-rows", 400, "--out", "o '&"
    )
    assert code == 0, output
    page = Path("o '&", "report.html").read_text(encoding="utf-8")
    command = shlex.split(unescape(re.findall(r"<pre><code>(.*?)</code>", page)[0]))
    code, output = run(*command[1:])
    assert code == 0, output
    for name in ("digest of the file", "digest of the certificate"):
        digest = re.findall(rf"{name}</th><td>(\w+)</td>", page)[0]
        assert f"{name} {digest}" in output
    one = json.loads(run(*command[1:], "--json")[1])["files"][0]
    assert f"<td>{one['digest']}</td>" in page
    assert f"<td>{one['certificate_digest']}</td>" in page


def test_a_signature_is_on_the_page_if_it_is_one(tmp_path: Path) -> None:
    write_people(tmp_path)
    key = make_keys(tmp_path / "a.key", tmp_path / "a.pub")
    mean = [*asked(tmp_path, "mean", "-", "income"), "--out", tmp_path / "o"]
    assert run(*mean, "--sign", tmp_path / "a.key")[0] == 0
    page = (tmp_path / "o" / "report.html").read_text(encoding="utf-8")
    assert f"signed by the key</th><td>{key}</td>" in page
    assert "nobody vouches" not in page
    release = zd.load(tmp_path / "o" / "release.json")
    assert f"not checked here, of the key</th><td>{key}" in page_of_releases([release])
    record = tmp_path / "o" / "release.json"
    other = make_keys(tmp_path / "b.key", tmp_path / "b.pub")
    forged = record.read_text(encoding="utf-8").replace(key, other)
    (tmp_path / "forged.json").write_text(forged, encoding="utf-8")
    code, output = run("report", tmp_path / "forged.json", "--out", tmp_path / "r.html")
    assert code == 1
    assert "is wrong" in output
    assert not (tmp_path / "r.html").exists()


def test_the_report_of_a_file_that_is_none_names_it(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("{}", encoding="utf-8")
    code, output = run("report", tmp_path / "x.json", "--out", tmp_path / "r.html")
    assert code == 1
    assert f"{tmp_path / 'x.json'}: NOT VERIFIED" in output
    missing = tmp_path / "nowhere" / "r.html"
    release = zd.mean(np.zeros(9), bounds=(0, 1), epsilon=1)
    with pytest.raises(OSError, match=r"r\.html'$"):  # the name that was given, no other
        release.report(missing)


def test_budgets_of_several_data_sets_are_told(tmp_path: Path) -> None:
    files = []
    for name, budget in (("people", "3"), ("others", "7")):
        (tmp_path / name).mkdir()
        schema = write_people(tmp_path / name) / "people.toml"
        text = schema.read_text(encoding="utf-8")
        schema.write_text(re.sub("^name = .*", f'name = "{name}"', text), encoding="utf-8")
        out = tmp_path / name / "out"
        paying = ["--ledger", tmp_path / "l", "--budget", budget, "--out", out]
        assert run(*asked(tmp_path / name, "mean", "-", "income"), *paying)[0] == 0
        files.append(out / "release.json")
    code, output = run("report", *files, "--ledger", tmp_path / "l", "--out", tmp_path / "r.html")
    assert code == 0, output
    told = text_of((tmp_path / "r.html").read_text(encoding="utf-8"))
    for name, budget in (("people", "3"), ("others", "7")):
        assert f"data set{name}budgetε = {budget}spentε = 1/4" in told


def test_an_epsilon_of_nothing_changes_no_odds() -> None:
    told = text_of(page_of_releases([zd.count(opened(), epsilon=1)]))
    assert "which is at most 1, up or down" in told
    assert "count of rows (ε = 0)" in told


def test_errors_are_told_in_what_they_are_counted_in() -> None:
    rows = np.arange(100.0)
    told = text_of(page_of_releases([zd.median(rows, bounds=(0, 100), epsilon=1)]))
    assert "rows by which its rank is off" in told
    told = text_of(page_of_releases([zd.mean(rows, bounds=(0, 100), epsilon=1)]))
    assert re.search(r"Expected error: [\d.]+, in the unit of the column\.", told)


def test_lines_of_as_many_centers_as_columns_are_not_named_for_columns() -> None:
    rows = np.zeros(400, dtype=[("age", np.float64), ("income", np.float64)])
    kinds = {name: zd.number(0, 1, missing=None) for name in ("age", "income")}
    people = zd.open(rows, columns=kinds)
    (grid,) = grids_of(zd.kmeans(people, clusters=2, columns=["age", "income"], epsilon=1))
    assert list(*grid.keys.values()) == [1, 2]
    (grid,) = grids_of(zd.covariance(people, columns=["age", "income"], epsilon=1))
    assert list(grid.keys["column"]) == ["age", "income"] * 2


def test_parameters_are_told_in_words_not_as_python() -> None:
    table = np.zeros(100, dtype=[("age", np.float64), ("city", "U4")])
    kinds = {"age": zd.number(0, 120), "city": zd.category(["oslo", "rome"])}
    of = {"age": ["mean", {"quantiles": ["0.1", "0.9"]}]}
    release = zd.table(zd.open(table, columns=kinds), by="city", of=of, epsilon=1)
    assert "age: mean, quantiles: 0.1, 0.9" in text_of(page_of_releases([release]))


@pytest.mark.parametrize("size", [1.0, 1e3, 1e9, 1e14])
def test_numbers_below_a_drawing_do_not_run_into_each_other(size: float) -> None:
    rows = np.linspace(0, size, 200)
    page = page_of_releases([zd.sum(rows, bounds=(0, size), epsilon=1)])
    drawing = re.findall(r"<svg.*?</svg>", page)[0]
    ticks = re.findall(r'<text x="([\d.]+)" y="\d+" text-anchor="middle">(.*?)</text>', drawing)
    assert len(ticks) >= 2
    ends = [(float(x) - 3.5 * len(t), float(x) + 3.5 * len(t)) for x, t in ticks]
    assert all(left[1] < right[0] for left, right in pairwise(ends))


def test_the_number_of_rows_is_told_where_it_is_public_and_only_there() -> None:
    table = np.zeros(123, dtype=[("age", np.float64), ("city", "U4")])
    kinds = {"age": zd.number(0, 120, missing=None), "city": zd.category(["oslo", "rome"])}
    people = zd.open(table, columns=kinds)
    told = text_of(page_of_releases([zd.mean(people, "age", epsilon=1)]))
    assert "the number of rows, 123" in told
    few = zd.open(table, columns=kinds, neighbors="add-remove", expected_rows=90)
    told = text_of(page_of_releases([zd.mean(few, "age", epsilon=1)]))
    assert "how many rows are expected, 90" in told
    assert "123" not in re.sub(r"[0-9a-f]{64}", "", told[told.index("What was public") :])


def test_lines_of_a_histogram_are_named_for_its_column() -> None:
    table = np.zeros(123, dtype=[("age", np.float64), ("city", "U4")])
    people = zd.open(table, columns={"city": zd.category(["oslo", "rome"])})
    (grid,) = grids_of(zd.histogram(people, "city", epsilon=1))
    assert dict(grid.keys) == {"city": ["oslo", "rome"]}
