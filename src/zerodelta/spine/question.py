"""What every question has in common: public fields, and a plan."""

from __future__ import annotations

from typing import Any, Protocol

from zerodelta.exact.rational import Rational
from zerodelta.spine.facts import Facts

__all__ = ["Question"]


class Question(Protocol):
    """A frozen dataclass of public inputs (`MeanQuestion`, `QuantileQuestion`, …).

    `zd.advise` looks at the plan's `methods`; a verb runs the plan.
    """

    def plan(self, facts: Facts, epsilon: Rational) -> Any:
        """Return the plan for rows of which these facts are public; nothing is read.

        A `ReleasePlan`, or where the chosen method asks many internal queries a `StudyProgram`.
        """
        ...  # pragma: no cover
