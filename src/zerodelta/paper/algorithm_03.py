"""Run DP-SGD under approximate DP with exact integer gradients and noise: Algorithm 3.

`alg:dp_sgd`: batches of fixed size without replacement, per-example clipping, rounded Gaussian
noise, averages for convex and strongly convex losses. Parameters are those of `lem: dp-sgd-cvx-lip`
and `lem: dp-sgd-scvx-lip-sm`. Privacy is recomputed from the rounded values by Lemma WOR (theory
A6.3) or, for a full batch, as Gaussian DP; `lem: RDP_sampled_gau` and `cor: RDP_DP_SGD` are not
used.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache, partial
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

from zerodelta.data.rows import Rows
from zerodelta.data.source import Source
from zerodelta.errors import require
from zerodelta.exact.arrays import Floats
from zerodelta.exact.bits import BitSource
from zerodelta.exact.integers import uniform_subset
from zerodelta.exact.rational import Rational, as_count, as_positive
from zerodelta.exact.sums import IntegerArray
from zerodelta.mechanisms.sum_noise import RoundedGaussian, RoundedLaplace, add_exactly
from zerodelta.privacy.claims import RDP, ApproxDP, Claim, GaussianDP, calibrate, safe_end
from zerodelta.privacy.parameters import as_at_least_zero, as_log_delta, log_delta_from
from zerodelta.privacy.release import Release
from zerodelta.privacy.renyi import log_delta_at_order, saturated
from zerodelta.privacy.steps import Step
from zerodelta.privacy.theorems.subsampling import subsampled_gaussian
from zerodelta.spaces import Ball
from zerodelta.spine.plan import ReleasePlan
from zerodelta.spine.run import run
from zerodelta.spine.verbs import Paying, debited
from zerodelta.training.gradient_sums import Gradients
from zerodelta.training.gradients import GradientFunction, gradients_of
from zerodelta.training.losses import Loss
from zerodelta.value import value

if TYPE_CHECKING:
    from typing_extensions import Unpack


# -- The loop of Algorithm 3: T projected gradient steps on noisy integer sums, and their average -
# Shared by DP-SGD and by Laplace noisy descent (`baselines`). The caller's noise determines ε.

Rates: TypeAlias = Callable[[int], float]
"""The step size η_t of step t = 1, 2, …"""

_NOISE_ENTRIES = 1 << 16


def descent_seconds(*, rows: int, dimension: int, steps: int, batch: int) -> float:
    """Return a forecast of the seconds that T steps with a built-in loss take on one core.

    >>> round(descent_seconds(rows=10_000, dimension=10, steps=700_000, batch=24))
    73
    """
    # fitted by `planned_seconds` of `bench/paper.py`: n from 1e3 to 1e5, d from 10 to 1000
    row_seconds = 1e-8 + 6e-10 * dimension if batch == rows else 8e-8 + 2e-9 * dimension
    return steps * (1e-4 + 2e-7 * dimension + batch * row_seconds)


Noise: TypeAlias = RoundedGaussian | RoundedLaplace


def descend(
    gradients: Gradients,
    *,
    ball: Ball,
    steps: int,
    batch: int,
    noise: Noise,
    rates: Rates,
    regularization: float,
    bits: BitSource,
) -> Floats:
    """Return the average of T projected gradient steps, computed from noisy sums alone.

    The gradient of F = Σ f + (nλ/2)‖θ‖² is estimated by ĝ = (n/b)(Σ_batch g + noise) + nλθ.
    """
    rows, unit = gradients.rows, float(gradients.quantum)
    # theory A6.6: θ_1 is a public constant, and the T iterates θ_2 … θ_{T+1} are averaged; if λ > 0
    # θ_t has weight t, which keeps the lemma's bound 2E‖ĝ‖²/(nλ(T+1)) (printed: weight t of θ_1 …).
    theta, average, mass = ball.middle(), np.zeros(ball.dimension), 0.0
    noises = _noise_vectors(noise, steps=steps, dimension=ball.dimension, bits=bits)
    for t, drawn in enumerate(noises, start=1):
        chosen = None if batch == rows else uniform_subset(rows, size=batch, bits=bits)
        noisy = add_exactly(gradients.total(theta, chosen), drawn)
        estimate = noisy.astype(np.float64) * (unit * rows / batch)
        theta = ball.project(theta - rates(t) * (estimate + rows * regularization * theta))
        weight = t + 1.0 if regularization > 0 else 1.0
        mass += weight
        average += (theta - average) * (weight / mass)
    return ball.project(average)


def _noise_vectors(
    noise: Noise, *, steps: int, dimension: int, bits: BitSource
) -> Iterator[IntegerArray]:
    """Yield the noise of each step, drawn for many steps at a time.

    The noise is independent of the sums, so that it may be drawn before them.
    """
    block = max(1, _NOISE_ENTRIES // dimension)
    for start in range(0, steps, block):
        count = min(block, steps - start)
        zeros = np.zeros(count * dimension, dtype=np.int64)
        yield from noise.apply(zeros, bits).reshape(count, dimension)


@partial(debited, rows=("features", "labels"))
def dp_sgd(
    features: Any,
    labels: Any = None,
    *,
    loss: Loss | GradientFunction,
    epsilon: Rational,
    log_delta: float | None = None,
    delta: Rational | None = None,
    radius: Rational,
    data_norm: Rational | None = None,
    clip: Rational | None = None,
    dimension: int | None = None,
    regularization: Rational = 0,
    steps: int | None = None,
    batch: int | None = None,
    **paying: Unpack[Paying],
) -> Release:
    """Minimize (1/n) Σ loss(θ; x_i, y_i) + (λ/2)‖θ‖² over the l2 ball, under (ε, δ)-DP.

    Use it to reproduce Algorithm 3; for pure DP see `zd.Study.minimize`.

    Parameters
    ----------
    features : array or list
        One row for each example.
    labels : array or list, optional
        One label for each row; a function sees them as the last column.
    loss : Loss or callable
        f of the paper: a built-in loss (`zerodelta.models`), or a function gradient(theta, rows)
        that returns one gradient for each row.
    epsilon : number
        ε of the release.
    log_delta, delta : number
        ln δ or δ of the release, one of the two.
    radius : number
        The radius of the l2 ball around 0 that contains θ: half of the paper's diameter C.
    data_norm : number
        The l2 norm to which rows are clipped; a built-in loss needs it, and L follows from it.
    clip : number
        L, the l2 norm to which gradients are clipped; a function needs it.
    dimension : int, optional
        d, the length of θ for a function; by default the number of columns it sees.
    regularization : number
        λ; above 0 (strong convexity) the iterates are averaged with weights growing like t.
    steps, batch : int, optional
        T and γn, the size of a batch. The defaults are those of `printed_parameters`, which also
        forecasts the seconds: T grows like n², so pass smaller numbers for large n.

    Returns
    -------
    Release
        Its value is the averaged iterate, and nothing else of the run; `seconds` is the plan's
        forecast.

    Notes
    -----
    **Guarantee**: (ε, δ)-DP: T Gaussian steps of squared sensitivity (2L)², by Lemma WOR for
    `batch` < n, as Gaussian DP for `batch` = n (R2). `proven` for a built-in loss, `asserted` for a
    function.
    **Neighbors**: replace-one (n is public).
    **Error**: `Descent.error`, the convergence bound on the excess empirical risk for convex losses
    that really are L-Lipschitz.

    Examples
    --------
    >>> from zerodelta.training.losses import Squared
    >>> import numpy as np
    >>> x = np.linspace(-1, 1, 10_000).reshape(-1, 1)
    >>> release = dp_sgd(
    ...     x, x[:, 0], loss=Squared(label_bound=1), data_norm=1, radius="1/2",
    ...     epsilon=1, delta="1e-9", steps=400, batch=10_000,
    ... )
    >>> release.value.round(1), release.certificate.status.value
    (array([0.5]), 'proven')

    """
    target = ApproxDP(epsilon, log_delta_from(delta, log_delta))
    gradients = gradients_of(
        features,
        labels,
        loss=loss,
        radius=radius,
        data_norm=data_norm,
        clip=clip,
        dimension=dimension,
    )
    plan = plan_descent(
        gradients,
        epsilon=target.exact_epsilon,
        log_delta=target.exact_log_delta,
        radius=radius,
        regularization=regularization,
        steps=steps,
        batch=batch,
    )
    return release_point(
        gradients,
        target,
        (plan.proof_step(),),
        plan.run,
        space=f"the ball {plan.ball!r}",
        error=plan.error(),
        seconds=plan.seconds(),
    )


def release_point(
    gradients: Gradients,
    claim: Claim,
    steps: tuple[Step, ...],
    answer: Callable[[Rows, BitSource], Floats],
    *,
    space: str,
    error: float,
    seconds: float,
) -> Release:
    """Release one point computed by `answer` from the rows of planned gradients."""
    # theory A6.7: only this point is released; no iterate, loss or stopping decision is.
    plan: ReleasePlan[Rows] = ReleasePlan(
        claim=claim,
        steps=steps,
        answer=answer,
        error=error,
        seconds=seconds,
        public=(space, "the number of rows", "every number in the steps"),
        assumed=gradients.assumed(),
    )
    return run(plan, cast(Source, gradients.source))


@value
class PrintedParameters:
    """γn and T of the convergence lemmas as integers, their printed σ², and forecast seconds."""

    batch: int
    steps: int
    variance: float
    seconds: float


def printed_parameters(
    *,
    rows: int,
    dimension: int,
    epsilon: Rational,
    lipschitz: float,
    log_delta: float | None = None,
    delta: Rational | None = None,
) -> PrintedParameters:
    """Return γ = 2√(dℓ)/(n√ε), T = n²ε²/(dℓ), σ² = 416 L²ℓ/ε (ℓ = ln 1/δ), γn and T as integers.

    Parameters
    ----------
    rows, dimension : int
        n and d.
    epsilon : number
        ε of the run.
    lipschitz : number
        L.
    log_delta, delta : number
        ln δ or δ of the run, one of the two.

    Returns
    -------
    PrintedParameters
        `batch` is γn, `steps` T, `variance` σ², and `seconds` the forecast time of a run.

    Examples
    --------
    >>> p = printed_parameters(rows=1000, dimension=5, epsilon=1, log_delta=-50.0, lipschitz=1)
    >>> p.batch, p.steps, p.variance, round(p.seconds, 1)
    (32, 4000, 20800.0, 0.4)

    """
    n, d = as_count(rows, "rows", minimum=1), as_count(dimension, "dimension", minimum=1)
    budget = float(as_positive(epsilon, "epsilon"))
    nats = max(-log_delta_from(delta, log_delta), 1e-9)
    # theory A6.4: γ <= 1, and γn and T are integers of at least 1; privacy is recomputed from these
    batch = min(n, max(1, math.ceil(2 * math.sqrt(d * nats / budget))))
    steps = max(1, math.ceil((n * budget) ** 2 / (d * nats)))
    return PrintedParameters(
        batch=batch,
        steps=steps,
        variance=416 * lipschitz**2 * nats / budget,
        seconds=descent_seconds(rows=n, dimension=d, steps=steps, batch=batch),
    )


@value
class PlannedDescent:
    """The public plan of a run."""

    gradients: Gradients
    ball: Ball
    steps: int
    batch: int
    variance: Fraction
    regularization: Fraction

    def proof_step(self) -> Step:
        """Return the certificate's step for all steps of the run."""
        # theory A6.1: a gradient sum has sensitivity 2L to a replaced row, not L.
        squared = (2 * self.gradients.bound) ** 2
        rows, status = self.gradients.rows, self.gradients.status
        numbers = {"sensitivity_squared": squared, "variance": self.variance}
        if self.batch == rows:
            return Step(
                theorem="rounded-gaussian", numbers={**numbers, "count": self.steps}, status=status
            )
        sampled = {**numbers, "rows": rows, "batch": self.batch, "steps": self.steps}
        return Step(theorem="sampling-without-replacement", numbers=sampled, status=status)

    def run(self, rows: Rows, bits: BitSource) -> Floats:
        """Return the averaged iterate, an internal answer that is (ε, δ)-DP by `proof_step`."""
        noise = RoundedGaussian(
            sensitivity_squared=Fraction((2 * self.gradients.bound) ** 2), variance=self.variance
        )
        return descend(
            self.gradients.on(rows),
            ball=self.ball,
            steps=self.steps,
            batch=self.batch,
            noise=noise,
            rates=self.rates(),
            regularization=float(self.regularization),
            bits=bits,
        )

    def rates(self) -> Rates:
        """Return η_t for the sum F: 2/(nλ(t+1)) if λ > 0, else C/√(T·E‖ĝ‖²)."""
        strong = self.gradients.rows * float(self.regularization)
        if strong > 0:
            return lambda t: 2 / (strong * (t + 1))
        rate = 2 * float(self.ball.radius) / math.sqrt(self.steps * self._second_moment())
        return lambda _: rate

    def error(self) -> float:
        """Return the bound on E L(θ) - min L of the convergence lemmas, with its constants."""
        n = self.gradients.rows
        strong = n * float(self.regularization)
        if strong > 0:
            # theory A6.8: the printed ρ has T² where T is meant; σ is recomputed here.
            return 2 * self._second_moment() / (strong * (self.steps + 1)) / n
        width = 2 * float(self.ball.radius)
        return 2 * width * math.sqrt(self._second_moment() / self.steps) / n

    def seconds(self) -> float:
        """Return a forecast of the seconds of the run."""
        return descent_seconds(
            rows=self.gradients.rows,
            dimension=self.gradients.dimension,
            steps=self.steps,
            batch=self.batch,
        )

    def _second_moment(self) -> float:
        """Return n²L² + dσ²/γ² + nL²/γ, a bound on E‖ĝ‖²."""
        n, d = self.gradients.rows, self.gradients.dimension
        gamma = self.batch / n
        slope = float(self.gradients.lipschitz + self.regularization * self.ball.radius)
        sigma = float(self.gradients.quantum) * math.sqrt(self.variance)
        sampling = n * slope**2 / gamma if self.batch < n else 0.0
        return (n * slope) ** 2 + d * (sigma / gamma) ** 2 + sampling


def plan_descent(
    gradients: Gradients,
    *,
    epsilon: Rational,
    log_delta: float,
    radius: Rational,
    regularization: Rational = 0,
    steps: int | None = None,
    batch: int | None = None,
) -> PlannedDescent:
    """Return the run with the smallest noise that meets (ε, δ), from public numbers only."""
    printed = printed_parameters(
        rows=gradients.rows,
        dimension=gradients.dimension,
        epsilon=epsilon,
        log_delta=log_delta,
        lipschitz=float(gradients.lipschitz),
    )
    count = printed.steps if steps is None else as_count(steps, "steps", minimum=1)
    size = printed.batch if batch is None else as_count(batch, "batch", minimum=1)
    require(
        size <= gradients.rows,
        "batch",
        size,
        expected=f"at most the {gradients.rows} rows",
        remedy="pass batch= of at most n",
    )
    ratio = _noise_ratio(
        rows=gradients.rows, batch=size, steps=count, epsilon=epsilon, log_delta=log_delta
    )
    return PlannedDescent(
        gradients=gradients,
        ball=Ball(gradients.dimension, radius),
        steps=count,
        batch=size,
        variance=(2 * gradients.bound) ** 2 * ratio,
        regularization=as_at_least_zero(regularization, "regularization"),
    )


def _noise_ratio(
    *, rows: int, batch: int, steps: int, epsilon: Rational, log_delta: float
) -> Fraction:
    """Return nearly the smallest σ²/(2L)² for which T steps are provably (ε, δ)-DP."""
    t, target = as_positive(epsilon, "epsilon"), as_log_delta(log_delta)
    allowed = calibrate(epsilon=t, log_delta=target)

    if batch == rows:
        safe = float(steps / allowed.mu_squared)
        while GaussianDP(mu_squared=steps / Fraction(safe)).log_delta(t) > target:
            safe *= 1.0 + 2.0**-20
        return Fraction(safe)

    def claim(ratio: float) -> RDP:
        return subsampled_gaussian(
            rows=rows,
            batch=batch,
            sensitivity_squared=1,
            variance=Fraction(ratio),
            steps=steps,
        )

    @cache
    def excess(ratio: float) -> float:
        return claim(ratio).log_delta(t) - target

    limit = log_delta_at_order(Fraction(claim(1.0).curve.largest), Fraction(0), t)
    require(
        limit < target,
        "log_delta",
        log_delta,
        expected=f"above {limit:.6g} for random batches and this epsilon",
        remedy="pass batch= all rows, or a larger epsilon",
    )
    # start where γ²a(e^μ² - 1), the leading term of the Rényi curve R(a), is the allowed aρ/T; then
    # widen an interval of noise ratios until one end is safe and the other is not
    share = saturated(allowed.rho * rows**2 / (steps * batch**2))
    safe = unsafe = 1 / math.log1p(share)
    factor = 1.25
    while excess(safe) > 0:
        unsafe, safe, factor = safe, safe * factor, factor * 1.25
    while excess(unsafe) <= 0:
        safe, unsafe, factor = unsafe, unsafe / factor, factor * 1.25
    return Fraction(safe_end(excess, safe=safe, unsafe=unsafe, relative=1e-4))
