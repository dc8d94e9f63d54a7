"""zerodelta publishes results under pure differential privacy (δ = 0), exactly.

A release is a question, planned from public numbers, paid for, answered by exact integers plus
noise of a stated law.

>>> import zerodelta as zd
>>> release = zd.purify(3, space=zd.Finite(16), claim=zd.GaussianDP("0.2"), epsilon=1)
>>> zd.verify(release.certificate)
PureDP(epsilon=1, bounded_range=0, neighbors=replace)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from zerodelta.errors import (
    BudgetError,
    CertificateError,
    EntropyError,
    GuaranteeError,
    LedgerError,
    ParameterError,
    RecordError,
    ZeroDeltaError,
)

if TYPE_CHECKING:
    from zerodelta.channels.channel import is_purifier
    from zerodelta.channels.purification import Plan, plan, purify
    from zerodelta.data.declare import boolean, category, date, number, text
    from zerodelta.data.keys import bins
    from zerodelta.data.schema import fake, read_schema
    from zerodelta.ledger.ledger import Ledger
    from zerodelta.privacy.certificate import Certificate
    from zerodelta.privacy.claims import RDP, ZCDP, ApproxDP, GaussianDP, PureDP, calibrate
    from zerodelta.privacy.composition import compose
    from zerodelta.privacy.parameters import Neighbors
    from zerodelta.privacy.release import Release
    from zerodelta.privacy.verify import verify
    from zerodelta.records.load import load
    from zerodelta.spaces import Ball, Box, Finite, Multiset, Subsets
    from zerodelta.study.study import Study
    from zerodelta.tasks.advise import advise
    from zerodelta.tasks.choices import mode, select
    from zerodelta.tasks.covariance import correlation, covariance, pca
    from zerodelta.tasks.distributions import cdf, histogram
    from zerodelta.tasks.features import decision_tree, select_features
    from zerodelta.tasks.keys import heavy_hitters, top_k
    from zerodelta.tasks.kmeans import kmeans
    from zerodelta.tasks.marginals import answer_queries, synthesize
    from zerodelta.tasks.models import select_model, vote
    from zerodelta.tasks.open import open
    from zerodelta.tasks.quantiles import median, quantile, quantiles
    from zerodelta.tasks.robust import bounded_local_sensitivity, propose_test_release, trimmed_mean
    from zerodelta.tasks.statistics import count, mean, std, sum, variance
    from zerodelta.tasks.table import table

__version__ = "0.1.0"

_HOME = {
    "ApproxDP": "privacy.claims",
    "Ball": "spaces",
    "Box": "spaces",
    "Certificate": "privacy.certificate",
    "Finite": "spaces",
    "GaussianDP": "privacy.claims",
    "Ledger": "ledger.ledger",
    "Multiset": "spaces",
    "Neighbors": "privacy.parameters",
    "Plan": "channels.purification",
    "PureDP": "privacy.claims",
    "RDP": "privacy.claims",
    "Release": "privacy.release",
    "Study": "study.study",
    "Subsets": "spaces",
    "ZCDP": "privacy.claims",
    "advise": "tasks.advise",
    "answer_queries": "tasks.marginals",
    "bins": "data.keys",
    "boolean": "data.declare",
    "bounded_local_sensitivity": "tasks.robust",
    "calibrate": "privacy.claims",
    "category": "data.declare",
    "cdf": "tasks.distributions",
    "compose": "privacy.composition",
    "correlation": "tasks.covariance",
    "count": "tasks.statistics",
    "covariance": "tasks.covariance",
    "date": "data.declare",
    "decision_tree": "tasks.features",
    "fake": "data.schema",
    "heavy_hitters": "tasks.keys",
    "histogram": "tasks.distributions",
    "is_purifier": "channels.channel",
    "kmeans": "tasks.kmeans",
    "load": "records.load",
    "mean": "tasks.statistics",
    "median": "tasks.quantiles",
    "mode": "tasks.choices",
    "number": "data.declare",
    "open": "tasks.open",
    "pca": "tasks.covariance",
    "plan": "channels.purification",
    "propose_test_release": "tasks.robust",
    "purify": "channels.purification",
    "quantile": "tasks.quantiles",
    "quantiles": "tasks.quantiles",
    "read_schema": "data.schema",
    "select": "tasks.choices",
    "select_features": "tasks.features",
    "select_model": "tasks.models",
    "std": "tasks.statistics",
    "sum": "tasks.statistics",
    "synthesize": "tasks.marginals",
    "table": "tasks.table",
    "text": "data.declare",
    "top_k": "tasks.keys",
    "trimmed_mean": "tasks.robust",
    "variance": "tasks.statistics",
    "vote": "tasks.models",
    "verify": "privacy.verify",
}
"""Where each public name lives; it is imported on first use, so that `import zerodelta` is fast."""

__all__ = [
    "RDP",
    "ZCDP",
    "ApproxDP",
    "Ball",
    "Box",
    "BudgetError",
    "Certificate",
    "CertificateError",
    "EntropyError",
    "Finite",
    "GaussianDP",
    "GuaranteeError",
    "Ledger",
    "LedgerError",
    "Multiset",
    "Neighbors",
    "ParameterError",
    "Plan",
    "PureDP",
    "RecordError",
    "Release",
    "Study",
    "Subsets",
    "ZeroDeltaError",
    "__version__",
    "advise",
    "answer_queries",
    "bins",
    "boolean",
    "bounded_local_sensitivity",
    "calibrate",
    "category",
    "cdf",
    "compose",
    "correlation",
    "count",
    "covariance",
    "date",
    "decision_tree",
    "fake",
    "heavy_hitters",
    "histogram",
    "is_purifier",
    "kmeans",
    "load",
    "mean",
    "median",
    "mode",
    "number",
    "open",
    "pca",
    "plan",
    "propose_test_release",
    "purify",
    "quantile",
    "quantiles",
    "read_schema",
    "select",
    "select_features",
    "select_model",
    "std",
    "sum",
    "synthesize",
    "table",
    "text",
    "top_k",
    "trimmed_mean",
    "variance",
    "verify",
    "vote",
]

progress: bool = True
"""Whether what takes longer than two seconds shows a progress bar on a terminal."""

_PACKAGES = (
    *("audit", "data", "interop", "losses", "lower_bounds", "mechanisms", "models", "paper"),
    *("queries", "sklearn", "testing"),
)


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return import_module(f"zerodelta.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'zerodelta' has no attribute {name!r}")
    return getattr(import_module(f"zerodelta.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*__all__, *_PACKAGES])
