"""The paper's theorems and corollaries, in its order, for `paper_map`."""

from __future__ import annotations

from zerodelta.paper.map_entry import Entry

__all__ = ["COROLLARIES", "THEOREMS"]

_PAPER = "zerodelta.paper."
_BOUNDS = "zerodelta.lower_bounds:"
_TESTS = "tests/paper/test_"
_BOUND_TESTS = "tests/test_lower_bounds.py::test_"

THEOREMS: tuple[Entry, ...] = (
    Entry(
        "thm:pure_main",
        "theorem",
        "Algorithm 1 is (ε + ε')-DP; its l₁ error is at most ωR + (4Rd/ε')(δ/2ω)^(1/d).",
        (_PAPER + "algorithm_01:theorem_1", _PAPER + "algorithm_01:printed_theorem_1"),
        (
            "tests/channels/test_channels_are_pure.py::"
            "test_algorithm_one_is_pure_at_theorem_w_s_radius",
            _TESTS + "algorithm_01.py::"
            "test_theorem_1_with_its_correction_bounds_the_measured_error",
        ),
        ("A1", "A3"),
    ),
    Entry(
        "thm:index_embed",
        "theorem",
        "Algorithm 2 is 2ε-DP and keeps the item but with probability 2^-d + (d/2)e^-d.",
        (_PAPER + "algorithm_02:theorem_3", _PAPER + "algorithm_02:theorem_3_log_delta"),
        (_TESTS + "algorithm_02.py::test_theorem_3_holds_exactly_for_every_code_length",),
        ("A4",),
    ),
    Entry(
        "thm:dp-sgd-pure",
        "theorem",
        "Algorithm 4 is 2ε-DP with excess risk CLd/nε, or d²L²/λn²ε² if strongly convex.",
        (_PAPER + "algorithm_04:pure_dp_sgd",),
        (
            _TESTS + "dp_sgd.py::test_pure_sgd_learns_and_keeps_within_its_forecast",
            _TESTS + "dp_sgd.py::test_strongly_convex_averaging_finds_the_regularized_minimum",
        ),
        ("A6",),
    ),
    Entry(
        "thm: dp-fw-pure",
        "theorem",
        "Algorithm 7 is 2ε-DP with excess risk (L₁β)^(1/2)‖C‖₁^(3/2)/(nε)^(1/2).",
        (_PAPER + "algorithm_07:pure_frank_wolfe",),
        (
            _TESTS + "frank_wolfe.py::test_algorithm_7_chain_rederived_by_hand",
            _TESTS + "frank_wolfe.py::test_the_predicted_error_bounds_the_measured_one",
        ),
        ("A11",),
    ),
    Entry(
        "thm: util_loc_release",
        "theorem",
        "Algorithm 11 is 3ε-DP with l₂ error √d·Δ_local/ε + d^(3/2)/ε².",
        (_PAPER + "algorithm_11:pure_bounded_local_sensitivity",),
        (
            _TESTS
            + "local_sensitivity.py::test_the_paper_s_variant_is_pure_on_every_pair_of_neighbors",
        ),
        ("A8",),
    ),
    Entry(
        "thm:mode",
        "theorem",
        "Algorithm 12 is 2ε-DP and right with probability 1 - O(1/|X|) if the lead is large.",
        (_PAPER + "algorithm_12:embedded_mode", _PAPER + "algorithm_12:wrong_probability"),
        (_TESTS + "mode.py::test_the_theorem_on_the_paper_s_mode",),
        ("A5",),
    ),
    Entry(
        "thm: util_adassp",
        "theorem",
        "Algorithm 13 has mean squared error d‖X‖²‖θ*‖²/nε or d²‖X‖⁴‖θ*‖²/(ε²n²λ_min).",
        (_PAPER + "algorithm_13:pure_adassp",),
        (
            _TESTS + "adassp.py::test_the_chain_of_the_paper_s_variant_by_hand",
            _TESTS + "adassp.py::test_with_enough_rows_the_coefficients_are_found",
        ),
        ("A9",),
    ),
    Entry(
        "thm:query_pmw",
        "theorem",
        "Algorithm 16 is 2ε-DP with largest error (d/nε)^(1/3).",
        (_PAPER + "algorithm_16:embedded_mwem", _PAPER + "algorithm_16:plan_embedded"),
        (_TESTS + "mwem_releases.py::test_errors_stay_below_the_forecast_and_above_nothing",),
        ("A10",),
    ),
    Entry(
        "thm: mean_est_lb",
        "theorem",
        "For tiny δ every (ε, δ)-DP mean has error √(d ln(1/δ))/nε on some dataset.",
        (_BOUNDS + "from_pure_bound", _BOUNDS + "mean_estimation_rows"),
        (
            _BOUND_TESTS + "the_contrapositive_recipe_holds_for_every_mechanism",
            _BOUND_TESTS + "the_rate_of_section_6",
        ),
        ("A13",),
    ),
    Entry(
        "thm: re_dp_sgd",
        "theorem",
        "Restates thm:dp-sgd-pure, with ω = 1/n² and δ = 2ω/(16Cdn²)^d.",
        (_PAPER + "algorithm_04:pure_dp_sgd", _PAPER + "algorithm_01:corollary_1"),
        (_TESTS + "dp_sgd.py::test_pure_sgd_learns_and_keeps_within_its_forecast",),
        ("A6",),
    ),
    Entry(
        "thm: re_util_loc",
        "theorem",
        "Restates thm: util_loc_release, with ω = 1/100 ∧ 1/Cε² and δ = 2ω/(16dCε)^d.",
        (_PAPER + "algorithm_11:pure_bounded_local_sensitivity",),
        (
            _TESTS
            + "local_sensitivity.py::test_the_paper_s_variant_is_pure_on_every_pair_of_neighbors",
        ),
        ("A8",),
    ),
    Entry(
        "thm: re_mean_est_lb",
        "theorem",
        "Restates thm: mean_est_lb (twice; the second time for every d^c ln(1/δ)^(1-c)).",
        (_BOUNDS + "from_pure_bound", _BOUNDS + "ApproximateBound"),
        (_BOUND_TESTS + "the_rate_of_section_6",),
        ("A13",),
    ),
    Entry(
        "thm: lb_selection",
        "theorem",
        "For tiny δ every (ε, δ)-DP choice among K items errs by ln(K)^c ln(1/δ)^(1-c)/nε.",
        (_BOUNDS + "selection_distance",),
        (
            _BOUND_TESTS + "no_bound_rules_out_the_best_mechanism_there_is",
            _BOUND_TESTS + "a_larger_delta_allows_more",
        ),
        ("A13",),
    ),
    Entry(
        "unlabeled: packing for the mean",
        "theorem",
        "If δ ≤ e^(-nε)/6, an (ε, δ)-DP mean accurate to α needs n ≥ (ln 2/ε)(d - 1) rows.",
        (_BOUNDS + "packing_mean_theorem", _BOUNDS + "packing_distance"),
        (
            _BOUND_TESTS + "the_printed_group_privacy_step_is_false_below_ln_2",
            _BOUND_TESTS + "what_the_mean_theorem_rules_out_the_general_calculator_does",
        ),
        ("A13",),
    ),
)

COROLLARIES: tuple[Entry, ...] = (
    Entry(
        "lem: appropriate_delta",
        "corollary",
        "With ω = 1/n² and δ = 2ω/(16Cdn²)^d, Algorithm 1 errs by 1/(n²ε) + C/n² in l₂.",
        (_PAPER + "algorithm_01:corollary_1",),
        (_TESTS + "algorithm_01.py::test_corollary_1_bounds_the_measured_error",),
        ("A3",),
    ),
    Entry(
        "cor: RDP_DP_SGD",
        "corollary",
        "T subsampled Gaussian steps are (α, 13γ²ρ₀Tα)-RDP, and so (ε, δ)-DP.",
        (
            _PAPER + "algorithm_03:plan_descent",
            "zerodelta.privacy.theorems.subsampling:subsampled_gaussian",
        ),
        (_TESTS + "dp_sgd.py::test_the_subsampled_chain_re_derived_by_hand",),
        ("A6",),
    ),
)
