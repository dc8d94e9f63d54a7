"""Select the best of several models (`select_model`), or what most blocks of rows choose (`vote`).

Only the winner's name is published (theory B1, R2). Where nothing is trained, one score of known
sensitivity decides, and permute-and-flip errs less than any study (C10.1, evidence §2). Models that
can be trained on a few rows may be chosen by a vote of blocks instead (evidence §6).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from zerodelta.channels.purification import plan
from zerodelta.data.arrays import DEFAULT_MISSING, as_source
from zerodelta.data.dataset import Dataset
from zerodelta.data.isolation import quietly
from zerodelta.data.row_queries import Bounds, box_lattice, public_rows, row_query
from zerodelta.data.rows import Rows
from zerodelta.data.rowwise import Block, RowFunction, Rowwise
from zerodelta.data.schema import fake
from zerodelta.errors import ParameterError, is_list, is_name, needed, require
from zerodelta.exact.arrays import Floats
from zerodelta.exact.bits import BitSource
from zerodelta.exact.integers import uniform_below
from zerodelta.exact.rational import Rational, as_bounds, as_count, as_rational
from zerodelta.mechanisms.diagnostics import as_diagnosis
from zerodelta.mechanisms.selection import PermuteAndFlip
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.parameters import Neighbors, as_flag, as_usable_epsilon
from zerodelta.privacy.release import Release
from zerodelta.privacy.steps import Status
from zerodelta.privacy.theorems.subsampling import Units, UnitVotes
from zerodelta.spaces import Finite
from zerodelta.spine.plan import Facts, Method, ReleasePlan, choose, ranked
from zerodelta.spine.run import ask
from zerodelta.spine.verbs import Paying, debited
from zerodelta.study.plan import rows_to_try
from zerodelta.study.study import Study, StudyProgram, carry_out
from zerodelta.tasks.task import (
    ROWS,
    Forecast,
    Planner,
    Task,
    simple,
)
from zerodelta.training.models import LinearPredictor, NetworkModel
from zerodelta.value import value

if TYPE_CHECKING:
    from typing_extensions import Unpack


# -- Forecasts of a vote of blocks and of a study -------------------------------------------------
# Both are forecast for one candidate whose mean score is ahead of all others, which are tied: the
# largest expected loss over all leads, as in `worst_gap`, relative to the range of a score. Rows
# are a random sample, and the standard deviation of a score is half its range, the largest
# possible. On scores alone a study errs less, because its noise is proportional to 1/n and the
# sampling error of blocks to √(1/n); but a study trains with noise, and a block does not. Noise on
# the p trained numbers is assumed to change a score by as much as it changes all of them together;
# the loss by training on few rows is left to `least_rows`. The rule was chosen on the cells of
# `bench/vote_or_study.py`.

LEAST_ROWS = 25
"""The smallest average number of rows of a block: with fewer most learners fail (tables.md §6)."""

_FEWEST_BLOCKS = 3

PARAMETERS = 10
"""The assumed number of trained numbers of a candidate, where the caller states none."""

_SPREAD = 0.5
"""The largest standard deviation of a score within (0, 1)."""

_LEADS = 24
_DRAWS = 400_000
"""Votes drawn for a forecast, over all options and runs: its sampling error is then 1 to 3 %."""


def _smallest_lead(options: int, epsilon: Fraction) -> float:
    """Return a number of votes about as large as the noise on a vote among these options."""
    return (math.log(options) + 1) / float(epsilon)


def blocks_for(options: int, epsilon: Fraction, rows: int, least_rows: int = LEAST_ROWS) -> int:
    """Return the number of blocks for a vote: 8(ln K + 1)/ε, or fewer if rows are too few.

    >>> blocks_for(16, Fraction(1), 100_000), blocks_for(16, Fraction(1), 500)
    (31, 20)
    """
    largest = rows // as_count(least_rows, "least_rows", minimum=1)
    return max(_FEWEST_BLOCKS, min(math.ceil(8 * _smallest_lead(options, epsilon)), largest))


def can_decide(options: int, epsilon: Fraction, blocks: int) -> bool:
    """Tell whether the number of votes is large enough relative to their noise.

    >>> can_decide(16, Fraction(1), 8), can_decide(16, Fraction(1), 7)
    (True, False)
    """
    return blocks >= 2 * _smallest_lead(options, epsilon)


def vote_or_study(
    *,
    n: int,
    options: int,
    epsilon: Rational,
    parameters: int = PARAMETERS,
    least_rows: int = LEAST_ROWS,
    scoring: Rational = Fraction(1, 5),
    mixing_probability: Rational = Fraction(1, 100),
) -> tuple[Method, ...]:
    """Return both methods to choose among models that are trained, best first.

    `parameters` is the number of trained numbers of a candidate. A vote that cannot decide has an
    infinite error, because blocks would have to be smaller than a learner needs.

    >>> [method.name for method in vote_or_study(n=1000, options=8, epsilon=1, parameters=10)]
    ['vote', 'study']
    >>> [method.name for method in vote_or_study(n=1000, options=8, epsilon=1, parameters=1)]
    ['study', 'vote']
    """
    trained = as_count(parameters, "parameters")
    exact, count = as_usable_epsilon(epsilon), as_count(options, "options", minimum=1)
    rows = as_count(n, "n", minimum=1)
    blocks = blocks_for(count, exact, rows, least_rows)
    decides = can_decide(count, exact, blocks)

    vote = Method(
        name="vote",
        error=_vote_gap(count, float(2 / exact), blocks, rows / blocks) if decides else math.inf,
        spends=f"ε on one vote of each of {blocks} blocks of {rows / blocks:.0f} rows",
        why="every block trains without noise, and is large enough to choose"
        if decides
        else f"{blocks} votes cannot decide among {count} options at this ε, and with fewer than "
        f"{least_rows} rows a block cannot learn",
    )
    share = as_rational(scoring, "scoring")
    noise = _study_noise(count, exact, rows, trained, share, mixing_probability)
    lead, gap = _normal_gap(count)
    study = Method(
        name="study",
        error=noise * (gap + float(as_rational(mixing_probability, "")) * lead),
        spends=f"ε on one name; {share} of the queries' μ² on scores, the rest on training",
        why=f"all rows train every candidate, {trained} numbers with noise: for few numbers, or "
        "if blocks are too small to choose",
    )
    return ranked(vote, study)


def _study_noise(
    options: int,
    epsilon: Fraction,
    rows: int,
    trained: int,
    share: Fraction,
    mixing_probability: Rational,
) -> float:
    """Return the standard deviation of a score in a study, from sampling and noise together."""
    publishing = plan(Finite(options), epsilon=epsilon, mixing_probability=mixing_probability)
    # One row changes K scores by 1/n each, by √K/n together (l2), so the variance of the noise on a
    # score is K/(share·μ²·n²). It changes the p trained numbers of a candidate by √p/n together, so
    # each of them has noise √p/(μ·n), and all together (l2) p/(μ·n): hence p². K candidates share
    # the rest of μ².
    parts = 1 / float(share) + trained**2 / float(1 - share)
    noise = options * parts / float(publishing.calibration.mu_squared) / rows**2
    return math.sqrt(noise + _SPREAD**2 / rows)


def _leads(options: int, count: int) -> Floats:
    """Return `count` leads in standard deviations, up to one at which a rival hardly ever wins."""
    largest = 3.0 + 2.0 * math.sqrt(math.log(options))
    leads: Floats = largest * np.arange(1, count + 1) / count
    return leads


def _leader_probability(options: int, leads: Floats) -> Floats:
    """Return the probability that of `options` normal numbers the one with the lead is largest."""
    z = np.linspace(-9.0, 9.0, 361)  # the deviation of the leading number
    others = ndtr(leads[:, None] + z) ** (options - 1)
    weights = np.exp(-(z**2) / 2)
    probability: Floats = others @ (weights / weights.sum())
    return probability


@lru_cache(maxsize=256)
def _normal_gap(options: int) -> tuple[float, float]:
    """Return the worst lead and its expected loss, both at a standard deviation of 1."""
    leads = _leads(options, 200)
    gaps = leads * (1 - _leader_probability(options, leads))
    worst = int(gaps.argmax())
    return float(leads[worst]), float(gaps[worst])


@lru_cache(maxsize=256)
def _vote_gap(options: int, scale: float, blocks: int, rows: float) -> float:
    """Return the largest expected loss of a vote by permute-and-flip, relative to the range.

    Votes are simulated with a fixed seed, so that the forecast is a function of public numbers.
    """
    if options == 1:
        return 0.0
    rng, draws = np.random.default_rng(0), max(200, _DRAWS // (options * _LEADS))
    leads, worst = _leads(options, _LEADS), 0.0
    for lead, right in zip(leads, _leader_probability(options, leads), strict=True):
        chances = np.full(options, (1 - right) / (options - 1))
        chances[0] = 1 - chances[1:].sum()
        votes = rng.multinomial(blocks, chances, size=draws)
        noisy = votes + rng.exponential(scale, size=votes.shape)  # the law of permute-and-flip
        worst = max(worst, float(lead * np.mean(noisy.argmax(axis=1) != 0)))
    return worst * _SPREAD / math.sqrt(rows)


# -- A vote of many small blocks of rows, each of which makes a choice (theory Votes) -------------
# The function that chooses may be anything: a row is in one block, so it changes one vote. All rows
# of a unit are in one block, so a unit changes one vote, too (V3).

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
    **paying: Unpack[Paying],
) -> Release:
    """Release the option that most blocks of rows choose, by any function of a block.

    Use it if the choice is made by code with unknown sensitivity: cross-validation, a test, a
    solver. For options with one score that is a mean over rows see `select_model`, which needs
    fewer rows, and compares a vote with a study where models are trained.

    Parameters
    ----------
    data : data set, array, frame or Source
        The rows.
    choose : callable
        ``choose(rows)`` gets one block, an array with the columns in their order (codes for
        categories, NaN for missing cells), and returns one of the options. If it fails, or returns
        anything else, the block votes for the first option.
    columns : str or list of str, optional
        The columns of a data set or a frame.
    options : list
        All options. Public.
    blocks : int, optional
        The number of blocks to which rows (or units) are assigned by independent draws. By default
        8(ln K + 1)/ε for K options, at least 3, at most one for each `least_rows` rows.
    least_rows : int
        The average number of rows that a block needs for a useful choice.
    example : array, optional
        Public made-up rows on which `choose` is tried first, where its errors are shown; by default
        rows within the declared bounds.
    missing : "skip", None or number
        How a missing cell of a frame or an array is read; a data set has it declared.

    Returns
    -------
    Release
        Its value is one of the options.

    Notes
    -----
    **Guarantee**: pure ε-DP (theory Votes, C10.1), caller-asserted: `choose` sees one block, and
    nothing of the others.
    **Neighbors**: replace-one, or what the data set says; add-remove costs the same.
    **Error**: the expected number of votes by which the winner is behind, in the closest race.

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
    if example is None:
        question.try_on(made_up(source))
    else:
        question.try_on(rows_to_try(source.columns, None, None, example))
    diagnosis = as_diagnosis(diagnostics, source)
    units = UnitVotes if question.by_unit else Units
    return ask(question, source, epsilon=epsilon, diagnosis=diagnosis, units=units)


@value
class VoteQuestion:
    """Question for the option that most blocks choose."""

    choose: Callable[[Block], Any]
    options: tuple[Hashable, ...]
    blocks: int | None = None
    least_rows: int = LEAST_ROWS
    by_unit: bool = False
    """Whether all rows of a unit are assigned to one block, by one draw."""

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
            expected="distinct values that can be keys of a dictionary",
            remedy="pass a list of names or numbers",
        )

    def plan(self, facts: Facts, epsilon: Rational) -> ReleasePlan[Rows]:
        """Plan permute-and-flip on the votes of random blocks of rows, one option each."""
        exact = as_usable_epsilon(epsilon)
        facts.rows_in_memory(2 * 8 * facts.width)
        blocks = self._blocks(facts, exact)
        flip = PermuteAndFlip.for_epsilon(epsilon=exact, sensitivity=1, neighbors=facts.neighbors)

        def answer(rows: Rows, bits: BitSource) -> Any:
            """Return the option that wins, by permute-and-flip, the votes of random blocks."""
            with_units = rows.by_unit() if self.by_unit else rows
            assert with_units is not None  # `by_unit` was read off the source
            parts, width = list(with_units.blocks()), len(with_units.columns)
            votes = self.votes(parts, width, blocks, bits, drop=rows.may_miss)
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
        self, parts: Sequence[Block], width: int, blocks: int, bits: BitSource, *, drop: bool
    ) -> npt.NDArray[np.int64]:
        """Assign each row to a block by its own draw, and count the votes of the blocks.

        With `drop` a row without any cell is left out. With units, whose number is the last column,
        all rows of a unit share one draw.
        """
        rows = np.concatenate([np.empty((0, width)), *parts])
        units = np.arange(len(rows))
        if self.by_unit:
            rows, units = rows[:, :-1], rows[:, -1].astype(np.int64)
        if drop:
            present = ~np.isnan(rows).all(axis=1)
            rows, units = rows[present], units[present]
        distinct, unit_places = np.unique(units, return_inverse=True)
        draws = uniform_below(blocks, size=len(distinct), bits=bits)
        row_blocks = np.asarray(draws, dtype=np.int64)[unit_places]
        order = np.argsort(row_blocks, kind="stable")
        ends = np.searchsorted(row_blocks[order], np.arange(blocks + 1))
        places = {option: place for place, option in enumerate(self.options)}
        votes = np.zeros(len(self.options), dtype=np.int64)
        for start, stop in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
            chosen = quietly(self._place, places, rows[order[start:stop]])
            votes[0 if chosen is None else chosen] += 1
        return votes

    def _place(self, places: dict[Hashable, int], block: Block) -> int | None:
        """Return the place of the option that a block chooses; None if it chooses none."""
        if not len(block):
            return None
        chosen = self.choose(block)
        return places.get(chosen.item() if isinstance(chosen, np.generic) else chosen)

    def try_on(self, rows: Block, *, name: str = "choose") -> None:
        """Call `choose` with made-up rows, and report its errors before any ε is spent."""
        places = {option: place for place, option in enumerate(self.options)}
        try:
            place = self._place(places, rows)
        except Exception as mistake:
            raise ParameterError(
                name,
                expected="a function that makes a choice from made-up rows; it raised "
                f"{type(mistake).__name__}: {mistake}",
                remedy="mend it, or pass example= with made-up rows on which it works",
            ) from mistake
        require(
            place is not None,
            name,
            expected=f"a function that returns one of the options {list(self.options)[:10]}",
            remedy="let it return one of them, or add what it returned for made-up rows",
        )

    def _blocks(self, facts: Facts, epsilon: Fraction) -> int:
        """Return the number of blocks, stated or by default."""
        least_rows = as_count(self.least_rows, "least_rows", minimum=1)
        if self.blocks is not None:
            blocks = as_count(self.blocks, "blocks", minimum=1)
            require(blocks <= _MOST_BLOCKS, "blocks", blocks, "at most 2^20", "pass fewer")
            return blocks
        return blocks_for(len(self.options), epsilon, facts.planned_rows, least_rows)

    def _forecast(self, behind: float, blocks: int, epsilon: Fraction) -> str:
        """Say how many votes the winner is behind, and warn if so few cannot decide."""
        sentence = f"the winner is at most {behind:.2g} of {blocks} votes behind, on average"
        if not can_decide(len(self.options), epsilon, blocks):
            sentence += ": so few votes cannot decide; pass a larger epsilon, or more rows"
        return sentence


def made_up(source: Any) -> Block:
    """Return made-up rows with the columns of a source."""
    if not isinstance(source, Dataset):
        return public_rows(len(source.columns), None, None, count=4 * LEAST_ROWS)
    table = fake(source, rows=4 * LEAST_ROWS)
    columns = [kind.read(table[name]) for name, kind in source.kinds.items()]
    rows: Block = np.stack(columns, axis=1).astype(np.float64)
    return rows


Train: TypeAlias = Callable[[Study, Any], Any]
"""train(study, candidate) asks at most `rounds` internal queries and returns parameters."""

Fit: TypeAlias = Callable[[Any, Any], Any]
"""fit(candidate, rows) returns parameters, from the rows of one block."""

Score: TypeAlias = Callable[..., Any]
"""score(candidate, parameters, rows), or score(candidate, rows), returns a number for each row."""

SCORE = "score treats rows one by one, keeps no state and shows nothing"

FIT = "fit and score see one block at a time: they keep no state and show nothing"


@debited
def select_model(
    rows: Any,
    candidates: Mapping[str, Any],
    *,
    columns: Sequence[str] | None = None,
    epsilon: Rational,
    train: Train | None = None,
    fit: Fit | None = None,
    score: Score | None = None,
    method: str = "auto",
    rounds: int | None = None,
    bounds: Bounds = (0, 1),
    scoring: Rational = Fraction(1, 5),
    mixing_probability: Rational = Fraction(1, 100),
    least_rows: int = LEAST_ROWS,
    rowwise: bool = False,
    example: Any = None,
    diagnostics: Rational | None = None,
    **paying: Unpack[Paying],
) -> Release:
    """Release the name of the best candidate, trained and scored on the rows.

    Use it in place of scikit-learn's `GridSearchCV`, whose scores would show rows.

    Parameters
    ----------
    rows : data set, array, data frame or Source
        The rows for training and scoring. Categories of a data set are codes.
    candidates : mapping of names to models
        `zerodelta.models.NetworkModel` and `LinearPredictor` train and score themselves; anything
        else is passed to `train` and `score`.
    columns : sequence of str, optional
        The columns of a data set or a data frame to use; by default all.
    train : callable, optional
        ``train(study, candidate)`` asks at most `rounds` internal queries and returns parameters.
        Without it candidates are fixed, public predictors, and permute-and-flip chooses among
        their total scores, which needs less noise than a study.
    fit : callable, optional
        ``fit(candidate, rows)`` returns parameters, trained on the rows of one block without noise,
        by any method. With it blocks may vote, each for the candidate with the best mean score on
        rows that were not used to train it.
    score : callable, optional
        ``score(candidate, parameters, rows)``, or for fixed candidates ``score(candidate, rows)``:
        a number for each row, clipped to `bounds`; larger is better.
    method : str
        "study" (needs `train`), "vote" (needs `fit`), or "auto": if both functions are passed, the
        one with the smaller forecast loss, as `zd.advise` shows. A vote trains without noise, on
        few rows.
    rounds : int
        The number of internal queries for each candidate that is trained.
    bounds : pair of numbers
        The public range of a score.
    scoring : number
        The share of the internal queries' μ² that the scores take.
    mixing_probability : number
        The largest probability with which a study publishes a random candidate.
    least_rows : int
        The average number of rows that a block needs to train a candidate: more for noisy labels.
    rowwise : bool
        Whether functions of a study see one row at a time.
    example : array, optional
        Public made-up rows on which functions are tried first.

    Returns
    -------
    Release
        `value`: one of the names.

    **Guarantee**: pure ε-DP: a Study (B1, R2), or permute-and-flip (C10.1) on total scores or on
    votes. `proven` for built-in models, else caller-asserted: that functions treat rows one by one
    (`fit`, and `score` in a vote: one block at a time), keep no state and show nothing.
    **Neighbors**: replace-one (the number of rows is public), or what the data set says: one unit,
    or add-remove, which needs half the noise where nothing is trained. A row with a NaN for a
    score, or that a data set's condition drops, scores the middle of the bounds.
    **Error**: the probability of a random candidate, or the expected loss of the winner's score.

    >>> rng = np.random.default_rng(1)
    >>> rows = rng.integers(0, 2, size=(5000, 3)).astype(float)
    >>> rows[:, 2] = rows[:, 1]
    >>> release = select_model(
    ...     rows, {"first": 0, "second": 1}, epsilon=1,
    ...     score=lambda column, rows: rows[:, column] == rows[:, 2])
    >>> release.value, release.certificate.steps[0].theorem
    ('second', 'permute-and-flip')

    """
    source = as_source(rows, columns)
    question = ModelQuestion(
        candidates=candidates,
        train=train,
        fit=fit,
        score=score,
        method=method,
        rounds=rounds,
        bounds=bounds,
        scoring=scoring,
        mixing_probability=mixing_probability,
        least_rows=least_rows,
        rowwise=rowwise,
        example=example,
        made_up_rows=made_up(source)
        if fit is not None and example is None
        else rows_to_try(source.columns, None, None, example),
    )
    diagnosis = as_diagnosis(diagnostics, source)
    return carry_out(question, source, epsilon=epsilon, diagnosis=diagnosis)


@value
class ModelQuestion:
    """Question for the best of several candidates, by scores within public bounds."""

    candidates: Mapping[str, Any]
    train: Train | None = None
    fit: Fit | None = None
    score: Score | None = None
    method: str = "auto"
    rounds: int | None = None
    bounds: Bounds = (0, 1)
    scoring: Rational = Fraction(1, 5)
    mixing_probability: Rational = Fraction(1, 100)
    least_rows: int = LEAST_ROWS
    rowwise: bool = False
    example: Any = None
    made_up_rows: Any = None
    """The rows on which `fit` and `score` are tried first."""

    def plan(self, facts: Facts, epsilon: Rational) -> ReleasePlan[Rows] | StudyProgram:
        """Plan permute-and-flip where nothing is trained, else a study or a vote."""
        require(
            isinstance(self.candidates, Mapping) and self.candidates,
            "candidates",
            expected="at least one candidate, by name",
            remedy='pass a mapping such as {"small": model, "large": other}',
        )
        if self.fit is not None:
            return self._vote_or_study(facts, epsilon)
        fixed = self.train is None and self.score is not None
        require(
            is_name(self.method, ["auto"] if fixed else ["auto", "study"]),
            "method",
            self.method,
            expected='"auto"' + (", where nothing is trained" if fixed else ' or "study"'),
            remedy="pass fit=, which trains a candidate on a block, to let blocks vote",
        )
        return self._fixed(facts, epsilon) if fixed else self._trained(facts, epsilon)

    @property
    def _names(self) -> list[str]:
        """The names of the candidates."""
        return [str(name) for name in self.candidates]

    def _vote_or_study(self, facts: Facts, epsilon: Rational) -> ReleasePlan[Rows] | StudyProgram:
        """Plan a vote or a study, whichever has the smaller forecast loss, and state the reason."""
        remedy = "pass score=, a number for each row"
        require(self.score is not None, "score", None, "a function, as fit= was passed", remedy)
        question = VoteQuestion(
            choose=self._of_block, options=tuple(self._names), least_rows=self.least_rows
        )
        question.try_on(np.asarray(self.made_up_rows, dtype=np.float64), name="fit, score")
        methods = vote_or_study(
            n=max(1, facts.planned_rows),
            options=len(self._names),
            epsilon=epsilon,
            parameters=self._parameters(),
            least_rows=self.least_rows,
            scoring=self.scoring,
            mixing_probability=self.mixing_probability,
        )
        if self.train is None:
            methods = tuple(method for method in methods if method.name == "vote")
            remedy = "pass train=, which asks a study, or leave method out"
            only_vote = is_name(self.method, ("auto", "vote"))
            require(only_vote, "method", self.method, '"auto" or "vote" without train', remedy)
        chosen = choose(methods, self.method)
        if chosen.name == "vote":
            vote_plan = question.plan(facts, epsilon)
            return replace(
                vote_plan,
                methods=methods,
                error=f"{vote_plan.error} (a vote: {chosen.why})",
                public=("the candidates", "the bounds of a score", *vote_plan.public[1:]),
                assumed=(FIT,),
            )
        mixing = f"a random candidate with probability {self.mixing_probability} at most"
        error = f"{mixing} (a study: {chosen.why})"
        return replace(self._trained(facts, epsilon), methods=methods, error=error)

    def _parameters(self) -> int:
        """Return the largest number of trained numbers, public because `fit` gets made-up rows."""
        fit, sizes = self.fit, [1]
        assert fit is not None
        for model in self.candidates.values():
            trained = fit(model, np.array(self.made_up_rows, dtype=np.float64))
            try:
                sizes.append(np.asarray(trained, dtype=np.float64).size)
            except (TypeError, ValueError):  # not numbers, but a model object of some library
                sizes.append(PARAMETERS)
        return max(sizes)

    def _of_block(self, block: Floats) -> str:
        """Return the candidate with the best mean score on rows that were not used to train it.

        Rows were assigned to blocks at random, so every other row is a random half of a block.
        """
        fit, score = self.fit, self.score
        assert fit is not None
        assert score is not None
        lower, upper = map(float, as_bounds(self.bounds))
        halves = (block[::2], block[1::2])

        def total(model: Any) -> float:
            """Return a model's sum of clipped scores on a block, by two-fold cross-validation."""
            # each half is scored by the model that was trained on the other half
            sum_of_scores = 0.0
            for training, scoring in (halves, halves[::-1]):
                parameters = fit(model, training.copy())
                scores = np.asarray(score(model, parameters, scoring.copy()), float)
                scores = np.nan_to_num(scores.reshape(len(scoring)), nan=(lower + upper) / 2)
                sum_of_scores += float(np.clip(scores, lower, upper).sum())
            return sum_of_scores

        return self._names[int(np.argmax([total(model) for model in self.candidates.values()]))]

    def _fixed(self, facts: Facts, epsilon: Rational) -> ReleasePlan[Rows]:
        """Plan permute-and-flip on the candidates' total scores; nothing is trained.

        Scores are measured from the middle of the bounds, so that an added or removed row changes a
        total by half as much as a replaced row.
        """
        rounds, expected = self.rounds, "None where nothing is trained"
        require(rounds is None, "rounds", rounds, expected=expected, remedy="leave it out")
        names = self._names
        probe = rows_to_try(facts.columns, None, None, self.example)
        query = row_query(
            self._scores([(model,) for model in self.candidates.values()], facts),
            columns=facts.columns,
            probe=probe,
            rowwise=as_flag(self.rowwise, "rowwise"),
            lattice=box_lattice(self.bounds),
            quiet=False,  # there are no internal answers that its output could show
        )
        lattice = query.lattice
        related = facts.neighbors
        sensitivity = lattice.steps if related is Neighbors.ADD_REMOVE else 2 * lattice.steps
        flip = PermuteAndFlip.for_epsilon(
            epsilon=epsilon, sensitivity=sensitivity, neighbors=related
        )
        behind = flip.error(len(names)) / (2 * lattice.steps * facts.planned_rows)
        return ReleasePlan(
            claim=PureDP(flip.epsilon, neighbors=related),
            steps=(replace(flip.step(), status=Status.ASSERTED),),
            answer=lambda rows, bits: names[flip.select(list(map(int, query.total(rows))), bits)],
            error=f"the mean score is at most {behind:.3g} of its range below the best, on average "
            "(permute-and-flip: nothing is trained, one score of known sensitivity decides, and "
            "a study would only add noise)",
            public=("the candidates", "the bounds of a score", *facts.counted),
            assumed=(SCORE,),
        )

    def _trained(self, facts: Facts, epsilon: Rational) -> StudyProgram:
        """Plan a study in which every candidate is trained, and then all are scored."""
        names, models = self._names, list(self.candidates.values())
        # only exact classes of this library are proven: a subclass may do anything
        library_models = all(type(model) in (NetworkModel, LinearPredictor) for model in models)
        built_in = library_models and self.train is None and self.score is None
        require(
            built_in or (self.train is not None and self.score is not None),
            "train, score",
            (self.train, self.score),
            expected="both, unless all candidates are built-in models or fixed predictors",
            remedy="pass score= alone for fixed candidates, train= and score= for your own models",
        )
        remedy = (
            "pass rounds=50, for example: the noise of all rounds together hardly depends on it"
        )
        rounds = as_count(needed(self.rounds, "rounds", remedy), "rounds", minimum=1)
        share = as_rational(self.scoring, "scoring")
        require(
            0 < share < 1, "scoring", share, expected="a share below 1", remedy="pass scoring=0.2"
        )
        if built_in:
            for model in models:
                model.start(facts.columns)  # raises for unknown columns before rows are read

        def program(study: Study) -> str:
            """Train each model in the study, score all, and return the best one's name."""
            mu = study.plan.mu * math.sqrt((1 - share) / len(names))
            trained = [
                (model, self.train(study, model))
                if self.train is not None
                else (model, model.train(study, rounds, facts.columns, mu))
                for model in models
            ]
            scores = (
                self._scores(trained, facts)
                if self.score is not None
                else _built_in_scores(trained, facts)
            )
            bounds = (0, 1) if built_in else self.bounds
            return names[int(np.argmax(study.mean(scores, bounds=bounds, share=share)))]

        query_share = (1 - share) / (rounds * len(names))
        return StudyProgram(
            study={
                "epsilon": epsilon,
                "publish": Finite(names),
                "rounds": [query_share] * (rounds * len(names)) + [share],
                "mixing_probability": self.mixing_probability,
                "functions": not built_in,
                "rowwise": self.rowwise,
                "example": self.example,
            },
            program=program,
        )

    def _scores(self, candidates: list[Any], facts: Facts) -> RowFunction:
        """Return a function from rows to the caller's scores, one column for each candidate.

        A candidate is a tuple of the first arguments of `score`. Where rows may be missing, a row
        without any cell gets no score.
        """
        score = self.score
        assert score is not None

        def scores(rows: Floats) -> Floats:
            """Return a column of scores for each candidate model, a line for each row."""
            columns = [
                np.asarray(score(*arguments, rows.copy()), dtype=np.float64)
                for arguments in candidates
            ]
            table = np.stack([column.reshape(len(rows)) for column in columns], axis=1)
            if facts.may_miss:
                table[np.isnan(rows).all(axis=1)] = np.nan
            return table

        return scores


def _built_in_scores(trained: list[Any], facts: Facts) -> Rowwise:
    """Return the function from rows to the scores of trained models of this library."""
    columns = facts.columns
    return Rowwise(lambda rows: np.stack([m.score(p, rows, columns) for m, p in trained], axis=1))


# -- What the tasks are, for advice and the command line ------------------------------------------

_VOTE = Forecast(
    unit="largest expected loss of mean score by the choice, relative to the range of a score",
    call="zd.queries.vote(rows, choose, options=[…], least_rows={least_rows}, epsilon={epsilon})",
    methods=simple(vote_or_study),
    needs={**ROWS, "options": "options=8"},
    allows={"parameters": PARAMETERS, "least_rows": LEAST_ROWS},
    reliable="of a vote for the scores that are hardest to tell apart, usually much less;\n"
    "       of a study a guide to the choice: it depends on how noise affects training",
    blind=lambda _: 0.5,
    typical={"options": 8},
)

TASKS: dict[str, Task] = {
    "vote": Task(
        verb=vote,
        page="choices",
        forecast=_VOTE,
        no_command="takes a Python function",
        planner=Planner(
            title="Any choice at all: blocks of rows vote",
            fields=("n", "options"),
            people='names = ["x", "y"]\n'
            'people = zd.open("people.csv", columns={name: zd.number(0, 100) for name in names})\n'
            "\n\ndef choose(block):  # yours: sees one block\n"
            "    return int((block[:, 0] > 50).sum()) % {options}\n\n\n",
            python="people, choose, options=list(range({options}))",
        ),
    ),
    "select_model": Task(
        verb=select_model,
        page="choices",
        forecast=replace(
            _VOTE,
            call="zd.select_model(rows, candidates, fit=…, train=…, score=…, rounds=…, "
            "least_rows={least_rows}, epsilon={epsilon})",
        ),
        no_command="takes Python functions",
        planner=Planner(
            title="A model among candidates",
            fields=("n", "options"),
            people="# trains and scores candidates inside a study, or lets blocks vote\n",
            python="help(zd.select_model)\n",
        ),
    ),
}
