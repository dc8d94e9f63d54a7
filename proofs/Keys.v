(* Theorem U: counts by key with noise that differs upwards and downwards; what passes its threshold is
   published, sorted.  docs/theory.md, U.  Label key-counts.  up = e^beta, down = e^alpha. *)
From mathcomp Require Import ssralg ssrnum ssrint.
From Zerodelta Require Export Noise.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Local Open Scope scalar_scope.

Section Keys.
Variable F : ordered_field.
Variable Row : eqType.
Variable U : finType.                          (* the possible keys, public *)
Variable key : Row -> option U.                (* a row counts for one key, or nowhere *)
Variable p : int -> F.                         (* the law of the noise on one count *)
Implicit Types (up down w : F) (m : nat).
Add Field field : (field_laws F).

Definition counted (r : Row) (k : U) : nat := key r == Some k.
(* the law of all noisy counts *)
Definition noisy_counts := noisy_table counted p.
(* what is published: the keys that pass, in the order of the public set, with their numbers *)
Definition published (threshold : U -> int) (y : {ffun U -> int}) : seq (U * int) :=
  [seq (k, y k) | k <- enum U & (threshold k <= y k)%R].

Lemma counted_once r : (\sum_k counted r k <= 1)%N.
Proof.
rewrite /counted; case: (key r) => [k|]; last by rewrite big1.
rewrite (bigD1 k) //= eqxx big1 ?addn0 // => l lk.
by case: eqP => // -[E]; rewrite E eqxx in lk.
Qed.

Lemma power1 w : power w 1 = w. Proof. by rewrite /= mulx1. Qed.

(* m rows of a unit are replaced: m (alpha + beta), for any public set of keys *)
Theorem U_replace up down m : 1 <= up -> 1 <= down -> (forall k, 0 <= p k) ->
  falls p up -> rises p down ->
  private_pointwise (replace_rows m) (power up m * power down m) noisy_counts.
Proof.
move=> u1 d1 p0 H G; apply: replaced => //.
- exact: noisy_ge0.
- exact: noisy_unordered.
- by rewrite -[up]power1; apply: noisy_removal => //; apply: counted_once.
- by rewrite -[down]power1; apply: noisy_addition => //; apply: counted_once.
Qed.

(* m rows are added or removed: m max(alpha, beta) *)
Theorem U_add_remove up down w m : 1 <= up -> 1 <= down -> up <= w -> down <= w ->
  (forall k, 0 <= p k) -> falls p up -> rises p down ->
  private_pointwise (add_remove_rows m) (power w m) noisy_counts.
Proof.
move=> u1 d1 uw dw p0 H G; have w1 : 1 <= w by apply: le_trans u1 uw.
apply: added_or_removed => //.
- exact: noisy_ge0.
- exact: noisy_unordered.
- rewrite -[w]power1; apply: noisy_removal => //; last exact: counted_once.
  by move=> k; apply: le_trans (H k) _; apply: le_mulr.
- rewrite -[w]power1; apply: noisy_addition => //; last exact: counted_once.
  by move=> k; apply: le_trans (G k) _; apply: le_mulr.
Qed.

(* thresholds and sorting are post-processing: every event of what is published *)
Theorem U_published threshold up down m d d' : 1 <= up -> 1 <= down -> (forall k, 0 <= p k) ->
  falls p up -> rises p down -> replace_rows m d d' ->
  pure_after (published threshold) (power up m * power down m) (noisy_counts d) (noisy_counts d').
Proof.
move=> u1 d1 p0 H G n; apply: pointwise_after; last exact: U_replace n.
by apply: ge0_mul; apply: power_ge0; [apply: le_trans u1 | apply: le_trans d1].
Qed.
End Keys.
