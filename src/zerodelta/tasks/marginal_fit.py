"""A distribution over all cells that agrees with noisy coefficients: post-processing.

Of all distributions that fit, the one of largest entropy: p ∝ exp(Σ θ·coefficient). θ minimises
ln Z(θ) - θ·y + κ/2 Σ Vθ², the dual of "distance in units of the noise plus κ times the divergence
from uniform". κ falls until the fit is as close as the noise allows, or is small.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias, final

import numpy as np
import numpy.typing as npt

from zerodelta.tasks.marginal_bases import Coefficients, Estimate, Floats, orthonormal, table_of
from zerodelta.tasks.marginal_domain import Columns, Domain
from zerodelta.tasks.marginal_minimum import minimum

__all__ = ["Fit", "answers", "fit", "simplex"]

Integers: TypeAlias = npt.NDArray[np.int64]

_PENALTIES, _FEW_PENALTIES = (1000.0, 300.0, 100.0, 30.0, 10.0), (100.0, 30.0)
_MANY = 1 << 20
"""Beyond so many cells one evaluation takes seconds."""
_CLOSE = 0.05
"""Mean squared distance in units of the noise's variance: the truth is at 1, the noise at 0."""
_FAR = 2.0
"""Beyond this the solver has not arrived, and the noisy coefficients are better."""
_BLOCK = 64
"""Columns are transformed together up to so many categories, by one matrix product."""


@final
@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Fit:
    """A distribution over all cells in the order of the domain, and its coefficients."""

    domain: Domain
    weights: Floats
    values: Coefficients
    close: bool

    def table(self, columns: Columns) -> Floats:
        """Return the table of these columns, adding up to 1."""
        others = tuple(i for i in range(len(self.domain.columns)) if i not in columns)
        return np.asarray(self.weights.reshape(self.domain.sizes).sum(axis=others))


def fit(domain: Domain, estimate: Estimate, *, penalties: Sequence[float] | None = None) -> Fit:
    """Return the fitted distribution; never raises, whatever the noise was."""
    if penalties is None:
        penalties = _PENALTIES if domain.cells <= _MANY else _FEW_PENALTIES
    problem = _Problem(domain, estimate)
    theta, distance = np.zeros(estimate.dimension), math.inf
    for penalty in penalties:
        found = problem.solved(theta, penalty)
        gap = problem.read(problem.weights(found)[0]) - problem.values
        reached = float(np.mean(gap**2 / problem.variances))
        if not reached < distance:  # not arrived at a farther point: stay
            break
        theta, distance = found, reached
        if distance < _CLOSE:
            break
    weights, _ = problem.weights(theta)
    read = problem.split(problem.read(weights))
    return Fit(domain=domain, weights=weights, values=read, close=distance < _FAR)


def answers(
    domain: Domain, tables: Sequence[Columns], estimate: Estimate, fitted: Fit | None
) -> list[Floats]:
    """Return the tables of a good fit, else the noisy ones, each brought back to a distribution.

    A table of which not all was measured can only be fitted.
    """
    found = []
    for table in tables:
        measured = table in estimate.values
        if fitted is not None and (fitted.close or not measured):
            found.append(fitted.table(table))
        else:
            found.append(simplex(table_of(estimate.values, domain, table)))
    return found


def simplex(values: Floats) -> Floats:
    """Return the nearest non-negative numbers that add up to 1.

    >>> simplex(np.array([0.9, 0.3, -0.2]))
    array([0.8, 0.2, 0. ])
    """
    falling = np.sort(values.reshape(-1))[::-1]
    excess = np.cumsum(falling) - 1
    last = int(np.flatnonzero(falling * np.arange(1, len(falling) + 1) > excess)[-1])
    nearest: Floats = np.maximum(values - excess[last] / (last + 1), 0.0)
    return nearest


class _Problem:
    """The measured coefficients in the full orthonormal transform of the domain."""

    def __init__(self, domain: Domain, estimate: Estimate) -> None:
        self._parts = tuple(estimate.values)
        self._shapes = [estimate.values[part].shape for part in self._parts]
        self._blocks = _blocks(domain.sizes)
        self._cells = domain.cells
        sizes = domain.sizes
        steps = [math.prod(sizes[column + 1 :]) for column in range(len(sizes))]
        axes = [np.arange(1, size) * step for size, step in zip(sizes, steps, strict=True)]
        self._index = np.concatenate([_places(axes, part) for part in self._parts])
        # <p, Π b over U, 1 elsewhere> is the orthonormal coefficient times √(N/N_U)
        self._factor = np.concatenate(
            [
                np.full(math.prod(shape), math.sqrt(domain.cells / domain.cells_of(part)))
                for part, shape in zip(self._parts, self._shapes, strict=True)
            ]
        )
        self.values = _flat(estimate.values, self._parts)
        self.variances = np.maximum(_flat(estimate.variances, self._parts), 1e-30)

    def weights(self, theta: Floats) -> tuple[Floats, float]:
        """Return p ∝ exp(Σ θ φ), and ln of the mean of exp."""
        full = np.zeros(self._cells)
        full[self._index] = theta * self._factor
        exponent = _transformed(full, self._blocks, inverse=True)
        most = float(exponent.max())
        exponent -= most
        np.exp(exponent, out=exponent)
        total = float(exponent.sum())
        exponent /= total
        return exponent, most + math.log(total / self._cells)

    def read(self, weights: Floats) -> Floats:
        """Return the coefficients of a distribution."""
        full = _transformed(weights, self._blocks, inverse=False)
        chosen: Floats = full[self._index] * self._factor
        return chosen

    def dual(self, theta: Floats, penalty: float) -> tuple[float, Floats]:
        """Return the objective and its gradient."""
        weights, log_mean = self.weights(theta)
        pull = penalty * self.variances * theta
        value = log_mean - float(theta @ self.values) + float(theta @ pull) / 2
        return value, self.read(weights) - self.values + pull

    def solved(self, start: Floats, penalty: float) -> Floats:
        """Return the minimiser, in coordinates in which penalty and entropy are nearly round."""
        # at the uniform distribution ln Z has the curvature E φ² = 1/N_U
        scale = np.sqrt(penalty * self.variances + self._factor**2 / self._cells)
        most = 100 if self._cells <= 1 << 16 else 40 if self._cells <= _MANY else 20

        def objective(x: Floats) -> tuple[float, Floats]:
            value, slope = self.dual(x / scale, penalty)
            return value, slope / scale

        return minimum(objective, start * scale, most=most, tolerance=1e-10) / scale

    def split(self, flat: Floats) -> dict[Columns, Floats]:
        """Return the coefficients by sets of columns."""
        cuts = np.cumsum([math.prod(shape) for shape in self._shapes])[:-1]
        pieces = np.split(flat, cuts)
        return {
            part: piece.reshape(shape)
            for part, shape, piece in zip(self._parts, self._shapes, pieces, strict=True)
        }


def _flat(values: Coefficients, parts: Sequence[Columns]) -> Floats:
    return np.concatenate([values[part].reshape(-1) for part in parts])


def _places(axes: Sequence[Integers], part: Columns) -> Integers:
    """Return where the coefficients of a set of columns are in the full transform."""
    place = np.zeros(1, dtype=np.int64)
    for column in part:
        place = np.add.outer(place, axes[column]).reshape(-1)
    return place


def _blocks(sizes: Sequence[int]) -> list[Floats]:
    """Return orthonormal matrices of consecutive columns, of up to 64 categories together."""
    blocks: list[Floats] = []
    for size in sizes:
        basis = orthonormal(size)
        if blocks and len(blocks[-1]) * size <= _BLOCK:
            blocks[-1] = np.asarray(np.kron(blocks[-1], basis), dtype=np.float64)
        else:
            blocks.append(basis)
    return blocks


def _transformed(values: Floats, blocks: Sequence[Floats], *, inverse: bool) -> Floats:
    """Return the transform along every column; each product moves its columns to the end."""
    for block in blocks:
        matrix = block.T if inverse else block
        values = np.ascontiguousarray((matrix @ values.reshape(len(block), -1)).T).reshape(-1)
    return values
