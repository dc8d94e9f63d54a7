"""JSON from strangers: bounded in size, no name twice, and where asked no floats."""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

from zerodelta.errors import CertificateError

LARGEST_TEXT = 10_000_000
"""Characters of a file; ours have a few thousand."""

_LONGEST_INTEGER = 4000
"""Digits; longer ones are written in hexadecimal."""


def read_json(text: str, *, floats: bool = False, largest: int = LARGEST_TEXT) -> Any:
    """Return what the text says, refusing what could be read in two ways or takes long to read.

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


def other_format(schema: object, ours: str, name: str) -> str:
    """Say why a file of another format is refused, and what reads it.

    >>> other_format("a/3", "a/2", "file")
    "schema 'a/3' is not a/2: it is newer: upgrade with pip install --upgrade zerodelta."
    """
    family, _, current = ours.rpartition("/")
    number = re.fullmatch(rf"{re.escape(family)}/([1-9][0-9]{{0,3}})", str(schema))
    if number is None:
        remedy = f"this is no {name}"
    elif int(number[1]) < int(current):
        remedy = "it is older: read it with the version of zerodelta that wrote it"
    else:
        remedy = "it is newer: upgrade with pip install --upgrade zerodelta"
    return f"schema {schema!r:.60} is not {ours}: {remedy}."


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
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
