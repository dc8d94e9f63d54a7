"""Choose features, and trees of depth two, by private scores.

Only elementwise operations touch rows, and columns are added one by one, so that the numbers of a
row depend on that row alone and not on its batch (theory C0).
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
from zerodelta.errors import ParameterError, is_list, needed, require
from zerodelta.exact.arrays import Floats
from zerodelta.exact.bits import BitSource
from zerodelta.exact.fixed_point import FixedPoint
from zerodelta.exact.rational import Rational, as_rational
from zerodelta.mechanisms.selection import PermuteAndFlip
from zerodelta.mechanisms.sum_noise import KNorm
from zerodelta.privacy.parameters import Neighbors
from zerodelta.privacy.steps import Step
from zerodelta.value import published, value

_DEFAULT_NORM = 0.4
"""The default norm of features, over √d. Rows spread evenly over [-1, 1]^d have norm 0.58√d.
Scaling most of them down changes only their weights, and noise is proportional to the norm."""


@value(eq=False)
class FeatureTable:
    """The columns that are features, the target's column, and the public scaling of each.

    With bounds, features are clipped to them and scaled to [-1, 1]; so is the target. Then a row
    whose features are longer than `norm` is scaled down with its target and constant, which
    preserves a linear relation.
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
        """Check the public parameters and return the table of rows with these columns."""
        label = column_position(target, columns, "target")
        others: Sequence[Column] = [i for i in range(len(columns)) if i != label]
        listed = others if features is None else features if is_list(features) else []
        chosen = [column_position(column, columns, "features") for column in listed]
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
        default = (_DEFAULT_NORM if width > 2 else 1.0) * math.sqrt(width)
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
        """Return the targets scaled to [-1, 1]; NaN for a row that lacks a used cell."""
        scaled = (self._used(rows)[:, -1] - self.target_center) / self.target_half
        clipped: Floats = np.clip(scaled, -1.0, 1.0)
        return clipped

    def boxed(self, rows: Floats) -> Floats:
        """Return an array with a row for each feature, scaled to [-1, 1] if they have bounds.

        Rows of the table that lack a used cell are NaN.
        """
        columns = self._used(rows)[:, :-1].T
        if self.halves is None:
            return np.ascontiguousarray(columns)
        scaled = (columns - self.centers[:, None]) / self.halves[:, None]
        clipped: Floats = np.clip(scaled, -1.0, 1.0)
        return clipped

    def _used(self, rows: Floats) -> Floats:
        """Return the features and the target; a row that lacks one of them is all NaN."""
        return whole_rows(rows[:, [*self.features, self.target]])

    def within_norm(self, rows: Floats) -> tuple[Floats, Floats]:
        """Return features scaled down to the norm, an array row for each, and the factors <= 1."""
        columns = self.boxed(rows)
        squares = np.zeros(len(rows))
        for column in columns:
            squares += column * column
        factors = np.minimum(1.0, self.norm / np.sqrt(np.maximum(squares, 1e-300)))
        return columns * factors, factors


def column_position(column: Column, columns: Sequence[str], name: str) -> int:
    """Return the index of a column given by name, or by position (-1: the last)."""
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
    """Check the norm, whose square must be a float, too."""
    exact = as_rational(data_norm, "data_norm")
    usable = Fraction(1, 10**100) <= exact <= 10**100
    require(usable, "data_norm", data_norm, "a number between 1e-100 and 1e100", "pass 1, say")
    return float(exact)


def _ends(bounds: Bounds, width: int, name: str) -> tuple[Floats, Floats]:
    """Return the centers and half-widths of public bounds on `width` columns."""
    require(
        isinstance(bounds, (tuple, list)) and len(bounds) == 2,
        name,
        bounds,
        expected="a pair (lower, upper)",
        remedy="pass two numbers, or two lists with one number for each column",
    )
    box = FixedPoint.box(dimension=width, lower=bounds[0], upper=bounds[1], steps=1)
    center, half = (
        np.array([float(entry) for entry in part] if isinstance(part, tuple) else float(part))
        for part in (box.center, box.bound)
    )
    return np.broadcast_to(center, width), np.broadcast_to(half, width)


# -- Choose the k of d columns that explain a target best, from one noisy Gram matrix of (1, x, y) -
# The matrix is one internal query, and every search in it is free. It is made positive definite;
# then features are added one by one, and exchanged as long as that helps.

_MAXIMUM_EXCHANGES = 100
_CONSTANT = 0.05
"""Squared weight of the constant in the Gram matrix, relative to that of the features. It was
chosen by hand: the constant needs little precision, and its weight adds to the norm."""


@value(eq=False)
class GramQuery:
    """The internal query Σ k kᵀ with k = (constant, features, weighted target), ‖k‖ <= norm.

    In the Frobenius norm k kᵀ has sensitivity √2·norm², so off the diagonal the noise of a mean is
    norm²/(μ n), divided by the weights of its two columns. With more features the target's weight
    is smaller. `precision` is μ n, with μ the query's Gaussian DP parameter and n the rows.
    """

    table: FeatureTable
    precision: float

    @property
    def constant(self) -> float:
        """The weight of the constant 1."""
        return self.table.norm * math.sqrt(_CONSTANT)

    @property
    def target(self) -> float:
        """The weight κ of the target.

        The noise in a residual's covariance, (1+κ)²(t + 1/κ), is smallest at 2tκ² + κ = 1, where
        t = ‖β‖²·norm²/y² is about d/8 if the deviation of y is a third of its bound.
        """
        t = self.table.width / 8
        return self.table.norm * math.sqrt((math.sqrt(1 + 8 * t) - 1) / (4 * t))

    @property
    def norm(self) -> float:
        """The bound on the l2 norm of k."""
        return math.sqrt(self.table.norm**2 + self.constant**2 + self.target**2)

    @property
    def deviation(self) -> float:
        """The standard deviation of a noisy second moment of two features."""
        return self.norm**2 / self.precision

    @property
    def noise(self) -> float:
        """The expected largest noise, over features, in a covariance with the residual."""
        entry = self.deviation * math.sqrt(
            1 / self.target**2 + self.table.width / 8 / self.table.norm**2
        )
        return entry * math.sqrt(2 * math.log(self.table.width + 1))

    def columns(self, rows: Floats) -> Floats:
        """Return the vector k of each row."""
        features, factors = self.table.within_norm(rows)
        vectors = np.empty((len(rows), self.table.width + 2))
        vectors[:, 0] = self.constant * factors
        vectors[:, 1:-1] = features.T
        vectors[:, -1] = self.table.labels(rows) * self.target * factors
        return vectors

    def search(self, gram: Floats, size: int) -> list[int]:
        """Return the features that explain the target best, by a noisy Gram matrix."""
        # second moments of the residuals of a regression on the constant
        constant = gram[0, 1:] / math.sqrt(max(gram[0, 0], 2 * self.deviation))
        residual = gram[1:, 1:] - np.outer(constant, constant)
        covariance, with_target = residual[:-1, :-1], residual[:-1, -1] / self.target
        # the noise of a k x k submatrix has norm 2√k times that of an entry
        return best_subset(covariance, with_target, size, 2 * math.sqrt(size) * self.deviation)


def best_subset(covariance: Floats, with_target: Floats, size: int, ridge: float) -> list[int]:
    """Return `size` columns S with nearly the largest c_Sᵀ (Σ_S + ridge)⁻¹ c_S.

    >>> sigma = np.array([[1, 0.9, 0], [0.9, 1, 0], [0, 0, 1]])
    >>> sorted(best_subset(sigma, sigma @ [1, -1, 0.01], size=2, ridge=0.0))
    [0, 1]
    """
    sigma = positive(covariance, ridge)
    chosen: list[int] = []
    while len(chosen) < size:
        chosen.append(int(_gains(sigma, with_target, chosen).argmax()))
    explained = _explained(sigma, with_target, chosen)
    for _ in range(_MAXIMUM_EXCHANGES):
        best, best_columns = explained, chosen
        for i in range(size):
            kept = chosen[:i] + chosen[i + 1 :]
            gains = _gains(sigma, with_target, kept)
            total = _explained(sigma, with_target, kept) + float(gains.max())
            if total > best:
                best, best_columns = total, [*kept, int(gains.argmax())]
        if best <= explained * (1 + 1e-9) + 1e-300:
            break
        explained, chosen = best, best_columns
    return chosen


def positive(matrix: Floats, ridge: float) -> Floats:
    """Return the nearest positive semi-definite matrix, plus a ridge."""
    values, vectors = np.linalg.eigh(np.nan_to_num(matrix))
    smallest = 1e-12 * max(1.0, float(np.abs(values).max()))
    definite: Floats = (vectors * (np.maximum(values, 0.0) + max(ridge, smallest))) @ vectors.T
    return definite


def _explained(sigma: Floats, target: Floats, chosen: list[int]) -> float:
    """Return the part of the target's second moment that the chosen columns explain."""
    part = sigma[np.ix_(chosen, chosen)]
    return float(target[chosen] @ np.linalg.solve(part, target[chosen])) if chosen else 0.0


def _gains(sigma: Floats, target: Floats, chosen: list[int]) -> Floats:
    """Return how much more of the target each further column would explain; -1 if chosen."""
    covariance, variance = target.copy(), np.diagonal(sigma).copy()  # given the chosen columns
    if chosen:
        coefficients = np.linalg.solve(sigma[np.ix_(chosen, chosen)], sigma[chosen])
        covariance -= target[chosen] @ coefficients
        variance -= (sigma[chosen] * coefficients).sum(axis=0)
    gains: Floats = covariance**2 / np.maximum(variance, 1e-300)
    gains[chosen] = -1.0
    return gains


# -- Choose features one by one by permute-and-flip, with noisy fits in between (C10.1, C10.4) ----
# Each choice and each fit is pure by itself and known to the next, so ε is divided among them. This
# needs no internal query and no mixing.

_STEPS = 1 << 20
_CHOICE_SHARE = Fraction(3, 5)
"""The part of ε that choices take; fits take the rest. `bench/study_selection.py` compares the
result with other methods; the share was chosen by hand."""


@value(eq=False)
class Stepwise:
    """The choice of `size` features, pure ε-DP by basic composition.

    A choice takes the feature whose products with the residual have the largest sum in magnitude:
    integers with sensitivity two ranges where a row is replaced, one where it is added or removed.
    A fit then measures the products of the new feature with the constant, the earlier features,
    itself and the target, with l∞ K-norm noise.
    """

    table: FeatureTable
    size: int
    epsilon: Fraction
    rows: int
    """The number of rows, or the expected number where the exact one is private."""
    neighbors: Neighbors = Neighbors.REPLACE

    @property
    def noise(self) -> float:
        """A bound on the mean gap between the covariance of the best and the chosen feature.

        In units of the bounds: the scale 2·2/ε' of one choice (under add-remove 2/ε'), times ln d,
        over n.
        """
        choosing = float(_CHOICE_SHARE * self.epsilon)
        return (
            2
            * self._sensitivity
            / _STEPS
            * self.size
            * math.log(self.table.width + 1)
            / choosing
            / self.rows
        )

    @property
    def _sensitivity(self) -> int:
        """The sensitivity of a sum of products, in steps."""
        return _STEPS if self.neighbors is Neighbors.ADD_REMOVE else 2 * _STEPS

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps of the certificate: `size` choices and as many fits."""
        once = self._choice().step(), self._fit(1).step(quantum=Fraction(1, _STEPS))
        return tuple(step.times(self.size) for step in once)

    def select(self, rows: Rows, bits: BitSource) -> tuple[int, ...]:
        """Return the indices of the chosen features among all features, sorted."""
        gram, target, chosen = np.ones((1, 1)), np.zeros(0), list[int]()
        for _ in range(self.size):
            products, ridge = self._measured(rows, chosen, bits)
            gram, target = _with_column(gram, products[:-1]), np.append(target, products[-1])
            weights = np.linalg.solve(positive(gram, ridge), target)
            chosen.append(self._next(rows, chosen, weights, bits))
        return tuple(sorted(chosen))

    def _next(self, rows: Rows, chosen: list[int], weights: Any, bits: BitSource) -> int:
        """Choose the next feature, by its products with the residual of the last fit."""
        table, candidates = self.table, [j for j in range(self.table.width) if j not in chosen]
        sums = _sum(rows, lambda block: with_residual(table, block, chosen, weights), table.width)
        return candidates[self._choice().select([abs(int(sums[j])) for j in candidates], bits)]

    def _choice(self) -> PermuteAndFlip:
        """Return the mechanism of one choice."""
        return PermuteAndFlip.for_epsilon(
            epsilon=_CHOICE_SHARE * self.epsilon / self.size,
            sensitivity=self._sensitivity,
            neighbors=self.neighbors,
        )

    def _fit(self, width: int) -> KNorm:
        """Return the noise of one fit, on `width` sums."""
        part = (1 - _CHOICE_SHARE) * self.epsilon / self.size
        return KNorm.for_epsilon(
            epsilon=part,
            norm=math.inf,
            dimension=width,
            sensitivity=self._sensitivity,
            neighbors=self.neighbors,
        )

    def _measured(self, rows: Rows, chosen: list[int], bits: BitSource) -> tuple[Floats, float]:
        """Return noisy mean products of the newest column, and the expected noise of one."""
        table, width = self.table, len(chosen) + 2 if chosen else 1
        noise, unit = self._fit(width), _STEPS * self.rows
        sums = _sum(rows, lambda block: new_products(table, block, chosen), width)
        return noise.apply(sums, bits).astype(np.float64) / unit, noise.error() / unit


def _sum(rows: Rows, function: Any, width: int) -> Any:
    """Return the exact integer sum of a function with `width` values in [-1, 1]."""
    return rows.sum(function, FixedPoint.box(dimension=width, lower=-1, upper=1, steps=_STEPS))


def _with_column(gram: Floats, products: Floats) -> Floats:
    """Append a column's products to the matrix of second moments; no products: unchanged."""
    return np.block([[gram, products[:-1, None]], [products]]) if len(products) else gram


def with_residual(table: FeatureTable, rows: Floats, chosen: list[int], weights: Floats) -> Floats:
    """Return each feature times the residual of the fit, clipped to [-1, 1], row by row."""
    columns = table.boxed(rows)
    residual = table.labels(rows) - weights[0]
    for j, weight in zip(chosen, weights[1:], strict=True):
        residual -= weight * columns[j]
    products: Floats = (columns * np.clip(residual, -1.0, 1.0)).T
    return products


def new_products(table: FeatureTable, rows: Floats, chosen: list[int]) -> Floats:
    """Return the products of the newest column with the constant, chosen features and target.

    Before the first choice that column is the constant, and its only new product the target.
    """
    labels = table.labels(rows)
    if not chosen:
        return labels
    columns = table.boxed(rows)
    newest = columns[chosen[-1]]
    parts = [newest, *(newest * columns[j] for j in chosen), newest * labels]
    return np.stack(parts, axis=1)


# -- Trees of depth two over public thresholds, scored by the rows that they classify correctly ---

Splits: TypeAlias = list[tuple[int, Column, float]]
"""Position, name and threshold of each possible split."""

_LABELS = ((0, 0), (0, 1), (1, 0), (1, 1))


@published
@value
class Split:
    """A split of one column at a threshold; `labels` are those of rows below and above it."""

    column: Column
    threshold: float
    labels: tuple[float, float]


@published
@value
class DecisionTree:
    """A tree of depth two: one split, then a split of each of its sides.

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
        """Return the label of each row of an array or a data frame; predictions reveal the rows."""
        table, columns = public_table(rows), ArraySource(rows).columns

        def is_above(split: Split | DecisionTree) -> npt.NDArray[np.bool_]:
            mask: npt.NDArray[np.bool_] = (
                table[:, column_position(split.column, columns, "column")] > split.threshold
            )
            return mask

        below, above = (
            np.where(is_above(side), side.labels[1], side.labels[0])
            for side in (self.below, self.above)
        )
        labels: Floats = np.where(is_above(self), above, below).astype(np.float64)
        return labels


def tree_of(index: int, splits: Splits, classes: tuple[float, ...]) -> DecisionTree:
    """Return the tree whose score has this index in the flattened `tree_scores`."""

    def side(option: int) -> Split:
        """Return the split, and the class on each side of it, that an option stands for."""
        place, labels = divmod(option, len(_LABELS))
        below, above = (classes[c] for c in _LABELS[labels])
        _, column, threshold = splits[place]
        return Split(column=column, threshold=threshold, labels=(below, above))

    sides = len(_LABELS) * len(splits)
    root, pair = divmod(index, sides**2)
    below, above = divmod(pair, sides)
    _, column, threshold = splits[root]
    return DecisionTree(column=column, threshold=threshold, below=side(below), above=side(above))


def tree_scores(
    rows: Rows, splits: Splits, label: int, classes: tuple[float, ...]
) -> npt.NDArray[Any]:
    """Return the number of rows that each tree classifies correctly: by root, side below, above.

    A side is a split and its two labels, 4·split + 2·(label below) + (label above). Each score has
    sensitivity one.
    """
    low, high = _correct([_pair_counts(rows, splits, label, value) for value in classes])
    scores: npt.NDArray[Any] = low[:, :, None] + high[:, None, :]
    return scores


def _pair_counts(rows: Rows, splits: Splits, label: int, value: float) -> npt.NDArray[Any]:
    """Return the number of rows of one class above each pair of thresholds (0: no threshold)."""
    used = sorted({place for place, _, _ in splits})

    def above(block: Floats) -> Floats:
        counted = (block[:, label] == value) & ~np.isnan(block[:, used]).any(axis=1)
        masks = [block[:, place] > threshold for place, _, threshold in splits]
        return np.stack([counted, *(counted & mask for mask in masks)], axis=1).astype(np.float64)

    lattice = FixedPoint.box(dimension=len(splits) + 1, lower=-1, upper=1, steps=1)
    return rows.gram(above, lattice)


def _correct(tables: list[npt.NDArray[Any]]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return the correct rows below and above each root, by (second split, labels).

    `tables` are the pair counts of each class. Inclusion and exclusion turn counts above pairs of
    thresholds into counts in the four quadrants.
    """
    low, high = [], []
    for labels in _LABELS:
        x, y = (tables[c] for c in labels)  # the classes labeled below and above the second split
        high.append(x[1:, :1] - x[1:, 1:] + y[1:, 1:])
        low.append(x[0, 0] - x[1:, :1] - x[:1, 1:] + x[1:, 1:] + y[:1, 1:] - y[1:, 1:])
    count = len(tables[0]) - 1
    return (
        np.stack(low, axis=2).reshape(count, -1),
        np.stack(high, axis=2).reshape(count, -1),
    )
