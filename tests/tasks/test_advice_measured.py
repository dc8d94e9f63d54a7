"""What the advisor forecasts of tables, keys, distributions and votes is what is measured."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import zerodelta as zd
from zerodelta.data.keys import KeySource
from zerodelta.exact.bits import ReplayBits
from zerodelta.privacy.parameters import as_usable_epsilon
from zerodelta.spine.plan import Facts
from zerodelta.tasks.keys import TopKQuestion
from zerodelta.tasks.models import VoteQuestion, blocks_for
from zerodelta.testing import replayed

WITHIN = 1.5
N = 2000
ROWS = np.clip(np.random.default_rng(1).normal(50, 100 / 6, size=N), 0, 100)
NAMES = [f"{a}{b}" for a in "abcdefgh" for b in "abcdefgh"]
LETTERS = zd.text(2, alphabet="abcdefgh")


def _count(epsilon: Any, bits: ReplayBits) -> float:
    people = zd.open(ROWS, columns={"0": zd.number(0, 100, missing=None)}).where("`0` < 50")
    true = int((ROWS < 50).sum())
    return float(abs(replayed(bits)(zd.count)(people, epsilon=epsilon).value - true))


def _verb(verb: Callable[..., Any], true: float) -> Callable[..., float]:
    return lambda epsilon, bits: abs(
        replayed(bits)(verb)(ROWS, bounds=(0, 100), epsilon=epsilon).value - true
    )


def _variance(epsilon: Any, bits: ReplayBits) -> float:
    """Values rather close together, anywhere between the bounds."""
    errors = []
    for center in (10, 30, 50, 70, 90):
        rows = np.clip(center + 0.4 * (ROWS - 50), 0, 100)
        found = replayed(bits)(zd.variance)(rows, bounds=(0, 100), epsilon=epsilon).value
        errors.append(abs(found - rows.var()))
    return float(np.mean(errors))


def _table(epsilon: Any, bits: ReplayBits) -> float:
    cells = np.zeros(N, dtype=[("city", float), ("age", float)])
    cells["city"], cells["age"] = np.arange(N) % 4, ROWS
    release = replayed(bits)(zd.table)(
        cells,
        by={"city": zd.category(range(4))},
        of={"age": ["mean", "variance"]},
        bounds=(0, 100),
        missing=None,
        epsilon=epsilon,
    )
    groups = [ROWS[place::4] for place in range(4)]
    mean = np.abs(release.value["age_mean"] - [np.mean(each) for each in groups]) / 100
    variance = np.abs(release.value["age_variance"] - [np.var(each) for each in groups]) / 100**2
    return float(max(mean.mean(), variance.mean()))


def _quantiles(epsilon: Any, bits: ReplayBits) -> float:
    asked = [0.2, 0.4, 0.6, 0.8]
    release = replayed(bits)(zd.quantiles)(ROWS, q=asked, bounds=(0, 100), epsilon=epsilon)
    ranks = np.searchsorted(np.sort(ROWS), release.value)
    return float(np.abs(ranks - np.array(asked) * N).mean())


def _cdf(epsilon: Any, bits: ReplayBits) -> float:
    at = np.arange(10.0, 100.0, 10.0)
    release = replayed(bits)(zd.cdf)(ROWS, at=at, epsilon=epsilon)
    return float(np.abs(release.value - (ROWS[:, None] <= at).mean(axis=0)).mean())


def _steps(epsilon: Any, bits: ReplayBits) -> float:
    steps = replayed(bits)(zd.cdf)(ROWS, bounds=(0, 100), epsilon=epsilon).value
    at = np.sort(ROWS)[::10]
    return float(np.abs(steps(at) - (ROWS[:, None] <= at).mean(axis=0)).mean())


def _heavy(epsilon: Any, bits: ReplayBits) -> float:
    cells = np.array(NAMES * 300, dtype=object)
    found = dict(replayed(bits)(zd.heavy_hitters)(cells, universe=LETTERS, epsilon=epsilon).value)
    return float(np.mean([abs(found[name] - 300) for name in NAMES]))


CELLS: dict[str, tuple[str, dict[str, Any], Callable[..., float], int]] = {
    "count": ("count", {}, _count, 100),
    "sum": ("sum", {"bounds": (0, 100)}, _verb(zd.sum, ROWS.sum()), 100),
    "variance": ("variance", {"bounds": (0, 100)}, _variance, 40),
    "std": ("std", {"bounds": (0, 100)}, _verb(zd.std, ROWS.std()), 200),
    "table": (
        "table",
        {"of": {"age": ["mean", "variance"]}, "by": {"city": 4}, "bounds": (0, 100)},
        _table,
        40,
    ),
    "quantiles": ("quantiles", {"q": [0.2, 0.4, 0.6, 0.8]}, _quantiles, 20),
    "cdf at values": ("cdf", {"at": 9}, _cdf, 40),
    "cdf as steps": ("cdf", {}, _steps, 8),
    "heavy_hitters": ("heavy_hitters", {"universe": LETTERS}, _heavy, 3),
}


@pytest.mark.parametrize("epsilon", ["1/2", "2"])
@pytest.mark.parametrize("cell", CELLS)
def test_errors_are_as_forecast(cell: str, epsilon: str) -> None:
    task, asked, measure, runs = CELLS[cell]
    bits = ReplayBits(f"{cell} {epsilon}")
    forecast = zd.advise(task, n=N, **asked, epsilon=epsilon).best.error
    measured = np.mean([measure(epsilon, bits) for _ in range(runs)])
    assert forecast / WITHIN < measured < forecast * WITHIN


@pytest.mark.parametrize("keys", [20, 2000])
def test_places_among_the_most_frequent_are_lost_as_forecast(keys: int) -> None:
    """k keys tied, all others tied behind them, at the gap that is hardest."""
    k, runs = 5, 60
    forecast = zd.advise("top_k", n=10**6, universe=keys, k=k, epsilon=1).best.error
    source = KeySource(zd.open(np.zeros(1), columns={"0": zd.number(0, keys - 1, integer=True)}))
    plan = TopKQuestion(source=source, k=k).plan(Facts.of(source), 1)
    bits, worst = ReplayBits("places"), 0.0
    for gap in (2, 4, 6, 8, 10, 13):
        counts = {key: 60 + gap * (key < k) for key in range(keys)}
        kept = sum(key < k for _ in range(runs) for key in plan.answer(counts, bits).names)
        worst = max(worst, gap * (1 - kept / (runs * k)))
    assert forecast / WITHIN < worst < forecast * WITHIN


@pytest.mark.parametrize(("options", "n", "epsilon"), [(4, 1000, 1), (16, 3000, 1), (4, 5000, 0.5)])
def test_votes_lose_what_is_forecast(options: int, n: int, epsilon: float) -> None:
    """Fair coins but for the first column, at the lead that is hardest; fresh rows in each run."""
    (advised,) = (
        each
        for each in zd.advise("vote", n=n, options=options, epsilon=epsilon)
        if each.name == "vote"
    )
    question = VoteQuestion(
        choose=lambda block: int(block.mean(axis=0).argmax()), options=tuple(range(options))
    )
    names = tuple(map(str, range(options)))
    plan = question.plan(Facts(rows=n, columns=names), epsilon)
    blocks = blocks_for(options, as_usable_epsilon(epsilon), n)
    assert plan.public[1].endswith(str(blocks))
    answer: Callable[[Any, ReplayBits], Any] = plan.answer
    rng, bits, worst, runs = np.random.default_rng(3), ReplayBits("coins"), 0.0, 80

    class Coins:  # all that a vote asks of rows
        may_miss = False
        columns = names

        def __init__(self, lead: float) -> None:
            self.chances = np.where(np.arange(options) == options - 1, 0.5 + lead, 0.5)

        def blocks(self) -> list[Any]:
            return [(rng.random((n, options)) < self.chances).astype(np.float64)]

    for times in (1.5, 2.5, 3.5):  # of the loss that is forecast: leads around the worst
        lead = times * advised.error
        wrong = sum(answer(Coins(lead), bits) != options - 1 for _ in range(runs))
        worst = max(worst, lead * wrong / runs)
    assert advised.error / WITHIN < worst < advised.error * WITHIN


def test_the_numbers_are_those_of_releases() -> None:
    table = ROWS.reshape(-1, 1)
    for verb, task in ((zd.sum, "sum"), (zd.variance, "variance"), (zd.std, "std")):
        released = verb(table, bounds=(0, 100), epsilon="1/3").error
        assert released == zd.advise(task, n=N, bounds=(0, 100), epsilon="1/3").best.error
    released = zd.quantiles(ROWS, q=[0.1, 0.5], bounds=(0, 100), epsilon="1/3").error
    assert released == zd.advise("quantiles", n=N, q=[0.1, 0.5], epsilon="1/3").best.error
    released = zd.cdf(ROWS, at=[10, 20], epsilon="1/3").error
    assert released == zd.advise("cdf", n=N, at=[10, 20], epsilon="1/3").best.error
    released = zd.heavy_hitters(np.array(NAMES, dtype=object), universe=LETTERS, epsilon=1).error
    advised = zd.advise("heavy_hitters", n=len(NAMES), universe=LETTERS, epsilon=1)
    assert released == advised.best.error
    items = np.arange(100) % 7
    released = zd.top_k(items, universe=50, k=3, epsilon=1).error
    assert released == zd.advise("top_k", n=100, universe=50, k=3, epsilon=1).best.error
    named = zd.advise("top_k", n=64, universe=LETTERS, k=3, epsilon=1)
    assert named.best.error == advised.best.error
