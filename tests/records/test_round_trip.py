"""Whatever is released, of every task and estimator, is read back as it was saved."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import zerodelta as zd
from estimators.instances import PRIVATE, examples, name
from golden.on_people import table
from golden.rows import COLUMNS
from tasks.test_diagnostics_of_every_task import CASES
from zerodelta.privacy.release import Release
from zerodelta.privacy.release_file import CLASSES, content_of, read_file
from zerodelta.privacy.steps import canonical, digest_of
from zerodelta.privacy.written_values import read_value, written
from zerodelta.tables.grouped import Table
from zerodelta.value import PUBLISHED, published


def saved(release: Any, folder: Path) -> Any:
    path = folder / "release.json"
    release.save(path)
    strange = types_in(json.loads(path.read_text(encoding="utf-8"))) - CLASSES.keys() - INPUTS
    assert not strange, (
        f"{sorted(strange)} cannot be read back: put @published of zerodelta.value above it"
    )
    return zd.load(path)


INPUTS = {"ShownRows"}
"""Of an estimator, and of no release."""


def types_in(data: Any) -> set[str]:
    """Return the names of all classes in what was written."""
    if isinstance(data, list):
        return set().union(*map(types_in, data))
    if not isinstance(data, dict):
        return set()
    own = {data["type"]} if data.keys() == {"type", "fields"} else set()
    return own.union(*map(types_in, data.values()))


def same(one: Any, other: Any) -> None:
    """Equal, and of equal types all the way down, but for frames."""
    if isinstance(one, (pd.DataFrame, pl.DataFrame, pa.Table)):
        assert isinstance(other, Table)
        frame = pa.Table.from_pandas(one) if isinstance(one, pd.DataFrame) else one
        columns = frame.to_pydict() if isinstance(frame, pa.Table) else frame.to_dict()
        assert list(other.columns) == list(columns)
        for each in other.columns:
            np.testing.assert_array_equal(other[each], np.asarray(list(columns[each])))
        return
    assert type(one) is type(other)
    assert canonical(written(one)) == canonical(written(other))


@pytest.mark.parametrize("case", CASES)
def test_every_task_is_read_back(case: str, tmp_path: Path) -> None:
    verb = CASES[case]
    release = verb(zd.open(table(), columns=COLUMNS, name="people"), epsilon=2, diagnostics="1/10")
    again = saved(release, tmp_path)
    assert type(again) is Release
    same(release.value, again.value)
    assert again.certificate == release.certificate
    assert again.record == release.record
    assert again.error == release.error
    assert again.diagnostics == release.diagnostics
    assert again.noise == release.noise
    assert str(again.plan) == str(release.plan)
    assert again.covers.partition(" None for")[0] == release.covers.partition(" None for")[0]
    if release.sums:
        for one, other in zip(release.interval(), again.interval(), strict=True):
            if not isinstance(other, Table):
                same(one, other)
    again.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "release.json").read_bytes()


def test_a_distribution_function_is_read_back(tmp_path: Path) -> None:
    """Of values that were not named it is a step function, which was paid for like any other."""
    data = zd.open(table(), columns=COLUMNS, name="people")
    release = zd.cdf(data, "age", epsilon=2, diagnostics="1/10")
    again = saved(release, tmp_path)
    same(release.value, again.value)
    assert again.record == release.record
    np.testing.assert_array_equal(again.value([0, 20, 99]), release.value([0, 20, 99]))


@pytest.mark.parametrize("estimator", PRIVATE, ids=name)
def test_every_estimator_is_read_back(estimator: Any, tmp_path: Path) -> None:
    rows, labels = examples(40)
    classes = getattr(estimator, "classes", None)
    fitted = clone(estimator).fit(rows, labels if classes is None else labels % len(classes))
    again = saved(fitted, tmp_path)
    assert type(again) is type(fitted)
    for method in ("predict", "predict_proba", "transform"):
        if hasattr(fitted, method):
            expected = getattr(fitted, method)(rows)
            np.testing.assert_array_equal(getattr(again, method)(rows), expected)
    assert again.certificate_ == fitted.certificate_
    assert again.release_.record.task == type(fitted).__name__
    fields, others = vars(fitted), vars(again)
    assert fields.keys() == others.keys()
    for each in fields.keys() - {"release_", "certificate_"}:
        same(fields[each], others[each])
    with pytest.raises(NotFittedError):
        clone(estimator).save(tmp_path / "none.json")


def test_an_estimator_of_a_data_set_is_read_back(tmp_path: Path) -> None:
    data = zd.open(table(), columns=COLUMNS)
    for model in (
        zd.sklearn.LogisticRegression(epsilon=1),
        zd.sklearn.MLPClassifier(epsilon=1, rounds=2),
        zd.sklearn.RandomForestClassifier(epsilon=1),
    ):
        model.fit(data[["age", "city"]], data["member"])
        model.save(tmp_path / f"{type(model).__name__}.json")
        again = zd.load(tmp_path / f"{type(model).__name__}.json")
        frame = pd.DataFrame({"age": [1.0, 50.0], "city": ["oslo", "bonn"]})
        np.testing.assert_array_equal(again.predict_proba(frame), model.predict_proba(frame))
        assert again.feature_names_in_.tolist() == ["age", "city"]


def test_an_estimators_ledger_is_not_saved(tmp_path: Path) -> None:
    rows, labels = examples(40)
    ledger = zd.Ledger(tmp_path / "secret.ledger", budget=5)
    model = zd.sklearn.LinearRegression(epsilon=1, data_norm=1, bounds_y=(0, 2), ledger=ledger)
    again = saved(model.fit(rows, labels), tmp_path)
    assert again.ledger is None
    text = (tmp_path / "release.json").read_text()
    assert "secret.ledger" not in text
    assert ledger.verify(records=[tmp_path / "release.json"]) == 3
    model.release_.save(tmp_path / "model.json")
    assert ledger.verify(records=[tmp_path / "model.json", tmp_path / "release.json"]) == 3


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, pa.table])
def test_a_frame_comes_back_as_a_light_table(kind: Any, tmp_path: Path) -> None:
    frame = kind({"age": np.arange(100.0), "city": ["oslo", "rome"] * 50})
    columns = {"age": zd.number(0, 100), "city": zd.category(["oslo", "rome"])}
    release = zd.table(zd.open(frame, columns=columns), by="city", of={"age": "mean"}, epsilon=1)
    again = saved(release, tmp_path)
    same(release.value, again.value)
    for end, other in zip(release.interval(), again.interval(), strict=True):
        same(end, other)
    assert isinstance(again.value, Table)
    assert isinstance(again.to_frame(), pd.DataFrame)
    made = zd.synthesize(frame, domain={"city": ["oslo", "rome"]}, epsilon=1)
    made.save(tmp_path / "made.json")
    cells = zd.load(tmp_path / "made.json").value["city"].tolist()
    assert cells == nw.from_native(made.value, eager_only=True)["city"].to_list()


def test_a_study_says_that_its_program_is_not_written(tmp_path: Path) -> None:
    study = zd.Study(np.ones((30, 1)), epsilon=1, publish=zd.Finite(["a", "b"]), rounds=1)
    again = saved(study.run(lambda s: "a", rehearse=False), tmp_path)
    assert again.record.task == "Study"
    assert again.record.data == []


ASK = [
    "bounds, categories, hierarchies and the question were chosen without the rows",
    "one person is in one row only",
    "no ledger counted its ε: somebody adds up all releases about the same people",
]


def test_what_nobody_can_check_stands_in_every_record(tmp_path: Path) -> None:
    """It is asked even where a release is plainly proven; that no ledger counted it, too."""
    (tmp_path / "people.csv").write_text("age\n" + "30\n" * 50, encoding="utf-8")
    kinds = {"age": zd.number(0, 120)}
    alone = zd.mean(zd.open(tmp_path / "people.csv", columns=kinds), "age", epsilon=1)
    assert alone.certificate.summary.endswith(": proven")
    again = saved(alone, tmp_path)
    assert alone.record is not None
    assert again.record.to_ask == alone.record.to_ask == ASK
    assert "to be asked: " + "; ".join(ASK[:2]) in again.certificate.explain()
    unit = zd.open(table(), columns=COLUMNS, unit="who", max_rows=2, units=60, name="people")
    ledger = zd.Ledger(tmp_path / "l", data="people", budget=9, unit="who")
    paid = zd.sum(unit, "age", epsilon=1, ledger=ledger)
    assert paid.record is not None
    assert paid.record.to_ask == [ASK[0], 'one person has one "who" only']
    for release, told in ((alone, "no ledger counted its ε"), (paid, "its ε was counted by entry")):
        assert told in release.counted
        assert release.counted in repr(release)
        assert release.counted in release._repr_html_()


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.fractions()
    | st.dates()
    | st.decimals(allow_nan=False, allow_infinity=False)
    | st.sampled_from([np.float64(0.5), np.int32(7), np.bool_(True)]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(st.text() | st.integers() | st.tuples(st.text()), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(VALUES)
def test_values_are_written_and_read(value: Any) -> None:
    data = json.loads(json.dumps(written(value), allow_nan=False))
    again = read_value(data, {})
    same(value, again)


def test_long_numbers_are_written_and_read() -> None:
    for value in (1 << 20_000, -1 << 20_000, Fraction(1, 3**9000)):
        assert read_value(json.loads(json.dumps(written(value))), {}) == value


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6).reshape(2, 3),
        np.array([1.5, np.nan, np.inf, -0.0], dtype=np.float32),
        np.array([[True], [False]]),
        np.array(["a", "bcd"]),
        np.array([1 << 100, None, "x", Fraction(1, 3)], dtype=object),
        np.zeros((0, 3)),
        np.array(7),
        np.array(["2024-01-01", "NaT"], dtype="datetime64[D]"),
        np.array([2**64 - 1], dtype=np.uint64),
    ],
)
def test_arrays_are_written_and_read(array: Any) -> None:
    again = read_value(json.loads(json.dumps(written(array), allow_nan=False)), {})
    assert again.dtype == array.dtype
    assert again.shape == array.shape
    np.testing.assert_array_equal(again, array)


def test_what_cannot_be_written_is_refused_before_there_is_a_file(tmp_path: Path) -> None:
    release = replace(zd.mean([1.0], bounds=(0, 1), epsilon=1), value=object())
    with pytest.raises(zd.errors.ParameterError, match="save its parts"):
        release.save(tmp_path / "x.json")
    with pytest.raises(zd.errors.ParameterError, match="with a record"):
        replace(release, value=1, record=None).save(tmp_path / "x.json")
    assert not (tmp_path / "x.json").exists()
    for odd in (object(), {1, 2}, lambda: 0, np.array([1j])):
        with pytest.raises(zd.errors.ParameterError, match="save"):
            written(odd)


def test_only_classes_of_ours_are_made() -> None:
    """Each is one of ours, which stores what it is given and does nothing else."""
    assert {made.__module__.partition(".")[0] for made in CLASSES.values()} == {"zerodelta"}
    assert set(CLASSES) == set(PUBLISHED)

    for called, module in (("Stranger", "tests.public"), ("Split", "zerodelta.data.kinds")):
        with pytest.raises(TypeError, match=called):
            published(type(called, (), {"__module__": module}))
    assert "Stranger" not in CLASSES
    assert CLASSES["Split"].__module__ == "zerodelta.training.features"


def test_every_published_class_is_found_by_a_process_that_has_imported_none() -> None:
    code = "from zerodelta.privacy.release_file import CLASSES; print(*CLASSES)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    lost = {kind.__module__ for name, kind in PUBLISHED.items() if name not in found.stdout.split()}
    assert not lost, f"add {sorted(lost)} to _HOMES in src/zerodelta/privacy/release_file.py"


@pytest.mark.parametrize("name", ["os", "antigravity", "tests.public", "data.kinds", "Any", "Path"])
def test_what_a_file_names_is_not_imported(name: str) -> None:
    before = set(sys.modules)
    with pytest.raises(zd.errors.RecordError, match="not known here"):
        read_value({"type": name, "fields": {}}, CLASSES)
    assert {each.partition(".")[0] for each in set(sys.modules) - before} <= {"zerodelta"}


def test_records_of_other_columns_have_other_digests(tmp_path: Path) -> None:
    data = zd.open(table(), columns={**COLUMNS, "age": COLUMNS["income"]}, name="people")
    income, age = (zd.mean(data, each, epsilon=1) for each in ("income", "age"))
    assert income.certificate.digest == age.certificate.digest
    assert income.record is not None
    assert age.record is not None
    assert income.record.request_digest != age.record.request_digest
    digests = []
    for place, release in enumerate((income, age)):
        release.save(tmp_path / f"{place}.json")
        digests.append(read_file(tmp_path / f"{place}.json").digest)
        assert digests[-1] == digest_of(content_of(release))
    assert digests[0] != digests[1]
