"""Define universes of keys too large to list: texts, integers, codes, and products (theory U).

The keys of a universe are divided into classes, such as the texts of one length. Within a class
each key has a rank 0, 1, …, computed from the key alone; a rank is converted back to its key. Each
class has a public share of the expected false keys, for texts the same for each length.
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
"""The number of a key's class, and its rank in it; keys are published in the order of places."""

_MOST_CLASSES = 1 << 12
_MOST_BITS = 1 << 17


@value
class KeyClass:
    """A class of `size` keys, over which a share of the expected false keys is spread evenly."""

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
        """Return the number of a key's class and its rank in it."""

    @abstractmethod
    def key(self, place: Place) -> Key:
        """Return the key at a place, in the form in which it is read from cells."""

    @abstractmethod
    def published(self, key: Key) -> Any:
        """Return the value that is published for a key."""

    @property
    def size(self) -> int:
        """The number of keys."""
        return sum(key_class.size for key_class in self.classes)


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
            expected="at most 4096 characters, and at most 131072 bits, for a text that is a key",
            remedy="declare a shorter length, or use a hash as the key: zd.number(0, 2**64 - 1, "
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
        """Return the length of a text minus 1, and its rank among texts of that length."""
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
    """The integers from `lower` to `upper`, one class.

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
        """Return class 0, and the number minus the lower end."""
        return 0, key - self.lower

    def key(self, place: Place) -> int:
        """Return the number at a place."""
        return self.lower + place[1]

    def published(self, key: int) -> int:
        """Return the number."""
        return key


@value
class CodeKeys(KeyUniverse):
    """The codes 0, 1, … of declared options, one class; the option is published."""

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
    """Tuples of keys, one from each part; the classes are the combinations of the parts' classes.

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
            remedy="declare shorter texts, or use fewer columns in a key",
        )

    @cached_property
    def _classes_of_parts(self) -> list[tuple[int, ...]]:
        """The classes of the parts, for each class."""
        return list(itertools.product(*(range(len(part.classes)) for part in self.parts)))

    @cached_property
    def _numbers_of_classes(self) -> dict[tuple[int, ...], int]:
        return {groups: number for number, groups in enumerate(self._classes_of_parts)}

    @cached_property
    def classes(self) -> tuple[KeyClass, ...]:
        """The combinations of classes, the last part fastest."""
        return tuple(
            KeyClass(
                size=math.prod(part_class.size for part_class in combined),
                share=math.prod((part_class.share for part_class in combined), start=Fraction(1)),
            )
            for combined in itertools.product(*(part.classes for part in self.parts))
        )

    def place(self, key: tuple[Key, ...]) -> Place:
        """Return the place: ranks of the parts as digits, the last part fastest."""
        places = [part.place(part_key) for part, part_key in zip(self.parts, key, strict=True)]
        rank = 0
        for part, (group, within) in zip(self.parts, places, strict=True):
            rank = rank * part.classes[group].size + within
        return self._numbers_of_classes[tuple(group for group, _ in places)], rank

    def key(self, place: Place) -> tuple[Key, ...]:
        """Return the tuple at a place."""
        number, rank = place
        keys = []
        for part, group in reversed(
            list(zip(self.parts, self._classes_of_parts[number], strict=True))
        ):
            rank, within = divmod(rank, part.classes[group].size)
            keys.append(part.key((group, within)))
        return tuple(reversed(keys))

    def published(self, key: tuple[Key, ...]) -> tuple[Any, ...]:
        """Return the value that is published for each part."""
        return tuple(
            part.published(part_key) for part, part_key in zip(self.parts, key, strict=True)
        )
