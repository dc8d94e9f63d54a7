"""A saved value is what its own noisy sums give, and lies where its verb puts it, or is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.lib.recfunctions as rfn
import pytest
from typer.testing import CliRunner

import zerodelta as zd
from zerodelta.cli import app
from zerodelta.cli.verify_files import UNSIGNED
from zerodelta.privacy.release_file import CLASSES
from zerodelta.privacy.steps import digest_of
from zerodelta.privacy.written_values import check_value, read_value, written

SAID = "does not follow from its own noisy sums and bounds"


def people(**options: Any) -> Any:
    table = np.zeros(200, dtype=[("age", float), ("pay", float), ("city", "U4"), ("id", int)])
    table = rfn.append_fields(table, "town", np.full(200, "rome"), usemask=False)
    table["age"], table["pay"] = np.arange(200) % 97, np.arange(200) ** 2
    table["city"], table["id"] = np.where(np.arange(200) % 3, "oslo", "rome"), np.arange(200) // 2
    kinds = {
        "age": zd.number(0, 120),
        "pay": zd.number("-1e6", "1e6", missing=None),
        "city": zd.category(["oslo", "rome"]),
        "town": zd.category(["oslo"], other=True, missing=True),
    }
    return zd.open(table, columns=kinds, **options)


OF: dict[str, Any] = {
    "age": ["mean", "std", "sum", "count", {"quantiles": [0.1, 0.5]}],
    "pay": ["mean", "variance"],
}
VERBS: dict[str, Callable[..., Any]] = {
    "mean": lambda d, e: zd.mean(d, "age", epsilon=e),
    "means": lambda d, e: zd.mean(d, ["age", "pay"], epsilon=e),
    "means of whole rows": lambda d, e: zd.mean(d[["pay", "age"]], data_norm=9, epsilon=e),
    "means by city": lambda d, e: zd.mean(d, "age", by="city", epsilon=e),
    "sums": lambda d, e: zd.sum(d, ["age", "pay"], epsilon=e),
    "variance": lambda d, e: zd.variance(d, "pay", epsilon=e),
    "stds": lambda d, e: zd.std(d, ["age", "pay"], epsilon=e),
    "count": lambda d, e: zd.count(d, "age", epsilon=e),
    "counts": lambda d, e: zd.count(d, by="city", epsilon=e),
    "counts of all rows": lambda d, e: zd.count(d, by="town", epsilon=e),
    "table of all rows": lambda d, e: zd.table(d, by="town", of={"pay": "mean"}, epsilon=e),
    "items of all rows": lambda d, e: zd.histogram(d, "town", epsilon=e),
    "bins": lambda d, e: zd.histogram(d, "pay", bins=[0, 10, 99], epsilon=e),
    "histogram": lambda d, e: zd.histogram(d, "city", epsilon=e),
    "median": lambda d, e: zd.median(d, "pay", epsilon=e),
    "quantiles": lambda d, e: zd.quantiles(d, "age", q=[0.1, 0.9], epsilon=e),
    "cdf": lambda d, e: zd.cdf(d, "pay", at=[0, 500, 9000], epsilon=e),
    "covariance": lambda d, e: zd.covariance(d, ["age", "pay"], epsilon=e),
    "correlation": lambda d, e: zd.correlation(d, ["age", "pay"], epsilon=e),
    "table": lambda d, e: zd.table(d, by="city", of=OF, epsilon=e),
    "table of all": lambda d, e: zd.table(d, of={"pay": ["mean", "median"]}, epsilon=e),
}
RELATIONS: dict[str, dict[str, Any]] = {
    "rows": {},
    "add-remove": {"neighbors": "add-remove", "expected_rows": 150},
    "units": {"unit": "id", "max_rows": 2, "units": 100},
}


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("epsilon", ["1/100000", "1/20", "1", "500"])
def test_no_value_that_was_released_is_refused(verb: str, relation: str, epsilon: str) -> None:
    """Whatever the noise does: counts below 0, ratios beyond the bounds, no positive matrix."""
    data = people(**RELATIONS[relation])
    for each in (data, data.where("age >= 50")):
        release = VERBS[verb](each, epsilon)
        assert release.record is not None
        check_value(read_value(written(release.value), CLASSES), release.sums, release.record)


@pytest.mark.parametrize("norm", [1, 2, float("inf")])
@pytest.mark.parametrize("missing", ["skip", None])
@pytest.mark.parametrize("epsilon", ["1/100000", "1/100", "1"])
def test_nor_a_mean_of_rows_in_a_ball(norm: Any, missing: Any, epsilon: str) -> None:
    rows = np.random.default_rng(3).normal(size=(300, 4))
    for each in (rows, rows[:, 0]):
        release = zd.mean(each, data_norm=2, norm=norm, missing=missing, epsilon=epsilon)
        assert release.record is not None
        check_value(release.value, release.sums, release.record)


@pytest.mark.parametrize(
    "ends", [("1e9", "1000000000.001"), (2**53, 2**53 + 7), (10**20, 10**20 + 1)]
)
@pytest.mark.parametrize("epsilon", ["1e-8", "1/100", "1000"])
def test_nor_spreads_of_a_column_far_from_0(ends: Any, epsilon: str) -> None:
    """Its bounds are rounded as floats by more than a spread is."""
    rows = np.linspace(float(ends[0]), float(ends[1]), 300)
    pairs = np.column_stack([rows, rows[::-1]])
    lists: Any = [[ends[0], ends[0]], [ends[1], ends[1]]]
    for release in (
        zd.variance(rows, bounds=ends, epsilon=epsilon),
        zd.std(rows, bounds=ends, epsilon=epsilon),
        zd.std(pairs, bounds=lists, epsilon=epsilon),
        zd.covariance(pairs, bounds=lists, epsilon=epsilon),
    ):
        assert release.record is not None
        check_value(release.value, release.sums, release.record)


def test_nor_a_variance_between_ends_that_are_one_float() -> None:
    for _ in range(40):  # each is 0 with probability 1/2 at most
        release = zd.variance([1e20] * 9, bounds=(10**20, 10**20 + 1), epsilon="1e-8")
        assert release.record is not None
        check_value(release.value, release.sums, release.record)


@pytest.mark.parametrize("by", ["pay_q4", "pay_mean"])
def test_nor_a_table_by_a_column_that_is_named_like_a_statistic(by: str) -> None:
    """A key may be a text, or a number out of the bounds of the column that it seems to be of."""
    table = np.zeros(200, dtype=[("pay", float), ("pay_q4", "U4"), ("pay_mean", int)])
    table["pay"], table["pay_mean"] = np.arange(200) % 100, 5000 + np.arange(200) % 2
    table["pay_q4"] = np.where(np.arange(200) % 3, "low", "high")
    kinds: dict[str, Any] = {
        "pay": zd.number(0, 100),
        "pay_q4": zd.category(["low", "high"]),
        "pay_mean": zd.category([5000, 5001]),
    }
    data = zd.open(table, columns=kinds)
    for release in (
        zd.count(data, by=by, epsilon=1),
        zd.table(data, by=by, of={"pay": ["variance", "sum"]}, epsilon=1),
    ):
        assert release.record is not None
        check_value(read_value(written(release.value), CLASSES), release.sums, release.record)


def saved(release: Any, folder: Path) -> Any:
    release.save(folder / "release.json")
    return json.loads((folder / "release.json").read_text(encoding="utf-8"))


def sealed(data: Any, **changes: Any) -> str:
    """What a forger writes who knows the format: with a digest of what it says now."""
    content = {n: part for n, part in {**data, **changes}.items() if n != "digest"}
    return json.dumps({**content, "digest": digest_of(content)})


def verdict(folder: Path, text: str) -> tuple[int, str]:
    """Return what the command says; `zd.load` refuses the same."""
    path = folder / "forged.json"
    path.write_text(text, encoding="utf-8")
    result = CliRunner().invoke(app, ["verify", str(path)])
    if result.exit_code:
        with pytest.raises(zd.errors.RecordError):
            zd.load(path)
    else:
        zd.load(path)
    return result.exit_code, result.output


def moved(value: Any) -> Any:
    """Return a written value whose first number is another one, in the same range."""
    if isinstance(value, (int, float)):
        return value * 0.9 + 5000 if isinstance(value, float) else value + 1000
    if "array" in value:
        cells = [moved(value["cells"][0]), *value["cells"][1:]]
        return {**value, "cells": cells}
    (name, first), *others = value["table"]["numbers"]
    return {"table": {**value["table"], "numbers": [[name, moved(first)], *others]}}


@pytest.mark.parametrize(
    "verb", sorted(VERBS.keys() - {"median", "quantiles", "cdf", "covariance", "correlation"})
)
def test_a_value_that_its_sums_do_not_give_is_refused(verb: str, tmp_path: Path) -> None:
    data = saved(VERBS[verb](people(**RELATIONS["add-remove"]), 1), tmp_path)
    assert verdict(tmp_path, sealed(data))[0] == 0
    code, output = verdict(tmp_path, sealed(data, value=moved(data["value"])))
    assert code == 1, data["value"]
    assert SAID in output
    for odd in ("30", None, True, {"tuple": [30.0]}, {"float": "nan"}):
        assert verdict(tmp_path, sealed(data, value=odd))[0] == 1


@pytest.mark.parametrize("verb", ["median", "quantiles", "cdf", "covariance", "correlation"])
def test_nor_is_a_value_of_another_kind_where_only_its_range_is_known(
    verb: str, tmp_path: Path
) -> None:
    """What is no number, or vector of numbers, is in no range."""
    data = saved(VERBS[verb](people(), 1), tmp_path)
    flat = {"array": "float64", "shape": [0], "cells": []}
    cell = {"array": "float64", "shape": [1], "cells": [5e6]}
    table = {"table": {"keys": [["k", ["x"]]], "numbers": [["n", cell]], "note": "5 million"}}
    odd = ("30", "0.5", None, True, [5e6], {"tuple": [0.5]}, {"float": "nan"}, flat, table)
    texts = {"array": "text", "shape": [2], "cells": ["0.1", "0.5"]}
    for value in (*odd, texts, {"dict": [["a", 0.5]]}, {"date": "2026-11-19"}):
        assert SAID in verdict(tmp_path, sealed(data, value=value))[1], value


@pytest.mark.parametrize("verb", ["mean", "histogram", "table", "covariance"])
@pytest.mark.parametrize(
    ("name", "number"),
    [
        *(("scale", {"fraction": text}) for text in ("0/1", "-1/1")),
        *(("unit", {"fraction": text}) for text in ("0/1", "-1/1")),
        *(("dimension", odd) for odd in (0, -1, 100, 10**9, 10**18, 1.5, True)),
    ],
    ids=str,
)
def test_noise_that_nothing_draws_is_refused(
    verb: str, name: str, number: Any, tmp_path: Path
) -> None:
    """Its tails would be looked for until the memory is full, or for ever."""
    data = saved(VERBS[verb](people(), 1), tmp_path)
    law = data["sums"][-1]["law"]["fields"]
    assert name in law
    law[name] = number
    assert "the noise laws cannot be read" in verdict(tmp_path, sealed(data))[1]


@pytest.mark.parametrize("verb", ["mean", "histogram", "table", "covariance"])
def test_sums_of_a_statistic_that_nobody_knows_are_refused(verb: str, tmp_path: Path) -> None:
    """Else only `interval` would find out, and raise what is no error of ours."""
    data = saved(VERBS[verb](people(), 1), tmp_path)
    for sums in data["sums"]:
        for rows in ("mean", True, 1.5):
            was, sums["rows"] = sums["rows"], rows
            assert "the noise laws cannot be read" in verdict(tmp_path, sealed(data))[1]
            sums["rows"] = was
        for _, about in sums["statistics"]["dict"]:
            was, about["tuple"][1] = about["tuple"][1], "nonsense"
            assert "the noise laws cannot be read" in verdict(tmp_path, sealed(data))[1]
            about["tuple"][1] = was


def test_every_statistic_of_a_table_is_held_to_its_sums(tmp_path: Path) -> None:
    release = zd.table(people(), by="city", of={"pay": ["mean", "std", "sum"]}, epsilon=1)
    data = saved(release, tmp_path)
    numbers = data["value"]["table"]["numbers"]
    assert len(numbers) == 8
    for place, (name, column) in enumerate(numbers):
        if name.endswith("_error"):
            continue
        other = [*numbers[:place], [name, moved(column)], *numbers[place + 1 :]]
        table = {"table": {**data["value"]["table"], "numbers": other}}
        assert SAID in verdict(tmp_path, sealed(data, value=table))[1], name
        table["table"]["numbers"] = [*numbers[:place], *numbers[place + 1 :]]
        assert verdict(tmp_path, sealed(data, value=table))[0] == 1, name


BEYOND: dict[str, tuple[Callable[..., Any], Any, Any]] = {
    "median": (VERBS["median"], 1e6, 1000001.0),
    "quantiles": (
        VERBS["quantiles"],
        {"array": "float64", "shape": [2], "cells": [0.0, 120.0]},
        {"array": "float64", "shape": [2], "cells": [-0.1, 120.0]},
    ),
    "cdf": (
        VERBS["cdf"],
        {"array": "float64", "shape": [3], "cells": [0.0, 0.5, 1.0]},
        {"array": "float64", "shape": [3], "cells": [0.0, 0.5, 0.4]},
    ),
    "correlation": (
        VERBS["correlation"],
        {"array": "float64", "shape": [2, 2], "cells": [1.0, 0.9, 0.9, 1.0]},
        {"array": "float64", "shape": [2, 2], "cells": [1.0, 1.1, 1.1, 1.0]},
    ),
    "covariance": (
        VERBS["covariance"],
        {"array": "float64", "shape": [2, 2], "cells": [3600.0, 1.0, 1.0, 1e12]},
        {"array": "float64", "shape": [2, 2], "cells": [3601.0, 1.0, 1.0, 1e12]},
    ),
}


@pytest.mark.parametrize("case", BEYOND)
def test_what_a_verb_projects_is_held_to_its_range(case: str, tmp_path: Path) -> None:
    verb, inside, beyond = BEYOND[case]
    data = saved(verb(people(), 1), tmp_path)
    assert verdict(tmp_path, sealed(data, value=inside))[0] == 0
    assert SAID in verdict(tmp_path, sealed(data, value=beyond))[1]


def test_a_quantile_of_a_table_is_held_to_the_bounds_of_its_column(tmp_path: Path) -> None:
    release = zd.table(people(), by="city", of={"pay": ["median"]}, epsilon=1)
    data = saved(release, tmp_path)
    numbers = dict(data["value"]["table"]["numbers"])
    for most, code in ((1e6, 0), (1000001.0, 1)):
        numbers["pay_median"]["cells"][0] = most
        table = {**data["value"]["table"], "numbers": list(map(list, numbers.items()))}
        assert verdict(tmp_path, sealed(data, value={"table": table}))[0] == code


def test_a_sum_and_a_filtered_count_may_lie_anywhere(tmp_path: Path) -> None:
    """Their noise is not projected: at a tiny ε most are outside of what rows could give."""
    for verb in ("sums", "count"):
        releases = [VERBS[verb](people().where("age < 0"), "1/100000") for _ in range(20)]
        outside = [each for each in releases if np.min(each.value) < 0]
        assert outside, "a chance of 2^-20"
        saved(outside[0], tmp_path)
        assert CliRunner().invoke(app, ["verify", str(tmp_path / "release.json")]).exit_code == 0
        (tmp_path / "release.json").unlink()


def test_a_forger_who_changes_value_and_sums_is_not_found_and_the_command_says_so(
    tmp_path: Path,
) -> None:
    data = saved(zd.mean(people(), "age", epsilon=1), tmp_path)
    code, output = verdict(tmp_path, sealed(data, value=99.0, sums=[]))
    assert code == 0
    assert UNSIGNED in output
    assert "whoever changes the file can compute a new digest, value and noisy sums" in output
    assert "belong together" not in output
