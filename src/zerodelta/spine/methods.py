"""What a task can be solved with, and which method has the least predicted error.

Every task has a pure function of public numbers that returns its methods, best first; it serves
``method="auto"``, the advisor and the error forecast of a release.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, final

from zerodelta.errors import ParameterError, did_you_mean, is_name
from zerodelta.value import value


@value
class Method:
    """One method, and what it is predicted to cost in accuracy.

    `name` is what ``method=`` accepts; `error` is in the task's unit, ``math.inf`` where the method
    does not apply; `spends` says what is spent on what; `why` is one line for or against it here.
    """

    name: str
    error: float
    spends: str
    why: str


@final
class LazyMethods(Sequence[Method]):
    """Methods that are forecast when somebody looks at them: a costly forecast can wait.

    >>> lazy = LazyMethods(lambda: (Method(name="a", error=1.0, spends="ε", why=""),))
    >>> [method.name for method in lazy]
    ['a']
    """

    __slots__ = ("_found", "_rank")

    def __init__(self, rank: Callable[[], tuple[Method, ...]]) -> None:
        self._rank = rank
        self._found: tuple[Method, ...] | None = None

    def _all(self) -> tuple[Method, ...]:
        if self._found is None:
            self._found = self._rank()
        return self._found

    def __getitem__(self, place: Any) -> Any:
        return self._all()[place]

    def __len__(self) -> int:
        return len(self._all())


def ranked(*methods: Method) -> tuple[Method, ...]:
    """Return the methods, least predicted error first; equal ones in the order given.

    >>> a = Method(name="a", error=2.0, spends="ε", why="")
    >>> b = Method(name="b", error=1.0, spends="ε", why="")
    >>> [method.name for method in ranked(a, b)]
    ['b', 'a']
    """
    return tuple(sorted(methods, key=lambda method: method.error))


def choose(methods: Sequence[Method], method: str) -> Method:
    """Return the best method for "auto", else the named one; a name that is none is refused."""
    named = {known.name: known for known in methods}
    if is_name(method, ["auto"]):
        return min(methods, key=lambda known: known.error)
    if not isinstance(method, str) or method not in named:
        raise ParameterError(
            "method",
            method,
            expected=f'"auto" or one of {sorted(named)}',
            remedy=did_you_mean(method, ["auto", *named], "pass one of these names"),
        )
    return named[method]
