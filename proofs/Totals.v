(* The laws of integer noise are laws: round(Lap(b)) and the two-sided geometric law sum to 1, and what
   is published with such noise has probabilities.  So the claims about tables, counts and keys are not
   empty.  docs/theory.md, R, P1, U.  Labels rounded-laplace, partition-laplace, key-counts. *)
From Coq Require Import Lia.
From mathcomp Require Import ssralg ssrint zify.
From Coq Require Import Reals Lra.
From Zerodelta Require Export PureDP.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

(* --- products of laws, over any ordered field ----------------------------------------------------- *)
Section Products.
Local Open Scope scalar_scope.
Variable F : ordered_field.
Add Field field : (field_laws F).

(* no finitely many different outputs have more than 1 together *)
Definition at_most_one (T : eqType) (p : T -> F) : Prop := forall s, uniq s -> \sum_(y <- s) p y <= 1.

Lemma sum_subset (T : eqType) (p : T -> F) s t : (forall y, 0 <= p y) -> uniq s -> uniq t ->
  {subset s <= t} -> \sum_(y <- s) p y <= \sum_(y <- t) p y.
Proof.
move=> p0 us ut st; rewrite -(perm_big _ (permEl (perm_filterC (mem s) t))) big_cat /=.
have E : perm_eq [seq y <- t | y \in s] s.
  apply: uniq_perm => //; first exact: filter_uniq.
  by move=> y; rewrite mem_filter; case: (boolP (y \in s)) => // /st ->.
rewrite (perm_big _ E) /=; apply: le_addr; exact: sum_ge0.
Qed.

(* independent noise on all cells of a table *)
Theorem product_at_most_one (T : choiceType) (J : finType) (p : J -> T -> F) :
  (forall j y, 0 <= p j y) -> (forall j, at_most_one (p j)) ->
  at_most_one (fun y : {ffun J -> T} => \prod_j p j (y j)).
Proof.
move=> p0 p1 s us; pose L := undup [seq (y : {ffun J -> T}) j | y <- s, j <- enum J].
pose value (f : {ffun J -> seq_sub L}) : {ffun J -> T} := [ffun j => val (f j)].
have inj : injective value.
  by move=> f g /ffunP E; apply/ffunP => j; apply: val_inj; have := E j; rewrite !ffunE.
apply: (@le_trans _ (\sum_(y <- [seq value f | f <- enum {ffun J -> seq_sub L}]) \prod_j p j (y j))).
  apply: sum_subset => //; first by move=> y; apply: prod_ge0.
    by rewrite map_inj_uniq ?enum_uniq.
  move=> y ys; have inL j : y j \in L.
    by rewrite mem_undup; apply/allpairsP; exists (y, j); rewrite ys mem_enum.
  apply/mapP; exists [ffun j => SeqSub (inL j)]; first by rewrite mem_enum.
  by apply/ffunP => j; rewrite !ffunE.
rewrite big_map big_enum /=.
have -> : \big[add/zero]_(f : {ffun J -> seq_sub L}) (\prod_j p j (value f j)) =
          \prod_j (\big[add/zero]_(k : seq_sub L) p j (val k)).
  rewrite bigA_distr_bigA; apply: eq_bigr => f _; apply: eq_bigr => j _; by rewrite ffunE.
have one j : \big[add/zero]_(k : seq_sub L) p j (val k) <= 1.
  rewrite -big_enum -(big_map val predT (p j)); apply: p1.
  by rewrite map_inj_uniq ?enum_uniq //; apply: val_inj.
rewrite -[X in _ <= X](@big1_eq _ _ (mul_law F) J (index_enum J) predT).
by apply: le_prod => j _ //; apply: sum_ge0.
Qed.

(* the integers of size at most n *)
Definition window (n : nat) : seq int := [seq Posz i | i <- iota 0 n.+1] ++ [seq Negz i | i <- iota 0 n].
Lemma window_uniq n : uniq (window n).
Proof.
rewrite cat_uniq !map_inj_uniq ?iota_uniq ?andbT //=; try by move=> i j [].
by apply/hasPn => k /mapP[i _ ->]; apply/mapP => -[j _].
Qed.
Lemma in_window n (k : int) : (absz k <= n)%N -> k \in window n.
Proof.
rewrite mem_cat; case: k => i L; apply/orP; [left | right]; apply/mapP; exists i => //;
  by rewrite mem_iota; rewrite /= in L; lia.
Qed.
Lemma windowS (p : int -> F) n : \sum_(k <- window n.+1) p k =
  \sum_(k <- window n) p k + p (Posz n.+1) + p (Negz n).
Proof.
have more (f : nat -> int) m : [seq f i | i <- iota 0 m.+1] = [seq f i | i <- iota 0 m] ++ [:: f m].
  by rewrite -[m.+1]addn1 iotaD map_cat.
rewrite /window (more Posz n.+1) (more Negz n) !big_cat !big_seq1.
move: (bigop _ _ _) (bigop _ _ _) => x y /=; ring.
Qed.
Lemma sums_in_window (p : int -> F) : (forall k, 0 <= p k) -> forall s, uniq s ->
  exists n, \sum_(k <- s) p k <= \sum_(k <- window n) p k.
Proof.
move=> p0 s us; exists (\sum_(k <- s) absz k)%N; apply: sum_subset => // [|k ks].
  exact: window_uniq.
by apply: in_window; rewrite (big_rem k) //= leq_addr.
Qed.

Lemma rounded_laplace_window (s : F) n : s <> 0 ->
  \sum_(k <- window n) rounded_laplace s k = 1 - s * power (s * s) n.
Proof.
move=> s0; have two0 : (1 + 1 : F) <> 0 := gt0_neq0 (two F).
elim: n => [|n IH]; first by rewrite /window /= big_seq1 /=; ring.
by rewrite windowS IH /= /tail /=; field.
Qed.
(* the constant that makes the two-sided geometric law sum to 1 *)
Definition geometric_constant (a b : F) : F := (1 - a) * (1 - b) / (1 - a * b).
Lemma geometric_window (a b : F) n : 1 - a * b <> 0 ->
  \sum_(k <- window n) geometric (geometric_constant a b) a b k =
  1 - ((1 - b) * (a * power a n) + (1 - a) * (b * power b n)) / (1 - a * b).
Proof.
move=> d0; elim: n => [|n IH].
  by rewrite /window /= big_seq1 /= /geometric_constant; field.
by rewrite windowS IH /= /geometric_constant; field.
Qed.
End Products.

Local Open Scope R_scope.
(* --- over the real numbers: what is missing vanishes ------------------------------------------------ *)
Lemma vanishes r e : 0 < r -> 0 < e -> exists n, exp (INR n * - r) < e.
Proof.
move=> r0 e0; pose A := 1 + Rabs (ln e); have A0 : 0 < A by have := Rabs_pos (ln e); rewrite /A; lra.
have [n [L /lt_0_INR n0]] := archimed_cor1 (r / A) (Rmult_lt_0_compat _ _ r0 (Rinv_0_lt_compat _ A0)).
exists n; rewrite -[e]exp_ln //; apply: exp_increasing.
have := Rmult_lt_compat_l (INR n * A) _ _ (Rmult_lt_0_compat _ _ n0 A0) L.
have -> : INR n * A * / INR n = A by field; lra.
have -> : INR n * A * (r / A) = INR n * r by field; lra.
have := Rle_abs (- ln e); rewrite Rabs_Ropp /A; lra.
Qed.

Section Total.
Variables (p : int -> R) (C r : R).
Hypothesis p0 : forall k, 0 <= p k.
Hypothesis r0 : 0 < r.
Hypothesis C0 : 0 < C.
Hypothesis inside : forall n, 1 - C * exp (INR n * - r) <= \big[Rplus/0]_(k <- window n) p k <= 1.

Lemma total_at_most_one : @at_most_one real_field _ p.
Proof.
move=> s us; have P0 k : @leb real_field 0 (p k) by apply/RlebP.
have [n L] := @sums_in_window real_field p P0 s us; apply: le_trans L _; apply/RlebP.
by case: (inside n).
Qed.
Lemma total_one : @probability real_field _ p predT 1.
Proof.
split=> [x [s [us _ ->]]|b H]; first exact: total_at_most_one.
apply/RlebP; apply: Rnot_lt_le => b1; rewrite /= in b1.
have e0 : 0 < (1 - b) / C by apply: Rmult_lt_0_compat; [lra | apply: Rinv_0_lt_compat].
have [n L] := vanishes r0 e0.
have /RlebP B : @leb real_field (\big[Rplus/0]_(k <- window n) p k) b.
  by apply: H; exists (window n); split; [exact: window_uniq | apply/allP |].
have [A _] := inside n; have := Rmult_lt_compat_l _ _ _ C0 L.
have -> : C * ((1 - b) / C) = 1 - b by field; lra.
lra.
Qed.
End Total.

Theorem laplace_total b : 0 < b -> @probability real_field _ (laplace b) predT 1.
Proof.
move=> b0; have [p0 _ _] := laplace_noise b0; have i0 := Rinv_0_lt_compat _ b0.
have E n : \big[Rplus/0]_(k <- window n) laplace b k =
           1 - exp (- / (2 * b)) * exp (INR n * - / b).
  have H : exp (- / (2 * b)) <> 0 by have := exp_pos (- / (2 * b)); lra.
  rewrite /laplace (@rounded_laplace_window real_field _ n H) /=; congr (1 - _ * _).
  rewrite -power_exp; congr (power _ _); rewrite -exp_plus; congr exp; field; lra.
apply: (@total_one _ (exp (- / (2 * b))) (/ b)) => //; first exact: exp_pos.
move=> n; rewrite E; have := exp_pos (- / (2 * b)); have := exp_pos (INR n * - / b) => A B.
have := Rmult_lt_0_compat _ _ B A; lra.
Qed.

(* the constant of the law is not any number: it is this one *)
Definition two_sided_constant (up down : R) : R :=
  @geometric_constant real_field (exp (- up)) (exp (- down)).
Theorem two_sided_total up down : 0 < up -> 0 < down ->
  0 <= two_sided_constant up down /\
  @probability real_field _ (two_sided (two_sided_constant up down) up down) predT 1.
Proof.
move=> u0 d0; pose a := exp (- up); pose b := exp (- down).
have small x : 0 < x -> 0 < exp (- x) < 1.
  by move=> x0; split; [exact: exp_pos | rewrite -exp_0; apply: exp_increasing; lra].
have [A0 A1] : 0 < a < 1 := small _ u0; have [B0 B1] : 0 < b < 1 := small _ d0.
have AB : 0 < 1 - a * b by have := Rmult_lt_compat_r _ _ _ B0 A1; lra.
have I0 := Rinv_0_lt_compat _ AB.
have c0 : 0 <= two_sided_constant up down.
  by apply: Rmult_le_pos; [apply: Rmult_le_pos; rewrite /=; [have := A1 | have := B1]; rewrite /a /b; lra | left].
split=> //; have [p0 _ _] := two_sided_noise c0 u0 d0.
have r0 : 0 < Rmin up down by apply: Rmin_glb_lt.
apply: (@total_one _ 2 (Rmin up down)) => //; first lra.
move=> n; have AB' : 1 - a * b <> 0 by lra.
rewrite /two_sided (@geometric_window real_field a b n AB') /a /b !power_exp -/a -/b /=.
set x := exp (INR n * - up); set y := exp (INR n * - down); set z := exp (INR n * - Rmin up down).
change (1 - 2 * z <= 1 - ((1 - b) * (a * x) + (1 - a) * (b * y)) * / (1 - a * b) <= 1).
have least w : Rmin up down <= w -> exp (INR n * - w) <= z.
  by move=> L; apply: exp_le; apply: Rmult_le_compat_l; [exact: pos_INR | lra].
have X : x <= z by apply: least; exact: Rmin_l.
have Y : y <= z by apply: least; exact: Rmin_r.
have x0 : 0 < x by apply: exp_pos. have y0 : 0 < y by apply: exp_pos.
have lo : 0 <= (1 - b) * (a * x) + (1 - a) * (b * y).
  by apply: Rplus_le_le_0_compat; apply: Rmult_le_pos; try lra; apply: Rmult_le_pos; lra.
have hi : (1 - b) * (a * x) + (1 - a) * (b * y) <= 2 * z * (1 - a * b).
  have P : 0 <= (1 - a) * x by apply: Rmult_le_pos; lra.
  have Q : 0 <= (1 - b) * y by apply: Rmult_le_pos; lra.
  have S : 0 <= (z - x + (z - y)) * (1 - a * b) by apply: Rmult_le_pos; lra.
  lra.
split; last by have := Rmult_le_pos _ _ lo (Rlt_le _ _ I0); lra.
have := Rmult_le_compat_r _ _ _ (Rlt_le _ _ I0) hi.
have -> : 2 * z * (1 - a * b) * / (1 - a * b) = 2 * z by field; lra.
lra.
Qed.

(* --- what is published has probabilities ------------------------------------------------------------ *)
Lemma moved_at_most_one (p : int -> R) (k : int) :
  @at_most_one real_field _ p -> @at_most_one real_field _ (fun y => p (GRing.add y (GRing.opp k))).
Proof.
move=> H s us; rewrite -(big_map (fun y => GRing.add y (GRing.opp k)) predT p); apply: H.
by rewrite map_inj_uniq // => x y /GRing.addIr.
Qed.
Lemma total_sums (p : int -> R) : @probability real_field _ p predT 1 -> @at_most_one real_field _ p.
Proof. by move=> [H _] s us; apply: H; exists s; split=> //; apply/allP. Qed.

(* labels partition-laplace, key-counts: every event of a noisy table has a probability *)
Theorem table_probabilities (Row : eqType) (J : finType) (amount : Row -> J -> nat) (p : int -> R) :
  (forall k, 0 <= p k) -> @probability real_field _ p predT 1 ->
  forall d E, exists m, @probability real_field _ (@noisy_table real_field Row J amount p d) E m.
Proof.
move=> p0 p1 d E; apply: probability_exists => s us; apply/RlebP.
apply: (@product_at_most_one real_field int_choiceType J
          (fun j y => p (GRing.add y (GRing.opp (total amount d j))))) us => [j y|j].
  by apply/RlebP; apply: p0.
by apply: moved_at_most_one; apply: total_sums.
Qed.

(* label rounded-laplace *)
Theorem sums_probabilities (J : finType) (K : J -> int) b : 0 < b -> forall E, exists m,
  @probability real_field _
    (fun y : {ffun J -> int} => \big[Rmult/1]_j laplace b (GRing.add (y j) (GRing.opp (K j)))) E m.
Proof.
move=> b0 E; apply: probability_exists => s us; apply/RlebP.
apply: (@product_at_most_one real_field int_choiceType J
          (fun j y => laplace b (GRing.add y (GRing.opp (K j))))) us => [j y|j].
  by apply/RlebP; have [p0 _ _] := laplace_noise b0; apply: p0.
by apply: moved_at_most_one; apply: total_sums; apply: laplace_total.
Qed.
