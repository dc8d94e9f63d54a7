"""Select the features that predict a target (`select_features`), or a small decision tree.

The Gram matrix of (1, x, y) is one internal query. Any search in it may follow, because only the
names of the features are published (Study, theory B1, R2). Choices one by one satisfy pure DP
directly (C10.1).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from zerodelta.channels.purification import plan as plan_publishing
from zerodelta.data.arrays import as_source
from zerodelta.data.dataset import Dataset
from zerodelta.data.isolation import reveal
from zerodelta.data.row_queries import Bounds
from zerodelta.data.rows import Rows
from zerodelta.data.rowwise import Column, Rowwise
from zerodelta.data.source import Source
from zerodelta.errors import is_list, is_name, require
from zerodelta.exact.bits import BitSource
from zerodelta.exact.rational import Rational, as_count, as_rational
from zerodelta.mechanisms.diagnostics import as_diagnosis
from zerodelta.mechanisms.selection import PermuteAndFlip
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.parameters import Neighbors, as_usable_epsilon
from zerodelta.privacy.release import Release
from zerodelta.spaces import Subsets
from zerodelta.spine.plan import Facts, Method, ReleasePlan, choose, ranked
from zerodelta.spine.public_inputs import as_numbers
from zerodelta.spine.run import ask
from zerodelta.spine.verbs import Paying, debited
from zerodelta.study.study import Study, StudyProgram, carry_out
from zerodelta.tasks.task import (
    LABELED,
    METHOD,
    ROWS,
    TABLE,
    Command,
    Forecast,
    Numbers,
    Planner,
    Task,
    planned,
)
from zerodelta.training.features import (
    DecisionTree,
    FeatureTable,
    GramQuery,
    Splits,
    Stepwise,
    column_position,
    tree_of,
    tree_scores,
)
from zerodelta.value import value

if TYPE_CHECKING:
    from typing_extensions import Unpack


# -- The best tree of depth two over public thresholds, chosen among all at once (C10.1) ----------
# The number of rows that a tree classifies right has sensitivity 1, so permute-and-flip over the
# scores of *all* trees is pure. A first split need not improve the score without the second.

_MOST_TREES = 1 << 23


@debited
def decision_tree(
    rows: Any,
    columns: Sequence[str] | None = None,
    *,
    label: Column = -1,
    classes: tuple[float, float] = (0, 1),
    thresholds: Mapping[Column, Sequence[Rational]] | None = None,
    epsilon: Rational,
    diagnostics: Rational | None = None,
    **paying: Unpack[Paying],
) -> Release:
    """Release the tree of depth two that classifies (nearly) most rows right.

    Use it for a rule that people can read; like scikit-learn's `DecisionTreeClassifier` of depth
    2, but all 16 s³ trees over s public thresholds compete at once, so that a first question that
    is useful only together with the second (an exclusive or) is found.

    Parameters
    ----------
    rows : data set, array, data frame or Source
        What `zd.open` returns, or features and label, one row for each person.
    columns : sequence of str, optional
        The columns of a data set or a data frame to use; by default all, of a data set those of
        `thresholds` and `label`.
    label : str or int
        The column of the label, by name or position (-1: the last).
    classes : pair of numbers
        The two labels. A row with another label is not counted.
    thresholds : mapping of columns to lists of numbers
        The public thresholds of the questions "is this column above it?", 1 to 80 in all. A row
        with a missing cell in one of these columns is not counted.

    Returns
    -------
    Release
        `value`: a `DecisionTree`, with ``predict``.

    **Guarantee**: pure ε-DP by permute-and-flip (C10.1), `proven`.
    **Neighbors**: replace-one (the number of rows is public), or what the data set says: one unit,
    or add-remove, under which all scores change in one direction: half the noise (theory H).
    **Error**: the chosen tree classifies at most (2/ε) ln(16 s³) rows fewer right than the best
    tree, on average (add-remove: half of that); the release states it as a fraction of the rows.

    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> x = rng.uniform(0, 1, size=(4000, 2))
    >>> data = np.column_stack([x, (x[:, 0] > 0.5) != (x[:, 1] > 0.5)])
    >>> release = decision_tree(data, thresholds={0: [0.25, 0.5], 1: [0.5, 0.75]}, epsilon=1)
    >>> release.value.predict([[0.1, 0.9], [0.9, 0.9]])
    array([1., 0.])

    """
    named = [*(thresholds if isinstance(thresholds, Mapping) else {}), label]
    if columns is None and isinstance(rows, Dataset) and all(type(c) is str for c in named):
        columns = [str(column) for column in dict.fromkeys(named)]
    source, _ = as_numbers(rows, columns)
    question = TreeQuestion(label=label, classes=classes, thresholds=thresholds)
    diagnosis = as_diagnosis(diagnostics, source)
    return ask(question, source, epsilon=epsilon, diagnosis=diagnosis)


@value
class TreeQuestion:
    """Question for a tree over public thresholds that classifies many rows right."""

    label: Column = -1
    classes: tuple[float, float] = (0, 1)
    thresholds: Mapping[Column, Sequence[Rational]] | None = None

    def plan(self, facts: Facts, epsilon: Rational) -> ReleasePlan[Rows]:
        """Plan one choice among all trees; the number of rows is used for the forecast only."""
        label = column_position(self.label, facts.columns, "label")
        splits = _splits(self.thresholds, facts.columns, label)
        listed = self.classes if isinstance(self.classes, tuple) else ()
        pair = tuple(float(as_rational(label, "classes")) for label in listed)
        two = len(pair) == 2 and pair[0] != pair[1]
        require(two, "classes", listed, expected="two labels", remedy="pass classes=(0, 1)")
        monotone = facts.neighbors is Neighbors.ADD_REMOVE  # a row adds 0 or 1 to every score
        flip = PermuteAndFlip.for_epsilon(
            epsilon=epsilon, sensitivity=1, monotone=monotone, neighbors=facts.neighbors
        )

        def answer(rows: Rows, bits: BitSource) -> DecisionTree:
            scores = tree_scores(rows, splits, label, pair).reshape(-1)
            return tree_of(flip.select(scores, bits), splits, pair)

        return ReleasePlan(
            claim=PureDP(flip.epsilon, neighbors=facts.neighbors),
            steps=(flip.step(),),
            answer=answer,
            error=flip.error(16 * len(splits) ** 3) / facts.planned_rows,
            public=("columns, thresholds and classes", *facts.counted),
        )


def _splits(
    thresholds: Mapping[Column, Sequence[Rational]] | None, columns: Sequence[str], label: int
) -> Splits:
    """Return (position, name, threshold) of every question that a tree may use."""
    splits = [
        (place, column, float(as_rational(value, "thresholds")))
        for column, values in (thresholds if isinstance(thresholds, Mapping) else {}).items()
        for place in [column_position(column, columns, "thresholds")]
        for value in (values if is_list(values) else [])
    ]
    require(
        splits and 16 * len(splits) ** 3 <= _MOST_TREES and label not in {i for i, _, _ in splits},
        "thresholds",
        f"{len(splits)} of them",
        expected="1 to 80 public thresholds in all, none of them of the label",
        remedy="pass thresholds={column: [20, 40, 60], …}, chosen without looking at the rows",
    )
    return splits


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
    **paying: Unpack[Paying],
) -> Release:
    """Release the names of the `size` features that predict the target best by a linear model.

    Use it before a private regression on few rows; scikit-learn's `SelectKBest` and
    `SequentialFeatureSelector` are the non-private counterparts.

    Parameters
    ----------
    rows : data set, array, data frame or Source
        What `zd.open` returns, or features and target, one row for each person.
    columns : sequence of str, optional
        The columns of a data set or a data frame to use; by default all, or for a data set
        `features` and `target`.
    target : str or int
        The target column, by name or position (-1: the last).
    size : int
        The number of features to choose.
    bounds : pair, optional
        Public bounds of the features: two numbers, or two lists. Values are clipped to them. For a
        data set by default as declared.
    target_bounds : pair
        Public bounds of the target, which is clipped to them; for a data set as declared.
    data_norm : number, optional
        For "gram": rows whose features (on [-1, 1] if they have bounds) are longer are scaled down
        to this length, with the target. This weighs rows, so it may be less than the usual length;
        by default 0.4 √d.
    features : sequence of columns, optional
        The features to choose from; by default all columns but the target.
    method : {"auto", "gram", "stepwise"}
        "gram": a search on second moments, one internal query; its noise grows with the length of a
        row, so it suits sparse rows, many features, and effects that cancel. "stepwise": choices by
        permute-and-flip with noisy fits in between; its noise grows with the bounds of one feature
        and with `size`. "auto": the method with less noise.
    mixing_probability : number
        The largest probability with which "gram" publishes a random set.

    Returns
    -------
    Release
        `value`: the names of the features (positions, if rows are an array), in order.

    **Guarantee**: pure ε-DP, `proven`: a Study (B1, R2), or basic composition (C10.1, C10.4).
    **Neighbors**: replace-one (the number of rows is public), or what the data set says: one unit,
    or add-remove, which needs half the noise of "stepwise". A row with a missing cell is the zero
    row.
    **Error**: the probability of a random set, or the expected loss of a choice against the best.

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
    diagnosis = as_diagnosis(diagnostics, source)
    return carry_out(question, source, epsilon=epsilon, diagnosis=diagnosis)


def _declared(
    rows: Dataset,
    columns: Sequence[str] | None,
    target: Column,
    features: Sequence[Column] | None,
    bounds: Bounds | None,
    target_bounds: Bounds | None,
) -> tuple[Source, Bounds | None, Bounds | None]:
    """Return the used columns of a data set, and the bounds, stated or declared."""
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
    """Question for the features of rows within public bounds that predict a target."""

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
        """Choose a study of noisy products, or one noisy choice for each feature, by forecast."""
        # both methods divide by a public number: a row that does not count is the zero row
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
        """Return both methods, ranked by the largest expected noise on a covariance."""
        table, size = stepwise.table, stepwise.size
        publishing = plan_publishing(
            space, epsilon=stepwise.epsilon, mixing_probability=self.mixing_probability
        )
        mu = math.sqrt(publishing.calibration.mu_squared)
        return ranked(
            Method(
                name="stepwise",
                error=math.inf if table.halves is None else stepwise.noise,
                spends=f"ε on {size} choices and {size} fits, one by one",
                why="its noise grows with the number of chosen features, not of all features",
            ),
            Method(
                name="gram",
                error=GramQuery(table=table, precision=mu * stepwise.rows).noise,
                spends=f"ε on one of 10^{math.log10(space.size):.2g} sets, one Gram matrix",
                why="one internal query whatever the search; its noise grows with a row's length",
            ),
        )


def _search(study: Study, table: FeatureTable, size: int) -> list[int]:
    """Ask the study for the noisy Gram matrix, and return the best features by it."""
    query = GramQuery(table=table, precision=study.plan.mu * study.plan.rows)
    gram = study.covariance(Rowwise(query.columns), data_norm=query.norm, centered=False)
    return query.search(reveal(gram), size)


# -- What the tasks are, for advice and the command line ------------------------------------------

_MOST_THRESHOLDS = 80


def _tree(numbers: Numbers) -> tuple[Method, ...]:
    """Return the forecast of one choice among all trees over that number of thresholds."""
    count = as_count(numbers["thresholds"], "thresholds", minimum=1)
    require(count <= _MOST_THRESHOLDS, "thresholds", count, "at most 80 in all", "pass fewer")
    question = TreeQuestion(label="0", thresholds={"1": range(count)})
    plan = question.plan(Facts(rows=numbers["n"], columns=("0", "1")), numbers["epsilon"])
    chosen = Method(
        name="permute-and-flip",
        error=float(plan.error),  # type: ignore[arg-type]
        spends="ε on one choice among all trees",
        why="a row changes the number of rows that a tree classifies right by one",
    )
    return (chosen,)


TASKS: dict[str, Task] = {
    "select_features": Task(
        verb=select_features,
        page="choices",
        forecast=Forecast(
            unit="largest noise to expect in a covariance of features and target in [-1, 1]",
            call="zd.select_features(rows, target=…, size={size}, bounds=…, target_bounds=…, "
            "epsilon={epsilon})",
            methods=planned(
                FeaturesQuestion,
                columns=lambda numbers: numbers["dimension"] + 1,
                target=-1,
                bounds=(-1, 1),
                target_bounds=(-1, 1),
            ),
            needs={**TABLE, "size": "size=3"},
            typical={"dimension": 10, "size": 3},
            reliable="a guide to the choice, not the error of the choice",
            blind=lambda _: 1.0,
        ),
        command=Command(
            columns="several",
            target="target",
            options=("size", *METHOD),
            needs=("size",),
            publishes="the names of the chosen columns",
            example="select-features people.csv age income --target member --size 1",
        ),
        planner=Planner(
            title="Features that explain a target",
            fields=("n", "dimension", "size"),
            people=LABELED.replace("{kind}", "zd.number(0, 100)"),
            python='people, target="y", size={size}',
            shell="{names} --target y --size {size}",
        ),
    ),
    "decision_tree": Task(
        verb=decision_tree,
        page="models",
        forecast=Forecast(
            unit="largest expected part of the rows that only the best tree classifies right",
            call="zd.decision_tree(people, label=…, thresholds=…, epsilon={epsilon})",
            methods=_tree,
            needs={**ROWS, "thresholds": "thresholds=12"},
            typical={"thresholds": 12},
            reliable="a bound: choices are better where few trees are good",
            blind=lambda _: 0.5,
        ),
        command=Command(
            columns="several",
            target="label",
            options=("thresholds", "diagnostics"),
            publishes="splits and their labels",
            example="tree people.csv age income --target member --thresholds age=18,40",
        ),
        planner=Planner(
            title="Small decision tree",
            fields=("n", "thresholds"),
            people='columns = {"x": zd.number(0, 100), "y": zd.boolean()}\n'
            'people = zd.open("people.csv", columns=columns)\n',
            python='people, label="y", thresholds={"x": [{cuts}]}',
            shell="x --target y --thresholds x={cuts}",
        ),
    ),
}
