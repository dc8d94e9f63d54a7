"""Releases behind a noisy test: propose-test-release, and a mode with a clear lead (A7, C3, C5).

If the test fails a uniform point is published. With the right threshold that alone is the mixing
which makes the release pure: no extra ε and no extra noise, and nobody is told which it was.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from zerodelta.data.items import Tally
from zerodelta.exact.bits import BitSource
from zerodelta.exact.exact_sums import IntegerArray
from zerodelta.exact.integers import bernoulli_exp, uniform_below
from zerodelta.mechanisms.laplace import RoundedLaplace
from zerodelta.mechanisms.stable_queries import StableQuery, query_status
from zerodelta.privacy.neighbors import Neighbors
from zerodelta.privacy.step import Step
from zerodelta.privacy.theorems.testing import free_mode_threshold, free_test_threshold
from zerodelta.spaces import GridLattice
from zerodelta.value import value


def noisy_test(distance: int, *, epsilon: Fraction, threshold: Fraction, bits: BitSource) -> bool:
    """Return whether distance + Laplace(1/ε) > threshold, with exactly that probability.

    With x = threshold - distance it is e^(-εx)/2 for x >= 0 and 1 - e^(εx)/2 below, so a fair coin
    and a coin of a rational exponent decide it (theory C3: "decided lazily").
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
        """Return the release with the smallest threshold for which failed tests are the mixing."""
        release = ProposedRelease(
            query=query,
            lattice=lattice,
            bound=bound,
            test_epsilon=test_share * epsilon,
            release_epsilon=(1 - test_share) * epsilon,
            threshold=Fraction(0),
        )
        return replace(release, threshold=free_test_threshold(**release._numbers()))

    def _numbers(self) -> dict[str, Any]:
        return {
            "points": self.lattice.cells**self.lattice.dimension,
            "dimension": self.lattice.dimension,
            "sensitivity": self.bound,
            "test_epsilon": self.test_epsilon,
            "release_epsilon": self.release_epsilon,
        }

    def step(self) -> Step:
        """Return the proof step of `apply`."""
        numbers = {**self._numbers(), "threshold": self.threshold, "noise": "real"}
        return Step(
            theorem="pure-propose-test-release", numbers=numbers, status=query_status(self.query)
        )

    def draft(self, rows: Any, bits: BitSource) -> IntegerArray | None:
        """Return the noisy cell, or None for ⊥: an internal answer, unless (ε, δ) is enough."""
        found = self.query.read(rows)
        noise = RoundedLaplace.for_epsilon(epsilon=self.release_epsilon, sensitivity=self.bound)
        noisy = noise.apply(self.query.answer(found), bits)
        distance = self.query.distance(found, self.bound)
        passed = noisy_test(
            distance, epsilon=self.test_epsilon, threshold=self.threshold, bits=bits
        )
        return noisy if passed else None

    def apply(self, rows: Any, bits: BitSource) -> Any:
        """Return the point of the noisy cell; of a uniform one if it failed or left the grid.

        Both are computed in either case: a failed test makes the same calls (theory C0).
        """
        cell, spare = self.draft(rows, bits), uniform_cell(self.lattice, bits)
        tried = spare if cell is None else cell
        inside = self.lattice.contains(np.asarray(tried))
        return self.lattice.points(tried if inside else spare)


@value
class ClearLead:
    """The most frequent of so many items if its lead is clear, else a uniform item.

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
        threshold = free_mode_threshold(points=items, epsilon=epsilon)
        return ClearLead(items=items, epsilon=epsilon, threshold=threshold, neighbors=neighbors)

    @staticmethod
    def stability(counted: Tally) -> tuple[int, int]:
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
        numbers = {
            "points": self.items,
            "epsilon": self.epsilon,
            "threshold": self.threshold,
            "noise": "real",
        }
        return Step(theorem="stable-mode", numbers=numbers, neighbors=self.neighbors)

    def apply(self, counted: Tally, bits: BitSource) -> int:
        """Return the index of the released item."""
        found, distance = self.stability(counted)
        passed = noisy_test(distance, epsilon=self.epsilon, threshold=self.threshold, bits=bits)
        drawn = int(uniform_below(self.items, size=1, bits=bits)[0])
        return found if passed else drawn

    def fails(self, lead: int) -> float:
        """Return the probability that a mode with this lead fails its test."""
        beyond = float(self.epsilon) * (-(-lead // 2) - 1 - float(self.threshold))
        return math.exp(-beyond) / 2 if beyond >= 0 else 1 - math.exp(beyond) / 2

    def lead_for(self, failed: float) -> float:
        """Return the smallest lead that fails with at most this probability; inf if none does.

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
