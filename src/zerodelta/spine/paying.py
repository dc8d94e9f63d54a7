"""Who pays for a release: the accounts of its data, and the ledger that a verb was given.

Every verb takes `ledger=` and `again=` by one decorator, `debited`: it holds them, and what was
asked, until the runner takes the ticket of that verb's one release.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from fractions import Fraction
from typing import Any, ParamSpec, TypedDict, TypeVar, final

import numpy as np

from zerodelta.data.account import Account, Charge, Receipt
from zerodelta.data.dataset import Dataset
from zerodelta.data.protection import Protection
from zerodelta.errors import BudgetError, require
from zerodelta.privacy.certificate import Certificate
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.parameters import as_flag, decimal_meant

__all__ = ["Paid", "debited", "pay", "paying"]

P = ParamSpec("P")
T = TypeVar("T")

_DOCUMENTED = """\
ledger : Ledger, optional
    Whose budget is debited by ε before a row is read; that of the data set, too, if it has one.
again : bool, default False
    Whether to pay once more for a question that a data set's ledger has seen before.
"""
_MOST_CELLS = 10_000


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


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class Paid:
    """The debits of one release."""

    debits: tuple[tuple[Account, Receipt], ...]

    @property
    def receipts(self) -> tuple[Receipt, ...]:
        """Where they are written."""
        return tuple(receipt for _, receipt in self.debits)

    def take_back(self) -> None:
        """Undo them: no row was read."""
        for account, receipt in reversed(self.debits):
            with suppress(BudgetError):  # then this debit stays; the error that led here is told
                account.take_back(receipt, "an error before a row was read")


def pay(certificate: Certificate, protection: Protection) -> Paid | None:
    """Debit all accounts that a release concerns, or none of them; None where there is no account.

    An error raises, and takes back what others have paid by then: no row was read.
    """
    payment = _CURRENT.get()
    if payment is None or payment.taken:  # a release inside of another's program is not asked so
        payment = _Payment(ledger=None, again=False, task="release", asked={})
    payment.taken = True
    accounts = _distinct([*protection.accounts, *([payment.ledger] if payment.ledger else [])])
    claim = certificate.claim
    if not accounts or (type(claim) is PureDP and claim.exact_epsilon == 0):
        return None
    require(
        type(claim) is PureDP,
        "ledger",
        expected="a pure release: only these add up exactly",
        remedy="choose a pure method, or leave the ledger out",
    )
    charge = Charge(
        epsilon=claim.exact_epsilon,  # type: ignore[attr-defined]
        neighbors=claim.neighbors,
        unit=certificate.unit,
        task=f"{payment.task}({_columns(payment.asked)})",
        question=_digest(payment.task, payment.asked) if payment.repeats else None,
        certificate=certificate.digest,
        again=payment.again,
    )
    debits: list[tuple[Account, Receipt]] = []
    try:
        for account in accounts:
            debits.append((account, account.debit(charge)))
    except BaseException:
        Paid(debits=tuple(debits)).take_back()
        raise
    return Paid(debits=tuple(debits))


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

    `asked` is all that it depends on, unless it never `repeats`: then there is more. Inside of
    another that has not been paid for yet this is the same release, which that pays for.
    """
    require(
        ledger is None or callable(getattr(type(ledger), "debit", None)),
        "ledger",
        type(ledger).__name__,
        expected="a Ledger",
        remedy="pass zd.Ledger(path, budget=…)",
    )
    outer = _CURRENT.get()
    if outer is not None and not outer.taken and ledger is None:
        yield
        return
    once_more = as_flag(again, "again")
    made = _Payment(ledger=ledger, again=once_more, task=task, asked=asked, repeats=repeats)
    token = _CURRENT.set(made)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def debited(function: Callable[P, T]) -> Callable[P, T]:
    """Give a verb that makes one release the keywords `ledger` and `again`, documented.

    Its signature ends in ``**paying: Unpack[Paying]``, of which it sees nothing. So does that of a
    constructor, such as a study's, whose program is part of the question and not known yet.
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
        with paying(ledger, again=again, task=task, asked=asked, repeats=repeats):
            return function(*args, **kwargs)

    keyword = inspect.Parameter.KEYWORD_ONLY
    added = [
        inspect.Parameter("ledger", keyword, default=None, annotation="Ledger | None"),
        inspect.Parameter("again", keyword, default=False, annotation="bool"),
    ]
    paid.__signature__ = signature.replace(parameters=[*own, *added])  # type: ignore[attr-defined]
    paid.__doc__ = _documented(function.__doc__)
    return paid


def _documented(text: str | None) -> str | None:
    # the two keywords come at the end of the section "Parameters"
    start = (text or "").find("----------\n")
    if text is None or start < 0:
        return text
    indent = text[text.rfind("\n", 0, start) + 1 : start]
    end = text.find("\n\n", start)
    lines = "".join(f"\n{indent}{line}" for line in _DOCUMENTED.splitlines())
    return text[:end] + lines + text[end:] if end >= 0 else text


class _Unwritten(Exception):  # noqa: N818
    """Something that was asked cannot be written down, such as a function."""


def _digest(task: str, asked: Mapping[str, Any]) -> str | None:
    """Return the hash of a question, if it is one to a data set and all of it can be written."""
    values = {name: value for name, value in asked.items() if name != "bits" and value is not None}
    if not any(isinstance(value, Dataset) for value in values.values()):
        return None  # of an array nobody knows whether it is the same one
    try:
        plain = {name: _plain(value, name) for name, value in values.items()}
    except _Unwritten:
        return None
    text = json.dumps([task, plain], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _plain(value: Any, name: str = "") -> Any:
    """Return a public argument as JSON can write it; equal ones alike."""
    if name == "epsilon":
        return str(decimal_meant(value, name))
    if isinstance(value, Dataset):
        return value.described
    if isinstance(value, (bool, str)) or value is None:
        return value
    if isinstance(value, (int, float, Fraction, np.number)):
        return repr(value.item() if isinstance(value, np.number) else value)
    if isinstance(value, Enum):
        return [type(value).__name__, value.name]
    if isinstance(value, np.ndarray) and value.size <= _MOST_CELLS and value.dtype != object:
        return [list(value.shape), [_plain(each) for each in value.ravel().tolist()]]
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return [[_plain(key), _plain(each)] for key, each in value.items()]
    if is_dataclass(value) and type(value).__module__.startswith("zerodelta."):
        parts = {each.name: _plain(getattr(value, each.name)) for each in fields(value)}
        return [type(value).__name__, parts]
    raise _Unwritten


def _columns(asked: Mapping[str, Any]) -> str:
    """Return the names of the columns that are asked about, as far as these were said."""
    for value in (asked.get("columns"), *asked.values()):
        names = value.columns if isinstance(value, Dataset) else value
        if names is value and value is not asked.get("columns"):
            continue
        listed = [names] if isinstance(names, str) else names
        if isinstance(listed, (list, tuple)) and all(isinstance(each, str) for each in listed):
            shown = ", ".join(each for each in listed if each)
            if shown:
                plain = shown if shown.isprintable() else ascii(shown)[1:-1]
                return plain if len(plain) <= 100 else plain[:97] + "..."
    return ""
