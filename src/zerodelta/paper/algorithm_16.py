"""Algorithm 16 (`alg: pure_pmw`, Theorem `thm:query_pmw`): MWEM, a small sample, purification.

Two channels remove δ from a sample of m synthetic rows: mixing over multisets (theory B1, C7) and
the paper's binary embedding (Algorithm 2). Both are for comparison: `pure_mwem` has a smaller error
*bound* in every configuration tried (theory A10); measured errors of the first are close to it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from zerodelta.exact.bits import BitSource
from zerodelta.exact.rational import Rational, as_count, as_positive
from zerodelta.paper.algorithm_02 import choice_channel_for, code_length, theorem_3_log_delta
from zerodelta.paper.algorithm_14 import paper_rho, paper_round_mechanisms, paper_rounds
from zerodelta.privacy.parameters import split_epsilon
from zerodelta.privacy.release import Release
from zerodelta.spaces import Finite
from zerodelta.spine.paying import Paying, debited
from zerodelta.spine.run import run
from zerodelta.tables.sample import SamplePlan, plan_multiset
from zerodelta.tables.workloads import Workload, source_of

if TYPE_CHECKING:
    from typing_extensions import Unpack


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
    """Return the paper's plan: m, then ln δ, then ρ and T (theory A10: in this order)."""
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


@debited
def multiset_mwem(
    rows: Any,
    *,
    workload: Workload,
    epsilon: Rational,
    sample_size: int,
    rounds: int,
    mixing_weight: Rational = "0.01",
    bits: BitSource | None = None,
    **paying: Unpack[Paying],
) -> Release:
    """Release `sample_size` synthetic rows: approximate MWEM, sampled and mixed over multisets.

    Use it to compare with `embedded_mwem`; `pure_mwem` has a smaller error bound.

    Parameters
    ----------
    rows, workload
        As in `pure_mwem`.
    epsilon : number
        The pure ε of the release.
    sample_size : int
        m, the number of synthetic rows.
    rounds : int
        T, how many queries are measured.
    mixing_weight : number
        The probability w of a uniform multiset.
    bits : BitSource, optional
        Replayed bits for tests; never for data.

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
    data = source_of(rows, workload)
    chosen = plan_multiset(
        rows=data.rows,
        workload=workload,
        epsilon=epsilon,
        sample_size=sample_size,
        rounds=rounds,
        mixing_weight=mixing_weight,
    )
    return run(chosen.plan(), data, bits=bits)


@debited
def embedded_mwem(
    rows: Any,
    *,
    workload: Workload,
    epsilon: Rational,
    base_epsilon: Rational | None = None,
    sample_size: int | None = None,
    rounds: int | None = None,
    bits: BitSource | None = None,
    **paying: Unpack[Paying],
) -> Release:
    """Release `sample_size` synthetic rows by the paper's Algorithm 16, binary embedding and all.

    Use it to reproduce the paper; `pure_mwem` has a smaller error bound.

    Parameters
    ----------
    rows, workload
        As in `pure_mwem`.
    epsilon : number
        2ε of the paper (ε + ε' in general): the pure ε of the release.
    base_epsilon : number, optional
        ε of Algorithm 14; half of `epsilon` by default. The rest is ε' of Algorithm 2.
    sample_size : int, optional
        m, the number of synthetic rows; `paper_sample_size` by default.
    rounds : int, optional
        T, how many queries are measured; `paper_rounds` by default.
    bits : BitSource, optional
        Replayed bits for tests; never for data.

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
    data = source_of(rows, workload)
    chosen = plan_embedded(
        rows=data.rows,
        workload=workload,
        epsilon=epsilon,
        base_epsilon=base_epsilon,
        sample_size=sample_size,
        rounds=rounds,
    )
    return run(chosen.plan(), data, bits=bits)
