"""Planted faults: a mechanism that is new, draws too little or another law is found by the net."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zerodelta as zd
from completeness import walk
from completeness.drawn import HELD, NO_NOISE, Adds, Chooses, mistakes
from completeness.test_everything_has_its_exact_test import (
    check,
    drawing_classes,
    unlisted,
    what_is_wrong_with,
)
from golden.golden import CASES
from zerodelta.exact.argmax import exponential_argmax
from zerodelta.exact.bits import BitSource
from zerodelta.exact.noise import discrete_laplace, rounded_laplace
from zerodelta.mechanisms.partition_noise import PartitionNoise
from zerodelta.mechanisms.sum_noise import KNorm, add_exactly
from zerodelta.privacy.steps import Step
from zerodelta.spaces import Finite, FiniteSpace

F = Fraction
Drawing = Callable[[Any, BitSource], Any]


@dataclass(frozen=True)
class Planted:
    """What says it adds noise of a theorem, and adds what it is told."""

    theorem: str
    numbers: Any
    drawn: Drawing

    def step(self) -> Step:
        return Step(theorem=self.theorem, numbers=self.numbers)

    def apply(self, sums: Any, bits: BitSource) -> Any:
        return add_exactly(sums, self.drawn(len(sums), bits))


LAPLACE: dict[str, Any] = {"sensitivity": 2, "scale": F(7, 3)}
CELLS: dict[str, Any] = {"cells": 3, "row_total": 1, "unit_rows": 1, "scale": F(7, 3)}


def laplace(size: int, bits: BitSource, part: int | Fraction = 1) -> Any:
    return rounded_laplace(scale=F(7, 3) * part, size=size, bits=bits)


def geometric(size: int, bits: BitSource) -> Any:
    return discrete_laplace(scale=F(7, 3), size=size, bits=bits)


FAULTS: dict[str, tuple[str, dict[str, Any], Drawing, str]] = {
    "half the scale": (
        "rounded-laplace",
        LAPLACE,
        lambda size, bits: laplace(size, bits, F(1, 2)),
        r"scale=7/6.* no theorem",
    ),
    "a hundredth less": (
        "rounded-laplace",
        LAPLACE,
        lambda size, bits: laplace(size, bits, F(99, 100)),
        "no theorem",
    ),
    "half of what was drawn": (
        "rounded-laplace",
        LAPLACE,
        lambda size, bits: laplace(size, bits) // 2,
        "published",
    ),
    "one noise for all": (
        "rounded-laplace",
        LAPLACE,
        lambda size, bits: np.repeat(laplace(1, bits), size),
        "other numbers of noises",
    ),
    "no noise on the first": (
        "rounded-laplace",
        LAPLACE,
        lambda size, bits: np.append([0], laplace(size, bits)[1:]),
        "published",
    ),
    "the same noise twice": (
        "rounded-laplace",
        LAPLACE,
        lambda size, bits: laplace(size, bits) - laplace(size, bits),
        "published",
    ),
    "rounded Laplace for the two-sided geometric law": (
        "partition-laplace",
        CELLS,
        laplace,
        r"(?s)rounded_laplace.* no theorem.*discrete_laplace.*not drawn",
    ),
    "the two-sided geometric law for rounded Laplace": (
        "rounded-laplace",
        LAPLACE,
        geometric,
        r"(?s)discrete_laplace.* no theorem.*rounded_laplace.*not drawn",
    ),
    "bits that are read beside all samplers": (
        "rounded-laplace",
        LAPLACE,
        lambda size, bits: bits.signs(size),
        "beside the samplers",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_mechanism_that_draws_another_law_is_found(fault: str) -> None:
    theorem, numbers, drawn, match = FAULTS[fault]
    planted = Adds(Planted(theorem, numbers, drawn))
    assert re.search(match, _told(planted))


def _told(planted: Adds) -> str:
    try:
        return "\n".join(mistakes(planted))
    except AssertionError as error:
        return str(error)


@pytest.mark.parametrize(
    ("theorem", "numbers", "drawn"),
    [("rounded-laplace", LAPLACE, laplace), ("partition-laplace", CELLS, geometric)],
)
def test_the_same_mechanism_without_its_fault_is_not(
    theorem: str, numbers: dict[str, Any], drawn: Drawing
) -> None:
    assert mistakes(Adds(Planted(theorem, numbers, drawn))) == []


class Flips:
    """Says it is the exponential mechanism, and flips coins instead."""

    def step(self) -> Step:
        numbers = {"sensitivity": 1, "scale": 2, "monotone": False}
        return Step(theorem="exponential-mechanism", numbers=numbers)

    def select(self, scores: Any, bits: BitSource) -> int:
        return int(exponential_argmax(scores, scale=F(2), size=1, bits=bits)[0])


def test_a_choice_by_another_noise_is_found() -> None:
    assert "exponential_argmax" in "\n".join(mistakes(Chooses(Flips())))


# -- a class that nobody listed --------------------------------------------------------------------

NEW = """
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from zerodelta.exact.bits import BitSource
from zerodelta.exact.noise import rounded_laplace as noise
from zerodelta.mechanisms.sum_noise import add_exactly
from zerodelta.privacy.steps import Step
from zerodelta.spaces import Finite


@dataclass(frozen=True)
class Careless:
    scale: Fraction

    def step(self) -> Step:
        return Step(theorem="rounded-laplace", numbers={"sensitivity": 1, "scale": self.scale})

    def apply(self, sums, bits: BitSource):
        return add_exactly(sums, noise(scale=self.scale / 2, size=len(sums), bits=bits))


class Foreign:
    def step(self) -> Step:
        return Step(theorem="rounded-laplace", numbers={"sensitivity": 1, "scale": 1})

    def apply(self, sums):
        return sums + np.random.default_rng().integers(-9, 9, len(sums))


class Nameless(Finite.__base__):
    size = index = element = project = contains = denotes = describe = None


def signed(bits: BitSource):
    return bits.signs(1)
"""


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A new file in the folder of mechanisms."""
    folder = importlib.import_module(KNorm.__module__.rpartition(".")[0])
    (tmp_path / "careless.py").write_text(NEW, encoding="utf-8")
    monkeypatch.setattr(folder, "__path__", [*folder.__path__, str(tmp_path)])
    name = f"{folder.__name__}.careless"
    yield importlib.import_module(name)
    sys.modules.pop(name)
    delattr(folder, "careless")


def test_a_new_mechanism_is_found_missing(planted: Any) -> None:
    lines = "\n".join(unlisted())
    for name in ("Careless", "Foreign", "signed"):
        assert f"careless.{name} is in no exact test: add it to HELD in tests/completeness" in lines
    assert {planted.Careless, planted.Foreign} <= set(walk.mechanisms())
    with drawing_classes() as seen:
        CASES["mean"](zd.mean)
    assert KNorm in seen
    assert not {planted.Careless, planted.Foreign} & seen


def test_what_a_new_mechanism_draws_is_found_wrong(planted: Any) -> None:
    found = mistakes(Adds(planted.Careless(F(7, 3))))
    assert any("scale=7/6" in line for line in found)


def test_a_new_space_is_found_missing(planted: Any) -> None:
    assert planted.Nameless in walk.subclasses(FiniteSpace)
    told = r"careless.Nameless .* add it to SPACES in some_file"
    with pytest.raises(AssertionError, match=told):
        check(FiniteSpace, [Finite(2)], file="some_file", name="SPACES")


def test_nothing_is_left_of_what_was_planted() -> None:
    assert unlisted() == []
    listed = (*HELD, *NO_NOISE, *walk.classes())
    assert all("careless" not in walk.name_of(each) for each in listed)


# -- releases -------------------------------------------------------------------------------------


def test_a_release_by_another_sampler_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    module = sys.modules[PartitionNoise.__module__]
    assert what_is_wrong_with("histogram, method=laplace") == []
    monkeypatch.setattr(module, "discrete_laplace", rounded_laplace)
    found = "\n".join(what_is_wrong_with("histogram, method=laplace"))
    assert "rounded_laplace" in found
    assert "discrete_laplace" in found


def test_a_release_with_half_the_noise_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = KNorm.apply

    def half(self: KNorm, sums: Any, bits: BitSource) -> Any:
        less = KNorm(
            norm=self.norm, dimension=self.dimension, sensitivity=F(1), scale=self.scale / 2
        )
        return drawn(less, sums, bits)

    monkeypatch.setattr(KNorm, "apply", half)
    found = "\n".join(what_is_wrong_with("mean"))
    assert "no theorem" in found
    assert "not drawn" in found


def test_a_certificate_for_more_noise_than_was_drawn_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stated = KNorm.step

    def louder(self: KNorm, **options: Any) -> Step:
        return stated(
            KNorm(
                norm=self.norm,
                dimension=self.dimension,
                sensitivity=2 * self.sensitivity,
                scale=2 * self.scale,
            ),
            **options,
        )

    monkeypatch.setattr(KNorm, "step", louder)
    assert what_is_wrong_with("mean")
