"""The questions of a privacy officer, each with a short answer and where to read more."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from zerodelta.errors import CertificateError
from zerodelta.privacy.assumptions import to_ask
from zerodelta.privacy.certificate import Certificate
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.neighbors import Neighbors
from zerodelta.privacy.readable import LARGE, equals, large
from zerodelta.privacy.release import Release
from zerodelta.privacy.totals import Total, by_data, total_of
from zerodelta.report.odds import after_upper, percent_text
from zerodelta.report.published import plain_text
from zerodelta.value import value

HALF = Fraction(1, 2)


def epsilon_of(certificate: Certificate) -> Fraction | None:
    """Return the pure ε of one release; None if its claim is not pure."""
    claim = certificate.claim
    return claim.exact_epsilon if type(claim) is PureDP else None


def protected_words(certificate: Certificate) -> str:
    """Say whom a release protects."""
    if certificate.unit is None:
        return plain_text(certificate.row)
    return f"all rows of one {plain_text(certificate.unit)} ({plain_text(certificate.row)})"


def totals(releases: Sequence[Release]) -> dict[str, Total | str]:
    """Return by data set what its releases cost together, or why they do not add up."""
    known = [(each.record, each.certificate) for each in releases if each.record is not None]
    found: dict[str, Total | str] = {}
    for name, parts in by_data(known).items():
        if name is None:
            if len(parts) > 1 or len(releases) > 1:
                found["(data without a name)"] = "releases that name no data set are not added up"
            continue
        try:
            found[plain_text(name)] = total_of(parts)
        except CertificateError as error:
            found[plain_text(name)] = str(error)
    return found


def answers(
    releases: Sequence[Release], accounts: Sequence[Any] = ()
) -> list[tuple[str, str, str]]:
    """Return question, answer in plain text, and the section that tells more.

    `accounts`: the ledgers of the data, which know what else was released of them.
    """
    certificates = [each.certificate for each in releases]
    records = [each.record for each in releases if each.record is not None]
    return [
        (
            "Who is protected?",
            _several(_sentence(protected_words(each)) for each in certificates),
            "who",
        ),
        (
            "Against what?",
            "Anyone who sees what was published, whatever else they know or will ever learn.",
            "who",
        ),
        (
            "How sure is that?",
            f"{_several(_sure(each) for each in certificates)}. Anyone can check that. "
            f"{_vouched(releases)}",
            "steps",
        ),
        ("What is assumed?", _assumed(certificates), "assumed"),
        ("What is the total ε?", _total(releases, accounts), "odds"),
        ("What can an attacker learn?", _learned(releases), "odds"),
        (
            "Which data?",
            _several(plain_text(name) for each in records for name in each.names if name)
            or "The record names no data set.",
            "public",
        ),
        ("When?", _when([plain_text(each.time) for each in records]), "verify"),
        (
            "By which version?",
            _several(f"zerodelta {plain_text(each.version)}" for each in records)
            or "Not recorded.",
            "verify",
        ),
    ]


def _when(times: Sequence[str]) -> str:
    if not times:
        return "Not recorded."
    first, last = min(times), max(times)
    return first if first == last else f"{first} to {last}"


def _several(texts: object) -> str:
    distinct = list(dict.fromkeys(texts))  # type: ignore[call-overload]
    more = f"; and {len(distinct) - 3} more" if len(distinct) > 3 else ""
    return "; ".join(distinct[:3]) + more


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _sure(certificate: Certificate) -> str:
    return _sentence(certificate.summary.rpartition(": ")[2])


def _vouched(releases: Sequence[Release]) -> str:
    """Say who vouches that the steps were run: a proof is about steps, not about what was done."""
    unsigned = [number for number, each in enumerate(releases, 1) if not each.signatures]
    if not unsigned:
        return "That these steps were run is the word of whoever signed, if the signature is right."
    which = "" if len(unsigned) == len(releases) else f" of {', '.join(map(str, unsigned))}"
    return f"Nobody vouches that the steps{which} were run: there is no signature."


def _assumed(certificates: Sequence[Certificate]) -> str:
    """Return what certificates assume, and what is to be asked even where they assume nothing."""
    asked = dict.fromkeys(s for each in certificates for s in to_ask(unit=each.unit, counted=True))
    told = "; ".join(map(plain_text, asked))
    sentences = list(dict.fromkeys(s for each in certificates for s in each.assumed))
    if not sentences:
        return f"What nobody can check, and you have to ask: {told}."
    first = plain_text(sentences[0])
    rest = f", and {len(sentences) - 1} more" if len(sentences) > 1 else ""
    return f"That {first}{rest}. And what nobody can check, and you have to ask: {told}."


def _total(releases: Sequence[Release], accounts: Sequence[Any]) -> str:
    page = _total_of_page(releases)
    if accounts:
        told = f"{' '.join(map(spent_words, accounts))} On this page: {page}."
        which = ", ".join(map(str, uncounted(releases)))
        return f"{told} No ledger counted {which}." if which else told
    if not uncounted(releases):
        return f"{page}, on this page. The total is in the ledger, which was not read for it."
    return f"{page}, on this page. No ledger counted it: nobody here knows what else was released."


def uncounted(releases: Sequence[Release]) -> list[int]:
    """Return the numbers of the releases that no ledger counted, from 1."""
    return [
        number
        for number, each in enumerate(releases, 1)
        if each.record is None or not each.record.entries
    ]


def spent_words(account: Any) -> str:
    """Return the ε of all that a ledger counted of its data, and its odds."""
    added = account.neighbors is Neighbors.ADD_REMOVE
    epsilon = account.spent * (2 if added else 1)
    what = "one row" if account.unit is None else f"one {plain_text(account.unit)}"
    risen = percent_text(after_upper(HALF, epsilon), up=True)
    twice = f", counted twice: ε {equals(epsilon)}" if added else ""
    return (
        f"ε {equals(account.spent)} of {plain_text(account.data)} in all that its ledger counted "
        f"({account.neighbors.value}{twice}): a suspicion of 50 % about {what} rises to at most "
        f"{risen}.{f' Beware: ask why it has to be more than {LARGE}.' if large(epsilon) else ''}"
    )


def _warned(epsilon: Fraction) -> str:
    told = large(epsilon)
    return f" Beware: {told}." if told else ""


def _total_of_page(releases: Sequence[Release]) -> str:
    found = totals(releases)
    told = [
        f"ε {equals(each.epsilon)} of {name}" if isinstance(each, Total) else f"{name}: {each}"
        for name, each in found.items()
    ]
    if not told or len(releases) == 1:
        epsilon = epsilon_of(releases[0].certificate)
        added = releases[0].certificate.claim.neighbors is Neighbors.ADD_REMOVE
        relation = " (add-remove)" if added else ""
        summary = releases[0].certificate.summary
        return summary if epsilon is None else f"ε {equals(epsilon)}{relation}, δ = 0"
    return "; ".join(told) + "; δ = 0"


def _learned(releases: Sequence[Release]) -> str:
    if any(epsilon_of(each.certificate) is None for each in releases):
        return "See the claim: it is not one of pure differential privacy."
    return " ".join(
        f"Of {each.what}: a suspicion of 50 % rises to at most "
        f"{percent_text(after_upper(HALF, each.epsilon), up=True)} (at ε {equals(each.epsilon)}"
        f"{': add-remove counts twice' if each.twice else ''}).{_warned(each.epsilon)}"
        for each in learned(releases)
    )


@value
class Learned:
    """What can be learned of one row, or of one unit, by those releases that protect it."""

    what: str
    epsilon: Fraction
    """By which any two values of it are apart: that of an add-remove claim counts twice."""
    there: Fraction | None
    """By which it is apart from not being there, where all claims are for add-remove."""
    numbers: tuple[int, ...]
    """Which releases these are, from 1."""

    @property
    def twice(self) -> bool:
        """Whether the releases themselves state half of `epsilon`."""
        return self.there is not None


def learned(releases: Sequence[Release]) -> list[Learned]:
    """Return it for a row and for each unit: of whoever is in all of their data."""
    kinds: dict[str | None, list[int]] = {}
    for number, release in enumerate(releases, 1):
        kinds.setdefault(release.certificate.unit, []).append(number)
    found = []
    for unit, numbers in kinds.items():
        certificates = [releases[number - 1].certificate for number in numbers]
        alone = [epsilon_of(each) or Fraction(0) for each in certificates]
        added = [each.claim.neighbors is Neighbors.ADD_REMOVE for each in certificates]
        found.append(
            Learned(
                what="one row" if unit is None else f"the rows of one {plain_text(unit)}",
                epsilon=sum((e * (1 + a) for e, a in zip(alone, added, strict=True)), Fraction(0)),
                there=sum(alone, Fraction(0)) if all(added) else None,
                numbers=tuple(numbers),
            )
        )
    return found


def neighbors_words(certificate: Certificate) -> str:
    """Say which data sets are neighbors."""
    what = "row" if certificate.unit is None else f"{plain_text(certificate.unit)}'s rows"
    if certificate.claim.neighbors is Neighbors.ADD_REMOVE:
        return (
            f"Two data sets are neighbors if one has one {what} more than the other (add-remove). "
            f"For replacing one {what} by another, ε counts twice."
        )
    return (
        f"Two data sets are neighbors if they differ in one {what}, replaced by anything else "
        "(replace-one). The number of rows is the same in both, and public where it is listed."
        if certificate.unit is None
        else f"Two data sets are neighbors if all of one {what} are replaced by others (replace)."
    )
