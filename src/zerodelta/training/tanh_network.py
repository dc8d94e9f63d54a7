"""A small network of tanh units with a public start, and its gradient row by row.

Features are scaled to [-1, 1] by public bounds. The start is deterministic: ridges in evenly spread
directions through quasi-random points, so that every part of the input is seen by some unit before
any data is. Only elementwise operations touch rows, so a row never depends on another (theory C0).
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtri

from zerodelta.data.row_queries import primes
from zerodelta.errors import require
from zerodelta.exact.arrays import Floats
from zerodelta.exact.rational import Rational, as_count, as_rational
from zerodelta.value import value

_MOST_UNITS = 1 << 16
_STEEPNESS = 4.0
"""Hidden units are tanh of this times Wx + b, and have weights of this size at the start:"""
_WEIGHT_IN_PLANE, _WEIGHT_ABOVE = 3.0, 1.0
"""Few ridges cover every direction of a plane; above, they must be smooth to see all of it."""

_GAIN = 22.0
"""Logits are multiplied by this over √units, so that parameters of size 1 decide."""

_LANES = 32
"""Rows are worked on in multiples of this, so that none is left over from a vector loop."""


@value
class TanhNetwork:
    """One hidden layer, tanh(4(Wx + b)), and one logit (two classes) or one for each class.

    The label is the last column of a row. A row with a NaN, or another label, counts as nothing.

    Parameters
    ----------
    lower, upper : tuple of numbers
        Public bounds of each feature, which is scaled to [-1, 1] by them.
    classes : tuple of numbers
        The public labels, at least two.
    units : int
        The number of hidden units.

    Examples
    --------
    >>> network = TanhNetwork(lower=(0, 0), upper=(1, 1), classes=(0, 1))
    >>> network.parameters, network.gradient(network.start(), np.ones((2, 3))).shape
    (33, (2, 33))

    """

    lower: tuple[Rational, ...]
    upper: tuple[Rational, ...]
    classes: tuple[float, ...] = (0, 1)
    units: int = 8

    def __post_init__(self) -> None:
        units = as_count(self.units, "units", minimum=1)
        require(units <= _MOST_UNITS, "units", units, "at most 2^16", "pass 8, say")
        require(
            self.lower and len(self.lower) == len(self.upper),
            "lower, upper",
            (self.lower, self.upper),
            expected="a lower and an upper bound for each feature",
            remedy="pass two tuples of the same length",
        )
        require(
            (self._ends()[0] < self._ends()[1]).all(),
            "lower, upper",
            (self.lower, self.upper),
            expected="lower < upper for each feature",
            remedy="drop constant columns and do not swap the ends",
        )
        require(
            len(set(map(float, self.classes))) == len(self.classes) >= 2,
            "classes",
            self.classes,
            expected="at least two different labels",
            remedy="pass the public labels, such as (0, 1)",
        )

    @property
    def inputs(self) -> int:
        """The number of features."""
        return len(self.lower)

    @property
    def outputs(self) -> int:
        """The number of logits: 1 for two classes."""
        return 1 if len(self.classes) == 2 else len(self.classes)

    @property
    def parameters(self) -> int:
        """The number of parameters."""
        return self.units * (self.inputs + 1) + self.outputs * (self.units + 1)

    def check_inputs(self, features: int) -> None:
        """Refuse rows with another number of features."""
        require(
            features == self.inputs,
            "rows",
            f"{features} features beside the label",
            expected=f"the {self.inputs} that the network's bounds are for",
            remedy="pass those columns and the label, or bounds for all of them",
        )

    @property
    def path(self) -> float:
        """How far descent is worth going without noise: the sum of all steps, gradients of 1."""
        return 160.0

    def start(self) -> Floats:
        """Return the public parameters from which descent starts, and around which it publishes."""
        points = 2 * _halton(self.units, self.inputs) - 1
        steepest = _WEIGHT_IN_PLANE if self.inputs <= 2 else _WEIGHT_ABOVE
        weights = _directions(self.units, self.inputs) * steepest
        biases = -(weights * points).sum(axis=1)
        unit = np.arange(self.units)
        if self.outputs == 1:
            outward = np.where(2 * unit < self.units, 1.0, -1.0)[None, :]
        else:
            own = unit * self.outputs // self.units == np.arange(self.outputs)[:, None]
            outward = np.where(own, 1.0, -1.0 / (self.outputs - 1))
        outward = outward / math.sqrt(self.units)
        return np.concatenate(
            [weights.reshape(-1), biases, outward.reshape(-1), np.zeros(self.outputs)]
        )

    def gradient(self, theta: Floats, rows: Floats) -> Floats:
        """Return the (n, parameters) gradients of the log-loss; NaN for rows that do not count."""
        outward = self._parts(theta)[2]
        scaled, hidden = self._hidden(theta, rows[:, : self.inputs])
        errors = self._errors(self._logits(theta, hidden), _in_lanes(rows[:, self.inputs :])[0])
        errors *= _GAIN / math.sqrt(self.units)
        result = np.empty((self.parameters, hidden.shape[1]))
        size = self.units * self.inputs
        for j in range(self.units):
            back = np.zeros(hidden.shape[1])
            for c in range(self.outputs):
                back += errors[c] * outward[c, j]
                result[size + self.units + c * self.units + j] = errors[c] * hidden[j]
            back *= _STEEPNESS * (1 - hidden[j] * hidden[j])
            for i in range(self.inputs):
                result[j * self.inputs + i] = back * scaled[i]
            result[size + j] = back
        for c in range(self.outputs):
            result[c - self.outputs] = errors[c]
        gradients: Floats = result[:, : len(rows)].T
        return gradients

    def logits(self, theta: Floats, features: Floats) -> Floats:
        """Return the (n, outputs) logits."""
        _, hidden = self._hidden(theta, features)
        logits: Floats = self._logits(theta, hidden)[:, : len(features)].T
        return logits

    def predict(self, theta: Floats, features: Floats) -> Floats:
        """Return the likeliest class of each row."""
        logits = self.logits(theta, features)
        chosen = logits[:, 0] > 0 if self.outputs == 1 else logits.argmax(axis=1)
        labels: Floats = np.array(self.classes, dtype=np.float64)[chosen.astype(np.int64)]
        return labels

    def _ends(self) -> tuple[Floats, Floats]:
        lower, upper = (
            np.array([float(as_rational(value, name)) for value in ends])
            for ends, name in ((self.lower, "lower"), (self.upper, "upper"))
        )
        return lower, upper

    def _parts(self, theta: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Return W, b, V, c."""
        sizes = [self.units * self.inputs, self.units, self.outputs * self.units]
        weights, biases, outward, offsets = np.split(theta, np.cumsum(sizes))
        return (
            weights.reshape(self.units, self.inputs),
            biases,
            outward.reshape(self.outputs, self.units),
            offsets,
        )

    def _hidden(self, theta: Floats, features: Floats) -> tuple[Floats, Floats]:
        """Return the scaled features, cut to [-1, 1], and the hidden units, one line each."""
        weights, biases, _, _ = self._parts(theta)
        lower, upper = self._ends()
        scaled = (_in_lanes(features) - lower[:, None]) * (2 / (upper - lower))[:, None] - 1
        np.clip(scaled, -1, 1, out=scaled)
        hidden = np.empty((self.units, scaled.shape[1]))
        for j in range(self.units):  # not BLAS, whose rounding depends on the batch
            hidden[j] = biases[j]
            for i in range(self.inputs):
                hidden[j] += weights[j, i] * scaled[i]
        hidden *= _STEEPNESS
        return scaled, np.tanh(hidden, out=hidden)

    def _logits(self, theta: Floats, hidden: Floats) -> Floats:
        _, _, outward, offsets = self._parts(theta)
        logits = np.empty((self.outputs, hidden.shape[1]))
        for c in range(self.outputs):
            logits[c] = offsets[c]
            for j in range(self.units):
                logits[c] += outward[c, j] * hidden[j]
        logits *= _GAIN / math.sqrt(self.units)
        return logits

    def _errors(self, logits: Floats, labels: Floats) -> Floats:
        """Return ∂loss/∂logit, one line each; NaN where the label is no class."""
        positions = np.full(len(labels), np.nan)
        for i, label in enumerate(self.classes):
            positions[labels == float(label)] = i
        if self.outputs == 1:
            errors: Floats = 1 / (1 + np.exp(-logits)) - positions
            return errors
        errors = np.exp(logits - logits.max(axis=0))
        total = errors[0].copy()
        for c in range(1, self.outputs):
            total += errors[c]
        errors /= total
        for c in range(self.outputs):
            errors[c] -= positions == c
        errors[:, np.isnan(positions)] = np.nan
        return errors


def _in_lanes(columns: Floats) -> Floats:
    """Return the columns as lines, filled up with zeros to a whole number of lanes."""
    lines = np.zeros((columns.shape[1], -(-len(columns) // _LANES) * _LANES))
    lines[:, : len(columns)] = columns.T
    return lines


def _directions(count: int, dimension: int) -> Floats:
    """Return unit vectors spread evenly: equal angles in the plane, quasi-random above."""
    if dimension == 2:
        angles = math.pi * np.arange(count) / count
        return np.stack([np.cos(angles), np.sin(angles)], axis=1)
    vectors = ndtri(_halton(count, dimension, skip=20)) if dimension > 1 else np.ones((count, 1))
    unit: Floats = vectors / np.sqrt((vectors * vectors).sum(axis=1, keepdims=True))
    return unit


def _halton(count: int, dimension: int, skip: int = 1) -> Floats:
    """Return the Halton points number skip, skip + 1, … of the unit cube."""
    points = np.empty((count, dimension))
    for i, base in enumerate(primes(dimension)):
        for j in range(count):
            number, share, total = j + skip, 1.0, 0.0
            while number:
                share /= base
                number, digit = divmod(number, base)
                total += digit * share
            points[j, i] = total
    return points
