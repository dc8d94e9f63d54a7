"""T0 both ways: a channel purifies if and only if brute force over extreme pairs says so."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import pytest
from mpmath import mp, mpf

import zerodelta as zd
from zerodelta.audit.exact import extreme_pairs
from zerodelta.errors import ParameterError

Matrix = list[list[Fraction]]


def random_channel(draw: random.Random, inputs: int, outputs: int, *, zeros: bool) -> Matrix:
    rows: Matrix = []
    while len(rows) < inputs:
        weights = [
            draw.randint(0 if zeros else 1, draw.choice([3, 20, 1000])) for _ in range(outputs)
        ]
        if sum(weights):
            rows.append([Fraction(weight, sum(weights)) for weight in weights])
    return rows


def worst_ratio(channel: Matrix, factor: Fraction, delta: Fraction) -> Fraction | None:
    """Return the largest ratio of two output laws over all extreme pairs; None if unbounded."""
    worst = Fraction(1)
    for p, q in extreme_pairs(len(channel), factor, delta):
        for column in zip(*channel, strict=True):
            above = sum(a * entry for a, entry in zip(p, column, strict=True))
            below = sum(b * entry for b, entry in zip(q, column, strict=True))
            if above > 0 and below == 0:
                return None
            if below > 0:
                worst = max(worst, Fraction(above) / below)
    return worst


def is_at_most_exp(ratio: Fraction | None, epsilon: Fraction) -> bool:
    """Compare with e^ε; for rational ε above 0 equality is impossible."""
    if ratio is None:
        return False
    with mp.workdps(60):
        return bool(
            mp.log(mpf(ratio.numerator) / ratio.denominator)
            < mpf(epsilon.numerator) / epsilon.denominator
        )


def rational_below_exp(epsilon: Fraction) -> Fraction:
    """Return a rational just below e^ε: pairs for it are pairs for ε."""
    with mp.workdps(40):
        return Fraction(
            int(mp.floor(mp.exp(mpf(epsilon.numerator) / epsilon.denominator) * 10**6)), 10**6
        )


@pytest.mark.parametrize("base", [0, "1/5", 1])
@pytest.mark.parametrize(("inputs", "tries"), [(2, 300), (3, 100)])
def test_every_mechanism_is_purified_iff_the_check_says_so(
    inputs: int, tries: int, base: Any
) -> None:
    draw = random.Random(f"{base} {inputs}")
    verdicts = {True: 0, False: 0}
    for tried in range(tries):
        zeros = base == 0 and tried % 2 == 0
        channel = random_channel(draw, inputs, draw.randint(2, 4 if base == 0 else 3), zeros=zeros)
        delta = draw.choice([Fraction(1, 10), Fraction(1, 1000 if base == 0 else 100)])
        more = Fraction(draw.randint(1, 300), draw.choice([100, 1000, 10**5]))
        epsilon = Fraction(base) + (more if base == 0 else min(more, Fraction(1)))
        found = zd.purification.is_purifier(channel, epsilon, zd.ApproxDP(base, delta=delta))
        factor = rational_below_exp(Fraction(base)) if base else Fraction(1)
        truth = is_at_most_exp(worst_ratio(channel, factor, delta), epsilon)
        assert found.purifies == bool(found) == truth
        verdicts[truth] += 1
    assert min(verdicts.values()) >= 20


def test_the_verdict_turns_exactly_at_the_loss_of_the_worst_pair() -> None:
    draw = random.Random("smallest")
    tried = 0
    for _ in range(150):
        channel = random_channel(draw, draw.randint(2, 3), 3, zeros=False)
        delta = draw.choice([Fraction(1, 2), Fraction(1, 10), Fraction(1, 10**6)])
        claim, worst = zd.ApproxDP(0, delta=delta), worst_ratio(channel, Fraction(1), delta)
        found = zd.purification.is_purifier(channel, 1, claim)
        assert worst is not None
        assert found.ratio == 1 + (worst - 1) / delta  # T0 (ii): the two-point pair is the worst
        if worst == 1:
            continue
        with mp.workdps(50):
            exact = mp.log(mpf(worst.numerator) / worst.denominator)
            assert exact <= mpf(found.smallest_epsilon) <= exact * (1 + mpf(10) ** -11)
            above = Fraction(int(mp.ceil(exact * (1 + mpf(10) ** -12) * 10**30)), 10**30)
            below = Fraction(int(mp.floor(exact * (1 - mpf(10) ** -12) * 10**30)), 10**30)
        assert zd.purification.is_purifier(channel, above, claim)
        assert zd.purification.is_purifier(channel, Fraction(found.smallest_epsilon), claim)
        assert not zd.purification.is_purifier(channel, below, claim)
        tried += 1
    assert tried > 100


def test_the_smallest_epsilon_is_never_below_the_loss_of_any_pair() -> None:
    draw = random.Random("sound")
    for _ in range(60):
        channel = random_channel(draw, 2, 3, zeros=False)
        base, delta = Fraction(draw.randint(1, 20), 10), Fraction(draw.randint(1, 30), 100)
        found = zd.purification.is_purifier(channel, 1, zd.ApproxDP(base, delta=delta))
        worst = worst_ratio(channel, rational_below_exp(base), delta)
        assert worst is not None
        assert is_at_most_exp(worst, Fraction(found.smallest_epsilon) + Fraction(1, 10**9))
        with mp.workdps(40):
            loss = mp.log(mpf(worst.numerator) / worst.denominator)
            if loss > mpf(base.numerator) / base.denominator:  # then T0 is exact
                assert abs(mpf(found.smallest_epsilon) - loss) <= loss * mpf(10) ** -11


def test_a_constant_channel_reveals_nothing() -> None:
    same = [["1/3", "2/3"]] * 4
    found = zd.purification.is_purifier(same, "1e-9", zd.ApproxDP(5, delta="0.9"))
    assert found.purifies
    assert found.ratio == 1
    assert found.smallest_epsilon == 0


def test_a_single_input_and_a_column_of_zeros_are_fine() -> None:
    assert zd.purification.is_purifier([["1/2", 0, "1/2"]], 1, zd.ApproxDP(1, delta="0.5"))
    found = zd.purification.is_purifier(
        [["0.9", 0, "0.1"], ["0.1", 0, "0.9"]], 1, zd.ApproxDP(1, delta="0.1")
    )
    assert found.ratio == 9


def test_the_identity_purifies_only_what_is_pure() -> None:
    identity = [[1, 0], [0, 1]]
    for claim in (
        zd.ApproxDP("1/2", -1e6),
        zd.GaussianDP("1/1000"),
        zd.purification.ZCDP("1/10000"),
    ):
        found = zd.purification.is_purifier(identity, 1, claim)
        assert not found
        assert found.ratio is None
        assert found.smallest_epsilon == math.inf
    found = zd.purification.is_purifier(identity, 1, zd.purification.PureDP("3/4"))
    assert found
    assert found.smallest_epsilon == 0.75
    assert not zd.purification.is_purifier(identity, "1/2", zd.purification.PureDP("3/4"))


def test_very_small_deltas_are_judged_by_their_logarithm() -> None:
    keep = [["0.99", "0.01"], ["0.01", "0.99"]]  # c = 99
    for log_delta in (-100.0, -1e4, -1e6):
        epsilon = zd.purification.is_purifier(keep, 1, zd.ApproxDP(0, log_delta)).smallest_epsilon
        assert epsilon == pytest.approx(98 * math.exp(log_delta), rel=1e-9) or epsilon < 2.0**-58


BAD: list[Any] = [
    [],
    [[]],
    [[1], [1, 0]],
    [["1/2", "1/3"]],
    [["3/2", "-1/2"]],
    [[0.1, 0.2, 0.7000000001]],
    [["x", 1]],
    [[None]],
    [[math.nan]],
    3,
    None,
]


@pytest.mark.parametrize("matrix", BAD, ids=range(len(BAD)))
def test_malformed_channels_are_refused(matrix: Sequence[Sequence[Any]]) -> None:
    with pytest.raises(ParameterError, match=r"channel_matrix"):
        zd.purification.is_purifier(matrix, 1, zd.purification.PureDP(1))


@pytest.mark.parametrize(
    ("name", "epsilon", "claim"),
    [
        *(("epsilon", bad, zd.purification.PureDP(1)) for bad in (0, -1, None, "x", math.nan)),
        *(("claim", 1, bad) for bad in (None, 1, "GaussianDP")),
    ],
)
def test_malformed_epsilons_and_claims_are_refused(name: str, epsilon: Any, claim: Any) -> None:
    with pytest.raises(ParameterError, match=name):
        zd.purification.is_purifier([["1/2", "1/2"], ["1/3", "2/3"]], epsilon, claim)
