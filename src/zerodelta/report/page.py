"""The page: one self-contained HTML file, without scripts, that asks nothing of any network.

Nothing in it comes from data except the releases. It says the same to whoever listens to it:
landmarks, headings in order, tables with heads, drawings with a title.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from zerodelta.errors import ZeroDeltaError, require
from zerodelta.exact.rational import number_text
from zerodelta.privacy.new_file import write_new
from zerodelta.privacy.release import Release
from zerodelta.privacy.release_file import content_of
from zerodelta.privacy.step import digest_of
from zerodelta.privacy.verify import verify
from zerodelta.report import checking, sections
from zerodelta.report.answers import totals
from zerodelta.report.page_style import css
from zerodelta.value import value

LARGEST_PAGE = 200_000
"""Bytes; tables are shortened until a page has fewer."""

_LINES = (60, 25, 10, 4, 1)
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def page_of_releases(
    releases: Sequence[Release],
    *,
    ledger: Any = None,
    files: Sequence[str] = (),
    digests: Sequence[str | None] = (),
) -> str:
    """Return the page about some releases, whose certificates are verified first.

    Parameters
    ----------
    releases : list of Release
        Of one data set or several; the same one twice counts once.
    ledger : Ledger or list of Ledger, optional
        The accounts of their data, whose budgets are told; by default those that paid for
        releases of this process.
    files : list of str, optional
        What the saved releases are called, for the command that verifies them.
    digests : list of str, optional
        The digests of these files, of which signatures are checked; a wrong one is refused.

    Returns
    -------
    str
        HTML.

    """
    require(releases, "releases", expected="one release or more", remedy="pass what zd.load reads")
    shown = _distinct(releases, files, digests)
    distinct = [each.release for each in shown]
    for release in distinct:
        claim = release.certificate
        verify(claim, neighbors=claim.claim.neighbors, unit=claim.unit)
    text = ""
    for lines in _LINES:
        text = _page(shown, ledger, lines=lines)
        if len(text.encode()) < LARGEST_PAGE:
            break
    require(
        len(text.encode()) < LARGEST_PAGE,
        "releases",
        len(distinct),
        expected=f"no more than fit on a page of {LARGEST_PAGE} bytes",
        remedy="write several pages",
    )
    return text


def write_report(
    releases: Sequence[Release],
    path: str | os.PathLike[str],
    *,
    ledger: Any = None,
    files: Sequence[str] = (),
    digests: Sequence[str | None] = (),
) -> None:
    """Write the page to a new file, which is there as a whole or not at all."""
    text = page_of_releases(releases, ledger=ledger, files=files, digests=digests)
    write_new(path, text, name="out")


@value
class _Shown:
    """A release, the name of its file, and the file's digest, as far as they are known."""

    release: Release
    file: str
    digest: str | None


def _distinct(
    releases: Sequence[Release], files: Sequence[str], digests: Sequence[str | None]
) -> list[_Shown]:
    found: dict[Any, _Shown] = {}
    for place, release in enumerate(releases):
        key = place if release.record is None else digest_of(content_of(release))
        file = files[place] if place < len(files) else "release.json"
        digest = digests[place] if place < len(digests) else None
        found.setdefault(key, _Shown(release=release, file=file, digest=digest))
    return list(found.values())


def _page(shown: Sequence[_Shown], ledger: Any, *, lines: int) -> str:
    releases = [each.release for each in shown]
    files, digests = [each.file for each in shown], [each.digest for each in shown]
    several = len(releases) > 1
    asked = sections.asked_words(releases[0])
    accounts = _accounts(releases, ledger)
    title = f"{len(releases)} private releases" if several else asked[:1].upper() + asked[1:]
    parts = [
        ("published", "Published", sections.published(releases, lines=lines)),
        ("who", "Who is protected", sections.who(releases)),
        ("odds", "Odds", sections.odds(releases, accounts)),
        ("public", "Public", sections.public(releases)),
        ("assumed", "Assumed", sections.assumed(releases)),
        ("steps", "Steps", sections.method(releases)),
        ("verify", "Check it", checking.verifying(releases, files, digests)),
    ]
    if accounts:
        parts.append(("budget", "Budget", checking.budget([_budget(each) for each in accounts])))
    parts.append(("limits", "Not covered", sections.not_covered()))
    links = "".join(
        f'<li><a href="#{place}">{sections.esc(short)}</a></li>' for place, short, _ in parts
    )
    body = "".join(
        f'<section aria-labelledby="{place}">{content}</section>' for place, _, content in parts
    )
    summary = releases[0].certificate.summary
    if several:
        summary = "; ".join(f"{name}: {each}" for name, each in totals(releases).items())
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        f"<title>{sections.esc(title)}: privacy report</title><style>{css()}</style></head><body>"
        '<a class="skip" href="#content">Skip to the content</a>'
        f'<header><p class="quiet">Privacy report, zerodelta</p><h1>{sections.esc(title)}</h1>'
        f"<p>{sections.esc(summary)}</p></header>"
        f'<nav aria-label="Sections"><ul>{links}</ul></nav>'
        '<main id="content"><section aria-labelledby="glance"><h2 id="glance">At a glance</h2>'
        f"{sections.at_a_glance(releases, accounts)}</section>{body}</main>"
        "<footer><p>Written by zerodelta from releases and ledgers alone. The certificates were "
        "verified when this page was written; the page itself proves nothing: check the "
        "files.</p></footer></body></html>\n"
    )


def _accounts(releases: Sequence[Release], given: Any) -> Sequence[Any]:
    """Return the accounts whose totals are told: those that are given, else those that paid."""
    if given is not None:
        return given if isinstance(given, Sequence) else (given,)
    paid = dict.fromkeys(payer for release in releases for payer, _ in release.paid_by)
    return [each for each in paid if _is_readable(each)]


def _is_readable(payer: Any) -> bool:
    try:
        return isinstance(payer.spent, Fraction)
    except (ZeroDeltaError, AttributeError):  # gone meanwhile, or an account of somebody else's
        return False


def _budget(ledger: Any) -> list[tuple[str, str]]:
    limit = ledger.budget
    return [
        ("data set", ledger.data),
        ("budget", "no limit of its own" if limit is None else f"ε = {number_text(limit)}"),
        ("spent", f"ε = {number_text(ledger.spent)}"),
        ("left", f"ε = {number_text(ledger.remaining)}"),
        ("relation", ledger.neighbors.value),
        ("unit", "one row" if ledger.unit is None else ledger.unit),
        ("entries", str(ledger.entries)),
    ]
