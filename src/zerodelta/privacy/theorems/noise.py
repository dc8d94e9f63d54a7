"""State the theorems of noise on sums, tables and keys, of quantiles and selection (R, P, U, Q).

Sensitivities and scales are in the same unit, usually quanta of the integer lattice; both are
exact, and so is the result.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, ClassVar

from zerodelta.errors import GuaranteeError
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
    FieldDomain,
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
from zerodelta.privacy.theorems.theorem import BaseTheorem, ChannelTheorem, PureTheorem, domains_of
from zerodelta.value import value

OWN_UNITS = "each column's own"
"""Stands for the list of quanta of K-norm noise, where it would be too long for a certificate."""


@value
class GivenTheorem(BaseTheorem):
    """A claim that the caller states for the base mechanism."""

    label = "given"
    section = "B6"
    sentence = "the base mechanism is stated to satisfy {claim}."
    asserted = True

    stated: Annotated[Mapping[str, Any], FieldDomain(expected="a claim", read=dict)]

    @classmethod
    def read(cls, numbers: Mapping[str, Any]) -> GivenTheorem:
        """Return the theorem of a claim's numbers, each in the domain of its kind."""
        stated = {name: value for name, value in numbers.items() if name != "count"}
        check_claim_numbers(stated)
        written_count = {"count": numbers["count"]} if "count" in numbers else {}
        domain = {"count": domains_of(cls)["count"]}
        count = read_numbers("step 'given'", written_count, domain, optional=domain)
        return cls(stated=stated, **count)

    @classmethod
    def explain(cls, numbers: Mapping[str, Any]) -> str:
        """Return a sentence about the stated claim."""
        return f"given: {cls.sentence.format(claim=explain_numbers(numbers))}"

    def _claim(self, neighbors: Neighbors) -> Claim:
        return claim_from_numbers(self.stated, neighbors)


# -- Noise on a vector of sums --------------------------------------------------------------------


@value
class RoundedLaplaceTheorem(PureTheorem):
    """Rounded Laplace noise of scale b on integers that move by Δ in the l1 norm: Δ/b.

    >>> RoundedLaplaceTheorem(sensitivity=Fraction(2), scale=Fraction(10)).cost(Neighbors.REPLACE)
    Fraction(1, 5)
    """

    label = "rounded-laplace"
    section = "R"
    sentence = (
        "Laplace noise of scale {scale}, exactly rounded, on integer sums of l1 sensitivity "
        "{sensitivity}: pure DP."
    )

    sensitivity: Positive
    scale: Positive

    def cost(self, neighbors: Neighbors) -> Fraction:
        """Return Δ/b."""
        return self.sensitivity / self.scale


@value
class KNormNoiseTheorem(PureTheorem):
    """Rounded noise of density ∝ exp(-‖z‖/b) on integers that move by Δ in that same norm: Δ/b.

    The dimension is free.
    """

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

    norm: Annotated[int | str, one_of(1, 2, "inf", "counts", "blocks")]
    quantum: Annotated[Any, either(above(0), list_of(above(0), minimum=1), one_of(OWN_UNITS))]
    sensitivity: Positive
    scale: Positive

    def cost(self, neighbors: Neighbors) -> Fraction:
        """Return Δ/b."""
        return self.sensitivity / self.scale


@value
class MatrixLaplaceTheorem(PureTheorem):
    """Matrix Laplace noise of scale b on Σ x xᵀ over rows with ‖x‖² <= s²: 2s²/b.

    s²/b between neighbors of which one has one row more.

    >>> theorem = MatrixLaplaceTheorem(dimension=4, squared_length=Fraction(3), scale=Fraction(10))
    >>> theorem.cost(Neighbors.REPLACE), theorem.cost(Neighbors.ADD_REMOVE)
    (Fraction(3, 5), Fraction(3, 10))
    """

    label = "matrix-laplace"
    section = "W2"
    sentence = (
        "the difference of two Wishart matrices of {dimension} lines with one degree of freedom "
        "more, of scale {scale}, exactly rounded, on the sums of products of integer rows of "
        "squared length at most {squared_length}: pure DP."
    )

    dimension: Dimension
    squared_length: Positive
    scale: Positive

    def cost(self, neighbors: Neighbors) -> Fraction:
        """Return 2s²/b, or s²/b."""
        rows = 2 if neighbors is Neighbors.REPLACE else 1
        return rows * self.squared_length / self.scale


@value
class RoundedGaussianTheorem(BaseTheorem):
    """Rounded Gaussian noise on integers that move by Δ in the l2 norm: μ² = Δ²/σ².

    Squares, because Δ and σ themselves are often irrational.
    """

    label = "rounded-gaussian"
    section = "R"
    sentence = (
        "Gaussian noise of variance {variance}, exactly rounded, on integer sums of squared l2 "
        "sensitivity {sensitivity_squared}: Gaussian DP."
    )

    sensitivity_squared: Positive
    variance: Positive

    def _claim(self, neighbors: Neighbors) -> GaussianDP:
        mu_squared = self.sensitivity_squared / self.variance
        return GaussianDP(mu_squared=mu_squared, neighbors=neighbors)


@value
class AdaptiveGaussian(BaseTheorem):
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
class AdaptiveZCDP(BaseTheorem):
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


# -- Selection ------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class _Selection(PureTheorem):
    """The index of the largest noisy score: 2Δ/b for scores that move by at most Δ each.

    Half of it if `monotone`: between any two neighbors all scores move in the same direction.
    """

    section = "C10.1"

    sensitivity: Positive
    scale: Positive
    monotone: Flag

    def cost(self, neighbors: Neighbors) -> Fraction:
        """Return 2Δ/b, or Δ/b."""
        return (1 if self.monotone else 2) * self.sensitivity / self.scale


@value
class ExponentialMechanismTheorem(_Selection):
    """Selection with Gumbel noise."""

    label = "exponential-mechanism"
    sentence = (
        "exponential mechanism (exact Gumbel argmax) of scale {scale} on scores of sensitivity "
        "{sensitivity}: pure DP."
    )
    bounded_range = True


@value
class PermuteAndFlipTheorem(_Selection):
    """Selection with exponential noise."""

    label = "permute-and-flip"
    sentence = (
        "permute-and-flip (exact) of scale {scale} on scores of sensitivity {sensitivity}: pure DP."
    )


@value
class JointTopKTheorem(PureTheorem):
    """Several options in one draw of the exponential mechanism: P(s) ∝ e^(u(s)/b) costs 4Δ/b.

    u = -max_i(the i-th largest score - that of option s_i). The i-th largest score may fall while
    that of s_i rises, each by Δ: u has sensitivity 2Δ, or Δ if `monotone` (between any two
    neighbors all scores move in the same direction).
    """

    label = "joint-top-k"
    section = "K2"
    sentence = (
        "{chosen} options, in order, by one exact draw of the exponential mechanism of scale "
        "{scale}; a list is as good as its worst place, on scores of sensitivity {sensitivity}: "
        "pure DP."
    )
    bounded_range = True

    chosen: Count
    sensitivity: Positive
    scale: Positive
    monotone: Flag

    def cost(self, neighbors: Neighbors) -> Fraction:
        """Return 4Δ/b, or 2Δ/b."""
        return (2 if self.monotone else 4) * self.sensitivity / self.scale


@value
class JointQuantiles(PureTheorem):
    """m points of a grid in rising order, drawn together by how many rows lie between them.

    The gaps g_j are the differences of 0, the m levels and 1; `least_gap` is at most each of them.
    A row added or removed costs 4γ(1 - min g), γ the rate; one that changes groups twice that; and
    one that is replaced in a single group 4γ, whatever m is.
    """

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

    def cost(self, neighbors: Neighbors) -> Fraction:
        """Return ε: 4γ(1 - min g) for add/remove, twice that for replace, 4γ in one group."""
        if self.least_gap * (self.levels + 1) > 1:
            raise GuaranteeError(
                "the gaps between levels add up to 1: not all of them can be so wide."
            )
        added = 4 * self.rate * (1 - self.least_gap)
        if neighbors is Neighbors.ADD_REMOVE:
            return added
        return 4 * self.rate if self.groups == 1 else 2 * added


# -- Keys -----------------------------------------------------------------------------------------


@value
class KeyCountsTheorem(PureTheorem):
    """Counts by key with noise of different rates up and down; large noisy counts are published.

    Each count has noise with P(z) ∝ e^(-up·z) for z ≥ 0, e^(-down·|z|) below. A row counts for at
    most one key of a public finite set. The ε does not depend on the size of the set, on thresholds
    or on the number of published keys (theory U).

    >>> counts = KeyCountsTheorem(keys=9, up=Fraction(3, 4), down=Fraction(1, 4))
    >>> counts.cost(Neighbors.REPLACE), counts.cost(Neighbors.ADD_REMOVE)
    (Fraction(1, 1), Fraction(3, 4))
    """

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

    def cost(self, neighbors: Neighbors) -> Fraction:
        """Return up + down: a replaced row lowers one count and raises another.

        A row that is added or removed moves one count: the larger of the two.
        """
        replaced = neighbors is Neighbors.REPLACE
        return self.up + self.down if replaced else max(self.up, self.down)


# -- Partitions: counts and sums of all groups at once (theory P) ---------------------------------
# A row adds non-negative integers to the cells of a table, with a total of at most `row_total`; or,
# for several columns, coordinates of magnitude at most `row_bound` to the block of its own group. A
# unit has up to `unit_rows` rows. Everything is exact, and ε is not split over groups.


@value
class Public(BaseTheorem):
    """A value that is the same for all neighbors, so it costs nothing: the number of rows."""

    label = "public"
    every_row = True
    section = "P0"
    sentence = "the number of rows is the same for all neighbors: nothing is spent."
    replace_only = True

    def _claim(self, neighbors: Neighbors) -> PureDP:
        return PureDP(0, neighbors=neighbors)


@value
class PartitionLaplace(PureTheorem):
    """Independent discrete Laplace noise of scale b on the cells of a table: 2mM/b, or mM/b.

    It holds for any noise on integers with P(z) <= e^(1/b) P(z ± 1). Replaced rows take mM out of
    some cells and put mM into others. Half of that if rows are only added or removed, or if there
    is but one cell.

    >>> table = PartitionLaplace(cells=24, row_total=10, unit_rows=1, scale=Fraction(40))
    >>> table.cost(Neighbors.REPLACE), table.cost(Neighbors.ADD_REMOVE)
    (Fraction(1, 2), Fraction(1, 4))
    """

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

    def cost(self, neighbors: Neighbors) -> Fraction:
        """Return 2mM/b, or mM/b."""
        several = self.cells > 1
        changes = 2 if several and neighbors is Neighbors.REPLACE else 1
        return changes * self.row_total * self.unit_rows / self.scale


@value
class PartitionKNorm(PureTheorem):
    """One rounded draw of density ∝ exp(-max(Σz⁺, Σz⁻)/s) over all cells of a table: mM/s."""

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

    def cost(self, neighbors: Neighbors) -> Fraction:
        """Return mM/s."""
        return self.row_total * self.unit_rows / self.scale


@value
class BlockKNorm(PureTheorem):
    """Rounded l∞ noise of scale b on the block of sums of every group: 2mB/b, or mB/b."""

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

    def cost(self, neighbors: Neighbors) -> Fraction:
        """Return 2mB/b, or mB/b."""
        changes = 2 if neighbors is Neighbors.REPLACE else 1
        return changes * self.row_bound * self.unit_rows / self.scale


@value
class ParallelBlocks(ChannelTheorem):
    """Disjoint groups of rows, each answered with fresh noise by the earlier steps: 2mt.

    Each group's answer is t-DP for one row of the group added or removed.
    """

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
        return 2 * self.unit_rows * group.exact_epsilon <= epsilon
