"""Mistakes in tables by group: what a row adds, which rows count, totals, shares of ε."""

from __future__ import annotations

from mutants.mutant import Mutant

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
        file="exact/row_polynomials.py",
        old="2 * (middle - squares), middle + skew",
        new="2 * (middle - squares) + moments[0], middle + skew",
        tests=(f"{PRIVATE}test_the_rows_of_a_unit_cost_epsilon_together",),
    ),
    Mutant(
        file="exact/row_polynomials.py",
        old="return int(self.steps ** max(self.degrees))",
        new="return int(self.steps ** min(self.degrees))",
        tests=(f"{MOMENTS}test_columns_of_different_degrees_give_what_theirs_allows",),
    ),
    Mutant(  # rows without a key are in the first group
        file="mechanisms/power_sums.py",
        old="codes, block = codes[inside], block[inside]",
        new="pass",
        tests=(f"{SUMS}test_power_sums_are_those_of_python_integers",),
    ),
    Mutant(  # a value that is not there is none, although none is missing
        file="mechanisms/power_sums.py",
        old="if not self.missing[i]:",
        new="if False:",
        tests=(f"{TABLE}test_a_missing_value_of_an_array_is_the_middle_unless_it_is_skipped",),
    ),
    Mutant(
        file="data/tallies.py",
        old="wide: Any = high if fits else high.astype(np.object_)",
        new="wide: Any = high",
        tests=(f"{SUMS}test_extreme_values_beyond_64_bits_are_added_exactly",),
    ),
    Mutant(
        file="data/group_keys.py",
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
        file="tables/grouped_data.py",
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
        file="tables/grouped_data.py",
        old="if not keys and chosen.drops:",
        new="if False:",
        tests=(f"{TABLE}test_all_rows_are_one_group",),
    ),
    Mutant(  # every part gets all of ε
        file="tables/table_plan.py",
        old="make(share * epsilon)",
        new="make(epsilon)",
        tests=(f"{TABLE}test_shares_reach_the_goal_and_add_up_to_epsilon",),
    ),
    Mutant(
        file="tables/group_table.py",
        old="<td>{html.escape(cell)}</td>",
        new="<td>{cell}</td>",
        tests=(f"{TABLE}test_keys_are_escaped_wherever_they_are_shown",),
    ),
)
