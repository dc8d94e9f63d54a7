"""Noise near the answer, mixed with a uniform point: three mass ratios (theory B4)."""

from __future__ import annotations

from zerodelta.privacy.domains import Cells, Dimension, Positive
from zerodelta.privacy.theorems.mixing import (
    Mixing,
    kernel_mass,
    laplace_cube_mass,
    local_uniform_mass,
)
from zerodelta.value import value


@value
class KNormKernel(Mixing):
    """K-norm noise in a convex body, mixed with a uniform point."""

    label = "k-norm-kernel"
    section = "B4"
    sentence = (
        "K-norm noise of scale {scale} is added in a body of diameter {diameter}, mixed with a "
        "uniform point with probability {weight}."
    )
    inequality = staticmethod(kernel_mass)

    dimension: Dimension
    diameter: Positive
    scale: Positive


@value
class LaplaceCubeKernel(Mixing):
    """Laplace noise in a cube, mixed with a uniform point."""

    label = "laplace-cube-kernel"
    section = "B4"
    sentence = (
        "Laplace noise of scale {scale} is added in a cube of side {side}, mixed with a uniform "
        "point with probability {weight}."
    )
    inequality = staticmethod(laplace_cube_mass)

    dimension: Dimension
    side: Positive
    scale: Positive


@value
class LocalUniformKernel(Mixing):
    """A uniform cell near the answer's, mixed with a uniform cell."""

    label = "local-uniform-kernel"
    section = "B4"
    sentence = (
        "a uniform cell among the {kernel_cells} nearest of {cells} per dimension is published, "
        "replaced by a uniform cell with probability {weight}."
    )
    inequality = staticmethod(local_uniform_mass)

    cells: Cells
    kernel_cells: Cells
    dimension: Dimension
