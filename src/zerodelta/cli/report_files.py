"""`zerodelta report`: saved releases, read and judged again, on one page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from zerodelta.errors import CertificateError
from zerodelta.ledger.ledger import DEFAULT_DATA, Ledger
from zerodelta.privacy.release import Release
from zerodelta.privacy.release_file import read_file
from zerodelta.records.load import load
from zerodelta.report import write_report


def report_files(files: Sequence[Path], out: Path, ledger: str | None) -> None:
    """Write the page about files; with a ledger, what it says of each of their data sets."""
    releases, digests = [], []
    for path in files:
        release, digest = _read(path)
        releases.append(release)
        digests.append(digest)
    accounts = () if ledger is None else _accounts(ledger, releases)
    names = [str(path) for path in files]
    write_report(releases, out, ledger=accounts, files=names, digests=digests)


def _read(path: Path) -> tuple[Release, str]:
    try:
        digest = read_file(path).digest
        loaded = load(path)
    except CertificateError as error:
        raise CertificateError(f"{path}: NOT VERIFIED: {error}") from None
    return getattr(loaded, "release_", loaded), digest


def _accounts(ledger: str, releases: Sequence[Release]) -> list[Ledger]:
    records = [each.record for each in releases if each.record is not None]
    names = dict.fromkeys(n for each in records for n in each.names if n is not None)
    return [Ledger(ledger, data=name) for name in names or [DEFAULT_DATA]]
