"""Mistakes with single rows and cells: at an edge, or with one missing, out of range or private."""

from __future__ import annotations

from mutants.mutant import Mutant

COUNTS = "data/test_sums.py::test_counts_are_exact_and_say_where_invalid_keys_go"
COMPLETE = "data/test_sums.py::test_complete_rows_are_counted_beside_their_sums_and_their_products"
LISTED = "data/test_sums.py::test_keys_in_a_list_of_values_count_as_the_values_do"
GROUPS = "data/test_sums.py::test_a_row_is_in_a_group_if_each_of_its_codes_is_one"
KEYS = "tasks/test_keys.py::test_a_row_that_lacks_a_part_of_its_key_counts_nowhere"
MEAN = "tasks/test_rows_added.py::test_a_mean_of_complete_rows_loses_epsilon_at_most"
THEIRS = "tasks/test_rows_added.py::test_a_mean_of_complete_rows_is_theirs"
FOLLOWS = "tasks/test_histogram.py::test_a_count_follows_from_the_others_only_of_a_public_number"
BINS = "tasks/test_histogram.py::test_bins_that_leave_rows_out_do_not_add_up_to_all_of_them"
DESCENT = "study/test_descent.py"
ENOUGH = f"{DESCENT}::test_noise_is_added_until_the_rounds_keep_what_was_planned"
STEPWISE = "tasks/test_select_features.py"
LEFT = f"{STEPWISE}::test_what_is_left_of_the_target_is_clipped_before_it_is_weighed"

MUTANTS = (
    *(
        Mutant(file="data/pieces.py", old=old, new=new, tests=(test,))
        for old, new, test in (
            ("codes.view(np.uint64) < np.uint64(size)", "codes.view(np.uint64) <= size", COUNTS),
            ("codes.view(np.uint64) < np.uint64(size)", "codes < size", COUNTS),
            ("valid &= codes == found  # NaN and fractions: not valid", "pass", COUNTS),
            ("size if invalid is None else invalid)", "0 if invalid is None else invalid)", LISTED),
            ("inside = codes < size\n", "inside = codes <= size - 2\n", LISTED),
            ("[:listed]", "[-listed:]", LISTED),
            ("(column >= 0) & (column < size)", "(column >= 0) & (column <= size)", GROUPS),
            ("(column >= 0) & (column < size)", "(column > -1) & (column < size)", GROUPS),
            ("inside &= known", "inside = known", GROUPS),
        )
    ),
    *(
        Mutant(file="data/rows.py", old=old, new=new, tests=(test,))
        for old, new, test in (
            ("whole_rows(values) if joint else values", "values", COMPLETE),
            (
                "present = len(found) - np.count_nonzero(np.isnan(found), axis=0)",
                "present = np.full(found.shape[1], len(found))",
                COMPLETE,
            ),
            (
                "found = whole_rows(values)\n            integers",
                "found = values\n            integers",
                COMPLETE,
            ),
            (
                "bound=steps**2,",
                "bound=steps,",
                COMPLETE,
            ),
            (
                'as_count(invalid, "invalid") < size',
                'as_count(invalid, "invalid") <= size',
                "data/test_sums.py::test_bad_parameters_are_named",
            ),
            (
                "number=self.rows if self.whole else None",
                "number=self.rows",
                "data/test_progress.py::test_threads_show_rows_too",
            ),
        )
    ),
    *(
        Mutant(file="data/keys.py", old=old, new=new, tests=(KEYS,))
        for old, new in (
            ("key is None or (type(key) is tuple and None in key)", "key is None"),
            ("return keys if here.all() else _or_none(keys, here)", "return keys"),
        )
    ),
    Mutant(
        file="tasks/statistics.py",
        old="if facts.rows is not None and not some_missing:",
        new="if not some_missing:",
        tests=(
            "tasks/test_sum_and_count.py::"
            "test_a_count_without_a_public_number_has_noise_even_if_no_row_is_dropped",
        ),
    ),
    *(
        Mutant(file="tasks/distributions.py", old=old, new=new, tests=(test,))
        for old, new, test in (
            (
                "follows is not None and n is not None and space.size > 1",
                "follows is not None and space.size > 1",
                FOLLOWS,
            ),
            ("if self.cut is not None and not self.cut.complete:", "if False:", BINS),
            (
                "ends is not None and cut.edges[0] <= ends[0] and ends[1] <= cut.edges[-1]",
                "ends is not None",
                BINS,
            ),
            (
                "if neighbors is Neighbors.ADD_REMOVE:\n        only",
                "if False:\n        only",
                "tasks/test_histogram.py::test_only_laplace_noise_is_for_rows_that_come_and_go",
            ),
        )
    ),
    Mutant(
        file="tasks/statistics.py",
        old="present_counts(rows, every) if facts.may_miss else facts.public_rows",
        new="facts.planned_rows",
        tests=(
            "tasks/test_sum_and_count.py::"
            "test_one_row_moves_no_sum_of_several_columns_by_more_than_was_stated",
        ),
    ),
    Mutant(
        file="tasks/statistics.py",
        old="rows.present_sums(every, lattice, joint=True)",
        new="rows.present_sums(every, lattice)",
        tests=(MEAN, THEIRS),
    ),
    Mutant(
        file="tasks/statistics.py",
        old="[int(present[0]) * steps, *map(int, found)]",
        new="[int(present[0]) * 2 * steps, *map(int, found)]",
        tests=(MEAN, THEIRS),
    ),
    Mutant(
        file="training/descent.py",
        old="iterates.base(self.channel.spacing) - noise.apply",
        new="iterates.base(self.channel.spacing * 2) - noise.apply",
        tests=(f"{DESCENT}::test_a_raw_last_step_goes_from_where_the_others_ended",),
    ),
    Mutant(  # a claim that rests on how a float was rounded
        file="training/descent.py",
        old="while _claim(variances, squared).log_delta(made.epsilon) > made.log_delta:",
        new="while False:",
        tests=(ENOUGH,),
    ),
    Mutant(
        file="training/descent.py",
        old="if channel.slack(epsilon, whole) >= 0:",
        new="if True:",
        tests=(ENOUGH,),
    ),
    Mutant(
        file="training/descent.py",
        old="if channel.slack(epsilon, whole) >= 0:",
        new="if channel.slack(epsilon, internal) >= 0:",
        tests=(ENOUGH,),
    ),
    Mutant(
        file="training/descent.py",
        old="if protects.unit is None and protects.neighbors is Neighbors.REPLACE",
        new="if protects.neighbors is Neighbors.REPLACE",
        tests=(f"{DESCENT}::test_a_raw_last_step_is_not_weighed_for_units",),
    ),
    Mutant(
        file="training/descent.py",
        old="return round(value) if math.isfinite(value) else 0",
        new="return round(value)",
        tests=(f"{DESCENT}::test_a_base_is_a_point_whatever_overflows",),
    ),
    Mutant(
        file="training/features.py",
        old="return whole_rows(rows[:, [*self.features, self.target]])",
        new="return rows[:, [*self.features, self.target]]",
        tests=(f"{STEPWISE}::test_a_row_that_lacks_a_cell_adds_nothing",),
    ),
    Mutant(
        file="training/features.py",
        old="FixedPoint.box(dimension=width, lower=-1, upper=1, steps=_STEPS)",
        new="FixedPoint.box(dimension=width, lower=-2, upper=2, steps=2 * _STEPS)",
        tests=(LEFT,),
    ),
    Mutant(
        file="training/features.py",
        old="columns * np.clip(residual, -1.0, 1.0)",
        new="columns * residual",
        tests=(LEFT,),
    ),
    Mutant(
        file="training/features.py",
        old="& ~np.isnan(block[:, used]).any(axis=1)",
        new="",
        tests=("tasks/test_decision_tree.py::test_a_row_with_a_missing_cell_scores_for_no_tree",),
    ),
    Mutant(
        file="training/features.py",
        old="block[:, place] > threshold for",
        new="block[:, place] >= threshold for",
        tests=(
            "tasks/test_decision_tree.py::test_a_row_at_a_threshold_is_scored_as_it_is_classified",
        ),
    ),
    Mutant(
        file="training/frank_wolfe.py",
        old="target *= 1 if beside is None else 1 - beside.share",
        new="pass",
        tests=("paper/test_frank_wolfe.py::test_diagnostics_are_a_part_of_the_same_epsilon",),
    ),
    Mutant(
        file="training/frank_wolfe.py",
        old="return digits[::-1]",
        new="return digits",
        tests=("paper/test_frank_wolfe.py::test_a_transcript_is_the_number_that_was_mixed",),
    ),
    Mutant(
        file="training/polytopes.py",
        old='bound = as_positive(lipschitz, "lipschitz") * self.length',
        new='bound = as_positive(lipschitz, "lipschitz")',
        tests=(
            "paper/test_frank_wolfe.py::"
            "test_what_the_vertices_of_a_hull_see_is_clipped_where_it_cannot_be",
        ),
    ),
    Mutant(
        file="training/gradients.py",
        old="        if blanks:\n            values = without_blanks(values, rows)",
        new="        if False:\n            values = without_blanks(values, rows)",
        tests=(
            "study/test_studies_of_data_sets.py::test_a_function_of_dropped_rows_adds_no_gradient",
        ),
    ),
    Mutant(
        file="training/gradients.py",
        old="type(gradient.__self__) is TanhNetwork",
        new="isinstance(gradient.__self__, TanhNetwork)",
        tests=(
            "study/test_gradients.py::"
            "test_a_network_that_only_descends_from_ours_is_caller_asserted",
        ),
    ),
    Mutant(
        file="training/gradients.py",
        old="cut = np.trunc(cut * (caps",
        new="cut = np.rint(cut * (caps",
        tests=(
            "study/test_gradients.py::"
            "test_slopes_of_several_outputs_are_cut_to_a_row_s_largest_and_hardly_further",
        ),
    ),
    Mutant(
        file="training/gradients.py",
        old="_ROW_STEPS = 1 << 16",
        new="_ROW_STEPS = 1 << 17",
        tests=(
            "study/test_gradients.py::"
            "test_every_margin_and_every_sum_of_a_block_is_an_integer_that_floats_hold",
        ),
    ),
)
