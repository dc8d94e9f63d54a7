"""Propose-test-release and bounded local sensitivity for a caller's query: exact laws."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import zerodelta as zd
from paper.test_local_sensitivity import CHANGE, EVERY, LOCAL, answer, mixed_law
from paper.test_mode import real_pass
from paper.test_propose_test_release import free_law, unstable_law
from purity import assert_pure
from reference.chi_square import goodness_of_fit
from zerodelta.audit.exact import certainly_impure, datasets, neighbors
from zerodelta.exact.bits import ReplayBits
from zerodelta.mechanisms.stable_queries import Median, as_query
from zerodelta.tasks.robust import bounded_local_sensitivity, propose_test_release
from zerodelta.testing import replayed

F = Fraction
SIZE = 5


def middle(rows: Any) -> float:
    return float(sorted(rows)[(len(rows) - 1) // 2])


TABLES = list(datasets(range(SIZE), 3))
MOVES = dict.fromkeys(TABLES, 0.0)
for _a, _b in neighbors(TABLES):
    _moved = abs(middle(_a) - middle(_b))
    MOVES[_a], MOVES[_b] = max(MOVES[_a], _moved), max(MOVES[_b], _moved)


def far(rows: Any, bound: float) -> int:
    """How many rows must change before the local sensitivity exceeds the bound: brute force."""
    exact = tuple(rows)
    changes = [
        sum(x != y for x, y in zip(exact, other, strict=True))
        for other, moved in MOVES.items()
        if moved > bound
    ]
    return min(changes, default=4)


PROPOSED: dict[str, Any] = {
    "query": middle,
    "stability": far,
    "proposed_bound": 1,
    "bounds": (-0.5, SIZE - 0.5),
    "cells": SIZE,
}


@pytest.mark.parametrize("share", ["1/2", "1/4"])
def test_a_caller_s_query_is_pure_on_every_pair_of_neighbors(share: str) -> None:
    """Laws from the numbers of the certificate; the answer's grid is the grid of the rows."""
    release = propose_test_release([1, 2, 3], **PROPOSED, epsilon=1, test_share=share)
    numbers = release.certificate.steps[0].numbers
    split = F(str(numbers["test_epsilon"])), F(str(numbers["release_epsilon"]))
    tau, bound = F(str(numbers["threshold"])), int(str(numbers["sensitivity"]))
    assert split == (F(share), 1 - F(share))
    assert bound >= 2  # one cell more than the bound: rounding can add one
    query = as_query(middle, bounds=(-0.5, SIZE - 0.5), cells=SIZE, stability=far)
    laws = {d: free_law(query, d, bound, split, tau, "real") for d in TABLES}
    assert_pure(laws, neighbors(TABLES), epsilon=1)


def test_too_low_a_threshold_and_too_little_noise_are_caught() -> None:
    for tau, bound, violated in ((F(20), 2, False), (F(0), 2, True)):
        pair = [unstable_law(real_pass(0, F(1, 2), tau), c, 400, bound, F(1, 2)) for c in (50, 350)]
        assert certainly_impure(pair[0], pair[1], 1) is violated
    for bound, violated in ((4, False), (1, True)):  # stable answers 4 apart
        pair = [unstable_law(real_pass(60, F(1, 2), F(5)), c, 40, bound, F(1, 2)) for c in (10, 14)]
        assert certainly_impure(pair[0], pair[1], 1) is violated


def test_propose_test_release_has_the_law() -> None:
    rows = (1, 2, 2)
    numbers = propose_test_release(rows, **PROPOSED, epsilon=2).certificate.steps[0].numbers
    query = as_query(middle, bounds=(-0.5, SIZE - 0.5), cells=SIZE, stability=far)
    tau, bound = F(str(numbers["threshold"])), int(str(numbers["sensitivity"]))
    law = free_law(query, rows, bound, (F(1), F(1)), tau, "real")
    bits = ReplayBits("caller's query")
    drawn = Counter(
        round(replayed(bits)(propose_test_release)(rows, **PROPOSED, epsilon=2).value)
        for _ in range(1000)
    )
    expected = [float(law[y]) for y in range(SIZE)]
    assert goodness_of_fit([drawn[y] for y in range(SIZE)], expected) > 1e-4


BOUNDED: dict[str, Any] = {
    "query": answer,
    "local": lambda rows: LOCAL[tuple(rows)],
    "change": CHANGE,
    "bounds": (-0.5, SIZE - 0.5),
    "cells": SIZE,
}


def test_bounded_local_sensitivity_is_pure_on_every_pair_of_neighbors() -> None:
    """The margin and weight of the certificate, with the change and local sensitivity as used."""
    release = bounded_local_sensitivity(EVERY[0], **BOUNDED, epsilon=1, mixing_probability="1/10")
    numbers = release.certificate.steps[0].numbers
    assert int(str(numbers["local_change"])) >= CHANGE
    split = F(str(numbers["bound_epsilon"])), F(str(numbers["release_epsilon"]))
    margin = int(str(numbers["threshold"]))
    chosen = [d for d in EVERY if d == tuple(sorted(d))]
    laws = {d: mixed_law(d, split, margin, F(1, 10)) for d in chosen}
    pairs = {(tuple(sorted(a)), tuple(sorted(b))) for a, b in neighbors(EVERY)}
    assert_pure(laws, pairs, epsilon=1)


def test_what_is_released_is_asserted_or_proven() -> None:
    release = propose_test_release([1, 2, 3], **PROPOSED, epsilon=1)
    assert release.certificate.status.value == "asserted"
    assert release.certificate.assumed
    assert zd.verify(release.certificate)
    rows = np.full(300, 42.0)
    median = Median(bounds=(0, 100), steps=50)
    ours = propose_test_release(rows, query=median, proposed_bound=2, epsilon=2)
    assert ours.certificate.status.value == "proven"
    assert ours.error == pytest.approx(2)  # 2 units of noise scale over ε₂ = 1
    assert bounded_local_sensitivity(rows, query=median, epsilon=1).certificate.status.value == (
        "proven"
    )


def test_the_forecast_is_the_error_of_an_answer_that_passes() -> None:
    """1000 releases of a stable answer: a standard error of 3 %."""
    options: dict[str, Any] = {
        "query": lambda rows: 50.0,
        "stability": lambda rows, bound: 500,
        "proposed_bound": 1,
        "bounds": (0, 100),
        "epsilon": 2,
    }
    releases = [propose_test_release([0], **options) for _ in range(1000)]
    measured = float(np.mean([abs(release.value - 50) for release in releases]))
    assert 1 / 1.2 < measured / float(releases[0].error) < 1.2


def raising(*_: Any) -> Any:
    raise RuntimeError("secret")


@pytest.mark.parametrize("bad", [raising, lambda *_: "text", lambda *_: math.nan, lambda *_: None])
def test_failures_of_the_caller_s_functions_are_mapped(bad: Any) -> None:
    value = propose_test_release(
        [1], **{**PROPOSED, "query": bad, "stability": bad}, epsilon=1
    ).value
    assert 0 <= value <= SIZE
    value = bounded_local_sensitivity(
        [1], **{**BOUNDED, "query": bad, "local": bad}, epsilon=1
    ).value
    assert 0 <= value <= SIZE


BETWEEN: list[tuple[Any, Any]] = [(0, 100), (0, 0.3), ("-1/3", "1/3"), (0, "1/10"), ("1/3", "2/3")]


@pytest.mark.parametrize("bounds", BETWEEN, ids=str)
@pytest.mark.parametrize("low", [True, False])
def test_what_is_released_lies_between_the_bounds(bounds: tuple[Any, Any], low: bool) -> None:
    """All rows beyond one end, and little noise: mostly the first or the last cell."""
    rows = np.full(50, -1e9 if low else 1e9)
    median = Median(bounds=bounds, steps=49)
    releases: dict[str, Callable[[ReplayBits], zd.records.Release]] = {
        "bounded": lambda bits: replayed(bits)(bounded_local_sensitivity)(
            rows, query=median, epsilon=1000
        ),
        "proposed": lambda bits: replayed(bits)(propose_test_release)(
            rows, query=median, proposed_bound=F(bounds[1]) / 10, epsilon=1000
        ),
        "trimmed": lambda bits: replayed(bits)(zd.trimmed_mean)(
            rows, bounds=bounds, trim="1/10", epsilon=1000
        ),
        "mean": lambda bits: replayed(bits)(zd.mean)(rows, bounds=bounds, epsilon=1000),
        "quantile": lambda bits: replayed(bits)(zd.median)(rows, bounds=bounds, epsilon=1000),
    }
    end, width = F(bounds[0 if low else 1]), F(bounds[1]) - F(bounds[0])
    for name, release in releases.items():
        values = [F(release(ReplayBits(f"{name} {seed}")).value) for seed in range(5)]
        assert all(F(bounds[0]) <= value <= F(bounds[1]) for value in values), name
        assert min(abs(value - end) for value in values) < width / 1000, name
