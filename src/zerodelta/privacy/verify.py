"""Re-derive a certificate's claim from its steps, with outward rounding and no sampler."""

from __future__ import annotations

from zerodelta.errors import CertificateError
from zerodelta.exact.rational import as_rational
from zerodelta.privacy.certificate import OS_ENTROPY, Certificate
from zerodelta.privacy.chain import base_claim, check_last_gaussian, is_channel, proves_epsilon
from zerodelta.privacy.claims import ZCDP, ApproxDP, Claim, GaussianDP, PureDP
from zerodelta.privacy.composition import simplest, zcdp_cost
from zerodelta.privacy.step import Step
from zerodelta.privacy.wording import equals

__all__ = ["verify"]


def verify(certificate: Certificate | str) -> bool:
    """Return True if the certificate proves its claim; raise `CertificateError` if it does not.

    Accepts a `Certificate` or its JSON text. Rejected are: an understated ε, a changed number, a
    missing step, an unknown theorem, mixed neighbouring relations, and replayed test bits.
    """
    if isinstance(certificate, str):
        certificate = Certificate.from_json(certificate)
    if not isinstance(certificate, Certificate):
        raise CertificateError(
            f"this is no certificate but a {type(certificate).__name__}: pass a Certificate, "
            "or its JSON as text."
        )
    if certificate.digest != certificate.fingerprint():
        raise CertificateError(
            "the digest does not match: the certificate was changed after it was issued."
        )
    if certificate.randomness != OS_ENTROPY:
        raise CertificateError(
            f"drawn from {certificate.randomness!r}: only a release drawn from the operating "
            "system's entropy is private; run it again without test bits."
        )
    for step in certificate.steps:
        if step.neighbors is not certificate.claim.neighbors:
            raise CertificateError(
                "mixed neighbouring relations: the claim is for "
                f"{certificate.claim.neighbors.value}, step {step.theorem!r} for "
                f"{step.neighbors.value}."
            )
    try:
        _check(certificate)
    except CertificateError:
        raise
    except Exception as error:  # whatever numbers someone wrote into a file
        raise CertificateError(
            f"a step's numbers cannot be used: {type(error).__name__}: {error}."
        ) from error
    return True


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
    """Refuse a minimiser in real numbers (C9) that is not published by Theorem N, with its error.

    No computer holds that minimiser, so a certificate without N is about something else.
    """
    ideal = any(step.theorem.startswith("C9-") for step in (*before, last))
    if ideal and (last.theorem != "N" or as_rational(last.numbers["error"], "error") <= 0):
        raise CertificateError(
            "a step is missing: theorem C9 is about a real minimiser, which only Theorem N with a "
            "positive error publishes."
        )


def _proven(steps: tuple[Step, ...], claimed: Claim) -> Claim:
    """Return the simplest claim of the base steps; one step taken once keeps its own.

    For a claimed δ or ρ the history itself: one `PureDP` of many pure steps forgets their √k.
    """
    together = base_claim(steps)
    return together if isinstance(claimed, (ApproxDP, ZCDP)) else simplest(together)


def _check_channel(before: tuple[Step, ...], channel: Step, claim: Claim) -> None:
    if not isinstance(claim, PureDP):
        raise CertificateError("a purified release claims pure DP; this one claims something else.")
    if claim.bounded_range:
        raise CertificateError("no channel proves a bounded range: claim plain pure DP.")
    base = base_claim(before) if before or channel.theorem != "B1-profile" else None
    if channel.theorem == "S2":
        check_last_gaussian(before, channel)
    if not proves_epsilon(channel, base, claim.exact_epsilon):
        raise CertificateError(
            f"the steps do not prove ε {equals(claim.exact_epsilon)}: the condition of theorem "
            f"{channel.theorem!r} fails there, so ε is understated."
        )


def _implies(proven: Claim, claimed: Claim) -> bool:
    """Tell whether the proven claim certainly gives the claimed one."""
    if isinstance(claimed, PureDP):
        return (
            isinstance(proven, PureDP)
            and proven.exact_epsilon <= claimed.exact_epsilon
            and (proven.bounded_range or not claimed.bounded_range)
        )
    if isinstance(claimed, GaussianDP):
        return isinstance(proven, GaussianDP) and proven.mu_squared <= claimed.mu_squared
    if isinstance(claimed, ZCDP):
        return zcdp_cost(proven) <= claimed.rho
    if isinstance(claimed, ApproxDP):
        return proven.log_delta(claimed.exact_epsilon) <= claimed.exact_log_delta
    return bool(proven.numbers() == claimed.numbers())
