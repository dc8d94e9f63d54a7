"""Choosing the best of several options: permute-and-flip, or the exponential mechanism (C10.1)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from zerodelta.data.cells import LARGEST, number
from zerodelta.errors import ParameterError
from zerodelta.exact.bits import BitSource, SystemBits
from zerodelta.exact.fixed_point import FixedPoint
from zerodelta.exact.rational import Rational, as_count, as_positive
from zerodelta.mechanisms.selection import ExponentialMechanism, PermuteAndFlip, Selection
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.parameters import as_usable_epsilon
from zerodelta.privacy.release import Release
from zerodelta.privacy.step import Status, Step
from zerodelta.spine.methods import Method, choose, ranked
from zerodelta.spine.public_inputs import as_bounds, as_source
from zerodelta.spine.transition import issue_for, opened, row_count

__all__ = ["SELECTIONS", "select", "select_methods", "worst_gap"]

SELECTIONS: dict[str, type[Selection]] = {
    "permute-and-flip": PermuteAndFlip,
    "exponential": ExponentialMechanism,
}
_STEPS = 1 << 20
_LIMIT, _TINY = Fraction(LARGEST), 1e-300
_WHOLE = (bool, int, np.bool_, *(np.dtype(code).type for code in np.typecodes["AllInteger"]))
_ONE_WAY = "between neighboring datasets all scores move in the same direction"
_WORD = "no score moves by more than the stated sensitivity between neighboring datasets"


def select(
    scores: Any,
    *,
    sensitivity: Rational | None = None,
    bounds: tuple[Rational, Rational] | None = None,
    epsilon: Rational,
    monotone: bool = False,
    method: str = "auto",
    bits: BitSource | None = None,
) -> Release:
    """Release the option with (nearly) the largest score: its name, or its position.

    **Releases**: one option. `scores` is a mapping {option: score}, a sequence of scores with a
    stated `sensitivity`, or, with `bounds`, a table of rows whose columns are the options: the
    score of an option is then the sum of its column. `method`: "permute-and-flip" or "exponential".
    **Neighbors**: replace-one (or whatever `sensitivity` was stated for).
    **Guarantee**: pure ε-DP (PF, EM). `asserted` for stated scores: no score moves by more than
    `sensitivity`, and with ``monotone=True`` between any two neighbors all move in the same
    direction. Proven for a table of rows: each value is rounded and clipped to `bounds` by itself.
    **Public**: the options, `sensitivity` or `bounds` and n. A score beyond the largest float, an
    infinity too, counts as that float, and what is no number as 0; in a table a NaN counts as the
    middle of the bounds. Nothing raises.
    **Error**: the expected gap between the best score and the released option's, for the scores for
    which it is largest (all others tied); usually much less.

    >>> select({"tea": 90, "coffee": 10, "milk": 3}, sensitivity=1, epsilon=1).value
    'tea'
    >>> votes = np.array([[0.0, 1.0], [0.2, 0.9]] * 500)
    >>> release = select(votes, bounds=(0, 1), epsilon=1)
    >>> release.value, release.certificate.status.value
    (1, 'proven')
    """
    bits = SystemBits() if bits is None else bits
    exact = as_usable_epsilon(epsilon)
    if (sensitivity is None) == (bounds is None):
        raise ParameterError(
            "sensitivity, bounds",
            (sensitivity, bounds),
            expected="exactly one public input",
            remedy="pass sensitivity= for scores, or bounds=(lower, upper) for a table of rows",
        )
    if bounds is not None:
        if monotone:
            raise ParameterError(
                "monotone",
                monotone,
                expected="False for rows: replacing one moves scores up and down",
                remedy="leave it out",
            )
        (lower, upper), source = as_bounds(bounds), as_source(scores)
        names: Sequence[Any] = _names(scores, source.columns)
        row_count(source)
        if len(names) < 2:
            raise ParameterError(
                "columns of rows",
                len(names),
                expected="a table with a column for each of at least two options",
                remedy="pass rows of all options, or sensitivity= for a list of scores",
            )
        lattice = FixedPoint.box(dimension=len(names), lower=lower, upper=upper, steps=_STEPS)
        moved, width, status = Fraction(2 * _STEPS), upper - lower, Status.PROVEN
        exact_scores: Any = opened(source).sum(list(range(len(names))), lattice)
    else:
        names = list(scores) if isinstance(scores, Mapping) else range(_length(scores))
        _refuse_rows(scores)
        listed = list(scores.values()) if isinstance(scores, Mapping) else list(scores)
        width = moved = as_positive(sensitivity or 0, "sensitivity")
        status = Status.ASSERTED
        exact_scores = [_exact(score) for score in listed]
    chosen = choose(
        select_methods(epsilon=exact, options=len(names), sensitivity=width, monotone=monotone),
        method,
    )
    mechanism = SELECTIONS[chosen.name].for_epsilon(
        epsilon=exact, sensitivity=moved, monotone=monotone
    )
    step = mechanism.step()
    certificate = issue_for(
        scores,
        claim=PureDP(exact),
        steps=(Step(theorem=step.theorem, numbers=step.numbers, status=status),),
        bits=bits,
        public=("the options", "how far one row can move a score"),
        assumed=() if status is Status.PROVEN else _words(monotone),
        bare_rows=bounds is not None,
    )
    winner = mechanism.select(exact_scores, bits)
    return Release(value=names[winner], certificate=certificate, error=chosen.error)


def select_methods(
    *, epsilon: Rational, options: int, sensitivity: Rational = 1, monotone: bool = False
) -> tuple[Method, ...]:
    """Return the ways to choose one of several options, best first.

    Errors are the largest expected gaps to the best score (`worst_gap`).

    >>> [method.name for method in select_methods(epsilon=1, options=10)]
    ['permute-and-flip', 'exponential']
    """
    exact, moved = as_usable_epsilon(epsilon), as_positive(sensitivity, "sensitivity")
    scale = moved * (1 if monotone else 2) / exact
    reasons = {
        "permute-and-flip": "its gap is stochastically the smaller at equal ε",
        "exponential": "never better; its bounded range pays only inside a composition",
    }
    return ranked(
        *(
            Method(
                name=name,
                error=worst_gap(options, scale, method=name),
                spends="ε on one choice",
                why=reasons[name],
            )
            for name in SELECTIONS
        )
    )


def worst_gap(options: int, scale: Rational, *, method: str = "permute-and-flip") -> float:
    """Return max over a of a·P(not the best): one option leads N-1 tied ones by a.

    With x = e^(-a/b), P(the best) = (1 - (1-x)^N)/(N x) for permute-and-flip and 1/(1 + (N-1)x)
    for the exponential mechanism; at most b ln N (theory C10.1).

    >>> worst_gap(2, 2) < worst_gap(100, 2) < 2 * math.log(100)
    True
    """
    count, b = as_count(options, "options", minimum=1), float(as_positive(scale, "scale"))
    if count == 1:
        return 0.0
    leads = np.linspace(0.0, 4.0 + 2.0 * math.log(count), 4000)[1:]  # in units of b
    x = np.exp(-leads)
    if method == "exponential":
        wrong = (count - 1) * x / (1 + (count - 1) * x)
    else:
        wrong = 1 + np.expm1(count * np.log1p(-x)) / (count * x)
    return b * float((leads * wrong).max())


def _names(table: Any, columns: tuple[str, ...]) -> Sequence[Any]:
    return range(len(columns)) if isinstance(table, (np.ndarray, list, tuple)) else columns


def _length(scores: Any) -> int:
    numpy = isinstance(scores, np.ndarray) and scores.ndim > 0
    if isinstance(scores, (str, bytes)) or not (numpy or isinstance(scores, Sequence)):
        raise ParameterError(
            "scores",
            type(scores),
            expected="a sequence of scores, or a mapping {option: score}",
            remedy="pass a list; for a table of rows pass bounds=(lower, upper)",
        )
    return len(scores)


def _refuse_rows(scores: Any) -> None:
    """Refuse a table where scores are asked for: by its shape, or the type of its first entry.

    Each of its rows would count as one score that is no number, and the answer would be random.
    """
    first = next(iter(scores.values() if isinstance(scores, Mapping) else scores), None)
    if issubclass(type(first), (list, tuple, dict, np.ndarray)):  # asks the score nothing
        raise ParameterError(
            "scores",
            f"{type(scores).__name__} of {type(first).__name__}",
            expected="one number for each option",
            remedy="add up the rows of each option first, or pass the table of rows with "
            "bounds=(lower, upper) instead of sensitivity=",
        )


def _words(monotone: bool) -> tuple[str, ...]:
    """Return what the caller's word is."""
    return (_WORD, _ONE_WAY) if monotone else (_WORD,)


def _exact(score: Any) -> Fraction:
    """Return a score exactly, clipped to the range of floats; 0 if it is no number.

    Integers, fractions and decimals are not rounded: a rounded score could move by more than the
    sensitivity. Types are compared by identity, so that no code of a score runs.
    """
    near = number(score)
    if near != near:
        return Fraction(0)
    exact = Fraction(near)
    if any(type(score) is kind for kind in _WHOLE):
        exact = Fraction(int(score))
    elif type(score) is Fraction or (type(score) is Decimal and _TINY < abs(near) < LARGEST):
        exact = Fraction(score)
    elif type(score) is np.longdouble and abs(near) < LARGEST:
        exact = Fraction(*score.as_integer_ratio())
    return max(-_LIMIT, min(exact, _LIMIT))
