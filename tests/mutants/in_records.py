"""Mistakes in what is written of a release, and in what is believed of a file."""

from __future__ import annotations

from mutants.mutant import Mutant

_REFUSED, _ROWS, _FILES, _SIGNED, _VALUES = (
    f"records/test_{name}.py::test_"
    for name in ("refused", "nothing_of_rows", "verify_files", "signatures", "values_and_sums")
)
_VERIFY = "cli/test_verify_and_audit.py::test_"

MUTANTS = (
    Mutant(  # two releases of one question in one second are one
        file="spine/verbs.py",
        old="id=SystemBits().read(16).hex()",
        new='id="0" * 32',
        tests=("records/test_verify_files.py::test_the_same_asked_twice_at_once_counts_twice",),
    ),
    Mutant(
        file="privacy/verify.py",
        old="        if files == 1:\n",
        new="        if files:\n",
        tests=("records/test_verify_files.py::test_two_files_of_one_release_are_refused",),
    ),
    Mutant(  # scores come into the record
        file="spine/verbs.py",
        old="        elif name in ROWS:",
        new='        elif name in ROWS - {"scores"}:',
        tests=(f"{_ROWS}scores_values_and_examples_are_rows",),
    ),
    Mutant(  # 1.4 KB that become 1.6 GB
        file="privacy/written_values.py",
        old="if _DATES.fullmatch(kind):",
        new="if _DATES.match(kind):",
        tests=(f"{_REFUSED}an_array_of_dates_is_one_of_dates_alone",),
    ),
    Mutant(
        file="privacy/written_values.py",
        old="self._bytes += 4 * len(cells) * max(map(len, cells), default=0)",
        new="self._bytes += len(cells) * max(map(len, cells), default=0)",
        tests=(f"{_REFUSED}an_array_of_texts_takes_room_for_the_longest_of_them_in_bytes",),
    ),
    Mutant(  # 2 MB that become 5 GB
        file="privacy/written_values.py",
        old="self._bytes += 4 *",
        new="self._bytes = 4 *",
        tests=(f"{_REFUSED}all_arrays_of_texts_in_a_file_share_that_room",),
    ),
    Mutant(  # a spread far from 0, held to ends that were rounded
        file="privacy/statistics.py",
        old="    return np.array(float(upper - lower))",
        new="    return np.array(float(upper) - float(lower))",
        tests=("records/test_values_and_sums.py::test_nor_spreads_of_a_column_far_from_0",),
    ),
    Mutant(  # keys that all collide
        file="privacy/written_values.py",
        old="            _apart([key for key, _ in pairs])",
        new="            pass",
        tests=(f"{_REFUSED}numbers_that_are_chosen_to_have_one_hash_are_refused",),
    ),
    Mutant(
        file="privacy/written_values.py",
        old="    if type(given) is not str:\n        raise TypeError\n    return given",
        new="    return given",
        tests=(
            f"{_REFUSED}names_are_texts_of_which_nobody_can_choose_the_hash",
            f"{_REFUSED}columns_that_a_record_names_are_texts",
        ),
    ),
    Mutant(  # 2 KB that take hours
        file="privacy/written_values.py",
        old='number = as_rational(given, "bounds")',
        new="number = Fraction(given)",
        tests=(f"{_REFUSED}a_short_text_is_not_read_as_a_number_of_many_digits",),
    ),
    Mutant(  # equal numbers are refused
        file="privacy/written_values.py",
        old="len({_text(each) for each in same}) > _MOST_ALIKE",
        new="len(same) > _MOST_ALIKE",
        tests=(f"{_REFUSED}numbers_that_happen_to_have_one_hash_are_read",),
    ),
    Mutant(
        file="privacy/release_file.py",
        old='    if data["digest"] != _digest(content):',
        new='    if len(data["digest"]) != len(_digest(content)):',
        tests=(f"{_REFUSED}whatever_is_edited_is_found_by_the_digest",),
    ),
    Mutant(  # the certificate of another release
        file="privacy/release_file.py",
        old="    if not same or record.public != list(certificate.public):",
        new="    if record.public != list(certificate.public):",
        tests=(f"{_REFUSED}a_forger_who_computes_digests_is_refused_too",),
    ),
    Mutant(  # a certificate that is not verified
        file="privacy/release_file.py",
        old="verify(certificate, neighbors=certificate.claim.neighbors, unit=certificate.unit)",
        new="pass",
        tests=(
            f"{_REFUSED}replayed_bits_are_not_loaded",
            f"{_REFUSED}a_forger_who_computes_digests_is_refused_too",
        ),
    ),
    Mutant(
        file="privacy/release_file.py",
        old="        return canonical(again) == canonical(whole)",
        new="        return bool(again) and bool(whole)",
        tests=(f"{_REFUSED}a_value_that_says_too_much_is_not_loaded",),
    ),
    Mutant(  # any signature will do
        file="privacy/release.py",
        old="            known.verify(bytes.fromhex(each.signature), _CONTEXT + digest.encode())\n",
        new="            bytes.fromhex(each.signature)\n",
        tests=(f"{_SIGNED}a_wrong_signature_is_refused",),
    ),
    Mutant(  # add-remove counts once beside replace
        file="privacy/verify.py",
        old="return exact if claim.neighbors is relation else 2 * exact",
        new="return exact",
        tests=(f"{_FILES}relations_are_converted_and_units_are_not",),
    ),
    Mutant(
        file="ledger/history.py",
        old='    same = body.get("record") == record.asked and',
        new='    same = body.get("record") and',
        tests=(f"{_FILES}a_ledger_finds_what_no_digest_can",),
    ),
    Mutant(  # a value that was changed, with the digest computed anew
        file="privacy/written_values.py",
        old="bool(np.all(np.abs(numbers - given) <= _NEAR * size))",
        new="bool(np.all(np.abs(numbers - given) >= 0))",
        tests=(
            f"{_VALUES}a_value_that_its_sums_do_not_give_is_refused",
            f"{_VALUES}every_statistic_of_a_table_is_held_to_its_sums",
        ),
    ),
    Mutant(
        file="privacy/written_values.py",
        old="        abs(a - b) <= 1 for a, b in zip(counts, given, strict=True)",
        new="        abs(a - b) >= 0 for a, b in zip(counts, given, strict=True)",
        tests=(f"{_VALUES}a_value_that_its_sums_do_not_give_is_refused",),
    ),
    Mutant(  # a release that was paid for cannot be loaded
        file="privacy/written_values.py",
        old="    if total is not None:\n        yield",
        new="    if False:\n        yield",
        tests=(f"{_VALUES}no_value_that_was_released_is_refused",),
    ),
    Mutant(
        file="privacy/written_values.py",
        old="        most = widths_of(*ends) / 2\n",
        new="        most = (high - low) / 2\n",
        tests=(f"{_VALUES}nor_a_variance_between_ends_that_are_one_float",),
    ),
    Mutant(
        file="privacy/written_values.py",
        old="names = set(value.columns) - set(named)",
        new="names = set(value.columns)",
        tests=(f"{_VALUES}nor_a_table_by_a_column_that_is_named_like_a_statistic",),
    ),
    Mutant(
        file="privacy/written_values.py",
        old="    if _is_in_ball(value, sums):",
        new="    if False:",
        tests=(f"{_VALUES}nor_a_mean_of_rows_in_a_ball",),
    ),
    Mutant(
        file="privacy/written_values.py",
        old="(low - slack <= found) & (found <= high + slack)",
        new="(low - slack <= found)",
        tests=(
            f"{_VALUES}what_a_verb_projects_is_held_to_its_range",
            f"{_VALUES}a_quantile_of_a_table_is_held_to_the_bounds_of_its_column",
        ),
    ),
    Mutant(
        file="privacy/written_values.py",
        old="(low - slack <= found) & (found <= high + slack)",
        new="(found <= high + slack)",
        tests=(f"{_VALUES}what_a_verb_projects_is_held_to_its_range",),
    ),
    Mutant(
        file="privacy/written_values.py",
        old="bool(np.all(np.diff(shares) >= -_NEAR))",
        new="True",
        tests=(f"{_VALUES}what_a_verb_projects_is_held_to_its_range",),
    ),
    Mutant(
        file="privacy/written_values.py",
        old="(np.abs(value) <= most * (1 + _NEAR))",
        new="(np.abs(value) <= 2 * most)",
        tests=(f"{_VALUES}what_a_verb_projects_is_held_to_its_range",),
    ),
    Mutant(  # what is no number is in every range
        file="privacy/written_values.py",
        old="    return ends is None or (_are_numbers(value) and _fits(value, ends, record.task))",
        new="    return ends is None or not _are_numbers(value) or _fits(value, ends, record.task)",
        tests=(f"{_VALUES}nor_is_a_value_of_another_kind_where_only_its_range_is_known",),
    ),
    Mutant(
        file="privacy/written_values.py",
        old="value.ndim == 1 and value.size > 0 and",
        new="value.ndim == 1 and",
        tests=(f"{_VALUES}nor_is_a_value_of_another_kind_where_only_its_range_is_known",),
    ),
    Mutant(  # a number of all rows is a table of anything
        file="privacy/written_values.py",
        old="        if ranged and not keys:",
        new="        if False:",
        tests=(f"{_VALUES}nor_is_a_value_of_another_kind_where_only_its_range_is_known",),
    ),
    Mutant(  # a page goes along a thousand million columns without a cell
        file="privacy/written_values.py",
        old="0 <= side <= max(len(cells), _LONGEST_SIDE)",
        new="0 <= side",
        tests=(f"{_REFUSED}an_array_without_cells_has_no_long_side",),
    ),
    Mutant(  # the tails of noise without a scale are sought for ever
        file="privacy/release_file.py",
        old="    if not known or law.scale <= 0 or min(units) <= 0 or",
        new="    if not known or",
        tests=(f"{_VALUES}noise_that_nothing_draws_is_refused",),
    ),
    Mutant(
        file="privacy/release_file.py",
        old=" or not 1 <= law.dimension <= most:",
        new=" or not 1 <= law.dimension:",
        tests=(f"{_VALUES}noise_that_nothing_draws_is_refused",),
    ),
    Mutant(  # nobody is told what to ask
        file="privacy/release_file.py",
        old="    if record.to_ask != list(asked):",
        new="    if False:",
        tests=(f"{_REFUSED}a_forger_who_computes_digests_is_refused_too",),
    ),
    Mutant(  # a claim with δ > 0 exits with 0
        file="cli/verify_files.py",
        old="    if not demand.impure and type(certificate.claim) is not PureDP:",
        new="    if False:",
        tests=(f"{_VERIFY}a_claim_with_a_delta_above_0_is_refused_unless_asked_for",),
    ),
    Mutant(
        file="cli/verify_files.py",
        old="            proven=demand.proven,",
        new="            proven=False,",
        tests=(f"{_VERIFY}proven_refuses_what_a_caller_asserts",),
    ),
    Mutant(  # another unit than was asked for
        file="cli/verify_files.py",
        old="unit=certificate.unit if demand.unit is None else demand.unit,",
        new="unit=certificate.unit,",
        tests=(f"{_FILES}relations_are_converted_and_units_are_not",),
    ),
    Mutant(  # a value that nobody has read is told to be verified
        file="cli/verify_files.py",
        old="            saved.fields(CLASSES)  # as `zd.load` reads them",
        new="            pass",
        tests=(f"{_REFUSED}a_value_that_says_too_much_is_not_loaded",),
    ),
)
