"""Mistakes in studies: shares that are not kept, sensitivities, what outlives publishing."""

from __future__ import annotations

from mutants.mutant import Mutant

CLIPPED = "study/test_clipped_units.py"
READ = "tasks/test_diagnostics_of_every_task.py"
SETS = "study/test_studies_of_data_sets.py"
PARTS = "privacy/test_parts.py"

BITS = "spine/test_replayed_bits.py::test_"

MUTANTS = (
    Mutant(  # another source of bits when it is drawn than when it was certified
        file="spine/run.py",
        old="now is self.bits or (is_private(now) and is_private(self.bits))",
        new="True",
        tests=(f"{BITS}a_study_is_run_with_the_bits_it_was_made_with",),
    ),
    Mutant(
        file="spine/run.py",
        old="        self._check_bits()\n",
        new="",
        tests=(f"{BITS}a_study_is_run_with_the_bits_it_was_made_with",),
    ),
    Mutant(  # what was drawn after its block is replayed, too
        file="testing.py",
        old="        REPLAYED.reset(token)",
        new="        pass",
        tests=(f"{BITS}it_ends_with_its_block_and_blocks_nest",),
    ),
    Mutant(
        file="study/plan.py",
        old="if not 0 < taken <= self._left:",
        new="if not 0 < taken:",
        tests=("study/test_study_plan.py::test_a_schedule_is_spent_exactly",),
    ),
    Mutant(
        file="study/plan.py",
        old="large(self.epsilon * (2 if self.added else 1))",
        new="large(self.epsilon)",
        tests=("study/test_study_plan.py::test_a_large_epsilon_is_asked_about",),
    ),
    Mutant(
        file="study/plan.py",
        old="self._left -= taken",
        new="self._left -= taken / 2",
        tests=("study/test_study_plan.py::test_a_schedule_is_spent_exactly",),
    ),
    Mutant(
        file="study/plan.py",
        old="if number >= self.rounds:",
        new="if number > self.rounds:",
        tests=("study/test_study_plan.py::test_a_schedule_is_spent_exactly",),
    ),
    Mutant(
        file="study/plan.py",
        old="/ (share * self.mu_squared)",
        new="/ (2 * share * self.mu_squared)",
        tests=("study/test_study_plan.py::test_the_variance_is_the_sensitivity_over_the_share",),
    ),
    Mutant(
        file="study/plan.py",
        old="exact = 8 * share * self.mu_squared / 2",
        new="exact = 8 * share * self.mu_squared",
        tests=("study/test_study_plan.py::test_a_selection_costs_its_share_of_rho",),
    ),
    Mutant(
        file="study/plan.py",
        old="whole = 2 * calibration.rho if",
        new="whole = 4 * calibration.rho if",
        tests=("study/test_study_plan.py::test_rho_is_enough_for_zcdp",),
    ),
    Mutant(
        file="data/row_queries.py",
        old="return 4 * self.lattice.steps**2 * coordinates",
        new="return self.lattice.steps**2 * coordinates",
        tests=("study/test_internal_queries.py::test_the_noise_has_the_planned_variance",),
    ),
    Mutant(
        file="data/row_queries.py",
        old="coordinates = self.lattice.dimension if",
        new="coordinates = 1 if",
        tests=("study/test_internal_queries.py::test_the_noise_has_the_planned_variance",),
    ),
    Mutant(
        file="study/queries.py",
        old="self._noised(counts, 1 if self._plan.added else 2, taken)",
        new="self._noised(counts, 1, taken)",
        tests=(
            "study/test_internal_queries.py::test_no_row_moves_an_answer_by_more_than_its_share",
        ),
    ),
    Mutant(
        file="study/queries.py",
        old="squared = 2 * GRAM_STEPS**4",
        new="squared = GRAM_STEPS**4",
        tests=(
            "study/test_internal_queries.py::test_no_row_moves_an_answer_by_more_than_its_share",
        ),
    ),
    Mutant(
        file="study/queries.py",
        old="self._noise(squared, 2 * part)",
        new="self._noise(squared, 4 * part)",
        tests=(
            "study/test_internal_queries.py::test_no_row_moves_an_answer_by_more_than_its_share",
        ),
    ),
    Mutant(
        file="study/queries.py",
        old="part = taken / 2 if centered else taken",
        new="part = taken",
        tests=(
            "study/test_internal_queries.py::test_no_row_moves_an_answer_by_more_than_its_share",
        ),
    ),
    Mutant(
        file="study/queries.py",
        old="sensitivity=steps if self._plan.added else 2 * steps",
        new="sensitivity=steps",
        tests=(
            "study/test_internal_queries.py::test_a_score_moves_by_at_most_the_sensitivity_of_its_choice",
        ),
    ),
    Mutant(
        file="study/plan.py",
        old="made.purifier.apply(element, bits)",
        new="element",
        tests=("study/test_study_releases.py::test_a_source_of_bits_that_fails_publishes_nothing",),
    ),
    Mutant(
        file="study/study.py",
        old="self._guarded = self._guarded or self._shares.untouched",
        new="self._guarded = True",
        tests=("study/test_study_lifecycle.py::test_without_a_guard_the_certificate_says_so",),
    ),
    Mutant(
        file="study/study.py",
        old="        del self._source\n",
        new="",
        tests=("study/test_nothing_outlives_publishing.py::test_rows_are_let_go_with_the_release",),
    ),
    Mutant(
        file="study/plan.py",
        old="        self._open = False\n",
        new="",
        tests=(
            "study/test_study_lifecycle.py::test_a_study_that_has_ended_answers_and_publishes_nothing",
        ),
    ),
    Mutant(
        file="training/descent.py",
        old="if square <= most * most:",
        new="if square <= 2 * most * most:",
        tests=(
            "study/test_descent.py::test_the_base_of_the_last_step_is_an_integer_point_of_the_ball",
        ),
    ),
    Mutant(
        file="training/descent.py",
        old="length = math.isqrt(square) + 1",
        new="length = math.isqrt(square)",
        tests=(
            "study/test_descent.py::test_the_base_of_the_last_step_is_an_integer_point_of_the_ball",
        ),
    ),
    Mutant(
        file="training/descent.py",
        old="return 1 if neighbors is Neighbors.ADD_REMOVE else 2",
        new="return 1",
        tests=(f"{SETS}::test_training_where_rows_come_and_go",),
    ),
    Mutant(
        file="training/descent.py",
        old="iterates.step(noise.apply(exact, bits))",
        new="iterates.step(exact)",
        tests=("study/test_descent.py::test_every_round_and_every_ending_draws_its_noise",),
    ),
    Mutant(
        file="training/descent.py",
        old="return self.ball.project(self.channel.apply(iterates.point(), bits))",
        new="return self.ball.project(iterates.point())",
        tests=(
            "study/test_descent_publishes_through_its_channel.py::test_the_channel_has_the_last_word",
        ),
    ),
    Mutant(
        file="training/gradients.py",
        old="np.clip(slopes, -caps, caps, out=slopes)",
        new="np.clip(slopes, -caps, 2 * caps, out=slopes)",
        tests=("study/test_gradients.py::test_one_row_is_within_the_bound_in_integers",),
    ),
    Mutant(
        file="training/gradients.py",
        old="caps * caps * squares > bound * bound",
        new="caps * caps * squares > 2 * bound * bound",
        tests=("study/test_gradients.py::test_one_row_is_within_the_bound_in_integers",),
    ),
    Mutant(
        file="training/gradients.py",
        old="self.bound = math.isqrt(squares - 1) + 1",
        new="self.bound = math.isqrt(squares - 1)",
        tests=("study/test_descent.py::test_layers_are_clipped_each_to_its_own_norm",),
    ),
    Mutant(
        file="study/study.py",
        old="self._opened if self._guarded else self._opened.replanned(made)",
        new="self._opened",
        tests=("study/test_study_lifecycle.py::test_without_a_guard_the_certificate_says_so",),
    ),
    Mutant(
        file="data/pieces.py",
        old="if len(block) > self._room:",
        new="if False:",
        tests=(
            "data/test_threads.py::test_sums_beyond_64_bits_are_exact_in_any_number_of_threads",
        ),
    ),
    Mutant(
        file="data/rows.py",
        old="if (named or type(mapped) is Rowwise) and",
        new="if True and",
        tests=("data/test_threads.py::test_code_of_the_caller_runs_where_it_was_started",),
    ),
    Mutant(
        file="data/pieces.py",
        old="                    mine = self._next(mine)",
        new="                    return",
        tests=("data/test_threads.py::test_every_block_is_taken_once_and_every_piece_is_closed",),
    ),
    Mutant(
        file="training/gradients.py",
        old="if there.bound < _ROW_STEPS * _SLOPE_STEPS:",
        new="if False:",
        tests=("data/test_identical_integers.py::test_every_source_gives_the_same_integers",),
    ),
    Mutant(
        file="data/rows.py",
        old="self._answer((mapped, *key), added)",
        new="self._answer((mapped, key[0]), added)",
        tests=("data/test_sums.py::test_kept_sums_are_those_of_their_own_lattice",),
    ),
    Mutant(
        file="exact/fixed_point.py",
        old="np.clip(scaled, -limit, limit, out=scaled)",
        new="np.clip(scaled, -limit, 2 * limit, out=scaled)",
        tests=("exact/test_fixed_point.py::test_the_sum_is_that_of_the_quantized_rows",),
    ),
    Mutant(  # a study's fractions are read when its program has changed the rows
        file="study/study.py",
        old="            self._opened.read()\n",
        new="",
        tests=(f"{READ}::test_a_program_cannot_change_how_rows_are_said_to_be_read",),
    ),
    Mutant(
        file="study/study.py",
        old="_opened=self._opened.rehearsed()",
        new="_opened=self._opened",
        tests=(f"{READ}::test_a_rehearsal_reads_no_row",),
    ),
    Mutant(  # a study spends all of ε beside the share that it has given away
        file="study/study.py",
        old="self.price / (1 - beside.share)",
        new="self.price",
        tests=(f"{READ}::test_the_parts_add_up_to_the_epsilon_that_was_asked",),
    ),
    Mutant(  # a descent's claim without the part beside it
        file="spine/run.py",
        old="plan if self._aside is None else plan.beside(self._aside.plan)",
        new="plan",
        tests=(f"{READ}::test_the_parts_add_up_to_the_epsilon_that_was_asked",),
    ),
    Mutant(  # a query is run again for what is asked beside
        file="data/dataset.py",
        old="if self._base.reader.premise is None or not isinstance(other, Dataset):",
        new="if True:",
        tests=(f"{READ}::test_a_query_is_run_once_for_a_ticket",),
    ),
    Mutant(  # counts of one column stand in for those of another
        file="data/rows.py",
        old="None if self.name is None else (self.name, names, itself)",
        new="self.name",
        tests=(f"{READ}::test_columns_of_one_copy_have_their_own_counts",),
    ),
    Mutant(  # other rows than those that a condition leaves
        file="data/dataset.py",
        old="self._with(names=(ITSELF, *names), judged",
        new="self._with(names=(ITSELF, *names), where=(), judged",
        tests=(f"{READ}::test_the_copy_has_the_rows_of_a_plain_scan",),
    ),
    Mutant(  # a study of units that believes to be one of rows
        file="spine/plan.py",
        old="if protection.unit is None or not (self.steps or self.parts):",
        new="if protection.unit is None:",
        tests=("estimators/test_data_sets.py::test_a_study_of_units_has_all_of_epsilon",),
    ),
    Mutant(  # a unit's sum is twice as long as its noise is for
        file="training/gradients.py",
        old="clipped_units(each, starts, weight * self.bound)",
        new="clipped_units(each, starts, 2 * weight * self.bound)",
        tests=(f"{CLIPPED}::test_no_unit_moves_a_sum_by_more_than_its_weight",),
    ),
    Mutant(
        file="training/gradients.py",
        old="clipped_units(np.hstack(each), starts, weight * self.bound)",
        new="clipped_units(np.hstack(each), starts, 2 * weight * self.bound)",
        tests=(f"{CLIPPED}::test_no_unit_moves_a_sum_by_more_than_its_weight",),
    ),
    Mutant(  # sums that only seem to be inside
        file="training/gradient_sums.py",
        old="rounded = -(-np.abs(sums) >> shift)",
        new="rounded = np.abs(sums) >> shift + 1",
        tests=(f"{CLIPPED}::test_a_cut_sum_is_inside_the_ball_and_hardly_shorter",),
    ),
    Mutant(  # noise for one row, where a unit counts like two
        file="training/descent.py",
        old="times = protects.max_rows if gradients.weight is None else gradients.weight",
        new="times = protects.max_rows if gradients.weight is None else 1",
        tests=(f"{CLIPPED}::test_less_weight_is_less_noise_and_the_certificate_says_so",),
    ),
    Mutant(  # units of different files of hashes are taken for one
        file="data/units.py",
        old="numbers[part][rows[here]] = units + unit[here]",
        new="numbers[part][rows[here]] = unit[here]",
        tests=(f"{CLIPPED}::test_sources_batches_and_memory_do_not_matter",),
    ),
    Mutant(
        file="privacy/theorems/subsampling.py",
        old="return min(self.weight, self.max_rows)",
        new="return 1",
        tests=(f"{PARTS}::test_clipped_together_a_unit_counts_like_its_weight",),
    ),
    Mutant(  # the rows of a unit cost what one of them does
        file="privacy/theorems/subsampling.py",
        old="        return self.max_rows\n",
        new="        return 1\n",
        tests=(f"{PARTS}::test_a_unit_of_three_rows_costs_three_times_the_epsilon_of_one",),
    ),
    Mutant(  # a unit's vote is counted by anything
        file="privacy/theorems/subsampling.py",
        old="if not (alone and flips[0].sensitivity >= 1 and not flips[0].monotone):",
        new="if not before:",
        tests=(f"{PARTS}::test_unit_votes_are_about_permute_and_flip_alone_and_rest_on_a_word",),
    ),
    Mutant(  # what is no sum is taken for one that was clipped
        file="privacy/theorems/subsampling.py",
        old="not all(type(base) is RoundedGaussianTheorem for base in bases)",
        new="not bases",
        tests=(
            f"{PARTS}::test_clipping_together_is_about_sums_with_gaussian_noise_before_a_channel",
        ),
    ),
    Mutant(  # units: one row's μ² for the whole unit
        file="study/plan.py",
        old="return whole / self.max_rows**2",
        new="return whole",
        tests=(
            f"{SETS}::test_no_unit_moves_an_answer_by_more_than_its_share",
            f"{SETS}::test_what_is_published_of_units_is_pure",
        ),
    ),
    Mutant(
        file="study/plan.py",
        old="return whole / self.max_rows**2",
        new="return whole / self.max_rows",
        tests=(
            f"{SETS}::test_no_unit_moves_an_answer_by_more_than_its_share",
            f"{SETS}::test_the_noise_of_a_unit_is_that_of_its_rows_together",
        ),
    ),
    Mutant(
        file="training/descent.py",
        old="squared = (moves * gradients.bound * times) ** 2",
        new="squared = (moves * gradients.bound) ** 2",
        tests=(
            f"{SETS}::test_training_protects_units",
            "estimators/test_data_sets.py::test_no_unit_moves_a_descent_by_more_than_proven",
        ),
    ),
    Mutant(  # S2 rests on a number of rows that was guessed
        file="training/descent.py",
        old="protects.neighbors is Neighbors.REPLACE and rows_bound:",
        new="protects.neighbors is Neighbors.REPLACE:",
        tests=(f"{SETS}::test_a_raw_last_step_is_published_only_of_a_known_number_of_rows",),
    ),
    *(  # the constants of add-remove for replaced rows
        Mutant(
            file="study/queries.py",
            old=old,
            new=new,
            tests=(f"{SETS}::test_no_row_moves_an_answer_by_more_than_its_share",),
        )
        for old, new in (
            ("squared // 4 if added and not any(starts)", "squared // 4 if True"),
            ("squared // 2 if added else squared", "squared // 2"),
            (
                "squared // 4 if self._plan.added else squared",
                "squared // 4",
            ),
        )
    ),
    *(
        Mutant(
            file="study/queries.py",
            old=old,
            new=new,
            tests=(
                f"{SETS}::test_no_row_that_comes_or_goes_moves_an_answer_by_more_than_its_share",
            ),
        )
        for old, new in (
            ("if added and not any(starts)", "if added"),
            ("squared // 2 if added", "squared // 4 if added"),
            (
                "squared // 4 if self._plan.added",
                "squared // 16 if self._plan.added",
            ),
        )
    ),
    Mutant(
        file="study/queries.py",
        old="sensitivity=steps if self._plan.added",
        new="sensitivity=Fraction(steps, 2) if self._plan.added",
        tests=(f"{SETS}::test_a_choice_costs_its_share_where_rows_come_and_go",),
    ),
    Mutant(
        file="privacy/composition.py",
        old="mu_squared=size**2 * self.mu_squared",
        new="mu_squared=size * self.mu_squared",
        tests=(f"{PARTS}::test_before_a_channel_a_unit_has_the_square_of_its_rows",),
    ),
    Mutant(
        file="privacy/composition.py",
        old="rho=size**2 * self.rho",
        new="rho=size * self.rho",
        tests=(f"{PARTS}::test_before_a_channel_a_unit_has_the_square_of_its_rows",),
    ),
    Mutant(
        file="privacy/composition.py",
        old="[(size * epsilon, False, count)",
        new="[(epsilon, False, count)",
        tests=(f"{PARTS}::test_what_a_group_costs",),
    ),
    Mutant(
        file="privacy/verify.py",
        old="        base = units.of_unit(base)\n",
        new="",
        tests=(f"{PARTS}::test_before_a_channel_a_unit_has_the_square_of_its_rows",),
    ),
    Mutant(  # the last step that Theorem S smooths, for one row only
        file="privacy/verify.py",
        old="if base is None or not channel.any_neighbors:",
        new="if base is None:",
        tests=(f"{PARTS}::test_the_last_step_that_is_smoothed_is_not_multiplied",),
    ),
    Mutant(  # twice
        file="privacy/verify.py",
        old="if units_of(before) is not None:\n        raise",
        new="if before == ():\n        raise",
        tests=(f"{PARTS}::test_units_stand_once_and_before_channels_that_only_look_at_the_claim",),
    ),
    Mutant(  # the number of values is worth more than a value
        file="study/queries.py",
        old="weighed = numbers.astype(np.object_) * steps",
        new="weighed = numbers.astype(np.object_) * (2 * steps)",
        tests=(f"{SETS}::test_no_row_moves_an_answer_by_more_than_its_share",),
    ),
    Mutant(  # measured from an end, and counted as well
        file="study/queries.py",
        old="(0, steps, -steps) if center == quantum * k",
        new="(0, 2 * steps, -steps) if center * 2 == quantum * k",
        tests=(
            f"{SETS}::test_no_row_moves_an_answer_by_more_than_its_share",
            f"{SETS}::test_declared_bounds_and_codes_are_the_defaults",
        ),
    ),
    Mutant(
        file="study/queries.py",
        old="dtype=np.object_), 2 * squared**2)",
        new="dtype=np.object_), squared**2)",
        tests=(
            f"{SETS}::test_no_row_moves_an_answer_by_more_than_its_share",
            f"{SETS}::test_no_row_that_comes_or_goes_moves_an_answer_by_more_than_its_share",
        ),
    ),
    Mutant(  # a function of a dropped row counts
        file="data/rows.py",
        old="blanks = self.may_miss and not named",
        new="blanks = False",
        tests=(f"{SETS}::test_rows_that_are_dropped_count_nowhere",),
    ),
    Mutant(
        file="training/gradients.py",
        old="blanks = self.examples.source.may_miss",
        new="blanks = False",
        tests=(f"{SETS}::test_a_function_of_dropped_rows_adds_no_gradient",),
    ),
    Mutant(
        file="study/study.py",
        old="if not self._plan.rows_public:",
        new="if not self._size:",
        tests=(f"{SETS}::test_the_number_of_rows_that_count_is_not_there",),
    ),
    Mutant(  # a private number of rows on a progress bar
        file="data/source.py",
        old="self._rows = source.rows if source.whole else None",
        new="self._rows = source.rows",
        tests=("data/test_progress.py::test_rows_are_shown_where_their_number_is_public",),
    ),
    Mutant(  # progress of a program that runs
        file="data/pieces.py",
        old="main and not is_silenced() and",
        new="main and",
        tests=("data/test_progress.py::test_nobody_is_shown_what_is_not_wanted",),
    ),
)
