"""What was asked, as JSON can write it: public parameters and declared data, never a row.

Records tell it, and a ledger recognizes by it what was asked before.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field, fields, is_dataclass
from datetime import date
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from importlib import import_module
from typing import Any

import numpy as np

from zerodelta.data.dataset import Dataset
from zerodelta.data.source import Source
from zerodelta.errors import printable
from zerodelta.exact.bits import SystemBits
from zerodelta.privacy.certificate import Certificate
from zerodelta.privacy.parameters import decimal_meant
from zerodelta.privacy.record import Record
from zerodelta.privacy.step import digest_of
from zerodelta.spaces import Space
from zerodelta.value import value

ROWS = frozenset({"rows", "data", "items", "scores", "value", "X", "y", "example"})
"""Parameters that rows come in, or what was computed from them: nothing of them is written, not
even their type, unless they are a data set, which says what is public of it."""

_MOST_CELLS = 10_000


@value
class Asked:
    """A task, its public parameters, and the data sets that it is about."""

    task: str
    parameters: dict[str, Any] = field(default_factory=dict)
    data: list[dict[str, Any]] = field(default_factory=list)
    columns: str = ""
    """The names of the columns that are asked about, for people."""
    complete: bool = False
    """Whether this is all that was asked, so that the same can be recognized."""

    @property
    def text(self) -> str:
        """What was asked in a few words."""
        return f"{self.task}({self.columns})"

    @property
    def question(self) -> str | None:
        """The hash of what was asked; None where the same cannot be recognized."""
        whole = [self.task, self.parameters, self.data]
        return digest_of(whole) if self.complete and self.data else None

    def record(self, certificate: Certificate) -> Record:
        """Return the record of a release; when it was paid for is not known yet."""
        return Record(
            id=SystemBits().read(16).hex(),
            task=self.task,
            parameters=self.parameters,
            data=self.data,
            claim=certificate.body()["claim"],
            public=list(certificate.public),
            to_ask=[],
            version=import_module("zerodelta").__version__,
            time="",
            entries=[],
        )


def asked_of(task: str, given: Mapping[str, Any], *, repeats: bool) -> Asked:
    """Return what was asked with these arguments, unless it never `repeats`: then there is more."""
    parameters: dict[str, Any] = {}
    data: list[dict[str, Any]] = []
    complete = repeats
    for name, entry in given.items():
        if name == "bits" or entry is None:
            continue
        if type(entry) is Dataset:
            data.append({"as": name, **_plain(entry.described)})
        elif name in ROWS:
            complete = False  # of an array nobody knows whether it is the same one
        else:
            try:
                parameters[name] = _plain(entry, name)
            except _Unwritten:
                parameters[name] = {"not written": type(entry).__name__}
                complete = False
    return Asked(
        task=task,
        parameters=parameters,
        data=data,
        columns=_columns(task, given),
        complete=complete,
    )


class _Unwritten(Exception):  # noqa: N818
    """Something that was asked cannot be written down, such as a function."""


def _plain(value: Any, name: str = "") -> Any:
    """Return a public argument as JSON can write it; equal ones alike."""
    if name == "epsilon":
        return str(decimal_meant(value, name))
    if isinstance(value, np.number):
        value = value.item()
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return int(value) if value.bit_length() <= 1 << 12 else hex(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else repr(float(value))
    if isinstance(value, (Fraction, Decimal, date)):
        return str(value)
    if isinstance(value, range):
        return ["range", value.start, value.stop, value.step]
    if isinstance(value, Space):
        return _plain(value.describe())  # its repr names a few options only
    if isinstance(value, Enum):
        return [type(value).__name__, value.name]
    if isinstance(value, np.ndarray) and value.size <= _MOST_CELLS and value.dtype != object:
        return [list(value.shape), [_plain(each) for each in value.ravel().tolist()]]
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        if all(type(key) is str for key in value):
            return {key: _plain(each) for key, each in value.items()}
        return [[_plain(key), _plain(each)] for key, each in value.items()]
    ours = is_dataclass(value) and type(value).__module__.startswith("zerodelta.")
    if ours and not isinstance(value, (Source, type)):
        parts = {each.name: _plain(getattr(value, each.name)) for each in fields(value)}
        return [type(value).__name__, parts]
    raise _Unwritten


_NAMING = ("columns", "of", "by", "target")
"""Parameters that name columns."""


def _columns(task: str, given: Mapping[str, Any]) -> str:
    """Return the names of the columns that are asked about, as far as these were said."""
    said = [name for each in _NAMING for name in _texts(given.get(each))]
    sets = [value for value in given.values() if type(value) is Dataset]
    names = [name for name in said if not sets or any(name in each.declared for each in sets)]
    for each in sets:
        few = len(each.columns) < len(each.declared)
        if few or not (names or task == "count"):  # which is of rows, not of columns
            names += each.columns
    shown = ", ".join(dict.fromkeys(name for name in names if name))
    plain = printable(shown)
    return plain if len(plain) <= 100 else plain[:97] + "..."


def _texts(value: Any) -> list[str]:
    if isinstance(value, (str, Mapping)):
        return [value] if isinstance(value, str) else [n for n in value if isinstance(n, str)]
    return [n for n in value if isinstance(n, str)] if isinstance(value, (list, tuple)) else []
