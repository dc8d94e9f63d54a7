"""OpenDP: ask 200 adaptive zCDP queries internally, and publish one of 16 options at ε = 1.

pip install 'zerodelta[opendp]'
"""

import math

import opendp.prelude as dp

import zerodelta as zd
from zerodelta.interop.opendp import purified

dp.enable_features("contrib", "honest-but-curious")

OPTIONS, QUERIES = 16, 200
rows = [k for k in range(OPTIONS) for _ in range(1000 + 400 * (k == 11))]  # what people prefer
domain, metric = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()

# The largest ρ of all internal queries with which one of 16 can be published at δ = 0.
budget = zd.plan(zd.Finite(OPTIONS), epsilon=1)
rho = float(budget.rho) * (1 - 1e-9) / QUERIES
scale = math.sqrt(1 / (2 * rho)) * (1 + 1e-9)
print(f"ρ of all {QUERIES} queries: {float(budget.rho):.4f}")
print(f"sd of one answer: {scale:.1f}; Laplace noise at the same ε: {math.sqrt(2) * QUERIES:.0f}")


def count_of(option: int):  # type: ignore[no-untyped-def]
    """Return a query for the number of rows that prefer an option, with Gaussian noise."""
    counted = dp.t.make_user_transformation(
        domain,
        metric,
        dp.atom_domain(T=int),
        dp.absolute_distance(T=int),
        lambda dataset: sum(row == option for row in dataset),
        lambda d_in: d_in,
    )
    return counted >> dp.m.then_gaussian(scale=scale)


def analyst(ask):  # type: ignore[no-untyped-def]
    """Count all options, then the better half of them, and so on; the counts stay internal."""
    candidates, sums, queries = list(range(OPTIONS)), dict.fromkeys(range(OPTIONS), 0), 0
    while len(candidates) > 1 and queries + len(candidates) <= QUERIES:
        for option in candidates:
            sums[option] += ask(count_of(option))
        queries += len(candidates)
        if queries % 48 == 0:
            candidates = sorted(candidates, key=lambda option: -sums[option])
            candidates = candidates[: len(candidates) // 2]
    return max(candidates, key=lambda option: sums[option])


hidden = dp.c.make_adaptive_composition(
    domain, metric, dp.zero_concentrated_divergence(), d_in=1, d_mids=[rho] * QUERIES
) >> dp.new_function(analyst, TO=int)
print(f"the analysis: {hidden.output_measure}, ρ = {hidden.map(1):.4f}")

pure = purified(hidden, space=zd.Finite(OPTIONS), epsilon=1, d_in=1)
print(f"published: {pure.output_measure}, ε = {pure.map(1):.4f}")
print(f"{pure.certificate.summary} ({pure.certificate.claim.neighbors.value})")
print("the value is one of 16:", pure(rows) in range(OPTIONS))
