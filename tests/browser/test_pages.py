"""The planner, the report and three pages of the site in a browser, from the disk."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zerodelta as zd
from browser.views import ROOT, examine, photograph, requested, show
from zerodelta.ui.server import PlannerServer

READY = "document.documentElement.dataset.ready"


@pytest.fixture(scope="module")
def planner() -> Iterator[str]:
    with PlannerServer() as server:
        running = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        running.start()
        yield server.address
        server.shutdown()
        running.join()


def text(browser: Any, name: str) -> str:
    found: str = browser.find_element("id", name).text
    return found


def until(browser: Any, condition: str) -> None:
    from selenium.webdriver.support.ui import WebDriverWait

    WebDriverWait(browser, 30).until(lambda page: page.execute_script(f"return {condition}"))


@pytest.mark.parametrize("task", ["mean", "classifier", "study"])
def test_nothing_is_wrong_with_the_page(browser: Any, planner: str, task: str) -> None:
    address = f"{planner}#task={task}&wish=0.1"
    assert examine(browser, address, f"planner-{task}", ready=READY) == []


def test_every_control_is_reached_by_the_tab_key_and_shows_its_focus(
    browser: Any, planner: str
) -> None:
    from selenium.webdriver.common.keys import Keys

    show(browser, planner, "light", 400, READY)
    controls = "a[href], button, input, select, [tabindex='0']"
    wanted = browser.execute_script(f'return document.querySelectorAll("{controls}").length')
    reached = []
    for _ in range(wanted):
        browser.switch_to.active_element.send_keys(Keys.TAB)
        active = browser.switch_to.active_element
        reached.append(active.id)
        outline = browser.execute_script(
            "return getComputedStyle(arguments[0]).outlineStyle", active
        )
        assert outline != "none", active.get_attribute("outerHTML")[:100]
    assert len(set(reached)) == wanted > 10


def test_keys_move_epsilon_and_the_forecast_follows(browser: Any, planner: str) -> None:
    from selenium.webdriver.common.keys import Keys

    show(browser, f"{planner}#task=mean&epsilon=1", "light", 1280, READY)
    before = text(browser, "methods"), text(browser, "python")
    slider = browser.find_element("css selector", "#field-epsilon + input[type=range]")
    for _ in range(40):
        slider.send_keys(Keys.ARROW_RIGHT)
    value = browser.find_element("id", "field-epsilon").get_attribute("value")
    assert float(value) > 2
    until(
        browser, f"""document.getElementById("python").textContent.includes('epsilon="{value}"')"""
    )
    assert text(browser, "methods") != before[0]
    assert "zd.mean(" in text(browser, "python") != before[1]
    assert f"--epsilon {value}" in text(browser, "shell")
    assert f"epsilon={value}" in browser.current_url  # a plan can be kept and sent


def test_a_wish_is_answered_and_a_mistake_is_told_at_its_field(browser: Any, planner: str) -> None:
    show(browser, f"{planner}#task=mean&wish=0.01", "dark", 400, READY)
    asked: dict[str, Any] = {"n": 10_000, "dimension": 5, "bounds": (0, "100"), "missing": "skip"}
    least = zd.advise("mean", error="0.01", **asked).epsilon
    assert f"needs ε = {float(least):g} " in text(browser, "wished")
    assert "if none is, with missing=None: error" in text(browser, "complete")
    rows_needed = zd.advise("mean", error="0.01", epsilon=1, **{**asked, "n": None}).n
    assert f"{rows_needed:,} rows" in text(browser, "wished")
    rows = browser.find_element("id", "field-n")
    rows.send_keys("x")
    until(browser, 'document.getElementById("field-n").ariaInvalid === "true"')
    assert text(browser, "refused").startswith("n = ")
    photograph(browser, "planner-refused")
    rows.send_keys("\ue003")
    until(browser, 'document.getElementById("refused").hidden')


def test_another_task_has_its_own_fields_and_keeps_what_was_typed(
    browser: Any, planner: str
) -> None:
    show(browser, f"{planner}#task=mean&n=777", "light", 1280, READY)
    browser.find_element("id", "task").send_keys("Clusters")
    until(browser, 'document.getElementById("python").textContent.includes("zd.kmeans")')
    assert browser.find_element("id", "field-n").get_attribute("value") == "777"
    assert browser.find_element("id", "field-clusters").is_displayed()
    assert not browser.find_elements("id", "field-width")
    assert all(url.startswith(planner) for url in requested(browser) if url.startswith("http"))


# -- the report -----------------------------------------------------------------------------------


def test_nothing_is_wrong_with_the_report(browser: Any, tmp_path: Path) -> None:
    rows = np.zeros(5000, dtype=[("city", "U4"), ("income", float)])
    rows["city"], rows["income"] = np.where(np.arange(5000) % 2, "oslo", "rome"), 30_000
    people = zd.open(
        rows,
        columns={"city": zd.category(["oslo", "rome"]), "income": zd.number(0, 200_000)},
        name="people 2026",
    )
    release = zd.table(people, by="city", of={"income": ["mean"]}, epsilon="1/2")
    page = tmp_path / "report.html"
    release.report(page)
    assert examine(browser, page.as_uri(), "report") == []


# -- the site -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site as `make docs` does, but elsewhere."""
    for module in ("mkdocs", "material", "mkdocstrings"):
        if find_spec(module) is None:
            pytest.skip(f"{module} is not installed: pip install 'zerodelta[docs]'")
    out = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(out)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "NO_MKDOCS_2_WARNING": "1"},
    )
    assert done.returncode == 0, done.stderr
    return out


@pytest.mark.parametrize("page", ["index", "tables", "reference/choices"])
def test_nothing_is_wrong_with_a_page(browser: Any, site: Path, page: str) -> None:
    address = (site / f"{page}.html").as_uri()
    assert examine(browser, address, f"site-{page.replace('/', '-')}") == []


def test_the_keyboard_reaches_the_content_and_the_search_finds_a_page(
    browser: Any, site: Path
) -> None:
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.ui import WebDriverWait

    show(browser, (site / "index.html").as_uri(), "light", 1280)
    browser.switch_to.active_element.send_keys(Keys.TAB)
    assert "md-skip" in browser.switch_to.active_element.get_attribute("class")
    browser.switch_to.active_element.send_keys(Keys.ENTER)
    assert browser.current_url.endswith("#zerodelta")
    browser.find_element("tag name", "body").send_keys("/")
    field = browser.switch_to.active_element
    assert field.get_attribute("name") == "query"
    field.send_keys("permute-and-flip")
    WebDriverWait(browser, 30).until(
        lambda page: page.find_elements("css selector", ".md-search-result__item a")
    )
    links = browser.find_elements("css selector", ".md-search-result__item a")
    assert all(link.get_attribute("href").startswith("file://") for link in links)


def test_no_page_of_the_site_names_a_script_or_style_from_elsewhere(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 50
    for page in pages:
        text = page.read_text(encoding="utf-8")
        for tag in ('<script src="http', '<link rel="stylesheet" href="http', '<img src="http'):
            assert tag not in text, page.name
        assert "fonts.googleapis.com" not in text
