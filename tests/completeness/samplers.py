"""The exact test of every sampler: what all laws of mechanisms rest on."""

from __future__ import annotations

from typing import Any

from completeness.noises import NOISES
from zerodelta.exact.argmax import exponential_argmax, gumbel_argmax
from zerodelta.exact.bits import BitStrings, rounded
from zerodelta.exact.integers import (
    AliasTable,
    bernoulli,
    bernoulli_exp,
    categorical,
    permutation,
    uniform_below,
    uniform_below_each,
    uniform_multiset,
    uniform_multisets,
    uniform_subset,
    uniform_subsets,
    weighted_indices,
)
from zerodelta.exact.joint_ranks import joint_points
from zerodelta.exact.noise import (
    RealKNorm,
    asymmetric_noise,
    discrete_laplace,
    geometric_steps,
    rounded_count_noise,
    rounded_exponential,
    rounded_gaussian,
    rounded_k_norm,
    rounded_matrix_laplace,
    rounded_student_t,
    rounded_uniform_plus_k_norm,
    sparse_ranks,
)

_NOISE = "exact/test_samplers.py::test_a_million_draws_follow_the_exact_law"
_INTEGERS = "exact/test_integers.py::test_millions_of_draws_follow_the_exact_law"
_CHOICES = "exact/test_argmax.py::test_a_million_choices_follow_the_exact_law"
_SHARES = "paper/test_sparse_recovery.py::test_every_item_has_exactly_its_share"
_KEYS = "mechanisms/test_keys_are_drawn_exactly.py"
_GAPS = f"{_KEYS}::test_gaps_in_a_universe_of_1024_keys_are_those_of_brute_force"
_LAZY = "exact/test_lazy.py::test_boundary_words_give_the_draws_of_the_slow_path"

DRAWN_FROM: dict[Any, str] = {
    **dict.fromkeys((each.sampler for each in NOISES), _NOISE),
    **dict.fromkeys((discrete_laplace, rounded_exponential, rounded_gaussian), _NOISE),
    **dict.fromkeys((rounded_student_t, rounded_k_norm), _NOISE),
    **dict.fromkeys((bernoulli, bernoulli_exp, categorical, permutation, uniform_below), _INTEGERS),
    **dict.fromkeys((uniform_below_each, uniform_multiset, uniform_multisets), _INTEGERS),
    **dict.fromkeys((uniform_subset, uniform_subsets), _INTEGERS),
    **dict.fromkeys((exponential_argmax, gumbel_argmax), _CHOICES),
    **dict.fromkeys((AliasTable, weighted_indices), _SHARES),
    asymmetric_noise: f"{_KEYS}::test_the_noise_has_its_law",
    sparse_ranks: _GAPS,
    geometric_steps: f"{_KEYS}::test_keys_of_a_universe_of_1024_are_published_as_if_it_were_listed",
    rounded_count_noise: (
        "tasks/test_histogram.py::test_the_hexagon_law_is_a_law_and_the_sampler_has_it"
    ),
    rounded_matrix_laplace: (
        "exact/test_matrix_noise.py::test_draws_in_two_dimensions_have_that_density"
    ),
    joint_points: "exact/test_joint_ranks.py::test_points_have_the_law",
    rounded_uniform_plus_k_norm: (
        "exact/test_k_norm.py::test_a_uniform_point_of_a_ball_has_its_radius_and_its_signs"
    ),
    RealKNorm: "regression/test_minimum.py::test_noise_has_its_law_and_keeps_to_its_space",
    # -- what samplers are made of
    **dict.fromkeys((rounded, BitStrings), _LAZY),
}
