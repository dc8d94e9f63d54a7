"""Read the history of a training run with Opacus as a claim, and plan its publication.

The history holds noise multiplier, sampling rate and steps; it is read as Gaussian steps on Poisson
samples (theory, Poisson sampling). Opacus draws float noise, which never exceeds a few σ: what this
reveals is counted as an additional δ, which no accountant knows.
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
"""The largest float32 normal of torch on a CPU, √(2·24·ln 2); 5e9 draws did not exceed it."""

_GRID = 1 << 24
"""Uniform float32 numbers are multiples of 2^-24."""

_LARGEST_FACTOR = 2.0**24
"""The largest factor of the noise that `plan` suggests."""

History = Iterable[tuple[Any, Any, Any]]
"""Noise multiplier, sampling rate and number of steps, as an accountant of Opacus keeps them."""


def claim(engine: Any, loader: Any, *, trust_float_noise: bool = False) -> Claim:
    """Return the claim of a training run with Opacus, for added or removed rows.

    Use it after (or, with the planned history, before) training: `plan` then says whether one of N
    models, or a few numbers, can be published without δ.

    Parameters
    ----------
    engine : opacus.PrivacyEngine
        Whose accountant has the history; its ε and δ are not read.
    loader : opacus.data_loader.DPDataLoader
        The loader of the run. A history does not show whether batches were Poisson samples, so any
        other loader is refused.
    trust_float_noise : bool
        Whether to assume exact Gaussian noise. By default the claim has an additional δ of
        `float_floor`, at every ε.

    Returns
    -------
    Claim
        Caller-asserted, as are releases that rest on it.

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
        As in ``engine.accountant.history``. Rates are rounded up to those that torch samples with.
    trust_float_noise : bool
        As in `claim`.

    Returns
    -------
    Claim
        The claim, for added or removed rows.

    Examples
    --------
    >>> run = [(1.52, 0.01, 1000)]
    >>> round(history_claim(run, trust_float_noise=True).log_delta(4), 1)
    -68.2
    >>> round(history_claim(run).log_delta(4), 1)
    -13.4

    """
    steps = _steps(history)
    exact = _composed(steps)
    if as_flag(trust_float_noise, "trust_float_noise") or not steps:
        return exact
    float_leak = ApproxDP(0, float_floor(history=steps), neighbors=Neighbors.ADD_REMOVE)
    return simplest(transcript_claim([(exact, 1), (float_leak, 1)]))


def float_floor(history: History) -> float:
    """Return ln δ for the δ that float32 noise adds to a history, whatever ε is.

    A normal number of torch in float32 never exceeds 5.77. A row whose gradient has one coordinate
    moves a sum beyond that with probability P(5.77 - 1/σ < N ≤ 5.77) at each step that samples it,
    and is then detected. Other leaks of float noise are not counted, so this is about the smallest
    δ.

    Parameters
    ----------
    history : list of (noise_multiplier, sample_rate, steps)
        As in `history_claim`.

    Returns
    -------
    float
        At most 0. It was measured on CPUs, not on GPUs or in Opacus' secure mode.

    Examples
    --------
    >>> round(float_floor([(1.52, 0.01, 1000)]), 1), round(float_floor([(0.62, 0.01, 1000)]), 1)
    (-13.4, -8.7)

    """
    steps = _steps(history)

    def log_leak() -> arb:
        """Return ln of the sum over steps of the probability that float noise is detected."""
        total, root = arb(0), arb(2).sqrt()
        for sigma, rate, count in steps:
            moved = min(1 / sigma, Fraction(1000))  # larger moves are always detected
            near, far = (ball(_LARGEST_NORMAL - x) / root for x in (moved, Fraction(0)))
            total += ball(rate * count) * (near.erfc() - far.erfc()) / 2
        return total.log()

    return min(upper(log_leak), 0.0) if steps else -math.inf


def plan(
    engine: Any,
    loader: Any,
    *,
    space: Space,
    epsilon: Rational,
    mixing_probability: Rational = DEFAULT_MIXING_PROBABILITY,
    trust_float_noise: bool = False,
) -> Plan:
    """Return the plan that publishes the result of a training run without δ.

    Use it for the index of the best of N models, or for very few parameters; for a parameter
    vector the noise would have to be many times larger: use a study, or `LogisticRegression`.

    Parameters
    ----------
    engine, loader
        As in `claim`.
    space : Space
        The set of results that may be published, a space of `zerodelta.purification`.
    epsilon : int, float, Fraction or str
        The pure ε of the release.
    mixing_probability : number, default 1/100
        The largest probability of publishing a random element instead.
    trust_float_noise : bool
        As in `claim`.

    Returns
    -------
    Plan
        `plan.purify(value)` publishes. If the run cannot reach ε, a `GuaranteeError` states the
        ln δ that it needs, the ln δ of its accounting and of its float noise, and the noise
        multiplier that is enough.

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
    """Plan the channel for Opacus's history; if no noise is enough, say what would be."""
    options: dict[str, Any] = {"epsilon": epsilon, "mixing_probability": mixing}
    base = history_claim(history, trust_float_noise=trust)
    try:
        return plan_release(space, base=base, **options)
    except GuaranteeError:
        free = plan_release(space, **options)
        raise GuaranteeError(_needs(history, free, as_usable_epsilon(epsilon), trust)) from None


def _needs(history: list[Any], free: Plan, epsilon: Fraction, trusted: bool) -> str:
    """Return the message about a run with too little noise: needed δ, actual δ, and remedy."""
    needed, floor = free.log_delta, float_floor(history)
    exact = history_claim(history, trust_float_noise=True).log_delta(epsilon)
    factor = _factor(history, epsilon, needed)
    message = (
        f"the run cannot be published on this space: ln δ(ε) would have to be at most {needed:.4g}."
        f" With exact noise it is {exact:.4g}"
    )
    if math.isinf(factor):
        message += "; no noise multiplier is enough, as the accounting ends at order 10^6"
    elif factor > 1:
        message += f"; {factor:.3g} times the noise multiplier is enough"
    if not trusted and floor > needed:
        message += (
            f". Float32 noise leaves at least about {floor:.4g}, whatever the accountant states "
            "(pass trust_float_noise=True to ignore that)"
        )
    return (
        f"{message}. Publish a smaller result, such as one of a few models; for a vector of "
        "parameters use a study, or an estimator that perturbs the objective."
    )


def _factor(history: list[Any], epsilon: Fraction, needed: float) -> float:
    """Return the factor of all noise multipliers that is enough, with exact noise.

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


def _composed(steps: list[tuple[Fraction, Fraction, int]]) -> Claim:
    """Return the composed claim of all training steps, with Poisson subsampling."""
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
    """Return all entries of a history as exact numbers; refuse malformed ones."""
    try:
        entries = [tuple(entry) for entry in history]
    except TypeError:  # not iterable
        entries = [()]
    require(
        all(len(entry) == 3 for entry in entries),
        "history",
        expected="a list of (noise_multiplier, sample_rate, steps)",
        remedy="pass engine.accountant.history",
    )
    return [_step(*entry) for entry in entries]


def _step(multiplier: Any, rate: Any, steps: Any) -> tuple[Fraction, Fraction, int]:
    """Return one entry, its rate rounded up to that with which `torch.rand(n) < rate` samples."""
    sigma = as_positive(multiplier, "noise_multiplier")
    exact = as_positive(rate, "sample_rate")
    require(
        exact <= 1, "sample_rate", rate, "a probability, at most 1", "pass the fraction of a batch"
    )
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
        "a DPDataLoader, which draws Poisson samples; a history does not show how it was sampled",
        "train with the loader that make_private(poisson_sampling=True) returns",
    )
    sampler = loader.batch_sampler
    require(
        type(sampler) is UniformWithReplacementSampler,
        "loader",
        type(sampler).__name__,
        "one whose batches are drawn by UniformWithReplacementSampler; that of distributed training"
        " leaves out empty batches, so that the number of steps reveals them",
        "train in one process",
    )
    history: list[tuple[Any, Any, Any]] = list(engine.accountant.history)
    if any(rate != sampler.sample_rate for _, rate, _ in history):
        raise ParameterError(
            "loader",
            sampler.sample_rate,
            expected="the sampling rate of every step in the history; batches of another loader, "
            "or accumulated batches, are not Poisson samples",
            remedy="use one engine for each loader, and one step for each batch",
        )
    return history
