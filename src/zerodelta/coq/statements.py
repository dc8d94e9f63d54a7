"""Base steps of a certificate as theorems for Coq: the theorem of the label, with its numbers.

Each statement is an instance of one in proofs/PureDP.v; its proof leaves to Coq exactly the
inequality that `verify` evaluates for the label.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.neighbors import Neighbors
from zerodelta.privacy.theorems.keys import KeyCounts
from zerodelta.privacy.theorems.mechanisms import (
    ExponentialMechanism,
    KNormNoise,
    PermuteAndFlip,
    RoundedLaplace,
)
from zerodelta.privacy.theorems.partitions import PartitionKNorm, PartitionLaplace
from zerodelta.privacy.theorems.testing import (
    PureLocalSensitivity,
    PureProposeTestRelease,
    StableMode,
)
from zerodelta.privacy.theorems.theorem import Base

__all__ = ["FORMAL_STEPS", "Formal", "coq_number", "own_epsilon", "step_theorem"]


def coq_number(value: Fraction | int) -> str:
    """Return the number as Coq reads it.

    >>> coq_number(3), coq_number(Fraction(-1, 2))
    ('3', '(-1/2)')
    """
    exact = Fraction(value)
    if exact.denominator == 1:
        return str(exact.numerator) if exact >= 0 else f"({exact.numerator})"
    return f"({exact.numerator}/{exact.denominator})"


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class Formal:
    """How a label is proved in Coq.

    Parameters
    ----------
    theorems : tuple of str
        The theorems of proofs/ that it is an instance of; the first are those a file applies.
    paper : str
        What of it is taken on paper; empty if nothing is.
    write : callable
        The statement and its proof, of the theorem with its numbers, the relation, ε and a name.

    """

    theorems: tuple[str, ...]
    write: Callable[[Any, Neighbors, Fraction, str], str]
    paper: str = ""


def step_theorem(step: Base, neighbors: Neighbors, epsilon: Fraction, name: str) -> str | None:
    """Return the step as a theorem for Coq that claims this ε, None if its label has none there."""
    formal = FORMAL_STEPS.get(step.label)
    return formal and formal.write(step, neighbors, epsilon, name)


def own_epsilon(step: Base, neighbors: Neighbors) -> Fraction | None:
    """Return the pure ε of the step, of its numbers alone: whether a threshold allows it is Coq's.

    None if the step is not pure.
    """
    if isinstance(step, PureProposeTestRelease):
        return step.test_epsilon + step.release_epsilon
    if isinstance(step, PureLocalSensitivity):
        return step.bound_epsilon + step.release_epsilon
    if isinstance(step, StableMode):
        return step.epsilon
    claim = step.claim(neighbors)
    return claim.exact_epsilon if type(claim) is PureDP else None


_PUBLIC = "(D : Type) (neighbors : D -> D -> Prop)"


def _selection(
    step: ExponentialMechanism | PermuteAndFlip, epsilon: Fraction, name: str, flip: bool
) -> str:
    moved, scale = coq_number(step.sensitivity), coq_number(step.scale)
    one_way = " monotone neighbors score ->" if step.monotone else ""
    best = (
        " (best : D -> Y) :\n  (forall d y, score d y <= score d (best d)) ->" if flip else " :\n "
    )
    law = (
        f"permute_and_flip (weight score {scale} d) (weight score {scale} d (best d))"
        if flip
        else f"exponential_mechanism (weight score {scale} d)"
    )
    applied = "permute_and_flip_selection" if flip else "exponential_selection"
    side = "right; split; [assumption | number]" if step.monotone else "left; number"
    return f"""\
Theorem {name} {_PUBLIC} (Y : finType) (score : D -> Y -> R){best}
  (forall d d', neighbors d d' -> forall y, Rabs (score d y - score d' y) <= {moved}) ->{one_way}
  pure_DP neighbors (fun d => {law}) {coq_number(epsilon)}.
Proof.
intros; apply {applied} with (sensitivity := {moved}); try assumption; [number | {side}].
Qed.
"""


def _exponential(step: ExponentialMechanism, _: Neighbors, epsilon: Fraction, name: str) -> str:
    return _selection(step, epsilon, name, flip=False)


def _permute_and_flip(step: PermuteAndFlip, _: Neighbors, epsilon: Fraction, name: str) -> str:
    return _selection(step, epsilon, name, flip=True)


def _laplace(step: RoundedLaplace, _: Neighbors, epsilon: Fraction, name: str) -> str:
    moved, scale = coq_number(step.sensitivity), coq_number(step.scale)
    return f"""\
Theorem {name} {_PUBLIC} (J : finType) (K : D -> J -> int) :
  (forall d d', neighbors d d' ->
     INR (\\sum_j absz (GRing.add (K d j) (GRing.opp (K d' j))))%N <= {moved}) ->
  pure_DP_events neighbors (fun d (y : {{ffun J -> int}}) =>
    \\big[Rmult/1]_j laplace {scale} (GRing.add (y j) (GRing.opp (K d j)))) {coq_number(epsilon)}.
Proof.
intros H; apply laplace_sums with (sensitivity := {moved}); [number | exact H | number].
Qed.
"""


def _k_norm(step: KNormNoise, _: Neighbors, epsilon: Fraction, name: str) -> str:
    moved, scale = coq_number(step.sensitivity), coq_number(step.scale)
    return f"""\
Theorem {name} {_PUBLIC} (J : finType) (K : D -> J -> int)
    (norm p : {{ffun J -> int}} -> R) :   (* the norm is {step.norm} *)
  (forall z, 0 <= p z) ->
  (forall z h, p z <= exp (norm h / {scale}) * p [ffun j => GRing.add (z j) (h j)]) ->
  (forall d d', neighbors d d' ->
     norm [ffun j => GRing.add (K d j) (GRing.opp (K d' j))] <= {moved}) ->
  pure_DP_events neighbors
    (fun d (y : {{ffun J -> int}}) => p [ffun j => GRing.add (y j) (GRing.opp (K d j))])
    {coq_number(epsilon)}.
Proof.
intros p0 H S; apply norm_noise with (norm := norm) (sensitivity := {moved}) (scale := {scale});
  try assumption; number.
Qed.
"""


_ROWS = "(Row : eqType) (J : finType) (amount : Row -> J -> nat) (row_total unit_rows : nat)"


def _partition(step: PartitionLaplace, neighbors: Neighbors, epsilon: Fraction, name: str) -> str:
    total, rows, scale = map(coq_number, (step.row_total, step.unit_rows, step.scale))
    if step.cells == 1 and neighbors is Neighbors.REPLACE:
        applied, law = "count_replace", "noisy_count amount"
        public = "(Row : eqType) (amount : Row -> nat) (row_total unit_rows : nat)"
        bound = "(forall r, (amount r <= row_total)%N)"
    else:
        applied = "table_replace" if neighbors is Neighbors.REPLACE else "table_add_remove"
        law, public = "noisy_table amount", _ROWS
        bound = "(forall r, (\\sum_j amount r j <= row_total)%N)"
    relation = "replace_rows" if neighbors is Neighbors.REPLACE else "add_remove_rows"
    return f"""\
Theorem {name} {public} :
  INR row_total = {total} -> INR unit_rows = {rows} -> {bound} ->
  pure_DP_events ({relation} unit_rows) ({law} (laplace {scale})) {coq_number(epsilon)}.
Proof.
intros M m H; apply {applied} with (row_total := row_total) (scale := {scale});
  [exact H | number | apply laplace_noise; number | rewrite M m; number].
Qed.
"""


def _one_draw(step: PartitionKNorm, _: Neighbors, epsilon: Fraction, name: str) -> str:
    total, rows, scale = map(coq_number, (step.row_total, step.unit_rows, step.scale))
    return f"""\
Theorem {name} {_ROWS} (p : {{ffun J -> int}} -> R) :
  INR row_total = {total} -> INR unit_rows = {rows} ->
  (forall r, (\\sum_j amount r j <= row_total)%N) -> (forall z, 0 <= p z) ->
  moves_at p (exp (INR (unit_rows * row_total) / {scale})) (unit_rows * row_total) ->
  pure_DP_events (replace_rows unit_rows) (table_draw amount p) {coq_number(epsilon)}.
Proof.
intros M m H p0 q; apply table_one_draw with (row_total := row_total) (scale := {scale});
  try assumption; rewrite M m; number.
Qed.
"""


def _keys(step: KeyCounts, neighbors: Neighbors, epsilon: Fraction, name: str) -> str:
    up, down = coq_number(step.up), coq_number(step.down)
    replace = neighbors is Neighbors.REPLACE
    relation = "replace_rows" if replace else "add_remove_rows"
    applied = "keys_replace" if replace else "keys_add_remove"
    # the larger of the two is known, and Coq-Interval has no maximum
    side = "Rmax_left" if step.up >= step.down else "Rmax_right"
    last = "number" if replace else f"rewrite {side}; number"
    return f"""\
Theorem {name} (Row : eqType) (U : finType) (key : Row -> option U) (c : R) : 0 <= c ->
  pure_DP_events ({relation} 1) (noisy_counts key (two_sided c {up} {down})) {coq_number(epsilon)}.
Proof.
intros c0; apply {applied}; [split; [exact c0 | number | number] | change (INR 1) with 1; {last}].
Qed.
"""


_TAIL = {
    "real": "(exp (- ({rate} * {tau})) / 2)",
    "rounded": "(exp (- ({rate} * ({tau} + 1/2))) / 2)",
    "discrete": "(exp (- ({rate} * ({tau} + 1))) / (1 + exp (- {rate})))",
}
"""P(Z > τ) for the Laplace noise of a test (theory C3), which is taken on paper."""


def _tail(rate: Fraction, threshold: Fraction, noise: str) -> str:
    return _TAIL[noise].format(rate=coq_number(rate), tau=coq_number(threshold))


def _peak(epsilon: Fraction, sensitivity: Fraction, dimension: int, noise: str) -> str:
    """Return the largest probability of the release noise; its power as e^(d ln p)."""
    half = coq_number(epsilon / (2 * sensitivity))
    one = (
        f"((1 - exp (- (2 * {half}))) / (1 + exp (- (2 * {half}))))"
        if noise == "discrete"
        else f"(1 - exp (- {half}))"
    )
    return one if dimension == 1 else f"(exp ({dimension} * ln {one}))"


def _propose(step: PureProposeTestRelease, _: Neighbors, epsilon: Fraction, name: str) -> str:
    tail = _tail(step.test_epsilon, step.threshold, step.noise)
    peak = _peak(step.release_epsilon, step.sensitivity, step.dimension, step.noise)
    size, eps = coq_number(step.points), coq_number(epsilon)
    return f"""\
Theorem {name} {_PUBLIC} (Y : finType) (M : D -> option Y -> R) :
  outputs Y = {size} -> (forall d, law (M d)) ->
  (forall d d', neighbors d d' -> (forall o, M d o <= exp {eps} * M d' o) \\/
     ((forall y, M d (Some y) <= {tail} * {peak}) /\\ 1 - {tail} <= M d' None)) ->
  pure_DP neighbors (fun d y => M d (Some y) + M d None * / outputs Y) {eps}.
Proof.
intros N L H; apply propose_test_release with (dp := {tail}) (pm := {peak});
  try assumption; rewrite ?N; number.
Qed.
"""


def _local(step: PureLocalSensitivity, _: Neighbors, epsilon: Fraction, name: str) -> str:
    tail = _tail(step.bound_epsilon / step.local_change, step.threshold, step.noise)
    peak = _peak(step.release_epsilon, step.smallest_bound, step.dimension, step.noise)
    size, eps, w = coq_number(step.points), coq_number(epsilon), coq_number(step.weight)
    return f"""\
Theorem {name} {_PUBLIC} (Y : finType) (M : D -> option Y -> R) :
  outputs Y = {size} ->
  (forall d d', neighbors d d' ->
     (forall y, M d (Some y) - exp {eps} * M d' (Some y) <= {tail} * {peak}) /\\
     M d None - exp {eps} * M d' None <= {tail}) ->
  pure_DP neighbors
    (fun d y => (1 - {w}) * (M d (Some y) + M d None * / outputs Y) + {w} * / outputs Y) {eps}.
Proof.
intros N H; apply local_sensitivity with (db := {tail}) (pm := {peak});
  try assumption; try (split; number); rewrite ?N; number.
Qed.
"""


def _mode(step: StableMode, _: Neighbors, epsilon: Fraction, name: str) -> str:
    tail = _tail(step.epsilon, step.threshold, step.noise)
    size, eps = coq_number(step.points), coq_number(epsilon)
    return f"""\
Theorem {name} {_PUBLIC} (Y : finType) (f : D -> Y) (pass : D -> R) :
  outputs Y = {size} -> (forall d, 0 <= pass d) ->
  (forall d d', neighbors d d' -> f d = f d' ->
     pass d <= exp {eps} * pass d' /\\ 1 - pass d <= exp {eps} * (1 - pass d')) ->
  (forall d d', neighbors d d' -> f d <> f d' -> pass d <= {tail} /\\ pass d' <= {tail}) ->
  pure_DP neighbors
    (fun d y => pass d * (if y == f d then 1 else 0) + (1 - pass d) * / outputs Y) {eps}.
Proof.
intros N p0 same other; apply stable_mode with (dp := {tail});
  try assumption; rewrite ?N; number.
Qed.
"""


_ROUNDED = "the law of round(Lap(b)) by its formula (R(vi))"
_TESTED = "the distances, and the tails of the noise (C3's table)"

FORMAL_STEPS: dict[str, Formal] = {
    "exponential-mechanism": Formal(
        theorems=("exponential_selection", "exponential_pure"),
        write=_exponential,
        paper="that the argmax with Gumbel noise has this law",
    ),
    "permute-and-flip": Formal(
        theorems=("permute_and_flip_selection", "permute_and_flip_pure"),
        write=_permute_and_flip,
        paper="that the argmax with exponential noise has this law",
    ),
    "rounded-laplace": Formal(
        theorems=("laplace_sums", "shifted", "rounded_laplace_falls", "rounded_laplace_rises"),
        write=_laplace,
        paper=_ROUNDED,
    ),
    "k-norm-noise": Formal(
        theorems=("norm_noise",),
        write=_k_norm,
        paper="how the rounded noise moves in its norm (Lemma R)",
    ),
    "partition-laplace": Formal(
        theorems=(
            *("table_replace", "table_add_remove", "count_replace"),
            *("P1_replace", "P1_add_remove", "P1_one_cell", "rounded_laplace_falls"),
        ),
        write=_partition,
        paper=_ROUNDED,
    ),
    "partition-k-norm": Formal(
        theorems=("table_one_draw", "P2"),
        write=_one_draw,
        paper="how the rounded noise moves in its norm (Lemma R)",
    ),
    "key-counts": Formal(
        theorems=(
            *("keys_replace", "keys_add_remove", "keys_published"),
            *("U_replace", "U_add_remove", "U_published", "geometric_falls", "geometric_rises"),
        ),
        write=_keys,
        paper="that the noise drawn has its law",
    ),
    "pure-propose-test-release": Formal(
        theorems=("propose_test_release", "C3"), write=_propose, paper=_TESTED
    ),
    "pure-local-sensitivity": Formal(
        theorems=("local_sensitivity", "C4"), write=_local, paper=_TESTED
    ),
    "stable-mode": Formal(
        theorems=("stable_mode", "C5", "C5_necessary"),
        write=_mode,
        paper="that the distance to another mode has sensitivity 1, and the tail of the noise",
    ),
}
"""What Coq proves of each label of a mechanism that is pure by itself."""
