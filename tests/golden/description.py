"""What is kept of a release: all that is public of it, and what its mechanisms were handed."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import re
from collections.abc import Mapping, Set
from datetime import date
from enum import Enum
from fractions import Fraction
from typing import Any

import numpy as np

import zerodelta as zd
from golden.seams import Rows

_LONGEST, _LONGEST_FLOATS = 400, 8000
"""Characters of what is written out; of what is longer the SHA-256 is kept. Floats are written out,
since other processors may find other last digits."""

_TOLD_ELSEWHERE = {"id", "time", "version", "claim", "public"}
"""Of a record: what differs each time, or is the certificate's."""


def plain(value: Any) -> Any:
    """Return a value as JSON can write it: different ones differently, whatever the machine."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, np.ndarray):
        listed = [plain(each) for each in value.ravel().tolist()]
        return {"array": listed, "dtype": value.dtype.str, "shape": list(value.shape)}
    if isinstance(value, np.generic):
        return {"scalar": plain(value.item()), "dtype": value.dtype.str}
    if isinstance(value, int):
        return value if value.bit_length() <= 64 else hex(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else repr(value)
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, (Fraction, date)):
        return str(value)
    if isinstance(value, Mapping):
        return {"mapping": [[plain(key), plain(each)] for key, each in value.items()]}
    if isinstance(value, Set):
        return {"set": sorted(json.dumps(plain(each)) for each in value)}
    if dataclasses.is_dataclass(value):
        parts = {each.name: plain(getattr(value, each.name)) for each in dataclasses.fields(value)}
        return {"class": type(value).__name__, **parts}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {"class": type(value).__name__, **{n: plain(v) for n, v in value._asdict().items()}}
    if isinstance(value, (list, tuple, range)):
        return [plain(each) for each in value]
    if hasattr(value, "to_dict") and hasattr(value, "columns"):  # a data frame
        names = [str(each) for each in value.columns]
        return {"frame": [[name, plain(value[name].to_list())] for name in names]}
    if hasattr(value, "lines") and hasattr(value, "columns"):  # a released table
        return {"table": [[name, plain(value[name])] for name in value.columns]}
    if hasattr(value, "to_pydict"):
        return {"frame": [[name, plain(each)] for name, each in value.to_pydict().items()]}
    return {"class": type(value).__name__, "text": _text_of(value)}


def _text_of(value: Any) -> str:
    text = repr(value)
    if " at 0x" in text:
        raise TypeError(f"{type(value)}: no text without an address; say in `plain` what it holds")
    return text


def short(found: Any) -> Any:
    """Return what `plain` made if it is short; else its SHA-256 and how it begins."""
    text = json.dumps(found, ensure_ascii=False)
    if len(text) <= (_LONGEST_FLOATS if re.search(_FLOAT, text) else _LONGEST):
        return found
    digest = hashlib.sha256(text.encode()).hexdigest()
    about = {} if not isinstance(found, dict) else {n: found[n] for n in _ABOUT & found.keys()}
    return {"sha256": digest, "length": len(text), "begins": text[:80], **about}


_ABOUT = {"dtype", "shape", "class"}
_FLOAT = r"\d(\.\d|e[-+]?\d)"


def handed_text(handed: Any) -> Any:
    """Return numbers that a mechanism was handed, and of what is no number nothing."""
    if isinstance(handed, np.generic):
        return handed_text(handed.item())
    if isinstance(handed, Fraction) and handed.denominator > 1 << 20:
        return float(handed)  # a float that is read exactly
    if isinstance(handed, (bool, int, float, Fraction, str)):
        return plain(handed)
    if isinstance(handed, np.ndarray):
        return [handed_text(each) for each in handed.ravel().tolist()]
    if isinstance(handed, (list, tuple)):
        return [handed_text(each) for each in handed]
    if dataclasses.is_dataclass(handed) and not isinstance(handed, Rows):
        return [handed_text(getattr(handed, each.name)) for each in dataclasses.fields(handed)]
    return "…"


def described(found: Any, handed: list[Any]) -> dict[str, Any]:
    """Return the fields that are kept of a release, or of what else a public name returns."""
    told = {} if not handed else {"handed": short(handed), "mechanisms": len(handed)}
    release = getattr(found, "release_", found)
    if not isinstance(release, zd.records.Release):
        parts = found if isinstance(found, dict) else {"": found}
        return told | {f"value {name}".rstrip(): short(plain(part)) for name, part in parts.items()}
    if found is not release:
        told |= {f"fitted {name}": short(plain(each)) for name, each in _fitted(found).items()}
    told |= _of_certificate(release.certificate)
    told |= {"value": short(plain(release.value)), "forecast": plain(release.error)}
    told |= {"intervals": _intervals(release)}
    if release.noise is not None:
        told["noise"] = plain(release.noise)
    if release.diagnostics is not None:
        told["diagnostics"] = plain(release.diagnostics)
    if release.plan is not None:
        told["plan"] = str(release.plan)
    if release.record is not None:
        told |= _of_record(release.record.to_json())
    for place, sums in enumerate(release.sums):
        told[f"sums {place}"] = short(plain(np.asarray(sums.integers)))
        told[f"sums {place}, law"] = plain(sums.law)
    return told


def _fitted(estimator: Any) -> dict[str, Any]:
    names = (name for name in vars(estimator) if name.endswith("_") and not name.startswith("_"))
    of_release = {"release_", "certificate_", "diagnostics_"}
    return {name: getattr(estimator, name) for name in names if name not in of_release}


def _of_certificate(certificate: Any) -> dict[str, Any]:
    body = json.loads(json.dumps(certificate.body()))
    parts = body.pop("parts")
    told = {"certificate": body, "summary": certificate.summary}
    told["status"] = certificate.status.value
    for part in parts:
        told[f"part {part['part']}"] = {name: part[name] for name in part if name != "steps"}
        for step in part["steps"]:
            told[f"part {part['part']}, step {step['step']}"] = step
    return told


def _of_record(record: dict[str, Any]) -> dict[str, Any]:
    for entry in record["entries"]:
        entry.clear() if not entry else entry.update(dict.fromkeys(entry, "…"))
    return {f"record {n}": short(plain(v)) for n, v in record.items() if n not in _TOLD_ELSEWHERE}


def _intervals(release: zd.records.Release) -> Any:
    told = {}
    for name, options in _ASKED.items():
        try:
            told[name] = short([plain(each) for each in release.interval("0.95", **options)])
        except zd.errors.ZeroDeltaError as error:
            return f"{name}: {error}"
    return told


_ASKED: dict[str, dict[str, Any]] = {
    "sample": {},
    "simultaneous": {"simultaneous": True},
    "population": {"of": "population"},
}
