"""Trying to break a claim of privacy, ours or another's: by enumeration, and by sampling.

`exact` computes the loss on all small datasets, `lower_bound` and `sequential` run any black box,
`search` finds the datasets on which to run it. See docs/audit.md for what each can see.
"""

from __future__ import annotations

from zerodelta.audit import exact as _laws
from zerodelta.audit.betting import SequentialTest, sequential
from zerodelta.audit.exact import *  # noqa: F403
from zerodelta.audit.neighbor_search import search
from zerodelta.audit.sampled_bound import LowerBound, lower_bound

__all__ = [
    "LowerBound",
    "SequentialTest",
    "lower_bound",
    "search",
    "sequential",
    *_laws.__all__,
]
