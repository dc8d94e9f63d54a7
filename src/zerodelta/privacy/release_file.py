"""A release as a file: value, certificate and record, with one SHA-256 over all of it.

    digest = SHA-256(canonical JSON of all but the digest and the signatures)

What is read is judged from its text alone: that the certificate proves its claim, that record and
certificate state the same one, and that the value does not contradict its noisy sums and bounds,
where it has some. Whoever changes all of that and computes the digest anew is not found so.
docs/records.md describes the format.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, final

from zerodelta.errors import CertificateError, ParameterError, RecordError, printable
from zerodelta.exact.noise_tails import NOISE_LAWS, NoiseLaw, NoisySums
from zerodelta.privacy.certificate import Certificate, to_ask
from zerodelta.privacy.readable import other_format, read_json, write_new
from zerodelta.privacy.release import Record, Signature, sign
from zerodelta.privacy.statistics import STATISTICS
from zerodelta.privacy.steps import canonical, digest_of
from zerodelta.privacy.verify import verify
from zerodelta.privacy.written_values import (
    check_value,
    fraction_text,
    read_fraction,
    reader,
    written,
)
from zerodelta.value import value

if TYPE_CHECKING:
    from zerodelta.privacy.release import Release


SCHEMA = "zerodelta/release/2"

LARGEST_FILE = 1 << 28
"""Bytes; synthetic rows are the largest values."""

_FIELDS = ("value", "error", "noise", "sums", "seconds", "diagnostics", "plan")
_NAMES = frozenset({"schema", *_FIELDS, "record", "certificate", "digest"})
_MAY = frozenset({"estimator", "signatures"})
_READABLE = ("record", "certificate", "signatures")
"""What is written on many lines."""


@value
class Saved:
    """A file that was read and judged: all in it belongs together, its certificate holds."""

    data: Mapping[str, Any]
    record: Record
    certificate: Certificate
    digest: str
    signatures: tuple[Signature, ...]

    def fields(self, classes: Mapping[str, Callable[..., Any]]) -> dict[str, Any]:
        """Return the fields of the release; `classes` as for `read_value`.

        Refused is what would not be written so again, as then something in the file goes unread,
        and a value that its own noisy sums do not give.
        """
        read = reader(classes)
        made = {name: read(self.data[name]) for name in _FIELDS if name != "sums"}
        for name in ("plan", "error"):  # people print them
            made[name] = _plain(made[name])
        found = {
            **made,
            "sums": _read_sums(self.data["sums"], read),
            "certificate": self.certificate,
            "record": self.record,
            "signatures": self.signatures,
        }
        if not self._is_written_so(found):
            raise RecordError(
                "this is not how a release is written: something was added, or written "
                "differently; take the file from where it was saved."
            )
        check_value(found["value"], found["sums"], self.record)
        return found

    def _is_written_so(self, found: Mapping[str, Any]) -> bool:
        """Tell whether the release says the same when it is written again: all of it was read."""
        whole = {n: part for n, part in self.data.items() if n not in ("digest", "signatures")}
        release: Any = SimpleNamespace(**found)
        try:
            again = content_of(release, self.data.get("estimator"))
        except Exception:  # odd values in a file
            return False
        return canonical(again) == canonical(whole)


def content_of(release: Release, estimator: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return what is saved of a release, all that its digest is computed of."""
    if release.record is None:
        raise ParameterError(
            "release",
            expected="one that was made by a verb, a study or an estimator: it has a record",
            remedy="save what these return",
        )
    from zerodelta.privacy.shown_release import note_of

    value = written(release.value)
    if isinstance(value, dict) and "table" in value:
        value["table"]["note"] = note_of(release)  # a frame has no place for it
    return {
        "schema": SCHEMA,
        **{name: written(getattr(release, name)) for name in _FIELDS if name not in _SPECIAL},
        **{name: write(getattr(release, name)) for name, write in _SPECIAL.items()},
        "value": value,
        "record": release.record.to_json(),
        "certificate": json.loads(release.certificate.to_json()),
        **({} if estimator is None else {"estimator": dict(estimator)}),
    }


def save(
    release: Release,
    path: str | os.PathLike[str],
    *,
    key: str | os.PathLike[str] | None,
    estimator: Mapping[str, Any] | None = None,
) -> None:
    """Write a release to a new file, and tell the ledgers that paid for it where it is."""
    content = content_of(release, estimator)
    digest = digest_of(content)
    signatures = list(release.signatures if estimator is None else ())
    if key is not None:
        signatures.append(sign(digest, key))
    whole = {**content, "digest": digest}
    if signatures:
        whole["signatures"] = [each.to_json() for each in signatures]
    text = "{\n" + ",\n".join(_line(name, part) for name, part in whole.items()) + "\n}\n"
    write_new(path, text)
    for account, entry in release.paid_by:
        account.note_saved(entry, os.path.abspath(path), digest)


def _line(name: str, part: Any) -> str:
    wide = json.dumps(part, indent=2 if name in _READABLE else None, allow_nan=False)
    return f'  "{name}": ' + wide.replace("\n", "\n  ")


def read_file(path: str | os.PathLike[str]) -> Saved:
    """Return what a file holds, or raise `CertificateError`, which says what to do."""
    try:
        with Path(path).open("rb") as file:
            content = file.read(LARGEST_FILE + 1)
        text = content.decode("utf-8")
    except (OSError, TypeError, ValueError) as error:
        raise RecordError(
            f"the file cannot be read ({type(error).__name__}): pass the path of a saved release."
        ) from None
    return read_text(text)


def read_text(text: str) -> Saved:
    """Return what a text holds, judged: digest, record, certificate, and that they fit together."""
    try:
        data = read_json(text, floats=True, largest=LARGEST_FILE)
    except (ValueError, RecursionError) as error:
        raise _unreadable(error) from None
    return read_data(data)


def is_release(data: Any) -> bool:
    """Tell whether a file holds a release that was saved, or what somebody left of one."""
    return isinstance(data, dict) and bool(
        {"record", "digest", "schema"} & data.keys() and "certificate" in data
    )


def read_data(data: Any) -> Saved:
    """Return what was read as JSON, if all of it belongs together and its certificate holds."""
    try:
        return _read_data(data)
    except CertificateError:
        raise
    except Exception as error:  # whatever someone wrote into a file
        raise _unreadable(error) from None


def _unreadable(error: Exception) -> RecordError:
    return RecordError(
        f"this is no saved release ({type(error).__name__}): it is cut off, or was changed by "
        "hand; take it from where it was saved."
    )


def _read_data(data: Any) -> Saved:
    if type(data) is not dict or type(data.get("schema")) is not str:
        raise RecordError("this is no saved release: pass a file that release.save wrote.")
    schema = data["schema"]
    if schema != SCHEMA:
        raise RecordError(other_format(schema, SCHEMA, "saved release"))
    if not _NAMES <= data.keys() <= _NAMES | _MAY:
        raise RecordError(
            "the file is not as it was saved: something is missing, or was added; take it from "
            "where it was saved."
        )
    content = {name: part for name, part in data.items() if name not in ("digest", "signatures")}
    if data["digest"] != _digest(content):
        raise RecordError(
            "the digest does not match: value, record or certificate was changed after it was "
            "saved; ask whoever sent it for the file as it was saved."
        )
    record, certificate = Record.from_json(data["record"]), _certificate(data["certificate"])
    _check_together(record, certificate)
    listed = data.get("signatures", [])
    return Saved(
        data=data,
        record=record,
        certificate=certificate,
        digest=data["digest"],
        signatures=tuple(Signature.from_json(each) for each in listed),
    )


def _digest(content: Mapping[str, Any]) -> str:
    try:
        json.dumps(content, allow_nan=False)
    except ValueError:
        raise RecordError(
            "NaN or Infinity is not JSON: take the file as it was saved, which writes them as text."
        ) from None
    return digest_of(content)


def _certificate(data: Any) -> Certificate:
    certificate = Certificate.from_json(json.dumps(data))
    verify(certificate, neighbors=certificate.claim.neighbors, unit=certificate.unit)
    return certificate


def _check_together(record: Record, certificate: Certificate) -> None:
    """Refuse a record that is not about this certificate."""
    same = canonical(record.claim) == canonical(certificate.body()["claim"])
    if not same or record.public != list(certificate.public):
        raise RecordError(
            "record and certificate do not belong together: they state different claims; take the "
            "file from where it was saved."
        )
    if any(entry["time"] != record.time for entry in record.entries[:1]):
        raise RecordError("the record is of another time than its entry in the ledger.")
    asked = to_ask(unit=certificate.unit, counted=bool(record.entries))
    if record.to_ask != list(asked):
        raise RecordError(
            "the record does not say what has to be asked of such a release: something was left "
            "out, or added; take the file from where it was saved."
        )


# -- noise laws and sums --------------------------------------------------------------------------


def _written_sums(sums: tuple[NoisySums, ...]) -> Any:
    """Return sums as JSON; of linear forms, which are mostly 0, what is not."""
    return [
        {
            each.name: _written_forms(one.forms) if each.name == "forms" else _part(one, each.name)
            for each in fields(NoisySums)
        }
        for one in sums
    ]


def _part(sums: NoisySums, name: str) -> Any:
    value = getattr(sums, name)
    return written(dict(value) if isinstance(value, Mapping) else value)


def _written_forms(forms: Mapping[str | None, tuple[tuple[Fraction, ...], ...]]) -> Any:
    if isinstance(forms, _SparseForms):
        return forms.data
    return [
        [
            name,
            [
                [len(form), [[i, fraction_text(each)] for i, each in enumerate(form) if each]]
                for form in forms[name]
            ],
        ]
        for name in forms
    ]


@final
class _SparseForms(Mapping[str | None, tuple[tuple[Fraction, ...], ...]]):
    """Forms as a file has them, each made when somebody asks."""

    __slots__ = ("_places", "data")

    def __init__(self, data: Any, *, width: int) -> None:
        for name, forms in data:
            if name is not None and type(name) is not str:
                raise TypeError
            for length, places in forms:
                if type(length) is not int or length != width:
                    raise ValueError
                before = -1
                for place, text in places:
                    if not before < place < length or fraction_text(read_fraction(text)) != text:
                        raise ValueError
                    before = place
        self.data, self._places = data, {name: i for i, (name, _) in enumerate(data)}
        if len(self._places) < len(data):
            raise ValueError

    def __getitem__(self, name: str | None) -> tuple[tuple[Fraction, ...], ...]:
        return tuple(self._form(*each) for each in self.data[self._places[name]][1])

    @staticmethod
    def _form(length: int, places: list[tuple[int, str]]) -> tuple[Fraction, ...]:
        made = [Fraction(0)] * length
        for place, text in places:
            made[place] = read_fraction(text)
        return tuple(made)

    def __iter__(self) -> Iterator[str | None]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


def _width(parts: Mapping[str, Any]) -> int:
    """Return how many coefficients a form has: one for each integer of a line, and a constant."""
    return int(parts["integers"].shape[1]) + 1


def _read_sums(data: Any, read: Callable[[Any], Any]) -> tuple[NoisySums, ...]:
    try:
        parts = [{n: read(p) for n, p in one.items() if n != "forms"} for one in data]
        sums = tuple(
            NoisySums(forms=_SparseForms(one["forms"], width=_width(part)), **part)
            for one, part in zip(data, parts, strict=True)
        )
        most = 4 * sum(each.integers.size for each in sums)  # one draw may be in several sums
        for each in sums:
            _check_law(each.law, most)
            known = all(name in STATISTICS for _, name in each.statistics.values())
            if not known or type(each.rows) not in (int, type(None)):
                raise ValueError
        return sums
    except (ValueError, TypeError, KeyError, AttributeError, ZeroDivisionError, IndexError):
        raise RecordError("the noise laws cannot be read: load the file as it was saved.") from None


def _check_law(law: NoiseLaw, most: int) -> None:
    """Refuse a law without tails, or of more coordinates than there could be: tails are sought."""
    units = law.unit if isinstance(law.unit, tuple) else (law.unit,)
    known = (law.family, law.norm) in NOISE_LAWS
    known = known and type(law.dimension) is int
    if not known or law.scale <= 0 or min(units) <= 0 or not 1 <= law.dimension <= most:
        raise ValueError


_SPECIAL: Mapping[str, Callable[[Any], Any]] = {
    "sums": _written_sums,
    "plan": lambda plan: None if plan is None else _plain(str(plan)),
    "error": lambda error: written(_plain(error)),
}


def _plain(told: Any) -> Any:
    return printable(told, lines=True) if type(told) is str else told


# -- What a released value may be made of, beside numbers, texts and arrays -----------------------
# A class is imported when a file names it, so that reading a number needs no sampler.

_HOMES: Mapping[str, tuple[str, ...]] = {
    "data.declare": ("Date",),
    "data.kinds": ("Boolean", "Category", "Number", "Text"),
    "regression.classes": ("ClassModel",),
    "regression.encoded_columns": ("ColumnBounds", "Encoding"),
    "regression.forest": ("Forest", "Splits"),
    "regression.features": ("LinearModel",),
    "regression.rows": ("RowLimits",),
    "training.models": ("TanhNetwork",),
    "training.features": ("DecisionTree", "Split"),
    "tables.found_keys": ("FoundKeys",),
    "tasks.distributions": ("StepFunction",),
    "tasks.covariance": ("PrincipalComponents",),
    "tables.grouped": ("Table",),
    "privacy.release": ("Diagnostics",),
    "exact.noise_tails": ("NoiseLaw",),
}


@final
class _Classes(Mapping[str, Callable[..., Any]]):
    """The classes by their names."""

    def __init__(self) -> None:
        self._homes = {name: home for home, names in _HOMES.items() for name in names}

    def __getitem__(self, name: str) -> Callable[..., Any]:
        found: Callable[..., Any] = getattr(import_module(f"zerodelta.{self._homes[name]}"), name)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._homes)

    def __len__(self) -> int:
        return len(self._homes)


CLASSES: Mapping[str, Callable[..., Any]] = _Classes()
