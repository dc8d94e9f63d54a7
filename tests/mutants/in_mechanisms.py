"""Mistakes in mechanisms: half the noise, a claim that says more, sums that wrap around."""

from __future__ import annotations

from mutants.mutant import Mutant

MUTANTS = (
    Mutant(
        file="mechanisms/ranks.py",
        old="last = max(math.ceil(self.q * count), min(count, 1))",
        new="last = max(math.floor(self.q * count), min(count, 1))",
        tests=(
            "tasks/test_laws_of_data_sets.py::test_quantiles_are_pure_on_every_pair_of_neighbors",
        ),
    ),
    Mutant(
        file="mechanisms/ranks.py",
        old="return max(self.q.numerator, self.q.denominator - self.q.numerator)",
        new="return min(self.q.numerator, self.q.denominator - self.q.numerator) or 1",
        tests=(
            "tasks/test_laws_of_data_sets.py::test_quantiles_are_pure_on_every_pair_of_neighbors",
        ),
    ),
    Mutant(
        file="mechanisms/ranks.py",
        old="e = min(self.margin, count // self.parts)",
        new="e = self.margin if count >= 2 * self.margin else 0",
        tests=(
            "mechanisms/test_near_ranks.py::test_a_row_more_moves_every_distance_by_the_stated_sensitivity",
        ),
    ),
    Mutant(
        file="mechanisms/ranks.py",
        old="values = values[~absent] if absent.any() else values",
        new="values = values if absent.any() else values",
        tests=(
            "tasks/test_laws_of_data_sets.py::test_quantiles_are_pure_on_every_pair_of_neighbors",
        ),
    ),
    Mutant(
        file="mechanisms/ranks.py",
        old="skipped = before + (int(cells[low]) if low in heavy else 0)",
        new="skipped = before",
        tests=("mechanisms/test_near_ranks.py::test_windows_begin_and_end_in_heavy_cells",),
    ),
    Mutant(
        file="exact/argmax.py",
        old="gap = max(self._gap, self._best - int(self._rest(place)))",
        new="gap = self._gap",
        tests=(
            "mechanisms/test_near_ranks.py::test_options_that_are_only_bounded_win_as_often_as_if_they_were_scored",
        ),
    ),
    Mutant(
        file="exact/argmax.py",
        old="            if contest.beats(found, winner, bits):\n",
        new="            if found:\n",
        tests=(
            "mechanisms/test_near_ranks.py::test_options_that_are_only_bounded_win_as_often_as_if_they_were_scored",
        ),
    ),
    Mutant(
        file="mechanisms/sum_noise.py",
        old='unit.epsilon / as_positive(epsilon, "epsilon")',
        new='unit.epsilon / (2 * as_positive(epsilon, "epsilon"))',
        tests=("mechanisms/test_mechanisms.py::test_the_scale_for_an_epsilon_is_exact",),
    ),
    Mutant(
        file="mechanisms/sum_noise.py",
        old="rounded_laplace(scale=self.scale, size",
        new="rounded_laplace(scale=self.scale / 2, size",
        tests=(
            "completeness/test_everything_has_its_exact_test.py::test_what_is_drawn_is_the_law_of_the_theorem",
        ),
    ),
    Mutant(
        file="mechanisms/sum_noise.py",
        old="RoundedLaplaceTheorem(sensitivity=self.sensitivity, scale=self.scale)",
        new="RoundedLaplaceTheorem(sensitivity=self.sensitivity, scale=2 * self.scale)",
        tests=("mechanisms/test_mechanisms.py::test_a_step_carries_the_arguments_of_its_theorem",),
    ),
    Mutant(
        file="mechanisms/sum_noise.py",
        old="variance=self.variance, size",
        new="variance=self.variance / 2, size",
        tests=(
            "completeness/test_everything_has_its_exact_test.py::test_what_is_drawn_is_the_law_of_the_theorem",
        ),
    ),
    Mutant(
        file="mechanisms/sum_noise.py",
        old='variance = squared / as_positive(mu_squared, "mu_squared")',
        new='variance = squared / (2 * as_positive(mu_squared, "mu_squared"))',
        tests=("mechanisms/test_mechanisms.py::test_the_scale_for_an_epsilon_is_exact",),
    ),
    Mutant(
        file="mechanisms/sum_noise.py",
        old="scale=self.scale, size=1",
        new="scale=self.scale / 2, size=1",
        tests=(
            "completeness/test_everything_has_its_exact_test.py::test_what_is_drawn_is_the_law_of_the_theorem",
        ),
    ),
    Mutant(
        file="mechanisms/sum_noise.py",
        old="norm=self.norm, dimension=self.dimension, scale=self.scale, size=1",
        new="norm=1, dimension=self.dimension, scale=self.scale, size=1",
        tests=(
            "completeness/test_everything_has_its_exact_test.py::test_what_is_drawn_is_the_law_of_the_theorem",
        ),
    ),
    Mutant(
        file="mechanisms/sum_noise.py",
        old="dimension=self.dimension, scale=self.scale, bits",
        new="dimension=self.dimension, scale=self.scale / 2, bits",
        tests=(
            "completeness/test_everything_has_its_exact_test.py::test_what_is_drawn_is_the_law_of_the_theorem",
        ),
    ),
    Mutant(
        file="mechanisms/sum_noise.py",
        old='norm="counts", quantum=1, sensitivity=Fraction(1), scale=self.scale',
        new='norm="counts", quantum=1, sensitivity=Fraction(1), scale=2 * self.scale',
        tests=(
            "completeness/test_everything_has_its_exact_test.py::test_what_is_drawn_is_the_law_of_the_theorem",
        ),
    ),
    Mutant(
        file="mechanisms/selection.py",
        old="gumbel_argmax(scores, scale=self.scale",
        new="gumbel_argmax(scores, scale=self.scale / 2",
        tests=(
            "completeness/test_everything_has_its_exact_test.py::test_what_is_drawn_is_the_law_of_the_theorem",
        ),
    ),
    Mutant(
        file="mechanisms/selection.py",
        old="exponential_argmax(\n            scores, scale=self.scale",
        new="exponential_argmax(\n            scores, scale=self.scale / 2",
        tests=(
            "completeness/test_everything_has_its_exact_test.py::test_what_is_drawn_is_the_law_of_the_theorem",
        ),
    ),
    Mutant(
        file="privacy/theorems/noise.py",
        old='    label = "permute-and-flip"\n',
        new='    label = "permute-and-flip"\n    bounded_range = True\n',
        tests=("mechanisms/test_mechanisms.py::test_a_step_carries_the_arguments_of_its_theorem",),
    ),
    Mutant(
        file="mechanisms/sum_noise.py",
        old="if not wide and low >= _SMALLEST and high <= _LARGEST:",
        new="if not wide and low >= _SMALLEST:",
        tests=(
            "completeness/test_everything_has_its_exact_test.py::test_what_is_drawn_is_the_law_of_the_theorem",
        ),
    ),
    Mutant(
        file="mechanisms/partition_noise.py",
        old="return rounded_count_noise(dimension=self.cells, scale=self.scale, bits=bits)",
        new="return np.concatenate([rounded_count_noise(dimension=1, scale=self.scale, "
        "bits=bits) for _ in range(self.cells)])",  # one draw for each group
        tests=(
            "completeness/test_everything_has_its_exact_test.py::test_what_is_drawn_is_the_law_of_the_theorem",
        ),
    ),
    Mutant(
        file="mechanisms/partition_noise.py",
        old="discrete_laplace(scale=self.scale, size",
        new="discrete_laplace(scale=self.scale / 2, size",
        tests=(
            "completeness/test_everything_has_its_exact_test.py::test_what_is_drawn_is_the_law_of_the_theorem",
        ),
    ),
    Mutant(
        file="mechanisms/partition_noise.py",
        old="noise = rounded_k_norm(\n            norm=math.inf,",
        new="noise = rounded_k_norm(\n            norm=1,",
        tests=(
            "completeness/test_everything_has_its_exact_test.py::test_what_is_drawn_is_the_law_of_the_theorem",
        ),
    ),
    Mutant(
        file="mechanisms/partition_noise.py",
        old="return GeometricLaw(scale=self.scale)",
        new="return CountsLaw(scale=self.scale)",
        tests=(
            "completeness/test_everything_has_its_exact_test.py::test_the_law_that_intervals_rest_on_is_the_law_that_is_drawn",
        ),
    ),
    Mutant(
        file="mechanisms/key_noise.py",
        old="asymmetric_noise(up=self.up, down=self.down, size=count, bits=bits)",
        new="asymmetric_noise(up=self.down, down=self.up, size=count, bits=bits)",
        tests=(
            "completeness/test_everything_has_its_exact_test.py::test_what_is_drawn_is_the_law_of_the_theorem",
        ),
    ),
    Mutant(
        file="paper/gaussian_statistics.py",
        old="seen = float(_noised(smallest, squared * bound",
        new="seen = float(_noised(smallest, squared / 4 * bound",
        tests=(
            "completeness/test_everything_has_its_exact_test.py::test_every_release_draws_what_its_certificate_is_about_and_every_mechanism_has_one",
        ),
    ),
    Mutant(
        file="mechanisms/noisy_test.py",
        old="scale = sensitivity / self.ratio",
        new="scale = sensitivity * self.ratio",
        tests=(
            "completeness/test_everything_has_its_exact_test.py::test_what_is_drawn_is_the_law_of_the_theorem",
        ),
    ),
    Mutant(
        file="exact/noise_tails.py",
        old="(1 + 1 / p) * product - sums / p",
        new="product",
        tests=(
            "mechanisms/test_moments.py::test_the_joint_draw_has_the_variance_and_the_correlation_of_p2",
        ),
    ),
    Mutant(
        file="privacy/statistics.py",
        old="return self.count > 0",
        new="return self.count != 0",
        tests=("mechanisms/test_moments.py::test_a_count_that_is_not_positive_gives_the_middle",),
    ),
    Mutant(
        file="privacy/statistics.py",
        old="self._divided(2) - self.mean**2",
        new="self._divided(2)",
        tests=(
            "mechanisms/test_moments.py::test_without_noise_the_estimates_are_those_of_the_rows",
        ),
    ),
    Mutant(
        file="mechanisms/moments.py",
        old="math.isqrt(total) // 2",
        new="total // 2",
        tests=("mechanisms/test_moments.py::test_sums_of_the_expected_rows_fit_64_bits",),
    ),
    Mutant(  # the share is not taken off the release itself
        file="spine/run.py",
        old="return exact if beside is None else exact * (1 - beside.share)",
        new="return exact",
        tests=(
            "mechanisms/test_diagnostics.py::test_the_parts_of_the_certificate_add_up_to_the_epsilon_that_was_asked",
        ),
    ),
    Mutant(  # the certificate leaves the readings out
        file="spine/plan.py",
        old="parts=(*self._parts(own), *other._parts(others)),",
        new="parts=self._parts(own),",
        tests=(
            "mechanisms/test_diagnostics.py::test_the_parts_of_the_certificate_add_up_to_the_epsilon_that_was_asked",
        ),
    ),
    Mutant(  # the number of rows that a filter leaves is taken as public
        file="mechanisms/diagnostics.py",
        old="n = None if facts.may_miss else facts.rows",
        new="n = facts.rows",
        tests=(
            "mechanisms/test_diagnostics.py::test_without_noise_the_fractions_are_those_of_the_rows",
        ),
    ),
    Mutant(  # an unreadable cell is judged by what it counts as
        file="data/chosen.py",
        old="columns = [self.base.kinds[name].read(cells[name]) for name in self.judged]",
        new="columns = [_read(self.base.kinds[name], cells[name]) for name in self.judged]",
        tests=(
            "mechanisms/test_diagnostics.py::test_a_row_is_used_clipped_or_unreadable_by_its_own_cells",
        ),
    ),
    Mutant(
        file="data/arrays.py",
        old="bare._fill = None",
        new="pass",
        tests=(
            "mechanisms/test_diagnostics.py::test_arrays_are_read_as_they_are_whatever_a_missing_cell_counts_as",
        ),
    ),
    Mutant(
        file="mechanisms/partition_noise.py",
        old="(~np.isnan(columns(block))).astype(np.float64)",
        new="np.ones(columns(block).shape)",
        tests=(
            "mechanisms/test_moments.py::test_columns_read_together_add_up_to_what_they_do_one_by_one",
        ),
    ),
    Mutant(
        file="mechanisms/stable_queries.py",
        old="0 if found is None else math.floor(max(0.0",
        new="0 if found is None else math.ceil(max(0.0",
        tests=("paper/test_propose_test_release.py::test_a_caller_s_distance_is_rounded_down",),
    ),
    Mutant(  # a quotient of floats may round up by one cell more
        file="mechanisms/stable_queries.py",
        old="return max(1, math.ceil(exact / self._side)) + 1",
        new="return max(1, math.ceil(exact / self._side))",
        tests=(
            "paper/test_local_sensitivity.py::test_a_local_sensitivity_in_cells_moves_by_at_most_the_stated_change",
        ),
    ),
    Mutant(  # all rows are lost where they are as many as may be held
        file="mechanisms/runs.py",
        old="            if waiting > _HELD:\n                held.clear()",
        new="            if waiting >= _HELD:\n                held.clear()",
        tests=(
            "mechanisms/test_grid_runs.py::test_groups_are_the_same_however_many_fit_in_memory",
        ),
    ),
    Mutant(  # noise beyond 64 bits raises where the sum would fit
        file="mechanisms/sum_noise.py",
        old="wide = object in (sums.dtype, noise.dtype)",
        new="wide = object in (sums.dtype,)",
        tests=(
            "mechanisms/test_mechanisms.py::test_addition_is_exact_and_its_type_follows_from_the_result",
        ),
    ),
    Mutant(  # not given that it missed the last bar
        file="mechanisms/key_noise.py",
        old="            return inside + log_below(below, up=self.up, down=self.down)",
        new="            return inside - log_below(below, up=self.up, down=self.down)",
        tests=(
            "mechanisms/test_keys_are_drawn_exactly.py::test_a_key_that_occurs_wins_no_tie_against_one_that_does_not",
        ),
    ),
    Mutant(  # twice the ε
        file="mechanisms/key_noise.py",
        old="return cls(up=exact, down=exact, neighbors=neighbors)\n        wide",
        new="return cls(up=2 * exact, down=exact, neighbors=neighbors)\n        wide",
        tests=(
            "mechanisms/test_keys_are_private.py::test_u_is_exactly_epsilon_for_every_threshold",
        ),
    ),
    Mutant(  # keys of the longer classes are never published unless they occur
        file="mechanisms/key_noise.py",
        old="size = self.universe.classes[group].size\n            ranks",
        new="size = self.universe.classes[0].size\n            ranks",
        tests=(
            "mechanisms/test_keys_are_private.py::test_every_key_of_every_class_may_be_published_though_it_does_not_occur",
        ),
    ),
    Mutant(
        file="mechanisms/moments.py",
        old="_SUM_BITS = 62",
        new="_SUM_BITS = 70",
        tests=("mechanisms/test_moments.py::test_sums_of_the_expected_rows_fit_64_bits",),
    ),
    Mutant(  # raises where the rows are fewer than planned
        file="mechanisms/ranks.py",
        old="first, last = min(aim.first, count), min(aim.last, count)",
        new="first, last = aim.first, aim.last",
        tests=(
            "mechanisms/test_near_ranks.py::test_a_source_with_fewer_rows_than_the_aim_has_its_last_row",
        ),
    ),
    Mutant(  # half the rate
        file="mechanisms/noisy_test.py",
        old="epsilon * abs(gap)",
        new="epsilon * abs(gap) / 2",
        tests=(
            "paper/test_propose_test_release.py::test_the_noisy_test_has_the_tail_of_laplace_noise",
        ),
    ),
    Mutant(  # stable data fail as often as unstable ones
        file="mechanisms/noisy_test.py",
        old="return tail if gap >= 0 else not tail",
        new="return tail",
        tests=(
            "paper/test_propose_test_release.py::test_the_noisy_test_has_the_tail_of_laplace_noise",
        ),
    ),
    Mutant(  # one sum with many draws
        file="mechanisms/partition_noise.py",
        old="return self.blocks * self.dimension",
        new="return None",
        tests=(
            "mechanisms/test_partitions_are_private.py::test_sums_of_another_length_than_the_noise_are_refused",
        ),
    ),
    Mutant(
        file="mechanisms/ranks.py",
        old="first = min(math.floor(self.q * count), max(count - 1, 0))",
        new="first = math.floor(self.q * count)",
        tests=(
            "mechanisms/test_near_ranks.py::test_a_private_aim_is_the_public_one_where_no_end_is_near",
        ),
    ),
    Mutant(
        file="mechanisms/ranks.py",
        old="first = min(math.floor(self.q * count), max(count - 1, 0))",
        new="first = min(math.ceil(self.q * count), max(count - 1, 0))",
        tests=(
            "mechanisms/test_near_ranks.py::test_a_private_aim_is_the_public_one_where_no_end_is_near",
        ),
    ),
    Mutant(
        file="mechanisms/ranks.py",
        old="inside = [min(max(rank, e), count - e) for rank in (first, last)]",
        new="inside = [max(rank, e) for rank in (first, last)]",
        tests=(
            "mechanisms/test_near_ranks.py::test_a_private_aim_is_the_public_one_where_no_end_is_near",
        ),
    ),
    Mutant(
        file="mechanisms/ranks.py",
        old="float((self.size - 1) // 2)",
        new="float((self.size - 1) / 2)",
        tests=(
            "mechanisms/test_near_ranks.py::test_cells_are_snapped_to_the_nearest_point_and_missing_ones_to_the_middle",
        ),
    ),
    Mutant(
        file="mechanisms/ranks.py",
        old='np.searchsorted(middles, values, side="left")',
        new='np.searchsorted(middles, values, side="right")',
        tests=(
            "mechanisms/test_near_ranks.py::test_cells_are_snapped_to_the_nearest_point_and_missing_ones_to_the_middle",
        ),
    ),
    Mutant(
        file="mechanisms/ranks.py",
        old="np.where(np.isnan(values), (self.size - 1) // 2, found)",
        new="found",
        tests=(
            "mechanisms/test_near_ranks.py::test_cells_are_snapped_to_the_nearest_point_and_missing_ones_to_the_middle",
        ),
    ),
    Mutant(
        file="mechanisms/ranks.py",
        old="scaled[np.isnan(values)] = float((self.size - 1) // 2)",
        new="pass",
        tests=(
            "mechanisms/test_near_ranks.py::test_cells_are_snapped_to_the_nearest_point_and_missing_ones_to_the_middle",
        ),
    ),
    Mutant(  # fine points beyond 2^53
        file="mechanisms/ranks.py",
        old="MOST_POINTS = (1 << 40) + 1",
        new="MOST_POINTS = (1 << 53) + 1",
        tests=(
            "mechanisms/test_grid_runs.py::test_runs_on_the_default_grid_are_exact_to_the_last_bit",
        ),
    ),
    Mutant(  # the first place is drawn a second time
        file="mechanisms/selection.py",
        old="if winner >= last:",
        new="if winner > last:",
        tests=(
            "mechanisms/test_selection_is_private.py::test_the_first_of_the_options_that_are_only_bounded_is_itself",
        ),
    ),
    Mutant(
        file="mechanisms/stable_queries.py",
        old="return math.floor(cells)\n",
        new="return math.ceil(cells)\n",
        tests=(
            "paper/test_propose_test_release.py::test_the_cells_of_a_bound_are_those_that_are_whole_in_it",
        ),
    ),
    Mutant(  # one row more than is added up: more noise than is needed
        file="mechanisms/noisy_test.py",
        old="kept = (trim + 1, count - trim)",
        new="kept = (trim, count - trim)",
        tests=(
            "tasks/test_trimmed_mean.py::test_where_more_changes_weigh_nothing_the_sensitivity_is_that_of_one_row",
        ),
    ),
    Mutant(  # every row has the place of the one before it
        file="mechanisms/joint_quantiles.py",
        old='places = np.searchsorted(placed, wanted, side="right")',
        new='places = np.searchsorted(placed, wanted, side="left")',
        tests=(
            "mechanisms/test_grid_runs.py::test_rows_of_a_heavy_point_are_where_they_were_drawn",
        ),
    ),
    Mutant(  # more places than rows: the lowest are taken
        file="mechanisms/joint_quantiles.py",
        old="min(MOST_TOGETHER, count - start)",
        new="MOST_TOGETHER",
        tests=(
            "mechanisms/test_grid_runs.py::test_rows_of_a_heavy_point_are_where_they_were_drawn",
        ),
    ),
)
