"""Read events of Google's dp-accounting, which JAX-Privacy's plans are too, as claims.

An event describes the mechanisms that were run; only this description is read, never an
accountant's ε or δ: they underflow to 0, end at e^-35, and may be for other neighbors. Events
without a theorem here are refused by name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from zerodelta.errors import ParameterError, require, require_extra
from zerodelta.exact.logs import ball, log_upper, upper
from zerodelta.exact.rational import as_count, as_positive, as_rational
from zerodelta.privacy.claims import RDP, ZCDP, Claim, GaussianDP, PureDP
from zerodelta.privacy.composition import simplest, transcript_claim
from zerodelta.privacy.parameters import Neighbors, as_at_least_zero, as_relation
from zerodelta.privacy.renyi import Curve
from zerodelta.privacy.theorems.subsampling import PoissonGaussianCurve, SubsampledGaussianCurve
from zerodelta.value import value

Counted = Counter[Claim]
"""Claims with the number of times each one was spent."""


def claim(event: Any, *, neighbors: Any) -> Claim:
    """Return the exact claim that a `DpEvent` of dp-accounting satisfies for the given neighbors.

    Use it for a run, or a planned run, of another library: `zd.plan(space, epsilon=…, base=claim)`
    then says whether its δ can be removed. JAX-Privacy's `plan.dp_event` is such an event; for
    added or removed rows its groups must be drawn with `PartitionType.INDEPENDENT`.

    Parameters
    ----------
    event : dp_accounting.DpEvent
        Gaussian, Laplace and discrete Laplace noise, zCDP, randomized response, and compositions;
        Gaussian or pure events on a Poisson sample, for add-remove only; Gaussian events on a
        sample without replacement, for replace only. All others are refused, with the reason.
    neighbors : Neighbors or dp_accounting.NeighboringRelation
        The relation of the claim. There is no default: the same event costs more if a
        row is replaced (Gaussian noise four times the μ², Laplace noise twice the ε).

    Returns
    -------
    Claim
        Caller-asserted, as are releases that rest on it. The noise multiplier is, as
        dp-accounting has it, the noise over the norm of one row.

    Examples
    --------
    >>> from dp_accounting import GaussianDpEvent, SelfComposedDpEvent  # doctest: +SKIP
    >>> event = SelfComposedDpEvent(GaussianDpEvent(10.0), 4)  # doctest: +SKIP
    >>> claim(event, neighbors=Neighbors.REPLACE)  # doctest: +SKIP
    GaussianDP(mu_squared=4/25, neighbors=replace)

    """
    require_extra("dp_accounting", "dp-accounting")
    relation = _relation(neighbors)
    counted = _claims_in(event, relation)
    if not counted:
        return PureDP(0, neighbors=relation)
    if sum(counted.values()) == 1:
        return next(iter(counted))
    parts = transcript_claim(counted.items())
    # many small pure steps have a better profile than one pure step of their total ε
    return parts if parts.pure and parts.rdp is None else simplest(parts)


def _relation(neighbors: Any) -> Neighbors:
    """Return the `Neighbors` of a relation; refuse zeroing a row out, which has none."""
    from dp_accounting import NeighboringRelation

    names = {
        NeighboringRelation.ADD_OR_REMOVE_ONE: Neighbors.ADD_REMOVE,
        NeighboringRelation.REPLACE_ONE: Neighbors.REPLACE,
    }
    if isinstance(neighbors, NeighboringRelation):
        if neighbors in names:
            return names[neighbors]
        raise ParameterError(
            "neighbors",
            neighbors.name,
            expected="add-or-remove-one or replace-one: other relations have no claims here",
            remedy="pass Neighbors.ADD_REMOVE or Neighbors.REPLACE",
        )
    return as_relation(neighbors)


def _claims_in(event: Any, relation: Neighbors) -> Counted:
    """Return the claims of all mechanisms in a tree of compositions, with their counts."""
    from dp_accounting import ComposedDpEvent, NoOpDpEvent, SelfComposedDpEvent

    total: Counted = Counter()
    waiting = [(event, 1)]  # a list, as a tree may be deeper than Python's stack
    while waiting:
        part, count = waiting.pop()
        if type(part) is ComposedDpEvent:
            require(
                isinstance(part.events, Sequence),
                "events",
                type(part.events).__name__,
                "a list of events",
                "pass ComposedDpEvent([...])",
            )
            waiting += [(inner, count) for inner in part.events]
        elif type(part) is SelfComposedDpEvent:
            waiting.append((part.event, count * as_count(part.count, "count")))
        elif type(part) is not NoOpDpEvent and count:
            for spent, times in _mechanism(part, relation).items():
                total[spent] += count * times
    return total


def _mechanism(event: Any, relation: Neighbors) -> Counted:
    """Return the claims of one event that is not a composition."""
    from dp_accounting import DpEvent

    name = type(event).__name__
    genuine = isinstance(event, DpEvent) and type(event).__module__ == "dp_accounting.dp_event"
    if genuine and name in _CONVERTED:
        return _CONVERTED[name](event, relation)
    reason = _REFUSED.get(name, "this event is unknown") if genuine else "this is not one of them"
    raise ParameterError(
        "event",
        name,
        expected=f"an event of dp-accounting that has a theorem here ({reason})",
        remedy="state its claim yourself, such as zd.ApproxDP(...)",
    )


def _refusal(event: Any, relation: Neighbors, expected: str, remedy: str) -> ParameterError:
    shown = f"{type(event).__name__}, {relation.value}"
    return ParameterError("event", shown, expected=expected, remedy=remedy)


def _gaussian(event: Any, relation: Neighbors) -> Counted:
    """Convert noise N(0, z²C²) on a sum of vectors of norm at most C; a replaced one moves 2C."""
    multiplier = as_positive(event.noise_multiplier, "noise_multiplier")
    return _one(
        GaussianDP(mu_squared=(_norms_moved(relation) / multiplier) ** 2, neighbors=relation)
    )


def _laplace(event: Any, relation: Neighbors) -> Counted:
    multiplier = as_positive(event.noise_multiplier, "noise_multiplier")
    return _one(PureDP(_norms_moved(relation) / multiplier, neighbors=relation))


def _discrete_laplace(event: Any, relation: Neighbors) -> Counted:
    rate = as_positive(event.noise_parameter, "noise_parameter")
    moved = _norms_moved(relation) * as_positive(event.sensitivity, "sensitivity")
    return _one(PureDP(rate * moved, neighbors=relation))


def _norms_moved(relation: Neighbors) -> int:
    """Return the sensitivity of a sum of rows, in norms of one row."""
    return 2 if relation is Neighbors.REPLACE else 1


def _concentrated(event: Any, relation: Neighbors) -> Counted:
    """Return a zCDP event as a claim: ZCDP, or a Rényi curve that is a line if ξ > 0."""
    slope, offset = as_at_least_zero(event.rho, "rho"), as_at_least_zero(event.xi, "xi")
    if offset == 0:
        return _one(ZCDP(slope, neighbors=relation))
    return _one(RDP(_Line(slope=slope, offset=offset), neighbors=relation))


def _randomized_response(event: Any, relation: Neighbors) -> Counted:
    """Convert randomized response: e^ε is (1 - p + p/k)/(p/k), true answer over another answer."""
    noise = as_rational(event.noise_parameter, "noise_parameter")
    buckets = as_count(event.num_buckets, "num_buckets", minimum=1)
    if relation is not Neighbors.REPLACE:
        raise _refusal(
            event,
            relation,
            "replaced rows: the presence of an answer is visible",
            "pass neighbors=Neighbors.REPLACE",
        )
    if not 0 < noise <= 1:
        raise _refusal(
            event, relation, "a noise parameter in (0, 1], as 0 hides nothing", "pass more noise"
        )
    odds = 1 + buckets * (1 - noise) / noise
    return _one(PureDP(Fraction(log_upper(odds)), neighbors=relation))


def _poisson(event: Any, relation: Neighbors) -> Counted:
    """Convert steps on a sample of which each row is part by a coin (theory, Poisson sampling)."""
    rate = as_at_least_zero(event.sampling_probability, "sampling_probability")
    if rate > 1:
        raise ParameterError(
            "sampling_probability",
            event.sampling_probability,
            expected="a probability, at most 1",
            remedy="pass the fraction of rows in a sample",
        )
    if relation is not Neighbors.ADD_REMOVE:
        raise _refusal(
            event,
            relation,
            "added or removed rows, for which the theorem on Poisson samples holds",
            "pass neighbors=Neighbors.ADD_REMOVE; for replaced rows sample without replacement",
        )
    inner = _claims_in(event.event, relation)
    if rate == 0 or not inner:
        return Counter()
    if rate == 1:
        return inner
    if all(type(part) is GaussianDP for part in inner):
        curve = PoissonGaussianCurve(probability=rate, mu_squared=_mu_squared(inner))
        return _one(RDP(curve, neighbors=relation))
    if all(type(part) is PureDP for part in inner):
        epsilon = sum((_epsilon(part) * count for part, count in inner.items()), Fraction(0))
        amplified = upper(lambda: (ball(rate) * ball(epsilon).expm1()).log1p())
        return _one(PureDP(min(Fraction(amplified), epsilon), neighbors=relation))
    raise _refusal(event, relation, *_INSIDE)


def _without_replacement(event: Any, relation: Neighbors) -> Counted:
    """Convert Gaussian steps on a batch of fixed size (Lemma WOR)."""
    rows = as_count(event.source_dataset_size, "source_dataset_size", minimum=1)
    batch = as_count(event.sample_size, "sample_size", minimum=1)
    if batch > rows:
        raise ParameterError(
            "sample_size",
            batch,
            expected=f"at most source_dataset_size = {rows}",
            remedy="draw a smaller sample",
        )
    if relation is not Neighbors.REPLACE:
        raise _refusal(
            event,
            relation,
            "replaced rows, for which Lemma WOR holds with a public number of rows",
            "pass neighbors=Neighbors.REPLACE; for added or removed rows use a Poisson sample",
        )
    inner = _claims_in(event.event, relation)
    if batch == rows or not inner:
        return inner
    if not all(type(part) is GaussianDP for part in inner):
        raise _refusal(event, relation, *_INSIDE)
    curve = SubsampledGaussianCurve(rows=rows, batch=batch, mu_squared=_mu_squared(inner))
    return _one(RDP(curve, neighbors=relation))


_INSIDE = (
    "Gaussian events in a sample (in a Poisson sample also pure events without Gaussian ones): "
    "there is no theorem here for other events, for both together or for samples of samples",
    "sample for each of them, or state the claim of all together yourself",
)


def _mu_squared(inner: Counted) -> Fraction:
    return sum(
        (part.mu_squared * count for part, count in inner.items() if type(part) is GaussianDP),
        Fraction(0),
    )


def _epsilon(pure: Claim) -> Fraction:
    return pure.exact_epsilon if type(pure) is PureDP else Fraction(0)


def _one(spent: Claim) -> Counted:
    return Counter([spent])


@value
class _Line(Curve):
    """The Rényi curve R(a) = ξ + ρa of zero-concentrated DP with an offset."""

    slope: Fraction
    offset: Fraction

    def value(self, order: Fraction) -> Fraction:
        """Return R at an order, exactly."""
        return self.offset + self.slope * order


_CONVERTED: dict[str, Callable[[Any, Neighbors], Counted]] = {
    "DiscreteLaplaceDpEvent": _discrete_laplace,
    "GaussianDpEvent": _gaussian,
    "LaplaceDpEvent": _laplace,
    "PoissonSampledDpEvent": _poisson,
    "RandomizedResponseDpEvent": _randomized_response,
    "SampledWithoutReplacementDpEvent": _without_replacement,
    "ZCDpEvent": _concentrated,
}
"""Converters by the name of the event; `_claims_in` takes compositions and `NoOpDpEvent` apart."""

_REFUSED = {
    "DpEvent": "it does not describe a mechanism",
    "MixtureOfGaussiansDpEvent": "mixtures of Gaussians have no exact profile here",
    "NonPrivateDpEvent": "it is not private",
    "RepeatAndSelectDpEvent": "the best of a random number of runs has no theorem here",
    "SampledWithReplacementDpEvent": "a row may be drawn several times",
    "SingleEpochTreeAggregationDpEvent": "trees have no theorem here",
    "TruncatedSubsampledGaussianDpEvent": "a truncated sample is not drawn by independent coins",
    "UnsupportedDpEvent": "it stands for an unknown mechanism",
}
"""Reasons for refusals by the name of the event."""
