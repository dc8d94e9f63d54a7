"""The exact law of what a real Study publishes: its code is run on every path of its random draws.

Every draw is answered from a script. A draw of noise is split into intervals of integers on which
the program and the study do the same. What a program sees of an answer is monotone in one draw,
or grows with several, so what happens at both ends of a box of intervals happens in all of it (both
are run); a program that squares an answer is run on every integer. The mass of an interval is an
Arb ball; what lies beyond `reach` deviations is `lost`, and counts for the adversary.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, partial
from math import isqrt
from typing import Any, TypeAlias
from unittest.mock import patch

import numpy as np
from flint import arb, ctx

from sampling import replaced
from tasks.scripted import Law, Verdict, once
from tasks.scripted import judge as judge_laws
from zerodelta.audit.exact import (
    exponential_mechanism_law,
    permute_and_flip_law,
    rounded_gaussian_tail,
)
from zerodelta.channels.mixes import FiniteMix, GaussianMix, GridMix
from zerodelta.channels.purification import plan
from zerodelta.data.isolation import reveal
from zerodelta.exact.bits import BitSource
from zerodelta.exact.logs import ball
from zerodelta.spine.plan import ReleasePlan
from zerodelta.study.study import Study
from zerodelta.testing import replayed

BITS = 512
REACH = 40
"""In deviations: less than 1e-347 lies beyond."""

Rows: TypeAlias = tuple[Any, ...]
See: TypeAlias = Callable[[Any], Any]
Cell: TypeAlias = tuple[int, int]
tail = cache(rounded_gaussian_tail)


@dataclass(frozen=True)
class Noise:
    """A draw of round(N(0, variance))."""

    variance: Fraction

    def mass(self, cell: Cell) -> arb:
        with ctx.workprec(BITS):
            low, high = cell
            if high < 0:
                low, high = -high, -low
            return tail(low, variance=self.variance) - tail(high + 1, variance=self.variance)

    def cells(self, what_happens: Callable[[int], Any], case: Case) -> Iterator[Cell]:
        most = case.reach * (isqrt(int(self.variance)) + 1)
        if case.exhaustive:
            yield from ((k, k) for k in range(-most, most + 1))
            return
        low = high = -most
        seen = what_happens(low)
        for start, end, happened in _constant(what_happens, -most, most):
            if happened != seen:
                yield low, high
                low, seen = start, happened
            high = end
        yield low, high


def _constant(f: Callable[[int], Any], low: int, high: int) -> Iterator[tuple[int, int, Any]]:
    """Yield intervals with equal values at both ends."""
    stack = [(low, f(low), high, f(high))]
    while stack:
        a, at_a, b, at_b = stack.pop()
        if at_a == at_b:
            yield a, b, at_a
            continue
        middle = (a + b) // 2
        stack.append((middle + 1, f(middle + 1), b, at_b))
        stack.append((a, at_a, middle, f(middle)))


@dataclass(frozen=True)
class Choice:
    """A draw from finitely many options; their probabilities are balls, kept out of comparisons."""

    name: tuple[Any, ...]
    probabilities: tuple[Any, ...] = field(compare=False)

    def mass(self, cell: Cell) -> arb:
        with ctx.workprec(BITS):
            probability = self.probabilities[cell[0]]
            return ball(probability) if isinstance(probability, Fraction) else probability.ball()

    def cells(self, _: Any, __: Case) -> Iterator[Cell]:
        return ((i, i) for i in range(len(self.probabilities)))


@dataclass
class Tape:
    """One run: the values that draws get, which draws there were, and what was decided."""

    values: Sequence[int] = ()
    asked: list[Noise | Choice] = field(default_factory=list)
    seen: list[Any] = field(default_factory=list)
    internal: int | None = None
    kept: Any = None
    outcome: Any = None
    trouble: str | None = None

    def draw(self, law: Noise | Choice) -> int:
        self.asked.append(law)
        number = len(self.asked) - 1
        return self.values[number] if number < len(self.values) else 0

    def see(self, part: Any) -> Any:
        """Note what the program uses of an answer: a decision, or the number itself."""
        self.seen.append(reveal(part))
        return self.seen[-1]

    @property
    def transcript(self) -> list[Noise | Choice]:
        """The internal draws, before publishing."""
        return self.asked[: self.internal]

    @property
    def happened(self) -> Any:
        return self.transcript, self.seen, self.kept, self.outcome


class NoBits(BitSource):
    """A source that must not be read: every draw has to be scripted."""

    def read(self, count: int) -> bytes:
        _tape.trouble = "a draw is not scripted"
        raise RuntimeError


_tape = Tape()


def _gaussian(*, variance: Fraction, size: int, bits: Any) -> Any:
    return np.array([_tape.draw(Noise(variance)) for _ in range(size)], dtype=np.int64)


def _argmax(law: Callable[..., dict[int, Any]]) -> Callable[..., Any]:
    def argmax(scores: Any, *, scale: Fraction, size: int, bits: Any, members: Any = None) -> Any:
        assert members is None
        name = (law.__name__, tuple(scores), scale)
        return np.array([_tape.draw(Choice(name, tuple(law(scores, scale=scale).values())))])

    return argmax


def _coin(weight: Fraction, *, size: int, bits: Any) -> Any:
    return np.array([_tape.draw(Choice(("coin", weight), (1 - weight, weight)))], dtype=np.bool_)


def _uniform(below: int, *, size: int, bits: Any) -> Any:
    law = Choice(("uniform", below), (Fraction(1, below),) * below)
    return np.array([_tape.draw(law) for _ in range(size)], dtype=np.int64)


def _publishing(kind: Any) -> Callable[..., Any]:
    original = kind.apply

    def apply(self: Any, value: Any, bits: Any) -> Any:
        assert _tape.internal is None, "published twice"
        _tape.internal, _tape.kept = len(_tape.asked), _key(self, value)
        return original(self, value, bits)

    return apply


def _key(purifier: Any, value: Any) -> Any:
    if isinstance(purifier, FiniteMix):
        return purifier.space.index(value)
    return tuple(int(k) for k in purifier.lattice.quantize(value))


_issued = ReleasePlan.certificate


def _certificate(made: ReleasePlan[Any], bits: BitSource, protection: Any = None) -> Any:
    def issued(_proof: Any) -> Any:
        return _issued(made, bits, protection)

    return once(issued)((made.claim, made.steps, made.public, made.assumed, protection))


def _planned(channel: str | None) -> Callable[..., Any]:
    def planned(subject: Any, **options: Any) -> Any:
        return plan(subject, **options, channel=channel)

    return once(planned, channel)


@contextmanager
def scripted(channel: str | None) -> Iterator[None]:
    """Answer every draw of a study from the current tape."""
    with ExitStack() as stack:
        changes = {
            "rounded_gaussian": _gaussian,
            "gumbel_argmax": _argmax(exponential_mechanism_law),
            "exponential_argmax": _argmax(permute_and_flip_law),
            "bernoulli": _coin,
            "uniform_below": _uniform,
            "study.plan": _planned(channel),
        }
        stack.enter_context(replaced(changes))
        stack.enter_context(patch.object(ReleasePlan, "certificate", _certificate))
        for kind in (FiniteMix, GridMix, GaussianMix):
            stack.enter_context(patch.object(kind, "apply", _publishing(kind)))
        yield


# --- laws ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """A study of small data: what is planned, and the program."""

    program: Callable[[Study, See], Any]
    settings: dict[str, Any]
    size: int = 3
    universe: Sequence[Any] = (0, 1, 2)
    reach: int = REACH
    exhaustive: bool = False
    channel: str | None = None

    @property
    def epsilon(self) -> Fraction:
        return Fraction(self.settings["epsilon"])

    def datasets(self) -> list[Rows]:
        """All datasets, each once whatever the order of its rows (sums are the same)."""
        return list(itertools.combinations_with_replacement(self.universe, self.size))

    def study(self, rows: Rows) -> Study:
        return Study(np.array(rows, dtype=np.float64), **self.settings)


def run(case: Case, rows: Rows, values: Sequence[int]) -> Tape:
    """Run the program on a real study with these draws (0 where more are asked for)."""
    global _tape
    _tape = tape = Tape(values)
    program = partial(_watched, case.program)
    try:
        with replayed(NoBits()):
            published = case.study(rows).run(program, rehearse=False).value
        tape.outcome = tuple(np.ravel(published).tolist())
    except Exception as error:
        tape.outcome = "raised", type(error).__name__
    assert tape.trouble is None, tape.trouble
    return tape


class StopError(RuntimeError):
    """What a program raises on purpose."""


def _watched(program: Callable[[Study, See], Any], study: Study) -> Any:
    """Run the program; the study hides its errors, so they are noted here."""
    try:
        return program(study, _tape.see)
    except StopError:
        raise
    except Exception as error:
        _tape.trouble = repr(error)
        raise


def law(case: Case, rows: Rows) -> Law:
    """Return the law of what the study publishes about these rows."""
    mass: dict[Any, arb] = {}
    channel: dict[Any, list[tuple[Any, arb]]] = {}
    ran = cache(lambda *values: run(case, rows, values))
    with scripted(case.channel), ctx.workprec(BITS):
        for cells, tape in _boxes(ran, case, [], internal=True):
            probability = _mass(tape.transcript, cells)
            if tape.internal is None:  # it ended without publishing
                outcomes = [(tape.outcome, arb(1))]
            else:
                if tape.kept not in channel:
                    channel[tape.kept] = [
                        (end.outcome, _mass(end.asked[len(cells) :], more[len(cells) :]))
                        for more, end in _boxes(ran, case, cells, internal=False)
                    ]
                outcomes = channel[tape.kept]
            for outcome, part in outcomes:
                mass[outcome] = mass.get(outcome, arb(0)) + probability * part
        lost = (1 - sum(mass.values(), arb(0))).abs_upper()
        assert lost < 1e-9, "a path was left out, or walked twice"
    return Law(mass, lost)


def _mass(draws: Sequence[Noise | Choice], cells: Sequence[Cell]) -> arb:
    product = arb(1)
    for draw, cell in zip(draws, cells, strict=True):
        product *= draw.mass(cell)
    return product


@dataclass
class CutError(Exception):
    """A later draw decides whether an earlier one matters: that one is cut after `place`."""

    number: int
    place: int


def _boxes(
    ran: Callable[..., Tape], case: Case, cells: list[Cell], *, internal: bool
) -> list[tuple[list[Cell], Tape]]:
    """Return all boxes of draws that begin with `cells`, and what happens in each."""
    low, high = ([cell[side] for cell in cells] for side in (0, 1))
    tape = ran(*low)
    asked = tape.transcript if internal else tape.asked
    if len(asked) == len(cells):
        if ran(*high).happened == tape.happened:
            return [(cells, tape)]
        for i, (a, b) in enumerate(cells):
            before, after = high[:i], low[i + 1 :]
            place = next(_constant(lambda k: ran(*before, k, *after).happened, a, b))[1]  # noqa: B023
            if place < b:
                raise CutError(i, place)
    found = []
    pending = list(asked[len(cells)].cells(lambda k: ran(*low, k).happened, case))
    while pending:
        a, b = pending.pop()
        try:
            found += _boxes(ran, case, [*cells, (a, b)], internal=internal)
        except CutError as cut:
            if cut.number != len(cells):
                raise
            pending += [(a, cut.place), (cut.place + 1, b)]
    return found


# --- verdicts ------------------------------------------------------------------------------------


def neighbors(datasets: Sequence[Rows]) -> list[tuple[Rows, Rows]]:
    """Both orders of every pair of datasets that differ in one row."""
    return [
        (a, b)
        for a, b in itertools.permutations(datasets, 2)
        if (Counter(a) - Counter(b)).total() == 1
    ]


def judge(case: Case, datasets: Sequence[Rows] | None = None) -> Verdict:
    """Compare the laws of all neighboring datasets, both ways, with the ε of the case."""
    tables = case.datasets() if datasets is None else list(datasets)
    laws = {rows: law(case, rows) for rows in tables}
    return judge_laws(laws, neighbors(tables), case.epsilon)
