"""What statistics make of the noisy sums of a plan, side by side for all columns."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np

from zerodelta.mechanisms.moments import MomentPlan
from zerodelta.privacy.statistics import (
    EXPECTED,
    MEAN,
    SUM,
    VARIANCE,
    Measurement,
    floats_of,
)


def estimate(plan: MomentPlan, noisy: Any) -> Any:
    """Return the statistics of every group and column; NaN where a degree does not give one."""
    places = [plan.lattice.place(column) for column in range(plan.columns)]
    names = [str(column) for column in range(plan.columns)]
    sums = Measurement(
        law=plan.law,
        integers=noisy.reshape(plan.groups, -1),
        forms={name: plan.forms(column) for column, name in enumerate(names)},
        bounds={
            name: (center - half, center + half)
            for name, (center, half) in zip(names, places, strict=True)
        },
    )
    powers = [sums.column(name) for name in names]
    unknown = np.full(plan.groups, math.nan)

    def each(statistic: Any) -> Any:
        return np.stack(
            [
                statistic.value(one) if plan.row.degrees[i] >= statistic.degree else unknown
                for i, one in enumerate(powers)
            ],
            axis=1,
        )

    return SimpleNamespace(
        rows=floats_of(plan.forms(None)[0], sums.integers)
        if any(plan.row.rows_form())
        else unknown,
        count=np.stack([one.count for one in powers], axis=1),
        sum=each(SUM),
        mean=each(MEAN),
        variance=each(VARIANCE) if max(plan.row.degrees) == 2 else None,
    )


def forecast(plan: MomentPlan) -> Any:
    """Return the standard errors of one group of average size."""
    rows, noises = plan.expected_rows / plan.groups, plan.covariances

    def each(statistic: Any) -> Any:
        found = []
        for column, noise in enumerate(noises):
            center, half = map(float, plan.lattice.place(column))
            known = plan.row.degrees[column] >= statistic.degree
            error = statistic.forecast(noise, rows=rows, center=center, half=half) / EXPECTED
            found.append(error if known else math.nan)
        return np.array(found)

    return SimpleNamespace(
        rows=plan.rows_deviation,
        count=np.array([math.sqrt(noise[0][0]) for noise in noises]),
        sum=each(SUM),
        mean=each(MEAN),
        variance=each(VARIANCE) if max(plan.row.degrees) == 2 else None,
    )
