"""What an adversarial reader found: functions, values and subclasses that do more than they say."""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np
import pytest

from study.stages import Stage, line_data
from zerodelta.data.isolation import internal_array
from zerodelta.data.rows import Rows
from zerodelta.errors import ParameterError
from zerodelta.privacy.steps import Status
from zerodelta.spaces import Ball, Finite
from zerodelta.study.study import Study
from zerodelta.training.gradient_sums import GRADIENT
from zerodelta.training.models import TanhNetwork


def study_of(rows: Any, **options: Any) -> Study:
    chosen = {"epsilon": 1, "publish": Finite(2), "rounds": 1000, "bounds": (0, 1), **options}
    return Study(rows, **chosen)


@pytest.mark.parametrize("ones", [96, 97])
def test_a_row_cannot_spend_budget(ones: int) -> None:
    rows = np.zeros((200, 1))
    rows[:ones] = 1.0

    def program(study: Study) -> bool:
        def spender(row: Any) -> Any:
            if row[0, 0] > 0.5:
                study.mean(0, share="1/1000")
            return row[:, 0]

        study.mean(spender, share="1/1000")
        return bool(study.mean(0, share="9/10") != 0.5)

    answers = {
        study_of(rows, rowwise=True, mixing_probability="1e-9").run(program, rehearse=False).value
        for _ in range(3)
    }
    assert answers == {1}  # the budget is whole, whatever the rows are


def test_a_row_cannot_publish() -> None:
    rows = np.ones((50, 1))
    study = study_of(rows, rowwise=True)

    def leak(row: Any) -> Any:
        if row[0, 0] == 1:  # not so on the public rows
            study.publish(1)
        return row[:, 0]

    study.mean(leak)
    assert study.publish(0) is study.release
    with pytest.raises(ParameterError, match="closed"):
        study.publish(0)


class Greedy:
    """A value that publishes when it is read."""

    def __init__(self, study: Study) -> None:
        self.study = study
        self.releases: list[Any] = []

    def __index__(self) -> int:
        self.releases.append(self.study.publish(1))
        return 1


def test_a_value_cannot_publish_while_it_is_published() -> None:
    study = study_of(np.ones((5, 1)))
    greedy = Greedy(study)
    release = study.publish(greedy)
    assert greedy.releases == []
    assert study.release is release


def test_a_gradient_cannot_publish_an_iterate() -> None:
    study = Stage(line_data(50), Ball(2, 1), rounds=3)
    seen: list[Any] = []

    def gradient(theta: Any, rows: Any) -> Any:
        if len(rows) > 7:  # not on the public rows of the trial
            seen.append(study.publish(theta))
        return rows[:, :2]

    release = study.minimize(gradient)
    assert seen == []
    assert study.release is release


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_fork_inside_a_descent_publishes_nothing() -> None:
    study = Stage(line_data(50), Ball(2, 1), rounds=3)
    children: list[int] = []
    parent = os.getpid()

    def gradient(theta: Any, rows: Any) -> Any:
        if len(rows) > 7 and not children and os.getpid() == parent:
            children.append(os.fork())
        return rows[:, :2]

    try:
        study.minimize(gradient)
        published = True
    except ParameterError:
        published = False
    if os.getpid() != parent:
        os._exit(17 if published else 0)
    assert published
    assert os.waitstatus_to_exitcode(os.waitpid(children[0], 0)[1]) == 0


def test_a_network_refuses_other_columns() -> None:
    network = TanhNetwork(lower=(0, 0), upper=(1, 1))
    study = Stage(np.zeros((20, 4)), Ball(network.parameters, 1), rounds=2)
    with pytest.raises(ParameterError, match="3 features"):
        study.minimize(network)


def test_a_row_by_row_study_minimizes_row_by_row() -> None:
    sizes = set()

    def gradient(theta: Any, rows: Any) -> Any:
        sizes.add(len(rows))
        return rows[:, :2]

    study = Study(line_data(30), epsilon=1, publish=Ball(2, 1), rounds=2, rowwise=True)
    certificate = study.minimize(gradient).certificate
    assert certificate.status is Status.ASSERTED  # it may keep a state all the same
    assert GRADIENT in certificate.assumed
    assert sizes == {1, 7}  # 7: the made-up rows of the trial


def test_ten_tenths_are_ten_questions() -> None:
    study = study_of(np.ones((5, 1)), rounds=10)
    answers = [float(study.mean(0, share=0.1)) for _ in range(10)]
    assert 0.5 not in answers
    assert float(study.mean(0, share=0.1)) == 0.5


def test_a_tiny_internal_share_selects_without_raising() -> None:
    study = study_of(np.ones((5, 2)), selects=True)
    assert int(study.select([0, 1], share=internal_array(1e-60))) == 0


def test_named_columns_are_not_read_row_by_row(monkeypatch: Any) -> None:
    seen, summed = [], Rows.sum

    def watched(self: Any, *question: Any, rowwise: bool = False, joint: bool = False) -> Any:
        seen.append(rowwise)
        return summed(self, *question, rowwise=rowwise, joint=joint)

    monkeypatch.setattr(Rows, "sum", watched)
    study = study_of(np.ones((100, 2)), rowwise=True)
    study.mean(0)
    study.mean(lambda block: block[:, 0])
    assert seen == [False, True]


def test_no_columns_and_no_function_are_named() -> None:
    with pytest.raises(ParameterError, match="one column"):
        study_of(np.zeros((5, 0)))
    with pytest.raises(ParameterError, match="function of rows"):
        study_of(np.zeros((5, 1))).mean(None)  # type: ignore[arg-type]


def test_clip_beside_layers_is_refused() -> None:
    study = Stage(line_data(50), Ball(2, 1))
    with pytest.raises(ParameterError, match="layers"):
        study.minimize(lambda theta, rows: rows[:, :2], clip=1, layers=[(2, 1)])


@pytest.mark.parametrize("end", [-1.0, 0.0, math.nan, math.inf, -math.inf, 1e-320, 1e300])
def test_internal_bounds_that_are_none_raise_nothing(end: float) -> None:
    study = study_of(np.ones((50, 1)))
    assert np.isfinite(float(study.mean(0, bounds=(0, internal_array(end)))))


def test_internal_bounds_are_used() -> None:
    study = study_of(np.ones((50, 2)), rounds=1, mixing_probability="0.5")
    upper = internal_array([1e-6, 4e-6])
    answer = np.asarray(study.mean([0, 1], bounds=(0, upper)))
    assert np.abs(answer).max() < 1e-4  # clipped to, and noised for, a few millionths
