"""Coq accepts what `verify` accepts, and refuses what it refuses, at the edge of every theorem."""

from __future__ import annotations

import pytest

import zerodelta as zd
from coq.compiled import PROOFS, needs_coq
from coq.edge_certificates import FAMILIES, certificate
from privacy.theorem_cases import CASES, accepts
from zerodelta.coq.proof_file import proof_file, run_coq

pytestmark = needs_coq
MANY = 60
"""More than 50, so that every family has as many."""
FEW = range(5)


def agrees(seed: int, *, valid: bool) -> None:
    made = certificate(seed, valid=valid)
    verdict = run_coq(proof_file(made).text, PROOFS)
    assert accepts(made.to_json()) is valid
    assert verdict.accepted is valid, verdict.message
    if not valid:  # for the number, and not for a mistake in the file
        assert "the numbers do not prove this inequality" in verdict.message


@pytest.mark.parametrize("seed", FEW)
def test_coq_accepts_what_verify_accepts(seed: int) -> None:
    agrees(2 * seed, valid=True)


@pytest.mark.parametrize("seed", FEW)
def test_coq_refuses_what_verify_refuses(seed: int) -> None:
    agrees(2 * seed + 1, valid=False)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(MANY))
def test_coq_accepts_all_that_verify_accepts(seed: int) -> None:
    agrees(seed, valid=True)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(MANY))
def test_coq_refuses_all_that_verify_refuses(seed: int) -> None:
    agrees(seed, valid=False)


def test_every_family_takes_its_turn() -> None:
    assert MANY % len(FAMILIES) == 0


TIGHT = sorted(label for label, made in CASES.items() if type(made.claim) is zd.purification.PureDP)


@pytest.mark.slow
@pytest.mark.parametrize("label", TIGHT)
def test_coq_accepts_every_tight_certificate(label: str) -> None:
    written = proof_file(CASES[label])
    assert written.is_empty or run_coq(written.text, PROOFS).accepted
