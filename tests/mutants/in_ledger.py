"""Mistakes in what is spent, when, and in what is believed of a file."""

from __future__ import annotations

from mutants.mutant import Mutant

_ACCOUNTS, _DEBITS, _DAMAGE, _OLDER, _SECOND = (
    f"ledger/test_{name}.py::test_"
    for name in ("accounts", "debits", "damage", "older_states", "second_budgets")
)
_RIGHTS = "ledger/test_postgres_rights.py::test_an_analyst_writes_debits_and_nothing_else"

MUTANTS = (
    Mutant(  # a ledger that somebody has looked at is refused
        file="ledger/sqlite.py",
        old='("sqlite_stat1", "sqlite_stat4")',
        new='("", "")',
        tests=(f"{_DAMAGE}what_tools_of_sqlite_note_in_a_file_damages_nothing",),
    ),
    Mutant(  # one more than there is
        file="ledger/balances.py",
        old="account.spent + amount > account.limit",
        new="account.spent > account.limit",
        tests=(f"{_ACCOUNTS}a_budget_is_spent_exactly_and_no_further",),
    ),
    Mutant(  # an analyst's debit is not one of the data set
        file="ledger/balances.py",
        old="""        for each in dict.fromkeys([key, (key[0], None)]):
            self.accounts[each].spent += amount""",
        new="""        for each in [key]:
            self.accounts[each].spent += amount""",
        tests=(f"{_ACCOUNTS}an_analyst_spends_of_the_data_sets_budget",),
    ),
    Mutant(
        file="ledger/balances.py",
        old="return _bookable(2 * epsilon)",
        new="return _bookable(epsilon)",
        tests=(f"{_ACCOUNTS}relations_and_units_are_converted_or_refused",),
    ),
    Mutant(
        file="ledger/balances.py",
        old="if unit != account.unit:",
        new="if unit is None and account.unit:",
        tests=(f"{_ACCOUNTS}relations_and_units_are_converted_or_refused",),
    ),
    Mutant(  # a debit can be taken back twice
        file="ledger/balances.py",
        old=" or of in self.returned:",
        new=":",
        tests=(f"{_DAMAGE}sealed_nonsense_is_refused",),
    ),
    Mutant(  # the hash before does not count
        file="ledger/balances.py",
        old='f"{before}\\n{text}"',
        new="text",
        tests=(f"{_DAMAGE}an_edit_with_a_new_hash_is_found_by_the_next_entry",),
    ),
    Mutant(
        file="ledger/balances.py",
        old="or entry.question != question",
        new="",
        tests=(f"{_DAMAGE}what_is_edited_by_hand_is_found",),
    ),
    Mutant(  # what is not synced may be lost
        file="ledger/sqlite.py",
        old='self._connection.execute("BEGIN IMMEDIATE")',
        new='self._connection.execute("BEGIN")',
        tests=(
            "ledger/test_many_processes.py::test_threads_of_processes_spend_exactly_the_budget",
        ),
    ),
    Mutant(  # an empty file is taken for a new ledger
        file="ledger/ledger.py",
        old="absent = server or not os.path.lexists(address)",
        new="absent = server or not os.path.getsize(address)",
        tests=(
            f"{_ACCOUNTS}without_a_budget_nothing_is_made",
            f"{_ACCOUNTS}a_ledger_is_its_address",
        ),
    ),
    Mutant(  # an old copy to which as much was written as there had been
        file="ledger/store.py",
        old="if row is not None and row[3] == hash:",
        new="if row is not None:",
        tests=(f"{_OLDER}what_was_written_to_an_old_copy_is_not_what_was_there",),
    ),
    Mutant(  # what was seen is forgotten with the connection
        file="ledger/store.py",
        old="                store.known = place.known\n",
        new="",
        tests=(f"{_OLDER}a_restored_backup_does_not_make_a_process_forget",),
    ),
    Mutant(  # all of a long ledger is checked while nobody else can write
        file="ledger/store.py",
        old="while self.last() - self.known.balances.number > _FEW:",
        new="while self.last() - self.known.balances.number > _FEW * 10:",
        tests=(f"{_OLDER}others_may_write_while_one_catches_up",),
    ),
    Mutant(  # an entry that was added up by half is added up once more
        file="ledger/store.py",
        old="            self.known.balances = Balances(name=self.name)\n            raise",
        new="            raise",
        tests=(f"{_OLDER}an_interrupted_check_begins_anew",),
    ),
    Mutant(  # two processes write to two logs
        file="ledger/sqlite.py",
        old="return identities(self._path) == self._files",
        new="return identities(self._path)[0] == self._files[0]",
        tests=(f"{_OLDER}files_beside_it_that_were_removed_do_not_double_a_budget",),
    ),
    Mutant(
        file="ledger/sqlite.py",
        old="if not self._is_there():  # others",
        new="if self._is_there() is None:  # others",
        tests=(f"{_OLDER}files_that_are_removed_while_it_writes_are_missed",),
    ),
    Mutant(  # to close it removes the log of others
        file="ledger/sqlite.py",
        old="            if self._is_there():\n                self._conn",
        new="            if self._path:\n                self._conn",
        tests=(f"{_OLDER}a_log_that_others_write_to_is_not_removed",),
    ),
    Mutant(
        file="ledger/sqlite.py",
        old="if time.monotonic() - self._copied > _SOON:",
        new="if self._copied > _SOON:",
        tests=(f"{_OLDER}what_one_has_spent_is_in_the_file_when_its_log_is_removed",),
    ),
    Mutant(
        file="ledger/sqlite.py",
        old="    if os.stat(path).st_nlink > 1:\n        raise",
        new="    if os.stat(path).st_nlink > 2:\n        raise",
        tests=(f"{_OLDER}a_hard_link_is_refused",),
    ),
    Mutant(  # a container writes to another log
        file="ledger/sqlite.py",
        old="    if any(place == path for place, _ in _mounted(mounts)):",
        new="    if False:",
        tests=(f"{_DAMAGE}a_file_that_is_mounted_by_itself_is_refused",),
    ),
    Mutant(  # the folder of a server, by the name of one on a disk
        file="ledger/sqlite.py",
        old=r're.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), fields[1])',
        new=r'fields[1].replace("\\040", " ")',
        tests=(f"{_DAMAGE}places_are_those_that_the_system_has_escaped",),
    ),
    Mutant(
        file="ledger/sqlite.py",
        old='errors="surrogateescape"',
        new='errors="replace"',
        tests=(f"{_DAMAGE}names_of_places_are_read_as_the_bytes_they_are",),
    ),
    Mutant(  # what is misspelled is repeated with its password
        file="errors.py",
        old=r"|(?://|postgres|[^/\\]{2,}:).*@",
        new="",
        tests=("ledger/test_addresses.py::test_what_is_no_address_is_refused_and_not_repeated",),
    ),
    Mutant(  # what nobody has listed as remote is taken for local
        file="ledger/sqlite.py",
        old="if kind not in {*_LOCAL, *allowed}:",
        new="if kind in ('nfs4', 'cifs', '9p'):",
        tests=(f"{_DAMAGE}a_file_system_that_may_be_on_a_network_is_refused",),
    ),
    Mutant(  # less is booked than was spent
        file="ledger/balances.py",
        old="Fraction(-(-amount.numerator * _UNIT // amount.denominator), _UNIT)",
        new="Fraction(amount.numerator * _UNIT // amount.denominator, _UNIT)",
        tests=(f"{_SECOND}what_is_booked_is_never_less_and_hardly_more",),
    ),
    Mutant(
        file="ledger/balances.py",
        old="if amount.denominator <= _FINEST:",
        new="if amount.denominator < 3:",
        tests=(f"{_SECOND}what_is_short_is_booked_as_it_is",),
    ),
    Mutant(
        file="ledger/ledger.py",
        old="if (data, None) not in balances.accounts:",
        new="if (data, None) in balances.accounts:",
        tests=(f"{_SECOND}a_second_name_of_a_file_opens_no_second_budget",),
    ),
    Mutant(  # a pattern that names one file is another name of it
        file="tasks/open.py",
        old="*map(str, found_files(source)[:_MOST_FILES])",
        new="",
        tests=(
            f"{_SECOND}a_second_name_of_a_file_opens_no_second_budget",
            f"{_SECOND}nor_does_a_file_of_a_pattern",
        ),
    ),
    Mutant(
        file="ledger/history.py",
        old='if row is None or row[3] != receipt["hash"]:',
        new="if row is None:",
        tests=(f"{_SECOND}releases_in_a_folder_demand_their_entries",),
    ),
    Mutant(  # a new ledger is in the place of one that spent it all
        file="ledger/history.py",
        old="if each.receipts and not here and data in each.data:",
        new="if False:",
        tests=(
            "cli/test_ledgers.py::test_saved_releases_show_that_another_ledger_is_in_its_place",
        ),
    ),
    Mutant(
        file="spine/verbs.py",
        old="few = len(each.columns) < len(each.declared)",
        new="few = len(each.columns) <= len(each.declared)",
        tests=(f"{_SECOND}the_history_names_the_columns_that_were_asked",),
    ),
    Mutant(  # a secret by another name
        file="ledger/store.py",
        old="if _SECRET.search(unquote(name)):",
        new='if unquote(name) == "password":',
        tests=("ledger/test_addresses.py::test_a_url_is_kept_without_its_secrets",),
    ),
    Mutant(  # what nobody knows the name of may be a secret
        file="ledger/store.py",
        old="elif _SHOWN.fullmatch(name):",
        new="elif each:",
        tests=("ledger/test_addresses.py::test_what_is_no_address_is_refused_and_not_repeated",),
    ),
    Mutant(
        file="errors.py",
        old=r"(?:passw(?:or)?d|pwd)\s*=",
        new=r"\bpassword\s*=",
        tests=("ledger/test_addresses.py::test_what_is_no_address_is_refused_and_not_repeated",),
    ),
    Mutant(
        file="ledger/store.py",
        old="    if parts is None:\n",
        new='    if parts is None and "@" not in url:\n',
        tests=("ledger/test_addresses.py::test_what_is_no_address_is_refused_and_not_repeated",),
    ),
    *(  # what an analyst may write beside a debit of one's own
        Mutant(file="ledger/postgres.py", old=old, new="", tests=(_RIGHTS,))
        for old in (
            "    AND body::jsonb ->> 'analyst' = current_user\n    AND body::jsonb ->> 'number'"
            " = number::text\n",
            "    AND body::jsonb ->> 'epsilon' {_POSITIVE}\n"
            "    AND body::jsonb ->> 'booked' {_POSITIVE}\n",
            "    AND question IS NOT DISTINCT FROM body::jsonb ->> 'question'\n",
        )
    ),
    Mutant(
        file="ledger/postgres.py",
        old="body::jsonb ->> 'kind' = 'debit'",
        new="body::jsonb ->> 'kind' > ''",
        tests=(_RIGHTS,),
    ),
    Mutant(  # the account of a name that nobody opened
        file="ledger/postgres.py",
        old="opened.body::jsonb ->> 'data' = zerodelta_entry.body::jsonb ->> 'data'",
        new="opened.body::jsonb ->> 'data' > ''",
        tests=(_RIGHTS,),
    ),
    Mutant(
        file="ledger/postgres.py",
        old="earlier.hash || chr(10)",
        new="zerodelta_entry.hash || chr(10)",
        tests=("ledger/test_postgres_rights.py::test_a_debit_of_ones_own_is_written",),
    ),
    Mutant(  # who is gone holds the lock for ever
        file="ledger/postgres.py",
        old='("idle_in_transaction_session_timeout", "60s")',
        new='("idle_in_transaction_session_timeout", "0")',
        tests=("ledger/test_silent_server.py::test_others_need_not_wait_for_one_who_is_gone",),
    ),
    Mutant(  # one that is silent is believed to answer some day
        file="ledger/postgres.py",
        old="if time.monotonic() > self._until:",
        new="if time.monotonic() < 0:",
        tests=("ledger/test_silent_server.py::test_one_that_falls_silent_is_given_up",),
    ),
    Mutant(  # what one has paid stays paid where nothing is taken back
        file="spine/verbs.py",
        old="if len(self._accounts) > 1:",
        new="if len(self._accounts) > 2:",
        tests=(
            "ledger/test_postgres_rights.py::test_where_one_account_refuses_the_other_pays_nothing",
        ),
    ),
    Mutant(  # a debit that comes after the rows
        file="spine/run.py",
        old="""    except Exception:
        opened.take_back()
        raise""",
        new="""    except BaseException:
        opened.take_back()
        raise""",
        tests=(f"{_DEBITS}an_interrupt_leaves_the_debit",),
    ),
    Mutant(
        file="spine/run.py",
        old="if self._bill.paid.debits and not self.ticket.used:",
        new="if self._bill.paid.debits:",
        tests=(f"{_DEBITS}an_error_after_the_first_row_leaves_the_debit",),
    ),
    Mutant(
        file="spine/verbs.py",
        old="if payment is None or payment.taken:",
        new="if payment is None:",
        tests=(f"{_DEBITS}one_ledger_pays_for_one_release_only",),
    ),
    Mutant(  # what the first account has paid is lost if the second refuses
        file="spine/verbs.py",
        old="                replace(self.paid, debits=tuple(debits)).take_back()\n",
        new="",
        tests=(f"{_DEBITS}a_bill_is_paid_once_by_all_or_by_none",),
    ),
    Mutant(  # what a caller's function asks uses up what the verb was given
        file="spine/verbs.py",
        old="same = joins and outer is not None",
        new="same = outer is not None",
        tests=(f"{_DEBITS}a_function_that_asks_by_itself_does_not_use_up_the_payment",),
    ),
    Mutant(
        file="spine/verbs.py",
        old="alone = _JOINS.set(False)",
        new="alone = _JOINS.set(joins)",
        tests=(f"{_DEBITS}who_joins_hands_nothing_on",),
    ),
    Mutant(  # arrays of features would stand in the record
        file="spine/verbs.py",
        old="                del asked[name]\n",
        new="",
        tests=(f"{_DEBITS}an_algorithm_of_the_paper_is_paid_for",),
    ),
    Mutant(  # an account that is opened once more has spent nothing
        file="ledger/balances.py",
        old="if key in self.accounts or not well:",
        new="if not well:",
        tests=(f"{_DAMAGE}sealed_nonsense_is_refused",),
    ),
    Mutant(
        file="ledger/balances.py",
        old="        self.check(key, amount)\n        self._spend",
        new="        self._spend",
        tests=(f"{_DAMAGE}sealed_nonsense_is_refused",),
    ),
    Mutant(
        file="ledger/balances.py",
        old="if amount != booked(",
        new="if amount > booked(",
        tests=(f"{_DAMAGE}sealed_nonsense_is_refused",),
    ),
    Mutant(
        file="ledger/sqlite.py",
        old="if left and not os.path.lexists(path):",
        new="if not left and not os.path.lexists(path + '-'):",
        tests=(f"{_DAMAGE}a_log_of_another_ledger_is_not_taken_for_changes",),
    ),
    Mutant(  # two long lists that begin alike are one question
        file="spine/verbs.py",
        old="return _plain(value.describe())",
        new="return repr(value)",
        tests=(f"{_DEBITS}spaces_are_written_in_full",),
    ),
    Mutant(  # rows are read that nobody has paid for
        file="data/source.py",
        old="            if ticket._due:",
        new="            if False:",
        tests=(f"{_DEBITS}the_time_of_a_ticket_is_that_of_its_debit",),
    ),
    Mutant(  # a thread that is late changes what is said of a debit
        file="data/source.py",
        old="            if self._due:  #",
        new="            if True:  #",
        tests=(f"{_DEBITS}the_time_of_a_ticket_is_that_of_its_debit",),
    ),
    Mutant(  # a study publishes what nobody has paid for
        file="study/study.py",
        old="""        self._lifecycle.check()
        self._opened.pay()
        with self._lifecycle.busy():
            self._lifecycle.close()""",
        new="""        with self._lifecycle.busy():
            self._lifecycle.close()""",
        tests=(f"{_DEBITS}a_study_pays_before_its_first_row_and_for_whatever_it_publishes",),
    ),
    Mutant(  # a study that cannot be paid for is made, and found out when it runs
        file="spine/run.py",
        old="    opened.check()\n",
        new="",
        tests=(f"{_DEBITS}a_study_that_cannot_pay_any_more_reads_and_publishes_nothing",),
    ),
    Mutant(  # paid twice
        file="spine/verbs.py",
        old="self._accounts, self.paid = (), replace(",
        new="self.paid = replace(",
        tests=(f"{_DEBITS}a_bill_is_paid_once_by_all_or_by_none",),
    ),
    Mutant(
        file="data/source.py",
        old="with ticket._lock:",
        new="if True:",
        tests=(f"{_DEBITS}a_debit_is_not_taken_back_while_another_thread_begins_to_read",),
    ),
    Mutant(
        file="privacy/parameters.py",
        old="return Fraction(float.__repr__(value))",
        new="return exact",
        tests=(f"{_ACCOUNTS}ten_floats_of_a_tenth_are_one",),
    ),
    Mutant(
        file="data/source.py",
        old="if ticket._void:",
        new="if ticket._void and ticket._used:",
        tests=(f"{_DEBITS}a_ticket_whose_debit_was_taken_back_opens_nothing",),
    ),
)
