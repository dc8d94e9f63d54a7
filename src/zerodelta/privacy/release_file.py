"""Write and read releases as files: value, certificate, record, and one SHA-256 over all of it.

    digest = SHA-256(canonical JSON of all but the digest and the signatures)

A file is checked from its text alone: the certificate must prove its claim, the record must state
the same claim, and the value must not contradict its noisy sums and bounds, where it has some.
Somebody who changes all of these consistently, and computes the digest again, is not detected.
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
from pkgutil import iter_modules
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, final

from zerodelta.errors import CertificateError, ParameterError, RecordError, printable
from zerodelta.exact.noise_tails import NOISE_LAWS, NoiseLaw
from zerodelta.privacy.certificate import Certificate, to_ask
from zerodelta.privacy.readable import other_format, read_json, write_new
from zerodelta.privacy.release import Record, Signature, sign
from zerodelta.privacy.statistics import STATISTICS, Measurement
from zerodelta.privacy.steps import canonical, digest_of
from zerodelta.privacy.verify import verify
from zerodelta.privacy.written_values import (
    check_value,
    fraction_text,
    read_fraction,
    reader,
    written,
)
from zerodelta.value import PUBLISHED, value

if TYPE_CHECKING:
    from zerodelta.privacy.release import Release


SCHEMA = "zerodelta/release/2"

LARGEST_FILE = 1 << 28
"""Bytes; synthetic rows are the largest values."""

_FIELDS = ("value", "error", "noise", "sums", "seconds", "diagnostics", "plan")
_NAMES = frozenset({"schema", *_FIELDS, "record", "certificate", "digest"})
_OPTIONAL = frozenset({"estimator", "signatures"})
_INDENTED = ("record", "certificate", "signatures")
"""Entries written on many lines, for people."""


@value
class Saved:
    """A checked file: its parts belong together, and its certificate holds."""

    data: Mapping[str, Any]
    record: Record
    certificate: Certificate
    digest: str
    signatures: tuple[Signature, ...]

    def fields(self, classes: Mapping[str, Callable[..., Any]]) -> dict[str, Any]:
        """Return the fields of the release; refuse a file that is not written exactly like them.

        The release must be written exactly as the file again, so nothing in the file goes unread,
        and its value must follow from its noisy sums.
        """
        read = reader(classes)
        values = {name: read(self.data[name]) for name in _FIELDS if name != "sums"}
        for name in ("plan", "error"):  # people print them
            values[name] = _plain(values[name])
        release_fields = {
            **values,
            "sums": _read_sums(self.data["sums"], read),
            "certificate": self.certificate,
            "record": self.record,
            "signatures": self.signatures,
        }
        if not self._is_written_so(release_fields):
            raise RecordError(
                "this is not how a release is written: something was added, or written "
                "differently; take the file from where it was saved."
            )
        check_value(release_fields["value"], release_fields["sums"], self.record)
        return release_fields

    def _is_written_so(self, release_fields: Mapping[str, Any]) -> bool:
        """Tell whether a release of these fields is written exactly as the file."""
        release: Any = SimpleNamespace(**release_fields)
        try:
            content = content_of(release, self.data.get("estimator"))
        except Exception:  # odd values in a file
            return False
        return canonical(content) == canonical(_without_digest(self.data))


def _without_digest(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content of a file that its digest covers: all but digest and signatures."""
    return {name: part for name, part in data.items() if name not in ("digest", "signatures")}


def content_of(release: Release, estimator: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the content of a saved release, from which its digest is computed."""
    if release.record is None:
        raise ParameterError(
            "release",
            expected="one with a record: verbs, studies and estimators return such releases",
            remedy="save the release that one of these returned",
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
    """Write a release to a new file, and note its path in the ledgers that paid for it."""
    content = content_of(release, estimator)
    digest = digest_of(content)
    signatures = list(release.signatures if estimator is None else ())
    if key is not None:
        signatures.append(sign(digest, key))
    data = {**content, "digest": digest}
    if signatures:
        data["signatures"] = [signature.to_json() for signature in signatures]
    text = "{\n" + ",\n".join(_line(name, part) for name, part in data.items()) + "\n}\n"
    write_new(path, text)
    for account, entry in release.paid_by:
        account.note_saved(entry, os.path.abspath(path), digest)


def _line(name: str, part: Any) -> str:
    """Return one entry of the file's JSON object."""
    text = json.dumps(part, indent=2 if name in _INDENTED else None, allow_nan=False)
    return f'  "{name}": ' + text.replace("\n", "\n  ")


def read_file(path: str | os.PathLike[str]) -> Saved:
    """Read and check a file; a `CertificateError` says what is wrong and what to do."""
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
    """Read and check the text of a file: digest, record and certificate must fit together."""
    try:
        data = read_json(text, floats=True, largest=LARGEST_FILE)
    except (ValueError, RecursionError) as error:
        raise _unreadable(error) from None
    return read_data(data)


def is_release(data: Any) -> bool:
    """Tell whether parsed JSON is a saved release, perhaps an incomplete one."""
    return isinstance(data, dict) and bool(
        {"record", "digest", "schema"} & data.keys() and "certificate" in data
    )


def read_data(data: Any) -> Saved:
    """Check parsed JSON: its parts must belong together, and its certificate must hold."""
    try:
        return _read_data(data)
    except CertificateError:
        raise
    except Exception as error:  # whatever someone wrote into a file
        raise _unreadable(error) from None


def _unreadable(error: Exception) -> RecordError:
    return RecordError(
        f"this is not a saved release ({type(error).__name__}): it is cut off, or was changed by "
        "hand; take it from where it was saved."
    )


def _read_data(data: Any) -> Saved:
    """Check format, names and digest of a saved release, and return its parts."""
    if type(data) is not dict or type(data.get("schema")) is not str:
        raise RecordError("this is not a saved release: pass a file that release.save wrote.")
    schema = data["schema"]
    if schema != SCHEMA:
        raise RecordError(other_format(schema, SCHEMA, "saved release"))
    if not _NAMES <= data.keys() <= _NAMES | _OPTIONAL:
        raise RecordError(
            "the file is not as it was saved: something is missing, or was added; take it from "
            "where it was saved."
        )
    if data["digest"] != _digest(_without_digest(data)):
        raise RecordError(
            "the digest does not match: value, record or certificate was changed after it was "
            "saved; ask whoever sent it for the file as it was saved."
        )
    record, certificate = Record.from_json(data["record"]), _certificate(data["certificate"])
    _check_together(record, certificate)
    return Saved(
        data=data,
        record=record,
        certificate=certificate,
        digest=data["digest"],
        signatures=tuple(map(Signature.from_json, data.get("signatures", []))),
    )


def _digest(content: Mapping[str, Any]) -> str:
    """Return the SHA-256 digest of a saved release's content; NaN and infinity refused."""
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
    """Refuse a record that states another claim, time or premises than the certificate."""
    same_claim = canonical(record.claim) == canonical(certificate.body()["claim"])
    if not same_claim or record.public != list(certificate.public):
        raise RecordError(
            "record and certificate do not belong together: they state different claims; take the "
            "file from where it was saved."
        )
    if any(entry["time"] != record.time for entry in record.entries[:1]):
        raise RecordError("the record is of another time than its entry in the ledger.")
    premises = to_ask(unit=certificate.unit, counted=bool(record.entries))
    if record.to_ask != list(premises):
        raise RecordError(
            "the record does not list the premises of such a release: something was left out, or "
            "added; take the file from where it was saved."
        )


# -- Noise laws and sums --------------------------------------------------------------------------


def _written_sums(sums: tuple[Measurement, ...]) -> Any:
    """Return sums as JSON; linear forms, which are mostly 0, by their coefficients that are not."""
    names = [field.name for field in fields(Measurement)]
    return [
        {
            name: _written_forms(part.forms) if name == "forms" else _part(part, name)
            for name in names
        }
        for part in sums
    ]


def _part(sums: Measurement, name: str) -> Any:
    value = getattr(sums, name)
    return written(dict(value) if isinstance(value, Mapping) else value)


def _written_forms(forms: Mapping[str | None, tuple[tuple[Fraction, ...], ...]]) -> Any:
    if isinstance(forms, _SparseForms):
        return forms.data
    return [
        [
            name,
            [
                [len(form), [[i, fraction_text(c)] for i, c in enumerate(form) if c]]
                for form in forms[name]
            ],
        ]
        for name in forms
    ]


@final
class _SparseForms(Mapping[str | None, tuple[tuple[Fraction, ...], ...]]):
    """The linear forms of a file, expanded to all coefficients only when they are read."""

    __slots__ = ("_places", "data")

    def __init__(self, data: Any, *, width: int) -> None:
        for name, forms in data:
            if name is not None and type(name) is not str:
                raise TypeError
            for length, places in forms:
                if type(length) is not int or length != width:
                    raise ValueError
                previous = -1
                for place, text in places:
                    if not previous < place < length or fraction_text(read_fraction(text)) != text:
                        raise ValueError
                    previous = place
        self.data, self._places = data, {name: i for i, (name, _) in enumerate(data)}
        if len(self._places) < len(data):
            raise ValueError

    def __getitem__(self, name: str | None) -> tuple[tuple[Fraction, ...], ...]:
        return tuple(self._form(*entry) for entry in self.data[self._places[name]][1])

    @staticmethod
    def _form(length: int, places: list[tuple[int, str]]) -> tuple[Fraction, ...]:
        """Return the coefficients of a linear form that is stored as its nonzero places."""
        coefficients = [Fraction(0)] * length
        for place, text in places:
            coefficients[place] = read_fraction(text)
        return tuple(coefficients)

    def __iter__(self) -> Iterator[str | None]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


def _width(parts: Mapping[str, Any]) -> int:
    """Return the number of coefficients of a form: one for each integer, and a constant."""
    return int(parts["integers"].shape[1]) + 1


def _read_sums(data: Any, read: Callable[[Any], Any]) -> tuple[Measurement, ...]:
    """Read noisy sums from JSON; unknown laws, sizes and statistics are refused."""
    try:
        parts = [{n: read(p) for n, p in entry.items() if n != "forms"} for entry in data]
        all_sums = tuple(
            Measurement(forms=_SparseForms(entry["forms"], width=_width(part)), **part)
            for entry, part in zip(data, parts, strict=True)
        )
        # one draw may be in several sums, so a law may have more coordinates than one of them
        largest_dimension = 4 * sum(sums.integers.size for sums in all_sums)
        for sums in all_sums:
            _check_law(sums.law, largest_dimension)
            known = all(name in STATISTICS for _, name in sums.statistics.values())
            if not known or type(sums.rows) not in (int, type(None)):
                raise ValueError
        return all_sums
    except (ValueError, TypeError, KeyError, AttributeError, ZeroDivisionError, IndexError):
        raise RecordError("the noise laws cannot be read: load the file as it was saved.") from None


def _check_law(law: NoiseLaw, largest_dimension: int) -> None:
    """Refuse an unknown law, or one of a huge dimension: its tail bounds would take long."""
    units = law.unit if isinstance(law.unit, tuple) else (law.unit,)
    known = (law.family, law.norm) in NOISE_LAWS and type(law.dimension) is int
    if not known or law.scale <= 0 or min(units) <= 0:
        raise ValueError
    if not 1 <= law.dimension <= largest_dimension:
        raise ValueError


_SPECIAL: Mapping[str, Callable[[Any], Any]] = {
    "sums": _written_sums,
    "plan": lambda plan: None if plan is None else _plain(str(plan)),
    "error": lambda error: written(_plain(error)),
}


def _plain(value: Any) -> Any:
    """Return a text without control characters; other values as they are."""
    return printable(value, lines=True) if type(value) is str else value


# -- The classes that a released value may contain, besides numbers, texts and arrays -------------
# Each is registered where it is defined, by `@published`. Its module is imported when a file names
# a class that is not registered yet, so that reading a number imports no sampler.

_HOMES = (
    *("exact.noise_tails", "data.declare", "data.kinds", "privacy.release"),
    *("tables.grouped", "tables.found_keys"),
    *("regression", "training.models", "training.features"),
    *("tasks.distributions", "tasks.covariance"),
)
"""Where published classes are defined, in the order in which they are sought: modules and folders.

What a file says has no influence on what is imported."""


@final
class _Classes(Mapping[str, Callable[..., Any]]):
    """The published classes by name, imported at the first use."""

    def __getitem__(self, name: str) -> Callable[..., Any]:
        """Return a class; import one home after the other until it is registered."""
        homes = _modules()
        while name not in PUBLISHED:
            module = next(homes, None)
            if module is None:
                raise KeyError(name)
            import_module(module)
        return PUBLISHED[name]

    def __iter__(self) -> Iterator[str]:
        for module in _modules():
            import_module(module)
        return iter(tuple(PUBLISHED))

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _modules() -> Iterator[str]:
    """Yield the modules of all homes."""
    for home in _HOMES:
        if "." in home:
            yield f"zerodelta.{home}"
        else:
            folder = import_module(f"zerodelta.{home}").__path__
            yield from (found.name for found in iter_modules(folder, f"zerodelta.{home}."))


CLASSES: Mapping[str, Callable[..., Any]] = _Classes()
