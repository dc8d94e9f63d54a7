"""A proof that was checked is not checked again when it is issued; everything else is as before."""

from __future__ import annotations

from typing import Any

import pytest

import zerodelta as zd
from zerodelta.errors import CertificateError
from zerodelta.exact.bits import ReplayBits, SystemBits
from zerodelta.privacy import verify as verifier
from zerodelta.privacy.certificate import Certificate
from zerodelta.privacy.steps import Step
from zerodelta.spine import plan as release_plan
from zerodelta.spine.plan import issue

STEP = Step(theorem="rounded-laplace", numbers={"sensitivity": 2, "scale": 4})


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> list[Certificate]:
    """Certificates whose parts were checked while they were issued; nothing is known at first."""
    monkeypatch.setattr(release_plan, "_CHECKED", {})
    seen: list[Certificate] = []

    def watched(certificate: Certificate) -> None:
        seen.append(certificate)
        verifier.check_parts(certificate)

    monkeypatch.setattr(release_plan, "check_parts", watched)
    return seen


def issued(epsilon: Any = "1/2", *, bits: Any = None, **changes: Any) -> Certificate:
    given: dict[str, Any] = {"claim": zd.purification.PureDP(epsilon), "steps": (STEP,), **changes}
    return issue(**given, bits=SystemBits() if bits is None else bits)


def test_the_same_proof_is_checked_once(checked: list[Certificate]) -> None:
    first, again = issued(), issued()
    assert checked == [first]
    assert first == again
    assert zd.verify(again, epsilon="1/2") == zd.purification.PureDP("1/2")


@pytest.mark.parametrize(
    "changes",
    [
        {"epsilon": "3/4"},
        {"steps": (STEP, STEP), "epsilon": 1},
        {"steps": (Step(theorem="rounded-laplace", numbers={**STEP.numbers, "scale": 5}),)},
        {"unit": "customer", "steps": (STEP, Step(theorem="units", numbers={"max_rows": 1}))},
        {"public": ("the number of rows",)},
        {"bare_rows": False},
    ],
    ids=["epsilon", "two steps", "scale", "unit", "public", "bare rows"],
)
def test_another_proof_is_checked(changes: dict[str, Any], checked: list[Certificate]) -> None:
    issued()
    other = issued(**changes)
    assert checked[1:] == [other]


def test_what_proves_nothing_is_refused_each_time(checked: list[Certificate]) -> None:
    for _ in range(3):
        with pytest.raises(CertificateError):
            issued("1/3")
    assert len(checked) == 3


def test_replayed_bits_brand_a_remembered_proof(checked: list[Certificate]) -> None:
    issued()
    replayed = issued(bits=ReplayBits("remembered"))
    assert len(checked) == 1
    assert "NOT PRIVATE" in replayed.summary
    with pytest.raises(CertificateError, match="replayed"):
        zd.verify(replayed)


def test_verify_remembers_nothing(
    checked: list[Certificate], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = issued()
    evaluated: list[Certificate] = []
    monkeypatch.setattr(verifier, "_check", evaluated.append)
    for _ in range(2):
        zd.verify(made)
        zd.verify(made.to_json())
    assert len(evaluated) == 4


def test_the_memory_is_bounded_and_forgets_the_oldest(
    checked: list[Certificate], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(release_plan, "_MAX_CHECKED", 2)
    for epsilon in (1, 2, 3, 3, 2, 1):
        issued(epsilon)
    assert [made.claim for made in checked] == [
        zd.purification.PureDP(epsilon) for epsilon in (1, 2, 3, 1)
    ]
    assert len(release_plan._CHECKED) == 2
