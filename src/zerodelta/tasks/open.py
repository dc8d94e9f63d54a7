"""`zd.open`: declare the columns of a file, a frame or a database, and who is protected in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from zerodelta.data.arrays import reader_of
from zerodelta.data.chosen import DEFAULT_MEMORY, OpenedDataset, Unit
from zerodelta.data.dataset import Dataset
from zerodelta.data.kinds import Kind
from zerodelta.data.pieces import Keeping
from zerodelta.data.readers import is_path, matching_files, places
from zerodelta.data.schema import Schema, check_names
from zerodelta.errors import ParameterError, require
from zerodelta.exact.rational import Rational, as_count
from zerodelta.ledger.ledger import DEFAULT_DATA, Ledger
from zerodelta.privacy.parameters import Neighbors
from zerodelta.privacy.verify import as_neighbors


def open(
    source: Any,
    *,
    columns: Mapping[str, Kind] | None = None,
    schema: Schema | None = None,
    unit: str | None = None,
    max_rows: int | None = None,
    units: int | None = None,
    neighbors: Neighbors | str | None = None,
    expected_rows: int | None = None,
    name: str | None = None,
    memory: int | None = None,
    folder: str | Path | None = None,
    ledger: str | Path | Ledger | None = None,
    budget: Rational | None = None,
    **file: Any,
) -> Dataset:
    """Open data for private questions: what its columns are, and who is protected in it.

    Nothing is read but the names of the columns. Then `zd.mean(people, "income", epsilon=…)`, and
    every other task, estimator and study, takes the columns by name, with their declared bounds.

    Parameters
    ----------
    source : path, glob, frame, array, relation or query
        A CSV or Parquet file or several, a NumPy array, a pandas, Polars or Arrow table, a DuckDB
        relation, a Polars lazy frame or a Spark DataFrame.
    columns : dict of kinds
        The columns that may be used, by name: `zd.number(0, 120)`, `zd.category([...])`,
        `zd.boolean()`, `zd.date(...)`, `zd.text(...)`. Public, and never read off the rows. Names
        are not empty, and have no control characters.
    schema : Schema, optional
        All of this from a file instead (`zd.data.read_schema`); arguments given here win.
    unit : str, optional
        The column that names who is protected, such as a customer; by default each row is.
    max_rows : int, optional
        How many rows of one unit count; a fixed rule that sees only its own rows chooses them.
    units : int, optional
        How many units there are; if not given they are counted, which makes their number public.
    neighbors : "replace" or "add-remove"
        Whether data sets that differ in one replaced row (or unit) are neighbors, as by default,
        or those with one row more or less; then the number of rows is private.
    expected_rows : int, optional
        About how many rows count, known without the rows, where their number is private.
    name : str, optional
        What the data set is called in records.
    memory : int, optional
        How many bytes of a copy of the rows, which studies and training read again and again, are
        kept in memory; the rest goes to a file without a name. By default 1 GiB.
    folder : path, optional
        Where that file is made, before the first row, readable by its owner only; by default the
        system's temporary folder.
    ledger : path, URL or Ledger, optional
        Where every release from these data is debited, before a row is read, in the account of
        their `name`.
    budget : number, optional
        How much ε may be spent on them in all: needed when the account is opened, and later the
        same or left out.
    **file : optional
        How a CSV file is written: `header`, `delimiter`, `decimal`, `encoding`, and `quote` (`"`;
        None if quotes are characters like any other).

    Returns
    -------
    Dataset
        `people["income"]`, `people[["age", "income"]]` and `people.where("age >= 18")` are data
        sets too; `print(people)` shows what was declared.

    Examples
    --------
    >>> import numpy as np
    >>> import zerodelta as zd
    >>> ages = np.arange(100_000) % 100
    >>> people = zd.open(ages, columns={"0": zd.number(0, 120, missing=None)}, name="ages")
    >>> round(zd.mean(people, "0", epsilon=1).value, 1)
    49.5

    """
    declared = columns is None or isinstance(columns, Mapping)
    remedy = 'pass columns={"age": zd.number(0, 120), "city": zd.category([...])}'
    require(declared, "columns", columns, "the declared kind of each column", remedy)
    known = schema is None or isinstance(schema, Schema)
    require(known, "schema", schema, "a schema", 'pass zd.data.read_schema("people.toml")')
    stated = schema if schema is not None else Schema(columns=dict(columns or {}))
    kinds = dict(stated.columns if columns is None else columns)
    require(
        kinds and all(isinstance(kind, Kind) for kind in kinds.values()),
        "columns",
        list(kinds),
        expected="the declared kind of each column that may be used",
        remedy=remedy,
    )
    reader = reader_of(source, {**stated.file, **file}, declared=tuple(kinds))
    protected = _unit(stated, unit, max_rows, units)
    check_names(kinds)
    check_names([] if protected is None else [protected.column], "unit")
    places(reader.names, [*kinds, *([] if protected is None else [protected.column])])
    given = neighbors if neighbors is not None else stated.neighbors
    relation = Neighbors.REPLACE if given is None else as_neighbors(given)
    called = name if name is not None else stated.name
    return Dataset(
        OpenedDataset(
            reader=reader,
            kinds=kinds,
            unit=protected,
            neighbors=relation,
            name=called,
            expected_rows=None
            if expected_rows is None
            else as_count(expected_rows, "expected_rows", minimum=1),
            keeping=_keeping(memory, folder),
            account=_account(ledger, budget, called, relation, protected, _files(source)),
        )
    )


_MOST_FILES = 100
"""How many files of a source a ledger knows by name: it looks each of them up."""


def _files(source: Any) -> list[str]:
    """Return the paths and patterns that a source was given as, and the first files they name."""
    if not is_path(source):
        return []
    given = source if isinstance(source, (list, tuple)) else [source]
    named = [str(Path(each).expanduser()) for each in given]
    return list(dict.fromkeys([*named, *map(str, matching_files(source)[:_MOST_FILES])]))


def _is_folder(folder: Any) -> bool:
    try:
        return Path(folder).is_dir()
    except (OSError, TypeError, ValueError):  # no path of this system
        return False


def _account(
    ledger: str | Path | Ledger | None,
    budget: Rational | None,
    name: str | None,
    neighbors: Neighbors,
    unit: Unit | None,
    files: Sequence[str],
) -> Ledger | None:
    """Return the account of a data set, opened if it is new; what it adds up is decided then."""
    if ledger is None:
        remedy = "pass ledger='people.ledger', say"
        require(budget is None, "budget", budget, "a ledger to keep it in", remedy)
        return None
    whole = ledger.address if isinstance(ledger, Ledger) else ledger
    data = name if name is not None else DEFAULT_DATA
    if isinstance(ledger, Ledger) and name is None:
        data = ledger.data
    analyst = ledger.analyst if isinstance(ledger, Ledger) else None
    column = None if unit is None else unit.column
    made = Ledger.of_data(whole, data, budget=budget, neighbors=neighbors, unit=column, files=files)
    return made if analyst is None else made.account(analyst=analyst)


def _keeping(memory: int | None, folder: str | Path | None) -> Keeping:
    require(
        folder is None or _is_folder(folder),
        "folder",
        folder,
        expected="a folder that exists",
        remedy="make it first, where nobody else can read",
    )
    return Keeping(
        memory=DEFAULT_MEMORY if memory is None else as_count(memory, "memory"),
        folder=None if folder is None else str(folder),
    )


def _unit(stated: Schema, unit: str | None, max_rows: int | None, units: int | None) -> Unit | None:
    column = unit if unit is not None else stated.unit
    most = max_rows if max_rows is not None else stated.max_rows
    number = units if units is not None else stated.units
    if column is None:
        require(
            most is None and number is None,
            "max_rows" if most is not None else "units",
            most if most is not None else number,
            expected="nothing: each row is protected by itself",
            remedy="name the column of the unit: unit='customer_id'",
        )
        return None
    if most is None:
        raise ParameterError(
            "max_rows",
            None,
            expected="how many rows of one unit count",
            remedy="pass max_rows=3, say: noise grows with it, and rows beyond it are left out",
        )
    return Unit(
        column=column,
        max_rows=as_count(most, "max_rows", minimum=1),
        number=None if number is None else as_count(number, "units", minimum=1),
    )
