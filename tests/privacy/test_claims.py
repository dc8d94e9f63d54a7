"""Claims and their composition against 120-digit mpmath, and the laws that every claim obeys."""

from __future__ import annotations

import itertools
import json
import math
import random
from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from typing import Any

import pytest
from mpmath import mp, mpf

from privacy.profiles import gaussian_delta, real, with_randomized_responses, zcdp_log_delta
from zerodelta.errors import GuaranteeError, ParameterError
from zerodelta.privacy.claims import RDP, ZCDP, ApproxDP, Claim, GaussianDP, PureDP
from zerodelta.privacy.composition import Composed, claim_from_numbers, compose, zcdp_cost
from zerodelta.privacy.parameters import Neighbors
from zerodelta.privacy.steps import Step
from zerodelta.privacy.theorems.subsampling import subsampled_gaussian

EXAMPLES: dict[str, Claim] = {
    "pure": PureDP("3/10"),
    "bounded range": PureDP("3/10", bounded_range=True),
    "approximate": ApproxDP("1/2", -40.0),
    "zcdp": ZCDP("1/300"),
    "gaussian": GaussianDP("1/20", neighbors=Neighbors.ADD_REMOVE),
    "rdp table": RDP({2: "1/300", 30: "1/20", "100.5": "1/5"}),
    "rdp function": RDP(lambda order: order / 300),
    "subsampled": subsampled_gaussian(
        rows=500, batch=5, sensitivity_squared=4, variance=64, steps=50
    ),
    "composed": compose(GaussianDP("1/20"), PureDP("1/9", bounded_range=True), PureDP("1/50")),
    "composed failing": compose(ZCDP("1/300"), ApproxDP("1/50", -70.0), RDP({8: "1/9"})),
}
every_claim = pytest.mark.parametrize("claim", EXAMPLES.values(), ids=EXAMPLES.keys())


@pytest.fixture(autouse=True)
def _many_digits() -> Iterator[None]:
    with mp.workdps(120):
        yield


def assert_just_above(found: float, truth: mpf, relative: float = 1e-12) -> None:
    assert mpf(found) >= truth
    assert mpf(found) - truth <= relative * (abs(truth) + mpf("1e-300"))


@pytest.mark.parametrize("target", [-1.0, -30.0, -1e3, -1e5, -1e6])
@pytest.mark.parametrize("epsilon", ["1/1000", "1/10", 1, 50])
def test_gaussian_and_zcdp_profiles_are_the_real_ones_rounded_up(
    epsilon: Any, target: float
) -> None:
    t, ell = float(Fraction(epsilon)), -target
    rho = Fraction((math.sqrt(ell + t) - math.sqrt(ell)) ** 2)
    with mp.workdps(60):
        truth = zcdp_log_delta(rho, epsilon)
        assert_just_above(ZCDP(rho).log_delta(epsilon), truth)
    delta = mp.log(gaussian_delta(2 * rho, real(epsilon)))
    assert_just_above(GaussianDP(mu_squared=2 * rho).log_delta(epsilon), delta)


def times(rho: Fraction, order: float) -> Fraction:
    return rho * Fraction(order)


def test_a_table_and_a_function_prove_what_zcdp_proves() -> None:
    rng = random.Random(3)
    for _ in range(50):
        rho, t = Fraction(10 ** rng.uniform(-8, 1)), Fraction(10 ** rng.uniform(-2, 1))
        exact = ZCDP(rho).log_delta(t)
        function = RDP(partial(times, rho))
        assert function.log_delta(t) == pytest.approx(exact, rel=1e-12, abs=1e-12)
        integers = RDP(partial(times, rho), integer_orders=True).log_delta(t)
        assert exact * (1 + 1e-12) <= integers <= 0
        table = RDP({order: rho * order for order in (Fraction(3, 2), 2, 3, 50, 10**4, 10**6)})
        assert exact * (1 + 1e-12) <= table.log_delta(t) <= 0


def test_a_function_of_integers_is_asked_for_integers_and_one_of_reals_for_floats() -> None:
    seen: list[Any] = []

    def curve(order: float) -> float:
        seen.append(order)
        return order / 9

    RDP(curve, integer_orders=True).log_delta(1)
    assert {type(order) for order in seen} == {int}
    seen.clear()
    RDP(curve).log_delta(1)
    assert {type(order) for order in seen} == {float}
    assert all(order > 1 for order in seen)


def test_orders_that_overflow_or_are_infinite_are_passed_over() -> None:
    def curve(order: float) -> float:
        return order / 300 if order < 20 else math.inf if order < 50 else math.exp(order**2)

    found = RDP(curve).log_delta(1)
    best = min(
        (a - 1) * (a / 300 - 1) + (a - 1) * math.log1p(-1 / a) - math.log(a) for a in (19.9999, 20)
    )
    assert found == pytest.approx(best, rel=1e-3)
    assert RDP(lambda order: math.nan).log_delta(1) == 0.0


def test_pure_below_its_epsilon_is_randomized_response() -> None:
    for epsilon in ("1/1000", 1, 30):
        for fraction in (0, Fraction(1, 3), 1 - Fraction(1, 10**12)):
            t = Fraction(epsilon) * fraction
            e, s = mp.exp(real(epsilon)), mp.exp(real(t))
            truth = mp.log(e / (1 + e) - s / (1 + e))
            assert_just_above(PureDP(epsilon).log_delta(t), truth)


def test_bounded_range_is_the_worst_two_point_loss() -> None:
    for epsilon, t in ((1.0, 0.0), (1.0, 0.7), (5.0, 2.0)):
        best = 0.0
        for step in range(1, 20000):
            top = epsilon * step / 20000  # the loss is top or top - ε; e^loss has mean 1
            chance = (1 - math.exp(top - epsilon)) / (math.exp(top) - math.exp(top - epsilon))
            best = max(best, chance * (math.exp(top) - math.exp(t)))
        found = PureDP(epsilon, bounded_range=True).log_delta(t)
        assert math.log(best) <= found <= math.log(best) + 1e-6
        assert found < PureDP(epsilon).log_delta(t)


def test_approximate_below_its_epsilon_is_reveal_or_respond() -> None:
    for log_delta in (-1.0, -40.0, -1e6):
        for t in (0, Fraction(1, 2), 1 - Fraction(1, 10**30)):
            d, e, s = mp.exp(mpf(log_delta)), mp.e, mp.exp(real(t))
            truth = mp.log(d + (1 - d) * (e - s) / (1 + e))
            assert_just_above(ApproxDP(1, log_delta).log_delta(t), truth)
    assert ApproxDP(1, -1e6).log_delta(1) == ApproxDP(1, -1e6).log_delta(9) == -1e6


def test_delta_is_converted_upwards() -> None:
    for delta in (1e-12, "1e-400", Fraction(1, 3), 5e-324, 1):
        found = ApproxDP(1, delta=delta).log_delta(1)
        assert_just_above(found, mp.log(real(delta)))


@pytest.mark.parametrize("delta", [0, 0.0, -0.0, "0", Fraction(0)])
def test_a_delta_of_zero_is_refused_with_the_reason(delta: Any) -> None:
    with pytest.raises(ParameterError, match=r"underflows to 0\.0.*log_delta=.*PureDP"):
        ApproxDP(1, delta=delta)


@pytest.mark.parametrize(
    "make",
    [
        lambda: ApproxDP(1),
        lambda: ApproxDP(1, -3.0, delta=0.1),
        lambda: ApproxDP(1, -math.inf),
        lambda: ApproxDP(1, 0.5),
        lambda: ApproxDP(1, math.nan),
        lambda: ApproxDP(1, delta=1.5),
        lambda: ApproxDP(1, delta=-1e-9),
        lambda: PureDP(-1),
        lambda: PureDP(math.inf),
        lambda: PureDP(1, bounded_range=2),  # type: ignore[arg-type]
        lambda: PureDP(1, neighbors="replace"),  # type: ignore[arg-type]
        lambda: ZCDP("-1/2"),
        lambda: GaussianDP(),
        lambda: GaussianDP(1, mu_squared=1),
        lambda: GaussianDP(-1),
        lambda: RDP({}),
        lambda: RDP({1: 0.5}),
        lambda: RDP({2: -0.5}),
        lambda: RDP({2: 0.5, "2": 1}),
        lambda: RDP(3),  # type: ignore[arg-type]
        lambda: RDP(lambda order: -1.0).log_delta(1),
        lambda: PureDP(1).log_delta(-1),
        lambda: PureDP(1).epsilon(0.5),
        lambda: PureDP(1).epsilon(math.nan),
    ],
)
def test_malformed_parameters_are_refused(make: Any) -> None:
    with pytest.raises(ParameterError):
        make()


@every_claim
def test_log_delta_never_grows_with_epsilon(claim: Claim) -> None:
    values = [claim.log_delta(Fraction(step, 16)) for step in range(64)]
    assert all(next_ <= value <= 0 for value, next_ in itertools.pairwise(values))
    assert values[-1] < values[0]


@every_claim
@pytest.mark.parametrize("target", [-0.5, -3.0, -20.0, -60.0])
def test_epsilon_inverts_log_delta_from_the_safe_side(claim: Claim, target: float) -> None:
    epsilon = claim.epsilon(target)
    if math.isinf(epsilon):
        assert claim.log_delta(10**9) > target
        return
    assert claim.log_delta(epsilon) <= target
    if epsilon > 0:
        assert claim.log_delta(epsilon * (1 - 1e-9)) > target


def test_epsilon_where_there_is_none_or_nothing_to_protect() -> None:
    assert ApproxDP(1, -5.0).epsilon(-5.1) == math.inf
    assert ApproxDP("1/3", -5.0).epsilon(-5.0) == math.nextafter(1 / 3, 1)
    assert PureDP("1/3").epsilon(-math.inf) == math.nextafter(1 / 3, 1)
    assert ZCDP(1).epsilon(-math.inf) == math.inf
    for nothing in (PureDP(0), ZCDP(0), GaussianDP(0)):
        assert nothing.log_delta(0) == -math.inf
        assert nothing.epsilon(-math.inf) == 0.0


@every_claim
def test_numbers_survive_a_certificate(claim: Claim) -> None:
    epsilons = [Fraction(1, 3), Fraction(2)]
    before = [claim.log_delta(epsilon) for epsilon in epsilons]
    for numbers in (claim.numbers(), dict(Step(theorem="given", numbers=claim.numbers()).numbers)):
        again = claim_from_numbers(numbers, claim.neighbors)
        assert type(again) is type(claim)
        assert again.neighbors is claim.neighbors
        assert again.numbers() == claim.numbers()
        # a table may contain, for one of the two, an order that serves the other still better
        for epsilon, value in zip(epsilons, before, strict=True):
            assert again.log_delta(epsilon) == pytest.approx(value, rel=1e-9)
            assert again.log_delta(epsilon) <= value * (1 - 1e-9)
    written = json.dumps(dict(Step(theorem="given", numbers=claim.numbers()).numbers))
    restored = claim_from_numbers(json.loads(written), claim.neighbors)
    assert restored.numbers() == claim.numbers()


def test_a_function_curve_tabulates_the_orders_its_answers_rest_on() -> None:
    claim = RDP(lambda order: order / 300)
    values = {epsilon: claim.log_delta(epsilon) for epsilon in (1, 2, 5)}
    restored = claim_from_numbers(claim.numbers(), Neighbors.REPLACE)
    assert {epsilon: restored.log_delta(epsilon) for epsilon in values} == values


# -- composition ----------------------------------------------------------------------------------


FAMILIES: dict[str, Claim] = {
    "pure": PureDP("1/7"),
    "range": PureDP("1/9", bounded_range=True),
    "approximate": ApproxDP("1/8", -50.0),
    "zcdp": ZCDP("1/500"),
    "rdp": RDP(lambda order: order / 700),
    "gaussian": GaussianDP("1/30"),
}


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
