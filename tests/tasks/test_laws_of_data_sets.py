"""Exact laws of what data sets are asked, on all neighbors of every relation: no tolerance.

What a task hands to its mechanism is recorded and compared with the definition; the law of the
definition at the mechanism's own scale must be ε-DP, and at half of it must not.
"""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import zerodelta as zd
from purity import assert_pure
from tasks.noise_laws import assert_chosen_purely
from tasks.noise_laws import law as noise_law
from tasks.related import Relation, added, filtered, of_units, replaced
from tasks.spying import first, recorded, zero
from zerodelta.mechanisms.partition_noise import PartitionNoise
from zerodelta.mechanisms.selection import PermuteAndFlip
from zerodelta.mechanisms.sum_noise import CountNoise, KNorm
from zerodelta.privacy.claims import PureDP

EPSILON = Fraction(3, 4)
RELATIONS = {
    each.name: each
    for each in (
        replaced([0, 1, 3], 3),
        filtered([0, 1, 3], 2),
        added([0, 1, 3], 4),
        of_units([0, 1, 3]),
    )
}
each_relation = pytest.mark.parametrize("relation", RELATIONS.values(), ids=RELATIONS)


def distances(rows: list[float], q: Fraction, points: int, *, follows: bool) -> list[Fraction]:
    """The distance of every point from the aim among the rows that count, by definition (C10.2)."""
    n = len(rows)
    aim = (q * n, q * n)
    if follows:
        aim = (Fraction(math.floor(q * n)), Fraction(math.ceil(q * n)))
        if n:
            aim = (min(aim[0], Fraction(n - 1)), max(aim[1], Fraction(1)))
    found = []
    for point in range(points):
        below, not_above = sum(r < point for r in rows), sum(r <= point for r in rows)
        found.append(max(Fraction(0), below - aim[0], aim[1] - not_above))
    return found


def certified(release: zd.records.Release, relation: Relation) -> None:
    unit = "1" if relation.name == "unit" else None
    claim = zd.verify(
        release.certificate, epsilon=EPSILON, neighbors=relation.neighbors.value, unit=unit
    )
    assert claim == PureDP(EPSILON, neighbors=relation.neighbors)


@each_relation
@pytest.mark.parametrize("q", ["1/2", "1/4", 0, 1])
def test_quantiles_are_pure_on_every_pair_of_neighbors(
    monkeypatch: pytest.MonkeyPatch, relation: Relation, q: Any
) -> None:
    calls = recorded(monkeypatch, PermuteAndFlip, "select", zero)
    level, points, handed = Fraction(q), 4, {}
    follows = relation.name != "add-remove"
    unit = 1 if follows else level.denominator
    for key in relation.keys:
        people = relation.open(key, zd.number(0, 3))
        release = zd.quantile(people, "0", q=q, grid=points, epsilon=EPSILON, margin=0)
        used, scores, *_, named = calls[-1]
        wanted = distances(relation.counted(key), level, points, follows=follows)
        counts: Counter[int] = Counter()
        for score, members in zip(scores.tolist(), named["members"].tolist(), strict=True):
            counts[-score] += members
        assert counts == Counter(int(unit * distance) for distance in wanted)
        handed[key] = used.scale, tuple(-int(unit * distance) for distance in wanted)
    certified(release, relation)
    # at the ends scores of all points move one way: the noise is even halved twice
    less = 4 if not follows and level in (0, 1) else 2
    assert_chosen_purely(handed, relation.pairs, epsilon=EPSILON, less=less)


@each_relation
def test_modes_are_pure_on_every_pair_of_neighbors(
    monkeypatch: pytest.MonkeyPatch, relation: Relation
) -> None:
    """Of three options one never occurs, and 3 is none of them: it counts nowhere."""
    calls = recorded(monkeypatch, PermuteAndFlip, "select", zero)
    handed = {}
    for key in relation.keys:
        people = relation.open(key, zd.category([0, 1, 9]))
        release = zd.mode(people, "0", epsilon=EPSILON, method="permute-and-flip")
        used, levels, *_, named = calls[-1]
        counts = [relation.counted(key).count(option) for option in (0, 1, 9)]
        assert dict(zip(levels.tolist(), named["members"].tolist(), strict=True)) == Counter(counts)
        handed[key] = used.scale, tuple(counts)
    certified(release, relation)
    assert_chosen_purely(handed, relation.pairs, epsilon=EPSILON)


@each_relation
@pytest.mark.parametrize("other", [False, True])
def test_histograms_are_pure_on_every_pair_of_neighbors(
    monkeypatch: pytest.MonkeyPatch, relation: Relation, other: bool
) -> None:
    """With `other` every row is in a count, but only where none is dropped the last one follows."""
    calls = [
        recorded(monkeypatch, kind, "apply", first) for kind in (CountNoise, PartitionNoise, KNorm)
    ]
    kind = zd.category([0], other=True) if other else zd.category([0, 1])
    found = {}
    for key in relation.keys:
        release = zd.histogram(relation.open(key, kind), "0", epsilon=EPSILON)
        (used,) = [each for each in calls if each]
        noise, counts, *_ = used[-1]
        found[key] = noise, tuple(int(count) for count in counts)
        rows = relation.counted(key)
        if other and relation.name == "replace":
            assert found[key][1] == (rows.count(0),)
            assert sum(release.value) == 3
        else:
            lost = key.count(0) if relation.name == "add-remove" else 0  # missing cells are other
            last = len(rows) - rows.count(0) + lost if other else rows.count(1)
            assert found[key][1] == (rows.count(0), last)
    certified(release, relation)
    pairs = {(found[a], found[b]) for a, b in relation.pairs}
    full, half = (lambda each, f=f: noise_law(each[0], each[1], f) for f in (1, Fraction(1, 2)))
    assert_pure(full, pairs, epsilon=EPSILON, mistake=half)


@pytest.mark.parametrize(("lower", "upper"), [(0, 2), (-1, 1), (1, 2), (-2, -1)])
@pytest.mark.parametrize("related", ["replace", "add-remove"])
def test_scores_of_columns_are_pure_on_every_pair_of_neighbors(
    monkeypatch: pytest.MonkeyPatch, lower: int, upper: int, related: str
) -> None:
    """Two columns are the options; a missing cell adds nothing to its score."""
    calls = recorded(monkeypatch, PermuteAndFlip, "select", zero)
    cells = [(a, b) for a in (None, lower, upper) for b in (None, lower, upper)]
    kind, handed, step = zd.number(lower, upper), {}, 2 * (1 << 20) // (upper - lower)
    relation = replaced(range(8), 2) if related == "replace" else added(range(8), 2)
    for key in relation.keys:
        shown = np.array([cells[i] for i in key], dtype=object).reshape(-1, 2)
        options: dict[str, Any] = {"neighbors": related}
        options |= {} if related == "replace" else {"expected_rows": 2}
        people = zd.open(shown, columns={"0": kind, "1": kind}, **options)
        zd.select(people, epsilon=EPSILON)
        used, scores, *_ = calls[-1]
        sums = [sum(row[i] or 0 for row in (cells[j] for j in key)) for i in range(2)]
        assert [int(score) for score in scores] == [step * total for total in sums]
        handed[key] = used.scale, tuple(int(score) for score in scores)
    assert_chosen_purely(handed, relation.pairs, epsilon=EPSILON)
