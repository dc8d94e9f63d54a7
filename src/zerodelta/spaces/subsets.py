"""All subsets of a given size of 0..of-1: selected features, chosen items (theory B1)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

from zerodelta.errors import ParameterError
from zerodelta.exact.rational import as_count, number_text
from zerodelta.spaces.finite import checked_index
from zerodelta.spaces.ranking import rank, unrank
from zerodelta.spaces.reading import read_integer, read_items
from zerodelta.spaces.space import FiniteSpace, named_numbers


@final
@dataclass(frozen=True, slots=True, init=False, repr=False)
class Subsets(FiniteSpace):
    """The subsets of 0..of-1 with `size` items, as increasing tuples: selected features or items.

    The attribute `size` is, as in every finite space, the number of *elements* C(of, chosen).
    Elements are numbered by the combinatorial number system; number 0 is (0, 1, ..., chosen-1).

    Parameters
    ----------
    of : int
        How many items there are; public.
    size : int
        How many of them a subset has; public, kept as `chosen`.

    Examples
    --------
    >>> space = Subsets(of=100, size=5)
    >>> space.size, space.chosen
    (75287520, 5)
    >>> space.project([42, 7, 7, -1, 99.0, None])
    (0, 1, 7, 42, 99)
    >>> space.element(space.index([3, 1, 4, 15, 92]))
    (1, 3, 4, 15, 92)

    """

    of: int
    chosen: int

    def __init__(self, *, of: int, size: int) -> None:
        of, chosen = as_count(of, "of", minimum=1), as_count(size, "size", minimum=1)
        if chosen > of:
            raise ParameterError(
                "size", size, expected=f"at most of = {of}", remedy="choose fewer, or from more"
            )
        object.__setattr__(self, "of", of)
        object.__setattr__(self, "chosen", chosen)

    @property
    def size(self) -> int:
        """The number of elements, C(of, chosen)."""
        return math.comb(self.of, self.chosen)

    def project(self, value: object) -> tuple[int, ...]:
        """Return the first distinct valid items of `value`, filled up with the smallest others.

        At most `of` items are read.
        """
        found: set[int] = set()
        for item in read_items(value, self.of):
            number = read_integer(item)
            if number is not None and 0 <= number < self.of:
                found.add(number)
                if len(found) == self.chosen:
                    break
        others = (index for index in range(self.of) if index not in found)
        return tuple(sorted([*found, *itertools.islice(others, self.chosen - len(found))]))

    def denotes(self, value: object) -> bool:
        """Tell whether `value` is an element: `project` would fill up anything else."""
        return self.contains(value)

    def contains(self, value: object) -> bool:
        """Tell whether `value` holds exactly `chosen` distinct valid items, in any order."""
        items = [read_integer(item) for item in read_items(value, self.chosen + 1)]
        valid = all(item is not None and 0 <= item < self.of for item in items)
        return valid and len(items) == len(set(items)) == self.chosen

    def index(self, value: object) -> int:
        """Return the number of ``project(value)``."""
        return rank(self.project(value))

    def element(self, index: int) -> tuple[int, ...]:
        """Return the subset of a number 0..size-1."""
        number = checked_index(index, self.size)
        return tuple(unrank(number, of=self.of, size=self.chosen))

    def describe(self) -> dict[str, Any]:
        """Return `of` and `chosen`.

        >>> Subsets(of=9, size=2).describe()
        {'kind': 'subsets', 'of': 9, 'chosen': 2}
        """
        return {"kind": "subsets", "of": self.of, "chosen": self.chosen}

    @classmethod
    def from_numbers(cls, numbers: Mapping[str, Any]) -> Subsets:
        """Return the space of a description."""
        of, chosen = named_numbers(numbers, "subsets", ("of", "chosen"))
        return cls(of=of, size=chosen)

    def __repr__(self) -> str:
        return f"Subsets(of={number_text(self.of)}, size={number_text(self.chosen)})"
