"""A preview stops a release before its debit: same price and proof, no row, nothing spent."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zerodelta as zd
from zerodelta.data.dataset import Dataset
from zerodelta.spine.run import preview


@pytest.fixture
def people(tmp_path: Path) -> Any:
    table = np.zeros(200, dtype=[("age", np.float64), ("member", np.float64)])
    kinds = {"age": zd.number(0, 120, missing=None), "member": zd.number(0, 1, missing=None)}
    return zd.open(table, columns=kinds, name="p", ledger=tmp_path / "l", budget=1)


def test_a_preview_has_the_certificate_of_the_run(people: Any) -> None:
    found = preview(lambda: zd.mean(people, "age", epsilon="1/4"))
    release = zd.mean(people, "age", epsilon="1/4")
    assert found.certificate == release.certificate
    assert found.price == Fraction(1, 4)
    assert found.error == release.error


def test_a_preview_reads_no_row_and_spends_nothing(
    people: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def opened(*given: Any, **options: Any) -> Any:
        raise AssertionError("a row was read")

    monkeypatch.setattr(Dataset, "open", opened)
    preview(lambda: zd.select_features(people, target="member", size=1, epsilon=1))
    assert zd.Ledger(tmp_path / "l", data="p").spent == 0
    with pytest.raises(AssertionError, match="a row was read"):
        zd.mean(people, "age", epsilon="1/4")  # what was patched is what reads


def test_a_budget_that_does_not_cover_it_is_no_matter_for_a_preview(people: Any) -> None:
    assert preview(lambda: zd.mean(people, "age", epsilon=7)).price == 7


def test_a_preview_ends_with_its_call(people: Any) -> None:
    preview(lambda: zd.mean(people, "age", epsilon="1/4"))
    assert zd.mean(people, "age", epsilon="1/4").value == pytest.approx(0, abs=120)


def test_malformed_calls_raise_what_they_always_raise(people: Any) -> None:
    with pytest.raises(zd.errors.ParameterError, match="epsilon"):
        preview(lambda: zd.mean(people, "age", epsilon=0))
    with pytest.raises(zd.errors.ParameterError, match="makes a release"):
        preview(lambda: 3)
