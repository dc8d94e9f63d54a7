"""Count the rows of a release that were used, clipped or unreadable (theory P1, P2).

Each row that counts is exactly one of these three, so one row changes the three counts as it
changes a histogram. Their noise costs a stated share of the release's ε and is a part of the same
certificate, whose total stays the ε that the caller passed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from zerodelta.data.arrays import Limits, Readings, TooLong
from zerodelta.data.dataset import Dataset
from zerodelta.data.kinds import Number
from zerodelta.data.rows import Rows
from zerodelta.data.source import Source
from zerodelta.errors import ParameterError
from zerodelta.exact.bits import BitSource
from zerodelta.exact.rational import Rational, as_share, bounds_by_column
from zerodelta.mechanisms.partition_noise import PartitionNoise
from zerodelta.privacy.parameters import as_usable_epsilon
from zerodelta.privacy.release import Diagnostics
from zerodelta.privacy.statistics import expected_count
from zerodelta.spine.plan import Facts, ReleasePlan
from zerodelta.spine.run import Diagnosis
from zerodelta.value import value


def as_diagnosis(
    share: Rational | Diagnosis | None,
    source: Source | None,
    *,
    bounds: Any = None,
    beyond: TooLong | None = None,
) -> Diagnosis | None:
    """Return the question that ``diagnostics=share`` adds to a release; None if that is None.

    `bounds` are those of the columns of `source`, as the main question has them; without declared
    columns (None) there are no bounds to compare with, and the share is refused. Rows that are
    `beyond` a bound on their length count as clipped, too.

    >>> from zerodelta.data.arrays import ArraySource
    >>> diagnosis = as_diagnosis("1/100", ArraySource([1.0, 2.0, None]), bounds=(0, 1))
    >>> diagnosis.share, diagnosis.source.columns
    (Fraction(1, 100), ('reading',))
    """
    if share is None or isinstance(share, Diagnosis):  # the caller has built it already
        return share
    exact = as_share(share, "diagnostics")
    if isinstance(source, Dataset) and source.kinds:
        read: Source = source.readings(_limits(source, bounds), beyond)
    elif source is not None and bounds is not None:
        read = Readings(source, tuple(bounds_by_column(bounds, len(source.columns))), beyond)
    else:
        raise ParameterError(
            "diagnostics",
            share,
            expected="columns with bounds: a row is used, clipped to them, or unreadable",
            remedy="name columns of a data set or pass bounds=, or leave diagnostics out",
        )
    return Diagnosis(question=ReadingsQuestion(), source=read, share=exact)


def _limits(source: Dataset, bounds: Any) -> Limits:
    """Return the bounds of each column: those of the question, or else the declared ones."""
    if bounds is not None:
        return tuple(bounds_by_column(bounds, len(source.columns)))
    kinds = source.kinds.values()
    return tuple(kind.bounds if isinstance(kind, Number) else None for kind in kinds)


@value
class ReadingsQuestion:
    """Question for the fractions of rows that were used, clipped and unreadable."""

    def plan(self, facts: Facts, epsilon: Rational) -> ReleasePlan[Rows]:
        """Calibrate the noise on the counts of used, clipped and unreadable rows.

        Where n is public and all rows count, only clipped and unreadable rows are counted: the used
        ones are the rest.
        """
        exact = as_usable_epsilon(epsilon)
        n = None if facts.may_miss else facts.rows
        first_cell = 0 if n is None else 1
        noise = PartitionNoise.for_epsilon(
            epsilon=exact, cells=3 - first_cell, neighbors=facts.neighbors
        )
        one_count = [1] + [0] * (noise.cells - 1)
        error = expected_count(noise.covariance(one_count, one_count) ** 0.5)

        def answer(rows: Rows, bits: BitSource) -> Diagnostics:
            """Release the fractions of cells used, clipped and unreadable, from noisy counts."""
            counts = rows.counts(0, 3)
            noisy = [int(count) for count in noise.apply(counts[first_cell:], bits)]
            total = sum(noisy) if n is None else n
            if n is not None:
                noisy = [n - sum(noisy), *noisy]
            # a noisy total of 0 or less says nothing about the fractions
            used, clipped, unreadable = (
                float(np.clip(count / total, 0, 1)) if total > 0 else float("nan")
                for count in noisy
            )
            return Diagnostics(used=used, clipped=clipped, unreadable=unreadable)

        return ReleasePlan(
            claim=noise.claim,
            steps=(noise.step(),),
            answer=answer,
            error=error,
            public=() if n is None else ("the number of rows",),
        )
