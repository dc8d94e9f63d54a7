"""Plain sentences for claims and steps, for people who read certificates."""

from __future__ import annotations

import decimal
import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from zerodelta.privacy.claims import Claim
from zerodelta.privacy.step import Step, whole

__all__ = ["equals", "explain_claim", "explain_numbers", "explain_step", "shown"]

_LONGEST = 12
"""A number of more characters than this is rounded for people; the certificate keeps it exact."""

_CLAIMS = {
    "pure": "pure differential privacy, ε = {epsilon}, δ = 0",
    "approximate": "approximate differential privacy, ε = {epsilon}, ln δ = {log_delta}",
    "zcdp": "zero-concentrated differential privacy, ρ = {rho}",
    "gaussian": "Gaussian differential privacy, μ² = {mu_squared}",
    "rdp": "Rényi differential privacy with a stated curve",
    "composed": "a composition of several claims",
}

_STEPS = {
    "rounded-laplace": "Laplace noise of scale {scale}, exactly rounded, on integer sums that move by at "
    "most {sensitivity} in l1 (theorem R): pure DP.",
    "rounded-gaussian": "Gaussian noise of variance {variance}, exactly rounded, on integer sums whose "
    "squared l2 distance is at most {sensitivity_squared} (theorem R): Gaussian DP.",
    "adaptive-gaussian": "up to {rounds} hidden questions, chosen on the way, each an exact integer sum with "
    "exactly rounded Gaussian noise of variance (its l2 sensitivity)² / (its share of μ²); "
    "together μ² = {mu_squared} (lemma R2): Gaussian DP.",
    "adaptive-zcdp": "up to {rounds} hidden questions, chosen on the way: exact integer sums with "
    "exactly rounded Gaussian noise, and exponential-mechanism choices at ε²/8; together ρ = {rho} "
    "(lemma R2): zCDP.",
    "k-norm-noise": "noise of scale {scale} in the norm {norm}, exactly rounded, on integer sums, in "
    "units of {quantum}, that move by at most {sensitivity} in that norm (theorem R): pure DP.",
    "exponential-mechanism": "exponential mechanism (exact Gumbel argmax) of scale {scale}, scores moving by at most "
    "{sensitivity} (C10.1): pure DP.",
    "permute-and-flip": "permute-and-flip (exact) of scale {scale}, scores moving by at most {sensitivity} "
    "(C10.1): pure DP.",
    "sampling-without-replacement": "{steps} Gaussian steps of variance {variance} on batches of {batch} of {rows} rows "
    "drawn without replacement (lemma WOR).",
    "propose-test-release": "the answer is released, at a cost of {release_epsilon}, only if a test with {noise} "
    "Laplace noise of rate {test_epsilon} exceeds {threshold} (propose-test-release): approximate "
    "DP.",
    "noisy-local-sensitivity": "the answer is released, at a cost of {release_epsilon}, with noise for its local "
    "sensitivity, itself released with {noise} Laplace noise at a cost of {bound_epsilon}, moving "
    "by at most {local_change}, plus {threshold} (theory A8): approximate DP.",
    "pure-propose-test-release": "the answer, one of {points} points in {dimension} dimensions and moving by at most "
    "{sensitivity} where it is stable, is released at a cost of {release_epsilon} if a test with "
    "{noise} Laplace noise of rate {test_epsilon} exceeds {threshold}, else a uniform point "
    "(theorem C3): pure DP.",
    "pure-local-sensitivity": "the answer, one of {points} points in {dimension} dimensions, is released at a cost of "
    "{release_epsilon} with noise for a bound of at least {smallest_bound} on its local "
    "sensitivity, which moves by at most {local_change} and is released with {noise} Laplace noise "
    "at a cost of {bound_epsilon} plus {threshold}; replaced by a uniform point with probability "
    "{weight} (theorem C4): pure DP.",
    "stable-mode": "the most frequent of {points} items is released if a test with {noise} Laplace noise of "
    "rate {epsilon} exceeds {threshold}, else a uniform item (theorem C5): pure DP.",
    "smooth-sensitivity": "Student-t noise with {degrees} degrees of freedom, exactly rounded, of scale S/{ratio}, "
    "S a bound on the answer's local sensitivity that falls by at most the factor {decay} between "
    "neighbors (theorem SS): pure DP with ε = {epsilon}.",
    "gaussian-sufficient-statistics": "Gaussian noise of squared multiplier {multiplier_squared}, exactly rounded, on XᵀX and "
    "Xᵀy of integer rows of squared norm at most {row_bound_squared} (theorem C6): Gaussian DP.",
    "k-norm-sufficient-statistics": "K-norm noise of scale {scale}, exactly rounded, on XᵀX and Xᵀy of integer rows, in "
    "the norm that weighs Xᵀy {target_weight} times (theorem C10.5): pure DP.",
    "logistic-objective-perturbation": "the balanced logistic loss of roundness {roundness}, regularized with strength "
    "{strength}, is minimized with K-norm noise of rate {noise_epsilon} in the objective (theorem "
    "C9): pure DP.",
    "huber-objective-perturbation": "the pseudo-Huber loss, regularized with strength {strength}, is minimized with "
    "K-norm noise of rate {noise_epsilon} in the objective (theorem C9): pure DP.",
    "softmax-objective-perturbation": "the softmax loss of {classes} classes, regularized with strength {strength}, is "
    "minimized with K-norm noise of rate {noise_epsilon} in the objective (theorem C9): pure DP.",
    "uniform-mixing": "the answer is replaced by a uniform one of {size} with probability {weight} (theorem "
    "B1): δ is gone at no extra ε.",
    "prior-mixing": "the answer, one of {size}, is replaced by a draw from a public prior, whose "
    "smallest probability is {smallest_probability}, with probability {weight} (theorem B1).",
    "profile-mixing": "the answer is replaced by a draw from the prior proportional to its pointwise "
    "profile with probability {weight} (theorem B1).",
    "grid-mixing": "the answer is put on a grid of {cells} cells in each of {dimension} dimensions and "
    "replaced by a uniform cell with probability {weight} (theorem B2).",
    "unequal-grid-mixing": "the answer is put on a grid, {sides} the pairs of a number of cells and of how "
    "many dimensions have so many, and replaced by a uniform cell with probability {weight} "
    "(theorem B2).",
    "gaussian-net": "the answer is put on the lattice points of squared norm at most {bound} in {dimension} "
    "dimensions and replaced by rounded Gaussian noise of variance {variance} with probability "
    "{weight} (theorem R(v)).",
    "laplace-net": "the answer is put on the lattice points of l1 norm at most {bound} in {dimension} "
    "dimensions and replaced by rounded Laplace noise of scale {scale} with probability {weight} "
    "(theorem R(vi)).",
    "k-norm-kernel": "K-norm noise of scale {scale} is added in a body of diameter {diameter}, mixed with a "
    "uniform point with probability {weight} (theorem K).",
    "laplace-cube-kernel": "Laplace noise of scale {scale} is added in a cube of side {side}, mixed with a "
    "uniform point with probability {weight} (theorem B4).",
    "local-uniform-kernel": "a uniform cell of a window of {window} of {cells} cells per dimension is "
    "published, replaced by a uniform cell with probability {weight} (theorem B4).",
    "gaussian-smoothing": "the last Gaussian step (variance {variance}) is mixed with a Gaussian of variance "
    "{mixing_variance} with probability {weight} (theorem S2).",
    "numerical-error": "the value is computed with error at most {error} and published with K-norm noise of "
    "scale {scale} (theorem N).",
    "wasserstein-transport": "Algorithm 1: mixed with a uniform point with probability {weight}, then Laplace noise of "
    "scale {scale} (theorem W).",
}


_NORMS = {
    1: "l1",
    2: "l2",
    "inf": "l∞",
    "counts": "of counts (the larger of what goes up and what goes down)",
    "blocks": "of blocks (the sum of the l2 norms of the blocks, one for each cluster)",
}


def explain_numbers(numbers: Mapping[str, Any]) -> str:
    """Say in words what a claim with these numbers means."""
    told = {name: value for name, value in numbers.items() if name != "kind"}
    if not told.get("bounded_range"):
        told.pop("bounded_range", None)
    return _filled(_CLAIMS[str(numbers["kind"])], told)


def explain_claim(claim: Claim) -> str:
    """Say in words what is claimed."""
    return explain_numbers(Step(theorem="claim", numbers=claim.numbers()).numbers)


def explain_step(step: Step) -> str:
    """Say in words what the step did, with its theorem and all of its numbers."""
    numbers = {name: value for name, value in step.numbers.items() if name != "count"}
    if step.theorem == "given":
        text = f"the base mechanism is stated to satisfy {explain_numbers(numbers)}."
    else:
        if step.theorem == "k-norm-noise" and numbers.get("norm") in _NORMS:
            numbers["norm"] = _NORMS[numbers["norm"]]
        text = _filled(_STEPS.get(step.theorem, f"theorem {step.theorem}."), numbers)
    count = step.numbers.get("count", 1)
    return text if count == 1 else f"{shown(count)} times: {text}"


def shown(value: Any) -> str:
    """Return a number as people read it: exact if that is short, else rounded and marked so.

    >>> shown(Fraction(1, 3)), shown("83/100"), shown(Fraction(0.83)), shown([1, "2/3"])
    ('1/3', '0.83', '≈ 0.83', '[1, 2/3]')
    """
    if isinstance(value, list):
        items = [shown(item) for item in value]
        return f"[{', '.join(items if len(items) <= 6 else [*items[:3], '…', items[-1]])}]"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (int, Fraction)):
        return _short(Fraction(value))
    if isinstance(value, str) and re.fullmatch(r"-?[0-9]+/[0-9]*[1-9][0-9]*", value):
        return _short(Fraction(value))
    size = whole(value)
    return str(value) if size is value else _short(Fraction(size))


def equals(value: Any) -> str:
    """Return "= x" if the number is shown exactly, "≈ x" if it had to be rounded.

    >>> equals(Fraction(83, 100)), equals(Fraction(0.83)), equals(Fraction(2, 3))
    ('= 0.83', '≈ 0.83', '= 2/3')
    """
    text = shown(value)
    return text if text.startswith("≈") else f"= {text}"


def _short(exact: Fraction) -> str:
    if exact.denominator == 1 and abs(exact) < 10**_LONGEST:
        return str(exact.numerator)
    near = _rounded(exact, _LONGEST)
    if Fraction(near) == exact:
        return f"{near:f}" if -5 < near.adjusted() < _LONGEST else f"{near:e}"
    if max(exact.denominator, abs(exact.numerator)) < 10**6:
        return str(exact)
    return f"≈ {_rounded(exact, 6):g}"


def _rounded(exact: Fraction, digits: int) -> decimal.Decimal:
    context = decimal.Context(prec=digits, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)
    # through Decimal(int), which no limit on the length of a number's text applies to
    above, below = decimal.Decimal(exact.numerator), decimal.Decimal(exact.denominator)
    return context.divide(above, below).normalize(context)


def _filled(template: str, numbers: Mapping[str, Any]) -> str:
    """Put the numbers into the sentence, and those it does not mention behind it."""
    mentioned = set(re.findall(r"\{(\w+)\}", template))

    def number(match: re.Match[str]) -> str:
        value = numbers.get(match["name"], f"({match['name']} not stated)")
        return equals(value) if match["equals"] else shown(value)

    text = re.sub(r"(?P<equals>= )?\{(?P<name>\w+)\}", number, template)
    rest = [f"{name} {equals(v)}" for name, v in numbers.items() if name not in mentioned]
    if not rest:
        return text
    return f"{text[:-1]}; {', '.join(rest)}." if text[-1] == "." else f"{text} ({', '.join(rest)})"
