"""Keys, names and files are anyone's words: what is printed or opened elsewhere acts on nothing."""

from __future__ import annotations

import csv
import io
import json
import unicodedata
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import zerodelta as zd
from cli.people import asked, run
from zerodelta.privacy.release_file import content_of
from zerodelta.privacy.shown_release import csv_lines
from zerodelta.privacy.steps import digest_of

BAD = "a\x1b[2J\x9b1m\u202eb\u2066c\x07\u200b"
NAME = "a\u202eb\u2066c\u200b"
"""The name of a column may turn the direction of writing; control characters are refused there."""
RAW = set(BAD) - set("abcJ12m[")
FORMULAS = [
    "=1+1",
    " =1+1",
    "\uff1d1+1",
    "+1",
    "-1",
    "@x",
    "|x",
    "\t=1",
    "\x1b=1",
    "x;=1",
    'x"; =1',
]


def quiet(text: str) -> bool:
    """Tell whether nothing of a text acts on a terminal."""
    return not RAW & set(text) and all(c.isprintable() or c == "\n" for c in text)


def hostile() -> Any:
    cells = np.array([(BAD, 1.0)] * 300, dtype=[("city", object), (NAME, float)])
    kinds = {"city": zd.category([BAD, "rome"]), NAME: zd.number(0, 2)}
    return zd.open(cells, columns=kinds, name="people")


@pytest.mark.parametrize("kind", [None, pd, pl], ids=["table", "pandas", "polars"])
def test_releases_their_plans_and_data_sets_print_no_control_characters(kind: Any) -> None:
    cells: Any = {"city": [BAD] * 300, NAME: [1.0] * 300}
    data: Any = hostile()
    if kind is not None:
        data = zd.open(kind.DataFrame(cells), columns=data.kinds)
    release = zd.table(data, by="city", of={NAME: ["mean", "median"]}, epsilon=1)
    shown = [
        repr(release),
        str(release.plan),
        str(release.error),
        release._repr_html_(),
        repr(data),
    ]
    shown += [release.certificate.explain(), repr(release.record), str(release.certificate)]
    for text in shown:
        assert quiet(text), repr(text)
    assert "\\u202e" in str(release.plan)
    found = zd.top_k([BAD] * 500, universe=[BAD, "b"], k=1, epsilon=9)
    assert quiet(repr(found))
    assert quiet(found._repr_html_())
    assert quiet(repr(zd.mode([BAD] * 500, universe=[BAD, "b"], epsilon=9)))


def test_schemas_print_none_and_can_be_read_again() -> None:
    odd = NAME + "\U000e0041"
    schema = zd.data.Schema(columns={odd: zd.category([odd, BAD])}, name="people")
    assert quiet(str(schema))
    assert zd.data.Schema.from_toml(str(schema)) == schema
    assert quiet(repr(schema))


def test_messages_of_errors_print_none() -> None:
    with pytest.raises(zd.errors.ParameterError) as refused:
        zd.mean(hostile(), BAD + "x", epsilon=1)
    assert quiet(str(refused.value))
    with pytest.raises(zd.errors.ZeroDeltaError) as said:
        raise zd.errors.CertificateError(f"the name {BAD} is not known.\nsee above")
    assert quiet(str(said.value))
    assert "\n" in str(said.value)


def test_a_hostile_file_prints_none(tmp_path: Path) -> None:
    """Whoever writes a file can compute its digest."""
    release = zd.mean(hostile(), NAME, by="city", epsilon=1)
    content = content_of(replace(release, error=BAD))
    content["value"]["table"]["note"] = BAD
    path = tmp_path / "release.json"
    path.write_text(json.dumps({**content, "digest": digest_of(content)}), encoding="utf-8")
    loaded = zd.load(path)
    shown = [repr(loaded), str(loaded.plan), str(loaded.error), loaded._repr_html_()]
    for text in (*shown, repr(loaded.value), loaded.value._repr_html_()):
        assert quiet(text), repr(text)
    assert "\n" in str(loaded.plan)
    for name, part in {BAD: 1, "plan": f"{BAD}\n", "error": BAD, "schema": BAD}.items():
        other = {**content, name: part}
        path.write_text(json.dumps({**other, "digest": digest_of(other)}), encoding="utf-8")
        with pytest.raises(zd.errors.ZeroDeltaError) as refused:
            zd.load(path)
        assert quiet(str(refused.value))


@pytest.mark.parametrize("more", [[], ["--json"], ["--dry-run"]], ids=str)
def test_commands_print_none(people: Path, more: list[str]) -> None:
    schema = people / "people.toml"
    odd = "rome\u202e\u009b"
    text = schema.read_text(encoding="utf-8").replace('"rome"', json.dumps(odd))
    schema.write_text(text.replace('name = "people"', f'name = "people {odd}"'), encoding="utf-8")
    code, output = run(*asked(people, "count", "-"), "--by", "city", "--out", people / "o", *more)
    assert not {"\u202e", "\u009b"} & set(output)
    if code == 0 and more == ["--json"]:
        assert odd in json.loads(output)["value"][0]["city"]
    written = people / "o" / "value.csv"
    if written.exists():
        assert not {"\u202e", "\u009b"} & set(written.read_text(encoding="utf-8"))


def starts(cell: str) -> list[str]:
    """How each cell begins that a program finds in this one, whatever its delimiter."""
    cells = [cell, *cell.split(";"), *cell.split(","), *cell.split("|"), *cell.split("\t")]
    return [unicodedata.normalize("NFKC", each.strip(' "')[:1]) for each in cells[1:]]


def test_no_cell_of_a_csv_file_is_run() -> None:
    text = csv_lines(["key", "count"], [[key, -3] for key in FORMULAS])
    lines = list(csv.reader(io.StringIO(text)))
    assert [line[1] for line in lines[1:]] == ["-3"] * len(FORMULAS)
    for cell, *_ in lines:
        assert not set("=+-@|%") & {c for c in starts(cell) if c}, cell
    assert all(line.startswith('"') and line.endswith('"') for line in text.splitlines())
    assert csv_lines(["a"], [["tea, a-b"], ["c; d"]]) == '"a"\n"tea, a-b"\n"c; d"\n'


def test_every_csv_file_of_a_value_has_one_escaping(people: Path) -> None:
    odd = "x;=1"
    schema = people / "people.toml"
    text = schema.read_text(encoding="utf-8").replace('"rome"', json.dumps(odd))
    schema.write_text(text, encoding="utf-8")
    words = [*asked(people, "count", "-"), "--by", "city", "--out", people / "o"]
    assert run(*words, "--ledger", people / "l.ledger", "--budget", 1)[0] == 0
    written = (people / "o" / "value.csv").read_text(encoding="utf-8")
    assert '"x;\'=1"' in written
    found = zd.top_k(["=1"] * 500, universe=["=1", odd], k=2, epsilon=9).value
    assert found.to_csv().splitlines()[1].startswith('"\'=1"')
    history = zd.Ledger(people / "l.ledger", data="people").history.to_csv()
    assert all(line.startswith('"') for line in history.splitlines())
