"""Chains and numbers that do not prove the claim, each with a freshly computed digest."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import pytest
from flint import arb

import zerodelta as zd
from privacy.chains import resealed
from privacy.theorem_cases import CASES, accepts, changed
from zerodelta.errors import CertificateError, ParameterError
from zerodelta.exact.bits import SystemBits
from zerodelta.exact.rational import as_rational
from zerodelta.privacy.certificate import Certificate
from zerodelta.privacy.claims import ApproxDP, Claim, GaussianDP, PureDP
from zerodelta.privacy.composition import Composed, gaussian_share
from zerodelta.privacy.parameters import Neighbors
from zerodelta.privacy.steps import Part, Status, Step
from zerodelta.privacy.theorems import regression as objective_perturbation
from zerodelta.privacy.theorems.smoothing import GaussianStep, best_mixing_variance
from zerodelta.privacy.verify import base_claim, proves_epsilon, verify
from zerodelta.spine.plan import issue

GAUSSIAN = Step(theorem="rounded-gaussian", numbers={"sensitivity_squared": 81, "variance": 10**4})


def smooth(**changed: object) -> Step:
    numbers = {
        "dimension": 1,
        "variance": 10**4,
        "radius": 10,
        "sensitivity": 9,
        "order": 40,
        "mixing_variance": 10**6,
        "weight": "1/100",
    }
    return Step(
        theorem="gaussian-smoothing", numbers={**numbers, **changed}, status=Status.ASSERTED
    )


def accepted(epsilon: Fraction, *steps: Step) -> Claim:
    return verify(Certificate(claim=PureDP(epsilon), steps=steps))


def test_theorem_s_holds_for_the_step_that_was_taken() -> None:
    assert accepted(Fraction(4), GAUSSIAN, smooth())


@pytest.mark.parametrize(
    "channel",
    [
        smooth(variance=10**12, mixing_variance=10**13),
        smooth(sensitivity=8),
        smooth(variance=1, mixing_variance=1000),
    ],
)
def test_theorem_s_must_describe_the_last_gaussian_step(channel: Step) -> None:
    with pytest.raises(CertificateError, match="last Gaussian step"):
        accepted(Fraction(4), GAUSSIAN, channel)


@pytest.mark.parametrize(
    "last",
    [
        Step(theorem="rounded-laplace", numbers={"sensitivity": 1, "scale": 1}),
        Step(
            theorem="exponential-mechanism",
            numbers={"sensitivity": 1, "scale": 1, "monotone": False},
        ),
    ],
)
def test_other_steps_do_not_pay_for_the_last_gaussian_step(last: Step) -> None:
    with pytest.raises(CertificateError, match="last Gaussian step"):
        accepted(Fraction(20), GAUSSIAN, last, smooth())


def test_a_given_claim_may_cover_the_last_step() -> None:
    given = Step(
        theorem="given",
        numbers=GaussianDP(mu_squared=Fraction(81, 10**4)).numbers(),
        status=Status.ASSERTED,
    )
    assert accepted(Fraction(4), given, smooth())


def test_no_channel_proves_a_bounded_range() -> None:
    base = Step(theorem="given", numbers=PureDP(1).numbers(), status=Status.ASSERTED)
    mixing = Step(theorem="uniform-mixing", numbers={"size": 4, "weight": "1/100"})
    claim = PureDP(1, bounded_range=True)
    with pytest.raises(CertificateError, match="bounded range"):
        verify(Certificate(claim=claim, steps=(base, mixing)))
    assert verify(Certificate(claim=PureDP(1), steps=(base, mixing)))


@pytest.mark.parametrize("text", ["1e2_0000000", "1e٢٠٠٠٠٠٠٠", "1e20000000", "1_0"])
def test_numbers_that_only_exhaust_memory_are_refused(text: str) -> None:
    with pytest.raises(ParameterError, match=r"^scale = "):
        as_rational(text, "scale")


# -- what pays for the last Gaussian step ---------------------------------------------------------


LAST = GaussianStep(
    dimension=1, variance=Fraction(100), radius=Fraction(10), sensitivity=Fraction(1)
)
CHANNEL = Step(
    theorem="gaussian-smoothing",
    numbers={
        "dimension": 1,
        "variance": LAST.variance,
        "radius": LAST.radius,
        "sensitivity": LAST.sensitivity,
        "order": 8,
        "mixing_variance": best_mixing_variance(LAST, 8),
        "weight": "1/2",
    },
)


def claim(share: Fraction) -> Composed:
    """So much of the step's ρ as Gaussian DP, and a pure step that costs far more than the rest."""
    return Composed(mu_squared=2 * LAST.rho * share, pure=((Fraction(1, 4), False, 1),))


def test_the_whole_step_in_the_gaussian_part_is_enough() -> None:
    assert proves_epsilon(CHANNEL, claim(Fraction(1)), Fraction(3))


@pytest.mark.parametrize(
    "share", [Fraction(0), Fraction(1, 2), Fraction(3, 4), Fraction(999, 1000)]
)
def test_a_pure_step_does_not_pay_for_the_gaussian_one(share: Fraction) -> None:
    assert not proves_epsilon(CHANNEL, claim(share), Fraction(3))


def test_a_zcdp_part_holds_the_step_if_its_rho_does() -> None:
    rest = ((Fraction(1, 4), False, 1),)
    assert gaussian_share(Composed(mu_squared=Fraction(1, 3), rho=Fraction(1, 4))) == Fraction(5, 6)
    assert proves_epsilon(CHANNEL, Composed(rho=LAST.rho, pure=rest), Fraction(3))
    assert not proves_epsilon(CHANNEL, Composed(rho=LAST.rho * 3 / 4, pure=rest), Fraction(3))


# -- claims of base steps alone -------------------------------------------------------------------


BASE_GAUSSIAN = Step(theorem="rounded-gaussian", numbers={"sensitivity_squared": 1, "variance": 50})
PROVEN = GaussianDP(mu_squared=Fraction(1, 50)).log_delta(1)


def issued(claim: Claim, step: Step) -> Claim:
    return issue(claim=claim, steps=(step,), bits=SystemBits(), public=()).claim


@pytest.mark.parametrize("less", [1e-9, 0.5, 100.0])
def test_a_smaller_delta_is_refused(less: float) -> None:
    with pytest.raises(CertificateError, match="do not prove"):
        issued(ApproxDP(1, PROVEN * (1 + 1e-12) - less), BASE_GAUSSIAN)


# -- certificates that were once accepted, or ran for minutes -------------------------------------


def test_theorem_w_has_a_positive_scale_and_no_more_than_the_claimed_epsilon() -> None:
    whole = CASES["wasserstein-transport"]
    for scale in ("-20", -20, "-1e-300", 0, "-1/10"):
        assert not accepts(changed(whole, 1, "scale", scale))
    for base in (5, "1e6", "1e300"):
        assert not accepts(changed(whole, 1, "base_epsilon", base))
        data = json.loads(changed(whole, 1, "base_epsilon", base))
        data["parts"][0]["steps"][1]["numbers"]["scale"] = "-20"
        assert not accepts(resealed(data))
        data["parts"][0]["steps"][1]["numbers"]["scale"] = "1e300"
        assert not accepts(resealed(data))


def test_no_prior_on_n_points_has_a_smallest_probability_above_1_over_n() -> None:
    whole = CASES["prior-mixing"]  # weights 1, 5, 9 on three points
    for probability in ("1/2", 1, "334/1000", "10/3", 2, "1e300"):
        assert not accepts(changed(whole, 1, "smallest_probability", probability))
    assert accepts(changed(whole, 1, "smallest_probability", "1/3"))
    for size in (16, 10**30, 0, -3):
        assert not accepts(changed(whole, 1, "size", size))


def test_a_profile_has_a_positive_ratio_and_no_base_step_before_it() -> None:
    whole = CASES["profile-mixing"]
    for ratio in (0, -1, "-1/2", "-1e300"):
        assert not accepts(changed(whole, 0, "ratio", ratio))
    base = Step(theorem="rounded-laplace", numbers={"sensitivity": 1, "scale": 1})
    with pytest.raises(zd.errors.CertificateError, match="no base step"):
        zd.verify(zd.records.Certificate(claim=whole.claim, steps=(base, *whole.steps)))


@pytest.mark.parametrize(
    "label", ["rounded-laplace", "k-norm-noise", "permute-and-flip", "propose-test-release"]
)
def test_only_the_exponential_mechanism_proves_a_bounded_range(label: str) -> None:
    numbers: dict[str, dict[str, Any]] = {
        "rounded-laplace": {"sensitivity": 1, "scale": 1},
        "k-norm-noise": {"norm": 1, "quantum": 1, "sensitivity": 1, "scale": 1},
        "permute-and-flip": {"sensitivity": 1, "scale": 2, "monotone": False},
        "propose-test-release": {
            "test_epsilon": 1,
            "release_epsilon": 0,
            "threshold": 9,
            "noise": "real",
        },
    }
    step = Step(theorem=label, numbers=numbers[label])
    for epsilon in (1, 2, 100):
        claim = zd.purification.PureDP(epsilon, bounded_range=True)
        with pytest.raises(zd.errors.CertificateError, match="do not prove the claim"):
            zd.verify(zd.records.Certificate(claim=claim, steps=(step,)))
    if label != "propose-test-release":
        assert zd.verify(zd.records.Certificate(claim=zd.purification.PureDP(1), steps=(step,)))


def test_one_exponential_mechanism_proves_a_bounded_range_and_two_do_not() -> None:
    numbers = {"sensitivity": 1, "scale": 2, "monotone": False}
    once = Step(theorem="exponential-mechanism", numbers=numbers)
    twice = Step(theorem="exponential-mechanism", numbers={**numbers, "count": 2})
    ranged = zd.purification.PureDP(1, bounded_range=True)
    assert zd.verify(zd.records.Certificate(claim=ranged, steps=(once,))) == ranged
    assert zd.verify(zd.records.Certificate(claim=zd.purification.PureDP(1), steps=(once,)))
    for steps in ((twice,), (once, once)):
        with pytest.raises(zd.errors.CertificateError, match="do not prove the claim"):
            zd.verify(
                zd.records.Certificate(
                    claim=zd.purification.PureDP(2, bounded_range=True), steps=steps
                )
            )


def test_a_real_minimum_is_published_with_an_error() -> None:
    for label in (
        "logistic-objective-perturbation",
        "huber-objective-perturbation",
        "softmax-objective-perturbation",
    ):
        assert not accepts(changed(CASES[label], 1, "error", 0))
        assert CASES[label].status is Status.PROVEN


def test_the_bisection_of_theorem_c9_ends_for_whatever_numbers_someone_writes() -> None:
    calls = 0

    def never_settled(u: arb) -> tuple[arb, arb]:
        nonlocal calls
        calls += 1
        return arb(0, 1), arb(0, 1)

    assert objective_perturbation._supremum(never_settled, 0.0, 64.0) >= 1
    assert calls < 2 * 10**4
    for noise, strength, fine in (
        ("1e-1000", "1e5000", True),  # more noise and a stronger penalty; it once ran for minutes
        ("1e-5000", "1e-5000", False),
        ("1e300", "1e300", False),
    ):
        data = json.loads(changed(CASES["huber-objective-perturbation"], 0, "noise_epsilon", noise))
        data["parts"][0]["steps"][0]["numbers"]["strength"] = strength
        assert accepts(resealed(data)) == fine


# -- groups that are answered apart ---------------------------------------------------------------


F = Fraction
REPLACE, ADD_REMOVE = Neighbors.REPLACE, Neighbors.ADD_REMOVE


def laplace(relation: Neighbors = ADD_REMOVE, **changed: Any) -> Step:
    numbers = {"sensitivity": 1, "scale": 8, **changed}
    return Step(theorem="rounded-laplace", numbers=numbers, neighbors=relation)


def groups(relation: Neighbors = REPLACE, *, unit_rows: int = 1) -> Step:
    numbers = {"blocks": 12, "unit_rows": unit_rows}
    return Step(theorem="parallel-blocks", numbers=numbers, neighbors=relation)


@pytest.mark.parametrize("unit_rows", [1, 5])
def test_a_group_that_is_asked_several_times_adds_up_before_it_counts_twice(unit_rows: int) -> None:
    steps = (laplace(), laplace(count=3), groups(unit_rows=unit_rows))
    whole = F(4, 8) * 2 * unit_rows
    assert verify(Certificate(claim=PureDP(whole), steps=steps))
    with pytest.raises(CertificateError, match="do not prove ε"):
        verify(Certificate(claim=PureDP(whole - F(1, 10**9)), steps=steps))


def test_a_claim_for_replaced_rows_of_a_group_is_not_enough() -> None:
    """A replacement within a group says nothing about a row that leaves it."""
    steps = (laplace(REPLACE), groups())
    with pytest.raises(CertificateError, match="mixed neighboring relations"):
        verify(Certificate(claim=PureDP(10), steps=steps))
    assert not proves_epsilon(groups(), base_claim((laplace(REPLACE),)), F(10))
    assert proves_epsilon(groups(), base_claim((laplace(),)), F(1, 4))


def test_the_claim_is_for_replace_only() -> None:
    claim = PureDP(10, neighbors=ADD_REMOVE)
    with pytest.raises(CertificateError, match="replace claim only"):
        verify(Certificate(claim=claim, steps=(laplace(), groups(ADD_REMOVE))))


def test_a_group_that_is_not_pure_proves_nothing() -> None:
    gaussian = Step(
        theorem="rounded-gaussian",
        numbers={"sensitivity_squared": 1, "variance": 10**6},
        neighbors=ADD_REMOVE,
    )
    with pytest.raises(CertificateError, match="do not prove ε"):
        verify(Certificate(claim=PureDP(100), steps=(gaussian, groups())))


def test_what_holds_for_replaced_rows_only_does_not_go_by_group() -> None:
    step = Step(
        theorem="k-norm-sufficient-statistics",
        numbers={"target_weight": "3/2", "scale": 5},
        neighbors=ADD_REMOVE,
    )
    with pytest.raises(CertificateError, match="replace-one relation only"):
        verify(Certificate(claim=PureDP(100), steps=(step, groups())))


def test_it_is_one_of_several_parts() -> None:
    """Keys by groups and a table of sums: each part has its own relation inside, ε adds up."""
    table = Step(
        theorem="partition-laplace",
        numbers={"cells": 24, "row_total": 2, "unit_rows": 1, "scale": 16},
    )
    parts = (Part(steps=(laplace(), groups()), epsilon=F(1, 4)), Part(steps=(table,)))
    issued = issue(claim=PureDP("1/2"), steps=None, parts=parts, bits=SystemBits(), public=())
    assert verify(issued.to_json(), epsilon="1/2") == PureDP("1/2")
    wrong = (parts[0], Part(steps=(laplace(),), epsilon=F(1, 4)))
    with pytest.raises(CertificateError, match="mixed"):
        verify(Certificate(claim=PureDP("1/2"), parts=wrong))


def test_the_explanation_says_what_the_steps_before_are_for() -> None:
    text = Certificate(claim=PureDP("1/4"), steps=(laplace(), groups())).explain()
    assert "each of 12 disjoint groups is answered by the steps before" in text
    assert "one row of the group added or removed" in text
