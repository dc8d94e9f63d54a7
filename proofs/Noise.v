(* Laws of integer noise for Partitions.v and Keys.v: two-sided geometric noise with a rate for each
   direction, and rounded Laplace noise by its formula (docs/theory.md, R, R(vi), U).
   Labels rounded-laplace, partition-laplace, key-counts. *)
From Coq Require Import Lia.
From mathcomp Require Import ssralg ssrint zify.
From Zerodelta Require Export Partitions.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Local Open Scope scalar_scope.

Section Laws.
Variable F : ordered_field.
Implicit Types (a b c s : F) (k : int).
Add Field field : (field_laws F).

(* c a^k upwards, c b^|k| downwards: a = e^-up, b = e^-down *)
Definition geometric c a b (k : int) : F :=
  match k with Posz n => c * power a n | Negz n => c * power b n.+1 end.

Lemma Posz_next n : (Posz n + 1)%R = Posz n.+1. Proof. by lia. Qed.
Lemma Negz_next n : (Negz n.+1 + 1)%R = Negz n. Proof. by lia. Qed.
Lemma Negz_last : (Negz 0 + 1)%R = Posz 0. Proof. by lia. Qed.

Lemma power_ge0 a n : 0 <= a -> 0 <= power a n.
Proof. by move=> a0; elim: n => //= n IH; apply: ge0_mul. Qed.
Lemma ge1_inv a : 0 < a -> a <= 1 -> 1 <= inv a.
Proof. by move=> a0 a1; have := @le_div F a 1 1 a0; rewrite !mul1; apply. Qed.

Theorem geometric_falls c a b : 0 <= c -> 0 < a -> a <= 1 -> 0 < b -> b <= 1 ->
  falls (geometric c a b) (inv a).
Proof.
move=> c0 a0 a1 b0 b1; have a' := gt0_neq0 a0; have ai := ge1_inv a0 a1.
have B n : 0 <= c * power b n by apply: ge0_mul => //; apply: power_ge0; apply: lt_le.
have L n : c * power b n.+1 <= inv a * (c * power b n).
  apply: (@le_trans _ (c * power b n)) => /=.
    by apply: (le_by ((1 - b) * (c * power b n))); [apply: ge0_mul => //; apply: sub_ge0 | ring].
  by rewrite -[X in X <= _]mul1; apply: le_mulr.
case=> n; first by rewrite Posz_next /=; apply: (le_by 0); [exact: le_refl | field].
by case: n => [|n]; rewrite ?Negz_last ?Negz_next; [exact: (L 0%N) | exact: (L n.+1)].
Qed.

Theorem geometric_rises c a b : 0 <= c -> 0 < a -> a <= 1 -> 0 < b -> b <= 1 ->
  rises (geometric c a b) (inv b).
Proof.
move=> c0 a0 a1 b0 b1; have b' := gt0_neq0 b0; have bi := ge1_inv b0 b1.
have A n : 0 <= c * power a n by apply: ge0_mul => //; apply: power_ge0; apply: lt_le.
case=> n.
  rewrite Posz_next; apply: (@le_trans _ (c * power a n)) => /=.
    by apply: (le_by ((1 - a) * (c * power a n))); [apply: ge0_mul => //; apply: sub_ge0 | ring].
  by rewrite -[X in X <= _]mul1; apply: le_mulr.
by case: n => [|n]; rewrite ?Negz_last ?Negz_next /=; apply: (le_by 0); rewrite ?le_refl //; field.
Qed.

Theorem geometric_ge0 c a b : 0 <= c -> 0 < a -> 0 < b -> forall k, 0 <= geometric c a b k.
Proof.
by move=> c0 a0 b0 [n|n]; apply: ge0_mul => //; apply: power_ge0; apply: lt_le.
Qed.

(* round(Lap(b)) with s = e^(-1/(2b)): P(0) = 1 - s, P(k) = sinh(1/(2b)) e^(-|k|/b) *)
Definition tail s n : F := (inv s - s) / (1 + 1) * power (s * s) n.
Definition rounded_laplace s (k : int) : F :=
  match k with Posz 0 => 1 - s | Posz n => tail s n | Negz n => tail s n.+1 end.

Lemma two : 0 < (1 + 1 : F). Proof. by apply: gt0_addl. Qed.

Section Rounded.
Variable s : F.
Hypothesis (s0 : 0 < s) (s1 : s <= 1).
Let s' := gt0_neq0 s0.
Let two' := gt0_neq0 two.
Let ss : 0 < s * s. Proof. exact: gt0_mul. Qed.
Let head : 0 <= inv s - s.
Proof. by apply: sub_ge0; apply: le_trans s1 (ge1_inv s0 s1). Qed.
Let tail0 n : 0 <= tail s n.
Proof.
by apply: ge0_mul; [apply: ge0_mul => //; apply: ge0_inv two | apply: power_ge0; apply: lt_le].
Qed.
Let next n : tail s n = inv (s * s) * tail s n.+1. Proof. by rewrite /tail /=; field. Qed.
Let down n : tail s n.+1 <= inv (s * s) * tail s n.
Proof.
have s2 : s * s <= 1 by rewrite -[1]mul1; apply: le_mul => //; apply: lt_le.
apply: (@le_trans _ (tail s n)).
  apply: (le_by ((1 - s * s) * tail s n)); first by apply: ge0_mul => //; apply: sub_ge0.
  by rewrite /tail /=; ring.
by rewrite -[X in X <= _]mul1; apply: le_mulr => //; apply: ge1_inv.
Qed.
(* between 0 and 1 *)
Let zero_one : 1 - s <= inv (s * s) * tail s 1.
Proof.
have A := sub_ge0 s1; have B := ge0_inv s0; have C := ge0_inv two.
apply: (le_by ((1 - s) * (1 - s) * inv s / (1 + 1))); first by do !apply: ge0_mul.
by rewrite /tail /=; field.
Qed.
Let one_zero : tail s 1 <= inv (s * s) * (1 - s).
Proof.
have s3 : 0 <= 1 - s by apply: sub_ge0.
have s4 := lt_le s0.
have step x : 0 <= x -> 0 <= 1 - x -> 0 <= 1 - x * s.
  move=> x0 x1; have := ge0_add x1 (ge0_mul x0 s3) => K; apply: (le_by _ K); ring.
have q2 := ge0_mul s4 s4; have q3 := ge0_mul q2 s4.
have A := step _ q2 (step _ s4 s3); have B := step _ q3 A.
have C := ge0_inv two; have D := ge0_inv ss; have E := ge0_add A B.
apply: (le_by ((1 - s) * ((1 - s * s * s) + (1 - s * s * s * s)) * inv (s * s) / (1 + 1))).
  by apply: ge0_mul C; apply: ge0_mul D; apply: ge0_mul.
by rewrite /tail /=; field.
Qed.

Theorem rounded_laplace_ge0 k : 0 <= rounded_laplace s k.
Proof. by case: k => [[|n]|n] //=; apply: sub_ge0. Qed.

Theorem rounded_laplace_falls : falls (rounded_laplace s) (inv (s * s)).
Proof.
case=> n.
  rewrite Posz_next /=; case: n => [|n]; first exact: zero_one.
  by rewrite -next; exact: le_refl.
case: n => [|n]; rewrite ?Negz_last ?Negz_next /=; first exact: one_zero.
exact: down.
Qed.

Theorem rounded_laplace_rises : rises (rounded_laplace s) (inv (s * s)).
Proof.
case=> n.
  rewrite Posz_next /=; case: n => [|n]; first exact: one_zero.
  exact: down.
case: n => [|n]; rewrite ?Negz_last ?Negz_next /=; first exact: zero_one.
by rewrite -next; exact: le_refl.
Qed.
End Rounded.
End Laws.
