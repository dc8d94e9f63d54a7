"""Study: many hidden noisy questions, one small pure release (theory C8, R2)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from fractions import Fraction
from types import TracebackType
from typing import Any, final

import numpy as np

from zerodelta.channels.planner import plan
from zerodelta.data.internal import Hidden, hidden_array, is_hidden_nonsense, reveal
from zerodelta.data.interrupts import Watch, raise_fresh, tidying
from zerodelta.data.quiet import quiet
from zerodelta.data.row_queries import (
    Bounds,
    PublicRows,
    Question,
    box_lattice,
    norm_lattice,
    public_rows,
)
from zerodelta.data.rowwise import RowFunction
from zerodelta.data.source import Rows, is_ours
from zerodelta.errors import EntropyError, ParameterError
from zerodelta.exact.bits import BitSource, SystemBits
from zerodelta.exact.fixed_point import FixedPoint
from zerodelta.exact.rational import Rational
from zerodelta.privacy.assumptions import PROGRAM
from zerodelta.privacy.certificate import Certificate
from zerodelta.privacy.release import Release
from zerodelta.privacy.theorems.mixing import as_weight
from zerodelta.spaces import Space
from zerodelta.spine.transition import opened
from zerodelta.study.asking import Asking, Share
from zerodelta.study.given_rows import as_source, rows_to_try
from zerodelta.study.lifecycle import Life, closed
from zerodelta.study.minimize import Setting, minimize, plan_minimize
from zerodelta.study.otherwise import denotes, with_otherwise
from zerodelta.study.rehearsal import (
    Rehearsal,
    check_asked,
    check_program,
    check_result,
    rehearsed,
)
from zerodelta.study.silence import forget, silenced
from zerodelta.study.study_plan import Budget, Schedule, StudyPlan

__all__ = ["Study"]

DEFAULT_MIXING_PROBABILITY = Fraction(1, 1000)


@final
class Study(Asking):
    """Asks many hidden questions of the rows, adaptively, and publishes one small result.

    Inside, a program asks counts, sums, means, histograms, second moments, gradients and choices;
    the answers are exact integer sums with exactly rounded Gaussian noise, for the program only.
    **Releases**: one element of `publish`, once.
    **Neighbors**: replace-one (the number of rows is public).
    **Guarantee**: pure ε-DP: the history is μ-Gaussian DP (R, R2), published by B1 or B2 at no
    extra ε. With ``functions=False`` only named columns may be asked, and that is `proven`; else
    `asserted`: that functions of rows treat rows one by one, keep no state and show nothing (with
    ``rowwise=True`` they see one row at a time). What no library can enforce is listed as assumed.
    **Public**: everything but the rows. A question beyond the plan is answered by a public
    constant. A program that fails or does not publish publishes `otherwise`: an element or, in a
    finite space, one more than it has (by default element 0, or the center of a box or ball).
    **Error**: `study.plan` shows it before a row is read.

    >>> from zerodelta.spaces import Finite
    >>> rows = np.array([[0.0], [1.0], [1.0], [1.0]] * 500)
    >>> study = Study(
    ...     rows, epsilon=1, publish=Finite(["no", "yes"]), rounds=10, bounds=(0, 1),
    ...     functions=False, mixing_probability=1e-6, otherwise="unknown")
    >>> release = study.run(lambda s: "yes" if s.mean(0) > 0.5 else "no")
    >>> release.value, release.certificate.claim.exact_epsilon, release.certificate.status.value
    ('yes', Fraction(1, 1), 'proven')
    """

    def __init__(
        self,
        rows: Any,
        *,
        epsilon: Rational,
        publish: Space,
        rounds: int | Sequence[Rational] | None = None,
        mixing_probability: Rational = DEFAULT_MIXING_PROBABILITY,
        resolution: Rational | None = None,
        bounds: Bounds | None = None,
        data_norm: Rational | None = None,
        columns: Sequence[str] | None = None,
        functions: bool = True,
        rowwise: bool = False,
        selects: bool = False,
        otherwise: Any = None,
        example: Any = None,
        bits: BitSource | None = None,
    ) -> None:
        schedule = Schedule.of(rounds)
        rows = as_source(rows, columns)
        self._columns, self._size = rows.columns, rows.rows
        if bounds is not None:
            box_lattice(bounds)(1 if np.ndim(bounds[0]) == 0 else len(bounds[0]))
        if data_norm is not None:
            norm_lattice(data_norm, "data_norm")(1)
        self._bounds, self._data_norm, self._example = bounds, data_norm, example
        self._probe = rows_to_try(self._columns, bounds, data_norm, example)
        self._mixing_probability = as_weight(mixing_probability, "mixing_probability")
        space, self._otherwise = with_otherwise(publish, otherwise)
        self._plan = StudyPlan(
            publishing=plan(
                space, epsilon=epsilon, mixing_probability=mixing_probability, resolution=resolution
            ),
            rows=self._size,
            schedule=schedule,
            selects=selects,
            rowwise=rowwise,
            functions=functions,
            ours=is_ours(rows),
        )
        self._bits: BitSource = SystemBits() if bits is None else bits
        self._plan.certificate(guarded=True, bits=self._bits)  # raises now, if ever
        # one copy, read once: changing the data between queries changes nothing
        self._begin(opened(rows, keep=True), None)

    def _begin(self, source: Rows, rehearsal: Rehearsal | None) -> None:
        self._source, self._rehearsal = source, rehearsal
        self._budget = Budget(self._plan.schedule)
        self._life, self._guarded = Life(), False
        self._blocks: list[tuple[ExitStack, Watch]] = []  # one for each with block we are in
        self._release: Release | None = None

    # -- the plan -----------------------------------------------------------------------------

    @property
    def plan(self) -> StudyPlan:
        """The public plan: total μ, noise per question, predicted error of what is published."""
        return self._plan

    @property
    def size(self) -> int:
        """The number of rows, which is public."""
        return self._size

    @property
    def remaining(self) -> Hidden:
        """The share of the budget that is left: an internal answer, while the program runs."""
        if not self._life.is_open:
            raise AttributeError("remaining is an internal answer: it ends with the study")
        self._life.check()
        return hidden_array(float(self._budget.left))

    # -- publishing ---------------------------------------------------------------------------

    def publish(self, value: Any) -> Release:
        """Publish a value, once, and close the study. Anything is mapped into the space first.

        A finite number is published as the nearest element; what denotes none (None, NaN, a text
        that is no option) as `otherwise`.
        """
        if self._rehearsal is not None and self._life.is_open:
            self._rehearsal.check(value, self._plan.publishing.space)
        with self._life.busy():
            self._life.close()  # before the value is looked at: reading it may run code
            try:
                with quiet(), Watch():
                    release = self._released(self._element(value))
            except KeyboardInterrupt:  # a signal, whatever the value has made of it
                self._end()
                raise
            return self._keep(release)

    def _element(self, value: Any) -> Any:
        """Return the element that a value denotes; `otherwise` if it is none, or cannot be read."""
        space = self._plan.publishing.space
        try:
            plain = reveal(value)
            return space.project(plain) if denotes(plain, space) else self._otherwise
        except BaseException:  # reading runs the value's own code
            return self._otherwise

    def _released(self, element: Any) -> Release:
        made, certificate = self._plan.publishing, self._certificate()
        return Release(
            value=made.space.project(made.purifier.apply(element, self._bits)),
            certificate=certificate,
            error=self._plan.predicted_error,
        )

    def run(self, program: Callable[[Study], Any], *, rehearse: bool = True) -> Release:
        """Run a program on the study and publish what it returns (or has published).

        An exception inside it, or nothing to publish, publishes `otherwise`: nothing but the
        release can be seen. So the program is first rehearsed on a few made-up public rows, where
        its mistakes do show (it runs twice, then); ``rehearse=False`` leaves that out. Only an
        interrupt from the keyboard leaves, whatever the program makes of it, and then the study
        ends without a release.
        """
        self._life.check()
        check_program(program)
        if rehearse:
            self._rehearse(program)
        with self:
            self._conduct(program)
        return self.release

    def _conduct(self, program: Callable[[Study], Any]) -> None:
        """Run the program and publish; what it raises goes here, while its locals are silenced."""
        profiler, tracer, limit = sys.getprofile(), sys.gettrace(), sys.getrecursionlimit()
        try:
            try:
                result = program(self)
            finally:  # not by a function of ours, which a tracer of the program's would see
                # only what the program changed: before Python 3.12 cProfile's cannot be put back
                if sys.getprofile() is not profiler:
                    sys.setprofile(profiler if callable(profiler) else None)
                if sys.gettrace() is not tracer:
                    sys.settrace(tracer if callable(tracer) else None)
                sys.setrecursionlimit(limit)
            if self._life.is_open:
                self.publish(result)
        except BaseException:  # leaving the block publishes `otherwise`, unless a signal arrived
            return

    @tidying
    def __enter__(self) -> Study:
        self._life.check()
        # what was asked before could already have stopped or raised
        self._guarded = self._guarded or self._budget.untouched
        stack, watch = ExitStack(), Watch()
        watch.__enter__()
        watch.hold()  # until whatever is opened here will be closed
        stack.enter_context(quiet())  # a warning is an output too; left last
        stack.enter_context(silenced())
        self._blocks.append((stack, watch))
        watch.resume()
        return self

    @tidying
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        """Publish `otherwise` if nothing was published; nothing the program raised gets out."""
        stack, watch = self._blocks.pop()
        watch.hold()
        try:
            with self._life.last(lambda: watch.arrived) as unpublished:
                if unpublished:
                    self._life.close()
                    self._keep(self._released(self._otherwise))
        except BaseException:  # the machine's failure, not the program's: told below
            self._release = None
        stack.callback(forget, error)
        del kind, error, trace  # what leaves from here shows the locals of this frame
        try:
            stack.close()  # collects, while finalizers and warnings are silenced
        finally:
            interrupted = watch.leave()
            if interrupted:
                self._end()
        if interrupted:
            raise_fresh()
        if self._life.is_copy:
            raise_fresh(closed("a copy in another process"))
        if self._release is None:
            raise_fresh(EntropyError("the study could not publish: bits or the machine failed"))
        return True

    @property
    def release(self) -> Release:
        """What was published."""
        if self._release is None:
            raise ParameterError(
                "release",
                "nothing yet",
                expected="a study that has published",
                remedy="call publish, run, or leave the with block first",
            )
        return self._release

    minimize = minimize
    plan_minimize = plan_minimize

    # -- one life -----------------------------------------------------------------------------

    def __copy__(self) -> Study:
        raise TypeError("a study publishes once: it cannot be copied")

    def __deepcopy__(self, memo: Any) -> Study:
        raise TypeError("a study publishes once: it cannot be copied")

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError("a study publishes once: it cannot be pickled")

    def __repr__(self) -> str:
        return repr(self._plan)

    # -- inside -------------------------------------------------------------------------------

    def _answer(
        self,
        question: Question,
        constant: Any,
        exact: Callable[[Rows, Fraction], Any],
        share: Share,
    ) -> Hidden:
        """Return the hidden answer; a public constant if the plan does not cover it (C8)."""
        with self._life.busy(), np.errstate(all="ignore"), Watch():
            covered = question.allowed and not is_hidden_nonsense(share)
            taken = self._budget.take(reveal(share)) if covered else None
            return hidden_array(constant if taken is None else exact(self._source, taken))

    def _question(self, function: RowFunction, lattice: Callable[[int], FixedPoint]) -> Question:
        with self._life.busy():  # trying a function runs it
            return super()._question(function, lattice)

    @property
    def _rehearses(self) -> bool:
        """Whether the rows are made up, so that everything may be shown."""
        return self._rehearsal is not None and self._life.is_open

    @property
    def _quiet_errors(self) -> bool:
        return not self._budget.untouched and not self._rehearses

    def _descend(self, run: Callable[[], Release]) -> Release:
        """Spend the whole budget on a descent, and publish its end."""
        with self._life.busy():
            if self._budget.take(1) is None:
                raise ParameterError(
                    "minimize",
                    "a study that has asked questions",
                    expected="a study of its own: a descent spends the whole budget",
                    remedy="make a new Study, or ask gradients yourself with study.gradient",
                )
            try:
                with Watch():
                    release = run()
            except KeyboardInterrupt:  # a signal: nothing else gets out of a descent
                self._end()
                raise
            self._life.close()
            return self._keep(release)

    def _setting(self) -> Setting:
        """Return what a descent needs."""
        self._life.check()
        made = self._plan
        return Setting(
            source=self._source,
            space=made.publishing.space,
            epsilon=made.epsilon,
            mixing_probability=self._mixing_probability,
            rounds=made.rounds,
            functions=made.functions,
            rowwise=made.rowwise,
            probe=self._probe,
            bits=self._bits,
            assumed=PROGRAM if self._blocks else (),
        )

    def _certificate(self) -> Certificate:
        return self._plan.certificate(guarded=self._guarded, bits=self._bits)

    def _keep(self, release: Release) -> Release:
        """Keep the release, and nothing else that was computed from rows."""
        if not hasattr(self, "_source"):  # stopped meanwhile, by a signal to the main thread
            raise_fresh()
        self._release = release
        self._forget()
        return release

    def _forget(self) -> None:
        self._budget = Budget(self._plan.schedule)
        del self._source

    def _end(self) -> None:
        """End without a release: someone at the keyboard has stopped the study."""
        self._release = None
        if self._life.is_open:
            self._life.close()
        if hasattr(self, "_source"):
            self._forget()

    def _rehearse(self, program: Callable[[Study], Any]) -> None:
        made, width = self._plan, len(self._columns)
        rows = self._probe
        if self._example is None:
            rows = public_rows(width, self._bounds, self._data_norm, count=max(7, 4 * width))
        stage = object.__new__(Study)  # with the same plan, so that it is worth as much
        stage.__dict__.update(self.__dict__, _bits=SystemBits())
        rehearsal = Rehearsal()
        stage._begin(PublicRows(rows, self._columns, rows=self._size), rehearsal)
        budget = stage._budget
        with self._life.rehearsing():
            result = rehearsed(lambda: program(stage))
            rehearsal.end()
            if stage._life.is_open:
                check_result(result, made.publishing.space)
        check_asked(budget.refused, made.rounds)
