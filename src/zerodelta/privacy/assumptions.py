"""What certificates of ours assume about rows and programs, in fixed sentences.

All other sentences under `assumed` are the premises of what a caller asserts.
"""

from __future__ import annotations

__all__ = ["BARE_ROWS", "OUR_ASSUMPTIONS", "PROGRAM", "UNGUARDED"]

BARE_ROWS = "column types and preparation were not computed from the rows"
"""What nobody can see of rows that arrive as an array or a frame."""

PROGRAM = (
    "the program reaches the data only through the study's questions",
    "nothing but the published value leaves the study",
)
"""What no library can enforce of a study's program."""

UNGUARDED = "the program did not stop, raise or fail to publish because of an internal answer"
"""What can only be enforced inside `Study.run` or a `with` block."""

OUR_ASSUMPTIONS = frozenset({BARE_ROWS, *PROGRAM, UNGUARDED})
