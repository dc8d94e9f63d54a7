"""Time the two sides of the mixing coin, which make the same calls.

``python bench/mixing_time.py [--runs 2000]``. The coin is thrown as always and then turned to one
side; the sides take turns, so that what the machine does beside hits both. A difference that an
observer could use would show as medians that are farther apart than their spread between halves.
"""

from __future__ import annotations

import argparse
import time
from typing import Any
from unittest.mock import patch

import numpy as np

import zerodelta as zd
from zerodelta.channels import channel
from zerodelta.exact.bits import SystemBits

SPACES: dict[str, tuple[Any, Any]] = {
    "16 options": (zd.Finite(16), 3),
    "box, 3 numbers": (zd.Box(0, 1, dimension=3), [0.1, 0.2, 0.9]),
    "ball, 10 numbers": (zd.Ball(10, 1), [0.1] * 10),
    "5 of 100": (zd.purification.Subsets(of=100, size=5), (1, 4, 7, 20, 99)),
}


def times(purifier: Any, value: Any, runs: int) -> tuple[Any, Any]:
    """Return the seconds of each run, with the coin on either side."""
    real, bits = vars(channel)["bernoulli"], SystemBits()
    taken: tuple[list[float], list[float]] = ([], [])
    for run in range(2 * runs):
        side = run % 2

        def turned(*arguments: Any, side: int = side, **options: Any) -> Any:
            real(*arguments, **options)
            return np.array([bool(side)])

        with patch.object(channel, "bernoulli", turned):
            start = time.perf_counter()
            purifier.apply(value, bits)
            taken[side].append(time.perf_counter() - start)
    return np.array(taken[0]), np.array(taken[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2000)
    runs = parser.parse_args().runs
    print("| published | kept, median µs | mixed, median µs | apart | between halves of one side |")
    print("|---|---|---|---|---|")
    for name, (space, value) in SPACES.items():
        plan = zd.plan(space, epsilon=1, base=zd.GaussianDP("1/100"))
        kept, mixed = times(plan.purifier, value, runs)
        middle = np.median(kept), np.median(mixed)
        halves = [abs(np.median(sides[::2]) - np.median(sides[1::2])) for sides in (kept, mixed)]
        cells = [f"{1e6 * sides:.1f}" for sides in middle]
        cells += [f"{1e6 * abs(middle[0] - middle[1]):.2f}", f"{1e6 * max(halves):.2f}"]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
