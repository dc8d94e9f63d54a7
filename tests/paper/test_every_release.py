"""Every release of the paper's algorithms: certificates, spaces, and what rests on the caller."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import zerodelta as zd
from golden.golden import CASES, asked
from paper.free_releases import bounded_local_sensitivity, free_propose_test_release
from replay.cases import NOTHING
from zerodelta.exact.bits import ReplayBits
from zerodelta.exact.integers import proportional_sampling
from zerodelta.marginals.workloads import WORKLOAD
from zerodelta.mechanisms.stable_queries import (
    CALLER_ASSERTED,
    CustomQuery,
    Median,
    StableQuery,
    TrimmedMean,
)
from zerodelta.paper.algorithm_09_10_11 import (
    propose_test_release,
    pure_bounded_local_sensitivity,
    pure_propose_test_release,
)
from zerodelta.paper.algorithm_12_13 import embedded_mode, lattice_adassp, mode, pure_adassp
from zerodelta.paper.algorithm_14_16 import embedded_mwem, multiset_mwem, mwem
from zerodelta.paper.gaussian_statistics import trust_radius
from zerodelta.paper.multiplicative_weights import pure_mwem
from zerodelta.privacy.certificate import BARE_ROWS
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.readable import shown
from zerodelta.privacy.steps import Status
from zerodelta.queries import LinearQueries, Marginals, Workload
from zerodelta.testing import replayed

F = Fraction
RELEASES = [
    case
    for case in CASES
    if case not in NOTHING
    if case.startswith(("paper.", "propose_test_release", "bounded_local_sensitivity"))
]
ON_A_WORD = {
    *("paper.purify_ball", "paper.purify_ball, q=3", "paper.purify_choice"),
    *("paper.mix_choice", "paper.mix_on_grid", "paper.pure_bounded_local_sensitivity"),
    "propose_test_release, own query",
    *(case for case in RELEASES if "frank_wolfe" in case),
}
"""What rests on a claim, a query or a gradient of the caller's."""
LOOSE = ("dp_sgd", "frank_wolfe", "mwem", "mix_choice")
"""Whose composition or given claim leaves some room: their own tests say how little."""
releases = pytest.mark.parametrize("case", RELEASES)


def released(case: str) -> Any:
    called, options = asked(case)
    return CASES[case](called, **options)


@releases
def test_a_certificate_is_proven_survives_json_and_shows_its_numbers(case: str) -> None:
    certificate = released(case).certificate
    assert zd.verify(certificate)
    assert zd.verify(certificate.to_json())
    assert certificate.status is (Status.ASSERTED if case in ON_A_WORD else Status.PROVEN)
    for step in certificate.steps:
        for name, number in step.numbers.items():
            assert name in ("kind", "bounded_range") or shown(number) in certificate.explain()


@releases
def test_replayed_bits_are_never_called_private(case: str) -> None:
    with pytest.raises(zd.errors.CertificateError, match="test bits"):
        zd.verify(replayed("replayed")(released)(case).certificate)


@pytest.mark.parametrize("case", [case for case in RELEASES if not any(x in case for x in LOOSE)])
def test_an_understated_claim_is_refused(case: str) -> None:
    certificate = released(case).certificate
    claim, less = certificate.claim, Fraction(999_999, 10**6)
    ways: dict[str, Callable[[], Any]] = {
        "PureDP": lambda: zd.purification.PureDP(claim.exact_epsilon * less),
        "GaussianDP": lambda: zd.GaussianDP(mu_squared=claim.mu_squared * less),
        "ApproxDP": lambda: zd.ApproxDP(claim.exact_epsilon, claim.exact_log_delta - 1e-6),
    }
    with pytest.raises(zd.errors.CertificateError):
        zd.verify(replace(certificate, claim=ways[type(claim).__name__](), digest=""))


TESTED = ("paper.mode", "paper.propose_test_release", "propose_test_release")


@pytest.mark.parametrize("case", [*TESTED, "bounded_local_sensitivity"])
def test_a_lower_threshold_is_refused(case: str) -> None:
    certificate = released(case).certificate
    (step,) = certificate.steps
    threshold = Fraction(str(step.numbers["threshold"]))
    assert threshold > 0
    numbers = {**step.numbers, "threshold": max(Fraction(0), threshold - 1)}
    with pytest.raises(zd.errors.CertificateError):
        zd.verify(certificate.with_steps((replace(step, numbers=numbers),)))


def test_the_wrong_row_of_the_table_is_refused() -> None:
    certificate = zd.paper.mode([1], universe=4, epsilon=1).certificate
    (step,) = certificate.steps
    for noise, fine in (("discrete", True), ("rounded", False), ("real", False), ("odd", False)):
        numbers = {"points": 4, "epsilon": 1, "threshold": 0, "noise": noise}
        changed = certificate.with_steps((replace(step, numbers=numbers),))
        if fine:
            assert zd.verify(changed)
        else:
            with pytest.raises(zd.errors.CertificateError):
                zd.verify(changed)


# -- mistakes in public inputs --------------------------------------------------------------------

_NUMBER = (0, -1, math.nan, "x")
WRONG: dict[str, tuple[Any, ...]] = {
    "epsilon": (*_NUMBER, None),
    "base_epsilon": (0, -1),
    "rho": _NUMBER,
    "delta": (0.0, -1),
    "log_delta": (0.5, 1.0, -math.inf),
    "mixing_weight": (0, 1, -1, 2),
    "mixing_probability": (0, 1),
    **dict.fromkeys(("radius", "data_norm", "target_bound", "lipschitz"), (0, -1)),
    **dict.fromkeys(("iterations", "rounds", "steps", "sample_size", "measurements"), (0, 2.5)),
    "batch": (0, 10**6),
    "regularization": (-1,),
    "proposed_bound": (0,),
    **dict.fromkeys(("bound_share", "test_share"), (0, 1)),
}
"""By the name of a parameter: values that no release takes."""
_PLANE, _BALL = np.zeros((9, 3)), zd.Ball(3, 1)
_WOLFE: list[dict[str, Any]] = [
    *({"domain": wrong} for wrong in (_BALL, "ball", [[math.nan, 1.0, 0.0]])),
    {"domain": zd.Ball(3, 1, norm=1, center=1)},
    *({"loss": wrong} for wrong in (3, lambda theta, rows: rows[:, 0])),
    {"loss": zd.models.Squared(label_bound=1)},
    {"labels": np.zeros(7)},
    {"features": np.zeros((0, 3))},
]
MISTAKES: dict[str, list[dict[str, Any]]] = {
    "paper.purify_ball": [{"delta": "1e-9"}, {"log_delta": None}, {"base_epsilon": F(3, 2)}],
    "paper.purify_choice": [{"base_epsilon": 2}, {"log_delta": 0.5}],
    "paper.approximate_frank_wolfe": _WOLFE,
    "paper.frank_wolfe_pure": [*_WOLFE, {"smoothness": None, "iterations": None}],
    "paper.pure_frank_wolfe": [
        *_WOLFE,
        *({"sketch": wrong} for wrong in (np.ones((1, 4)), np.full((1, 3), np.inf))),
        {"sketch": np.ones((1, 3)), "measurements": 4},
        *({"composition": "none"}, {"base_epsilon": 1}),
        {"domain": [[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]]},
    ],
    "paper.dp_sgd": [{"log_delta": 0.0, "delta": None}, {"radius": 0}],
    "paper.adassp": [
        {"log_delta": 0.0, "delta": None},
        {"features": _PLANE[:, :0]},
        {"target": np.zeros(3)},
    ],
    "paper.mode": [{"universe": 0}, {"unknown": 77}],
    "bounded_local_sensitivity": [
        {"query": CustomQuery(function=len, grid=zd.Box(0, 1).grid(5), local=lambda rows: 1)},
    ],
}


def refused(case: str, **changes: Any) -> bool:
    """Assert that a golden call is refused with other options."""
    called, options = asked(case)
    names = list(inspect.signature(called).parameters)

    def mistaken(*given: Any, **named: Any) -> Any:
        arguments = {**dict(zip(names, given, strict=False)), **named, **changes}
        with pytest.raises(zd.errors.ParameterError):
            called(**arguments)

    CASES[case](mistaken, **options)
    return True


@releases
def test_a_number_that_no_release_takes_is_refused(case: str) -> None:
    parameters = inspect.signature(asked(case)[0]).parameters
    for name in WRONG.keys() & parameters.keys():
        alone = {"delta": {"log_delta": None}, "log_delta": {"delta": None}}.get(name, {})
        assert all(refused(case, **alone, **{name: wrong}) for wrong in WRONG[name]), name


WITH_DELTA = {"paper.dp_sgd", "paper.approximate_frank_wolfe", "paper.adassp"} | {
    *("paper.propose_test_release", "paper.approximate_mwem", "paper.purify_ball"),
}


@pytest.mark.parametrize("case", sorted(WITH_DELTA))
def test_exactly_one_delta_is_given(case: str) -> None:
    assert refused(case, delta=None, log_delta=None)
    assert refused(case, delta=1e-9, log_delta=-20.0)


@pytest.mark.parametrize("case", MISTAKES)
def test_a_mistake_in_a_public_input_is_refused(case: str) -> None:
    assert all(refused(case, **changes) for changes in MISTAKES[case])


# -- results lie in their space -------------------------------------------------------------------


BOUNDS: list[tuple[Any, Any]] = [(0, 100), (0, 0.3), ("-1/3", "1/3"), ("1/10", "7/10")]
PURE: dict[str, Any] = {"epsilon": 3, "mixing_weight": "1/4", "delta": "1e-3"}
STABLE: dict[str, Callable[..., zd.records.Release]] = {
    "9": lambda rows, bound, **kw: propose_test_release(
        rows, proposed_bound=bound, epsilon=2, delta="1e-3", **kw
    ),
    "10": lambda rows, bound, **kw: pure_propose_test_release(
        rows, proposed_bound=bound, **PURE, **kw
    ),
    "C3": lambda rows, bound, **kw: free_propose_test_release(
        rows, proposed_bound=bound, epsilon=2, **kw
    ),
    "11": lambda rows, bound, **kw: pure_bounded_local_sensitivity(rows, **PURE, **kw),
    "C4": lambda rows, bound, **kw: bounded_local_sensitivity(
        rows, epsilon=3, mixing_weight="1/4", **kw
    ),
}


def queries(low: Any, high: Any) -> dict[str, tuple[StableQuery, Any, Any]]:
    """Queries whose answers are at an end, with bounds that are no floats and noise of a third."""
    lower, upper = F(low), F(high)
    ends = [lower, upper], [upper, upper + 1]
    custom = CustomQuery(
        function=lambda rows: [1e300, -1e300],
        grid=zd.Box(*ends).grid(7),
        stability=lambda rows, bound: 1000,
        local=lambda rows: 0,
        change=upper - lower,
    )
    column: dict[str, Any] = {"bounds": (low, high), "steps": 49}
    return {
        "median": (Median(**column), [lower], [upper]),
        "trimmed mean": (TrimmedMean(**column, trim=3), [lower], [upper]),
        "custom": (custom, *ends),
    }


@pytest.mark.parametrize("bounds", BOUNDS, ids=str)
@pytest.mark.parametrize("name", STABLE)
def test_a_stable_query_between_its_bounds(name: str, bounds: tuple[Any, Any]) -> None:
    bits = ReplayBits(f"{name} between {bounds}")
    for query, lower, upper in queries(*bounds).values():
        for rows in (np.full(50, -1e9), np.full(50, 1e9)):
            for _ in range(8):
                bound = (F(bounds[1]) - F(bounds[0])) / 3
                value = replayed(bits)(STABLE[name])(rows, bound, query=query).value
                if value is None:
                    assert name == "9"
                    continue
                inside = [a <= F(v) <= b for a, v, b in zip(lower, value, upper, strict=True)]
                assert all(inside), (value, lower, upper)


@pytest.mark.parametrize("release", [mode, embedded_mode])
def test_a_mode_of_the_universe(release: Any) -> None:
    bits, words = ReplayBits("modes"), ["a", "b", "c"]
    for rows in (["a"] * 9, ["zz"] * 9, [], [math.nan, None]):
        found = {
            replayed(bits)(release)(rows, universe=words, epsilon="1/10").value for _ in range(20)
        }
        assert found <= set(words)


def radius(numbers: Any, *, rows: int, dimension: int, ridge: float) -> Fraction:
    """R̃ for data_norm = 3, target_bound = 2, from the noise that the certificate states."""
    return trust_radius(
        rows=rows,
        dimension=dimension,
        multiplier=math.sqrt(F(str(numbers["multiplier_squared"]))),
        ridge_factor=ridge,
        scale=2 / 3,
    )


@pytest.mark.parametrize("dimension", [1, 3])
def test_coefficients_in_their_ball(dimension: int) -> None:
    rows, bits = 40, ReplayBits("coefficients")
    x, y = np.full((rows, dimension), 1e9), np.full(rows, -1e9)
    linear: dict[str, Any] = {"data_norm": 3, "target_bound": 2, "mixing_weight": "1/2"}
    ridge = math.sqrt(dimension * math.log(2 * dimension**2 / 0.05)) / 2
    for _ in range(30):
        for release, factor in (
            (replayed(bits)(pure_adassp)(x, y, epsilon="1/2", delta=1e-3, **linear), ridge),
            (replayed(bits)(lattice_adassp)(x, y, epsilon="1/2", **linear), 2.0),
        ):
            numbers = release.certificate.steps[0].numbers
            most = radius(numbers, rows=rows, dimension=dimension, ridge=factor)
            # of a ball's points the length is right up to the last bit, as `Ball.contains` says
            assert zd.Ball(dimension, most).contains(release.value)
            assert sum(F(v) ** 2 for v in release.value) <= most**2 * (1 + F(1, 1 << 50))


def test_distributions_and_synthetic_rows() -> None:
    workload, bits = Marginals(dimension=3), ReplayBits("synthetic rows")
    people = np.array([[0, 1, 1], [1, 7, 0], [math.nan, 1, 1]])
    for _ in range(20):
        weights = replayed(bits)(mwem)(people, workload=workload, rounds=9, rho=5).value
        assert weights.shape == (8,)
        assert (weights >= 0).all()
        assert weights.sum() == pytest.approx(3, rel=1e-12)
        assert set(replayed(bits)(proportional_sampling)(weights, size=9)) <= set(range(8))
        for sample in (
            replayed(bits)(embedded_mwem)(
                people, workload=workload, epsilon=2, sample_size=5
            ).value,
            replayed(bits)(multiset_mwem)(
                people, workload=workload, epsilon=1, sample_size=5, rounds=2
            ).value,
        ):
            assert sample.shape == (5, 3)
            assert np.isin(sample, (0, 1)).all()


# -- what rests on the caller's own code ----------------------------------------------------------


BITS = ReplayBits("word")


PEOPLE = np.array([[0, 1], [1, 1], [1, 0]])


class Homemade(Marginals):
    """A caller's own workload, which may claim a bound that is not true."""


@pytest.mark.parametrize(("epsilon", "rows"), [(10, 16), (20, 200)])
def test_regression_at_a_large_epsilon_needs_no_delta(epsilon: int, rows: int) -> None:
    features, target = np.full((rows, 1), 0.5), np.full(rows, 0.5)
    release = replayed(BITS)(lattice_adassp)(
        features,
        target,
        data_norm=1,
        target_bound=1,
        epsilon=epsilon,
        mixing_weight="0.01",
    )
    assert release.certificate.claim == PureDP(epsilon)


def test_a_column_of_items_is_read_as_its_items() -> None:
    items = np.array([["a"]] * 300 + [["b"]] * 3)
    assert replayed(BITS)(mode)(items, universe=["a", "b"], epsilon=5).value == "a"


class Boastful(Median):  # type: ignore[misc]
    """A caller's own query that calls itself proven."""

    @property
    def status(self) -> Status:
        return Status.PROVEN


PROPOSED: dict[str, Any] = {"proposed_bound": "1/2", "epsilon": 1}
WORD_PURE: dict[str, Any] = {"epsilon": 3, "log_delta": -200.0, "mixing_weight": "0.01"}


@pytest.mark.parametrize(
    ("release", "options"),
    [
        (propose_test_release, {**PROPOSED, "log_delta": -20.0}),
        (pure_propose_test_release, {**PROPOSED, **WORD_PURE}),
        (free_propose_test_release, PROPOSED),
        (pure_bounded_local_sensitivity, WORD_PURE),
        (bounded_local_sensitivity, {"epsilon": 1, "mixing_weight": "0.01"}),
    ],
)
@pytest.mark.parametrize(("kind", "proven"), [(Median, True), (Boastful, False)])
def test_a_query_is_proven_by_its_class_not_by_its_word(
    release: Any, options: Any, kind: Any, proven: bool
) -> None:
    query = kind(bounds=(0, 1), steps=10)
    certificate = release(np.linspace(0, 1, 50), query=query, **options).certificate
    assert (certificate.status is Status.PROVEN) is proven
    assert (CALLER_ASSERTED in certificate.assumed) is not proven


def test_a_callers_workload_cannot_call_itself_proven() -> None:
    class Mine(Workload):
        assumed = ()
        universe, queries, bound, columns = 2, 1, 1, 1

        def keys(self, rows: Any) -> Any:
            return rows[:, 0]

        def totals(self, weights: Any) -> Any:
            return np.asarray([weights[1]])

        def reweight(self, weights: Any, query: int, exponent: float) -> None:
            weights[1] *= math.exp(exponent)

        def rows_of(self, items: Any) -> Any:
            return items

    for workload, rows in ((Mine(), np.array([0.0, 1.0] * 50)), (Homemade(dimension=2), PEOPLE)):
        certificate = pure_mwem(rows, workload=workload, epsilon=1, rounds=2).certificate
        assert certificate.status is Status.ASSERTED
        assert set(certificate.assumed) == {BARE_ROWS, WORKLOAD}


def test_a_proven_workload_has_no_dictionary_to_change_its_bound_in() -> None:
    for workload in (Marginals(dimension=2), LinearQueries([[0, 1]])):
        assert not hasattr(workload, "__dict__")
        with pytest.raises(AttributeError):
            workload.bound = 2  # type: ignore[misc]
