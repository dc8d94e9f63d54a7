"""MWEM: choose a badly answered query, measure it, reweight; and synthetic rows (theory C7, C10.6).

Scores and measurements are integers in rows; the distribution is a function of internal answers
only, so it is computed in floats. `pure_mwem` composes the rounds purely and releases the whole
distribution: at the same ε it has a smaller error *bound* than a purified sample (`SamplePlan`) in
every configuration tried (theory A10).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias, final

import numpy as np
import numpy.typing as npt

from zerodelta.channels.channel import Purifier
from zerodelta.channels.mixes import FiniteMix
from zerodelta.data.rows import Rows
from zerodelta.exact.arrays import Floats, Integers
from zerodelta.exact.bits import BitSource
from zerodelta.exact.integers import weighted_indices
from zerodelta.exact.rational import Rational, as_count, as_positive
from zerodelta.exact.sums import IntegerArray
from zerodelta.marginals.bases import margin
from zerodelta.marginals.domain import Columns, Domain, TableWorkload, Tabulated
from zerodelta.marginals.fit import Answers, fit
from zerodelta.marginals.strategies import table_estimate
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
    """`rounds` choices of a query and measurements of it; everything here is public."""

    workload: Workload
    rounds: int
    select: Selection
    measure: Measurement

    def steps(self) -> tuple[Step, ...]:
        """Return the proof steps; they are caller-asserted if the workload is not ours."""
        status = Status.ASSERTED if workload_assumed(self.workload) else Status.PROVEN
        steps = (self.select.step(), self.measure.step())
        return tuple(replace(step.times(self.rounds), status=status) for step in steps)

    def error(self, rows: int) -> float:
        """Return a bound on E max_q |q(D)/n - q(average)| / bound, from public numbers.

        A round in which the chosen query is off by s (a fraction of n) and the measurement by e
        lowers the divergence from the data by at least (s² - e²)/4, and that starts at most at
        ln|X|. So with T rounds and the last, unmeasured distribution, √(4 ln|X|/(T+1) + E e²), plus
        the gap of the choice: scale · ln K rows, and 1 for rounding the scores. Above 1 it says
        nothing.
        """
        mass, unit = self.rounds / (self.rounds + 1), rows * self.workload.bound
        if isinstance(self.measure, RoundedLaplace):
            deviation = math.sqrt(2) * float(self.measure.scale)
        else:
            deviation = math.sqrt(self.measure.variance)
        noise = mass * ((deviation + 1 / 2) / unit) ** 2  # rounding moves it by 1/2 at most
        gap = mass * (self.select.error(self.workload.queries) + 1) / unit
        return math.sqrt(drift(self.workload.universe, self.rounds) + noise) + gap

    @property
    def seconds(self) -> float:
        """Roughly how long the rounds take on an ordinary core (`bench/paper.py` measures it).

        Marginals are found by one Walsh transform, other workloads by a table of all queries.
        """
        items, queries = self.workload.universe, self.workload.queries
        table = 5e-8 * items if type(self.workload) is Marginals else 4e-9 * items * queries
        return self.rounds * (5e-4 + 2e-7 * queries + table)

    def average(self, counts: Counts, bits: BitSource) -> Distribution:
        """Run the rounds; what is returned is as private as the rounds are."""
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
    """Return 4 ln|X|/(T+1): what T rounds leave of the squared error, without any noise."""
    return 4 * math.log(universe) / (rounds + 1)


def round_epsilon(*, rho: Rational, rounds: int) -> Fraction:
    """Return ε_0 = √(ρ/T), rounded down: of each mechanism of each round that add up to ρ-zCDP.

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
    """Return the average of the distributions p_0..p_T; it is as private as its answers.

    `choose` gets the integer scores of all queries, `measure` the exact total of the chosen one:
    these are the only places where data enters.
    """
    n = int(counts.sum())
    truth, size, bound = workload.totals(counts), workload.universe, workload.bound
    weights = np.full(size, 1.0 / size)
    average: Distribution = weights.copy()
    for _ in range(rounds):
        synthetic = workload.totals(weights) * n
        # |round(n q(p)) - q(D)|: the first part is no data, so its sensitivity is `bound`
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

    best, found, candidate = 1, error(1), Fraction(1)
    while candidate < 1 << 20:
        candidate = max(candidate * Fraction(21, 20), candidate + 1)
        rounds = round(candidate)
        reached = error(rounds)
        if reached < found:
            best, found = rounds, reached
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

    Use it for linear queries that are no tables of columns; for those see `zd.answer_queries`.

    Parameters
    ----------
    rows : array, data frame or Source
        One row for each person, with the columns of the workload.
    workload : Workload
        Public queries: `Marginals`, `LinearQueries`, or a class of your own.
    rounds : int, optional
        How many queries are measured; `best_rounds` by default.

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
    target, data = as_positive(epsilon, "epsilon"), source_of(rows, workload)
    if rounds is None:
        rounds = best_rounds(rows=data.rows, workload=workload, epsilon=target)
    chosen = pure_rounds(epsilon=target, rounds=rounds, workload=workload)
    return run(chosen.plan(rows=data.rows, claim=PureDP(target)), data)


# -- A sample of synthetic rows from MWEM, purified (theory C7, B1, A10) --------------------------
# The rounds are internal and only approximately private; what is published is a small sample,
# which a channel makes pure: mixing over multisets here, the paper's binary embedding in its
# Algorithm 16.

Items: TypeAlias = npt.NDArray[np.int64]

_SLACK = Fraction(1, 10**9)
"""Kept back from ρ: the chain finds its bound on δ at another order, and must meet the target."""
_LARGEST_LOG_DELTA = -1e-9
"""A δ of almost 1 suffices where the mixing nearly hides everything; ln δ must still be below 0."""


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


# -- Table rounds ---------------------------------------------------------------------------------
# Pure MWEM on whole tables: choose a badly fitted one, measure all its cells, fit (theory C10.6).
#
# A table costs as much as one of its cells: replacing a row moves two of them by one. The fitted
# distribution is a function of earlier answers only, so ε adds up over the rounds.

_SENSITIVITY = 2
"""How far replacing one row moves a table, in l1."""


@final
class TableRounds:
    """T rounds with ε/(2T) for the choice of a table and ε/(2T) for its cells; all public."""

    def __init__(
        self, domain: Domain, workload: TableWorkload, epsilon: Fraction, rounds: int
    ) -> None:
        share = epsilon / (2 * rounds)
        self._domain, self._tables = domain, workload.tables
        self.rounds = rounds
        self.select = PermuteAndFlip.for_epsilon(epsilon=share, sensitivity=_SENSITIVITY)
        self.noise = RoundedLaplace.for_epsilon(epsilon=share, sensitivity=_SENSITIVITY)

    def steps(self) -> tuple[Step, ...]:
        """Return the proof steps."""
        return self.select.step().times(self.rounds), self.noise.step().times(self.rounds)

    def run(self, data: Tabulated, bits: BitSource) -> Answers:
        """Return what was measured and the last fit."""
        tables = {table: data.table(table) for table in self._tables}
        return self.play(
            tables,
            data.rows,
            choose=lambda scores: self.select.select(scores, bits),
            measure=lambda counts: self.noise.apply(counts, bits),
        )

    def play(
        self,
        tables: dict[Columns, Integers],
        rows: int,
        *,
        choose: Callable[[Integers], int],
        measure: Callable[[Integers], IntegerArray],
    ) -> Answers:
        """Run the rounds; data enters only what `choose` and `measure` are given."""
        noisy: dict[Columns, Floats] = {}
        weights = np.full(self._domain.sizes, 1 / self._domain.cells)
        variance = 2 * float(self.noise.scale) ** 2
        left = list(self._tables)
        for turn in range(self.rounds):
            scores = [self._score(weights, table, tables[table], rows) for table in left]
            chosen = left.pop(choose(np.array(scores, dtype=np.int64)))
            cells = measure(tables[chosen].reshape(-1)).astype(np.float64)
            noisy[chosen] = cells.reshape(self._domain.shape(chosen))
            estimate = table_estimate(self._domain, noisy, dict.fromkeys(noisy, variance), rows)
            last = turn + 1 == self.rounds
            found = fit(estimate) if last else fit(estimate, penalties=(100.0,))
            weights = found.weights.reshape(self._domain.sizes)
        return Answers(fitted=found, estimate=estimate)

    def _score(self, weights: Floats, table: Columns, counts: Integers, rows: int) -> int:
        """Return Σ|round(n p) - counts| less the noise of measuring it: sensitivity 2."""
        expected = np.rint(margin(weights, table) * rows).astype(np.int64)
        noise = round(float(self.noise.scale) * counts.size)
        return int(np.abs(expected - counts).sum()) - noise
