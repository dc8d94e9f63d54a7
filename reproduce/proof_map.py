"""List how far each label of a certificate is proved: by Coq, on paper, and by exact tests.

`python -m reproduce.proof_map` writes the table of docs/proofs.md again. Tests check that the page
has this table, that every label is in it, and that every theorem and test it names exists.
"""

from __future__ import annotations

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from completeness.noises import NOISES
from zerodelta.coq.statements import FORMAL_CHANNELS, FORMAL_STEPS
from zerodelta.privacy.theorems import THEOREMS, anchor_of

__all__ = ["EXACT_TESTS", "FORMAL", "render", "table"]

PAGE = Path(__file__).resolve().parent.parent / "docs" / "proofs.md"
START, END = "<!-- written by `python -m reproduce.proof_map` -->", "<!-- end of the table -->"

FORMAL: dict[str, tuple[tuple[str, ...], str]] = {
    **{label: (formal.theorems, formal.paper) for label, formal in FORMAL_STEPS.items()},
    **FORMAL_CHANNELS,
    "given": (("approximate_DP_above",), "the stated claim; any profile but that of (ε, δ)"),
    "parallel-blocks": (("groups_replace", "P3_replace", "parallel_lemma"), ""),
    "units": (("units", "group_privacy"), "before a channel: the profile of its base (B6)"),
}
"""The theorems of proofs/ of each label, and the premise that is proved on paper only."""

_NOISE, _SELECTION = (
    "mechanisms/test_noise_is_private.py",
    "mechanisms/test_noise_is_private.py",
)
_PARTITIONS, _KEYS = (
    "mechanisms/test_partitions_are_private.py",
    "mechanisms/test_keys_are_private.py",
)
_CHANNELS, _FIT = "channels/test_channels_are_pure.py", "regression/test_fit_is_private.py"

EXACT_TESTS: dict[str, str] = {
    **dict.fromkeys(
        (each.label for each in NOISES),
        "completeness/test_noises.py::test_the_law_loses_at_most_what_the_theorem_says",
    ),
    "rounded-laplace": f"{_NOISE}::test_laplace_on_counts_is_exactly_epsilon",
    "k-norm-noise": f"{_NOISE}::test_cube_noise_is_exactly_epsilon",
    "matrix-laplace": (
        "exact/test_matrix_noise.py::test_no_pair_of_rows_loses_more_than_the_theorem_says"
    ),
    "rounded-gaussian": f"{_NOISE}::test_gaussian_delta_is_at_most_what_is_claimed",
    "adaptive-gaussian": (
        "privacy/test_claims.py::test_gaussian_with_pure_steps_bounds_the_exact_profile"
    ),
    "exponential-mechanism": f"{_SELECTION}::test_selection_is_pure_on_all_tiny_scores",
    "permute-and-flip": f"{_SELECTION}::test_selection_is_pure_on_all_tiny_scores",
    "partition-laplace": f"{_PARTITIONS}::test_p1_is_exactly_epsilon",
    "partition-k-norm": f"{_PARTITIONS}::test_p2_is_exactly_epsilon",
    "block-k-norm": f"{_PARTITIONS}::test_g2_is_exactly_epsilon_for_any_number_of_groups",
    "parallel-blocks": (
        f"{_PARTITIONS}::test_groups_answered_apart_cost_twice_the_epsilon_of_an_added_row"
    ),
    "key-counts": f"{_KEYS}::test_u_is_exactly_epsilon_for_every_threshold",
    "joint-top-k": f"{_KEYS}::test_joint_top_k_is_pure_on_every_pair_of_scores",
    "joint-quantiles": (
        "mechanisms/test_joint_quantiles_are_private.py::test_the_rate_is_tight_for_replaced_rows"
    ),
    "sampling-without-replacement": (
        "privacy/test_renyi.py::test_the_lemma_covers_exact_mixtures_over_batches"
    ),
    "propose-test-release": (
        "paper/test_propose_test_release.py::test_algorithm_10_is_pure_on_every_pair_of_neighbors"
    ),
    "pure-propose-test-release": (
        "tasks/test_exact_custom_query.py"
        "::test_propose_test_release_is_pure_on_every_pair_of_neighbors"
    ),
    "noisy-local-sensitivity": (
        "paper/test_local_sensitivity.py"
        "::test_the_paper_s_variant_is_pure_on_every_pair_of_neighbors"
    ),
    "pure-local-sensitivity": (
        "tasks/test_exact_custom_query.py"
        "::test_bounded_local_sensitivity_is_pure_on_every_pair_of_neighbors"
    ),
    "stable-mode": (
        "tasks/test_mode.py::test_the_stability_method_is_pure_on_every_pair_of_neighbors"
    ),
    "smooth-sensitivity": (
        "tasks/test_trimmed_mean.py::test_smooth_sensitivity_is_pure_on_every_pair_of_neighbors"
    ),
    "gaussian-sufficient-statistics": (
        "paper/test_adassp.py::test_one_dimensional_lattice_case_is_pure_exactly"
    ),
    "k-norm-sufficient-statistics": (
        "regression/test_statistics.py::test_all_neighbors_of_the_real_pipeline_are_within_epsilon"
    ),
    "logistic-objective-perturbation": (
        f"{_FIT}::test_the_published_coefficient_has_the_exact_law"
    ),
    "uniform-mixing": f"{_CHANNELS}::test_mixing_is_exactly_epsilon_at_the_threshold",
    "prior-mixing": f"{_CHANNELS}::test_every_accepted_base_becomes_pure",
    "profile-mixing": (
        f"{_CHANNELS}::test_the_optimal_prior_of_a_profile_is_pure_and_no_weight_is_wasted"
    ),
    "grid-mixing": f"{_CHANNELS}::test_a_grid_is_exactly_epsilon_and_one_cell_more_is_not",
    "unequal-grid-mixing": f"{_CHANNELS}::test_every_accepted_base_becomes_pure",
    "gaussian-net": (
        "privacy/test_theorems.py::test_gaussian_net_mass_covers_every_point_of_small_nets"
    ),
    "laplace-net": (
        "privacy/test_theorems.py::test_laplace_net_mass_covers_every_point_of_small_nets"
    ),
    "k-norm-kernel": f"{_CHANNELS}::test_disc_smoothing_has_pure_densities_in_the_plane",
    "laplace-cube-kernel": f"{_CHANNELS}::test_every_channel_is_pure_on_random_bases_on_all_inputs",
    "local-uniform-kernel": (
        f"{_CHANNELS}::test_a_local_kernel_is_exactly_epsilon_and_a_smaller_one_is_not"
    ),
    "gaussian-smoothing": (
        "study/test_smooth_descent_is_private.py"
        "::test_two_steps_are_certainly_pure_on_all_neighbors"
    ),
    "numerical-error": (
        "channels/test_numerical_error.py::test_the_price_of_an_error_is_exactly_two_r_over_b"
    ),
    "wasserstein-transport": f"{_CHANNELS}::test_algorithm_one_is_pure_at_theorem_w_s_radius",
    "units": f"{_PARTITIONS}::test_p1_for_units_is_exactly_epsilon",
    "unit-votes": "tasks/test_vote.py::test_a_vote_is_pure_on_all_neighbors",
}
"""A test of each label that enumerates laws or neighbors, below tests/; some have none."""


def table() -> str:
    """Return the table of all labels."""
    head = "| label | Coq | on paper | exact test |\n|---|---|---|---|\n"
    return head + "\n".join(map(_row, sorted(THEOREMS))) + "\n"


def render(page: str) -> str:
    """Return the page with its table written again."""
    before, _, rest = page.partition(START)
    _, _, after = rest.partition(END)
    return f"{before}{START}\n\n{table()}\n{END}{after}"


def _row(label: str) -> str:
    theorem = THEOREMS[label]
    names, paper = FORMAL.get(label, ((), "all of it"))
    link = f"[{theorem.section}]({anchor_of(theorem).removeprefix('docs/')})"
    path, _, name = EXACT_TESTS.get(label, "").partition("::")
    cells = (
        f"`{label}`",
        ", ".join(f"`{name}`" for name in names) or "-",
        f"{link}: {paper}" if paper else link,
        f"[{name}](../tests/{path})" if path else "-",
    )
    return "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    PAGE.write_text(render(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
