"""Plans: what they promise holds by independent arithmetic, and they fail with the right number."""

from __future__ import annotations

import contextlib
import itertools
import math
import re
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

import zerodelta as zd
from zerodelta.channels.kernels import KernelMix
from zerodelta.channels.mixes import FiniteMix, GaussianMix, GridMix, LaplaceMix, UnequalGridMix
from zerodelta.errors import GuaranteeError, ParameterError

SPACES: dict[str, Any] = {
    "finite": zd.Finite(37),
    "options": zd.Finite(["a", "b"]),
    "subsets": zd.purification.Subsets(of=40, size=6),
    "multiset": zd.purification.Multiset(12, 5),
    "box": zd.Box(0, 1),
    "box in 3": zd.Box([-1, 0, 2], [1, 5, "7/3"]),
    "l1": zd.Ball(3, 1, norm=1),
    "l2": zd.Ball(3, 1),
    "l2 in 20": zd.Ball(20, "1/7"),
    "linf": zd.Ball(4, 2, norm=math.inf),
}
SIZES = {"finite": 37, "options": 2, "subsets": math.comb(40, 6), "multiset": math.comb(16, 5)}
BASES: dict[str, Any] = {
    "gaussian": zd.GaussianDP("1/30"),
    "zcdp": zd.purification.ZCDP("1/2000"),
    "rdp": zd.purification.RDP(lambda order: order / 2000),
    "approximate": zd.ApproxDP("1/2", -150.0),
    "pure": zd.purification.PureDP("1/2"),
}
spaces = pytest.mark.parametrize("name", SPACES)


@pytest.fixture(autouse=True)
def _sixty_digits() -> Iterator[None]:
    with mp.workdps(60):
        yield


def real(value: Any) -> mpf:
    exact = Fraction(value)
    return mpf(exact.numerator) / exact.denominator


def log_mass(purifier: Any, size: int | None) -> mpf:
    """Return ln of the mass ratio from the channel's public numbers, by theory B1, B2, R, K."""
    if isinstance(purifier, FiniteMix):
        return mp.log(size)
    if isinstance(purifier, GridMix):
        return purifier.lattice.dimension * mp.log(purifier.lattice.cells)
    if isinstance(purifier, UnequalGridMix):
        return mp.fsum(mp.log(cells) for cells in purifier.lattice.cells)
    if isinstance(purifier, KernelMix):
        d, width = purifier.body.lattice.dimension, 2 * purifier.body.radius
        return d * (1 + mp.log(width / (d * real(purifier.scale))))
    d, steps = purifier.lattice.dimension, purifier.lattice.ball.radius / purifier.lattice.spacing
    if isinstance(purifier, GaussianMix):
        bound = int(mp.floor((real(steps) + mp.sqrt(d) / 2) ** 2))
        tau = real(purifier.variance)
        return mpf(d) / 2 * mp.log(2 * mp.pi * tau) + (bound + mpf(d) / 12) / (2 * tau)
    assert isinstance(purifier, LaplaceMix)
    b = real(purifier.scale)
    return math.floor(steps) / b - d * mp.log(1 - mp.exp(-1 / (2 * b)))


def allowed(plan: zd.purification.Plan, name: str) -> mpf:
    """Return ln(w/(1-w)) + ln(e^ε - 1) - ln M."""
    w = real(plan.mixing_weight)
    return (
        mp.log(w / (1 - w))
        + mp.log(mp.expm1(real(plan.epsilon)))
        - log_mass(plan.purifier, SIZES.get(name))
    )


def plans_of(space: Any) -> Iterator[zd.purification.Plan]:
    for epsilon in ("1/10", 1, 0.83, 4):
        yield zd.plan(space, epsilon=epsilon)
        yield zd.plan(space, epsilon=epsilon, mixing_probability="0.2", sensitivity="1/50")
        yield zd.plan(space, epsilon=epsilon, resolution="1/20")
    for base in BASES.values():
        yield zd.plan(space, epsilon=1, base=base)
        yield zd.plan(space, epsilon=1, base=base, resolution="1/20")


@spaces
def test_the_delta_a_plan_asks_for_is_b1s_and_never_more(name: str) -> None:
    for plan in plans_of(SPACES[name]):
        exact = allowed(plan, name)
        assert mpf(plan.log_delta) <= exact
        assert exact - mpf(plan.log_delta) <= mpf(10) ** -12 * (1 + abs(exact))


@spaces
def test_a_plan_without_base_certifies_exactly_up_to_its_delta(name: str) -> None:
    for epsilon in ("1/10", 0.83, 1):
        plan = zd.plan(SPACES[name], epsilon=epsilon)
        within = zd.ApproxDP(plan.epsilon, plan.log_delta)
        assert zd.verify(plan.certificate(within))
        assert zd.verify(plan.purify(None, claim=within).certificate)
        beyond = zd.ApproxDP(plan.epsilon, math.nextafter(plan.log_delta, 0))
        with pytest.raises(GuaranteeError):
            plan.purify(None, claim=beyond)
        with pytest.raises(zd.errors.CertificateError):
            plan.certificate(beyond)


@spaces
@pytest.mark.parametrize("base", BASES.values(), ids=BASES.keys())
def test_a_plan_for_a_base_certifies_that_base(name: str, base: Any) -> None:
    plan = zd.plan(SPACES[name], epsilon=1, base=base)
    assert base.log_delta(1) <= plan.log_delta
    release = plan.purify([0.1, 0.2, 0.3])
    assert zd.verify(release.certificate.to_json())
    assert release.certificate.claim.exact_epsilon == 1  # type: ignore[attr-defined]
    assert plan.space.contains(release.value)
    assert zd.verify(zd.purify(1, space=SPACES[name], claim=base, epsilon=1).certificate)


@spaces
def test_the_rho_and_the_sigma_of_a_plan_are_enough(name: str) -> None:
    for epsilon in ("1/10", 1, 4):
        plan = zd.plan(SPACES[name], epsilon=epsilon, sensitivity="1/50")
        assert plan.variance is not None
        assert plan.sigma is not None
        by_rho = zd.purification.ZCDP(plan.rho)
        by_noise = zd.GaussianDP(mu_squared=Fraction(1, 2500) / plan.variance)
        by_sigma = zd.GaussianDP(Fraction(1, 50) / Fraction(plan.sigma))
        for claim in (by_rho, by_noise, by_sigma):
            assert zd.verify(plan.purify(0, claim=claim).certificate)


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(sorted(SPACES)),
    st.fractions(min_value="1/100000", max_value="99/100"),
    st.sampled_from(["none", "base", "sensitivity", "resolution", "both"]),
)
def test_the_mixing_weight_never_exceeds_the_failure_probability(
    name: str, mixing_probability: Fraction, how: str
) -> None:
    options: dict[str, dict[str, Any]] = {
        "none": {},
        "base": {"base": zd.GaussianDP("1/30")},
        "sensitivity": {"sensitivity": "1/50"},
        "resolution": {"resolution": "1/30"},
        "both": {"base": zd.purification.ZCDP("1/2000"), "resolution": "1/30"},
    }
    plan = zd.plan(SPACES[name], epsilon=1, mixing_probability=mixing_probability, **options[how])
    assert 0 < plan.mixing_weight <= mixing_probability
    assert plan.purifier.mixing_weight == plan.candidates[0].weight


def fineness(plan: zd.purification.Plan) -> float:
    purifier: Any = plan.purifier
    if isinstance(purifier, (GridMix, UnequalGridMix)):
        return float(np.max(purifier.lattice.box.widths() / purifier.lattice.counts))
    return float(purifier.lattice.spacing)


@pytest.mark.parametrize("name", ["box", "box in 3", "l1", "linf"])
def test_a_more_private_base_gets_a_finer_lattice_and_a_smaller_error(name: str) -> None:
    plans = [
        zd.plan(SPACES[name], epsilon=1, base=zd.GaussianDP(Fraction(1, k)))
        for k in (4, 5, 6, 7, 30, 100)
    ]
    for earlier, later in itertools.pairwise(plans[:-1]):
        assert fineness(later) < fineness(earlier)
        assert later.predicted_error < earlier.predicted_error
    assert fineness(plans[-1]) == fineness(plans[-2])  # no lattice is finer than floats are


def test_a_more_private_base_gets_a_smaller_weight_on_a_finite_space() -> None:
    weights = [
        zd.plan(zd.Finite(37), epsilon=1, base=zd.GaussianDP(Fraction(1, k))).mixing_weight
        for k in (5, 6, 10, 16, 24, 100)
    ]
    assert all(later < earlier for earlier, later in itertools.pairwise(weights))


@pytest.mark.parametrize("name", ["finite", "options", "subsets", "multiset"])
def test_a_base_that_is_pure_already_is_hardly_mixed_at_all(name: str) -> None:
    plan = zd.plan(SPACES[name], epsilon=1, base=zd.purification.PureDP(1))
    assert plan.mixing_weight <= Fraction(1, 10**9)
    assert zd.verify(plan.certificate(zd.purification.PureDP(1)))


def test_the_weight_on_a_finite_space_is_the_smallest_that_b1_allows() -> None:
    claim = zd.ApproxDP(1, -20.0)
    plan = zd.plan(zd.Finite(37), epsilon=1, base=claim)
    smallest = 1 / (1 + mp.expm1(1) / (37 * mp.exp(-20)))
    assert real(plan.mixing_weight) >= smallest
    assert real(plan.mixing_weight) <= smallest * (1 + mpf(10) ** -8)


@pytest.mark.parametrize("width", [1, 3])
@pytest.mark.parametrize("cells", [2, 3, 10, 999, 10**6])
def test_a_resolution_is_kept(width: int, cells: int) -> None:
    resolution = Fraction(width, cells)
    for base in (None, zd.ApproxDP(1, -500.0)):
        plan = zd.plan(zd.Box(0, width, dimension=5), epsilon=1, resolution=resolution, base=base)
        assert isinstance(plan.purifier, GridMix)
        assert plan.purifier.lattice.cells in (cells, cells + 1)  # float division may round up
    ball = zd.plan(
        zd.Ball(5, width), epsilon=1, resolution=resolution, base=zd.purification.PureDP(1)
    )
    assert fineness(ball) <= 1.01 * resolution or isinstance(ball.purifier, GridMix)


def test_a_coarse_resolution_is_no_reason_to_refuse() -> None:
    for space in (zd.Ball(3, 1), zd.Ball(3, 1, norm=1), zd.Box(0, 1, dimension=3)):
        for resolution in (1, 10, 1e6):
            plan = zd.plan(space, epsilon=1, resolution=resolution, base=zd.GaussianDP("1/10"))
            assert zd.verify(plan.certificate(zd.GaussianDP("1/10")))


def test_without_a_base_the_family_that_asks_least_is_chosen() -> None:
    for space in (zd.Ball(3, 1), zd.Ball(10, 1), zd.Ball(200, 1), zd.Ball(6, 1, norm=1)):
        plan = zd.plan(space, epsilon=1)
        first, *others = plan.candidates
        assert all(
            first.log_ratio <= other.log_ratio or first.error < other.error / 1.005
            for other in others
        )


def test_the_predicted_error_is_what_happens() -> None:
    plan = zd.plan(
        zd.Box(0, 1, dimension=1000), epsilon=1, mixing_probability="1/1000", resolution="1/10"
    )
    value = np.random.default_rng(1).uniform(size=1000)
    errors = [
        np.linalg.norm(plan.purify(value, claim=zd.purification.PureDP(1)).value - value)
        for _ in range(5)
    ]
    assert min(errors) == pytest.approx(plan.predicted_error, rel=0.1)


# Refusals.


def nats_in(error: Exception) -> float:
    match = re.search(r"(?:misses by|needs -?[\d.e+-]+,) (-?[\d.e+-]+) nats", str(error))
    assert match, str(error)
    return float(match[1])


@spaces
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1)])
def test_the_nats_missing_are_exactly_what_would_do(name: str, epsilon: Fraction) -> None:
    weak = zd.ApproxDP(epsilon, -1.0)
    with pytest.raises(GuaranteeError, match="cannot reach") as caught:
        zd.plan(SPACES[name], epsilon=epsilon, base=weak)
    missing = nats_in(caught.value)
    assert missing > 0
    enough = zd.ApproxDP(epsilon, -1.0 - missing * (1 + 1e-3))
    assert zd.verify(zd.plan(SPACES[name], epsilon=epsilon, base=enough).certificate(enough))
    short = zd.ApproxDP(epsilon, -1.0 - missing * (1 - 1e-3))
    with pytest.raises(GuaranteeError):
        zd.plan(SPACES[name], epsilon=epsilon, base=short)


@spaces
def test_a_weaker_claim_than_planned_is_refused_with_the_nats_missing(name: str) -> None:
    plan = zd.plan(SPACES[name], epsilon=1)
    with pytest.raises(GuaranteeError, match="does not reach") as caught:
        plan.purify(0, claim=zd.ApproxDP(1, plan.log_delta + 1.25))
    assert nats_in(caught.value) == pytest.approx(1.25, rel=1e-3)
    assert f"{float(plan.rho):.4g}" in str(caught.value)


def test_a_pure_base_above_the_target_is_refused() -> None:
    for space in SPACES.values():
        with pytest.raises(GuaranteeError, match="nats"):
            zd.plan(space, epsilon=1, base=zd.purification.PureDP(2))


def test_a_claim_for_added_or_removed_rows_is_published_for_these() -> None:
    base = zd.GaussianDP("1/30", neighbors=zd.records.Neighbors.ADD_REMOVE)
    certificate = zd.purify(3, space=zd.Finite(37), claim=base, epsilon=1).certificate
    assert certificate.claim == zd.purification.PureDP(1, neighbors=zd.records.Neighbors.ADD_REMOVE)
    assert zd.verify(certificate, epsilon=1, neighbors="add-remove") == certificate.claim


def test_a_missing_claim_is_refused_with_the_remedy() -> None:
    for space in SPACES.values():
        with pytest.raises(ParameterError, match=r"claim = None.*pass claim=zd\.GaussianDP"):
            zd.plan(space, epsilon=1).purify(0)


SPACE = zd.Ball(3, 1)
NUMBERS = ("x", math.nan, math.inf, 0, -1, True, "1e400", "1e-400")
MALFORMED: list[tuple[str, Sequence[Any], dict[str, Any]]] = [
    *[
        ("epsilon", (*NUMBERS, None, 1j, [1], 10**9), {"space": SPACE, **extra})
        for extra in ({}, {"base": zd.GaussianDP("1/9")}, {"sensitivity": 1})
    ],
    ("mixing_probability", (*NUMBERS, None, 1, 2), {"space": SPACE, "epsilon": 1}),
    ("resolution", NUMBERS, {"space": SPACE, "epsilon": 1}),
    ("resolution", NUMBERS, {"space": zd.Finite(3), "epsilon": 1}),
    ("sensitivity", NUMBERS, {"space": SPACE, "epsilon": 1}),
    ("base", (1, "x", object), {"space": SPACE, "epsilon": 1}),
    ("space", (None, 3, "x", [1, 2], zd.Box), {"epsilon": 1}),
]


@pytest.mark.parametrize(("name", "values", "others"), MALFORMED)
def test_malformed_parameters_are_refused_by_name(
    name: str, values: Sequence[Any], others: dict[str, Any]
) -> None:
    for bad in values:
        with pytest.raises(ParameterError, match=rf"^{name} = "):
            zd.plan(**{**others, name: bad})


def test_malformed_claims_are_refused_by_name() -> None:
    plan: Any = zd.plan(SPACE, epsilon=1)
    for bad in (1, "x", zd.purification.PureDP):
        with pytest.raises(ParameterError, match=r"^claim = "):
            plan.purify(0, claim=bad)
    with pytest.raises(ParameterError, match=r"^claim = "):
        plan.certificate(None)
    with pytest.raises(ParameterError, match=r"^base = "):
        zd.purify(0, space=SPACE, claim=3, epsilon=1)  # type: ignore[arg-type]


# Extremes.


@pytest.mark.parametrize("log_delta", [-1.0, -3.0, -30.0, -1e3, -1e5, -1e6])
def test_every_delta_from_e_to_the_minus_1_to_e_to_the_minus_a_million(log_delta: float) -> None:
    base = zd.ApproxDP(3, log_delta)
    reached = {-1.0: 1, -3.0: 3, -30.0: 9, -1e3: 11}.get(log_delta, 12)
    tried = 0
    for space in (*SPACES.values(), zd.Box(0, 1, dimension=1000), zd.Ball(1000, 1)):
        with contextlib.suppress(GuaranteeError):
            plan = zd.plan(space, epsilon=3, mixing_probability="1/2", base=base)
            assert zd.verify(plan.certificate(base))
            assert plan.space.contains(plan.purify(None).value)
            tried += 1
    assert tried >= reached


@pytest.mark.parametrize(
    "space",
    [
        *(zd.Box(0, 1, dimension=d) for d in (1, 2, 10, 100, 1000, 10**6)),
        *(zd.Ball(d, 1) for d in (1, 2, 10, 100, 1000, 10**5)),
        *(zd.Ball(d, 1, norm=1) for d in (1, 2, 10, 100, 1000, 10**5)),
        zd.Box(np.zeros(1000), np.arange(1.0, 1001.0)),
        zd.Ball(1000, 1, norm=math.inf),
    ],
    ids=repr,
)
def test_every_dimension(space: Any) -> None:
    d = space.dimension
    for base in (zd.ApproxDP(1, -20.0 - 3 * d), zd.ApproxDP(1, -20.0 - 30 * d)):
        plan = zd.plan(space, epsilon=1, base=base)
        value = space.middle()
        value[0] += 0.25
        release = plan.purify(value)
        assert space.contains(release.value)
        assert zd.verify(release.certificate)
    assert np.linalg.norm(release.value - value) <= 1e-6 * math.sqrt(d)
    planned = zd.plan(space, epsilon=1, sensitivity="1/1000")
    assert zd.verify(planned.certificate(zd.purification.ZCDP(planned.rho)))


@pytest.mark.parametrize("epsilon", ["1e-30", "1e-6", 8, 30, 700, 10**5, 10**6])
def test_very_small_and_very_large_epsilons(epsilon: Any) -> None:
    for space in SPACES.values():
        plan = zd.plan(space, epsilon=epsilon)
        claim = zd.purification.ZCDP(plan.rho)
        assert zd.verify(plan.certificate(claim))
        noisy = zd.plan(space, epsilon=epsilon, sensitivity=1)
        assert zd.verify(noisy.certificate(zd.purification.ZCDP(noisy.rho)))
        for base in (claim, zd.purification.PureDP(0)):
            assert zd.verify(zd.plan(space, epsilon=epsilon, base=base).certificate(base))


@pytest.mark.parametrize("log_delta", [-10.0, -25.0, -38.0, -1e3])
def test_one_dimension_takes_few_looks_however_fine_the_grid(
    log_delta: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = []

    def counted(self: Any, claim: Any) -> float:
        looks.append(claim)
        return plain(self, claim)

    plain = zd.ApproxDP.log_delta
    monkeypatch.setattr(zd.ApproxDP, "log_delta", counted)
    made = zd.plan(zd.Box(0, 1), epsilon=1, base=zd.ApproxDP(1, log_delta))
    assert zd.verify(made.certificate(zd.ApproxDP(1, log_delta)))
    assert 0 < len(looks) < 50


# What people read.


@spaces
def test_a_plan_prints_as_a_short_table(name: str) -> None:
    for plan in (
        zd.plan(SPACES[name], epsilon=0.83, mixing_probability=0.013, sensitivity=0.07),
        zd.plan(SPACES[name], epsilon=0.83, mixing_probability=0.013, base=zd.GaussianDP(0.03)),
    ):
        text = repr(plan)
        assert "ε ≈ 0.83" in text
        assert re.search(r"\d{13}", text) is None
        assert max(map(len, text.splitlines())) <= 100
        assert text.count("->") == 1
        assert f"{plan.log_delta:.6g}" in text
    release = plan.purify(None)
    assert re.search(r"\d{18}", repr(release)) is None
    assert "ε ≈ 0.83" in release.certificate.explain()
    assert "ε = 3/7" in repr(zd.plan(SPACES[name], epsilon="3/7"))


def test_a_large_epsilon_is_asked_about_and_refusals_print_no_giant_fractions() -> None:
    assert "beware" not in repr(zd.plan(zd.Finite(9), epsilon=5))
    assert "beware: ε = 5.01 is large" in repr(zd.plan(zd.Finite(9), epsilon="5.01"))
    with pytest.raises(GuaranteeError, match=r"ε ≈ 0\.83 ") as caught:
        zd.plan(zd.Finite(9), epsilon=0.83, base=zd.ApproxDP(0.83, -1.0))
    assert re.search(r"\d{13}", str(caught.value)) is None
