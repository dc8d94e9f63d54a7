"""What several quantiles drawn together cost: pure DP, whatever their number (theory Q)."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated

from zerodelta.errors import GuaranteeError
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.domains import Cells, Count, Positive, between
from zerodelta.privacy.neighbors import Neighbors
from zerodelta.privacy.theorems.theorem import Base
from zerodelta.value import value


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
