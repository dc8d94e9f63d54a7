"""Exact laws of MWEM on tiny inputs: the real code, run along every path of its random answers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from data.opening import opened
from zerodelta.audit.exact import (
    datasets,
    exponential_mechanism_law,
    neighbors,
    permute_and_flip_law,
    rounded_gaussian_pmf,
    rounded_gaussian_tail,
    rounded_laplace_pmf,
    rounded_laplace_tail,
    shifted,
)
from zerodelta.marginals.workloads import histogram, source_of
from zerodelta.mechanisms.selection import ExponentialMechanism, Selection
from zerodelta.mechanisms.sum_noise import RoundedLaplace
from zerodelta.paper.multiplicative_weights import Measurement, Rounds, multiplicative_weights

FAR = 10**6
"""What stands for every answer beyond the range 0..n·bound; the code must clip it."""

Average = npt.NDArray[np.float64]


class Branch(Exception):  # noqa: N818  (not an error: the code asks for its next random answer)
    def __init__(self, law: dict[int, Any]) -> None:
        self.law = law


def selection_law(select: Selection, scores: npt.NDArray[np.int64]) -> dict[int, Any]:
    em = isinstance(select, ExponentialMechanism)
    law = exponential_mechanism_law if em else permute_and_flip_law
    return dict(law([int(score) for score in scores], scale=select.scale))


def measurement_law(measure: Measurement, total: int, largest: int) -> dict[int, Any]:
    """The law of total + noise, with everything <= 0 and everything >= largest joined."""
    noise: tuple[Callable[[int], Any], Callable[[int], Any]]
    if isinstance(measure, RoundedLaplace):
        noise = (
            partial(rounded_laplace_pmf, scale=measure.scale),
            partial(rounded_laplace_tail, scale=measure.scale),
        )
    else:
        noise = (
            partial(rounded_gaussian_pmf, variance=measure.variance),
            partial(rounded_gaussian_tail, variance=measure.variance),
        )
    law = shifted(*noise, center=total, low=1, high=largest - 1)
    place = {-math.inf: -FAR, math.inf: FAR}
    return {int(place.get(outcome, outcome)): p for outcome, p in law.items()}


def transcripts(
    rows: tuple[Any, ...], mwem: Rounds
) -> Iterator[tuple[tuple[int, ...], Any, Average]]:
    """Yield each path of answers, its probability and the average distribution it leads to."""
    workload = mwem.workload
    counts = histogram(opened(source_of(np.array(rows), workload)), workload)
    largest = len(rows) * workload.bound
    select_law = partial(selection_law, mwem.select)

    def follow(path: tuple[int, ...]) -> Average:
        script = iter(path)

        def choose(scores: npt.NDArray[np.int64]) -> int:
            for answer in script:
                return answer
            raise Branch(select_law(scores))

        def answer(total: int) -> int:
            for given in script:
                return given
            raise Branch(measurement_law(mwem.measure, total, largest))

        return multiplicative_weights(
            counts, workload, rounds=mwem.rounds, choose=choose, measure=answer
        )

    def explore(path: tuple[int, ...], probability: Any) -> Iterator[Any]:
        try:
            average = follow(path)
        except Branch as branch:
            for outcome, p in branch.law.items():
                yield from explore((*path, outcome), p * probability)
        else:
            yield path, probability, average

    return explore((), 1)


def neighboring(universe: list[Any], rows: int) -> list[tuple[Any, Any]]:
    """All neighboring pairs of datasets, each pair of histograms once (the code sees no more)."""
    pairs = neighbors(datasets(universe, rows))
    return sorted(
        {(tuple(sorted(a)), tuple(sorted(b))) for a, b in pairs if sorted(a) != sorted(b)}
    )
