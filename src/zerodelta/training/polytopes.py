"""Define the domains of Frank-Wolfe: the l1 ball around 0, or the hull of a few public vertices.

A polytope conv(S) turns per-example gradients into rows of bounded integers, their sum into one
integer score for each vertex, and a list of chosen vertices into the iterate (paper, Algorithms 5
to 7).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias, final

import numpy as np

from zerodelta.errors import ParameterError
from zerodelta.exact.arrays import Floats
from zerodelta.exact.fixed_point import FixedPoint
from zerodelta.exact.rational import Rational, as_count, as_positive
from zerodelta.spaces import Ball
from zerodelta.value import value

Domain: TypeAlias = Ball | Sequence[Sequence[float]] | Floats
"""`Ball(dimension, radius, norm=1)`, or an array with one vertex in each row."""


def step_size(step: int) -> Fraction:
    """Return η_t = 2/(t + 2), t = 0, 1, …: the first iterate is a vertex."""
    return Fraction(2, step + 2)


class Polytope(ABC):
    """The convex hull of public vertices, numbered 0..size-1."""

    dimension: int

    @property
    @abstractmethod
    def size(self) -> int:
        """The number of vertices |S|."""

    @property
    @abstractmethod
    def length(self) -> Fraction:
        """‖C‖₁, the largest l1 norm of a vertex."""

    @abstractmethod
    def vertex(self, index: int) -> Floats:
        """Return the coordinates of a vertex."""

    @abstractmethod
    def lattice(self, lipschitz: Rational, steps: int) -> FixedPoint:
        """Return the lattice of an example's `row`, of integers at most `steps` in magnitude."""

    @abstractmethod
    def row(self, gradients: Floats) -> Floats:
        """Return the summand of each example, given (n, dimension) per-example gradients."""

    @abstractmethod
    def scores(self, sums: Any) -> Any:
        """Return the score -⟨s, gradient⟩ of each vertex s, up to a common factor.

        Integer sums have integer scores.
        """

    def toward(self, theta: Floats, step: int, index: int) -> Floats:
        """Return (1 - η_t) θ + η_t s for step t and the vertex s with this index."""
        eta = float(step_size(step))
        moved: Floats = (1 - eta) * theta + eta * self.vertex(index)
        return moved


def shrinking_parts(count: int, path: Rational) -> list[Fraction]:
    """Return `count` numbers that shrink linearly and add up to `path`, the largest first.

    >>> [str(part) for part in shrinking_parts(3, 1)]
    ['1/2', '1/3', '1/6']
    """
    length = as_positive(path, "path")
    return [length * 2 * k / (count * (count + 1)) for k in range(count, 0, -1)]


@value
class L1Ball(Polytope):
    """{‖θ‖₁ <= radius}: vertex j < d is -radius · e_j, vertex d + j is +radius · e_j.

    All 2d scores are ±(sum of gradients), so only d integers are summed (theory C2).
    """

    dimension: int
    radius: Fraction

    @property
    def size(self) -> int:
        """Twice the dimension."""
        return 2 * self.dimension

    @property
    def length(self) -> Fraction:
        """The radius."""
        return self.radius

    def vertex(self, index: int) -> Floats:
        """Return ±radius · e_j."""
        sign, coordinate = divmod(index, self.dimension)
        vertex = np.zeros(self.dimension)
        vertex[coordinate] = float(self.radius) if sign else -float(self.radius)
        return vertex

    def along(self, theta: Floats, part: Fraction, index: int) -> Floats:
        """Return θ + part · s, scaled down to the ball if it is outside.

        >>> L1Ball(dimension=2, radius=Fraction(1)).along(np.array([0.5, 0.5]), Fraction(1, 2), 2)
        array([0.66666667, 0.33333333])
        """
        moved: Floats = theta + float(part) * self.vertex(index)
        ratio = float(np.abs(moved).sum()) / float(self.radius)
        return moved / ratio if ratio > 1 else moved

    def lattice(self, lipschitz: Rational, steps: int) -> FixedPoint:
        """Return the lattice of gradients clipped to `lipschitz` in linf (the dual of l1)."""
        bound = as_positive(lipschitz, "lipschitz")
        return FixedPoint.ball(dimension=self.dimension, bound=bound, norm=math.inf, steps=steps)

    def row(self, gradients: Floats) -> Floats:
        """Return the gradients themselves."""
        return gradients

    def scores(self, sums: Any) -> Any:
        """Return K for the vertices -e_j, then -K for +e_j."""
        return np.concatenate([sums, -sums])


@final
@dataclass(frozen=True, slots=True, eq=False)
class Hull(Polytope):
    """The convex hull of an array of public vertices.

    It must contain the origin, where the paper's iterates start; this is not checked.
    """

    vertices: Floats

    @property
    def dimension(self) -> int:  # type: ignore[override]
        """The number of coordinates."""
        return int(self.vertices.shape[1])

    @property
    def size(self) -> int:
        """The number of vertices."""
        return len(self.vertices)

    @property
    def length(self) -> Fraction:
        """The largest l1 norm, exactly."""
        return max(sum((abs(Fraction(x)) for x in row), Fraction(0)) for row in self._exact)

    @property
    def _exact(self) -> list[list[float]]:
        """The vertices as lists of Python floats, which convert to fractions exactly."""
        exact: list[list[float]] = self.vertices.tolist()
        return exact

    def vertex(self, index: int) -> Floats:
        """Return a row of `vertices`."""
        return np.array(self.vertices[index])

    def lattice(self, lipschitz: Rational, steps: int) -> FixedPoint:
        """Return the lattice of the |S| products ⟨s, gradient⟩, clipped to lipschitz · ‖C‖₁."""
        bound = as_positive(lipschitz, "lipschitz") * self.length
        return FixedPoint.ball(dimension=self.size, bound=bound, norm=math.inf, steps=steps)

    def row(self, gradients: Floats) -> Floats:
        """Return ⟨s, gradient⟩ for each vertex s.

        Products are added in a fixed order, not by BLAS, whose rounding of one example depends on
        the others in its block.
        """
        products = np.zeros((len(gradients), self.size))
        for j in range(self.dimension):
            products += gradients[:, j : j + 1] * self.vertices[:, j]
        return products

    def scores(self, sums: Any) -> Any:
        """Return the negated sums."""
        return -sums


def as_polytope(domain: Domain) -> Polytope:
    """Return the polytope of a ball or an array of vertices.

    >>> as_polytope(Ball(3, 2, norm=1)).size, as_polytope([[1.0], [-1.0]]).size
    (6, 2)
    """
    if isinstance(domain, Ball):
        if domain.norm != 1 or any(domain.center.exact()):
            raise ParameterError(
                "domain",
                domain,
                expected="an l1 ball around 0",
                remedy="pass Ball(dimension, radius, norm=1), or the vertices",
            )
        return L1Ball(dimension=domain.dimension, radius=domain.radius)
    return Hull(_as_vertices(domain))


def _as_vertices(domain: Any) -> Floats:
    """Return a read-only array with one vertex in each row; refuse anything else."""
    try:
        vertices = np.array(domain, dtype=np.float64)
    except (TypeError, ValueError):
        vertices = np.zeros((0, 0))
    good = vertices.ndim == 2 and min(vertices.shape) > 0 and bool(np.isfinite(vertices).all())
    if not good or not vertices.any():
        raise ParameterError(
            "domain",
            domain,
            expected="Ball(dimension, radius, norm=1), or an array with one finite vertex in each "
            "row",
            remedy="pass the vertices of the domain, at least one of them not 0",
        )
    vertices.setflags(write=False)
    return vertices


def curvature(*, smoothness: Rational, length: Rational) -> Fraction:
    """Return 4 β ‖C‖₁², at least the curvature Γ of a loss that is β-smooth in l1.

    >>> curvature(smoothness=1, length="1/2")
    Fraction(1, 1)
    """
    beta, width = as_positive(smoothness, "smoothness"), as_positive(length, "length")
    # theory C10.7: the diameter is 2 ‖C‖₁, so the paper's β ‖C‖₁² lacks a factor of 4
    return 4 * beta * width**2


def optimization_error(*, curvature: Rational, iterations: int) -> float:
    """Return 2Γ/(T + 2), the excess loss after T exact steps of size 2/(t + 2).

    >>> optimization_error(curvature=1, iterations=18)
    0.1
    """
    steps = as_count(iterations, "iterations", minimum=1)
    return float(2 * as_positive(curvature, "curvature") / (steps + 2))
