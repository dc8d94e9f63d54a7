"""Freeze and replay: beside its noise nothing of a release depends on a row.

Every golden case, which are complete by enumeration of the package, is run on rows and on neighbors
of them, from every kind of source, for every neighboring relation, with odd cells. On the neighbors
every mechanism returns what it returned before. Then it was handed what its theorem allows, and
all else that leaves is the same: value, error, intervals, record, certificate, messages, warnings,
files, shapes, types and order.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterator
from functools import cache, partial, wraps
from itertools import combinations, product
from pathlib import Path
from typing import Any

import pytest

import zerodelta as zd
from completeness import walk
from golden.golden import CASES, asked
from golden.rows import NUMBERS, rows_of
from golden.seams import frozen, names, owners, places, purifiers, replayed
from replay.cases import BESIDE, NOTHING, asked_of, name_of, varied
from replay.engine import Run, again, leaks, run
from replay.neighbors import (
    EXTREME,
    FORMS,
    INFINITE,
    MISSING,
    ODD,
    RELATIONS,
    SOURCES,
    World,
    drawn,
)
from replay.premises import FACTS, NOT_FROZEN

NAMES = sorted({name_of(case) for case in CASES if case not in NOTHING})
RECORD = 16
"""Bytes of the random number of a record."""


def base(case: str, world: World, *, shown: bool) -> Run:
    called, options = asked(case)
    return run(CASES[case], called, options, world, None, shown=shown)


def compared(case: str, one: Run, *, odd: int, place: int) -> Run:
    called, options = asked(case)
    other = again(one.world, odd=odd, place=place)
    two = run(CASES[case], called, options, other, one, shown=one.shown)
    assert other.changed, (
        f"{case} was handed no rows: let it be handed them as other cases in tests/golden are, or "
        "say in NO_ROWS of tests/replay/cases.py why it has none"
    )
    found = leaks(one, two)
    assert not found, "\n".join(["", f"{case} in {other}", *found])
    assert two.drawn <= RECORD or name_of(case) in BESIDE, (
        f"{case} draws {two.drawn} random bytes that no mechanism draws: add what draws them to "
        "tests/replay/premises.py, or say in BESIDE of tests/replay/cases.py what they are for"
    )
    return one


# -- the small cover: every pair of a public name and a source, relation, odd row; and of these ----

WORLDS = len(SOURCES)


def cover(name: str) -> Iterator[tuple[int, dict[str, Any], list[tuple[int, int]]]]:
    """Yield worlds with odd rows and places: their pairs are among those of all names."""
    turn = drawn(name)
    for i in range(WORLDS):
        given = {
            "source": list(SOURCES)[(i + turn) % WORLDS],
            "relation": list(RELATIONS)[(i + turn // 8) % len(RELATIONS)],
            "form": FORMS[(i + i // 4) % len(FORMS)],
            "paid": i % 4 == 3,
            "read": i % 3 == 1,
        }
        odd = [(5 * (2 * i + k) + turn // 64) % ODD for k in range(2)]
        yield i, given, list(zip(odd, (EXTREME, drawn(name, i) % 600), strict=True))


@pytest.mark.parametrize("name", NAMES)
def test_neighbors_differ_in_the_noise_alone(name: str) -> None:
    cases = asked_of(name)
    homes = {}
    for number, case in enumerate(cases):
        homes[case] = one = base(case, World(**varied(case)), shown=not number)
        assert not one.refused, f"{case}: {one.told}"
        somewhere = drawn(case) % ODD, drawn(case, "at") % 600
        for odd, place in ((MISSING, EXTREME), (INFINITE, EXTREME), somewhere):
            compared(case, one, odd=odd, place=place)
    rows = [case for case in cases if world_matters(homes[case])]
    for i, given, odd_rows in cover(name) if rows else ():
        case = rows[i % len(rows)]
        one = base(case, World(**varied(case), **given), shown=False)
        for odd, place in odd_rows:
            compared(case, one, odd=odd, place=place)


def world_matters(home: Run) -> bool:
    """Tell whether a case is handed rows, so that it may be handed others in other forms."""
    return home.world.handed == "rows"


def test_all_pairs_are_covered() -> None:
    found = [
        {**given, "odd": odd}
        for name in NAMES
        for _, given, odd_rows in cover(name)
        for odd, _ in odd_rows
    ]
    sides: dict[str, Collection[Any]] = {"source": SOURCES, "relation": RELATIONS, "form": FORMS}
    sides["odd"] = range(ODD)
    for one, two in combinations(sides, 2):
        assert {(given[one], given[two]) for given in found} == {*product(sides[one], sides[two])}
    for name in NAMES:
        worlds = [given for _, given, _ in cover(name)]
        for side in ("source", "relation", "form"):
            assert {given[side] for given in worlds} == set(sides[side]), name
        assert {odd for _, _, odd_rows in cover(name) for odd, _ in odd_rows} == set(range(ODD))


@pytest.mark.slow
@pytest.mark.parametrize("case", [case for case in CASES if case not in NOTHING])
def test_neighbors_differ_in_the_noise_alone_in_every_world(case: str) -> None:
    """Every case, source, relation and form; of each several odd rows in several places."""
    home = base(case, World(**varied(case)), shown=True)
    for i in range(2 * ODD):
        compared(case, home, odd=i % ODD, place=drawn(case, i) % 600)
    if not world_matters(home):
        return
    sides: list[dict[str, Any]] = [{"form": form} for form in FORMS]
    if home.world.opened:
        sides = [{"source": s, "relation": r} for s, r in product(SOURCES, RELATIONS)]
    for number, given in enumerate(sides):
        one = base(
            case,
            World(**varied(case), **given, paid=number % 2 == 1, read=number % 3 == 1),
            shown=False,
        )
        for i in range(2):
            turn = drawn(case, number, i)
            compared(case, one, odd=turn % ODD, place=turn // ODD % 600)


# -- completeness ---------------------------------------------------------------------------------


def test_every_mechanism_has_its_premise() -> None:
    for owner, name in ((each, name) for place, name in places() for each in owners(place)):
        kinds = getattr(owner, "__mro__", (owner,))
        known = {f"{kind.__name__.rpartition('.')[2]}.{name}" for kind in kinds}
        assert known & (FACTS.keys() | NOT_FROZEN.keys()), (
            f"{owner.__name__}.{name} adds noise: say in tests/replay/premises.py what its theorem "
            "asks of what it is handed"
        )


@cache
def asked_for() -> set[str]:
    """Return the premises of all mechanisms that the cases ask."""
    seen: set[str] = set()
    for case in CASES:
        called, options = asked(case)
        with replayed("a release") as tape, frozen(tape, None, FACTS) as hands:
            CASES[case](called, **options)
        seen |= {hand.premise for hand in hands}
    return seen


def test_every_premise_is_asked() -> None:
    """A mechanism that no case asks would not be frozen by anything."""
    known = names(places())
    never = sorted(FACTS.keys() - asked_for())
    assert not never, f"no case asks {never}: add one to tests/golden"
    assert FACTS.keys() - known <= {"Purifier.apply"}


def test_every_query_of_a_study_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = [kind for kind in zd.Study.__mro__ if kind is not object]
    asking = {
        name: (kind, called)
        for kind in reversed(kinds)
        for name, called in vars(kind).items()
        if inspect.isfunction(called) and not name.startswith(("_", "plan_"))
    }
    seen: set[str] = set()

    def noting(name: str, called: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(called)
        def noted(*args: Any, **kwargs: Any) -> Any:
            seen.add(name)
            return called(*args, **kwargs)

        return noted

    for name, (kind, called) in asking.items():
        monkeypatch.setattr(kind, name, noting(name, called))
    for case in asked_of("Study"):
        CASES[case](zd.Study)
    assert len(asking) > 8
    never = sorted(asking.keys() - seen)
    assert not never, f"no study asks {never}: add a case to tests/golden/studies.py"


def test_every_reader_is_among_the_sources(tmp_path: Path) -> None:
    rows = list(zip(*rows_of().values(), strict=True))
    written = [partial(build, rows) for build, _ in SOURCES.values()]
    listed = walk.readers_of([*written, lambda _: NUMBERS], tmp_path)
    file = "tests/replay/neighbors.py"
    found = walk.missing(walk.readers(), listed, file=file, name="SOURCES")
    assert not found, "\n".join(found)


def test_every_relation_is_asked_of_rows_and_of_units() -> None:
    asked = {
        (zd.records.Neighbors(given.get("neighbors", "replace")), "unit" in given)
        for given in RELATIONS.values()
    }
    missing = {*product(zd.records.Neighbors, (False, True))} - asked
    assert not missing, f"add {missing} to RELATIONS in tests/replay/neighbors.py"


def test_nothing_is_excused_that_is_not_there() -> None:
    assert CASES.keys() >= NOTHING
    assert set(NAMES) >= BESIDE.keys()
    assert len(purifiers()) > 10
