"""What a release of keys shows: keys with counts, and how many of them may be invented.

A published key is text that somebody chose, and a false key is an invented name: each way of
showing them escapes what a terminal, a browser or a spreadsheet would act on, and says the second.
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from typing import Any, overload

from zerodelta.errors import printable
from zerodelta.privacy.written_csv import csv_lines, noted
from zerodelta.value import value

_SHOWN = 20


@value(repr=False)
class FoundKeys(Sequence[tuple[Any, int]]):
    """Pairs (key, count), the largest count first; a key of several columns is a tuple.

    Parameters
    ----------
    pairs : tuple of (key, count)
        What was found. A list of them is all that indexing, iteration and `len` see.
    columns : tuple of str
        The names of the columns of a key.
    false_keys : float
        How many of the keys do not occur in the data, on average: names that noise invented. 0
        where all keys were public.
    found_from : int
        The count from which on a key is found more often than not: it follows from the threshold,
        which is public. 0 where all keys were public.

    """

    pairs: tuple[tuple[Any, int], ...]
    columns: tuple[str, ...] = ("key",)
    false_keys: float = 0.0
    found_from: int = 0

    @property
    def names(self) -> list[Any]:
        """The keys, that of the largest count first."""
        return [key for key, _ in self.pairs]

    @property
    def counts(self) -> list[int]:
        """Their noisy counts."""
        return [count for _, count in self.pairs]

    @property
    def warning(self) -> str:
        """How many of the keys may be invented, in words; empty if all keys were public."""
        if not self.false_keys:
            return ""
        if self.false_keys < 1:
            lists = float(f"{1 / self.false_keys:.2g}")
            many = f"{lists:,.0f}" if lists < 1e9 else f"{lists:.2g}"
            return (
                f"about one of {many} such lists has a key that noise invented: it does not occur"
            )
        number = f"{self.false_keys:.2g}"
        return f"about {number} of these keys may be invented: noise made them, they do not occur"

    @property
    def note(self) -> str:
        """The warning; of a list without keys, what count a key needs to be found."""
        if self.pairs or not self.found_from:
            return self.warning
        return f"no key was found: half of those with about {self.found_from:,} rows are"

    @overload
    def __getitem__(self, place: int) -> tuple[Any, int]: ...

    @overload
    def __getitem__(self, place: slice) -> tuple[tuple[Any, int], ...]: ...

    def __getitem__(self, place: int | slice) -> Any:
        return self.pairs[place]

    def __len__(self) -> int:
        return len(self.pairs)

    def __iter__(self) -> Iterator[tuple[Any, int]]:
        return iter(self.pairs)

    def to_dict(self) -> dict[str, list[Any]]:
        """Return the columns of keys and "count", for a frame: `pandas.DataFrame(…)`."""
        return {
            **{
                name: [self._cells(k)[i] for k in self.names] for i, name in enumerate(self.columns)
            },
            "count": self.counts,
        }

    def to_csv(self) -> str:
        """Return the lines of a CSV file; ' stands before what a spreadsheet would run.

        A column "note" has the warning.
        """
        columns = noted(self.to_dict(), self.note)
        return csv_lines(columns, zip(*columns.values(), strict=True))

    def __repr__(self) -> str:
        shown = [f"  {_for_terminal(key)}: {count}" for key, count in self.pairs[:_SHOWN]]
        more = len(self.pairs) - _SHOWN
        shown += [f"  … and {more} more"] if more > 0 else []
        shown += [f"  ({self.note})"] if self.note else []
        return "\n".join([f"FoundKeys of {len(self.pairs)} keys", *shown])

    def _repr_html_(self) -> str:
        names = "".join(f"<th>{_for_browser(name)}</th>" for name in (*self.columns, "count"))
        rows = [
            f"<tr>{''.join(f'<td>{_for_browser(c)}</td>' for c in (*self._cells(key), count))}</tr>"
            for key, count in self.pairs
        ]
        note = f"<p>{_for_browser(self.note)}</p>" if self.note else ""
        return f"<table><tr>{names}</tr>{''.join(rows)}</table>{note}"

    def _cells(self, key: Any) -> tuple[Any, ...]:
        return key if len(self.columns) > 1 else (key,)


def _for_terminal(key: Any) -> str:
    """Return a key as Python writes it, which escapes what is not printable."""
    return repr(key)


def _for_browser(cell: Any) -> str:
    """Return a cell as text of a page.

    >>> _for_browser("<script>")
    '&lt;script&gt;'
    """
    return html.escape(printable(str(cell)))
