"""Test privacy claims of any mechanism: exactly on small data sets, or by sampling.

`exact` computes the privacy loss on all small datasets; `lower_bound` and `sequential` run a black
box many times; `search` also chooses its datasets. docs/audit.md says what each can detect.
"""

from __future__ import annotations

from zerodelta.audit.exact import (
    ExactAudit,
    ExpRational,
    Law,
    Probability,
    WorstRatio,
    certainly_impure,
    certainly_pure,
    datasets,
    discrete_laplace_pmf,
    discrete_laplace_tail,
    exact,
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
from zerodelta.audit.sampled import LowerBound, SequentialTest, lower_bound, search, sequential

__all__ = [
    "ExactAudit",
    "ExpRational",
    "Law",
    "LowerBound",
    "Probability",
    "SequentialTest",
    "WorstRatio",
    "certainly_impure",
    "certainly_pure",
    "datasets",
    "discrete_laplace_pmf",
    "discrete_laplace_tail",
    "exact",
    "exponential_mechanism_law",
    "extreme_pairs",
    "hockey_stick",
    "lower_bound",
    "max_log_ratio",
    "neighbors",
    "permute_and_flip_law",
    "rounded_gaussian_pmf",
    "rounded_gaussian_tail",
    "rounded_laplace_pmf",
    "rounded_laplace_tail",
    "search",
    "sequential",
    "shifted",
    "worst_ratio",
]
