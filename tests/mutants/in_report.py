"""Mistakes in the command line and the report: what would spend, leak or promise too much."""

from __future__ import annotations

from mutants.mutant import Mutant

_PAGE, _EXITS, _FILES = (
    f"{name}.py::test_"
    for name in ("report/test_page", "cli/test_exits", "cli/test_jobs_and_files")
)

MUTANTS = (
    Mutant(  # a dry run pays
        file="spine/run.py",
        old="    stop_if_previewed(made, certificate)",
        new="    pass",
        tests=("spine/test_preview.py::test_a_preview_reads_no_row_and_spends_nothing",),
    ),
    Mutant(
        file="report/odds.py",
        old="return min(1.0, 1 / (1 + odds) * (1 + _SLACK) + _SLACK)",
        new="return min(1.0, 1 / (1 + odds) * (1 - _SLACK))",
        tests=(f"{_PAGE}odds_are_rounded_away_from_what_is_promised",),
    ),
    Mutant(
        file="report/sections.py",
        old="    return html.escape(plain_text(value))",
        new="    return plain_text(value)",
        tests=(f"{_PAGE}names_and_keys_are_anyone_s_words_and_escaped",),
    ),
    Mutant(  # the message of somebody else's exception
        file="cli/refusals.py",
        old="_end(error, ExitCode.FAILED, _unexpected(error), debug=debug)",
        new="_end(error, ExitCode.FAILED, str(error), debug=debug)",
        tests=(f"{_EXITS}an_unexpected_error_shows_no_value_not_even_with_debug",),
    ),
    Mutant(  # paid for, then refused
        file="cli/outputs.py",
        old="    free = not (folder / RECORD).exists()",
        new="    free = True",
        tests=(f"{_EXITS}a_folder_with_a_release_is_refused_before_anything_is_spent",),
    ),
    Mutant(
        file="cli/outputs.py",
        old="    with held_interrupts():",
        new="    if True:",
        tests=(f"{_EXITS}an_interrupt_while_the_record_is_written_waits_until_it_is_there",),
    ),
    Mutant(  # a formula for a spreadsheet
        file="cli/outputs.py",
        old="""value[:1] in tuple("=+-@\\t\\r")""",
        new="value is None",
        tests=(f"{_FILES}a_key_that_is_a_formula_or_an_escape_is_harmless",),
    ),
    Mutant(  # the first line of a file without a header is a person
        file="cli/schema_template.py",
        old="    return reader_of(data, dict(file)).names if header or parquet else ()",
        new="    return reader_of(data, dict(file)).names",
        tests=(f"{_FILES}without_a_header_no_line_is_read",),
    ),
)
