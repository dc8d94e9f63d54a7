"""The channels a plan is asked for by name: they hold by independent arithmetic, and exactly."""

from __future__ import annotations

import functools
import itertools
import math
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

import zerodelta as zd
from channels.channel_laws import row, rows_of
from channels.verdicts import exp_below, is_pure
from privacy.chains import forged
from zerodelta.audit.exact import certainly_pure
from zerodelta.channels.kernels import SmoothMix
from zerodelta.channels.mixes import LocalUniformMix, PriorMix, ProfileMix
from zerodelta.errors import CertificateError, GuaranteeError, ParameterError
from zerodelta.privacy.steps import Status

F = Fraction
SPACES: list[Any] = [
    zd.Finite(7),
    zd.purification.Subsets(of=9, size=2),
    zd.Box(0, 1),
    zd.Box([-1, 0], [1, 5]),
    zd.Ball(3, 1),
    zd.Ball(3, 1, norm=1),
    zd.Ball(3, 1, norm=math.inf),
]
OPTIONS: list[dict[str, Any]] = [
    {},
    {"sensitivity": "1/100"},
    {"resolution": "1/10"},
    {"base": zd.GaussianDP("1/30")},
]


def real(value: Any) -> mpf:
    exact = Fraction(value)
    return mpf(exact.numerator) / exact.denominator


# --- the choice ----------------------------------------------------------------------------------


@pytest.mark.parametrize("space", SPACES, ids=repr)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_every_row_of_the_table_can_be_asked_for(space: Any, options: dict[str, Any]) -> None:
    for candidate in zd.plan(space, epsilon=1, **options).candidates:
        plan = zd.plan(space, epsilon=1, channel=candidate.channel, **options)
        assert plan.candidates[0].channel == candidate.channel
        assert 0 < plan.mixing_weight <= F(1, 100)
        claim = plan.base or zd.ApproxDP(1, plan.log_delta)
        release = plan.purify([0.1, 0.2, 0.3], claim=claim)
        assert zd.verify(release.certificate.to_json())
        assert space.contains(release.value)
        assert f"-> {candidate.channel} " in repr(plan)
        assert max(map(len, repr(plan).splitlines())) <= 100


@pytest.mark.parametrize("space", SPACES, ids=repr)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_nothing_with_a_reservation_is_chosen_silently(space: Any, options: dict[str, Any]) -> None:
    first, *others = zd.plan(space, epsilon=1, **options).candidates
    assert not first.reservation
    assert {other.channel for other in others if other.reservation} <= {"smooth", "local-uniform"}


@pytest.mark.parametrize(
    ("space", "options"),
    [
        (zd.Finite(3), {"channel": "grid"}),
        (zd.Finite(3), {"channel": "prior"}),
        (zd.Finite(3), {"channel": "profile"}),
        (zd.Box(0, 1), {"channel": "gaussian"}),
        (zd.Box(0, 1), {"channel": "smooth", "sensitivity": 1}),
        (zd.Ball(2, 1), {"channel": 3}),
        (zd.Ball(2, 1), {"channel": "smooth"}),
        (zd.Ball(2, 1), {"channel": "smooth", "sensitivity": 1, "base": zd.GaussianDP("1/9")}),
    ],
)
def test_a_channel_that_does_not_fit_is_refused(space: Any, options: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match=r"^channel = "):
        zd.plan(space, epsilon=1, **options)


def test_theorem_s_cannot_be_had_without_its_plan() -> None:
    """`purify` has no sensitivity: the noise must be planned before it is drawn."""
    with pytest.raises(ParameterError, match=r"sensitivity=….*plan\.purify"):
        zd.purify([0.0], space=zd.Ball(1, 1), claim=zd.GaussianDP(1), epsilon=1, channel="smooth")


# --- Theorem S -----------------------------------------------------------------------------------


@cache
def smooth_plan(
    dimension: int, rows: int, *, epsilon: Any = 1, mixing_probability: Any = "0.01", **options: Any
) -> zd.purification.Plan:
    """A vector of the unit ball that one of `rows` rows moves by 2/rows."""
    return zd.plan(
        zd.Ball(dimension, 1, **options),
        epsilon=epsilon,
        mixing_probability=mixing_probability,
        sensitivity=F(2, rows),
        channel="smooth",
    )


def s2_slack(plan: zd.purification.Plan) -> mpf:
    """Right side minus left side of S2, from the plan's public numbers in the ball's own units."""
    channel, ball = plan.purifier, plan.space
    assert isinstance(channel, SmoothMix)
    assert isinstance(ball, zd.Ball)
    assert plan.variance is not None
    assert plan.sensitivity is not None
    with mp.workdps(50):
        a, w, t = real(channel.order), real(channel.mixing_weight), real(plan.epsilon)
        variance, moved = real(plan.variance), real(plan.sensitivity)
        wide = real(channel.mixing_variance * channel.spacing**2)
        rho = moved**2 / (2 * variance)
        left = (
            (a - 1) * mp.log(a - 1)
            - a * mp.log(a)
            + (a - 1) * (a * rho - t)
            + mpf(ball.dimension) / 2 * mp.log(wide / variance)
            + (real(ball.radius) + (a - 1) * moved) ** 2 / (2 * (wide - variance))
        )
        return mp.log(w / (1 - w)) + mp.log(mp.expm1(t)) - left


@pytest.mark.parametrize(
    ("dimension", "rows", "stated"), [(10, 10**3, 2.65), (10, 10**5, 3.88), (50, 10**3, 2.18)]
)
def test_theorem_s_wins_by_what_the_theory_says(dimension: int, rows: int, stated: float) -> None:
    """Theory S's table, whose noise is for the whole mixing probability of 1 %."""
    plan = smooth_plan(dimension, rows)
    assert plan.sigma is not None
    unit = 2 * dimension / rows
    noise = math.sqrt(dimension) * plan.sigma
    assert stated * 0.99 < noise / unit < stated * 1.06
    assert plan.predicted_error < stated * 1.01 * unit + 0.01 * math.sqrt(2)
    others = [other.error for other in plan.candidates[1:]]
    assert {other.channel for other in plan.candidates[1:]} == {"gaussian", "grid", "kernel"}
    assert plan.predicted_error < 0.93 * min(others)
    largest = zd.plan(zd.Ball(dimension, 1), epsilon=1, sensitivity=F(2, rows))
    assert largest.predicted_error == pytest.approx(min(others), rel=1e-3)


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from([1, 2, 3, 10, 100, 1000]),
    st.sampled_from([2, 5, 100, 10**4]),
    st.sampled_from(["1/10", 1, 0.83, 4]),
    st.sampled_from(["1e-9", "0.01", "0.3", "0.99"]),
)
def test_the_planned_noise_is_the_least_that_s2_allows(
    dimension: int, rows: int, epsilon: Any, mixing_probability: Any
) -> None:
    plan = smooth_plan(dimension, rows, epsilon=epsilon, mixing_probability=mixing_probability)
    assert plan.base == zd.GaussianDP(mu_squared=2 * plan.rho)
    assert plan.sensitivity is not None
    assert plan.variance == plan.sensitivity**2 / (2 * plan.rho)
    assert plan.log_delta == plan.base.log_delta(plan.epsilon)
    assert 0 <= s2_slack(plan) < mpf(10) ** -4 * (1 + dimension)
    assert plan.mixing_weight <= F(mixing_probability)
    certificate = plan.certificate(plan.base)
    assert zd.verify(certificate)
    assert certificate.status is Status.ASSERTED
    assert "raw vector" in certificate.assumed[0]


def test_half_the_noise_is_caught_by_verify() -> None:
    plan = smooth_plan(10, 1000)
    assert plan.base is not None
    certificate = plan.certificate(plan.base)
    variance = F(str(certificate.steps[-1].numbers["variance"]))

    def less(data: Any, share: Fraction) -> None:
        data["parts"][0]["steps"][0]["numbers"]["mu_squared"] = str(2 * plan.rho / share)
        data["parts"][0]["steps"][1]["numbers"]["variance"] = str(variance * share)

    for share in (F(1, 4), 1 - F(1, 10**6)):
        with pytest.raises(CertificateError, match="understated"):
            zd.verify(forged(certificate, functools.partial(less, share=share)))

    def hidden(data: Any) -> None:
        data["parts"][0]["steps"][1]["numbers"]["variance"] = str(variance / 4)

    with pytest.raises(CertificateError, match="last Gaussian step"):
        zd.verify(forged(certificate, hidden))


@pytest.mark.parametrize("factor", [F(4), 1 + F(1, 10**5), 1 - F(1, 10**9), F(1, 4)])
def test_other_noise_than_planned_is_refused(factor: Fraction) -> None:
    """Less noise breaks S2, and more is a mechanism that the step does not describe."""
    plan = smooth_plan(10, 1000)
    with pytest.raises(GuaranteeError, match="exactly the planned variance"):
        plan.purify(np.zeros(10), claim=zd.GaussianDP(mu_squared=2 * plan.rho * factor))
    with pytest.raises(GuaranteeError, match="zCDP"):
        plan.purify(np.zeros(10), claim=zd.ApproxDP(1, -1000.0))


@settings(max_examples=80, deadline=None)
@given(
    st.lists(
        st.floats(-1e300, 1e300) | st.integers(-(10**30), 10**30) | st.fractions(),
        min_size=2,
        max_size=2,
    )
)
def test_a_raw_vector_is_rounded_as_exactly_as_the_mixing_draw(raw: list[Any]) -> None:
    center = (F(1, 3), F(-2, 7))
    channel = smooth_plan(2, 100, center=center).purifier
    assert isinstance(channel, SmoothMix)
    expected = [
        math.floor((F(x) - c) / channel.spacing + F(1, 2)) for x, c in zip(raw, center, strict=True)
    ]
    assert channel.on_lattice(raw).tolist() == expected


def test_ties_go_up_and_their_neighbors_where_they_belong() -> None:
    channel = smooth_plan(1, 100).purifier
    assert isinstance(channel, SmoothMix)
    tie = channel.spacing * F(5, 2)
    for value, integer in [(tie, 3), (tie - F(1, 10**30), 2), (-tie, -2), (-tie - F(1, 9**40), -3)]:
        assert channel.on_lattice([value]).tolist() == [integer]


def test_the_raw_vector_is_not_projected_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the mass outside the ball piles up on its surface, where mixing has none."""
    plan = smooth_plan(2, 5)
    handed: list[Any] = []
    real_apply = SmoothMix.apply

    def apply(self: SmoothMix, value: Any, bits: Any) -> Any:
        handed.append(value)
        return real_apply(self, value, bits)

    monkeypatch.setattr(SmoothMix, "apply", apply)
    release = plan.purify([30.0, -40.0])
    channel = plan.purifier
    assert isinstance(channel, SmoothMix)
    assert handed[0].tolist() == [round(30 / channel.spacing), round(-40 / channel.spacing)]
    assert plan.space.contains(release.value)


def test_a_planned_theorem_s_publishes_around_the_center_of_the_ball() -> None:
    plan = zd.plan(
        zd.Ball(2, 1, center=[50, -7]), epsilon=1, sensitivity="1/1000", channel="smooth"
    )
    seen = [plan.purify([50.25, -7.5]).value for _ in range(20)]
    near = [np.abs(value - [50.25, -7.5]).max() < 0.01 for value in seen]
    assert sum(near) >= 18


# --- priors and profiles -------------------------------------------------------------------------


def test_a_prior_takes_the_smallest_weight_that_b1_allows() -> None:
    claim = zd.ApproxDP(1, -9.0)
    plan = zd.plan(zd.Finite(3), epsilon=1, base=claim, prior=["0.5", "0.3", "0.2"])
    assert isinstance(plan.purifier, PriorMix)
    assert plan.purifier.prior == (5, 3, 2)
    assert [candidate.channel for candidate in plan.candidates] == ["prior", "uniform"]
    with mp.workdps(50):
        smallest = 1 / (1 + mp.expm1(1) / 5 / mp.exp(-9))
        assert smallest <= real(plan.mixing_weight) <= smallest * (1 + mpf(10) ** -8)
    release = zd.purify(1, space=zd.Finite(3), claim=claim, epsilon=1, prior=[5, 3, 2])
    assert release.certificate == plan.certificate(claim)
    assert zd.verify(release.certificate.to_json())
    uniform = zd.plan(zd.Finite(3), epsilon=1, base=claim, prior=[5, 3, 2], channel="uniform")
    assert uniform.mixing_weight < plan.mixing_weight


@settings(max_examples=15, deadline=None)
@given(st.lists(st.integers(1, 50), min_size=2, max_size=3), st.sampled_from([F(1, 10), F(1)]))
def test_a_planned_prior_is_pure_for_all_extreme_bases(prior: list[int], epsilon: Fraction) -> None:
    plan = zd.plan(zd.Finite(len(prior)), epsilon=epsilon, mixing_probability="1/20", prior=prior)
    rows = rows_of(plan.purifier)
    delta = exp_below(plan.log_delta)
    assert is_pure(rows, factor=exp_below(epsilon), delta=delta, epsilon=epsilon)


probabilities = st.lists(st.integers(0, 1000), min_size=3, max_size=3).filter(any)


@settings(max_examples=60, deadline=None)
@given(probabilities, probabilities)
def test_a_planned_profile_is_pure_for_the_pair_it_describes(
    first: list[int], second: list[int]
) -> None:
    epsilon = F(1)
    p, q = ([F(x, sum(law)) for x in law] for law in (first, second))
    grown = exp_below(epsilon)  # a smaller factor gives a larger profile
    profile = [max(a - grown * b, b - grown * a, F(0)) for a, b in zip(p, q, strict=True)]
    if not any(profile):
        return
    plan = zd.plan(zd.Finite(3), epsilon=epsilon, mixing_probability="0.99", profile=profile)
    assert isinstance(plan.purifier, ProfileMix)
    laws = [
        {z: sum(p_y * row(plan.purifier, y)[z] for y, p_y in enumerate(law)) for z in range(3)}
        for law in (p, q)
    ]
    assert certainly_pure(laws[0], laws[1], epsilon)
    assert certainly_pure(laws[1], laws[0], epsilon)


def test_a_profile_needs_no_claim_and_less_weight_than_uniform_mixing() -> None:
    profile: list[Any] = ["1e-6", "1e-9", 0, "1e-4"]
    plan = zd.plan(zd.Finite(4), epsilon=1, profile=profile)
    with mp.workdps(50):
        odds = real(F("0.000101001")) / mp.expm1(1)
        smallest = odds / (1 + odds)
        assert smallest <= real(plan.mixing_weight) <= smallest * (1 + mpf(10) ** -8)
    release = plan.purify(3)
    assert zd.verify(release.certificate.to_json())
    assert [step.theorem for step in release.certificate.steps] == ["profile-mixing"]
    assert "profile" in release.certificate.assumed[0]
    uniform = next(other for other in plan.candidates if other.channel == "uniform")
    assert uniform.weight > 3 * plan.mixing_weight
    assert plan.log_delta == -math.inf  # no claim implies a bound of 0 at element 2
    assert plan.rho == 0
    whole = zd.plan(zd.Finite(2), epsilon=1, profile=["1e-6", "1e-4"])
    assert whole.log_delta == pytest.approx(math.log(1e-6), rel=1e-9)
    assert zd.verify(zd.purify(0, space=zd.Finite(2), epsilon=1, profile=[0, "0.001"]).certificate)


def test_a_profile_beyond_the_failure_probability_is_refused() -> None:
    with pytest.raises(GuaranteeError, match="larger ε or mixing"):
        zd.plan(zd.Finite(2), epsilon=1, profile=["0.1", "0.1"])
    assert zd.plan(zd.Finite(2), epsilon=1, mixing_probability="0.2", profile=["0.1", "0.1"])


@pytest.mark.parametrize("name", ["prior", "profile"])
@pytest.mark.parametrize("bad", [[1], [1, 2, 3], [1, -1], [1, math.nan], "ab", 3, ["x", 1], [0, 0]])
def test_malformed_priors_and_profiles_are_refused_by_name(name: str, bad: Any) -> None:
    for space, listed in ((zd.Finite(2), bad), (zd.Box(0, 1), [1, 1])):
        options: dict[str, Any] = {name: listed}
        with pytest.raises(ParameterError, match=rf"^{name} = "):
            zd.plan(space, epsilon=1, **options)


# --- local uniform kernels ------------------------------------------------------------------------


def test_a_local_kernel_has_the_nats_of_the_grid_and_is_unbiased_inside() -> None:
    base = zd.ApproxDP(1, -12.0)
    box = zd.Box(0, 1)
    grid = zd.plan(box, epsilon=1, base=base)
    plan = zd.plan(box, epsilon=1, base=base, channel="local-uniform")
    channel = plan.purifier
    assert isinstance(channel, LocalUniformMix)
    assert channel.log_mass == pytest.approx(grid.candidates[0].log_ratio, abs=0.02)
    assert plan.predicted_error == pytest.approx(grid.predicted_error, rel=0.02)
    cells, m = channel.lattice.cells, channel.kernel_cells
    for cell in (m, cells // 2, cells - m - 1):
        kept = row(channel, channel.lattice.points(np.array([cell])))
        share = channel.mixing_weight / cells
        window = {z[0]: p - share for z, p in kept.items() if p != share}
        assert len(window) == m
        assert sum(z * p for z, p in window.items()) == cell * sum(window.values())
    laws = [row(channel, channel.lattice.points(np.array([c]))) for c in (0, 1, cells // 2)]
    for a, b in itertools.permutations(laws, 2):  # each is at most the mass ratio from uniform
        assert max(a[z] / b[z] for z in a) <= 1 + (1 - channel.mixing_weight) * cells / (
            channel.mixing_weight * m
        )
