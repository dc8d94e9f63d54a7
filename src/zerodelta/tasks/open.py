"""Open a file, a frame or a database: declare its columns and who is protected (`zd.open`)."""

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
    """Open data for private questions: declare its columns, and who is protected in it.

    Only the names of the columns are read. Then `zd.mean(people, "income", epsilon=…)`, and every
    other task, estimator and study, takes the columns by name, with their declared bounds.

    Parameters
    ----------
    source : path, glob, frame, array, relation or query
        A file or several (CSV and Parquet, for example), a NumPy array, a pandas, Polars or Arrow
        table, a DuckDB relation, a Polars lazy frame or a Spark DataFrame.
    columns : dict of kinds
        The columns that may be used, by name: `zd.number(0, 120)`, `zd.category([...])`,
        `zd.boolean()`, `zd.date(...)`, `zd.text(...)`. Public, and never read off the rows. Names
        must not be empty or have control characters.
    schema : Schema, optional
        A schema file with all of this (`zd.data.read_schema`); arguments of the call win over it.
    unit : str, optional
        The column that names the protected unit, such as a customer; by default each row is one.
    max_rows : int, optional
        How many rows of one unit count; a fixed rule that sees only the rows of the unit chooses
        them.
    units : int, optional
        The number of units; by default they are counted, which makes their number public.
    neighbors : "replace" or "add-remove"
        By default data sets that differ in one replaced row (or unit) are neighbors; with
        "add-remove" those with one row more or less, and then the number of rows is private.
    expected_rows : int, optional
        The approximate number of rows that count, known without the rows, for planning where the
        true number is private.
    name : str, optional
        The name of the data set in records.
    memory : int, optional
        How many bytes of a copy of the rows, which studies and training read again and again, are
        kept in memory; the rest goes to an unnamed file. By default 1 GiB.
    folder : path, optional
        The folder of that file, which is created before the first row is read and readable by its
        owner only; by default the temporary folder of the system.
    ledger : path, URL or Ledger, optional
        The ledger in which every release from these data is debited before a row is read, in the
        account of their `name`.
    budget : number, optional
        How much ε may be spent on the data in all. Needed when the account is opened; later the
        same number, or none.
    **file : optional
        The format of a CSV file: `header`, `delimiter`, `decimal`, `encoding`, and `quote` (`"`;
        None if quotes are ordinary characters).

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
    by_name = columns is None or isinstance(columns, Mapping)
    remedy = 'pass columns={"age": zd.number(0, 120), "city": zd.category([...])}'
    require(by_name, "columns", columns, "the declared kind of each column", remedy)
    is_schema = schema is None or isinstance(schema, Schema)
    require(is_schema, "schema", schema, "a schema", 'pass zd.data.read_schema("people.toml")')
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
    stated_neighbors = neighbors if neighbors is not None else stated.neighbors
    relation = Neighbors.REPLACE if stated_neighbors is None else as_neighbors(stated_neighbors)
    data_name = name if name is not None else stated.name
    return Dataset(
        OpenedDataset(
            reader=reader,
            kinds=kinds,
            unit=protected,
            neighbors=relation,
            name=data_name,
            expected_rows=None
            if expected_rows is None
            else as_count(expected_rows, "expected_rows", minimum=1),
            keeping=_keeping(memory, folder),
            account=_account(ledger, budget, data_name, relation, protected, _files(source)),
        )
    )


_MOST_FILES = 100
"""The largest number of files of a source that a ledger looks up by name."""


def _files(source: Any) -> list[str]:
    """Return the paths and patterns of a source as they were passed, and its first files."""
    if not is_path(source):
        return []
    paths = source if isinstance(source, (list, tuple)) else [source]
    named = [str(Path(path).expanduser()) for path in paths]
    return list(dict.fromkeys([*named, *map(str, matching_files(source)[:_MOST_FILES])]))


def _is_folder(folder: Any) -> bool:
    """Tell whether a folder exists; False for anything that is not a path of this system."""
    try:
        return Path(folder).is_dir()
    except (OSError, TypeError, ValueError):
        return False


def _account(
    ledger: str | Path | Ledger | None,
    budget: Rational | None,
    name: str | None,
    neighbors: Neighbors,
    unit: Unit | None,
    files: Sequence[str],
) -> Ledger | None:
    """Return the account of a data set; a new one is opened with this relation and unit."""
    if ledger is None:
        remedy = "pass ledger='people.ledger', for example"
        require(budget is None, "budget", budget, "a ledger to keep it in", remedy)
        return None
    address = ledger.address if isinstance(ledger, Ledger) else ledger
    data = name if name is not None else DEFAULT_DATA
    if isinstance(ledger, Ledger) and name is None:
        data = ledger.data
    analyst = ledger.analyst if isinstance(ledger, Ledger) else None
    column = None if unit is None else unit.column
    account = Ledger.of_data(
        address, data, budget=budget, neighbors=neighbors, unit=column, files=files
    )
    return account if analyst is None else account.account(analyst=analyst)


def _keeping(memory: int | None, folder: str | Path | None) -> Keeping:
    """Return where a copy of the rows is kept."""
    require(
        folder is None or _is_folder(folder),
        "folder",
        folder,
        expected="a folder that exists",
        remedy="create it first, where nobody else can read",
    )
    return Keeping(
        memory=DEFAULT_MEMORY if memory is None else as_count(memory, "memory"),
        folder=None if folder is None else str(folder),
    )


def _unit(stated: Schema, unit: str | None, max_rows: int | None, units: int | None) -> Unit | None:
    """Return the protected unit, or None if each row is; arguments win over the schema."""
    column = unit if unit is not None else stated.unit
    limit = max_rows if max_rows is not None else stated.max_rows
    number = units if units is not None else stated.units
    if column is None:
        require(
            limit is None and number is None,
            "max_rows" if limit is not None else "units",
            limit if limit is not None else number,
            expected="nothing, because each row is protected on its own",
            remedy="name the column of the unit: unit='customer_id'",
        )
        return None
    if limit is None:
        raise ParameterError(
            "max_rows",
            None,
            expected="the largest number of rows of one unit that count",
            remedy="pass max_rows=3, for example: noise grows with it, and further rows are left "
            "out",
        )
    return Unit(
        column=column,
        max_rows=as_count(limit, "max_rows", minimum=1),
        number=None if number is None else as_count(number, "units", minimum=1),
    )
