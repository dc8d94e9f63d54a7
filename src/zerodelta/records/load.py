"""`zd.load`: a saved release, or a fitted estimator, from its file; nothing is ever unpickled."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from zerodelta.data.dates import Date
from zerodelta.data.kinds import Boolean, Category, Number, Text
from zerodelta.errors import RecordError, require_extra
from zerodelta.exact.noise_law import NoiseLaw
from zerodelta.privacy.release import Diagnostics, Release
from zerodelta.privacy.release_file import Saved, content_of, read_file
from zerodelta.privacy.signatures import as_public, check_signed
from zerodelta.privacy.step import canonical
from zerodelta.privacy.written_values import read_value
from zerodelta.regression.class_means import ClassModel
from zerodelta.regression.column_bounds import ColumnBounds
from zerodelta.regression.encoded_columns import Encoding
from zerodelta.regression.features import LinearModel
from zerodelta.regression.random_forest import Forest, Splits
from zerodelta.regression.row_limits import RowLimits
from zerodelta.spine.run import restored
from zerodelta.tables.found_keys import FoundKeys
from zerodelta.tables.group_table import Table
from zerodelta.tasks.pca import PrincipalComponents
from zerodelta.training.tanh_network import TanhNetwork
from zerodelta.training.trees import DecisionTree, Split

__all__ = ["CLASSES", "load"]

CLASSES: Mapping[str, Callable[..., Any]] = {
    each.__name__: each
    for each in (
        *(Boolean, Category, Date, Number, Text),
        *(ClassModel, ColumnBounds, Encoding, Forest, LinearModel, RowLimits, Splits, TanhNetwork),
        *(DecisionTree, Split, FoundKeys, PrincipalComponents, Table),
        *(Diagnostics, NoiseLaw),
    )
}
"""What a released value may be made of, beside numbers, texts and arrays."""


def load(path: str | os.PathLike[str], *, signed_by: str | os.PathLike[str] | None = None) -> Any:
    """Read a release that `release.save` wrote, or the fitted estimator that `save` wrote.

    Use it instead of asking again: it costs no ε. The certificate is verified, and that value,
    record and certificate belong together; a file that was changed raises `RecordError`.

    Parameters
    ----------
    path : path
        The file.
    signed_by : str or path, optional
        A public key, or its file: refuse what this key has not signed.

    Returns
    -------
    Release or estimator
        As it was saved; a data frame comes back as a light table, the plan as its text.

    Examples
    --------
    >>> import tempfile, numpy as np, zerodelta as zd
    >>> path = tempfile.mkdtemp() + "/age.json"
    >>> zd.median(np.arange(100_001) / 1000, bounds=(0, 100), epsilon=1).save(path)
    >>> again = zd.load(path)
    >>> round(again.value), again.record.task
    (50, 'median')

    """
    saved = read_file(path)
    if signed_by is not None:
        check_signed(saved.digest, saved.signatures, as_public(signed_by))
    release = restored(saved.fields(CLASSES))
    estimator = saved.data.get("estimator")
    if not _is_written_so(release, saved):
        raise RecordError(
            "this is not how a release is written: something was added, or written differently; "
            "take the file from where it was saved."
        )
    return release if estimator is None else _estimator(estimator, release)


def _is_written_so(release: Release, saved: Saved) -> bool:
    """Tell whether the release says the same when it is written again: all of it was read."""
    whole = {n: part for n, part in saved.data.items() if n not in ("digest", "signatures")}
    try:
        again = content_of(release, saved.data.get("estimator"))
    except Exception:  # odd values in a file
        return False
    return canonical(again) == canonical(whole)


def _estimator(data: Any, release: Release) -> Any:
    require_extra("sklearn", "sklearn")
    from zerodelta import sklearn
    from zerodelta.sklearn.mlp_classifier import ShownRows
    from zerodelta.sklearn.saved_estimators import restored_estimator

    known = {name: getattr(sklearn, name) for name in sklearn.__all__}
    parts = {**CLASSES, "ShownRows": ShownRows}
    return restored_estimator(data, release, known, lambda part: read_value(part, parts))
