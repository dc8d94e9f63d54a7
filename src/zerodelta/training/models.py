"""Define models that a study can train: linear, a small tanh network, and a PyTorch module.

Features are scaled to [-1, 1] by public bounds. Only elementwise operations touch rows, so the
numbers of a row never depend on another row (theory C0).
"""

from __future__ import annotations

import copy
import importlib
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
from scipy.special import ndtri

from zerodelta.data.isolation import reveal
from zerodelta.data.row_queries import primes
from zerodelta.data.rowwise import Column, Rowwise
from zerodelta.errors import ParameterError, require
from zerodelta.exact.arrays import Floats
from zerodelta.exact.rational import Rational, as_count, as_positive, as_rational
from zerodelta.spaces import Ball
from zerodelta.training.features import column_position
from zerodelta.training.losses import Hinge, Huber, Logistic, Loss, Multinomial, Squared
from zerodelta.value import published, value

_MAXIMUM_UNITS = 1 << 16

# The constants of the network were chosen by hand; they set the scale of its parameters, and
# privacy does not depend on them. `bench/study_training.py` prints the accuracy.

_STEEPNESS = 4.0
"""Hidden units are tanh(steepness · (Wx + b))."""

_PLANE_WEIGHT, _HIGHER_WEIGHT = 3.0, 1.0
"""The norm of a hidden unit's weights at the start. In a plane a few steep units cover every
direction; with more features units must be smoother to respond to all of the input."""

_GAIN = 22.0
"""Logits are multiplied by gain/√units, so that parameters of size 1 give confident predictions."""

_LANES = 32
"""The number of rows of a block is a multiple of this, so that SIMD loops round all rows alike."""


@published
@value
class TanhNetwork:
    """One hidden layer, tanh(4(Wx + b)), and one logit (two classes) or one for each class.

    The label is the last column of a row. A row with a NaN, or another label, has gradient 0.

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
        require(units <= _MAXIMUM_UNITS, "units", units, "at most 2^16", "pass 8, say")
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
            remedy="drop constant columns, and pass the lower bounds first",
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
            f"{features} features and the label",
            expected=f"the {self.inputs} features that the network has bounds for",
            remedy="pass those columns and the label, or bounds for all columns",
        )

    @property
    def path(self) -> float:
        """The sum of the step sizes of a descent without noise, for gradients of norm 1."""
        return 160.0

    def start(self) -> Floats:
        """Return the public start of a descent, which is the center of the published ball.

        The start is deterministic. Hidden units are ridges in evenly spread directions through
        quasi-random points, so that some unit responds to every part of the input. Each unit votes
        for one class.
        """
        points = 2 * _halton(self.units, self.inputs) - 1
        norm = _PLANE_WEIGHT if self.inputs <= 2 else _HIGHER_WEIGHT
        weights = _directions(self.units, self.inputs) * norm
        biases = -(weights * points).sum(axis=1)
        unit = np.arange(self.units)
        if self.outputs == 1:
            outward = np.where(2 * unit < self.units, 1.0, -1.0)[None, :]
        else:
            is_class = unit * self.outputs // self.units == np.arange(self.outputs)[:, None]
            outward = np.where(is_class, 1.0, -1.0 / (self.outputs - 1))
        outward = outward / math.sqrt(self.units)
        return np.concatenate(
            [weights.reshape(-1), biases, outward.reshape(-1), np.zeros(self.outputs)]
        )

    def gradient(self, theta: Floats, rows: Floats) -> Floats:
        """Return the (n, parameters) gradients of the log loss; NaN for unusable rows."""
        outward = self._parts(theta)[2]
        scaled, hidden = self._hidden(theta, rows[:, : self.inputs])
        errors = self._errors(self._logits(theta, hidden), _in_lanes(rows[:, self.inputs :])[0])
        errors *= _GAIN / math.sqrt(self.units)
        result = np.empty((self.parameters, hidden.shape[1]))
        size = self.units * self.inputs
        for j in range(self.units):
            propagated = np.zeros(hidden.shape[1])  # the derivative in unit j's input
            for c in range(self.outputs):
                propagated += errors[c] * outward[c, j]
                result[size + self.units + c * self.units + j] = errors[c] * hidden[j]
            propagated *= _STEEPNESS * (1 - hidden[j] * hidden[j])
            for i in range(self.inputs):
                result[j * self.inputs + i] = propagated * scaled[i]
            result[size + j] = propagated
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
        """Return the most likely class of each row."""
        logits = self.logits(theta, features)
        chosen = logits[:, 0] > 0 if self.outputs == 1 else logits.argmax(axis=1)
        labels: Floats = np.array(self.classes, dtype=np.float64)[chosen.astype(np.int64)]
        return labels

    def _ends(self) -> tuple[Floats, Floats]:
        """Return the lower and the upper bounds as floats."""
        lower, upper = (
            np.array([float(as_rational(value, name)) for value in ends])
            for ends, name in ((self.lower, "lower"), (self.upper, "upper"))
        )
        return lower, upper

    def _parts(self, theta: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Split θ into the weights W and biases b of units, and V and c of logits."""
        sizes = [self.units * self.inputs, self.units, self.outputs * self.units]
        weights, biases, outward, offsets = np.split(theta, np.cumsum(sizes))
        return (
            weights.reshape(self.units, self.inputs),
            biases,
            outward.reshape(self.outputs, self.units),
            offsets,
        )

    def _hidden(self, theta: Floats, features: Floats) -> tuple[Floats, Floats]:
        """Return arrays with a row for each feature, scaled to [-1, 1], and each hidden unit."""
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
        """Return an array with a row for each logit."""
        _, _, outward, offsets = self._parts(theta)
        logits = np.empty((self.outputs, hidden.shape[1]))
        for c in range(self.outputs):
            logits[c] = offsets[c]
            for j in range(self.units):
                logits[c] += outward[c, j] * hidden[j]
        logits *= _GAIN / math.sqrt(self.units)
        return logits

    def _errors(self, logits: Floats, labels: Floats) -> Floats:
        """Return ∂loss/∂logit, an array row for each logit; NaN where the label is not a class."""
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
    """Return the transposed array, padded with zeros to a multiple of `_LANES`."""
    padded = np.zeros((columns.shape[1], -(-len(columns) // _LANES) * _LANES))
    padded[:, : len(columns)] = columns.T
    return padded


def _directions(count: int, dimension: int) -> Floats:
    """Return evenly spread unit vectors: at equal angles in a plane, quasi-random above."""
    if dimension == 2:
        angles = math.pi * np.arange(count) / count
        return np.stack([np.cos(angles), np.sin(angles)], axis=1)
    vectors = ndtri(_halton(count, dimension, skip=20)) if dimension > 1 else np.ones((count, 1))
    unit: Floats = vectors / np.sqrt((vectors * vectors).sum(axis=1, keepdims=True))
    return unit


def _halton(count: int, dimension: int, skip: int = 1) -> Floats:
    """Return the Halton points skip, skip + 1, … in the unit cube, a quasi-random sequence."""
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


# -- Models that a study can train: a descent, and a score of each row ----------------------------

_AVERAGED = 5
"""The last fifth of the iterates of a descent is averaged."""

_MAXIMUM_NOISE = 0.25
"""The noise that a descent may accumulate in each direction; a longer path is shortened. It was
chosen by hand; `bench/study_selection.py` prints the choice among models that are trained so."""


class Model(ABC):
    """A model that a study trains by noisy gradients, and that scores rows from 0 to 1.

    Built-in models touch rows elementwise only, so their queries are `proven`.
    """

    features: Sequence[Column]
    label: Column

    @abstractmethod
    def start(self, columns: tuple[str, ...]) -> Floats:
        """Return the public start of a descent; refuse columns that do not exist."""

    @abstractmethod
    def gradient(self, parameters: Floats, rows: Floats, columns: tuple[str, ...]) -> Floats:
        """Return the (n, d) gradients of the rows."""

    @abstractmethod
    def score(self, parameters: Floats, rows: Floats, columns: tuple[str, ...]) -> Floats:
        """Return a score of each row's prediction, from 0 to 1."""

    @property
    @abstractmethod
    def travel(self) -> tuple[float, float]:
        """The clipping norm of a gradient, and the longest path of a descent."""

    def train(self, study: Any, rounds: int, columns: tuple[str, ...], mu: float) -> Floats:
        """Return parameters after `rounds` noisy steps of linearly decreasing length.

        Along a path of length L the noise adds up to 2L/(μ n) in each direction, however many
        steps it takes. So L is limited by `_MAXIMUM_NOISE` and this model's μ.
        """
        theta, averaged = self.start(columns), []
        clip, longest = self.travel
        length = min(longest, _MAXIMUM_NOISE * mu * study.plan.rows / 2)
        for t in range(rounds):
            step = length / clip * 2 * (rounds - t) / (rounds * (rounds + 1))
            query = self._gradient_at(theta, columns)
            theta = theta - step * reveal(study.gradient(query, clip=clip))
            if (rounds - t) * _AVERAGED <= rounds + _AVERAGED:
                averaged.append(theta)
        return np.asarray(np.mean(averaged, axis=0), dtype=np.float64)

    def _gradient_at(self, parameters: Floats, columns: tuple[str, ...]) -> Rowwise:
        """Return the query of the gradients at these parameters."""
        return Rowwise(lambda rows: self.gradient(parameters, rows, columns))

    def _positions(self, columns: tuple[str, ...]) -> list[int]:
        """Return the column indices of the features and, last, the label."""
        features = [column_position(column, columns, "features") for column in self.features]
        return [*features, column_position(self.label, columns, "label")]


@value
class NetworkModel(Model):
    """A small tanh network on some columns; its score is 1 for a correctly classified row.

    Parameters
    ----------
    features : sequence of columns
        Names or positions of the feature columns.
    label : column
        The label's name or position; the last column by default.
    lower, upper : tuple of numbers
        Public bounds of each feature.
    classes : tuple of numbers
        The public labels; a row with any other label has gradient and score 0.
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
        network = TanhNetwork(
            lower=self.lower, upper=self.upper, classes=self.classes, units=self.units
        )
        object.__setattr__(self, "network", network)
        as_positive(self.clip, "clip")

    @property
    def travel(self) -> tuple[float, float]:
        """The clipping norm, and a path of length 320 for gradients of norm 1."""
        return float(as_positive(self.clip, "clip")), 320.0

    def start(self, columns: tuple[str, ...]) -> Floats:
        """Return the network's public start."""
        self._positions(columns)
        return self.network.start()

    def gradient(self, parameters: Floats, rows: Floats, columns: tuple[str, ...]) -> Floats:
        """Return the gradients of the log loss."""
        return self.network.gradient(parameters, rows[:, self._positions(columns)])

    def score(self, parameters: Floats, rows: Floats, columns: tuple[str, ...]) -> Floats:
        """Return 1 for correctly classified rows, else 0; NaN for rows with missing cells."""
        used = rows[:, self._positions(columns)]
        correct = self.network.predict(parameters, used[:, :-1]) == used[:, -1]
        scores: Floats = np.where(np.isnan(used).any(axis=1), np.nan, correct)
        return scores


@value
class LinearPredictor(Model):
    """A linear predictor on some columns and a constant, trained by a built-in loss.

    Parameters
    ----------
    features : sequence of columns
        Names or positions of the feature columns.
    label : column
        The label's name or position; the last column by default.
    loss : Logistic, Multinomial, Hinge, Squared or Huber
        The loss that is minimized.
    data_norm : number
        A public bound on the l2 norm of a row's features, to which rows are clipped.
    radius : number
        The radius of the l2 ball to which parameters are projected before a gradient is taken.
    worst : number
        The score of a row is 1 - loss/`worst`, clipped to [0, 1].

    Examples
    --------
    >>> from zerodelta.training.losses import Logistic
    >>> LinearPredictor(features=(0, 1), loss=Logistic(), data_norm=1).start(("0", "1", "2")).shape
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
        """The loss's bound on a gradient, and twice the diameter of the ball."""
        norm, radius = as_positive(self.data_norm, "data_norm"), as_positive(self.radius, "radius")
        slope = self.loss.slope_bound(2 * norm * radius)
        # a row with its constant is √2 times longer
        return float(slope) * math.sqrt(2) * float(norm), 4.0 * float(radius)

    def start(self, columns: tuple[str, ...]) -> Floats:
        """Return zeros, one for each parameter."""
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
        """Return features clipped to the norm with a constant column, and the labels."""
        used = rows[:, self._positions(columns)]
        features, norm = used[:, :-1].copy(), float(as_positive(self.data_norm, "data_norm"))
        squares = np.zeros(len(rows))
        for j in range(features.shape[1]):
            squares += features[:, j] * features[:, j]
        features *= np.minimum(1.0, norm / np.sqrt(np.maximum(squares, 1e-300)))[:, None]
        return np.column_stack([features, np.full(len(rows), norm)]), used[:, -1]


# -- Torch model ----------------------------------------------------------------------------------
# Gradients of each row of a torch module, in float64 on the CPU. torch is imported when it is first
# needed (`pip install zerodelta[torch]`); no other file uses it.


@final
@dataclass(frozen=True, slots=True)
class TorchModel:
    """A torch module and its loss, for `Study.minimize`; the label is the last column of a row.

    The trained vector consists of the flattened tensors of ``module.parameters()`` that require a
    gradient. It is `asserted` that the module treats rows one by one, and that torch's rounding
    does, too.

    Parameters
    ----------
    module : torch.nn.Module
        It is copied and put in evaluation mode: no dropout, and batch normalization by its public
        running statistics.
    loss : callable
        loss(output, label) of one row, such as ``torch.nn.functional.cross_entropy``.
    classes : int, optional
        If passed, labels are the integers 0..classes-1, and a row with another label has gradient
        0; otherwise labels are floats.

    """

    module: Any
    loss: Callable[[Any, Any], Any]
    classes: int | None = None
    _double: Any = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        torch = _torch()
        if not isinstance(self.module, torch.nn.Module):
            raise ParameterError(
                "module", type(self.module), expected="a torch.nn.Module", remedy="pass one"
            )
        double = copy.deepcopy(self.module).to(device="cpu", dtype=torch.float64).eval()
        object.__setattr__(self, "_double", double)
        if not self._named():
            raise ParameterError(
                "module",
                "no parameters",
                expected="parameters that require a gradient",
                remedy="pass a module that can be trained",
            )

    @property
    def parameters(self) -> int:
        """The number of parameters."""
        return sum(size for _, size in self.layers())

    def layers(self) -> list[tuple[str, int]]:
        """Return the name and the size of each parameter tensor, in the order of the vector."""
        return [(name, tensor.numel()) for name, tensor in self._named()]

    def start(self) -> Floats:
        """Return the module's current parameters, the start of a descent: they must be public."""
        flat = [tensor.detach().numpy().reshape(-1) for _, tensor in self._named()]
        return np.concatenate(flat).astype(np.float64)

    def load(self, theta: Floats) -> Any:
        """Return a copy of the module with these parameters, in the module's precision."""
        torch = _torch()
        trained = copy.deepcopy(self.module)
        named, start = dict(trained.named_parameters()), 0
        with torch.no_grad():
            for name, size in self.layers():
                part = torch.from_numpy(np.array(theta[start : start + size]))
                named[name].copy_(part.reshape(named[name].shape))
                start += size
        return trained

    def gradient(self, theta: Floats, rows: Floats) -> Floats:
        """Return the (n, parameters) gradients of the rows; NaN for unusable rows."""
        torch = _torch()
        values, start = {}, 0
        for name, tensor in self._named():
            part = torch.from_numpy(np.array(theta[start : start + tensor.numel()]))
            values[name] = part.reshape(tensor.shape)
            start += tensor.numel()
        fixed = {
            **dict(self._double.named_buffers()),
            **{n: p.detach() for n, p in self._double.named_parameters() if n not in values},
        }
        features, labels = torch.from_numpy(rows[:, :-1].copy()), rows[:, -1].copy()
        counted = np.isfinite(rows).all(axis=1)
        if self.classes is not None:
            counted &= (labels >= 0) & (labels < self.classes) & (labels == np.floor(labels))
        labels[~counted] = 0.0
        features[torch.from_numpy(~counted)] = 0.0
        targets = torch.from_numpy(labels)
        if self.classes is not None:
            targets = targets.long()

        def row_loss(parameters: Any, x: Any, y: Any) -> Any:
            output = torch.func.functional_call(
                self._double, ({**fixed, **parameters},), (x.unsqueeze(0),)
            )
            return self.loss(output.squeeze(0), y).sum()

        row_gradients = torch.func.vmap(torch.func.grad(row_loss), in_dims=(None, 0, 0))
        tensors = row_gradients(values, features, targets)
        flat = [tensors[name].reshape(len(rows), -1).detach().numpy() for name in values]
        gradients: Floats = np.concatenate(flat, axis=1).astype(np.float64)
        gradients[~counted] = np.nan
        return gradients

    def _named(self) -> list[tuple[str, Any]]:
        """Return the names and tensors of the parameters that are trained."""
        return [(n, p) for n, p in self._double.named_parameters() if p.requires_grad]


def _torch() -> Any:
    """Import torch, or refuse with the command that installs it."""
    try:
        return importlib.import_module("torch")
    except ImportError as error:
        raise ParameterError(
            "torch",
            "not installed",
            expected="torch 2.1 or later",
            remedy="pip install 'zerodelta[torch]'",
        ) from error
