"""OpenDP: the exact law of a purified measurement, its map, and what is refused."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache
from typing import Any

import pytest
from mpmath import mp, mpf

import zerodelta as zd
from zerodelta.errors import GuaranteeError, ParameterError
from zerodelta.exact.bits import ReplayBits
from zerodelta.interop import opendp as bridge
from zerodelta.interop.opendp import purified

dp: Any = pytest.importorskip("opendp.prelude", reason="the bridge's extra is not installed")
OpenDPException: Any = pytest.importorskip("opendp.mod").OpenDPException

ADD_REMOVE, REPLACE = zd.records.Neighbors.ADD_REMOVE, zd.records.Neighbors.REPLACE


@pytest.fixture(autouse=True)
def _features() -> Iterator[None]:
    dp.enable_features("contrib", "honest-but-curious")
    with mp.workdps(80):
        yield
    dp.disable_features("honest-but-curious")


def numbers() -> Any:
    return dp.atom_domain(T=int), dp.absolute_distance(T=int)


def gaussian(scale: float) -> Any:
    return dp.m.make_gaussian(*numbers(), scale=scale)


def stated(measure: Any, privacy_map: Callable[[Any], Any], returned: Any = None) -> Any:
    """Return a measurement of the caller, which returns what is given, or its input."""

    def function(value: Any) -> Any:
        if callable(returned):
            return returned(value)
        return value if returned is None else returned

    return dp.m.make_user_measurement(
        *numbers(), measure, function, privacy_map, TO="ExtrinsicObject"
    )


# The law of a measurement, enumerated in 80 digits from its definition.


@cache
def centered(scale: float) -> dict[int, mpf]:
    """Return P(k) ∝ e^(-k²/2σ²) up to 25σ; beyond it is e^-312."""
    reach = int(25 * scale) + 2
    half = [mp.exp(-(mpf(k) ** 2) / (2 * mpf(scale) ** 2)) for k in range(reach + 1)]
    total = 2 * mp.fsum(half) - 1
    return {k: half[abs(k)] / total for k in range(-reach, reach + 1)}


def discrete_gaussian(center: int, scale: float) -> dict[int, mpf]:
    return {center + k: chance for k, chance in centered(scale).items()}


def mixed(law: dict[int, mpf], keep: Callable[[int], Any], size: int, weight: Fraction) -> Any:
    """Return the law of the element kept, or with this probability a uniform one."""
    w = mpf(weight.numerator) / weight.denominator
    kept: dict[Any, mpf] = Counter()
    for k, chance in law.items():
        kept[keep(k)] += chance
    return {element: (1 - w) * chance + w / size for element, chance in kept.items()}


def log_ratio(first: Any, second: Any, *, floor: mpf) -> mpf:
    elements = {*first, *second}
    return max(abs(mp.log(first.get(e, floor) / second.get(e, floor))) for e in elements)


def clipped(size: int) -> Callable[[int], int]:
    return lambda k: min(max(k, 0), size - 1)


CASES = [  # scale, size, ε
    (3.0, 3, 1),
    (5.0, 11, 1),
    (10.0, 21, 1),
    (10.0, 21, "1/2"),
    (30.0, 21, "1/5"),
    (2.5, 2, 1),
    (4.0, 5, 2),
    (1.5, 4, 4),
    (20.0, 50, "3/10"),
]


@pytest.mark.parametrize(("scale", "size", "epsilon"), CASES)
def test_the_exact_law_is_as_close_as_the_map_says(scale: float, size: int, epsilon: Any) -> None:
    pure = purified(gaussian(scale), space=zd.Finite(size), epsilon=epsilon, d_in=1)
    assert pure.output_measure == dp.max_divergence()
    assert Fraction(pure.map(1)) <= Fraction(epsilon)
    weight = pure.plan.mixing_weight
    assert 0 < weight <= Fraction(1, 100)
    floor = mpf(weight.numerator) / weight.denominator / size
    for distance in (1, 2):
        allowed = mpf(pure.map(distance))
        laws = [
            mixed(discrete_gaussian(x, scale), clipped(size), size, weight)
            for x in range(-2, size + 3)
        ]
        for first, second in zip(laws, laws[distance:], strict=False):
            assert log_ratio(first, second, floor=floor) <= allowed


def test_the_law_of_other_measures_of_the_same_noise() -> None:
    """Rényi curve, profile, fixed δ, approximate zCDP: each reads less than ρ says."""
    scale, size = 10.0, 21
    base = gaussian(scale)
    rho = base.map(1)
    half = Fraction(1, 2)
    profile = dp.c.make_zCDP_to_approxDP(base)
    bases = {
        "profile": profile,
        "fixed": dp.c.make_fix_delta(profile, 1e-5),
        "renyi": dp.m.make_user_measurement(
            *numbers(),
            dp.renyi_divergence(),
            base,
            lambda d: dp.new_function(lambda a: a * rho * d * d, TO=float),
            TO=int,
        ),
        "approximate": dp.m.make_user_measurement(
            *numbers(),
            dp.approximate(dp.zero_concentrated_divergence()),
            base,
            lambda d: (rho * d * d, 1e-20),
            TO=int,
        ),
    }
    for name, each in bases.items():
        pure = purified(each, space=zd.Finite(size), epsilon=half, d_in=1)
        assert Fraction(pure.map(1)) <= half, name
        weight = pure.plan.mixing_weight
        floor = mpf(weight.numerator) / weight.denominator / size
        for distance in (1, 2):
            allowed = mpf(pure.map(distance))
            for x in (-1, 0, 10, 20):
                laws = (discrete_gaussian(center, scale) for center in (x, x + distance))
                pair = [mixed(law, clipped(size), size, weight) for law in laws]
                assert log_ratio(*pair, floor=floor) <= allowed, name


def test_the_function_is_the_channel_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    base = stated(dp.zero_concentrated_divergence(), lambda d: 0.01 * d * d)
    for space in (zd.Finite(9), zd.Box(0, 10), zd.Finite([0.5, 1.5, 4.0])):
        pure = purified(base, space=space, epsilon=1, d_in=1)
        for seed in range(20):
            monkeypatch.setattr(bridge, "SystemBits", lambda seed=seed: ReplayBits(str(seed)))
            kept = pure.plan.purifier.apply(space.project(seed), ReplayBits(str(seed)))
            expected: Any = space.project(kept)
            assert pure(seed) == (expected[0] if isinstance(space, zd.Box) else expected)


ODD: list[Any] = [
    math.nan, math.inf, -(10**400), "SECRET", None, [1, 2], {"a": 1}, object(), b"\xff", (), 1j
]  # fmt: skip


class Hostile:
    def __getattribute__(self, name: str) -> Any:
        raise ValueError("SECRET")


def fail(value: Any) -> Any:
    raise ValueError(f"SECRET {value}")


@pytest.mark.parametrize(
    "space",
    [
        zd.Finite(5),
        zd.Finite(["a", "b"]),
        zd.Finite(["a", 1, None]),
        zd.Finite([0.25, 1.0]),
        zd.Box(0, 1),
        zd.Ball(2, 1),
        zd.purification.Subsets(of=5, size=2),
    ],
    ids=repr,
)
def test_no_value_makes_the_function_raise(space: Any) -> None:
    for odd in (*ODD, Hostile(), fail):
        base = stated(dp.zero_concentrated_divergence(), lambda d: 1e-6 * d * d, odd)
        pure = purified(base, space=space, epsilon=1, d_in=1)
        found = pure(3)
        if not isinstance(space, zd.purification.Subsets):
            found = [found] if isinstance(space, zd.Box) else found
            assert space.contains(found)


def test_no_option_makes_the_function_raise() -> None:
    """A text that C cannot hold is an object; else it would raise where it is drawn."""
    for options in (["a", "b\0"], ["a", "\ud800"], ["a", "é"]):
        base = stated(dp.zero_concentrated_divergence(), lambda d: 1e-9 * d * d, options[1])
        pure = purified(base, space=zd.Finite(options), epsilon=1, d_in=1)
        assert pure(3) in options


def test_closer_inputs_cost_no_more() -> None:
    base = gaussian(10.0)
    profile = dp.c.make_zCDP_to_approxDP(base)
    assert profile.map(0).delta(0.5) == 0.0  # it may have underflowed
    for each in (base, profile, dp.c.make_fix_delta(profile, 1e-5)):
        pure = purified(each, space=zd.Finite(21), epsilon=1, d_in=2)
        losses = [pure.map(d) for d in (0, 1, 2, 3, 4)]
        assert max(losses[:3]) <= 1 < losses[3] < losses[4]


def test_a_distance_beyond_the_measurements_map_raises_as_it_does() -> None:
    base = dp.c.make_adaptive_composition(
        *numbers(), dp.zero_concentrated_divergence(), d_in=1, d_mids=[0.001] * 3
    ) >> dp.new_function(lambda queryable: queryable(gaussian(30.0)), TO=int)
    pure = purified(base, space=zd.Finite(4), epsilon=1, d_in=1)
    assert pure.map(1) <= 1
    with pytest.raises(OpenDPException) as theirs:
        base.map(2)
    with pytest.raises(OpenDPException) as ours:
        pure.map(2)
    assert theirs.value.variant in str(ours.value)
    with pytest.raises(OpenDPException):
        purified(base, space=zd.Finite(4), epsilon=1, d_in=2)


def test_it_adds_up_in_compositions_and_contexts() -> None:
    pure = purified(gaussian(10.0), space=zd.Finite(21), epsilon=1, d_in=1)
    laplace = dp.m.make_laplace(*numbers(), scale=2.0)
    both = dp.c.make_composition([pure, laplace])
    assert both.output_measure == dp.max_divergence()
    assert both.map(1) == pytest.approx(pure.map(1) + 0.5)
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    counted = space >> dp.t.then_count() >> dp.m.then_gaussian(scale=10.0)
    context = dp.Context.compositor(
        data=[1] * 10,
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(epsilon=2.0),
        split_evenly_over=2,
        domain=space[0],
    )
    count = purified(counted, space=zd.Finite(21), epsilon=1, d_in=1)
    assert 0 <= context(count) <= 20
    assert isinstance(context.query().count().laplace().release(), int)


def test_the_metric_says_who_is_protected() -> None:
    rows = dp.vector_domain(dp.atom_domain(T=int))

    def base(metric: Any) -> Any:
        return dp.m.make_user_measurement(
            rows, metric, dp.zero_concentrated_divergence(), len, lambda d: 0.01 * d, TO=int
        )

    def made(metric: Any, d_in: int = 1, neighbors: Any = None) -> Any:
        options = {"space": zd.Finite(4), "epsilon": 1, "neighbors": neighbors}
        return purified(base(metric), d_in=d_in, **options).certificate

    unordered = (dp.symmetric_distance(), dp.insert_delete_distance())
    for metric in unordered:
        assert made(metric).claim == zd.purification.PureDP(1, neighbors=ADD_REMOVE)
        assert made(metric, 2) is None
        assert made(metric, 2, REPLACE).claim == zd.purification.PureDP(1)
        with pytest.raises(ParameterError, match="neighbors"):
            made(metric, 1, REPLACE)
    for metric in (dp.change_one_distance(), dp.hamming_distance()):
        certificate = made(metric)
        assert certificate.claim == zd.purification.PureDP(1)
        assert certificate.status.value == "asserted"
        assert zd.verify(certificate, epsilon=1) == zd.purification.PureDP(1)
        with pytest.raises(ParameterError, match="neighbors"):
            made(metric, 5, ADD_REMOVE)
    pure = purified(gaussian(9.0), space=zd.Finite(4), epsilon=1, d_in=1)
    assert pure.certificate is None
    assert pure.plan.base is None
    with pytest.raises(ParameterError, match="claim"):
        pure.plan.purify(2)  # else its certificate would be for replaced rows
    told = purified(gaussian(9.0), space=zd.Finite(4), epsilon=1, d_in=1, neighbors=ADD_REMOVE)
    assert told.certificate.claim == zd.purification.PureDP(1, neighbors=ADD_REMOVE)


class Underflowing:
    """As a measurement with a profile of a caller, e^(-1000ε) in floats."""

    def __init__(self) -> None:
        base = dp.c.make_zCDP_to_approxDP(gaussian(9.0))
        self.input_domain, self.input_metric = base.input_domain, base.input_metric
        self.output_measure = base.output_measure

    def map(self, d_in: int) -> Any:
        return dp.new_privacy_profile(lambda epsilon: math.exp(-1000 * epsilon))


def test_what_cannot_be_read_is_refused_with_the_reason() -> None:
    options: Any = {"space": zd.Finite(4), "epsilon": 1, "d_in": 1}
    for other in (3, None, dp.m.then_gaussian(scale=9.0), dp.t.make_identity(*numbers())):
        with pytest.raises(ParameterError, match="a measurement of OpenDP"):
            purified(other, **options)
    laplace = dp.m.make_laplace(*numbers(), scale=2.0)
    with pytest.raises(ParameterError, match="pure already"):
        purified(laplace, **options)
    unknown = stated(dp.user_divergence("theirs"), lambda d: d)
    with pytest.raises(ParameterError, match="unknown"):
        purified(unknown, **options)
    zero = dp.c.make_approximate(gaussian(9.0))
    with pytest.raises(ParameterError, match="underflowed"):
        purified(zero, **options)
    underflowing = Underflowing()
    with pytest.raises(ParameterError, match="underflowed"):
        purified(underflowing, **options)
    infinite = dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(gaussian(9.0)), 0.0)
    with pytest.raises(ParameterError):
        purified(infinite, **options)
    with pytest.raises(GuaranteeError, match="nats"):
        purified(gaussian(1.0), **options)


def test_thresholds_that_are_stuck_are_refused_for_that_reason() -> None:
    keys, distance = dp.map_domain(dp.atom_domain(T=str), dp.atom_domain(T=int)), numbers()[1]
    kinds = (
        (dp.m.make_laplace_threshold, dp.l01inf_distance(distance), 1.0),
        (dp.m.make_gaussian_threshold, dp.l02inf_distance(distance), 50.0),
    )
    for make, metric, scale in kinds:
        for threshold in (1000, 100_000):
            stuck = make(keys, metric, scale=scale, threshold=threshold)
            for count in (1, 2, 7):
                d_in = (count, count, 1)
                assert stuck.map(d_in)[1] == count * 2.0**-53
                with pytest.raises(GuaranteeError, match=r"2\^-53"):
                    purified(
                        stuck, space=zd.purification.Subsets(of=500, size=20), epsilon=8, d_in=d_in
                    )
    fixed = dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(gaussian(9.0)), 1e-14)
    with pytest.raises(GuaranteeError, match="nats") as refusal:
        purified(fixed, space=zd.purification.Subsets(of=500, size=20), epsilon=8, d_in=1)
    assert "threshold" not in str(refusal.value)


def test_measures_are_compared_and_not_named(monkeypatch: pytest.MonkeyPatch) -> None:
    base = gaussian(9.0)
    measure = type(base.output_measure)
    monkeypatch.setattr(measure, "type", property(lambda self: "Renamed"))
    monkeypatch.setattr(measure, "__str__", lambda self: "Renamed")
    assert purified(base, space=zd.Finite(4), epsilon=1, d_in=1).map(1) <= 1


def test_the_features_are_the_callers_to_enable() -> None:
    base = gaussian(9.0)
    dp.disable_features("honest-but-curious")
    with pytest.raises(OpenDPException, match="honest-but-curious"):
        purified(base, space=zd.Finite(4), epsilon=1, d_in=1)
