"""One final class per theorem: its label, its section, typed fields with domains, its sentence."""

from __future__ import annotations

import inspect
import re
from dataclasses import fields
from pathlib import Path

import pytest

import zerodelta.privacy.theorems as package
from zerodelta.privacy import theorems
from zerodelta.privacy.steps import FieldDomain
from zerodelta.privacy.theorems import THEOREMS
from zerodelta.privacy.theorems.subsampling import ClippedUnits, Units, UnitVotes
from zerodelta.privacy.theorems.theorem import BaseTheorem, ChannelTheorem, Theorem, domains_of

labels = pytest.mark.parametrize("label", sorted(THEOREMS))


def test_every_final_theorem_in_the_folder_is_registered() -> None:
    found: set[str] = set()
    for file in Path(str(package.__file__)).parent.glob("*.py"):
        source = file.read_text(encoding="utf-8")
        found |= set(re.findall(r'^    label = "([^"]+)"', source, re.MULTILINE))
    assert found == set(THEOREMS)
    assert len(theorems.THEOREMS) == 44


@labels
def test_a_label_is_the_name_of_its_class_in_words(label: str) -> None:
    theorem = THEOREMS[label]
    assert theorem.label == label
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", label)
    assert theorem.__name__.lower().removesuffix("theorem") == label.replace("-", "")
    assert getattr(theorem, "__final__", True)
    assert not inspect.isabstract(theorem)
    of_units = theorem in (Units, ClippedUnits, UnitVotes)
    kinds = [issubclass(theorem, BaseTheorem), issubclass(theorem, ChannelTheorem), of_units]
    assert sum(kinds) == 1


@labels
def test_every_field_has_a_domain(label: str) -> None:
    theorem: type[Theorem] = THEOREMS[label]
    names = {field.name for field in fields(theorem)}  # type: ignore[arg-type]
    domains = domains_of(theorem)
    assert set(domains) == names
    assert all(isinstance(domain, FieldDomain) for domain in domains.values())
    assert ("count" in names) == issubclass(theorem, BaseTheorem)


@labels
def test_the_sentence_mentions_only_numbers_of_the_theorem(label: str) -> None:
    theorem = THEOREMS[label]
    mentioned = set(re.findall(r"\{(\w+)\}", theorem.sentence))
    assert mentioned <= set(domains_of(theorem)) | ({"claim"} if label == "given" else set())
    assert theorem.sentence.endswith(".")
