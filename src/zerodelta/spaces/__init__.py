"""What may be published: finite sets, boxes, balls, multisets, and their lattices.

Where to look: `space` (the contract), `finite`, `subsets`, `multiset`, `with_extra`, `box`, `ball`
(one space each), `lattices` (boxes and balls as integers), `ranking` (numbering of subsets),
`coordinates` (exact parameters), `reading` (any object read without raising), `from_numbers`
(certificates).
"""

from zerodelta.spaces.ball import Ball
from zerodelta.spaces.box import Box
from zerodelta.spaces.finite import Finite
from zerodelta.spaces.from_numbers import is_known, lattice_from_numbers, space_from_numbers
from zerodelta.spaces.lattices import BallLattice, GridLattice
from zerodelta.spaces.multiset import Multiset
from zerodelta.spaces.space import EuclideanSpace, FiniteSpace, Space
from zerodelta.spaces.subsets import Subsets
from zerodelta.spaces.with_extra import WithExtra

__all__ = [
    "Ball",
    "BallLattice",
    "Box",
    "EuclideanSpace",
    "Finite",
    "FiniteSpace",
    "GridLattice",
    "Multiset",
    "Space",
    "Subsets",
    "WithExtra",
    "is_known",
    "lattice_from_numbers",
    "space_from_numbers",
]
