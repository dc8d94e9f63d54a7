"""One line of the paper map: a label of the paper, what it says, where it is, what tests it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, final

__all__ = ["Entry", "Kind"]

Kind: TypeAlias = Literal[
    "algorithm", "theorem", "corollary", "lemma", "assumption", "example", "figure", "table"
]


@final
@dataclass(frozen=True, slots=True)
class Entry:
    """A statement of the paper and its home here.

    A target is ``module:name``, or ``docs/page.md#anchor`` for what is only used in proofs; a test
    is ``tests/path.py::name``. "unlabeled: …" stands for what has no label in the paper.
    """

    label: str
    kind: Kind
    statement: str
    targets: tuple[str, ...]
    tests: tuple[str, ...]
    errata: tuple[str, ...] = ()
