"""Answer queries of your own: one function of rows, many linear queries, or a stable query.

`propose_test_release`, `bounded_local_sensitivity` and `vote` publish the value of a function that
you write; their certificates list what you assert about this function.

`pure_mwem` and the paper's MWEM take a workload; its propose-test-release and bounded local
sensitivity (Algorithms 9 to 11) take a `Median`, a `TrimmedMean` or a `CustomQuery`.

>>> Marginals(dimension=3, order=1).describe(5)
'column 2 is 1'
"""

from __future__ import annotations

from zerodelta.marginals.workloads import LinearQueries, Marginals, Workload
from zerodelta.mechanisms.stable_queries import CustomQuery, Median, StableQuery, TrimmedMean
from zerodelta.tasks.models import vote
from zerodelta.tasks.robust import bounded_local_sensitivity, propose_test_release

__all__ = [
    "CustomQuery",
    "LinearQueries",
    "Marginals",
    "Median",
    "StableQuery",
    "TrimmedMean",
    "Workload",
    "bounded_local_sensitivity",
    "propose_test_release",
    "vote",
]
