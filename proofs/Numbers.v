(* The numbers of a certificate, by Coq-Interval: logarithms and exponentials of rational numbers, with
   outward rounding.  `zerodelta prove` writes such a file for one certificate.  Only here are the
   axioms of Coq's machine integers used, with which Coq-Interval computes. *)
From mathcomp Require Import ssrint.
From Coq Require Export Reals Lra.
From Interval Require Export Tactic.
From Zerodelta Require Export Totals.
Local Open Scope R_scope.

(* an inequality between numbers: of fractions exactly, else between intervals of 200 bits *)
Ltac number := unfold mixing_allows;
  first [lra | interval with (i_prec 200) | fail 1 "the numbers do not prove this inequality"].

(* epsilon = 1, 16 outputs, w = 1/100, ln delta = -89/10 *)
Theorem an_example : mixing_allows 1 (1/100) (ln 16) (-89/10).
Proof. number. Qed.
(* ln delta = -68/10 is not enough *)
Theorem a_counterexample : ~ mixing_allows 1 (1/100) (ln 16) (-68/10).
Proof. apply Rlt_not_le; number. Qed.
(* 2^1000 outputs: exponents far below those of doubles *)
Theorem a_large_space : mixing_allows 1 (1/100) (1000 * ln 2) (-700).
Proof. number. Qed.

(* a whole certificate: any mechanism on 16 outputs that is (1, e^-8.9)-DP *)
Theorem a_release (D : Type) (neighbors : D -> D -> Prop) (Y : finType) (M : D -> Y -> R) :
  outputs Y = 16 -> (forall d, law (M d)) -> approximate_DP neighbors M 1 (-89/10) ->
  pure_DP neighbors (mixture M (1/100) (fun _ => / outputs Y)) 1.
Proof.
intros N L H; apply (uniform_mixing (log_mass := ln 16) (l := -89/10)); try number; try assumption.
rewrite N exp_ln; number.
Qed.
