"""Run MWEM, sample synthetic rows from it, and purify them: Algorithms 14 to 16 (`alg: pure_pmw`).

Two channels remove δ from a sample of m synthetic rows: mixing over multisets (theory B1, C7) and
the paper's binary embedding (Algorithm 2). Both are for comparison: `pure_mwem` has a smaller error
*bound* in every configuration tried (theory A10); measured errors of multisets are close to it.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

from zerodelta.errors import require
from zerodelta.exact.rational import Rational, as_count, as_positive
from zerodelta.marginals.workloads import Workload, source_of
from zerodelta.mechanisms.selection import ExponentialMechanism
from zerodelta.mechanisms.sum_noise import RoundedLaplace
from zerodelta.paper.algorithm_01_02 import choice_channel_for, code_length, theorem_3_log_delta
from zerodelta.paper.multiplicative_weights import (
    Rounds,
    SamplePlan,
    plan_multiset,
    pure_mwem,
    round_epsilon,
)
from zerodelta.privacy.claims import ZCDP, ApproxDP, Claim
from zerodelta.privacy.parameters import as_log_delta, log_delta_from, split_epsilon
from zerodelta.privacy.release import Release
from zerodelta.spaces import Finite
from zerodelta.spine.run import run
from zerodelta.spine.verbs import Paying, debited

if TYPE_CHECKING:
    from typing_extensions import Unpack


# -- Algorithm 14 (`alg:MWEM`, Lemma `lem: pri_util_mwem`): MWEM under approximate DP -------------
# The rounds are those of `multiplicative_weights`, with the paper's choices of ρ, T and ε_0.


def paper_rho(*, epsilon: Rational, log_delta: float) -> Fraction:
    """Return ρ = ε²/(16 ln(1/δ)), rounded down: ρ + 2√(ρ ln(1/δ)) <= ε, if ε <= 8 ln(1/δ).

    >>> float(paper_rho(epsilon=1, log_delta=-100.0))
    0.000625
    """
    t, ell = as_positive(epsilon, "epsilon"), -Fraction(as_log_delta(log_delta))
    # theory A10: the conversion needs ε <= 8 ln(1/δ), which the paper does not state
    require(
        t <= 8 * ell,
        "epsilon",
        epsilon,
        expected=f"at most 8 ln(1/δ) = {float(8 * ell):g}",
        remedy="choose a smaller epsilon or a smaller log_delta",
    )
    return t * t / (16 * ell)


def paper_rounds(
    *, rows: int, workload: Workload, epsilon: Rational, log_delta: float, failure: float
) -> int:
    """Return T = √d n ε / (√ln(1/δ) · ln(K/β)), at least 1, for a failure probability β.

    d = log2|X| as in the paper, K the number of queries. theory A10: T is an integer, and ln δ is
    chosen before it (for Algorithm 16: m, then ln δ, then T).

    >>> from zerodelta.queries import Marginals
    >>> people = Marginals(dimension=10)
    >>> paper_rounds(rows=10_000, workload=people, epsilon=1, log_delta=-100.0, failure=0.01)
    323
    """
    n, ell = as_count(rows, "rows", minimum=1), -as_log_delta(log_delta)
    require(
        0 < failure < 1 and ell > 0,
        "failure, log_delta",
        (failure, log_delta),
        expected="0 < failure < 1 and log_delta < 0",
        remedy="pass for example failure=0.01, log_delta=-30.0",
    )
    dimension = math.log2(workload.universe)
    scaled = math.sqrt(dimension / ell) * n * float(as_positive(epsilon, "epsilon"))
    return max(1, round(scaled / math.log(workload.queries / failure)))


def paper_round_mechanisms(*, rho: Fraction, rounds: int, workload: Workload) -> Rounds:
    """Return T rounds of an exponential mechanism and rounded Laplace noise with ε_0 = √(ρ/T)."""
    share = round_epsilon(rho=rho, rounds=rounds)
    return Rounds(
        workload=workload,
        rounds=as_count(rounds, "rounds", minimum=1),
        # theory A10: q is drawn with probability ∝ exp(n ε_0 score/2), because a replaced row moves
        # scores both up and down; without the 2 the claim fails
        select=ExponentialMechanism.for_epsilon(epsilon=share, sensitivity=workload.bound),
        measure=RoundedLaplace.for_epsilon(epsilon=share, sensitivity=workload.bound),
    )


@debited
def mwem(
    rows: Any,
    *,
    workload: Workload,
    rounds: int,
    rho: Rational,
    **paying: Unpack[Paying],
) -> Release:
    """Release a distribution over the universe whose answers resemble the data's (zCDP).

    Use it to see the result before Algorithm 16's purification; for pure DP see `pure_mwem`.

    Parameters
    ----------
    rows : array, data frame or Source
        The dataset D, one row for each person, with the columns of the workload.
    workload : Workload
        The public queries 𝒬 on the universe 𝒳: `Marginals`, `LinearQueries`, or a subclass.
    rounds : int
        T, the number of measured queries.
    rho : number
        ρ of zCDP; each choice and each measurement has ε₀ = √(ρ/T).

    Returns
    -------
    Release
        Its value is the paper's D_out = n · average: weights that add up to n.

    Notes
    -----
    **Guarantee**: ρ-zCDP: each round an exponential mechanism (ε_0²/8) and rounded Laplace noise
    (at most ε_0²/2) with ε_0 = √(ρ/T) (Lemma `lem: pri_util_mwem`, theory A10, R2).
    **Neighbors**: replace-one; n is public.
    **Error**: a bound on the expected largest error of an answer, as a fraction of n
    (`Rounds.error`).

    Examples
    --------
    >>> import numpy as np
    >>> from zerodelta.queries import Marginals
    >>> people = np.array([[0, 1], [1, 1], [1, 1]] * 10_000)
    >>> release = mwem(people, workload=Marginals(dimension=2), rounds=100, rho="1/10")
    >>> release.value.round(-4), release.certificate.claim
    (array([    0.,     0., 10000., 20000.]), ZCDP(rho=1/10, neighbors=replace))

    """
    claim = ZCDP(as_positive(rho, "rho"))
    return _release(rows, workload, rounds, claim.rho, claim)


@partial(debited, like=mwem)
def approximate_mwem(
    rows: Any,
    *,
    workload: Workload,
    rounds: int,
    epsilon: Rational,
    log_delta: float | None = None,
    delta: Rational | None = None,
    **paying: Unpack[Paying],
) -> Release:
    """Release a distribution by `mwem` with ρ = ε²/(16 ln(1/δ)), under (ε, δ)-DP.

    Use it to reproduce Algorithm 14; for pure DP see `pure_mwem`.

    Parameters
    ----------
    epsilon : number
        ε of the claim, at most 8 ln(1/δ).
    log_delta, delta : number
        ln δ or δ of the claim, one of the two.

    Returns
    -------
    Release
        Its value is the paper's D_out: weights that add up to n.

    Notes
    -----
    **Guarantee**: (ε, δ)-DP (Lemma `lem: pri_util_mwem`, theory A10).
    **Neighbors**: replace-one; n is public.
    **Error**: a bound on the expected largest error of an answer, as a fraction of n
    (`Rounds.error`).

    Examples
    --------
    >>> import numpy as np
    >>> from zerodelta.queries import Marginals
    >>> people = np.array([[0, 1], [1, 1], [1, 1]] * 10_000)
    >>> release = approximate_mwem(people, workload=Marginals(dimension=2), rounds=100, epsilon=8,
    ...                            log_delta=-20.0)
    >>> release.value.round(-4), release.certificate.claim.log_delta(8)
    (array([    0.,     0., 10000., 20000.]), -20.0)

    """
    claim = ApproxDP(epsilon, log_delta_from(delta, log_delta))
    rho = paper_rho(epsilon=epsilon, log_delta=claim.log_delta(epsilon))
    return _release(rows, workload, rounds, rho, claim)


def _release(rows: Any, workload: Workload, rounds: int, rho: Fraction, claim: Claim) -> Release:
    """Run T rounds of ρ-zCDP and release n times the average distribution."""
    source = source_of(rows, workload)
    mechanisms = paper_round_mechanisms(rho=rho, rounds=rounds, workload=workload)
    return run(mechanisms.plan(rows=source.rows, claim=claim, scale=source.rows), source)


# -- Algorithms 15 and 16: a purified sample of synthetic rows ------------------------------------


def paper_sample_size(*, rows: int, workload: Workload, base_epsilon: Rational) -> int:
    """Return m = (n ε / d)^(2/3), rounded to an integer of at least 1; d = log2|X|, ε of MWEM.

    >>> from zerodelta.queries import Marginals
    >>> paper_sample_size(rows=10_000, workload=Marginals(dimension=10), base_epsilon=1)
    100
    """
    n, t = as_count(rows, "rows", minimum=1), as_positive(base_epsilon, "base_epsilon")
    size: float = (n * float(t) / math.log2(workload.universe)) ** (2 / 3)
    return max(1, round(size))


def plan_embedded(
    *,
    rows: int,
    workload: Workload,
    epsilon: Rational,
    base_epsilon: Rational | None = None,
    sample_size: int | None = None,
    rounds: int | None = None,
) -> SamplePlan:
    """Return the paper's plan: it chooses m, then ln δ, then ρ and T (theory A10)."""
    t, extra = split_epsilon(epsilon, base_epsilon)
    n, base = as_count(rows, "rows", minimum=1), workload.universe
    if sample_size is None:
        sample_size = paper_sample_size(rows=n, workload=workload, base_epsilon=t)
    size = as_count(sample_size, "sample_size", minimum=1)
    space = Finite(base**size)
    log_delta = theorem_3_log_delta(code_length=code_length(space.size), base_epsilon=t)
    if rounds is None:
        rounds = paper_rounds(
            rows=n, workload=workload, epsilon=t, log_delta=log_delta, failure=1 / (n + 1)
        )

    def decode(code: int) -> list[int]:
        """Return the items whose digits, in the base of their number, a code stands for."""
        items = []
        for _ in range(size):
            code, item = divmod(code, base)
            items.append(item)
        return items

    return SamplePlan(
        rounds=paper_round_mechanisms(
            rho=paper_rho(epsilon=t, log_delta=log_delta), rounds=rounds, workload=workload
        ),
        rows=n,
        sample_size=size,
        channel=choice_channel_for(
            space=space, epsilon=t + extra, base_epsilon=t, log_delta=log_delta
        ),
        epsilon=t + extra,
        encode=lambda items: sum(int(item) * base**place for place, item in enumerate(items)),
        decode=decode,
    )


@partial(debited, like=pure_mwem)
def multiset_mwem(
    rows: Any,
    *,
    workload: Workload,
    epsilon: Rational,
    sample_size: int,
    rounds: int,
    mixing_weight: Rational = "0.01",
    **paying: Unpack[Paying],
) -> Release:
    """Release `sample_size` synthetic rows: approximate MWEM, sampled and mixed over multisets.

    Use it to compare with `embedded_mwem`; `pure_mwem` has a smaller error bound.

    Parameters
    ----------
    sample_size : int
        m, the number of synthetic rows.
    rounds : int
        T, the number of measured queries.
    mixing_weight : number
        The probability w of a uniform multiset.

    Returns
    -------
    Release
        Its value has m rows of the universe.

    Notes
    -----
    **Guarantee**: pure ε-DP, with no extra ε: T rounds of exponential mechanism and rounded
    Gaussian measurement, with ln δ(ε) + ln C(|X|+m-1, m) <= ln(w/(1-w)) + ln(e^ε - 1) (B1, C7).
    **Neighbors**: replace-one; n is public.
    **Error**: a bound on the expected largest error of an answer: MWEM's, plus √(ln(2K)/(2m)) for
    sampling, plus w (`SamplePlan.error`).

    Examples
    --------
    >>> import numpy as np
    >>> from zerodelta.queries import Marginals
    >>> people = np.ones((50_000, 3))
    >>> release = multiset_mwem(people, workload=Marginals(dimension=3), epsilon=4,
    ...                         sample_size=50, rounds=200, mixing_weight="1e-8")
    >>> release.value.mean(axis=0).round(), release.certificate.claim.exact_epsilon
    (array([1., 1., 1.]), Fraction(4, 1))

    """
    source = source_of(rows, workload)
    sample = plan_multiset(
        rows=source.rows,
        workload=workload,
        epsilon=epsilon,
        sample_size=sample_size,
        rounds=rounds,
        mixing_weight=mixing_weight,
    )
    return run(sample.plan(), source)


@partial(debited, like=pure_mwem)
def embedded_mwem(
    rows: Any,
    *,
    workload: Workload,
    epsilon: Rational,
    base_epsilon: Rational | None = None,
    sample_size: int | None = None,
    rounds: int | None = None,
    **paying: Unpack[Paying],
) -> Release:
    """Release `sample_size` synthetic rows by the paper's Algorithm 16, with its binary embedding.

    Use it to reproduce the paper; `pure_mwem` has a smaller error bound.

    Parameters
    ----------
    epsilon : number
        2ε of the paper (ε + ε' in general): the pure ε of the release.
    base_epsilon : number, optional
        ε of Algorithm 14; half of `epsilon` by default. The rest is ε' of Algorithm 2.
    sample_size : int, optional
        m, the number of synthetic rows; `paper_sample_size` by default.
    rounds : int, optional
        T, the number of measured queries; `paper_rounds` by default.

    Returns
    -------
    Release
        Its value has m rows of the universe.

    Notes
    -----
    **Guarantee**: pure DP with ε + ε' (Theorem `thm:query_pmw`, by theory W and A4); the rounds' δ
    is Theorem 3's, ε^k/(2k)^(3k), for codes of k = ⌈m·log2|X|⌉ bits.
    **Neighbors**: replace-one; n is public.
    **Error**: a bound on the expected largest error of an answer: MWEM's, plus √(ln(2K)/(2m)) for
    sampling, plus the code's flips (`SamplePlan.error`).

    Examples
    --------
    >>> import numpy as np
    >>> from zerodelta.queries import Marginals
    >>> people = np.ones((50_000, 3))
    >>> release = embedded_mwem(people, workload=Marginals(dimension=3), epsilon=8,
    ...                         sample_size=50, rounds=200)
    >>> release.value.mean(axis=0).round(), release.certificate.claim.exact_epsilon
    (array([1., 1., 1.]), Fraction(8, 1))

    """
    source = source_of(rows, workload)
    sample = plan_embedded(
        rows=source.rows,
        workload=workload,
        epsilon=epsilon,
        base_epsilon=base_epsilon,
        sample_size=sample_size,
        rounds=rounds,
    )
    return run(sample.plan(), source)
