"""A study is used once: one process, one publication, and nothing else that can be seen."""

from __future__ import annotations

import copy
import logging
import math
import os
import pickle
import signal
import sys
import threading
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from study.small_studies import ROWS, Watched, made
from zerodelta.data.isolation import internal_array
from zerodelta.errors import ParameterError
from zerodelta.privacy.release import Release
from zerodelta.privacy.verify import verify
from zerodelta.spaces import Finite
from zerodelta.study.study import Study


def every_use(study: Study) -> list[Callable[[], Any]]:
    """All that reaches the data, or publishes."""
    return [
        lambda: study.publish(1),
        lambda: study.run(lambda s: 1),
        lambda: study.run(lambda s: 1, rehearse=False),
        lambda: study.__enter__(),
        lambda: study.count(0),
        lambda: study.sum(0),
        lambda: study.mean(0),
        lambda: study.gradient(0, clip=1),
        lambda: study.histogram(0, size=2),
        lambda: study.covariance(data_norm=1),
    ]


def is_over(study: Study) -> bool:
    for use in every_use(study):
        with pytest.raises(ParameterError, match="make a new Study"):
            use()
    return True


# --- once ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["publish", "run", "with", "with and no publish", "interrupted"])
def test_a_study_that_has_ended_answers_and_publishes_nothing(way: str) -> None:
    source = Watched()
    study = made(rows=source)
    if way == "publish":
        study.publish(study.count(0) > 60)
    elif way == "run":
        study.run(lambda s: s.count(0) > 60)
    elif way == "interrupted":
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        with pytest.raises(KeyboardInterrupt), study:
            signal.raise_signal(signal.SIGINT)
        signal.signal(signal.SIGINT, before)
    else:
        with study:
            study.count(0)
            if way == "with":
                study.publish(2)
    reads = source.reads
    assert is_over(study)
    assert source.reads == reads
    if way == "interrupted":
        with pytest.raises(ParameterError, match="nothing yet"):
            _ = study.release
    else:
        assert isinstance(study.release, Release)


def test_the_second_publication_in_a_program_changes_nothing() -> None:
    results = []

    def program(study: Study) -> Any:
        results.append(study.publish(1))
        study.publish(2)

    for _ in range(5):
        study = made()
        assert study.run(program, rehearse=False) is results[-1]


def test_a_study_cannot_be_copied_or_pickled() -> None:
    study = made()
    attempts: list[Callable[[Any], Any]] = [
        copy.copy,
        copy.deepcopy,
        lambda s: copy.deepcopy({"in": [s]}),
        *(partial(pickle.dumps, protocol=p) for p in range(pickle.HIGHEST_PROTOCOL + 1)),
        lambda s: pickle.dumps([s]),
    ]
    for attempt in attempts:
        with pytest.raises(TypeError, match="publishes once"):
            attempt(study)
    assert study.publish(1).value in range(4)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Python 3.12 about threads and fork
def test_a_forked_child_can_neither_ask_nor_publish() -> None:
    source = Watched()
    study = made(rows=source)
    with study:
        child = os.fork()
        if child == 0:  # no pytest in here: report by the exit status
            refused = 0
            for use in every_use(study):
                try:
                    use()
                except ParameterError as error:
                    refused += "another process" in str(error)
                except BaseException:
                    break
            try:
                study.__exit__(None, None, None)
            except ParameterError:
                refused += 1
            os._exit(refused if source.reads == 0 else 99)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == len(every_use(study)) + 1
        study.publish(1)  # the parent goes on
    assert study.release.value in range(4)


def test_threads_publish_once_and_never_spend_more_than_there_is() -> None:
    for _ in range(10):
        study = made(rounds=8)
        start = threading.Barrier(8)
        releases: list[Any] = []
        refusals: list[Any] = []

        shares = study._shares

        def use(study: Study, start: Any, releases: list[Any], refusals: list[Any]) -> None:
            start.wait()
            for _ in range(4):
                try:
                    study.count(0)
                except ParameterError:
                    refusals.append(1)
            try:
                releases.append(study.publish(1))
            except ParameterError:
                refusals.append(1)

        threads = [
            threading.Thread(target=use, args=(study, start, releases, refusals)) for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(releases) == 1
        assert study.release is releases[0]
        assert shares._remaining >= 0


def test_the_noise_of_every_question_is_fresh() -> None:
    """The same question, asked again, has other noise; so has the same study of the same rows."""
    study, again = (made(rounds=50, mixing_probability="1/4") for _ in range(2))
    answers = [float(s.sum(0)) for s in (study, again) for _ in range(50)]
    assert len(set(answers)) == 100


# --- a program that fails ------------------------------------------------------------------------


def fails(_: Study) -> Any:
    raise RuntimeError("the data says so")


def leaves(_: Study) -> Any:
    sys.exit("the data says so")


def asks_then_fails(study: Study) -> Any:
    return 1 / int(study.count(0) * 0)


def returns_nothing(study: Study) -> Any:
    study.count(0)


def returns_junk(_: Study) -> Any:
    return object()


def warns(_: Study) -> Any:
    warnings.warn("the data says so", stacklevel=1)
    return np.log(np.array([-1.0, 0.0]))


PROGRAMS: dict[str, Callable[[Study], Any]] = {
    "raises": fails,
    "exits": leaves,
    "asks and raises": asks_then_fails,
    "returns nothing": returns_nothing,
    "returns junk": returns_junk,
    "warns": warns,
}


@pytest.mark.parametrize("how", PROGRAMS)
def test_nothing_of_a_failure_is_seen(how: str, capsys: Any, caplog: Any) -> None:
    """Warnings are errors in these tests, so none was given."""
    with caplog.at_level(logging.DEBUG):
        release = made().run(PROGRAMS[how], rehearse=False)
    assert verify(release.certificate)
    assert not caplog.text
    assert capsys.readouterr() == ("", "")


def test_a_with_block_hides_what_happens_in_it() -> None:
    for program in PROGRAMS.values():
        study = made()
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with study as inside:
                assert inside is study
                program(study)
        assert study.release.value in range(4)


def test_without_a_guard_the_certificate_says_so() -> None:
    """Outside of run and with, an exception does get out: the certificate lists that as assumed."""
    text = "did not stop, raise or fail to publish"
    study = made()
    assert text in study.publish(1).certificate.explain()
    with made() as guarded:
        guarded.publish(1)
    assert text not in guarded.release.certificate.explain()
    late = made()
    late.count(0)  # it could have stopped here
    with late:
        late.publish(1)
    assert text in late.release.certificate.explain()
    assert text in _asked_before_run().certificate.explain()
    with made() as nested:
        nested.count(0)
        nested.run(lambda s: 1, rehearse=False)
    assert text not in nested.release.certificate.explain()


def _asked_before_run() -> Release:
    study = made()
    study.count(0)
    return study.run(lambda s: 1)


def test_a_question_beyond_the_plan_gets_a_constant_and_reads_nothing() -> None:
    source = Watched()
    study = made(rows=source, rounds=1, selects=True)
    with study:
        study.count(0)
        reads = source.reads
        n = len(ROWS)
        for answer, constant in (
            (study.count(0), n / 2),
            (study.sum(0), n / 2),
            (study.sum([0, 1], bounds=([0, -1], [1, 5])), [n / 2, 2 * n]),
            (study.mean(0, bounds=(-1, 3)), 1),
            (study.gradient([0, 1], clip=1), [0, 0]),
            (study.histogram(0, size=4), [n / 4] * 4),
            (study.covariance(data_norm=1), np.zeros((2, 2))),
            (study.select([0, 1]), 0),
            (study.mean(0, share="1/1000"), 0.5),
        ):
            np.testing.assert_array_equal(np.asarray(answer), constant)
        assert source.reads == reads


# --- rehearsal -----------------------------------------------------------------------------------


def test_a_program_that_uses_the_study_itself_is_stopped_in_the_rehearsal() -> None:
    """It would ask the data while its errors are still shown."""
    source = Watched()
    study = made(rows=source)
    for program in (
        lambda s: study.mean("x"),
        lambda s: study.publish(1),
        lambda s: study.run(lambda t: 1),
    ):
        with pytest.raises(ParameterError, match="the study itself, in a rehearsal"):
            study.run(program)
    assert source.reads == 0
    assert study._shares.untouched


def test_a_rehearsal_spends_nothing() -> None:
    study = made(rounds=2)
    left: list[Any] = []
    answers: list[Any] = []

    def program(inside: Study) -> int:
        answers.append((inside.size, inside.count(0), inside.count(0)))
        left.append(float(inside.remaining))
        return 1

    study.run(program)
    rehearsed, real = answers
    assert rehearsed[0] == real[0] == len(ROWS)
    assert left == [0, 0]
    assert 60 not in (float(real[1]), float(real[2]))  # noise, not the constant


@pytest.mark.parametrize("share", [0.0, -1.0, math.nan, math.inf, 2.0, [0.5, 0.5]])
def test_an_internal_share_that_is_none_gets_a_constant_and_no_exception(share: Any) -> None:
    study = Study(np.ones((5, 1)), epsilon=1, publish=Finite(2), rounds=3, bounds=(0, 1))
    assert float(study.mean(0, share=internal_array(share))) == 0.5
    assert float(study.mean(0, share=internal_array(0.25))) != 0.5
