"""One page in a real browser: light and dark, wide and narrow; what it logs and asks for.

`examine(browser, address, name)` opens a page in all four views and returns what is wrong with it:
errors on the console, requests to anywhere else, violations of axe-core's rules (names, roles,
landmarks, contrast), and a page that is wider than its window. Screenshots go to `screenshots/`.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SCREENSHOTS = ROOT / "screenshots"
VIEWS = [(scheme, width) for scheme in ("light", "dark") for width in (1280, 400)]
QUIET = (
    *("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--disable-default-apps", "--disable-extensions", "--hide-scrollbars", "--disable-gpu"),
    # whatever a page asks for elsewhere fails, and is seen in the log
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)


@contextmanager
def chromium(binary: str, driver: str, profile: Path) -> Iterator[Any]:
    """Start Debian's Chromium with a fresh profile."""
    from selenium.webdriver import Chrome, ChromeOptions
    from selenium.webdriver.chrome.service import Service

    options = ChromeOptions()
    options.binary_location = binary
    for argument in (*QUIET, f"--user-data-dir={profile}"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    browser = Chrome(options=options, service=Service(driver))
    try:
        browser.set_page_load_timeout(60)
        yield browser
    finally:
        browser.quit()


def show(browser: Any, address: str, scheme: str, width: int, ready: str = "true") -> None:
    """Open a page in one view, and wait until an expression of its own says that it is ready."""
    from selenium.webdriver.support.ui import WebDriverWait

    feature = {"name": "prefers-color-scheme", "value": scheme}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get("about:blank")  # else only the part after # may change
    browser.get_log("browser")
    browser.get_log("performance")
    browser.get(address)
    if browser.execute_script("return localStorage.length"):  # a choice kept from another view
        browser.execute_script("localStorage.clear()")
        browser.refresh()
    still = "document.getAnimations().every(({effect, playState}) =>"
    still += " playState !== 'running' || effect.getComputedTiming().endTime === Infinity)"
    done = f"return document.readyState === 'complete' && {still} && Boolean({ready})"
    WebDriverWait(browser, 60).until(lambda page: page.execute_script(done))


def photograph(browser: Any, name: str) -> Path:
    """Write the whole page to a file."""
    SCREENSHOTS.mkdir(exist_ok=True)
    taken = browser.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True})
    path = SCREENSHOTS / f"{name}.png"
    path.write_bytes(base64.b64decode(taken["data"]))
    return path


def requested(browser: Any) -> list[str]:
    """Return the addresses that were asked for since the last look."""
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    sent = [each for each in messages if each["method"] == "Network.requestWillBeSent"]
    return [each["params"]["request"]["url"] for each in sent]


def violations(browser: Any) -> list[str]:
    """Return what axe-core finds: rules of WCAG 2 A and AA, and landmarks."""
    axe = (files("axe_core_python") / "axe.min.js").read_text(encoding="utf-8")
    browser.execute_script(axe)
    run = """
    const done = arguments[arguments.length - 1];
    const rules = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"];
    axe.run(document, {runOnly: rules, iframes: false})  // the only frames are hidden ones
      .then((found) => done(found.violations.map((each) =>
        `${each.id}: ${each.nodes.slice(0, 3).map((node) => node.html.slice(0, 160))}`)));
    """
    found: list[str] = browser.execute_async_script(run)
    return found


def examine(
    browser: Any,
    address: str,
    name: str,
    *,
    ready: str = "true",
    prepare: Callable[[Any], None] = lambda _: None,
) -> list[str]:
    """Return everything that is wrong with a page, in all views; a good page has an empty list."""
    wrong: list[str] = []
    home = address.rsplit("/", 1)[0] if address.startswith("http") else "file:///"
    for scheme, width in VIEWS:
        show(browser, address, scheme, width, ready)
        prepare(browser)
        view = f"{name}-{scheme}-{width}"
        photograph(browser, view)
        found = violations(browser)
        wide = browser.execute_script("return document.documentElement.scrollWidth")
        if wide > width:
            found.append(f"the page is {wide} pixels wide")
        seen = browser.execute_script("return document.body.innerText.trim().length")
        if seen < 100:
            found.append("the page is empty")
        found += [entry["message"] for entry in browser.get_log("browser")]
        found += [
            f"asked for {url}"
            for url in requested(browser)
            if not url.startswith((home, "data:", "blob:", "about:"))
        ]
        wrong += [f"{view}: {each}" for each in found]
    return wrong
