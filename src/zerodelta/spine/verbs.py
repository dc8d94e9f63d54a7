"""What verbs have in common: who pays, what was asked, as JSON, and what `help()` says of them.

Every verb takes `ledger=` and `again=` by one decorator, `debited`: it holds them, and what was
asked, until the runner takes the ticket of that verb's one release. A caller's function that a verb
tries before its ticket may ask something of its own: that is another release, which does not use up
what the verb was given. So a verb that calls another one to make its release says so:
`inside_same_release`.
"""

from __future__ import annotations

import functools
import inspect
import math
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, fields, is_dataclass, replace
from datetime import date
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from importlib import import_module
from typing import Any, ParamSpec, TypedDict, TypeVar, final

import numpy as np

from zerodelta.data.dataset import Dataset
from zerodelta.data.source import Account, Charge, Protection, Receipt, Source
from zerodelta.errors import BudgetError, printable, require
from zerodelta.exact.bits import SystemBits
from zerodelta.privacy.certificate import Certificate, to_ask
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.parameters import as_flag, decimal_meant
from zerodelta.privacy.release import Record
from zerodelta.privacy.steps import digest_of
from zerodelta.spaces import Space
from zerodelta.value import value

# -- What was asked, as JSON can write it: public parameters and declared data, never a row -------
# Records tell it, and a ledger recognizes by it what was asked before.

ROWS = frozenset({"rows", "data", "items", "scores", "value", "X", "y", "example"})
"""Parameters that rows come in, or what was computed from them: nothing of them is written, not
even their type, unless they are a data set, which says what is public of it."""

_MOST_CELLS = 10_000


@value
class Asked:
    """A task, its public parameters, and the data sets that it is about."""

    task: str
    parameters: dict[str, Any] = field(default_factory=dict)
    data: list[dict[str, Any]] = field(default_factory=list)
    columns: str = ""
    """The names of the columns that are asked about, for people."""
    complete: bool = False
    """Whether this is all that was asked, so that the same can be recognized."""

    @property
    def text(self) -> str:
        """What was asked in a few words."""
        return f"{self.task}({self.columns})"

    @property
    def question(self) -> str | None:
        """The hash of what was asked; None where the same cannot be recognized."""
        whole = [self.task, self.parameters, self.data]
        return digest_of(whole) if self.complete and self.data else None

    def record(self, certificate: Certificate) -> Record:
        """Return the record of a release; when it was paid for is not known yet."""
        return Record(
            id=SystemBits().read(16).hex(),
            task=self.task,
            parameters=self.parameters,
            data=self.data,
            claim=certificate.body()["claim"],
            public=list(certificate.public),
            to_ask=[],
            version=import_module("zerodelta").__version__,
            time="",
            entries=[],
        )


def asked_of(task: str, given: Mapping[str, Any], *, repeats: bool) -> Asked:
    """Return what was asked with these arguments, unless it never `repeats`: then there is more."""
    parameters: dict[str, Any] = {}
    data: list[dict[str, Any]] = []
    complete = repeats
    for name, entry in given.items():
        if entry is None:
            continue
        if type(entry) is Dataset:
            data.append({"as": name, **_plain(entry.described)})
        elif name in ROWS:
            complete = False  # of an array nobody knows whether it is the same one
        else:
            try:
                parameters[name] = _plain(entry, name)
            except _Unwritten:
                parameters[name] = {"not written": type(entry).__name__}
                complete = False
    return Asked(
        task=task,
        parameters=parameters,
        data=data,
        columns=_columns(task, given),
        complete=complete,
    )


class _Unwritten(Exception):  # noqa: N818
    """Something that was asked cannot be written down, such as a function."""


def _plain(value: Any, name: str = "") -> Any:
    """Return a public argument as JSON can write it; equal ones alike."""
    if name == "epsilon":
        return str(decimal_meant(value, name))
    if isinstance(value, np.number):
        value = value.item()
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return int(value) if value.bit_length() <= 1 << 12 else hex(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else repr(float(value))
    if isinstance(value, (Fraction, Decimal, date)):
        return str(value)
    if isinstance(value, range):
        return ["range", value.start, value.stop, value.step]
    if isinstance(value, Space):
        return _plain(value.describe())  # its repr names a few options only
    if isinstance(value, Enum):
        return [type(value).__name__, value.name]
    if isinstance(value, np.ndarray) and value.size <= _MOST_CELLS and value.dtype != object:
        return [list(value.shape), [_plain(each) for each in value.ravel().tolist()]]
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        if all(type(key) is str for key in value):
            return {key: _plain(each) for key, each in value.items()}
        return [[_plain(key), _plain(each)] for key, each in value.items()]
    ours = is_dataclass(value) and type(value).__module__.startswith("zerodelta.")
    if ours and not isinstance(value, (Source, type)):
        parts = {each.name: _plain(getattr(value, each.name)) for each in fields(value)}
        return [type(value).__name__, parts]
    raise _Unwritten


_NAMING = ("columns", "of", "by", "target")
"""Parameters that name columns."""


def _columns(task: str, given: Mapping[str, Any]) -> str:
    """Return the names of the columns that are asked about, as far as these were said."""
    said = [name for each in _NAMING for name in _texts(given.get(each))]
    sets = [value for value in given.values() if type(value) is Dataset]
    names = [name for name in said if not sets or any(name in each.declared for each in sets)]
    for each in sets:
        few = len(each.columns) < len(each.declared)
        if few or not (names or task == "count"):  # which is of rows, not of columns
            names += each.columns
    shown = ", ".join(dict.fromkeys(name for name in names if name))
    plain = printable(shown)
    return plain if len(plain) <= 100 else plain[:97] + "..."


def _texts(value: Any) -> list[str]:
    if isinstance(value, (str, Mapping)):
        return [value] if isinstance(value, str) else [n for n in value if isinstance(n, str)]
    return [n for n in value if isinstance(n, str)] if isinstance(value, (list, tuple)) else []


# -- What `help()` shows: what verbs, or estimators, have in common is written once ---------------
# A docstring that leaves out a parameter takes it over from another one: that of the verb that it
# is like, then `STANDARD`. A class takes over attributes and notes, too, from its bases.

STANDARD = """\
Parameters
----------
by : str, list of str, or dict
    As for `table`: then the value is a table with a line for each group.
epsilon : number
    The pure ε of the release, as an int, a float, a Fraction or a text such as "1/2".
missing : "skip", None or number
    What a missing cell of a frame, list or array counts as: "skip" (nowhere, as in SQL; the default
    for frames), None (none is missing; if one is it counts as the middle of the bounds; the default
    for arrays, with less noise) or a number. A data set has it declared.
diagnostics : number, optional
    The share of ε, such as "1/100", for `release.diagnostics`: which fractions of the rows were
    used, clipped to the bounds, and unreadable. Of a data set; of other rows it may be refused.
ledger : Ledger, optional
    Whose budget is debited by ε before a row is read; that of the data set, too, if it has one.
again : bool, default False
    Whether to pay once more for a question that a data set's ledger has seen before.
"""
"""The parameters of most verbs."""


def completed(text: str | None, *others: str | None, parameters: Iterable[str]) -> str | None:
    r"""Return a docstring that says of each parameter what it is, in their order.

    >>> one = "Add.\n\nParameters\n----------\nb : int\n    Last.\n"
    >>> other = "Sum.\n\nParameters\n----------\na, b, c : int\n    A number.\n"
    >>> completed(one, other, parameters=["a", "b"]).split("\n")[4:]
    ['a : int', '    A number.', 'b : int', '    Last.']
    """
    if text is None:  # as under python -OO
        return None
    places = {name: place for place, name in enumerate(parameters)}
    sources = [inspect.cleandoc(other or "") for other in others]
    return _with(inspect.cleandoc(text), "Parameters", sources, places)


def inherited(text: str | None, *others: str | None, parameters: Iterable[str]) -> str | None:
    """Return the docstring of a class, with attributes and notes of its bases, too."""
    made = completed(text, *others, parameters=parameters)
    if made is None:
        return None
    sources = [inspect.cleandoc(other or "") for other in others]
    return _with_notes(_with(made, "Attributes", sources), sources)


_SECTIONS = ("Parameters", "Returns", "Attributes", "Notes", "Examples")


def _with(
    text: str, title: str, sources: list[str], wanted: Mapping[str, int] | None = None
) -> str:
    """Return the text with items of a section of the others: those that are wanted, in order."""
    items = _items(text, title)
    for source in sources:
        for names, told in _items(source, title):
            known = {name for each, _ in items for name in each}
            new = [n for n in names if n not in known and (wanted is None or n in wanted)]
            if wanted is not None:
                items += [([name], told) for name in new]
            elif new:
                items.append((new, told))
    if wanted is not None:
        items.sort(key=lambda item: wanted.get(item[0][0], len(wanted)))
    body = "\n".join(", ".join(names) + told for names, told in items)
    span = _span(text, title)
    if span is not None:
        return text[: span[0]] + body + text[span[1] :]
    following = "|".join(_SECTIONS[_SECTIONS.index(title) + 1 :])
    found = re.search(rf"^({following})\n-{{3,}}\n", text, re.MULTILINE)
    if found is None or not items:
        return text
    section = f"{title}\n{'-' * len(title)}\n{body}\n\n"
    return text[: found.start()] + section + text[found.start() :]


def _span(text: str, title: str) -> tuple[int, int] | None:
    """Return where the items of a section begin and end."""
    found = re.search(rf"^{title}\n-{{3,}}\n(.*?)(?=\n\n|\Z)", text, re.MULTILINE | re.DOTALL)
    return None if found is None else found.span(1)


def _items(text: str, title: str) -> list[tuple[list[str], str]]:
    """Return the items of a section: names, and what is said of them."""
    span = _span(text, title)
    if span is None:
        return []
    items = []
    for item in filter(None, re.split(r"\n(?=\S)", text[slice(*span)])):
        heading, _, said = item.partition("\n")
        names, colon, kind = heading.partition(" : ")
        items.append((names.split(", "), f"{colon}{kind}\n{said}"))
    return items


_NOTE = re.compile(r"^\*\*.*?(?=\n\*\*|\n\n|\Z)", re.MULTILINE | re.DOTALL)
_TOPIC = re.compile(r"\*\*(\w[\w ]*)\*\*")


def _with_notes(text: str, sources: list[str]) -> str:
    """Return the text with the notes of the others on topics that it has none on."""
    own = list(_NOTE.finditer(text))
    if not own:
        return text
    topics = {topic for note in own for topic in _topics(note[0])}
    added = ""
    for note in (note for source in sources for note in _NOTE.findall(source)):
        if not topics & {*_topics(note)}:
            topics |= {*_topics(note)}
            added += f"\n{note}"
    end = own[-1].end()
    return text[:end] + added + text[end:]


def _topics(note: str) -> list[str]:
    return _TOPIC.findall(note.partition(":")[0])


# -- Who pays -------------------------------------------------------------------------------------

P = ParamSpec("P")
T = TypeVar("T")


class Paying(TypedDict, total=False):
    """The keywords that `debited` takes."""

    ledger: Account | None
    again: bool


@final
@dataclass(kw_only=True, slots=True)
class _Payment:
    """What a verb was called with, until its release is paid for."""

    ledger: Account | None
    again: bool
    task: str
    asked: Mapping[str, Any]
    repeats: bool = False
    """Whether the same may be recognized when it is asked again."""
    taken: bool = False


_CURRENT: ContextVar[_Payment | None] = ContextVar("payment", default=None)

_NESTED: ContextVar[bool] = ContextVar("nested", default=False)
"""Whether the next verb is called by another to make the release of that one."""


@value
class Paid:
    """What one release was asked for, and its debits: none where there is no account."""

    record: Record
    debits: tuple[tuple[Account, Receipt], ...] = ()

    @property
    def receipts(self) -> tuple[Receipt, ...]:
        """Where they are written."""
        return tuple(receipt for _, receipt in self.debits)

    def record_at(self, time: str, certificate: Certificate) -> Record:
        """Return the record of a release with this ticket: its entries, and when it was taken."""
        return replace(
            self.record,
            claim=certificate.body()["claim"],
            public=list(certificate.public),
            to_ask=list(to_ask(unit=certificate.unit, counted=bool(self.debits))),
            time=time,
            entries=[each.to_json() for each in self.receipts],
        )

    def take_back(self) -> None:
        """Undo them: no row was read."""
        for account, receipt in reversed(self.debits):
            with suppress(BudgetError):  # then this debit stays; the error that led here is told
                account._take_back(receipt, "an error before a row was read")


@final
class Bill:
    """What one release costs whom; it is paid once, and then says so."""

    __slots__ = ("_accounts", "_charge", "_lock", "paid")

    paid: Paid
    """What was asked, and the debits so far: none before it is paid."""

    def __init__(
        self, record: Record, accounts: Sequence[Account] = (), charge: Charge | None = None
    ) -> None:
        self._accounts, self._charge, self._lock = tuple(accounts), charge, threading.Lock()
        self.paid = Paid(record=record)

    def check(self) -> None:
        """Raise what paying would raise by now; nothing is written."""
        for account in self._accounts:
            account.check(self._due)

    def pay(self) -> Paid:
        """Debit all accounts, or none of them.

        An error raises, and takes back what others have paid by then: no row was read.
        """
        with self._lock:
            if not self._accounts:
                return self.paid
            if len(self._accounts) > 1:  # what one paid may not be taken back where it only debits
                self.check()
            debits: list[tuple[Account, Receipt]] = []
            try:
                for account in self._accounts:
                    debits.append((account, account.debit(self._due)))
            except BaseException:
                replace(self.paid, debits=tuple(debits)).take_back()
                raise
            self._accounts, self.paid = (), replace(self.paid, debits=tuple(debits))
            return self.paid

    def take_back(self) -> None:
        """Undo the debits: no row was read."""
        self.paid.take_back()
        self.paid = replace(self.paid, debits=())

    @property
    def _due(self) -> Charge:
        if self._charge is None:  # pragma: no cover
            raise AssertionError("an account without a charge")
        return self._charge


def billed(certificate: Certificate, protection: Protection) -> Bill:
    """Return the bill of a release: what was asked, and the accounts that it concerns."""
    payment = _CURRENT.get()
    if payment is None or payment.taken:  # a release inside of another's program is not asked so
        payment = _Payment(ledger=None, again=False, task="release", asked={})
    payment.taken = True
    asked = asked_of(payment.task, payment.asked, repeats=payment.repeats)
    record = asked.record(certificate)
    accounts = _distinct([*protection.accounts, *([payment.ledger] if payment.ledger else [])])
    claim = certificate.claim
    if not accounts or (type(claim) is PureDP and claim.exact_epsilon == 0):
        return Bill(record)
    return Bill(record, accounts, _charge(certificate, asked, record, again=payment.again))


def _charge(certificate: Certificate, asked: Asked, record: Record, *, again: bool) -> Charge:
    claim = certificate.claim
    require(
        type(claim) is PureDP,
        "ledger",
        expected="a pure release: only these add up exactly",
        remedy="choose a pure method, or leave the ledger out",
    )
    return Charge(
        epsilon=claim.exact_epsilon,  # type: ignore[attr-defined]
        neighbors=claim.neighbors,
        unit=certificate.unit,
        task=asked.text,
        question=asked.question,
        certificate=certificate.digest,
        record=record.asked,
        again=again,
    )


def _distinct(accounts: list[Account]) -> list[Account]:
    """Return the accounts to debit: one that another covers is debited with that."""
    kept: list[Account] = []
    for account in accounts:
        if not any(other.covers(account) for other in kept):
            kept = [other for other in kept if not account.covers(other)] + [account]
    return kept


@contextmanager
def paying(
    ledger: Any, *, again: Any = False, task: str, asked: Mapping[str, Any], repeats: bool = True
) -> Iterator[None]:
    """Have the one release that is made inside paid for by a ledger, if there is one.

    `asked` is all that it depends on, unless it never `repeats`: then there is more. Called by
    `inside_same_release` inside of another this is the same release, which that pays for.
    """
    require(
        ledger is None or callable(getattr(type(ledger), "debit", None)),
        "ledger",
        type(ledger).__name__,
        expected="a Ledger",
        remedy="pass zd.Ledger(path, budget=…)",
    )
    outer, nested = _CURRENT.get(), _NESTED.get()
    once_more = as_flag(again, "again")
    made = _Payment(ledger=ledger, again=once_more, task=task, asked=asked, repeats=repeats)
    alone = _NESTED.set(False)  # what is called inside is not asked to join unless it is told so
    same = nested and outer is not None and not outer.taken and ledger is None
    token = _CURRENT.set(outer if same else made)
    try:
        yield
    finally:
        _CURRENT.reset(token)
        _NESTED.reset(alone)


def inside_same_release(verb: Callable[P, T]) -> Callable[P, T]:
    """Return a verb, or a study, with which another makes its one release: that one is paid for."""

    @functools.wraps(verb)
    def called(*args: P.args, **kwargs: P.kwargs) -> T:
        token = _NESTED.set(True)
        try:
            return verb(*args, **kwargs)
        finally:
            _NESTED.reset(token)

    return called


def debited(
    function: Callable[P, T], *, rows: tuple[str, ...] = (), like: Callable[..., Any] | None = None
) -> Callable[P, T]:
    """Give a verb that makes one release the keywords `ledger` and `again`.

    Its signature ends in ``**paying: Unpack[Paying]``, of which it sees nothing. So does that of a
    constructor, such as a study's, whose program is part of the question and not known yet. `rows`
    are parameters that rows come in, beside those that are so everywhere (`ROWS`). What its
    docstring leaves out is as in that of the verb that it is `like`, or as everywhere.
    """
    signature = inspect.signature(function)
    own = [each for each in signature.parameters.values() if each.kind is not each.VAR_KEYWORD]
    names = [each.name for each in own]
    task = function.__qualname__.removesuffix(".__init__")

    @functools.wraps(function)
    def paid(*args: P.args, **kwargs: P.kwargs) -> T:
        ledger, again = kwargs.pop("ledger", None), kwargs.pop("again", False)
        for name in kwargs:
            if name not in names:
                raise TypeError(f"{task}() got an unexpected keyword argument {name!r}")
        asked = {**dict(zip(names, args, strict=False)), **kwargs}
        repeats = asked.pop("self", None) is None
        for name in rows:  # nothing of them is written, not even their type
            if name in asked and type(asked[name]) is not Dataset:
                del asked[name]
                repeats = False
        with paying(ledger, again=again, task=task, asked=asked, repeats=repeats):
            return function(*args, **kwargs)

    keyword = inspect.Parameter.KEYWORD_ONLY
    added = [
        inspect.Parameter("ledger", keyword, default=None, annotation="Ledger | None"),
        inspect.Parameter("again", keyword, default=False, annotation="bool"),
    ]
    paid.__signature__ = signature.replace(parameters=[*own, *added])  # type: ignore[attr-defined]
    paid.__doc__ = completed(
        function.__doc__,
        None if like is None else like.__doc__,
        STANDARD,
        parameters=[*names, "ledger", "again"],
    )
    return paid
