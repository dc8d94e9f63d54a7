"""Several rows of one unit: group privacy over its slots, or what moves as one row (theory V)."""

from __future__ import annotations

from fractions import Fraction

from zerodelta.privacy.composition import Composed
from zerodelta.privacy.domains import Count
from zerodelta.privacy.theorems.theorem import Theorem
from zerodelta.value import value


@value
class Units(Theorem):
    """At most `max_rows` rows of a unit count, and a row that is not there counts nowhere.

    So a unit is that many slots, and what is proven for one of them holds that many times. As the
    last step it is about the ε of the part. Before a channel it is about the steps before it: their
    pure ε and their μ are multiplied, and their ρ by the square.
    """

    label = "units"
    section = "V"
    sentence = (
        "at most {max_rows} rows of one unit were kept, by a rule that looks at its own rows only; "
        "what the steps before prove for one row holds for all of them together at {max_rows} "
        "times the ε (or μ; the square of that for ρ)."
    )

    max_rows: Count

    def of_row(self, epsilon: Fraction) -> Fraction:
        """Return the ε of one row that makes this ε of a unit."""
        return epsilon / self.max_rows

    def of_unit(self, row: Composed) -> Composed:
        """Return what holds for a unit of what is proven for one of its rows."""
        return row.of_group(self.max_rows)


@value
class ClippedUnits(Theorem):
    """The rows of a unit count like at most `weight` of them: what they add up to is clipped.

    It stands before a channel, after steps that are sums with Gaussian noise for one row's bound.
    """

    label = "clipped-units"
    section = "V2"
    sentence = (
        "at most {max_rows} rows of one unit were kept, by a rule that looks at its own rows only, "
        "and what they add up to was clipped to {weight} times the l2 norm of one row; so the sums "
        "have {weight} times the sensitivity (μ) for a unit that they have for one row."
    )

    max_rows: Count
    weight: Count

    def of_unit(self, row: Composed) -> Composed:
        """Return what holds for a unit of what is proven for sums of rows, of a row's bound."""
        return row.of_group(min(self.weight, self.max_rows))


@value
class UnitVotes(Theorem):
    """All rows of a unit are dealt to one block, so a unit moves one vote, as one row does.

    It is the last step, after permute-and-flip on votes.
    """

    label = "unit-votes"
    section = "V3"
    sentence = (
        "at most {max_rows} rows of one unit were kept, by a rule that looks at its own rows only, "
        "and all of them are in the one block that the unit drew; so a unit moves one vote, and "
        "what the step before proves for one row holds for all of them together."
    )
    asserted = True

    max_rows: Count
