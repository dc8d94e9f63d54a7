"""Student-t noise scaled to the smooth sensitivity of a trimmed sum (theory C10.3).

The trimmed sum is an integer, its smooth sensitivity S an exact rational, and round(S/c·T) is drawn
as a whole: nothing is approximated.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from zerodelta.exact.bits import BitSource
from zerodelta.exact.noise import rounded_student_t
from zerodelta.exact.rational import Rational, as_positive
from zerodelta.mechanisms.stable_queries import Order, reaches
from zerodelta.privacy.step import Step
from zerodelta.privacy.theorems.smooth_sensitivity import largest_noise_ratio
from zerodelta.value import value

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
        """Return w_0..w_K for n = count rows; K is public: at most n, 4000, or where w is tiny."""
        numerator, denominator = self.decay.numerator, self.decay.denominator
        found = [1 << _WEIGHT_BITS]
        while len(found) <= min(count, _MOST_CHANGES) and found[-1] > _NEGLIGIBLE * found[0]:
            found.append(-(-found[-1] * numerator // denominator))
        return found

    def sensitivity(self, order: Order, *, count: int, trim: int, steps: int) -> Fraction:
        """Return S of the trimmed sum of rows in -steps..steps; never published."""
        *weights, last = self.weights(count)
        kept = (trim + 1, count - trim)
        far = reaches(order, kept=kept, changes=np.arange(len(weights)))
        terms = [w * int(reach) for w, reach in zip(weights, far, strict=True)]
        return Fraction(max(*terms, last * 2 * steps), 1 << _WEIGHT_BITS)

    def apply(self, total: int, sensitivity: Fraction, bits: BitSource) -> int:
        """Return round(total + S/c · T); an integer total commutes with rounding."""
        scale = sensitivity / self.ratio
        noise = rounded_student_t(degrees=self.degrees, scale=scale, size=1, bits=bits)
        return total + int(noise[0])

    def step(self) -> Step:
        """Return the proof step."""
        numbers = {name: getattr(self, name) for name in ("epsilon", "degrees", "decay", "ratio")}
        return Step(theorem="smooth-sensitivity", numbers=numbers)

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
    """Return the noise of least worst regret over guesses of A_k: ν of 2, 3, 4, 6 and β below ε/ν.

    The regret for a guess is the error over the least error of any candidate for it; with one
    guess this is the noise that is least for it.
    """
    candidates = []
    for nu in _DEGREES:
        for share in np.linspace(0.04, 0.96, 24):
            beta = float(epsilon) / nu * float(share)
            whole = max(1, math.ceil(math.exp(-beta) * 2**_DECAY_BITS))
            decay = Fraction(whole, 2**_DECAY_BITS)
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
    least = np.maximum(rough.min(axis=0), np.finfo(float).tiny)
    nu, decay = candidates[int((rough / least).max(axis=1).argmin())]
    return SmoothNoise.of(epsilon=epsilon, degrees=nu, decay=decay)


def _rough_error(
    epsilon: float,
    nu: int,
    decay: Fraction,
    reach: npt.NDArray[np.float64],
    changes: npt.NDArray[np.int64],
) -> float:
    """Return `SmoothNoise.error` with c in floats: only to compare candidates."""
    beta = -math.log(decay)
    rate = (2 * epsilon - (nu - 1) * beta) / (nu + 1)
    if rate <= beta:
        return math.inf
    c = Fraction(math.sqrt(nu * (rate * rate - beta * beta)))
    rough = SmoothNoise(epsilon=Fraction(epsilon), degrees=Fraction(nu), decay=decay, ratio=c)
    return rough.error(reach, changes)
