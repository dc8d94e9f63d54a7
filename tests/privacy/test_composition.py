"""Composition: laws, and bounds against the exact profile of Gaussian and randomized response."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pytest
from mpmath import mp, mpf

from privacy.profiles import real, with_randomized_responses
from zerodelta.errors import GuaranteeError, ParameterError
from zerodelta.privacy.claims import RDP, ZCDP, ApproxDP, Claim, GaussianDP, PureDP
from zerodelta.privacy.composition import Composed, claim_from_numbers, compose, zcdp_cost
from zerodelta.privacy.parameters import Neighbors

FAMILIES: dict[str, Claim] = {
    "pure": PureDP("1/7"),
    "range": PureDP("1/9", bounded_range=True),
    "approximate": ApproxDP("1/8", -50.0),
    "zcdp": ZCDP("1/500"),
    "rdp": RDP(lambda order: order / 700),
    "gaussian": GaussianDP("1/30"),
}


@pytest.fixture(autouse=True)
def _many_digits() -> Iterator[None]:
    with mp.workdps(60):
        yield


@pytest.mark.parametrize("size", [1, 2, 3])
def test_repeating_the_list_is_counting(size: int) -> None:
    for claims in itertools.combinations(FAMILIES.values(), size):
        for count in (2, 3):
            repeated = compose(*(list(claims) * count))
            counted = compose(*claims, count=count)
            assert type(repeated) is type(counted)
            for epsilon in ("1/10", 1, 3):
                one, other = repeated.log_delta(epsilon), counted.log_delta(epsilon)
                assert one == pytest.approx(other, rel=1e-9, abs=1e-12)


def test_counting_exactly() -> None:
    assert compose(PureDP("1/7"), PureDP("1/3"), count=100) == PureDP(100 * Fraction(10, 21))
    assert compose(GaussianDP(3), GaussianDP(4), count=4) == GaussianDP(10)
    assert compose(ZCDP("1/9"), GaussianDP(1), count=9) == ZCDP(1 + Fraction(9, 2))
    assert compose(ApproxDP(1, -50.0), PureDP(2)) == ApproxDP(3, -50.0)
    many = compose(ApproxDP("1/10", -50.0), count=1000)
    assert isinstance(many, ApproxDP)
    assert many.exact_epsilon == 100
    assert -50 + math.log(1000) <= many.exact_log_delta <= -50 + math.log(1000) + 1e-13
    assert compose(ApproxDP(1, delta="1/2"), count=9).log_delta(9) == 0.0


def test_order_does_not_matter() -> None:
    claims = list(FAMILIES.values())
    values = set()
    for seed in range(5):
        random.Random(seed).shuffle(claims)
        values.add(compose(*claims).log_delta(2))
    assert max(values) == pytest.approx(min(values), rel=1e-9)


def test_one_claim_once_is_itself_and_a_sum_loses_its_bounded_range() -> None:
    step = PureDP("1/9", bounded_range=True)
    assert compose(step) is step
    assert compose(step, count=2) == PureDP("2/9")
    assert compose(step, step) == PureDP("2/9", bounded_range=False)
    assert compose(PureDP(0), GaussianDP(1)) == GaussianDP(1)


def test_adding_a_step_never_helps() -> None:
    for one, other in itertools.permutations(FAMILIES.values(), 2):
        for epsilon in ("1/2", 2):
            both = compose(one, other).log_delta(epsilon)
            assert both >= one.log_delta(epsilon) - 1e-9


def test_mixed_relations_and_bad_arguments_are_refused() -> None:
    with pytest.raises(GuaranteeError):
        compose(PureDP(1), PureDP(1, neighbors=Neighbors.ADD_REMOVE))
    for bad in (0, -1, 1.5, True):
        with pytest.raises(ParameterError):
            compose(PureDP(1), count=bad)  # type: ignore[arg-type]
    with pytest.raises(ParameterError):
        compose()
    for one, other in itertools.combinations(FAMILIES.values(), 2):
        moved = [_moved(claim) for claim in (one, other)]
        assert compose(*moved).neighbors is Neighbors.ADD_REMOVE


def _moved(claim: Claim) -> Claim:
    return claim_from_numbers(claim.numbers(), Neighbors.ADD_REMOVE)


CASES = [
    ("1/50", "1/10", 1, 1),
    ("1/50", "1/10", 30, 2),
    ("1/50", "1/100", 300, 1),
    ("1", "1/2", 3, 4),
    ("1/100", "2", 1, "5/2"),
    ("1/10000", "1/20", 2, "1/2"),
]


@pytest.mark.parametrize(("mu_squared", "epsilon", "count", "t"), CASES)
def test_gaussian_with_pure_steps_bounds_the_exact_profile(
    mu_squared: str, epsilon: str, count: int, t: Any
) -> None:
    truth = mp.log(with_randomized_responses(mu_squared, epsilon, count, real(t)))
    claim = compose(GaussianDP(mu_squared=mu_squared), compose_list(epsilon, count))
    found = claim.log_delta(t)
    assert mpf(found) >= truth
    assert found <= float(truth) * 0.8 + 2  # and it is not far above
    # an (ε, δ) step is the same pure step and a failure
    log_delta = float(truth) - 3
    failing = compose(GaussianDP(mu_squared=mu_squared), ApproxDP(epsilon, log_delta), count=1)
    with_failure = compose(failing, *[PureDP(epsilon)] * (count - 1)).log_delta(t)
    assert mp.log(mp.exp(truth) + mp.exp(mpf(log_delta))) <= with_failure + 1e-30
    assert with_failure <= found + 1


def compose_list(epsilon: str, count: int) -> Claim:
    """Return pure steps that stay apart when they are composed further."""
    return Composed(pure=((Fraction(epsilon), False, count),))


def test_each_route_is_the_better_one_somewhere() -> None:
    # one large pure step: shift the exact Gaussian profile; many small ones: concentrated
    large = compose(GaussianDP("1/20"), PureDP("1/2"))
    assert large.log_delta(2) == GaussianDP("1/20").log_delta("3/2")
    small = compose(GaussianDP("1/20"), *[PureDP("1/100")] * 400)
    assert small.log_delta(2) < -5  # although the pure steps add up to 4
    for claim, t in ((large, 2), (small, 2), (small, 5)):
        assert claim.log_delta(t) <= ZCDP(zcdp_cost(claim)).log_delta(t) + 1e-9


def test_approximate_with_gaussian_is_at_most_basic_composition() -> None:
    gaussian, approximate = GaussianDP("1/20"), ApproxDP("1/4", -60.0)
    found = compose(gaussian, approximate).log_delta(1)
    basic = math.log(math.exp(-60) + math.exp(gaussian.log_delta("3/4")))
    assert found <= basic + 1e-9


def test_zcdp_costs() -> None:
    assert zcdp_cost(PureDP(1, bounded_range=True)) == Fraction(1, 8)
    truth = mp.tanh(mpf(1) / 2)
    found = zcdp_cost(PureDP(1))
    assert truth <= real(found) <= truth * (1 + mpf("1e-15"))
    mix = compose(GaussianDP(1), PureDP(1, bounded_range=True), ZCDP("1/3"))
    assert zcdp_cost(mix) == Fraction(1, 2) + Fraction(1, 8) + Fraction(1, 3)
    for none in (ApproxDP(1, -9.0), RDP({2: 1}), compose(GaussianDP(1), ApproxDP(1, -9.0))):
        with pytest.raises(GuaranteeError):
            zcdp_cost(none)


def test_permute_and_flip_is_not_a_bounded_range_step() -> None:
    """Scores (0, 0) against (1, -1): its KL divergence is above ε²/8 and within ε·tanh(ε/2)."""
    for epsilon in (0.1, 1.0, 3.0):
        win = 1 - math.exp(-epsilon) / 2  # P(first) = 1 - x/2 with x = e^-(2/b), b = 2/ε
        divergence = 0.5 * math.log(0.5 / win) + 0.5 * math.log(0.5 / (1 - win))
        assert divergence == pytest.approx((epsilon - math.log(2 - math.exp(-epsilon))) / 2)
        assert divergence > float(zcdp_cost(PureDP(epsilon, bounded_range=True)))
        assert divergence <= float(zcdp_cost(PureDP(epsilon)))


def test_exponential_mechanism_steps_stay_within_their_cost() -> None:
    """Random pairs whose loss has range ε, at many orders, against ε²a/8 and the curve."""
    rng = random.Random(8)
    for _ in range(500):
        epsilon, order = rng.uniform(0.05, 4), 1 + 10 ** rng.uniform(-2, 2)
        q = [rng.random() ** 3 for _ in range(4)]
        loss = [rng.choice([0.0, 1.0, rng.random()]) * epsilon for _ in q]
        total, mean = sum(q), sum(x * math.exp(s) for x, s in zip(q, loss, strict=True))
        p = [x * math.exp(s) / mean for x, s in zip(q, loss, strict=True)]
        q = [x / total for x in q]
        moment = sum((x / y) ** order * y for x, y in zip(p, q, strict=True))
        divergence = math.log(moment) / (order - 1)
        claim = Composed(pure=((Fraction(epsilon), True, 1),))
        bound = claim.curve().value(Fraction(order))
        assert bound is not None
        assert divergence <= float(bound) + 1e-9
        assert divergence <= order * epsilon**2 / 8 + 1e-9
