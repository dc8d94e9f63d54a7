"""zerodelta publishes results under pure differential privacy (δ = 0), exactly."""

from __future__ import annotations

from zerodelta.errors import (
    BudgetError,
    CertificateError,
    EntropyError,
    GuaranteeError,
    ParameterError,
    ZeroDeltaError,
)

__version__ = "0.1.0"

__all__ = [
    "BudgetError",
    "CertificateError",
    "EntropyError",
    "GuaranteeError",
    "ParameterError",
    "ZeroDeltaError",
    "__version__",
]
