"""Noise on counts and sums as theorems for Coq (theory R, P1, P2, G2, U)."""

from __future__ import annotations

from fractions import Fraction

from zerodelta.coq.formal import PUBLIC, coq_number
from zerodelta.privacy.neighbors import Neighbors
from zerodelta.privacy.theorems.keys import KeyCounts
from zerodelta.privacy.theorems.mechanisms import KNormNoise, RoundedLaplace
from zerodelta.privacy.theorems.partitions import BlockKNorm, PartitionKNorm, PartitionLaplace


def laplace_theorem(step: RoundedLaplace, _: Neighbors, epsilon: Fraction, name: str) -> str:
    """Return rounded Laplace noise on integer sums, for Coq."""
    moved, scale = coq_number(step.sensitivity), coq_number(step.scale)
    return f"""\
Theorem {name} {PUBLIC} (J : finType) (K : D -> J -> int) :
  (forall d d', neighbors d d' ->
     INR (\\sum_j absz (GRing.add (K d j) (GRing.opp (K d' j))))%N <= {moved}) ->
  pure_DP_events neighbors (fun d (y : {{ffun J -> int}}) =>
    \\big[Rmult/1]_j laplace {scale} (GRing.add (y j) (GRing.opp (K d j)))) {coq_number(epsilon)}.
Proof.
intros H; apply laplace_sums with (sensitivity := {moved}); [number | exact H | number].
Qed.
"""


def k_norm_theorem(step: KNormNoise, _: Neighbors, epsilon: Fraction, name: str) -> str:
    """Return one draw of noise in a norm, for Coq."""
    moved, scale = coq_number(step.sensitivity), coq_number(step.scale)
    return f"""\
Theorem {name} {PUBLIC} (J : finType) (K : D -> J -> int)
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


def partition_theorem(
    step: PartitionLaplace, neighbors: Neighbors, epsilon: Fraction, name: str
) -> str:
    """Return noise on the cells of a table, each row of which adds up to a fixed total, for Coq."""
    total, rows = coq_number(step.row_total), coq_number(step.unit_rows)
    scale = coq_number(step.scale)
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


def one_draw_theorem(step: PartitionKNorm, _: Neighbors, epsilon: Fraction, name: str) -> str:
    """Return one draw over all cells of a table, for Coq."""
    total, rows = coq_number(step.row_total), coq_number(step.unit_rows)
    scale = coq_number(step.scale)
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


def blocks_theorem(step: BlockKNorm, neighbors: Neighbors, epsilon: Fraction, name: str) -> str:
    """Return noise in a norm on the sums of each group, for Coq."""
    bound, rows = coq_number(step.row_bound), coq_number(step.unit_rows)
    scale = coq_number(step.scale)
    replace = neighbors is Neighbors.REPLACE
    relation, applied = (
        ("replace_rows", "blocks_replace") if replace else ("add_remove_rows", "blocks_add_remove")
    )
    return f"""\
Theorem {name} (Row : eqType) (G J : finType) (group : Row -> option G)
    (amount : Row -> J -> int) (norm p : {{ffun J -> int}} -> R) (unit_rows : nat) :
  INR unit_rows = {rows} -> (forall z, 0 <= p z) ->
  (forall z h, p z <= exp (norm h / {scale}) * p [ffun j => GRing.add (z j) (h j)]) ->
  (forall r, norm [ffun j => amount r j] <= {bound} /\\
             norm [ffun j => GRing.opp (amount r j)] <= {bound}) ->
  pure_DP_events ({relation} unit_rows) (by_group group (fun _ => block_sums amount p))
    {coq_number(epsilon)}.
Proof.
intros m p0 H S; apply {applied} with (norm := norm) (bound := {bound}) (scale := {scale});
  try assumption; rewrite ?m; number.
Qed.
"""


def keys_theorem(step: KeyCounts, neighbors: Neighbors, epsilon: Fraction, name: str) -> str:
    """Return counts by key with noise that differs upwards and downwards, for Coq."""
    up, down = coq_number(step.up), coq_number(step.down)
    replace = neighbors is Neighbors.REPLACE
    relation = "replace_rows" if replace else "add_remove_rows"
    applied = "keys_replace" if replace else "keys_add_remove"
    # the larger of the two is known, and Coq-Interval has no maximum
    side = "Rmax_left" if step.up >= step.down else "Rmax_right"
    last = "number" if replace else f"rewrite {side}; number"
    return f"""\
Theorem {name} (Row : eqType) (U : finType) (key : Row -> option U) :
  pure_DP_events ({relation} 1)
    (noisy_counts key (two_sided (two_sided_constant {up} {down}) {up} {down}))
    {coq_number(epsilon)}.
Proof.
intros; apply {applied}; [split; [apply two_sided_total; number | number | number] |
  change (INR 1) with 1; {last}].
Qed.
"""
