"""What a release of keys shows: keys with counts, and how many of them may be invented.

A published key is text that somebody chose, and a false key is an invented name: each way of
showing them escapes what a terminal, a browser or a spreadsheet would act on, and says the second.
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, overload

from zerodelta.data.columns import as_objects
from zerodelta.data.keys import KeySource
from zerodelta.data.kinds import Kind
from zerodelta.errors import printable
from zerodelta.exact.bits import BitSource
from zerodelta.exact.rational import Rational, as_positive
from zerodelta.mechanisms.key_noise import FOR_COUNTS, FOR_KEYS, Found, UnknownKeys
from zerodelta.privacy.parameters import Neighbors
from zerodelta.privacy.shown_release import csv_lines, noted
from zerodelta.privacy.steps import Part
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


# -- Unknown keys ---------------------------------------------------------------------------------
# Keys that nobody listed, planned for a list of their own or as the groups of a table (theory U).
#
# plan = plan_keys(source, epsilon=…, statistics=True) # before a row is read found =
# plan.apply(counts, bits) # the keys, in the universe's order groups, labels =
# plan.groups_of(found) # of the second part
#
# The keys cost ``plan.epsilon``, and what is left of ε is for statistics of the found keys and all
# others, for whom the found keys are public: the parts of one certificate add up. By the parallel
# lemma (P3) the second part is not divided over the groups.


@value
class KeysPlan:
    """Which keys are published, at what cost; made of public numbers by `plan_keys`."""

    mechanism: UnknownKeys
    kinds: Mapping[str, Kind]
    """What the columns of a key were declared as."""
    left: Fraction
    """What of ε is left for statistics of the found keys."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of a key."""
        return tuple(self.kinds)

    @property
    def epsilon(self) -> Fraction:
        """What the keys cost."""
        return self.mechanism.noise.epsilon

    @property
    def groups(self) -> int:
        """All groups there could be, and "other": what the steps of the second part state.

        Independent noise on all of them, of which those of the found keys are published: so the
        certificate can be issued before a key is found.
        """
        return self.mechanism.universe.size + 1

    @property
    def part(self) -> Part:
        """The part of a certificate for the keys."""
        return Part(steps=(self.mechanism.step(),), epsilon=self.epsilon)

    @property
    def error(self) -> float:
        """The expected absolute error of the count of a key that is published."""
        return self.mechanism.noise.error

    @property
    def half_found(self) -> int:
        """From which count on a key of the typical class is published more often than not."""
        steps = self.mechanism.thresholds
        middle = sorted(steps)[len(steps) // 2]
        return middle - self.mechanism.noise.median

    @property
    def warning(self) -> str:
        """How many of the keys may be invented, in words."""
        return self.labeled([]).warning

    @property
    def none_found(self) -> str:
        """What to say where no key was found."""
        return self.labeled([]).note

    def apply(self, counts: Mapping[Any, int], bits: BitSource) -> Found:
        """Return the keys that pass and their noisy counts, in the order of the universe.

        Not those that no cell is read to, such as "01", which is read as 1: they are surely false.
        """
        return [each for each in self.mechanism.apply(counts, bits) if self._occurs(each[0])]

    def _occurs(self, key: Any) -> bool:
        cells = key if len(self.kinds) > 1 else (key,)
        texts = ((k, c) for k, c in zip(self.kinds.values(), cells, strict=True) if type(c) is str)
        return all(kind.read(as_objects([cell]))[0] == cell for kind, cell in texts)

    def labeled(self, found: Found, *, most: int | None = None) -> FoundKeys:
        """Return the keys with their counts corrected by the median of the noise, largest first.

        At most so many of them.
        """
        universe, median = self.mechanism.universe, self.mechanism.noise.median
        pairs = [(universe.published(key), count - median) for key, count in _falling(found)]
        return FoundKeys(
            pairs=tuple(pairs[:most]),
            columns=self.columns,
            false_keys=self.mechanism.false_keys,
            found_from=max(1, self.half_found),
        )

    def groups_of(self, found: Found) -> tuple[dict[Any, int], list[tuple[Any, ...]]]:
        """Return the group of each key that was found, and the labels of all groups.

        The largest count first; the last group, "other", is for all other rows. A key that is
        called so is with them.
        """
        rest, groups = ("other",) * len(self.columns), {}
        labels: list[tuple[Any, ...]] = []
        for key, _ in _falling(found):
            shown = self.mechanism.universe.published(key)
            cells = shown if len(self.columns) > 1 else (shown,)
            if cells != rest:
                groups[key] = len(labels)
                labels.append(cells)
        return groups, [*labels, rest]


def _falling(found: Found) -> Found:
    """Return the largest noisy count first; equal ones in the order of the universe."""
    return sorted(found, key=lambda each: -each[1])


def plan_keys(
    source: KeySource,
    *,
    epsilon: Rational,
    statistics: bool = False,
    counts: bool = True,
    false_keys: Rational = "1/100",
    neighbors: Neighbors = Neighbors.REPLACE,
) -> KeysPlan:
    """Plan the keys of `by=` columns whose options are not listed.

    Parameters
    ----------
    source : KeySource
        The key columns of a data set.
    epsilon : number
        Of one row: for units the spine has divided it by the rows of a unit.
    statistics : bool
        Whether statistics of other columns are asked beside counts. Then the keys cost half of ε;
        else all of it, and their counts are what passed the thresholds: never worse than a second
        look at the counts.
    counts : bool
        Whether the counts are an answer, or only the keys are: how ε is divided between the
        directions of the noise.
    false_keys : number
        How many keys that do not occur may be published, on average.
    neighbors : Neighbors
        The relation of the data set.

    Returns
    -------
    KeysPlan
        `part` for the certificate, `apply` for the mechanism, `left` for the second part.

    """
    exact = as_positive(epsilon, "epsilon")
    spent = exact / 2 if statistics else exact
    mechanism = UnknownKeys.for_epsilon(
        epsilon=spent,
        universe=source.universe,
        false_keys=false_keys,
        wish=FOR_COUNTS if counts and not statistics else FOR_KEYS,
        neighbors=neighbors,
    )
    return KeysPlan(mechanism=mechanism, kinds=dict(source.kinds), left=exact - spent)
