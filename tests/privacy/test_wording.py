"""Numbers and sentences for people and for files: short, exact, in one notation."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import zerodelta as zd
from privacy.theorem_cases import CASES, accepts, changed
from zerodelta.errors import ParameterError
from zerodelta.privacy.composition import KINDS, explain_claim
from zerodelta.privacy.readable import equals, shown
from zerodelta.privacy.steps import Status, Step, plain, power, weights
from zerodelta.privacy.theorems import THEOREMS, explain_step
from zerodelta.privacy.theorems.theorem import domains_of

NUMBERS = st.one_of(
    st.fractions(),
    st.floats(allow_nan=False, allow_infinity=False).map(Fraction),
    st.integers().map(Fraction),
    st.integers(1, 10**9).map(lambda n: Fraction(n, 10**7)),
    st.integers(-4000, 5000).map(lambda n: Fraction(10) ** n),
)


@given(NUMBERS)
def test_a_number_is_short_and_exact_unless_it_says_that_it_was_rounded(number: Fraction) -> None:
    text = shown(number)
    assert len(text) <= 24
    if text.startswith("≈ "):
        assert abs(Fraction(text[2:]) - number) <= abs(number) / 10**5
    else:
        assert Fraction(text) == number


@given(NUMBERS)
def test_a_number_reads_the_same_from_a_certificate(number: Fraction) -> None:
    step = Step(theorem="uniform-mixing", numbers={"size": number})
    assert shown(step.numbers["size"]) == shown(number)


@given(NUMBERS)
def test_the_equals_sign_is_kept_for_exact_numbers(number: Fraction) -> None:
    text = equals(number)
    assert text[:2] in ("= ", "≈ ")
    assert (text[0] == "=") == (Fraction(text[2:]) == number)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (Fraction(0.83), "≈ 0.83"),
        (Fraction("0.83"), "= 0.83"),
        (Fraction(0.1), "≈ 0.1"),
        (Fraction(1, 3), "= 1/3"),
        (Fraction(1, 2), "= 0.5"),
        (Fraction(7), "= 7"),
        (Fraction(-7, 1), "= -7"),
    ],
)
def test_floats_and_decimals_and_fractions_read_as_they_were_meant(
    number: Fraction, text: str
) -> None:
    assert equals(number) == text


def test_claims_are_told_with_their_numbers() -> None:
    assert (
        explain_claim(zd.purification.PureDP(0.83)) == "pure differential privacy, ε ≈ 0.83, δ = 0"
    )
    assert "ln δ = -30.0" in explain_claim(zd.ApproxDP(1, -30.0))
    assert "ρ = 0.25" in explain_claim(zd.purification.ZCDP("1/4"))
    assert "μ² = 0.25" in explain_claim(zd.GaussianDP("1/2"))
    assert "orders = [2, 3]" in explain_claim(zd.purification.RDP({2: 1, 3: 2}))
    assert "bounded_range" in explain_claim(zd.purification.PureDP(1, bounded_range=True))
    assert "bounded_range" not in explain_claim(zd.purification.PureDP(1))
    assert "rho = 0.25" in explain_claim(
        zd.purification.compose(zd.purification.ZCDP("1/4"), zd.ApproxDP(1, -9.0))
    )


def test_a_step_that_lacks_a_number_is_still_explained() -> None:
    assert "weight not stated" in explain_step(Step(theorem="uniform-mixing", numbers={"size": 3}))
    assert explain_step(Step(theorem="B9", numbers={"x": 3})) == "theorem B9; x = 3."


def test_repeated_steps_say_how_often() -> None:
    numbers = {"sensitivity": 1, "scale": 2, "count": 12}
    assert explain_step(Step(theorem="rounded-laplace", numbers=numbers)).startswith("12 times: ")


def test_long_tables_are_cut_in_the_middle() -> None:
    assert shown(list(range(100))) == "[0, 1, 2, …, 99]"


# -- weights below what decimal text can hold -----------------------------------------------------


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
