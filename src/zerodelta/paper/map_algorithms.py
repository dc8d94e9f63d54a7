"""The paper's algorithms, appendices' constructions, figures and tables, for `paper_map`."""

from __future__ import annotations

from zerodelta.paper.map_entry import Entry

__all__ = ["ALGORITHMS", "EXHIBITS"]

_PAPER = "zerodelta.paper."
_TESTS = "tests/paper/test_"
_REPRODUCE = "tests/paper/test_reproduce.py::test_"
_LOCAL = "tests/paper/test_local_sensitivity.py::test_"

ALGORITHMS: tuple[Entry, ...] = (
    Entry(
        "alg:main",
        "algorithm",
        "1. Mix an (ε, δ)-DP vector with a uniform point, add Laplace noise of scale 2Δ/ε'.",
        (_PAPER + "algorithm_01:purify_ball", "zerodelta.channels.wasserstein:AlgorithmOne"),
        (
            "tests/channels/test_channels_are_pure.py::"
            "test_algorithm_one_is_pure_at_theorem_w_s_radius",
            _TESTS + "algorithm_01.py::test_any_value_becomes_a_point_of_the_ball",
        ),
        ("A1", "A14"),
    ),
    Entry(
        "alg:discrete",
        "algorithm",
        "2. Purify an item of a finite set through its binary code in the unit cube.",
        (_PAPER + "algorithm_02:purify_choice", "zerodelta.channels.wasserstein:AlgorithmTwo"),
        (_TESTS + "algorithm_02.py::test_algorithm_2_is_pure_on_all_neighboring_datasets",),
        ("A4",),
    ),
    Entry(
        "alg:dp_sgd",
        "algorithm",
        "3. Noisy gradient descent on batches drawn without replacement; average of the iterates.",
        (_PAPER + "algorithm_03:dp_sgd",),
        (
            _TESTS + "dp_sgd.py::test_the_full_batch_chain_re_derived_by_hand",
            _TESTS + "dp_sgd.py::test_the_subsampled_chain_re_derived_by_hand",
        ),
        ("A6",),
    ),
    Entry(
        "alg:pure_dp_sgd",
        "algorithm",
        "4. Purify the output of Algorithm 3 by Algorithm 1 (ours also: on a lattice, no ε').",
        (_PAPER + "algorithm_04:pure_dp_sgd", _PAPER + "algorithm_04:pure_dp_sgd_on_lattice"),
        (
            _TESTS + "dp_sgd.py::test_one_dimensional_descent_on_the_lattice_is_exactly_pure",
            _TESTS + "dp_sgd.py::test_the_lattice_chain_re_derived_by_hand",
        ),
        ("A1", "A6"),
    ),
    Entry(
        "alg: frank_wolfe",
        "algorithm",
        "5. Frank-Wolfe without privacy.",
        (_PAPER + "algorithm_05:frank_wolfe",),
        (_TESTS + "frank_wolfe.py::test_frank_wolfe_meets_its_bound_at_every_length",),
    ),
    Entry(
        "alg: ktz_fw",
        "algorithm",
        "6. Frank-Wolfe with a noisy choice of the vertex in every step: (ε, δ)-DP.",
        (_PAPER + "algorithm_06:approximate_frank_wolfe",),
        (_TESTS + "frank_wolfe_enumeration.py::test_approximate_frank_wolfe_keeps_its_delta",),
        ("A11",),
    ),
    Entry(
        "alg: fw_pure",
        "algorithm",
        "7. Sketch the output of Algorithm 6, purify the sketch, recover (ours also: composition).",
        (_PAPER + "algorithm_07:pure_frank_wolfe", _PAPER + "frank_wolfe_pure:frank_wolfe_pure"),
        (
            _TESTS + "frank_wolfe_enumeration.py::"
            "test_algorithm_7_with_a_sketch_never_exceeds_its_total_epsilon",
            _TESTS + "frank_wolfe_enumeration.py::test_pure_composition_never_exceeds_epsilon",
        ),
        ("A11",),
    ),
    Entry(
        "alg: sparse-rec",
        "algorithm",
        "8. Recover a sparse vector: min ‖θ‖₁ subject to ‖Φθ - b‖₁ ≤ ξ.",
        (_PAPER + "algorithm_08:sparse_recovery",),
        (
            _TESTS + "sparse_recovery.py::"
            "test_the_solution_is_feasible_and_no_feasible_vertex_is_shorter",
        ),
        ("A11",),
    ),
    Entry(
        "alg: ptr",
        "algorithm",
        "9. Propose a bound on the local sensitivity, test it, release or refuse: (2ε, δ)-DP.",
        (_PAPER + "algorithm_09:propose_test_release",),
        (_TESTS + "propose_test_release.py::test_algorithm_9_is_approximate_with_half_of_delta",),
        ("A7",),
    ),
    Entry(
        "alg: pure_ptr",
        "algorithm",
        "10. Algorithm 9 purified by Algorithm 1 (ours also: refusals are the mixing).",
        (
            _PAPER + "algorithm_10:pure_propose_test_release",
            _PAPER + "algorithm_10:free_propose_test_release",
        ),
        (
            _TESTS + "propose_test_release.py::"
            "test_algorithm_10_is_pure_on_every_pair_of_neighbors",
            _TESTS + "propose_test_release.py::test_free_mixing_is_pure_on_every_pair_of_neighbors",
        ),
        ("A7",),
    ),
    Entry(
        "alg: bound_local",
        "algorithm",
        "11. Noise scaled to a private bound on the local sensitivity, purified.",
        (
            _PAPER + "algorithm_11:pure_bounded_local_sensitivity",
            _PAPER + "algorithm_11:bounded_local_sensitivity",
        ),
        (
            _LOCAL + "the_paper_s_variant_is_pure_on_every_pair_of_neighbors",
            _LOCAL + "bounded_local_sensitivity_is_pure_on_every_pair_of_neighbors",
        ),
        ("A8",),
    ),
    Entry(
        "alg: mode",
        "algorithm",
        "12. The most frequent item if it leads by enough, purified (ours also: no mixing at all).",
        (_PAPER + "algorithm_12:embedded_mode", _PAPER + "algorithm_12:mode"),
        (
            _TESTS + "mode.py::test_the_embedded_mode_is_pure_on_every_pair_of_neighbors",
            _TESTS + "mode.py::test_mode_is_pure_on_every_pair_of_neighbors",
        ),
        ("A5",),
    ),
    Entry(
        "alg: pure_ada_ssp",
        "algorithm",
        "13. Linear regression from noisy sufficient statistics, clipped and purified.",
        (_PAPER + "algorithm_13:pure_adassp", _PAPER + "algorithm_13:lattice_adassp"),
        (
            _TESTS + "adassp.py::test_the_chain_of_the_paper_s_variant_by_hand",
            _TESTS + "adassp.py::test_one_dimensional_lattice_case_is_pure_exactly",
        ),
        ("A9",),
    ),
    Entry(
        "alg:MWEM",
        "algorithm",
        "14. Multiplicative weights with privately chosen and measured queries: ρ-zCDP.",
        (_PAPER + "algorithm_14:mwem", _PAPER + "algorithm_14:approximate_mwem"),
        (
            _TESTS + "mwem_is_private.py::"
            "test_algorithm_14_is_within_its_zcdp_and_approximate_claims",
        ),
        ("A10",),
    ),
    Entry(
        "alg: prop_sampling",
        "algorithm",
        "15. Draw m items in proportion to their weights (alias method, exactly).",
        (_PAPER + "algorithm_15:proportional_sampling",),
        (_TESTS + "proportional_sampling.py::test_every_item_has_exactly_its_share",),
    ),
    Entry(
        "alg: pure_pmw",
        "algorithm",
        "16. Sample from Algorithm 14's histogram and purify the sample (ours: as a multiset).",
        (
            _PAPER + "algorithm_16:embedded_mwem",
            _PAPER + "algorithm_16:multiset_mwem",
            "zerodelta.tables.mwem:pure_mwem",
        ),
        (
            _TESTS + "mwem_is_private.py::test_the_binary_embedding_is_pure_on_all_neighbors",
            _TESTS + "mwem_is_private.py::test_multiset_mixing_is_pure_on_all_neighbors",
            _TESTS + "mwem_is_private.py::test_pure_mwem_loses_at_most_epsilon_on_all_neighbors",
        ),
        ("A10",),
    ),
)

EXHIBITS: tuple[Entry, ...] = (
    Entry(
        "assump:domain",
        "assumption",
        "The values lie in an l_q ball (ours: whatever the value, it is projected onto one).",
        (_PAPER + "algorithm_01:channel_for",),
        (_TESTS + "algorithm_01.py::test_any_value_becomes_a_point_of_the_ball",),
        ("A1",),
    ),
    Entry(
        "sec:discrete",
        "example",
        "Appendix C: mixing on a finite set costs ε + ln(1 + δ|Y|e^-ε/ω); it fails on an interval.",
        (
            _PAPER + "appendix_c:mix_choice",
            _PAPER + "appendix_c:printed_epsilon",
            _PAPER + "appendix_c:continuous_example",
        ),
        (
            _TESTS + "appendices.py::"
            "test_b1_is_never_worse_than_the_cited_bound_and_never_less_than_the_truth",
            _TESTS + "appendices.py::test_the_continuous_example_keeps_its_delta",
        ),
        ("A12",),
    ),
    Entry(
        "sec:baseline",
        "example",
        "Appendix D: a net of small cubes, then Appendix C.",
        (_PAPER + "appendix_d:mix_on_grid", _PAPER + "appendix_d:printed_net"),
        (
            _TESTS + "appendices.py::test_the_printed_net_breaks_its_claim_in_low_dimension",
            _TESTS + "appendices.py::test_the_grid_done_right_is_pure_at_the_base_epsilon",
        ),
        ("A12",),
    ),
    Entry(
        "ex:tightness",
        "example",
        "A pair of laws with TV = Δ^d and W∞ = Δ: the conversion is tight up to a constant.",
        (_PAPER + "reproduce.tightness:tightness",),
        (
            _REPRODUCE + "no_bound_is_below_the_transport_distance_of_the_example",
            _REPRODUCE + "matching_on_a_grid_finds_the_radius_of_the_hole",
        ),
    ),
    Entry(
        "fig:myth",
        "figure",
        "Variance of the Laplace and the analytic Gaussian mechanism against δ, ε = 1.",
        (_PAPER + "reproduce.curves:figure_1",),
        (_REPRODUCE + "figure_1_is_the_analytic_gaussian_and_the_laplace_variance",),
    ),
    Entry(
        "fig:f-DP",
        "figure",
        "Trade-off curves of (ε, δ)-, ε- and (ε + ε')-DP.",
        (_PAPER + "reproduce.curves:figure_f_dp",),
        (
            _REPRODUCE + "the_trade_off_curves_are_those_of_the_closed_form",
            _REPRODUCE + "the_papers_order_of_the_trade_off_curves_fails_beyond_the_crossing",
        ),
        ("A12",),
    ),
    Entry(
        "tab:utility_conversion",
        "table",
        "Error of seven mechanisms before and after purification.",
        (_PAPER + "reproduce.run:reproduce", _PAPER + "reproduce.rates:summarize"),
        (_REPRODUCE + "a_quick_run_writes_pictures_page_and_numbers",),
    ),
    Entry(
        "tab: dp_erm",
        "table",
        "Error and run time of Laplace descent, purified DP-SGD and the exponential mechanism.",
        (
            _PAPER + "reproduce.run:reproduce",
            _PAPER + "baselines:laplace_noisy_descent",
            _PAPER + "baselines:exponential_mechanism_on_grid",
        ),
        (
            _TESTS + "baselines.py::"
            "test_the_exponential_mechanism_is_pure_on_all_neighboring_datasets",
        ),
        ("A6",),
    ),
)
