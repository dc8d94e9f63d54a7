"""Algorithm 12: publish the most frequent of a million items, if its lead is large enough.

The paper tests the lead and encodes the answer in bits; the test alone is enough if its
threshold is right. The rows are made up here, so this example may print the true mode.
"""

from __future__ import annotations

import numpy as np

import zerodelta as zd

ITEMS = 1 << 20


def main() -> None:
    rng = np.random.default_rng(0)
    items = np.concatenate([rng.integers(0, ITEMS, size=90_000), np.full(3_000, 123_456)])
    values, counts = np.unique(items, return_counts=True)
    lead = int(np.diff(np.sort(counts)[-2:])[0])
    print(f"true mode {values[counts.argmax()]}, which leads by {lead} rows")
    for name, release in (
        ("Algorithm 12, pure 1-DP", zd.paper.embedded_mode(items, universe=ITEMS, epsilon=1)),
        ("the test alone, pure 1-DP", zd.paper.mode(items, universe=ITEMS, epsilon=1)),
    ):
        print(f"{name:<26} {release.value:>7}   needs a lead of {release.error:.0f} rows")
    counted = zd.mode(items, universe=ITEMS, epsilon=1)
    print(
        f"{'zd.mode, pure 1-DP':<26} {counted.value:>7}   {counted.error:.0f} rows behind, at most"
    )


if __name__ == "__main__":
    main()
