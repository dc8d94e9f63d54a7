"""A published value with its certificate; it carries nothing else that was computed from data."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import field, replace
from importlib import import_module
from typing import Any, Protocol

import numpy as np

from zerodelta.errors import printable
from zerodelta.exact.noise_law import NoiseLaw, NoisySums
from zerodelta.exact.rational import Rational, number_text
from zerodelta.privacy.certificate import Certificate
from zerodelta.privacy.record import Record
from zerodelta.privacy.signatures import Signature
from zerodelta.privacy.step import digest_of
from zerodelta.value import value

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
        from zerodelta.privacy.signatures import sign

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
        from zerodelta.privacy.pictures import picture_of

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
        error = self.error if isinstance(self.error, str) else f"{self.error:.4g}"
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
