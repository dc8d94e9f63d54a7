"""Compare old and new defaults of the estimators with diffprivlib.

Four tables: `LogisticRegression` by the radius that rows are clipped to, probabilities with and
without the temperature, `SparseRegression` by ε, and `MLPClassifier` inside wide bounds. Real data
is split in ways that are the same for all; bounds are the range of a column, rounded outward to one
digit, as a person would say them.

What is and what is not held out: data, bounds and the grid of radii were written down before any
result was seen. The smaller radius that `LogisticRegression` chooses between, both constants of
`temperature`, those of the network's forecast and of `SparseSteps`, and the widening of
`MLPClassifier` were then chosen on these data sets (the first pair of `temperature` left digits
above ln C, and was replaced). The splits and synthetic rows below are others than those, so that
chance is not fitted; the data sets are the same, so that what is printed is the best to be
expected, and other data may lose.

Ours at ε under replace-one stands beside diffprivlib at the same guarantee: its logistic regression
at ε (its noise is for a replaced row), its random forest at ε/2 (the noise of its leaves is for an
added or removed row, and one replaced row is two of those).
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.tasks_peers import SKIPPED, python_of

from zerodelta.sklearn import LogisticRegression, MLPClassifier, SparseRegression

Floats = npt.NDArray[np.float64]
EPSILONS = (0.5, 1.0, 2.0)
RADII = (1, 0.8, 0.6, 0.5, 0.4, 0.3)
"""The default is 1, or 1/2 where forecasts including the bias of clipping favor it."""
FITS = 12
"""Fits of each setting: as many splits that leave out 30 % of the rows."""
FIRST_SEED = 1000
"""Constants were chosen with seeds below."""


@dataclass(frozen=True, kw_only=True)
class Data:
    """Rows, labels 0, 1, … and public bounds."""

    x: Floats
    y: npt.NDArray[np.int64]
    lower: Floats
    upper: Floats

    @property
    def classes(self) -> list[int]:
        return list(range(int(self.y.max()) + 1))

    @property
    def bounds(self) -> tuple[Floats, Floats]:
        return self.lower, self.upper

    @property
    def frequencies(self) -> float:
        """The log loss of the true class frequencies: no private model knows them."""
        parts = np.bincount(self.y) / len(self.y)
        return float(-(parts * np.log(parts)).sum())

    def split(self, seed: int) -> list[Any]:
        return list(
            train_test_split(
                self.x, self.y, test_size=0.3, random_state=FIRST_SEED + seed, stratify=self.y
            )
        )


def real(load: Callable[..., Any]) -> Data:
    x, y = load(return_X_y=True)
    low, high = x.min(axis=0), x.max(axis=0)
    step = 10.0 ** np.floor(np.log10(high - low))
    return Data(x=x, y=y, lower=np.floor(low / step) * step, upper=np.ceil(high / step) * step)


def crowded(by_size: bool) -> Data:
    """Rows near one corner of their bounds; labels are told by their size, or by differences."""
    rng = np.random.default_rng(12)
    x = np.minimum(1, rng.exponential(0.08, size=(700, 6)))
    score = x.sum(axis=1) if by_size else x[:, :3].sum(axis=1) - x[:, 3:].sum(axis=1)
    score += 0.3 * score.std() * rng.normal(size=700)
    y = np.digitize(score, np.quantile(score, [1 / 3, 2 / 3]))
    return Data(x=x, y=y, lower=np.zeros(6), upper=np.ones(6))


def all_data() -> dict[str, Data]:
    x, y = load_digits(return_X_y=True)
    loaders = {"iris": load_iris, "wine": load_wine, "breast_cancer": load_breast_cancer}
    return {
        **{name: real(load) for name, load in loaders.items()},
        "digits": Data(x=x, y=y, lower=np.zeros(64), upper=np.full(64, 16.0)),
        "corner, differences": crowded(False),
        "corner, sizes": crowded(True),
        "skewed, n=500": skewed(500),
        "skewed, n=5000": skewed(5000),
    }


def skewed(n: int) -> Data:
    """Incomes, children, years and ages in a corner of their bounds: their size tells the label."""
    rng = np.random.default_rng(5)
    x = np.column_stack(
        [
            np.minimum(rng.exponential(20, n), 200),
            np.minimum(rng.poisson(1.2, n), 10),
            np.minimum(rng.exponential(3, n), 40),
            rng.uniform(18, 60, n),
        ]
    )
    score = 0.06 * (x[:, 0] - 20) + 0.5 * (x[:, 1] - 1.2) - 0.3 * (x[:, 2] - 3) + 0.5
    y = (score + rng.logistic(size=n) > 0).astype(np.int64)
    return Data(x=x, y=y, lower=np.zeros(4), upper=np.array([200.0, 10.0, 40.0, 100.0]))


def scaled_logistic(data: Data, epsilon: float, radius: float | None) -> Any:
    return LogisticRegression(
        epsilon=epsilon, bounds=data.bounds, radius=radius, classes=data.classes
    )


def judged(data: Data, make: Callable[[], Any], fits: int = FITS) -> tuple[float, float, float]:
    """Return mean accuracy, and mean log loss with and without the temperature."""
    scores = []
    for seed in range(fits):
        x_in, x_out, y_in, y_out = data.split(seed)
        model = make().fit(x_in, y_in)
        tempered = log_loss(y_out, model.predict_proba(x_out), labels=data.classes)
        model.temperature_ = 1.0
        plain = log_loss(y_out, model.predict_proba(x_out), labels=data.classes)
        scores.append((model.score(x_out, y_out), tempered, plain))
    accuracy, tempered, plain = np.mean(scores, axis=0).tolist()
    return accuracy, tempered, plain


# -- peers -----------------------------------------------------------------------------------------

PEER = """
import json, sys, warnings
warnings.simplefilter("ignore")
import numpy as np
from diffprivlib import models
from sklearn.metrics import log_loss
asked = json.loads(sys.argv[1]); data = np.load(asked["file"])
found = {}
for epsilon in asked["epsilons"]:
    for kind in ("logistic", "forest"):
        each = []
        for seed in range(asked["fits"]):
            x, out, y, truth = (data[f"{part}{seed}"] for part in ("a", "b", "c", "d"))
            np.random.seed(seed)
            if kind == "logistic":
                scale = lambda rows: (2 * rows - data["low"] - data["high"]) / (
                    data["high"] - data["low"]) / rows.shape[1] ** 0.5
                model = models.LogisticRegression(epsilon=epsilon, data_norm=1.0)
                x, out = scale(x), scale(out)
            else:
                model = models.RandomForestClassifier(n_estimators=10, epsilon=epsilon / 2,
                    bounds=(data["low"], data["high"]), classes=asked["classes"])
            model.fit(x, y)
            chances = np.clip(np.nan_to_num(model.predict_proba(out), nan=1e-3), 1e-3, 1)
            chances /= chances.sum(axis=1, keepdims=True)
            each.append((float((model.predict(out) == truth).mean()),
                         log_loss(truth, chances, labels=asked["classes"])))
        found[f"{kind} {epsilon}"] = np.mean(each, axis=0).tolist()
print(json.dumps(found))
"""


def peers(data: Data, fits: int = FITS) -> dict[str, list[float]]:
    """Return accuracy and log loss (probabilities cut at 0.001) of diffprivlib, by name and ε."""
    python = python_of("diffprivlib")
    if python is None:
        return {}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rows.npz"
        parts = {
            f"{k}{s}": v for s in range(fits) for k, v in zip("abcd", data.split(s), strict=True)
        }
        np.savez(file, low=data.lower, high=data.upper, **parts)
        question = {"file": str(file), "epsilons": EPSILONS, "fits": fits, "classes": data.classes}
        done = subprocess.run(
            [python, "-c", PEER, json.dumps(question)], capture_output=True, text=True, check=True
        )
    answer: dict[str, list[float]] = json.loads(done.stdout)
    return answer


# -- tables ----------------------------------------------------------------------------------------


def radii(every: dict[str, Data]) -> tuple[Table, Table]:
    """Return accuracy by radius, its worst regret, and log losses beside peers."""
    table = Table(title="LogisticRegression(bounds=…): held-out accuracy by radius")
    chances = Table(title="Held-out log loss: before (radius 1, no temperature) and after")
    for column in ("data", "ε", *(f"radius {r:g}" for r in RADII), "default", "dpl logistic"):
        table.add_column(column)
    table.add_column("dpl forest, same guarantee")
    names = ("data", "ε", "ln C", "frequencies", "before", "radius only", "after", "dpl logistic")
    for column in (*names, "dpl forest, same guarantee"):
        chances.add_column(column)
    regrets = []
    for name, data in every.items():
        peer_scores = peers(data)
        for epsilon in EPSILONS:
            scores = [judged(data, partial(scaled_logistic, data, epsilon, r)) for r in RADII]
            now = judged(data, partial(scaled_logistic, data, epsilon, None))
            accuracy = [one[0] for one in scores]
            regrets.append([max(*accuracy, now[0]) - one for one in (*accuracy, now[0])])
            rivals = [
                peer_scores.get(f"{k} {epsilon}", [math.nan] * 2) for k in ("logistic", "forest")
            ]
            cells = (*accuracy, now[0], *(rival[0] for rival in rivals))
            table.add_row(name, f"{epsilon:g}", *(f"{cell:.3f}" for cell in cells))
            equal = math.log(len(data.classes))
            losses = [equal, data.frequencies, scores[0][2], now[2], now[1]]
            losses += [rival[1] for rival in rivals]
            mark = " !" if now[1] > equal else ""
            chances.add_row(name + mark, f"{epsilon:g}", *(f"{loss:.3f}" for loss in losses))
    worst = np.max(regrets, axis=0)
    table.add_row("mean regret", "", *(f"{r:.3f}" for r in np.mean(regrets, axis=0)))
    table.add_row("worst regret", "", *(f"{regret:.3f}" for regret in worst))
    table.caption = (
        "Noise: one setting run twice differed by 0.035 (sd) and at most 0.12 in a cell."
    )
    return table, chances


def sparse() -> Table:
    """Return the share explained on fresh rows, and the forecast beside the excess, by ε."""
    table = Table("case", "ε", "R² on fresh rows", "excess squared error", "forecast")
    table.title = "SparseRegression: it gets no worse with ε"
    for case, (n, d, weights, noise) in {
        "n=5000, d=50, two matter": (5000, 50, {3: 0.6, 8: -0.3}, 0.0),
        "n=2000, d=60, three matter": (2000, 60, {7: 0.5, 41: -0.2, 5: 0.2}, 0.1),
    }.items():
        for epsilon in (0.5, 1, 1.5, 2, 2.5, 3, 4, 6):
            shares, excesses, forecast = [], [], math.nan
            for seed in range(6):
                rng = np.random.default_rng((FIRST_SEED, n, seed))
                x = rng.uniform(-1, 1, size=(2 * n, d))
                truth = x[:, list(weights)] @ np.array(list(weights.values()))
                y = np.clip(truth + noise * rng.normal(size=2 * n), -1, 1)
                model = SparseRegression(epsilon=epsilon, bounds=(-1, 1), bounds_y=(-1, 1))
                model.fit(x[:n], y[:n])
                shares.append(model.score(x[n:], y[n:]))
                excesses.append(np.mean((model.predict(x[n:]) - truth[n:]) ** 2))
                forecast = float(model.release_.error)
            numbers = (f"{np.mean(excesses):.2g}", f"{forecast:.2g}")
            table.add_row(case, f"{epsilon:g}", f"{np.mean(shares):.3f}", *numbers)
    return table


def networks(every: dict[str, Data]) -> Table:
    """Return accuracy, log losses and forecast, for XOR inside wide bounds and small data."""
    rng = np.random.default_rng(FIRST_SEED)
    x = rng.uniform(-1, 1, size=(2000, 2))
    y = (x[:, 0] * x[:, 1] > 0).astype(np.int64)
    cases = {
        f"XOR, bounds ±{wide}": Data(x=x, y=y, lower=np.full(2, -wide), upper=np.full(2, wide))
        for wide in (1.0, 3.0, 10.0)
    }
    cases |= {name: every[name] for name in ("iris", "wine")}
    table = Table("data", "ε", "accuracy", "ln C", "frequencies", "no temperature", "log loss")
    table.add_column("forecast of the excess")
    table.title = "MLPClassifier (40 rounds)"
    for name, data in cases.items():
        for epsilon in EPSILONS:
            models: list[Any] = []

            def make(data: Data = data, epsilon: float = epsilon, kept: Any = models) -> Any:
                kept.append(
                    MLPClassifier(
                        epsilon=epsilon, bounds=data.bounds, classes=data.classes, rounds=40
                    )
                )
                return kept[-1]

            accuracy, tempered, plain = judged(data, make, 3)
            numbers = (accuracy, math.log(len(data.classes)), data.frequencies, plain, tempered)
            forecast = f"{models[-1].release_.error:.3f}"
            table.add_row(name, f"{epsilon:g}", *(f"{n:.3f}" for n in numbers), forecast)
    return table


def main() -> None:
    start, console, every = time.perf_counter(), Console(width=170), all_data()
    for table in (*radii(every), sparse(), networks(every)):
        console.print(table)
    for reason in SKIPPED.values():
        console.print(reason)
    console.print(f"{time.perf_counter() - start:.0f} seconds")


if __name__ == "__main__":
    main()
