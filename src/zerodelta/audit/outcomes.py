"""Outcomes of a black box on two datasets, and the columns of numbers by which they are told apart.

The dataset of each call is chosen by a fair coin. If the black box is ε-DP, then by Bayes' rule,
whatever comes out, the coin is guessed with probability at most e^ε/(1 + e^ε).
"""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from zerodelta.errors import ParameterError, require
from zerodelta.exact.arrays import Floats
from zerodelta.exact.bits import BitSource
from zerodelta.privacy.release import Release
from zerodelta.value import value

Coins: TypeAlias = npt.NDArray[np.int64]

_NEGATIVE_ZERO, _ZERO, _NOT_FINITE = 5000.0, 5001.0, 6000.0
"""Lowest bits of numbers that have none; others are from -1074 to 971."""


_CERTAIN = 40
"""In so many calls both datasets occur, with all but certainty."""


@value
class Sample:
    """What came out, and the coin of each outcome: 1 for the first dataset, -1 for the other."""

    outcomes: Sequence[Any] | npt.NDArray[Any]
    coins: Coins

    def __len__(self) -> int:
        return len(self.coins)


@value
class BlackBox:
    """A mechanism and two datasets, of which a coin chooses one for each call."""

    mechanism: Callable[..., Any]
    datasets: tuple[Any, Any]
    vectorized: bool

    def draw(self, count: int, bits: BitSource) -> Sample:
        """Run the mechanism `count` times; an exception is an outcome like any other."""
        coins = bits.signs(count)
        if self.vectorized:
            return Sample(outcomes=self._in_bulk(coins), coins=coins)
        outcomes: list[Any] = []
        failure: Exception | None = None
        failures = 0
        for coin in coins.tolist():
            try:
                outcomes.append(_published(self.mechanism(self.datasets[coin < 0])))
            except Exception as error:
                failure, failures = error, failures + 1
                outcomes.append((type(error).__name__, str(error)))
        if failure is not None and failures == count >= _CERTAIN:
            raise ParameterError(
                "mechanism",
                self.mechanism,
                expected="a function that returns on at least one of the two datasets",
                remedy=f"every call raised {type(failure).__name__}: see the cause above",
            ) from failure
        return Sample(outcomes=outcomes, coins=coins)

    def _in_bulk(self, coins: Coins) -> Sequence[Any] | npt.NDArray[Any]:
        parts = []
        for data, coin in zip(self.datasets, (1, -1), strict=True):
            wanted = int(np.count_nonzero(coins == coin))
            part = np.asarray(self.mechanism(data, wanted))
            require(
                part.ndim > 0 and len(part) == wanted,
                "mechanism",
                self.mechanism,
                expected="an array of as many outcomes as its second argument says",
                remedy="return an array of that length, or leave out vectorized=True",
            )
            parts.append(part)
        if parts[0].dtype == parts[1].dtype and parts[0].shape[1:] == parts[1].shape[1:]:
            array = np.empty((len(coins), *parts[0].shape[1:]), dtype=parts[0].dtype)
            array[coins > 0], array[coins < 0] = parts
            return array
        turns = iter(parts[0]), iter(parts[1])  # unlike arrays: that itself may tell them apart
        return [next(turns[coin < 0]) for coin in coins.tolist()]


def _published(outcome: Any) -> Any:
    return outcome.value if isinstance(outcome, Release) else outcome


def joined(samples: Sequence[Sample]) -> Sample:
    """Return several samples as one."""
    coins = np.concatenate([sample.coins for sample in samples])
    arrays = [s.outcomes for s in samples if isinstance(s.outcomes, np.ndarray)]
    alike = len({(array.dtype, array.shape[1:]) for array in arrays}) == 1
    if alike and len(arrays) == len(samples):
        return Sample(outcomes=np.concatenate(arrays), coins=coins)
    listed = list(itertools.chain.from_iterable(sample.outcomes for sample in samples))
    return Sample(outcomes=listed, coins=coins)


@value
class Columns:
    """Outcomes as numbers: a row for each; of a column that is not ordered only equality counts."""

    values: Floats
    names: tuple[str, ...]
    ordered: bool

    def __getitem__(self, rows: slice) -> Columns:
        return Columns(values=self.values[rows], names=self.names, ordered=self.ordered)


def columns_of(outcomes: Sequence[Any] | npt.NDArray[Any]) -> Columns:
    """Return the columns of outcomes: their numbers and lowest bits, or a number for each text.

    The lowest bit of a float is the exponent of the largest power of 2 that divides it. Noise added
    in floating point shows there what was added to it (Mironov, 2012).

    >>> columns_of(np.array([0.5, 3.0, 0.0])).values.tolist()
    [[0.5, -1.0], [3.0, 0.0], [0.0, 5001.0]]
    """
    array = outcomes if isinstance(outcomes, np.ndarray) else _as_array(outcomes)
    if array is None or array.dtype.kind not in "biuf":
        texts = [f"{type(outcome).__name__} {outcome!r}" for outcome in outcomes]
        codes = np.array([_code(text) for text in texts], dtype=np.float64)[:, None]
        return Columns(values=codes, names=("outcome",), ordered=False)
    numbers = array.reshape(len(array), -1)
    values = numbers.astype(np.float64)
    plain = array.ndim == 1
    names = ["value"] if plain else [f"value[{i}]" for i in range(values.shape[1])]
    if numbers.dtype.kind == "f":
        values = np.hstack([values, _lowest_bits(values)])
        names += [f"lowest bit of {name}" for name in names]
    if not isinstance(outcomes, np.ndarray) and len(set(map(type, outcomes))) > 1:
        types = np.array([_code(type(outcome).__name__) for outcome in outcomes])
        values, names = np.hstack([values, types[:, None]]), [*names, "type"]
    return Columns(
        values=np.nan_to_num(values, nan=np.inf, posinf=np.inf, neginf=-np.inf),
        names=tuple(names),
        ordered=True,
    )


def _as_array(outcomes: Sequence[Any]) -> npt.NDArray[Any] | None:
    try:
        return np.array(outcomes)
    except (ValueError, TypeError, OverflowError):  # of unlike shapes
        return None


def _code(text: str) -> float:
    return float(zlib.crc32(text.encode("utf-8", "surrogatepass")))


def _lowest_bits(values: Floats) -> Floats:
    """Return for each float the exponent of its lowest bit that is set."""
    finite = np.isfinite(values)
    mantissas, exponents = np.frexp(np.where(finite, values, 0.0))
    integers = np.abs(mantissas * 2.0**53).astype(np.int64)  # exact: a mantissa has 53 bits
    lowest = np.log2(np.maximum(integers & -integers, 1).astype(np.float64))
    zeros = np.where(np.signbit(values), _NEGATIVE_ZERO, _ZERO)
    found: Floats = np.where(integers == 0, zeros, exponents - 53 + lowest)
    return np.where(finite, found, np.where(np.isnan(values), _NOT_FINITE + 1, _NOT_FINITE))
