"""A job: what to release, of which file, for which ε; from a TOML file or from a command."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import field, fields
from pathlib import Path
from typing import Any

import zerodelta as zd
from zerodelta.cli.commands import FORMS, OPTIONS, RENAMED, Form
from zerodelta.errors import ParameterError, did_you_mean, require, require_extra
from zerodelta.ledger.ledger import DEFAULT_DATA, Ledger, reading
from zerodelta.ledger.store import may_be_url
from zerodelta.privacy.release import Release
from zerodelta.spine.run import Preview, preview
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
        known = list(FORMS)
        remedy = did_you_mean(self.task, known, "see zerodelta --help")
        require(self.task in FORMS, "task", self.task, f"one of {', '.join(known)}", remedy)
        form = self.form
        for name in self.options:
            remedy = did_you_mean(name, form.options, f"see zerodelta {self.task} --help")
            expected = f"one of {', '.join(form.options) or 'no options'}"
            require(name in form.options, f"{self.task}, option", name, expected, remedy)
        for name in form.needs:
            remedy = f"pass --{name.replace('_', '-')}, as in: zerodelta {form.example}"
            require(name in self.options, name, expected="a value for this task", remedy=remedy)
        few = len(self.columns) <= {"none": 0, "one": 1}.get(form.columns, len(self.columns))
        most = "no column" if form.columns == "none" else "at most one column"
        require(few, "columns", list(self.columns), most, f"as in: zerodelta {form.example}")
        wanted = form.target is not None
        remedy = f"as in: zerodelta {form.example}"
        expected = "the column to explain" if wanted else "no target for this task"
        require((self.target is not None) is wanted, "target", self.target, expected, remedy)

    @property
    def form(self) -> Form:
        """What the task takes."""
        return FORMS[self.task]


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
    value = OPTIONS[name].value
    if value == "numbers":
        return _split(given) if isinstance(given, str) else given
    if value == "lists" and not isinstance(given, Mapping):
        return {column: _statistics(words) for column, words in map(_pair, _listed(given))}
    if value == "weights" and not isinstance(given, Mapping):
        words = [word for each in _listed(given) for word in _split(each)]
        return {name: weight.strip() for name, weight in (_pair(w, "count=3") for w in words)}
    if value == "groups" and not isinstance(given, Mapping):
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
_KINDS: Mapping[str, tuple[type, ...]] = {
    **dict.fromkeys(("task", "data", "schema", "target", "where"), (str,)),
    **dict.fromkeys(("ledger", "analyst", "records", "out", "sign", "name"), (str,)),
    **dict.fromkeys(("epsilon", "budget"), (str, int, float)),
    **dict.fromkeys(("again", "parquet"), (bool,)),
    "columns": (str, list),
    "expected_rows": (int,),
}
"""What the lines of a job hold; options are judged by their tasks."""

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
    for name in given.keys() & _KINDS.keys():
        value, kinds = given[name], _KINDS[name]
        fine = isinstance(value, kinds) and (bool in kinds or not isinstance(value, bool))
        expected = " or ".join(_CALLED[kind] for kind in kinds)
        require(fine, name, value, expected, "see docs/command-line.md for an example")
    plain = {name: given[name] for name in _PLAIN if name in given}
    for name in ("data", "schema", "ledger", "records", "out", "sign"):
        if isinstance(plain.get(name), str):
            plain[name] = _place(plain[name], folder)
    for name in ("epsilon", "budget"):
        if name in plain:
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
    schema = zd.read_schema(str(job.schema))
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
    form, options = job.form, _options(job, people)
    options |= {"again": True} if job.again else {}
    if form.estimator:
        return _fitted(job, people, options)
    names: Any = list(job.columns)
    if form.target is not None:
        options[form.target] = job.target
        names = [*(names or [n for n in people.columns if n != job.target]), job.target]
    if form.columns in ("one", "some"):
        names = names[0] if len(names) == 1 else names or None
    if form.columns != "none":
        options["columns"] = names or None
    return Made(release=getattr(zd, form.calls)(people, epsilon=job.epsilon, **options))


def _fitted(job: Job, people: Any, options: Mapping[str, Any]) -> Made:
    require_extra("sklearn", "sklearn")
    from zerodelta import sklearn

    model = getattr(sklearn, job.form.calls)(epsilon=job.epsilon, **options)
    names = list(job.columns) or [name for name in people.columns if name != job.target]
    if job.target is None:
        model.fit(people[names])
    else:
        model.fit(people[names], people[job.target])
    return Made(release=model.release_, estimator=model)


def _options(job: Job, people: Any) -> dict[str, Any]:
    renamed = RENAMED.get(job.task, {})
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
