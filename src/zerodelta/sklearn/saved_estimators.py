"""Fitted estimators as JSON, beside the release that they are made of, and back."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from zerodelta.errors import RecordError
from zerodelta.privacy.release import Release
from zerodelta.privacy.release_file import save
from zerodelta.privacy.written_values import written

_OF_RELEASE = frozenset({"release_", "certificate_", "diagnostics_"})
_OF_LEDGER = frozenset({"ledger", "again"})


class SavedEstimator:
    """What estimators have in common that can be saved: all that make a release."""

    def save(
        self, path: str | os.PathLike[str], *, sign: str | os.PathLike[str] | None = None
    ) -> None:
        """Save the fitted estimator, its certificate and record to a new file for `zd.load`.

        Parameters
        ----------
        path : path
            A file that is not there yet.
        sign : path, optional
            A private key to sign it with.

        """
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self)
        release: Release = self.release_  # type: ignore[attr-defined]
        save(release, path, key=sign, estimator=_written(self))


def _written(estimator: Any) -> dict[str, Any]:
    parameters = estimator.get_params(deep=False)
    given = {name: written(v) for name, v in parameters.items() if name not in _OF_LEDGER}
    state = {
        name: written(value)
        for name, value in vars(estimator).items()
        if name not in parameters and name not in _OF_RELEASE
    }
    return {"class": type(estimator).__name__, "parameters": given, "state": state}


def restored_estimator(
    data: Any, release: Release, known: Mapping[str, type], read: Callable[[Any], Any]
) -> Any:
    """Return the fitted estimator that was saved with a release, of one of the known classes."""
    try:
        made = known[data["class"]](
            **{name: read(part) for name, part in data["parameters"].items()}
        )
        state = {name: read(part) for name, part in data["state"].items()}
        vars(made).update(
            {**state, "release_": release, "certificate_": release.certificate},
            diagnostics_=release.diagnostics,
        )
        same = _written(made) == data
    except (KeyError, TypeError, AttributeError):
        same = False
    if not same:
        raise RecordError(
            "the estimator cannot be restored: the file was changed by hand, or written by a newer "
            "zerodelta; upgrade, or load it as it was saved."
        )
    return made
