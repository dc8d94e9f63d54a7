"""The plan of a study, against numbers computed on another way; shares as exact fractions."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import zerodelta as zd
from zerodelta.data.source import FOREIGN_SOURCE, Protection
from zerodelta.errors import CertificateError, ParameterError
from zerodelta.exact.bits import ReplayBits, SystemBits
from zerodelta.privacy.certificate import REPLAYED
from zerodelta.privacy.steps import Status
from zerodelta.privacy.verify import verify
from zerodelta.spaces import Box, Finite
from zerodelta.study.plan import FUNCTIONS, Schedule, Shares, StudyPlan
from zerodelta.study.study import Study

F = Fraction
ROWS = np.linspace(0, 1, 50)


def planned(**changes: Any) -> StudyPlan:
    options: dict[str, Any] = {
        "epsilon": 1,
        "publish": Finite(16),
        "rounds": 1000,
        "bounds": (0, 1),
        **changes,
    }
    return Study(options.pop("rows", ROWS), **options).plan


# --- μ -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("epsilon", "neighbors", "large"),
    [
        ("5", "replace", False),
        ("5.01", "replace", True),
        ("2.5", "add-remove", False),
        ("2.51", "add-remove", True),
    ],
)
def test_a_large_epsilon_is_asked_about(epsilon: str, neighbors: str, large: bool) -> None:
    people = zd.open(
        ROWS, columns={"0": zd.number(0, 1)}, neighbors=neighbors, expected_rows=len(ROWS)
    )
    plan = Study(people, epsilon=epsilon, publish=Finite(16), rounds=10).plan
    assert ("beware" in repr(plan)) is large
    assert ("ask why it has to be more than 5" in repr(plan)) is large


def gaussian_delta(mu: Any, t: Any) -> Any:
    """δ(t) of μ-GDP: Φ(μ/2 - t/μ) - e^t Φ(-μ/2 - t/μ)."""
    return mpmath.ncdf(mu / 2 - t / mu) - mpmath.exp(t) * mpmath.ncdf(-mu / 2 - t / mu)


def allowed_delta(epsilon: Any, weight: Any, elements: int) -> Any:
    """B1: the largest δ with (1-w) δ N <= w (e^ε - 1)."""
    return mpmath.expm1(epsilon) * weight / ((1 - weight) * elements)


CASES = [
    ("1", 16, F(1, 1000)),
    ("1/10", 2, F(1, 1000)),
    ("1", 3, F(1, 4)),
    ("5/2", 10**30, F(1, 100)),
]


@pytest.mark.parametrize(("epsilon", "size", "weight"), CASES)
def test_mu_is_the_largest_that_b1_allows(epsilon: str, size: int, weight: Fraction) -> None:
    made = planned(epsilon=epsilon, publish=Finite(size), mixing_probability=weight)
    with mpmath.workdps(60):
        t, w = (mpmath.mpf(x.numerator) / x.denominator for x in (F(epsilon), weight))
        allowed = allowed_delta(t, w, size)
        square = mpmath.mpf(made.mu_squared.numerator) / made.mu_squared.denominator
        assert gaussian_delta(mpmath.sqrt(square), t) <= allowed
        assert gaussian_delta(mpmath.sqrt(square * (1 + mpmath.mpf(10) ** -9)), t) > allowed
        assert made.mu == pytest.approx(float(mpmath.sqrt(square)), rel=1e-14)


def test_a_box_is_charged_for_its_cells() -> None:
    """B2 on 10 cells is B1 on 10 elements."""
    box = planned(publish=Box(0, 1), resolution=F(1, 10), mixing_probability=F(1, 50))
    assert box.mu_squared == planned(publish=Finite(10), mixing_probability=F(1, 50)).mu_squared


@pytest.mark.parametrize(("epsilon", "size", "weight"), CASES)
def test_rho_is_enough_for_zcdp(epsilon: str, size: int, weight: Fraction) -> None:
    """ρ-zCDP has δ(t) <= min over α of exp((α-1)(αρ - t)) (1-1/α)^(α-1) / α, as B6 converts it."""
    made = planned(epsilon=epsilon, publish=Finite(size), mixing_probability=weight, selects=True)
    with mpmath.workdps(50):
        t, w = (mpmath.mpf(x.numerator) / x.denominator for x in (F(epsilon), weight))
        rho = mpmath.mpf(made.mu_squared.numerator) / (2 * made.mu_squared.denominator)

        def log_delta(shift: Any, r: Any) -> Any:
            a = 1 + mpmath.exp(shift)
            return (a - 1) * (a * r - t) + (a - 1) * mpmath.log1p(-1 / a) - mpmath.log(a)

        def least(r: Any) -> Any:
            low, high = mpmath.mpf(-8), mpmath.mpf(12)  # golden section: the bound is unimodal here
            golden = (mpmath.sqrt(5) - 1) / 2
            for _ in range(120):
                a, b = high - golden * (high - low), low + golden * (high - low)
                low, high = (low, b) if log_delta(a, r) < log_delta(b, r) else (a, high)
            return log_delta(low, r)

        allowed = mpmath.log(allowed_delta(t, w, size))
        assert least(rho) <= allowed + mpmath.mpf(10) ** -25
        assert least(rho * (1 + mpmath.mpf(10) ** -6)) > allowed
    assert (
        made.mu_squared
        < planned(epsilon=epsilon, publish=Finite(size), mixing_probability=weight).mu_squared
    )


def test_the_noise_per_query_is_the_flagship_s() -> None:
    """1 of 16 after 1 000 questions, ε = 1, w = 1/1000: evidence says over 12 times less noise."""
    made = planned()
    with mpmath.workdps(40):
        allowed = allowed_delta(mpmath.mpf(1), mpmath.mpf(1) / 1000, 16)
        mu = mpmath.findroot(lambda m: gaussian_delta(m, 1) - allowed, 0.25)
        noise = mpmath.sqrt(1000) / mu
    assert made.noise_per_query == pytest.approx(float(noise), rel=1e-9)
    assert made.noise_by_basic_composition == pytest.approx(math.sqrt(2) * 1000)
    assert made.noise_by_basic_composition / made.noise_per_query > 12


def test_the_variance_is_the_sensitivity_over_the_share() -> None:
    made = planned(rounds=[1, 3])
    for share in (F(1, 4), F(3, 4), F(1, 7)):
        assert made.variance(8, share) * share * made.mu_squared == 8
    assert made.variance(2, F(1, 2)) == 2 * made.variance(2, F(1))


# --- shares --------------------------------------------------------------------------------------

shares = st.one_of(
    st.none(),
    st.fractions(min_value=F(1, 1000), max_value=2),
    st.floats(1e-300, 2.0),
    st.sampled_from(["1/3", "0.1", 1]),
)
schedules = st.one_of(
    st.integers(1, 12),
    st.lists(st.one_of(st.integers(1, 9), st.floats(1e-9, 1e9), st.just("2/7")), min_size=1),
)


@settings(max_examples=300)
@given(schedules, st.lists(shares, max_size=40))
def test_taken_shares_never_exceed_the_whole(rounds: Any, wanted: list[Any]) -> None:
    schedule = Schedule.of(rounds)
    kept, left, asked = Shares(schedule), F(1), 0
    for share in wanted:
        want = schedule.share(asked) if share is None else F(share)
        if left < want <= left * (1 + F(1, 10**9)):  # ten tenths in floats are the whole
            want = left
        taken = kept.take(share)
        if 0 < want <= left:
            assert taken == want
            left, asked = left - want, asked + 1
        else:
            assert taken is None
        assert left >= 0
    assert kept.untouched == (asked == 0)


@given(schedules)
def test_a_schedule_is_spent_exactly(rounds: Any) -> None:
    schedule = Schedule.of(rounds)
    assert sum((schedule.share(i) for i in range(schedule.rounds)), F(0)) == 1
    kept = Shares(schedule)
    assert all(kept.take(None) for _ in range(schedule.rounds))
    assert kept.take(None) is None
    assert kept.take("1e-300") is None


def test_unequal_shares_are_relative() -> None:
    schedule = Schedule.of(["1/2", 1, 0.5])
    assert [schedule.share(i) for i in range(4)] == [F(1, 4), F(1, 2), F(1, 4), 0]


@pytest.mark.parametrize("bad", [0, -1, math.nan, math.inf, "x", 0.0])
def test_a_share_that_is_none_is_refused(bad: Any) -> None:
    with pytest.raises(ParameterError, match="share"):
        Shares(Schedule.of(2)).take(bad)


@settings(max_examples=200)
@given(st.fractions(min_value=F(1, 10**6), max_value=1), st.sampled_from(CASES))
def test_a_selection_costs_its_share_of_rho(share: Fraction, numbers: Any) -> None:
    """ε²/8 <= share·ρ exactly, and nothing is wasted."""
    epsilon, size, weight = numbers
    made = planned(epsilon=epsilon, publish=Finite(size), mixing_probability=weight, selects=True)
    rho = made.mu_squared / 2
    chosen = made.selection_epsilon(share)
    assert chosen**2 / 8 <= share * rho
    assert (chosen * (1 + F(1, 10**12))) ** 2 / 8 > share * rho


# --- what is refused -----------------------------------------------------------------------------

REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no rounds": ({"rounds": None}, "rounds=100"),
    "no rounds in the list": ({"rounds": []}, "rounds=100"),
    "rounds as text": ({"rounds": "10"}, "rounds=100"),
    "zero rounds": ({"rounds": 0}, "rounds"),
    "a share of nothing": ({"rounds": [1, 0]}, "rounds"),
    "no rows": ({"rows": np.empty((0, 1))}, "pass the data"),
    "one bound": ({"bounds": 1}, r"bounds=\(0, 1\)"),
    "three bounds": ({"bounds": (0, 1, 2)}, r"bounds=\(0, 1\)"),
    "bounds the wrong way round": ({"bounds": (1, 0)}, "lower end first"),
    "no norm": ({"data_norm": 0}, "bound"),
    "no space": ({"publish": 16}, "Finite"),
    "no epsilon": ({"epsilon": 0}, "epsilon"),
    "certain failure": ({"mixing_probability": 1}, "mixing_probability"),
    "an example of another width": ({"example": np.zeros((3, 2))}, "by hand"),
    "an empty example": ({"example": np.zeros((0, 1))}, "by hand"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_was_forgotten_is_refused_with_the_remedy(what: str) -> None:
    change, remedy = REFUSED[what]
    with pytest.raises(ParameterError, match=remedy):
        planned(**change)


# --- what is shown -------------------------------------------------------------------------------


def test_the_repr_shows_the_budget_and_whether_a_study_pays() -> None:
    study = Study(np.zeros(2000), epsilon=1, publish=Finite(16), rounds=1000)
    made, text = study.plan, repr(study)
    assert text == repr(made)
    assert text.startswith("Study of 2000 rows: pure ε = 1, δ = 0\n")
    for shown in (
        *("publishes", "Finite(16)", "internal queries", f"1000, together μ = {made.mu:.4g}"),
        *("noise per query", f"{made.noise_per_query:.4g} × its sensitivity"),
        f"{made.noise_per_query / 2000:.3g} × a mean's range",
        *("predicted error", f"{made.predicted_error:.3g} (chance of a random element)"),
        *("basic composition", f"{made.noise_by_basic_composition:.4g} × it", "times more noise"),
    ):
        assert shown in text
    assert made.predicted_error == pytest.approx(1e-3 * 15 / 16)
    assert "zCDP" not in text
    assert "(as zCDP, because of selections)" in repr(planned(selects=True))
    assert "times less noise" in repr(planned(rounds=1))


# --- the certificate -----------------------------------------------------------------------------


@pytest.mark.parametrize("selects", [False, True])
@pytest.mark.parametrize("functions", [False, True])
@pytest.mark.parametrize("rowwise", [False, True])
@pytest.mark.parametrize("ours", [False, True])
def test_the_certificate_lists_rounds_and_budget(
    selects: bool, functions: bool, rowwise: bool, ours: bool
) -> None:
    made = planned(rounds=[1, 2], selects=selects, functions=functions, rowwise=rowwise)
    certificate = made.release_plan(guarded=True).certificate(
        SystemBits(), Protection(premise=None if ours else FOREIGN_SOURCE)
    )
    verify(certificate)
    base, channel = certificate.steps
    assert base.theorem == ("adaptive-zcdp" if selects else "adaptive-gaussian")
    assert base.numbers["rounds"] == 2
    assert F(base.numbers["rho" if selects else "mu_squared"]) == made.mu_squared / (1 + selects)
    assert (channel.theorem, channel.numbers["size"]) == ("uniform-mixing", 16)
    assert F(channel.numbers["weight"]) == F(1, 1000)
    proven = ours and not functions  # also one row at a time a function may keep a state
    assert certificate.status is (Status.PROVEN if proven else Status.ASSERTED)
    assert (FUNCTIONS in certificate.assumed) is functions
    assert (FOREIGN_SOURCE in certificate.assumed) is not ours
    assert any("the number of rows, 50" in line for line in certificate.public)


@pytest.mark.parametrize("selects", [False, True])
def test_a_larger_budget_does_not_verify(selects: bool) -> None:
    """The certificate's numbers are judged, not believed."""
    made = planned(selects=selects)
    certificate = made.release_plan(guarded=True).certificate(SystemBits())
    base, channel = certificate.steps
    name = "rho" if selects else "mu_squared"
    more = replace(base, numbers={**base.numbers, name: F(base.numbers[name]) * (1 + F(1, 10**6))})
    with pytest.raises(CertificateError):
        verify(certificate.with_steps((more, channel)))


def test_test_bits_brand_the_certificate() -> None:
    branded = planned().release_plan(guarded=True).certificate(ReplayBits("brand"))
    assert branded.randomness == REPLAYED
    assert "NOT PRIVATE" in branded.summary
