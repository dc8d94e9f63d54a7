"""The package as a user meets it: public surface, import time, command line, examples."""

from __future__ import annotations

import ast
import inspect
import os
import pickle
import pkgutil
import re
import runpy
import subprocess
import sys
from enum import Enum
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import zerodelta
from public_names import public_names
from zerodelta.errors import ParameterError, ZeroDeltaError

ROOT = Path(__file__).resolve().parent.parent


def modules() -> list[ModuleType]:
    walked = pkgutil.walk_packages(zerodelta.__path__, "zerodelta.")
    return [import_module(info.name) for info in walked if info.name != "zerodelta.__main__"]


def test_all_is_the_public_surface() -> None:
    assert set(dir(zerodelta)) == {*zerodelta.__all__, *zerodelta.ROOMS}
    assert all(hasattr(zerodelta, name) for name in dir(zerodelta))
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = zerodelta.no_such_name


def test_tools_are_told_what_runs() -> None:
    """A type checker reads imports that Python never runs."""
    (unrun,) = (
        node
        for node in ast.parse(Path(str(zerodelta.__file__)).read_text(encoding="utf-8")).body
        if isinstance(node, ast.If)
    )
    told = {
        name.asname: str(node.module).removeprefix("zerodelta.")
        for node in unrun.body
        if isinstance(node, ast.ImportFrom) and node.module != "zerodelta"
        for name in node.names
    }
    assert told == zerodelta._HOME


def test_purify_is_callable_before_and_after_its_package_is_loaded() -> None:
    code = (
        "import zerodelta as zd\n"
        "options = dict(space=zd.Finite(4), claim=zd.GaussianDP('0.1'), epsilon=1)\n"
        "zd.purify(1, **options)\n"
        "import zerodelta.channels.mixes\n"
        "assert zd.verify(zd.purify(1, **options).certificate)\n"
        "assert zd.purify is zd.purify\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_no_public_function_takes_a_seed() -> None:
    """But for that of the splits of a forest: they are public, and no noise is drawn from it."""
    for module in modules():
        for name in public_names(module):
            thing = getattr(module, name)
            own_init = inspect.isclass(thing) and not issubclass(thing, Exception)
            if inspect.isfunction(thing) or (own_init and not issubclass(thing, dict)):
                parameters = set(inspect.signature(thing).parameters)
                if name == "RandomForestClassifier":
                    parameters -= {"random_state"}
                if name == "ForestQuestion":
                    parameters -= {"seed"}
                assert not parameters & {"seed", "random_state", "rng", "generator"}, name


def test_only_rooms_and_public_addresses_list_their_names() -> None:
    public = {"zerodelta.errors", *(f"zerodelta.{name}" for name in zerodelta.ROOMS)}
    found = [module.__name__ for module in modules() if hasattr(module, "__all__")]
    rooms = {module.__name__ for module in modules() if hasattr(module, "__path__")}
    assert set(found) <= public | rooms


def by_hand(kind: type) -> str:
    """Return why a dataclass is not made by `@value`, or nothing."""
    source = inspect.getsource(kind)
    (decorator,) = re.findall(r"^@dataclass(?:\((.*)\))?$", source, re.M)
    reasons = {
        "it changes": "frozen" not in decorator,
        "it has a constructor of its own": "init=False" in decorator,
        "it takes arguments by place": "kw_only" not in decorator,
        "others are made of it": bool(kind.__subclasses__()),
        "it remembers what it computes": "@cached_property" in source,
        "slots know no super()": "super()" in source,
    }
    return ", ".join(reason for reason, holds in reasons.items() if holds)


def test_what_only_holds_values_is_a_value() -> None:
    kinds = [
        kind
        for module in modules()
        if "\n@dataclass" in Path(str(module.__file__)).read_text(encoding="utf-8")
        for kind in vars(module).values()
        if inspect.isclass(kind) and kind.__module__ == module.__name__
        if re.search(r"(?m)^@dataclass\b", inspect.getsource(kind))
    ]
    assert {"GaussianDP", "KernelMix", "Plan"} <= {kind.__name__ for kind in kinds}
    found = [f"{kind.__module__}.{kind.__name__}" for kind in kinds if not by_hand(kind)]
    assert not found, f"write @value from zerodelta.value instead of @dataclass: {found}"


HEAVY = {
    *("dp_accounting", "duckdb", "flint", "matplotlib", "narwhals", "numpy", "opacus"),
    *("opendp", "pandas", "polars", "pyarrow", "scipy", "skl2onnx", "sklearn", "skops"),
    "torch",
}


def test_import_loads_nothing_heavy() -> None:
    code = "import sys, zerodelta; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "zerodelta" in loaded
    assert not loaded & HEAVY


def test_errors_survive_pickling() -> None:
    error = ParameterError("scale", -1, expected="a positive number", remedy="pass scale=1")
    copy = pickle.loads(pickle.dumps(error))
    assert isinstance(copy, ParameterError)
    assert str(copy) == str(error)


def test_every_error_is_a_zerodelta_error() -> None:
    for name in zerodelta.errors.__all__:
        assert issubclass(getattr(zerodelta.errors, name), ZeroDeltaError)
    assert issubclass(ParameterError, ValueError)


def test_long_values_are_shortened_in_messages() -> None:
    error = ParameterError("rows", list(range(1000)), expected="less", remedy="pass less")
    assert len(str(error)) < 200


def ran(
    script: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str
) -> str:
    """Run a script in this process, which has imported everything; return what it printed."""
    monkeypatch.setattr(sys, "argv", [str(script), *words])
    monkeypatch.syspath_prepend(str(script.parent))
    runpy.run_path(str(script), run_name="__main__")
    out, err = capsys.readouterr()
    assert err == ""
    return out


@pytest.mark.parametrize("script", sorted(path.name for path in (ROOT / "examples").glob("*.py")))
def test_examples_run(
    script: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ran(ROOT / "examples" / script, monkeypatch, capsys)


GALLERY = sorted(path.name for path in (ROOT / "examples" / "gallery").glob("*.py"))


@pytest.mark.parametrize("script", [name for name in GALLERY if name != "gallery_pictures.py"])
def test_the_gallery_runs_and_draws(
    script: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Without Spark, whose start alone takes longer than all of them."""
    monkeypatch.setenv("GALLERY", str(tmp_path))
    monkeypatch.delitem(sys.modules, "gallery_pictures", raising=False)
    ran(ROOT / "examples" / "gallery" / script, monkeypatch, capsys, "--without-spark")
    (picture,) = tmp_path.iterdir()
    assert picture.name == f"{Path(script).stem}.svg"
    assert "<svg" in picture.read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_gallery_runs_on_spark(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "gallery" / "parquet_and_spark.py")],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "GALLERY": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr
    assert "Spark: mean bmi" in done.stdout or "Spark: skipped" in done.stdout


PUBLIC_ADDRESSES = frozenset(
    {
        *("sklearn", "models", "queries", "paper", "lower_bounds", "audit", "data", "interop"),
        *("errors", "purification", "records"),
    }
)


def test_examples_and_docs_import_from_public_addresses() -> None:
    """The errata demonstrate what happens inside, so they may look there."""
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "examples").rglob("*.py")]
    found = [
        f"{page.name}: {room}"
        for page in pages
        if page.name != "errata.md"
        for room in re.findall(
            r"^\s*(?:>>> )?(?:from|import) zerodelta\.(\w+)", page.read_text("utf-8"), re.M
        )
        if room not in PUBLIC_ADDRESSES
    ]
    assert found == []


def test_every_public_address_lists_what_it_offers() -> None:
    for name in ("models", "queries", "purification", "records"):
        module = getattr(zerodelta, name)
        assert module.__all__ == list(dict.fromkeys(module.__all__))
        assert all(hasattr(module, each) for each in module.__all__)


def documented() -> list[tuple[str, Any]]:
    """Every public function and class, and the paper's functions by name."""
    found = {
        f"{module.__name__}.{name}": getattr(module, name)
        for module in (zerodelta, *(getattr(zerodelta, name) for name in DOCUMENTED_ROOMS))
        for name in module.__all__
    }
    for name in dir(zerodelta.paper):
        thing = getattr(zerodelta.paper, name)
        inside = {
            f"{name}.{part}": getattr(thing, part)
            for part in (public_names(thing) if inspect.ismodule(thing) else [])
        }
        named = {name: thing, **{k: v for k, v in inside.items() if is_a_mechanism(v)}}
        found |= {f"zerodelta.paper.{key}": value for key, value in named.items()}
    return [(name, thing) for name, thing in sorted(found.items()) if has_parameters(thing)]


DOCUMENTED_ROOMS = ("sklearn", "models", "queries", "purification", "records", "lower_bounds")


def is_a_mechanism(thing: Any) -> bool:
    """Whether it releases something for a privacy parameter, and is no link of another."""
    hints = thing.__annotations__ if inspect.isfunction(thing) else {}
    return hints.get("return") == "Release" and bool(hints.keys() & {"epsilon", "rho"})


def has_parameters(thing: Any) -> bool:
    if inspect.isclass(thing):
        return not issubclass(thing, (BaseException, Enum))
    return inspect.isfunction(thing)


def parameters_section(thing: Any) -> set[str]:
    """Return the names in the numpydoc section "Parameters", of "a, b : type" both."""
    found = re.search(
        r"^Parameters\n-{10}\n(.*?)(?=\n\n|\Z)", inspect.getdoc(thing) or "", re.M | re.S
    )
    headings = re.findall(r"^\S.*", found[1], re.M) if found else []
    return {name.strip(" *") for line in headings for name in line.split(" : ")[0].split(",")}


@pytest.mark.parametrize(("name", "thing"), documented())
def test_every_parameter_of_a_public_name_can_be_looked_up(name: str, thing: Any) -> None:
    asked = inspect.signature(thing).parameters.values()
    taken = {each.name for each in asked if each.kind is not each.VAR_KEYWORD}
    assert taken <= parameters_section(thing), name


def test_undocumented_parameters_are_seen() -> None:
    def mute(first: int, second: int) -> None:
        """Add.

        Parameters
        ----------
        first : int
            A number, and second : int is not a line of its own.

        """

    assert parameters_section(mute) == {"first"}
    assert parameters_section(documented) == set()
    assert {"zerodelta.mean", "zerodelta.purification.PureDP", "zerodelta.paper.dp_sgd"} <= dict(
        documented()
    ).keys()
