"""How claims are written in a certificate: the numbers of each kind, their domains, their words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, final, get_args

from zerodelta.errors import CertificateError, ParameterError
from zerodelta.privacy.claim import Claim
from zerodelta.privacy.claims import RDP, ZCDP, ApproxDP, GaussianDP, PureDP
from zerodelta.privacy.composition import Composed
from zerodelta.privacy.domains import (
    Bit,
    Domain,
    NotNegative,
    Order,
    between,
    cut,
    either,
    integers,
    list_of,
    one_of,
    read_numbers,
    row_of,
)
from zerodelta.privacy.neighbors import Neighbors
from zerodelta.privacy.readable import filled
from zerodelta.privacy.renyi import table_of
from zerodelta.privacy.step import Step


@final
@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of claim: its numbers' domains, how it is restored, and what it says."""

    fields: Mapping[str, Domain]
    build: Callable[..., Claim]
    sentence: str


def _rdp(orders: Any, values: Any, neighbors: Neighbors) -> RDP:
    return RDP(table_of(orders, values), neighbors=neighbors)


_NUMBER: Domain = get_args(NotNegative)[1]
_BIT: Domain = get_args(Bit)[1]
_LOG_DELTA = between(-(10**300), 0, ends="[]")
_ORDERS, _VALUES = list_of(get_args(Order)[1], fewest=1), list_of(_NUMBER, fewest=1)

KINDS: dict[str, Kind] = {
    "pure": Kind(
        {"epsilon": _NUMBER, "bounded_range": _BIT},
        PureDP,
        "pure differential privacy, ε = {epsilon}, δ = 0",
    ),
    "approximate": Kind(
        {"epsilon": _NUMBER, "log_delta": _LOG_DELTA},
        ApproxDP,
        "approximate differential privacy, ε = {epsilon}, ln δ = {log_delta}",
    ),
    "gaussian": Kind(
        {"mu_squared": _NUMBER}, GaussianDP, "Gaussian differential privacy, μ² = {mu_squared}"
    ),
    "zcdp": Kind({"rho": _NUMBER}, ZCDP, "zero-concentrated differential privacy, ρ = {rho}"),
    "rdp": Kind(
        {"orders": _ORDERS, "values": _VALUES},
        _rdp,
        "Rényi differential privacy with a stated curve",
    ),
    "composed": Kind(
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
    """Say in words what a claim with these numbers means."""
    told = {name: value for name, value in numbers.items() if name != "kind"}
    if not told.get("bounded_range"):
        told.pop("bounded_range", None)
    return filled(KINDS[str(numbers["kind"])].sentence, told)


def explain_claim(claim: Claim) -> str:
    """Say in words what is claimed."""
    return explain_numbers(Step(theorem="claim", numbers=claim.numbers()).numbers)
