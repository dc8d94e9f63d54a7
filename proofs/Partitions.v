(* Counts and sums of rows with independent integer noise: partitions of unity (P1), one draw over all
   cells (P2), groups that are answered apart (P3, parallel lemma), units with several rows (V).
   docs/theory.md, P1, P2, P3, V.  Labels partition-laplace, partition-k-norm, parallel-blocks,
   rounded-laplace.  The noise is any law on the integers whose neighboring probabilities differ by at
   most the factor v = e^(1/b): rounded Laplace noise of scale b is one (Noise.v). *)
From Coq Require Import Lia.
From mathcomp Require Import ssralg ssrint zify.
From Zerodelta Require Export Composition.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Local Open Scope scalar_scope.

(* --- from one row to several: a mechanism on rows whose order does not matter ------------------- *)
Section SeveralRows.
Variable F : ordered_field.
Variable T Row : eqType.
Variable M : seq Row -> T -> F.
Implicit Types (p q w : F) (c d : seq Row).
Add Field field : (field_laws F).

Definition unordered : Prop := forall d d', perm_eq d d' -> M d =1 M d'.
Definition removal p : Prop := forall r c, pointwise p (M (r :: c)) (M c).
Definition addition q : Prop := forall r c, pointwise q (M c) (M (r :: c)).

Lemma rows_removed p a c : 0 <= p -> removal p -> pointwise (power p (size a)) (M (a ++ c)) (M c).
Proof.
move=> p0 H; elim: a => [|r a IH] y /=; first by rewrite mul1.
by apply: le_trans (H r _ y) _; rewrite -mulA; apply: le_mull.
Qed.
Lemma rows_added q a c : 0 <= q -> addition q -> pointwise (power q (size a)) (M c) (M (a ++ c)).
Proof.
move=> q0 H; elim: a => [|r a IH] y /=; first by rewrite mul1.
apply: le_trans (IH y) _; rewrite [q * _]mulC -mulA; apply: le_mull (H r _ y).
by elim: (size a) => //= n IHn; apply: ge0_mul.
Qed.

(* up to m rows of one unit are replaced: each that leaves costs p, each that comes costs q *)
Theorem replaced p q m : 1 <= p -> 1 <= q -> (forall d y, 0 <= M d y) ->
  unordered -> removal p -> addition q ->
  private_pointwise (replace_rows m) (power p m * power q m) M.
Proof.
move=> p1 q1 M0 U R A d d' [a [b [c [pd pd' sa sb]]]] y.
have p0 : 0 <= p by apply: le_trans p1. have q0 : 0 <= q by apply: le_trans q1.
have pw n : 0 <= power p n by apply: lt_le; apply: gt0_power; apply: lt_le_trans p1.
have qw n : 0 <= power q n by apply: lt_le; apply: gt0_power; apply: lt_le_trans q1.
rewrite (U _ _ pd) (U _ _ pd') -mulA; apply: le_trans (rows_removed _ _ p0 R y) _.
apply: le_mul => //; first exact: le_power.
by apply: le_trans (rows_added b c q0 A y) _; apply: le_mulr => //; apply: le_power.
Qed.

(* up to m rows come, or up to m rows leave *)
Theorem added_or_removed w m : 1 <= w -> (forall d y, 0 <= M d y) ->
  unordered -> removal w -> addition w -> private_pointwise (add_remove_rows m) (power w m) M.
Proof.
move=> w1 M0 U R A d d' [a [c [sa cases]]] y; have w0 : 0 <= w by apply: le_trans w1.
have L := le_mulr (M0 _ y) (le_power w1 sa).
case: cases => -[pd pd']; rewrite (U _ _ pd) (U _ _ pd').
  exact: le_trans (rows_removed _ _ w0 R y) (L _).
exact: le_trans (rows_added _ _ w0 A y) (L _).
Qed.
End SeveralRows.

(* --- independent noise on the cells of a table --------------------------------------------------- *)
Section Cells.
Variable F : ordered_field.
Variable Row : eqType.
Variable J : finType.                          (* the cells, of all groups together *)
Variable amount : Row -> J -> nat.             (* what a row adds to each cell *)
Variable p : int -> F.                         (* the law of the noise on one cell *)
Implicit Types (d c : seq Row) (y : {ffun J -> int}) (m M : nat) (v : F) (j : J).
Add Field field2 : (field_laws F).

Definition total d j : int := Posz (\sum_(r <- d) amount r j)%N.
(* the law of the published table: total plus noise, independently in each cell *)
Definition noisy_table d : {ffun J -> int} -> F := fun y => \prod_j p (y j - total d j)%R.

(* neighboring probabilities differ by at most the factor down, resp. up *)
Definition falls (up : F) : Prop := forall k, p k <= up * p (k + 1)%R.
Definition rises (down : F) : Prop := forall k, p (k + 1)%R <= down * p k.

Lemma falls_by up n k : 0 <= up -> falls up -> p k <= power up n * p (k + Posz n)%R.
Proof.
move=> u0 H; elim: n k => [|n IH] k /=; first by rewrite GRing.addr0 mul1.
apply: le_trans (H k) _; rewrite -mulA; apply: le_mull => //.
by have := IH (k + 1)%R; rewrite -GRing.addrA.
Qed.
Lemma rises_by down n k : 0 <= down -> rises down -> p (k + Posz n)%R <= power down n * p k.
Proof.
move=> d0 H; elim: n k => [|n IH] k /=; first by rewrite GRing.addr0 mul1.
have := IH (k + 1)%R; rewrite -GRing.addrA => L; apply: le_trans L _.
rewrite [down * _]mulC -mulA; apply: le_mull (H k).
by elim: n {IH} => //= n IHn; apply: ge0_mul.
Qed.

Lemma noisy_unordered : unordered noisy_table.
Proof.
move=> d d' pd y; apply: eq_bigr => j _; congr (p (_ - Posz _)%R); exact: perm_big.
Qed.
Lemma noisy_ge0 : (forall k, 0 <= p k) -> forall d y, 0 <= noisy_table d y.
Proof. by move=> p0 d y; apply: prod_ge0. Qed.

Lemma power_prod v (n : J -> nat) : \prod_j power v (n j) = power v (\sum_j n j)%N.
Proof.
apply: (big_ind2 (fun (a : F) b => a = power v b)) => // a n1 b n2 -> ->.
by rewrite powerD.
Qed.

Lemma total_cons r c j : total (r :: c) j = (total c j + Posz (amount r j))%R.
Proof. by rewrite /total big_cons PoszD GRing.addrC. Qed.

Lemma noisy_removal up M : 1 <= up -> (forall k, 0 <= p k) -> falls up ->
  (forall r, \sum_j amount r j <= M)%N -> removal noisy_table (power up M).
Proof.
move=> u1 p0 H rM r c y; have u0 : 0 <= up by apply: le_trans u1.
apply: (@le_trans _ (\prod_j (power up (amount r j) * p (y j - total c j)%R))).
  apply: le_prod => // j _; have := falls_by (amount r j) (y j - total (r :: c) j)%R u0 H.
  set s := (_ - _ + _)%R; have -> // : s = (y j - total c j)%R.
  by rewrite /s total_cons GRing.opprD GRing.addrA GRing.subrK.
rewrite big_split /= power_prod; apply: le_mulr (le_power u1 (rM r)); exact: noisy_ge0.
Qed.
Lemma noisy_addition down M : 1 <= down -> (forall k, 0 <= p k) -> rises down ->
  (forall r, \sum_j amount r j <= M)%N -> addition noisy_table (power down M).
Proof.
move=> d1 p0 H rM r c y; have d0 : 0 <= down by apply: le_trans d1.
apply: (@le_trans _ (\prod_j (power down (amount r j) * p (y j - total (r :: c) j)%R))).
  apply: le_prod => // j _; have := rises_by (amount r j) (y j - total (r :: c) j)%R d0 H.
  set s := (_ - _ + _)%R; have -> // : s = (y j - total c j)%R.
  by rewrite /s total_cons GRing.opprD GRing.addrA GRing.subrK.
rewrite big_split /= power_prod; apply: le_mulr (le_power d1 (rM r)); exact: noisy_ge0.
Qed.

Lemma power_mul v n m : power (power v n) m = power v (n * m).
Proof. by elim: m => [|m IH]; rewrite ?muln0 // mulnS powerD /= IH. Qed.

(* P1, label partition-laplace: a row adds at most M to all cells together, a unit has at most m rows.
   e^(2mM/b) where rows are replaced, e^(mM/b) where they are added or removed *)
Theorem P1_replace v M m : 1 <= v -> (forall k, 0 <= p k) -> falls v -> rises v ->
  (forall r, \sum_j amount r j <= M)%N ->
  private_pointwise (replace_rows m) (power v (2 * m * M)) noisy_table.
Proof.
move=> v1 p0 H G rM; have w1 : 1 <= power v M by apply: ge1_power.
have := replaced w1 w1 (noisy_ge0 p0) noisy_unordered (noisy_removal v1 p0 H rM)
          (noisy_addition v1 p0 G rM) (m := m).
by rewrite -powerD addnn -mul2n power_mul [(M * _)%N]mulnC.
Qed.
Theorem P1_add_remove v M m : 1 <= v -> (forall k, 0 <= p k) -> falls v -> rises v ->
  (forall r, \sum_j amount r j <= M)%N ->
  private_pointwise (add_remove_rows m) (power v (m * M)) noisy_table.
Proof.
move=> v1 p0 H G rM; have w1 : 1 <= power v M by apply: ge1_power.
have := added_or_removed w1 (noisy_ge0 p0) noisy_unordered (noisy_removal v1 p0 H rM)
          (noisy_addition v1 p0 G rM) (m := m).
by rewrite power_mul mulnC.
Qed.
End Cells.

(* --- one cell: a filtered count or a sum; and integer answers of bounded l1 sensitivity --------- *)
Section OneCell.
Variable F : ordered_field.
Variable Row : eqType.
Variable amount : Row -> nat.
Variable p : int -> F.
Implicit Types (d : seq Row) (v : F) (m M n : nat) (k l : int).
Add Field field3 : (field_laws F).

Lemma moved_by v k l n : 1 <= v -> (forall z, 0 <= p z) -> falls p v -> rises p v ->
  (`|k - l|%R <= n)%N -> p k <= power v n * p l.
Proof.
move=> v1 p0 H G kl; have v0 : 0 <= v by apply: le_trans v1.
apply: (@le_trans _ (power v `|k - l|%R * p l)); last exact: le_mulr (le_power v1 kl).
have -> : k = (l + (k - l))%R by rewrite GRing.addrC GRing.subrK.
have -> : (l + (k - l) - l)%R = (k - l)%R by rewrite GRing.addrC GRing.addKr.
case: (k - l)%R => a; first exact: rises_by.
have := falls_by a.+1 (l + Negz a)%R v0 H; rewrite -GRing.addrA NegzE GRing.addNr GRing.addr0.
by rewrite abszN absz_nat.
Qed.

Definition noisy_count d : int -> F := fun y => p (y - Posz (\sum_(r <- d) amount r)%N)%R.

(* P1 with one cell: rows that are replaced cost e^(mM/b) too *)
Theorem P1_one_cell v M m : 1 <= v -> (forall k, 0 <= p k) -> falls p v -> rises p v ->
  (forall r, amount r <= M)%N ->
  private_pointwise (replace_rows m) (power v (m * M)) noisy_count.
Proof.
move=> v1 p0 H G rM d d' [a [b [c [pd pd' sa sb]]]] y; apply: moved_by => //.
have S (s : seq Row) : (size s <= m)%N -> (\sum_(r <- s) amount r <= m * M)%N.
  move=> sm; apply: (@leq_trans (size s * M)); last by rewrite leq_mul2r sm orbT.
  elim: s {sm} => [|r s IH]; first by rewrite big_nil.
  by rewrite big_cons mulSn; apply: leq_add.
rewrite (perm_big _ pd) (perm_big _ pd') !big_cat /=.
set A := (\sum_(r <- a) _)%N; set B := (\sum_(r <- b) _)%N; set C := (\sum_(r <- c) _)%N.
have -> : (y - Posz (A + C)%N - (y - Posz (B + C)%N))%R = (Posz B - Posz A)%R.
  by lia.
have := S a sa; have := S b sb; rewrite -/A -/B => BM AM; lia.
Qed.

(* label rounded-laplace: integers that move by at most n together *)
Theorem shifted (J : finType) v n (K L : J -> int) : 1 <= v -> (forall k, 0 <= p k) ->
  falls p v -> rises p v -> (\sum_j `|K j - L j|%R <= n)%N ->
  pointwise (power v n) (fun y : {ffun J -> int} => \prod_j p (y j - K j)%R)
                        (fun y : {ffun J -> int} => \prod_j p (y j - L j)%R).
Proof.
move=> v1 p0 H G KL y; apply: (@le_trans _ (power v (\sum_j `|K j - L j|%R)%N *
  \prod_j p (y j - L j)%R)); last first.
  by apply: le_mulr (le_power v1 KL); apply: prod_ge0.
rewrite -power_prod -big_split /=; apply: le_prod => // j _; apply: moved_by => //.
lia.
Qed.
End OneCell.

(* --- one draw over all cells (P2): the norm of a move is the larger of what goes up and down ------ *)
Section OneDraw.
Variable F : ordered_field.
Variables (Row : eqType) (J : finType).
Variable amount : Row -> J -> nat.
Variable p : {ffun J -> int} -> F.
Implicit Types (d : seq Row) (z h : {ffun J -> int}) (u : F).

Definition rise (k : int) : nat := if k is Posz n then n else 0.
Definition fall (k : int) : nat := if k is Negz n then n.+1 else 0.

Lemma rise_sub (a b : nat) : (rise (Posz a - Posz b)%R <= a)%N.
Proof.
by case E: (Posz a - Posz b)%R => [n|n] //=; lia.
Qed.
Lemma fall_sub (a b : nat) : (fall (Posz a - Posz b)%R <= b)%N.
Proof.
by case E: (Posz a - Posz b)%R => [n|n] //=; lia.
Qed.

Definition table_draw d : {ffun J -> int} -> F :=
  fun y => p [ffun j => y j - total amount d j]%R.

(* u = e^(n/s): the noise moves by a vector of norm at most n at that cost *)
Definition moves_at u n : Prop := forall z h,
  (\sum_j rise (h j) <= n)%N -> (\sum_j fall (h j) <= n)%N -> p z <= u * p [ffun j => z j + h j]%R.

(* label partition-k-norm *)
Theorem P2 u M m : moves_at u (m * M) -> (forall r, \sum_j amount r j <= M)%N ->
  private_pointwise (replace_rows m) u table_draw.
Proof.
move=> H rM d d' [a [b [c [pd pd' sa sb]]]] y; rewrite /table_draw.
pose A (s : seq Row) j := (\sum_(r <- s) amount r j)%N.
have S (s : seq Row) : (size s <= m)%N -> (\sum_j A s j <= m * M)%N.
  move=> sm; rewrite exchange_big /=; apply: (@leq_trans (size s * M)); last by rewrite leq_mul2r sm orbT.
  elim: s {sm} => [|r s IH]; first by rewrite big_nil.
  by rewrite big_cons mulSn; apply: leq_add.
have E j : total amount d j = (Posz (A a j) + Posz (A c j))%R.
  by rewrite /total (perm_big _ pd) big_cat.
have E' j : total amount d' j = (Posz (A b j) + Posz (A c j))%R.
  by rewrite /total (perm_big _ pd') big_cat.
pose h : {ffun J -> int} := [ffun j => (Posz (A a j) - Posz (A b j))%R].
have := H [ffun j => y j - total amount d j]%R h.
have -> : [ffun j => [ffun j0 => y j0 - total amount d j0]%R j + h j]%R =
          [ffun j => y j - total amount d' j]%R.
  apply/ffunP => j; rewrite !ffunE E E'; lia.
apply; [apply: leq_trans (S a sa) | apply: leq_trans (S b sb)]; apply: leq_sum => j _; rewrite ffunE;
  [exact: rise_sub | exact: fall_sub].
Qed.
End OneDraw.

(* --- groups of rows that are answered apart, with independent randomness (P3) ------------------- *)
Section Blocks.
Variable F : ordered_field.
Variables (Row T : eqType) (G : finType).
Variable group : Row -> option G.              (* a row is in one group, or counts nowhere *)
Variable M : G -> seq Row -> T -> F.           (* what answers each group *)
Implicit Types (d c : seq Row) (g : G) (t w : F).
Add Field field4 : (field_laws F).

Definition block g d : seq Row := [seq r <- d | group r == Some g].
Definition by_group d : {ffun G -> T} -> F := fun y => \prod_g M g (block g d) (y g).

Hypothesis M0 : forall g d y, 0 <= M g d y.
Hypothesis M_unordered : forall g, unordered (M g).

Lemma by_group_ge0 d y : 0 <= by_group d y. Proof. exact: prod_ge0. Qed.
Lemma by_group_unordered : unordered by_group.
Proof. by move=> d d' pd y; apply: eq_bigr => g _; apply: M_unordered; apply: perm_filter. Qed.

(* only one factor of the product changes *)
Lemma one_block t d d' : 1 <= t ->
  (exists g0, (forall g, g != g0 -> block g d = block g d') /\
              pointwise t (M g0 (block g0 d)) (M g0 (block g0 d'))) \/
  (forall g, block g d = block g d') -> pointwise t (by_group d) (by_group d').
Proof.
move=> t1 cases y; rewrite /by_group; case: cases => [[g0 [same H]]|same].
  rewrite (bigD1 g0) //= [X in _ <= t * X](bigD1 g0) //= mulA.
  rewrite (eq_bigr (fun g => M g (block g d') (y g))); last by move=> g gg; rewrite same.
  by apply: le_mulr (H _); apply: prod_ge0.
rewrite (eq_bigr (fun g => M g (block g d') (y g))); last by move=> g gg; rewrite same.
by rewrite -[X in X <= _]mul1; apply: le_mulr t1; apply: prod_ge0.
Qed.

Lemma by_group_removal t : 1 <= t -> (forall g, removal (M g) t) -> removal by_group t.
Proof.
move=> t1 H r c; apply: one_block => //; case E: (group r) => [g0|]; last first.
  by right=> g; rewrite /block /= E.
left; exists g0; split=> [g gg|]; last by rewrite /block /= E eqxx; apply: H.
by rewrite /block /= E; case: eqP => // -[e]; rewrite e eqxx in gg.
Qed.
Lemma by_group_addition t : 1 <= t -> (forall g, addition (M g) t) -> addition by_group t.
Proof.
move=> t1 H r c; apply: one_block => //; case E: (group r) => [g0|]; last first.
  by right=> g; rewrite /block /= E.
left; exists g0; split=> [g gg|]; last by rewrite /block /= E eqxx; apply: H.
by rewrite /block /= E; case: eqP => // -[e]; rewrite e eqxx in gg.
Qed.

(* label parallel-blocks: 2 m t, however many groups; m t where rows are added or removed *)
Theorem P3_replace t m : 1 <= t -> (forall g, removal (M g) t) -> (forall g, addition (M g) t) ->
  private_pointwise (replace_rows m) (power t (2 * m)) by_group.
Proof.
move=> t1 R A; have := replaced t1 t1 by_group_ge0 by_group_unordered (by_group_removal t1 R)
  (by_group_addition t1 A) (m := m).
by rewrite -powerD addnn -mul2n.
Qed.
Theorem P3_add_remove t m : 1 <= t -> (forall g, removal (M g) t) -> (forall g, addition (M g) t) ->
  private_pointwise (add_remove_rows m) (power t m) by_group.
Proof.
move=> t1 R A; exact: added_or_removed t1 by_group_ge0 by_group_unordered (by_group_removal t1 R)
  (by_group_addition t1 A).
Qed.

(* the parallel lemma: max(2t, r), where a group is r-DP if a row is replaced within it *)
Theorem parallel_lemma t r w x x' c : 1 <= t -> t * t <= w -> r <= w -> 1 <= w ->
  (forall g, removal (M g) t) -> (forall g, addition (M g) t) ->
  (forall g x x' c, pointwise r (M g (x :: c)) (M g (x' :: c))) ->
  pointwise w (by_group (x :: c)) (by_group (x' :: c)).
Proof.
move=> t1 tw rw w1 R A W y; case: (eqVneq (group x) (group x')) => [E|D].
  apply: one_block => //; case Ex: (group x) => [g0|]; last first.
    by right=> g; rewrite /block /= -E Ex.
  left; exists g0; split=> [g gg|z]; rewrite /block /= -E Ex; last first.
    by rewrite eqxx; apply: le_trans (W _ _ _ _ z) _; apply: le_mulr.
  by case: eqP => // -[e]; rewrite e eqxx in gg.
apply: le_trans (le_mulr (by_group_ge0 _ _) tw); rewrite -mulA.
have t0 : 0 <= t by apply: le_trans t1.
apply: le_trans (by_group_removal t1 R x c y) _; apply: le_mull => //.
exact: by_group_addition.
Qed.
End Blocks.
