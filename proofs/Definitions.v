(* What is claimed.  Read this file to check that the theorems are about pure differential privacy.

   A law gives every output its probability.  u stands for e^epsilon; PureDP.v puts it in.
   docs/theory.md, "Conventions". *)
From Zerodelta Require Export Scalars.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Local Open Scope scalar_scope.

(* --- finitely many outputs --------------------------------------------------------------- *)
Section Finite.
Variable F : ordered_field.
Variable Y : finType.
Implicit Types (P Q : Y -> F) (u v delta : F).

Definition distribution P : Prop := (forall y, 0 <= P y) /\ \sum_y P y = 1.
Definition mass P (S : {set Y}) : F := \sum_(y in S) P y.

(* (epsilon, delta): P(S) <= e^epsilon Q(S) + delta for every set S of outputs *)
Definition approximate u delta P Q : Prop := forall S : {set Y}, mass P S <= u * mass Q S + delta.

(* pure epsilon: delta = 0 *)
Definition pure u P Q : Prop := forall S : {set Y}, mass P S <= u * mass Q S.

(* a mechanism M on data of type D, for a relation of neighbors *)
Definition private (D : Type) (neighbors : D -> D -> Prop) u (M : D -> Y -> F) : Prop :=
  forall d d', neighbors d d' -> pure u (M d) (M d').

Lemma pure_pointwise u P Q : (forall y, P y <= u * Q y) <-> pure u P Q.
Proof.
split=> [H S|H y]; first by rewrite /mass sum_mull; apply: le_sum.
by have := H [set y]; rewrite /mass !big_set1.
Qed.

Lemma approximate_zero u P Q : approximate u 0 P Q <-> pure u P Q.
Proof. by split=> H S; have := H S; rewrite addx0. Qed.

Lemma approximate_weaken u v delta delta' P Q :
  (forall y, 0 <= Q y) -> u <= v -> delta <= delta' ->
  approximate u delta P Q -> approximate v delta' P Q.
Proof.
move=> Q0 uv dd H S; apply: le_trans (H S) _; apply: le_add dd; apply: le_mulr uv.
exact: sum_ge0.
Qed.

Lemma distribution_le1 P y : distribution P -> P y <= 1.
Proof.
move=> [P0 <-]; rewrite (bigD1 y) //=; apply: le_addr; exact: sum_ge0.
Qed.

Lemma pure_weaken u v P Q : (forall y, 0 <= Q y) -> u <= v -> pure u P Q -> pure v P Q.
Proof.
move=> Q0 uv; rewrite -!approximate_zero; exact: approximate_weaken Q0 uv (le_refl _).
Qed.
End Finite.

(* --- outputs of any kind, such as integers or tables of integers ---------------------------- *)
Section Countable.
Variable F : ordered_field.
Variable T : eqType.
Implicit Types (P Q : T -> F) (E : pred T) (u m : F).

(* The probability of an event is the least upper bound of the sums over finitely many different
   outputs in it.  Over the real numbers it exists (PureDP.v, probability_exists). *)
Definition part_of P E (x : F) : Prop :=
  exists s : seq T, [/\ uniq s, all E s & x = \sum_(y <- s) P y].
Definition probability P E m : Prop :=
  (forall x, part_of P E x -> x <= m) /\
  (forall b, (forall x, part_of P E x -> x <= b) -> m <= b).

(* pure epsilon: P(E) <= e^epsilon Q(E) for every event E *)
Definition pure_events u P Q : Prop :=
  forall E m m', probability P E m -> probability Q E m' -> m <= u * m'.

(* the ratio of the probabilities of single outputs *)
Definition pointwise u P Q : Prop := forall y, P y <= u * Q y.

Theorem pointwise_pure_events u P Q : 0 <= u -> pointwise u P Q -> pure_events u P Q.
Proof.
move=> u0 H E m m' [_ least] [upper _]; apply: least => _ [s [us Es ->]].
apply: (@le_trans _ (u * \sum_(y <- s) Q y)); first by rewrite sum_mull; apply: le_sum.
by apply: le_mull => //; apply: upper; exists s.
Qed.

(* and for events of one output that is all: nothing is lost *)
Lemma probability_point P y : 0 <= P y -> probability P (pred1 y) (P y).
Proof.
move=> P0; split=> [_ [s [us /allP Es ->]]|b H]; last first.
  by apply: H; exists [:: y]; split=> //=; rewrite ?eqxx // big_seq1.
case: s us Es => [|x [|z s]] us Es; first by rewrite big_nil.
  by have /eqP -> := Es x (mem_head _ _); rewrite big_seq1.
have /eqP E := Es x (mem_head _ _); have /eqP E' : pred1 y z by apply: Es; rewrite !inE eqxx orbT.
by move: us; rewrite E E' /= inE eqxx.
Qed.
Theorem pure_events_pointwise u P Q :
  (forall y, 0 <= P y) -> (forall y, 0 <= Q y) -> pure_events u P Q -> pointwise u P Q.
Proof. by move=> P0 Q0 H y; apply: (H (pred1 y)); apply: probability_point. Qed.

(* post-processing by any function, such as a threshold: an event of f(y) is an event of y *)
Definition output (O : eqType) (f : T -> O) (E : pred O) : pred T := preim f E.
Definition pure_after (O : eqType) (f : T -> O) u P Q : Prop :=
  forall (E : pred O) m m',
  probability P (output f E) m -> probability Q (output f E) m' -> m <= u * m'.

Theorem pointwise_after (O : eqType) (f : T -> O) u P Q :
  0 <= u -> pointwise u P Q -> pure_after f u P Q.
Proof. by move=> u0 H E; apply: pointwise_pure_events. Qed.
End Countable.

(* on finitely many outputs that probability is the sum *)
Section Agree.
Variable F : ordered_field.
Variable Y : finType.
Implicit Types (P Q : Y -> F).

Lemma probability_finite P (S : {set Y}) :
  (forall y, 0 <= P y) -> probability P (mem S) (mass P S).
Proof.
move=> P0; split=> [_ [s [us /allP Ss ->]]|b H].
  rewrite big_uniq // /mass [X in _ <= X](bigID (fun y => y \in s)) /=.
  rewrite [X in _ <= X + _](eq_bigl (fun y => y \in s)); last first.
    by move=> y; apply/andP/idP => [[]//|ys]; split=> //; exact: Ss.
  by apply: le_addr; apply: sum_ge0.
apply: H; exists (enum S); split; first exact: enum_uniq.
  by apply/allP => y; rewrite mem_enum.
by rewrite /mass big_enum.
Qed.

Theorem pure_events_finite u P Q :
  (forall y, 0 <= P y) -> (forall y, 0 <= Q y) -> pure_events u P Q -> pure u P Q.
Proof. by move=> P0 Q0 H S; apply: H; apply: probability_finite. Qed.
End Agree.
