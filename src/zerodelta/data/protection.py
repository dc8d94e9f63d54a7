"""Who is protected by a release from these rows, under which relation, and what that assumes."""

from __future__ import annotations

from zerodelta.data.account import Account
from zerodelta.privacy.neighbors import Neighbors
from zerodelta.value import value


@value
class Protection:
    """What a source says of its rows: one row of an array or frame, unless stated otherwise."""

    row: str | None = None
    """What a row is, such as "one line of the file"; None if the question says it better."""
    unit: str | None = None
    max_rows: int = 1
    """How many rows of one unit count."""
    neighbors: Neighbors = Neighbors.REPLACE
    bare: bool = True
    """Whether rows came as an array, a list or a frame that the caller may have prepared."""
    premise: str | None = None
    """What code that we did not write is asserted to do, if it yields the rows."""
    accounts: tuple[Account, ...] = ()
    """Who pays for a release from these rows."""

    @property
    def words(self) -> str | None:
        """Who is protected, for the certificate."""
        if self.unit is None:
            return self.row
        rows = "its one row" if self.max_rows == 1 else f"at most {self.max_rows} of its rows"
        return f"one {self.unit}, {rows}"
