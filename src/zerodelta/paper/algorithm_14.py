"""Algorithm 14 (`alg:MWEM`, Lemma `lem: pri_util_mwem`): multiplicative weights, approximate DP.

The rounds are those of `tables/mwem.py`; here are the paper's choices of ρ, T and ε_0.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from zerodelta.errors import require
from zerodelta.exact.bits import BitSource
from zerodelta.exact.rational import Rational, as_count, as_positive
from zerodelta.mechanisms.laplace import RoundedLaplace
from zerodelta.mechanisms.selection import ExponentialMechanism
from zerodelta.privacy.claim import Claim
from zerodelta.privacy.claims import ZCDP, ApproxDP
from zerodelta.privacy.parameters import as_log_delta, log_delta_from
from zerodelta.privacy.release import Release
from zerodelta.spine.paying import Paying, debited
from zerodelta.spine.run import run
from zerodelta.tables.mwem import Rounds, round_epsilon
from zerodelta.tables.workloads import Workload, source_of

if TYPE_CHECKING:
    from typing_extensions import Unpack


def paper_rho(*, epsilon: Rational, log_delta: float) -> Fraction:
    """Return ρ = ε²/(16 ln(1/δ)), rounded down: ρ + 2√(ρ ln(1/δ)) <= ε, if ε <= 8 ln(1/δ).

    >>> float(paper_rho(epsilon=1, log_delta=-100.0))
    0.000625
    """
    t, ell = as_positive(epsilon, "epsilon"), -Fraction(as_log_delta(log_delta))
    # theory A10: the conversion needs ε <= 8 ln(1/δ), which the paper does not say
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
        # scores both ways; leaving out the 2 breaks the claim.
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
    bits: BitSource | None = None,
    **paying: Unpack[Paying],
) -> Release:
    """Release a distribution over the universe whose answers resemble the data's (zCDP).

    Use it to see what Algorithm 16 purifies; for pure DP see `pure_mwem`.

    Parameters
    ----------
    rows : array, data frame or Source
        The dataset D, one row for each person, with the columns of the workload.
    workload : Workload
        The public queries 𝒬 on the universe 𝒳: `Marginals`, `LinearQueries`, or your own class.
    rounds : int
        T, how many queries are measured.
    rho : number
        ρ of zCDP; every choice and every measurement has ε₀ = √(ρ/T).
    bits : BitSource, optional
        Replayed bits for tests; never for data.

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
    return _release(rows, workload, rounds, claim.rho, claim, bits)


@debited
def approximate_mwem(
    rows: Any,
    *,
    workload: Workload,
    rounds: int,
    epsilon: Rational,
    log_delta: float | None = None,
    delta: Rational | None = None,
    bits: BitSource | None = None,
    **paying: Unpack[Paying],
) -> Release:
    """Release what `mwem` does with ρ = ε²/(16 ln(1/δ)): (ε, δ)-DP.

    Use it to reproduce Algorithm 14; for pure DP see `pure_mwem`.

    Parameters
    ----------
    rows, workload, rounds
        As in `mwem`.
    epsilon : number
        ε of the claim, at most 8 ln(1/δ).
    log_delta, delta : number
        ln δ or δ of the claim, one of the two.
    bits : BitSource, optional
        Replayed bits for tests; never for data.

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
    return _release(rows, workload, rounds, rho, claim, bits)


def _release(
    rows: Any, workload: Workload, rounds: int, rho: Fraction, claim: Claim, bits: BitSource | None
) -> Release:
    data = source_of(rows, workload)
    chosen = paper_round_mechanisms(rho=rho, rounds=rounds, workload=workload)
    return run(chosen.plan(rows=data.rows, claim=claim, scale=data.rows), data, bits=bits)
