"""Noise for a privately bounded local sensitivity, mixed with a uniform point (theory A8, C4)."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from zerodelta.exact.bits import BitSource
from zerodelta.exact.exact_sums import IntegerArray
from zerodelta.exact.integers import bernoulli
from zerodelta.exact.noise import rounded_laplace
from zerodelta.mechanisms.integer_sums import add_exactly
from zerodelta.mechanisms.noisy_test import uniform_cell
from zerodelta.mechanisms.stable_queries import StableQuery, query_status
from zerodelta.privacy.step import Step
from zerodelta.privacy.theorems.testing import bounded_release_threshold
from zerodelta.spaces import GridLattice
from zerodelta.value import value


@value
class BoundedRelease:
    """A query's answer with noise for its noisy local sensitivity plus `margin`.

    **Neighbors**: replace-one, for the query, its local sensitivity and the change of that.
    **Guarantee**: `draft` is (ε₁+ε₂, δ)-DP (theory A8). Bounds and margin are in cells.
    """

    query: StableQuery
    bound_epsilon: Fraction
    release_epsilon: Fraction
    smallest_bound: int
    margin: int

    def draft(self, rows: Any, bits: BitSource) -> IntegerArray:
        """Return the noisy cell; it and the noisy bound are internal answers."""
        found, change = self.query.read(rows), self.query.local_change
        noise = int(rounded_laplace(scale=change / self.bound_epsilon, size=1, bits=bits)[0])
        # theory A8: local sensitivity in l1, the norm of product Laplace noise (the paper has l2);
        # and at least a public bound, because LS + noise + margin may be 0 or less
        bound = max(self.smallest_bound, self.query.local_sensitivity(found) + noise + self.margin)
        answer, scale = self.query.answer(found), bound / self.release_epsilon
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
        margin = int(bounded_release_threshold(**release._numbers()))
        return replace(release, base=replace(base, margin=margin))

    def _numbers(self) -> dict[str, Any]:
        return {
            "points": self.lattice.cells**self.lattice.dimension,
            "dimension": self.lattice.dimension,
            "bound_epsilon": self.base.bound_epsilon,
            "release_epsilon": self.base.release_epsilon,
            "local_change": self.base.query.local_change,
            "smallest_bound": self.base.smallest_bound,
            "weight": self.mixing_probability,
            "noise": "rounded",
        }

    def step(self) -> Step:
        """Return the proof step."""
        numbers = {**self._numbers(), "threshold": self.base.margin}
        return Step(
            theorem="pure-local-sensitivity", numbers=numbers, status=query_status(self.base.query)
        )

    def apply(self, rows: Any, bits: BitSource) -> Any:
        """Return the point of the noisy cell; of a uniform one if it left the grid, or is mixed."""
        cell = self.base.draft(rows, bits)
        spare, drawn = uniform_cell(self.lattice, bits), uniform_cell(self.lattice, bits)
        kept = cell if self.lattice.contains(np.asarray(cell)) else spare
        mixed = bool(bernoulli(self.mixing_probability, size=1, bits=bits)[0])
        return self.lattice.points(drawn if mixed else kept)
