"""A sample of synthetic rows from MWEM, purified (theory C7, B1, A10).

The rounds are internal and only approximately private; what is published is a small sample, which
a channel makes pure: mixing over multisets here, the paper's binary embedding in its Algorithm 16.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from zerodelta.channels.channel import Purifier
from zerodelta.channels.finite_mix import FiniteMix
from zerodelta.data.rows import Rows
from zerodelta.exact.alias_table import proportional_sampling
from zerodelta.exact.bits import BitSource
from zerodelta.exact.rational import Rational, as_count, as_positive
from zerodelta.mechanisms.gaussian import RoundedGaussian
from zerodelta.mechanisms.selection import ExponentialMechanism
from zerodelta.privacy.calibration import calibrate
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.step import Step
from zerodelta.privacy.theorems.mixing import as_weight
from zerodelta.spaces import Multiset
from zerodelta.spine.release_plan import ReleasePlan
from zerodelta.tables.distribution import Answers, Fit
from zerodelta.tables.domain import Domain, TableWorkload
from zerodelta.tables.mwem import Counts, Rounds, drift, round_epsilon
from zerodelta.tables.streamed_counts import Tabulated
from zerodelta.tables.workloads import LinearQueries, Workload, histogram, workload_assumed
from zerodelta.value import value

Items: TypeAlias = npt.NDArray[np.int64]

_SLACK = Fraction(1, 10**9)
"""Kept back from ρ: the chain finds its bound on δ at another order, and must meet the target."""
_LARGEST_LOG_DELTA = -1e-9
"""A δ of almost 1 suffices where the mixing nearly hides everything; ln δ must still be below 0."""
_SIZES, _ROUNDS = (50, 100, 200, 400), (40, 160, 640)
_MOST_ENTRIES = 1 << 24


def sampling_error(*, queries: int, sample_size: int) -> float:
    """Return √(ln(2K)/(2m)), at least E max_q |q(sample) - q(p)|/bound (`lem: sampling_bound`).

    >>> round(sampling_error(queries=480, sample_size=100), 3)
    0.185
    """
    m = as_count(sample_size, "sample_size", minimum=1)
    return math.sqrt(math.log(2 * queries) / (2 * m))


@value
class SamplePlan:
    """Everything public about a purified sample: rounds, sample size and channel.

    `encode` makes an element of the channel's space of a sample, `decode` a sample of an element.
    """

    rounds: Rounds
    rows: int
    sample_size: int
    channel: Purifier
    epsilon: Fraction
    encode: Callable[[Items], Any] = np.ndarray.tolist
    decode: Callable[[Any], Any] = list

    @property
    def error(self) -> float:
        """A bound on the expected largest error of an answer, as a fraction of n · bound."""
        queries = self.rounds.workload.queries
        sample = sampling_error(queries=queries, sample_size=self.sample_size)
        return self.rounds.error(self.rows) + sample + self.channel.expected_error()

    def steps(self) -> tuple[Step, ...]:
        """Return the proof steps: internal rounds, then the channel."""
        return (*self.rounds.steps(), self.channel.step())

    def draw(self, counts: Counts, bits: BitSource) -> Items:
        """Return the items to publish: the rounds, a sample of their average, the channel."""
        average = self.rounds.average(counts, bits)
        sample = proportional_sampling(average, size=self.sample_size, bits=bits)
        published = self.decode(self.channel.apply(self.encode(sample), bits))
        return np.sort(np.array(published, dtype=np.int64))

    def plan(self) -> ReleasePlan[Rows]:
        """Return the plan that releases the items as rows of the workload."""
        workload = self.rounds.workload
        return ReleasePlan(
            claim=PureDP(self.epsilon),
            steps=self.steps(),
            answer=lambda data, bits: workload.rows_of(self.draw(histogram(data, workload), bits)),
            error=self.error,
            public=("the workload", "rounds, sample size and mixing", "the number of rows"),
            assumed=workload_assumed(workload),
            seconds=self.rounds.seconds,
        )


def plan_multiset(
    *,
    rows: int,
    workload: Workload,
    epsilon: Rational,
    sample_size: int,
    rounds: int,
    mixing_weight: Rational = "0.01",
) -> SamplePlan:
    """Return the plan whose internal rounds spend all the zCDP that the mixing can purify.

    theory A10: the order of a sample says nothing, so N counts multisets, C(|X|+m-1, m), which
    saves ln m! of ln(1/δ); the choice is charged ε_0²/8 and the measurement is Gaussian.
    """
    t, count = as_positive(epsilon, "epsilon"), as_count(rounds, "rounds", minimum=1)
    size = as_count(sample_size, "sample_size", minimum=1)
    space = Multiset(workload.universe, size)
    channel = FiniteMix(space=space, mixing_weight=as_weight(mixing_weight))
    rho = _largest_rho(t, min(channel.log_delta_required(t), _LARGEST_LOG_DELTA)) * (1 - _SLACK)
    share = round_epsilon(rho=4 * rho, rounds=count)  # ε_0²/8 = ρ/(2T)
    return SamplePlan(
        rounds=Rounds(
            workload=workload,
            rounds=count,
            select=ExponentialMechanism.for_epsilon(epsilon=share, sensitivity=workload.bound),
            measure=RoundedGaussian.for_mu_squared(
                mu_squared=rho / count, sensitivity_squared=workload.bound**2
            ),
        ),
        rows=as_count(rows, "rows", minimum=1),
        sample_size=size,
        channel=channel,
        epsilon=t,
    )


@lru_cache(maxsize=64)
def _largest_rho(epsilon: Fraction, log_delta: float) -> Fraction:
    return calibrate(epsilon=epsilon, log_delta=log_delta).rho  # one for any number of rounds


def least_sample_error(domain: Domain, workload: TableWorkload) -> float:
    """Return a lower bound on the error of `table_sample`, whatever ε and n; inf if there is none.

    It leaves out all noise, and costs nothing: where another method is below it, a sample cannot
    win and need not be planned. It is at most `SamplePlan.error` in floats too, where numbers >= 0
    are added to the same ones.
    """
    queries = _queries(domain, workload)
    if queries * domain.cells > _MOST_ENTRIES:
        return math.inf
    sample = sampling_error(queries=queries, sample_size=max(_SIZES))
    return math.sqrt(drift(domain.cells, max(_ROUNDS))) + sample


def table_sample(
    domain: Domain,
    workload: TableWorkload,
    epsilon: Fraction,
    rows: int,
    *,
    below: float = math.inf,
) -> SamplePlan | None:
    """Return the plan with the least error bound; None if the queries do not fit into memory.

    If no plan has an error less than `below`, any may be returned.
    """
    if math.isinf(least_sample_error(domain, workload)):
        return None
    cells, best = _cell_queries(domain, workload), None
    largest_sample = sampling_error(queries=cells.queries, sample_size=max(_SIZES))
    for size in sorted(_SIZES):
        plans = [
            plan_multiset(
                rows=rows, workload=cells, epsilon=epsilon, sample_size=size, rounds=rounds
            )
            for rounds in _ROUNDS
        ]
        best = min([*([] if best is None else [best]), *plans], key=lambda plan: plan.error)
        # a larger sample leaves less ρ to the rounds, so that none has a smaller error than this
        least = min(plan.rounds.error(rows) for plan in plans) + largest_sample
        if least >= min(best.error, below):
            break
    return best


def sampled_answers(plan: SamplePlan, data: Tabulated, bits: BitSource) -> Answers:
    """Return the tables of the published rows; a row with an out-of-domain value is the first cell.

    So every row is some item, as the sensitivity of `histogram` demands.
    """
    domain = data.domain
    counts = data.table(tuple(range(len(domain.columns)))).reshape(-1)
    counts[0] += data.rows - counts.sum()
    items = plan.draw(counts, bits)
    weights = np.bincount(items, minlength=domain.cells) / plan.sample_size
    return Answers(fitted=Fit(domain=domain, weights=weights, close=True))


def _queries(domain: Domain, workload: TableWorkload) -> int:
    return sum(map(domain.cells_of, workload.tables))


def _cell_queries(domain: Domain, workload: TableWorkload) -> LinearQueries:
    """Return all cells of all tables as queries on the cells of the domain."""
    codes = np.indices(domain.sizes).reshape(len(domain.sizes), -1)
    lines = []
    for table in workload.tables:
        keys = np.zeros(domain.cells, dtype=np.int64)
        for column in table:
            keys = keys * domain.sizes[column] + codes[column]
        lines.append(keys[None, :] == np.arange(domain.cells_of(table))[:, None])
    return LinearQueries(np.concatenate(lines).astype(np.int64))
