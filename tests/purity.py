"""Assert privacy on all neighbors from exact laws, without tolerance, and that mistakes are caught.

A law maps outcomes to probabilities (`zerodelta.audit.exact`). It is looked up or computed once for
each input, and both directions of each pair are compared.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from fractions import Fraction
from functools import cache
from typing import Any, TypeAlias

from zerodelta.audit.exact import certainly_impure, certainly_pure, max_log_ratio, neighbors

Laws: TypeAlias = Mapping[Any, Any] | Callable[[Any], Any]
"""The law of each input, as a mapping or a function."""
Pairs: TypeAlias = Iterable[tuple[Hashable, Hashable]]

HAIR = Fraction(1, 10**30)
"""A loss that is attained is certainly above ε less this."""


def assert_pure(
    laws: Laws,
    pairs: Pairs | None = None,
    *,
    epsilon: Fraction | int | str,
    tight: Fraction | int | str | bool | None = None,
    mistake: Laws | None = None,
) -> None:
    """Assert that the loss of every pair is certainly at most ε, and of some pair above `tight`.

    Pairs are those of tables of one size that differ in one row, where none are given. With
    `tight=True` ε itself is attained; a number may be any below ε. `mistake` holds laws of a
    wrong mechanism (half the noise) on the same inputs: some pair must certainly lose more than ε.
    """
    law, chosen = _computed_once(laws), _chosen(laws, pairs)
    for one, two in chosen:
        assert certainly_pure(law(one), law(two), epsilon), _sentence(law, one, two, epsilon)
    if tight is not None:
        least = Fraction(epsilon) - HAIR if tight is True else Fraction(tight)
        assert_impure(law, chosen, epsilon=least)
    if mistake is not None:
        assert_impure(mistake, chosen, epsilon=epsilon)


def assert_impure(laws: Laws, pairs: Pairs | None = None, *, epsilon: Fraction | int | str) -> None:
    """Assert that some pair certainly loses more than ε."""
    law, chosen = _computed_once(laws), _chosen(laws, pairs)
    caught = any(certainly_impure(law(one), law(two), epsilon) for one, two in chosen)
    assert caught, f"none of {len(chosen)} pairs loses more than {epsilon}"


def _computed_once(laws: Laws) -> Callable[[Any], Any]:
    return laws.__getitem__ if isinstance(laws, Mapping) else cache(laws)


def _chosen(laws: Laws, pairs: Pairs | None) -> list[tuple[Any, Any]]:
    if pairs is None:
        assert isinstance(laws, Mapping), "pass the pairs of neighbors"
        pairs = neighbors(laws)
    chosen = list(pairs)
    assert chosen, "no neighbors were compared"
    return chosen


def _sentence(law: Callable[[Any], Any], one: Any, two: Any, epsilon: Any) -> str:
    loss = float(max_log_ratio(law(one), law(two)).mid())
    return f"{one!r} and {two!r} lose {loss}, more than {epsilon}"
