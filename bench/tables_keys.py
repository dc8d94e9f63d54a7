"""Compare unknown and most frequent keys with thresholds of other libraries (docs/keys.md).

    python bench/tables_keys.py [--runs 5]

1e6 Zipf rows (a = 1.3), 26^10 keys, ε = 1 under replace-one: how many keys that occur are found,
which share of the rows they hold, how many are false, and the time. Beside: symmetric thresholds at
the same pure ε, and the best (ε, 1e-10) selection of keys one by one, with even directions and with
ours. Then the ten most frequent of known keys, beside peeling at ε/10, which is what the selection
mechanisms of OpenDP and diffprivlib offer (neither needs to be installed).
"""

from __future__ import annotations

import argparse
import math
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from string import ascii_lowercase
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

import zerodelta as zd
from zerodelta.exact.bits import SystemBits
from zerodelta.mechanisms.key_noise import FOR_COUNTS, FOR_KEYS, KeyNoise, NoisyTop, UnknownKeys
from zerodelta.mechanisms.selection import PermuteAndFlip
from zerodelta.spaces.keys import RangeKeys

ROWS, EXPONENT, KEYS, EPSILON = 1_000_000, 1.3, 26**10, 1
LOG_DELTA = math.log(1e-10)
Integers: TypeAlias = npt.NDArray[np.int64]


def zipf(rows: int, exponent: float, keys: int, seed: int) -> Integers:
    """Rows with Zipf frequencies over a universe of keys; surplus ranks are the last key."""
    drawn = np.random.default_rng(seed).zipf(exponent, rows)
    return np.minimum(drawn, keys - 1)


def found_by(noise: KeyNoise, counts: dict[int, int]) -> list[int]:
    """Publish by the threshold for one false key with this noise."""
    universe = RangeKeys(lower=0, upper=KEYS - 1)
    mechanism = UnknownKeys(
        universe=universe, noise=noise, thresholds=(noise.threshold(math.log(KEYS)),)
    )
    return [key for key, _ in mechanism.apply(counts, SystemBits())]


def best_approximate(
    counts: dict[int, int], up: float, down: float, log_delta: float, rng: np.random.Generator
) -> list[int]:
    """The best (ε, δ) selection that treats keys one by one, replace-one.

    p_0 = 0 and p_c = min(e^up·p_{c-1} + δ₁, 1 - e^-down·(1 - p_{c-1} - δ₁), 1), the largest
    probabilities that a count one apart allows (Desfontaines, Voss, Gipson and Mandayam 2022). A
    replaced row lowers one count and raises another, so each direction has its share of ε and δ/2.
    """
    half = math.exp(log_delta) / 2
    chances, last = [0.0], 0.0
    while last < 1 - 1e-12 and len(chances) < 10_000:
        last = min(math.exp(up) * last + half, 1 - math.exp(-down) * (1 - last - half), 1.0)
        chances.append(last)
    tops = np.array([chances[min(count, len(chances) - 1)] for count in counts.values()])
    drawn = rng.random(len(tops)) < tops
    return [key for key, passed in zip(counts, drawn, strict=True) if passed]


def measured(
    find: Callable[[], list[Any]], counts: dict[Any, int], runs: int
) -> tuple[float, float, float, float]:
    """Return true keys found, the part of rows covered, false keys, and the seconds of one run."""
    start = time.perf_counter()
    releases = [find() for _ in range(runs)]
    seconds = (time.perf_counter() - start) / runs
    true = [[key for key in run if key in counts] for run in releases]
    keys = np.mean([len(run) for run in true])
    rows = np.mean([sum(counts[key] for key in run) for run in true]) / sum(counts.values())
    false = np.mean([len(run) for run in releases]) - keys
    return float(keys), float(rows), float(false), seconds


def describe(name: str, find: Callable[[], list[Any]], counts: dict[Any, int], runs: int) -> None:
    """Print what was measured."""
    keys, rows, false, seconds = measured(find, counts, runs)
    print(f"{name:36s} {keys:7.0f} keys  {rows:6.1%} of rows  {false:5.2f} false  {seconds:6.2f} s")


def unknown_keys(runs: int) -> None:
    """Keys found, beside symmetric thresholds and the best (ε, δ) selection."""
    items = zipf(ROWS, EXPONENT, KEYS, seed=0)
    counts = dict(Counter(items.tolist()))
    print(f"{ROWS:,} rows, {len(counts):,} distinct of 26^10 keys, ε = {EPSILON}, one false key\n")
    people = zd.open(items, columns={"0": zd.number(0, KEYS - 1, integer=True)})

    def ours(data: Any, goal: str) -> list[Any]:
        names: list[Any] = zd.heavy_hitters(
            data, epsilon=EPSILON, goal=goal, false_keys=1
        ).value.names
        return names

    for goal in ("keys", "counts"):
        describe(f"zd.heavy_hitters, goal={goal!r}", partial(ours, people, goal), counts, runs)
    even = partial(found_by, KeyNoise.symmetric(epsilon=EPSILON), counts)
    describe("symmetric noise, same thresholds", even, counts, runs)
    rng = np.random.default_rng(1)
    wide, safe = math.sqrt(-LOG_DELTA), math.sqrt(FOR_KEYS)
    for name, up in (("even", EPSILON / 2), ("our", EPSILON * wide / (wide + safe))):
        find = partial(best_approximate, counts, up, EPSILON - up, LOG_DELTA, rng)
        describe(f"(ε, 1e-10), {name} directions", find, counts, runs)
    spelled = {key: name_of(key) for key in counts}
    names = np.array([spelled[key] for key in items.tolist()], dtype=object)
    texts = zd.open(names, columns={"0": zd.text(10, alphabet=ascii_lowercase)})
    known = {spelled[key]: count for key, count in counts.items()}
    describe("as texts of 1 to 10 letters", partial(ours, texts, "counts"), known, runs)


def name_of(key: int) -> str:
    """Spell a key with ten letters."""
    spelled = []
    for _ in range(10):
        key, letter = divmod(key, 26)
        spelled.append(ascii_lowercase[letter])
    return "".join(reversed(spelled))


def known_counts(rows: int, size: int) -> Integers:
    """Draw rows of which the keys 0..size-1 have Zipf frequencies (a = 1.1), and count them."""
    weights = np.arange(1, size + 1.0) ** -1.1
    return np.random.default_rng(2).multinomial(rows, weights / weights.sum())


def place_loss(counts: Integers, keys: list[int]) -> float:
    """Return by how much the counts of these keys fall short of the largest, on average."""
    best = np.sort(counts)[::-1][: len(keys)]
    return float(np.mean(best - np.sort(counts[keys])[::-1]))


def top_ten(runs: int) -> None:
    """The ten most frequent of known keys: mean loss of a place, by noise."""
    print(
        "\nten most frequent of N known keys: mean loss of a place (asymmetric, symmetric, peeling)"
    )
    for rows, size, epsilon in ((10**4, 10**3, 1.0), (10**4, 10**5, 1.0), (10**4, 10**5, 0.2)):
        counts = known_counts(rows, size)
        losses = []
        for noise in (
            KeyNoise.for_epsilon(epsilon=epsilon, log_keys=math.log(size / 10), wish=FOR_COUNTS),
            KeyNoise.symmetric(epsilon=epsilon),
        ):
            top = NoisyTop(noise=noise, size=size, k=10)
            errors = [
                [key for key, _ in top.apply(np.arange(size), counts, SystemBits())]
                for _ in range(runs)
            ]
            losses.append(np.mean([place_loss(counts, keys) for keys in errors]))
        errors = [peeled(counts, epsilon, 10) for _ in range(runs)]
        losses.append(np.mean([place_loss(counts, keys) for keys in errors]))
        noisy = " ".join(f"{loss:8.2f}" for loss in losses)
        print(f"n = {rows:>6}, N = {size:>6}, ε = {epsilon}: {noisy}")


def peeled(counts: Integers, epsilon: float, k: int) -> list[int]:
    """Choose one after the other at ε/k: what selection mechanisms of libraries offer."""
    mechanism = PermuteAndFlip.for_epsilon(epsilon=epsilon / k, sensitivity=1)
    candidates, chosen = list(range(len(counts))), []
    for _ in range(k):
        chosen.append(candidates.pop(mechanism.select(counts[candidates], SystemBits())))
    return chosen


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    unknown_keys(arguments.runs)
    top_ten(arguments.runs)
