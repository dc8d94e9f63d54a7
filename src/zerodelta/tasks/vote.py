"""Any choice at all, made on many small blocks of rows, each of which has one vote (theory Votes).

Nothing has to be known of how the choice is made: a row is in one block, so it moves one vote. All
rows of a unit are in one block, so a unit does, too (V3).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from zerodelta.data.arrays import DEFAULT_MISSING
from zerodelta.data.dataset import Dataset
from zerodelta.data.fake import fake
from zerodelta.data.interrupts import quietly
from zerodelta.data.row_queries import public_rows
from zerodelta.data.rows import Rows
from zerodelta.data.rowwise import Block
from zerodelta.errors import ParameterError, is_list, require
from zerodelta.exact.bits import BitSource
from zerodelta.exact.integers import uniform_below
from zerodelta.exact.rational import Rational, as_count
from zerodelta.mechanisms.diagnostics import diagnosis
from zerodelta.mechanisms.selection import PermuteAndFlip
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.parameters import as_usable_epsilon
from zerodelta.privacy.release import Release
from zerodelta.privacy.step import Status
from zerodelta.spine.facts import Facts
from zerodelta.spine.paying import Paying, debited
from zerodelta.spine.public_inputs import as_source
from zerodelta.spine.release_plan import ReleasePlan
from zerodelta.spine.run import ask
from zerodelta.study.rehearsal import rows_to_try
from zerodelta.tasks.vote_or_study import LEAST_ROWS, blocks_for, can_decide
from zerodelta.value import value

if TYPE_CHECKING:
    from typing_extensions import Unpack

CHOICE = (
    "choose(rows) sees one block at a time: it keeps no state, shares no random generator and "
    "shows nothing"
)
_MOST_BLOCKS = 1 << 20


@debited
def vote(
    data: Any,
    choose: Callable[[Block], Any],
    columns: str | Sequence[str] | None = None,
    *,
    options: Sequence[Hashable],
    blocks: int | None = None,
    least_rows: int = LEAST_ROWS,
    epsilon: Rational,
    example: Any = None,
    missing: Any = DEFAULT_MISSING,
    diagnostics: Rational | None = None,
    bits: BitSource | None = None,
    **paying: Unpack[Paying],
) -> Release:
    """Release the option that most blocks of rows choose, whatever the way in which they do.

    Use it if the choice is made by code whose sensitivity nobody knows: cross-validation, a test, a
    solver. For options with one score that is a mean over rows see `select_model`, which needs
    fewer rows, and weighs a vote where models are trained.

    Parameters
    ----------
    data : data set, array, frame or Source
        The rows.
    choose : callable
        ``choose(rows)`` is handed one block, an array with the columns in their order (codes for
        categories, NaN for what is missing), and returns one of the options. If it fails, or
        returns anything else, that is a vote for the first option.
    columns : str or list of str, optional
        Which columns of a data set or a frame.
    options : list
        All that can be chosen. Public.
    blocks : int, optional
        Into how many blocks the rows are dealt, each row (or unit) by its own draw. By default
        8(ln K + 1)/ε for K options, at least 3, at most one for each `least_rows` rows.
    least_rows : int
        How many rows a block needs, on average, for a useful choice.
    epsilon : number
        The privacy loss, as an int, a float, a Fraction or a text such as "1/2".
    example : array, optional
        Public made-up rows on which `choose` is tried first, where its mistakes show; by default
        some within the declared bounds.
    missing : "skip", None or number
        What a missing cell of a frame or an array is read as; a data set has it declared.
    diagnostics : number, optional
        The share of ε, such as "1/100", for `release.diagnostics`, of a data set.
    bits : BitSource
        Replayed bits for tests; never for data.

    Returns
    -------
    Release
        Its value is one of the options.

    Notes
    -----
    **Guarantee**: pure ε-DP (theory Votes, C10.1), caller-asserted: `choose` sees one block, and
    nothing of the others.
    **Neighbors**: replace-one, or what the data set says; add-remove costs the same.
    **Error**: how many votes the winner may be behind, on average, in the closest race.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> rows = rng.normal([0.0, 1.0, 0.5], 1.0, size=(20_000, 3))
    >>> def largest(block):
    ...     return int(block.mean(axis=0).argmax())
    >>> vote(rows, largest, options=range(3), epsilon=1).value
    1

    """
    source = as_source(data, columns, missing=missing)
    question = VoteQuestion(
        choose=choose,
        options=tuple(options) if is_list(options) else (),
        blocks=blocks,
        least_rows=least_rows,
        by_unit=source.by_unit is not None,
    )
    given = example is not None
    question.tried(rows_to_try(source.columns, None, None, example) if given else made_up(source))
    beside = diagnosis(diagnostics, source)
    return ask(question, source, epsilon=epsilon, bits=bits, beside=beside)


@value
class VoteQuestion:
    """The option that most blocks choose is asked."""

    choose: Callable[[Block], Any]
    options: tuple[Hashable, ...]
    blocks: int | None = None
    least_rows: int = LEAST_ROWS
    by_unit: bool = False
    """Whether all rows of a unit are dealt to one block, by one draw."""

    def __post_init__(self) -> None:
        remedy = "pass choose=lambda rows: …"
        require(callable(self.choose), "choose", self.choose, "a function of rows", remedy)
        try:
            distinct = len(set(self.options)) == len(self.options) >= 1
        except TypeError:
            distinct = False
        require(
            distinct,
            "options",
            self.options,
            expected="different values that can be keys of a dictionary",
            remedy="pass a list of names or numbers",
        )

    def plan(self, facts: Facts, epsilon: Rational) -> ReleasePlan[Rows]:
        """Choose the number of blocks, and calibrate permute-and-flip on the votes."""
        exact = as_usable_epsilon(epsilon)
        facts.rows_in_memory(2 * 8 * facts.width)
        blocks = self._blocks(facts, exact)
        flip = PermuteAndFlip.for_epsilon(epsilon=exact, sensitivity=1, neighbors=facts.neighbors)

        def answer(rows: Rows, bits: BitSource) -> Any:
            dealt = rows.by_unit() if self.by_unit else rows
            assert dealt is not None  # known from the source
            found, width = list(dealt.blocks()), len(dealt.columns)
            votes = self.votes(found, width, blocks, bits, drop=rows.may_miss)
            return self.options[flip.select(votes, bits)]

        return ReleasePlan(
            claim=PureDP(flip.epsilon, neighbors=facts.neighbors),
            steps=(replace(flip.step(), status=Status.ASSERTED),),
            answer=answer,
            error=self._forecast(flip.error(len(self.options)), blocks, exact),
            public=("the options", f"the number of blocks, {blocks}"),
            assumed=(CHOICE,),
        )

    def votes(
        self, found: Sequence[Block], width: int, blocks: int, bits: BitSource, *, drop: bool
    ) -> npt.NDArray[np.int64]:
        """Deal rows to blocks, each by a draw of its own, and count for what they vote.

        With `drop` a row without any cell is no row. Of units, whose number is the last column, all
        rows have one draw.
        """
        rows = np.concatenate([np.empty((0, width)), *found])
        units = np.arange(len(rows))
        if self.by_unit:
            rows, units = rows[:, :-1], rows[:, -1].astype(np.int64)
        if drop:
            there = ~np.isnan(rows).all(axis=1)
            rows, units = rows[there], units[there]
        different, which = np.unique(units, return_inverse=True)
        draws = uniform_below(blocks, size=len(different), bits=bits)
        drawn = np.asarray(draws, dtype=np.int64)[which]
        order = np.argsort(drawn, kind="stable")
        ends = np.searchsorted(drawn[order], np.arange(blocks + 1))
        places = {option: place for place, option in enumerate(self.options)}
        votes = np.zeros(len(self.options), dtype=np.int64)
        for start, stop in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
            chosen = quietly(self._place, places, rows[order[start:stop]])
            votes[0 if chosen is None else chosen] += 1
        return votes

    def _place(self, places: dict[Hashable, int], block: Block) -> int | None:
        if not len(block):
            return None
        chosen = self.choose(block)
        return places.get(chosen.item() if isinstance(chosen, np.generic) else chosen)

    def tried(self, rows: Block, *, named: str = "choose") -> None:
        """Call `choose` with made-up rows, and say what is wrong with it; nothing is spent yet."""
        places = {option: place for place, option in enumerate(self.options)}
        try:
            found = self._place(places, rows)
        except Exception as mistake:
            raise ParameterError(
                named,
                expected="a function that makes a choice from made-up rows; it raised "
                f"{type(mistake).__name__}: {mistake}",
                remedy="mend it, or pass example= with made-up rows on which it works",
            ) from mistake
        require(
            found is not None,
            named,
            expected=f"a function that returns one of the options {list(self.options)[:10]}",
            remedy="let it return one of them, or add what it returned for made-up rows",
        )

    def _blocks(self, facts: Facts, epsilon: Fraction) -> int:
        least = as_count(self.least_rows, "least_rows", minimum=1)
        if self.blocks is not None:
            blocks = as_count(self.blocks, "blocks", minimum=1)
            require(blocks <= _MOST_BLOCKS, "blocks", blocks, "at most 2^20", "pass fewer")
            return blocks
        return blocks_for(len(self.options), epsilon, facts.planned_rows, least)

    def _forecast(self, behind: float, blocks: int, epsilon: Fraction) -> str:
        told = f"the winner is at most {behind:.2g} of {blocks} votes behind, on average"
        if not can_decide(len(self.options), epsilon, blocks):
            told += ": so few votes cannot decide; a larger epsilon or more rows would"
        return told


def made_up(source: Any) -> Block:
    """Return made-up rows with the columns of a source."""
    if not isinstance(source, Dataset):
        return public_rows(len(source.columns), None, None, count=4 * LEAST_ROWS)
    table = fake(source, rows=4 * LEAST_ROWS)
    read = [kind.read(table[name]) for name, kind in source.kinds.items()]
    made: Block = np.stack(read, axis=1).astype(np.float64)
    return made
