"""Define the losses of objective perturbation, in floats with proven radii and in Arb (C9).

Linear predictors ("margins") and slopes are arrays of shape (outputs, rows): one output for a
scalar loss, one per class for softmax. The gradient is Σ row ⊗ slope.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
from flint import arb

from zerodelta.exact.arrays import Floats
from zerodelta.exact.float_balls import FloatBalls
from zerodelta.exact.logs import ball
from zerodelta.value import value

_LOWEST = -690.0
"""The smallest exponent for which e^x is computed; below, it is 0 with radius `_UNDERFLOW`."""

_UNDERFLOW = 2.0**-990


class CertifiedLoss(ABC):
    """A convex function of each row's margins, infinitely often differentiable."""

    outputs: int
    """The number of margins of a row."""
    only_differences: bool
    """Whether adding one number to all margins of a row leaves the loss unchanged."""
    curvature_bound: float
    """A bound on the eigenvalues of a row's second derivative in the margins."""

    @abstractmethod
    def slope(self, margins: Floats, where: slice) -> Floats:
        """Return the derivatives in the margins of the rows `where`, in plain floats."""

    @abstractmethod
    def slope_balls(self, margins: FloatBalls, where: slice) -> FloatBalls:
        """Return the derivatives with proven radii; all lie in [-1, 1]."""

    @abstractmethod
    def slope_arb(self, margins: list[arb], row: int) -> list[arb]:
        """Return one row's derivatives at the working precision of Arb."""

    @abstractmethod
    def curvature(self, margins: Floats, where: slice) -> Any:
        """Return the numbers that determine second derivatives, in plain floats.

        `hessian_product` and `pair_weights` take them as `curvature`.
        """

    @abstractmethod
    def hessian_product(self, curvature: Any, change: Floats) -> Floats:
        """Return second derivative times `change`, row by row, in plain floats."""

    @abstractmethod
    def pair_weights(self, curvature: Any, first: int, second: int) -> Floats:
        """Return each row's second derivative in the margins `first` and `second`."""

    @abstractmethod
    def thinned(self, every: int) -> CertifiedLoss:
        """Return the loss of every k-th row."""


class _OneOutput(CertifiedLoss):
    """A loss of one margin: second derivatives are numbers."""

    outputs = 1
    only_differences = False
    curvature_bound = 1.0

    def hessian_product(self, curvature: Floats, change: Floats) -> Floats:
        """Return curvature times change."""
        return curvature * change

    def pair_weights(self, curvature: Floats, first: int, second: int) -> Floats:
        """Return the curvature of the only output."""
        weights: Floats = curvature[0]
        return weights


@value
class BalancedLogistic(_OneOutput):
    """The balanced logistic loss of roundness a > 0 and shift m₀ >= 0 (theory C9).

    With u(m) = ((m - m₀) + √((m - m₀)² + 4a²))/2 the slope is -e^-u, at most 1 in size, and the
    curvature e^-u u²/(u² + a²). At m₀ = 0 the slopes at m and -m have the ratio e^-m, as those of
    the logistic loss, so the minimizer estimates log-odds. Rows are multiplied by the sign of
    their label.

    Both numbers are dyadic with at most 20 bits, so that a², 4a² and m₀ are floats.
    """

    roundness: Fraction
    shift: Fraction

    def slope(self, margins: Floats, where: slice) -> Floats:
        """Return -e^-u."""
        slopes = np.exp(self._negative_level(margins))
        return np.negative(slopes, out=slopes)

    def slope_balls(self, margins: FloatBalls, where: slice) -> FloatBalls:
        """Return -e^-u.

        With s the sign of the middle of x = m - m₀ and w = s·x, the number (w + √(w² + 4a²))/2 is
        u if s = 1 and a²/u if s = -1, for either sign of x itself. It adds numbers of one sign, so
        no digits cancel.
        """
        square = float(self.roundness**2)
        zero = np.zeros(1)
        shifted = margins + FloatBalls(zero - float(self.shift), zero)
        size = FloatBalls(np.abs(shifted.middle), shifted.radius)
        root = (size * size + FloatBalls(zero + 4 * square, zero)).sqrt()
        double = size + root
        far = FloatBalls(double.middle * 0.5, double.radius * 0.5)
        near = FloatBalls(zero + square, zero) / far
        right = shifted.middle >= 0
        level = FloatBalls(
            np.where(right, far.middle, near.middle), np.where(right, far.radius, near.radius)
        )
        return -_exp_of_negative(-level)

    def slope_arb(self, margins: list[arb], row: int) -> list[arb]:
        """Return -e^-u."""
        x = margins[0] - ball(self.shift)
        root = (x * x + 4 * ball(self.roundness) ** 2).sqrt()
        return [-(-(x + root) / 2).exp()]

    def curvature(self, margins: Floats, where: slice) -> Floats:
        """Return e^-u u²/(u² + a²)."""
        level = self._negative_level(margins)
        squared = level * level
        curved = np.exp(level, out=level)
        curved *= squared
        squared += float(self.roundness**2)
        curved /= squared
        return curved

    def thinned(self, every: int) -> BalancedLogistic:
        """Return the loss itself: labels are in the rows."""
        return self

    def _negative_level(self, margins: Floats) -> Floats:
        """Return -u; where digits cancel, the absolute error is as small as that of m - m₀."""
        shifted = margins - float(self.shift)
        level = shifted * shifted
        level += 4 * float(self.roundness**2)
        np.sqrt(level, out=level)
        level += shifted
        level *= -0.5
        return level


@value(eq=False)
class PseudoHuber(_OneOutput):
    """√(1 + r²) - 1 of the residual r = prediction - target; slopes are below 1.

    Targets are in units of the threshold between the quadratic and the linear part.
    """

    targets: Floats

    def slope(self, margins: Floats, where: slice) -> Floats:
        """Return r/√(1 + r²)."""
        residual = margins - self.targets[where]
        return residual / np.sqrt(1 + residual * residual)

    def slope_balls(self, margins: FloatBalls, where: slice) -> FloatBalls:
        """Return r/√(1 + r²), in which no digits cancel."""
        targets = self.targets[where].reshape(1, -1)
        residual = margins + FloatBalls(-targets, np.zeros(1))
        return residual / (residual * residual + 1).sqrt()

    def slope_arb(self, margins: list[arb], row: int) -> list[arb]:
        """Return r/√(1 + r²)."""
        residual = margins[0] - arb(float(self.targets[row]))
        return [residual / (1 + residual * residual).sqrt()]

    def curvature(self, margins: Floats, where: slice) -> Floats:
        """Return (1 + r²)^(-3/2)."""
        residual = margins - self.targets[where]
        weight = 1 / np.sqrt(1 + residual * residual)
        return weight * weight * weight

    def thinned(self, every: int) -> PseudoHuber:
        """Return the loss of every k-th target."""
        return PseudoHuber(targets=self.targets[::every])


@value(eq=False)
class Softmax(CertifiedLoss):
    """The softmax loss of labels 0..C-1, whose slopes p - e_y have norm at most √2.

    `shift` is added to all logits but that of the label. A zero row may have any label: its slope
    is multiplied by 0.
    """

    outputs: int
    labels: npt.NDArray[np.int64]
    shift: Fraction

    only_differences = True
    curvature_bound = 0.5

    def slope(self, margins: Floats, where: slice) -> Floats:
        """Return p - e_y."""
        probabilities = self._probabilities(margins, where)
        probabilities[self._label_entries(where)] -= 1
        return probabilities

    def slope_balls(self, margins: FloatBalls, where: slice) -> FloatBalls:
        """Return p - e_y, from logits less the largest one so that no power overflows."""
        one_hot = np.zeros(margins.middle.shape)
        one_hot[self._label_entries(where)] = 1.0
        exact = np.zeros(1)
        logits = margins + FloatBalls((1 - one_hot) * float(self.shift), exact)
        largest = logits.middle.max(axis=0, keepdims=True)
        powers = _exp_of_negative(logits + FloatBalls(-largest, exact))
        return powers / powers.total() + FloatBalls(-one_hot, exact)

    def slope_arb(self, margins: list[arb], row: int) -> list[arb]:
        """Return p - e_y."""
        label = int(self.labels[row])
        shift = ball(self.shift)
        logits = [m if j == label else m + shift for j, m in enumerate(margins)]
        largest = max(logits, key=lambda logit: float(logit.mid()))
        powers = [(logit - largest).exp() for logit in logits]
        total = sum(powers, arb(0))
        return [power / total - (1 if j == label else 0) for j, power in enumerate(powers)]

    def curvature(self, margins: Floats, where: slice) -> Floats:
        """Return the probabilities p; the second derivative is diag(p) - ppᵀ."""
        return self._probabilities(margins, where)

    def hessian_product(self, curvature: Floats, change: Floats) -> Floats:
        """Return p ∘ z - p (p · z) for each row."""
        weighted = curvature * change
        weighted -= curvature * weighted.sum(axis=0)
        return weighted

    def pair_weights(self, curvature: Floats, first: int, second: int) -> Floats:
        """Return p_a (1 - p_a), or -p_a p_b."""
        weights: Floats = curvature[first] * ((first == second) - curvature[second])
        return weights

    def thinned(self, every: int) -> Softmax:
        """Return the loss of every k-th label."""
        return Softmax(outputs=self.outputs, labels=self.labels[::every], shift=self.shift)

    def _probabilities(self, margins: Floats, where: slice) -> Floats:
        """Return the softmax of the shifted logits, in plain floats."""
        logits = margins + float(self.shift)
        logits[self._label_entries(where)] -= float(self.shift)
        logits -= logits.max(axis=0)
        np.exp(logits, out=logits)
        logits /= logits.sum(axis=0)
        return logits

    def _label_entries(self, where: slice) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.intp]]:
        """Return the index of each row's label in an array of shape (outputs, rows)."""
        labels = self.labels[where]
        return labels, np.arange(len(labels))


def _exp_of_negative(exponent: FloatBalls) -> FloatBalls:
    """Return e^x for numbers that are at most about 0, also where it underflows.

    Below -690 the result is 0 ± 2^-990. `FloatBalls.exp` is valid from -700 on.
    """
    far = exponent.middle + exponent.radius < _LOWEST
    inside = FloatBalls(np.where(far, _LOWEST, exponent.middle), exponent.radius)
    near = inside.exp()
    return FloatBalls(np.where(far, 0.0, near.middle), np.where(far, _UNDERFLOW, near.radius))


# -- Rows and parameters as integers, whose products BLAS computes exactly ------------------------
# A row of length at most 1 is k / 2^22 with integers k. Parameters and slopes are cut into limbs,
# integers so small that the partial sums of all products stay below 2^53: float64 adds them
# exactly, in any order (theory C0).

ROW_BITS = 22
STEPS = 1 << ROW_BITS
"""The largest length of an integer row."""

SLOPE_BITS = 18
_BLOCK_ROWS = 1 << 13
"""The largest number of rows of a block. Its sum of rows times slope limbs of at most 2^18 is then
exact: 2^22 · 2^18 · 2^13 = 2^53."""

_HIGH_BITS = 29
"""The size of the high limb of a parameter, in bits."""

_LOWEST_EXPONENT = -960
_BLOCK_ENTRIES = 1 << 17
"""The number of entries of a block: 1 MiB, so that it stays in the second-level cache."""


def parameter_bits(dimension: int) -> int:
    """Return the width s in bits of parameter limbs: ‖k‖ ‖limb‖ <= 2^22 · 2^(s-1) √d <= 2^52."""
    return 31 - math.ceil(math.log2(dimension) / 2)


@value(eq=False)
class IntegerRows:
    """An (n, d) array of integers held as float64; the l2 length of a row is at most 2^22."""

    values: Floats

    @property
    def count(self) -> int:
        """The number n of rows, zero rows included."""
        return int(self.values.shape[0])

    @property
    def dimension(self) -> int:
        """The number d of columns, the intercept's included."""
        return int(self.values.shape[1])

    def blocks(self) -> Iterator[tuple[slice, Floats]]:
        """Yield blocks of at most 8192 rows, each with its slice of all rows."""
        size = min(_BLOCK_ROWS, max(64, _BLOCK_ENTRIES // self.dimension))
        for start in range(0, self.count, size):
            where = slice(start, min(start + size, self.count))
            yield where, self.values[where]

    def thinned(self, every: int) -> IntegerRows:
        """Return every k-th row, k = `every`."""
        return IntegerRows(values=np.ascontiguousarray(self.values[::every]))


@value(eq=False)
class Point:
    """Parameters θ = 2^exponent · integers of shape (d, outputs): exactly what is certified.

    No column is longer than 2^(s+29) + √d in integers, s = `parameter_bits(d)`, so that two limbs
    of s bits make all products with rows exact.
    """

    integers: npt.NDArray[np.int64]
    exponent: int

    @staticmethod
    def near(theta: Floats) -> Point:
        """Return the nearest point on the finest grid that has room for `theta` (finite)."""
        exponent = _exponent(theta)
        scaled = np.rint(np.ldexp(theta, -exponent))
        return Point(integers=scaled.astype(np.int64), exponent=exponent)

    def moved(self, step: Floats) -> Point:
        """Return the point at θ - step, on the grid that fits it."""
        exponent = _exponent(self.floats() - step)
        shift = exponent - self.exponent
        if shift > 0:
            half = 1 << (min(shift, 62) - 1)
            start = (self.integers + half) >> min(shift, 62)
        elif -shift <= 2:
            start = self.integers << -shift
        else:  # the step nearly cancels θ: rounding θ - step in floats loses no more
            return Point.near(self.floats() - step)
        taken = np.rint(np.ldexp(step, -exponent)).astype(np.int64)
        return Point(integers=start - taken, exponent=exponent)

    def floats(self) -> Floats:
        """Return the nearest floats."""
        floats: Floats = np.ldexp(self.integers.astype(np.float64), self.exponent)
        return floats

    def exact(self) -> list[Fraction]:
        """Return the entries, row by row, as rationals."""
        unit = Fraction(2) ** self.exponent
        return [int(integer) * unit for integer in self.integers.flat]

    def limbs(self) -> tuple[Floats, Floats, int]:
        """Return high and low integers, θ = 2^exponent (2^s high + low), and s; |low| <= 2^(s-1).

        ‖high‖ <= 2^29 + √d and ‖low‖ <= 2^(s-1) √d for every column: times 2^22 both are at most
        2^52 (d <= 2^20), and so differences of two of these are at most 2^53.
        """
        bits = parameter_bits(len(self.integers))
        high = (self.integers + (1 << (bits - 1))) >> bits
        low = self.integers - (high << bits)
        return high.astype(np.float64), low.astype(np.float64), bits


def _exponent(theta: Floats) -> int:
    """Return e with ‖θ‖ (1 + 2^-30) <= 2^(e + s + 29), computed without overflow."""
    largest = float(np.abs(theta).max(initial=0.0))
    if largest == 0:
        return _LOWEST_EXPONENT
    length = float(np.linalg.norm(theta / largest)) * (1 + 2.0**-30)
    bits = math.frexp(largest)[1] + math.frexp(length)[1]
    return max(bits - parameter_bits(len(theta)) - _HIGH_BITS, _LOWEST_EXPONENT)
