"""Universes of keys that are never listed: texts, whole numbers, codes, and products (theory U).

The keys of a universe are divided into classes, such as the texts of one length. Within a class
each key has a rank 0, 1, …, computed from the key alone, and the key of a rank is computed back.
Which share of the expected false keys falls on a class is public: the same for each length of text.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeAlias, final

from zerodelta.errors import require
from zerodelta.value import value

Key: TypeAlias = Any
Place: TypeAlias = tuple[int, int]
"""The class of a key, and its rank there; keys are published in the order of their places."""

_MOST_CLASSES = 1 << 12
_MOST_BITS = 1 << 17


@value
class KeyClass:
    """So many keys, among which this share of the expected false keys is spread evenly."""

    size: int
    share: Fraction


class KeyUniverse(ABC):
    """A public finite set of keys with a computable order."""

    @property
    @abstractmethod
    def classes(self) -> tuple[KeyClass, ...]:
        """The classes in their order; their shares add up to 1."""

    @abstractmethod
    def place(self, key: Key) -> Place:
        """Return the class and the rank of a key of the universe."""

    @abstractmethod
    def key(self, place: Place) -> Key:
        """Return the key at a place, as it is read from cells: the inverse of `place`."""

    @abstractmethod
    def published(self, key: Key) -> Any:
        """Return what is shown for a key."""

    @property
    def size(self) -> int:
        """The number of keys."""
        return sum(each.size for each in self.classes)


@final
@dataclass(frozen=True, kw_only=True)
class TextKeys(KeyUniverse):
    """All texts of 1 to `length` letters; a class for each length, with equal shares.

    >>> names = TextKeys(alphabet="ab", length=3)
    >>> names.size, names.place("ba"), names.key((2, 0))
    (14, (1, 2), 'aaa')
    """

    alphabet: str
    length: int

    def __post_init__(self) -> None:
        bits = self.length * math.log2(len(self.alphabet))
        require(
            self.length <= _MOST_CLASSES and bits <= _MOST_BITS,
            "length",
            self.length,
            expected="texts of at most 4096 letters that serve as keys",
            remedy="declare a shorter length, or key by a hash: zd.number(0, 2**64 - 1, "
            "integer=True)",
        )

    @cached_property
    def _values(self) -> dict[str, int]:
        return {letter: value for value, letter in enumerate(self.alphabet)}

    @cached_property
    def classes(self) -> tuple[KeyClass, ...]:
        """The texts of 1, 2, … letters."""
        share = Fraction(1, self.length)
        sizes = (len(self.alphabet) ** n for n in range(1, self.length + 1))
        return tuple(KeyClass(size=size, share=share) for size in sizes)

    def place(self, key: str) -> Place:
        """Return the length of a text less one, and its rank among those."""
        rank, base = 0, len(self.alphabet)
        for letter in key:
            rank = rank * base + self._values[letter]
        return len(key) - 1, rank

    def key(self, place: Place) -> str:
        """Return the text at a place."""
        (group, rank), letters = place, []
        for _ in range(group + 1):
            rank, value = divmod(rank, len(self.alphabet))
            letters.append(self.alphabet[value])
        return "".join(reversed(letters))

    def published(self, key: str) -> str:
        """Return the text."""
        return key


@value
class RangeKeys(KeyUniverse):
    """The whole numbers from `lower` to `upper`, one class.

    >>> RangeKeys(lower=-3, upper=4).place(-1)
    (0, 2)
    """

    lower: int
    upper: int

    @property
    def classes(self) -> tuple[KeyClass, ...]:
        """All of them."""
        return (KeyClass(size=self.upper - self.lower + 1, share=Fraction(1)),)

    def place(self, key: int) -> Place:
        """Return how far a number is above the lower end."""
        return 0, key - self.lower

    def key(self, place: Place) -> int:
        """Return the number at a place."""
        return self.lower + place[1]

    def published(self, key: int) -> int:
        """Return the number."""
        return key


@value
class CodeKeys(KeyUniverse):
    """The codes 0, 1, … of declared options, one class; what is shown is the option."""

    labels: Sequence[Any]

    @property
    def classes(self) -> tuple[KeyClass, ...]:
        """All of them."""
        return (KeyClass(size=len(self.labels), share=Fraction(1)),)

    def place(self, key: int) -> Place:
        """Return the code."""
        return 0, key

    def key(self, place: Place) -> int:
        """Return the code."""
        return place[1]

    def published(self, key: int) -> Any:
        """Return the option."""
        return self.labels[key]


@final
@dataclass(frozen=True, kw_only=True)
class ProductKeys(KeyUniverse):
    """Tuples of keys, one of each part; the classes are the combinations of theirs.

    >>> pairs = ProductKeys(parts=(TextKeys(alphabet="ab", length=2), RangeKeys(lower=0, upper=9)))
    >>> pairs.size, pairs.place(("ba", 7)), pairs.key((1, 27))
    (60, (1, 27), ('ba', 7))
    """

    parts: tuple[KeyUniverse, ...]

    def __post_init__(self) -> None:
        number = math.prod(len(part.classes) for part in self.parts)
        require(
            number <= _MOST_CLASSES,
            "columns",
            number,
            expected="at most 4096 combinations of lengths of text",
            remedy="declare shorter texts, or ask for fewer columns at once",
        )

    @cached_property
    def _chosen(self) -> list[tuple[int, ...]]:
        """The classes of the parts, for each class."""
        return list(itertools.product(*(range(len(part.classes)) for part in self.parts)))

    @cached_property
    def _numbers(self) -> dict[tuple[int, ...], int]:
        return {groups: number for number, groups in enumerate(self._chosen)}

    @cached_property
    def classes(self) -> tuple[KeyClass, ...]:
        """The combinations of classes, the last part fastest."""
        return tuple(
            KeyClass(
                size=math.prod(each.size for each in combined),
                share=math.prod((each.share for each in combined), start=Fraction(1)),
            )
            for combined in itertools.product(*(part.classes for part in self.parts))
        )

    def place(self, key: tuple[Key, ...]) -> Place:
        """Return the place: ranks of the parts as digits, the last part fastest."""
        places = [part.place(each) for part, each in zip(self.parts, key, strict=True)]
        rank = 0
        for part, (group, within) in zip(self.parts, places, strict=True):
            rank = rank * part.classes[group].size + within
        return self._numbers[tuple(group for group, _ in places)], rank

    def key(self, place: Place) -> tuple[Key, ...]:
        """Return the tuple at a place."""
        number, rank = place
        found = []
        for part, group in reversed(list(zip(self.parts, self._chosen[number], strict=True))):
            rank, within = divmod(rank, part.classes[group].size)
            found.append(part.key((group, within)))
        return tuple(reversed(found))

    def published(self, key: tuple[Key, ...]) -> tuple[Any, ...]:
        """Return what is shown for each part."""
        return tuple(part.published(each) for part, each in zip(self.parts, key, strict=True))
