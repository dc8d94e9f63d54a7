"""Define the classifiers: nearest centroid, random forest, and a network of tanh units."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

import numpy as np

from zerodelta.data.row_queries import public_rows
from zerodelta.errors import require
from zerodelta.exact.arrays import Floats
from zerodelta.exact.bits import SystemBits
from zerodelta.exact.rational import Rational, as_count, as_rational
from zerodelta.mechanisms.diagnostics import as_diagnosis
from zerodelta.regression.classes import CentroidQuestion
from zerodelta.regression.encoded_columns import ColumnBounds
from zerodelta.regression.forest import ForestQuestion
from zerodelta.regression.rows import ClassLabels, LabeledRows
from zerodelta.sklearn.base import (
    ClassStatistics,
    PrivateClassifier,
    check_examples,
    column_bounds,
    debited_fit,
    required_epsilon,
    rows_to_predict,
)
from zerodelta.spaces import Ball
from zerodelta.spine.run import post_processed
from zerodelta.spine.verbs import inside_same_release
from zerodelta.study.study import Study
from zerodelta.training.descent import Descent
from zerodelta.training.models import TanhNetwork
from zerodelta.value import value

# Constants of MLPClassifier, chosen on the data sets of `bench/defaults_classifiers.py`, which
# prints the results. "Stretched by w" is the map x -> (1 + w)x/(1 + w|x|), which enlarges
# differences near 0.

_STRETCH = 2.0
"""The stretch of features around 0, the middle of their bounds, if each is one input."""

_MAXIMUM_VIEWS = 4
"""The largest number of inputs of a feature."""

_TWO_VIEWS_STRETCH, _TWO_VIEWS_MINIMUM = 15.0, 10
"""From this n·ε for each parameter a feature is two inputs: plain, and stretched by 15 around 0.
With fewer rows the noise of more parameters costs more than the second input tells."""

_END_STRETCHES = (15.0, 255.0)
_FOUR_VIEWS_MINIMUM, _MAXIMUM_STEP = 300, Fraction(4, 5)
"""From this n·ε for each parameter a feature has two more inputs, stretched around the ends of its
bounds: the rows of a skewed column are all near one end. Many nearly equal inputs need steps of at
most this length."""

_LOGIT_GRADIENT = 25.0
"""The typical norm of the gradient of a logit at the start: 22 to 28 for all shapes."""

_AGREEMENT = 0.15
"""The part of a row's clipped gradient that other rows agree with."""

_HALF_LEARNED = 3.0
"""The squared ratio of learned to unlearned logits at which half is learned, in `_learned`."""

_SMALLEST_TEMPERATURE = 2.0
"""The temperature of a network that has learned all: even then noise makes logits too large."""


@final
@dataclass(kw_only=True, eq=False, repr=False)
class MLPClassifier(PrivateClassifier):
    """A network with one hidden layer of tanh units, for two or more public classes.

    Use it for few features and curved boundaries: every parameter is published, and costs noise.
    Where a plane separates the classes `LogisticRegression` is better.

    Parameters
    ----------
    hidden_units, rounds : int
        The size of the layer, and the number of gradient steps; the defaults rarely need a change.
    radius : number
        The largest distance of the parameters from their public start; rarely needs a change.

    Attributes
    ----------
    network_ : TanhNetwork
        The shape of the network; the parameters are `release_.value`.

    Notes
    -----
    **Releases**: the parameters of `network_`, which are `release_.value`, and `certificate_`; no
    loss, and no number of rounds that depends on rows.
    **Neighbors**: replace-one, where the number of rows is public, or as a data set was opened.
    **Guarantee**: one ``fit`` is pure ε-DP, `proven`: internal Gaussian rounds of descent, and one
    published point of a ball (theory R2, B2 or S2).
    **Public**: all parameters and the shape of X. Rows with a NaN, or with a label that is not in
    `classes`, are ignored. If no label is in `classes`, or bounds clip every row, no error is
    raised, and the result is noise that looks like a model. Predictions replace a NaN by the middle
    of its bounds. The network's inputs are features scaled to x in [-1, 1] by their bounds, and
    stretched around the middle so that wide bounds do less harm: with n·ε of at least ten for each
    parameter the inputs are x and 16x/(1 + 15|x|), else 3x/(1 + 2|x|). From 300 on there are also
    inputs stretched around both ends, by 15 and by 255, for rows in a corner of their bounds.
    **Error**: `release_.error` forecasts the excess of the mean log loss for rows that fill their
    bounds evenly: ln(number of classes) where noise dominates, less with more rows or a larger ε.
    Rows in a small part of their bounds have a larger excess; the true one depends on the data.

    Examples
    --------
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(1000, 2))
    >>> y = X[:, 0] * X[:, 1] > 0
    >>> model = MLPClassifier(epsilon=1, bounds=(-1, 1), classes=[False, True]).fit(X, y)
    >>> model.release_.value.shape, round(model.release_.error, 2), model.certificate_.status.value
    ((49,), 0.18, 'proven')

    """

    bounds: Any = None
    hidden_units: int = 8
    rounds: int = 100
    radius: Rational = 2.5

    @debited_fit
    def fit(self, X: Any, y: Any) -> MLPClassifier:  # noqa: N803
        """Publish a network, trained by descent in a study, the certificate's one release."""
        epsilon, known = required_epsilon(self.epsilon), self._known(y)
        rows, labels = check_examples(self, X, y)
        bounds, encoding = column_bounds(self, rows)
        read = ClassLabels(known)
        source = LabeledRows(rows, labels, read=read, encode=encoding)
        facts, diagnosis = source.facts, as_diagnosis(self.diagnostics, source.declared)
        n = facts.planned_rows
        network = self._network(n, len(bounds.half), len(known), epsilon)
        views = ShownRows(bounds=bounds, views=network.inputs // len(bounds.half))
        study = inside_same_release(Study)(
            LabeledRows(
                rows, labels, read=read, encode=encoding, prepare=views, width=network.inputs
            ),
            epsilon=epsilon,
            publish=Ball(network.parameters, self.radius, center=network.start()),
            rounds=as_count(self.rounds, "rounds", minimum=1),
            mixing_probability=min(Fraction(1, 100), Fraction(10, n)),
            functions=False,
            diagnostics=diagnosis,
        )
        options: dict[str, Any] = {}
        descent = study.plan_minimize(network)
        first_step = as_rational(descent.sizes.first, "step")
        if views.views == _MAXIMUM_VIEWS and first_step > _MAXIMUM_STEP:
            options = {"step": _MAXIMUM_STEP}
            descent = study.plan_minimize(network, **options)
        learned = _learned(network, descent)
        release = study.minimize(network, **options)  # the planned descent
        excess = (1 - learned) * math.log(len(known))
        release = post_processed(release, value=release.value, error=excess)
        self.network_, self._shown = network, views
        self._publish_classes(release, encoding, known, _SMALLEST_TEMPERATURE / learned)
        return self

    def _network(self, n: int, columns: int, classes: int, epsilon: Fraction) -> TanhNetwork:
        """Return the network with the most inputs for each feature that n·ε allows."""
        units = as_count(self.hidden_units, "hidden_units", minimum=1)
        limits = ((_MAXIMUM_VIEWS, _FOUR_VIEWS_MINIMUM), (2, _TWO_VIEWS_MINIMUM), (1, 0))
        for views, minimum in limits:
            inputs = views * columns
            network = TanhNetwork(
                lower=(-1,) * inputs,
                upper=(1,) * inputs,
                classes=tuple(range(classes)),
                units=units,
            )
            if n * epsilon >= minimum * network.parameters:
                break
        return network

    def decision_function(self, X: Any) -> Floats:  # noqa: N803
        """Return the log-odds of the second class, or one logit for each class."""
        rows = rows_to_predict(self, X)
        filled = np.where(np.isnan(rows), self._shown.bounds.middle, rows)
        logits = self.network_.logits(self.release_.value, self._shown(filled))
        return logits[:, 0] if len(self.classes_) == 2 else logits


@value(eq=False)
class ShownRows:
    """The inputs of the network for rows: `views` columns in [-1, 1] for each feature.

    Bounds are often wider than the rows, so features are stretched around the middle of their
    bounds, and with four views also around both ends. NaN stays NaN. Only operations that IEEE
    rounds correctly are used, so that a row's inputs do not depend on its block.

    >>> one = np.ones(1)
    >>> views = ShownRows(bounds=ColumnBounds(lower=-one, upper=one), views=4)
    >>> views(np.array([[-1.0], [-0.9], [0.0]])).round(2).tolist()
    [[-1.0, -1.0, -1.0, -1.0], [-0.9, -0.99, -0.36, -0.03], [0.0, 0.0, 0.0, 0.0]]
    """

    bounds: ColumnBounds
    views: int

    def __call__(self, rows: Floats) -> Floats:
        """Return the inputs of some rows."""
        scaled = self.bounds.scaled(rows)
        size = np.abs(scaled)
        stretch = _STRETCH if self.views == 1 else _TWO_VIEWS_STRETCH
        inputs = [] if self.views == 1 else [scaled]
        inputs.append((1 + stretch) * scaled / (1 + stretch * size))
        if self.views == _MAXIMUM_VIEWS:
            inward = 1 - size  # the distance from the nearer end, which is stretched around 0
            sizes = [1 - (1 + w) * inward / (1 + w * inward) for w in _END_STRETCHES]
            inputs += [np.copysign(stretched, scaled) for stretched in sizes]
        return np.clip(np.column_stack(inputs), -1.0, 1.0)


def _learned(network: TanhNetwork, descent: Descent) -> float:
    """Forecast the part of the possible gain in log loss that a descent reaches, in (0, 1).

    `Study.minimize` keeps the noise of the parameters below a part of the radius for all n and ε by
    shortening the path. So the change of a logit by the gradients of rows, which is proportional to
    the path, is compared with the logits of the start and their noise.
    """
    path = descent.clip * float(descent.sizes.sizes().sum())
    noise = _LOGIT_GRADIENT * descent.error / math.sqrt(network.parameters)
    made_up_rows = public_rows(network.inputs, (network.lower, network.upper), None, count=256)
    start = network.logits(network.start(), made_up_rows)
    unlearned = math.sqrt(float(np.mean(start**2)) + noise**2)
    ratio = (_AGREEMENT * _LOGIT_GRADIENT * path / unlearned) ** 2
    return ratio / (ratio + _HALF_LEARNED)


# -- `NearestCentroid`: the mean row of each class, in one release (theory G2) --------------------


@final
@dataclass(kw_only=True, eq=False, repr=False)
class NearestCentroid(ClassStatistics):
    """Predict the class with the nearest mean row, under pure ε-DP.

    Use it for few rows or many features, in place of `sklearn.neighbors.NearestCentroid`. Class
    means are noisy and shrunk toward the mean of all rows; ``zd.advise("classifier", ...)``
    compares all classifiers.

    Parameters
    ----------
    block : str
        The norm of the noise of a class: "max" for rows anywhere inside their bounds, or "l2",
        which projects rows to a ball around the middle of the bounds. "l2" has less noise and is
        best for up to about 15 features if most rows lie in the ball; it is useless for rows in a
        corner.

    Attributes
    ----------
    centroids_ : array of shape (n_classes, n_features)
        The published means, in the units of the data.
    class_prior_ : array
        The fraction of rows in each class, or equal numbers where noise would hide the fractions.

    Notes
    -----
    **Releases**: `centroids_` and `class_prior_`, which are in `release_.value`,
    `diagnostics_` on request, and `certificate_`.
    **Guarantee**: one ``fit`` is pure ε-DP, `proven`: one block of noise for each class (theory
    G2), and a row is in one class.
    **Public**: all parameters and the shape of X. Rows with a missing cell, or with a label that is
    not in `classes`, are ignored. If no label is in `classes`, or bounds clip every row, no error
    is raised, and the result is noise that looks like a model. Predictions replace a missing cell
    by the middle of its bounds. ``fit(people[["age", "city"]], people["member"])`` takes two
    selections of one `zd.open` data set.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.random.default_rng(0).integers(0, 3, size=3000)
    >>> X = np.column_stack([y - 1.0, 1.0 - y])
    >>> model = NearestCentroid(epsilon=1, bounds=(-2, 2), classes=[0, 1, 2]).fit(X, y)
    >>> model.predict([[-1, 1], [0, 0], [1, -1]])
    array([0, 1, 2])
    >>> model.centroids_.shape, model.certificate_.steps[0].theorem
    ((3, 2), 'block-k-norm')

    """

    block: str = "max"

    @debited_fit
    def fit(self, X: Any, y: Any) -> NearestCentroid:  # noqa: N803
        """Publish the class means, the one release that the certificate covers."""

        def question(bounds: ColumnBounds, known: tuple[Any, ...]) -> CentroidQuestion:
            return CentroidQuestion(bounds=bounds, classes=known, block=self.block)

        model = self._fit(X, y, question)
        self.centroids_: Floats = model.centers
        self.class_prior_: Floats = model.priors
        return self


# -- `RandomForestClassifier`: public random trees, noisy counts in their leaves (theory P1) ------


@final
@dataclass(kw_only=True, eq=False, repr=False)
class RandomForestClassifier(ClassStatistics):
    """Predict by random trees, for classes that no plane separates, under pure ε-DP.

    Splits are random and public; a threshold lies in the middle half of the feature's interval in
    its node. Only the counts of classes in the leaves are private. Every row is in every tree.
    There are about √(nε)/4 trees, of depth about log2(nε)/2.

    Parameters
    ----------
    n_estimators, max_depth : int, optional
        The number of trees and their depth; by default chosen by n·ε.
    random_state : int, optional
        The seed of the splits, which are public. **It does not seed the noise**: two fits with one
        seed differ. By default new splits are drawn for each fit.

    Attributes
    ----------
    forest_ : Forest
        The splits, and the logarithms of the class probabilities in each leaf.

    Notes
    -----
    **Releases**: `forest_`, which is `release_.value`, `diagnostics_` if asked for, and
    `certificate_`.
    **Guarantee**: one ``fit`` is pure ε-DP, `proven`: Laplace noise on all counts (theory P1);
    with T trees a row adds T to their sum.
    **Public**: all parameters and the shape of X, and all splits. Rows with a missing cell, or with
    a label that is not in `classes`, are ignored. If no label is in `classes`, or bounds clip every
    row, no error is raised, and the result is noise that looks like a model. Predictions replace a
    missing cell by the middle of its bounds. ``fit(people[["age", "city"]], people["member"])``
    takes two selections of one `zd.open` data set.

    Examples
    --------
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(20_000, 2))
    >>> y = X[:, 0] * X[:, 1] > 0
    >>> model = RandomForestClassifier(epsilon=2, bounds=(-1, 1), classes=[False, True]).fit(X, y)
    >>> model.predict([[0.7, 0.7], [-0.7, 0.7]])
    array([ True, False])

    """

    n_estimators: int | None = None
    max_depth: int | None = None
    random_state: int | None = None

    @debited_fit
    def fit(self, X: Any, y: Any) -> RandomForestClassifier:  # noqa: N803
        """Publish a forest, the one release that the certificate covers."""

        def question(bounds: ColumnBounds, known: tuple[Any, ...]) -> ForestQuestion:
            return ForestQuestion(
                bounds=bounds,
                classes=known,
                seed=_seed(self.random_state),
                trees=self.n_estimators,
                depth=self.max_depth,
            )

        self.forest_ = self._fit(X, y, question)
        return self


def _seed(random_state: Any) -> int:
    """Return the public seed of the splits; a generator is refused: rows may have set its state."""
    if random_state is None:
        return SystemBits().integer(128)
    valid = isinstance(random_state, (int, np.integer)) and not isinstance(random_state, bool)
    require(
        valid and random_state >= 0,
        "random_state",
        type(random_state).__name__ if not valid else random_state,
        expected="None or a nonnegative integer: the public seed of the splits",
        remedy="pass random_state=0, for example",
    )
    return int(random_state)
