(* Theorem B1: mixing with a public distribution, exactly when it removes delta, and how tight it is;
   free mixing: a failed test that is answered by a uniform draw (C3, C5).
   docs/theory.md, B1, C3, C5.  Labels uniform-mixing, prior-mixing, profile-mixing, grid-mixing,
   unequal-grid-mixing, pure-propose-test-release, stable-mode.  u stands for e^t. *)
From Zerodelta Require Export Channels.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Local Open Scope scalar_scope.

Section Mixing.
Variable F : ordered_field.
Variable Y : finType.
Implicit Types (P Q U : Y -> F) (u v delta w : F).
Add Field field : (field_laws F).
Notation N := (number F #|Y|).

(* with probability w the answer is replaced by a draw from U *)
Definition mix w U P : Y -> F := fun y => (1 - w) * P y + w * U y.

Theorem mix_distribution w U P :
  0 <= w <= 1 -> distribution U -> distribution P -> distribution (mix w U P).
Proof.
move=> /andP[w0 /sub_ge0 w1] [U0 U1] [P0 P1]; split=> [y|].
  by apply: ge0_add; apply: ge0_mul.
by rewrite /mix sum_split -!sum_mull U1 P1; ring.
Qed.

(* exactly when: nothing is assumed of P, Q, U, w or u *)
Theorem B1 w U P Q u :
  pure u (mix w U P) (mix w U Q) <->
  (forall y, (1 - w) * (P y - u * Q y) <= (u - 1) * w * U y).
Proof.
rewrite -pure_pointwise; split=> H y; have /sub_ge0 L := H y; apply: (le_by _ L);
  rewrite /mix; ring.
Qed.

Definition uniform : Y -> F := fun _ => inv N.

Lemma uniform_distribution : (0 < #|Y|)%N -> distribution uniform.
Proof.
move=> /(gt0_number F) N0; split=> [y|]; first exact: ge0_inv.
by rewrite /uniform sum_all; field; apply: gt0_neq0.
Qed.

Lemma approximate_point u delta P Q y : approximate u delta P Q -> P y - u * Q y <= delta.
Proof.
move=> /(_ [set y]); rewrite /mass !big_set1 => /sub_ge0 L; apply: (le_by _ L); ring.
Qed.

Lemma mass_but P y : mass P (~: [set y]) = (\sum_z P z) - P y.
Proof.
rewrite /mass [in RHS](bigD1 y) //= (eq_bigl (fun z : Y => z != y)); first by ring.
by move=> z; rewrite !inE.
Qed.

(* label prior-mixing: a draw from U, whose smallest probability is q *)
Theorem B1_prior w U P Q u delta q :
  w <= 1 -> 0 <= w -> 1 <= u -> (forall y, q <= U y) -> approximate u delta P Q ->
  (1 - w) * delta <= (u - 1) * w * q -> pure u (mix w U P) (mix w U Q).
Proof.
move=> /sub_ge0 w1 w0 /sub_ge0 u1 Uq H C; apply/B1 => y.
apply: (@le_trans _ ((1 - w) * delta)); first exact: (le_mull w1 (approximate_point y H)).
by apply: le_trans C _; apply: le_mull (Uq y); apply: ge0_mul.
Qed.

(* label uniform-mixing: a uniform draw on the N outputs *)
Theorem B1_uniform w P Q u delta :
  (0 < #|Y|)%N -> w <= 1 -> approximate u delta P Q ->
  (1 - w) * delta * N <= (u - 1) * w ->
  pure u (mix w uniform P) (mix w uniform Q).
Proof.
move=> /(gt0_number F) N0 /sub_ge0 w1 H C; apply/B1 => y; rewrite /uniform; apply: le_div => //.
apply: le_trans C; apply: le_mulr => //; exact: (le_mull w1 (approximate_point y H)).
Qed.

(* label profile-mixing: P - s Q <= ratio U pointwise, s <= u *)
Theorem B1_profile w U P Q u s ratio :
  w <= 1 -> (forall y, 0 <= U y) -> (forall y, 0 <= Q y) -> s <= u ->
  (forall y, P y - s * Q y <= ratio * U y) -> ratio * (1 - w) <= (u - 1) * w ->
  pure u (mix w U P) (mix w U Q).
Proof.
move=> /sub_ge0 w1 U0 Q0 /sub_ge0 su H /sub_ge0 C; apply/B1 => y; have /sub_ge0 L := H y.
have K := ge0_add (ge0_mul w1 (ge0_add L (ge0_mul su (Q0 y)))) (ge0_mul C (U0 y)).
by apply: (le_by _ K); ring.
Qed.

(* zero extra epsilon: an (epsilon, delta) mechanism becomes an epsilon one, in both directions *)
Theorem zero_cost w u delta P Q :
  (0 < #|Y|)%N -> w < 1 ->
  approximate u delta P Q -> approximate u delta Q P ->
  delta <= (u - 1) * w / ((1 - w) * N) ->
  pure u (mix w uniform P) (mix w uniform Q) /\ pure u (mix w uniform Q) (mix w uniform P).
Proof.
move=> N0 w1 HP HQ C; have /(gt0_number F) M0 := N0; have n0 := gt0_neq0 M0.
have W : 0 < 1 - w.
  apply/negP => L; move/negP: w1; apply; have := sub_ge0 L => M; apply: (le_by _ M); ring.
have W' := gt0_neq0 W; have D : 0 < (1 - w) * N by apply: gt0_mul.
have {}C : (1 - w) * delta * N <= (u - 1) * w.
  have /sub_ge0 L := le_mull (lt_le D) C; apply: (le_by _ L); by field.
by split; apply: B1_uniform C => //; apply: lt_le.
Qed.

(* B1 is tight: these two numbers bound the ratio of the mixtures of every (epsilon, delta) pair ... *)
Definition covers v w u delta : Prop :=
  w + (1 - w) * delta * N <= v * w /\
  (1 - w) * (u + delta) + w * (1 + u) / N <= v * ((1 - w) * (1 - delta) + w * (1 + u) / N).

Theorem B1_worst_case v w u delta P Q :
  (0 < #|Y|)%N -> 0 < w -> w <= 1 -> 1 <= u -> 0 <= delta -> delta <= 1 ->
  distribution P -> distribution Q -> approximate u delta P Q -> approximate u delta Q P ->
  covers v w u delta -> pure v (mix w uniform P) (mix w uniform Q).
Proof.
move=> /(gt0_number F) N0 w0 /sub_ge0 w1 u1 d0 /sub_ge0 d1 [P0 P1] [Q0 Q1] HP HQ [C1 C2].
rewrite -pure_pointwise => y; have n0 := gt0_neq0 N0; have n1 := ge0_inv N0.
have u0 : 0 < u by apply: lt_le_trans (gt0_one F) u1.
have uu : 0 < 1 + u by apply: gt0_addl => //; apply: lt_le.
have v1 : 1 <= v.
  apply: (le_cancel w0); have /sub_ge0 A := C1.
  have B : 0 <= (1 - w) * delta * N by do !apply: ge0_mul => //; apply: lt_le.
  by apply: (le_by _ (ge0_add A B)); ring.
have /sub_ge0 A := approximate_point y HP.
have /sub_ge0 B : 1 - Q y <= u * (1 - P y) + delta.
  by have := HQ (~: [set y]); rewrite !mass_but P1 Q1.
rewrite /mix /uniform; set p := P y in A B *; set q := Q y in A B *; set n := inv N in n1 *.
have q0 : 0 <= q by apply: Q0.
(* at q = 0, and (1 + u) times at the corner q (1 + u) = 1 - delta *)
have G0 : 0 <= v * (w * n) - (1 - w) * delta - w * n.
  by apply: (le_by _ (ge0_mul n1 (sub_ge0 C1))); rewrite /n; field.
have G1 : 0 <= v * ((1 - w) * (1 - delta) + w * (1 + u) * n) -
               ((1 - w) * (u + delta) + w * (1 + u) * n) by apply: sub_ge0.
case/orP: (leb_total (q * (1 + u)) (1 - delta)) => /sub_ge0 L.
  have R : 0 <= v * ((1 - w) * q + w * n) - (1 - w) * (u * q + delta) - w * n.
    case D: (leb (1 - delta) 0).
      have qz : q = 0.
        apply: leb_antisym q0; apply: (le_cancel uu).
        by apply: (le_by _ (ge0_add L (sub_ge0 D))); ring.
      by apply: (le_by _ G0); rewrite qz; ring.
    apply: (@le_cancel _ (1 - delta)); first by rewrite D.
    by apply: (le_by _ (ge0_add (ge0_mul L G0) (ge0_mul q0 G1))); ring.
  by apply: (le_by _ (ge0_add R (ge0_mul w1 A))); ring.
apply: (le_cancel u0); apply: (le_cancel uu).
have V : 0 <= u * v - 1.
  have X := ge0_add (sub_ge0 u1) (ge0_mul (lt_le u0) (sub_ge0 v1)).
  by apply: (le_by _ X); ring.
have X := ge0_add (ge0_mul (lt_le u0) G1) (ge0_mul (ge0_mul L w1) V).
have Y' := ge0_mul (ge0_mul w1 B) (lt_le uu).
by apply: (le_by _ (ge0_add X Y')); ring.
Qed.

(* ... and some pair attains each of them *)
Theorem B1_worst_case_attained v w u delta (y0 y1 : Y) :
  y0 != y1 -> 0 <= delta -> delta <= 1 -> 1 <= u ->
  (forall P Q, distribution P -> distribution Q ->
     approximate u delta P Q -> approximate u delta Q P ->
     pure v (mix w uniform P) (mix w uniform Q)) ->
  covers v w u delta.
Proof.
move=> y01 d0 d1 u1 H.
have N0 : 0 < N by apply: gt0_number; apply/card_gt0P; exists y0.
have n0 := gt0_neq0 N0; have u0 : 0 <= u by apply: le_trans u1.
have uu : 0 < 1 + u by apply: gt0_addl. have uu' := gt0_neq0 uu; have i0 := ge0_inv uu.
have B0 (p : F) : blend p y0 y1 y0 = p.
  by rewrite /blend /point eqxx (negPf y01); ring.
have D1 := sub_ge0 d1; have U1 := sub_ge0 u1.
have K (p q : F) : 0 <= p <= 1 -> 0 <= q <= 1 -> p <= u * q + delta -> 1 - p <= u * (1 - q) + delta ->
    q <= u * p + delta -> 1 - q <= u * (1 - p) + delta ->
    (1 - w) * p + w * inv N <= v * ((1 - w) * q + w * inv N).
  move=> p01 q01 A B C D; have := H (blend p y0 y1) (blend q y0 y1).
  rewrite -pure_pointwise => /(_ _ _ _ _ y0); rewrite /mix /uniform !B0; apply;
    by [apply: blend_distribution | apply: blend_approximate].
have E (x y : F) : x = y -> x <= y by move=> ->.
have D2 := ge0_add d0 d0; have U2 : 0 <= u - 1 + (delta + delta) by apply: ge0_add.
split.
  have L : 0 <= N * (v * ((1 - w) * 0 + w * inv N) - ((1 - w) * delta + w * inv N)).
    apply: ge0_mul (lt_le N0) _; apply: sub_ge0; apply: K; rewrite ?d0 ?d1 ?le_refl ?ge0_one //.
    - by apply: E; ring.
    - by apply: (le_by _ U2); ring.
    - by apply: ge0_add => //; apply: ge0_mul.
    - by apply: (le_by _ (ge0_mul U1 D1)); ring.
  by apply: (le_by _ L); field.
have I0 : 0 <= (1 - delta) / (1 + u) by apply: ge0_mul.
have J0 : 0 <= (u + delta) / (1 + u) by apply: ge0_mul => //; apply: ge0_add.
have := K ((u + delta) / (1 + u)) ((1 - delta) / (1 + u)) => L.
have {}L : 0 <= (1 + u) * (v * ((1 - w) * ((1 - delta) / (1 + u)) + w * inv N) -
                 ((1 - w) * ((u + delta) / (1 + u)) + w * inv N)).
  apply: ge0_mul (lt_le uu) _; apply: sub_ge0; apply: L; rewrite ?I0 ?J0 //=.
  - by apply: (le_by _ I0); field.
  - by apply: (le_by _ J0); field.
  - by apply: E; field.
  - by apply: (le_by _ U2); field.
  - by apply: (le_by _ U2); field.
  - by apply: E; field.
by apply: (le_by _ L); field.
Qed.
End Mixing.

(* --- free mixing: a failed test is answered by a uniform draw, and that is all the mixing ------ *)
Section FreeMixing.
Variable F : ordered_field.
Variable Y : finType.
Implicit Types (P Q : option Y -> F) (u dp pm : F).
Add Field field2 : (field_laws F).
Notation N := (number F #|Y|).

(* None stands for a failed test *)
Definition fill (U : Y -> F) P : Y -> F := fun y => P (Some y) + P None * U y.

(* label pure-propose-test-release (C3).  Of two neighbors either the answers are close, and then test
   and answer together are pure; or both tests pass with probability at most dp *)
Theorem C3 P Q u dp pm :
  (0 < #|Y|)%N ->
  (forall o, 0 <= Q o) -> P None <= 1 ->
  pure u P Q \/ ((forall y, P (Some y) <= dp * pm) /\ 1 - dp <= Q None) ->
  0 <= u -> N * dp * pm <= u * (1 - dp) - 1 ->
  pure u (fill (@uniform F Y) P) (fill (@uniform F Y) Q).
Proof.
move=> /(gt0_number F) N0 Q0 P1 cases u0 C; have n0 := ge0_inv N0; have n1 := gt0_neq0 N0.
rewrite -pure_pointwise => y; rewrite /fill /uniform.
case: cases => [|[A /sub_ge0 B]].
  rewrite -pure_pointwise => H; have /sub_ge0 A := H (Some y); have /sub_ge0 B := H None.
  by apply: (le_by _ (ge0_add A (ge0_mul B n0))); ring.
have X := ge0_add (ge0_add (sub_ge0 (A y)) (ge0_mul (sub_ge0 P1) n0))
            (ge0_add (ge0_mul (sub_ge0 C) n0) (ge0_mul u0 (ge0_add (Q0 (Some y)) (ge0_mul B n0)))).
by apply: (le_by _ X); field.
Qed.

(* label pure-local-sensitivity (C4): (u, db) but for failing, and no answer is likelier than pm where
   the bound falls short; mixed with a uniform answer *)
Theorem C4 P Q u w db pm :
  (0 < #|Y|)%N -> w <= 1 ->
  (forall y, P (Some y) - u * Q (Some y) <= db * pm) -> P None - u * Q None <= db ->
  (1 - w) * (N * db * pm + db) <= w * (u - 1) ->
  pure u (mix w (@uniform F Y) (fill (@uniform F Y) P)) (mix w (@uniform F Y) (fill (@uniform F Y) Q)).
Proof.
move=> /(gt0_number F) N0 /sub_ge0 w1 A /sub_ge0 B /sub_ge0 C; apply/B1 => y.
have n0 := ge0_inv N0; have n1 := gt0_neq0 N0; have /sub_ge0 Ay := A y.
have K := ge0_add (ge0_mul w1 (ge0_add Ay (ge0_mul B n0))) (ge0_mul C n0).
by apply: (le_by _ K); rewrite /fill /uniform; field.
Qed.

(* the most frequent item f passes with probability p, else a uniform item *)
Definition mode_law p (f : Y) : Y -> F := fun y => p * point F f y + (1 - p) * inv N.

Theorem C5 u dp p q (f g : Y) :
  1 <= u -> 0 <= p -> 0 <= q ->
  (f = g -> p <= u * q /\ 1 - p <= u * (1 - q)) -> (f <> g -> p <= dp /\ q <= dp) -> dp <= 1 ->
  dp * (N + u - 1) <= u - 1 ->
  pure u (mode_law p f) (mode_law q g).
Proof.
move=> u1 p0 q0 same other d1 C.
have Ni : (0 < #|Y|)%N by apply/card_gt0P; exists f.
have N0 := gt0_number F Ni; have n0 := ge0_inv N0; have n1 := gt0_neq0 N0.
have N1 : 0 <= N - 1 by case: #|Y| Ni => //= n _; rewrite (_ : _ - _ = number F n) //; ring.
have u0 : 0 <= u by apply: le_trans u1.
rewrite -pure_pointwise => y; rewrite /mode_law /point.
case: (eqVneq f g) => [E|/eqP D].
  have [/sub_ge0 A /sub_ge0 B] := same E; rewrite -E; case: eqP => _.
    by apply: (le_by _ (ge0_add A (ge0_mul B n0))); ring.
  by apply: (le_by _ (ge0_mul B n0)); ring.
have [/sub_ge0 A /sub_ge0 B] := other D.
have X : 0 <= (u - 1 - dp * (N + u - 1)) + u * (dp - q).
  by apply: ge0_add; [apply: sub_ge0 | apply: ge0_mul].
have I (b : bool) : (0 : F) <= (if b then 1 else 0) by case: b.
have qy : 0 <= u * (q * (if y == g then 1 else 0)) by do !apply: ge0_mul => //.
case: (y == f).
  have K := ge0_add (ge0_mul (ge0_add X (ge0_mul A N1)) n0) qy.
  by apply: (le_by _ K); field.
have dp0 : 0 <= dp by apply: (le_by _ (ge0_add A p0)); ring.
have K := ge0_add (ge0_mul (ge0_add X (ge0_add p0 (ge0_mul dp0 N1))) n0) qy.
by apply: (le_by _ K); field.
Qed.

(* and only if: two data sets with different modes that pass with probability dp *)
Theorem C5_necessary u dp (f g : Y) :
  f <> g -> pure u (mode_law dp f) (mode_law dp g) -> dp * (N + u - 1) <= u - 1.
Proof.
move=> D; have Ni : (0 < #|Y|)%N by apply/card_gt0P; exists f.
have N0 := gt0_number F Ni; have n1 := gt0_neq0 N0.
rewrite -pure_pointwise => /(_ f); rewrite /mode_law /point eqxx; case: eqP => // _.
move=> /(le_mull (lt_le N0)) /sub_ge0 L; apply: (le_by _ L); by field.
Qed.
End FreeMixing.
