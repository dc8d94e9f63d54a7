"""A rehearsal lets good programs through, and shows mistakes before a row is read (theory C8)."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from study.small_studies import OPTIONS, Watched, made
from study.stages import line_data
from zerodelta.channels.purification import plan
from zerodelta.errors import ParameterError
from zerodelta.privacy.claims import PureDP
from zerodelta.spaces import Ball, Box, Finite, Multiset, Space, Subsets
from zerodelta.study import minimize
from zerodelta.study import study as study_module
from zerodelta.study.study import Study
from zerodelta.training.descent import plan_descent
from zerodelta.training.losses import Logistic


async def waits(study: Study) -> int:
    return 1


def yields(study: Study) -> Any:
    yield 1


async def yields_later(study: Study) -> Any:
    yield 1


def many(study: Study) -> int:
    for _ in range(50):
        study.mean(0)
    return 1


def publishes_text(study: Study) -> None:
    study.publish("text")


def interrupts(study: Study) -> int:
    raise KeyboardInterrupt


MISTAKES: dict[str, tuple[Callable[[Study], Any], str]] = {
    "raises": (lambda s: 1 / 0, "ZeroDivisionError"),
    "exits": (lambda s: sys.exit(3), "SystemExit"),
    "interrupts": (interrupts, "KeyboardInterrupt"),
    "returns nothing": (lambda s: None, "nothing was returned"),
    "an async function": (waits, "plain function"),
    "returns a coroutine": (lambda s: waits(s), "coroutine"),
    "a generator function": (yields, "plain function"),
    "an async generator": (yields_later, "plain function"),
    "returns a generator": (lambda s: yields(s), "generator"),
    "text": (lambda s: "text", "text"),
    "NaN": (lambda s: float("nan"), "nan"),
    "a vector": (lambda s: [1, 2, 3], r"\[1, 2, 3\]"),
    "publishes text": (publishes_text, "text"),
    "asks too often": (many, "46 more queries"),
    "asks for too much": (lambda s: [s.mean(0, share=1), s.mean(0)][1], "1 more query"),
    "a wrong column": (lambda s: s.mean("z"), "z"),
    "a wrong shape": (lambda s: s.mean(lambda rows: rows[:, 7]), "IndexError"),
    "no bound": (lambda s: s.gradient(0, clip=None), "clip = None"),  # type: ignore[arg-type]
    "a typing mistake": (lambda s: s.maen(0), "AttributeError"),  # type: ignore[attr-defined]
    "no selections planned": (lambda s: s.select([0, 1]), "select"),
    "the mean of the block": (
        lambda s: s.mean(lambda rows: rows[:, 0] - rows[:, 0].mean()),
        "changes with the other rows",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_shows_before_a_row_is_read(mistake: str) -> None:
    program, words = MISTAKES[mistake]
    source = Watched()
    study = made(rows=source)
    with pytest.raises(ParameterError, match=words) as caught:
        study.run(program)
    assert "; " in str(caught.value)  # the remedy
    assert "no data was read yet" in str(caught.value) or "plain function" in words
    assert source.reads == 0
    assert study.run(lambda s: s.mean("x")).value in range(4)  # it is still good
    assert source.reads == 1


RESULTS: list[tuple[Space, Any, Any]] = [
    (Finite(["a", "b"]), "b", "c"),
    (Finite([0.5, 2.0]), 1.7, "2.0"),
    (Finite([False, True]), np.True_, 0.5),
    (Subsets(of=5, size=2), [3, 1], [1]),
    (Multiset(["a", "b"], 2), ["a", "a"], ["a", "c"]),
    (Box(0, 1, dimension=2), np.array([7.0, 0.2]), 0.5),
    (Ball(3, 1), [0, 0, 9], [[0, 0, 1]]),
]


@pytest.mark.parametrize(("space", "good", "bad"), RESULTS, ids=lambda part: repr(part)[:30])
@pytest.mark.parametrize("otherwise", [None, "none"])
def test_a_result_must_be_in_the_space(space: Space, good: Any, bad: Any, otherwise: Any) -> None:
    if otherwise and isinstance(space, (Box, Ball)):
        with pytest.raises(ParameterError, match="otherwise"):
            made(publish=space, otherwise=otherwise)
        return
    options = {"publish": space, "otherwise": otherwise}
    made(**options).run(lambda s: good)
    if otherwise:
        made(**options).run(lambda s: otherwise)
    with pytest.raises(ParameterError, match="an element of"):
        made(**options).run(lambda s: bad)


SHAPES: list[tuple[Space, Any, str]] = [
    (Finite(4), [1, 2, 3], r"one value, and none of shape \(3,\) \(study.mean\(0\) is the mean of"),
    (Finite(4), np.zeros((2, 2)), r"one value, and none of shape \(2, 2\)"),
    (Box(0, 1, dimension=2), 0.5, r"of shape \(2,\), and not \(\)"),
    (Ball(3, 1), [[0, 0, 1]], r"of shape \(3,\), and not \(1, 3\)"),
    (Ball(3, 1), [0, np.nan, 1], r"study.publish\(value\).$"),
    (Finite(4), [[1], [2, 3]], r"study.publish\(value\).$"),
    (Finite(4), None, r"study.publish\(value\).$"),
    (Subsets(of=5, size=2), [1], r"study.publish\(value\).$"),
]


@pytest.mark.parametrize(("space", "bad", "words"), SHAPES, ids=lambda part: repr(part)[:30])
@pytest.mark.parametrize("otherwise", [None, "none"])
def test_a_result_of_another_shape_is_told_the_right_one(
    space: Space, bad: Any, words: str, otherwise: Any
) -> None:
    options = {"otherwise": otherwise} if isinstance(space, Finite) else {}
    with pytest.raises(ParameterError, match=words):
        made(publish=space, **options).run(lambda s: bad)


@pytest.mark.parametrize("columns", [2, 6])
@pytest.mark.parametrize("bounds", [None, (0, 1)])
def test_a_cholesky_of_a_covariance_is_let_through(columns: int, bounds: Any) -> None:
    """Noise for n rows on a few made-up rows refused it 20 times of 20."""
    rows = np.random.default_rng(1).uniform(0, 1, size=(200_000, columns))

    def program(study: Study) -> int:
        np.linalg.cholesky(np.asarray(study.covariance(data_norm=2 * columns**0.5)))
        return 1

    for _ in range(20):
        options = {**OPTIONS, "rounds": 1, "functions": False, "bounds": bounds}
        study = Study(rows, **options)
        study._rehearse(program)  # raises if the program is refused


def test_the_rehearsal_has_the_noise_and_the_size_of_the_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from zerodelta.mechanisms.sum_noise import RoundedGaussian

    seen: list[tuple[Any, Any]] = []

    def apply(self: RoundedGaussian, sums: Any, bits: Any) -> Any:
        seen.append((self.variance, sums.shape))
        return sums

    monkeypatch.setattr(RoundedGaussian, "apply", apply)
    answers: list[tuple[Any, ...]] = []

    def program(study: Study) -> int:
        answers.append(
            (study.size, study.count(0), *np.asarray(study.histogram(0, size=2)), study.mean(0))
        )
        return 1

    rows = np.linspace(0, 1, 1001)
    Study(rows, **OPTIONS).run(program)
    half = len(seen) // 2
    assert seen[:half] == seen[half:]
    rehearsed, real = answers
    assert rehearsed[0] == real[0] == 1001
    assert 0 < float(rehearsed[-1]) < 1
    assert float(rehearsed[2]) == 1001 // 7  # one of seven made-up rows is 0


def test_remaining_is_an_internal_answer_that_ends_with_the_study() -> None:
    seen: list[Any] = []

    def program(study: Study) -> int:
        seen.append(repr(study.remaining))
        study.mean(0, share="1/4")
        seen.append(float(study.remaining))
        return 1

    study = made()
    study.run(program, rehearse=False)
    assert seen == ["<internal>", 0.75]
    assert not hasattr(study, "remaining")
    with made() as other:
        other.mean(0)
    assert not hasattr(other, "remaining")


def test_a_descent_is_planned_once_in_rehearsal_and_run(monkeypatch: pytest.MonkeyPatch) -> None:
    planned: list[Any] = []

    def counted(*given: Any, **options: Any) -> Any:
        planned.append(options)
        return plan_descent(*given, **options)

    monkeypatch.setattr(minimize, "plan_descent", counted)

    def study() -> Study:
        return Study(line_data(100), epsilon=1, publish=Ball(2, 1), rounds=3)

    rehearsed = study()
    rehearsed.run(lambda s: s.minimize(Logistic(), data_norm=1))
    assert len(planned) == 1
    looked_at = study()
    shown = looked_at.plan_minimize(Logistic(), data_norm=1)
    assert looked_at.plan_minimize(Logistic(), data_norm=1) is shown
    looked_at.minimize(Logistic(), data_norm=1)
    assert len(planned) == 2
    other = study()
    other.plan_minimize(Logistic(), data_norm=1)
    other.minimize(Logistic(), data_norm=2)  # not the same descent
    assert len(planned) == 4


def test_a_study_is_planned_once(monkeypatch: pytest.MonkeyPatch) -> None:
    planned: list[Any] = []

    def counted(*given: Any, **options: Any) -> Any:
        planned.append(options)
        return plan(*given, **options)

    monkeypatch.setattr(study_module, "plan", counted)
    made().run(lambda s: s.mean(0) * 4)
    assert len(planned) == 1


def test_a_study_has_its_ticket_before_a_row_is_read() -> None:
    source = Watched()
    study = made(rows=source)
    ticket = study._opened.ticket
    assert source.reads == 0
    assert ticket.certificate.claim == PureDP(1)
    release = study.run(lambda s: s.mean(0))
    assert source.reads == 1
    assert study._opened.ticket is ticket
    assert release.certificate is ticket.certificate  # issued once: the program was guarded


def test_a_ticket_serves_no_other_claim() -> None:
    opened = made()._opened
    with pytest.raises(ParameterError, match="for which the ticket was taken"):
        opened.replanned(made(epsilon=2).plan.release_plan(guarded=True))
