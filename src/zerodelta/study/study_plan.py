"""The plan of a study: made of public numbers before any row is read, and all a certificate says.

The published space fixes what the hidden history may cost (theory B1, B2); that budget is divided
into shares, by a schedule or on the way (Lemma R2), and nothing is refunded.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

import numpy as np

from zerodelta.channels.purification_plan import Plan
from zerodelta.data.source import FOREIGN_SOURCE
from zerodelta.errors import ParameterError
from zerodelta.exact.bits import BitSource
from zerodelta.exact.rational import Rational, as_count, as_positive
from zerodelta.privacy.assumptions import PROGRAM, UNGUARDED
from zerodelta.privacy.certificate import Certificate
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.issue import issue
from zerodelta.privacy.readable import equals
from zerodelta.privacy.step import Status, Step
from zerodelta.spaces import FiniteSpace

__all__ = ["FUNCTIONS", "Budget", "Schedule", "StudyPlan"]

FUNCTIONS = "functions of rows treat rows one by one, keep no state and show nothing"
_ROUNDING = Fraction(1, 10**9)


@final
@dataclass(frozen=True, slots=True)
class Schedule:
    """The shares of the budget that questions get by default: equal ones, or as given."""

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
                expected="how many questions will be asked, or the shares they get",
                remedy="pass rounds=100, or rounds=[1, 1, 2] for relative shares",
            )
        return cls(as_count(rounds, "rounds", minimum=1))

    def share(self, number: int) -> Fraction:
        """Return the share of question 0, 1, …; nothing beyond the last."""
        if number >= self.rounds:
            return Fraction(0)
        return self.shares[number] if self.shares else Fraction(1, self.rounds)


@final
class Budget:
    """What is left of a plan: hidden, because an adaptive program decides what it spends."""

    def __init__(self, schedule: Schedule) -> None:
        self._schedule, self._asked, self._refused, self._left = schedule, 0, 0, Fraction(1)
        self._lock = threading.Lock()

    def take(self, share: Rational | None) -> Fraction | None:
        """Return the share of the next question (given, or by schedule), None if it is not left.

        >>> budget = Budget(Schedule.of(2))
        >>> budget.take(None), budget.take("3/4"), budget.take(None)
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
        """How many questions found nothing left for them; an internal answer."""
        return self._refused

    @property
    def untouched(self) -> bool:
        """Whether nothing was asked yet."""
        return self._asked == 0


@final
@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class StudyPlan:
    """What a study will cost and how well it will publish, from public numbers only."""

    publishing: Plan
    rows: int
    schedule: Schedule
    selects: bool
    rowwise: bool = False
    functions: bool = True
    """Whether functions of the caller's may be asked, which then see rows."""
    ours: bool = True
    """Whether this library's own code reads the rows."""

    def __post_init__(self) -> None:
        for name in ("selects", "rowwise", "functions", "ours"):
            object.__setattr__(self, name, _as_flag(getattr(self, name), name))

    @property
    def epsilon(self) -> Fraction:
        """The pure ε of the published value."""
        return self.publishing.epsilon

    @property
    def rounds(self) -> int:
        """The planned number of questions."""
        return self.schedule.rounds

    @property
    def mu_squared(self) -> Fraction:
        """The μ² of all Gaussian questions together (2ρ if selections are counted too)."""
        calibration = self.publishing.calibration
        return 2 * calibration.rho if self.selects else calibration.mu_squared

    @property
    def mu(self) -> float:
        """The μ of all Gaussian questions together."""
        return math.sqrt(self.mu_squared)

    @property
    def noise_per_question(self) -> float:
        """The standard deviation of an average question's noise, in units of its sensitivity."""
        return math.sqrt(self.rounds / self.mu_squared)

    @property
    def noise_by_basic_composition(self) -> float:
        """The same with as many pure questions of Laplace noise, ε divided among them."""
        return math.sqrt(2) * self.rounds / float(self.epsilon)

    @property
    def break_even(self) -> int:
        """The number of questions from which on this noise is below basic composition's."""
        return math.ceil(self.epsilon**2 / (2 * self.mu_squared))

    @property
    def predicted_error(self) -> float:
        """What publishing adds: the chance of a random element (finite spaces), or an l2 error."""
        return self.publishing.purifier.expected_error()

    def variance(self, sensitivity_squared: Rational, share: Fraction) -> Fraction:
        """Return the noise of a question with this share: Δ² / (share · μ²)."""
        return as_positive(sensitivity_squared, "sensitivity_squared") / (share * self.mu_squared)

    def selection_epsilon(self, share: Fraction) -> Fraction:
        """Return the largest ε (of 64 bits) with ε²/8 <= share · ρ."""
        exact = 8 * share * self.mu_squared / 2
        scale = 1 << 64
        return Fraction(math.isqrt(math.floor(exact * scale**2)), scale)

    def certificate(self, *, guarded: bool, bits: BitSource) -> Certificate:
        """Return the verified certificate; `guarded` programs cannot stop or raise visibly."""
        numbers: dict[str, Any] = {"rounds": self.rounds}
        if self.selects:
            theorem, numbers["rho"] = "adaptive-zcdp", self.mu_squared / 2
        else:
            theorem, numbers["mu_squared"] = "adaptive-gaussian", self.mu_squared
        asserted = (
            *((FUNCTIONS,) if self.functions else ()),
            *(() if self.ours else (FOREIGN_SOURCE,)),
        )
        status = Status.ASSERTED if asserted else Status.PROVEN
        return issue(
            claim=PureDP(self.epsilon),
            steps=(
                Step(theorem=theorem, numbers=numbers, status=status),
                self.publishing.purifier.step(),
            ),
            bits=bits,
            public=(
                f"the space {self.publishing.space!r}",
                f"the number of rows, {self.rows}",
                "the bounds to which each question clips a row, and its lattice of 2^20 steps "
                "(second moments: 2^15)",
                "each question's l2 sensitivity: twice its bound (√d times that for d bounded "
                "coordinates), √2 for a histogram, √2 times the squared bound for second moments",
                "every number in the steps",
            ),
            assumed=(*PROGRAM, *(() if guarded else (UNGUARDED,)), *asserted),
        )

    def __repr__(self) -> str:
        pure = self.noise_by_basic_composition / self.noise_per_question
        verdict = (
            f"{pure:.3g} times more noise"
            if pure > 1
            else f"{1 / pure:.3g} times less noise; a study pays from {self.break_even} rounds on"
        )
        finite = isinstance(self.publishing.space, FiniteSpace)
        error = "chance of a random element" if finite else "l2 error added by publishing"
        counted = " (as zCDP, because of selections)" if self.selects else ""
        lines = [
            f"Study of {self.rows} rows: pure ε {equals(self.epsilon)}, δ = 0",
            f"  publishes          one element of {self.publishing.space!r}",
            f"  hidden questions   {self.rounds}, together μ = {self.mu:.4g}{counted}",
            f"  noise per question {self.noise_per_question:.4g} × its sensitivity",
            f"                     ({self.noise_per_question / self.rows:.3g} × a mean's range)",
            f"  predicted error    {self.predicted_error:.3g} ({error})",
            f"  basic composition  {self.noise_by_basic_composition:.4g} × it: {verdict}",
        ]
        return "\n".join(lines)


def _as_flag(value: Any, name: str) -> bool:
    """Return True or False; anything else may be true here and false there."""
    if type(value) not in (bool, np.bool_):
        raise ParameterError(
            name, value, expected="True or False", remedy=f"pass {name}=True or {name}=False"
        )
    return bool(value)
