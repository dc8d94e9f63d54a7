"""A published value with its certificate, its record and its signatures, and nothing else."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import field, fields, replace
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from zerodelta.errors import ParameterError, RecordError, printable, require_extra
from zerodelta.exact.noise_tails import NoiseLaw, NoisySums
from zerodelta.exact.rational import Rational, number_text
from zerodelta.privacy.certificate import Certificate
from zerodelta.privacy.readable import write_new
from zerodelta.privacy.steps import digest_of
from zerodelta.value import value

# -- The record of a release: what was asked, of which data, when, with which version, who paid ---
# All of it is public and was written down before the mechanism read a row: nothing here is
# computed from rows, no hash of them either (theory A14.8), but what the certificate lists as
# public, such as their number. Random bits of the operating system name the release, so that two
# of the same question are two, whoever paid.

_ID = re.compile(r"[0-9a-f]{32}")
_ENTRY = {"ledger": str, "entry": int, "hash": str, "time": str}
_TYPES: Mapping[str, Any] = {
    "id": str,
    "task": str,
    "parameters": dict,
    "data": list,
    "claim": dict,
    "public": list,
    "to_ask": list,
    "version": str,
    "time": str,
    "entries": list,
}


@value
class Record:
    """What a release was asked for; every release has one, and saves it.

    Parameters
    ----------
    id : str
        The name of the release: 32 random hexadecimal digits.
    task : str
        What was asked, such as "mean".
    parameters : dict
        With which public parameters; a function among them is named as not written.
    data : list of dict
        Of which data sets: name, columns with their bounds or categories, conditions, unit.
    claim : dict
        What is claimed: ε, neighbors, unit and row, as in the certificate.
    public : list of str
        What was taken as public, as in the certificate.
    to_ask : list of str
        What must be true as well, and neither a proof nor a program can show: whoever approves the
        release has to ask.
    version : str
        The version of zerodelta.
    time : str
        When the ticket was taken, before a row was read (UTC).
    entries : list of dict
        Where it was paid for: ledger, number and hash of the entry, its time.

    """

    id: str
    task: str
    parameters: dict[str, Any]
    data: list[dict[str, Any]]
    claim: dict[str, Any]
    public: list[str]
    to_ask: list[str]
    version: str
    time: str
    entries: list[dict[str, Any]]

    @property
    def names(self) -> list[str | None]:
        """The names of the data sets, each once."""
        return list(dict.fromkeys(each.get("name") for each in self.data))

    @property
    def request_digest(self) -> str:
        """The digest of the request, which the entry of a ledger contains.

        It covers everything that is known before the entry is written and is not in the entry.
        """
        return digest_of([self.id, self.task, self.parameters, self.data, self.version])

    def to_json(self) -> dict[str, Any]:
        """Return the fields, as JSON has them."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    @staticmethod
    def from_json(data: Any) -> Record:
        """Read a record; a malformed one raises `RecordError`."""
        well = type(data) is dict and data.keys() == _TYPES.keys()
        well = well and all(type(data[name]) is kind for name, kind in _TYPES.items())
        well = well and all(type(each) is str for each in (*data["public"], *data["to_ask"]))
        well = well and _ID.fullmatch(data["id"]) is not None
        well = well and all(_is_data(each) for each in data["data"])
        well = well and all(_is_entry(each) for each in data["entries"])
        if not well:
            raise RecordError(
                "the record is not one of this version: something is missing, or was added. Load "
                "the file as it was saved."
            )
        return Record(**data)


def _is_data(data: Any) -> bool:
    return type(data) is dict and (data.get("name") is None or type(data["name"]) is str)


def _is_entry(data: Any) -> bool:
    return (
        type(data) is dict
        and data.keys() == _ENTRY.keys()
        and all(type(data[name]) is kind for name, kind in _ENTRY.items())
    )


# -- Signatures -----------------------------------------------------------------------------------
# Ed25519 signatures of saved releases, with `cryptography` (``pip install 'zerodelta[sign]'``).
#
# Signed is the digest of the file, so all of it. A signature says who vouches for it; that the
# steps of a certificate were run is what the signer has to know.

_CONTEXT = b"zerodelta release\n"
_HEX = re.compile(r"[0-9a-f]{64}")


@value
class Signature:
    """Who signed, by the public key, and the signature; both hexadecimal."""

    key: str
    signature: str

    def to_json(self) -> dict[str, str]:
        """Return the fields."""
        return {"key": self.key, "signature": self.signature}

    @staticmethod
    def from_json(data: Any) -> Signature:
        """Read a signature, which is not checked here."""
        well = type(data) is dict and data.keys() == {"key", "signature"}
        if not well or not all(type(each) is str and len(each) <= 128 for each in data.values()):
            raise RecordError("a signature is malformed: take the file from where it was saved.")
        return Signature(**data)


def sign(digest: str, key: str | os.PathLike[str]) -> Signature:
    """Return the signature of a digest with the private key in a file."""
    private = _private(key)
    public = private.public_key().public_bytes_raw()
    return Signature(key=public.hex(), signature=private.sign(_CONTEXT + digest.encode()).hex())


def check_private(key: str | os.PathLike[str]) -> None:
    """Refuse a file that holds no private key, before anything is paid that is to be signed."""
    _private(key)


def check_signed(digest: str, signatures: tuple[Signature, ...], public: str) -> None:
    """Refuse what no valid signature of this public key is about."""
    require_extra("cryptography", "sign")
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    of_key = [each for each in signatures if each.key == public]
    if not of_key:
        raise RecordError(
            f"it is not signed by {public[:16]}…: ask for a file that is, or leave out who signed."
        )
    for each in of_key:
        try:
            known = Ed25519PublicKey.from_public_bytes(bytes.fromhex(public))
            known.verify(bytes.fromhex(each.signature), _CONTEXT + digest.encode())
        except (InvalidSignature, ValueError):
            raise RecordError(
                f"the signature of {public[:16]}… is wrong: the file was changed, or signed by "
                "somebody else; do not rely on it."
            ) from None


def make_keys(private: Path, public: Path) -> str:
    """Write a new pair of keys to two files, and return the public one as text."""
    require_extra("cryptography", "sign")
    from cryptography.hazmat.primitives import serialization as form
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    for path in (private, public):
        if os.path.lexists(path):
            raise ParameterError(
                "keys",
                str(path),
                expected="a new file: a key that is lost cannot sign any more",
                remedy="choose another name",
            )
    made = Ed25519PrivateKey.generate()
    secret = made.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption())
    known = made.public_key()
    shown = known.public_bytes(form.Encoding.PEM, form.PublicFormat.SubjectPublicKeyInfo)
    write_new(private, secret, name="keys", mode=0o600)
    write_new(public, shown, name="keys")
    return str(known.public_bytes_raw().hex())


def as_public(given: str | os.PathLike[str]) -> str:
    """Return a public key as hexadecimal: what is given is that, or the path of its file."""
    if type(given) is str and _HEX.fullmatch(given):
        return given
    content = _content(given)
    known: Any = None
    if content is not None and b"-----BEGIN" in content:
        require_extra("cryptography", "sign")
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
        from cryptography.hazmat.primitives.serialization import load_pem_public_key

        with suppress(ValueError):
            known = load_pem_public_key(content)
        if isinstance(known, Ed25519PublicKey):
            return str(known.public_bytes_raw().hex())
    raise ParameterError(
        "signed_by",
        given,
        expected="an Ed25519 public key: 64 hexadecimal digits, or the path of a PEM file",
        remedy="pass the .pub file that `zerodelta keys` wrote",
    )


def _private(key: str | os.PathLike[str]) -> Any:
    require_extra("cryptography", "sign")
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    found: Any = None
    with suppress(ValueError, TypeError):  # TypeError: it has a password
        found = load_pem_private_key(_content(key) or b"", password=None)
    if not isinstance(found, Ed25519PrivateKey):
        raise ParameterError(
            "key",
            expected="the path of an Ed25519 private key without a password, as PEM",
            remedy="make one with `zerodelta keys`",
        )
    return found


def _content(path: Any) -> bytes | None:
    """Return what a file holds, None if there is none."""
    try:
        return Path(path).read_bytes()
    except (OSError, ValueError, TypeError):
        return None


_SHOWN = 1000
"""Arrays of which NumPy would print more are named: it writes out short axes in full."""


@value
class Diagnostics:
    """Which fractions of the rows were used as they are, clipped to the bounds, and unreadable.

    Noisy: they were paid for with a share of the release's ε. Each is clipped to [0, 1]; all are
    NaN if the noisy number of rows is not positive.
    """

    used: float
    clipped: float
    unreadable: float


class Payer(Protocol):
    """An account that paid for a release: a ledger."""

    def note_saved(self, entry: int, place: str, digest: str) -> None:
        """Write down where a release was saved, and its digest."""
        ...  # pragma: no cover


@value(repr=False)
class Release:
    """What may leave the room: the value, its certificate, and a forecast of its error.

    There is no trace of the mixing coin, the draft or any internal answer.

    Parameters
    ----------
    value : object
        The released value.
    certificate : Certificate
        What is claimed of it and why; check it with `zd.verify`.
    error : float or str
        The predicted error, from public inputs (and the released value) only; a text where it
        depends on unseen data.
    noise : NoiseLaw, optional
        The law of the noise on the value, where it is public and simple.
    seconds : float, optional
        Roughly how long the plan expected the run to take, where that may be long: an estimate
        from public numbers, never a measurement.
    diagnostics : Diagnostics, optional
        How the rows were read, if a share of ε was spent on that: ``diagnostics="1/100"``.
    sums : tuple of NoisySums
        The noisy integers of which the value was made, with their noise laws, where these are
        public: intervals follow from them.
    plan : object, optional
        What was decided before a row was read, such as the shares of ε in a table; print it.
    record : Record
        What was asked, of which data, when, with which version, and who paid.
    signatures : tuple of Signature
        Who signed it: see `sign`.
    paid_by : tuple of (Ledger, int)
        The ledgers that paid for it, with the numbers of their entries; not saved.

    """

    value: Any
    certificate: Certificate
    error: float | str
    noise: NoiseLaw | None = None
    seconds: float | None = None
    diagnostics: Diagnostics | None = None
    sums: tuple[NoisySums, ...] = ()
    plan: object | None = None
    record: Record | None = None
    signatures: tuple[Signature, ...] = ()
    paid_by: tuple[tuple[Payer, int], ...] = field(default=(), compare=False)

    def save(
        self, path: str | os.PathLike[str], *, sign: str | os.PathLike[str] | None = None
    ) -> None:
        """Save value, certificate and record to a new file, which `zd.load` reads.

        Load it whenever the value is wanted again: that is free. `zerodelta verify` checks it. A
        ledger that paid notes where it is, and names it when the same is asked again.

        Parameters
        ----------
        path : path
            A file that is not there yet.
        sign : path, optional
            A private key to sign it with; see `sign`.

        Examples
        --------
        >>> import tempfile, zerodelta as zd
        >>> path = tempfile.mkdtemp() + "/income.json"
        >>> zd.mean(np.full(100_000, 30.0), bounds=(0, 100), epsilon=1).save(path)
        >>> round(zd.load(path).value)
        30

        """
        from zerodelta.privacy.release_file import save

        save(self, path, key=sign)

    def sign(self, key: str | os.PathLike[str]) -> Release:
        """Return the release signed by you, with Ed25519; `save` writes the signature.

        Needs ``pip install 'zerodelta[sign]'``. A signature vouches for what a certificate cannot
        show: that its steps were run.

        Parameters
        ----------
        key : path
            Your private key; ``zerodelta keys`` makes one.

        Returns
        -------
        Release
            The same, with one more of `signatures`.

        """
        from zerodelta.privacy.release_file import content_of

        made = sign(digest_of(content_of(self)), key)
        return replace(self, signatures=(*self.signatures, made))

    def interval(
        self, level: Rational = "0.95", *, of: str = "sample", simultaneous: bool = False
    ) -> tuple[Any, Any]:
        """Return the lower and the upper ends of intervals, each in the value's own shape.

        Post-processing: it costs no ε, and may be asked as often as you like.

        Parameters
        ----------
        level : number
            At least with this probability an interval covers; the smallest such, by the exact law
            of the noise.
        of : "sample" or "population"
            What is covered: the statistic of the rows, or of what they were drawn from
            independently (units, where units are protected): then Hoeffding's and, with a variance,
            the empirical Bernstein bound take their shares. A population has no counts and sums.
        simultaneous : bool
            Whether all cells are covered together with that probability, and not each of them.

        Returns
        -------
        (lower, upper)
            Numbers, arrays or tables; of a table cells are empty (NaN) that have none.

        Notes
        -----
        **Covered** are the clipped values of the rows that count: what clipping to the bounds
        changes, and missing rows and cells, are not. Counts are whole and not negative, means lie
        within the bounds; the mean of a group whose noisy count is not positive can be anywhere
        there. Where the law of the error is not public (smooth sensitivity, propose-test-release,
        local sensitivity, quantiles, keys that passed a threshold) a `GuaranteeError` says what to
        ask instead (theory I).

        Examples
        --------
        >>> import zerodelta as zd
        >>> release = zd.mean(np.array([20.0, 40.0] * 50_000), bounds=(0, 100), epsilon=1)
        >>> lower, upper = release.interval(0.95)
        >>> round(upper - lower, 3)
        0.006

        """
        from zerodelta.privacy.interval_shapes import interval_of

        return interval_of(self, level, of=of, simultaneous=simultaneous)

    @property
    def covers(self) -> str:
        """What intervals cover and what not, or why there are none."""
        from zerodelta.privacy.interval_shapes import covered

        return covered(self)

    def to_frame(
        self,
        kind: str | None = None,
        *,
        level: Rational = "0.95",
        of: str = "sample",
        simultaneous: bool = False,
    ) -> Any:
        """Return the value as a data frame with the lower and upper ends of intervals.

        Of a table with columns such as `income_mean_lower`, of numbers with `value`, `lower` and
        `upper`, of a list of keys with the keys and `count`. Cells that have no interval are empty:
        `covers` says why (in pandas also ``frame.attrs["intervals"]``).

        Parameters
        ----------
        kind : "pandas", "polars" or "pyarrow", optional
            The library. By default that of the value, if it is a data frame; else the first of
            these that is installed; without any a dict of lists is returned.
        level, of, simultaneous
            As for `interval`.

        """
        from zerodelta.privacy.shown_release import frame_of

        return frame_of(self, kind, level, of=of, simultaneous=simultaneous)

    def plot(self, column: str | None = None, *, level: Rational = "0.95", ax: Any = None) -> Any:
        """Draw the value with its intervals, and return matplotlib's axes.

        Counts are bars from 0, quantiles ranges between those that lie opposite of each other, all
        else is points. Of a table `column` says which statistic, or whose quantiles: "income"; a
        mean is drawn with the quantiles of its column. Needs ``pip install 'zerodelta[plot]'``.
        """
        from zerodelta.privacy.shown_release import picture_of

        return picture_of(self, column, level, ax=ax)

    def report(
        self, path: str | os.PathLike[str], *, ledger: object | None = None, file: str | None = None
    ) -> None:
        """Write one HTML page about this release for those who have to approve it.

        Intervals drawn, who is protected, ε in odds, what was public and assumed, each step, how to
        check it. It needs no network, and nothing in it comes from data but the release.

        Parameters
        ----------
        path : path
            The file; one that is there is not written over.
        ledger : Ledger, optional
            The account of the data, whose budget is told.
        file : str, optional
            What the saved release is called, for the command that verifies it.

        Examples
        --------
        >>> import pathlib, tempfile, zerodelta as zd
        >>> path = pathlib.Path(tempfile.mkdtemp(), "report.html")
        >>> zd.mean(np.full(1000, 30.0), bounds=(0, 100), epsilon=1).report(path)
        >>> "a suspicion of 50 % rises to at most 73.2 %" in path.read_text(encoding="utf-8")
        True

        """
        made = import_module("zerodelta.report")  # a room above this one
        made.write_report([self], path, ledger=ledger, files=[] if file is None else [file])

    @property
    def counted(self) -> str:
        """Which ledgers counted its ε, or that none did: then somebody else has to add it up."""
        entries = [] if self.record is None else self.record.entries
        told = [f"entry {each['entry']} of ledger {each['ledger']}" for each in entries]
        return f"its ε was counted by {' and '.join(told)}" if told else "no ledger counted its ε"

    def _repr_html_(self) -> str:
        from zerodelta.privacy.shown_release import page_of

        return page_of(self)

    def __repr__(self) -> str:
        error = import_module("zerodelta.report.contents").error_words(self)  # a room above
        read = "" if self.diagnostics is None else f"        {self.diagnostics},\n"
        shown = (
            f"Release(value={_shown(self.value)},\n"
            f"        expected error: {error},\n{read}"
            f"        {self.certificate.summary},\n"
            f"        {self.counted})"
        )
        return printable(shown, lines=True)  # a frame shows its cells as they are


def _shown(value: Any) -> str:
    """Return the value as text, large arrays of many axes by their shapes.

    >>> _shown({"a": np.zeros((2,) * 10 + (5,)), "b": 1})
    "{'a': <float64 array of shape (2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 5)>, 'b': 1}"
    """
    if isinstance(value, np.ndarray) and math.prod(min(6, side) for side in value.shape) > _SHOWN:
        return f"<{value.dtype} array of shape {value.shape}>"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key!r}: {_shown(part)}" for key, part in value.items()) + "}"
    if type(value) is int:
        return number_text(value)
    try:
        return repr(value)
    except ValueError:  # integers in it that Python does not write in decimal
        return f"<{type(value).__name__}>"
