"""Channels that mix a rounded answer with a public draw: finite spaces, balls, grids (B1, B2, B4).

They cost no extra ε. The error is that of rounding plus w times the size of the space. On a grid,
equal numbers of cells in all coordinates are best for cubes, equal spacing for other boxes.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, TypeVar, final

import numpy as np
import numpy.typing as npt

from zerodelta.channels.channel import MAX_NATS, Mixing, Purifier, coarsened, mix
from zerodelta.errors import require
from zerodelta.exact.arrays import Floats
from zerodelta.exact.bits import BitSource, Integers
from zerodelta.exact.integers import categorical, uniform_below, uniform_below_each
from zerodelta.exact.logs import ball, upper
from zerodelta.exact.noise import rounded_gaussian, rounded_laplace
from zerodelta.exact.rational import Rational, as_count, as_positive, as_rational, decimal_up
from zerodelta.privacy.claims import ApproxDP
from zerodelta.privacy.steps import Status, Step
from zerodelta.privacy.theorems import mixing as theorems
from zerodelta.spaces import BallLattice, Box, FiniteSpace, GridLattice, Space
from zerodelta.spaces.lattices import UnequalGrid
from zerodelta.value import value

# -- l2 and l1 balls on a lattice, mixed with public noise on the same lattice (B2, R(v), R(vi)) --
# The answer is rounded to a lattice point of the ball, decided in integers. With probability w it
# is replaced by noise around the center: rounded Gaussian on an l2 ball, rounded Laplace on an l1
# ball. A draw outside the ball is projected onto it, which is post-processing.


@dataclass(frozen=True, kw_only=True)
class _BallMixing(Mixing):
    """The integer points of a ball, mixed with noise around its center."""

    lattice: BallLattice
    norm: ClassVar[int]

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            self.lattice.norm == self.norm,
            "lattice",
            f"norm {self.lattice.norm}",
            expected=f"the lattice of an l{self.norm} ball",
            remedy="use GaussianMix for norm=2, LaplaceMix for norm=1, GridMix for norm=inf",
        )

    @abstractmethod
    def draw(self, bits: BitSource) -> Integers:
        """Return one draw of the noise, in lattice units."""

    @abstractmethod
    def spacing(self, limit: float) -> float:
        """Return the spacing at which the closed form of `log_mass` equals the limit."""

    def apply(self, value: Any, bits: BitSource) -> npt.NDArray[np.float64]:
        """Return the value's lattice point, or a noisy one, projected onto the ball."""
        kept = self.lattice.quantize(value)
        drawn = self.draw(bits)
        return self.lattice.points(mix(kept, drawn, self.mixing_weight, bits))

    @property
    def dimension(self) -> int:
        return self.lattice.dimension

    @property
    def radius(self) -> float:
        """The radius of the ball."""
        return float(self.lattice.ball.radius)

    def kept_error(self) -> float:
        return float(self.lattice.spacing) * math.sqrt(self.dimension / 12)

    def rounding(self, limit: float) -> float:
        return self.spacing(limit) * math.sqrt(self.dimension / 12)

    def displacement(self) -> float:
        return math.sqrt(2) * self.radius

    def finest(self, limit: float, weight: Fraction) -> _BallMixing:
        ball = self.lattice.ball
        return coarsened(
            decimal_up(self.spacing(limit)),
            limit,
            lambda s: replace(self, lattice=ball.lattice(s), mixing_weight=weight),
        )


@value
class GaussianMix(_BallMixing):
    """The integer points of an l2 ball; rounded N(0, τ²I) with probability w (B2 with R(v)).

    Guarantee: ln M = (d/2) ln(2πτ²) + (B + d/12)/(2τ²), B the largest squared norm of a point.
    """

    norm = 2
    word = "gaussian"
    title = "l2 lattice, rounded Gaussian (R(v))"

    @property
    def variance(self) -> Fraction:
        """The τ² = (B + d/12)/d that minimizes ln M."""
        return Fraction(self.lattice.bound, self.dimension) + Fraction(1, 12)

    def draw(self, bits: BitSource) -> Integers:
        """Return the noise, in lattice units."""
        return rounded_gaussian(variance=self.variance, size=self.dimension, bits=bits)

    def log_ratio_at(self, resolution: float = math.inf) -> float:
        """Return the closed form of ln M at its best noise."""
        d = self.dimension
        steps = min(max(self.radius / resolution, math.sqrt(d) / 2), 2.0**49)
        variance = (steps + math.sqrt(d) / 2) ** 2 / d + 1 / 12
        return d / 2 * (math.log(2 * math.pi * variance) + 1)

    def spacing(self, limit: float) -> float:
        """Return the spacing at which the closed form of `log_mass` equals the limit.

        At the best variance τ² ln M is about (d/2)(ln(2πτ²) + 1), which is solved for τ².
        """
        d = self.dimension
        variance = math.exp(2 * min(limit / d, MAX_NATS) - 1) / (2 * math.pi)
        steps = math.sqrt(max(d * (variance - 1 / 12), 0.0)) - math.sqrt(d) / 2
        return max(1 / steps, 2.0**-49) * self.radius if steps > 0 else math.inf

    @property
    def theorem(self) -> theorems.GaussianNet:
        """R(v): ln(1/q_min)."""
        return theorems.GaussianNet(
            dimension=self.dimension,
            bound=self.lattice.bound,
            variance=self.variance,
            weight=self.mixing_weight,
        )


@value
class LaplaceMix(_BallMixing):
    """The integer points of an l1 ball; rounded product Laplace noise with probability w (R(vi)).

    Guarantee: ln M = m/b - d ln(1 - e^(-1/2b)), m the largest norm of a point.
    """

    norm = 1
    word = "laplace"
    title = "l1 lattice, rounded Laplace (R(vi))"

    @property
    def scale(self) -> Fraction:
        """The scale b = 1/(2y) that minimizes ln M: y solves 2m = d e^(-y)/(1 - e^(-y))."""
        m, d = self.lattice.bound, self.dimension
        y = math.log1p(d / (2 * m)) if m else 40.0
        return Fraction(1 / (2 * y)).limit_denominator(10**9)

    def draw(self, bits: BitSource) -> Integers:
        """Return the noise, in lattice units."""
        return rounded_laplace(scale=self.scale, size=self.dimension, bits=bits)

    def log_ratio_at(self, resolution: float = math.inf) -> float:
        """Return the closed form of ln M at its best noise."""
        return self._mass(max(self.radius / resolution, 1.0))

    def spacing(self, limit: float) -> float:
        """Return the spacing at which the closed form equals the limit, by bisection."""
        if self._mass(1.0) > limit:
            return math.inf
        low, high = 0.0, MAX_NATS
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if self._mass(math.exp(middle)) <= limit else (low, middle)
        return self.radius / math.exp(low)

    def _mass(self, steps: float) -> float:
        """Return ln M at its best noise, for a ball of this many lattice steps."""
        y = math.log1p(self.dimension / (2 * steps))
        return 2 * steps * y - self.dimension * math.log(-math.expm1(-y))

    @property
    def theorem(self) -> theorems.LaplaceNet:
        """R(vi): ln(1/q_min)."""
        return theorems.LaplaceNet(
            dimension=self.dimension,
            bound=self.lattice.bound,
            scale=self.scale,
            weight=self.mixing_weight,
        )


# -- Finite spaces: a random element instead of the answer with probability w (Theorem B1) --------


@dataclass(frozen=True, kw_only=True)
class _FiniteMixing(Mixing):
    """The projected answer, or a draw from Q: nothing is rounded, only the weight is searched."""

    space: FiniteSpace

    @abstractmethod
    def draw(self, bits: BitSource) -> int:
        """Return the index of a draw from Q."""

    def apply(self, value: Any, bits: BitSource) -> Any:
        """Return the projected value or a draw from Q."""
        kept = self.space.index(value)
        drawn = self.draw(bits)
        return self.space.element(mix(kept, drawn, self.mixing_weight, bits))

    @property
    def dimension(self) -> int:
        return 0

    def kept_error(self) -> float:
        return 0.0

    def rounding(self, limit: float) -> float:
        return 0.0

    def log_ratio_at(self, resolution: float = math.inf) -> float:
        return self.log_mass

    def finest(self, limit: float, weight: Fraction) -> _FiniteMixing:
        return replace(self, mixing_weight=weight)


@value
class FiniteMix(_FiniteMixing):
    """A uniform element instead of the answer, with probability w.

    Guarantee: M = N, the number of elements; no other channel needs less (B1, exactly minimax
    optimal by O1). Error: P(another element) = w (1 - 1/N).
    """

    word = "uniform"
    title = "a uniform element (B1)"

    def draw(self, bits: BitSource) -> int:
        """Return the index of a draw from Q."""
        return int(uniform_below(self.space.size, size=1, bits=bits)[0])

    def displacement(self) -> float:
        """Return the largest probability that a draw from Q is another element."""
        return float(1 - Fraction(1, self.space.size))

    @property
    def theorem(self) -> theorems.UniformMixing:
        """B1: ln N."""
        return theorems.UniformMixing(size=self.space.size, weight=self.mixing_weight)


@final
@dataclass(frozen=True, kw_only=True)
class PriorMix(_FiniteMixing):
    """A draw from a public prior Q instead of the answer; the prior need not be normalized.

    Guarantee: M = 1/q_min. Error: w P_Q(another element), at most w.

    >>> from zerodelta.spaces import Finite
    >>> PriorMix(space=Finite(3), mixing_weight="1/9", prior=["1/2", "1/3", "1/6"]).prior
    (3, 2, 1)
    """

    prior: tuple[int, ...]
    word = "prior"
    title = "a draw from a public prior (B1)"

    def __post_init__(self) -> None:
        super().__post_init__()
        exact = [as_positive(p, "prior") for p in _per_element(self.prior, "prior", self.space)]
        object.__setattr__(self, "prior", _integer_proportions(exact))

    def draw(self, bits: BitSource) -> int:
        """Return the index of a draw from Q."""
        return int(categorical(self.prior, size=1, bits=bits)[0])

    def displacement(self) -> float:
        """Return the largest probability that a draw from Q is another element."""
        return float(1 - self._smallest())

    @property
    def theorem(self) -> theorems.PriorMixing:
        """B1 for a prior: ln(1/q_min)."""
        return theorems.PriorMixing(
            size=self.space.size,
            smallest_probability=self._smallest(),
            weight=self.mixing_weight,
        )

    def _smallest(self) -> Fraction:
        """Return the smallest probability of the prior."""
        return Fraction(min(self.prior), sum(self.prior))


@value
class ProfileMix(Purifier):
    """The optimal prior when a pointwise profile is known: Q ∝ δ_t(y) (B1, "Which delta?").

    `profile[y]` bounds sup over neighbors of P_D(y) - e^t P_D'(y) at t = `at_epsilon`, for every
    index y of the space; it is caller-asserted, so its step is `asserted`.

    Guarantee: pure t-DP with the smallest weight any prior allows, w/(1-w) = Σ_y δ_t(y)/(e^t - 1).
    A claim says less than the profile, so it is not used.
    """

    space: FiniteSpace
    at_epsilon: Fraction
    profile: tuple[Fraction, ...]
    word = "profile"
    title = "a draw in proportion to a profile (B1)"
    rests_on_claim = False

    def __post_init__(self) -> None:
        entries = _per_element(self.profile, "profile", self.space)
        exact = tuple(as_rational(entry, "profile") for entry in entries)
        require(
            min(exact) >= 0 and max(exact) > 0,
            "profile",
            self.profile,
            expected="numbers >= 0, not all 0",
            remedy="a mechanism whose profile is 0 everywhere is pure already",
        )
        object.__setattr__(self, "profile", exact)
        target = as_positive(self.at_epsilon, "epsilon")
        object.__setattr__(self, "at_epsilon", target)

    @property
    def mixing_weight(self) -> Fraction:
        """Return w = x/(1+x), x = Σδ_t(y)/(e^t - 1) rounded up."""
        total = sum(self.profile, Fraction(0))
        odds = Fraction(upper(lambda: ball(total) / ball(self.at_epsilon).expm1()))
        return odds / (1 + odds)

    def claim(self) -> ApproxDP:
        """Return the (t, δ) claim that follows from the profile: δ(t) <= Σ_y δ_t(y)."""
        total = sum(self.profile, Fraction(0))
        return ApproxDP(self.at_epsilon, min(0.0, upper(lambda: ball(total).log())))

    def log_delta_required(self, epsilon: Rational) -> float:
        """Return the ln δ(ε) of a base that this channel purifies, whatever its profile is."""
        smallest = min(self.profile) / sum(self.profile)
        if smallest == 0:
            return -math.inf
        prior = theorems.PriorMixing(
            size=self.space.size, smallest_probability=smallest, weight=self.mixing_weight
        )
        return prior.log_delta_required(epsilon)

    def apply(self, value: Any, bits: BitSource) -> Any:
        """Return the projected value or a draw from the optimal prior."""
        kept = self.space.index(value)
        drawn = int(categorical(_integer_proportions(self.profile), size=1, bits=bits)[0])
        return self.space.element(mix(kept, drawn, self.mixing_weight, bits))

    def expected_error(self) -> float:
        """Return the largest probability of publishing another element."""
        return float(self.mixing_weight)

    def step(self) -> Step:
        """Return B1 for a pointwise profile."""
        numbers = {
            "epsilon": self.at_epsilon,
            "ratio": sum(self.profile, Fraction(0)),
            "weight": self.mixing_weight,
        }
        return Step(theorem="profile-mixing", numbers=numbers, status=Status.ASSERTED)


def _integer_proportions(exact: Sequence[Fraction]) -> tuple[int, ...]:
    """Return integers in the same proportions as these rationals."""
    unit = math.lcm(*(entry.denominator for entry in exact))
    return tuple(int(entry * unit) for entry in exact)


def _per_element(numbers: Sequence[Any], name: str, space: Space) -> list[Any]:
    """Return a list of numbers, refusing other than one for each element of a finite space."""
    try:
        entries = [] if isinstance(numbers, str) else list(numbers)
    except TypeError:  # not iterable
        entries = []
    require(
        isinstance(space, FiniteSpace) and len(entries) == space.size,
        name,
        numbers,
        expected="one number for each element of a finite space",
        remedy="list them in the order of the space's indices",
    )
    return entries


Equal = TypeVar("Equal", bound="_EqualCellMixing")


@dataclass(frozen=True, kw_only=True)
class _CellMixing(Mixing):
    """Cells of a box, mixed with a uniform one of them."""

    lattice: GridLattice | UnequalGrid

    @property
    def dimension(self) -> int:
        return self.lattice.dimension

    @cached_property
    def diameter(self) -> float:
        """√Σ side²: the rms distance of uniform points of one cell is 1/√12 of it, of two 1/√6."""
        return self.lattice.box.diameter()

    def displacement(self) -> float:
        return self.diameter / math.sqrt(6)


@dataclass(frozen=True, kw_only=True)
class _EqualCellMixing(_CellMixing):
    """K cells in every coordinate; the answer is kept up to m cells per coordinate.

    The log-ratio is d ln(K/m), and the rms error is that of a cell whose side is m/K of the box's.
    """

    lattice: GridLattice

    @abstractmethod
    def side(self) -> int:
        """Return m, the number of cells per side around the answer, one of which is kept."""

    def kept_error(self) -> float:
        return self.diameter * self.side() / self.lattice.cells / math.sqrt(12)

    def rounding(self, limit: float) -> float:
        return self.diameter / math.sqrt(12) / self._ratio(limit)

    def log_ratio_at(self, resolution: float = math.inf) -> float:
        width = float(np.max(self.lattice.box.widths()))
        cells = math.ceil(min(width / resolution, math.exp(MAX_NATS)))
        return theorems.GridMixing(
            cells=max(2, cells), dimension=self.dimension, weight=self.mixing_weight
        ).log_mass

    def finest(self: Equal, limit: float, weight: Fraction) -> Equal:
        """Return the channel with the most cells per side whose log mass is within the limit."""

        def at(cells: int) -> Equal:
            lattice = self.lattice.box.grid(max(cells, self.side()))
            return replace(self, lattice=lattice, mixing_weight=weight)

        fits, beyond = 1, 2 + int(self.side() * self._ratio(limit) * (1 + 1e-9))
        while beyond - fits > 1:
            middle = (fits + beyond) // 2
            fits, beyond = (middle, beyond) if at(middle).log_mass <= limit else (fits, middle)
        return at(fits)

    def _ratio(self, limit: float) -> float:
        """Return the ratio K/m of a log-ratio limit, as a real number."""
        return math.exp(min(limit / self.dimension, MAX_NATS))


@value
class GridMix(_EqualCellMixing):
    """A grid of K^d cells; a uniform cell with probability w (B2; minimax optimal on cubes, O2).

    Guarantee: ln M = d ln K.
    """

    word = "grid"
    title = "a uniform cell of a grid (B2)"

    def side(self) -> int:
        """Return 1: the value's own cell is kept."""
        return 1

    def apply(self, value: Any, bits: BitSource) -> Floats:
        """Return the center of the value's cell, or of a uniform cell."""
        kept = self.lattice.quantize(value)
        drawn = uniform_below(self.lattice.cells, size=self.dimension, bits=bits)
        return self.lattice.points(mix(kept, drawn, self.mixing_weight, bits))

    @property
    def theorem(self) -> theorems.GridMixing:
        """B2: d ln K."""
        return theorems.GridMixing(
            cells=self.lattice.cells,
            dimension=self.dimension,
            weight=self.mixing_weight,
        )


@final
@dataclass(frozen=True, kw_only=True)
class LocalUniformMix(_EqualCellMixing):
    """A local uniform kernel: a uniform one of the m^d cells around the value's (B4 (iii)).

    Guarantee: ln M = d ln(K/m). At the edge of the grid the kernel is shifted inside, so that it
    always has m^d cells. Elsewhere the answer is unbiased, to half a cell: at the same nats cells
    are m times finer than those of `GridMix`.
    """

    kernel_cells: int
    """Cells per side of the kernel, m."""
    word = "local-uniform"
    title = "a random cell near by, or any (B4)"
    reservation = "unbiased away from the edge, with no smaller error"

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            as_count(self.kernel_cells, "kernel_cells", minimum=1) <= self.lattice.cells,
            "kernel_cells",
            self.kernel_cells,
            expected=f"at most the grid's {self.lattice.cells} cells",
            remedy="use a smaller kernel or a finer grid",
        )

    def side(self) -> int:
        """Return the cells per side of the kernel."""
        return self.kernel_cells

    def apply(self, value: Any, bits: BitSource) -> Floats:
        """Return the center of a uniform cell of the kernel, or of the whole grid."""
        cells, side = self.lattice.cells, self.kernel_cells
        start = np.clip(self.lattice.quantize(value) - side // 2, 0, cells - side)
        kept = start + uniform_below(side, size=self.dimension, bits=bits)
        drawn = uniform_below(cells, size=self.dimension, bits=bits)
        return self.lattice.points(mix(kept, drawn, self.mixing_weight, bits))

    @property
    def theorem(self) -> theorems.LocalUniformKernel:
        """B4's local uniform kernel: d ln(K/m)."""
        return theorems.LocalUniformKernel(
            cells=self.lattice.cells,
            kernel_cells=self.kernel_cells,
            dimension=self.dimension,
            weight=self.mixing_weight,
        )


@final
@dataclass(frozen=True, kw_only=True)
class UnequalGridMix(_CellMixing):
    """A grid with its own number K_i of cells in every coordinate; a uniform cell of all (B2).

    Guarantee: ln M = Σ_i ln K_i; a certificate lists pairs [cells, number of such coordinates].
    For a fixed total number of cells the rms error, √(Σ(side/K)²/12), is smallest if all cells have
    the same side s; sides shorter than s are one cell. `finest` builds such grids.
    """

    lattice: UnequalGrid
    word = "grid"
    title = "a uniform cell, equal spacing (B2)"

    def apply(self, value: Any, bits: BitSource) -> Floats:
        """Return the center of the value's cell, or of a uniform cell."""
        kept = self.lattice.quantize(value)
        drawn = uniform_below_each(self.lattice.cells, bits=bits)
        return self.lattice.points(mix(kept, drawn, self.mixing_weight, bits))

    def kept_error(self) -> float:
        """Return the rms distance to the value: side/√12 a coordinate."""
        cells = self.sides.widths / self.lattice.counts
        return math.sqrt(float(np.sum(cells**2)) / 12)

    def rounding(self, limit: float) -> float:
        """Return the rms rounding error at the spacing of a log-ratio limit."""
        cut, spacing = self.sides.spacing(limit)
        uncut = self.sides.squares[cut] if cut < self.dimension else 0.0
        return math.sqrt((cut * spacing**2 + uncut * self.sides.widest**2) / 12)

    def log_ratio_at(self, resolution: float = math.inf) -> float:
        """Return Σ ln K_i of cells of this side, with at least two cells in the widest side."""
        spacing = min(max(resolution, self.sides.finest), self.sides.widest / 2)
        return self._mass_of(_cells(self.sides.widths, spacing))

    def finest(self, limit: float, weight: Fraction) -> UnequalGridMix:
        """Return the grid of the smallest spacing within the limit."""
        widths = self.sides.widths
        fine, fits = self.sides.spacing(limit)[1], self.sides.widest
        for _ in range(60):
            middle = math.sqrt(fine * fits)
            enough = float(np.log(_cells(widths, middle)).sum()) <= limit
            fine, fits = (fine, middle) if enough else (middle, fits)
        # the search above compared floats; the certified log-ratio may need slightly larger cells
        while self._mass_of(_cells(widths, fits)) > limit:
            fine, fits = fits, fits + 2 * (fits - fine) + fits * 1e-12
        lattice = self.lattice.box.unequal_grid([int(count) for count in _cells(widths, fits)])
        return replace(self, lattice=lattice, mixing_weight=weight)

    def _mass_of(self, cells: Floats) -> float:
        """Return Σ ln K_i of these cells, rounded up."""
        counts, times = np.unique(cells, return_counts=True)
        sides = [[int(count), int(number)] for count, number in zip(counts, times, strict=True)]
        return theorems.UnequalGridMixing(sides=sides, weight=self.mixing_weight).log_mass

    @cached_property
    def sides(self) -> _Sides:
        """The sides of the box, sorted once for the hundreds of forecasts of a plan."""
        return _Sides.of(self.lattice.box)

    @property
    def theorem(self) -> theorems.UnequalGridMixing:
        """B2: Σ ln K_i."""
        return theorems.UnequalGridMixing(sides=self.lattice.sides(), weight=self.mixing_weight)


@value
class _Sides:
    """The sides of a box, for the closed form of equal spacing.

    `sums` and `starts` list, from the widest side on, Σ ln side and the nats at which that side is
    first cut; `squares` the sums of the squares of the sides from it on, in units of the widest.
    """

    widths: Floats
    sums: list[float]
    starts: list[float]
    squares: list[float]

    @staticmethod
    def of(box: Box) -> _Sides:
        """Return the sides of a box, with the sums over sorted sides that the closed form needs."""
        widths = np.broadcast_to(box.widths(), (box.dimension,))
        logs = np.log(np.sort(widths)[::-1])
        sums = np.cumsum(logs)
        # coordinate m is first cut where the m wider ones have been cut down to its side
        starts = sums - np.arange(1, len(logs) + 1) * logs
        squares = np.cumsum(np.exp(2 * (logs[::-1] - logs[0])))[::-1]
        return _Sides(
            widths=widths, sums=sums.tolist(), starts=starts.tolist(), squares=squares.tolist()
        )

    @property
    def widest(self) -> float:
        return math.exp(self.sums[0])

    @property
    def finest(self) -> float:
        """The smallest spacing of a plan."""
        return math.exp(self.sums[0] - MAX_NATS)

    def spacing(self, limit: float) -> tuple[int, float]:
        """Return the number of sides that are cut, and the spacing, as if cells could be parts."""
        cut = max(1, bisect_right(self.starts, limit))
        return cut, max(math.exp((self.sums[cut - 1] - limit) / cut), self.finest)


def _cells(widths: Floats, spacing: float) -> Floats:
    """Return the number of cells of at most this side that each width takes."""
    return np.maximum(np.ceil(widths / spacing * (1 - 1e-12)), 1.0)
