"""Attack known weaknesses of other libraries with the audit, and zerodelta in the same way.

``python bench/peers_attacks.py [--python PATH] [--samples 20000]``. PATH is an interpreter that has
the peers installed; this one if left out. A peer that it does not have is skipped with a line.
An attack is code that defines ``draw(data, count)``; it runs in a process of its own. Each has a
twin that asks zerodelta the same, on the same two inputs. docs/threat-model.md lists the
reports.
"""

from __future__ import annotations

import argparse
import io
import math
import multiprocessing
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

import zerodelta as zd
from zerodelta import audit
from zerodelta.sklearn import LinearRegression

CONFIDENCE = "0.999"


@dataclass(frozen=True, kw_only=True)
class Attack:
    """A mechanism of a peer at a claimed ε, two neighboring inputs, and our answer to the same."""

    peer: str
    name: str
    code: str
    ours: Callable[[float], Any]
    inputs: tuple[float, float] = (0.0, 1.0)
    epsilon: float = 1
    part: float = 1
    """Of the samples: what is slow, or seen at once, needs fewer."""


def sorted_column(cells: list[str]) -> Any:
    columns = {"x": zd.category(["low", "high"])}
    return zd.open(pd.DataFrame({"x": pd.Categorical(cells)}), columns=columns)


def grouped(cell: float) -> Any:
    frame = pd.DataFrame({"who": [0, 0, 0, 1], "b": [cell] * 3 + [0.0]})
    columns = {"b": zd.number(-10, 10, missing=None)}
    return zd.open(frame, columns=columns, unit="who", max_rows=3)


def fitted(x: float) -> float:
    model = LinearRegression(epsilon=1, data_norm=10, bounds_y=(0, 1))
    return float(model.fit(np.array([[1.0], [x]]), np.array([1.0, 0.0])).coef_[0])


def unbounded(cell: float) -> Any:
    """Without bounds there is no release: an error on public grounds, whatever the rows."""
    return zd.mean(np.array([0.0, 1.0, cell]), epsilon=1)


QUIET = """
import warnings
warnings.simplefilter("ignore")
"""
ATTACKS = (
    Attack(
        peer="diffprivlib",
        name="Laplace: last bits of floats (19, 94)",
        code="""
from diffprivlib.mechanisms import Laplace
noisy = getattr(Laplace(epsilon=1, delta=0, sensitivity=1), 'randomi' 'se')  # British
def draw(data, count):
    return [noisy(data) for _ in range(count)]
""",
        ours=lambda cell: zd.sum(np.array([cell]), bounds=(0, 1), epsilon=1),
    ),
    Attack(
        peer="diffprivlib",
        name="tools.mean: last bits of floats",
        code=QUIET
        + """
from diffprivlib import tools
def draw(data, count):
    rows = [0.0, data]
    return [tools.mean(rows, epsilon=1, bounds=(0, 1)) for _ in range(count)]
""",
        ours=lambda cell: zd.mean(np.array([0.0, cell]), bounds=(0, 1), epsilon=1),
    ),
    Attack(
        peer="diffprivlib",
        name="tools.quantile: an exception (107)",
        code=QUIET
        + """
from diffprivlib import tools
def once(rows):
    try:
        tools.quantile(rows, 0.5, epsilon=1, bounds=(0, 1))
    except Exception as error:
        return type(error).__name__
    return "a number"
def draw(data, count):
    return [once([0.5] * 2977 + [data]) for _ in range(count)]
""",
        ours=lambda cell: zd.median(np.array([0.5] * 2977 + [cell]), bounds=(0, 1), epsilon=1),
        inputs=(0.5, 1.0),
        part=0.05,
    ),
    Attack(
        peer="diffprivlib",
        name="LinearRegression: a lower bound of 0 (105)",
        code=QUIET
        + """
import numpy as np
from diffprivlib.models import LinearRegression
def draw(data, count):
    x, y = np.array([[1.0], [data]]), np.array([1.0, 0.0])
    options = dict(epsilon=1, bounds_X=(0, 10), bounds_y=(0, 1), fit_intercept=False)
    return [float(LinearRegression(**options).fit(x, y).coef_[0]) for _ in range(count)]
""",
        ours=fitted,
        inputs=(0.0, 10.0),
        part=0.05,
    ),
    Attack(
        peer="diffprivlib",
        name="tools.mean without bounds: taken from rows",
        code=QUIET
        + """
from diffprivlib import tools
def draw(data, count):
    return [tools.mean([0.0, 1.0, data], epsilon=1) for _ in range(count)]
""",
        ours=unbounded,
        inputs=(1.0, 1e6),
        part=0.1,
    ),
    Attack(
        peer="diffprivlib",
        name="Geometric (integers; no weakness known)",
        code="""
from diffprivlib.mechanisms import Geometric
noisy = getattr(Geometric(epsilon=1, sensitivity=1), 'randomi' 'se')
def draw(data, count):
    return [noisy(int(data)) for _ in range(count)]
""",
        ours=lambda cell: zd.histogram([int(cell)], universe=2, epsilon=1).value[0],
    ),
    Attack(
        peer="opendp",
        name="sums by group: half the sensitivity (2945)",
        code="""
import polars as pl
import opendp.prelude as dp
dp.enable_features("contrib")
schema = {"A": pl.String, "B": pl.Int32}
query = pl.LazyFrame(schema=schema).group_by("A").agg(pl.col("B").dp.sum((-10, 10), scale=30.0))
columns = [dp.series_domain("A", dp.atom_domain(T=str)),
           dp.series_domain("B", dp.atom_domain(T="i32"))]
margin = dp.polars.Margin(by=["A"], max_length=3, max_groups=1, invariant="keys")
domain = dp.with_margin(dp.lazyframe_domain(columns), margin)
noisy = dp.m.make_private_lazyframe(domain, dp.symmetric_distance(), dp.max_divergence(), query)
assert noisy.map(6) == 1  # claimed for three rows out and three in
def draw(data, count):
    rows = pl.LazyFrame({"A": ["a"] * 3, "B": [int(data)] * 3}, schema=schema)
    return [float(noisy(rows).collect()["B"].item()) for _ in range(count)]
""",
        ours=lambda cell: zd.sum(grouped(cell), "b", epsilon=1),
        inputs=(10.0, -10.0),
    ),
    Attack(
        peer="opendp",
        name="codes of categories by first appearance (2944)",
        code="""
import polars as pl
import opendp.prelude as dp
dp.enable_features("contrib")
coded = pl.col("x").cut([1.0]).to_physical()
query = pl.LazyFrame(schema={"x": pl.Float64}).select(coded.dp.sum((0, 1), scale=1.0))
column = dp.series_domain("x", dp.atom_domain(T=float, nan=False))
domain = dp.with_margin(dp.lazyframe_domain([column]), dp.polars.Margin(max_length=101))
distance = dp.frame_distance(dp.symmetric_distance())
noisy = dp.m.make_private_lazyframe(domain, distance, dp.max_divergence(), query)
assert noisy.map([dp.polars.Bound(per_group=1)]) == 1  # claimed
def draw(data, count):
    rows = pl.LazyFrame({"x": ([2.0] if data else []) + [0.5] * 100})
    return [float(noisy(rows).collect().item()) for _ in range(count)]
""",
        ours=lambda cell: zd.histogram(
            sorted_column((["high"] if cell else ["low"]) + ["low"] * 100), "x", epsilon=1
        ).value[1],
        part=0.05,
    ),
    Attack(
        peer="opendp",
        name="make_laplace on floats (no weakness known)",
        code="""
import opendp.prelude as dp
dp.enable_features("contrib")
number = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
mechanism = dp.m.make_laplace(*number, 1.0)
def draw(data, count):
    return [mechanism(data) for _ in range(count)]
""",
        ours=lambda cell: zd.sum(np.array([cell]), bounds=(0, 1), epsilon=1),
    ),
)

LOOP = """
import sys
import numpy as np
outcomes = np.asarray(draw(float(sys.argv[1]), int(sys.argv[2])))
np.save(sys.stdout.buffer, outcomes)
"""

FORKED = """
import multiprocessing
import numpy as np
import opendp.prelude as dp
dp.enable_features("contrib", "idealized-numerics", "honest-but-curious")
rows = np.random.default_rng(0).normal(size=(200, 4))
options = dict(norm=100.0, p=2, origin=np.zeros(4), size=200, num_columns=4, T=float)
pca = dp.sklearn.decomposition.make_private_pca(
    dp.numpy.array2_domain(**options), dp.symmetric_distance(), unit_epsilon=1.0, num_components=2)
def release(_):
    return pca(rows).Vt.tobytes()
release(None)
with multiprocessing.get_context("fork").Pool(3) as pool:
    print(len(set(pool.map(release, range(3)))))
"""


def black_box(attack: Attack, python: str) -> Callable[[float, int], Any]:
    """Return the peer's mechanism, each call of which is one process."""

    def draw(data: float, count: int) -> Any:
        done = subprocess.run(
            [python, "-c", attack.code + LOOP, repr(data), str(count)],
            capture_output=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(done.stderr.decode("utf-8", "replace")[-500:])
        return np.load(io.BytesIO(done.stdout))

    return draw


def installed(peer: str, python: str) -> bool:
    command = [python, "-c", f"import {peer}"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def bound(attack: Attack, python: str, samples: int) -> str:
    """Return the largest ε that the audit proves of a peer."""
    if not installed(attack.peer, python):
        return "not installed"
    try:
        peer_bound = audit.lower_bound(
            black_box(attack, python),
            *attack.inputs,
            epsilon=attack.epsilon,
            samples=max(400, round(samples * attack.part)),
            confidence=CONFIDENCE,
            vectorized=True,
        )
    except RuntimeError as error:
        return f"failed: {str(error).strip().splitlines()[-1]}"
    return shown(peer_bound)


def our_bound(attack: Attack, samples: int) -> str:
    """Return the largest ε that the audit proves of ours; a release takes a millisecond."""
    try:
        own_bound = audit.lower_bound(
            attack.ours,
            *attack.inputs,
            epsilon=attack.epsilon,
            samples=max(400, round(samples * min(attack.part, 0.1))),
            confidence=CONFIDENCE,
        )
    except zd.errors.ParameterError as error:  # all calls are refused, whatever the rows
        cause = error.__cause__
        return (
            f"refused: {cause.name} expected"
            if isinstance(cause, zd.errors.ParameterError)
            else "?"
        )
    return shown(own_bound)


def shown(measured: audit.LowerBound) -> str:
    text = f"{measured.epsilon_lower:.2f}" if math.isfinite(measured.epsilon_lower) else "inf"
    return f"**{text}**" if measured.violated else text


def released(_: int) -> bytes:
    rows = np.arange(800.0).reshape(200, 4) % 10
    bits: bytes = zd.mean(rows, bounds=(0, 10), epsilon=1).value.tobytes()
    return bits


def forked() -> str:
    """Return how many of three forked processes publish different values."""
    released(0)
    with multiprocessing.get_context("fork").Pool(3) as pool:
        return f"{len(set(pool.map(released, range(3))))} of 3 differ"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--samples", type=int, default=20_000)
    arguments = parser.parse_args()
    print(f"ε >= …, proven by sampling at confidence {CONFIDENCE}; bold: more than claimed.\n")
    print("| library | attack (its issue) | claimed ε | the library | zerodelta, the same |")
    print("|---|---|---|---|---|")
    for attack in ATTACKS:
        cells = [attack.peer, attack.name, f"{attack.epsilon:g}"]
        cells += [
            bound(attack, arguments.python, arguments.samples),
            our_bound(attack, arguments.samples),
        ]
        print(f"| {' | '.join(cells)} |", flush=True)
    done = subprocess.run([arguments.python, "-c", FORKED], capture_output=True, check=False)
    theirs = f"{done.stdout.decode().strip()} of 3 differ" if done.returncode == 0 else "failed"
    print(f"| opendp | private PCA in forked processes (2934) | 1 | {theirs} | {forked()} |")


if __name__ == "__main__":
    main()
