(* Pure differential privacy over Coq's real numbers, with e^epsilon: the theorems as certificates use
   them.  Only here are axioms: those of Coq's own real numbers, which check.py lists.
   docs/theory.md, all sections of the other files; the conditions are those of privacy/theorems/. *)
From mathcomp Require Import ssralg ssrint.
From Coq Require Import Reals Lra.
From Zerodelta Require Export Mixing Selection Keys.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

(* --- the real numbers are an ordered field -------------------------------------------------------- *)
Definition Rleb (x y : R) : bool := if Rle_dec x y then true else false.
Lemma RlebP (x y : R) : Rleb x y <-> (x <= y)%R.
Proof. by rewrite /Rleb; case: Rle_dec. Qed.

Definition real_field_laws : field_theory 0%R 1%R Rplus Rmult (fun x y => Rplus x (Ropp y)) Ropp
  (fun x y => Rmult x (Rinv y)) Rinv eq := Rfield.
Fact Rleb_refl x : Rleb x x. Proof. by apply/RlebP; lra. Qed.
Fact Rleb_trans y x z : Rleb x y -> Rleb y z -> Rleb x z.
Proof. by move=> /RlebP A /RlebP B; apply/RlebP; lra. Qed.
Fact Rleb_antisym x y : Rleb x y -> Rleb y x -> x = y.
Proof. by move=> /RlebP A /RlebP B; lra. Qed.
Fact Rleb_total x y : Rleb x y || Rleb y x.
Proof. by apply/orP; case: (Rle_dec x y) => H; [left | right]; apply/RlebP; lra. Qed.
Fact Rleb_add z x y : Rleb x y -> Rleb (z + x) (z + y).
Proof. by move=> /RlebP A; apply/RlebP; lra. Qed.
Fact Rleb_mul x y : Rleb 0 x -> Rleb 0 y -> Rleb 0 (x * y).
Proof. by move=> /RlebP A /RlebP B; apply/RlebP; apply: Rmult_le_pos. Qed.
Canonical real_field : ordered_field := @OrderedField R 0%R 1%R Rplus Rmult Ropp Rinv Rleb
  real_field_laws Rleb_refl Rleb_trans Rleb_antisym Rleb_total Rleb_add Rleb_mul.

Lemma le_real (x y : R) : @leb real_field x y <-> (x <= y)%R. Proof. exact: RlebP. Qed.
Lemma lt_real (x y : R) : ~~ @leb real_field y x <-> (x < y)%R.
Proof.
split=> [/negP H|H]; first by apply: Rnot_le_lt => L; apply: H; apply/RlebP.
by apply/negP => /RlebP; lra.
Qed.
Lemma number_real n : number real_field n = INR n.
Proof. by elim: n => // n IH; rewrite S_INR Rplus_comm -IH. Qed.
Lemma power_exp (x : R) n : @power real_field (exp x) n = exp (INR n * x).
Proof.
elim: n => [|n IH]; first by rewrite /= Rmult_0_l exp_0.
rewrite S_INR Rmult_plus_distr_r Rmult_1_l Rplus_comm exp_plus -IH //.
Qed.
Lemma exp_ge1 x : (0 <= x)%R -> (1 <= exp x)%R.
Proof. by move=> x0; rewrite -exp_0; case: x0 => [H|<-]; [left; apply: exp_increasing | right]. Qed.
Lemma exp_le x y : (x <= y)%R -> (exp x <= exp y)%R.
Proof. by case=> [H|->]; [left; apply: exp_increasing | right]. Qed.

Local Open Scope R_scope.

(* how many outputs there are *)
Definition outputs (Y : finType) : R := INR #|Y|.
Lemma number_outputs (Y : finType) : number real_field #|Y| = outputs Y.
Proof. exact: number_real. Qed.

(* --- what is claimed ------------------------------------------------------------------------------- *)
Definition law (Y : finType) (P : Y -> R) : Prop :=
  (forall y, 0 <= P y) /\ \big[Rplus/0]_(y : Y) P y = 1.

Section Claims.
Variable D : Type.
Variable neighbors : D -> D -> Prop.

(* finitely many outputs: P(S) <= e^eps P'(S) for all neighbors and all sets S of outputs *)
Definition pure_DP (Y : finType) (M : D -> Y -> R) (eps : R) : Prop :=
  forall d d', neighbors d d' -> forall S : {set Y},
  \big[Rplus/0]_(y in S) M d y <= exp eps * \big[Rplus/0]_(y in S) M d' y.

(* (eps, delta): the claim of a base mechanism, with the logarithm of delta *)
Definition approximate_DP (Y : finType) (M : D -> Y -> R) (eps log_delta : R) : Prop :=
  forall d d', neighbors d d' -> forall S : {set Y},
  \big[Rplus/0]_(y in S) M d y <= exp eps * (\big[Rplus/0]_(y in S) M d' y) + exp log_delta.

(* outputs of any kind: for all events (Definitions.v says what their probabilities are) *)
Definition pure_DP_events (T : eqType) (M : D -> T -> R) (eps : R) : Prop :=
  forall d d', neighbors d d' -> forall (E : pred T) (m m' : R),
  @probability real_field T (M d) E m -> @probability real_field T (M d') E m' -> m <= exp eps * m'.

Lemma pure_DP_pure (Y : finType) (M : D -> Y -> R) eps :
  pure_DP M eps <-> forall d d', neighbors d d' -> @pure real_field Y (exp eps) (M d) (M d').
Proof.
by split=> H d d' n S; have := H d d' n S => L; [apply/RlebP | apply/RlebP/L].
Qed.
Lemma approximate_DP_approximate (Y : finType) (M : D -> Y -> R) eps l :
  approximate_DP M eps l ->
  forall d d', neighbors d d' -> @approximate real_field Y (exp eps) (exp l) (M d) (M d').
Proof. by move=> H d d' n S; apply/RlebP; apply: H. Qed.
(* label given: what holds at eps0 and ln delta holds above *)
Theorem approximate_DP_above (Y : finType) (M : D -> Y -> R) eps0 l0 eps l :
  (forall d, law (M d)) -> eps0 <= eps -> l0 <= l ->
  approximate_DP M eps0 l0 -> approximate_DP M eps l.
Proof.
move=> M0 ee ll H d d' n S; apply/RlebP; have [P0 _] := M0 d'.
apply: (@approximate_weaken real_field Y (exp eps0) (exp eps) (exp l0) (exp l)).
- by move=> y; apply/RlebP.
- by apply/RlebP; apply: exp_le.
- by apply/RlebP; apply: exp_le.
- by move=> S'; apply/RlebP; apply: H.
Qed.

Lemma pointwise_DP (T : eqType) (M : D -> T -> R) eps :
  (forall d d', neighbors d d' -> @pointwise real_field T (exp eps) (M d) (M d')) ->
  pure_DP_events M eps.
Proof.
move=> H d d' n E m m' A B; apply/RlebP; apply: (pointwise_pure_events _ (H d d' n) A B).
by apply/RlebP; left; apply: exp_pos.
Qed.
Lemma DP_pointwise (T : eqType) (M : D -> T -> R) eps : (forall d y, 0 <= M d y) ->
  pure_DP_events M eps ->
  forall d d', neighbors d d' -> @pointwise real_field T (exp eps) (M d) (M d').
Proof.
move=> M0 H d d' n; have P0 e y : @leb real_field 0 (M e y) by apply/RlebP.
by apply: pure_events_pointwise => // E m m' A B; apply/RlebP; apply: (H d d' n E).
Qed.

(* of finitely many outputs the two claims are the same *)
Theorem pure_DP_is_pure_DP_events (Y : finType) (M : D -> Y -> R) eps :
  (forall d y, 0 <= M d y) -> pure_DP M eps <-> pure_DP_events M eps.
Proof.
move=> M0; split=> [/pure_DP_pure H|H].
  by apply: pointwise_DP => d d' n; exact: (proj2 (pure_pointwise _ _ _) (H d d' n)).
by apply/pure_DP_pure => d d' n; exact: (proj1 (pure_pointwise _ _ _) (DP_pointwise M0 H n)).
Qed.

(* whatever is published of the output *)
Theorem published_DP (T O : eqType) (f : T -> O) (M : D -> T -> R) eps : pure_DP_events M eps ->
  forall d d', neighbors d d' -> forall (E : pred O) (m m' : R),
  @probability real_field T (M d) (output f E) m -> @probability real_field T (M d') (output f E) m' ->
  m <= exp eps * m'.
Proof. by move=> H d d' n E; apply: H. Qed.
End Claims.

Lemma law_distribution (Y : finType) (P : Y -> R) : law P -> @distribution real_field Y P.
Proof. by move=> [P0 P1]; split=> // y; apply/RlebP. Qed.

(* the probability of an event exists, if no finite sum is above 1: the claims are not empty *)
Theorem probability_exists (T : eqType) (P : T -> R) (E : pred T) :
  (forall s : seq T, uniq s -> \big[Rplus/0]_(y <- s) P y <= 1) ->
  exists m, @probability real_field T P E m.
Proof.
move=> P1; have [||m [up least]] := completeness (fun x => @part_of real_field T P E x).
- by exists 1 => _ [s [us _ ->]]; apply: P1.
- by exists 0, [::]; split=> //; rewrite big_nil.
exists m; split=> [x H|b H]; apply/RlebP; first exact: up.
by apply: least => x Hx; apply/RlebP; apply: H.
Qed.

(* --- mixing: the condition of privacy/theorems/mixing.py, largest_log_delta ---------------------- *)
(* ln delta(t) + ln M <= ln(w/(1-w)) + ln(e^t - 1) *)
Definition mixing_allows (eps w log_mass log_delta : R) : Prop :=
  log_delta + log_mass <= ln (w / (1 - w)) + ln (exp eps - 1).

Lemma mixing_condition eps w log_mass l : 0 < eps -> 0 < w < 1 ->
  mixing_allows eps w log_mass l -> (1 - w) * exp l * exp log_mass <= (exp eps - 1) * w.
Proof.
move=> e0 [w0 w1] C; have E : 1 < exp eps by rewrite -exp_0; apply: exp_increasing.
have := exp_le C; rewrite !exp_plus !exp_ln; [|lra|]; last first.
  by apply: Rmult_lt_0_compat => //; apply: Rinv_0_lt_compat; lra.
move=> L; have := Rmult_le_compat_l (1 - w) _ _ _ L; have -> : (1 - w) * (w / (1 - w) * (exp eps - 1)) =
  (exp eps - 1) * w by field; lra.
by rewrite -Rmult_assoc; apply; lra.
Qed.

Section Mixing.
Variables (D : Type) (neighbors : D -> D -> Prop) (Y : finType) (M : D -> Y -> R).
Hypothesis M_law : forall d, law (M d).

(* a draw from a public U replaces the answer with probability w *)
Definition mixture (w : R) (U : Y -> R) : D -> Y -> R := fun d y => (1 - w) * M d y + w * U y.

(* labels uniform-mixing, grid-mixing, unequal-grid-mixing: e^log_mass outputs at most *)
Theorem uniform_mixing eps w log_mass l : 0 < eps -> 0 < w < 1 ->
  0 < outputs Y <= exp log_mass -> approximate_DP neighbors M eps l ->
  mixing_allows eps w log_mass l ->
  pure_DP neighbors (mixture w (fun _ => / outputs Y)) eps.
Proof.
move=> e0 w01 [N0 NM] H C; apply/pure_DP_pure => d d' n.
have := @B1_uniform real_field Y w (M d) (M d') (exp eps) (exp l).
rewrite /mix /uniform number_outputs; apply.
- by apply/ltP/INR_lt.
- by apply/RlebP; rewrite /=; lra.
- exact: approximate_DP_approximate H _ _ n.
apply/RlebP; rewrite /=; apply: Rle_trans (mixing_condition e0 w01 C).
apply: Rmult_le_compat_l => //; apply: Rmult_le_pos; [lra | left; exact: exp_pos].
Qed.

(* label prior-mixing: no output of U has a probability below e^-log_mass *)
Theorem prior_mixing eps w log_mass l (U : Y -> R) : 0 < eps -> 0 < w < 1 ->
  (forall y, exp (- log_mass) <= U y) -> approximate_DP neighbors M eps l ->
  mixing_allows eps w log_mass l -> pure_DP neighbors (mixture w U) eps.
Proof.
move=> e0 w01 UM H C; apply/pure_DP_pure => d d' n.
have E : 1 < exp eps by rewrite -exp_0; apply: exp_increasing.
apply: (@B1_prior real_field Y w U (M d) (M d') (exp eps) (exp l) (exp (- log_mass))) => //;
  try (by apply/RlebP; rewrite /=; lra).
- by move=> y; apply/RlebP.
- exact: approximate_DP_approximate H _ _ n.
apply/RlebP; rewrite /=; have := mixing_condition e0 w01 C => L.
have := Rmult_le_compat_r _ _ _ (Rlt_le _ _ (exp_pos (- log_mass))) L.
by rewrite [X in X <= _]Rmult_assoc -exp_plus Rplus_opp_r exp_0 Rmult_1_r.
Qed.

(* label profile-mixing: the pointwise profile at s <= eps is at most ratio U *)
Theorem profile_mixing eps s w ratio (U : Y -> R) : 0 < w < 1 -> s <= eps ->
  (forall y, 0 <= U y) ->
  (forall d d', neighbors d d' -> forall y, M d y - exp s * M d' y <= ratio * U y) ->
  ratio * (1 - w) / w <= exp eps - 1 -> pure_DP neighbors (mixture w U) eps.
Proof.
move=> [w0 w1] se U0 H C; apply/pure_DP_pure => d d' n.
apply: (@B1_profile real_field Y w U (M d) (M d') (exp eps) (exp s) ratio).
- by apply/RlebP; rewrite /=; lra.
- by move=> y; apply/RlebP.
- by move=> y; apply/RlebP; case: (M_law d').
- by apply/RlebP; apply: exp_le.
- by move=> y; apply/RlebP; apply: H.
apply/RlebP; rewrite /=; have := Rmult_le_compat_r w _ _ (Rlt_le _ _ w0) C.
have -> : ratio * (1 - w) / w * w = ratio * (1 - w) by field; lra.
by [].
Qed.
End Mixing.

(* --- testing before releasing: the conditions of privacy/theorems/testing.py ---------------------- *)
Section Testing.
Variables (D : Type) (neighbors : D -> D -> Prop) (Y : finType).
Hypothesis some : 0 < outputs Y.

(* label pure-propose-test-release: None is a failed test; a uniform answer is published then.
   spread = N pm;  e^t - 1 - dp (spread + e^t) >= 0 *)
Theorem propose_test_release eps dp pm (M : D -> option Y -> R) : 0 <= eps ->
  (forall d, law (M d)) ->
  (forall d d', neighbors d d' ->
     (forall o, M d o <= exp eps * M d' o) \/
     ((forall y, M d (Some y) <= dp * pm) /\ 1 - dp <= M d' None)) ->
  0 <= exp eps - 1 - dp * (outputs Y * pm + exp eps) ->
  pure_DP neighbors (fun d y => M d (Some y) + M d None * / outputs Y) eps.
Proof.
move=> e0 ML H C; apply/pure_DP_pure => d d' n.
have [Q0 _] := ML d'.
have := @C3 real_field Y (M d) (M d') (exp eps) dp pm; rewrite /fill /uniform !number_outputs; apply.
- by apply/ltP/INR_lt.
- by move=> o; apply/RlebP.
- exact: distribution_le1 (law_distribution (ML d)).
- case: (H d d' n) => [A|[A B]]; [left; rewrite -pure_pointwise => o; apply/RlebP; exact: A | right].
  by split=> [y|]; apply/RlebP => //; apply: A.
- by apply/RlebP; rewrite /=; have := exp_pos eps; lra.
by apply/RlebP; rewrite /=; nra.
Qed.

(* label pure-local-sensitivity: (1-w)(N db pm + db) <= w(e^t - 1) *)
Theorem local_sensitivity eps w db pm (M : D -> option Y -> R) : 0 < w < 1 ->
  (forall d d', neighbors d d' ->
     (forall y, M d (Some y) - exp eps * M d' (Some y) <= db * pm) /\
     M d None - exp eps * M d' None <= db) ->
  0 <= w * (exp eps - 1) - (1 - w) * db * (outputs Y * pm + 1) ->
  pure_DP neighbors (fun d y => (1 - w) * (M d (Some y) + M d None * / outputs Y) + w * / outputs Y) eps.
Proof.
move=> w01 H C; apply/pure_DP_pure => d d' n; have [A B] := H d d' n.
have := @C4 real_field Y (M d) (M d') (exp eps) w db pm.
rewrite /mix /fill /uniform !number_outputs; apply.
- by apply/ltP/INR_lt.
- by apply/RlebP; rewrite /=; lra.
- by move=> y; apply/RlebP; apply: A.
- exact/RlebP.
by apply/RlebP; rewrite /=; lra.
Qed.

(* label stable-mode: f d is the most frequent item, and passes with probability pass d;
   e^eps - 1 - dp (N + e^eps - 1) >= 0 *)
Theorem stable_mode eps dp (f : D -> Y) (pass : D -> R) : 0 <= eps -> dp <= 1 ->
  (forall d, 0 <= pass d) ->
  (forall d d', neighbors d d' -> f d = f d' ->
     pass d <= exp eps * pass d' /\ 1 - pass d <= exp eps * (1 - pass d')) ->
  (forall d d', neighbors d d' -> f d <> f d' -> pass d <= dp /\ pass d' <= dp) ->
  0 <= exp eps - 1 - dp * (outputs Y + (exp eps - 1)) ->
  pure_DP neighbors (fun d y => pass d * (if y == f d then 1 else 0) + (1 - pass d) * / outputs Y) eps.
Proof.
move=> e0 d1 p0 same other C; apply/pure_DP_pure => d d' n; have E := exp_ge1 e0.
have := @C5 real_field Y (exp eps) dp (pass d) (pass d') (f d) (f d').
rewrite /mode_law /point !number_outputs; apply.
- exact/RlebP.
- by apply/RlebP; apply: p0.
- by apply/RlebP; apply: p0.
- by move=> /(same d d' n) [A B]; split; apply/RlebP.
- by move=> /(other d d' n) [A B]; split; apply/RlebP.
- exact/RlebP.
by apply/RlebP; rewrite /=; lra.
Qed.
End Testing.

(* --- selection: the epsilon of privacy/theorems/noise.py, _Selection.cost ------------------ *)
Section Selection.
Variables (D : Type) (neighbors : D -> D -> Prop) (Y : finType).
Variables (score : D -> Y -> R) (sensitivity scale : R).
Hypothesis scale_positive : 0 < scale.
Hypothesis moves : forall d d', neighbors d d' -> forall y, Rabs (score d y - score d' y) <= sensitivity.
(* all scores move in the same direction *)
Definition monotone : Prop := forall d d', neighbors d d' ->
  (forall y, score d y <= score d' y) \/ (forall y, score d' y <= score d y).

Definition weight d y : R := exp (score d y / scale).
Definition costs (eps : R) : Prop :=
  2 * sensitivity / scale <= eps \/ (monotone /\ sensitivity / scale <= eps).

Let factors eps d d' : neighbors d d' -> costs eps ->
  exists a b, [/\ a + b <= eps, forall y, weight d y <= exp a * weight d' y &
               forall y, weight d' y <= exp b * weight d y].
Proof.
move=> n cases.
have up x x' t : x - x' <= t * scale -> exp (x / scale) <= exp t * exp (x' / scale).
  move=> L; rewrite -exp_plus; apply: exp_le; apply: (Rmult_le_reg_l scale) => //.
  rewrite Rmult_plus_distr_l; have -> : scale * (x / scale) = x by field; lra.
  have -> : scale * (x' / scale) = x' by field; lra.
  by move: L; rewrite [t * _]Rmult_comm; lra.
have ss : sensitivity / scale * scale = sensitivity by field; lra.
have bound y : score d y - score d' y <= sensitivity /\ score d' y - score d y <= sensitivity.
  have := moves n y; rewrite /Rabs; case: Rcase_abs => *; lra.
case: cases => [e2|[mono e1]].
  exists (sensitivity / scale), (sensitivity / scale); split=> [|y|y].
  - by apply: Rle_trans e2; right; field; lra.
  - by apply: up; rewrite ss; case: (bound y).
  - by apply: up; rewrite ss; case: (bound y).
case: (mono d d' n) => L; [exists 0, (sensitivity / scale) | exists (sensitivity / scale), 0];
  split=> [|y|y]; try lra; apply: up; have := bound y; have := L y; rewrite ?ss; lra.
Qed.

(* label exponential-mechanism *)
Theorem exponential_selection eps : costs eps ->
  pure_DP neighbors (fun d => @exponential_mechanism real_field Y (weight d)) eps.
Proof.
move=> C; apply/pure_DP_pure => d d' n; have [a [b [ab A B]]] := factors n C.
apply: (@pure_weaken real_field Y (exp a * exp b)).
- move=> y; have [P0 _] := @exponential_distribution real_field Y (weight d') y
    (fun j => proj2 (lt_real _ _) (exp_pos _)).
  exact: P0.
- by apply/RlebP; rewrite /= -exp_plus; apply: exp_le.
by apply: (@exponential_pure real_field Y (exp a) (exp b)) => [|j|j|j|j];
  [apply/RlebP; left; apply: exp_pos | apply/lt_real; apply: exp_pos | apply/lt_real; apply: exp_pos
  | apply/RlebP; apply: A | apply/RlebP; apply: B].
Qed.

(* label permute-and-flip: best d has the largest score *)
Theorem permute_and_flip_selection eps (best : D -> Y) :
  (forall d y, score d y <= score d (best d)) -> costs eps ->
  pure_DP neighbors
    (fun d => @permute_and_flip real_field Y (weight d) (weight d (best d))) eps.
Proof.
move=> top C; apply/pure_DP_pure => d d' n; have [a [b [ab A B]]] := factors n C.
have pos e y : ~~ @leb real_field (weight e y) 0 by apply/lt_real; apply: exp_pos.
have inside e y : (@leb real_field 0 (weight e y)) && (@leb real_field (weight e y) (weight e (best e))).
  apply/andP; split; apply/RlebP; first by left; apply: exp_pos.
  apply: exp_le; apply: Rmult_le_compat_r (top e y).
  by left; apply: Rinv_0_lt_compat.
apply: (@pure_weaken real_field Y (exp a * exp b)).
- have ex : exists j, weight d' j = weight d' (best d') by exists (best d').
  by have [P0 _] := @permute_and_flip_distribution real_field Y _ _ (pos _ _) (inside d') ex.
- by apply/RlebP; rewrite /= -exp_plus; apply: exp_le.
have b0 : @leb real_field 0 (exp b) by apply/RlebP; left; apply: exp_pos.
apply: (permute_and_flip_pure b0 (pos _ _) (pos _ _) (inside d) (inside d')).
- by exists (best d').
- by move=> j; apply/RlebP; apply: A.
by move=> j; apply/RlebP; apply: B.
Qed.
End Selection.

(* --- integer noise on counts and sums ------------------------------------------------------------- *)
(* a law on the integers whose neighboring probabilities differ by at most e^up and e^down *)
Definition integer_noise (up down : R) (p : int -> R) : Prop :=
  [/\ forall k, 0 <= p k, @falls real_field p (exp up) & @rises real_field p (exp down)].

(* round(Lap(b)), by its formula *)
Definition laplace (scale : R) : int -> R := @rounded_laplace real_field (exp (- / (2 * scale))).
(* c e^(-up k) upwards, c e^(-down |k|) downwards *)
Definition two_sided (c up down : R) : int -> R := @geometric real_field c (exp (- up)) (exp (- down)).

Lemma exp_lt1 x : 0 < x -> exp (- x) <= 1.
Proof. by move=> x0; rewrite -exp_0; apply: exp_le; lra. Qed.

Theorem laplace_noise scale : 0 < scale -> integer_noise (/ scale) (/ scale) (laplace scale).
Proof.
move=> b0; have i0 : 0 < / (2 * scale) by apply: Rinv_0_lt_compat; lra.
have s0 : ~~ @leb real_field (exp (- / (2 * scale))) 0 by apply/lt_real; apply: exp_pos.
have s1 : @leb real_field (exp (- / (2 * scale))) 1 by apply/RlebP; apply: exp_lt1.
have E : exp (/ scale) = @inv real_field (exp (- / (2 * scale)) * exp (- / (2 * scale))).
  rewrite /= -exp_plus -exp_Ropp; congr (exp _); by field; lra.
rewrite /integer_noise E; split=> [k||].
- by apply/RlebP; apply: rounded_laplace_ge0.
- exact: rounded_laplace_falls.
- exact: rounded_laplace_rises.
Qed.

Theorem two_sided_noise c up down : 0 <= c -> 0 < up -> 0 < down ->
  integer_noise up down (two_sided c up down).
Proof.
move=> c0 u0 d0.
have pos x : ~~ @leb real_field (exp x) 0 by apply/lt_real; apply: exp_pos.
have small x : 0 < x -> @leb real_field (exp (- x)) 1 by move=> x0; apply/RlebP; apply: exp_lt1.
have E x : exp x = @inv real_field (exp (- x)) by rewrite /= -exp_Ropp Ropp_involutive.
have C : @leb real_field 0 c by apply/RlebP.
rewrite /integer_noise (E up) (E down); split=> [k||].
- by apply/RlebP; apply: geometric_ge0.
- by apply: geometric_falls => //; apply: small.
- by apply: geometric_rises => //; apply: small.
Qed.

Section Tables.
Variables (Row : eqType) (J : finType) (amount : Row -> J -> nat) (p : int -> R).
Variables (row_total unit_rows : nat).
Hypothesis rows_add_up : forall r, (\sum_j amount r j <= row_total)%N.

Let lift (neighbors : seq Row -> seq Row -> Prop) (T : eqType) (N : seq Row -> T -> R) x n eps :
  (forall d y, @leb real_field 0 (N d y)) -> INR n * x <= eps ->
  @private_pointwise real_field T (seq Row) neighbors (@power real_field (exp x) n) N ->
  pure_DP_events neighbors N eps.
Proof.
move=> N0 L H; apply: pointwise_DP => d d' nb y; apply: le_trans (H d d' nb y) _.
by apply: le_mulr (N0 d' y) _; apply/RlebP; rewrite power_exp; apply: exp_le.
Qed.

(* label partition-laplace: the condition is PartitionLaplace.cost <= eps *)
Theorem table_replace scale eps : 0 < scale -> integer_noise (/ scale) (/ scale) p ->
  2 * INR unit_rows * INR row_total / scale <= eps ->
  pure_DP_events (replace_rows unit_rows) (@noisy_table real_field Row J amount p) eps.
Proof.
move=> b0 [p0 pf pr] L; have P0 k : @leb real_field 0 (p k) by apply/RlebP.
have v1 : @leb real_field 1 (exp (/ scale)).
  by apply/RlebP; apply: exp_ge1; left; apply: Rinv_0_lt_compat.
apply: (lift _ _ (P1_replace v1 P0 pf pr rows_add_up)); first exact: noisy_ge0.
by rewrite !mult_INR.
Qed.

Theorem table_add_remove scale eps : 0 < scale -> integer_noise (/ scale) (/ scale) p ->
  INR unit_rows * INR row_total / scale <= eps ->
  pure_DP_events (add_remove_rows unit_rows) (@noisy_table real_field Row J amount p) eps.
Proof.
move=> b0 [p0 pf pr] L; have P0 k : @leb real_field 0 (p k) by apply/RlebP.
have v1 : @leb real_field 1 (exp (/ scale)).
  by apply/RlebP; apply: exp_ge1; left; apply: Rinv_0_lt_compat.
apply: (lift _ _ (P1_add_remove v1 P0 pf pr rows_add_up)); first exact: noisy_ge0.
by rewrite mult_INR.
Qed.

(* label partition-laplace with one cell *)
Theorem count_replace (one : Row -> nat) scale eps : (forall r, one r <= row_total)%N ->
  0 < scale -> integer_noise (/ scale) (/ scale) p ->
  INR unit_rows * INR row_total / scale <= eps ->
  pure_DP_events (replace_rows unit_rows) (@noisy_count real_field Row one p) eps.
Proof.
move=> oM b0 [p0 pf pr] L; have P0 k : @leb real_field 0 (p k) by apply/RlebP.
have v1 : @leb real_field 1 (exp (/ scale)).
  by apply/RlebP; apply: exp_ge1; left; apply: Rinv_0_lt_compat.
apply: (lift _ _ (P1_one_cell v1 P0 pf pr oM)); first by move=> d y; apply: P0.
by rewrite mult_INR.
Qed.

(* label partition-k-norm: any noise on all cells together that moves by n at the cost e^(n/s) *)
Theorem table_one_draw (q : {ffun J -> int} -> R) scale eps : (forall z, 0 <= q z) ->
  @moves_at real_field J q (exp (INR (unit_rows * row_total) / scale)) (unit_rows * row_total) ->
  INR unit_rows * INR row_total / scale <= eps ->
  pure_DP_events (replace_rows unit_rows) (@table_draw real_field Row J amount q) eps.
Proof.
move=> q0 H L; apply: pointwise_DP => d d' nb y.
apply: le_trans (P2 H rows_add_up nb y) _; apply: le_mulr; apply/RlebP; first exact: q0.
by rewrite /= mult_INR; apply: exp_le.
Qed.
End Tables.

(* label rounded-laplace: integers that move by at most the sensitivity, in the l1 norm *)
Theorem laplace_sums (D : Type) (neighbors : D -> D -> Prop) (J : finType) (K : D -> J -> int)
    (sensitivity scale eps : R) : 0 < scale ->
  (forall d d', neighbors d d' -> INR (\sum_j absz (GRing.add (K d j) (GRing.opp (K d' j))))%N <= sensitivity) ->
  sensitivity / scale <= eps ->
  pure_DP_events neighbors (fun d (y : {ffun J -> int}) =>
    \big[Rmult/1]_j laplace scale (GRing.add (y j) (GRing.opp (K d j)))) eps.
Proof.
move=> b0 H L; have [p0 pf pr] := laplace_noise b0.
have P0 k : @leb real_field 0 (laplace scale k) by apply/RlebP.
have i0 := Rinv_0_lt_compat _ b0.
have v1 : @leb real_field 1 (exp (/ scale)) by apply/RlebP; apply: exp_ge1; left.
apply: pointwise_DP => d d' nb y.
apply: le_trans (shifted v1 P0 pf pr (leqnn _) y) _; apply: le_mulr; first exact: prod_ge0.
apply/RlebP; rewrite power_exp; apply: exp_le; apply: Rle_trans L.
by apply: Rmult_le_compat_r; [left | apply: H].
Qed.

(* label key-counts *)
Section Keys.
Variables (Row : eqType) (U : finType) (key : Row -> option U) (c up down : R).
Hypothesis rates : [/\ 0 <= c, 0 < up & 0 < down].
Let counts := @noisy_counts real_field Row U key (two_sided c up down).

Theorem keys_replace (unit_rows : nat) eps : INR unit_rows * (up + down) <= eps ->
  pure_DP_events (replace_rows unit_rows) counts eps.
Proof.
case: rates => c0 u0 d0 L; have [p0 pf pr] := two_sided_noise c0 u0 d0.
have P0 k : @leb real_field 0 (two_sided c up down k) by apply/RlebP.
have one x : 0 < x -> @leb real_field 1 (exp x) by move=> x0; apply/RlebP; apply: exp_ge1; lra.
apply: pointwise_DP => d d' nb y.
apply: le_trans (U_replace key (one _ u0) (one _ d0) P0 pf pr nb y) _.
apply: le_mulr; first exact: noisy_ge0.
apply/RlebP; rewrite !power_exp /= -exp_plus; apply: exp_le; lra.
Qed.

Theorem keys_add_remove (unit_rows : nat) eps : INR unit_rows * Rmax up down <= eps ->
  pure_DP_events (add_remove_rows unit_rows) counts eps.
Proof.
case: rates => c0 u0 d0 L; have [p0 pf pr] := two_sided_noise c0 u0 d0.
have P0 k : @leb real_field 0 (two_sided c up down k) by apply/RlebP.
have one x : 0 < x -> @leb real_field 1 (exp x) by move=> x0; apply/RlebP; apply: exp_ge1; lra.
apply: pointwise_DP => d d' nb y.
have uw : @leb real_field (exp up) (exp (Rmax up down)) by apply/RlebP; apply: exp_le; apply: Rmax_l.
have dw : @leb real_field (exp down) (exp (Rmax up down)) by apply/RlebP; apply: exp_le; apply: Rmax_r.
apply: le_trans (U_add_remove key (one _ u0) (one _ d0) uw dw P0 pf pr nb y) _.
apply: le_mulr; first exact: noisy_ge0.
by apply/RlebP; rewrite power_exp; apply: exp_le.
Qed.

(* the list of keys that pass their thresholds, with their numbers, is as private *)
Theorem keys_published (unit_rows : nat) eps threshold d d' (E : pred (seq (U * int))) m m' :
  INR unit_rows * (up + down) <= eps -> replace_rows unit_rows d d' ->
  @probability real_field _ (counts d) (output (published threshold) E) m ->
  @probability real_field _ (counts d') (output (published threshold) E) m' ->
  m <= exp eps * m'.
Proof. by move=> L nb; apply: (keys_replace L nb). Qed.
End Keys.

(* --- composition: how privacy/composition.py adds up pure claims ---------------------------------- *)
Section Parts.
Variables (D : Type) (neighbors : D -> D -> Prop) (T : eqType).

(* steps may be chosen by the answers before them; the i-th costs at most the i-th of costs *)
Theorem parts_add_up (K : D -> seq T -> T -> R) (costs : seq R) eps :
  (forall d h y, 0 <= K d h y) ->
  (forall h, (size h < size costs)%N ->
     pure_DP_events neighbors (fun d => K d h) (nth 0 costs (size h))) ->
  \big[Rplus/0]_(e <- costs) e <= eps ->
  pure_DP_events neighbors
    (fun d (ys : (size costs).-tuple T) => @transcript real_field T (K d) [::] ys) eps.
Proof.
move=> K0 H L; apply: pointwise_DP => d d' nb.
have E : size [seq exp e | e <- costs] = size costs by rewrite size_map.
have P : @product real_field [seq exp e | e <- costs] = exp (\big[Rplus/0]_(e <- costs) e).
  rewrite /product big_map; elim: costs {H L E} => [|e s IH]; first by rewrite !big_nil exp_0.
  by rewrite !big_cons /= exp_plus IH.
move=> ys; have := @adaptive_composition real_field T (K d) (K d') [seq exp e | e <- costs].
rewrite E P => /(_ ys) A; apply: le_trans (A _ _) _.
- by move=> h y; apply/RlebP.
- move=> h hs y; rewrite (nth_map 0) //.
  by apply: (DP_pointwise _ (H h hs) nb) => e z; apply: K0.
apply: le_mulr; last by apply/RlebP; apply: exp_le.
by apply: transcript_ge0 => h y; apply/RlebP.
Qed.
End Parts.

Lemma sum_repeated n (e : R) : \big[Rplus/0]_(i <- nseq n e) i = INR n * e.
Proof.
elim: n => [|n IH]; first by rewrite big_nil /= Rmult_0_l.
by rewrite [nseq _ _]/= big_cons IH S_INR; ring.
Qed.
Lemma sum_more (s t : seq R) :
  \big[Rplus/0]_(e <- s ++ t) e = \big[Rplus/0]_(e <- s) e + \big[Rplus/0]_(e <- t) e.
Proof.
elim: s => [|e s IH]; first by rewrite big_nil Rplus_0_l.
by rewrite cat_cons !big_cons IH Rplus_assoc.
Qed.

(* label units: what holds for one row holds at k times the epsilon for at most k rows *)
Theorem units (D : Type) (neighbors : D -> D -> Prop) (T : eqType) (M : D -> T -> R) (k : nat) row eps :
  0 <= row -> (forall d y, 0 <= M d y) -> pure_DP_events neighbors M row ->
  INR k * row <= eps -> pure_DP_events (changes neighbors k) M eps.
Proof.
move=> r0 M0 H L; apply: pointwise_DP => d d' nb y.
have A : @private_pointwise real_field T D neighbors (exp row) M by apply: DP_pointwise.
have r1 : @leb real_field 1 (exp row) by apply/RlebP; apply: exp_ge1.
have Mp e z : @leb real_field 0 (M e z) by apply/RlebP.
apply: le_trans (group_privacy r1 Mp A nb y) _; apply: le_mulr; first exact: Mp.
by apply/RlebP; rewrite power_exp; apply: exp_le.
Qed.

(* add-remove claims count twice where rows are replaced *)
Theorem replaced_twice (Row T : eqType) (M : seq Row -> T -> R) (m : nat) eps :
  (forall d y, 0 <= M d y) -> pure_DP_events (add_remove_rows m) M eps ->
  pure_DP_events (replace_rows m) M (2 * eps).
Proof.
move=> M0 H; apply: pointwise_DP => d d' nb y.
have A : @private_pointwise real_field T (seq Row) (add_remove_rows m) (exp eps) M by apply: DP_pointwise.
have r0 : @leb real_field 0 (exp eps) by apply/RlebP; left; apply: exp_pos.
have -> : exp (2 * eps) = exp eps * exp eps by rewrite -exp_plus; congr exp; ring.
exact: replace_from_add_remove r0 A _ _ nb y.
Qed.

(* label parallel-blocks: what answers each group is t-DP for one row of it added or removed; 2 m t where
   m rows are replaced, m t where they are added or removed *)
Section Groups.
Variables (Row T : eqType) (G : finType) (group : Row -> option G) (M : G -> seq Row -> T -> R).
Hypothesis M0 : forall g d y, 0 <= M g d y.
Hypothesis order : forall g d d', perm_eq d d' -> M g d =1 M g d'.
Variable t : R.
Hypothesis t0 : 0 <= t.
Hypothesis one_row : forall g, pure_DP_events (add_remove_rows 1) (M g) t.

Let Mp g e z : @leb real_field 0 (M g e z). Proof. exact/RlebP. Qed.
Let t1 : @leb real_field 1 (exp t). Proof. by apply/RlebP; apply: exp_ge1. Qed.
Let leaves g : @removal real_field T Row (M g) (exp t).
Proof.
move=> r c; apply: (DP_pointwise (M0 g) (@one_row g)); exists [:: r], c; split=> //.
by left; split=> //; apply: perm_refl.
Qed.
Let comes g : @addition real_field T Row (M g) (exp t).
Proof.
move=> r c; apply: (DP_pointwise (M0 g) (@one_row g)); exists [:: r], c; split=> //.
by right; split=> //; apply: perm_refl.
Qed.

Theorem groups_replace (m : nat) eps : 2 * INR m * t <= eps ->
  pure_DP_events (replace_rows m) (@by_group real_field Row T G group M) eps.
Proof.
move=> L; apply: pointwise_DP => d d' nb y.
apply: le_trans (P3_replace group Mp order t1 leaves comes nb y) _.
apply: le_mulr; first exact: by_group_ge0.
by apply/RlebP; rewrite power_exp mult_INR; apply: exp_le.
Qed.
Theorem groups_add_remove (m : nat) eps : INR m * t <= eps ->
  pure_DP_events (add_remove_rows m) (@by_group real_field Row T G group M) eps.
Proof.
move=> L; apply: pointwise_DP => d d' nb y.
apply: le_trans (P3_add_remove group Mp order t1 leaves comes nb y) _.
apply: le_mulr; first exact: by_group_ge0.
by apply/RlebP; rewrite power_exp; apply: exp_le.
Qed.
End Groups.

(* label k-norm-noise: one draw on integer vectors, in any norm; the law of the noise is assumed to move
   by h at the cost e^(|h|/scale), as noise of density e^(-|z|/scale) does, rounded (Lemma R) *)
Theorem norm_noise (D : Type) (neighbors : D -> D -> Prop) (J : finType) (K : D -> J -> int)
    (norm p : {ffun J -> int} -> R) (sensitivity scale eps : R) : 0 < scale ->
  (forall z, 0 <= p z) ->
  (forall z h, p z <= exp (norm h / scale) * p [ffun j => GRing.add (z j) (h j)]) ->
  (forall d d', neighbors d d' -> norm [ffun j => GRing.add (K d j) (GRing.opp (K d' j))] <= sensitivity) ->
  sensitivity / scale <= eps ->
  pure_DP_events neighbors
    (fun d (y : {ffun J -> int}) => p [ffun j => GRing.add (y j) (GRing.opp (K d j))]) eps.
Proof.
move=> b0 p0 H S L; have i0 := Rinv_0_lt_compat _ b0; apply: pointwise_DP => d d' nb y; apply/RlebP.
apply: Rle_trans (H _ [ffun j => GRing.add (K d j) (GRing.opp (K d' j))]) _.
have -> : [ffun j => GRing.add ([ffun i => GRing.add (y i) (GRing.opp (K d i))] j)
                               ([ffun i => GRing.add (K d i) (GRing.opp (K d' i))] j)] =
          [ffun j => GRing.add (y j) (GRing.opp (K d' j))].
  by apply/ffunP => j; rewrite !ffunE GRing.addrA GRing.subrK.
apply: Rmult_le_compat_r; first exact: p0.
apply: exp_le; apply: Rle_trans L; apply: Rmult_le_compat_r; [by left | exact: S].
Qed.

(* labels local-uniform-kernel and, on finite spaces, every channel with a mass ratio (Lemma M): T(y) is
   published with probability 1 - w, else a draw from U, and T is at most e^log_mass times U *)
Theorem kernel_mixing (D : Type) (neighbors : D -> D -> Prop) (Y Z : finType) (M : D -> Y -> R)
    (T : Y -> Z -> R) (U : Z -> R) (eps w log_mass l : R) : 0 < eps -> 0 < w < 1 ->
  (forall d, law (M d)) -> (forall y z, 0 <= T y z) -> (forall z, 0 <= U z) ->
  (forall y z, T y z <= exp log_mass * U z) -> approximate_DP neighbors M eps l ->
  mixing_allows eps w log_mass l ->
  pure_DP neighbors (fun d z => \big[Rplus/0]_(y : Y) (M d y * ((1 - w) * T y z + w * U z))) eps.
Proof.
move=> e0 w01 ML T0' U0 TU H C; apply/pure_DP_pure => d d' n.
have E : 1 < exp eps by rewrite -exp_0; apply: exp_increasing.
have m0 := exp_pos log_mass; have l0 := exp_pos l.
apply: (@mass_ratio real_field Y Z w (exp log_mass) U T (exp eps) (exp l)).
- by apply/lt_real; rewrite /=; lra.
- by apply/RlebP; rewrite /=; lra.
- by apply/RlebP; rewrite /=; lra.
- by apply/RlebP; rewrite /=; lra.
- by apply/RlebP; rewrite /=; lra.
- by move=> z; apply/RlebP.
- by move=> y z; apply/RlebP.
- by move=> y z; apply/RlebP; apply: TU.
- exact: law_distribution.
- exact: law_distribution.
- exact: approximate_DP_approximate H _ _ n.
by apply/RlebP; exact: mixing_condition e0 w01 C.
Qed.

(* label block-k-norm (G2): integer sums of every group with noise in a norm; a row adds a vector of norm
   at most bound to the sums of its own group *)
Section BlockNoise.
Variables (Row : eqType) (G J : finType) (group : Row -> option G) (amount : Row -> J -> int).
Variables (norm p : {ffun J -> int} -> R) (bound scale : R).
Hypothesis scale_positive : 0 < scale.
Hypothesis bound_positive : 0 <= bound.
Hypothesis p0 : forall z, 0 <= p z.
Hypothesis moves : forall z h, p z <= exp (norm h / scale) * p [ffun j => GRing.add (z j) (h j)].
Hypothesis small : forall r, norm [ffun j => amount r j] <= bound /\
                             norm [ffun j => GRing.opp (amount r j)] <= bound.

Definition block_sums (d : seq Row) (y : {ffun J -> int}) : R :=
  p [ffun j => GRing.add (y j) (GRing.opp (\big[@GRing.add int_ZmodType/GRing.zero int_ZmodType]_(r <- d) amount r j))].

Let block_row r c y : block_sums (r :: c) y <= exp (bound / scale) * block_sums c y /\
                      block_sums c y <= exp (bound / scale) * block_sums (r :: c) y.
Proof.
have i0 := Rinv_0_lt_compat _ scale_positive; have [A B] := small r.
have up h : norm h <= bound -> exp (norm h / scale) <= exp (bound / scale).
  by move=> L; apply: exp_le; apply: Rmult_le_compat_r L; left.
split.
  apply: Rle_trans (moves _ [ffun j => amount r j]) _; apply: Rmult_le_compat; try exact: p0.
  - by left; apply: exp_pos.
  - exact: up.
  right; congr p; apply/ffunP => j; rewrite !ffunE big_cons GRing.opprD GRing.addrA.
  by rewrite [GRing.add (GRing.add (y j) _) _]GRing.addrAC GRing.subrK.
apply: Rle_trans (moves _ [ffun j => GRing.opp (amount r j)]) _; apply: Rmult_le_compat; try exact: p0.
- by left; apply: exp_pos.
- exact: up.
right; congr p; apply/ffunP => j; rewrite !ffunE big_cons GRing.opprD GRing.addrA.
by rewrite GRing.addrAC.
Qed.
Let block_order d d' : perm_eq d d' -> block_sums d =1 block_sums d'.
Proof.
by move=> pd y; congr p; apply/ffunP => j; rewrite !ffunE; congr (GRing.add _ (GRing.opp _));
  apply: perm_big.
Qed.
Let t0 : 0 <= bound / scale.
Proof. by apply: Rmult_le_pos => //; left; apply: Rinv_0_lt_compat. Qed.

Let block_DP : pure_DP_events (add_remove_rows 1) block_sums (bound / scale).
Proof.
apply: pointwise_DP; rewrite -[exp _](@mulx1 real_field).
apply: (@added_or_removed real_field _ _ block_sums (exp (bound / scale)) 1).
- by apply/RlebP; apply: exp_ge1.
- by move=> d y; apply/RlebP; apply: p0.
- exact: block_order.
- by move=> r c y; apply/RlebP; case: (block_row r c y).
- by move=> r c y; apply/RlebP; case: (block_row r c y).
Qed.

Theorem blocks_replace (m : nat) eps : 2 * INR m * (bound / scale) <= eps ->
  pure_DP_events (replace_rows m) (@by_group real_field Row _ G group (fun _ => block_sums)) eps.
Proof.
move=> L; apply groups_replace with (t := bound / scale) => //; by move=> *; apply: p0.
Qed.
Theorem blocks_add_remove (m : nat) eps : INR m * (bound / scale) <= eps ->
  pure_DP_events (add_remove_rows m) (@by_group real_field Row _ G group (fun _ => block_sums)) eps.
Proof.
move=> L; apply groups_add_remove with (t := bound / scale) => //; by move=> *; apply: p0.
Qed.
End BlockNoise.
