"""Queries that can be asked of rows: what `pure_mwem` and the paper's MWEM take as a workload.

>>> Marginals(dimension=3, order=1).describe(5)
'column 2 is 1'
"""

from __future__ import annotations

from zerodelta.tables.workloads import LinearQueries, Marginals, Workload

__all__ = ["LinearQueries", "Marginals", "Workload"]
