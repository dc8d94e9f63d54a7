(* Selection on finite sets: the exponential mechanism and permute-and-flip.
   docs/theory.md, C10.1.  Labels exponential-mechanism, permute-and-flip.
   An option of score s has weight e^(s/b); if scores move by at most D, weights move by the factor
   e^(D/b) up and down, and by one of the two only if all scores move in the same direction. *)
From Zerodelta Require Export Definitions.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Local Open Scope scalar_scope.

Section Exponential.
Variable F : ordered_field.
Variable Y : finType.
Implicit Types (W V x y : Y -> F).
Add Field field : (field_laws F).

(* the probability is proportional to the weight *)
Definition exponential_mechanism W : Y -> F := fun i => W i / (\sum_j W j).

Lemma sum_weights W (i : Y) : (forall j, 0 < W j) -> 0 < \sum_j W j.
Proof.
move=> W0; rewrite (bigD1 i) //=; apply: gt0_addl => //.
by apply: sum_ge0 => j _; apply: lt_le.
Qed.

Theorem exponential_distribution W (i : Y) :
  (forall j, 0 < W j) -> distribution (exponential_mechanism W).
Proof.
move=> W0; have S := sum_weights i W0; split=> [j|].
  by apply: ge0_mul; [apply: lt_le | apply: ge0_inv].
rewrite /exponential_mechanism (eq_bigr (fun j => inv (\sum_k W k) * W j)); last first.
  by move=> j _; ring.
by rewrite -sum_mull; field; apply: gt0_neq0.
Qed.

(* W is at most p times V, and V at most q times W *)
Theorem exponential_pure p q W V :
  0 <= p -> (forall j, 0 < W j) -> (forall j, 0 < V j) ->
  (forall j, W j <= p * V j) -> (forall j, V j <= q * W j) ->
  pure (p * q) (exponential_mechanism W) (exponential_mechanism V).
Proof.
move=> p0 W0 V0 WV VW; rewrite -pure_pointwise => i; rewrite /exponential_mechanism.
have SW := sum_weights i W0; have SV := sum_weights i V0.
have sw := gt0_neq0 SW; have sv := gt0_neq0 SV.
have /sub_ge0 D : \sum_j V j <= q * (\sum_j W j) by rewrite sum_mull; apply: le_sum.
have /sub_ge0 E := WV i.
set w := \sum_j W j in SW sw D *; set v := \sum_j V j in SV sv D *.
apply: (le_cancel SW); apply: (le_cancel SV).
have K := ge0_add (ge0_mul E (lt_le SV)) (ge0_mul (ge0_mul p0 (lt_le (V0 i))) D).
by apply: (le_by _ K); field.
Qed.
End Exponential.

(* --- permute-and-flip: take an option at random that was not yet taken, and publish it with
   probability x; if not, go on with the others --------------------------------------------------- *)
Section PermuteAndFlip.
Variable F : ordered_field.
Variable Y : finType.
Implicit Types (x y a b : Y -> F) (S T : {set Y}) (k p q : F) (n : nat).
Add Field field2 : (field_laws F).

(* the probability of i, where the n options S are left *)
Fixpoint flips x n S (i : Y) : F :=
  if n is m.+1
  then inv (number F #|S|) *
       \sum_(j in S) ((if j == i then x j else 0) + (1 - x j) * flips x m (S :\ j) i)
  else 0.
(* weights a, the largest of which is top: an option is published with probability a/top *)
Definition permute_and_flip a top : Y -> F := flips (fun j => a j / top) #|Y| [set: Y].

(* the probability that i is reached before any of the n others T is published *)
Fixpoint reached x n T : F :=
  if n is m.+1
  then inv (number F #|T|.+1) * (1 + \sum_(j in T) ((1 - x j) * reached x m (T :\ j)))
  else 1.

Lemma flipsS x m S i : flips x m.+1 S i = inv (number F #|S|) *
  \sum_(j in S) ((if j == i then x j else 0) + (1 - x j) * flips x m (S :\ j) i).
Proof. by []. Qed.
Lemma reachedS x m T : reached x m.+1 T =
  inv (number F #|T|.+1) * (1 + \sum_(j in T) ((1 - x j) * reached x m (T :\ j))).
Proof. by []. Qed.
Arguments flips : simpl never.
Arguments reached : simpl never.

Definition flip x : Prop := forall j, 0 <= x j <= 1.

Lemma flips_out x n S i : i \notin S -> flips x n S i = 0.
Proof.
elim: n S => // n IH S iS; rewrite flipsS big1 ?mulx0 // => j jS.
have -> : (j == i) = false by apply: contraNF iS => /eqP <-.
by rewrite IH ?inE ?negb_and ?iS ?orbT //; ring.
Qed.

Lemma flips_reached x n S i : #|S| = n.+1 -> i \in S -> flips x n.+1 S i = x i * reached x n (S :\ i).
Proof.
elim: n S i => [|n IH] S i Sn iS.
  rewrite flipsS (bigD1 i) //= eqxx big_pred0 => [|j]; last first.
    apply/negP => /andP[jS ji]; have: (1 < #|S|)%N by apply/card_gt1P; exists i, j; rewrite eq_sym.
    by rewrite Sn.
  rewrite Sn /= !addx0 /flips /reached.
  by field; apply: one_neq0.
have Si j : j \in S -> #|S :\ j| = n.+1 by move=> jS; have := cardsD1 j S; rewrite jS Sn => -[].
rewrite flipsS (bigD1 i) //= eqxx [flips _ n.+1 (S :\ i) i]flips_out ?setD11 //.
rewrite Sn (eq_bigr (fun j => x i * ((1 - x j) * reached x n (S :\ i :\ j)))); last first.
  move=> j /andP[jS ji]; rewrite (negPf ji) IH ?Si // ?inE 1?eq_sym ?ji //.
  by rewrite !setDDl setUC; ring.
rewrite -sum_mull (eq_bigl (fun j => j \in S :\ i)); last by move=> j; rewrite !inE andbC.
by rewrite reachedS (Si i iS); ring.
Qed.

Lemma flips_ge0 x n S i : flip x -> 0 <= flips x n S i.
Proof.
move=> x01; elim: n S => [S|n IH S]; first exact: le_refl.
rewrite flipsS; case: (set_0Vmem S) => [->|[j jS]]; first by rewrite big_set0 mulx0.
apply: ge0_mul; first by apply: ge0_inv; apply: gt0_number; apply/card_gt0P; exists j.
apply: sum_ge0 => l _; have /andP[a /sub_ge0 b] := x01 l.
by apply: ge0_add; [case: ifP | apply: ge0_mul].
Qed.

Lemma reached_ge0 x n T : flip x -> 0 <= reached x n T.
Proof.
move=> x01; elim: n T => [T|n IH T]; first exact: ge0_one.
rewrite reachedS; apply: ge0_mul; first by apply: ge0_inv; apply: gt0_number.
apply: ge0_add => //; apply: sum_ge0 => j _; have /andP[_ /sub_ge0 b] := x01 j.
exact: ge0_mul.
Qed.

(* the probabilities of all options together *)
Lemma flips_step x n S : #|S| = n.+1 ->
  \sum_(i in S) flips x n.+1 S i =
  inv (number F n.+1) * (\sum_(j in S) (x j + (1 - x j) * \sum_(i in S :\ j) flips x n (S :\ j) i)).
Proof.
move=> Sn; under eq_bigr do rewrite flipsS Sn; rewrite -sum_mull exchange_big /=; congr (_ * _).
apply: eq_bigr => j jS; rewrite big_split /=; congr (_ + _).
  by rewrite (bigD1 j) //= eqxx big1 ?addx0 // => i /andP[_]; rewrite eq_sym => /negPf ->.
rewrite -sum_mull (bigD1 j) //= flips_out ?setD11 // add0; congr (_ * _).
by apply: eq_bigl => i; rewrite !inE andbC.
Qed.

Lemma flips_total x n S : flip x -> #|S| = n -> \sum_(i in S) flips x n S i <= 1.
Proof.
move=> x01; elim: n S => [|n IH] S Sn; first by rewrite big1.
have N0 : 0 < number F n.+1 by apply: gt0_number.
rewrite (flips_step _ Sn); apply: (le_cancel N0).
have -> t : number F n.+1 * (inv (number F n.+1) * t) = t by field; apply: gt0_neq0.
rewrite -Sn -sum_card; apply: le_sum => j jS; have /andP[a /sub_ge0 b] := x01 j.
have Sj : #|S :\ j| = n by have := cardsD1 j S; rewrite jS Sn => -[].
have /sub_ge0 L := IH _ Sj.
by apply: (le_by _ (ge0_mul b L)); ring.
Qed.

(* exactly 1 where some option is published for certain *)
Lemma flips_certain x n S j : x j = 1 -> j \in S -> #|S| = n -> \sum_(i in S) flips x n S i = 1.
Proof.
move=> xj; elim: n S => [|n IH] S jS Sn; first by rewrite (cards0_eq Sn) inE in jS.
have N0 : 0 < number F n.+1 by apply: gt0_number.
rewrite (flips_step _ Sn) (eq_bigr (fun _ => 1)) ?sum_card ?Sn.
  by field; apply: gt0_neq0.
move=> l lS; have Sl : #|S :\ l| = n by have := cardsD1 l S; rewrite lS Sn => -[].
case: (eqVneq l j) => [->|lj]; first by rewrite xj; ring.
by rewrite IH // ?inE 1?eq_sym ?lj //; ring.
Qed.

Theorem permute_and_flip_distribution a top :
  0 < top -> (forall j, 0 <= a j <= top) -> (exists j, a j = top) ->
  distribution (permute_and_flip a top).
Proof.
move=> t0 A [j E]; have t1 := gt0_neq0 t0; split=> [i|].
  apply: flips_ge0 => l; have /andP[a0 at'] := A l.
  by rewrite ge0_mul ?ge0_inv //=; apply: div_le => //; rewrite mul1.
rewrite -[RHS](@flips_certain (fun j => a j / top) #|Y| [set: Y] j) ?inE ?cardsT //.
  by apply: eq_bigl => i; rewrite inE.
by rewrite E; field.
Qed.

(* slower flips reach an option at most k times as often as flips with y <= k x do *)
Lemma reached_scale x y k n T : flip x -> flip y -> 1 <= k -> (forall j, y j <= k * x j) ->
  #|T| = n -> reached x n T <= k * reached y n T.
Proof.
move=> x01 y01 k1 yx; elim: n T => [|n IH] T Tn; first by rewrite mulx1.
have N0 : 0 < number F #|T|.+1 by apply: gt0_number.
rewrite !reachedS; apply: (le_cancel N0); set N := number F _ in N0 *.
have -> t : N * (inv N * t) = t by field; apply: gt0_neq0.
have -> t : N * (k * (inv N * t)) = k * t by field; apply: gt0_neq0.
have Tj j : j \in T -> #|T :\ j| = n by move=> jT; have := cardsD1 j T; rewrite jT Tn => -[].
have total : \sum_(j in T) (x j * reached x n (T :\ j)) <= 1.
  rewrite (eq_bigr (fun j => flips x n.+1 T j)); last by move=> j jT; rewrite flips_reached.
  exact: flips_total.
have step : \sum_(j in T) ((1 - x j) * reached x n (T :\ j)) <=
    \sum_(j in T) (k * ((1 - y j) * reached y n (T :\ j)) + (k - 1) * (x j * reached x n (T :\ j))).
  apply: le_sum => j jT; have /andP[_ /sub_ge0 b] := y01 j.
  have /sub_ge0 L := IH _ (Tj j jT); have /sub_ge0 M := yx j.
  have R := reached_ge0 n (T :\ j) x01.
  by apply: (le_by _ (ge0_add (ge0_mul b L) (ge0_mul M R))); ring.
move: step; rewrite sum_split -!sum_mull => /sub_ge0 A.
by apply: (le_by _ (ge0_add A (ge0_mul (sub_ge0 k1) (sub_ge0 total)))); ring.
Qed.

(* weights a are at most p times b, and b at most q times a *)
Theorem permute_and_flip_pure p q a b ta tb :
  0 <= q -> 0 < ta -> 0 < tb ->
  (forall j, 0 <= a j <= ta) -> (forall j, 0 <= b j <= tb) -> (exists j, b j = tb) ->
  (forall j, a j <= p * b j) -> (forall j, b j <= q * a j) ->
  pure (p * q) (permute_and_flip a ta) (permute_and_flip b tb).
Proof.
move=> q0 ta0 tb0 A B [j0 E] ab ba; rewrite -pure_pointwise => i; rewrite /permute_and_flip.
have ta1 := gt0_neq0 ta0; have tb1 := gt0_neq0 tb0; have tbi := ge0_inv tb0; have tai := ge0_inv ta0.
have fa : flip (fun j => a j / ta).
  by move=> j; have /andP[a0 at'] := A j; rewrite ge0_mul //=; apply: div_le => //; rewrite mul1.
have fb : flip (fun j => b j / tb).
  by move=> j; have /andP[b0 bt] := B j; rewrite ge0_mul //=; apply: div_le => //; rewrite mul1.
have k1 : 1 <= q * ta / tb.
  apply: le_div => //; rewrite mul1 -E; apply: le_trans (ba j0) _; apply: le_mull => //.
  by have /andP[] := A j0.
have kx j : b j / tb <= q * ta / tb * (a j / ta).
  by have /sub_ge0 L := ba j; apply: (le_by _ (ge0_mul L tbi)); field.
have -> : #|Y| = (#|[set: Y]|.-1).+1 by rewrite cardsT prednK //; apply/card_gt0P; exists i.
set n := (#|_|.-1); have Sn : #|[set: Y]| = n.+1.
  by rewrite /n prednK // cardsT; apply/card_gt0P; exists i.
rewrite !flips_reached ?inE //.
have Ti : #|[set: Y] :\ i| = n by have := cardsD1 i [set: Y]; rewrite inE Sn => -[].
have /sub_ge0 L := reached_scale fa fb k1 kx Ti.
have R := reached_ge0 n ([set: Y] :\ i) fb; have /sub_ge0 M := ab i; have /andP[a0 _] := A i.
have K := ge0_add (ge0_mul (ge0_mul a0 tai) L) (ge0_mul (ge0_mul (ge0_mul q0 M) tbi) R).
by apply: (le_by _ K); field.
Qed.
End PermuteAndFlip.
