"""What certificates of ours assume about rows and programs, in fixed sentences.

All other sentences under `assumed` are the premises of what a caller asserts. What every release
rests on and no program can know is not there: whoever approves has to ask for it (`to_ask`).
"""

from __future__ import annotations

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

UNCOUNTED = "no ledger counted its ε: somebody adds up all releases about the same people"
"""What is to be asked of a release that no ledger paid for."""


def to_ask(*, unit: str | None, counted: bool) -> tuple[str, ...]:
    """Return what must be true of every release, proven or not, and no program can see.

    >>> to_ask(unit="customer", counted=True)[1]
    'one person has one "customer" only'
    """
    alone = "one person is in one row only" if unit is None else f'one person has one "{unit}" only'
    return (
        "bounds, categories, hierarchies and the question were chosen without the rows",
        alone,
        *(() if counted else (UNCOUNTED,)),
    )
