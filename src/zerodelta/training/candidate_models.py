"""Models that a study can train: each knows its own descent, and scores rows one by one."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import field
from typing import Any

import numpy as np

from zerodelta.data.internal import reveal
from zerodelta.data.rowwise import Column, Rowwise
from zerodelta.errors import require
from zerodelta.exact.arrays import Floats
from zerodelta.exact.rational import Rational, as_positive
from zerodelta.spaces import Ball
from zerodelta.training.feature_table import column_position
from zerodelta.training.loss_functions import Hinge, Huber, Logistic, Loss, Multinomial, Squared
from zerodelta.training.tanh_network import TanhNetwork
from zerodelta.value import value

_AVERAGED = 5
"""One in so many iterates of a descent, the last ones, are averaged."""

_STAY = 0.25
"""The noise that a descent may gather in each direction."""


class Model(ABC):
    """A candidate that is trained inside a study, by noisy gradients, and scores rows.

    Built-in models touch rows elementwise only, so what they ask is `proven`.
    """

    features: Sequence[Column]
    label: Column

    @abstractmethod
    def start(self, columns: tuple[str, ...]) -> Floats:
        """Return the public parameters to start from; refuses columns that are not there."""

    @abstractmethod
    def gradient(self, parameters: Floats, rows: Floats, columns: tuple[str, ...]) -> Floats:
        """Return the (n, d) gradients of the rows."""

    @abstractmethod
    def score(self, parameters: Floats, rows: Floats, columns: tuple[str, ...]) -> Floats:
        """Return how well each row is predicted, from 0 to 1."""

    @property
    @abstractmethod
    def travel(self) -> tuple[float, float]:
        """The clipping norm of a gradient, and the longest path of a descent."""

    def train(self, study: Any, rounds: int, columns: tuple[str, ...], mu: float) -> Floats:
        """Return parameters after `rounds` noisy steps of linearly decreasing length.

        Along a path of length L the noise adds up to 2L/(μ n) in each direction, however many
        steps it takes; so L is at most what the μ of this model can bear.
        """
        theta, kept = self.start(columns), []
        clip, longest = self.travel
        length = min(longest, _STAY * mu * study.plan.rows / 2)
        for t in range(rounds):
            step = length / clip * 2 * (rounds - t) / (rounds * (rounds + 1))
            query = self._gradient_at(theta, columns)
            theta = theta - step * reveal(study.gradient(query, clip=clip))
            if (rounds - t) * _AVERAGED <= rounds + _AVERAGED:
                kept.append(theta)
        return np.asarray(np.mean(kept, axis=0), dtype=np.float64)

    def _gradient_at(self, parameters: Floats, columns: tuple[str, ...]) -> Rowwise:
        return Rowwise(lambda rows: self.gradient(parameters, rows, columns))

    def _positions(self, columns: tuple[str, ...]) -> list[int]:
        """Return the places of the features, and of the label."""
        places = [column_position(column, columns, "features") for column in self.features]
        return [*places, column_position(self.label, columns, "label")]


@value
class NetworkModel(Model):
    """A small tanh network on some of the columns; its score is 1 for a row it classifies right.

    Parameters
    ----------
    features : sequence of columns
        Names or positions of the feature columns.
    label : column
        The label's name or position; the last column by default.
    lower, upper : tuple of numbers
        Public bounds of each feature.
    classes : tuple of numbers
        The public labels; a row with any other label counts as nothing.
    units : int
        The number of hidden units.
    clip : number
        The l2 norm to which the gradient of a row is clipped.

    Examples
    --------
    >>> model = NetworkModel(features=("a", "b"), label="y", lower=(0, 0), upper=(1, 1))
    >>> model.start(("y", "a", "b")).shape
    (33,)

    """

    features: Sequence[Column]
    label: Column = -1
    lower: tuple[Rational, ...]
    upper: tuple[Rational, ...]
    classes: tuple[float, ...] = (0, 1)
    units: int = 8
    clip: Rational = 1
    network: TanhNetwork = field(init=False, repr=False)

    def __post_init__(self) -> None:
        made = TanhNetwork(
            lower=self.lower, upper=self.upper, classes=self.classes, units=self.units
        )
        object.__setattr__(self, "network", made)
        as_positive(self.clip, "clip")

    @property
    def travel(self) -> tuple[float, float]:
        """The clipping norm, and 320 of it."""
        return float(as_positive(self.clip, "clip")), 320.0

    def start(self, columns: tuple[str, ...]) -> Floats:
        """Return the network's public start."""
        self._positions(columns)
        return self.network.start()

    def gradient(self, parameters: Floats, rows: Floats, columns: tuple[str, ...]) -> Floats:
        """Return the gradients of the log-loss."""
        return self.network.gradient(parameters, rows[:, self._positions(columns)])

    def score(self, parameters: Floats, rows: Floats, columns: tuple[str, ...]) -> Floats:
        """Return 1 for rows that are classified right."""
        taken = rows[:, self._positions(columns)]
        right = self.network.predict(parameters, taken[:, :-1]) == taken[:, -1]
        scores: Floats = np.where(np.isnan(taken).any(axis=1), np.nan, right)
        return scores


@value
class LinearModel(Model):
    """A linear predictor on some of the columns (with a constant), trained by a built-in loss.

    Parameters
    ----------
    features : sequence of columns
        Names or positions of the feature columns.
    label : column
        The label's name or position; the last column by default.
    loss : Logistic, Multinomial, Hinge, Squared or Huber
        What is minimized.
    data_norm : number
        A public bound on the l2 norm of a row's features, to which rows are clipped.
    radius : number
        Of the l2 ball onto which parameters are projected before a gradient is taken.
    worst : number
        The score of a row is 1 - loss/`worst`, clipped to [0, 1].

    Examples
    --------
    >>> from zerodelta.training.loss_functions import Logistic
    >>> LinearModel(features=(0, 1), loss=Logistic(), data_norm=1).start(("0", "1", "2")).shape
    (3,)

    """

    features: Sequence[Column]
    label: Column = -1
    loss: Loss
    data_norm: Rational
    radius: Rational = 10
    worst: Rational = 1

    def __post_init__(self) -> None:
        require(
            type(self.loss) in (Logistic, Hinge, Squared, Huber, Multinomial),  # elementwise
            "loss",
            type(self.loss),
            expected="Logistic, Multinomial, Hinge, Squared or Huber",
            remedy="train any other loss by a function: select_model(train=…, score=…)",
        )
        for name in ("data_norm", "radius", "worst"):
            as_positive(getattr(self, name), name)

    @property
    def travel(self) -> tuple[float, float]:
        """The loss's own bound on a gradient, and twice the diameter of the ball."""
        norm, radius = as_positive(self.data_norm, "data_norm"), as_positive(self.radius, "radius")
        slope = self.loss.slope_bound(2 * norm * radius)
        # a row with its constant is √2 times longer
        return float(slope) * math.sqrt(2) * float(norm), 4.0 * float(radius)

    def start(self, columns: tuple[str, ...]) -> Floats:
        """Return zeros."""
        return np.zeros(len(self._positions(columns)) * self.loss.outputs)

    def gradient(self, parameters: Floats, rows: Floats, columns: tuple[str, ...]) -> Floats:
        """Return the gradients of the loss."""
        features, labels = self._read(rows, columns)
        inside: Any = Ball(len(parameters), as_positive(self.radius, "radius")).project(parameters)
        return self.loss.gradients(np.asarray(inside), features, labels)

    def score(self, parameters: Floats, rows: Floats, columns: tuple[str, ...]) -> Floats:
        """Return 1 - loss/worst, clipped to [0, 1]."""
        features, labels = self._read(rows, columns)
        margins = np.zeros((len(rows), self.loss.outputs))
        for j, weight in enumerate(parameters.reshape(-1, self.loss.outputs)):
            margins += features[:, [j]] * weight
        losses = self.loss.value(
            margins[:, 0] if self.loss.outputs == 1 else margins, self.loss.read(labels)
        )
        scores: Floats = np.clip(1 - losses / float(as_positive(self.worst, "worst")), 0.0, 1.0)
        return scores

    def _read(self, rows: Floats, columns: tuple[str, ...]) -> tuple[Floats, Floats]:
        taken = rows[:, self._positions(columns)]
        features, norm = taken[:, :-1].copy(), float(as_positive(self.data_norm, "data_norm"))
        squares = np.zeros(len(rows))
        for j in range(features.shape[1]):
            squares += features[:, j] * features[:, j]
        features *= np.minimum(1.0, norm / np.sqrt(np.maximum(squares, 1e-300)))[:, None]
        return np.column_stack([features, np.full(len(rows), norm)]), taken[:, -1]
