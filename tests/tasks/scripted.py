"""The exact law of what a task publishes: its real code is run on every path of its random draws.

A sampler is replaced by one that answers from a path and, past its end, asks which values there are
and how likely each is. Probabilities are Arb balls. What a test cuts off is `lost`, and counts for
the adversary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from flint import arb, ctx

from zerodelta.audit.exact import (
    ExpRational,
    permute_and_flip_law,
    rounded_laplace_pmf,
    rounded_laplace_tail,
)
from zerodelta.exact.bits import BitSource
from zerodelta.exact.logs import ball
from zerodelta.spaces import GridLattice

BITS = 512
Chances: TypeAlias = Mapping[Any, Any]
"""The values of a draw and their probabilities: Fractions, `ExpRational` or balls."""


class Ask(Exception):  # noqa: N818  (not an error: the code makes a draw beyond the path)
    def __init__(self, chances: Chances) -> None:
        self.chances = chances


class Kept(Exception):  # noqa: N818  (not an error: all that is left depends on this alone)
    def __init__(self, key: Any) -> None:
        self.key = key


@dataclass
class Tape:
    """The values that draws get, and whether to stop where hidden work ends."""

    path: tuple[Any, ...] = ()
    stops: bool = False
    place: int = 0

    def draw(self, chances: Chances) -> Any:
        if self.place == len(self.path):
            raise Ask(chances)
        self.place += 1
        return self.path[self.place - 1]


_tape = Tape()


def draw(chances: Chances) -> Any:
    """Return the next value of the path that is being walked."""
    return _tape.draw(chances)


def drawn() -> int:
    """Return how many draws the path that is being walked has seen."""
    return _tape.place


def keep(key: Any) -> None:
    """Say that everything after this point is a function of the key and of fresh draws."""
    if _tape.stops:
        raise Kept(key)


class ScriptedBits(BitSource):
    """Signs are draws; nothing else may be read: every draw has to be scripted."""

    def read(self, count: int) -> bytes:
        raise AssertionError("a draw is not scripted")

    def signs(self, count: int) -> Any:
        return np.array([draw({-1: Fraction(1, 2), 1: Fraction(1, 2)}) for _ in range(count)])


class Unseen:
    """Numbers that are drawn when they are looked at: those that are not change nothing."""

    def __init__(self, chances: Chances, size: int) -> None:
        self._chances, self._size = chances, size
        self._seen: Any = None

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        if self._seen is None:
            self._seen = np.array([draw(self._chances) for _ in range(self._size)], dtype=np.int64)
        return self._seen.astype(dtype) if dtype is not None else self._seen

    def __getitem__(self, place: int) -> Any:
        return np.asarray(self)[place]


def uniform(limit: int, *, size: int, bits: Any) -> Any:
    return Unseen(dict.fromkeys(range(limit), Fraction(1, limit)), size)


def points(lattice: Any, integers: Any) -> Any:
    """`GridLattice.points`, which looks at its numbers."""
    return _points(lattice, np.asarray(integers))


_points = GridLattice.points


def coin(probability: Fraction, *, size: int, bits: Any) -> Any:
    return np.array([draw({True: probability, False: 1 - probability}) for _ in range(size)])


def coin_exp(exponent: Fraction, *, size: int, bits: Any) -> Any:
    likely = ExpRational.exp(-exponent)
    return np.array([draw({True: likely, False: 1 - likely}) for _ in range(size)])


def flipped(scores: Any, *, scale: Fraction, size: int, bits: Any, members: Any = None) -> Any:
    assert members is None
    return [draw(permute_and_flip_law([int(score) for score in scores], scale=scale))]


@cache
def laplace_chances(scale: Fraction, reach: int, *, joined: bool) -> dict[int, arb]:
    """Rounded Laplace noise up to `reach`; what is beyond stands at reach + 1, or is lost."""
    chances = {k: rounded_laplace_pmf(k, scale=scale) for k in range(-reach, reach + 1)}
    if joined:
        tail = rounded_laplace_tail(reach + 1, scale=scale)
        chances |= {-reach - 1: tail, reach + 1: tail}
    with ctx.workprec(BITS):
        return {k: chance.ball() for k, chance in chances.items()}


_made: dict[str, Any] = {}


def once(make: Callable[..., Any], *context: Any) -> Callable[..., Any]:
    """Thresholds and certificates are slow and public: each is made once (in each context)."""

    def made(*given: Any, **options: Any) -> Any:
        key = f"{make.__module__}.{make.__qualname__} {context!r} {given!r} {options!r}"
        if key not in _made:
            _made[key] = make(*given, **options)
        return _made[key]

    return made


# --- laws ----------------------------------------------------------------------------------------


def as_ball(probability: Any) -> arb:
    if isinstance(probability, arb):
        return probability
    return probability.ball() if isinstance(probability, ExpRational) else ball(probability)


def paths(
    run: Callable[[], Any],
    start: tuple[Any, ...] = (),
    *,
    stops: bool = False,
    exact: bool = False,
) -> Iterator[tuple[tuple[Any, ...], Any, Any]]:
    """Yield every path of draws from `start` on, its probability given that, and where it leads.

    With `stops` a path ends where the hidden work does, and leads to the key that was kept. With
    `exact` probabilities are products of what was given, else balls.
    """
    global _tape
    pending: list[tuple[tuple[Any, ...], Any]] = [(start, 1 if exact else arb(1))]
    while pending:
        path, probability = pending.pop()
        _tape = Tape(path, stops)
        try:
            found = run()
        except Ask as ask:
            for value, chance in ask.chances.items():
                part = chance if exact else as_ball(chance)
                pending.append(((*path, value), probability * part))
        except Kept as kept:
            yield path, probability, kept.key
        else:
            assert not stops, "nothing was kept"
            assert _tape.place == len(path), "a draw was not made again"
            yield path, probability, found


@dataclass(frozen=True)
class Law:
    """The mass of each outcome, and the mass of what was cut off."""

    mass: dict[Any, arb]
    lost: arb


def law(run: Callable[[], Any], channel: dict[Any, list[tuple[Any, arb]]] | None = None) -> Law:
    """Return the law of what `run` returns.

    With a `channel`, what follows on a kept key is walked once and stored there.
    """
    mass: dict[Any, arb] = {}
    with ctx.workprec(BITS):
        for path, probability, found in paths(run, stops=channel is not None):
            if channel is None:
                outcomes = [(found, arb(1))]
            else:
                if found not in channel:
                    channel[found] = [(end, p) for _, p, end in paths(run, path)]
                outcomes = channel[found]
            for outcome, part in outcomes:
                mass[outcome] = mass.get(outcome, arb(0)) + probability * part
        lost = (1 - sum(mass.values(), arb(0))).abs_upper()
    assert lost < 1e-6, "a path was left out, or walked twice"
    return Law(mass, lost)


@dataclass(frozen=True)
class Verdict:
    """Certainly pure, certainly not, and the largest loss over ε."""

    pure: bool
    broken: bool
    tightness: float


def judge(laws: Mapping[Any, Law], pairs: Iterable[tuple[Any, Any]], epsilon: Fraction) -> Verdict:
    """Compare the laws of neighboring datasets, both ways, with ε."""
    pure, broken, loss = True, False, arb(0)
    with ctx.workprec(BITS):
        factor = ball(epsilon).exp()
        for one, two in pairs:
            for p, q in ((laws[one], laws[two]), (laws[two], laws[one])):
                for outcome in dict.fromkeys((*p.mass, *q.mass)):
                    here, there = (some.mass.get(outcome, arb(0)) for some in (p, q))
                    most = here + p.lost
                    pure &= bool(most <= factor * there)
                    broken |= bool(here > factor * (there + q.lost))
                    if not most.is_zero():
                        loss = loss.max((most / there).log() if there > 0 else arb.pos_inf())
        return Verdict(pure, broken, float(loss / ball(epsilon)))
