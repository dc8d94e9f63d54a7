"""Whatever is passed for a parameter of a public function: it works, or an error of ours says why.

No other exception leaves, no warning, and no message shows a cell of the rows.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import zerodelta as zd
from attacks.junk import JUNK, ODD
from attacks.public_calls import CALLS, RECORD, SECRETS, function
from public import CALLABLE
from zerodelta.errors import ZeroDeltaError

NOT_CALLED = {
    "Certificate",  # made by plans; its text is fuzzed in test_fuzz_parsers.py
    "Neighbors",  # an enumeration
    "Plan",  # made by zd.plan
    "Release",  # a record of what was released
    "read_schema",  # a path; its text is fuzzed in test_fuzz_parsers.py
}
SLOW_TO_PLAN = {"kmeans", "advise", "select_model", "sklearn.KMeans", "sklearn.MLPClassifier"}
"""A call of these takes a second: they have fewer examples."""


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ledgers are made where a junk path says."""
    monkeypatch.chdir(tmp_path)
    zd.mean(np.arange(9.0), bounds=(0, 9), epsilon=1).save(RECORD)


def test_every_public_name_is_fuzzed() -> None:
    table = "in tests/attacks/public_calls.py"
    offered = CALLABLE.keys() - NOT_CALLED
    for name in sorted(offered):
        assert name in CALLS, f"add {name!r} to CALLS {table}: a call of it that works"
    for name in zd.sklearn.__all__:
        assert f"sklearn.{name}" in CALLS, f"add {name} to tests/estimators/instances.py"
    gone = {name for name in CALLS if "." not in name} - offered
    assert not gone, f"not public: take {sorted(gone)} out of CALLS {table}"


@pytest.mark.parametrize("name", CALLS)
def test_the_calls_work_as_they_are(name: str) -> None:
    positional, named = CALLS[name]
    assert function(name)(*positional, **named) is not None


def parameters(name: str) -> list[str]:
    """The parameters that a caller sets."""
    signature = inspect.signature(function(name))
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [each.name for each in signature.parameters.values() if each.kind not in kinds]


def try_out(name: str, changes: dict[str, Any]) -> None:
    """Call with other values; whatever raises is ours, and neither it nor its causes tell cells."""
    positional, named = list(CALLS[name][0]), dict(CALLS[name][1])
    places = parameters(name)
    for parameter, value in changes.items():
        if places.index(parameter) < len(positional):
            positional[places.index(parameter)] = value
        else:
            named[parameter] = value
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            function(name)(*positional, **named)
        except ImportError as missing:  # an extra that is not installed, on public grounds
            if "pip install 'zerodelta[" not in str(missing):
                raise
        except ZeroDeltaError as error:
            told: BaseException | None = error
            while told is not None:
                assert not any(secret in f"{told} {told.args}" for secret in SECRETS)
                told = told.__cause__ or (None if told.__suppress_context__ else told.__context__)


def is_costly(parameter: str, value: Any) -> bool:
    """Whether a value makes sense and takes minutes: so many rounds, trees, blocks were asked."""
    costs = ("blocks", "hidden_units", "iterations", "n_estimators", "radius", "rounds")
    return parameter in costs and type(value) in (int, float, Fraction) and value > 1000


def cases() -> Iterator[tuple[str, str]]:
    for name in CALLS:
        yield from ((name, parameter) for parameter in parameters(name))


@pytest.mark.parametrize(("name", "parameter"), list(cases()))
def test_some_junk_in_every_parameter(name: str, parameter: str) -> None:
    """Every parameter meets a part of the list, another part each, in the normal run."""
    start = sum(map(ord, name + parameter))
    stride = 53 if name in SLOW_TO_PLAN else 13
    for value in ODD[start % stride :: stride]:
        if not is_costly(parameter, value):
            try_out(name, {parameter: value})


@pytest.mark.slow
@pytest.mark.parametrize(("name", "parameter"), list(cases()))
def test_all_junk_in_every_parameter(name: str, parameter: str) -> None:
    for value in ODD:
        if not is_costly(parameter, value):
            try_out(name, {parameter: value})


@pytest.mark.slow
@settings(max_examples=5000, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_junk_in_several_parameters_at_once(draw: st.DataObject) -> None:
    name = draw.draw(st.sampled_from(sorted(set(CALLS) - SLOW_TO_PLAN)))
    chosen = draw.draw(st.lists(st.sampled_from(parameters(name)), min_size=1, max_size=3))
    changes = {parameter: draw.draw(JUNK) for parameter in chosen}
    if not any(is_costly(parameter, value) for parameter, value in changes.items()):
        try_out(name, changes)
