"""The plan of a verb that runs a study: which one, and the program that asks its queries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from zerodelta.data.protection import Protection
from zerodelta.data.source import Source
from zerodelta.exact.bits import BitSource
from zerodelta.exact.rational import Rational
from zerodelta.privacy.parameters import as_usable_epsilon
from zerodelta.privacy.release import Release
from zerodelta.spine.facts import Question
from zerodelta.spine.methods import Method
from zerodelta.spine.paying import as_own
from zerodelta.spine.run import Beside, aside, planned, post_processed, run
from zerodelta.study.study import Study
from zerodelta.value import value


@value
class StudyProgram:
    """What to ask of a study that is made when it runs: it takes its own certificate and ticket."""

    study: Mapping[str, Any]
    """The keywords of `Study`: ε, the space, the rounds, …"""
    program: Callable[[Study], Any]
    value: Callable[[Any], Any] = lambda value: value
    """What is made of the published element: post-processing."""
    error: float | str | None = None
    """The forecast; None for the study's own."""
    methods: tuple[Method, ...] = ()
    """What was weighed, best first."""
    rehearse: bool = True

    @property
    def price(self) -> Fraction:
        """The pure ε that a run costs."""
        return as_usable_epsilon(self.study["epsilon"])

    def protecting(self, protection: Protection) -> StudyProgram:
        """Return the program for a unit, made of that for one of its rows at a part of ε.

        A study of units asks less of ε than a multiple of it (theory V), so it is given all.
        """
        whole = self.price * protection.max_rows
        return replace(self, study={**self.study, "epsilon": whole})

    def run(
        self, source: Source, *, bits: BitSource | None = None, beside: Beside | None = None
    ) -> Release:
        """Make the study, run the program in it, and return what it publishes.

        What is asked `beside` has taken its share of ε already.
        """
        whole = self.price if beside is None else self.price / (1 - beside.share)
        given = {**self.study, "epsilon": whole}
        made = as_own(Study)(source, bits=bits, diagnostics=beside, **given)
        release = made.run(self.program, rehearse=self.rehearse)
        error = release.error if self.error is None else self.error
        return post_processed(release, value=self.value(release.value), error=error)


def carry_out(
    question: Question,
    source: Source,
    *,
    epsilon: Rational,
    bits: BitSource | None = None,
    beside: Beside | None = None,
) -> Release:
    """Plan what is asked, as `ask` does, and run the plan: its method may be a study."""
    plan = planned(question, source, epsilon, beside=beside)
    if isinstance(plan, StudyProgram):
        return plan.run(source, bits=bits, beside=beside)
    return run(plan, source, bits=bits, aside=aside(beside, epsilon))
