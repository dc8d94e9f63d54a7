"""What a released value may be made of, beside numbers, texts and arrays.

A class is imported when a file names it, so that reading a number needs no sampler.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any, final

_HOMES: Mapping[str, tuple[str, ...]] = {
    "data.dates": ("Date",),
    "data.kinds": ("Boolean", "Category", "Number", "Text"),
    "regression.class_means": ("ClassModel",),
    "regression.column_bounds": ("ColumnBounds",),
    "regression.encoded_columns": ("Encoding",),
    "regression.random_forest": ("Forest", "Splits"),
    "regression.features": ("LinearModel",),
    "regression.row_limits": ("RowLimits",),
    "training.tanh_network": ("TanhNetwork",),
    "training.trees": ("DecisionTree", "Split"),
    "tables.found_keys": ("FoundKeys",),
    "tasks.cdf": ("StepFunction",),
    "tasks.pca": ("PrincipalComponents",),
    "tables.group_table": ("Table",),
    "privacy.release": ("Diagnostics",),
    "exact.noise_law": ("NoiseLaw",),
}


@final
class _Classes(Mapping[str, Callable[..., Any]]):
    """The classes by their names."""

    def __init__(self) -> None:
        self._homes = {name: home for home, names in _HOMES.items() for name in names}

    def __getitem__(self, name: str) -> Callable[..., Any]:
        found: Callable[..., Any] = getattr(import_module(f"zerodelta.{self._homes[name]}"), name)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._homes)

    def __len__(self) -> int:
        return len(self._homes)


CLASSES: Mapping[str, Callable[..., Any]] = _Classes()
