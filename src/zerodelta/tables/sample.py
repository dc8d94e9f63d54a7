"""Purified MWEM: hidden rounds, a small sample of rows, mixing over multisets (theory C7, B1)."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np

from zerodelta.data.arrays import ArraySource
from zerodelta.exact.bits import BitSource
from zerodelta.paper import workloads as paper
from zerodelta.paper.algorithm_16 import Plan, plan_multiset
from zerodelta.privacy.release import Release
from zerodelta.tables.bases import Floats
from zerodelta.tables.codes import CodedRows
from zerodelta.tables.domain import Domain, Workload

__all__ = ["sample_plan", "sampled"]

_SIZES, _ROUNDS = (50, 100, 200, 400), (40, 160, 640)
_MOST_ENTRIES = 1 << 24


def sample_plan(domain: Domain, workload: Workload, epsilon: Fraction, rows: int) -> Plan | None:
    """Return the plan with the least bound on the error; None if the queries do not fit."""
    queries = sum(map(domain.cells_of, workload.tables))
    if queries * domain.cells > _MOST_ENTRIES:
        return None
    cells = _queries(domain, workload)
    plans = [
        plan_multiset(rows=rows, workload=cells, epsilon=epsilon, sample_size=size, rounds=rounds)
        for size, rounds in itertools.product(_SIZES, _ROUNDS)
    ]
    return min(plans, key=lambda plan: plan.error)


def sampled(plan: Plan, data: CodedRows, bits: BitSource) -> tuple[Floats, Release]:
    """Return the distribution over all cells of the published rows, and the release.

    A row with a stray value counts as the first cell.
    """
    sizes = data.domain.sizes
    keys, valid = np.zeros(len(data.codes[0])), np.ones(len(data.codes[0]), dtype=np.bool_)
    for codes, size in zip(data.codes, sizes, strict=True):
        keys = keys * size + codes
        valid &= codes < size
    items = np.where(valid, keys, np.nan)
    if data.weights is not None:
        items = np.repeat(items, data.weights)
    release = plan.release(
        ArraySource(items), bits, encode=lambda chosen: chosen.tolist(), decode=list
    )
    weights = np.bincount(release.value, minlength=math.prod(sizes)) / plan.sample_size
    return weights, release


def _queries(domain: Domain, workload: Workload) -> paper.LinearQueries:
    """Return all cells of all tables as queries on the cells of the domain."""
    codes = np.indices(domain.sizes).reshape(len(domain.sizes), -1)
    lines = []
    for table in workload.tables:
        keys = np.zeros(domain.cells, dtype=np.int64)
        for column in table:
            keys = keys * domain.sizes[column] + codes[column]
        lines.append(keys[None, :] == np.arange(domain.cells_of(table))[:, None])
    return paper.LinearQueries(np.concatenate(lines).astype(np.int64))
