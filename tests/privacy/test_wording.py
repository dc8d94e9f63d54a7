"""Numbers and sentences for people: short, and never an approximation passed off as exact."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import zerodelta as zd
from zerodelta.privacy.composition import explain_claim
from zerodelta.privacy.readable import equals, shown
from zerodelta.privacy.steps import Step
from zerodelta.privacy.theorems import explain_step

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
