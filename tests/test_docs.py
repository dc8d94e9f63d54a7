"""The documents keep their word: labels, proofs, code, snippets, links and numbers."""

from __future__ import annotations

import re
import runpy
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from website.printed import PAGES as PRINTED
from website.printed import filled

from zerodelta.privacy.theorems import THEOREMS

ROOT = Path(__file__).resolve().parent.parent
DOCS = sorted((ROOT / "docs").glob("*.md"))
PAGES = [*DOCS, ROOT / "README.md"]
THEORY = (ROOT / "docs" / "theory.md").read_text(encoding="utf-8")
PURIFICATION, _ = (
    (ROOT / "docs" / "purification.md")
    .read_text(encoding="utf-8")
    .split("\n## Purify a run of your own")
)
REGISTERED = set(THEOREMS)
HEADING = re.compile(r"^#{1,6} +(.+)$", re.MULTILINE)
LINK = re.compile(r"\]\(([^)\s]+)\)")


def prose(text: str) -> str:
    """Return the text without its fenced code."""
    return re.sub(r"```.*?```", "", text, flags=re.DOTALL)


def sections(text: str) -> dict[str, str]:
    """Return the text under each heading, up to the next heading of any level."""
    found = list(HEADING.finditer(text))
    ends = [match.start() for match in found[1:]] + [len(text)]
    return {match[1]: text[match.end() : end] for match, end in zip(found, ends, strict=True)}


def paragraphs(text: str, start: str) -> list[str]:
    """Return the paragraphs that begin with a word, each on one line."""
    blocks = (block.strip() for block in text.split("\n\n"))
    return [" ".join(block.split()) for block in blocks if re.match(start, block)]


def labels_of(section: str) -> set[str]:
    """Return the labels in a section's "Label: `X`" line."""
    lines = paragraphs(section, "Labels?:")
    return {label for line in lines for label in re.findall(r"`([^`]+)`", line.split("· Code")[0])}


@cache
def page_text(name: str) -> str:
    """Return a page as the site shows it: printed whole, or with what is printed into it."""
    if name in PRINTED:
        return PRINTED[name]()
    return filled((ROOT / "docs" / name).read_text(encoding="utf-8"))


def anchor(heading: str) -> str:
    """Return the name by which a heading is linked to."""
    kept = re.sub(r"[^\w\- ]", "", heading.replace("`", "").lower())
    return kept.replace(" ", "-")


LABELED = {title: body for title, body in sections(THEORY).items() if labels_of(body)}


@pytest.mark.parametrize("label", sorted(REGISTERED))
def test_every_label_of_a_certificate_has_its_theorem(label: str) -> None:
    homes = [title for title, body in LABELED.items() if label in labels_of(body)]
    assert len(homes) == 1, f"{label} is under {homes or 'no heading'} of docs/theory.md"


def test_every_label_in_the_theory_is_one_of_a_certificate() -> None:
    assert set().union(*map(labels_of, LABELED.values())) == REGISTERED


@pytest.mark.parametrize("title", sorted(LABELED))
def test_every_labeled_section_has_a_proof(title: str) -> None:
    assert "*Proof.*" in LABELED[title]
    assert "∎" in LABELED[title]


@pytest.mark.parametrize("title", [title for title, body in sections(THEORY).items()])
def test_the_code_a_section_names_exists(title: str) -> None:
    for line in paragraphs(sections(THEORY)[title], "(Labels?|Code):"):
        code = line.split("Code:")[1]
        for path, names in re.findall(r"\]\(\.\./([^)]+)\)(?: \(([^)]*)\))?", code):
            source = (ROOT / path).read_text(encoding="utf-8")
            for name in re.findall(r"`(\w+)`", names):
                assert re.search(rf"^(def|class) {name}\b", source, re.MULTILINE), (path, name)


@pytest.mark.parametrize("name", [*(page.name for page in DOCS), *PRINTED])
def test_links_lead_somewhere(name: str) -> None:
    check_links(name, page_text(name), ROOT / "docs")


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"])
def test_links_of_the_pages_beside_docs_lead_somewhere(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    check_links(name, text, ROOT)
    assert not [link for link in LINK.findall(text) if Path(link).name in PRINTED]


def check_links(name: str, text: str, folder: Path) -> None:
    for link in LINK.findall(prose(text)):
        if link.startswith(("http://", "https://")):
            continue
        path, _, fragment = link.partition("#")
        if path and path not in PRINTED:
            target = (folder / path).resolve()
            assert target.exists(), f"{name} links to {link}"
            assert target.is_relative_to(ROOT), f"{name} links to {link}, outside the project"
        if fragment:
            beside = (folder / path).parent == ROOT / "docs"
            shown = page_text(Path(path).name) if beside and path else text
            headings = HEADING.findall(prose(shown))
            assert fragment in map(anchor, headings), f"{name} links to {link}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_link_to_a_file_is_called_by_its_name(page: Path) -> None:
    named = re.findall(r"\[`?(\w+\.py)`?\]\(([^)#]+\.py)\)", page.read_text(encoding="utf-8"))
    assert [(name, path) for name, path in named if name != Path(path).name] == []


def snippets(page: Path) -> list[tuple[str, str]]:
    """Return each Python block of a page with the plain block right below it, its output."""
    text = page.read_text(encoding="utf-8")
    found = re.finditer(r"^```python\n(.*?)^```\n(?:\s*^```\n(.*?)^```$)?", text, re.M | re.S)
    return [(match[1], match[2] or "") for match in found]


SNIPPETS = {page.name: snippets(page) for page in PAGES if snippets(page)}


@pytest.mark.parametrize("page", SNIPPETS)
def test_the_snippets_of_a_page_print_what_it_shows(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In order, as a reader would run them, in a folder of their own."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "__main__"}
    for code, shown in SNIPPETS[page]:
        assert shown, "the block below a snippet shows what it prints"
        exec(compile(code, page, "exec"), names)
        assert capsys.readouterr().out == shown


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_python_block_is_run(page: Path) -> None:
    assert page.read_text(encoding="utf-8").count("```python") == len(snippets(page))


def test_the_readme_shows_code_that_is_run() -> None:
    assert snippets(ROOT / "README.md")


def test_purification_in_five_minutes_has_one_snippet_and_one_picture() -> None:
    assert PURIFICATION.count("```python") == 1
    assert LINK.findall(PURIFICATION).count("images/purification.svg") == 1


def test_numbers_in_the_five_minutes_say_which_script_prints_them() -> None:
    blocks = [block for block in prose(PURIFICATION).split("\n\n") if block.strip()]
    for before, block in zip(["", *blocks], blocks, strict=False):
        if re.search(r"\d\.\d|\d ?×", block) or "](images/" in before:
            scripts = re.findall(r"bench/\w+\.py", before + block)
            assert scripts, f"no script is named for the numbers in: {block[:80]}"
            assert all((ROOT / script).exists() for script in scripts)


@cache
def bench() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "bench" / "purify.py"))


def error_rows() -> list[list[str]]:
    rows = [line for line in PURIFICATION.splitlines() if re.match(r"\| (d|\d+) \|", line)]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


@pytest.mark.parametrize("row", error_rows()[1:], ids=lambda row: f"d={row[0]}")
def test_the_error_table_is_what_the_bench_prints(row: list[str]) -> None:
    script, names = bench(), error_rows()[0][1:]
    assert names == list(script["METHODS"])
    dimension, rows = int(row[0]), 1000
    for name, cell in zip(names, row[1:], strict=True):
        ratio = script["METHODS"][name](dimension, rows) / script["reference"](dimension, rows)
        assert float(cell) == pytest.approx(ratio, abs=0.006), name


def test_the_bench_reproduces_the_theory_s_table_in_ten_dimensions() -> None:
    script = bench()
    methods = ("smooth_error", "ball_error_by_counting", "cube_error_by_zcdp", "printed_error")
    for name, stated in zip(methods, script["THEORY"][10, 1000], strict=True):
        ratio = script[name](10, 1000) / script["reference"](10, 1000)
        assert ratio == pytest.approx(stated, rel=0.05), name


def test_the_break_even_table_is_what_the_bench_prints() -> None:
    script = runpy.run_path(str(ROOT / "bench" / "study_break_even.py"))
    study = (ROOT / "docs" / "study.md").read_text(encoding="utf-8")
    assert "\n".join(script["table"]()) in study


def test_names_in_the_notation_exist() -> None:
    source = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    paper = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")
    for line in paper.split("\n## Notation\n")[1].split("\n## ")[0].splitlines():
        if not line.startswith("| ") or line.startswith("| symbol"):
            continue
        named = [
            part
            for code in re.findall(r"`([^`]+)`", line.rsplit(" | ", 1)[1])
            for part in re.findall(r"[A-Za-z_]\w+", code)
        ]
        for name in named:
            if name == "R":
                continue
            assert re.search(rf"\b{name}\b", source), f"docs/paper.md: {name}"


@cache
def architecture() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "bench" / "architecture.py"))


ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


def test_the_map_has_every_room_with_what_it_is_for_and_about_its_size() -> None:
    script = architecture()
    shown = ARCHITECTURE.split(script["BEGIN"])[1].split(script["END"])[0]
    rows = re.findall(r"^\| \[(\w+)\]\([^)]+\) \| (.+) \| (\d+) \| (\d+) \|$", shown, re.MULTILINE)
    rooms = {name: (purpose, files, lines) for name, purpose, files, lines in script["rooms"]()}
    assert [(name, purpose) for name, purpose, *_ in rows] == [
        (name, purpose) for name, (purpose, *_) in rooms.items()
    ], "make architecture"
    for name, _, files, lines in rows:
        assert int(files) == pytest.approx(rooms[name][1], rel=0.25, abs=2), name
        assert int(lines) == pytest.approx(rooms[name][2], rel=0.25, abs=100), name


def test_a_csv_by_city_passes_the_twelve_boxes_in_order() -> None:
    script = architecture()
    boxes = re.findall(
        r"^\d+\. \[(\S+)\]\(\.\./src/zerodelta/\1\), `(\w+)`", ARCHITECTURE, re.MULTILINE
    )
    assert len(boxes) == 12
    script["by_city"](2)
    entered, _ = script["trace"](script["by_city"])
    assert set(boxes) <= set(entered), "a file or function was renamed: mend the box"
    assert boxes == sorted(boxes, key=entered.index)


def test_names_in_the_recipes_exist() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    recipes = text.split("## How to add")[1].split("## Words and numbers")[0]
    sources = [*(ROOT / "src").rglob("*.py"), *(ROOT / "tests").rglob("*.py")]
    source = "\n".join(path.read_text(encoding="utf-8") for path in sources)
    for name in re.findall(r"`([A-Za-z_]\w{3,})`", recipes):
        assert re.search(rf"\b{name}\b", source), f"CONTRIBUTING.md: {name}"
