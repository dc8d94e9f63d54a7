"""Re-derive a certificate's claim from its steps, and add up several releases; no sampler."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

from zerodelta.errors import CertificateError, ParameterError, RecordError
from zerodelta.exact.rational import Rational
from zerodelta.privacy.certificate import OS_ENTROPY, Certificate
from zerodelta.privacy.claims import ZCDP, ApproxDP, Claim, GaussianDP, PureDP
from zerodelta.privacy.composition import Composed, simplest, transcript_claim, zcdp_cost
from zerodelta.privacy.parameters import Neighbors, as_epsilon, as_flag, as_unit, decimal_meant
from zerodelta.privacy.readable import equals, shown
from zerodelta.privacy.release import Record
from zerodelta.privacy.steps import Part, Status, Step
from zerodelta.privacy.theorems import THEOREMS
from zerodelta.privacy.theorems.smoothing import NumericalErrorTheorem
from zerodelta.privacy.theorems.subsampling import UnitTheorem
from zerodelta.privacy.theorems.theorem import BaseTheorem, ChannelTheorem, Theorem
from zerodelta.value import value

# -- The proof of one part ------------------------------------------------------------------------
# Base steps together give a claim, and a channel makes it pure. Each theorem is evaluated by the
# method that calibrated the mechanism, from the step's numbers alone.


def theorem_of(step: Step) -> Theorem:
    """Return the theorem of a step with its numbers, checking each domain; nothing is evaluated.

    A step of an asserted theorem that is marked as proven is refused too.
    """
    theorem = THEOREMS.get(step.theorem)
    if theorem is None:
        raise CertificateError(f"unknown theorem {step.theorem[:80]!r}: no step has that label.")
    if theorem.asserted and step.status is Status.PROVEN:
        raise CertificateError(
            f"step {step.theorem!r} is caller-asserted and cannot be marked as proven."
        )
    return theorem.read(step.numbers)


def base_claim(steps: tuple[Step, ...]) -> Composed:
    """Return the claim that the base steps prove together."""
    if not steps:
        raise CertificateError("a step is missing: no base mechanism is stated; add its step.")
    return _composed([_base(theorem_of(step)) for step in steps], steps[0].neighbors)


def proves_epsilon(step: Step, claim: Composed | None, epsilon: Fraction) -> bool:
    """Tell whether the channel step, on a base with `claim`, certainly proves pure ε-DP."""
    channel = theorem_of(step)
    if not isinstance(channel, ChannelTheorem):
        raise CertificateError(f"unknown theorem {step.theorem!r}: no channel has that label.")
    return _proves(channel, claim, epsilon)


def check_proof(steps: tuple[Step, ...], claim: Claim) -> None:
    """Refuse a part whose steps, computed again, do not prove its claim."""
    if not steps:
        raise CertificateError("a step is missing: a part has no steps.")
    *earlier, last = (theorem_of(step) for step in steps)
    units = units_of(steps)
    if units is not None:
        _check_absent_rows((*earlier, last))
    if isinstance(last, UnitTheorem) and last.last:
        if type(claim) is not PureDP or claim.bounded_range:
            raise CertificateError(
                f"theorem {last.label!r} is about plain pure DP; the claim is not."
            )
        _check_last_units(last, steps[:-1])
        row_claim = PureDP(last.of_row(claim.exact_epsilon), neighbors=claim.neighbors)
        check_proof(steps[:-1], row_claim)
        return
    bases = [_base(theorem) for theorem in (earlier if units is None else earlier[:-1])]
    _check_real_minimum(bases, last)
    if isinstance(last, ChannelTheorem):
        _check_channel(bases, last, claim, units)
        return
    # `simplest` may turn k pure steps into one PureDP, which forgets their √k profile, so a claimed
    # δ or ρ is compared with the composition itself
    composed = _composed([*bases, _base(last)], claim.neighbors)
    proven = composed if type(claim) in (ApproxDP, ZCDP) else simplest(composed)
    if not _implies(proven, claim):
        raise CertificateError(f"the steps do not prove the claim: they give {_in_words(proven)}.")


def proven_epsilon(part: Part, claim: Claim) -> Fraction:
    """Return the pure ε that one of several parts proves: the stated one, or that of its steps."""
    if part.epsilon is not None:
        check_proof(part.steps, PureDP(part.epsilon, neighbors=claim.neighbors))
        return part.epsilon
    last = theorem_of(part.steps[-1]) if part.steps else None
    if isinstance(last, UnitTheorem) and last.last:
        _check_last_units(last, part.steps[:-1])
        _check_absent_rows(tuple(map(theorem_of, part.steps)))
        return proven_epsilon(Part(steps=part.steps[:-1]), claim) * last.times
    if isinstance(last, ChannelTheorem):
        raise CertificateError("one of several parts ends in a channel: it has to state its ε.")
    proven = simplest(base_claim(part.steps))
    if type(proven) is not PureDP:
        raise CertificateError("one of several parts is not pure, and only pure parts add up.")
    theorems = [theorem_of(step) for step in part.steps]
    _check_real_minimum([_base(theorem) for theorem in theorems[:-1]], theorems[-1])
    return proven.exact_epsilon


def units_of(steps: tuple[Step, ...]) -> UnitTheorem | None:
    """Return the theorem about the rows of a unit; None if rows are protected.

    It is that of the last step, or of the step before a channel at the end.
    """
    theorems = [theorem_of(step) for step in steps[-2:]]
    if len(theorems) == 2 and isinstance(theorems[1], ChannelTheorem):
        theorems.pop()
    last = theorems[-1] if theorems else None
    return last if isinstance(last, UnitTheorem) else None


def _check_absent_rows(theorems: tuple[Theorem, ...]) -> None:
    """Refuse units where a theorem needs the number of rows, which is private with units."""
    for theorem in theorems:
        if theorem.every_row:
            raise CertificateError(
                f"theorem {theorem.label!r} needs the number of rows: it does not apply to units."
            )


def _check_last_units(units: UnitTheorem, earlier: tuple[Step, ...]) -> None:
    """Refuse a theorem about units, as the last step, after steps to which it does not apply."""
    units.check_part([theorem_of(step) for step in earlier])
    if units_of(earlier) is not None:
        raise CertificateError(f"theorem {units.label!r} is about the whole part: it stands once.")


def _base(theorem: Theorem) -> BaseTheorem:
    """Return a theorem that stands in the place of a base step, refusing any other kind."""
    if isinstance(theorem, UnitTheorem):
        raise CertificateError(theorem.misplaced)
    if not isinstance(theorem, BaseTheorem):
        raise CertificateError(f"theorem {theorem.label!r} is a channel: only the last step is.")
    return theorem


def _composed(bases: list[BaseTheorem], neighbors: Neighbors) -> Composed:
    """Return the composition of the claims of base steps, each with its count."""
    return transcript_claim((base.claim(neighbors), base.count) for base in bases)


def _check_real_minimum(earlier: list[BaseTheorem], last: Theorem) -> None:
    """Refuse a minimizer in real numbers (C9) that is not published by Theorem N, with its error.

    A computer only holds an approximation of that minimizer, whose error Theorem N pays for.
    """
    if type(last) is NumericalErrorTheorem and last.error > 0:
        return
    if any(
        isinstance(theorem, BaseTheorem) and theorem.real_valued for theorem in (*earlier, last)
    ):
        raise CertificateError(
            "a step is missing: theorem C9 is about a real minimizer, which only Theorem N with a "
            "positive error publishes."
        )


def _check_channel(
    bases: list[BaseTheorem], channel: ChannelTheorem, claim: Claim, units: UnitTheorem | None
) -> None:
    """Refuse a claim that a channel after these base steps does not prove."""
    if type(claim) is not PureDP:
        raise CertificateError("a purified release claims pure DP; this one claims something else.")
    if claim.bounded_range:
        raise CertificateError("no channel proves a bounded range: claim plain pure DP.")
    base = _composed(bases, channel.before(claim.neighbors)) if bases else None
    if bases:
        channel.check_before(bases[-1], claim.neighbors)
    if units is not None:
        if base is None or not channel.any_neighbors:
            raise CertificateError(
                f"theorem {channel.label!r} does not apply to units: 'units' is the last step here."
            )
        units.check_bases(bases)
        base = units.of_unit(base)
    if not _proves(channel, base, claim.exact_epsilon):
        raise CertificateError(
            f"the steps do not prove ε {equals(claim.exact_epsilon)}: the condition of theorem "
            f"{channel.label!r} fails there, so ε is understated."
        )


def _proves(channel: ChannelTheorem, base: Composed | None, epsilon: Fraction) -> bool:
    """Tell whether the channel makes the base claim pure ε-DP; some channels stand without one."""
    if channel.includes_base and base is not None:
        raise CertificateError(
            f"theorem {channel.label!r} is about the whole base mechanism: no base step goes "
            "before."
        )
    if base is None and not channel.includes_base:
        raise CertificateError("a step is missing: the channel has no base mechanism before it.")
    return channel.proves(base or Composed(), epsilon)


def _implies(proven: Claim, claimed: Claim) -> bool:
    """Tell whether the proven claim certainly gives the claimed one."""
    if type(claimed) is PureDP:
        return (
            type(proven) is PureDP
            and proven.exact_epsilon <= claimed.exact_epsilon
            and (proven.bounded_range or not claimed.bounded_range)
        )
    if type(claimed) is GaussianDP:
        return type(proven) is GaussianDP and proven.mu_squared <= claimed.mu_squared
    if type(claimed) is ZCDP:
        return zcdp_cost(proven) <= claimed.rho
    if type(claimed) is ApproxDP:
        return proven.log_delta(claimed.exact_epsilon) <= claimed.exact_log_delta
    # compare types first: `numbers` of a curve evaluates it, which other kinds need not pay for
    return type(proven) is type(claimed) and bool(proven.numbers() == claimed.numbers())


def _in_words(proven: Claim) -> str:
    """Return a proven claim in a few words; a curve is not evaluated for a message."""
    if type(proven) is PureDP:
        return f"pure DP with ε {equals(proven.exact_epsilon)}"
    if type(proven) is GaussianDP:
        return f"Gaussian DP with μ² {equals(proven.mu_squared)}"
    if type(proven) is ZCDP:
        return f"zCDP with ρ {equals(proven.rho)}"
    return "a weaker curve" if type(proven) is not ApproxDP else "a larger δ"


def verify(
    certificate: Certificate | str,
    *,
    epsilon: Rational | None = None,
    neighbors: Neighbors | str = "replace",
    unit: str | None = None,
    proven: bool = False,
) -> Claim:
    """Return the claim that the certificate proves; raise `CertificateError` if it proves none.

    Use it before you rely on a release that somebody else made. It says that the steps prove the
    claim. It cannot say that these steps were run, and nobody has signed them.

    Parameters
    ----------
    certificate : Certificate or str
        The certificate, or its JSON text. Rejected are: an understated ε, a number outside the
        domain of its theorem, a missing step, an unknown theorem, mixed neighboring relations,
        and replayed test bits.
    epsilon : number or str, optional
        If given, the claim must be pure (δ = 0) and at most this ε. A float is the decimal that it
        prints as, or the binary number that it is if that is more.
    neighbors : "replace" or "add-remove"
        The relation that the guarantee has to be for. For replace an add-remove claim counts with
        twice its ε; for add-remove a replace claim is refused.
    unit : str, optional
        The protected unit; None for one row. A certificate that protects a unit, such as all rows
        of one "customer_id", is refused unless that unit is named here.
    proven : bool
        If True, refuse a certificate with an asserted or idealized step.

    Returns
    -------
    Claim
        The claim of the certificate, for the neighbors that it names.

    Examples
    --------
    >>> import zerodelta as zd
    >>> release = zd.mean([1.0, 2.0, 3.0], bounds=(0, 4), epsilon=1)
    >>> zd.verify(release.certificate, epsilon=1)
    PureDP(epsilon=1, bounded_range=0, neighbors=replace)

    """
    relation, wanted_unit = as_neighbors(neighbors), as_unit(unit)
    limit = None if epsilon is None else max(as_epsilon(epsilon), decimal_meant(epsilon, "epsilon"))
    strict = as_flag(proven, "proven")
    parsed = _parsed(certificate)
    if parsed.digest != parsed.fingerprint():
        raise CertificateError(
            "the digest does not match: the certificate was changed after it was issued."
        )
    if parsed.randomness != OS_ENTROPY:
        raise CertificateError(
            f"drawn from {parsed.randomness[:80]!r}: only a release drawn from the operating "
            "system's entropy is private; run it again without test bits."
        )
    check_parts(parsed)
    _check_wanted(parsed, limit, relation, wanted_unit, strict)
    return parsed.claim


def check_parts(certificate: Certificate) -> None:
    """Refuse a certificate whose parts do not prove its claim; for `verify` and `issue`."""
    for part in certificate.parts:
        _check_steps(part, certificate.claim.neighbors)
    try:
        _check(certificate)
    except CertificateError:
        raise
    except Exception as error:  # a file may hold any numbers
        raise CertificateError(
            f"a step's numbers cannot be used: {type(error).__name__}: {error}."
        ) from error


def _check_steps(part: Part, claimed: Neighbors) -> None:
    """Refuse a step for another relation than the claim's, or with a number out of its domain."""
    theorems = [theorem_of(step) for step in part.steps]  # checks all domains first
    last = len(theorems) - 1
    last -= last > 0 and isinstance(theorems[last], UnitTheorem)
    for place, step in enumerate(part.steps):
        channel = theorems[last]
        # only P3 proves a replace claim from steps that are stated for add-remove
        from_add_remove = isinstance(channel, ChannelTheorem) and channel.from_add_remove
        stated = Neighbors.ADD_REMOVE if from_add_remove and place < last else claimed
        if step.neighbors is not stated:
            raise CertificateError(
                "mixed neighboring relations: the claim is for "
                f"{claimed.value}, step {step.theorem[:80]!r} for {step.neighbors.value}."
            )


def _parsed(certificate: Certificate | str) -> Certificate:
    """Return the certificate read from its JSON; an object is written first, and then read."""
    if type(certificate) is str:
        return Certificate.from_json(certificate)
    if type(certificate) is not Certificate:
        raise CertificateError(
            f"this is a {type(certificate).__name__}, not a certificate: pass a Certificate, or "
            "its JSON as text."
        )
    certificate.check_types()
    return Certificate.from_json(certificate.to_json())


def as_neighbors(neighbors: Any) -> Neighbors:
    """Return a neighboring relation from itself or its name."""
    for relation in Neighbors:
        if neighbors is relation or (type(neighbors) is str and neighbors == relation.value):
            return relation
    raise ParameterError(
        "neighbors",
        neighbors,
        expected='"replace" or "add-remove"',
        remedy="name the relation that the guarantee has to be for",
    )


def _check(certificate: Certificate) -> None:
    """Refuse a certificate whose parts do not add up to its claim."""
    claim, parts = certificate.claim, certificate.parts
    if not parts:
        raise CertificateError("a step is missing: the certificate has no steps.")
    for part in parts:
        if (units_of(part.steps) is None) is not (certificate.unit is None):
            raise CertificateError(
                "exactly the parts of a certificate that protects a unit have theorem 'units': "
                f"this one protects {_protected(certificate.unit)}."
            )
    max_rows = {units.max_rows for part in parts if (units := units_of(part.steps)) is not None}
    if len(max_rows) > 1:
        sizes = " and ".join(map(str, sorted(max_rows)))
        raise CertificateError(
            f"its parts are about units of different size: at most {sizes} rows."
        )
    if len(parts) == 1:
        if parts[0].epsilon is not None:
            raise CertificateError("the only part of a certificate proves the claim, no other ε.")
        check_proof(parts[0].steps, claim)
        return
    if type(claim) is not PureDP or claim.bounded_range:
        raise CertificateError("several parts prove plain pure DP; this certificate claims more.")
    total = sum((proven_epsilon(part, claim) for part in parts), Fraction(0))
    if total > claim.exact_epsilon:
        raise CertificateError(
            f"the parts do not prove ε {equals(claim.exact_epsilon)}: they add up to "
            f"{shown(total)}, so ε is understated."
        )


def _check_wanted(
    certificate: Certificate,
    limit: Fraction | None,
    relation: Neighbors,
    unit: str | None,
    strict: bool,
) -> None:
    """Refuse a sound certificate that proves less than the caller of `verify` wants."""
    claim = certificate.claim
    if certificate.unit != unit:
        raise CertificateError(
            f"the claim protects {_protected(certificate.unit)}, not {_protected(unit)}: pass "
            "unit= as the certificate names it, if that is who should be protected."
        )
    if relation is Neighbors.ADD_REMOVE and claim.neighbors is Neighbors.REPLACE:
        raise CertificateError(
            "the claim is for replace neighbors, which says nothing about adding or removing a row."
        )
    if strict and certificate.status is not Status.PROVEN:
        raise CertificateError(
            f"not everything is proven: the weakest step is {certificate.status.value}."
        )
    if limit is None:
        return
    if type(claim) is not PureDP:
        raise CertificateError("the claim is not pure: it allows a δ above 0.")
    twice = relation is not claim.neighbors
    cost = claim.exact_epsilon * (2 if twice else 1)
    if cost > limit:
        note = " (twice that of add-remove)" if twice else ""
        raise CertificateError(
            f"the claim is too weak: ε {equals(cost)}{note} is above the limit {shown(limit)}."
        )


def _protected(unit: str | None) -> str:
    return "a row" if unit is None else f"a unit, all rows of one {unit!r}"


# -- The total ε of several releases of one data set: pure ε adds up (theory R2) ------------------
# If one of them is for replace, those for add-remove count twice: replacing a row is removing one
# and adding one (theory H).


@value
class Total:
    """The number of releases of one data set, and their total ε."""

    releases: int
    epsilon: Fraction
    neighbors: Neighbors

    def __str__(self) -> str:
        number = "1 release," if self.releases == 1 else f"{self.releases} releases, together"
        return f"{number} pure ε {equals(self.epsilon)} ({self.neighbors.value})"

    def epsilon_for(self, neighbors: str) -> Fraction:
        """Return the total ε for a relation: replacing a row is removing one and adding one."""
        added = self.neighbors is Neighbors.ADD_REMOVE
        same_relation = added is (neighbors == Neighbors.ADD_REMOVE.value)
        return self.epsilon if same_relation else 2 * self.epsilon


def by_data(
    releases: Iterable[tuple[Record, Certificate]],
) -> dict[str | None, list[tuple[Record, Certificate]]]:
    """Return the releases by the names of their data sets; None for data without a name."""
    named: dict[str | None, list[tuple[Record, Certificate]]] = {}
    for record, certificate in releases:
        for name in record.names or [None]:
            named.setdefault(name, []).append((record, certificate))
    return named


def total_of(releases: Sequence[tuple[Record, Certificate]]) -> Total:
    """Add up releases of one data set; those that do not add up raise `CertificateError`."""
    _check_different([record for record, _ in releases])
    claims = [certificate.claim for _, certificate in releases]
    if not all(type(claim) is PureDP for claim in claims):
        raise CertificateError("only pure claims add up; verify the others by themselves.")
    if len({certificate.unit for _, certificate in releases}) > 1:
        raise CertificateError(
            "the releases protect different units (a row, or units of different names), so they "
            "do not add up; verify each kind by itself."
        )
    added = all(claim.neighbors is Neighbors.ADD_REMOVE for claim in claims)
    relation = Neighbors.ADD_REMOVE if added else Neighbors.REPLACE
    total = sum((_cost(claim, relation) for claim in claims), Fraction(0))
    return Total(releases=len(releases), epsilon=total, neighbors=relation)


def _cost(claim: Any, relation: Neighbors) -> Fraction:
    exact: Fraction = claim.exact_epsilon
    return exact if claim.neighbors is relation else 2 * exact


def _check_different(records: Sequence[Record]) -> None:
    """Refuse two files of one release, and two releases that one debit paid for."""
    seen: set[tuple[Any, Any]] = set()
    for record in records:
        for entry in {(debit["ledger"], debit["entry"]) for debit in record.entries}:
            if entry in seen:
                raise RecordError(
                    f"two different files say that they were paid for with entry {entry[1]} of one "
                    "ledger: one of them is not what was released."
                )
            seen.add(entry)
    for name, files in Counter(record.id for record in records).items():
        if files == 1:
            continue
        raise RecordError(
            f"two different files say that they are the release {name}: pass the one that was "
            "published; one of them may have been changed."
        )
