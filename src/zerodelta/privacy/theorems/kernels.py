"""Noise near the answer, mixed with a uniform point: three mass ratios (theory B4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

from zerodelta.privacy.domains import Cells, Dimension, Positive
from zerodelta.privacy.theorems.mixing import Mixing, kernel_mass, laplace_cube_mass, window_mass

__all__ = ["KNormKernel", "LaplaceCubeKernel", "LocalUniformKernel"]


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class KNormKernel(Mixing):
    """K-norm noise in a convex body, mixed with a uniform point."""

    label: ClassVar[str] = "k-norm-kernel"
    section: ClassVar[str] = "B4"
    sentence: ClassVar[str] = (
        "K-norm noise of scale {scale} is added in a body of diameter {diameter}, mixed with a "
        "uniform point with probability {weight}."
    )

    dimension: Dimension
    diameter: Positive
    scale: Positive

    def log_mass(self) -> float:
        """Return d ln(eR/(d b))."""
        return kernel_mass(dimension=self.dimension, diameter=self.diameter, scale=self.scale)


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class LaplaceCubeKernel(Mixing):
    """Laplace noise in a cube, mixed with a uniform point."""

    label: ClassVar[str] = "laplace-cube-kernel"
    section: ClassVar[str] = "B4"
    sentence: ClassVar[str] = (
        "Laplace noise of scale {scale} is added in a cube of side {side}, mixed with a uniform "
        "point with probability {weight}."
    )

    dimension: Dimension
    side: Positive
    scale: Positive

    def log_mass(self) -> float:
        """Return d ln(D/(b(1 - e^(-D/b))))."""
        return laplace_cube_mass(dimension=self.dimension, side=self.side, scale=self.scale)


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class LocalUniformKernel(Mixing):
    """A uniform cell near the answer's, mixed with a uniform cell."""

    label: ClassVar[str] = "local-uniform-kernel"
    section: ClassVar[str] = "B4"
    sentence: ClassVar[str] = (
        "a uniform cell of a window of {window} of {cells} cells per dimension is published, "
        "replaced by a uniform cell with probability {weight}."
    )

    cells: Cells
    window: Cells
    dimension: Dimension

    def log_mass(self) -> float:
        """Return d ln(K/m)."""
        return window_mass(cells=self.cells, window=self.window, dimension=self.dimension)
