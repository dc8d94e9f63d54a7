"""Which datasets count as neighbors; a pipeline never mixes two relations (theory, Conventions)."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from zerodelta.errors import GuaranteeError


class Neighbors(Enum):
    """The neighboring relation of a claim.

    REPLACE: same number of rows, one row changed; the number of rows is public (the default).
    ADD_REMOVE: one row more or less; the number of rows is private.
    """

    REPLACE = "replace"
    ADD_REMOVE = "add-remove"

    def __reduce__(self) -> tuple[object, ...]:  # as skops asks for it; pickle asks otherwise
        return type(self), (self.value,)


def common_neighbors(relations: Iterable[Neighbors]) -> Neighbors:
    """Return the one relation that all share, or refuse to mix them.

    >>> common_neighbors([Neighbors.REPLACE, Neighbors.REPLACE])
    <Neighbors.REPLACE: 'replace'>
    """
    found = set(relations)
    if len(found) != 1:
        raise GuaranteeError(
            "claims under different neighboring relations cannot be combined: found "
            f"{sorted(relation.value for relation in found) or 'none'}; state every claim for the "
            "same relation (a t-DP claim for add-remove is a 2t-DP claim for replace)."
        )
    return found.pop()
