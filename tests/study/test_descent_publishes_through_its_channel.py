"""What leaves a descent is what its channel made of the last iterate, and nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from study.stages import read
from zerodelta.exact.bits import ReplayBits
from zerodelta.spaces import Ball
from zerodelta.training.descent import StepSizes, plan_descent
from zerodelta.training.gradients import gradients_of
from zerodelta.training.losses import Squared

MARK = np.array([0.25, -0.125])


@pytest.mark.parametrize("epsilon", [1, 50])
@pytest.mark.parametrize("count", [1, 20])
def test_the_channel_has_the_last_word(
    epsilon: int, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One step cannot end raw; with twenty either ending may be planned."""
    rows = np.random.default_rng(0).uniform(-0.5, 0.5, size=(300, 2))
    gradients = gradients_of(rows, rows[:, 0], loss=Squared(label_bound=1), radius=1, data_norm=1)
    descent = plan_descent(
        gradients,
        ball=Ball(2, 1),
        epsilon=epsilon,
        mixing_probability="1/100",
        sizes=StepSizes(count=count, first="1/2"),
    )
    handed: list[Any] = []

    def marked(self: Any, value: Any, bits: Any) -> Any:
        handed.append(value)
        return MARK

    monkeypatch.setattr(type(descent.channel), "apply", marked)
    published = descent.run(read(gradients), ReplayBits("descent"))
    assert published.tolist() == MARK.tolist()
    assert len(handed) == 1
