"""What counts as one column of items; anything else is refused by its type, before it is read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from typing import Any

import numpy as np

from zerodelta.errors import ParameterError

__all__ = ["as_items"]


def as_items(items: Any) -> Any:
    """Return the items, unless they are a text, a mapping, a set or a single number.

    What can be read only once, such as a generator, is listed.

    >>> as_items("abc")
    Traceback (most recent call last):
    ...
    zerodelta.errors.ParameterError: items = <class 'str'>: expected one column of items; pass a \
list, an array or a series with one item for each row.
    """
    single = isinstance(items, np.ndarray) and items.ndim == 0
    if single or isinstance(items, (str, bytes, bytearray, Mapping, Set)):
        raise ParameterError(
            "items",
            type(items),
            expected="one column of items",
            remedy="pass a list, an array or a series with one item for each row",
        )
    return list(items) if isinstance(items, Iterator) else items
