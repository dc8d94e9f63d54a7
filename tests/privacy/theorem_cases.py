"""One certificate for every label of the registry, tight: at the smallest claim its steps prove."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import zerodelta as zd
from privacy.chains import CHAINS, data_of, resealed
from zerodelta.privacy.chain import base_claim, proves_epsilon
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.composition import simplest
from zerodelta.privacy.step import Step
from zerodelta.privacy.theorems.smooth_sensitivity import largest_noise_ratio
from zerodelta.privacy.theorems.testing import (
    bounded_release_threshold,
    free_mode_threshold,
    free_test_threshold,
)


def alone(theorem: str, **numbers: Any) -> zd.Certificate:
    """Return the certificate of one base step, with exactly its own claim."""
    steps = (Step(theorem=theorem, numbers=numbers),)
    return zd.Certificate(claim=simplest(base_claim(steps)), steps=steps)


def minimum(theorem: str, **numbers: Any) -> zd.Certificate:
    """Return the certificate of a real minimizer, published with Theorem N."""
    ideal = Step(theorem=theorem, numbers=numbers)
    published = Step(theorem="N", numbers={"error": "1/1000", "scale": 1})
    claim = base_claim((ideal,))
    total = claim.pure_epsilon + Fraction(1, 500)
    assert proves_epsilon(published, claim, total)
    return zd.Certificate(claim=PureDP(total), steps=(ideal, published))


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

CASES: dict[str, zd.Certificate] = {
    **{
        label: CHAINS[name].certificate()
        for label, name in {
            "given": "Finite",
            "R-laplace": "R-laplace",
            "K-norm": "K-norm",
            "R-gaussian": "R-gaussian",
            "EM": "EM",
            "PF": "PF",
            "WOR": "WOR",
            "B1": "Subsets",
            "B1-prior": "prior",
            "B1-profile": "profile",
            "B2": "Box",
            "B2-sides": "Box with unequal sides",
            "R-v": "Ball l2",
            "R-vi": "Ball l1",
            "K": "K",
            "B4-cube": "B4-cube",
            "B4-window": "window",
            "S2": "S2",
            "N": "N",
            "W": "Algorithm 1",
        }.items()
    },
    "R2": alone("R2", mu_squared="1/100", rounds=7),
    "R2-zcdp": alone("R2-zcdp", rho="1/100", rounds=7),
    "PTR": alone("PTR", test_epsilon="1/2", release_epsilon="1/3", threshold=20, noise="rounded"),
    "LS": alone(
        "LS",
        bound_epsilon="1/2",
        release_epsilon="1/3",
        local_change=2,
        threshold=30,
        noise="discrete",
    ),
    "C3": alone("C3", **PROPOSED, threshold=free_test_threshold(**PROPOSED), noise="real"),
    "C4": alone(
        "C4", **BOUNDED, threshold=bounded_release_threshold(**BOUNDED, noise="real"), noise="real"
    ),
    "C5": alone(
        "C5",
        points=9,
        epsilon="1/2",
        threshold=free_mode_threshold(points=9, epsilon="1/2"),
        noise="real",
    ),
    "SS": alone("SS", **SMOOTH, ratio=largest_noise_ratio(**SMOOTH)),
    "C6": alone("C6", row_bound_squared=100, multiplier_squared=400, eigenvalue=1),
    "C10.5": alone("C10.5", target_weight="3/2", scale=5),
    "C9-logistic": minimum("C9-logistic", noise_epsilon="3/2", strength="1/4", roundness="1/2"),
    "C9-huber": minimum("C9-huber", noise_epsilon="3/2", strength="1/4"),
    "C9-softmax": minimum("C9-softmax", noise_epsilon="3/2", strength="1/4", classes=3),
}


def changed(certificate: zd.Certificate, place: int, field: str, value: Any) -> str:
    """Return the certificate as a forger writes it, one number of one step exchanged."""
    data = data_of(certificate)
    data["steps"][place]["numbers"][field] = value
    return resealed(data)


def accepts(text: str) -> bool:
    try:
        zd.verify(text)
    except zd.CertificateError:
        return False
    return True
