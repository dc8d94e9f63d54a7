"""The certificate of a release: what is claimed, and the steps from which anyone can re-derive it.

It is plain JSON and a function of the public plan only: never of data, draws or the mixing coin.
`verify` (in `privacy/verify.py`) judges it from its numbers alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, final

from zerodelta.errors import CertificateError, printable
from zerodelta.privacy.claims import Claim, PureDP
from zerodelta.privacy.composition import (
    CLAIM_TYPES,
    check_claim_numbers,
    claim_from_numbers,
    explain_claim,
)
from zerodelta.privacy.parameters import Neighbors
from zerodelta.privacy.readable import equals, large, other_format, read_json, write_json
from zerodelta.privacy.steps import (
    Part,
    Status,
    Step,
    at_least,
    canonical,
    digest_of,
    plain,
    read_numbers,
    weakest,
)
from zerodelta.privacy.theorems import THEOREMS, explain_step
from zerodelta.privacy.theorems.subsampling import SamplingWithoutReplacement
from zerodelta.privacy.theorems.theorem import ChannelTheorem

# -- What certificates of ours assume about rows and programs, in fixed sentences -----------------
# All other sentences under `assumed` are the premises of what a caller asserts. What every release
# rests on and no program can know is not there: whoever approves has to ask for it (`to_ask`).

BARE_ROWS = "column types and preparation were not computed from the rows"
"""What nobody can see of rows that arrive as an array or a frame."""

PROGRAM = (
    "the program reaches the data only through the study's questions",
    "nothing but the published value leaves the study",
)
"""What no library can enforce of a study's program."""

UNGUARDED = "the program did not stop, raise or fail to publish because of an internal answer"
"""What can only be enforced inside `Study.run` or a `with` block."""

OUR_ASSUMPTIONS = frozenset({BARE_ROWS, *PROGRAM, UNGUARDED})

UNCOUNTED = "no ledger counted its ε: somebody adds up all releases about the same people"
"""What is to be asked of a release that no ledger paid for."""


def to_ask(*, unit: str | None, counted: bool) -> tuple[str, ...]:
    """Return what must be true of every release, proven or not, and no program can see.

    >>> to_ask(unit="customer", counted=True)[1]
    'one person has one "customer" only'
    """
    alone = "one person is in one row only" if unit is None else f'one person has one "{unit}" only'
    return (
        "bounds, categories, hierarchies and the question were chosen without the rows",
        alone,
        *(() if counted else (UNCOUNTED,)),
    )


# -- How much work a certificate may ask of `verify`, counted before any of it is evaluated -------
# Single numbers and lists are short by their domains (`privacy/steps.py`), yet many of them
# together could still take minutes: exact sums grow with the digits of all denominators, a Rényi
# order is evaluated for every step, and some theorems search for a supremum. Certificates of ours
# stay far below every limit.

MOST_STEPS = 10_000
"""Steps, counting each entry of a composed claim's "pure" list as one."""

MOST_CURVES = 1_000
"""Different steps whose Rényi curves are added: before a channel, or for a claim with a δ or ρ."""

MOST_CHANNELS = 100
"""Parts that end in a channel."""

MOST_COSTLY = 10
"""Steps of theorems whose inequality is a search (C9) or a long sum (WOR)."""

MOST_DIGITS = 100_000
"""Decimal digits of all numbers that are added exactly."""

MOST_LISTED, MOST_LISTED_DIGITS = 20_000, 1_000_000
"""Entries of all lists, and their digits: one table of 10 000 Rényi orders and their values."""

MOST_EVALUATIONS = 150_000
"""Steps times tabulated Rényi orders; a table or a WOR step counts as `_CURVE` more steps."""

_CURVE = 10


def check_work(claim: Mapping[str, Any], parts: list[Mapping[str, Any]]) -> None:
    """Refuse the written claim and parts of a certificate if judging them could take long."""
    steps = [step for part in parts for step in part["steps"]]
    written = [claim, *(step["numbers"] for step in steps)]
    labels = [str(step["theorem"]) for step in steps]
    pure = [entry for numbers in written for entry in _list(numbers, "pure")]
    purified = [part["steps"] for part in parts if any(map(_is_channel, part["steps"][-2:]))]
    curved = purified if claim.get("kind") == "pure" else [steps]
    # each channel evaluates the curves of its own part
    curves = sum(
        len({(str(step["theorem"]), canonical(step["numbers"])) for step in some})
        for some in curved
    )
    _limit(len(steps) + len(pure), MOST_STEPS, "steps")
    _limit(len(parts), MOST_STEPS, "parts")
    _limit(curves + len(pure), MOST_CURVES, "different steps with Rényi curves")
    _limit(len(purified), MOST_CHANNELS, "parts with a channel")
    costly = sum(label in THEOREMS and THEOREMS[label].costly for label in labels)
    _limit(costly, MOST_COSTLY, "steps of theorems C9 and WOR")
    lists = {
        (place, name): _flat(value)
        for place, numbers in enumerate(written)
        for name, value in numbers.items()
        if type(value) is list and name != "pure"
    }
    _limit(sum(map(len, lists.values())), MOST_LISTED, "entries of lists")
    # a quantum is read by people and enters no inequality
    used = [number for (_, name), values in lists.items() if name != "quantum" for number in values]
    _limit(sum(map(_digits, used)), MOST_LISTED_DIGITS, "digits in lists")
    single = [number for numbers in written for number in numbers.values()]
    stated = [part.get("epsilon") for part in parts]
    _limit(sum(map(_digits, [*single, *stated, *_flat(pure)])), MOST_DIGITS, "digits")
    tables = [orders for numbers in written if (orders := _orders(numbers))]
    sampled = labels.count(SamplingWithoutReplacement.label)
    weighed = len(steps) + len(pure) + _CURVE * (len(tables) + sampled)
    _limit(sum(map(len, tables)) * weighed, MOST_EVALUATIONS, "steps times Rényi orders")


def _is_channel(step: Mapping[str, Any]) -> bool:
    theorem = THEOREMS.get(str(step["theorem"]))
    return theorem is not None and issubclass(theorem, ChannelTheorem)


def _limit(found: int, most: int, what: str) -> None:
    if found > most:
        raise CertificateError(
            f"more than {most} {what}: no release of ours has so many, and a file that does could "
            "keep the verifier busy."
        )


def _list(numbers: Mapping[str, Any], name: str) -> list[Any]:
    value = numbers.get(name)
    return value if type(value) is list else []


def _orders(numbers: Mapping[str, Any]) -> list[Any]:
    """Return the Rényi orders of a stated claim: a table's, or those inside a composed one."""
    table = _list(numbers, "rdp")
    return _list(numbers, "orders") or (table[0] if table and type(table[0]) is list else [])


def _flat(entries: list[Any]) -> list[Any]:
    """Return all numbers of a list, those of its rows too."""
    found: list[Any] = []
    for entry in entries:
        found.extend(_flat(entry) if type(entry) is list else [entry])
    return found


def _digits(value: Any) -> int:
    """Return how many decimal digits a written number has when its exponent is written out.

    Hexadecimal sizes count as none: only their logarithm is ever used.

    >>> _digits("1/300"), _digits("1e-300"), _digits(10**9), _digits("0x" + "f" * 9000)
    (5, 306, 10, 0)
    """
    if type(value) is int:
        return value.bit_length() * 3 // 10 + 1
    if type(value) is not str or value.startswith("0x"):
        return 0
    power = value.partition("e")[2].lstrip("+-")
    return len(value) + (int(power) if power.isdecimal() and len(power) <= 4 else 0)


SCHEMA = "zerodelta/certificate/2"
OS_ENTROPY = "operating system"
REPLAYED = "replayed test bits: NOT PRIVATE"


@final
@dataclass(frozen=True, init=False, slots=True)
class Certificate:
    """A claim, the parts that prove it, and what was taken as public.

    You get one with every release, read it with `explain()`, and check it with `zd.verify`.

    Parameters
    ----------
    claim : Claim
        What is claimed.
    steps : tuple of Step, optional
        The chain of steps of a proof of one part.
    parts : tuple of Part
        Several chains of steps, whose ε add up.
    unit : str, optional
        Who is protected, such as all rows of one "customer_id"; None for one row.
    row : str
        What a row is, in words.
    public, assumed : tuple of str
        What was taken as public, and what is assumed besides the steps.
    randomness : str
        Where the random bits came from.
    digest : str
        The fingerprint of all else; computed if left out.

    """

    claim: Claim
    parts: tuple[Part, ...]
    unit: str | None
    row: str
    public: tuple[str, ...]
    assumed: tuple[str, ...]
    randomness: str
    digest: str

    def __init__(
        self,
        *,
        claim: Claim,
        steps: tuple[Step, ...] | None = None,
        parts: tuple[Part, ...] = (),
        unit: str | None = None,
        row: str = "one row of the data",
        public: tuple[str, ...] = (),
        assumed: tuple[str, ...] = (),
        randomness: str = OS_ENTROPY,
        digest: str = "",
    ) -> None:
        for name, value in {
            "claim": claim,
            "parts": parts if steps is None else _parts(steps, parts),
            "unit": unit,
            "row": row,
            "public": public,
            "assumed": assumed,
            "randomness": randomness,
            "digest": digest,
        }.items():
            object.__setattr__(self, name, value)
        self.check_types()
        if not digest:
            object.__setattr__(self, "digest", self.fingerprint())

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps of all parts."""
        return tuple(step for part in self.parts for step in part.steps)

    def with_steps(self, steps: tuple[Step, ...]) -> Certificate:
        """Return the certificate with these steps in the places of its own, part by part."""
        return replace(self, parts=_parts(steps, self.parts), digest="")

    @property
    def status(self) -> Status:
        """The status of the weakest step."""
        return weakest([step.status for step in self.steps])

    @property
    def summary(self) -> str:
        """One line: what is promised, and on what it rests.

        Plainly "proven" only if nothing is assumed. Caller assertions are counted by `assertions`.
        """
        if self.randomness != OS_ENTROPY:
            return f"NOT PRIVATE (drawn from replayed test bits): {explain_claim(self.claim)}"
        return f"{explain_claim(self.claim)}: {self._rests()}"

    def _rests(self) -> str:
        if self.status is Status.IDEALIZED:
            told = self.assertions and _counted(self.assertions, "caller assertion")
            return f"for real arithmetic only{f', and conditional on {told}' if told else ''}"
        if self.status is Status.ASSERTED:
            return f"conditional on {_counted(self.assertions, 'caller assertion')}"
        if self.assumed:
            return f"proven under {_counted(len(self.assumed), 'assumption')}"
        return "proven"

    @property
    def assertions(self) -> int:
        """The number of different caller-asserted premises; 0 if no step is asserted.

        Each sentence under `assumed` that is not one of `OUR_ASSUMPTIONS` is one, and so is each
        different claim that a "given" step states. Where there is neither, each asserted step is.
        """
        asserted = [step for step in self.steps if step.status is Status.ASSERTED]
        if not asserted:
            return 0
        stated = {canonical(dict(s.numbers)) for s in asserted if s.theorem == "given"}
        return len(set(self.assumed) - OUR_ASSUMPTIONS) + len(stated) or len(asserted)

    @property
    def beware(self) -> str:
        """What to say of a large ε, counted as for replaced rows; empty if it is not."""
        if type(self.claim) is not PureDP:
            return ""
        added = self.claim.neighbors is Neighbors.ADD_REMOVE
        return large(self.claim.exact_epsilon * (2 if added else 1))

    def check_types(self) -> None:
        """Refuse parts of any other type than those a proof is made of, subclasses too.

        A subclass could say one thing where it is judged and another where it is read.
        """
        texts = (self.row, self.randomness, self.digest)
        exact = (
            type(self) is Certificate
            and type(self.claim) in CLAIM_TYPES
            and type(self.claim.neighbors) is Neighbors
            and all(type(part) is tuple for part in (self.parts, self.public, self.assumed))
            and all(type(part) is Part and part.is_exact() for part in self.parts)
            and (self.unit is None or type(self.unit) is str)
            and all(type(text) is str for text in (*texts, *self.public, *self.assumed))
        )
        if not exact:
            raise CertificateError(
                "this is no certificate: a part of it is of a type that no proof is made of, or "
                "of a subclass; make it of a claim such as zd.ApproxDP, of Step and of plain str."
            )

    def explain(self) -> str:
        """Return a short text a privacy officer can follow: each step, its theorem, its numbers."""
        protected = self.row if self.unit is None else f"{self.row}; a unit is one {self.unit}"
        lines = [self.summary, f"  protects: {protected} ({self.claim.neighbors.value} neighbors)"]
        number = 0
        for place, part in enumerate(self.parts, 1):
            if len(self.parts) > 1:
                cost = "" if part.epsilon is None else f", ε {equals(part.epsilon)}"
                lines.append(f"  part {place} of {len(self.parts)}{cost}:")
            for step in part.steps:
                number += 1
                lines.append(f"  {number}. [{step.status.value}] {explain_step(step)}")
        if self.beware:
            lines.append(f"  beware: {self.beware}")
        for title, items in (("public", self.public), ("assumed", self.assumed)):
            if items:
                lines.append(f"  taken as {title}: {'; '.join(items)}")
        lines.append(f"  to be asked: {'; '.join(to_ask(unit=self.unit, counted=True))}")
        lines.append(f"  randomness: {self.randomness}")
        return printable("\n".join(lines), lines=True)

    def fingerprint(self) -> str:
        """Return the SHA-256 of the canonical JSON of everything but the digest itself."""
        return digest_of(self.body())

    def to_json(self) -> str:
        """Return the certificate as JSON."""
        return write_json({**self.body(), "digest": self.digest})

    @staticmethod
    def from_json(text: str) -> Certificate:
        """Read a certificate; malformed ones raise `CertificateError`. It is not verified here.

        What was read must say the same when written again, so nothing in the text goes unread.
        """
        try:
            data = read_json(text)
            certificate = _from_data(data)
            if canonical({**certificate.body(), "digest": certificate.digest}) != canonical(data):
                raise CertificateError(
                    f"this is not how schema {SCHEMA} writes a certificate: something was added "
                    "or written differently."
                )
            return certificate
        except CertificateError:
            raise
        except Exception as error:  # whatever someone wrote into a file
            raise CertificateError(
                f"this is not a certificate of schema {SCHEMA}: {type(error).__name__}: {error}."
            ) from error

    def body(self) -> dict[str, Any]:
        """Return what the JSON says, without the digest."""
        claim = Step(theorem="claim", numbers=self.claim.numbers())
        return {
            "schema": SCHEMA,
            "claim": {
                **claim.numbers,
                "neighbors": self.claim.neighbors.value,
                "unit": self.unit,
                "row": self.row,
            },
            "parts": [
                {
                    "part": f"{place} of {len(self.parts)}",
                    **({} if part.epsilon is None else {"epsilon": plain(part.epsilon)}),
                    "steps": [
                        _written(step, f"{number} of {len(part.steps)}")
                        for number, step in enumerate(part.steps, 1)
                    ],
                }
                for place, part in enumerate(self.parts, 1)
            ],
            "public": list(self.public),
            "assumed": list(self.assumed),
            "randomness": self.randomness,
        }

    def __str__(self) -> str:
        return self.summary


def _parts(steps: tuple[Step, ...], parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """Return one part with these steps, or several parts with these in the places of their own."""
    if len(parts) < 2:
        return (Part(steps=steps),)
    if len(steps) != sum(len(part.steps) for part in parts):
        raise CertificateError("a certificate of several parts is made of parts: pass parts=.")
    rest = iter(steps)
    return tuple(replace(part, steps=tuple(islice(rest, len(part.steps)))) for part in parts)


def _written(step: Step, place: str) -> dict[str, Any]:
    return {
        "step": place,
        "theorem": step.theorem,
        "status": step.status.value,
        "neighbors": step.neighbors.value,
        "numbers": dict(step.numbers),
    }


def _counted(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"


def _sentences(items: Any) -> tuple[str, ...]:
    if not isinstance(items, list):
        raise CertificateError("what is public and what is assumed are lists of sentences.")
    return tuple(_sentence(item) for item in items)


def _sentence(item: Any) -> str:
    """Return a line of text; a line break could fake a step in the explanation."""
    if not isinstance(item, str) or not item.isprintable():
        raise CertificateError("a row, what is public and what is assumed are single plain lines.")
    return item


def _from_data(data: Mapping[str, Any]) -> Certificate:
    if data["schema"] != SCHEMA:
        raise CertificateError(other_format(data["schema"], SCHEMA, "certificate"))
    check_work(data["claim"], data["parts"])
    stated = dict(data["claim"])
    neighbors, row = Neighbors(stated.pop("neighbors")), _sentence(stated.pop("row"))
    unit = stated.pop("unit")
    check_claim_numbers(stated)
    return Certificate(
        claim=claim_from_numbers(stated, neighbors),
        parts=tuple(
            _part(entry, number, len(data["parts"]))
            for number, entry in enumerate(data["parts"], 1)
        ),
        unit=None if unit is None else _sentence(unit),
        row=row,
        public=_sentences(data["public"]),
        assumed=_sentences(data["assumed"]),
        randomness=str(data["randomness"]),
        digest=str(data["digest"]),
    )


def _part(entry: Mapping[str, Any], place: int, total: int) -> Part:
    _check_place("part", entry["part"], f"{place} of {total}")
    numbers = read_numbers(
        "a part", {"epsilon": entry["epsilon"]} if "epsilon" in entry else {}, _STATED, _STATED
    )
    steps = entry["steps"]
    return Part(
        steps=tuple(_step(step, number, len(steps)) for number, step in enumerate(steps, 1)),
        **numbers,
    )


_STATED = {"epsilon": at_least(0)}


def _step(entry: Mapping[str, Any], number: int, total: int) -> Step:
    _check_place("step", entry["step"], f"{number} of {total}")
    return Step(
        theorem=str(entry["theorem"]),
        status=Status(entry["status"]),
        neighbors=Neighbors(entry["neighbors"]),
        numbers=dict(entry["numbers"]),
    )


def _check_place(what: str, found: Any, place: str) -> None:
    if found != place:
        raise CertificateError(f"a {what} is missing: found {what} {found!r} in place {place}.")
