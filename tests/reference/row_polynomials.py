"""What each row adds to cells and blocks, one by one: the library makes the sums of power sums."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from zerodelta.exact.sums import BernsteinCells, ChebyshevBlock

Present: TypeAlias = npt.NDArray[np.bool_] | None


def weights(
    cells: BernsteinCells, integers: npt.NDArray[np.int64], present: Present = None
) -> npt.NDArray[Any]:
    """C(D, j)·(L-k)^(D-j)·(L+k)^j of each row; nothing, or the last cell, where k is missing."""
    k = np.clip(integers, -cells.steps, cells.steps).astype(np.object_)
    up, down, d, one = cells.steps + k, cells.steps - k, cells.degree, np.ones_like(k)
    factors = [[math.comb(d, j) * one, *[down] * (d - j), *[up] * j] for j in range(d + 1)]
    columns = [math.prod(each) for each in factors]
    if present is not None:
        columns = [np.where(present, column, 0) for column in columns]
    if cells.missing_cell:
        absent = np.zeros(len(k), dtype=bool) if present is None else ~present
        columns.append(np.where(absent, cells.row_total, 0).astype(k.dtype))
    return np.stack(columns, axis=1)


def coordinates(
    block: ChebyshevBlock, integers: npt.NDArray[np.int64], present: Present = None
) -> npt.NDArray[Any]:
    """1, y and 2y²-1 of each row and column, times L^D; 0 where a value is missing."""
    k = np.clip(integers, -block.steps, block.steps).astype(np.object_)
    there = np.ones(k.shape, dtype=bool) if present is None else present
    bound = np.full(len(k), block.row_bound, dtype=k.dtype)
    found = [bound] if block.count_rows else []
    missing = (
        block.missing if isinstance(block.missing, tuple) else (block.missing,) * block.columns
    )
    for place, (column, entry) in enumerate(zip(k.T, there.T, strict=True)):
        own = [bound] if missing[place] else []
        if block.degrees[place] >= 1:
            own.append(column * (block.row_bound // block.steps))
        if block.degrees[place] == 2:
            own.append(2 * column * column - bound)
        found += [np.where(entry, each, 0) for each in own]
    return np.stack(found, axis=1)
