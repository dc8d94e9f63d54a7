"""The enumerator decides exactly: sums of exponentials, vertices, and a hair beyond equality."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial

import pytest
from flint import arb, ctx, fmpq, fmpq_mat
from hypothesis import given, settings
from hypothesis import strategies as st

from reference import probabilities
from zerodelta import audit
from zerodelta.audit.exact import (
    ExpRational,
    Law,
    Pmf,
    certainly_impure,
    certainly_pure,
    datasets,
    discrete_laplace_pmf,
    discrete_laplace_tail,
    exponential_mechanism_law,
    extreme_pairs,
    hockey_stick,
    max_log_ratio,
    neighbors,
    permute_and_flip_law,
    rounded_gaussian_pmf,
    rounded_gaussian_tail,
    rounded_laplace_pmf,
    rounded_laplace_tail,
    shifted,
    worst_ratio,
)
from zerodelta.errors import ParameterError

HAIR = Fraction(1, 10**40)


def response(yes: Fraction) -> tuple[dict[int, Fraction], dict[int, Fraction]]:
    return {1: yes, 0: 1 - yes}, {1: 1 - yes, 0: yes}


def test_equality_passes_and_a_hair_beyond_fails() -> None:
    p, q = response(Fraction(3, 4))
    assert certainly_pure(p, q, epsilon_exp=3)
    assert not certainly_impure(p, q, epsilon_exp=3)
    assert not certainly_pure(p, q, epsilon_exp=3 - HAIR)
    assert certainly_impure(p, q, epsilon_exp=3 - HAIR)


def test_a_rational_ratio_is_compared_with_e_to_the_epsilon() -> None:
    below_e = sum((Fraction(1, math.factorial(k)) for k in range(16)), Fraction(0))  # by 5e-14
    p, q = response(below_e / (1 + below_e))
    assert certainly_pure(p, q, 1)
    assert certainly_impure(p, q, 1 - Fraction(1, 10**11))
    same = {0: Fraction(1)}
    assert certainly_pure(same, same, 0)


def test_exact_exponential_equality_is_decided() -> None:
    e = ExpRational.exp(1)
    p, q = {0: e / (1 + e), 1: 1 / (1 + e)}, {0: 1 / (1 + e), 1: e / (1 + e)}
    assert certainly_pure(p, q, 1)
    assert certainly_impure(p, q, 1 - HAIR)


def test_both_directions_are_checked_whichever_law_comes_first() -> None:
    p = {0: Fraction(1, 2), 1: Fraction(1, 2)}
    q = {0: Fraction(1, 10), 1: Fraction(9, 10)}
    for a, b in ((p, q), (q, p)):
        assert certainly_pure(a, b, epsilon_exp=5)
        assert not certainly_pure(a, b, epsilon_exp=4)
        assert certainly_impure(a, b, epsilon_exp=4)


def test_an_outcome_possible_on_one_side_only_is_never_pure() -> None:
    p, q = {0: Fraction(1)}, {0: 1 - HAIR, 1: HAIR}
    assert certainly_impure(p, q, 10**6)
    assert certainly_impure(q, p, 10**6)
    assert float(max_log_ratio(p, q)) == math.inf


def test_balls_decide_only_what_is_certain() -> None:
    with ctx.workprec(200):
        third = arb(1) / 3
    p, q = {0: third, 1: 1 - third}, {0: Fraction(1, 3), 1: Fraction(2, 3)}
    assert not certainly_pure(p, q, 0)  # true, and not provable from a ball
    assert not certainly_impure(p, q, 0)
    assert certainly_pure(p, q, Fraction(1, 10**9))
    assert not certainly_pure({0: arb(0, 1)}, {0: arb(0, 1)}, 1)
    assert certainly_pure({0: arb(0)}, {0: Fraction(0)}, 0)


def test_max_log_ratio_encloses_the_loss() -> None:
    p, q = response(Fraction(3, 4))
    with ctx.workprec(256):
        assert max_log_ratio(p, q).overlaps(arb(3).log())
        assert max_log_ratio(p, q).rel_accuracy_bits() > 200


def test_worst_ratio_names_where_it_is() -> None:
    laws = {(n,): {0: Fraction(1, 2 + n), 1: 1 - Fraction(1, 2 + n)} for n in range(4)}
    worst = worst_ratio(laws, list(neighbors(laws)))
    assert worst.pair == ((0,), (3,))
    assert worst.outcome == 0
    assert float(worst.log_ratio) == pytest.approx(math.log(5 / 2))
    with pytest.raises(ParameterError, match=r"^pairs = "):
        worst_ratio(laws, neighbors([(0,)]))


def test_hockey_stick_is_exact() -> None:
    p, q = response(Fraction(3, 4))
    assert hockey_stick(p, q, epsilon_exp=1) == Fraction(1, 2)
    assert hockey_stick(p, q, epsilon_exp=2) == Fraction(1, 4)
    assert hockey_stick(p, q, epsilon_exp=3) == 0
    balls = {k: arb(v.numerator) / v.denominator for k, v in p.items()}
    quarter = hockey_stick(balls, q, epsilon_exp=2)
    assert isinstance(quarter, arb)
    assert quarter.contains(arb("0.25"))
    assert hockey_stick({0: Fraction(1)}, {1: Fraction(1)}, 5) == 1


def test_neighbors_are_all_replacements_of_one_row() -> None:
    tables = list(datasets("abc", 3))
    pairs = list(neighbors(tables))
    assert len(tables) == 27
    assert len(pairs) == 27 * 3 * 2 // 2
    assert (("a", "a", "a"), ("a", "b", "a")) in pairs


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(7, 3), Fraction(40)])
def test_the_laplace_law_agrees_with_rational_arithmetic(scale: Fraction) -> None:
    for reference, pmf, tail in (
        (probabilities.rounded_laplace(scale), rounded_laplace_pmf, rounded_laplace_tail),
        (probabilities.DiscreteLaplace(scale), discrete_laplace_pmf, discrete_laplace_tail),
    ):
        for k in range(-6, 7):
            assert float(pmf(k, scale=scale)) == pytest.approx(float(reference.pmf(k)), rel=1e-15)
            assert float(tail(k, scale=scale)) == pytest.approx(
                1 - float(reference.below(k)), rel=1e-14
            )


@pytest.mark.parametrize("variance", [Fraction(1, 2), Fraction(50)])
def test_the_gaussian_law_agrees_with_rational_arithmetic(variance: Fraction) -> None:
    reference = probabilities.rounded_gaussian(variance)
    for k in range(-6, 7):
        assert float(rounded_gaussian_pmf(k, variance=variance)) == pytest.approx(
            float(reference.pmf(k)), rel=1e-15
        )
        assert float(rounded_gaussian_tail(k, variance=variance)) == pytest.approx(
            1 - float(reference.below(k)), rel=1e-14
        )


@pytest.mark.parametrize(
    ("law", "reference"),
    [
        (exponential_mechanism_law, probabilities.exponential_mechanism),
        (permute_and_flip_law, probabilities.permute_and_flip),
    ],
)
def test_selection_laws_agree_with_rational_arithmetic(law, reference) -> None:  # type: ignore[no-untyped-def]
    scores = [3, 1, 4, 1, -5, 4]
    exact = law(scores, scale=Fraction(3, 2))
    assert sum(exact.values(), ExpRational.of(0)) == 1
    for i, value in enumerate(reference(scores, Fraction(3, 2))):
        assert float(exact[i]) == pytest.approx(float(value), rel=1e-14)


def test_a_truncated_law_loses_no_mass() -> None:
    laplace = (partial(rounded_laplace_pmf, scale=3), partial(rounded_laplace_tail, scale=3))
    discrete = (partial(discrete_laplace_pmf, scale=3), partial(discrete_laplace_tail, scale=3))
    for center in (-4, 0, 7):
        for law in (laplace, discrete):
            whole = shifted(*law, center=center, low=-2, high=3)
            assert sum(whole.values(), ExpRational.of(0)) == 1
        gaussian = (
            partial(rounded_gaussian_pmf, variance=3),
            partial(rounded_gaussian_tail, variance=3),
        )
        with ctx.workprec(512):
            total = sum(shifted(*gaussian, center=center, low=-2, high=3).values(), arb(0))
            assert total.overlaps(arb(1))
            assert total.rel_accuracy_bits() > 400


def test_exactly_one_form_of_epsilon_is_wanted() -> None:
    with pytest.raises(ParameterError, match=r"^epsilon, epsilon_exp = "):
        certainly_pure({}, {})
    with pytest.raises(ParameterError, match=r"^epsilon, epsilon_exp = "):
        certainly_pure({}, {}, 1, epsilon_exp=3)


def votes(scale: int) -> Callable[[tuple[int, ...]], Law]:
    return lambda rows: permute_and_flip_law([rows.count(0), rows.count(1)], scale=scale)


def test_an_audit_of_all_small_datasets_decides_without_tolerance() -> None:
    found = audit.exact(votes(2), [0, 1], n=3, epsilon=1)
    assert found.holds
    assert not found.violated
    assert found.epsilon_lower <= 1 <= found.epsilon_upper
    assert found.pairs == len(list(neighbors(list(datasets([0, 1], 3)))))
    hair_less = audit.exact(votes(2), [0, 1], n=3, epsilon=1 - HAIR)
    assert hair_less.holds is False
    assert "VIOLATED" in str(hair_less)


def test_an_audit_under_add_remove_compares_datasets_of_two_sizes() -> None:
    found = audit.exact(votes(1), [0, 1], n=2, epsilon=1, neighbors="add-remove")
    assert found.holds
    assert abs(len(found.pair[0]) - len(found.pair[1])) == 1


def test_an_audit_sees_an_event_that_no_sample_contains() -> None:
    rare = Fraction(1, 10**22)  # about e^-50
    found = audit.exact(lambda rows: {"all": 1 - rare * rows[0], "x": rare * rows[0]}, [0, 1], n=1)
    assert found.epsilon_lower == math.inf
    assert found.outcome == "x"
    assert found.holds is None


def test_an_audit_needs_a_domain() -> None:
    with pytest.raises(ParameterError, match="domain"):
        audit.exact(votes(2), [], n=2)


# -- sums of exponentials -------------------------------------------------------------------------


e = ExpRational.exp
SMALL = st.fractions(min_value=-3, max_value=3, max_denominator=6)
SUMS = st.lists(st.tuples(SMALL, SMALL), max_size=4)


def build(terms: list[tuple[Fraction, Fraction]]) -> ExpRational:
    return sum((c * e(r) for c, r in terms), ExpRational.of(0))


def as_float(terms: list[tuple[Fraction, Fraction]]) -> float:
    return math.fsum(float(c) * math.exp(r) for c, r in terms)


@settings(max_examples=50)
@given(SUMS, SUMS)
def test_arithmetic_agrees_with_floats(
    left: list[tuple[Fraction, Fraction]], right: list[tuple[Fraction, Fraction]]
) -> None:
    a, b = build(left), build(right)
    x, y = as_float(left), as_float(right)
    assert float(a + b) == pytest.approx(x + y, abs=1e-9)
    assert float(a - b) == pytest.approx(x - y, abs=1e-9)
    assert float(a * b) == pytest.approx(x * y, abs=1e-7)
    if abs(x - y) > 1e-9:
        assert (a < b) == (x < y)
        assert (a >= b) == (x >= y)


@settings(max_examples=50)
@given(SUMS, SUMS, SUMS)
def test_field_laws_hold_exactly(
    first: list[tuple[Fraction, Fraction]],
    second: list[tuple[Fraction, Fraction]],
    third: list[tuple[Fraction, Fraction]],
) -> None:
    a, b, c = build(first), build(second), build(third)
    assert (a + b) * c == a * c + b * c
    assert a - a == 0
    if c != 0:
        assert (a + b) / c == a / c + b / c
        assert a / c * c == a


def test_equality_is_decided_and_a_difference_of_e_to_minus_1000_is_seen() -> None:
    assert (e(1) - e(-1)) * (e(1) + e(-1)) == e(2) - e(-2)
    assert e(1) + e(-1000) > e(1)
    assert 1 / (e(1) + e(-1000)) < e(-1)
    assert -1 / e(1) == -e(-1)


def test_rationals_compare_with_exponentials() -> None:
    series = sum((Fraction(1, math.factorial(k)) for k in range(16)), Fraction(0))  # by 5e-14
    assert series < e(1) < series + Fraction(1, 10**13)
    assert e(0) == 1
    assert Fraction(1, 2) * e(0) == Fraction(1, 2)


def test_arithmetic_with_a_ball_is_a_ball() -> None:
    for value in (e(1) * arb(2), arb(2) * e(1), e(1) + arb(1), arb(1) - e(1), arb(1) / e(1)):
        assert isinstance(value, arb)
    assert float(arb(1) / e(1)) == pytest.approx(math.exp(-1))


def test_division_by_an_exact_zero_is_refused() -> None:
    with pytest.raises(ZeroDivisionError):
        e(1) / (e(2) - e(1) * e(1))


# -- extreme pairs --------------------------------------------------------------------------------


CASES = [
    (Fraction(1), Fraction(1, 10)),
    (Fraction(2), Fraction(1, 10)),
    (Fraction(3, 2), Fraction(0)),
    (Fraction(5, 4), Fraction(1, 2)),
    (Fraction(4), Fraction(1)),
]
EACH = pytest.mark.parametrize(("factor", "delta"), CASES)


def inequalities(
    size: int, factor: Fraction, delta: Fraction
) -> list[tuple[list[Fraction], Fraction]]:
    """Rows (a, b) of a·x <= b in P and P' without their last coordinates, which sum to 1."""
    full: list[tuple[list[Fraction], Fraction]] = []
    for i in range(2 * size):
        full.append(([Fraction(-(i == j)) for j in range(2 * size)], Fraction(0)))
    for subset in itertools.product((0, 1), repeat=size):
        if any(subset):
            ahead = [Fraction(s) for s in subset]
            behind = [-factor * s for s in subset]
            full.append((ahead + behind, delta))
            full.append((behind + ahead, delta))
    reduced = []
    for row, bound in full:
        p, q = row[:size], row[size:]
        short = [x - p[-1] for x in p[:-1]] + [x - q[-1] for x in q[:-1]]
        reduced.append((short, bound - p[-1] - q[-1]))
    return reduced


def brute_force(size: int, factor: Fraction, delta: Fraction) -> set[tuple[Pmf, Pmf]]:
    rows = inequalities(size, factor, delta)
    dimension = 2 * size - 2
    found: set[tuple[Pmf, Pmf]] = set()
    for basis in itertools.combinations(rows, dimension):
        matrix = fmpq_mat(
            dimension, dimension, [fmpq(x.numerator, x.denominator) for a, _ in basis for x in a]
        )
        if matrix.det() == 0:
            continue
        right = fmpq_mat(dimension, 1, [fmpq(b.numerator, b.denominator) for _, b in basis])
        x = [Fraction(int(v.p), int(v.q)) for v in matrix.solve(right).entries()]
        if all(sum((c * v for c, v in zip(a, x, strict=True)), Fraction(0)) <= b for a, b in rows):
            p, q = x[: size - 1], x[size - 1 :]
            found.add(((*p, Fraction(1 - sum(p))), (*q, Fraction(1 - sum(q)))))
    return found


@EACH
@pytest.mark.parametrize("size", [2, 3])
def test_all_vertices_are_found(size: int, factor: Fraction, delta: Fraction) -> None:
    pairs = extreme_pairs(size, factor, delta)
    assert len(set(pairs)) == len(pairs)
    assert set(pairs) == brute_force(size, factor, delta)


@EACH
@pytest.mark.parametrize("size", [2, 3, 4])
def test_every_pair_is_epsilon_delta_private_both_ways(
    size: int, factor: Fraction, delta: Fraction
) -> None:
    pairs = extreme_pairs(size, factor, delta)
    for p, q in pairs:
        assert sum(p) == sum(q) == 1
        assert min(p + q) >= 0
        laws = dict(enumerate(p)), dict(enumerate(q))
        stick = hockey_stick(*laws, epsilon_exp=factor)
        assert isinstance(stick, ExpRational)
        assert stick <= delta
        assert (q, p) in pairs
        if delta == 0:
            assert certainly_pure(*laws, epsilon_exp=factor)
    if delta > 0:
        assert any(
            certainly_impure(dict(enumerate(p)), dict(enumerate(q)), epsilon_exp=10**9)
            for p, q in pairs
        )


@EACH
def test_four_outcomes_contain_the_vertices_of_three(factor: Fraction, delta: Fraction) -> None:
    """A face of the larger polytope: an outcome of probability 0 under both laws."""
    padded = {((*p, Fraction(0)), (*q, Fraction(0))) for p, q in extreme_pairs(3, factor, delta)}
    assert padded <= set(extreme_pairs(4, factor, delta))


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("size", (0, 2, 0)),
        ("epsilon_exp", (2, "1/2", 0)),
        ("delta", (2, 2, "3/2")),
        ("delta", (2, 2, -1)),
    ],
)
def test_bad_parameters_are_named(name: str, arguments: tuple[int, object, object]) -> None:
    with pytest.raises(ParameterError, match=rf"^{name} = "):
        extreme_pairs(*arguments)  # type: ignore[arg-type]
