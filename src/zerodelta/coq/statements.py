"""Write the steps of a certificate as theorems for Coq, with the numbers of each step.

Each statement is an instance of a theorem in proofs/PureDP.v; its proof leaves to Coq exactly the
inequality that `verify` evaluates for the step's label.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

from zerodelta.exact.rational import LONGEST_INTEGER
from zerodelta.privacy.claims import ApproxDP, PureDP
from zerodelta.privacy.composition import Composed, simplest
from zerodelta.privacy.parameters import Neighbors
from zerodelta.privacy.theorems.mixing import (
    GaussianNet,
    GridMixing,
    LaplaceNet,
    LocalUniformKernel,
    MixingTheorem,
    PriorMixing,
    ProfileMixing,
    UnequalGridMixing,
    UniformMixing,
)
from zerodelta.privacy.theorems.noise import (
    BlockKNorm,
    ExponentialMechanismTheorem,
    JointTopKTheorem,
    KeyCountsTheorem,
    KNormNoiseTheorem,
    PartitionKNorm,
    PartitionLaplace,
    PermuteAndFlipTheorem,
    RoundedLaplaceTheorem,
)
from zerodelta.privacy.theorems.testing import (
    PureLocalSensitivity,
    PureProposeTestRelease,
    StableMode,
)
from zerodelta.privacy.theorems.theorem import BaseTheorem, ChannelTheorem, smallest_log_delta
from zerodelta.value import value

# -- The theorem of a label, and numbers in Coq's notation -----------------------------------------

PUBLIC = "(D : Type) (neighbors : D -> D -> Prop)"
"""Any type of data, and any relation of neighbors."""


def coq_number(value: Fraction | int) -> str:
    """Return a number in Coq's notation.

    >>> coq_number(3), coq_number(Fraction(-1, 2))
    ('3', '(-1/2)')
    """
    exact = Fraction(value)
    if exact.denominator == 1:
        return str(exact.numerator) if exact >= 0 else f"({exact.numerator})"
    return f"({exact.numerator}/{exact.denominator})"


@value
class Formal:
    """The proof of a label's theorem in Coq.

    Parameters
    ----------
    theorems : tuple of str
        The theorems of proofs/ that are used; the file applies the first ones.
    paper : str
        The premise that is proved on paper only; empty if there is none.
    write : callable
        Returns statement and proof, for the theorem's numbers, the neighbors, ε and a name.

    """

    theorems: tuple[str, ...]
    write: Callable[[Any, Neighbors, Fraction, str], str]
    paper: str = ""


# -- Mixtures -------------------------------------------------------------------------------------
# Mixing channels for Coq, with the inequality of verify: ln δ + ln M <= ln(w/(1-w)) + ln(e^ε - 1).
#
# The base mechanism is any that satisfies the (ε, δ) claim. If the certificate states this claim,
# it is the hypothesis of the theorem; for any other base the profile ln δ(ε) is proved on paper.

FORMAL_CHANNELS: dict[str, tuple[tuple[str, ...], str]] = {
    "uniform-mixing": (
        ("uniform_mixing", "B1", "B1_uniform", "zero_cost", "B1_worst_case"),
        "",
    ),
    "prior-mixing": (("prior_mixing", "B1_prior"), ""),
    "profile-mixing": (("profile_mixing", "B1_profile"), ""),
    "grid-mixing": (("uniform_mixing", "B1_uniform"), ""),
    "unequal-grid-mixing": (("uniform_mixing", "B1_uniform"), ""),
    "local-uniform-kernel": (("kernel_mixing", "mass_ratio"), "the mass ratio of the kernel"),
    "gaussian-net": (("prior_mixing", "B1_prior"), "the smallest probability on the net (R(v))"),
    "laplace-net": (("prior_mixing", "B1_prior"), "the smallest probability on the net (R(vi))"),
}
"""The theorems of each mixing channel, and the premise that is proved on paper only."""


@value
class Mixture:
    """A theorem for Coq, and whether the profile of its base is proved on paper only."""

    text: str
    profile_on_paper: bool


def mixture_theorem(
    channel: ChannelTheorem, base: Composed | None, epsilon: Fraction, name: str
) -> Mixture | None:
    """Write that mixing makes a base with this δ or profile pure; None if Coq lacks the proof."""
    if isinstance(channel, ProfileMixing):
        return Mixture(text=_profile(channel, epsilon, name), profile_on_paper=False)
    if not isinstance(channel, MixingTheorem) or base is None:
        return None
    mass = _log_mass(channel)
    if mass is None:
        return None
    stated = _stated(base, epsilon)
    base_epsilon, log_delta = stated or (epsilon, _log_delta(base, epsilon))
    eps, w, delta = map(coq_number, (epsilon, channel.weight, log_delta))
    draw = _draw(channel, mass, w)
    text = f"""\
Theorem {name} {PUBLIC} (Y : finType) (M : D -> Y -> R){draw.public} :
  (forall d, law (M d)) -> {draw.assumed} ->
  approximate_DP neighbors M {coq_number(base_epsilon)} {delta} ->
  pure_DP neighbors ({draw.law}) {eps}.
Proof.
intros L H A; apply {draw.applied} with (log_mass := {mass}) (l := {delta});
  [number | split; number | {draw.shown} | | number].
apply approximate_DP_above with (eps0 := {coq_number(base_epsilon)}) (l0 := {delta});
  [exact L | number | number | exact A].
Qed.
"""
    return Mixture(text=text, profile_on_paper=stated is None)


@value
class _PublicDraw:
    """The public draw of a channel, as fragments of a Coq theorem and its proof."""

    public: str
    assumed: str
    shown: str
    law: str
    applied: str


def _draw(channel: MixingTheorem, mass: str, weight: str) -> _PublicDraw:
    """Return the Coq premises on a channel's public draw, by its kind of mixing."""
    if isinstance(channel, LocalUniformKernel):
        return _PublicDraw(
            public="\n    (Z : finType) (T : Y -> Z -> R) (U : Z -> R)",
            assumed=f"[/\\ forall y z, 0 <= T y z, forall z, 0 <= U z &\n"
            f"     forall y z, T y z <= exp ({mass}) * U z]",
            shown="exact L | apply H | apply H | apply H",
            law=f"fun d z => \\big[Rplus/0]_(y : Y) (M d y * ((1 - {weight}) * T y z + "
            f"{weight} * U z))",
            applied="kernel_mixing",
        )
    if not isinstance(channel, (UniformMixing, GridMixing, UnequalGridMixing)):
        return _PublicDraw(
            public=" (U : Y -> R)",
            assumed=f"(forall y, exp (- ({mass})) <= U y)",
            shown="exact H",
            law=f"mixture M {weight} U",
            applied="prior_mixing",
        )
    explicit = isinstance(channel, UniformMixing) and mass == f"ln {channel.size}"
    # a size that is too long to write is stated as at most e^mass
    return _PublicDraw(
        public="",
        assumed=f"outputs Y = {mass[3:]}" if explicit else f"0 < outputs Y <= exp ({mass})",
        shown="rewrite H exp_ln; [split; number | number]" if explicit else "exact H",
        law=f"mixture M {weight} (fun _ => / outputs Y)",
        applied="uniform_mixing",
    )


def _stated(base: Composed, epsilon: Fraction) -> tuple[Fraction, Fraction] | None:
    """Return (ε₀, ln δ) if the base is just such a claim, with ε₀ at most the ε of the release."""
    claim = simplest(base)
    if type(claim) is ApproxDP and claim.exact_epsilon <= epsilon:
        return claim.exact_epsilon, Fraction(claim.exact_log_delta)
    return None


def _log_delta(base: Composed, epsilon: Fraction) -> Fraction:
    """Return the bound of `verify` on ln δ(ε); -10^12, in place of -∞, for a pure base."""
    value = smallest_log_delta(base, epsilon)
    return Fraction(value) if value > -math.inf else Fraction(-(10**12))


def _log_mass(channel: MixingTheorem) -> str | None:
    """Return the logarithm ln M of the mass ratio in Coq's notation."""
    if isinstance(channel, UniformMixing):
        return _log_size(channel.size)
    if isinstance(channel, PriorMixing):
        return f"- ln {coq_number(channel.smallest_probability)}"
    if isinstance(channel, GridMixing):
        return f"{channel.dimension} * ln {channel.cells}"
    if isinstance(channel, UnequalGridMixing):
        return " + ".join(f"{times} * ln {cells}" for cells, times in channel.sides)
    if isinstance(channel, LocalUniformKernel):
        fraction = coq_number(Fraction(channel.cells, channel.kernel_cells))
        return f"{channel.dimension} * ln {fraction}"
    if isinstance(channel, GaussianNet):
        tau, d = channel.variance, channel.dimension
        spread = (channel.bound + Fraction(d, 12)) / (2 * tau)
        half = coq_number(Fraction(d, 2))
        return f"ln (2 * PI * {coq_number(tau)}) * {half} + {coq_number(spread)}"
    if isinstance(channel, LaplaceNet):
        b = channel.scale
        peak = f"ln (1 - exp (- {coq_number(1 / (2 * b))}))"
        return f"{coq_number(channel.bound / b)} - {channel.dimension} * {peak}"
    return None


def _log_size(size: int) -> str | None:
    """Return ln N in Coq's notation; None if N is too long to write and not a power of 2."""
    power = size.bit_length() - 1
    if power > 64 and size == 1 << power:
        return f"{power} * ln 2"
    return f"ln {size}" if power < LONGEST_INTEGER else None


def _profile(channel: ProfileMixing, epsilon: Fraction, name: str) -> str:
    """Return mixing by the profile of the base mechanism, for Coq."""
    eps, s, ratio, w = map(coq_number, (epsilon, channel.epsilon, channel.ratio, channel.weight))
    return f"""\
Theorem {name} {PUBLIC} (Y : finType) (M : D -> Y -> R)
    (U : Y -> R) :
  (forall d, law (M d)) -> (forall y, 0 <= U y) ->
  (forall d d', neighbors d d' -> forall y, M d y - exp {s} * M d' y <= {ratio} * U y) ->
  pure_DP neighbors (mixture M {w} U) {eps}.
Proof.
intros; apply profile_mixing with (s := {s}) (ratio := {ratio}); try assumption; try split; number.
Qed.
"""


# -- Noise on counts and sums as theorems for Coq (theory R, P1, P2, G2, U) -----------------------


def laplace_theorem(step: RoundedLaplaceTheorem, _: Neighbors, epsilon: Fraction, name: str) -> str:
    """Return rounded Laplace noise on integer sums, for Coq."""
    change, scale = coq_number(step.sensitivity), coq_number(step.scale)
    return f"""\
Theorem {name} {PUBLIC} (J : finType) (K : D -> J -> int) :
  (forall d d', neighbors d d' ->
     INR (\\sum_j absz (GRing.add (K d j) (GRing.opp (K d' j))))%N <= {change}) ->
  pure_DP_events neighbors (fun d (y : {{ffun J -> int}}) =>
    \\big[Rmult/1]_j laplace {scale} (GRing.add (y j) (GRing.opp (K d j)))) {coq_number(epsilon)}.
Proof.
intros H; apply laplace_sums with (sensitivity := {change}); [number | exact H | number].
Qed.
"""


def k_norm_theorem(step: KNormNoiseTheorem, _: Neighbors, epsilon: Fraction, name: str) -> str:
    """Return one draw of noise in a norm, for Coq."""
    change, scale = coq_number(step.sensitivity), coq_number(step.scale)
    return f"""\
Theorem {name} {PUBLIC} (J : finType) (K : D -> J -> int)
    (norm p : {{ffun J -> int}} -> R) :   (* the norm is {step.norm} *)
  (forall z, 0 <= p z) ->
  (forall z h, p z <= exp (norm h / {scale}) * p [ffun j => GRing.add (z j) (h j)]) ->
  (forall d d', neighbors d d' ->
     norm [ffun j => GRing.add (K d j) (GRing.opp (K d' j))] <= {change}) ->
  pure_DP_events neighbors
    (fun d (y : {{ffun J -> int}}) => p [ffun j => GRing.add (y j) (GRing.opp (K d j))])
    {coq_number(epsilon)}.
Proof.
intros p0 H S; apply norm_noise with (norm := norm) (sensitivity := {change}) (scale := {scale});
  try assumption; number.
Qed.
"""


_ROWS = "(Row : eqType) (J : finType) (amount : Row -> J -> nat) (row_total unit_rows : nat)"


def partition_theorem(
    step: PartitionLaplace, neighbors: Neighbors, epsilon: Fraction, name: str
) -> str:
    """Return noise on a table to whose cells each row adds at most a fixed total, for Coq."""
    total, rows = coq_number(step.row_total), coq_number(step.unit_rows)
    scale = coq_number(step.scale)
    if step.cells == 1 and neighbors is Neighbors.REPLACE:
        applied, law = "count_replace", "noisy_count amount"
        public = "(Row : eqType) (amount : Row -> nat) (row_total unit_rows : nat)"
        bound = "(forall r, (amount r <= row_total)%N)"
    else:
        applied = "table_replace" if neighbors is Neighbors.REPLACE else "table_add_remove"
        law, public = "noisy_table amount", _ROWS
        bound = "(forall r, (\\sum_j amount r j <= row_total)%N)"
    relation = "replace_rows" if neighbors is Neighbors.REPLACE else "add_remove_rows"
    return f"""\
Theorem {name} {public} :
  INR row_total = {total} -> INR unit_rows = {rows} -> {bound} ->
  pure_DP_events ({relation} unit_rows) ({law} (laplace {scale})) {coq_number(epsilon)}.
Proof.
intros M m H; apply {applied} with (row_total := row_total) (scale := {scale});
  [exact H | number | apply laplace_noise; number | rewrite M m; number].
Qed.
"""


def one_draw_theorem(step: PartitionKNorm, _: Neighbors, epsilon: Fraction, name: str) -> str:
    """Return one draw over all cells of a table, for Coq."""
    total, rows = coq_number(step.row_total), coq_number(step.unit_rows)
    scale = coq_number(step.scale)
    return f"""\
Theorem {name} {_ROWS} (p : {{ffun J -> int}} -> R) :
  INR row_total = {total} -> INR unit_rows = {rows} ->
  (forall r, (\\sum_j amount r j <= row_total)%N) -> (forall z, 0 <= p z) ->
  moves_at p (exp (INR (unit_rows * row_total) / {scale})) (unit_rows * row_total) ->
  pure_DP_events (replace_rows unit_rows) (table_draw amount p) {coq_number(epsilon)}.
Proof.
intros M m H p0 q; apply table_one_draw with (row_total := row_total) (scale := {scale});
  try assumption; rewrite M m; number.
Qed.
"""


def blocks_theorem(step: BlockKNorm, neighbors: Neighbors, epsilon: Fraction, name: str) -> str:
    """Return noise in a norm on the sums of each group, for Coq."""
    bound, rows = coq_number(step.row_bound), coq_number(step.unit_rows)
    scale = coq_number(step.scale)
    replace = neighbors is Neighbors.REPLACE
    relation, applied = (
        ("replace_rows", "blocks_replace") if replace else ("add_remove_rows", "blocks_add_remove")
    )
    return f"""\
Theorem {name} (Row : eqType) (G J : finType) (group : Row -> option G)
    (amount : Row -> J -> int) (norm p : {{ffun J -> int}} -> R) (unit_rows : nat) :
  INR unit_rows = {rows} -> (forall z, 0 <= p z) ->
  (forall z h, p z <= exp (norm h / {scale}) * p [ffun j => GRing.add (z j) (h j)]) ->
  (forall r, norm [ffun j => amount r j] <= {bound} /\\
             norm [ffun j => GRing.opp (amount r j)] <= {bound}) ->
  pure_DP_events ({relation} unit_rows) (by_group group (fun _ => block_sums amount p))
    {coq_number(epsilon)}.
Proof.
intros m p0 H S; apply {applied} with (norm := norm) (bound := {bound}) (scale := {scale});
  try assumption; rewrite ?m; number.
Qed.
"""


def keys_theorem(step: KeyCountsTheorem, neighbors: Neighbors, epsilon: Fraction, name: str) -> str:
    """Return counts by key with two-sided noise of different scales up and down, for Coq."""
    up, down = coq_number(step.up), coq_number(step.down)
    replace = neighbors is Neighbors.REPLACE
    relation = "replace_rows" if replace else "add_remove_rows"
    applied = "keys_replace" if replace else "keys_add_remove"
    # Coq-Interval has no maximum, so the larger of the two is chosen here
    side = "Rmax_left" if step.up >= step.down else "Rmax_right"
    last = "number" if replace else f"rewrite {side}; number"
    return f"""\
Theorem {name} (Row : eqType) (U : finType) (key : Row -> option U) :
  pure_DP_events ({relation} 1)
    (noisy_counts key (two_sided (two_sided_constant {up} {down}) {up} {down}))
    {coq_number(epsilon)}.
Proof.
intros; apply {applied}; [split; [apply two_sided_total; number | number | number] |
  change (INR 1) with 1; {last}].
Qed.
"""


def step_theorem(
    step: BaseTheorem, neighbors: Neighbors, epsilon: Fraction, name: str
) -> str | None:
    """Return a step as a theorem for Coq that claims this ε; None if Coq has none for it."""
    formal = FORMAL_STEPS.get(step.label)
    return formal.write(step, neighbors, epsilon, name) if formal else None


def step_epsilon(step: BaseTheorem, neighbors: Neighbors) -> Fraction | None:
    """Return the pure ε that follows from a step's numbers; None if the step is not pure.

    Coq checks whether the thresholds of a test allow this ε.
    """
    if isinstance(step, PureProposeTestRelease):
        return step.test_epsilon + step.release_epsilon
    if isinstance(step, PureLocalSensitivity):
        return step.bound_epsilon + step.release_epsilon
    if isinstance(step, StableMode):
        return step.epsilon
    claim = step.claim(neighbors)
    return claim.exact_epsilon if type(claim) is PureDP else None


def _selection(
    step: ExponentialMechanismTheorem | PermuteAndFlipTheorem,
    _: Neighbors,
    epsilon: Fraction,
    name: str,
    *,
    flip: bool,
) -> str:
    """Write the theorem of the exponential mechanism or of permute-and-flip."""
    change, scale = coq_number(step.sensitivity), coq_number(step.scale)
    one_way = " monotone neighbors score ->" if step.monotone else ""
    best = (
        " (best : D -> Y) :\n  (forall d y, score d y <= score d (best d)) ->" if flip else " :\n "
    )
    law = (
        f"permute_and_flip (weight score {scale} d) (weight score {scale} d (best d))"
        if flip
        else f"exponential_mechanism (weight score {scale} d)"
    )
    applied = "permute_and_flip_selection" if flip else "exponential_selection"
    side = "right; split; [assumption | number]" if step.monotone else "left; number"
    return f"""\
Theorem {name} {PUBLIC} (Y : finType) (score : D -> Y -> R){best}
  (forall d d', neighbors d d' -> forall y, Rabs (score d y - score d' y) <= {change}) ->{one_way}
  pure_DP neighbors (fun d => {law}) {coq_number(epsilon)}.
Proof.
intros; apply {applied} with (sensitivity := {change}); try assumption; [number | {side}].
Qed.
"""


def _top_k(step: JointTopKTheorem, _: Neighbors, epsilon: Fraction, name: str) -> str:
    change = coq_number(step.sensitivity * (1 if step.monotone else 2))
    scale = coq_number(step.scale)
    return f"""\
Theorem {name} {PUBLIC} (Lists : finType) (score : D -> Lists -> R) :
  (forall d d', neighbors d d' -> forall s, Rabs (score d s - score d' s) <= {change}) ->
  pure_DP neighbors (fun d => exponential_mechanism (weight score {scale} d)) {coq_number(epsilon)}.
Proof.
intros; apply exponential_selection with (sensitivity := {change}); try assumption;
  [number | left; number].
Qed.
"""


_TAIL = {
    "real": "(exp (- ({rate} * {tau})) / 2)",
    "rounded": "(exp (- ({rate} * ({tau} + 1/2))) / 2)",
    "discrete": "(exp (- ({rate} * ({tau} + 1))) / (1 + exp (- {rate})))",
}
"""P(Z > τ) for the Laplace noise of a test (theory C3), proved on paper only."""


def _tail(rate: Fraction, threshold: Fraction, noise: str) -> str:
    return _TAIL[noise].format(rate=coq_number(rate), tau=coq_number(threshold))


def _peak(epsilon: Fraction, sensitivity: Fraction, dimension: int, noise: str) -> str:
    """Return the largest probability of the release noise; its d-th power as e^(d ln p)."""
    half = coq_number(epsilon / (2 * sensitivity))
    peak = (
        f"((1 - exp (- (2 * {half}))) / (1 + exp (- (2 * {half}))))"
        if noise == "discrete"
        else f"(1 - exp (- {half}))"
    )
    return peak if dimension == 1 else f"(exp ({dimension} * ln {peak}))"


def _propose(step: PureProposeTestRelease, _: Neighbors, epsilon: Fraction, name: str) -> str:
    """Write the theorem of propose-test-release."""
    tail = _tail(step.test_epsilon, step.threshold, step.noise)
    peak = _peak(step.release_epsilon, step.sensitivity, step.dimension, step.noise)
    size, eps = coq_number(step.points), coq_number(epsilon)
    return f"""\
Theorem {name} {PUBLIC} (Y : finType) (M : D -> option Y -> R) :
  outputs Y = {size} -> (forall d, law (M d)) ->
  (forall d d', neighbors d d' -> (forall o, M d o <= exp {eps} * M d' o) \\/
     ((forall y, M d (Some y) <= {tail} * {peak}) /\\ 1 - {tail} <= M d' None)) ->
  pure_DP neighbors (fun d y => M d (Some y) + M d None * / outputs Y) {eps}.
Proof.
intros N L H; apply propose_test_release with (dp := {tail}) (pm := {peak});
  try assumption; rewrite ?N; number.
Qed.
"""


def _local(step: PureLocalSensitivity, _: Neighbors, epsilon: Fraction, name: str) -> str:
    """Write the theorem of noise scaled to a private bound on the local sensitivity."""
    tail = _tail(step.bound_epsilon / step.local_change, step.threshold, step.noise)
    peak = _peak(step.release_epsilon, step.smallest_bound, step.dimension, step.noise)
    size, eps, w = coq_number(step.points), coq_number(epsilon), coq_number(step.weight)
    return f"""\
Theorem {name} {PUBLIC} (Y : finType) (M : D -> option Y -> R) :
  outputs Y = {size} ->
  (forall d d', neighbors d d' ->
     (forall y, M d (Some y) - exp {eps} * M d' (Some y) <= {tail} * {peak}) /\\
     M d None - exp {eps} * M d' None <= {tail}) ->
  pure_DP neighbors
    (fun d y => (1 - {w}) * (M d (Some y) + M d None * / outputs Y) + {w} * / outputs Y) {eps}.
Proof.
intros N H; apply local_sensitivity with (db := {tail}) (pm := {peak});
  try assumption; try (split; number); rewrite ?N; number.
Qed.
"""


def _mode(step: StableMode, _: Neighbors, epsilon: Fraction, name: str) -> str:
    tail = _tail(step.epsilon, step.threshold, step.noise)
    size, eps = coq_number(step.points), coq_number(epsilon)
    return f"""\
Theorem {name} {PUBLIC} (Y : finType) (f : D -> Y) (pass : D -> R) :
  outputs Y = {size} -> (forall d, 0 <= pass d) ->
  (forall d d', neighbors d d' -> f d = f d' ->
     pass d <= exp {eps} * pass d' /\\ 1 - pass d <= exp {eps} * (1 - pass d')) ->
  (forall d d', neighbors d d' -> f d <> f d' -> pass d <= {tail} /\\ pass d' <= {tail}) ->
  pure_DP neighbors
    (fun d y => pass d * (if y == f d then 1 else 0) + (1 - pass d) * / outputs Y) {eps}.
Proof.
intros N p0 same other; apply stable_mode with (dp := {tail});
  try assumption; rewrite ?N; number.
Qed.
"""


_SHIFTS = "the probability ratio of the rounded noise under shifts in its norm (Lemma R)"
_GEOMETRIC = (
    "that the noise drawn has P(k) ≤ e^(1/b)·P(k ± 1): it is the two-sided geometric law, and the "
    "theorem is about round(Laplace)"
)
_TESTED = "the distances, and the tails of the noise (C3's table)"

FORMAL_STEPS: dict[str, Formal] = {
    "exponential-mechanism": Formal(
        theorems=("exponential_selection", "exponential_pure"),
        write=partial(_selection, flip=False),
        paper="that the argmax with Gumbel noise has this law",
    ),
    "permute-and-flip": Formal(
        theorems=("permute_and_flip_selection", "permute_and_flip_pure"),
        write=partial(_selection, flip=True),
        paper="that the argmax with exponential noise has this law",
    ),
    "rounded-laplace": Formal(
        theorems=(
            *("laplace_sums", "shifted", "rounded_laplace_falls", "rounded_laplace_law"),
            *("laplace_total", "sums_probabilities"),
        ),
        write=laplace_theorem,
    ),
    "k-norm-noise": Formal(
        theorems=("norm_noise",),
        write=k_norm_theorem,
        paper=_SHIFTS,
    ),
    "partition-laplace": Formal(
        theorems=(
            *("table_replace", "table_add_remove", "count_replace"),
            *("P1_replace", "P1_add_remove", "P1_one_cell", "rounded_laplace_law"),
            *("laplace_total", "table_probabilities"),
        ),
        write=partition_theorem,
        paper=_GEOMETRIC,
    ),
    "partition-k-norm": Formal(
        theorems=("table_one_draw", "P2"),
        write=one_draw_theorem,
        paper=_SHIFTS,
    ),
    "block-k-norm": Formal(
        theorems=("blocks_replace", "blocks_add_remove", "P3_replace", "P3_add_remove"),
        write=blocks_theorem,
        paper=_SHIFTS,
    ),
    "joint-top-k": Formal(
        theorems=("exponential_selection", "exponential_pure"),
        write=_top_k,
        paper="the sensitivity of a list's score",
    ),
    "key-counts": Formal(
        theorems=(
            *("keys_replace", "keys_add_remove", "keys_published"),
            *("U_replace", "U_add_remove", "U_published", "geometric_falls", "geometric_rises"),
            "two_sided_total",
        ),
        write=keys_theorem,
        paper="that the noise drawn has its law",
    ),
    "pure-propose-test-release": Formal(
        theorems=("propose_test_release", "C3"), write=_propose, paper=_TESTED
    ),
    "pure-local-sensitivity": Formal(
        theorems=("local_sensitivity", "C4"), write=_local, paper=_TESTED
    ),
    "stable-mode": Formal(
        theorems=("stable_mode", "C5", "C5_necessary"),
        write=_mode,
        paper="that the distance to another mode has sensitivity 1, and the tail of the noise",
    ),
}
"""The theorem in Coq for each label of a mechanism that is pure by itself."""
