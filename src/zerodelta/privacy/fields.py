"""The fields of every theorem and of every claim, each with its domain.

`verify` checks them all before it evaluates anything: a number outside its domain would be put into
an inequality that was not proved for it. What relates several fields to each other (a window of at
most so many cells, q_min·N <= 1) is checked beside the inequality, in `privacy/theorems/`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from zerodelta.errors import CertificateError
from zerodelta.privacy.domains import (
    Domain,
    above,
    at_least,
    between,
    either,
    flag,
    integers,
    list_of,
    one_of,
    row_of,
    sizes,
)

__all__ = ["CLAIMS", "COUNT", "FIELDS", "OWN_UNITS", "check_claim_numbers", "check_numbers"]

POSITIVE = above(0)
NOT_NEGATIVE = at_least(0)
WEIGHT = between(0, 1, ends="()")
COUNT = integers(1, 10**12)
"""How often; larger ones prove nothing about a program that has to end."""
DIMENSION = integers(1, 10**9)
ROWS = integers(1, 10**15)
CELLS = integers(1)
BOUND = integers(0)
SIZE = sizes()
ORDER = above(1, most=10**30)
BIT = one_of(0, 1)
NOISE = one_of("real", "rounded", "discrete")
LOG_DELTA = between(-(10**300), 0, ends="[]")
NORM = one_of(1, 2, "inf")
OWN_UNITS = "each column's own"
"""The quantum of K-norm noise on more columns than a list has entries."""

_TESTED: dict[str, Domain] = {"threshold": NOT_NEGATIVE, "noise": NOISE}
_SELECTED: dict[str, Domain] = {"sensitivity": POSITIVE, "scale": POSITIVE, "monotone": flag()}
_REGULARIZED: dict[str, Domain] = {"noise_epsilon": POSITIVE, "strength": POSITIVE}

FIELDS: dict[str, dict[str, Domain]] = {
    "rounded-laplace": {"sensitivity": POSITIVE, "scale": POSITIVE},
    "k-norm-noise": {
        "norm": one_of(1, 2, "inf", "counts", "blocks"),
        "quantum": either(POSITIVE, list_of(POSITIVE, fewest=1), one_of(OWN_UNITS)),
        "sensitivity": POSITIVE,
        "scale": POSITIVE,
    },
    "rounded-gaussian": {"sensitivity_squared": POSITIVE, "variance": POSITIVE},
    "adaptive-gaussian": {"mu_squared": NOT_NEGATIVE, "rounds": COUNT},
    "adaptive-zcdp": {"rho": NOT_NEGATIVE, "rounds": COUNT},
    "exponential-mechanism": _SELECTED,
    "permute-and-flip": _SELECTED,
    "sampling-without-replacement": {
        "rows": ROWS,
        "batch": ROWS,
        "sensitivity_squared": NOT_NEGATIVE,
        "variance": POSITIVE,
        "steps": COUNT,
    },
    "propose-test-release": {"test_epsilon": POSITIVE, "release_epsilon": NOT_NEGATIVE, **_TESTED},
    "noisy-local-sensitivity": {
        "bound_epsilon": POSITIVE,
        "release_epsilon": POSITIVE,
        "local_change": POSITIVE,
        **_TESTED,
    },
    "pure-propose-test-release": {
        "points": SIZE,
        "dimension": DIMENSION,
        "sensitivity": POSITIVE,
        "test_epsilon": POSITIVE,
        "release_epsilon": POSITIVE,
        **_TESTED,
    },
    "pure-local-sensitivity": {
        "points": SIZE,
        "dimension": DIMENSION,
        "bound_epsilon": POSITIVE,
        "release_epsilon": POSITIVE,
        "local_change": POSITIVE,
        "smallest_bound": POSITIVE,
        "weight": WEIGHT,
        **_TESTED,
    },
    "stable-mode": {"points": SIZE, "epsilon": POSITIVE, **_TESTED},
    "smooth-sensitivity": {
        "epsilon": POSITIVE,
        "degrees": at_least(1),
        "decay": between(0, 1, ends="()"),
        "ratio": POSITIVE,
    },
    "gaussian-sufficient-statistics": {
        "row_bound_squared": CELLS,
        "multiplier_squared": POSITIVE,
        "eigenvalue": BIT,
    },
    "k-norm-sufficient-statistics": {"target_weight": between(1, 2, ends="[]"), "scale": POSITIVE},
    "logistic-objective-perturbation": {**_REGULARIZED, "roundness": POSITIVE},
    "huber-objective-perturbation": _REGULARIZED,
    "softmax-objective-perturbation": {**_REGULARIZED, "classes": integers(2, 10**9)},
    "uniform-mixing": {"size": SIZE, "weight": WEIGHT},
    "prior-mixing": {
        "size": SIZE,
        "smallest_probability": between(0, 1, ends="(]"),
        "weight": WEIGHT,
    },
    "profile-mixing": {"epsilon": POSITIVE, "ratio": POSITIVE, "weight": WEIGHT},
    "grid-mixing": {"cells": CELLS, "dimension": DIMENSION, "weight": WEIGHT},
    "unequal-grid-mixing": {"sides": list_of(row_of(CELLS, DIMENSION), fewest=1), "weight": WEIGHT},
    "gaussian-net": {
        "dimension": DIMENSION,
        "bound": BOUND,
        "variance": POSITIVE,
        "weight": WEIGHT,
    },
    "laplace-net": {"dimension": DIMENSION, "bound": BOUND, "scale": POSITIVE, "weight": WEIGHT},
    "k-norm-kernel": {
        "dimension": DIMENSION,
        "diameter": POSITIVE,
        "scale": POSITIVE,
        "weight": WEIGHT,
    },
    "laplace-cube-kernel": {
        "dimension": DIMENSION,
        "side": POSITIVE,
        "scale": POSITIVE,
        "weight": WEIGHT,
    },
    "local-uniform-kernel": {
        "cells": CELLS,
        "window": CELLS,
        "dimension": DIMENSION,
        "weight": WEIGHT,
    },
    "gaussian-smoothing": {
        "dimension": DIMENSION,
        "variance": POSITIVE,
        "radius": POSITIVE,
        "sensitivity": POSITIVE,
        "order": ORDER,
        "mixing_variance": POSITIVE,
        "weight": WEIGHT,
    },
    "numerical-error": {"error": NOT_NEGATIVE, "scale": POSITIVE},
    "wasserstein-transport": {
        "norm": NORM,
        "dimension": DIMENSION,
        "diameter": POSITIVE,
        "scale": POSITIVE,
        "weight": WEIGHT,
        "base_epsilon": NOT_NEGATIVE,
    },
}
"""The fields of each theorem; a base step may also have a "count", a "given" one is a claim's."""

_ORDERS, _VALUES = list_of(ORDER, fewest=1), list_of(NOT_NEGATIVE, fewest=1)

CLAIMS: dict[str, dict[str, Domain]] = {
    "pure": {"epsilon": NOT_NEGATIVE, "bounded_range": BIT},
    "approximate": {"epsilon": NOT_NEGATIVE, "log_delta": LOG_DELTA},
    "gaussian": {"mu_squared": NOT_NEGATIVE},
    "zcdp": {"rho": NOT_NEGATIVE},
    "rdp": {"orders": _ORDERS, "values": _VALUES},
    "composed": {
        "mu_squared": NOT_NEGATIVE,
        "rho": NOT_NEGATIVE,
        "pure": list_of(row_of(NOT_NEGATIVE, BIT, integers(1, 10**30))),
        "rdp": either(row_of(), row_of(_ORDERS, _VALUES)),
        "log_delta": either(LOG_DELTA, one_of("-inf")),
    },
}
"""The fields of each kind of claim."""


def check_numbers(name: str, numbers: Mapping[str, Any], fields: Mapping[str, Domain]) -> None:
    """Refuse a step or claim that has other numbers than these, or one outside its domain."""
    if set(numbers) != set(fields):
        raise CertificateError(
            f"{name} has exactly the numbers {sorted(fields)}, not {sorted(numbers)}."
        )
    for field, domain in fields.items():
        if not domain.contains(numbers[field]):
            raise CertificateError(
                f"{name} needs {domain.expected} for {field!r}, and in the notation of a "
                f"certificate; it has {_cut(numbers[field])}."
            )


def check_claim_numbers(numbers: Mapping[str, Any]) -> None:
    """Refuse the written numbers of a claim that are not those of its kind."""
    stated = dict(numbers)
    kind = stated.pop("kind", None)
    if type(kind) is not str or kind not in CLAIMS:
        raise CertificateError(f"unknown kind of claim {_cut(kind)}: one of {', '.join(CLAIMS)}.")
    check_numbers(f"a claim of kind {kind!r}", stated, CLAIMS[kind])


def _cut(value: Any) -> str:
    """Return a short repr of what was written, without writing out what is long."""
    if type(value) is int and value.bit_length() > 128:
        return f"an integer of {value.bit_length()} bits"
    shown = repr(value[:60] if isinstance(value, (str, list)) else value)
    return shown if len(shown) <= 80 else shown[:77] + "..."
