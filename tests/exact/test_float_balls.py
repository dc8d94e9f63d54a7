"""The one premise is IEEE arithmetic: every ball operation is checked against Arb."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest
from flint import arb, ctx

from zerodelta.exact import float_balls
from zerodelta.exact.float_balls import FloatBalls

Floats = npt.NDArray[np.float64]
RNG = np.random.default_rng(20261115)


def spread(count: int) -> Floats:
    """Positive floats from 1e-30 to 1e30."""
    return np.asarray(np.exp(RNG.uniform(-69, 69, count)))


def kernel_excess(
    kernel: Callable[[Floats], Floats], truth: Callable[[arb], arb], x: Floats, *, relative: bool
) -> float:
    """Largest error of the kernel in units of `KERNEL_ERROR`."""
    worst = 0.0
    with ctx.workprec(160):
        for point, value in zip(x.tolist(), kernel(x).tolist(), strict=True):
            exact = truth(arb(point))
            error = abs(arb(value) - exact)
            if relative:
                error = error / abs(exact)
            worst = max(worst, float(error.upper()))
    return worst / float_balls.KERNEL_ERROR


LOG_POINTS = np.concatenate(
    [
        RNG.random(4000),
        1 - RNG.random(2000) * 2.0 ** -RNG.integers(1, 50, 2000),
        1 + RNG.random(1000) * 2.0 ** -RNG.integers(1, 50, 1000),
        spread(1000),
        np.nextafter(np.sqrt([0.5, 2.0]), 0),
        np.nextafter(np.sqrt([0.5, 2.0]), 9),
        [2.0**-64, 2.0**-63, 5e-324],
    ]
)


def test_log_kernel_meets_its_bound_with_room() -> None:
    points = LOG_POINTS[LOG_POINTS != 1.0]
    assert kernel_excess(float_balls._log, arb.log, points, relative=True) < 10 / 16


def test_exp_kernel_meets_its_bound_with_room() -> None:
    points = np.concatenate([RNG.uniform(-45, 45, 5000), RNG.uniform(-699, 699, 2000)])
    assert kernel_excess(float_balls._exp, arb.exp, points, relative=True) < 3 / 16


def test_cosine_and_sine_kernels_meet_their_bound_with_room() -> None:
    points = np.concatenate(
        [RNG.uniform(0, 4, 5000), np.arange(0, 4.01, 0.125), np.nextafter(np.arange(1, 4), 0)]
    )
    kernel = float_balls._cos_sin_pi
    assert kernel_excess(lambda x: kernel(x)[0], arb.cos_pi, points, relative=False) < 8 / 16
    assert kernel_excess(lambda x: kernel(x)[1], arb.sin_pi, points, relative=False) < 8 / 16


def random_balls(count: int, middles: Floats) -> tuple[FloatBalls, list[arb]]:
    """Balls, and for each a real number inside it (an end or a random point)."""
    radii = np.abs(middles) * 2.0 ** -RNG.uniform(1, 60, count)
    where = RNG.choice([-1.0, 1.0, 0.37, -0.81], count)
    inside = []
    for middle, radius, place in zip(middles.tolist(), radii.tolist(), where, strict=True):
        inside.append(arb(middle) + arb(radius) * arb(place))
    return FloatBalls(middles, radii), inside


def check_contains(balls: FloatBalls, truth: list[arb]) -> None:
    for middle, radius, value in zip(
        balls.middle.reshape(-1).tolist(), balls.radius.reshape(-1).tolist(), truth, strict=True
    ):
        assert not radius < 0
        if radius == np.inf or np.isnan(radius) or np.isnan(middle):
            continue
        assert abs(arb(middle) - value) <= arb(radius)


@pytest.mark.parametrize("operation", ["add", "sub", "mul", "div"])
def test_arithmetic_contains_every_possible_result(operation: str) -> None:
    signs = RNG.choice([-1.0, 1.0], 4000)
    apply: dict[str, Callable[[FloatBalls, FloatBalls], FloatBalls]] = {
        "add": lambda a, b: a + b,
        "sub": lambda a, b: a - b,
        "mul": lambda a, b: a * b,
        "div": lambda a, b: a / b,
    }
    exact: dict[str, Callable[[arb, arb], arb]] = {
        "add": lambda a, b: a + b,
        "sub": lambda a, b: a - b,
        "mul": lambda a, b: a * b,
        "div": lambda a, b: a / b,
    }
    with ctx.workprec(400), np.errstate(all="ignore"):
        left, left_inside = random_balls(4000, spread(4000) * signs)
        right, right_inside = random_balls(4000, spread(4000))
        truth = [exact[operation](a, b) for a, b in zip(left_inside, right_inside, strict=True)]
        check_contains(apply[operation](left, right), truth)


@pytest.mark.parametrize("function", ["log", "sqrt", "exp", "cos", "sin"])
def test_functions_contain_every_possible_result(function: str) -> None:
    points = {
        "log": LOG_POINTS,
        "sqrt": spread(3000),
        "exp": RNG.uniform(-600, 600, 3000),
        "cos": RNG.uniform(0, 3.9, 3000),
        "sin": RNG.uniform(0, 3.9, 3000),
    }[function]
    with ctx.workprec(400), np.errstate(all="ignore"):
        balls, inside = random_balls(len(points), points)
        if function in ("cos", "sin"):
            result = balls.cos_sin_pi()[function == "sin"]
            truth = [getattr(value, f"{function}_pi")() for value in inside]
        else:
            result = getattr(balls, function)()
            truth = [getattr(value, function)() for value in inside]
        check_contains(result, truth)


def test_integer_operands_are_exact() -> None:
    with ctx.workprec(200):
        balls, inside = random_balls(500, spread(500))
        check_contains(balls * -2 + 7, [value * -2 + 7 for value in inside])


@pytest.mark.parametrize("length", [1, 2, 3, 7, 64, 1001])
def test_total_contains_the_exact_sum(length: int) -> None:
    with ctx.workprec(400):
        balls, inside = random_balls(length, spread(length) * RNG.choice([-1.0, 1.0], length))
        columns = FloatBalls(balls.middle.reshape(-1, 1), balls.radius.reshape(-1, 1))
        check_contains(columns.total(), [sum(inside, arb(0))])


@pytest.mark.parametrize("length", [1, 2, 3, 7, 511, 512, 513, 1001, 1025])
@pytest.mark.parametrize("exponent", [1, 600])
def test_log_total_contains_the_exact_sum(length: int, exponent: int) -> None:
    """Also where the plain product would overflow or underflow."""
    with ctx.workprec(400):
        scales = 2.0 ** RNG.integers(-exponent, exponent, length)
        balls, inside = random_balls(length, RNG.random(length) * scales)
        columns = FloatBalls(balls.middle.reshape(-1, 1), balls.radius.reshape(-1, 1))
        truth = sum((value.log() for value in inside), arb(0))
        check_contains(columns.log_total(), [truth])


@pytest.mark.parametrize("length", [2, 3, 100, 1023])
def test_a_sum_of_exact_numbers_is_off_by_its_own_roundings(length: int) -> None:
    """Radii are 0: nothing but the rounding of the sum is left to be covered."""
    rng = np.random.default_rng(length)
    for _ in range(20):
        numbers = rng.uniform(-1, 1, length) * 2.0 ** rng.integers(-60, 3, length)
        found = FloatBalls(numbers.reshape(-1, 1), np.zeros((length, 1))).total()
        exact = sum(map(Fraction, numbers.tolist()), Fraction(0))
        assert abs(Fraction(float(found.middle[0, 0])) - exact) <= Fraction(
            float(found.radius[0, 0])
        )


def test_a_product_near_one_is_off_by_its_own_roundings() -> None:
    """Of so many exact numbers that their errors are more than the logarithm's own."""
    rng = np.random.default_rng(3)
    for _ in range(10):
        half = rng.uniform(0.5, 2.0, 10_000)
        numbers = np.concatenate([half, 1 / half])
        found = FloatBalls(numbers.reshape(-1, 1), np.zeros((len(numbers), 1))).log_total()
        with ctx.workprec(256):
            exact = sum((arb(float(x)).log() for x in numbers), arb(0))
            middle, radius = (arb(float(each[0, 0])) for each in (found.middle, found.radius))
            assert abs(exact - middle) <= radius


def test_log_total_of_uniforms_is_tight() -> None:
    """8u of the sum: ln 2 takes 3u; its addition, the products and the uniforms about u each."""
    words = RNG.integers(2**40, 2**64 - 1, (1001, 50), dtype=np.uint64)
    total = FloatBalls.uniform(words).log_total()
    assert (total.radius <= np.abs(total.middle) * 2.0**-50).all()
    loose = FloatBalls.uniform(words).log().total()  # a logarithm for each
    assert (loose.radius > np.abs(loose.middle) * 2.0**-49).all()


def test_the_root_of_a_wide_ball_contains_every_possible_result() -> None:
    """Balls that reach to zero and beyond hold numbers that are not negative only."""
    middles = spread(2000)
    radii = middles * RNG.choice([0.5, 0.999, 1.0, 1.001, 3.0], 2000)
    lowest = np.maximum(middles - radii, 0.0)
    with ctx.workprec(400):
        roots = FloatBalls(middles, radii).sqrt()
        check_contains(roots, [arb(low).sqrt() for low in lowest.tolist()])
        ends = zip(middles.tolist(), radii.tolist(), strict=True)
        check_contains(roots, [(arb(middle) + arb(radius)).sqrt() for middle, radius in ends])


def test_a_root_has_half_the_relative_radius() -> None:
    middles = spread(1000)
    roots = FloatBalls(middles, middles * 2.0**-40).sqrt()
    assert (roots.radius <= roots.middle * 2.0**-41 * (1 + 2.0**-10)).all()


def test_uniform_contains_every_extension_of_its_word() -> None:
    words = np.concatenate(
        [
            RNG.integers(0, 2**64 - 1, 2000, dtype=np.uint64, endpoint=True),
            np.array([0, 1, 2**53 + 1, 2**64 - 1, 2**64 - 1025], dtype=np.uint64),
        ]
    )
    balls = FloatBalls.uniform(words)
    with ctx.workprec(200):
        check_contains(balls, [arb((int(word), -64)) for word in words])
        check_contains(balls, [arb((int(word) + 1, -64)) for word in words])


def test_enclose_contains_its_constant() -> None:
    with ctx.workprec(300):
        for constant in (arb(2).sqrt(), arb.pi() * 10**30, 1 / arb(3), arb(0), arb(2**60 + 1)):
            ball = FloatBalls.enclose([constant])
            middle, radius = ball.middle.item(), ball.radius.item()
            assert abs(arb(middle) - constant) <= arb(radius)
            assert radius <= abs(middle) * 2.0**-52


def test_lower_and_upper_bracket_the_ball() -> None:
    with ctx.workprec(400):
        balls, inside = random_balls(3000, spread(3000) * RNG.choice([-1.0, 1.0], 3000))
        for low, high, value in zip(
            balls.lower().tolist(), balls.upper().tolist(), inside, strict=True
        ):
            assert arb(low) <= value <= arb(high)


def test_nearest_is_decided_only_when_the_whole_ball_rounds_there() -> None:
    middle = np.array([0.25, 0.25, 0.5, 0.499999, 1e15, 2.0**52, np.nan, -3.4])
    radius = np.array([0.2, 0.26, 1e-9, 1e-9, 0.1, 0.0, 0.0, 0.05])
    integers, decided = FloatBalls(middle, radius).nearest()
    assert decided.tolist() == [True, False, False, True, True, False, False, True]
    assert integers[decided].tolist() == [0.0, 0.0, 1e15, -3.0]


def test_what_is_unknown_stays_undecided() -> None:
    with np.errstate(all="ignore"):
        around_zero = FloatBalls(np.array([0.0, 1e-20]), np.array([0.0, 1e-19]))
        negative = FloatBalls(np.array([-1.0]), np.array([0.1]))
        for unknown in (around_zero.log(), negative.log(), negative.sqrt(), (-around_zero).log()):
            assert not unknown.nearest()[1].any()
        two_negatives = FloatBalls.stack([negative, negative])  # their product is known and 1
        for unknown in (around_zero.log_total(), two_negatives.log_total()):
            assert not unknown.nearest()[1].any()
        one = FloatBalls(np.array([1.0, 1.0]), np.array([0.0, 0.0]))
        assert not (one / around_zero).nearest()[1].any()
        assert not FloatBalls(np.array([800.0, 1.0]), np.array([0.0, 2.0])).exp().nearest()[1].any()


def test_a_radius_below_zero_decides_nothing_and_does_not_come_about() -> None:
    """x / -0.0 is -inf: a room of -0.0 would make a radius that fits everywhere."""
    everywhere = FloatBalls(np.array([1.0]), np.array([-np.inf]))
    assert not everywhere.nearest()[1].any()
    with np.errstate(all="ignore"):
        for size in (1, 2, 8, 33):
            below = FloatBalls(np.full(size, -0.0), np.zeros(size))
            rooms = float_balls._room(below.middle - below.radius)
            assert not np.signbit(rooms).any()
            one = FloatBalls(np.ones(size), np.ones(size))
            for found in (below.log(), one / below, below.log_total()):
                assert not (found.radius < 0).any()


def test_what_rounding_takes_from_a_radius_is_paid_for() -> None:
    """Beside a radius of 1, one of 2^-54 is rounded away."""
    lost, none = 2.0**-54, np.zeros(1)
    large, small = FloatBalls(none, np.ones(1)), FloatBalls(none, np.array([lost]))
    for found in (large + small, large - small, small + large):
        assert Fraction(float(found.radius[0])) >= 1 + Fraction(lost)
