"""One page about releases that an officer can read: `release.report("report.html")`."""

from __future__ import annotations

from zerodelta.report.page import page_of_releases, write_report

__all__ = ["page_of_releases", "write_report"]
