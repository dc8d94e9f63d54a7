"""The exact matrix T(z|y) of every channel, from its public numbers and `quantize` alone.

A row belongs to a *value* that is handed in, so that a value outside the space has its row too.
Outcomes are the integers before the projection of the published point, which is post-processing;
`published` tells what each outcome looks like to the reader.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from flint import arb, ctx

from channels.noise_laws import (
    BITS,
    as_ball,
    cube_noise,
    cube_uniform_plus_noise,
    diamond_uniform_plus_noise,
    float_of,
    gaussian_line,
    in_balls,
    noisy_point,
    noisy_uniform,
    product_law,
)
from reference.chi_square import goodness_of_fit
from zerodelta.audit.exact import ExpRational
from zerodelta.channels.kernels import Body, KernelMix
from zerodelta.channels.mixes import (
    FiniteMix,
    GaussianMix,
    GridMix,
    LaplaceMix,
    LocalUniformMix,
    PriorMix,
    ProfileMix,
    UnequalGridMix,
)
from zerodelta.exact.bits import ReplayBits
from zerodelta.exact.logs import ball
from zerodelta.paper.algorithm_01_02 import AlgorithmOne, AlgorithmTwo
from zerodelta.spaces import BallLattice, GridLattice
from zerodelta.spaces.lattices import UnequalGrid

Row: TypeAlias = dict[Any, Any]
Lattice: TypeAlias = GridLattice | UnequalGrid | BallLattice


def mixed(kept: Row, drawn: Row, weight: Fraction) -> Row:
    """(1-w)·kept + w·drawn."""
    exact = all(isinstance(p, (int, Fraction)) for p in (*kept.values(), *drawn.values()))
    with ctx.workprec(BITS):
        w: Any = weight if exact else ball(weight)
        part = (lambda p: p) if exact else as_ball
        zero: Any = Fraction(0) if exact else arb(0)
        return {
            z: (1 - w) * part(kept.get(z, zero)) + w * part(drawn.get(z, zero))
            for z in dict.fromkeys((*drawn, *kept))
        }


def row(purifier: Any, value: Any, reach: int | None = None) -> Row:
    """The law of the outcome before projection, given a value."""
    return _ROWS[type(purifier)](purifier, value, reach)


def _point(integers: Any) -> tuple[int, ...]:
    return tuple(int(k) for k in integers)


def _finite(purifier: Any, value: Any, _: int | None) -> Row:
    size = purifier.space.size
    if isinstance(purifier, FiniteMix):
        drawn = dict.fromkeys(range(size), Fraction(1, size))
    else:
        weights = purifier.prior if isinstance(purifier, PriorMix) else purifier.profile
        drawn = {z: Fraction(weight, sum(weights)) for z, weight in enumerate(weights)}
    return mixed({purifier.space.index(value): Fraction(1)}, drawn, purifier.mixing_weight)


def _cells(lattice: GridLattice | UnequalGrid) -> list[tuple[int, ...]]:
    if isinstance(lattice, UnequalGrid):
        return list(itertools.product(*map(range, lattice.cells)))
    return list(itertools.product(range(lattice.cells), repeat=lattice.dimension))


def _grid(purifier: GridMix | UnequalGridMix, value: Any, _: int | None) -> Row:
    cells = _cells(purifier.lattice)
    drawn = dict.fromkeys(cells, Fraction(1, len(cells)))
    kept = {_point(purifier.lattice.quantize(value)): Fraction(1)}
    return mixed(kept, drawn, purifier.mixing_weight)


def _local_uniform(purifier: LocalUniformMix, value: Any, _: int | None) -> Row:
    cells, m = _cells(purifier.lattice), purifier.kernel_cells
    sides = []
    for k in _point(purifier.lattice.quantize(value)):
        start = min(max(k - m // 2, 0), purifier.lattice.cells - m)
        sides.append(dict.fromkeys(range(start, start + m), Fraction(1, m)))
    drawn = dict.fromkeys(cells, Fraction(1, len(cells)))
    return mixed(product_law(sides), drawn, purifier.mixing_weight)


def _farthest(lattice: BallLattice) -> int:
    return max(max(map(abs, k)) for k in lattice_points(lattice))


def _gaussian(purifier: GaussianMix, value: Any, reach: int | None) -> Row:
    lattice = purifier.lattice
    line = gaussian_line(Fraction(0), purifier.variance, reach or _farthest(lattice) + 1)
    kept = {_point(lattice.quantize(value)): Fraction(1)}
    return mixed(kept, product_law([line] * lattice.dimension), purifier.mixing_weight)


def _laplace(purifier: LaplaceMix, value: Any, reach: int | None) -> Row:
    lattice = purifier.lattice
    line = in_balls(noisy_point(Fraction(0), purifier.scale, reach or _farthest(lattice) + 1))
    kept = {_point(lattice.quantize(value)): Fraction(1)}
    return mixed(kept, product_law([line] * lattice.dimension), purifier.mixing_weight)


def _kernel(purifier: KernelMix | AlgorithmOne, value: Any, reach: int | None) -> Row:
    """Ends are joined at radius + 1; beyond it Laplace tails of all rows are proportional."""
    body, scale, weight = purifier.body, purifier.scale, purifier.mixing_weight
    noise = purifier.noise_norm if isinstance(purifier, KernelMix) else 1
    center, radius = _point(body.centered(value)), body.radius
    if body.lattice.dimension == 1 or (noise == 1 and body.norm == np.inf):
        ends = reach or radius + 1
        points = [in_balls(noisy_point(Fraction(c), scale, ends)) for c in center]
        uniform = in_balls(noisy_uniform(Fraction(radius), scale, ends))
        return mixed(product_law(points), product_law([uniform] * len(center)), weight)
    if noise == 1 and body.norm == 1:
        return _diamond(center, radius, scale, weight, reach or radius + 1)
    if noise == body.norm == np.inf:
        return _cube(center, radius, scale, weight, reach)
    raise NotImplementedError("its law has no closed form here")


def _diamond(
    center: tuple[int, ...], radius: int, scale: Fraction, weight: Fraction, reach: int
) -> Row:
    """Cells up to radius + 1. A coordinate beyond it scales every row by the same e^(-1/b)."""
    window = list(itertools.product(range(-reach, reach + 1), repeat=2))
    lines = [in_balls(noisy_point(Fraction(c), scale, 2 * reach + radius)) for c in center]
    with ctx.workprec(BITS):
        kept = {z: lines[0][z[0]] * lines[1][z[1]] for z in window}
    drawn = {(i, j): diamond_uniform_plus_noise(i, j, radius, scale) for i, j in window}
    return mixed(kept, drawn, weight)


def _cube(
    center: tuple[int, ...], radius: int, scale: Fraction, weight: Fraction, reach: int | None
) -> Row:
    """Cells up to 3R + 4: every other one has the row of one of these, times a common factor.

    If both coordinates exceed R + 1, moving the cell by one along the diagonal multiplies every
    density by e^(-1/b), whatever y and V; if one exceeds 3R + 4 and the other does not exceed
    R + 1, moving it along that axis does.
    """
    ends = reach or 3 * radius + 4
    window = list(itertools.product(range(-ends, ends + 1), repeat=2))
    kept = {(i, j): cube_noise(i - center[0], j - center[1], scale) for i, j in window}
    drawn = {(i, j): cube_uniform_plus_noise(i, j, radius, scale) for i, j in window}
    return mixed(kept, drawn, weight)


def _two(purifier: AlgorithmTwo, value: Any, _: int | None) -> Row:
    length, size = purifier.code_length, purifier.space.size
    flip = ExpRational.exp(-1 / (2 * purifier.scale)) * Fraction(1, 2)
    code = purifier.space.index(value)
    codes = range(1 << length)
    kept: Row = {}
    for z in codes:
        flipped = (z ^ code).bit_count()
        mass = ExpRational.of(1)
        for factor in [flip] * flipped + [1 - flip] * (length - flipped):
            mass = mass * factor
        kept[z] = mass
    whole = mixed(kept, dict.fromkeys(codes, Fraction(1, 1 << length)), purifier.mixing_weight)
    with ctx.workprec(BITS):
        law: Row = dict.fromkeys(range(size), arb(0))
        for z, p in whole.items():
            law[z if z < size else 0] += p
    return law


_ROWS: dict[type, Callable[[Any, Any, int | None], Row]] = {
    FiniteMix: _finite,
    PriorMix: _finite,
    ProfileMix: _finite,
    GridMix: _grid,
    UnequalGridMix: _grid,
    LocalUniformMix: _local_uniform,
    GaussianMix: _gaussian,
    LaplaceMix: _laplace,
    KernelMix: _kernel,
    AlgorithmOne: _kernel,
    AlgorithmTwo: _two,
}


# --- the values that stand for the inputs --------------------------------------------------------


def lattice_points(lattice: Lattice) -> list[tuple[int, ...]]:
    """All integer vectors of a small lattice, by brute force."""
    if isinstance(lattice, (GridLattice, UnequalGrid)):
        return _cells(lattice)
    most = range(-lattice.bound, lattice.bound + 1)
    power = 1 if lattice.norm == 1 else 2
    return [
        k
        for k in itertools.product(most, repeat=lattice.dimension)
        if sum(abs(x) ** power for x in k) <= lattice.bound
    ]


def lattice_of(purifier: Any) -> Lattice:
    """The lattice of a channel on a continuous space."""
    lattice: Lattice = purifier.body.lattice if hasattr(purifier, "body") else purifier.lattice
    return lattice


def values_of(purifier: Any) -> list[Any]:
    """One value of the space for every distinct row that `quantize` can lead to."""
    if hasattr(purifier, "space"):
        return [purifier.space.element(i) for i in range(purifier.space.size)]
    lattice = lattice_of(purifier)
    candidates = (lattice.points(np.array(k)) for k in lattice_points(lattice))
    reached: dict[tuple[int, ...], Any] = {}
    for value in candidates:
        reached.setdefault(_point(lattice.quantize(value)), value)
    return list(reached.values())


# --- does `apply` have that law? -----------------------------------------------------------------


def published(purifier: Any, outcome: Any) -> Any:
    """What the reader sees of an outcome."""
    if hasattr(purifier, "space"):
        return outcome
    integers = np.array(outcome)
    point = purifier.body.points if hasattr(purifier, "body") else purifier.lattice.points
    return _seen(point(integers))


def _seen(point: Any) -> tuple[float, ...]:
    return tuple(round(float(x), 9) + 0.0 for x in point)


@dataclass(frozen=True)
class Fit:
    """A p-value, and how much of the law lies outside the window."""

    p_value: float
    outside: float


def fit(purifier: Any, value: Any, law: Row, draws: int) -> Fit:
    """Compare `draws` calls of `apply` with the law, as the reader sees it."""
    bits = ReplayBits(f"{purifier!r} {value!r}")
    expected: dict[Any, float] = {}
    for outcome, p in law.items():
        key = published(purifier, outcome)
        expected[key] = expected.get(key, 0.0) + float_of(p)
    read = purifier.space.index if hasattr(purifier, "space") else _seen
    counts = Counter(read(purifier.apply(value, bits)) for _ in range(draws))
    keys = sorted(expected, key=lambda key: expected[key])
    outside = max(0.0, 1 - sum(expected.values()))
    observed = [counts[key] for key in keys]
    unseen = draws - sum(observed)
    probabilities = [outside, *(expected[key] for key in keys)]
    total = sum(probabilities)
    p_value = goodness_of_fit([unseen, *observed], [p / total for p in probabilities])
    return Fit(p_value, outside)


def body_of(lattice: GridLattice | BallLattice) -> Body:
    """A lattice's body."""
    return Body(lattice=lattice)


def rows_of(purifier: Any, values: Sequence[Any] | None = None) -> list[Row]:
    """The matrix: one row per value."""
    return [row(purifier, value) for value in (values_of(purifier) if values is None else values)]
