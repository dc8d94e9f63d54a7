"""What holds every place that draws to the law of its theorem.

`HELD` has an entry for each: instances whose `apply` is compared with the law of their step, number
by number, or the test that enumerates the law of what is drawn in parts.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from completeness.laws import unexplained
from completeness.noises import NOISES
from completeness.watched import Draw, watched
from zerodelta.audit.guess_rule import BlackBox
from zerodelta.channels.channel import NumericalError, mix
from zerodelta.channels.kernels import SmoothMix, noisy_pair
from zerodelta.channels.mixes import (
    FiniteMix,
    GaussianMix,
    GridMix,
    LaplaceMix,
    LocalUniformMix,
    PriorMix,
    ProfileMix,
    UnequalGridMix,
)
from zerodelta.cli.demo import _write_data
from zerodelta.cli.shown import prepare
from zerodelta.clustering.kmeans import grid_for
from zerodelta.exact.bits import BitSource, _system_bytes
from zerodelta.interop.opendp import measurement
from zerodelta.ledger.balances import new_id
from zerodelta.ledger.sqlite import make_file
from zerodelta.mechanisms.joint_quantiles import JointExponential, fine_rows
from zerodelta.mechanisms.key_noise import KeyNoise
from zerodelta.mechanisms.noisy_test import (
    BoundedRelease,
    ClearLead,
    MixedBoundedRelease,
    SmoothNoise,
    noisy_test,
    uniform_cell,
)
from zerodelta.mechanisms.partition_noise import BlockNoise, PartitionNoise
from zerodelta.mechanisms.selection import (
    ExponentialMechanism,
    PermuteAndFlip,
    Selection,
    _level,
    _Lists,
)
from zerodelta.mechanisms.sum_noise import CountNoise, KNorm, MatrixLaplace, RoundedGaussian
from zerodelta.paper.algorithm_01_02 import AlgorithmTwo
from zerodelta.paper.algorithm_03 import descend
from zerodelta.paper.algorithm_07_08 import gaussian_sketch
from zerodelta.paper.gaussian_statistics import _noised
from zerodelta.paper.multiplicative_weights import SamplePlan
from zerodelta.privacy.readable import write_new
from zerodelta.privacy.steps import Step
from zerodelta.regression.forest import Splits
from zerodelta.regression.objective import RegressionPlan
from zerodelta.regression.statistics import StatisticsPlan
from zerodelta.sklearn.classifiers import _seed
from zerodelta.spine.verbs import Request
from zerodelta.tasks.models import VoteQuestion, _vote_gap

F = Fraction
WHERE = "tests/completeness/drawn.py"

NOISE = [-3, 0, 1]
ENDS = [-(2**63), -(2**63) + 3, -1, 0, 7, 2**63 - 2, 2**63 - 1]
SCORES: list[list[int]] = [[0], [1, 0], [0, 1], [-(2**70), 5, 2**70]]


class Unread(BitSource):
    """Bits that nobody may read: whatever is drawn is drawn by a sampler."""

    def read(self, count: int) -> bytes:
        raise AssertionError("bits are read beside the samplers of the room of samplers")


@dataclass(frozen=True)
class Adds:
    """A mechanism that adds noise to `length` integers, one for each of them."""

    mechanism: Any
    length: int = 3
    step: Callable[[Any], Step] = lambda mechanism: mechanism.step()
    apply: Callable[[Any, Any, Any], Any] = lambda mechanism, sums, bits: mechanism.apply(
        sums, bits
    )
    told: dict[str, Any] = field(default_factory=dict)
    """What the sampler is told that depends on more than the step."""


@dataclass(frozen=True)
class Chooses:
    """A mechanism that chooses the largest of noisy scores."""

    mechanism: Any


def mistakes(held: Adds | Chooses) -> list[str]:
    """Return a line for each way in which what is drawn is not the law of the theorem.

    Samplers are answered from a script: what is published must be the sum and that answer, at every
    value, the ends included; and they must be asked for just the numbers of the step.
    """
    return _adding(held) if isinstance(held, Adds) else _choosing(held)


def _adding(held: Adds) -> list[str]:
    mechanism, found = held.mechanism, []
    for end in ENDS:
        sums = np.array([end, 5, end, *[2] * held.length][: held.length])
        with watched(_noise, also=_home(mechanism)) as drawn:
            result = [int(each) for each in held.apply(mechanism, sums, Unread())]
        expected = [int(a) + b for a, b in zip(sums, _script(held.length), strict=True)]
        if result != expected:
            found.append(f"{expected} was drawn at {end}, and {result} published")
        if sum(np.asarray(_noise(draw)).size for draw in drawn) != held.length:
            found.append(f"{held.length} integers, and other numbers of noises: {drawn}")
        found += unexplained([held.step(mechanism)], drawn)
        found += [
            f"{draw} is told {name} = {draw.numbers[name]}, not {wanted}"
            for draw in drawn
            for name, wanted in held.told.items()
            if draw.numbers[name] != wanted
        ]
    return found


def _choosing(held: Chooses) -> list[str]:
    mechanism, found = held.mechanism, []
    for scores in SCORES:
        with watched(_largest, also=_home(mechanism)) as drawn:
            chosen = mechanism.select(scores, Unread())
        if chosen != scores.index(max(scores)) or len(drawn) != 1:
            found.append(f"{chosen} is not the place that was drawn among {len(scores)}")
        if any(list(draw.numbers["scores"]) != scores for draw in drawn):
            found.append("other scores were handed on")
        if any(draw.numbers["members"] is not None for draw in drawn):
            found.append("a score stands for more than one option")
        found += unexplained([mechanism.step()], drawn)
    return found


def _home(mechanism: Any) -> list[Any]:
    return [sys.modules[type(mechanism).__module__]]


def _script(count: int) -> list[int]:
    return (NOISE * count)[:count]


def _noise(draw: Draw) -> Any:
    told = draw.numbers
    shape = [told[name] for name in ("size", "dimension") if name in told]
    return np.array(_script(math.prod(shape))).reshape(shape)


def _largest(draw: Draw) -> Any:
    scores = list(draw.numbers["scores"])
    return [scores.index(max(scores))]


# -- the table ------------------------------------------------------------------------------------


def _in_quanta(mechanism: Any) -> Step:
    step: Step = mechanism.step(quantum=None)
    return step


def _partition(method: str, epsilon: str) -> Adds:
    return Adds(PartitionNoise.for_epsilon(epsilon=epsilon, cells=3, method=method))


_SMOOTH = SmoothNoise.of(epsilon=1, degrees=3, decay="9/10")
_PATHS = "channels/test_apply_on_every_path.py"
_EXACTLY = f"{_PATHS}::test_apply_has_exactly_its_law_at_every_value"
_GOES = f"{_PATHS}::test_noise_goes_where_the_channel_says_at_every_value"
_QUERY = "tasks/test_exact_custom_query.py"
_LISTS = "mechanisms/test_keys_are_drawn_exactly.py::test_lists_are_drawn_with_their_law"
_FIT, _SGD = "regression/test_fit_is_private.py", "paper/test_dp_sgd.py"
_SKETCH = "paper/test_sparse_recovery.py"

HELD: dict[Any, list[Adds | Chooses] | str] = {
    # -- noise and choices: their step says the law
    **{
        type(each.mechanism): [Adds(each.mechanism, length=each.mechanism.length or 3)]
        for each in NOISES
    },
    RoundedGaussian: [Adds(RoundedGaussian(sensitivity_squared=F(2), variance=F(5)))],
    CountNoise: [Adds(CountNoise(dimension=3, scale=F(7, 3)))],
    KNorm: [
        Adds(KNorm(norm=norm, dimension=3, sensitivity=F(2), scale=F(7, 3)), step=_in_quanta)
        for norm in (1, 2, math.inf)
    ],
    MatrixLaplace: (
        "exact/test_matrix_noise.py::test_what_is_published_is_the_sum_and_noise_of_its_scale"
    ),
    PartitionNoise: [_partition("laplace", "6/7"), _partition("k-norm", "3/7")],
    BlockNoise: [
        Adds(
            BlockNoise.for_epsilon(epsilon="6/7", blocks=blocks, dimension=3, row_bound=1),
            length=3 * blocks,
        )
        for blocks in (1, 4)
    ],
    KeyNoise: [
        Adds(KeyNoise(up=F(3, 4), down=F(1, 5)), step=lambda noise: noise.step(26**10)),
        Adds(KeyNoise.symmetric(epsilon="3/2"), step=lambda noise: noise.step(9)),
    ],
    SmoothNoise: [
        Adds(
            _SMOOTH,
            length=1,
            apply=lambda noise, sums, bits: [noise.apply(int(sums[0]), F(21, 4), bits)],
            told={"scale": F(21, 4) / _SMOOTH.ratio},
        )
    ],
    ExponentialMechanism: [
        Chooses(ExponentialMechanism.for_epsilon(epsilon="3/2", sensitivity=2, monotone=monotone))
        for monotone in (False, True)
    ],
    PermuteAndFlip: [
        Chooses(PermuteAndFlip.for_epsilon(epsilon="3/2", sensitivity=2, monotone=monotone))
        for monotone in (False, True)
    ],
    # -- what is drawn in parts: their laws are enumerated
    Selection: "tasks/test_mode.py::test_modes_are_pure_on_every_pair_of_neighbors",
    JointExponential: (
        "mechanisms/test_joint_quantiles_are_private.py::test_the_rate_is_tight_for_replaced_rows"
    ),
    fine_rows: "mechanisms/test_grid_runs.py::test_places_within_a_cell_are_uniform",
    _level: _LISTS,
    _Lists: _LISTS,
    noisy_test: "tasks/test_stable_releases.py::test_propose_test_release_has_the_law",
    uniform_cell: f"{_QUERY}::test_propose_test_release_is_pure_on_every_pair_of_neighbors",
    ClearLead: "tasks/test_mode.py::test_the_stability_method_is_pure_on_every_pair_of_neighbors",
    BoundedRelease: (
        "paper/test_local_sensitivity.py"
        "::test_a_draft_has_noise_for_the_change_and_then_for_the_noisy_bound"
    ),
    MixedBoundedRelease: (
        f"{_QUERY}::test_bounded_local_sensitivity_is_pure_on_every_pair_of_neighbors"
    ),
    _noised: "paper/test_adassp.py::test_one_dimensional_lattice_case_is_pure_exactly",
    StatisticsPlan: (
        "regression/test_statistics.py::test_all_neighbors_of_the_real_pipeline_are_within_epsilon"
    ),
    RegressionPlan: f"{_FIT}::test_the_published_coefficient_has_the_exact_law",
    SamplePlan: "paper/test_mwem_is_private.py::test_multiset_mixing_is_pure_on_all_neighbors",
    VoteQuestion: "tasks/test_vote.py::test_every_row_is_dealt_to_one_block_at_random",
    descend: f"{_SGD}::test_batches_are_uniform_subsets_independent_of_the_batch_before",
    # -- channels: the law of `apply`, on every path of its draws
    **dict.fromkeys((mix, FiniteMix, PriorMix, GridMix, UnequalGridMix, LocalUniformMix), _EXACTLY),
    ProfileMix: f"{_PATHS}::test_a_profile_prior_has_exactly_its_law_at_every_value",
    AlgorithmTwo: f"{_PATHS}::test_algorithm_two_has_exactly_its_law_at_every_value",
    **dict.fromkeys((GaussianMix, LaplaceMix, noisy_pair), _GOES),
    SmoothMix: f"{_PATHS}::test_a_smoothed_step_is_published_as_it_is_or_replaced",
    NumericalError: f"{_PATHS}::test_numerical_noise_surrounds_the_value_cut_to_the_ball",
    # -- what is public, whatever is drawn
    gaussian_sketch: f"{_SKETCH}::test_the_sketch_has_the_variance_of_one_over_k",
    _seed: (
        "estimators/test_class_statistics_are_private.py"
        "::test_splits_are_inside_what_is_left_of_a_feature_and_follow_from_the_seed"
    ),
    Request: "replay/test_replay.py::test_neighbors_differ_in_the_noise_alone",
    BlackBox: "audit/test_sampled_bound.py::test_a_correct_mechanism_is_rarely_flagged",
    measurement: (
        "interop/test_opendp_tasks.py"
        "::test_a_task_may_look_at_the_order_of_rows_where_the_metric_does"
    ),
}
"""Every place of the package that draws (`walk.drawing`)."""

_SEED, _NAME = "public numbers of a fixed seed, the same for all rows", "a name that is not taken"
NO_NOISE: dict[Any, str] = {
    _system_bytes: "the bits themselves",
    **dict.fromkeys((new_id, make_file, write_new, prepare), _NAME),
    **dict.fromkeys((grid_for, Splits, _vote_gap, _write_data), _SEED),
}
"""Every place that asks another generator than the library's bits, and what for."""
