"""What may be published: finite sets, boxes, balls, multisets, and their lattices.

Where to look: `space` (the contract), `finite`, `subsets`, `multiset`, `with_extra`, `box`, `ball`
(one space each), `lattices` (boxes and balls as integers), `ranking` (numbering of subsets),
`coordinates` (exact parameters), `reading` (any object read without raising), `from_numbers`
(certificates).
"""

from zerodelta.spaces.boxes import Ball, Box, is_known, lattice_from_numbers, space_from_numbers
from zerodelta.spaces.finite import Finite, Multiset, Subsets, WithExtra
from zerodelta.spaces.lattices import BallLattice, GridLattice
from zerodelta.spaces.space import EuclideanSpace, FiniteSpace, Space

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
