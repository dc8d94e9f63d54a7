"""What a mechanism's theorem asks of what it is handed, and what two such hands cost.

For each place at which noise is added: the facts of what was handed, computed when it was, and the
privacy loss between the facts of neighbors. It is computed from the integers themselves, in the
norm in which the mechanism draws; a premise of another kind costs nothing if it holds, else ∞.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import combinations_with_replacement
from typing import Any

import numpy as np

from golden.description import plain
from zerodelta.exact.joint_ranks import Ranks
from zerodelta.mechanisms.joint_quantiles import CELL_BITS
from zerodelta.regression.statistics import LENGTH

NOT_FROZEN = {
    "KeyNoise.apply": "asked by mechanisms for keys alone, which are frozen",
    "Selection.select": "abstract",
}
"""Where noise is added, and frozen elsewhere, and why."""

NONE, NEVER = Fraction(0), Fraction(10**9)
_ROOT = 80


def _sums(_mechanism: Any, sums: Any) -> list[int]:
    cells = np.asarray(sums)
    assert cells.dtype.kind in "iuO", "noise is added to whole numbers"
    found: list[int] = cells.ravel().tolist()
    assert all(type(each) is int for each in found), "noise is added to whole numbers"
    return found


def _moved(mine: Sequence[int], yours: Sequence[int]) -> list[int]:
    return [a - b for a, b in zip(mine, yours, strict=True)]


def _root(square: Fraction) -> Fraction:
    return Fraction(math.isqrt(math.floor(square * (1 << _ROOT))), 1 << _ROOT // 2)


# -- noise on sums --------------------------------------------------------------------------------


def _l1(mechanism: Any, mine: list[int], yours: list[int]) -> Fraction:
    return Fraction(sum(map(abs, _moved(mine, yours))) / Fraction(mechanism.scale))


def _one_sided(mechanism: Any, mine: list[int], yours: list[int]) -> Fraction:
    moved = _moved(mine, yours)
    up, down = sum(k for k in moved if k > 0), -sum(k for k in moved if k < 0)
    return Fraction(max(up, down) / Fraction(mechanism.scale))


def _cells(mechanism: Any, mine: list[int], yours: list[int]) -> Fraction:
    norm = _one_sided if mechanism.method == "k-norm" else _l1
    return norm(mechanism, mine, yours)


def _blocks(mechanism: Any, mine: list[int], yours: list[int]) -> Fraction:
    moved, size = _moved(mine, yours), mechanism.dimension
    blocks = [moved[i : i + size] for i in range(0, len(moved), size)]
    return Fraction(sum(max(map(abs, block)) for block in blocks) / Fraction(mechanism.scale))


def _k_norm(mechanism: Any, mine: list[int], yours: list[int]) -> Fraction:
    moved = _moved(mine, yours)
    if mechanism.norm == math.inf:
        return Fraction(max(map(abs, moved)) / Fraction(mechanism.scale))
    if mechanism.norm == 2:
        return _root(Fraction(sum(k * k for k in moved))) / Fraction(mechanism.scale)
    return _l1(mechanism, mine, yours)


def _matrix(mechanism: Any, mine: list[int], yours: list[int]) -> Fraction:
    """The sum of the sizes of the eigenvalues by which the matrix of products moves (theory W2)."""
    moved = np.zeros((mechanism.dimension, mechanism.dimension))
    triangle = np.array([float(k) for k in _moved(mine, yours)]) / mechanism.weights
    moved[np.triu_indices(mechanism.dimension)] = triangle
    values = np.linalg.eigvalsh(moved + np.triu(moved, 1).T)
    certain = Fraction(float(np.abs(values).sum() * (1 - 1e-9)))  # eigenvalues are floats
    return certain / Fraction(mechanism.scale)


def _statistics(plan: Any, mine: list[int], yours: list[int]) -> Fraction:
    """The length of the triangle of XᵀX and of Xᵀy in which the noise is round."""
    weight = Fraction(plan.step.numbers["target_weight"])
    places = list(combinations_with_replacement(range(plan.columns), 2))
    weights = [Fraction(1 if i == j else 2) for i, j in places] + [weight] * plan.columns
    moved = zip(weights, _moved(mine, yours), strict=True)
    return _root(sum(w * k * k for w, k in moved) / (plan.scale * LENGTH**2) ** 2)


# -- Gaussian noise: the loss is μ² ----------------------------------------------------------------


def _gaussian(mechanism: Any, mine: list[int], yours: list[int]) -> Fraction:
    return Fraction(sum(k * k for k in _moved(mine, yours)) / Fraction(mechanism.variance))


def _with_variance(_mechanism: Any, mine: Any, yours: Any) -> Fraction:
    (sums, variance), (others, same) = mine, yours
    assert variance == same
    return Fraction(sum(k * k for k in _moved(sums, others)) / Fraction(variance))


def _drawn_before(noise: Any, mine: list[int], yours: list[int]) -> Fraction:
    """Noise that was drawn for zeros: what it is added to is what is hidden."""
    return (_gaussian if hasattr(noise, "variance") else _l1)(noise, mine, yours)


# -- selections -----------------------------------------------------------------------------------


_Scores = list[tuple[Fraction, int]]
"""Scores, and how many options have each."""


def _scores(_mechanism: Any, scores: Any, members: Any = None, rest: Any = None) -> _Scores:
    every = [_exact(score) for score in scores]
    if members is None:
        return [(score, 1) for score in every]
    sizes = [int(size) for size in members]
    listed = list(zip(every, sizes, strict=True))
    if rest is not None:
        listed[-1:] = [(_exact(rest(place)), 1) for place in range(sizes[-1])]
    # which point is in which place is not told: sorted scores are no farther apart
    return sorted(listed)


def _exact(score: Any) -> Fraction:
    return Fraction(score.item() if isinstance(score, np.generic) else score)


def _apart(mine: _Scores, yours: _Scores) -> list[Fraction]:
    """Return by how much scores differ, option by option, without listing all options."""
    assert sum(many for _, many in mine) == sum(many for _, many in yours)
    found, i, j, left, right = [], 0, 0, mine[0][1], yours[0][1]
    while True:
        if left and right:
            found.append(mine[i][0] - yours[j][0])
        step = min(left, right)
        left, right = left - step, right - step
        if not left:
            i += 1
            if i == len(mine):
                return found
            left = mine[i][1]
        if not right and j + 1 < len(yours):
            j += 1
            right = yours[j][1]


def _selection(mechanism: Any, mine: _Scores, yours: _Scores) -> Fraction:
    moved = _apart(mine, yours)
    one_way = mechanism.monotone and (min(moved) >= 0 or max(moved) <= 0)
    return (1 if one_way else 2) * max(map(abs, moved)) / Fraction(mechanism.scale)


def _joint_selection(mechanism: Any, mine: _Scores, yours: _Scores) -> Fraction:
    return 2 * _selection(mechanism, mine, yours)


# -- rows that come and go ------------------------------------------------------------------------


def _come_and_gone(mine: Counter[Any], yours: Counter[Any]) -> tuple[int, int]:
    return (mine - yours).total(), (yours - mine).total()


def _keys(_mechanism: Any, counts: Any, keys: Any = None) -> Counter[Any]:
    if keys is None:
        return Counter({key: int(count) for key, count in counts.items()})
    return Counter(dict(zip(keys.tolist(), counts.tolist(), strict=True)))


def _key_noise(mechanism: Any, mine: Counter[Any], yours: Counter[Any]) -> Fraction:
    noise, (come, gone) = mechanism.noise, _come_and_gone(mine, yours)
    return Fraction(max(come * noise.up + gone * noise.down, come * noise.down + gone * noise.up))


def _places(_mechanism: Any, runs: Any) -> Counter[int]:
    """In which cells rows lie; where in them is drawn for each row."""
    runs.fetch([Ranks(first=0, last=runs.count)])
    return Counter((runs.borders(0, runs.count)[1:-1] >> CELL_BITS).tolist())


def _joint_ranks(mechanism: Any, mine: Counter[int], yours: Counter[int]) -> Fraction:
    come, gone = _come_and_gone(mine, yours)
    epsilon = mechanism.claim.exact_epsilon
    if mechanism.groups == 1:
        return Fraction(max(come, gone) * epsilon)
    added = mechanism.neighbors.value == "add-remove"
    return Fraction((come + gone) * (epsilon if added else epsilon / 2))


def _examples(_plan: Any, rows: Any, loss: Any) -> Counter[Any]:
    labels = getattr(loss, "targets", getattr(loss, "labels", None))
    beside = np.zeros(len(rows.values)) if labels is None else np.asarray(labels)
    examples = np.column_stack([rows.values, beside]).tolist()
    return Counter(tuple(row) for row in examples if any(row))


def _objective(plan: Any, mine: Counter[Any], yours: Counter[Any]) -> Fraction:
    """An objective is a sum over rows."""
    return Fraction(max(_come_and_gone(mine, yours)) * plan.epsilon)


# -- stable queries: the premise of the theorem holds, or it does not -----------------------------


def _holds(fine: bool) -> Fraction:
    return NONE if fine else NEVER


def _tested(mechanism: Any, rows: Any) -> tuple[int, list[int]]:
    found = mechanism.query.read(rows)
    distance = int(mechanism.query.distance(found, mechanism.bound))
    return distance, [int(cell) for cell in mechanism.query.answer(found)]


def _test(mechanism: Any, mine: Any, yours: Any) -> Fraction:
    (near, answer), (far, other) = mine, yours
    apart = sum(map(abs, _moved(answer, other)))
    stable = apart <= mechanism.bound or near == far == 0
    return _holds(abs(near - far) <= 1 and stable)


def _bounded(mechanism: Any, rows: Any) -> tuple[int, list[int]]:
    query = getattr(mechanism, "base", mechanism).query
    found = query.read(rows)
    return int(query.local_sensitivity(found)), [int(cell) for cell in query.answer(found)]


def _bound(mechanism: Any, mine: Any, yours: Any) -> Fraction:
    (near, answer), (far, other) = mine, yours
    apart = sum(map(abs, _moved(answer, other)))
    change = getattr(mechanism, "base", mechanism).query.local_change
    return _holds(abs(near - far) <= change and apart <= min(near, far))


def _smooth(_mechanism: Any, total: int, sensitivity: Fraction) -> tuple[int, Fraction]:
    return int(total), Fraction(sensitivity)


def _smoothly(noise: Any, mine: Any, yours: Any) -> Fraction:
    (total, reach), (other, far) = mine, yours
    slow = far >= reach * noise.decay and reach >= far * noise.decay
    return _holds(abs(total - other) <= min(reach, far) and slow)


def _lead(mechanism: Any, counted: Any) -> tuple[int, int]:
    found, distance = mechanism.stability(counted)
    return int(found), int(distance)


def _clear(_mechanism: Any, mine: Any, yours: Any) -> Fraction:
    (best, near), (other, far) = mine, yours
    return _holds(abs(near - far) <= 1 and (best == other or max(near, far) <= 0))


def _draft(_mechanism: Any, value: Any) -> str:
    try:
        return str(plain(value))
    except Exception:  # what a caller hands to a channel is anything
        return "…"


def _same(_mechanism: Any, mine: str, yours: str) -> Fraction:
    """A channel sees what was made of answers that have their noise, and nothing else."""
    return _holds(mine == yours)


def _nothing(_mechanism: Any, **_handed: Any) -> None:
    """Which option a place stands for is a part of the draw before, which has paid for it."""


def _free(_mechanism: Any, _mine: None, _yours: None) -> Fraction:
    return NONE


_Loss = Callable[[Any, Any, Any], Fraction]
_Premise = tuple[Callable[..., Any], _Loss]


def _statistic(_mechanism: Any, statistics: Any) -> list[int]:
    return _sums(_mechanism, statistics)


def _noised(_mechanism: Any, sums: Any, variance: Any) -> tuple[list[int], Fraction]:
    return _sums(_mechanism, sums), Fraction(variance)


def _added(_mechanism: Any, sums: Any, noise: Any) -> list[int]:
    return _sums(_mechanism, sums)


_PREMISES: dict[str, _Premise] = {
    "BlockNoise.apply": (_sums, _blocks),
    "BoundedRelease.draft": (_bounded, _bound),
    "ClearLead.apply": (_lead, _clear),
    "CountNoise.apply": (_sums, _one_sided),
    "ExponentialMechanism.select": (_scores, _selection),
    "JointExponential.draw": (_places, _joint_ranks),
    "JointTopK.select": (_scores, _joint_selection),
    "KNorm.apply": (_sums, _k_norm),
    "MatrixLaplace.apply": (_sums, _matrix),
    "MixedBoundedRelease.apply": (_bounded, _bound),
    "NoisyTop.apply": (_keys, _key_noise),
    "PartitionNoise.apply": (_sums, _cells),
    "PermuteAndFlip.select": (_scores, _selection),
    "ProposedRelease.apply": (_tested, _test),
    "ProposedRelease.draft": (_tested, _test),
    "Purifier.apply": (_draft, _same),
    "RegressionPlan.publish": (_examples, _objective),
    "RoundedGaussian.apply": (_sums, _gaussian),
    "RoundedLaplace.apply": (_sums, _l1),
    "SmoothNoise.apply": (_smooth, _smoothly),
    "StatisticsPlan.noised": (_statistic, _statistics),
    "RankGroups.point": (_nothing, _free),
    "Selection.select_member": (_scores, _selection),
    "UnknownKeys.apply": (_keys, _key_noise),
    "gaussian_statistics._noised": (_noised, _with_variance),
    "choices._member": (_nothing, _free),
    "algorithm_03.add_exactly": (_added, _drawn_before),
}

FACTS = {place: facts for place, (facts, _) in _PREMISES.items()}


LOSS = {place: loss for place, (_, loss) in _PREMISES.items()}
GAUSSIAN = {"RoundedGaussian.apply", "gaussian_statistics._noised"}
"""Where the loss is μ², and not ε."""
