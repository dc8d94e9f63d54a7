"""How a label is proved in Coq, and numbers as Coq reads them."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from zerodelta.privacy.neighbors import Neighbors
from zerodelta.value import value

PUBLIC = "(D : Type) (neighbors : D -> D -> Prop)"
"""Any data, and any relation of neighbors."""


def coq_number(value: Fraction | int) -> str:
    """Return the number as Coq reads it.

    >>> coq_number(3), coq_number(Fraction(-1, 2))
    ('3', '(-1/2)')
    """
    exact = Fraction(value)
    if exact.denominator == 1:
        return str(exact.numerator) if exact >= 0 else f"({exact.numerator})"
    return f"({exact.numerator}/{exact.denominator})"


@value
class Formal:
    """How a label is proved in Coq.

    Parameters
    ----------
    theorems : tuple of str
        The theorems of proofs/ that it is an instance of; the first are those a file applies.
    paper : str
        What of it is taken on paper; empty if nothing is.
    write : callable
        The statement and its proof, of the theorem with its numbers, the relation, ε and a name.

    """

    theorems: tuple[str, ...]
    write: Callable[[Any, Neighbors, Fraction, str], str]
    paper: str = ""
