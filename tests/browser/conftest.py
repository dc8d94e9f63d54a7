"""A browser for the pages, where there is one: Debian's `chromium` and `chromium-driver`."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from browser.views import chromium


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    binary, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if binary is None or driver is None:
        pytest.skip("no browser: apt-get install chromium chromium-driver")
    for module, package in (("selenium", "selenium"), ("axe_core_python", "axe-core-python")):
        if find_spec(module) is None:
            pytest.skip(f"{module} is not installed: pip install {package}")
    profile: Path = tmp_path_factory.mktemp("profile")
    with chromium(binary, driver, profile) as started:
        yield started
