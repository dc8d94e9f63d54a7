"""What certificates of ours assume about rows and programs, in fixed sentences.

All other sentences under `assumed` are the premises of what a caller asserts.
"""

from __future__ import annotations

__all__ = ["BARE_ROWS", "OUR_ASSUMPTIONS"]

BARE_ROWS = "column types and preparation were not computed from the rows"
"""What nobody can see of rows that arrive as an array or a frame."""

OUR_ASSUMPTIONS = frozenset(
    {
        BARE_ROWS,
        "the program reaches the data only through the study's questions",
        "nothing but the published value leaves the study",
        "the program did not stop, raise or fail to publish because of a hidden value",
    }
)
"""Sentences about what no library can enforce; the last three are those of a study's program."""
