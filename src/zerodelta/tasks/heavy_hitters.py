"""Keys that nobody listed and that occur often, with their counts, without δ (theory U)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from zerodelta.data.dataset import Dataset
from zerodelta.data.declare import category, number
from zerodelta.data.find_reader import reader_of
from zerodelta.data.key_source import KeySource
from zerodelta.data.kind import Kind
from zerodelta.errors import ParameterError, is_list, is_name, require
from zerodelta.exact.bits import BitSource
from zerodelta.exact.rational import Rational
from zerodelta.mechanisms.diagnostics import diagnosis
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.parameters import as_usable_epsilon
from zerodelta.privacy.release import Release
from zerodelta.spine.facts import Facts
from zerodelta.spine.methods import Method
from zerodelta.spine.paying import Paying, debited
from zerodelta.spine.release_plan import ReleasePlan
from zerodelta.spine.run import ask
from zerodelta.tables.found_keys import FoundKeys
from zerodelta.tables.unknown_keys import plan_keys
from zerodelta.tasks.open import open as open_data
from zerodelta.value import value

if TYPE_CHECKING:
    from typing_extensions import Unpack

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
    bits: BitSource | None = None,
    **paying: Unpack[Paying],
) -> Release:
    """Release which keys occur often, and how often, where nobody can list all keys.

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
        integer=True)``, or one for each column. A key outside counts nowhere. Public.
    epsilon : number
        The privacy loss, as an int, a float, a Fraction or a text such as "1/2".
    false_keys : number, default "1/100"
        How many of the keys may be invented by noise, on average: by default one, in one of 100
        such lists. More means lower thresholds: 1 finds a tenth more keys of large universes.
    goal : "counts" or "keys"
        What matters more; "keys" finds 2 to 4 % more keys, with counts that err half as much again.
    diagnostics : number, optional
        The share of ε, such as "1/100", for `release.diagnostics`: which fractions of the rows were
        used and unreadable.
    bits : BitSource
        Replayed bits for tests; never for data.

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
    Keys are texts that somebody chose: `print`, `to_csv` and notebooks show them escaped.

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
    beside = diagnosis(diagnostics, dataset)
    return ask(question, source, epsilon=epsilon, bits=bits, beside=beside)


@value
class HeavyHittersQuestion:
    """Keys that occur often are asked; at most `most` of them, if that is given."""

    source: KeySource
    false_keys: Rational = "1/100"
    goal: str = "counts"
    most: int | None = None

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
        spends = f"ε on counts of all keys; half of those with {keys.half_found} rows are found"

        def answer(counts: Mapping[Any, int], bits: BitSource) -> FoundKeys:
            return keys.labeled(keys.apply(counts, bits), most=self.most)

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
    """Return the key columns of rows, counted when a ticket opens them, and the data set."""
    if isinstance(data, Dataset):
        require(
            universe is None,
            "universe",
            universe,
            expected="nothing: what keys there can be was declared",
            remedy="declare it: zd.open(…, columns={…: zd.text(20, alphabet=…)})",
        )
        chosen = data if columns is None else data[columns]
        return KeySource(chosen), chosen
    if isinstance(universe, Mapping):
        kinds: dict[str, Kind] = dict(universe)
        wanted = list(kinds) if columns is None else columns
    else:
        one: list[Any] = [columns]
        if columns is not None and not isinstance(columns, str):
            one = list(columns) if is_list(columns) else []
        require(
            len(one) == 1 and (one[0] is None or isinstance(one[0], str)),
            "universe",
            universe,
            expected="a kind for each of several columns",
            remedy='pass universe={"city": zd.text(20, alphabet=…), "year": zd.number(…)}',
        )
        name = one[0] if one[0] is not None else _only_column(data)
        kinds, wanted = {name: _kind(universe)}, [name]
    dataset = open_data(data, columns=kinds)[wanted]
    return KeySource(dataset), dataset


def _only_column(data: Any) -> str:
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
        expected="what keys there can be, with a size, known without the rows",
        remedy="pass universe=zd.text(20, alphabet=…), zd.number(0, 9999, integer=True) or a list",
    )
