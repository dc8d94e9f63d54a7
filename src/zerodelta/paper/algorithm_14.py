"""Algorithm 14 (`alg:MWEM`, Lemma `lem: pri_util_mwem`): multiplicative weights, approximate DP.

Each round chooses a badly answered query by the exponential mechanism, measures it with noise and
reweights a distribution over the universe. Scores and measurements are integers in rows; the
distribution is a function of hidden answers only, so it may be computed in floats.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from zerodelta.data.source import Source
from zerodelta.errors import ParameterError
from zerodelta.exact.bits import BitSource, SystemBits
from zerodelta.exact.rational import Rational, as_count, as_positive
from zerodelta.mechanisms.gaussian import RoundedGaussian
from zerodelta.mechanisms.laplace import RoundedLaplace
from zerodelta.mechanisms.selection import ExponentialMechanism, Selection
from zerodelta.paper.workloads import (
    Workload,
    histogram,
    source_of,
    workload_assumptions,
    workload_status,
)
from zerodelta.privacy.claims import ZCDP, ApproxDP, Claim
from zerodelta.privacy.issue import issue
from zerodelta.privacy.parameters import as_log_delta
from zerodelta.privacy.release import Release
from zerodelta.privacy.step import Step, weakest

__all__ = [
    "Measurement",
    "approximate_mwem",
    "counted",
    "expected_error",
    "multiplicative_weights",
    "mwem",
    "paper_rho",
    "paper_round_epsilon",
    "paper_rounds",
    "run",
]

Measurement: TypeAlias = RoundedLaplace | RoundedGaussian
Distribution: TypeAlias = npt.NDArray[np.float64]


def paper_rho(*, epsilon: Rational, log_delta: float) -> Fraction:
    """Return ρ = ε²/(16 ln(1/δ)), rounded down: ρ + 2√(ρ ln(1/δ)) <= ε, if ε <= 8 ln(1/δ).

    >>> float(paper_rho(epsilon=1, log_delta=-100.0))
    0.000625
    """
    t, ell = as_positive(epsilon, "epsilon"), -Fraction(as_log_delta(log_delta))
    # theory A10: the conversion needs ε <= 8 ln(1/δ), which the paper does not say
    if t > 8 * ell:
        raise ParameterError(
            "epsilon",
            epsilon,
            expected=f"at most 8 ln(1/δ) = {float(8 * ell):g}",
            remedy="choose a smaller epsilon or a smaller log_delta",
        )
    return t * t / (16 * ell)


def paper_round_epsilon(*, rho: Rational, rounds: int) -> Fraction:
    """Return ε_0 = √(ρ/T), rounded down: each mechanism of each round.

    >>> paper_round_epsilon(rho=1, rounds=4)
    Fraction(1, 2)
    """
    share = as_positive(rho, "rho") / as_count(rounds, "rounds", minimum=1)
    root = math.sqrt(share)
    while Fraction(root) ** 2 > share:
        root = math.nextafter(root, 0.0)
    return Fraction(root)


def paper_rounds(
    *, rows: int, workload: Workload, epsilon: Rational, log_delta: float, failure: float
) -> int:
    """Return T = √(ln|X|) n ε / (√ln(1/δ) · ln(K/β)), at least 1, for a failure probability β.

    theory A10: T is an integer, and ln δ is chosen before it (for Algorithm 16: m, then ln δ, then
    T). The paper's d is log2|X|.
    """
    n, ell = as_count(rows, "rows", minimum=1), -as_log_delta(log_delta)
    if not 0 < failure < 1 or ell <= 0:
        raise ParameterError(
            "failure, log_delta",
            (failure, log_delta),
            expected="0 < failure < 1 and log_delta < 0",
            remedy="pass for example failure=0.01, log_delta=-30.0",
        )
    dimension = math.log2(workload.universe)
    scaled = math.sqrt(dimension / ell) * n * float(as_positive(epsilon, "epsilon"))
    return max(1, round(scaled / math.log(workload.queries / failure)))


def expected_error(
    *, rows: int, workload: Workload, rounds: int, select: Selection, measure: Measurement
) -> float:
    """Return a bound on E max_q |q(D)/n - q(released)| / bound, from public numbers.

    A round in which the chosen query is off by s (a fraction of n) and the measurement by e lowers
    the divergence from the data by at least (s² - e²)/4, and that starts at most at ln|X|. So with
    T rounds and the last, unmeasured distribution, √(4 ln|X|/(T+1) + E e²), plus the gap of
    the choice: scale · ln K rows, and 1 for rounding the scores. Above 1 it says nothing.
    """
    n, mass = rows, rounds / (rounds + 1)
    if isinstance(measure, RoundedLaplace):
        deviation = math.sqrt(2) * float(measure.scale)
    else:
        deviation = math.sqrt(measure.variance)
    unit = n * workload.bound
    drift = 4 * math.log(workload.universe) / (rounds + 1)
    noise = mass * ((deviation + 1 / 2) / unit) ** 2  # rounding moves it by 1/2 at most
    gap = mass * (select.error(workload.queries) + 1) / unit
    return math.sqrt(drift + noise) + gap


def multiplicative_weights(
    counts: npt.NDArray[np.int64],
    workload: Workload,
    *,
    rounds: int,
    choose: Callable[[npt.NDArray[np.int64]], int],
    measure: Callable[[int], int],
) -> Distribution:
    """Return the average of the distributions p_0..p_T; hidden: it is as private as its answers.

    `choose` gets the integer scores of all queries, `measure` the exact total of the chosen one:
    these are the only places where data enters.
    """
    n = int(counts.sum())
    truth, size, bound = workload.totals(counts), workload.universe, workload.bound
    weights = np.full(size, 1.0 / size)
    average: Distribution = weights.copy()
    for _ in range(rounds):
        synthetic = workload.totals(weights) * n
        # |round(n q(p)) - q(D)|: the first part is not data, so a row moves it by `bound` at most
        rounded = np.clip(np.rint(synthetic), 0, n * bound).astype(np.int64)
        query = choose(np.abs(rounded - truth))
        # theory A10: m_t = q_t(D) + noise (the paper writes <q_t, X>). It is clipped to where the
        # truth lies: post-processing, and the update stays within e^(±1/2) whatever the noise.
        answer = min(max(measure(int(truth[query])), 0), n * bound)
        # theory A10: the update is p_t(x) ∝ p_{t-1}(x) exp(q_t(x) (m_t - q_t(p_{t-1})) / 2)
        shortfall = (answer - float(synthetic[query])) / (n * bound)
        workload.reweight(weights, query, shortfall / 2)
        weights /= _total(weights)
        average += weights
    # The paper averages p_0..p_{T-1}, which no answer of round T reaches. Nothing paid for is
    # thrown away here: p_0..p_T, the paper's output for T+1 rounds at the price of T.
    average /= rounds + 1
    return average


def _total(weights: Distribution) -> float:
    """Add up in one fixed order, so that equal weights have equal sums."""
    while len(weights) > 1:
        if len(weights) % 2:
            weights = np.append(weights, 0.0)
        weights = weights[0::2] + weights[1::2]
    return float(weights[0])


def run(
    counts: npt.NDArray[np.int64],
    workload: Workload,
    *,
    rounds: int,
    select: Selection,
    measure: Measurement,
    bits: BitSource,
) -> Distribution:
    """Run the rounds with these mechanisms."""
    return multiplicative_weights(
        counts,
        workload,
        rounds=rounds,
        choose=lambda scores: select.select(scores, bits),
        measure=lambda total: int(measure.apply(np.array([total]), bits)[0]),
    )


def counted(step: Step, count: int, workload: Workload, source: Source) -> Step:
    """Return the step, taken `count` times; it stands on the caller's word if the workload does."""
    return Step(
        theorem=step.theorem,
        numbers={**step.numbers, "count": count},
        status=weakest([step.status, workload_status(workload, source)]),
        neighbors=step.neighbors,
    )


def mwem(
    rows: Any,
    *,
    workload: Workload,
    rounds: int,
    rho: Rational,
    bits: BitSource | None = None,
) -> Release:
    """Release a distribution over the universe whose answers resemble the data's (zCDP).

    Its value is the paper's D_out = n · average: weights that add up to n.

    **Neighbors**: replace-one; n is public.
    **Guarantee**: ρ-zCDP: each round an exponential mechanism (ε_0²/8) and rounded Laplace noise
    (at most ε_0²/2) with ε_0 = √(ρ/T) (Lemma `lem: pri_util_mwem`, theory A10, R2).
    **Public**: the workload, `rounds`, `rho`, n.
    **Error**: `expected_error`, the largest error of an answer as a fraction of n.

    >>> from zerodelta.paper.workloads import Marginals
    >>> bits = np.array([[0, 1], [1, 1], [1, 1]] * 100)
    >>> release = mwem(bits, workload=Marginals(dimension=2), rounds=4, rho="1/10")
    >>> release.value.shape, release.certificate.claim
    ((4,), ZCDP(rho=1/10, neighbors=replace))
    """
    claim = ZCDP(as_positive(rho, "rho"))
    return _release(rows, workload, rounds, claim.rho, claim, bits)


def approximate_mwem(
    rows: Any,
    *,
    workload: Workload,
    rounds: int,
    epsilon: Rational,
    log_delta: float,
    bits: BitSource | None = None,
) -> Release:
    """Release what `mwem` does with ρ = ε²/(16 ln(1/δ)): (ε, δ)-DP.

    **Neighbors**: replace-one; n is public.
    **Guarantee**: (ε, δ)-DP if ε <= 8 ln(1/δ) (Lemma `lem: pri_util_mwem`, theory A10).
    **Public**: the workload, `rounds`, `epsilon`, `log_delta`, n.
    **Error**: `expected_error`, the largest error of an answer as a fraction of n.

    >>> from zerodelta.paper.workloads import Marginals
    >>> release = approximate_mwem(
    ...     np.ones((50, 3)), workload=Marginals(dimension=3), rounds=2, epsilon=1, log_delta=-20.0
    ... )
    >>> release.certificate.claim
    ApproxDP(epsilon=1, log_delta=-20.0, neighbors=replace)
    """
    rho = paper_rho(epsilon=epsilon, log_delta=log_delta)
    return _release(rows, workload, rounds, rho, ApproxDP(epsilon, log_delta), bits)


def _release(
    rows: Any, workload: Workload, rounds: int, rho: Fraction, claim: Claim, bits: BitSource | None
) -> Release:
    source = SystemBits() if bits is None else bits
    data = source_of(rows, workload)
    share = paper_round_epsilon(rho=rho, rounds=rounds)
    # theory A10: q is drawn with probability ∝ exp(n ε_0 score/2), because a replaced row moves
    # scores both ways; leaving out the 2 breaks the claim.
    select = ExponentialMechanism.for_epsilon(epsilon=share, sensitivity=workload.bound)
    measure = RoundedLaplace.for_epsilon(epsilon=share, sensitivity=workload.bound)
    certificate = issue(
        claim=claim,
        steps=tuple(
            counted(step, rounds, workload, data) for step in (select.step(), measure.step())
        ),
        bits=source,
        public=("the workload", "the number of rounds", "the number of rows"),
        assumed=workload_assumptions(workload, data),
    )
    counts, n = histogram(data, workload), data.rows
    average = run(counts, workload, rounds=rounds, select=select, measure=measure, bits=source)
    error = expected_error(rows=n, workload=workload, rounds=rounds, select=select, measure=measure)
    return Release(value=average * n, certificate=certificate, error=error)
