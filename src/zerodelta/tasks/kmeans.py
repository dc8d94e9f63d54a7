"""Release k-means centers by the best pure method: a noisy histogram, Lloyd's rounds, one mean."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from zerodelta.clustering.center_mechanisms import (
    Problem,
    kmeans_methods,
    noisy_lloyd,
    one_center,
)
from zerodelta.clustering.kmeans import Frame
from zerodelta.data.arrays import ArraySource
from zerodelta.data.dataset import Dataset
from zerodelta.data.row_queries import Bounds, box_lattice
from zerodelta.data.rows import Rows
from zerodelta.data.source import Source
from zerodelta.errors import require, require_extra
from zerodelta.exact.rational import Rational, as_count
from zerodelta.mechanisms.diagnostics import as_diagnosis
from zerodelta.privacy.parameters import as_usable_epsilon
from zerodelta.privacy.release import Release
from zerodelta.spaces import Box
from zerodelta.spine.plan import Facts, ReleasePlan, choose
from zerodelta.spine.public_inputs import as_numbers
from zerodelta.spine.run import ask
from zerodelta.spine.verbs import Paying, debited
from zerodelta.tasks.task import (
    METHOD,
    NAMES,
    TABLE,
    Command,
    Forecast,
    Planner,
    Task,
    planned,
)
from zerodelta.value import value

if TYPE_CHECKING:
    from typing_extensions import Unpack

_BLOCK_ENTRIES = 1 << 20
"""The number of intermediate numbers that one block of rows may need."""
_ALWAYS_ALLOWED = 100
"""This many clusters are allowed for any number of rows."""


@debited
def kmeans(
    rows: Any,
    columns: Sequence[str] | None = None,
    *,
    clusters: int,
    epsilon: Rational,
    bounds: Bounds | None = None,
    method: str = "auto",
    diagnostics: Rational | None = None,
    **paying: Unpack[Paying],
) -> Release:
    """Release the centers of k-means clusters; like `sklearn.cluster.k_means`, but private.

    Use it to find groups of similar rows. Distances are Euclidean and columns are not rescaled:
    bring them to comparable units first.

    Parameters
    ----------
    rows : data set, array, data frame or Source
        What `zd.open` returns, or one row for each person; a row with a missing cell is not counted
        (in a mean it counts as the middle).
    columns : sequence of str, optional
        The columns of a data set or a data frame to use; by default all.
    clusters : int
        The number of centers.
    bounds : pair
        Public bounds, two numbers or two lists with one for each column; for a data set by default
        as declared. Rows are clipped to them; bounds several times wider than the data cost
        accuracy.
    method : {"auto", "histogram", "lloyd", "one-center"}
        "histogram": noisy counts on a public grid, and the k-means of its full cells. "lloyd": half
        of ε for that, half for one round of Lloyd's algorithm (two, seeded along four public
        directions, for more than 5 columns). "one-center": all centers are one noisy mean, shrunk
        toward the middle of the bounds if its noise is large. "auto": the least forecast.

    Returns
    -------
    Release
        `value`: the centers, a (clusters, columns) array.

    **Guarantee**: pure ε-DP, `proven`: counts have sensitivity 2 (rounded-laplace), the blocks of a
    round 2√2 in the sum of their l2 norms, a mean the width of the bounds / n in each column
    (k-norm-noise); the rest is post-processing.
    **Neighbors**: replace-one (the number of rows is public), or one unit of the data set.
    **Error**: the forecast mean of (inertia / best inertia) - 1 for compact clusters of equal size,
    including rare runs that miss a cluster; for real data it may be several times off.

    >>> import numpy as np
    >>> rng = np.random.default_rng(7)
    >>> rows = np.concatenate([rng.normal(c, 0.3, size=(5000, 2)) for c in ([2, 2], [7, 8])])
    >>> kmeans(rows, clusters=2, epsilon=1, bounds=(0, 10)).value.round(0)
    array([[2., 2.],
           [7., 8.]])

    """
    require_extra("sklearn", "sklearn")
    count = as_count(clusters, "clusters", minimum=1)
    source = rows
    if isinstance(rows, Dataset):
        source, declared = as_numbers(rows, columns)
        bounds = declared if bounds is None else bounds
    elif columns is not None or not isinstance(rows, Source):
        shape: tuple[int, ...] = getattr(rows, "shape", ())
        entries = count * (1 + (shape[1] if len(shape) == 2 else 1))  # for a row, in a round
        batch = max(1, _BLOCK_ENTRIES // entries)
        source = ArraySource(rows, columns=columns, batch=batch)
    question = KMeansQuestion(clusters=count, bounds=bounds, method=method)
    diagnosis = as_diagnosis(diagnostics, source, bounds=bounds)
    return ask(question, source, epsilon=epsilon, diagnosis=diagnosis)


@value
class KMeansQuestion:
    """Question for the centers of clusters of rows within public bounds."""

    clusters: int
    bounds: Bounds | None = None
    method: str = "auto"

    def plan(self, facts: Facts, epsilon: Rational) -> ReleasePlan[Rows]:
        """Choose a noisy grid, Lloyd's rounds or one center by forecast, and calibrate it."""
        facts.only_replaced()
        # n sets the grid and the forecasts only, so any public number is allowed
        exact, n, method = as_usable_epsilon(epsilon), facts.planned_rows, self.method
        require(facts.width, "rows", expected="at least one column", remedy="pass some")
        box_lattice(self.bounds)  # refuses bounds that are not a pair
        box = Box(*self.bounds or (), dimension=facts.width)
        frame = Frame.of(box)
        clusters = as_count(self.clusters, "clusters", minimum=1)

        require(
            clusters <= max(n, _ALWAYS_ALLOWED),
            "clusters",
            clusters,
            expected=f"at most one for each of {n} rows",
            remedy="pass fewer",
        )
        counted = facts.rows is not None and not facts.may_miss
        methods = kmeans_methods(rows=n, clusters=clusters, epsilon=float(exact), sides=frame.sides)
        chosen = choose(methods, method)
        fits = chosen.error < math.inf
        require(fits, "method", method, expected="fewer columns", remedy='pass "lloyd"')
        problem = Problem(
            box=box,
            frame=frame,
            clusters=clusters,
            rows=n,
            epsilon=exact,
            counted=counted,
            methods=methods,
            error=chosen.error,
        )
        if chosen.name == "one-center":
            return one_center(problem)
        return noisy_lloyd(problem, refine=chosen.name == "lloyd")


# -- What the task is, for advice and the command line --------------------------------------------

TASKS: dict[str, Task] = {
    "kmeans": Task(
        verb=kmeans,
        estimator="KMeans",
        page="models",
        error="the inertia divided by the best inertia, less 1",
        forecast=Forecast(
            unit="expected inertia relative to the best, less 1",
            call="zd.kmeans(rows, clusters={clusters}, bounds=…, epsilon={epsilon})",
            methods=planned(
                KMeansQuestion, columns=lambda numbers: numbers["dimension"], bounds=(0, 1)
            ),
            needs={**TABLE, "clusters": "clusters=5"},
            typical={"dimension": 10, "clusters": 5},
            reliable="within a factor of 4 for the compact clusters of bench/tasks_forecasts.py;\n"
            "       a mean over rare runs that miss one",
        ),
        command=Command(
            options=("clusters", *METHOD),
            renamed={"clusters": "n_clusters"},
            publishes="the centers",
            example="kmeans people.csv age income --clusters 4",
        ),
        planner=Planner(
            title="Clusters",
            fields=("n", "dimension", "clusters"),
            people=NAMES,
            python="people, names, clusters={clusters}",
            shell="{names} --clusters {clusters}",
        ),
    )
}
