"""Choosing features and small trees: what is read of a row, and how many rows each explains.

Only elementwise operations touch rows and columns are added one by one, so that what is made of a
row depends on that row alone, whatever the batch (theory C0).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from zerodelta.data.arrays import ArraySource, public_table
from zerodelta.data.row_queries import Bounds
from zerodelta.data.rows import Rows
from zerodelta.data.rowwise import Column, whole_rows
from zerodelta.errors import ParameterError, is_list, require
from zerodelta.exact.arrays import Floats
from zerodelta.exact.bits import BitSource
from zerodelta.exact.fixed_point import FixedPoint
from zerodelta.exact.rational import Rational, as_rational
from zerodelta.mechanisms.selection import PermuteAndFlip
from zerodelta.mechanisms.sum_noise import KNorm
from zerodelta.privacy.parameters import Neighbors
from zerodelta.privacy.steps import Step
from zerodelta.spine.public_inputs import needed
from zerodelta.value import value

_TYPICAL = 0.4
"""A row spread evenly over [-1, 1]^d has norm 0.58√d; scaling most rows down to 0.4√d costs little,
for it only weighs rows, and noise follows the norm."""


@value(eq=False)
class FeatureTable:
    """Which columns are features, which is the target, and the public scaling of each.

    With bounds, features are clipped to them and scaled to [-1, 1]; so is the target. Then a row
    whose features are longer than `norm` is scaled down as a whole, which leaves a linear relation
    as it is.
    """

    features: tuple[int, ...]
    target: int
    centers: Floats
    halves: Floats | None
    norm: float
    target_center: float
    target_half: float

    @classmethod
    def of(
        cls,
        columns: Sequence[str],
        *,
        target: Column,
        features: Sequence[Column] | None,
        bounds: Bounds | None,
        data_norm: Rational | None,
        target_bounds: Bounds | None,
    ) -> FeatureTable:
        """Return the table of rows with these columns; what is malformed or missing is refused."""
        label = column_position(target, columns, "target")
        others: Sequence[Column] = [i for i in range(len(columns)) if i != label]
        wanted = others if features is None else features if is_list(features) else []
        chosen = [column_position(column, columns, "features") for column in wanted]
        require(
            chosen and label not in chosen and len(set(chosen)) == len(chosen),
            "features",
            features,
            expected="different columns, at least one, without the target",
            remedy="name the columns to choose from",
        )
        if data_norm is None:
            remedy = "pass bounds=(lower, upper), one pair for all or two lists, or data_norm="
            needed(bounds, "bounds", remedy)
        remedy = "pass target_bounds=(lower, upper); the target is clipped to it"
        center, half = _ends(needed(target_bounds, "target_bounds", remedy), 1, "target_bounds")
        width = len(chosen)
        centers, halves = (
            (np.zeros(width), None) if bounds is None else _ends(bounds, width, "bounds")
        )
        default = (_TYPICAL if width > 2 else 1.0) * math.sqrt(width)
        return cls(
            features=tuple(chosen),
            target=label,
            centers=centers,
            halves=halves,
            norm=default if data_norm is None else _as_norm(data_norm),
            target_center=float(center[0]),
            target_half=float(half[0]),
        )

    @property
    def width(self) -> int:
        """The number of features."""
        return len(self.features)

    def labels(self, rows: Floats) -> Floats:
        """Return the targets on [-1, 1]; NaN for a row in which a used cell is missing."""
        scaled = (self._used(rows)[:, -1] - self.target_center) / self.target_half
        clipped: Floats = np.clip(scaled, -1.0, 1.0)
        return clipped

    def boxed(self, rows: Floats) -> Floats:
        """Return the features, one line each, on [-1, 1] if they have bounds.

        NaN for a row in which a used cell is missing.
        """
        columns = self._used(rows)[:, :-1].T
        if self.halves is None:
            return np.ascontiguousarray(columns)
        scaled = (columns - self.centers[:, None]) / self.halves[:, None]
        clipped: Floats = np.clip(scaled, -1.0, 1.0)
        return clipped

    def _used(self, rows: Floats) -> Floats:
        return whole_rows(rows[:, [*self.features, self.target]])

    def within_norm(self, rows: Floats) -> tuple[Floats, Floats]:
        """Return features, one line each, and the factors <= 1 that scale rows down to the norm."""
        columns = self.boxed(rows)
        squares = np.zeros(len(rows))
        for column in columns:
            squares += column * column
        factors = np.minimum(1.0, self.norm / np.sqrt(np.maximum(squares, 1e-300)))
        return columns * factors, factors


def column_position(column: Column, columns: Sequence[str], name: str) -> int:
    """Return the place of a column given by name, or by position (-1: the last)."""
    if isinstance(column, str) and column in columns:
        return list(columns).index(column)
    if type(column) is int and -len(columns) <= column < len(columns):
        return column % len(columns)
    raise ParameterError(
        name,
        column,
        expected=f"one of {list(columns)[:10]}, or its position",
        remedy="name a column of the rows",
    )


def _as_norm(data_norm: Rational) -> float:
    exact = as_rational(data_norm, "data_norm")
    usable = Fraction(1, 10**100) <= exact <= 10**100  # its square is a float, too
    require(usable, "data_norm", data_norm, "a number between 1e-100 and 1e100", "pass 1, say")
    return float(exact)


def _ends(bounds: Bounds, width: int, name: str) -> tuple[Floats, Floats]:
    """Return the centers and half-widths of public bounds on so many columns."""
    require(
        isinstance(bounds, (tuple, list)) and len(bounds) == 2,
        name,
        bounds,
        expected="a pair (lower, upper)",
        remedy="pass two numbers, or two lists with one number for each column",
    )
    box = FixedPoint.box(dimension=width, lower=bounds[0], upper=bounds[1], steps=1)
    center, half = (
        np.array([float(part) for part in given] if isinstance(given, tuple) else float(given))
        for given in (box.center, box.bound)
    )
    return np.broadcast_to(center, width), np.broadcast_to(half, width)


# -- Which k of d columns explain a target best, from one noisy Gram matrix of (1, x, y) ----------
# The matrix is one internal query, whatever is then searched: it is made positive definite,
# features are added one by one and exchanged as long as that helps.

_MOST_EXCHANGES = 100
_CONSTANT = 0.05
"""Squared weight of the constant in the Gram matrix, relative to the features'."""


@value(eq=False)
class GramQuery:
    """The internal query: k = (constant, features, weighted target), within a public norm.

    In the Frobenius norm k kᵀ has sensitivity √2·norm², so beside the diagonal the noise is
    norm²/(μ n), less by the weights on both sides. The more features, the less is spent on the
    target. `precision` is μ n, of the query and of its rows.
    """

    table: FeatureTable
    precision: float

    @property
    def constant(self) -> float:
        """What stands for the constant 1."""
        return self.table.norm * math.sqrt(_CONSTANT)

    @property
    def target(self) -> float:
        """The weight κ of the target.

        (1+κ)²(t + 1/κ), the noise in a residual's covariance, is least at 2tκ² + κ = 1, where
        t = ‖β‖²·norm²/y² is about d/8 if y's deviation is a third of its bound.
        """
        t = self.table.width / 8
        return self.table.norm * math.sqrt((math.sqrt(1 + 8 * t) - 1) / (4 * t))

    @property
    def norm(self) -> float:
        """The l2 norm of k, at most."""
        return math.sqrt(self.table.norm**2 + self.constant**2 + self.target**2)

    @property
    def deviation(self) -> float:
        """The noise of a second moment of two features."""
        return self.norm**2 / self.precision

    @property
    def noise(self) -> float:
        """The largest noise to expect in the covariance of a feature and a residual."""
        entry = self.deviation * math.sqrt(
            1 / self.target**2 + self.table.width / 8 / self.table.norm**2
        )
        return entry * math.sqrt(2 * math.log(self.table.width + 1))

    def columns(self, rows: Floats) -> Floats:
        """Return the k of each row."""
        features, factors = self.table.within_norm(rows)
        made = np.empty((len(rows), self.table.width + 2))
        made[:, 0] = self.constant * factors
        made[:, 1:-1] = features.T
        made[:, -1] = self.table.labels(rows) * self.target * factors
        return made

    def search(self, gram: Floats, size: int) -> list[int]:
        """Return the features to choose by a noisy Gram matrix."""
        # what is left after a regression on the constant
        constant = gram[0, 1:] / math.sqrt(max(gram[0, 0], 2 * self.deviation))
        rest = gram[1:, 1:] - np.outer(constant, constant)
        covariance, with_target = rest[:-1, :-1], rest[:-1, -1] / self.target
        # the noise of a k x k part has norm 2√k times that of an entry
        return best_subset(covariance, with_target, size, 2 * math.sqrt(size) * self.deviation)


def best_subset(covariance: Floats, with_target: Floats, size: int, ridge: float) -> list[int]:
    """Return the columns S, of this size, with (nearly) the largest c_Sᵀ (Σ_S + ridge)⁻¹ c_S.

    >>> sigma = np.array([[1, 0.9, 0], [0.9, 1, 0], [0, 0, 1]])
    >>> sorted(best_subset(sigma, sigma @ [1, -1, 0.01], size=2, ridge=0.0))
    [0, 1]
    """
    sigma = positive(covariance, ridge)
    chosen: list[int] = []
    while len(chosen) < size:
        chosen.append(int(_gains(sigma, with_target, chosen).argmax()))
    explained = _explained(sigma, with_target, chosen)
    for _ in range(_MOST_EXCHANGES):
        best, found = explained, chosen
        for i in range(size):
            kept = chosen[:i] + chosen[i + 1 :]
            gains = _gains(sigma, with_target, kept)
            total = _explained(sigma, with_target, kept) + float(gains.max())
            if total > best:
                best, found = total, [*kept, int(gains.argmax())]
        if best <= explained * (1 + 1e-9) + 1e-300:
            break
        explained, chosen = best, found
    return chosen


def positive(matrix: Floats, ridge: float) -> Floats:
    """Return the nearest positive semi-definite matrix, plus a ridge."""
    values, vectors = np.linalg.eigh(np.nan_to_num(matrix))
    least = 1e-12 * max(1.0, float(np.abs(values).max()))
    clean: Floats = (vectors * (np.maximum(values, 0.0) + max(ridge, least))) @ vectors.T
    return clean


def _explained(sigma: Floats, target: Floats, chosen: list[int]) -> float:
    part = sigma[np.ix_(chosen, chosen)]
    return float(target[chosen] @ np.linalg.solve(part, target[chosen])) if chosen else 0.0


def _gains(sigma: Floats, target: Floats, chosen: list[int]) -> Floats:
    """Return what each further column would explain; -1 for those chosen already."""
    rest, variance = target.copy(), np.diagonal(sigma).copy()
    if chosen:
        across = np.linalg.solve(sigma[np.ix_(chosen, chosen)], sigma[chosen])
        rest -= target[chosen] @ across
        variance -= (sigma[chosen] * across).sum(axis=0)
    gains: Floats = rest**2 / np.maximum(variance, 1e-300)
    gains[chosen] = -1.0
    return gains


# -- Choosing features one by one: permute-and-flip, and noisy fits in between (C10.1, C10.4) -----
# Every choice and every fit is pure and visible to the next, so ε is divided among them; nothing
# is internal and no random set is mixed in.

_STEPS = 1 << 20
_CHOOSING = Fraction(3, 5)
"""The part of ε that choices take; fits take the rest."""


@value(eq=False)
class Stepwise:
    """Chooses `size` features, pure ε-DP by basic composition.

    A choice takes the feature whose products with the residual have the largest sum in magnitude:
    integers that a replaced row moves by two ranges, one that comes or goes by one. A fit then
    measures the products of the new feature with the constant, the earlier ones, itself and the
    target, with l∞ K-norm noise.
    """

    table: FeatureTable
    size: int
    epsilon: Fraction
    rows: int
    """The number of rows, or where that is private one to plan with."""
    neighbors: Neighbors = Neighbors.REPLACE

    @property
    def noise(self) -> float:
        """How far a choice's covariance with the residual may fall behind the best, at most.

        On average, in units of the bounds: the scale 2·2/ε' of one choice (under add-remove 2/ε'),
        times ln d, over n.
        """
        choosing = float(_CHOOSING * self.epsilon)
        return (
            2
            * self._moves
            / _STEPS
            * self.size
            * math.log(self.table.width + 1)
            / choosing
            / self.rows
        )

    @property
    def _moves(self) -> int:
        return _STEPS if self.neighbors is Neighbors.ADD_REMOVE else 2 * _STEPS

    @property
    def steps(self) -> tuple[Step, ...]:
        """What is proved: `size` choices and as many fits."""
        taken = self._choice().step(), self._fit(1).step(quantum=Fraction(1, _STEPS))
        return tuple(step.times(self.size) for step in taken)

    def select(self, rows: Rows, bits: BitSource) -> tuple[int, ...]:
        """Return the positions of the chosen features, among the features."""
        gram, target, chosen = np.ones((1, 1)), np.zeros(0), list[int]()
        for _ in range(self.size):
            products, ridge = self._measured(rows, chosen, bits)
            gram, target = _grown(gram, products[:-1]), np.append(target, products[-1])
            weights = np.linalg.solve(positive(gram, ridge), target)
            chosen.append(self._next(rows, chosen, weights, bits))
        return tuple(sorted(chosen))

    def _next(self, rows: Rows, chosen: list[int], weights: Any, bits: BitSource) -> int:
        table, left = self.table, [j for j in range(self.table.width) if j not in chosen]
        sums = _sum(rows, lambda block: with_residual(table, block, chosen, weights), table.width)
        return left[self._choice().select([abs(int(sums[j])) for j in left], bits)]

    def _choice(self) -> PermuteAndFlip:
        return PermuteAndFlip.for_epsilon(
            epsilon=_CHOOSING * self.epsilon / self.size,
            sensitivity=self._moves,
            neighbors=self.neighbors,
        )

    def _fit(self, width: int) -> KNorm:
        part = (1 - _CHOOSING) * self.epsilon / self.size
        return KNorm.for_epsilon(
            epsilon=part,
            norm=math.inf,
            dimension=width,
            sensitivity=self._moves,
            neighbors=self.neighbors,
        )

    def _measured(self, rows: Rows, chosen: list[int], bits: BitSource) -> tuple[Floats, float]:
        """Return noisy mean products of the newest column, and the noise to expect in one."""
        table, width = self.table, len(chosen) + 2 if chosen else 1
        noise, unit = self._fit(width), _STEPS * self.rows
        sums = _sum(rows, lambda block: new_products(table, block, chosen), width)
        return noise.apply(sums, bits).astype(np.float64) / unit, noise.error() / unit


def _sum(rows: Rows, function: Any, width: int) -> Any:
    return rows.sum(function, FixedPoint.box(dimension=width, lower=-1, upper=1, steps=_STEPS))


def _grown(gram: Floats, products: Floats) -> Floats:
    """Return the second moments with those of one more column (none yet: as they are)."""
    return np.block([[gram, products[:-1, None]], [products]]) if len(products) else gram


def with_residual(table: FeatureTable, rows: Floats, chosen: list[int], weights: Floats) -> Floats:
    """Return each feature times what the fit leaves of the target, on [-1, 1]."""
    columns = table.boxed(rows)
    residual = table.labels(rows) - weights[0]
    for j, weight in zip(chosen, weights[1:], strict=True):
        residual -= weight * columns[j]
    products: Floats = columns * np.clip(residual, -1.0, 1.0)
    across: Floats = products.T
    return across


def new_products(table: FeatureTable, rows: Floats, chosen: list[int]) -> Floats:
    """Return the newest column times constant, chosen features and target (first: the target)."""
    labels = table.labels(rows)
    if not chosen:
        return labels
    columns = table.boxed(rows)
    newest = columns[chosen[-1]]
    parts = [newest, *(newest * columns[j] for j in chosen), newest * labels]
    return np.stack(parts, axis=1)


# -- Trees of depth two over public thresholds, and how many rows each classifies right -----------

Splits: TypeAlias = list[tuple[int, Column, float]]
"""Position, name and threshold of every question that may be asked."""

_LABELS = ((0, 0), (0, 1), (1, 0), (1, 1))


@value
class Split:
    """A question of one column: is it above the threshold? `labels` are for no and yes."""

    column: Column
    threshold: float
    labels: tuple[float, float]


@value
class DecisionTree:
    """First one question, then another one that depends on its answer.

    >>> yes = Split(column=1, threshold=0.5, labels=(1, 0))
    >>> no = Split(column=1, threshold=0.5, labels=(0, 1))
    >>> tree = DecisionTree(column=0, threshold=0.5, below=no, above=yes)
    >>> tree.predict(np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])).tolist()
    [0.0, 1.0, 1.0, 0.0]
    """

    column: Column
    threshold: float
    below: Split
    above: Split

    def predict(self, rows: Any) -> Floats:
        """Return the label of each row of an array or a data frame; predictions are not private."""
        table, columns = public_table(rows), ArraySource(rows).columns

        def answers(split: Split | DecisionTree) -> npt.NDArray[np.bool_]:
            above: npt.NDArray[np.bool_] = (
                table[:, column_position(split.column, columns, "column")] > split.threshold
            )
            return above

        below, above = (
            np.where(answers(side), side.labels[1], side.labels[0])
            for side in (self.below, self.above)
        )
        labels: Floats = np.where(answers(self), above, below).astype(np.float64)
        return labels


def tree_of(index: int, splits: Splits, classes: tuple[float, ...]) -> DecisionTree:
    """Return the tree whose score has this place among all `tree_scores`."""

    def side(option: int) -> Split:
        place, labels = divmod(option, len(_LABELS))
        no, yes = (classes[c] for c in _LABELS[labels])
        _, column, threshold = splits[place]
        return Split(column=column, threshold=threshold, labels=(no, yes))

    sides = len(_LABELS) * len(splits)
    root, rest = divmod(index, sides**2)
    below, above = divmod(rest, sides)
    _, column, threshold = splits[root]
    return DecisionTree(column=column, threshold=threshold, below=side(below), above=side(above))


def tree_scores(
    rows: Rows, splits: Splits, label: int, classes: tuple[float, ...]
) -> npt.NDArray[Any]:
    """Return how many rows each tree classifies right: by root, side below, side above.

    A side is a split and its two labels, 4·split + 2·(label for no) + (label for yes). Every entry
    has sensitivity one.
    """
    low, high = _right([_pairs(rows, splits, label, value) for value in classes])
    scores: npt.NDArray[Any] = low[:, :, None] + high[:, None, :]
    return scores


def _pairs(rows: Rows, splits: Splits, label: int, value: float) -> npt.NDArray[Any]:
    """Return how many rows of one class are above each two thresholds (0: no threshold)."""
    used = sorted({place for place, _, _ in splits})

    def above(block: Floats) -> Floats:
        counted = (block[:, label] == value) & ~np.isnan(block[:, used]).any(axis=1)
        answers = [block[:, place] > threshold for place, _, threshold in splits]
        return np.stack([counted, *(counted & yes for yes in answers)], axis=1).astype(np.float64)

    lattice = FixedPoint.box(dimension=len(splits) + 1, lower=-1, upper=1, steps=1)
    return rows.gram(above, lattice)


def _right(tables: list[npt.NDArray[Any]]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return the rows classified right below and above each root, by (second split, labels)."""
    low, high = [], []
    for labels in _LABELS:
        no, yes = (tables[c] for c in labels)
        high.append(no[1:, :1] - no[1:, 1:] + yes[1:, 1:])
        low.append(no[0, 0] - no[1:, :1] - no[:1, 1:] + no[1:, 1:] + yes[:1, 1:] - yes[1:, 1:])
    count = len(tables[0]) - 1
    return (
        np.stack(low, axis=2).reshape(count, -1),
        np.stack(high, axis=2).reshape(count, -1),
    )
