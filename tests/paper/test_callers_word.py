"""Whatever rests on the caller's own code is asserted, said so, and cannot raise through."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from paper.free_releases import bounded_local_sensitivity, free_propose_test_release
from zerodelta.exact.bits import ReplayBits
from zerodelta.marginals.mwem import pure_mwem
from zerodelta.marginals.workloads import WORKLOAD
from zerodelta.mechanisms.stable_queries import CALLER_ASSERTED, CustomQuery, Median
from zerodelta.paper.algorithm_03 import dp_sgd
from zerodelta.paper.algorithm_09_10_11 import (
    propose_test_release,
    pure_bounded_local_sensitivity,
    pure_propose_test_release,
)
from zerodelta.paper.algorithm_12_13 import lattice_adassp, mode
from zerodelta.privacy.certificate import BARE_ROWS
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.steps import Status
from zerodelta.queries import LinearQueries, Marginals, Workload
from zerodelta.spaces import Box
from zerodelta.testing import replayed

BITS = ReplayBits("word")


class Homemade(Marginals):
    """A caller's own workload, which may claim a bound that is not true."""


def test_a_callers_workload_is_asserted_and_said_to_be() -> None:
    rows = np.array([[0, 1], [1, 1], [1, 0]])
    ours = replayed(BITS)(pure_mwem)(rows, workload=Marginals(dimension=2), epsilon=1, rounds=1)
    theirs = replayed(BITS)(pure_mwem)(rows, workload=Homemade(dimension=2), epsilon=1, rounds=1)
    assert ours.certificate.status is Status.PROVEN
    assert ours.certificate.assumed == (BARE_ROWS,)
    assert theirs.certificate.status is Status.ASSERTED
    assert len(theirs.certificate.assumed) == 2


def test_our_own_query_tables_are_proven() -> None:
    workload = LinearQueries(np.array([[0, 1], [1, 0]]))
    release = replayed(BITS)(pure_mwem)(np.array([0, 1, 1]), workload=workload, epsilon=1, rounds=1)
    assert release.certificate.status is Status.PROVEN


def test_a_callers_gradient_is_listed_as_assumed() -> None:
    def gradient(theta: Any, rows: Any) -> Any:
        return np.tile(theta, (len(rows), 1))

    release = replayed(BITS)(dp_sgd)(
        np.zeros((20, 2)),
        None,
        loss=gradient,
        epsilon=1,
        log_delta=-10.0,
        radius=1,
        data_norm=1,
        clip=1,
        dimension=2,
        steps=2,
    )
    assert release.certificate.status is Status.ASSERTED
    assert len(release.certificate.assumed) == 2


@pytest.mark.parametrize("answer", [-math.inf, math.inf, math.nan, "x", None])
def test_any_distance_a_callers_function_returns_is_mapped(answer: Any) -> None:
    query = CustomQuery(
        function=lambda rows: 0.5,
        grid=Box(0, 1).grid(11),
        stability=lambda rows, bound: answer,
    )
    release = replayed(BITS)(free_propose_test_release)(
        [1.0, 2.0], query=query, proposed_bound="1/10", epsilon=1
    )
    assert np.all((release.value >= 0) & (release.value <= 1))


@pytest.mark.parametrize("error", [SystemExit, GeneratorExit, ValueError])
def test_no_exception_of_a_callers_function_surfaces(error: type[BaseException]) -> None:
    def fail(rows: Any, bound: float = 0.0) -> float:
        raise error("row 7")

    query = CustomQuery(function=fail, grid=Box(0, 1).grid(11), stability=fail)
    release = replayed(BITS)(free_propose_test_release)(
        [1.0, 2.0], query=query, proposed_bound="1/10", epsilon=1
    )
    assert np.all((release.value >= 0) & (release.value <= 1))


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
PURE: dict[str, Any] = {"epsilon": 3, "log_delta": -200.0, "mixing_weight": "0.01"}


@pytest.mark.parametrize(
    ("release", "options"),
    [
        (propose_test_release, {**PROPOSED, "log_delta": -20.0}),
        (pure_propose_test_release, {**PROPOSED, **PURE}),
        (free_propose_test_release, PROPOSED),
        (pure_bounded_local_sensitivity, PURE),
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

    certificate = pure_mwem(
        np.array([0.0, 1.0] * 50), workload=Mine(), epsilon=1, rounds=2
    ).certificate
    assert certificate.status is Status.ASSERTED
    assert WORKLOAD in certificate.assumed


def test_a_proven_workload_has_no_dictionary_to_change_its_bound_in() -> None:
    for workload in (Marginals(dimension=2), LinearQueries([[0, 1]])):
        assert not hasattr(workload, "__dict__")
        with pytest.raises(AttributeError):
            workload.bound = 2  # type: ignore[misc]
