"""One certificate for every label of the registry, tight: at the smallest claim its steps prove."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, get_type_hints

import zerodelta as zd
from completeness.noises import NOISES
from privacy.chains import CHAINS, data_of, resealed
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.composition import simplest
from zerodelta.privacy.steps import Step
from zerodelta.privacy.theorems import THEOREMS
from zerodelta.privacy.theorems.testing import (
    PureLocalSensitivity,
    PureProposeTestRelease,
    StableMode,
    largest_noise_ratio,
)
from zerodelta.privacy.verify import base_claim, proves_epsilon


def alone(theorem: str, **numbers: Any) -> zd.records.Certificate:
    """Return the certificate of one base step, with exactly its own claim."""
    steps = (Step(theorem=theorem, numbers=numbers),)
    return zd.records.Certificate(claim=simplest(base_claim(steps)), steps=steps)


def minimum(theorem: str, **numbers: Any) -> zd.records.Certificate:
    """Return the certificate of a real minimizer, published with Theorem N."""
    ideal = Step(theorem=theorem, numbers=numbers)
    published = Step(theorem="numerical-error", numbers={"error": "1/1000", "scale": 1})
    claim = base_claim((ideal,))
    total = claim.pure_epsilon + Fraction(1, 500)
    assert proves_epsilon(published, claim, total)
    return zd.records.Certificate(claim=PureDP(total), steps=(ideal, published))


TESTED: dict[str, Any] = {"points": 101, "dimension": 2, "release_epsilon": "1/2"}
PROPOSED: dict[str, Any] = {**TESTED, "sensitivity": 5, "test_epsilon": "1/3"}
BOUNDED: dict[str, Any] = {
    **TESTED,
    "bound_epsilon": "1/3",
    "local_change": 2,
    "smallest_bound": 3,
    "weight": "1/50",
}
SMOOTH: dict[str, Any] = {"epsilon": 1, "degrees": 3, "decay": "9/10"}

CASES: dict[str, zd.records.Certificate] = {
    **{each.label: alone(each.label, **each.numbers) for each in NOISES},
    **{
        label: CHAINS[name].certificate()
        for label, name in {
            "given": "Finite",
            "rounded-laplace": "rounded-laplace",
            "k-norm-noise": "k-norm-noise",
            "rounded-gaussian": "rounded-gaussian",
            "exponential-mechanism": "exponential-mechanism",
            "permute-and-flip": "permute-and-flip",
            "sampling-without-replacement": "sampling-without-replacement",
            "uniform-mixing": "Subsets",
            "prior-mixing": "prior",
            "profile-mixing": "profile",
            "grid-mixing": "Box",
            "unequal-grid-mixing": "Box with unequal sides",
            "gaussian-net": "Ball l2",
            "laplace-net": "Ball l1",
            "k-norm-kernel": "k-norm-kernel",
            "laplace-cube-kernel": "laplace-cube-kernel",
            "local-uniform-kernel": "window",
            "gaussian-smoothing": "gaussian-smoothing",
            "numerical-error": "numerical-error",
            "parallel-blocks": "parallel-blocks",
            "wasserstein-transport": "Algorithm 1",
        }.items()
    },
    "adaptive-gaussian": alone("adaptive-gaussian", mu_squared="1/100", rounds=7),
    "adaptive-zcdp": alone("adaptive-zcdp", rho="1/100", rounds=7),
    "public": alone("public"),
    "partition-laplace": alone("partition-laplace", cells=24, row_total=10, unit_rows=3, scale=500),
    "matrix-laplace": alone("matrix-laplace", dimension=4, squared_length=10, scale=30),
    "partition-k-norm": alone("partition-k-norm", cells=24, row_total=10, unit_rows=3, scale=500),
    "block-k-norm": alone(
        "block-k-norm", blocks=12, dimension=4, row_bound=10, unit_rows=3, scale=500
    ),
    "key-counts": alone("key-counts", keys=26**10, up="3/4", down="1/5"),
    "joint-top-k": alone("joint-top-k", chosen=3, sensitivity=1, scale=50, monotone=False),
    "joint-quantiles": alone("joint-quantiles", rate="1/8", levels=9, least_gap="1/20", groups=12),
    "propose-test-release": alone(
        "propose-test-release",
        test_epsilon="1/2",
        release_epsilon="1/3",
        threshold=20,
        noise="rounded",
    ),
    "noisy-local-sensitivity": alone(
        "noisy-local-sensitivity",
        bound_epsilon="1/2",
        release_epsilon="1/3",
        local_change=2,
        threshold=30,
        noise="discrete",
    ),
    "pure-propose-test-release": alone(
        "pure-propose-test-release",
        **PROPOSED,
        threshold=PureProposeTestRelease.smallest(**PROPOSED).threshold,
        noise="real",
    ),
    "pure-local-sensitivity": alone(
        "pure-local-sensitivity",
        **BOUNDED,
        threshold=PureLocalSensitivity.smallest(**BOUNDED, noise="real").threshold,
        noise="real",
    ),
    "stable-mode": alone(
        "stable-mode",
        points=9,
        epsilon="1/2",
        threshold=StableMode.smallest(points=9, epsilon="1/2").threshold,
        noise="real",
    ),
    "smooth-sensitivity": alone(
        "smooth-sensitivity", **SMOOTH, ratio=largest_noise_ratio(**SMOOTH)
    ),
    "gaussian-sufficient-statistics": alone(
        "gaussian-sufficient-statistics",
        row_bound_squared=100,
        multiplier_squared=400,
        eigenvalue=1,
    ),
    "k-norm-sufficient-statistics": alone(
        "k-norm-sufficient-statistics", target_weight="3/2", scale=5
    ),
    "logistic-objective-perturbation": minimum(
        "logistic-objective-perturbation", noise_epsilon="3/2", strength="1/4", roundness="1/2"
    ),
    "huber-objective-perturbation": minimum(
        "huber-objective-perturbation", noise_epsilon="3/2", strength="1/4"
    ),
    "softmax-objective-perturbation": minimum(
        "softmax-objective-perturbation", noise_epsilon="3/2", strength="1/4", classes=3
    ),
}


def changed(certificate: zd.records.Certificate, place: int, field: str, value: Any) -> str:
    """Return the certificate as a forger writes it, one number of one step exchanged."""
    data = data_of(certificate)
    data["parts"][0]["steps"][place]["numbers"][field] = value
    return resealed(data)


WHOLE = {
    *("rows", "batch", "steps", "rounds", "count", "points", "size", "dimension", "cells"),
    *("kernel_cells", "bound", "classes", "row_bound_squared", "eigenvalue"),
    *("row_total", "unit_rows", "blocks", "row_bound"),
}
"""Fields that are integers in every theorem."""


def is_whole(label: str, field: str) -> bool:
    """Tell whether a field is an integer, by its name or its annotation; others are rationals."""
    annotated = label in THEOREMS and get_type_hints(THEOREMS[label]).get(field) is int
    return annotated or field in WHOLE


def accepts(text: str) -> bool:
    try:
        zd.verify(text)
    except zd.errors.CertificateError:
        return False
    return True


LESS, MORE, BOTH, FREE = -1, 1, 0, None
"""Which direction needs a weaker claim; both; or neither, because it only describes."""

WORSE: dict[str, dict[str, int | None]] = {
    **{
        each.label: each.worse
        | ({"count": MORE} if "count" in CASES[each.label].steps[0].numbers else {})
        for each in NOISES
    },
    "matrix-laplace": {"dimension": FREE, "squared_length": MORE, "scale": LESS},
    "k-norm-noise": {"norm": FREE, "quantum": FREE, "sensitivity": MORE, "scale": LESS},
    "rounded-gaussian": {"sensitivity_squared": MORE, "variance": LESS, "count": MORE},
    "adaptive-gaussian": {"mu_squared": MORE, "rounds": FREE},
    "adaptive-zcdp": {"rho": MORE, "rounds": FREE},
    "exponential-mechanism": {"sensitivity": MORE, "scale": LESS, "monotone": LESS, "count": MORE},
    "permute-and-flip": {"sensitivity": MORE, "scale": LESS, "monotone": FREE},
    "public": {},
    # from two cells on their number is free (tests/mechanisms/test_partitions_are_private.py)
    "partition-laplace": {"cells": FREE, "row_total": MORE, "unit_rows": MORE, "scale": LESS},
    "partition-k-norm": {"cells": FREE, "row_total": MORE, "unit_rows": MORE, "scale": LESS},
    "block-k-norm": {
        "blocks": FREE,
        "dimension": FREE,
        "row_bound": MORE,
        "unit_rows": MORE,
        "scale": LESS,
    },
    "key-counts": {"keys": FREE, "up": MORE, "down": MORE},
    "joint-top-k": {"chosen": FREE, "sensitivity": MORE, "scale": LESS, "monotone": FREE},
    "parallel-blocks": {"blocks": FREE, "unit_rows": MORE},
    "joint-quantiles": {"rate": MORE, "levels": FREE, "least_gap": LESS, "groups": FREE},
    "sampling-without-replacement": {
        "rows": LESS,
        "batch": MORE,
        "sensitivity_squared": MORE,
        "variance": LESS,
        "steps": MORE,
    },
    "propose-test-release": {
        "test_epsilon": BOTH,
        "release_epsilon": MORE,
        "threshold": LESS,
        "noise": FREE,
    },
    "noisy-local-sensitivity": {
        "bound_epsilon": BOTH,
        "release_epsilon": MORE,
        "local_change": MORE,
        "threshold": LESS,
        "noise": FREE,
    },
    # more dimensions or a larger sensitivity spread the noise: each point is less likely
    "pure-propose-test-release": {
        "points": MORE,
        "dimension": LESS,
        "sensitivity": LESS,
        "test_epsilon": BOTH,
        "release_epsilon": MORE,
        "threshold": LESS,
        "noise": FREE,
    },
    "pure-local-sensitivity": {
        "points": MORE,
        "dimension": LESS,
        "bound_epsilon": BOTH,
        "release_epsilon": MORE,
        "local_change": MORE,
        "smallest_bound": LESS,
        "threshold": LESS,
        "weight": LESS,
        "noise": FREE,
    },
    "stable-mode": {"points": MORE, "epsilon": BOTH, "threshold": LESS, "noise": FREE},
    "smooth-sensitivity": {"epsilon": BOTH, "degrees": FREE, "decay": LESS, "ratio": MORE},
    "gaussian-sufficient-statistics": {
        "row_bound_squared": LESS,
        "multiplier_squared": LESS,
        "eigenvalue": MORE,
    },
    "k-norm-sufficient-statistics": {"target_weight": MORE, "scale": LESS},
    "logistic-objective-perturbation": {"noise_epsilon": MORE, "strength": LESS, "roundness": LESS},
    "huber-objective-perturbation": {"noise_epsilon": MORE, "strength": LESS},
    "softmax-objective-perturbation": {"noise_epsilon": MORE, "strength": LESS, "classes": MORE},
    "uniform-mixing": {"size": MORE, "weight": LESS},
    "prior-mixing": {"size": FREE, "smallest_probability": LESS, "weight": LESS},
    "profile-mixing": {"epsilon": MORE, "ratio": MORE, "weight": LESS},
    "grid-mixing": {"cells": MORE, "dimension": MORE, "weight": LESS},
    "unequal-grid-mixing": {"sides": MORE, "weight": LESS},
    "gaussian-net": {"dimension": MORE, "bound": MORE, "variance": BOTH, "weight": LESS},
    "laplace-net": {"dimension": MORE, "bound": MORE, "scale": BOTH, "weight": LESS},
    "k-norm-kernel": {"dimension": MORE, "diameter": MORE, "scale": LESS, "weight": LESS},
    "laplace-cube-kernel": {"dimension": MORE, "side": MORE, "scale": LESS, "weight": LESS},
    "local-uniform-kernel": {
        "cells": MORE,
        "kernel_cells": LESS,
        "dimension": MORE,
        "weight": LESS,
    },
    "gaussian-smoothing": {
        "dimension": MORE,
        "variance": LESS,
        "radius": MORE,
        "sensitivity": MORE,
        "order": BOTH,
        "mixing_variance": BOTH,
        "weight": LESS,
    },
    "numerical-error": {"error": MORE, "scale": LESS},
    "wasserstein-transport": {
        "norm": MORE,
        "dimension": MORE,
        "diameter": MORE,
        "scale": LESS,
        "weight": LESS,
        "base_epsilon": BOTH,
    },
}
