"""The paper's lemmas, its own and cited ones, in its order, for `paper_map`."""

from __future__ import annotations

from zerodelta.paper.map_entry import Entry

__all__ = ["LEMMAS"]

_PAPER = "zerodelta.paper."
_BOUNDS = "zerodelta.lower_bounds:"
_TESTS = "tests/paper/test_"
_BOUND_TESTS = "tests/test_lower_bounds.py::test_"
_LEMMA = "tests/paper/test_cited_lemmas.py::test_"

LEMMAS: tuple[Entry, ...] = (
    Entry(
        "lem:W_infty_TV_q",
        "lemma",
        "Close in total variation and nowhere thin on a convex set means close in W∞.",
        (
            "zerodelta.privacy.theorems.transport:log_transport_radius",
            "docs/theory.md#w-the-papers-route",
        ),
        (
            _LEMMA + "mixing_turns_total_variation_into_transport",
            "tests/channels/test_channels_are_pure.py::"
            "test_theorem_w_is_nearly_tight_for_a_base_without_epsilon",
        ),
        ("A1", "A2"),
    ),
    Entry(
        "lem:equiv_W_infty",
        "lemma",
        "W∞ by couplings equals W∞ by enlarged sets.",
        ("docs/theory.md#what-is-taken-from-elsewhere",),
        (_LEMMA + "the_two_definitions_of_transport_agree",),
    ),
    Entry(
        "lem: bas_l2_lb",
        "lemma",
        "Every ε-DP mean errs by d/nε on some dataset (cited).",
        (_BOUNDS + "mean_estimation_rows",),
        (_BOUND_TESTS + "no_bound_rules_out_the_best_mechanism_there_is",),
        ("A13",),
    ),
    Entry(
        "lem:appox_DP_eq_def",
        "lemma",
        "(ε, δ)-DP iff both laws are δ/(1+e^ε)-close in TV to a pair within e^ε.",
        ("docs/theory.md#w-the-papers-route",),
        (_LEMMA + "approximate_privacy_is_closeness_to_a_pure_pair",),
        ("A1",),
    ),
    Entry(
        "lem:laplace_wasserstein",
        "lemma",
        "Laplace noise of scale Δ/ε on laws within W∞ distance Δ (in l₁) is ε-DP.",
        (
            "zerodelta.channels.wasserstein:laplace_scale",
            "zerodelta.privacy.theorems.transport:numerical_error_epsilon",
        ),
        (_LEMMA + "laplace_noise_on_laws_within_a_distance_is_pure",),
    ),
    Entry(
        "lem:weak_triangle",
        "lemma",
        "Max-divergences add along a path.",
        ("docs/theory.md#w-the-papers-route",),
        (_LEMMA + "the_weak_triangle_inequality",),
    ),
    Entry(
        "lem: laplace_NGD",
        "lemma",
        "Descent with Laplace noise of scale Δ₁T/ε is ε-DP with error C(Δ₁L√d/nε)^(1/2).",
        (_PAPER + "baselines:laplace_noisy_descent", _PAPER + "baselines:laplace_steps"),
        (_TESTS + "baselines.py::test_the_laplace_chain_re_derived_by_hand",),
        ("A6",),
    ),
    Entry(
        "lem: zCDP_to_DP",
        "lemma",
        "ρ-zCDP implies (ρ + 2√(ρ ln 1/δ), δ)-DP.",
        ("zerodelta.privacy.claims:ZCDP",),
        (_LEMMA + "our_conversion_of_zcdp_is_never_worse_than_the_lemma",),
    ),
    Entry(
        "lem: RDP_sampled_gau",
        "lemma",
        "A Gaussian step on a γ-sample is (α, 13γ²ρα)-RDP for small orders (ours: Lemma WOR).",
        (
            "zerodelta.privacy.subsampling:subsampled_gaussian",
            "docs/theory.md#wor-batches-without-replacement",
        ),
        (
            "tests/privacy/test_subsampling.py::test_the_lemma_covers_exact_mixtures_over_batches",
            "tests/privacy/test_subsampling.py::test_high_orders_are_reached_by_adding_few_terms",
        ),
        ("A6",),
    ),
    Entry(
        "lem: dp-sgd-cvx-lip",
        "lemma",
        "Parameters and rate of Algorithm 3 for convex losses: CL√(d ln 1/δ)/ε.",
        (_PAPER + "algorithm_03:printed_parameters", _PAPER + "algorithm_03:dp_sgd"),
        (_TESTS + "dp_sgd.py::test_the_printed_parameters_are_integers_of_at_least_one",),
        ("A6",),
    ),
    Entry(
        "lem: dp-sgd-scvx-lip-sm",
        "lemma",
        "The same for strongly convex losses: dL² ln(1/δ)/(nλε²).",
        (_PAPER + "algorithm_03:printed_parameters", _PAPER + "algorithm_03:dp_sgd"),
        (_TESTS + "dp_sgd.py::test_strongly_convex_averaging_finds_the_regularized_minimum",),
        ("A6",),
    ),
    Entry(
        "lem: laplace_perturb",
        "lemma",
        "Laplace noise of scale b has l₂ norm at most √(2d)·b on average.",
        (_PAPER + "algorithm_01:theorem_1",),
        (_TESTS + "algorithm_01.py::test_the_noise_has_the_size_that_theorem_1_counts",),
    ),
    Entry(
        "lem: util_ktz_fw",
        "lemma",
        "Algorithm 6 has excess risk Γ/T + L₁‖C‖₁√(T ln 1/δ) ln(…)/nε.",
        (_PAPER + "algorithm_06:approximate_frank_wolfe",),
        (_TESTS + "frank_wolfe.py::test_the_predicted_error_bounds_the_measured_one",),
        ("A11",),
    ),
    Entry(
        "lem: sparse-fw",
        "lemma",
        "After T steps over s-sparse vertices the iterate is Ts-sparse.",
        (_PAPER + "polytopes:Polytope",),
        (_LEMMA + "an_iterate_has_at_most_as_many_coordinates_as_steps",),
    ),
    Entry(
        "lem: packing_lb_l1",
        "lemma",
        "ε-DP minimization over the l₁ ball has excess risk √(ln(d+1)/(nε + ln 4)) somewhere.",
        (_BOUNDS + "l1_erm_rows", _BOUNDS + "l1_vertex_rows"),
        (_BOUND_TESTS + "the_vertices_of_the_l1_ball_are_a_packing",),
        ("A13",),
    ),
    Entry(
        "unlabeled: propose-test-release",
        "lemma",
        "Algorithm 9 is (2ε, δ)-DP and Algorithm 10 is (2ε + ε')-DP.",
        (
            _PAPER + "algorithm_09:propose_test_release",
            _PAPER + "algorithm_10:pure_propose_test_release",
        ),
        (
            _TESTS + "propose_test_release.py::test_algorithm_9_is_approximate_with_half_of_delta",
            _TESTS + "propose_test_release.py::"
            "test_algorithm_10_is_pure_on_every_pair_of_neighbors",
        ),
        ("A7",),
    ),
    Entry(
        "lem: wang_lemma",
        "lemma",
        "AdaSSP is (ε, δ)-DP, with its mean squared error (cited).",
        (
            _PAPER + "algorithm_13:adassp",
            "zerodelta.privacy.theorems.sufficient_statistics:joint_sensitivity_squared",
        ),
        (
            _TESTS + "adassp.py::test_the_joint_sensitivities_are_attained_and_never_exceeded",
            _TESTS + "adassp.py::test_the_chain_of_adassp_by_hand",
        ),
        ("A9",),
    ),
    Entry(
        "lem: pri_util_mwem",
        "lemma",
        "Algorithm 14 with ρ = ε²/(16 ln 1/δ) is (ε, δ)-DP, with its largest error.",
        (_PAPER + "algorithm_14:paper_rho", _PAPER + "algorithm_14:approximate_mwem"),
        (
            _TESTS + "mwem_releases.py::test_the_zcdp_chain_is_rederived_by_hand",
            _TESTS + "mwem_is_private.py::"
            "test_algorithm_14_is_within_its_zcdp_and_approximate_claims",
        ),
        ("A10",),
    ),
    Entry(
        "lem: sampling_bound",
        "lemma",
        "A sample of m items answers K queries within α but with probability 2K e^(-2mα²).",
        ("zerodelta.tables.sample:sampling_error",),
        (_LEMMA + "a_sampled_query_is_off_by_as_much_as_the_lemma_says_at_most",),
    ),
    Entry(
        "lem: bas_51",
        "lemma",
        "lem: bas_l2_lb in full: error min(1, d/nε) (cited).",
        (_BOUNDS + "mean_estimation_rows",),
        (_BOUND_TESTS + "no_bound_rules_out_the_best_mechanism_there_is",),
        ("A13",),
    ),
    Entry(
        "lem: kamalika_selection",
        "lemma",
        "Every ε-DP choice among K items errs by ln(K)/nε on some dataset (cited).",
        (_BOUNDS + "selection_distance",),
        (_BOUND_TESTS + "no_bound_rules_out_the_best_mechanism_there_is",),
        ("A13",),
    ),
    Entry(
        "lem: diff_eff_sparse",
        "lemma",
        "A vector no longer than an s-sparse one differs from it by a 4s-numerically-sparse one.",
        (_PAPER + "algorithm_08:recovery_error",),
        (_LEMMA + "a_shorter_vector_differs_from_a_sparse_one_by_a_numerically_sparse_one",),
    ),
    Entry(
        "lem:construct_RIP",
        "lemma",
        "A Gaussian matrix with enough rows is nearly an isometry on sparse vectors.",
        (_PAPER + "algorithm_07:gaussian_sketch", _PAPER + "algorithm_07:printed_measurements"),
        (_LEMMA + "a_gaussian_sketch_is_nearly_an_isometry_on_sparse_vectors",),
        ("A11",),
    ),
    Entry(
        "lem:RIP_RWC",
        "lemma",
        "(e/5, 25s/e²)-RIP implies (e, s)-RWC.",
        (_PAPER + "algorithm_07:printed_measurements",),
        (_LEMMA + "rip_with_a_margin_covers_numerically_sparse_vectors",),
        ("A11",),
    ),
    Entry(
        "lem: l1_rec",
        "lemma",
        "Algorithm 8 errs by at most 4√s·ξ/√(1-e) in l₁.",
        (_PAPER + "algorithm_08:recovery_error",),
        (_LEMMA + "recovery_errs_by_at_most_the_lemma",),
    ),
    Entry(
        "lem: conc_l1_exp",
        "lemma",
        "A Laplace vector is longer than 2b(k + ln 1/ζ) in l₁ with probability ζ at most.",
        (_PAPER + "algorithm_07:tolerance",),
        (_LEMMA + "a_laplace_vector_is_longer_than_the_tolerance_at_most_once_in_n",),
    ),
)
