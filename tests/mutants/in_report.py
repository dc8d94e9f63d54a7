"""Mistakes in the command line and the report: what would spend, leak or promise too much."""

from __future__ import annotations

from mutants.mutant import Mutant

_PAGE, _EXITS, _FILES, _KINDS, _CURSOR = (
    f"{name}.py::test_"
    for name in (
        *("report/test_page", "cli/test_exits", "cli/test_jobs_and_files"),
        *("report/test_claims_of_kinds", "cli/test_nothing_moves_the_cursor"),
    )
)

MUTANTS = (
    Mutant(  # a dry run pays
        file="spine/run.py",
        old="    stop_if_previewed(made, certificate)",
        new="    pass",
        tests=("spine/test_preview.py::test_a_preview_reads_no_row_and_spends_nothing",),
    ),
    Mutant(
        file="report/contents.py",
        old="return min(1.0, 1 / (1 + odds) * (1 + _SLACK) + _SLACK)",
        new="return min(1.0, 1 / (1 + odds) * (1 - _SLACK))",
        tests=(f"{_PAGE}odds_are_rounded_away_from_what_is_promised",),
    ),
    Mutant(
        file="report/page.py",
        old="    return html.escape(plain_text(value))",
        new="    return plain_text(value)",
        tests=(f"{_PAGE}names_and_keys_are_anyone_s_words_and_escaped",),
    ),
    Mutant(  # the message of somebody else's exception
        file="cli/refusals.py",
        old="    return _system(error) if isinstance(error, OSError) else _unexpected(error)",
        new="    return _system(error) if isinstance(error, OSError) else str(error)",
        tests=(f"{_EXITS}an_unexpected_error_shows_no_value_not_even_with_debug",),
    ),
    Mutant(  # a later job is refused after an earlier one was paid for
        file="cli/shown.py",
        old="        if not alone:  # a mistake in a later job",
        new="        if False:  # a mistake in a later job",
        tests=(f"{_EXITS}a_mistake_in_a_later_job_is_found_before_an_earlier_one_is_paid_for",),
    ),
    Mutant(  # an option of 0 is left out, and its default paid for
        file="cli/commands.py",
        old="if word is not False and word not in (None, [])",
        new="if word not in (None, False, [])",
        tests=(f"{_EXITS}an_option_of_zero_or_nothing_is_refused_and_not_left_out",),
    ),
    Mutant(  # paid for, then not to be signed
        file="cli/shown.py",
        old="        check_private(job.sign)",
        new="        pass",
        tests=(f"{_EXITS}a_file_that_is_no_private_key_is_refused_before_anything_is_spent",),
    ),
    Mutant(
        file="cli/shown.py",
        old="""    require(not there, "out", str(folder), expected, "choose another --out")""",
        new="    pass",
        tests=(f"{_EXITS}a_file_of_somebody_s_is_not_written_over",),
    ),
    Mutant(
        file="privacy/readable.py",
        old="place.stat().st_size == len(data) and place.read_bytes() == data",
        new="place.stat().st_size == len(data)",
        tests=("privacy/test_new_file.py::test_a_file_is_written_once",),
    ),
    Mutant(  # half of a file stays where the name was taken
        file="privacy/readable.py",
        old="            place.unlink(missing_ok=True)",
        new="            pass",
        tests=("privacy/test_new_file.py::test_what_cannot_be_written_whole_is_not_there",),
    ),
    Mutant(  # another file of that name is replaced
        file="privacy/readable.py",
        old='            place.open("xb").close()',
        new='            place.open("ab").close()',
        tests=("privacy/test_new_file.py::test_a_file_is_written_once",),
    ),
    Mutant(  # any page of the browser may ask
        file="ui/server.py",
        old='self.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin")',
        new='self.headers.get("Sec-Fetch-Site", "none") == "cross-site"',
        tests=("ui/test_planner.py::test_pages_of_others_cannot_ask",),
    ),
    Mutant(
        file="ui/server.py",
        old="    timeout = _PATIENCE",
        new="    timeout = None",
        tests=("ui/test_planner.py::test_requests_do_not_wait_for_ever_and_are_cut_short",),
    ),
    Mutant(
        file="ui/server.py",
        old="        if not late():",
        new="        if True:",
        tests=("ui/test_planner.py::test_an_answer_that_is_late_is_what_was_computed_until_then",),
    ),
    Mutant(  # a search goes on when the time for the answer is over
        file="ui/server.py",
        old="        if late():\n            raise _LateError",
        new="        if False:\n            raise _LateError",
        tests=("ui/test_planner.py::test_no_forecast_begins_once_it_is_late",),
    ),
    Mutant(  # a forecast of another fit than the snippet's
        file="regression/classifiers.py",
        old="plan_logistic(shape) if several == 2 else",
        new="plan_logistic(shape) if classes is None else",
        tests=("ui/test_planner.py::test_the_forecast_is_that_of_the_python_snippet",),
    ),
    Mutant(
        file="tasks/covariance.py",
        old='people=NAMES.replace("100", "{width}"),',
        new="people=NAMES,",
        tests=("ui/test_planner.py::test_the_forecast_is_that_of_the_python_snippet",),
    ),
    Mutant(  # a forecast of what is refused
        file="tasks/keys.py",
        old="        wanted <= size,\n",
        new="        True,\n",
        tests=("tasks/test_advice_measured.py::test_what_the_verb_refuses_is_refused",),
    ),
    Mutant(  # 0.001 is a float above 1/1000
        file="ui/server.py",
        old="least = Fraction(str(field.least))",
        new="least = Fraction(field.least)",
        tests=("ui/test_planner.py::test_the_least_number_of_a_field_is_allowed",),
    ),
    Mutant(  # SIGTERM stops the writing of what was paid for
        file="cli/refusals.py",
        old='("SIGINT", "SIGTERM", "SIGHUP")',
        new='("SIGINT", "SIGHUP")',
        tests=(f"{_EXITS}held_signals_go_to_whoever_handles_them_in_the_end",),
    ),
    Mutant(  # and so does a terminal that is closed
        file="cli/refusals.py",
        old='"SIGTERM", "SIGHUP")',
        new='"SIGTERM")',
        tests=(f"{_EXITS}held_signals_go_to_whoever_handles_them_in_the_end",),
    ),
    Mutant(  # SIGTERM ends the process where it stands
        file="cli/refusals.py",
        old="    signal.signal(signal.SIGTERM, interrupt)",
        new="    pass",
        tests=(f"{_EXITS}an_interrupt_of_a_real_process_leaves_ledger_and_files_consistent",),
    ),
    Mutant(  # e^ε for what a row holds, where that is e^(2ε)
        file="report/contents.py",
        old="e * (1 + a) for e, a in zip(alone, added, strict=True)",
        new="e for e, a in zip(alone, added, strict=True)",
        tests=(f"{_KINDS}what_a_row_holds_is_told_at_twice_the_epsilon_of_add_remove",),
    ),
    Mutant(
        file="privacy/verify.py",
        old="    if len({certificate.unit for _, certificate in releases}) > 1:",
        new="    if False:",
        tests=(f"{_KINDS}releases_for_rows_and_for_units_are_not_added_up",),
    ),
    Mutant(  # whoever writes a key into a file has signed it
        file="report/page.py",
        old="    check_signed(digest, (signature,), signature.key)",
        new="    pass",
        tests=(f"{_KINDS}a_signature_is_on_the_page_if_it_is_one",),
    ),
    Mutant(  # paid for, then refused
        file="cli/shown.py",
        old="    free = not (folder / RECORD).exists()",
        new="    free = True",
        tests=(f"{_EXITS}a_folder_with_a_release_is_refused_before_anything_is_spent",),
    ),
    Mutant(
        file="cli/shown.py",
        old="    with held_interrupts():",
        new="    if True:",
        tests=(f"{_EXITS}an_interrupt_while_the_record_is_written_waits_until_it_is_there",),
    ),
    Mutant(  # a formula for a spreadsheet
        file="privacy/shown_release.py",
        old="[_harmless(cell) if isinstance(cell, str) else cell for cell in line]",
        new="line",
        tests=(f"{_FILES}a_key_that_is_a_formula_or_an_escape_is_harmless",),
    ),
    Mutant(  # only where a cell begins, and not where another program begins one
        file="privacy/shown_release.py",
        old='begins, space = c in _CUTS, ""',
        new='begins, space = False, ""',
        tests=(f"{_CURSOR}no_cell_of_a_csv_file_is_run",),
    ),
    Mutant(  # a formula of wide characters
        file="privacy/shown_release.py",
        old='unicodedata.normalize("NFKC", c) in _FORMULAS',
        new="c in _FORMULAS",
        tests=(f"{_CURSOR}no_cell_of_a_csv_file_is_run",),
    ),
    Mutant(  # a frame shows its cells as they are
        file="privacy/release.py",
        old="return printable(shown, lines=True)",
        new="return shown",
        tests=(f"{_CURSOR}releases_their_plans_and_data_sets_print_no_control_characters",),
    ),
    Mutant(  # the first line of a file without a header is a person
        file="cli/files.py",
        old="    return reader_of(data, dict(file)).names if header or parquet else ()",
        new="    return reader_of(data, dict(file)).names",
        tests=(f"{_FILES}without_a_header_no_line_is_read",),
    ),
    Mutant(
        file="privacy/readable.py",
        old="    if epsilon <= LARGE:",
        new="    if epsilon < LARGE:",
        tests=(f"{_PAGE}a_large_epsilon_is_asked_about",),
    ),
    Mutant(
        file="privacy/readable.py",
        old="LARGE = 5\n",
        new="LARGE = 6\n",
        tests=(f"{_PAGE}a_large_epsilon_is_asked_about",),
    ),
    Mutant(  # that of an add-remove claim counts once
        file="privacy/certificate.py",
        old="        return large(self.claim.exact_epsilon * (2 if added else 1))",
        new="        return large(self.claim.exact_epsilon)",
        tests=(f"{_PAGE}a_large_epsilon_is_asked_about",),
    ),
    Mutant(  # the total is that of the page
        file="report/page.py",
        old="    return [each for each in paid if _is_readable(each)]",
        new="    return []",
        tests=(f"{_PAGE}the_total_is_that_of_the_ledger_with_its_odds",),
    ),
    Mutant(  # a ledger of add-remove releases
        file="report/contents.py",
        old="    epsilon = account.spent * (2 if added else 1)",
        new="    epsilon = account.spent",
        tests=(f"{_PAGE}what_a_ledger_of_add_remove_counted_is_told_twice",),
    ),
    Mutant(  # a forecast for cells none of which is missing, beside a call that skips them
        file="tasks/task.py",
        old='SKIPPED = {"missing": "skip"}',
        new='SKIPPED = {"missing": None}',
        tests=("ui/test_planner.py::test_the_forecast_is_that_of_the_python_snippet",),
    ),
    Mutant(  # the law that is drawn is not the one that Coq was asked about
        file="coq/statements.py",
        old="        paper=_GEOMETRIC,\n",
        new="",
        tests=("coq/test_proof_files.py::test_the_verdict_on_a_table_names_the_law_that_is_drawn",),
    ),
)
