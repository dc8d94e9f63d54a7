"""Add exactly drawn noise to vectors of integer sums (theory R, C10.4).

Each class of noise holds public numbers, returns the theorem that proves its ε, draws its noise,
and adds it to the sums without ever wrapping around.
"""

from __future__ import annotations

import math
import numbers
from abc import ABC, abstractmethod
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any, TypeAlias, TypeVar, cast, get_type_hints

import numpy as np
import numpy.typing as npt

from zerodelta.errors import require
from zerodelta.exact.bits import BitSource
from zerodelta.exact.noise import (
    ROOT,
    quantum_of,
    rounded_count_noise,
    rounded_gaussian,
    rounded_k_norm,
    rounded_laplace,
    rounded_matrix_laplace,
)
from zerodelta.exact.noise_tails import (
    NOISE_LAWS,
    Coefficients,
    CountsLaw,
    LaplaceLaw,
    Law,
    MatrixLaw,
    NoiseLaw,
)
from zerodelta.exact.rational import Rational, as_count, as_positive
from zerodelta.exact.sums import IntegerArray
from zerodelta.privacy.claims import Claim, PureDP
from zerodelta.privacy.parameters import Neighbors, as_bool
from zerodelta.privacy.steps import MAX_ENTRIES, Step
from zerodelta.privacy.theorems import noise as theorems
from zerodelta.privacy.theorems.theorem import BaseTheorem, PureTheorem
from zerodelta.value import value

_Unit: TypeAlias = Fraction | tuple[Fraction, ...]

_SMOOTH_DEVIATION = 50
"""Above this deviation the error is computed by the midpoint rule with its first correction term,
which is off by less than 1e-8 of it."""


# -- Mechanisms: public numbers, and the theorem that computes their cost from them ---------------

_S = TypeVar("_S", bound="ScaledMechanism")
_CHECKS: dict[Any, Any] = {
    int: lambda number, name: as_count(number, name, minimum=1),
    Fraction: as_positive,
    bool: as_bool,
}
"""How a field is checked, by its type; a field of another type is kept as it is."""


class Mechanism(ABC):
    """A mechanism that one theorem proves; everything stored in it is public.

    Claim and proof step are those of the theorem built from the fields, and the noise is drawn from
    the same fields, so that the noise, the ε that is paid and the ε that `verify` computes agree.
    """

    __slots__ = ()

    neighbors: Neighbors

    def __post_init__(self) -> None:
        """Make every number exact; refuse integers below 1 and fractions that are not above 0."""
        for name, check in _checks(type(self)):
            object.__setattr__(self, name, check(getattr(self, name), name))

    @property
    @abstractmethod
    def theorem(self) -> BaseTheorem:
        """The theorem, with the numbers that its proof step states."""

    @property
    def claim(self) -> Claim:
        """The privacy claim of one use."""
        return self.theorem.claim(self.neighbors)

    def step(self) -> Step:
        """Return the proof step of one use."""
        return self.theorem.step(self.neighbors)


class PureMechanism(Mechanism):
    """A mechanism that satisfies pure DP by itself."""

    __slots__ = ()

    @property
    @abstractmethod
    def theorem(self) -> PureTheorem:
        """The theorem, with the numbers that its proof step states."""

    @property
    def claim(self) -> PureDP:
        """The privacy claim of one use."""
        return cast(PureDP, self.theorem.claim(self.neighbors))

    @property
    def epsilon(self) -> Fraction:
        """The ε of one use, exactly."""
        return self.theorem.cost(self.neighbors)


class ScaledMechanism(PureMechanism):
    """A mechanism whose ε is inverse to its scale."""

    __slots__ = ()

    scale: Fraction

    @classmethod
    def for_epsilon(cls: type[_S], *, epsilon: Rational, **fields: Any) -> _S:
        """Return the mechanism with exactly this ε; `fields` are all others but its scale."""
        unit = cls(**{**fields, "scale": Fraction(1)})
        return replace(unit, scale=unit.epsilon / as_positive(epsilon, "epsilon"))  # type: ignore[type-var]


@cache
def _checks(kind: type) -> tuple[tuple[str, Any], ...]:
    """Return the name of each checked field of a mechanism class, with its check."""
    hints = get_type_hints(kind)
    return tuple((name, _CHECKS[hint]) for name, hint in hints.items() if hint in _CHECKS)


# -- Noise on exact sums --------------------------------------------------------------------------


class SumNoise(Mechanism):
    """Noise that is added to exact integer sums."""

    __slots__ = ()

    @property
    def length(self) -> int | None:
        """The number of sums; None if the noise is for any number of them."""
        return None

    @abstractmethod
    def noise(self, count: int, bits: BitSource) -> npt.NDArray[Any]:
        """Return the noise on `count` sums, drawn exactly."""

    def apply(self, sums: npt.NDArray[np.generic], bits: BitSource) -> IntegerArray:
        """Return the noisy sums; never wraps around."""
        check_sums(sums, length=self.length)
        return add_exactly(sums, self.noise(len(sums), bits))


class ScaledNoise(SumNoise, ScaledMechanism):
    """Noise that satisfies pure DP by itself, with an ε inverse to its scale."""

    __slots__ = ()

    @property
    @abstractmethod
    def noise_law(self) -> Law:
        """The law of the integer noise: on all sums, or on each block of them."""

    def law(self, *, unit: _Unit, rows: int = 1) -> NoiseLaw:
        """Return the law of the noise on a released value: a sum, or a mean of `rows` rows.

        An integer sum of 1 stands for `unit` in the unit of the data.
        """
        shared = tuple(u / rows for u in unit) if isinstance(unit, tuple) else unit / rows
        return self.noise_law.on(shared)

    def error(self) -> float:
        """Return the expected absolute error of a coordinate."""
        return self.noise_law.error()

    def covariance(self, first: Coefficients, second: Coefficients) -> float:
        """Return the covariance of two linear forms of the noise on one line of sums."""
        return self.noise_law.covariance(first, second)


# -- Adding integer noise to exact integer sums without ever wrapping around (theory R) -----------
# A sum that wraps or saturates *before* the noise has another sensitivity than the one that was
# proved, so Python integers are used wherever 64 bits might not suffice.

_SMALLEST, _LARGEST = -(1 << 63), (1 << 63) - 1


def check_sums(sums: npt.NDArray[np.generic], *, length: int | None = None) -> None:
    """Refuse anything but one vector of integers, by its shape and types only."""
    array = isinstance(sums, np.ndarray)
    require(
        array and sums.ndim == 1 and _holds_integers(sums),
        "type of sums",
        f"{sums.dtype}, {sums.ndim}-d" if array else type(sums),  # never an entry: it may be data
        expected="a one-dimensional NumPy array of integers",
        remedy="pass what Rows.sum, Rows.counts or exact_sum returns",
    )
    require(
        length is None or len(sums) == length,
        "length of sums",
        len(sums),
        expected=f"{length}, the dimension of the noise",
        remedy="build the mechanism for the dimension of the sum",
    )


def add_exactly(sums: npt.NDArray[Any], noise: npt.NDArray[Any]) -> IntegerArray:
    """Return sums + noise: int64 if every result fits, else Python integers.

    The type is released too, so it is decided from the *results*, never from the sums.

    >>> add_exactly(np.array([2**63 - 1, 5]), np.array([1, -7]))
    array([9223372036854775808, -2], dtype=object)
    """
    if len(sums) == 0:
        return np.zeros(0, dtype=np.int64)
    wide = object in (sums.dtype, noise.dtype)
    low, high = int(sums.min()) + int(noise.min()), int(sums.max()) + int(noise.max())
    if not wide and low >= _SMALLEST and high <= _LARGEST:
        return np.add(sums.astype(np.int64), noise.astype(np.int64))
    total = [int(value) + int(draw) for value, draw in zip(sums, noise, strict=True)]
    fits = min(total) >= _SMALLEST and max(total) <= _LARGEST
    return np.array(total, dtype=np.int64) if fits else np.array(total, dtype=np.object_)


def _holds_integers(sums: npt.NDArray[np.generic]) -> bool:
    if sums.dtype == object:
        return all(isinstance(v, numbers.Integral) and not isinstance(v, bool) for v in sums)
    return sums.dtype.kind in "iu"


# -- Independent noise ----------------------------------------------------------------------------


@value
class RoundedLaplace(ScaledNoise):
    """Releases an integer vector plus independent noises round(Laplace(scale)).

    **Neighbors**: those for which `sensitivity` holds; replace-one unless said otherwise.
    **Guarantee**: pure DP with ε = sensitivity / scale, if neighboring vectors are at most
    `sensitivity` apart in the l1 norm (theory R).
    **Public**: everything stored here, and the length of the vector.
    **Error**: E|round(Laplace(b))| = 1/(2 sinh(1/(2b))) per coordinate, about b.

    >>> from zerodelta.exact.bits import SystemBits
    >>> mechanism = RoundedLaplace.for_epsilon(epsilon="1/2", sensitivity=2)
    >>> mechanism.scale, round(mechanism.error(), 3)
    (Fraction(4, 1), 3.99)
    >>> mechanism.apply(np.array([100, 200]), SystemBits()).shape
    (2,)
    """

    sensitivity: Fraction
    scale: Fraction
    neighbors: Neighbors = Neighbors.REPLACE

    @property
    def theorem(self) -> theorems.RoundedLaplaceTheorem:
        """Theorem R."""
        return theorems.RoundedLaplaceTheorem(sensitivity=self.sensitivity, scale=self.scale)

    def noise(self, count: int, bits: BitSource) -> npt.NDArray[Any]:
        """Return independent noises."""
        return rounded_laplace(scale=self.scale, size=count, bits=bits)

    @property
    def noise_law(self) -> LaplaceLaw:
        """Independent rounded Laplace noises."""
        return LaplaceLaw(scale=self.scale)


@value
class RoundedGaussian(SumNoise):
    """Answers an internal query: an integer vector plus independent noises round(N(0, variance)).

    It does not satisfy pure DP: its answers are purified before anything is published.

    **Neighbors**: those for which `sensitivity_squared` holds; replace-one unless said otherwise.
    **Guarantee**: μ-Gaussian DP with μ² = sensitivity_squared / variance, if neighboring vectors
    are at most √sensitivity_squared apart in the l2 norm (theory R); also when the
    vector was chosen after earlier answers (R2).
    **Public**: everything stored here, and the length of the vector.
    **Error**: about √(2/π) standard deviations per coordinate.

    >>> from zerodelta.exact.bits import SystemBits
    >>> mechanism = RoundedGaussian.for_mu_squared(mu_squared="1/50", sensitivity_squared=2)
    >>> mechanism.variance, round(mechanism.error(), 3)
    (Fraction(100, 1), 7.976)
    >>> mechanism.apply(np.array([100, 200]), SystemBits()).shape
    (2,)
    """

    sensitivity_squared: Fraction
    variance: Fraction
    neighbors: Neighbors = Neighbors.REPLACE

    @classmethod
    def for_mu_squared(
        cls,
        *,
        mu_squared: Rational,
        sensitivity_squared: Rational,
        neighbors: Neighbors = Neighbors.REPLACE,
    ) -> RoundedGaussian:
        """Return the mechanism with exactly this μ²; `calibrate` computes one from ε and ln δ."""
        squared = as_positive(sensitivity_squared, "sensitivity_squared")
        variance = squared / as_positive(mu_squared, "mu_squared")
        return cls(sensitivity_squared=squared, variance=variance, neighbors=neighbors)

    @property
    def theorem(self) -> theorems.RoundedGaussianTheorem:
        """Theorem R."""
        return theorems.RoundedGaussianTheorem(
            sensitivity_squared=self.sensitivity_squared, variance=self.variance
        )

    def noise(self, count: int, bits: BitSource) -> npt.NDArray[Any]:
        """Return independent noises."""
        return rounded_gaussian(variance=self.variance, size=count, bits=bits)

    def error(self) -> float:
        """Return the expected absolute error of a coordinate: 2 sum_{k>=1} P(noise >= k)."""
        deviation = math.sqrt(self.variance)
        if deviation > _SMOOTH_DEVIATION:  # the sum is a midpoint rule for E|N(0, σ²)|
            return deviation * math.sqrt(2 / math.pi) - 1 / (
                12 * math.sqrt(2 * math.pi) * deviation
            )
        cells = range(1, 2 + math.ceil(40 * deviation))
        return math.fsum(math.erfc((k - 0.5) / (deviation * math.sqrt(2))) for k in cells)


def noisy_gram(
    gram: IntegerArray, on_diagonal: RoundedGaussian, off_diagonal: RoundedGaussian, bits: BitSource
) -> npt.NDArray[np.float64]:
    """Add Gaussian noise to a symmetric matrix, so that it stays symmetric.

    In the Frobenius norm each off-diagonal entry counts twice, so its noise has half the variance
    of the noise on the diagonal.
    """
    noisy = np.zeros(gram.shape)
    above = np.triu_indices(len(gram), 1)
    noisy[above] = off_diagonal.apply(gram[above], bits)
    noisy += noisy.T
    noisy[np.diag_indices(len(gram))] = on_diagonal.apply(gram.diagonal().copy(), bits)
    return noisy


# -- One draw over several sums -------------------------------------------------------------------


@value
class KNorm(ScaledNoise):
    """Releases an integer vector plus round(z), z with density proportional to exp(-‖z‖/scale).

    **Neighbors**: those for which `sensitivity` holds; replace-one unless said otherwise.
    **Guarantee**: pure DP with ε = sensitivity / scale, if neighboring vectors are at most
    `sensitivity` apart in `norm` (1, 2 or ``math.inf``), whatever the dimension (theory R, C10.4).
    **Public**: everything stored here.
    **Error**: per coordinate scale (l1), scale·(d+1)/2 (linf), about scale·√(2d/π) (l2).

    >>> from zerodelta.exact.bits import SystemBits
    >>> mechanism = KNorm.for_epsilon(epsilon=1, norm=math.inf, dimension=3, sensitivity=10)
    >>> mechanism.scale, mechanism.error()
    (Fraction(10, 1), 20.0)
    >>> mechanism.apply(np.array([100, 200, 300]), SystemBits()).shape
    (3,)
    """

    norm: float
    dimension: int
    sensitivity: Fraction
    scale: Fraction
    neighbors: Neighbors = Neighbors.REPLACE

    def __post_init__(self) -> None:
        ScaledNoise.__post_init__(self)
        object.__setattr__(self, "norm", as_norm(self.norm))

    @property
    def theorem(self) -> theorems.KNormNoiseTheorem:
        """Theorem R, on integers without a unit, such as counts."""
        norm = "inf" if self.norm == math.inf else int(self.norm)
        return theorems.KNormNoiseTheorem(
            norm=norm, quantum=1, sensitivity=self.sensitivity, scale=self.scale
        )

    def step(  # type: ignore[override]  # every caller must state the unit
        self, *, quantum: _Unit | None, blocks: bool = False
    ) -> Step:
        """Return the proof step of one draw, or of one draw for each block of a longer vector.

        `quantum` is the size of one integer in the unit of the data, one number for all coordinates
        or one for each; None where the integers are counts, or have no unit. With ``blocks=True``
        the step is for the noise on all blocks together, whose norm is the sum of the l2 norms of
        the blocks; neighboring vectors are at most `sensitivity` apart in that norm.
        """
        require(
            not blocks or self.norm == 2,
            "blocks",
            blocks,
            expected="False unless norm=2",
            remedy="pass KNorm(norm=2, ...)",
        )
        norm = "blocks" if blocks else self.theorem.norm
        theorem = replace(self.theorem, norm=norm, quantum=_short(quantum))
        return theorem.step(self.neighbors)

    @property
    def length(self) -> int:
        """The dimension."""
        return self.dimension

    def noise(self, count: int, bits: BitSource) -> npt.NDArray[Any]:
        """Return the noise of one draw."""
        noise = rounded_k_norm(
            norm=self.norm, dimension=self.dimension, scale=self.scale, size=1, bits=bits
        )
        return noise.reshape(-1)

    @property
    def noise_law(self) -> Law:
        """One draw in this norm."""
        return NOISE_LAWS["k-norm", self.norm](scale=self.scale, dimension=self.dimension)


def as_norm(norm: float) -> float:
    """Return the norm as a float, refusing all but 1, 2 and infinity."""
    plain = isinstance(norm, numbers.Real) and not isinstance(norm, bool)
    is_norm = plain and norm in (1, 2, math.inf)
    remedy = "pass one of these three norms"
    require(is_norm, "norm", norm, expected="1, 2 or math.inf", remedy=remedy)
    return float(norm)


def _short(quantum: _Unit | None) -> Fraction | list[Fraction] | str:
    """Return one quantum if all coordinates share it, else a list, or a word for a long list."""
    if quantum is None:
        return Fraction(1)
    if isinstance(quantum, Fraction):
        return quantum
    if len(set(quantum)) == 1:
        return quantum[0]
    return list(quantum) if len(quantum) <= MAX_ENTRIES else theorems.OWN_UNITS


DIAGONAL, OFF_DIAGONAL = ROOT.denominator, ROOT.numerator
"""Integer weights of the entries of the upper triangle. The Frobenius norm counts off-diagonal
entries twice, so they are multiplied by about √2 relative to the diagonal: 99/70, which is larger
by less than 1/10000. The l2 norm of the weighted triangle is then at most 99/√2 times the Frobenius
norm."""

OFF_DIAGONAL_OVER_ROOT = Fraction(OFF_DIAGONAL, 1) * Fraction(7072, 10_000)
"""A number slightly above 99/√2."""


@value
class MatrixLaplace(ScaledMechanism):
    """Releases the sums of products k kᵀ over integer rows k plus a symmetric noise matrix.

    The noise is scale·(G₁G₁ᵀ - G₂G₂ᵀ)/2 with d × (d+1) matrices of standard normals. The sums are
    the upper triangle, with weights `DIAGONAL` and `OFF_DIAGONAL`; what is released are integers in
    units of `quantum`.

    **Neighbors**: replace-one or add-remove.
    **Guarantee**: pure DP with ε = 2·squared_length/scale for a replaced row, half of that for one
    added or removed, if every row has at most this squared length (theory W2).
    **Public**: everything stored here.
    **Error**: an entry off the diagonal has standard deviation scale·√((d+1)/2), one on it √2 times
    as much.

    >>> from zerodelta.exact.bits import SystemBits
    >>> noise = MatrixLaplace.for_epsilon(epsilon=1, dimension=3, squared_length=10)
    >>> noise.scale
    Fraction(20, 1)
    >>> noise.apply(np.array([70, 99, 99, 70, 99, 70]), SystemBits()).shape
    (6,)
    """

    dimension: int
    squared_length: Fraction
    scale: Fraction
    neighbors: Neighbors = Neighbors.REPLACE

    @property
    def theorem(self) -> theorems.MatrixLaplaceTheorem:
        """Theorem W2."""
        return theorems.MatrixLaplaceTheorem(
            dimension=self.dimension, squared_length=self.squared_length, scale=self.scale
        )

    @property
    def quantum(self) -> int:
        """The weighted sum of which a released integer is a multiple: a power of two, or 1."""
        return quantum_of(DIAGONAL * self.scale)

    @property
    def weights(self) -> npt.NDArray[np.int64]:
        """The weights of the entries of the upper triangle, line by line."""
        first, second = np.triu_indices(self.dimension)
        return np.where(first == second, DIAGONAL, OFF_DIAGONAL)

    def apply(self, sums: npt.NDArray[np.generic], bits: BitSource) -> IntegerArray:
        """Return the noisy weighted triangle in units of `quantum`."""
        check_sums(sums, length=self.dimension * (self.dimension + 1) // 2)
        exact = sums.astype(object)
        drawn = rounded_matrix_laplace(
            dimension=self.dimension,
            scale=DIAGONAL * self.scale / self.quantum,
            center=[Fraction(int(rest), self.quantum) for rest in exact % self.quantum],
            bits=bits,
        )
        return add_exactly(exact // self.quantum, drawn)

    @property
    def noise_law(self) -> MatrixLaw:
        """The law of the released integers."""
        return MatrixLaw(scale=DIAGONAL * self.scale / self.quantum, dimension=self.dimension)


@value
class CountNoise(ScaledNoise):
    """Releases counts plus round(z), z with density proportional to exp(-max(Σz⁺, Σz⁻)/scale).

    **Neighbors**: a row leaves one count (or none) and joins another (or none).
    **Guarantee**: pure DP with ε = 1 / scale: neighboring counts are at most 1 apart in that norm
    (theory R, C10.4).
    **Public**: everything stored here.
    **Error**: 2·scale·d/(d+1) per count before rounding; independent Laplace noise needs 2·scale.

    >>> from zerodelta.exact.bits import SystemBits
    >>> mechanism = CountNoise.for_epsilon(epsilon="1/2", dimension=3)
    >>> mechanism.scale, round(mechanism.error(), 1)
    (Fraction(2, 1), 3.0)
    >>> mechanism.apply(np.array([100, 200, 300]), SystemBits()).shape
    (3,)
    """

    dimension: int
    scale: Fraction
    neighbors: Neighbors = Neighbors.REPLACE

    @property
    def theorem(self) -> theorems.KNormNoiseTheorem:
        """Theorem R in the norm of counts."""
        return theorems.KNormNoiseTheorem(
            norm="counts", quantum=1, sensitivity=Fraction(1), scale=self.scale
        )

    @property
    def length(self) -> int:
        """The dimension."""
        return self.dimension

    def noise(self, count: int, bits: BitSource) -> npt.NDArray[Any]:
        """Return the noise of one draw."""
        return rounded_count_noise(dimension=self.dimension, scale=self.scale, bits=bits)

    @property
    def noise_law(self) -> CountsLaw:
        """One draw in the norm of counts."""
        return CountsLaw(scale=self.scale, dimension=self.dimension)
