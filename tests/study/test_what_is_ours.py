"""Nothing of the caller's passes for code of this library, whose certificates are proven."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import zerodelta as zd
from data.opening import opened
from sampling import Replace
from study.small_studies import ROWS, Watched, made
from zerodelta.channels.purification import plan, purify
from zerodelta.data.arrays import ArraySource
from zerodelta.data.cells import numbers
from zerodelta.data.isolation import is_trusted_code
from zerodelta.data.row_queries import trial_rows
from zerodelta.data.rowwise import Rowwise
from zerodelta.data.source import FOREIGN_SOURCE, Source, is_trusted_source
from zerodelta.errors import ParameterError
from zerodelta.paper.algorithm_07_08 import pure_frank_wolfe
from zerodelta.privacy.certificate import PROGRAM
from zerodelta.privacy.steps import Status
from zerodelta.spaces import Ball, Box, Finite, Multiset, Space, Subsets, WithExtra
from zerodelta.study.study import Study
from zerodelta.training.frank_wolfe import VertexSteps
from zerodelta.training.gradient_sums import Examples
from zerodelta.training.gradients import CallableGradients
from zerodelta.training.losses import Logistic
from zerodelta.training.models import LinearPredictor, Model

# --- yes or no -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["functions", "rowwise", "selects"])
@pytest.mark.parametrize("value", [-1, 2, 0, 1, "no", None, 1.0, [True]])
def test_only_true_and_false_are_yes_and_no(name: str, value: Any) -> None:
    with pytest.raises(ParameterError, match=name):
        made(**{name: value})


# --- functions -----------------------------------------------------------------------------------


class Shifty(Sequence[int]):
    """A list of columns until its length is asked; then a function."""

    seen: list[int]

    def __getitem__(self, index: Any) -> Any:
        return [0][index]

    def __len__(self) -> int:
        def call(self: Any, rows: Any) -> Any:
            self.seen.append(len(rows))
            return rows[:, 0]

        type(self).__call__ = call  # type: ignore[method-assign]
        return 1


def test_columns_that_turn_into_a_function_see_no_rows() -> None:
    columns = Shifty()
    columns.seen = []
    release = made(functions=False).run(lambda s: s.mean(columns), rehearse=False)
    assert release.certificate.status is Status.PROVEN
    assert columns.seen == []


def test_nobody_can_pass_a_function_for_one_of_ours() -> None:
    class Mine(LinearPredictor):
        def gradient(self, parameters: Any, rows: Any, columns: Any) -> Any:
            return rows

    mine = Mine(features=(0,), loss=Logistic(), data_norm=1)
    ours = LinearPredictor(features=(0,), loss=Logistic(), data_norm=1)

    def forged(rows: Any) -> Any:
        return rows[:, 0]

    forged.__module__ = Model.__module__
    functions: list[Any] = [lambda rows: rows, forged, len, mine.gradient, zd.mean.__get__(mine)]
    for function in functions:
        with pytest.raises(ParameterError, match="the function itself"):
            Rowwise(function)
    with pytest.raises(ParameterError, match="the function itself"):
        mine._gradient_at(np.zeros(2), ("0", "1"))
    asked = ours._gradient_at(np.zeros(2), ("0", "1"))
    study = made(functions=False, rowwise=True)  # ours is shown whole blocks, and is proven
    assert study.gradient(asked, clip=1).shape == (2,)
    assert not study._shares.untouched  # it was answered, not refused as a function of the caller's


def test_an_object_of_ours_that_holds_a_callers_function_is_not_ours() -> None:
    """Gradients and Frank-Wolfe steps are our classes, and call whatever loss they were given."""

    def mine(theta: Any, rows: Any) -> Any:
        return rows - theta

    held = CallableGradients(Examples.of_arrays(ROWS), gradient=mine, radius=1, clip=1, dimension=2)
    steps = VertexSteps.plan(
        ROWS, None, loss=mine, domain=Ball(2, 1, norm=1),
        lipschitz=1, iterations=1, steps=8, rowwise=False,
    )  # fmt: skip
    functions: list[Any] = [steps._summand(np.zeros(2)), steps.run, held.total]
    for function in functions:
        with pytest.raises(ParameterError, match="the function itself"):
            Rowwise(function)


def test_a_kept_copy_of_rows_cannot_be_made_writable() -> None:
    (block,) = opened(ArraySource(ROWS), keep=True).blocks()
    for array in (block, block.base if isinstance(block.base, np.ndarray) else block):
        with pytest.raises(ValueError, match="WRITEABLE"):
            array.flags.writeable = True


def test_an_interrupt_of_a_loss_does_not_bring_out_where_a_descent_is() -> None:
    """Whatever the gradient does at a hidden θ: it was tried at the public start only."""

    def interrupts(theta: Any, rows: Any) -> Any:
        if theta.any() and not rows.any():
            raise KeyboardInterrupt(f"secret {theta}")
        return theta - rows

    def changes_shape(theta: Any, rows: Any) -> Any:
        return "no" if theta.any() and not rows.any() else theta - rows

    for loss in (interrupts, changes_shape):
        release = pure_frank_wolfe(
            np.ones((50, 2)), loss=loss, domain=Ball(2, 1, norm=1), lipschitz=1, epsilon=2,
            iterations=4, mixing_weight="0.01",
        )  # fmt: skip
        assert release.value.shape == (2,)


# --- sources -------------------------------------------------------------------------------------


def test_nothing_takes_the_place_of_a_method_of_our_source() -> None:
    source = ArraySource(ROWS)
    with pytest.raises(AttributeError):
        source.blocks = lambda ticket: iter(())  # type: ignore[method-assign]
    assert not hasattr(source, "__dict__")


def test_made_up_rows_are_no_data() -> None:
    assert not is_trusted_source(trial_rows(ROWS, ("x", "y")))
    with pytest.raises(ParameterError, match="array"):
        made(rows=trial_rows(ROWS, ("x", "y"), rows=10**6))


class Changing(Watched):
    """A source whose rows change whenever they are read."""

    def blocks(self, ticket: Any) -> Iterator[Any]:
        self.table = self.table + self.reads
        return super().blocks(ticket)


@pytest.mark.parametrize("kind", [Watched, Changing])
def test_a_foreign_source_is_read_once(kind: Any) -> None:
    source: Source = kind()
    study = made(
        rows=source, epsilon=10**6, mixing_probability="1/2", functions=False, bounds=(0, 100)
    )
    first = float(study.mean(0))
    source.table[:] = 50.0  # type: ignore[attr-defined]
    assert abs(float(study.mean(0)) - first) < 1
    assert source.reads == 1  # type: ignore[attr-defined]
    assert FOREIGN_SOURCE in study.publish(1).certificate.assumed


def test_an_interrupt_leaves_no_rows_half_read(replace: Replace) -> None:
    """A table that is only half filled would answer all later questions."""
    read, calls = numbers, []

    def interrupted(part: Any, *, out: Any) -> Any:
        calls.append(len(part))
        if len(calls) == 2:
            raise KeyboardInterrupt
        return read(part, out=out)

    replace("arrays.numbers", interrupted)
    kept = opened(ArraySource(ROWS), keep=True)
    with pytest.raises(KeyboardInterrupt):
        list(kept.blocks())
    assert np.array_equal(np.concatenate(list(kept.blocks())), ROWS)


# --- spaces --------------------------------------------------------------------------------------


class Evil(Finite):  # type: ignore[misc]
    """Publishes anything."""

    def project(self, value: object) -> Any:
        return value


class EvilBall(Ball):  # type: ignore[misc]
    """Publishes anything."""

    def project(self, value: object) -> Any:
        return value


class EvilSubsets(Subsets):  # type: ignore[misc]
    """Numbers what it likes."""


@pytest.mark.parametrize("space", [Evil(4), EvilBall(2, 1), EvilSubsets(of=4, size=2)])
def test_a_space_of_the_callers_is_refused(space: Space) -> None:
    with pytest.raises(ParameterError, match="no subclass"):
        made(publish=space)
    with pytest.raises(ParameterError, match="no subclass"):
        made(publish=space, otherwise="none")
    with pytest.raises(ParameterError, match="no subclass"):
        plan(space, epsilon=1)
    with pytest.raises(ParameterError, match="no subclass"):
        purify(1, space=space, claim=zd.GaussianDP("1/10"), epsilon=1)


def test_nor_can_it_hide_in_another_space() -> None:
    with pytest.raises(ParameterError):
        WithExtra(Evil(4), "none")
    with pytest.raises(ParameterError):
        Multiset(Evil(4), 2)
    for space in (Finite(4), Multiset(Finite(4), 2), WithExtra(Finite(4), "none"), Box(0, 1)):
        assert plan(space, epsilon=1).space is space


# --- programs ------------------------------------------------------------------------------------


def test_a_descent_in_a_program_assumes_what_is_assumed_of_programs() -> None:
    rows = np.column_stack([np.linspace(-1, 1, 50), np.arange(50) % 2])

    def study() -> Study:
        return Study(rows, epsilon=1, publish=Ball(1, 1), rounds=2)

    alone = study().minimize(Logistic(), data_norm=1).certificate
    inside = study().run(lambda s: s.minimize(Logistic(), data_norm=1)).certificate
    assert set(PROGRAM).isdisjoint(alone.assumed)
    assert set(PROGRAM) <= set(inside.assumed)
    assert inside.status is Status.PROVEN


def test_code_of_another_file_and_what_arrays_or_keywords_hold_are_not_ours() -> None:
    names = vars(sys.modules["zerodelta.training.models"])
    forged = types.FunctionType((lambda rows: rows[:, 0]).__code__, names)
    ours = next(f for f in names.values() if type(f) is types.FunctionType and is_trusted_code(f))
    assert not is_trusted_code(forged)
    assert not is_trusted_code(np.array([forged], dtype=object))
    assert is_trusted_code(np.zeros(2))
    other = types.FunctionType(ours.__code__, names, closure=ours.__closure__)
    other.__kwdefaults__ = {"extra": forged}
    assert not is_trusted_code(other)
