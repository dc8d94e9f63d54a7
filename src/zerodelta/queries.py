"""Queries that can be asked of rows: many at once, or one that is stable on most datasets.

`pure_mwem` and the paper's MWEM take a workload; its propose-test-release and bounded local
sensitivity (Algorithms 9 to 11) take a `Median`, a `TrimmedMean` or a `CustomQuery`.

>>> Marginals(dimension=3, order=1).describe(5)
'column 2 is 1'
"""

from __future__ import annotations

from zerodelta.marginals.workloads import LinearQueries, Marginals, Workload
from zerodelta.mechanisms.stable_queries import CustomQuery, Median, StableQuery, TrimmedMean

__all__ = [
    "CustomQuery",
    "LinearQueries",
    "Marginals",
    "Median",
    "StableQuery",
    "TrimmedMean",
    "Workload",
]
