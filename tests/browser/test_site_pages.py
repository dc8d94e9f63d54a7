"""Three pages of the built site in a browser, from the disk and without a network."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from browser.views import ROOT, examine, show


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
