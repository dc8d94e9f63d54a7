"""What noise on XᵀX, Xᵀy (and the smallest eigenvalue) costs (theory A9, C6, C10.5).

Integer rows with ‖x‖² <= A, |y| <= Y. In the norm ‖E₁‖_F²/A² + ‖E₂‖²/(A·Y²) + (e/A)² the joint
shift of (XᵀX, Xᵀy, λ_min) is at most √(16/3) between replace-one neighbors, √(9/2) without λ_min.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Annotated

from zerodelta.errors import GuaranteeError, require
from zerodelta.exact.rational import Rational, as_count, as_positive
from zerodelta.privacy.claims import GaussianDP
from zerodelta.privacy.domains import Bit, Cells, Positive, between
from zerodelta.privacy.neighbors import Neighbors
from zerodelta.privacy.parameters import as_flag
from zerodelta.privacy.theorems.theorem import Base, PureBase
from zerodelta.value import value

HALF_ROOT = Fraction(math.isqrt(1 << 127) + 1, 1 << 64)
"""1/√2, rounded up at the 64th binary place."""


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


def k_norm_statistics_epsilon(
    *, target_weight: Rational, scale: Rational, neighbors: Neighbors = Neighbors.REPLACE
) -> Fraction:
    """Return ε = (2 + κ)/(√2·b), 1/√2 rounded up: K-norm noise on (XᵀX, Xᵀy) (theory C10.5).

    In the norm ‖E₁‖_F²/A² + κ‖E₂‖²/(A·Y²), κ in [1, 2], replacing one row moves the pair by at
    most (2 + κ)/√2; the noise has density ∝ exp(-‖·‖/b). That is a vector z of independent density
    exp(-‖z‖₂/b) times A on the diagonal of XᵀX, A/√2 beside it, Y√(A/κ) on Xᵀy, or times more.

    >>> float(k_norm_statistics_epsilon(target_weight=1, scale=3)) - math.sqrt(0.5) < 1e-15
    True
    """
    if neighbors is not Neighbors.REPLACE:
        raise GuaranteeError("Theorem C10.5 holds for the replace-one relation only.")
    return (2 + _as_target_weight(target_weight)) * HALF_ROOT / as_positive(scale, "scale")


def k_norm_statistics_scale(*, target_weight: Rational, epsilon: Rational) -> Fraction:
    """Return the b with exactly this ε."""
    return (2 + _as_target_weight(target_weight)) * HALF_ROOT / as_positive(epsilon, "epsilon")


def _as_target_weight(weight: Rational) -> Fraction:
    exact = as_positive(weight, "target_weight")
    require(1 <= exact <= 2, "target_weight", weight, "a number from 1 to 2", "pass 1")
    return exact


@value
class GaussianSufficientStatistics(Base):
    """Gaussian noise on XᵀX, Xᵀy and perhaps the smallest eigenvalue."""

    label = "gaussian-sufficient-statistics"
    section = "C6"
    sentence = (
        "Gaussian noise of squared multiplier {multiplier_squared}, exactly rounded, on XᵀX and "
        "Xᵀy of integer rows of squared norm at most {row_bound_squared}: Gaussian DP."
    )

    row_bound_squared: Cells
    multiplier_squared: Positive
    eigenvalue: Bit

    def _claim(self, neighbors: Neighbors) -> GaussianDP:
        mu_squared = statistics_mu_squared(**self.values(), neighbors=neighbors)
        return GaussianDP(mu_squared=mu_squared, neighbors=neighbors)


@value
class KNormSufficientStatistics(PureBase):
    """K-norm noise on XᵀX and Xᵀy."""

    label = "k-norm-sufficient-statistics"
    section = "C10.5"
    sentence = (
        "K-norm noise of scale {scale}, exactly rounded, on XᵀX and Xᵀy of integer rows, in the "
        "norm that weighs Xᵀy {target_weight} times: pure DP."
    )
    replace_only = True
    inequality = staticmethod(k_norm_statistics_epsilon)

    target_weight: Annotated[Fraction, between(1, 2, ends="[]")]
    scale: Positive
