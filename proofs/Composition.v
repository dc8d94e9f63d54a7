(* Post-processing, adaptive composition, several parts that add up, groups of rows, and replace from
   add-remove.  docs/theory.md, Conventions, R2, V, H.  Label units; how privacy/composition.py adds up
   pure claims.  u stands for e^epsilon: a product of u is a sum of epsilon. *)
From Zerodelta Require Export Channels.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Local Open Scope scalar_scope.

Section Finite.
Variable F : ordered_field.
Variables Y Z : finType.
Implicit Types (u v : F).
Add Field field : (field_laws F).

(* whatever is done with the output, at random too *)
Theorem post_processing u (K : Y -> Z -> F) (P Q : Y -> F) :
  (forall y z, 0 <= K y z) -> pure u P Q -> pure u (through K P) (through K Q).
Proof.
move=> K0; rewrite -!pure_pointwise => H z; rewrite /through sum_mull; apply: le_sum => y _.
have /sub_ge0 L := H y; apply: (le_by _ (ge0_mul L (K0 y z))); ring.
Qed.

(* the second mechanism may depend on the first answer *)
Definition joint (P : Y -> F) (K : Y -> Z -> F) : Y * Z -> F := fun yz => P yz.1 * K yz.1 yz.2.
Theorem composition u v (P Q : Y -> F) (K L : Y -> Z -> F) :
  (forall y, 0 <= P y) -> (forall y z, 0 <= K y z) ->
  pure u P Q -> (forall y, pure v (K y) (L y)) -> pure (u * v) (joint P K) (joint Q L).
Proof.
move=> P0 K0; rewrite -!pure_pointwise => H1 H2 [y z]; rewrite /joint /=.
have:= H2 y; rewrite -pure_pointwise => /(_ z) H3.
have -> : u * v * (Q y * L y z) = (u * Q y) * (v * L y z) by ring.
by apply: le_mul.
Qed.
End Finite.

(* --- many steps, each chosen by the answers before it; outputs of any kind -------------------- *)
Section Transcripts.
Variable F : ordered_field.
Variable Y : eqType.
Implicit Types (K L : seq Y -> Y -> F) (us : seq F).
Add Field field2 : (field_laws F).

(* K h y is the probability of the answer y after the answers h; the law of the answers ys after h *)
Fixpoint transcript K (h ys : seq Y) : F :=
  if ys is y :: rest then K h y * transcript K (rcons h y) rest else 1.

Definition product us : F := \prod_(u <- us) u.

Lemma transcript_ge0 K h ys : (forall h y, 0 <= K h y) -> 0 <= transcript K h ys.
Proof. by move=> K0; elim: ys h => //= y ys IH h; apply: ge0_mul. Qed.

(* the i-th step costs the i-th of us, whatever was answered before *)
Theorem adaptive_composition K L us (ys : (size us).-tuple Y) :
  (forall h y, 0 <= K h y) ->
  (forall h, (size h < size us)%N -> pointwise (nth 1 us (size h)) (K h) (L h)) ->
  transcript K [::] ys <= product us * transcript L [::] ys.
Proof.
move=> K0 H.
have G : forall (zs : seq Y) (h : seq Y) vs, us = take (size h) us ++ vs -> size vs = size zs ->
    (size h <= size us)%N -> transcript K h zs <= product vs * transcript L h zs.
  elim=> [|y zs IH] h [|v vs] //= E.
    by rewrite /product big_nil mul1.
  move=> [S] hs; have hlt : (size h < size us)%N.
    rewrite ltnNge; apply/negP => le; move: E; rewrite take_oversize // => /(congr1 size).
    by rewrite size_cat /= => /eqP; rewrite -{1}[size us]addn0 eqn_add2l.
  have N : nth 1 us (size h) = v.
    rewrite E nth_cat size_take hlt ltnn subnn //.
  have /= A := H h hlt y; rewrite N in A.
  have B := IH (rcons h y) vs _ S _.
  rewrite /product big_cons -/(product vs).
  have -> : v * product vs * (L h y * transcript L (rcons h y) zs) =
            v * L h y * (product vs * transcript L (rcons h y) zs) by ring.
  apply: le_mul => //; first exact: transcript_ge0.
  apply: B; rewrite size_rcons //.
  rewrite (take_nth 1 hlt) N -cats1 -catA /=; exact: E.
by apply: G; rewrite ?take0 ?size_tuple.
Qed.

(* the transcript is a mechanism with the product of the us, for every event *)
Theorem adaptive_composition_pure K L us :
  (forall h y, 0 <= K h y) -> 0 <= product us ->
  (forall h, (size h < size us)%N -> pointwise (nth 1 us (size h)) (K h) (L h)) ->
  pure_events (product us) (fun ys : (size us).-tuple Y => transcript K [::] ys)
                           (fun ys : (size us).-tuple Y => transcript L [::] ys).
Proof. by move=> K0 p0 H; apply: pointwise_pure_events => // ys; apply: adaptive_composition. Qed.
End Transcripts.

(* --- neighbors -------------------------------------------------------------------------------- *)
Section Neighbors.
Variable F : ordered_field.
Variable T : eqType.
Variable D : Type.
Implicit Types (u : F) (M : D -> T -> F) (neighbors : D -> D -> Prop).
Add Field field3 : (field_laws F).

Definition private_pointwise neighbors u M : Prop :=
  forall d d', neighbors d d' -> pointwise u (M d) (M d').

(* at most k changes of one row *)
Fixpoint changes neighbors (k : nat) (d d' : D) : Prop :=
  d = d' \/ (if k is j.+1 then exists e, neighbors d e /\ changes neighbors j e d' else False).

(* label units: at most k rows of one person, each of which is protected with epsilon *)
Theorem group_privacy neighbors u M k :
  1 <= u -> (forall d y, 0 <= M d y) -> private_pointwise neighbors u M ->
  private_pointwise (changes neighbors k) (power u k) M.
Proof.
move=> u1 M0 H; have u0 : 0 <= u by apply: le_trans u1.
have same n d y : M d y <= power u n * M d y.
  by rewrite -[X in X <= _]mul1; apply: le_mulr (M0 d y) (ge1_power n u1).
elim: k => [|k IH] d d'; first by move=> /= [->|//] y; apply: (same 0%N).
case=> [->|[e [de ed]]] y; first exact: (same k.+1).
rewrite /= -mulA; apply: le_trans (H _ _ de y) _; apply: le_mull => //; exact: IH.
Qed.
End Neighbors.

Section Rows.
Variable F : ordered_field.
Variable T Row : eqType.
Implicit Types (u : F) (M : seq Row -> T -> F) (c d : seq Row).
Add Field field4 : (field_laws F).

(* up to order: up to m rows leave and up to m rows come *)
Definition replace_rows (m : nat) d d' : Prop := exists a b c,
  [/\ perm_eq d (a ++ c), perm_eq d' (b ++ c), (size a <= m)%N & (size b <= m)%N].
(* up to m rows come, or up to m rows leave *)
Definition add_remove_rows (m : nat) d d' : Prop := exists a c, (size a <= m)%N /\
  ((perm_eq d (a ++ c) /\ perm_eq d' c) \/ (perm_eq d c /\ perm_eq d' (a ++ c))).

Theorem replace_from_add_remove u M m :
  0 <= u -> private_pointwise (add_remove_rows m) u M ->
  private_pointwise (replace_rows m) (u * u) M.
Proof.
move=> u0 H d d' [a [b [c [pd pd' sa sb]]]] y.
apply: (@le_trans _ (u * M c y)); first by apply: H; exists a, c; split=> //; left.
by rewrite -mulA; apply: le_mull => //; apply: H; exists b, c; split=> //; right.
Qed.
End Rows.
