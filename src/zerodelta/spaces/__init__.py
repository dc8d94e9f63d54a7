"""Define spaces of publishable values: finite sets, boxes, balls, multisets, and their lattices.

The modules are `space` (the contract, and reading any object without an error), `finite` (options,
subsets, multisets, an extra element), `boxes` (boxes and balls), `lattices` (boxes and balls in
integers, and exact coordinates) and `keys` (universes of keys too large to list).
"""

from zerodelta.spaces.boxes import Ball, Box
from zerodelta.spaces.finite import Finite, Multiset, Subsets, WithExtra
from zerodelta.spaces.lattices import BallLattice, GridLattice
from zerodelta.spaces.space import EuclideanSpace, FiniteSpace, Space, is_known

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
