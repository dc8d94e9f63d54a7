"""Define all exceptions of zerodelta, and the helpers that refuse malformed parameters.

::

    ZeroDeltaError
    ├── ParameterError (also a ValueError)   a public parameter is malformed
    ├── GuaranteeError                       the claim cannot reach the requested ε
    ├── CertificateError                     a certificate does not prove its claim
    │   └── RecordError                      a saved release cannot be read, or was changed
    ├── BudgetError                          the privacy budget is spent
    │   └── LedgerError                      the ledger cannot be read or written, or was changed
    └── EntropyError                         the operating system gave no randomness

No exception is ever raised because of a *value* in the data: an exception is an output
(theory A14), so odd values are mapped and only public parameters are refused.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Set
from importlib.util import find_spec
from typing import Any, final

__all__ = [
    "BudgetError",
    "CertificateError",
    "EntropyError",
    "GuaranteeError",
    "LedgerError",
    "ParameterError",
    "RecordError",
    "ZeroDeltaError",
]


def printable(text: str, *, lines: bool = False) -> str:
    r"""Return a text with control and direction characters escaped.

    Anyone may have chosen the names and keys in it. With `lines`, line breaks are kept.

    >>> print(printable("a\x1b[2J\u202eb\n"))
    a\x1b[2J\u202eb\n
    """
    if text.isprintable():
        return text
    allowed = "\n" if lines else ""
    return "".join(c if c.isprintable() or c == allowed else ascii(c)[1:-1] for c in text)


_LIKE_URL = re.compile(
    r"(?is)[a-z][\w+.-]+:/|.*://|.*(?:passw(?:or)?d|pwd)\s*=|(?://|postgres|[^/\\]{2,}:).*@"
)
"""A URL with a scheme of two letters or more (one letter is a drive), as pathlib rewrites it too,
libpq's list of settings, or a misspelled URL with a user before an @."""


def may_be_url(text: str) -> bool:
    """Tell whether a text was meant as a URL: it may hold a password, so no message repeats it.

    >>> may_be_url("postgresql:ana:secret@db/budgets"), may_be_url("people.csv")
    (True, False)
    """
    return _LIKE_URL.match(text) is not None


@final
class _NoValue:
    """The value of a `ParameterError` without one, or with one that no message may show."""

    def __repr__(self) -> str:
        return "nothing"

    def __reduce__(self) -> str:
        return "NO_VALUE"


NO_VALUE = _NoValue()


class ZeroDeltaError(Exception):
    """Base class of all exceptions that zerodelta raises on purpose."""

    def __str__(self) -> str:
        return printable(super().__str__(), lines=True)


class ParameterError(ZeroDeltaError, ValueError):
    """A public parameter is malformed; the message names it, what is expected and the remedy.

    >>> raise ParameterError("scale", -1, expected="a positive number", remedy="pass scale=1")
    Traceback (most recent call last):
    ...
    zerodelta.errors.ParameterError: scale = -1: expected a positive number; pass scale=1.
    """

    def __init__(self, name: str, value: object = NO_VALUE, *, expected: str, remedy: str) -> None:
        end = "" if remedy.endswith("?") else "."
        assigned = "" if value is NO_VALUE else f" = {_shown(value)}"
        super().__init__(f"{name}{assigned}: expected {expected}; {remedy}{end}")
        self.name = name
        self.expected = expected
        self.remedy = remedy
        self._value = _Shape(value) if _shape(value) else value

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (self.name, self._value, self.expected, self.remedy)


@final
class _Shape:
    """The type and shape of an array or a frame, whose values no message may show."""

    def __init__(self, value: object) -> None:
        self._text = f"<{type(value).__name__} of shape {_shape(value)}>"

    def __repr__(self) -> str:
        return self._text


def _shape(value: object) -> tuple[int, ...]:
    """Return the shape of an array, a series or a frame, which may hold rows; () otherwise."""
    if not hasattr(value, "__array__"):
        return ()
    try:
        shape = value.shape if hasattr(value, "shape") else (len(value),)  # type: ignore[arg-type]
        return tuple(map(int, shape))
    except Exception:
        return ()


def _shown(value: object) -> str:
    """Return a short repr; a value without a working repr is named by its type."""
    try:
        shown = repr(_Shape(value) if _shape(value) else value)
    except Exception:
        return f"<{type(value).__name__}>"
    return shown if len(shown) <= 80 else shown[:77] + "..."


def _rebuild(name: str, value: object, expected: str, remedy: str) -> ParameterError:
    return ParameterError(name, value, expected=expected, remedy=remedy)


def require(
    holds: object, name: str, value: object = NO_VALUE, expected: str = "", remedy: str = ""
) -> None:
    """Raise `ParameterError` unless a condition on public parameters holds.

    >>> require(2 < 1, "bounds", (2, 1), expected="lower < upper", remedy="pass (1, 2)")
    Traceback (most recent call last):
    ...
    zerodelta.errors.ParameterError: bounds = (2, 1): expected lower < upper; pass (1, 2).
    """
    if not holds:
        raise ParameterError(name, value, expected=expected, remedy=remedy)


def needed(value: Any, name: str, remedy: str) -> Any:
    """Return a public input, refusing None with the remedy."""
    expected = "a public input (never one computed from the rows)"
    require(value is not None, name, None, expected=expected, remedy=remedy)
    return value


def is_list(value: object) -> bool:
    """Tell whether a parameter is iterable in a fixed order, such as a list, a tuple or an array.

    Texts, mappings, sets and arrays without axes do not count as lists.

    >>> is_list([1, 2]), is_list(range(3)), is_list("ab"), is_list({1, 2})
    (True, True, False, False)
    """
    excluded = isinstance(value, (str, bytes, bytearray, Mapping, Set))
    return isinstance(value, Iterable) and not excluded and getattr(value, "ndim", 1) != 0


def is_name(value: object, names: Iterable[str]) -> bool:
    """Tell whether a parameter is one of the allowed names; an array is never compared.

    >>> is_name("counts", ["counts", "keys"]), is_name(1, ["counts", "keys"])
    (True, False)
    """
    return isinstance(value, str) and value in names


def did_you_mean(name: object, known: Iterable[str], otherwise: str) -> str:
    """Return the remedy for an unknown public name: the closest known one, if any is close.

    >>> did_you_mean("Loyd", ["histogram", "lloyd"], "pass one of these names")
    'did you mean "lloyd"?'
    >>> did_you_mean("linear_regression", ["mean", "linear"], "pass one of these names")
    'did you mean "linear"?'
    >>> did_you_mean(7, ["histogram", "lloyd"], "pass one of these names")
    'pass one of these names'
    """
    if not isinstance(name, str):
        return otherwise
    by_lower = {candidate.lower(): candidate for candidate in known}
    close = difflib.get_close_matches(name[:100].strip().lower(), by_lower, n=1, cutoff=0.6)
    if not close and len(name) <= 100:
        # a name that contains the other one: "linear_regression" means "linear"; longest first
        word = name.strip().lower()
        close = [lower for lower in by_lower if len(lower) > 2 and lower in word]
        close += [lower for lower in by_lower if len(word) > 2 and word in lower]
        close.sort(key=len, reverse=True)
    return f'did you mean "{by_lower[close[0]]}"?' if close else otherwise


def require_extra(module: str, extra: str) -> None:
    """Refuse to continue without an optional dependency; called before a row is read.

    >>> require_extra("no_such_module", "sklearn")
    Traceback (most recent call last):
    ...
    ImportError: no_such_module is not installed: pip install 'zerodelta[sklearn]'.
    """
    if find_spec(module) is None:
        raise ImportError(f"{module} is not installed: pip install 'zerodelta[{extra}]'.")


class GuaranteeError(ZeroDeltaError):
    """The privacy claim cannot reach the requested ε."""


class CertificateError(ZeroDeltaError):
    """A certificate is malformed, was changed, or does not prove its claim."""


class RecordError(CertificateError):
    """A saved release cannot be read, or was changed; the file is left unchanged."""


class BudgetError(ZeroDeltaError):
    """Less privacy budget is left than the release needs."""


class LedgerError(BudgetError):
    """A ledger cannot be read or written, or was changed; nothing is spent and no row is read."""


class EntropyError(ZeroDeltaError):
    """The operating system's random source failed; nothing was released."""
