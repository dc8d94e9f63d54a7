"""JAX-Privacy's plans are trees of events: converted or refused as they are."""

from __future__ import annotations

from typing import Any

import pytest

from zerodelta.errors import ParameterError
from zerodelta.interop.dp_accounting import claim
from zerodelta.privacy.parameters import Neighbors

accounting: Any = pytest.importorskip(
    "jax_privacy.experimental.accounting", reason="JAX-Privacy is not installed"
)
da: Any = pytest.importorskip("dp_accounting")

ADD_REMOVE, REPLACE = Neighbors.ADD_REMOVE, Neighbors.REPLACE
STEP = da.PoissonSampledDpEvent(0.05, da.GaussianDpEvent(4.0))


def test_steps_on_poisson_samples_are_for_added_or_removed_rows() -> None:
    steps = accounting.dpsgd_event(4.0, 100, sampling_prob=0.05)
    found = claim(steps, neighbors=ADD_REMOVE)
    assert found == claim(da.SelfComposedDpEvent(STEP, 100), neighbors=ADD_REMOVE)
    assert found.log_delta(1) < -30
    with pytest.raises(ParameterError, match="added or removed"):
        claim(steps, neighbors=REPLACE)


def test_steps_on_batches_of_fixed_size_are_for_replaced_rows() -> None:
    sizes: dict[str, int] = {"dataset_size": 1000, "batch_size": 50}
    fixed = accounting.fixed_dpsgd_event(4.0, 100, **sizes)
    assert claim(fixed, neighbors=REPLACE).log_delta(8) < -30
    with pytest.raises(ParameterError, match="replaced"):
        claim(fixed, neighbors=ADD_REMOVE)
    again = accounting.fixed_dpsgd_event(4.0, 100, replace=True, **sizes)
    truncated = accounting.truncated_dpsgd_event(
        4.0, 100, sampling_prob=0.05, num_examples=1000, truncated_batch_size=60
    )
    for relation in Neighbors:
        with pytest.raises(ParameterError, match="several times"):
            claim(again, neighbors=relation)
        with pytest.raises(ParameterError, match="truncated"):
            claim(truncated, neighbors=relation)


def test_the_event_of_a_plan_is_taken_as_it_is() -> None:
    selection: Any = pytest.importorskip("jax_privacy.batch_selection")
    plans: Any = pytest.importorskip("jax_privacy.experimental.execution_plan")
    plan = plans.BandMFExecutionPlanConfig(
        strategy=[1.0, 0.5],
        iterations=200,
        epsilon=None,
        delta=None,
        noise_multiplier=4.0,
        sampling_prob=0.05,
        partition_type=selection.PartitionType.INDEPENDENT,
        accountant=da.pld.PLDAccountant(da.NeighboringRelation.ADD_OR_REMOVE_ONE),
    ).plan
    rounds = da.SelfComposedDpEvent(STEP, 100)
    assert claim(plan.dp_event, neighbors=ADD_REMOVE) == claim(rounds, neighbors=ADD_REMOVE)
    with pytest.raises(ParameterError, match="REPLACE_SPECIAL"):
        claim(plan.dp_event, neighbors=da.NeighboringRelation.REPLACE_SPECIAL)
