"""Linear regression by the method with the least predicted error (theory C9, C10.5, C6, C1).

Rows are turned into the engine's integers and targets into [-1, 1] first, so that all methods see
the same bounded rows; a forecast is in units of half the targets' range, squared (without an
intercept, of the largest target).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from zerodelta.channels.ball import GaussianMix
from zerodelta.exact.bits import BitSource
from zerodelta.exact.rational import Rational, as_count
from zerodelta.paper.algorithm_13 import lattice_adassp
from zerodelta.privacy.calibration import calibrate
from zerodelta.privacy.parameters import as_flag, as_usable_epsilon
from zerodelta.privacy.release import Release
from zerodelta.regression.expected import TARGETS, Expected
from zerodelta.regression.fit import LinearModel, fit_huber
from zerodelta.regression.integer_rows import STEPS, Floats
from zerodelta.regression.objective_plan import limited, plan_huber
from zerodelta.regression.reading import (
    Features,
    as_target_bounds,
    read_targets,
    target_scale,
)
from zerodelta.regression.sufficient_statistics import (
    fit_statistics,
    plan_statistics,
    statistics_error,
)
from zerodelta.spaces import Ball, BallLattice
from zerodelta.spine.methods import Method, choose, ranked
from zerodelta.study.study import Study
from zerodelta.training.losses import Squared

__all__ = ["fit_linear", "linear_methods"]

_RIDGE = 2.0
"""The factor C of the penalty C·√d of purified AdaSSP."""


def fit_linear(
    rows: Any,
    targets: Any,
    *,
    epsilon: Rational,
    data_norm: Rational | None = None,
    bounds_y: tuple[Rational, Rational] | None = None,
    intercept: bool = True,
    method: str = "auto",
    bits: BitSource | None = None,
) -> Release:
    """Fit a linear regression.

    **Releases** a `LinearModel` with one line of coefficients. `method`: "huber" (noise in the
    objective of the pseudo-Huber loss), "statistics" (K-norm noise on XᵀX and Xᵀy), "adassp" (the
    same with Gaussian noise, purified on a lattice), "descent" (a hidden gradient descent), or
    "auto", the one with the least predicted error.
    **Neighbors**: replace-one; the number of rows is public.
    **Guarantee**: pure ε-DP, proven (theorems C9 and N; C10.5; C6 and R(v); R2 and the ball's).
    **Public**: ε, `data_norm`, `bounds_y`, the shape of the data. Longer rows are shortened to
    `data_norm`, targets cut to `bounds_y`; rows with a missing cell, and those whose target
    is no number, count as empty.
    **Error**: the expected excess of the mean squared error for rows that fill their bound evenly;
    the true one depends on unseen data, and short rows have 10 times more and beyond.

    >>> rng = np.random.default_rng(0)
    >>> rows = rng.uniform(-0.7, 0.7, size=(5000, 2))
    >>> release = fit_linear(rows, 3 * rows[:, 0] + 1, epsilon=1, data_norm=1, bounds_y=(-2, 4))
    >>> release.value.coefficients.shape, bool(abs(release.value.coefficients[0, 0] - 3) < 1)
    ((1, 2), True)
    """
    bounds = as_target_bounds(bounds_y)
    features, source = Features.of(rows, data_norm, intercept)
    exact = as_usable_epsilon(epsilon)
    methods = linear_methods(
        epsilon=exact, n=source.count, dimension=features.dimension, intercept=intercept
    )
    chosen = choose(methods, method)
    direct = {"huber": fit_huber, "statistics": fit_statistics}
    if chosen.name in direct:
        return direct[chosen.name](
            rows,
            targets,
            epsilon=exact,
            data_norm=data_norm,
            bounds_y=bounds_y,
            intercept=intercept,
            bits=bits,
        )
    scaled = read_targets(targets, bounds, source.count, intercept=features.intercept)
    known = np.isfinite(scaled)
    x = features.integers(source, known.astype(np.float64)).values / STEPS
    fit: Callable[..., Release] = _adassp if chosen.name == "adassp" else _descent
    release = fit(x, np.where(known, scaled, 0.0), exact, bits)
    middle, half = target_scale(bounds, features.intercept)
    theta = _inside(np.asarray(release.value, dtype=np.float64)) * half
    lines, constants = features.coefficients(theta.reshape(-1, 1))
    return Release(
        value=LinearModel(coefficients=lines, intercept=constants + middle),
        certificate=release.certificate,
        error=chosen.error * half**2,
    )


def linear_methods(
    *,
    epsilon: Rational,
    n: int,
    dimension: int,
    intercept: bool = True,
    row_length: Rational | None = None,
    signal: Rational | None = None,
) -> tuple[Method, ...]:
    """Return the ways to fit a linear regression, best first, for targets in [-1, 1].

    Errors are expected excesses of the mean squared error, for rows and a signal as in `Expected`.

    >>> [m.name for m in linear_methods(epsilon=1, n=10_000, dimension=10)]
    ['huber', 'statistics', 'adassp', 'descent']
    >>> linear_methods(epsilon=1, n=10**6, dimension=1)[0].name
    'statistics'
    """
    exact, rows = as_usable_epsilon(epsilon), as_count(n, "n")
    columns = as_count(dimension, "dimension", minimum=1) + as_flag(intercept, "intercept")
    expected = TARGETS.given(row_length=row_length, signal=signal)
    given: dict[str, Any] = {"rows": rows, "dimension": dimension, "epsilon": exact}
    given |= {"intercept": intercept, "expected": expected}
    huber, noisy = plan_huber(**given), plan_statistics(**given)
    part = float(2 * huber.channel.error / huber.channel.scale / exact)
    return ranked(
        Method(
            name="huber",
            error=huber.predicted_error,
            spends=f"ε on the objective, {part:.1%} of it on numerical error",
            why=f"{columns} noisy numbers, and slopes that no outlier can enlarge",
        ),
        Method(
            name="statistics",
            error=noisy.predicted_error,
            spends=f"ε on {noisy.dimension} sums together",
            why="no bias: best for few features and many rows"
            if columns <= 4
            else f"the noise of {noisy.dimension} sums for {columns} coefficients",
        ),
        Method(
            name="adassp",
            error=_adassp_error(exact, rows, columns, intercept, expected),
            spends=f"ε on a lattice of {columns} dimensions, {noisy.dimension} hidden sums",
            why="hidden Gaussian noise: overtakes statistics from some 20 features on",
        ),
        Method(
            name="descent",
            error=_descent_error(exact, rows, columns, expected),
            spends=f"ε on a lattice of {columns} dimensions, {_rounds(columns)} hidden gradients",
            why="every step adds noise; pays for losses that are not convex",
        ),
    )


def _inside(theta: Floats) -> Floats:
    """Shorten a published point to twice the length that coefficients may be expected to have.

    Post-processing: a random point of the lattice, published with tiny probability, is far away.
    """
    most = 2 * math.sqrt(len(theta))
    return theta * min(1.0, most / max(float(np.linalg.norm(theta)), most / 2**10))


def _weight(rows: int) -> Fraction:
    """Return n^-1.5: a random point costs less than the noise does."""
    return Fraction(1, max(1000, rows * math.isqrt(rows)))


def _adassp(x: Floats, y: Floats, epsilon: Fraction, bits: BitSource | None) -> Release:
    rows, columns = x.shape
    return lattice_adassp(
        x,
        y,
        data_norm=1,
        target_bound=1,
        epsilon=epsilon,
        mixing_weight=_weight(rows),
        resolution=_resolution(epsilon, rows, columns),
        ridge_factor=_RIDGE,
        bits=bits,
    )


def _resolution(epsilon: Fraction, rows: int, columns: int) -> int:
    """Return how many steps of the lattice make its radius: a step is no more than the noise.

    What is hidden may fail with δ = e^-L, L about d·ln(n) + 1.5·ln(n), which gives μ nearly.
    """
    rare = (columns + 1.5) * math.log(max(rows, 16))
    mu = 2 * float(epsilon) / (math.sqrt(2 * rare + 2 * float(epsilon)) + math.sqrt(2 * rare))
    noise = _noise_error(rows, columns, math.sqrt(4.5) / mu, False, TARGETS)
    steps = _radius_of(rows, columns, math.sqrt(4.5) / mu) / math.sqrt(noise / TARGETS.spread)
    return 1 << min(max(math.ceil(math.log2(steps)), 4), 50)


def _radius_of(rows: int, columns: int, multiplier: float) -> float:
    """Return the trust radius: all that the penalty lets coefficients be."""
    return rows / (_RIDGE * math.sqrt(columns) * multiplier) + 1


def _noise_error(
    rows: int, columns: int, multiplier: float, intercept: bool, expected: Expected
) -> float:
    return statistics_error(
        rows=rows,
        columns=columns,
        gram_deviation=multiplier,
        moment_deviation=multiplier,
        intercept=intercept,
        expected=expected,
    )


def _adassp_error(
    epsilon: Fraction, rows: int, columns: int, intercept: bool, expected: Expected
) -> float:
    """Forecast: noise of multiplier √(9/2)/μ, a lattice, a random point now and then."""
    steps = _resolution(epsilon, rows, columns)
    unit = GaussianMix(
        lattice=BallLattice(ball=Ball(columns, steps), spacing=Fraction(1)),
        mixing_weight=_weight(rows),
    )
    needed = min(unit.log_delta_required(epsilon), -(2.0**-20))
    multiplier = math.sqrt(4.5 / calibrate(epsilon=epsilon, log_delta=needed).mu_squared)
    noise = _noise_error(rows, columns, multiplier, intercept, expected)
    spacing = _radius_of(rows, columns, multiplier) / steps
    added = expected.spread * (spacing**2 / 12 + 4 * float(_weight(rows)))
    return min(noise + added, expected.explained)


def _rounds(columns: int) -> int:
    """Return how many gradient steps: errors shrink by e^(-spread/(2·columns)) a step."""
    return min(max(30, 12 * columns), 300)


def _descent(x: Floats, y: Floats, epsilon: Fraction, bits: BitSource | None) -> Release:
    columns = x.shape[1]
    study = Study(
        np.column_stack([x, y]),
        epsilon=epsilon,
        publish=Ball(columns, _radius(columns)),
        rounds=_rounds(columns),
        functions=False,
        bits=bits,
    )
    return study.minimize(Squared(label_bound=1), data_norm=1)


def _radius(columns: int) -> Fraction:
    """Return a little more than the length of typical coefficients, √(explained·d/spread)."""
    return Fraction(math.isqrt(64 * columns) + 1, 16)


def _descent_error(epsilon: Fraction, rows: int, columns: int, expected: Expected) -> float:
    """Forecast: steps of length 1 shrinking to 0, noise 2RT/(√3 n μ), of which later steps correct.

    What is published takes about d·ln(n) + 7 nats, hence μ.
    """
    steps, radius = _rounds(columns), float(_radius(columns))
    mu = float(epsilon) / math.sqrt(2 * (columns * math.log(max(rows, 2)) + 7))
    noise = 2 * (1 + radius) * steps / (math.sqrt(3) * max(1, rows) * mu)
    spread, explained = expected.spread, expected.explained
    left = min(1.0, 1.5 * columns / (spread * steps))
    behind = explained * math.exp(-spread * steps / columns)
    return limited(spread * noise**2 * left + behind + spread * radius**2 / 1000, explained)
