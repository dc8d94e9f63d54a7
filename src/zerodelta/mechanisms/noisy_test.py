"""Release values behind a noisy test, or with noise scaled to a local sensitivity (A7, C3, C5).

If the test fails, a uniform point is released instead. With the right threshold these uniform
points are the mixing that makes the release pure, without further ε or noise. The release does not
show whether the test failed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from zerodelta.data.keys import KeyCounts
from zerodelta.exact.bits import BitSource
from zerodelta.exact.integers import bernoulli, bernoulli_exp, uniform_below
from zerodelta.exact.noise import rounded_laplace, rounded_student_t
from zerodelta.exact.rational import Rational, as_positive
from zerodelta.exact.sums import IntegerArray
from zerodelta.mechanisms.stable_queries import Order, StableQuery, query_status, reaches
from zerodelta.mechanisms.sum_noise import RoundedLaplace, add_exactly
from zerodelta.privacy.parameters import Neighbors
from zerodelta.privacy.steps import Step
from zerodelta.privacy.theorems.testing import (
    PureLocalSensitivity,
    PureProposeTestRelease,
    SmoothSensitivity,
    StableMode,
    largest_noise_ratio,
)
from zerodelta.spaces import GridLattice
from zerodelta.value import value


def noisy_test(distance: int, *, epsilon: Fraction, threshold: Fraction, bits: BitSource) -> bool:
    """Draw whether distance + Laplace(1/ε) > threshold, with exactly that probability.

    With x = threshold - distance the probability is e^(-εx)/2 for x >= 0 and 1 - e^(εx)/2 for
    x < 0, so a fair coin and a coin with a rational exponent decide (theory C3: "decided lazily").
    """
    gap = threshold - distance
    tail = bool(bernoulli_exp(epsilon * abs(gap), size=1, bits=bits)[0]) & bool(
        bits.signs(1)[0] > 0
    )
    return tail if gap >= 0 else not tail


def uniform_cell(lattice: GridLattice, bits: BitSource) -> IntegerArray:
    """Return a uniform cell of the grid."""
    return uniform_below(lattice.cells, size=lattice.dimension, bits=bits)


@value
class ProposedRelease:
    """A query's answer with noise for a proposed bound (in cells), if it is stable enough.

    **Neighbors**: replace-one, the relation of the query's local sensitivity.
    **Guarantee**: `draft` is (ε₁+ε₂, δ)-DP (theory A7); `apply` is pure ε₁+ε₂ if the threshold
    is that of `free` (theory C3).
    """

    query: StableQuery
    lattice: GridLattice
    bound: int
    test_epsilon: Fraction
    release_epsilon: Fraction
    threshold: Fraction

    @staticmethod
    def free(
        *,
        query: StableQuery,
        lattice: GridLattice,
        bound: int,
        epsilon: Fraction,
        test_share: Fraction,
    ) -> ProposedRelease:
        """Return the release with the smallest threshold that makes it pure by failed tests."""
        release = ProposedRelease(
            query=query,
            lattice=lattice,
            bound=bound,
            test_epsilon=test_share * epsilon,
            release_epsilon=(1 - test_share) * epsilon,
            threshold=Fraction(0),
        )
        return replace(release, threshold=release.theorem.with_smallest_threshold().threshold)

    @property
    def theorem(self) -> PureProposeTestRelease:
        """Theorem C3, of `apply`."""
        return PureProposeTestRelease(
            points=self.lattice.cells**self.lattice.dimension,
            dimension=self.lattice.dimension,
            sensitivity=Fraction(self.bound),
            test_epsilon=self.test_epsilon,
            release_epsilon=self.release_epsilon,
            threshold=self.threshold,
            noise="real",
        )

    def step(self) -> Step:
        """Return the proof step of `apply`."""
        return self.theorem.step(status=query_status(self.query))

    def draft(self, rows: Any, bits: BitSource) -> IntegerArray | None:
        """Return the noisy cell, or None (⊥) if the test fails; (ε, δ)-DP, not pure."""
        data = self.query.read(rows)
        noise = RoundedLaplace.for_epsilon(epsilon=self.release_epsilon, sensitivity=self.bound)
        noisy = noise.apply(self.query.answer(data), bits)
        distance = self.query.distance(data, self.bound)
        passed = noisy_test(
            distance, epsilon=self.test_epsilon, threshold=self.threshold, bits=bits
        )
        return noisy if passed else None

    def apply(self, rows: Any, bits: BitSource) -> Any:
        """Return the point of the noisy cell, or a uniform point if the test fails.

        A noisy cell beyond the grid is replaced by a uniform one, too. Both cells are computed in
        each case, so that a failed test makes the same calls (theory C0).
        """
        cell, uniform = self.draft(rows, bits), uniform_cell(self.lattice, bits)
        chosen = uniform if cell is None else cell
        inside = self.lattice.contains(np.asarray(chosen))
        return self.lattice.points(chosen if inside else uniform)


@value
class ClearLead:
    """The most frequent of `items` items if its lead is clear, else a uniform item.

    **Neighbors**: replace-one or add-remove: the same proof covers both.
    **Guarantee**: pure ε-DP if the threshold is that of `for_epsilon` (theory C5).
    """

    items: int
    epsilon: Fraction
    threshold: Fraction
    neighbors: Neighbors = Neighbors.REPLACE

    @staticmethod
    def for_epsilon(
        *, epsilon: Fraction, items: int, neighbors: Neighbors = Neighbors.REPLACE
    ) -> ClearLead:
        """Return the test with the smallest threshold at this ε."""
        test = ClearLead(items=items, epsilon=epsilon, threshold=Fraction(0), neighbors=neighbors)
        return replace(test, threshold=test.theorem.with_smallest_threshold().threshold)

    @property
    def theorem(self) -> StableMode:
        """Theorem C5."""
        return StableMode(
            points=self.items, epsilon=self.epsilon, threshold=self.threshold, noise="real"
        )

    @staticmethod
    def stability(counted: KeyCounts) -> tuple[int, int]:
        """Return the mode's index and ⌈lead/2⌉ - 1, an internal distance of sensitivity 1.

        The lead is that over the second most frequent item of the whole universe. Ties go to the
        smallest index (theory A5: a fixed public rule).
        """
        if len(counted.counts) == 0:
            return 0, -1
        best = int(np.argmax(counted.counts))
        second = int(np.delete(counted.counts, best).max(initial=0))
        return int(counted.indices[best]), -(-(int(counted.counts[best]) - second) // 2) - 1

    def step(self) -> Step:
        """Return the proof step."""
        return self.theorem.step(self.neighbors)

    def apply(self, counted: KeyCounts, bits: BitSource) -> int:
        """Return the mode if its lead passes a noisy test, else a uniform item."""
        mode, distance = self.stability(counted)
        passed = noisy_test(distance, epsilon=self.epsilon, threshold=self.threshold, bits=bits)
        uniform = int(uniform_below(self.items, size=1, bits=bits)[0])
        return mode if passed else uniform

    def fails(self, lead: int) -> float:
        """Return the probability that a mode with this lead fails its test."""
        beyond = float(self.epsilon) * (-(-lead // 2) - 1 - float(self.threshold))
        return math.exp(-beyond) / 2 if beyond >= 0 else 1 - math.exp(beyond) / 2

    def lead_for(self, failed: float) -> float:
        """Return the smallest lead that fails with at most probability `failed`; inf for 0.

        >>> test = ClearLead.for_epsilon(epsilon=Fraction(1), items=1024)
        >>> test.lead_for(0.1), test.fails(17) <= 0.1 < test.fails(16)
        (17.0, True)
        """
        if failed <= 0:
            return math.inf
        beyond = (
            -math.log(2 * failed) if failed < 1 / 2 else math.log(max(2 * (1 - failed), 1e-300))
        )
        distance = math.ceil(float(self.threshold) + beyond / float(self.epsilon))
        return float(max(0, 2 * distance + 1))


# -- Noise for a privately bounded local sensitivity, mixed with a uniform point (theory A8, C4) --


@value
class BoundedRelease:
    """A query's answer with noise scaled to its noisy local sensitivity plus `margin`.

    **Neighbors**: replace-one, for the query, its local sensitivity and the change of that.
    **Guarantee**: `draft` is (ε₁+ε₂, δ)-DP (theory A8). Bounds and margin are in cells.
    """

    query: StableQuery
    bound_epsilon: Fraction
    release_epsilon: Fraction
    smallest_bound: int
    margin: int

    def draft(self, rows: Any, bits: BitSource) -> IntegerArray:
        """Return the noisy cell, an internal answer like the noisy bound."""
        data, change = self.query.read(rows), self.query.local_change
        noise = int(rounded_laplace(scale=change / self.bound_epsilon, size=1, bits=bits)[0])
        # theory A8: local sensitivity in l1, the norm of product Laplace noise (the paper has l2);
        # and at least a public bound, because LS + noise + margin may be 0 or less
        bound = max(self.smallest_bound, self.query.local_sensitivity(data) + noise + self.margin)
        answer, scale = self.query.answer(data), bound / self.release_epsilon
        return add_exactly(answer, rounded_laplace(scale=scale, size=len(answer), bits=bits))


@value
class MixedBoundedRelease:
    """A bounded release, replaced by a uniform point with the mixing probability: pure (C4).

    **Guarantee**: pure ε₁+ε₂ if (1-w)(N·db·pm + db) <= w(e^ε - 1); `of` takes the smallest margin.
    """

    base: BoundedRelease
    lattice: GridLattice
    mixing_probability: Fraction

    @staticmethod
    def of(
        *,
        query: StableQuery,
        lattice: GridLattice,
        epsilon: Fraction,
        bound_share: Fraction,
        mixing_probability: Fraction,
        smallest_bound: int = 1,
    ) -> MixedBoundedRelease:
        """Return the release with the smallest margin that the theorem allows."""
        base = BoundedRelease(
            query=query,
            bound_epsilon=bound_share * epsilon,
            release_epsilon=(1 - bound_share) * epsilon,
            smallest_bound=smallest_bound,
            margin=0,
        )
        release = MixedBoundedRelease(
            base=base, lattice=lattice, mixing_probability=mixing_probability
        )
        margin = int(release.theorem.with_smallest_threshold().threshold)
        return replace(release, base=replace(base, margin=margin))

    @property
    def theorem(self) -> PureLocalSensitivity:
        """Theorem C4."""
        return PureLocalSensitivity(
            points=self.lattice.cells**self.lattice.dimension,
            dimension=self.lattice.dimension,
            bound_epsilon=self.base.bound_epsilon,
            release_epsilon=self.base.release_epsilon,
            local_change=Fraction(self.base.query.local_change),
            smallest_bound=Fraction(self.base.smallest_bound),
            threshold=Fraction(self.base.margin),
            weight=self.mixing_probability,
            noise="rounded",
        )

    def step(self) -> Step:
        """Return the proof step."""
        return self.theorem.step(status=query_status(self.base.query))

    def apply(self, rows: Any, bits: BitSource) -> Any:
        """Return the point of the noisy cell, or with the mixing probability a uniform point.

        A noisy cell beyond the grid is replaced by a uniform one, too.
        """
        cell = self.base.draft(rows, bits)
        fallback, mixed = uniform_cell(self.lattice, bits), uniform_cell(self.lattice, bits)
        kept = cell if self.lattice.contains(np.asarray(cell)) else fallback
        is_mixed = bool(bernoulli(self.mixing_probability, size=1, bits=bits)[0])
        return self.lattice.points(mixed if is_mixed else kept)


# -- Student-t noise scaled to the smooth sensitivity of a trimmed sum (theory C10.3) -------------
# The trimmed sum is an integer, its smooth sensitivity S is an exact rational, and round(S/c·T) is
# drawn exactly in one step: nothing is approximated.

# Chosen by hand, not fitted: the precision of weights and decays in bits, the largest number of
# changes and the smallest weight that are looked at, and the degrees of freedom that are compared.

_WEIGHT_BITS = 40
_DECAY_BITS = 16
_MOST_CHANGES = 4000
_NEGLIGIBLE = math.exp(-25)
_DEGREES = (2, 3, 4, 6)


@value
class SmoothNoise:
    """Student-t noise for S = max(max_{k<K} w_k A_k, w_K G), w_0 = 1, w_(k+1) = ⌈w_k · decay⌉.

    Weights are integers over 2^40; `ratio` is the c of theorem C10.3.
    """

    epsilon: Fraction
    degrees: Fraction
    decay: Fraction
    ratio: Fraction

    @staticmethod
    def of(*, epsilon: Rational, degrees: Rational, decay: Rational) -> SmoothNoise:
        """Return the noise with the largest ratio that ε allows."""
        ratio = largest_noise_ratio(epsilon=epsilon, degrees=degrees, decay=decay)
        exact, nu = as_positive(epsilon, "epsilon"), as_positive(degrees, "degrees")
        return SmoothNoise(
            epsilon=exact, degrees=nu, decay=as_positive(decay, "decay"), ratio=ratio
        )

    def weights(self, count: int) -> list[int]:
        """Return the decaying weights w_0..w_K of k changed rows, as rounded integers.

        K is public: it is n, 4000, or the first place with a negligible weight, whichever is least.
        """
        numerator, denominator = self.decay.numerator, self.decay.denominator
        weights = [1 << _WEIGHT_BITS]
        while len(weights) <= min(count, _MOST_CHANGES) and weights[-1] > _NEGLIGIBLE * weights[0]:
            weights.append(-(-weights[-1] * numerator // denominator))
        return weights

    def sensitivity(self, order: Order, *, count: int, trim: int, steps: int) -> Fraction:
        """Return S of the trimmed sum of rows in -steps..steps; never published."""
        *weights, last = self.weights(count)
        kept = (trim + 1, count - trim)
        sensitivities = reaches(order, kept=kept, changes=np.arange(len(weights)))
        terms = [w * int(reach) for w, reach in zip(weights, sensitivities, strict=True)]
        return Fraction(max(*terms, last * 2 * steps), 1 << _WEIGHT_BITS)

    def apply(self, total: int, sensitivity: Fraction, bits: BitSource) -> int:
        """Return round(total + S/c · T); an integer total commutes with rounding."""
        scale = sensitivity / self.ratio
        noise = rounded_student_t(degrees=self.degrees, scale=scale, size=1, bits=bits)
        return total + int(noise[0])

    def step(self) -> Step:
        """Return the proof step."""
        theorem = SmoothSensitivity(
            epsilon=self.epsilon, degrees=self.degrees, decay=self.decay, ratio=self.ratio
        )
        return theorem.step()

    def error(self, reach: npt.NDArray[np.float64], changes: npt.NDArray[np.int64]) -> float:
        """Return E|noise| = S/c · E|T| for a guess of A_k at some numbers k of changes."""
        smooth = float((np.exp(math.log(self.decay) * changes) * reach).max())
        nu = float(self.degrees)
        logs = math.lgamma((nu + 1) / 2) - math.lgamma(nu / 2)
        magnitude = 2 * math.sqrt(nu / math.pi) * math.exp(logs) / (nu - 1)
        return smooth / float(self.ratio) * magnitude


def best_smooth_noise(
    *,
    epsilon: Fraction,
    guesses: Sequence[npt.NDArray[np.float64]],
    changes: npt.NDArray[np.int64],
) -> SmoothNoise:
    """Return the noise with the least worst regret over guesses of A_k; ν is 2, 3, 4 or 6, β < ε/ν.

    The regret of a candidate for a guess is its error divided by the least error of any candidate.
    With one guess, the result is the candidate with the least error.
    """
    candidates = []
    for nu in _DEGREES:
        for share in np.linspace(0.04, 0.96, 24):
            beta = float(epsilon) / nu * float(share)
            numerator = max(1, math.ceil(math.exp(-beta) * 2**_DECAY_BITS))
            decay = Fraction(numerator, 2**_DECAY_BITS)
            if 0 < decay < 1:
                candidates.append((nu, decay))
    if not candidates:  # an ε so small that e^-β rounds to 1
        candidates = [(2, 1 - Fraction(epsilon) / 8)]
    rough = np.array(
        [
            [_rough_error(float(epsilon), nu, decay, reach, changes) for reach in guesses]
            for nu, decay in candidates
        ]
    )
    smallest = np.maximum(rough.min(axis=0), np.finfo(float).tiny)
    nu, decay = candidates[int((rough / smallest).max(axis=1).argmin())]
    return SmoothNoise.of(epsilon=epsilon, degrees=nu, decay=decay)


def _rough_error(
    epsilon: float,
    nu: int,
    decay: Fraction,
    reach: npt.NDArray[np.float64],
    changes: npt.NDArray[np.int64],
) -> float:
    """Return `SmoothNoise.error` with c in floats, which suffices to compare candidates."""
    beta = -math.log(decay)
    rate = (2 * epsilon - (nu - 1) * beta) / (nu + 1)
    if rate <= beta:
        return math.inf
    c = Fraction(math.sqrt(nu * (rate * rate - beta * beta)))
    rough = SmoothNoise(epsilon=Fraction(epsilon), degrees=Fraction(nu), decay=decay, ratio=c)
    return rough.error(reach, changes)
