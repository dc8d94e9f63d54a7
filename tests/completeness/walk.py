"""The package as it is: every class, every sampler, and every place where random bits become draws.

Nothing here is a list. What is found is held against tables of tests; what is missing there is told
with the file in which to add it.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cache
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

import zerodelta as zd
from zerodelta.data.arrays import reader_of
from zerodelta.data.readers import Reader
from zerodelta.exact.bits import BitSource

TESTS = Path(__file__).resolve().parent.parent
STEPS = ("step", "steps", "proof_step")
"""What holds the certificate's step of a mechanism."""
DRAWS = {"apply", "draft", "draw", "noised", "publish", "select"}
"""What the method is called by which a mechanism publishes, whatever it draws from."""

_ROOM = BitSource.__module__.rpartition(".")[0] + "."
"""Where samplers are: everything beside the bits."""
_BITS = {name for name in vars(BitSource) if not name.startswith("_")}


def modules() -> list[ModuleType]:
    """Import and return all modules of the package."""
    names = [found.name for found in pkgutil.walk_packages(zd.__path__, "zerodelta.")]
    return [importlib.import_module(name) for name in names if not name.endswith("__main__")]


def own(module: ModuleType) -> Iterator[Any]:
    """Yield the classes and functions that a module defines."""
    for found in vars(module).values():
        here = getattr(found, "__module__", None) == module.__name__
        if here and (inspect.isclass(found) or inspect.isfunction(found)):
            yield found


def classes() -> list[type]:
    return [found for module in modules() for found in own(module) if inspect.isclass(found)]


def subclasses(base: type) -> list[type]:
    """Return all classes of the package that can be made, and are of this one."""
    return [each for each in classes() if issubclass(each, base) and not inspect.isabstract(each)]


def _takes_bits(function: Any) -> bool:
    if not inspect.isfunction(function):
        return False
    return any(
        name == "bits" and "int" not in str(parameter.annotation)
        for name, parameter in inspect.signature(function).parameters.items()
    )


def draws(kind: type) -> list[str]:
    """Return the methods of a class that are handed random bits, or with a step publish."""
    found = {name: inspect.getattr_static(kind, name) for name in dir(kind)}
    own = DRAWS if _has_a_step(kind) else set()
    return [
        name
        for name, method in found.items()
        if _takes_bits(method) or (name in own and inspect.isfunction(method))
    ]


def mechanisms() -> list[type]:
    """Return every class that states the step of a certificate, and draws or publishes."""
    return [
        kind
        for kind in classes()
        if not inspect.isabstract(kind) and not getattr(kind, "_is_protocol", False) and draws(kind)
        if _has_a_step(kind)
    ]


@cache
def _names() -> frozenset[str]:
    """Return every name that the package uses, definitions aside."""
    trees = (ast.parse(Path(str(each.__file__)).read_text(encoding="utf-8")) for each in modules())
    nodes = [node for tree in trees for node in ast.walk(tree)]
    used = {node.id for node in nodes if isinstance(node, ast.Name)}
    return frozenset(used | {node.attr for node in nodes if isinstance(node, ast.Attribute)})


def is_used(kind: type) -> bool:
    """Tell whether the package makes one anywhere; what nothing publishes with has no release."""
    return kind.__name__ in _names()


def _has_a_step(kind: type) -> bool:
    return any(hasattr(kind, name) or name in _annotated(kind) for name in STEPS)


def _annotated(kind: type) -> set[str]:
    return {name for each in kind.__mro__ for name in vars(each).get("__annotations__", {})}


def samplers() -> list[Any]:
    """Return all functions and classes of the room of samplers that are handed random bits."""
    return [
        found
        for module in modules()
        if module.__name__.startswith(_ROOM)
        for found in own(module)
        if not found.__name__.startswith("_")
        if (draws(found) if inspect.isclass(found) else _takes_bits(found))
    ]


def drawing() -> list[Any]:
    """Return every function and class outside that room that itself asks a sampler, or for bits.

    All others can only hand bits on, so whatever is drawn is drawn by one of these. Those that ask
    another generator than the library's bits are among them too, in whatever room they are.
    """
    known = frozenset(map(id, samplers()))
    return [found for module in modules() for found in _drawing_in(module, known)]


@cache
def _drawing_in(module: ModuleType, known: frozenset[int]) -> list[Any]:
    space, found = vars(module), []
    names = {name for name, value in space.items() if id(value) in known}
    here = None if module.__name__.startswith(_ROOM) else names
    for node in ast.parse(inspect.getsource(module)).body if module.__file__ else []:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and _asks(node, here):
            found.append(space[node.name])
        elif isinstance(node, (ast.Assign, ast.AnnAssign, ast.Expr)) and _asks(node, here):
            found.append(module)  # at the top of a module nothing is drawn
    return found


def _asks(tree: ast.AST, names: Collection[str] | None) -> bool:
    """Tell whether a sampler is asked, by one of its `names`, or bits, or another generator."""
    for node in _code(tree):
        if _is_a_generator(node):
            return True
        if names is None:
            continue
        if isinstance(node, ast.Name) and node.id in names:
            return True
        if isinstance(node, ast.Attribute) and node.attr in _BITS and _is_bits(node.value):
            return True
    return False


_GENERATORS = {"default_rng", "RandomState", "SystemRandom", "rvs", "urandom", "getrandom"}
_MODULES = {"random", "secrets"}
"""Generators other than the library's bits: of NumPy, SciPy, torch, Python, the system."""


def _is_a_generator(node: ast.AST) -> bool:
    if isinstance(node, ast.Import):
        return any(each.name.partition(".")[0] in _MODULES for each in node.names)
    if isinstance(node, ast.ImportFrom):
        return node.module in _MODULES or _is_named({each.name for each in node.names})
    if isinstance(node, ast.Attribute):
        of = ast.unparse(node.value)
        foreign = of in {"np", "numpy", "torch"} and node.attr.startswith("rand")
        return foreign or of in _MODULES or _is_named({node.attr})
    return isinstance(node, ast.Name) and _is_named({node.id})


def _is_named(names: set[str]) -> bool:
    return bool(names & (_GENERATORS | {"uuid4"}))


def _is_bits(node: ast.AST) -> bool:
    return bool(re.search(r"(\b|_)bits$|Bits\(\)$", ast.unparse(node)))


def _code(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield all nodes but those of annotations."""
    yield tree
    for name, value in ast.iter_fields(tree):
        if name not in ("annotation", "returns"):
            for node in value if isinstance(value, list) else [value]:
                if isinstance(node, ast.AST):
                    yield from _code(node)


# -- readers --------------------------------------------------------------------------------------


def readers() -> list[Any]:
    """Return every function that says it returns a reader."""
    functions = (each for module in modules() for each in own(module) if inspect.isfunction(each))
    return [each for each in functions if each.__annotations__.get("return") == Reader.__name__]


def readers_of(sources: Iterable[Callable[[Path], Any]], folder: Path) -> set[Any]:
    """Return the readers by which these sources are read, each written to a folder of its own."""
    called: set[Any] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            called.add(frame.f_code)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        for place, source in enumerate(sources):
            (folder / str(place)).mkdir()
            reader_of(source(folder / str(place)))
    finally:
        sys.setprofile(before)
    return {each for each in readers() if each.__code__ in called}


# -- tables ---------------------------------------------------------------------------------------


def name_of(found: Any) -> str:
    return f"{found.__module__}.{found.__qualname__}"


def missing(found: Iterable[Any], table: Collection[Any], *, file: str, name: str) -> list[str]:
    """Return a line for each thing that has no entry, and says where to add it."""
    return [
        f"{name_of(each)} is in no exact test: add it to {name} in {file}"
        for each in found
        if each not in table
    ]


def is_test(address: str) -> bool:
    """Tell whether "folder/test_file.py::test_name" is a test."""
    path, _, test = address.partition("::")
    file = TESTS / path
    if not file.is_file() or not test.startswith("test_"):
        return False
    body = ast.parse(file.read_text(encoding="utf-8")).body
    return any(isinstance(node, ast.FunctionDef) and node.name == test for node in body)
