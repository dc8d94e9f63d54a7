"""zerodelta publishes results under pure differential privacy (δ = 0), exactly.

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
    from zerodelta.channels.planner import plan, purify
    from zerodelta.channels.purification_plan import Plan
    from zerodelta.data.declare import boolean, category, date, number, text
    from zerodelta.data.fake import fake
    from zerodelta.data.group_keys import bins
    from zerodelta.data.schema import read_schema
    from zerodelta.ledger.ledger import Ledger
    from zerodelta.privacy.calibration import calibrate
    from zerodelta.privacy.certificate import Certificate
    from zerodelta.privacy.claims import RDP, ZCDP, ApproxDP, GaussianDP, PureDP
    from zerodelta.privacy.composition import compose
    from zerodelta.privacy.neighbors import Neighbors
    from zerodelta.privacy.release import Release
    from zerodelta.privacy.verify import verify
    from zerodelta.records.load import load
    from zerodelta.spaces import Ball, Box, Finite, Multiset, Subsets
    from zerodelta.study.study import Study
    from zerodelta.tasks.advise import advise
    from zerodelta.tasks.answer_queries import answer_queries
    from zerodelta.tasks.bounded_local_sensitivity import bounded_local_sensitivity
    from zerodelta.tasks.cdf import cdf
    from zerodelta.tasks.count import count
    from zerodelta.tasks.covariance import correlation, covariance
    from zerodelta.tasks.decision_tree import decision_tree
    from zerodelta.tasks.heavy_hitters import heavy_hitters
    from zerodelta.tasks.histogram import histogram
    from zerodelta.tasks.kmeans import kmeans
    from zerodelta.tasks.mean import mean
    from zerodelta.tasks.mode import mode
    from zerodelta.tasks.open import open
    from zerodelta.tasks.pca import pca
    from zerodelta.tasks.propose_test_release import propose_test_release
    from zerodelta.tasks.quantile import median, quantile
    from zerodelta.tasks.quantiles import quantiles
    from zerodelta.tasks.select import select
    from zerodelta.tasks.select_features import select_features
    from zerodelta.tasks.select_model import select_model
    from zerodelta.tasks.sum import sum
    from zerodelta.tasks.synthesize import synthesize
    from zerodelta.tasks.table import table
    from zerodelta.tasks.top_k import top_k
    from zerodelta.tasks.trimmed_mean import trimmed_mean
    from zerodelta.tasks.variance import std, variance
    from zerodelta.tasks.vote import vote

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
    "Neighbors": "privacy.neighbors",
    "Plan": "channels.purification_plan",
    "PureDP": "privacy.claims",
    "RDP": "privacy.claims",
    "Release": "privacy.release",
    "Study": "study.study",
    "Subsets": "spaces",
    "ZCDP": "privacy.claims",
    "advise": "tasks.advise",
    "answer_queries": "tasks.answer_queries",
    "bins": "data.group_keys",
    "boolean": "data.declare",
    "bounded_local_sensitivity": "tasks.bounded_local_sensitivity",
    "calibrate": "privacy.calibration",
    "category": "data.declare",
    "cdf": "tasks.cdf",
    "compose": "privacy.composition",
    "correlation": "tasks.covariance",
    "count": "tasks.count",
    "covariance": "tasks.covariance",
    "date": "data.declare",
    "decision_tree": "tasks.decision_tree",
    "fake": "data.fake",
    "heavy_hitters": "tasks.heavy_hitters",
    "histogram": "tasks.histogram",
    "is_purifier": "channels.channel",
    "kmeans": "tasks.kmeans",
    "load": "records.load",
    "mean": "tasks.mean",
    "median": "tasks.quantile",
    "mode": "tasks.mode",
    "number": "data.declare",
    "open": "tasks.open",
    "pca": "tasks.pca",
    "plan": "channels.planner",
    "propose_test_release": "tasks.propose_test_release",
    "purify": "channels.planner",
    "quantile": "tasks.quantile",
    "quantiles": "tasks.quantiles",
    "read_schema": "data.schema",
    "select": "tasks.select",
    "select_features": "tasks.select_features",
    "select_model": "tasks.select_model",
    "std": "tasks.variance",
    "sum": "tasks.sum",
    "synthesize": "tasks.synthesize",
    "table": "tasks.table",
    "text": "data.declare",
    "top_k": "tasks.top_k",
    "trimmed_mean": "tasks.trimmed_mean",
    "variance": "tasks.variance",
    "vote": "tasks.vote",
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
    *("queries", "sklearn"),
)


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return import_module(f"zerodelta.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'zerodelta' has no attribute {name!r}")
    return getattr(import_module(f"zerodelta.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*__all__, *_PACKAGES])
