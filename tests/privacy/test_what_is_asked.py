"""`verify` answers with the claim, demands what is asked of it, and the summary says no more."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import zerodelta as zd
from privacy.chains import CHAINS, given
from zerodelta.exact.bits import SystemBits
from zerodelta.mechanisms.sum_noise import KNorm
from zerodelta.privacy.certificate import BARE_ROWS, OUR_ASSUMPTIONS
from zerodelta.privacy.parameters import Neighbors
from zerodelta.privacy.steps import Status, Step
from zerodelta.spine.plan import issue
from zerodelta.study.plan import FUNCTIONS

LAPLACE = Step(theorem="rounded-laplace", numbers={"sensitivity": 1, "scale": 2})
HALF = zd.records.Certificate(claim=zd.purification.PureDP("1/2"), steps=(LAPLACE,))
ADD_REMOVE = zd.records.Certificate(
    claim=zd.purification.PureDP("1/2", neighbors=Neighbors.ADD_REMOVE),
    steps=(replace(LAPLACE, neighbors=Neighbors.ADD_REMOVE),),
)
GAUSSIAN = zd.records.Certificate(
    claim=zd.GaussianDP(1),
    steps=(Step(theorem="rounded-gaussian", numbers={"sensitivity_squared": 1, "variance": 1}),),
)


@pytest.mark.parametrize("certificate", [HALF, ADD_REMOVE, GAUSSIAN])
def test_the_claim_is_returned_and_is_true(certificate: zd.records.Certificate) -> None:
    found = zd.verify(certificate)
    assert found == certificate.claim
    assert type(found) is type(certificate.claim)
    assert bool(found)


def test_the_claim_is_at_most_the_epsilon_that_is_asked() -> None:
    for enough in ("1/2", 0.5, 1, Fraction(1, 2), "1e300"):
        assert zd.verify(HALF, epsilon=enough) == HALF.claim
    for less in (0, "0.4999999999", 0.25, Fraction(1, 2) - Fraction(1, 10**30)):
        with pytest.raises(zd.errors.CertificateError, match="too weak"):
            zd.verify(HALF, epsilon=less)


def test_what_is_not_pure_has_no_epsilon_to_ask_for() -> None:
    for certificate in (
        GAUSSIAN,
        replace(GAUSSIAN, claim=zd.purification.ZCDP("1/2"), digest=""),
        replace(HALF, claim=zd.ApproxDP("1/2", -10.0), digest=""),
    ):
        assert zd.verify(certificate) == certificate.claim
        with pytest.raises(zd.errors.CertificateError, match="not pure"):
            zd.verify(certificate, epsilon=10**6)


def test_add_remove_counts_double_where_replace_is_asked_and_never_the_other_way() -> None:
    assert zd.verify(ADD_REMOVE, epsilon=1) == ADD_REMOVE.claim
    assert zd.verify(ADD_REMOVE, epsilon=1, neighbors=Neighbors.REPLACE) == ADD_REMOVE.claim
    assert zd.verify(ADD_REMOVE, epsilon="1/2", neighbors="add-remove") == ADD_REMOVE.claim
    with pytest.raises(zd.errors.CertificateError, match="twice"):
        zd.verify(ADD_REMOVE, epsilon="0.9999999999")
    with pytest.raises(zd.errors.CertificateError, match="too weak"):
        zd.verify(ADD_REMOVE, epsilon="0.4999999999", neighbors="add-remove")
    for epsilon in (None, "1/2", 1, 10**6):
        with pytest.raises(zd.errors.CertificateError, match="adding or removing"):
            zd.verify(HALF, epsilon=epsilon, neighbors="add-remove")


def test_proven_refuses_what_is_asserted_or_idealized() -> None:
    assumed = replace(HALF, assumed=("the moon is round",), digest="")
    assert zd.verify(assumed, proven=True) == HALF.claim  # proven, under one assumption
    for status in (Status.ASSERTED, Status.IDEALIZED):
        weaker = HALF.with_steps((replace(LAPLACE, status=status),))
        assert zd.verify(weaker) == HALF.claim
        with pytest.raises(zd.errors.CertificateError, match=status.value):
            zd.verify(weaker, proven=True)


@pytest.mark.parametrize(
    "asked",
    [
        {"epsilon": -1},
        {"epsilon": "x"},
        {"epsilon": True},
        {"epsilon": float("nan")},
        {"neighbors": "swap"},
        {"neighbors": None},
        {"neighbors": 3},
        {"proven": "yes"},
        {"proven": None},
    ],
)
def test_a_malformed_question_is_a_parameter_error(asked: dict[str, Any]) -> None:
    ((name, _),) = asked.items()
    with pytest.raises(zd.errors.ParameterError, match=name):
        zd.verify(HALF, **asked)


def test_a_certificate_that_proves_nothing_is_refused_whatever_is_asked() -> None:
    understated = replace(HALF, claim=zd.purification.PureDP("1/4"), digest="")
    for asked in ({}, {"epsilon": 1}, {"proven": True}, {"neighbors": "add-remove"}):
        with pytest.raises(zd.errors.CertificateError, match="do not prove"):
            zd.verify(understated, **asked)


# The one-line summary.


def rests(certificate: zd.records.Certificate) -> str:
    return certificate.summary.split(": ")[-1]


def test_the_summary_counts_assumptions_and_assertions() -> None:
    assert rests(HALF) == "proven"
    assert rests(replace(HALF, assumed=("a",), digest="")) == "proven under 1 assumption"
    assert rests(replace(HALF, assumed=("a", "b"), digest="")) == "proven under 2 assumptions"
    asserted = replace(LAPLACE, status=Status.ASSERTED)
    for steps, said in (
        ((asserted,), "conditional on 1 caller assertion"),
        ((asserted, LAPLACE), "conditional on 1 caller assertion"),
        ((asserted, asserted), "conditional on 1 caller assertion"),
    ):
        assert rests(replace(HALF.with_steps(steps), assumed=("a",), digest="")) == said
    without = HALF.with_steps((asserted, asserted))
    assert rests(without) == "conditional on 2 caller assertions"  # of which nothing is said
    both = replace(without, assumed=("a", "b", BARE_ROWS), digest="")
    assert rests(both) == "conditional on 2 caller assertions"
    ideal = replace(LAPLACE, status=Status.IDEALIZED)
    assert rests(HALF.with_steps((ideal, ideal))) == "for real arithmetic only"
    mixed = "for real arithmetic only, and conditional on 1 caller assertion"
    assert rests(HALF.with_steps((asserted, ideal))) == mixed
    assert rests(CHAINS["all"].certificate()) == "conditional on 1 caller assertion"


def test_a_stated_claim_is_a_premise_of_its_own() -> None:
    first, second = given(zd.purification.PureDP("1/4")), given(zd.purification.PureDP("1/8"))
    for steps, assumed, count in (
        ((first,), (), 1),
        ((first, first), (), 1),
        ((first, second), (), 2),
        ((first, second), ("a",), 3),
        ((first,), (BARE_ROWS,), 1),
        ((LAPLACE,), ("a",), 0),
    ):
        made = zd.records.Certificate(claim=zd.purification.PureDP(1), steps=steps, assumed=assumed)
        assert made.assertions == count


def test_what_a_study_assumes_of_its_program_is_no_assertion() -> None:
    study = zd.Study(np.ones((50, 1)), epsilon=1, publish=zd.Finite(2), rounds=1)
    own = set(study.run(lambda asked: 0).certificate.assumed)
    assert own - OUR_ASSUMPTIONS <= {FUNCTIONS}
    assert len(own & OUR_ASSUMPTIONS) >= 3


# What nobody can see of rows that come as an array.


def test_rows_from_an_array_or_a_list_are_an_assumption() -> None:
    for release in (
        zd.mean(np.ones(10), bounds=(0, 2), epsilon=1),
        zd.mean([1.0, 2.0], bounds=(0, 2), epsilon=1),
        zd.mode(["a", "b"], universe=["a", "b"], epsilon=1),
        zd.histogram([0, 1, 1], universe=2, epsilon=1),
        zd.select(np.ones((4, 2)), bounds=(0, 1), epsilon=1),
    ):
        assert release.certificate.assumed == (BARE_ROWS,)
        assert rests(release.certificate) == "proven under 1 assumption"
        assert zd.verify(release.certificate, epsilon=1, proven=True)


def test_a_value_that_is_handed_in_has_no_rows() -> None:
    for release in (
        zd.purify(1, space=zd.Finite(4), claim=zd.GaussianDP("1/10"), epsilon=1),
        zd.select({"a": 1, "b": 2}, sensitivity=1, epsilon=1),
    ):
        assert BARE_ROWS not in release.certificate.assumed
        assert rests(release.certificate) == "conditional on 1 caller assertion"


def test_a_plan_with_proven_steps_has_read_rows() -> None:
    claim = zd.GaussianDP(mu_squared="1/100")
    gaussian = Step(theorem="rounded-gaussian", numbers={"sensitivity_squared": 1, "variance": 100})
    plan = zd.plan(zd.Finite(4), epsilon=1, base=claim)
    assert plan.certificate(claim, steps=(gaussian,)).assumed == (BARE_ROWS,)
    assert plan.certificate(claim).assumed == ()


def test_sentences_of_several_lines_are_issued_on_one() -> None:
    made = issue(
        claim=zd.purification.PureDP("1/2"),
        steps=(LAPLACE,),
        bits=SystemBits(),
        row="one\n  row",
        public=("the points [[1 2]\n [3 4]]", "a bell \a"),
        bare_rows=False,
    )
    assert (made.row, made.public) == ("one row", ("the points [[1 2] [3 4]]", "a bell \\x07"))
    assert made.assumed == ()
    assert zd.verify(made.to_json()) == zd.purification.PureDP("1/2")


# The norm and the quantum of K-norm noise.


def test_a_mean_states_what_one_unit_of_its_integers_is() -> None:
    """ε = sensitivity/scale in lattice units; times the quantum it is the width of the data."""
    for bounds, width in (((0, 2), 2), ((-3, 3), 6)):
        (step,) = zd.mean(np.ones(10), bounds=bounds, epsilon=1).certificate.steps
        quantum, moved = (Fraction(step.numbers[name]) for name in ("quantum", "sensitivity"))
        assert quantum * moved == width
    (step,) = zd.mean(np.ones((10, 2)), bounds=([0, 0], [2, 6]), epsilon=1).certificate.steps
    assert step.theorem == "k-norm-noise"
    first, second = map(Fraction, step.numbers["quantum"])
    assert second == 3 * first


def test_rounds_of_kmeans_name_the_norm_of_their_noise() -> None:
    """Independent noise in each block has the sum of the blocks' l2 norms as its norm."""
    rows = np.ones((500, 3))
    release = zd.kmeans(rows, clusters=2, bounds=(0, 10), epsilon=1, method="lloyd")
    _, *rounds = release.certificate.steps
    for step in rounds:
        assert (step.theorem, step.numbers["norm"]) == ("k-norm-noise", "blocks")
        quantum, moved = (Fraction(step.numbers[name]) for name in ("quantum", "sensitivity"))
        assert float(quantum * moved) == pytest.approx(2 * 2**0.5)  # two rows of norm √2
    said = release.certificate.explain()
    assert "the sum of the l2 norms of the blocks" in said
    assert len(rounds) >= 1


def test_a_step_must_say_what_its_unit_is() -> None:
    noise = KNorm.for_epsilon(epsilon=1, norm=2, dimension=3, sensitivity=1)
    with pytest.raises(TypeError, match="quantum"):
        noise.step()  # type: ignore[call-arg]
    assert noise.step(quantum=None).numbers["quantum"] == 1
    many = tuple(Fraction(1, place + 1) for place in range(10_001))
    assert noise.step(quantum=many).numbers["quantum"] == "each column's own"
    largest = KNorm.for_epsilon(epsilon=1, norm=math.inf, dimension=3, sensitivity=1)
    with pytest.raises(zd.errors.ParameterError, match="norm=2"):
        largest.step(quantum=None, blocks=True)
