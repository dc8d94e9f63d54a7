"""Votes of blocks: the exact law over all ways to deal the rows, and what a choice may do."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import zerodelta as zd
from purity import assert_pure
from sampling import Replace
from tasks.related import Relation, added, filtered, of_units, replaced
from tasks.spying import recorded, zero
from zerodelta.audit.exact import ExpRational, certainly_pure, max_log_ratio, permute_and_flip_law
from zerodelta.exact.bits import SystemBits
from zerodelta.mechanisms.selection import PermuteAndFlip
from zerodelta.tasks.models import VoteQuestion

EPSILON = Fraction(3, 4)
BLOCKS = 2
VALUES = [0.0, 1.0, 2.0]
RELATIONS = {
    each.name: each
    for each in (
        replaced(VALUES, 3),
        filtered(VALUES, 2),
        added(VALUES, 3),
        of_units(VALUES[:2]),
    )
}
each_relation = pytest.mark.parametrize("relation", RELATIONS.values(), ids=RELATIONS)


def by_sum(block: Any) -> int:
    """Every row of a block can turn its vote."""
    return int(np.nansum(block)) % 3


@pytest.fixture
def law(monkeypatch: pytest.MonkeyPatch, replace: Replace) -> Callable[..., dict[int, ExpRational]]:
    """Return the law of what the verb publishes: all deals of the rows, the rest by its votes."""
    seen: list[tuple[Fraction, list[int]]] = []
    deal: Iterator[int]

    def select(self: PermuteAndFlip, votes: Any, bits: Any) -> int:
        seen.append((self.scale, votes.tolist()))
        return 0

    def drawn(bound: int, *, size: int, bits: Any) -> list[int]:
        assert bound == BLOCKS
        return [next(deal) for _ in range(size)]

    monkeypatch.setattr(PermuteAndFlip, "select", select)
    replace("uniform_below", drawn)

    def found(people: Any, rows: int) -> dict[int, ExpRational]:
        nonlocal deal
        seen.clear()
        for each in itertools.product(range(BLOCKS), repeat=rows):
            deal = iter(each)
            zd.queries.vote(people, by_sum, "0", options=range(3), blocks=BLOCKS, epsilon=EPSILON)
            assert next(deal, None) is None  # each row or unit that counts is dealt once
        chance = ExpRational.of(Fraction(1, len(seen)))
        total = dict.fromkeys(range(3), ExpRational.of(0))
        for scale, votes in seen:
            assert sum(votes) == BLOCKS
            for option, p in permute_and_flip_law(votes, scale=scale).items():
                total[option] = total[option] + p * chance
        return total

    return found


@each_relation
def test_a_vote_is_pure_on_all_neighbors(
    relation: Relation, law: Callable[..., dict[int, ExpRational]]
) -> None:
    kind = zd.number(0, 2)
    laws = {}
    for key in relation.keys:
        units = relation.max_rows > 1
        draws = sum(map(bool, key)) if units else len(relation.counted(key))
        laws[key] = law(relation.open(key, kind), draws)
    assert_pure(laws, relation.pairs, epsilon=EPSILON)


def test_a_vote_that_moves_costs_all_of_epsilon_and_no_more(
    monkeypatch: pytest.MonkeyPatch, replace: Replace
) -> None:
    """Given how the rows are dealt: one row to each of 60 blocks, all but one vote for 1."""
    calls = recorded(monkeypatch, PermuteAndFlip, "select", zero)
    replace("uniform_below", lambda bound, *, size, bits: range(size))
    for first in (1.0, 0.0):
        rows = np.array([[first]] + [[1.0]] * 59)
        zd.queries.vote(
            rows, lambda b: int(b[0, 0] > 0.5), options=[0, 1], blocks=60, epsilon=EPSILON
        )
    (noise, votes, *_), (_, moved, *_) = calls
    assert (votes.tolist(), moved.tolist()) == ([0, 60], [1, 59])
    one, two = (permute_and_flip_law(v.tolist(), scale=noise.scale) for v in (votes, moved))
    assert certainly_pure(one, two, EPSILON)
    assert float(max_log_ratio(one, two)) > 0.9999 * float(EPSILON)


def test_a_unit_has_one_block_and_all_of_epsilon(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = recorded(monkeypatch, PermuteAndFlip, "select", zero)
    seen: list[tuple[float, ...]] = []

    def choose(block: Any) -> int:
        seen.append(tuple(np.unique(block[:, 0])))
        return 0

    rows = np.array([[unit, unit] for unit in range(300) for _ in range(unit % 4)], dtype=float)
    kinds = {"0": zd.number(0, 300, missing=None)}
    people = zd.open(rows, columns=kinds, unit="1", max_rows=3, units=300)
    for data, most in ((people, 300), (people.where("`0` < 100"), 100)):
        seen.clear()
        release = zd.queries.vote(data, choose, options=[0, 1], blocks=8, epsilon=EPSILON)
        dealt = sorted(value for block in seen[1:] for value in block)  # the first was tried
        assert dealt == [unit for unit in range(most) if unit % 4]
        assert [step.theorem for step in release.certificate.steps][-1] == "unit-votes"
    assert {call[0].scale for call in calls} == {2 / EPSILON}
    release = zd.queries.vote(people, choose, options=[0], epsilon=EPSILON, diagnostics="1/10")
    assert zd.verify(release.certificate, epsilon=EPSILON, unit="1")


def test_every_row_is_dealt_to_one_block_at_random() -> None:
    sizes: list[tuple[float, ...]] = []

    def choose(block: Any) -> int:
        sizes.append(tuple(block[:, 0]))
        return 0

    question = VoteQuestion(choose=choose, options=(0, 1))
    rows = np.arange(5000.0)[:, None]
    question.votes([rows[:3000], rows[3000:]], 1, 10, SystemBits(), drop=False)
    assert sorted(value for block in sizes for value in block) == rows[:, 0].tolist()
    assert len(sizes) == 10
    # neighbors in the data are not neighbors in blocks: 5000 rows, 21 sd of the chance 1/10
    blocks = {value: place for place, block in enumerate(sizes) for value in block}
    together = sum(blocks[i] == blocks[i + 1] for i in range(4999))
    assert 300 < together < 700


@pytest.mark.parametrize(
    "choose",
    [
        lambda block: 1 / 0,
        lambda block: None,
        lambda block: "elsewhere",
        lambda block: [1],  # cannot be a key
        lambda block: np.array([1, 1]),
        lambda block: float("nan"),
    ],
)
def test_a_failing_choice_is_a_vote_for_the_first_option(choose: Any) -> None:
    question = VoteQuestion(choose=choose, options=("first", 1))
    votes = question.votes([np.zeros((40, 1))], 1, 4, SystemBits(), drop=False)
    assert votes.tolist() == [4, 0]


def test_numbers_of_numpy_are_options() -> None:
    question = VoteQuestion(choose=lambda block: np.int64(1), options=(0, 1))
    assert question.votes([np.zeros((40, 1))], 1, 4, SystemBits(), drop=False).tolist() == [0, 4]
    assert question.votes([np.zeros((0, 1))], 1, 4, SystemBits(), drop=False).tolist() == [4, 0]


def test_the_number_of_blocks_and_what_it_buys() -> None:
    def told(n: int, epsilon: Any) -> tuple[str, str]:
        release = zd.queries.vote(np.zeros((n, 1)), lambda _: 0, options=range(16), epsilon=epsilon)
        return release.certificate.public[1], str(release.error)

    assert told(100_000, 1)[0] == "the number of blocks, 31"  # 8 (ln 16 + 1) = 30.2
    assert told(500, 1)[0] == "the number of blocks, 20"
    assert told(10, 1)[0] == "the number of blocks, 3"
    assert "cannot decide" in told(10, 1)[1]
    assert "cannot decide" not in told(100_000, 1)[1]


def test_the_certificate_says_whose_word_it_rests_on() -> None:
    release = zd.queries.vote(np.zeros((100, 1)), lambda _: 0, options=[0, 1], epsilon=1)
    assert release.certificate.steps[0].status.value == "asserted"
    assert any("one block at a time" in line for line in release.certificate.assumed)
