(* Lemma R for Laplace noise: the formula of round(Lap(b)) is the integral of the density over the cell of
   numbers that are rounded to k.  docs/theory.md, R, R(vi).  Labels rounded-laplace, partition-laplace. *)
From mathcomp Require Import ssralg ssrint.
From Coq Require Import Reals Lra.
From Coquelicot Require Import Coquelicot.
From Zerodelta Require Export PureDP.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Local Open Scope R_scope.

(* an integer as a real number *)
Definition center (k : int) : R := match k with Posz n => INR n | Negz n => - INR n.+1 end.
Definition laplace_density (b x : R) : R := exp (- (Rabs x / b)) / (2 * b).

Section Law.
Variable b : R.
Hypothesis b0 : 0 < b.
Let s : R := exp (- / (2 * b)).

Lemma right_of_zero x y : 0 <= x -> x <= y ->
  is_RInt (laplace_density b) x y ((exp (- (x / b)) - exp (- (y / b))) / 2).
Proof.
move=> x0 xy; have -> : (exp (- (x / b)) - exp (- (y / b))) / 2 =
  Hierarchy.minus (- exp (- (y / b)) / 2) (- exp (- (x / b)) / 2) by rewrite /Hierarchy.minus /Hierarchy.plus /Hierarchy.opp /=; field.
apply: (is_RInt_ext (fun z => exp (- (z / b)) / (2 * b))) => [z|].
  rewrite Rmin_left // Rmax_right // => -[xz zy]; rewrite /laplace_density Rabs_pos_eq //; lra.
apply: (is_RInt_derive (fun z => - exp (- (z / b)) / 2)) => z _.
  by auto_derive => //; rewrite /Rdiv; field; lra.
apply: (@ex_derive_continuous R_AbsRing R_NormedModule); by auto_derive; lra.
Qed.

Lemma left_of_zero x y : x <= y -> y <= 0 ->
  is_RInt (laplace_density b) x y ((exp (y / b) - exp (x / b)) / 2).
Proof.
move=> xy y0; have -> : (exp (y / b) - exp (x / b)) / 2 =
  Hierarchy.minus (exp (y / b) / 2) (exp (x / b) / 2) by rewrite /Hierarchy.minus /Hierarchy.plus /Hierarchy.opp /=; field.
apply: (is_RInt_ext (fun z => exp (z / b) / (2 * b))) => [z|].
  rewrite Rmin_left // Rmax_right // => -[xz zy]; rewrite /laplace_density Rabs_left1; last lra.
  by congr (exp _ / _); field; lra.
apply: (is_RInt_derive (fun z => exp (z / b) / 2)) => z _.
  by auto_derive => //; rewrite /Rdiv; field; lra.
apply: (@ex_derive_continuous R_AbsRing R_NormedModule); by auto_derive; lra.
Qed.

Lemma exp_power x n : exp (INR n * x) = @power real_field (exp x) n.
Proof. by rewrite power_exp. Qed.

Lemma cell_of n : (exp (- ((INR n.+1 - 1/2) / b)) - exp (- ((INR n.+1 + 1/2) / b))) / 2 =
  @tail real_field s n.+1.
Proof.
have S : s * s = exp (- / b) by rewrite /s -exp_plus; congr exp; field; lra.
have I : / s = exp (/ (2 * b)) by rewrite /s -exp_Ropp Ropp_involutive.
rewrite /tail [@mul real_field s s]S -exp_power.
set t := exp (INR n.+1 * - / b); rewrite [@inv real_field s]I.
have A : exp (- ((INR n.+1 - 1/2) / b)) = exp (/ (2 * b)) * t.
  by rewrite /t -exp_plus; congr exp; field; lra.
have B : exp (- ((INR n.+1 + 1/2) / b)) = s * t.
  by rewrite /t /s -exp_plus; congr exp; field; lra.
by rewrite A B /=; field.
Qed.

(* the numbers that are rounded to k have probability laplace b k *)
Theorem rounded_laplace_law (k : int) :
  is_RInt (laplace_density b) (center k - 1/2) (center k + 1/2) (laplace b k).
Proof.
have pos n : 0 <= INR n by apply: pos_INR.
case: k => [[|n]|n]; rewrite /laplace /rounded_laplace /center -/s.
- have -> : @add real_field 1 (@opp real_field s) =
    Hierarchy.plus ((exp (0 / b) - exp ((0 - 1/2) / b)) / 2) ((exp (- (0 / b)) - exp (- ((0 + 1/2) / b))) / 2).
    have A : exp ((0 - 1/2) / b) = s by rewrite /s; congr exp; field; lra.
    have B : exp (- ((0 + 1/2) / b)) = s by rewrite /s; congr exp; field; lra.
    have C : exp (0 / b) = 1 by rewrite /Rdiv Rmult_0_l exp_0.
    have D : exp (- (0 / b)) = 1 by rewrite /Rdiv Rmult_0_l Ropp_0 exp_0.
    by rewrite A B C D /Hierarchy.plus /=; field.
  by apply: (is_RInt_Chasles _ _ 0); [apply: left_of_zero | apply: right_of_zero]; rewrite /=; lra.
- rewrite -cell_of; apply: right_of_zero; last lra.
  by rewrite S_INR; have := pos n; lra.
rewrite -cell_of.
have -> : (exp (- ((INR n.+1 - 1/2) / b)) - exp (- ((INR n.+1 + 1/2) / b))) / 2 =
          (exp ((- INR n.+1 + 1/2) / b) - exp ((- INR n.+1 - 1/2) / b)) / 2.
  by congr ((exp _ - exp _) / 2); field; lra.
by apply: left_of_zero; rewrite S_INR; have := pos n; lra.
Qed.
End Law.
