"""A job: what to release, of which file, for which ε; from a TOML file or from a command."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import field, fields
from fractions import Fraction
from pathlib import Path
from typing import Any, final

import zerodelta as zd
from zerodelta.cli.commands import OPTIONS, SHARED
from zerodelta.errors import (
    BudgetError,
    ParameterError,
    did_you_mean,
    may_be_url,
    require,
    require_extra,
)
from zerodelta.exact.rational import as_positive, number_text
from zerodelta.ledger.ledger import DEFAULT_DATA, Ledger, reading
from zerodelta.ledger.store import as_address, is_url, shown
from zerodelta.privacy.release import Release
from zerodelta.spine.run import Preview, preview
from zerodelta.tasks.registry import COMMANDS, TASKS
from zerodelta.tasks.task import Command, Task
from zerodelta.value import value

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@value
class Job:
    """All that a release takes; every field is public."""

    task: str
    data: str
    epsilon: str
    schema: str | None = None
    columns: tuple[str, ...] = ()
    target: str | None = None
    where: str | None = None
    expected_rows: int | None = None
    ledger: str | None = None
    budget: str | None = None
    analyst: str | None = None
    records: str | None = None
    """A folder of saved releases, whose entries the ledger must have."""
    again: bool = False
    out: str | None = None
    parquet: bool = False
    sign: str | None = None
    name: str | None = None
    """Of several jobs in one file: the folder within `out`."""
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("analyst", "records"):
            alone = self.ledger is None and getattr(self, name) is not None
            require(not alone, name, expected="a ledger", remedy="pass ledger='people.ledger', say")
        remedy = did_you_mean(self.task, COMMANDS, "see zerodelta --help")
        require(self.task in COMMANDS, "task", self.task, f"one of {', '.join(COMMANDS)}", remedy)
        command = self.command
        for name in self.options:
            remedy = did_you_mean(name, command.options, f"see zerodelta {self.task} --help")
            expected = f"one of {', '.join(command.options) or 'no options'}"
            require(name in command.options, f"{self.task}, option", name, expected, remedy)
        example = f"as in: zerodelta {command.example}"
        for name in command.needs:
            remedy = f"pass --{name.replace('_', '-')}, {example}"
            require(name in self.options, name, expected="a value for this task", remedy=remedy)
        few = len(self.columns) <= {"none": 0, "one": 1}.get(command.columns, len(self.columns))
        most = "no column" if command.columns == "none" else "at most one column"
        require(few, "columns", list(self.columns), most, example)
        wanted = command.target is not None
        expected = "the column to explain" if wanted else "no target for this task"
        require((self.target is not None) is wanted, "target", self.target, expected, example)

    @property
    def described(self) -> Task:
        """The task that the command is of."""
        return TASKS[COMMANDS[self.task]]

    @property
    def command(self) -> Command:
        """What the command takes."""
        command = self.described.command
        assert command is not None
        return command


@value(eq=False)
class Made:
    """A release, and the fitted estimator that it is of, if it is one."""

    release: Release
    estimator: Any = None

    def save(self, path: Path, *, sign: str | None) -> None:
        """Write the one file that `zd.load` reads back to either."""
        (self.release if self.estimator is None else self.estimator).save(path, sign=sign)


# -- from texts -----------------------------------------------------------------------------------


def parsed(name: str, given: Any) -> Any:
    """Return an option as a task takes it, from what a command line or a TOML file has.

    >>> parsed("quantiles", "0.1,0.9"), parsed("of", ["income=mean,median"])
    (['0.1', '0.9'], {'income': ['mean', 'median']})
    >>> parsed("by", ["city"]), parsed("by", ["city", "age:0,18,65"])
    ('city', {'city': None, 'age': ['0', '18', '65']})
    >>> parsed("weights", ["income_mean=3", "count=1/2"])
    {'income_mean': '3', 'count': '1/2'}
    """
    kind = OPTIONS[name].kind
    if kind == "numbers":
        return _split(given) if isinstance(given, str) else given
    if kind == "lists" and not isinstance(given, Mapping):
        return {column: _statistics(words) for column, words in map(_pair, _listed(given))}
    if kind == "weights" and not isinstance(given, Mapping):
        words = [word for each in _listed(given) for word in _split(each)]
        return {name: weight.strip() for name, weight in (_pair(w, "count=3") for w in words)}
    if kind == "groups" and not isinstance(given, Mapping):
        return _groups([part for each in _listed(given) for part in _words(each)])
    return given


def _statistics(words: str) -> list[Any]:
    """Return what is asked of a column; quantiles:0.1:0.9 are several."""
    found: list[Any] = []
    for word in _split(words):
        name, *rest = word.split(":")
        found.append({name: rest} if rest else name)
    return found


def _pair(text: str, example: str = "income=mean,median") -> tuple[str, str]:
    column, found, rest = text.partition("=")
    require(found, "value", text, "COLUMN=ITEMS", f"write {example}, say")
    return column.strip(), rest


def _words(text: str) -> list[str]:
    return [text] if ":" in text else _split(text)


def _groups(words: Sequence[str]) -> Any:
    if not any(":" in word for word in words):
        return words[0] if len(words) == 1 else list(words)
    made: dict[str, Any] = {}
    for word in words:
        name, _, edges = word.partition(":")
        made[name.strip()] = _split(edges) or None
    return made


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _listed(given: Any) -> list[str]:
    listed = [given] if isinstance(given, str) else given
    fine = isinstance(listed, (list, tuple)) and all(isinstance(each, str) for each in listed)
    require(fine, "value", given, "a text or a list of texts", "see docs/command-line.md")
    return list(listed)


_CALLED = {str: "a text", int: "a whole number", float: "a number", bool: "true or false"}
_CALLED |= {list: "a list of texts"}
_TYPES: Mapping[str, tuple[type, ...]] = {
    "text": (str,),
    "path": (str,),
    "number": (str, int, float),
    "count": (int,),
    "flag": (bool,),
}
"""As what a TOML file has them; options of tasks are judged by these."""
_KINDS: Mapping[str, str] = {
    **{name: option.kind for name, option in SHARED.items()},
    **dict.fromkeys(("task", "target", "name"), "text"),
    "data": "path",
}

_PLAIN = tuple(each.name for each in fields(Job) if each.name != "options")


def read_jobs(path: Path) -> list[Job]:
    """Return the jobs of a TOML file: one, or those under [[release]], which share what is above.

    Paths in it are relative to its folder.
    """
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        told = f"TOML ({error})" if isinstance(error, tomllib.TOMLDecodeError) else "UTF-8"
        remedy = "see docs/command-line.md for an example"
        raise ParameterError("job", str(path), expected=told, remedy=remedy) from None
    several = given.pop("release", None)
    if several is None:
        return [_job(given, path.parent, place=None)]
    fine = isinstance(several, list) and several and all(isinstance(e, dict) for e in several)
    require(fine, "release", expected="one or more sections", remedy="write [[release]] above each")
    jobs = [_job({**given, **each}, path.parent, place=i) for i, each in enumerate(several, 1)]
    names = [job.name for job in jobs]
    fine = len(set(names)) == len(names)
    require(fine, "name", names, "different names", "give each release a name of its own")
    return jobs


def _job(given: Mapping[str, Any], folder: Path, *, place: int | None) -> Job:
    known = (*_PLAIN, *OPTIONS)
    for name in given:
        remedy = did_you_mean(name, known, "see docs/command-line.md")
        require(name in known, "job", name, "a name that jobs have", remedy)
    for name in ("task", "data", "epsilon"):
        remedy = f"write {name} = …, see docs/command-line.md"
        require(name in given, name, expected="a line in the job", remedy=remedy)
    columns = given.get("columns", ())
    for name in given.keys() & {*_KINDS, "columns"}:
        value, kinds = given[name], _TYPES.get(_KINDS.get(name, ""), (str, list))
        fine = isinstance(value, kinds) and (bool in kinds or not isinstance(value, bool))
        expected = " or ".join(_CALLED[kind] for kind in kinds)
        require(fine, name, value, expected, "see docs/command-line.md for an example")
    plain = {name: given[name] for name in _PLAIN if name in given}
    for name, kind in _KINDS.items():
        if name in plain and kind == "path":
            plain[name] = _place(plain[name], folder)
        elif name in plain and kind == "number":
            plain[name] = str(plain[name])
    plain["columns"] = tuple(_listed(columns or []))
    if place is not None:
        plain.setdefault("name", f"{place}-{plain['task']}")
        name = plain["name"]
        fine = isinstance(name, str) and name not in ("", ".", "..") and Path(name).name == name
        require(fine, "name", name, "the name of a folder", "write name = 'income', say")
    elif "name" in plain:
        plain.pop("name")
    options = {name: parsed(name, given[name]) for name in given if name in OPTIONS}
    return Job(**plain, options=options)


def _place(text: str, folder: Path) -> str:
    return text if may_be_url(text) else os.fspath(folder / text)


# -- running --------------------------------------------------------------------------------------


def released(job: Job) -> Made:
    """Run a job: its ledger is debited, then rows are read."""
    return _called(job, _opened(job, paying=True))


def planned(job: Job) -> Preview:
    """Return what a job would cost and promise; no row is read, no ledger written."""
    people = _opened(job, paying=False)
    return preview(lambda: _called(job, people))


def _opened(job: Job, *, paying: bool) -> Any:
    remedy = "pass --schema people.toml; zerodelta init writes a template"
    require(job.schema is not None, "schema", expected="declared columns", remedy=remedy)
    schema = zd.data.read_schema(str(job.schema))
    data = DEFAULT_DATA if schema.name is None else schema.name
    people = zd.open(
        job.data,
        schema=schema,
        expected_rows=job.expected_rows,
        ledger=_payer(job, data) if paying else None,
        budget=job.budget if paying else None,
    )
    if paying and job.ledger is not None and job.records is not None:
        Ledger(job.ledger, data=data).demand(job.records)
    return people if job.where is None else people.where(job.where)


def _payer(job: Job, data: str) -> str | Ledger | None:
    """Return who pays: a ledger, or an analyst's account in it."""
    if job.ledger is None or job.analyst is None:
        return job.ledger
    return account_of(job.ledger, data, job.analyst)


def account_of(address: str, data: str, analyst: str | None) -> Ledger:
    """Return an account that there is; one of an analyst is not opened by a slip of the pen."""
    whole = Ledger(address, data=data)
    if analyst is None:
        return whole
    with reading(whole.address) as (_, balances):
        known = sorted(each for (of, each) in balances.accounts if of == data and each is not None)
    expected = f"one who has an account of {data!r}: {', '.join(known) or 'nobody has'}"
    remedy = "open it: zerodelta ledger open"
    require(analyst in known, "analyst", analyst, expected, remedy)
    return whole.account(analyst=analyst)


def _called(job: Job, people: Any) -> Made:
    command, verb, options = job.command, job.described.verb, _options(job, people)
    options |= {"again": True} if job.again else {}
    names: Any = list(job.columns)
    if job.target is not None or job.described.estimator:
        names = names or [name for name in people.columns if name != job.target]
    if job.described.estimator:
        return _fitted(
            job, people[names], None if job.target is None else people[job.target], options
        )
    assert verb is not None
    if command.target is not None:
        options[command.target] = job.target
        names.append(job.target)
    if command.columns in ("one", "some"):
        names = names[0] if len(names) == 1 else names or None
    if command.columns != "none":
        options["columns"] = names or None
    return Made(release=verb(people, epsilon=job.epsilon, **options))


def _fitted(job: Job, rows: Any, targets: Any, options: Mapping[str, Any]) -> Made:
    require_extra("sklearn", "sklearn")
    from zerodelta import sklearn

    model = getattr(sklearn, job.described.estimator)(epsilon=job.epsilon, **options)
    model.fit(*((rows,) if targets is None else (rows, targets)))
    return Made(release=model.release_, estimator=model)


def _options(job: Job, people: Any) -> dict[str, Any]:
    renamed = job.command.renamed
    found: dict[str, Any] = {}
    for name, entry in job.options.items():
        if name == "no_intercept":
            found["fit_intercept"] = not entry
        elif name == "by" and isinstance(entry, Mapping):
            found["by"] = {column: _group(people, column, cut) for column, cut in entry.items()}
        else:
            found[renamed.get(name, name)] = entry
    return found


def _group(people: Any, column: str, cut: Any) -> Any:
    if cut is not None:
        return zd.bins(cut)
    kinds = people.kinds
    remedy = did_you_mean(column, kinds, "name a declared column")
    require(column in kinds, "by", column, "a declared column", remedy)
    return kinds[column]


# -- What ledgers have left -----------------------------------------------------------------------


@final
class Funds:
    """What the ledgers of some jobs have left, as their jobs are planned one after the other."""

    def __init__(self) -> None:
        self._left: dict[tuple[str, str | None, str | None], Fraction] = {}

    def line(self, job: Job, found: Preview) -> str | None:
        """Say what is left for a job, and whether that covers it; None without a ledger."""
        left = self.left(job)
        if left is None:
            return None
        price = self._take(job, found)
        covered = price is not None and price <= left
        opened = "would be opened with" if _account(job) is None else "has"
        verdict = "this is covered" if covered else "this is NOT covered"
        told = f"{shown(job.ledger or '')} {opened} {number_text(max(left, Fraction(0)))}"
        return f"{told} left for it; {verdict}"

    def left(self, job: Job) -> Fraction | None:
        """Return what is left for a job; None without a ledger or a budget."""
        return self._left.get(_whose(job), _limit(job))

    def check(self, planned: Sequence[tuple[Job, Preview]]) -> None:
        """Refuse jobs that their ledgers do not cover together."""
        for job, found in planned:
            left = self.left(job)
            price = self._take(job, found)
            if left is not None and price is not None and price > left:
                raise BudgetError(
                    f"{job.name} asks for {number_text(price)}, where "
                    f"{number_text(max(left, Fraction(0)))} of the ledger would be left after the "
                    "jobs before it: nothing was spent or read. Ask for less, or "
                    "ledger.raise_budget(to, reason)."
                )

    def _take(self, job: Job, found: Preview) -> Fraction | None:
        left, account = self.left(job), _account(job)
        if left is None or found.price is None:
            return None
        price = found.price if account is None else account.price([found])
        self._left[_whose(job)] = left - price
        return price


def _whose(job: Job) -> tuple[str, str | None, str | None]:
    name = None if job.schema is None else zd.data.read_schema(job.schema).name
    return job.ledger or "", name, job.analyst


def _limit(job: Job) -> Fraction | None:
    account = _account(job)
    if account is not None:
        return account.remaining
    return None if job.ledger is None or job.budget is None else as_positive(job.budget, "budget")


def _account(job: Job) -> Ledger | None:
    """Return the account that would pay, if it is there already."""
    address = None if job.ledger is None else as_address(job.ledger)
    if address is None or not (is_url(address) or Path(address).exists()):
        return None
    name = zd.data.read_schema(str(job.schema)).name
    data = DEFAULT_DATA if name is None else name
    try:
        whole = Ledger(address, data=data)
    except zd.errors.ParameterError:  # no account of these data yet
        return None
    if job.records is not None:
        whole.demand(job.records)
    return account_of(address, data, job.analyst)
