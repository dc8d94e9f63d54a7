"""Plan a study, rehearse it on made-up rows, and guard its lifecycle (theory C8).

The published space fixes the largest total cost of all internal queries (theory B1, B2). That total
is divided into shares, by a schedule or during the run (Lemma R2), and nothing is refunded.
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
from zerodelta.spaces import EuclideanSpace, Finite, FiniteSpace, Space, WithExtra, is_known
from zerodelta.spine.plan import ReleasePlan, row_count_sentence, units_step
from zerodelta.value import value

# -- The lifecycle of a study: open, then closed; one process; one call at a time (theory C8) -----
# If a function of rows could ask a query while one is answered, or a value could publish while it
# is read, shares and release would depend on rows without noise. So nested calls are refused.

_POLL_SECONDS = 0.05
"""The interval at which a waiting thread checks whether the study was stopped."""


def closed(how: str) -> ParameterError:
    """Return the error that says that a study can no longer be used here."""
    return ParameterError(
        "study",
        how,
        expected="an open study, in the process that made it",
        remedy="make a new Study; each one costs its ε again",
    )


@final
class Lifecycle:
    """Tracks whether a study may be used now; its errors depend on public facts only."""

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
        """Make other threads wait, and refuse nested calls of this one, until the block ends."""
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
        """Wait for a call under way, then yield whether the study still has to publish.

        It does not if it is closed by then, or if a signal from the keyboard has `stopped` it.
        """
        if self.is_copy:
            yield False
            return
        while not self._lock.acquire(timeout=_POLL_SECONDS):
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
        """Mark the study as in rehearsal until the block ends: every use is refused."""
        self._rehearsing = True
        try:
            yield
        finally:
            self._rehearsing = False

    def close(self) -> None:
        """Close the study, once; in a forked process nothing is closed."""
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
"""A share may exceed the remaining one by this factor: sums of floats do."""

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
"""Stands for a failed program: an object that denotes no element of any space."""


@final
@dataclass(frozen=True, slots=True)
class Schedule:
    """The default shares of internal queries: equal, or in stated proportions."""

    rounds: int
    shares: tuple[Fraction, ...] = ()

    @classmethod
    def of(cls, rounds: int | Sequence[Rational] | None) -> Schedule:
        """Return the schedule of a number of equal shares, or of relative ones.

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
                expected="the number of queries, or the shares they get",
                remedy="pass rounds=100, or rounds=[1, 1, 2] for relative shares",
            )
        return cls(as_count(rounds, "rounds", minimum=1))

    def share(self, number: int) -> Fraction:
        """Return the share of query 0, 1, …; 0 beyond the last."""
        if number >= self.rounds:
            return Fraction(0)
        return self.shares[number] if self.shares else Fraction(1, self.rounds)


@final
class Shares:
    """The remaining share of a plan: an internal answer, because an adaptive program spends it."""

    def __init__(self, schedule: Schedule) -> None:
        self._schedule, self._answered, self._refused = schedule, 0, 0
        self._remaining, self._lock = Fraction(1), threading.Lock()

    def take(self, share: Rational | None) -> Fraction | None:
        """Return the share of the next query, stated or by schedule; None if less remains.

        >>> shares = Shares(Schedule.of(2))
        >>> shares.take(None), shares.take("3/4"), shares.take(None)
        (Fraction(1, 2), None, Fraction(1, 2))
        """
        wanted = None if share is None else as_positive(share, "share")
        with self._lock:
            taken = self._schedule.share(self._answered) if wanted is None else wanted
            if self._remaining < taken <= self._remaining * (1 + _ROUNDING):
                taken = self._remaining  # ten shares of the float 0.1 exceed 1 in the last digit
            if not 0 < taken <= self._remaining:
                self._refused += 1
                return None
            self._answered += 1
            self._remaining -= taken
            return taken

    @property
    def remaining(self) -> Fraction:
        """The share of the plan that remains; an internal answer."""
        return self._remaining

    @property
    def refused(self) -> int:
        """The number of queries for which nothing remained; an internal answer."""
        return self._refused

    @property
    def untouched(self) -> bool:
        """Whether no query was answered yet."""
        return self._answered == 0


@value(repr=False)
class StudyPlan:
    """The noise, cost and predicted error of a study, from public numbers only."""

    publishing: Plan
    rows: int
    schedule: Schedule
    selects: bool
    rowwise: bool = False
    functions: bool = True
    """Whether queries may use the caller's functions, which then see rows."""
    unit: str | None = None
    """The protected unit; None for one row."""
    max_rows: int = 1
    """The maximum number of rows of one unit."""
    rows_public: bool = True
    """Whether `rows` is the number of rows; otherwise it is a public guess."""
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
        """Whether neighbors differ by one added or removed row, instead of a replaced one."""
        return self.neighbors is Neighbors.ADD_REMOVE

    @property
    def rounds(self) -> int:
        """The planned number of internal queries."""
        return self.schedule.rounds

    @property
    def mu_squared(self) -> Fraction:
        """The μ² of all Gaussian queries together (2ρ if selections are counted too), for one row.

        A unit of m rows changes an answer by m times as much as one row, so the μ² of a row is that
        of the transcript divided by m² (theory V).
        """
        calibration = self.publishing.calibration
        unit_mu_squared = 2 * calibration.rho if self.selects else calibration.mu_squared
        return unit_mu_squared / self.max_rows**2

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
        """The noise per query if ε were divided among as many pure queries with Laplace noise."""
        return math.sqrt(2) * self.rounds * self.max_rows / float(self.epsilon)

    @property
    def break_even(self) -> int:
        """The smallest number of queries for which the noise is below that of basic composition."""
        return math.ceil(self.epsilon**2 / (2 * self.mu_squared * self.max_rows**2))

    @property
    def predicted_error(self) -> float:
        """The error that publishing adds: the probability of a random element, or an l2 error."""
        return self.publishing.purifier.expected_error()

    def variance(self, sensitivity_squared: Rational, share: Fraction) -> Fraction:
        """Return the noise variance of a query with this share: Δ² / (share · μ²)."""
        return as_positive(sensitivity_squared, "sensitivity_squared") / (share * self.mu_squared)

    def selection_epsilon(self, share: Fraction) -> Fraction:
        """Return the largest ε (of 64 bits) with ε²/8 <= share · ρ."""
        exact = 8 * share * self.mu_squared / 2
        scale = 1 << 64
        return Fraction(math.isqrt(math.floor(exact * scale**2)), scale)

    def release_plan(self, *, guarded: bool) -> ReleasePlan[Any]:
        """Return the release plan: the certified steps, and publication through the channel.

        `guarded` says that the program runs where it cannot stop or raise visibly.
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
        space, purifier = self.publishing.space, self.publishing.purifier
        return space.project(purifier.apply(element, bits))

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
    """Tell whether a plain value denotes an element; an iterator does not, as it is read once."""
    return not hasattr(type(value), "__next__") and space.denotes(value)


def element_of(space: Space, value: Any, *, otherwise: Any) -> Any:
    """Return the element that a value denotes; `otherwise` if it denotes none or raises."""
    try:
        plain = reveal(value)
        return space.project(plain) if denotes(plain, space) else otherwise
    except BaseException:  # reading a value runs its own code
        return otherwise


def with_otherwise(space: Space, otherwise: Any) -> tuple[Space, Any]:
    """Return the space and the element that a study publishes if its program fails (C8).

    If `otherwise` is not an element of a finite space, the space gets it as one more.
    """
    if not is_known(space):
        return space, otherwise  # `plan` refuses such a space
    if otherwise is None:  # every space maps an object that denotes nothing to its default element
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
    """Return True or False; other values are refused, as their truth may change."""
    require(
        type(value) in (bool, np.bool_),
        name,
        value,
        expected="True or False",
        remedy=f"pass {name}=True or {name}=False",
    )
    return bool(value)


# -- The rehearsal: a program runs on made-up public rows first, where its errors may be shown ----
# Each made-up row stands for many, as many rows in all as the data has, so that noise has the same
# relative size as in the real run (theory C8).

_REMEDY = "fix it, pass Study(example=public rows), or run(…, rehearse=False)"


def rows_to_try(
    columns: Sequence[str],
    bounds: Bounds | None,
    data_norm: Rational | None,
    example: Any,
    *,
    count: int = 7,
) -> Block:
    """Return made-up rows on which functions are tried: the caller's, else `count` random ones."""
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
    """Refuse a generator or an async function as a program: calling it does not run it."""
    deferred = (
        inspect.isgeneratorfunction(program)
        or inspect.iscoroutinefunction(program)
        or inspect.isasyncgenfunction(program)
    )
    require(
        callable(program) and not deferred,
        "program",
        "a generator or an async function" if deferred else type(program),
        expected="a plain function of the study",
        remedy="write a function that returns the value to publish",
    )


@final
class Rehearsal:
    """Runs a program on made-up rows, and remembers a value that could not be published."""

    def __init__(self) -> None:
        self._refused: ParameterError | None = None

    def play(self, program: Callable[[], Any]) -> Any:
        """Run the program and return its result; its errors are raised, as rows are made up.

        The error of a value that could not be published is raised even if the program caught it.
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
        """Refuse a value that is no element of the space, now and again at the end."""
        if inspect.iscoroutine(value) or inspect.isgenerator(value):
            value.close()  # else Python warns that it was never awaited
        if not denotes(reveal(value), space):
            self._refused = self._refused or ParameterError(
                "result of the program",
                _shown(value),
                expected=f"an element of {space!r}, on made-up public rows (no data was read yet)",
                remedy=_remedy(reveal(value), space),
            )
            raise self._refused


def check_number(refused: int, planned: int) -> None:
    """Refuse a program that asked more queries in its rehearsal than are planned."""
    require(
        not refused,
        "program",
        f"{refused} more quer{'y' if refused == 1 else 'ies'} than the plan has shares for",
        expected=f"at most {planned} in all, on made-up public rows (no data was read yet)",
        remedy="make the study with a larger rounds=, or pass smaller shares; a query beyond the "
        "plan is answered by a constant. run(…, rehearse=False) allows it",
    )


def _remedy(value: Any, space: Space) -> str:
    """Return what to do about a value of a rehearsal; a wrong shape is named, and the right one."""
    publish = "return the value to publish, or publish it with study.publish(value)"
    base = space.base if isinstance(space, WithExtra) else space
    try:
        shape = np.shape(value)
    except Exception:  # a list of lists of several lengths, or an object that cannot be an array
        return publish
    if isinstance(base, EuclideanSpace) and shape != (base.dimension,):
        return f"{publish}: of shape {(base.dimension,)}, and not {shape}"
    if isinstance(base, Finite) and shape:
        one = "study.mean(0) is the mean of column 0, study.mean([0, 1]) has two entries"
        return f"{publish}: one value, and none of shape {shape} ({one})"
    return publish


def _shown(value: Any) -> str:
    """Return a value of a rehearsal, computed from made-up rows, for a message."""
    if value is None:
        return "nothing was returned or published"
    text = repr(reveal(value))
    return text if len(text) < 60 else str(type(value))
