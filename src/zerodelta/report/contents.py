"""What a report says: answers for a privacy officer, what was published, odds, and drawings."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from zerodelta.errors import CertificateError, printable
from zerodelta.exact.rational import Rational, number_text
from zerodelta.privacy.certificate import Certificate, to_ask
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.interval_shapes import cells_of
from zerodelta.privacy.parameters import Neighbors
from zerodelta.privacy.readable import LARGE, equals, large
from zerodelta.privacy.release import Release
from zerodelta.privacy.shown_release import ends_of, note_of
from zerodelta.privacy.verify import Total, by_data, total_of
from zerodelta.regression.features import LinearModel
from zerodelta.tables.found_keys import FoundKeys
from zerodelta.tasks.registry import task_recorded_as
from zerodelta.tasks.task import UNKNOWN_ERROR, Task
from zerodelta.value import value

# -- ε in words: how far one row can move what somebody believes (theory A1) ----------------------
# Pure ε-DP bounds the odds of any statement about one row: they grow at most by the factor e^ε.

_SLACK = 1e-12  # more than what a few operations in double precision can lose


def after_upper(before: Fraction, epsilon: Fraction) -> float:
    """Return the largest probability that a suspicion of `before` can rise to, rounded up.

    >>> percent_text(after_upper(Fraction(1, 2), Fraction(1)), up=True)
    '73.2 %'
    """
    odds = float((1 - before) / before) * math.exp(-min(float(epsilon), 700.0))
    return min(1.0, 1 / (1 + odds) * (1 + _SLACK) + _SLACK)


def after_lower(before: Fraction, epsilon: Fraction) -> float:
    """Return the smallest probability that it can fall to, rounded down.

    >>> percent_text(after_lower(Fraction(1, 2), Fraction(1)), up=False)
    '26.8 %'
    """
    odds = float((1 - before) / before) * math.exp(min(float(epsilon), 700.0))
    return max(0.0, 1 / (1 + odds) * (1 - _SLACK) - _SLACK)


def percent_text(probability: float, *, up: bool) -> str:
    """Return a probability in percent with one decimal, rounded away from what is promised.

    >>> percent_text(0.5, up=True), percent_text(0.99999, up=True), percent_text(0.1234, up=False)
    ('50 %', '100 %', '12.3 %')
    """
    thousandths = probability * 1000
    near = round(thousandths)
    if abs(thousandths - near) > 1e-6:
        near = math.ceil(thousandths) if up else math.floor(thousandths)
    return f"{near / 10:g} %"


def factor_text(epsilon: Fraction) -> str:
    """Return e^ε, rounded up.

    >>> factor_text(Fraction(1)), factor_text(Fraction(20)), factor_text(Fraction(0))
    ('2.72', '4.86e+08', '1')
    """
    if epsilon == 0:
        return "1"
    factor = math.exp(min(float(epsilon), 700.0)) * (1 + _SLACK)
    digits = 2 - math.floor(math.log10(factor))
    up = math.ceil(factor * 10.0**digits) / 10.0**digits
    return f"{up:.3g}"


# -- Published ------------------------------------------------------------------------------------
# What a release published, as grids of keys and numbers with their intervals, for any medium.
#
# Only the released value and what its record states are looked at.

LEVEL = "0.95"

_LONGEST = 600


@value(eq=False)
class Column:
    """Numbers, or texts, one for each line; the ends of intervals where there are some."""

    name: str
    values: Sequence[Any]
    lower: Sequence[Any] | None = None
    upper: Sequence[Any] | None = None


@value(eq=False)
class ReportTable:
    """Lines, named by keys, and columns of what was released."""

    keys: Mapping[str, Sequence[Any]]
    columns: tuple[Column, ...]
    title: str = ""
    note: str = ""
    """What to beware of."""
    hint: str = ""
    rows: bool = False
    """Whether lines are made-up rows rather than statistics."""

    def __len__(self) -> int:
        return max((len(each.values) for each in self.columns), default=0)


def grids_of(release: Release, level: Rational = LEVEL) -> tuple[ReportTable, ...]:
    """Return what was published; a value that is no table is told in words."""
    value = release.value
    if isinstance(value, FoundKeys):
        return (_found(value),)
    cells = cells_of(release)
    if cells.numbers:
        return (_cells(release, level),)
    if isinstance(value, Mapping) and value:
        return _mapping(release, value)
    if isinstance(value, np.ndarray) and value.ndim == 2:
        return (_matrix(release, value),)
    if isinstance(value, LinearModel):
        return (_linear(value),)
    if isinstance(value, (tuple, list)):
        chosen = Column(name="chosen", values=[plain_text(each) for each in value])
        return (ReportTable(keys={"place": range(1, len(value) + 1)}, columns=(chosen,)),)
    return (_parts(value),)


def _found(value: FoundKeys) -> ReportTable:
    lines = [key if isinstance(key, tuple) else (key,) for key in value.names]
    keys = {name: [line[i] for line in lines] for i, name in enumerate(value.columns)}
    return ReportTable(
        keys=keys, columns=(Column(name="count", values=value.counts),), note=value.note
    )


def _cells(release: Release, level: Rational) -> ReportTable:
    cells = cells_of(release)
    ends = ends_of(release, cells, level, of="sample", simultaneous=False)
    columns = []
    for name, values in cells.numbers.items():
        lower, upper = ends.get(name, (None, None))
        columns.append(Column(name=name, values=list(values), lower=lower, upper=upper))
    keys = {name: list(values) for name, values in cells.keys.items()}
    return ReportTable(keys=keys, columns=tuple(columns), note=note_of(release))


def _mapping(release: Release, value: Mapping[Any, Any]) -> tuple[ReportTable, ...]:
    arrays = {key: np.asarray(each) for key, each in value.items()}
    lengths = {each.shape for each in arrays.values()}
    if all(isinstance(key, str) for key in arrays) and len(lengths) == 1 and len(*lengths) == 1:
        columns = tuple(Column(name=str(k), values=v.tolist()) for k, v in arrays.items())
        return (ReportTable(keys={}, columns=columns, rows=True),)
    return tuple(_marginal(release, key, each) for key, each in arrays.items())


def _marginal(release: Release, key: Any, numbers: Any) -> ReportTable:
    names = [str(each) for each in (key if isinstance(key, tuple) else (key,))]
    if len(names) != numbers.ndim:
        names = [f"{'.'.join(names)}[{axis}]" for axis in range(numbers.ndim)]
    places = np.indices(numbers.shape).reshape(numbers.ndim, -1)
    keys = {}
    for name, size, axis in zip(names, numbers.shape, places, strict=True):
        options = _options(release, name)
        labels = options if len(options) == size else list(range(size))
        keys[name] = [labels[place] for place in axis]
    column = Column(name="fraction", values=numbers.ravel().tolist())
    return ReportTable(keys=keys, columns=(column,), title=" × ".join(names))


def _options(release: Release, name: str) -> list[Any]:
    """Return the declared options of a column, in the order of their codes."""
    for data in [] if release.record is None else release.record.data:
        kind = data.get("columns", {}).get(name, {})
        if "category" in kind:
            more = ["other"] * bool(kind.get("other")) + ["missing"] * bool(kind.get("missing"))
            return [*kind["category"], *more]
        if "boolean" in kind:
            return ["false", "true", *(["missing"] if kind.get("missing") else [])]
    return []


def _matrix(release: Release, value: Any) -> ReportTable:
    record = release.record
    asked = None if record is None else record.parameters.get("columns")
    if asked is None and record is not None and record.data:
        asked = list(record.data[0].get("columns", {}))
    named = asked if isinstance(asked, list) and len(asked) == value.shape[1] else None
    heads = [str(each) for each in named] if named else [str(i) for i in range(value.shape[1])]
    pairs = record is not None and record.task in ("covariance", "correlation")
    square = named is not None and pairs and value.shape[0] == value.shape[1]
    lines: Sequence[Any] = heads if square else range(1, len(value) + 1)
    columns = tuple(Column(name=head, values=value[:, i].tolist()) for i, head in enumerate(heads))
    return ReportTable(keys={"": lines}, columns=columns)


def _linear(value: LinearModel) -> ReportTable:
    width = value.coefficients.shape[1]
    names: Sequence[Any] = () if value.encoding is None else value.encoding.names
    lines = [*(names if len(names) == width else range(width)), "(intercept)"]
    several = len(value.coefficients) > 1
    columns = tuple(
        Column(
            name=f"coefficient, {value.classes[i]}" if several else "coefficient",
            values=[*line.tolist(), float(value.intercept[i])],
        )
        for i, line in enumerate(value.coefficients)
    )
    two = "" if len(value.classes) != 2 else f"positive scores: {value.classes[1]}"
    hint = "; ".join(text for text in (two, _clipped(value)) if text)
    return ReportTable(keys={"feature": lines}, columns=columns, hint=plain_text(hint))


def _clipped(value: LinearModel) -> str:
    """Say that coefficients are not for rows as they are, if the fit clipped them to a ball."""
    limits = value.limits
    if limits is None or limits.norm is None:
        return ""
    scaled = value.encoding is not None or limits.bounds is not None
    rows = "rows, scaled to [-1, 1] by their bounds," if scaled else "rows"
    return f"{rows} are clipped to length {number_shown(float(limits.norm))} before they are scored"


def _parts(value: Any) -> ReportTable:
    """Return a value of several parts as lines of words; arrays by what they begin with."""
    if is_dataclass(value) and not isinstance(value, type):
        parts = {each.name: getattr(value, each.name) for each in fields(value)}
    else:
        parts = {"value": value}
    told = Column(name="content", values=[_told(each) for each in parts.values()])
    return ReportTable(keys={"part": list(parts)}, columns=(told,))


def _told(value: Any) -> str:
    if isinstance(value, np.ndarray) and value.size > 64:
        return f"{value.dtype} array of shape {value.shape}: see the saved release"
    return plain_text(repr(value) if not isinstance(value, str) else value)


def error_words(release: Release) -> str:
    """Return the forecast of a release's error with what it is counted in."""
    name = "" if release.record is None else release.record.task
    return error_in_words(task_recorded_as(name), release.error)


def error_in_words(task: Task | None, error: float | str) -> str:
    """Return the forecast of an error with what it is counted in, which depends on the task.

    >>> from zerodelta.tasks.registry import TASKS
    >>> error_in_words(TASKS["count"], 2.0), error_in_words(TASKS["mean"], 2.0)
    ('2 rows', '2, in the unit of the column')
    """
    if isinstance(error, str):
        return error
    of = UNKNOWN_ERROR if task is None else task.error
    return f"{error:.4g}{' ' if of.startswith('rows') else ', '}{of}"


def number_shown(value: Any) -> str:
    """Return a cell as people read it.

    >>> number_shown(12345), number_shown(0.123456789), number_shown("oslo")
    ('12,345', '0.12346', 'oslo')
    """
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, (int, np.integer)):
        return f"{value:,}" if abs(int(value)) < 10**18 else number_text(int(value))
    if isinstance(value, (float, np.floating)):
        whole = 10_000 <= abs(float(value)) < 1e15
        return f"{value:,.0f}" if whole else f"{value:.5g}"
    return "" if value is None else plain_text(value)


def plain_text(value: Any) -> str:
    r"""Return a text on one line: whoever made a key may have put anything into it.

    >>> plain_text("a" + chr(27) + "[31m" + chr(10)) == r"a\x1b[31m\n"
    True
    """
    text = str(value)
    short = text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
    return printable(short)


HALF = Fraction(1, 2)


def epsilon_of(certificate: Certificate) -> Fraction | None:
    """Return the pure ε of one release; None if its claim is not pure."""
    claim = certificate.claim
    return claim.exact_epsilon if type(claim) is PureDP else None


def protected_words(certificate: Certificate) -> str:
    """Say whom a release protects."""
    if certificate.unit is None:
        return plain_text(certificate.row)
    return f"all rows of one {plain_text(certificate.unit)} ({plain_text(certificate.row)})"


def totals(releases: Sequence[Release]) -> dict[str, Total | str]:
    """Return by data set what its releases cost together, or why they do not add up."""
    known = [(each.record, each.certificate) for each in releases if each.record is not None]
    found: dict[str, Total | str] = {}
    for name, parts in by_data(known).items():
        if name is None:
            if len(parts) > 1 or len(releases) > 1:
                found["(data without a name)"] = "releases that name no data set are not added up"
            continue
        try:
            found[plain_text(name)] = total_of(parts)
        except CertificateError as error:
            found[plain_text(name)] = str(error)
    return found


def answers(
    releases: Sequence[Release], accounts: Sequence[Any] = ()
) -> list[tuple[str, str, str]]:
    """Return question, answer in plain text, and the section that tells more.

    `accounts`: the ledgers of the data, which know what else was released of them.
    """
    certificates = [each.certificate for each in releases]
    records = [each.record for each in releases if each.record is not None]
    return [
        (
            "Who is protected?",
            _several(_sentence(protected_words(each)) for each in certificates),
            "who",
        ),
        (
            "Against what?",
            "Anyone who sees what was published, whatever else they know or will ever learn.",
            "who",
        ),
        (
            "How sure is that?",
            f"{_several(_sure(each) for each in certificates)}. Anyone can check that. "
            f"{_vouched(releases)}",
            "steps",
        ),
        ("What is assumed?", _assumed(certificates), "assumed"),
        ("What is the total ε?", _total(releases, accounts), "odds"),
        ("What can an attacker learn?", _learned(releases), "odds"),
        (
            "Which data?",
            _several(plain_text(name) for each in records for name in each.names if name)
            or "The record names no data set.",
            "public",
        ),
        ("When?", _when([plain_text(each.time) for each in records]), "verify"),
        (
            "By which version?",
            _several(f"zerodelta {plain_text(each.version)}" for each in records)
            or "Not recorded.",
            "verify",
        ),
    ]


def _when(times: Sequence[str]) -> str:
    if not times:
        return "Not recorded."
    first, last = min(times), max(times)
    return first if first == last else f"{first} to {last}"


def _several(texts: object) -> str:
    distinct = list(dict.fromkeys(texts))  # type: ignore[call-overload]
    more = f"; and {len(distinct) - 3} more" if len(distinct) > 3 else ""
    return "; ".join(distinct[:3]) + more


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _sure(certificate: Certificate) -> str:
    return _sentence(certificate.summary.rpartition(": ")[2])


def _vouched(releases: Sequence[Release]) -> str:
    """Say who vouches that the steps were run: a proof is about steps, not about what was done."""
    unsigned = [number for number, each in enumerate(releases, 1) if not each.signatures]
    if not unsigned:
        return "That these steps were run is the word of whoever signed, if the signature is right."
    which = "" if len(unsigned) == len(releases) else f" of {', '.join(map(str, unsigned))}"
    return f"Nobody vouches that the steps{which} were run: there is no signature."


def _assumed(certificates: Sequence[Certificate]) -> str:
    """Return what certificates assume, and what is to be asked even where they assume nothing."""
    asked = dict.fromkeys(s for each in certificates for s in to_ask(unit=each.unit, counted=True))
    told = "; ".join(map(plain_text, asked))
    sentences = list(dict.fromkeys(s for each in certificates for s in each.assumed))
    if not sentences:
        return f"What nobody can check, and you have to ask: {told}."
    first = plain_text(sentences[0])
    rest = f", and {len(sentences) - 1} more" if len(sentences) > 1 else ""
    return f"That {first}{rest}. And what nobody can check, and you have to ask: {told}."


def _total(releases: Sequence[Release], accounts: Sequence[Any]) -> str:
    page = _total_of_page(releases)
    if accounts:
        told = f"{' '.join(map(spent_words, accounts))} On this page: {page}."
        which = ", ".join(map(str, uncounted(releases)))
        return f"{told} No ledger counted {which}." if which else told
    if not uncounted(releases):
        return f"{page}, on this page. The total is in the ledger, which was not read for it."
    return f"{page}, on this page. No ledger counted it: nobody here knows what else was released."


def uncounted(releases: Sequence[Release]) -> list[int]:
    """Return the numbers of the releases that no ledger counted, from 1."""
    return [
        number
        for number, each in enumerate(releases, 1)
        if each.record is None or not each.record.entries
    ]


def spent_words(account: Any) -> str:
    """Return the ε of all that a ledger counted of its data, and its odds."""
    added = account.neighbors is Neighbors.ADD_REMOVE
    epsilon = account.spent * (2 if added else 1)
    what = "one row" if account.unit is None else f"one {plain_text(account.unit)}"
    risen = percent_text(after_upper(HALF, epsilon), up=True)
    twice = f", counted twice: ε {equals(epsilon)}" if added else ""
    return (
        f"ε {equals(account.spent)} of {plain_text(account.data)} in all that its ledger counted "
        f"({account.neighbors.value}{twice}): a suspicion of 50 % about {what} rises to at most "
        f"{risen}.{f' Beware: ask why it has to be more than {LARGE}.' if large(epsilon) else ''}"
    )


def _warned(epsilon: Fraction) -> str:
    told = large(epsilon)
    return f" Beware: {told}." if told else ""


def _total_of_page(releases: Sequence[Release]) -> str:
    found = totals(releases)
    told = [
        f"ε {equals(each.epsilon)} of {name}" if isinstance(each, Total) else f"{name}: {each}"
        for name, each in found.items()
    ]
    if not told or len(releases) == 1:
        epsilon = epsilon_of(releases[0].certificate)
        added = releases[0].certificate.claim.neighbors is Neighbors.ADD_REMOVE
        relation = " (add-remove)" if added else ""
        summary = releases[0].certificate.summary
        return summary if epsilon is None else f"ε {equals(epsilon)}{relation}, δ = 0"
    return "; ".join(told) + "; δ = 0"


def _learned(releases: Sequence[Release]) -> str:
    if any(epsilon_of(each.certificate) is None for each in releases):
        return "See the claim: it is not one of pure differential privacy."
    return " ".join(
        f"Of {each.what}: a suspicion of 50 % rises to at most "
        f"{percent_text(after_upper(HALF, each.epsilon), up=True)} (at ε {equals(each.epsilon)}"
        f"{': add-remove counts twice' if each.twice else ''}).{_warned(each.epsilon)}"
        for each in learned(releases)
    )


@value
class Learned:
    """What can be learned of one row, or of one unit, by those releases that protect it."""

    what: str
    epsilon: Fraction
    """By which any two values of it are apart: that of an add-remove claim counts twice."""
    there: Fraction | None
    """By which it is apart from not being there, where all claims are for add-remove."""
    numbers: tuple[int, ...]
    """Which releases these are, from 1."""

    @property
    def twice(self) -> bool:
        """Whether the releases themselves state half of `epsilon`."""
        return self.there is not None


def learned(releases: Sequence[Release]) -> list[Learned]:
    """Return it for a row and for each unit: of whoever is in all of their data."""
    kinds: dict[str | None, list[int]] = {}
    for number, release in enumerate(releases, 1):
        kinds.setdefault(release.certificate.unit, []).append(number)
    found = []
    for unit, numbers in kinds.items():
        certificates = [releases[number - 1].certificate for number in numbers]
        alone = [epsilon_of(each) or Fraction(0) for each in certificates]
        added = [each.claim.neighbors is Neighbors.ADD_REMOVE for each in certificates]
        found.append(
            Learned(
                what="one row" if unit is None else f"the rows of one {plain_text(unit)}",
                epsilon=sum((e * (1 + a) for e, a in zip(alone, added, strict=True)), Fraction(0)),
                there=sum(alone, Fraction(0)) if all(added) else None,
                numbers=tuple(numbers),
            )
        )
    return found


def neighbors_words(certificate: Certificate) -> str:
    """Say which data sets are neighbors."""
    what = "row" if certificate.unit is None else f"{plain_text(certificate.unit)}'s rows"
    if certificate.claim.neighbors is Neighbors.ADD_REMOVE:
        return (
            f"Two data sets are neighbors if one has one {what} more than the other (add-remove). "
            f"For replacing one {what} by another, ε counts twice."
        )
    return (
        f"Two data sets are neighbors if they differ in one {what}, replaced by anything else "
        "(replace-one). The number of rows is the same in both, and public where it is listed."
        if certificate.unit is None
        else f"Two data sets are neighbors if all of one {what} are replaced by others (replace)."
    )


# -- Inline SVG of released numbers with their intervals, without scripts or fonts of its own -----

_WIDE, _LEFT, _RIGHT, _LINE, _TOP = 480, 150, 24, 24, 12
_LETTER = 8  # the width of one, at most about that, in the same unit


def drawing_of(grid: ReportTable, column: Column, *, most: int, number: str) -> str:
    """Return one column as dots with bars from lower to upper ends; empty if none is a number.

    `number` makes the ids of the page different.
    """
    values = [_number(each) for each in column.values[:most]]
    if not any(value is not None for value in values):
        return ""
    lower = [_number(each) for each in (column.lower if column.lower is not None else ())[:most]]
    upper = [_number(each) for each in (column.upper if column.upper is not None else ())[:most]]
    seen = [each for each in (*values, *lower, *upper) if each is not None]
    low, high, ticks = _scale(min(seen), max(seen))
    bottom = _TOP + _LINE * len(values)

    def x(value: float) -> str:
        return f"{_LEFT + (_WIDE - _LEFT - _RIGHT) * (value - low) / (high - low):.1f}"

    parts = []
    apart = float(x(ticks[1])) - float(x(ticks[0])) if len(ticks) > 1 else _WIDE
    longest = max(len(number_shown(tick)) for tick in ticks)
    step = math.ceil((longest + 1) * _LETTER / apart)
    for tick in ticks[::step]:
        parts.append(f'<path class="g" d="M{x(tick)} {_TOP}V{bottom}"/>')
        told = html.escape(number_shown(tick))
        parts.append(f'<text x="{x(tick)}" y="{bottom + 16}" text-anchor="middle">{told}</text>')
    for i, amount in enumerate(values):
        y = _TOP + _LINE * i + _LINE // 2
        label = html.escape(_label(grid, i))
        parts.append(f'<text x="{_LEFT - 10}" y="{y + 4}" text-anchor="end">{label}</text>')
        bar = (lower[i], upper[i]) if i < len(lower) and i < len(upper) else (None, None)
        if bar[0] is not None and bar[1] is not None:
            parts.append(f'<path class="b" d="M{x(bar[0])} {y}H{x(bar[1])}"/>')
        if amount is not None:
            parts.append(f'<circle class="d" cx="{x(amount)}" cy="{y}" r="4"/>')
    title = html.escape(plain_text(column.name))
    bars = ", bars: 95 % intervals" if lower else ", without intervals"
    return (
        f'<figure><svg viewBox="0 0 {_WIDE} {bottom + 26}" role="img" '
        f'aria-labelledby="t{number}"><title id="t{number}">{title}{bars}; the same numbers are in '
        f"the table</title>{''.join(parts)}</svg>"
        f"<figcaption>{title}{bars}</figcaption></figure>"
    )


def odds_drawing(lower: float, upper: float, number: int) -> str:
    """Return a line from 0 to 100 % with a suspicion of 50 % and how far it can move."""

    def x(value: float) -> str:
        return f"{24 + 430 * value:.1f}"

    ticks = "".join(
        f'<path class="g" d="M{x(t)} 14V44"/>'
        f'<text x="{x(t)}" y="62" text-anchor="middle">{t:.0%}</text>'
        for t in (0.0, 0.25, 0.5, 0.75, 1.0)
    )
    return (
        f'<figure><svg viewBox="0 0 480 70" role="img" aria-labelledby="odds-{number}">'
        f'<title id="odds-{number}">A suspicion of 50 percent, and how far it can move at most'
        f'</title>{ticks}<path class="b" d="M{x(lower)} 29H{x(upper)}"/>'
        f'<circle class="d" cx="{x(0.5)}" cy="29" r="5"/></svg>'
        "<figcaption>A suspicion of 50 %, and how far it can move at most</figcaption></figure>"
    )


def _label(grid: ReportTable, line: int) -> str:
    words = ", ".join(number_shown(each[line]) for each in grid.keys.values())
    text = words or "all rows that count"
    most = (_LEFT - 10) // _LETTER + 2
    return text if len(text) <= most else text[: most - 1] + "…"


def _number(value: Any) -> float | None:
    if isinstance(value, str) or value is None:
        return None
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _scale(low: float, high: float) -> tuple[float, float, Sequence[float]]:
    """Return the ends of an axis and about five round numbers on it.

    >>> _scale(0.0, 10.0)
    (-0.5, 10.5, [0.0, 2.0, 4.0, 6.0, 8.0, 10.0])
    """
    if not high > low:
        low, high = low - max(1.0, abs(low) / 10), high + max(1.0, abs(high) / 10)
    room = (high - low) / 20
    low, high = low - room, high + room
    raw = (high - low) / 6
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= raw)
    first = math.ceil(low / step)
    return low, high, [i * step for i in range(first, math.floor(high / step) + 1)]
