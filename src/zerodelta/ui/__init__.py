"""The planner page: what each method would cost and how well it would do, before there is data."""

from zerodelta.ui.server import serve

__all__ = ["serve"]
