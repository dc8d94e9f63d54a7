"""Whole counts from noisy ones, as tables publish them: post-processing."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from zerodelta.exact.arrays import Floats


def whole_counts(noisy: Floats, *, total: int | None = None) -> npt.NDArray[np.int64]:
    """Return whole counts of at least 0, nearest to noisy ones; if known, with their total.

    >>> whole_counts(np.array([2.6, -1.5, 7.2])).tolist()
    [3, 0, 7]
    >>> whole_counts(np.array([2.6, -1.5, 7.2]), total=10).tolist()
    [3, 0, 7]
    """
    bounded = np.clip(noisy, 0, 2.0**62)
    if total is None:
        rounded: npt.NDArray[np.int64] = np.rint(bounded).astype(np.int64)
        return rounded
    # the nearest point of {c >= 0, Σc = total}: all less by one number, and cut off at 0
    falling = -np.sort(-np.minimum(noisy, 2.0**62))
    excess = (np.cumsum(falling) - total) / np.arange(1, len(falling) + 1)
    used = np.flatnonzero(falling > excess)
    near = np.maximum(noisy - (excess[used[-1]] if len(used) else excess[0]), 0)
    whole: npt.NDArray[np.int64] = np.floor(near).astype(np.int64)
    left = total - int(whole.sum())
    if 0 < left <= len(whole):  # to the largest remainders
        whole[np.argsort(whole - near, kind="stable")[:left]] += 1
    else:  # what floats rounded, if anything
        whole[np.argmax(whole)] += left
    return whole
