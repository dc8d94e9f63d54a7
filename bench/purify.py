"""Measure purification: error at equal ε, speed and memory, and ln δ against peers.

The error table is for one release of a vector from the unit l2 ball (replace-one, sensitivity 2/n)
at total ε = 1 and mixing weight 1 %. dp-accounting runs in its own environment
(`.bench-dp-accounting`), made here on the first run and skipped with a message if it cannot be.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import mpmath
from rich.console import Console
from rich.table import Table
from scipy.optimize import brentq, minimize_scalar
from scipy.stats import norm

import zerodelta as zd
from zerodelta.channels.channel import Mixing
from zerodelta.channels.mixes import GaussianMix, GridMix
from zerodelta.exact.logs import gaussian_log_delta_lower, gaussian_log_delta_upper
from zerodelta.paper.algorithm_01_02 import laplace_scale
from zerodelta.privacy.theorems.mixing import largest_log_delta
from zerodelta.privacy.theorems.smoothing import (
    GaussianStep,
    best_mixing_variance,
    best_order,
    smoothing_slack,
)

EPSILON = Fraction(1)
WEIGHT = Fraction(1, 100)
SETTINGS = ((1, 10**3), (2, 10**3), (10, 10**3), (10, 10**5), (50, 10**3), (200, 10**3))
THEORY = {
    (1, 10**3): (3.58, 3.77, 3.77, 10.4),
    (10, 10**3): (2.65, 2.96, 3.14, 8.8),
    (10, 10**5): (3.88, 4.21, 4.35, 10.7),
    (50, 10**3): (2.18, 2.47, 2.89, 8.6),
    (200, 10**3): (1.81, 2.02, 2.66, 8.6),
}
"""The table at the end of section S of the theory this library was built on."""
TOLERANCE = 0.05
PEER = Path(__file__).resolve().parent.parent / ".bench-dp-accounting"


def reference(dimension: int, rows: int) -> float:
    """Mean l2 error of the pure l2 K-norm mechanism: d · (2/n)/ε."""
    return dimension * 2 / (rows * float(EPSILON))


def smooth_error(dimension: int, rows: int) -> float:
    """Theorem S (S2): the smallest σ its condition certifies; its lattice is free, so no grid."""
    moved = Fraction(2, rows)

    def slack(log_sigma: float) -> float:
        variance = Fraction(math.exp(2 * log_sigma))
        step = GaussianStep(
            dimension=dimension, variance=variance, radius=Fraction(1), sensitivity=moved
        )
        rho = moved**2 / (2 * variance)
        order = best_order(step, rho=rho, epsilon=EPSILON)
        return smoothing_slack(
            step,
            rho=rho,
            order=order,
            mixing_variance=best_mixing_variance(step, order),
            weight=WEIGHT,
            epsilon=EPSILON,
        )

    start = math.log(moved)
    sigma = math.exp(brentq(slack, start - 1, start + 8, xtol=1e-9))
    return math.sqrt(dimension) * sigma


def ball_net(dimension: int, spacing: float) -> Mixing:
    lattice = zd.Ball(dimension, 1).lattice(Fraction(spacing))
    return GaussianMix(lattice=lattice, mixing_weight=WEIGHT)


def cube_net(dimension: int, spacing: float) -> Mixing:
    grid = zd.Ball(dimension, 1).bounding_box().grid(math.ceil(2 / spacing))
    return GridMix(lattice=grid, mixing_weight=WEIGHT)


def exact_profile(log_delta: float, moved: Fraction) -> float:
    """Smallest Gaussian variance by the exact profile, what the library does."""
    variance = zd.purification.calibrate(
        epsilon=EPSILON, log_delta=log_delta, sensitivity=moved
    ).variance
    return math.inf if variance is None else float(variance)


def by_zcdp(log_delta: float, moved: Fraction) -> float:
    """Smallest Gaussian variance by zCDP, which is what fits the theory's table."""
    return float(
        moved**2 / (2 * zd.purification.calibrate(epsilon=EPSILON, log_delta=log_delta).rho)
    )


def net_error(
    dimension: int,
    rows: int,
    required: Callable[[float], float],
    variance: Callable[[float, Fraction], float] = exact_profile,
) -> float:
    """Smallest √(d(σ² + s²/12)) over the spacing s; s* is near σ√(6d/ℓ)."""

    def error(log_spacing: float) -> float:
        spacing = math.exp(log_spacing)
        log_delta = required(spacing)
        if log_delta > -0.1:
            return 1e9
        noise = variance(log_delta, Fraction(2, rows))
        return math.sqrt(dimension * (noise + spacing**2 / 12))

    start = math.log(2 / rows)
    options = {"xatol": 1e-4}
    bounds = (start - 3, min(start + 4, math.log(1.9)))
    return float(minimize_scalar(error, bounds=bounds, method="bounded", options=options).fun)


def ball_error(dimension: int, rows: int) -> float:
    return net_error(dimension, rows, lambda s: _mixing_log_delta(ball_net(dimension, s)))


def cube_error(dimension: int, rows: int) -> float:
    return net_error(dimension, rows, lambda s: _mixing_log_delta(cube_net(dimension, s)))


def _mixing_log_delta(channel: Mixing) -> float:
    return channel.log_delta_required(EPSILON)


def ball_error_by_counting(dimension: int, rows: int) -> float:
    """The ball net as it fits the theory's table: uniform on its exact count, noise by zCDP."""

    def required(spacing: float) -> float:
        count = log_points(zd.Ball(dimension, 1).lattice(Fraction(spacing)).bound, dimension)
        return largest_log_delta(epsilon=EPSILON, weight=WEIGHT, log_mass=count)

    return net_error(dimension, rows, required, by_zcdp)


def log_points(bound: int, dimension: int) -> float:
    """Bound ln #{k : ‖k‖² <= bound}: by min_s d ln Σ_k e^(-sk²) + s·bound, and by a volume."""

    def tilted(log_s: float) -> float:
        s = math.exp(log_s)
        if s < 1:  # the same sum, by Poisson's formula
            theta = math.sqrt(math.pi / s) * (1 + 2 * math.exp(-(math.pi**2) / s))
        else:
            theta = 1 + 2 * sum(math.exp(-s * k * k) for k in range(1, 8))
        return dimension * math.log(theta) + s * bound

    ball = dimension / 2 * math.log(math.pi) - math.lgamma(1 + dimension / 2)
    around = ball + dimension * math.log(math.sqrt(bound) + math.sqrt(dimension) / 2)
    return min(around, float(minimize_scalar(tilted, bounds=(-60, 4), method="bounded").fun))


def cube_error_by_zcdp(dimension: int, rows: int) -> float:
    """The cube net as it fits the theory's table: noise by zCDP."""
    mass = largest_log_delta(epsilon=EPSILON, weight=WEIGHT, log_mass=0.0)
    return net_error(dimension, rows, lambda s: mass - dimension * math.log(2 / s), by_zcdp)


def tuned_error(dimension: int, rows: int) -> float:
    """Algorithm 1 at its best: Theorem W's radius, exact profile, best δ and split of ε."""
    moved = 2 / rows

    def error(log_mu: float, base: float) -> float:
        mu = math.exp(log_mu)
        scale = laplace_scale(
            norm=2,
            dimension=dimension,
            diameter=2,
            weight=WEIGHT,
            claim=zd.GaussianDP(mu),
            epsilon=base,
            extra_epsilon=EPSILON - Fraction(base),
        )
        return math.sqrt(dimension * ((moved / mu) ** 2 + 2 * float(scale) ** 2))

    def best(base: float) -> float:
        bounds = (math.log(base) - 6, math.log(base))
        found = minimize_scalar(
            error, args=(base,), bounds=bounds, method="bounded", options={"xatol": 1e-4}
        )
        return float(found.fun)

    options = {"xatol": 1e-3}
    return float(minimize_scalar(best, bounds=(0.3, 0.999), method="bounded", options=options).fun)


def printed_error(dimension: int, rows: int, log_delta: float | None = None) -> float:
    """Algorithm 1 as printed: ε = ε' = 1/2, Line 2's Δ with R the diameter, ρ + 2√(ρℓ) = ε.

    δ is the best one unless given: the algorithm takes it as an input.
    """
    half, moved, weight = float(EPSILON) / 2, 2 / rows, float(WEIGHT)

    def error(log_ell: float) -> float:
        ell = math.exp(log_ell)
        sigma = moved / (math.sqrt(2) * (math.sqrt(ell + half) - math.sqrt(ell)))
        shrink = math.exp(-(ell + math.log(2 * weight)) / dimension)
        scale = 2 * (2 * math.sqrt(dimension) * 2 * shrink) / half
        return math.sqrt(dimension * (sigma**2 + 2 * scale**2))

    if log_delta is not None:
        return error(math.log(-log_delta))
    log_term = math.log(dimension * math.log(64 * dimension * rows**2) + 20)
    return float(minimize_scalar(error, bounds=(0.5, log_term), method="bounded").fun)


def corollary_log_delta(dimension: int, rows: int) -> float:
    """The paper's Corollary 1: δ = 2w/(16 C d n²)^d, C the diameter."""
    return math.log(2 * float(WEIGHT)) - dimension * math.log(32 * dimension * rows**2)


METHODS: dict[str, Callable[[int, int], float]] = {
    "Theorem S (S2)": smooth_error,
    "ball net": ball_error,
    "cube net": cube_error,
    "Alg. 1 tuned": tuned_error,
    "Alg. 1 printed": printed_error,
}


def error_table(console: Console) -> None:
    table = Table(
        title="Error of one release at total ε = 1, as a multiple of the pure l2 K-norm's",
        caption="rms l2 error of the un-mixed branch, rounding included, over d·2/(nε); w = 1 %. "
        "The nets use the library's certified channels and the exact Gaussian profile.",
    )
    for column in ("d", "n", *METHODS, "pure K-norm (mean l2)"):
        table.add_column(column, justify="right")
    for dimension, rows in SETTINGS:
        unit = reference(dimension, rows)
        ratios = [f"{method(dimension, rows) / unit:.2f}" for method in METHODS.values()]
        table.add_row(str(dimension), f"{rows:.0e}", *ratios, f"1 = {unit:.2g}")
    console.print(table)


def theory_table(console: Console) -> None:
    conventions = {
        "S2": smooth_error,
        "ball net": ball_error_by_counting,
        "cube net": cube_error_by_zcdp,
        "paper": printed_error,
    }
    table = Table(
        title="The same ratios in the conventions of theory S's table: ours / stated / difference",
        caption="The theory does not state its conventions; these were inferred, as the ones that "
        "fit it. Nets: uniform on the exact count, noise by the zCDP conversion (not the exact "
        "profile). Paper: Algorithm 1 as printed, R the diameter, ε = ε', ρ + 2√(ρℓ) = ε, best δ; "
        "the last column has Corollary 1's δ.",
    )
    for column in ("d", "n", *conventions, "Corollary 1"):
        table.add_column(column, justify="right")
    worst = 0.0
    for (dimension, rows), stated in THEORY.items():
        unit = reference(dimension, rows)
        cells = []
        for method, value in zip(conventions.values(), stated, strict=True):
            ratio = method(dimension, rows) / unit
            difference = ratio / value - 1
            worst = max(worst, abs(difference))
            cells.append(f"{ratio:.2f} / {value:g} / {difference:+.1%}")
        corollary = printed_error(dimension, rows, corollary_log_delta(dimension, rows)) / unit
        table.add_row(str(dimension), f"{rows:.0e}", *cells, f"{corollary:.1f}")
    console.print(table)
    verdict = "reproduced" if worst <= TOLERANCE else "NOT reproduced"
    console.print(f"Largest difference {worst:.1%}: {verdict} within {TOLERANCE:.0%}.\n")


MEASURE = """
import json, resource, time
import numpy as np
import zerodelta as zd
space = {space}
plan = zd.plan(space, epsilon=1)
claim = zd.purification.ZCDP(plan.rho / 2)
value = np.full(space.dimension, {value})
zd.purify(0, space=zd.Finite(2), claim=zd.purification.ZCDP("1/100"), epsilon=1)  # imports
best = float("inf")
for _ in range(3):
    start = time.perf_counter()
    release = zd.purify(value, space=space, claim=claim, epsilon=1)
    best = min(best, time.perf_counter() - start)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
assert zd.verify(release.certificate)
print(json.dumps([best, peak, claim.log_delta(1)]))
"""


def speed_table(console: Console) -> None:
    table = Table(title="Speed and memory, one core, best of three")
    for column in ("what", "seconds", "limit", "peak MB", "limit", "base ln δ(1)"):
        table.add_column(column, justify="right")
    table.columns[0].justify = "left"
    plans: dict[str, Callable[[], object]] = {
        "plan, l2 ball, d = 1000": lambda: zd.plan(zd.Ball(1000, 1), epsilon=1),
        "plan with sensitivity, l2 ball, d = 1000": lambda: zd.plan(
            zd.Ball(1000, 1), epsilon=1, sensitivity="1/50000"
        ),
        "plan with base, box, d = 1000": lambda: zd.plan(
            zd.Box(0, 1, dimension=1000), epsilon=1, base=zd.GaussianDP("0.01")
        ),
    }
    for name, make in plans.items():
        table.add_row(name, f"{best_of_three(make):.3f}", "0.1", "", "", "")
    spaces = {
        "purify, box, d = 1e6": ("zd.Box(0, 1, dimension=10**6)", 0.3),
        "purify, l2 ball, d = 1e5": ("zd.Ball(10**5, 1)", 1e-3),
    }
    for name, (space, value) in spaces.items():
        code = MEASURE.format(space=space, value=value)
        # through a shell that forks: a direct child's ru_maxrss counts what its parent held
        done = subprocess.run(
            ["/bin/sh", "-c", '"$0" -c "$1"; exit $?', sys.executable, code],
            check=True,
            capture_output=True,
            text=True,
        )
        seconds, peak, log_delta = json.loads(done.stdout)
        table.add_row(name, f"{seconds:.3f}", "2", f"{peak:.0f}", "500", f"{log_delta:.6g}")
    console.print(table)


def best_of_three(make: Callable[[], object]) -> float:
    best = math.inf
    for _ in range(3):
        start = time.perf_counter()
        make()
        best = min(best, time.perf_counter() - start)
    return best


PEER_CODE = """
import json, math
import dp_accounting
from dp_accounting import rdp

def log(delta):
    return math.log(delta) if delta > 0 else -math.inf

WIDE = [1 + math.exp(k / 20) for k in range(-60, 320)]
answers = []
for sigma in {sigmas}:
    event = dp_accounting.GaussianDpEvent(sigma)
    row = {{}}
    for name, make in (
        ("RDP", rdp.RdpAccountant),
        ("RDP, orders to 7e6", lambda: rdp.RdpAccountant(WIDE)),
    ):
        accountant = make()
        accountant.compose(event)
        row[name] = log(accountant.get_delta({epsilon}))
    try:
        from dp_accounting import pld
        accountant = pld.PLDAccountant()
        accountant.compose(event)
        row["PLD"] = log(accountant.get_delta({epsilon}))
    except Exception as error:
        row["PLD"] = type(error).__name__
    answers.append(row)
for row, sigma, target in zip(answers, {sigmas}, {targets}):
    accountant = rdp.RdpAccountant(WIDE)
    accountant.compose(dp_accounting.GaussianDpEvent(sigma))
    row["epsilon"] = accountant.get_epsilon(math.exp(target))
print(json.dumps(answers))
"""


def peer_answers(sigmas: list[float], targets: list[float]) -> list[dict[str, float | str]]:
    """What dp-accounting says of the same Gaussian mechanisms, or nothing."""
    python = PEER / "bin" / "python"
    code = PEER_CODE.format(sigmas=sigmas, targets=targets, epsilon=float(EPSILON))
    try:
        if not python.exists():
            subprocess.run([sys.executable, "-m", "venv", PEER], check=True)
            subprocess.run(
                [python, "-m", "pip", "install", "--quiet", "dp-accounting"],
                check=True,
                timeout=600,
            )
        done = subprocess.run(
            [python, "-c", code], check=True, capture_output=True, text=True, timeout=600
        )
    except (OSError, subprocess.SubprocessError) as error:
        Console().print(f"dp-accounting skipped: it could not be installed or run ({error}).")
        return []
    answers: list[dict[str, float | str]] = json.loads(done.stdout)
    return answers


def float_log_delta(mu: float) -> float:
    """Return ln(Φ(-a) - e^t Φ(-b)) in floats, a = t/μ - μ/2, b = a + μ."""
    t = float(EPSILON)
    a = t / mu - mu / 2
    delta = float(norm.cdf(-a) - math.exp(t) * norm.cdf(-a - mu))
    return math.log(delta) if delta > 0 else -math.inf


def mpmath_log_delta(mu: float) -> float:
    """Return the same formula with fifty digits."""
    t = mpmath.mpf(float(EPSILON))
    with mpmath.workdps(50):
        a = t / mpmath.mpf(mu) - mpmath.mpf(mu) / 2
        delta = mpmath.ncdf(-a) - mpmath.exp(t) * mpmath.ncdf(-a - mpmath.mpf(mu))
        return float(mpmath.log(delta)) if delta > 0 else -math.inf


def peer_table(console: Console) -> None:
    targets = [-10.0, -30.0, -100.0, -1e3, -1e5]
    mus = [
        math.sqrt(zd.purification.calibrate(epsilon=EPSILON, log_delta=target).mu_squared)
        for target in targets
    ]
    answers = peer_answers([1 / mu for mu in mus], targets)
    epsilons = [row.pop("epsilon") for row in answers]
    names = list(answers[0]) if answers else []
    table = Table(
        title="ln δ(1) of a Gaussian mechanism (smaller than the truth = a false claim)",
        caption="-inf is δ = 0.0, which reads as pure DP and is false for every row. "
        "dp-accounting's columns are logarithms of the δ it returns.",
    )
    for column in (
        "σ/Δ",
        "zerodelta, rounded down",
        "zerodelta, rounded up",
        "mpmath, 50 digits",
        "floats",
        *(f"dp-accounting {name}" for name in names),
    ):
        table.add_column(column, justify="right")
    for index, mu in enumerate(mus):
        square = Fraction(mu) ** 2
        row = answers[index] if answers else {}
        table.add_row(
            f"{1 / mu:.5g}",
            f"{gaussian_log_delta_lower(square, EPSILON):.9g}",
            f"{gaussian_log_delta_upper(square, EPSILON):.9g}",
            f"{mpmath_log_delta(mu):.9g}",
            f"{float_log_delta(mu):.6g}",
            *(value if isinstance(value, str) else f"{value:.6g}" for value in row.values()),
        )
    console.print(table)
    table = Table(title="The other way round: ε of the same mechanisms at a given ln δ")
    for column in ("σ/Δ", "ln δ", "zerodelta, exact profile", "zerodelta, as zCDP"):
        table.add_column(column, justify="right")
    table.add_column("dp-accounting RDP, orders to 7e6", justify="right")
    for index, (mu, target) in enumerate(zip(mus, targets, strict=True)):
        square = Fraction(mu) ** 2
        table.add_row(
            f"{1 / mu:.5g}",
            f"{target:g}",
            f"{zd.GaussianDP(mu_squared=square).epsilon(target):.9f}",
            f"{zd.purification.ZCDP(square / 2).epsilon(target):.6f}",
            f"{epsilons[index]:.6f}" if epsilons else "-",
        )
    console.print(table)


def main() -> None:
    console = Console(width=132)
    speed_table(console)
    error_table(console)
    theory_table(console)
    peer_table(console)


if __name__ == "__main__":
    main()
