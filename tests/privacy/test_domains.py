"""Theorems as classes, and their fields: no number outside its domain, none that understates.

The domains and directions are written down here and in `theorem_cases` a second time, from the
theorems and not from `privacy/theorems/`, so that a domain that is too wide there is found.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Iterator
from dataclasses import fields
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import zerodelta as zd
import zerodelta.privacy.theorems as package
import zerodelta.privacy.verify as verifier
from completeness.noises import NOISES
from privacy.chains import data_of, given, resealed
from privacy.theorem_cases import BOTH, CASES, FREE, MORE, WORSE, accepts, changed, is_whole
from zerodelta.errors import ParameterError
from zerodelta.privacy.claims import Claim
from zerodelta.privacy.composition import KINDS, claim_from_numbers
from zerodelta.privacy.parameters import Neighbors
from zerodelta.privacy.steps import FieldDomain, Step
from zerodelta.privacy.theorems import THEOREMS
from zerodelta.privacy.theorems.subsampling import ClippedUnits, Units, UnitVotes
from zerodelta.privacy.theorems.theorem import BaseTheorem, ChannelTheorem, Theorem, domains_of

MALFORMED: list[Any] = [
    None, True, False, "", "x", "-", [], {}, [1], [[1]], 0.5, 1.0, -0.0, 1e300, math.nan, math.inf,
    "nan", "NaN", "infinity", "-infinity", "1/0", "1/-2", "0/0", "1//2", "1/2/3", "1e", "e1", ".5",
    "1.", "--1", "+1", " 1", "1 ", "1\n", "\n1", "1\r", "1\t", "1_0", "1_0/3", "1/1_0", "0x1_0",
    "0X10", "0x", "0xg", "-0x10", "0x10", "01/2", "1/02", "1e5001", "1e-5001", "1e999999",
    "1e-999999", "1e9999999999", "1E5", "١", "१/२", "1e٢", "1٫5", "²", "½", "１", "1" * 4301,
    "1/" + "9" * 4301, "1" * 401 + ".5", "proven", "real ", "Real", 10**4299,
]  # fmt: skip
"""Never a number, a word or a list of any field, however it is meant."""

ZERO_IS_FINE = {
    *(
        ("adaptive-gaussian", "mu_squared"),
        ("adaptive-zcdp", "rho"),
        ("sampling-without-replacement", "sensitivity_squared"),
    ),
    *(
        ("propose-test-release", "release_epsilon"),
        ("gaussian-net", "bound"),
        ("laplace-net", "bound"),
        ("numerical-error", "error"),
    ),
    *(("wasserstein-transport", "base_epsilon"), ("gaussian-sufficient-statistics", "eigenvalue")),
    *(
        (label, "threshold")
        for label in (
            "propose-test-release",
            "noisy-local-sensitivity",
            "pure-propose-test-release",
            "pure-local-sensitivity",
            "stable-mode",
        )
    ),
}
"""Nothing is asked, moved, tested or wrong: the theorem still says something."""

AT_MOST_ONE = {"smallest_probability", "eigenvalue"}
BELOW_ONE = {"weight", "decay"}
WORDS = {"norm", "noise", "monotone", "sides"}

# those are about whole parts: test_parts.py
LABELS = sorted(set(THEOREMS) - {"units", "clipped-units", "unit-votes"})
labels = pytest.mark.parametrize("label", LABELS)


def outside(label: str, field: str, value: Fraction) -> bool:
    """Tell whether the theorem is not about this value."""
    if value < 0 or (value == 0 and (label, field) not in ZERO_IS_FINE):
        return True
    if is_whole(label, field) and value.denominator != 1:
        return True
    if field in AT_MOST_ONE and value > 1:
        return True
    if field in BELOW_ONE and value >= 1:
        return True
    if field == "order" and value <= 1:
        return True
    if (field == "degrees" and value < 1) or (field == "classes" and value < 2):
        return True
    return field == "target_weight" and not 1 <= value <= 2


def fields_of(label: str) -> Iterator[tuple[int, str, Any]]:
    """Yield the place of the step, and each of its fields with its value."""
    for place, step in enumerate(CASES[label].steps):
        if step.theorem == label:
            for field, value in step.numbers.items():
                yield place, field, value
            return


def test_every_label_of_the_registry_has_a_case_with_all_of_its_fields() -> None:
    assert set(CASES) == set(LABELS)
    assert set(WORSE) == set(LABELS) - {"given"}
    for label in WORSE:
        stated = {field for _, field, _ in fields_of(label)}
        assert stated == set(WORSE[label]), label
        assert stated - {"count"} == set(domains_of(THEOREMS[label])) - {"count"}, label


@labels
def test_every_case_is_accepted_as_it_is(label: str) -> None:
    assert zd.verify(CASES[label].to_json()) == CASES[label].claim


@labels
def test_what_is_no_number_is_refused_before_anything_is_evaluated(
    label: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluated: list[zd.records.Certificate] = []
    monkeypatch.setattr(verifier, "_check", evaluated.append)
    for place, field, value in fields_of(label):
        for bad in MALFORMED:
            if type(value) is bool and type(bad) is bool:
                continue  # the other answer to a question of yes or no
            if field == "quantum" and bad == [1]:
                continue  # one for each coordinate
            text = changed(CASES[label], place, field, bad)
            assert not accepts(text), (field, bad)
    assert evaluated == []


def values_for(label: str, field: str, old: Any) -> list[Any]:
    """Return the value negated, zero, one, huge, tiny, doubled and halved, as it is written."""
    exact = Fraction(old)
    if is_whole(label, field):
        values: list[Any] = [0, 1, 2, 10**12, 10**30, 10**300, -1, -int(exact), 2 * int(exact)]
        return [*values, "3", "1/2", "-1", "1e2"]
    written = [exact * 2, exact / 2, -exact, Fraction(0), Fraction(1), Fraction(-1)]
    return [
        *(int(x) if x.denominator == 1 else str(x) for x in written),
        *("1e300", "1e-300", "1e5000", "1e-5000", "-1e300", "-1e-300", 10**30, -(10**30)),
    ]


@pytest.mark.parametrize("label", sorted(label for label in WORSE if WORSE[label]))
def test_no_number_outside_the_domain_and_none_that_understates_is_accepted(label: str) -> None:
    tried = 0
    for place, field, old in fields_of(label):
        if field in WORDS or isinstance(old, list):
            continue
        for new in values_for(label, field, old):
            if is_whole(label, field) and isinstance(new, str):
                sound = False  # integers are written as integers
            else:
                sound = not outside(label, field, Fraction(new)) and judged(label, field, old, new)
            tried += 1
            if not sound:
                accepted = accepts(changed(CASES[label], place, field, new))
                assert not accepted, _too_much(label, field, new)
    assert tried >= 10


def _too_much(label: str, field: str, new: Any) -> str:
    added = label in {each.label for each in NOISES}
    table = "NOISES in tests/completeness/noises.py" if added else "WORSE in theorem_cases.py"
    return (
        f"a certificate of {label} with {field} = {new} is accepted for the same claim; "
        f"if that is right, say FREE in {table}"
    )


def judged(label: str, field: str, old: Any, new: Any) -> bool:
    """Tell whether the changed step still proves the claim, knowing that the old one just does."""
    before, after = Fraction(old), Fraction(new)
    if (label, field) == ("smooth-sensitivity", "degrees"):
        return student_epsilon(float(min(after, Fraction(10**9)))) <= 1 + 1e-9
    direction = WORSE[label][field]
    if direction is FREE or after == before:
        return True
    if direction == BOTH:
        return False
    return after < before if direction == MORE else after > before


def student_epsilon(degrees: float) -> float:
    """Return the formula of theorem SS, in floats."""
    numbers = CASES["smooth-sensitivity"].steps[0].numbers
    ratio, beta = float(Fraction(numbers["ratio"])), -math.log(Fraction(numbers["decay"]))
    spread = math.sqrt(ratio**2 / degrees + beta**2)
    return ((degrees + 1) * spread + (degrees - 1) * beta) / 2


@pytest.mark.parametrize("label", sorted(label for label in WORSE if WORSE[label]))
def test_words_are_those_of_the_theorem(label: str) -> None:
    for place, field, old in fields_of(label):
        words: dict[str, list[Any]] = {
            "norm": [1, 2, "inf", "counts", "blocks"] if label == "k-norm-noise" else [1, 2, "inf"],
            "noise": ["real", "rounded", "discrete"],
            "monotone": [True, False],
            "eigenvalue": [0, 1],
        }
        if field not in words:
            continue
        allowed = words[field]
        assert any(old == word for word in allowed)
        for bad in (-1, 0, 3, "1", "2", "l2", "Inf", "-inf", "1/2", "3/2", "other", "counts "):
            if not any(bad == word and type(bad) is type(word) for word in allowed):
                assert not accepts(changed(CASES[label], place, field, bad)), bad


def test_sides_are_pairs_of_positive_integers() -> None:
    certificate = CASES["unequal-grid-mixing"]
    for sides in ([], [[11]], [[11, 1, 1]], [[0, 1]], [[11, 0]], [[-11, 1]], [["11", 1]], [11, 1],
                  [[11, True]], [[11, 10**10]], [[11.0, 1]], [[[11], 1]], [None]):  # fmt: skip
        assert not accepts(changed(certificate, 1, "sides", sides)), sides
    fewer = [[11, 1], [99, 1]]  # cells: a coarser grid needs less
    assert accepts(changed(certificate, 1, "sides", fewer))


def test_counts_of_base_steps_are_positive_integers() -> None:
    for label in (label for label in LABELS if issubclass(THEOREMS[label], BaseTheorem)):
        place = next(i for i, s in enumerate(CASES[label].steps) if s.theorem == label)
        for count in (0, -1, True, False, "2", 2.0, "1/2", None, [1], 10**13, 10**300, "0x2"):
            assert not accepts(changed(CASES[label], place, "count", count)), (label, count)
        stated = CASES[label].steps[place].numbers.get("count", 1)
        assert accepts(changed(CASES[label], place, "count", stated))
        free = label == "public"  # twice nothing
        assert accepts(changed(CASES[label], place, "count", 2 * stated)) is free, label


@pytest.mark.parametrize("label", [x for x in LABELS if issubclass(THEOREMS[x], ChannelTheorem)])
def test_a_channel_has_no_count(label: str) -> None:
    place = len(CASES[label].steps) - 1
    assert not accepts(changed(CASES[label], place, "count", 1))


# Claims, both as what is promised and as what a base mechanism is stated to satisfy.

CLAIM_CASES: dict[str, Claim] = {
    "pure": zd.purification.PureDP("1/100"),
    "approximate": zd.ApproxDP("1/100", -50.0),
    "gaussian": zd.GaussianDP("1/100"),
    "zcdp": zd.purification.ZCDP("1/10000"),
    "rdp": zd.purification.RDP({2: "1/100", 200: "1/50"}),
    "composed": zd.purification.compose(
        zd.purification.ZCDP("1/10000"),
        zd.ApproxDP("1/100", -50.0),
        zd.purification.RDP({2: "1/100", 200: "1/50"}),
    ),
}


def stated(kind: str) -> tuple[zd.records.Certificate, zd.records.Certificate]:
    """Return a certificate of the claim itself, and one that purifies it."""
    claim = CLAIM_CASES[kind]
    channel = Step(theorem="uniform-mixing", numbers={"size": 4, "weight": "1/100"})
    base = given(claim)
    return (
        zd.records.Certificate(claim=claim, steps=(base,)),
        zd.records.Certificate(claim=zd.purification.PureDP(1), steps=(base, channel)),
    )


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_the_numbers_of_a_claim_have_domains_too(kind: str) -> None:
    claimed, purified = stated(kind)
    assert zd.verify(claimed.to_json()).numbers() == CLAIM_CASES[kind].numbers()
    assert zd.verify(purified.to_json()) == zd.purification.PureDP(1)
    negative: list[Any] = [-1, "-1", "-1/2", "-1e-300", -(10**30)]
    for field in ("kind", *KINDS[kind].fields):
        bad = [*MALFORMED, *([1, "1e-300"] if field == "log_delta" else negative)]
        if field == "bounded_range":
            bad += [2, "0", "1"]
        if field in ("kind", "orders", "values"):
            bad += [0, 1, "1", [0], ["-1"], [1, 2, 3]]
        for value in bad:
            if value in ([], [1], [[1]]) and field in ("pure", "rdp"):
                continue  # an empty list is one of these; others are below
            assert not accepts(changed(purified, 0, field, value)), (field, value)
            data = data_of(claimed)
            data["claim"][field] = value
            assert not accepts(resealed(data)), (field, value)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_claim_has_exactly_its_numbers(kind: str) -> None:
    numbers = CLAIM_CASES[kind].numbers()
    for wrong in ({}, {"kind": kind}, {**numbers, "kind": "secret"}, {**numbers, "delta": 0}):
        with pytest.raises(ParameterError):
            claim_from_numbers(wrong, Neighbors.REPLACE)


@pytest.mark.parametrize(
    ("kind", "field", "bad"),
    [
        ("rdp", "orders", [2]),
        ("rdp", "orders", [1, 200]),
        ("rdp", "orders", [2, "2"]),
        ("rdp", "values", []),
        ("rdp", "values", ["1/100"]),
        ("composed", "pure", [[1, 0]]),
        ("composed", "pure", [[-1, 0, 1]]),
        ("composed", "pure", [["1", 0, 0]]),
        ("composed", "pure", [["1", 0, "2"]]),
        ("composed", "pure", [1, 0, 1]),
        ("composed", "rdp", [[2]]),
        ("composed", "rdp", [[1], ["1/100"]]),
        ("composed", "rdp", [["1/2"], ["1/100"]]),
        ("composed", "rdp", [[2], ["-1/100"]]),
        ("composed", "rdp", [[2, 3], ["1/100"]]),
        ("composed", "rdp", [[2, 2], ["1/100", "1/100"]]),
        ("composed", "rdp", [[], []]),
        ("composed", "log_delta", "inf"),
    ],
)
def test_the_lists_of_a_claim_have_domains_too(kind: str, field: str, bad: Any) -> None:
    _, purified = stated(kind)
    assert not accepts(changed(purified, 0, field, bad))
    with pytest.raises(ParameterError):
        claim_from_numbers({**CLAIM_CASES[kind].numbers(), field: bad}, Neighbors.REPLACE)


def test_a_truth_is_no_number_in_a_list() -> None:
    assert not accepts(changed(stated("composed")[1], 0, "pure", [["1", True, 1]]))


# -- one final class a theorem --------------------------------------------------------------------


theorem_labels = pytest.mark.parametrize("label", sorted(THEOREMS))


def test_every_final_theorem_in_the_folder_is_registered() -> None:
    found: set[str] = set()
    for file in Path(str(package.__file__)).parent.glob("*.py"):
        source = file.read_text(encoding="utf-8")
        found |= set(re.findall(r'^    label = "([^"]+)"', source, re.MULTILINE))
    assert found == set(THEOREMS)


@theorem_labels
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


@theorem_labels
def test_every_field_has_a_domain(label: str) -> None:
    theorem: type[Theorem] = THEOREMS[label]
    names = {field.name for field in fields(theorem)}  # type: ignore[arg-type]
    domains = domains_of(theorem)
    assert set(domains) == names
    assert all(isinstance(domain, FieldDomain) for domain in domains.values())
    assert ("count" in names) == issubclass(theorem, BaseTheorem)


@theorem_labels
def test_the_sentence_mentions_only_numbers_of_the_theorem(label: str) -> None:
    theorem = THEOREMS[label]
    mentioned = set(re.findall(r"\{(\w+)\}", theorem.sentence))
    assert mentioned <= set(domains_of(theorem)) | ({"claim"} if label == "given" else set())
    assert theorem.sentence.endswith(".")
