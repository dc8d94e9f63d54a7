"""Algorithms 9 and 10: publish a median with little noise, if a noisy test allows it.

Ages are dense around their median, so one row hardly moves it: the local sensitivity is far below
the range of 100 years for which plain Laplace noise is scaled. The rows are made up here, so
this example may print the true median.
"""

from __future__ import annotations

import numpy as np

import zerodelta as zd
from zerodelta.queries import Median


def main() -> None:
    ages = np.random.default_rng(0).normal(42, 12, size=100_000)
    query = Median(bounds=(0, 100), steps=5_000)
    bound = "1/5"  # years: the proposed bound on the change of the median by one row
    print(f"true median                       {np.median(ages):8.3f}")
    approximate = zd.paper.propose_test_release(
        ages, query=query, proposed_bound=bound, epsilon=1, delta=1e-9
    )
    print(f"Algorithm 9, (1, 1e-9/2)-DP       {show(approximate)}")
    printed = zd.paper.pure_propose_test_release(
        ages, query=query, proposed_bound=bound, epsilon=1, delta=1e-12, mixing_weight="1e-4"
    )
    print(f"Algorithm 10, pure 1-DP           {show(printed)}")
    free = zd.queries.propose_test_release(ages, query=query, proposed_bound=bound, epsilon=1)
    print(f"the failed test as mixing, pure 1 {show(free)}")
    print(free.certificate.summary)


def show(release: zd.records.Release) -> str:
    value = "⊥" if release.value is None else f"{float(np.ravel(release.value)[0]):8.3f}"
    return f"{value}   expected error {release.error:.2f} if the test passes"


if __name__ == "__main__":
    main()
