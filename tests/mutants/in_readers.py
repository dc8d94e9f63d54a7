"""Mistakes in readers of cells: lines that swallow others, engines that show what they read."""

from __future__ import annotations

from mutants.mutant import Mutant

CHUNKS = "data/test_csv_reader.py::test_chunks_of_lines_are_read_as_line_by_line"
ODD_LINE = "data/test_csv_reader.py::test_an_odd_line_changes_no_other"
ALONE = "data/test_csv_reader.py::test_lines_that_pyarrow_may_see_otherwise_are_read_alone"
PARTS = "data/test_csv_reader.py::test_batches_and_parts_change_no_cell"

MUTANTS = (
    Mutant(
        file="data/csv.py",
        old="if dropped or len(rest) + (first if cut else len(data)) > longest:",
        new="if dropped:",
        tests=(CHUNKS,),
    ),
    Mutant(
        file="data/csv.py",
        old="position = max(0, start - 1)",
        new="position = start",
        tests=("data/test_csv_reader.py::test_pieces_of_a_file_hold_each_line_once",),
    ),
    Mutant(
        file="data/csv.py",
        old="max(0, stop - 1 - position)",
        new="max(0, stop - position)",
        tests=("data/test_csv_reader.py::test_pieces_of_a_file_hold_each_line_once",),
    ),
    Mutant(
        file="data/arrow_cells.py",
        old='typed = self._form.delimiter == "\\t" or b"\\t" not in plain',
        new="typed = True",
        tests=(ODD_LINE,),
    ),
    Mutant(
        file="data/arrow_cells.py",
        old="if any(map(_is_unbounded, columns)):",
        new="if False:",
        tests=(ODD_LINE,),
    ),
    Mutant(
        file="data/arrow_cells.py",
        old="np.zeros(int(chunk.startswith(BOM)), dtype=np.int64)",
        new="np.zeros(0, dtype=np.int64)",
        tests=(ALONE,),
    ),
    Mutant(
        file="data/arrow_cells.py",
        old="returns[data[returns + 1] != _LF]",
        new="returns[:0]",
        tests=(ALONE,),
    ),
    Mutant(
        file="data/arrow_cells.py",
        old="return np.union1d(wrong, unpaired)",
        new="return np.unique(wrong)",
        tests=(ALONE,),
    ),
    Mutant(
        file="data/arrow_cells.py",
        old="closes = closes[~after[data[closes + 1]]]",
        new="closes = closes[:0]",
        tests=(ALONE,),
    ),
    Mutant(
        file="data/arrow_cells.py",
        old="opens = opens[~before[data[opens - 1]]]",
        new="opens = opens[:0]",
        tests=(ALONE,),
    ),
    Mutant(
        file="data/arrow_cells.py",
        old="places = places[np.repeat(inside & 1 == 0, inside)]",
        new="places = places[:0]",
        tests=(ALONE,),
    ),
    Mutant(
        file="data/arrow_cells.py",
        old="after[[ord(self._form.delimiter), _LF, quote, _CR]]",
        new="after[[ord(self._form.delimiter), _LF, quote]]",
        tests=("data/test_csv_reader.py::test_quoted_lines_are_read_by_pyarrow",),
    ),
    Mutant(
        file="data/csv.py",
        old="quote: str | None = '\"'",
        new="quote: str | None = None",
        tests=("data/test_csv_reader.py::test_names_of_a_header_may_be_quoted_and_marked",),
    ),
    Mutant(
        file="data/arrow_cells.py",
        old="whole[odd] = cells",
        new="whole[odd] = whole[odd]",
        tests=(ODD_LINE,),
    ),
    Mutant(
        file="data/arrow_cells.py",
        old='.encode("utf-8", "surrogatepass")',
        new='.encode("utf-8", "surrogateescape")',
        tests=("data/test_csv_reader.py::test_bytes_that_mean_nothing_do_not_become_a_character",),
    ),
    Mutant(
        file="data/csv.py",
        old="return [None if cell is None or _UNDECODED.search(cell) else cell for cell in cells]",
        new="return cells",
        tests=(CHUNKS,),
    ),
    Mutant(
        file="data/csv.py",
        old="at_start = begin == 0 and place == 0",
        new="at_start = place == 0",
        tests=(PARTS,),
    ),
    Mutant(  # what a reader holds is written out with it
        file="data/readers.py",
        old="@value(eq=False, repr=False)  # what holds rows",
        new="@value(eq=False)  # what holds rows",
        tests=("data/test_readers.py::test_no_reader_shows_a_cell",),
    ),
    Mutant(
        file="data/readers.py",
        old="found: Any = quietly(function, otherwise=_FAILED)",
        new="found: Any = function()",
        tests=("data/test_readers.py::test_a_damaged_page_is_one_fixed_message",),
    ),
    Mutant(
        file="data/readers.py",
        old='remedy="rename or drop the others" if here else "check the name in the source",',
        new='remedy=f"pass one of {names}",',
        tests=("data/test_readers.py::test_a_column_that_is_not_there_is_named_and_nothing_else",),
    ),
    Mutant(
        file="data/readers.py",
        old="issubclass(type(first), PurePath)",
        new="issubclass(type(first), (str, PurePath))",
        tests=("data/test_readers.py::test_a_list_of_texts_is_a_column_and_not_paths",),
    ),
    Mutant(
        file="data/readers.py",
        old="sorted(files, key=str)",
        new="sorted(files, key=str, reverse=True)",
        tests=("data/test_csv_reader.py::test_files_of_a_pattern_are_sorted_and_matched_by_names",),
    ),
    Mutant(
        file="data/readers.py",
        old="found.column(found.schema.get_field_index(name))",
        new="found.column(columns.index(name))",
        tests=("data/test_readers.py::test_names_with_dots_and_of_structs",),
    ),
    Mutant(
        file="data/readers.py",
        old='getattr(dataset, "_scan_options", None) == {}',
        new='getattr(dataset, "_scan_options", None) is not None',
        tests=("data/test_readers.py::test_what_is_proven_and_what_is_assumed",),
    ),
)
