"""Certificates of several parts add up exactly, and name whom they protect."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

import zerodelta as zd
from privacy.chains import CHAINS, data_of, given, resealed
from privacy.theorem_cases import CASES
from zerodelta.exact.bits import SystemBits
from zerodelta.privacy.composition import Composed, transcript_claim
from zerodelta.privacy.parameters import Neighbors
from zerodelta.privacy.steps import Part, Status, Step
from zerodelta.privacy.theorems import THEOREMS
from zerodelta.spine.plan import issue

F = Fraction
HALF = Step(theorem="rounded-laplace", numbers={"sensitivity": 1, "scale": 2})
THIRD = Step(theorem="permute-and-flip", numbers={"sensitivity": 1, "scale": 6, "monotone": False})
MIXED = CHAINS["Finite"]
ONE = Fraction(MIXED.smallest)
PURIFIED = Part(steps=(*MIXED.base, MIXED.channel), epsilon=ONE)


def certificate(*parts: Part, epsilon: Fraction) -> zd.records.Certificate:
    return zd.records.Certificate(claim=zd.purification.PureDP(epsilon), parts=parts)


def refused(made: zd.records.Certificate | str, match: str) -> None:
    with pytest.raises(zd.errors.CertificateError, match=match):
        zd.verify(made)


def test_pure_parts_add_up_exactly() -> None:
    parts = (Part(steps=(HALF,)), Part(steps=(THIRD, HALF)))
    total = Fraction(1, 2) + Fraction(1, 3) + Fraction(1, 2)
    assert zd.verify(certificate(*parts, epsilon=total)) == zd.purification.PureDP(total)
    refused(certificate(*parts, epsilon=total - Fraction(1, 10**30)), "add up to")


def test_each_part_may_have_its_own_channel() -> None:
    parts = (PURIFIED, Part(steps=(HALF,)), PURIFIED)
    total = 2 * ONE + Fraction(1, 2)
    made = certificate(*parts, epsilon=total)
    assert zd.verify(made.to_json(), epsilon=total) == zd.purification.PureDP(total)
    refused(certificate(*parts, epsilon=total - Fraction(1, 10**30)), "add up to")


def test_a_part_cannot_state_less_than_it_costs() -> None:
    less = ONE - Fraction(1, 10**9)
    for part in (replace(PURIFIED, epsilon=less), Part(steps=(HALF,), epsilon=Fraction(49, 100))):
        refused(certificate(part, Part(steps=(HALF,)), epsilon=Fraction(9)), "do not prove")
    more = Part(steps=(HALF,), epsilon=Fraction(2, 3))
    assert zd.verify(certificate(more, more, epsilon=Fraction(4, 3)))
    refused(certificate(more, more, epsilon=Fraction(1)), "add up to")


def test_a_channel_in_one_of_several_parts_states_its_epsilon() -> None:
    silent = replace(PURIFIED, epsilon=None)
    refused(certificate(silent, Part(steps=(HALF,)), epsilon=Fraction(9)), "state its ε")
    assert zd.verify(certificate(silent, epsilon=ONE))
    refused(certificate(PURIFIED, epsilon=ONE), "only part")


def test_a_part_has_one_channel_and_it_is_last() -> None:
    twice = Part(steps=(*PURIFIED.steps, MIXED.channel), epsilon=ONE)
    turned = Part(steps=tuple(reversed(PURIFIED.steps)), epsilon=ONE)
    for part in (twice, turned):
        refused(certificate(part, Part(steps=(HALF,)), epsilon=Fraction(9)), "only the last step")
    bare = Part(steps=(MIXED.channel,), epsilon=ONE)
    refused(certificate(bare, Part(steps=(HALF,)), epsilon=Fraction(9)), "missing")


def test_only_pure_parts_add_up_and_only_to_a_pure_claim() -> None:
    gaussian = Part(
        steps=(Step(theorem="rounded-gaussian", numbers={"sensitivity_squared": 1, "variance": 4}),)
    )
    approximate = Part(steps=(given(zd.ApproxDP(1, -40.0)),))
    for part in (gaussian, approximate):
        refused(certificate(part, Part(steps=(HALF,)), epsilon=Fraction(9)), "only pure parts")
    parts = (Part(steps=(HALF,)), Part(steps=(HALF,)))
    for claim in (
        zd.purification.ZCDP(9),
        zd.ApproxDP(1, -1.0),
        zd.purification.PureDP(1, bounded_range=True),
    ):
        refused(
            zd.records.Certificate(claim=claim, parts=parts), "several parts prove plain pure DP"
        )


def test_a_real_minimum_needs_theorem_n_in_its_own_part() -> None:
    ideal, published = CASES["huber-objective-perturbation"].steps
    noise = given(zd.purification.PureDP("1/10"))
    alone = certificate(
        Part(steps=(ideal,)),
        Part(steps=(noise, published), epsilon=Fraction(1)),
        epsilon=Fraction(9),
    )
    refused(alone, "Theorem N")


def test_a_part_that_is_empty_or_cut_out_is_missed() -> None:
    refused(certificate(Part(steps=()), Part(steps=(HALF,)), epsilon=Fraction(9)), "missing")
    refused(certificate(epsilon=Fraction(9)), "missing")
    data = data_of(certificate(Part(steps=(HALF,)), PURIFIED, epsilon=Fraction(9)))
    del data["parts"][0]
    refused(resealed(data), "a part is missing")


@pytest.mark.parametrize("epsilon", [-1, "-1/2", 0.5, True, None, "x", [1], "1e5001", {}])
def test_what_a_part_states_is_a_number(epsilon: Any) -> None:
    data = data_of(certificate(Part(steps=(HALF,)), PURIFIED, epsilon=Fraction(9)))
    data["parts"][1]["epsilon"] = epsilon
    refused(resealed(data), ".")


def test_parts_survive_json_and_are_explained_one_by_one() -> None:
    made = certificate(PURIFIED, Part(steps=(HALF, THIRD)), epsilon=Fraction(9))
    assert zd.records.Certificate.from_json(made.to_json()) == made
    assert made.steps == (*PURIFIED.steps, HALF, THIRD)
    lines = [line.strip() for line in made.explain().splitlines()]
    assert [line.split(" ")[0] for line in lines[2:8]] == ["part", "1.", "2.", "part", "3.", "4."]
    assert "part 2 of 2:" in lines


def test_weaker_steps_stay_in_their_parts() -> None:
    made = certificate(Part(steps=(HALF,)), Part(steps=(THIRD, HALF)), epsilon=Fraction(2))
    weaker = made.with_steps(tuple(replace(step, status=Status.ASSERTED) for step in made.steps))
    assert [len(part.steps) for part in weaker.parts] == [1, 2]
    assert weaker.status is Status.ASSERTED
    assert zd.verify(weaker) == zd.purification.PureDP(2)
    with pytest.raises(zd.errors.CertificateError, match="parts="):
        made.with_steps((HALF,))


def test_parts_are_issued_like_steps() -> None:
    parts = (Part(steps=(HALF,)), PURIFIED)
    made = issue(claim=zd.purification.PureDP(9), parts=parts, bits=SystemBits(), bare_rows=False)
    assert made.parts == parts
    one = issue(claim=zd.purification.PureDP(1), steps=(HALF,), bits=SystemBits(), bare_rows=False)
    assert one.parts == (Part(steps=(HALF,)),)
    with pytest.raises(zd.errors.CertificateError, match="add up"):
        issue(claim=zd.purification.PureDP("1/2"), parts=(*parts,), bits=SystemBits())


# Units.

ALONE = Step(theorem="units", numbers={"max_rows": 1})
THREE = Step(theorem="units", numbers={"max_rows": 3})
CUSTOMER = zd.records.Certificate(
    claim=zd.purification.PureDP("1/2"), steps=(HALF, ALONE), unit="customer_id"
)


def test_a_unit_is_proven_only_if_it_is_asked_for() -> None:
    assert zd.verify(CUSTOMER, unit="customer_id", epsilon="1/2") == zd.purification.PureDP("1/2")
    for asked in ({}, {"unit": None}, {"unit": "household"}, {"unit": "Customer_id"}):
        with pytest.raises(zd.errors.CertificateError, match="all rows of one 'customer_id'"):
            zd.verify(CUSTOMER, **asked)
    row = replace(CUSTOMER, parts=(Part(steps=(HALF,)),), unit=None, digest="")
    assert zd.verify(row) == zd.purification.PureDP("1/2")
    with pytest.raises(zd.errors.CertificateError, match="protects a row"):
        zd.verify(row, unit="customer_id")


def test_the_unit_stands_in_the_claim_and_in_the_explanation() -> None:
    data = data_of(CUSTOMER)
    assert (data["claim"]["unit"], data["claim"]["neighbors"]) == ("customer_id", "replace")
    assert data_of(replace(CUSTOMER, unit=None, digest=""))["claim"]["unit"] is None
    assert "customer_id" in CUSTOMER.explain()
    del data["claim"]["unit"]
    refused(resealed(data), ".")
    for bad in (3, "", "two\nlines", ["customer_id"], True):
        data["claim"]["unit"] = bad
        refused(resealed(data), ".")


@pytest.mark.parametrize("unit", [3, "", "two\nlines", True, ["customer_id"]])
def test_a_malformed_unit_is_a_parameter_error(unit: Any) -> None:
    with pytest.raises(zd.errors.ParameterError, match="unit"):
        zd.verify(CUSTOMER, unit=unit)


def test_a_unit_is_issued_with_its_relation() -> None:
    step = replace(HALF, neighbors=Neighbors.ADD_REMOVE)
    claim = zd.purification.PureDP("1/2", neighbors=Neighbors.ADD_REMOVE)
    unit = replace(ALONE, neighbors=Neighbors.ADD_REMOVE)
    made = issue(claim=claim, steps=(step, unit), bits=SystemBits(), unit="customer_id")
    assert zd.verify(made, epsilon=1, unit="customer_id") == claim
    assert zd.verify(made, epsilon="1/2", unit="customer_id", neighbors="add-remove") == claim


def of_customer(*parts: Part, epsilon: Any) -> zd.records.Certificate:
    return zd.records.Certificate(
        claim=zd.purification.PureDP(epsilon), parts=parts, unit="customer_id"
    )


def test_a_unit_of_three_rows_costs_three_times_the_epsilon_of_one() -> None:
    """Group privacy: HALF proves 1/2 for a row, so a unit of three rows has 3/2 and no less."""
    three = Part(steps=(HALF, THREE))
    assert zd.verify(
        of_customer(three, epsilon="3/2"), unit="customer_id"
    ) == zd.purification.PureDP("3/2")
    for understated in ("1/2", "1", "149/100"):
        with pytest.raises(zd.errors.CertificateError, match="prove"):
            zd.verify(of_customer(three, epsilon=understated), unit="customer_id")
    both = of_customer(three, three, epsilon=3)
    assert zd.verify(both, unit="customer_id", epsilon=3) == zd.purification.PureDP(3)
    with pytest.raises(zd.errors.CertificateError, match="add up"):
        zd.verify(of_customer(three, three, epsilon="5/2"), unit="customer_id")
    with pytest.raises(zd.errors.CertificateError, match="at most 1 and 3 rows"):
        zd.verify(of_customer(three, Part(steps=(HALF, ALONE)), epsilon=2), unit="customer_id")
    stated = Part(steps=(HALF, THREE), epsilon=Fraction(3, 2))
    assert zd.verify(
        of_customer(stated, stated, epsilon=3), unit="customer_id"
    ) == zd.purification.PureDP(3)
    less = Part(steps=(HALF, THREE), epsilon=Fraction(1, 2))
    refused_for_unit(of_customer(less, less, epsilon=1))


def refused_for_unit(made: zd.records.Certificate) -> None:
    with pytest.raises(zd.errors.CertificateError):
        zd.verify(made, unit="customer_id")


def test_a_unit_needs_its_theorem_in_every_part_and_nobody_else_has_it() -> None:
    refused_for_unit(of_customer(Part(steps=(HALF,)), epsilon=9))
    refused_for_unit(of_customer(Part(steps=(HALF, THREE)), Part(steps=(HALF,)), epsilon=9))
    refused_for_unit(of_customer(Part(steps=(THREE, HALF)), epsilon=9))
    refused_for_unit(of_customer(Part(steps=(HALF, THREE, THREE)), epsilon="3/2"))
    refused_for_unit(of_customer(Part(steps=(THREE,)), epsilon=9))
    with pytest.raises(zd.errors.CertificateError, match="units"):
        zd.verify(zd.records.Certificate(claim=zd.purification.PureDP(9), steps=(HALF, THREE)))


# Units before a channel: what is never seen need not be pure (theory V).

HALVES = Step(theorem="uniform-mixing", numbers={"size": 2, "weight": F(1, 4)})


def gaussian(mu_squared: Fraction) -> Step:
    return Step(theorem="adaptive-gaussian", numbers={"mu_squared": mu_squared, "rounds": 9})


def zcdp(rho: Fraction) -> Step:
    return Step(theorem="adaptive-zcdp", numbers={"rho": rho, "rounds": 9})


def rounded(mu_squared: Fraction) -> Step:
    numbers = {"sensitivity_squared": 4, "variance": 4 / mu_squared}
    return Step(theorem="rounded-gaussian", numbers=numbers)


def units(rows: int) -> Step:
    return Step(theorem="units", numbers={"max_rows": rows})


def clipped_units(rows: int, weight: int) -> Step:
    return Step(theorem="clipped-units", numbers={"max_rows": rows, "weight": weight})


@pytest.mark.parametrize(
    ("base", "of_unit", "times"),
    [
        *((base, units(rows), rows) for base in (gaussian, zcdp) for rows in (1, 2, 3)),
        (rounded, clipped_units(5, 1), 1),
        (rounded, clipped_units(5, 3), 3),
        (rounded, clipped_units(2, 2), 2),
        (rounded, clipped_units(2, 9), 2),
    ],
)
def test_before_a_channel_a_unit_has_a_share_of_the_square(
    base: Any, of_unit: Step, times: int
) -> None:
    """Of the largest μ² or ρ that one row may have: the m²-th part, or weight²-th, no more."""

    def holds(cost: Fraction, *middle: Step) -> bool:
        part = Part(steps=(base(cost), *middle, HALVES))
        unit = "customer_id" if middle else None
        claim = zd.purification.PureDP(1)
        try:
            zd.verify(zd.records.Certificate(claim=claim, parts=(part,), unit=unit), unit=unit)
        except zd.errors.CertificateError:
            return False
        return True

    most, least = F(10), F(0)  # the largest cost that one row may have, to 2^-40
    for _ in range(44):
        middle = (most + least) / 2
        most, least = (most, middle) if holds(middle) else (middle, least)
    assert holds(least / times**2, of_unit)
    assert not holds(most / times**2, of_unit)


def test_clipping_together_is_about_sums_with_gaussian_noise_before_a_channel() -> None:
    clipped = Step(theorem="clipped-units", numbers={"max_rows": 3, "weight": 1})
    small = rounded(F(1, 100))
    fine = of_customer(Part(steps=(small, small, clipped, HALVES)), epsilon=9)
    assert zd.verify(fine, unit="customer_id") == zd.purification.PureDP(9)
    assert "clipped to 1 times" in fine.explain()
    with pytest.raises(zd.errors.CertificateError, match="customer_id"):
        zd.verify(fine)
    for steps in (
        (gaussian(F(1, 100)), clipped, HALVES),  # histograms and choices are no such sums
        (zcdp(F(1, 100)), clipped, HALVES),
        (small, HALF, clipped, HALVES),
        (HALF, clipped, HALVES),
        (HALF, clipped),
        (small, HALVES, clipped),
        (small, clipped, clipped, HALVES),
        (small, clipped, THREE, HALVES),
        (small, THREE, clipped, HALVES),
        (small, clipped, HALVES, THREE),
        (clipped, HALVES),
        (clipped, small, HALVES),
    ):
        refused_for_unit(of_customer(Part(steps=steps), epsilon=9))
    for numbers in ({"max_rows": 3}, {"max_rows": 3, "weight": 0}, {"weight": 1}):
        step = Step(theorem="clipped-units", numbers=numbers)
        refused_for_unit(of_customer(Part(steps=(small, step, HALVES)), epsilon=9))


VOTES = Step(
    theorem="permute-and-flip",
    numbers={"sensitivity": 1, "scale": 4, "monotone": False},
    status=Status.ASSERTED,
)
DEALT = Step(theorem="unit-votes", numbers={"max_rows": 3}, status=Status.ASSERTED)


def test_a_unit_that_has_one_block_moves_one_vote_whatever_its_rows() -> None:
    fine = of_customer(Part(steps=(VOTES, DEALT)), epsilon="1/2")
    assert zd.verify(fine, unit="customer_id", epsilon="1/2") == zd.purification.PureDP("1/2")
    assert "the one block that the unit drew" in fine.explain()
    both = of_customer(Part(steps=(VOTES, DEALT)), Part(steps=(HALF, THREE)), epsilon=2)
    assert zd.verify(both, unit="customer_id") == zd.purification.PureDP(2)
    for less in (
        of_customer(Part(steps=(VOTES, DEALT)), epsilon="49/100"),
        of_customer(Part(steps=(VOTES, DEALT)), Part(steps=(HALF, THREE)), epsilon="199/100"),
        of_customer(Part(steps=(VOTES, DEALT)), Part(steps=(HALF, ALONE)), epsilon=2),
    ):
        refused_for_unit(less)
    with pytest.raises(zd.errors.CertificateError, match="customer_id"):
        zd.verify(fine)


def test_unit_votes_are_about_permute_and_flip_alone_and_rest_on_a_word() -> None:
    small = replace(VOTES, numbers={**VOTES.numbers, "sensitivity": F(1, 2)})
    up = replace(VOTES, numbers={**VOTES.numbers, "monotone": True})
    gumbel = replace(VOTES, theorem="exponential-mechanism")
    for steps in (
        (DEALT,),
        (DEALT, VOTES),
        (HALF, DEALT),
        (small, DEALT),
        (up, DEALT),
        (gumbel, DEALT),
        (VOTES, VOTES, DEALT),
        (VOTES, DEALT, DEALT),
        (VOTES, THREE, DEALT),
        (VOTES, DEALT, THREE),
        (VOTES, DEALT, HALVES),
        (VOTES, replace(DEALT, status=Status.PROVEN)),
    ):
        refused_for_unit(of_customer(Part(steps=steps), epsilon=9))
        refused_for_unit(of_customer(Part(steps=steps), Part(steps=(HALF, THREE)), epsilon=99))


def test_what_a_group_costs() -> None:
    pure = ((F(1, 4), False, 3), (F(1, 4), True, 2), (F(1, 2), True, 1))
    row = Composed(mu_squared=F(2), rho=F(3, 5), pure=pure)
    group = row.of_group(3)
    assert (group.mu_squared, group.rho) == (F(18), F(27, 5))
    assert group.pure == ((F(3, 4), False, 5), (F(3, 2), False, 1))
    assert row.of_group(1).zcdp_rho >= row.zcdp_rho
    for unknown in (
        Composed(log_failure=-9.0),
        transcript_claim([(zd.purification.RDP(lambda a: a), 1)]),
    ):
        with pytest.raises(zd.errors.GuaranteeError):
            unknown.of_group(2)


def test_units_stand_once_and_before_channels_that_only_look_at_the_claim() -> None:
    small = gaussian(F(1, 100))
    for steps in (
        (small, THREE, THREE, HALVES),
        (small, THREE, HALVES, THREE),
        (THREE, small, HALVES),
        (THREE, HALVES),
        (small, THREE),
        (replace(HALF, neighbors=Neighbors.ADD_REMOVE), THREE, Step(theorem="parallel-blocks")),
    ):
        refused_for_unit(of_customer(Part(steps=steps), epsilon=9))
    fine = of_customer(Part(steps=(small, THREE, HALVES)), epsilon=9)
    assert zd.verify(fine, unit="customer_id") == zd.purification.PureDP(9)
    also = of_customer(Part(steps=(small, HALVES, THREE)), epsilon=9)
    assert zd.verify(also, unit="customer_id") == zd.purification.PureDP(9)
    with pytest.raises(zd.errors.CertificateError, match="units"):
        zd.verify(
            zd.records.Certificate(claim=zd.purification.PureDP(9), steps=(small, THREE, HALVES))
        )


def test_the_last_step_that_is_smoothed_is_not_multiplied() -> None:
    """Theorem S is about the move of the last step: a unit's is another."""
    chain = next(c for c in CHAINS.values() if c.channel.theorem == "gaussian-smoothing")
    one = Step(theorem="units", numbers={"max_rows": 1})
    refused_for_unit(of_customer(Part(steps=(*chain.base, one, chain.channel)), epsilon=10**6))


@pytest.mark.parametrize(
    "label",
    [
        *("public", "smooth-sensitivity", "propose-test-release", "pure-propose-test-release"),
        *("noisy-local-sensitivity", "pure-local-sensitivity", "sampling-without-replacement"),
    ],
)
def test_what_needs_the_number_of_rows_says_nothing_of_units(label: str) -> None:
    assert THEOREMS[label].every_row
    if label == "public":
        public = Step(theorem="public")
        assert zd.verify(
            zd.records.Certificate(claim=zd.purification.PureDP(0), steps=(public,))
        ) == zd.purification.PureDP(0)
        for parts in ((Part(steps=(public, ALONE)),), (Part(steps=(public, THREE)),) * 2):
            with pytest.raises(zd.errors.CertificateError, match="does not apply to units"):
                zd.verify(of_customer(*parts, epsilon=9), unit="customer_id")
