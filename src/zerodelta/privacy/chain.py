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
from zerodelta.exact.rational import as_count, as_positive, as_rational
from zerodelta.privacy.claims import ZCDP, Claim, GaussianDP, PureDP, claim_from_numbers
from zerodelta.privacy.composition import Composed, gaussian_share, history, simplest, zcdp_cost
from zerodelta.privacy.fields import COUNT, FIELDS, check_claim_numbers, check_numbers
from zerodelta.privacy.neighbors import Neighbors
from zerodelta.privacy.parameters import as_at_least_zero
from zerodelta.privacy.step import Status, Step, whole
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
    sides_mass,
    uniform_mass,
    window_mass,
)
from zerodelta.privacy.theorems.objective_perturbation import (
    check_replacement,
    huber_epsilon,
    logistic_epsilon,
    softmax_epsilon,
)
from zerodelta.privacy.theorems.smooth_sensitivity import smooth_sensitivity_epsilon
from zerodelta.privacy.theorems.smoothing import GaussianStep, smoothing_slack
from zerodelta.privacy.theorems.sufficient_statistics import (
    k_norm_statistics_epsilon,
    statistics_mu_squared,
)
from zerodelta.privacy.theorems.testing import (
    bounded_release_claim,
    bounded_release_epsilon,
    free_mode_epsilon,
    free_test_epsilon,
    proposed_release_claim,
)
from zerodelta.privacy.theorems.transport import (
    log_transport_radius,
    numerical_error_epsilon,
    product_laplace_radius,
)

__all__ = ["base_claim", "check_form", "check_last_gaussian", "is_channel", "proves_epsilon"]

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
    check_form(step)
    numbers = dict(step.numbers)
    count = as_count(numbers.pop("count", 1), "count", minimum=1)
    return _BASE[step.theorem](numbers, step.neighbors), count


def is_channel(step: Step) -> bool:
    """Tell whether the step turns a base claim into pure ε-DP."""
    return step.theorem in _MASS or step.theorem in _OTHER


def check_last_gaussian(before: tuple[Step, ...], channel: Step) -> None:
    """Refuse a Theorem S whose Gaussian step is not the last base step (or part of a given claim).

    Other steps, however costly, do not pay for it.
    """
    step = _gaussian_step(channel.numbers)
    last = before[-1] if before else None
    if last is not None and last.theorem == "rounded-gaussian":
        stated = last.numbers
        moved = as_rational(stated["sensitivity_squared"], "sensitivity_squared")
        same = (
            as_rational(stated["variance"], "variance") == step.variance
            and moved == step.sensitivity**2
        )
    else:
        same = last is not None and last.theorem == "given" and _covers(_single(last)[0], step)
    if not same:
        raise CertificateError(
            "Theorem S smooths with the last Gaussian step: the step before it must be that step, "
            "with the same variance and sensitivity, or a stated claim that covers it."
        )


def proves_epsilon(step: Step, claim: Composed | None, epsilon: Fraction) -> bool:
    """Tell whether the channel step, on a base with `claim`, certainly proves pure ε-DP."""
    check_form(step)
    if step.theorem == "profile-mixing":
        if claim is not None:
            raise CertificateError(
                "theorem 'profile-mixing' is about the whole base mechanism: no base step goes before."
            )
        return _profile(step.numbers, epsilon)
    if claim is None:
        raise CertificateError("a step is missing: the channel has no base mechanism before it.")
    if step.theorem in _MASS:
        allowed = largest_log_delta(
            epsilon=epsilon,
            weight=step.numbers["weight"],
            log_mass=_MASS[step.theorem](step.numbers),
        )
        return _log_delta(claim, epsilon) <= allowed
    if step.theorem in _OTHER:
        return _OTHER[step.theorem](step.numbers, claim, epsilon)
    raise CertificateError(f"unknown theorem {step.theorem!r}: no channel has that label.")


_ON_SOMEONES_WORD = ("given", "profile-mixing")


def check_form(step: Step) -> None:
    """Refuse numbers outside the theorem's domain, and a caller's word that calls itself proven.

    Nothing is evaluated here, so a file full of absurd numbers costs no more than reading it.
    """
    label = step.theorem
    if label not in FIELDS and label != "given":
        raise CertificateError(f"unknown theorem {label[:80]!r}: no step has that label.")
    if label in _ON_SOMEONES_WORD and step.status is Status.PROVEN:
        raise CertificateError(
            f"step {label!r} rests on the caller's word and cannot be marked as proven."
        )
    numbers = dict(step.numbers)
    if label in _BASE and "count" in numbers:
        check_numbers(f"step {label!r}", {"count": numbers.pop("count")}, {"count": COUNT})
    if label == "given":
        check_claim_numbers(numbers)
    else:
        check_numbers(f"theorem {label!r}", numbers, FIELDS[label])


_BASE: dict[str, Callable[[Numbers, Neighbors], Claim]] = {
    "given": claim_from_numbers,
    "rounded-laplace": lambda n, relation: PureDP(
        laplace_epsilon(n["sensitivity"], n["scale"]), neighbors=relation
    ),
    "k-norm-noise": lambda n, relation: PureDP(
        k_norm_epsilon(n["sensitivity"], n["scale"]), neighbors=relation
    ),
    "rounded-gaussian": lambda n, relation: GaussianDP(
        mu_squared=gaussian_mu_squared(n["sensitivity_squared"], n["variance"]), neighbors=relation
    ),
    "adaptive-gaussian": lambda n, relation: GaussianDP(
        mu_squared=_planned(n)["mu_squared"], neighbors=relation
    ),
    "adaptive-zcdp": lambda n, relation: ZCDP(_planned(n)["rho"], neighbors=relation),
    "exponential-mechanism": lambda n, relation: PureDP(
        selection_epsilon(n["sensitivity"], n["scale"], n["monotone"]),
        bounded_range=True,
        neighbors=relation,
    ),
    "permute-and-flip": lambda n, relation: PureDP(
        selection_epsilon(n["sensitivity"], n["scale"], n["monotone"]), neighbors=relation
    ),
    "sampling-without-replacement": lambda n, relation: _subsampled(n, relation),
    "propose-test-release": lambda n, relation: proposed_release_claim(**n, neighbors=relation),
    "noisy-local-sensitivity": lambda n, relation: bounded_release_claim(**n, neighbors=relation),
    "pure-propose-test-release": lambda n, relation: PureDP(
        free_test_epsilon(**_points(n)), neighbors=relation
    ),
    "pure-local-sensitivity": lambda n, relation: PureDP(
        bounded_release_epsilon(**_points(n)), neighbors=relation
    ),
    "stable-mode": lambda n, relation: PureDP(free_mode_epsilon(**_points(n)), neighbors=relation),
    "smooth-sensitivity": lambda n, relation: PureDP(
        smooth_sensitivity_epsilon(**n), neighbors=check_replacement(relation)
    ),
    "gaussian-sufficient-statistics": lambda n, relation: GaussianDP(
        mu_squared=statistics_mu_squared(**n, neighbors=relation), neighbors=relation
    ),
    "k-norm-sufficient-statistics": lambda n, relation: PureDP(
        k_norm_statistics_epsilon(**n, neighbors=relation), neighbors=relation
    ),
    "logistic-objective-perturbation": lambda n, relation: PureDP(
        logistic_epsilon(**n), neighbors=check_replacement(relation)
    ),
    "huber-objective-perturbation": lambda n, relation: PureDP(
        huber_epsilon(**n), neighbors=check_replacement(relation)
    ),
    "softmax-objective-perturbation": lambda n, relation: PureDP(
        softmax_epsilon(**n), neighbors=check_replacement(relation)
    ),
}

_MASS: dict[str, Callable[[Numbers], float]] = {
    "uniform-mixing": lambda n: uniform_mass(whole(n["size"])),
    "prior-mixing": lambda n: prior_mass(n["smallest_probability"], size=whole(n["size"])),
    "grid-mixing": lambda n: grid_mass(cells=n["cells"], dimension=n["dimension"]),
    "unequal-grid-mixing": lambda n: sides_mass(n["sides"]),
    "gaussian-net": lambda n: gaussian_net_mass(
        dimension=n["dimension"], bound=n["bound"], variance=n["variance"]
    ),
    "laplace-net": lambda n: laplace_net_mass(
        dimension=n["dimension"], bound=n["bound"], scale=n["scale"]
    ),
    "k-norm-kernel": lambda n: kernel_mass(
        dimension=n["dimension"], diameter=n["diameter"], scale=n["scale"]
    ),
    "laplace-cube-kernel": lambda n: laplace_cube_mass(
        dimension=n["dimension"], side=n["side"], scale=n["scale"]
    ),
    "local-uniform-kernel": lambda n: window_mass(
        cells=n["cells"], window=n["window"], dimension=n["dimension"]
    ),
}


def _planned(numbers: Numbers) -> Numbers:
    """Return the numbers of a study, after reading how many questions it planned."""
    as_count(numbers["rounds"], "rounds", minimum=1)
    return numbers


def _points(numbers: Numbers) -> dict[str, Any]:
    return {**numbers, "points": whole(numbers["points"])}


def _log_delta(claim: Composed, epsilon: Fraction) -> float:
    """Return the smaller bound of the parts and of the simplest claim that says the same.

    They differ in the last digits, and a plan may have been made with either.
    """
    return min(claim.log_delta(epsilon), simplest(claim).log_delta(epsilon))


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
    stated = as_positive(numbers["epsilon"], "epsilon")
    weight = as_weight(numbers["weight"])
    ratio = as_positive(numbers["ratio"], "ratio") * (1 - weight) / weight
    return epsilon >= stated and lower(lambda: ball(epsilon).expm1() - ball(ratio)) >= 0


def _gaussian_step(numbers: Numbers) -> GaussianStep:
    return GaussianStep(
        dimension=numbers["dimension"],
        variance=as_rational(numbers["variance"], "variance"),
        radius=as_rational(numbers["radius"], "radius"),
        sensitivity=as_rational(numbers["sensitivity"], "sensitivity"),
    )


def _covers(claim: Claim, step: GaussianStep) -> bool:
    """Tell whether the claim's Gaussian part is large enough to contain the step."""
    return gaussian_share(claim) >= 2 * step.rho


def _smooth(numbers: Numbers, claim: Composed, epsilon: Fraction) -> bool:
    """S2, for a claim that covers the last step."""
    step, rho = _gaussian_step(numbers), zcdp_cost(claim)
    if not _covers(claim, step) or step.sensitivity > 2 * step.radius:  # ‖g - g'‖ <= 2r anyway
        return False
    slack = smoothing_slack(
        step,
        rho=rho,
        order=numbers["order"],
        mixing_variance=numbers["mixing_variance"],
        weight=numbers["weight"],
        epsilon=epsilon,
    )
    return slack >= 0


def _numerical(numbers: Numbers, claim: Composed, epsilon: Fraction) -> bool:
    """Theorem N, for a pure ideal mechanism."""
    ideal = simplest(claim)
    extra = numerical_error_epsilon(error=numbers["error"], scale=numbers["scale"])
    return type(ideal) is PureDP and ideal.exact_epsilon + extra <= epsilon


def _wasserstein(numbers: Numbers, claim: Composed, epsilon: Fraction) -> bool:
    """Algorithm 1: with δ at the base ε, noise of scale b costs ε' = 2Δ_1/b more."""
    norm = math.inf if numbers["norm"] == "inf" else float(numbers["norm"])
    base = as_at_least_zero(numbers["base_epsilon"], "base_epsilon")
    if base > epsilon:
        return False
    log_radius = log_transport_radius(
        dimension=numbers["dimension"],
        diameter=numbers["diameter"],
        weight=numbers["weight"],
        epsilon=base,
        log_delta=_log_delta(claim, base),
    )
    log_one = product_laplace_radius(
        dimension=numbers["dimension"], norm=norm, log_radius=log_radius
    )
    scale = as_positive(numbers["scale"], "scale")
    return lower(lambda: ball(epsilon - base) - 2 * ball(log_one).exp() / ball(scale)) >= 0


_OTHER: dict[str, Callable[[Numbers, Composed, Fraction], bool]] = {
    "profile-mixing": lambda numbers, _, epsilon: _profile(numbers, epsilon),
    "gaussian-smoothing": _smooth,
    "numerical-error": _numerical,
    "wasserstein-transport": _wasserstein,
}
