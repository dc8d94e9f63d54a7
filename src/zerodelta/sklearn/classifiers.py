"""Classifiers: nearest centroid, random forest, and a network of tanh units."""

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

_WIDEN = 2.0
_MOST_VIEWS = 4
_TWICE_WIDEN, _TWICE_FROM = 15.0, 10
"""Above this n·ε for each parameter features are shown twice, the second time drawn apart by 15;
below, more parameters cost more than they tell. Tuned in `bench/defaults_classifiers.py`."""

_ENDS = (15.0, 255.0)
_ENDS_FROM, _LONGEST_STEP = 300, Fraction(4, 5)
"""Above this n·ε for each parameter both ends are drawn apart, too, by these: rows of a skewed
column are all at one of them. Many inputs that hardly differ need short steps."""

_SLOPE = 25.0
"""About how long the gradient of a logit is at the start: 22 to 28, whatever the shape."""

_AGREEMENT = 0.15
"""The part of a row's clipped gradient that other rows agree with. This and the two below were
fitted to runs on small real data and XOR, see `bench/defaults_classifiers.py`."""

_HALF_WAY = 3.0
_SURE = 2.0
"""The temperature of a network that has learned all: noise has the same share of every network."""


@final
@dataclass(kw_only=True, eq=False, repr=False)
class MLPClassifier(PrivateClassifier):
    """One hidden layer of tanh units, for two or more public classes, under pure ε-DP.

    For few features and curved boundaries: every parameter is published, and costs noise. Where a
    plane will do, `LogisticRegression` is better.

    Parameters
    ----------
    hidden_units, rounds : int
        The size of the layer, and the number of gradient steps; rarely need a change.
    radius : number
        How far from its public start the network may go; rarely needs a change.

    Attributes
    ----------
    network_ : TanhNetwork
        Its shape; the parameters are `release_.value`.

    Notes
    -----
    **Releases**: the parameters, `release_.value`, of `network_`, and `certificate_`; no loss, no
    number of rounds that depends on rows.
    **Neighbors**: replace-one, where the number of rows is public, or what a data set says.
    **Guarantee**: one ``fit`` is pure ε-DP, `proven`: internal Gaussian rounds of descent, and one
    point of a ball published (theory R2, B2 or S2).
    **Public**: all parameters and the shape of X. Rows with a NaN, or with a label that is no
    class, count as nothing; labels that all match no class, or bounds that clip every row, cannot
    raise and give noise that looks like a model. Predictions take a NaN for the middle of its
    bounds. The network sees features scaled to x in [-1, 1] by their bounds, and wide bounds cost
    it less because the middle is drawn apart: with n·ε of at least ten for each parameter a feature
    is seen as both x and 16x/(1 + 15|x|), else as 3x/(1 + 2|x|). From 300 on both ends are drawn
    apart, too, by 15 and by 255, for rows in a corner of their bounds.
    **Error**: `release_.error` forecasts the excess of the mean log loss for rows that fill their
    bounds evenly: ln(number of classes) where noise dominates, less with more rows or a larger ε.
    Rows in a small part of their bounds cost more; the true one depends on data.

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
        """Publish a network; this is the one release that the certificate is about."""
        epsilon, known = required_epsilon(self.epsilon), self._known(y)
        rows, labels = check_examples(self, X, y)
        bounds, encoding = column_bounds(self, rows)
        read = ClassLabels(known)
        source = LabeledRows(rows, labels, read=read, encode=encoding)
        facts, diagnosis = source.facts, as_diagnosis(self.diagnostics, source.declared)
        n = facts.planned_rows
        network = self._network(n, len(bounds.half), len(known), epsilon)
        shown = ShownRows(bounds=bounds, views=network.inputs // len(bounds.half))
        study = inside_same_release(Study)(
            LabeledRows(
                rows, labels, read=read, encode=encoding, prepare=shown, width=network.inputs
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
        if shown.views == _MOST_VIEWS and as_rational(descent.sizes.first, "step") > _LONGEST_STEP:
            options = {"step": _LONGEST_STEP}
            descent = study.plan_minimize(network, **options)
        learned = _learned(network, descent)
        release = study.minimize(network, **options)  # as planned
        excess = (1 - learned) * math.log(len(known))
        release = post_processed(release, value=release.value, error=excess)
        self.network_, self._shown = network, shown
        self._publish_classes(release, encoding, known, _SURE / learned)
        return self

    def _network(self, n: int, columns: int, classes: int, epsilon: Fraction) -> TanhNetwork:
        """Return a network that sees each feature as often as so many parameters may cost."""
        units = as_count(self.hidden_units, "hidden_units", minimum=1)
        for views, enough in ((_MOST_VIEWS, _ENDS_FROM), (2, _TWICE_FROM), (1, 0)):
            inputs = views * columns
            network = TanhNetwork(
                lower=(-1,) * inputs,
                upper=(1,) * inputs,
                classes=tuple(range(classes)),
                units=units,
            )
            if n * epsilon >= enough * network.parameters:
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
    """What the network sees of rows, in [-1, 1]; NaN stays NaN.

    Bounds are often wider than the rows, so the middle is drawn apart, and with four views both
    ends are. Only operations that round exactly are used.

    >>> one = np.ones(1)
    >>> shown = ShownRows(bounds=ColumnBounds(lower=-one, upper=one), views=4)
    >>> shown(np.array([[-1.0], [-0.9], [0.0]])).round(2).tolist()
    [[-1.0, -1.0, -1.0, -1.0], [-0.9, -0.99, -0.36, -0.03], [0.0, 0.0, 0.0, 0.0]]
    """

    bounds: ColumnBounds
    views: int

    def __call__(self, rows: Floats) -> Floats:
        """Return what is seen of some rows."""
        scaled = self.bounds.scaled(rows)
        size = np.abs(scaled)
        widen = _WIDEN if self.views == 1 else _TWICE_WIDEN
        seen = [] if self.views == 1 else [scaled]
        seen.append((1 + widen) * scaled / (1 + widen * size))
        if self.views == _MOST_VIEWS:
            inward = 1 - size  # 0 at an end, where it is drawn apart
            apart = [1 - (1 + w) * inward / (1 + w * inward) for w in _ENDS]
            seen += [np.copysign(each, scaled) for each in apart]
        return np.clip(np.column_stack(seen), -1.0, 1.0)


def _learned(network: TanhNetwork, descent: Descent) -> float:
    """Forecast which part of what there is to learn will be learned, above 0 and below 1.

    A descent holds the noise of the parameters to a part of the radius, whatever n and ε are; what
    changes is how far the gradients of the rows may carry it. So what the rows can move a logit by
    is compared with the start's logits and the noise.
    """
    path = descent.clip * float(descent.sizes.sizes().sum())
    noise = _SLOPE * descent.error / math.sqrt(network.parameters)
    made_up = public_rows(network.inputs, (network.lower, network.upper), None, count=256)
    start = network.logits(network.start(), made_up)
    unlearned = math.sqrt(float(np.mean(start**2)) + noise**2)
    moved = (_AGREEMENT * _SLOPE * path / unlearned) ** 2
    return moved / (moved + _HALF_WAY)


# -- `NearestCentroid`: the mean row of each class, in one release (theory G2) --------------------


@final
@dataclass(kw_only=True, eq=False, repr=False)
class NearestCentroid(ClassStatistics):
    """The class whose mean row is nearest, under pure ε-DP; for few rows or many features.

    Use it in place of `sklearn.neighbors.NearestCentroid`. Means are noisy, and moved together as
    far as noise makes them differ; ``zd.advise("classifier", ...)`` compares all classifiers.

    Parameters
    ----------
    block : str
        The norm of the noise of a class: "max" (rows anywhere inside their bounds) or "l2", which
        projects rows to a ball around the middle of the bounds: less noise, best for up to about 15
        features if most rows lie there, useless for rows in a corner.

    Attributes
    ----------
    centroids_ : array of shape (n_classes, n_features)
        The published means, in the units of the data.
    class_prior_ : array
        The parts of the rows that classes have, equal ones where noise would hide them.

    Notes
    -----
    **Releases**: `centroids_` and `class_prior_`, which are in `release_.value`,
    `diagnostics_` if asked for, and `certificate_`.
    **Guarantee**: one ``fit`` is pure ε-DP, `proven`: one block of noise for each class (theory
    G2), and a row is in one class.
    **Public**: all parameters and the shape of X. Rows with a missing cell, or with a label that
    is no class, count as nothing; labels that all match no class, or bounds that clip every row,
    cannot raise and give noise that looks like a model. Predictions take a missing cell for the
    middle of its bounds. ``fit(people[["age", "city"]], people["member"])`` takes two selections of
    one `zd.open` data set.

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
        """Publish the means; this is the one release that the certificate is about."""

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
    """Random trees for classes that no plane tells apart, under pure ε-DP.

    Splits are random and public, in the middle half of what is left of a feature's bounds; only the
    counts of classes in the leaves are private. Every row is in every tree. There are about
    √(nε)/4 trees, of depth about log2(nε)/2.

    Parameters
    ----------
    n_estimators, max_depth : int, optional
        The number of trees, and of the questions on the way to a leaf; by default from n·ε.
    random_state : int, optional
        The seed of the splits, which are public. **It has no say in the noise**: two fits with one
        seed differ. By default new splits are drawn for each fit.

    Attributes
    ----------
    forest_ : Forest
        The splits, and for each leaf the logarithms of the classes' probabilities.

    Notes
    -----
    **Releases**: `forest_`, which is `release_.value`, `diagnostics_` if asked for, and
    `certificate_`.
    **Guarantee**: one ``fit`` is pure ε-DP, `proven`: Laplace noise on all counts (theory P1);
    with T trees a row adds T to them.
    **Public**: all parameters and the shape of X, and all splits. Rows with a missing cell, or with
    a label that is no class, count as nothing; labels that all match no class, or bounds that clip
    every row, cannot raise and give noise that looks like a model. Predictions take a missing cell
    for the middle of its bounds. ``fit(people[["age", "city"]], people["member"])`` takes two
    selections of one `zd.open` data set.

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
        """Publish a forest; this is the one release that the certificate is about."""

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
    """Return the public seed of the splits; a generator's state may have seen rows."""
    if random_state is None:
        return SystemBits().integer(128)
    valid = isinstance(random_state, (int, np.integer)) and not isinstance(random_state, bool)
    require(
        valid and random_state >= 0,
        "random_state",
        type(random_state).__name__ if not valid else random_state,
        expected="None or an integer that is not negative: the public seed of the splits",
        remedy="pass random_state=0, say",
    )
    return int(random_state)
