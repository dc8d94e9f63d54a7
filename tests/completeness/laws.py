"""The law that each theorem is about, by the numbers of a certificate's step, and what was drawn.

A theorem names samplers and what they are to be told; each of these samplers is held against its
exact law in tests/exact. So a step, and nothing else, says what must have been drawn for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from completeness.noises import NOISES, AddedNoise
from completeness.watched import Draw
from zerodelta.exact.argmax import exponential_argmax, gumbel_argmax
from zerodelta.exact.integers import (
    bernoulli,
    bernoulli_exp,
    categorical,
    permutation,
    uniform_below,
    uniform_below_each,
    uniform_subset,
    weighted_indices,
)
from zerodelta.exact.joint_ranks import joint_points
from zerodelta.exact.noise import (
    RealKNorm,
    asymmetric_noise,
    discrete_laplace,
    geometric_steps,
    quantum_of,
    rounded_count_noise,
    rounded_gaussian,
    rounded_k_norm,
    rounded_laplace,
    rounded_matrix_laplace,
    rounded_student_t,
    rounded_uniform_plus_k_norm,
    sparse_ranks,
)
from zerodelta.mechanisms.sum_noise import DIAGONAL
from zerodelta.privacy.steps import Step

F = Fraction
Numbers = Mapping[str, Any]

UNIFORM = {uniform_below, uniform_below_each, uniform_subset, permutation, weighted_indices}
UNIFORM |= {categorical}
"""What is drawn without regard to ε: places in what is public, and shares of weights."""


@dataclass(frozen=True)
class Stated:
    """A draw that a theorem asks for: a sampler, and those of its numbers that the theorem fixes.

    A number may be a test of what the sampler was told. What is not `needed` may also stay undrawn.
    """

    sampler: Any
    numbers: dict[str, Any]
    needed: bool = True

    def is_met_by(self, draw: Draw) -> bool:
        return draw.sampler is self.sampler and all(
            wanted(draw.numbers[name]) if callable(wanted) else draw.numbers[name] == wanted
            for name, wanted in self.numbers.items()
        )


def noise(sampler: Any, *, needed: bool = True, **numbers: Any) -> Stated:
    return Stated(sampler, numbers, needed)


def sometimes(sampler: Any, **numbers: Any) -> Stated:
    return Stated(sampler, numbers, needed=False)


def _k_norm(n: Numbers) -> list[Stated]:
    if n["norm"] == "counts":
        return [noise(rounded_count_noise, scale=n["scale"])]
    norm = {1: 1, 2: 2, "inf": math.inf, "blocks": 2}[n["norm"]]
    return [noise(rounded_k_norm, norm=norm, scale=n["scale"])]


def _matrix(n: Numbers) -> list[Stated]:
    """Scale b on the diagonal with its weight, in units of the power of two that is published."""
    scale = DIAGONAL * n["scale"]
    quanta = scale / quantum_of(scale)
    return [noise(rounded_matrix_laplace, dimension=n["dimension"], scale=quanta)]


def _sampled(n: Numbers) -> list[Stated]:
    batch = sometimes(uniform_subset, size=n["batch"])
    return [noise(rounded_gaussian, variance=n["variance"]), batch]


def _sufficient(n: Numbers) -> list[Stated]:
    """The Frobenius norm counts what is beside the diagonal twice: half the variance there."""
    variance = n["multiplier_squared"] * n["row_bound_squared"] ** 2
    return [
        noise(rounded_gaussian, variance=variance),
        sometimes(rounded_gaussian, variance=variance / 2),
    ]


def _k_norm_sufficient(n: Numbers) -> list[Stated]:
    """One unit b on the diagonal, at least b/√2 beside it, b/√w for what is multiplied by y."""

    def fits(scales: Any) -> bool:
        scales = list(map(F, scales))
        whole, kinds = scales[0], set(scales)
        near = [scale for scale in kinds if scale**2 * n["target_weight"] == whole**2]
        beside = kinds - {whole, *near}
        few = all(whole**2 <= 2 * scale**2 <= whole**2 * F(1001, 1000) for scale in beside)
        return len(near) == 1 and few and len(beside) <= 1

    return [noise(rounded_k_norm, norm=2, scale=fits)]


def _objective(slope_squared: int) -> Callable[[Numbers], list[Stated]]:
    """v of density ∝ exp(-ε' ‖v‖ / 2D), D the largest slope (theory C9)."""

    def law(n: Numbers) -> list[Stated]:
        squared = 4 * slope_squared / n["noise_epsilon"] ** 2
        return [noise(RealKNorm, scale_squared=lambda told: _close(told, squared))]

    return law


def _close(told: Any, squared: Fraction) -> bool:
    return told is not None and F(told) == squared


def _coin(*drawn: Callable[[Numbers], Stated]) -> Callable[[Numbers], list[Stated]]:
    """A channel: a coin of just its mixing probability, and what is drawn beside it."""
    return lambda n: [noise(bernoulli, probability=n["weight"]), *(each(n) for each in drawn)]


def _around(n: Numbers) -> list[Stated]:
    """Noise of this scale, in units of the lattice, around the value and around a random point."""
    scale = n["scale"]
    return [
        *(sometimes(sampler, scale=scale) for sampler in (rounded_k_norm,)),
        sometimes(rounded_uniform_plus_k_norm, scale=scale),
        sometimes(bernoulli, probability=n["weight"]),
        sometimes(bernoulli_exp),
    ]


def _added(each: AddedNoise) -> Callable[[Numbers], list[Stated]]:
    return lambda n: [noise(each.sampler, **each.told(n))]


LAWS: dict[str, Callable[[Numbers], list[Stated]]] = {
    # -- noise on integers
    **{each.label: _added(each) for each in NOISES},
    "rounded-gaussian": lambda n: [noise(rounded_gaussian, variance=n["variance"])],
    "sampling-without-replacement": _sampled,
    "adaptive-gaussian": lambda n: [sometimes(rounded_gaussian)],
    "adaptive-zcdp": lambda n: [sometimes(rounded_gaussian), sometimes(gumbel_argmax)],
    "k-norm-noise": _k_norm,
    "matrix-laplace": _matrix,
    "partition-laplace": lambda n: [  # of cells that nobody looks at the noise need not be drawn
        noise(discrete_laplace, scale=n["scale"], size=lambda size: size <= n["cells"])
    ],
    "partition-k-norm": lambda n: [
        noise(rounded_count_noise, scale=n["scale"], dimension=n["cells"])
    ],
    "block-k-norm": lambda n: [
        noise(
            rounded_k_norm,
            norm=math.inf,
            scale=n["scale"],
            dimension=n["dimension"],
            size=n["blocks"],
        )
    ],
    "key-counts": lambda n: [
        noise(asymmetric_noise, up=n["up"], down=n["down"]),
        sometimes(sparse_ranks),
        sometimes(geometric_steps, rate=n["up"]),
    ],
    "smooth-sensitivity": lambda n: [noise(rounded_student_t, degrees=n["degrees"])],
    "gaussian-sufficient-statistics": _sufficient,
    "k-norm-sufficient-statistics": _k_norm_sufficient,
    "logistic-objective-perturbation": _objective(1),
    "huber-objective-perturbation": _objective(1),
    "softmax-objective-perturbation": _objective(2),
    # -- choices
    "exponential-mechanism": lambda n: [noise(gumbel_argmax, scale=n["scale"])],
    "permute-and-flip": lambda n: [noise(exponential_argmax, scale=n["scale"])],
    "joint-top-k": lambda n: [sometimes(categorical)],
    "joint-quantiles": lambda n: [noise(joint_points, rate=n["rate"])],
    # -- tests, whose coin has an exponent that is private
    "propose-test-release": lambda n: [noise(bernoulli_exp), sometimes(rounded_laplace)],
    "pure-propose-test-release": lambda n: [
        noise(bernoulli_exp),
        noise(rounded_laplace, scale=n["sensitivity"] / n["release_epsilon"]),
    ],
    **dict.fromkeys(
        ("noisy-local-sensitivity", "pure-local-sensitivity"),
        lambda n: [
            noise(rounded_laplace, scale=n["local_change"] / n["bound_epsilon"]),
            sometimes(rounded_laplace),  # for the noisy bound, which is private
            sometimes(bernoulli, probability=n.get("weight")),
        ],
    ),
    "stable-mode": lambda n: [noise(bernoulli_exp)],
    # -- channels
    **dict.fromkeys(("uniform-mixing", "prior-mixing", "profile-mixing"), _coin()),
    **dict.fromkeys(("grid-mixing", "unequal-grid-mixing", "local-uniform-kernel"), _coin()),
    "gaussian-net": _coin(lambda n: noise(rounded_gaussian, variance=n["variance"])),
    "laplace-net": _coin(lambda n: noise(rounded_laplace, scale=n["scale"])),
    "gaussian-smoothing": _coin(lambda n: noise(rounded_gaussian, variance=n["mixing_variance"])),
    **dict.fromkeys(
        ("k-norm-kernel", "laplace-cube-kernel"),
        _coin(
            lambda n: noise(rounded_k_norm, scale=n["scale"]),
            lambda n: noise(rounded_uniform_plus_k_norm, scale=n["scale"]),
        ),
    ),
    "numerical-error": lambda n: [noise(rounded_k_norm)],
    "wasserstein-transport": _around,
    # -- what draws nothing
    **{
        label: lambda n: []
        for label in ("given", "public", "parallel-blocks", "units", "clipped-units", "unit-votes")
    },
}
"""By the label of a theorem. What is drawn in parts has its law in a test of its own (`HELD`)."""

SAMPLER_OF: dict[str, Any] = {
    "laplace": rounded_laplace,
    "geometric": discrete_laplace,
    "counts": rounded_count_noise,
    "k-norm": rounded_k_norm,
    "matrix": rounded_matrix_laplace,
}
"""By the family of a law that is kept with a release, on which its intervals rest."""


def stated(step: Step) -> list[Stated]:
    """Return the draws that the theorem of a step asks for."""
    numbers = {name: _exact(value) for name, value in step.numbers.items()}
    return LAWS[step.theorem](numbers)


def _exact(value: Any) -> Any:
    try:
        return F(value)
    except (TypeError, ValueError):
        return value


def unexplained(steps: Iterable[Step], draws: list[Draw]) -> list[str]:
    """Return a line for each draw that no theorem states, and for each that none has made."""
    wanted = [each for step in steps for each in stated(step)]
    found = [
        f"{draw} was drawn, and no theorem of the certificate is about that law"
        for draw in draws
        if draw.sampler not in UNIFORM and not any(each.is_met_by(draw) for each in wanted)
    ]
    return found + [
        f"{each.sampler.__name__}{_shown(each.numbers)} is what the certificate is about, "
        "and it was not drawn"
        for each in wanted
        if each.needed and not any(each.is_met_by(draw) for draw in draws)
    ]


def _shown(numbers: dict[str, Any]) -> str:
    return f"({', '.join(f'{name}={value}' for name, value in numbers.items())})"
