"""Provide what verbs share: the keywords of payment, the request as JSON, shared docstrings.

The decorator `debited` gives every verb the keywords `ledger` and `again`. It keeps them, with the
verb's arguments, until the runner makes the one release of that verb. A verb that calls another
verb to make this release calls it by `inside_same_release`.
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

# -- Requests as JSON: public parameters and declared data, never a row ---------------------------
# A record contains the request, and a ledger recognizes a repeated one by its hash.

ROWS = frozenset({"rows", "data", "items", "scores", "value", "X", "y", "example"})
"""Parameters that hold rows or numbers computed from rows: nothing of them is written, not even
their type. A data set is an exception: its public description is written."""

_MOST_WRITTEN_CELLS = 10_000
"""Larger public arrays are not written into records."""


@value
class Request:
    """A task, its public parameters, and descriptions of its data sets."""

    task: str
    parameters: dict[str, Any] = field(default_factory=dict)
    data: list[dict[str, Any]] = field(default_factory=list)
    columns: str = ""
    """The names of the columns in question, for people."""
    complete: bool = False
    """Whether every argument is written, so that a repeated request can be recognized."""

    @property
    def text(self) -> str:
        """The request in a few words, such as "mean(income)"."""
        return f"{self.task}({self.columns})"

    @property
    def question(self) -> str | None:
        """The hash of the request; None where a repetition cannot be recognized."""
        content = [self.task, self.parameters, self.data]
        return digest_of(content) if self.complete and self.data else None

    def record(self, certificate: Certificate) -> Record:
        """Return the record of a release that is not paid for yet."""
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


def request_of(task: str, arguments: Mapping[str, Any], *, repeats: bool) -> Request:
    """Return the request of a call; one that never `repeats` depends on more than its arguments."""
    parameters: dict[str, Any] = {}
    data: list[dict[str, Any]] = []
    complete = repeats
    for name, argument in arguments.items():
        if argument is None:
            continue
        if type(argument) is Dataset:
            data.append({"as": name, **_as_json(argument.described)})
        elif name in ROWS:
            complete = False  # two arrays cannot be compared without their values
        else:
            try:
                parameters[name] = _as_json(argument, name)
            except _NotWritable:
                parameters[name] = {"not written": type(argument).__name__}
                complete = False
    return Request(
        task=task,
        parameters=parameters,
        data=data,
        columns=_columns(task, arguments),
        complete=complete,
    )


class _NotWritable(Exception):  # noqa: N818
    """An argument has no JSON, such as a function."""


def _as_json(value: Any, name: str = "") -> Any:
    """Return a public argument as JSON for the record; equal arguments become equal JSON."""
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
        return _as_json(value.describe())  # its repr shortens long lists of options
    if isinstance(value, Enum):
        return [type(value).__name__, value.name]
    small = isinstance(value, np.ndarray) and value.size <= _MOST_WRITTEN_CELLS
    if small and value.dtype != object:
        return [list(value.shape), [_as_json(cell) for cell in value.ravel().tolist()]]
    if isinstance(value, (list, tuple)):
        return [_as_json(item) for item in value]
    if isinstance(value, dict):
        if all(type(key) is str for key in value):
            return {key: _as_json(item) for key, item in value.items()}
        return [[_as_json(key), _as_json(item)] for key, item in value.items()]
    of_package = is_dataclass(value) and type(value).__module__.startswith("zerodelta.")
    if of_package and not isinstance(value, (Source, type)):
        parts = {field.name: _as_json(getattr(value, field.name)) for field in fields(value)}
        return [type(value).__name__, parts]
    raise _NotWritable


_NAMING = ("columns", "of", "by", "target")
"""Parameters that name columns."""


def _columns(task: str, arguments: Mapping[str, Any]) -> str:
    """Return the names of the columns that a call is about, as one short text for people."""
    stated = [name for parameter in _NAMING for name in _texts(arguments.get(parameter))]
    sets = [argument for argument in arguments.values() if type(argument) is Dataset]
    # a stated name that no data set declares is no column: it may be anything
    names = [name for name in stated if not sets or any(name in data.declared for data in sets)]
    for data in sets:
        some_only = len(data.columns) < len(data.declared)
        if some_only or not (names or task == "count"):  # a count is of rows, not of columns
            names += data.columns
    text = printable(", ".join(dict.fromkeys(name for name in names if name)))
    return text if len(text) <= 100 else text[:97] + "..."


def _texts(value: Any) -> list[str]:
    """Return the texts in an argument that is a text, a mapping or a list; else none."""
    if isinstance(value, str):
        return [value]
    items = value if isinstance(value, (Mapping, list, tuple)) else ()
    return [item for item in items if isinstance(item, str)]


# -- Docstrings: parameters that verbs, or estimators, share are written once ---------------------
# A parameter that a docstring leaves out is copied from another one: that of the verb named by
# `like`, then `STANDARD`. Classes also copy attributes and notes from their bases.

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
    r"""Return a docstring with all `parameters` in order; missing ones come from the `others`.

    >>> one = "Add.\n\nParameters\n----------\nb : int\n    Last.\n"
    >>> other = "Sum.\n\nParameters\n----------\na, b, c : int\n    A number.\n"
    >>> completed(one, other, parameters=["a", "b"]).split("\n")[4:]
    ['a : int', '    A number.', 'b : int', '    Last.']
    """
    if text is None:  # python -OO removes docstrings
        return None
    places = {name: place for place, name in enumerate(parameters)}
    sources = [inspect.cleandoc(other or "") for other in others]
    return _with_items(inspect.cleandoc(text), "Parameters", sources, places)


def inherited(text: str | None, *others: str | None, parameters: Iterable[str]) -> str | None:
    """Return the docstring of a class, with attributes and notes of its bases, too."""
    with_parameters = completed(text, *others, parameters=parameters)
    if with_parameters is None:
        return None
    sources = [inspect.cleandoc(other or "") for other in others]
    return _with_notes(_with_items(with_parameters, "Attributes", sources), sources)


_SECTIONS = ("Parameters", "Returns", "Attributes", "Notes", "Examples")


def _with_items(
    text: str, title: str, sources: list[str], places: Mapping[str, int] | None = None
) -> str:
    """Return the text with the items of one section that only other docstrings describe.

    With `places` only the names in it are added, and all items are sorted by their place.
    """
    items = _items(text, title)
    for source in sources:
        for names, description in _items(source, title):
            present = {name for item_names, _ in items for name in item_names}
            new = [n for n in names if n not in present and (places is None or n in places)]
            if places is not None:
                items += [([name], description) for name in new]
            elif new:
                items.append((new, description))
    if places is not None:
        items.sort(key=lambda item: places.get(item[0][0], len(places)))
    body = "\n".join(", ".join(names) + description for names, description in items)
    span = _span(text, title)
    if span is not None:
        return text[: span[0]] + body + text[span[1] :]
    later_titles = "|".join(_SECTIONS[_SECTIONS.index(title) + 1 :])
    later = re.search(rf"^({later_titles})\n-{{3,}}\n", text, re.MULTILINE)
    if later is None or not items:
        return text
    section = f"{title}\n{'-' * len(title)}\n{body}\n\n"
    return text[: later.start()] + section + text[later.start() :]


def _span(text: str, title: str) -> tuple[int, int] | None:
    """Return where the items of a section begin and end; None without the section."""
    section = re.search(rf"^{title}\n-{{3,}}\n(.*?)(?=\n\n|\Z)", text, re.MULTILINE | re.DOTALL)
    return None if section is None else section.span(1)


def _items(text: str, title: str) -> list[tuple[list[str], str]]:
    """Return the items of a section: their names, and their type and description as one text."""
    span = _span(text, title)
    if span is None:
        return []
    items = []
    for item in filter(None, re.split(r"\n(?=\S)", text[slice(*span)])):
        heading, _, description = item.partition("\n")
        names, colon, kind = heading.partition(" : ")
        items.append((names.split(", "), f"{colon}{kind}\n{description}"))
    return items


_NOTE = re.compile(r"^\*\*.*?(?=\n\*\*|\n\n|\Z)", re.MULTILINE | re.DOTALL)
_TOPIC = re.compile(r"\*\*(\w[\w ]*)\*\*")


def _with_notes(text: str, sources: list[str]) -> str:
    """Return the text with those notes of the sources whose topic it has no note on.

    A note is a paragraph that begins with its topic, such as **Guarantee**.
    """
    notes = list(_NOTE.finditer(text))
    if not notes:
        return text
    topics = {topic for note in notes for topic in _topics(note[0])}
    added = ""
    for note in (note for source in sources for note in _NOTE.findall(source)):
        if not topics & {*_topics(note)}:
            topics |= {*_topics(note)}
            added += f"\n{note}"
    end = notes[-1].end()
    return text[:end] + added + text[end:]


def _topics(note: str) -> list[str]:
    return _TOPIC.findall(note.partition(":")[0])


# -- Payment: which accounts a release is debited from --------------------------------------------
# Verbs are ordinary functions that call each other, so two context variables say which call a
# release belongs to. `_PAYMENT` is the call whose release is made next: its ledger, and its request
# for the record. Without `_NESTED` a verb inside another verb's call is a release of its own: a
# caller's function, which a verb tries on made-up rows, may call verbs too, and must not use up the
# outer payment. `_NESTED` is set for one call only, by a verb that has another verb (or a study)
# make its release; that inner call then keeps the outer payment.

P = ParamSpec("P")
T = TypeVar("T")


class Paying(TypedDict, total=False):
    """The keywords that `debited` takes."""

    ledger: Account | None
    again: bool


@final
@dataclass(kw_only=True, slots=True)
class _Payment:
    """The ledger and the arguments of a verb's call, until its release takes them."""

    ledger: Account | None
    again: bool
    task: str
    arguments: Mapping[str, Any]
    repeats: bool = False
    """Whether the arguments are all that the release depends on."""
    taken: bool = False


_PAYMENT: ContextVar[_Payment | None] = ContextVar("payment", default=None)

_NESTED: ContextVar[bool] = ContextVar("nested", default=False)
"""Whether the next verb is called to make the release of the verb that calls it."""


@value
class Paid:
    """The record of one release and its debits; without an account there are none."""

    record: Record
    debits: tuple[tuple[Account, Receipt], ...] = ()

    @property
    def receipts(self) -> tuple[Receipt, ...]:
        """The receipts of the debits: ledger, entry and time."""
        return tuple(receipt for _, receipt in self.debits)

    def record_at(self, time: str, certificate: Certificate) -> Record:
        """Return the complete record: with entries, the time of the ticket, and the claim."""
        return replace(
            self.record,
            claim=certificate.body()["claim"],
            public=list(certificate.public),
            to_ask=list(to_ask(unit=certificate.unit, counted=bool(self.debits))),
            time=time,
            entries=[receipt.to_json() for receipt in self.receipts],
        )

    def take_back(self) -> None:
        """Undo the debits; called only if no row was read."""
        for account, receipt in reversed(self.debits):
            with suppress(BudgetError):  # the account keeps its debit; the first error is raised
                account._take_back(receipt, "an error before a row was read")


@final
class Bill:
    """The accounts that one release is debited from, and the charge; it is paid once."""

    __slots__ = ("_accounts", "_charge", "_lock", "paid")

    paid: Paid
    """The record, and the debits: none before the bill is paid."""

    def __init__(
        self, record: Record, accounts: Sequence[Account] = (), charge: Charge | None = None
    ) -> None:
        self._accounts, self._charge, self._lock = tuple(accounts), charge, threading.Lock()
        self.paid = Paid(record=record)

    def check(self) -> None:
        """Raise the error that paying would raise now; nothing is written."""
        for account in self._accounts:
            account.check(self._due)

    def pay(self) -> Paid:
        """Debit all accounts, or none of them: an error takes back the debits before it."""
        with self._lock:
            if not self._accounts:
                return self.paid
            if len(self._accounts) > 1:  # an account may allow debits only: check all before any
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
        """Undo the debits; called only if no row was read."""
        self.paid.take_back()
        self.paid = replace(self.paid, debits=())

    @property
    def _due(self) -> Charge:
        if self._charge is None:  # pragma: no cover
            raise AssertionError("an account without a charge")
        return self._charge


def billed(certificate: Certificate, protection: Protection) -> Bill:
    """Return the bill of a release, for the accounts of its data and of the verb's call."""
    payment = _PAYMENT.get()
    if payment is None or payment.taken:  # a plan that no verb runs, or a second release of a verb
        payment = _Payment(ledger=None, again=False, task="release", arguments={})
    payment.taken = True
    request = request_of(payment.task, payment.arguments, repeats=payment.repeats)
    record = request.record(certificate)
    accounts = _distinct([*protection.accounts, *([payment.ledger] if payment.ledger else [])])
    claim = certificate.claim
    if not accounts or (type(claim) is PureDP and claim.exact_epsilon == 0):
        return Bill(record)
    return Bill(record, accounts, _charge(certificate, request, record, again=payment.again))


def _charge(certificate: Certificate, request: Request, record: Record, *, again: bool) -> Charge:
    """Return the charge of a release; a claim that is not pure cannot be booked."""
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
        task=request.text,
        question=request.question,
        certificate=certificate.digest,
        record=record.request_digest,
        again=again,
    )


def _distinct(accounts: list[Account]) -> list[Account]:
    """Return the accounts to debit; one that another covers is debited through that one."""
    kept: list[Account] = []
    for account in accounts:
        if not any(other.covers(account) for other in kept):
            kept = [other for other in kept if not account.covers(other)] + [account]
    return kept


@contextmanager
def paying(
    ledger: Any,
    *,
    again: Any = False,
    task: str,
    arguments: Mapping[str, Any],
    repeats: bool = True,
) -> Iterator[None]:
    """Have the one release that is made inside paid for by a ledger, if there is one.

    The release depends on `arguments` only, unless `repeats` is False. A call through
    `inside_same_release` keeps the payment of the outer verb.
    """
    require(
        ledger is None or callable(getattr(type(ledger), "debit", None)),
        "ledger",
        type(ledger).__name__,
        expected="a Ledger",
        remedy="pass zd.Ledger(path, budget=…)",
    )
    outer, nested = _PAYMENT.get(), _NESTED.get()
    payment = _Payment(
        ledger=ledger,
        again=as_flag(again, "again"),
        task=task,
        arguments=arguments,
        repeats=repeats,
    )
    nested_token = _NESTED.set(False)  # `_NESTED` is for this call, not for calls inside it
    same_release = nested and outer is not None and not outer.taken and ledger is None
    payment_token = _PAYMENT.set(outer if same_release else payment)
    try:
        yield
    finally:
        _PAYMENT.reset(payment_token)
        _NESTED.reset(nested_token)


def inside_same_release(verb: Callable[P, T]) -> Callable[P, T]:
    """Return a verb (or `Study`) whose next call makes the release of the verb that calls it."""

    @functools.wraps(verb)
    def nested(*args: P.args, **kwargs: P.kwargs) -> T:
        """Call the verb, marked as a part of the release of the verb that calls it."""
        token = _NESTED.set(True)
        try:
            return verb(*args, **kwargs)
        finally:
            _NESTED.reset(token)

    return nested


def debited(
    function: Callable[P, T], *, rows: tuple[str, ...] = (), like: Callable[..., Any] | None = None
) -> Callable[P, T]:
    """Give a verb that makes one release the keywords `ledger` and `again`.

    The verb's signature ends in ``**paying: Unpack[Paying]``, which is always empty inside. `rows`
    are parameters that hold rows, besides `ROWS`. Parameters that the docstring leaves out are
    taken from the verb that it is `like`, then from `STANDARD`.
    """
    signature = inspect.signature(function)
    parameters = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    names = [parameter.name for parameter in parameters]
    task = function.__qualname__.removesuffix(".__init__")

    @functools.wraps(function)
    def paid(*args: P.args, **kwargs: P.kwargs) -> T:
        """Call the verb with ledger= and again= applied, and its arguments noted for the record."""
        ledger, again = kwargs.pop("ledger", None), kwargs.pop("again", False)
        for name in kwargs:
            if name not in names:
                raise TypeError(f"{task}() got an unexpected keyword argument {name!r}")
        arguments = {**dict(zip(names, args, strict=False)), **kwargs}
        # a constructor, as of a study, never repeats: its program is not an argument of it
        repeats = arguments.pop("self", None) is None
        for name in rows:  # nothing of them is written, not even their type
            if name in arguments and type(arguments[name]) is not Dataset:
                del arguments[name]
                repeats = False
        with paying(ledger, again=again, task=task, arguments=arguments, repeats=repeats):
            return function(*args, **kwargs)

    keyword = inspect.Parameter.KEYWORD_ONLY
    added = [
        inspect.Parameter("ledger", keyword, default=None, annotation="Ledger | None"),
        inspect.Parameter("again", keyword, default=False, annotation="bool"),
    ]
    paid.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[*parameters, *added]
    )
    paid.__doc__ = completed(
        function.__doc__,
        None if like is None else like.__doc__,
        STANDARD,
        parameters=[*names, "ledger", "again"],
    )
    return paid
