"""Certificates of schema 1, as versions before 2026-11 wrote them: one chain, and short labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from zerodelta.errors import CertificateError
from zerodelta.privacy.step import digest_of

SCHEMA_1 = "zerodelta/certificate/1"

_LABELS = {
    "R-laplace": "rounded-laplace",
    "R-gaussian": "rounded-gaussian",
    "K-norm": "k-norm-noise",
    "R2": "adaptive-gaussian",
    "R2-zcdp": "adaptive-zcdp",
    "EM": "exponential-mechanism",
    "PF": "permute-and-flip",
    "WOR": "sampling-without-replacement",
    "PTR": "propose-test-release",
    "LS": "noisy-local-sensitivity",
    "C3": "pure-propose-test-release",
    "C4": "pure-local-sensitivity",
    "C5": "stable-mode",
    "SS": "smooth-sensitivity",
    "C6": "gaussian-sufficient-statistics",
    "C10.5": "k-norm-sufficient-statistics",
    "C9-logistic": "logistic-objective-perturbation",
    "C9-huber": "huber-objective-perturbation",
    "C9-softmax": "softmax-objective-perturbation",
    "B1": "uniform-mixing",
    "B1-prior": "prior-mixing",
    "B1-profile": "profile-mixing",
    "B2": "grid-mixing",
    "B2-sides": "unequal-grid-mixing",
    "R-v": "gaussian-net",
    "R-vi": "laplace-net",
    "K": "k-norm-kernel",
    "B4-cube": "laplace-cube-kernel",
    "B4-window": "local-uniform-kernel",
    "S2": "gaussian-smoothing",
    "N": "numerical-error",
    "W": "wasserstein-transport",
    "given": "given",
}
_FIELDS = {("B4-window", "window"): "kernel_cells"}
_STATUSES = {"proven": "proven", "asserted": "asserted", "idealised": "idealized"}


def upgraded(data: Mapping[str, Any], schema: str) -> dict[str, Any]:
    """Return what a certificate of schema 1 says, as schema 2 writes it; its digest must match."""
    body = {name: value for name, value in data.items() if name != "digest"}
    if data["digest"] != digest_of(body):
        raise CertificateError(
            "the digest does not match: the certificate was changed after it was issued."
        )
    if "parts" in body or "unit" in body["claim"]:
        raise CertificateError("a certificate of schema 1 has neither parts nor a unit.")
    steps = [_step(entry) for entry in body.pop("steps")]
    body["schema"] = schema
    body["claim"] = {**body["claim"], "unit": None}
    body["parts"] = [{"part": "1 of 1", "steps": steps}]
    return {**body, "digest": digest_of(body)}


def _step(entry: Mapping[str, Any]) -> dict[str, Any]:
    label, status = entry["theorem"], entry["status"]
    if label not in _LABELS:
        raise CertificateError(f"unknown theorem {str(label)[:80]!r}: schema 1 had no such label.")
    if status not in _STATUSES:
        raise CertificateError(f"unknown status {str(status)[:80]!r}: schema 1 had no such word.")
    numbers = {_FIELDS.get((label, name), name): n for name, n in dict(entry["numbers"]).items()}
    return {**entry, "theorem": _LABELS[label], "status": _STATUSES[status], "numbers": numbers}
