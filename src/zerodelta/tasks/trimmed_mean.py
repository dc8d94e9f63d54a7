"""The trimmed mean: smooth sensitivity, propose-test-release, or Laplace noise (C10.3, C3, R)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, final

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from zerodelta.errors import ParameterError
from zerodelta.exact.bits import BitSource, SystemBits
from zerodelta.exact.fixed_point import FixedPoint
from zerodelta.exact.rational import Rational, as_count, as_positive, as_rational
from zerodelta.mechanisms.laplace import RoundedLaplace
from zerodelta.paper.algorithm_10 import free_propose_test_release
from zerodelta.paper.stable_queries import TrimmedMean
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.parameters import as_usable_epsilon
from zerodelta.privacy.release import Release
from zerodelta.privacy.theorems.testing import free_test_threshold
from zerodelta.spine.methods import Method, choose, ranked
from zerodelta.spine.public_inputs import as_bounds, as_source, column
from zerodelta.spine.transition import for_source, issue_for, opened, row_count
from zerodelta.tasks.smooth_trimmed_mean import (
    SmoothNoise,
    best_smooth_noise,
    order_of,
    reaches,
)

__all__ = ["trimmed_mean", "trimmed_mean_methods"]

_SPREADS = tuple(10.0 ** (-k / 2) for k in range(2, 13))
"""Without a guess: spreads from a tenth to a millionth of the width, for which the noise must not
be much larger than the best for each (least worst regret, at most 2.3; bench/defaults.py)."""

_SHARES = tuple(Fraction(k, 10) for k in range(1, 10))
_FINEST = Fraction(1, 10**9)
_SAFETY = 1.25
"""The proposed bound is for a spread this much larger: a failed test is a random answer."""

_PUBLIC = ("the number of rows", "bounds on the rows", "how many rows are trimmed")


def trimmed_mean(
    rows: Any,
    *,
    trim: Rational,
    bounds: tuple[Rational, Rational] | None = None,
    epsilon: Rational,
    spread: Rational | None = None,
    method: str = "auto",
    bits: BitSource | None = None,
) -> Release:
    """Release the mean of one column without its ⌊trim·n⌋ smallest and as many largest rows.

    **Releases**: a number on a fine public lattice between the bounds. `method`:
    "smooth-sensitivity" (Student-t noise), "propose-test-release" (needs `spread`), "laplace"
    (noise for the width of the bounds).
    **Neighbors**: replace-one (n is public).
    **Guarantee**: pure ε-DP (theory C10.3, C3 or R), proven.
    **Public**: n, `trim` in [0, 1/2), `bounds`, and `spread`: a guess of the standard deviation of
    the rows, better a little too large. It tunes the noise; a wrong guess costs accuracy, never
    privacy. Rows beyond the bounds are moved to them, a NaN counts as the middle.
    Without one the noise is tuned for all spreads from a tenth to a millionth of the width at once.
    **Error**: the expected absolute error for normal rows with that spread in the middle of the
    bounds; real rows differ. Without a guess a text: what it would be for the widest and the
    narrowest spread, because how the rows lie is not public.

    >>> incomes = np.linspace(20, 60, 20_000)
    >>> release = trimmed_mean(incomes, trim=0.1, bounds=(0, 1000), spread=12, epsilon=1)
    >>> 39 < release.value < 41, release.certificate.claim
    (True, PureDP(epsilon=1, bounded_range=0, neighbors=replace))
    """
    bits = SystemBits() if bits is None else bits
    source, exact = as_source(rows), as_usable_epsilon(epsilon)
    plan = _plan(n=row_count(source), trim=trim, bounds=bounds, epsilon=exact, spread=spread)
    chosen = choose(plan.methods(), method)
    if chosen.name == "propose-test-release":
        value, certificate = plan.tested(column(opened(source)), bits)
        certificate = for_source(certificate, source)
    else:
        noise = plan.smooth if chosen.name == "smooth-sensitivity" else plan.laplace
        certificate = issue_for(
            source, claim=PureDP(exact), steps=(noise.step(),), bits=bits, public=_PUBLIC
        )
        total = plan.noisy_sum(np.sort(plan.quantized(column(opened(source)))), noise, bits)
        value = plan.value(total)
    return Release(value=value, certificate=certificate, error=plan.said(chosen))


def trimmed_mean_methods(
    *,
    epsilon: Rational,
    n: int,
    trim: Rational,
    bounds: tuple[Rational, Rational] = (0, 1),
    spread: Rational | None = None,
) -> tuple[Method, ...]:
    """Return the ways to release a trimmed mean, best first, for normal rows of that spread.

    >>> names = [m.name for m in trimmed_mean_methods(epsilon=1, n=10**5, trim=0.1, spread=0.1)]
    >>> sorted(names)
    ['laplace', 'propose-test-release', 'smooth-sensitivity']
    """
    count, exact = as_count(n, "n", minimum=1), as_usable_epsilon(epsilon)
    return _plan(n=count, trim=trim, bounds=bounds, epsilon=exact, spread=spread).methods()


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class _Plan:
    """Everything public about one trimmed mean; distances are in quanta of the trimmed sum."""

    n: int
    trim: int
    column: FixedPoint
    epsilon: Fraction
    smooth: SmoothNoise
    laplace: RoundedLaplace
    proposed_bound: int | None
    test_share: Fraction
    errors: tuple[float, float, float]
    narrow_error: float | None
    """Of smooth sensitivity for the narrowest spread; None if the spread was given."""

    def said(self, chosen: Method) -> float | str:
        """Return the forecast that a release states."""
        if chosen.name != "smooth-sensitivity" or self.narrow_error is None:
            return chosen.error
        return (
            f"depends on unseen data: from {self.narrow_error:.2g} for rows that spread over a "
            f"millionth of the bounds to {chosen.error:.2g} for a tenth"
        )

    def methods(self) -> tuple[Method, ...]:
        """Return the methods with their predicted errors."""
        smooth, tested, laplace = self.errors
        half = self._half_width
        share = self.test_share
        needs_spread = self.proposed_bound is None
        return ranked(
            Method(
                name="smooth-sensitivity",
                error=min(smooth, half),
                spends="ε on one answer, noise for its smooth sensitivity",
                why="adapts to how the rows lie, whatever the guess",
            ),
            Method(
                name="propose-test-release",
                error=math.inf if needs_spread else min(tested, half),
                spends=f"{share}·ε on the test, {1 - share}·ε on the answer",
                why="needs spread= and rows to trim"
                if needs_spread
                else "less noise where the guess holds, a random point where it does not",
            ),
            Method(
                name="laplace",
                error=min(laplace, half),
                spends="ε on one answer, noise for the width of the bounds",
                why="best for few rows, and where nothing is trimmed",
            ),
        )

    @property
    def _half_width(self) -> float:
        bound = self.column.bound
        return float(bound[0] if isinstance(bound, tuple) else bound)

    def quantized(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
        """Return each row as an integer in -steps..steps; infinities count as the ends."""
        ends = np.nan_to_num(values, nan=math.nan, posinf=1e308, neginf=-1e308)
        return self.column.quantize(ends.reshape(-1, 1))[:, 0]

    def noisy_sum(
        self, ordered: npt.NDArray[np.int64], noise: SmoothNoise | RoundedLaplace, bits: BitSource
    ) -> int:
        """Return the trimmed sum of sorted rows with its noise."""
        total = int(ordered[self.trim : self.n - self.trim].sum())
        if isinstance(noise, RoundedLaplace):
            return int(noise.apply(np.array([total]), bits)[0])
        steps = self.column.steps
        scale = noise.sensitivity(
            order_of(ordered, steps=steps), count=self.n, trim=self.trim, steps=steps
        )
        return noise.apply(total, scale, bits)

    def value(self, total: int) -> float:
        """Return the mean that a noisy sum stands for, clamped to the bounds."""
        kept = self.n - 2 * self.trim
        most = self.column.steps * kept
        inside = np.array([min(max(total, -most), most)], dtype=object)
        return float(self.column.dequantize(inside, rows=kept)[0]) / kept

    def tested(self, values: npt.NDArray[np.float64], bits: BitSource) -> tuple[float, Any]:
        """Return what propose-test-release gives, and its certificate."""
        if self.proposed_bound is None:
            raise ParameterError(
                "spread",
                None,
                expected="a public guess of the standard deviation, and rows to trim",
                remedy='pass spread= and a larger trim=, or method="smooth-sensitivity"',
            )
        half, center = self.column.bound, self.column.center
        assert isinstance(half, Fraction)
        assert isinstance(center, Fraction)
        query = TrimmedMean(
            bounds=(center - half, center + half), steps=self.column.steps, trim=self.trim
        )
        spacing = half / (self.column.steps * (self.n - 2 * self.trim))
        release = free_propose_test_release(
            np.nan_to_num(values, nan=math.nan, posinf=1e308, neginf=-1e308),
            query=query,
            proposed_bound=self.proposed_bound * spacing,
            epsilon=self.epsilon,
            test_share=self.test_share,
            bits=bits,
        )
        return float(release.value[0]), release.certificate


def _plan(
    *, n: int, trim: Rational, bounds: Any, epsilon: Fraction, spread: Rational | None
) -> _Plan:
    share, (lower, upper) = as_rational(trim, "trim"), as_bounds(bounds)
    if not 0 <= share < Fraction(1, 2):
        raise ParameterError(
            "trim", trim, expected="a share of the rows in [0, 1/2)", remedy="pass trim=0.1"
        )
    guess = None if spread is None else as_positive(spread, "spread")
    steps = _steps(n, epsilon, None if guess is None else guess / (upper - lower))
    return _planned(n, math.floor(share * n), lower, upper, epsilon, guess, steps)


@lru_cache(maxsize=64)
def _planned(
    n: int,
    trim: int,
    lower: Fraction,
    upper: Fraction,
    epsilon: Fraction,
    spread: Fraction | None,
    steps: int,
) -> _Plan:
    """Tune every method for normal rows; a function of public numbers only."""
    width = upper - lower
    guesses = _SPREADS if spread is None else (float(min(spread / width, Fraction(10**100))),)
    changes = np.unique(np.geomspace(1, min(n, 4000), 200).astype(np.int64)) - 1
    reaches_of = [_model(n, trim, steps, guess * 2 * steps, changes) for guess in guesses]
    reach = reaches_of[0]  # of the largest spread
    smooth = best_smooth_noise(epsilon=epsilon, reaches=reaches_of, changes=changes)
    laplace = RoundedLaplace.for_epsilon(epsilon=epsilon, sensitivity=2 * steps)
    bound, share, tested = None, Fraction(1, 2), math.inf
    if trim >= 1 and spread is not None:
        safe = _model(n, trim, steps, guesses[0] * 2 * steps * _SAFETY, changes)
        bound, share, tested = _best_proposal(n, trim, steps, epsilon, safe, changes)
    unit = float(width) / (2 * steps * (n - 2 * trim))
    return _Plan(
        n=n,
        trim=trim,
        column=FixedPoint.box(dimension=1, lower=lower, upper=upper, steps=steps),
        epsilon=epsilon,
        smooth=smooth,
        laplace=laplace,
        proposed_bound=bound,
        test_share=share,
        errors=(smooth.error(reach, changes) * unit, tested * unit, laplace.error() * unit),
        narrow_error=None if spread is not None else smooth.error(reaches_of[-1], changes) * unit,
    )


def _steps(n: int, epsilon: Fraction, spread: Fraction | None) -> int:
    """Return half the width in quanta: 2^10·n·ε a spread, so that rounding is far below the noise.

    `spread` is a share of the width; without one the lattice is as fine as 64-bit sums allow, which
    costs nothing: only propose-test-release, which needs a guess, pays for points (theory C3).
    """
    most = min(1 << 52, (1 << 61) // n)
    if spread is not None:
        most = (1 << 51) // n
        wanted = min(
            float(2**10 * n * epsilon) / float(min(max(spread, _FINEST), Fraction(1))), 2.0**60
        )
        most = min(most, 1 << math.ceil(math.log2(max(1.0, wanted))))
    return max(1 << 10, most)


def _model(
    n: int, trim: int, steps: int, deviation: float, changes: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]:
    """Return a guess of A_k at several k: rows are normal around the middle of the bounds."""

    def order(positions: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        inside = ndtri(np.clip(positions, 1, n) / (n + 1)) * deviation
        ends = np.where(positions < 1, -float(steps), np.where(positions > n, float(steps), inside))
        return np.clip(ends, -steps, steps)

    return reaches(order, count=n, trim=trim, changes=changes).astype(np.float64)


def _best_proposal(
    n: int,
    trim: int,
    steps: int,
    epsilon: Fraction,
    reach: npt.NDArray[np.float64],
    changes: npt.NDArray[np.int64],
) -> tuple[int, Fraction, float]:
    """Return the bound to propose, the share of the test, and the error to expect, in quanta.

    A bound of A_k passes the test from k + 1 changes away; failing costs a quarter of the width.
    """
    points = 2 * steps * (n - 2 * trim) + 1
    total = min(float(epsilon), 600.0)
    best: tuple[float, int, Fraction] | None = None
    for share in _SHARES:
        first, second = float(share) * total, (1 - float(share)) * total
        for k, far in zip(changes.tolist(), reach.tolist(), strict=True):
            bound = max(1, math.ceil(far))
            peak = -math.expm1(-second / (2 * bound))
            tau = max(
                0.0,
                (math.log((points * peak + math.exp(total)) / math.expm1(total)) - math.log(2))
                / first,
            )
            beyond = first * (k + 1 - tau)
            failed = math.exp(-beyond) / 2 if beyond >= 0 else 1.0
            error = bound / second + failed * points / 4
            if best is None or error < best[0]:
                best = error, bound, share
    assert best is not None
    error, bound, share = best
    free_test_threshold(  # refuses here, before data is read, what C3 does not allow
        points=points,
        dimension=1,
        sensitivity=bound,
        test_epsilon=share * epsilon,
        release_epsilon=(1 - share) * epsilon,
    )
    return bound, share, error
