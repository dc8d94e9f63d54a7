"""Trying to break our own claims: exact output distributions on small inputs."""

from __future__ import annotations

from zerodelta.audit.exact import (
    ExpRational,
    Law,
    Probability,
    WorstRatio,
    certainly_impure,
    certainly_pure,
    datasets,
    exponential_mechanism_law,
    extreme_pairs,
    hockey_stick,
    max_log_ratio,
    neighbors,
    permute_and_flip_law,
    rounded_gaussian_pmf,
    rounded_gaussian_tail,
    rounded_laplace_pmf,
    rounded_laplace_tail,
    shifted,
    worst_ratio,
)

__all__ = [
    "ExpRational",
    "Law",
    "Probability",
    "WorstRatio",
    "certainly_impure",
    "certainly_pure",
    "datasets",
    "exponential_mechanism_law",
    "extreme_pairs",
    "hockey_stick",
    "max_log_ratio",
    "neighbors",
    "permute_and_flip_law",
    "rounded_gaussian_pmf",
    "rounded_gaussian_tail",
    "rounded_laplace_pmf",
    "rounded_laplace_tail",
    "shifted",
    "worst_ratio",
]
