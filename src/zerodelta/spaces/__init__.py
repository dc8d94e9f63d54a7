"""Define spaces of publishable values: finite sets, boxes, balls, multisets, and their lattices.

The modules are `space` (the contract, and reading any object without an error), `finite` (options,
subsets, multisets, an extra element), `boxes` (boxes and balls), `lattices` (boxes and balls in
integers, and exact coordinates) and `keys` (universes of keys too large to list).

`__all__` lists the spaces that plans accept and `zerodelta.purification` offers. The contracts, the
lattices and `WithExtra` are for the library itself.
"""

from zerodelta.spaces.boxes import Ball, Box
from zerodelta.spaces.finite import Finite, Multiset, Subsets
from zerodelta.spaces.finite import WithExtra as WithExtra
from zerodelta.spaces.lattices import BallLattice as BallLattice
from zerodelta.spaces.lattices import GridLattice as GridLattice
from zerodelta.spaces.space import EuclideanSpace as EuclideanSpace
from zerodelta.spaces.space import FiniteSpace as FiniteSpace
from zerodelta.spaces.space import Space as Space
from zerodelta.spaces.space import is_known as is_known

__all__ = [
    "Ball",
    "Box",
    "Finite",
    "Multiset",
    "Subsets",
]
