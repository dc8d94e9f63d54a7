"""The `zerodelta` command."""

from zerodelta.cli.main import app

__all__ = ["app"]
