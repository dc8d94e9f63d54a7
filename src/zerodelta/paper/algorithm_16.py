"""Algorithm 16 (`alg: pure_pmw`, Theorem `thm:query_pmw`): MWEM, a small sample, purification.

Two ways to remove δ from a sample of m synthetic rows: mixing over multisets (theory B1, C7) and
the paper's binary embedding (Algorithm 2). Both are for comparison: `mwem_pure` has a smaller error
*bound* in every configuration tried (theory A10); measured errors of the first are close to it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

import numpy as np
import numpy.typing as npt

from zerodelta.channels.channel import Purifier
from zerodelta.channels.finite import FiniteMix
from zerodelta.data.source import Source
from zerodelta.exact.bits import BitSource, SystemBits
from zerodelta.exact.rational import Rational, as_count, as_positive
from zerodelta.mechanisms.gaussian import RoundedGaussian
from zerodelta.mechanisms.laplace import RoundedLaplace
from zerodelta.mechanisms.selection import ExponentialMechanism
from zerodelta.paper.algorithm_02 import channel_for, code_length, theorem_3_log_delta
from zerodelta.paper.algorithm_14 import (
    Measurement,
    counted,
    expected_error,
    paper_rho,
    paper_round_epsilon,
    paper_rounds,
    run,
)
from zerodelta.paper.algorithm_15 import proportional_sampling
from zerodelta.paper.workloads import Workload, histogram, source_of, workload_assumptions
from zerodelta.privacy.calibration import calibrate
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.issue import issue
from zerodelta.privacy.release import Release
from zerodelta.privacy.theorems.mixing import as_weight
from zerodelta.spaces import Finite, Multiset

__all__ = [
    "Plan",
    "embedded_mwem",
    "multiset_mwem",
    "paper_sample_size",
    "plan_embedded",
    "plan_multiset",
    "sampling_error",
]

Items = npt.NDArray[np.int64]

_SLACK = Fraction(1, 10**9)
"""Kept back from ρ: the chain finds its bound on δ at another order, and must meet the target."""


def paper_sample_size(*, rows: int, workload: Workload, epsilon: Rational) -> int:
    """Return m = (n ε / d)^(2/3), rounded to an integer of at least 1; d = log2|X|.

    >>> from zerodelta.paper.workloads import Marginals
    >>> paper_sample_size(rows=10_000, workload=Marginals(dimension=10), epsilon=1)
    100
    """
    n, t = as_count(rows, "rows", minimum=1), float(as_positive(epsilon, "epsilon"))
    size: float = (n * t / math.log2(workload.universe)) ** (2 / 3)
    return max(1, round(size))


def sampling_error(*, workload: Workload, sample_size: int) -> float:
    """Return √(ln(2K)/(2m)), at least E max_q |q(sample) - q(p)|/bound (`lem: sampling_bound`)."""
    m = as_count(sample_size, "sample_size", minimum=1)
    return math.sqrt(math.log(2 * workload.queries) / (2 * m))


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """Everything public about a release: rounds, mechanisms, sample size and channel."""

    workload: Workload
    rows: int
    rounds: int
    sample_size: int
    select: ExponentialMechanism
    measure: Measurement
    channel: Purifier
    epsilon: Fraction

    @property
    def error(self) -> float:
        """A bound on the expected largest error of an answer, as a fraction of n · bound."""
        rounds = expected_error(
            rows=self.rows,
            workload=self.workload,
            rounds=self.rounds,
            select=self.select,
            measure=self.measure,
        )
        sample = sampling_error(workload=self.workload, sample_size=self.sample_size)
        return rounds + sample + self.channel.expected_error()

    def release(
        self,
        data: Source,
        bits: BitSource,
        encode: Callable[[Items], Any],
        decode: Callable[..., Any],
    ) -> Release:
        """Certify, run MWEM, sample, purify."""
        taken = (self.select.step(), self.measure.step())
        steps = tuple(counted(step, self.rounds, self.workload, data) for step in taken)
        certificate = issue(
            claim=PureDP(self.epsilon),
            steps=(*steps, self.channel.step()),
            bits=bits,
            public=("the workload", "rounds, sample size and mixing", "the number of rows"),
            assumed=workload_assumptions(self.workload, data),
        )
        average = run(
            histogram(data, self.workload),
            self.workload,
            rounds=self.rounds,
            select=self.select,
            measure=self.measure,
            bits=bits,
        )
        sample = proportional_sampling(average, size=self.sample_size, bits=bits)
        items = np.sort(np.array(decode(self.channel.apply(encode(sample), bits)), dtype=np.int64))
        value = self.workload.rows_of(items)
        return Release(value=value, certificate=certificate, error=self.error)


def plan_multiset(
    *,
    rows: int,
    workload: Workload,
    epsilon: Rational,
    sample_size: int,
    rounds: int,
    mixing_weight: Rational = "0.01",
) -> Plan:
    """Return the plan whose hidden rounds spend all the zCDP that the mixing can purify.

    theory A10: the order of a sample says nothing, so N counts multisets, C(|X|+m-1, m), which
    saves ln m! of ln(1/δ); the choice is charged ε_0²/8 and the measurement is Gaussian.
    """
    t, count = as_positive(epsilon, "epsilon"), as_count(rounds, "rounds", minimum=1)
    size = as_count(sample_size, "sample_size", minimum=1)
    channel = FiniteMix(
        space=Multiset(workload.universe, size), mixing_weight=as_weight(mixing_weight)
    )
    log_delta = channel.log_delta_required(t)
    rho = calibrate(epsilon=t, log_delta=min(log_delta, -_FLOOR)).rho * (1 - _SLACK)
    share = paper_round_epsilon(rho=4 * rho, rounds=count)  # ε_a²/8 = ρ/(2T)
    return Plan(
        workload=workload,
        rows=as_count(rows, "rows", minimum=1),
        rounds=count,
        sample_size=size,
        select=ExponentialMechanism.for_epsilon(epsilon=share, sensitivity=workload.bound),
        measure=RoundedGaussian.for_mu_squared(
            mu_squared=rho / count, sensitivity_squared=workload.bound**2
        ),
        channel=channel,
        epsilon=t,
    )


_FLOOR = 1e-9
"""A δ of almost 1 suffices where the mixing nearly hides everything; ln δ must still be below 0."""


def plan_embedded(
    *,
    rows: int,
    workload: Workload,
    epsilon: Rational,
    extra_epsilon: Rational,
    sample_size: int | None = None,
    rounds: int | None = None,
) -> Plan:
    """Return the paper's plan: m, then ln δ, then ρ and T (theory A10: in this order)."""
    t, extra = as_positive(epsilon, "epsilon"), as_positive(extra_epsilon, "extra_epsilon")
    n = as_count(rows, "rows", minimum=1)
    if sample_size is None:
        sample_size = paper_sample_size(rows=n, workload=workload, epsilon=t)
    size = as_count(sample_size, "sample_size", minimum=1)
    space = Finite(workload.universe**size)
    log_delta = theorem_3_log_delta(code_length=code_length(space.size), epsilon=t)
    if rounds is None:
        rounds = paper_rounds(
            rows=n,
            workload=workload,
            epsilon=t,
            log_delta=log_delta,
            failure=1 / (n + 1),
        )
    rho = paper_rho(epsilon=t, log_delta=log_delta)
    share = paper_round_epsilon(rho=rho, rounds=rounds)
    return Plan(
        workload=workload,
        rows=n,
        rounds=rounds,
        sample_size=size,
        # theory A10: exp(n ε_0 score/2), with the 2
        select=ExponentialMechanism.for_epsilon(epsilon=share, sensitivity=workload.bound),
        measure=RoundedLaplace.for_epsilon(epsilon=share, sensitivity=workload.bound),
        channel=channel_for(space=space, epsilon=t, log_delta=log_delta, extra_epsilon=extra),
        epsilon=t + extra,
    )


def multiset_mwem(
    rows: Any,
    *,
    workload: Workload,
    epsilon: Rational,
    sample_size: int,
    rounds: int,
    mixing_weight: Rational = "0.01",
    bits: BitSource | None = None,
) -> Release:
    """Release `sample_size` synthetic rows: approximate MWEM, sampled and mixed over multisets.

    **Neighbors**: replace-one; n is public.
    **Guarantee**: pure ε-DP, with no extra ε: T rounds of exponential mechanism and rounded
    Gaussian measurement, with ln δ(ε) + ln C(|X|+m-1, m) <= ln(w/(1-w)) + ln(e^ε - 1) (B1, C7).
    **Public**: the workload, all parameters, n.
    **Error**: `Plan.error`: MWEM, plus √(ln(2K)/(2m)) for sampling, plus w.

    >>> from zerodelta.paper.workloads import Marginals
    >>> people = np.array([[0, 1, 1], [1, 1, 0]] * 200)
    >>> release = multiset_mwem(
    ...     people, workload=Marginals(dimension=3), epsilon=1, sample_size=5, rounds=10
    ... )
    >>> release.value.shape, release.certificate.claim.exact_epsilon
    ((5, 3), Fraction(1, 1))
    """
    source, data = SystemBits() if bits is None else bits, source_of(rows, workload)
    plan = plan_multiset(
        rows=data.rows,
        workload=workload,
        epsilon=epsilon,
        sample_size=sample_size,
        rounds=rounds,
        mixing_weight=mixing_weight,
    )
    return plan.release(data, source, encode=lambda items: items.tolist(), decode=list)


def embedded_mwem(
    rows: Any,
    *,
    workload: Workload,
    epsilon: Rational,
    extra_epsilon: Rational,
    sample_size: int | None = None,
    rounds: int | None = None,
    bits: BitSource | None = None,
) -> Release:
    """Release `sample_size` synthetic rows by the paper's Algorithm 16, binary embedding and all.

    **Neighbors**: replace-one; n is public.
    **Guarantee**: pure (ε + ε')-DP; the paper's 2ε for ε' = ε (Theorem `thm:query_pmw`, by theory
    W and A4).
    **Public**: the workload, all parameters, n.
    **Error**: `Plan.error`: MWEM, plus √(ln(2K)/(2m)) for sampling, plus the flips of the code.

    >>> from zerodelta.paper.workloads import Marginals
    >>> people = np.array([[0, 1, 1], [1, 1, 0]] * 200)
    >>> release = embedded_mwem(
    ...     people, workload=Marginals(dimension=3), epsilon=1, extra_epsilon=1, sample_size=4
    ... )
    >>> release.value.shape, release.certificate.claim.exact_epsilon
    ((4, 3), Fraction(2, 1))
    """
    source, data = SystemBits() if bits is None else bits, source_of(rows, workload)
    plan = plan_embedded(
        rows=data.rows,
        workload=workload,
        epsilon=epsilon,
        extra_epsilon=extra_epsilon,
        sample_size=sample_size,
        rounds=rounds,
    )
    base, size = workload.universe, plan.sample_size

    def encode(items: Items) -> int:
        return sum(int(item) * base**place for place, item in enumerate(items))

    def decode(code: int) -> list[int]:
        items = []
        for _ in range(size):
            code, item = divmod(code, base)
            items.append(item)
        return items

    return plan.release(data, source, encode=encode, decode=decode)
