"""The report in a browser, from the disk: one table and one number, with their total."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import zerodelta as zd
from browser.views import examine


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
