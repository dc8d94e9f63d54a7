"""Measure the price of δ = 0 for the mean of real data: approximate, purified, directly pure.

The rows are scikit-learn's digits, 64 pixels from 0 to 16, so their bounds are public. Data sets of
n rows are drawn from the 1797 with replacement, so that n can grow. What a purified mechanism adds
does not depend on how many Gaussian steps were taken inside; a pure one has to split ε among them.
So the mean is also answered in 100 pure steps, as a program that has to ask so often would.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias, final

import numpy as np
import numpy.typing as npt
from sklearn.datasets import load_digits

from zerodelta.channels.channel import Purifier
from zerodelta.channels.mixes import GaussianMix
from zerodelta.exact.bits import BitSource, ReplayBits
from zerodelta.mechanisms.sum_noise import KNorm, RoundedGaussian
from zerodelta.paper.algorithm_01_02 import channel_for, corollary_1
from zerodelta.paper.algorithm_04 import default_resolution, lattice_channel
from zerodelta.privacy.claims import calibrate
from zerodelta.spaces import Ball

__all__ = [
    "METHODS",
    "Method",
    "best_lattice",
    "better_from",
    "digits",
    "findings",
    "price",
    "theorem_w",
]

Floats: TypeAlias = npt.NDArray[np.float64]
Integers: TypeAlias = npt.NDArray[np.int64]

EPSILON, LOG_DELTA, DIMENSION, STEPS = Fraction(1), math.log(1e-6), 64, 100
LENGTH = 64
"""Centered pixels are integers within ±8, so no row is longer than this, whatever the data."""

METHODS = {
    "approximate": "Gaussian mechanism, (1, 10⁻⁶)-DP",
    "printed": "purified as printed (Algorithm 1, Corollary 1's ω and δ)",
    "theorem_w": "purified by Theorem W, ε' and δ chosen for the least noise",
    "mixing": "mixed on a lattice, no ε' (theory B2)",
    "direct": "directly pure: K-norm noise (theory C10)",
    "composed": "directly pure, but asked 100 times",
}
"""The first has δ = 10⁻⁶; all others are pure, with the same total ε = 1."""

PURIFIED = ("printed", "theorem_w", "mixing")


def digits() -> Integers:
    """Return 1797 rows of 64 integers: the pixels less 8, the middle of their range."""
    pixels, _ = load_digits(return_X_y=True)
    return np.asarray(np.rint(pixels), dtype=np.int64) - 8


def theorem_w(*, rows: int) -> dict[str, Any]:
    """Return the base ε, ω = 1/n and ln δ with which Algorithm 1 adds the least noise in all.

    A grid over the share of ε and the Laplace scale b: ln δ follows from b by Theorem W, the noise
    of the run from ln δ. Compared is the rms in the unit ball, √(4d/(nμ)² + 2d·b²).
    """
    weight, d = Fraction(1, rows), DIMENSION
    candidates: list[tuple[float, Fraction, float]] = []
    for halvings in range(1, 7):
        base = EPSILON * (1 - Fraction(1, 2**halvings))
        odds = math.log(float(weight) * (1 + math.exp(base)) / (1 - float(weight)))
        for power in range(-8, 5):
            scale = 2.0**power * math.sqrt(d) / (rows * float(EPSILON))
            radius = scale * float(EPSILON - base) / (4 * math.sqrt(d))  # Δ_1 over √d times 2
            log_delta = odds + d * math.log(radius)
            if log_delta < -1:
                mu_squared = calibrate(epsilon=base, log_delta=log_delta).mu_squared
                error = 4 * d / (rows**2 * float(mu_squared)) + 2 * d * scale**2
                candidates.append((error, base, log_delta))
    _, base, log_delta = min(candidates)
    return {"base_epsilon": base, "mixing_weight": weight, "log_delta": log_delta}


def best_lattice(*, rows: int) -> GaussianMix:
    """Return mixing with ω = 1/n on the lattice, of several, with the least noise in all."""
    ball, candidates = Ball(DIMENSION, 1), []
    usual = default_resolution(ball=ball, rows=rows, epsilon=EPSILON)
    for power in range(-2, 6):
        channel = lattice_channel(
            ball=ball,
            rows=rows,
            epsilon=EPSILON,
            mixing_weight=Fraction(1, rows),
            resolution=min(usual * Fraction(2) ** power, Fraction(1)),
        )
        log_delta = channel.log_delta_required(EPSILON)
        mu_squared = calibrate(epsilon=EPSILON, log_delta=log_delta).mu_squared
        run = 4 * DIMENSION / (rows**2 * float(mu_squared))
        candidates.append((run + channel.expected_error() ** 2, channel))
    return min(candidates, key=lambda pair: pair[0])[1]


@final
@dataclass(frozen=True, kw_only=True)
class Method:
    """One way to publish the mean of n rows: noise on the integer sum, then perhaps a channel."""

    rows: int
    noise: RoundedGaussian | KNorm
    channel: Purifier | None = None
    times: int = 1

    @staticmethod
    def of(name: str, *, rows: int) -> Method:
        """Return a method of `METHODS` with the parameters it has for n rows."""
        if name in ("direct", "composed"):
            times = STEPS if name == "composed" else 1
            pure = KNorm.for_epsilon(
                epsilon=EPSILON / times, norm=2, dimension=DIMENSION, sensitivity=2 * LENGTH
            )
            return Method(rows=rows, noise=pure, times=times)
        channel: Purifier | None = None
        base, log_delta = EPSILON, LOG_DELTA
        if name == "mixing":
            lattice = best_lattice(rows=rows)
            channel, log_delta = lattice, lattice.log_delta_required(EPSILON)
        elif name != "approximate":
            if name == "theorem_w":
                chosen = theorem_w(rows=rows)
            else:
                printed = corollary_1(rows=rows, dimension=DIMENSION, diameter=2)
                chosen = {
                    "base_epsilon": EPSILON / 2,
                    "mixing_weight": printed.mixing_weight,
                    "log_delta": printed.log_delta,
                }
            base, log_delta = chosen["base_epsilon"], chosen["log_delta"]
            channel = channel_for(ball=Ball(DIMENSION, 1), epsilon=EPSILON, **chosen)
        noise = RoundedGaussian.for_mu_squared(
            mu_squared=calibrate(epsilon=base, log_delta=log_delta).mu_squared,
            sensitivity_squared=(2 * LENGTH) ** 2,
        )
        return Method(rows=rows, noise=noise, channel=channel)

    def publish(self, sums: Integers, bits: BitSource) -> Floats:
        """Return the mean in the unit ball."""
        noisy = np.zeros(DIMENSION)
        for _ in range(self.times):
            noisy += self.noise.apply(sums, bits).astype(np.float64) / self.times
        mean = Ball(DIMENSION, 1).project(noisy / (LENGTH * self.rows))
        return mean if self.channel is None else np.asarray(self.channel.apply(mean, bits))

    def predicted(self) -> float:
        """Return the rms error from the noise alone, as if nothing left the ball."""
        if isinstance(self.noise, KNorm):
            # a vector with density ∝ exp(-‖z‖/b) in d dimensions has E‖z‖² = d(d+1)b²
            variance = DIMENSION * (DIMENSION + 1) * float(self.noise.scale) ** 2 / self.times
        else:
            variance = DIMENSION * float(self.noise.variance)
        added = 0.0 if self.channel is None else self.channel.expected_error()
        return math.sqrt(variance / (LENGTH * self.rows) ** 2 + added**2)


def price(*, sizes: tuple[int, ...], repeats: int) -> dict[str, Any]:
    """Return for each n and method the rms l2 error of the mean, its error, and its prediction.

    Every repeat draws its own n rows, the same for all methods. `nothing` is the error of the
    ball's center, which is free of charge.
    """
    pixels = digits()
    squares = np.zeros((len(METHODS), len(sizes), repeats))
    predicted = np.zeros((len(METHODS), len(sizes)))
    nothing = np.zeros(len(sizes))
    for at, n in enumerate(sizes):
        methods = {name: Method.of(name, rows=n) for name in METHODS}
        predicted[:, at] = [method.predicted() for method in methods.values()]
        for repeat in range(repeats):
            generator = np.random.default_rng([20260101, n, repeat])
            counts = generator.multinomial(n, np.full(len(pixels), 1 / len(pixels)))
            sums = counts @ pixels
            mean = sums / (LENGTH * n)
            nothing[at] += float(np.linalg.norm(mean)) / repeats
            for line, (name, method) in enumerate(methods.items()):
                published = method.publish(sums, ReplayBits(f"price/{name}/{n}/{repeat}"))
                squares[line, at, repeat] = float(((published - mean) ** 2).sum())
    errors = np.sqrt(squares.mean(axis=2))
    spread = squares.std(axis=2, ddof=1) / math.sqrt(repeats) / (2 * errors)  # delta method
    return {
        "epsilon": float(EPSILON),
        "repeats": repeats,
        "sizes": list(sizes),
        "methods": dict(METHODS),
        "errors": dict(zip(METHODS, errors.tolist(), strict=True)),
        "deviations": dict(zip(METHODS, spread.tolist(), strict=True)),
        "predicted": dict(zip(METHODS, predicted.tolist(), strict=True)),
        "nothing": nothing.tolist(),
    }


def better_from(data: Mapping[str, Any], method: str, other: list[float]) -> int | None:
    """Return the smallest n from which on a method's error is below the other one, or None."""
    better = [e < o for e, o in zip(data["errors"][method], other, strict=True)]
    smallest_n = None
    for n, wins in zip(reversed(data["sizes"]), reversed(better), strict=True):
        if not wins:
            break
        smallest_n = int(n)
    return smallest_n


def findings(data: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what the numbers say, whatever they are."""
    last, errors, names = data["sizes"][-1], data["errors"], data["methods"]
    usual = errors["approximate"][-1]
    ratios = [f"{names[name]}: {errors[name][-1] / usual:.3g}" for name in names]
    starts = []
    for name, text in names.items():
        start = better_from(data, name, data["nothing"])
        starts.append(f"{text}: {'never here' if start is None else start}")
    return (
        f"Errors at n = {last}, in units of that with δ = 10⁻⁶: {'; '.join(ratios[1:])}.",
        f"Fewest rows here that beat publishing the center: {'; '.join(starts)}.",
        _compared(data, "direct", "where one pure release does the job"),
        _compared(data, "composed", f"where {STEPS} internal answers are needed"),
    )


def _compared(data: Mapping[str, Any], method: str, where: str) -> str:
    """Return whether purification pays, from the errors at the largest n."""
    errors, names = data["errors"], data["methods"]
    wins = [names[name] for name in PURIFIED if errors[name][-1] < errors[method][-1]]
    if not wins:
        return f"Purification does not pay {where}: each of the three has the larger error."
    return f"Purification pays {where}, for: {'; '.join(wins)}."
