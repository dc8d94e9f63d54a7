"""Bits of a test come by a context: captured once for each release, when its certificate is issued.

(What every release is under the same bits of the operating system: tests/golden.)
"""

from __future__ import annotations

import inspect
import threading
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zerodelta as zd
from completeness import walk
from golden.golden import CASES, asked
from spine.calls import calls
from zerodelta.data import pieces, rows
from zerodelta.errors import ParameterError
from zerodelta.exact import bits
from zerodelta.exact.bits import BitSource, ReplayBits, SystemBits, current_bits
from zerodelta.privacy.certificate import OS_ENTROPY, REPLAYED
from zerodelta.privacy.release import Release
from zerodelta.spaces import Finite
from zerodelta.study.study import Study
from zerodelta.testing import replayed

ROWS = np.linspace(0, 1, 300)


class Counted(BitSource):
    """Replayed bits that count how many bytes were read."""

    def __init__(self, label: str) -> None:
        self._bits, self.count = ReplayBits(label), 0

    def read(self, count: int) -> bytes:
        self.count += count
        return self._bits.read(count)


def mean() -> Release:
    return zd.mean(ROWS, bounds=(0, 1), epsilon=1)


def study(**options: Any) -> Study:
    given: dict[str, Any] = {
        "publish": Finite(4),
        "rounds": 3,
        "bounds": (0, 1),
        "functions": False,
    }
    return zd.Study(ROWS, epsilon=1, **{**given, **options})


def program(study: Study) -> int:
    return int(study.mean(0) > 0.5)


# -- the context ----------------------------------------------------------------------------------


def test_a_label_begins_anew_and_a_source_goes_on() -> None:
    once = replayed("a test")(mean)
    assert once().value == once().value
    source = ReplayBits("a test")
    on = replayed(source)(mean)
    assert once().value == on().value != on().value
    with replayed("a test") as bits:
        assert current_bits() is bits
        assert mean().value == once().value


def test_it_ends_with_its_block_and_blocks_nest() -> None:
    assert type(current_bits()) is SystemBits
    with replayed("outer") as outer:
        with replayed("inner") as inner, replayed(SystemBits()):
            assert type(current_bits()) is SystemBits
        assert inner is not outer
        assert current_bits() is outer
    with pytest.raises(ZeroDivisionError), replayed("fails"):
        raise ZeroDivisionError
    assert type(current_bits()) is SystemBits


def test_what_is_released_inside_is_branded_and_nothing_else() -> None:
    inside = replayed("a test")(mean)()
    assert inside.certificate.randomness == REPLAYED
    with pytest.raises(zd.errors.CertificateError, match="test bits"):
        zd.verify(inside.certificate)
    for outside in (mean(), replayed(SystemBits())(mean)()):
        assert outside.certificate.randomness == OS_ENTROPY
        assert zd.verify(outside.certificate)


@pytest.mark.parametrize("wrong", [None, 7, b"bytes", np.random.default_rng(0)])
def test_a_seed_or_a_generator_is_refused(wrong: Any) -> None:
    with pytest.raises(ParameterError, match=r"^bits = "), replayed(wrong):
        pass


# -- captured once --------------------------------------------------------------------------------


def test_a_plan_captures_for_each_release() -> None:
    plan = zd.plan(Finite(4), epsilon=1, base=zd.purification.ZCDP("1/100"))
    assert replayed("a test")(plan.purify)(3).certificate.randomness == REPLAYED
    assert plan.purify(3).certificate.randomness == OS_ENTROPY
    assert (
        replayed("a test")(plan.certificate)(zd.purification.ZCDP("1/100")).randomness == REPLAYED
    )
    with replayed("a test"):
        inside = zd.plan(Finite(4), epsilon=1, base=zd.purification.ZCDP("1/100"))
    assert inside.purify(3).certificate.randomness == OS_ENTROPY


USES: dict[str, Callable[[Study], Any]] = {
    "run": lambda made: made.run(program),
    "run at once": lambda made: made.run(program, rehearse=False),
    "a block": lambda made: made.__enter__(),
    "a question": lambda made: made.count(0),
    "publish": lambda made: made.publish(1),
}


@pytest.mark.parametrize("how", USES)
@pytest.mark.parametrize("at_first", ["system", "replayed"])
def test_a_study_is_run_with_the_bits_it_was_made_with(
    how: str, at_first: str, tmp_path: Path
) -> None:
    """It says so before it is paid for, and can be run where it was made."""
    ledger = zd.Ledger(tmp_path / "spent", budget=10)
    first, other = ReplayBits("first"), Counted("other")
    here = replayed(SystemBits() if at_first == "system" else first)
    there = [replayed(other), *([] if at_first == "system" else [replayed(SystemBits())])]
    made = here(lambda: study(ledger=ledger))()
    for each in there:
        with pytest.raises(ParameterError, match="bits"):
            each(USES[how])(made)
    assert other.count == 0
    assert ledger.spent == 0
    expected = OS_ENTROPY if at_first == "system" else REPLAYED
    assert here(made.run)(program).certificate.randomness == expected
    assert ledger.spent == 1


def test_a_program_cannot_change_where_its_study_draws_from() -> None:
    """Its error is hidden as all others are: `otherwise` is published with the certified bits."""
    other, left = Counted("other"), ExitStack()

    def changing(study: Study) -> int:
        with replayed(other):
            return int(study.mean(0) > 0)

    def leaving_open(study: Study) -> int:
        left.enter_context(replayed(other))
        return 3

    for each in (changing, leaving_open):
        made = study(otherwise=2, mixing_probability=1e-9)
        with left:
            release = made.run(each, rehearse=False)
        assert release.value == 2
        assert zd.verify(release.certificate)
    assert other.count == 0


# -- every release, and threads -------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in CASES if name != "verify"])
def test_every_release_is_drawn_from_the_replayed_bits_alone(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the threads of the library, too: these are handed the bits, and have no context."""
    monkeypatch.setattr(rows, "_FEWEST_ENTRIES", 0)
    monkeypatch.setattr(Study, "_rehearse", lambda *_: None)  # with made-up rows
    for module in (rows, pieces):
        monkeypatch.setattr(module, "processors", lambda: 3)
    called, options = asked(name)
    read: list[int] = []
    real = bits._system_bytes

    def noted(count: int) -> bytes:
        read.append(count)
        return real(count)

    monkeypatch.setattr(bits, "_system_bytes", noted)
    with warnings.catch_warnings(), replayed(Counted(name)) as source:
        warnings.simplefilter("error")
        found = CASES[name](called, **options)
    release = getattr(found, "release_", found)
    assert set(read) <= {16}  # the number of a record, and public seeds
    if isinstance(release, Release):
        assert release.certificate.randomness == REPLAYED
        assert source.count or release.certificate.claim == zd.purification.PureDP(0)  # type: ignore[attr-defined]


def test_threads_of_a_caller_begin_without() -> None:
    with replayed("a test"), ThreadPoolExecutor(1) as pool:
        assert pool.submit(mean).result().certificate.randomness == OS_ENTROPY
        inside = pool.submit(replayed("a test")(mean)).result()
    assert inside.certificate.randomness == REPLAYED


def test_a_study_of_a_test_is_not_run_in_a_thread_that_has_other_bits() -> None:
    errors: list[BaseException] = []

    def run() -> None:
        try:
            made.run(program)
        except ParameterError as error:
            errors.append(error)

    with replayed("a test"):
        made = study()
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        assert "bits" in str(errors.pop())
        assert made.run(program).certificate.randomness == REPLAYED


# -- structure ------------------------------------------------------------------------------------

ASKING = {
    "spine/run.py": ["_opened", "_check_bits"],
    "channels/purification.py": ["certificate"],
    "paper/algorithm_07_08.py": ["gaussian_sketch"],  # public, and drawn before the release
    "exact/integers.py": ["proportional_sampling"],  # no release: of what was released
    "audit/sampled.py": ["sequential", "search", "lower_bound"],  # the coins of a test
}
"""Where `current_bits` is called: where certificates are issued, and what needs none."""

CONSTRUCTING = {
    "exact/bits.py": ["current_bits"],
    "spine/verbs.py": ["record"],  # a number that no two records have in common
    "sklearn/classifiers.py": ["_seed"],  # public
    "study/study.py": ["_rehearse"],  # with made-up rows
    "interop/opendp.py": ["function", "function"],  # inside of OpenDP, which has no other source
}
"""Where bits of the operating system are asked for whatever a test replays."""


def test_the_context_is_read_where_certificates_are_issued_and_nowhere_else() -> None:
    assert calls("current_bits") == ASKING
    assert calls("SystemBits") == CONSTRUCTING


def test_nobody_above_the_samplers_takes_bits_that_may_be_left_out() -> None:
    """Handed on they are an argument; asked for they are a context."""
    for module in walk.modules():
        for found in walk.own(module):
            functions = [found, *vars(found).values()] if inspect.isclass(found) else [found]
            for function in filter(inspect.isfunction, functions):
                for name, each in inspect.signature(function).parameters.items():
                    if "BitSource" in str(each.annotation) or name in ("bits", "seed"):
                        assert each.default is each.empty, f"{function.__qualname__}({name}=…)"
