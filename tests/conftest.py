"""Hypothesis runs the same examples everywhere, and a slow machine is not a failure."""

from hypothesis import settings

settings.register_profile("zerodelta", deadline=None, derandomize=True)
settings.load_profile("zerodelta")
