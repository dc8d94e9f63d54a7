"""Counts, sums, means and variances of columns by group, from one table of noisy integer sums.

How to use it, from public numbers to the estimates (theory P1, P2, G2)::

    plan = plan_moments(epsilon=1, bounds=[(0, 200_000)], groups=12, expected_rows=10_000)
    sums = plan.measure(rows, ["income"], keys=keys)   # exact, (groups, cells)
    moments = plan.apply(sums, bits)                   # noise, then post-processing

One column is a partition of unity (`BernsteinCells`), several are an l∞ block for each group
(`ChebyshevBlock`, whose method is `coordinates`); without columns rows are counted. Where the
number of rows is private no public bound keeps a sum below 2^63: add up batches in Python integers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TypeVar

from zerodelta.errors import require
from zerodelta.exact.fixed_point import FixedPoint
from zerodelta.exact.rational import Rational, as_count
from zerodelta.exact.row_polynomials import BernsteinCells, ChebyshevBlock
from zerodelta.mechanisms.moment_estimates import MomentPlan
from zerodelta.mechanisms.partition_noise import BlockNoise, PartitionNoise
from zerodelta.privacy.neighbors import Neighbors
from zerodelta.privacy.parameters import as_usable_epsilon

T = TypeVar("T")

EXPECTED = 0.75
"""The expected absolute error over the standard error: 0.71 for Laplace noise, 0.75 for two."""

_LEAST_STEPS, _MOST_STEPS = 1 << 10, 1 << 52
_SUM_BITS = 62


def expected_count(deviation: float) -> float:
    """Return the expected absolute error of a whole number with this standard error.

    An integer is at most its own square: where noise is mostly 0 that is less.
    """
    return min(EXPECTED * deviation, deviation**2)


def plan_moments(
    *,
    epsilon: Rational,
    bounds: Sequence[tuple[Rational, Rational]],
    degree: int | Sequence[int] = 1,
    groups: int = 1,
    expected_rows: int,
    missing: bool | Sequence[bool] = True,
    count_rows: bool = False,
    known_rows: int | None = None,
    unit_rows: int = 1,
    neighbors: Neighbors = Neighbors.REPLACE,
    method: str = "auto",
) -> MomentPlan:
    """Plan means (degree 1), or means and variances (degree 2), of columns by group.

    `bounds` has one public pair for each column; without any, rows are counted. `degree` and
    `missing` are those of all columns, or one for each; degree 0 counts values. `expected_rows` is
    the number of rows where it is public, else a public guess: it sets the resolution and the
    forecast, never the noise. With `missing`, values may be; ``count_rows=True`` then counts the
    rows without one as well. `known_rows` is the public number of rows of the only group, which
    saves some noise. `unit_rows` is how many rows a unit has at most. `method` is that of
    `PartitionNoise`, for one column.

    >>> plan = plan_moments(epsilon=1, bounds=[(0, 100)], groups=10, expected_rows=10_000)
    >>> plan.steps[0].theorem, plan.row.cells
    ('partition-laplace', 2)
    >>> errors = plan.forecast()
    >>> float(errors.count.round(2)[0]), float(errors.mean.round(2)[0])
    (4.0, 0.23)
    """
    exact, n = as_usable_epsilon(epsilon), as_count(expected_rows, "expected_rows", minimum=1)
    blocks, columns = as_count(groups, "groups", minimum=1), len(bounds)
    degrees = (degree,) * columns if isinstance(degree, int) else tuple(degree)
    absent = (missing,) * columns if isinstance(missing, bool) else tuple(missing)
    require(
        len(degrees) == columns == len(absent) and all(each in (0, 1, 2) for each in degrees),
        "bounds, degree, missing",
        (columns, degree, missing),
        expected="one of each for every column, and degrees 0, 1 or 2",
        remedy="pass degree=1 for means, 2 for variances",
    )
    require(
        known_rows is None or (blocks == 1 and neighbors is Neighbors.REPLACE),
        "known_rows",
        known_rows,
        expected="one group, of which rows are replaced",
        remedy="leave it out",
    )
    most = max(degrees, default=0)
    steps = 1 if most == 0 else steps_for(n, exact, degree=most)
    lower, upper = zip(*bounds, strict=True) if columns else ((-1,), (1,))
    lattice = FixedPoint.box(dimension=len(lower), lower=lower, upper=upper, steps=steps)
    known = known_rows is not None
    row: BernsteinCells | ChebyshevBlock
    noise: PartitionNoise | BlockNoise
    if columns <= 1 or most == 0:
        require(columns <= 1, "degree", degree, "1 or 2 for some column", "ask one column by one")
        row = BernsteinCells(degree=most, steps=steps, missing_cell=any(absent) and count_rows)
        # a row without a value adds the total too, if there is a cell for it
        known = known and most > 0 and (row.missing_cell or not any(absent))
        noise = PartitionNoise.for_epsilon(
            epsilon=exact,
            cells=blocks * row.cells - known,
            row_total=row.row_total,
            unit_rows=unit_rows,
            neighbors=neighbors,
            method=method,
        )
    else:
        row = ChebyshevBlock(
            columns=columns,
            degree=_alike(degrees),
            steps=steps,
            missing=_alike(absent),
            count_rows=count_rows or not all(absent),
        )
        known = known and row.count_rows
        noise = BlockNoise.for_epsilon(
            epsilon=exact,
            blocks=blocks,
            dimension=row.dimension - known,
            row_bound=row.row_bound,
            unit_rows=unit_rows,
            neighbors=neighbors,
        )
    return MomentPlan(
        lattice=lattice,
        row=row,
        noise=noise,
        columns=columns,
        groups=blocks,
        expected_rows=n,
        missing=absent,
        known_rows=known_rows if known else None,
    )


def _alike(each: tuple[T, ...]) -> T | tuple[T, ...]:
    """Return what is the same for all columns once."""
    return each[0] if len(set(each)) == 1 else each


def steps_for(n: int, epsilon: Fraction, *, degree: int) -> int:
    """Return L: 2^8·n·ε makes half a quantum 2^-10 of the noise on a mean.

    At most so many that n rows, each adding (2L)^degree, add up in 64 bits.
    """
    wanted = 1 << math.ceil(math.log2(max(1.0, min(float(256 * n * epsilon), 2.0**60))))
    total = (1 << _SUM_BITS) // n
    most = total // 2 if degree == 1 else math.isqrt(total) // 2
    return max(_LEAST_STEPS, min(wanted, most, _MOST_STEPS))
