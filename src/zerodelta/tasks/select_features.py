"""Which k of d features predict a target: one internal Gram matrix, or choices one by one.

The Gram matrix of (1, x, y) is one internal query; any search may follow, for only the names of
the features are published (Study, theory B1, R2). Choices one by one are directly pure (C10.1).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from zerodelta.channels.planner import plan as plan_publishing
from zerodelta.data.dataset import Dataset
from zerodelta.data.internal import reveal
from zerodelta.data.row_queries import Bounds
from zerodelta.data.rows import Rows
from zerodelta.data.rowwise import Column, Rowwise
from zerodelta.data.source import Source
from zerodelta.errors import is_list, is_name, require
from zerodelta.exact.bits import BitSource
from zerodelta.exact.rational import Rational, as_count
from zerodelta.mechanisms.diagnostics import diagnosis
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.parameters import as_usable_epsilon
from zerodelta.privacy.release import Release
from zerodelta.spaces import Subsets
from zerodelta.spine.facts import Facts
from zerodelta.spine.methods import Method, choose, ranked
from zerodelta.spine.paying import Paying, debited
from zerodelta.spine.public_inputs import as_numbers, as_source
from zerodelta.spine.release_plan import ReleasePlan
from zerodelta.study.program import StudyProgram, carry_out
from zerodelta.study.study import Study
from zerodelta.training.feature_table import FeatureTable, column_position
from zerodelta.training.gram_search import GramQuery
from zerodelta.training.stepwise import Stepwise
from zerodelta.value import value

if TYPE_CHECKING:
    from typing_extensions import Unpack

MethodName = Literal["auto", "gram", "stepwise"]


@debited
def select_features(
    rows: Any,
    columns: Sequence[str] | None = None,
    *,
    target: Column,
    size: int,
    epsilon: Rational,
    bounds: Bounds | None = None,
    target_bounds: Bounds | None = None,
    data_norm: Rational | None = None,
    features: Sequence[Column] | None = None,
    method: MethodName = "auto",
    mixing_probability: Rational = Fraction(1, 100),
    diagnostics: Rational | None = None,
    bits: BitSource | None = None,
    **paying: Unpack[Paying],
) -> Release:
    """Release which `size` of the features predict the target best by a linear model.

    Use it before a private regression on few rows; scikit-learn's `SelectKBest` and
    `SequentialFeatureSelector` are the non-private counterparts.

    Parameters
    ----------
    rows : data set, array, data frame or Source
        What `zd.open` returns, or features and target, one row for each person.
    columns : sequence of str, optional
        The columns of a data set or a data frame to use; default all, or `features` and `target`
        of a data set.
    target : str or int
        The target column, by name or position (-1: the last).
    size : int
        How many features to choose.
    epsilon : int, float, Fraction or str
        The privacy parameter of this one release.
    bounds : pair, optional
        Public bounds of the features: two numbers, or two lists. Values are clipped to them. For a
        data set by default as declared.
    target_bounds : pair
        Public bounds of the target, which is clipped to them; of a data set as declared.
    data_norm : number, optional
        For "gram": rows whose features (on [-1, 1] if they have bounds) are longer are scaled down
        to it, target included. A weight, so it may be less than the usual length; default 0.4 √d.
    features : sequence of columns, optional
        The features to choose from; default all columns but the target.
    method : {"auto", "gram", "stepwise"}
        "gram": a search on second moments, one internal query; its noise follows the length of a
        row, so it suits sparse rows, many features, effects that cancel. "stepwise": choices by
        permute-and-flip with noisy fits in between; its noise follows the bounds of one feature
        times `size`. "auto": the less noise.
    mixing_probability : number
        With which probability "gram" publishes a random set, at most.
    diagnostics : number, optional
        The share of ε, such as "1/100", for `release.diagnostics`, of a data set: which fractions
        of the rows were used, clipped to the bounds, and unreadable.
    bits : BitSource, optional
        The random bits; default the operating system's.

    Returns
    -------
    Release
        `value`: the names of the features (positions, if rows are an array), in order.

    **Guarantee**: pure ε-DP, `proven`: a Study (B1, R2), or basic composition (C10.1, C10.4).
    **Neighbors**: replace-one (the number of rows is public), or what the data set says: one unit,
    or add-remove, which needs half the noise of "stepwise". A row with a missing cell is the zero
    row.
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
    if isinstance(rows, Dataset):
        source, bounds, target_bounds = _declared(
            rows, columns, target, features, bounds, target_bounds
        )
    else:
        source = as_source(rows, columns)
    question = FeaturesQuestion(
        target=target,
        size=size,
        bounds=bounds,
        target_bounds=target_bounds,
        data_norm=data_norm,
        features=None if features is None else tuple(features) if is_list(features) else (),
        method=method,
        mixing_probability=mixing_probability,
        by_position=isinstance(rows, (np.ndarray, list, tuple)),
    )
    beside = diagnosis(diagnostics, source)
    return carry_out(question, source, epsilon=epsilon, bits=bits, beside=beside)


def _declared(
    rows: Dataset,
    columns: Sequence[str] | None,
    target: Column,
    features: Sequence[Column] | None,
    bounds: Bounds | None,
    target_bounds: Bounds | None,
) -> tuple[Source, Bounds | None, Bounds | None]:
    """Return the columns of a data set that are used, and the bounds that it declares for them."""
    if columns is None and features is not None and all(type(c) is str for c in features):
        columns = [*map(str, features), *([target] if type(target) is str else [])]
    source, ends = as_numbers(rows, columns)
    lower, upper = ends
    label = column_position(target, source.columns, "target")
    others = [place for place in range(len(lower)) if place != label]
    if features is not None:
        others = [column_position(column, source.columns, "features") for column in features]
    if bounds is None:
        bounds = [lower[i] for i in others], [upper[i] for i in others]
    return source, bounds, (lower[label], upper[label]) if target_bounds is None else target_bounds


@value
class FeaturesQuestion:
    """A few features that predict a target are asked of rows within public bounds."""

    target: Column
    size: int
    bounds: Bounds | None = None
    target_bounds: Bounds | None = None
    data_norm: Rational | None = None
    features: tuple[Column, ...] | None = None
    method: str = "auto"
    mixing_probability: Rational = Fraction(1, 100)
    by_position: bool = False
    """Whether features are published by their positions, not by their names."""

    def plan(self, facts: Facts, epsilon: Rational) -> ReleasePlan[Rows] | StudyProgram:
        """Choose the method; what the other one would cost is forecast for "auto" only."""
        # both methods divide by any public number: a row that counts nowhere is the zero row
        exact, n, counted = as_usable_epsilon(epsilon), facts.planned_rows, facts.rows is not None
        table = FeatureTable.of(
            facts.columns,
            target=self.target,
            features=self.features,
            bounds=self.bounds,
            data_norm=self.data_norm,
            target_bounds=self.target_bounds,
        )
        space = Subsets(of=table.width, size=as_count(self.size, "size", minimum=1))
        related = facts.neighbors
        stepwise = Stepwise(table=table, size=self.size, epsilon=exact, rows=n, neighbors=related)
        named = is_name(self.method, ("gram", "stepwise"))
        methods = () if named else self._methods(space, stepwise)
        method = self.method if named else choose(methods, self.method).name

        def published(chosen: Any) -> tuple[Column, ...]:
            places = [table.features[i] for i in chosen]
            return tuple(i if self.by_position else facts.columns[i] for i in places)

        if method == "gram":
            return StudyProgram(
                study={
                    "epsilon": exact,
                    "publish": space,
                    "rounds": 1,
                    "mixing_probability": self.mixing_probability,
                    "functions": False,
                },
                program=lambda study: _search(study, table, self.size),
                value=published,
                methods=methods,
            )
        require(
            table.halves is not None,
            "bounds",
            None,
            expected="public bounds of each feature, which stepwise choices need",
            remedy='pass bounds=(lower, upper), or method="gram"',
        )
        return ReleasePlan(
            claim=PureDP(exact, neighbors=related),
            steps=stepwise.steps,
            answer=lambda rows, bits: published(stepwise.select(rows, bits)),
            error="each choice's covariance with what is left to explain is at most "
            f"{stepwise.noise:.3g} of the bounds below the best, on average",
            methods=methods,
            public=(
                "the bounds of features and target, the number of features"
                + (" and of rows" if counted else ""),
                "every number in the steps",
            ),
        )

    def _methods(self, space: Subsets, stepwise: Stepwise) -> tuple[Method, ...]:
        """Return both methods by their noise, the largest to expect in a covariance."""
        table, size = stepwise.table, stepwise.size
        made = plan_publishing(
            space, epsilon=stepwise.epsilon, mixing_probability=self.mixing_probability
        )
        mu = math.sqrt(made.calibration.mu_squared)
        return ranked(
            Method(
                name="stepwise",
                error=math.inf if table.halves is None else stepwise.noise,
                spends=f"ε on {size} choices and {size} fits, one by one",
                why="its noise follows the number of features chosen, not of those there are",
            ),
            Method(
                name="gram",
                error=GramQuery(table=table, precision=mu * stepwise.rows).noise,
                spends=f"ε on one of 10^{math.log10(space.size):.2g} sets, one Gram matrix",
                why="one internal query whatever the search; its noise follows a row's length",
            ),
        )


def _search(study: Study, table: FeatureTable, size: int) -> list[int]:
    query = GramQuery(table=table, precision=study.plan.mu * study.plan.rows)
    gram = study.covariance(Rowwise(query.columns), data_norm=query.norm, centered=False)
    return query.search(reveal(gram), size)
