"""Define finite spaces: options, subsets, multisets, and a space with an extra element (B1)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TypeAlias, final

import numpy as np

from zerodelta.errors import ParameterError, is_list
from zerodelta.exact.rational import as_count, number_text
from zerodelta.spaces.space import (
    FiniteSpace,
    is_known,
    read_integer,
    read_items,
    read_number,
    trusted_space,
)

Option: TypeAlias = str | int | float | bool | tuple[Any, ...] | None
"""A value that can be written into a certificate; a tuple holds options."""


@trusted_space
@final
@dataclass(frozen=True, slots=True, init=False, repr=False)
class Finite(FiniteSpace):
    """The indices 0..size-1, or a list of distinct options: the space of a choice.

    A finite number counts as the nearest index, or as the nearest option if all options are
    numbers. Any other value (NaN, an infinity, None, an unknown option) counts as element 0.

    Parameters
    ----------
    size_or_options : int or list
        The number of elements, or the elements; public, never computed from the data.

    Examples
    --------
    >>> space = Finite(16)
    >>> space.project(7.6), space.project(99), space.project("3"), space.size
    (8, 15, 0, 16)
    >>> Finite(["ridge", "lasso"]).index("lasso"), Finite([0.1, 1.0, 10.0]).project(0.8)
    (1, 1.0)

    """

    _size: int
    options: tuple[Option, ...] | None
    _indices: dict[Option, int] = field(compare=False)

    def __init__(self, size_or_options: int | Iterable[Option]) -> None:
        options = None
        if isinstance(size_or_options, (int, np.integer)):
            size = as_count(size_or_options, "size", minimum=1)
        else:
            options = _checked_options(size_or_options)
            size = len(options)
        object.__setattr__(self, "_size", size)
        object.__setattr__(self, "options", options)
        indices = {option: index for index, option in enumerate(options or ())}
        object.__setattr__(self, "_indices", indices)

    @property
    def size(self) -> int:
        """The number of elements."""
        return self._size

    def find(self, value: object) -> int | None:
        """Return the number of the element that `value` equals; None if it is not an element."""
        if self.options is None:
            number = read_integer(value)
            return number if number is not None and 0 <= number < self._size else None
        try:
            option: Any = value[()] if isinstance(value, np.ndarray) else value
            return self._indices.get(option)
        except BaseException:  # an unhashable object, or one that raises when compared
            return None

    def nearest(self, value: object) -> int | None:
        """Return the number of the element that `value` equals or, as a number, is nearest to.

        None if it is neither. Of two elements at the same distance it is the even index, or the
        option that is listed first.
        """
        index = self.find(value)
        if index is not None:
            return index
        number = read_number(value)
        if number is None:
            return None
        if self.options is None:
            return min(max(round(number), 0), self._size - 1)
        return _nearest_option(number, self.options)

    def index(self, value: object) -> int:
        """Return the number of the nearest element, 0 for a value that denotes nothing."""
        return self.nearest(value) or 0

    def element(self, index: int) -> Option:
        """Return the option with the number `index`, or without options the index itself."""
        index = checked_index(index, self._size)
        return index if self.options is None else self.options[index]

    def project(self, value: object) -> Option:
        """Return the nearest element, element 0 for a value that denotes nothing."""
        return self.element(self.index(value))

    def denotes(self, value: object) -> bool:
        """Tell whether `value` is an element, or a number that has a nearest element."""
        return self.nearest(value) is not None

    def contains(self, value: object) -> bool:
        """Tell whether `value` is an element."""
        return self.find(value) is not None

    def describe(self) -> dict[str, Any]:
        """Return the size, or the options.

        >>> Finite(["a", 2, (True, None)]).describe()
        {'kind': 'finite', 'of': ['a', 2, ['tuple', ['bool', 1], ['none']]]}
        """
        return {"kind": "finite", "of": self.described_options()}

    def described_options(self) -> int | list[Any]:
        """Return the size, or the options as integers, strings and tagged lists."""
        return self._size if self.options is None else [plain_option(item) for item in self.options]

    def __repr__(self) -> str:
        if self.options is None:
            return f"Finite({number_text(self._size)})"
        shown = ", ".join(map(repr, self.options[:5]))
        return f"Finite([{shown}{', ...' if self._size > 5 else ''}])"


def checked_index(index: int, size: int) -> int:
    """Return `index` as an int, refusing an index outside 0..size-1."""
    if as_count(index, "index") >= size:
        raise ParameterError(
            "index", index, expected=f"an index below {number_text(size)}", remedy="count from 0"
        )
    return int(index)


def _checked_options(options: Iterable[Option]) -> tuple[Option, ...]:
    """Return a list of options as a tuple, refusing an empty list, duplicates and other types."""
    if not is_list(options):
        raise ParameterError(
            "options",
            options,
            expected="a size, or a list of options in a fixed order",
            remedy="pass Finite(16) or Finite(['a', 'b'])",
        )
    checked = tuple(checked_option(option) for option in options)
    if not checked:
        raise ParameterError("options", options, expected="at least one", remedy="list the options")
    if len(set(checked)) < len(checked):
        raise ParameterError(
            "options",
            options,
            expected="distinct options (1, 1.0 and True are equal)",
            remedy="remove the duplicates",
        )
    return checked


def _nearest_option(number: int | Fraction, options: tuple[Option, ...]) -> int | None:
    """Return the place of the nearest finite option, if all options are numbers."""
    if not all(type(option) in (int, float) for option in options):
        return None
    exact = [(place, read_number(option)) for place, option in enumerate(options)]
    distances = [(abs(option - number), place) for place, option in exact if option is not None]
    return min(distances)[1] if distances else None


def checked_option(option: Any) -> Option:
    """Return an option as a plain Python value, refusing values that a certificate cannot hold."""
    if isinstance(option, np.generic):
        option = option.item()
    if type(option) is tuple:
        return tuple(checked_option(part) for part in option)
    if type(option) not in (str, int, float, bool, type(None)) or option != option:
        raise ParameterError(
            "option",
            option,
            expected="a string, a number, a boolean, None, or a tuple of these",
            remedy="publish the position instead: Finite(len(options))",
        )
    return option  # type: ignore[no-any-return]


def plain_option(option: Option) -> int | str | list[Any]:
    """Return an option in a form that shows its type in JSON and in a proof step."""
    if isinstance(option, bool):
        return ["bool", int(option)]
    if isinstance(option, float):
        return ["float", option.hex() if math.isfinite(option) else str(option)]
    if option is None:
        return ["none"]
    if isinstance(option, tuple):
        return ["tuple", *map(plain_option, option)]
    return option


# -- Numbers of subsets in the combinatorial number system, exactly and without enumeration -------
# The subset c_1 < ... < c_k has number Σ_i C(c_i, i): a bijection onto 0..C(d, k)-1 in which {0,
# ..., k-1} is number 0. Multisets are subsets by stars and bars.

_NEWTON_STEPS = 6
"""Newton usually ends in two; after this many the interval is halved, which cannot fail."""

_NEWTON_LIMIT = 1 << 200
"""Beyond it floats might overflow."""


def rank(subset: Sequence[int]) -> int:
    """Return the number of an increasing sequence of integers >= 0.

    >>> rank([0, 1, 2]), rank([0, 1, 3]), rank([2, 3, 4])
    (0, 1, 9)
    """
    return sum(math.comb(item, place) for place, item in enumerate(subset, 1))


def unrank(number: int, *, of: int, size: int) -> list[int]:
    """Return the increasing sequence below `of` of length `size` with this number.

    >>> unrank(9, of=5, size=3)
    [2, 3, 4]
    """
    items = []
    limit = of
    for place in range(size, 0, -1):
        limit, value = _largest(number, place, limit)
        items.append(limit)
        number -= value
    return items[::-1]


def _largest(number: int, place: int, limit: int) -> tuple[int, int]:
    """Return the largest c below `limit` with C(c, place) <= number, and that binomial.

    C(limit, place) must exceed `number`. Floats only propose the next c to try.
    """
    low, high = place - 1, limit  # C(low) = 0 <= number < C(high)
    guess = _first_guess(number, place)
    steps = 0
    while high - low > 1:
        middle = min(max(guess, low + 1), high - 1)
        value = math.comb(middle, place)
        if value <= number:
            if value * (middle + 1) > number * (middle + 1 - place):  # C(middle + 1) > number
                return middle, value
            low = middle
        else:
            high = middle
        steps += 1
        if steps < _NEWTON_STEPS and number > 0 and limit < _NEWTON_LIMIT:
            slope = -math.log1p(-place / (middle + 0.5))  # of ln C at middle
            guess = middle + round((math.log(number) - math.log(value)) / slope)
        else:
            guess = (low + high) // 2
    return low, math.comb(low, place)


def _first_guess(number: int, place: int) -> int:
    """Solve (c - (k-1)/2)^k / k! = number in floats."""
    log = (math.log(number) + math.lgamma(place + 1)) / place if number else 0.0
    return int(math.exp(min(log, 700.0))) + (place - 1) // 2


# -- Multisets of a given size over a universe: synthetic data sets (theory B1, A10) --------------


@trusted_space
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
        The number of items, or a list of them; public.
    size : int
        The number of items in a sample; public, kept as `chosen`.

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
        """Return the sorted numbers of the first `chosen` items, 0 for missing ones."""
        numbers = [self.universe.index(item) for item in read_items(value, self.chosen)]
        return [0] * (self.chosen - len(numbers)) + sorted(numbers)

    def project(self, value: object) -> tuple[Option, ...]:
        """Return the first `chosen` items of `value` in the order of the universe.

        Missing items, and items outside the universe, count as the universe's first item.
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
        """Return the multiset with the number `index` (0..size-1)."""
        stars = unrank(checked_index(index, self.size), of=self._places, size=self.chosen)
        return tuple(self.universe.element(star - place) for place, star in enumerate(stars))

    def describe(self) -> dict[str, Any]:
        """Return the universe (its size, or its items) and `chosen`.

        >>> Multiset(2**40, 3).describe()
        {'kind': 'multiset', 'universe': 1099511627776, 'chosen': 3}
        """
        universe = self.universe.described_options()
        return {"kind": "multiset", "universe": universe, "chosen": self.chosen}

    def __repr__(self) -> str:
        universe = self.universe
        shown = repr(universe) if universe.options else number_text(universe.size)
        return f"Multiset({shown}, size={number_text(self.chosen)})"


# -- All subsets of a given size of 0..of-1: selected features, chosen items (theory B1) ----------


@trusted_space
@final
@dataclass(frozen=True, slots=True, init=False, repr=False)
class Subsets(FiniteSpace):
    """The subsets of 0..of-1 with `size` items, as increasing tuples: selected features or items.

    The attribute `size` is, as in every finite space, the number of *elements* C(of, chosen).
    Elements are numbered by the combinatorial number system; number 0 is (0, 1, ..., chosen-1).

    Parameters
    ----------
    of : int
        The number of items; public.
    size : int
        The number of items in a subset; public, kept as `chosen`.

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
        items: set[int] = set()
        for item in read_items(value, self.of):
            number = read_integer(item)
            if number is not None and 0 <= number < self.of:
                items.add(number)
                if len(items) == self.chosen:
                    break
        others = (index for index in range(self.of) if index not in items)
        return tuple(sorted([*items, *itertools.islice(others, self.chosen - len(items))]))

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
        """Return the subset with the number `index` (0..size-1)."""
        number = checked_index(index, self.size)
        return tuple(unrank(number, of=self.of, size=self.chosen))

    def describe(self) -> dict[str, Any]:
        """Return `of` and `chosen`.

        >>> Subsets(of=9, size=2).describe()
        {'kind': 'subsets', 'of': 9, 'chosen': 2}
        """
        return {"kind": "subsets", "of": self.of, "chosen": self.chosen}

    def __repr__(self) -> str:
        return f"Subsets(of={number_text(self.of)}, size={number_text(self.chosen)})"


# -- A finite space with an extra element, such as "none", which a failed program publishes (C8) --


@trusted_space
@final
@dataclass(frozen=True, slots=True, init=False, repr=False)
class WithExtra(FiniteSpace):
    """The elements of a finite space, followed by an extra element.

    Values are read as the space reads them; only the extra element itself denotes the extra one.

    **Public**: the space and the extra element.

    >>> space = WithExtra(Finite(16), "none")
    >>> space.size, space.project(7.6), space.project("none"), space.denotes("else")
    (17, 8, 'none', False)
    """

    base: FiniteSpace
    extra: Option
    _extras: Finite = field(compare=False)

    def __init__(self, base: FiniteSpace, extra: Option) -> None:
        option = checked_option(extra)
        if not isinstance(base, FiniteSpace) or not is_known(base) or base.contains(option):
            raise ParameterError(
                "extra",
                extra,
                expected="an option that is not an element of the finite space",
                remedy="choose another name for the extra element",
            )
        object.__setattr__(self, "base", base)
        object.__setattr__(self, "extra", option)
        object.__setattr__(self, "_extras", Finite([option]))

    @property
    def size(self) -> int:
        """The number of elements, one more than that of the space."""
        return self.base.size + 1

    def _is_extra(self, value: object) -> bool:
        return self._extras.find(value) is not None

    def index(self, value: object) -> int:
        """Return the number of ``project(value)``; the extra element is the last one."""
        return self.base.size if self._is_extra(value) else self.base.index(value)

    def element(self, index: int) -> Any:
        """Return the element with the number `index` (0..size-1)."""
        number = checked_index(index, self.size)
        return self.extra if number == self.base.size else self.base.element(number)

    def project(self, value: object) -> Any:
        """Return the extra element if `value` equals it, else the space's projection."""
        return self.extra if self._is_extra(value) else self.base.project(value)

    def denotes(self, value: object) -> bool:
        """Tell whether `value` is the extra element, or denotes one of the space."""
        return self._is_extra(value) or self.base.denotes(value)

    def contains(self, value: object) -> bool:
        """Tell whether `value` is the extra element, or one of the space."""
        return self._is_extra(value) or self.base.contains(value)

    def describe(self) -> dict[str, Any]:
        """Return the space as a list of names and values, and the extra element.

        >>> WithExtra(Finite(3), None).describe()
        {'kind': 'with-extra', 'of': [['kind', 'finite'], ['of', 3]], 'extra': ['none']}
        """
        described = [list(pair) for pair in self.base.describe().items()]
        return {"kind": "with-extra", "of": described, "extra": plain_option(self.extra)}

    def __repr__(self) -> str:
        return f"{self.base!r} or {self.extra!r}"
