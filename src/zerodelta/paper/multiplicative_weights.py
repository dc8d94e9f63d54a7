"""Answer linear queries by multiplicative weights (MWEM), and sample synthetic rows (C7, C10.6).

Each round chooses a badly answered query, measures it, and reweights the distribution. Scores and
measurements are integers in rows. The distribution is a function of internal answers only, so it is
computed in floats. `pure_mwem` composes the rounds purely and releases the distribution: at the
same ε it has a smaller error *bound* than a purified sample (`SamplePlan`) in every configuration
tried (theory A10).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from zerodelta.channels.channel import Purifier
from zerodelta.channels.mixes import FiniteMix
from zerodelta.data.rows import Rows
from zerodelta.exact.bits import BitSource
from zerodelta.exact.integers import weighted_indices
from zerodelta.exact.rational import Rational, as_count, as_positive
from zerodelta.marginals.workloads import (
    Marginals,
    Workload,
    histogram,
    source_of,
    workload_assumed,
)
from zerodelta.mechanisms.selection import ExponentialMechanism, PermuteAndFlip, Selection
from zerodelta.mechanisms.sum_noise import RoundedGaussian, RoundedLaplace
from zerodelta.privacy.claims import Claim, PureDP, calibrate
from zerodelta.privacy.release import Release
from zerodelta.privacy.steps import Status, Step
from zerodelta.privacy.theorems.mixing import as_weight
from zerodelta.spaces import Multiset
from zerodelta.spine.plan import ReleasePlan
from zerodelta.spine.run import run
from zerodelta.spine.verbs import Paying, debited
from zerodelta.value import value

if TYPE_CHECKING:
    from typing_extensions import Unpack


Measurement: TypeAlias = RoundedLaplace | RoundedGaussian
Distribution: TypeAlias = npt.NDArray[np.float64]
Counts: TypeAlias = npt.NDArray[np.int64]


@value
class Rounds:
    """The public plan of rounds that choose a query and measure it."""

    workload: Workload
    rounds: int
    select: Selection
    measure: Measurement

    def steps(self) -> tuple[Step, ...]:
        """Return the certificate's steps, caller-asserted for a workload of the caller's class."""
        status = Status.ASSERTED if workload_assumed(self.workload) else Status.PROVEN
        steps = (self.select.step(), self.measure.step())
        return tuple(replace(step.times(self.rounds), status=status) for step in steps)

    def error(self, rows: int) -> float:
        """Return a bound on E max_q |q(D)/n - q(average)| / bound, from public numbers.

        If the chosen query is wrong by s (a fraction of n) and its measurement by e, a round lowers
        the divergence from the data, which starts at most at ln|X|, by at least (s² - e²)/4. With T
        rounds and the last, unmeasured distribution the bound is √(4 ln|X|/(T+1) + E e²), plus the
        gap of the choice: scale · ln K rows, and 1 for rounding the scores. A bound above 1 is
        void.
        """
        mass, unit = self.rounds / (self.rounds + 1), rows * self.workload.bound
        if isinstance(self.measure, RoundedLaplace):
            deviation = math.sqrt(2) * float(self.measure.scale)
        else:
            deviation = math.sqrt(self.measure.variance)
        noise = mass * ((deviation + 1 / 2) / unit) ** 2  # rounding changes it by 1/2 at most
        gap = mass * (self.select.error(self.workload.queries) + 1) / unit
        return math.sqrt(drift(self.workload.universe, self.rounds) + noise) + gap

    @property
    def seconds(self) -> float:
        """A forecast of the seconds that the rounds take on one core; `bench/paper.py` checks it.

        Marginals are computed by one Walsh transform, other workloads by a matrix of all queries.
        """
        items, queries = self.workload.universe, self.workload.queries
        table = 5e-8 * items if type(self.workload) is Marginals else 4e-9 * items * queries
        return self.rounds * (5e-4 + 2e-7 * queries + table)

    def average(self, counts: Counts, bits: BitSource) -> Distribution:
        """Run the rounds and return the average distribution, as private as the rounds."""
        return multiplicative_weights(
            counts,
            self.workload,
            rounds=self.rounds,
            choose=lambda scores: self.select.select(scores, bits),
            measure=lambda total: int(self.measure.apply(np.array([total]), bits)[0]),
        )

    def plan(self, *, rows: int, claim: Claim, scale: float = 1.0) -> ReleasePlan[Rows]:
        """Return the plan that releases `scale` times the average distribution."""
        return ReleasePlan(
            claim=claim,
            steps=self.steps(),
            answer=lambda data, bits: scale * self.average(histogram(data, self.workload), bits),
            error=self.error(rows),
            public=("the workload", "the number of rounds", "the number of rows"),
            assumed=workload_assumed(self.workload),
            seconds=self.seconds,
        )


def drift(universe: int, rounds: int) -> float:
    """Return 4 ln|X|/(T+1), the squared error after T rounds without noise."""
    return 4 * math.log(universe) / (rounds + 1)


def round_epsilon(*, rho: Rational, rounds: int) -> Fraction:
    """Return ε_0 = √(ρ/T), rounded down, of both mechanisms of T rounds that are ρ-zCDP together.

    >>> round_epsilon(rho=1, rounds=4)
    Fraction(1, 2)
    """
    share = as_positive(rho, "rho") / as_count(rounds, "rounds", minimum=1)
    root = math.sqrt(share)
    while Fraction(root) ** 2 > share:
        root = math.nextafter(root, 0.0)
    return Fraction(root)


def multiplicative_weights(
    counts: Counts,
    workload: Workload,
    *,
    rounds: int,
    choose: Callable[[Counts], int],
    measure: Callable[[int], int],
) -> Distribution:
    """Return the average of the distributions p_0..p_T, as private as `choose` and `measure`.

    `choose` is called with the integer scores of all queries, and `measure` with the exact total of
    the chosen query. The data has no other effect.
    """
    n = int(counts.sum())
    truth, size, bound = workload.totals(counts), workload.universe, workload.bound
    weights = np.full(size, 1.0 / size)
    average: Distribution = weights.copy()
    for _ in range(rounds):
        synthetic = workload.totals(weights) * n
        # |round(n q(p)) - q(D)|: the first term does not depend on the data, so the sensitivity is
        # that of q(D), `bound`
        rounded = np.clip(np.rint(synthetic), 0, n * bound).astype(np.int64)
        query = choose(np.abs(rounded - truth))
        # theory A10: m_t = q_t(D) + noise (the paper writes <q_t, X>). It is clipped to the range
        # of q_t(D), which is post-processing, so that the update is within e^(±1/2) for any noise.
        answer = min(max(measure(int(truth[query])), 0), n * bound)
        # theory A10: the update is p_t(x) ∝ p_{t-1}(x) exp(q_t(x) (m_t - q_t(p_{t-1})) / 2)
        shortfall = (answer - float(synthetic[query])) / (n * bound)
        workload.reweight(weights, query, shortfall / 2)
        weights /= _total(weights)
        average += weights
    # The paper averages p_0..p_{T-1}, which does not use the answer of round T. The average of
    # p_0..p_T uses it: the paper's output for T+1 rounds at the ε of T.
    average /= rounds + 1
    return average


def _total(weights: Distribution) -> float:
    """Return the sum in a fixed order, by halves, so that equal weights have equal sums."""
    while len(weights) > 1:
        if len(weights) % 2:
            weights = np.append(weights, 0.0)
        weights = weights[0::2] + weights[1::2]
    return float(weights[0])


def pure_rounds(*, epsilon: Rational, rounds: int, workload: Workload) -> Rounds:
    """Return rounds that spend ε/(2T) on each choice and ε/(2T) on each measurement."""
    count = as_count(rounds, "rounds", minimum=1)
    share = as_positive(epsilon, "epsilon") / (2 * count)
    return Rounds(
        workload=workload,
        rounds=count,
        select=PermuteAndFlip.for_epsilon(epsilon=share, sensitivity=workload.bound),
        measure=RoundedLaplace.for_epsilon(epsilon=share, sensitivity=workload.bound),
    )


def best_rounds(*, rows: int, workload: Workload, epsilon: Rational) -> int:
    """Return the T for which `pure_rounds` has the smallest error bound, from public numbers.

    >>> from zerodelta.queries import Marginals
    >>> best_rounds(rows=100_000, workload=Marginals(dimension=16), epsilon=1)
    552
    """
    n = as_count(rows, "rows", minimum=1)

    def error(rounds: int) -> float:
        return pure_rounds(epsilon=epsilon, rounds=rounds, workload=workload).error(n)

    best, best_error, candidate = 1, error(1), Fraction(1)
    while candidate < 1 << 20:
        candidate = max(candidate * Fraction(21, 20), candidate + 1)
        rounds = round(candidate)
        candidate_error = error(rounds)
        if candidate_error < best_error:
            best, best_error = rounds, candidate_error
        elif rounds > 4 * best:
            break
    return best


@debited
def pure_mwem(
    rows: Any,
    *,
    workload: Workload,
    epsilon: Rational,
    rounds: int | None = None,
    **paying: Unpack[Paying],
) -> Release:
    """Release a distribution over the universe whose answers resemble the data's (pure DP).

    Use it for linear queries other than tables of columns; for tables see `zd.answer_queries`.

    Parameters
    ----------
    rows : array, data frame or Source
        One row for each person, with the columns of the workload.
    workload : Workload
        The public queries: `Marginals`, `LinearQueries`, or a subclass.
    rounds : int, optional
        The number of measured queries; `best_rounds` by default.

    Returns
    -------
    Release
        Its value adds up to 1; `workload.totals(value)` answers the queries as averages, and
        `proportional_sampling(value, size=m)` draws synthetic rows at no further cost.

    Notes
    -----
    **Guarantee**: pure ε-DP: each of T rounds spends ε/(2T) on permute-and-flip among integer
    scores |round(n q(p)) - q(D)| and ε/(2T) on rounded Laplace noise on one count (C7, C10.6).
    **Neighbors**: replace-one; n is public.
    **Error**: `Rounds.error`, the largest error of an answer as a fraction of n · bound.

    Examples
    --------
    >>> from zerodelta.queries import LinearQueries
    >>> people = np.array([0, 1, 1, 1] * 25_000)
    >>> two = LinearQueries([[0, 1]])
    >>> release = pure_mwem(people, workload=two, epsilon=10, rounds=100)
    >>> two.totals(release.value).round(1)
    array([0.7])

    """
    target, source = as_positive(epsilon, "epsilon"), source_of(rows, workload)
    if rounds is None:
        rounds = best_rounds(rows=source.rows, workload=workload, epsilon=target)
    mechanisms = pure_rounds(epsilon=target, rounds=rounds, workload=workload)
    return run(mechanisms.plan(rows=source.rows, claim=PureDP(target)), source)


# -- A sample of synthetic rows from MWEM, purified (theory C7, B1, A10) --------------------------
# The rounds are internal and only approximately private. A small sample is published through a
# channel that makes it pure: mixing over multisets here, the paper's binary embedding in its
# Algorithm 16.

Items: TypeAlias = npt.NDArray[np.int64]

_SLACK = Fraction(1, 10**9)
"""The part of ρ that is not spent, because the certificate's search for the Rényi order may end at
another order and prove slightly less."""
_LARGEST_LOG_DELTA = -1e-9
"""The ln δ that is used where mixing allows any δ; it must be below 0."""


def sampling_error(*, queries: int, sample_size: int) -> float:
    """Return √(ln(2K)/(2m)), at least E max_q |q(sample) - q(p)|/bound (`lem: sampling_bound`).

    >>> round(sampling_error(queries=480, sample_size=100), 3)
    0.185
    """
    m = as_count(sample_size, "sample_size", minimum=1)
    return math.sqrt(math.log(2 * queries) / (2 * m))


@value
class SamplePlan:
    """The public plan of a purified sample: rounds, sample size and channel.

    `encode` maps a sample to an element of the channel's space, and `decode` an element to a
    sample.
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
        """Return the certificate's steps: internal rounds, then the channel."""
        return (*self.rounds.steps(), self.channel.step())

    def draw(self, counts: Counts, bits: BitSource) -> Items:
        """Run the rounds, sample from their average, and return the items of the channel."""
        average = self.rounds.average(counts, bits)
        sample = weighted_indices(average, size=self.sample_size, bits=bits)
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

    The order of a sample has no information, so the channel's N is the number of multisets,
    C(|X|+m-1, m), which saves ln m! of ln(1/δ). The choice costs ε_0²/8, and the measurement is
    Gaussian (theory A10).
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
    """Return the largest ρ that implies (ε, δ); cached, as it is the same for all T."""
    return calibrate(epsilon=epsilon, log_delta=log_delta).rho
