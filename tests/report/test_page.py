"""The report: each question of an officer answered, of every kind of claim, for every reader."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import replace
from fractions import Fraction
from html import unescape
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest

import zerodelta as zd
from cli.people import asked, run, write_people
from zerodelta.privacy.readable import LARGE
from zerodelta.privacy.release import make_keys
from zerodelta.report import page_of_releases, write_report
from zerodelta.report.contents import after_lower, after_upper, factor_text, grids_of, percent_text
from zerodelta.report.page import COLORS, LARGEST_PAGE
from zerodelta.testing import replayed

QUESTIONS = {
    "Who is protected?": "one line of the file",
    "Against what?": "Anyone who sees what was published",
    "How sure is that?": "Proven. Anyone can check that. Nobody vouches that the steps were run",
    "What is assumed?": "you have to ask: bounds, categories, hierarchies and the question were "
    "chosen without the rows; one person is in one row only",
    "What is the total ε?": "ε = 1 of people 2026 counted by its ledger (replace): a "
    "suspicion of 50 % about one row rises to at most 73.2 %. On this page: ε = 1, δ = 0",
    "What can an attacker learn?": "a suspicion of 50 % rises to at most 73.2 %",
    "Which data?": "people 2026",
    "When?": "20",
    "By which version?": f"zerodelta {zd.__version__}",
}


@pytest.fixture
def people(tmp_path: Path) -> Any:
    rows = "".join(f"{age % 97},{'oslo' if age % 3 else 'rome'}\n" for age in range(2000))
    (tmp_path / "people.csv").write_text("age,city\n" + rows, encoding="utf-8")
    kinds = {"age": zd.number(0, 120, missing=None), "city": zd.category(["oslo", "rome"])}
    return zd.open(
        tmp_path / "people.csv",
        columns=kinds,
        name="people 2026",
        ledger=tmp_path / "people.ledger",
        budget=5,
    )


@pytest.fixture
def page(people: Any) -> str:
    return page_of_releases([zd.mean(people, "age", by="city", epsilon=1)], files=["income.json"])


def test_every_question_is_answered_on_the_first_screen_and_leads_to_more(page: str) -> None:
    glance = page[page.index('id="glance"') : page.index('id="published"')]
    assert page.index('id="glance"') < page.index('id="published"')
    found = re.findall(r"<div><dt>(.*?)</dt><dd>(.*?)<a href=\"#(\w+)\"", glance)
    assert [question for question, _, _ in found] == list(QUESTIONS)
    for question, answer, place in found:
        assert QUESTIONS[question].lower() in answer.lower(), question
        assert f'<h2 id="{place}">' in page


def test_sections_come_in_the_order_of_nist(page: str) -> None:
    found = re.findall(r'<h2 id="(\w+)">', page)
    order = ["glance", "published", "who", "odds", "public", "assumed", "steps", "verify"]
    assert found == [*order, "budget", "limits"]


def test_what_was_public_is_told_as_numbers(page: str) -> None:
    assert "number: 0 to 120" in page
    assert "category: oslo, rome" in page
    assert "zerodelta verify income.json" in page


def test_values_and_intervals_are_drawn_and_listed(people: Any) -> None:
    release = zd.mean(people, "age", by="city", epsilon=1)
    page = page_of_releases([release])
    assert page.count('<circle class="d"') == 2 * len(release.value["city"]) + 1  # and the odds
    assert page.count('<path class="b"') == 2 * len(release.value["city"]) + 1
    for number in release.value["age_mean"]:
        assert f"{number:.5g}" in page


def test_the_page_asks_nothing_of_any_network_and_runs_no_script(page: str) -> None:
    assert "http" not in page.replace('http-equiv="Content-Security-Policy"', "")
    for word in ("<script", "javascript:", "url(", "@import", "src=", "<link", "<iframe", "onload"):
        assert word not in page
    assert "default-src 'none'" in page


class Outline(HTMLParser):
    """Which elements there are, in their order; what is opened is closed."""

    VOID = frozenset({"meta", "path", "circle", "br"})

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_landmarks_and_headings_are_in_the_order_they_are_heard(page: str) -> None:
    outline = Outline()
    outline.feed(page)
    assert outline.open == []
    tags = [tag for tag, _ in outline.seen]
    landmarks = [tag for tag in tags if tag in ("header", "nav", "main", "footer")]
    assert landmarks == ["header", "nav", "main", "footer"]
    levels = [int(tag[1]) for tag in tags if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    ids = [given["id"] for _, given in outline.seen if "id" in given]
    assert len(ids) == len(set(ids))
    for tag, given in outline.seen:
        if tag == "svg":
            assert given["role"] == "img"
            assert given["aria-labelledby"] in ids
        if tag == "th":
            assert given["scope"] in ("row", "col")
        if tag == "a":
            assert str(given["href"])[1:] in ids
    assert next(given for tag, given in outline.seen if tag == "html") == {"lang": "en"}


def contrast(one: str, other: str) -> float:
    def light(color: str) -> float:
        parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted([light(one), light(other)])
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", COLORS)
def test_texts_have_the_contrast_of_aa(theme: str, page: str) -> None:
    colors = COLORS[theme]
    for text in ("text", "quiet", "accent"):
        for ground in ("ground", "card"):
            assert contrast(colors[text], colors[ground]) >= 4.5
    assert contrast(colors["warned"], colors["warn"]) >= 4.5
    assert contrast(colors["bar"], colors["ground"]) >= 3  # of what is drawn
    assert "prefers-color-scheme:dark" in page
    assert "@media print" in page


def test_names_and_keys_are_anyone_s_words_and_escaped(tmp_path: Path) -> None:
    bad = '<img src=x onerror=alert(1)>"&\u202e'
    table = np.array([(bad,)] * 1000, dtype=[("city", object)])
    people = zd.open(table, columns={"city": zd.category([bad, "rome"])}, name=bad)
    page = page_of_releases(
        [zd.count(people, by="city", epsilon=1), zd.mode(people, "city", epsilon=1)],
        files=[f"{bad}.json"],
    )
    assert "<img" not in page
    assert "\u202e" not in page
    assert "&lt;img" in page


def test_false_keys_are_told_beside_the_list() -> None:
    names = np.array(["lee"] * 5000 + ["smith"] * 5000, dtype=object)
    table = np.array([(name,) for name in names], dtype=[("name", object)])
    kind = zd.text(5, alphabet="abcdefghijklmnopqrstuvwxyz")
    people = zd.open(table, columns={"name": kind})
    page = page_of_releases([zd.heavy_hitters(people, "name", epsilon=1)])
    assert "a key that noise invented" in page
    assert "smith" in page


def test_assumptions_are_set_off() -> None:
    page = page_of_releases([zd.mean(np.zeros(100), bounds=(0, 1), epsilon=1)])
    boxes = re.findall(r'<div class="warn" role="note">.*?</div>', page)
    told = "column types and preparation were not computed from the rows"
    assert any(told in box for box in boxes)


def glance_of(page: str) -> str:
    return unescape(re.sub(r"<[^>]+>", "", page[: page.index('id="published"')]))


def test_what_no_program_can_know_is_asked_even_if_all_is_proven(page: str) -> None:
    told = re.sub(r"<[^>]+>", " ", page[page.index('<h2 id="assumed">') :])
    assert "No program can know the following" in told
    for premise in ("the question were chosen without the rows", "one person is in one row only"):
        assert premise in told
    for claimed in ("fixed before a row was read", "Nothing is assumed", "Nothing about the rows"):
        assert claimed not in page
    assert "with none of the code that made it" not in page
    assert "with the functions of zerodelta that planned it" in page
    assert "docs/records.md" in page


def test_the_page_says_no_more_than_is_checked(page: str) -> None:
    """Some values have no noisy sums, and no ledger knows which steps were run."""
    assert "not contradict its noisy sums and bounds, if it has any" in page
    assert "a ledger shows what was paid for" in page
    for too_much in ("is what its noisy sums give", "ledger of whoever", "belong together"):
        assert too_much not in page


def test_the_total_is_that_of_the_ledger_with_its_odds(people: Any) -> None:
    """What others released of the data is in it; of a saved release, if the ledger is given."""
    zd.count(people, by="city", epsilon=2)
    release = zd.mean(people, "age", epsilon=1)
    risen = percent_text(after_upper(Fraction(1, 2), Fraction(3)), up=True)
    told = "ε = 3 of people 2026 counted by its ledger (replace): a suspicion of 50 % "
    told += f"about one row rises to at most {risen}."
    assert told in glance_of(page_of_releases([release]))
    saved = replace(release, paid_by=())
    assert "which was not read here" in glance_of(page_of_releases([saved]))
    account = zd.Ledger(people.protection.accounts[0].address, data="people 2026")
    assert told in glance_of(page_of_releases([saved], ledger=account))


def test_what_a_ledger_of_add_remove_counted_is_told_twice(tmp_path: Path) -> None:
    table = np.zeros(100, dtype=[("age", np.float64)])
    kinds = {"age": zd.number(0, 120)}
    paying: Any = {"ledger": tmp_path / "l", "budget": 5, "neighbors": "add-remove"}
    people = zd.open(table, columns=kinds, name="p", expected_rows=100, **paying)
    told = glance_of(page_of_releases([zd.sum(people, "age", epsilon=1)]))
    risen = percent_text(after_upper(Fraction(1, 2), Fraction(2)), up=True)
    assert "ε = 1 of p counted by its ledger (add-remove, counted twice: ε = 2)" in told
    assert f"a suspicion of 50 % about one row rises to at most {risen}. On this page" in told


def test_what_no_ledger_counted_says_so(page: str) -> None:
    alone = page_of_releases([zd.mean(np.zeros(100), bounds=(0, 1), epsilon=1)])
    assert "No ledger counted it: other releases are not known here." in glance_of(alone)
    assert "by no ledger" in alone
    assert "No ledger counted" not in page


def test_a_release_beside_the_ledger_is_named(people: Any) -> None:
    counted = zd.mean(people, "age", epsilon=1)
    page = page_of_releases([counted, zd.mean(np.zeros(9), bounds=(0, 1), epsilon=20)])
    assert "No ledger counted release 2." in glance_of(page)
    assert "No ledger counted the ε of 2" in page


@pytest.mark.parametrize(
    ("epsilon", "twice", "warned"),
    [("5", False, False), ("501/100", False, True), ("5/2", True, False), ("3", True, True)],
)
def test_a_large_epsilon_is_asked_about(epsilon: str, twice: bool, warned: bool) -> None:
    relation: Any = {"neighbors": "add-remove"} if twice else {}
    table = np.zeros(100, dtype=[("age", np.float64)])
    kinds = {"age": zd.number(0, 120)}
    data = zd.open(table, columns=kinds, expected_rows=100, **relation)
    release = zd.sum(data, "age", epsilon=epsilon)
    page = page_of_releases([release])
    assert ("is large: a suspicion of 50 %" in glance_of(page)) is warned
    assert page.count("is large: a suspicion of 50 %") == 2 * warned
    assert ("beware:" in release.certificate.explain()) is warned
    assert after_upper(Fraction(1, 2), Fraction(LARGE)) > 0.99


def test_several_releases_are_added_up_and_the_same_one_counts_once(people: Any) -> None:
    first, second = zd.mean(people, "age", epsilon=1), zd.mode(people, "city", epsilon="1/2")
    page = page_of_releases([first, second, first])
    assert "people 2026: 2 releases, together pure ε = 1.5 (replace)" in page
    risen = percent_text(after_upper(Fraction(1, 2), Fraction(3, 2)), up=True)
    assert f"rises to at most {risen}" in page
    ledger = zd.Ledger(people.protection.accounts[0].address, data="people 2026")
    assert "ε = 7/2" in page_of_releases([first, second], ledger=ledger)  # left of 5


def test_pages_of_large_tables_stay_small(people: Any) -> None:
    names = [f"city {i}" for i in range(3000)]
    table = np.array([(n, 1.0) for n in names], dtype=[("city", object), ("age", np.float64)])
    kinds = {"city": zd.category(names), "age": zd.number(0, 120, missing=None)}
    wide = zd.open(table, columns=kinds)
    page = page_of_releases([zd.mean(wide, "age", by="city", epsilon=1)] * 1)
    assert len(page.encode()) < LARGEST_PAGE
    assert "more lines in the saved release" in page
    assert "3000 in all" in page


def test_a_release_from_replayed_bits_is_not_private_and_has_no_page() -> None:
    release = replayed("a page")(zd.mean)(np.zeros(9), bounds=(0, 1), epsilon=1)
    with pytest.raises(zd.errors.CertificateError, match="NOT PRIVATE"):
        page_of_releases([release])


def test_a_page_is_about_one_release_or_more(tmp_path: Path) -> None:
    with pytest.raises(zd.errors.ParameterError, match="one release or more"):
        write_report([], tmp_path / "r.html")


@pytest.mark.parametrize("epsilon", ["1/1000", "1/10", "1", "2", "5", "30", "1000"])
@pytest.mark.parametrize("before", ["1/100", "1/2", "9/10"])
def test_odds_are_rounded_away_from_what_is_promised(epsilon: str, before: str) -> None:
    exact, prior = Fraction(epsilon), Fraction(before)
    with mpmath.workdps(60):
        factor = mpmath.exp(mpmath.mpf(exact.numerator) / exact.denominator)
        odds = mpmath.mpf(prior.numerator) / (prior.denominator - prior.numerator)
        risen, fallen = factor * odds / (1 + factor * odds), odds / factor / (1 + odds / factor)
        upper, lower = after_upper(prior, exact), after_lower(prior, exact)
        assert risen <= upper <= risen + mpmath.mpf("1e-9")
        assert fallen - mpmath.mpf("1e-9") <= lower <= fallen
        assert float(percent_text(upper, up=True)[:-2]) >= 100 * risen - 1e-6
        assert float(percent_text(lower, up=False)[:-2]) <= 100 * fallen + 1e-6
        if exact < 700:
            assert factor <= float(factor_text(exact)) <= factor * mpmath.mpf("1.01")


# -- claims of other kinds ------------------------------------------------------------------------


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
    out = tmp_path / "r.html"
    code, output = run("report", *files, "--ledger", tmp_path / "l", "--out", out, "--json")
    assert code == 0, output
    assert json.loads(output) == {"report": str(out), "releases": 2}
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
