"""Declare the kind of a column: `zd.number`, `zd.category`, `zd.date` and the others.

Declarations are public and never computed from the rows.
"""

from __future__ import annotations

import datetime
import re
import sys
import zoneinfo
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias, final

import numpy as np
import numpy.typing as npt

from zerodelta.data.arrow_cells import read_column
from zerodelta.data.cells import category as category_key
from zerodelta.data.cells import category as category_of
from zerodelta.data.cells import is_readable, read_all
from zerodelta.data.kinds import Boolean, Category, Coded, Number, Text
from zerodelta.errors import ParameterError, did_you_mean, is_list, is_name, require
from zerodelta.exact.arrays import Array
from zerodelta.exact.rational import Rational, as_count, as_rational
from zerodelta.value import published

# -- Dates ----------------------------------------------------------------------------------------
# A cell is read by itself to a day, and days are counted by periods (months, weeks, ...).
#
# A text is YYYY-MM-DD, or follows a declared format; the text after a `T` or a space is ignored. A
# binary date, or a timestamp in UTC, is read to its day. Only plain types are read, as in `cells`.

Days: TypeAlias = npt.NDArray[np.int64]

NO_DAY = np.iinfo(np.int64).min
"""The integer for a missing cell among days since 1970-01-01 (as in NumPy)."""

PERIODS = ("day", "week", "month", "quarter", "year")

_EPOCH = datetime.date(1970, 1, 1).toordinal()
_DIRECTIVES = {"Y": "(?P<Y>[0-9]{4})", "y": "(?P<y>[0-9]{2})"}
_DIRECTIVES |= {"m": "(?P<m>[0-9]{%s2})", "d": "(?P<d>[0-9]{%s2})"}
_COARSE = {"Y": 10**5, "M": 10**6, "W": 10**6}
"""By unit of time, the largest number that NumPy converts to days without overflow."""
_ZONES = (datetime.timezone, zoneinfo.ZoneInfo)


def as_pattern(form: str | None) -> re.Pattern[str]:
    """Return a pattern of the texts in a declared format: %Y or %y, %m, %d, other characters.

    %m and %d match one or two digits; next to another directive exactly two.

    >>> bool(as_pattern("%d.%m.%Y").fullmatch("1.12.2024")), bool(as_pattern(None).fullmatch("1"))
    (True, False)
    """
    written = "%Y-%m-%d" if form is None else form
    parts = re.findall(r"%.|[^%]", written, re.DOTALL) if isinstance(written, str) else []
    named = sorted(part[1] for part in parts if part[0] == "%" and part != "%%")
    require(
        named in (["Y", "d", "m"], ["d", "m", "y"]) and sum(map(len, parts)) == len(written),
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
        adjacent = any(p[:1] == "%" and p != "%%" for p in (before, after))
        directive = _DIRECTIVES[part[1]]
        pattern += directive.replace("%s", "" if strict or adjacent else "1,")
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
    integer = category_of(cell)  # 20240131, for a format without separators
    return _text_day(str(integer), pattern) if type(integer) is int else NO_DAY


def days(cells: Array, pattern: re.Pattern[str]) -> Days:
    """Return the day number of each cell of an array, `NO_DAY` if it is no date."""
    if cells.dtype.kind == "M":
        return _binary_days(cells)
    if cells.dtype.kind in "mV":
        return np.full(len(cells), NO_DAY)
    if cells.dtype.kind in "biufc":
        distinct, places = np.unique(cells, return_inverse=True)
        distinct_days = [day(cell, pattern) for cell in distinct]
        return np.array(distinct_days, dtype=np.int64)[places]
    return read_all(cells, lambda cell: day(cell, pattern))


def _text_day(text: str, pattern: re.Pattern[str]) -> int:
    """Return the day of a text that matches the pattern; `NO_DAY` for other texts."""
    match = pattern.fullmatch(text)
    if match is None:
        return NO_DAY
    parts = {name: int(digits) for name, digits in match.groupdict().items()}
    # two digits as POSIX has them
    year = parts["Y"] if "Y" in parts else parts["y"] + (1900 if parts["y"] >= 69 else 2000)
    try:
        return datetime.date(year, parts["m"], parts["d"]).toordinal() - _EPOCH
    except ValueError:
        return NO_DAY


def _datetime_day(cell: datetime.datetime) -> int:
    """Return the day of a datetime in UTC; `NO_DAY` for an unknown kind of time zone."""
    zone = cell.tzinfo
    if zone is None:
        return cell.toordinal() - _EPOCH
    if not any(type(zone) is known for known in _ZONES):
        return NO_DAY  # its offset would come from foreign code
    try:
        return cell.astimezone(datetime.timezone.utc).toordinal() - _EPOCH
    except (OverflowError, ValueError):
        return NO_DAY


def _binary_days(cells: Array) -> Days:
    """Return the day number of each NumPy datetime, `NO_DAY` if beyond 64 bits."""
    unit, step = np.datetime_data(cells.dtype)
    native = cells.astype(cells.dtype.newbyteorder("="))
    if unit == "generic":
        return np.full(len(cells), NO_DAY)
    largest = _COARSE.get(unit, np.iinfo(np.int64).max) // step
    raw = native.view(np.int64)
    native[(raw > largest) | (raw < -largest)] = np.datetime64("NaT")
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
    numbers = when.view("datetime64[D]").astype(f"datetime64[{unit}]").view(np.int64)
    return numbers // 3 if by == "quarter" else numbers


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


@published
@final
@dataclass(frozen=True, kw_only=True)
class Date(Coded):
    """Dates counted by periods; made by `zd.date`. Codes: 0 for the first period, then 1, 2, …."""

    first: datetime.date
    last: datetime.date
    by: str = "month"
    format: str | None = None

    def __post_init__(self) -> None:
        ends = [str(self.first), str(self.last)]
        require(self.first <= self.last, "dates", ends, "first <= last", "pass the earlier first")
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
        fields: dict[str, Any] = {"date": [self.first, self.last], "by": self.by}
        return fields | ({} if self.format is None else {"format": self.format})

    def read(self, column: Any) -> Array:
        """Return the code of each cell's period; NaN if missing, or not from first to last."""
        pattern = as_pattern(self.format)

        def codes(cells: Array) -> Array:
            """Return the number of each date's period from the first; NaN outside the range."""
            when = days(cells, pattern)
            inside = (when != NO_DAY) & (when >= self._ends[0]) & (when <= self._ends[1])
            numbers = period(np.where(inside, when, self._ends[0]), self.by) - self._periods[0]
            return np.where(inside, numbers, np.nan)

        return read_column(column, codes)


def number(
    lower: Rational,
    upper: Rational,
    *,
    missing: Rational | None = "skip",
    integer: bool = False,
) -> Number:
    """Declare a column of numbers between public bounds.

    A cell is a number, or a text that spells one in ASCII digits ("1.5", " -2e3 "). Numbers beyond
    the bounds, infinities too, are clipped; other cells ("n/a", "1_000", NaN, null) are missing.

    Parameters
    ----------
    lower, upper : number
        Bounds chosen without looking at the rows, exactly as written: 120, "0.1", Fraction(1, 3).
    missing : {"skip", None} or number, default "skip"
        "skip" leaves missing cells out of sums and counts. None declares that no cell is missing,
        which needs less noise; a missing cell then counts as the middle of the bounds. A number
        takes the place of missing cells.
    integer : bool, default False
        Whether the numbers are whole; others are rounded. Quantiles are then whole too.

    Returns
    -------
    Number

    Examples
    --------
    >>> import numpy as np
    >>> age = number(0, 120)
    >>> age.read(np.array(["41", " 7.5", "n/a", None], dtype=object))
    array([41. ,  7.5,  nan,  nan])
    >>> print(age.bounds, number(0, 1, missing=None))
    (Fraction(0, 1), Fraction(120, 1)) number(0, 1, missing='none')
    """
    skips = is_name(missing, ["skip"])
    filled = missing if missing is None or skips else as_rational(missing, "missing")
    return Number(
        lower=as_rational(lower, "lower"),
        upper=as_rational(upper, "upper"),
        missing=filled,  # type: ignore[arg-type]
        integer=_flag(integer, "integer"),
    )


def category(
    options: Iterable[Any], *, other: bool = False, missing: bool = False, exact: bool = False
) -> Category:
    """Declare a column whose cells are one of several public options.

    Texts are compared exactly. A number, or a text that spells one, is compared as that number: 1,
    "1.0", "01" and True are the same option, and repeating an option is refused. Empty cells, nan
    and null are missing.

    Parameters
    ----------
    options : sequence of texts, numbers or booleans
        Chosen without looking at the rows; the categories of a frame's Categorical column were
        computed from them.
    other : bool, default False
        Whether to add a last option, "other", for all other cells. Without it they have no option.
    missing : bool, default False
        Whether to add an option, "missing", for missing cells. Without it they count as "other" if
        that was added, and otherwise have no option.
    exact : bool, default False
        Whether only texts are compared: "01" is then not "1". For zip codes and the like.

    Returns
    -------
    Category

    Examples
    --------
    >>> import numpy as np
    >>> city = category(["oslo", "rome"], other=True)
    >>> city.labels, city.read(np.array(["rome", "Rome", None], dtype=object))
    (('oslo', 'rome', 'other'), array([1., 2., 2.]))
    """
    remedy = 'pass a list of all options, as in zd.category(["f", "m"])'
    require(is_list(options), "options", options, "a list of texts, numbers or booleans", remedy)
    return Category(
        options=tuple(map(_option, options)),
        other=_flag(other, "other"),
        missing=_flag(missing, "missing"),
        exact=_flag(exact, "exact"),
    )


def boolean(*, missing: bool = False) -> Boolean:
    """Declare a column of yes and no.

    Cells are true, false, yes and no in any case, and numbers equal to 1 or 0; others are missing.

    Parameters
    ----------
    missing : bool, default False
        Whether to add an option, "missing", for missing cells. Without it they have no option.

    Returns
    -------
    Boolean

    Examples
    --------
    >>> import numpy as np
    >>> boolean().read(np.array(["Yes", "0", 1.0, "?"], dtype=object))
    array([ 1.,  0.,  1., nan])
    """
    return Boolean(missing=_flag(missing, "missing"))


def text(length: int, *, alphabet: str | None = None, exact: bool = False) -> Text:
    """Declare a column of texts, such as names or ids, whose options nobody can list.

    Cells are read like those of a category: 7, "7" and "07" are one text unless `exact`.

    Parameters
    ----------
    length : int
        The largest number of characters; longer texts are ignored.
    alphabet : str, optional
        The characters that may occur; a text with another one is ignored. Default: any.
    exact : bool, default False
        Whether a text that spells a number is compared as a text.

    Returns
    -------
    Text

    Examples
    --------
    >>> import numpy as np
    >>> text(5).read(np.array(["ada", "07", "charles", None], dtype=object))
    array(['ada', '7', None, None], dtype=object)
    """
    return Text(
        length=as_count(length, "length", minimum=1),
        alphabet=alphabet,
        exact=_flag(exact, "exact"),
    )


def date(
    first: datetime.date | str,
    last: datetime.date | str,
    *,
    by: str = "month",
    format: str | None = None,
) -> Date:
    """Declare a column of dates between two public days, counted by month or another period.

    A cell is a text YYYY-MM-DD (the rest after a `T` or a space is ignored) or a binary date or
    timestamp, in UTC. Days before `first` or after `last` are in no period.

    Parameters
    ----------
    first, last : datetime.date or str
        The first and the last day, chosen without looking at the rows.
    by : {"day", "week", "month", "quarter", "year"}, default "month"
        The period that dates are counted by; weeks begin on Monday.
    format : str, optional
        The format of texts, such as "%d.%m.%Y"; it is never guessed.

    Returns
    -------
    Date

    Examples
    --------
    >>> import numpy as np
    >>> joined = date("2023-11-01", "2024-02-29")
    >>> joined.labels
    ('2023-11', '2023-12', '2024-01', '2024-02')
    >>> joined.read(np.array(["2024-01-31", "31.1.2024"], dtype=object))
    array([ 2., nan])
    """
    return Date(first=_day(first, "first"), last=_day(last, "last"), by=by, format=format)


def _flag(value: Any, name: str) -> bool:
    require(isinstance(value, (bool, np.bool_)), name, value, "True or False", f"pass {name}=True")
    return bool(value)


def _option(option: Any) -> Any:
    """Return an option as a plain text, number or boolean."""
    if isinstance(option, (str, bool, np.bool_)):
        return str(option) if isinstance(option, str) else bool(option)
    plain = option is None or (is_readable(option) and not isinstance(option, tuple))
    expected = "options that are texts, numbers or booleans"
    require(plain, "options", type(option), expected, "name the options by texts or numbers")
    return category_key(option)


def _day(value: Any, name: str) -> datetime.date:
    """Return a date that a caller passed as a date or a text, refusing anything else."""
    if type(value) is datetime.date:
        return value
    try:
        if isinstance(value, str) and re.fullmatch("[0-9]{4}-[0-9]{2}-[0-9]{2}", value):
            return datetime.date.fromisoformat(value)
    except ValueError:
        pass
    raise ParameterError(
        name, value, expected="a date", remedy='pass "2024-12-31" or datetime.date(2024, 12, 31)'
    )
