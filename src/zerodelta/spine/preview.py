"""A dry run: what a release would cost and promise, found without a debit, a ticket or a row.

The call is made as it is meant, and stopped where its certificate has been issued. Nothing but
what is public has been looked at by then.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from fractions import Fraction
from typing import Any, final

from zerodelta.errors import ParameterError
from zerodelta.privacy.certificate import Certificate
from zerodelta.privacy.claim import Claim
from zerodelta.spine.methods import Method
from zerodelta.spine.release_plan import ReleasePlan
from zerodelta.value import value

_WANTED: ContextVar[bool] = ContextVar("preview", default=False)

_LATER = "depends on the value that is released"


@value
class Preview:
    """What is known of a release before it is run; all of it is public."""

    certificate: Certificate
    price: Fraction | None
    """The pure ε that it costs; None for a claim that is not pure."""
    error: float | str
    """The forecast of its error."""
    complete_error: float | None
    """The forecast if no cell is missing (missing=None), where cells may be."""
    seconds: float | None
    methods: tuple[Method, ...]
    """What was weighed, best first."""
    details: str
    """What was decided, such as the shares of ε in a table."""

    @property
    def claim(self) -> Claim:
        """What would be claimed; with `price` it is what a ledger can price."""
        return self.certificate.claim


@final
class _Stopped(BaseException):
    """Leaves a call that is only previewed; no handler of errors is to catch it."""

    def __init__(self, found: Preview) -> None:
        super().__init__()
        self.found = found


def preview(call: Callable[[], Any]) -> Preview:
    """Return what one release would be, by making the call up to its debit.

    >>> import numpy as np, zerodelta as zd
    >>> found = preview(lambda: zd.mean(np.zeros(1000), bounds=(0, 1), epsilon="1/2"))
    >>> found.price, found.error
    (Fraction(1, 2), 0.002)
    """
    token = _WANTED.set(True)
    try:
        call()
    except _Stopped as stopped:
        return stopped.found
    finally:
        _WANTED.reset(token)
    raise ParameterError("call", expected="one that makes a release", remedy="pass zd.mean, say")


def stop_if_previewed(plan: ReleasePlan[Any], certificate: Certificate) -> None:
    """Leave the call here if it is only previewed: called before anything is paid."""
    if not _WANTED.get():
        return
    raise _Stopped(
        Preview(
            certificate=certificate,
            price=plan.price,
            error=_LATER if callable(plan.error) else plan.error,
            complete_error=plan.complete_error,
            seconds=plan.seconds,
            methods=tuple(plan.methods),
            details="" if plan.details is None else str(plan.details),
        )
    )
