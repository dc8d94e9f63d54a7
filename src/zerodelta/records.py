"""Load saved releases with `zd.load`, which never unpickles; `Release` and its parts."""

from __future__ import annotations

import os
from typing import Any

from zerodelta.errors import require_extra
from zerodelta.privacy.certificate import Certificate
from zerodelta.privacy.parameters import Neighbors
from zerodelta.privacy.release import Release, as_public, check_signed
from zerodelta.privacy.release_file import CLASSES, read_file
from zerodelta.privacy.written_values import read_value
from zerodelta.spine.run import restored

__all__ = ["Certificate", "Neighbors", "Release", "load"]


def load(path: str | os.PathLike[str], *, signed_by: str | os.PathLike[str] | None = None) -> Any:
    """Read a release that `release.save` wrote, or the fitted estimator that `save` wrote.

    Use it instead of asking the same question again: it costs no ε. The certificate is verified;
    record and certificate must state the same claim, and the value must not contradict its noisy
    sums and bounds, if it has any. A file that was changed raises `RecordError`, unless all of
    these and the digest were changed consistently: signatures and `Ledger.verify` detect that.

    Parameters
    ----------
    path : path
        The file.
    signed_by : str or path, optional
        A public key, or its file: refuse a release that this key has not signed.

    Returns
    -------
    Release or estimator
        The saved object; a data frame comes back as a light table, the plan as its text. A
        `GaussianNB` of an earlier version comes back as its release.

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
    removed = isinstance(estimator, dict) and estimator.get("class") == "GaussianNB"
    return release if estimator is None or removed else _estimator(estimator, release)


def _estimator(data: Any, release: Release) -> Any:
    """Restore a fitted estimator of `zerodelta.sklearn` from its saved release."""
    require_extra("sklearn", "sklearn")
    from zerodelta import sklearn
    from zerodelta.sklearn.base import restored_estimator
    from zerodelta.sklearn.classifiers import ShownRows

    known = {name: getattr(sklearn, name) for name in sklearn.__all__}
    parts = {**CLASSES, "ShownRows": ShownRows}
    return restored_estimator(data, release, known, lambda part: read_value(part, parts))
