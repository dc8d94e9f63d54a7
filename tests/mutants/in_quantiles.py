"""Mistakes in quantiles that are drawn together: rates, ranks, ties, what is left out."""

from __future__ import annotations

from mutants.mutant import Mutant

_PRIVATE = "mechanisms/test_joint_quantiles_are_private.py::"
_RANKS = "exact/test_joint_ranks.py::"
_TASK = "tasks/test_quantiles.py::"

MUTANTS = (
    Mutant(
        file="exact/joint_ranks.py",
        old="ends = np.array([0, self.points], dtype=np.int64)",
        new="ends = np.array([0, self.points], dtype=np.float64)",
        tests=(f"{_RANKS}test_runs_on_the_default_grid_have_the_law",),
    ),
    Mutant(
        file="exact/joint_ranks.py",
        old="ends[2 - int(last == self.count) :]",
        new="ends[2 - int(last >= self.count - 1) :]",
        tests=(f"{_RANKS}test_borders_are_those_of_the_rows_to_the_last_bit",),
    ),
    Mutant(
        file="mechanisms/joint_quantiles.py",
        old="np.concatenate([*found, np.array(end, dtype=np.int64)])",
        new="np.concatenate([*found, end]).astype(np.int64)",
        tests=(
            "mechanisms/test_grid_runs.py::test_runs_on_the_default_grid_are_exact_to_the_last_bit",
        ),
    ),
    Mutant(
        file="privacy/theorems/noise.py",
        old="return 4 * self.rate if self.groups == 1 else 2 * added",
        new="return 2 * self.rate if self.groups == 1 else 2 * added",
        tests=(f"{_PRIVATE}test_replaced_rows_cost_epsilon",),
    ),
    Mutant(
        file="privacy/theorems/noise.py",
        old="return 4 * self.rate if self.groups == 1 else 2 * added",
        new="return 4 * self.rate if self.groups == 1 else added",
        tests=(f"{_PRIVATE}test_by_group_a_row_that_changes_groups_costs_epsilon",),
    ),
    Mutant(
        file="privacy/theorems/noise.py",
        old="added = 4 * self.rate * (1 - self.least_gap)",
        new="added = 2 * self.rate * (1 - self.least_gap)",
        tests=(f"{_PRIVATE}test_added_rows_cost_epsilon_and_too_large_a_rate_costs_more",),
    ),
    Mutant(
        file="privacy/theorems/noise.py",
        old="if self.least_gap * (self.levels + 1) > 1:",
        new="if self.least_gap > 1:",
        tests=(f"{_PRIVATE}test_gaps_that_cannot_be_are_refused",),
    ),
    Mutant(
        file="mechanisms/joint_quantiles.py",
        old="gaps = [runs.count * gap for gap in self.gaps]",
        new="gaps = [Fraction(-(-(runs.count * gap) // 1)) for gap in self.gaps]",
        tests=(f"{_TASK}test_by_group_every_group_is_drawn_from_its_own_rows",),
    ),
    Mutant(
        file="mechanisms/joint_quantiles.py",
        old="moved: Integers = (points << CELL_BITS) | places.astype(np.int64)",
        new="moved: Integers = points << CELL_BITS",
        tests=("mechanisms/test_grid_runs.py::test_places_within_a_cell_are_uniform",),
    ),
    Mutant(
        file="mechanisms/runs.py",
        old="kept &= ~np.isnan(values)",
        new="pass",
        tests=(f"{_TASK}test_by_group_every_group_is_drawn_from_its_own_rows",),
    ),
    Mutant(
        file="mechanisms/runs.py",
        old="row_total=1 if width == 1 else 2,",
        new="row_total=1,",
        tests=(f"{_TASK}test_a_row_is_in_as_many_counts_as_the_noise_is_for",),
    ),
    Mutant(
        file="exact/joint_ranks.py",
        old="states.append(moved * (size + (r - 1)) / r * inside)",
        new="states.append(moved * size * inside)",
        tests=(f"{_RANKS}test_messages_are_the_sums_of_the_definition",),
    ),
    Mutant(
        file="exact/joint_ranks.py",
        old="length = whole + 1 if upto else whole",
        new="length = whole + 1",
        tests=(f"{_RANKS}test_messages_are_the_sums_of_the_definition",),
    ),
    Mutant(
        file="exact/joint_ranks.py",
        old="found += wide.part(far, before) * _power(rate * (1 - part), exact=exact)",
        new="found += wide.part(far, before) * _power(rate * part, exact=exact)",
        tests=(f"{_RANKS}test_messages_are_the_sums_of_the_definition",),
    ),
    Mutant(
        file="exact/joint_ranks.py",
        old="here[inside] = came[inside]",
        new="here[inside] = -np.inf",
        tests=(f"{_RANKS}test_what_is_left_out_is_bounded",),
    ),
    Mutant(
        file="exact/joint_ranks.py",
        old="return ways - float(self.rate) * (2 * self.reach - offset)",
        new="return ways - float(self.rate) * (4 * self.reach + 9 * offset)",
        tests=(f"{_RANKS}test_what_is_left_out_is_bounded",),
    ),
    Mutant(
        file="exact/joint_ranks.py",
        old="ways = ways * (width + r - 1) / r",
        new="ways = ways * width",
        tests=(f"{_RANKS}test_points_have_the_law",),
    ),
    Mutant(
        file="exact/joint_ranks.py",
        old="starts = before * (1 + error) * safe + more * safe <= low",
        new="starts = before * (1 + error) * safe <= low",
        tests=(f"{_RANKS}test_a_uniform_in_what_is_lost_is_undecided",),
    ),
    Mutant(
        file="exact/joint_ranks.py",
        old="return found if bool(sums[found] + more <= low) else None",
        new="return found",
        tests=(f"{_RANKS}test_a_uniform_in_what_is_lost_is_undecided",),
    ),
    Mutant(  # a weight that may be smaller
        file="exact/joint_ranks.py",
        old="after = float(sums[found]) * (1 - error)",
        new="after = float(sums[found])",
        tests=(f"{_RANKS}test_a_place_is_certain_whatever_the_weights_are_within_their_error",),
    ),
    Mutant(
        file="exact/joint_ranks.py",
        old="high = arb(prefix + 1) * unit * (sums[-1] + more)",
        new="high = arb(prefix + 1) * unit * sums[-1]",
        tests=(f"{_RANKS}test_a_place_is_certain_whatever_the_weights_are_within_their_error",),
    ),
    Mutant(  # the least U for the largest
        file="exact/joint_ranks.py",
        old="        if after > high:",
        new="        if after > low:",
        tests=(f"{_RANKS}test_a_place_is_certain_for_all_that_follows_in_its_string",),
    ),
    Mutant(  # what floats lose below their smallest is not counted
        file="exact/joint_ranks.py",
        old="under = None if exact else",
        new="under = None if True else",
        tests=(f"{_RANKS}test_ranks_that_are_kept_may_underflow_too",),
    ),
    Mutant(
        file="exact/joint_ranks.py",
        old="_UNDERFLOW = -850 * math.log(2)",
        new="_UNDERFLOW = -8500 * math.log(2)",
        tests=(f"{_RANKS}test_ranks_that_are_kept_may_underflow_too",),
    ),
    Mutant(  # logarithms taken for exact
        file="exact/joint_ranks.py",
        old="slack = 16 * _UNIT",
        new="slack = 0 * _UNIT",
        tests=(f"{_RANKS}test_messages_are_the_sums_of_the_definition",),
    ),
    Mutant(
        file="exact/joint_ranks.py",
        old="error=1.1 * _UNIT *",
        new="error=0 * _UNIT *",
        tests=(f"{_RANKS}test_what_is_left_out_is_bounded",),
    ),
)
