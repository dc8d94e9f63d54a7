"""What noise on exact sums and exact selection cost (theory R, C10.1, C10.4).

Sensitivities and scales are in the same unit, usually quanta of the integer lattice; both are
exact, and so is the result.
"""

from __future__ import annotations

from fractions import Fraction

from zerodelta.errors import ParameterError
from zerodelta.exact.rational import Rational, as_positive

__all__ = ["gaussian_mu_squared", "k_norm_epsilon", "laplace_epsilon", "selection_epsilon"]


def laplace_epsilon(sensitivity: Rational, scale: Rational) -> Fraction:
    """Return Δ/b: rounded Laplace noise of scale b on integers that move by Δ in the l1 norm.

    >>> laplace_epsilon(2, 10)
    Fraction(1, 5)
    """
    return as_positive(sensitivity, "sensitivity") / as_positive(scale, "scale")


def k_norm_epsilon(sensitivity: Rational, scale: Rational) -> Fraction:
    """Return Δ/b: noise of density ∝ exp(-‖z‖/b), Δ in that same norm; the dimension is free.

    >>> k_norm_epsilon("1/2", 4)
    Fraction(1, 8)
    """
    return as_positive(sensitivity, "sensitivity") / as_positive(scale, "scale")


def gaussian_mu_squared(sensitivity_squared: Rational, variance: Rational) -> Fraction:
    """Return μ² = Δ²/σ²: rounded Gaussian noise on integers that move by Δ in the l2 norm.

    Squares, because Δ and σ themselves are often irrational.

    >>> gaussian_mu_squared(2, 50)
    Fraction(1, 25)
    """
    squared = as_positive(sensitivity_squared, "sensitivity_squared")
    return squared / as_positive(variance, "variance")


def selection_epsilon(sensitivity: Rational, scale: Rational, monotone: bool) -> Fraction:
    """Return 2Δ/b: Gumbel or exponential noise of scale b on scores that move by at most Δ each.

    Half of it if `monotone`: between any two neighbors all scores move in the same direction.

    >>> selection_epsilon(1, 4, False), selection_epsilon(1, 4, True)
    (Fraction(1, 2), Fraction(1, 4))
    """
    if not isinstance(monotone, bool):
        raise ParameterError(
            "monotone", monotone, expected="True or False", remedy="pass a bool, nothing truthy"
        )
    moved = as_positive(sensitivity, "sensitivity") * (1 if monotone else 2)
    return moved / as_positive(scale, "scale")
