"""The kernels themselves, without the guard bits that would hide a sloppy bound."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import pytest

from reference.intervals import _alternating, _atan, _atan_inverse, _atanh

FINE = 300

Kernel = Callable[[int], tuple[int, int]]


def sine(w: int) -> tuple[int, int]:
    x = 3 * (1 << w) // 4, -(-3 * (1 << w) // 4)
    return _alternating(x, x, 2, w)


KERNELS: dict[str, Kernel] = {
    "atanh(1/4)": lambda w: _atanh(1, 4, w),
    "atanh(1/7)": lambda w: _atanh(1, 7, w),
    "atanh(1/4801)": lambda w: _atanh(1, 4801, w),
    "atan(1/5)": lambda w: _atan_inverse(5, w),
    "atan(1/239)": lambda w: _atan_inverse(239, w),
    "atan(1)": lambda w: _atan(1, 1, w),
    "atan(7/3)": lambda w: _atan(7, 3, w),
    "sin(3/4)": sine,
}


@pytest.mark.parametrize("name", KERNELS)
def test_coarse_bounds_enclose_fine_ones(name: str) -> None:
    kernel = KERNELS[name]
    low, high = (Fraction(end, 1 << FINE) for end in kernel(FINE))
    assert high - low < Fraction(4 * FINE, 1 << FINE)
    for w in range(4, 80):
        coarse_low, coarse_high = (Fraction(end, 1 << w) for end in kernel(w))
        assert coarse_low <= low <= high <= coarse_high


def test_the_two_arc_tangents_agree() -> None:
    for q in (2, 5, 239):
        a, b = _atan(1, q, FINE), _atan_inverse(q, FINE)
        assert a[0] <= b[1]
        assert b[0] <= a[1]
