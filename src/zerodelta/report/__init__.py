"""Write one HTML page about releases for a privacy officer: `release.report("report.html")`."""

from __future__ import annotations

from zerodelta.report.page import page_of_releases, write_report

__all__ = ["page_of_releases", "write_report"]
