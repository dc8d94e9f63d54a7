"""Compare tables, quantiles and keys with OpenDP, diffprivlib and Tumult at equal ε.

    pip install opendp[polars] diffprivlib
    python bench/tables.py [--runs 12] [--relation replace] [--tumult PYTHON] [task ...]

ε = 1 under both relations: one replaced row (n is public), and one added or removed row. What users
of the peers write is in `bench/tables_peers.py`, what ours write in `bench/tables_ours.py`.
Printed, as Markdown: mean errors, the best peer's over ours (± its standard error), median
processor seconds of a run, opening the data included, and in brackets how many lines each wrote
after that. "centered by hand" is OpenDP given columns shifted so that their bounds are symmetric.
Data and seeds were fixed before the first run; all rows are made up, and peers get fewer runs where
one takes long. Of noise alone errors are known: "laws".
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench import tables_peers as peers
from bench.tables_keys import (
    KEYS,
    LOG_DELTA,
    ROWS,
    best_approximate,
    found_by,
    known_counts,
    measured,
    place_loss,
    zipf,
)
from bench.tables_ours import (
    CITIES,
    EDGES,
    KINDS,
    PAIRS,
    SIZES,
    made_people,
    opened,
    our_counts,
    our_histogram,
    our_keys,
    our_means,
    our_quantiles,
    our_tables,
    our_top,
    our_two_way,
    our_variances,
)
from bench.tables_quantiles import DATA, rank_errors, separate
from bench.tables_report import EPSILON, OURS, RELATIONS, Report, header, lines_of, row, tumult
from bench.tables_widths import widths

import zerodelta as zd
from zerodelta.mechanisms.key_noise import FOR_KEYS, KeyNoise

Floats: TypeAlias = npt.NDArray[np.float64]
Scores: TypeAlias = Mapping[str, float]

# -- tasks -----------------------------------------------------------------------------------------


def city_scores(
    frame: pl.DataFrame, columns: Mapping[str, str], count: str
) -> Callable[[Any], Scores]:
    """Score a frame with a line for each city: `columns` says what its columns are called."""
    truth = frame.group_by("city").agg(
        pl.len().alias("count"),
        pl.col("income").mean().alias("mean"),
        pl.col("income").var(ddof=0).alias("variance"),
    )
    true = truth.sort("city")

    def score(answer: Any) -> Scores:
        found = answer.sort("city")
        scores = {}
        for name, column in {"count": count, **columns}.items():
            wrong = np.abs(found[column].to_numpy().astype(float) - true[name].to_numpy())
            if name == "variance":
                wrong = wrong / true[name].to_numpy()
            scores[NAMED[name]] = float(wrong.mean())
        return scores

    return score


NAMED = {
    "count": "of a count (rows)",
    "mean": "of a mean (bounds 0, 200 000)",
    "variance": "of a variance (part of it)",
}


SHOWN = {"counts": "counts", "means": "count, mean", "variances": "count, mean, variance"}


def as_frame(columns: Any) -> pl.DataFrame:
    """Name the columns of an answer without keys: counts, then means, then variances."""
    names = ["count", "mean", "variance"][: len(columns)]
    return pl.DataFrame({"city": CITIES, **dict(zip(names, columns, strict=True))})


def by_city(report: Report, runs: int) -> None:
    frame, relation = made_people(), report.relation
    half = EPSILON / 2 if relation == "replace" else EPSILON
    keys = peers.every(city=CITIES)
    city, income = frame["city"].to_numpy(), frame["income"].to_numpy()
    asked: dict[str, tuple[Any, list[tuple[str, Any]], Any]] = {
        "counts": (our_counts, [("OpenDP", peers.opendp_counts)], peers.diffprivlib_counts),
        "means": (
            our_means,
            [
                ("OpenDP", peers.opendp_means),
                ("OpenDP, centered by hand", peers.opendp_means_centered),
            ],
            partial(peers.diffprivlib_means, income=income),
        ),
        "variances": (
            our_variances,
            [
                ("OpenDP", peers.opendp_variances),
                ("OpenDP, centered by hand", peers.opendp_variances_centered),
            ],
            partial(peers.diffprivlib_variances, income=income),
        ),
    }
    for number_of, (task, (ours, theirs, other)) in enumerate(asked.items(), 1):
        name = f"{SHOWN[task]} by city"
        statistics = ["mean", "variance"][: number_of - 1]
        our_names = {each: f"income_{each}" for each in statistics}
        plain = city_scores(frame, {each: each for each in statistics}, "count")

        def ask_us(ours: Any = ours) -> Any:
            return ours(opened(frame, KINDS, relation))

        score = city_scores(frame, our_names, "count")
        report.add(name, OURS, 10 * runs, ask_us, lines_of(ours), score)
        for who, program in theirs:

            def ask_them(program: Any = program) -> Any:
                return program(peers.context(frame, relation, EPSILON), keys)

            score = city_scores(frame, {each: each for each in statistics}, "len")
            report.add(name, who, max(2, runs // 3), ask_them, lines_of(program), score)

        def ask_other(other: Any = other) -> Any:
            found = other(city, cities=CITIES, epsilon=half)
            return as_frame([found] if np.ndim(found) == 1 else list(np.transpose(found)))

        program = getattr(other, "func", other)
        report.add(name, "diffprivlib", 10 * runs, ask_other, lines_of(program), plain)
        report.add_told(name, task, plain, pl.DataFrame)


def histogram(report: Report, runs: int) -> None:
    frame, relation = made_people(), report.relation
    half = EPSILON / 2 if relation == "replace" else EPSILON
    income = frame["income"].to_numpy()
    truth, name = np.histogram(income, EDGES)[0], "histogram, 20 bins"

    def score(counts: Any) -> Scores:
        return {"of a count (rows)": float(np.abs(np.array(counts, dtype=float) - truth).mean())}

    def ask_us() -> Any:
        return our_histogram(opened(frame, KINDS, relation))

    def ask_opendp() -> Any:
        found = peers.opendp_histogram(peers.context(frame, relation, EPSILON), EDGES)
        return found.sort(pl.col("bin").cast(pl.String))["len"].to_numpy()

    report.add(name, OURS, 10 * runs, ask_us, lines_of(our_histogram), score)
    few, lines = max(2, runs // 3), lines_of(peers.opendp_histogram)
    report.add(name, "OpenDP", few, ask_opendp, lines, score)
    ask = partial(peers.diffprivlib_histogram, income, EDGES, half)
    report.add(name, "diffprivlib", 10 * runs, ask, lines_of(peers.diffprivlib_histogram), score)
    report.add_told(name, "histogram", score, lambda answer: answer["count"])


def codes_of(frame: pl.DataFrame, name: str) -> Any:
    """Return a column as positions of its keys."""
    column = frame[name].to_numpy()
    return np.searchsorted(CITIES, column) if name == "city" else column


def two_way(report: Report, runs: int) -> None:
    """One table, then all six of four columns."""
    frame, relation = made_people(), report.relation
    half = EPSILON / 2 if relation == "replace" else EPSILON
    codes = {name: codes_of(frame, name) for name in SIZES}
    truth = {
        pair: np.bincount(
            codes[pair[0]] * SIZES[pair[1]] + codes[pair[1]],
            minlength=SIZES[pair[0]] * SIZES[pair[1]],
        )
        for pair in PAIRS
    }
    options = {name: CITIES if name == "city" else list(range(n)) for name, n in SIZES.items()}

    def score(tables: Mapping[Any, Any]) -> Scores:
        wrong = [np.abs(np.ravel(table) - truth[pair]) for pair, table in tables.items()]
        return {"of a count (rows)": float(np.mean(np.concatenate(wrong)))}

    def opendp(pairs: list[Any]) -> Any:
        context, found = peers.context(frame, relation, EPSILON, len(pairs)), {}
        for pair in pairs:
            keys = peers.every(**{name: options[name] for name in pair})
            table = peers.opendp_two_way(context, keys, [*pair])
            found[pair] = table.sort(*pair)["len"].to_numpy().astype(float)
        return found

    def diffprivlib(pairs: list[Any]) -> Any:
        return {
            (a, b): peers.diffprivlib_two_way(
                (codes[a], codes[b]), (SIZES[a], SIZES[b]), half / len(pairs)
            )
            for a, b in pairs
        }

    def ask_one() -> Any:
        found = our_two_way(opened(frame, KINDS, relation)).sort("city", "decade")
        return {PAIRS[0]: found["count"].to_numpy()}

    def ask_six() -> Any:
        found = our_tables(opened(frame, KINDS, relation))
        return {pair: table * frame.height for pair, table in found.items()}

    for name, pairs, ask_us, ours in (
        ("city × decade (120 cells)", PAIRS[:1], ask_one, our_two_way),
        ("six two-way tables of 4 columns", PAIRS, ask_six, our_tables),
    ):
        few, loop = max(2, runs // 3 // len(pairs)), 2 * (len(pairs) > 1)
        report.add(name, OURS, runs, ask_us, lines_of(ours), score)
        lines = lines_of(peers.opendp_two_way) + loop
        report.add(name, "OpenDP", few, partial(opendp, pairs), lines, score)
        lines = lines_of(peers.diffprivlib_two_way) + loop
        report.add(name, "diffprivlib", runs, partial(diffprivlib, pairs), lines, score)
        if len(pairs) == 1:
            report.add_told(name, "two_way", score, lambda answer: {PAIRS[0]: answer["count"]})


CANDIDATES = {
    "uniform, n = 1e5": np.linspace(0, 1, 10_001),
    "lognormal σ=2, n = 1e5": np.geomspace(1e-4, 1e6, 10_001),
}
"""What OpenDP chooses between: it has no default. Powers where rows are lognormal favor it."""


def quantiles(report: Report, runs: int) -> None:
    relation = report.relation
    for (label, candidates), m in itertools.product(CANDIDATES.items(), (9, 99)):
        make, bounds, _ = DATA[label]
        x = np.clip(make(np.random.default_rng(16)), *bounds)
        levels, name = np.arange(1, m + 1) / (m + 1), f"{m} quantiles, {label}"
        columns, frame = {"0": zd.number(*bounds, missing=None)}, pl.DataFrame({"x": x})

        def score(values: Any, x: Floats = x, levels: Floats = levels) -> Scores:
            errors = rank_errors(x, np.asarray(values), levels)
            return {"mean rank": float(errors.mean()), "largest rank": float(errors.max())}

        def ask_us(x: Floats = x, columns: Any = columns, levels: Floats = levels) -> Any:
            return our_quantiles(opened(x, columns, relation), levels)

        def ask_opendp(frame: Any = frame, levels: Any = levels, points: Any = candidates) -> Any:
            return peers.opendp_quantiles(peers.context(frame, relation, EPSILON), levels, points)

        report.add(name, OURS, runs, ask_us, lines_of(our_quantiles), score)
        few = max(1, runs // (3 if m == 9 else 6))
        report.add(name, "OpenDP", few, ask_opendp, lines_of(peers.opendp_quantiles), score)
        ask = partial(peers.diffprivlib_quantiles, x, levels, bounds, EPSILON)
        lines = lines_of(peers.diffprivlib_quantiles)
        report.add(name, "diffprivlib", few, ask, lines, score)
        if relation == "replace":
            asked = {"bounds": bounds, "grid": None}
            calls = partial(separate, x, levels, asked)
            report.add(name, "zd.quantile, one by one", few, calls, 1, score)
            calls = partial(separate, x, levels, {**asked, "margin": 0})
            report.add(name, "zd.quantile, margin=0", few, calls, 1, score)


def top_ten(report: Report, runs: int) -> None:
    relation, rows, size = report.relation, 10_000, 100_000
    counts = known_counts(rows, size)
    items = np.repeat(np.arange(size), counts)
    frame, keys = pl.DataFrame({"key": items}), pl.LazyFrame({"key": np.arange(size)})
    columns = {"0": zd.number(0, size - 1, integer=True)}

    def score(found: Any) -> Scores:
        return {"loss of a place (rows)": place_loss(counts, list(found))}

    for epsilon in (1.0, 0.2):
        half, name = (
            epsilon / 2 if relation == "replace" else epsilon,
            f"top 10 of 1e5, ε = {epsilon}",
        )

        def ask_us(epsilon: float = epsilon) -> Any:
            return our_top(opened(items, columns, relation), epsilon)

        def ask_opendp(epsilon: float = epsilon) -> Any:
            return peers.opendp_top(peers.context(frame, relation, epsilon), keys)

        report.add(name, OURS, 2 * runs, ask_us, lines_of(our_top), score)
        few = max(1, runs // 6)
        report.add(name, "OpenDP", few, ask_opendp, lines_of(peers.opendp_top), score)
        ask = partial(peers.diffprivlib_top, items, size, half)
        report.add(name, "diffprivlib", 2 * runs, ask, lines_of(peers.diffprivlib_top), score)


def unknown_keys(report: Report, runs: int) -> None:
    """Pure DP beside (ε, 1e-10): how many keys are found, and how many rows they hold."""
    relation, replace = report.relation, report.relation == "replace"
    items = zipf(ROWS, 1.3, KEYS, seed=0)
    counts = dict(Counter(items.tolist()))
    frame, columns = pl.DataFrame({"key": items}), {"0": zd.number(0, KEYS - 1, integer=True)}
    rng = np.random.default_rng(1)

    def ours(goal: str) -> list[Any]:
        return list(our_keys(opened(items, columns, relation), goal))

    def opendp() -> list[Any]:
        return list(
            peers.opendp_keys(peers.context(frame, relation, EPSILON, 1, math.exp(LOG_DELTA)))
        )

    even = EPSILON if replace else 2 * EPSILON  # α + β: added rows need no more than either
    finders: list[tuple[str, Callable[[], list[Any]], int]] = [
        ('zerodelta, goal="keys"', partial(ours, "keys"), lines_of(our_keys)),
        ('zerodelta, goal="counts"', partial(ours, "counts"), lines_of(our_keys)),
        (
            "symmetric thresholds, δ = 0",
            partial(found_by, KeyNoise.symmetric(epsilon=even), counts),
            0,
        ),
    ]
    if replace:
        wide, safe = math.sqrt(-LOG_DELTA), math.sqrt(FOR_KEYS)
        ways = (("even", EPSILON / 2), ("our", EPSILON * wide / (wide + safe)))
        for name, up in ways:
            pick = partial(best_approximate, counts, up, EPSILON - up, LOG_DELTA, rng)
            finders.append((f"optimal, δ = 1e-10, {name} directions", pick, 0))
    else:
        pick = partial(best_approximate, counts, EPSILON, EPSILON, LOG_DELTA + math.log(2), rng)
        finders.append(("optimal, δ = 1e-10", pick, 0))
    finders.append(("OpenDP, δ = 1e-10", opendp, lines_of(peers.opendp_keys)))
    rows_of = "1e6 Zipf(1.3) rows, 26^10 keys, ε = 1, one false key"
    print(f"\n### Unknown keys, {RELATIONS[relation]}: {rows_of}\n")
    header(["", "keys found", "rows covered", "false keys", "seconds (lines)"])
    for name, find, lines in finders:
        keys, rows, false, seconds = measured(find, counts, max(2, runs // 3))
        cost = f"{seconds:.2g} ({lines})" if lines else "(counts given)"
        print(row([name, f"{keys:.0f}", f"{rows:.1%}", f"{false:.2f}", cost]), flush=True)


def laws(report: Report, runs: int) -> None:
    """The expected absolute error of a count: geometric noise; rounded Laplace noise beside it."""
    scale = (2 if report.relation == "replace" else 1) / EPSILON
    ratio = math.exp(-1 / scale)
    geometric, rounded = 2 * ratio / (1 - ratio**2), math.exp(-0.5 / scale) / (1 - ratio)
    print(
        f"\ncounts, {RELATIONS[report.relation]}, ε = {EPSILON}, by the law of the noise: ", end=""
    )
    print(f"geometric (ours, the peers) {geometric:.3f}, rounded Laplace {rounded:.3f}")


TASKS = {
    "laws": laws,
    "widths": widths,
    "by_city": by_city,
    "histogram": histogram,
    "two_way": two_way,
    "quantiles": quantiles,
    "top_ten": top_ten,
    "unknown_keys": unknown_keys,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tasks", nargs="*", help=f"of {', '.join(TASKS)}; or all")
    parser.add_argument("--runs", type=int, default=12)
    parser.add_argument("--relation", choices=[*RELATIONS], help="only this one")
    parser.add_argument("--tumult", help="a Python that has tmlt.analytics, and Java")
    given, frame = parser.parse_args(), made_people().select(*KINDS)
    for relation in [given.relation] if given.relation else RELATIONS:
        report = Report(relation, tumult(given.tumult, frame, relation) if given.tumult else ())
        try:
            for name in given.tasks or TASKS:
                TASKS[name](report, given.runs)
        finally:  # what was measured, also if it is interrupted
            report.show()


if __name__ == "__main__":
    main()
