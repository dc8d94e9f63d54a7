"""What counts and sums of rows that share a fixed total cost, for all groups at once (theory P).

A row has non-negative integers in the cells of a table, at most `row_total` together; or, for
several columns, coordinates of magnitude at most `row_bound` in the block of its own group. A unit
has up to `unit_rows` rows. Everything is exact, and no ε is split over groups.
"""

from __future__ import annotations

from fractions import Fraction

from zerodelta.exact.rational import Rational, as_count, as_positive
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.composition import Composed, simplest
from zerodelta.privacy.domains import Cells, Count, Dimension, Positive
from zerodelta.privacy.neighbors import Neighbors
from zerodelta.privacy.theorems.theorem import Base, Channel
from zerodelta.value import value


def partition_laplace_epsilon(
    *, cells: int, row_total: int, unit_rows: int, scale: Rational, neighbors: Neighbors
) -> Fraction:
    """Return the ε of independent Laplace noise of scale b on every cell: 2mM/b, or mM/b (P1).

    It holds for any noise on integers with P(z) <= e^(1/b) P(z ± 1).

    Replaced rows take mM out of some cells and put mM into others. Half of that if rows are only
    added or removed, or if there is but one cell.

    >>> table = dict(row_total=10, unit_rows=1, scale=40)
    >>> partition_laplace_epsilon(cells=24, neighbors=Neighbors.REPLACE, **table)
    Fraction(1, 2)
    >>> partition_laplace_epsilon(cells=1, neighbors=Neighbors.REPLACE, **table)
    Fraction(1, 4)
    >>> partition_laplace_epsilon(cells=24, neighbors=Neighbors.ADD_REMOVE, **table)
    Fraction(1, 4)
    """
    several = as_count(cells, "cells", minimum=1) > 1
    moves = 2 if several and neighbors is Neighbors.REPLACE else 1
    return moves * _total(row_total, unit_rows) / as_positive(scale, "scale")


def partition_k_norm_epsilon(*, row_total: int, unit_rows: int, scale: Rational) -> Fraction:
    """Return the ε of one draw of density ∝ exp(-max(Σz⁺, Σz⁻)/s) over all cells: mM/s (P2).

    >>> partition_k_norm_epsilon(row_total=10, unit_rows=1, scale=40)
    Fraction(1, 4)
    """
    return _total(row_total, unit_rows) / as_positive(scale, "scale")


def block_epsilon(
    *, row_bound: int, unit_rows: int, scale: Rational, neighbors: Neighbors
) -> Fraction:
    """Return the ε of l∞ noise of scale b in the block of every group: 2mB/b, or mB/b (G2).

    >>> block_epsilon(row_bound=10, unit_rows=3, scale=40, neighbors=Neighbors.REPLACE)
    Fraction(3, 2)
    """
    moves = 2 if neighbors is Neighbors.REPLACE else 1
    return moves * _total(row_bound, unit_rows) / as_positive(scale, "scale")


def parallel_epsilon(added: Fraction, unit_rows: int) -> Fraction:
    """Return 2mt: groups that are answered apart, each t-DP for one row of it more or less (P3).

    >>> parallel_epsilon(Fraction(1, 4), 1)
    Fraction(1, 2)
    """
    return 2 * as_count(unit_rows, "unit_rows", minimum=1) * added


def _total(row_total: int, unit_rows: int) -> Fraction:
    """Return the most that a unit adds to all cells together."""
    each = as_count(row_total, "row_total", minimum=1)
    return Fraction(each * as_count(unit_rows, "unit_rows", minimum=1))


@value
class Public(Base):
    """What is the same for all neighbors: the number of rows, where one is replaced."""

    label = "public"
    every_row = True
    section = "P0"
    sentence = "the number of rows is the same for all neighbors: nothing is spent."
    replace_only = True

    def _claim(self, neighbors: Neighbors) -> PureDP:
        return PureDP(0, neighbors=neighbors)


@value
class PartitionLaplace(Base):
    """Independent discrete Laplace noise on the cells of a table."""

    label = "partition-laplace"
    section = "P1"
    sentence = (
        "discrete Laplace noise of scale {scale}, independent, on each of {cells} integer cells of "
        "all groups together; a row adds at most {row_total} to all of them, a unit has at most "
        "{unit_rows} rows: pure DP."
    )

    cells: Cells
    row_total: Cells
    unit_rows: Count
    scale: Positive

    def _claim(self, neighbors: Neighbors) -> PureDP:
        epsilon = partition_laplace_epsilon(**self.values(), neighbors=neighbors)
        return PureDP(epsilon, neighbors=neighbors)


@value
class PartitionKNorm(Base):
    """One rounded draw, fitted to counts, over all cells of a table."""

    label = "partition-k-norm"
    section = "P2"
    sentence = (
        "one draw of noise of scale {scale} in the norm of counts (the larger of what goes up and "
        "what goes down), exactly rounded, over all {cells} integer cells together; a row adds at "
        "most {row_total} to all of them, a unit has at most {unit_rows} rows: pure DP."
    )

    cells: Cells
    row_total: Cells
    unit_rows: Count
    scale: Positive

    def _claim(self, neighbors: Neighbors) -> PureDP:
        epsilon = partition_k_norm_epsilon(
            row_total=self.row_total, unit_rows=self.unit_rows, scale=self.scale
        )
        return PureDP(epsilon, neighbors=neighbors)


@value
class BlockKNorm(Base):
    """Rounded l∞ noise on the block of sums of every group."""

    label = "block-k-norm"
    section = "G2"
    sentence = (
        "noise of scale {scale} in the l∞ norm, exactly rounded, on {dimension} integer sums of "
        "each of {blocks} disjoint groups; a row adds at most {row_bound} to each sum of one "
        "group, a unit has at most {unit_rows} rows: pure DP."
    )

    blocks: Cells
    dimension: Dimension
    row_bound: Cells
    unit_rows: Count
    scale: Positive

    def _claim(self, neighbors: Neighbors) -> PureDP:
        epsilon = block_epsilon(
            row_bound=self.row_bound,
            unit_rows=self.unit_rows,
            scale=self.scale,
            neighbors=neighbors,
        )
        return PureDP(epsilon, neighbors=neighbors)


@value
class ParallelBlocks(Channel):
    """Disjoint groups of rows, each answered with fresh noise by the steps before."""

    label = "parallel-blocks"
    section = "P3"
    sentence = (
        "each of {blocks} disjoint groups is answered by the steps before, stated for one row of "
        "the group added or removed; a replaced unit of at most {unit_rows} rows takes rows out of "
        "some groups and puts rows into others: twice that for each row, however many groups."
    )
    from_add_remove = True

    blocks: Cells
    unit_rows: Count

    def proves(self, base: Composed, epsilon: Fraction) -> bool:
        """Tell whether a row out of one group and one into another cost at most ε."""
        group = simplest(base)
        if type(group) is not PureDP or group.neighbors is not Neighbors.ADD_REMOVE:
            return False
        return parallel_epsilon(group.exact_epsilon, self.unit_rows) <= epsilon
