"""The certificate of a release: what is claimed, and the steps from which anyone can re-derive it.

It is plain JSON and a function of the public plan only: never of data, draws or the mixing coin.
`verify` (in `privacy/verify.py`) judges it from its numbers alone.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

from zerodelta.errors import CertificateError
from zerodelta.privacy.assumptions import OUR_ASSUMPTIONS
from zerodelta.privacy.claims import Claim, claim_from_numbers
from zerodelta.privacy.composition import CLAIM_TYPES
from zerodelta.privacy.fields import check_claim_numbers
from zerodelta.privacy.json_text import read_json
from zerodelta.privacy.neighbors import Neighbors
from zerodelta.privacy.step import Status, Step, weakest
from zerodelta.privacy.wording import explain_claim, explain_step
from zerodelta.privacy.work import check_work

__all__ = ["OS_ENTROPY", "REPLAYED", "Certificate"]

SCHEMA = "zerodelta/certificate/1"
OS_ENTROPY = "operating system"
REPLAYED = "replayed test bits: NOT PRIVATE"


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class Certificate:
    """A claim, the steps that prove it, and what was taken as public."""

    claim: Claim
    steps: tuple[Step, ...]
    row: str = "one row of the data"
    public: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    randomness: str = OS_ENTROPY
    digest: str = ""

    def __post_init__(self) -> None:
        self.check_types()
        if not self.digest:
            object.__setattr__(self, "digest", self.fingerprint())

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
            return "for real arithmetic only"
        if self.status is Status.ASSERTED:
            return f"conditional on {_counted(self.assertions, 'caller assertion')}"
        if self.assumed:
            return f"proven under {_counted(len(self.assumed), 'assumption')}"
        return "proven"

    @property
    def assertions(self) -> int:
        """The number of different premises that rest on the caller's word; 0 if no step does.

        Each sentence under `assumed` that is not one of `OUR_ASSUMPTIONS` is one, and so is each
        different claim that a "given" step states. Where there is neither, each asserted step is.
        """
        asserted = [step for step in self.steps if step.status is Status.ASSERTED]
        if not asserted:
            return 0
        stated = {_canonical(dict(s.numbers)) for s in asserted if s.theorem == "given"}
        return len(set(self.assumed) - OUR_ASSUMPTIONS) + len(stated) or len(asserted)

    def check_types(self) -> None:
        """Refuse parts of any other type than those a proof is made of, subclasses too.

        A subclass could say one thing where it is judged and another where it is read.
        """
        texts = (self.row, self.randomness, self.digest)
        exact = (
            type(self) is Certificate
            and type(self.claim) in CLAIM_TYPES
            and type(self.claim.neighbors) is Neighbors
            and all(type(part) is tuple for part in (self.steps, self.public, self.assumed))
            and all(type(step) is Step and step.is_exact() for step in self.steps)
            and all(type(text) is str for text in (*texts, *self.public, *self.assumed))
        )
        if not exact:
            raise CertificateError(
                "this is no certificate: a part of it is of a type that no proof is made of, or "
                "of a subclass; make it of zd.PureDP (or another claim), Step and plain str."
            )

    def explain(self) -> str:
        """Return a short text a privacy officer can follow: each step, its theorem, its numbers."""
        lines = [self.summary, f"  protects: {self.row} ({self.claim.neighbors.value} neighbors)"]
        for number, step in enumerate(self.steps, 1):
            lines.append(f"  {number}. [{step.status.value}] {explain_step(step)}")
        for title, items in (("public", self.public), ("assumed", self.assumed)):
            if items:
                lines.append(f"  taken as {title}: {'; '.join(items)}")
        lines.append(f"  randomness: {self.randomness}")
        return "\n".join(lines)

    def fingerprint(self) -> str:
        """Return the SHA-256 of the canonical JSON of everything but the digest itself."""
        return hashlib.sha256(_canonical(self._body()).encode()).hexdigest()

    def to_json(self) -> str:
        """Return the certificate as JSON."""
        return json.dumps({**self._body(), "digest": self.digest}, indent=2, ensure_ascii=False)

    @staticmethod
    def from_json(text: str) -> Certificate:
        """Read a certificate; malformed ones raise `CertificateError`. It is not verified here.

        What was read must say the same when written again, so nothing in the text goes unread.
        """
        try:
            data = read_json(text)
            certificate = _from_data(data)
            if _canonical({**certificate._body(), "digest": certificate.digest}) != _canonical(
                data
            ):
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

    def _body(self) -> dict[str, Any]:
        claim = Step(theorem="claim", numbers=self.claim.numbers())
        return {
            "schema": SCHEMA,
            "claim": {**claim.numbers, "neighbors": self.claim.neighbors.value, "row": self.row},
            "steps": [
                {
                    "step": f"{number} of {len(self.steps)}",
                    "theorem": step.theorem,
                    "status": step.status.value,
                    "neighbors": step.neighbors.value,
                    "numbers": dict(step.numbers),
                }
                for number, step in enumerate(self.steps, 1)
            ],
            "public": list(self.public),
            "assumed": list(self.assumed),
            "randomness": self.randomness,
        }

    def __str__(self) -> str:
        return self.summary


def _canonical(data: Any) -> str:
    return json.dumps(data, sort_keys=True, separators=(",", ":"))


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
        raise CertificateError(
            f"unknown schema {data['schema']!r}: this version reads {SCHEMA}; "
            "verify it with the version of zerodelta that wrote it."
        )
    check_work(data["claim"], data["steps"])
    stated = dict(data["claim"])
    neighbors, row = Neighbors(stated.pop("neighbors")), _sentence(stated.pop("row"))
    check_claim_numbers(stated)
    return Certificate(
        claim=claim_from_numbers(stated, neighbors),
        steps=tuple(
            _step(entry, number, len(data["steps"]))
            for number, entry in enumerate(data["steps"], 1)
        ),
        row=row,
        public=_sentences(data["public"]),
        assumed=_sentences(data["assumed"]),
        randomness=str(data["randomness"]),
        digest=str(data["digest"]),
    )


def _step(entry: Mapping[str, Any], number: int, total: int) -> Step:
    if entry["step"] != f"{number} of {total}":
        raise CertificateError(
            f"a step is missing: found step {entry['step']!r} in place {number} of {total}."
        )
    return Step(
        theorem=str(entry["theorem"]),
        status=Status(entry["status"]),
        neighbors=Neighbors(entry["neighbors"]),
        numbers=dict(entry["numbers"]),
    )
