"""Replace samplers and other functions of the library by name, wherever it holds them.

No test says in which file a sampler is or who imports it: when a file moves nothing changes here.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias
from unittest.mock import patch

import zerodelta as zd

_PACKAGE = Path(str(zd.__file__)).parent
_SAMPLERS = "zerodelta.exact."

Replace: TypeAlias = Callable[[str, Any], None]
"""What the fixture `replace` is: replace a name until the test ends."""


@contextmanager
def replaced(changes: Mapping[str, Any]) -> Iterator[None]:
    """Replace each name: `"function"`, `"Class.method"` or `"module.name"`.

    A bare function is replaced in every module that imports or defines it. Samplers that call one
    another stay as they are, unless their module is named.
    """
    with ExitStack() as stack:
        for name, replacement in changes.items():
            for owner, attribute in holders(name):
                stack.enter_context(patch.object(owner, attribute, replacement))
        yield


def holders(name: str) -> list[tuple[Any, str]]:
    """Return the classes and modules that hold what has this name, and what they call it."""
    owner, _, attribute = name.rpartition(".")
    found = _owners(owner, attribute) if owner else _importers(attribute)
    assert found, f"nothing in the package is called {name}"
    things = {id(getattr(each, attribute)) for each in found}
    assert len(things) == 1, f"{name} is more than one thing: say module.{name}"
    if owner:
        return [(each, attribute) for each in found]
    modules = [each for each in _mentioning(attribute) if not each.__name__.startswith(_SAMPLERS)]
    return [
        (module, held)
        for module in modules
        for held, thing in vars(module).items()
        if id(thing) in things
    ]


def _owners(name: str, attribute: str) -> list[Any]:
    modules = _called(name)
    classes = [vars(each).get(name) for each in _mentioning(name) + modules]
    found = [each for each in classes if isinstance(each, type)] or modules
    return [each for each in dict.fromkeys(found) if hasattr(each, attribute)]


def _importers(name: str) -> list[Any]:
    modules = [each for each in _mentioning(name) if callable(vars(each).get(name))]
    return [each for each in modules if not each.__name__.startswith(_SAMPLERS)]


def _called(name: str) -> list[ModuleType]:
    paths = [path for path in _texts() if path.stem == name]
    return [_imported(path) for path in paths]


@cache
def _mentioning(name: str) -> list[ModuleType]:
    word = re.compile(rf"\b{re.escape(name)}\b")
    return [_imported(path) for path, text in _texts().items() if word.search(text)]


@cache
def _texts() -> dict[Path, str]:
    paths = sorted(_PACKAGE.rglob("*.py"))
    return {path: path.read_text(encoding="utf-8") for path in paths if path.stem != "__main__"}


def _imported(path: Path) -> ModuleType:
    parts = path.relative_to(_PACKAGE.parent).with_suffix("").parts
    return importlib.import_module(".".join(part for part in parts if part != "__init__"))
