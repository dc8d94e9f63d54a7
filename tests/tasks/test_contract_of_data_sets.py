"""What holds for every release of a data set: filters, units, rows that come and go.

The releases are the golden ones: a new verb, estimator or study is here by itself. For what holds
of every release of any rows see test_contract.py.
"""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

import zerodelta as zd
from golden.description import plain
from golden.golden import proves_its_claim
from golden.on_people import RELEASES, table
from golden.rows import COLUMNS, rows_of
from zerodelta.errors import CertificateError, ParameterError
from zerodelta.testing import replayed

KINDS: dict[str, Any] = {
    **COLUMNS,
    "age": zd.number(0, 100),
    "city": zd.category(["oslo", "rome", "bonn"]),
    "town": zd.category(range(7)),
}
"""Those of the golden rows, but a missing cell counts nowhere."""
ALL_ROWS = {"trimmed_mean", "propose_test_release", "bounded_local_sensitivity"}
"""Verbs of mechanisms that have a theorem for a public number of rows only."""
REPLACED_ROWS = {"kmeans", "KMeans", "LinearRegression", "LogisticRegression", "SparseRegression"}
"""Those that have no theorem for rows that come and go."""
SAME = {"sklearn.RandomForestClassifier, data set": {"random_state": 3}}
"""With what the same rows give the same values: else splits are fresh."""
OTHER = {"table, text keys", "answer_queries", "answer_queries, laplace"}
"""Where a row of missing cells counts: as one of the other keys; in the number of rows."""
EPSILON = 2


def verb_of(case: str) -> str:
    return case.partition(", ")[0].removeprefix("sklearn.")


def people(rows: Any = None, **options: Any) -> Any:
    return zd.open(table() if rows is None else rows, columns=KINDS, **options)


def cut() -> Any:
    """Return the rows, of which those with an age of at most 50 have no cells."""
    rows = pd.DataFrame(rows_of(), dtype=object)
    rows.loc[~(rows["age"] > 50), list(COLUMNS)] = None
    return rows


every = pytest.mark.parametrize("case", RELEASES)
few = pytest.mark.parametrize("case", [case for case in RELEASES if verb_of(case) not in ALL_ROWS])


@few
def test_a_dropped_row_is_a_row_of_missing_cells(case: str) -> None:
    """Whatever its filter leaves, all that is told of a release but its value is the same."""
    selections = [
        people().where("age > 50"),
        people(cut()),
        people().where("age < 0"),
        people().where("age >= 0 or not age >= 0"),
    ]
    dropped, missing, *others = [
        replayed("a release")(RELEASES[case])(data, epsilon=EPSILON, **SAME.get(case, {}))
        for data in selections
    ]
    assert plain(dropped.value) == plain(missing.value) or case in OTHER
    for other in others:
        assert dropped.certificate.to_json() == other.certificate.to_json()
        assert str(dropped.error) == str(other.error)
        assert str(dropped.plan) == str(other.plan)
    assert "the number of rows" not in dropped.certificate.public


@few
def test_a_unit_has_all_of_epsilon_for_all_of_its_rows(case: str) -> None:
    data = people(unit="who", max_rows=2, units=60)
    certificate = RELEASES[case](data, epsilon=EPSILON).certificate
    proves_its_claim(certificate)
    assert certificate.claim.exact_epsilon == EPSILON
    assert (certificate.unit, certificate.row) == ("who", "one who, at most 2 of its rows")
    with pytest.raises(CertificateError, match="who"):
        zd.verify(certificate, epsilon=EPSILON)
    some, none = (
        RELEASES[case](data.where(rows), epsilon=EPSILON) for rows in ("age > 50", "age < 0")
    )
    assert some.certificate.to_json() == none.certificate.to_json()
    assert str(some.error) == str(none.error)


@every
def test_rows_that_come_and_go(case: str) -> None:
    """Their number is used nowhere; a guess ten times too small publishes as well."""
    options: dict[str, Any] = {"neighbors": "add-remove", "expected_rows": 12}
    if verb_of(case) in REPLACED_ROWS | ALL_ROWS:
        with pytest.raises(ParameterError, match=r"replace|missing=None"):
            RELEASES[case](people(**options), epsilon=EPSILON)
        return
    release = RELEASES[case](people(**options), epsilon=EPSILON)
    claim = release.certificate.claim
    proves_its_claim(release.certificate)
    assert (claim.exact_epsilon, claim.neighbors.value) == (EPSILON, "add-remove")
    with pytest.raises(CertificateError, match="ε"):  # twice as much where rows are replaced
        zd.verify(release.certificate, epsilon=EPSILON)
    nobody = RELEASES[case](people(table()[:1], **options).where("age < 0"), epsilon=EPSILON)
    assert nobody.certificate.to_json() == release.certificate.to_json()
    assert str(nobody.error) == str(release.error)


@pytest.mark.parametrize("case", [case for case in RELEASES if verb_of(case) in ALL_ROWS])
def test_mechanisms_that_need_every_row_refuse_a_private_number(case: str) -> None:
    for data in (people(), people().where("age > 50"), people(unit="who", max_rows=2)):
        with pytest.raises(ParameterError, match="missing=None"):
            RELEASES[case](data, epsilon=EPSILON)
