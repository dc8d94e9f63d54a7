"""Read jobs from TOML files and commands, plan them and run them.

A job names a task, a data file, its columns, ε and options.
"""

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
from zerodelta.ledger.store import as_address, is_url, shown_address
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
    """The arguments of one release; every field is public."""

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
    """A folder of saved releases; the ledger must have the entries that paid for them."""
    again: bool = False
    out: str | None = None
    parquet: bool = False
    sign: str | None = None
    name: str | None = None
    """The folder within `out`, if a file has several jobs."""
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("analyst", "records"):
            without_ledger = self.ledger is None and getattr(self, name) is not None
            remedy = "pass ledger='people.ledger', say"
            require(not without_ledger, name, expected="a ledger to pay from", remedy=remedy)
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
        limit = {"none": 0, "one": 1}.get(command.columns, len(self.columns))
        expected = "no column" if command.columns == "none" else "at most one column"
        require(len(self.columns) <= limit, "columns", list(self.columns), expected, example)
        wanted = command.target is not None
        expected = "the column to explain" if wanted else "no target for this task"
        require((self.target is not None) is wanted, "target", self.target, expected, example)

    @property
    def described(self) -> Task:
        """The description of the task."""
        return TASKS[COMMANDS[self.task]]

    @property
    def command(self) -> Command:
        """The description of the command's arguments."""
        command = self.described.command
        assert command is not None
        return command


@value(eq=False)
class FinishedJob:
    """The release of a job, and its fitted estimator if the task is one."""

    release: Release
    estimator: Any = None

    def save(self, path: Path, *, sign: str | None) -> None:
        """Write the file from which `zd.load` restores the release or the estimator."""
        (self.release if self.estimator is None else self.estimator).save(path, sign=sign)


# -- Reading jobs ---------------------------------------------------------------------------------


def parsed(name: str, word: Any) -> Any:
    """Return the value of an option for its task, from a text or a TOML value.

    >>> parsed("quantiles", "0.1,0.9"), parsed("of", ["income=mean,median"])
    (['0.1', '0.9'], {'income': ['mean', 'median']})
    >>> parsed("by", ["city"]), parsed("by", ["city", "age:0,18,65"])
    ('city', {'city': None, 'age': ['0', '18', '65']})
    >>> parsed("weights", ["income_mean=3", "count=1/2"])
    {'income_mean': '3', 'count': '1/2'}
    """
    kind = OPTIONS[name].kind
    if kind == "numbers":
        return _split(word) if isinstance(word, str) else word
    if kind == "lists" and not isinstance(word, Mapping):
        return {column: _statistics(names) for column, names in map(_pair, _as_texts(word))}
    if kind == "weights" and not isinstance(word, Mapping):
        pairs = [pair for text in _as_texts(word) for pair in _split(text)]
        return {name: weight.strip() for name, weight in (_pair(p, "count=3") for p in pairs)}
    if kind == "groups" and not isinstance(word, Mapping):
        # commas separate columns, or the edges of one column that is cut (age:0,18,65)
        texts = _as_texts(word)
        return _groups([g for text in texts for g in ([text] if ":" in text else _split(text))])
    return word


def _statistics(words: str) -> list[Any]:
    """Return the statistics of a column; quantiles:0.1:0.9 is one with two levels."""
    statistics: list[Any] = []
    for word in _split(words):
        name, *levels = word.split(":")
        statistics.append({name: levels} if levels else name)
    return statistics


def _pair(text: str, example: str = "income=mean,median") -> tuple[str, str]:
    column, equals_sign, rest = text.partition("=")
    require(equals_sign, "value", text, "COLUMN=ITEMS", f"write {example}, say")
    return column.strip(), rest


def _groups(words: Sequence[str]) -> Any:
    """Read the words of --by: names, or names with edges as `age:18,40,65`."""
    if not any(":" in word for word in words):
        return words[0] if len(words) == 1 else list(words)
    groups: dict[str, Any] = {}
    for word in words:
        name, _, edges = word.partition(":")
        groups[name.strip()] = _split(edges) or None
    return groups


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _as_texts(word: Any) -> list[str]:
    """Return one text, or a list of texts, as a list; refuse anything else."""
    texts = [word] if isinstance(word, str) else word
    valid = isinstance(texts, (list, tuple)) and all(isinstance(text, str) for text in texts)
    require(valid, "value", word, "a text or a list of texts", "see docs/command-line.md")
    return list(texts)


_TYPE_NAMES = {str: "a text", int: "a whole number", float: "a number", bool: "true or false"}
_TYPE_NAMES |= {list: "a list of texts"}
_TYPES: Mapping[str, tuple[type, ...]] = {
    "text": (str,),
    "path": (str,),
    "number": (str, int, float),
    "count": (int,),
    "flag": (bool,),
}
"""Type of an option's value in a TOML file; the tasks check their own options."""
_KINDS: Mapping[str, str] = {
    **{name: option.kind for name, option in SHARED.items()},
    **dict.fromkeys(("task", "target", "name"), "text"),
    "data": "path",
}

_JOB_FIELDS = tuple(field.name for field in fields(Job) if field.name != "options")


def read_jobs(path: Path) -> list[Job]:
    """Return the jobs of a TOML file: one, or several under [[release]] that share its first lines.

    Paths in the file are relative to its folder.
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        expected = f"TOML ({error})" if isinstance(error, tomllib.TOMLDecodeError) else "UTF-8"
        remedy = "see docs/command-line.md for an example"
        raise ParameterError("job", str(path), expected=expected, remedy=remedy) from None
    sections = content.pop("release", None)
    if sections is None:
        return [_job(content, path.parent, number=None)]
    valid = isinstance(sections, list) and sections and all(isinstance(s, dict) for s in sections)
    remedy = "write [[release]] above each"
    require(valid, "release", expected="one or more sections", remedy=remedy)
    jobs = [_job({**content, **s}, path.parent, number=i) for i, s in enumerate(sections, 1)]
    names = [job.name for job in jobs]
    different = len(set(names)) == len(names)
    require(different, "name", names, "different names", "give each release a name of its own")
    return jobs


def _job(content: Mapping[str, Any], folder: Path, *, number: int | None) -> Job:
    """Return one job of a TOML file, checked; `number` is its place if there are several."""
    known = (*_JOB_FIELDS, *OPTIONS)
    for name in content:
        remedy = did_you_mean(name, known, "see docs/command-line.md")
        require(name in known, "job", name, "the name of a job's line", remedy)
    for name in ("task", "data", "epsilon"):
        remedy = f"write {name} = …, see docs/command-line.md"
        require(name in content, name, expected="a line in the job", remedy=remedy)
    columns = content.get("columns", ())
    for name in content.keys() & {*_KINDS, "columns"}:
        value, types = content[name], _TYPES.get(_KINDS.get(name, ""), (str, list))
        valid = isinstance(value, types) and (bool in types or not isinstance(value, bool))
        expected = " or ".join(_TYPE_NAMES[type_] for type_ in types)
        require(valid, name, value, expected, "see docs/command-line.md for an example")
    arguments = {name: content[name] for name in _JOB_FIELDS if name in content}
    for name, kind in _KINDS.items():
        if name in arguments and kind == "path":
            arguments[name] = _path_within(folder, arguments[name])
        elif name in arguments and kind == "number":
            arguments[name] = str(arguments[name])
    arguments["columns"] = tuple(_as_texts(columns or []))
    if number is not None:
        arguments.setdefault("name", f"{number}-{arguments['task']}")
        name = arguments["name"]
        valid = isinstance(name, str) and name not in ("", ".", "..") and Path(name).name == name
        require(valid, "name", name, "the name of a folder", "write name = 'income', say")
    elif "name" in arguments:
        arguments.pop("name")
    options = {name: parsed(name, content[name]) for name in content if name in OPTIONS}
    return Job(**arguments, options=options)


def _path_within(folder: Path, text: str) -> str:
    return text if may_be_url(text) else os.fspath(folder / text)


# -- Running jobs ---------------------------------------------------------------------------------


def run_job(job: Job) -> FinishedJob:
    """Run a job: its ledger is debited, then rows are read."""
    return _call(job, _open_data(job, paying=True))


def plan_job(job: Job) -> Preview:
    """Return the price and the guarantee of a job; no row is read, no ledger written."""
    people = _open_data(job, paying=False)
    return preview(lambda: _call(job, people))


def _open_data(job: Job, *, paying: bool) -> Any:
    """Open a job's file by its schema, with its ledger and filter; no cell is read."""
    remedy = "pass --schema people.toml (zerodelta init writes a template)"
    expected = "a file that declares the columns"
    require(job.schema is not None, "schema", expected=expected, remedy=remedy)
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
    """Return the account that pays: a ledger's address, or an analyst's account in it."""
    if job.ledger is None or job.analyst is None:
        return job.ledger
    return account_of(job.ledger, data, job.analyst)


def account_of(address: str, data: str, analyst: str | None) -> Ledger:
    """Return an existing account; a misspelled analyst does not open a new one."""
    data_account = Ledger(address, data=data)
    if analyst is None:
        return data_account
    with reading(data_account.address) as (_, balances):
        accounts = [account for of, account in balances.accounts if of == data]
    known = sorted(account for account in accounts if account is not None)
    expected = f"an analyst who has an account of {data!r}: {', '.join(known) or 'nobody has'}"
    remedy = "open it: zerodelta ledger open"
    require(analyst in known, "analyst", analyst, expected, remedy)
    return data_account.account(analyst=analyst)


def _call(job: Job, people: Any) -> FinishedJob:
    """Call the verb of a job's task, or fit its estimator."""
    command, verb, options = job.command, job.described.verb, _options(job, people)
    options |= {"again": True} if job.again else {}
    names: Any = list(job.columns)
    if job.target is not None or job.described.estimator:
        names = names or [name for name in people.columns if name != job.target]
    if job.described.estimator:
        return _fit(job, people[names], None if job.target is None else people[job.target], options)
    assert verb is not None
    if command.target is not None:
        options[command.target] = job.target
        names.append(job.target)
    if command.columns in ("one", "some"):
        names = names[0] if len(names) == 1 else names or None
    if command.columns != "none":
        options["columns"] = names or None
    return FinishedJob(release=verb(people, epsilon=job.epsilon, **options))


def _fit(job: Job, rows: Any, targets: Any, options: Mapping[str, Any]) -> FinishedJob:
    """Fit the job's scikit-learn estimator, which is the release."""
    require_extra("sklearn", "sklearn")
    from zerodelta import sklearn

    model = getattr(sklearn, job.described.estimator)(epsilon=job.epsilon, **options)
    model.fit(*((rows,) if targets is None else (rows, targets)))
    return FinishedJob(release=model.release_, estimator=model)


def _options(job: Job, people: Any) -> dict[str, Any]:
    """Return the keyword arguments of the verb or estimator, by their names in Python."""
    renamed = job.command.renamed
    options: dict[str, Any] = {}
    for name, entry in job.options.items():
        if name == "no_intercept":
            options["fit_intercept"] = not entry
        elif name == "by" and isinstance(entry, Mapping):
            options["by"] = {column: _group(people, column, cut) for column, cut in entry.items()}
        else:
            options[renamed.get(name, name)] = entry
    return options


def _group(people: Any, column: str, edges: Any) -> Any:
    """Return the groups of a column: bins with these edges, or its declared kind."""
    if edges is not None:
        return zd.bins(edges)
    kinds = people.kinds
    remedy = did_you_mean(column, kinds, "name a declared column")
    require(column in kinds, "by", column, "a declared column", remedy)
    return kinds[column]


# -- The ε that ledgers have left -----------------------------------------------------------------


@final
class Funds:
    """The ε that ledgers will have left after several jobs, which are planned in order."""

    def __init__(self) -> None:
        self._remaining: dict[tuple[str, str | None, str | None], Fraction] = {}

    def line(self, job: Job, plan: Preview) -> str | None:
        """Return a line that says whether the ledger covers a job; None without a ledger."""
        remaining = self.remaining(job)
        if remaining is None:
            return None
        price = self._spend(job, plan)
        covered = price is not None and price <= remaining
        opened = "would be opened with" if _account(job) is None else "has"
        verdict = "this is covered" if covered else "this is NOT covered"
        rest = number_text(max(remaining, Fraction(0)))
        return f"{shown_address(job.ledger or '')} {opened} {rest} left for it; {verdict}"

    def remaining(self, job: Job) -> Fraction | None:
        """Return the ε that is left for a job; None without a ledger or a budget."""
        return self._remaining.get(_account_key(job), _remaining_now(job))

    def check(self, planned: Sequence[tuple[Job, Preview]]) -> None:
        """Refuse jobs that their ledgers do not cover together."""
        for job, plan in planned:
            remaining = self.remaining(job)
            price = self._spend(job, plan)
            if remaining is not None and price is not None and price > remaining:
                raise BudgetError(
                    f"{job.name} costs {number_text(price)}, but only "
                    f"{number_text(max(remaining, Fraction(0)))} would be left in the ledger after "
                    "the jobs before it: nothing was spent or read. Use a smaller epsilon, or "
                    "call ledger.raise_budget(to, reason)."
                )

    def _spend(self, job: Job, plan: Preview) -> Fraction | None:
        """Subtract the price of a job from what is left, and return the price."""
        remaining, account = self.remaining(job), _account(job)
        if remaining is None or plan.price is None:
            return None
        price = plan.price if account is None else account.price([plan])
        self._remaining[_account_key(job)] = remaining - price
        return price


def _account_key(job: Job) -> tuple[str, str | None, str | None]:
    name = None if job.schema is None else zd.data.read_schema(job.schema).name
    return job.ledger or "", name, job.analyst


def _remaining_now(job: Job) -> Fraction | None:
    """Return the ε left in the job's account, its budget if unopened; None: no limit."""
    account = _account(job)
    if account is not None:
        return account.remaining
    return None if job.ledger is None or job.budget is None else as_positive(job.budget, "budget")


def _account(job: Job) -> Ledger | None:
    """Return the account that would pay, or None if it does not exist yet."""
    address = None if job.ledger is None else as_address(job.ledger)
    if address is None or not (is_url(address) or Path(address).exists()):
        return None
    name = zd.data.read_schema(str(job.schema)).name
    data = DEFAULT_DATA if name is None else name
    try:
        data_account = Ledger(address, data=data)
    except zd.errors.ParameterError:  # no account of these data yet
        return None
    if job.records is not None:
        data_account.demand(job.records)
    return account_of(address, data, job.analyst)
