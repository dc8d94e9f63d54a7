"""The documentation site: every page is in its menu, every public name in its reference."""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from pathlib import Path
from typing import Any

import griffe
import pytest
import yaml
from website.docstrings import Docstrings
from website.hooks import listed
from website.printed import MARK, PAGES, PARTS, filled

import zerodelta as zd

ROOT = Path(__file__).resolve().parent.parent
SITE: dict[str, Any] = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
REFERENCE: dict[str, Any] = listed()
MADE = {
    "changelog.md",
    "reference/command-line.md",
    *PAGES,
    *(f"reference/{name}.md" for name in REFERENCE),
}
"""Pages that website/hooks.py makes when the site is built."""


def pages(menu: Any) -> list[str]:
    if isinstance(menu, str):
        return [menu]
    inner = menu.values() if isinstance(menu, dict) else menu
    return [page for each in inner for page in pages(each)]


def test_every_page_is_in_the_menu_once_and_the_menu_names_pages_that_exist() -> None:
    written = {path.name for path in (ROOT / "docs").glob("*.md")}
    listed = pages(SITE["nav"])
    assert len(listed) == len(set(listed))
    assert set(listed) == written | MADE


def test_the_menu_has_the_doors_of_the_design() -> None:
    doors = [next(iter(each)) for each in SITE["nav"]]
    assert doors == [
        *("Home", "Guides", "Reference", "Why believe it", "Paper", "Glossary", "Changelog"),
    ]


def test_every_public_name_is_in_the_reference_once() -> None:
    names = [name for page in REFERENCE.values() for name in page.get("zerodelta", [])]
    assert len(names) == len(set(names))
    assert set(names) == set(zd.__all__) - {"__version__"}
    rooms = {room for page in REFERENCE.values() for room in page if page[room] == "all"}
    bridges = {f"interop.{name}" for name in zd.interop.__all__}
    parts = {"data", "mechanisms", "interop", "purification", "records"}  # not shown whole
    assert rooms == {f"zerodelta.{name}" for name in {*zd.ROOMS, *bridges} - parts}


def test_nothing_of_the_site_is_fetched_from_elsewhere() -> None:
    assert SITE["theme"]["font"] is False
    assert SITE["strict"] is True
    assert any(each == "offline" for each in SITE["plugins"])
    for path in (ROOT / "docs" / "assets").iterdir():
        assert not re.search(r"https?://", path.read_text(encoding="utf-8")), path.name


def test_each_printed_part_has_one_place_and_each_place_a_part() -> None:
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "docs").glob("*.md")]
    assert sorted(name for text in texts for name in MARK.findall(text)) == sorted(PARTS)
    assert not any(MARK.search(filled(text)) for text in texts)


def test_what_the_site_prints_is_not_kept_by_git() -> None:
    assert not [name for name in MADE if (ROOT / "docs" / name).exists()]


def test_every_task_that_the_advisor_knows_is_on_the_page_of_methods() -> None:
    headings = re.findall(r"^## (\w+)$", PAGES["choose-a-method.md"](), re.MULTILINE)
    assert headings == [advice.task for advice in zd.advise()]


def test_every_script_of_the_gallery_has_its_picture() -> None:
    page = PAGES["gallery.md"]()
    pictures = {path.stem for path in (ROOT / "docs" / "images" / "gallery").iterdir()}
    assert set(re.findall(r"gallery/(\w+)\.svg", page)) == pictures
    assert set(re.findall(r"gallery/(\w+)\.py\)", page)) == pictures


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("tasks.statistics", "mean"),
        ("tasks.covariance", "correlation"),
        ("sklearn.linear", "LinearRegression"),
    ],
)
def test_the_reference_shows_every_parameter_with_its_sentence(path: str, name: str) -> None:
    """Those that a decorator adds, too, though pages are made from the text of the sources."""
    extensions = griffe.load_extensions(Docstrings)
    found = griffe.load(f"zerodelta.{path}", search_paths=[ROOT / "src"], extensions=extensions)
    thing = getattr(import_module(f"zerodelta.{path}"), name)
    asked = list(inspect.signature(thing).parameters)
    assert {"ledger", "again"} <= set(asked)
    assert [each.name for each in found[name].parameters if each.name != "self"] == asked
    for each in asked:
        assert re.search(rf"^{each} : .*\n    \S", found[name].docstring.value, re.MULTILINE), each
