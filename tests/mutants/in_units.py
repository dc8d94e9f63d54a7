"""Mistakes in declared kinds, in what an Arrow column is read to, and in bounding units."""

from __future__ import annotations

from mutants.mutant import Mutant

MUTANTS = (
    Mutant(
        file="data/units.py",
        old="order[_ranks(unit[order]) < most]",
        new="order[_ranks(unit[order]) <= most]",
        tests=(
            "data/test_units.py::test_replacing_a_unit_changes_at_most_max_rows_of_the_rows_kept",
        ),
    ),
    Mutant(  # a hash of the contents alone
        file="data/units.py",
        old='first = mixed(mixed(units["high"] ^ _UNITS_FIRST) ^ units["low"])',
        new='first = np.repeat(_UNITS_FIRST, len(units["high"]))',
        tests=("data/test_units.py::test_different_units_keep_different_values",),
    ),
    Mutant(  # no copy number
        file="data/units.py",
        old="np.where(copy, mixed(first + copy * _ODD), first)",
        new="first",
        tests=("data/test_units.py::test_copies_of_a_row_count_one_by_one",),
    ),
    Mutant(  # ids are ignored
        file="data/units.py",
        old="unit = _numbered(high[order], low[order])",
        new="unit = np.zeros(len(order), dtype=np.int64)",
        tests=(
            "data/test_units.py::test_replacing_a_unit_changes_at_most_max_rows_of_the_rows_kept",
        ),
    ),
    Mutant(  # half of an id's hash
        file="data/units.py",
        old="order = np.lexsort((low, high))",
        new="pass",
        tests=("data/test_units.py::test_units_whose_hashes_agree_in_half_are_told_apart",),
    ),
    Mutant(  # ties by the order of the rows
        file="data/units.py",
        old="rows[np.lexsort((places[rows], second[rows], first[rows], unit[rows]))]",
        new="np.sort(rows)[np.lexsort((first[np.sort(rows)], unit[np.sort(rows)]))]",
        tests=("data/test_units.py::test_ties_are_settled_by_the_contents",),
    ),
    Mutant(  # rows made to agree in both hashes, in whatever order a sort leaves them
        file="data/units.py",
        old="np.lexsort((places[rows], second[rows], first[rows], unit[rows]))",
        new="np.lexsort((second[rows], first[rows], unit[rows]))",
        tests=(
            "data/test_units.py::"
            "test_two_rows_made_to_agree_in_both_hashes_are_chosen_by_their_own_order",
        ),
    ),
    Mutant(  # what was written to files is forgotten
        file="data/units.py",
        old="if self._runs:\n            self._spill()",
        new="if not self._rows:\n            self._spill()",
        tests=("data/test_units.py::test_order_batches_parts_and_memory_do_not_matter",),
    ),
    Mutant(
        file="data/units.py",
        old="values = column + 0.0",
        new="values = column.copy()",
        tests=("data/test_units.py::test_equal_values_are_hashed_alike",),
    ),
    Mutant(  # inf and nan in a text are what Arrow takes them for
        file="data/arrow_cells.py",
        old="np.count_nonzero(~np.isfinite(read)) == texts.null_count",
        new="texts.null_count >= 0",
        tests=("data/test_kinds.py::test_one_odd_text_among_plain_numbers_is_read_as_if_alone",),
    ),
    Mutant(  # a null is the cell that fills its place
        file="data/arrow_cells.py",
        old="if array.null_count:",
        new="if array.null_count < 0:",
        tests=("data/test_kinds.py::test_numbers_are_read_alike_in_every_column",),
    ),
    Mutant(  # Arrow's own rounding of decimals
        file="data/arrow_cells.py",
        old="read_texts(array if _is_text(kind) else array.cast(pa.large_string()))",
        new="(read_texts(array) if _is_text(kind) else array.cast(pa.float64()).to_numpy())",
        tests=("data/test_kinds.py::test_arrow_decimals_are_correctly_rounded",),
    ),
    Mutant(
        file="data/kinds.py",
        old="missing = float(len(self.options)) if self.missing else other",
        new="missing = other",
        tests=("data/test_kinds.py::test_missing_cells_and_other_cells_have_the_last_codes",),
    ),
    Mutant(  # the text "true" is a name, and the id 1
        file="data/units.py",
        old='len("false")',
        new='len("no")',
        tests=("data/test_units.py::test_texts_are_compared_by_what_they_are_read_to",),
    ),
    Mutant(  # the ids of another batch
        file="data/units.py",
        old="not self._texts.equals(texts)",
        new="False",
        tests=(
            "data/test_units.py::"
            "test_batches_with_the_same_and_with_other_dictionaries_are_told_apart",
        ),
    ),
    Mutant(  # days outside the declared ones count in the first or the last period
        file="data/declare.py",
        old="(when != NO_DAY) & (when >= self._ends[0]) & (when <= self._ends[1])",
        new="(when != NO_DAY) & (when >= self._ends[0])",
        tests=("data/test_kinds.py::test_the_label_of_a_date_is_that_of_its_period",),
    ),
    Mutant(  # the day where the clock stood, not in UTC
        file="data/declare.py",
        old="cell.astimezone(datetime.timezone.utc).toordinal()",
        new="cell.toordinal()",
        tests=("data/test_kinds.py::test_a_timestamp_is_the_day_in_utc",),
    ),
)
