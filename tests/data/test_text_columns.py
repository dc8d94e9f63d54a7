"""A column of texts: whether a cell is there is all that numbers are made of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import zerodelta as zd
from data.opening import opened

KINDS: dict[str, Any] = {"name": zd.text(20), "x": zd.number(0, 10), "g": zd.boolean()}


def people(cell: Any = "Ann Smith", rows: int = 60) -> Any:
    table = np.zeros(rows, dtype=[("name", "U40"), ("x", float), ("g", int)])
    table["name"], table["name"][3] = "7", cell
    return zd.open(table, columns=KINDS)


@pytest.mark.parametrize("cell", ["Ann Smith", "7", "nan", "1e400", "x" * 30, ""])
def test_texts_are_counted_whatever_they_say(cell: str) -> None:
    found = np.concatenate(list(opened(people(cell)["name"]).blocks()))
    there = cell not in ("nan", "", "x" * 30)
    assert np.nansum(found) == 60 - (not there)
    release = zd.count(people(cell), "name", epsilon=20, diagnostics="1/100")
    assert 50 < release.value < 70
    assert 50 < zd.count(people(cell).where("x >= 0"), "name", epsilon=20).value < 70


@pytest.mark.parametrize(
    "ask",
    [
        lambda p, **o: zd.mean(p, "name", bounds=(0, 1), **o),
        lambda p, **o: zd.mean(p, ["name", "x"], data_norm=3, **o),
        lambda p, **o: zd.sum(p, "name", bounds=(0, 1), **o),
        lambda p, **o: zd.variance(p, "name", bounds=(0, 1), **o),
        lambda p, **o: zd.median(p, "name", bounds=(0, 1), **o),
        lambda p, **o: zd.quantiles(p, "name", q=[0.5], bounds=(0, 1), **o),
        lambda p, **o: zd.cdf(p, "name", bounds=(0, 1), **o),
        lambda p, **o: zd.trimmed_mean(p, "name", trim="1/10", bounds=(0, 1), **o),
        lambda p, **o: zd.select(p, ["name", "x"], bounds=(0, 1), **o),
        lambda p, **o: zd.queries.vote(p, lambda rows: 0, options=[0], **o),
        lambda p, **o: zd.select_model(p, {"a": 0}, score=lambda i, rows: rows[:, i], **o),
        lambda p, **o: zd.Study(p["name"], publish=zd.Finite(2), rounds=1, **o),
    ],
)
def test_nothing_else_is_made_of_texts(ask: Any) -> None:
    messages = set()
    for cell in ("7", "Ann Smith"):
        with pytest.raises(zd.errors.ParameterError, match="text") as refused:
            ask(people(cell), epsilon=1)
        messages.add(str(refused.value))
    assert len(messages) == 1


def test_a_study_has_the_other_columns() -> None:
    study = zd.Study(people(), epsilon=1, publish=zd.Finite(2), rounds=1)
    assert study.run(lambda s: int(float(s.mean("x")) > 5)).value in (0, 1)
