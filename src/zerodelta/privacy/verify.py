"""Re-derive a certificate's claim from its steps, with outward rounding and no sampler."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from zerodelta.errors import CertificateError, ParameterError
from zerodelta.exact.rational import Rational, as_rational
from zerodelta.privacy.certificate import OS_ENTROPY, Certificate
from zerodelta.privacy.chain import (
    base_claim,
    check_form,
    check_last_gaussian,
    is_channel,
    proves_epsilon,
)
from zerodelta.privacy.claims import ZCDP, ApproxDP, Claim, GaussianDP, PureDP
from zerodelta.privacy.composition import simplest, zcdp_cost
from zerodelta.privacy.neighbors import Neighbors
from zerodelta.privacy.parameters import as_epsilon, as_flag
from zerodelta.privacy.step import Status, Step
from zerodelta.privacy.wording import equals, shown

__all__ = ["verify"]


def verify(
    certificate: Certificate | str,
    *,
    epsilon: Rational | None = None,
    neighbors: Neighbors | str = "replace",
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
        If given, the claim must be pure (δ = 0) and at most this ε. A float is the binary number it
        is: write "0.3" for three tenths.
    neighbors : "replace" or "add-remove"
        The relation you ask about. A claim for add-remove counts with twice its ε where replace is
        asked; a claim for replace is refused where add-remove is asked.
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
    relation = _as_neighbors(neighbors)
    limit = None if epsilon is None else as_epsilon(epsilon)
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
    for step in read.steps:
        if step.neighbors is not read.claim.neighbors:
            raise CertificateError(
                "mixed neighboring relations: the claim is for "
                f"{read.claim.neighbors.value}, step {step.theorem[:80]!r} for "
                f"{step.neighbors.value}."
            )
        check_form(step)
    try:
        _check(read)
    except CertificateError:
        raise
    except Exception as error:  # whatever numbers someone wrote into a file
        raise CertificateError(
            f"a step's numbers cannot be used: {type(error).__name__}: {error}."
        ) from error
    _check_asked(read, limit, relation, strict)
    return read.claim


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


def _as_neighbors(neighbors: Any) -> Neighbors:
    for relation in Neighbors:
        if neighbors is relation or (type(neighbors) is str and neighbors == relation.value):
            return relation
    raise ParameterError(
        "neighbors",
        neighbors,
        expected='"replace" or "add-remove"',
        remedy="name the relation that the guarantee has to be for",
    )


def _check_asked(
    certificate: Certificate, limit: Fraction | None, relation: Neighbors, strict: bool
) -> None:
    """Refuse a sound certificate that proves less than was asked for."""
    claim = certificate.claim
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


def _check(certificate: Certificate) -> None:
    *before, last = certificate.steps or (None,)
    if last is None:
        raise CertificateError("a step is missing: the certificate has no steps.")
    claim = certificate.claim
    _check_real_minimum(tuple(before), last)
    if is_channel(last):
        _check_channel(tuple(before), last, claim)
        return
    proven = _proven(certificate.steps, claim)
    if not _implies(proven, claim):
        raise CertificateError(f"the steps do not prove the claim: they give {proven!r}.")


def _check_real_minimum(before: tuple[Step, ...], last: Step) -> None:
    """Refuse a minimizer in real numbers (C9) that is not published by Theorem N, with its error.

    No computer holds that minimizer, so a certificate without N is about something else.
    """
    ideal = any(step.theorem.endswith("-objective-perturbation") for step in (*before, last))
    if ideal and (
        last.theorem != "numerical-error" or as_rational(last.numbers["error"], "error") <= 0
    ):
        raise CertificateError(
            "a step is missing: theorem C9 is about a real minimizer, which only Theorem N with a "
            "positive error publishes."
        )


def _proven(steps: tuple[Step, ...], claimed: Claim) -> Claim:
    """Return the simplest claim of the base steps; one step taken once keeps its own.

    For a claimed δ or ρ the history itself: one `PureDP` of many pure steps forgets their √k.
    """
    together = base_claim(steps)
    return together if type(claimed) in (ApproxDP, ZCDP) else simplest(together)


def _check_channel(before: tuple[Step, ...], channel: Step, claim: Claim) -> None:
    if type(claim) is not PureDP:
        raise CertificateError("a purified release claims pure DP; this one claims something else.")
    if claim.bounded_range:
        raise CertificateError("no channel proves a bounded range: claim plain pure DP.")
    base = base_claim(before) if before or channel.theorem != "profile-mixing" else None
    if channel.theorem == "gaussian-smoothing":
        check_last_gaussian(before, channel)
    if not proves_epsilon(channel, base, claim.exact_epsilon):
        raise CertificateError(
            f"the steps do not prove ε {equals(claim.exact_epsilon)}: the condition of theorem "
            f"{channel.theorem!r} fails there, so ε is understated."
        )


def _implies(proven: Claim, claimed: Claim) -> bool:
    """Tell whether the proven claim certainly gives the claimed one."""
    if type(claimed) is PureDP:
        return (
            type(proven) is PureDP
            and proven.exact_epsilon <= claimed.exact_epsilon
            and (proven.bounded_range or not claimed.bounded_range)
        )
    if type(claimed) is GaussianDP:
        return type(proven) is GaussianDP and proven.mu_squared <= claimed.mu_squared
    if type(claimed) is ZCDP:
        return zcdp_cost(proven) <= claimed.rho
    if type(claimed) is ApproxDP:
        return proven.log_delta(claimed.exact_epsilon) <= claimed.exact_log_delta
    return bool(proven.numbers() == claimed.numbers())
