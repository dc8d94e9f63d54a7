"""Whatever stands in a file or a text: it is read, or an error of ours says what is wrong.

Certificates, schemas, conditions and numbers are parameters, so malformed ones are refused. CSV
cells are data, so nothing in them is refused: a file of any bytes is as many rows as it has lines.
"""

from __future__ import annotations

import contextlib
import json
import math
import tempfile
import warnings
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import zerodelta as zd
from data.opening import opened
from privacy.chains import CHAINS
from zerodelta.data.cells import LARGEST, boolean, category, number
from zerodelta.data.chosen import Predicate
from zerodelta.data.schema import Schema
from zerodelta.errors import CertificateError, ParameterError, ZeroDeltaError
from zerodelta.exact.rational import as_rational
from zerodelta.privacy.release_file import CLASSES, read_text
from zerodelta.privacy.written_values import read_value


def mangled(text: str, alphabet: str) -> st.SearchStrategy[str]:
    """Texts that are nearly right: some pieces of it left out, doubled, moved or replaced."""
    places = st.integers(0, len(text))
    piece = st.one_of(st.text(alphabet, max_size=5), st.text(max_size=3))

    def cut(spots: tuple[int, int], new: str, kept: str) -> str:
        low, high = sorted(spots)
        return text[:low] + new + (text[low:high] if kept == "twice" else "") + text[high:]

    once = st.builds(cut, st.tuples(places, places), piece, st.sampled_from(["no", "twice"]))
    return st.one_of(once, st.text(alphabet, max_size=60), st.text(max_size=60))


# -- certificates ---------------------------------------------------------------------------------

CERTIFICATE = CHAINS["Finite"].certificate().to_json()


def read_certificate(text: str) -> None:
    """What is read is also what it writes; what is not read is not verified."""
    try:
        certificate = zd.records.Certificate.from_json(text)
    except CertificateError:
        with pytest.raises(CertificateError):
            zd.verify(text)
        return
    assert zd.records.Certificate.from_json(certificate.to_json()) == certificate
    with contextlib.suppress(CertificateError):
        zd.verify(text)


CERTIFICATES = st.one_of(
    mangled(CERTIFICATE, '{}[]",:0123456789eE+-./\\ '),
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=8), inner),
    ).map(json.dumps),
)


# -- saved releases --------------------------------------------------------------------------------


def _saved(folder: str) -> str:
    zd.mean([1.0, 2.0], bounds=(0, 4), epsilon=1).save(f"{folder}/x.json")
    return Path(f"{folder}/x.json").read_text(encoding="utf-8")


with tempfile.TemporaryDirectory() as _folder:
    SAVED = _saved(_folder)
SAVED_TEXTS = mangled(SAVED, '{}[]",:0123456789eE+-./\\ ')
VALUES = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(
            st.sampled_from(["array", "shape", "cells", "dict", "tuple", "type", "fields", "table"])
            | st.sampled_from(["keys", "numbers", "note", "fraction", "float", "int", "numpy"]),
            inner,
        )
    ),
)


def read_saved(text: str) -> None:
    with contextlib.suppress(CertificateError):
        assert read_text(text).digest == json.loads(text)["digest"]


def read_a_value(data: Any) -> None:
    with contextlib.suppress(zd.errors.RecordError):
        read_value(data, CLASSES)


# -- schemas --------------------------------------------------------------------------------------

SCHEMA = """name = "people"
neighbors = "replace"

[columns]
age = {number = [0, 120], missing = "skip", integer = true}
city = {category = ["oslo", "rome"], other = true}
member = {boolean = true, missing = true}
note = {text = 20, alphabet = "abc", exact = true}
joined = {date = [2020-01-01, 2026-12-31], by = "month"}

[unit]
column = "who"
max_rows = 3
number = 10

[file]
delimiter = ";"
header = false
"""


def read_schema(text: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            schema = Schema.from_toml(text)
        except ParameterError:
            return
        assert Schema.from_toml(schema.to_toml()) == schema


SCHEMAS = mangled(SCHEMA, '{}[]"=,:0123456789eE+-._#\n numberdatextcgo')


# -- conditions -----------------------------------------------------------------------------------

KINDS: dict[str, Any] = {
    "age": zd.number(0, 120),
    "city": zd.category(["oslo", "rome"], other=True),
    "member": zd.boolean(),
    "joined": zd.date("2020-01-01", "2020-12-31"),
    "home town": zd.category(["a b"]),
}
CELLS = {name: np.array([0.0, 1.0, math.nan, 50.0]) for name in KINDS}
WORDS = ["age", "city", "member", "joined", "`home town`", "and", "or", "not", "in", "(", ")", ","]
WORDS += ["<", "<=", "==", "!=", ">", ">=", "18", "-1", "1e400", "'oslo'", '"a b"', "None", "True"]
WORDS += ["'2020-05-01'", "[", "]", "{", "}", "is", "lambda", "age.real", "age()", "0x", "\\d", "`"]
CONDITIONS = st.one_of(
    st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join),
    mangled("18 <= age < 65 and (city in ('oslo', 'rome') or not member)", "agecity()<>=!' `\\0"),
)


def read_condition(text: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            condition = Predicate.of(text, KINDS)
        except ParameterError:
            return
        kept = condition(CELLS)
        assert kept.dtype == np.bool_
        assert kept.shape == (4,)


# -- numbers --------------------------------------------------------------------------------------

SPELLED = st.one_of(
    st.text("0123456789eE+-./_ ", max_size=12),
    st.text(max_size=8),
    st.floats().map(repr),
    st.fractions().map(str),
    st.decimals().map(str),
    st.integers().map(hex),
)


def read_number(text: str) -> None:
    try:
        exact = as_rational(text, "epsilon")
    except ParameterError:
        return
    assert type(exact) is Fraction
    assert text.isascii()
    assert "_" not in text


def read_cell(cell: Any) -> None:
    """Never refused: a finite number or missing, a category or missing, 0 or 1 or missing."""
    read = number(cell)
    assert math.isnan(read) or -LARGEST <= read <= LARGEST
    assert isinstance(category(cell), (int, float, str, type(None)))
    assert boolean(cell) in (0, 1) or math.isnan(boolean(cell))


# -- CSV ------------------------------------------------------------------------------------------

FILE: dict[str, Any] = {"columns": {"age": zd.number(0, 100), "kind": zd.category(["a", "b"])}}
LINES = st.lists(
    st.one_of(
        st.binary(max_size=12),
        st.text('0123456789.,;"ab \t\r', max_size=20).map(str.encode),
        st.just(b"12,a,x"),
    ),
    min_size=1,
    max_size=8,
)


def read_file(given: tuple[list[bytes], str | None]) -> None:
    """Any lines are as many rows."""
    lines, quote = given
    plain = [line.replace(b"\n", b"") for line in lines]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "any.csv"
        path.write_bytes(b"1,b,y\n" + b"".join(line + b"\n" for line in plain))
        people = zd.open(path, header=False, quote=quote, **FILE)
        rows = np.concatenate(list(opened(people).blocks()))
        zd.count(people.where("kind == 'a'"), epsilon=1)
    assert len(rows) == 1 + len(plain)
    numbers = rows[:, 0]
    assert np.all(np.isnan(numbers) | np.isfinite(numbers))
    assert rows[0].tolist() == [1, 1]


def read_any_file(given: tuple[bytes, str]) -> None:
    content, kind = given
    with tempfile.TemporaryDirectory() as folder, contextlib.suppress(ZeroDeltaError):
        path = Path(folder) / f"any.{kind}"
        path.write_bytes(content)
        if kind == "toml":
            zd.data.read_schema(path)
        else:
            zd.count(zd.open(path, columns={"a": zd.number(0, 1)}), epsilon=1)


# -- all of them ----------------------------------------------------------------------------------

FORMATS = st.sampled_from(["csv", "csv.gz", "parquet", "toml"])
PARSERS: dict[str, tuple[Callable[[Any], None], st.SearchStrategy[Any], int, int]] = {
    "certificate": (read_certificate, CERTIFICATES, 100, 10_000),
    "saved release": (read_saved, SAVED_TEXTS, 100, 10_000),
    "value": (read_a_value, VALUES, 100, 10_000),
    "schema": (read_schema, SCHEMAS, 100, 10_000),
    "condition": (read_condition, CONDITIONS, 100, 10_000),
    "number": (read_number, SPELLED, 300, 10_000),
    "cell": (read_cell, SPELLED | SPELLED.map(str.encode) | st.binary(max_size=8), 300, 10_000),
    "CSV": (read_file, st.tuples(LINES, st.sampled_from([None, '"'])), 40, 3000),
    "file": (read_any_file, st.tuples(st.binary(max_size=40), FORMATS), 40, 3000),
}
"""What reads, what it is given, and how many examples of it in the normal run and in the long."""


@pytest.mark.parametrize("long", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("parser", PARSERS)
def test_whatever_is_read_is_understood_or_an_error_of_ours(parser: str, long: bool) -> None:
    read, texts, few, many = PARSERS[parser]
    examples = settings(max_examples=many if long else few, suppress_health_check=list(HealthCheck))
    examples(given(texts)(read))()
