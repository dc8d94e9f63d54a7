"""The plan of a study, its rehearsal on made-up rows, and its life: open, then closed (theory C8).

The published space fixes what the transcript of internal queries may cost (theory B1, B2); that
total is divided into shares, by a schedule or on the way (Lemma R2), and nothing is refunded.
"""

from __future__ import annotations

import inspect
import math
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, final

import numpy as np

from zerodelta.channels.purification import Plan
from zerodelta.data.arrays import public_table
from zerodelta.data.isolation import Watch, quiet, reveal
from zerodelta.data.row_queries import Bounds, public_rows
from zerodelta.data.rowwise import Block
from zerodelta.errors import ParameterError, require
from zerodelta.exact.bits import BitSource
from zerodelta.exact.rational import Rational, as_count, as_positive
from zerodelta.privacy.certificate import PROGRAM, UNGUARDED
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.parameters import Neighbors
from zerodelta.privacy.readable import equals, large
from zerodelta.privacy.steps import Status, Step
from zerodelta.spaces import FiniteSpace, Space, WithExtra, is_known
from zerodelta.spine.plan import ReleasePlan, row_count_sentence, units_step
from zerodelta.value import value

# -- The lifecycle of a study: open, then closed; one process; one thing at a time (theory C8) ----
# A query that a query's own function asks, or a value that publishes while it is read, would make
# shares and release depend on rows without noise. So nothing re-enters: it is refused.

_PATIENCE = 0.05
"""How often, in seconds, one who waits looks whether the study was stopped."""


def closed(how: str) -> ParameterError:
    """Return what says that a study can no longer be used here."""
    return ParameterError(
        "study",
        how,
        expected="an open study, in the process that made it",
        remedy="make a new Study; each one costs its ε again",
    )


@final
class Lifecycle:
    """Says whether a study may be used now; raises from public grounds only."""

    def __init__(self) -> None:
        self._process, self._lock = os.getpid(), threading.Lock()
        self._open, self._busy_thread, self._rehearsing = True, -1, False

    @property
    def is_open(self) -> bool:
        """Whether the study can still publish."""
        return self._open

    @property
    def is_copy(self) -> bool:
        """Whether a fork made this one."""
        return os.getpid() != self._process

    def check(self) -> None:
        """Refuse a study that is closed, copied by a fork, answering, or being rehearsed."""
        if self._rehearsing:
            raise ParameterError(
                "study",
                "the study itself, in a rehearsal",
                expected="the study that the program is handed",
                remedy="use the program's argument: study.run(lambda s: s.mean(0))",
            )
        if self._busy_thread == threading.get_ident():
            raise ParameterError(
                "study",
                "asked from inside one of its own queries",
                expected="one query at a time",
                remedy="ask before, and let functions of rows look at their rows only",
            )
        if not self._open or self.is_copy:
            raise closed("closed" if not self._open else "a copy in another process")

    @contextmanager
    def busy(self) -> Iterator[None]:
        """Keep every other thread waiting, and refuse this one, until the block is left."""
        self.check()
        with self._lock:
            self.check()
            self._busy_thread = threading.get_ident()
            try:
                yield
            finally:
                self._busy_thread = -1

    @contextmanager
    def last(self, stopped: Callable[[], bool]) -> Iterator[bool]:
        """Wait for what is under way, then tell whether there is still something to publish.

        There is not if the study is closed by then, or if the person at the keyboard, who may be
        tired of waiting, has `stopped` it.
        """
        if self.is_copy:
            yield False
            return
        while not self._lock.acquire(timeout=_PATIENCE):
            if stopped() or self._busy_thread == threading.get_ident():
                yield False
                return
        try:
            self._busy_thread = threading.get_ident()
            yield self._open and not stopped()
        finally:
            self._busy_thread = -1
            self._lock.release()

    @contextmanager
    def rehearsing(self) -> Iterator[None]:
        """Refuse every use until the block is left."""
        self._rehearsing = True
        try:
            yield
        finally:
            self._rehearsing = False

    def close(self) -> None:
        """Close it, once; a fork that came to be on the way closes nothing."""
        if not self._open or self.is_copy:
            raise ParameterError(
                "study",
                "already published, or a copy in another process",
                expected="one publication",
                remedy="make a new Study; each one costs its ε again",
            )
        self._open = False


FUNCTIONS = "functions of rows treat rows one by one, keep no state and show nothing"
_ROUNDING = Fraction(1, 10**9)
_REPLACED = (
    "each query's l2 sensitivity: twice its bound (√d times that for d bounded coordinates), √2 "
    "for a histogram, √2 times the squared bound for second moments; a number of values that are "
    "not missing costs nothing beside their sum"
)
_ADDED = (
    "each query's l2 sensitivity: its bound (√d times that for d bounded coordinates), √2 times "
    "that with the number of values beside their sum, twice its bound for sums measured from an "
    "end of the bounds, 1 for a histogram, √2 times the squared bound for second moments with the "
    "number of rows"
)
_FAILED = object()
"""Denotes no element of any space."""


@final
@dataclass(frozen=True, slots=True)
class Schedule:
    """The shares that internal queries get by default: equal ones, or as given."""

    rounds: int
    shares: tuple[Fraction, ...] = ()

    @classmethod
    def of(cls, rounds: int | Sequence[Rational] | None) -> Schedule:
        """Return the schedule of so many equal shares, or of these relative ones.

        >>> Schedule.of([1, 3]).share(1)
        Fraction(3, 4)
        """
        if isinstance(rounds, Sequence) and not isinstance(rounds, str) and len(rounds):
            weights = [as_positive(weight, "rounds") for weight in rounds]
            total = sum(weights, Fraction(0))
            return cls(len(weights), tuple(weight / total for weight in weights))
        if rounds is None or isinstance(rounds, (str, Sequence)):
            raise ParameterError(
                "rounds",
                rounds,
                expected="how many queries will be asked, or the shares they get",
                remedy="pass rounds=100, or rounds=[1, 1, 2] for relative shares",
            )
        return cls(as_count(rounds, "rounds", minimum=1))

    def share(self, number: int) -> Fraction:
        """Return the share of query 0, 1, …; nothing beyond the last."""
        if number >= self.rounds:
            return Fraction(0)
        return self.shares[number] if self.shares else Fraction(1, self.rounds)


@final
class Shares:
    """What is left of a plan: internal, because an adaptive program decides what it spends."""

    def __init__(self, schedule: Schedule) -> None:
        self._schedule, self._asked, self._refused, self._left = schedule, 0, 0, Fraction(1)
        self._lock = threading.Lock()

    def take(self, share: Rational | None) -> Fraction | None:
        """Return the share of the next query (given, or by schedule), None if it is not left.

        >>> shares = Shares(Schedule.of(2))
        >>> shares.take(None), shares.take("3/4"), shares.take(None)
        (Fraction(1, 2), None, Fraction(1, 2))
        """
        wanted = None if share is None else as_positive(share, "share")
        with self._lock:
            taken = self._schedule.share(self._asked) if wanted is None else wanted
            if self._left < taken <= self._left * (1 + _ROUNDING):
                taken = self._left  # ten shares of the float 0.1 exceed 1 in the last digit
            if not 0 < taken <= self._left:
                self._refused += 1
                return None
            self._asked += 1
            self._left -= taken
            return taken

    @property
    def left(self) -> Fraction:
        """The share that is left; an internal answer."""
        return self._left

    @property
    def refused(self) -> int:
        """How many queries found nothing left for them; an internal answer."""
        return self._refused

    @property
    def untouched(self) -> bool:
        """Whether nothing was asked yet."""
        return self._asked == 0


@value(repr=False)
class StudyPlan:
    """What a study will cost and how well it will publish, from public numbers only."""

    publishing: Plan
    rows: int
    schedule: Schedule
    selects: bool
    rowwise: bool = False
    functions: bool = True
    """Whether functions of the caller's may be asked, which then see rows."""
    unit: str | None = None
    """Who is protected, if it is not a row."""
    max_rows: int = 1
    """How many rows of one unit count."""
    rows_public: bool = True
    """Whether `rows` is the number of rows, or one to plan with."""
    neighbors: Neighbors = Neighbors.REPLACE

    def __post_init__(self) -> None:
        for name in ("selects", "rowwise", "functions"):
            object.__setattr__(self, name, _as_flag(getattr(self, name), name))

    @property
    def epsilon(self) -> Fraction:
        """The pure ε of the published value."""
        return self.publishing.epsilon

    @property
    def added(self) -> bool:
        """Whether neighbors differ in a row that is there or not, instead of a replaced one."""
        return self.neighbors is Neighbors.ADD_REMOVE

    @property
    def rounds(self) -> int:
        """The planned number of internal queries."""
        return self.schedule.rounds

    @property
    def mu_squared(self) -> Fraction:
        """The μ² of all Gaussian queries together (2ρ if selections are counted too), for one row.

        All rows of a unit together move an answer by so many times what one of them does, so
        this is their square smaller than what may be published (theory V).
        """
        calibration = self.publishing.calibration
        whole = 2 * calibration.rho if self.selects else calibration.mu_squared
        return whole / self.max_rows**2

    @property
    def mu(self) -> float:
        """The μ of all Gaussian queries together."""
        return math.sqrt(self.mu_squared)

    @property
    def noise_per_query(self) -> float:
        """The standard deviation of an average query's noise, in units of its sensitivity."""
        return math.sqrt(self.rounds / self.mu_squared)

    @property
    def noise_by_basic_composition(self) -> float:
        """The same with as many pure queries of Laplace noise, ε divided among them."""
        return math.sqrt(2) * self.rounds * self.max_rows / float(self.epsilon)

    @property
    def break_even(self) -> int:
        """The number of queries from which on this noise is below basic composition's."""
        return math.ceil(self.epsilon**2 / (2 * self.mu_squared * self.max_rows**2))

    @property
    def predicted_error(self) -> float:
        """What publishing adds: the chance of a random element (finite spaces), or an l2 error."""
        return self.publishing.purifier.expected_error()

    def variance(self, sensitivity_squared: Rational, share: Fraction) -> Fraction:
        """Return the noise of a query with this share: Δ² / (share · μ²)."""
        return as_positive(sensitivity_squared, "sensitivity_squared") / (share * self.mu_squared)

    def selection_epsilon(self, share: Fraction) -> Fraction:
        """Return the largest ε (of 64 bits) with ε²/8 <= share · ρ."""
        exact = 8 * share * self.mu_squared / 2
        scale = 1 << 64
        return Fraction(math.isqrt(math.floor(exact * scale**2)), scale)

    def release_plan(self, *, guarded: bool) -> ReleasePlan[Any]:
        """Return what is certified, and how an element is published.

        `guarded`: the program cannot stop or raise visibly.
        """
        numbers: dict[str, Any] = {"rounds": self.rounds}
        if self.selects:
            theorem, numbers["rho"] = "adaptive-zcdp", self.mu_squared / 2
        else:
            theorem, numbers["mu_squared"] = "adaptive-gaussian", self.mu_squared
        asserted = (FUNCTIONS,) if self.functions else ()
        status = Status.ASSERTED if asserted else Status.PROVEN
        return ReleasePlan(
            claim=PureDP(self.epsilon, neighbors=self.neighbors),
            steps=tuple(
                replace(step, neighbors=self.neighbors)
                for step in (
                    Step(theorem=theorem, numbers=numbers, status=status),
                    *units_step(self.unit, self.max_rows),
                    self.publishing.purifier.step(),
                )
            ),
            unit=self.unit,
            answer=self._published,
            error=self.predicted_error,
            public=(
                f"the space {self.publishing.space!r}",
                row_count_sentence(self.rows, public=self.rows_public),
                "the bounds to which each query clips a row, and its lattice of 2^20 steps "
                "(second moments: 2^15)",
                _ADDED if self.added else _REPLACED,
                "every number in the steps",
            ),
            assumed=(*PROGRAM, *(() if guarded else (UNGUARDED,)), *asserted),
        )

    def _published(self, element: Any, bits: BitSource) -> Any:
        """Return the element, or with a small public probability a random one."""
        made = self.publishing
        return made.space.project(made.purifier.apply(element, bits))

    def __repr__(self) -> str:
        pure = self.noise_by_basic_composition / self.noise_per_query
        verdict = (
            f"{pure:.3g} times more noise"
            if pure > 1
            else f"{1 / pure:.3g} times less noise; a study pays from {self.break_even} rounds on"
        )
        finite = isinstance(self.publishing.space, FiniteSpace)
        error = "chance of a random element" if finite else "l2 error added by publishing"
        counted = " (as zCDP, because of selections)" if self.selects else ""
        about = "" if self.rows_public else "about "
        lines = [
            f"Study of {about}{self.rows} rows: pure ε {equals(self.epsilon)}, δ = 0",
            f"  publishes          one element of {self.publishing.space!r}",
            f"  internal queries   {self.rounds}, together μ = {self.mu:.4g}{counted}",
            f"  noise per query    {self.noise_per_query:.4g} × its sensitivity",
            f"                     ({self.noise_per_query / self.rows:.3g} × a mean's range)",
            f"  predicted error    {self.predicted_error:.3g} ({error})",
            f"  basic composition  {self.noise_by_basic_composition:.4g} × it: {verdict}",
        ]
        beware = large(self.epsilon * (2 if self.added else 1))
        return "\n".join([*lines, *([f"  beware             {beware}"] if beware else [])])


def denotes(value: Any, space: Space) -> bool:
    """Tell whether a plain value denotes an element; an iterator, which is read once, does not."""
    return not hasattr(type(value), "__next__") and space.denotes(value)


def element_of(space: Space, value: Any, *, otherwise: Any) -> Any:
    """Return the element that a value denotes; `otherwise` if it is none, or cannot be read."""
    try:
        plain = reveal(value)
        return space.project(plain) if denotes(plain, space) else otherwise
    except BaseException:  # reading runs the value's own code
        return otherwise


def with_otherwise(space: Space, otherwise: Any) -> tuple[Space, Any]:
    """Return the space, with `otherwise` as one more element if need be, and what stands in (C8).

    That is what a study publishes when its program fails.
    """
    if not is_known(space):
        return space, otherwise  # the plan refuses such a space
    if otherwise is None:
        return space, space.project(_FAILED)
    if space.contains(otherwise):
        return space, space.project(otherwise)
    if isinstance(space, FiniteSpace):
        return WithExtra(space, otherwise), otherwise
    raise ParameterError(
        "otherwise",
        otherwise,
        expected=f"an element of {space!r}",
        remedy="pass a point inside, or leave it out for the center",
    )


def _as_flag(value: Any, name: str) -> bool:
    """Return True or False; anything else may be true here and false there."""
    require(
        type(value) in (bool, np.bool_),
        name,
        value,
        expected="True or False",
        remedy=f"pass {name}=True or {name}=False",
    )
    return bool(value)


# -- A program is tried on made-up public rows first: there its mistakes may show (theory C8) -----
# The made-up rows stand for as many rows as the data has, so that the noise is to them what it
# will be to the data: a program that works on the data works here.

_REMEDY = "mend it, pass Study(example=public rows), or run(…, rehearse=False)"


def rows_to_try(
    columns: Sequence[str],
    bounds: Bounds | None,
    data_norm: Rational | None,
    example: Any,
    *,
    count: int = 7,
) -> Block:
    """Return the made-up rows on which functions are tried: `count` of ours, or the caller's."""
    if example is None:
        return public_rows(len(columns), bounds, data_norm, count=count)
    rows = public_table(example, columns=None if isinstance(example, np.ndarray) else columns)
    require(
        rows.shape[1] == len(columns) and len(rows),
        "example",
        f"{len(rows)} rows of {rows.shape[1]} columns",
        expected=f"some made-up rows of {len(columns)} columns",
        remedy="make rows by hand that look like the data; never take them from it",
    )
    return rows


def check_program(program: Any) -> None:
    """Refuse what is no plain function: calling it would not run it."""
    unfinished = (
        inspect.isgeneratorfunction(program)
        or inspect.iscoroutinefunction(program)
        or inspect.isasyncgenfunction(program)
    )
    require(
        callable(program) and not unfinished,
        "program",
        "a generator or an async function" if unfinished else type(program),
        expected="a plain function of the study",
        remedy="write a function that returns what is to be published",
    )


@final
class Rehearsal:
    """Remembers what a program wanted to publish and could not: it may go on as if it had."""

    def __init__(self) -> None:
        self._refused: ParameterError | None = None

    def play(self, program: Callable[[], Any]) -> Any:
        """Return what the program returns on made-up rows; what it raises is the caller's to see.

        What it could not publish is raised too, also if the program has caught it.
        """
        try:
            with quiet(), Watch() as watch:
                try:
                    result = program()
                except KeyboardInterrupt:
                    if watch.arrived:
                        raise
                    raise RuntimeError("the program raised KeyboardInterrupt") from None
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            raise ParameterError(
                "program",
                f"{type(error).__name__}: {error}",
                expected="a program that runs on made-up public rows (no data was read yet)",
                remedy=_REMEDY,
            ) from error
        if self._refused is not None:
            raise self._refused
        return result

    def check(self, value: Any, space: Space) -> None:
        """Refuse what would be published as a failure, now and at the end."""
        if inspect.iscoroutine(value) or inspect.isgenerator(value):
            value.close()  # else Python complains that it was never awaited
        if not denotes(reveal(value), space):
            self._refused = self._refused or ParameterError(
                "result of the program",
                _named(value),
                expected=f"an element of {space!r}, on made-up public rows (no data was read yet)",
                remedy="return what is to be published, or publish it with study.publish(value)",
            )
            raise self._refused


def check_asked(refused: int, planned: int) -> None:
    """Refuse a program that asked more than there is."""
    require(
        not refused,
        "program",
        f"{refused} more quer{'y' if refused == 1 else 'ies'} than the plan has shares for",
        expected=f"at most {planned} in all, on made-up public rows (no data was read yet)",
        remedy="make the study with a larger rounds=, or pass smaller shares; what is asked "
        "beyond the plan is answered by a constant. run(…, rehearse=False) allows it",
    )


def _named(value: Any) -> str:
    """Say what came back. It was made of made-up rows, and long values are told by their type."""
    if value is None:
        return "nothing was returned or published"
    text = repr(reveal(value))
    return text if len(text) < 60 else str(type(value))
