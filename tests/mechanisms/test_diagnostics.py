"""How rows were read, for a share of ε: the fractions, the part of the certificate, its exact ε."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest

import zerodelta as zd
from data.losses import loss, without_noise
from data.opening import opened
from zerodelta.data.arrays import ArraySource, Readings
from zerodelta.errors import ParameterError
from zerodelta.exact.bits import ReplayBits
from zerodelta.mechanisms.diagnostics import ReadingsQuestion, as_diagnosis
from zerodelta.mechanisms.partition_noise import PartitionNoise
from zerodelta.privacy.claims import ZCDP, PureDP
from zerodelta.privacy.parameters import Neighbors
from zerodelta.privacy.release import Diagnostics
from zerodelta.spine.plan import Facts
from zerodelta.spine.run import ask
from zerodelta.tasks.statistics import MeanQuestion
from zerodelta.testing import replayed

SHARE = Fraction(1, 100)
COLUMNS: dict[str, Any] = {
    "age": zd.number(0, 120),
    "height": zd.number(1, 2, missing=None),
    "city": zd.category(["oslo"]),
    "name": zd.text(length=3),
}
USED, CLIPPED, UNREADABLE, DROPPED = (30, 1.5), (130, 1.5), ("x", 1.5), (30, 1.0)
CONDITION = "height > 1"


def people(rows: list[Any], **who: Any) -> Any:
    table = pd.DataFrame([(*row, "oslo", "ann") for row in rows], columns=list(COLUMNS))
    ids = [row[0] % 2 if isinstance(row[0], int) else 0 for row in rows]
    return zd.open(table.astype(object).assign(who=ids), columns=COLUMNS, **who)


def readings(data: Any, columns: Any, bounds: Any = None) -> list[float]:
    diagnosis = as_diagnosis(SHARE, data[columns], bounds=bounds)
    assert diagnosis is not None
    blocks = opened(diagnosis.source).blocks()
    found: list[float] = np.concatenate(list(blocks))[:, 0].tolist()
    return [-1.0 if each != each else each for each in found]


def test_a_row_is_used_clipped_or_unreadable_by_its_own_cells() -> None:
    rows = [
        (0, 1),
        (120, 2),
        (-0.5, 1),
        (121, 1),
        (math.nan, 1),
        (None, 1),
        ("x", 1),
        (math.inf, 1),
    ]
    data = people([*rows, (20, None), (20, 3), (None, 3), (200, None)])
    assert readings(data, "age") == [0, 0, 1, 1, 2, 2, 2, 1, 0, 0, 2, 1]
    # what is missing is unreadable whatever it counts as
    assert readings(data, "height") == [0] * 8 + [2, 1, 1, 2]
    assert readings(data, ["age", "height"]) == [0, 0, 1, 1, 2, 2, 2, 1, 2, 1, 2, 2]
    assert readings(data, "age", (0, 20)) == [0, 1, 1, 1, 2, 2, 2, 1, 0, 0, 2, 1]
    assert readings(data, ["city", "name"]) == [0] * 12
    odd = zd.open(
        pd.DataFrame({"city": ["rome", "oslo"], "name": ["ann", "anna"]}),
        columns={"city": zd.category(["oslo"]), "name": zd.text(length=3)},
    )
    assert readings(odd, "city") == [2, 0]
    assert readings(odd, "name") == [0, 2]


def test_rows_that_count_nowhere_are_in_no_fraction() -> None:
    """A condition is judged on what cells count as, and units are bounded first."""
    data = people([USED, DROPPED, CLIPPED, UNREADABLE])
    assert readings(data.where(CONDITION), "age") == [0, -1, 1, 2]
    filled = people([(1, None), (1, 1.2), (1, 9)]).where("height > 1.4")
    assert readings(filled, "height") == [2, -1, 1]
    units = people([USED] * 4 + [(31, 1.5)] * 3 + [CLIPPED], unit="who", max_rows=2)
    assert len(readings(units, "age")) == 4


def test_arrays_are_read_as_they_are_whatever_a_missing_cell_counts_as() -> None:
    for missing in ("skip", None, 7):
        source = ArraySource([[1.0, 2.0], [None, 1.0], [9.0, "x"], [9.0, 1.0]], missing=missing)
        read = Readings(source, ((Fraction(0), Fraction(8)), None))
        assert [block[:, 0].tolist() for block in opened(read).blocks()] == [[0, 2, 2, 1]]
        assert (read.rows, read.row_count_is_public, read.may_miss) == (4, True, False)


@pytest.mark.parametrize(
    ("who", "where"),
    list(
        itertools.product(
            [{}, {"neighbors": "add-remove", "expected_rows": 4}, {"unit": "who", "max_rows": 2}],
            [None, CONDITION],
        )
    ),
)
def test_the_parts_of_the_certificate_add_up_to_the_epsilon_that_was_asked(
    who: dict[str, Any], where: str | None
) -> None:
    data = people([USED, CLIPPED, UNREADABLE], **who)
    chosen = data if where is None else data.where(where)
    for verb in (zd.mean, zd.sum, zd.count, zd.median):
        release = verb(chosen, "age", epsilon="1/2", diagnostics=SHARE)
        certificate = release.certificate
        assert [part.epsilon for part in certificate.parts] == [
            (1 - SHARE) / 2,
            SHARE / 2,
        ]
        asked = {name: who[name] for name in ("neighbors", "unit") if name in who}
        claim = zd.verify(certificate, epsilon="1/2", **asked)
        assert isinstance(claim, PureDP)
        assert claim.exact_epsilon == Fraction(1, 2)
        assert certificate.parts[1].steps[0].theorem.startswith("partition-")
        assert isinstance(release.diagnostics, Diagnostics)


@pytest.mark.parametrize(
    ("who", "where"),
    [
        ({}, None),
        ({}, CONDITION),
        ({"neighbors": "add-remove", "expected_rows": 2}, None),
        ({"unit": "who", "max_rows": 2}, CONDITION),
    ],
)
def test_the_part_costs_exactly_its_share(
    monkeypatch: pytest.MonkeyPatch, who: dict[str, Any], where: str | None
) -> None:
    """Over all neighbors of small tables the largest loss of the counts is share · ε."""
    run, kinds = without_noise(monkeypatch), [USED, CLIPPED, UNREADABLE, DROPPED]
    added, largest, found = "neighbors" in who, Fraction(0), {}

    def handed(rows: tuple[Any, ...]) -> Any:
        if rows not in found:
            data = people(list(rows), **who)
            chosen = data if where is None else data.where(where)
            mean = partial(replayed("a")(zd.mean), chosen, "age", epsilon=1, diagnostics=SHARE)
            found[rows] = run(mean)[1][-1:]
        return found[rows]

    first = [tuple(table) for table in itertools.product(kinds, repeat=2)]
    if "unit" in who:  # all rows of a unit: those of odd ages stay
        first = [((31, 1.5), *table) for table in first]
        pairs = list(itertools.product(first, first))
    elif added:
        pairs = [(table, (*table, row)) for table in first for row in kinds]
    else:
        pairs = [(table, (row, table[1])) for table in first for row in kinds]
    for one, two in pairs:
        mine, yours = handed(one), handed(two)
        assert isinstance(mine[0][0], PartitionNoise)
        largest = max(largest, loss(mine, yours))
    assert largest == SHARE


def test_without_noise_the_fractions_are_those_of_the_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = without_noise(monkeypatch)
    rows = [USED] * 5 + [CLIPPED] * 3 + [UNREADABLE] * 2
    for data, cells in ((people(rows), 2), (people([*rows, DROPPED]).where(CONDITION), 3)):
        release, handed = run(lambda: zd.mean(data, "age", epsilon=1, diagnostics="1/2"))  # noqa: B023
        assert release.diagnostics == Diagnostics(used=0.5, clipped=0.3, unreadable=0.2)
        assert len(handed[-1][1]) == cells  # the used are the rest where the number is public


def test_noise_beyond_all_rows_is_cut_off_and_no_rows_are_unknown() -> None:
    plan = ReadingsQuestion().plan(Facts(rows=None, expected_rows=5, may_miss=True), 1)
    counts = opened(ArraySource(np.array([0.0, 0.0, 1.0])))

    def answered(shift: tuple[int, int, int]) -> Diagnostics:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(PartitionNoise, "apply", lambda _self, sums, _bits: sums + shift)
            found: Diagnostics = plan.answer(counts, ReplayBits("a"))
            return found

    assert answered((0, 0, 1)) == Diagnostics(used=0.5, clipped=0.25, unreadable=0.25)
    assert answered((2, -2, -2)) == Diagnostics(used=1.0, clipped=0.0, unreadable=0.0)
    unknown = answered((-2, -1, 0))
    assert math.isnan(unknown.used + unknown.clipped + unknown.unreadable)


@pytest.mark.parametrize("neighbors", list(Neighbors))
def test_the_noise_is_that_of_a_partition(neighbors: Neighbors) -> None:
    for facts, cells in ((Facts(rows=5, neighbors=neighbors), 2), (Facts(rows=None), 3)):
        plan = ReadingsQuestion().plan(replace(facts, neighbors=neighbors), SHARE)
        assert plan.price == SHARE
        assert plan.steps[0].numbers["cells"] == cells
        assert plan.steps[0].numbers["row_total"] == 1


def test_what_cannot_be_diagnosed_is_refused_before_a_row_is_read() -> None:
    data = people([USED])
    for share in (0, 1, 2, "-1/2", "x", math.nan):
        with pytest.raises(ParameterError, match="diagnostics"):
            zd.mean(data, "age", epsilon=1, diagnostics=share)
    cases: list[tuple[Any, Any, dict[str, Any]]] = [
        (zd.count, [1, 2], {}),
        (zd.mean, np.ones((3, 2)), {"data_norm": 1}),
        (zd.mode, [1, 2], {"universe": 3}),
        (zd.histogram, [1, 2], {"universe": 3}),
        (zd.select, [1, 2], {"sensitivity": 3}),
        (zd.answer_queries, [[1, 2]], {"domain": {0: 2, 1: 2}}),
        (zd.decision_tree, [[1, 2]], {"thresholds": {0: [1]}}),
        (zd.select_model, [[1, 2]], {"candidates": {"a": 0, "b": 1}, "score": lambda *_: 0}),
        (
            zd.queries.propose_test_release,
            [1, 2],
            {"query": max, "stability": min, "bounds": (0, 1)},
        ),
        (zd.queries.bounded_local_sensitivity, [1], {"query": max, "local": min, "bounds": (0, 1)}),
        (zd.Study, [[1, 2]], {"publish": zd.Finite(2), "rounds": 1}),
    ]
    for verb, rows, options in cases:
        with pytest.raises(ParameterError, match="diagnostics"):
            verb(rows, epsilon=1, diagnostics=SHARE, **options)


def test_parts_add_up_for_pure_releases_only() -> None:
    plan = MeanQuestion(bounds=(0, 1)).plan(Facts(rows=3), 1)
    with pytest.raises(ParameterError, match="pure"):
        replace(plan, claim=ZCDP(1)).joined_with(plan)
    both = plan.joined_with(plan)
    assert both.price == Fraction(2)
    assert len(both.parts) == 2
    assert both.joined_with(plan).price == 3
    assert len(both.joined_with(plan).parts) == 3


def test_a_release_shows_its_diagnostics() -> None:
    release = zd.mean(people([USED]), "age", epsilon=1, diagnostics="1/2")
    assert "Diagnostics(used=" in repr(release)
    assert "Diagnostics" not in repr(zd.mean(people([USED]), "age", epsilon=1))
    source = ArraySource(np.array([1.0, 2.0]))
    question = MeanQuestion(bounds=(0, 1))
    assert ask(question, source, epsilon=1).diagnostics is None


def test_where_n_is_public_no_reading_is_shown_without_noise() -> None:
    """The rows that were used are what the two noisy counts leave: none of the three is exact."""
    data = people([USED] * 500 + [CLIPPED] * 300 + [UNREADABLE] * 200)
    exact, noisy = (0.5, 0.3, 0.2), 0
    for place in range(20):
        bits = ReplayBits(f"public {place}")
        found = replayed(bits)(zd.count)(data, "age", epsilon=1, diagnostics="1/10").diagnostics
        assert isinstance(found, Diagnostics)
        shares = (found.used, found.clipped, found.unreadable)
        assert math.isclose(sum(shares), 1)
        noisy += shares != exact
        assert (shares[0] == exact[0]) == math.isclose(shares[1] + shares[2], 0.5)
    assert noisy > 10
