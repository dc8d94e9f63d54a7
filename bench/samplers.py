"""Measure exact samples a second on one core: zerodelta, OpenDP, and NumPy's unsafe ones.

OpenDP runs in its own environment (`.bench-opendp`), made here on the first run and skipped with a
message if it cannot be installed. Ratios are of speeds measured in this run.
"""

from __future__ import annotations

import json
import math
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from zerodelta.exact import bits as lazy
from zerodelta.exact.argmax import exponential_argmax, gumbel_argmax
from zerodelta.exact.bits import SystemBits
from zerodelta.exact.integers import (
    bernoulli_exp,
    permutation,
    uniform_below,
    uniform_multisets,
    uniform_subset,
    uniform_subsets,
)
from zerodelta.exact.noise import (
    rounded_exponential,
    rounded_gaussian,
    rounded_k_norm,
    rounded_laplace,
    rounded_student_t,
)

SCALES = (1, 10, 10**3, 10**6, 10**9)
DRAWS = 2_000_000
BITS = SystemBits()
OPENDP = Path(__file__).resolve().parent.parent / ".bench-opendp"


def speed(draw: Callable[[], object], count: int) -> float:
    """Best of three runs, in draws a second."""
    best = math.inf
    for _ in range(3):
        start = time.perf_counter()
        draw()
        best = min(best, time.perf_counter() - start)
    return count / best


def slow_share(draw: Callable[[], object], count: int) -> float:
    """Share of draws that the float balls left undecided."""
    resolve, calls = lazy._round_exactly, 0

    def counting(*args: object) -> list[int]:
        nonlocal calls
        calls += 1
        return resolve(*args)  # type: ignore[arg-type]

    lazy._round_exactly = counting  # type: ignore[assignment]
    try:
        draw()
    finally:
        lazy._round_exactly = resolve
    return calls / count


PEER = """
import json, sys, time
import opendp.prelude as dp
dp.enable_features("contrib")
space = dp.vector_domain(dp.atom_domain(T=int)), {norm}(T=int)
result = {{}}
for scale in {scales}:
    mechanism = dp.m.{make}(*space, scale=float(scale))
    data = [0] * {count}
    best = float("inf")
    for _ in range(3):
        start = time.perf_counter(); mechanism(data); best = min(best, time.perf_counter() - start)
    result[scale] = {count} / best
print(json.dumps(result))
"""


def opendp_speeds(make: str, norm: str) -> dict[int, float]:
    """Speeds of OpenDP's exact integer sampler, or nothing if it is not to be had."""
    python = OPENDP / "bin" / "python"
    code = PEER.format(make=make, norm=norm, scales=SCALES, count=20_000)
    try:
        if not python.exists():
            subprocess.run([sys.executable, "-m", "venv", OPENDP], check=True)
        if subprocess.run([python, "-c", "import opendp"], capture_output=True).returncode:
            subprocess.run(
                [python, "-m", "pip", "install", "--quiet", "opendp"], check=True, timeout=600
            )
        done = subprocess.run(
            [python, "-c", code], check=True, capture_output=True, text=True, timeout=600
        )
    except (OSError, subprocess.SubprocessError) as error:
        Console().print(f"OpenDP skipped: it could not be installed or run ({error}).")
        return {}
    return {int(scale): rate for scale, rate in json.loads(done.stdout).items()}


def noise_table(console: Console) -> None:
    table = Table(title=f"Million draws a second, one core, {DRAWS:,} draws")
    for column in (
        "noise",
        "scale",
        "zerodelta",
        "slow path",
        "OpenDP",
        "ratio",
        "NumPy (unsafe)",
        "ratio",
    ):
        table.add_column(column, justify="right")
    unsafe = np.random.default_rng()
    kinds = {
        "Laplace": (
            lambda s: rounded_laplace(scale=s, size=DRAWS, bits=BITS),
            lambda s: np.rint(unsafe.laplace(0, s, DRAWS)).astype(np.int64),
            opendp_speeds("make_laplace", "dp.l1_distance"),
        ),
        "Gaussian": (
            lambda s: rounded_gaussian(variance=s * s, size=DRAWS, bits=BITS),
            lambda s: np.rint(unsafe.normal(0, s, DRAWS)).astype(np.int64),
            opendp_speeds("make_gaussian", "dp.l2_distance"),
        ),
    }
    for name, (ours, numpys, peer) in kinds.items():
        for scale in SCALES:
            rate = speed(lambda ours=ours, scale=scale: ours(scale), DRAWS)  # type: ignore[misc]
            share = slow_share(lambda ours=ours, scale=scale: ours(scale), DRAWS)  # type: ignore[misc]
            loose = speed(lambda numpys=numpys, scale=scale: numpys(scale), DRAWS)  # type: ignore[misc]
            table.add_row(
                name,
                f"{scale:.0e}",
                f"{rate / 1e6:.1f}",
                f"{share:.1e}",
                f"{peer[scale] / 1e6:.3f}" if peer else "-",
                f"{rate / peer[scale]:.0f}x" if peer else "-",
                f"{loose / 1e6:.1f}",
                f"{rate / loose:.2f}x",
            )
    console.print(table)


def other_table(console: Console) -> None:
    table = Table(title="Everything else, one core")
    for column in ("sampler", "million a second", "seconds a call", "slow path"):
        table.add_column(column, justify="right")
    scores = np.arange(10**6) % 1000
    million = 10**6
    rows: list[tuple[str, Callable[[], object], int]] = [
        (
            "exponential, scale 1e3",
            lambda: rounded_exponential(scale=1000, size=million, bits=BITS),
            million,
        ),
        (
            "Student-t(3), scale 1e3",
            lambda: rounded_student_t(degrees=3, scale=1000, size=million, bits=BITS),
            million,
        ),
        (
            "Laplace, scale 1e15",
            lambda: rounded_laplace(scale=10**15, size=20_000, bits=BITS),
            20_000,
        ),
        (
            "l2 K-norm, d = 1000",
            lambda: rounded_k_norm(norm=2, dimension=1000, scale=1000, size=1000, bits=BITS),
            million,
        ),
        (
            "l2 K-norm, d = 1000, scale 1e9",
            lambda: rounded_k_norm(norm=2, dimension=1000, scale=10**9, size=1000, bits=BITS),
            million,
        ),
        (
            "linf K-norm, d = 1000",
            lambda: rounded_k_norm(norm=math.inf, dimension=1000, scale=1000, size=1000, bits=BITS),
            million,
        ),
        (
            "Gumbel argmax of 1e6 scores",
            lambda: gumbel_argmax(scores, scale=10, size=1, bits=BITS),
            million,
        ),
        (
            "permute-and-flip of 1e6 scores",
            lambda: exponential_argmax(scores, scale=10, size=1, bits=BITS),
            million,
        ),
        ("uniform below 1000", lambda: uniform_below(1000, size=million, bits=BITS), million),
        (
            "uniform below 2^200",
            lambda: uniform_below(2**200, size=million, bits=BITS),
            million,
        ),
        ("permutation of 1e6", lambda: permutation(million, bits=BITS), million),
        (
            "subset, 1e5 of 1e6",
            lambda: uniform_subset(million, size=million // 10, bits=BITS),
            million // 10,
        ),
        (
            "1e6 subsets, 2 of 5",
            lambda: uniform_subsets(5, size=2, count=million, bits=BITS),
            million,
        ),
        (
            "1e6 multisets, 3 of 4 items",
            lambda: uniform_multisets(4, size=3, count=million, bits=BITS),
            million,
        ),
        (
            "Bernoulli(e^-1/3)",
            lambda: bernoulli_exp(Fraction(1, 3), size=million, bits=BITS),
            million,
        ),
    ]
    for name, draw, count in rows:
        rate, share = speed(draw, count), slow_share(draw, count)
        slow = f"{share:.1e}" if share else "-"
        table.add_row(name, f"{rate / 1e6:.2f}", f"{count / rate:.3f}", slow)
    console.print(table)


def memory_line(console: Console) -> None:
    rounded_gaussian(variance=10**6, size=10**7, bits=BITS)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    console.print(
        f"Peak memory of this process after 1e7 Gaussian draws in one call: {peak:.0f} MB."
    )


def main() -> None:
    console = Console(width=110)
    memory_line(console)
    noise_table(console)
    other_table(console)


if __name__ == "__main__":
    main()
