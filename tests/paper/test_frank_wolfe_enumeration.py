"""Exact output laws of Algorithms 6 and 7 and their pure successor, over all neighbors.

The real functions run: only the random choice of a vertex is replaced by a script, and the exact
probability of that choice is read off the scores and the scale that the function itself passed.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
from flint import arb, ctx

from channels.channel_laws import row
from channels.noise_laws import BITS
from paper.iterates import iterate
from purity import assert_impure, assert_pure
from zerodelta.audit.exact import (
    ExpRational,
    datasets,
    exponential_mechanism_law,
    hockey_stick,
    neighbors,
    permute_and_flip_law,
)
from zerodelta.channels.mixes import FiniteMix
from zerodelta.mechanisms.selection import ExponentialMechanism, PermuteAndFlip
from zerodelta.paper import algorithm_05_06 as algorithm_06
from zerodelta.paper import algorithm_07_08 as algorithm_07
from zerodelta.paper.algorithm_01_02 import AlgorithmOne
from zerodelta.spaces import Ball
from zerodelta.training import frank_wolfe
from zerodelta.training.frank_wolfe import VertexSteps
from zerodelta.training.polytopes import as_polytope

STEPS = 4
LINE = Ball(1, 1, norm=1)
"""Two vertices, -1 and 1."""


def pulled(theta: Any, rows: Any) -> Any:
    """The gradient of ‖θ - x‖²/2: later steps see earlier ones."""
    return theta - rows


def pushed(theta: Any, rows: Any) -> Any:
    """The gradient of -⟨θ, x⟩: the largest offsets at every step."""
    return -rows + 0 * theta


class Script:
    """Plays a fixed list of choices and multiplies their exact probabilities."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.choices: tuple[int, ...] = ()
        self.probability = ExpRational.of(1)
        laws = (
            (ExponentialMechanism, exponential_mechanism_law),
            (
                PermuteAndFlip,
                permute_and_flip_law,
            ),
        )
        for kind, law in laws:
            monkeypatch.setattr(kind, "select", self._selector(law))

    def _selector(self, law: Callable[..., Any]) -> Callable[..., int]:
        def select(mechanism: Any, scores: Any, bits: Any) -> int:
            choice, self.choices = self.choices[0], self.choices[1:]
            exact = law([int(score) for score in scores], scale=mechanism.scale)
            self.probability = self.probability * exact[choice]
            return choice

        return select

    def law(self, run: Callable[[], Any], vertices: int, length: int) -> dict[Any, ExpRational]:
        """Return the exact law of what `run` returns."""
        found: dict[Any, ExpRational] = {}
        for choices in itertools.product(range(vertices), repeat=length):
            self.choices, self.probability = choices, ExpRational.of(1)
            outcome = run()
            found[outcome] = found.get(outcome, ExpRational.of(0)) + self.probability
        return found


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Script:
    return Script(monkeypatch)


def tables(rows: int) -> list[tuple[int, ...]]:
    return list(datasets([-1, 0, 1], rows))


def array(table: tuple[int, ...]) -> Any:
    return np.array(table, dtype=np.float64).reshape(-1, 1)


def _value_of(release: Callable[[Any], Any], data: Any) -> tuple[float, ...]:
    return tuple(release(data).value.tolist())


def all_laws(
    script: Script, release: Callable[[Any], Any], rows: int, length: int
) -> dict[tuple[int, ...], dict[Any, ExpRational]]:
    return {
        table: script.law(partial(_value_of, release, array(table)), 2, length)
        for table in tables(rows)
    }


def pairs(laws: dict[Any, Any]) -> Iterator[tuple[Any, Any]]:
    for one, other in neighbors(list(laws)):
        yield laws[one], laws[other]


def modern(gradient: Any, length: int, **options: Any) -> Callable[[Any], Any]:
    return lambda data: frank_wolfe.frank_wolfe_pure(
        data,
        loss=gradient,
        domain=LINE,
        lipschitz=2 if gradient is pulled else 1,
        iterations=length,
        steps=STEPS,
        **options,
    )


@pytest.mark.parametrize("gradient", [pulled, pushed])
@pytest.mark.parametrize("length", [1, 2, 3])
def test_pure_composition_never_exceeds_epsilon(script: Script, gradient: Any, length: int) -> None:
    for epsilon in ("1/2", 6):
        release = modern(gradient, length, epsilon=epsilon, method="composition")
        laws = all_laws(script, release, 3 if length < 3 else 2, length)
        assert all(sum(law.values(), ExpRational.of(0)) == 1 for law in laws.values())
        assert_pure(laws, epsilon=epsilon)


def test_the_sensitivity_of_the_paper_is_caught(
    script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(VertexSteps, "sensitivity", STEPS)  # L₁‖C‖₁/n instead of 2 L₁‖C‖₁/n
    laws = all_laws(script, modern(pushed, 1, epsilon=6, method="composition"), 3, 1)
    assert_impure(laws, epsilon=6)


@pytest.mark.parametrize("length", [1, 2, 3])
def test_mixed_transcripts_never_exceed_epsilon_and_need_the_mixing(
    script: Script, monkeypatch: pytest.MonkeyPatch, length: int
) -> None:
    weight, channels = Fraction(1, 3), []

    def kept(channel: FiniteMix, number: Any, bits: Any) -> Any:
        channels.append(channel)
        return number

    monkeypatch.setattr(FiniteMix, "apply", kept)
    release = modern(
        pushed, length, epsilon=4, method="transcript", mixing_weight=weight, smoothness=1
    )
    hidden = all_laws(script, release, 3, length)
    assert {channel.space.size for channel in channels} == {2**length}
    uniform = Fraction(1, 2**length)
    mixed = {
        table: {
            outcome: law[outcome] * (1 - weight) + weight * uniform * _copies(outcome, length)
            for outcome in law
        }
        for table, law in hidden.items()
    }
    assert all(sum(law.values(), ExpRational.of(0)) == 1 for law in mixed.values())
    assert_pure(mixed, epsilon=4, mistake=hidden if length == 3 else None)


def _copies(outcome: tuple[float, ...], length: int) -> int:
    """How many transcripts have this iterate."""
    polytope = as_polytope(LINE)
    return sum(
        tuple(iterate(polytope, choices).tolist()) == outcome
        for choices in itertools.product(range(2), repeat=length)
    )


@pytest.mark.parametrize("composition", ["best", "advanced"])
def test_approximate_frank_wolfe_keeps_its_delta(script: Script, composition: Any) -> None:
    log_delta, epsilon, length = -2.5, 2, 3

    def release(data: Any) -> Any:
        return algorithm_06.approximate_frank_wolfe(
            data,
            loss=pushed,
            domain=LINE,
            lipschitz=1,
            epsilon=epsilon,
            log_delta=log_delta,
            iterations=length,
            composition=composition,
            steps=STEPS,
        )

    laws = all_laws(script, release, 3, length)
    excesses = [
        _ball(hockey_stick(p, q, epsilon)) for a, b in pairs(laws) for p, q in ((a, b), (b, a))
    ]
    with ctx.workprec(256):
        assert all(excess <= arb(log_delta).exp() for excess in excesses)
    assert any(excess > 0 for excess in excesses)  # the pure bound alone would not do


def _ball(number: Any) -> arb:
    with ctx.workprec(256):
        return number.ball() if isinstance(number, ExpRational) else arb(number)


# Algorithm 7: the law of the lattice point that Algorithm 1 publishes; the LP is post-processing.


class Published:
    """Collects what the real function hands to Algorithm 1, and Algorithm 1 itself."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.channel: AlgorithmOne | None = None
        self.point = 0

        def apply(channel: AlgorithmOne, point: Any, bits: Any) -> Any:
            self.channel, self.point = channel, int(channel.body.centered(point)[0])
            return np.zeros(1)

        monkeypatch.setattr(AlgorithmOne, "apply", apply)

    def law(self, hidden: dict[int, ExpRational], scale: Fraction) -> dict[Any, arb]:
        """Return the law of the published integer, everything beyond the body joined at its end."""
        assert self.channel is not None
        channel = replace(self.channel, scale=scale)
        unit = channel.body.points(np.array([1]))
        rows = {point: row(channel, point * unit) for point in hidden}
        law: dict[Any, arb] = {}
        with ctx.workprec(BITS):
            for point, chance in hidden.items():
                assert channel.body.centered(point * unit).tolist() == [point]
                for z, p in rows[point].items():
                    law[z] = law.get(z, arb(0)) + chance.ball() * p
        return law


SKETCH = np.array([[0.75, -0.5]])
TOTAL = Fraction(5, 4)


def _published_point(published: Published, data: Any, length: int, sketch: Any) -> int:
    algorithm_07.pure_frank_wolfe(
        data,
        loss=pushed,
        domain=Ball(data.shape[1], 1, norm=1),
        lipschitz=1,
        epsilon=TOTAL,
        base_epsilon=1,
        iterations=length,
        sketch=sketch,
        log_delta=-1.5,
        mixing_weight="1/4",
        composition="advanced",
        steps=STEPS,
    )
    return published.point


def published_laws(
    script: Script,
    published: Published,
    length: int,
    tables: list[tuple[Any, ...]],
    sketch: Any = None,
) -> tuple[dict[Any, Any], dict[Any, Any], dict[Any, Any]]:
    """Return the hidden laws, the published ones, and what mixing without noise would publish."""
    dimension = 1 if sketch is None else sketch.shape[1]
    hidden, laws, noiseless = {}, {}, {}
    for table in tables:
        data = np.array(table, dtype=np.float64).reshape(-1, dimension)
        run = partial(_published_point, published, data, length, sketch)
        hidden[table] = script.law(run, 2 * dimension, length)
        assert published.channel is not None
        laws[table] = published.law(hidden[table], published.channel.scale)
        noiseless[table] = published.law(hidden[table], Fraction(1, 1000))
    return hidden, laws, noiseless


@pytest.mark.parametrize("length", [1, 2, 3])
def test_algorithm_7_never_exceeds_its_total_epsilon(
    script: Script, monkeypatch: pytest.MonkeyPatch, length: int
) -> None:
    every = list(datasets([-1, 1], 5))
    hidden, laws, noiseless = published_laws(script, Published(monkeypatch), length, every)
    assert_pure(laws, epsilon=TOTAL)
    if length == 3:  # it is the purification that makes it so, and both of its parts
        assert_impure(hidden, epsilon=TOTAL)
        assert_impure(noiseless, epsilon=TOTAL)


@pytest.mark.parametrize("length", [1, 2])
def test_algorithm_7_with_a_sketch_never_exceeds_its_total_epsilon(
    script: Script, monkeypatch: pytest.MonkeyPatch, length: int
) -> None:
    every = list(datasets([(-1, -1), (1, -1), (1, 1)], 2))
    _, laws, _ = published_laws(script, Published(monkeypatch), length, every, SKETCH)
    assert_pure(laws, epsilon=TOTAL)
