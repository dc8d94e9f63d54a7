"""`MLPClassifier`: a small network of tanh units, trained by purified descent (theory C1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, final

import numpy as np

from zerodelta.exact.rational import Rational, as_count
from zerodelta.regression.reading import read_classes
from zerodelta.sklearn.classification import PrivateClassifier, sorted_classes
from zerodelta.sklearn.column_bounds import ColumnBounds
from zerodelta.sklearn.network_forecast import NetworkForecast
from zerodelta.sklearn.reading import Floats, as_floats, read_examples, rows_to_predict
from zerodelta.sklearn.required_epsilon import required_epsilon
from zerodelta.spaces import Ball
from zerodelta.study.study import Study
from zerodelta.training.tanh_network import TanhNetwork

__all__ = ["MLPClassifier"]

_WIDEN = 2.0
_TWICE_WIDEN, _TWICE_FROM = 15.0, 10
"""Above this n·ε for each parameter features are shown twice, the second time drawn apart by 15;
below, more parameters cost more than they tell. Tuned in `bench/defaults_classifiers.py`."""


@final
class MLPClassifier(PrivateClassifier):
    """One hidden layer of tanh units, for two or more public classes, under pure ε-DP.

    For few features and curved boundaries: every parameter is published, and costs noise. Where a
    plane will do, `LogisticRegression` is better.

    **Releases**: the parameters, `release_.value`, of `network_`, and `certificate_`; no loss, no
    number of rounds that depends on rows.
    **Neighbors**: replace-one; the number of rows is public.
    **Guarantee**: one ``fit`` is pure ε-DP, `proven`: hidden Gaussian rounds of descent, and one
    point of a ball published (theory R2, B2 or S2). Scores and predictions of rows, a
    `GridSearchCV` over them and a transformer fitted on the rows are not covered: see
    `zerodelta.select_model` and `BoundedScaler`.
    **Public**: all parameters and the shape of X. Features are clipped to `bounds`, a pair of
    numbers or of one for each column, or one pair for each column name of a data frame. `classes`
    lists all labels that can occur. Rows with a NaN, or with a label that is no class, count as
    nothing; labels that all match no class, or bounds that clip every row, cannot raise and give
    noise that looks like a model. Predictions take a NaN for the middle of its bounds. The network
    sees features scaled to x in [-1, 1] by their bounds, and wide bounds cost it less because the
    middle is drawn apart: with n·ε of at least ten for each parameter a feature is seen as both x
    and 16x/(1 + 15|x|), else as 3x/(1 + 2|x|). `hidden_units`, `rounds` and `radius`, how far from
    its public start the network may go, rarely need a change. Probabilities are those of logits
    over the public `temperature_`.
    **Error**: `release_.error` forecasts the excess of the mean log loss: ln(number of classes)
    where noise dominates, less with more rows or a larger ε; the true one depends on data.

    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(4000, 2))
    >>> y = X[:, 0] * X[:, 1] > 0
    >>> model = MLPClassifier(epsilon=2, bounds=(-1, 1), classes=[False, True]).fit(X, y)
    >>> model.score(X, y) > 0.7, model.certificate_.status.value
    (True, 'proven')
    """

    def __init__(
        self,
        *,
        epsilon: Rational | None = None,
        bounds: Any = None,
        classes: Sequence[Any] | None = None,
        hidden_units: int = 8,
        rounds: int = 100,
        radius: Rational = 2.5,
    ) -> None:
        self.epsilon = epsilon
        self.bounds = bounds
        self.classes = classes
        self.hidden_units = hidden_units
        self.rounds = rounds
        self.radius = radius

    def fit(self, X: Any, y: Any) -> MLPClassifier:  # noqa: N803
        """Publish a network; this is the one release that the certificate is about."""
        epsilon = required_epsilon(self.epsilon)
        known = sorted_classes(self.classes)
        rows, labels = read_examples(self, X, y)
        bounds = ColumnBounds.of_columns(self.bounds, self)
        network = self._network(len(rows), rows.shape[1], len(known), epsilon)
        places = read_classes(labels, known, len(rows))  # -1, no class, for any other label
        study = Study(
            np.column_stack([_spread(bounds, as_floats(rows), network), places]),
            epsilon=epsilon,
            publish=Ball(network.parameters, self.radius, center=network.start()),
            rounds=as_count(self.rounds, "rounds", minimum=1),
            mixing_probability=min(Fraction(1, 100), Fraction(10, len(rows))),
            functions=False,
        )
        forecast = NetworkForecast.of(network, study.plan_minimize(network))
        release = study.minimize(network)  # as planned: the study plans it once
        self.release_ = replace(release, error=forecast.excess(len(known)))
        self.certificate_, self.network_ = self.release_.certificate, network
        self._bounds = bounds
        self._publish_classes(known, temperature=forecast.temperature)
        return self

    def _network(self, n: int, columns: int, classes: int, epsilon: Fraction) -> TanhNetwork:
        """Return a network that sees each feature twice, or once where that is too much."""
        units = as_count(self.hidden_units, "hidden_units", minimum=1)
        for inputs in (2 * columns, columns):
            network = TanhNetwork(
                lower=(-1,) * inputs,
                upper=(1,) * inputs,
                classes=tuple(range(classes)),
                units=units,
            )
            if n * epsilon >= _TWICE_FROM * network.parameters:
                break
        return network

    def decision_function(self, X: Any) -> Floats:  # noqa: N803
        """Return the log-odds of the second class, or one logit for each class."""
        rows = rows_to_predict(self, X)
        filled = np.where(np.isnan(rows), self._bounds.middle, rows)
        seen = _spread(self._bounds, filled, self.network_)
        logits = self.network_.logits(self.release_.value, seen)
        return logits[:, 0] if len(self.classes_) == 2 else logits


def _spread(bounds: ColumnBounds, rows: Floats, network: TanhNetwork) -> Floats:
    """Return what the network sees of the rows, in [-1, 1]; NaN stays NaN.

    Bounds are often wider than the rows, so the middle is drawn apart. Only operations that round
    exactly are used.
    """
    scaled = bounds.scaled(rows)
    twice = network.inputs > rows.shape[1]
    widen = _TWICE_WIDEN if twice else _WIDEN
    apart = (1 + widen) * scaled / (1 + widen * np.abs(scaled))
    return np.clip(np.column_stack([scaled, apart]) if twice else apart, -1.0, 1.0)
