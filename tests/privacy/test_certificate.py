"""Certificates: every theorem verifies at its smallest ε, and no forgery does."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from fractions import Fraction
from typing import Any

import pytest

import zerodelta as zd
from privacy.chains import (
    CHAINS,
    CHANNELS,
    MECHANISMS,
    Chain,
    Data,
    data_of,
    forged,
    resealed,
)
from privacy.theorem_cases import BOTH, FREE, LESS, MORE, WORSE
from zerodelta.privacy.certificate import REPLAYED
from zerodelta.privacy.parameters import Neighbors
from zerodelta.privacy.readable import shown
from zerodelta.privacy.steps import Status, Step
from zerodelta.privacy.theorems import THEOREMS
from zerodelta.testing import replayed

chains = pytest.mark.parametrize("chain", CHAINS.values(), ids=CHAINS.keys())

Path = tuple[Any, ...]


def refused(text: Any, match: str = ".") -> None:
    with pytest.raises(zd.errors.CertificateError, match=match):
        zd.verify(text)


@chains
def test_a_certificate_verifies_at_the_smallest_epsilon_of_its_steps(chain: Chain) -> None:
    certificate = chain.certificate()
    assert zd.verify(certificate)
    assert zd.verify(certificate.to_json())


@chains
def test_an_epsilon_one_billionth_too_small_fails_on_the_mathematics(chain: Chain) -> None:
    below = Fraction(chain.smallest) - Fraction(1, 10**9)
    refused(chain.certificate(below), "do not prove ε")
    refused(chain.certificate(below).to_json(), "do not prove ε")


@chains
def test_json_round_trip(chain: Chain) -> None:
    certificate = chain.certificate()
    copied = zd.records.Certificate.from_json(certificate.to_json())
    assert copied == certificate
    assert copied.to_json() == certificate.to_json()
    assert zd.records.Certificate.from_json(resealed(data_of(certificate))) == certificate


def test_base_steps_alone_prove_what_they_compose_to() -> None:
    pure = Step(theorem="rounded-laplace", numbers={"sensitivity": 1, "scale": 3, "count": 2})
    assert zd.verify(zd.records.Certificate(claim=zd.purification.PureDP("2/3"), steps=(pure,)))
    refused(
        zd.records.Certificate(
            claim=zd.purification.PureDP(Fraction(2, 3) - Fraction(1, 10**9)), steps=(pure,)
        )
    )
    gaussian = Step(theorem="rounded-gaussian", numbers={"sensitivity_squared": 1, "variance": 4})
    for claim, smaller in (
        (zd.GaussianDP("1/2"), zd.GaussianDP("0.4999999999")),
        (zd.purification.ZCDP("1/8"), zd.purification.ZCDP("0.1249999999")),
        (zd.ApproxDP(1, zd.GaussianDP("1/2").log_delta(1)), zd.ApproxDP(1, -6.0)),
    ):
        assert zd.verify(zd.records.Certificate(claim=claim, steps=(gaussian,)))
        refused(zd.records.Certificate(claim=smaller, steps=(gaussian,)), "do not prove the claim")
    refused(
        zd.records.Certificate(claim=zd.purification.PureDP(100), steps=(gaussian,)),
        "do not prove the claim",
    )


# Changed numbers.


def numbers_in(node: Any, path: Path = ()) -> Iterator[Path]:
    """Yield the way to every number of the JSON, also those written as text."""
    if isinstance(node, dict):
        for name, child in node.items():
            yield from numbers_in(child, (*path, name))
    elif isinstance(node, list):
        for index, child in enumerate(node):
            yield from numbers_in(child, (*path, index))
    elif isinstance(node, (int, float)) or (isinstance(node, str) and _number(node) is not None):
        yield path


def _number(text: str) -> Fraction | None:
    try:
        return Fraction(text)
    except ValueError:
        return None


def at(data: Any, path: Path) -> Any:
    for name in path:
        data = data[name]
    return data


def steps_of(data: Data) -> list[Any]:
    """Return the steps of the only part."""
    (part,) = data["parts"]
    found: list[Any] = part["steps"]
    return found


def put(data: Any, path: Path, value: Any) -> None:
    at(data, path[:-1])[path[-1]] = value


def placed(path: Path, value: Any) -> Callable[[Data], None]:
    return lambda data: put(data, path, value)


def without(path: Path) -> Callable[[Data], None]:
    def change(data: Data) -> None:
        del at(data, path[:-1])[path[-1]]

    return change


@chains
def test_any_changed_number_breaks_the_digest(chain: Chain) -> None:
    original = data_of(chain.certificate())
    paths = list(numbers_in(original))
    assert len(paths) >= 3
    for path in paths:
        old = at(original, path)
        changes = [not old] if isinstance(old, bool) else [_moved(old, 1), _moved(old, -1)]
        for new in changes:
            data = copy.deepcopy(original)
            put(data, path, new)
            assert data != original
            refused(json.dumps(data))


def _moved(old: Any, direction: int, share: Fraction = Fraction(1, 10**6)) -> Any:
    """Return the number moved by one if it is an integer, else by a small share of itself."""
    if isinstance(old, int):
        return old + direction
    exact = Fraction(old)
    moved = exact + direction * share * abs(exact)
    return repr(float(moved)) if "." in old else str(moved)


CLAIMED: dict[str, dict[str, int | None]] = {
    "claim": {"epsilon": LESS},
    "given": dict.fromkeys(("epsilon", "log_delta", "mu_squared", "rho", "values"), MORE),
}
"""How a claim becomes stronger, and what is said of a base mechanism, which has its orders free."""


@chains
def test_every_understated_number_fails_although_the_digest_was_computed_anew(chain: Chain) -> None:
    original = data_of(chain.certificate())
    tried = 0
    for path in numbers_in(original):
        if path[0] == "claim":
            theorem, name = "claim", path[1]
        elif path[0] == "parts" and path[4] == "numbers":
            theorem, name = at(original, path[:4])["theorem"], path[5]
        else:
            continue
        direction = {**WORSE, **CLAIMED}[theorem].get(name, FREE)
        if direction is FREE:
            continue
        if (theorem, name) == ("given", "epsilon") and chain.smallest > 1:
            continue  # far above the base's own ε only its δ counts
        for new in _worse(name, direction, at(original, path)):
            data = copy.deepcopy(original)
            put(data, path, new)
            if theorem == "given" and name == "values" and not _is_best_order(chain, data):
                continue
            refused(resealed(data))
            tried += 1
    assert tried >= 3


def _worse(name: str, direction: int, old: Any) -> list[Any]:
    if isinstance(old, bool):
        return [not old]
    if name == "norm":
        return ["inf"] if old != "inf" else []
    if direction == BOTH:
        return [str(Fraction(old) * 2), str(Fraction(old) / 2)]
    return [_moved(old, direction)]


def _is_best_order(chain: Chain, changed: Data) -> bool:
    """Tell whether the changed row of a table of orders is the one that the proof rests on."""
    table = changed["parts"][0]["steps"][0]["numbers"]
    before = dict(chain.base[0].numbers)["values"]
    (row,) = (i for i, value in enumerate(table["values"]) if value != before[i])
    only = zd.purification.RDP({Fraction(table["orders"][row]): Fraction(before[row])})
    whole = zd.purification.RDP(
        dict(zip(map(Fraction, table["orders"]), map(Fraction, before), strict=True))
    )
    return only.log_delta(chain.smallest) == whole.log_delta(chain.smallest)


# Steps.


@pytest.mark.parametrize("chain", [chain for chain in CHANNELS.values() if chain.base])
def test_a_certificate_without_its_channel_or_its_base_is_refused(chain: Chain) -> None:
    whole = chain.certificate()
    for kept in ((chain.channel,), ()):
        refused(whole.with_steps(kept), "missing")
    if chain.channel.theorem != "numerical-error":
        below = Fraction(1, 4)  # what the base alone never proves as pure DP
        refused(zd.records.Certificate(claim=zd.purification.PureDP(below), steps=chain.base))


@chains
def test_steps_that_are_cut_doubled_or_swapped_are_refused(chain: Chain) -> None:
    def renumbered_cut(data: Data) -> None:
        del steps_of(data)[-1]
        for number, step in enumerate(steps_of(data), 1):
            step["step"] = f"{number} of {len(steps_of(data))}"

    whole = chain.certificate()
    for place in range(len(whole.steps)):
        refused(forged(whole, without(("parts", 0, "steps", place))), "missing")
    if chain.channel.theorem != "numerical-error":  # whose base is pure already
        refused(forged(whole, renumbered_cut))
    refused(forged(whole, lambda data: steps_of(data).append(steps_of(data)[-1])))
    refused(forged(whole, lambda data: steps_of(data).clear()), "missing")
    if chain.base:
        refused(forged(whole, lambda data: steps_of(data).reverse()))
        turned = tuple(reversed(whole.steps))
        refused(whole.with_steps(turned))


@chains
def test_unknown_theorems_numbers_and_schemas_are_refused(chain: Chain) -> None:
    whole = chain.certificate()
    for place, step in enumerate(whole.steps):
        path: Path = ("parts", 0, "steps", place)
        refused(forged(whole, placed((*path, "theorem"), "B9")), "unknown theorem")
        refused(forged(whole, placed((*path, "numbers", "extra"), 1)))
        for name in step.numbers:
            if name != "count":
                refused(forged(whole, without((*path, "numbers", name))))
    refused(forged(whole, placed(("schema",), "zerodelta/certificate/3")), "schema")


@chains
def test_mixed_neighboring_relations_are_refused(chain: Chain) -> None:
    whole = chain.certificate()
    for place, step in enumerate(whole.steps):
        (other,) = set(Neighbors) - {step.neighbors}
        path = ("parts", 0, "steps", place, "neighbors")
        refused(forged(whole, placed(path, other.value)), "mixed")
    refused(forged(whole, placed(("claim", "neighbors"), "add-remove")), "mixed")
    refused(forged(whole, placed(("claim", "neighbors"), "none")))


def test_add_remove_is_accepted_throughout_except_by_lemma_wor() -> None:
    def everywhere(data: Data) -> None:
        for entry in (data["claim"], *steps_of(data)):
            entry["neighbors"] = "add-remove"

    assert zd.verify(forged(CHAINS["all"].certificate(), everywhere))
    refused(forged(CHAINS["sampling-without-replacement"].certificate(), everywhere), "replace-one")


def test_a_callers_word_cannot_call_itself_proven() -> None:
    for name, place in (("Finite", 0), ("profile", 0)):
        whole = CHAINS[name].certificate()
        assert whole.status is Status.ASSERTED
        assert whole.summary.endswith(": conditional on 1 caller assertion")
        path = ("parts", 0, "steps", place, "status")
        refused(forged(whole, placed(path, "proven")), "cannot be marked as proven")
    assert all(
        chain.certificate().status is Status.PROVEN
        for name, chain in MECHANISMS.items()
        if name != "all"
    )


# Randomness.


def test_replayed_test_bits_are_never_private() -> None:
    claim = zd.GaussianDP("1/10")
    plan = zd.plan(zd.Finite(16), epsilon=1, base=claim)
    release = replayed("a test")(plan.purify)(3)
    assert "NOT PRIVATE" in release.certificate.summary
    refused(release.certificate, "replayed")
    whole = plan.certificate(claim)
    assert zd.verify(whole)
    refused(forged(whole, placed(("randomness",), REPLAYED)), "replayed")
    refused(forged(whole, placed(("randomness",), "a die")))


def test_certificates_are_functions_of_the_plan_only() -> None:
    claim = zd.GaussianDP("1/10")
    for space, values in (
        (zd.Finite(16), [3, 15, None, float("nan")]),
        (zd.Ball(2, 1), [[0.1, 0.2], [1e300, 5], "garbage"]),
    ):
        plan = zd.plan(space, epsilon=1, base=claim)
        releases = [plan.purify(value) for value in values for _ in range(5)]
        assert {release.certificate.to_json() for release in releases} == {
            plan.certificate(claim).to_json()
        }
        assert len({release.error for release in releases}) == 1


def test_a_release_has_a_value_a_certificate_and_a_forecast_and_nothing_else() -> None:
    release = zd.purify(1, space=zd.Finite(4), claim=zd.GaussianDP("1/10"), epsilon=1)
    named = {"value", "certificate", "error", "noise", "seconds", "diagnostics", "sums", "plan"}
    named |= {"record", "signatures", "paid_by"}  # what was asked, who signed and who paid
    assert {field.name for field in fields(zd.records.Release)} == named
    assert release.seconds is None  # a plan states it where a run may be long
    assert release.diagnostics is None  # paid for by a share of ε where asked
    assert release.sums == ()  # noisy integers of known law, where a value was made of some
    assert release.plan is None  # made before a row was read
    public = {name for name in dir(release) if not name.startswith("_")}
    verbs = {"interval", "covers", "counted", "to_frame", "plot", "save", "sign", "report"}
    assert public == {*named, *verbs}
    assert not hasattr(release, "__dict__")
    with pytest.raises((AttributeError, TypeError)):
        release.was_uniform = True  # type: ignore[attr-defined]


# Malformed text.

GARBAGE = [
    "", " ", "{}", "[]", "null", "3", '"text"', "{", "not json", "\x00", '{"schema": 1}',
    "[" * 10**5, '{"a": 1, "a": 1}', "NaN", "1" * 5000, '{"schema": "zerodelta/certificate/1"}',
]  # fmt: skip


@pytest.mark.parametrize("text", GARBAGE, ids=range(len(GARBAGE)))
def test_garbage_is_a_certificate_error(text: str) -> None:
    refused(text)
    with pytest.raises(zd.errors.CertificateError):
        zd.records.Certificate.from_json(text)


@pytest.mark.parametrize("thing", [None, 3, b"{}", [], {}, object(), zd.purification.PureDP(1)])
def test_what_is_no_certificate_is_a_certificate_error(thing: Any) -> None:
    refused(thing, "not a certificate")


def test_names_that_occur_twice_and_names_nobody_reads_are_refused() -> None:
    whole = CHAINS["Finite"].certificate()
    text = whole.to_json()
    twice = text.replace('"epsilon":', '"epsilon": "1/100", "epsilon":', 1)
    refused(twice, "twice")
    for path in (("note",), ("claim", "delta"), ("parts", 0, "steps", 0, "note")):
        data = data_of(whole)
        put(data, path, "0")
        refused(json.dumps(data))  # the digest still fits what is read of it
        refused(resealed(data))
    refused(forged(whole, placed(("public",), "text")))
    refused(forged(whole, placed(("assumed",), [1])))


def places(node: Any, path: Path = ()) -> Iterator[Path]:
    if path:
        yield path
    if isinstance(node, (dict, list)):
        for name, child in node.items() if isinstance(node, dict) else enumerate(node):
            yield from places(child, (*path, name))


# Explanations.


@chains
def test_the_explanation_names_every_theorem_with_all_of_its_numbers(chain: Chain) -> None:
    certificate = chain.certificate()
    lines = certificate.explain().splitlines()
    assert lines[0] == certificate.summary
    for number, step in enumerate(certificate.steps, 1):
        (line,) = (line for line in lines if line.startswith(f"  {number}. [{step.status.value}]"))
        section = THEOREMS[step.theorem].section
        named = "given:" if step.theorem == "given" else f"{step.theorem} (theorem {section}):"
        assert named in line
        for name, value in step.numbers.items():
            if (step.theorem, name) not in {("given", "kind"), ("given", "bounded_range")}:
                assert shown(value) in line, name


def test_the_explanation_says_what_is_public_assumed_and_random() -> None:
    whole = replace(
        CHAINS["all"].certificate(), public=("the size",), assumed=("one release",), digest=""
    )
    text = whole.explain()
    for words in ("the size", "one release", "operating system", "replace", "one row of the data"):
        assert words in text
    assert "conditional" in whole.summary
    assert "conditional" not in CHAINS["sampling-without-replacement"].certificate().summary


def test_numbers_longer_than_python_writes_in_decimal_survive() -> None:
    claim = zd.GaussianDP(mu_squared="1/100000")
    space = zd.purification.Subsets(of=20_000, size=10_000)
    assert space.size > 10**4300
    certificate = zd.plan(space, epsilon=1, base=claim).certificate(claim)
    assert zd.verify(certificate.to_json())
    assert "e+6018" in certificate.explain()  # C(20000, 10000) ~ 4^10000/sqrt(10000 pi)
    size = hex(space.size**100)
    refused(
        forged(certificate, placed(("parts", 0, "steps", 1, "numbers", "size"), size)),
        "do not prove",
    )
