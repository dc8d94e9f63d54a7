"""Every mutant in the catalog fits the library as it is now, and its tests notice it."""

from __future__ import annotations

import pytest

from mutants.catalog import MUTANTS
from mutants.mutant import Mutant
from mutants.run import run, stale


def test_no_mutant_is_stale() -> None:
    found = [f"{mutant.name}\n    {why}" for mutant in MUTANTS if (why := stale(mutant))]
    assert not found, "\n".join(["mend tests/mutants/in_*.py:", *found])


def test_no_mutant_is_listed_twice() -> None:
    assert len({(mutant.file, mutant.old, mutant.new) for mutant in MUTANTS}) == len(MUTANTS)


@pytest.mark.slow
def test_every_mutant_is_noticed() -> None:
    troubled = [verdict for verdict in run(MUTANTS) if verdict.trouble]
    assert not troubled, "\n".join(f"{v.mutant.name}\n    {v.trouble}" for v in troubled)


def mutant(**changes: object) -> Mutant:
    first = {name: getattr(MUTANTS[0], name) for name in ("file", "old", "new", "tests")}
    return Mutant(**{**first, **changes})


def test_a_mutant_that_does_not_fit_is_told_apart() -> None:
    assert not stale(mutant())
    assert "file is gone" in stale(mutant(file="exact/nowhere.py"))
    assert "occurs 0 times" in stale(mutant(old="no such line"))
    assert "not once" in stale(mutant(old="return"))
    assert "changes nothing" in stale(mutant(new=MUTANTS[0].old))
    assert "there is no test" in stale(mutant(tests=("exact/test_arb.py::test_nowhere",)))
    assert "no test is named" in stale(mutant(tests=()))


@pytest.mark.slow
def test_a_mutant_that_nobody_notices_survives() -> None:
    harmless = mutant(new=MUTANTS[0].old + "  # the same")
    (verdict,) = run([harmless], workers=1)
    assert verdict.trouble == "survives"
