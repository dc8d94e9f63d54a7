"""Who pays for a release, and what was asked, as JSON: public parameters, never a row.

Every verb takes `ledger=` and `again=` by one decorator, `debited`: it holds them, and what was
asked, until the runner takes the ticket of that verb's one release. A caller's function that a verb
tries before its ticket may ask something of its own: that is another release, which does not use up
what the verb was given. So a verb that asks another one to make its release says so: `as_own`.
"""

from __future__ import annotations

import functools
import inspect
import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
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
from zerodelta.spine.help import STANDARD, completed
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

_JOINS: ContextVar[bool] = ContextVar("joins", default=False)
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
    `as_own` inside of another this is the same release, which that pays for.
    """
    require(
        ledger is None or callable(getattr(type(ledger), "debit", None)),
        "ledger",
        type(ledger).__name__,
        expected="a Ledger",
        remedy="pass zd.Ledger(path, budget=…)",
    )
    outer, joins = _CURRENT.get(), _JOINS.get()
    once_more = as_flag(again, "again")
    made = _Payment(ledger=ledger, again=once_more, task=task, asked=asked, repeats=repeats)
    alone = _JOINS.set(False)  # what is called inside is not asked to join unless it is told so
    same = joins and outer is not None and not outer.taken and ledger is None
    token = _CURRENT.set(outer if same else made)
    try:
        yield
    finally:
        _CURRENT.reset(token)
        _JOINS.reset(alone)


def as_own(verb: Callable[P, T]) -> Callable[P, T]:
    """Return a verb, or a study, with which another makes its one release: that one is paid for."""

    @functools.wraps(verb)
    def called(*args: P.args, **kwargs: P.kwargs) -> T:
        token = _JOINS.set(True)
        try:
            return verb(*args, **kwargs)
        finally:
            _JOINS.reset(token)

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
