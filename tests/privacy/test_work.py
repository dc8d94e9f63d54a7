"""A file that would keep the verifier busy is refused before anything in it is evaluated."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

import zerodelta as zd
import zerodelta.privacy.certificate as certificates
import zerodelta.privacy.verify as verifier
from privacy.chains import CHAINS
from zerodelta.errors import CertificateError
from zerodelta.privacy import theorems
from zerodelta.privacy.certificate import (
    MAX_CHANNELS,
    MAX_COSTLY,
    MAX_CURVES,
    MAX_DIGITS,
    MAX_EVALUATIONS,
    MAX_LISTED,
    MAX_LISTED_DIGITS,
    MAX_STEPS,
    check_work,
)
from zerodelta.privacy.composition import Composed
from zerodelta.privacy.steps import Status, Step
from zerodelta.privacy.verify import check_proof

MIX = Step(theorem="uniform-mixing", numbers={"size": 4, "weight": "1/100"})
PUBLISHED = Step(theorem="numerical-error", numbers={"error": 1, "scale": 1})


def laplace(sensitivity: Any) -> Step:
    return Step(theorem="rounded-laplace", numbers={"sensitivity": sensitivity, "scale": 1})


def small(place: int) -> Step:
    return laplace(f"1/{place + 2}")


def logistic(place: int) -> Step:
    numbers = {"noise_epsilon": "1e-300", "strength": f"1/{10**15 + place}", "roundness": "1e300"}
    return Step(theorem="logistic-objective-perturbation", numbers=numbers)


def sampled(place: int) -> Step:
    numbers = {"rows": 10**6, "batch": 1000 + place, "variance": 100, "steps": 1}
    return Step(
        theorem="sampling-without-replacement", numbers={**numbers, "sensitivity_squared": 1}
    )


def stated(**numbers: Any) -> Step:
    return Step(theorem="given", numbers=numbers, status=Status.ASSERTED)


def table(orders: int, value: str = "1/2", first: int = 2) -> Step:
    listed = list(range(first, first + orders))
    return stated(kind="rdp", orders=listed, values=[value] * orders)


def composed(steps: int) -> Step:
    pure = [[f"1/{place + 2}", 0, 1] for place in range(steps)]
    return stated(kind="composed", mu_squared=0, rho=0, pure=pure, rdp=[], log_delta="-inf")


def denominators(count: int, digits: int) -> list[Step]:
    return [laplace(f"1/{10**digits + 2 * place + 1}") for place in range(count)]


def wide(columns: int) -> Step:
    numbers = {"norm": "inf", "sensitivity": 1, "scale": 1, "quantum": [f"1/{10**300}"] * columns}
    return Step(theorem="k-norm-noise", numbers=numbers)


TOO_MUCH: dict[str, tuple[list[Step], str]] = {
    "steps": ([laplace(1)] * (MAX_STEPS + 1), "10000 steps"),
    "pure parts": ([composed(MAX_CURVES), MIX], "1000 different steps"),
    "curves": ([*map(small, range(MAX_CURVES)), MIX], "1000 different steps"),
    "suprema": ([*map(logistic, range(MAX_COSTLY + 1)), PUBLISHED], "10 steps of theorems C9"),
    "samplings": ([*map(sampled, range(MAX_COSTLY + 1)), MIX], "10 steps of theorems C9"),
    "denominators": (denominators(130, 780), "100000 digits"),
    "exponents": ([laplace(f"{place + 1}e-4999") for place in range(21)], "100000 digits"),
    "entries": ([table(8000), table(8000), MIX], "20000 entries"),
    "columns": ([wide(9000)] * 3, "20000 entries"),
    "long entries": ([table(9000, f"1/{10**120}"), MIX], "1000000 digits in lists"),
    "tables": ([*(table(100, first=2 + 100 * i) for i in range(50)), MIX], "times Rényi orders"),
    "orders of samplings": ([table(9000), *map(sampled, range(5)), MIX], "times Rényi orders"),
}


@pytest.mark.parametrize("case", TOO_MUCH)
def test_too_much_work_is_refused_before_any_is_done(
    case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps, limit = TOO_MUCH[case]
    text = zd.records.Certificate(claim=zd.purification.PureDP(10**6), steps=tuple(steps)).to_json()

    def evaluated(*_: Any, **__: Any) -> Any:
        raise AssertionError("evaluated")

    for module, name in (
        (certificates, "claim_from_numbers"),
        (certificates, "check_claim_numbers"),
        (verifier, "theorem_of"),
        (verifier, "check_proof"),
    ):
        monkeypatch.setattr(module, name, evaluated)
    for theorem in theorems.THEOREMS.values():
        monkeypatch.setattr(theorem, "read", evaluated)
    with pytest.raises(zd.errors.CertificateError, match=f"more than .*{limit}"):
        zd.verify(text)


def written(*steps: Step) -> dict[str, Any]:
    """Return a part with these steps, as a certificate writes it."""
    return {"steps": [{"theorem": s.theorem, "numbers": dict(s.numbers)} for s in steps]}


def test_the_claim_itself_counts() -> None:
    pure = [[f"1/{place + 2}", 0, 1] for place in range(MAX_CURVES)]
    with pytest.raises(zd.errors.CertificateError, match="1000 different steps"):
        check_work({"kind": "composed", "pure": pure}, [written(MIX)])


def test_parts_with_a_channel_are_few() -> None:
    claim = {"kind": "pure", "epsilon": 1, "bounded_range": 0}
    check_work(claim, [written(laplace(1), MIX)] * MAX_CHANNELS)
    with pytest.raises(zd.errors.CertificateError, match="100 parts with a channel"):
        check_work(claim, [written(laplace(1), MIX)] * (MAX_CHANNELS + 1))
    check_work(claim, [written(laplace(1))] * MAX_STEPS)
    with pytest.raises(zd.errors.CertificateError, match="10000 parts"):
        check_work(claim, [written()] * (MAX_STEPS + 1))
    with pytest.raises(zd.errors.CertificateError, match="digits"):
        check_work(claim, [{**written(laplace(1)), "epsilon": "1e-4999"}] * 30)


WITHIN: dict[str, Callable[[], list[Step]]] = {
    "steps": lambda: [laplace("1/1000")] * MAX_STEPS,
    "different pure steps": lambda: [small(place) for place in range(5000)],
    "many of one kind before a channel": lambda: [*[laplace("1/1000")] * 5000, MIX],
    "different ones before a channel": lambda: [*map(small, range(MAX_CURVES - 1)), MIX],
    "one full table": lambda: [table(10_000), MIX],
    "all columns of a mean": lambda: [wide(10_000)],
    "one regression": lambda: [logistic(0), PUBLISHED],
}


@pytest.mark.parametrize("case", WITHIN)
def test_what_ours_may_need_is_accepted(case: str) -> None:
    claim = zd.purification.PureDP(10**6)
    assert zd.verify(zd.records.Certificate(claim=claim, steps=tuple(WITHIN[case]()))) == claim


@pytest.mark.parametrize("name", CHAINS)
def test_our_chains_use_a_hundredth_of_every_limit(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    used: dict[int, int] = {}
    monkeypatch.setattr(
        "zerodelta.privacy.certificate._limit", lambda found, most, _: used.update({most: found})
    )
    zd.records.Certificate.from_json(CHAINS[name].certificate().to_json())
    for most in (MAX_STEPS, MAX_DIGITS, MAX_EVALUATIONS, MAX_LISTED, MAX_LISTED_DIGITS):
        assert used[most] <= most / 100
    assert used[MAX_COSTLY] <= 1


def test_equal_numbers_written_at_length_count_by_their_length() -> None:
    short, long = laplace(Fraction(1, 3)), laplace("1e-4999")
    claim = {"kind": "pure", "epsilon": 1, "bounded_range": 0}
    check_work(claim, [written(*[short] * MAX_STEPS)])
    with pytest.raises(zd.errors.CertificateError, match="digits"):
        check_work(claim, [written(*[long] * 30)])


def test_a_curve_is_not_tabulated_for_a_verdict_or_a_message() -> None:
    """Comparing or printing a composed Rényi curve took 20 s: families are compared first."""
    steps = [
        Step(theorem="rounded-laplace", numbers={"sensitivity": 1, "scale": 10**6 + place})
        for place in range(100)
    ]
    table = Step(
        theorem="given",
        status=Status.ASSERTED,
        numbers={"kind": "rdp", "orders": list(range(2, 60)), "values": [1] * 58},
    )

    def tabulated(self: Composed) -> Any:
        raise AssertionError("a curve was tabulated")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Composed, "numbers", tabulated)
        patch.setattr(Composed, "__repr__", tabulated)
        for claim in (zd.purification.RDP({2: 1, 3: 1}), zd.purification.PureDP(1)):
            with pytest.raises(CertificateError, match="do not prove"):
                check_proof((*steps, table), claim)
