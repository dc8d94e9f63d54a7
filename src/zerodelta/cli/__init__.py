"""Run the `zerodelta` command: jobs, plans, releases, ledgers, verification."""

from zerodelta.cli.main import app

__all__ = ["app"]
