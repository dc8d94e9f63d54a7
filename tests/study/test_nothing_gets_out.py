"""What a program, or a value that it publishes, does on its way out cannot be seen (C8)."""

from __future__ import annotations

import contextlib
import gc
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from study.small_studies import FAILING, SECRET, NoBits, Talkative, made, own_handler, stop
from zerodelta.data.isolation import _running, quiet
from zerodelta.errors import EntropyError, ParameterError
from zerodelta.study.study import Study
from zerodelta.testing import replayed


@pytest.fixture(autouse=True)
def _handler() -> Iterator[None]:
    with own_handler():
        yield


class ClassUnknown:
    """Raises when it is asked what it is."""

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        raise RuntimeError(SECRET)


def test_a_value_that_does_not_say_what_it_is_is_a_failure() -> None:
    assert made(**FAILING).run(lambda s: ClassUnknown(), rehearse=False).value == "failed"
    assert made(**FAILING).publish(ClassUnknown()).value == "failed"


def test_a_program_that_raises_after_such_a_value_is_not_heard() -> None:
    def program(study: Study) -> None:
        with contextlib.suppress(BaseException):
            study.publish(ClassUnknown())
        raise ValueError(SECRET)

    assert made(**FAILING).run(program, rehearse=False).value == "failed"


@pytest.mark.parametrize("raises", [True, False])
def test_a_publication_under_way_in_a_thread_is_waited_for(raises: bool) -> None:
    reading, threads = threading.Event(), []

    class Slow:
        def __index__(self) -> int:
            reading.set()
            threading.Event().wait(0.2)  # the program ends meanwhile
            return 2

    def program(study: Study) -> None:
        threads.append(threading.Thread(target=lambda: study.publish(Slow())))
        threads[0].start()
        reading.wait()
        if raises:
            raise ValueError(SECRET)

    assert made(**FAILING).run(program, rehearse=False).value == 2
    threads[0].join()


def test_a_tracer_of_the_program_does_not_outlive_it() -> None:
    def tracer(frame: Any, event: str, argument: Any) -> Any:
        raise ValueError(SECRET)

    def program(study: Study) -> int:
        sys.settrace(tracer)
        return 1

    before = sys.gettrace()
    assert made(**FAILING).run(program, rehearse=False).value == 1
    assert sys.gettrace() is before


def test_a_recursion_limit_of_the_program_does_not_outlive_it() -> None:
    limit = sys.getrecursionlimit()

    def program(study: Study) -> int:
        depth, frame = 0, sys._getframe()
        while frame.f_back is not None:
            depth, frame = depth + 1, frame.f_back
        sys.setrecursionlimit(depth + 12)
        return 1

    assert made(**FAILING).run(program, rehearse=False).value == 1
    assert sys.getrecursionlimit() == limit


@pytest.mark.parametrize("catches", [True, False])
def test_a_machine_that_fails_says_only_that(catches: bool) -> None:
    def program(study: Study) -> None:
        with contextlib.suppress(EntropyError if catches else ZeroDivisionError):
            study.publish(1)
        raise ValueError(SECRET)

    with pytest.raises(EntropyError, match="could not publish") as caught:
        replayed(NoBits())(lambda: made().run(program, rehearse=False))()
    assert caught.value.__context__ is caught.value.__cause__ is None
    assert SECRET not in str(caught.value)


# --- what threads and finalizers print -----------------------------------------------------------


class TalkativeError(Exception):
    """An exception that does so."""

    def __del__(self) -> None:
        raise ValueError(SECRET)


async def never_awaited() -> None:
    """Python warns when it is dropped."""


def raises_with_a_local(study: Study) -> None:
    kept = [Talkative()]
    raise ValueError(kept)


def raises_with_a_coroutine(study: Study) -> None:
    waits = never_awaited()
    raise ValueError(repr(waits))


def raises_from_another(study: Study) -> None:
    try:
        raises_with_a_local(study)
    except ValueError as error:
        raise TalkativeError from error


def leaves_old_garbage(study: Study) -> int:
    first: Any = Talkative()
    first.self = first
    gc.collect()  # now it is old
    return 1


def drops(study: Study) -> int:
    Talkative()
    return 1


def starts_a_thread(study: Study) -> int:
    def fail() -> None:
        raise ValueError(SECRET)

    thread = threading.Thread(target=fail)
    thread.start()
    thread.join()
    return 1


PROGRAMS: list[Any] = [
    raises_with_a_local,
    raises_with_a_coroutine,
    raises_from_another,
    leaves_old_garbage,
    drops,
    starts_a_thread,
]


@pytest.mark.parametrize(
    ("program", "block"),
    [*((each, False) for each in PROGRAMS), *((each, True) for each in PROGRAMS[:2])],
)
def test_what_threads_and_finalizers_raise_is_not_shown(
    program: Any, block: bool, capsys: Any
) -> None:
    hooks = sys.unraisablehook, threading.excepthook
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if block:
            with made() as study:
                program(study)
        else:
            made().run(program, rehearse=False)
        gc.collect()
    assert capsys.readouterr() == ("", "")
    assert [str(warning.message) for warning in caught] == []
    assert (sys.unraisablehook, threading.excepthook) == hooks


# --- warnings of several threads -----------------------------------------------------------------


def in_a_thread(entered: threading.Event, leave: threading.Event) -> threading.Thread:
    def other() -> None:
        with warnings.catch_warnings():
            entered.set()
            leave.wait()

    thread = threading.Thread(target=other)
    thread.start()
    entered.wait()
    return thread


def test_catch_warnings_of_another_thread_that_ends_later_leaves_warnings_on() -> None:
    filters, listed, shown = warnings.filters, list(warnings.filters), warnings.showwarning
    entered, leave = threading.Event(), threading.Event()
    with quiet():
        thread = in_a_thread(entered, leave)
        warnings.warn(SECRET, stacklevel=1)
    leave.set()
    thread.join()
    assert warnings.filters is filters
    assert list(filters) == listed
    assert warnings.showwarning is shown
    with pytest.warns(UserWarning, match="heard"):
        warnings.warn("heard", stacklevel=1)


def test_catch_warnings_of_another_thread_that_ends_meanwhile_shows_nothing() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        filters, listed = warnings.filters, list(warnings.filters)
        entered, leave = threading.Event(), threading.Event()
        thread = in_a_thread(entered, leave)
        with quiet():
            warnings.warn(SECRET, stacklevel=1)
            leave.set()
            thread.join()
            warnings.warn(SECRET, stacklevel=1)
        assert warnings.filters is filters
        assert list(filters) == listed
        warnings.warn("heard", stacklevel=1)
    assert [str(warning.message) for warning in caught] == ["heard"]


# --- interrupts ----------------------------------------------------------------------------------


class Stopped:
    """Someone presses Ctrl-C while this value is read."""

    def __index__(self) -> int:
        stop()
        return 1


def test_an_interrupt_while_a_value_is_read_leaves_and_nothing_is_published() -> None:
    study = made()
    with pytest.raises(KeyboardInterrupt):
        study.publish(Stopped())
    with pytest.raises(ParameterError, match="nothing yet"):
        _ = study.release
    assert not hasattr(study, "_source")


def test_an_interrupt_after_publishing_takes_the_release_back() -> None:
    study = made()

    def program(inside: Study) -> int:
        inside.publish(1)
        with contextlib.suppress(KeyboardInterrupt):
            stop()
        return 1

    with pytest.raises(KeyboardInterrupt):
        study.run(program, rehearse=False)
    with pytest.raises(ParameterError, match="nothing yet"):
        _ = study.release


def test_whatever_a_handler_raises_is_an_interrupt() -> None:
    def handler(number: int, frame: Any) -> None:
        raise RuntimeError("stop")

    before = signal.signal(signal.SIGINT, handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            made().run(lambda s: stop(), rehearse=False)
    finally:
        signal.signal(signal.SIGINT, before)


def test_an_interrupt_while_a_study_leaves_leaves_nothing_silenced(monkeypatch: Any) -> None:
    hooks = sys.unraisablehook, threading.excepthook
    collect = gc.collect

    def interrupted(generation: int = 2) -> int:
        stop()
        return collect(generation)

    monkeypatch.setattr(gc, "collect", interrupted)
    filters = list(warnings.filters)
    with pytest.raises(KeyboardInterrupt):
        made().run(lambda s: 1, rehearse=False)
    assert (sys.unraisablehook, threading.excepthook) == hooks
    assert _running == []
    assert list(warnings.filters) == filters


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_what_a_function_raises_where_it_is_tried_is_a_failure_and_not_quoted(error: Any) -> None:
    def raises(rows: Any) -> Any:
        raise error(SECRET)

    study = made()
    study.mean(0)
    with pytest.raises(ParameterError, match="raised") as caught:
        study.mean(raises)
    assert SECRET not in str(caught.value)
    assert caught.value.__context__ is None
