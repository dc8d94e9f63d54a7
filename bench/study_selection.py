"""Measure studies that publish a small object: lines (a), (b) and (c) of `bench/study.py`.

Rivals get the same data, public bounds and search, and noise of their exact scale in floats (which
changes no number below); ours runs as shipped. Equal total pure ε, replace-one neighbors.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table

from zerodelta.data.isolation import reveal
from zerodelta.data.row_queries import trial_rows
from zerodelta.models import NetworkModel
from zerodelta.privacy.claims import calibrate
from zerodelta.spaces import Finite, Subsets
from zerodelta.study.study import Study
from zerodelta.tasks.features import decision_tree, select_features
from zerodelta.tasks.models import select_model
from zerodelta.training.features import DecisionTree, Splits, best_subset, tree_of, tree_scores
from zerodelta.training.models import TanhNetwork

Floats = npt.NDArray[np.float64]
_Number = TypeVar("_Number", bool, float)

# -- (a) 1 of 16 after 1000 adaptive queries ------------------------------------------------------


def line_a(*, queries: int = 1000, outcomes: int = 16, epsilon: int = 1) -> Table:
    """Return the noise of one count among many, per unit of sensitivity."""
    n = 1000
    study = Study(
        np.zeros((n, 1)),
        epsilon=epsilon,
        publish=Finite(outcomes),
        rounds=queries,
        mixing_probability="1/1000",
        rowwise=True,
        bounds=(0, 1),
    )
    drawn = np.array([float(reveal(study.sum(0))) for _ in range(queries)])
    ours, planned = float(np.sqrt(np.mean(drawn**2))), study.plan.noise_per_query
    laplace = math.sqrt(2) * queries / epsilon
    cube = math.sqrt((queries + 1) * (queries + 2) / 3) / epsilon
    table = Table(
        "noise of one query / its sensitivity",
        "deviation",
        "× ours",
        title=f"(a) 1 of {outcomes} after {queries} queries, ε = {epsilon}, w = 0.001",
    )
    table.add_row("Study, planned", f"{planned:.1f}", "1.00")
    table.add_row(f"Study, {queries} draws", f"{ours:.1f}", f"{ours / planned:.2f}")
    table.add_row("basic composition, Laplace (adaptive)", f"{laplace:.0f}", _x(laplace / planned))
    table.add_row("l∞ K-norm (not adaptive: all at once)", f"{cube:.0f}", _x(cube / planned))
    flip = 2 * math.log(outcomes) / epsilon
    table.add_row(
        "permute-and-flip (if one score of sensitivity 1 decides)",
        f"≤ {flip:.1f}",
        "does not apply",
    )
    return table


# -- (b) k of d features ---------------------------------------------------------------------------


def correlated(
    rng: np.random.Generator, rows: int, d: int, size: int, *, proxies: int = 0
) -> tuple[Floats, set[int]]:
    """Return rows of d features in blocks of 5 (correlation 0.8) and a target, and the true set.

    The target is a difference of neighbors in two blocks, plus one more feature, with
    coefficients between 0.6 and 1, and noise (36 % of its variance). `proxies` of the other columns
    are replaced by noisy copies of the whole signal, which mislead whoever adds one by one.
    """
    blocks = d // 5
    x = math.sqrt(0.8) * np.repeat(rng.normal(size=(rows, blocks)), 5, axis=1)
    x += math.sqrt(0.2) * rng.normal(size=(rows, d))
    first = 5 * rng.permutation(blocks)
    truth = [first[0], first[0] + 1, first[1], first[1] + 1, first[2]][:size]
    signal = x[:, truth] @ (np.array([1, -1, 1, -1, 1])[:size] * rng.uniform(0.6, 1, size=size))
    signal /= signal.std()
    for j in range(proxies):
        x[:, first[-1] + j] = 0.8 * signal + 0.6 * rng.normal(size=rows)
    y = 0.8 * signal + 0.6 * rng.normal(size=rows)
    return np.column_stack([x, y]), {int(j) for j in truth}


NORM = 2.4
"""Public: features with deviation 1, cut at 3 and scaled to [-1, 1], have norm √100/3 mostly."""


def _scaled(rows: Floats, norm: float) -> tuple[Floats, Floats]:
    """Return features cut to 3 and scaled to [-1, 1], and the target; rows cut to the norm."""
    x, y = np.clip(rows[:, :-1] / 3, -1, 1), np.clip(rows[:, -1] / 2.5, -1, 1)
    factors = np.minimum(1, norm / np.sqrt((x * x).sum(axis=1)))
    return x * factors[:, None], y * factors


def gram_by_k_norm(
    rng: np.random.Generator, rows: Floats, size: int, weight: float, ridge: float, norm: float
) -> set[int]:
    """Return the search's answer on the Gram matrix with l2 K-norm noise (C10.5), ε = 1."""
    n, d = len(rows), rows.shape[1] - 1
    x, y = _scaled(rows, NORM)
    reach = NORM**2 * (1 + weight)
    entries = d * (d + 3) // 2
    direction = rng.normal(size=entries)
    noise = direction / np.linalg.norm(direction) * rng.gamma(entries) * math.sqrt(2) * reach / n
    if norm == math.inf:  # x cut to [-1, 1], each product has sensitivity 2
        x, y = _scaled(rows, math.inf)
        noise = rng.uniform(-1, 1, size=entries) * rng.gamma(entries + 1) * 2 / n
    gram, cross = x.T @ x / n, x.T @ y / n
    above = np.triu_indices(d, 1)
    added = np.zeros((d, d))
    added[above] = noise[d : d + len(above[0])]
    if norm == 2:
        added[above] /= math.sqrt(2)
    added += added.T + np.diag(noise[:d])
    entry = float(np.std(added[above]))
    scale = 1.0 if norm == math.inf else 1 / math.sqrt(2 * weight) / NORM
    return set(best_subset(gram + added, cross + noise[-d:] * scale, size, ridge * entry))


def marginal_flip(rng: np.random.Generator, rows: Floats, size: int) -> set[int]:
    """Return the features with the largest covariances by permute-and-flip, ε/k each."""
    x, y = np.clip(rows[:, :-1] / 3, -1, 1), np.clip(rows[:, -1] / 2.5, -1, 1)
    scores, chosen = np.abs(x.T @ y), list[int]()
    for _ in range(size):
        noisy = scores + 4 * size * rng.exponential(size=len(scores))
        noisy[chosen] = -math.inf
        chosen.append(int(noisy.argmax()))
    return set(chosen)


def line_b(*, runs: int = 40, rows: int = 30_000, seed: int = 5) -> list[Table]:
    """Return recovery (share of the true features found) for 5 of 100, and μ for 3 of 50."""
    tables = []
    for title, proxies in (("correlated blocks", 0), ("and a misleading proxy", 1)):
        rng = np.random.default_rng(seed)
        errors_by_name: dict[str, list[float]] = {}
        for _ in range(runs):
            data, truth = correlated(rng, rows, 100, 5, proxies=proxies)
            for name, chosen in _contenders(rng, data).items():
                errors_by_name.setdefault(name, []).append(len(chosen & truth) / 5)
        table = Table(
            "method",
            "recovery",
            "all 5 right",
            title=f"(b) 5 of 100, {title}, n = {rows}, ε = 1, {runs} runs",
        )
        for name, values in _best_settings(errors_by_name).items():
            table.add_row(name, f"{np.mean(values):.3f}", f"{np.mean(np.array(values) == 1):.2f}")
        tables.append(table)
    return [*tables, _three_of_fifty()]


def _contenders(rng: np.random.Generator, data: Floats) -> dict[str, set[int]]:
    public: dict[str, Any] = {
        "target": -1,
        "size": 5,
        "epsilon": 1,
        "bounds": (-3, 3),
        "target_bounds": (-2.5, 2.5),
        "data_norm": NORM,
    }
    x, y = data[:, :-1], data[:, -1]
    rivals = {
        "Study: internal Gram matrix": set(select_features(data, method="gram", **public).value),
        "select_features, auto": set(select_features(data, **public).value),
        "pure: stepwise permute-and-flip and fits": set(
            select_features(data, method="stepwise", **public).value
        ),
        "pure: marginal permute-and-flip": marginal_flip(rng, data, 5),
        "not private, same search": set(best_subset(np.cov(x.T), x.T @ y / len(y), 5, 0.0)),
    }
    for weight in (0.2, 0.5, 1.0):
        for ridge in (1.0, 4.5, 15.0):
            rivals[f"pure: l2 K-norm Gram | best of 9: κ {weight}, ridge {ridge}"] = gram_by_k_norm(
                rng, data, 5, weight, ridge, 2
            )
    for ridge in (1.0, 4.5, 15.0):
        rivals[f"pure: l∞ K-norm Gram | best of 3: ridge {ridge}"] = gram_by_k_norm(
            rng, data, 5, 0.2, ridge, math.inf
        )
    return rivals


def _three_of_fifty() -> Table:
    table = Table("3 of 50 features, ε = 1", "μ", title="(b) the price of δ = 0")
    study = Study(
        np.zeros((10, 1)),
        epsilon=1,
        publish=Subsets(of=50, size=3),
        rounds=1,
        mixing_probability="1/100",
    )
    gaussian = math.sqrt(calibrate(epsilon=1, log_delta=math.log(1e-6)).mu_squared)
    table.add_row("Study, pure, w = 0.01", f"{study.plan.mu:.4f}")
    table.add_row("Gaussian, (ε, 1e-6)", f"{gaussian:.4f}")
    table.add_row("ratio", f"{study.plan.mu / gaussian:.4f}")
    return table


# -- (c) 1 of 16 trained networks ------------------------------------------------------------------

PAIRS = [(a, b) for a in range(4) for b in range(4, 8)]
UNITS, ROUNDS, EPSILON = 8, 10, 0.5


def interacting(rng: np.random.Generator, rows: int, flipped: float) -> tuple[Floats, int]:
    """Return 8 uniform features and a label, the sign of one product; which pair it is.

    No feature tells anything by itself, and a third of the labels is wrong.
    """
    x = rng.uniform(-1, 1, size=(rows, 8))
    right = int(rng.integers(16))
    inside = x[:, PAIRS[right][0]] * x[:, PAIRS[right][1]] > 0
    label = np.where(rng.random(rows) < flipped, ~inside, inside)
    return np.column_stack([x, label]), right


def by_study(data: Floats) -> int:
    """Return the pair that `select_model` publishes."""
    models = {
        f"{a},{b}": NetworkModel(
            features=(a, b), label=8, lower=(-1, -1), upper=(1, 1), units=UNITS
        )
        for a, b in PAIRS
    }
    release = select_model(data, models, epsilon="1/2", rounds=ROUNDS)
    return list(models).index(release.value)


def _descend(
    rows: Floats, steps: int, way: float, noise: Callable[[int], Floats] | None
) -> tuple[TanhNetwork, Floats]:
    network = TanhNetwork(lower=(-1, -1), upper=(1, 1), units=UNITS)
    theta, kept = network.start(), []
    for t in range(steps):
        gradients = network.gradient(theta, rows)
        lengths = np.sqrt((gradients * gradients).sum(axis=1))
        mean = (gradients / np.maximum(1, lengths)[:, None]).mean(axis=0)
        mean += 0 if noise is None else noise(len(theta))
        theta = theta - way * 2 * (steps - t) / (steps * (steps + 1)) * mean
        if (steps - t) * 5 <= steps + 5:
            kept.append(theta)
    return network, np.mean(kept, axis=0)


def _accuracy(network: TanhNetwork, theta: Floats, rows: Floats) -> float:
    return float((network.predict(theta, rows[:, :2]) == rows[:, 2]).mean())


def by_pure_training(
    rng: np.random.Generator, data: Floats, steps: int, way: float
) -> tuple[int, int]:
    """Return the pairs found after l2 K-norm descent (0.7 ε), scored by l∞ K-norm, by flipping."""
    n, scale = len(data), 2 * 16 * steps / (0.7 * EPSILON * len(data))

    def noise(size: int) -> Floats:
        direction = rng.normal(size=size)
        drawn: Floats = direction / np.linalg.norm(direction) * rng.gamma(size) * scale
        return drawn

    scores = []
    for a, b in PAIRS:
        rows = data[:, [a, b, 8]]
        scores.append(_accuracy(*_descend(rows, steps, way, noise), rows))
    cube = rng.uniform(-1, 1, size=16) * rng.gamma(17) / (0.3 * EPSILON * n)
    flips = 2 * rng.exponential(size=16) / (0.3 * EPSILON * n)
    return int(np.argmax(scores + cube)), int(np.argmax(scores + flips))


def by_votes(rng: np.random.Generator, data: Floats, chunks: int) -> int:
    """Return the pair with most votes of disjoint chunks, by permute-and-flip (scale 2/ε)."""
    votes = np.zeros(16)
    for part in np.array_split(data, chunks):
        cut = 2 * len(part) // 3
        scores = []
        for a, b in PAIRS:
            rows = part[:, [a, b, 8]]
            scores.append(_accuracy(*_descend(rows[:cut], 30, 60, None), rows[cut:]))
        votes[int(np.argmax(scores))] += 1
    return int(np.argmax(votes + 2 / EPSILON * rng.exponential(size=16)))


def line_c(
    *,
    runs: int = 50,
    rival_runs: int = 12,
    rows: int = 10_000,
    flipped: float = 0.35,
    seed: int = 7,
) -> Table:
    """Return how often the right one of 16 networks is published; fewer runs for slow rivals."""
    rng = np.random.default_rng(seed)
    hits: dict[str, list[bool]] = {}
    for run in range(runs):
        data, right = interacting(rng, rows, flipped)
        hits.setdefault("Study (select_model)", []).append(by_study(data) == right)
        if run >= rival_runs:
            continue
        for chunks in (20, 40, 80):
            name = f"pure: votes, permute-and-flip | best of 3: {chunks} chunks"
            hits.setdefault(name, []).append(by_votes(rng, data, chunks) == right)
        for steps, way in ((3, 10), (3, 20), (5, 10), (5, 20)):
            cube, flip = by_pure_training(rng, data, steps, way)
            setting = f" | best of 4: {steps} steps, way {way}"
            for scored, answer in (("l∞ K-norm", cube), ("permute-and-flip", flip)):
                name = f"pure: K-norm descent, {scored} on the scores{setting}"
                hits.setdefault(name, []).append(answer == right)
    table = Table(
        "method", "right", "runs", title=f"(c) 1 of 16 trained networks, n = {rows}, ε = {EPSILON}"
    )
    for name, values in _best_settings(hits).items():
        table.add_row(name, f"{np.mean(values):.2f}", str(len(values)))
    return table


# -- a small structure: the best tree of depth two -------------------------------------------------


def line_tree(*, runs: int = 20, rows: int = 2000, epsilon: float = 0.5, seed: int = 9) -> Table:
    """Return the accuracy on fresh rows of trees over 8 features with 4 thresholds each."""
    table = Table("method", "exclusive or", "nested", title=f"trees, n = {rows}, ε = {epsilon}")
    errors_by_tree: dict[str, dict[str, list[float]]] = {}
    for kind in ("exclusive or", "nested"):
        rng = np.random.default_rng(seed)
        for _ in range(runs):
            data, fresh = _tree_rows(rng, kind, rows), _tree_rows(rng, kind, 20_000)
            for name, tree in _tree_contenders(rng, data, epsilon).items():
                accuracy = float((tree.predict(fresh) == fresh[:, -1]).mean())
                errors_by_tree.setdefault(name, {}).setdefault(kind, []).append(accuracy)
    for name, values in errors_by_tree.items():
        table.add_row(name, *(f"{np.mean(values[kind]):.3f}" for kind in values))
    return table


CUTS = (0.2, 0.35, 0.5, 0.75)
SPLITS: Splits = [(i, i, cut) for i in range(8) for cut in CUTS]


def _tree_rows(rng: np.random.Generator, kind: str, rows: int) -> Floats:
    x = rng.uniform(size=(rows, 8))
    first = x[:, 2] > 0.5
    second = np.where(first, x[:, 5] > 0.5, x[:, 5] < 0.5)
    if kind == "nested":
        second = np.where(first, x[:, 5] > 0.35, x[:, 1] > 0.75)
    return np.column_stack([x, np.where(rng.random(rows) < 0.1, ~second, second)])


def _tree_contenders(
    rng: np.random.Generator, data: Floats, epsilon: float
) -> dict[str, DecisionTree]:
    made_up = trial_rows(data, tuple(str(i) for i in range(data.shape[1])))
    scores = tree_scores(made_up, SPLITS, 8, (0.0, 1.0)).astype(np.float64)
    count = len(SPLITS)
    study = Study(
        data, epsilon=epsilon, publish=Finite(scores.size), rounds=1, mixing_probability="1/100"
    )
    pairs = (count + 1) * (count + 2) // 2

    def from_noisy_tables(deviation: float) -> DecisionTree:
        counts = [
            rng.normal(scale=deviation * 2**0.5, size=(count, 4 * count)) for _ in range(2)
        ]  # a side is right for two counts
        noisy = scores + counts[0][:, :, None] + counts[1][:, None, :]
        return chosen(int(noisy.argmax()))

    def one_by_one() -> DecisionTree:
        """Root, then both sides: ε/2 each (a row that is replaced may touch both sides)."""
        alone = scores[:, [0, 3]][:, :, [0, 3]].max(axis=(1, 2))  # sides that ignore their split
        root = int((alone + 4 / epsilon * rng.exponential(size=count)).argmax())
        sides = (scores[root][:, 0], scores[root][0])
        below, above = (
            int((side + 4 / epsilon * rng.exponential(size=len(side))).argmax()) for side in sides
        )
        return chosen((root * 4 * count + below) * 4 * count + above)

    def chosen(index: int) -> DecisionTree:
        return tree_of(index, SPLITS, (0.0, 1.0))

    return {
        "decision_tree: permute-and-flip over all trees": decision_tree(
            data, thresholds=dict.fromkeys(range(8), CUTS), epsilon=epsilon
        ).value,
        "pure composition: one split after the other": one_by_one(),
        "Study: internal tables of all pairs": from_noisy_tables((count + 1) / 4 / study.plan.mu),
        "pure: l∞ K-norm on these tables": from_noisy_tables(2 * pairs / 3**0.5 / 2 / epsilon),
        "not private": chosen(int(scores.argmax())),
    }


def _best_settings(measured: dict[str, list[_Number]]) -> dict[str, list[_Number]]:
    """Keep, of every "method | setting", the setting that did best: an oracle for the rivals."""
    best: dict[str, tuple[str, list[_Number]]] = {}
    for name, values in measured.items():
        method = name.split(" | ")[0]
        if method not in best or np.mean(values) > np.mean(best[method][1]):
            best[method] = name, values
    return dict(best.values())


def _x(ratio: float) -> str:
    return f"{ratio:.1f}"


def main() -> None:
    """Print all lines."""
    console = Console()
    console.print(line_a())
    for table in line_b():
        console.print(table)
    console.print(line_c())
    console.print(line_tree())


if __name__ == "__main__":
    main()
