"""The tasks that stand beside Algorithms 10 and 11, called as these are: values are vectors."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

import zerodelta as zd
from zerodelta.mechanisms.stable_queries import StableQuery


def free_propose_test_release(rows: Any, *, query: StableQuery, **asked: Any) -> zd.records.Release:
    """Release a query by Algorithm 9, the failed test being the mixing."""
    return _vector(zd.queries.propose_test_release(rows, query=query, **asked))


def bounded_local_sensitivity(
    rows: Any, *, query: StableQuery, mixing_weight: Any, **asked: Any
) -> zd.records.Release:
    """Release a query by Algorithm 11 with uniform mixing."""
    release = zd.queries.bounded_local_sensitivity(
        rows, query=query, mixing_probability=mixing_weight, **asked
    )
    return _vector(release)


def _vector(release: zd.records.Release) -> zd.records.Release:
    return replace(release, value=np.atleast_1d(release.value))
