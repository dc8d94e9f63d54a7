"""The model file of `zerodelta demo` is the whole model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

from zerodelta.cli import demo


def test_the_model_file_reproduces_the_predictions_and_its_numbers_are_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fitted: list[Any] = []

    def kept(*steps: Any) -> Any:
        fitted.append(make_pipeline(*steps))
        return fitted[-1]

    monkeypatch.setattr(demo, "make_pipeline", kept)
    demo.run(tmp_path)
    printed = capsys.readouterr().out
    model = json.loads((tmp_path / "model.json").read_text(encoding="utf-8"))["value"]
    names = list(model["coefficients"])
    ends = np.array([[float(str(end)) for end in demo.BOUNDS[name]] for name in names]).T
    rows = np.random.default_rng(0).uniform(ends[0], ends[1], size=(100, len(names)))
    lower, upper = np.array(model["lower"]), np.array(model["upper"])
    scaled = (2 * rows - lower - upper) / (upper - lower) / model["divided_by"]
    scores = scaled @ list(model["coefficients"].values()) + model["intercept"]
    np.testing.assert_allclose(scores, fitted[0].decision_function(rows), atol=1e-9)
    np.testing.assert_array_equal(scores > 0, fitted[0].predict(rows) == 1)
    for name, number in [*model["coefficients"].items(), ("intercept", model["intercept"])]:
        assert f"{name:<24} {number:+.2f}" in printed
