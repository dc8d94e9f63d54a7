"""Mistakes at the edges: where floats end, where 64 bits end, and what one row does to others."""

from __future__ import annotations

from mutants.mutant import Mutant

MUTANTS = (
    Mutant(  # sums in floats beyond 2^53
        file="data/pieces.py",
        old="most = (1 << 53) // bound",
        new="most = (1 << 54) // bound",
        tests=("data/test_sums.py::test_sums_of_powers_by_group_are_exact_at_every_size",),
    ),
    Mutant(
        file="data/pieces.py",
        old="if most < _FEW:",
        new="if most < 1:",
        tests=("data/test_sums.py::test_sums_of_powers_by_group_are_exact_at_every_size",),
    ),
    Mutant(
        file="data/pieces.py",
        old="if bound >= 1 << 62:",
        new="if bound > 1 << 63:",
        tests=("data/test_sums.py::test_sums_of_powers_by_group_are_exact_at_every_size",),
    ),
    Mutant(
        file="data/pieces.py",
        old=("fits = len(added) * bound <= INT64_MOST\n"),
        new=("fits = len(added) * bound <= 2 * INT64_MOST\n"),
        tests=("data/test_sums.py::test_running_sums_are_exact_where_64_bits_end",),
    ),
    Mutant(
        file="data/pieces.py",
        old="if groups == 1 and fits:",
        new="if groups == 1:",
        tests=("data/test_sums.py::test_sums_of_powers_by_group_are_exact_at_every_size",),
    ),
    Mutant(
        file="data/pieces.py",
        old="bound = lattice.steps**power",
        new="bound = lattice.steps",
        tests=("data/test_sums.py::test_sums_of_powers_by_group_are_exact_at_every_size",),
    ),
    Mutant(
        file="data/pieces.py",
        old=("self._room = INT64_MOST // bound\n"),
        new=("self._room = 2 * INT64_MOST // bound\n"),
        tests=("data/test_sums.py::test_running_sums_are_exact_where_64_bits_end",),
    ),
    Mutant(
        file="data/pieces.py",
        old="self._exact(), INT64_MOST // self._bound",
        new="self._exact(), 2 * INT64_MOST // self._bound",
        tests=("data/test_sums.py::test_running_sums_are_exact_where_64_bits_end",),
    ),
    Mutant(
        file="data/pieces.py",
        old="self._room -= len(block)",
        new="self._room -= 1",
        tests=("data/test_sums.py::test_running_sums_are_exact_where_64_bits_end",),
    ),
    Mutant(
        file="data/pieces.py",
        old=("            self._sums[...] = 0\n"),
        new="",
        tests=("data/test_sums.py::test_running_sums_are_exact_where_64_bits_end",),
    ),
    Mutant(
        file="data/pieces.py",
        old="self._many = added if self._many is None else self._many + added",
        new="self._many = added",
        tests=("data/test_sums.py::test_running_sums_are_exact_where_64_bits_end",),
    ),
    Mutant(  # a private number of rows decides the arithmetic
        file="data/rows.py",
        old='fits = self.whole and arithmetic(self.rows, bound) != "python"',
        new='fits = arithmetic(self.rows, bound) != "python"',
        tests=("data/test_sums.py::test_a_number_of_rows_that_is_private_decides_nothing",),
    ),
    Mutant(
        file="data/rows.py",
        old="sums = np.int64 if len(values) * bound <= INT64_MOST else np.object_",
        new="sums = np.int64",
        tests=("data/test_sums.py::test_sums_of_powers_by_group_are_exact_at_every_size",),
    ),
    Mutant(
        file="data/rows.py",
        old="bound = max(1, steps**degree)",
        new="bound = max(1, steps)",
        tests=("data/test_sums.py::test_sums_of_powers_by_group_are_exact_at_every_size",),
    ),
    Mutant(  # noise for the column that moves least
        file="tasks/statistics.py",
        old=("sensitivity=max(_moves("),
        new=("sensitivity=min(_moves("),
        tests=(
            "tasks/test_sum_and_count.py::test_one_row_moves_no_sum_of_several_columns_by_more_than_was_stated",
        ),
    ),
    Mutant(
        file="tasks/statistics.py",
        old="exact: IntegerArray = sums.astype(object) + np.array(offsets, dtype=object) * counts",
        new="exact: IntegerArray = sums + np.array(offsets, dtype=np.int64) * counts",
        tests=("tasks/test_sum_and_count.py::test_sums_of_columns_far_from_zero_are_exact",),
    ),
    Mutant(
        file="tasks/statistics.py",
        old="noisy = noise.apply(counts[:, 1], bits)",
        new="noisy = noise.apply(counts[:, 0], bits)",
        tests=("tasks/test_sum_and_count.py::test_a_count_moves_by_one_and_has_noise_for_it",),
    ),
    Mutant(
        file="exact/fixed_point.py",
        old="most = _MOST_STEPS // square  # so",
        new="most = 2 * _MOST_STEPS // square  # so",
        tests=(
            "exact/test_fixed_point.py::test_a_gram_matrix_of_odd_numbers_is_exact_where_floats_end",
        ),
    ),
    Mutant(
        file="exact/fixed_point.py",
        old="_MOST_SQUARES = 1 << 52",
        new="_MOST_SQUARES = 1 << 54",
        tests=(
            "exact/test_fixed_point.py::test_the_nearest_points_outside_are_not_taken_for_points_inside",
        ),
    ),
    Mutant(
        file="exact/fixed_point.py",
        old="rest = np.flatnonzero(~(_squares(cut) <= limit))",
        new="rest = np.flatnonzero(~(_squares(cut) <= 2 * limit))",
        tests=(
            "exact/test_fixed_point.py::test_the_nearest_points_outside_are_not_taken_for_points_inside",
        ),
    ),
    Mutant(
        file="exact/fixed_point.py",
        old="self.norm == 2 and self.steps**2 <= _MOST_SQUARES",
        new="self.norm == 2",
        tests=(
            "exact/test_fixed_point.py::test_the_nearest_points_outside_are_not_taken_for_points_inside",
        ),
    ),
    Mutant(
        file="training/gradients.py",
        old='fits = self.examples.whole and arithmetic(self.rows, self.bound) != "python"',
        new='fits = arithmetic(self.rows, self.bound) != "python"',
        tests=(
            "study/test_gradients.py::test_the_type_of_a_sum_tells_nothing_of_a_private_number_of_rows",
        ),
    ),
    Mutant(
        file="training/gradients.py",
        old="fits = self.examples.whole and arithmetic(count, ",
        new="fits = arithmetic(count, ",
        tests=(
            "study/test_gradients.py::test_the_type_of_a_sum_tells_nothing_of_a_private_number_of_rows",
        ),
    ),
    Mutant(  # margins that BLAS rounds
        file="training/gradients.py",
        old="_PARAMETER_STEPS = 1 << 36",
        new="_PARAMETER_STEPS = 1 << 40",
        tests=(
            "study/test_gradients.py::test_every_margin_and_every_sum_of_a_block_is_an_integer_that_floats_hold",
        ),
    ),
    Mutant(
        file="training/gradients.py",
        old="_MOST_ROWS = 1 << 13",
        new="_MOST_ROWS = 1 << 26",
        tests=(
            "study/test_gradients.py::test_every_margin_and_every_sum_of_a_block_is_an_integer_that_floats_hold",
        ),
    ),
    Mutant(
        file="training/gradients.py",
        old=("        integers[~counted] = 0\n"),
        new="",
        tests=(
            "study/test_gradients.py::test_blocks_of_any_size_add_up_to_the_sum_of_single_rows",
        ),
    ),
    Mutant(
        file="training/gradients.py",
        old="rows[:, ~counted[here]] = 0.0",
        new="pass",
        tests=(
            "study/test_gradients.py::test_blocks_of_any_size_add_up_to_the_sum_of_single_rows",
        ),
    ),
    Mutant(  # rows of the block before fill the last one
        file="training/gradients.py",
        old="start, (rows, labels, caps) = 0, self._zeros()",
        new="start = 0",
        tests=(
            "study/test_gradients.py::test_blocks_of_any_size_add_up_to_the_sum_of_single_rows",
        ),
    ),
    Mutant(
        file="training/gradients.py",
        old="<= float(self.radius) ** 2 * (1 + 1e-9)",
        new="<= float(self.radius) ** 2 * (1 + 1e9)",
        tests=(
            "study/test_gradients.py::test_parameters_beyond_the_ball_count_as_their_projection",
        ),
    ),
    Mutant(
        file="training/gradient_sums.py",
        old="(62 - columns.bit_length()) // 2)",
        new="(80 - columns.bit_length()) // 2)",
        tests=(
            "study/test_clipped_units.py::test_squares_of_thousands_of_columns_do_not_wrap_around",
        ),
    ),
    Mutant(
        file="training/gradient_sums.py",
        old="most = bound >> shift",
        new="most = -(-bound >> shift)",
        tests=(
            "study/test_clipped_units.py::test_no_clipped_sum_is_longer_than_the_bound_however_large_it_was",
        ),
    ),
    Mutant(
        file="training/gradient_sums.py",
        old="inside: npt.NDArray[np.bool_] = small & (squares.sum(axis=1) <= most**2)",
        new="inside: npt.NDArray[np.bool_] = squares.sum(axis=1) <= most**2",
        tests=(
            "study/test_clipped_units.py::test_no_clipped_sum_is_longer_than_the_bound_however_large_it_was",
        ),
    ),
    Mutant(
        file="training/gradient_sums.py",
        old="return [sum(column) for column in sums.T.tolist()]",
        new="return sums.sum(axis=0).tolist()",
        tests=(
            "study/test_clipped_units.py::test_what_many_units_add_up_to_may_be_beyond_64_bits",
        ),
    ),
    Mutant(
        file="training/gradient_sums.py",
        old='table = table[np.argsort(table[:, -1], kind="stable")]',
        new="pass",
        tests=(
            "study/test_clipped_units.py::test_the_rows_of_a_unit_are_clipped_together_wherever_they_are",
        ),
    ),
    Mutant(
        file="training/descent.py",
        old="most = self._ball.radius // spacing",
        new="most = -(-self._ball.radius // spacing)",
        tests=(
            "study/test_descent.py::test_a_base_between_two_lattice_points_is_within_the_smaller_radius",
        ),
    ),
    Mutant(
        file="training/frank_wolfe.py",
        old="callers = type(loss) not in _ROW_BY_ROW",
        new="callers = not isinstance(loss, _ROW_BY_ROW)",
        tests=(
            "paper/test_frank_wolfe.py::test_a_loss_that_only_descends_from_ours_is_caller_asserted",
        ),
    ),
    Mutant(  # one row makes zeros of all others
        file="training/frank_wolfe.py",
        old='raise ValueError("not one gradient a row")',
        new="return np.zeros((len(block), self.polytope.dimension))",
        tests=(
            "paper/test_frank_wolfe.py::test_a_row_that_changes_the_shape_of_a_block_adds_nothing_and_hides_no_other",
        ),
    ),
    Mutant(  # BLAS adds in another order for another number of rows
        file="training/polytopes.py",
        old=(
            "        products = np.zeros((len(gradients), self.size))\n"
            "        for j in range(self.dimension):\n"
            "            products += gradients[:, j : j + 1] * self.vertices[:, j]\n"
            "        return products"
        ),
        new="        return gradients @ self.vertices.T",
        tests=(
            "paper/test_frank_wolfe.py::test_the_products_with_a_hull_s_vertices_are_those_of_each_row_alone",
        ),
    ),
    Mutant(
        file="mechanisms/ranks.py",
        old="np.add.at(total, where, np.concatenate([counts, added]))",
        new="total[where] = np.concatenate([counts, added])",
        tests=(
            "mechanisms/test_near_ranks.py::test_rows_that_are_counted_in_several_parts_are_all_counted",
        ),
    ),
    Mutant(
        file="mechanisms/ranks.py",
        old="np.count_nonzero(part < point), np.count_nonzero(part <= point)",
        new="np.count_nonzero(part <= point), np.count_nonzero(part <= point)",
        tests=(
            "mechanisms/test_near_ranks.py::test_rows_that_are_counted_in_several_parts_are_all_counted",
        ),
    ),
    Mutant(
        file="mechanisms/ranks.py",
        old="np.count_nonzero(part < point), np.count_nonzero(part <= point)",
        new="np.count_nonzero(part < point), np.count_nonzero(part < point)",
        tests=(
            "mechanisms/test_near_ranks.py::test_rows_that_are_counted_in_several_parts_are_all_counted",
        ),
    ),
    Mutant(
        file="mechanisms/moments.py",
        old="known = known and row.count_rows",
        new="known = known",
        tests=(
            "mechanisms/test_moments.py::test_a_known_number_of_rows_is_used_only_where_rows_are_counted",
        ),
    ),
    Mutant(  # a count without noise
        file="mechanisms/diagnostics.py",
        old="noisy = [n - sum(noisy), *noisy]",
        new="noisy = [int(counts[0]), *noisy]",
        tests=(
            "mechanisms/test_diagnostics.py::test_where_n_is_public_no_reading_is_shown_without_noise",
        ),
    ),
    Mutant(
        file="mechanisms/noisy_test.py",
        old="return Fraction(max(*terms, last * 2 * steps), 1 << _WEIGHT_BITS)",
        new="return Fraction(max(terms), 1 << _WEIGHT_BITS)",
        tests=(
            "tasks/test_trimmed_mean.py::test_what_lies_beyond_the_last_change_counts_as_the_whole_range",
        ),
    ),
    Mutant(
        file="mechanisms/noisy_test.py",
        old="last * 2 * steps)",
        new="last * steps)",
        tests=(
            "tasks/test_trimmed_mean.py::test_what_lies_beyond_the_last_change_counts_as_the_whole_range",
        ),
    ),
    Mutant(
        file="mechanisms/stable_queries.py",
        old="math.ceil(exact / self._side) + self.grid.dimension",
        new="math.ceil(exact / self._side)",
        tests=(
            "paper/test_propose_test_release.py::test_cells_of_a_box_with_unequal_sides_are_counted_by_the_smaller_one",
        ),
    ),
    Mutant(
        file="mechanisms/stable_queries.py",
        old="return min(whole, cells + self.grid.dimension)",
        new="return min(whole, cells)",
        tests=(
            "paper/test_propose_test_release.py::test_cells_of_a_box_with_unequal_sides_are_counted_by_the_smaller_one",
        ),
    ),
    Mutant(
        file="mechanisms/stable_queries.py",
        old="real = float((bound - self.grid.dimension) * self._side)",
        new="real = float(bound * self._side)",
        tests=(
            "paper/test_propose_test_release.py::test_cells_of_a_box_with_unequal_sides_are_counted_by_the_smaller_one",
        ),
    ),
    Mutant(
        file="mechanisms/stable_queries.py",
        old="Fraction(float(self.grid.box.widths().min()))",
        new="Fraction(float(self.grid.box.widths().max()))",
        tests=(
            "paper/test_propose_test_release.py::test_cells_of_a_box_with_unequal_sides_are_counted_by_the_smaller_one",
        ),
    ),
    Mutant(
        file="mechanisms/noisy_test.py",
        old="change / self.bound_epsilon",
        new="1 / self.bound_epsilon",
        tests=(
            "paper/test_local_sensitivity.py::test_a_draft_has_noise_for_the_change_and_then_for_the_noisy_bound",
        ),
    ),
    Mutant(
        file="mechanisms/noisy_test.py",
        old="max(self.smallest_bound, self.query.local_sensitivity(found) + noise + self.margin)",
        new="max(self.smallest_bound, self.query.local_sensitivity(found) + noise)",
        tests=(
            "paper/test_local_sensitivity.py::test_a_draft_has_noise_for_the_change_and_then_for_the_noisy_bound",
        ),
    ),
    Mutant(  # the count that the others leave, without noise
        file="tasks/distributions.py",
        old="whole.insert(follows, n - sum(whole))",
        new="whole.insert(follows, int(counts[follows]))",
        tests=(
            "tasks/test_histogram.py::test_a_count_that_follows_from_the_others_has_their_noise",
        ),
    ),
    Mutant(  # how many rows are complete, without noise
        file="tasks/statistics.py",
        old="float(size) * k / number if number > 0 else 0.0",
        new="float(size) * k / max(1, int(present[0]) * steps)",
        tests=(
            "tasks/test_rows_added.py::"
            "test_a_mean_of_complete_rows_follows_from_the_noisy_numbers_alone",
        ),
    ),
)
