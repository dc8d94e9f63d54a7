"""Exact laws of the noise that tasks hand their sums to, as `shifted` or on a window of cells."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

from mechanisms.exact_laws import counts_law, cube_pmf
from purity import assert_pure
from zerodelta.audit.exact import (
    Law,
    discrete_laplace_pmf,
    discrete_laplace_tail,
    permute_and_flip_law,
    rounded_laplace_pmf,
    rounded_laplace_tail,
    shifted,
)
from zerodelta.mechanisms.partition_noise import PartitionNoise
from zerodelta.mechanisms.sum_noise import CountNoise

ROUNDED = rounded_laplace_pmf, rounded_laplace_tail
DISCRETE = discrete_laplace_pmf, discrete_laplace_tail


def laplace(
    center: int, scale: Fraction, *, low: int = -1, high: int = 4, family: Any = ROUNDED
) -> Any:
    """The law of center + Laplace noise; beyond low..high every ratio is that of the end."""
    pmf, tail = (partial(each, scale=scale) for each in family)
    return shifted(pmf, tail, center=center, low=low, high=high)


def product(laws: Sequence[Law]) -> dict[Any, Any]:
    """The law of independent outcomes together."""
    return {
        outcome: math.prod((law[x] for law, x in zip(laws, outcome, strict=True)), start=1)
        for outcome in itertools.product(*laws)
    }


def law(
    noise: Any,
    sums: tuple[int, ...],
    factor: Fraction | int = 1,
    *,
    low: int = -1,
    high: int = 4,
    window: Sequence[int] = range(-2, 6),
) -> Any:
    """The law of what a mechanism publishes of one or two sums, its scale times a factor."""
    scale = noise.scale * factor
    partition, counts = isinstance(noise, PartitionNoise), isinstance(noise, CountNoise)
    if partition or len(sums) == 1 or getattr(noise, "norm", None) == 1:
        family = DISCRETE if partition else ROUNDED
        each = [laplace(x, scale, low=low, high=high, family=family) for x in sums]
        return product(each)
    if counts:
        return counts_law(sums, scale=scale, window=window)
    cells = itertools.product(window, repeat=2)
    return {(i, j): cube_pmf(i - sums[0], j - sums[1], scale) for i, j in cells}


Scored = tuple[Fraction, tuple[int, ...]]
"""The scale of a choice, and the scores that it was handed."""


def assert_chosen_purely(
    handed: Mapping[Any, Scored],
    pairs: Iterable[tuple[Hashable, Hashable]],
    *,
    epsilon: Fraction | int,
    less: int = 2,
    tight: Any = None,
) -> None:
    """The law of the choice loses at most ε on every pair, and more with so much less noise."""
    full, little = (
        lambda each, scale=scale: permute_and_flip_law(list(each[1]), scale=each[0] / scale)
        for scale in (1, less)
    )
    moved = {(handed[a], handed[b]) for a, b in pairs}
    assert_pure(full, moved, epsilon=epsilon, tight=tight, mistake=little)
