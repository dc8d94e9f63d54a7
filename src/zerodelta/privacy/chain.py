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
from zerodelta.privacy.claims import ZCDP, Claim, GaussianDP, PureDP, claim_from_numbers
from zerodelta.privacy.composition import Composed, gaussian_share, history, simplest, zcdp_cost
from zerodelta.privacy.neighbors import Neighbors
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

__all__ = ["base_claim", "check_last_gaussian", "is_channel", "proves_epsilon"]

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
    _check_form(step)
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
    if last is not None and last.theorem == "R-gaussian":
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
    _check_form(step)
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
        return _log_delta(claim, epsilon) <= allowed
    if step.theorem in _OTHER:
        return _OTHER[step.theorem](step.numbers, claim, epsilon)
    raise CertificateError(f"unknown theorem {step.theorem!r}: no channel has that label.")


_NAMES = {
    "R-laplace": {"sensitivity", "scale"},
    "K-norm": {"sensitivity", "scale"},
    "R-gaussian": {"sensitivity_squared", "variance"},
    "R2": {"mu_squared", "rounds"},
    "R2-zcdp": {"rho", "rounds"},
    "EM": {"sensitivity", "scale", "monotone"},
    "PF": {"sensitivity", "scale", "monotone"},
    "WOR": {"rows", "batch", "sensitivity_squared", "variance", "steps"},
    "PTR": {"test_epsilon", "release_epsilon", "threshold", "noise"},
    "LS": {"bound_epsilon", "release_epsilon", "local_change", "threshold", "noise"},
    "C3": {
        *("points", "dimension", "sensitivity", "test_epsilon", "release_epsilon"),
        *("threshold", "noise"),
    },
    "C4": {
        *("points", "dimension", "bound_epsilon", "release_epsilon", "local_change"),
        *("smallest_bound", "threshold", "weight", "noise"),
    },
    "C5": {"points", "epsilon", "threshold", "noise"},
    "SS": {"epsilon", "degrees", "decay", "ratio"},
    "C6": {"row_bound_squared", "multiplier_squared", "eigenvalue"},
    "C10.5": {"target_weight", "scale"},
    "C9-logistic": {"noise_epsilon", "strength", "roundness"},
    "C9-huber": {"noise_epsilon", "strength"},
    "C9-softmax": {"noise_epsilon", "strength", "classes"},
    "B1": {"size", "weight"},
    "B1-prior": {"smallest_probability", "weight"},
    "B1-profile": {"epsilon", "ratio", "weight"},
    "B2": {"cells", "dimension", "weight"},
    "B2-sides": {"sides", "weight"},
    "R-v": {"dimension", "bound", "variance", "weight"},
    "R-vi": {"dimension", "bound", "scale", "weight"},
    "K": {"dimension", "diameter", "scale", "weight"},
    "B4-cube": {"dimension", "side", "scale", "weight"},
    "B4-window": {"cells", "window", "dimension", "weight"},
    "S2": {
        *("dimension", "variance", "radius", "sensitivity", "order", "mixing_variance", "weight")
    },
    "N": {"error", "scale"},
    "W": {"norm", "dimension", "diameter", "scale", "weight", "base_epsilon"},
}
"""The numbers of each theorem; a base step may also have a "count", a "given" one is a claim's."""

_ON_SOMEONES_WORD = ("given", "B1-profile")


def _check_form(step: Step) -> None:
    """Refuse numbers that no theorem reads, and a caller's word that calls itself proven."""
    if step.theorem in _ON_SOMEONES_WORD and step.status is Status.PROVEN:
        raise CertificateError(
            f"step {step.theorem!r} rests on the caller's word and cannot be marked as proven."
        )
    names = set(step.numbers) - ({"count"} if step.theorem in _BASE else set())
    if step.theorem in _NAMES and names != _NAMES[step.theorem]:
        raise CertificateError(
            f"theorem {step.theorem!r} has exactly the numbers {sorted(_NAMES[step.theorem])}, "
            f"not {sorted(names)}."
        )


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
    "R2": lambda n, relation: GaussianDP(mu_squared=_planned(n)["mu_squared"], neighbors=relation),
    "R2-zcdp": lambda n, relation: ZCDP(_planned(n)["rho"], neighbors=relation),
    "EM": lambda n, relation: PureDP(
        selection_epsilon(n["sensitivity"], n["scale"], n["monotone"]),
        bounded_range=True,
        neighbors=relation,
    ),
    "PF": lambda n, relation: PureDP(
        selection_epsilon(n["sensitivity"], n["scale"], n["monotone"]), neighbors=relation
    ),
    "WOR": lambda n, relation: _subsampled(n, relation),
    "PTR": lambda n, relation: proposed_release_claim(**n, neighbors=relation),
    "LS": lambda n, relation: bounded_release_claim(**n, neighbors=relation),
    "C3": lambda n, relation: PureDP(free_test_epsilon(**_points(n)), neighbors=relation),
    "C4": lambda n, relation: PureDP(bounded_release_epsilon(**_points(n)), neighbors=relation),
    "C5": lambda n, relation: PureDP(free_mode_epsilon(**_points(n)), neighbors=relation),
    "SS": lambda n, relation: PureDP(
        smooth_sensitivity_epsilon(**n), neighbors=check_replacement(relation)
    ),
    "C6": lambda n, relation: GaussianDP(
        mu_squared=statistics_mu_squared(**n, neighbors=relation), neighbors=relation
    ),
    "C10.5": lambda n, relation: PureDP(
        k_norm_statistics_epsilon(**n, neighbors=relation), neighbors=relation
    ),
    "C9-logistic": lambda n, relation: PureDP(
        logistic_epsilon(**n), neighbors=check_replacement(relation)
    ),
    "C9-huber": lambda n, relation: PureDP(
        huber_epsilon(**n), neighbors=check_replacement(relation)
    ),
    "C9-softmax": lambda n, relation: PureDP(
        softmax_epsilon(**n), neighbors=check_replacement(relation)
    ),
}

_MASS: dict[str, Callable[[Numbers], float]] = {
    "B1": lambda n: uniform_mass(whole(n["size"])),
    "B1-prior": lambda n: prior_mass(n["smallest_probability"]),
    "B2": lambda n: grid_mass(cells=n["cells"], dimension=n["dimension"]),
    "B2-sides": lambda n: sides_mass(n["sides"]),
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
    stated = as_rational(numbers["epsilon"], "epsilon")
    weight = as_weight(numbers["weight"])
    ratio = as_rational(numbers["ratio"], "ratio") * (1 - weight) / weight
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
    return isinstance(ideal, PureDP) and ideal.exact_epsilon + extra <= epsilon


def _wasserstein(numbers: Numbers, claim: Composed, epsilon: Fraction) -> bool:
    """Algorithm 1: with δ at the base ε, noise of scale b costs ε' = 2Δ_1/b more."""
    norm = math.inf if numbers["norm"] == "inf" else float(numbers["norm"])
    base = as_rational(numbers["base_epsilon"], "base_epsilon")
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
    scale = as_rational(numbers["scale"], "scale")
    return lower(lambda: ball(epsilon - base) - 2 * ball(log_one).exp() / ball(scale)) >= 0


_OTHER: dict[str, Callable[[Numbers, Composed, Fraction], bool]] = {
    "B1-profile": lambda numbers, _, epsilon: _profile(numbers, epsilon),
    "S2": _smooth,
    "N": _numerical,
    "W": _wasserstein,
}
