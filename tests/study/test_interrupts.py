"""Only an interrupt that arrived as a signal leaves a study, and it brings nothing along (C8)."""

from __future__ import annotations

import contextlib
import cProfile
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from study.small_studies import FAILING, SECRET, Watched, made, own_handler, stop
from study.stages import line_data
from zerodelta.data.isolation import Watch, quiet, tidying
from zerodelta.data.rowwise import evaluate
from zerodelta.errors import ParameterError
from zerodelta.mechanisms.stable_queries import CustomQuery
from zerodelta.spaces import Ball, Box
from zerodelta.study.study import Study


def raises(study: Study) -> int:
    raise KeyboardInterrupt(SECRET)


def raises_in_a_function(study: Study) -> Any:
    def function(rows: Any) -> Any:
        if len(rows) > 7:
            raise KeyboardInterrupt(SECRET)
        return rows[:, 0]

    return study.mean(function)


def is_stopped(study: Study) -> int:
    stop()
    return 1


def catches(study: Study) -> int:
    with contextlib.suppress(KeyboardInterrupt):
        stop()
    return 1


def wraps(study: Study) -> int:
    try:
        stop()
    except KeyboardInterrupt as error:
        raise ValueError(SECRET) from error
    return 1


def is_stopped_in_a_function(study: Study) -> Any:
    def function(rows: Any) -> Any:
        if len(rows) > 7:  # not when it is tried
            stop()
        return rows[:, 0]

    study.mean(function)
    return 1


@pytest.fixture(autouse=True)
def _handler() -> Iterator[None]:
    with own_handler():
        yield


def test_an_interrupt_that_the_program_raises_publishes_otherwise() -> None:
    assert made(**FAILING).run(raises, rehearse=False).value == "failed"
    with made(**FAILING) as study:
        raises(study)
    assert study.release.value == "failed"


def test_an_interrupt_that_a_function_of_rows_raises_is_a_failure_of_the_row() -> None:
    assert made(**FAILING).run(raises_in_a_function, rehearse=False).value in range(4)


def run(study: Study, program: Callable[[Study], Any]) -> None:
    study.run(program, rehearse=False)


def run_in_a_block(study: Study, program: Callable[[Study], Any]) -> None:
    with study:
        program(study)


def run_in_two_blocks(study: Study, program: Callable[[Study], Any]) -> None:
    with study:
        study.run(program, rehearse=False)


@pytest.mark.parametrize("how", [run, run_in_a_block, run_in_two_blocks])
@pytest.mark.parametrize("program", [is_stopped, catches, wraps, is_stopped_in_a_function])
def test_a_signal_leaves_as_a_fresh_interrupt(how: Any, program: Any) -> None:
    source = Watched()
    study = made(rows=source)
    with pytest.raises(KeyboardInterrupt) as caught:
        how(study, program)
    error = caught.value
    assert type(error) is KeyboardInterrupt
    assert error.args == ()
    assert error.__context__ is error.__cause__ is None
    trace, frames = error.__traceback__, []
    while trace is not None:
        frames.append(trace.tb_frame)
        trace = trace.tb_next
    for frame in frames:
        assert frame.f_code is not program.__code__
        if "zerodelta" in frame.f_code.co_filename:
            held = frame.f_locals.values()
            assert not any(isinstance(value, (np.ndarray, BaseException)) and value is not error
                           for value in held)  # fmt: skip
    assert not hasattr(study, "_source")
    with pytest.raises(ParameterError, match="make a new Study"):
        study.mean(0)


def test_a_signal_stops_a_descent_and_ends_the_study() -> None:
    study = Study(line_data(50), epsilon=1, publish=Ball(2, 1), rounds=3)

    def gradient(theta: Any, rows: Any) -> Any:
        if len(rows) > 20:
            stop()
        return rows[:, :2]

    with pytest.raises(KeyboardInterrupt) as caught:
        study.minimize(gradient)
    trace = caught.value.__traceback__
    while trace is not None:
        assert "iterates" not in trace.tb_frame.f_locals
        trace = trace.tb_next
    with pytest.raises(ParameterError, match="make a new Study"):
        study.publish(1)


def test_in_another_thread_no_interrupt_leaves() -> None:
    values: list[Any] = []
    thread = threading.Thread(
        target=lambda: values.append(made(**FAILING).run(raises, rehearse=False).value)
    )
    thread.start()
    thread.join()
    assert values == ["failed"]


def test_a_handler_that_deals_with_the_signal_is_left_alone() -> None:
    seen: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: seen.append(number))
    try:
        assert made().run(is_stopped, rehearse=False).value in range(4)
    finally:
        signal.signal(signal.SIGINT, before)
    assert seen == [signal.SIGINT]


def test_a_handler_that_the_program_sets_does_not_stay() -> None:
    def program(study: Study) -> int:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        return 1

    before = signal.getsignal(signal.SIGINT)
    made().run(program, rehearse=False)
    assert signal.getsignal(signal.SIGINT) is before


def test_rows_are_read_to_the_end_unless_a_signal_stops_them() -> None:
    def interrupts(rows: Any) -> Any:
        raise KeyboardInterrupt(SECRET)

    def stopped(rows: Any) -> Any:
        stop()
        return rows[:, 0]

    rows = np.ones((3, 1))
    assert np.isnan(evaluate(interrupts, rows, width=1, rowwise=True)).all()
    with pytest.raises(KeyboardInterrupt) as caught:
        evaluate(stopped, rows, width=1, rowwise=True)
    assert caught.value.__context__ is None
    query = CustomQuery(function=interrupts, grid=Box(0, 1).grid(11))
    assert query.answer(rows).tolist() == query.grid.quantize(None).tolist()


def test_a_watch_outside_of_the_main_thread_sees_nothing() -> None:
    arrived: list[bool] = []

    def look() -> None:
        with Watch() as watch:
            arrived.append(watch.arrived)

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert arrived == [False]


# --- threads and warnings ------------------------------------------------------------


def test_threads_that_outlive_the_program_stay_silent(capsys: Any) -> None:
    hooks = sys.unraisablehook, threading.excepthook
    go, threads = threading.Event(), []

    def wait_and_fail() -> None:
        go.wait()
        raise ValueError(SECRET)

    def program(study: Study) -> int:
        threads.append(threading.Thread(target=wait_and_fail))
        threads[0].start()
        return 1

    shown: list[Any] = []
    before = threading.excepthook
    threading.excepthook = shown.append
    try:
        made().run(program, rehearse=False)
        go.set()
        threads[0].join()
        other = threading.Thread(target=wait_and_fail)  # not the program's
        other.start()
        other.join()
    finally:
        made().run(lambda s: 1, rehearse=False)  # the last one out puts the hooks back
        restored = threading.excepthook == shown.append
        threading.excepthook = before
    assert restored
    assert [args.thread for args in shown] == [other]
    assert capsys.readouterr() == ("", "")
    assert (sys.unraisablehook, threading.excepthook) == hooks


def test_two_threads_cannot_leave_warnings_switched_off() -> None:
    """The first in leaves first: with catch_warnings the second restored the silence."""
    filters, shown = warnings.filters, warnings.showwarning
    first_in, second_in, first_out = (threading.Event() for _ in range(3))

    def first() -> None:
        with quiet():
            first_in.set()
            second_in.wait()
        first_out.set()

    def second() -> None:
        first_in.wait()
        with quiet():
            second_in.set()
            first_out.wait()
            warnings.warn(SECRET, stacklevel=1)

    threads = [threading.Thread(target=target) for target in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert warnings.filters is filters
    assert warnings.showwarning is shown
    with pytest.warns(UserWarning, match="heard"):
        warnings.warn("heard", stacklevel=1)


def test_a_program_that_switches_warnings_on_is_not_heard(capsys: Any) -> None:
    def program(study: Study) -> int:
        warnings.simplefilter("always")
        warnings.warn(SECRET, stacklevel=1)
        return 1

    before = list(warnings.filters)
    made().run(program, rehearse=False)
    assert capsys.readouterr() == ("", "")
    assert list(warnings.filters) == before


@pytest.mark.parametrize("decorated", [True, False])
def test_an_interrupt_while_something_tidies_up_waits_for_the_end_of_the_block(
    decorated: bool,
) -> None:
    went_on: list[bool] = []

    def tidies() -> None:
        signal.raise_signal(signal.SIGINT)  # in its own frame
        went_on.append(True)

    def block() -> None:
        with Watch() as watch:
            if decorated:
                tidying(tidies)()
            else:
                watch.hold()
                tidies()
            went_on.append(watch.arrived)

    with pytest.raises(KeyboardInterrupt):
        block()
    assert went_on == [True, True]


def test_entering_and_leaving_a_study_cannot_be_cut_short() -> None:
    """A signal that arrives while a program's locals are freed meets `__exit__` first."""
    stopped: list[str] = []

    def tracer(frame: Any, event: str, _: Any) -> None:
        if frame.f_code is Study.__exit__.__code__ and event == "call" and not stopped:
            stopped.append(event)
            # as Python does: the handler runs with the interrupted frame
            handler: Any = signal.getsignal(signal.SIGINT)
            handler(signal.SIGINT, frame)

    def publishes() -> None:
        with study:
            study.publish(1)

    study = made(**FAILING)
    filters = list(warnings.filters)
    found = sys.gettrace()
    sys.settrace(tracer)
    try:
        with pytest.raises(KeyboardInterrupt):
            publishes()
    finally:
        sys.settrace(found)
    assert stopped == ["call"]
    assert list(warnings.filters) == filters
    with pytest.raises(ParameterError, match="nothing yet"):
        _ = study.release
    assert made(**FAILING).run(lambda s: 1).value == 1


def test_a_profiled_program_publishes_its_own_result() -> None:
    profile = cProfile.Profile()
    study = made(**FAILING)
    profile.enable()
    try:
        release = study.run(lambda s: 2)
    finally:
        profile.disable()
    assert release.value == 2


def test_columns_may_be_numpy_integers() -> None:
    study = made(**FAILING, functions=False)
    release = study.run(lambda s: int(s.mean(np.int64(0)) < 10) + int(s.mean(np.arange(1)[0]) < 10))
    assert release.value == 2
