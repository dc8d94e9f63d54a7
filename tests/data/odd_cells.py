"""Cells that may stand in any column, and every container that may hold one."""

from __future__ import annotations

import datetime
import math
from collections import namedtuple
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

SIGNALING = np.array([0x7FF0000000000001], dtype=np.uint64).view(np.float64)


class Interrupting:
    """A cell whose every method raises what a person at the keyboard would."""

    def __float__(self) -> float:
        raise KeyboardInterrupt("a secret")

    __eq__ = __hash__ = __len__ = __iter__ = __array__ = __bool__ = __index__ = __float__  # type: ignore[assignment]

    def __repr__(self) -> str:  # names of tests are the same in every process
        return "Interrupting()"


class HostileType(type):
    def __hash__(cls) -> int:
        raise RuntimeError("a secret")

    def __eq__(cls, other: object) -> bool:
        raise RuntimeError("a secret")


class Nameless(metaclass=HostileType):
    pass


class Subtext(str):
    def __eq__(self, other: object) -> bool:
        raise RuntimeError("a secret")

    __hash__ = None  # type: ignore[assignment]


Pair = namedtuple("Pair", "first second")

ODD: dict[str, Any] = {
    "None": None,
    "nan": math.nan,
    "signaling nan": SIGNALING[0],
    "short signaling nan": np.array([0x7F800001], dtype=np.uint32).view(np.float32)[0],
    "NA": pd.NA,
    "NaT": pd.NaT,
    "inf": math.inf,
    "-inf": -math.inf,
    "short inf": np.float32(math.inf),
    "text inf": "inf",
    "text nan": "nan",
    "empty": "",
    "spaces": " 1 ",
    "underscore": "1_000",
    "hex": "0x10",
    "comma": "1,5",
    "full width": "１",
    "arabic": "٣",
    "line": "1\n",
    "large text": "1e400",
    "larger text": "-1e4000",
    "large": 10**400,
    "very large": -(10**5000),
    "long text": "9" * 5000,
    "minus zero": -0.0,
    "True": True,
    "TRUE": "TRUE",
    "yes": "yes",
    "bytes": b"1.5",
    "bad bytes": b"\xff",
    "list": [1],
    "dict": {},
    "tuple": (1, 2),
    "pair": Pair(1, 2),
    "object": object(),
    "interrupting": Interrupting(),
    "nameless": Nameless(),
    "subtext": Subtext("1"),
    "decimal": Decimal("2.5"),
    "signaling decimal": Decimal("sNaN"),
    "large decimal": Decimal("1e4000"),
    "fraction": Fraction(1, 3),
    "large fraction": Fraction(10**400, 3),
    "long double": np.longdouble("1e4000"),
    "complex": 1 + 2j,
    "real complex": 2 + 0j,
    "date": datetime.date(2020, 1, 1),
    "datetime": datetime.datetime(2020, 1, 1),
    "timedelta": datetime.timedelta(1),
    "timestamp": pd.Timestamp("2020-01-01"),
    "datetime64": np.datetime64("2020-01-01"),
    "timedelta64": np.timedelta64(1, "s"),
    "array": np.ones((1, 1)),
    "word": "x",
}

Build = Callable[[list[Any]], Any]


def objects(cells: list[Any]) -> Any:
    return np.fromiter(cells, dtype=object, count=len(cells))


def masked(cells: list[Any]) -> Any:
    return np.ma.MaskedArray(np.array(cells), mask=[cell is None for cell in cells])


def masked_objects(cells: list[Any]) -> Any:
    return np.ma.MaskedArray(objects(cells), mask=[cell is None for cell in cells])


def polars_objects(cells: list[Any]) -> Any:
    return pl.Series("0", cells, dtype=pl.Object)


COLUMNS: dict[str, Build] = {
    "list": list,
    "tuple": tuple,
    "array": np.array,
    "object array": objects,
    "float64": lambda cells: np.array(cells, dtype=np.float64),
    "float32": lambda cells: np.array(cells, dtype=np.float32),
    "int64": lambda cells: np.array(cells, dtype=np.int64),
    "bool": lambda cells: np.array(cells, dtype=np.bool_),
    "texts": lambda cells: np.array(cells, dtype=np.str_),
    "bytes": lambda cells: np.array(cells, dtype=np.bytes_),
    "masked": masked,
    "masked objects": masked_objects,
    "pandas": pd.Series,
    "pandas object": lambda cells: pd.Series(cells, dtype=object),
    "pandas array": lambda cells: pd.array(objects(cells), dtype=object),
    "pandas index": lambda cells: pd.Index(objects(cells), dtype=object),
    "pandas Int64": lambda cells: pd.Series(cells, dtype="Int64"),
    "pandas float32": lambda cells: pd.Series(cells, dtype="float32"),
    "pandas Float32": lambda cells: pd.Series(cells, dtype="Float32"),
    "pandas boolean": lambda cells: pd.Series(cells, dtype="boolean"),
    "pandas categorical": lambda cells: pd.Series(pd.Categorical(cells)),
    "pandas arrow": lambda cells: pd.Series(cells, dtype="float64[pyarrow]"),
    "pandas frame": lambda cells: pd.DataFrame({"0": pd.Series(cells, dtype=object)}),
    "polars": lambda cells: pl.Series("0", cells),
    "polars object": polars_objects,
    "polars frame": lambda cells: pl.DataFrame({"0": cells}),
    "arrow": pa.array,
    "arrow chunks": lambda cells: pa.chunked_array([pa.array(cells)]),
    "arrow table": lambda cells: pa.table({"0": pa.array(cells)}),
    "arrow dictionary": lambda cells: pa.array(cells).dictionary_encode(),
}
TYPED = {"float64", "float32", "int64", "bool", "texts", "bytes", "pandas Int64", "pandas float32"}
TYPED |= {
    "pandas categorical",
    "pandas Float32",
    "pandas boolean",
    "pandas arrow",
    "polars",
    "polars frame",
}
TYPED |= {"arrow", "arrow chunks", "arrow table", "arrow dictionary", "array", "masked", "pandas"}
"""Containers that convert their cells: not all cells can be put into them, nor stay what they are.
"""


def held(build: Build, cells: list[Any]) -> Any:
    """Return the container of these cells, or None if the library refuses to make it."""
    try:
        return build(cells)
    except BaseException:  # of the library or of a cell: it is no container of ours
        return None


def kept(container: Any, place: int, cell: Any) -> bool:
    """Tell whether the odd cell is still there as what it was (libraries convert some)."""
    try:
        if hasattr(container, "to_pylist"):
            found = container.to_pylist()[place]
        elif hasattr(container, "tolist"):
            found = container.tolist()[place]
        elif hasattr(container, "to_list"):
            found = container.to_list()[place]
        else:
            found = container[place]
        return found is cell or (type(found) is type(cell) and bool(found == cell))
    except BaseException:
        return False
