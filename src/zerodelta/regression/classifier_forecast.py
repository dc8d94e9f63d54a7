"""Which classifier to expect the most of, by public numbers; measured, not derived.

The curves were fitted to runs on iris, wine, breast cancer and digits with other seeds than those
of `bench/tables_classifiers.py`, which prints what became of them.
"""

from __future__ import annotations

import math
from fractions import Fraction

from zerodelta.exact.rational import Rational, as_count
from zerodelta.privacy.parameters import as_usable_epsilon
from zerodelta.regression.classifiers import classifier_methods
from zerodelta.spine.methods import Method, ranked

_HALF = 0.14
"""Noise over signal at which class means have lost half of what there is to learn."""

_FOREST_HALF = 2.3
"""√(nε) for each class at which a forest has lost half of what there is to learn."""

_LEFT = {
    "nearest centroid": 0.10,
    "nearest centroid, l2": 0.12,
    "naive Bayes": 0.12,
    "forest": 0.2,
    "logistic": 0.06,
}
"""The part of all mistakes that a model makes that sees no noise, on the data of the bench."""

_BLOCKS = {
    "nearest centroid": lambda d: (d + 3) * (d + 4) / 3,
    # a ball of radius 0.4 √d cuts more of what tells classes apart the more features there are
    "nearest centroid, l2": lambda d: 0.4**2 * 1.09 * d * (d + 2) * (1 + d / 30),
    "naive Bayes": lambda d: (2 * d + 2) * (2 * d + 3) / 3,
}
"""The variance of the noise on a sum, in units of (2/ε)²."""


def means_error(name: str, *, epsilon: Fraction, n: int, dimension: int, classes: int) -> float:
    """Forecast the error rate of a classifier made of class statistics.

    >>> few, many = (
    ...     means_error("naive Bayes", epsilon=Fraction(1), n=n, dimension=4, classes=3)
    ...     for n in (10, 10_000)
    ... )
    >>> 0.6 < few < 2 / 3, many < 0.09
    (True, True)
    """
    deviation = 2 / float(epsilon) * math.sqrt(_BLOCKS[name](dimension))
    ratio = deviation * classes / max(1, n) / math.sqrt(dimension)
    return _rate(name, ratio**2 / (ratio**2 + _HALF**2), classes)


def forest_error(*, epsilon: Fraction, n: int, classes: int) -> float:
    """Forecast the error rate of a forest.

    >>> round(forest_error(epsilon=Fraction(1), n=10_000, classes=2), 2)
    0.1
    """
    reach = math.sqrt(max(1, n) * float(epsilon)) / classes
    return _rate("forest", 1 / (1 + (reach / _FOREST_HALF) ** 2), classes)


def compare_classifiers(
    *, epsilon: Rational, n: int, dimension: int, classes: int
) -> tuple[Method, ...]:
    """Return all classifiers with the error rates to expect, best first.

    >>> compare_classifiers(epsilon=1, n=1257, dimension=64, classes=10)[0].name
    'nearest centroid'
    """
    exact, rows = as_usable_epsilon(epsilon), as_count(n, "n", minimum=1)
    d = as_count(dimension, "dimension", minimum=1)
    count = as_count(classes, "classes", minimum=2)
    lost, all_of_it = (
        next(
            method.error
            for method in classifier_methods(
                epsilon=exact, n=size, dimension=d, classes=None if count == 2 else count
            )
            if method.name == "objective"
        )
        for size in (rows, 1)
    )
    share = min(1.0, lost / all_of_it) ** 2  # mistakes are fewer than the log loss makes believe
    reasons = {
        "nearest centroid": "NearestCentroid: one block of noise for each class, wherever rows lie",
        "nearest centroid, l2": 'NearestCentroid(block="l2"): for rows around the middle of their '
        "bounds; useless for rows in a corner",
        "naive Bayes": "GaussianNB: twice as many sums, for variances that differ by feature",
    }
    return ranked(
        *(
            Method(
                name=name,
                error=means_error(name, epsilon=exact, n=rows, dimension=d, classes=count),
                spends="ε on the sums of each class, not split over classes",
                why=why,
            )
            for name, why in reasons.items()
        ),
        Method(
            name="forest",
            error=forest_error(epsilon=exact, n=rows, classes=count),
            spends="ε on the counts of all leaves of all trees",
            why="RandomForestClassifier: public random splits; the only one that is not linear",
        ),
        Method(
            name="logistic",
            error=_rate("logistic", share, count),
            spends="ε on the objective",
            why="LogisticRegression: no other has so good a line, where there are enough rows",
        ),
    )


def _rate(name: str, lost: float, classes: int) -> float:
    """Return the error rate if this part of what there is to learn is lost to noise."""
    left = _LEFT[name]
    return (1 - 1 / classes) * (left + (1 - left) * lost)
