"""Plan the release of keys that nobody listed, and show released keys with their counts (theory U).

A published key is text that a stranger may have chosen, and a false key is a name invented by
noise. So each way of showing keys escapes what a terminal, a browser or a spreadsheet would act on,
and says how many keys may be false.
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
from zerodelta.mechanisms.key_noise import FOR_COUNTS, FOR_KEYS, PublishedKeys, UnknownKeys
from zerodelta.privacy.parameters import Neighbors
from zerodelta.privacy.shown_release import csv_lines, noted
from zerodelta.privacy.steps import Part
from zerodelta.value import published, value

_SHOWN = 20


@published
@value(repr=False)
class FoundKeys(Sequence[tuple[Any, int]]):
    """Pairs (key, count), the largest count first; a key of several columns is a tuple.

    Parameters
    ----------
    pairs : tuple of (key, count)
        The keys that were found, with their counts. Indexing, iteration and `len` work on them.
    columns : tuple of str
        The names of the columns of a key.
    false_keys : float
        The expected number of these keys that do not occur in the data: names that noise invented.
        0 where all keys were public.
    found_from : int
        The count from which on a key is found more often than not. It follows from the threshold,
        which is public. 0 where all keys were public.

    """

    pairs: tuple[tuple[Any, int], ...]
    columns: tuple[str, ...] = ("key",)
    false_keys: float = 0.0
    found_from: int = 0

    @property
    def names(self) -> list[Any]:
        """The keys, the one with the largest count first."""
        return [key for key, _ in self.pairs]

    @property
    def counts(self) -> list[int]:
        """The noisy counts of the keys, the largest first."""
        return [count for _, count in self.pairs]

    @property
    def warning(self) -> str:
        """A sentence on how many keys may be invented; empty if all keys were public."""
        if not self.false_keys:
            return ""
        if self.false_keys < 1:
            lists = float(f"{1 / self.false_keys:.2g}")
            number = f"{lists:,.0f}" if lists < 1e9 else f"{lists:.2g}"
            return (
                f"about one of {number} such lists has a key that noise invented: it does not occur"
            )
        number = f"{self.false_keys:.2g}"
        return f"about {number} of these keys may be invented: noise made them, they do not occur"

    @property
    def note(self) -> str:
        """The warning or, for a list without keys, the count that a key needs to be found."""
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
        """Return the lines of a CSV file, with the warning in a column "note".

        A ' stands before each cell that a spreadsheet would run as a formula.
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
        """Return the keys and counts as an HTML table, escaped."""
        names = "".join(f"<th>{_for_browser(name)}</th>" for name in (*self.columns, "count"))
        rows = [
            f"<tr>{''.join(f'<td>{_for_browser(c)}</td>' for c in (*self._cells(key), count))}</tr>"
            for key, count in self.pairs
        ]
        note = f"<p>{_for_browser(self.note)}</p>" if self.note else ""
        return f"<table><tr>{names}</tr>{''.join(rows)}</table>{note}"

    def _cells(self, key: Any) -> tuple[Any, ...]:
        """Return the cells of a key, one for each column."""
        return key if len(self.columns) > 1 else (key,)


def _for_terminal(key: Any) -> str:
    """Return the `repr` of a key, which escapes characters that are not printable."""
    return repr(key)


def _for_browser(cell: Any) -> str:
    """Return a cell as escaped text of an HTML page.

    >>> _for_browser("<script>")
    '&lt;script&gt;'
    """
    return html.escape(printable(str(cell)))


# -- Keys that nobody listed, released as a list or as the groups of a table (theory U) -----------
#
#     plan = plan_keys(source, epsilon=…, statistics=True)   # before a row is read
#     found = plan.apply(counts, bits)                       # keys in the order of the universe
#     groups, labels = plan.groups_of(found)                 # for the statistics by group
#
# The keys cost ``plan.epsilon``. The remaining ε is for statistics of the found keys and of all
# other rows; the found keys are public by then, and the two parts of the certificate add up. By
# the parallel lemma (P3) the remaining ε is not divided over the groups.


@value
class KeysPlan:
    """The plan to publish keys that nobody listed; `plan_keys` makes it from public numbers."""

    mechanism: UnknownKeys
    kinds: Mapping[str, Kind]
    """The declared kinds of the columns of a key."""
    remaining_epsilon: Fraction
    """The part of ε for statistics of the found keys."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns of a key."""
        return tuple(self.kinds)

    @property
    def epsilon(self) -> Fraction:
        """The part of ε for the keys."""
        return self.mechanism.noise.epsilon

    @property
    def groups(self) -> int:
        """The number of possible groups, with "other": the steps of the second part state it.

        They are proved for independent noise on all of these groups, of which only the found ones
        are published. So the certificate is issued before a key is found.
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
    def found_from(self) -> int:
        """The count from which on a key of the typical class is found more often than not."""
        steps = self.mechanism.thresholds
        middle = sorted(steps)[len(steps) // 2]
        return middle - self.mechanism.noise.median

    @property
    def warning(self) -> str:
        """A sentence on how many of the keys may be invented."""
        return self.labeled([]).warning

    @property
    def no_keys_sentence(self) -> str:
        """The sentence for a release in which no key was found."""
        return self.labeled([]).note

    def apply(self, counts: Mapping[Any, int], bits: BitSource) -> PublishedKeys:
        """Return the keys that pass and their noisy counts, in the order of the universe.

        Keys that no cell can be read as are left out: "01", for example, is read as the number 1,
        so the key "01" would certainly be false.
        """
        passing = self.mechanism.apply(counts, bits)
        return [(key, count) for key, count in passing if self._can_occur(key)]

    def _can_occur(self, key: Any) -> bool:
        """Tell whether reading the cells of a key gives these cells again."""
        cells = key if len(self.kinds) > 1 else (key,)
        texts = ((k, c) for k, c in zip(self.kinds.values(), cells, strict=True) if type(c) is str)
        return all(kind.read(as_objects([cell]))[0] == cell for kind, cell in texts)

    def labeled(self, passing: PublishedKeys, *, maximum_keys: int | None = None) -> FoundKeys:
        """Return at most `maximum_keys` keys with the largest counts, less the noise's median."""
        universe, median = self.mechanism.universe, self.mechanism.noise.median
        pairs = [(universe.published(key), count - median) for key, count in _falling(passing)]
        return FoundKeys(
            pairs=tuple(pairs[:maximum_keys]),
            columns=self.columns,
            false_keys=self.mechanism.false_keys,
            found_from=max(1, self.found_from),
        )

    def groups_of(self, passing: PublishedKeys) -> tuple[dict[Any, int], list[tuple[Any, ...]]]:
        """Return the group of each found key, and the labels of all groups, largest count first.

        The last group, "other", is for all other rows, and for a found key with the text "other".
        """
        rest, groups = ("other",) * len(self.columns), {}
        labels: list[tuple[Any, ...]] = []
        for key, _ in _falling(passing):
            shown = self.mechanism.universe.published(key)
            cells = shown if len(self.columns) > 1 else (shown,)
            if cells != rest:
                groups[key] = len(labels)
                labels.append(cells)
        return groups, [*labels, rest]


def _falling(keys: PublishedKeys) -> PublishedKeys:
    """Return the largest noisy count first; equal ones in the order of the universe."""
    return sorted(keys, key=lambda pair: -pair[1])


def plan_keys(
    source: KeySource,
    *,
    epsilon: Rational,
    statistics: bool = False,
    counts: bool = True,
    false_keys: Rational = "1/100",
    neighbors: Neighbors = Neighbors.REPLACE,
) -> KeysPlan:
    """Plan the release of the keys of `by=` columns whose options are not listed.

    Parameters
    ----------
    source : KeySource
        The key columns of a data set.
    epsilon : number
        The ε for one row: for units the spine has divided it by the rows of a unit.
    statistics : bool
        Whether statistics of other columns are released besides counts. Then the keys cost half of
        ε. Otherwise they cost all of it, and their counts are the noisy counts that passed the
        thresholds, which err no more than counts from a second draw.
    counts : bool
        Whether the counts are released too, or only the keys. It decides how ε is divided between
        the directions of the noise.
    false_keys : number
        The expected number of published keys that do not occur.
    neighbors : Neighbors
        The relation of the data set.

    Returns
    -------
    KeysPlan
        Its `part` is for the certificate, `apply` is the mechanism, and `remaining_epsilon` is for
        the statistics.

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
    return KeysPlan(mechanism=mechanism, kinds=dict(source.kinds), remaining_epsilon=exact - spent)
