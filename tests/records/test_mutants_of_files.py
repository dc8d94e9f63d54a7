"""Random changes of saved releases: none is accepted that states less ε than its steps prove."""

from __future__ import annotations

import copy
import json
import random
import time
from contextlib import suppress
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zerodelta as zd
from privacy.test_certificate import at, places, put
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.release_file import read_text
from zerodelta.privacy.steps import digest_of

ODD: tuple[Any, ...] = (
    *(0, 1, -1, 2**70, 0.5, 1e300, "", "1/1000", "0", "-1", "1e9", "1e-999999", "nan", "9" * 5000),
    *(None, True, [], {}, [[]], "replace", "add-remove", "proven", "laplace", "0x10", "2^-20000"),
    *("zerodelta/release/1", "1 of 1", "2 of 2", "pure", "\u0000", "\ud800"),
)


@cache
def texts(folder: Path) -> tuple[tuple[str, Fraction], ...]:
    """Releases of several kinds, and the ε that each proves."""
    rows = np.arange(200.0).reshape(-1, 2)
    data = zd.open(rows, columns={"0": zd.number(0, 200), "1": zd.number(0, 200)}, name="people")
    made = [
        zd.mean(data, ["0", "1"], epsilon="1/2", diagnostics="1/10"),
        zd.table(data, of={"0": ["mean", "variance"]}, epsilon="1/3"),
        zd.quantiles(data, "0", q=[0.2, 0.8], epsilon=1),
        zd.kmeans(data, clusters=2, epsilon=2),
        zd.purify(1, space=zd.Finite(5), claim=zd.GaussianDP("1/10"), epsilon="3/4"),
    ]
    found = []
    for place, release in enumerate(made):
        release.save(folder / f"{place}.json")
        claim = release.certificate.claim
        assert isinstance(claim, PureDP)
        found.append(((folder / f"{place}.json").read_text(), claim.exact_epsilon))
    return tuple(found)


def mutated(data: Any, rng: random.Random) -> Any:
    """Change, remove, repeat or swap parts of JSON, one to three times."""
    data = copy.deepcopy(data)
    for _ in range(rng.randint(1, 3)):
        known = list(places(data))
        if not known:
            break
        spot, kind = rng.choice(known), rng.randrange(5)
        inner, part, last = at(data, spot[:-1]), at(data, spot), spot[-1]
        if kind == 0:
            put(data, spot, rng.choice(ODD))
        elif kind == 1:
            del inner[last]
        elif kind == 2:
            put(data, spot, copy.deepcopy(at(data, rng.choice(known))))
        elif kind == 3 and isinstance(part, (int, float)):
            put(data, spot, part * rng.choice([2, -1, 0.5, 1000]))
        elif type(inner) is list:
            inner.insert(last, copy.deepcopy(part))
        else:
            inner[str(last) + "x"] = part
    return data


def sealed(data: Any, rng: random.Random) -> Any:
    """Compute digests anew, as a forger would: of the certificate, the file, both or none."""
    if type(data) is not dict:
        return data
    certificate = data.get("certificate")
    if rng.random() < 0.8 and type(certificate) is dict:
        body = {name: part for name, part in certificate.items() if name != "digest"}
        data = {**data, "certificate": {**body, "digest": digest_of(body)}}
        record = data.get("record")
        if rng.random() < 0.8 and type(record) is dict and "claim" in certificate:
            claim, public = certificate["claim"], certificate.get("public")
            data = {**data, "record": {**record, "claim": claim, "public": public}}
    if rng.random() < 0.9:
        content = {n: part for n, part in data.items() if n not in ("digest", "signatures")}
        data = {**data, "digest": digest_of(content)}
    return data


def scratched(text: str, rng: random.Random) -> str:
    """Change some characters of a text."""
    for _ in range(rng.randint(1, 3)):
        place = rng.randrange(len(text))
        new = rng.choice(["", text[place] * 2, rng.choice('0123456789"{}[],:eE.-/ax'), "null"])
        text = text[:place] + new + text[place + 1 :]
    return text


def check(count: int, seed: int, folder: Path) -> tuple[int, float]:
    """Try so many mutants; return how many were accepted, and the seconds of the slowest."""
    rng, known = random.Random(seed), texts(folder)
    accepted, slowest = 0, 0.0
    for _ in range(count):
        text, proven = rng.choice(known)
        if rng.random() < 0.2:
            forged = scratched(text, rng)
        else:
            forged = json.dumps(sealed(mutated(json.loads(text), rng), rng))
        start = time.perf_counter()
        with suppress(zd.errors.CertificateError):
            saved = read_text(forged)
            accepted += 1
            claim = zd.verify(saved.certificate.to_json(), **_asked(saved.certificate))
            if isinstance(claim, PureDP) and not _other_steps(saved.certificate, text):
                assert claim.exact_epsilon >= proven, forged
            path = folder / "forged.json"
            path.write_text(forged, encoding="utf-8")
            zd.load(path)
        slowest = max(slowest, time.perf_counter() - start)
    return accepted, slowest


def _asked(certificate: Any) -> dict[str, Any]:
    return {"neighbors": certificate.claim.neighbors, "unit": certificate.unit}


def _other_steps(certificate: Any, text: str) -> bool:
    """Whether the steps are not those of the release; `verify` said that they prove the claim."""
    steps = json.loads(text)["certificate"]["parts"]
    return bool(json.loads(certificate.to_json())["parts"] != steps)


def test_mutants_of_releases(tmp_path_factory: Any) -> None:
    accepted, _ = check(400, 7, tmp_path_factory.mktemp("mutants"))
    assert accepted < 200  # else they were hardly changed


@pytest.mark.slow
def test_thirty_thousand_mutants_of_releases(tmp_path_factory: Any) -> None:
    accepted, slowest = check(30_000, 11, tmp_path_factory.mktemp("mutants"))
    print(f"{accepted} of 30 000 mutants accepted, the slowest took {slowest:.3f} s")
    assert accepted < 15_000
