"""Mixing channels for Coq, with the inequality of verify: ln δ + ln M <= ln(w/(1-w)) + ln(e^ε - 1).

The base mechanism is any that satisfies the (ε, δ) claim. Where a certificate states just that, it
is the hypothesis of the theorem; of any other base the profile ln δ(ε) is taken on paper.
"""

from __future__ import annotations

import math
from fractions import Fraction

from zerodelta.coq.formal import PUBLIC, coq_number
from zerodelta.exact.rational import LONGEST_INTEGER
from zerodelta.privacy.claims import ApproxDP
from zerodelta.privacy.composition import Composed, simplest
from zerodelta.privacy.theorems.kernels import LocalUniformKernel
from zerodelta.privacy.theorems.mixing import (
    GaussianNet,
    GridMixing,
    LaplaceNet,
    Mixing,
    PriorMixing,
    ProfileMixing,
    UnequalGridMixing,
    UniformMixing,
)
from zerodelta.privacy.theorems.theorem import Channel, smallest_log_delta
from zerodelta.value import value

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
"""The theorems of each mixing channel, and what of it is taken on paper."""


@value
class Mixture:
    """A theorem for Coq, and whether the profile of its base is taken on paper."""

    text: str
    profile_on_paper: bool


def mixture_theorem(
    channel: Channel, base: Composed | None, epsilon: Fraction, name: str
) -> Mixture | None:
    """Return the channel as a theorem for Coq that claims this ε, None if it has none there."""
    if isinstance(channel, ProfileMixing):
        return Mixture(text=_profile(channel, epsilon, name), profile_on_paper=False)
    if not isinstance(channel, Mixing) or base is None:
        return None
    mass = _log_mass(channel)
    if mass is None:
        return None
    stated = _stated(base, epsilon)
    at, log_delta = stated or (epsilon, _log_delta(base, epsilon))
    eps, w, delta = map(coq_number, (epsilon, channel.weight, log_delta))
    draw = _draw(channel, mass, w)
    text = f"""\
Theorem {name} {PUBLIC} (Y : finType) (M : D -> Y -> R){draw.public} :
  (forall d, law (M d)) -> {draw.assumed} ->
  approximate_DP neighbors M {coq_number(at)} {delta} ->
  pure_DP neighbors ({draw.law}) {eps}.
Proof.
intros L H A; apply {draw.applied} with (log_mass := {mass}) (l := {delta});
  [number | split; number | {draw.shown} | | number].
apply approximate_DP_above with (eps0 := {coq_number(at)}) (l0 := {delta});
  [exact L | number | number | exact A].
Qed.
"""
    return Mixture(text=text, profile_on_paper=stated is None)


@value
class _Draw:
    """The public draw of a channel: what is assumed of it, how it is used, what is published."""

    public: str
    assumed: str
    shown: str
    law: str
    applied: str


def _draw(channel: Mixing, mass: str, weight: str) -> _Draw:
    if isinstance(channel, LocalUniformKernel):
        return _Draw(
            public="\n    (Z : finType) (T : Y -> Z -> R) (U : Z -> R)",
            assumed=f"[/\\ forall y z, 0 <= T y z, forall z, 0 <= U z &\n"
            f"     forall y z, T y z <= exp ({mass}) * U z]",
            shown="exact L | apply H | apply H | apply H",
            law=f"fun d z => \\big[Rplus/0]_(y : Y) (M d y * ((1 - {weight}) * T y z + "
            f"{weight} * U z))",
            applied="kernel_mixing",
        )
    if not isinstance(channel, (UniformMixing, GridMixing, UnequalGridMixing)):
        return _Draw(
            public=" (U : Y -> R)",
            assumed=f"(forall y, exp (- ({mass})) <= U y)",
            shown="exact H",
            law=f"mixture M {weight} U",
            applied="prior_mixing",
        )
    written = isinstance(channel, UniformMixing) and mass == f"ln {channel.size}"
    # the size of a space may be too long to write, and is e^mass
    return _Draw(
        public="",
        assumed=f"outputs Y = {mass[3:]}" if written else f"0 < outputs Y <= exp ({mass})",
        shown="rewrite H exp_ln; [split; number | number]" if written else "exact H",
        law=f"mixture M {weight} (fun _ => / outputs Y)",
        applied="uniform_mixing",
    )


def _stated(base: Composed, epsilon: Fraction) -> tuple[Fraction, Fraction] | None:
    """Return (ε₀, ln δ) if the base only is what such a claim says, and that is used as it is."""
    claim = simplest(base)
    if type(claim) is ApproxDP and claim.exact_epsilon <= epsilon:
        return claim.exact_epsilon, Fraction(claim.exact_log_delta)
    return None


def _log_delta(base: Composed, epsilon: Fraction) -> Fraction:
    """Return ln δ(ε) as `verify` bounds it; a number below all others for a base that is pure."""
    value = smallest_log_delta(base, epsilon)
    return Fraction(value) if value > -math.inf else Fraction(-(10**12))


def _log_mass(channel: Mixing) -> str | None:
    """Return the mass ratio ln M as Coq reads it."""
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
    """Return ln N; None for a number that is too long to write and no power of 2."""
    power = size.bit_length() - 1
    if power > 64 and size == 1 << power:
        return f"{power} * ln 2"
    return f"ln {size}" if power < LONGEST_INTEGER else None


def _profile(channel: ProfileMixing, epsilon: Fraction, name: str) -> str:
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
