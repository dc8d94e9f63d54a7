"""Mistakes with cells and containers: read too early, by code of others, under a name of ours."""

from __future__ import annotations

from mutants.mutant import Mutant

CODE = "data/test_code_of_others.py"
EARLY = "attacks/test_nothing_is_read_before_the_debit.py"
VERBS = f"{EARLY}::test_no_verb_reads_a_cell_of_any_container_before_it_is_paid_for"
FITS = f"{EARLY}::test_no_estimator_reads_a_cell_of_any_container_before_it_is_paid_for"
ASSERTED = f"{CODE}::test_what_no_library_that_we_know_reads_is_asserted"
TAMPERED = f"{CODE}::test_a_tampered_cell_is_missing_and_none_of_its_code_runs"
ROOM = "data/test_kept_copy.py::test_a_folder_without_room_fails_whatever_the_rows"
NAMES = "data/test_schema.py::test_names_that_nobody_can_read_are_refused"
OWN = "data/test_units.py::test_no_declared_column_shows_the_numbers_of_units"

MUTANTS = (
    Mutant(
        file="data/isolation.py",
        old="            if watch.arrived:  # the person at the keyboard, not the data\n",
        new="            if True:\n",
        tests=(f"{CODE}::test_what_a_container_raises_is_a_column_of_missing_cells",),
    ),
    Mutant(  # a cell that exits
        file="data/isolation.py",
        old="        except BaseException:\n            if watch.arrived:  # the person",
        new="        except Exception:\n            if watch.arrived:  # the person",
        tests=(f"{CODE}::test_what_a_container_raises_is_a_column_of_missing_cells",),
    ),
    Mutant(
        file="data/isolation.py",
        old="            Watch._arrived = True\n",
        new="            Watch._arrived = False\n",
        tests=(f"{CODE}::test_a_signal_still_interrupts",),
    ),
    Mutant(
        file="data/isolation.py",
        old="    with quiet(), Watch() as watch:\n        try:\n            return function(",
        new="    with Watch() as watch:\n        try:\n            return function(",
        tests=("data/test_readers.py::test_a_query_that_warns_while_it_runs_says_nothing",),
    ),
    Mutant(  # Polars panics, and prints that it did
        file="data/columns.py",
        old="elif series.implementation.is_polars() and series.dtype not in _PLAIN:",
        new="elif False:",
        tests=(f"{CODE}::test_a_date_that_python_has_not_raises_nowhere",),
    ),
    Mutant(  # over what is no text, too
        file="data/columns.py",
        old="if series.implementation.is_polars() and series.dtype in _POLARS_TEXTS:",
        new="if False:",
        tests=(f"{CODE}::test_a_date_that_python_has_not_raises_nowhere",),
    ),
    Mutant(
        file="data/arrays.py",
        old="if kind in (nw.Date, nw.Datetime):",
        new="if kind == nw.Date:",
        tests=(f"{CODE}::test_a_date_that_python_has_not_is_a_missing_cell_of_a_data_set",),
    ),
    Mutant(  # any subclass of a masked array is one
        file="data/columns.py",
        old="return kind is np.ma.MaskedArray or not issubclass(kind, np.ma.MaskedArray)",
        new="return True",
        tests=(ASSERTED,),
    ),
    Mutant(  # whoever says so is of a library
        file="data/columns.py",
        old="return home is not None and getattr(home, kind.__name__, None) is kind",
        new="return home is not None",
        tests=(ASSERTED,),
    ),
    Mutant(  # a column of pandas that pandas did not write
        file="data/columns.py",
        old="    if not _is_of_library(type(dtype)):\n",
        new="    if False:\n",
        tests=(ASSERTED,),
    ),
    Mutant(
        file="data/columns.py",
        old="cells if cells is not None and cells.shape == (self.rows,) else _missing(self.rows)",
        new="cells if cells is not None else _missing(self.rows)",
        tests=(f"{CODE}::test_a_container_that_lies_about_its_length_has_missing_cells",),
    ),
    Mutant(
        file="data/source.py",
        old="        if not known:\n",
        new="        if False:\n",
        tests=(ASSERTED,),
    ),
    Mutant(
        file="data/arrays.py",
        old="return Protection(premise=None if known else FOREIGN_SOURCE)",
        new="return Protection()",
        tests=(f"{CODE}::test_features_of_others_are_asserted",),
    ),
    Mutant(
        file="data/arrays.py",
        old="return None if self._known else FOREIGN_SOURCE",
        new="return None",
        tests=(f"{CODE}::test_frames_of_others_are_asserted",),
    ),
    Mutant(
        file="regression/rows.py",
        old="return found if known else replace(found, premise=FOREIGN_SOURCE)",
        new="return found",
        tests=(ASSERTED,),
    ),
    Mutant(
        file="data/cells.py",
        old="whole = type(top) is int and type(bottom) is int and bottom > 0",
        new="whole = type(top) is int and type(bottom) is int",
        tests=(TAMPERED,),
    ),
    Mutant(
        file="data/cells.py",
        old="type(number) is int and 0 <= number < 1 << 128",
        new="type(number) is int and 0 <= number <= 1 << 128",
        tests=(TAMPERED,),
    ),
    Mutant(
        file="data/cells.py",
        old="type(number) is int and 0 <= number < 1 << 128",
        new="isinstance(number, int) and 0 <= number < 1 << 128",
        tests=(TAMPERED,),
    ),
    Mutant(
        file="data/cells.py",
        old="    if type(cell) is UUID:\n        return _uuid_key(cell)\n",
        new="",
        tests=(TAMPERED,),
    ),
    Mutant(  # a type may have a hash of its own
        file="data/units.py",
        old="_TEXTS.issuperset(map(id, map(type, listed)))",
        new="{str, type(None)}.issuperset(map(type, listed))",
        tests=(f"{CODE}::test_types_of_ids_are_compared_by_identity",),
    ),
    Mutant(
        file="data/arrays.py",
        old="type(source[0]) is str and issubclass(type(source[1]), duckdb.DuckDBPyConnection)",
        new="isinstance(source[1], duckdb.DuckDBPyConnection)",
        tests=(f"{CODE}::test_a_pair_of_cells_is_not_asked_what_it_is",),
    ),
    Mutant(
        file="data/arrays.py",
        old="        self._rows = table.rows\n",
        new="        self._rows = table.rows\n        table.read()\n",
        tests=(VERBS,),
    ),
    Mutant(
        file="marginals/domain.py",
        old="        unread = row_columns(rows, domain)\n",
        new="        unread = row_columns(rows, domain)\n        unread.read()\n",
        tests=(VERBS,),
    ),
    Mutant(
        file="regression/rows.py",
        old="        self._labels = one_label_each(labels)\n",
        new="        self._labels = one_label_each(labels)\n        self._labels.read()\n",
        tests=(FITS,),
    ),
    Mutant(
        file="data/arrays.py",
        old="            self._columns = []\n",
        new="            self._columns = []\n            self._unread.read()\n",
        tests=(f"{EARLY}::test_no_data_set_reads_a_cell_before_it_is_paid_for",),
    ),
    Mutant(
        file="spine/verbs.py",
        old="        if type(entry) is Dataset:\n",
        new="        if isinstance(entry, Dataset):\n",
        tests=(f"{EARLY}::test_what_was_computed_from_rows_is_not_read_before_it_is_paid_for",),
    ),
    Mutant(  # whether the file can be made depends on how many rows there are
        file="data/pieces.py",
        old="file = None if limit is None else _new_file(keeping)",
        new="file = None",
        tests=(ROOM,),
    ),
    Mutant(
        file="data/pieces.py",
        old="file = None if whole else _new_file(keeping)",
        new="file = None",
        tests=(ROOM,),
    ),
    Mutant(
        file="data/units.py",
        old="attempt(partial(tempfile.TemporaryFile, dir=folder))",
        new="tempfile.TemporaryFile(dir=folder)",
        tests=(ROOM,),
    ),
    Mutant(
        file="data/units.py",
        old="attempt(partial(self._file.write, records[order].tobytes()))",
        new="self._file.write(records[order].tobytes())",
        tests=("data/test_kept_copy.py::test_a_full_disk_is_one_message",),
    ),
    Mutant(
        file="data/rows.py",
        old="UNIT: Any = OwnColumn.UNIT",
        new='UNIT: Any = "\\0"',
        tests=(OWN,),
    ),
    Mutant(
        file="data/chosen.py",
        old="ITSELF: Any = OwnColumn.ITSELF",
        new='ITSELF: Any = ""',
        tests=(OWN,),
    ),
    Mutant(
        file="data/schema.py",
        old='unicodedata.category(letter) == "Cc"',
        new='letter == "\\0"',
        tests=(NAMES,),
    ),
    Mutant(
        file="data/schema.py",
        old='named = isinstance(column, str) and column != ""',
        new="named = isinstance(column, str)",
        tests=(NAMES,),
    ),
    Mutant(
        file="tasks/open.py",
        old="    check_names(kinds)\n",
        new="",
        tests=(NAMES,),
    ),
    Mutant(
        file="tasks/open.py",
        old='    check_names([] if protected is None else [protected.column], "unit")\n',
        new="",
        tests=(NAMES,),
    ),
    Mutant(
        file="marginals/domain.py",
        old="return chosen, _domain(tuple(chosen.kinds), spaces)",
        new="return chosen, as_domain(dict(zip(chosen.kinds, spaces, strict=True)))",
        tests=("tasks/test_answer_queries.py::test_categories_that_are_compared_as_texts",),
    ),
    Mutant(
        file="privacy/release_file.py",
        old='    "tasks.distributions": ("StepFunction",),\n',
        new="",
        tests=("records/test_round_trip.py::test_a_distribution_function_is_read_back",),
    ),
    Mutant(  # a class of others inherits a type of pandas
        file="data/columns.py",
        old=" and all(map(_is_of_library, _arrays(values)))",
        new="",
        tests=(ASSERTED,),
    ),
    Mutant(  # a type of others inside a structure
        file="data/columns.py",
        old='    if hasattr(dtype, "field"):\n',
        new="    if False:\n",
        tests=(ASSERTED,),
    ),
    Mutant(  # labels of rows are attributes, too
        file="data/columns.py",
        old='types = list(values.dtypes) if hasattr(type(values), "columns") else [values.dtype]',
        new='types = list(values.dtypes) if hasattr(values, "columns") else [values.dtype]',
        tests=(f"{CODE}::test_the_label_of_a_row_decides_nothing",),
    ),
    Mutant(
        file="data/columns.py",
        old="> sys.maxunicode).any(axis=1)",
        new="> sys.maxunicode + 1).any(axis=1)",
        tests=(f"{CODE}::test_a_text_of_no_characters_is_missing",),
    ),
    Mutant(
        file="data/columns.py",
        old="        cells = list(readable_texts(row))\n",
        new="        cells = list(row)\n",
        tests=(f"{CODE}::test_a_row_of_no_characters_changes_no_other",),
    ),
    Mutant(  # a code of none raises, for all rows
        file="data/columns.py",
        old="[kinds.get(code) for code in",
        new="[kinds[code] for code in",
        tests=(f"{CODE}::test_a_code_without_a_category_is_one_missing_cell",),
    ),
    Mutant(
        file="tables/table.py",
        old="fits = 1 / _MOST_WEIGHT <= weight <= _MOST_WEIGHT",
        new="fits = weight <= _MOST_WEIGHT",
        tests=("tasks/test_table.py::test_mistakes_are_refused_with_the_remedy",),
    ),
)
