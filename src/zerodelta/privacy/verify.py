"""Re-derive a certificate's claim from its steps, with outward rounding and no sampler."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from zerodelta.errors import CertificateError, ParameterError
from zerodelta.exact.rational import Rational
from zerodelta.privacy.certificate import OS_ENTROPY, Certificate
from zerodelta.privacy.claim import Claim
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.neighbors import Neighbors
from zerodelta.privacy.parameters import as_epsilon, as_flag, as_unit, decimal_meant
from zerodelta.privacy.proof import check_proof, proven_epsilon, units_of
from zerodelta.privacy.readable import equals, shown
from zerodelta.privacy.step import Part, Status
from zerodelta.privacy.theorems.group_privacy import Units
from zerodelta.privacy.theorems.registry import theorem_of
from zerodelta.privacy.theorems.theorem import Channel


def verify(
    certificate: Certificate | str,
    *,
    epsilon: Rational | None = None,
    neighbors: Neighbors | str = "replace",
    unit: str | None = None,
    proven: bool = False,
) -> Claim:
    """Return the claim that the certificate proves; raise `CertificateError` if it proves none.

    Use it before you rely on a release that somebody else made. It says that the steps prove the
    claim. It cannot say that these steps were run, and nobody has signed them.

    Parameters
    ----------
    certificate : Certificate or str
        The certificate, or its JSON text. Rejected are: an understated ε, a number outside the
        domain of its theorem, a missing step, an unknown theorem, mixed neighboring relations,
        and replayed test bits.
    epsilon : number or str, optional
        If given, the claim must be pure (δ = 0) and at most this ε. A float is the decimal that it
        prints as, or the binary number that it is if that is more.
    neighbors : "replace" or "add-remove"
        The relation you ask about. A claim for add-remove counts with twice its ε where replace is
        asked; a claim for replace is refused where add-remove is asked.
    unit : str, optional
        Whose data is protected: None asks about one row. A certificate that protects a unit, such
        as all rows of one "customer_id", is refused unless that unit is named here.
    proven : bool
        If True, refuse a certificate with an asserted or idealized step.

    Returns
    -------
    Claim
        The claim of the certificate, for the neighbors that it names.

    Examples
    --------
    >>> import zerodelta as zd
    >>> release = zd.mean([1.0, 2.0, 3.0], bounds=(0, 4), epsilon=1)
    >>> zd.verify(release.certificate, epsilon=1)
    PureDP(epsilon=1, bounded_range=0, neighbors=replace)

    """
    relation, asked = as_neighbors(neighbors), as_unit(unit)
    limit = None if epsilon is None else max(as_epsilon(epsilon), decimal_meant(epsilon, "epsilon"))
    strict = as_flag(proven, "proven")
    read = _read(certificate)
    if read.digest != read.fingerprint():
        raise CertificateError(
            "the digest does not match: the certificate was changed after it was issued."
        )
    if read.randomness != OS_ENTROPY:
        raise CertificateError(
            f"drawn from {read.randomness[:80]!r}: only a release drawn from the operating "
            "system's entropy is private; run it again without test bits."
        )
    check_parts(read)
    _check_asked(read, limit, relation, asked, strict)
    return read.claim


def check_parts(certificate: Certificate) -> None:
    """Refuse a certificate whose parts do not prove its claim: what `verify` and `issue` share."""
    for part in certificate.parts:
        _check_steps(part, certificate.claim.neighbors)
    try:
        _check(certificate)
    except CertificateError:
        raise
    except Exception as error:  # whatever numbers someone wrote into a file
        raise CertificateError(
            f"a step's numbers cannot be used: {type(error).__name__}: {error}."
        ) from error


def _check_steps(part: Part, claimed: Neighbors) -> None:
    """Refuse a step for another relation than the claim's, or with a number out of its domain."""
    theorems = [theorem_of(step) for step in part.steps]  # before any number is used
    last = len(theorems) - 1
    last -= last > 0 and isinstance(theorems[last], Units)
    for place, step in enumerate(part.steps):
        channel = theorems[last]
        # only P3 makes a claim for replace of steps for add-remove
        groups = isinstance(channel, Channel) and channel.from_add_remove and place < last
        if step.neighbors is not (Neighbors.ADD_REMOVE if groups else claimed):
            raise CertificateError(
                "mixed neighboring relations: the claim is for "
                f"{claimed.value}, step {step.theorem[:80]!r} for {step.neighbors.value}."
            )


def _read(certificate: Certificate | str) -> Certificate:
    """Return the certificate as it reads when written, so that an object is judged by its text."""
    if type(certificate) is str:
        return Certificate.from_json(certificate)
    if type(certificate) is not Certificate:
        raise CertificateError(
            f"this is no certificate but a {type(certificate).__name__}: pass a Certificate, "
            "or its JSON as text."
        )
    certificate.check_types()
    return Certificate.from_json(certificate.to_json())


def as_neighbors(neighbors: Any) -> Neighbors:
    """Return the relation that is meant, by its value or its name."""
    for relation in Neighbors:
        if neighbors is relation or (type(neighbors) is str and neighbors == relation.value):
            return relation
    raise ParameterError(
        "neighbors",
        neighbors,
        expected='"replace" or "add-remove"',
        remedy="name the relation that the guarantee has to be for",
    )


def _check(certificate: Certificate) -> None:
    """Refuse a certificate whose parts do not prove the claim."""
    claim, parts = certificate.claim, certificate.parts
    if not parts:
        raise CertificateError("a step is missing: the certificate has no steps.")
    for part in parts:
        if (units_of(part.steps) is None) is not (certificate.unit is None):
            raise CertificateError(
                "a unit is protected by parts with theorem 'units', and by no others: "
                f"the certificate protects {_protected(certificate.unit)}."
            )
    most = {units.max_rows for part in parts if (units := units_of(part.steps)) is not None}
    if len(most) > 1:
        told = " and ".join(map(str, sorted(most)))
        raise CertificateError(f"its parts are about units of different size: at most {told} rows.")
    if len(parts) == 1:
        if parts[0].epsilon is not None:
            raise CertificateError("the only part of a certificate proves the claim, no other ε.")
        check_proof(parts[0].steps, claim)
        return
    if type(claim) is not PureDP or claim.bounded_range:
        raise CertificateError("several parts add up to pure DP; this certificate claims more.")
    total = sum((proven_epsilon(part, claim) for part in parts), Fraction(0))
    if total > claim.exact_epsilon:
        raise CertificateError(
            f"the parts do not prove ε {equals(claim.exact_epsilon)}: they add up to "
            f"{shown(total)}, so ε is understated."
        )


def _check_asked(
    certificate: Certificate,
    limit: Fraction | None,
    relation: Neighbors,
    unit: str | None,
    strict: bool,
) -> None:
    """Refuse a sound certificate that proves less than was asked for."""
    claim = certificate.claim
    if certificate.unit != unit:
        raise CertificateError(
            f"the claim protects {_protected(certificate.unit)}, and {_protected(unit)} was asked."
        )
    if relation is Neighbors.ADD_REMOVE and claim.neighbors is Neighbors.REPLACE:
        raise CertificateError(
            "the claim is for replace neighbors, which says nothing about adding or removing a row."
        )
    if strict and certificate.status is not Status.PROVEN:
        raise CertificateError(
            f"not everything is proven: the weakest step is {certificate.status.value}."
        )
    if limit is None:
        return
    if type(claim) is not PureDP:
        raise CertificateError("the claim is not pure: it allows a δ above 0.")
    twice = relation is not claim.neighbors
    cost = claim.exact_epsilon * (2 if twice else 1)
    if cost > limit:
        said = " (twice that of add-remove)" if twice else ""
        raise CertificateError(
            f"the claim is too weak: ε {equals(cost)}{said}, and at most {shown(limit)} was asked."
        )


def _protected(unit: str | None) -> str:
    return "a row" if unit is None else f"a unit, all rows of one {unit!r}"
