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

from zerodelta import errors as errors
from zerodelta.errors import BudgetError as BudgetError
from zerodelta.errors import CertificateError as CertificateError
from zerodelta.errors import EntropyError as EntropyError
from zerodelta.errors import GuaranteeError as GuaranteeError
from zerodelta.errors import LedgerError as LedgerError
from zerodelta.errors import ParameterError as ParameterError
from zerodelta.errors import RecordError as RecordError
from zerodelta.errors import ZeroDeltaError as ZeroDeltaError
from zerodelta.tasks.registry import verbs as _verbs

if TYPE_CHECKING:  # what tools read; what runs is below
    from zerodelta.channels.channel import is_purifier as is_purifier
    from zerodelta.channels.purification import Plan as Plan
    from zerodelta.channels.purification import plan as plan
    from zerodelta.channels.purification import purify as purify
    from zerodelta.data.declare import boolean as boolean
    from zerodelta.data.declare import category as category
    from zerodelta.data.declare import date as date
    from zerodelta.data.declare import number as number
    from zerodelta.data.declare import text as text
    from zerodelta.data.keys import bins as bins
    from zerodelta.data.schema import fake as fake
    from zerodelta.data.schema import read_schema as read_schema
    from zerodelta.ledger.ledger import Ledger as Ledger
    from zerodelta.privacy.certificate import Certificate as Certificate
    from zerodelta.privacy.claims import RDP as RDP
    from zerodelta.privacy.claims import ZCDP as ZCDP
    from zerodelta.privacy.claims import ApproxDP as ApproxDP
    from zerodelta.privacy.claims import GaussianDP as GaussianDP
    from zerodelta.privacy.claims import PureDP as PureDP
    from zerodelta.privacy.claims import calibrate as calibrate
    from zerodelta.privacy.composition import compose as compose
    from zerodelta.privacy.parameters import Neighbors as Neighbors
    from zerodelta.privacy.release import Release as Release
    from zerodelta.privacy.verify import verify as verify
    from zerodelta.records import load as load
    from zerodelta.spaces import Ball as Ball
    from zerodelta.spaces import Box as Box
    from zerodelta.spaces import Finite as Finite
    from zerodelta.spaces import Multiset as Multiset
    from zerodelta.spaces import Subsets as Subsets
    from zerodelta.study.study import Study as Study
    from zerodelta.tasks.advise import advise as advise
    from zerodelta.tasks.choices import mode as mode
    from zerodelta.tasks.choices import select as select
    from zerodelta.tasks.covariance import correlation as correlation
    from zerodelta.tasks.covariance import covariance as covariance
    from zerodelta.tasks.covariance import pca as pca
    from zerodelta.tasks.distributions import cdf as cdf
    from zerodelta.tasks.distributions import histogram as histogram
    from zerodelta.tasks.features import decision_tree as decision_tree
    from zerodelta.tasks.features import select_features as select_features
    from zerodelta.tasks.keys import heavy_hitters as heavy_hitters
    from zerodelta.tasks.keys import top_k as top_k
    from zerodelta.tasks.kmeans import kmeans as kmeans
    from zerodelta.tasks.marginals import answer_queries as answer_queries
    from zerodelta.tasks.marginals import synthesize as synthesize
    from zerodelta.tasks.models import select_model as select_model
    from zerodelta.tasks.models import vote as vote
    from zerodelta.tasks.open import open as open
    from zerodelta.tasks.quantiles import median as median
    from zerodelta.tasks.quantiles import quantile as quantile
    from zerodelta.tasks.quantiles import quantiles as quantiles
    from zerodelta.tasks.robust import bounded_local_sensitivity as bounded_local_sensitivity
    from zerodelta.tasks.robust import propose_test_release as propose_test_release
    from zerodelta.tasks.robust import trimmed_mean as trimmed_mean
    from zerodelta.tasks.statistics import count as count
    from zerodelta.tasks.statistics import mean as mean
    from zerodelta.tasks.statistics import std as std
    from zerodelta.tasks.statistics import sum as sum
    from zerodelta.tasks.statistics import variance as variance
    from zerodelta.tasks.table import table as table

__version__ = "0.1.0"

_FILES = {
    "channels.channel": "is_purifier",
    "channels.purification": "Plan plan purify",
    "data.declare": "boolean category date number text",
    "data.keys": "bins",
    "data.schema": "fake read_schema",
    "ledger.ledger": "Ledger",
    "privacy.certificate": "Certificate",
    "privacy.claims": "ApproxDP GaussianDP PureDP RDP ZCDP calibrate",
    "privacy.composition": "compose",
    "privacy.parameters": "Neighbors",
    "privacy.release": "Release",
    "privacy.verify": "verify",
    "records": "load",
    "spaces": "Ball Box Finite Multiset Subsets",
    "study.study": "Study",
    "tasks.advise": "advise",
    "tasks.open": "open",
}
"""Public names by file; each is imported on first use, so that `import zerodelta` is fast."""

_HOME = {name: file for file, names in _FILES.items() for name in names.split()}
_HOME |= {name: f"tasks.{file}" for name, file in _verbs().items()}

_PACKAGES = (
    *("audit", "data", "interop", "losses", "lower_bounds", "mechanisms", "models", "paper"),
    *("queries", "sklearn", "testing"),
)

__all__ = sorted([*_HOME, *errors.__all__, "__version__"])

progress: bool = True
"""Whether what takes longer than two seconds shows a progress bar on a terminal."""


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return import_module(f"zerodelta.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'zerodelta' has no attribute {name!r}")
    return getattr(import_module(f"zerodelta.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*__all__, *_PACKAGES])
