"""Certificates of Algorithms 9 to 13: re-derived, and refused when a number is improved."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import zerodelta as zd
from paper.free_releases import bounded_local_sensitivity, free_propose_test_release
from zerodelta.mechanisms.stable_queries import Median
from zerodelta.paper.algorithm_09_10_11 import (
    propose_test_release,
    pure_bounded_local_sensitivity,
    pure_propose_test_release,
)
from zerodelta.paper.algorithm_12_13 import adassp, embedded_mode, lattice_adassp, mode, pure_adassp
from zerodelta.privacy.readable import shown
from zerodelta.privacy.steps import Step
from zerodelta.testing import replayed

ROWS = np.linspace(0, 10, 50)
QUERY = Median(bounds=(0, 10), steps=20)
X, Y = ROWS.reshape(-1, 1) / 10, ROWS / 20
LINEAR: dict[str, Any] = {"data_norm": 1, "target_bound": 1}
RELEASES: dict[str, Any] = {
    "9": lambda **bits: propose_test_release(
        ROWS, query=QUERY, proposed_bound=1, epsilon=2, log_delta=-9.0, **bits
    ),
    "10": lambda **bits: pure_propose_test_release(
        ROWS,
        query=QUERY,
        proposed_bound=1,
        epsilon=3,
        log_delta=-9.0,
        mixing_weight="0.1",
        **bits,
    ),
    "C3": lambda **bits: free_propose_test_release(
        ROWS, query=QUERY, proposed_bound="0.25", epsilon="1/10", **bits
    ),
    "11": lambda **bits: pure_bounded_local_sensitivity(
        ROWS,
        query=QUERY,
        epsilon=3,
        log_delta=-9.0,
        mixing_weight="0.1",
        **bits,
    ),
    "C4": lambda **bits: bounded_local_sensitivity(
        ROWS, query=QUERY, epsilon=1, mixing_weight="0.01", **bits
    ),
    "12": lambda **bits: embedded_mode([1, 1, 2], universe=9, epsilon=2, **bits),
    "C5": lambda **bits: mode([1, 1, 2], universe=9, epsilon=1, **bits),
    "13": lambda **bits: adassp(X, Y, epsilon=1, log_delta=-9.0, **LINEAR, **bits),
    "13 pure": lambda **bits: pure_adassp(X, Y, epsilon=2, **LINEAR, **bits),
    "C6": lambda **bits: lattice_adassp(X, Y, epsilon=1, mixing_weight="0.1", **LINEAR, **bits),
}
releases = pytest.mark.parametrize("name", RELEASES)


@releases
def test_the_certificate_is_proven_and_survives_json(name: str) -> None:
    certificate = RELEASES[name]().certificate
    assert zd.verify(certificate)
    assert zd.verify(certificate.to_json())
    assert certificate.status.value == "proven"
    for step in certificate.steps:
        for number in step.numbers.values():
            assert shown(number) in certificate.explain()


@releases
def test_replayed_bits_are_never_called_private(name: str) -> None:
    with pytest.raises(zd.errors.CertificateError, match="test bits"):
        zd.verify(replayed("replayed")(RELEASES[name])().certificate)


@releases
def test_the_certificate_does_not_depend_on_the_data(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = RELEASES[name]().certificate
    monkeypatch.setitem(globals(), "ROWS", ROWS[::-1] * 0)
    monkeypatch.setitem(globals(), "X", X * 0)
    assert RELEASES[name]().certificate == first


LOWER = {"C3": "threshold", "C4": "threshold", "C5": "threshold", "9": "threshold"}


@pytest.mark.parametrize("name", LOWER)
def test_a_lower_threshold_is_refused(name: str) -> None:
    certificate = RELEASES[name]().certificate
    (step,) = certificate.steps
    tau = Fraction(str(step.numbers["threshold"]))
    assert tau > 0
    numbers = {**step.numbers, "threshold": max(Fraction(0), tau - 1)}
    changed = Step(theorem=step.theorem, numbers=numbers, status=step.status)
    with pytest.raises(zd.errors.CertificateError):
        zd.verify(certificate.with_steps((changed,)))


@releases
def test_an_understated_claim_is_refused(name: str) -> None:
    certificate = RELEASES[name]().certificate
    claim = certificate.claim
    if isinstance(claim, zd.purification.PureDP):
        less: Any = zd.purification.PureDP(claim.exact_epsilon * Fraction(999_999, 10**6))
    elif isinstance(claim, zd.GaussianDP):
        less = zd.GaussianDP(mu_squared=claim.mu_squared * Fraction(999_999, 10**6))
    else:
        assert isinstance(claim, zd.ApproxDP)
        less = zd.ApproxDP(claim.exact_epsilon, claim.exact_log_delta - 1e-6)
    with pytest.raises(zd.errors.CertificateError):
        zd.verify(replace(certificate, claim=less, digest=""))


def test_the_wrong_row_of_the_table_is_refused() -> None:
    certificate = mode([1], universe=4, epsilon=1).certificate
    numbers = {"points": 4, "epsilon": 1, "threshold": 0}
    for noise, fine in (("discrete", True), ("rounded", False), ("real", False), ("odd", False)):
        step = Step(theorem="stable-mode", numbers={**numbers, "noise": noise})
        changed = certificate.with_steps((step,))
        if fine:
            assert zd.verify(changed)
        else:
            with pytest.raises(zd.errors.CertificateError):
                zd.verify(changed)


@releases
def test_a_release_carries_nothing_else(name: str) -> None:
    release = RELEASES[name]()
    assert isinstance(release.error, float)
    assert release.error == RELEASES[name]().error
    told = {"value", "certificate", "error", "noise", "seconds", "diagnostics", "sums", "plan"}
    assert set(release.__slots__) == told | {"record", "signatures", "paid_by"}
    assert release.diagnostics is None
    assert release.noise is None
    assert release.seconds is None
