"""Implement the baselines that the paper names for rows 5 to 7, for comparison only.

Written from their textbook descriptions, in floats, with noise from NumPy and a seed: good for
measuring errors, **not private** on a computer (theory A14). What the package offers is elsewhere.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np
from scipy.integrate import quad
from scipy.special import erf

from reproduce.rates import Floats
from zerodelta.privacy.claims import calibrate

__all__ = [
    "OnlineWeights",
    "gaussian_scale",
    "generator_of",
    "largest_gaussian",
    "largest_laplace",
    "noisy_histogram_finds",
    "noisy_histogram_success",
    "small_database_law",
    "small_databases",
]


def generator_of(label: str) -> np.random.Generator:
    """Return a generator seeded by a label: equal labels draw equal numbers."""
    digest = hashlib.sha256(label.encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:8], "big"))


def noisy_histogram_finds(
    lead: int, *, size: int, epsilon: float, generator: np.random.Generator
) -> bool:
    """Return whether one item that leads by `lead` has the largest count after Laplace noise.

    Laplace(2/ε) on each of `size` counts (replace-one); the largest noise among the others is
    drawn at once: the distribution function is F^(size-1).
    """
    scale = 2 / epsilon
    log_uniform = math.log(generator.random()) / (size - 1)
    largest = _laplace_quantile_of_log(log_uniform) * scale
    return bool(lead + generator.laplace(scale=scale) > largest)


def _laplace_quantile_of_log(log_probability: float) -> float:
    """Return F^-1(e^x) of Laplace(1), accurate where e^x is nearly 1."""
    if log_probability < -math.log(2):
        return log_probability + math.log(2)
    return -math.log(-2 * math.expm1(log_probability))


def noisy_histogram_success(lead: float, *, size: int, epsilon: float) -> float:
    """Return P(lead + Z_0 > max of size-1 others), all Laplace(2/ε).

    >>> round(noisy_histogram_success(0, size=2, epsilon=1), 9)
    0.5
    """
    shift = lead * epsilon / 2

    def density(z: float) -> float:
        at = z + shift
        log_below = -at + math.log(0.5) if at > 0 else math.log(0.5) + at
        below = math.log1p(-math.exp(log_below)) if at > 0 else log_below
        return math.exp((size - 1) * below - abs(z)) / 2

    return float(quad(density, -60, 60, points=[-shift, 0.0, math.log(size) - shift], limit=400)[0])


def gaussian_scale(*, epsilon: Fraction, log_delta: float, sensitivity: float) -> float:
    """Return the σ of the analytic Gaussian mechanism."""
    return sensitivity / math.sqrt(calibrate(epsilon=epsilon, log_delta=log_delta).mu_squared)


def largest_gaussian(count: int) -> float:
    """Return E max |N_i| of so many standard normal numbers.

    >>> round(largest_gaussian(1) ** 2 * math.pi, 6)
    2.0
    """
    return float(quad(lambda x: 1 - erf(x / math.sqrt(2)) ** count, 0, 12, limit=200)[0])


def largest_laplace(count: int) -> float:
    """Return E max |Z_i| of so many Laplace(1) numbers: the harmonic number.

    >>> largest_laplace(2)
    1.5
    """
    return sum(1 / i for i in range(1, count + 1))


def small_databases(universe: int, size: int) -> Floats:
    """Return all multisets of `size` items as frequencies, one a row: stars and bars.

    >>> small_databases(2, 2).tolist()
    [[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]]
    """
    bars = np.array(
        list(itertools.combinations(range(size + universe - 1), universe - 1)), dtype=np.int64
    )
    edges = np.concatenate(
        [np.full((len(bars), 1), -1), bars, np.full((len(bars), 1), size + universe - 1)], axis=1
    )
    counts = np.diff(edges, axis=1) - 1
    return counts[::-1] / size


def small_database_law(
    truth: Floats, queries: Floats, *, size: int, rows: int, epsilon: float
) -> tuple[Floats, Floats]:
    """Return SmallDB's law and the largest error of each small database, both exact.

    The exponential mechanism over multisets with score -max_q |q(D) - q(D')|, sensitivity 1/n
    (Blum, Ligett and Roth): pure ε-DP.
    """
    errors = np.abs(small_databases(queries.shape[1], size) @ queries.T - truth).max(axis=1)
    logits = -epsilon * rows * (errors - errors.min()) / 2
    law = np.exp(logits)
    return law / law.sum(), errors


@final
@dataclass(frozen=True, kw_only=True)
class OnlineWeights:
    """Private multiplicative weights (Hardt and Rothblum), pure, for queries with values in [0, 1].

    Queries come one by one; the sparse-vector test lets at most `updates` of them cost privacy.
    Half of ε pays for the tests, half for the noisy answers.
    """

    universe: int
    queries: int
    rows: int
    epsilon: float
    failure: float = 0.05

    @property
    def accuracy(self) -> float:
        """α with α = 2·(the noise of a test at 4 ln|X|/α² updates): of order (ln|X| ln k/nε)^⅓."""
        log = math.log(2 * self.queries / self.failure)
        tests = 4 * math.log(self.universe) * 16 * log / (self.rows * self.epsilon)
        return math.pow(2 * tests, 1 / 3)

    @property
    def updates(self) -> int:
        """The most updates there can be while each corrects an error of α/2 or more."""
        return max(1, math.ceil(4 * math.log(self.universe) / self.accuracy**2))

    def answers(
        self, truth: Floats, queries: Floats, generator: np.random.Generator | None
    ) -> Floats:
        """Return an answer to each query; without a generator no noise is added."""

        def noise(scale: float) -> float:
            return 0.0 if generator is None else float(generator.laplace(scale=scale))

        weights = np.full(self.universe, 1 / self.universe)
        share = self.epsilon * self.rows / (2 * self.updates)  # of one update, times n
        answers, updates_left = np.empty(len(truth)), self.updates
        threshold = 3 / 4 * self.accuracy + noise(2 / share)
        for index, query in enumerate(queries):
            answers[index] = query @ weights
            gap = abs(truth[index] - answers[index]) + noise(4 / share)
            if updates_left and gap > threshold:
                updates_left -= 1
                answers[index] = np.clip(truth[index] + noise(1 / share), 0, 1)
                step = self.accuracy / 4 * np.sign(answers[index] - query @ weights)
                weights = weights * np.exp(step * query)
                weights /= weights.sum()
                threshold = 3 / 4 * self.accuracy + noise(2 / share)
        return answers
