"""How a caller declares the kind of a column: `zd.number`, `zd.category` and the others.

What is declared is public and never computed from the rows.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable
from typing import Any

import numpy as np

from zerodelta.data.cells import category as category_key
from zerodelta.data.cells import is_readable
from zerodelta.data.dates import Date
from zerodelta.data.kinds import Boolean, Category, Number, Text
from zerodelta.errors import ParameterError, is_list, is_name, require
from zerodelta.exact.rational import Rational, as_count, as_rational


def number(
    lower: Rational,
    upper: Rational,
    *,
    missing: Rational | None = "skip",
    integer: bool = False,
) -> Number:
    """Declare a column of numbers between public bounds.

    A cell is a number, or a text that spells one in ASCII digits ("1.5", " -2e3 "). What is beyond
    the bounds, infinities too, is clipped; all else ("n/a", "1_000", NaN, null) is missing.

    Parameters
    ----------
    lower, upper : number
        Bounds that are known without the rows, exactly as written: 120, "0.1", Fraction(1, 3).
    missing : {"skip", None} or number, default "skip"
        "skip" leaves missing cells out of sums and counts; None declares that there are none (one
        that is there all the same counts as the middle of the bounds, at less noise for all);
        a number takes their place.
    integer : bool, default False
        Whether the numbers are whole; others are rounded. Quantiles are then whole, too.

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

    A cell is compared as its exact text. A number, or a text that spells one, is that number: 1,
    "1.0", "01" and True are one option, and two options that are read alike are refused. Empty
    cells, nan and null are missing.

    Parameters
    ----------
    options : sequence of texts, numbers or booleans
        Known without the rows; what a frame's Categorical column lists was computed from them.
    other : bool, default False
        Whether all other cells are an option of their own, the last. Without it they are in none.
    missing : bool, default False
        Whether missing cells are an option of their own, after those listed. Without it they are
        `other` if there is one, else in no option.
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

    true, false, yes and no in any case, and numbers equal to 1 or 0; all else is missing.

    Parameters
    ----------
    missing : bool, default False
        Whether missing cells are an option of their own. Without it they are in none.

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
        The largest number of characters; longer texts count nowhere.
    alphabet : str, optional
        The characters that may occur; a text with another counts nowhere. Default: any.
    exact : bool, default False
        Whether a text that spells a number stays the text that it is.

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

    A cell is a text YYYY-MM-DD (what follows a `T` or a space is ignored) or a binary date or
    timestamp, in UTC. Days before `first` or after `last` are in no period.

    Parameters
    ----------
    first, last : datetime.date or str
        The first and the last day, known without the rows.
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
    expected = "texts, numbers or booleans, which cells can be compared with"
    require(plain, "options", type(option), expected, "name the options by texts or numbers")
    return category_key(option)


def _day(given: Any, name: str) -> datetime.date:
    if type(given) is datetime.date:
        return given
    try:
        if isinstance(given, str) and re.fullmatch("[0-9]{4}-[0-9]{2}-[0-9]{2}", given):
            return datetime.date.fromisoformat(given)
    except ValueError:
        pass
    raise ParameterError(
        name, given, expected="a date", remedy='pass "2024-12-31" or datetime.date(2024, 12, 31)'
    )
