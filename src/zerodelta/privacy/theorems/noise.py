"""What noise on exact sums, tables, keys and quantiles, and exact selection cost (R, R2, P, U, Q).

Sensitivities and scales are in the same unit, usually quanta of the integer lattice; both are
exact, and so is the result.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, ClassVar

from zerodelta.errors import GuaranteeError, ParameterError
from zerodelta.exact.rational import Rational, as_count, as_positive
from zerodelta.privacy.claims import ZCDP, Claim, GaussianDP, PureDP
from zerodelta.privacy.composition import (
    Composed,
    check_claim_numbers,
    claim_from_numbers,
    explain_numbers,
    simplest,
)
from zerodelta.privacy.parameters import Neighbors
from zerodelta.privacy.steps import (
    Cells,
    Count,
    Dimension,
    Domain,
    Flag,
    NotNegative,
    Positive,
    Size,
    above,
    between,
    either,
    list_of,
    one_of,
    read_numbers,
)
from zerodelta.privacy.theorems.theorem import Base, Channel, PureBase, domains_of
from zerodelta.value import value

# -- What several quantiles drawn together cost: pure DP, whatever their number (theory Q) --------


def joint_quantiles_epsilon(
    *, rate: Fraction, levels: int, least_gap: Fraction, groups: int, neighbors: Neighbors
) -> Fraction:
    """Return the ε of m points drawn together, from each of some groups: 4γ in a single one.

    The gaps g_j are the differences of 0, the m levels and 1; `least_gap` is at most each of them.
    A row added or removed costs 4γ(1 - min g); one that changes groups twice that.

    >>> numbers = dict(rate=Fraction(1, 4), levels=3, least_gap=Fraction(1, 4))
    >>> joint_quantiles_epsilon(groups=1, neighbors=Neighbors.REPLACE, **numbers)
    Fraction(1, 1)
    >>> joint_quantiles_epsilon(groups=5, neighbors=Neighbors.ADD_REMOVE, **numbers)
    Fraction(3, 4)
    >>> joint_quantiles_epsilon(groups=5, neighbors=Neighbors.REPLACE, **numbers)
    Fraction(3, 2)
    """
    if least_gap * (levels + 1) > 1:
        raise GuaranteeError("the gaps between levels add up to 1: not all of them can be so wide.")
    added = 4 * rate * (1 - least_gap)
    if neighbors is Neighbors.ADD_REMOVE:
        return added
    return 4 * rate if groups == 1 else 2 * added


@value
class JointQuantiles(Base):
    """Points of a grid in rising order, drawn together by how many rows lie between them."""

    label = "joint-quantiles"
    section = "Q"
    sentence = (
        "{levels} points of a public grid in rising order, drawn together and exactly from each of "
        "{groups} disjoint groups of rows, a sequence with probability proportional to e^(-{rate} "
        "times the sum of how much the numbers of rows between neighbors differ from fixed parts "
        "of all rows of the group, none below {least_gap}): pure DP."
    )

    rate: Positive
    levels: Count
    least_gap: Annotated[Fraction, between(0, 1, ends="[)")]
    groups: Cells

    def _claim(self, neighbors: Neighbors) -> PureDP:
        return PureDP(
            joint_quantiles_epsilon(**self.values(), neighbors=neighbors), neighbors=neighbors
        )


# -- Keys -----------------------------------------------------------------------------------------
# What counts by key cost where noise differs upwards and downwards, and k options of one draw.
#
# A row counts for at most one key of a public finite set; nothing is paid for the size of the set,
# for thresholds, or for how many keys are published (theory U). k options chosen in one draw by
# general scores: theory K2.


def key_counts_epsilon(*, up: Rational, down: Rational, neighbors: Neighbors) -> Fraction:
    """Return the ε of noise with P(z) ∝ e^(-up·z) for z ≥ 0, e^(-down·|z|) below, on each count.

    A replaced row lowers one count and raises another: up + down. A row that is added or removed
    moves one count: the larger of the two.

    >>> rates = dict(up="3/4", down="1/4")
    >>> key_counts_epsilon(**rates, neighbors=Neighbors.REPLACE)
    Fraction(1, 1)
    >>> key_counts_epsilon(**rates, neighbors=Neighbors.ADD_REMOVE)
    Fraction(3, 4)
    """
    rates = as_positive(up, "up"), as_positive(down, "down")
    return sum(rates, Fraction(0)) if neighbors is Neighbors.REPLACE else max(rates)


def joint_top_k_epsilon(sensitivity: Rational, scale: Rational, monotone: bool) -> Fraction:
    """Return 4Δ/b: P(s) ∝ e^(u(s)/b), u = -max_i(the i-th largest score - that of option s_i).

    The i-th largest score may fall while that of s_i rises, each by Δ: u has sensitivity 2Δ, or Δ
    if `monotone` (between any two neighbors all scores move in the same direction).

    >>> joint_top_k_epsilon(1, 4, False), joint_top_k_epsilon(1, 4, True)
    (Fraction(1, 1), Fraction(1, 2))
    """
    if not isinstance(monotone, bool):
        raise ParameterError(
            "monotone", monotone, expected="True or False", remedy="pass a bool, nothing truthy"
        )
    moved = as_positive(sensitivity, "sensitivity") * (1 if monotone else 2)
    return 2 * moved / as_positive(scale, "scale")


@value
class KeyCounts(Base):
    """Counts by key with noise that differs upwards and downwards; what passes is published."""

    label = "key-counts"
    section = "U"
    sentence = (
        "a row counts for at most one of {keys} keys, which are public; each count has independent "
        "integer noise that falls by the factor e^-({up}) upwards and e^-({down}) downwards; "
        "whatever is published is a function of these numbers alone: pure DP."
    )

    keys: Size
    up: Positive
    down: Positive

    def _claim(self, neighbors: Neighbors) -> PureDP:
        epsilon = key_counts_epsilon(up=self.up, down=self.down, neighbors=neighbors)
        return PureDP(epsilon, neighbors=neighbors)


@value
class JointTopK(PureBase):
    """Several options in one draw of the exponential mechanism."""

    label = "joint-top-k"
    section = "K2"
    sentence = (
        "{chosen} options, in order, by one exact draw of the exponential mechanism of scale "
        "{scale}; a list is as good as its worst place, on scores of sensitivity {sensitivity}: "
        "pure DP."
    )
    inequality = staticmethod(
        lambda sensitivity, scale, monotone, **_: joint_top_k_epsilon(sensitivity, scale, monotone)
    )
    bounded_range = True

    chosen: Count
    sensitivity: Positive
    scale: Positive
    monotone: Flag


OWN_UNITS = "each column's own"
"""The quantum of K-norm noise on more columns than a list has entries."""


def laplace_epsilon(sensitivity: Rational, scale: Rational) -> Fraction:
    """Return Δ/b: rounded Laplace noise of scale b on integers that move by Δ in the l1 norm.

    >>> laplace_epsilon(2, 10)
    Fraction(1, 5)
    """
    return as_positive(sensitivity, "sensitivity") / as_positive(scale, "scale")


def k_norm_epsilon(sensitivity: Rational, scale: Rational) -> Fraction:
    """Return Δ/b: noise of density ∝ exp(-‖z‖/b), Δ in that same norm; the dimension is free.

    >>> k_norm_epsilon("1/2", 4)
    Fraction(1, 8)
    """
    return as_positive(sensitivity, "sensitivity") / as_positive(scale, "scale")


def gaussian_mu_squared(sensitivity_squared: Rational, variance: Rational) -> Fraction:
    """Return μ² = Δ²/σ²: rounded Gaussian noise on integers that move by Δ in the l2 norm.

    Squares, because Δ and σ themselves are often irrational.

    >>> gaussian_mu_squared(2, 50)
    Fraction(1, 25)
    """
    squared = as_positive(sensitivity_squared, "sensitivity_squared")
    return squared / as_positive(variance, "variance")


def selection_epsilon(sensitivity: Rational, scale: Rational, monotone: bool) -> Fraction:
    """Return 2Δ/b: Gumbel or exponential noise of scale b on scores that move by at most Δ each.

    Half of it if `monotone`: between any two neighbors all scores move in the same direction.

    >>> selection_epsilon(1, 4, False), selection_epsilon(1, 4, True)
    (Fraction(1, 2), Fraction(1, 4))
    """
    if not isinstance(monotone, bool):
        raise ParameterError(
            "monotone", monotone, expected="True or False", remedy="pass a bool, nothing truthy"
        )
    moved = as_positive(sensitivity, "sensitivity") * (1 if monotone else 2)
    return moved / as_positive(scale, "scale")


@value
class Given(Base):
    """A claim that somebody states of the base mechanism."""

    label = "given"
    section = "B6"
    sentence = "the base mechanism is stated to satisfy {claim}."
    asserted = True

    stated: Annotated[Mapping[str, Any], Domain(expected="a claim", read=dict)]

    @classmethod
    def read(cls, numbers: Mapping[str, Any]) -> Given:
        """Return the claim's numbers, checked by the domains of its kind."""
        stated = {name: value for name, value in numbers.items() if name != "count"}
        check_claim_numbers(stated)
        often = {"count": numbers["count"]} if "count" in numbers else {}
        domain = {"count": domains_of(cls)["count"]}
        counted = read_numbers("step 'given'", often, domain, optional=domain)
        return cls(stated=stated, **counted)

    @classmethod
    def explain(cls, numbers: Mapping[str, Any]) -> str:
        """Say in words what is stated."""
        return f"given: {cls.sentence.format(claim=explain_numbers(numbers))}"

    def _claim(self, neighbors: Neighbors) -> Claim:
        return claim_from_numbers(self.stated, neighbors)


@value
class RoundedLaplace(PureBase):
    """Rounded Laplace noise on integer sums."""

    label = "rounded-laplace"
    section = "R"
    sentence = (
        "Laplace noise of scale {scale}, exactly rounded, on integer sums of l1 sensitivity "
        "{sensitivity}: pure DP."
    )
    inequality = staticmethod(laplace_epsilon)

    sensitivity: Positive
    scale: Positive


@value
class KNormNoise(PureBase):
    """Rounded noise of density exp(-‖z‖/b) on integer sums."""

    label = "k-norm-noise"
    section = "R"
    sentence = (
        "noise of scale {scale} in the norm {norm}, exactly rounded, on integer sums, in units of "
        "{quantum}, of sensitivity {sensitivity} in that norm: pure DP."
    )

    words: ClassVar[dict[str, dict[Any, str]]] = {
        "norm": {
            1: "l1",
            2: "l2",
            "inf": "l∞",
            "counts": "of counts (the larger of what goes up and what goes down)",
            "blocks": "of blocks (the sum of the l2 norms of the blocks, one for each cluster or "
            "class)",
        }
    }
    inequality = staticmethod(lambda sensitivity, scale, **_: k_norm_epsilon(sensitivity, scale))

    norm: Annotated[int | str, one_of(1, 2, "inf", "counts", "blocks")]
    quantum: Annotated[Any, either(above(0), list_of(above(0), fewest=1), one_of(OWN_UNITS))]
    sensitivity: Positive
    scale: Positive


@value
class RoundedGaussian(Base):
    """Rounded Gaussian noise on integer sums."""

    label = "rounded-gaussian"
    section = "R"
    sentence = (
        "Gaussian noise of variance {variance}, exactly rounded, on integer sums of squared l2 "
        "sensitivity {sensitivity_squared}: Gaussian DP."
    )

    sensitivity_squared: Positive
    variance: Positive

    def _claim(self, neighbors: Neighbors) -> GaussianDP:
        mu_squared = gaussian_mu_squared(self.sensitivity_squared, self.variance)
        return GaussianDP(mu_squared=mu_squared, neighbors=neighbors)


@value
class AdaptiveGaussian(Base):
    """Internal queries that share a planned μ²."""

    label = "adaptive-gaussian"
    section = "R2"
    sentence = (
        "up to {rounds} internal queries, chosen adaptively, each an exact integer sum with "
        "exactly rounded Gaussian noise of variance (its l2 sensitivity)² / (its share of μ²); "
        "together μ² = {mu_squared}: Gaussian DP."
    )

    mu_squared: NotNegative
    rounds: Count

    def _claim(self, neighbors: Neighbors) -> GaussianDP:
        return GaussianDP(mu_squared=self.mu_squared, neighbors=neighbors)


@value
class AdaptiveZCDP(Base):
    """Internal queries and selections that share a planned ρ."""

    label = "adaptive-zcdp"
    section = "R2"
    sentence = (
        "up to {rounds} internal queries, chosen adaptively: exact integer sums with exactly "
        "rounded Gaussian noise, and exponential-mechanism choices at ε²/8; together ρ = {rho}: "
        "zCDP."
    )

    rho: NotNegative
    rounds: Count

    def _claim(self, neighbors: Neighbors) -> ZCDP:
        return ZCDP(self.rho, neighbors=neighbors)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Selection(PureBase):
    """The index of the largest noisy score."""

    section = "C10.1"
    inequality = staticmethod(selection_epsilon)

    sensitivity: Positive
    scale: Positive
    monotone: Flag


@value
class ExponentialMechanism(_Selection):
    """Selection with Gumbel noise."""

    label = "exponential-mechanism"
    sentence = (
        "exponential mechanism (exact Gumbel argmax) of scale {scale} on scores of sensitivity "
        "{sensitivity}: pure DP."
    )
    bounded_range = True


@value
class PermuteAndFlip(_Selection):
    """Selection with exponential noise."""

    label = "permute-and-flip"
    sentence = (
        "permute-and-flip (exact) of scale {scale} on scores of sensitivity {sensitivity}: pure DP."
    )


# -- Partitions -----------------------------------------------------------------------------------
# What counts and sums of rows that share a fixed total cost, for all groups at once (theory P).
#
# A row has non-negative integers in the cells of a table, at most `row_total` together; or, for
# several columns, coordinates of magnitude at most `row_bound` in the block of its own group. A
# unit has up to `unit_rows` rows. Everything is exact, and no ε is split over groups.


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
