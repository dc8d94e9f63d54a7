"""How often each item occurs: noise fitted to counts, or Laplace noise (theory R, C10.4)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from zerodelta.errors import ParameterError
from zerodelta.exact.bits import BitSource, SystemBits
from zerodelta.exact.rational import Rational, as_count, as_positive
from zerodelta.mechanisms.counts import CountNoise
from zerodelta.mechanisms.integer_sums import add_exactly
from zerodelta.mechanisms.k_norm import KNorm
from zerodelta.mechanisms.laplace import RoundedLaplace
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.release import Release
from zerodelta.spine.methods import Method, choose, ranked
from zerodelta.spine.transition import issue_for
from zerodelta.tasks.counting import as_universe, item_count, stray_index, tally
from zerodelta.tasks.items import as_items

__all__ = ["histogram", "histogram_methods"]

_MOST_ITEMS = 1 << 26
_MOST_JOINT = 1 << 12
"""Beyond so many counts, one joint noise vector is less than 0.03 % better than Laplace noise."""


def histogram(
    items: Any,
    *,
    universe: Any = None,
    epsilon: Rational,
    unknown: Any = None,
    method: str = "auto",
    bits: BitSource | None = None,
) -> Release:
    """Release how often each item of the universe occurs, as integers in its order.

    **Releases**: unbiased counts, which may be negative (cutting them off is allowed). `method`:
    "k-norm" (noise fitted to the two counts that one row moves), "laplace", "k-norm-max" (l∞).
    **Neighbors**: replace-one.
    **Guarantee**: pure ε-DP (theory R), proven.
    **Public**: the universe, a list of items or N for the integers 0..N-1; a number and a text that
    spells it are one item. An item outside it counts nowhere, or for the public item `unknown`;
    then the counts add up to the number of items, which is public, and one noise less is needed.
    **Error**: the expected absolute error of a count: (2/ε)·m/(m+1), m noisy counts; Laplace 2/ε.

    >>> release = histogram([0, 1, 1, 2], universe=3, epsilon=1)
    >>> release.value.shape, round(release.error, 2)
    ((3,), 1.5)
    """
    bits = SystemBits() if bits is None else bits
    space, exact = as_universe(universe), as_positive(epsilon, "epsilon")
    if space.size > _MOST_ITEMS:
        raise ParameterError(
            "universe",
            space.size,
            expected="at most 2^26 items, one count each",
            remedy="group the items, or ask for the mode only",
        )
    stray, items = stray_index(unknown, space), as_items(items)
    complete = stray is not None and space.size > 1
    chosen = choose(
        histogram_methods(epsilon=exact, universe=space.size, complete=complete), method
    )
    free = space.size - complete
    noise: CountNoise | KNorm | RoundedLaplace
    if chosen.name == "k-norm":
        noise = CountNoise.for_epsilon(epsilon=exact, dimension=free)
    elif chosen.name == "k-norm-max":
        noise = KNorm.for_epsilon(epsilon=exact, norm=math.inf, dimension=free, sensitivity=1)
    else:
        noise = RoundedLaplace.for_epsilon(epsilon=exact, sensitivity=min(2, free))
    certificate = issue_for(
        items,
        claim=PureDP(exact),
        steps=(noise.step(quantum=None) if isinstance(noise, KNorm) else noise.step(),),
        bits=bits,
        public=("the universe of items", "the number of items"),
    )
    counts = tally(items, space, stray=stray).dense(space.size)
    if not complete or stray is None:
        value: Any = noise.apply(counts, bits)
    else:  # the counts add up to the number of items, so one of them follows from the others
        noisy = noise.apply(np.delete(counts, stray), bits)
        whole = noisy.tolist()
        whole.insert(stray, item_count(items) - sum(whole))
        value = add_exactly(np.array(whole, dtype=np.object_), np.zeros(len(whole), dtype=np.int64))
    return Release(value=value, certificate=certificate, error=chosen.error)


def histogram_methods(
    *, epsilon: Rational, universe: int, complete: bool = False
) -> tuple[Method, ...]:
    """Return the ways to release counts, best first; `complete` if every item counts somewhere.

    Errors are expected absolute errors of a count.

    >>> [(m.name, round(m.error, 2)) for m in histogram_methods(epsilon=1, universe=2)]
    [('k-norm', 1.33), ('k-norm-max', 1.5), ('laplace', 1.98)]
    """
    exact, size = as_positive(epsilon, "epsilon"), as_count(universe, "universe", minimum=1)
    free = max(1, size - bool(complete))
    joint = CountNoise.for_epsilon(epsilon=exact, dimension=free).error()
    largest = KNorm.for_epsilon(epsilon=exact, norm=math.inf, dimension=free, sensitivity=1)
    each = RoundedLaplace.for_epsilon(epsilon=exact, sensitivity=min(2, free))
    small = free <= _MOST_JOINT
    return ranked(
        Method(
            name="k-norm",
            error=joint if small else math.inf,
            spends="ε on all counts together",
            why="no other K-norm noise covers the moves of two counts with less"
            if small
            else "for so many counts it gains less than 0.03 % on Laplace noise",
        ),
        Method(
            name="laplace",
            error=each.error(),
            spends="ε on all counts together, noise for a move of 2 in l1",
            why="independent noise for every count",
        ),
        Method(
            name="k-norm-max",
            error=largest.error() if small else math.inf,
            spends="ε on all counts together, noise for a move of 1 in l∞",
            why="its noise grows with the number of counts",
        ),
    )
