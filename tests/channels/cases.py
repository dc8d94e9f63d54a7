"""Small instances of every channel, one entry each; the shared checks run over all of them."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

from channels.channel_laws import body_of
from zerodelta.channels.channel import Mixing
from zerodelta.channels.kernels import KernelMix
from zerodelta.channels.mixes import (
    FiniteMix,
    GaussianMix,
    GridMix,
    LaplaceMix,
    LocalUniformMix,
    PriorMix,
    UnequalGridMix,
)
from zerodelta.paper.algorithm_01_02 import AlgorithmOne, AlgorithmTwo, laplace_scale
from zerodelta.privacy.claims import ApproxDP
from zerodelta.spaces import Ball, Box, Finite

F = Fraction
W = Fraction(1, 20)

MIXING: dict[str, Mixing] = {
    "finite-2": FiniteMix(space=Finite(2), mixing_weight=W),
    "finite-3": FiniteMix(space=Finite(3), mixing_weight=F(1, 3)),
    "finite-4": FiniteMix(space=Finite(["a", "b", "c", "d"]), mixing_weight=W),
    "prior-2": PriorMix(space=Finite(2), mixing_weight=F(1, 7), prior=(1, 9)),
    "prior-4": PriorMix(space=Finite(4), mixing_weight=W, prior=(4, 3, 2, 1)),
    "grid-1d": GridMix(lattice=Box(-1, "1/3").grid(4), mixing_weight=W),
    "grid-2d": GridMix(lattice=Box([0, -1], [1, 1]).grid(2), mixing_weight=W),
    "grid-2d-9": GridMix(lattice=Box([0, -1], [1, 1]).grid(3), mixing_weight=F(1, 3)),
    "sides-2d": UnequalGridMix(lattice=Box([0, -1], [1, 5]).unequal_grid([2, 3]), mixing_weight=W),
    "sides-3d": UnequalGridMix(
        lattice=Box(0, [1, 2, 1]).unequal_grid([1, 4, 2]), mixing_weight=F(1, 3)
    ),
    "sides-3d-twice": UnequalGridMix(
        lattice=Box(0, [1, 2, 1]).unequal_grid([2, 3, 2]), mixing_weight=W
    ),
    "local-1d": LocalUniformMix(lattice=Box(0, 1).grid(5), mixing_weight=W, kernel_cells=3),
    "local-1d-even": LocalUniformMix(lattice=Box(0, 1).grid(4), mixing_weight=W, kernel_cells=2),
    "local-2d": LocalUniformMix(
        lattice=Box(0, 1, dimension=2).grid(3), mixing_weight=W, kernel_cells=2
    ),
    "gaussian-1d": GaussianMix(lattice=Ball(1, 1).lattice(1), mixing_weight=W),
    "gaussian-1d-off-center": GaussianMix(
        lattice=Ball(1, 1, center=5).lattice("1/3"), mixing_weight=F(1, 3)
    ),
    "gaussian-2d": GaussianMix(lattice=Ball(2, 1).lattice(1), mixing_weight=W),
    "gaussian-2d-fine": GaussianMix(lattice=Ball(2, 1).lattice("1/2"), mixing_weight=W),
    "laplace-1d": LaplaceMix(lattice=Ball(1, 1, norm=1).lattice(1), mixing_weight=W),
    "laplace-2d": LaplaceMix(lattice=Ball(2, 1, norm=1).lattice(1), mixing_weight=W),
    "laplace-2d-fine": LaplaceMix(lattice=Ball(2, 1, norm=1).lattice("1/2"), mixing_weight=F(1, 3)),
    "kernel-l2-1d": KernelMix(
        body=body_of(Ball(1, 1).lattice(1)), noise_norm=2, scale=F(1, 2), mixing_weight=W
    ),
    "kernel-l1-1d": KernelMix(
        body=body_of(Ball(1, 2, norm=1).lattice(1)), noise_norm=1, scale=F(2), mixing_weight=W
    ),
    "kernel-linf-1d": KernelMix(
        body=body_of(Box(0, 1).grid(3)), noise_norm=math.inf, scale=F(1, 3), mixing_weight=W
    ),
    "kernel-l1-2d": KernelMix(
        body=body_of(Ball(2, 1, norm=1).lattice(1)), noise_norm=1, scale=F(1, 2), mixing_weight=W
    ),
    "kernel-linf-2d": KernelMix(
        body=body_of(Box(0, 1, dimension=2).grid(3)),
        noise_norm=math.inf,
        scale=F(1, 2),
        mixing_weight=W,
    ),
    "cube-1d": KernelMix(
        body=body_of(Box(0, 1).grid(3)), noise_norm=1, scale=F(1, 4), mixing_weight=W
    ),
    "cube-1d-wide": KernelMix(
        body=body_of(Box(0, 1).grid(5)), noise_norm=1, scale=F(3), mixing_weight=F(1, 3)
    ),
    "cube-2d": KernelMix(
        body=body_of(Box(0, 1, dimension=2).grid(3)), noise_norm=1, scale=F(1, 2), mixing_weight=W
    ),
}

EPSILONS = (F(1, 10), F(1), F(3))


def algorithm_one(
    body: Any, *, base: Fraction, extra: Fraction, log_delta: float, weight: Fraction = W
) -> AlgorithmOne:
    """Algorithm 1 with just the noise that Theorem W's radius asks for."""
    scale = laplace_scale(
        norm=body.norm,
        dimension=body.lattice.dimension,
        diameter=2 * body.radius,
        weight=weight,
        claim=ApproxDP(base, log_delta),
        epsilon=base,
        extra_epsilon=extra,
    )
    return AlgorithmOne(body=body, scale=scale, mixing_weight=weight, base_epsilon=base)


def algorithm_two(size: int, *, base: Fraction, extra: Fraction, log_delta: float) -> AlgorithmTwo:
    """Algorithm 2 with just the noise that Theorem W's radius asks for, on the unit cube."""
    first = AlgorithmTwo(space=Finite(size), scale=F(1), base_epsilon=base)
    scale = laplace_scale(
        norm=math.inf,
        dimension=first.code_length,
        diameter=1,
        weight=first.mixing_weight,
        claim=ApproxDP(base, log_delta),
        epsilon=base,
        extra_epsilon=extra,
    )
    return replace(first, scale=scale)


BODIES = {
    "grid-1d": body_of(Box(0, 1).grid(3)),
    "l2-1d": body_of(Ball(1, 1).lattice(1)),
    "l1-2d": body_of(Ball(2, 1, norm=1).lattice(1)),
    "cube-2d": body_of(Box(0, 1, dimension=2).grid(3)),
}
"""The bodies Algorithm 1 is enumerated on."""
