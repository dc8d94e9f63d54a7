"""Run Frank-Wolfe without privacy, and with noisy choices: Algorithms 5 and 6.

`alg: frank_wolfe`, `alg: ktz_fw`, with two changes by theory A11: the sensitivity is twice the
printed one, because a record is *replaced*, and the noise is Gumbel instead of Laplace, with which
a step costs ε₀²/8 of zCDP.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from zerodelta.errors import require
from zerodelta.exact.arrays import Floats
from zerodelta.exact.rational import Rational, as_count, as_positive
from zerodelta.privacy.claims import ApproxDP
from zerodelta.privacy.parameters import log_delta_from
from zerodelta.privacy.release import Release
from zerodelta.spine.run import run
from zerodelta.spine.verbs import Paying, debited
from zerodelta.training.frank_wolfe import Composition, VertexSteps, step_epsilon
from zerodelta.training.gradients import GradientFunction
from zerodelta.training.losses import Loss
from zerodelta.training.polytopes import Domain, as_polytope

if TYPE_CHECKING:
    from typing_extensions import Unpack


# -- Algorithm 5 (`alg: frank_wolfe`): the non-private Frank-Wolfe method -------------------------


def frank_wolfe(
    gradient: Callable[[Floats], Any],
    *,
    domain: Domain,
    iterations: int,
    start: Sequence[float] | Floats | None = None,
) -> Floats:
    """Return θ_T, **not private**: each step moves toward the vertex of steepest descent.

    Use it on public data, to see the result of `frank_wolfe_pure` without privacy.

    Parameters
    ----------
    gradient : callable
        gradient(theta), the gradient ∇L(θ) of the mean loss.
    domain : Ball or array
        C = conv(S): an l1 ball around 0, or an array with one vertex of S in each row.
    iterations : int
        The number T of steps. (The paper's loop has T̃ - 1 steps and outputs θ_T, a typo.)
    start : array, optional
        θ_0, by default 0 as in Algorithm 6.

    Returns
    -------
    array
        A point of the domain.

    Examples
    --------
    >>> from zerodelta.spaces import Ball
    >>> target = np.array([0.25, -0.5])
    >>> theta = frank_wolfe(lambda t: t - target, domain=Ball(2, 1, norm=1), iterations=2000)
    >>> theta.round(2)
    array([ 0.25, -0.5 ])

    """
    polytope = as_polytope(domain)
    steps = as_count(iterations, "iterations", minimum=1)
    theta = np.zeros(polytope.dimension) if start is None else np.array(start, dtype=np.float64)
    require(
        theta.shape == (polytope.dimension,) and np.isfinite(theta).all(),
        "start",
        start,
        expected=f"{polytope.dimension} finite numbers inside the domain",
        remedy="omit start to begin at 0",
    )
    for step in range(steps):
        slope = np.asarray(gradient(theta.copy()), dtype=np.float64)
        scores = polytope.scores(polytope.row(slope[np.newaxis])[0])
        theta = polytope.toward(theta, step, int(np.argmax(scores)))
    return theta


def printed_noise_scale(
    *,
    lipschitz: Rational,
    length: Rational,
    iterations: int,
    epsilon: Rational,
    rows: int,
    log_delta: float | None = None,
    delta: Rational | None = None,
) -> float:
    """Return L₁‖C‖₁ √(8T ln(1/δ))/(nε), the printed noise, for comparison.

    No function adds this noise. With it a step is (√2 ε/√(T ln(1/δ)))-DP, so the total is 2ε and
    not ε (theory A11).

    Parameters
    ----------
    lipschitz, length, iterations, rows : number
        L₁, ‖C‖₁, T and n.
    epsilon : number
        ε of the run.
    log_delta, delta : number
        ln δ or δ of the run, one of the two.

    Returns
    -------
    float
        The scale of the Laplace noise on a score.

    Examples
    --------
    >>> round(printed_noise_scale(
    ...     lipschitz=1, length=1, iterations=10, epsilon=1, log_delta=-20.0, rows=1000), 4)
    0.04

    """
    size = as_positive(lipschitz, "lipschitz") * as_positive(length, "length")
    steps, count = as_count(iterations, "iterations", minimum=1), as_count(rows, "rows", minimum=1)
    spread = math.sqrt(8 * steps * -log_delta_from(delta, log_delta))
    return float(size / (count * as_positive(epsilon, "epsilon"))) * spread


def balanced_iterations(
    *,
    rows: int,
    epsilon: Rational,
    vertices: int,
    smoothness: Rational,
    length: Rational,
    lipschitz: Rational,
    log_delta: float | None = None,
    delta: Rational | None = None,
) -> int:
    """Return the T that minimizes Γ/T + L₁‖C‖₁ √(8T ln(1/δ)) ln|S|/(nε) (`lem: util_ktz_fw`).

    This is (2Γnε/(L₁‖C‖₁ √(8 ln(1/δ)) ln|S|))^(2/3) with Γ = β‖C‖₁², its O(·) taken as 1.

    >>> balanced_iterations(
    ...     rows=10_000, epsilon=1, delta="1e-6", vertices=20, smoothness=1, length=1, lipschitz=1)
    74
    """
    gamma = as_positive(smoothness, "smoothness") * as_positive(length, "length") ** 2
    noise = printed_noise_scale(
        lipschitz=lipschitz,
        length=length,
        iterations=1,
        epsilon=epsilon,
        rows=rows,
        log_delta=log_delta,
        delta=delta,
    )
    spread = noise * math.log(max(2, as_count(vertices, "vertices", minimum=1)))
    return max(1, math.ceil(math.pow(2 * float(gamma) / max(spread, 1e-12), 2 / 3)))


@partial(debited, rows=("features", "labels"))
def approximate_frank_wolfe(
    features: Any,
    labels: Any = None,
    *,
    loss: Loss | GradientFunction,
    domain: Domain,
    lipschitz: Rational,
    epsilon: Rational,
    log_delta: float | None = None,
    delta: Rational | None = None,
    iterations: int | None = None,
    smoothness: Rational | None = None,
    composition: Composition = "best",
    steps: int = 1 << 20,
    rowwise: bool = False,
    **paying: Unpack[Paying],
) -> Release:
    """Release an approximate minimizer over conv(S) of the mean loss, under (ε, δ)-DP.

    Use it to reproduce Algorithm 6: each step releases the index of a vertex, by the exact
    exponential mechanism on integer scores. For pure DP see `frank_wolfe_pure`.

    Parameters
    ----------
    features, labels, loss, domain, lipschitz, steps, rowwise
        As in `frank_wolfe_pure`: f, C = conv(S) and L₁ of the paper.
    epsilon : number
        ε of the release.
    log_delta, delta : number
        ln δ or δ of the release, one of the two.
    iterations : int, optional
        The number T of steps; `balanced_iterations` by default.
    smoothness : number, optional
        β of the loss in l1, for T and for the forecast only; by default L₁/‖C‖₁, which holds for a
        quadratic loss.
    composition : "best" or "advanced"
        The composition of T steps: as in the paper ("advanced"), or with at least ε/T each.

    Returns
    -------
    Release
        Its value is a point of the domain.

    Notes
    -----
    **Guarantee**: (ε, δ)-DP: T steps with ε₀ of `step_epsilon`, scores of sensitivity 2L₁‖C‖₁/n
    (theory A11, C10.1, R2). `proven` for a built-in loss; a function of
    batches is `asserted` to treat rows one by one.
    **Neighbors**: replace-one; n is public.
    **Error**: 2Γ/(T+2) + 2Δ ln|S|/ε₀ above the minimum, Γ = 4β‖C‖₁² and Δ = 2L₁‖C‖₁/n, for
    convex losses, up to clipping.

    Examples
    --------
    >>> from zerodelta.spaces import Ball
    >>> import numpy as np
    >>> x = np.tile([0.5, -2.0], (20_000, 1))  # its nearest point of the l1 ball is (0, -1)
    >>> release = approximate_frank_wolfe(
    ...     x, loss=lambda theta, rows: theta - rows, domain=Ball(2, 1, norm=1), lipschitz=3,
    ...     epsilon=1, delta="1e-9", iterations=20)
    >>> release.value, release.certificate.claim.exact_epsilon
    (array([ 0., -1.]), Fraction(1, 1))

    """
    target = ApproxDP(epsilon, log_delta_from(delta, log_delta))

    def default_iterations(plan: VertexSteps) -> int:
        return balanced_iterations(
            rows=plan.source.rows,
            epsilon=target.exact_epsilon,
            log_delta=target.exact_log_delta,
            vertices=plan.polytope.size,
            smoothness=plan.smoothness(smoothness),
            length=plan.polytope.length,
            lipschitz=plan.lipschitz,
        )

    vertices = VertexSteps.plan(
        features,
        labels,
        loss=loss,
        domain=domain,
        lipschitz=lipschitz,
        iterations=default_iterations if iterations is None else iterations,
        steps=steps,
        rowwise=rowwise,
    )
    share = step_epsilon(
        epsilon=target.exact_epsilon,
        log_delta=target.exact_log_delta,
        iterations=vertices.iterations,
        composition=composition,
    )
    mechanism = vertices.exponential(share)
    plan = vertices.release_plan(
        mechanism,
        (),
        lambda rows, bits: vertices.iterate(vertices.run(mechanism, rows, bits)),
        claim=target,
        error=vertices.expected_error(mechanism, smoothness),
    )
    return run(plan, vertices.source)
