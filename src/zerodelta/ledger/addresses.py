"""Where a ledger is: a path, or the URL of a server without the secrets that were in it.

Secrets are kept by this process alone, apart from the addresses that ledgers hold; a process that
was started anew takes a password from PGPASSWORD or from the file .pgpass. What is no address is
refused without repeating it: it may hold one.
"""

from __future__ import annotations

import os
import re
from urllib.parse import unquote

from zerodelta.errors import ParameterError

_SECRETS: dict[str, dict[str, str]] = {}
"""By address, of this process and those forked from it; in no repr, record or pickle."""

_HOST = r"(?:[^\[\]:@/?#,\s]*|\[[0-9A-Fa-f:.%]+\])(?::\d*)?"
_URL = re.compile(
    r"(?i:postgres(?:ql)?)://"
    r"(?:(?P<user>[^:@/?#\s]*)(?::(?P<password>[^@/?#\s]*))?@)?"
    rf"(?P<hosts>{_HOST}(?:,{_HOST})*)(?P<database>/[^:@/?#\s]*)?(?:\?(?P<query>[^@?#\s]*))?"
)
"""As libpq reads one; what separates its parts is percent-encoded inside of them."""

_LIKE_URL = re.compile(r"(?is)[a-z][\w+.-]+:/|.*://|.*\bpassword\s*=")
"""A scheme (a drive has one letter), as pathlib writes it too, or libpq's list of settings."""

_SECRET = re.compile(r"passw|secret|scram", re.IGNORECASE)
_SCHEMA = re.compile(r"search_path\s*=\s*([a-z_][a-z0-9_]*)(?![^\s&])")


def as_address(given: str | os.PathLike[str]) -> str:
    """Return the absolute path, or the URL without its secrets, which this process remembers.

    >>> as_address("POSTGRES://ana:secret@db.example/budgets?sslmode=require")
    'postgresql://ana@db.example/budgets?sslmode=require'
    """
    path = os.fspath(given) if isinstance(given, (str, os.PathLike)) else ""
    try:
        if type(path) is str and path and "\0" not in path:
            os.fsencode(path)
            # one file, one connection: closing a second one would drop the locks of the first
            return _without_secrets(path) if _LIKE_URL.match(path) else os.path.realpath(path)
    except (ValueError, OSError):  # no path or URL at all
        pass
    raise ParameterError(
        "ledger",
        expected="a path, or a URL such as postgresql://user@host/database; it is not repeated "
        "here, as it may hold a password",
        remedy='pass "people.ledger", say; in a URL write %40, %3A, %2F, %3F, %23 for @ : / ? #',
    )


def shown(given: str) -> str:
    """Return an address as it was given, without secrets, for messages.

    >>> shown("people.ledger"), shown("postgresql://ana:secret@db/budgets")
    ('people.ledger', 'postgresql://ana@db/budgets')
    """
    return as_address(given) if _LIKE_URL.match(given) else given


def is_url(address: str) -> bool:
    """Tell whether an address is one of a server."""
    return address.startswith("postgresql://")


def secrets_of(address: str) -> dict[str, str]:
    """Return what a URL said that its address does not: a password, as the driver takes it."""
    return dict(_SECRETS.get(address, {}))


def schema_of(address: str) -> str:
    """Return the schema that holds the tables: "public", or what the URL's options name.

    Never that of "$user", which whoever may make schemas could put before it.

    >>> schema_of("postgresql://db/budgets?options=-csearch_path%3Dteam")
    'team'
    """
    options = unquote(address.partition("?")[2])
    found = _SCHEMA.search(options)
    if found is None and "search_path" in options:
        raise ParameterError(
            "ledger",
            address,
            expected="one schema as its search_path, in small letters",
            remedy="write ?options=-csearch_path%3Dteam, say",
        )
    return "public" if found is None else found.group(1)


def _without_secrets(url: str) -> str:
    parts = _URL.fullmatch(url)
    if parts is None:
        raise ValueError
    said: dict[str, str] = {}
    shown = []
    for each in (parts["query"] or "").split("&"):
        name, _, value = each.partition("=")
        if _SECRET.search(unquote(name)):
            said[unquote(name)] = unquote(value)
        elif each:
            shown.append(each)
    if parts["password"]:
        said["password"] = unquote(parts["password"])
    user = "" if parts["user"] is None else f"{parts['user']}@"
    query = f"?{'&'.join(shown)}" if shown else ""
    clean = f"postgresql://{user}{parts['hosts']}{parts['database'] or ''}{query}"
    if said:
        _SECRETS[clean] = said
    return clean
