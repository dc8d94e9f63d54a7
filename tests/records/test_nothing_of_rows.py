"""No number computed from rows stands in a record (those of neighbors are the same: replay)."""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import zerodelta as zd
from public import VERBS
from zerodelta.privacy.release_file import content_of
from zerodelta.spine.verbs import ROWS

PUBLIC = frozenset(
    {"again", "at", "bins", "blocks", "block", "bound_share", "bounds", "bounds_y", "by"}
    | {"candidates", "cells", "change", "channel", "choose", "claim", "classes", "clusters"}
    | {"columns", "components", "data_norm", "diagnostics", "domain", "epsilon", "expected_gap"}
    | {"false_keys", "features", "fit", "functions", "goal", "grid", "k", "label", "least_rows"}
    | {"ledger", "local", "margin", "max_depth", "method", "missing", "mixing_probability"}
    | {"monotone", "n_clusters", "n_components", "n_estimators", "norm", "of", "options"}
    | {"otherwise", "prior", "profile", "proposed_bound", "publish", "q", "query", "radius"}
    | {"random_state", "resolution", "rounds", "rowwise", "score", "scoring", "selects"}
    | {"sensitivity", "size", "space", "spread", "stability", "target", "target_bounds"}
    | {"test_share", "thresholds", "train", "trim", "universe", "unknown", "weights", "workload"}
    | {"hidden_units", "fit_intercept"}
)
"""Parameters that are public by definition; a record has them."""


def test_every_parameter_is_public_or_rows() -> None:
    """Whoever adds a parameter decides which it is: rows must not come into a record."""
    asking = [verb for verb in VERBS.values() if "ledger" in inspect.signature(verb).parameters]
    asking += [zd.Study, *(getattr(zd.sklearn, name) for name in zd.sklearn.__all__)]
    for verb in asking:
        if verb is zd.open or "epsilon" not in inspect.signature(verb).parameters:
            continue
        unknown = set(inspect.signature(verb).parameters) - PUBLIC - ROWS
        assert not unknown, f"{verb.__name__}: is {unknown} public, or are these rows?"
    assert not PUBLIC & ROWS


PAPER = frozenset(
    {"ball", "base_epsilon", "base_steps", "batch", "box", "clip", "composition", "delta"}
    | {"dimension", "failure", "iterations", "lipschitz", "log_delta", "loss", "measurements"}
    | {"mixing_weight", "neighbors", "path", "regularization", "rho", "ridge_factor"}
    | {"sample_size", "sketch", "smallest_bound", "smoothness", "steps", "target_bound"}
)
"""Those of the paper's algorithms alone."""


def test_every_parameter_of_the_paper_is_public_or_rows() -> None:
    """The same; features, labels and an array of targets are rows here, which the verb says."""
    seen: list[Any] = []
    for name in dir(zd.paper):
        verb = getattr(zd.paper, name)
        if "ledger" not in getattr(getattr(verb, "__signature__", None), "parameters", {}):
            continue
        own = set(inspect.signature(verb).parameters)
        rows = {"features", "labels", "target"} & own
        unknown = own - PUBLIC - PAPER - ROWS - rows
        assert not unknown, f"{name}: is {unknown} public, or are these rows?"
        names = verb.__code__.co_freevars
        held = {n: c.cell_contents for n, c in zip(names, verb.__closure__, strict=True)}
        assert set(held["rows"]) == rows, name
        seen.append(name)
    assert len(seen) >= 25
    assert not PAPER & ROWS


@pytest.mark.parametrize("given", [np.asarray, list, lambda rows: pa.table({"x": rows})])
def test_of_an_array_nothing_is_written(given: Any) -> None:
    odd = 123456.789
    rows = given(np.array([odd, 1.0, 2.0]))
    release = zd.mean(rows, "x" if isinstance(rows, pa.Table) else None, bounds=(0, 9), epsilon=1)
    assert release.record is not None
    assert release.record.data == []
    assert "123456" not in json.dumps(release.record.to_json())
    assert release.record.parameters["bounds"] == [0, 9]


def test_scores_values_and_examples_are_rows() -> None:
    chosen = zd.select({"a": 17171.5, "b": 2.0}, sensitivity=1, epsilon=1)
    top = zd.top_k(scores={"a": 17171.5, "b": 2.0}, k=1, sensitivity=1, epsilon=1)
    pure = zd.purify("17171.5", space=zd.Finite(7), claim=zd.GaussianDP("1/10"), epsilon=1)
    voted = zd.queries.vote(
        np.ones((100, 1)), lambda _: 0, options=[0, 1], epsilon=1, example=np.array([[17171.5]])
    )
    for release in (chosen, top, pure, voted):
        assert release.record is not None
        assert "17171" not in json.dumps(release.record.to_json())
    assert voted.record is not None
    assert voted.record.parameters["choose"] == {"not written": "function"}


def test_the_time_is_that_of_the_ticket(tmp_path: Path) -> None:
    ledger = zd.Ledger(tmp_path / "b.db", budget=5)
    release = zd.mean([1.0], bounds=(0, 1), epsilon=1, ledger=ledger)
    assert release.record is not None
    (entry,) = release.record.entries
    assert release.record.time == entry["time"] == ledger.history[-1]["time"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", release.record.time)
    text = json.dumps(content_of(release))
    assert set(re.findall(r"\d{4}-\d\d-\d\dT[\d:]+Z", text)) == {release.record.time}
    assert str(tmp_path) not in text
