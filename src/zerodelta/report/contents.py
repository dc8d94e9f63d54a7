"""Collect the contents of a report: answers for an officer, published tables, odds, drawings."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Mapping, Sequence
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

# -- ε in words: the odds of a suspicion before and after a release (theory A1) -------------------
# Pure ε-DP bounds the odds of any statement about one row: they grow at most by the factor e^ε.

_SLACK = 1e-12  # larger than the rounding error of the few float operations below


def after_upper(before: Fraction, epsilon: Fraction) -> float:
    """Return the largest probability to which a suspicion of `before` can rise, rounded up.

    >>> percent_text(after_upper(Fraction(1, 2), Fraction(1)), up=True)
    '73.2 %'
    """
    odds = float((1 - before) / before) * math.exp(-min(float(epsilon), 700.0))
    return min(1.0, 1 / (1 + odds) * (1 + _SLACK) + _SLACK)


def after_lower(before: Fraction, epsilon: Fraction) -> float:
    """Return the smallest probability to which a suspicion of `before` can fall, rounded down.

    >>> percent_text(after_lower(Fraction(1, 2), Fraction(1)), up=False)
    '26.8 %'
    """
    odds = float((1 - before) / before) * math.exp(min(float(epsilon), 700.0))
    return max(0.0, 1 / (1 + odds) * (1 - _SLACK) - _SLACK)


def percent_text(probability: float, *, up: bool) -> str:
    """Return a probability in percent with one decimal, rounded up or down as the bound needs.

    >>> percent_text(0.5, up=True), percent_text(0.99999, up=True), percent_text(0.1234, up=False)
    ('50 %', '100 %', '12.3 %')
    """
    thousandths = probability * 1000
    rounded = round(thousandths)
    if abs(thousandths - rounded) > 1e-6:
        rounded = math.ceil(thousandths) if up else math.floor(thousandths)
    return f"{rounded / 10:g} %"


def factor_text(epsilon: Fraction) -> str:
    """Return e^ε with three digits, rounded up.

    >>> factor_text(Fraction(1)), factor_text(Fraction(20)), factor_text(Fraction(0))
    ('2.72', '4.86e+08', '1')
    """
    if epsilon == 0:
        return "1"
    factor = math.exp(min(float(epsilon), 700.0)) * (1 + _SLACK)
    digits = 2 - math.floor(math.log10(factor))
    rounded = math.ceil(factor * 10.0**digits) / 10.0**digits
    return f"{rounded:.3g}"


# -- Published tables -----------------------------------------------------------------------------
# A release's value as tables of keys and numbers with their intervals, for any medium. Only the
# released value and its record are read.

LEVEL = "0.95"

_MAXIMUM_LENGTH = 600


@value(eq=False)
class Column:
    """Numbers or texts, one for each line, and the ends of their intervals if they have any."""

    name: str
    values: Sequence[Any]
    lower: Sequence[Any] | None = None
    upper: Sequence[Any] | None = None


@value(eq=False)
class ReportTable:
    """Lines named by keys, with the released columns."""

    keys: Mapping[str, Sequence[Any]]
    columns: tuple[Column, ...]
    title: str = ""
    note: str = ""
    """A warning about the table."""
    hint: str = ""
    rows: bool = False
    """Whether the lines are synthetic rows rather than statistics."""

    def __len__(self) -> int:
        return max((len(column.values) for column in self.columns), default=0)


def grids_of(release: Release, level: Rational = LEVEL) -> tuple[ReportTable, ...]:
    """Return the published value as tables; a value of another kind is put into words."""
    value = release.value
    if isinstance(value, FoundKeys):
        return (_keys_table(value),)
    cells = cells_of(release)
    if cells.numbers:
        return (_statistics_table(release, level),)
    if isinstance(value, Mapping) and value:
        return _mapping_tables(release, value)
    if isinstance(value, np.ndarray) and value.ndim == 2:
        return (_matrix_table(release, value),)
    if isinstance(value, LinearModel):
        return (_coefficients_table(value),)
    if isinstance(value, (tuple, list)):
        chosen = Column(name="chosen", values=[plain_text(choice) for choice in value])
        return (ReportTable(keys={"place": range(1, len(value) + 1)}, columns=(chosen,)),)
    return (_parts_table(value),)


def _keys_table(value: FoundKeys) -> ReportTable:
    lines = [key if isinstance(key, tuple) else (key,) for key in value.names]
    keys = {name: [line[i] for line in lines] for i, name in enumerate(value.columns)}
    return ReportTable(
        keys=keys, columns=(Column(name="count", values=value.counts),), note=value.note
    )


def _statistics_table(release: Release, level: Rational) -> ReportTable:
    """Return the table of a release's statistics by group, with their intervals."""
    cells = cells_of(release)
    ends = ends_of(release, cells, level, of="sample", simultaneous=False)
    columns = []
    for name, values in cells.numbers.items():
        lower, upper = ends.get(name, (None, None))
        columns.append(Column(name=name, values=list(values), lower=lower, upper=upper))
    keys = {name: list(values) for name, values in cells.keys.items()}
    return ReportTable(keys=keys, columns=tuple(columns), note=note_of(release))


def _mapping_tables(release: Release, value: Mapping[Any, Any]) -> tuple[ReportTable, ...]:
    """Return synthetic rows (columns of one length) as one table, marginals as one table each."""
    arrays = {key: np.asarray(numbers) for key, numbers in value.items()}
    shapes = {array.shape for array in arrays.values()}
    if all(isinstance(key, str) for key in arrays) and len(shapes) == 1 and len(*shapes) == 1:
        columns = tuple(Column(name=str(k), values=v.tolist()) for k, v in arrays.items())
        return (ReportTable(keys={}, columns=columns, rows=True),)
    return tuple(_marginal_table(release, key, array) for key, array in arrays.items())


def _marginal_table(release: Release, key: Any, numbers: Any) -> ReportTable:
    """Return the table of one marginal: a line for each cell and its fraction."""
    names = [str(name) for name in (key if isinstance(key, tuple) else (key,))]
    if len(names) != numbers.ndim:
        names = [f"{'.'.join(names)}[{axis}]" for axis in range(numbers.ndim)]
    codes = np.indices(numbers.shape).reshape(numbers.ndim, -1)
    keys = {}
    for name, size, axis in zip(names, numbers.shape, codes, strict=True):
        options = _options(release, name)
        labels = options if len(options) == size else list(range(size))
        keys[name] = [labels[code] for code in axis]
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


def _matrix_table(release: Release, value: Any) -> ReportTable:
    """Return the table of a matrix, its columns named if the record names them."""
    record = release.record
    names = None if record is None else record.parameters.get("columns")
    if names is None and record is not None and record.data:
        names = list(record.data[0].get("columns", {}))
    if not isinstance(names, list) or len(names) != value.shape[1]:
        names = None
    heads = [str(name) for name in names or range(value.shape[1])]
    pairs = record is not None and record.task in ("covariance", "correlation")
    square = names is not None and pairs and value.shape[0] == value.shape[1]
    lines: Sequence[Any] = heads if square else range(1, len(value) + 1)
    columns = tuple(Column(name=head, values=value[:, i].tolist()) for i, head in enumerate(heads))
    return ReportTable(keys={"": lines}, columns=columns)


def _coefficients_table(value: LinearModel) -> ReportTable:
    """Return the table of a linear model: features, intercept, a column per output."""
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
    positive = "" if len(value.classes) != 2 else f"positive scores: {value.classes[1]}"
    hint = "; ".join(text for text in (positive, _clipping_words(value)) if text)
    return ReportTable(keys={"feature": lines}, columns=columns, hint=plain_text(hint))


def _clipping_words(value: LinearModel) -> str:
    """Return a hint that rows are scaled and clipped before they are scored, if they are."""
    limits = value.limits
    if limits is None or limits.norm is None:
        return ""
    scaled = value.encoding is not None or limits.bounds is not None
    rows = "rows, scaled to [-1, 1] by their bounds," if scaled else "rows"
    return f"{rows} are clipped to length {number_shown(float(limits.norm))} before they are scored"


def _parts_table(value: Any) -> ReportTable:
    """Return the fields of a value as lines of words; a large array by its shape."""
    if is_dataclass(value) and not isinstance(value, type):
        parts = {field.name: getattr(value, field.name) for field in fields(value)}
    else:
        parts = {"value": value}
    content = Column(name="content", values=[_in_words(part) for part in parts.values()])
    return ReportTable(keys={"part": list(parts)}, columns=(content,))


def _in_words(value: Any) -> str:
    if isinstance(value, np.ndarray) and value.size > 64:
        return f"{value.dtype} array of shape {value.shape}: see the saved release"
    return plain_text(repr(value) if not isinstance(value, str) else value)


def error_words(release: Release) -> str:
    """Return the forecast of a release's error with its unit."""
    name = "" if release.record is None else release.record.task
    return error_in_words(task_recorded_as(name), release.error)


def error_in_words(task: Task | None, error: float | str) -> str:
    """Return the forecast of an error with its unit, which depends on the task.

    >>> from zerodelta.tasks.registry import TASKS
    >>> error_in_words(TASKS["count"], 2.0), error_in_words(TASKS["mean"], 2.0)
    ('2 rows', '2, in the unit of the column')
    """
    if isinstance(error, str):
        return error
    of = UNKNOWN_ERROR if task is None else task.error
    return f"{error:.4g}{' ' if of.startswith('rows') else ', '}{of}"


def number_shown(value: Any) -> str:
    """Return a cell as people read it: five digits, thousands separated, texts escaped.

    >>> number_shown(12345), number_shown(0.123456789), number_shown("oslo")
    ('12,345', '0.12346', 'oslo')
    """
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, (int, np.integer)):
        return f"{value:,}" if abs(int(value)) < 10**18 else number_text(int(value))
    if isinstance(value, (float, np.floating)):
        large_number = 10_000 <= abs(float(value)) < 1e15
        return f"{value:,.0f}" if large_number else f"{value:.5g}"
    return "" if value is None else plain_text(value)


def plain_text(value: Any) -> str:
    r"""Return a text on one line without control characters, which keys and names may hold.

    >>> plain_text("a" + chr(27) + "[31m" + chr(10)) == r"a\x1b[31m\n"
    True
    """
    text = str(value)
    short = text if len(text) <= _MAXIMUM_LENGTH else text[: _MAXIMUM_LENGTH - 1] + "…"
    return printable(short)


HALF = Fraction(1, 2)


def epsilon_of(certificate: Certificate) -> Fraction | None:
    """Return the pure ε of one release; None if its claim is not pure."""
    claim = certificate.claim
    return claim.exact_epsilon if type(claim) is PureDP else None


def protected_words(certificate: Certificate) -> str:
    """Return the row or unit that a release protects, in words."""
    if certificate.unit is None:
        return plain_text(certificate.row)
    return f"all rows of one {plain_text(certificate.unit)} ({plain_text(certificate.row)})"


def totals(releases: Sequence[Release]) -> dict[str, Total | str]:
    """Return the total ε of each data set's releases, or the reason why it has none."""
    known = [(r.record, r.certificate) for r in releases if r.record is not None]
    by_name: dict[str, Total | str] = {}
    for name, parts in by_data(known).items():
        if name is None:
            if len(parts) > 1 or len(releases) > 1:
                by_name["(data without a name)"] = "releases that name no data set are not added up"
            continue
        try:
            by_name[plain_text(name)] = total_of(parts)
        except CertificateError as error:
            by_name[plain_text(name)] = str(error)
    return by_name


def answers(
    releases: Sequence[Release], accounts: Sequence[Any] = ()
) -> list[tuple[str, str, str]]:
    """Return the officer's questions: each with an answer and the section that says more.

    `accounts` are the ledgers of the data, which know all their other releases.
    """
    certificates = [release.certificate for release in releases]
    records = [release.record for release in releases if release.record is not None]
    return [
        (
            "Who is protected?",
            _join_distinct(_capitalized(protected_words(c)) for c in certificates),
            "who",
        ),
        (
            "Against what?",
            "Anyone who sees what was published, whatever else they know or will ever learn.",
            "who",
        ),
        (
            "How sure is that?",
            f"{_join_distinct(_status(c) for c in certificates)}. Anyone can check that. "
            f"{_signed_words(releases)}",
            "steps",
        ),
        ("What is assumed?", _assumed_words(certificates), "assumed"),
        ("What is the total ε?", _total_words(releases, accounts), "odds"),
        ("What can an attacker learn?", _learned_words(releases), "odds"),
        (
            "Which data?",
            _join_distinct(plain_text(name) for record in records for name in record.names if name)
            or "The record names no data set.",
            "public",
        ),
        ("When?", _when([plain_text(record.time) for record in records]), "verify"),
        (
            "By which version?",
            _join_distinct(f"zerodelta {plain_text(record.version)}" for record in records)
            or "Not recorded.",
            "verify",
        ),
    ]


def _when(times: Sequence[str]) -> str:
    """Return the first and last time in words."""
    if not times:
        return "Not recorded."
    first, last = min(times), max(times)
    return first if first == last else f"{first} to {last}"


def _join_distinct(texts: Iterable[str]) -> str:
    """Join the first three different texts, and count the others."""
    distinct = list(dict.fromkeys(texts))
    more = f"; and {len(distinct) - 3} more" if len(distinct) > 3 else ""
    return "; ".join(distinct[:3]) + more


def _capitalized(text: str) -> str:
    return text[:1].upper() + text[1:]


def _status(certificate: Certificate) -> str:
    """Return the status of a claim, such as "Proven", which ends its summary."""
    return _capitalized(certificate.summary.rpartition(": ")[2])


def _signed_words(releases: Sequence[Release]) -> str:
    """Say whether a signer vouches that the steps were run: a proof cannot know that."""
    unsigned = [number for number, release in enumerate(releases, 1) if not release.signatures]
    if not unsigned:
        return "That these steps were run is what the signer states, if the signature is right."
    which = "" if len(unsigned) == len(releases) else f" of {', '.join(map(str, unsigned))}"
    return f"Nobody vouches that the steps{which} were run: there is no signature."


def _assumed_words(certificates: Sequence[Certificate]) -> str:
    """Return the assumptions of certificates, and the questions that no program can answer."""
    premises = dict.fromkeys(
        question for c in certificates for question in to_ask(unit=c.unit, counted=True)
    )
    questions = "; ".join(map(plain_text, premises))
    sentences = list(dict.fromkeys(sentence for c in certificates for sentence in c.assumed))
    if not sentences:
        return f"What no program can check, so you have to ask: {questions}."
    first = plain_text(sentences[0])
    rest = f", and {len(sentences) - 1} more" if len(sentences) > 1 else ""
    return f"That {first}{rest}. And what no program can check, so you have to ask: {questions}."


def _total_words(releases: Sequence[Release], accounts: Sequence[Any]) -> str:
    """Say what was spent in all, by accounts if there are any, and what none counted."""
    page = _total_of_page(releases)
    if accounts:
        text = f"{' '.join(map(spent_words, accounts))} On this page: {page}."
        numbers = ", ".join(map(str, uncounted(releases)))
        return f"{text} No ledger counted release {numbers}." if numbers else text
    if not uncounted(releases):
        return f"{page}, on this page. The total is in the ledger, which was not read here."
    return f"{page}, on this page. No ledger counted it: other releases are not known here."


def uncounted(releases: Sequence[Release]) -> list[int]:
    """Return the numbers, from 1, of the releases that no ledger counted."""
    return [
        number
        for number, release in enumerate(releases, 1)
        if release.record is None or not release.record.entries
    ]


def spent_words(account: Any) -> str:
    """Return the total ε that a ledger counted of its data, and its odds, in words."""
    added = account.neighbors is Neighbors.ADD_REMOVE
    epsilon = account.spent * (2 if added else 1)
    unit = "one row" if account.unit is None else f"one {plain_text(account.unit)}"
    risen = percent_text(after_upper(HALF, epsilon), up=True)
    twice = f", counted twice: ε {equals(epsilon)}" if added else ""
    return (
        f"ε {equals(account.spent)} of {plain_text(account.data)} counted by its ledger "
        f"({account.neighbors.value}{twice}): a suspicion of 50 % about {unit} rises to at most "
        f"{risen}.{f' Beware: ask why ε must be more than {LARGE}.' if large(epsilon) else ''}"
    )


def _warning(epsilon: Fraction) -> str:
    warning = large(epsilon)
    return f" Beware: {warning}." if warning else ""


def _total_of_page(releases: Sequence[Release]) -> str:
    """Say what the releases on this page spend together, by data set."""
    texts = [
        f"ε {equals(total.epsilon)} of {name}" if isinstance(total, Total) else f"{name}: {total}"
        for name, total in totals(releases).items()
    ]
    if not texts or len(releases) == 1:
        epsilon = epsilon_of(releases[0].certificate)
        added = releases[0].certificate.claim.neighbors is Neighbors.ADD_REMOVE
        relation = " (add-remove)" if added else ""
        summary = releases[0].certificate.summary
        return summary if epsilon is None else f"ε {equals(epsilon)}{relation}, δ = 0"
    return "; ".join(texts) + "; δ = 0"


def _learned_words(releases: Sequence[Release]) -> str:
    if any(epsilon_of(release.certificate) is None for release in releases):
        return "See the claim: it is not one of pure differential privacy."
    return " ".join(
        f"Of {leak.what}: a suspicion of 50 % rises to at most "
        f"{percent_text(after_upper(HALF, leak.epsilon), up=True)} (at ε {equals(leak.epsilon)}"
        f"{': add-remove counts twice' if leak.twice else ''}).{_warning(leak.epsilon)}"
        for leak in learned(releases)
    )


@value
class Learned:
    """The most that several releases together can reveal about one row, or about one unit."""

    what: str
    epsilon: Fraction
    """ε between any two values of the row: that of an add-remove claim counts twice."""
    presence_epsilon: Fraction | None
    """ε between presence and absence of the row, if all claims are for add-remove."""
    numbers: tuple[int, ...]
    """The numbers of the releases, from 1."""

    @property
    def twice(self) -> bool:
        """Whether the releases themselves state half of `epsilon`."""
        return self.presence_epsilon is not None


def learned(releases: Sequence[Release]) -> list[Learned]:
    """Return what is revealed about a row, and about each unit, that is in all the data sets."""
    by_unit: dict[str | None, list[int]] = {}
    for number, release in enumerate(releases, 1):
        by_unit.setdefault(release.certificate.unit, []).append(number)
    leaks = []
    for unit, numbers in by_unit.items():
        certificates = [releases[number - 1].certificate for number in numbers]
        claimed = [epsilon_of(certificate) or Fraction(0) for certificate in certificates]
        added = [c.claim.neighbors is Neighbors.ADD_REMOVE for c in certificates]
        doubled = (e * (1 + a) for e, a in zip(claimed, added, strict=True))
        leaks.append(
            Learned(
                what="one row" if unit is None else f"the rows of one {plain_text(unit)}",
                epsilon=sum(doubled, Fraction(0)),
                presence_epsilon=sum(claimed, Fraction(0)) if all(added) else None,
                numbers=tuple(numbers),
            )
        )
    return leaks


def neighbors_words(certificate: Certificate) -> str:
    """Return the neighboring relation of a certificate in words."""
    unit = "row" if certificate.unit is None else f"{plain_text(certificate.unit)}'s rows"
    if certificate.claim.neighbors is Neighbors.ADD_REMOVE:
        return (
            f"Two data sets are neighbors if one has one {unit} more than the other (add-remove). "
            f"For replacing one {unit} by another, ε counts twice."
        )
    return (
        f"Two data sets are neighbors if they differ in one {unit}, replaced by any other "
        "(replace-one). The number of rows is the same in both, and public where it is listed."
        if certificate.unit is None
        else f"Two data sets are neighbors if all of one {unit} are replaced by others (replace)."
    )


# -- Inline SVG of released numbers with their intervals, without scripts or fonts ----------------

_WIDTH, _LEFT, _RIGHT, _LINE, _TOP = 480, 150, 24, 24, 12
_LETTER = 8  # about the largest width of a letter, in units of the drawing


def drawing_of(grid: ReportTable, column: Column, *, lines: int, number: str) -> str:
    """Return the first lines of a column as dots with bars for intervals; "" without numbers.

    `number` keeps the ids on the page different.
    """
    values = [_number(cell) for cell in column.values[:lines]]
    if not any(value is not None for value in values):
        return ""
    lower = [_number(end) for end in (column.lower if column.lower is not None else ())[:lines]]
    upper = [_number(end) for end in (column.upper if column.upper is not None else ())[:lines]]
    numbers = [n for n in (*values, *lower, *upper) if n is not None]
    low, high, ticks = _scale(min(numbers), max(numbers))
    bottom = _TOP + _LINE * len(values)

    def x(value: float) -> str:
        return f"{_LEFT + (_WIDTH - _LEFT - _RIGHT) * (value - low) / (high - low):.1f}"

    parts = []
    spacing = float(x(ticks[1])) - float(x(ticks[0])) if len(ticks) > 1 else _WIDTH
    longest = max(len(number_shown(tick)) for tick in ticks)
    step = math.ceil((longest + 1) * _LETTER / spacing)  # skip ticks whose labels would overlap
    for tick in ticks[::step]:
        parts.append(f'<path class="g" d="M{x(tick)} {_TOP}V{bottom}"/>')
        label = html.escape(number_shown(tick))
        parts.append(f'<text x="{x(tick)}" y="{bottom + 16}" text-anchor="middle">{label}</text>')
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
        f'<figure><svg viewBox="0 0 {_WIDTH} {bottom + 26}" role="img" '
        f'aria-labelledby="t{number}"><title id="t{number}">{title}{bars}; the same numbers are in '
        f"the table</title>{''.join(parts)}</svg>"
        f"<figcaption>{title}{bars}</figcaption></figure>"
    )


def odds_drawing(lower: float, upper: float, number: int) -> str:
    """Return a drawing of a suspicion of 50 % and the range to which it can change."""

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
    """Return the keys of a table's line as a label that fits beside the chart."""
    words = ", ".join(number_shown(names[line]) for names in grid.keys.values())
    text = words or "all rows that count"
    limit = (_LEFT - 10) // _LETTER + 2
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _number(value: Any) -> float | None:
    """Return a cell as a float; None if it is text, missing or not finite."""
    if isinstance(value, str) or value is None:
        return None
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _scale(low: float, high: float) -> tuple[float, float, Sequence[float]]:
    """Return the ends of an axis and about six round numbers on it.

    >>> _scale(0.0, 10.0)
    (-0.5, 10.5, [0.0, 2.0, 4.0, 6.0, 8.0, 10.0])
    """
    if not high > low:
        low, high = low - max(1.0, abs(low) / 10), high + max(1.0, abs(high) / 10)
    margin = (high - low) / 20
    low, high = low - margin, high + margin
    exact_step = (high - low) / 6
    power = 10.0 ** math.floor(math.log10(exact_step))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= exact_step)
    first = math.ceil(low / step)
    return low, high, [i * step for i in range(first, math.floor(high / step) + 1)]
