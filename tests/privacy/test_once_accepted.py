"""Certificates that were once accepted, or ran for minutes, and their siblings."""

from __future__ import annotations

import json
from typing import Any

import pytest
from flint import arb

import zerodelta as zd
from privacy.chains import resealed
from privacy.theorem_cases import CASES, accepts, changed
from zerodelta.privacy.steps import Status, Step
from zerodelta.privacy.theorems import regression as objective_perturbation


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
