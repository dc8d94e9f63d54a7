"""Which of several models is best: trained and scored inside a study, or scored as they are.

Only the winner's name is published (theory B1, R2). Where nothing is trained, one score of known
sensitivity decides, and permute-and-flip is better than any study (C10.1, evidence §2).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from zerodelta.data.arrays import ArraySource
from zerodelta.data.row_queries import (
    Bounds,
    RowQuery,
    Rowwise,
    box_lattice,
    public_rows,
    row_query,
)
from zerodelta.data.source import FOREIGN_SOURCE, Source, is_ours
from zerodelta.errors import ParameterError
from zerodelta.exact.bits import BitSource, SystemBits
from zerodelta.exact.rational import Rational, as_count, as_rational
from zerodelta.mechanisms.selection import PermuteAndFlip
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.issue import issue
from zerodelta.privacy.release import Release
from zerodelta.privacy.step import Status
from zerodelta.spaces import Finite
from zerodelta.spine.transition import opened
from zerodelta.study.study import Study
from zerodelta.tasks.models import Floats, LinearModel, Model, NetworkModel

__all__ = ["SCORE", "Score", "Train", "select_model"]

Train: TypeAlias = Callable[[Study, Any], Any]
"""train(study, candidate): asks at most `rounds` hidden questions, returns parameters."""

Score: TypeAlias = Callable[..., Any]
"""score(candidate, parameters, rows), or score(candidate, rows): a number for each row."""

SCORE = "score treats rows one by one, keeps no state and shows nothing"


def select_model(
    rows: Any,
    candidates: Mapping[str, Any],
    *,
    epsilon: Rational,
    train: Train | None = None,
    score: Score | None = None,
    rounds: int | None = None,
    bounds: Bounds = (0, 1),
    scoring: Rational = Fraction(1, 5),
    mixing_probability: Rational = Fraction(1, 100),
    rowwise: bool = False,
    example: Any = None,
    bits: BitSource | None = None,
) -> Release:
    """Publish the name of the best candidate, trained and scored on the rows.

    Candidates are built-in models (`NetworkModel`, `LinearModel`), which train and score
    themselves, or anything that `train(study, candidate)` and `score(candidate, parameters, rows)`
    understand: training may ask `rounds` hidden questions for each candidate, scores are numbers
    for each row, cut to `bounds`; larger is better. Without `train` (candidates are fixed, public
    predictors; `score(candidate, rows)`) one total of known sensitivity decides: then
    permute-and-flip chooses, which needs less noise than a study, and the release says so.

    **Releases**: one of the names.
    **Neighbors**: replace-one (the number of rows is public).
    **Guarantee**: pure ε-DP: a Study (B1, R2), or permute-and-flip (C10.1). `proven` for built-in
    models, else `asserted`: that functions treat rows one by one, keep no state and show nothing
    (with ``rowwise=True`` they see one row at a time).
    **Public**: the candidates, `rounds`, `bounds`, `scoring` (the share of the budget that the
    scores take), `mixing_probability`. A row with a NaN scores the middle of the bounds.
    **Error**: the probability of a random candidate, or how far the winner's total may fall behind.

    >>> rng = np.random.default_rng(1)
    >>> rows = rng.integers(0, 2, size=(5000, 3)).astype(float)
    >>> rows[:, 2] = rows[:, 1]
    >>> release = select_model(
    ...     rows, {"first": 0, "second": 1}, epsilon=1,
    ...     score=lambda column, rows: rows[:, column] == rows[:, 2])
    >>> release.value, release.certificate.steps[0].theorem
    ('second', 'PF')
    """
    names, models = _checked(candidates)
    source = rows if isinstance(rows, Source) else ArraySource(rows)
    tape = SystemBits() if bits is None else bits
    if train is None and score is not None:
        probe = example if example is not None else public_rows(len(source.columns), None, None)
        _refuse_rounds(rounds)
        question = row_query(
            lambda block: _side_by_side(score, [(model,) for model in models], block),
            columns=source.columns,
            probe=np.asarray(probe, dtype=np.float64),
            rowwise=rowwise,
            lattice=box_lattice(bounds),
            quiet=False,  # nothing is hidden yet
        )
        return _by_permute_and_flip(source, names, question, epsilon, tape)
    ours = all(type(model) in (NetworkModel, LinearModel) for model in models)  # so: proven
    built_in = ours and train is None and score is None
    if not built_in and (train is None or score is None):
        raise ParameterError(
            "train, score",
            (train, score),
            expected="both, unless all candidates are built-in models or fixed predictors",
            remedy="pass score= alone for fixed candidates, train= and score= for your own models",
        )
    if rounds is None:
        raise ParameterError(
            "rounds",
            None,
            expected="how many hidden questions the training of one candidate may ask",
            remedy="pass rounds=50, say: the noise of a whole descent hardly depends on it",
        )
    share = _share(scoring)
    one = as_count(rounds, "rounds", minimum=1)
    study = Study(
        source,
        epsilon=epsilon,
        publish=Finite(names),
        rounds=[(1 - share) / (one * len(names))] * (one * len(names)) + [share],
        mixing_probability=mixing_probability,
        functions=not built_in,
        rowwise=rowwise,
        example=example,
        bits=tape,
    )
    if not built_in:
        assert train is not None
        assert score is not None
        return study.run(lambda inside: _own(inside, names, models, train, score, bounds, share))
    mu = study.plan.mu * float((1 - share) / len(names)) ** 0.5
    for model in models:
        model.start(source.columns)  # columns that are not there raise before rows are read
    return study.run(
        lambda inside: _built_in(inside, names, models, one, source.columns, mu, share)
    )


def _built_in(
    study: Study,
    names: list[str],
    models: list[Model],
    rounds: int,
    columns: tuple[str, ...],
    mu: float,
    share: Fraction,
) -> str:
    trained = [model.train(study, rounds, columns, mu) for model in models]

    def scores(rows: Floats) -> Floats:
        parts = [m.score(p, rows, columns) for m, p in zip(models, trained, strict=True)]
        return np.stack(parts, axis=1)

    return names[int(study.mean(Rowwise(scores), bounds=(0, 1), share=share).argmax())]


def _own(
    study: Study,
    names: list[str],
    models: list[Any],
    train: Train,
    score: Score,
    bounds: Bounds,
    share: Fraction,
) -> str:
    trained = [(model, train(study, model)) for model in models]

    def scores(rows: Floats) -> Floats:
        return _side_by_side(score, trained, rows)

    return names[int(np.argmax(study.mean(scores, bounds=bounds, share=share)))]


def _side_by_side(score: Score, given: list[tuple[Any, ...]], rows: Floats) -> Floats:
    columns = [np.asarray(score(*parts, rows.copy()), dtype=np.float64) for parts in given]
    return np.stack([column.reshape(len(rows)) for column in columns], axis=1)


def _by_permute_and_flip(
    source: Source,
    names: list[str],
    question: RowQuery,
    epsilon: Rational,
    bits: BitSource,
) -> Release:
    lattice = question.lattice
    flip = PermuteAndFlip.for_epsilon(epsilon=epsilon, sensitivity=2 * lattice.steps)
    step = replace(flip.step(), status=Status.ASSERTED)
    certificate = issue(
        claim=PureDP(flip.epsilon),
        steps=(step,),
        bits=bits,
        public=("the candidates", "the bounds of a score", "the number of rows"),
        assumed=(SCORE, *(() if is_ours(source) else (FOREIGN_SOURCE,))),
    )
    behind = flip.error(len(names)) / (2 * lattice.steps * source.rows)
    totals = [int(total) for total in question.total(opened(source))]
    return Release(
        value=names[flip.select(totals, bits)],
        certificate=certificate,
        error=(
            f"the mean score is at most {behind:.3g} of its range below the best, on average "
            "(permute-and-flip: nothing is trained, one score of known sensitivity decides, and "
            "a study would only add noise)"
        ),
    )


def _checked(candidates: Mapping[str, Any]) -> tuple[list[str], list[Any]]:
    if not isinstance(candidates, Mapping) or not candidates:
        raise ParameterError(
            "candidates",
            type(candidates) if not isinstance(candidates, Mapping) else candidates,
            expected="at least one candidate, by name",
            remedy='pass a mapping such as {"small": model, "large": other}',
        )
    return [str(name) for name in candidates], list(candidates.values())


def _refuse_rounds(rounds: int | None) -> None:
    if rounds is not None:
        raise ParameterError(
            "rounds",
            rounds,
            expected="None where nothing is trained",
            remedy="leave it out, or pass train= as well",
        )


def _share(scoring: Rational) -> Fraction:
    share = as_rational(scoring, "scoring")
    if not 0 < share < 1:
        raise ParameterError(
            "scoring",
            scoring,
            expected="a share between 0 and 1",
            remedy="pass scoring=0.2: a fifth of the budget for the scores",
        )
    return share
