"""The record of a release: what was asked, of which data, when, with which version, who paid.

All of it is public and was written down before the mechanism read a row: nothing here is computed
from rows, no hash of them either (theory A14.8), but what the certificate lists as public, such as
their number. Random bits of the operating system name the release, so that
two of the same question are two, whoever paid.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from zerodelta.errors import RecordError
from zerodelta.privacy.step import digest_of
from zerodelta.value import value

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
    def asked(self) -> str:
        """The digest of what was asked, which the entry of a ledger holds.

        Of all that is known before the entry is written, and is not in the entry itself.
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
