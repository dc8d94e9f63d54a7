"""Run peers at equal pure ε, each in its own environment, for `bench/tasks.py`.

diffprivlib and OpenDP read the same rows and bounds as we do, are asked for the same replace-one
ε, and time each answer themselves, while we answer. A setting of theirs is a named variant; the
first is what their documentation does by default.
"""

from __future__ import annotations

import functools
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]
Sets: TypeAlias = Sequence[Array] | Array
"""One array of each data set, all of one shape."""

ROOT = Path(__file__).resolve().parent.parent
WANTED = {
    "diffprivlib": ("diffprivlib", "scikit-learn<=1.7"),
    "opendp": ("opendp", "numpy"),
}
SKIPPED: dict[str, str] = {}
"""Why a peer could not be installed."""


@dataclass(frozen=True)
class Answers:
    """What one variant of a peer published, one value for each run, and its median seconds."""

    values: list[Any]
    seconds: float


Asked: TypeAlias = "Future[list[dict[str, Answers]]]"
"""For each ε, the answers of each variant; empty ones if the peer is not to be had."""


@functools.cache
def python_of(peer: str) -> Path | None:
    """Return the interpreter of a peer's environment, made on the first run, or None."""
    folder = ROOT / f".bench-{peer}"
    python = folder / "bin" / "python"
    test = f"import numpy, {peer}" + (".models" if peer == "diffprivlib" else ".prelude")
    try:
        if not python.exists():
            subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        if subprocess.run([python, "-c", test], capture_output=True).returncode:
            subprocess.run(
                [python, "-m", "pip", "install", "--quiet", *WANTED[peer]], check=True, timeout=600
            )
        subprocess.run([python, "-c", test], check=True, capture_output=True)
    except (OSError, subprocess.SubprocessError) as error:
        SKIPPED[peer] = f"{peer} skipped: it could not be installed or run ({error})."
        return None
    return python


def ask(
    peer: str,
    task: str,
    arrays: dict[str, Sets],
    *,
    epsilons: tuple[float, ...],
    runs: int,
    variants: tuple[Any, ...] = ("",),
    **public: Any,
) -> Asked:
    """Let a peer answer in the background: run i reads data set i, modulo their number."""
    asked = {"task": task, "epsilons": epsilons, "runs": runs, "variants": variants, **public}
    return BACKGROUND.submit(_answer, peer, python_of(peer), arrays, asked)


BACKGROUND = ThreadPoolExecutor(2)


def _answer(
    peer: str, python: Path | None, arrays: dict[str, Sets], asked: dict[str, Any]
) -> list[dict[str, Answers]]:
    if python is None:
        return [{} for _ in asked["epsilons"]]
    with tempfile.TemporaryDirectory() as folder:
        for name, sets in arrays.items():
            np.save(Path(folder) / f"{name}.npy", np.asarray(sets))
        done = subprocess.run(
            [python, "-c", CODE[peer] + LOOP, folder, json.dumps(asked)],
            capture_output=True,
            text=True,
            timeout=1200,
        )
    if done.returncode:
        raise RuntimeError(f"{peer}, {asked['task']}: {done.stderr[-2000:]}")
    return [
        {name: Answers(values, seconds) for name, (values, seconds) in found.items()}
        for found in json.loads(done.stdout)
    ]


LOOP = """
import json, statistics, sys, time
from pathlib import Path
asked = json.loads(sys.argv[2])
sets = {path.stem: np.load(path, mmap_mode="r") for path in Path(sys.argv[1]).glob("*.npy")}
def rows_of(number):
    return {name: np.array(each[number % len(each)]) for name, each in sets.items()
            if number == 0 or len(each) > 1}
found = []
for epsilon in asked["epsilons"]:
    answers = {}
    for variant in asked["variants"]:
        values, seconds, data = [], [], rows_of(0)
        run = globals()[asked["task"]](data, epsilon, variant, asked)
        for number in range(asked["runs"]):
            data.update(rows_of(number))
            start = time.process_time()
            value = run()
            seconds.append(time.process_time() - start)
            values.append(np.asarray(value).tolist() if not isinstance(value, dict) else value)
        answers[str(variant)] = values, statistics.median(seconds)
    found.append(answers)
print(json.dumps(found))
"""

DIFFPRIVLIB = """
import warnings
warnings.simplefilter("ignore")
import numpy as np
from diffprivlib import mechanisms, models, tools

def plain(model):
    return {"coef": np.atleast_2d(model.coef_).tolist(),
            "intercept": np.atleast_1d(model.intercept_).tolist()}

def logistic(data, epsilon, variant, asked):
    return lambda: plain(models.LogisticRegression(
        epsilon=epsilon, data_norm=1.0, C=variant).fit(data["x"], data["y"]))

def linear(data, epsilon, variant, asked):
    bounds = -asked["half"], asked["half"]
    return lambda: plain(models.LinearRegression(
        epsilon=epsilon, bounds_X=bounds, bounds_y=(-1.0, 1.0)).fit(data["x"], data["y"]))

def kmeans(data, epsilon, variant, asked):
    d = data["x"].shape[1]
    return lambda: models.KMeans(asked["clusters"], epsilon=epsilon,
        bounds=(np.zeros(d), np.ones(d))).fit(data["x"]).cluster_centers_

def mean(data, epsilon, variant, asked):
    lower, upper = asked["bounds"]
    return lambda: tools.mean(data["x"], epsilon=epsilon, bounds=(lower, upper), axis=0)

def median(data, epsilon, variant, asked):
    return lambda: tools.median(data["x"], epsilon=epsilon, bounds=tuple(asked["bounds"]))

def quantile(data, epsilon, variant, asked):
    return lambda: tools.quantile(
        data["x"], variant, epsilon=epsilon, bounds=tuple(asked["bounds"]))

def mode(data, epsilon, variant, asked):
    kind = getattr(mechanisms, asked["kind"])
    def run():
        counts = np.bincount(data[variant], minlength=asked["universe"]).tolist()
        return kind(epsilon=epsilon, sensitivity=1, utility=counts).randomise()
    return run

def marginals(data, epsilon, variant, asked):
    # Its histograms are for added or removed rows: one replaced row is two of those.
    sets = asked["sets"]
    part = {"epsilon": epsilon / 2 / len(sets), "bins": 2}
    def run():
        x = data["x"]
        return [tools.histogramdd(x[:, i], range=[(-0.5, 1.5)] * len(i), **part)[0] / len(x)
                for i in sets]
    return run
"""

OPENDP = """
import numpy as np
import opendp.prelude as dp
dp.enable_features("contrib")

def mean(data, epsilon, variant, asked):
    # Rows in a ball or a cube: their sum has this sensitivity in l1.
    n, moved = len(data["x"]), asked["l1"]
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.l1_distance(T=float)
    add = dp.m.make_laplace(*space, scale=moved / n / epsilon)
    return lambda: add(np.atleast_1d(data["x"].mean(axis=0)).tolist())

def median(data, epsilon, variant, asked):
    return quantile(data, epsilon, 0.5, {**asked, "points": variant})

def quantile(data, epsilon, variant, asked):
    lower, upper = asked["bounds"]
    grid = np.linspace(lower, upper, asked["points"]).tolist()
    space = (dp.vector_domain(dp.atom_domain(T=float, nan=False), size=len(data["x"])),
             dp.symmetric_distance())
    make = lambda scale: dp.m.make_private_quantile(
        *space, dp.max_divergence(), grid, variant, scale)
    chosen = dp.binary_search_chain(make, d_in=2, d_out=float(epsilon))
    return lambda: chosen(data["x"])

def mode(data, epsilon, variant, asked):
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.linf_distance(T=int)
    pick = dp.m.make_noisy_max(*space, dp.max_divergence(), scale=2 / epsilon)
    assert pick.map(1) <= epsilon * (1 + 1e-9)
    return lambda: pick(np.bincount(data[variant], minlength=asked["universe"]).tolist())

def marginals(data, epsilon, variant, asked):
    sets = asked["sets"]
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    add = dp.m.make_laplace(*space, scale=2 * len(sets) / epsilon)
    def run():
        x, counts = data["x"], []
        for i in sets:
            cells = np.ravel_multi_index(x[:, i].T, (2,) * len(i))
            counts += np.bincount(cells, minlength=2 ** len(i)).tolist()
        return np.reshape(add(counts), (len(sets), *(2,) * len(sets[0]))) / len(x)
    return run
"""

CODE = {"diffprivlib": DIFFPRIVLIB, "opendp": OPENDP}
