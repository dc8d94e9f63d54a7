"""Certificates that earlier versions wrote still verify, and no forgery of one does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import zerodelta as zd
from privacy.chains import resealed
from zerodelta.privacy.schema_1 import _LABELS
from zerodelta.privacy.step import Status
from zerodelta.privacy.theorems.registry import THEOREMS

FILES = sorted((Path(__file__).parent / "schema_1").glob("*.json"))
"""Written by the last version with schema 1: a mean, a study, a purified value, a regression."""

files = pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)


def read(file: Path) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    assert data["schema"] == "zerodelta/certificate/1"
    return data


def test_there_are_old_certificates() -> None:
    assert len(FILES) == 4


@files
def test_an_old_certificate_proves_what_it_did(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    assert zd.verify(text, epsilon=1) == zd.PureDP(1)
    with pytest.raises(zd.CertificateError, match="too weak"):
        zd.verify(text, epsilon="0.999")
    with pytest.raises(zd.CertificateError, match="a row"):
        zd.verify(text, unit="customer_id")


@files
def test_it_is_written_again_in_the_new_schema(file: Path) -> None:
    made = zd.Certificate.from_json(file.read_text(encoding="utf-8"))
    again = json.loads(made.to_json())
    assert again["schema"] == "zerodelta/certificate/2"
    old = read(file)
    assert [step.theorem for step in made.steps] == [_LABELS[s["theorem"]] for s in old["steps"]]
    assert [dict(step.numbers) for step in made.steps] == [s["numbers"] for s in old["steps"]]
    assert zd.verify(made.to_json()) == zd.PureDP(1)


@files
def test_a_changed_or_understated_one_is_refused(file: Path) -> None:
    data = read(file)
    data["claim"]["epsilon"] = "1/2"
    with pytest.raises(zd.CertificateError, match="digest"):
        zd.verify(json.dumps(data))
    with pytest.raises(zd.CertificateError, match="do not prove"):
        zd.verify(resealed(data))


@files
def test_new_words_and_unread_ones_are_refused(file: Path) -> None:
    for change in (
        lambda data: data["steps"][0].update(theorem=_LABELS[data["steps"][0]["theorem"]] + "-x"),
        lambda data: data["steps"][0].update(theorem="uniform-mixing"),
        lambda data: data["steps"][0].update(note="x"),
        lambda data: data["steps"].clear(),
        lambda data: data["claim"].update(unit="customer_id"),
        lambda data: data.update(parts=[]),
        lambda data: data.update(note="x"),
        lambda data: data.update(steps=None),
    ):
        data = read(file)
        change(data)  # type: ignore[no-untyped-call]
        with pytest.raises(zd.CertificateError):
            zd.verify(resealed(data))


def test_the_old_spelling_of_idealized_is_read() -> None:
    data = read(FILES[0])
    data["steps"][0]["status"] = "idealised"
    made = zd.Certificate.from_json(resealed(data))
    assert made.status is Status.IDEALIZED
    with pytest.raises(zd.CertificateError, match="idealized"):
        zd.verify(resealed(data), proven=True)


def test_every_old_label_is_a_theorem_of_today() -> None:
    assert set(_LABELS.values()) <= set(THEOREMS)
    assert len(set(_LABELS.values())) == len(_LABELS)
