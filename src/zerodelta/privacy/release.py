"""Define releases: a published value with its certificate, record and signatures, and no more."""

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
from zerodelta.exact.noise_tails import NoiseLaw
from zerodelta.exact.rational import Rational, number_text
from zerodelta.privacy.certificate import Certificate
from zerodelta.privacy.readable import write_new
from zerodelta.privacy.statistics import Measurement
from zerodelta.privacy.steps import digest_of
from zerodelta.value import published, value

# -- The record of a release: the request, the data sets, the time, the version, the payment ------
# All of it is public and was written before the mechanism read a row. Nothing here is computed
# from rows, not even a hash (theory A14.8), except what the certificate lists as public, such as
# their number. A random id tells two releases of the same question apart.

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
    """The request that a release answers, with its claim, time and payment; saved with it.

    Parameters
    ----------
    id : str
        The name of the release: 32 random hexadecimal digits.
    task : str
        The verb, such as "mean".
    parameters : dict
        Its public parameters; a function is written as {"not written": "function"}.
    data : list of dict
        The data sets: name, columns with their bounds or categories, conditions, unit.
    claim : dict
        The claim of the certificate: ε, neighbors, unit and row.
    public : list of str
        The public inputs, as in the certificate.
    to_ask : list of str
        Premises that neither a proof nor a program can check: whoever approves the release has to
        ask about them.
    version : str
        The version of zerodelta.
    time : str
        The time of the ticket, before a row was read (UTC).
    entries : list of dict
        The debits: ledger, number and hash of the entry, its time.

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
        return list(dict.fromkeys(data.get("name") for data in self.data))

    @property
    def request_digest(self) -> str:
        """The digest of the request, which the entry of a ledger contains.

        It covers everything that is known before the entry is written and is not in the entry.
        """
        return digest_of([self.id, self.task, self.parameters, self.data, self.version])

    def to_json(self) -> dict[str, Any]:
        """Return the fields as a JSON object."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @staticmethod
    def from_json(data: Any) -> Record:
        """Read a record; a malformed one raises `RecordError`."""
        well_formed = (
            type(data) is dict
            and data.keys() == _TYPES.keys()
            and all(type(data[name]) is kind for name, kind in _TYPES.items())
            and all(type(line) is str for line in (*data["public"], *data["to_ask"]))
            and _ID.fullmatch(data["id"]) is not None
            and all(map(_is_data, data["data"]))
            and all(map(_is_entry, data["entries"]))
        )
        if not well_formed:
            raise RecordError(
                "the record is not one of this version: something is missing, or was added. Load "
                "the file as it was saved."
            )
        return Record(**data)


def _is_data(data: Any) -> bool:
    """Tell whether JSON describes a data set: its name is a text, or there is none."""
    return type(data) is dict and (data.get("name") is None or type(data["name"]) is str)


def _is_entry(data: Any) -> bool:
    """Tell whether JSON is an entry of a ledger."""
    return (
        type(data) is dict
        and data.keys() == _ENTRY.keys()
        and all(type(data[name]) is kind for name, kind in _ENTRY.items())
    )


# -- Signatures -----------------------------------------------------------------------------------
# Ed25519 signatures of saved releases, with `cryptography` (``pip install 'zerodelta[sign]'``).
#
# The digest of the file is signed, so all of it is. A signature says who vouches for it: only the
# signer can know that the steps of the certificate were run.

_CONTEXT = b"zerodelta release\n"
_HEX = re.compile(r"[0-9a-f]{64}")


@value
class Signature:
    """The public key of a signer, and the signature; both hexadecimal."""

    key: str
    signature: str

    def to_json(self) -> dict[str, str]:
        """Return the fields as a JSON object."""
        return {"key": self.key, "signature": self.signature}

    @staticmethod
    def from_json(data: Any) -> Signature:
        """Read a signature; `check_signed` checks it."""
        well_formed = type(data) is dict and data.keys() == {"key", "signature"}
        if not well_formed or not all(type(t) is str and len(t) <= 128 for t in data.values()):
            raise RecordError("a signature is malformed: take the file from where it was saved.")
        return Signature(**data)


def sign(digest: str, key: str | os.PathLike[str]) -> Signature:
    """Return the signature of a digest with the private key in a file."""
    private = _private(key)
    public = private.public_key().public_bytes_raw()
    return Signature(key=public.hex(), signature=private.sign(_CONTEXT + digest.encode()).hex())


def check_private(key: str | os.PathLike[str]) -> None:
    """Refuse a file without a private key, before a release that is to be signed is paid for."""
    _private(key)


def check_signed(digest: str, signatures: tuple[Signature, ...], public: str) -> None:
    """Refuse a digest without a signature of this public key, or with a wrong one."""
    require_extra("cryptography", "sign")
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    of_key = [signature for signature in signatures if signature.key == public]
    if not of_key:
        raise RecordError(
            f"it is not signed by {public[:16]}…: ask for a signed file, or leave out the key."
        )
    for signed in of_key:
        try:
            key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(public))
            key.verify(bytes.fromhex(signed.signature), _CONTEXT + digest.encode())
        except (InvalidSignature, ValueError):
            raise RecordError(
                f"the signature of {public[:16]}… is wrong: the file was changed, or signed by "
                "somebody else; do not rely on it."
            ) from None


def make_keys(private: Path, public: Path) -> str:
    """Write a new pair of keys to two files, and return the public one as text."""
    require_extra("cryptography", "sign")
    from cryptography.hazmat.primitives import serialization as formats
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    for path in (private, public):
        if os.path.lexists(path):
            raise ParameterError(
                "keys",
                str(path),
                expected="a new file: an overwritten key cannot be restored",
                remedy="choose another name",
            )
    key = Ed25519PrivateKey.generate()
    pem, pkcs8 = formats.Encoding.PEM, formats.PrivateFormat.PKCS8
    private_text = key.private_bytes(pem, pkcs8, formats.NoEncryption())
    public_key = key.public_key()
    public_text = public_key.public_bytes(pem, formats.PublicFormat.SubjectPublicKeyInfo)
    write_new(private, private_text, name="keys", mode=0o600)
    write_new(public, public_text, name="keys")
    return str(public_key.public_bytes_raw().hex())


def as_public(key: str | os.PathLike[str]) -> str:
    """Return a public key as hexadecimal, from hexadecimal or the path of its PEM file."""
    if type(key) is str and _HEX.fullmatch(key):
        return key
    content = _content(key)
    public_key: Any = None
    if content is not None and b"-----BEGIN" in content:
        require_extra("cryptography", "sign")
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
        from cryptography.hazmat.primitives.serialization import load_pem_public_key

        with suppress(ValueError):
            public_key = load_pem_public_key(content)
        if isinstance(public_key, Ed25519PublicKey):
            return str(public_key.public_bytes_raw().hex())
    raise ParameterError(
        "signed_by",
        key,
        expected="an Ed25519 public key: 64 hexadecimal digits, or the path of a PEM file",
        remedy="pass the .pub file that `zerodelta keys` wrote",
    )


def _private(path: str | os.PathLike[str]) -> Any:
    """Return the private key in a file, or refuse the file without showing its content."""
    require_extra("cryptography", "sign")
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    key: Any = None
    with suppress(ValueError, TypeError):  # TypeError: it has a password
        key = load_pem_private_key(_content(path) or b"", password=None)
    if not isinstance(key, Ed25519PrivateKey):
        raise ParameterError(
            "key",
            expected="the path of an Ed25519 private key without a password, as PEM",
            remedy="make one with `zerodelta keys`",
        )
    return key


def _content(path: Any) -> bytes | None:
    """Return the bytes of a file; None if it cannot be read."""
    try:
        return Path(path).read_bytes()
    except (OSError, ValueError, TypeError):
        return None


_SHOWN = 1000
"""An array of which NumPy would print more cells is shown by its shape: NumPy shortens long axes
only, and writes many short ones out in full."""


@published
@value
class Diagnostics:
    """The noisy fractions of rows used as they are, clipped to the bounds, and unreadable.

    They cost a share of the release's ε. Each is clipped to [0, 1]; all are NaN if the noisy
    number of rows is not positive.
    """

    used: float
    clipped: float
    unreadable: float


class Payer(Protocol):
    """An account that paid for a release: a ledger."""

    def note_saved(self, entry: int, place: str, digest: str) -> None:
        """Write the path of a saved release, and its digest, into the account."""
        ...  # pragma: no cover


@value(repr=False)
class Release:
    """A published value, its certificate, and a forecast of its error.

    It has no trace of the mixing coin, the unpublished draft or any internal answer.

    Parameters
    ----------
    value : object
        The released value.
    certificate : Certificate
        The claim and its proof; check it with `zd.verify`.
    error : float or str
        The predicted error, from public inputs (and the released value) only; a text where it
        depends on unseen data.
    noise : NoiseLaw, optional
        The law of the noise on the value, where it is public and simple.
    seconds : float, optional
        Roughly how long the plan expected the run to take, where that may be long: an estimate
        from public numbers, never a measurement.
    diagnostics : Diagnostics, optional
        Fractions of clipped and unreadable rows, if a share of ε was spent on them:
        ``diagnostics="1/100"``.
    sums : tuple of Measurement
        The noisy integers from which the value was computed, with their noise laws, where these
        are public: intervals follow from them.
    plan : object, optional
        Decisions made before a row was read, such as the shares of ε in a table; print it.
    record : Record
        The request, the data sets, the time, the version, and the payment.
    signatures : tuple of Signature
        The signatures: see `sign`.
    paid_by : tuple of (Ledger, int)
        The ledgers that paid for it, with the numbers of their entries; not saved.

    """

    value: Any
    certificate: Certificate
    error: float | str
    noise: NoiseLaw | None = None
    seconds: float | None = None
    diagnostics: Diagnostics | None = None
    sums: tuple[Measurement, ...] = ()
    plan: object | None = None
    record: Record | None = None
    signatures: tuple[Signature, ...] = ()
    paid_by: tuple[tuple[Payer, int], ...] = field(default=(), compare=False)

    def save(
        self, path: str | os.PathLike[str], *, sign: str | os.PathLike[str] | None = None
    ) -> None:
        """Save value, certificate and record to a new file, which `zd.load` reads.

        Loading it again is free. `zerodelta verify` checks it. A ledger that paid notes the path,
        and names it when the same question is asked again.

        Parameters
        ----------
        path : path
            A new file.
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

        Needs ``pip install 'zerodelta[sign]'``. A certificate cannot show that its steps were run;
        a signature vouches for that.

        Parameters
        ----------
        key : path
            Your private key; ``zerodelta keys`` makes one.

        Returns
        -------
        Release
            The same release, with one more entry in `signatures`.

        """
        from zerodelta.privacy.release_file import content_of

        signature = sign(digest_of(content_of(self)), key)
        return replace(self, signatures=(*self.signatures, signature))

    def interval(
        self, level: Rational = "0.95", *, of: str = "sample", simultaneous: bool = False
    ) -> tuple[Any, Any]:
        """Return the lower and the upper ends of intervals, each in the value's own shape.

        This is post-processing: it costs no ε, however often it is called.

        Parameters
        ----------
        level : number
            The smallest probability with which an interval covers, by the exact law of the noise.
        of : "sample" or "population"
            Cover the statistic of the rows, or that of the distribution from which rows (units,
            where units are protected) were drawn independently: such intervals are wider, by
            Hoeffding's or, with a variance, the empirical Bernstein bound. A population has no
            counts and sums.
        simultaneous : bool
            Whether that probability is for all cells together instead of each cell.

        Returns
        -------
        (lower, upper)
            Numbers, arrays or tables; cells of a table without an interval are empty (NaN).

        Notes
        -----
        **Covered** is the statistic of the clipped values of the rows that count. Not covered are
        the bias of clipping, and missing rows and cells. Counts are whole and not negative, means
        lie within the bounds; the interval of the mean of a group whose noisy count is not positive
        is all of the bounds. Where the law of the error is not public (smooth sensitivity,
        propose-test-release, local sensitivity, quantiles, keys that passed a threshold) a
        `ParameterError` says what to ask instead (theory I).

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
        """A sentence on what the intervals cover, or why there are none."""
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

        A table gets columns such as `income_mean_lower`; numbers become `value`, `lower` and
        `upper`; a list of keys becomes the keys and `count`. Cells without an interval are empty:
        `covers` says why (in pandas also ``frame.attrs["intervals"]``).

        Parameters
        ----------
        kind : "pandas", "polars" or "pyarrow", optional
            The library. By default that of the value, if it is a data frame; else the first one
            that is installed. Without any a dict of lists is returned.
        level, of, simultaneous
            As for `interval`.

        """
        from zerodelta.privacy.shown_release import frame_of

        return frame_of(self, kind, level, of=of, simultaneous=simultaneous)

    def plot(self, column: str | None = None, *, level: Rational = "0.95", ax: Any = None) -> Any:
        """Draw the value with its intervals, and return matplotlib's axes.

        Counts are bars from 0, quantiles are ranges such as that from the 10 % to the 90 %
        quantile, everything else is points. In a table `column` names a statistic, or the column
        whose quantiles are drawn: "income"; a mean is drawn with the quantiles of its column.
        Needs ``pip install 'zerodelta[plot]'``.
        """
        from zerodelta.privacy.shown_release import picture_of

        return picture_of(self, column, level, ax=ax)

    def report(
        self, path: str | os.PathLike[str], *, ledger: object | None = None, file: str | None = None
    ) -> None:
        """Write one HTML page about this release for those who have to approve it.

        It shows the intervals, who is protected, ε in odds, the public inputs, the assumptions,
        each step, and the command that verifies it. It needs no network, and nothing in it comes
        from the data except the release.

        Parameters
        ----------
        path : path
            A new file.
        ledger : Ledger, optional
            The account of the data, whose budget is shown.
        file : str, optional
            The name of the saved release, for the command that verifies it.

        Examples
        --------
        >>> import pathlib, tempfile, zerodelta as zd
        >>> path = pathlib.Path(tempfile.mkdtemp(), "report.html")
        >>> zd.mean(np.full(1000, 30.0), bounds=(0, 100), epsilon=1).report(path)
        >>> "a suspicion of 50 % rises to at most 73.2 %" in path.read_text(encoding="utf-8")
        True

        """
        report = import_module("zerodelta.report")  # a layer above this one
        report.write_report([self], path, ledger=ledger, files=[] if file is None else [file])

    @property
    def counted(self) -> str:
        """A sentence naming the ledgers that counted its ε, or saying that none did."""
        entries = [] if self.record is None else self.record.entries
        names = [f"entry {entry['entry']} of ledger {entry['ledger']}" for entry in entries]
        return f"its ε was counted by {' and '.join(names)}" if names else "no ledger counted its ε"

    def _repr_html_(self) -> str:
        from zerodelta.privacy.shown_release import page_of

        return page_of(self)

    def __repr__(self) -> str:
        error = import_module("zerodelta.report.contents").error_words(self)  # a layer above
        diagnostics = "" if self.diagnostics is None else f"        {self.diagnostics},\n"
        shown = (
            f"Release(value={_shown(self.value)},\n"
            f"        expected error: {error},\n{diagnostics}"
            f"        {self.certificate.summary},\n"
            f"        {self.counted})"
        )
        return printable(shown, lines=True)  # a frame shows its cells as they are


def _shown(value: Any) -> str:
    """Return the value as text; an array that would be long is shown by its shape.

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
