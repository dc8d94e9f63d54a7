"""Show numbers and sentences to people, read JSON from strangers, write files once."""

from __future__ import annotations

import decimal
import json
import os
import re
import secrets
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any, NoReturn

from zerodelta.errors import CertificateError, ParameterError
from zerodelta.privacy.steps import from_hexadecimal

_LONGEST = 12
"""A number with more digits is rounded for people; the certificate keeps it exact."""


LARGE = 5
"""An ε above this draws a warning: e^5/(1 + e^5) is more than 99 %."""


def large(epsilon: Fraction) -> str:
    """Return a warning if ε, for replaced rows, is so large that it hardly protects; else empty.

    >>> large(Fraction(5)), large(Fraction(20))[:20]
    ('', 'ε = 20 is large: a s')
    """
    if epsilon <= LARGE:
        return ""
    return (
        f"ε {equals(epsilon)} is large: a suspicion of 50 % about one person may rise to more than "
        f"99 %; ask why it has to be more than {LARGE}"
    )


def shown(value: Any) -> str:
    """Return a number as people read it: exact if that is short, else rounded and marked so.

    >>> shown(Fraction(1, 3)), shown("83/100"), shown(Fraction(0.83)), shown([1, "2/3"])
    ('1/3', '0.83', '≈ 0.83', '[1, 2/3]')
    """
    if isinstance(value, list):
        items = [shown(item) for item in value]
        return f"[{', '.join(items if len(items) <= 6 else [*items[:3], '…', items[-1]])}]"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (int, Fraction)):
        return _short(Fraction(value))
    if isinstance(value, str) and re.fullmatch(r"-?[0-9]+/[0-9]*[1-9][0-9]*", value):
        return _short(Fraction(value))
    size = from_hexadecimal(value)
    return str(value) if size is value else _short(Fraction(size))


def equals(value: Any) -> str:
    """Return "= x" if the number is shown exactly, "≈ x" if it had to be rounded.

    >>> equals(Fraction(83, 100)), equals(Fraction(0.83)), equals(Fraction(2, 3))
    ('= 0.83', '≈ 0.83', '= 2/3')
    """
    text = shown(value)
    return text if text.startswith("≈") else f"= {text}"


def _short(exact: Fraction) -> str:
    """Return a number as short text: exact if that is short, otherwise "≈" with 6 digits."""
    if exact.denominator == 1 and abs(exact) < 10**_LONGEST:
        return str(exact.numerator)
    rounded = _rounded(exact, _LONGEST)
    if Fraction(rounded) == exact:
        return f"{rounded:f}" if -5 < rounded.adjusted() < _LONGEST else f"{rounded:e}"
    if max(exact.denominator, abs(exact.numerator)) < 10**6:
        return str(exact)
    return f"≈ {_rounded(exact, 6):g}"


def _rounded(exact: Fraction, digits: int) -> decimal.Decimal:
    context = decimal.Context(prec=digits, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)
    # Decimal(int) has no limit on digits; Decimal(str(int)) would stop at Python's 4300
    numerator, denominator = decimal.Decimal(exact.numerator), decimal.Decimal(exact.denominator)
    return context.divide(numerator, denominator).normalize(context)


def filled(template: str, numbers: Mapping[str, Any]) -> str:
    """Return the sentence with the numbers filled in; numbers without a place are appended."""
    mentioned = set(re.findall(r"\{(\w+)\}", template))

    def number(match: re.Match[str]) -> str:
        value = numbers.get(match["name"], f"({match['name']} not stated)")
        return equals(value) if match["equals"] else shown(value)

    text = re.sub(r"(?P<equals>= )?\{(?P<name>\w+)\}", number, template)
    others = [f"{name} {equals(v)}" for name, v in numbers.items() if name not in mentioned]
    if not others:
        return text
    listed = ", ".join(others)
    return f"{text[:-1]}; {listed}." if text[-1] == "." else f"{text} ({listed})"


# -- JSON from strangers: bounded in size, no name twice, and in certificates no floats -----------

LARGEST_TEXT = 10_000_000
"""Characters of a file; a certificate has a few thousand."""

_LONGEST_INTEGER = 4000
"""Digits; longer ones are written in hexadecimal."""


def read_json(text: str, *, floats: bool = False, largest: int = LARGEST_TEXT) -> Any:
    """Parse JSON; a repeated name, a float (unless `floats`) and a very long text are refused.

    >>> read_json('{"epsilon": "1/2"}')
    {'epsilon': '1/2'}
    """
    if type(text) is not str or len(text) > largest:
        raise CertificateError(f"this is not a text of at most {largest} characters.")
    if floats:  # a release file also holds the released value
        return json.loads(text, object_pairs_hook=_without_repetition)
    return json.loads(
        text,
        object_pairs_hook=_without_repetition,
        parse_float=_refuse_float,
        parse_constant=_refuse_float,
        parse_int=_integer,
    )


def other_format(schema: object, expected: str, name: str) -> str:
    """Return the message that refuses another format, with the version that reads it.

    >>> other_format("a/3", "a/2", "file")
    "schema 'a/3' is not a/2: it is newer: upgrade with pip install --upgrade zerodelta."
    """
    family, _, current = expected.rpartition("/")
    number = re.fullmatch(rf"{re.escape(family)}/([1-9][0-9]{{0,3}})", str(schema))
    if number is None:
        remedy = f"this is not a {name}"
    elif int(number[1]) < int(current):
        remedy = "it is older: read it with the version of zerodelta that wrote it"
    else:
        remedy = "it is newer: upgrade with pip install --upgrade zerodelta"
    return f"schema {schema!r:.60} is not {expected}: {remedy}."


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the pairs of a JSON object as a dict; a name that occurs twice is refused."""
    data = dict(pairs)
    if len(data) < len(pairs):
        raise CertificateError("a name occurs twice in this text.")
    return data


def _refuse_float(text: str) -> NoReturn:
    raise CertificateError(
        f"{text[:40]} is a float: a certificate writes integers, and other numbers as text."
    )


def _integer(text: str) -> int:
    if len(text) > _LONGEST_INTEGER:
        raise CertificateError(
            f"an integer of {len(text)} digits: from {_LONGEST_INTEGER} on they are hexadecimal."
        )
    return int(text)


def write_json(data: Any) -> str:
    """Return the JSON as people read it."""
    return json.dumps(data, indent=2, ensure_ascii=False)


# -- Files that are written once: complete or not at all, and never over another file -------------


def write_new(
    path: str | os.PathLike[str], content: bytes | str, *, name: str = "path", mode: int = 0o666
) -> None:
    """Write a new file; an existing one is refused, unless it holds exactly this content.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "a.txt")
    >>> write_new(path, "first")
    >>> write_new(path, "first")
    >>> write_new(path, "second")
    Traceback (most recent call last):
    ...
    zerodelta.errors.ParameterError: path = ...: expected a new file, as ...
    """
    data = content.encode("utf-8") if isinstance(content, str) else content
    target = Path(os.path.abspath(path))
    # written under a temporary name in the same folder first, so that no reader sees half a file
    temporary = target.with_name(f"{target.name}.{secrets.token_hex(8)}")
    try:
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY, mode)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if not _take_name(temporary, target) and not _holds(target, data):
            raise ParameterError(
                name,
                os.fspath(path),
                expected="a new file, as nothing is overwritten",
                remedy="choose another name, or move the existing file",
            )
    except OSError as error:  # its own message names the temporary file
        raise OSError(error.errno, error.strerror or str(error), os.fspath(path)) from None
    finally:
        temporary.unlink(missing_ok=True)


_BINARY = getattr(os, "O_BINARY", 0)


def _holds(path: Path, data: bytes) -> bool:
    """Tell whether a file has exactly this content."""
    return path.is_file() and path.stat().st_size == len(data) and path.read_bytes() == data


def _take_name(temporary: Path, target: Path) -> bool:
    """Give a complete file its name; False if that is taken."""
    try:
        os.link(temporary, target)  # fails if the name exists, unlike a rename
    except FileExistsError:
        return False
    except OSError:  # a file system without links: reserve the name, then rename over it
        try:
            target.open("xb").close()
        except FileExistsError:
            return False
        try:
            temporary.replace(target)
        except BaseException:
            target.unlink(missing_ok=True)
            raise
    return True
