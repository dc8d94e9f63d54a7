"""Models leave the library: by skops, as scikit-learn's own classes, and from there as ONNX."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn import linear_model

import zerodelta as zd
from estimators.instances import ALL
from zerodelta.errors import ParameterError
from zerodelta.interop.exported_models import as_sklearn
from zerodelta.sklearn import (
    LinearRegression,
    LogisticRegression,
    NearestCentroid,
    SparseRegression,
)

GENERATOR = np.random.default_rng(7)
ROWS = GENERATOR.uniform(-0.5, 0.5, size=(400, 3))
TARGETS = ROWS @ [1.0, -0.5, 0.25]


def labels(classes: int) -> Any:
    return np.digitize(TARGETS, np.quantile(TARGETS, np.linspace(0, 1, classes + 1)[1:-1]))


def fitted(classes: int) -> Any:
    model = LogisticRegression(epsilon=4, data_norm=1, classes=range(classes))
    return model.fit(ROWS, labels(classes))


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_a_classifier_of_scikit_learn_says_the_same(classes: int) -> None:
    model = fitted(classes)
    plain = as_sklearn(model)
    assert type(plain) is linear_model.LogisticRegression
    assert (plain.predict(ROWS) == model.predict(ROWS)).all()
    np.testing.assert_allclose(plain.predict_proba(ROWS), model.predict_proba(ROWS), rtol=1e-9)


@pytest.mark.parametrize(
    "estimator",
    [
        LinearRegression(epsilon=4, data_norm=1, bounds_y=(-1, 1)),
        SparseRegression(epsilon=4, bounds=(-1, 1), bounds_y=(-1, 1)),
    ],
    ids=lambda each: type(each).__name__,
)
def test_a_regressor_of_scikit_learn_says_the_same(estimator: Any) -> None:
    model = estimator.fit(ROWS, TARGETS)
    plain = as_sklearn(model)
    assert type(plain) is linear_model.LinearRegression
    np.testing.assert_allclose(plain.predict(ROWS), model.predict(ROWS), rtol=1e-9, atol=1e-12)


def test_rows_beyond_the_fit_s_bounds_are_clipped_by_ours_alone() -> None:
    """What the docstring says: clip them to the norm of the fit first, and both say the same."""
    model = LinearRegression(epsilon=4, data_norm="1/2", bounds_y=(-1, 1)).fit(ROWS, TARGETS)
    plain, far = as_sklearn(model), 3 * ROWS
    clipped = far / np.maximum(1, 2 * np.linalg.norm(far, axis=1, keepdims=True))
    np.testing.assert_allclose(plain.predict(clipped), model.predict(far), atol=1e-5)
    assert np.abs(plain.predict(far) - model.predict(far)).max() > 0.1


def test_what_clips_rows_is_refused_by_name() -> None:
    model = NearestCentroid(epsilon=4, bounds=(-1, 1), classes=[0, 1]).fit(ROWS, labels(2))
    for other in (model, linear_model.LogisticRegression(), None):
        with pytest.raises(ParameterError, match=type(other).__name__):
            as_sklearn(other)


def test_onnx_says_the_same() -> None:
    skl2onnx = pytest.importorskip("skl2onnx", reason="the bridge's extra is not installed")
    onnxruntime = pytest.importorskip("onnxruntime", reason="ONNX is not run without onnxruntime")
    model = fitted(3)
    single = ROWS.astype(np.float32)
    written = skl2onnx.to_onnx(as_sklearn(model), single).SerializeToString()
    session = onnxruntime.InferenceSession(written, providers=["CPUExecutionProvider"])
    found, _ = session.run(None, {"X": single})
    scores = np.sort(model.decision_function(single.astype(np.float64)), axis=1)
    clear = scores[:, -1] - scores[:, -2] > 1e-5 * np.abs(scores).max()  # ONNX computes in float32
    assert clear.mean() > 0.99
    assert (found[clear] == model.predict(single.astype(np.float64))[clear]).all()


@pytest.mark.parametrize("estimator", ALL, ids=lambda each: type(each).__name__)
def test_skops_restores_every_estimator_with_its_certificate(estimator: Any) -> None:
    skops_io = pytest.importorskip("skops.io", reason="the bridge's extra is not installed")
    from sklearn.base import clone, is_classifier

    target = labels(2) if is_classifier(estimator) else TARGETS
    model = clone(estimator).fit(ROWS, target)
    data = skops_io.dumps(model)
    needed = skops_io.get_untrusted_types(data=data)
    ours = [each for each in needed if each.startswith(("zerodelta.", "fractions."))]
    assert needed == ours
    again = skops_io.loads(data, trusted=needed)
    for method in ("predict", "predict_proba", "transform"):
        if hasattr(model, method):
            np.testing.assert_array_equal(
                getattr(again, method)(ROWS), getattr(model, method)(ROWS)
            )
    if hasattr(model, "certificate_"):
        assert again.certificate_ == model.certificate_
        assert zd.verify(again.certificate_) == zd.verify(model.certificate_)
