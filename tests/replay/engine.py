"""Run a release on rows and on neighbors of them, every mechanism returning what it returned.

What a mechanism was handed may move as far as its theorem says; all else that leaves must be the
same: it would be a second release, without noise.
"""

from __future__ import annotations

import contextlib
import io
import json
import logging
import re
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest.mock import patch

import zerodelta as zd
from golden import description
from golden.description import described, plain
from golden.seams import Hand, Tape, frozen, replayed
from replay.neighbors import World, inhabited
from replay.premises import FACTS, GAUSSIAN, LOSS, NEVER
from zerodelta.exact import bits
from zerodelta.privacy.verify import theorem_of

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_FOLDER = re.compile(r"/\S*/tmp\w+")
_EACH_TIME = {"id", "time", "digest"}
"""What differs each time, whatever the rows are; a digest is that of what is compared."""
_OF_ENTRIES = {"time", "previous", "hash", "record", "ledger"}


@dataclass(frozen=True, kw_only=True)
class Run:
    """Everything that left, and what each mechanism was handed."""

    told: dict[str, Any]
    hands: list[Hand]
    read: int
    """How many random bytes were read, those of frozen mechanisms included."""
    drawn: int
    """How many were drawn by what is no mechanism: by a frozen run, all that it read."""
    refused: bool
    world: World
    shown: bool
    """Whether intervals, frames and pages were made."""
    release: Any = None


def run(
    case: Callable[..., Any],
    called: Any,
    options: dict[str, Any],
    world: World,
    before: Run | None,
    *,
    shown: bool = True,
) -> Run:
    """Run a case in a world; with the mechanisms of a run `before`, if there is one.

    With `shown` intervals, frames and pages are made too: they follow from the release's fields,
    which are compared in any case.
    """
    log, printed = _Log(), io.StringIO()
    found: Any = None
    told: dict[str, Any] = {}
    hands = None if before is None else before.hands
    with contextlib.ExitStack() as stack:
        for each in (
            warnings.catch_warnings(),
            contextlib.redirect_stdout(printed),
            contextlib.redirect_stderr(printed),
            log.listening(),
        ):
            stack.enter_context(each)
        warnings.simplefilter("error")
        left = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        stack.enter_context(inhabited(world))
        stack.enter_context(patch.object(tempfile, "tempdir", str(left)))
        tape = stack.enter_context(replayed("a release"))
        counted = stack.enter_context(_counting(tape))
        handed = stack.enter_context(frozen(tape, hands, FACTS))
        try:
            found = case(world.handing(called), **options)
        except zd.errors.ZeroDeltaError as refusal:
            told["refused"] = f"{type(refusal).__name__}: {refusal}"
        except Exception as error:
            if before is None:
                raise
            told["raised"] = repr(error)
        read, drawn = tape.place, counted[0]
        if found is not None:
            told |= _told(found, left, shown=shown)
        for ledger in world.accounts:
            told["ledger"] = _entries(ledger)
        told["files"] = sorted(path.name for path in left.rglob("*"))
    told["threads"] = sorted(thread.name for thread in threading.enumerate())
    told["printed"], told["logged"] = printed.getvalue(), log.lines
    return Run(
        told=told,
        hands=list(handed),
        read=read,
        drawn=drawn,
        refused=found is None,
        world=world,
        shown=shown,
        release=getattr(found, "release_", found),
    )


@contextlib.contextmanager
def _counting(tape: Tape) -> Iterator[list[int]]:
    """Count the bytes that are read one after the other, and not those that are passed over."""
    counted, read = [0], tape.read

    def counting(count: int) -> bytes:
        counted[0] += count
        return read(count)

    with patch.object(bits, "_system_bytes", counting):
        yield counted


class _Log(logging.Handler):
    """Lines that are logged, whoever logs them."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(f"{record.name}: {record.getMessage()}")

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        root = logging.getLogger()
        level = root.level
        root.addHandler(self)
        root.setLevel(logging.DEBUG)
        try:
            yield
        finally:
            root.setLevel(level)
            root.removeHandler(self)


def _told(found: Any, folder: Path, *, shown: bool) -> dict[str, Any]:
    with _intervals(shown):
        told = {"type": type(found).__name__, **described(found, [])}
    release = getattr(found, "release_", found)
    if not isinstance(release, zd.records.Release):
        return told
    told |= {"release": repr(release), "attributes": sorted(dir(release))}
    told |= {"seconds": release.seconds, "read": type(release.diagnostics).__name__}
    told |= {"saved": _or_refusal(lambda: _saved(release, folder / "saved.json"))}
    if release.record is not None:
        told["record"] = _without(json.loads(json.dumps(release.record.to_json())))
    if shown:
        told |= {"page": release._repr_html_(), "covers": release.covers}
        told |= {"frame": _or_refusal(lambda: plain(release.to_frame("pyarrow")))}
    return told


def _intervals(shown: bool) -> Any:
    asked: dict[str, Any] = {}
    return contextlib.nullcontext() if shown else patch.object(description, "_ASKED", asked)


def _or_refusal(made: Callable[[], Any]) -> Any:
    try:
        return made()
    except zd.errors.ZeroDeltaError as refusal:
        return _FOLDER.sub("…", f"{type(refusal).__name__}: {refusal}")


def _saved(release: zd.records.Release, path: Path) -> Any:
    release.save(path)
    return _without(json.loads(path.read_text(encoding="utf-8")))


def _without(record: Any) -> Any:
    """Return a record or a file of one, without what differs each time."""
    if isinstance(record, dict):
        kept = {name: _without(each) for name, each in record.items() if name not in _EACH_TIME}
        for entry in kept.get("entries", ()):
            for name in _OF_ENTRIES & entry.keys():
                entry[name] = "…"
        return kept
    return list(map(_without, record)) if isinstance(record, list) else record


def _entries(ledger: zd.Ledger) -> list[dict[str, Any]]:
    return [
        {name: str(entry[name]) for name in entry if name not in _OF_ENTRIES}
        for entry in ledger.history
    ]


# -- what differs that should not -----------------------------------------------------------------


def leaks(one: Run, two: Run) -> list[str]:
    """Return a line for everything that two runs on neighbors tell apart."""
    for name in ("raised", "refused"):
        if one.told.get(name) != two.told.get(name):
            return [f"{name}: {_short(one.told.get(name))} became {_short(two.told.get(name))}"]
    found = [
        f"{name}: {_short(one.told.get(name))} became {_short(two.told.get(name))}"
        for name in sorted({*one.told, *two.told})
        if one.told.get(name) != two.told.get(name)
    ]
    asked = [[(hand.place, _public(hand.mechanism)) for hand in each.hands] for each in (one, two)]
    if asked[0] != asked[1]:
        return [*found, f"other mechanisms were asked: {_first(*asked)}"]
    return found + _too_far(one, two)


def _first(mine: list[Any], yours: list[Any]) -> str:
    for a, b in zip(mine, yours, strict=False):
        if a != b:
            return f"{_short(a)} became {_short(b)}"
    return f"{len(mine)} became {len(yours)}"


def _public(mechanism: Any) -> str:
    return _ADDRESS.sub("", repr(mechanism))


def _short(text: Any) -> str:
    whole = _ADDRESS.sub("", str(text))
    return whole if len(whole) < 300 else f"{whole[:300]}…"


def _too_far(one: Run, two: Run) -> list[str]:
    found, total, rows = [], {True: Fraction(0), False: Fraction(0)}, _rows_of_a_unit(one)
    for mine, yours in zip(one.hands, two.hands, strict=True):
        if mine.premise == "Purifier.apply" and one.world.handed != "rows":
            continue  # a caller's own value, of which the caller asserts what it is
        try:
            lost = LOSS[mine.premise](mine.mechanism, mine.facts, yours.facts)
        except ValueError as error:  # of another length
            found.append(f"{mine.place} was handed what cannot be compared: {error}")
            continue
        most, gaussian = _declared(mine), _gaussian(mine)
        if most is not None:
            most *= rows**2 if gaussian else rows
        if lost >= NEVER or (most is not None and lost > most):
            told = "the premise of its theorem does not hold" if lost >= NEVER else float(lost)
            found.append(f"{mine.place} of {_short(mine.mechanism)}: {told}, not {most}")
        total[gaussian] += lost
    for gaussian, most in _claimed(one).items():
        if not found and total[gaussian] > most:
            unit = "μ²" if gaussian else "ε"
            found.append(f"all mechanisms: {float(total[gaussian])} {unit}, not {float(most)}")
    return found


def _gaussian(hand: Hand) -> bool:
    """Tell whether the loss is μ², and not ε."""
    return hand.premise in GAUSSIAN or hasattr(hand.mechanism, "variance")


def _steps(run: Run) -> list[Any]:
    if not isinstance(run.release, zd.records.Release):
        return []
    return [step for part in run.release.certificate.parts for step in part.steps]


def _rows_of_a_unit(run: Run) -> int:
    """Return how many rows of a unit count, where mechanisms are told of one (theory V)."""
    found = [1]
    for step in _steps(run):
        numbers = step.numbers
        if step.theorem == "units":
            found.append(int(numbers["max_rows"]))
        if step.theorem == "clipped-units":
            found.append(min(int(numbers["max_rows"]), int(numbers["weight"])))
    return max(found)


def _declared(hand: Hand) -> Fraction | None:
    """Return what a mechanism itself says that one release of it costs."""
    claim = getattr(hand.mechanism, "claim", None)
    found = getattr(claim, "exact_epsilon", None) or getattr(claim, "mu_squared", None)
    return None if found is None else Fraction(found)


def _claimed(run: Run) -> dict[bool, Fraction]:
    """Return the ε, or the μ², that the certificate has for all mechanisms together."""
    if not isinstance(run.release, zd.records.Release):
        return {}
    certificate = run.release.certificate
    if any(_gaussian(hand) for hand in run.hands):
        found = [
            (theorem_of(step), int(step.numbers.get("count", 1)), step) for step in _steps(run)
        ]
        claims = [(each.claim(s.neighbors), k) for each, k, s in found if hasattr(each, "claim")]
        if all(hasattr(claim, "mu_squared") for claim, _ in claims):
            squared = sum((claim.mu_squared * k for claim, k in claims), Fraction(0))
            return {True: squared * _rows_of_a_unit(run) ** 2}
        return {}
    mixed = any(hand.premise == "Purifier.apply" for hand in run.hands)
    epsilon = getattr(certificate.claim, "exact_epsilon", None)
    return {} if mixed or epsilon is None else {False: epsilon}


def again(world: World, **other: Any) -> World:
    """Return the same world, with another row."""
    return replace(world, changed=0, opened=False, accounts=[], **other)
