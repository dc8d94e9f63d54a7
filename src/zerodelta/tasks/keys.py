"""Release the most frequent keys with counts, listed (`top_k`) or not (`heavy_hitters`; U, K2)."""

from __future__ import annotations

import math
import string
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from zerodelta.data.arrays import reader_of
from zerodelta.data.dataset import Dataset
from zerodelta.data.declare import category, number, text
from zerodelta.data.keys import KeySource
from zerodelta.data.kinds import Kind, Text
from zerodelta.data.source import Sealed
from zerodelta.errors import ParameterError, is_list, is_name, needed, require
from zerodelta.exact.bits import BitSource
from zerodelta.exact.rational import Rational, as_count, as_positive
from zerodelta.mechanisms.diagnostics import as_diagnosis
from zerodelta.mechanisms.key_noise import FOR_COUNTS, KeyNoise, NoisyTop, gap_of, wish_for
from zerodelta.mechanisms.selection import JointTopK, PermuteAndFlip, worst_gap
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.parameters import Neighbors, as_usable_epsilon
from zerodelta.privacy.release import Release
from zerodelta.privacy.steps import Status
from zerodelta.spine.plan import Facts, Method, ReleasePlan, choose, ranked
from zerodelta.spine.run import ask, run
from zerodelta.spine.verbs import Paying, debited
from zerodelta.tables.found_keys import FoundKeys, plan_keys
from zerodelta.tasks.choices import MONOTONE, SENSITIVITY, exact_score, listed_options
from zerodelta.tasks.open import open as open_data
from zerodelta.tasks.task import (
    CLOSE,
    ITEMS,
    METHOD,
    ROWS,
    Command,
    Forecast,
    Numbers,
    Planner,
    Task,
)
from zerodelta.value import value

if TYPE_CHECKING:
    from typing_extensions import Unpack


# -- Keys that nobody listed and that occur often, with their counts, without δ (theory U) --------

_GOALS = ("counts", "keys")


@debited
def heavy_hitters(
    data: Any,
    columns: str | Sequence[str] | None = None,
    *,
    universe: Any = None,
    epsilon: Rational,
    false_keys: Rational = "1/100",
    goal: str = "counts",
    diagnostics: Rational | None = None,
    **paying: Unpack[Paying],
) -> Release:
    """Release the frequent keys and their counts, where nobody can list all keys.

    Use it for names, search terms, addresses or hashes: texts over an alphabet, whole numbers in a
    range, or several columns together. The universe is never listed: 2^256 keys take the time of
    the data. Like `collections.Counter(keys).most_common()`, but private. For the k most frequent
    see `top_k`, for keys that are known `histogram`.

    Parameters
    ----------
    data : data set, list, array, series, frame or file
        What `zd.open` returns, or anything that it opens, with `universe`.
    columns : str or list of str, optional
        Which columns make up a key; by default all.
    universe : kind, or dict of kinds
        For rows that were not opened: ``zd.text(20, alphabet=…)``, ``zd.number(0, 2**64 - 1,
        integer=True)``, or one for each column. A key outside is not counted. Public.
    false_keys : number, default "1/100"
        The expected number of keys that are invented by noise: by default one false key in 100
        such lists. A larger number lowers the thresholds: 1 finds a tenth more keys of large
        universes.
    goal : "counts" or "keys"
        What matters more; "keys" finds 2 to 4 % more keys, with counts that err by half as much
        again.

    Returns
    -------
    Release
        Its value is a `FoundKeys`: a sequence of pairs (key, count), the largest count first, which
        says how many of its keys may be invented. A key of several columns is a tuple.

    Notes
    -----
    **Guarantee**: pure ε-DP (theory U), proven, for every size of the universe.
    **Neighbors**: replace-one, or what the data set says.
    **Public**: the universe; thresholds follow from its size and from `false_keys`, for texts one
    for each length.
    **Error**: the expected absolute error of the count of a published key. There is no interval for
    a number that was published because it is large.
    Keys are texts that a stranger may have chosen: `print`, `to_csv` and notebooks escape them.

    Examples
    --------
    >>> import zerodelta as zd
    >>> names = ["ann"] * 4000 + ["bob"] * 2000 + ["zoe"] * 3
    >>> letters = "abcdefghijklmnopqrstuvwxyz"
    >>> release = heavy_hitters(
    ...     names, universe=zd.text(20, alphabet=letters), epsilon=1, false_keys="1/10000000"
    ... )
    >>> [(key, round(count, -3)) for key, count in release.value]
    [('ann', 4000), ('bob', 2000)]

    """
    source, dataset = keyed(data, columns, universe)
    question = HeavyHittersQuestion(source=source, false_keys=false_keys, goal=goal)
    diagnosis = as_diagnosis(diagnostics, dataset)
    return ask(question, source, epsilon=epsilon, diagnosis=diagnosis)


@value
class HeavyHittersQuestion:
    """Question for the frequent keys of a universe, and their counts."""

    source: KeySource
    false_keys: Rational = "1/100"
    goal: str = "counts"
    maximum_keys: int | None = None
    """The largest number of keys to publish; None for all that are found."""

    def plan(self, facts: Facts, epsilon: Rational) -> ReleasePlan[Any]:
        """Divide ε between the directions of the noise, and choose the thresholds."""
        exact = as_usable_epsilon(epsilon)
        remedy = 'pass goal="counts" or goal="keys"'
        require(is_name(self.goal, _GOALS), "goal", self.goal, "what matters more", remedy)
        keys = plan_keys(
            self.source,
            epsilon=exact,
            counts=self.goal == "counts",
            false_keys=self.false_keys,
            neighbors=facts.neighbors,
        )
        spends = f"ε on counts of all keys; half of those with {keys.found_from} rows are found"

        def answer(counts: Mapping[Any, int], bits: BitSource) -> FoundKeys:
            return keys.labeled(keys.apply(counts, bits), maximum_keys=self.maximum_keys)

        why = "the upper tail of the noise guards all keys, the lower one those that exist"
        return ReleasePlan(
            claim=PureDP(exact, neighbors=facts.neighbors),
            steps=(keys.mechanism.step(),),
            answer=answer,
            error=keys.error,
            methods=(Method(name="thresholds", error=keys.error, spends=spends, why=why),),
            public=("the universe of keys", "how many false keys are expected"),
        )


def keyed(data: Any, columns: Any, universe: Any) -> tuple[KeySource, Dataset]:
    """Return the key columns of rows, which a ticket opens as counts by key, and the data set."""
    if isinstance(data, Dataset):
        require(
            universe is None,
            "universe",
            universe,
            expected="nothing, because the possible keys were declared",
            remedy="declare it: zd.open(…, columns={…: zd.text(20, alphabet=…)})",
        )
        chosen = data if columns is None else data[columns]
        return KeySource(chosen), chosen
    if isinstance(universe, Mapping):
        kinds: dict[str, Kind] = dict(universe)
        key_columns = list(kinds) if columns is None else columns
    else:
        names: list[Any] = [columns]
        if columns is not None and not isinstance(columns, str):
            names = list(columns) if is_list(columns) else []
        require(
            len(names) == 1 and (names[0] is None or isinstance(names[0], str)),
            "universe",
            universe,
            expected="a kind for each of several columns",
            remedy='pass universe={"city": zd.text(20, alphabet=…), "year": zd.number(…)}',
        )
        name = names[0] if names[0] is not None else _only_column(data)
        kinds, key_columns = {name: _kind(universe)}, [name]
    dataset = open_data(data, columns=kinds)[key_columns]
    return KeySource(dataset), dataset


def _only_column(data: Any) -> str:
    """Return the name of the only column of bare rows."""
    names = reader_of(data).names
    require(
        len(names) == 1,
        "columns",
        len(names),
        expected="the names of the columns that make up a key",
        remedy='pass columns="city", or universe={"city": …} with a kind for each',
    )
    return names[0]


def _kind(universe: Any) -> Kind:
    """Return a universe as a kind of column: a kind, a list of options, or N for 0..N-1."""
    if isinstance(universe, Kind):
        return universe
    if type(universe) is int and universe >= 2:
        return number(0, universe - 1, integer=True)
    if isinstance(universe, Sequence) and not isinstance(universe, str) and universe:
        return category(list(universe))
    raise ParameterError(
        "universe",
        universe,
        expected="all possible keys, known without the rows",
        remedy="pass universe=zd.text(20, alphabet=…), zd.number(0, 9999, integer=True) or a list",
    )


_MOST_KNOWN = 1 << 24
"""Integers in a larger range than this are unknown keys: most of them do not occur."""


@partial(debited, like=heavy_hitters)
def top_k(
    data: Any = None,
    columns: str | Sequence[str] | None = None,
    *,
    k: int,
    epsilon: Rational,
    universe: Any = None,
    scores: Any = None,
    sensitivity: Rational | None = None,
    monotone: bool = False,
    method: str = "auto",
    expected_gap: Rational | None = None,
    false_keys: Rational = "1/100",
    diagnostics: Rational | None = None,
    **paying: Unpack[Paying],
) -> Release:
    """Release the k most frequent keys, listed or not, with counts; or the k best-scored options.

    Like `collections.Counter(keys).most_common(k)`, but private. For keys, neither a larger k nor
    the counts cost ε. For one winner among listed items see `mode`, by its score `select`.

    Parameters
    ----------
    data : data set, list, array, series, frame or file
        What `zd.open` returns, or anything that it opens, with `universe`. Each row has one key.
    k : int
        The number of keys to release. Of unknown keys fewer may be found.
    universe : list, int, kind or dict of kinds
        For rows that were not opened: all possible keys, N for 0..N-1, or what `heavy_hitters`
        takes. Texts, and more than 2^24 integers, are unknown keys. Public.
    scores : mapping or sequence
        Instead of data: {option: score}, or a list of scores, each with `sensitivity`.
    sensitivity : number
        By how much one row can change a score.
    monotone : bool
        Whether between any two neighbors all stated scores change in the same direction, which
        needs half the noise.
    method : str
        Of known keys "asymmetric" or "symmetric" noise; of scores "joint" (one draw of all k) or
        "peeling" (one after the other, each with ε/k); or "auto".
    expected_gap : number, optional
        The approximate lead of the k-th key over all further keys, known without the rows: methods
        are compared at that lead instead of the worst one.
    false_keys : number, default "1/100"
        As for `heavy_hitters`, of unknown keys.

    Returns
    -------
    Release
        For data its value is a `FoundKeys`: pairs (key, count), the largest count first, which says
        how many of its keys may be invented. For scores it is a list of options, the best first.

    Notes
    -----
    **Guarantee**: pure ε-DP, proven for data (theory U): the largest of noisy counts of all keys.
    For stated scores (theory K2) `sensitivity` and `monotone` are caller-asserted.
    **Neighbors**: replace-one, or what the data set says.
    **Error**: the largest expected gap between a count among the k largest and the one released in
    its place, if all further keys are tied; for unknown keys the expected absolute error of a
    published count.

    Examples
    --------
    >>> drinks = ["tea"] * 4000 + ["coffee"] * 2000 + ["milk"] * 10
    >>> release = top_k(drinks, universe=["tea", "coffee", "milk", "water"], k=2, epsilon=1)
    >>> [(key, round(count, -3)) for key, count in release.value]
    [('tea', 4000), ('coffee', 2000)]
    >>> top_k(scores={"a": 10, "b": 9000, "c": 5000}, sensitivity=1, k=2, epsilon=1).value
    ['b', 'c']

    """
    if scores is not None:
        return _scored(
            scores,
            ScoredQuestion(
                options=listed_options(scores),
                k=k,
                sensitivity=sensitivity,
                monotone=monotone,
                method=method,
            ),
            refused={"data": data, "columns": columns, "universe": universe},
            for_counts={"expected_gap": expected_gap, "diagnostics": diagnostics},
            epsilon=epsilon,
        )
    require(
        sensitivity is None and monotone is False,
        "sensitivity, monotone",
        (sensitivity, monotone),
        expected="nothing, because one row changes one count by 1",
        remedy="leave them out, or pass scores=",
    )
    source, dataset = keyed(data, columns, universe)
    number_of_keys, diagnosis = as_count(k, "k", minimum=1), as_diagnosis(diagnostics, dataset)
    question: HeavyHittersQuestion | TopKQuestion
    if known_keys(source):
        question = TopKQuestion(
            source=source, k=number_of_keys, method=method, expected_gap=expected_gap
        )
    else:
        require(
            is_name(method, ("auto", "thresholds")),
            "method",
            method,
            expected='"thresholds", the only method for unknown keys',
            remedy='pass method="auto"',
        )
        question = HeavyHittersQuestion(
            source=source, false_keys=false_keys, maximum_keys=number_of_keys
        )
    return ask(question, source, epsilon=epsilon, diagnosis=diagnosis)


def known_keys(source: KeySource) -> bool:
    """Tell whether all keys of the declared universe can be listed."""
    texts = any(isinstance(kind, Text) for kind in source.kinds.values())
    return not texts and source.universe.size <= _MOST_KNOWN


@value
class TopKQuestion:
    """Question for the k most frequent of known keys."""

    source: KeySource
    k: int
    method: str = "auto"
    expected_gap: Rational | None = None

    def plan(self, facts: Facts, epsilon: Rational) -> ReleasePlan[Any]:
        """Choose asymmetric or symmetric noise on the counts of keys, and calibrate it."""
        exact, universe = as_usable_epsilon(epsilon), self.source.universe
        methods = top_k_methods(
            epsilon=exact,
            keys=universe.size,
            k=self.k,
            neighbors=facts.neighbors,
            expected_gap=self.expected_gap,
        )
        chosen = choose(methods, self.method)
        noise = _noise(
            chosen.name, exact, universe.size, self.k, facts.neighbors, self.expected_gap
        )
        top, columns = NoisyTop(noise=noise, size=universe.size, k=self.k), tuple(self.source.kinds)

        def answer(counts: Mapping[Any, int], bits: BitSource) -> FoundKeys:
            """Return the keys with the largest noisy counts."""
            ranks = np.fromiter((universe.place(key)[1] for key in counts), np.int64, len(counts))
            order = np.argsort(ranks)  # the order of the rows must not show
            numbers = np.fromiter(counts.values(), np.int64, len(counts))
            largest = top.apply(ranks[order], numbers[order], bits)
            pairs = tuple(
                (universe.published(universe.key((0, rank))), count - noise.median)
                for rank, count in largest
            )
            return FoundKeys(pairs=pairs, columns=columns)

        return ReleasePlan(
            claim=PureDP(exact, neighbors=facts.neighbors),
            steps=(noise.step(universe.size),),
            answer=answer,
            error=chosen.error,
            methods=methods,
            public=("the universe of keys",),
        )


def top_k_methods(
    *,
    epsilon: Rational,
    keys: int,
    k: int = 1,
    neighbors: Neighbors = Neighbors.REPLACE,
    expected_gap: Rational | None = None,
) -> tuple[Method, ...]:
    """Return the methods that release the k most frequent of known keys, best first.

    The error is the largest expected gap at one of the k places, if the other keys are divided
    evenly over the places as their rivals.

    >>> [method.name for method in top_k_methods(epsilon=1, keys=100_000, k=10)]
    ['asymmetric', 'symmetric']
    """
    exact, size = as_usable_epsilon(epsilon), as_count(keys, "keys", minimum=1)
    places = as_count(k, "k", minimum=1)
    require(
        places <= size,
        "k",
        k,
        expected=f"at most {size}, the number of possible keys",
        remedy="pass a smaller k, or ask for a histogram",
    )
    gap = None if expected_gap is None else as_positive(expected_gap, "expected_gap")
    rivals = -(-(size - places) // places)

    def of(name: str, why: str) -> Method:
        noise = _noise(name, exact, size, places, neighbors, gap)
        error = gap_of(noise, rivals, gap)
        return Method(name=name, error=error, spends="ε on all counts together", why=why)

    symmetric = of("symmetric", "few keys could get in by noise; the counts err least")
    if neighbors is Neighbors.ADD_REMOVE:  # both directions have all of ε
        return (symmetric,)
    why = "many keys could get in by noise, which falls faster upwards than downwards"
    return ranked(symmetric, of("asymmetric", why))


def _noise(
    name: str, epsilon: Fraction, keys: int, k: int, neighbors: Neighbors, gap: Rational | None
) -> KeyNoise:
    """Return the noise of a method, on the counts of known keys."""
    if name == "symmetric":
        return KeyNoise.symmetric(epsilon=epsilon, neighbors=neighbors)
    log_keys = math.log(max(keys / k, 1.0))
    wish = FOR_COUNTS if gap is None else wish_for(log_keys, epsilon, gap)
    return KeyNoise.for_epsilon(epsilon=epsilon, log_keys=log_keys, wish=wish, neighbors=neighbors)


# -- The k best of options with stated scores (theory K2) -----------------------------------------


@value
class ScoredQuestion:
    """Question for the k options with the best stated scores."""

    options: Sequence[Any]
    k: int
    sensitivity: Rational | None
    monotone: bool = False
    method: str = "auto"

    def plan(self, facts: Facts, epsilon: Rational) -> ReleasePlan[Any]:
        """Plan k options by stated scores: one joint draw, or k draws, by forecast."""
        exact, k = as_usable_epsilon(epsilon), as_count(self.k, "k", minimum=1)
        options, count = self.options, len(self.options)
        require(k <= count, "k", k, f"at most {count}, the number of options", "pass a smaller k")
        remedy = "pass sensitivity=, by how much one row can change a score"
        require(self.sensitivity is not None, "sensitivity", None, "a public number", remedy)
        sensitivity = as_positive(self.sensitivity or 0, "sensitivity")
        single = PermuteAndFlip.for_epsilon(
            epsilon=exact / k, sensitivity=sensitivity, monotone=self.monotone
        )
        joint = JointTopK.for_epsilon(
            epsilon=exact, k=k, sensitivity=sensitivity, monotone=self.monotone
        )
        methods = _scored_methods(joint, single, count)
        default = is_name(self.method, ["auto"])
        chosen = methods[0] if default else choose(methods, self.method)
        peeled = chosen.name == "peeling"

        def answer(scores: Any, bits: BitSource) -> list[Any]:
            """Return k options by score: jointly, or one after another without replacement."""
            listed = scores.values() if isinstance(scores, Mapping) else scores
            exact_scores = [exact_score(score) for score in listed]
            if not peeled:
                return [options[i] for i in joint.select(exact_scores, bits)]
            remaining = list(range(count))
            winners = []
            for _ in range(k):
                place = single.select([exact_scores[i] for i in remaining], bits)
                winners.append(remaining.pop(place))
            return [options[i] for i in winners]

        step = single.step() if peeled else joint.step()
        if peeled:
            step = replace(step, numbers={**step.numbers, "count": k})
        return ReleasePlan(
            claim=PureDP(exact, neighbors=facts.neighbors),
            steps=(replace(step, status=Status.ASSERTED),),
            answer=answer,
            error=chosen.error,
            methods=methods,
            public=("the options", "how far one row can move a score"),
            assumed=(SENSITIVITY, *([MONOTONE] if self.monotone else [])),
            bare_rows=False,
        )


def _scored_methods(joint: JointTopK, single: PermuteAndFlip, count: int) -> tuple[Method, ...]:
    """Return both methods, the default first: one joint draw, unless k is 1."""
    one_draw = Method(
        name="joint",
        error=joint.worst_gap(count),
        spends="ε on one draw of all k",
        why="nothing is divided by k; best where scores fall off steadily",
    )
    peeling = Method(
        name="peeling",
        error=worst_gap(count, single.scale),
        spends="ε/k on each of k choices",
        why="better for one option, and where all but k are tied",
    )
    return (peeling, one_draw) if joint.k == 1 else (one_draw, peeling)


def _scored(
    scores: Any,
    question: ScoredQuestion,
    *,
    refused: Mapping[str, Any],
    for_counts: Mapping[str, Any],
    epsilon: Rational,
) -> Release:
    """Release the best of stated scores; refuse arguments that are for rows or their counts."""
    for name, entry in refused.items():
        remedy = "leave it out, or ask for counts without scores="
        require(entry is None, name, type(entry), "nothing together with scores=", remedy)
    for name, entry in for_counts.items():
        remedy = "leave it out: it is for counts of rows"
        require(entry is None, name, entry, "nothing together with scores=", remedy)
    return run(question.plan(Facts(rows=None), epsilon), Sealed(scores))


# -- What the tasks are, for advice and the command line ------------------------------------------


def _universe(universe: Any) -> KeySource:
    """Return the universe of keys, with no rows."""
    names = list(universe) if isinstance(universe, Mapping) else ["0"]
    no_rows = np.zeros(0, dtype=[(name, object) for name in names])
    return keyed(no_rows, None, needed(universe, "universe", "pass universe=1000"))[0]


def _heavy(numbers: Numbers) -> tuple[Method, ...]:
    """Return the forecast for keys that nobody listed."""
    question = HeavyHittersQuestion(
        source=_universe(numbers["universe"]), false_keys=numbers["false_keys"]
    )
    return tuple(question.plan(Facts(rows=numbers["n"]), numbers["epsilon"]).methods)


def _top_k(numbers: Numbers) -> tuple[Method, ...]:
    """Return the forecast for the k most frequent keys, known or not."""
    source = _universe(numbers["universe"])
    if not known_keys(source):
        return _heavy(numbers)
    return top_k_methods(epsilon=numbers["epsilon"], keys=source.universe.size, k=numbers["k"])


def _missed(numbers: Numbers) -> float:
    """Return a blind error b for which `error > b/10` means: a key in n/10 rows is often missed.

    Such a key is missed more often than not if n/10 < found_from, and b = n · error / found_from.
    """
    plan = plan_keys(
        _universe(numbers["universe"]), epsilon=numbers["epsilon"], false_keys=numbers["false_keys"]
    )
    return float(numbers["n"]) * plan.error / max(1, plan.found_from)


_KEYS = Forecast(
    unit="expected absolute error of the count of a published key",
    call="zd.heavy_hitters(keys, universe=…, false_keys={false_keys}, epsilon={epsilon})",
    methods=_heavy,
    reliable=CLOSE,
    needs={**ROWS, "universe": "universe=zd.text(10, alphabet=…)"},
    allows={"false_keys": "1/100"},
    blind=_missed,
    few="a key that is in every tenth row is missed more often than not",
    typical={"universe": text(10, alphabet=string.ascii_lowercase)},
)

TASKS: dict[str, Task] = {
    "top_k": Task(
        verb=top_k,
        page="choices",
        error="rows",
        forecast=replace(
            _KEYS,
            unit="largest expected gap between a count that is wanted and the one in its place; "
            "of keys\n       that nobody can list, the expected absolute error of a count",
            call="zd.top_k(keys, universe=…, k={k}, false_keys={false_keys}, epsilon={epsilon})",
            methods=_top_k,
            needs={**ROWS, "universe": "universe=1000", "k": "k=10"},
            reliable="for the counts that are hardest to tell apart; usually much less",
            blind=lambda numbers: numbers["n"] / as_count(numbers["k"], "k", minimum=1),
            few="the gap exceeds a tenth of the count of k keys that share all rows",
            typical={"universe": 1000, "k": 10},
        ),
        command=Command(
            options=("k", "false_keys", *METHOD),
            needs=("k",),
            publishes="k keys with counts",
            example="top-k people.csv city --k 2",
        ),
        planner=Planner(
            title="The k most frequent items",
            fields=("n", "universe", "k"),
            people=ITEMS,
            python='people, "item", k={k}',
            shell="item --k {k}",
        ),
    ),
    "heavy_hitters": Task(
        verb=heavy_hitters,
        page="choices",
        error="rows",
        forecast=_KEYS,
        command=Command(
            options=("goal", "false_keys", "diagnostics"),
            publishes="keys with counts; some may be invented by noise",
            example="heavy-hitters people.csv surname",
        ),
        planner=Planner(
            title="Frequent keys that nobody listed",
            fields=("n", "letters"),
            people=f'words = zd.text({{letters}}, alphabet="{string.ascii_lowercase}")\n'
            'people = zd.open("people.csv", columns={"word": words})\n',
            python='people, "word"',
            shell="word",
        ),
    ),
}
