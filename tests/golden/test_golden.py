"""Every public release is, under replayed bits, what it was when it was last written.

The integers handed to the noise, the noisy ones, value, forecast, intervals, certificate, record.
A change that is meant is written with `python tests/golden/write.py [name...]`, and reviewed as a
difference of files.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import zerodelta as zd
from golden import golden
from golden.channels import ELSEWHERE
from golden.description import described, plain
from golden.golden import CASES, FILES, WRITE, asked, differences, made, stored
from golden.papers import INNER
from golden.rows import NUMBERS
from golden.seams import NoiseOfMean, Tape, purifiers, replayed, spied
from golden.sources import SOURCES
from golden.write import chosen

NO_RELEASE = {"ApproxDP", "PureDP"}
"""What has an ε, and neither makes a release nor a plan."""


@pytest.mark.parametrize("name", CASES)
def test_a_release_is_what_it_was(name: str) -> None:
    found = differences(name)
    assert not found, "\n".join(["", *found, f"if that is meant: {WRITE} '{name}'"])


def test_what_is_stored_is_a_case() -> None:
    for file, cases in FILES.items():
        assert golden._read(file).keys() == cases.keys(), f"run: {WRITE}"


# -- completeness: found by walking, so that what is new is missed here ----------------------------


def _verbs() -> list[str]:
    """All that has an ε, or is paid for by a ledger."""
    public = {name: getattr(room, name) for room in golden.PUBLIC for name in room.__all__}
    return [
        name
        for name, called in sorted(public.items())
        if name not in NO_RELEASE and callable(called) and name != "open"
        if {"epsilon", "ledger"} & inspect.signature(called).parameters.keys()
    ]


def _of_paper() -> list[str]:
    """All flat names, and the functions of the files that have none."""
    flat = [name for name in dir(zd.paper) if callable(getattr(zd.paper, name))]
    known = {getattr(zd.paper, name) for name in flat}
    files = {name: getattr(zd.paper, name) for name in dir(zd.paper) if name not in flat}
    return flat + [
        f"{file}.{name}"
        for file, module in files.items()
        for name, called in vars(module).items()
        if inspect.isfunction(called) and called.__module__ == module.__name__
        if called not in known and not name.startswith("_") and name not in INNER
    ]


PUBLIC = [
    *_verbs(),
    *(f"sklearn.{name}" for name in sorted(zd.sklearn.__all__)),
    *(f"paper.{name}" for name in _of_paper()),
]


@pytest.mark.parametrize("name", PUBLIC)
def test_everything_public_has_a_golden_release(name: str) -> None:
    place = name.partition(".")[0] if "." in name else "verbs"
    file = {"sklearn": "estimators", "paper": "papers"}.get(place, "verbs")
    assert any(case.partition(", ")[0] == name for case in CASES), (
        f"{name} has no golden release: add one to tests/golden/{file}.py, then {WRITE} '{name}'"
    )


def _with_methods() -> list[str]:
    return [name for name in PUBLIC if "method" in inspect.signature(asked(name)[0]).parameters]


def _offered(called: Callable[..., Any], case: Callable[..., Any]) -> set[str]:
    """Return the methods that a refusal offers."""
    with pytest.raises(zd.errors.ParameterError, match="method = 'no such method'") as refused:
        case(called, method="no such method")
    offer = str(refused.value).partition("expected")[2]
    return set(re.findall(r"""['"]([a-z-]+)['"]""", offer)) - {"auto"}


@pytest.mark.parametrize("name", _with_methods())
def test_every_method_has_a_golden_release(name: str) -> None:
    called, _ = asked(name)
    cases = [case for case in CASES if case.partition(", ")[0] == name]
    bare = [case for case in cases if f"{case}, method=" in "\n".join(cases)]
    offered: set[str] = set()
    for case in bare:
        offered |= _offered(called, CASES[case])
    assert offered, f"no case of {name} in tests/golden is made by with_methods"
    missing = offered - {case.partition(", method=")[2] for case in cases}
    assert not missing, (
        f"{name} offers {sorted(missing)}, of which there is no golden release: name it in "
        f"`with_methods` of a case of {name}, then {WRITE} '{name}'"
    )


@pytest.mark.parametrize("channel", purifiers())
def test_every_channel_has_a_golden_release(channel: str) -> None:
    remedy = "add a case to tests/golden/channels.py, or name one in its ELSEWHERE"
    planned = [case for case in CASES if case.startswith(f"plan, {channel}")]
    name = ELSEWHERE.get(channel, *planned[:1])
    assert name is not None, f"{channel} has no golden release: {remedy}"
    assert channel in _asked(name), f"{name} does not ask {channel}: {remedy}"


def _asked(name: str) -> set[str]:
    called, options = asked(name)
    with replayed(name), spied(lambda handed: None) as seen:
        CASES[name](called, **options)
    return seen


# -- the net itself -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", SOURCES)
def test_every_kind_of_source_makes_the_same_release(kind: str) -> None:
    def told(kind: str) -> dict[str, Any]:
        kept = stored(f"mean, from {kind}")
        named = ("sums", "handed", "forecast")  # a value is a frame of the source's kind
        return {field: kept[field] for field in kept if field.startswith(named)}

    assert told(kind) == told("arrow")
    assert told(kind)["handed"]


def test_what_is_new_and_has_none_is_named_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    for case in ("mean, method=laplace", "sklearn.PCA, method=max", "plan, GridMix"):
        monkeypatch.delitem(CASES, case)
    for case in [case for case in CASES if case.startswith(("median", "plan, GridMix"))]:
        monkeypatch.delitem(CASES, case)
    missing: list[tuple[Callable[[str], None], str, str]] = [
        (test_everything_public_has_a_golden_release, "median", "verbs.py, then python"),
        (test_every_method_has_a_golden_release, "mean", "'laplace'"),
        (test_every_method_has_a_golden_release, "sklearn.PCA", "'max'"),
        (test_every_channel_has_a_golden_release, "GridMix", "channels.py"),
    ]
    for test, name, remedy in missing:
        with pytest.raises(AssertionError, match=f"(?s){name}.*{remedy}"):
            test(name)
    test_every_method_has_a_golden_release("covariance")


def _changed(monkeypatch: pytest.MonkeyPatch, case: Callable[..., Any]) -> list[str]:
    monkeypatch.setitem(CASES, "mean", case)
    return [line.partition(" · ")[2].partition("\n")[0] for line in differences("mean")]


def test_a_row_that_counts_otherwise_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = NUMBERS.copy()
    rows[0, 0] = 1.0
    seen = _changed(monkeypatch, lambda f: f(rows, bounds=(0, 1), epsilon=1))
    assert {"handed", "sums 0", "value"} <= set(seen)
    assert "part 1 of 1, step 1 of 1" not in seen


def test_another_noise_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = NoiseOfMean.noise
    monkeypatch.setattr(
        NoiseOfMean, "noise", lambda self, count, bits: drawn(self, count, bits) + 1
    )
    seen = [line.partition(" · ")[2].partition("\n")[0] for line in differences("mean")]
    assert {"sums 0", "value"} <= set(seen)
    assert "handed" not in seen


def test_a_difference_names_case_field_and_both_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CASES, "mean", lambda f: f(NUMBERS, bounds=(0, 1), epsilon=2))
    (line,) = [each for each in differences("mean") if each.startswith("mean · summary\n")]
    assert re.fullmatch(r"mean · summary\n  old: .*ε = 1,.*\n  new: .*ε = 2,.*", line)


def test_what_was_never_stored_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CASES, "mean, new", CASES["mean"])
    monkeypatch.setitem(FILES["verbs"], "mean, new", CASES["mean"])
    assert differences("mean, new") == [
        "mean, new: was never stored; run: python tests/golden/write.py 'mean, new'"
    ]


def test_only_what_is_named_is_written(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    before = golden._STORED
    for path in before.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    monkeypatch.setattr(golden, "_STORED", tmp_path)
    for name in ("mean", "sum"):
        monkeypatch.setitem(FILES["verbs"], name, lambda f: f(NUMBERS, bounds=(0, 1), epsilon=2))
        monkeypatch.setitem(CASES, name, FILES["verbs"][name])
    assert golden.write(["mean"]) == ["mean"]
    old, new = ((each / "verbs.json").read_text(encoding="utf-8") for each in (before, tmp_path))
    assert json.loads(old)["sum"] == json.loads(new)["sum"]
    assert (
        json.loads(new)["mean"]["record parameters"] != json.loads(old)["mean"]["record parameters"]
    )
    assert len(new.splitlines()) == len(old.splitlines())  # a line for each field
    assert 0 < sum(a != b for a, b in zip(old.splitlines(), new.splitlines(), strict=True)) < 16


def test_a_case_that_fails_keeps_its_release_and_is_named(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "verbs.json"
    path.write_bytes((golden._STORED / path.name).read_bytes())
    before = path.read_bytes()
    monkeypatch.setattr(golden, "_STORED", tmp_path)
    monkeypatch.setitem(CASES, "count, public", lambda f: f())
    with pytest.raises(RuntimeError, match="not written:\ncount, public: TypeError"):
        golden.write(["count, public"])
    assert path.read_bytes() == before


def test_a_name_stands_for_the_cases_that_begin_with_it() -> None:
    assert set(chosen(["std"])) == {"std", "std, array", "std, unit", "std, add-remove"}
    assert chosen([]) == list(CASES)
    with pytest.raises(SystemExit, match="meen"):
        chosen(["meen"])


def test_the_tape_is_one_stream_however_it_is_read() -> None:
    whole, parts = Tape("a"), Tape("a")
    assert whole.read(9000) == b"".join(parts.read(size) for size in (1, 0, 4095, 16, 4888))
    assert Tape("a").read(8) != Tape("b").read(8)


def test_values_that_differ_are_written_differently() -> None:
    numbers = [
        0.1,
        0.1 + 2**-55,
        np.float32(0.1),
        1,
        1.0,
        True,
        "1",
        np.array([1]),
        np.array([1.0]),
    ]
    texts = [json.dumps(plain(each)) for each in numbers]
    assert len(set(texts)) == len(numbers)
    with pytest.raises(TypeError, match="address"):
        plain(object())


def test_of_a_release_nothing_is_kept_that_differs_each_time() -> None:
    texts = {json.dumps(described(zd.count(NUMBERS, epsilon=1), [])) for _ in range(2)}
    assert len(texts) == 1
    assert made("mean") == made("mean")
