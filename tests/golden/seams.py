"""All that the golden releases take from inside the package: re-point it here, and only here.

Everything else in this folder calls public addresses.
"""

from __future__ import annotations

import copy
import hashlib
import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, wraps
from typing import Any
from unittest.mock import patch

import zerodelta as zd
from completeness import walk
from zerodelta.channels.channel import Purifier
from zerodelta.data.rows import Rows
from zerodelta.exact import bits
from zerodelta.mechanisms.ranks import RankGroups
from zerodelta.mechanisms.selection import Selection
from zerodelta.mechanisms.sum_noise import KNorm as NoiseOfMean
from zerodelta.paper import algorithm_03 as noisy_descent
from zerodelta.paper import gaussian_statistics
from zerodelta.regression.objective import RegressionPlan
from zerodelta.spine.run import preview
from zerodelta.tasks import choices as mode

__all__ = [
    "Hand",
    "NoiseOfMean",
    "Rows",
    "Tape",
    "forecast",
    "frozen",
    "mechanisms",
    "names",
    "owners",
    "places",
    "purifiers",
    "replayed",
    "spied",
]

_ROOM = "zerodelta.mechanisms."
_BITS = frozenset({"bits", "_bits", "drawn"})


class Tape:
    """The same bytes every time, however many are asked for at once."""

    _BLOCK = 1 << 12

    def __init__(self, label: str) -> None:
        self._label, self.place = label.encode(), 0
        self._known: tuple[int, bytes] = (-1, b"")

    def read(self, count: int) -> bytes:
        """Return the next bytes; `place` says how many were read, and may be set."""
        first, last = self.place // self._BLOCK, -(-(self.place + count) // self._BLOCK)
        whole = b"".join(map(self._block, range(first, last)))
        start = self.place - first * self._BLOCK
        self.place += count
        return whole[start : start + count]

    def _block(self, number: int) -> bytes:
        if self._known[0] != number:
            block = hashlib.shake_256((number + 1).to_bytes(8, "little") + self._label)
            self._known = number, block.digest(self._BLOCK)
        return self._known[1]


def forecast(call: Callable[[], Any]) -> dict[str, Any]:
    """Return what is known before a row is read; nothing of what makes no release."""
    try:
        found = preview(call)
    except zd.errors.ParameterError as error:
        if not str(error).startswith("call:"):
            raise
        return {}
    methods = dict(sorted((method.name, method.error) for method in found.methods))
    told = {"price": found.price, "error": found.error, "methods": methods}
    return told | {"error if no cell is missing": found.complete_error}


@contextmanager
def replayed(label: str) -> Iterator[Tape]:
    """Let the operating system's bits be the same again, in every thread."""
    tape = Tape(label)
    with patch.object(bits, "_system_bytes", tape.read):
        yield tape


def purifiers() -> list[str]:
    """Return the names of all channels, found by walking the package."""
    return sorted(each.__name__ for each in walk.subclasses(Purifier))


@cache
def mechanisms() -> list[tuple[type, str]]:
    """Return every method by which a mechanism draws bits, or what has a step publishes."""
    return [
        (kind, name)
        for module in walk.modules()
        for kind in vars(module).values()
        if inspect.isclass(kind) and kind.__module__ == module.__name__
        if hasattr(kind, "step") or (_ROOM in kind.__module__ and not kind.__name__.startswith("_"))
        for name, method in vars(kind).items()
        if not (name == "draw" and issubclass(kind, Purifier))  # what is mixed in, without rows
        if name in walk.DRAWS and inspect.isfunction(method) and not inspect.isabstract(method)
        if hasattr(kind, "step") or _BITS & inspect.signature(method).parameters.keys()
    ]


@contextmanager
def spied(note: Callable[[list[Any]], None]) -> Iterator[set[str]]:
    """Tell what every mechanism is handed: of those that call one another, the innermost.

    The names of all that were asked are in the set.
    """
    asked: set[str] = set()
    calls: list[bool] = []  # one for each mechanism at work: whether it has called another

    def spy(method: Callable[..., Any]) -> Callable[..., Any]:
        names = list(inspect.signature(method).parameters)

        @wraps(method)
        def spying(*args: Any, **kwargs: Any) -> Any:
            if calls:
                calls[-1] = True
            calls.append(False)
            asked.add(type(args[0]).__name__)
            # taken down before the method runs, which may change it
            handed = dict(zip(names, args, strict=False)) | kwargs
            listed = [_copied(each) for name, each in handed.items() if name not in _BITS][1:]
            try:
                return method(*args, **kwargs)
            finally:
                if not calls.pop():
                    note(listed)

        return spying

    with _patches([(kind, name, spy(vars(kind)[name])) for kind, name in mechanisms()]):
        yield asked


# -- freezing: what a mechanism returns is what it returned before ---------------------------------

_BESIDE: tuple[tuple[Any, str], ...] = (
    (RegressionPlan, "publish"),
    (gaussian_statistics, "_noised"),
    (noisy_descent, "add_exactly"),
    (Selection, "select_member"),
)
"""Where noise is added that no method of `mechanisms` adds."""
_NAMED: tuple[tuple[Any, str], ...] = ((RankGroups, "point"), (mode, "_member"))
"""Which option it is that a selection has drawn by its place among those of one score."""


@dataclass(frozen=True, kw_only=True)
class Hand:
    """One call of a mechanism."""

    place: str
    """The class, or the module, and the name of what was called."""
    premise: str
    """Which of the `facts` were taken."""
    mechanism: Any
    """The mechanism, whose fields are public; of a function the last one that was asked."""
    facts: Any
    """What it was handed, as its theorem sees it."""
    returned: Any
    read: int
    """How many random bytes were read when it had returned."""


def places() -> list[tuple[Any, str]]:
    """Return everything at which noise is added: classes and modules, with names in them."""
    return [*mechanisms(), *_BESIDE, *_NAMED]


def owners(owner: Any) -> list[Any]:
    """Return what has a method of `places`: of a class that is abstract, all that can be made."""
    if not inspect.isabstract(owner):
        return [owner]
    return [each for below in owner.__subclasses__() for each in owners(below)]


def names(found: Iterable[tuple[Any, str]]) -> set[str]:
    """Return what the places are called."""
    return {
        f"{each.__name__.rpartition('.')[2]}.{name}"
        for owner, name in found
        for each in {owner, *owners(owner)}
    }


@contextmanager
def frozen(
    tape: Tape,
    before: Sequence[Hand] | None,
    facts: dict[str, Callable[..., Any]],
) -> Iterator[list[Hand]]:
    """Let mechanisms return what they returned `before`, and tell what each was handed.

    Without `before` they run. Frozen are those that `facts` names: of several that call one another
    the outermost. The bytes that a frozen one would have read are passed over.
    """
    hands: list[Hand] = []
    inside: list[str] = []

    def freeze(owner: Any, name: str, called: Callable[..., Any]) -> Callable[..., Any]:
        names = list(inspect.signature(called).parameters)
        bound = inspect.isclass(owner)

        @wraps(called)
        def freezing(*args: Any, **kwargs: Any) -> Any:
            kinds = type(args[0]).__mro__ if bound else (owner,)
            of = {kind.__name__.rpartition(".")[2]: kind for kind in kinds}
            premise = next((f"{kind}.{name}" for kind in of if f"{kind}.{name}" in facts), None)
            if inside or premise is None:
                return called(*args, **kwargs)
            handed = {**dict(zip(names, args, strict=False)), **kwargs}
            given = [handed.pop("self")] if bound else []
            last = hands[-1].mechanism if hands else None
            mechanism = given[0] if given and (owner, name) not in _NAMED else last
            seen = {each: handed[each] for each in handed if each not in _BITS}
            place = f"{next(iter(of))}.{name}"
            inside.append(place)
            try:
                known = facts[premise](mechanism, **seen)
                old = None if before is None or len(hands) >= len(before) else before[len(hands)]
                if old is None or old.place != place:
                    returned = called(*args, **kwargs)
                    kept = copy.deepcopy(returned)
                else:
                    returned, kept = copy.deepcopy(old.returned), old.returned
                    tape.place = old.read
                    if name == "select_member":  # neighbors may have fewer scores to choose from
                        returned = min(returned[0], len(seen["scores"]) - 1), returned[1]
            finally:
                inside.pop()
            told = {"place": place, "premise": premise, "mechanism": mechanism, "facts": known}
            hands.append(Hand(**told, returned=kept, read=tape.place))
            return returned

        return freezing

    with _patches([(each, name, freeze(each, name, vars(each)[name])) for each, name in places()]):
        yield hands


def _copied(handed: Any) -> Any:
    copied = getattr(handed, "copy", None)
    return handed if copied is None or inspect.isclass(handed) else copied()


@contextmanager
def _patches(made: list[tuple[Any, str, Any]]) -> Iterator[None]:
    before = [(kind, name, vars(kind)[name]) for kind, name, _ in made]
    try:
        for kind, name, spy in made:
            setattr(kind, name, spy)
        yield
    finally:
        for kind, name, method in before:
            setattr(kind, name, method)
