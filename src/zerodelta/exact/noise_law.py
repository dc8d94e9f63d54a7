"""The law of the noise on released numbers, kept with them: intervals follow from it later."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from fractions import Fraction
from typing import Any, Literal, final

from zerodelta.exact.exact_sums import IntegerArray
from zerodelta.value import value

Statistic = Literal[
    "integers", "form", "count", "sum", "mean", "variance", "std", "covariance", "correlation"
]


@value
class NoiseLaw:
    """The value is (integers + noise) times `unit`, before it is clipped to where it can be.

    Noise is round(z), but for "geometric", which is on integers to begin with.

    `family`: "k-norm" (density of z ∝ exp(-‖z‖/scale) in l1, l2 or l∞ `norm`, over `dimension`
    coordinates together), "counts" (density ∝ exp(-max(Σz⁺, Σz⁻)/scale), over `dimension` counts),
    or "laplace" and "geometric" (P(z) ∝ e^(-|z|/scale), the discrete Laplace law), where
    coordinates are independent.
    `scale` is in integers. `unit` is one integer in the value's own units, for all coordinates or
    for each.
    """

    family: Literal["k-norm", "counts", "laplace", "geometric"]
    scale: Fraction
    unit: Fraction | tuple[Fraction, ...]
    dimension: int = 1
    norm: float = 1.0


@value(eq=False)
class NoisySums:
    """Released integers of which a value was made, before it was clipped to where it can be.

    `integers` has one line for each group; `law` is that of the noise on them ("counts": on all
    lines together, "k-norm": on each line, or with ``joint=True`` on all together, "laplace" and
    "geometric": on each integer). `forms` has for the number of rows (None) one linear form of a
    line, and for each column those of Σ y^0, Σ y and Σ y² over its values, as far as these are
    known; the last coefficient is a constant. y is a value scaled so that its bounds, in `bounds`,
    are -1 and 1. Of a pair of columns y and z it has Σ 1, Σ y, Σ z, Σ yz and, for a correlation,
    Σ y² and Σ z²; the bounds are those of a covariance.
    """

    law: NoiseLaw
    integers: IntegerArray
    forms: Mapping[str | None, tuple[tuple[Fraction, ...], ...]]
    bounds: Mapping[str, tuple[Any, Any]]
    """One pair for all lines, or of two lists with a number for each line."""
    joint: bool = False
    statistics: Mapping[str, tuple[str | None, Statistic]] = field(default_factory=dict)
    """For each number of a line that was released, by its name: of which column, and which it is;
    "integers" are the integers themselves, times the unit of the law, and "form" is the first form
    of the column, between its bounds."""
    labels: Sequence[Any] | None = None
    """What the lines are called, where the value has no names itself."""
    resolution: Fraction = Fraction(0)
    """How far a quantized y may be from the clipped one."""
    rows: int | None = None
    """The public number of rows, where there is one: no count is larger."""
    rest: int | None = None
    """The place of a line that is not there: its integer is what the others leave of `rows`."""


@final
class LazyForms(Mapping[str | None, tuple[tuple[Fraction, ...], ...]]):
    """Forms of many columns, each made when somebody asks: all of them are as many as the square.

    >>> forms = LazyForms(("a", "b"), lambda place: ((Fraction(place),),))
    >>> list(forms), forms["b"]
    (['a', 'b'], ((Fraction(1, 1),),))
    """

    __slots__ = ("_make", "_places")

    def __init__(
        self, names: Sequence[str], make: Callable[[int], tuple[tuple[Fraction, ...], ...]]
    ) -> None:
        self._places, self._make = {name: place for place, name in enumerate(names)}, make

    def __getitem__(self, name: str | None) -> tuple[tuple[Fraction, ...], ...]:
        return self._make(self._places[name])  # type: ignore[index]

    def __iter__(self) -> Iterator[str | None]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)
