"""Algorithm 6 (`alg: ktz_fw`): approximate-DP Frank-Wolfe, T noisy choices of a vertex.

Theory A11 changes the sensitivity (twice the printed one, because a record is *replaced*) and the
noise (Gumbel instead of Laplace: then a step costs ε₀²/8 of zCDP, and nothing else is wrong).
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, Literal, TypeAlias

from zerodelta.errors import ParameterError
from zerodelta.exact.arb import ball, lower
from zerodelta.exact.bits import BitSource, SystemBits
from zerodelta.exact.rational import Rational, as_count, as_positive
from zerodelta.paper.frank_wolfe_steps import Descent, GradientFunction
from zerodelta.paper.polytopes import Domain
from zerodelta.privacy.calibration import calibrate
from zerodelta.privacy.claims import ApproxDP, PureDP
from zerodelta.privacy.composition import history
from zerodelta.privacy.issue import issue
from zerodelta.privacy.parameters import as_log_delta
from zerodelta.privacy.release import Release
from zerodelta.training.losses import Loss

__all__ = [
    "Composition",
    "approximate_frank_wolfe",
    "printed_noise_scale",
    "score_sensitivity",
    "step_epsilon",
]

Composition: TypeAlias = Literal["best", "advanced"]
"""How T steps add up: as in the paper, or at least ε/T each."""


def printed_noise_scale(
    *, lipschitz: Rational, length: Rational, iterations: int, epsilon: Rational,
    log_delta: float, rows: int,
) -> float:  # fmt: skip
    """Return L₁‖C‖₁ √(8T ln(1/δ))/(nε), as printed; for comparison, nothing here adds it.

    With it a step is (√2 ε/√(T ln(1/δ)))-DP, so the total is 2ε and not ε (theory A11).

    >>> round(printed_noise_scale(
    ...     lipschitz=1, length=1, iterations=10, epsilon=1, log_delta=-20.0, rows=1000), 4)
    0.04
    """
    size = as_positive(lipschitz, "lipschitz") * as_positive(length, "length")
    steps, count = as_count(iterations, "iterations", minimum=1), as_count(rows, "rows", minimum=1)
    spread = math.sqrt(8 * steps * -as_log_delta(log_delta))
    return float(size / (count * as_positive(epsilon, "epsilon"))) * spread


def score_sensitivity(*, lipschitz: Rational, length: Rational, rows: int) -> Fraction:
    """Return 2 L₁ ‖C‖₁/n: how far ⟨s, ∇L⟩ moves when one of n records is replaced.

    >>> score_sensitivity(lipschitz=1, length=2, rows=100)
    Fraction(1, 25)
    """
    size = as_positive(lipschitz, "lipschitz") * as_positive(length, "length")
    # theory A11: the paper has L₁ ‖C‖₁/n, which is the sensitivity of adding a record
    return 2 * size / as_count(rows, "rows", minimum=1)


def step_epsilon(
    *, epsilon: Rational, log_delta: float, iterations: int, composition: Composition = "best"
) -> Fraction:
    """Return ε₀ such that T exponential-mechanism steps of ε₀ are (ε, δ)-DP together.

    "advanced": ε₀ = √(8ρ/T), ρ the largest zCDP that gives (ε, δ): the paper's advanced
    composition without its constants. "best": at least ε/T, basic composition, which is more as
    soon as ln(1/δ) > 2T or so: always for the δ of Algorithm 7.

    >>> float(step_epsilon(epsilon=1, log_delta=-20.0, iterations=1000)) > 1 / 1000
    True
    >>> step_epsilon(epsilon=1, log_delta=-2000.0, iterations=10)
    Fraction(1, 10)
    """
    target, steps = as_positive(epsilon, "epsilon"), as_count(iterations, "iterations", minimum=1)
    if composition not in ("best", "advanced"):
        raise ParameterError(
            "composition", composition, expected='"best" or "advanced"', remedy="pass one of these"
        )
    goal = as_log_delta(log_delta)
    # theory A11: with Gumbel noise a step is ε₀²/8-zCDP; the printed scale spends ε + ε²/(4 ln 1/δ)
    rho = calibrate(epsilon=target, log_delta=goal).rho
    share = Fraction(lower(lambda: ball(8 * rho / steps).sqrt()))
    margin = Fraction(1, 10**12)  # the certificate searches the Rényi order on its own
    while history([(PureDP(share, bounded_range=True), steps)]).log_delta(target) > goal:
        share, margin = share * (1 - margin), 2 * margin
    return max(share, target / steps) if composition == "best" else share


def approximate_frank_wolfe(
    features: Any,
    labels: Any = None,
    *,
    loss: Loss | GradientFunction,
    domain: Domain,
    lipschitz: Rational,
    epsilon: Rational,
    log_delta: float,
    iterations: int,
    smoothness: Rational | None = None,
    composition: Composition = "best",
    steps: int = 1 << 20,
    rowwise: bool = False,
    bits: BitSource | None = None,
) -> Release:
    """Release an approximate minimizer over conv(S) of the mean loss (Algorithm 6).

    `loss` is a built-in loss, or a function gradient(theta, rows) that returns one gradient a row
    (the last column is the label, if any). Only *which* vertex is best leaves the data
    in each step, by the exact exponential mechanism on integer scores.

    **Neighbors**: replace-one; n is public.
    **Guarantee**: (ε, δ)-DP: T steps with ε₀ of `step_epsilon`, scores of sensitivity 2L₁‖C‖₁/n
    (theory A11, C10.1, R2). `proven` for a built-in loss; a function of
    batches is `asserted` to treat rows one by one.
    **Public**: n, the domain, `lipschitz`, T, `steps`. Longer gradients are clipped, a row on which
    the gradient fails counts as a zero gradient.
    **Error**: 2Γ/(T+2) + 2Δ ln|S|/ε₀ above the minimum, for convex losses, up to clipping.

    >>> from zerodelta.spaces import Ball
    >>> import numpy as np
    >>> x = np.tile([0.5, -1.0], (20_000, 1))
    >>> release = approximate_frank_wolfe(
    ...     x, loss=lambda theta, rows: theta - rows, domain=Ball(2, 1, norm=1), lipschitz=2,
    ...     epsilon=1, log_delta=-20.0, iterations=30)
    >>> bool(abs(release.value - [0.25, -0.75]).max() < 0.15), release.certificate.claim
    (True, ApproxDP(epsilon=1, log_delta=-20.0, neighbors=replace))
    """
    bits = SystemBits() if bits is None else bits
    descent = Descent.plan(
        features,
        labels,
        loss=loss,
        domain=domain,
        lipschitz=lipschitz,
        iterations=iterations,
        steps=steps,
        rowwise=rowwise,
    )
    share = step_epsilon(
        epsilon=epsilon, log_delta=log_delta, iterations=iterations, composition=composition
    )
    mechanism = descent.exponential(share)
    certificate = issue(
        claim=ApproxDP(epsilon, log_delta),
        steps=(descent.step(mechanism),),
        bits=bits,
        public=descent.public(),
        assumed=descent.assumed,
    )
    error = descent.error(mechanism, smoothness)
    value = descent.polytope.iterate(descent.run(mechanism, bits))
    return Release(value=value, certificate=certificate, error=error)
