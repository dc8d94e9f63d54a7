"""Tables of a data set: counted while rows stream by, as rows in memory are counted."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest

import zerodelta as zd
from data.opening import opened
from zerodelta.marginals import domain as streamed_counts
from zerodelta.marginals.domain import (
    TableCounts,
    as_workload,
    code_rows,
    count_rows,
    row_columns,
    table_domain,
    tabulated_source,
)
from zerodelta.testing import replayed

COLUMNS: dict[str, Any] = {
    "city": zd.category(["oslo", "rome"], other=True),
    "member": zd.boolean(),
    "plan": zd.category([1, 2, 3]),
    "age": zd.number(0, 100),
}
NAMES = ["city", "member", "plan"]
DOMAIN: dict[str, Any] = {
    "city": ["oslo", "rome", "other"],
    "member": [False, True],
    "plan": [1, 2, 3],
}


def frame(rows: int = 500) -> pd.DataFrame:
    rng = np.random.default_rng(5)
    table = pd.DataFrame(
        {
            "who": np.arange(rows) // 2,
            "city": rng.choice(["oslo", "rome", "other"], rows, p=[0.5, 0.3, 0.2]),
            "member": rng.choice([True, False], rows, p=[0.7, 0.3]),
            "plan": rng.integers(1, 5, rows),  # 4 is no plan
            "age": rng.uniform(0, 100, rows),
        }
    ).astype(object)
    table.loc[::11, "member"] = None
    return table


def people(**options: Any) -> Any:
    return zd.open(frame(), columns=COLUMNS, **options)


# -- counts ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("workload", [1, 2, 3, [("plan",), ("city", "plan")]], ids=str)
@pytest.mark.parametrize("held", ["one table", "the tables", "codes"])
def test_streamed_counts_are_those_of_rows_in_memory(
    workload: Any, held: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells = {"one table": 1 << 24, "the tables": 47, "codes": 1}
    monkeypatch.setattr(streamed_counts, "_MAXIMUM_COUNTS", cells[held])
    data, domain = table_domain(people(), NAMES, None)
    tables = as_workload(workload, domain)
    known = code_rows(row_columns(frame()[NAMES], domain).read(), domain)
    found = count_rows(
        opened(data),
        domain,
        tables,
        unknown=domain.sizes,
        declared=True,
        planned=500,
        private=False,
    )
    assert isinstance(found, TableCounts) or held != "one table"
    for columns in tables.closure:
        np.testing.assert_array_equal(found.table(columns), known.table(columns))
        assert found.table(columns).dtype == np.int64


@pytest.mark.parametrize("method", ["k-norm", "counts", "laplace", "mwem"])
def test_what_is_released_is_what_the_frame_gives(method: str) -> None:
    for workload in (1, 2):
        declared, plain = (
            replayed("a release")(zd.answer_queries)(
                data,
                epsilon=2,
                workload=workload,
                method=method,
                **given,
            )
            for data, given in (
                (people(), {"columns": NAMES[:2]}),
                (frame()[NAMES], {"domain": {name: DOMAIN[name] for name in NAMES[:2]}}),
            )
        )
        assert declared.value.keys() == plain.value.keys()
        for key, table in plain.value.items():
            np.testing.assert_array_equal(declared.value[key], table)
        assert declared.error == plain.error
        assert declared.certificate.steps == plain.certificate.steps


def test_synthetic_rows_have_the_labels_and_are_a_dictionary() -> None:
    given: dict[str, Any] = {"epsilon": 2, "size": 40}
    synthesize = replayed("rows")(zd.synthesize)
    declared = synthesize(people(), NAMES, **given).value
    plain = synthesize(frame()[NAMES], domain=DOMAIN, **given).value
    assert list(declared) == NAMES
    for name in NAMES:
        assert declared[name].tolist() == plain[name].tolist()
    assert declared["member"].dtype == np.bool_
    assert pd.DataFrame(declared).shape == (40, 3)
    of_none = zd.synthesize(people().where("age >= 101"), ["city"], epsilon=1).value
    assert len(of_none["city"]) == 500  # the public size of the whole


def test_unknown_values_may_count_as_a_category() -> None:
    release = zd.answer_queries(people(), ["plan"], epsilon=10**6, unknown=3)
    shares = frame()["plan"].replace(4, 3).value_counts(normalize=True).sort_index()
    np.testing.assert_allclose(release.value["plan",], shares, atol=1e-3)


def test_rows_that_count_nowhere_are_not_unknown_values() -> None:
    for ask in (zd.answer_queries, zd.synthesize):
        with pytest.raises(zd.errors.ParameterError, match="other=True"):
            ask(people().where("age > 60"), ["plan"], epsilon=1, unknown=3)


# -- a private number of rows ---------------------------------------------------------------------


@pytest.mark.parametrize("method", ["counts", "laplace", "auto"])
def test_frequencies_are_those_of_the_rows_that_are_left(method: str) -> None:
    table = frame()
    release = zd.answer_queries(
        people().where("age > 60 and plan == 1"), ["city"], epsilon=10**6, method=method
    )
    left = table[(table["age"] > 60) & (table["plan"] == 1)]
    shares = [float((left["city"] == city).mean()) for city in DOMAIN["city"]]
    np.testing.assert_allclose(release.value["city",], shares, atol=1e-3)
    # plans use the size of the whole, which is public; nobody knows how many are left
    assert "the number of all rows" in str(release.certificate.public)
    assert "the number of rows" not in str(release.certificate.public)


def test_replacing_all_rows_of_a_unit_moves_two_rows_of_counts_at_most() -> None:
    """Every set of up to three rows of one unit against every other; out-of-domain included."""
    cells = list(itertools.product(["oslo", "x"], [True, None]))
    columns = {"city": zd.category(["oslo", "rome"]), "member": COLUMNS["member"]}

    def counts(unit: Any) -> Any:
        rows = [("other", "rome", False), *(("ann", *row) for row in unit)]
        table = pd.DataFrame(rows, columns=["who", "city", "member"]).astype(object)
        opening = zd.open(table, columns=columns, unit="who", max_rows=2)
        data, domain = table_domain(opening, None, None)
        facts = tabulated_source(data, domain)[1]
        assert facts.rows is None
        found = count_rows(
            opened(data),
            domain,
            as_workload(2, domain),
            unknown=domain.sizes,
            declared=True,
            planned=facts.planned_rows,
            private=True,
        )
        return found.table((0, 1))

    sets = [s for n in range(1, 4) for s in itertools.combinations_with_replacement(cells, n)]
    found = [counts(unit) for unit in sets]
    moves = [a - b for a, b in itertools.permutations(found, 2)]
    assert max(int(np.maximum(move, 0).sum()) for move in moves) == 2


# -- refusals -------------------------------------------------------------------------------------


def test_what_needs_all_rows_together_is_refused_by_public_numbers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(streamed_counts, "_MAXIMUM_COUNTS", 1)
    monkeypatch.setattr(streamed_counts, "MAX_BYTES", 500 * 3)
    zd.answer_queries(people(), NAMES, epsilon=1)
    monkeypatch.setattr(streamed_counts, "MAX_BYTES", 500 * 3 - 1)
    with pytest.raises(zd.errors.ParameterError, match="fewer rows than 500"):
        zd.answer_queries(people(), NAMES, epsilon=1)
