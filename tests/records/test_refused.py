"""A saved release that is not as it was saved is refused, by an error that says what to do."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import zerodelta as zd
from zerodelta.cli import app
from zerodelta.privacy.release_file import SCHEMA
from zerodelta.privacy.steps import digest_of
from zerodelta.privacy.written_values import read_value
from zerodelta.testing import replayed


def income(epsilon: str = "1/2") -> Any:
    return zd.mean(np.full(100, 30.0), bounds=(0, 100), epsilon=epsilon)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    income().save(tmp_path / "income.json")
    return tmp_path / "income.json"


def resealed(data: Any) -> Any:
    """What a forger writes who knows the format: with a digest of what it says now."""
    content = {name: part for name, part in data.items() if name not in ("digest", "signatures")}
    return {**data, "digest": digest_of(content)}


def refusal(path: Path, text: str) -> str:
    """Return the message of `zd.load`; `zerodelta verify` refuses it, too."""
    path.write_text(text, encoding="utf-8")
    with pytest.raises(zd.errors.CertificateError) as refused:
        zd.load(path)
    assert path.read_text(encoding="utf-8") == text
    result = CliRunner().invoke(app, ["verify", str(path)])
    assert result.exit_code == 1
    assert "NOT VERIFIED" in result.output
    return str(refused.value)


def _part(data: Any, name: Any) -> Any:
    return data.get(name) if isinstance(data, dict) else data[name]


def changed(data: Any, place: tuple[Any, ...], value: Any) -> Any:
    if not place:
        return value
    copy = dict(data) if isinstance(data, dict) else list(data)
    copy[place[0]] = changed(_part(copy, place[0]), place[1:], value)
    return copy


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("value",), 31.0),
        (("error",), 0.0),
        (("record", "task"), "median"),
        (("record", "parameters"), {}),
        (("record", "time"), "2020-01-01T00:00:00Z"),
        (("record", "version"), "9"),
        (("certificate", "randomness"), "a seed"),
        (("digest",), "0" * 64),
        (("digest",), None),
    ],
)
def test_whatever_is_edited_is_found_by_the_digest(path: Path, place: Any, value: Any) -> None:
    data = changed(json.loads(path.read_text()), place, value)
    assert "digest does not match" in refusal(path, json.dumps(data))


def swapped(data: Any) -> Any:
    other = json.loads(income("1/4").certificate.to_json())
    return resealed({**data, "certificate": other})


SEALED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "certificate of another": (swapped, "do not belong together"),
    "less epsilon in the record": (
        lambda d: resealed(changed(d, ("record", "claim", "epsilon"), "1/100")),
        "do not belong together",
    ),
    "less epsilon in both": (
        lambda d: resealed(
            changed(
                changed(d, ("record", "claim", "epsilon"), "1/100"),
                ("certificate", "claim", "epsilon"),
                "1/100",
            )
        ),
        "digest does not match",
    ),
    "another unit": (
        lambda d: resealed(changed(d, ("record", "claim", "unit"), "customer")),
        "do not belong together",
    ),
    "other public facts": (
        lambda d: resealed(changed(d, ("record", "public"), [])),
        "do not belong together",
    ),
    "a field less": (
        lambda d: resealed({n: part for n, part in d.items() if n != "record"}),
        "something is missing, or was added",
    ),
    "a field more": (lambda d: resealed({**d, "note": 1}), "something is missing, or was added"),
    "a field of the record more": (
        lambda d: resealed(changed(d, ("record", "rows"), 100)),
        "not one of this version",
    ),
    "a later version": (lambda d: {**d, "schema": "zerodelta/release/3"}, "upgrade with pip"),
    "an earlier version": (
        lambda d: {**d, "schema": "zerodelta/release/1"},
        "with the version of zerodelta that wrote it",
    ),
    "no version": (lambda d: {**d, "schema": "zerodelta/release/0"}, "not a saved release"),
    "nothing to ask": (
        lambda d: resealed(changed(d, ("record", "to_ask"), [])),
        "does not list the premises",
    ),
    "not all to ask": (
        lambda d: resealed(changed(d, ("record", "to_ask"), d["record"]["to_ask"][:-1])),
        "does not list the premises",
    ),
    "another schema": (lambda d: {**d, "schema": "else"}, "not a saved release"),
    "no schema": (
        lambda d: {n: part for n, part in d.items() if n != "schema"},
        "not a saved release",
    ),
    "a signature that is none": (lambda d: {**d, "signatures": [7]}, "signature is malformed"),
    "signatures that are none": (lambda d: {**d, "signatures": 7}, "not a saved release"),
    "an entry of another time": (
        lambda d: resealed(
            changed(
                d,
                ("record", "entries"),
                [{"ledger": "x", "entry": 1, "hash": "h", "time": "2020-01-01T00:00:00Z"}],
            )
        ),
        "another time",
    ),
}


@pytest.mark.parametrize("case", SEALED)
def test_a_forger_who_computes_digests_is_refused_too(path: Path, case: str) -> None:
    forge, said = SEALED[case]
    assert said in refusal(path, json.dumps(forge(json.loads(path.read_text()))))


TEXTS: dict[str, tuple[Callable[[str], str], str]] = {
    "cut off": (lambda text: text[: len(text) // 2], "cut off, or was changed"),
    "empty": (lambda _: "", "cut off"),
    "no JSON": (lambda _: "income: 30", "cut off"),
    "a list": (lambda _: "[1]", "not a saved release"),
    "a name twice": (
        lambda text: text.replace('"seconds": null', '"seconds": null, "seconds": null'),
        "twice",
    ),
    "NaN": (lambda text: text.replace('"seconds": null', '"seconds": NaN'), "NaN or Infinity"),
    "infinity": (
        lambda text: text.replace('"seconds": null', '"seconds": -Infinity'),
        "NaN or Infinity",
    ),
    "a float that is infinite": (
        lambda text: text.replace('"seconds": null', '"seconds": 1e999'),
        "NaN or Infinity",
    ),
    "very deep": (
        lambda text: text.replace('"seconds": null', '"seconds": ' + "[" * 10**5 + "]" * 10**5),
        "cut off",
    ),
    "a very long integer": (
        lambda text: text.replace('"seconds": null', '"seconds": ' + "9" * 10**5),
        "cut off",
    ),
}


@pytest.mark.parametrize("case", TEXTS)
def test_a_text_that_is_no_release_is_refused(path: Path, case: str) -> None:
    change, said = TEXTS[case]
    text = path.read_text()
    assert change(text) != text
    assert said in refusal(path, change(text))


def test_a_value_that_says_too_much_is_not_loaded(path: Path) -> None:
    """Its digest is right and so is its certificate, but no release is written so."""
    data = json.loads(path.read_text())
    for value, said in (
        ({"type": "Popen", "fields": {"args": "ls"}}, "not known here"),
        ({"type": ["x"], "fields": {}}, "not known here"),
        ({"fraction": "2/4"}, "not how a release is written"),
        ({"fraction": "1/0"}, "cannot be read"),
        ({"fraction": f"0x{'7' * 40_000}/0x{'3' * 40_000}"}, "a fraction is too long"),
        ({"float": "30"}, "cannot be read"),
        ({"dict": [["a", 1], ["a", 2]]}, "twice"),
        ({"array": "float64", "shape": [3], "cells": [1.0]}, "cannot be read"),
        ({"array": "complex128", "shape": [1], "cells": [1.0]}, "not known here"),
        ({"array": "int8", "shape": [1], "cells": [300]}, "cannot be read"),
        ({"type": "Number", "fields": {"lower": 3}}, "cannot be read"),
        ({"table": {"keys": [], "numbers": []}}, "cannot be read"),
        ({"pickle": "gASVKAAAAA"}, "cannot be read"),
        (json.loads("[" * 70 + "]" * 70), "nested"),
    ):
        path.write_text(json.dumps(resealed({**data, "value": value})))
        with pytest.raises(zd.errors.RecordError, match=said):
            zd.load(path)
        verdict = CliRunner().invoke(app, ["verify", str(path)])  # reads it as `zd.load` does
        assert verdict.exit_code == 1
        assert re.search(said, verdict.output)
    for place, part in (("sums", [{}]), ("sums", 7), ("noise", {"type": "NoiseLaw", "fields": {}})):
        path.write_text(json.dumps(resealed({**data, place: part})))
        with pytest.raises(zd.errors.RecordError):
            zd.load(path)


def test_an_estimator_that_says_too_much_is_not_loaded(tmp_path: Path) -> None:
    model = zd.sklearn.NearestCentroid(epsilon=1, bounds=(0, 1), classes=[0, 1])
    model.fit(np.ones((30, 2)), np.arange(30) % 2)
    model.save(tmp_path / "model.json")
    data = json.loads((tmp_path / "model.json").read_text())
    for place, value in (
        (("estimator", "class"), "Pipeline"),
        (("estimator", "class"), 7),
        (("estimator", "state"), {"predict": 7, "release_": 8}),
        (("estimator", "parameters"), {"seed": 1}),
        (("estimator",), []),
    ):
        path = tmp_path / "forged.json"
        path.write_text(json.dumps(resealed(changed(data, place, value))))
        with pytest.raises(zd.errors.RecordError, match=r"restored|was added"):
            zd.load(path)


def test_replayed_bits_are_not_loaded(tmp_path: Path) -> None:

    release = replayed("x")(zd.mean)([1.0], bounds=(0, 1), epsilon=1)
    release.save(tmp_path / "x.json")
    with pytest.raises(zd.errors.CertificateError, match="is private"):
        zd.load(tmp_path / "x.json")


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    for odd in (tmp_path / "none.json", tmp_path):
        with pytest.raises(zd.errors.RecordError, match="pass the path"):
            zd.load(odd)
    (tmp_path / "x").write_bytes(b"\xff\xfe")
    with pytest.raises(zd.errors.RecordError, match="pass the path"):
        zd.load(tmp_path / "x")


def test_the_schema_is_frozen() -> None:
    assert SCHEMA == "zerodelta/release/2"
    assert read_value({"tuple": []}, {}) == ()


ALIKE = 2**61 - 1
"""Integers that differ by a multiple of this have one hash."""


def fractions_alike(count: int) -> list[Any]:
    """Fractions p/q = 5 modulo that number, of the hash of 5."""
    return [
        {"fraction": f"{5 * q % ALIKE}/{q}"} for q in range(2**59 + 1, 2**59 + 1 + 2 * count, 2)
    ]


@pytest.mark.parametrize(
    "numbers",
    [
        [5 + ALIKE * i for i in range(2000)],
        [{"int": hex(5 + ALIKE * i)} for i in range(100)],
        fractions_alike(100),
        [{"decimal": f"{5 * pow(10, -e, ALIKE) % ALIKE}e{e}"} for e in range(100)],
        [{"tuple": [7 + ALIKE * i, "x"]} for i in range(100)],
    ],
    ids=["integers", "hexadecimal", "fractions", "decimals", "tuples"],
)
def test_numbers_that_are_chosen_to_have_one_hash_are_refused(numbers: list[Any]) -> None:
    """A dictionary of so many would take a minute; a set or a table of them, too."""
    for data in (
        {"dict": [[each, 0] for each in numbers]},
        numbers,
        {"tuple": numbers},
        {"array": "object", "shape": [len(numbers)], "cells": numbers},
        {"table": {"keys": [["item", numbers]], "numbers": [], "note": ""}},
    ):
        with pytest.raises(zd.errors.RecordError, match="have chosen hashes"):
            read_value(data, {"Table": dict})


@pytest.mark.parametrize("part", ["keys", "numbers"])
@pytest.mark.parametrize("name", [5, None, True, 1.5])
def test_names_are_texts_of_which_nobody_can_choose_the_hash(part: str, name: Any) -> None:
    """A table of so many columns would take a minute."""
    parts = {"keys": [], "numbers": [], "note": "", part: [["a", []], [name, []]]}
    with pytest.raises(zd.errors.RecordError, match="cannot be read"):
        read_value({"table": parts}, {"Table": lambda *_, **__: 0})


@pytest.mark.parametrize("named", [[5], ["city", 5], [["city"]], 5])
def test_columns_that_a_record_names_are_texts(tmp_path: Path, named: Any) -> None:
    kinds = {"age": zd.number(0, 120), "city": zd.category(["oslo", "rome"])}
    cells = np.zeros(100, dtype=[("age", float), ("city", "U4")])
    people = zd.open(cells, columns=kinds)
    path = tmp_path / "table.json"
    zd.table(people, by="city", of={"age": ["median"]}, epsilon=1).save(path)
    data = json.loads(path.read_text())
    forged = changed(data, ("record", "parameters", "by"), named)
    assert "own noisy sums and bounds" in refusal(path, json.dumps(resealed(forged)))


@pytest.mark.parametrize("end", ["0e5001", "0E+99999"])
def test_a_short_text_is_not_read_as_a_number_of_many_digits(path: Path, end: str) -> None:
    """1e999999999 would take hours, and all memory: no exponent is looked at that is so large."""
    data = json.loads(path.read_text())
    forged = changed(data, ("record", "parameters", "bounds"), ["0", end])
    path.write_text(json.dumps(resealed(forged)))
    assert zd.load(path).record.parameters["bounds"] == ["0", end]


def test_numbers_that_happen_to_have_one_hash_are_read() -> None:
    few = [ALIKE * i for i in range(64)]
    assert read_value({"dict": [[each, 0] for each in few]}, {}) == dict.fromkeys(few, 0)
    assert read_value([5] * 1000, {}) == [5] * 1000
    lists = {"tuple": [[1], [2]]}
    assert read_value([lists] * 100, {}) == [([1], [2])] * 100
    assert read_value([*range(10**5), *few], {})[-1] == ALIKE * 63


@pytest.mark.parametrize(
    "kind", ["datetime64[D],(50000000,)f8", "datetime64[D]x", "datetime64[Q]", "datetime64[]"]
)
def test_an_array_of_dates_is_one_of_dates_alone(kind: str) -> None:
    with pytest.raises(zd.errors.RecordError, match="not known here"):
        read_value({"array": kind, "shape": [1], "cells": [0]}, {})
    days = {"array": "datetime64[D]", "shape": [1], "cells": [1]}
    assert read_value(days, {}).tolist() == [datetime.date(1970, 1, 2)]


def test_an_array_without_cells_has_no_long_side() -> None:
    """Whoever goes along it, as a page of its columns does, would go on for hours."""
    for shape in ([0, 10**9], [10**9, 0], [0, 4097], [-1, 10**9]):
        for kind in ("float64", "text", "object", "datetime64[D]"):
            with pytest.raises(zd.errors.RecordError, match="shape"):
                read_value({"array": kind, "shape": shape, "cells": []}, {})
    none = {"array": "float64", "shape": [0, 4096], "cells": []}
    assert read_value(none, {}).shape == (0, 4096)


def test_an_array_of_texts_takes_room_for_the_longest_of_them_in_bytes() -> None:
    """Each of its characters takes four bytes, in every cell."""
    cells = ["", *["x"] * ((1 << 12) - 1)]
    for length, fits in (((1 << 14), True), ((1 << 14) + 1, False)):
        cells[0] = "x" * length
        data = {"array": "text", "shape": [len(cells)], "cells": cells}
        if fits:
            assert read_value(data, {}).nbytes == 1 << 28
            continue
        with pytest.raises(zd.errors.RecordError, match="would not fit into memory"):
            read_value(data, {})


def test_all_arrays_of_texts_in_a_file_share_that_room(tmp_path: Path) -> None:
    """Each one might fit, and hundreds of them are a file of a few megabytes."""
    cells = ["x" * (1 << 14), *["x"] * 1500]
    large = {"array": "text", "shape": [len(cells)], "cells": cells}
    with pytest.raises(zd.errors.RecordError, match="would not fit into memory"):
        read_value([large] * 3, {})
    assert read_value([large] * 2, {})[1].nbytes == 4 * 1501 << 14
    zd.median(np.arange(100), bounds=(0, 100), epsilon=1).save(tmp_path / "a.json")
    data = json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))
    content = {n: part for n, part in {**data, "diagnostics": large}.items() if n != "digest"}
    content["value"] = [large] * 2
    text = json.dumps({**content, "digest": digest_of(content)})
    (tmp_path / "b.json").write_text(text, encoding="utf-8")
    with pytest.raises(zd.errors.RecordError, match="would not fit into memory"):
        zd.load(tmp_path / "b.json")
