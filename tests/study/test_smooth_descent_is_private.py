"""Theorem S's certificate of a descent of two steps, on whole small worlds, without tolerance.

Two or three rows with values 0, 1 and 2, integer gradients of at most 1, one parameter. The
internal sum, the real `Iterates` on each of its values (beyond a few quanta the ball cuts it, so
there are finitely many classes) and the raw last step are enumerated with certified balls.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from typing import Any, TypeAlias

import numpy as np
import pytest
from flint import arb, ctx

from channels.noise_laws import BITS, gaussian_line
from channels.test_smooth_mix import output, window
from purity import assert_pure
from reference.chi_square import goodness_of_fit, tally
from zerodelta.audit.exact import certainly_impure
from zerodelta.channels.kernels import SmoothMix
from zerodelta.exact.bits import ReplayBits, SystemBits
from zerodelta.privacy.steps import Status
from zerodelta.privacy.verify import verify
from zerodelta.spaces import Ball
from zerodelta.training.descent import Descent, StepSizes, best_smooth_ending
from zerodelta.training.gradient_sums import Gradients

F = Fraction
Rows: TypeAlias = tuple[int, ...]
Rule: TypeAlias = Callable[[int, float], int]


def by_value(x: int, theta: float) -> int:
    """A row of 0 pushes up, a row of 2 down: the sum moves by 2L when one replaces the other."""
    return 1 - x


def adaptive(x: int, theta: float) -> int:
    """A row of 1 looks at the parameters, which hold what the internal step said."""
    return 1 - x if x != 1 else (1 if theta > 0 else -1)


@dataclass(frozen=True)
class World:
    """A planned descent and what its rows do."""

    rows: int
    rule: Rule
    epsilon: Fraction
    radius: int = 2
    scale: int = 1
    """By how much gradients exceed the bound they are planned with: 2 is a sensitivity of L."""

    def descent(self) -> Descent:
        sizes = StepSizes(count=2, first=2, average=0)
        ball = Ball(1, F(self.radius, self.rows))
        ending = best_smooth_ending(
            ball,
            sizes,
            epsilon=self.epsilon,
            mixing_probability=F(1, 5),
            rows=self.rows,
            bound=1,
            quantum=F(1),
            status=Status.PROVEN,
        )
        assert ending is not None
        return Descent(
            ball=ball,
            epsilon=self.epsilon,
            sizes=sizes,
            rows=self.rows,
            bound=1,
            quantum=F(1),
            status=Status.PROVEN,
            assumed=(),
            variances=ending.variances,
            channel=ending.channel,
            error=ending.error,
            endings=(("gaussian-smoothing", ending.error),),
        )

    def total(self, rows: Rows, theta: float) -> int:
        return self.scale * sum(self.rule(x, theta) for x in rows)


@cache
def internal(made: Descent, start: int) -> dict[tuple[float, int], Any]:
    """The law of (θ, base) after the internal step, whose exact sum is `start`."""
    assert isinstance(made.channel, SmoothMix)
    spacing, reach = made.channel.spacing, 12
    ((_, variance),) = made.variances

    def after(noisy: int) -> tuple[float, int]:
        iterates = made.iterates()
        iterates.step(np.array([noisy]))
        return float(iterates.theta[0]), int(iterates.base(spacing)[0])

    for sign in (-1, 1):  # beyond the reach nothing changes: projection is monotone
        assert after(sign * reach) == after(sign * 10**15) == after(sign * (reach - 1))
    law: dict[tuple[float, int], Any] = {}
    with ctx.workprec(BITS):
        for noisy, chance in gaussian_line(F(start), variance, reach).items():
            key = after(noisy)
            law[key] = law.get(key, arb(0)) + chance
    return law


def published(world: World, made: Descent, rows: Rows, reach: int) -> dict[Any, Any]:
    """The law of what is published before it is projected, on the window proper."""
    assert isinstance(made.channel, SmoothMix)
    classes = internal(made, world.total(rows, 0.0))
    centers = [(base - world.total(rows, theta),) for theta, base in classes]
    return output(made.channel, centers, list(classes.values()), reach)


def laws(world: World, made: Descent) -> tuple[dict[Rows, Any], list[tuple[Rows, Rows]]]:
    """The laws of all data sets, and all ordered neighbors."""
    assert isinstance(made.channel, SmoothMix)
    reach = window(made.channel, made.epsilon)
    every = list(itertools.product((0, 1, 2), repeat=world.rows))
    found = {rows: published(world, made, rows, reach) for rows in every}
    pairs = [
        (a, b)
        for a, b in itertools.product(every, repeat=2)
        if sum(x != y for x, y in zip(a, b, strict=True)) == 1
    ]
    return found, pairs


WORLDS = [
    World(rows=1, rule=by_value, epsilon=F(1)),
    World(rows=2, rule=adaptive, epsilon=F(1)),
    World(rows=2, rule=by_value, epsilon=F(1, 2)),
    World(rows=3, rule=adaptive, epsilon=F(2)),
]
by_world = pytest.mark.parametrize("world", WORLDS, ids=lambda w: f"{w.rows}-{w.rule.__name__}")


@by_world
def test_two_steps_are_certainly_pure_on_all_neighbors(world: World) -> None:
    made = world.descent()
    verify(made.release_plan().certificate(SystemBits()))
    found, pairs = laws(world, made)
    assert len(pairs) == 3**world.rows * 2 * world.rows
    assert_pure(found, pairs, epsilon=world.epsilon)


@by_world
def test_the_certificate_is_not_far_from_what_is_true(world: World) -> None:
    """Some pair has more than two thirds of ε: the mechanism is not pure for much less."""
    made = world.descent()
    found, pairs = laws(world, made)
    assert any(certainly_impure(found[a], found[b], world.epsilon * F(2, 3)) for a, b in pairs)


@by_world
def test_a_sensitivity_of_one_gradient_is_caught(world: World) -> None:
    """Planned as if replacing a row moved the sum by L and not 2L."""
    mutant = replace(world, scale=2)
    found, pairs = laws(mutant, mutant.descent())
    assert any(certainly_impure(found[a], found[b], world.epsilon) for a, b in pairs)


@by_world
def test_dropped_mixing_is_caught(world: World) -> None:
    made = world.descent()
    assert isinstance(made.channel, SmoothMix)
    rare = replace(made.channel, mixing_weight=made.channel.mixing_weight / 10**9)
    reach = window(made.channel, made.epsilon)
    mutant = replace(made, channel=rare)
    every = list(itertools.product((0, 1, 2), repeat=world.rows))
    found = {rows: published(world, mutant, rows, reach) for rows in every}
    first, last = (0,) * world.rows, (2, *(0,) * (world.rows - 1))
    assert certainly_impure(found[last], found[first], world.epsilon)


class Tiny(Gradients):
    """The rows of a small world."""

    def __init__(self, world: World, values: Rows) -> None:
        self.rows, self.dimension, self.bound = world.rows, 1, 1
        self.quantum, self.callers_function = F(1), False
        self._world, self._values = world, values

    def total(self, theta: Any, chosen: Any = None) -> Any:
        return np.array([self._world.total(self._values, float(theta[0]))])


def test_the_run_has_the_enumerated_law() -> None:
    """What `Descent.run` publishes, projected onto the ball, against the enumeration."""
    world = WORLDS[1]
    made = world.descent()
    assert isinstance(made.channel, SmoothMix)
    made = replace(made, ball=made.ball, channel=replace(made.channel, mixing_weight=F(1, 2)))
    assert isinstance(made.channel, SmoothMix)
    reach = window(world.descent().channel, world.epsilon)  # type: ignore[arg-type]
    law = published(world, made, (0, 1), reach)
    most, bits = world.radius, ReplayBits("two steps")
    draws = []
    for _ in range(3000):
        value = made.run(Tiny(world, (0, 1)), bits)
        draws.append(round(float(value[0]) / float(made.channel.spacing)))
    inside = [float(law[(z,)]) for z in range(1 - most, most)]
    below = sum(float(p) for (z,), p in law.items() if z <= -most)
    chances = [below, *inside, 1 - below - sum(inside)]
    cells = tally(draws, -most, most)
    assert cells[0] == cells[-1] == 0
    assert goodness_of_fit(cells[1:-1], chances) > 1e-4
