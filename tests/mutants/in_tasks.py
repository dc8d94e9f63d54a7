"""Mistakes in tasks: sensitivities, and what a certified minimum rests on."""

from __future__ import annotations

from mutants.mutant import Mutant

SECOND_MOMENTS = (
    "tasks/test_second_moments.py::"
    "test_one_row_moves_the_sums_by_the_stated_sensitivity_and_no_more"
)
ADDED = "tasks/test_rows_added.py"

MUTANTS = (
    Mutant(
        file="tasks/models.py",
        old="epsilon=exact, sensitivity=1, neighbors",
        new="epsilon=exact, sensitivity=1, monotone=True, neighbors",
        tests=("tasks/test_vote.py::test_a_vote_that_moves_costs_all_of_epsilon_and_no_more",),
    ),
    Mutant(
        file="tasks/models.py",
        old="uniform_below(blocks, size=len(different), bits=bits)",
        new="np.arange(len(different)) * blocks // max(1, len(different))",
        tests=("tasks/test_vote.py::test_every_row_is_dealt_to_one_block_at_random",),
    ),
    Mutant(  # each row of a unit draws for itself
        file="tasks/models.py",
        old="rows, units = rows[:, :-1], rows[:, -1].astype(np.int64)",
        new="rows = rows[:, :-1]",
        tests=(
            "tasks/test_vote.py::test_a_vote_is_pure_on_all_neighbors",
            "tasks/test_vote.py::test_a_unit_has_one_block_and_all_of_epsilon",
        ),
    ),
    Mutant(
        file="tasks/models.py",
        old="        if drop:\n",
        new="        if False:\n",
        tests=("tasks/test_vote.py::test_a_vote_is_pure_on_all_neighbors",),
    ),
    Mutant(  # √2 dropped
        file="tasks/second_moments.py",
        old="(Fraction(BESIDE) if replaced else _HALF_ROOT)",
        new="_HALF_ROOT",
        tests=(SECOND_MOMENTS,),
    ),
    Mutant(  # the noise of added rows for replaced ones
        file="tasks/second_moments.py",
        old="STEPS**2 * (2 if replaced else 1)",
        new="STEPS**2",
        tests=(SECOND_MOMENTS,),
    ),
    Mutant(  # the constant left out of the length of a row
        file="tasks/second_moments.py",
        old="length = products.square + _constant(products, norm) ** 2",
        new="length = products.square",
        tests=(SECOND_MOMENTS,),
    ),
    Mutant(  # the corner of a box is a ball's
        file="tasks/second_moments.py",
        old="(self.columns if self.lattice.norm == math.inf else 1)",
        new="1",
        tests=(SECOND_MOMENTS,),
    ),
    Mutant(  # a row with a missing cell counts
        file="tasks/second_moments.py",
        old="if counted:\n            rows = rows",
        new="if False:\n            rows = rows",
        tests=("tasks/test_second_moments.py::test_without_noise_values_are_those_of_numpy",),
    ),
    Mutant(  # T dropped
        file="regression/forest.py",
        old="row_total=trees,",
        new="row_total=1,",
        tests=(
            "estimators/test_class_statistics_are_private.py::test_counts_of_two_trees_move_by_two_for_each_row_that_moves",
        ),
    ),
    Mutant(  # half the noise on the blocks of classes
        file="regression/classes.py",
        old="row_bound=_STEPS,",
        new="row_bound=_STEPS // 2,",
        tests=(
            "estimators/test_class_statistics_are_private.py::test_blocks_move_by_what_the_noise_covers_and_reach_it",
        ),
    ),
    Mutant(  # a row leaves one class and joins another
        file="regression/classes.py",
        old="length * (2 if neighbors is Neighbors.REPLACE else 1)",
        new="length",
        tests=(
            "estimators/test_class_statistics_are_private.py::test_l2_blocks_move_by_what_the_noise_covers",
        ),
    ),
    Mutant(  # the number of rows for free
        file="regression/classes.py",
        old="math.isqrt(_STEPS**2 + self.constant**2) + 1",
        new="_STEPS",
        tests=(
            "estimators/test_class_statistics_are_private.py::test_l2_blocks_move_by_what_the_noise_covers",
        ),
    ),
    Mutant(  # squares beyond the bound of a block
        file="regression/classes.py",
        old="2 * total // (self.columns * _STEPS) - _STEPS",
        new="2 * total // (self.columns * _STEPS)",
        tests=(
            "estimators/test_class_statistics_are_private.py::test_no_coordinate_of_a_block_exceeds_its_bound",
        ),
    ),
    Mutant(
        file="tasks/statistics.py",
        old="max(high, 0) - min(low, 0) if facts.may_miss else high - low",
        new="high - low",
        tests=(
            "tasks/test_sum_and_count.py::test_one_row_moves_a_sum_by_the_stated_sensitivity_and_no_more",
        ),
    ),
    Mutant(
        file="tasks/statistics.py",
        old="return max(abs(low), abs(high))",
        new="return high - low",
        tests=(
            "tasks/test_sum_and_count.py::test_one_row_moves_a_sum_by_the_stated_sensitivity_and_no_more",
        ),
    ),
    Mutant(
        file="tasks/statistics.py",
        old="found[:, 1 if facts.may_miss else 0]",
        new="found[:, 1]",
        tests=(
            "tasks/test_sum_and_count.py::test_one_row_moves_a_sum_by_the_stated_sensitivity_and_no_more",
        ),
    ),
    Mutant(
        file="tasks/statistics.py",
        old="noise.apply(_totals(rows, lattice, offsets, facts), bits)",
        new="noise.apply(2 * _totals(rows, lattice, offsets, facts), bits)",
        tests=(
            "tasks/test_sum_and_count.py::test_one_row_moves_a_sum_by_the_stated_sensitivity_and_no_more",
        ),
    ),
    Mutant(
        file="tasks/statistics.py",
        old="epsilon=exact, cells=1, neighbors=facts.neighbors",
        new="epsilon=2 * exact, cells=1, neighbors=facts.neighbors",
        tests=("tasks/test_sum_and_count.py::test_a_count_moves_by_one_and_has_noise_for_it",),
    ),
    Mutant(  # the number of present cells is taken for public
        file="tasks/statistics.py",
        old="facts.drops if self.rows_only else facts.may_miss",
        new="facts.drops",
        tests=("tasks/test_sum_and_count.py::test_no_count_that_is_private_is_free",),
    ),
    Mutant(
        file="tasks/statistics.py",
        old="if facts.rows is not None and not some_missing:",
        new="if facts.rows is not None:",
        tests=("tasks/test_sum_and_count.py::test_no_count_that_is_private_is_free",),
    ),
    Mutant(
        file="tasks/statistics.py",
        old="moved = 2 * steps * stretch",
        new="moved = steps * stretch",
        tests=("tasks/test_mean.py::test_one_column_is_pure_on_every_pair_of_neighbors",),
    ),
    Mutant(  # add-remove's constant for replaced rows
        file="tasks/statistics.py",
        old="if counted and facts.neighbors is Neighbors.ADD_REMOVE:",
        new="if counted:",
        tests=(f"{ADDED}::test_a_mean_of_complete_rows_loses_epsilon_at_most",),
    ),
    Mutant(
        file="tasks/statistics.py",
        old="moved = steps * stretch(math.inf, norm, 2)",
        new="moved = steps",
        tests=(f"{ADDED}::test_a_mean_of_complete_rows_loses_epsilon_at_most",),
    ),
    Mutant(
        file="tasks/statistics.py",
        old="if noise_norm >= norm:",
        new="if noise_norm <= norm:",
        tests=("tasks/test_mean.py::test_two_columns_are_pure_on_every_pair_of_neighbors",),
    ),
    Mutant(
        file="tasks/statistics.py",
        old="root = math.isqrt((dimension << 64) - 1) + 1",
        new="root = math.isqrt((dimension << 64) - 1)",
        tests=("tasks/test_mean.py::test_one_column_is_pure_on_every_pair_of_neighbors",),
    ),
    Mutant(
        file="tasks/quantiles.py",
        old="epsilon=exact, sensitivity=sensitivity, neighbors",
        new="epsilon=exact, sensitivity=Fraction(sensitivity, 2), neighbors",
        tests=("tasks/test_quantile.py::test_quantiles_are_pure_on_every_pair_of_neighbors",),
    ),
    Mutant(
        file="tasks/choices.py",
        old="epsilon=exact, sensitivity=1, monotone",
        new='epsilon=exact, sensitivity="1/2", monotone',
        tests=("tasks/test_mode.py::test_modes_are_pure_on_every_pair_of_neighbors",),
    ),
    Mutant(
        file="tasks/distributions.py",
        old='epsilon=exact, cells=free, neighbors=neighbors, method="laplace"',
        new='epsilon=exact, cells=free, neighbors=Neighbors.ADD_REMOVE, method="laplace"',
        tests=("tasks/test_histogram.py::test_histograms_are_pure_on_every_pair_of_neighbors",),
    ),
    Mutant(
        file="tasks/choices.py",
        old="Fraction(2 * _STEPS)",
        new="Fraction(_STEPS)",
        tests=(
            "tasks/test_select.py::test_scores_summed_from_rows_are_pure_on_every_pair_of_neighbors",
        ),
    ),
    Mutant(
        file="tasks/choices.py",
        old="monotone = related is Neighbors.ADD_REMOVE",
        new="monotone = True",
        tests=("tasks/test_laws_of_data_sets.py::test_modes_are_pure_on_every_pair_of_neighbors",),
    ),
    Mutant(
        file="tasks/distributions.py",
        old="n = facts.rows if not facts.may_miss else None",
        new="n = facts.rows",
        tests=(
            "tasks/test_laws_of_data_sets.py::test_histograms_are_pure_on_every_pair_of_neighbors",
        ),
    ),
    Mutant(
        file="tasks/distributions.py",
        old='epsilon=exact, cells=free, neighbors=neighbors, method="laplace"',
        new='epsilon=2 * exact, cells=free, neighbors=neighbors, method="laplace"',
        tests=(
            "tasks/test_laws_of_data_sets.py::test_histograms_are_pure_on_every_pair_of_neighbors",
        ),
    ),
    Mutant(
        file="tasks/choices.py",
        old="max(high, 0) - min(low, 0)",
        new="high - low",
        tests=(
            "tasks/test_laws_of_data_sets.py::test_scores_of_columns_are_pure_on_every_pair_of_neighbors",
        ),
    ),
    Mutant(
        file="tasks/features.py",
        old="epsilon=epsilon, sensitivity=1, monotone=added",
        new='epsilon=epsilon, sensitivity="1/2", monotone=added',
        tests=(
            "tasks/test_decision_tree.py::test_trees_are_pure_over_all_neighbors_and_half_the_noise_is_caught",
            f"{ADDED}::test_trees_are_pure_where_a_row_comes_or_goes",
        ),
    ),
    Mutant(  # add-remove's constant for replaced rows
        file="tasks/features.py",
        old="added = facts.neighbors is Neighbors.ADD_REMOVE",
        new="added = True",
        tests=(
            "tasks/test_decision_tree.py::test_trees_are_pure_over_all_neighbors_and_half_the_noise_is_caught",
        ),
    ),
    Mutant(  # a block scores the rows that trained
        file="tasks/models.py",
        old="for trains, scores in (halves, halves[::-1]):",
        new="for trains, scores in zip(halves, halves, strict=True):",
        tests=(
            "tasks/test_select_model_votes.py::test_each_half_of_a_block_is_scored_by_what_the_other_trained",
        ),
    ),
    Mutant(  # an ε whose forecast misses the error that was asked for
        file="tasks/advise.py",
        old="if _error(error, _decimal(sought, middle)) <= wanted:",
        new="if _error(error, _decimal(sought, middle)) <= 1.02 * wanted:",
        tests=("tasks/test_accuracy_first.py::test_the_least_epsilon_of_three_digits_is_found",),
    ),
    Mutant(
        file="tasks/models.py",
        old="moved = lattice.steps if related is Neighbors.ADD_REMOVE else 2 * lattice.steps",
        new="moved = lattice.steps",
        tests=(
            "tasks/test_select_model_noise.py::test_a_choice_among_fixed_candidates_is_exactly_epsilon",
        ),
    ),
    Mutant(
        file="tasks/models.py",
        old="moved = lattice.steps if related",
        new="moved = Fraction(lattice.steps, 2) if related",
        tests=(f"{ADDED}::test_fixed_models_are_pure_where_a_row_comes_or_goes",),
    ),
    Mutant(
        file="training/features.py",
        old="return _STEPS if self.neighbors is Neighbors.ADD_REMOVE else 2 * _STEPS",
        new="return _STEPS",
        tests=("tasks/test_exact_stepwise.py::test_fit_and_choice_are_exactly_epsilon",),
    ),
    Mutant(
        file="training/features.py",
        old="return _STEPS if self.neighbors",
        new="return _STEPS // 2 if self.neighbors",
        tests=(f"{ADDED}::test_features_lose_epsilon_at_most_where_a_row_comes_or_goes",),
    ),
    Mutant(
        file="training/features.py",
        old="part = (1 - _CHOOSING) * self.epsilon / self.size",
        new="part = (1 - _CHOOSING) * self.epsilon",
        tests=("tasks/test_exact_stepwise.py::test_two_steps_are_pure_on_every_pair_of_neighbors",),
    ),
    Mutant(
        file="clustering/center_mechanisms.py",
        old="for_epsilon(epsilon=epsilon * share, sensitivity=2)",
        new="for_epsilon(epsilon=epsilon * share, sensitivity=1)",
        tests=(
            "tasks/test_exact_kmeans.py::test_counts_and_rounds_are_pure_on_every_pair_of_neighbors",
        ),
    ),
    Mutant(
        file="clustering/center_mechanisms.py",
        old="sensitivity=2 * _STEPS,",
        new="sensitivity=_STEPS,",
        tests=(
            "tasks/test_exact_kmeans.py::test_counts_and_rounds_are_pure_on_every_pair_of_neighbors",
        ),
    ),
    Mutant(
        file="marginals/strategies.py",
        old="neighbors=neighbors,\n                method=",
        new="neighbors=Neighbors.ADD_REMOVE,\n                method=",
        tests=(
            "tasks/test_answer_queries.py::test_no_move_of_a_row_costs_more_than_epsilon_and_some_cost_all",
        ),
    ),
    Mutant(
        file="marginals/strategies.py",
        old="row_total=count,",
        new="row_total=1,",
        tests=(f"{ADDED}::test_tables_lose_epsilon_at_most_where_a_row_comes_or_goes",),
    ),
    Mutant(  # noise fitted to the two cells of a replaced row
        file="marginals/methods.py",
        old='Neighbors.ADD_REMOVE: ("laplace",)',
        new='Neighbors.ADD_REMOVE: ("counts", "laplace")',
        tests=(f"{ADDED}::test_only_noise_on_cells_is_for_rows_that_come_and_go",),
    ),
    Mutant(
        file="marginals/strategies.py",
        old="sensitivity=max(target // width * width for width in distinct)",
        new="sensitivity=min(target // width * width for width in distinct)",
        tests=(
            "tasks/test_answer_queries.py::test_no_move_of_a_row_costs_more_than_epsilon_and_some_cost_all",
        ),
    ),
    Mutant(
        file="tasks/robust.py",
        old="for_epsilon(epsilon=epsilon, sensitivity=2 * steps)",
        new="for_epsilon(epsilon=epsilon, sensitivity=steps)",
        tests=(
            "tasks/test_trimmed_mean.py::test_laplace_noise_is_pure_on_every_pair_of_neighbors",
        ),
    ),
    Mutant(
        file="mechanisms/stable_queries.py",
        old="(above[k + 1 :: -1] - below[: k + 2]).max()",
        new="(above[k :: -1] - below[: k + 1]).max()",
        tests=(
            "tasks/test_trimmed_mean.py::test_reaches_are_the_largest_local_sensitivities_within_k_changes",
        ),
    ),
    Mutant(
        file="mechanisms/noisy_test.py",
        old="scale = sensitivity / self.ratio",
        new="scale = sensitivity",
        tests=("tasks/test_trimmed_mean.py::test_the_release_has_the_law",),
    ),
    Mutant(
        file="mechanisms/noisy_test.py",
        old="-(-found[-1] * numerator // denominator)",
        new="found[-1] * numerator // denominator",
        tests=(
            "tasks/test_trimmed_mean.py::test_the_smooth_sensitivity_is_smooth_on_every_pair_of_neighbors",
        ),
    ),
    Mutant(
        file="regression/minimum.py",
        old="radius += float(np.sum(slopes.radius)) if finite else math.nan",
        new="radius += 0.0 if finite else math.nan",
        tests=(
            "regression/test_certified_gradient.py::test_every_slope_within_its_radius_is_covered",
        ),
    ),
    Mutant(
        file="regression/minimum.py",
        old="(radius + tail + 8 * _U * sum(sizes))",
        new="(radius + 8 * _U * sum(sizes))",
        tests=(
            "regression/test_certified_gradient.py::test_what_floats_lose_in_slopes_below_the_exact_digits_is_covered",
        ),
    ),
    Mutant(
        file="regression/minimum.py",
        old="(radius + tail + 8 * _U * sum(sizes))",
        new="(radius + tail)",
        tests=("regression/test_certified_gradient.py::test_the_error_is_within_its_bound",),
    ),
    Mutant(
        file="regression/minimum.py",
        old="float(np.linalg.norm(linear)) * 1.01 * _U + float(target) / 32",
        new="float(target) / 32",
        tests=("regression/test_minimum.py::test_what_the_noise_loses_as_a_float_is_doubted",),
    ),
    Mutant(
        file="regression/minimum.py",
        old="1.01 * _U + float(target) / 32",
        new="1.01 * _U",
        tests=("regression/test_minimum.py::test_the_error_of_the_noise_itself_is_doubted",),
    ),
    Mutant(
        file="regression/minimum.py",
        old="if gradient.length + doubt <= reach:",
        new="if gradient.length <= reach:",
        tests=(
            "regression/test_minimum.py::test_a_gradient_is_certified_with_its_error_and_what_is_not_seen",
        ),
    ),
    Mutant(
        file="regression/minimum.py",
        old="target * 3 / 4)",
        new="target * 5 / 4)",
        tests=(
            "regression/test_minimum.py::test_no_way_may_leave_a_longer_gradient_than_strength_times_error",
        ),
    ),
    Mutant(
        file="regression/minimum.py",
        old="target = error * strength",
        new="target = 2 * error * strength",
        tests=(
            "regression/test_minimum.py::test_no_way_may_leave_a_longer_gradient_than_strength_times_error",
        ),
    ),
    Mutant(
        file="regression/minimum.py",
        old="<= (target - error) ** 2:",
        new="<= (2 * target) ** 2:",
        tests=(
            "regression/test_minimum.py::test_steps_as_bad_as_they_like_do_not_stop_the_precise_way",
        ),
    ),
    Mutant(
        file="regression/objective.py",
        old="scale = 2 * numerical.error / numerical.cost",
        new="scale = numerical.error / numerical.cost",
        tests=(
            "regression/test_fit_is_private.py::test_the_published_coefficient_has_the_exact_law",
        ),
    ),
    Mutant(
        file="regression/statistics.py",
        old="diagonal * HALF_ROOT, diagonal / _ROOT_WEIGHT",
        new="diagonal / 2, diagonal / _ROOT_WEIGHT",
        tests=(
            "regression/test_statistics.py::test_all_neighbors_of_the_real_pipeline_are_within_epsilon",
        ),
    ),
    Mutant(
        file="regression/statistics.py",
        old="diagonal = self.scale * Fraction(LENGTH**2, self.spacing)",
        new="diagonal = self.scale * Fraction(LENGTH**2, 2 * self.spacing)",
        tests=(
            "regression/test_statistics.py::test_all_neighbors_of_the_real_pipeline_are_within_epsilon",
        ),
    ),
    Mutant(  # numbers are not scaled, so that rows are longer than the default bound
        file="regression/encoded_columns.py",
        old="into /= half[place]",
        new="pass",
        tests=(
            "regression/test_encoded_columns.py::test_numbers_are_scaled_by_their_bounds_and_categories_are_not",
        ),
    ),
    Mutant(  # a missing category is the zero row of its columns only
        file="regression/encoded_columns.py",
        old="part[np.isnan(column)] = np.nan",
        new="pass",
        tests=("regression/test_encoded_columns.py::test_a_category_is_one_column_for_each_label",),
    ),
    Mutant(  # the middle of the bounds is forgotten in the intercept
        file="regression/encoded_columns.py",
        old="intercept - np.array([math.fsum(line * middle) for line in slopes])",
        new="intercept",
        tests=(
            "regression/test_encoded_columns.py::test_coefficients_in_units_give_the_same_scores",
        ),
    ),
    Mutant(  # codes are taken for places among the classes
        file="regression/rows.py",
        old="self.codes[np.where(missing, 0, column).astype(np.int64)]",
        new="column",
        tests=(
            "estimators/test_data_sets.py::test_classes_may_be_given_and_other_labels_are_none",
        ),
    ),
    Mutant(  # only as many rows as were expected
        file="data/pieces.py",
        old="_write(file, np.ascontiguousarray(block, np.float64).T)",
        new="pass",
        tests=("estimators/test_data_sets.py::test_more_rows_than_were_expected_are_all_read",),
    ),
    Mutant(  # every row of a unit has all of ε
        file="training/frank_wolfe.py",
        old='as_positive(epsilon, "epsilon") / protection.max_rows',
        new='as_positive(epsilon, "epsilon")',
        tests=(
            "estimators/test_data_sets.py::test_a_unit_has_the_noise_of_a_share_for_each_of_its_rows",
        ),
    ),
    Mutant(  # the plan of a study is taken for one of its own
        file="spine/plan.py",
        old="steps=(*self.steps, last) if self.steps else ()",
        new="steps=(*self.steps, last)",
        tests=(
            "estimators/test_data_sets.py::test_methods_that_run_a_study_protect_units_and_what_a_filter_leaves",
        ),
    ),
    Mutant(  # what is out of the domain is counted
        file="marginals/domain.py",
        old="slice(0, self.domain.sizes[column])",
        new="slice(1, self.domain.sizes[column] + 1)",
        tests=("tasks/test_data_set_tables.py::test_streamed_counts_are_those_of_rows_in_memory",),
    ),
    Mutant(  # frequencies of the rows that are left, as fractions of all
        file="marginals/domain.py",
        old="private = not rows.whole or (isinstance(rows, Dataset) and rows.filtered)",
        new="private = not rows.whole",
        tests=(
            "tasks/test_data_set_tables.py::test_frequencies_are_those_of_the_rows_that_are_left",
        ),
    ),
    Mutant(  # the number of rows that a filter leaves is taken for the expected one
        file="data/dataset.py",
        old="return alone and not guessed",
        new="return alone",
        tests=("data/test_dataset.py::test_a_guess_stands_in_only_where_the_number_is_private",),
    ),
    Mutant(  # dropped rows are scored
        file="tasks/models.py",
        old="found[np.isnan(rows).all(axis=1)] = np.nan",
        new="pass",
        tests=("tasks/test_data_sets.py::test_a_row_without_cells_scores_nothing",),
    ),
)
