"""What went wrong in other libraries, tried on ours: a permanent set.

Each test names the report. docs/threat-model.md has the whole list, with the tests elsewhere
that cover the rest; bench/peers_attacks.py runs some of them on installed peers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import zerodelta as zd
import zerodelta.sklearn
from attacks.before_noise import total_before_noise
from zerodelta.testing import replayed

Ask = Callable[..., Any]

BOUNDED: dict[str, Ask] = {
    "mean": lambda rows, **o: zd.mean(rows, **o),
    "sum": lambda rows, **o: zd.sum(rows, **o),
    "variance": lambda rows, **o: zd.variance(rows, **o),
    "std": lambda rows, **o: zd.std(rows, **o),
    "median": lambda rows, **o: zd.median(rows[:, 0], **o),
    "quantiles": lambda rows, **o: zd.quantiles(rows[:, 0], q=[0.2, 0.8], **o),
    "cdf": lambda rows, **o: zd.cdf(rows[:, 0], **o),
    "trimmed_mean": lambda rows, **o: zd.trimmed_mean(rows[:, 0], trim="1/10", **o),
    "covariance": lambda rows, **o: zd.covariance(rows, **o),
    "correlation": lambda rows, **o: zd.correlation(rows, **o),
    "pca": lambda rows, **o: zd.pca(rows, **o),
    "kmeans": lambda rows, **o: zd.kmeans(rows, clusters=2, method="histogram", **o),
}
"""Tasks that need public bounds."""
bounded = pytest.mark.parametrize("name", BOUNDED)


def rows() -> Any:
    return np.random.default_rng(2).uniform(0, 100, size=(40, 2))


def value(release: Any) -> bytes:
    """All numbers of a released value."""
    found = release.value
    if isinstance(found, (float, int, np.ndarray)):
        return np.asarray(found).tobytes()
    return repr(found).encode()


# -- bounds and clipping --------------------------------------------------------------------------


@bounded
def test_bounds_are_never_taken_from_the_rows(name: str) -> None:
    """diffprivlib takes them with a warning; SmartNoise added no noise without (issue 317)."""
    with pytest.raises(zd.errors.ParameterError, match="bounds"):
        BOUNDED[name](rows(), epsilon=1)


@bounded
@pytest.mark.parametrize("end", [math.inf, math.nan, 10**400], ids=["inf", "nan", "huge"])
def test_bounds_are_finite(name: str, end: Any) -> None:
    """OpenDP imputed between infinite bounds, and failed on the first NaN (issue 2929)."""
    with pytest.raises(zd.errors.ParameterError, match=r"finite|2\^|number|bound"):
        BOUNDED[name](rows(), bounds=(0, end), epsilon=1)


@bounded
@pytest.mark.parametrize(("cell", "end"), [(1e300, 100.0), (-1e300, 0.0), (math.inf, 100.0)])
def test_what_is_clipped_is_what_is_used(name: str, cell: float, end: float) -> None:
    """SmartNoise clipped the rows and went on with the old ones (issue 622)."""
    far, near = rows(), rows()
    far[3], near[3] = cell, end
    options: dict[str, Any] = {"bounds": (0, 100), "epsilon": 1}
    found = [replayed("a run")(BOUNDED[name])(each, **options) for each in (far, near)]
    assert value(found[0]) == value(found[1])


def test_a_lower_bound_of_zero_still_has_noise_everywhere() -> None:
    """diffprivlib's regression forgot the upper bound: squares had sensitivity 0 (issue 105)."""
    options: dict[str, Any] = {"bounds": (0, 100), "epsilon": 1}
    found = np.array([zd.covariance(rows(), **options).value for _ in range(3)])
    assert np.all(np.ptp(found, axis=0) > 0)
    x, y = rows()[:, :1], rows()[:, 1]
    fits = [
        zd.sklearn.LinearRegression(epsilon=1, data_norm=100, bounds_y=(0, 100)).fit(x, y)
        for _ in range(3)
    ]
    assert len({fit.coef_.tobytes() for fit in fits}) == 3


def loss(one: Any, other: Any) -> Fraction:
    """What the noisy integers of two releases with the same bits say of the privacy loss.

    Equal bits are equal noise: the difference is that of the integers before it.
    """
    total = Fraction(0)
    for first, second in zip(one.sums, other.sums, strict=True):
        law = first.law
        assert law == second.law
        moved = [int(a - b) for a, b in zip(_flat(first), _flat(second), strict=True)]
        up, down = sum(max(each, 0) for each in moved), -sum(min(each, 0) for each in moved)
        most = max(map(abs, moved))
        sizes: dict[Any, int] = {"counts": max(up, down), 1.0: up + down, math.inf: most}
        total += Fraction(sizes["counts" if law.family == "counts" else law.norm]) / law.scale
    return total


def _flat(sums: Any) -> list[int]:
    found: list[int] = np.asarray(sums.integers, dtype=object).ravel().tolist()
    return found


@pytest.mark.parametrize("ask", [zd.variance, zd.std, zd.sum, zd.mean])
def test_no_power_of_a_value_moves_more_than_its_noise_is_for(ask: Any) -> None:
    """SmartNoise scaled the noise of Σx² by 50 where values went to 50 (issue 203)."""

    def release(*cells: float) -> Any:
        given = np.array([*cells, 7.0, -3.0, 50.0])
        return replayed("a run")(ask)(given, bounds=(-50, 50), epsilon=1)

    ends = [-1e9, -50.0, -25.0, 0.0, 1e-3, 50.0, math.nan]
    losses = [loss(release(one), release(other)) for one in ends for other in ends]
    assert max(losses) <= 1
    assert max(losses) > Fraction(9, 10)  # and its noise is not for much more


# -- quantiles ------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1491, 1492, 2980, 2981, 100_000])
def test_a_quantile_of_equal_values_is_a_release_like_any_other(count: int) -> None:
    """Probabilities underflowed: diffprivlib (107) and SmartNoise (572) raise from some n on."""
    for cells in ([0.5] * count, [0.5] * (count - 1) + [0.6]):
        release = zd.median(np.array(cells), bounds=(0, 1), epsilon=1)
        assert abs(release.value - 0.5) < 0.3


# -- sums -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dtype", "width"), [("float32", 1e38), ("float16", 60_000), ("int64", 2**62), ("int8", 127)]
)
def test_a_narrow_type_does_not_overflow_on_the_way(dtype: str, width: Any) -> None:
    """OpenDP took float32 for float64 (2941), Google's C++ sums wrapped (40): signs flip."""
    cells = np.array([width] * 4 + [-width] * 7).astype(dtype)
    exact = sum((Fraction(cell.item()) for cell in cells), Fraction(0))
    found, _ = total_before_noise(cells, bounds=(-width, width))
    assert abs(found - exact) <= Fraction(width) / 1000
    assert total_before_noise(cells[::-1].copy(), bounds=(-width, width))[0] == found


def test_a_unit_of_three_rows_moves_a_sum_by_three_widths_and_has_noise_for_that() -> None:
    """OpenDP counted a group of 3 rows that all change as a change of 3, not of 6 (issue 2945)."""

    def total(cell: float) -> tuple[Fraction, Fraction]:
        frame = pd.DataFrame({"who": [0, 0, 0, 1], "b": [cell] * 3 + [0.0]})
        columns = {"b": zd.number(-10, 10, missing=None)}
        return total_before_noise(zd.open(frame, columns=columns, unit="who", max_rows=3), "b")

    (high, scale), (low, _) = total(10), total(-10)
    assert high - low >= 59  # the lattice may round a little
    assert scale >= high - low


# -- order ----------------------------------------------------------------------------------------

CATEGORIES: dict[str, Callable[[list[str]], Any]] = {
    "pandas": lambda cells: pd.DataFrame({"city": pd.Categorical(cells)}),
    "polars": lambda cells: pl.DataFrame({"city": pl.Series(cells, dtype=pl.Categorical)}),
    "arrow": lambda cells: pa.table({"city": pa.array(cells).dictionary_encode()}),
    "list": lambda cells: pd.DataFrame({"city": cells}),
}


@pytest.mark.parametrize("kind", CATEGORIES)
def test_codes_that_follow_the_order_of_the_rows_are_not_used(kind: str) -> None:
    """OpenDP took Polars' codes by first appearance for a function of one row (issue 2944)."""
    cells = ["b"] * 30 + ["a"] * 5
    found = []
    for order in (cells, ["c", *cells[1:]], cells[::-1]):
        data = zd.open(
            CATEGORIES[kind](order), columns={"city": zd.category(["a", "b"], other=True)}
        )
        release = replayed("a run")(zd.histogram)(data, "city", epsilon=1)
        found.append(np.asarray(release.value))
    one, changed, turned = found
    assert np.array_equal(one, turned)
    assert np.abs(one - changed).max() <= 1


@pytest.mark.parametrize(
    "ask",
    [
        lambda data, **o: zd.heavy_hitters(data, "city", **o).value,
        lambda data, **o: zd.top_k(data, "city", k=3, **o).value,
        lambda data, **o: zd.histogram(data, "city", **o).value,
        lambda data, **o: zd.table(data, by="city", of={"age": "mean"}, **o).value,
    ],
)
def test_the_order_of_what_is_published_is_not_that_of_the_rows(ask: Ask) -> None:
    """Groups came out in the order in which they occurred: OpenDP 1826 and 2185."""
    cities = ["oslo", "rome", "bonn", "bern"]
    frame = pd.DataFrame({"city": [cities[i % 4] for i in range(400)], "age": 50.0})
    columns: dict[str, Any] = {"city": zd.category(cities), "age": zd.number(0, 100)}
    shown = [
        repr(replayed("a run")(ask)(zd.open(each, columns=columns), epsilon=50))
        for each in (frame, frame[::-1], frame.sort_values("city"))
    ]
    assert len(set(shown)) == 1


# -- claims ---------------------------------------------------------------------------------------


def test_a_delta_that_underflows_is_not_read_as_pure() -> None:
    """dp-accounting's get_delta underflows to 0.0, which reads as pure DP."""
    for delta in (0.0, "0", Fraction(0)):
        with pytest.raises(zd.errors.ParameterError, match="underflows"):
            zd.ApproxDP(1, delta=delta)
    with pytest.raises(zd.errors.ParameterError):
        zd.ApproxDP(1, -math.inf)


def test_gaussian_noise_at_a_tiny_delta_is_large_enough() -> None:
    """diffprivlib's analytic Gaussian returns σ = 8.24 for ε = 1, δ = 1e-100."""
    found = zd.purification.calibrate(epsilon=1, log_delta=-230.2585093, sensitivity=1).variance
    assert found is not None
    sigma = mpmath.sqrt(mpmath.mpf(float(found)))

    def delta(sigma: Any) -> Any:
        """The profile of Gaussian noise at ε = 1 (Balle and Wang, 2018)."""
        with mpmath.workdps(150):
            tail, shift = 1 / (2 * sigma), sigma
            return mpmath.ncdf(tail - shift) - mpmath.e * mpmath.ncdf(-tail - shift)

    assert delta(sigma) <= mpmath.mpf("1.0001e-100")
    assert delta(mpmath.mpf("8.24")) > mpmath.mpf("1e-20")


def test_no_class_is_found_in_the_labels() -> None:
    """diffprivlib publishes `classes_` and the class of the only row of a rare label."""
    for name in ("LogisticRegression", "NearestCentroid", "RandomForestClassifier"):
        model = getattr(zd.sklearn, name)(epsilon=1)
        with pytest.raises(zd.errors.ParameterError):
            model.fit(rows(), np.array([0, 1] * 20))


def test_no_bin_or_item_is_found_in_the_rows() -> None:
    """A histogram whose range is that of the rows shows the largest row (diffprivlib, NumPy)."""
    for ask in (zd.histogram, zd.mode):
        with pytest.raises(zd.errors.ParameterError):
            ask([1, 2, 3], epsilon=1)
