"""Convert docstrings for the site: doctests become code, extra paragraphs get a section.

What verbs and estimators have in common is written once (`zerodelta.spine.verbs`), so what `help()`
shows is asked of the objects themselves, and so are their parameters.
"""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from typing import Any

import griffe

_HEADER = re.compile(r"^(\w[\w ]*)\n-{3,}$", re.MULTILINE)
_DOCTEST = re.compile(r"(?:^|(?<=\n))((?:>>> [^\n]*(?:\n(?!\n)[^\n]+)*\n?)+)")


def shown(text: str) -> str:
    r"""Return a docstring with fenced doctests, and with a section after what it returns.

    >>> print(shown("Add.\n\n>>> 1 + 1\n2\n"))
    Add.
    <BLANKLINE>
    ```pycon
    >>> 1 + 1
    2
    ```
    <BLANKLINE>
    """
    parts = _HEADER.split(text)
    sections = [_fenced(parts[0])]
    for name, body in zip(parts[1::2], parts[2::2], strict=True):
        if name in ("Parameters", "Returns", "Yields", "Raises", "Attributes"):
            items, rest = _cut(body)
            sections.append(f"{name}\n{'-' * len(name)}{items}")
            if rest:
                sections.append(f"\nNotes\n-----\n{_fenced(rest)}\n")
        else:
            plain = body if name == "Examples" else _fenced(body)
            sections.append(f"{name}\n{'-' * len(name)}{plain}")
    return "".join(sections)


def _cut(body: str) -> tuple[str, str]:
    """Return the items of a section, and the paragraphs that follow without being indented."""
    end = re.search(r"\n\n(?=\*\*|>>> )", body)
    return (body, "") if end is None else (body[: end.start()] + "\n", body[end.end() :])


def _fenced(text: str) -> str:
    return _DOCTEST.sub(lambda match: f"```pycon\n{match[1].rstrip()}\n```\n", text)


def runtime(obj: Any) -> Any:
    """Return the function or class itself; None for what is within one, or needs an extra."""
    if not (obj.is_function or obj.is_class) or not obj.parent.is_module:
        return None
    try:
        return getattr(import_module(obj.parent.path), obj.name, None)
    except ImportError:
        return None


class Docstrings(griffe.Extension):
    """Rewrites each docstring when it is loaded, and the parameters of what a decorator changed."""

    def on_instance(self, *, obj: Any, **_: Any) -> None:
        """Change one docstring."""
        if obj.docstring is None:
            return
        thing = runtime(obj)
        text = inspect.getdoc(thing) if thing is not None else None
        obj.docstring.value = shown(text or obj.docstring.value)
        if "__signature__" in getattr(thing, "__dict__", {}):
            parameters = inspect.signature(thing).parameters
            known = {parameter.name: parameter for parameter in obj.parameters}
            obj.parameters = griffe.Parameters(
                *(
                    known[name] if name in known else _added(parameter)
                    for name, parameter in parameters.items()
                )
            )


def _added(parameter: inspect.Parameter) -> griffe.Parameter:
    kind = getattr(griffe.ParameterKind, parameter.kind.name.lower())
    annotation, default = str(parameter.annotation), repr(parameter.default)
    return griffe.Parameter(parameter.name, annotation=annotation, kind=kind, default=default)
