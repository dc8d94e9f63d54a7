"""Selection: exact laws on all small neighbors, stated scores and scores summed from rows."""

from __future__ import annotations

import itertools
import math
import sys
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest

import zerodelta as zd
from purity import assert_impure, assert_pure
from tasks.noise_laws import assert_chosen_purely
from tasks.spying import recorded, zero
from zerodelta.audit.exact import (
    datasets,
    neighbors,
    permute_and_flip_law,
)
from zerodelta.mechanisms.selection import PermuteAndFlip, worst_gap
from zerodelta.tasks import choices as module
from zerodelta.tasks.choices import exact_score, select

EPSILON = Fraction(3, 4)


@pytest.mark.parametrize(("options", "rows"), [(2, 2), (3, 1)])
def test_scores_summed_from_rows_are_pure_on_every_pair_of_neighbors(
    monkeypatch: pytest.MonkeyPatch, options: int, rows: int
) -> None:
    monkeypatch.setattr(module, "_STEPS", 1)
    calls, handed = recorded(monkeypatch, PermuteAndFlip, "select", zero), {}
    for table in datasets(list(itertools.product((0, 1, 2), repeat=options)), rows):
        select(np.array(table, dtype=float), bounds=(0, 2), epsilon=EPSILON)
        used, scores, *_ = calls[-1]
        handed[table] = used.scale, tuple(int(s) for s in scores)
    assert_chosen_purely(handed, neighbors(handed), epsilon=EPSILON)


@pytest.mark.parametrize("monotone", [False, True])
def test_stated_scores_are_pure_and_the_wrong_flag_is_caught(
    monkeypatch: pytest.MonkeyPatch, monotone: bool
) -> None:
    calls = recorded(monkeypatch, PermuteAndFlip, "select", zero)
    select([0, 1, 5], sensitivity=1, monotone=monotone, epsilon=EPSILON)
    law = partial(permute_and_flip_law, scale=calls[-1][0].scale)
    one_way, both_ways = [], []
    for rest in itertools.product(range(3), repeat=2):
        for move in itertools.product((-1, 0, 1), repeat=3):
            scores = (0, *rest)
            pair = scores, tuple(s + m for s, m in zip(scores, move, strict=True))
            both_ways.append(pair)
            if min(move) >= 0:
                one_way.append(pair)
    assert_pure(law, one_way, epsilon=EPSILON)
    (assert_impure if monotone else assert_pure)(law, both_ways, epsilon=EPSILON)


@pytest.mark.slow
@pytest.mark.parametrize("options", [2, 10, 100])
def test_the_forecast_is_the_gap_where_it_is_largest(options: int) -> None:
    """One option leads all others by a; 2000 choices at the worst a, a standard error below 5 %."""
    epsilon, forecast = 1, worst_gap(options, 2)
    best, at = 0.0, 0
    for lead in range(1, 25):
        exact = _wrong(options, lead / 2) * lead
        best, at = (exact, lead) if exact > best else (best, at)
    assert best * 0.9999 <= forecast <= best * 1.05  # integer leads come close to the best real one
    scores = [at] + [0] * (options - 1)
    drawn = [select(scores, sensitivity=1, epsilon=epsilon).value for _ in range(2000)]
    measured = at * float(np.mean([choice != 0 for choice in drawn]))
    assert 1 / 1.25 < measured / forecast < 1.25
    assert forecast <= 2 * math.log(options)


def _wrong(options: int, lead: float) -> float:
    """P(not the leader), by the general laws' formulae in floats."""
    x = math.exp(-lead)
    grid = (np.arange(20_000) + 0.5) / 20_000
    return 1 - float(np.mean((1 - x * grid) ** (options - 1)))


def test_options_are_named_and_odd_scores_never_raise() -> None:
    assert select({"a": 0, "b": 10**6}, sensitivity=1, epsilon=1).value == "b"
    odd = [math.nan, -math.inf, None, "x", Fraction(1, 3), 2.5, np.int64(10**6), 10**400]
    assert select(odd, sensitivity=1, epsilon=1).value == 7
    assert select([5, math.inf, 3], sensitivity=1, epsilon=1).value == 1
    assert select(np.array([0.5, 1e6]), sensitivity="0.25", epsilon=1).value == 1
    release = select([3], sensitivity=1, epsilon=1)
    assert (release.value, release.error) == (0, 0.0)
    assert release.certificate.status.value == "asserted"
    assert zd.verify(release.certificate)
    rows = np.array([[0.0, math.nan], [math.inf, 7.0]])
    assert select(rows, bounds=(0, 1), epsilon=1).value in (0, 1)


def test_a_monotone_choice_says_so() -> None:
    for monotone in (False, True):
        release = select([3, 1], sensitivity=1, epsilon=1, monotone=monotone)
        told = any("same direction" in line for line in release.certificate.assumed)
        assert told is monotone


def test_scores_that_warn_or_exit_count_as_zero() -> None:
    class Exit:
        def __float__(self) -> float:
            raise SystemExit

    release = select([np.complex128(1 + 2j), Exit(), 1000], sensitivity=1, epsilon=1)
    assert release.value == 2


LARGEST = Fraction(sys.float_info.max)


@pytest.mark.parametrize(
    ("score", "exact"),
    [
        (2**70 + 1, Fraction(2**70 + 1)),
        (np.int64(2**62 + 1), Fraction(2**62 + 1)),
        (np.uint8(7), Fraction(7)),
        (True, Fraction(1)),
        (Fraction(1, 3), Fraction(1, 3)),
        (Decimal("1e20") + Decimal("0.1"), Fraction(10**21 + 1, 10)),
        (np.float32(0.1), Fraction(float(np.float32(0.1)))),
        (np.longdouble(2**63) + 1, Fraction(2**63 + 1)),
        (" 2.5 ", Fraction(5, 2)),
        (math.inf, LARGEST),
        (-math.inf, -LARGEST),
        (10**400, LARGEST),
        (Fraction(-(10**400), 3), -LARGEST),
        (Decimal("1e999999999"), LARGEST),
        (Decimal("1e-999999999"), Fraction(0)),
        (math.nan, Fraction(0)),
        (Decimal("sNaN"), Fraction(0)),
        (None, Fraction(0)),
        ("x", Fraction(0)),
        (1j, Fraction(0)),
    ],
)
def test_a_score_is_read_exactly(score: Any, exact: Fraction) -> None:
    """Rounding could move two scores that are a sensitivity apart farther from each other."""
    if isinstance(score, np.longdouble) and np.finfo(np.longdouble).nmant < 63:
        pytest.skip("no wider floats here")
    assert exact_score(score) == exact


def test_no_code_of_a_score_runs() -> None:
    """Neither where it is read nor where a table is told from scores."""
    ran: list[str] = []

    class Spy(type):
        def __instancecheck__(cls, other: Any) -> bool:
            ran.append("metaclass")
            return True

        def __hash__(cls) -> int:
            ran.append("hash of the type")
            return 1

        def __eq__(cls, other: object) -> bool:
            ran.append("comparison of the type")
            return False

    class Score(metaclass=Spy):
        def __getattribute__(self, name: str) -> Any:
            ran.append(name)
            return super().__getattribute__(name)

        def __float__(self) -> float:
            ran.append("float")
            return 1e9

        numerator, denominator = 10**9, 1

    for scores in ([Score(), 1000], {"a": Score(), "b": 1000}, {"b": 1000, "a": Score()}):
        ran.clear()
        assert select(scores, sensitivity=1, epsilon=1).value in (1, "b")
        assert ran == []
