"""Run textbook pure mechanisms as rivals for `bench/foreign.py`, in floats: no privacy is claimed.

All are ε-DP under replace-one for a public number of rows, with the same public bounds as ours.
Numbers are scaled to [-1, 1]. What costs nothing (cutting an answer to its bounds) is done to them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import combinations

import numpy as np
import numpy.typing as npt
from sklearn.linear_model import LogisticRegression

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]
Draw = np.random.Generator


# -- Noise -----------------------------------------------------------------------------------------


def laplace(draw: Draw, size: int, sensitivity: float, epsilon: float) -> Floats:
    """Return noise for this l1 sensitivity."""
    return draw.laplace(0, sensitivity / epsilon, size)


def k_norm_max(draw: Draw, size: int, sensitivity: float, epsilon: float) -> Floats:
    """Return K-norm noise for this l∞ sensitivity."""
    radius = draw.gamma(size + 1, sensitivity / epsilon)
    return np.asarray(radius * draw.uniform(-1, 1, size))


def k_norm_two(draw: Draw, size: int, sensitivity: float, epsilon: float) -> Floats:
    """Return K-norm noise for this l2 sensitivity."""
    direction = draw.normal(size=size)
    radius = draw.gamma(size, sensitivity / epsilon)
    return np.asarray(radius * direction / np.linalg.norm(direction))


# -- Numbers ---------------------------------------------------------------------------------------


def mean_laplace(x: Floats, epsilon: float, draw: Draw) -> Floats:
    n, d = x.shape
    return np.asarray(np.clip(x.mean(axis=0) + laplace(draw, d, 2 * d / n, epsilon), -1, 1))


def mean_max(x: Floats, epsilon: float, draw: Draw) -> Floats:
    n, d = x.shape
    return np.asarray(np.clip(x.mean(axis=0) + k_norm_max(draw, d, 2 / n, epsilon), -1, 1))


def mean_two(x: Floats, epsilon: float, draw: Draw) -> Floats:
    n, d = x.shape
    return np.asarray(
        np.clip(x.mean(axis=0) + k_norm_two(draw, d, 2 * math.sqrt(d) / n, epsilon), -1, 1)
    )


def variance_laplace(x: Floats, epsilon: float, draw: Draw) -> float:
    """Spend ε/2 on the mean, ε/2 on the mean of squares."""
    n = len(x)
    mean = x.mean() + laplace(draw, 1, 2 / n, epsilon / 2)[0]
    squares = (x**2).mean() + laplace(draw, 1, 1 / n, epsilon / 2)[0]
    return float(np.clip(squares - np.clip(mean, -1, 1) ** 2, 0, 1))


def variance_max(x: Floats, epsilon: float, draw: Draw) -> float:
    """Add one draw of K-norm noise to the means of x and of 2x² - 1."""
    noisy = np.array([x.mean(), (2 * x**2 - 1).mean()]) + k_norm_max(draw, 2, 2 / len(x), epsilon)
    return float(np.clip((noisy[1] + 1) / 2 - np.clip(noisy[0], -1, 1) ** 2, 0, 1))


def group_means(x: Floats, groups: Codes, size: int, epsilon: float, draw: Draw) -> Floats:
    """Spend ε/2 on counts and ε/2 on sums: one replaced row moves two groups, each by one row."""
    counts = np.bincount(groups, minlength=size) + laplace(draw, size, 2, epsilon / 2)
    sums = np.bincount(groups, weights=x, minlength=size) + laplace(draw, size, 2, epsilon / 2)
    return np.where(counts < 1, 0.0, np.clip(sums / np.maximum(counts, 1), -1, 1))


def rank_error(ordered: Floats, value: float, q: float, width: float) -> float:
    """Return by how many rows the ranks of a value miss those of the quantile, ties as a set.

    Rows within 2^-39 of the width of the bounds are ties: finer than that nobody asks.
    """
    n = len(ordered)
    below = int(np.searchsorted(ordered, value - width * 2.0**-39, side="left"))
    up_to = int(np.searchsorted(ordered, value + width * 2.0**-39, side="right"))
    return float(max(0, below - math.floor(q * n), math.ceil(q * n) - up_to))


def quantile_exponential(
    ordered: Floats, q: float, bounds: tuple[float, float], epsilon: float, draw: Draw
) -> float:
    """Draw an interval between rows by e^(-ε|rank - qn|/2) times its length (Smith 2011)."""
    ends = np.concatenate([[bounds[0]], ordered, [bounds[1]]])
    lengths = np.diff(ends)
    ranks = np.arange(len(lengths))
    with np.errstate(divide="ignore"):
        weights = np.log(lengths) - epsilon / 2 * np.abs(ranks - q * len(ordered))
    place = int(np.argmax(weights + draw.gumbel(size=len(weights))))
    return float(draw.uniform(ends[place], ends[place + 1]))


def quantile_grid(ordered: Floats, q: float, grid: Floats, epsilon: float, draw: Draw) -> float:
    """Draw a point of a grid by e^(-ε/2 · its distance in rank)."""
    n = len(ordered)
    below = np.searchsorted(ordered, grid, side="left")
    up_to = np.searchsorted(ordered, grid, side="right")
    distance = np.maximum(0, np.maximum(below - math.floor(q * n), math.ceil(q * n) - up_to))
    place = np.argmax(-epsilon / 2 * distance + draw.gumbel(size=len(grid)))
    return float(grid[int(place)])


# -- Counts ----------------------------------------------------------------------------------------


def counts_laplace(counts: Codes, epsilon: float, draw: Draw) -> Floats:
    return np.asarray(counts + laplace(draw, len(counts), 2, epsilon))


def counts_geometric(counts: Codes, epsilon: float, draw: Draw) -> Floats:
    chance = -math.expm1(-epsilon / 2)
    size = len(counts)
    return np.asarray(counts + draw.geometric(chance, size) - draw.geometric(chance, size)) * 1.0


def mode_exponential(counts: Codes, epsilon: float, draw: Draw) -> int:
    return int(np.argmax(epsilon / 2 * counts + draw.gumbel(size=len(counts))))


def mode_laplace(counts: Codes, epsilon: float, draw: Draw) -> int:
    return int(np.argmax(counts + draw.laplace(0, 2 / epsilon, len(counts))))


Tables = dict[tuple[int, ...], Floats]


def two_way(codes: Codes, sizes: Sequence[int]) -> Tables:
    """Return the frequencies of all pairs of columns."""
    tables: Tables = {}
    for pair in combinations(range(len(sizes)), 2):
        table = np.zeros([sizes[place] for place in pair])
        np.add.at(table, tuple(codes[:, place] for place in pair), 1 / len(codes))
        tables[pair] = table
    return tables


def _proper(table: Floats) -> Floats:
    """Return frequencies that are at least 0 and add up to 1."""
    table = np.maximum(table, 0)
    return table / table.sum() if table.sum() > 0 else np.full(table.shape, 1 / table.size)


def tables_laplace(codes: Codes, sizes: Sequence[int], epsilon: float, draw: Draw) -> Tables:
    """Add noise to every cell of every pair; the tables share ε."""
    tables = two_way(codes, sizes)
    scale = 2 * len(tables) / epsilon / len(codes)
    return {
        key: _proper(table + draw.laplace(0, scale, table.shape)) for key, table in tables.items()
    }


def tables_full(codes: Codes, sizes: Sequence[int], epsilon: float, draw: Draw) -> Tables:
    """Add noise to every cell of the table of all columns, and sum up."""
    full = np.zeros(tuple(sizes))
    np.add.at(full, tuple(codes.T), 1 / len(codes))
    full = full + draw.laplace(0, 2 / epsilon / len(codes), full.shape)
    places = range(len(sizes))
    return {
        pair: _proper(full.sum(axis=tuple(place for place in places if place not in pair)))
        for pair in combinations(places, 2)
    }


def tables_product(codes: Codes, sizes: Sequence[int], epsilon: float, draw: Draw) -> Tables:
    """Multiply noisy tables of single columns, which share ε."""
    scale = 2 * len(sizes) / epsilon / len(codes)
    single = []
    for column, size in zip(codes.T, sizes, strict=True):
        frequencies = np.bincount(column, minlength=size) / len(codes)
        single.append(_proper(frequencies + draw.laplace(0, scale, size)))
    return {(i, j): np.outer(single[i], single[j]) for i, j in combinations(range(len(sizes)), 2)}


# -- Products of columns ---------------------------------------------------------------------------


def moments_laplace(z: Floats, epsilon: float, draw: Draw) -> tuple[Floats, float]:
    """Return the mean of zzᵀ with Laplace noise per entry, and the noise's standard deviation.

    The first column is the constant 1, without noise in its square. A replaced row moves a product
    by 2 and a square by 1.
    """
    n, p = z.shape
    d = p - 1
    scale = (2 * d + d + d * (d - 1)) / n / epsilon
    noise = np.triu(draw.laplace(0, scale, (p, p)))
    noise[0, 0] = 0
    return z.T @ z / n + noise + np.triu(noise, 1).T, math.sqrt(2) * scale


def moments_frobenius(z: Floats, epsilon: float, draw: Draw) -> tuple[Floats, float]:
    """Return the mean of zzᵀ with K-norm noise in the Frobenius norm, and its deviation.

    Two matrices zzᵀ of trace at most p differ by at most √2·p in that norm.
    """
    n, p = z.shape
    size = p * (p + 1) // 2
    vector = k_norm_two(draw, size, math.sqrt(2) * p / n, epsilon)
    noise = np.zeros((p, p))
    noise[np.triu_indices(p)] = vector
    off = np.triu(noise, 1) / math.sqrt(2)
    deviation = math.sqrt(2) * p / n / epsilon * math.sqrt((size + 1) / 2)
    return z.T @ z / n + np.diag(np.diag(noise)) + off + off.T, deviation


def moments_max(z: Floats, epsilon: float, draw: Draw) -> tuple[Floats, float]:
    """Return the mean of zzᵀ with K-norm noise in the largest entry; squares become 2z² - 1."""
    n, p = z.shape
    noise = np.zeros((p, p))
    size = p * (p + 1) // 2 - 1
    noise[np.triu_indices(p)] = np.concatenate([[0.0], k_norm_max(draw, size, 2 / n, epsilon)])
    off = np.triu(noise, 1)
    deviation = 2 / n / epsilon * math.sqrt((size + 1) * (size + 2) / 3)
    return z.T @ z / n + np.diag(np.diag(noise)) / 2 + off + off.T, deviation


Moments = Callable[[Floats, float, Draw], tuple[Floats, float]]
MOMENTS: dict[str, Moments] = {
    "Laplace per entry": moments_laplace,
    "Frobenius K-norm": moments_frobenius,
    "max K-norm": moments_max,
}


def with_ones(x: Floats) -> Floats:
    return np.column_stack([np.ones(len(x)), x])


def covariance(moments: Floats) -> Floats:
    """Return the covariance matrix, its variances cut to [0, 1] and its entries to match."""
    mean = np.clip(moments[0, 1:], -1, 1)
    matrix = moments[1:, 1:] - np.outer(mean, mean)
    matrix = np.asarray(np.clip(matrix, -1, 1))
    np.fill_diagonal(matrix, np.clip(np.diag(matrix), 0, 1))
    return matrix


def correlation(matrix: Floats, least: float) -> Floats:
    """Return correlations; a variance below `least` is raised to it."""
    roots = np.sqrt(np.maximum(np.diag(matrix), max(least, 1e-12)))
    found = np.asarray(np.clip(matrix / np.outer(roots, roots), -1, 1))
    np.fill_diagonal(found, 1)
    return found


def leading(matrix: Floats, k: int) -> Floats:
    return np.asarray(np.linalg.eigh(matrix)[1][:, -k:])


def bingham(matrix: Floats, draw: Draw, tries: int = 100_000) -> Floats | None:
    """Draw a unit vector by e^(vᵀAv): rejection of angular central Gaussians (Kent et al. 2013)."""
    values, vectors = np.linalg.eigh(matrix)
    q, gaps = len(values), values[-1] - values
    low, high = 1e-9, float(q)  # b solves Σ 1/(b + 2·gap) = 1
    for _ in range(100):
        b = (low + high) / 2
        low, high = (b, high) if (1 / (b + 2 * gaps)).sum() > 1 else (low, b)
    omega = 1 + 2 * gaps / b
    most = -(q - b) / 2 + q / 2 * math.log(q / b)
    for _ in range(tries // 100):
        x = draw.normal(size=(100, q)) / np.sqrt(omega)
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        chance = -(x**2 @ gaps) + q / 2 * np.log(x**2 @ omega) - most
        kept = np.flatnonzero(np.log(draw.random(100)) < chance)
        if len(kept):
            return np.asarray(vectors @ x[kept[0]])
    return None


def subspace_exponential(x: Floats, k: int, epsilon: float, draw: Draw) -> Floats | None:
    """Draw axes one after another by e^(ε'·nvᵀAv/2Δ), after ε/4 for the mean (Chaudhuri et al.)."""
    d = x.shape[1]
    mean = mean_max(x, epsilon / 4, draw)
    rows = x - mean
    most = float(((1 + np.abs(mean)) ** 2).sum())  # the largest squared length of such a row
    weight, basis, found = 0.75 * epsilon / k / 2 / most, np.eye(d), []
    for _ in range(k):
        inside = rows @ basis
        axis = bingham(weight * inside.T @ inside, draw)
        if axis is None:
            return None
        found.append(basis @ axis)
        basis = basis @ np.linalg.svd(axis[None, :])[2][1:].T
    return np.column_stack(found)


# -- Lines -----------------------------------------------------------------------------------------


def line_by(moments: Moments) -> Callable[[Floats, Floats, float, Draw], Floats]:
    """Return a fit from noisy products, with a ridge as large as the noise's largest eigenvalue."""

    def fit(x: Floats, y: Floats, epsilon: float, draw: Draw) -> Floats:
        z = np.column_stack([with_ones(x), y])
        noisy, deviation = moments(z, epsilon, draw)
        p = z.shape[1] - 1
        ridge = 2 * deviation * math.sqrt(p)
        values, vectors = np.linalg.eigh(noisy[:p, :p])
        inverse = vectors / np.maximum(values + ridge, ridge) @ vectors.T
        return np.asarray(inverse @ noisy[:p, p])

    return fit


def line_constant(x: Floats, y: Floats, epsilon: float, draw: Draw) -> Floats:
    """Return a noisy mean as a line without slope."""
    mean = mean_laplace(y[:, None], epsilon, draw)
    return np.concatenate([mean, np.zeros(x.shape[1])])


def correlated_features(x: Floats, y: Floats, k: int, epsilon: float, draw: Draw) -> list[int]:
    """Draw k features one after another by |Σxy|, which a row moves by 2; ε is shared."""
    scores = np.abs(x.T @ y) * epsilon / k / 4
    return [int(place) for place in np.argsort(-(scores + draw.gumbel(size=x.shape[1])))[:k]]


# -- Classes: chances of each class for new rows ---------------------------------------------------


def _chances(scores: Floats) -> Floats:
    scores = np.exp(scores - scores.max(axis=1, keepdims=True))
    chances = np.maximum(scores / scores.sum(axis=1, keepdims=True), 1e-3)
    return np.asarray(chances / chances.sum(axis=1, keepdims=True))


def class_frequencies(
    x: Floats, labels: Codes, classes: int, out: Floats, epsilon: float, draw: Draw
) -> Floats:
    counts = np.bincount(labels, minlength=classes) + laplace(draw, classes, 2, epsilon)
    frequencies = _proper(np.maximum(counts, 1e-3 * len(x)))
    return np.tile(frequencies, (len(out), 1))


def class_means(
    x: Floats, labels: Codes, classes: int, out: Floats, epsilon: float, draw: Draw
) -> Floats:
    """Spend ε/2 on the counts, ε/2 on the sums of each class; one variance, of the middle half."""
    d = x.shape[1]
    counts = np.bincount(labels, minlength=classes) + laplace(draw, classes, 2, epsilon / 2)
    counts = np.maximum(counts, 1)
    sums = np.zeros((classes, d))
    np.add.at(sums, labels, x)
    sums += draw.laplace(0, 2 * d / (epsilon / 2), sums.shape)
    means = np.clip(sums / counts[:, None], -1, 1)
    distances = ((out[:, None, :] - means) ** 2).sum(axis=2)
    return _chances(np.log(counts) - distances / (2 * 0.25))


def output_perturbation(regularization: float) -> Callable[..., Floats]:
    """Return logistic regression with noise on its weights (Chaudhuri 2011), one vs. rest."""

    def chances(
        x: Floats, labels: Codes, classes: int, out: Floats, epsilon: float, draw: Draw
    ) -> Floats:
        z, new = (with_ones(rows) / math.sqrt(rows.shape[1] + 1) for rows in (x, out))
        lines = 1 if classes == 2 else classes
        scores = []
        for one in range(lines):
            truth = labels == (1 if lines == 1 else one)
            weights = np.zeros(z.shape[1])
            if 0 < truth.sum() < len(truth):
                c = 1 / (regularization * len(z))
                model = LogisticRegression(C=c, fit_intercept=False, max_iter=300).fit(z, truth)
                weights = model.coef_[0]
            sensitivity = 2 / (len(z) * regularization)
            scores.append(
                new @ (weights + k_norm_two(draw, z.shape[1], sensitivity, epsilon / lines))
            )
        if lines == 1:
            return _chances(np.column_stack([np.zeros(len(new)), scores[0]]))
        return _chances(np.column_stack(scores))

    return chances


CLASSIFIERS: dict[str, Callable[..., Floats]] = {
    "class frequencies": class_frequencies,
    "Laplace class means": class_means,
    "output perturbation, λ=0.01": output_perturbation(0.01),
    "output perturbation, λ=0.1": output_perturbation(0.1),
}


# -- Clusters --------------------------------------------------------------------------------------


def lloyd(x: Floats, k: int, epsilon: float, draw: Draw, rounds: int = 3) -> Floats:
    """Run Lloyd's algorithm from random centers, with Laplace noise on counts and sums."""
    d = x.shape[1]
    centers = draw.uniform(-1, 1, (k, d))
    scale = (2 + 2 * d) * rounds / epsilon
    for _ in range(rounds):
        nearest = ((x[:, None, :] - centers) ** 2).sum(axis=2).argmin(axis=1)
        counts = np.bincount(nearest, minlength=k) + draw.laplace(0, scale, k)
        sums = np.zeros((k, d))
        np.add.at(sums, nearest, x)
        sums += draw.laplace(0, scale, sums.shape)
        full = counts >= 1
        centers[full] = np.clip(sums[full] / counts[full, None], -1, 1)
    return centers


def one_center(x: Floats, k: int, epsilon: float, draw: Draw) -> Floats:
    return np.tile(mean_max(x, epsilon, draw), (k, 1))
