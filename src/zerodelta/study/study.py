"""Run a study: many internal noisy queries, one small pure release (theory C8, R2)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from fractions import Fraction
from types import TracebackType
from typing import TYPE_CHECKING, Any, final

import numpy as np

from zerodelta.channels.purification import plan
from zerodelta.data.arrays import DEFAULT_MISSING, as_source
from zerodelta.data.isolation import (
    Internal,
    Watch,
    forget,
    internal_array,
    is_unusable,
    quiet,
    raise_fresh,
    reveal,
    silenced,
    tidying,
)
from zerodelta.data.row_queries import Bounds, RowQuery, trial_rows
from zerodelta.data.rows import Rows
from zerodelta.data.rowwise import RowFunction
from zerodelta.data.source import Protection, Source, protection_of
from zerodelta.errors import EntropyError, ParameterError
from zerodelta.exact.bits import SystemBits
from zerodelta.exact.fixed_point import FixedPoint
from zerodelta.exact.rational import Rational
from zerodelta.mechanisms.diagnostics import as_diagnosis
from zerodelta.privacy.parameters import as_usable_epsilon
from zerodelta.privacy.release import Release
from zerodelta.privacy.theorems.mixing import as_weight
from zerodelta.spaces import Space
from zerodelta.spine.plan import Method, Question
from zerodelta.spine.run import (
    Diagnosis,
    begin,
    epsilon_without,
    plan_diagnosis,
    planned,
    post_processed,
    run,
)
from zerodelta.spine.verbs import Paying, debited, inside_same_release
from zerodelta.study.minimize import minimize, plan_minimize
from zerodelta.study.plan import (
    Lifecycle,
    Rehearsal,
    Schedule,
    Shares,
    StudyPlan,
    check_number,
    check_program,
    closed,
    element_of,
    with_otherwise,
)
from zerodelta.study.queries import (
    Declared,
    InternalQueries,
    Share,
    check_defaults,
    rows_of_a_unit,
    usable_columns,
)
from zerodelta.value import value

if TYPE_CHECKING:
    from typing_extensions import Unpack


DEFAULT_MIXING_PROBABILITY = Fraction(1, 1000)


@final
class Study(InternalQueries):
    """Ask many internal queries of the rows, adaptively, and publish one small result.

    Use it when the analysis is rich and the result is small; for one mean or one choice `zd.mean`
    and `zd.select` are better. Inside, a program asks counts, sums, means, histograms, second
    moments, gradients and choices; the answers are exact integer sums with exactly rounded
    Gaussian noise, for the program only.

    Parameters
    ----------
    rows : data set, array, list of rows, data frame or Source
        The data; each row is one person, unless `zd.open` was told who is.
    epsilon : rational
        The pure ε of what is published.
    publish : Space
        The values that may be published: a space of `zerodelta.purification`.
    rounds : int or list of rationals
        The number of queries, or their relative shares.
    mixing_probability : rational, default 1/1000
        The largest probability of publishing a random element instead.
    resolution : rational, optional
        The spacing of the lattice of a box or ball; by default the best.
    bounds, data_norm : optional
        Public bounds (default: those declared) and a public l2 norm that queries use by default.
    columns : list of str, optional
        The columns of a data set or a frame that may be used.
    missing : optional
        The value that a missing cell counts as; "skip" (default for frames) skips it, None (default
        for arrays) declares that no cell is missing.
    functions : bool, default True
        Whether queries may use functions of rows; if False, named columns only.
    rowwise : bool, default False
        Whether functions see one row at a time, which is slower.
    selects : bool, default False
        Whether `select` may be used; the plan then counts in zCDP.
    otherwise : optional
        The value published if the program fails or does not publish: an element or, in a finite
        space, one more. By default element 0, or the center of a box or ball.
    example : array or data frame, optional
        Public made-up rows on which functions and programs are tried.
    diagnostics : rational, optional
        The share of ε, such as "1/100", for `release.diagnostics`: the fractions of rows that were
        used, clipped to the bounds, and unreadable. For an array or a frame it needs `bounds`.
    ledger, again : optional
        As for the verbs. The budget is debited just before the first row is read, or before the
        publication, whatever the program does later.

    **Releases**: one element of `publish`, once.
    **Neighbors**: replace-one, or all rows of a unit; after a filter or with units n is private.
    **Guarantee**: pure ε-DP: the transcript is μ-Gaussian DP (R, R2), published by B1 or B2 at no
    extra ε. With ``functions=False`` that is `proven`; else `asserted`: that functions of rows
    treat rows one by one, keep no state and show nothing. Premises that no library can enforce
    are listed as assumed.
    **Public**: everything but the rows. A query beyond the plan is answered by a public constant.
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

    @debited
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
        missing: Any = DEFAULT_MISSING,
        functions: bool = True,
        rowwise: bool = False,
        selects: bool = False,
        otherwise: Any = None,
        example: Any = None,
        diagnostics: Rational | Diagnosis | None = None,
        **paying: Unpack[Paying],
    ) -> None:
        schedule = Schedule.of(rounds)
        source = usable_columns(as_source(rows, columns, missing=missing, texts=True))
        self._columns, self._size = source.columns, source.rows
        self._declared, self._may_miss = Declared.of(source), source.may_miss
        self._rows_bound = (
            source.row_count_is_public
        )  # whether `_size` is an upper bound on the number of rows
        self._by_unit, self._rows_of_a_unit = source.by_unit is not None, rows_of_a_unit(source)
        check_defaults(bounds, data_norm)
        self._bounds, self._data_norm, self._example = bounds, data_norm, example
        self._boxes: dict[Hashable, FixedPoint] = {}  # lattices between bounds, made once
        self._probe = self._declared.rows_to_try(bounds, data_norm, example, count=7)
        self._mixing_probability = as_weight(mixing_probability, "mixing_probability")
        space, self._otherwise = with_otherwise(publish, otherwise)
        protection = protection_of(source)
        diagnosis = as_diagnosis(diagnostics, source, bounds=bounds)
        self._plan = StudyPlan(
            publishing=plan(
                space,
                epsilon=epsilon_without(epsilon, diagnosis),
                mixing_probability=mixing_probability,
                resolution=resolution,
            ),
            rows=self._size,
            rows_public=not source.drops_rows,
            unit=protection.unit,
            max_rows=protection.max_rows,
            neighbors=protection.neighbors,
            schedule=schedule,
            selects=selects,
            rowwise=rowwise,
            functions=functions,
        )
        # all refusals are raised here; ε is debited just before the first row is read
        release_plan = self._plan.release_plan(guarded=True)
        planned_diagnosis = plan_diagnosis(diagnosis, epsilon)
        self._opened = begin(release_plan, source, diagnosis=planned_diagnosis)
        self._bits = self._opened.bits
        self._descents: dict[Any, Any] = {}  # plans of `minimize`: a rehearsal's serve the run
        # keep=True: all queries use one copy, read once, so changing the array changes nothing
        self._begin(source.open(self._opened.ticket, keep=True), None)

    def _begin(self, source: Rows, rehearsal: Rehearsal | None) -> None:
        """Reset the study to its state before the program runs, on these rows."""
        self._source, self._rehearsal = source, rehearsal
        self._shares = Shares(self._plan.schedule)
        self._lifecycle, self._guarded = Lifecycle(), False
        self._blocks: list[tuple[ExitStack, Watch]] = []  # one for each open `with` block
        self._release: Release | None = None

    # -- the plan -----------------------------------------------------------------------------

    @property
    def plan(self) -> StudyPlan:
        """The public plan: total μ, noise per query, predicted error of what is published."""
        return self._plan

    @property
    def size(self) -> int:
        """The number of rows, where it is public."""
        if not self._plan.rows_public:
            raise AttributeError("size: the number of rows that count is private")
        return self._size

    @property
    def remaining(self) -> Internal:
        """The share of the plan that remains: an internal answer, while the program runs."""
        if not self._lifecycle.is_open:
            raise AttributeError("remaining is an internal answer: it ends with the study")
        self._lifecycle.check()
        return internal_array(float(self._shares.remaining))

    # -- publishing ---------------------------------------------------------------------------

    def publish(self, value: Any) -> Release:
        """Publish a value, once, and close the study; outside of `run`, end a program with it.

        Parameters
        ----------
        value : object
            Anything; it is mapped into the space first. A finite number is published as the nearest
            element; a value that denotes none (None, NaN, an unknown option) as `otherwise`.

        Returns
        -------
        Release
            The published element and its certificate.

        """
        if self._rehearsal is not None and self._lifecycle.is_open:
            self._rehearsal.check(value, self._plan.publishing.space)
        self._lifecycle.check()
        self._opened.pay()
        with self._lifecycle.busy():
            self._lifecycle.close()  # before the value is read, as that may run its own code
            try:
                with quiet(), Watch():
                    space, otherwise = self._plan.publishing.space, self._otherwise
                    release = self._released(element_of(space, value, otherwise=otherwise))
            except KeyboardInterrupt:  # `Watch` lets it through only if a signal arrived
                self._end()
                raise
            return self._keep(release)

    def _released(self, element: Any) -> Release:
        """Publish an element through the channel."""
        release_plan = self._plan.release_plan(guarded=self._guarded)
        # the study was begun as guarded; an unguarded program is one more assumption, seen only now
        opened = self._opened if self._guarded else self._opened.replanned(release_plan)
        return opened.release(release_plan.answer(element, self._bits))

    def run(self, program: Callable[[Study], Any], *, rehearse: bool = True) -> Release:
        """Run a program on the study and publish what it returns (or has published).

        If the program raises, or publishes nothing, `otherwise` is published: only the release can
        be seen. Only an interrupt from the keyboard gets out, even if the program catches it, and
        the study then ends without a release.

        Parameters
        ----------
        program : callable
            A plain function of the study, which asks queries and returns the value to publish.
        rehearse : bool, default True
            Whether the program first runs on a few made-up public rows, where its errors are shown.
            It then runs twice.

        Returns
        -------
        Release
            The published element and its certificate.

        """
        self._lifecycle.check()
        check_program(program)
        if rehearse:
            self._rehearse(program)  # an error here costs nothing
        with self:
            self._conduct(program)
        return self.release

    def _conduct(self, program: Callable[[Study], Any]) -> None:
        """Run the program and publish; its errors end here, where finalizers stay silenced."""
        profiler, tracer, limit = sys.getprofile(), sys.gettrace(), sys.getrecursionlimit()
        try:
            try:
                result = program(self)
            finally:
                # inline, because a tracer that the program has set would see a function call;
                # only changed hooks, because before Python 3.12 cProfile's cannot be set again
                if sys.getprofile() is not profiler:
                    sys.setprofile(profiler if callable(profiler) else None)
                if sys.gettrace() is not tracer:
                    sys.settrace(tracer if callable(tracer) else None)
                sys.setrecursionlimit(limit)
            if self._lifecycle.is_open:
                self.publish(result)
        except BaseException:  # `__exit__` then publishes `otherwise`, unless a signal arrived
            return

    @tidying
    def __enter__(self) -> Study:
        self._lifecycle.check()
        self._opened.pay()
        # a query before the block could already have made the program stop or raise visibly
        self._guarded = self._guarded or self._shares.untouched
        stack, watch = ExitStack(), Watch()
        watch.__enter__()
        # A signal (Ctrl-C) between two of the next lines would leave streams silenced for good. So
        # the watch holds signals first and resumes last, when `__exit__` has all it needs to undo.
        watch.hold()
        stack.enter_context(quiet())  # a warning is an output too; entered first, so undone last
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
        """Publish `otherwise` if nothing was published; no error of the program gets out."""
        stack, watch = self._blocks.pop()
        watch.hold()  # a signal from here on is raised when everything is undone
        try:
            with self._lifecycle.last(lambda: watch.arrived) as unpublished:
                if unpublished:
                    self._lifecycle.close()
                    self._keep(self._released(self._otherwise))
        except BaseException:  # a failure of the machine, not of the program: reported below
            self._release = None
        stack.callback(forget, error)
        del kind, error, trace  # an exception that leaves this frame shows its locals
        try:
            stack.close()  # collects garbage while finalizers and warnings are silenced
        finally:
            interrupted = watch.leave()
            if interrupted:
                self._end()
        if interrupted:
            raise_fresh()
        if self._lifecycle.is_copy:
            raise_fresh(closed("a copy in another process"))
        if self._release is None:
            raise_fresh(EntropyError("the study could not publish: bits or the machine failed"))
        return True

    @property
    def release(self) -> Release:
        """The release of a study that has published."""
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

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError("a study publishes once: it cannot be copied or pickled")

    def __repr__(self) -> str:
        return repr(self._plan)

    def _answer(
        self,
        query: RowQuery,
        constant: Callable[[], Any],
        exact: Callable[[Rows, Fraction], Any],
        share: Share,
    ) -> Internal:
        """Return the exact answer if the plan covers the query, else the public constant."""
        self._lifecycle.check()
        self._opened.pay()
        with self._lifecycle.busy(), np.errstate(all="ignore"), Watch():
            self._opened.diagnostics()
            covered = query.allowed and not is_unusable(share)
            taken = self._shares.take(reveal(share)) if covered else None
            return internal_array(constant() if taken is None else exact(self._source, taken))

    def _query(self, function: RowFunction, lattice: Callable[[int], FixedPoint]) -> RowQuery:
        with self._lifecycle.busy():  # a function is tried on made-up rows, which runs it
            return super()._query(function, lattice)

    @property
    def _quiet_errors(self) -> bool:
        # in a rehearsal all answers come from made-up rows, and may be shown
        rehearsed = self._rehearsal is not None and self._lifecycle.is_open
        return not self._shares.untouched and not rehearsed

    def _keep(self, release: Release) -> Release:
        """Keep the release, and delete everything else that was computed from rows."""
        if not hasattr(self, "_source"):  # a signal to the main thread has stopped the study
            raise_fresh()
        self._release = release
        self._forget()
        return release

    def _forget(self) -> None:
        """Delete everything that was computed from rows."""
        self._shares = Shares(self._plan.schedule)
        self._descents = {}
        self._opened.ticket.forget()
        del self._source

    def _end(self) -> None:
        """End without a release: a signal from the keyboard has stopped the study."""
        self._release = None
        if self._lifecycle.is_open:
            self._lifecycle.close()
        if hasattr(self, "_source"):
            self._forget()

    def _rehearse(self, program: Callable[[Study], Any]) -> None:
        """Run the program on made-up rows, in a copy of the study with the same plan."""
        columns, options = self._columns, (self._bounds, self._data_norm, self._example)
        rows = self._declared.rows_to_try(*options, count=max(7, 4 * len(columns)))
        stage, rehearsal = object.__new__(Study), Rehearsal()
        stage.__dict__.update(self.__dict__, _bits=SystemBits(), _opened=self._opened.rehearsed())
        # a dict of its own, and copied back below: if the program keeps the copy of the study and
        # uses it in the real run, plans that hold rows do not get into it
        stage._descents = descents = dict(self._descents)
        stage._begin(trial_rows(rows, columns, rows=self._size), rehearsal)
        stage._guarded, shares = True, stage._shares
        with self._lifecycle.rehearsing():
            result = rehearsal.play(lambda: program(stage))
            if stage._lifecycle.is_open:
                rehearsal.check(result, self._plan.publishing.space)
        self._descents = dict(descents)
        check_number(shares.refused, self._plan.rounds)


# -- The plan of a verb that runs a study: its keywords, and the program that asks the queries ----


@value
class StudyProgram:
    """The plan of a verb whose method is a study, which issues its own certificate and ticket."""

    study: Mapping[str, Any]
    """The keywords of `Study`: ε, the space, the rounds, …"""
    program: Callable[[Study], Any]
    value: Callable[[Any], Any] = lambda value: value
    """Post-processing of the published element."""
    error: float | str | None = None
    """The forecast; None for the study's own."""
    methods: tuple[Method, ...] = ()
    """The methods that were compared, best first."""
    rehearse: bool = True

    @property
    def price(self) -> Fraction:
        """The pure ε that a run costs."""
        return as_usable_epsilon(self.study["epsilon"])

    def protecting(self, protection: Protection) -> StudyProgram:
        """Return the program for a unit, from this one for a row at a part of ε.

        A study protects units by itself, at less noise than with a part of ε for each row
        (theory V), so it gets the ε of the whole unit.
        """
        return replace(self, study={**self.study, "epsilon": self.price * protection.max_rows})

    def run(self, source: Source, *, diagnosis: Diagnosis | None = None) -> Release:
        """Make the study, run the program in it, and return what it publishes.

        The share of `diagnosis` was taken off the program's ε, and is added again for the study.
        """
        total = self.price if diagnosis is None else self.price / (1 - diagnosis.share)
        keywords = {**self.study, "epsilon": total}
        study = inside_same_release(Study)(source, diagnostics=diagnosis, **keywords)
        release = study.run(self.program, rehearse=self.rehearse)
        error = release.error if self.error is None else self.error
        return post_processed(release, value=self.value(release.value), error=error)


def carry_out(
    question: Question,
    source: Source,
    *,
    epsilon: Rational,
    diagnosis: Diagnosis | None = None,
) -> Release:
    """Plan a question as `ask` does, and run the plan or the study that it chose."""
    plan = planned(question, source, epsilon, diagnosis=diagnosis)
    if isinstance(plan, StudyProgram):
        return plan.run(source, diagnosis=diagnosis)
    return run(plan, source, diagnosis=plan_diagnosis(diagnosis, epsilon))
