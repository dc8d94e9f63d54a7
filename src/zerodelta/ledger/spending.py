"""What is written to a ledger when something is spent, taken back, or may be spent from now on."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

from zerodelta.data.account import Charge, Receipt
from zerodelta.errors import BudgetError, ParameterError, require
from zerodelta.exact.rational import Rational, number_text
from zerodelta.ledger.balances import Balance, Balances, Key, booked
from zerodelta.ledger.chain import FORMAT, START, Row, new_id, seal, timestamp
from zerodelta.ledger.store import Store
from zerodelta.privacy.certificate import Certificate
from zerodelta.privacy.neighbors import Neighbors
from zerodelta.privacy.parameters import as_usable_epsilon, decimal_meant


def as_budget(value: Rational, name: str) -> Fraction:
    """Return an amount of ε; a float means the decimal that it prints as."""
    exact = decimal_meant(value, name)
    require(0 < exact <= 10**6, name, value, "a number above 0, at most 1e6", 'pass "1", say')
    return exact


def as_name(value: Any, name: str) -> str:
    """Return a text of one line."""
    require(
        type(value) is str and value.strip() == value != "" and value.isprintable(),
        name,
        value,
        expected="a text of one line",
        remedy="say it in a few words",
    )
    return str(value)


def check_same(
    found: Balance,
    limit: Fraction | None,
    neighbors: Neighbors | None,
    unit: str | None,
    *,
    convert: bool,
) -> None:
    """Refuse to open an account as another than it is.

    With `convert` it may be for other neighbors, or another unit: each debit is looked at.
    """
    told = None if found.limit is None else number_text(found.limit)
    remedy = "leave it out, or ledger.raise_budget(to, reason)"
    require(limit in (None, found.limit), "budget", limit, f"{told}, as it is", remedy)
    remedy = "leave it out, or open another account"
    for name, given, stated in (
        ("neighbors", neighbors, found.neighbors),
        ("unit", unit, found.unit),
    ):
        same = convert or given in (None, stated)
        require(same, name, given, f"{stated!r}, as it is", remedy)


def first_entries(
    key: Key, limit: Fraction, neighbors: Neighbors | None, unit: str | None
) -> list[Row]:
    """Return the first two entries of a new ledger: what it is, and its first account."""
    now = timestamp("")
    one = seal(1, {"kind": "ledger", "format": FORMAT, "id": new_id(), "time": now}, START)
    opening = _account(key, limit, neighbors or Neighbors.REPLACE, unit, now)
    return [one, seal(2, opening, one[3])]


def open_account(
    store: Store,
    balances: Balances,
    key: Key,
    limit: Fraction | None,
    neighbors: Neighbors | None,
    unit: str | None,
) -> None:
    """Write the entry of a new account."""
    data, analyst = key
    relation = neighbors or Neighbors.REPLACE
    if analyst is None:
        if limit is None:
            balances.balance(key)  # says that there is none
    else:
        whole = balances.balance((data, None))
        require(
            neighbors in (None, whole.neighbors) and unit in (None, whole.unit),
            "neighbors, unit",
            (neighbors, unit),
            expected="those of the data set's account",
            remedy="leave them out",
        )
        relation, unit = whole.neighbors, whole.unit
    now = timestamp(balances.time)
    store.append(_account(key, limit, relation, unit, now))


def checked(store: Store, balances: Balances, key: Key, charge: Charge) -> Fraction:
    """Return what a debit costs, if it is covered and was not asked before."""
    account = balances.balance(key)
    amount = booked(charge.epsilon, neighbors=charge.neighbors, unit=charge.unit, account=account)
    if charge.question is not None and not charge.again:
        _refuse_repeated(store, balances, charge, key[0])
    balances.check(key, amount)
    return amount


def debit(store: Store, balances: Balances, key: Key, charge: Charge) -> Receipt:
    """Write a debit, if it is covered and was not asked before."""
    amount = checked(store, balances, key, charge)
    now = timestamp(balances.time)
    body = {
        "kind": "debit",
        "data": key[0],
        "analyst": key[1],
        "task": charge.task,
        "epsilon": str(charge.epsilon),
        "neighbors": charge.neighbors.value,
        "unit": charge.unit,
        "booked": str(amount),
        "question": charge.question,
        "certificate": charge.certificate,
        "record": charge.record,
        "time": now,
    }
    row = store.append(body)
    return Receipt(ledger=balances.id, entry=row[0], hash=row[3], time=now)


def take_back(store: Store, balances: Balances, receipt: Receipt, reason: str) -> None:
    """Write that a debit is undone; once, and only that very one."""
    row = store.find(receipt.entry)
    if row is None or row[3] != receipt.hash or receipt.entry in balances.returned:
        return
    undone = json.loads(row[2])
    fields = {name: undone[name] for name in ("data", "analyst", "booked")}
    body = {"kind": "return", **fields, "of": receipt.entry, "reason": reason}
    store.append({**body, "time": timestamp(balances.time)})


def raise_budget(store: Store, balances: Balances, key: Key, limit: Fraction, reason: str) -> None:
    """Write that more may be spent."""
    old = balances.balance(key).limit
    told = "none" if old is None else number_text(old)
    require(
        old is not None and limit > old,
        "to",
        number_text(limit),
        expected=f"more than the budget, {told}",
        remedy="a budget can only be raised",
    )
    body = {"kind": "raise", "data": key[0], "analyst": key[1], "limit": str(limit)}
    store.append({**body, "reason": reason, "time": timestamp(balances.time)})


def priced(plan: Any, account: Balance) -> Fraction:
    """Return what a plan, or a number, costs in an account."""
    if isinstance(plan, (int, float, str, Fraction)):
        return as_usable_epsilon(plan)
    price = getattr(plan, "price", None)
    if not isinstance(price, Fraction):
        raise ParameterError(
            "plans",
            type(plan).__name__,
            expected="plans of pure releases",
            remedy="choose a pure method, or pass its epsilon",
        )
    claim = getattr(plan, "claim", None)
    if claim is None:
        return price
    issued = getattr(plan, "certificate", None)  # that of a preview
    unit = getattr(issued if isinstance(issued, Certificate) else plan, "unit", account.unit)
    return booked(price, neighbors=claim.neighbors, unit=unit, account=account)


def _account(
    key: Key, limit: Fraction | None, neighbors: Neighbors, unit: str | None, now: str
) -> dict[str, Any]:
    return {
        "kind": "account",
        "data": key[0],
        "analyst": key[1],
        "limit": None if limit is None else str(limit),
        "neighbors": neighbors.value,
        "unit": unit,
        "time": now,
    }


def _refuse_repeated(store: Store, balances: Balances, charge: Charge, data: str) -> None:
    before: list[tuple[int, str, str | None]] = []
    for number in store.asked(charge.question or ""):
        row = store.find(number)
        body = {} if row is None else json.loads(row[2])
        if number not in balances.returned and body.get("data") == data:
            places = store.saved(number)
            before.append((number, body["time"], places[-1][0] if places else None))
    if not before:
        return
    number, when, place = next((each for each in before if each[2] is not None), before[0])
    saved = "if it was saved" if place is None else f"saved as {place!r}"
    raise BudgetError(
        f"{charge.task} was asked before, at the same epsilon: entry {number} of {when}. That "
        f"release is free: load it with zd.load, {saved}; or pay once more with again=True."
    )
