"""Serve the planner page, which forecasts errors and compares methods before there is data."""

from zerodelta.ui.server import serve

__all__ = ["serve"]
