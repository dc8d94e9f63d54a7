"""Measure line (e): inertia of pure ε-DP k-means over the non-private one, and diffprivlib's.

diffprivlib (plain Lloyd with Laplace noise, pure ε) runs in its own environment
(`.bench-diffprivlib`), made here on the first run and skipped with a message if it cannot be
installed. Both see the same rows and bounds; ratios are to scikit-learn's KMeans on the raw rows,
all in this run.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table
from sklearn.cluster import KMeans

from zerodelta.tasks.kmeans import kmeans

DIFFPRIVLIB = Path(__file__).resolve().parent.parent / ".bench-diffprivlib"
EPSILONS = (0.5, 1.0, 2.0)
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Case:
    """Blobs in the unit cube: equal, or unequal in size (1, 1/2, 1/3, …) and width."""

    kind: str
    rows: int
    columns: int
    clusters: int

    def data(self, seed: int) -> Floats:
        rng = np.random.default_rng(seed)
        if self.kind == "uniform":
            return rng.uniform(size=(self.rows, self.columns))
        centers = _apart(rng, self.clusters, self.columns)
        unequal = self.kind == "unequal"
        sizes = 1 / np.arange(1, self.clusters + 1) if unequal else np.ones(self.clusters)
        widths = 0.06 * (rng.uniform(0.5, 1.5, self.clusters) if unequal else sizes)
        number = rng.choice(self.clusters, self.rows, p=sizes / sizes.sum())
        noise = rng.normal(size=(self.rows, self.columns)) * widths[number][:, None]
        return np.clip(centers[number] + noise, 0, 1)


def _apart(rng: np.random.Generator, clusters: int, columns: int) -> Floats:
    """Return centers that keep a distance of four deviations."""
    centers: list[Floats] = []
    for _ in range(1000 * clusters):
        drawn = rng.uniform(0.12, 0.88, columns)
        if all(np.linalg.norm(drawn - other) > 0.24 for other in centers):
            centers.append(drawn)
        if len(centers) == clusters:
            break
    return np.array(centers)


LINE_E = (
    Case("blobs", 100_000, 2, 5),
    Case("blobs", 100_000, 2, 8),
    Case("unequal", 100_000, 2, 5),
    Case("unequal", 100_000, 2, 8),
    Case("uniform", 100_000, 2, 5),
)
WIDE = tuple(
    Case(kind, rows, columns, clusters)
    for columns, clusters in ((2, 5), (3, 5), (3, 8), (5, 5), (5, 10), (10, 5), (10, 10))
    for kind in ("blobs", "unequal")
    for rows in (10_000, 100_000)
)


def inertia(rows: Floats, centers: Floats) -> float:
    squares = np.zeros((len(rows), len(centers)))
    for column in range(rows.shape[1]):
        squares += (rows[:, column, None] - centers[:, column]) ** 2
    return float(squares.min(axis=1).sum())


PEER = """
import json, sys, warnings
warnings.simplefilter("ignore")
import numpy as np
from diffprivlib.models import KMeans
rows = np.load(sys.argv[1])
clusters, epsilons, repetitions = int(sys.argv[2]), json.loads(sys.argv[3]), int(sys.argv[4])
bounds = np.zeros(rows.shape[1]), np.ones(rows.shape[1])
print(json.dumps([[KMeans(clusters, epsilon=e, bounds=bounds).fit(rows).cluster_centers_.tolist()
                   for _ in range(repetitions)] for e in epsilons]))
"""


def have_diffprivlib(console: Console) -> bool:
    """Make its environment if need be; say so if that fails."""
    python = DIFFPRIVLIB / "bin" / "python"
    try:
        if not python.exists():
            subprocess.run([sys.executable, "-m", "venv", DIFFPRIVLIB], check=True)
        if subprocess.run([python, "-c", "import diffprivlib"], capture_output=True).returncode:
            wanted = ("diffprivlib", "scikit-learn<=1.7")
            subprocess.run(
                [python, "-m", "pip", "install", "--quiet", *wanted], check=True, timeout=600
            )
        subprocess.run([python, "-c", "import diffprivlib.models"], check=True, capture_output=True)
    except (OSError, subprocess.SubprocessError) as error:
        console.print(f"diffprivlib skipped: it could not be installed or run ({error}).")
        return False
    return True


def peer_ratios(rows: Floats, case: Case, best: float, repetitions: int) -> list[float]:
    """Return diffprivlib's median ratio for each ε."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.npy"
        np.save(path, rows)
        arguments = [str(path), str(case.clusters), json.dumps(EPSILONS), str(repetitions)]
        done = subprocess.run(
            [DIFFPRIVLIB / "bin" / "python", "-c", PEER, *arguments],
            check=True,
            capture_output=True,
            text=True,
            timeout=600,
        )
    return [
        float(np.median([inertia(rows, np.array(centers)) / best for centers in drawn]))
        for drawn in json.loads(done.stdout)
    ]


def compare(
    console: Console, cases: tuple[Case, ...], *, repetitions: int, methods: tuple[str, ...]
) -> dict[tuple[Case, float], dict[str, list[float]]]:
    """Print a table of ratios; return all of ours by case, ε and method."""
    peer = have_diffprivlib(console)
    table = Table(title=f"Inertia / non-private inertia, median of {repetitions} (worst)")
    names = ("data", "n", "d", "k", "ε", *methods, "forecast", "seconds", "diffprivlib")
    for name in names:
        table.add_column(name, justify="right")
    measured: dict[tuple[Case, float], dict[str, list[float]]] = {}
    for number, case in enumerate(cases):
        rows = case.data(seed=number)
        best = KMeans(case.clusters, n_init=10, random_state=0).fit(rows).inertia_
        theirs = peer_ratios(rows, case, best, repetitions) if peer else []
        for i, epsilon in enumerate(EPSILONS):
            cell = measured[case, epsilon] = {}
            forecast, seconds = 0.0, 0.0
            for method in methods:
                if method == "histogram" and case.columns > 5:
                    continue
                start = time.perf_counter()
                releases = [
                    kmeans(
                        rows,
                        clusters=case.clusters,
                        epsilon=epsilon,
                        bounds=(0, 1),
                        method=method,
                    )
                    for _ in range(repetitions)
                ]
                if method == "auto":
                    seconds = (time.perf_counter() - start) / repetitions
                    forecast = float(releases[0].error)
                cell[method] = [inertia(rows, release.value) / best for release in releases]
            shown = [
                f"{np.median(cell[m]):.4f} ({max(cell[m]):.4f})" if m in cell else "-"
                for m in methods
            ]
            numbers = (f"{case.rows:.0e}", str(case.columns), str(case.clusters), f"{epsilon:g}")
            theirs_shown = f"{theirs[i]:.3f}" if peer else "-"
            table.add_row(
                case.kind, *numbers, *shown, f"{1 + forecast:.4f}", f"{seconds:.2f}", theirs_shown
            )
    console.print(table)
    return measured


def line_e(console: Console, *, repetitions: int = 5) -> bool:
    """Print line (e) of the issue; tell whether it holds: at most 1.02 in every run."""
    measured = compare(console, LINE_E, repetitions=repetitions, methods=("auto",))
    worst = max(max(cell["auto"]) for cell in measured.values())
    console.print(f"(e) k-means, 2-d, n = 1e5, ε >= 0.5: worst ratio {worst:.4f}, wanted <= 1.02")
    return worst <= 1.02


def main() -> None:
    console = Console(width=140)
    line_e(console)
    methods = ("auto", "histogram", "lloyd")
    for columns in sorted({case.columns for case in WIDE}):
        cases = tuple(case for case in WIDE if case.columns == columns)
        compare(console, cases, repetitions=3, methods=methods)


if __name__ == "__main__":
    main()
