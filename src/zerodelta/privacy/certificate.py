"""Define certificates: the claim of a release, and steps from which anyone can re-derive it.

A certificate is plain JSON and a function of the public plan only: never of data, draws or the
mixing coin. `verify` (in `privacy/verify.py`) checks it from its numbers alone.
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

# -- Assumptions about rows and programs, in fixed sentences --------------------------------------
# All other sentences under `assumed` are the premises of what a caller asserts. Premises of every
# release that no program can check are not listed there: whoever approves it must ask (`to_ask`).

BARE_ROWS = "column types and preparation were not computed from the rows"
"""Assumed of rows that arrive as an array or a frame: how they were prepared cannot be seen."""

PROGRAM = (
    "the program reaches the data only through the study's questions",
    "nothing but the published value leaves the study",
)
"""Assumed of a study's program: no library can enforce it."""

UNGUARDED = "the program did not stop, raise or fail to publish because of an internal answer"
"""Assumed of a program that runs outside of `Study.run` and `with` blocks, which enforce it."""

OUR_ASSUMPTIONS = frozenset({BARE_ROWS, *PROGRAM, UNGUARDED})

UNCOUNTED = "no ledger counted its ε: somebody adds up all releases about the same people"
"""The premise to ask about where no ledger paid for the release."""


def to_ask(*, unit: str | None, counted: bool) -> tuple[str, ...]:
    """Return the premises of a release that no program can check: an officer must ask for them.

    >>> to_ask(unit="customer", counted=True)[1]
    'one person has one "customer" only'
    """
    one_person = (
        "one person is in one row only" if unit is None else f'one person has one "{unit}" only'
    )
    return (
        "bounds, categories, hierarchies and the question were chosen without the rows",
        one_person,
        *(() if counted else (UNCOUNTED,)),
    )


# -- Limits on the work of `verify`, checked before any inequality is evaluated -------------------
# The domains of `privacy/steps.py` keep single numbers and lists short, yet many of them together
# could still take minutes: exact sums grow with the digits of all denominators, a Rényi order is
# evaluated for every step, and some theorems search for a supremum. The certificates of this
# library stay far below every limit.

MAX_STEPS = 10_000
"""Steps, counting each entry of a composed claim's "pure" list as one."""

MAX_CURVES = 1_000
"""Different steps whose Rényi curves are added: before a channel, or for a claim with a δ or ρ."""

MAX_CHANNELS = 100
"""Parts that end in a channel."""

MAX_COSTLY = 10
"""Steps of theorems whose inequality is a search (C9) or a long sum (WOR)."""

MAX_DIGITS = 100_000
"""Decimal digits of all numbers that are added exactly."""

MAX_LISTED, MAX_LISTED_DIGITS = 20_000, 1_000_000
"""Entries of all lists, and their digits: one table of 10 000 Rényi orders and their values."""

MAX_EVALUATIONS = 150_000
"""Steps times tabulated Rényi orders; a table or a WOR step counts as `_CURVE_STEPS` more steps."""

_CURVE_STEPS = 10


def check_work(claim: Mapping[str, Any], parts: list[Mapping[str, Any]]) -> None:
    """Refuse a written claim and parts whose proof could take long to check."""
    steps = [step for part in parts for step in part["steps"]]
    all_numbers = [claim, *(step["numbers"] for step in steps)]
    labels = [str(step["theorem"]) for step in steps]
    pure = [entry for numbers in all_numbers for entry in _list(numbers, "pure")]
    # a channel is the last step, or the one before the step about units
    purified = [part["steps"] for part in parts if any(map(_is_channel, part["steps"][-2:]))]
    # each channel evaluates the curves of its own part; without channels all are added once
    chains = purified if claim.get("kind") == "pure" else [steps]
    curves = sum(
        len({(str(step["theorem"]), canonical(step["numbers"])) for step in chain})
        for chain in chains
    )
    _limit(len(steps) + len(pure), MAX_STEPS, "steps")
    _limit(len(parts), MAX_STEPS, "parts")
    _limit(curves + len(pure), MAX_CURVES, "different steps with Rényi curves")
    _limit(len(purified), MAX_CHANNELS, "parts with a channel")
    costly = sum(label in THEOREMS and THEOREMS[label].costly for label in labels)
    _limit(costly, MAX_COSTLY, "steps of theorems C9 and WOR")
    lists = {
        (place, name): _flat(value)
        for place, numbers in enumerate(all_numbers)
        for name, value in numbers.items()
        if type(value) is list and name != "pure"
    }
    _limit(sum(map(len, lists.values())), MAX_LISTED, "entries of lists")
    # a quantum is read by people and enters no inequality
    used = [number for (_, name), values in lists.items() if name != "quantum" for number in values]
    _limit(sum(map(_digits, used)), MAX_LISTED_DIGITS, "digits in lists")
    single = [number for numbers in all_numbers for number in numbers.values()]
    part_epsilons = [part.get("epsilon") for part in parts]
    _limit(sum(map(_digits, [*single, *part_epsilons, *_flat(pure)])), MAX_DIGITS, "digits")
    tables = [orders for numbers in all_numbers if (orders := _orders(numbers))]
    sampled = labels.count(SamplingWithoutReplacement.label)
    weighted_steps = len(steps) + len(pure) + _CURVE_STEPS * (len(tables) + sampled)
    evaluations = sum(map(len, tables)) * weighted_steps
    _limit(evaluations, MAX_EVALUATIONS, "steps times Rényi orders")


def _is_channel(step: Mapping[str, Any]) -> bool:
    theorem = THEOREMS.get(str(step["theorem"]))
    return theorem is not None and issubclass(theorem, ChannelTheorem)


def _limit(number: int, maximum: int, things: str) -> None:
    """Refuse a number of things above the maximum."""
    if number > maximum:
        raise CertificateError(
            f"more than {maximum} {things}: no release of zerodelta has that many, and a file that "
            "does could keep the verifier busy."
        )


def _list(numbers: Mapping[str, Any], name: str) -> list[Any]:
    """Return the list written under a name; empty for anything else."""
    value = numbers.get(name)
    return value if type(value) is list else []


def _orders(numbers: Mapping[str, Any]) -> list[Any]:
    """Return the Rényi orders of a stated claim: a table's, or those inside a composed one."""
    table = _list(numbers, "rdp")
    return _list(numbers, "orders") or (table[0] if table and type(table[0]) is list else [])


def _flat(entries: list[Any]) -> list[Any]:
    """Return all numbers of a list, those of nested lists too."""
    flat: list[Any] = []
    for entry in entries:
        flat.extend(_flat(entry) if type(entry) is list else [entry])
    return flat


def _digits(value: Any) -> int:
    """Return the number of decimal digits of a written number, its exponent written out.

    Hexadecimal sizes count as 0: only their logarithm is ever used.

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
    """A claim, the parts that prove it, the public inputs, and the assumptions.

    You get one with every release, read it with `explain()`, and check it with `zd.verify`.

    Parameters
    ----------
    claim : Claim
        The guarantee.
    steps : tuple of Step, optional
        The chain of steps of a proof of one part.
    parts : tuple of Part
        Several chains of steps, whose ε add up.
    unit : str, optional
        Who is protected, such as all rows of one "customer_id"; None for one row.
    row : str
        What a row is, in words.
    public, assumed : tuple of str
        The public inputs, and the assumptions besides the steps.
    randomness : str
        The source of the random bits.
    digest : str
        The SHA-256 of everything else; computed if left out.

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
        """Return the certificate with its steps replaced by these, part by part."""
        return replace(self, parts=_parts(steps, self.parts), digest="")

    @property
    def status(self) -> Status:
        """The status of the weakest step."""
        return weakest([step.status for step in self.steps])

    @property
    def summary(self) -> str:
        """One line: the claim, and whether it is proven, conditional or for real arithmetic only.

        Plainly "proven" only if nothing is assumed. Caller assertions are counted by `assertions`.
        """
        if self.randomness != OS_ENTROPY:
            return f"NOT PRIVATE (drawn from replayed test bits): {explain_claim(self.claim)}"
        return f"{explain_claim(self.claim)}: {self._conditions()}"

    def _conditions(self) -> str:
        """Say how far the claim is proven: "proven", under assumptions, or asserted."""
        conditional = f"conditional on {_counted(self.assertions, 'caller assertion')}"
        if self.status is Status.IDEALIZED:
            return "for real arithmetic only" + (f", and {conditional}" if self.assertions else "")
        if self.status is Status.ASSERTED:
            return conditional
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
        """A warning if ε, counted for replaced rows, is large; else empty."""
        if type(self.claim) is not PureDP:
            return ""
        added = self.claim.neighbors is Neighbors.ADD_REMOVE
        return large(self.claim.exact_epsilon * (2 if added else 1))

    def check_types(self) -> None:
        """Refuse fields of any other type than those a proof is made of, subclasses too.

        A subclass could answer `verify` one thing and a reader another.
        """
        texts = (self.row, self.randomness, self.digest)
        exact_types = (
            type(self) is Certificate
            and type(self.claim) in CLAIM_TYPES
            and type(self.claim.neighbors) is Neighbors
            and all(type(part) is tuple for part in (self.parts, self.public, self.assumed))
            and all(type(part) is Part and part.is_exact() for part in self.parts)
            and (self.unit is None or type(self.unit) is str)
            and all(type(text) is str for text in (*texts, *self.public, *self.assumed))
        )
        if not exact_types:
            raise CertificateError(
                "this is not a certificate: a field has a type that no proof is made of, or a "
                "subclass of one; use a claim such as ApproxDP, Step objects and plain str."
            )

    def explain(self) -> str:
        """Return a short text for a privacy officer: each step, its theorem, its numbers."""
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

        The certificate must be written exactly as the text again, so nothing in it goes unread.
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
        """Return the content of the JSON, without the digest."""
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
    """Return one part with these steps, or the parts with their steps replaced in order."""
    if len(parts) < 2:
        return (Part(steps=steps),)
    if len(steps) != sum(len(part.steps) for part in parts):
        raise CertificateError("a certificate of several parts is made of parts: pass parts=.")
    remaining = iter(steps)
    return tuple(replace(part, steps=tuple(islice(remaining, len(part.steps)))) for part in parts)


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
        raise CertificateError('"public" and "assumed" are lists of sentences.')
    return tuple(_sentence(item) for item in items)


def _sentence(item: Any) -> str:
    """Return a line of text; a line break could fake a step in the explanation."""
    if not isinstance(item, str) or not item.isprintable():
        raise CertificateError('"row" and each entry of "public" and "assumed" is one plain line.')
    return item


def _from_data(data: Mapping[str, Any]) -> Certificate:
    """Read a certificate from its JSON object; another format is refused."""
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
    """Read one part of a certificate: its stated ε and its steps, in order."""
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


def _check_place(kind: str, written: Any, place: str) -> None:
    """Refuse a step or part whose own number ("2 of 3") is not the one of its place."""
    if written != place:
        raise CertificateError(f"a {kind} is missing: {kind} {written!r} stands in place {place}.")
