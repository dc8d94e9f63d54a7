"""The noisy integers behind each variance, covariance and correlation, for their intervals."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from zerodelta.exact.exact_sums import IntegerArray
from zerodelta.exact.noise_law import NoisySums, Statistic
from zerodelta.tasks.mean_lattice import resolution_of
from zerodelta.tasks.second_moments import BESIDE, DIAGONAL, STEPS, ProductNoise

Form: TypeAlias = tuple[Fraction, ...]


def covariance_sums(
    noise: ProductNoise, noisy: IntegerArray, names: Sequence[Any], *, correlations: bool
) -> tuple[NoisySums, ...]:
    """Return the sums of the diagonal, if asked, and of what is above it line by line."""
    columns, half = noise.products.columns, noise.products.unit * float(STEPS)
    each, (first, second) = np.arange(columns), np.triu_indices(columns, 1)
    last = np.full_like(each, columns)
    pair = [
        ("sum", first, last[first]),
        ("sum", second, last[second]),
        ("product", first, second),
    ]
    lines = partial(_lines, noise, noisy, names)
    if correlations:
        one = np.ones(len(first))
        squares = [("square", first, first), ("square", second, second)]
        return (lines("correlation", [*pair, *squares], (-one, one)),) if columns > 1 else ()
    middle, most = noise.products.middle, half[first] * half[second]
    own = [("sum", each, last), ("square", each, each)]
    diagonal = lines("variance", own, (middle - half, middle + half))
    return (diagonal, lines("covariance", pair, (-most, most))) if columns > 1 else (diagonal,)


def _lines(
    noise: ProductNoise,
    noisy: IntegerArray,
    names: Sequence[Any],
    statistic: Statistic,
    entries: Sequence[tuple[str, Any, Any]],
    ends: tuple[Any, Any],
) -> NoisySums:
    """Return lines of the integers at these entries of the matrix, and what their forms are."""
    width, corner = noise.products.columns + 1, np.full_like(entries[0][1], noise.products.columns)
    counted = [("rows", corner, corner)] if noise.counted else []
    places = [  # of the upper triangle
        i * width - i * (i - 1) // 2 + j - i for _, i, j in (*entries, *counted)
    ]
    return NoisySums(
        law=noise.mechanism.law(unit=Fraction(1)),
        integers=np.column_stack([noisy[place] for place in places]),
        forms={statistic: _forms(noise, [kind for kind, *_ in entries])},
        bounds={statistic: ([*map(Fraction, ends[0])], [*map(Fraction, ends[1])])},
        joint=True,
        statistics={statistic: (statistic, statistic)},
        labels=names,
        resolution=resolution_of(noise.products.lattice),
    )


def _forms(noise: ProductNoise, kinds: Sequence[str]) -> tuple[Form, ...]:
    """Return the number of rows, and each sum of scaled values, as forms of a line."""
    on, off = (DIAGONAL, BESIDE) if noise.norm == "frobenius" else (1, 1)
    size, constant = len(kinds) + noise.counted, noise.constant

    def form(place: int, value: Fraction) -> list[Fraction]:
        return [value if i == place else Fraction(0) for i in range(size + 1)]

    rows = form(size, Fraction(noise.expected_rows))
    if noise.counted:
        rows = form(size - 1, Fraction(1, on * constant**2))
    units = {
        "sum": Fraction(1, off * constant * STEPS),
        "product": Fraction(1, off * STEPS**2),
        "square": Fraction(1, on * STEPS**2),
    }
    found = [form(place, units[kind]) for place, kind in enumerate(kinds)]
    if noise.norm == "max":  # there is 2y² - 1 in place of y²
        for place, kind in enumerate(kinds):
            if kind == "square":
                found[place] = [(z + n) / 2 for z, n in zip(found[place], rows, strict=True)]
    return tuple(map(tuple, (rows, *found)))
