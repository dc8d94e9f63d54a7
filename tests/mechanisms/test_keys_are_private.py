"""Every pair of neighbors costs what U and K2 say, no more: laws are compared exactly.

Where a theorem is tight a hair less is refused, and the mistakes that suggest themselves (the
larger of both directions for their sum, Δ for 2Δ) are caught.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest

from mechanisms.exact_laws import (
    Law,
    joint_law,
    one_key,
    published_law,
    weight,
    weight_from,
    whole,
)
from purity import HAIR, assert_pure
from tasks.scripted import ScriptedBits, draw, paths
from zerodelta.errors import CertificateError, ParameterError
from zerodelta.exact.bits import ReplayBits
from zerodelta.mechanisms.key_noise import KeyNoise, UnknownKeys
from zerodelta.mechanisms.selection import JointTopK
from zerodelta.privacy.certificate import Certificate
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.parameters import Neighbors
from zerodelta.privacy.verify import verify
from zerodelta.spaces.keys import TextKeys

EPSILON = Fraction(3, 4)
REPLACE, ADD_REMOVE = Neighbors.REPLACE, Neighbors.ADD_REMOVE
Counts = tuple[int, ...]


def moved(keys: int, most: int, relation: Neighbors, rows: int = 1) -> set[tuple[Counts, Counts]]:
    """All counts of neighbors, up to names: rows leave their keys, or join some, or both."""
    steps = [
        added
        for added in itertools.product(range(rows + 1), repeat=keys)
        if sum(added) <= rows  # a row may be in no key
    ]
    found = set()
    for counts in itertools.combinations_with_replacement(range(most + 1), keys):
        for one, two in itertools.product(steps, repeat=2):
            if relation is ADD_REMOVE and any(two):
                continue
            a = tuple(c + x for c, x in zip(counts, one, strict=True))
            b = tuple(c + x for c, x in zip(counts, two, strict=True))
            if a < b or (relation is ADD_REMOVE and a != b):
                found.add((a, b))
    return found


def noise_for(relation: Neighbors, epsilon: Fraction = EPSILON) -> KeyNoise:
    return KeyNoise.for_epsilon(epsilon=epsilon, log_keys=9.0, wish=1.0, neighbors=relation)


def published(noise: KeyNoise, least: int | None, high: int) -> Callable[[Counts], Law]:
    """Return the law of what is published of counts."""
    return partial(published_law, least=least, up=noise.up, down=noise.down, high=high)


@pytest.mark.parametrize("relation", [REPLACE, ADD_REMOVE])
@pytest.mark.parametrize("least", [None, 0, 1, 2, 3])
def test_u_is_exactly_epsilon_for_every_threshold(least: int | None, relation: Neighbors) -> None:
    noise = noise_for(relation)
    assert noise.epsilon == EPSILON
    # tight: one key was above its threshold, the other stays below it
    pairs = moved(2, (least or 0) + 1, relation)
    high = max(max(a + b) for a, b in pairs)
    assert_pure(published(noise, least, high), pairs, epsilon=EPSILON, tight=True)


def test_more_keys_cost_nothing_more() -> None:
    noise = noise_for(REPLACE)
    assert_pure(published(noise, 1, 3), moved(3, 1, REPLACE), epsilon=EPSILON)


@pytest.mark.parametrize("relation", [REPLACE, ADD_REMOVE])
def test_u_for_units_is_exactly_epsilon(relation: Neighbors) -> None:
    """Two rows of a unit: each direction moves twice (theory V)."""
    noise = noise_for(relation, EPSILON / 2)
    pairs = moved(2, 2, relation, rows=2)
    assert_pure(published(noise, 1, 5), pairs, epsilon=EPSILON, tight=True)


# U as it is run: the real `apply` on every path of its noise.

HIGH = 4
"""Numbers from here on are one outcome: beyond all counts and thresholds their ratio is one."""


@dataclass
class EnumeratedNoise:
    """What `KeyNoise` draws, as draws of the path that is walked; numbers up to 0 are one.

    Instead of chances weights: those of a key add up to the same number, whether it occurs or not.
    """

    up: Fraction
    down: Fraction

    def weights(self, first: int, count: int) -> dict[Any, Any]:
        """Those of the numbers from `first` on, of a key with that count."""
        inside = {n: weight(n - count, self.up, self.down) for n in range(first, HIGH)}
        return {**inside, HIGH: weight_from(HIGH - count, self.up, self.down)}

    def below(self, least: int) -> Any:
        return whole(self.up, self.down) - weight_from(least, self.up, self.down)

    def apply(self, counts: Any, bits: Any) -> Any:
        noisy = [draw({0: self.below(1 - c), **self.weights(1, c)}) for c in counts.tolist()]
        return np.array(noisy, dtype=np.int64)

    def unseen(self, size: int, least: int, bits: Any) -> Iterator[int]:
        chances = {True: 1, False: self.below(least)}  # of one that is in, the number has it all
        return (rank for rank in range(size) if draw(chances))

    def noise_from(self, least: int, size: int, bits: Any) -> Any:
        drawn = [draw(self.weights(least, 0)) for _ in range(size)]
        return np.array(drawn, dtype=np.int64)


def law_of_keys(counts: Mapping[str, int], thresholds: tuple[int, ...], noise: KeyNoise) -> Law:
    """The law of the published list, for all texts of the letter a, a class for each length.

    As weights, which add up to the same for all counts: noise is drawn once more for keys that
    occur, and thrown away.
    """
    texts = TextKeys(alphabet="a", length=len(thresholds))
    enumerated: Any = EnumeratedNoise(noise.up, noise.down)
    release = UnknownKeys(universe=texts, noise=enumerated, thresholds=thresholds)
    law: Law = {}
    for _, chance, found in paths(lambda: release.apply(counts, ScriptedBits()), exact=True):
        law[tuple(found)] = law.get(tuple(found), 0) + chance
    missing = [whole(noise.up, noise.down)] * (len(thresholds) - len(counts))
    return {found: math.prod(missing, start=chance) for found, chance in law.items()}


@pytest.mark.parametrize("relation", [REPLACE, ADD_REMOVE])
@pytest.mark.parametrize("thresholds", [(1, 3), (3, 1)])
def test_keys_of_two_classes_pass_at_the_threshold_of_their_own(
    thresholds: tuple[int, int], relation: Neighbors
) -> None:
    """A key that occurs passes where one that does not would: else one row is seen for certain."""
    noise = KeyNoise.symmetric(epsilon=EPSILON, neighbors=relation)  # short exponents: fast
    names = ("a", "aa")
    pairs = {
        (a, b)
        for one, two in moved(2, 2, relation)
        for a, b in ((one, two), (one[::-1], two[::-1]))
    }

    def law(counts: Counts) -> Law:
        # a key that does not occur is not handed over
        there = {name: c for name, c in zip(names, counts, strict=True) if c}
        return law_of_keys(there, thresholds, noise)

    assert_pure(law, pairs, epsilon=EPSILON, tight=True)


def test_every_key_of_every_class_may_be_published_though_it_does_not_occur() -> None:
    """One that could not would be seen for certain where it occurs."""
    names = TextKeys(alphabet="ab", length=3)  # 2, 4 and 8 keys
    noise = KeyNoise(up=Fraction(1, 4), down=Fraction(1, 4))
    release = UnknownKeys(universe=names, noise=noise, thresholds=(1, 1, 1))
    bits = ReplayBits("unseen")
    found = {key for _ in range(60) for key, _ in release.apply({}, bits)}
    assert found == {"".join(key) for n in (1, 2, 3) for key in itertools.product("ab", repeat=n)}


@pytest.mark.parametrize("thresholds", [(1, 3), (3, 1), (2, 2)])
def test_what_is_published_has_the_law_of_noise_on_every_key(thresholds: tuple[int, int]) -> None:
    noise = KeyNoise(up=Fraction(1, 2), down=Fraction(1, 4))
    for counts in itertools.product(range(3), repeat=2):
        there = {"a" * (i + 1): count for i, count in enumerate(counts) if count}
        found = law_of_keys(there, thresholds, noise)
        each = [
            one_key(count, least, HIGH - 1, noise.up, noise.down)
            for count, least in zip(counts, thresholds, strict=True)
        ]
        assert len(found) == math.prod(map(len, each))
        for outcome, chance in found.items():
            seen = [dict(outcome).get(name, "none") for name in ("a", "aa")]
            right = math.prod(
                (law["more" if n == HIGH else n] for law, n in zip(each, seen, strict=True)),
                start=whole(noise.up, noise.down) * whole(noise.up, noise.down),
            )
            assert chance == right


@pytest.mark.parametrize("relation", [REPLACE, ADD_REMOVE])
def test_a_certificate_of_keys_proves_exactly_epsilon(relation: Neighbors) -> None:
    noise = noise_for(relation)
    proven = Certificate(claim=noise.claim, steps=(noise.step(26**10),))
    assert verify(proven) == noise.claim
    less = PureDP(EPSILON - HAIR, neighbors=relation)
    with pytest.raises(CertificateError):
        verify(Certificate(claim=less, steps=(noise.step(26**10),)))


@pytest.mark.parametrize("log_keys", [0.0, 1e-9, 0.5, 5.0, 40.0, 1e5, 1e15])
@pytest.mark.parametrize("wish", [0.25, 2.0, 100.0])
def test_both_directions_add_up_to_epsilon(log_keys: float, wish: float) -> None:
    noise = KeyNoise.for_epsilon(epsilon="1/3", log_keys=log_keys, wish=wish)
    assert noise.up + noise.down == noise.epsilon == Fraction(1, 3)
    assert min(noise.up, noise.down) > 0


# K2.


def score_pairs(options: int, most: int, *, monotone: bool) -> set[tuple[Counts, Counts]]:
    """All neighboring scores: each moves by at most 1, if monotone one way.

    Up to names and a constant: neither changes a law but for its names.
    """
    moves = list(itertools.product((0, 1) if monotone else (-1, 0, 1), repeat=options))
    found = set()
    for scores in itertools.combinations_with_replacement(range(most + 1), options):
        for move in moves:
            pair = [(s, s + m) for s, m in zip(scores, move, strict=True)]
            a, b = zip(*sorted(pair), strict=True)
            found.add((tuple(x - min(a) for x in a), tuple(x - min(b) for x in b)))
    return {pair for pair in found if pair[0] != pair[1]}


@pytest.mark.parametrize(("options", "k", "most"), [(3, 2, 3), (4, 2, 2)])
@pytest.mark.parametrize("monotone", [False, True])
def test_joint_top_k_is_pure_on_every_pair_of_scores(
    options: int, k: int, most: int, monotone: bool
) -> None:
    """Ties included. The bound 2Δ is on u; half of it loses more than ε."""
    joint = JointTopK.for_epsilon(epsilon=EPSILON, k=k, sensitivity=1, monotone=monotone)
    assert joint.epsilon == EPSILON
    law, half = (partial(joint_law, k=k, scale=scale) for scale in (joint.scale, joint.scale / 2))
    pairs = score_pairs(options, most, monotone=monotone)
    assert_pure(law, pairs, epsilon=EPSILON, mistake=half)


def test_a_certificate_of_a_joint_draw_proves_exactly_epsilon() -> None:
    joint = JointTopK.for_epsilon(epsilon=EPSILON, k=3, sensitivity=2)
    claim = verify(Certificate(claim=PureDP(EPSILON), steps=(joint.step(),)))
    assert isinstance(claim, PureDP)
    assert claim.exact_epsilon == EPSILON
    with pytest.raises(CertificateError):
        verify(Certificate(claim=PureDP(EPSILON - HAIR), steps=(joint.step(),)))
    with pytest.raises(ParameterError):
        JointTopK.for_epsilon(epsilon=1, k=1, sensitivity=1, monotone="yes")
