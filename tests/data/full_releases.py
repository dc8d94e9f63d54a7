"""Six whole releases, from a data set to a certificate, for sources that are somewhere else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

import zerodelta as zd
from zerodelta.models import Logistic
from zerodelta.sklearn import LinearRegression

WIDTH = 16
FEATURES = [f"x{i}" for i in range(WIDTH)]
CITIES, SHARES = ["oslo", "rome", "bern"], [0.5, 0.3, 0.2]
COLUMNS: dict[str, Any] = {
    "age": zd.number(0, 100, missing=None),
    "height": zd.number(0, 200),
    "spent": zd.number(0, 400, missing=None),
    "city": zd.category(CITIES),
    "member": zd.boolean(missing=True),
    **{name: zd.number(-1, 1, missing=None) for name in FEATURES},
}


def made_up(rows: int, seed: int = 0) -> pa.Table:
    """Return rows whose means, frequencies and slopes are known."""
    rng = np.random.default_rng(seed)
    age, height = rng.uniform(0, 100, rows), rng.uniform(0, 200, rows)
    wide = rng.uniform(-1, 1, (WIDTH, rows))
    codes = rng.choice(3, rows, p=SHARES).astype(np.int32)
    return pa.table(
        {
            "age": age,
            "height": pa.array(np.where(age < 1, np.nan, height), from_pandas=True),
            "spent": 100 + 2 * age + rng.uniform(-20, 20, rows),
            "city": pa.DictionaryArray.from_arrays(codes, pa.array(CITIES)).cast(pa.string()),
            "member": wide[0] > rng.uniform(-0.3, 0.3, rows),
            **dict(zip(FEATURES, wide, strict=True)),
        }
    )


def mean(people: Any) -> Any:
    return zd.mean(people, "age", epsilon=1)


def check_mean(release: Any, _: int) -> None:
    assert abs(release.value - 50) < 1


def counts(people: Any) -> Any:
    return zd.histogram(people, "city", epsilon=1)


def check_counts(release: Any, rows: int) -> None:
    np.testing.assert_allclose(np.asarray(release.value) / rows, SHARES, atol=0.02)


def regression(people: Any) -> Any:
    """By the method that needs the rows together least, where these are many, or elsewhere."""
    model = LinearRegression(epsilon=4)
    return model.fit(people[["age", "height"]], people["spent"]).release_


def check_regression(release: Any, _: int) -> None:
    np.testing.assert_allclose(release.value.coefficients, [[2, 0]], atol=0.3)


def mode(people: Any) -> Any:
    return zd.mode(people, "city", epsilon=1)


def check_mode(release: Any, _: int) -> None:
    assert release.value == "oslo"


def marginals(people: Any) -> Any:
    return zd.answer_queries(people, ["city", "member"], workload=2, epsilon=1)


def check_marginals(release: Any, _: int) -> None:
    table = release.value["city", "member"]
    np.testing.assert_allclose(table.sum(axis=1), SHARES, atol=0.02)


def training(people: Any) -> Any:
    """Twenty rounds over one copy of the columns."""
    study = zd.Study(
        people[[*FEATURES, "member"]],
        epsilon=4,
        publish=zd.Ball(WIDTH, 4),
        rounds=20,
        mixing_probability=1e-6,
        functions=False,
    )
    return study.minimize(Logistic(), label="member", data_norm=4, steps=20)


def check_training(release: Any, _: int) -> None:
    assert release.value[0] == max(release.value)  # the one feature that matters


Ask: TypeAlias = Callable[[Any], Any]
Check: TypeAlias = Callable[[Any, int], None]

RELEASES: dict[str, tuple[Ask, Check]] = {
    "mean": (mean, check_mean),
    "counts by key": (counts, check_counts),
    "linear regression": (regression, check_regression),
    "mode": (mode, check_mode),
    "two-way marginals": (marginals, check_marginals),
    "training": (training, check_training),
}
"""What is asked of a data set, and how its release is looked at, given the number of rows."""


def run(name: str, people: Any, rows: int) -> None:
    """Ask and look."""
    ask, check = RELEASES[name]
    release = ask(people)
    check(release, rows)
    claim = zd.verify(release.certificate)
    assert isinstance(claim, zd.purification.PureDP)
