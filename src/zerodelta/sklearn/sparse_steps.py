"""How many steps `SparseRegression` takes, from public numbers, and the error to be expected.

Each step costs accuracy of all others (T choices at ε/T), and each makes the last ones shorter: in
units where features and targets lie in [-1, 1] the excess of the mean squared error is about
0.09 (r T/u + 1.92 r²/T³), with u = nε/ln(2d) and r the radius. The constants were fitted to
runs on synthetic rows, and `bench/defaults_classifiers.py` prints the forecast beside what is seen.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import final

__all__ = ["SparseSteps"]

_EXCESS, _COARSE = 0.09, 1.92
_FEWEST, _MOST = 3, 1 << 10
_STEPS_A_RADIUS = 8
_LONGEST_PATH = 2


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class SparseSteps:
    """So many steps, and the excess of the mean squared error that is expected.

    >>> [SparseSteps.best(rows=5000, columns=51, epsilon=e, radius=1).count for e in (0.5, 1, 2, 3)]
    [7, 9, 11, 12]
    """

    count: int
    error: float

    @staticmethod
    def best(*, rows: int, columns: int, epsilon: float, radius: float) -> SparseSteps:
        """Return the number of steps with the least expected error."""
        informed = rows * epsilon / math.log(2 * max(1, columns))

        def excess(count: int) -> float:
            noise, coarse = radius * count / informed, _COARSE * radius**2 / count**3
            return _EXCESS * (noise + coarse)

        least = (3 * _COARSE * radius * informed) ** 0.25
        near = min(max(math.floor(least), _FEWEST), _MOST)
        count = min(near, near + 1, key=excess)
        return SparseSteps(count=count, error=excess(count))

    @property
    def path(self) -> Fraction:
        """The length of all steps in radii: more than 1 where there are steps to undo others."""
        return min(Fraction(_LONGEST_PATH), max(Fraction(1), Fraction(self.count, _STEPS_A_RADIUS)))
