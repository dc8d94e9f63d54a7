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

from zerodelta.tasks.registry import verbs as _verbs

if TYPE_CHECKING:  # for type checkers and editors; `__getattr__` below imports at run time
    from zerodelta import errors as errors
    from zerodelta import models as models
    from zerodelta import purification as purification
    from zerodelta import queries as queries
    from zerodelta import records as records
    from zerodelta.channels.purification import plan as plan
    from zerodelta.channels.purification import purify as purify
    from zerodelta.data.declare import boolean as boolean
    from zerodelta.data.declare import category as category
    from zerodelta.data.declare import date as date
    from zerodelta.data.declare import number as number
    from zerodelta.data.declare import text as text
    from zerodelta.data.keys import bins as bins
    from zerodelta.data.schema import fake as fake
    from zerodelta.ledger.ledger import Ledger as Ledger
    from zerodelta.privacy.claims import ApproxDP as ApproxDP
    from zerodelta.privacy.claims import GaussianDP as GaussianDP
    from zerodelta.privacy.verify import verify as verify
    from zerodelta.records import load as load
    from zerodelta.spaces import Ball as Ball
    from zerodelta.spaces import Box as Box
    from zerodelta.spaces import Finite as Finite
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
    from zerodelta.tasks.open import open as open
    from zerodelta.tasks.quantiles import median as median
    from zerodelta.tasks.quantiles import quantile as quantile
    from zerodelta.tasks.quantiles import quantiles as quantiles
    from zerodelta.tasks.robust import trimmed_mean as trimmed_mean
    from zerodelta.tasks.statistics import count as count
    from zerodelta.tasks.statistics import mean as mean
    from zerodelta.tasks.statistics import std as std
    from zerodelta.tasks.statistics import sum as sum
    from zerodelta.tasks.statistics import variance as variance
    from zerodelta.tasks.table import table as table

__version__ = "0.1.0"

GROUPS = {
    "open": "open number category boolean date text bins fake",
    "ask": (
        "count sum mean variance std median quantile quantiles cdf trimmed_mean table histogram "
        "mode top_k heavy_hitters select covariance correlation answer_queries synthesize advise"
    ),
    "model": "kmeans pca decision_tree select_features select_model",
    "purify and study": "purify plan Study ApproxDP GaussianDP Ball Box Finite",
    "spend, keep, check": "Ledger load verify",
}
"""Public names by purpose, as the reference and `help(zerodelta)` show them."""

ROOMS = {
    "errors": "all exceptions",
    "sklearn": "estimators: linear and logistic regression, forests, networks, pipelines",
    "models": "losses and small models for `Study.minimize` and `zd.select_model`",
    "queries": "functions of your own: propose-test-release, local sensitivity, votes, workloads",
    "purification": "claims, spaces, plans, calibration and composition",
    "records": "`Release`, `Certificate`, `Neighbors`: the parts of a release",
    "data": "schemas and sources",
    "interop": "bridges to OpenDP, dp-accounting, Opacus",
    "audit": "attempts to refute a privacy claim of zerodelta or of any other code",
    "testing": "replayed bits for tests",
    "paper": "the algorithms of the paper",
    "lower_bounds": "errors and sample sizes that no private mechanism can beat",
    "mechanisms": "the noise and selection mechanisms of all releases",
}
"""Documented submodules, and their contents."""

_FILES = {
    "channels.purification": ("purify", "plan"),
    "data.declare": ("number", "category", "boolean", "date", "text"),
    "data.keys": ("bins",),
    "data.schema": ("fake",),
    "ledger.ledger": ("Ledger",),
    "privacy.claims": ("ApproxDP", "GaussianDP"),
    "privacy.verify": ("verify",),
    "records": ("load",),
    "spaces": ("Ball", "Box", "Finite"),
    "study.study": ("Study",),
    "tasks.advise": ("advise",),
    "tasks.open": ("open",),
}
"""The file of each public name except the verbs, imported on first use: `import` stays fast."""

_HOME = {name: file for file, names in _FILES.items() for name in names}
_HOME |= {name: f"tasks.{file}" for name, file in _verbs(room="").items()}

__all__ = sorted([*" ".join(GROUPS.values()).split(), "__version__"])

progress: bool = True
"""Whether calls that take longer than two seconds show a progress bar on a terminal."""


def __getattr__(name: str) -> Any:
    if name in ROOMS:
        return import_module(f"zerodelta.{name}")
    if name not in __all__:
        raise AttributeError(f"module 'zerodelta' has no attribute {name!r}")
    public = getattr(import_module(f"zerodelta.{_HOME[name]}"), name)
    globals()[name] = public  # so that this function is called once for each name
    return public


def __dir__() -> list[str]:
    return sorted([*__all__, *ROOMS])


__doc__ += "".join(f"\n{group}:\n    {names}" for group, names in GROUPS.items())
__doc__ += "\n\nmodules:\n" + "\n".join(
    f"    zerodelta.{room}: {what}" for room, what in ROOMS.items()
)
