"""Per-sample gradients of torch modules: right, row by row, in a public order; skipped without it.

Every test but the first needs torch (`pip install zerodelta[torch]`).
"""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np
import pytest

from study.stages import Stage, gradients_in
from zerodelta.errors import ParameterError
from zerodelta.privacy.steps import Status
from zerodelta.spaces import Ball
from zerodelta.study.minimize import minimize
from zerodelta.testing import replayed
from zerodelta.training.models import TorchModel


def test_without_torch_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ParameterError, match=r"zerodelta\[torch\]"):
        TorchModel(object(), loss=lambda output, label: output)


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


def network(torch: Any, classes: int = 3) -> TorchModel:
    torch.manual_seed(1)
    module = torch.nn.Sequential(
        torch.nn.Linear(2, 4), torch.nn.Tanh(), torch.nn.Dropout(0.5), torch.nn.Linear(4, classes)
    )
    return TorchModel(module, loss=torch.nn.functional.cross_entropy, classes=classes)


def table(rows: int) -> Any:
    rng = np.random.default_rng(3)
    return np.column_stack([rng.normal(size=(rows, 2)), rng.integers(0, 3, rows)])


def test_gradients_are_those_of_one_row_at_a_time(torch: Any) -> None:
    model, rows = network(torch), table(7)
    together = model.gradient(model.start(), rows)
    assert together.shape == (7, model.parameters) == (7, 27)
    double = model.load(model.start()).double().eval()
    for i, row in enumerate(rows):
        double.zero_grad()
        output = double(torch.from_numpy(row[None, :2]))
        torch.nn.functional.cross_entropy(output, torch.tensor([int(row[2])])).backward()
        alone = np.concatenate([p.grad.numpy().reshape(-1) for p in double.parameters()])
        assert np.allclose(together[i], alone, atol=1e-12)


def test_parameters_have_a_public_order_and_come_back(torch: Any) -> None:
    model = network(torch)
    assert model.layers() == [("0.weight", 8), ("0.bias", 4), ("3.weight", 12), ("3.bias", 3)]
    theta = np.arange(27.0)
    loaded = model.load(theta)
    again = TorchModel(loaded, loss=model.loss, classes=3)
    assert np.array_equal(again.start(), theta)
    assert not np.array_equal(model.start(), theta)
    assert next(iter(loaded.parameters())).dtype == torch.float32


def test_rows_that_do_not_count_are_marked(torch: Any) -> None:
    model, rows = network(torch), table(6)
    whole = model.gradient(model.start(), rows)
    rows[1, 0], rows[2, 2], rows[3, 2], rows[4, 2] = math.nan, 7, 0.5, math.inf
    changed = model.gradient(model.start(), rows)
    assert np.isnan(changed[1:5]).all()
    assert np.allclose(changed[[0, 5]], whole[[0, 5]], atol=1e-12)


def test_a_frozen_layer_is_no_parameter(torch: Any) -> None:
    module = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
    for parameter in module[0].parameters():
        parameter.requires_grad_(False)
    model = TorchModel(module, loss=lambda output, label: (output - label) ** 2)
    assert model.parameters == 5
    assert model.gradient(model.start(), table(3)).shape == (3, 5)


@replayed("descent")
def test_a_module_is_trained_and_asserted(torch: Any) -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, size=(3000, 2))
    rows = np.column_stack([x, x @ np.array([0.5, -0.25])])
    model = TorchModel(torch.nn.Linear(2, 1), loss=lambda out, y: (out - y) ** 2 / 2)
    stage = Stage(rows, Ball(3, 2, center=model.start()), rounds=40)
    release = minimize(stage, model)
    assert release.certificate.status is Status.ASSERTED
    assert release.certificate.assumed
    assert np.linalg.norm(release.value - [0.5, -0.25, 0]) < 0.3
    again = Stage(rows, Ball(3, 2, center=model.start()))
    _, gradients = gradients_in(again, model, layers=[(2, 1), (1, "1/2")])
    assert gradients.dimension == 3


def test_bad_modules_are_refused(torch: Any) -> None:
    for module in (object(), torch.nn.Tanh()):
        with pytest.raises(ParameterError):
            TorchModel(module, loss=torch.nn.functional.cross_entropy)
    with pytest.raises(ParameterError):
        minimize(Stage(table(5), Ball(3, 1)), network(torch))
