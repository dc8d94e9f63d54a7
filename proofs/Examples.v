(* The theorems on small numbers, over the rational numbers: their hypotheses can be met, at the edge too;
   and near misses of B1 are false: N - 1 for N, w for w/(1-w), e^t for e^t - 1.
   docs/theory.md, B1, T0, C3, C5, C10.1, P1, P3, U, V. *)
From mathcomp Require Import ssralg ssrnum ssrint rat.
From Zerodelta Require Import Mixing Selection Keys.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

(* --- the rational numbers are an ordered field ---------------------------------------------------- *)
Section Rationals.
Import GRing.Theory Num.Theory Order.TTheory.
Local Open Scope ring_scope.
Fact rat_laws : field_theory (0 : rat) 1 +%R *%R (fun x y => x + - y) -%R (fun x y => x * y^-1) GRing.inv eq.
Proof.
split; [split| | |] => //.
- exact: add0r.
- exact: addrC.
- exact: addrA.
- exact: mul1r.
- exact: mulrC.
- exact: mulrA.
- exact: mulrDl.
- exact: subrr.
- by move=> x /eqP x0; exact: mulVf.
Qed.
Fact rat_add (z x y : rat) : x <= y -> z + x <= z + y. Proof. by rewrite ler_add2l. Qed.
Fact rat_mul (x y : rat) : 0 <= x -> 0 <= y -> 0 <= x * y. Proof. exact: mulr_ge0. Qed.
Fact rat_trans (y x z : rat) : x <= y -> y <= z -> x <= z. Proof. exact: le_trans. Qed.
Fact rat_antisym (x y : rat) : x <= y -> y <= x -> x = y. Proof. by move=> A B; apply/le_anti/andP. Qed.
Fact rat_total (x y : rat) : (x <= y) || (y <= x). Proof. exact: le_total. Qed.
Definition rationals : ordered_field := @OrderedField rat 0 1 +%R *%R -%R GRing.inv (fun x y => x <= y)
  rat_laws (@lexx _ _) rat_trans rat_antisym rat_total rat_add rat_mul.
End Rationals.

Local Open Scope scalar_scope.
Definition n (k : nat) : rationals := number rationals k.
Notation F := rationals.

(* --- B1: two outputs, e^t = 2, delta = 1/4 --------------------------------------------------------- *)
Definition P : bool -> F := blend (n 1 / n 4) true false.
Definition Q : bool -> F := blend 0 true false.

Example P_Q_laws : distribution P /\ distribution Q.
Proof. by split; apply: blend_distribution. Qed.
Example P_Q_approximate : approximate (n 2) (n 1 / n 4) P Q /\ approximate (n 2) (n 1 / n 4) Q P.
Proof. by split; apply: blend_approximate. Qed.
(* not pure at any epsilon before mixing *)
Example P_Q_not_pure (u : F) : ~ pure u P Q.
Proof.
rewrite -pure_pointwise => /(_ true); have -> : Q true = 0 by vm_compute.
by rewrite mulx0; vm_compute.
Qed.

Definition third : F := n 1 / n 3.
Definition fifth : F := n 1 / n 5.
Notation coin := (@uniform F bool_finType).
(* (1 - w) delta N = (e^t - 1) w at w = 1/3 *)
Theorem example_B1 : pure (n 2) (mix third coin P) (mix third coin Q).
Proof.
apply: (B1_uniform (delta := n 1 / n 4)); rewrite ?card_bool //; exact: P_Q_approximate.1.
Qed.
(* the edge is real: with w = 1/5 it is not pure at e^t = 2 *)
Lemma too_little : ~ pure (n 2) (mix fifth coin P) (mix fifth coin Q).
Proof. by rewrite -pure_pointwise => /(_ true); rewrite /mix /uniform card_bool; vm_compute. Qed.

(* a threshold with N - 1 for N *)
Theorem B1_with_one_output_less_is_false :
  ~ (forall (Y : finType) w (P Q : Y -> F) u delta, (0 < #|Y|)%N -> 0 <= w <= 1 ->
       distribution P -> distribution Q -> approximate u delta P Q -> approximate u delta Q P ->
       (1 - w) * delta * (number F #|Y| - 1) <= (u - 1) * w ->
       pure u (mix w (@uniform F Y) P) (mix w (@uniform F Y) Q)).
Proof.
move=> H; apply: too_little; have [A B] := P_Q_approximate; have [C D] := P_Q_laws.
by apply: (H _ fifth _ _ _ (n 1 / n 4)); rewrite ?card_bool.
Qed.
(* e^t for e^t - 1 *)
Theorem B1_with_u_is_false :
  ~ (forall (Y : finType) w (P Q : Y -> F) u delta, (0 < #|Y|)%N -> 0 <= w <= 1 ->
       distribution P -> distribution Q -> approximate u delta P Q -> approximate u delta Q P ->
       (1 - w) * delta * number F #|Y| <= u * w ->
       pure u (mix w (@uniform F Y) P) (mix w (@uniform F Y) Q)).
Proof.
move=> H; apply: too_little; have [A B] := P_Q_approximate; have [C D] := P_Q_laws.
by apply: (H _ fifth _ _ _ (n 1 / n 4)); rewrite ?card_bool.
Qed.
(* w for w/(1-w): delta N <= (e^t - 1) w is enough, but it is not what B1 says, "exactly if" ... *)
Theorem B1_with_w_is_false :
  ~ (forall (Y : finType) w (U P Q : Y -> F) u, 0 < w -> w < 1 ->
       distribution U -> distribution P -> distribution Q ->
       pure u (mix w U P) (mix w U Q) -> forall y, P y - u * Q y <= (u - 1) * w * U y).
Proof.
move=> H; have [C D] := P_Q_laws.
have U : distribution coin by apply: uniform_distribution; rewrite card_bool.
have := H _ third coin P Q (n 2) isT isT U C D example_B1 true.
by rewrite /uniform card_bool; vm_compute.
Qed.
(* ... and a draw from U that is w times, and not w/(1-w) times, as likely as the answer is too rare *)
Theorem mixing_with_odds_w_is_false :
  ~ (forall (Y : finType) w (P Q : Y -> F) u delta, (0 < #|Y|)%N -> 0 <= w <= 1 ->
       distribution P -> distribution Q -> approximate u delta P Q -> approximate u delta Q P ->
       (1 - w) * delta * number F #|Y| <= (u - 1) * w ->
       pure u (mix (w / (1 + w)) (@uniform F Y) P) (mix (w / (1 + w)) (@uniform F Y) Q)).
Proof.
move=> H; have [A B] := P_Q_approximate; have [C D] := P_Q_laws.
have : pure (n 2) (mix (third / (1 + third)) coin P) (mix (third / (1 + third)) coin Q).
  by apply: (H _ third _ _ _ (n 1 / n 4)); rewrite ?card_bool.
by rewrite -pure_pointwise => /(_ true); rewrite /mix /uniform card_bool; vm_compute.
Qed.

(* --- T0: randomized response with 5 to 1, and two mixed answers one after another ------------------- *)
Definition response (y z : bool) : F := if y == z then n 5 / n 6 else n 1 / n 6.
Theorem example_T0 : pure (n 2) (through response P) (through response Q).
Proof.
have [A _] := P_Q_approximate; have [C D] := P_Q_laws.
apply: (T0 (delta := n 1 / n 4) (c := n 5)) => //; first by case=> [] [].
by case=> [] [] [].
Qed.
Theorem example_composition : pure (n 2 * n 2)
  (joint (mix third coin P) (fun _ => mix third coin P)) (joint (mix third coin Q) (fun _ => mix third coin Q)).
Proof.
have U : distribution coin by apply: uniform_distribution; rewrite card_bool.
have [M0 _] : distribution (mix third coin P) by apply: mix_distribution P_Q_laws.1.
by apply: composition => [y|y z||y]; [exact: M0 | exact: M0 | exact: example_B1 | exact: example_B1].
Qed.

(* --- tests before releasing (C3, C5): two outputs, tests that pass with probability 1/8 and 1/3 ------ *)
Definition tested (y0 : bool) (o : option bool) : F :=
  match o with None => n 7 / n 8 | Some y => if y == y0 then n 1 / n 8 else 0 end.
Theorem example_C3 : pure (n 10 / n 7) (fill coin (tested true)) (fill coin (tested false)).
Proof.
apply: (C3 (dp := n 1 / n 8) (pm := 1)); rewrite ?card_bool //; first by move=> [[]|].
by right; split=> // -[].
Qed.
Theorem example_C5 : pure (n 2) (mode_law third true) (mode_law third false).
Proof. by apply: (C5 (dp := third)); rewrite ?card_bool. Qed.

(* --- selection (C10.1): weights 2 and 1, and the other way round ------------------------------------- *)
Definition weights (best y : bool) : F := if y == best then n 2 else 1.
Theorem example_exponential :
  pure (n 2 * n 2) (exponential_mechanism (weights true)) (exponential_mechanism (weights false)).
Proof. by apply: exponential_pure => // -[]. Qed.
Theorem example_permute_and_flip :
  pure (n 2 * n 2) (permute_and_flip (weights true) (n 2)) (permute_and_flip (weights false) (n 2)).
Proof. by apply: permute_and_flip_pure => //; try (by case); exists false. Qed.

(* --- counts of two cells with rounded Laplace noise, e^(1/b) = 4 (P1), by key (U), in groups (P3) ----- *)
Definition half : F := n 1 / n 2.
Definition noise : int -> F := rounded_laplace half.
Lemma noise_ge0 k : 0 <= noise k. Proof. exact: rounded_laplace_ge0. Qed.
Lemma noise_falls : falls noise (n 4). Proof. exact: rounded_laplace_falls. Qed.
Lemma noise_rises : rises noise (n 4). Proof. exact: rounded_laplace_rises. Qed.
Definition cell (r j : bool) : nat := r == j.
Lemma one_cell r : (\sum_j cell r j <= 1)%N.
Proof. by rewrite big_bool /cell; case: r. Qed.

Example a_row_is_replaced : replace_rows 1 [:: true] [:: false].
Proof. by exists [:: true], [:: false], [::]. Qed.
Theorem example_P1 : private_pointwise (replace_rows 1) (power (n 4) 2) (noisy_table cell noise).
Proof. exact: (P1_replace (v := n 4) isT noise_ge0 noise_falls noise_rises one_cell). Qed.
Theorem example_U : private_pointwise (replace_rows 1) (power (n 2) 1 * power (n 3) 1)
  (noisy_counts (fun r : bool => Some r) (geometric (n 1) half third)).
Proof.
apply: U_replace => //; first by move=> k; apply: geometric_ge0.
- exact: geometric_falls.
- exact: geometric_rises.
Qed.
Lemma two_counts_removal : removal (noisy_table cell noise) (n 4).
Proof. by have := noisy_removal (isT : 1 <= n 4) noise_ge0 noise_falls one_cell; rewrite power1. Qed.
Lemma two_counts_addition : addition (noisy_table cell noise) (n 4).
Proof. by have := noisy_addition (isT : 1 <= n 4) noise_ge0 noise_rises one_cell; rewrite power1. Qed.
Theorem example_P3 : private_pointwise (replace_rows 1) (power (n 4) 2)
  (by_group (fun r : bool => Some r) (fun _ => noisy_table cell noise)).
Proof.
apply: (@P3_replace _ _ _ _ _ _ _ _ (n 4) 1) => //.
- by move=> g; exact: noisy_ge0 noise_ge0.
- by move=> g; exact: noisy_unordered.
- by move=> g; exact: two_counts_removal.
- by move=> g; exact: two_counts_addition.
Qed.
(* a unit with up to 3 rows (V) *)
Theorem example_units : private_pointwise (changes (replace_rows 1) 3) (power (power (n 4) 2) 3)
  (noisy_table cell noise).
Proof. by apply: group_privacy example_P1 => // d y; exact: noisy_ge0 noise_ge0 _ _. Qed.
