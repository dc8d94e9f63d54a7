"""How much work a certificate may ask of `verify`, counted before any of it is evaluated.

Single numbers and lists are short by their domains (`privacy/domains.py`), yet many of them
together could still take minutes: exact sums grow with the digits of all denominators, a Rényi
order is evaluated for every step, and some theorems search for a supremum. Certificates of ours
stay far below every limit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from zerodelta.errors import CertificateError
from zerodelta.privacy.step import canonical
from zerodelta.privacy.theorems.registry import THEOREMS
from zerodelta.privacy.theorems.subsampling import SamplingWithoutReplacement
from zerodelta.privacy.theorems.theorem import Channel

MOST_STEPS = 10_000
"""Steps, counting each entry of a composed claim's "pure" list as one."""

MOST_CURVES = 1_000
"""Different steps whose Rényi curves are added: before a channel, or for a claim with a δ or ρ."""

MOST_CHANNELS = 100
"""Parts that end in a channel."""

MOST_COSTLY = 10
"""Steps of theorems whose inequality is a search (C9) or a long sum (WOR)."""

MOST_DIGITS = 100_000
"""Decimal digits of all numbers that are added exactly."""

MOST_LISTED, MOST_LISTED_DIGITS = 20_000, 1_000_000
"""Entries of all lists, and their digits: one table of 10 000 Rényi orders and their values."""

MOST_EVALUATIONS = 150_000
"""Steps times tabulated Rényi orders; a table or a WOR step counts as `_CURVE` more steps."""

_CURVE = 10


def check_work(claim: Mapping[str, Any], parts: list[Mapping[str, Any]]) -> None:
    """Refuse the written claim and parts of a certificate if judging them could take long."""
    steps = [step for part in parts for step in part["steps"]]
    written = [claim, *(step["numbers"] for step in steps)]
    labels = [str(step["theorem"]) for step in steps]
    pure = [entry for numbers in written for entry in _list(numbers, "pure")]
    purified = [part["steps"] for part in parts if any(map(_is_channel, part["steps"][-2:]))]
    curved = purified if claim.get("kind") == "pure" else [steps]
    # each channel evaluates the curves of its own part
    curves = sum(
        len({(str(step["theorem"]), canonical(step["numbers"])) for step in some})
        for some in curved
    )
    _limit(len(steps) + len(pure), MOST_STEPS, "steps")
    _limit(len(parts), MOST_STEPS, "parts")
    _limit(curves + len(pure), MOST_CURVES, "different steps with Rényi curves")
    _limit(len(purified), MOST_CHANNELS, "parts with a channel")
    costly = sum(label in THEOREMS and THEOREMS[label].costly for label in labels)
    _limit(costly, MOST_COSTLY, "steps of theorems C9 and WOR")
    lists = {
        (place, name): _flat(value)
        for place, numbers in enumerate(written)
        for name, value in numbers.items()
        if type(value) is list and name != "pure"
    }
    _limit(sum(map(len, lists.values())), MOST_LISTED, "entries of lists")
    # a quantum is read by people and enters no inequality
    used = [number for (_, name), values in lists.items() if name != "quantum" for number in values]
    _limit(sum(map(_digits, used)), MOST_LISTED_DIGITS, "digits in lists")
    single = [number for numbers in written for number in numbers.values()]
    stated = [part.get("epsilon") for part in parts]
    _limit(sum(map(_digits, [*single, *stated, *_flat(pure)])), MOST_DIGITS, "digits")
    tables = [orders for numbers in written if (orders := _orders(numbers))]
    sampled = labels.count(SamplingWithoutReplacement.label)
    weighed = len(steps) + len(pure) + _CURVE * (len(tables) + sampled)
    _limit(sum(map(len, tables)) * weighed, MOST_EVALUATIONS, "steps times Rényi orders")


def _is_channel(step: Mapping[str, Any]) -> bool:
    theorem = THEOREMS.get(str(step["theorem"]))
    return theorem is not None and issubclass(theorem, Channel)


def _limit(found: int, most: int, what: str) -> None:
    if found > most:
        raise CertificateError(
            f"more than {most} {what}: no release of ours has so many, and a file that does could "
            "keep the verifier busy."
        )


def _list(numbers: Mapping[str, Any], name: str) -> list[Any]:
    value = numbers.get(name)
    return value if type(value) is list else []


def _orders(numbers: Mapping[str, Any]) -> list[Any]:
    """Return the Rényi orders of a stated claim: a table's, or those inside a composed one."""
    table = _list(numbers, "rdp")
    return _list(numbers, "orders") or (table[0] if table and type(table[0]) is list else [])


def _flat(entries: list[Any]) -> list[Any]:
    """Return all numbers of a list, those of its rows too."""
    found: list[Any] = []
    for entry in entries:
        found.extend(_flat(entry) if type(entry) is list else [entry])
    return found


def _digits(value: Any) -> int:
    """Return how many decimal digits a written number has when its exponent is written out.

    Hexadecimal sizes count as none: only their logarithm is ever used.

    >>> _digits("1/300"), _digits("1e-300"), _digits(10**9), _digits("0x" + "f" * 9000)
    (5, 306, 10, 0)
    """
    if type(value) is int:
        return value.bit_length() * 3 // 10 + 1
    if type(value) is not str or value.startswith("0x"):
        return 0
    power = value.partition("e")[2].lstrip("+-")
    return len(value) + (int(power) if power.isdecimal() and len(power) <= 4 else 0)
