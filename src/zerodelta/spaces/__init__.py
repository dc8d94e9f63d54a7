"""What may be published: finite sets, boxes, balls, multisets, and their lattices.

Where to look: `space` (the contract; any object read without raising), `finite` (options, subsets,
multisets, one more element), `boxes` (boxes and balls), `lattices` (these as integers; exact
coordinates), `keys` (universes of keys that are never listed).
"""

from zerodelta.spaces.boxes import Ball, Box, is_known
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
]
