"""Dates: a cell is read by itself to a day, and days are counted by periods (months, weeks, ...).

A text is YYYY-MM-DD, or follows a declared format; what comes after a `T` or a space is ignored. A
binary date, or a timestamp in UTC, is its day. Only plain types are read, as in `cells`.
"""

from __future__ import annotations

import datetime
import re
import sys
import zoneinfo
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias, final

import numpy as np
import numpy.typing as npt

from zerodelta.data.arrow_cells import read_column
from zerodelta.data.cells import category as category_of
from zerodelta.data.cells import read_all
from zerodelta.data.kind import Coded
from zerodelta.errors import did_you_mean, is_name, require
from zerodelta.exact.arrays import Array

Days: TypeAlias = npt.NDArray[np.int64]

NO_DAY = np.iinfo(np.int64).min
"""What a missing cell is among days since 1970-01-01 (as in NumPy)."""

PERIODS = ("day", "week", "month", "quarter", "year")

_EPOCH = datetime.date(1970, 1, 1).toordinal()
_DIRECTIVES = {"Y": "(?P<Y>[0-9]{4})", "y": "(?P<y>[0-9]{2})"}
_DIRECTIVES |= {"m": "(?P<m>[0-9]{%s2})", "d": "(?P<d>[0-9]{%s2})"}
_COARSE = {"Y": 10**5, "M": 10**6, "W": 10**6}
"""Beyond so many of these NumPy's conversion to days may wrap around."""
_ZONES = (datetime.timezone, zoneinfo.ZoneInfo)


def as_pattern(form: str | None) -> re.Pattern[str]:
    """Return the texts that a declared format allows: %Y or %y, %m, %d, and other characters.

    %m and %d have one digit or two, and always two beside another directive.

    >>> bool(as_pattern("%d.%m.%Y").fullmatch("1.12.2024")), bool(as_pattern(None).fullmatch("1"))
    (True, False)
    """
    given = "%Y-%m-%d" if form is None else form
    parts = re.findall(r"%.|[^%]", given, re.DOTALL) if isinstance(given, str) else []
    named = sorted(part[1] for part in parts if part[0] == "%" and part != "%%")
    require(
        named in (["Y", "d", "m"], ["d", "m", "y"]) and sum(map(len, parts)) == len(given),
        "format",
        form,
        expected="%d, %m and %Y (or %y) once each, and other characters between them",
        remedy='pass format="%d.%m.%Y"',
    )
    pattern, strict = "", form is None
    for before, part, after in zip(["", *parts], parts, [*parts[1:], ""], strict=False):
        if part[0] != "%" or part == "%%":
            pattern += re.escape(part[0])
            continue
        beside = any(p[:1] == "%" and p != "%%" for p in (before, after))
        found = _DIRECTIVES[part[1]]
        pattern += found.replace("%s", "" if strict or beside else "1,")
    return re.compile(f" *{pattern}(?:[T ].*)?", re.DOTALL)


def day(cell: Any, pattern: re.Pattern[str]) -> int:
    """Return the day of a cell, in days since 1970-01-01; `NO_DAY` if it is missing.

    >>> plain = as_pattern(None)
    >>> [day(cell, plain) for cell in ("1970-01-02", "1970-01-03T23:59", datetime.date(1970, 1, 4))]
    [1, 2, 3]
    >>> {day(cell, plain) for cell in ("1970-02-30", "1/2/1970", "", 5, None)} == {NO_DAY}
    True
    """
    kind = type(cell)
    if kind is bytes or kind is np.bytes_:
        try:
            return _text_day(bytes(cell).decode(), pattern)
        except UnicodeDecodeError:
            return NO_DAY
    if kind is str or kind is np.str_:
        return _text_day(str(cell), pattern)
    if kind is datetime.date:
        return int(cell.toordinal()) - _EPOCH
    if kind is datetime.datetime:
        return _datetime_day(cell)
    if kind is np.datetime64:
        return int(days(np.array([cell]), pattern)[0])
    pandas = sys.modules.get("pandas")
    if pandas is not None and kind is getattr(pandas, "Timestamp", None):
        return int(days(np.array([cell.to_datetime64()]), pattern)[0])  # in UTC
    whole = category_of(cell)  # 20240131, for a format without separators
    return _text_day(str(whole), pattern) if type(whole) is int else NO_DAY


def days(cells: Array, pattern: re.Pattern[str]) -> Days:
    """Return what `day` makes of each cell of an array."""
    if cells.dtype.kind == "M":
        return _binary_days(cells)
    if cells.dtype.kind in "mV":
        return np.full(len(cells), NO_DAY)
    if cells.dtype.kind in "biufc":
        distinct, places = np.unique(cells, return_inverse=True)
        found = [day(cell, pattern) for cell in distinct]
        return np.array(found, dtype=np.int64)[places]
    return read_all(cells, lambda cell: day(cell, pattern))


def _text_day(text: str, pattern: re.Pattern[str]) -> int:
    found = pattern.fullmatch(text)
    if found is None:
        return NO_DAY
    parts = {name: int(digits) for name, digits in found.groupdict().items()}
    # two digits as POSIX has them
    year = parts["Y"] if "Y" in parts else parts["y"] + (1900 if parts["y"] >= 69 else 2000)
    try:
        return datetime.date(year, parts["m"], parts["d"]).toordinal() - _EPOCH
    except ValueError:
        return NO_DAY


def _datetime_day(cell: datetime.datetime) -> int:
    zone = cell.tzinfo
    if zone is None:
        return cell.toordinal() - _EPOCH
    if not any(type(zone) is known for known in _ZONES):
        return NO_DAY  # its offset would come from code that we do not know
    try:
        return cell.astimezone(datetime.timezone.utc).toordinal() - _EPOCH
    except (OverflowError, ValueError):
        return NO_DAY


def _binary_days(cells: Array) -> Days:
    unit, step = np.datetime_data(cells.dtype)
    native = cells.astype(cells.dtype.newbyteorder("="))
    if unit == "generic":
        return np.full(len(cells), NO_DAY)
    most = _COARSE.get(unit, np.iinfo(np.int64).max) // step
    raw = native.view(np.int64)
    native[(raw > most) | (raw < -most)] = np.datetime64("NaT")
    return native.astype("datetime64[D]").view(np.int64)


# -- periods ----------------------------------------------------------------------------------


def period(when: Days, by: str) -> Days:
    """Return the number of the day, week (from Monday), month, quarter or year of each day.

    >>> period(np.array([0, 31]), "month"), period(np.array([3, 4]), "week")
    (array([0, 1]), array([0, 1]))
    """
    if by == "day":
        return when
    if by == "week":
        return (when + 3) // 7  # 1970-01-01 was a Thursday
    unit = "Y" if by == "year" else "M"
    found = when.view("datetime64[D]").astype(f"datetime64[{unit}]").view(np.int64)
    return found // 3 if by == "quarter" else found


def period_label(number: int, by: str) -> str:
    """Return a period as a text that sorts by time.

    >>> [period_label(0, by) for by in PERIODS]
    ['1970-01-01', '1970-W01', '1970-01', '1970-Q1', '1970']
    """
    if by == "year":
        return f"{1970 + number:04}"
    if by in ("month", "quarter"):
        year, part = divmod(number, 12 if by == "month" else 4)
        return (
            f"{1970 + year:04}-{part + 1:02}" if by == "month" else f"{1970 + year:04}-Q{part + 1}"
        )
    if by == "day":
        return datetime.date.fromordinal(number + _EPOCH).isoformat()
    year, week, _ = datetime.date.fromordinal(number * 7 + _EPOCH).isocalendar()
    return f"{year:04}-W{week:02}"


@final
@dataclass(frozen=True, kw_only=True)
class Date(Coded):
    """Days, counted by periods; made by `zd.date`. Codes: 0 for the first period, then 1, 2, ..."""

    first: datetime.date
    last: datetime.date
    by: str = "month"
    format: str | None = None

    def __post_init__(self) -> None:
        given = [str(self.first), str(self.last)]
        require(self.first <= self.last, "dates", given, "first <= last", "pass the earlier first")
        remedy = did_you_mean(self.by, PERIODS, 'pass by="month"')
        require(is_name(self.by, PERIODS), "by", self.by, f"one of {', '.join(PERIODS)}", remedy)
        as_pattern(self.format)

    @cached_property
    def _ends(self) -> Array:
        ends = [day(end, as_pattern(None)) for end in (self.first, self.last)]
        return np.array(ends, dtype=np.int64)

    @cached_property
    def _periods(self) -> tuple[int, int]:
        first, last = period(self._ends, self.by).tolist()
        return first, last

    @property
    def size(self) -> int:
        """The number of periods from the first day to the last."""
        first, last = self._periods
        return last - first + 1

    @property
    def labels(self) -> tuple[Any, ...]:
        """The periods as texts, such as "2024-03"."""
        first, last = self._periods
        return tuple(period_label(number, self.by) for number in range(first, last + 1))

    @property
    def declaration(self) -> dict[str, Any]:
        """{date = [2020-01-01, 2024-12-31], by = "month"} and what is not the default."""
        found: dict[str, Any] = {"date": [self.first, self.last], "by": self.by}
        return found | ({} if self.format is None else {"format": self.format})

    def read(self, column: Any) -> Array:
        """Return the code of the period of each cell; NaN if missing, or before first or after."""
        pattern = as_pattern(self.format)

        def codes(cells: Array) -> Array:
            when = days(cells, pattern)
            inside = (when != NO_DAY) & (when >= self._ends[0]) & (when <= self._ends[1])
            numbers = period(np.where(inside, when, self._ends[0]), self.by) - self._periods[0]
            return np.where(inside, numbers, np.nan)

        return read_column(column, codes)
