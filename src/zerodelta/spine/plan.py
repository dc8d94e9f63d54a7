"""Define public facts about rows, questions, methods and plans: all that precedes the first row."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, Generic, Protocol, TypeVar

from zerodelta.data.rows import MOST_COLLECTED
from zerodelta.data.source import Protection, Source, protection_of
from zerodelta.errors import (
    GuaranteeError,
    ParameterError,
    did_you_mean,
    is_name,
    printable,
    require,
)
from zerodelta.exact.bits import BitSource, is_private
from zerodelta.exact.noise_tails import NoiseLaw
from zerodelta.exact.rational import Rational
from zerodelta.privacy.certificate import BARE_ROWS, REPLAYED, Certificate, check_work
from zerodelta.privacy.claims import Claim, PureDP
from zerodelta.privacy.parameters import Neighbors
from zerodelta.privacy.statistics import Measurement
from zerodelta.privacy.steps import Part, Status, Step, weakest
from zerodelta.privacy.theorems.subsampling import ClippedUnits, Units, UnitTheorem
from zerodelta.privacy.verify import check_parts
from zerodelta.value import value

# -- Public facts about rows, and questions, which plan with them ---------------------------------

MAX_BYTES = 2 << 30
"""The memory for rows that a method needs together, unless the data set says less."""


@value
class Facts:
    """The facts about rows that a plan may use: their number, if it is public, and the columns.

    `rows` is None where the number is private (under add-remove or with units). A public guess,
    `expected_rows`, then takes its place in forecasts, defaults and lattices. `may_miss` says that
    missing cells are skipped, `drops_rows` that a filter drops rows: then the number of values that
    are used is private too.

    >>> Facts(rows=None, columns=("income",), expected_rows=1000).planned_rows
    1000
    """

    rows: int | None
    columns: tuple[str, ...] = ("0",)
    expected_rows: int | None = None
    may_miss: bool = False
    drops_rows: bool = False
    neighbors: Neighbors = Neighbors.REPLACE
    memory: int | None = None
    """The largest number of bytes of rows held at once, if that is limited."""
    remote: bool = False
    """Whether rows are on a cluster, which adds them up, and stay there if possible."""

    @staticmethod
    def of(source: Source) -> Facts:
        """Return the public facts about a source."""
        rows = source.rows
        require(
            rows or not source.row_count_is_public,
            "rows",
            expected="at least one row",
            remedy="pass some rows",
        )
        return Facts(
            rows=rows if source.row_count_is_public else None,
            columns=source.columns,
            # where units were counted there may be none
            expected_rows=None if source.row_count_is_public else max(1, rows),
            may_miss=source.may_miss,
            drops_rows=source.drops_rows,
            neighbors=protection_of(source).neighbors,
            memory=source.keeping.memory,
            remote=source.remote,
        )

    @property
    def width(self) -> int:
        """The number of columns."""
        return len(self.columns)

    @property
    def counted(self) -> tuple[str, ...]:
        """The public sentence of a certificate about the number of rows; empty if it is private."""
        private = self.rows is None or self.may_miss or self.drops_rows
        return () if private else ("the number of rows",)

    def as_number(self, sentence: str) -> str:
        """Return a sentence about a number of rows with the number itself appended.

        >>> Facts(rows=400).as_number("the number of rows")
        'the number of rows, 400'
        """
        of_rows = sentence in ("the number of rows", "the number of all rows")
        of_expected = sentence == "how many rows are expected"
        number = self.rows if of_rows else self.expected_rows if of_expected else None
        return sentence if number is None else f"{sentence}, {number}"

    @property
    def complete(self) -> Facts | None:
        """These facts with no cell missing; None where none is, or where n would stay private."""
        if not self.may_miss or self.drops_rows or self.rows is None:
            return None
        return replace(self, may_miss=False)

    def only_replaced(self) -> None:
        """Refuse add-remove neighbors, for mechanisms whose theorem is about replaced rows."""
        require(
            self.neighbors is Neighbors.REPLACE,
            "neighbors",
            self.neighbors.value,
            expected="replace: this mechanism has no proof for rows that are added or removed",
            remedy='open the data with neighbors="replace"',
        )

    def only_one_column(self) -> None:
        """Refuse rows of several columns, for questions about one."""
        require(
            self.width == 1,
            "columns of rows",
            self.width,
            expected="one column",
            remedy="pass the one column that the question is about",
        )

    def may_hold(self, size: int, *, limit: int = MAX_BYTES) -> bool:
        """Tell by public numbers whether `size` bytes of every row may be held at once.

        >>> Facts(rows=1000, memory=8000).may_hold(8), Facts(rows=1001, memory=8000).may_hold(8)
        (True, False)
        """
        if self.remote and self.planned_rows * self.width > MOST_COLLECTED:
            return False
        allowed = limit if self.memory is None else min(limit, self.memory)
        return self.planned_rows * size <= allowed

    def rows_in_memory(self, size: int) -> None:
        """Refuse by public numbers a method that needs `size` bytes of every row at once."""
        require(
            self.may_hold(size),
            "rows",
            self.planned_rows,
            expected=f"rows that fit into memory together, {size} bytes each",
            remedy="pass zd.open(…, memory=…) if there is more, or use a method based on sums",
        )

    def too_large(self, width: int, method: str, *, in_memory: str, other: str) -> bool:
        """Tell whether rows of `width` numbers exceed the memory that may hold them.

        Then the method `in_memory`, which holds all rows, is refused if `method` names it.
        """
        large = not self.may_hold(8 * width)
        require(
            not (large and method == in_memory),
            "method",
            method,
            expected="a method that reads rows one after another: all of them together need "
            f"{self.planned_rows} · {width} numbers in memory",
            remedy=f'pass method="auto" or "{other}"',
        )
        return large

    @property
    def public_rows(self) -> int:
        """The number of rows, for mechanisms that have no theorem where it is private."""
        if self.rows is None:
            raise ParameterError(
                "rows",
                expected="a public number of rows: this mechanism divides by it or ranks with it",
                remedy="use all rows, without expected_rows or a unit, under replace-one",
            )
        return self.rows

    @property
    def all_rows(self) -> int:
        """The number of rows, for mechanisms that rank all of them."""
        require(
            not self.may_miss,
            "rows",
            expected="every row to be present and counted: no skipped cells, no filter, no units, "
            "no add-remove",
            remedy="pass missing=None if no cell is missing, or a number, or declare it for the "
            "column",
        )
        return self.public_rows

    @property
    def planned_rows(self) -> int:
        """The public number of rows, or `expected_rows` where it is private; refused without."""
        planned = self.expected_rows if self.rows is None else self.rows
        if planned is None:
            raise ParameterError(
                "expected_rows",
                None,
                expected="a public guess of the number of rows, which is private here",
                remedy="pass expected_rows=, known without the rows",
            )
        return planned


class Question(Protocol):
    """A frozen dataclass of public inputs (`MeanQuestion`, `QuantileQuestion`, …).

    `zd.advise` looks at the plan's `methods`; a verb runs the plan.
    """

    def plan(self, facts: Facts, epsilon: Rational) -> Any:
        """Return the plan for rows with these public facts; nothing is read.

        It is a `ReleasePlan`, or a `StudyProgram` if the method asks many internal queries.
        """
        ...  # pragma: no cover


# -- The methods of a task, and the one of least predicted error ----------------------------------
# Every task has a pure function of public numbers that returns its methods, best first; it serves
# ``method="auto"``, the advisor and the error forecast of a release.


@value
class Method:
    """One method of a task, with its predicted error.

    `name` is accepted by ``method=``; `error` is in the task's unit, ``math.inf`` where the method
    does not apply; `spends` lists the shares of ε; `why` is one line for or against the method.
    """

    name: str
    error: float
    spends: str
    why: str


def ranked(*methods: Method) -> tuple[Method, ...]:
    """Return the methods by predicted error, smallest first; equal ones keep their order.

    >>> a = Method(name="a", error=2.0, spends="ε", why="")
    >>> b = Method(name="b", error=1.0, spends="ε", why="")
    >>> [method.name for method in ranked(a, b)]
    ['b', 'a']
    """
    return tuple(sorted(methods, key=lambda method: method.error))


def choose(
    methods: Sequence[Method], method: str, *, elsewhere: Mapping[str, str] | None = None
) -> Method:
    """Return the best method for "auto", else the named one; an unknown name is refused.

    `elsewhere` maps names of methods that other functions offer to these functions.
    """
    named = {known.name: known for known in methods}
    if is_name(method, ["auto"]):
        return min(methods, key=lambda known: known.error)
    if not isinstance(method, str) or method not in named:
        function = (elsewhere or {}).get(method) if isinstance(method, str) else None
        raise ParameterError(
            "method",
            method,
            expected=f'"auto" or one of {sorted(named)}',
            remedy=did_you_mean(method, ["auto", *named], "pass one of these names")
            if function is None
            else f"pass one of these names, or call {function}",
        )
    return named[method]


R = TypeVar("R")

_MAX_CHECKED = 4096
_CHECKED: dict[str, None] = {}
"""Digests of certificates whose proof was checked in this process, oldest first."""


@value
class Measured:
    """An answer with the noisy integers from which it was computed, which are released as well."""

    value: Any
    sums: tuple[Measurement, ...]


@value
class ReleasePlan(Generic[R]):
    """The claim of a release, the steps that prove it, and the mechanism that answers.

    A plan depends on the question and on public facts only. Only the runner (`spine/run.py`) calls
    `answer`, with the opened rows and fresh bits.
    """

    claim: Claim
    steps: tuple[Step, ...]
    answer: Callable[[R, BitSource], Any]
    """Compute the value, or `Measured`, from rows and bits."""
    error: float | str | Callable[[Any], float | str]
    """The forecast: a number, a sentence, or a function of the released value."""
    methods: Sequence[Method] = ()
    """The methods that were compared, best first."""
    public: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    row: str = "one row of the data"
    parts: tuple[Part, ...] = ()
    """Instead of `steps`: several pure proofs that add up."""
    unit: str | None = None
    """The protected unit; None for one row."""
    bare_rows: bool = True
    """Whether rows came as an array, a list or a frame that the caller may have prepared."""
    noise: NoiseLaw | None = None
    """The law of the noise on the value, where it is public and simple."""
    seconds: float | None = None
    """Roughly how long a run takes on one ordinary core, where that may be long."""
    if_complete: Callable[[], ReleasePlan[R]] | None = None
    """The plan for missing=None, where cells may be missing and are skipped."""
    details: object | None = None
    """Decisions for people to print: the `plan` of the release."""

    @property
    def price(self) -> Fraction | None:
        """The pure ε that a run costs; None for a claim that is not pure."""
        return self.claim.exact_epsilon if type(self.claim) is PureDP else None

    @property
    def complete_error(self) -> float | None:
        """The forecast for missing=None (no cell is missing), for comparison with `error`.

        None where no cell is skipped, or where the method exists for missing cells only.
        """
        if self.if_complete is None:
            return None
        try:
            error = self.if_complete().error
        except ParameterError:
            return None
        return error if isinstance(error, float) else None

    def protecting(
        self, protection: Protection, units: type[UnitTheorem] = Units
    ) -> ReleasePlan[R]:
        """Return the plan for a unit of several rows, from this plan for one of its rows.

        A plan without a proof is run by a study, which protects units by itself. `units` is the
        theorem that gives the ε of all rows of a unit from that of one row.
        """
        if protection.unit is None or not (self.steps or self.parts):
            return self
        claim, theorem = self.claim, units(max_rows=protection.max_rows)
        if type(claim) is not PureDP:
            raise ParameterError(
                "unit",
                protection.unit,
                expected="a pure release: the ε of a unit is a multiple of that of a row",
                remedy="choose a pure method, or open the data without a unit",
            )
        status = Status.ASSERTED if theorem.asserted else Status.PROVEN
        last = theorem.step(protection.neighbors, status=status)
        return replace(
            self,
            claim=PureDP(claim.exact_epsilon * theorem.times, neighbors=claim.neighbors),
            # a plan without steps is run by a study, which states its own
            steps=(*self.steps, last) if self.steps else (),
            parts=tuple(_times(part, theorem.times, last) for part in self.parts),
            unit=protection.unit,
        )

    def joined_with(self, other: ReleasePlan[Any]) -> ReleasePlan[R]:
        """Return the plan whose certificate covers the other plan's answer too."""
        epsilon, other_epsilon = self.price, other.price
        if epsilon is None or other_epsilon is None:
            raise ParameterError(
                "diagnostics",
                expected="a pure release: the parts of its certificate add up",
                remedy="choose a pure method, or leave diagnostics out",
            )
        return replace(
            self,
            claim=PureDP(epsilon + other_epsilon, neighbors=self.claim.neighbors),
            parts=(*self._parts(epsilon), *other._parts(other_epsilon)),
            public=tuple(dict.fromkeys((*self.public, *other.public))),
            assumed=tuple(dict.fromkeys((*self.assumed, *other.assumed))),
        )

    def _parts(self, epsilon: Fraction) -> tuple[Part, ...]:
        return self.parts or (Part(steps=self.steps, epsilon=epsilon),)

    def certificate(self, bits: BitSource, protection: Protection | None = None) -> Certificate:
        """Issue the certificate of a release from rows with this protection."""
        data = Protection() if protection is None else protection
        matches = (self.unit, self.claim.neighbors) == (data.unit, data.neighbors)
        if not matches:  # an internal mistake, detected before a row is read
            raise GuaranteeError(
                f"a plan for {_relation(self.unit, self.claim.neighbors)} cannot be run on data "
                f"opened for {_relation(data.unit, data.neighbors)}."
            )
        steps, parts, assumed = self.steps, self.parts, self.assumed
        if data.premise is not None:  # rows come from code of others: each step is asserted
            steps = _asserted(steps)
            parts = tuple(replace(part, steps=_asserted(part.steps)) for part in parts)
            assumed = (*assumed, *([] if data.premise in assumed else [data.premise]))
        return issue(
            claim=self.claim,
            steps=steps if not self.parts else None,
            parts=parts,
            bits=bits,
            unit=self.unit,
            row=data.words or self.row,
            public=self.public,
            assumed=assumed,
            bare_rows=self.bare_rows and data.bare,
        )


def _relation(unit: str | None, neighbors: Neighbors) -> str:
    """Name the protected unit and the relation, for a message."""
    return f"{'rows' if unit is None else unit!r} under {neighbors.value}"


def _times(part: Part, times: int, last: Step) -> Part:
    """Return the part for a unit, whose ε is `times` that of a row; `last` is the units step."""
    epsilon = None if part.epsilon is None else part.epsilon * times
    return Part(steps=(*part.steps, last), epsilon=epsilon)


def _asserted(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """Return the steps of a proof, at most asserted: code of others reads the rows."""
    return tuple(replace(s, status=weakest([s.status, Status.ASSERTED])) for s in steps)


def units_step(unit: str | None, max_rows: int, *, weight: int | None = None) -> tuple[Step, ...]:
    """Return the step about the rows of a unit, to stand before a channel; none without a unit.

    With `weight` the sum over a unit's rows is clipped to `weight` times the bound of one row.
    """
    if unit is None:
        return ()
    if weight is not None:
        return (ClippedUnits(max_rows=max_rows, weight=weight).step(),)
    return (Units(max_rows=max_rows).step(),)


def row_count_sentence(rows: int, *, public: bool) -> str:
    """Return the sentence of a certificate about the number of rows, or about a public guess."""
    return f"the number of rows{'' if public else ' to plan with'}, {rows}"


def issue(
    *,
    claim: Claim,
    steps: tuple[Step, ...] | None = None,
    parts: tuple[Part, ...] = (),
    bits: BitSource,
    unit: str | None = None,
    row: str = "one row of the data",
    public: tuple[str, ...] = (),
    assumed: tuple[str, ...] = (),
    bare_rows: bool = True,
) -> Certificate:
    """Return the certificate of a release drawn from `bits`, from public numbers only.

    A chain that does not prove its claim raises `CertificateError` here, before anything is drawn.
    Pass `steps` for a proof of one part, `parts` for several pure ones that add up. `unit` is the
    protected unit, None for a row. `bare_rows` says that the release reads rows that came as an
    array, a list or a frame; False where it reads only a value, or declared data.
    """
    certificate = Certificate(
        claim=claim,
        steps=steps,
        parts=parts,
        unit=None if unit is None else _line(unit),
        row=_line(row),
        public=tuple(map(_line, public)),
        assumed=tuple(map(_line, (*assumed, *([BARE_ROWS] if bare_rows else [])))),
    )
    if certificate.digest not in _CHECKED:
        _check(certificate)
    if is_private(bits):
        return certificate
    return replace(certificate, randomness=REPLAYED, digest="")


def _check(certificate: Certificate) -> None:
    """Refuse a certificate that `verify` would refuse, and remember the digest of one that holds.

    The digest was just computed from everything that the proof depends on, so the same digest is
    the same proof. `zd.verify` has no such memory.
    """
    body = certificate.body()
    check_work(body["claim"], body["parts"])
    # unlike `verify` this does not parse the certificate's JSON; a test checks that it could
    check_parts(certificate)
    while len(_CHECKED) >= _MAX_CHECKED:
        _CHECKED.pop(next(iter(_CHECKED), ""), None)
    _CHECKED[certificate.digest] = None


def _line(text: str) -> str:
    """Return a text on one line, as certificates require; a long repr may have several."""
    return printable(" ".join(text.split()))
