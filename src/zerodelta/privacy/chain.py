"""What each step of a certificate proves: base steps give claims, a channel step removes δ.

Every entry calls the inequality in `privacy/theorems/`, so a certificate is judged by the functions
that calibrated it, from its numbers alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, TypeAlias

from zerodelta.errors import CertificateError, GuaranteeError
from zerodelta.exact.arb import ball, lower
from zerodelta.exact.rational import as_count, as_rational
from zerodelta.privacy.claims import Claim, GaussianDP, PureDP, claim_from_numbers
from zerodelta.privacy.composition import Composed, history, simplest, zcdp_cost
from zerodelta.privacy.neighbors import Neighbors
from zerodelta.privacy.step import Step
from zerodelta.privacy.subsampling import subsampled_gaussian
from zerodelta.privacy.theorems.mechanisms import (
    gaussian_mu_squared,
    k_norm_epsilon,
    laplace_epsilon,
    selection_epsilon,
)
from zerodelta.privacy.theorems.mixing import (
    as_weight,
    gaussian_net_mass,
    grid_mass,
    kernel_mass,
    laplace_cube_mass,
    laplace_net_mass,
    largest_log_delta,
    prior_mass,
    uniform_mass,
    window_mass,
)
from zerodelta.privacy.theorems.smoothing import GaussianStep, smoothing_slack
from zerodelta.privacy.theorems.transport import (
    log_transport_radius,
    numerical_error_epsilon,
    product_laplace_radius,
)

__all__ = ["base_claim", "is_channel", "proves_epsilon"]

Numbers: TypeAlias = Mapping[str, Any]


def base_claim(steps: tuple[Step, ...]) -> Composed:
    """Return what the base steps prove together."""
    if not steps:
        raise CertificateError("a step is missing: no base mechanism is stated; add its step.")
    return history(_single(step) for step in steps)


def _single(step: Step) -> tuple[Claim, int]:
    """Return the claim of one base step, and how often it was taken."""
    if step.theorem not in _BASE:
        raise CertificateError(f"unknown theorem {step.theorem!r}: no base step has that label.")
    numbers = dict(step.numbers)
    count = as_count(numbers.pop("count", 1), "count", minimum=1)
    return _BASE[step.theorem](numbers, step.neighbors), count


def is_channel(step: Step) -> bool:
    """Tell whether the step turns a base claim into pure ε-DP."""
    return step.theorem in _MASS or step.theorem in _OTHER


def proves_epsilon(step: Step, claim: Composed | None, epsilon: Fraction) -> bool:
    """Tell whether the channel step, on a base with `claim`, certainly proves pure ε-DP."""
    if step.theorem == "B1-profile":
        return _profile(step.numbers, epsilon)
    if claim is None:
        raise CertificateError("a step is missing: the channel has no base mechanism before it.")
    if step.theorem in _MASS:
        allowed = largest_log_delta(
            epsilon=epsilon,
            weight=step.numbers["weight"],
            log_mass=_MASS[step.theorem](step.numbers),
        )
        return claim.log_delta(epsilon) <= allowed
    if step.theorem in _OTHER:
        return _OTHER[step.theorem](step.numbers, claim, epsilon)
    raise CertificateError(f"unknown theorem {step.theorem!r}: no channel has that label.")


_BASE: dict[str, Callable[[Numbers, Neighbors], Claim]] = {
    "given": claim_from_numbers,
    "R-laplace": lambda n, relation: PureDP(
        laplace_epsilon(n["sensitivity"], n["scale"]), neighbors=relation
    ),
    "K-norm": lambda n, relation: PureDP(
        k_norm_epsilon(n["sensitivity"], n["scale"]), neighbors=relation
    ),
    "R-gaussian": lambda n, relation: GaussianDP(
        mu_squared=gaussian_mu_squared(n["sensitivity_squared"], n["variance"]), neighbors=relation
    ),
    "EM": lambda n, relation: PureDP(
        selection_epsilon(n["sensitivity"], n["scale"], n["monotone"]),
        bounded_range=True,
        neighbors=relation,
    ),
    "PF": lambda n, relation: PureDP(
        selection_epsilon(n["sensitivity"], n["scale"], n["monotone"]), neighbors=relation
    ),
    "WOR": lambda n, relation: _subsampled(n, relation),
}

_MASS: dict[str, Callable[[Numbers], float]] = {
    "B1": lambda n: uniform_mass(n["size"]),
    "B1-prior": lambda n: prior_mass(n["smallest_probability"]),
    "B2": lambda n: grid_mass(cells=n["cells"], dimension=n["dimension"]),
    "R-v": lambda n: gaussian_net_mass(
        dimension=n["dimension"], bound=n["bound"], variance=n["variance"]
    ),
    "R-vi": lambda n: laplace_net_mass(
        dimension=n["dimension"], bound=n["bound"], scale=n["scale"]
    ),
    "K": lambda n: kernel_mass(dimension=n["dimension"], diameter=n["diameter"], scale=n["scale"]),
    "B4-cube": lambda n: laplace_cube_mass(
        dimension=n["dimension"], side=n["side"], scale=n["scale"]
    ),
    "B4-window": lambda n: window_mass(
        cells=n["cells"], window=n["window"], dimension=n["dimension"]
    ),
}


def _subsampled(numbers: Numbers, neighbors: Neighbors) -> Claim:
    if neighbors is not Neighbors.REPLACE:
        raise GuaranteeError("Lemma WOR holds for the replace-one relation only.")
    return subsampled_gaussian(
        rows=numbers["rows"],
        batch=numbers["batch"],
        sensitivity_squared=numbers["sensitivity_squared"],
        variance=numbers["variance"],
        steps=numbers["steps"],
    )


def _profile(numbers: Numbers, epsilon: Fraction) -> bool:
    """B1 with a pointwise profile: sup_y δ_t(y)/Q(y) <= (e^t - 1) w/(1-w), for t >= stated t."""
    stated = as_rational(numbers["epsilon"], "epsilon")
    weight = as_weight(numbers["weight"])
    ratio = as_rational(numbers["ratio"], "ratio") * (1 - weight) / weight
    return epsilon >= stated and lower(lambda: ball(epsilon).expm1() - ball(ratio)) >= 0


def _smooth(numbers: Numbers, claim: Composed, epsilon: Fraction) -> bool:
    step = GaussianStep(
        dimension=numbers["dimension"],
        variance=as_rational(numbers["variance"], "variance"),
        radius=as_rational(numbers["radius"], "radius"),
        sensitivity=as_rational(numbers["sensitivity"], "sensitivity"),
    )
    slack = smoothing_slack(
        step,
        rho=zcdp_cost(claim),
        order=numbers["order"],
        mixing_variance=numbers["mixing_variance"],
        weight=numbers["weight"],
        epsilon=epsilon,
    )
    return slack >= 0


def _numerical(numbers: Numbers, claim: Composed, epsilon: Fraction) -> bool:
    ideal = simplest(claim)
    if not isinstance(ideal, PureDP):
        raise CertificateError("Theorem N needs a pure ideal mechanism before it.")
    extra = numerical_error_epsilon(error=numbers["error"], scale=numbers["scale"])
    return ideal.exact_epsilon + extra <= epsilon


def _wasserstein(numbers: Numbers, claim: Composed, epsilon: Fraction) -> bool:
    """Algorithm 1: with δ at the base ε, noise of scale b costs ε' = 2Δ_1/b more."""
    norm = math.inf if numbers["norm"] == "inf" else float(numbers["norm"])
    base = as_rational(numbers["base_epsilon"], "base_epsilon")
    log_radius = log_transport_radius(
        dimension=numbers["dimension"],
        diameter=numbers["diameter"],
        weight=numbers["weight"],
        epsilon=base,
        log_delta=claim.log_delta(base),
    )
    log_one = product_laplace_radius(
        dimension=numbers["dimension"], norm=norm, log_radius=log_radius
    )
    scale = as_rational(numbers["scale"], "scale")
    return lower(lambda: ball(epsilon - base) - 2 * ball(log_one).exp() / ball(scale)) >= 0


_OTHER: dict[str, Callable[[Numbers, Composed, Fraction], bool]] = {
    "B1-profile": lambda numbers, _, epsilon: _profile(numbers, epsilon),
    "S2": _smooth,
    "N": _numerical,
    "W": _wasserstein,
}
