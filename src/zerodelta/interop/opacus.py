"""Opacus: the history of a private training run as a claim, and what can be published of it.

The history holds noise multiplier, sampling rate and steps; it is read as Gaussian steps on Poisson
samples (theory, Poisson sampling). Its noise is float noise, which never exceeds a few σ: what it
shows by that is counted as a δ that no accountant knows of.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from flint import arb

from zerodelta.channels.purification import DEFAULT_MIXING_PROBABILITY, Plan
from zerodelta.channels.purification import plan as plan_release
from zerodelta.errors import GuaranteeError, ParameterError, require, require_extra
from zerodelta.exact.logs import ball, upper
from zerodelta.exact.rational import Rational, as_count, as_positive
from zerodelta.privacy.claims import RDP, ApproxDP, Claim, GaussianDP, PureDP, safe_end
from zerodelta.privacy.composition import simplest, transcript_claim
from zerodelta.privacy.parameters import Neighbors, as_flag, as_usable_epsilon
from zerodelta.privacy.theorems.subsampling import PoissonGaussianCurve
from zerodelta.spaces import Space

_LARGEST_NORMAL = Fraction("5.76811")
"""No float32 normal of torch on a CPU is larger: √(2·24·ln 2); 5e9 draws stayed below."""

_GRID = 1 << 24
"""Uniform float32 numbers are multiples of 2^-24."""

_LARGEST_FACTOR = 2.0**24
"""More noise than that is no advice."""

History = Iterable[tuple[Any, Any, Any]]
"""Noise multiplier, sampling rate and number of steps, as an accountant of Opacus keeps them."""


def claim(engine: Any, loader: Any, *, trust_float_noise: bool = False) -> Claim:
    """Return what a training run with Opacus satisfies, for added or removed rows.

    Use it after (or, with the planned history, before) training: `plan` then says whether one of N
    models, or a few numbers, can be published without δ.

    Parameters
    ----------
    engine : opacus.PrivacyEngine
        Whose accountant has the history; its ε and δ are not read.
    loader : opacus.data_loader.DPDataLoader
        The loader of the run. A history does not tell whether batches were Poisson samples, so any
        other loader is refused.
    trust_float_noise : bool
        Whether to claim what exact Gaussian noise has. By default the claim has a δ of
        `float_floor`, at every ε.

    Returns
    -------
    Claim
        Stated by the caller, so that what rests on it is `asserted`.

    Examples
    --------
    >>> claim(engine, loader).log_delta(4)  # doctest: +SKIP
    -12.9

    """
    return history_claim(_history(engine, loader), trust_float_noise=trust_float_noise)


def history_claim(history: History, *, trust_float_noise: bool = False) -> Claim:
    """Return the claim of a history of Poisson samples, such as a planned one.

    Parameters
    ----------
    history : list of (noise_multiplier, sample_rate, steps)
        As ``engine.accountant.history``. Rates are rounded up to what torch samples with.
    trust_float_noise : bool
        As in `claim`.

    Returns
    -------
    Claim
        For added or removed rows.

    Examples
    --------
    >>> run = [(1.52, 0.01, 1000)]
    >>> round(history_claim(run, trust_float_noise=True).log_delta(4), 1)
    -68.2
    >>> round(history_claim(run).log_delta(4), 1)
    -13.4

    """
    steps = _steps(history)
    exact = _together(steps)
    if as_flag(trust_float_noise, "trust_float_noise") or not steps:
        return exact
    lost = ApproxDP(0, float_floor(history=steps), neighbors=Neighbors.ADD_REMOVE)
    return simplest(transcript_claim([(exact, 1), (lost, 1)]))


def float_floor(history: History) -> float:
    """Return ln of about the least δ that float32 noise leaves to a history, whatever ε is.

    A normal number of torch in float32 never exceeds 5.77. A row whose gradient has one coordinate
    moves the sums beyond that with probability P(5.77 - 1/σ < N ≤ 5.77) at each step that samples
    it, and then it is seen. What float noise shows otherwise is not counted.

    Parameters
    ----------
    history : list of (noise_multiplier, sample_rate, steps)
        As in `history_claim`.

    Returns
    -------
    float
        At most 0; what a run on a GPU, or in Opacus' secure mode, has was not measured.

    Examples
    --------
    >>> round(float_floor([(1.52, 0.01, 1000)]), 1), round(float_floor([(0.62, 0.01, 1000)]), 1)
    (-13.4, -8.7)

    """
    steps = _steps(history)

    def seen() -> arb:
        total, root = arb(0), arb(2).sqrt()
        for sigma, rate, count in steps:
            moved = min(1 / sigma, Fraction(1000))  # by more than that it is seen for sure
            near, far = (ball(_LARGEST_NORMAL - x) / root for x in (moved, Fraction(0)))
            total += ball(rate * count) * (near.erfc() - far.erfc()) / 2
        return total.log()

    return min(upper(seen), 0.0) if steps else -math.inf


def plan(
    engine: Any,
    loader: Any,
    *,
    space: Space,
    epsilon: Rational,
    mixing_probability: Rational = DEFAULT_MIXING_PROBABILITY,
    trust_float_noise: bool = False,
) -> Plan:
    """Return the plan that publishes what a training run chose, or say what it would need.

    Use it for the number of the best of N models, or for very few parameters; for a parameter
    vector the noise would have to be many times larger: use a study, or `LogisticRegression`.

    Parameters
    ----------
    engine, loader
        As in `claim`.
    space : Finite, Subsets, Multiset, Box or Ball
        What may be published.
    epsilon : int, float, Fraction or str
        The pure ε of the release.
    mixing_probability : number, default 1/100
        The largest probability of publishing a random element instead.
    trust_float_noise : bool
        As in `claim`.

    Returns
    -------
    Plan
        `plan.purify(value)` publishes. `GuaranteeError` if the run cannot reach ε: with the ln δ it
        would need, that of its accounting, that of its float noise, and the noise multiplier that
        would do.

    Examples
    --------
    >>> plan(engine, loader, space=zd.Finite(16), epsilon=1).purify(best).value  # doctest: +SKIP
    11

    """
    return _plan(
        list(_history(engine, loader)), space, epsilon, mixing_probability, trust_float_noise
    )


def _plan(
    history: list[Any], space: Space, epsilon: Rational, mixing: Rational, trust: bool
) -> Plan:
    asked: dict[str, Any] = {"epsilon": epsilon, "mixing_probability": mixing}
    base = history_claim(history, trust_float_noise=trust)
    try:
        return plan_release(space, base=base, **asked)
    except GuaranteeError:
        free = plan_release(space, **asked)
        raise GuaranteeError(_needs(history, free, as_usable_epsilon(epsilon), trust)) from None


def _needs(history: list[Any], free: Plan, epsilon: Fraction, trusted: bool) -> str:
    needed, floor = free.log_delta, float_floor(history)
    exact = history_claim(history, trust_float_noise=True).log_delta(epsilon)
    factor = _factor(history, epsilon, needed)
    said = (
        f"the run cannot be published on this space: ln δ(ε) would have to be at most {needed:.4g}."
        f" With exact noise it is {exact:.4g}"
    )
    if math.isinf(factor):
        said += "; no noise multiplier would do, as far as the orders of its accounting reach"
    elif factor > 1:
        said += f"; {factor:.3g} times the noise multiplier would do"
    if not trusted and floor > needed:
        said += (
            f". Float32 noise leaves at least about {floor:.4g}, whatever the accountant says "
            "(pass trust_float_noise=True to ignore that)"
        )
    return (
        f"{said}. Publish something smaller, such as one of a few models; for a vector of "
        "parameters use a study, or an estimator that perturbs the objective."
    )


def _factor(history: list[Any], epsilon: Fraction, needed: float) -> float:
    """Return by how much all noise multipliers would have to grow, with exact noise.

    Infinity if no factor is enough: orders end at 10^6, so ln δ(ε) does not fall below -10^6 ε.
    """

    def excess(factor: float) -> float:
        more = [(Fraction(s) * Fraction(factor), rate, count) for s, rate, count in history]
        return history_claim(more, trust_float_noise=True).log_delta(epsilon) - needed

    if excess(1.0) <= 0:
        return 1.0
    safe = 2.0
    while excess(safe) > 0:
        safe *= 2
        if safe > _LARGEST_FACTOR:
            return math.inf
    return safe_end(excess, safe=safe, unsafe=safe / 2, relative=1e-3)


def _together(steps: list[tuple[Fraction, Fraction, int]]) -> Claim:
    relation = Neighbors.ADD_REMOVE
    if not steps:
        return PureDP(0, neighbors=relation)
    counted: list[tuple[Claim, int]] = []
    for sigma, rate, count in steps:
        mu_squared = 1 / sigma**2
        if rate == 1:
            counted.append((GaussianDP(mu_squared=mu_squared, neighbors=relation), count))
        else:
            curve = PoissonGaussianCurve(probability=rate, mu_squared=mu_squared)
            counted.append((RDP(curve, neighbors=relation), count))
    return simplest(transcript_claim(counted))


def _steps(history: History) -> list[tuple[Fraction, Fraction, int]]:
    """Return all entries of a history, checked."""
    try:
        entries = [tuple(each) for each in history]
    except TypeError:  # nothing to iterate over
        entries = [()]
    require(
        all(len(each) == 3 for each in entries),
        "history",
        expected="a list of (noise_multiplier, sample_rate, steps)",
        remedy="pass engine.accountant.history",
    )
    return [_step(*each) for each in entries]


def _step(multiplier: Any, rate: Any, steps: Any) -> tuple[Fraction, Fraction, int]:
    """Return one entry, its rate rounded up to what `torch.rand(n) < rate` samples with."""
    sigma = as_positive(multiplier, "noise_multiplier")
    exact = as_positive(rate, "sample_rate")
    require(exact <= 1, "sample_rate", rate, "a probability", "pass one of at most 1")
    return sigma, Fraction(math.ceil(exact * _GRID), _GRID), as_count(steps, "steps", minimum=1)


def _history(engine: Any, loader: Any) -> History:
    """Return the history of an engine whose batches were Poisson samples of one rate."""
    require_extra("opacus", "opacus")
    from opacus import PrivacyEngine
    from opacus.data_loader import DPDataLoader
    from opacus.utils.uniform_sampler import UniformWithReplacementSampler

    require(
        isinstance(engine, PrivacyEngine),
        "engine",
        type(engine).__name__,
        "a PrivacyEngine of Opacus",
        "pass the engine whose make_private was called",
    )
    require(
        isinstance(loader, DPDataLoader),
        "loader",
        type(loader).__name__,
        "a DPDataLoader, which samples by Poisson; the history does not tell how batches were made",
        "train with the loader that make_private(poisson_sampling=True) returns",
    )
    sampler = loader.batch_sampler
    require(
        type(sampler) is UniformWithReplacementSampler,
        "loader",
        type(sampler).__name__,
        "one whose batches are drawn by UniformWithReplacementSampler; that of distributed training"
        " leaves out empty batches, so that the number of steps shows them",
        "train in one process",
    )
    history: list[tuple[Any, Any, Any]] = list(engine.accountant.history)
    if any(rate != sampler.sample_rate for _, rate, _ in history):
        raise ParameterError(
            "loader",
            sampler.sample_rate,
            expected="the sampling rate of every step in the history; another loader, or batches "
            "that were added up, would be no Poisson samples",
            remedy="use one engine for each loader, and one step for each batch",
        )
    return history
