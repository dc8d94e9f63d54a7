"""Measure accuracy on data sets that nobody tuned on, beside textbook pure mechanisms.

    python bench/foreign.py [--part tune | held-back] [--quick] [--only NAME ...]

**Data.** The data sets of `bench/foreign_data.py` ship inside packages, which are installed into a
folder of their own on the first run. Bounds and categories were written down before the first run.

**Split.** Decided before the first run: names are ordered by their SHA-256; those in even places
(0, 2, …) may be looked at and tuned on, those in odd places are held back, to be run once when the
work is done (`--part held-back`).

**Comparison.** ε in {1/4, 1, 4}, replace-one, n public; rivals (`bench/foreign_rivals.py`) are
written for replaced rows, or pay twice where one replaced row is an added and a removed one. Ours
is called as documentation says, without options. All are given the same bounds; several columns are
scaled by them to [-1, 1] first. Errors are in these units, too, but for ranks and counts.
"blind" reads no row: the middle of the bounds, equal chances, unrelated columns.

diffprivlib is not run: its mean, variance, histogram and quantile are the Laplace and exponential
mechanisms here (in its histogram for added rows, so at ε/2), its PCA is an exponential mechanism
like ours here, its linear regression releases the diagonal of XᵀX without noise if a bound is 0,
and an integer seed turns its secure noise off.

A row is a loss if its mean error is more than 10 % above the best rival's, and a clear loss if the
difference exceeds two standard errors, too: two mechanisms of one law are within 10 % in about 80 %
of the rows, and a clear loss in 2 %. The best rival is the one with the least measured mean, which
favors rivals. "forecast" is `release.error`; measured over forecast is printed where the two
are of the same thing. For modes and k-means the forecast says itself that it is for the worst case
or for compact clusters.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import numpy.typing as npt
import pandas as pd
from rich.console import Console
from rich.table import Table
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegression as PlainLogistic
from sklearn.metrics import log_loss

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench import foreign_rivals as rivals
from bench.foreign_data import Data, install, load, parts

import zerodelta as zd
from zerodelta.sklearn import (
    LinearRegression,
    LogisticRegression,
    NearestCentroid,
    RandomForestClassifier,
)

Floats = npt.NDArray[np.float64]
EPSILONS = (0.25, 1.0, 4.0)
LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
RUNS = {"column": 150, "several": 60, "dear": 20}
"""Of one column, of several, and of classifiers, clusters, subspaces and wide products."""
CLUSTERS = 3
SCALED = (-1, 1)
RESULTS = Path(__file__).resolve().parent / "results"
NONE = math.nan

Measured = tuple[float, float]
"""An error, and what `release.error` forecast for it."""


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One task on one data set: an error of ours and of each rival, for an ε and a run."""

    task: str
    ours: Callable[[float, int], Measured]
    rivals: Mapping[str, Callable[[float, int, np.random.Generator], float]]
    blind: float
    dear: bool = False


def _number(error: Any) -> float:
    return float(error) if isinstance(error, (int, float)) else NONE


# -- One column ------------------------------------------------------------------------------------


def column_problems(data: Data, name: str) -> Iterator[Problem]:
    place = data.columns.index(name)
    low, high = float(data.lower[place]), float(data.upper[place])
    x, n = data.scaled[:, [place]], len(data.numbers)
    raw = np.sort(np.clip(data.numbers[:, place], low, high))
    mean, variance, half = float(x.mean()), float(x.var()), (high - low) / 2

    def ours_mean(epsilon: float, _: int) -> Measured:
        found = zd.mean(x[:, 0], bounds=SCALED, epsilon=epsilon)
        return abs(found.value - mean), _number(found.error)

    def ours_sum(epsilon: float, _: int) -> Measured:
        found = zd.sum(raw, bounds=(low, high), epsilon=epsilon)
        return abs(found.value - raw.sum()) / half, _number(found.error) / half

    def ours_variance(epsilon: float, _: int) -> Measured:
        found = zd.variance(x[:, 0], bounds=SCALED, epsilon=epsilon)
        return abs(found.value - variance), _number(found.error)

    def plain(epsilon: float, _: int, draw: np.random.Generator) -> float:
        return float(abs(rivals.mean_laplace(x, epsilon, draw)[0] - mean))

    def plain_sum(epsilon: float, run: int, draw: np.random.Generator) -> float:
        return n * plain(epsilon, run, draw)

    def their_variance(
        epsilon: float, _: int, draw: np.random.Generator, *, program: Callable[..., float]
    ) -> float:
        return abs(program(x[:, 0], epsilon, draw) - variance)

    yield Problem(task="mean", ours=ours_mean, rivals={"Laplace": plain}, blind=abs(mean))
    yield Problem(task="sum", ours=ours_sum, rivals={"Laplace": plain_sum}, blind=n * abs(mean))
    yield Problem(
        task="variance",
        ours=ours_variance,
        rivals={
            "Laplace": partial(their_variance, program=rivals.variance_laplace),
            "max K-norm": partial(their_variance, program=rivals.variance_max),
        },
        blind=abs(1 / 3 - variance),
    )
    points = round(high - low) + 1 if name in data.integers else None
    grid = None if points is None else np.linspace(low, high, points)
    given: dict[str, Any] = {"bounds": (low, high)}
    given |= {} if points is None else {"grid": points}

    def off(value: float, q: float) -> float:
        return rivals.rank_error(raw, value, q, high - low)

    def their_quantile(epsilon: float, q: float, draw: np.random.Generator) -> float:
        if grid is not None:
            value = rivals.quantile_grid(raw, q, grid, epsilon, draw)
        else:
            value = rivals.quantile_exponential(raw, q, (low, high), epsilon, draw)
        return off(value, q)

    middle = (low + high) / 2
    for q in LEVELS:

        def ours(epsilon: float, _: int, q: float = q) -> Measured:
            found = zd.quantile(raw, q=q, epsilon=epsilon, **given)
            return off(found.value, q), _number(found.error)

        def theirs(epsilon: float, _: int, draw: np.random.Generator, q: float = q) -> float:
            return their_quantile(epsilon, q, draw)

        blind = low + q * (high - low)
        yield Problem(
            task="median" if q == 0.5 else f"quantile {q:g}",
            ours=ours,
            rivals={"exponential": theirs},
            blind=off(middle if q == 0.5 else blind, q),
        )

    def ours_all(epsilon: float, _: int) -> Measured:
        found = zd.quantiles(raw, q=LEVELS, epsilon=epsilon, **given)
        each = [off(v, q) for v, q in zip(found.value, LEVELS, strict=True)]
        return float(np.mean(each)), _number(found.error)

    def theirs_all(epsilon: float, _: int, draw: np.random.Generator) -> float:
        share = epsilon / len(LEVELS)
        return float(np.mean([their_quantile(share, q, draw) for q in LEVELS]))

    spread = [off(low + q * (high - low), q) for q in LEVELS]
    yield Problem(
        task="five quantiles",
        ours=ours_all,
        rivals={"exponential, ε/5 each": theirs_all},
        blind=float(np.mean(spread)),
    )


def by_group(data: Data) -> Iterator[Problem]:
    _, codes, sizes = data.tables()
    groups, size = codes[:, 0], sizes[0]
    x = data.scaled[:, data.columns.index(data.target)]
    counts = np.bincount(groups, minlength=size)
    there = counts > 0
    truth = np.bincount(groups, weights=x, minlength=size)[there] / counts[there]
    kinds = {"v": zd.number(-1, 1, missing=None), "g": zd.category([*range(size)])}
    people = zd.open(pd.DataFrame({"v": x, "g": groups}), columns=kinds)

    def ours(epsilon: float, _: int) -> Measured:
        found = zd.mean(people, "v", by="g", epsilon=epsilon).value
        error = np.abs(found["v_mean"].to_numpy()[there] - truth).mean()
        return float(error), float(found["v_mean_error"].to_numpy()[there].mean())

    def theirs(epsilon: float, _: int, draw: np.random.Generator) -> float:
        found = rivals.group_means(x, groups, size, epsilon, draw)
        return float(np.abs(found[there] - truth).mean())

    def overall(epsilon: float, _: int, draw: np.random.Generator) -> float:
        found = rivals.mean_laplace(x[:, None], epsilon, draw)
        return float(np.abs(found - truth).mean())

    yield Problem(
        task="mean by group",
        ours=ours,
        rivals={"Laplace counts and sums": theirs, "one Laplace mean for all": overall},
        blind=float(np.abs(truth).mean()),
    )

    def ours_counts(epsilon: float, _: int) -> Measured:
        found = zd.histogram(groups, universe=size, epsilon=epsilon)
        return float(np.abs(found.value - counts).mean()), _number(found.error)

    def their_counts(
        epsilon: float, _: int, draw: np.random.Generator, *, program: Callable[..., Floats]
    ) -> float:
        return float(np.abs(program(counts, epsilon, draw) - counts).mean())

    yield Problem(
        task="histogram",
        ours=ours_counts,
        rivals={
            "Laplace": partial(their_counts, program=rivals.counts_laplace),
            "geometric": partial(their_counts, program=rivals.counts_geometric),
        },
        blind=float(np.abs(counts - counts.mean()).mean()),
    )
    most = counts.max()

    def ours_mode(epsilon: float, _: int) -> Measured:
        found = zd.mode(groups, universe=size, epsilon=epsilon)
        return float(most - counts[found.value]), _number(found.error)

    def their_mode(
        epsilon: float, _: int, draw: np.random.Generator, *, program: Callable[..., int]
    ) -> float:
        return float(most - counts[program(counts, epsilon, draw)])

    yield Problem(
        task="mode",
        ours=ours_mode,
        rivals={
            "exponential": partial(their_mode, program=rivals.mode_exponential),
            "Laplace": partial(their_mode, program=rivals.mode_laplace),
        },
        blind=float(most - counts.mean()),
    )


def tables(data: Data) -> Iterator[Problem]:
    _, codes, sizes = data.tables()
    if codes.shape[1] < 2:
        return
    truth = rivals.two_way(codes, sizes)
    domain = dict(enumerate(sizes))

    def error(found: Mapping[Any, Floats]) -> float:
        gaps = [np.abs(np.asarray(found[key]) - table).ravel() for key, table in truth.items()]
        return float(np.concatenate(gaps).mean())

    def ours(epsilon: float, _: int) -> Measured:
        found = zd.answer_queries(codes, domain=domain, workload=2, epsilon=epsilon)
        return error(found.value), _number(found.error)

    def ours_rows(epsilon: float, _: int) -> Measured:
        found = zd.synthesize(codes, domain=domain, workload=2, epsilon=epsilon)
        rows = np.asarray(found.value).astype(np.int64)
        return error(rivals.two_way(rows, sizes)), _number(found.error)

    def theirs(
        epsilon: float, _: int, draw: np.random.Generator, *, program: Callable[..., Any]
    ) -> float:
        return error(program(codes, sizes, epsilon, draw))

    programs: dict[str, Callable[..., Any]] = {
        "Laplace per cell": rivals.tables_laplace,
        "one-way product": rivals.tables_product,
    }
    if math.prod(sizes) <= 1 << 16:
        programs["Laplace on all cells"] = rivals.tables_full
    them = {name: partial(theirs, program=program) for name, program in programs.items()}
    blind = error({key: np.full(t.shape, 1 / t.size) for key, t in truth.items()})
    yield Problem(task="two-way tables", ours=ours, rivals=them, blind=blind)
    yield Problem(task="synthetic rows", ours=ours_rows, rivals=them, blind=blind, dear=True)


# -- Several columns -------------------------------------------------------------------------------


def products(data: Data) -> Iterator[Problem]:
    x = data.scaled
    d = x.shape[1]
    z, dear = rivals.with_ones(x), d > 30
    mean, matrix = x.mean(axis=0), np.cov(x.T, ddof=0)
    off = ~np.eye(d, dtype=bool)
    varied = np.diag(matrix) > 0
    off_varied = off & varied & varied[:, None]
    true_correlation = rivals.correlation(matrix, 0)

    def ours_mean(epsilon: float, _: int) -> Measured:
        found = zd.mean(x, bounds=SCALED, epsilon=epsilon)
        return float(np.abs(found.value - mean).mean()), _number(found.error)

    def their_mean(
        epsilon: float, _: int, draw: np.random.Generator, *, program: Callable[..., Floats]
    ) -> float:
        return float(np.abs(program(x, epsilon, draw) - mean).mean())

    yield Problem(
        task="means",
        ours=ours_mean,
        rivals={
            "Laplace": partial(their_mean, program=rivals.mean_laplace),
            "max K-norm": partial(their_mean, program=rivals.mean_max),
            "l2 K-norm": partial(their_mean, program=rivals.mean_two),
        },
        blind=float(np.abs(mean).mean()),
    )

    def ours_covariance(epsilon: float, _: int) -> Measured:
        found = zd.covariance(x, bounds=SCALED, epsilon=epsilon)
        return float(np.abs(found.value - matrix).mean()), _number(found.error)

    def their_covariance(
        epsilon: float, _: int, draw: np.random.Generator, *, moments: rivals.Moments
    ) -> float:
        found = rivals.covariance(moments(z, epsilon, draw)[0])
        return float(np.abs(found - matrix).mean())

    yield Problem(
        task="covariance",
        ours=ours_covariance,
        rivals={
            k: partial(their_covariance, moments=moments) for k, moments in rivals.MOMENTS.items()
        },
        blind=float(np.abs(np.eye(d) / 3 - matrix).mean()),
        dear=dear,
    )

    def ours_correlation(epsilon: float, _: int) -> Measured:
        found = zd.correlation(x, bounds=SCALED, epsilon=epsilon)
        return float(np.abs(found.value - true_correlation)[off_varied].mean()), NONE

    def their_correlation(
        epsilon: float,
        _: int,
        draw: np.random.Generator,
        *,
        moments: rivals.Moments,
        times: float,
    ) -> float:
        noisy, deviation = moments(z, epsilon, draw)
        found = rivals.correlation(rivals.covariance(noisy), times * deviation)
        return float(np.abs(found - true_correlation)[off_varied].mean())

    yield Problem(
        task="correlation",
        ours=ours_correlation,
        rivals={
            f"{k}, variances from {times:g} deviations": partial(
                their_correlation, moments=moments, times=times
            )
            for k, moments in rivals.MOMENTS.items()
            for times in (0.1, 1.0)
        },
        blind=float(np.abs(true_correlation)[off_varied].mean()),
        dear=dear,
    )
    k = 1 if d < 3 else 2 if d < 6 else 3
    axes = rivals.leading(matrix, k)

    def angle(found: Floats) -> float:
        return float(1 - ((axes.T @ found) ** 2).sum() / k)

    def ours_axes(epsilon: float, _: int) -> Measured:
        found = zd.pca(x, components=k, bounds=SCALED, epsilon=epsilon)
        return angle(np.asarray(found.value.components)[:k].T), NONE

    def their_axes(
        epsilon: float, _: int, draw: np.random.Generator, *, moments: rivals.Moments
    ) -> float:
        return angle(rivals.leading(rivals.covariance(moments(z, epsilon, draw)[0]), k))

    def exponential(epsilon: float, _: int, draw: np.random.Generator) -> float:
        found = rivals.subspace_exponential(x, k, epsilon, draw)
        return NONE if found is None else angle(found)

    yield Problem(
        task=f"pca, k={k}",
        ours=ours_axes,
        rivals={
            **{name: partial(their_axes, moments=m) for name, m in rivals.MOMENTS.items()},
            "exponential": exponential,
        },
        blind=1 - k / d,
        dear=True,
    )


def lines(data: Data) -> Iterator[Problem]:
    place = data.columns.index(data.target)
    x, y = np.delete(data.scaled, place, axis=1), data.scaled[:, place]
    d = x.shape[1]
    z = rivals.with_ones(x)
    best = float(((y - z @ np.linalg.lstsq(z, y)[0]) ** 2).mean())

    def excess(weights: Floats) -> float:
        return float(((y - z @ weights) ** 2).mean()) - best

    def ours(epsilon: float, _: int) -> Measured:
        model = LinearRegression(epsilon=epsilon, data_norm=math.sqrt(d), bounds_y=SCALED)
        model.fit(x, y)
        weights = np.concatenate([[model.intercept_], np.ravel(model.coef_)])
        return excess(weights), _number(model.release_.error)

    def theirs(
        epsilon: float, _: int, draw: np.random.Generator, *, fit: Callable[..., Floats]
    ) -> float:
        return excess(fit(x, y, epsilon, draw))

    fits = {name: rivals.line_by(moments) for name, moments in rivals.MOMENTS.items()}
    fits["Laplace mean, no slope"] = rivals.line_constant
    yield Problem(
        task="linear regression",
        ours=ours,
        rivals={name: partial(theirs, fit=fit) for name, fit in fits.items()},
        blind=float((y**2).mean()) - best,
        dear=d > 30,
    )
    if d < 5:
        return
    size, total = 3, float(y.var())

    def left(chosen: list[int]) -> float:
        part = z[:, [0, *(place + 1 for place in chosen)]]
        return float(((y - part @ np.linalg.lstsq(part, y)[0]) ** 2).mean()) / max(total, 1e-12)

    stepwise: list[int] = []
    for _ in range(size):
        rest = [place for place in range(d) if place not in stepwise]
        stepwise.append(min(rest, key=lambda place: left([*stepwise, place])))
    least = left(stepwise)
    draw = np.random.default_rng(0)
    blind = np.mean([left([*draw.choice(d, size, replace=False)]) for _ in range(40)]) - least

    def ours_chosen(epsilon: float, _: int) -> Measured:
        found = zd.select_features(
            np.column_stack([x, y]),
            target=-1,
            size=size,
            bounds=SCALED,
            target_bounds=SCALED,
            epsilon=epsilon,
        )
        return max(0.0, left([int(name) for name in found.value]) - least), NONE

    def their_chosen(epsilon: float, _: int, draw: np.random.Generator) -> float:
        chosen = rivals.correlated_features(x, y, size, epsilon, draw)
        return max(0.0, left(chosen) - least)

    yield Problem(
        task="three features",
        ours=ours_chosen,
        rivals={"exponential on products": their_chosen},
        blind=float(blind),
        dear=d > 30,
    )


CLASSIFIERS: dict[str, Callable[..., Any]] = {
    "logistic": LogisticRegression,
    "nearest centroid": NearestCentroid,
    "nearest centroid, l2": partial(NearestCentroid, block="l2"),
    "forest": RandomForestClassifier,
}


def classifiers(data: Data) -> Iterator[Problem]:
    if not data.label:
        return
    keep = [place for place, name in enumerate(data.columns) if name != data.label]
    x, labels = data.scaled[:, keep], data.choices[data.label]
    classes = data.options[data.label]
    n = len(x)
    every = [*range(classes)]

    def split(run: int) -> tuple[Any, ...]:
        order = np.random.default_rng(run).permutation(n)
        inside, outside = order[: n * 7 // 10], order[n * 7 // 10 :]
        return x[inside], labels[inside], x[outside], labels[outside]

    plain: dict[int, float] = {}

    def least(run: int) -> float:
        if run not in plain:
            rows, truth, new, wanted = split(run)
            losses = []
            for c in (1e-3, 0.03, 1, 100):  # the weakest line tells frequencies only
                model = PlainLogistic(C=c, max_iter=1000).fit(rows, truth)
                chances = np.full((len(new), classes), 1e-9)
                chances[:, model.classes_] = model.predict_proba(new)
                chances /= chances.sum(axis=1, keepdims=True)
                losses.append(float(log_loss(wanted, chances, labels=every)))
            plain[run] = min(losses)
        return plain[run]

    fitted: dict[tuple[str, float, int], tuple[float, float, float]] = {}

    def fit(name: str, epsilon: float, run: int) -> tuple[float, float, float]:
        if (name, epsilon, run) not in fitted:
            rows, truth, new, wanted = split(run)
            model = CLASSIFIERS[name](epsilon=epsilon, bounds=SCALED, classes=every)
            model.fit(rows, truth)
            wrong = float((model.predict(new) != wanted).mean())
            loss = float(log_loss(wanted, model.predict_proba(new), labels=every))
            fitted[name, epsilon, run] = (loss, wrong, _number(model.release_.error))
        return fitted[name, epsilon, run]

    def advised(epsilon: float) -> str:
        rows, width = n * 7 // 10, x.shape[1]
        advice = zd.advise("classifier", n=rows, dimension=width, classes=classes, epsilon=epsilon)
        return str(advice.best.name)

    def ours(epsilon: float, run: int, *, score: int, name: str = "") -> Measured:
        loss, wrong, _ = fit(name or advised(epsilon), epsilon, run)
        return (wrong, NONE) if score else (loss, NONE)

    def ours_excess(epsilon: float, run: int) -> Measured:
        loss, _, forecast = fit("logistic", epsilon, run)
        return max(0.0, loss - least(run)), forecast

    found: dict[tuple[str, float, int], tuple[float, float]] = {}

    def theirs(
        epsilon: float, run: int, draw: np.random.Generator, *, name: str, score: int
    ) -> float:
        if (name, epsilon, run) not in found:
            rows, truth, new, wanted = split(run)
            chances = rivals.CLASSIFIERS[name](rows, truth, classes, new, epsilon, draw)
            loss = float(log_loss(wanted, chances, labels=every))
            found[name, epsilon, run] = loss, float((chances.argmax(axis=1) != wanted).mean())
        return found[name, epsilon, run][score]

    def excess(epsilon: float, run: int, draw: np.random.Generator, *, name: str) -> float:
        return max(0.0, theirs(epsilon, run, draw, name=name, score=0) - least(run))

    blinds = (math.log(classes), 1 - 1 / classes)
    for score, title in enumerate(("log loss", "error rate")):
        them = {name: partial(theirs, name=name, score=score) for name in rivals.CLASSIFIERS}
        for kind, name in (("advised classifier", ""), ("LogisticRegression", "logistic")):
            yield Problem(
                task=f"{kind}, {title}",
                ours=partial(ours, score=score, name=name),
                rivals=them,
                blind=blinds[score],
                dear=True,
            )
    yield Problem(
        task="LogisticRegression, excess log loss",
        ours=ours_excess,
        rivals={name: partial(excess, name=name) for name in rivals.CLASSIFIERS},
        blind=max(0.0, blinds[0] - float(np.mean([least(run) for run in range(3)]))),
        dear=True,
    )


def clusters(data: Data) -> Iterator[Problem]:
    x = data.scaled

    def cost(centers: Floats) -> float:
        squares = [((x - center) ** 2).sum(axis=1) for center in centers]
        return float(np.min(squares, axis=0).sum())

    least = cost(KMeans(CLUSTERS, n_init=10, random_state=0).fit(x).cluster_centers_)

    def ours(epsilon: float, _: int) -> Measured:
        found = zd.kmeans(x, clusters=CLUSTERS, bounds=SCALED, epsilon=epsilon)
        return max(0.0, cost(np.asarray(found.value)) / least - 1), _number(found.error)

    def theirs(
        epsilon: float, _: int, draw: np.random.Generator, *, program: Callable[..., Floats]
    ) -> float:
        return max(0.0, cost(program(x, CLUSTERS, epsilon, draw)) / least - 1)

    yield Problem(
        task="k-means, k=3",
        ours=ours,
        rivals={
            "Lloyd, Laplace": partial(theirs, program=rivals.lloyd),
            "one center": partial(theirs, program=rivals.one_center),
        },
        blind=cost(np.zeros((1, x.shape[1]))) / least - 1,
        dear=True,
    )


# -- Running and reporting -------------------------------------------------------------------------


def problems(data: Data) -> Iterator[tuple[str, Problem]]:
    first = next(name for name in data.columns if name != data.target)
    for name in (data.target, first):
        for problem in column_problems(data, name):
            yield name, problem
    for family in (by_group, tables, products, lines, classifiers, clusters):
        for problem in family(data):
            yield "", problem


def measure(data: Data, column: str, problem: Problem, epsilon: float, runs: int) -> dict[str, Any]:
    """Return one row of the results: mean errors with their standard errors."""
    ours = np.array([problem.ours(epsilon, run) for run in range(runs)])
    scores: dict[str, Measured] = {}
    for name, rival in problem.rivals.items():
        seed = f"{data.name}, {column}, {problem.task}, {epsilon}, {name}"
        draw = np.random.default_rng(zlib.crc32(seed.encode()))
        found = np.array([rival(epsilon, run, draw) for run in range(runs)])
        if np.isfinite(found).all():
            scores[name] = _mean(found)
    mean, error = _mean(ours[:, 0])
    forecast = float(ours[:, 1].mean())
    best = min(scores, key=lambda name: scores[name])
    least, least_error = scores[best]
    return {
        "data": data.name,
        "column": column,
        "task": problem.task,
        "n": len(data.numbers),
        "d": len(data.columns),
        "epsilon": epsilon,
        "runs": runs,
        "ours": mean,
        "standard error": error,
        "rivals": {name: score[0] for name, score in scores.items()},
        "best rival": best,
        "ratio": (mean + 1e-12) / (least + 1e-12),
        "clear": bool(abs(mean - least) > 2 * math.hypot(error, least_error)),
        "blind": problem.blind,
        "forecast": None if math.isnan(forecast) else forecast,
    }


def _mean(values: Floats) -> Measured:
    return float(values.mean()), float(values.std(ddof=1) / math.sqrt(len(values)))


Rows = list[dict[str, Any]]


def run(names: list[str], quick: bool, file: Path | None) -> Rows:
    rows: Rows = []
    for name in names:
        start, data = time.perf_counter(), load(name)
        for column, problem in problems(data):
            runs = RUNS["dear" if problem.dear else "column" if column else "several"]
            runs = max(2, runs // 6) if quick else runs
            rows += [measure(data, column, problem, epsilon, runs) for epsilon in EPSILONS]
        print(f"{name}: {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
        if file is not None:
            lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
            file.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    return rows


def is_loss(row: Mapping[str, Any]) -> bool:
    return bool(row["ratio"] > 1.1)


def summary(rows: Rows) -> Table:
    table = Table(title="Ours out of the box beside the best pure rival, by task")
    for name in (
        "task", "rows", "best or within 10 %", "clear losses", "worse than blind",
        "median ratio", "worst clear loss", "measured / forecast: 5 %, 50 %, 95 %",
        "below 1/3, above 3",
    ):  # fmt: skip
        table.add_column(name)
    tasks = list(dict.fromkeys(row["task"] for row in rows))
    for task in (*tasks, "all"):
        part = [row for row in rows if task in (row["task"], "all")]
        ratios = np.array([row["ratio"] for row in part])
        forecasts = [row["ours"] / row["forecast"] for row in part if row["forecast"]]
        shown = np.quantile(forecasts, (0.05, 0.5, 0.95)) if forecasts else []
        low, high = sum(f < 1 / 3 for f in forecasts), sum(f > 3 for f in forecasts)
        lost = [row["ratio"] for row in part if is_loss(row) and row["clear"]]
        table.add_row(
            task,
            str(len(part)),
            f"{np.mean(ratios <= 1.1):.0%}",
            str(len(lost)),
            str(sum(row["ours"] > row["blind"] for row in part)),
            f"{np.median(ratios):.2f}",
            f"{max(lost):.3g}" if lost else "",
            ", ".join(f"{value:.2g}" for value in shown),
            f"{low}, {high} of {len(forecasts)}" if forecasts else "",
        )
    return table


def details(title: str, rows: Rows) -> Table:
    table = Table(title=title)
    for name in (
        "data", "column", "task", "ε", "ours", "best rival", "", "ratio", "clear", "blind",
        "forecast",
    ):  # fmt: skip
        table.add_column(name)
    for row in rows:
        forecast = row["forecast"]
        table.add_row(
            f"{row['data']} ({row['n']} × {row['d']})",
            row["column"],
            row["task"],
            f"{row['epsilon']:g}",
            f"{row['ours']:.3g}",
            f"{row['rivals'][row['best rival']]:.3g}",
            row["best rival"],
            f"{row['ratio']:.3g}" if row["ratio"] < 1e6 else "∞",
            "yes" if row["clear"] else "",
            f"{row['blind']:.3g}",
            "" if forecast is None else f"{forecast:.3g}",
        )
    return table


def report(rows: Rows) -> None:
    console = Console(width=170)
    console.print(summary(rows))
    worst = sorted(filter(is_loss, rows), key=lambda row: -row["ratio"])
    console.print(details("More than 10 % worse than the best rival", worst))
    far = [row for row in rows if row["forecast"] and row["ours"] and not 1 / 3 <= _off(row) <= 3]
    far.sort(key=lambda row: (row["task"], -_off(row)))
    console.print(details("Measured error, if any, over forecast outside [1/3, 3]", far))


def _off(row: Mapping[str, Any]) -> float:
    return float(row["ours"] / row["forecast"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", choices=["tune", "held-back"], default="tune")
    parser.add_argument("--quick", action="store_true", help="a sixth of the runs, nothing saved")
    parser.add_argument("--only", nargs="+", default=[], help="these data sets of the part")
    parser.add_argument("--show", action="store_true", help="print the saved results")
    asked = parser.parse_args()
    suffix = "" if asked.part == "tune" else "_held_back"
    file = RESULTS / f"foreign{suffix}.json"
    if asked.show:
        report(json.loads(file.read_text(encoding="utf-8")))
        return
    install()
    names = parts()[asked.part]
    if asked.only:
        names = [name for name in names if name in asked.only]
    saved = None if asked.quick or asked.only else file
    report(run(names, asked.quick, saved))


if __name__ == "__main__":
    main()
