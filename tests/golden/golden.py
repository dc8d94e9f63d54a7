"""Golden releases: what every public release is under replayed bits, kept and compared."""

from __future__ import annotations

import json
import math
import warnings
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import zerodelta as zd
from golden import channels, estimators, papers, sources, studies, verbs
from golden.description import described, handed_text, plain
from golden.seams import forecast, replayed, spied
from golden.verbs import Case

FILES = {
    "channels": channels.CASES,
    "estimators": estimators.CASES,
    "papers": papers.CASES,
    "sources": sources.CASES,
    "studies": studies.CASES,
    "verbs": verbs.CASES,
}
"""The cases, by the file in which they are, and their releases are stored."""

CASES: dict[str, Case] = {name: case for cases in FILES.values() for name, case in cases.items()}
WRITE = "python tests/golden/write.py"

PUBLIC = (zd, zd.queries, zd.purification)

_STORED = Path(__file__).resolve().parent / "stored"
_CLOSE, _ZERO = 1e-9, 1e-12
"""How far floats may be apart, relatively and near 0: what other processors make of a formula."""


def asked(name: str) -> tuple[Any, dict[str, Any]]:
    """Return what a case is called by its name: something public, and its method if it has one."""
    whole, _, method = name.partition(", method=")
    first, *rest = whole.partition(", ")[0].split(".")
    called = next(getattr(room, first) for room in PUBLIC if hasattr(room, first))
    for part in rest:
        called = getattr(called, part)
    return called, {"method": method} if method else {}


def call_of(name: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return what a case hands to its verb."""
    call: tuple[tuple[Any, ...], dict[str, Any]] = CASES[name](lambda *args, **given: (args, given))
    return call


def made(name: str) -> dict[str, Any]:
    """Return what is kept of a case, as it is now."""
    called, options = asked(name)
    handed: list[Any] = []
    # the same bits for all cases of a verb: from every kind of source the same comes out
    label = name.partition(", ")[0]
    with warnings.catch_warnings(), replayed(label), spied(lambda h: handed.append(handed_text(h))):
        warnings.simplefilter("error")
        found = CASES[name](called, **options)
    release = getattr(found, "release_", found)
    if isinstance(release, zd.records.Release):
        proves_its_claim(release.certificate)
    told = described(found, handed)
    if "forecast" in told:
        told["foreseen"] = plain(_foreseen(name))
    kept: dict[str, Any] = json.loads(json.dumps(told))
    return kept


def proves_its_claim(certificate: Any) -> None:
    """Assert that a certificate proves its claim, for those it names, and no smaller ε."""
    claim = certificate.claim
    who = {"neighbors": claim.neighbors, "unit": certificate.unit}
    assert zd.verify(certificate, **who) == claim
    if isinstance(claim, zd.purification.PureDP) and claim.exact_epsilon:
        with pytest.raises(zd.errors.CertificateError, match="ε"):
            zd.verify(certificate, epsilon=claim.exact_epsilon * Fraction(99, 100), **who)


def _foreseen(name: str) -> dict[str, Any]:
    called, options = asked(name)
    return forecast(lambda: CASES[name](called, **options))


def stored(name: str) -> dict[str, Any]:
    """Return what is kept of a case, as it was written; nothing if it never was."""
    found: dict[str, Any] = _read(_file_of(name)).get(name, {})
    return found


def _file_of(name: str) -> str:
    return next(file for file, cases in FILES.items() if name in cases)


def _read(file: str) -> dict[str, Any]:
    path = _STORED / f"{file}.json"
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return found


def write(names: list[str]) -> list[str]:
    """Write the named cases, and drop those that are gone; return the names of what changed.

    Of a case that fails the old release stays, and its error is raised when all are written.
    """
    changed, failed = [], []
    for file, cases in FILES.items():
        before = _read(file)
        found = {name: kept for name, kept in before.items() if name in cases}
        for name in (name for name in names if name in cases):
            try:
                found[name] = made(name)
            except Exception as error:
                failed.append(f"{name}: {type(error).__name__}: {error}")
        changed += [name for name in {**before, **found} if before.get(name) != found.get(name)]
        if found != before:
            _STORED.mkdir(exist_ok=True)
            (_STORED / f"{file}.json").write_text(_text_of(found), encoding="utf-8")
    if failed:
        raise RuntimeError("\n".join(["these make no release, and were not written:", *failed]))
    return changed


def _text_of(found: dict[str, Any]) -> str:
    """Return the cases in order, a line for each field: what changed shows line by line."""
    cases = []
    for name in sorted(found):
        lines = [
            f"  {json.dumps(field, ensure_ascii=False)}: {json.dumps(kept, ensure_ascii=False)}"
            for field, kept in sorted(found[name].items())
        ]
        cases.append(f"{json.dumps(name)}: {{\n" + ",\n".join(lines) + "\n}")
    return "{\n" + ",\n".join(cases) + "\n}\n"


def differences(name: str) -> list[str]:
    """Return a line for each field in which a release differs from what was stored of it."""
    before, now = stored(name), made(name)
    if not before:
        return [f"{name}: was never stored; run: {WRITE} '{name}'"]
    return [
        f"{name} · {field}\n  old: {_shown(before.get(field))}\n  new: {_shown(now.get(field))}"
        for field in sorted({*before, *now})
        if field not in before or field not in now or not alike(before[field], now[field])
    ]


def _shown(kept: Any) -> str:
    return json.dumps(kept, ensure_ascii=False, sort_keys=True)


def alike(old: Any, new: Any) -> bool:
    """Tell whether two kept values are equal, floats up to their last digits."""
    if isinstance(old, float) and isinstance(new, float):
        return math.isclose(old, new, rel_tol=_CLOSE, abs_tol=_ZERO)
    if isinstance(old, dict) and isinstance(new, dict):
        return old.keys() == new.keys() and all(alike(old[each], new[each]) for each in old)
    if isinstance(old, list) and isinstance(new, list):
        return len(old) == len(new) and all(map(alike, old, new))
    return type(old) is type(new) and bool(old == new)
