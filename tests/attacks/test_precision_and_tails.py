"""Precision, rounding and tail attacks: what floats give away elsewhere.

Noise that is added in floats shows in the last bits what it was added to (Mironov 2012; Haney et
al. 2022), float sums move by more than their formula says (Casacuberta et al. 2022), and a float
uniform has a smallest value, so that its logarithm ends. Here integers are summed and noised, and
the value is one function of the noisy integer.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import zerodelta as zd
from attacks.before_noise import total_before_noise
from zerodelta import audit
from zerodelta.exact.bits import ReplayBits
from zerodelta.exact.noise import asymmetric_noise, rounded_k_norm, rounded_laplace
from zerodelta.testing import replayed

AWKWARD = [0.1, 1 / 3, math.pi / 4, 5e-324, 2.0**-1060, 1 - 2.0**-53, -0.0, 1e308, math.nan]
"""Cells whose last bits would show through noise."""


def mean(rows: Any, **options: Any) -> Any:
    return zd.mean(np.array(rows), bounds=(0, 1), epsilon=1, **options)


def total(rows: Any, **options: Any) -> Any:
    return zd.sum(np.array(rows), bounds=(0, 1), epsilon=1, **options)


def spread(rows: Any, **options: Any) -> Any:
    return zd.variance(np.array(rows), bounds=(0, 1), epsilon=1, **options)


@pytest.mark.parametrize("ask", [mean, total])
@pytest.mark.parametrize("cell", AWKWARD)
def test_values_lie_on_a_grid_that_no_cell_moves(ask: Callable[..., Any], cell: float) -> None:
    """On the floats nearest to whole multiples of one public unit, the same for all rows."""
    plain = ask([0.0, 0.0])
    for run in range(20):
        release = replayed(f"run {run}")(ask)([0.0, cell])
        unit = release.noise.unit
        assert unit == plain.noise.unit
        if 0 < release.value < 1 or ask is total:
            exact = round(Fraction(release.value) / unit) * unit
            assert release.value == float(exact)


@pytest.mark.parametrize("ask", [mean, total, spread])
def test_equal_noisy_integers_are_equal_floats_whatever_the_rows(ask: Callable[..., Any]) -> None:
    """The value is a function of the noisy integers: no last bit depends on how they came about."""
    seen: dict[tuple[int, ...], bytes] = {}
    again = 0
    for run in range(60):
        for cells in ([0.0, 1 / 3], [0.1, 1.0], [1 / 3, 0.0]):
            release = replayed(f"run {run}")(ask)(cells)
            key = tuple(
                number
                for sums in release.sums
                for number in np.asarray(sums.integers, dtype=object).ravel().tolist()
            )
            value = np.asarray(release.value).tobytes()
            again += key in seen
            assert seen.setdefault(key, value) == value
    assert len(seen) > 60
    assert again >= 60  # [0, 1/3] and [1/3, 0] have one sum


@pytest.mark.parametrize("ask", [mean, total])
def test_the_audit_that_refutes_float_noise_does_not_refute_ours(ask: Callable[..., Any]) -> None:
    """It looks at the lowest bits, among others; wrong with probability 1e-6 at most."""
    found = audit.lower_bound(
        lambda cell: ask([0.0, cell]), 0.0, 1.0, epsilon=1, samples=600, confidence="0.999999"
    )
    assert not found.violated
    floats = audit.lower_bound(
        lambda cell, count: cell + np.random.default_rng().laplace(size=count),
        *(0.0, 1.0),
        epsilon=1,
        samples=50_000,
        confidence="0.999999",
        vectorized=True,
    )
    assert floats.violated


# -- sums -----------------------------------------------------------------------------------------


def total_of(rows: list[float], width: float) -> Fraction:
    return total_before_noise(np.array(rows), bounds=(-width, width))[0]


@pytest.mark.parametrize(
    ("rows", "width"),
    [
        ([2.0**53] + [1.0] * 4000, 2.0**53),  # each 1 is lost in a float sum that starts large
        ([2.0**53, 1.0, -(2.0**53)] * 700, 2.0**53),
        ([2.0**499, 1.0, -(2.0**499)] * 700, 2.0**499),
        ([0.1] * 3333, 1.0),
        ([2.0**-30] * 2000 + [1.0], 1.0),
    ],
)
def test_a_replaced_row_moves_a_sum_by_its_width_at_most(rows: list[float], width: float) -> None:
    """The rounding and re-ordering attacks on float sums."""
    base = total_of(rows, width)
    for place in (0, len(rows) // 2, len(rows) - 1):
        for cell in (-width, 0.0, width, math.nan, math.inf):
            changed = [*rows[:place], cell, *rows[place + 1 :]]
            assert abs(total_of(changed, width) - base) <= 2 * Fraction(width)
    for order in (rows[::-1], sorted(rows), sorted(rows, key=abs)):
        assert total_of(order, width) == base


# -- tails ----------------------------------------------------------------------------------------

DOUBLES_END = 745
"""-ln of the smallest float: a Laplace draw by the logarithm of a float uniform ends here."""
SAMPLERS: dict[str, Callable[[Any], Any]] = {
    "laplace": lambda bits: rounded_laplace(scale=1, size=1, bits=bits)[0],
    "k-norm": lambda bits: rounded_k_norm(norm=2, dimension=1, scale=1, size=1, bits=bits)[0],
    "asymmetric": lambda bits: asymmetric_noise(
        up=Fraction(1), down=Fraction(1), size=1, bits=bits
    )[0],
}


@pytest.mark.parametrize("name", SAMPLERS)
def test_noise_has_no_largest_value(name: str) -> None:
    """The rarer the bits, the farther the draw, beyond where any float sampler ends."""
    ends = {bytes(1), b"\xff", b"\x00\xff", b"\xff\x00"}
    words = [8 * unit if len(unit) == 1 else 8 * unit[:1] + 8 * unit[1:] for unit in ends]
    farthest = max(
        abs(int(np.ravel(SAMPLERS[name](ReplayBits("t", tape=word * count)))[0]))
        for word in words
        for count in (1, 32, 512)
    )
    assert farthest > DOUBLES_END


def test_a_release_is_not_cut_where_its_noise_would_be_large() -> None:
    """A sum keeps what its noise is, beyond all that rows could have been."""
    release = replayed(ReplayBits("t", tape=bytes(4096)))(zd.sum)(
        np.array([0.0, 1.0]), bounds=(0, 1), epsilon=1
    )
    assert abs(release.value) > DOUBLES_END
