"""Whatever an analysis hands over, an element of the space is published; nothing raises."""

from __future__ import annotations

import datetime
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import zerodelta as zd
from channels.cases import BODIES, MIXING, F, W, algorithm_one, algorithm_two
from channels.channel_laws import lattice_of
from spaces.garbage import GARBAGE, Lies, anything, objects
from zerodelta.channels.channel import NumericalError
from zerodelta.channels.kernels import SmoothMix
from zerodelta.channels.mixes import ProfileMix
from zerodelta.exact.bits import ReplayBits
from zerodelta.privacy.theorems.smoothing import GaussianStep
from zerodelta.spaces import BallLattice

CLAIM = zd.GaussianDP("1/20")
SPACES: dict[str, Any] = {
    "indices": zd.Finite(16),
    "options": zd.Finite(["ridge", "lasso", None, (1, 2.5)]),
    "subsets": zd.purification.Subsets(of=9, size=3),
    "multiset": zd.purification.Multiset(5, 4),
    "interval": zd.Box(0, 1),
    "box": zd.Box([-1, 0], ["1/3", 5]),
    "large box": zd.Box(-1e100, 1e100, dimension=2),
    "l1": zd.Ball(2, 1, norm=1),
    "l2": zd.Ball(2, 1, center=[3, -4]),
    "l2 in one dimension": zd.Ball(1, "1/7"),
    "linf": zd.Ball(3, 2, norm=math.inf),
    "tiny ball": zd.Ball(2, 1e-100),
}
PLANS = {name: zd.plan(space, epsilon=1, base=CLAIM) for name, space in SPACES.items()}
SMOOTH = {
    name: zd.plan(space, epsilon=1, sensitivity=space.radius, channel="smooth")
    for name, space in SPACES.items()
    if isinstance(space, zd.Ball) and space.norm == 2
}
COARSE = {
    name: zd.plan(space, epsilon=1, mixing_probability="0.3") for name, space in SPACES.items()
}


class TorchLike:
    """A tensor that needs `detach` first, as frameworks with gradients have."""

    shape = (2,)
    requires_grad = True

    def __array__(self, *_: object, **__: object) -> Any:
        raise RuntimeError("Can't call numpy() on Tensor that requires grad.")

    def __len__(self) -> int:
        return 2

    def __iter__(self) -> Any:
        raise TypeError("iteration over a 0-d tensor")

    def __float__(self) -> float:
        raise ValueError("only one element tensors can be converted")


class Detached:
    """A tensor on the processor: an array in all but name."""

    def __array__(self, *_: object, **__: object) -> Any:
        return np.array([0.25, 0.5])


class BadLength:
    def __len__(self) -> int:
        raise MemoryError

    def __getitem__(self, index: int) -> float:
        return 0.5


class BadFloat(float):
    def __float__(self) -> float:
        raise SystemExit


class Undecided(np.ndarray[Any, Any]):
    """An array whose every operation raises."""

    def __array_ufunc__(self, *_: object, **__: object) -> Any:
        raise ArithmeticError

    def __array_function__(self, *_: object, **__: object) -> Any:
        raise ArithmeticError


EXTRA: list[Any] = [
    TorchLike(), Detached(), BadLength(), BadFloat(0.5), [BadFloat(0.5), 1.0],
    np.zeros(2).view(Undecided), np.zeros(2, dtype=np.int64).view(Undecided),
    datetime.datetime(2020, 1, 1), np.datetime64("2020-01-01"), np.timedelta64(3, "s"),
    np.ma.masked_array([1, 2], mask=[True, True]), np.ma.masked_array([0.5, 0.5]),
    np.recarray((2,), dtype=[("x", float)]), 10**400, [10**400] * 2, [-(10**400), 10**400],
    np.array([10**400, -(10**400)], dtype=object), np.array([2**64 - 1] * 2, dtype=np.uint64),
    [Fraction(1, 3), Fraction(10**400)], 1e308, [1e308, -1e308], [math.nan, 0.0], [math.inf, 0.0],
    np.array([1 + 1j, 2]), "0.5", ["0.5", "0.5"], b"ab", np.array([b"a", b"b"]), {0: 1, 1: 2},
    (x for x in (0.5, 0.25)), iter([]), memoryview(b"ab"), np.zeros((2, 2, 2)),
    np.longdouble("0.5"), objects(Lies(), Lies()), objects(True, 2), objects(2**70, -(2**2000)),
]  # fmt: skip


@pytest.mark.parametrize("name", SPACES)
def test_garbage_is_published_as_an_element(name: str) -> None:
    for plan in (PLANS[name], COARSE[name], SMOOTH.get(name, PLANS[name])):
        claim = plan.base or zd.purification.PureDP("1/2")
        certificate = plan.certificate(claim)
        for value in (*GARBAGE, *EXTRA):
            release = plan.purify(value, claim=claim)
            assert plan.space.contains(release.value)
            assert release.certificate == certificate


@pytest.mark.parametrize("name", SPACES)
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(value=anything() | st.sampled_from(EXTRA))
def test_anything_is_published_as_an_element(name: str, value: Any) -> None:
    for plan in (PLANS[name], SMOOTH.get(name, PLANS[name])):
        assert plan.space.contains(plan.purify(value).value)


@pytest.mark.parametrize("name", SPACES)
def test_a_published_value_has_the_same_type_whatever_was_handed_over(name: str) -> None:
    plan = PLANS[name]
    kinds = {type(plan.purify(value).value) for value in (0.5, None, [0.1, 0.2], "x", 10**400)}
    if name != "options":
        assert len(kinds) == 1
    if isinstance(plan.space, (zd.Box, zd.Ball)):
        value = plan.purify(None).value
        assert value.dtype == np.float64
        assert value.shape == (plan.space.dimension,)


STEP = GaussianStep(dimension=2, variance=F(100), radius=F(10), sensitivity=F(1))
CHANNELS: dict[str, Any] = {
    **MIXING,
    "profile": ProfileMix(space=zd.Finite(2), at_epsilon=F(1), profile=(W, W)),
    "smooth": SmoothMix.best(zd.Ball(2, 1), STEP, rho=1, epsilon=1, weight=W, spacing="1/10"),
    "numerical": NumericalError(
        space=zd.Ball(2, 1), error=F(1, 100), scale=F(1, 10), spacing=F(1, 50)
    ),
    "algorithm 1": algorithm_one(BODIES["grid-1d"], base=F(1), extra=F(1), log_delta=-4.0),
    "algorithm 2": algorithm_two(5, base=F(1), extra=F(1), log_delta=-4.0),
}


def space_of(channel: Any) -> Any:
    if hasattr(channel, "space"):
        return channel.space
    lattice = lattice_of(channel)
    return lattice.ball if isinstance(lattice, BallLattice) else lattice.box


@pytest.mark.parametrize("name", CHANNELS)
def test_every_channel_maps_garbage_into_its_space(name: str) -> None:
    channel, bits = CHANNELS[name], ReplayBits(f"garbage for {name}")
    space = space_of(channel)
    for value in (*GARBAGE, *EXTRA):
        assert space.contains(channel.apply(value, bits))


def test_values_that_are_elements_are_usually_published_as_they_are() -> None:
    plan = zd.plan(zd.Finite(16), epsilon=1, base=CLAIM)
    assert plan.mixing_weight < Fraction(1, 10**6)
    assert [plan.purify(index).value for index in range(16)] == list(range(16))
    box = zd.plan(zd.Box(0, 1), epsilon=1, base=CLAIM)
    assert box.purify(0.25).value == pytest.approx([0.25], abs=1e-6)
    assert box.purify(7).value == pytest.approx([1.0], abs=1e-6)
    assert box.purify(math.nan).value == pytest.approx([0.5], abs=1e-6)
