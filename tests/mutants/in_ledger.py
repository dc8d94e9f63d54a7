"""Mistakes in what is spent, when, and in what is believed of a file."""

from __future__ import annotations

from mutants.mutant import Mutant

_ACCOUNTS, _DEBITS, _DAMAGE = (
    f"ledger/test_{name}.py::test_" for name in ("accounts", "debits", "damage")
)

MUTANTS = (
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
        old="return 2 * epsilon",
        new="return epsilon",
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
        file="ledger/chain.py",
        old='f"{before}\\n{text}"',
        new="text",
        tests=(f"{_DAMAGE}an_edit_with_a_new_hash_is_found_by_the_next_entry",),
    ),
    Mutant(
        file="ledger/chain.py",
        old="or entry.question != question",
        new="",
        tests=(f"{_DAMAGE}what_is_edited_by_hand_is_found",),
    ),
    Mutant(  # what is not synced may be lost
        file="ledger/sqlite_store.py",
        old='self._connection.execute("BEGIN IMMEDIATE")',
        new='self._connection.execute("BEGIN")',
        tests=(
            "ledger/test_many_processes.py::test_threads_of_processes_spend_exactly_the_budget",
        ),
    ),
    Mutant(  # an empty file is taken for a new ledger
        file="ledger/connections.py",
        old="absent = server or not os.path.lexists(address)",
        new="absent = server or not os.path.getsize(address)",
        tests=(
            f"{_ACCOUNTS}without_a_budget_nothing_is_made",
            f"{_ACCOUNTS}a_ledger_is_its_address",
        ),
    ),
    Mutant(
        file="ledger/store.py",
        old="if last is None or last[3] != balances.hash:",
        new="if last is not None and last[3] != balances.hash:",
        tests=(f"{_DAMAGE}entries_that_vanish_while_it_is_open_are_missed",),
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
        old="if self._paid.debits and not self.ticket.used:",
        new="if self._paid.debits:",
        tests=(f"{_DEBITS}an_error_after_the_first_row_leaves_the_debit",),
    ),
    Mutant(
        file="spine/paying.py",
        old="if payment is None or payment.taken:",
        new="if payment is None:",
        tests=(f"{_DEBITS}one_ledger_pays_for_one_release_only",),
    ),
    Mutant(  # what the first account has paid is lost if the second refuses
        file="spine/paying.py",
        old="        Paid(record=record, debits=tuple(debits)).take_back()\n",
        new="",
        tests=(f"{_DEBITS}a_data_set_pays_for_what_it_is_asked",),
    ),
    Mutant(  # what a caller's function asks uses up what the verb was given
        file="spine/paying.py",
        old="same = joins and outer is not None",
        new="same = outer is not None",
        tests=(f"{_DEBITS}a_function_that_asks_by_itself_does_not_use_up_the_payment",),
    ),
    Mutant(
        file="spine/paying.py",
        old="alone = _JOINS.set(False)",
        new="alone = _JOINS.set(joins)",
        tests=(f"{_DEBITS}who_joins_hands_nothing_on",),
    ),
    Mutant(  # arrays of features would stand in the record
        file="spine/paying.py",
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
        file="ledger/sqlite_store.py",
        old="if left and not os.path.lexists(path):",
        new="if not left and not os.path.lexists(path + '-'):",
        tests=(f"{_DAMAGE}a_log_of_another_ledger_is_not_taken_for_changes",),
    ),
    Mutant(  # two long lists that begin alike are one question
        file="spine/asked.py",
        old="return _plain(value.describe())",
        new="return repr(value)",
        tests=(f"{_DEBITS}spaces_are_written_in_full",),
    ),
    Mutant(  # a study publishes what nobody has paid for
        file="study/study.py",
        old="                if self._opened.take_back():",
        new="                if not self._opened.take_back():",
        tests=(f"{_DEBITS}a_study_whose_debit_was_taken_back_publishes_nothing",),
    ),
    Mutant(
        file="data/ticket.py",
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
        file="data/ticket.py",
        old="if ticket._void:",
        new="if ticket._void and ticket._used:",
        tests=(f"{_DEBITS}a_ticket_whose_debit_was_taken_back_opens_nothing",),
    ),
)
