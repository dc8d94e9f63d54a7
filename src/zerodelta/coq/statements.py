"""Base steps of a certificate as theorems for Coq: the theorem of the label, with its numbers.

Each statement is an instance of one in proofs/PureDP.v; its proof leaves to Coq exactly the
inequality that `verify` evaluates for the label.
"""

from __future__ import annotations

from fractions import Fraction

from zerodelta.coq.formal import PUBLIC, Formal, coq_number
from zerodelta.coq.noise_statements import (
    blocks_theorem,
    k_norm_theorem,
    keys_theorem,
    laplace_theorem,
    one_draw_theorem,
    partition_theorem,
)
from zerodelta.privacy.claims import PureDP
from zerodelta.privacy.neighbors import Neighbors
from zerodelta.privacy.theorems.keys import JointTopK
from zerodelta.privacy.theorems.mechanisms import ExponentialMechanism, PermuteAndFlip
from zerodelta.privacy.theorems.testing import (
    PureLocalSensitivity,
    PureProposeTestRelease,
    StableMode,
)
from zerodelta.privacy.theorems.theorem import Base


def step_theorem(step: Base, neighbors: Neighbors, epsilon: Fraction, name: str) -> str | None:
    """Return the step as a theorem for Coq that claims this ε, None if its label has none there."""
    formal = FORMAL_STEPS.get(step.label)
    return formal.write(step, neighbors, epsilon, name) if formal else None


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
Theorem {name} {PUBLIC} (Y : finType) (score : D -> Y -> R){best}
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


def _top_k(step: JointTopK, _: Neighbors, epsilon: Fraction, name: str) -> str:
    moved = coq_number(step.sensitivity * (1 if step.monotone else 2))
    scale = coq_number(step.scale)
    return f"""\
Theorem {name} {PUBLIC} (Lists : finType) (score : D -> Lists -> R) :
  (forall d d', neighbors d d' -> forall s, Rabs (score d s - score d' s) <= {moved}) ->
  pure_DP neighbors (fun d => exponential_mechanism (weight score {scale} d)) {coq_number(epsilon)}.
Proof.
intros; apply exponential_selection with (sensitivity := {moved}); try assumption;
  [number | left; number].
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
Theorem {name} {PUBLIC} (Y : finType) (M : D -> option Y -> R) :
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
Theorem {name} {PUBLIC} (Y : finType) (M : D -> option Y -> R) :
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
Theorem {name} {PUBLIC} (Y : finType) (f : D -> Y) (pass : D -> R) :
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


_MOVES = "how the rounded noise moves in its norm (Lemma R)"
_GEOMETRIC = (
    "that the noise drawn has P(k) ≤ e^(1/b)·P(k ± 1): it is the two-sided geometric law, and the "
    "theorem is about round(Laplace)"
)
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
        theorems=(
            *("laplace_sums", "shifted", "rounded_laplace_falls", "rounded_laplace_law"),
            *("laplace_total", "sums_probabilities"),
        ),
        write=laplace_theorem,
    ),
    "k-norm-noise": Formal(
        theorems=("norm_noise",),
        write=k_norm_theorem,
        paper=_MOVES,
    ),
    "partition-laplace": Formal(
        theorems=(
            *("table_replace", "table_add_remove", "count_replace"),
            *("P1_replace", "P1_add_remove", "P1_one_cell", "rounded_laplace_law"),
            *("laplace_total", "table_probabilities"),
        ),
        write=partition_theorem,
        paper=_GEOMETRIC,
    ),
    "partition-k-norm": Formal(
        theorems=("table_one_draw", "P2"),
        write=one_draw_theorem,
        paper=_MOVES,
    ),
    "block-k-norm": Formal(
        theorems=("blocks_replace", "blocks_add_remove", "P3_replace", "P3_add_remove"),
        write=blocks_theorem,
        paper=_MOVES,
    ),
    "joint-top-k": Formal(
        theorems=("exponential_selection", "exponential_pure"),
        write=_top_k,
        paper="the sensitivity of a list's score",
    ),
    "key-counts": Formal(
        theorems=(
            *("keys_replace", "keys_add_remove", "keys_published"),
            *("U_replace", "U_add_remove", "U_published", "geometric_falls", "geometric_rises"),
            "two_sided_total",
        ),
        write=keys_theorem,
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
