"""Which of several models is best: trained and scored inside a study, or scored as they are.

Only the winner's name is published (theory B1, R2). Where nothing is trained, one score of known
sensitivity decides, and permute-and-flip is better than any study (C10.1, evidence §2). Models that
can be trained on a few rows may be chosen by a vote of blocks instead (evidence §6).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from zerodelta.data.row_queries import Bounds, box_lattice, row_query
from zerodelta.data.rows import Rows
from zerodelta.data.rowwise import RowFunction, Rowwise
from zerodelta.errors import is_name, require
from zerodelta.exact.arrays import Floats
from zerodelta.exact.bits import BitSource
from zerodelta.exact.rational import Rational, as_count, as_rational
from zerodelta.mechanisms.diagnostics import diagnosis
from zerodelta.mechanisms.selection import PermuteAndFlip
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.neighbors import Neighbors
from zerodelta.privacy.parameters import as_flag
from zerodelta.privacy.release import Release
from zerodelta.privacy.step import Status
from zerodelta.spaces import Finite
from zerodelta.spine.facts import Facts
from zerodelta.spine.methods import choose
from zerodelta.spine.paying import Paying, debited
from zerodelta.spine.public_inputs import as_bounds, as_source, needed
from zerodelta.spine.release_plan import ReleasePlan
from zerodelta.study.program import StudyProgram, carry_out
from zerodelta.study.rehearsal import rows_to_try
from zerodelta.study.study import Study
from zerodelta.tasks.vote import VoteQuestion, made_up
from zerodelta.tasks.vote_or_study import LEAST_ROWS, PARAMETERS, vote_or_study
from zerodelta.training.candidate_models import LinearModel, NetworkModel
from zerodelta.value import value

if TYPE_CHECKING:
    from typing_extensions import Unpack

Train: TypeAlias = Callable[[Study, Any], Any]
"""train(study, candidate): asks at most `rounds` internal queries, returns parameters."""

Fit: TypeAlias = Callable[[Any, Any], Any]
"""fit(candidate, rows): parameters, from the rows of one block."""

Score: TypeAlias = Callable[..., Any]
"""score(candidate, parameters, rows), or score(candidate, rows): a number for each row."""

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
    bits: BitSource | None = None,
    **paying: Unpack[Paying],
) -> Release:
    """Release the name of the best candidate, trained and scored on the rows.

    Use it in place of scikit-learn's `GridSearchCV`, whose scores would show rows.

    Parameters
    ----------
    rows : data set, array, data frame or Source
        The rows that candidates are trained on and scored by. Categories of a data set are codes.
    candidates : mapping of names to models
        `zerodelta.models.NetworkModel` and `LinearModel` train and score themselves; anything else
        is handed to `train` and `score`.
    columns : sequence of str, optional
        The columns of a data set or a data frame to use; default all.
    epsilon : int, float, Fraction or str
        The privacy parameter of this one release.
    train : callable, optional
        ``train(study, candidate)`` asks at most `rounds` internal queries and returns parameters.
        Without it candidates are fixed, public predictors, and permute-and-flip chooses among
        their total scores, which needs less noise than a study.
    fit : callable, optional
        ``fit(candidate, rows)`` returns parameters, trained on the rows of one block, without noise
        and in any way. With it blocks may vote, each for the candidate with the best mean score on
        the half of its rows that did not train it.
    score : callable, optional
        ``score(candidate, parameters, rows)``, or for fixed candidates ``score(candidate, rows)``:
        a number for each row, clipped to `bounds`; larger is better.
    method : str
        "study" (needs `train`), "vote" (needs `fit`), or "auto": if both are given the one that is
        forecast to lose less, as `zd.advise` shows. A vote trains without noise, on few rows.
    rounds : int
        The internal queries for each candidate that is trained.
    bounds : pair of numbers
        The public range of a score.
    scoring : number
        The share of the internal queries' μ² that the scores take.
    mixing_probability : number
        With which probability a study publishes a random candidate, at most.
    least_rows : int
        How many rows a block needs, on average, to train a candidate: more for noisy labels.
    rowwise : bool
        Whether functions of a study see one row at a time.
    example : array, optional
        Public made-up rows on which functions are tried first.
    diagnostics : number, optional
        The share of ε, such as "1/100", for `release.diagnostics`, of a data set: which fractions
        of the rows were used, clipped to the declared bounds, and unreadable.
    bits : BitSource, optional
        The random bits; default the operating system's.

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
    **Error**: the probability of a random candidate, or how far the winner's score may fall behind.

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
        tried=made_up(source)
        if fit is not None and example is None
        else rows_to_try(source.columns, None, None, example),
    )
    beside = diagnosis(diagnostics, source)
    return carry_out(question, source, epsilon=epsilon, bits=bits, beside=beside)


@value
class ModelQuestion:
    """The best of some candidates is asked, by scores within public bounds."""

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
    tried: Any = None
    """Made-up rows on which `fit` is tried first."""

    def plan(self, facts: Facts, epsilon: Rational) -> ReleasePlan[Rows] | StudyProgram:
        """Plan permute-and-flip where nothing is trained, else a study or a vote."""
        require(
            isinstance(self.candidates, Mapping) and self.candidates,
            "candidates",
            expected="at least one candidate, by name",
            remedy='pass a mapping such as {"small": model, "large": other}',
        )
        if self.fit is not None:
            return self._weighed(facts, epsilon)
        fixed = self.train is None and self.score is not None
        require(
            is_name(self.method, ["auto"] if fixed else ["auto", "study"]),
            "method",
            self.method,
            expected='"auto"' + (", where nothing is trained" if fixed else ' or "study"'),
            remedy="pass fit=, which trains a candidate on a block, and the blocks may vote",
        )
        return self._fixed(facts, epsilon) if fixed else self._trained(facts, epsilon)

    @property
    def _names(self) -> list[str]:
        return [str(name) for name in self.candidates]

    def _weighed(self, facts: Facts, epsilon: Rational) -> ReleasePlan[Rows] | StudyProgram:
        """Plan a vote or a study, whichever is forecast to lose less, and say why."""
        remedy = "pass score=, a number for each row"
        require(self.score is not None, "score", None, "a function beside fit", remedy)
        question = VoteQuestion(
            choose=self._of_block, options=tuple(self._names), least_rows=self.least_rows
        )
        question.tried(np.asarray(self.tried, dtype=np.float64), named="fit, score")
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
            methods = tuple(each for each in methods if each.name == "vote")
            remedy = "pass train=, which asks a study, or leave method out"
            votes = is_name(self.method, ("auto", "vote"))
            require(votes, "method", self.method, '"auto" or "vote" without train', remedy)
        chosen = choose(methods, self.method)
        if chosen.name == "vote":
            made = question.plan(facts, epsilon)
            return replace(
                made,
                methods=methods,
                error=f"{made.error} (a vote: {chosen.why})",
                public=("the candidates", "the bounds of a score", *made.public[1:]),
                assumed=(FIT,),
            )
        rarely = f"a random candidate with probability {self.mixing_probability} at most"
        told = f"{rarely} (a study: {chosen.why})"
        return replace(self._trained(facts, epsilon), methods=methods, error=told)

    def _parameters(self) -> int:
        """Return how many numbers `fit` finds at most, for made-up rows: so it is public."""
        fit, found = self.fit, [1]
        assert fit is not None
        for model in self.candidates.values():
            trained = fit(model, np.array(self.tried, dtype=np.float64))
            try:
                found.append(np.asarray(trained, dtype=np.float64).size)
            except (TypeError, ValueError):  # a model of some library
                found.append(PARAMETERS)
        return max(found)

    def _of_block(self, block: Floats) -> str:
        """Return the candidate with the best mean score on rows that did not train it.

        Rows were dealt at random, so every other one is a random half of them.
        """
        fit, score = self.fit, self.score
        assert fit is not None
        assert score is not None
        lower, upper = map(float, as_bounds(self.bounds))
        halves = (block[::2], block[1::2])

        def total(model: Any) -> float:
            found = 0.0
            for trains, scores in (halves, halves[::-1]):
                each = np.asarray(score(model, fit(model, trains.copy()), scores.copy()), float)
                each = np.nan_to_num(each.reshape(len(scores)), nan=(lower + upper) / 2)
                found += float(np.clip(each, lower, upper).sum())
            return found

        return self._names[int(np.argmax([total(model) for model in self.candidates.values()]))]

    def _fixed(self, facts: Facts, epsilon: Rational) -> ReleasePlan[Rows]:
        """Plan a choice by total scores of known sensitivity.

        They are measured from the middle of the bounds, so that a row that comes or goes moves one
        by half of what a replaced row does, up or down.
        """
        rounds, untrained = self.rounds, "None where nothing is trained"
        require(rounds is None, "rounds", rounds, expected=untrained, remedy="leave it out")
        names = self._names
        probe = rows_to_try(facts.columns, None, None, self.example)
        query = row_query(
            self._own([(model,) for model in self.candidates.values()], facts),
            columns=facts.columns,
            probe=probe,
            rowwise=as_flag(self.rowwise, "rowwise"),
            lattice=box_lattice(self.bounds),
            quiet=False,  # there are no internal answers yet
        )
        lattice = query.lattice
        related = facts.neighbors
        moved = lattice.steps if related is Neighbors.ADD_REMOVE else 2 * lattice.steps
        flip = PermuteAndFlip.for_epsilon(epsilon=epsilon, sensitivity=moved, neighbors=related)
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
        ours = all(type(model) in (NetworkModel, LinearModel) for model in models)  # so: proven
        built_in = ours and self.train is None and self.score is None
        require(
            built_in or (self.train is not None and self.score is not None),
            "train, score",
            (self.train, self.score),
            expected="both, unless all candidates are built-in models or fixed predictors",
            remedy="pass score= alone for fixed candidates, train= and score= for your own models",
        )
        remedy = "pass rounds=50, say: the noise of a whole descent hardly depends on it"
        rounds = as_count(needed(self.rounds, "rounds", remedy), "rounds", minimum=1)
        share = as_rational(self.scoring, "scoring")
        require(
            0 < share < 1, "scoring", share, expected="a share below 1", remedy="pass scoring=0.2"
        )
        if built_in:
            for model in models:
                model.start(facts.columns)  # columns that are not there raise before rows are read

        def program(study: Study) -> str:
            mu = study.plan.mu * math.sqrt((1 - share) / len(names))
            trained = [
                (model, self.train(study, model))
                if self.train is not None
                else (model, model.train(study, rounds, facts.columns, mu))
                for model in models
            ]
            scores = (
                self._own(trained, facts) if self.score is not None else _built_in(trained, facts)
            )
            bounds = (0, 1) if built_in else self.bounds
            return names[int(np.argmax(study.mean(scores, bounds=bounds, share=share)))]

        each = (1 - share) / (rounds * len(names))
        return StudyProgram(
            study={
                "epsilon": epsilon,
                "publish": Finite(names),
                "rounds": [each] * (rounds * len(names)) + [share],
                "mixing_probability": self.mixing_probability,
                "functions": not built_in,
                "rowwise": self.rowwise,
                "example": self.example,
            },
            program=program,
        )

    def _own(self, given: list[Any], facts: Facts) -> RowFunction:
        """Return the caller's scores of all candidates, side by side.

        A row without any cell counts for none of them where such rows count nowhere.
        """
        score = self.score
        assert score is not None

        def scores(rows: Floats) -> Floats:
            columns = [np.asarray(score(*parts, rows.copy()), dtype=np.float64) for parts in given]
            found = np.stack([column.reshape(len(rows)) for column in columns], axis=1)
            if facts.may_miss:
                found[np.isnan(rows).all(axis=1)] = np.nan
            return found

        return scores


def _built_in(trained: list[Any], facts: Facts) -> Rowwise:
    columns = facts.columns
    return Rowwise(lambda rows: np.stack([m.score(p, rows, columns) for m, p in trained], axis=1))
