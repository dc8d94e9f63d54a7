(* Scalars: the few laws of an ordered field that the algebra uses, and nothing else.

   A scalar is written F.  The theorems hold for every such F: the rationals, and Coq's real numbers
   (PureDP.v makes them one).  mathcomp's own ordered fields carry a choice function, which Coq's real
   numbers do not have without one more axiom; hence this record.  Sums over finite sets are
   mathcomp's big operators. *)
From Coq Require Export Setoid Ring Field.
From mathcomp Require Export all_ssreflect.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Record ordered_field := OrderedField {
  scalar :> Type;
  zero : scalar;
  one : scalar;
  add : scalar -> scalar -> scalar;
  mul : scalar -> scalar -> scalar;
  opp : scalar -> scalar;
  inv : scalar -> scalar;
  leb : scalar -> scalar -> bool;
  field_laws : field_theory zero one add mul (fun x y => add x (opp y)) opp
                 (fun x y => mul x (inv y)) inv eq;
  leb_refl : forall x, leb x x;
  leb_trans : forall y x z, leb x y -> leb y z -> leb x z;
  leb_antisym : forall x y, leb x y -> leb y x -> x = y;
  leb_total : forall x y, leb x y || leb y x;
  leb_add : forall z x y, leb x y -> leb (add z x) (add z y);
  leb_mul : forall x y, leb zero x -> leb zero y -> leb zero (mul x y)
}.
Arguments zero {_}.
Arguments one {_}.
Arguments add {_} _ _.
Arguments mul {_} _ _.
Arguments opp {_} _.
Arguments inv {_} _.
Arguments leb {_} _ _.

Declare Scope scalar_scope.
Delimit Scope scalar_scope with F.
Bind Scope scalar_scope with scalar.
Notation "0" := zero : scalar_scope.
Notation "1" := one : scalar_scope.
Notation "x + y" := (add x y) : scalar_scope.
Notation "x * y" := (mul x y) : scalar_scope.
Notation "- x" := (opp x) : scalar_scope.
Notation "x - y" := (add x (opp y)) : scalar_scope.
Notation "x / y" := (mul x (inv y)) : scalar_scope.
Notation "x <= y" := (leb x y) : scalar_scope.
Notation "x < y" := (negb (leb y x)) : scalar_scope.
Notation "x <= y <= z" := ((leb x y) && (leb y z)) : scalar_scope.
Notation "\sum_ ( i <- s ) f" := (\big[add/zero]_(i <- s) f%F) : scalar_scope.
Notation "\sum_ ( i | c ) f" := (\big[add/zero]_(i | c) f%F) : scalar_scope.
Notation "\sum_ i f" := (\big[add/zero]_i f%F) : scalar_scope.
Notation "\sum_ ( i 'in' S ) f" := (\big[add/zero]_(i in S) f%F) : scalar_scope.
Notation "\prod_ ( i <- s ) f" := (\big[mul/one]_(i <- s) f%F) : scalar_scope.
Notation "\prod_ i f" := (\big[mul/one]_i f%F) : scalar_scope.
Notation "\prod_ ( i 'in' S ) f" := (\big[mul/one]_(i in S) f%F) : scalar_scope.
Local Open Scope scalar_scope.

(* n as a scalar, and powers *)
Fixpoint number (F : ordered_field) (n : nat) : F := if n is m.+1 then 1 + number F m else 0.
Fixpoint power (F : ordered_field) (x : F) (n : nat) : F := if n is m.+1 then x * power x m else 1.

Section Laws.
Variable F : ordered_field.
Implicit Types x y z : F.
Add Field field : (field_laws F).

Lemma addA : associative (@add F). Proof. move=> x y z; ring. Qed.
Lemma addC : commutative (@add F). Proof. move=> x y; ring. Qed.
Lemma add0 : left_id zero (@add F). Proof. move=> x; ring. Qed.
Lemma addx0 : right_id zero (@add F). Proof. move=> x; ring. Qed.
Lemma mulA : associative (@mul F). Proof. move=> x y z; ring. Qed.
Lemma mulC : commutative (@mul F). Proof. move=> x y; ring. Qed.
Lemma mul1 : left_id one (@mul F). Proof. move=> x; ring. Qed.
Lemma mulx1 : right_id one (@mul F). Proof. move=> x; ring. Qed.
Lemma mul0 : left_zero zero (@mul F). Proof. move=> x; ring. Qed.
Lemma mulx0 : right_zero zero (@mul F). Proof. move=> x; ring. Qed.
Lemma mulDl : left_distributive (@mul F) (@add F). Proof. move=> x y z; ring. Qed.
Lemma mulDr : right_distributive (@mul F) (@add F). Proof. move=> x y z; ring. Qed.
Canonical add_law := Monoid.Law addA add0 addx0.
Canonical add_com_law := Monoid.ComLaw addC.
Canonical mul_law := Monoid.Law mulA mul1 mulx1.
Canonical mul_com_law := Monoid.ComLaw mulC.
Canonical mul_zero_law := Monoid.MulLaw mul0 mulx0.
Canonical add_mul_law := Monoid.AddLaw mulDl mulDr.

Lemma le_refl x : x <= x. Proof. exact: leb_refl. Qed.
Lemma le_trans y x z : x <= y -> y <= z -> x <= z. Proof. exact: leb_trans. Qed.
Lemma lt_le x y : x < y -> x <= y.
Proof. by have := leb_total x y; case: (leb y x) => //=; rewrite orbF. Qed.

(* x <= y by a certificate: y - x is this, which is not negative *)
Lemma le_by z x y : 0 <= z -> y - x = z -> x <= y.
Proof. by move=> z0 E; have := leb_add x z0; rewrite -E addx0 (_ : x + (y - x) = y) //; ring. Qed.
Lemma sub_ge0 x y : x <= y -> 0 <= y - x.
Proof. by move=> /(leb_add (- x)); rewrite (_ : - x + x = 0) 1?addC //; ring. Qed.
Lemma ge0_add x y : 0 <= x -> 0 <= y -> 0 <= x + y.
Proof. by move=> x0 /(leb_add x); rewrite addx0; apply: le_trans. Qed.
Lemma ge0_mul x y : 0 <= x -> 0 <= y -> 0 <= x * y. Proof. exact: leb_mul. Qed.
Lemma le_add x y x' y' : x <= x' -> y <= y' -> x + y <= x' + y'.
Proof.
move=> /sub_ge0 A /sub_ge0 B; apply: (le_by (ge0_add A B)); ring.
Qed.
Lemma le_addr x z : 0 <= z -> x <= x + z.
Proof. by move=> z0; apply: (le_by z0); ring. Qed.
Lemma le_mull z x y : 0 <= z -> x <= y -> z * x <= z * y.
Proof. by move=> z0 /sub_ge0 H; apply: (le_by (ge0_mul z0 H)); ring. Qed.
Lemma le_mulr z x y : 0 <= z -> x <= y -> x * z <= y * z.
Proof. by rewrite ![_ * z]mulC; apply: le_mull. Qed.
Lemma le_mul x y x' y' : 0 <= x -> 0 <= y -> x <= x' -> y <= y' -> x * y <= x' * y'.
Proof.
move=> x0 y0 L M; apply: (@le_trans (x' * y)); first exact: le_mulr.
by apply: le_mull => //; apply: le_trans L.
Qed.
Lemma opp_ge0 x : x <= 0 -> 0 <= - x.
Proof. by move=> H; apply: (le_by (sub_ge0 H)); ring. Qed.
Lemma square_ge0 x : 0 <= x * x.
Proof.
case/orP: (leb_total 0 x) => H; first exact: ge0_mul.
by have -> : x * x = - x * - x; [ring | apply: ge0_mul; apply: opp_ge0].
Qed.
Lemma ge0_one : (0 : F) <= 1. Proof. by have := square_ge0 1; rewrite mul1. Qed.
Lemma one_neq0 : (1 : F) <> 0. Proof. exact: F_1_neq_0 (field_laws F). Qed.

Lemma gt0_neq0 x : 0 < x -> x <> 0.
Proof. by move=> H E; move: H; rewrite E le_refl. Qed.
Lemma gt0 x : 0 <= x -> x <> 0 -> 0 < x.
Proof. by move=> x0 N; apply/negP => H; apply: N; apply: leb_antisym. Qed.
Lemma gt0_one : (0 : F) < 1. Proof. exact: gt0 ge0_one one_neq0. Qed.
Lemma lt_le_trans x y z : x < y -> y <= z -> x < z.
Proof. by move=> H L; apply: contra H => M; apply: le_trans M. Qed.
Lemma le_lt_trans x y z : x <= y -> y < z -> x < z.
Proof. by move=> L H; apply: contra H => M; apply: (le_trans M). Qed.
Lemma gt0_mul x y : 0 < x -> 0 < y -> 0 < x * y.
Proof.
move=> x0 y0; apply: gt0 => [|E]; first by apply: ge0_mul; apply: lt_le.
apply: (gt0_neq0 y0); have X := gt0_neq0 x0.
have -> : y = inv x * (x * y) by field.
by rewrite E mulx0.
Qed.
Lemma gt0_addl x y : 0 < x -> 0 <= y -> 0 < x + y.
Proof.
by move=> x0 y0; apply: lt_le_trans x0 _; apply: (le_by y0); ring.
Qed.
Lemma gt0_inv x : 0 < x -> 0 < inv x.
Proof.
move=> x0; have X := gt0_neq0 x0; have -> : inv x = x * (inv x * inv x) by field.
apply: gt0_mul => //; apply: gt0 (square_ge0 _) _ => E; apply: (@one_neq0).
by have -> : 1 = x * x * (inv x * inv x); [field | rewrite E mulx0].
Qed.
Lemma ge0_inv x : 0 < x -> 0 <= inv x. Proof. by move=> /gt0_inv /lt_le. Qed.

(* multiplying both sides by z > 0 *)
Lemma le_cancel z x y : 0 < z -> z * x <= z * y -> x <= y.
Proof.
move=> z0 L; have Z := gt0_neq0 z0.
have -> : x = inv z * (z * x) by field.
have -> : y = inv z * (z * y) by field.
by apply: le_mull L; apply: ge0_inv.
Qed.
Lemma le_div z x y : 0 < z -> x * z <= y -> x <= y / z.
Proof.
move=> z0 L; have Z := gt0_neq0 z0; apply: (le_cancel z0).
have -> : z * (y / z) = y by field.
by rewrite mulC.
Qed.
Lemma div_le z x y : 0 < z -> x <= y * z -> x / z <= y.
Proof.
move=> z0 L; have Z := gt0_neq0 z0; apply: (le_cancel z0).
have -> : z * (x / z) = x by field.
by rewrite mulC.
Qed.

Lemma ge0_number n : 0 <= number F n.
Proof. by elim: n => [|n IH] /=; [exact: le_refl | apply: ge0_add IH; apply: ge0_one]. Qed.
Lemma gt0_number n : (0 < n)%N -> 0 < number F n.
Proof. by case: n => //= n _; apply: gt0_addl gt0_one (ge0_number n). Qed.

Lemma gt0_power x n : 0 < x -> 0 < power x n.
Proof. by move=> x0; elim: n => [|n IH] /=; [exact: gt0_one | apply: gt0_mul]. Qed.
Lemma ge1_power x n : 1 <= x -> 1 <= power x n.
Proof.
move=> x1; elim: n => [|n IH] /=; first exact: le_refl.
by rewrite -[1]mul1; apply: le_mul IH => //; apply: ge0_one.
Qed.
Lemma powerD x n m : power x (n + m) = power x n * power x m.
Proof. by elim: n => [|n IH]; rewrite ?add0n ?addSn /= ?IH; ring. Qed.
Lemma le_power x n m : 1 <= x -> (n <= m)%N -> power x n <= power x m.
Proof.
move=> x1 L; rewrite -(subnK L) powerD -[X in X <= _]mul1.
apply: le_mulr (ge1_power _ x1); apply: lt_le; apply: gt0_power.
exact: lt_le_trans gt0_one x1.
Qed.
End Laws.
Arguments le_by {F} z {x y}.
Arguments le_trans {F} y {x z}.
Hint Resolve le_refl ge0_one gt0_one ge0_number : core.

Section Sums.
Variable F : ordered_field.
Variable T : Type.
Implicit Types (s : seq T) (f g : T -> F) (c : pred T).
Add Field field2 : (field_laws F).

Lemma sum_ge0 s c f : (forall i, c i -> 0 <= f i) -> 0 <= \big[add/zero]_(i <- s | c i) f i.
Proof. by move=> H; elim/big_rec: _ => // i x ci; apply: ge0_add; apply: H. Qed.
Lemma le_sum s c f g : (forall i, c i -> f i <= g i) ->
  \big[add/zero]_(i <- s | c i) f i <= \big[add/zero]_(i <- s | c i) g i.
Proof. by move=> H; elim/big_rec2: _ => // i x y ci; apply: le_add; apply: H. Qed.
Lemma sum_mull s c f z :
  z * (\big[add/zero]_(i <- s | c i) f i) = \big[add/zero]_(i <- s | c i) (z * f i).
Proof. by rewrite big_distrr. Qed.
Lemma sum_opp s c f :
  opp (\big[add/zero]_(i <- s | c i) f i) = \big[add/zero]_(i <- s | c i) - f i.
Proof.
elim: s => [|i s IH]; first by rewrite !big_nil; ring.
by rewrite !big_cons; case: (c i); rewrite -?IH //; ring.
Qed.
Lemma sum_sub s c f g :
  (\big[add/zero]_(i <- s | c i) f i) - (\big[add/zero]_(i <- s | c i) g i) =
  \big[add/zero]_(i <- s | c i) (f i - g i).
Proof. by rewrite sum_opp -big_split. Qed.
Lemma sum_split s c f g : \big[add/zero]_(i <- s | c i) (f i + g i) =
  (\big[add/zero]_(i <- s | c i) f i) + (\big[add/zero]_(i <- s | c i) g i).
Proof. exact: big_split. Qed.
Lemma sum_const s c z : \big[add/zero]_(i <- s | c i) z = number F (count c s) * z.
Proof.
elim: s => [|i s IH]; first by rewrite big_nil /=; ring.
by rewrite big_cons IH /=; case: (c i); rewrite ?add1n ?add0n /=; ring.
Qed.
Lemma prod_ge0 s c f : (forall i, c i -> 0 <= f i) -> 0 <= \big[mul/one]_(i <- s | c i) f i.
Proof. by move=> H; elim/big_rec: _ => // i x ci; apply: ge0_mul; apply: H. Qed.
Lemma prod_gt0 s c f : (forall i, c i -> 0 < f i) -> 0 < \big[mul/one]_(i <- s | c i) f i.
Proof. by move=> H; elim/big_rec: _ => // i x ci; apply: gt0_mul; apply: H. Qed.
Lemma le_prod s c f g : (forall i, c i -> 0 <= f i) -> (forall i, c i -> f i <= g i) ->
  \big[mul/one]_(i <- s | c i) f i <= \big[mul/one]_(i <- s | c i) g i.
Proof.
move=> f0 H; elim: s => [|i s IH]; first by rewrite !big_nil.
rewrite !big_cons; case ci: (c i) => //; apply: le_mul => //; [exact: f0 | exact: prod_ge0 | exact: H].
Qed.
End Sums.

Lemma sum_card (F : ordered_field) (T : finType) (A : {pred T}) (z : F) :
  \sum_(i in A) z = number F #|A| * z.
Proof.
rewrite big_const; elim: #|A| => [|n IH] /=; first by rewrite mul0.
by rewrite IH mulDl mul1.
Qed.
Lemma sum_all (F : ordered_field) (T : finType) (z : F) :
  \big[add/zero]_(i : T) z = number F #|T| * z.
Proof. exact: sum_card. Qed.
