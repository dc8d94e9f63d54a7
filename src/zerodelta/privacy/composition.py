"""Compose the claims of several mechanisms on the same data (theory R2, B6).

All steps are first sorted into one `Composed` claim, which keeps each family (pure, Gaussian, zCDP,
Rényi) in the form that loses nothing. `simplest` then names the simplest claim that says the same.
All rules hold for adaptively chosen mechanisms.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias, final, get_args

from zerodelta.errors import CertificateError, GuaranteeError, ParameterError, require
from zerodelta.exact.logs import gaussian_log_delta_upper, log_sum_upper, log_upper
from zerodelta.exact.rational import Rational, as_count
from zerodelta.privacy.claims import RDP, ZCDP, ApproxDP, Claim, GaussianDP, PureDP
from zerodelta.privacy.parameters import (
    Neighbors,
    as_at_least_zero,
    as_epsilon,
    as_flag,
    as_log_delta,
    common_neighbors,
    sum_upper,
)
from zerodelta.privacy.readable import filled
from zerodelta.privacy.renyi import (
    Curve,
    LinearCurve,
    PureCurve,
    SumCurve,
    best_order,
    log_delta_at_order,
    pure_rho,
    table_of,
)
from zerodelta.privacy.steps import (
    Bit,
    FieldDomain,
    NotNegative,
    Order,
    Step,
    between,
    cut,
    either,
    integers,
    list_of,
    one_of,
    read_numbers,
    row_of,
)
from zerodelta.value import value

PureSteps: TypeAlias = tuple[tuple[Fraction, bool, int], ...]
"""Pure steps as (ε, bounded range, count), each pair (ε, bounded range) once, in order."""


@value(repr=False)
class Composed(Claim):
    """Gaussian, zCDP, pure and Rényi steps together, and a probability of total failure.

    An (ε, δ)-DP step is a pure step that fails with probability δ: every such pair is
    post-processing of "reveal with probability δ, else randomized response with ε".
    """

    mu_squared: Fraction = Fraction(0)
    rho: Fraction = Fraction(0)
    pure: PureSteps = ()
    rdp: RDP | None = None
    log_failure: float = -math.inf
    neighbors: Neighbors = Neighbors.REPLACE

    def log_delta(self, epsilon: Rational) -> float:
        """Return the smallest bound that is known, plus the probability of failure.

        One bound follows from the sum of the Rényi curves. Without zCDP and Rényi steps, another is
        the exact Gaussian profile at ε minus the pure steps' total ε (end of Lemma R2).
        """
        t = as_epsilon(epsilon)
        bound = self._renyi_log_delta(t)
        gaussian_epsilon = t - self.pure_epsilon
        if self.rdp is None and self.rho == 0 and gaussian_epsilon >= 0:
            bound = min(bound, gaussian_log_delta_upper(self.mu_squared, gaussian_epsilon))
        return min(log_sum_upper((bound, self.log_failure)), 0.0)

    @property
    def pure_epsilon(self) -> Fraction:
        """The ε of all pure steps together, by basic composition."""
        return sum((epsilon * count for epsilon, _, count in self.pure), Fraction(0))

    @property
    def zcdp_rho(self) -> Fraction:
        """The ρ of the Gaussian, zCDP and pure steps: μ²/2 + ρ + Σ ε·tanh(ε/2) (or ε²/8)."""
        pure = (count * pure_rho(epsilon, ranged) for epsilon, ranged, count in self.pure)
        return self.mu_squared / 2 + self.rho + sum(pure, Fraction(0))

    def curve(self) -> Curve:
        """Return the Rényi curve of everything but the failures."""
        parts: list[Curve] = [PureCurve(*steps) for steps in self.pure]
        if self.mu_squared or self.rho:
            parts.append(LinearCurve(self.mu_squared / 2 + self.rho))
        if self.rdp is not None:
            parts.append(self.rdp.curve)
        return SumCurve(tuple(parts or [LinearCurve(Fraction(0))]))

    def of_group(self, size: int) -> Composed:
        """Return the claim for neighbors that differ in `size` rows instead of one (theory V).

        >>> Composed(mu_squared=Fraction(2), rho=Fraction(1)).of_group(3).mu_squared
        Fraction(18, 1)
        """
        if self.rdp is not None or self.log_failure > -math.inf:
            raise GuaranteeError(
                "a guarantee for several rows follows from pure, Gaussian and zCDP steps only; one "
                "of these steps has a δ or a Rényi curve."
            )
        return Composed(
            mu_squared=size**2 * self.mu_squared,
            rho=size**2 * self.rho,
            # a bounded range is not claimed for several rows: the step counts as a plain pure one
            pure=_merged([(size * epsilon, False, count) for epsilon, _, count in self.pure]),
            neighbors=self.neighbors,
        )

    def _renyi_log_delta(self, epsilon: Fraction) -> float:
        """Return ln δ at an ε from the Rényi curve, at the best order; 0 if unbounded."""
        curve = self.curve()
        order = best_order(curve, epsilon)
        divergence = curve.value(order)
        if divergence is None:
            return 0.0
        if self.rdp is not None:
            self.rdp.at(order)  # so that `numbers` tabulates the order that this answer rests on
        return log_delta_at_order(order, divergence, epsilon)

    def numbers(self) -> dict[str, Any]:
        """Return kind "composed" and all families; "rdp" is [] or [orders, values]."""
        table = [] if self.rdp is None else list(self.rdp.table().values())
        return {
            "kind": "composed",
            "mu_squared": self.mu_squared,
            "rho": self.rho,
            "pure": [[epsilon, int(ranged), count] for epsilon, ranged, count in self.pure],
            "rdp": table,
            "log_delta": self.log_failure,
        }

    @staticmethod
    def restore(
        *, mu_squared: Any, rho: Any, pure: Any, rdp: Any, log_delta: Any, neighbors: Neighbors
    ) -> Composed:
        """Return the claim with these `numbers`."""
        no_failure = log_delta in (-math.inf, "-inf")
        return Composed(
            mu_squared=as_at_least_zero(mu_squared, "mu_squared"),
            rho=as_at_least_zero(rho, "rho"),
            pure=_merged(_triples(pure)),
            rdp=RDP(table_of(*_list_of(rdp, 2)), neighbors=neighbors) if rdp else None,
            log_failure=-math.inf if no_failure else as_log_delta(log_delta),
            neighbors=neighbors,
        )


CLAIM_TYPES = (PureDP, ApproxDP, GaussianDP, ZCDP, RDP, Composed)
"""The classes that a proof may rest on; a subclass could override their answers."""


def compose(*claims: Claim, count: int = 1) -> Claim:
    """Return the claim of several mechanisms on the same data together.

    Use it to account for steps of your own; a `Study` composes by itself. Pure claims add up to a
    PureDP, Gaussian ones in quadrature to a GaussianDP, zCDP and Gaussian to a ZCDP, Rényi with any
    of these to an RDP; (ε, δ) with (ε, δ) or pure adds both numbers. Any other mix is a `Composed`.

    Parameters
    ----------
    *claims : PureDP, ApproxDP, GaussianDP, ZCDP or RDP
        One for each mechanism. Compose all steps in one call: pure claims that were already added
        up count as one large step.
    count : int
        The number of times that all of them are run.

    Returns
    -------
    Claim
        The simplest claim that loses nothing.

    Notes
    -----
    **Guarantee**: it holds for adaptively chosen steps. A GaussianDP of the *planned* total also
    holds when the shares themselves are chosen adaptively (Lemma R2): state the plan's total
    instead of composing what was used.
    **Neighbors**: those of the claims, which must be for one relation.

    Examples
    --------
    >>> compose(GaussianDP(3), GaussianDP(4)) == GaussianDP(5)
    True
    >>> compose(PureDP("1/10"), count=5).exact_epsilon
    Fraction(1, 2)

    """
    repetitions = as_count(count, "count", minimum=1)
    only_claims = bool(claims) and all(isinstance(claim, Claim) for claim in claims)
    require(
        only_claims, "claims", claims, "at least one claim", "pass zd.purification.PureDP(1), say"
    )
    if len(claims) == 1 and repetitions == 1:
        return claims[0]
    return simplest(transcript_claim((claim, repetitions) for claim in claims))


def transcript_claim(counted_claims: Iterable[tuple[Claim, int]]) -> Composed:
    """Return the composition of claims with their counts, in the form that loses nothing.

    k internal pure steps keep their √k profile here, which one `PureDP` of their sum forgets.

    >>> many = transcript_claim([(PureDP("1/100", bounded_range=True), 1000)])
    >>> many.log_delta(1) < compose(PureDP("1/100"), count=1000).log_delta(1)
    True
    """
    steps = list(counted_claims)
    relation = common_neighbors(claim.neighbors for claim, _ in steps)
    return _sum([_repeated(_as_composed(claim), count) for claim, count in steps], relation)


def zcdp_cost(claim: Claim) -> Fraction:
    """Return the smallest known ρ for which the claim implies ρ-zCDP.

    >>> zcdp_cost(GaussianDP(1)), zcdp_cost(PureDP(1, bounded_range=True))
    (Fraction(1, 2), Fraction(1, 8))
    """
    composed = _as_composed(claim)
    if composed.rdp is not None or composed.log_failure > -math.inf:
        raise GuaranteeError(
            f"{claim!r} implies no zCDP: it has a δ or is known at some Rényi orders only; state "
            "the mechanism as PureDP, GaussianDP or ZCDP."
        )
    return composed.zcdp_rho


def gaussian_share(claim: Claim) -> Fraction:
    """Return μ² + 2ρ of the claim's Gaussian and zCDP steps: the largest μ² of one such step.

    >>> gaussian_share(GaussianDP(2)), gaussian_share(PureDP(9))
    (Fraction(4, 1), Fraction(0, 1))
    """
    composed = _as_composed(claim)
    return composed.mu_squared + 2 * composed.rho


def _as_composed(claim: Claim) -> Composed:
    """Return any claim as a `Composed` one that says the same."""
    relation = claim.neighbors
    if type(claim) is Composed:
        return claim
    if type(claim) is PureDP:
        steps = _merged([(claim.exact_epsilon, claim.bounded_range, 1)])
        return Composed(pure=steps, neighbors=relation)
    if type(claim) is ApproxDP:
        return Composed(
            pure=_merged([(claim.exact_epsilon, False, 1)]),
            log_failure=claim.exact_log_delta,
            neighbors=relation,
        )
    if type(claim) is GaussianDP:
        return Composed(mu_squared=claim.mu_squared, neighbors=relation)
    if type(claim) is ZCDP:
        return Composed(rho=claim.rho, neighbors=relation)
    if type(claim) is RDP:
        return Composed(rdp=claim, neighbors=relation)
    raise ParameterError(
        "claim",
        claim,
        expected="PureDP, ApproxDP, ZCDP, RDP, GaussianDP or a composition of them",
        remedy="state the mechanism's guarantee as one of these",
    )


def _sum(claims: list[Composed], neighbors: Neighbors) -> Composed:
    """Add up claims family by family."""
    curves = tuple(claim.rdp.curve for claim in claims if claim.rdp is not None)
    return Composed(
        mu_squared=sum((claim.mu_squared for claim in claims), Fraction(0)),
        rho=sum((claim.rho for claim in claims), Fraction(0)),
        pure=_merged([steps for claim in claims for steps in claim.pure]),
        rdp=RDP(SumCurve(curves), neighbors=neighbors) if curves else None,
        log_failure=log_sum_upper(claim.log_failure for claim in claims),
        neighbors=neighbors,
    )


def _repeated(claim: Composed, count: int) -> Composed:
    """Return a claim composed with itself `count` times; counts are multiplied nowhere else."""
    rdp = claim.rdp and RDP(SumCurve((claim.rdp.curve,), count), neighbors=claim.neighbors)
    failure = claim.log_failure
    return Composed(
        mu_squared=count * claim.mu_squared,
        rho=count * claim.rho,
        pure=tuple((epsilon, ranged, count * steps) for epsilon, ranged, steps in claim.pure),
        rdp=rdp,
        log_failure=sum_upper(failure, log_upper(count)) if failure > -math.inf else failure,
        neighbors=claim.neighbors,
    )


def simplest(composed: Composed) -> Claim:
    """Return the simplest claim that says the same; the composed claim itself if none does."""
    relation, failure = composed.neighbors, min(composed.log_failure, 0.0)
    if not (composed.mu_squared or composed.rho or composed.rdp):
        if failure > -math.inf:
            return ApproxDP(composed.pure_epsilon, failure, neighbors=relation)
        # one step keeps its bounded range; a sum of several has none
        single = len(composed.pure) == 1 and composed.pure[0][1:] == (True, 1)
        return PureDP(composed.pure_epsilon, bounded_range=single, neighbors=relation)
    if failure > -math.inf:
        return composed
    if composed.rdp is not None:
        return RDP(composed.curve(), neighbors=relation)
    if composed.pure:
        return composed
    if composed.rho == 0:
        return GaussianDP(mu_squared=composed.mu_squared, neighbors=relation)
    return ZCDP(composed.zcdp_rho, neighbors=relation)


def _merged(steps: list[tuple[Fraction, bool, int]]) -> PureSteps:
    """Count equal steps together; steps of ε = 0 are left out."""
    totals: Counter[tuple[Fraction, bool]] = Counter()
    for epsilon, ranged, count in steps:
        if epsilon > 0:
            totals[epsilon, ranged] += count
    return tuple((epsilon, ranged, count) for (epsilon, ranged), count in sorted(totals.items()))


def _list_of(value: Any, length: int) -> list[Any]:
    if isinstance(value, list) and len(value) == length:
        return list(value)
    raise ParameterError(
        "numbers",
        value,
        expected=f"a list of {length}",
        remedy="pass what claim.numbers() returned",
    )


def _triples(value: Any) -> list[tuple[Fraction, bool, int]]:
    triples = [_list_of(row, 3) for row in (value if isinstance(value, list) else [value])]
    return [
        (as_epsilon(epsilon), as_flag(ranged, "bounded_range"), as_count(count, "count", minimum=1))
        for epsilon, ranged, count in triples
    ]


# -- Claims as numbers of a certificate: for each kind their names, their domains, a sentence -----


@final
@dataclass(frozen=True, slots=True)
class ClaimKind:
    """One kind of claim: the domains of its numbers, its constructor, and a sentence about it."""

    fields: Mapping[str, FieldDomain]
    build: Callable[..., Claim]
    sentence: str


def _rdp(orders: Any, values: Any, neighbors: Neighbors) -> RDP:
    return RDP(table_of(orders, values), neighbors=neighbors)


_NUMBER: FieldDomain = get_args(NotNegative)[1]
_BIT: FieldDomain = get_args(Bit)[1]
_LOG_DELTA = between(-(10**300), 0, ends="[]")
_ORDERS, _VALUES = list_of(get_args(Order)[1], minimum=1), list_of(_NUMBER, minimum=1)

KINDS: dict[str, ClaimKind] = {
    "pure": ClaimKind(
        {"epsilon": _NUMBER, "bounded_range": _BIT},
        PureDP,
        "pure differential privacy, ε = {epsilon}, δ = 0",
    ),
    "approximate": ClaimKind(
        {"epsilon": _NUMBER, "log_delta": _LOG_DELTA},
        ApproxDP,
        "approximate differential privacy, ε = {epsilon}, ln δ = {log_delta}",
    ),
    "gaussian": ClaimKind(
        {"mu_squared": _NUMBER}, GaussianDP, "Gaussian differential privacy, μ² = {mu_squared}"
    ),
    "zcdp": ClaimKind({"rho": _NUMBER}, ZCDP, "zero-concentrated differential privacy, ρ = {rho}"),
    "rdp": ClaimKind(
        {"orders": _ORDERS, "values": _VALUES},
        _rdp,
        "Rényi differential privacy with a stated curve",
    ),
    "composed": ClaimKind(
        {
            "mu_squared": _NUMBER,
            "rho": _NUMBER,
            "pure": list_of(row_of(_NUMBER, _BIT, integers(1, 10**30))),
            "rdp": either(row_of(), row_of(_ORDERS, _VALUES)),
            "log_delta": either(_LOG_DELTA, one_of("-inf")),
        },
        Composed.restore,
        "a composition of several claims",
    ),
}


def check_claim_numbers(numbers: Mapping[str, Any]) -> None:
    """Refuse the written numbers of a claim that are not those of its kind."""
    stated = dict(numbers)
    kind = stated.pop("kind", None)
    if type(kind) is not str or kind not in KINDS:
        raise CertificateError(f"unknown kind of claim {cut(kind)}: one of {', '.join(KINDS)}.")
    read_numbers(f"a claim of kind {kind!r}", stated, KINDS[kind].fields)


def claim_from_numbers(numbers: Mapping[str, Any], neighbors: Neighbors) -> Claim:
    """Return the claim whose `numbers()` these are, exact or as written in a certificate.

    >>> claim_from_numbers({"kind": "zcdp", "rho": "1/200"}, Neighbors.REPLACE).log_delta(1)
    -55.11136691684097
    """
    stated = dict(numbers)
    kind = KINDS.get(str(stated.pop("kind", None)))
    if kind is None or set(stated) != set(kind.fields):
        raise ParameterError(
            "numbers",
            dict(numbers),
            expected=f"exactly the numbers of a claim of kind {', '.join(KINDS)}",
            remedy="pass what claim.numbers() returned",
        )
    return kind.build(**stated, neighbors=neighbors)


def explain_numbers(numbers: Mapping[str, Any]) -> str:
    """Return one sentence that states a claim with these numbers."""
    shown = {name: value for name, value in numbers.items() if name != "kind"}
    if not shown.get("bounded_range"):
        shown.pop("bounded_range", None)
    return filled(KINDS[str(numbers["kind"])].sentence, shown)


def explain_claim(claim: Claim) -> str:
    """Return one sentence about a claim."""
    return explain_numbers(Step(theorem="claim", numbers=claim.numbers()).numbers)
