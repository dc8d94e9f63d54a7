"""Run pure Frank-Wolfe as T private choices of a vertex on exact integer scores (C2, C10.7).

The iterate is a function of the transcript (s_1, …, s_T) of chosen vertices; no sketch, noise or
linear program is needed. Either each choice is pure (ε/T)-DP, or the transcript, one of |S|^T, is
purified by uniform mixing (Theorem B1). The second gives a larger ε per step only for fewer than 8
vertices (theory A11).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from zerodelta.channels.mixes import FiniteMix
from zerodelta.data.arrays import ArraySource
from zerodelta.data.rows import Rows
from zerodelta.data.rowwise import Block
from zerodelta.data.source import Source, protection_of
from zerodelta.errors import ParameterError, did_you_mean, is_name, require
from zerodelta.exact.arrays import Floats
from zerodelta.exact.bits import BitSource
from zerodelta.exact.logs import ball, lower
from zerodelta.exact.rational import Rational, as_count, as_positive
from zerodelta.mechanisms.diagnostics import as_diagnosis
from zerodelta.mechanisms.selection import ExponentialMechanism, PermuteAndFlip, Selection
from zerodelta.privacy.claims import Claim, PureDP, calibrate
from zerodelta.privacy.composition import transcript_claim
from zerodelta.privacy.parameters import as_log_delta
from zerodelta.privacy.release import Release
from zerodelta.privacy.steps import Status, Step
from zerodelta.privacy.theorems.mixing import as_weight
from zerodelta.spaces import Finite
from zerodelta.spine.plan import ReleasePlan, row_count_sentence
from zerodelta.spine.run import Diagnosis, plan_diagnosis, run
from zerodelta.spine.verbs import Paying, debited
from zerodelta.training.gradient_sums import GRADIENT
from zerodelta.training.gradients import GradientFunction, try_gradient
from zerodelta.training.losses import Hinge, Huber, Logistic, Loss, Squared
from zerodelta.training.polytopes import (
    Domain,
    L1Ball,
    Polytope,
    as_polytope,
    curvature,
    optimization_error,
    shrinking_parts,
)
from zerodelta.value import value

if TYPE_CHECKING:
    from typing_extensions import Unpack


# -- T private Frank-Wolfe steps on exact integer scores, shared with Algorithms 6 and 7 ----------
# A step computes one integer sum of the rows, and only the chosen vertex leaves it (theory C2,
# A11).

_ROW_BY_ROW = (Hinge, Huber, Logistic, Squared)
"""The library's losses are elementwise, so they treat rows one by one; a subclass may not."""


Composition: TypeAlias = Literal["best", "advanced"]
"""The composition of T steps: "advanced" as in the paper, or "best", at least ε/T a step."""


@value
class VertexSteps:
    """The public plan of T steps, which `run` takes on the opened rows.

    Each example's gradient is clipped and quantized to integers of magnitude at most `steps`, so a
    score has sensitivity 2 · steps for any gradient function.
    """

    source: Source
    gradient: GradientFunction
    assumed: tuple[str, ...]
    """Premises that the caller asserts, for a gradient function of the caller's."""
    polytope: Polytope
    lipschitz: Fraction
    iterations: int
    steps: int
    rowwise: bool
    path: Fraction | None = None
    """The total length of all steps in radii; None for the paper's steps of 2/(t + 2).

    With `path` steps start from 0 and shrink linearly. The paper's first step has the length of the
    radius and its last still 2/(T + 1) of it, so that its last iterate changes abruptly with T. The
    last steps of a path have length about 2/T², and the result depends on T smoothly
    (`bench/defaults_classifiers.py`).
    """

    @staticmethod
    def plan(
        features: Any,
        labels: Any,
        *,
        loss: Loss | GradientFunction,
        domain: Domain,
        lipschitz: Rational,
        iterations: int | Callable[[VertexSteps], int],
        steps: int,
        rowwise: bool,
        path: Rational | None = None,
    ) -> VertexSteps:
        """Check the public parameters without reading a row, and return the plan.

        `iterations` may be a function that returns the default for a plan of one step.
        """
        source, polytope = _source(features, labels), as_polytope(domain)
        polytope.lattice(lipschitz, steps)  # refuses malformed numbers
        gradient = _gradient(loss, polytope, len(source.columns))
        require(
            path is None or isinstance(polytope, L1Ball),
            "path",
            path,
            expected="None for a domain given by its vertices",
            remedy="omit path, or pass Ball(dimension, radius, norm=1) as the domain",
        )
        callers_function = type(loss) not in _ROW_BY_ROW
        count = 1 if callable(iterations) else as_count(iterations, "iterations", minimum=1)
        plan = VertexSteps(
            source=source,
            gradient=gradient,
            assumed=(GRADIENT,) if callers_function else (),
            polytope=polytope,
            lipschitz=as_positive(lipschitz, "lipschitz"),
            iterations=count,
            steps=steps,
            rowwise=bool(rowwise),
            path=None if path is None else as_positive(path, "path"),
        )
        return replace(plan, iterations=iterations(plan)) if callable(iterations) else plan

    @property
    def sensitivity(self) -> int:
        """2 · steps, in units of the integer score (theory A11, C2)."""
        return 2 * self.steps

    def exponential(self, epsilon: Rational) -> ExponentialMechanism:
        """Return the exponential mechanism of one step, for steps that compose as zCDP."""
        return ExponentialMechanism.for_epsilon(epsilon=epsilon, sensitivity=self.sensitivity)

    def flip(self, epsilon: Rational) -> PermuteAndFlip:
        """Return permute-and-flip of one step: better, but for basic composition only (R2)."""
        return PermuteAndFlip.for_epsilon(epsilon=epsilon, sensitivity=self.sensitivity)

    def step(self, mechanism: Selection) -> Step:
        """Return the certificate step of all T choices."""
        status = Status.ASSERTED if self.assumed else Status.PROVEN
        return replace(mechanism.step().times(self.iterations), status=status)

    def run(self, mechanism: Selection, rows: Rows, bits: BitSource) -> list[int]:
        """Return the transcript: the index of the vertex chosen in each step."""
        lattice = self.polytope.lattice(self.lipschitz, self.steps)
        chosen: list[int] = []
        theta = np.zeros(self.polytope.dimension)
        for step in range(self.iterations):
            sums = rows.sum(self._summand(theta), lattice, rowwise=self.rowwise)
            chosen.append(mechanism.select(self.polytope.scores(sums), bits))
            theta = self._moved(theta, step, chosen[-1])
        return chosen

    def iterate(self, chosen: list[int]) -> Floats:
        """Return θ_T, computed from the choices alone."""
        theta = np.zeros(self.polytope.dimension)
        for step, index in enumerate(chosen):
            theta = self._moved(theta, step, index)
        return theta

    def _moved(self, theta: Floats, step: int, index: int) -> Floats:
        """Return the iterate after a step toward the vertex `index`."""
        if self.path is None or not isinstance(self.polytope, L1Ball):
            return self.polytope.toward(theta, step, index)
        part = shrinking_parts(self.iterations, self.path)[step]
        return self.polytope.along(theta, part, index)

    def _summand(self, theta: Floats) -> Callable[[Block], Floats]:
        """Return the function of a block of rows that is summed at the iterate θ.

        A gradient of a wrong shape or type makes zero rows, as an exception does. An error message
        could depend on θ, an internal answer.
        """

        def values_of(block: Block) -> Floats:
            """Return each row's summands, from its gradient; a gradient of wrong shape raises."""
            values = np.asarray(self.gradient(theta.copy(), block))
            if not _fits(values, len(block), self.polytope.dimension):
                raise ValueError("not one gradient a row")  # caught: the rows become zero rows
            return self.polytope.row(values.astype(np.float64))

        return values_of

    def error(self, mechanism: Selection, smoothness: Rational | None) -> float | str:
        """Return 2Γ/(T + 2) plus the expected gap of one noisy choice, or what is known of it.

        Theory C10.7 bounds the error of the paper's steps; for a `path` no bound is known.
        """
        if self.path is not None:
            gap = self._gap(mechanism)
            return f"each choice is at most {gap:.4g} below the best; no bound on all of them"
        return self.expected_error(mechanism, smoothness)

    def expected_error(self, mechanism: Selection, smoothness: Rational | None) -> float:
        """Return the bound on the error of the paper's steps, at most 2 L₁ ‖C‖₁."""
        beta = self.smoothness(smoothness)
        gamma = curvature(smoothness=beta, length=self.polytope.length)
        bound = optimization_error(curvature=gamma, iterations=self.iterations)
        return min(bound + self._gap(mechanism), 2 * float(self.lipschitz * self.polytope.length))

    def smoothness(self, beta: Rational | None) -> Fraction:
        """Return the smoothness β in l1; the default is L₁/‖C‖₁.

        That bounds β of a quadratic loss with gradients of at most L₁ on the ball: Hθ is half the
        difference of its gradients at θ and -θ, so ‖Hθ‖∞ <= L₁ for ‖θ‖₁ = ‖C‖₁.
        """
        if beta is None:
            return self.lipschitz / self.polytope.length
        return as_positive(beta, "smoothness")

    def seconds(self) -> float:
        """Return a forecast of the seconds that T steps take on one core.

        The constants were fitted by `bench/paper.py`.
        """
        entries = self.source.rows * self.polytope.dimension
        return self.iterations * (5e-4 + 2.5e-8 * entries)

    def _gap(self, mechanism: Selection) -> float:
        """Return the expected gap between the best and the chosen vertex, in units of the loss."""
        unit = self.lipschitz * self.polytope.length / (self.steps * self.source.rows)
        return float(unit) * mechanism.error(self.polytope.size)

    def release_plan(
        self,
        mechanism: Selection,
        channel: tuple[Step, ...],
        answer: Callable[[Rows, BitSource], Floats],
        *,
        claim: Claim,
        error: float | str,
        seconds: float = 0.0,
        public: tuple[str, ...] = (),
    ) -> ReleasePlan[Rows]:
        """Return the plan of T choices by a mechanism and, after them, a channel.

        `seconds` and `public` add to those of the T steps.
        """
        return ReleasePlan(
            claim=claim,
            steps=(self.step(mechanism), *channel),
            answer=answer,
            error=error,
            seconds=self.seconds() + seconds,
            public=(*self.public(), *public),
            assumed=self.assumed,
        )

    def public(self) -> tuple[str, ...]:
        """Return the lines that the certificate lists as public."""
        return (
            row_count_sentence(self.source.rows, public=not self.source.drops_rows),
            f"{self.polytope.size} vertices in {self.polytope.dimension} dimensions, l1 radius "
            f"{self.polytope.length}",
            f"gradients clipped to {self.lipschitz} in linf, {self.steps} steps",
            f"T = {self.iterations}",
            *(() if self.path is None else (f"steps that add up to {self.path} radii",)),
        )


def _source(features: Any, labels: Any) -> Source:
    """Return the rows, with the labels as their last column if there are any."""
    source = features if isinstance(features, Source) else ArraySource(features)
    as_count(source.rows, "number of rows", minimum=1)  # public under replace-one
    if labels is None:
        return source
    if type(source) is not ArraySource:
        raise ParameterError(
            "labels",
            type(labels),
            expected="None where features are a Source",
            remedy="make the label the source's last column",
        )
    return ArraySource.with_labels(features, labels)


def _gradient(loss: Loss | GradientFunction, polytope: Polytope, columns: int) -> GradientFunction:
    """Return gradient(theta, rows); refuse a loss or a function that does not fit the domain."""
    if isinstance(loss, Loss):
        require(
            columns == polytope.dimension + 1,
            "columns",
            columns,
            expected=f"{polytope.dimension} features and, last, the label",
            remedy="pass labels=, or append them to the rows",
        )
        return lambda theta, rows: loss.gradients(theta, rows[:, :-1], rows[:, -1])
    require(
        callable(loss),
        "loss",
        loss,
        expected="a loss, or a function gradient(theta, rows)",
        remedy="pass Logistic(), Squared(label_bound=1), … or a function",
    )
    names = [str(i) for i in range(columns)]
    try_gradient(loss, np.zeros(polytope.dimension), names, polytope.dimension)
    return loss


def _fits(values: Any, rows: int, dimension: int) -> bool:
    """Return whether `values` are numbers with one gradient for each row."""
    return bool(values.dtype.kind in "biuf" and values.shape == (rows, dimension))


def step_epsilon(
    *, epsilon: Rational, log_delta: float, iterations: int, composition: Composition = "best"
) -> Fraction:
    """Return ε₀ such that T exponential-mechanism steps of ε₀ are (ε, δ)-DP together.

    "advanced": ε₀ = √(8ρ/T), ρ the largest zCDP that gives (ε, δ): the paper's advanced
    composition without its constants. "best": the larger of that and ε/T, basic composition, which
    wins from about ln(1/δ) > 2T on: always for the δ of Algorithm 7.

    >>> float(step_epsilon(epsilon=1, log_delta=-20.0, iterations=1000)) > 1 / 1000
    True
    >>> step_epsilon(epsilon=1, log_delta=-2000.0, iterations=10)
    Fraction(1, 10)
    """
    target, steps = as_positive(epsilon, "epsilon"), as_count(iterations, "iterations", minimum=1)
    require(
        composition in ("best", "advanced"),
        "composition",
        composition,
        expected='"best" or "advanced"',
        remedy="pass one of these",
    )
    goal = as_log_delta(log_delta)
    # theory A11: with Gumbel noise a step is ε₀²/8-zCDP; the printed scale spends ε + ε²/(4 ln 1/δ)
    rho = calibrate(epsilon=target, log_delta=goal).rho
    share = Fraction(lower(lambda: ball(8 * rho / steps).sqrt()))
    margin = Fraction(1, 10**12)  # the certificate's search for the Rényi order may end elsewhere
    while transcript_claim([(PureDP(share, bounded_range=True), steps)]).log_delta(target) > goal:
        share, margin = share * (1 - margin), 2 * margin
    return max(share, target / steps) if composition == "best" else share


Method: TypeAlias = Literal["auto", "composition", "transcript"]
_METHODS = ("auto", "composition", "transcript")

_LARGEST_LOG_DELTA = -0.01
"""The ln δ that steps aim at where mixing allows any δ; it must be below 0."""


def best_iterations(
    *, rows: int, epsilon: Rational, smoothness: Rational, lipschitz: Rational, domain: Domain
) -> int:
    """Return T = √(Γ n ε/(2 L₁ ‖C‖₁ ln|S|)), at least 1, which makes the error's terms equal.

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
    """Return the ε₀ of T exponential-mechanism steps whose mixed transcript is pure ε-DP (B1).

    >>> weights = {"iterations": 400, "mixing_weight": "0.01", "epsilon": 1}
    >>> [round(float(400 * transcript_step_epsilon(vertices=v, **weights)), 1) for v in (2, 4, 8)]
    [1.7, 1.2, 1.0]
    """
    channel = _transcripts(vertices, iterations, mixing_weight)
    return step_epsilon(
        epsilon=epsilon,
        log_delta=min(channel.log_delta_required(epsilon), _LARGEST_LOG_DELTA),
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
    diagnostics: Rational | Diagnosis | None = None,
    **paying: Unpack[Paying],
) -> Release:
    """Release a minimizer of the mean loss over a polytope, by T private choices of a vertex.

    Use it for sparse solutions over an l1 ball, or over any polytope with few vertices.

    Parameters
    ----------
    features : array, list or Source
        One row for each example.
    labels : array or list, optional
        One label for each row; a function sees them as the last column.
    loss : Loss or callable
        A built-in loss (`zerodelta.models`), or a function gradient(theta, rows) that returns one
        gradient for each row. A row on which it fails counts as a zero gradient.
    domain : Ball or array
        An l1 ball around 0, or an array with one vertex of S in each row.
    lipschitz : number
        L₁, the bound to which the entries of a gradient are clipped.
    iterations : int, optional
        The number T of steps; by default the best one, which needs `smoothness`.
    smoothness : number, optional
        The smoothness β of the loss in l1, for the best T and the forecast of the error.
    method : "composition", "transcript" or "auto"
        T choices by permute-and-flip, ε/T each; or T choices by the exponential mechanism with ε₀
        of `transcript_step_epsilon`, and a uniform transcript with probability `mixing_weight`; or
        the one with the larger ε per step, from public numbers.
    mixing_weight : number
        The probability of a uniform transcript.
    steps : int
        Gradients are quantized to integers of at most this size.
    path : number, optional
        For an l1 ball: take steps from 0 that shrink linearly and add up to `path` radii. The
        paper's steps, the default, end at a point that changes abruptly with T.
    rowwise : bool
        Whether a function is called with one row at a time.
    diagnostics : number, optional
        The share of ε for `release.diagnostics`, of the columns of a data set.

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
        require(
            smoothness is not None,
            "iterations",
            None,
            expected="the number of steps, or smoothness",
            remedy="pass iterations=, or smoothness= of the loss in l1 for the best number",
        )

    def default_iterations(plan: VertexSteps) -> int:
        return best_iterations(
            rows=plan.source.rows,
            epsilon=epsilon,
            smoothness=plan.smoothness(smoothness),
            lipschitz=lipschitz,
            domain=domain,
        )

    vertices = VertexSteps.plan(
        features,
        labels,
        loss=loss,
        domain=domain,
        lipschitz=lipschitz,
        iterations=default_iterations if iterations is None else iterations,
        steps=steps,
        path=path,
        rowwise=rowwise,
    )
    protection, size = protection_of(vertices.source), vertices.polytope.size
    diagnosis = as_diagnosis(diagnostics, vertices.source)
    target = as_positive(epsilon, "epsilon") / protection.max_rows
    target *= 1 if diagnosis is None else 1 - diagnosis.share
    composed = target / vertices.iterations  # ε of a step, by either method
    mixed = transcript_step_epsilon(
        epsilon=target, vertices=size, iterations=vertices.iterations, mixing_weight=mixing_weight
    )
    require(
        is_name(method, _METHODS),
        "method",
        method,
        expected='"auto", "composition" or "transcript"',
        remedy=did_you_mean(method, _METHODS, "pass one of these"),
    )
    by_transcript = method == "transcript" or (method == "auto" and mixed > composed)
    mechanism = vertices.exponential(mixed) if by_transcript else vertices.flip(composed)
    channel = _transcripts(size, vertices.iterations, mixing_weight)
    error = vertices.error(mechanism, smoothness)
    if by_transcript and isinstance(error, float):  # a uniform transcript learns nothing
        error += channel.expected_error() * 2 * float(vertices.lipschitz * vertices.polytope.length)

    def answer(rows: Rows, bits: BitSource) -> Floats:
        """Return the last iterate of the vertices chosen, after the channel if there is one."""
        chosen = vertices.run(mechanism, rows, bits)
        if by_transcript:
            chosen = _digits(channel.apply(_number(chosen, size), bits), size, len(chosen))
        return vertices.iterate(chosen)

    plan = vertices.release_plan(
        mechanism,
        (channel.step(),) if by_transcript else (),
        answer,
        claim=PureDP(target),
        error=error,
    )
    planned_diagnosis = plan_diagnosis(diagnosis, epsilon)
    return run(plan.protecting(protection), vertices.source, diagnosis=planned_diagnosis)


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
    """Return the transcript of an integer: the inverse of `_number`."""
    digits = []
    for _ in range(length):
        number, digit = divmod(number, base)
        digits.append(digit)
    return digits[::-1]
