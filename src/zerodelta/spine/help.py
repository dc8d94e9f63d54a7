"""What `help()` shows: what verbs, or estimators, have in common is written once.

A docstring that leaves out a parameter takes it over from another one: that of the verb that it is
like, then `STANDARD`. A class takes over attributes and notes, too, from those that it is made of.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Mapping

STANDARD = """\
Parameters
----------
by : str, list of str, or dict
    As for `table`: then the value is a table with a line for each group.
epsilon : number
    The pure ε of the release, as an int, a float, a Fraction or a text such as "1/2".
missing : "skip", None or number
    What a missing cell of a frame, list or array counts as: "skip" (nowhere, as in SQL; the default
    for frames), None (none is missing; if one is it counts as the middle of the bounds; the default
    for arrays, with less noise) or a number. A data set has it declared.
diagnostics : number, optional
    The share of ε, such as "1/100", for `release.diagnostics`: which fractions of the rows were
    used, clipped to the bounds, and unreadable. Of a data set; of other rows it may be refused.
ledger : Ledger, optional
    Whose budget is debited by ε before a row is read; that of the data set, too, if it has one.
again : bool, default False
    Whether to pay once more for a question that a data set's ledger has seen before.
"""
"""The parameters of most verbs."""


def completed(text: str | None, *others: str | None, parameters: Iterable[str]) -> str | None:
    r"""Return a docstring that says of each parameter what it is, in their order.

    >>> one = "Add.\n\nParameters\n----------\nb : int\n    Last.\n"
    >>> other = "Sum.\n\nParameters\n----------\na, b, c : int\n    A number.\n"
    >>> completed(one, other, parameters=["a", "b"]).split("\n")[4:]
    ['a : int', '    A number.', 'b : int', '    Last.']
    """
    if text is None:  # as under python -OO
        return None
    places = {name: place for place, name in enumerate(parameters)}
    sources = [inspect.cleandoc(other or "") for other in others]
    return _with(inspect.cleandoc(text), "Parameters", sources, places)


def inherited(text: str | None, *others: str | None, parameters: Iterable[str]) -> str | None:
    """Return the docstring of a class, with attributes and notes of its bases, too."""
    made = completed(text, *others, parameters=parameters)
    if made is None:
        return None
    sources = [inspect.cleandoc(other or "") for other in others]
    return _with_notes(_with(made, "Attributes", sources), sources)


_SECTIONS = ("Parameters", "Returns", "Attributes", "Notes", "Examples")


def _with(
    text: str, title: str, sources: list[str], wanted: Mapping[str, int] | None = None
) -> str:
    """Return the text with items of a section of the others: those that are wanted, in order."""
    items = _items(text, title)
    for source in sources:
        for names, told in _items(source, title):
            known = {name for each, _ in items for name in each}
            new = [n for n in names if n not in known and (wanted is None or n in wanted)]
            if wanted is not None:
                items += [([name], told) for name in new]
            elif new:
                items.append((new, told))
    if wanted is not None:
        items.sort(key=lambda item: wanted.get(item[0][0], len(wanted)))
    body = "\n".join(", ".join(names) + told for names, told in items)
    span = _span(text, title)
    if span is not None:
        return text[: span[0]] + body + text[span[1] :]
    following = "|".join(_SECTIONS[_SECTIONS.index(title) + 1 :])
    found = re.search(rf"^({following})\n-{{3,}}\n", text, re.MULTILINE)
    if found is None or not items:
        return text
    section = f"{title}\n{'-' * len(title)}\n{body}\n\n"
    return text[: found.start()] + section + text[found.start() :]


def _span(text: str, title: str) -> tuple[int, int] | None:
    """Return where the items of a section begin and end."""
    found = re.search(rf"^{title}\n-{{3,}}\n(.*?)(?=\n\n|\Z)", text, re.MULTILINE | re.DOTALL)
    return None if found is None else found.span(1)


def _items(text: str, title: str) -> list[tuple[list[str], str]]:
    """Return the items of a section: names, and what is said of them."""
    span = _span(text, title)
    if span is None:
        return []
    items = []
    for item in filter(None, re.split(r"\n(?=\S)", text[slice(*span)])):
        heading, _, said = item.partition("\n")
        names, colon, kind = heading.partition(" : ")
        items.append((names.split(", "), f"{colon}{kind}\n{said}"))
    return items


_NOTE = re.compile(r"^\*\*.*?(?=\n\*\*|\n\n|\Z)", re.MULTILINE | re.DOTALL)
_TOPIC = re.compile(r"\*\*(\w[\w ]*)\*\*")


def _with_notes(text: str, sources: list[str]) -> str:
    """Return the text with the notes of the others on topics that it has none on."""
    own = list(_NOTE.finditer(text))
    if not own:
        return text
    topics = {topic for note in own for topic in _topics(note[0])}
    added = ""
    for note in (note for source in sources for note in _NOTE.findall(source)):
        if not topics & {*_topics(note)}:
            topics |= {*_topics(note)}
            added += f"\n{note}"
    end = own[-1].end()
    return text[:end] + added + text[end:]


def _topics(note: str) -> list[str]:
    return _TOPIC.findall(note.partition(":")[0])
