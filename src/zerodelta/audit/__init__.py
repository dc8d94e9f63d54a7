"""Trying to break our own claims: exact output distributions on small inputs."""

from __future__ import annotations

from zerodelta.audit.exact import *  # noqa: F403
from zerodelta.audit.exact import __all__ as __all__
