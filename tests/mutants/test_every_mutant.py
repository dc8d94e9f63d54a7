"""Every mutant in the catalog fits the library as it is now, and its tests notice it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mutants.catalog import MUTANTS, rows
from mutants.run import run, stale


def test_no_mutant_is_stale() -> None:
    found = [f"{mutant.name}\n    {why}" for mutant in MUTANTS if (why := stale(mutant))]
    assert not found, "\n".join(["mend tests/mutants/catalog.txt:", *found])


def test_no_mutant_is_listed_twice() -> None:
    assert len({(mutant.old, mutant.new) for mutant in MUTANTS}) == len(MUTANTS)


@pytest.mark.slow
def test_every_mutant_is_noticed() -> None:
    troubled = [verdict for verdict in run(MUTANTS) if verdict.trouble]
    assert not troubled, "\n".join(f"{v.mutant.name}\n    {v.trouble}" for v in troubled)


def test_a_mutant_that_does_not_fit_is_told_apart() -> None:
    fits = MUTANTS[0]
    assert not stale(fits)
    assert "occurs 0 times" in stale(replace(fits, old="no such line"))
    assert "not once" in stale(replace(fits, old="return"))
    assert "changes nothing" in stale(replace(fits, new=fits.old))
    assert "there is no test" in stale(replace(fits, tests=("exact/test_arb.py::test_nowhere",)))
    assert "no test is named" in stale(replace(fits, tests=()))


def test_a_row_is_read_as_the_first_lines_of_the_table_say() -> None:
    named, brief = "    a⏎ ¦  ¦ test_b[c] data/test_d.py::test_e ¦ why", "f ¦ g ¦ test_h"
    table = f"# text ¦ what it becomes\n\nexact/test_a.py\n{named}\n{brief}\n"
    first, second = rows(table)
    assert (first.old, first.new, first.why) == ("    a\n", "", "why")
    assert first.tests == ("exact/test_a.py::test_b[c]", "data/test_d.py::test_e")
    assert (second.old, second.new, second.why) == ("f", "g", "")
    assert second.tests == ("exact/test_a.py::test_h",)


@pytest.mark.slow
def test_a_mutant_that_nobody_notices_survives() -> None:
    harmless = replace(MUTANTS[0], new=MUTANTS[0].old + "  # the same")
    (verdict,) = run([harmless], workers=1)
    assert verdict.trouble == "survives"
