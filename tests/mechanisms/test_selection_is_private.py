"""Selection: exact laws over all tiny score vectors, both mechanisms, monotone or not."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx

from zerodelta.audit.exact import (
    ExpRational,
    certainly_impure,
    certainly_pure,
    exponential_mechanism_law,
    max_log_ratio,
    permute_and_flip_law,
)
from zerodelta.exact.bits import ReplayBits
from zerodelta.mechanisms.selection import ExponentialMechanism, PermuteAndFlip, Selection

Scores = tuple[int, ...]
Exact = Callable[..., dict[int, ExpRational]]

EPSILON = Fraction(3, 4)
BOTH = pytest.mark.parametrize(
    ("mechanism", "law"),
    [(ExponentialMechanism, exponential_mechanism_law), (PermuteAndFlip, permute_and_flip_law)],
    ids=["exponential", "permute-and-flip"],
)


def neighboring_scores(*, monotone: bool) -> Iterator[tuple[Scores, Scores]]:
    """All pairs of three scores from 0..2 (the first 0: laws are shift invariant) 1 apart."""
    moves = (0, 1) if monotone else (-1, 0, 1)
    for rest in itertools.product(range(3), repeat=2):
        for move in itertools.product(moves, repeat=3):
            scores = (0, *rest)
            yield scores, tuple(s + m for s, m in zip(scores, move, strict=True))


@BOTH
@pytest.mark.parametrize("monotone", [False, True])
def test_selection_is_pure_on_all_tiny_scores(
    mechanism: type[Selection], law: Exact, monotone: bool
) -> None:
    scale = mechanism.for_epsilon(epsilon=EPSILON, sensitivity=1, monotone=monotone).scale
    for scores, moved in neighboring_scores(monotone=monotone):
        assert certainly_pure(law(scores, scale=scale), law(moved, scale=scale), EPSILON)


@BOTH
@pytest.mark.parametrize(
    ("monotone", "scores", "moved"),
    [(False, (0, 60, 60), (1, 59, 59)), (True, (0, 60, 60), (0, 61, 61))],
)
def test_selection_is_nearly_tight_and_too_little_noise_is_caught(
    mechanism: type[Selection], law: Exact, monotone: bool, scores: Scores, moved: Scores
) -> None:
    scale = mechanism.for_epsilon(epsilon=EPSILON, sensitivity=1, monotone=monotone).scale
    pair = law(scores, scale=scale), law(moved, scale=scale)
    assert certainly_pure(*pair, EPSILON)
    assert float(max_log_ratio(*pair)) > 0.9999 * float(EPSILON)
    for factor in (Fraction(1, 2), Fraction(99, 100)):
        mutant = law(scores, scale=scale * factor), law(moved, scale=scale * factor)
        assert certainly_impure(*mutant, EPSILON)


@BOTH
def test_the_monotone_rate_on_scores_that_move_both_ways_is_caught(
    mechanism: type[Selection], law: Exact
) -> None:
    scale = mechanism.for_epsilon(epsilon=EPSILON, sensitivity=1, monotone=True).scale
    pairs = neighboring_scores(monotone=False)
    laws = ((law(a, scale=scale), law(b, scale=scale)) for a, b in pairs)
    assert any(certainly_impure(*pair, EPSILON) for pair in laws)


def has_range(p: dict[int, ExpRational], q: dict[int, ExpRational], epsilon: Fraction) -> bool:
    """Whether max ln p/q - min ln p/q <= ε, exactly."""
    factor = ExpRational.exp(epsilon)
    return all(p[i] * q[j] <= factor * q[i] * p[j] for i in p for j in p)


@pytest.mark.parametrize("monotone", [False, True])
def test_the_exponential_mechanism_has_bounded_range(monotone: bool) -> None:
    mechanism = ExponentialMechanism.for_epsilon(epsilon=EPSILON, sensitivity=1, monotone=monotone)
    assert mechanism.claim.bounded_range
    law = exponential_mechanism_law
    for scores, moved in neighboring_scores(monotone=monotone):
        pair = law(scores, scale=mechanism.scale), law(moved, scale=mechanism.scale)
        assert has_range(*pair, EPSILON)


def test_permute_and_flip_at_the_bounded_range_rate_is_caught() -> None:
    """Scores (0, 0) against (1, -1): range and Kullback-Leibler loss exceed ε and ε²/8 (R2)."""
    mechanism = PermuteAndFlip.for_epsilon(epsilon=EPSILON, sensitivity=1)
    assert not mechanism.claim.bounded_range
    p = permute_and_flip_law((0, 0), scale=mechanism.scale)
    q = permute_and_flip_law((1, -1), scale=mechanism.scale)
    assert not has_range(p, q, EPSILON)
    with ctx.workprec(128):
        loss = sum(((p[i].ball() / q[i].ball()).log() * p[i].ball() for i in p), arb(0))
        epsilon = arb(3) / 4
        assert loss.overlaps((epsilon - (2 - (-epsilon).exp()).log()) / 2)
        assert loss > epsilon**2 / 8
        assert loss < epsilon * (epsilon / 2).tanh()


def test_permute_and_flip_is_never_worse_than_the_exponential_mechanism() -> None:
    for scores in itertools.product(range(4), repeat=3):
        gaps = [max(scores) - score for score in scores]
        losses = []
        for law in (permute_and_flip_law, exponential_mechanism_law):
            exact = law(scores, scale=2)
            losses.append(sum((exact[i] * gap for i, gap in enumerate(gaps)), ExpRational.of(0)))
        assert losses[0] <= losses[1]
        bound = ExponentialMechanism(sensitivity=Fraction(1), scale=Fraction(2)).error(len(scores))
        assert float(losses[1]) <= bound


def test_the_first_of_the_options_that_are_only_bounded_is_itself() -> None:
    """Whichever place of the rest wins is handed on, and not drawn a second time."""
    far = -(10**9)
    for mechanism in (
        ExponentialMechanism(sensitivity=Fraction(1), scale=Fraction(1)),
        PermuteAndFlip(sensitivity=Fraction(1), scale=Fraction(1)),
    ):
        for place in range(4):
            scores, members = np.array([far, 0]), np.array([1, 4])
            for i in range(10):
                found = mechanism.select_member(
                    scores,
                    members,
                    ReplayBits(f"{place} {i}"),
                    rest=[0 if at == place else far for at in range(4)].__getitem__,
                )
                assert found == (1, place)
