"""Multisets of a given size over a universe: synthetic data sets (theory B1, A10)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, final

from zerodelta.exact.rational import as_count, number_text
from zerodelta.spaces.finite import Finite, Option, checked_index
from zerodelta.spaces.ranking import rank, unrank
from zerodelta.spaces.reading import read_items
from zerodelta.spaces.space import FiniteSpace, named_numbers


@final
@dataclass(frozen=True, slots=True, init=False, repr=False)
class Multiset(FiniteSpace):
    """Unordered samples of `size` items, with repetition, from a universe: synthetic data sets.

    The attribute `size` is, as in every finite space, the number of *elements*
    C(universe + chosen - 1, chosen). Elements are tuples in the order of the universe, numbered by
    stars and bars; number 0 repeats the first item.

    Parameters
    ----------
    universe : int, list or Finite
        The number of items there are, or a list of them; public.
    size : int
        How many items a sample has; public, kept as `chosen`.

    Examples
    --------
    >>> space = Multiset(["a", "b", "c"], 2)
    >>> space.size, space.project(["c", "a"]), space.project(["b", "z", "c"])
    (6, ('a', 'c'), ('a', 'b'))
    >>> [space.element(index) for index in range(4)]
    [('a', 'a'), ('a', 'b'), ('b', 'b'), ('a', 'c')]

    """

    universe: Finite
    chosen: int

    def __init__(self, universe: int | Iterable[Option] | Finite, size: int) -> None:
        finite = universe if type(universe) is Finite else Finite(universe)
        object.__setattr__(self, "universe", finite)
        object.__setattr__(self, "chosen", as_count(size, "size", minimum=1))

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.comb(self._places, self.chosen)

    @property
    def _places(self) -> int:
        """Stars and bars: the items a_0 <= a_1 <= ... are the subset a_0, a_1 + 1, a_2 + 2, ..."""
        return self.universe.size + self.chosen - 1

    def _numbers(self, value: object) -> list[int]:
        numbers = [self.universe.index(item) for item in read_items(value, self.chosen)]
        return [0] * (self.chosen - len(numbers)) + sorted(numbers)

    def project(self, value: object) -> tuple[Option, ...]:
        """Return the first `chosen` items of `value` in the order of the universe.

        What is missing, or is not in the universe, counts as the universe's first item.
        """
        return tuple(self.universe.element(number) for number in self._numbers(value))

    def denotes(self, value: object) -> bool:
        """Tell whether `value` has `chosen` items, and each denotes one of the universe."""
        items = list(read_items(value, self.chosen + 1))
        return len(items) == self.chosen and all(map(self.universe.denotes, items))

    def contains(self, value: object) -> bool:
        """Tell whether `value` holds exactly `chosen` items of the universe, in any order."""
        items = list(read_items(value, self.chosen + 1))
        return len(items) == self.chosen and all(map(self.universe.contains, items))

    def index(self, value: object) -> int:
        """Return the number of ``project(value)``."""
        return rank([number + place for place, number in enumerate(self._numbers(value))])

    def element(self, index: int) -> tuple[Option, ...]:
        """Return the multiset of a number 0..size-1."""
        stars = unrank(checked_index(index, self.size), of=self._places, size=self.chosen)
        return tuple(self.universe.element(star - place) for place, star in enumerate(stars))

    def describe(self) -> dict[str, Any]:
        """Return the universe (its size, or its items) and `chosen`.

        >>> Multiset(2**40, 3).describe()
        {'kind': 'multiset', 'universe': 1099511627776, 'chosen': 3}
        """
        universe = self.universe.described_options()
        return {"kind": "multiset", "universe": universe, "chosen": self.chosen}

    @classmethod
    def from_numbers(cls, numbers: Mapping[str, Any]) -> Multiset:
        """Return the space of a description."""
        universe, chosen = named_numbers(numbers, "multiset", ("universe", "chosen"))
        return cls(Finite.from_described_options(universe), chosen)

    def __repr__(self) -> str:
        universe = self.universe
        shown = repr(universe) if universe.options else number_text(universe.size)
        return f"Multiset({shown}, size={number_text(self.chosen)})"
