(* Theorem T0: a channel removes delta from every mechanism exactly if it is a local-DP channel;
   Lemma M: mixing with a mass ratio; Theorem O1: no channel does better than uniform mixing.
   docs/theory.md, T0, M, O1.  Finite inputs and outputs; u stands for e^t. *)
From Zerodelta Require Export Definitions.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Local Open Scope scalar_scope.

Section Channels.
Variable F : ordered_field.
Variables Y Z : finType.
Implicit Types (P Q : Y -> F) (K : Y -> Z -> F) (u delta c : F).
Add Field field : (field_laws F).

(* the law of the channel's output; K y z is the probability of z given y *)
Definition through K P : Z -> F := fun z => \sum_y (P y * K y z).
(* c-bounded: ln c local differential privacy *)
Definition bounded c K : Prop := forall y y' z, K y z <= c * K y' z.

(* sum of (P - u Q) g <= m delta for all 0 <= g <= m *)
Lemma weighted u delta P Q (g : Y -> F) m :
  0 <= m -> approximate u delta P Q -> (forall y, 0 <= g y <= m) ->
  \sum_y ((P y - u * Q y) * g y) <= m * delta.
Proof.
move=> m0 H g0m; pose S := [set y | u * Q y <= P y].
apply: (@le_trans _ (\sum_(y in S) (m * (P y - u * Q y)))).
  rewrite [X in _ <= X]big_mkcond /=; apply: le_sum => y _.
  have /andP[g0 gm] := g0m y; case: ifP; rewrite inE;
    [move=> /sub_ge0 L | move=> /negbT/lt_le/sub_ge0 L].
    by rewrite mulC; apply: le_mulr.
  by apply: (le_by ((u * Q y - P y) * g y)); [apply: ge0_mul | ring].
rewrite -sum_mull; apply: le_mull => //; have /sub_ge0 L := H S.
by apply: (le_by _ L); rewrite -sum_sub -sum_mull /mass; ring.
Qed.

Theorem T0 u delta c K P Q :
  (forall y z, 0 <= K y z) -> distribution P -> distribution Q ->
  1 <= c -> bounded c K -> approximate u delta P Q ->
  (c - 1) * delta <= u - 1 ->
  pure u (through K P) (through K Q).
Proof.
move=> K0 [P0 P1] [Q0 Q1] c1 B H C; rewrite -pure_pointwise => z.
have [y1 mmin] : exists y1, forall y, K y1 z <= K y z.
  have [y0 _|none] := pickP (fun _ : Y => true); last first.
    by case: (@one_neq0 F); rewrite -P1 big_pred0.
  have: forall s : seq Y, exists y1, forall y, y \in y0 :: s -> K y1 z <= K y z.
    elim=> [|a s [y1 L]]; first by exists y0 => y; rewrite inE => /eqP ->.
    case/orP: (leb_total (K y1 z) (K a z)) => M; [exists y1 | exists a] => y;
      rewrite !inE orbCA => /orP[/eqP -> //|yS]; last first.
      by apply: le_trans M _; apply: L; rewrite inE.
    by apply: L; rewrite inE.
  by move=> /(_ (enum Y)) [y1 L]; exists y1 => y; apply: L; rewrite inE mem_enum orbT.
set m := K y1 z in mmin; have m0 : 0 <= m by apply: K0.
have G y : 0 <= K y z - m <= (c - 1) * m.
  rewrite sub_ge0 //=; have /sub_ge0 L := B y y1 z; apply: (le_by _ L); rewrite /m; ring.
have cm0 : 0 <= (c - 1) * m by apply: ge0_mul => //; apply: sub_ge0.
have := weighted cm0 H G.
have -> : \sum_y ((P y - u * Q y) * (K y z - m)) =
          through K P z - u * through K Q z + (u - 1) * m.
  transitivity ((\sum_y (P y * K y z)) - u * (\sum_y (Q y * K y z)) +
                (u * m * (\sum_y Q y) - m * (\sum_y P y))); last first.
    by rewrite P1 Q1 /through; ring.
  rewrite !sum_mull !sum_sub -big_split /=; apply: eq_bigr => y _; ring.
move=> /sub_ge0 L; have /sub_ge0 L2 := le_mulr m0 C.
by apply: (le_by _ (ge0_add L L2)); ring.
Qed.

(* necessity: already one pair of (0, delta) mechanisms on two outputs forces the bound *)
Definition point (y1 : Y) : Y -> F := fun y => if y == y1 then 1 else 0.
Definition blend p (y0 y1 : Y) : Y -> F := fun y => p * point y0 y + (1 - p) * point y1 y.

Lemma sum_point (f : Y -> F) y1 : \sum_y (point y1 y * f y) = f y1.
Proof.
rewrite (bigD1 y1) //= /point eqxx mul1 big1 ?addx0 // => y /negPf ->; exact: mul0.
Qed.

Lemma sum_blend (f : Y -> F) p y0 y1 :
  \sum_y (blend p y0 y1 y * f y) = p * f y0 + (1 - p) * f y1.
Proof.
rewrite -(sum_point f y0) -(sum_point f y1) !sum_mull -big_split /=.
by apply: eq_bigr => y _; rewrite /blend; ring.
Qed.

Lemma mass_blend p y0 y1 (S : {set Y}) : mass (blend p y0 y1) S =
  p * (if y0 \in S then 1 else 0) + (1 - p) * (if y1 \in S then 1 else 0).
Proof.
rewrite /mass big_mkcond -(sum_blend (fun y => if y \in S then 1 else 0)) /=.
by apply: eq_bigr => y _; case: (y \in S); ring.
Qed.

Lemma blend_distribution p y0 y1 : 0 <= p <= 1 -> distribution (blend p y0 y1).
Proof.
move=> /andP[p0 p1]; split=> [y|].
  have I y' : 0 <= point y' y by rewrite /point; case: ifP.
  by apply: ge0_add; apply: ge0_mul => //; apply: sub_ge0.
rewrite (eq_bigr (fun y => blend p y0 y1 y * 1)); last by move=> y _; ring.
by rewrite (sum_blend (fun _ => 1)); ring.
Qed.

(* two laws on the same two outputs *)
Lemma blend_approximate u delta p q y0 y1 :
  0 <= delta -> 1 <= u -> p <= u * q + delta -> 1 - p <= u * (1 - q) + delta ->
  approximate u delta (blend p y0 y1) (blend q y0 y1).
Proof.
move=> /= d0 /sub_ge0 u1 /sub_ge0 A /sub_ge0 B S; rewrite !mass_blend.
case: (y0 \in S); case: (y1 \in S).
- by apply: (le_by _ (ge0_add u1 d0)); ring.
- by apply: (le_by _ A); ring.
- by apply: (le_by _ B); ring.
- by apply: (le_by _ d0); ring.
Qed.

Theorem T0_necessary u delta K :
  0 < delta ->
  (forall y0 y1, pure u (through K (blend delta y0 y1)) (through K (blend 0 y0 y1))) ->
  bounded (1 + (u - 1) / delta) K.
Proof.
move=> d0 H y0 y1 z; have := H y0 y1; rewrite -pure_pointwise => /(_ z) /sub_ge0.
rewrite /through !(sum_blend (K ^~ z)) => L; apply: (le_cancel d0); apply: (le_by _ L).
by field; apply: gt0_neq0.
Qed.

(* those mechanisms are (0, delta): the necessity is not vacuous *)
Theorem T0_necessary_pair delta y0 y1 : 0 <= delta ->
  approximate 1 delta (blend delta y0 y1) (blend 0 y0 y1) /\
  approximate 1 delta (blend 0 y0 y1) (blend delta y0 y1).
Proof.
move=> d0; have D : 0 <= delta + delta by apply: ge0_add.
split; apply: blend_approximate; rewrite ?le_refl //.
- by apply: (le_by 0); [exact: le_refl | ring].
- by apply: (le_by _ D); ring.
- by apply: (le_by _ D); ring.
- by apply: (le_by 0); [exact: le_refl | ring].
Qed.

(* Lemma M: publish T(y) with probability 1 - w, else a draw from U, where T(z|y) <= m U(z) *)
Definition mixed w (U : Z -> F) (T : Y -> Z -> F) : Y -> Z -> F :=
  fun y z => (1 - w) * T y z + w * U z.

Theorem mass_ratio w m (U : Z -> F) (T : Y -> Z -> F) u delta P Q :
  0 < w -> w <= 1 -> 0 <= m -> 0 <= delta -> 1 <= u ->
  (forall z, 0 <= U z) -> (forall y z, 0 <= T y z) -> (forall y z, T y z <= m * U z) ->
  distribution P -> distribution Q -> approximate u delta P Q ->
  (1 - w) * delta * m <= (u - 1) * w ->
  pure u (through (mixed w U T) P) (through (mixed w U T) Q).
Proof.
move=> w0 /sub_ge0 w1 m0 d0 u1 U0 T0' TM HP HQ H /sub_ge0 C.
have W := gt0_neq0 w0; have X0 : 0 <= (1 - w) * m / w.
  by apply: ge0_mul; [apply: ge0_mul | apply: ge0_inv].
apply: (@T0 u delta (1 + (1 - w) * m / w)) => //.
- by move=> y z; apply: ge0_add; apply: ge0_mul => //; apply: lt_le.
- exact: le_addr.
- move=> y y' z; rewrite /mixed; have /sub_ge0 L := TM y z.
  have M : 0 <= (1 + (1 - w) * m / w) * ((1 - w) * T y' z) + (1 - w) * (m * U z - T y z).
    apply: ge0_add; apply: ge0_mul => //; last exact: ge0_mul.
    exact: ge0_add.
  by apply: (le_by _ M); field.
- apply: (le_cancel w0); apply: (le_by _ C); by field.
Qed.
End Channels.

Section Optimal.
Variable F : ordered_field.
Variable Y : finType.
Add Field field2 : (field_laws F).
Notation N := (number F #|Y|).

(* average success over the N inputs is at most c/(c+N-1) *)
Theorem O1 (c : F) (K : Y -> Y -> F) :
  (forall y, \sum_z K y z = 1) -> bounded c K ->
  (\sum_y K y y) * (c + N - 1) <= N * c.
Proof.
move=> K1 B; set s := \sum_y K y y.
have A y' : (c - 1) * K y' y' + s <= c.
  have L : \sum_y (if y == y' then 0 else K y y) <= \sum_y (if y == y' then 0 else c * K y' y).
    by apply: le_sum => y _; case: eqP => // _; apply: B.
  have E (f : Y -> F) : \sum_y (if y == y' then 0 else f y) = (\sum_y f y) - f y'.
    rewrite (bigD1 y') //= eqxx add0 [in RHS](bigD1 y') //= (eq_bigr f); first by ring.
    by move=> y /negPf ->.
  move: L; rewrite !E -sum_mull K1 -/s => /sub_ge0 L; apply: (le_by _ L); ring.
have: \sum_y' ((c - 1) * K y' y' + s) <= \big[add/zero]_(y' : Y) c by apply: le_sum.
rewrite sum_split -sum_mull -/s !sum_all => /sub_ge0 L.
apply: (le_by _ L); ring.
Qed.

(* uniform mixing with w = N/(N+c-1) is such a channel, and attains it *)
Definition uniform_channel (w : F) : Y -> Y -> F :=
  mixed w (fun _ => inv N) (fun y z => if z == y then 1 else 0).

Theorem O1_attained (c : F) : (0 < #|Y|)%N -> 1 <= c ->
  let w := N / (N + c - 1) in
  [/\ forall y, \sum_z uniform_channel w y z = 1,
      bounded c (uniform_channel w) &
      (\sum_y uniform_channel w y y) * (c + N - 1) = N * c].
Proof.
move=> /(gt0_number F) N0 c1 w; have n0 := gt0_neq0 N0.
have D0 : 0 < N + c - 1.
  have -> : N + c - 1 = N + (c - 1) by ring.
  by apply: gt0_addl => //; apply: sub_ge0.
have d0 := gt0_neq0 D0; have I0 : 0 <= inv (N + c - 1) by apply: ge0_inv.
have E (f : Y -> F) y : \sum_z ((if z == y then 1 else 0) * f z) = f y.
  by rewrite -(sum_point f y).
split=> [y|y y' z|].
- rewrite /uniform_channel /mixed sum_split -!sum_mull sum_all.
  have := E (fun _ => 1) y; under eq_bigr do rewrite mulx1; move=> ->.
  by field.
- rewrite /uniform_channel /mixed /w.
  have C := sub_ge0 c1; have CC : 0 <= c by apply: le_trans c1; apply: ge0_one.
  case: (z == y); case: (z == y').
  + by apply: (le_by ((c - 1) * c * inv (N + c - 1))); [do !apply: ge0_mul => // | field].
  + by apply: (le_by 0); [exact: le_refl | field].
  + by apply: (le_by ((c * c - 1) * inv (N + c - 1)));
      [apply: ge0_mul => //; apply: (le_trans _ (ge0_mul C (ge0_add CC (ge0_one F))));
       apply: (le_by 0); [exact: le_refl | ring] | field].
  + by apply: (le_by ((c - 1) * inv (N + c - 1))); [do !apply: ge0_mul => // | field].
- rewrite /uniform_channel /mixed (eq_bigr (fun _ => (1 - w) * 1 + w * inv N)); last first.
    by move=> y _; rewrite eqxx.
  by rewrite sum_all /w; field.
Qed.
End Optimal.
