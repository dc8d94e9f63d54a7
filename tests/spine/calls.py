"""Which functions of the package call something by a name: what structure is asserted of."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import zerodelta as zd

PACKAGE = Path(zd.__file__).resolve().parent


def calls(name: str) -> dict[str, list[str]]:
    """Return the functions that call something by this name, for each file of the package."""
    return _calls().get(name, {})


@cache
def _calls() -> dict[str, dict[str, list[str]]]:
    found: dict[str, dict[str, list[str]]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        file, inside = path.relative_to(PACKAGE).as_posix(), dict[ast.AST, str]()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):  # outer ones first
            own = node.name if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) else None
            for child in ast.iter_child_nodes(node):
                inside[child] = own or inside.get(node, "")
            if isinstance(node, ast.Call):
                called = getattr(node.func, "id", getattr(node.func, "attr", ""))
                found.setdefault(called, {}).setdefault(file, []).append(inside[node])
    return found
