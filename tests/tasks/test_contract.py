"""What holds for every verb: refusals of public mistakes, and releases of whatever is in a cell.

The calls are the golden releases and those that are fuzzed: a new verb is here by itself. Nothing
is paid for, no row is read and no bit drawn before a mistake is refused. For estimators see
tests/estimators/test_estimators.py.
"""

from __future__ import annotations

import inspect
import math
import pickle
import re
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import zerodelta as zd
from attacks.public_calls import CALLS
from attacks.unreadable import Empty
from data.odd_cells import ODD, Interrupting
from golden import verbs
from golden.golden import asked, call_of
from tasks.spying import NoBits
from zerodelta.errors import BudgetError, ParameterError, did_you_mean
from zerodelta.models import NetworkModel
from zerodelta.spaces import Finite
from zerodelta.tasks.features import select_features
from zerodelta.testing import replayed

PAID = {"epsilon", "ledger"}
CASES = [
    name for name in verbs.CASES if inspect.signature(asked(name)[0]).parameters.keys() >= PAID
]
"""A golden release of each verb, and of each method."""
ARRAYS = list(dict.fromkeys(case.partition(", ")[0] for case in CASES if CALLS.get(case)))
"""Verbs by the fuzzed call of each, on an array or a list."""
NAN, INF = math.nan, math.inf
FRAME = pl.DataFrame({"a": [1.0, 2.0]})


def mistaken(verb: Callable[..., Any], given: Sequence[Any], options: dict[str, Any]) -> str:
    """Return why a call is refused: before it is paid for, and before a bit is drawn."""
    with pytest.raises(ParameterError) as refused:
        replayed(NoBits())(verb)(*given, **{"ledger": Empty(), **options})
    return str(refused.value)


def changed(case: str, **changes: Any) -> str:
    """Return why a golden call is refused with other options."""
    verb, method = asked(case)
    given, options = call_of(case)
    names = list(inspect.signature(verb).parameters)
    arguments = [changes.pop(name, each) for name, each in zip(names, given, strict=False)]
    return mistaken(verb, arguments, {**options, **method, **changes})


def taking(parameter: str) -> pytest.MarkDecorator:
    """The cases of verbs that have a parameter."""
    having = [case for case in CASES if parameter in inspect.signature(asked(case)[0]).parameters]
    return pytest.mark.parametrize("case", having)


@taking("epsilon")
def test_epsilon_is_a_positive_number(case: str) -> None:
    for wrong in (0, -1, NAN, INF, "no", True, None, [1], object(), np.ones(2)):
        assert changed(case, epsilon=wrong).startswith("epsilon")


@taking("ledger")
def test_a_ledger_is_one_and_has_enough(case: str, tmp_path: Path) -> None:
    for wrong in (3, "ledger.db", object()):
        assert changed(case, ledger=wrong).startswith("ledger")
    if case == "count, public":  # costs nothing
        return
    unit = "who" if ", unit" in case else None
    ledger = zd.Ledger(tmp_path / "ledger.db", budget="1/1000000", unit=unit)
    verb, method = asked(case)
    given, options = call_of(case)
    with pytest.raises(BudgetError):
        replayed(NoBits())(verb)(*given, **options, **method, ledger=ledger)
    assert ledger.spent == 0


@taking("diagnostics")
def test_diagnostics_are_a_part_of_epsilon(case: str) -> None:
    for wrong in (0, 1, -1, NAN, "no", True):
        assert changed(case, diagnostics=wrong).startswith("diagnostics")


@taking("method")
def test_a_method_is_one_of_those_that_there_are(case: str) -> None:
    if "method=" not in case:
        for wrong in ("best", "Auto", None, 3, ["lloyd"], {"a": 1}, np.zeros(2), FRAME):
            assert changed(case, method=wrong).startswith("method")


@pytest.mark.parametrize("case", [case for case in CASES if "bounds" in call_of(case)[1]])
def test_bounds_are_a_pair_of_numbers_that_rises(case: str) -> None:
    for wrong in (None, 3, "ab", (0, 1, 2), (1, 0), (0, 0), (0, NAN), (0, INF)):
        assert any(word in changed(case, bounds=wrong) for word in ("bounds", "lower", "upper"))
    for wide in WIDE:
        assert re.search(r"\b(bound|lower|upper).*2\^", changed(case, bounds=wide), re.DOTALL)


WIDE: list[Any] = [(-1.7e308, 1.7e308), (0, 10**400), (-(10**400), 0), (0, "1e309")]
"""Beyond what floats can work with."""


def columns_of(case: str) -> list[int]:
    """Return the places of arguments that name columns."""
    given, _ = call_of(case)
    return [
        place for place, argument in enumerate(given) if place and isinstance(argument, (str, list))
    ]


@pytest.mark.parametrize("case", [case for case in CASES if columns_of(case)])
def test_columns_are_names_of_columns(case: str) -> None:
    verb, method = asked(case)
    given, options = call_of(case)
    for place, wrong in ((place, wrong) for place in columns_of(case) for wrong in UNKNOWN):
        arguments = [wrong if here == place else each for here, each in enumerate(given)]
        told = mistaken(verb, arguments, {**options, **method})
        assert told.startswith(("columns", "of"))


UNKNOWN: list[Any] = ["no such column", ["no such column"], 3.5, 3, True, object, [], {"0": 1}]
UNKNOWN += [b"0", [[1]], [np.zeros(2)]]


@pytest.mark.parametrize("parameter", ["by", "target", "label"])
def test_columns_by_keyword_are_names_of_columns(parameter: str) -> None:
    cases = [case for case in CASES if isinstance(call_of(case)[1].get(parameter), str)]
    assert cases
    for case in cases:
        assert "no such column" in changed(case, **{parameter: "no such column"})


# -- rows -----------------------------------------------------------------------------------------

MAY_BE_EMPTY = {"histogram", "mode"}
"""Verbs that count items of a universe: of none there are 0 of each."""
NO_ROWS = {"select"}
"""Verbs whose first argument was computed from rows."""
OF_ROWS = [verb for verb in ARRAYS if verb != "table"]  # takes what `zd.open` returns


@pytest.mark.parametrize("verb", OF_ROWS)
def test_rows_are_a_list_an_array_or_a_frame(verb: str) -> None:
    (_, *others), options = CALLS[verb]
    for wrong in (3, "abc", b"abc", None, object(), {1, 2}, np.array(3.0)):
        mistaken(asked(verb)[0], [wrong, *others], options)


@pytest.mark.parametrize("verb", OF_ROWS)
def test_there_is_a_row_at_least(verb: str) -> None:
    (rows, *others), options = CALLS[verb]
    given = [np.asarray(rows)[:0], *others]
    if verb in MAY_BE_EMPTY:
        assert asked(verb)[0](*given, **options).certificate
    else:
        told = mistaken(asked(verb)[0], given, options)
        assert "at least one row" in told or verb in NO_ROWS


CELLS = [*ODD.values(), Interrupting(), b"x", 1j, object, 5e-324, 1e308]
TABLES = [CELLS, CELLS[::-1], [NAN], [INF], ["x"], [None]]
WITHIN: dict[str, Callable[[Any], bool]] = {
    **dict.fromkeys(
        ("mean", "median", "quantile", "trimmed_mean", "std"),
        lambda value: bool(np.all((np.asarray(value) >= 0) & (np.asarray(value) <= 100))),
    ),
    "quantiles": lambda value: bool(np.all(np.diff([0, *value, 100]) >= 0)),
    "cdf": lambda value: bool(np.all(np.diff([0, *value, 1]) >= 0)),
    "answer_queries": lambda value: all(
        cells.min() >= 0 and math.isclose(cells.sum(), 1) for cells in value.values()
    ),
    "kmeans": lambda value: bool(np.all((value >= 0) & (value <= 100))),
    "mode": lambda value: value in ("a", "b", "c"),
    "select": lambda value: value in range(3),
    "select_features": lambda value: set(value) <= {0, 1},
    "select_model": lambda value: value in ("a", "b"),
    "vote": lambda value: value in (0, 1),
}
"""What can be published on public grounds: the bounds are 0 and 100."""


def methods_of(verb: str) -> list[str]:
    """Return the methods that the fuzzed call of a verb can be asked with."""
    known = {case.partition(", method=")[2] for case in CASES if case.partition(", ")[0] == verb}
    parameters = inspect.signature(asked(verb)[0]).parameters
    return sorted(known - {""}) if "method" in parameters else []


def offered(verb: str) -> list[dict[str, Any]]:
    """Return the options of a fuzzed call: without a method, and with each that it can take."""
    given, options = CALLS[verb]
    found = [options]
    for method in methods_of(verb):
        try:
            asked(verb)[0](*given, **options, method=method)
        except ParameterError:
            continue
        found.append({**options, "method": method})
    return found


@pytest.mark.parametrize("verb", OF_ROWS)
def test_whatever_is_in_a_cell_is_released_and_told_by_nothing_but_the_value(verb: str) -> None:
    (rows, *others), _ = CALLS[verb]
    shape = np.shape(rows)
    called = asked(verb)[0]
    for options in offered(verb):
        plain = called(rows, *others, **options)
        for cells in TABLES:
            table = np.empty(math.prod(shape), dtype=object)
            for place in range(table.size):
                table[place] = cells[place % len(cells)]
            table = table.reshape(shape)
            for spoiled in (table, table.tolist()):
                with warnings.catch_warnings():
                    warnings.simplefilter("error")
                    found = called(spoiled, *others, **options)
                assert found.certificate.body() == plain.certificate.body()
                assert str(found.error) == str(plain.error)
                assert WITHIN.get(verb, lambda _: True)(found.value)


# -- mistakes that one verb only knows ------------------------------------------------------------


OTHER_COLUMNS = NetworkModel(features=(0, 9), lower=(0, 0), upper=(1, 1))
WRONG_THRESHOLDS: list[Any] = [None, {}, {"age": []}, {"member": [1]}, {"age": list(range(100))}]


def _fails(*_: Any) -> Any:
    return 1 / 0


CODES: list[tuple[dict[str, Any], str]] = [
    *(
        ({"columns": wrong}, ".*category, a boolean or a date")
        for wrong in ("age", ["city", "member"], None)
    ),
    *((wrong, ".*were declared") for wrong in ({"universe": ["oslo"]}, {"unknown": "rome"})),
]
DIVIDING: list[tuple[dict[str, Any], str]] = [
    ({"method": wrong}, ".*private") for wrong in ("k-norm", "mwem")
]
"""Methods that divide by the number of rows."""

MISTAKES: dict[str, list[tuple[dict[str, Any], str]]] = {
    "mean": [({"data_norm": 1}, "bounds, data_norm"), ({"norm": 3}, "norm")],
    "mean, data norm": [
        ({"data_norm": None}, "bounds, data_norm"),
        *(({"data_norm": wrong}, "data_norm") for wrong in (0, np.zeros(2), FRAME)),
        *(({"norm": wrong}, "norm") for wrong in (True, 3, 0, "2")),
    ],
    "median": [
        ({"grid": wrong}, "grid")
        for wrong in ("5", b"15", {1, 2}, {1: 2}, (i for i in (1, 2)), [], [2, 1], 1, 2.5, 2**41)
    ],
    "quantile": [({"q": 2}, "q"), ({"q": NAN}, "q")],
    "quantiles": [
        *(({"q": wrong}, "q") for wrong in ([], 0.5, "0.5", [0.5, 1.5], [0.5, None])),
        ({"margin": -1}, "margin"),
        ({"grid": 1}, "grid"),
    ],
    "cdf": [
        *(({"at": wrong}, "at") for wrong in ([], [2, 1], 1.0)),
        ({"method": "quantiles"}, "method"),
    ],
    "trimmed_mean": [
        ({"trim": "1/2"}, "trim"),
        ({"trim": -1}, "trim"),
        ({"spread": 0}, "spread"),
    ],
    "trimmed_mean, method=propose-test-release": [({"spread": None}, "spread")],
    "histogram, items": [
        ({"universe": None}, "universe"),
        ({"bins": [0, 1]}, "universe, unknown"),
        ({"universe": None, "bins": [1, 0]}, "bins"),
        ({"universe": None, "bins": 4}, "bounds.*bins as a list of edges"),
        ({"universe": 0}, "size"),
        ({"universe": 2**27}, "universe"),
        ({"unknown": 77}, "unknown"),
    ],
    "mode": [
        ({"items": np.zeros((3, 2))}, "dimensions of items"),
        ({"universe": None}, "universe"),
        ({"universe": 2**60}, "universe"),
        ({"unknown": 77}, "unknown"),
    ],
    "select": [
        ({"sensitivity": None}, "sensitivity, bounds"),
        ({"bounds": (0, 1)}, "sensitivity, bounds"),
        ({"sensitivity": 0}, "sensitivity"),
        ({"monotone": "yes"}, "monotone"),
        ({"monotone": 1}, "monotone"),
    ],
    "select, columns": [({"monotone": True}, "monotone")],
    "correlation": [
        ({"data_norm": 1}, "bounds"),
        ({"bounds": (0, "1e101")}, "bounds"),
        *(
            ({"bounds": None, "data_norm": wrong}, "data_norm")
            for wrong in (0, "1e-101", np.zeros(2), FRAME)
        ),
        ({"bounds": None}, "bounds, data_norm"),
        ({"method": "laplace"}, "method"),
    ],
    "covariance": [({"columns": ["age", "city"]}, "columns.*numbers")],
    "count, by": [({"columns": ["age", "income"]}, "columns.*one column")],
    "mean, by": [({"columns": None}, "columns.*name them"), ({"method": "laplace"}, "method")],
    "histogram": [({"bins": [0, 1]}, ".*own groups"), *CODES],
    "mode, data set": CODES,
    "answer_queries": [
        *(({"columns": wrong}, ".*age") for wrong in (["age"], None)),
        ({"domain": {"city": 2}}, ".*declared"),
    ],
    "answer_queries, where": DIVIDING,
    "answer_queries, unit": DIVIDING,
    "pca": [
        *(({"components": wrong}, "components") for wrong in (0, 3)),
        *(({"radius": wrong}, "radius") for wrong in (0, 2)),
    ],
    "answer_queries, array": [
        *(({"domain": wrong}, "domain") for wrong in (None, [2, 2], {0: 1, 1: 2})),
        ({"domain": {0: 2, 7: 2}}, "columns of the domain"),
        *(({"workload": wrong}, "workload") for wrong in (4, [], [(0, 9)], [(0, 1), (1, 0)])),
        ({"method": "purified"}, r"method.*'mwem'\].*zerodelta\.paper\.multiset_mwem"),
    ],
    "synthesize, array": [
        ({"domain": None}, "domain.*known without the rows"),
        (
            {"rows": np.zeros((5, 25)), "domain": dict.fromkeys(range(25), 2)},
            r"domain.*at most 2\^24.*answer_queries",
        ),
        ({"size": 0}, "size"),
        ({"method": "purified"}, r"method.*'mwem'\].*zerodelta\.paper\.multiset_mwem"),
    ],
    "decision_tree": [
        *(({"thresholds": wrong}, "thresholds") for wrong in WRONG_THRESHOLDS),
        *(({"classes": wrong}, "classes") for wrong in ((1, 1), (0, 1, 2))),
        ({"label": "city"}, ".*city"),
    ],
    "kmeans": [
        *(({"clusters": wrong}, "clusters") for wrong in (0, 10**7)),
        *(({"columns": wrong}, ".*(city|note)") for wrong in (["age", "city"], ["note"], None)),
    ],
    "kmeans, where": [({"columns": ["height"]}, ".*height")],
    "select_features, array": [
        ({"bounds": None}, "bounds.*bounds="),
        ({"target_bounds": None}, "target_bounds.*target_bounds="),
        ({"data_norm": 1, "bounds": None, "method": "stepwise"}, 'bounds.*method="gram"'),
        ({"target": "z"}, "target.*name a column"),
        ({"features": [0, 4]}, "features.*name a column"),
        ({"features": [0, 0]}, "features.*name the columns"),
        ({"size": 5}, "size.*choose fewer"),
        ({"size": 0}, "size.*plain int"),
        ({"bounds": ([0, 0, 0, 0], [1, 1])}, "lower"),
        ({"method": "guess"}, "method.*one of these"),
    ],
    "select_model": [
        ({"rounds": None}, "rounds.*rounds=50"),
        ({"rounds": 0}, "rounds.*plain int"),
        ({"scoring": 1}, "scoring.*scoring=0.2"),
        ({"train": _fails}, "train, score.*pass score="),
        ({"score": _fails}, "rounds.*leave it out"),
        ({"candidates": {}}, "candidates.*mapping"),
        ({"candidates": ["a"]}, "candidates.*mapping"),
        ({"candidates": {"a": 1}}, "train.*train= and score="),
        ({"candidates": {"a": OTHER_COLUMNS}}, "features.*name a column"),
    ],
    "select_model, votes": [
        ({"score": None}, "score.*pass score="),
        ({"method": "study"}, "method.*pass train="),
        ({"method": "votes"}, "method.*pass train="),
        ({"train": _fails, "rounds": 1, "method": "votes"}, 'method.*did you mean "vote"'),
        ({"train": _fails, "rounds": 1, "fit": None, "method": "vote"}, ".*pass fit="),
        ({"fit": None, "method": "vote"}, ".*pass fit="),
        ({"fit": None, "method": "study"}, ".*pass fit="),
        ({"fit": _fails}, ".*ZeroDivisionError"),
        ({"fit": 3}, ".*TypeError"),
        ({"least_rows": 0}, "least_rows"),
        ({"candidates": {}}, "candidates.*mapping"),
    ],
    "vote": [
        *(({"options": wrong}, "options") for wrong in ([1, 1], [[1]], [])),
        ({"choose": _fails}, "choose"),
        ({"choose": lambda block: "no"}, "choose"),
        ({"choose": 3}, "choose"),
        ({"blocks": 0}, "blocks"),
    ],
    "propose_test_release, own query": [
        *(({"proposed_bound": wrong}, "proposed_bound") for wrong in (None, 0)),
        ({"query": 3}, "query"),
        ({"stability": None}, "stability"),
        ({"test_share": 1}, "test_share"),
        ({"cells": 1}, "cells"),
    ],
    "bounded_local_sensitivity": [
        ({"mixing_probability": 0}, "mixing_probability"),
        ({"bound_share": 1}, "bound_share"),
        ({"query": sum}, "bounds"),
        ({"query": sum, "bounds": (0, 1)}, "local"),
        ({"query": sum, "bounds": (0, 1), "local": len}, "change"),
    ],
    "table, text keys": [({"false_keys": wrong}, "false_keys") for wrong in (0, -1, "x", 2**25)],
    "heavy_hitters": [
        ({"false_keys": 0}, "false_keys"),
        ({"goal": "both"}, "goal"),
        ({"universe": ["a"]}, "universe"),
    ],
    "heavy_hitters, items": [
        *(({"universe": wrong}, "universe") for wrong in (None, "abc")),
        ({"universe": zd.text(20)}, "column.*alphabet"),
        ({"universe": zd.number(0, 1)}, "column.*integer=True"),
        ({"universe": zd.text(5000, alphabet="ab")}, "length.*4096 characters"),
        ({"universe": 3, "data": np.zeros((2, 2))}, "columns"),
    ],
    "top_k": [({"k": 0}, "k"), ({"k": 99}, "k"), ({"method": "joint"}, "method")],
    "top_k, text keys": [({"k": 0}, "k"), ({"sensitivity": 1}, "sensitivity")],
    "top_k, scores": [
        ({"sensitivity": None}, "sensitivity"),
        ({"monotone": 1}, "monotone"),
        ({"k": 5}, "k"),
        ({"data": [1]}, "data"),
        ({"expected_gap": 3}, "expected"),
    ],
}
"""Golden releases, what is wrong in a call of them, and what its refusal says."""


@pytest.mark.parametrize("case", MISTAKES)
def test_a_mistake_in_a_public_input_is_told_by_its_name(case: str) -> None:
    for changes, name in MISTAKES[case]:
        assert re.match(name, changed(case, **changes), re.DOTALL), changes


# -- mistakes that would release something meaningless ---------------------------------------------

COLUMN, TABLE = np.linspace(0, 1, 50), np.linspace(0, 1, 150).reshape(50, 3)


def scores(given: Any, **public: Any) -> Any:
    return replayed(NoBits())(zd.select)(given, epsilon=1, **public)


@pytest.mark.parametrize(
    "rows",
    [
        *(TABLE, TABLE.tolist(), [tuple(row) for row in TABLE], list(TABLE)),
        *({"a": [1, 2], "b": [3]}, pl.DataFrame(TABLE)),
    ],
    ids=["array", "lists", "tuples", "list of arrays", "mapping of lists", "frame"],
)
def test_a_table_of_rows_is_not_a_list_of_scores(rows: Any) -> None:
    with pytest.raises(ParameterError, match=r"^scores = .*bounds=\(lower, upper\)"):
        scores(rows, sensitivity=1)


@pytest.mark.parametrize("rows", [COLUMN, COLUMN.tolist(), TABLE[:, :1], TABLE[:, :0]])
def test_a_table_of_options_has_two_columns_at_least(rows: Any) -> None:
    """One column is most often a list of scores, of which the sum was then the only option."""
    with pytest.raises(ParameterError, match=r"^columns of rows = .*sensitivity="):
        scores(rows, bounds=(0, 1))


def test_a_spread_beyond_all_floats_is_only_a_bad_guess() -> None:
    for spread in (10**400, 1e-320):
        release = zd.trimmed_mean(COLUMN, trim=0.1, bounds=(0, 1), spread=spread, epsilon=1)
        assert 0 <= release.value <= 1


# -- near misses ----------------------------------------------------------------------------------

NAMES: list[tuple[Callable[[Any], Any], str, str]] = [
    (lambda m: zd.kmeans(TABLE, clusters=2, bounds=(0, 1), epsilon=1, method=m), "Loyd", "lloyd"),
    (
        lambda m: zd.median(COLUMN, bounds=(0, 1), epsilon=1, method=m),
        "flip",
        "permute-and-flip",
    ),
    (lambda m: zd.mean(COLUMN, bounds=(0, 1), epsilon=1, method=m), "Laplace", "laplace"),
    (lambda m: zd.mode([0, 1], universe=2, epsilon=1, method=m), "Auto", "auto"),
    (
        lambda m: select_features(
            TABLE, target=0, size=1, bounds=(0, 1), target_bounds=(0, 1), epsilon=1, method=m
        ),
        "step-wise",
        "stepwise",
    ),
    (lambda task: zd.advise(task, n=10, epsilon=1), "k-means", "kmeans"),
    (lambda task: zd.advise(task, n=10, epsilon=1), "trimmed mean", "trimmed_mean"),
    (
        lambda name: zd.advise("mode", n=10, universe=3, epsilon=1, **{name: 2}),
        "univers",
        "universe",
    ),
    (lambda name: zd.plan(Finite(16), epsilon=1, channel=name), "unifrom", "uniform"),
]


@pytest.mark.parametrize(("call", "given", "meant"), NAMES)
def test_near_misses_are_named(call: Callable[[str], Any], given: str, meant: str) -> None:
    with pytest.raises(ParameterError) as caught:
        call(given)
    assert str(caught.value).endswith(f'did you mean "{meant}"?')
    with pytest.raises(ParameterError) as caught:
        call("zzzzzz")
    assert "did you mean" not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "meant"),
    [("linear_regression", "linear"), ("logistic_regression", "logistic"), ("feat", "features")],
)
def test_a_longer_or_shorter_name_is_recognized(given: str, meant: str) -> None:
    known = ["mean", "linear", "logistic", "features"]
    assert did_you_mean(given, known, "no") == f'did you mean "{meant}"?'
    assert did_you_mean("xy", known, "no") == did_you_mean("a", known, "no") == "no"


def test_advice_on_a_regression_names_its_task() -> None:
    with pytest.raises(ParameterError, match=r'did you mean "linear"\?$'):
        zd.advise("linear_regression", n=100, dimension=5, epsilon=1)


def test_a_long_wrong_name_takes_no_time() -> None:
    assert did_you_mean("auto" * 10**6, ["auto"], "no") == "no"


SECRET = pl.DataFrame({"a": [7313.0]})


@pytest.mark.parametrize(
    "rows",
    [SECRET, SECRET["a"], SECRET.to_numpy(), SECRET.to_arrow(), SECRET["a"].to_arrow()],
    ids=["frame", "series", "array", "arrow table", "arrow array"],
)
def test_rows_in_place_of_a_parameter_are_not_shown(rows: Any) -> None:
    """Somebody who mixes up the arguments must not read rows in a message, or in a saved error."""
    with pytest.raises(ParameterError, match=r"^bounds = <\w+ of shape \(1,( 1)?\)>") as found:
        replayed(NoBits())(zd.mean)(COLUMN, bounds=rows, epsilon=1)
    copy = pickle.loads(pickle.dumps(found.value))
    assert str(copy) == str(found.value)
    assert "7313" not in str(copy)
    assert "7313" not in repr(vars(found.value))
