"""Pure Frank-Wolfe without sketch, noise or LP (theory C2, C10.7): what replaces Algorithm 7.

The iterate is a function of the transcript (s_1, …, s_T) of chosen vertices. Either each choice is
pure (ε/T)-DP, or the whole transcript, one of |S|^T, is purified by uniform mixing (Theorem B1).
The second gives more per step only for fewer than 8 vertices (theory A11).
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from zerodelta.channels.finite_mix import FiniteMix
from zerodelta.data.arrays import ArraySource
from zerodelta.data.rows import Rows
from zerodelta.data.source import Source, protection_of
from zerodelta.errors import ParameterError, did_you_mean, is_name, require
from zerodelta.exact.arrays import Floats
from zerodelta.exact.bits import BitSource
from zerodelta.exact.rational import Rational, as_count, as_positive
from zerodelta.mechanisms.diagnostics import diagnosis
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.release import Release
from zerodelta.privacy.theorems.mixing import as_weight
from zerodelta.spaces import Finite
from zerodelta.spine.paying import Paying, debited
from zerodelta.spine.release_plan import ReleasePlan
from zerodelta.spine.run import Beside, aside, run
from zerodelta.training.frank_wolfe_steps import GradientFunction, VertexSteps, step_epsilon
from zerodelta.training.loss_functions import Loss
from zerodelta.training.polytopes import Domain, as_polytope, curvature

if TYPE_CHECKING:
    from typing_extensions import Unpack

Method: TypeAlias = Literal["auto", "composition", "transcript"]
_METHODS = ("auto", "composition", "transcript")

_ALMOST_CERTAIN = -0.01
"""Where mixing could take any δ, the steps still aim at an ln δ below 0."""


def best_iterations(
    *, rows: int, epsilon: Rational, smoothness: Rational, lipschitz: Rational, domain: Domain
) -> int:
    """Return T = √(Γ n ε/(2 L₁ ‖C‖₁ ln|S|)), at least 1: the two terms of the error are equal.

    >>> from zerodelta.spaces import Ball
    >>> ball = Ball(50, 1, norm=1)
    >>> best_iterations(rows=10**6, epsilon=1, smoothness=1, lipschitz=1, domain=ball)
    659
    """
    polytope = as_polytope(domain)
    gamma = curvature(smoothness=smoothness, length=polytope.length)
    gain = gamma * as_count(rows, "rows", minimum=1) * as_positive(epsilon, "epsilon")
    cost = 2 * as_positive(lipschitz, "lipschitz") * polytope.length
    return max(1, round(math.sqrt(gain / cost / math.log(max(2, polytope.size)))))


def transcript_step_epsilon(
    *, epsilon: Rational, vertices: int, iterations: int, mixing_weight: Rational
) -> Fraction:
    """Return ε₀ of T exponential-mechanism steps whose mixed transcript is pure ε-DP (B1).

    >>> weights = {"iterations": 400, "mixing_weight": "0.01", "epsilon": 1}
    >>> [round(float(400 * transcript_step_epsilon(vertices=v, **weights)), 1) for v in (2, 4, 8)]
    [1.7, 1.2, 1.0]
    """
    channel = _transcripts(vertices, iterations, mixing_weight)
    return step_epsilon(
        epsilon=epsilon,
        log_delta=min(channel.log_delta_required(epsilon), _ALMOST_CERTAIN),
        iterations=iterations,
        composition="advanced",
    )


@partial(debited, rows=("features", "labels"))
def frank_wolfe_pure(
    features: Any,
    labels: Any = None,
    *,
    loss: Loss | GradientFunction,
    domain: Domain,
    lipschitz: Rational,
    epsilon: Rational,
    iterations: int | None = None,
    smoothness: Rational | None = None,
    method: Method = "auto",
    mixing_weight: Rational = "0.01",
    steps: int = 1 << 20,
    path: Rational | None = None,
    rowwise: bool = False,
    diagnostics: Rational | Beside | None = None,
    bits: BitSource | None = None,
    **paying: Unpack[Paying],
) -> Release:
    """Release an approximate minimizer over conv(S) of the mean loss under pure DP.

    Use it for sparse solutions over an l1 ball, or over any polytope of few vertices.

    Parameters
    ----------
    features : array, list or Source
        One row for each example.
    labels : array or list, optional
        One label for each row; a function sees them as the last column.
    loss : Loss or callable
        A built-in loss (`zerodelta.losses`), or a function gradient(theta, rows) that returns one
        gradient for each row. A row on which it fails counts as a zero gradient.
    domain : Ball or array
        An l1 ball around 0, or the vertices S, one line each.
    lipschitz : number
        L₁, a bound on the entries of a gradient, to which larger ones are clipped.
    epsilon : number
        The pure ε of the release.
    iterations : int, optional
        The number T of steps; by default the best one, which needs `smoothness`.
    smoothness : number, optional
        Of the loss, for the best T and the forecast of the error.
    method : "composition", "transcript" or "auto"
        T choices by permute-and-flip, ε/T each; or T choices by the exponential mechanism with ε₀
        of `transcript_step_epsilon`, and a uniform transcript with probability `mixing_weight`; or
        the one with the larger ε per step, from public numbers.
    mixing_weight : number
        The probability of a uniform transcript.
    steps : int
        Gradients are quantized to integers of at most this size.
    path : number, optional
        For an l1 ball: steps from 0 that shrink linearly and add up to so many radii, instead of
        the paper's, whose last point jumps about as T grows.
    rowwise : bool
        Whether a function is called with one row at a time.
    diagnostics : number, optional
        The share of ε for `release.diagnostics`, of the columns of a data set.
    bits : BitSource, optional
        Replayed bits for tests; never for data.

    Returns
    -------
    Release
        Its value is a point of the domain.

    Notes
    -----
    **Guarantee**: pure ε-DP by basic composition (C2, C10.7), or by Theorem B1 with N = |S|^T.
    `proven` for a built-in loss, else `asserted`.
    **Neighbors**: replace-one; n is public.
    **Error**: 2Γ/(T+2) + 4 L₁ ‖C‖₁ T ln|S|/(n ε) above the minimum, for convex losses, up to
    clipping. With `path` no bound is known.

    Examples
    --------
    >>> from zerodelta.spaces import Ball
    >>> import numpy as np
    >>> x = np.tile([0.5, -1.0], (20_000, 1))
    >>> release = frank_wolfe_pure(
    ...     x, loss=lambda theta, rows: theta - rows, domain=Ball(2, 1, norm=1), lipschitz=2,
    ...     epsilon=1, smoothness=1, method="composition", iterations=30)
    >>> bool(abs(release.value - [0.25, -0.75]).max() < 0.15), release.certificate.claim
    (True, PureDP(epsilon=1, bounded_range=0, neighbors=replace))

    """
    if iterations is None:
        iterations = _best(features, domain, epsilon, smoothness, lipschitz)
    vertices = VertexSteps.plan(
        features,
        labels,
        loss=loss,
        domain=domain,
        lipschitz=lipschitz,
        iterations=iterations,
        steps=steps,
        path=path,
        rowwise=rowwise,
    )
    protection, size = protection_of(vertices.source), vertices.polytope.size
    beside = diagnosis(diagnostics, vertices.source)
    target = as_positive(epsilon, "epsilon") / protection.max_rows
    target *= 1 if beside is None else 1 - beside.share
    plain = target / vertices.iterations
    mixed = transcript_step_epsilon(
        epsilon=target, vertices=size, iterations=iterations, mixing_weight=mixing_weight
    )
    require(
        is_name(method, _METHODS),
        "method",
        method,
        expected='"auto", "composition" or "transcript"',
        remedy=did_you_mean(method, _METHODS, "pass one of these"),
    )
    by_transcript = method == "transcript" or (method == "auto" and mixed > plain)
    mechanism = vertices.exponential(mixed) if by_transcript else vertices.flip(plain)
    channel = _transcripts(size, iterations, mixing_weight)
    error = vertices.error(mechanism, smoothness)
    if by_transcript and isinstance(error, float):  # a uniform transcript may cost all of it
        error += channel.expected_error() * 2 * float(vertices.lipschitz * vertices.polytope.length)

    def answer(rows: Rows, bits: BitSource) -> Floats:
        chosen = vertices.run(mechanism, rows, bits)
        if by_transcript:
            chosen = _digits(channel.apply(_number(chosen, size), bits), size, len(chosen))
        return vertices.iterate(chosen)

    plan: ReleasePlan[Rows] = ReleasePlan(
        claim=PureDP(target),
        steps=(vertices.step(mechanism), *([channel.step()] if by_transcript else [])),
        answer=answer,
        error=error,
        seconds=vertices.seconds(),
        public=vertices.public(),
        assumed=vertices.assumed,
    )
    protecting, read = plan.protecting(protection), aside(beside, epsilon)
    return run(protecting, vertices.source, bits=bits, aside=read)


def _best(
    features: Any,
    domain: Domain,
    epsilon: Rational,
    smoothness: Rational | None,
    lipschitz: Rational,
) -> int:
    if smoothness is None:
        raise ParameterError(
            "iterations",
            expected="the number of steps, or smoothness",
            remedy="pass iterations=, or smoothness= of the loss in l1 for the best number",
        )
    source = features if isinstance(features, Source) else ArraySource(features)
    return best_iterations(
        rows=source.rows,
        epsilon=epsilon,
        smoothness=smoothness,
        lipschitz=lipschitz,
        domain=domain,
    )


def _transcripts(vertices: int, iterations: int, mixing_weight: Rational) -> FiniteMix:
    """Return uniform mixing over all |S|^T transcripts, numbered in base |S|."""
    count = as_count(iterations, "iterations", minimum=1)
    size = as_count(vertices, "vertices", minimum=1) ** count
    return FiniteMix(space=Finite(size), mixing_weight=as_weight(mixing_weight))


def _number(chosen: list[int], base: int) -> int:
    """Return the transcript as one integer, the first choice as its highest digit."""
    number = 0
    for digit in chosen:
        number = number * base + digit
    return number


def _digits(number: int, base: int, length: int) -> list[int]:
    digits = []
    for _ in range(length):
        number, digit = divmod(number, base)
        digits.append(digit)
    return digits[::-1]
