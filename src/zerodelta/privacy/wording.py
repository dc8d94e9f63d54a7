"""Plain sentences for claims and steps, for people who read certificates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from zerodelta.privacy.claims import Claim
from zerodelta.privacy.step import Step

__all__ = ["explain_claim", "explain_numbers", "explain_step"]

_CLAIMS = {
    "pure": "pure differential privacy, ε = {epsilon}, δ = 0",
    "approximate": "approximate differential privacy, ε = {epsilon}, ln δ = {log_delta}",
    "zcdp": "zero-concentrated differential privacy, ρ = {rho}",
    "gaussian": "Gaussian differential privacy, μ² = {mu_squared}",
    "rdp": "Rényi differential privacy with a stated curve",
    "composed": "a composition of several claims",
}

_STEPS = {
    "R-laplace": "Laplace noise of scale {scale}, exactly rounded, on integer sums that move by at "
    "most {sensitivity} in l1 (theorem R): pure DP.",
    "R-gaussian": "Gaussian noise of variance {variance}, exactly rounded, on integer sums whose "
    "squared l2 distance is at most {sensitivity_squared} (theorem R): Gaussian DP.",
    "K-norm": "K-norm noise of scale {scale} on integer sums that move by at most {sensitivity} in "
    "that norm (theorem R): pure DP.",
    "EM": "exponential mechanism (exact Gumbel argmax) of scale {scale}, scores moving by at most "
    "{sensitivity} (C10.1): pure DP.",
    "PF": "permute-and-flip (exact) of scale {scale}, scores moving by at most {sensitivity} "
    "(C10.1): pure DP.",
    "WOR": "{steps} Gaussian steps of variance {variance} on batches of {batch} of {rows} rows "
    "drawn without replacement (lemma WOR).",
    "B1": "the answer is replaced by a uniform one of {size} with probability {weight} (theorem "
    "B1): δ is gone at no extra ε.",
    "B1-prior": "the answer is replaced by a draw from a public prior, whose smallest probability "
    "is {smallest_probability}, with probability {weight} (theorem B1).",
    "B1-profile": "the answer is replaced by a draw from the prior proportional to its pointwise "
    "profile with probability {weight} (theorem B1).",
    "B2": "the answer is put on a grid of {cells} cells in each of {dimension} dimensions and "
    "replaced by a uniform cell with probability {weight} (theorem B2).",
    "R-v": "the answer is put on the lattice points of squared norm at most {bound} in {dimension} "
    "dimensions and replaced by rounded Gaussian noise of variance {variance} with probability "
    "{weight} (theorem R(v)).",
    "R-vi": "the answer is put on the lattice points of l1 norm at most {bound} in {dimension} "
    "dimensions and replaced by rounded Laplace noise of scale {scale} with probability {weight} "
    "(theorem R(vi)).",
    "K": "K-norm noise of scale {scale} is added in a body of diameter {diameter}, mixed with a "
    "uniform point with probability {weight} (theorem K).",
    "B4-cube": "Laplace noise of scale {scale} is added in a cube of side {side}, mixed with a "
    "uniform point with probability {weight} (theorem B4).",
    "B4-window": "a uniform cell of a window of {window} of {cells} cells per dimension is "
    "published, replaced by a uniform cell with probability {weight} (theorem B4).",
    "S2": "the last Gaussian step (variance {variance}) is mixed with a Gaussian of variance "
    "{mixing_variance} with probability {weight} (theorem S2).",
    "N": "the value is computed with error at most {error} and published with K-norm noise of "
    "scale {scale} (theorem N).",
    "W": "Algorithm 1: mixed with a uniform point with probability {weight}, then Laplace noise of "
    "scale {scale} (theorem W).",
}


def explain_numbers(numbers: Mapping[str, Any]) -> str:
    """Say in words what a claim with these numbers means."""
    return _CLAIMS[str(numbers["kind"])].format_map(numbers)


def explain_claim(claim: Claim) -> str:
    """Say in words what is claimed."""
    return explain_numbers(Step(theorem="claim", numbers=claim.numbers()).numbers)


def explain_step(step: Step) -> str:
    """Say in words what the step did, with its theorem and its numbers."""
    if step.theorem == "given":
        return f"the base mechanism is stated to satisfy {explain_numbers(step.numbers)}."
    template = _STEPS.get(step.theorem)
    text = template.format_map(step.numbers) if template else f"theorem {step.theorem}."
    count = step.numbers.get("count", 1)
    return text if count == 1 else f"{count} times: {text}"
