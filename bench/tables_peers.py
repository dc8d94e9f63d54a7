"""Ask the questions of `bench/tables.py` with OpenDP (Context, Polars) and diffprivlib.

Each function answers one task; its lines are counted as they stand here. "replace" is one replaced
row: OpenDP is told so (`changes=1`), and diffprivlib, whose counts and sums are for an added or
removed row, gets ε/2. Its quantiles cost ε under both. Keys are public, and given to both.
diffprivlib's own means and variances of a group divide by the exact size of the group, so they
are made of its sums and counts, whose bounds it cuts at multiples of that size all the same.
"""

from __future__ import annotations

import itertools
import warnings
from typing import Any, TypeAlias

import diffprivlib.tools as tools
import numpy as np
import numpy.typing as npt
import opendp.prelude as dp
import polars

Floats: TypeAlias = npt.NDArray[np.float64]

warnings.simplefilter("ignore")
dp.enable_features("contrib")

pl: Any = polars  # OpenDP adds to its expressions what no type says
WIDTH = 200_000.0


def context(frame: Any, relation: str, epsilon: float, queries: int = 1, delta: float = 0) -> Any:
    """Open a frame with OpenDP, which is told the number of rows where that is public."""
    lengths = {"invariant": "lengths"} if relation == "replace" else {}
    loss = {"epsilon": epsilon, "delta": delta} if delta else {"epsilon": epsilon}
    return dp.Context.compositor(
        data=frame.lazy(),
        privacy_unit=dp.unit_of(**{"changes" if relation == "replace" else "contributions": 1}),
        privacy_loss=dp.loss_of(**loss),
        split_evenly_over=queries,
        margins=[dp.polars.Margin(max_length=frame.height, **lengths)],
    )


def every(**columns: Any) -> Any:
    """All combinations of public keys."""
    return pl.LazyFrame(list(itertools.product(*columns.values())), schema=[*columns], orient="row")


# -- OpenDP ----------------------------------------------------------------------------------------


def opendp_counts(people: Any, keys: Any) -> Any:
    return people.query().group_by("city").agg(dp.len()).with_keys(keys).release().collect()


def opendp_means(people: Any, keys: Any) -> Any:
    income = pl.col("income").fill_null(0.0).fill_nan(0.0)
    sums = people.query().group_by("city").agg(dp.len(), income.dp.sum((0.0, WIDTH)))
    answer = sums.with_keys(keys).release().collect()
    return answer.with_columns(mean=pl.col("income") / pl.col("len"))


def opendp_means_centered(people: Any, keys: Any) -> Any:
    # The frame has a column off = income - WIDTH / 2, made before.
    off = pl.col("off").fill_null(0.0).fill_nan(0.0)
    sums = people.query().group_by("city").agg(dp.len(), off.dp.sum((-WIDTH / 2, WIDTH / 2)))
    answer = sums.with_keys(keys).release().collect()
    return answer.with_columns(mean=pl.col("off") / pl.col("len") + WIDTH / 2)


def opendp_variances(people: Any, keys: Any) -> Any:
    # The frame has a column square = income², made before: expressions cannot square.
    income = pl.col("income").fill_null(0.0).fill_nan(0.0)
    square = pl.col("square").fill_null(0.0).fill_nan(0.0)
    expressions = dp.len(), income.dp.sum((0.0, WIDTH)), square.dp.sum((0.0, WIDTH**2))
    answer = people.query().group_by("city").agg(*expressions).with_keys(keys).release().collect()
    answer = answer.with_columns(mean=pl.col("income") / pl.col("len"))
    return answer.with_columns(variance=pl.col("square") / pl.col("len") - pl.col("mean") ** 2)


def opendp_variances_centered(people: Any, keys: Any) -> Any:
    # The frame has off = income - WIDTH / 2 and bent = off² - WIDTH² / 8, made before.
    off, bent = (pl.col(name).fill_null(0.0).fill_nan(0.0) for name in ("off", "bent"))
    half, eighth = WIDTH / 2, WIDTH**2 / 8
    expressions = dp.len(), off.dp.sum((-half, half)), bent.dp.sum((-eighth, eighth))
    answer = people.query().group_by("city").agg(*expressions).with_keys(keys).release().collect()
    answer = answer.with_columns(mean=pl.col("off") / pl.col("len"))
    second = pl.col("bent") / pl.col("len") + eighth
    answer = answer.with_columns(variance=second - pl.col("mean") ** 2)
    return answer.with_columns(mean=pl.col("mean") + half)


def opendp_accuracies(people: Any, keys: Any) -> Any:
    income = pl.col("income").fill_null(0.0).fill_nan(0.0).dp.sum((0.0, WIDTH))
    queries = [
        people.query().group_by("city").agg(*query) for query in ([dp.len()], [dp.len(), income])
    ]
    accuracies = [
        query.with_keys(keys).summarize(alpha=0.05)["accuracy"].to_list() for query in queries
    ]
    return [*accuracies[0], *accuracies[1]]


def opendp_two_way(people: Any, keys: Any, names: list[str]) -> Any:
    return people.query().group_by(names).agg(dp.len()).with_keys(keys).release().collect()


def opendp_histogram(people: Any, edges: Floats) -> Any:
    labels = [f"{i:02d}" for i in range(len(edges) - 1)]
    cut = pl.col("income").cut(edges[1:-1].tolist(), labels=labels, left_closed=True).alias("bin")
    keys = pl.LazyFrame({"bin": pl.Series(labels, dtype=pl.Categorical)})
    query = people.query().with_columns(cut).group_by("bin").agg(dp.len())
    return query.with_keys(keys).release().collect()


def opendp_quantiles(people: Any, levels: Floats, candidates: Floats) -> Any:
    x, points = pl.col("x").fill_null(0.0).fill_nan(0.0), candidates.tolist()
    expressions = [x.dp.quantile(float(q), points).alias(f"{q}") for q in levels]
    return np.sort(people.query().select(*expressions).release().collect().to_numpy()[0])


def opendp_top(people: Any, keys: Any) -> Any:
    counts = people.query().group_by("key").agg(dp.len()).with_keys(keys).release().collect()
    return counts.sort("len", descending=True)["key"].head(10).to_list()


def opendp_keys(people: Any) -> Any:
    return people.query().group_by("key").agg(dp.len()).release().collect()["key"].to_list()


# -- diffprivlib: `epsilon` is for an added or removed row -----------------------------------------


def diffprivlib_counts(city: Any, cities: list[str], epsilon: float) -> Any:
    return [tools.count_nonzero(city == name, epsilon=epsilon) for name in cities]


def diffprivlib_means(city: Any, income: Floats, cities: list[str], epsilon: float) -> Any:
    means = []
    for name in cities:
        count = tools.count_nonzero(city == name, epsilon=epsilon / 2)
        total = tools.sum(income[city == name], epsilon=epsilon / 2, bounds=(0, WIDTH))
        means.append((count, total / max(count, 1)))
    return np.array(means)


def diffprivlib_variances(city: Any, income: Floats, cities: list[str], epsilon: float) -> Any:
    variances = []
    for name in cities:
        here = income[city == name]
        count = tools.count_nonzero(city == name, epsilon=epsilon / 3)
        mean = tools.sum(here, epsilon=epsilon / 3, bounds=(0, WIDTH)) / max(count, 1)
        squares = tools.sum(here**2, epsilon=epsilon / 3, bounds=(0, WIDTH**2))
        variances.append((count, mean, squares / max(count, 1) - mean**2))
    return np.array(variances)


def diffprivlib_two_way(codes: Any, sizes: tuple[int, int], epsilon: float) -> Any:
    ends = [(-0.5, size - 0.5) for size in sizes]
    return tools.histogram2d(*codes, epsilon=epsilon, bins=sizes, range=ends)[0]


def diffprivlib_histogram(income: Floats, edges: Floats, epsilon: float) -> Any:
    return tools.histogram(income, epsilon=epsilon, bins=edges, range=(edges[0], edges[-1]))[0]


def diffprivlib_quantiles(x: Floats, levels: Floats, bounds: Any, epsilon: float) -> Any:
    return np.sort(tools.quantile(x, levels, epsilon=epsilon, bounds=bounds))


def diffprivlib_top(items: Any, size: int, epsilon: float) -> Any:
    ends = (-0.5, size - 0.5)
    return np.argsort(tools.histogram(items, epsilon=epsilon, bins=size, range=ends)[0])[-10:]
