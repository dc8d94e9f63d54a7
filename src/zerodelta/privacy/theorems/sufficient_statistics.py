"""What noise on XᵀX, Xᵀy (and the smallest eigenvalue) costs (theory A9, C6).

Integer rows with ‖x‖² <= A, |y| <= Y. In the norm ‖E₁‖_F²/A² + ‖E₂‖²/(A·Y²) + (e/A)² the joint
shift of (XᵀX, Xᵀy, λ_min) is at most √(16/3) between replace-one neighbours, √(9/2) without λ_min.
"""

from __future__ import annotations

from fractions import Fraction

from zerodelta.exact.rational import Rational, as_count, as_positive
from zerodelta.privacy.neighbors import Neighbors
from zerodelta.privacy.parameters import as_flag

__all__ = ["joint_sensitivity_squared", "statistics_mu_squared"]


def joint_sensitivity_squared(
    *, row_bound_squared: int, eigenvalue: bool, neighbors: Neighbors
) -> Fraction:
    """Return c₀: 9/2 (replace) or 2 (add-remove); with the eigenvalue 16/3 or 3, plus 2u + u².

    The eigenvalue is queried as an integer: rounding adds 1 to its sensitivity A, u = 1/A.

    >>> joint_sensitivity_squared(row_bound_squared=100, eigenvalue=False,
    ...                           neighbors=Neighbors.REPLACE)
    Fraction(9, 2)
    """
    squared = as_count(row_bound_squared, "row_bound_squared", minimum=1)
    replace = neighbors is Neighbors.REPLACE
    if not as_flag(eigenvalue, "eigenvalue"):
        return Fraction(9, 2) if replace else Fraction(2)
    rounding = Fraction(1, squared)
    return (Fraction(16, 3) if replace else Fraction(3)) + 2 * rounding + rounding**2


def statistics_mu_squared(
    *,
    row_bound_squared: int,
    multiplier_squared: Rational,
    eigenvalue: bool,
    neighbors: Neighbors,
) -> Fraction:
    """Return μ² = c₀/m²: Gaussian noise of m² in the weighted norm above.

    That is variance (mA)² on the diagonal of XᵀX, (mA)²/2 off it, m²A·Y² on Xᵀy, (mA)² on λ_min.
    """
    shift = joint_sensitivity_squared(
        row_bound_squared=row_bound_squared, eigenvalue=eigenvalue, neighbors=neighbors
    )
    return shift / as_positive(multiplier_squared, "multiplier_squared")
