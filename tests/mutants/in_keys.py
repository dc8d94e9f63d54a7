"""Mistakes with keys: one direction paid, keys in the order of rows, keys drawn twice, Δ for 2Δ."""

from __future__ import annotations

from mutants.mutant import Mutant

PRIVATE = "mechanisms/test_keys_are_private.py"
DRAWN = "mechanisms/test_keys_are_drawn_exactly.py"
EXACTLY = f"{PRIVATE}::test_u_is_exactly_epsilon_for_every_threshold"
LISTED = f"{DRAWN}::test_keys_of_a_universe_of_1024_are_published_as_if_it_were_listed"
CELLS = "tasks/test_keys.py"

MUTANTS = (
    Mutant(  # a key that occurs goes first among those tied
        file="mechanisms/key_noise.py",
        old="if single and len(fresh) >= tied:",
        new="if single and len(fresh) >= max(lacking, 0):",
        tests=(f"{DRAWN}::test_a_key_that_occurs_wins_no_tie_against_one_that_does_not",),
    ),
    Mutant(
        file="privacy/theorems/noise.py",
        old="return self.up + self.down if replaced else max(self.up, self.down)",
        new="return max(self.up, self.down)",
        tests=(f"{PRIVATE}::test_a_certificate_of_keys_proves_exactly_epsilon", EXACTLY),
    ),
    Mutant(
        file="privacy/theorems/noise.py",
        old="return (2 if self.monotone else 4) * self.sensitivity / self.scale",
        new="return 2 * self.sensitivity / self.scale",
        tests=(f"{PRIVATE}::test_joint_top_k_is_pure_on_every_pair_of_scores",),
    ),
    Mutant(
        file="mechanisms/key_noise.py",
        old="return cls(up=exact * share, down=exact * (1 - share), neighbors=neighbors)",
        new="return cls(up=exact * share, down=exact, neighbors=neighbors)",
        tests=(EXACTLY, f"{PRIVATE}::test_both_directions_add_up_to_epsilon"),
    ),
    Mutant(
        file="mechanisms/key_noise.py",
        old="        found.sort(key=lambda each: each[0])  # the order of the rows must not show\n",
        new="",
        tests=(f"{DRAWN}::test_keys_are_published_in_the_order_of_the_universe",),
    ),
    Mutant(
        file="mechanisms/key_noise.py",
        old="if self.universe.key(place) not in seen:",
        new="if place not in seen:",
        tests=(f"{DRAWN}::test_a_key_that_occurs_is_never_published_twice",),
    ),
    Mutant(
        file="mechanisms/key_noise.py",
        old="drawn: Integers = least + geometric_steps(rate=self.up, size=size, bits=bits)",
        new="drawn: Integers = least + geometric_steps(rate=self.down, size=size, bits=bits)",
        tests=(LISTED,),
    ),
    Mutant(
        file="exact/noise.py",
        old="    below = geometric_steps(rate=down, size=size, bits=bits)\n",
        new="    below = geometric_steps(rate=up, size=size, bits=bits)\n",
        tests=(f"{DRAWN}::test_the_noise_has_its_law",),
    ),
    Mutant(
        file="exact/noise.py",
        old="        next_rank += 1\n",
        new="        next_rank += 2\n",
        tests=(f"{DRAWN}::test_gaps_give_every_subset_its_probability",),
    ),
    Mutant(
        file="exact/noise.py",
        old="some = -(ball(-down).expm1()) / both",
        new="some = -(ball(-up).expm1()) / both",
        tests=(f"{DRAWN}::test_chances_of_thresholds_are_those_of_the_law",),
    ),
    Mutant(
        file="mechanisms/key_noise.py",
        old="for key in self.noise.unseen(self.size, bar, bits, below=last):",
        new="for key in self.noise.unseen(self.size, bar, bits):",
        tests=(f"{DRAWN}::test_a_search_that_lowers_its_bar_often_finds_the_largest_number",),
    ),
    Mutant(
        file="mechanisms/selection.py",
        old="low, high = (old[i] if i == first else 0), (old[i] if i < first else new[i])",
        new="low, high = 0, new[i]",
        tests=(f"{DRAWN}::test_lists_are_drawn_with_their_law",),
    ),
    Mutant(
        file="mechanisms/selection.py",
        old="return math.prod(max(0, count - i) for i, count in enumerate(self.within(lacks)))",
        new="return math.prod(max(0, count) for i, count in enumerate(self.within(lacks)))",
        tests=(f"{DRAWN}::test_lists_are_counted_by_what_they_lack",),
    ),
    Mutant(
        file="data/keys.py",
        old="        columns = [column[counts] for column in columns]\n",
        new="        pass\n",
        tests=(f"{CELLS}::test_each_row_that_counts_counts_for_its_key",),
    ),
    Mutant(  # numbers out of range are clipped to the last group
        file="tables/grouped.py",
        old="labels=tuple(values), bins=Bins(edges=tuple(middles)))",
        new="labels=tuple(values), bins=Bins(edges=tuple(middles)), ends=kind.bounds)",
        tests=(
            "tasks/test_table.py::test_whole_numbers_of_a_small_range_are_groups_like_any_other",
        ),
    ),
    Mutant(
        file="tables/grouped.py",
        old="kind.upper - kind.lower < _MOST_LISTED",
        new="kind.upper - kind.lower <= _MOST_LISTED",
        tests=("tasks/test_table.py::test_whole_numbers_are_listed_up_to_a_limit",),
    ),
    Mutant(
        file="data/dataset.py",
        old="counts = found if counts is None else counts & found",
        new="counts = found if counts is None else counts | found",
        tests=(f"{CELLS}::test_a_filter_and_units_hold_together",),
    ),
    Mutant(
        file="tables/found_keys.py",
        old="    return html.escape(printable(str(cell)))\n",
        new="    return printable(str(cell))\n",
        tests=(f"{CELLS}::test_what_somebody_chose_as_a_key_is_shown_escaped",),
    ),
    Mutant(  # a list has as many invented keys as it is long
        file="tables/found_keys.py",
        old='    false_keys: Rational = "1/100",',
        new="    false_keys: Rational = 1,",
        tests=(f"{CELLS}::test_by_default_one_list_in_a_hundred_has_an_invented_key",),
    ),
    Mutant(  # the line of all other rows is taken for a key
        file="privacy/shown_release.py",
        old="if len(release.value) > rest else",
        new="if len(release.value) >= rest else",
        tests=("tasks/test_keys.py::test_frames_without_keys_say_how_many_rows_a_key_needs",),
    ),
    Mutant(  # the threshold, below which half of the noise lies, is not what a key needs
        file="tables/found_keys.py",
        old="return middle - self.mechanism.noise.median",
        new="return middle",
        tests=(f"{CELLS}::test_a_key_with_so_many_rows_is_found_in_half_of_the_lists",),
    ),
    Mutant(  # the law of the noise upwards, for a median above 0
        file="mechanisms/key_noise.py",
        old="return _mean_distance(down, up, -center)  # of -Z",
        new="return _mean_distance(up, down, -center)",
        tests=(f"{DRAWN}::test_median_and_error_are_those_of_the_law",),
    ),
    Mutant(  # another class's threshold: a key that occurs passes where no other could
        file="mechanisms/key_noise.py",
        old="if noisy[i] >= self.thresholds[place[0]]:",
        new="if noisy[i] >= lowest:",
        tests=(
            "mechanisms/test_keys_are_private.py::test_keys_of_two_classes_pass_at_the_threshold_of_their_own",
        ),
    ),
    Mutant(
        file="mechanisms/key_noise.py",
        old="lowest = min(self.thresholds)",
        new="lowest = max(self.thresholds)",
        tests=(
            "mechanisms/test_keys_are_private.py::test_keys_of_two_classes_pass_at_the_threshold_of_their_own",
        ),
    ),
    Mutant(
        file="mechanisms/key_noise.py",
        old="lowest = min(self.thresholds)",
        new="lowest = self.thresholds[0]",
        tests=(
            "mechanisms/test_keys_are_private.py::test_keys_of_two_classes_pass_at_the_threshold_of_their_own",
        ),
    ),
    Mutant(  # one threshold for the unseen keys of all classes
        file="mechanisms/key_noise.py",
        old="ranks = list(self.noise.unseen(size, least, bits))",
        new="ranks = list(self.noise.unseen(size, self.thresholds[0], bits))",
        tests=(
            "mechanisms/test_keys_are_private.py::test_keys_of_two_classes_pass_at_the_threshold_of_their_own",
        ),
    ),
    Mutant(
        file="mechanisms/key_noise.py",
        old="drawn = self.noise.noise_from(least, len(ranks), bits)",
        new="drawn = self.noise.noise_from(self.thresholds[0], len(ranks), bits)",
        tests=(
            "mechanisms/test_keys_are_private.py::test_keys_of_two_classes_pass_at_the_threshold_of_their_own",
        ),
    ),
    Mutant(  # both directions with all of ε
        file="mechanisms/key_noise.py",
        old="rate = exact if neighbors is Neighbors.ADD_REMOVE else exact / 2",
        new="rate = exact",
        tests=(
            "mechanisms/test_keys_are_private.py::test_keys_of_two_classes_pass_at_the_threshold_of_their_own",
        ),
    ),
    Mutant(  # nothing left for the other direction
        file="mechanisms/key_noise.py",
        old="_SHARE_STEPS - 1), _SHARE_STEPS)",
        new="_SHARE_STEPS), _SHARE_STEPS)",
        tests=("mechanisms/test_keys_are_private.py::test_both_directions_add_up_to_epsilon",),
    ),
    Mutant(  # two levels taken for one
        file="mechanisms/key_noise.py",
        old="and below - least == 1:",
        new="and below - least <= 2:",
        tests=(
            "mechanisms/test_keys_are_drawn_exactly.py::test_wherever_a_search_begins_it_finds_the_largest_number",
        ),
    ),
    Mutant(
        file="mechanisms/key_noise.py",
        old="if below is None or noise < below]",
        new="if below is None or noise <= below]",
        tests=(
            "mechanisms/test_keys_are_drawn_exactly.py::test_wherever_a_search_begins_it_finds_the_largest_number",
        ),
    ),
    Mutant(
        file="mechanisms/key_noise.py",
        old="single = last is not None and last - bar == 1",
        new="single = last is not None and last - bar <= 2",
        tests=(
            "mechanisms/test_keys_are_drawn_exactly.py::test_wherever_a_search_begins_it_finds_the_largest_number",
        ),
    ),
    Mutant(  # where the law turns the tail has a memory
        file="mechanisms/key_noise.py",
        old="max(bar - stride, 1) if bar > 1 else bar - 1",
        new="bar - stride",
        tests=(
            "mechanisms/test_keys_are_drawn_exactly.py::test_wherever_a_search_begins_it_finds_the_largest_number",
        ),
    ),
    Mutant(
        file="exact/noise.py",
        old="if value.values[0] > ball(most) + 1:",
        new="if value.values[0] > ball(most) - 1:",
        tests=(
            "mechanisms/test_keys_are_drawn_exactly.py::test_a_gap_that_is_not_decided_yet_is_not_thrown_away",
        ),
    ),
    Mutant(
        file="mechanisms/selection.py",
        old="mass = mass.union(mass + rest)  # the whole lies between these",
        new="pass",
        tests=(
            "mechanisms/test_keys_are_drawn_exactly.py::test_a_list_that_is_hardly_ever_drawn_is_drawn_then",
        ),
    ),
    Mutant(  # the middle of a uniform's cell for the uniform
        file="mechanisms/selection.py",
        old="(ball(uniform) + arb(0.5, 0.5)) / ball(1 << width)",
        new="(ball(uniform) + arb(0.5)) / ball(1 << width)",
        tests=(
            "mechanisms/test_keys_are_drawn_exactly.py::test_where_a_uniform_does_not_tell_two_lists_apart_more_of_it_is_read",
        ),
    ),
    Mutant(
        file="mechanisms/selection.py",
        old="lists = _Lists(ranked, min(self.k, len(ranked)))",
        new="lists = _Lists(ranked, self.k)",
        tests=(
            "mechanisms/test_keys_are_drawn_exactly.py::test_no_more_options_are_chosen_than_there_are",
        ),
    ),
    Mutant(  # keys read to floats
        file="data/keys.py",
        old="frozenset(name for name, kind in kinds.items() if isinstance(kind, Number))",
        new="frozenset()",
        tests=("tasks/test_keys.py::test_a_missing_cell_changes_no_large_key_beside_it",),
    ),
    Mutant(
        file="data/keys.py",
        old="whole=not_floats(kinds)):\n            yield keys_in",
        new="whole=frozenset()):\n            yield keys_in",
        tests=("tasks/test_keys.py::test_a_missing_cell_changes_no_large_key_beside_it",),
    ),
    Mutant(
        file="data/keys.py",
        old="whole=not_floats(kinds)):\n            block = values",
        new="whole=frozenset()):\n            block = values",
        tests=("tasks/test_keys.py::test_large_keys_with_numbers_beside_them_are_exact",),
    ),
    Mutant(  # a NaN in a batch, and 2^60 in another row is another key
        file="data/keys.py",
        old="if fits.all():",
        new="if fits.any():",
        tests=("tasks/test_keys.py::test_the_key_of_a_number_is_its_own_whatever_is_beside_it",),
    ),
    Mutant(
        file="data/keys.py",
        old="lower <= info.max and upper >= info.min",
        new="True",
        tests=(
            "tasks/test_keys.py::test_bounds_of_keys_are_those_declared_whatever_the_type_of_the_column",
        ),
    ),
    Mutant(
        file="data/keys.py",
        old="not lower <= key <= upper else key",
        new="not lower <= key < upper else key",
        tests=("tasks/test_keys.py::test_a_missing_cell_changes_no_large_key_beside_it",),
    ),
    Mutant(  # Arrow makes floats of integers with a null
        file="data/arrow_cells.py",
        old="values = _filled(array, 0 if types.is_integer(kind) else False)\n",
        new="return read(array.to_numpy(zero_copy_only=False))\n",
        tests=("tasks/test_keys.py::test_a_missing_cell_changes_no_large_key_beside_it",),
    ),
)
