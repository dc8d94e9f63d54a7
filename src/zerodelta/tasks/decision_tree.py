"""The best tree of depth two over public thresholds, chosen among all of them at once (C10.1).

How many rows a tree classifies right has sensitivity one, so that one score decides and
permute-and-flip over *all* trees is pure; splits need not pay off one by one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from zerodelta.data.dataset import Dataset
from zerodelta.data.rows import Rows
from zerodelta.data.rowwise import Column
from zerodelta.errors import is_list, require
from zerodelta.exact.bits import BitSource
from zerodelta.exact.rational import Rational, as_rational
from zerodelta.mechanisms.diagnostics import diagnosis
from zerodelta.mechanisms.selection import PermuteAndFlip
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.neighbors import Neighbors
from zerodelta.privacy.release import Release
from zerodelta.spine.facts import Facts
from zerodelta.spine.paying import Paying, debited
from zerodelta.spine.public_inputs import as_numbers
from zerodelta.spine.release_plan import ReleasePlan
from zerodelta.spine.run import ask
from zerodelta.training.feature_table import column_position
from zerodelta.training.trees import DecisionTree, Splits, tree_of, tree_scores
from zerodelta.value import value

if TYPE_CHECKING:
    from typing_extensions import Unpack

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
    bits: BitSource | None = None,
    **paying: Unpack[Paying],
) -> Release:
    """Release the tree of depth two that classifies (nearly) most rows right.

    Use it for a rule that people can read; like scikit-learn's `DecisionTreeClassifier` of depth
    2, but all 16 s³ trees over s public thresholds take part at once, so a first question that only
    pays off with the second (an exclusive or) is found.

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
        The two labels. A row with another one counts for no tree.
    thresholds : mapping of columns to lists of numbers
        The public questions "is this column above that?", 1 to 80 in all. A row with a missing
        cell in one of these columns counts for no tree.
    epsilon : int, float, Fraction or str
        The privacy parameter of this one release.
    diagnostics : number, optional
        The share of ε, such as "1/100", for `release.diagnostics`, of a data set: which fractions
        of the rows were used, clipped to the bounds, and unreadable.
    bits : BitSource, optional
        The random bits; default the operating system's.

    Returns
    -------
    Release
        `value`: a `DecisionTree`, with ``predict``.

    **Guarantee**: pure ε-DP by permute-and-flip (C10.1), `proven`.
    **Neighbors**: replace-one (the number of rows is public), or what the data set says: one unit,
    or add-remove, under which all scores move one way: half the noise (theory H).
    **Error**: rows classified right are at most (2/ε) ln(16 s³) fewer than the best tree's, on
    average (add-remove: half of that); the release says which part of all rows that is.

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
    beside = diagnosis(diagnostics, source)
    return ask(question, source, epsilon=epsilon, bits=bits, beside=beside)


@value
class TreeQuestion:
    """A tree over public thresholds is asked that classifies many rows right."""

    label: Column = -1
    classes: tuple[float, float] = (0, 1)
    thresholds: Mapping[Column, Sequence[Rational]] | None = None

    def plan(self, facts: Facts, epsilon: Rational) -> ReleasePlan[Rows]:
        """Plan one choice among all trees; the number of rows is only part of the forecast."""
        label = column_position(self.label, facts.columns, "label")
        splits = _splits(self.thresholds, facts.columns, label)
        listed = self.classes if isinstance(self.classes, tuple) else ()
        pair = tuple(float(as_rational(each, "classes")) for each in listed)
        two = len(pair) == 2 and pair[0] != pair[1]
        require(two, "classes", listed, expected="two labels", remedy="pass classes=(0, 1), say")
        added = facts.neighbors is Neighbors.ADD_REMOVE  # a row adds 0 or 1 to every score
        flip = PermuteAndFlip.for_epsilon(
            epsilon=epsilon, sensitivity=1, monotone=added, neighbors=facts.neighbors
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
    """Return (position, name, threshold) of every question that may be asked."""
    found = [
        (place, column, float(as_rational(value, "thresholds")))
        for column, values in (thresholds if isinstance(thresholds, Mapping) else {}).items()
        for place in [column_position(column, columns, "thresholds")]
        for value in (values if is_list(values) else [])
    ]
    require(
        found and 16 * len(found) ** 3 <= _MOST_TREES and label not in {i for i, _, _ in found},
        "thresholds",
        f"{len(found)} of them",
        expected="1 to 80 public thresholds in all, none of them of the label",
        remedy="pass thresholds={column: [20, 40, 60], …}, chosen without looking at the rows",
    )
    return found
