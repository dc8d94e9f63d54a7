"""Events of dp-accounting: each is converted or refused, and no ln δ is below the truth."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pytest
from mpmath import mp, mpf

from zerodelta.channels.purification import plan
from zerodelta.errors import ParameterError
from zerodelta.interop.dp_accounting import _CONVERTED, _REFUSED, claim
from zerodelta.privacy.claims import RDP, ZCDP, GaussianDP, PureDP
from zerodelta.privacy.composition import Composed
from zerodelta.privacy.parameters import Neighbors
from zerodelta.privacy.theorems.subsampling import PoissonGaussianCurve
from zerodelta.spaces import Finite

da: Any = pytest.importorskip("dp_accounting", reason="the bridge's extra is not installed")

ADD_REMOVE, REPLACE = Neighbors.ADD_REMOVE, Neighbors.REPLACE
EPSILONS = (Fraction(1, 2), Fraction(1), Fraction(4))


@pytest.fixture(autouse=True)
def _many_digits() -> Iterator[None]:
    with mp.workdps(40):
        yield


def events() -> dict[str, type]:
    """Every kind of event of the installed version."""
    classes = inspect.getmembers(da.dp_event, inspect.isclass)
    return {name: each for name, each in classes if issubclass(each, da.DpEvent)}


GAUSSIAN, LAPLACE = da.GaussianDpEvent(2.0), da.LaplaceDpEvent(1.5)

EXAMPLES: dict[str, tuple[Any, str]] = {
    "ComposedDpEvent": (da.ComposedDpEvent([GAUSSIAN, LAPLACE]), "both"),
    "DiscreteLaplaceDpEvent": (da.dp_event.DiscreteLaplaceDpEvent(0.5, 2), "both"),
    "DpEvent": (da.DpEvent(), "neither"),
    "GaussianDpEvent": (GAUSSIAN, "both"),
    "LaplaceDpEvent": (LAPLACE, "both"),
    "MixtureOfGaussiansDpEvent": (
        da.dp_event.MixtureOfGaussiansDpEvent(1.0, [0.0, 1.0], [0.5, 0.5]),
        "neither",
    ),
    "NoOpDpEvent": (da.NoOpDpEvent(), "both"),
    "NonPrivateDpEvent": (da.NonPrivateDpEvent(), "neither"),
    "PoissonSampledDpEvent": (da.PoissonSampledDpEvent(0.25, GAUSSIAN), "add-remove"),
    "RandomizedResponseDpEvent": (da.RandomizedResponseDpEvent(0.5, 4), "replace"),
    "RepeatAndSelectDpEvent": (da.dp_event.RepeatAndSelectDpEvent(GAUSSIAN, 2.0, 1.0), "neither"),
    "SampledWithReplacementDpEvent": (
        da.SampledWithReplacementDpEvent(100, 10, GAUSSIAN),
        "neither",
    ),
    "SampledWithoutReplacementDpEvent": (
        da.SampledWithoutReplacementDpEvent(100, 10, GAUSSIAN),
        "replace",
    ),
    "SelfComposedDpEvent": (da.SelfComposedDpEvent(GAUSSIAN, 3), "both"),
    "SingleEpochTreeAggregationDpEvent": (
        da.SingleEpochTreeAggregationDpEvent(1.0, 4),
        "neither",
    ),
    "TruncatedSubsampledGaussianDpEvent": (
        da.TruncatedSubsampledGaussianDpEvent(100, 0.1, 20, 1.0),
        "neither",
    ),
    "UnsupportedDpEvent": (da.UnsupportedDpEvent(), "neither"),
    "ZCDpEvent": (da.ZCDpEvent(0.125, 0.5), "both"),
}
"""One event of each kind, and under which relations it is converted."""


def test_every_event_of_the_installed_version_was_decided_upon() -> None:
    assert events().keys() == EXAMPLES.keys()
    taken_apart = {"ComposedDpEvent", "NoOpDpEvent", "SelfComposedDpEvent"}
    assert events().keys() == {*_CONVERTED, *_REFUSED, *taken_apart}


@pytest.mark.parametrize("relation", Neighbors, ids=lambda relation: relation.value)
@pytest.mark.parametrize("name", EXAMPLES)
def test_every_event_is_converted_or_refused(name: str, relation: Neighbors) -> None:
    event, converted = EXAMPLES[name]
    if converted in ("both", relation.value):
        found = claim(event, neighbors=relation)
        assert found.neighbors is relation
        assert 0.0 >= found.log_delta(1) >= found.log_delta(4)
    else:
        with pytest.raises(ParameterError, match=name):
            claim(event, neighbors=relation)


def test_a_refusal_says_why() -> None:
    reasons = {
        "PoissonSampledDpEvent": (REPLACE, "added or removed"),
        "SampledWithoutReplacementDpEvent": (ADD_REMOVE, "replaced"),
        "RandomizedResponseDpEvent": (ADD_REMOVE, "replaced"),
    }
    for name, (relation, reason) in reasons.items():
        with pytest.raises(ParameterError, match=reason):
            claim(EXAMPLES[name][0], neighbors=relation)
    for name, reason in _REFUSED.items():
        with pytest.raises(ParameterError) as refusal:
            claim(EXAMPLES[name][0], neighbors=REPLACE)
        assert reason in str(refusal.value)


def test_there_is_no_default_relation() -> None:
    with pytest.raises(TypeError, match="neighbors"):
        claim(GAUSSIAN)  # type: ignore[call-arg]
    with pytest.raises(ParameterError, match="neighbors"):
        claim(GAUSSIAN, neighbors="replace")


def test_their_names_of_relations_are_understood_and_zeroing_out_is_refused() -> None:
    theirs = da.NeighboringRelation
    assert claim(GAUSSIAN, neighbors=theirs.ADD_OR_REMOVE_ONE) == claim(
        GAUSSIAN, neighbors=ADD_REMOVE
    )
    assert claim(GAUSSIAN, neighbors=theirs.REPLACE_ONE) == claim(GAUSSIAN, neighbors=REPLACE)
    understood = {theirs.ADD_OR_REMOVE_ONE, theirs.REPLACE_ONE}
    for other in set(theirs) - understood:
        with pytest.raises(ParameterError, match=other.name):
            claim(GAUSSIAN, neighbors=other)
    assert theirs.REPLACE_SPECIAL not in understood


def test_a_subclass_may_mean_anything_and_is_refused() -> None:
    class GaussianDpEvent(da.GaussianDpEvent):  # type: ignore[misc]
        """Of a third party."""

    for other in (GaussianDpEvent(5.0), 3, None, "GaussianDpEvent"):
        with pytest.raises(ParameterError, match="event"):
            claim(other, neighbors=REPLACE)


def test_numbers_are_exact() -> None:
    assert claim(da.GaussianDpEvent(5), neighbors=ADD_REMOVE) == GaussianDP(
        mu_squared="1/25", neighbors=ADD_REMOVE
    )
    assert claim(da.GaussianDpEvent(5), neighbors=REPLACE) == GaussianDP(mu_squared="4/25")
    assert claim(da.LaplaceDpEvent(4.0), neighbors=REPLACE) == PureDP("1/2")
    assert claim(da.LaplaceDpEvent(4.0), neighbors=ADD_REMOVE) == PureDP(
        "1/4", neighbors=ADD_REMOVE
    )
    discrete = da.dp_event.DiscreteLaplaceDpEvent(0.25, 3)
    assert claim(discrete, neighbors=REPLACE) == PureDP("3/2")
    assert claim(discrete, neighbors=ADD_REMOVE) == PureDP("3/4", neighbors=ADD_REMOVE)
    assert claim(da.ZCDpEvent(0.125), neighbors=REPLACE) == ZCDP("1/8")
    assert claim(da.NoOpDpEvent(), neighbors=REPLACE) == PureDP(0)


def test_compositions_are_flattened_first() -> None:
    tree = da.ComposedDpEvent(
        [
            da.SelfComposedDpEvent(da.ComposedDpEvent([GAUSSIAN, da.NoOpDpEvent()]), 3),
            da.ComposedDpEvent([GAUSSIAN, da.SelfComposedDpEvent(da.NonPrivateDpEvent(), 0)]),
        ]
    )
    assert claim(tree, neighbors=ADD_REMOVE) == GaussianDP(1, neighbors=ADD_REMOVE)
    small = da.SelfComposedDpEvent(da.LaplaceDpEvent(200.0), 1000)
    many = claim(small, neighbors=REPLACE)
    assert isinstance(many, Composed)
    assert many.pure == ((Fraction(1, 100), False, 1000),)
    assert many.log_delta(1) < PureDP(10).log_delta(1)
    event: Any = GAUSSIAN
    for _ in range(5000):
        event = da.SelfComposedDpEvent(event, 1)
    assert claim(event, neighbors=REPLACE) == GaussianDP(1)


def test_samples_of_everything_or_nothing_are_not_samples() -> None:
    for inner in (GAUSSIAN, LAPLACE, da.ComposedDpEvent([GAUSSIAN, LAPLACE])):
        poisson = da.PoissonSampledDpEvent(1.0, inner)
        assert claim(poisson, neighbors=ADD_REMOVE) == claim(inner, neighbors=ADD_REMOVE)
        batch = da.SampledWithoutReplacementDpEvent(7, 7, inner)
        assert claim(batch, neighbors=REPLACE) == claim(inner, neighbors=REPLACE)
    nothing = da.PoissonSampledDpEvent(0.0, GAUSSIAN)
    assert claim(nothing, neighbors=ADD_REMOVE) == PureDP(0, neighbors=ADD_REMOVE)


def test_other_events_in_a_sample_are_refused() -> None:
    mixed = da.ComposedDpEvent([GAUSSIAN, LAPLACE])
    twice = da.PoissonSampledDpEvent(0.5, GAUSSIAN)
    for inner in (mixed, twice, da.ZCDpEvent(0.1)):
        with pytest.raises(ParameterError, match="no theorem"):
            claim(da.PoissonSampledDpEvent(0.5, inner), neighbors=ADD_REMOVE)
    for inner in (mixed, LAPLACE, da.ZCDpEvent(0.1)):
        with pytest.raises(ParameterError, match="no theorem"):
            claim(da.SampledWithoutReplacementDpEvent(9, 3, inner), neighbors=REPLACE)


@pytest.mark.parametrize(
    "event",
    [
        da.GaussianDpEvent(0.0),
        da.GaussianDpEvent(-1.0),
        da.GaussianDpEvent(math.nan),
        da.GaussianDpEvent(math.inf),
        da.LaplaceDpEvent(0),
        da.dp_event.DiscreteLaplaceDpEvent(0.0, 1),
        da.ZCDpEvent(-0.1),
        da.ZCDpEvent(0.1, -0.1),
        da.RandomizedResponseDpEvent(0.0, 4),
        da.RandomizedResponseDpEvent(1.5, 4),
        da.SelfComposedDpEvent(GAUSSIAN, -1),
        da.SelfComposedDpEvent(GAUSSIAN, 2.5),
        da.SampledWithoutReplacementDpEvent(5, 6, GAUSSIAN),
        da.ComposedDpEvent(GAUSSIAN),
        da.ComposedDpEvent(None),
    ],
    ids=str,
)
def test_malformed_numbers_are_refused(event: Any) -> None:
    with pytest.raises(ParameterError):
        claim(event, neighbors=REPLACE)


def test_hardly_any_noise_hides_nothing() -> None:
    """Numbers beyond what floats hold, where the order is chosen in floats."""
    none = da.GaussianDpEvent(1e-300)
    poisson = claim(da.PoissonSampledDpEvent(0.1, none), neighbors=ADD_REMOVE)
    assert poisson.log_delta(1) == 0.0
    batch = claim(da.SampledWithoutReplacementDpEvent(100, 10, none), neighbors=REPLACE)
    assert batch.log_delta(1) == 0.0


def test_malformed_sampling_probabilities_are_refused() -> None:
    for rate in (-0.1, 1.1, math.nan):
        with pytest.raises(ParameterError, match="sampling_probability"):
            claim(da.PoissonSampledDpEvent(rate, GAUSSIAN), neighbors=ADD_REMOVE)


# The truth: the hockey-stick divergence of two neighbors that the event allows, in 40 digits.


@dataclass(frozen=True)
class Mixture:
    """Normal distributions of one scale: weights by center."""

    weights: dict[int, mpf]
    sigma: mpf

    def density(self, x: mpf) -> mpf:
        return mp.fsum(w * mp.npdf(x, c, self.sigma) for c, w in self.weights.items())

    def above(self, x: mpf) -> mpf:
        return mp.fsum(w * mp.ncdf((c - x) / self.sigma) for c, w in self.weights.items())

    def mirrored(self) -> Mixture:
        return Mixture({-c: w for c, w in self.weights.items()}, self.sigma)


def hockey_stick(p: Mixture, q: Mixture, epsilon: Fraction) -> mpf:
    """Return P(A) - e^ε Q(A) of the half-line A where p > e^ε q; p/q rises with x.

    That is the divergence, and of any other half-line it would be a lower bound on it.
    """
    factor = mp.exp(mpf(epsilon.numerator) / epsilon.denominator)
    low, high = mpf(-60), mpf(60)
    for _ in range(100):
        middle = (low + high) / 2
        if p.density(middle) < factor * q.density(middle):
            low = middle
        else:
            high = middle
    return p.above(high) - factor * q.above(high)


def never_below(event: Any, relation: Neighbors, truth: Callable[[Fraction], mpf]) -> None:
    found = claim(event, neighbors=relation)
    for epsilon in EPSILONS:
        exact = truth(epsilon)
        if exact > 0:
            assert mpf(found.log_delta(epsilon)) >= mp.log(exact), epsilon


def test_randomized_responses_are_never_below_the_truth() -> None:
    """(Other pure events and Gaussian ones are claims of the same name, with the same numbers.)"""

    def answered(t: Fraction) -> mpf:
        noise = mpf("0.1")
        return 1 - noise + noise / 5 - mp.exp(mpf(t.numerator) / t.denominator) * noise / 5

    never_below(da.RandomizedResponseDpEvent(0.1, 5), REPLACE, answered)


def test_compositions_are_never_below_the_truth() -> None:
    """Gaussian noise and answers of two kinds: a binomial mixture of shifted Gaussian profiles."""
    noise, answers, mu = mpf("0.75"), 3, mpf(2) / 4
    own = 1 - noise / 2
    loss = mp.log(own / (1 - own))

    def truth(t: Fraction) -> mpf:
        total = mpf(0)
        for told in range(answers + 1):
            rest = mpf(t.numerator) / t.denominator - (2 * told - answers) * loss
            profile = mp.ncdf(-rest / mu + mu / 2) - mp.exp(rest) * mp.ncdf(-rest / mu - mu / 2)
            chance = mp.binomial(answers, told) * own**told * (1 - own) ** (answers - told)
            total += chance * profile
        return total

    gaussian, answer = da.GaussianDpEvent(4.0), da.RandomizedResponseDpEvent(0.75, 2)
    exact = da.ComposedDpEvent([gaussian, da.SelfComposedDpEvent(answer, answers)])
    never_below(exact, REPLACE, truth)
    # R(a) of the Gaussian step is aμ²/2, that of all answers at most their loss
    never_below(da.ZCDpEvent(0.125, float(answers * loss) * (1 + 1e-15)), REPLACE, truth)
    batch = da.SampledWithoutReplacementDpEvent(9, 9, exact)
    never_below(batch, REPLACE, truth)


@pytest.mark.parametrize(("rate", "multiplier"), [(0.25, 1.0), (0.01, 0.5), (0.5, 4.0)])
def test_poisson_samples_are_never_below_the_truth_in_both_directions(
    rate: float, multiplier: float
) -> None:
    sigma = mpf(multiplier)
    absent, present = Mixture({0: mpf(1)}, sigma), Mixture({0: 1 - mpf(rate), 1: mpf(rate)}, sigma)
    event = da.PoissonSampledDpEvent(rate, da.GaussianDpEvent(multiplier))
    never_below(event, ADD_REMOVE, lambda t: hockey_stick(present, absent, t))
    never_below(event, ADD_REMOVE, lambda t: hockey_stick(absent, present.mirrored(), t))


@pytest.mark.parametrize(("rows", "batch", "multiplier"), [(4, 1, 1.0), (100, 1, 0.5), (3, 2, 2.0)])
def test_samples_without_replacement_are_never_below_the_truth(
    rows: int, batch: int, multiplier: float
) -> None:
    rate = mpf(batch) / rows
    one = Mixture({0: 1 - rate, 1: rate}, mpf(multiplier))
    event = da.SampledWithoutReplacementDpEvent(rows, batch, da.GaussianDpEvent(multiplier))
    never_below(event, REPLACE, lambda t: hockey_stick(one, one.mirrored(), t))


def test_pure_events_on_poisson_samples_are_tight() -> None:
    for rate, multiplier in ((0.25, 0.5), (0.001, 0.1)):
        inner = da.SelfComposedDpEvent(da.LaplaceDpEvent(multiplier), 2)
        found = claim(da.PoissonSampledDpEvent(rate, inner), neighbors=ADD_REMOVE)
        assert isinstance(found, PureDP)
        truth = mp.log(1 + mpf(rate) * mp.expm1(2 / mpf(multiplier)))
        stated = mpf(found.exact_epsilon.numerator) / found.exact_epsilon.denominator
        assert truth <= stated <= truth * (1 + mpf("1e-15"))


@pytest.mark.parametrize("order", [2, 3, 8])
@pytest.mark.parametrize(("rate", "mu"), [("1/100", "1/2"), ("1/2", 1), ("1/10", 2)])
def test_the_poisson_curve_is_the_worse_direction_exactly(
    rate: str, mu: str | int, order: int
) -> None:
    probability, shift = Fraction(rate), Fraction(mu)
    curve = PoissonGaussianCurve(probability=probability, mu_squared=shift**2)
    q, m = mpf(probability.numerator) / probability.denominator, mpf(float(shift))
    marks = [-m * order - 20, -10, -3, 0, *(m * k for k in range(1, order + 1, 2)), m * order + 20]

    def divergence(power: int) -> mpf:
        def weighed(x: mpf) -> mpf:
            return mp.npdf(x) * (1 - q + q * mp.exp(m * x - m**2 / 2)) ** power

        return mp.log(mp.quad(weighed, sorted(marks))) / (order - 1)

    worse, better = divergence(order), divergence(1 - order)
    plain = mpf(order) * m**2 / 2
    stated = curve.value(Fraction(order))
    value = mpf(stated.numerator) / stated.denominator
    assert better <= worse
    assert min(worse, plain) * (1 - mpf("1e-12")) <= value <= worse * (1 + mpf("1e-12"))
    assert curve.estimate(order) == pytest.approx(float(worse), rel=1e-7)


def test_gaussian_noise_under_replace_agrees_with_the_exact_accountant() -> None:
    accountant = da.pld.PLDAccountant(da.NeighboringRelation.REPLACE_ONE)
    accountant.compose(da.GaussianDpEvent(5.0))
    ours = claim(da.GaussianDpEvent(5.0), neighbors=REPLACE).epsilon(math.log(1e-5))
    assert ours == pytest.approx(accountant.get_epsilon(1e-5), abs=1e-6)
    assert round(ours, 3) == 1.555


def test_a_tree_is_planned_with_and_what_rests_on_it_is_asserted() -> None:
    event = da.SelfComposedDpEvent(da.PoissonSampledDpEvent(0.01, da.GaussianDpEvent(1.5)), 1000)
    base = claim(event, neighbors=ADD_REMOVE)
    assert isinstance(base, RDP)
    made = plan(Finite(16), epsilon=2, base=base)
    certificate = made.purify(3).certificate
    assert certificate.status.value == "asserted"
    assert certificate.claim == PureDP(2, neighbors=ADD_REMOVE)
