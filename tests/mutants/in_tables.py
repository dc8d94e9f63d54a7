"""Mistakes in tables by group: what a row adds, which rows count, totals, shares of ε."""

from __future__ import annotations

from mutants.mutant import Mutant

DRAWN = "tasks/test_table_quantiles.py::"
FOUND = "tasks/test_table_of_unknown_keys.py::"
HALVES = f"{FOUND}test_keys_cost_half_and_statistics_of_whatever_is_found_the_other_half"
PRIVATE, TABLE = "tasks/test_table_is_private.py::", "tasks/test_table.py::"
SUMS, MOMENTS = "mechanisms/test_power_sums.py::", "mechanisms/test_moments.py::"

MUTANTS = (
    Mutant(  # noise for half of what a row adds
        file="mechanisms/moments.py",
        old="row_total=row.row_total,",
        new="row_total=max(1, row.row_total // 2),",
        tests=(f"{PRIVATE}test_one_draw_over_all_groups_costs_epsilon",),
    ),
    Mutant(  # as if the values of the polynomials were rounded one by one
        file="exact/sums.py",
        old="2 * (middle - squares), middle + skew",
        new="2 * (middle - squares) + moments[0], middle + skew",
        tests=(f"{PRIVATE}test_the_rows_of_a_unit_cost_epsilon_together",),
    ),
    Mutant(
        file="exact/sums.py",
        old="return int(self.steps ** max(self.degrees))",
        new="return int(self.steps ** min(self.degrees))",
        tests=(f"{MOMENTS}test_columns_of_different_degrees_give_what_theirs_allows",),
    ),
    Mutant(  # rows without a key are in the first group
        file="mechanisms/partition_noise.py",
        old="codes, block = codes[inside], block[inside]",
        new="pass",
        tests=(f"{SUMS}test_power_sums_are_those_of_python_integers",),
    ),
    Mutant(  # a value that is not there is none, although none is missing
        file="mechanisms/partition_noise.py",
        old="if not self.missing[i]:",
        new="if False:",
        tests=(f"{TABLE}test_a_missing_value_of_an_array_is_the_middle_unless_it_is_skipped",),
    ),
    Mutant(
        file="data/pieces.py",
        old="wide: Any = high if fits else high.astype(np.object_)",
        new="wide: Any = high",
        tests=(f"{SUMS}test_extreme_values_beyond_64_bits_are_added_exactly",),
    ),
    Mutant(
        file="data/keys.py",
        old='side="right"',
        new='side="left"',
        tests=(f"{SUMS}test_bins_have_their_lower_edges_and_the_last_both",),
    ),
    Mutant(  # a total is known only if rows without a value add to it as well
        file="mechanisms/moments.py",
        old="known = known and most > 0 and (row.missing_cell or not any(absent))",
        new="known = known and most > 0",
        tests=(f"{MOMENTS}test_a_known_number_of_rows_gets_no_noise",),
    ),
    Mutant(  # the private number of rows that a filter leaves becomes the total
        file="tables/grouped.py",
        old="complete=not chosen.drops and found.complete,",
        new="complete=found.complete,",
        tests=(
            f"{TABLE}test_totals_are_forced_only_where_every_row_counts_and_their_number_is_public",
        ),
    ),
    Mutant(  # as if every row had a key
        file="tasks/table.py",
        old="total = facts.rows if self.complete else None",
        new="total = facts.rows",
        tests=(
            f"{TABLE}test_totals_are_forced_only_where_every_row_counts_and_their_number_is_public",
        ),
    ),
    Mutant(  # dropped rows are counted where all rows are one group
        file="tables/grouped.py",
        old="if not keys and chosen.drops:",
        new="if False:",
        tests=(f"{TABLE}test_all_rows_are_one_group",),
    ),
    Mutant(  # every part gets all of ε
        file="tables/table.py",
        old="make(share * epsilon)",
        new="make(epsilon)",
        tests=(f"{TABLE}test_shares_reach_the_goal_and_add_up_to_epsilon",),
    ),
    Mutant(  # what is asked to matter more does not
        file="tables/table.py",
        old="weights.get(name, 1.0)",
        new="1.0",
        tests=(f"{TABLE}test_weights_are_shares_for_what_matters_more",),
    ),
    Mutant(  # shares are never corrected
        file="tables/table.py",
        old="if _largest(best, goal) <= most * (1 + _NEAR):",
        new="if True:",
        tests=(f"{TABLE}test_shares_are_corrected_where_errors_do_not_go_with_epsilon",),
    ),
    Mutant(  # parts are compared by their width, not by what they would be alone
        file="tables/table.py",
        old="(max(self.alone[name], _LEAST) if self.name == GOALS[0] else unit)",
        new="unit",
        tests=(f"{TABLE}test_of_two_parts_none_is_more_than_twice_as_wrong_as_alone",),
    ),
    Mutant(  # what a part needs is taken from all others, and from nobody's slack
        file="tables/table.py",
        old="np.where(least > fair, 1, given)",
        new="np.where(least > fair, 1, 1)",
        tests=(f"{TABLE}test_shares_are_corrected_where_errors_do_not_go_with_epsilon",),
    ),
    Mutant(  # values are summed in place of what a statistic sums
        file="mechanisms/moments.py",
        old="return self.lattice.quantize(self.summands.of(values))",
        new="return self.lattice.quantize(values)",
        tests=("tasks/test_a_new_statistic.py::test_a_table_measures_what_the_statistic_sums",),
    ),
    Mutant(  # the keys are free
        file="tasks/table.py",
        old="[] if found is None else [found.part]",
        new="[] if found is None or plan.parts else [found.part]",
        tests=(HALVES,),
    ),
    Mutant(  # statistics get all of ε
        file="tables/found_keys.py",
        old="left=exact - spent)",
        new="left=exact)",
        tests=(HALVES,),
    ),
    Mutant(  # groups are counted from the found keys: one cell would need half the noise
        file="mechanisms/moments.py",
        old="some = replace(self.noise, cells=groups * each)",
        new="some = PartitionNoise.for_epsilon(epsilon=self.noise.epsilon, cells=groups * "
        "each, row_total=self.noise.row_total, neighbors=self.noise.neighbors)",
        tests=(HALVES,),
    ),
    Mutant(  # the certificate is for the keys that were declared, of which there are none
        file="tables/grouped.py",
        old="possible=universe.universe.size + 1",
        new="possible=1",
        tests=(f"{FOUND}test_the_certificate_is_for_all_keys_there_can_be",),
    ),
    Mutant(  # rows of keys that were not found are in the first group
        file="data/keys.py",
        old="codes = np.full(len(self._numbers) + 1, rest, dtype=np.float64)",
        new="codes = np.zeros(len(self._numbers) + 1)",
        tests=(f"{FOUND}test_values_are_those_of_the_found_keys_and_all_other_rows",),
    ),
    Mutant(  # rows that a filter drops are counted for their keys
        file="data/keys.py",
        old="found = keys_in(kinds, cells, counts)",
        new="found, counts = keys_in(kinds, cells, None), None",
        tests=(f"{FOUND}test_rows_are_counted_where_they_are_kept_and_filtered",),
    ),
    Mutant(
        file="data/keys.py",
        old="if self._blocks is None:",
        new="if True:",
        tests=(f"{FOUND}test_a_query_is_run_once_for_keys_and_statistics",),
    ),
    Mutant(  # as if there were one group: a row that changes groups costs twice as much
        file="tables/parts.py",
        old="groups=keys.count,\n            total=",
        new="groups=1,\n            total=",
        tests=(f"{FOUND}test_quantiles_are_drawn_from_the_found_groups_at_one_rate",),
    ),
    Mutant(  # quantiles of missing values
        file="tables/parts.py",
        old="skip=column.missing,",
        new="skip=False,",
        tests=(f"{DRAWN}test_quantiles_and_counts_of_a_table_cost_epsilon_together",),
    ),
    Mutant(
        file="tables/grouped.py",
        old="<td>{html.escape(cell)}</td>",
        new="<td>{cell}</td>",
        tests=(f"{TABLE}test_keys_are_escaped_wherever_they_are_shown",),
    ),
    Mutant(
        file="errors.py",
        old="shown = repr(_Shape(value) if _shape(value) else value)",
        new="shown = repr(value)",
        tests=("tasks/test_mistakes.py::test_rows_in_place_of_a_parameter_are_not_shown",),
    ),
    Mutant(
        file="tables/grouped.py",
        old="findable = not cut and any(map(_whole_numbers, kinds.values()))",
        new="findable = any(map(_whole_numbers, kinds.values()))",
        tests=(f"{TABLE}test_too_many_bins_are_told_as_such",),
    ),
)
