"""Marginal tables: exact laws on all small neighbors, forecasts, odd values, public inputs."""

from __future__ import annotations

import importlib
import itertools
import math
from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest

import zerodelta as zd
from purity import assert_pure
from tasks.noise_laws import laplace, law, product
from tasks.spying import first, recorded
from zerodelta.audit.exact import (
    certainly_impure,
    certainly_pure,
    datasets,
    neighbors,
    permute_and_flip_law,
)
from zerodelta.exact.bits import ReplayBits, SystemBits
from zerodelta.exact.noise import rounded_count_noise
from zerodelta.marginals import methods as table_methods
from zerodelta.marginals.bases import column_basis, orbits
from zerodelta.marginals.domain import CodedRows, as_domain, as_workload, code_rows, row_columns
from zerodelta.marginals.methods import TableRounds
from zerodelta.marginals.strategies import (
    Strategy,
    _best_groups,
    _root_cost,
    _unit_variance,
    box_strategy,
    table_strategy,
    total_variance,
)
from zerodelta.mechanisms.partition_noise import PartitionNoise
from zerodelta.mechanisms.sum_noise import CountNoise, KNorm
from zerodelta.tasks.marginals import answer_queries, queries_methods

EPSILON = Fraction(3, 4)
OUTSIDE = 99
MECHANISMS = (KNorm, PartitionNoise, CountNoise)


def every_row(*sizes: int) -> list[tuple[int, ...]]:
    """All rows, with an out-of-domain value in each place too."""
    return list(itertools.product(*([*range(size), OUTSIDE] for size in sizes)))


def coded(rows: Any, domain: Any) -> CodedRows:
    return code_rows(row_columns(rows, domain).read(), domain)


def as_rows(table: Any) -> Any:
    return np.array([list(row) for row in table])


def strategies(*sizes: int, workload: Any, rows: int = 100) -> dict[str, Strategy]:
    domain = as_domain(dict(enumerate(sizes)))
    wanted = as_workload(workload, domain)
    found = {
        "k-norm": box_strategy(domain, wanted, EPSILON, rows),
        "laplace": table_strategy(domain, wanted, EPSILON, joint=False),
        "counts": table_strategy(domain, wanted, EPSILON, joint=True),
    }
    return {name: strategy for name, strategy in found.items() if strategy is not None}


def handed(
    monkeypatch: pytest.MonkeyPatch, table: Any, strategy: Strategy
) -> list[tuple[Any, tuple[int, ...]]]:
    """Each mechanism that is used, and the integers that it gets."""
    found: list[tuple[Any, tuple[int, ...]]] = []
    with monkeypatch.context() as changed:
        calls = [recorded(changed, mechanism, "apply", first) for mechanism in MECHANISMS]
        strategy.measure(coded(as_rows(table), strategy.domain), SystemBits())
        for call in calls:
            found += [(noise, tuple(int(v) for v in sums)) for noise, sums, *_ in call]
    return found


def norm(noise: Any, moved: list[int]) -> Fraction:
    """The length of a move in the norm of the noise; ε is at most length/scale (theory R)."""
    if isinstance(noise, KNorm):
        return Fraction(max(map(abs, moved)))
    if isinstance(noise, PartitionNoise):
        return Fraction(sum(map(abs, moved)))
    return Fraction(max(sum(m for m in moved if m > 0), -sum(m for m in moved if m < 0)))


@pytest.mark.parametrize(
    ("sizes", "workload"),
    [
        ((2,), 1),
        ((2, 2), 2),
        ((3, 2), 2),
        ((3, 3), 2),
        ((4, 2), 2),
        ((2, 2, 2), 2),
        ((2, 2, 2), 3),
        ((5, 2), [(0,), (1,)]),
        ((3, 2, 2), [(0, 1), (2,), (1, 2), (1,)]),
    ],
)
def test_no_move_of_a_row_costs_more_than_epsilon_and_some_cost_all(
    monkeypatch: pytest.MonkeyPatch, sizes: tuple[int, ...], workload: Any
) -> None:
    """Every pair of rows, with values outside: noise is added to sums, so one row is enough."""
    for name, strategy in strategies(*sizes, workload=workload).items():
        found = {row: handed(monkeypatch, [row], strategy) for row in every_row(*sizes)}
        worst = Fraction(0)
        for a, b in itertools.product(found.values(), repeat=2):
            spent = Fraction(0)
            for (noise, x), (_, y) in zip(a, b, strict=True):
                spent += norm(noise, [i - j for i, j in zip(x, y, strict=True)]) / noise.scale
            assert spent <= EPSILON
            worst = max(worst, spent)
        if name == "k-norm" and any(size & (size - 1) for size in sizes):
            assert worst > EPSILON * Fraction(1, 2)  # different widths, stretched to integers
        else:
            assert worst == EPSILON


@pytest.mark.parametrize(
    ("sizes", "workload", "name"),
    [
        ((2,), 1, "k-norm"),
        ((2,), 1, "laplace"),
        ((2,), 1, "counts"),
        ((3,), 1, "k-norm"),
        ((2, 2), 1, "k-norm"),
        ((2, 2), 1, "counts"),
    ],
)
def test_tables_are_pure_on_every_pair_of_neighbors(
    monkeypatch: pytest.MonkeyPatch, sizes: tuple[int, ...], workload: Any, name: str
) -> None:
    """Two rows, with values outside; mechanisms are independent, so their laws are multiplied."""
    strategy = strategies(*sizes, workload=workload)[name]
    found = {
        table: tuple(handed(monkeypatch, table, strategy))
        for table in datasets(every_row(*sizes), 2)
    }
    moved = ((found[a], found[b]) for a, b in neighbors(found) if found[a] != found[b])
    pairs = dict.fromkeys(moved)  # in an order that does not change from run to run

    def laws(side: Any, factor: Fraction | int = 1) -> Any:
        return product([law(noise, sums, factor, **around(noise)) for noise, sums in side])

    extreme = sorted(pairs, key=lambda pair: -_moved(*pair))
    chosen = extreme if len(laws(extreme[0][0])) < 400 else extreme[:3]
    half, tight = partial(laws, factor=Fraction(1, 2)), None if sizes == (3,) else True
    assert_pure(laws, chosen, epsilon=EPSILON, tight=tight, mistake=half)


def around(noise: Any) -> dict[str, Any]:
    """Which outcomes are told apart: steps of half a row's move, to twice of it on each side."""
    step = int(noise.sensitivity) if isinstance(noise, KNorm) else 1
    window = range(-2 * step, 3 * step, max(1, step // 2))
    return {"low": -2 * step, "high": 2 * step, "window": window}


def _moved(p: Any, q: Any) -> float:
    sides = zip(p, q, strict=True)
    return float(
        sum(
            norm(noise, [i - j for i, j in zip(x, y, strict=True)]) / noise.scale
            for (noise, x), (_, y) in sides
        )
    )


class Branch(Exception):  # noqa: N818  (not an error: the code asks for its next random answer)
    def __init__(self, kind: str, given: Any) -> None:
        self.kind, self.given = kind, given


def ask(rounds: TableRounds, tables: Any, rows: int, script: tuple[Any, ...]) -> Branch | None:
    """Run the real rounds along given answers, up to the next question."""
    answers: Iterator[Any] = iter(script)

    def choose(scores: Any) -> int:
        for answer in answers:
            return int(answer)
        raise Branch("choose", [int(score) for score in scores])

    def measure(counts: Any) -> Any:
        for answer in answers:
            return np.array(answer)
        raise Branch("measure", tuple(int(count) for count in counts))

    try:
        rounds.rounds_on(tables, rows, choose=choose, measure=measure)
    except Branch as branch:
        return branch
    return None


@pytest.mark.parametrize("mutant", [None, "choice", "cells"])
def test_rounds_of_choosing_and_measuring_are_pure_along_every_path(mutant: str | None) -> None:
    """Two rounds, three tables: both questions of both rounds, after every kind of first answer.

    Three rows, two of them 0, 0, 0: then one row moves a score up and another one down.
    """
    domain = as_domain({0: 2, 1: 2, 2: 2})
    workload = as_workload(1, domain)
    rounds = TableRounds(domain, workload, EPSILON, 2)
    share = EPSILON / 4
    chosen_scale, cell_scale = rounds.select.scale, rounds.noise.scale
    chosen_scale = chosen_scale / 2 if mutant == "choice" else chosen_scale
    cell_scale = cell_scale / 2 if mutant == "cells" else cell_scale
    rows = [row for row in every_row(2, 2, 2) if row.count(OUTSIDE) < 2]
    data = {}
    for row in rows:
        found = coded(as_rows([(0, 0, 0), (0, 0, 0), row]), domain)
        data[row] = {table: found.table(table) for table in workload.tables}
    prefixes: list[tuple[Any, ...]] = [(), (0,)]
    for answer in itertools.product((-4, 0, 1, 5), repeat=2):
        prefixes += [(0, answer), (0, answer, 1)]
    leaks = False
    for prefix in prefixes:
        questions = {row: ask(rounds, tables, 3, prefix) for row, tables in data.items()}
        laws: dict[Any, Any] = {}
        for row, question in questions.items():
            assert question is not None
            if question.kind == "choose":
                laws[row] = permute_and_flip_law(question.given, scale=chosen_scale)
            else:
                each = [laplace(count, cell_scale, low=1, high=2) for count in question.given]
                laws[row] = product(each)
        for a, b in itertools.combinations(rows, 2):
            if mutant is None:
                assert certainly_pure(laws[a], laws[b], share)
            else:
                leaks = leaks or certainly_impure(laws[a], laws[b], share)
    assert leaks is (mutant is not None)


@pytest.mark.parametrize("sizes", [(2, 2, 2, 2), (3, 2, 4), (5, 3), (6, 2, 2)])
def test_without_noise_the_tables_are_the_true_ones(
    monkeypatch: pytest.MonkeyPatch, sizes: tuple[int, ...]
) -> None:
    """Coefficients, scaling and least squares are exact, and a row outside is spread evenly."""
    draw = np.random.default_rng(7)
    rows = np.stack([draw.integers(0, size, 400) for size in sizes], axis=1)
    for strategy in strategies(*sizes, workload=2).values():
        with monkeypatch.context() as changed:
            for mechanism in MECHANISMS:
                recorded(changed, mechanism, "apply", first)
            estimate = strategy.measure(coded(rows, strategy.domain), SystemBits())
            outside = strategy.measure(coded(rows * 0 + OUTSIDE, strategy.domain), SystemBits())
        for a, b in itertools.combinations(range(len(sizes)), 2):
            truth = np.zeros((sizes[a], sizes[b]))
            np.add.at(truth, (rows[:, a], rows[:, b]), 1 / 400)
            assert estimate.table((a, b)) == pytest.approx(truth)
            flat = np.full_like(truth, 1 / truth.size)
            assert outside.table((a, b)) == pytest.approx(flat)


@pytest.mark.parametrize("columns", [3, 6, 9])
def test_no_other_grouping_of_orders_has_less_variance(columns: int) -> None:
    """All of the 2^(columns-1) ways to put neighboring orders together, and the one taken."""
    domain = as_domain(dict.fromkeys(range(columns), 2))
    closure = orbits(domain, as_workload(columns, domain))
    costs = []
    for cuts in itertools.product((False, True), repeat=columns - 1):
        place = list(itertools.accumulate(cuts, initial=0))
        groups = [[k for k, p in zip(closure, place, strict=True) if p == q] for q in set(place)]
        costs.append(sum(_root_cost(domain, group) for group in groups))
    taken = sum(_root_cost(domain, group) for group in _best_groups(domain, closure))
    assert taken == pytest.approx(min(costs))


def test_tables_within_others_are_not_maximal() -> None:
    domain = as_domain(dict.fromkeys(range(5), 2))
    tables = [(0,), (3, 1), (1, 2, 3), (0, 4), (4,), (2,), (1, 2)]
    assert as_workload(tables, domain).maximal == ((1, 2, 3), (0, 4))
    assert as_workload([(0,), (3, 1)], domain).maximal == ((0,), (1, 3))


def test_a_large_table_is_answered() -> None:
    rows = binary("chain", 13, 3000)
    for method in ("k-norm", "laplace"):
        release = answer_queries(
            rows, domain=dict.fromkeys(range(13), 2), workload=13, epsilon=20, method=method
        )
        assert next(iter(release.value.values())).sum() == pytest.approx(1)


def test_bases_are_orthogonal() -> None:
    for size in range(2, 20):
        basis = column_basis(size).astype(object)
        gram = basis @ basis.T
        assert (gram == np.diag(np.diag(gram))).all()
        assert (basis[0] == 1).all()


def binary(kind: str, columns: int, n: int) -> Any:
    """Made data of three kinds: independent, a mixture of clusters, a chain."""
    draw = np.random.default_rng(len(kind))
    if kind == "independent":
        return (draw.random((n, columns)) < draw.beta(0.7, 2, columns)).astype(int)
    if kind == "clusters":
        centers, which = draw.beta(0.5, 0.5, (6, columns)), draw.integers(0, 6, n)
        return (draw.random((n, columns)) < centers[which]).astype(int)
    rows = np.zeros((n, columns), dtype=int)
    rows[:, 0] = draw.random(n) < 0.3
    for i in range(1, columns):
        chances = np.where(rows[:, i - 1] == 1, *draw.random(2))
        rows[:, i] = draw.random(n) < chances
    return rows


def error_of(value: Any, rows: Any) -> float:
    errors = []
    for columns, table in value.items():
        truth = np.zeros(table.shape)
        np.add.at(truth, tuple(rows[:, i] for i in columns), 1 / len(rows))
        errors.append(np.abs(table - truth).mean())
    return float(np.mean(errors))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["independent", "clusters", "chain"])
@pytest.mark.parametrize(("columns", "order", "n"), [(8, 2, 20_000), (6, 3, 3_000)])
def test_forecasts_are_what_is_measured_and_the_pick_is_the_best(
    kind: str, columns: int, order: int, n: int
) -> None:
    rows, domain = binary(kind, columns, n), dict.fromkeys(range(columns), 2)
    methods = queries_methods(epsilon=1, n=n, domain=domain, workload=order)
    measured, forecast = {}, {}
    for method in methods:
        repeats = 3 if method.name == "mwem" else 8
        measured[method.name] = float(
            np.mean(
                [
                    error_of(
                        answer_queries(
                            rows, domain=domain, workload=order, epsilon=1, method=method.name
                        ).value,
                        rows,
                    )
                    for _ in range(repeats)
                ]
            )
        )
        forecast[method.name] = method.error
    for name in ("k-norm", "counts", "laplace"):
        assert 1 / 1.5 < measured[name] / forecast[name] < 1.5
    assert methods[0].name == min(measured, key=lambda name: measured[name])


@pytest.mark.parametrize("sizes", [(2,) * 6, (3,) * 5, (4, 3, 2, 2)])
def test_variances_are_exact(sizes: tuple[int, ...]) -> None:
    """Before fits: the mean square of all cells against the sum of variances, 200 repetitions."""
    domain = as_domain(dict(enumerate(sizes)))
    wanted = as_workload(2, domain)
    rows = coded(np.zeros((1000, len(sizes)), dtype=int), domain)
    truth = {table: rows.table(table) / 1000 for table in wanted.tables}
    for strategy in strategies(*sizes, workload=2, rows=1000).values():
        bits, squares = ReplayBits("variances"), []
        stated = total_variance(domain, wanted, strategy.variances(1000))
        with pytest.MonkeyPatch.context() as changed:
            changed.setattr(np, "clip", lambda value, *_: value)  # only the noise, unclipped
            for _ in range(200):
                found = strategy.measure(rows, bits)
                squares.append(sum(((found.table(t) - truth[t]) ** 2).sum() for t in truth))
        assert np.mean(squares) == pytest.approx(stated, rel=0.2)


@pytest.mark.parametrize("dimension", [2, 4, 9])
def test_the_variance_of_noise_fitted_to_counts(dimension: int) -> None:
    bits = ReplayBits("joint")
    noise = np.array(
        [rounded_count_noise(dimension=dimension, scale=300, bits=bits) for _ in range(4000)]
    )
    contrast = (noise[:, 0] - noise[:, 1]) / math.sqrt(2)
    stated = _unit_variance(CountNoise(dimension=dimension, scale=Fraction(300)))
    assert np.mean(contrast.astype(float) ** 2) == pytest.approx(stated, rel=0.15)


def test_fitting_lowers_the_error() -> None:
    rows, domain = binary("independent", 8, 1000), as_domain(dict.fromkeys(range(8), 2))
    wanted = as_workload(3, domain)
    strategy = table_strategy(domain, wanted, Fraction(1), joint=False)
    assert strategy is not None
    raw, fitted = [], []
    for _ in range(3):
        found = strategy.measure(coded(rows, domain), SystemBits())
        raw.append(error_of({t: found.table(t) for t in wanted.tables}, rows))
        value = answer_queries(
            rows, domain=domain, workload=wanted, epsilon=1, method="laplace"
        ).value
        fitted.append(error_of(value, rows))
    assert np.mean(fitted) < 0.7 * np.mean(raw)


def test_tables_of_one_fit_agree_with_each_other() -> None:
    rows = binary("chain", 5, 500)
    value = answer_queries(rows, domain=dict.fromkeys(range(5), 2), epsilon=1).value
    assert value[0, 1].sum(axis=1) == pytest.approx(value[0, 4].sum(axis=1))
    assert value[1, 3].sum(axis=0) == pytest.approx(value[3, 4].sum(axis=1))


def test_large_epsilon_gives_the_truth_also_where_a_fit_is_slow() -> None:
    rows = np.zeros((1000, 6), dtype=int)  # one cell: the fit would have to go to infinity
    for name in ("k-norm", "laplace", "counts"):
        release = answer_queries(rows, domain=dict.fromkeys(range(6), 2), epsilon=1000, method=name)
        assert error_of(release.value, rows) < 1e-3


@pytest.mark.parametrize("release", [answer_queries, zd.synthesize])
@pytest.mark.parametrize("method", ["k-norm", "laplace", "counts", "mwem", "auto"])
def test_extreme_epsilons_are_refused_and_those_before_work(release: Any, method: str) -> None:
    given: dict[str, Any] = {"domain": {0: 2, 1: 3}, "method": method}
    rows = np.zeros((20, 2), dtype=int)
    for epsilon in ("1e-300", 1e-10, 1.1e6, 1e300):
        with pytest.raises(zd.errors.ParameterError, match="between 1e-9 and 1e6"):
            release(rows, epsilon=epsilon, **given)
    for epsilon in ("1e-9", "1e6"):
        assert release(rows, epsilon=epsilon, **given).certificate


def test_large_domains_are_answered_without_a_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_methods, "fit", None)
    rows = binary("chain", 30, 5000)
    release = answer_queries(rows, domain=dict.fromkeys(range(30), 2), epsilon=5)
    assert len(release.value) == math.comb(30, 2)
    assert error_of(release.value, rows) < 1.5 * float(release.error)
    with pytest.raises(zd.errors.ParameterError, match="every round"):
        answer_queries(rows, domain=dict.fromkeys(range(30), 2), epsilon=5, method="mwem")


def test_axes_follow_the_order_in_which_columns_are_named() -> None:
    rows = np.array([[0, 2]] * 4000)
    value = answer_queries(
        rows, domain={0: 2, 1: 3}, workload=[(1, 0), (1,)], epsilon=10, method="counts"
    ).value
    assert value[1, 0].shape == (3, 2)
    assert value[1, 0][2, 0] > 0.95
    assert value[1,][2] > 0.95


def test_out_of_domain_values_count_as_the_unknown_category_where_there_is_one() -> None:
    rows = np.array([["x", "a"], [None, "a"], [3.5, "b"], ["y", 7]] * 2500, dtype=object)
    domain = {0: ["x", "y", "other"], 1: ["a", "b"]}
    value = answer_queries(rows, domain=domain, workload=1, unknown="other", epsilon=20).value
    assert value[0,] == pytest.approx([0.25, 0.25, 0.5], abs=0.02)
    assert value[1,] == pytest.approx([0.5 + 0.125, 0.25 + 0.125], abs=0.02)  # evenly
    with pytest.raises(zd.errors.ParameterError, match=r"^unknown = "):
        answer_queries(rows, domain=domain, unknown="nobody", epsilon=1)


def counted(rows: Any, domain: Any) -> Any:
    known = as_domain(domain)
    return coded(rows, known).table(tuple(range(len(known.columns)))).tolist()


def test_frames_with_numbered_columns_and_series() -> None:
    pandas = importlib.import_module("pandas")
    frame = pandas.DataFrame(np.array([[0, 1], [1, 1]]))
    assert counted(frame, {1: 2, 0: 2}) == [[0, 0], [1, 1]]
    assert counted(frame[0], {0: 2}) == [1, 1]
    with pytest.raises(zd.errors.ParameterError, match="columns of the rows"):
        counted(frame, {"0": 2})


def test_a_table_of_many_columns_has_room_for_its_cells_only() -> None:
    """3^20 counters, with one more category for values outside, would be 28 GB."""
    rows = np.zeros((3, 20), dtype=int)
    rows[1], rows[2, 7] = 1, OUTSIDE
    found = coded(rows, as_domain(dict.fromkeys(range(20), 2))).table(tuple(range(20)))
    assert found.shape == (2,) * 20
    assert found.sum() == found.flat[0] + found.flat[-1] == 2


def test_workloads_are_integers_of_any_kind_and_by_default_at_most_the_columns() -> None:
    rows = np.zeros((50, 2), dtype=int)
    for workload in (2, np.int64(2), None):
        found = answer_queries(rows, domain={0: 2, 1: 2}, workload=workload, epsilon=1)
        assert list(found.value) == [(0, 1)]
    assert list(answer_queries(rows, domain={1: 2}, epsilon=1).value) == [(1,)]


def test_categories_that_are_compared_as_texts() -> None:
    """A data set says how its cells are read; categories that numbers would not tell apart, too."""
    rows = [["01", "f"]] * 300 + [["1", "m"]] * 100
    kinds = {"0": zd.category(["01", "1", "a"], exact=True), "1": zd.category(["f", "m"])}
    people = zd.open(rows, columns=kinds)
    (found,) = zd.answer_queries(people, ["0", "1"], epsilon=50).value.values()
    assert found == pytest.approx(np.array([[0.75, 0], [0, 0.25], [0, 0]]), abs=0.01)
    made = zd.synthesize(people, ["0", "1"], epsilon=50).value
    assert np.count_nonzero(made["0"] == "01") == pytest.approx(300, abs=10)
    with pytest.raises(zd.errors.ParameterError, match="different options"):
        zd.answer_queries(rows, domain={0: ["01", "1"], 1: ["f", "m"]}, epsilon=1)
