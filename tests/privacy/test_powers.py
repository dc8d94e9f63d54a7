"""Weights below what decimal text can hold: one notation, "2^-n", and no other of the same kind."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

import zerodelta as zd
from privacy.theorem_cases import CASES, accepts, changed
from zerodelta.errors import ParameterError
from zerodelta.privacy.composition import KINDS
from zerodelta.privacy.readable import shown
from zerodelta.privacy.steps import Status, Step, plain, power, weights
from zerodelta.privacy.theorems import THEOREMS
from zerodelta.privacy.theorems.theorem import domains_of

REFUSED: list[Any] = [
    "2^-12999", "2^-13000", "2^-14284", "2^-1000001", "2^-9999999", "2^-10000000",
    "2^-99999999999999", "2^-0", "2^0",
    "2^-1", "2^-020000", "2^-20_000", "2^--20000", "2^+20000", "2^20000", "-2^-20000", "+2^-20000",
    "4^-20000", "3^-20000", "02^-20000", "2^-20000.0", "2^-2e4", "2**-20000", "2^ -20000",
    " 2^-20000", "2^-20000 ", "2^-20000\n", "2^-٢٠٠٠٠", "1/2^20000", "1/2^-20000", "2^-20000/1",
    "1/0x1" + "0" * 5000, "0x2^-20000", "2^-0x4e20", {"base": 2, "exponent": -20000}, [2, -20000],
    True, False, None, 0.5, 0.0, -1, 0, 1, 2, "0", "1", "-1/2", "0/1",
]  # fmt: skip


@pytest.mark.parametrize("exponent", [14_285, 14_500, 20_000, 10**6])
def test_a_power_is_read_as_it_is_written(exponent: int) -> None:
    exact = Fraction(1, 1 << exponent)
    assert plain(exact) == f"2^-{exponent}"
    assert power(plain(exact)) == weights().read(plain(exact)) == exact
    assert shown(plain(exact)) == f"2^-{exponent}"


def test_shorter_fractions_are_written_as_before() -> None:
    assert plain(Fraction(1, 1 << 14_284)) == f"1/{1 << 14_284}"
    assert plain(Fraction(-3, 8)) == "-3/8"
    assert weights().read(plain(Fraction(1, 1 << 14_284))) == Fraction(1, 1 << 14_284)


@pytest.mark.parametrize("written", REFUSED, ids=lambda written: repr(written)[:30])
def test_other_notations_are_refused(written: Any) -> None:
    assert power(written) is None
    assert not weights().contains(written)
    place = len(CASES["wasserstein-transport"].steps) - 1
    if not isinstance(written, float):  # which no certificate holds
        text = changed(CASES["wasserstein-transport"], place, "weight", written)
        assert not accepts(text)


@pytest.mark.parametrize(
    "long",
    [
        Fraction(3, 1 << 20_000),
        Fraction(-1, 1 << 20_000),
        Fraction(1, 10**4400),
        Fraction(1, (1 << 20_000) - 1),
        Fraction((1 << 20_000) - 1, 1 << 20_000),
        Fraction(1 << 20_000, 3),
        Fraction(1, 1 << 1_000_001),
    ],
    ids=lambda long: f"{long.numerator.bit_length()}-{long.denominator.bit_length()}",
)
def test_other_long_fractions_are_refused_when_they_are_written(long: Fraction) -> None:
    with pytest.raises(ParameterError, match="4300 digits"):
        Step(theorem="wasserstein-transport", numbers={"weight": long})


def test_only_weights_are_powers() -> None:
    found = {
        (label, field)
        for label, theorem in THEOREMS.items()
        if label != "given"  # which holds a claim
        for field, domain in domains_of(theorem).items()
        if domain.contains("2^-20000")
    }
    assert found
    claimed = [domain for kind in KINDS.values() for domain in kind.fields.values()]
    assert not any(domain.contains("2^-20000") for domain in claimed)
    assert {field for _, field in found} == {"weight"}


@pytest.mark.parametrize("label", sorted(CASES))
def test_a_tiny_weight_proves_nothing_that_needs_a_large_one(label: str) -> None:
    for place, step in enumerate(CASES[label].steps):
        if "weight" in step.numbers:
            assert not accepts(changed(CASES[label], place, "weight", "2^-1000000"))


def test_a_tiny_mixing_weight_makes_the_round_trip() -> None:
    base = Step(
        theorem="given",
        numbers={"kind": "approximate", "epsilon": 1, "log_delta": -1e5},
        status=Status.ASSERTED,
    )
    mixing = Step(
        theorem="uniform-mixing", numbers={"size": 16, "weight": Fraction(1, 1 << 20_000)}
    )
    certificate = zd.records.Certificate(claim=zd.purification.PureDP(1), steps=(base, mixing))
    assert zd.verify(certificate)
    assert zd.records.Certificate.from_json(certificate.to_json()) == certificate
    assert "2^-20000" in certificate.explain()
