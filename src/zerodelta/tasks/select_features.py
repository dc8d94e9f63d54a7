"""Which k of d features predict a target: a hidden Gram matrix, or choices one by one.

The Gram matrix of (1, x, y) is one hidden question; any search may follow, for only the names of
the features are published (Study, theory B1, R2). Choices one by one are directly pure (C10.1).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal, final

import numpy as np

from zerodelta.channels.planner import plan
from zerodelta.data.internal import reveal
from zerodelta.data.row_queries import Bounds, Rowwise
from zerodelta.data.rowwise import Column
from zerodelta.errors import ParameterError, did_you_mean
from zerodelta.exact.bits import BitSource, SystemBits
from zerodelta.exact.rational import Rational, as_count
from zerodelta.privacy.parameters import as_usable_epsilon
from zerodelta.privacy.release import Release
from zerodelta.spaces import Subsets
from zerodelta.study.study import Study
from zerodelta.tasks.feature_table import FeatureTable, Floats
from zerodelta.tasks.stepwise import stepwise, stepwise_noise
from zerodelta.tasks.subset_search import best_subset

__all__ = ["Method", "predicted_noise", "select_features"]

Method = Literal["auto", "gram", "stepwise"]

_CONSTANT = 0.05
"""Squared weight of the constant in the Gram matrix, relative to the features'."""


def select_features(
    rows: Any,
    *,
    target: Column,
    size: int,
    epsilon: Rational,
    bounds: Bounds | None = None,
    target_bounds: Bounds | None = None,
    data_norm: Rational | None = None,
    features: Sequence[Column] | None = None,
    method: Method = "auto",
    mixing_probability: Rational = Fraction(1, 100),
    bits: BitSource | None = None,
) -> Release:
    """Publish which `size` of the features predict the target best by a linear model.

    "gram": the second moments of features and target are one hidden question, a search adds and
    exchanges features on them, and only the chosen set leaves. It sees effects that cancel, and
    its noise follows the length of a row, so it suits sparse rows, many features of which few are
    large, and features without known bounds. "stepwise": `size` choices by permute-and-flip, with
    noisy fits in between; its noise follows the bounds of one feature times `size`, so it suits a
    few features with tight bounds. "auto" takes the one that predicts less noise.

    **Releases**: the names of the features (positions, if rows are an array), in order.
    **Neighbors**: replace-one (the number of rows is public).
    **Guarantee**: pure ε-DP, `proven`: a Study (B1, R2), or basic composition (C10.1, C10.4).
    **Public**: bounds of each feature, or `data_norm`; `target_bounds`; the method; with which
    `mixing_probability` the hidden Gram matrix publishes a random set. Values are clipped.
    For the Gram matrix a row whose features (on [-1, 1] if they have bounds) are longer than
    `data_norm` is then scaled down to it, target included: a weight, so it may be less than the
    usual length (default 0.4 √d). A row with a NaN counts as the middle.
    **Error**: the probability of a random set, or how far a choice may fall behind the best.

    >>> rng = np.random.default_rng(1)
    >>> x = rng.uniform(-1, 1, size=(20_000, 6))
    >>> rows = np.column_stack([x, (x[:, 1] - x[:, 4]) / 2])
    >>> release = select_features(
    ...     rows, target=-1, size=2, epsilon=2, bounds=(-1, 1), target_bounds=(-1, 1),
    ...     mixing_probability="1e-9")
    >>> release.value, release.certificate.status.value
    ((1, 4), 'proven')
    """
    table = FeatureTable.of(
        rows,
        target=target,
        features=features,
        bounds=bounds,
        data_norm=data_norm,
        target_bounds=target_bounds,
    )
    space = Subsets(of=table.width, size=as_count(size, "size", minimum=1))
    total, source = as_usable_epsilon(epsilon), SystemBits() if bits is None else bits
    if method not in ("auto", "gram", "stepwise"):
        raise ParameterError(
            "method",
            method,
            expected='"auto", "gram" or "stepwise"',
            remedy=did_you_mean(method, ("auto", "gram", "stepwise"), "pass one of these"),
        )
    if method == "stepwise" and table.halves is None:
        raise ParameterError(
            "bounds",
            None,
            expected="public bounds of each feature, which stepwise choices need",
            remedy='pass bounds=(lower, upper), or method="gram"',
        )
    study = Study(
        table.source,
        epsilon=total,
        publish=space,
        rounds=1,
        mixing_probability=mixing_probability,
        functions=False,
        bits=source,
    )
    question = _Gram.of(table, study.plan.mu)
    if method == "auto":
        better = table.halves is None or question.noise < stepwise_noise(table, size, total)
        method = "gram" if better else "stepwise"
    if method == "stepwise":
        found = stepwise(table, size, total, source)
    else:
        found = study.run(lambda inside: question.search(inside, size))
    return replace(found, value=tuple(table.names[i] for i in found.value))


def predicted_noise(
    *,
    n: int,
    features: int,
    size: int,
    epsilon: Rational,
    mixing_probability: Rational = Fraction(1, 100),
) -> dict[str, float]:
    """Return the noise of both methods, for features and target bounded by [-1, 1].

    It is the largest to expect in the covariance of a feature with what is left of the target.

    >>> noise = predicted_noise(n=10_000, features=20, size=3, epsilon=1)
    >>> sorted(noise)
    ['gram', 'stepwise']
    """
    # rows that take no memory: only their number and that of the columns is looked at
    rows = np.broadcast_to(np.zeros(1), (as_count(n, "n", minimum=1), features + 1))
    table = FeatureTable.of(
        rows, target=-1, features=None, bounds=(-1, 1), data_norm=None, target_bounds=(-1, 1)
    )
    exact = as_usable_epsilon(epsilon)
    made = plan(
        Subsets(of=features, size=size), epsilon=exact, mixing_probability=mixing_probability
    )
    return {
        "gram": _Gram.of(table, math.sqrt(made.calibration.mu_squared)).noise,
        "stepwise": stepwise_noise(table, size, exact),
    }


@final
@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class _Gram:
    """The hidden question: (constant, features, weighted target), within a public norm.

    In the Frobenius norm k kᵀ moves by √2·norm², so beside the diagonal the noise is norm²/(μ n),
    less by the weights on both sides. The more features, the less is spent on the target.
    """

    table: FeatureTable
    constant: float
    target: float
    mu: float

    @classmethod
    def of(cls, table: FeatureTable, mu: float) -> _Gram:
        # (1+κ)²(t + 1/κ), the noise in a residual's covariance, is least at 2tκ² + κ = 1, where
        # t = ‖β‖²·norm²/y² is about d/8 if y's deviation is a third of its bound
        t = table.width / 8
        weight = (math.sqrt(1 + 8 * t) - 1) / (4 * t)
        return cls(
            table=table,
            constant=table.norm * math.sqrt(_CONSTANT),
            target=table.norm * math.sqrt(weight),
            mu=mu,
        )

    @property
    def norm(self) -> float:
        return math.sqrt(self.table.norm**2 + self.constant**2 + self.target**2)

    @property
    def deviation(self) -> float:
        """The noise of a second moment of two features."""
        return self.norm**2 / (self.mu * self.table.source.rows)

    @property
    def noise(self) -> float:
        """The largest noise to expect in the covariance of a feature and a residual."""
        entry = self.deviation * math.sqrt(
            1 / self.target**2 + self.table.width / 8 / self.table.norm**2
        )
        return entry * math.sqrt(2 * math.log(self.table.width + 1))

    def columns(self, rows: Floats) -> Floats:
        features, factors = self.table.within_norm(rows)
        made = np.empty((len(rows), self.table.width + 2))
        made[:, 0] = self.constant * factors
        made[:, 1:-1] = features.T
        made[:, -1] = self.table.labels(rows) * self.target * factors
        return made

    def search(self, study: Study, size: int) -> list[int]:
        gram = reveal(study.covariance(Rowwise(self.columns), data_norm=self.norm, centered=False))
        # what is left after a regression on the constant
        constant = gram[0, 1:] / math.sqrt(max(gram[0, 0], 2 * self.deviation))
        rest = gram[1:, 1:] - np.outer(constant, constant)
        covariance, with_target = rest[:-1, :-1], rest[:-1, -1] / self.target
        # the noise of a k x k part has norm 2√k times that of an entry
        return best_subset(covariance, with_target, size, 2 * math.sqrt(size) * self.deviation)
