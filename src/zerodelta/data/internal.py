"""Internal answers: numbers for the program, `<internal>` for people. A seat belt, not a vault.

They compute like NumPy arrays (a single number is an array without axes), and whatever would write
them somewhere writes `<internal>`. Python cannot stop a program that insists: what leaves a study
besides the published value is outside its guarantee (theory C8, A14).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, final

import numpy as np
import numpy.typing as npt

INTERNAL = "<internal>"

_WRITERS = frozenset(
    {
        np.array2string,
        np.array_repr,
        np.array_str,
        np.save,
        np.savetxt,
        np.savez,
        np.savez_compressed,
    }
)

_METHODS = (
    *("all", "any", "argmax", "argmin", "max", "mean", "min", "prod", "std", "sum", "var"),
    *("dot", "item", "nonzero", "round", "searchsorted", "take", "tolist", "trace"),
)
"""Methods that would return plain numbers."""


@final
class Internal(np.ndarray[Any, np.dtype[Any]]):
    """An array or a number that shows as `<internal>`, and so does whatever is computed from it.

    >>> answer = as_internal(np.array([3.0, 4.0]))
    >>> answer, f"{answer[0] + 1:.2f}", str(np.sqrt(answer @ answer))
    (<internal>, '<internal>', '<internal>')
    >>> bool(answer[0] < answer[1])
    True
    """

    def __repr__(self) -> str:
        return INTERNAL

    def __str__(self) -> str:
        return INTERNAL

    def __format__(self, specification: str) -> str:
        return INTERNAL

    def _repr_html_(self) -> str:
        return INTERNAL

    def __reduce_ex__(self, protocol: Any) -> Any:
        return str, (INTERNAL,)

    def dump(self, file: Any) -> None:
        """Write nothing: an internal answer does not leave its program."""

    def dumps(self) -> bytes:
        """Return `<internal>`."""
        return INTERNAL.encode()

    def tobytes(self, *args: Any, **options: Any) -> bytes:
        """Return `<internal>`."""
        return INTERNAL.encode()

    @property
    def base(self) -> None:
        """None: the plain array below stays out of sight."""
        return None

    @property
    def flat(self) -> Any:
        """The entries one after the other, internal too."""
        return self.reshape(-1)

    def tofile(self, *args: Any, **options: Any) -> None:
        """Write nothing: an internal answer does not leave its program."""

    def __round__(self, digits: int = 0) -> Any:
        return np.round(self, digits)

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, key: Any) -> Any:
        return as_internal(super().__getitem__(key))

    def __array_wrap__(
        self, array: Any, context: Any = None, return_scalar: bool = False, /
    ) -> Any:
        return as_internal(array)

    def __array_ufunc__(
        self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **options: Any
    ) -> Any:
        """Compute as NumPy does; also what is written into a plain array comes back internal."""
        if out is not None:
            options["out"] = tuple(map(_below, out))
        options = {name: _below(option) for name, option in options.items()}
        return as_internal(getattr(ufunc, method)(*map(_below, inputs), **options))

    def __array_function__(
        self, function: Callable[..., Any], types: Any, args: Any, kwargs: Any
    ) -> Any:
        if function in _WRITERS:
            return INTERNAL
        return as_internal(super().__array_function__(function, types, args, kwargs))

    def _reduced(self, name: str, *args: Any, **options: Any) -> Any:
        return as_internal(getattr(np.ndarray, name)(self.view(np.ndarray), *args, **options))


def _reduction(name: str) -> Callable[..., Any]:
    def method(self: Internal, *args: Any, **options: Any) -> Any:
        return self._reduced(name, *args, **options)

    method.__name__, method.__doc__ = (
        name,
        f"Return what `ndarray.{name}` does, as an internal answer.",
    )
    return method


for _name in _METHODS:
    setattr(Internal, _name, _reduction(_name))


def as_internal(value: Any) -> Any:
    """Return numbers and arrays as internal answers, also in tuples and lists; others unchanged."""
    if isinstance(value, (tuple, list)):
        return _rebuilt(value, [as_internal(part) for part in value])
    numbers = isinstance(value, (np.ndarray, np.generic, int, float))
    return internal_array(value) if numbers else value


def internal_array(value: npt.ArrayLike) -> Internal:
    """Return an array or a number as an internal answer."""
    return np.asarray(value).view(Internal)


def reveal(value: Any) -> Any:
    """Return an internal number or array as a plain one, and the items of a tuple or list too.

    >>> reveal(as_internal(2)), reveal([as_internal(0.5), "x"])
    (2, [0.5, 'x'])
    """
    if type(value) in (tuple, list):
        return type(value)(map(_plain, value))
    return _plain(value)


def is_unusable(share: Any) -> bool:
    """Tell whether a share is an internal answer and none at all: raising would show something."""
    number = reveal(share)
    usable = type(number) in (int, float) and 0 < number <= 1
    return type(share) is Internal and not usable


def _plain(value: Any) -> Any:
    if type(value) is Internal:  # isinstance would ask the value itself
        array = value.view(np.ndarray)
        return array if array.ndim else array.item()
    return value


def _below(value: Any) -> Any:
    """Return the plain array below an internal answer; anything else as it is."""
    return value.view(np.ndarray) if isinstance(value, Internal) else value


def _rebuilt(value: Any, parts: list[Any]) -> Any:
    """Return the same kind of tuple or list; `np.linalg` returns named tuples."""
    return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
