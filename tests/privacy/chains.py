"""One certificate for every theorem, each at the smallest ε that its steps prove."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import zerodelta as zd
from zerodelta.channels.channel import NumericalError, Purifier, smallest_epsilon
from zerodelta.channels.kernels import Body, KernelMix, SmoothMix
from zerodelta.channels.mixes import (
    FiniteMix,
    GaussianMix,
    GridMix,
    LaplaceMix,
    LocalUniformMix,
    PriorMix,
    ProfileMix,
    UnequalGridMix,
)
from zerodelta.paper.algorithm_01_02 import AlgorithmOne, AlgorithmTwo
from zerodelta.privacy.parameters import Neighbors
from zerodelta.privacy.steps import Status, Step
from zerodelta.privacy.theorems.smoothing import GaussianStep
from zerodelta.privacy.verify import base_claim, proves_epsilon

Data = dict[str, Any]
CENT = Fraction(1, 100)


@dataclass(frozen=True)
class Chain:
    """The steps before the channel, the channel, and the smallest ε they prove together."""

    base: tuple[Step, ...]
    channel: Step
    smallest: float

    def certificate(self, epsilon: Fraction | float | None = None) -> zd.records.Certificate:
        claimed = self.smallest if epsilon is None else epsilon
        return zd.records.Certificate(
            claim=zd.purification.PureDP(claimed), steps=(*self.base, self.channel)
        )


def given(claim: Any) -> Step:
    return Step(
        theorem="given",
        numbers=claim.numbers(),
        status=Status.ASSERTED,
        neighbors=claim.neighbors,
    )


def purified(purifier: Purifier, claim: Any) -> Chain:
    return Chain((given(claim),), purifier.step(), purifier.epsilon(claim))


def proven(*base: Step) -> Chain:
    channel = FiniteMix(space=zd.Finite(1000), mixing_weight=CENT).step()
    claim = base_claim(base)
    return Chain(
        base, channel, smallest_epsilon(lambda epsilon: proves_epsilon(channel, claim, epsilon))
    )


APPROXIMATE = zd.ApproxDP("1/2", -40.0)
GAUSSIAN = zd.GaussianDP(mu_squared="1/100")
LAST = GaussianStep(
    dimension=3, variance=Fraction(10**6), radius=Fraction(1000), sensitivity=Fraction(20)
)
GRID = zd.Box(0, 1, dimension=3).grid(101)


def best_smoothing() -> Chain:
    """Return S2 at the order and variance that are best for the smallest ε itself."""
    claim, epsilon = zd.purification.ZCDP("1/200"), 1.0
    for _ in range(8):
        channel = SmoothMix.best(
            zd.Ball(3, 1), LAST, rho=claim.rho, epsilon=epsilon, weight=CENT, spacing="1/1000"
        )
        epsilon = channel.epsilon(claim)
    return purified(channel, claim)


CHANNELS: dict[str, Chain] = {
    "Finite": purified(FiniteMix(space=zd.Finite(16), mixing_weight=CENT), GAUSSIAN),
    "Subsets": purified(
        FiniteMix(space=zd.purification.Subsets(of=50, size=7), mixing_weight=CENT),
        zd.purification.ZCDP("1/300"),
    ),
    "Multiset": purified(
        FiniteMix(space=zd.purification.Multiset(30, 6), mixing_weight=CENT),
        zd.purification.RDP({order: Fraction(order, 400) for order in (8, 64, 100, 512)}),
    ),
    "prior": purified(
        PriorMix(space=zd.Finite(3), mixing_weight=CENT, prior=(1, 5, 9)), zd.ApproxDP("1/2", -6.0)
    ),
    "Box": purified(GridMix(lattice=GRID, mixing_weight=CENT), GAUSSIAN),
    "Box with unequal sides": purified(
        UnequalGridMix(lattice=zd.Box(0, [1, 9, 9]).unequal_grid([11, 99, 99]), mixing_weight=CENT),
        GAUSSIAN,
    ),
    "window": purified(LocalUniformMix(lattice=GRID, mixing_weight=CENT, kernel_cells=7), GAUSSIAN),
    "Ball linf": purified(
        GridMix(lattice=zd.Ball(2, 1, norm=math.inf).grid(64), mixing_weight=CENT),
        zd.ApproxDP("1/2", -10.0),
    ),
    "Ball l2": purified(
        GaussianMix(lattice=zd.Ball(3, 1).lattice("1/50"), mixing_weight=CENT), GAUSSIAN
    ),
    "Ball l1": purified(
        LaplaceMix(lattice=zd.Ball(3, 1, norm=1).lattice("1/50"), mixing_weight=CENT), GAUSSIAN
    ),
    "k-norm-kernel": purified(
        KernelMix(
            body=Body(lattice=zd.Ball(3, 1).lattice("1/99")),
            noise_norm=2,
            scale=Fraction(5),
            mixing_weight=CENT,
        ),
        GAUSSIAN,
    ),
    "laplace-cube-kernel": purified(
        KernelMix(body=Body(lattice=GRID), noise_norm=1, scale=Fraction(5), mixing_weight=CENT),
        GAUSSIAN,
    ),
    "gaussian-smoothing": best_smoothing(),
    "numerical-error": purified(
        NumericalError(
            space=zd.Ball(3, 1),
            error=Fraction(1, 10**9),
            scale=Fraction(1, 10**6),
            spacing=Fraction(1, 10**7),
        ),
        zd.purification.PureDP("1/2"),
    ),
    "Algorithm 1": purified(
        AlgorithmOne(
            body=Body(lattice=GRID),
            scale=Fraction(20),
            mixing_weight=CENT,
            base_epsilon=Fraction(1, 2),
        ),
        APPROXIMATE,
    ),
    "Algorithm 1 in l2": purified(
        AlgorithmOne(
            body=Body(lattice=zd.Ball(3, 1).lattice("1/99")),
            scale=Fraction(20),
            mixing_weight=CENT,
            base_epsilon=Fraction(1, 2),
        ),
        APPROXIMATE,
    ),
    "Algorithm 2": purified(
        AlgorithmTwo(space=zd.Finite(16), scale=Fraction(1, 5), base_epsilon=Fraction(1, 2)),
        APPROXIMATE,
    ),
    "parallel-blocks": Chain(
        (
            Step(
                theorem="permute-and-flip",
                numbers={"sensitivity": 1, "scale": 64, "monotone": False},
                neighbors=Neighbors.ADD_REMOVE,
            ),
        ),
        Step(theorem="parallel-blocks", numbers={"blocks": 12, "unit_rows": 3}),
        2 * 3 * 2 / 64,
    ),
    "profile": Chain(
        (),
        ProfileMix(space=zd.Finite(2), at_epsilon=Fraction(1), profile=(CENT / 3, CENT)).step(),
        1.0,
    ),
}

MECHANISMS: dict[str, Chain] = {
    "rounded-gaussian": proven(
        Step(
            theorem="rounded-gaussian",
            numbers={"sensitivity_squared": 2, "variance": 500, "count": 3},
        )
    ),
    "rounded-laplace": proven(
        *[Step(theorem="rounded-laplace", numbers={"sensitivity": 2, "scale": 900, "count": 300})]
        * 2
    ),
    "k-norm-noise": proven(
        Step(
            theorem="k-norm-noise",
            numbers={"norm": 2, "quantum": "1/1024", "sensitivity": 3, "scale": "7/2"},
        )
    ),
    "exponential-mechanism": proven(
        Step(
            theorem="exponential-mechanism",
            numbers={"sensitivity": 1, "scale": 500, "monotone": True, "count": 1000},
        )
    ),
    "permute-and-flip": proven(
        Step(theorem="permute-and-flip", numbers={"sensitivity": 1, "scale": 50, "monotone": False})
    ),
    "sampling-without-replacement": proven(
        Step(
            theorem="sampling-without-replacement",
            numbers={
                "rows": 1000,
                "batch": 10,
                "sensitivity_squared": 4,
                "variance": 100,
                "steps": 50,
            },
        )
    ),
    "all": proven(
        Step(theorem="rounded-gaussian", numbers={"sensitivity_squared": 1, "variance": 400}),
        Step(
            theorem="exponential-mechanism",
            numbers={"sensitivity": 1, "scale": 40, "monotone": True},
        ),
        Step(theorem="rounded-laplace", numbers={"sensitivity": 1, "scale": 50}),
        given(zd.ApproxDP("1/100", -13.6)),
    ),
}

CHAINS = {**CHANNELS, **MECHANISMS}


def data_of(certificate: zd.records.Certificate) -> Data:
    data: Data = json.loads(certificate.to_json())
    return data


def resealed(data: Data) -> str:
    """Return the JSON with the digest that a forger would compute."""
    body = {name: value for name, value in data.items() if name != "digest"}
    canonical = json.dumps(body, sort_keys=True, separators=(",", ":"))
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    return json.dumps({**body, "digest": digest})


def forged(certificate: zd.records.Certificate, change: Callable[[Data], object]) -> str:
    data = data_of(certificate)
    change(data)
    return resealed(data)
