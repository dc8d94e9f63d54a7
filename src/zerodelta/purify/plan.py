"""Plans: which channel, mixing weight and resolution publish on a space with the least error.

A plan is made of public numbers before any data is touched, says what the base mechanism must
satisfy, and issues the certificate; the data only ever meets `Plan.purify`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

from zerodelta.errors import GuaranteeError, ParameterError
from zerodelta.exact.arb import lower
from zerodelta.exact.bits import BitSource, SystemBits, is_private
from zerodelta.exact.rational import Rational, as_positive, as_rational
from zerodelta.privacy.calibration import Calibration, calibrate
from zerodelta.privacy.certificate import OS_ENTROPY, REPLAYED, Certificate
from zerodelta.privacy.claims import Claim, PureDP
from zerodelta.privacy.release import Release
from zerodelta.privacy.step import Status, Step
from zerodelta.privacy.theorems.mixing import as_weight
from zerodelta.privacy.verify import verify
from zerodelta.purify.channel import Mixing
from zerodelta.purify.families import Family, families_for
from zerodelta.purify.search import Candidate, best_candidate, predicted_noise
from zerodelta.spaces import Space

__all__ = ["Plan", "plan", "purify"]

DEFAULT_FAILURE = Fraction(1, 100)


@final
@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class Plan:
    """What will be published, how, and what the base mechanism must satisfy.

    `log_delta`: the base's ln δ(ε) may be at most this. `rho`: ρ-zCDP is enough. `variance` and
    `sigma`: Gaussian noise of that size is enough for the given l2 sensitivity.
    """

    space: Space
    epsilon: Fraction
    purifier: Mixing
    log_delta: float
    base: Claim | None
    calibration: Calibration
    sensitivity: Fraction | None
    candidates: tuple[Candidate, ...]

    @property
    def mixing_weight(self) -> Fraction:
        """The probability of publishing a random element instead."""
        return self.purifier.mixing_weight

    @property
    def rho(self) -> Fraction:
        """The largest zCDP parameter of a base that this plan makes pure."""
        return self.calibration.rho

    @property
    def variance(self) -> Fraction | None:
        """The smallest Gaussian variance for the given sensitivity."""
        return self.calibration.variance

    @property
    def sigma(self) -> float | None:
        """The smallest Gaussian noise scale for the given sensitivity, rounded up."""
        variance = self.calibration.variance
        return None if variance is None else math.nextafter(math.sqrt(variance), math.inf)

    @property
    def predicted_error(self) -> float:
        """The expected error: of the channel, and of the Gaussian noise if it is planned too."""
        return self.candidates[0].error

    def certificate(
        self, claim: Claim, *, steps: tuple[Step, ...] = (), bits: BitSource | None = None
    ) -> Certificate:
        """Return the verified certificate of a release; `steps` are proven base steps, if any.

        Without them the claim is the caller's word, and the certificate says `asserted`.
        """
        given = Step(
            theorem="given",
            numbers=claim.numbers(),
            status=Status.ASSERTED,
            neighbors=claim.neighbors,
        )
        channel = self.purifier.step()
        last = Step(theorem=channel.theorem, numbers=channel.numbers, neighbors=claim.neighbors)
        certificate = Certificate(
            claim=PureDP(self.epsilon, neighbors=claim.neighbors),
            steps=(*(steps or (given,)), last),
            public=(f"the space {self.space!r}", "every number in the steps"),
        )
        verify(certificate)
        if bits is None or is_private(bits):
            return certificate
        return Certificate(
            claim=certificate.claim,
            steps=certificate.steps,
            public=certificate.public,
            randomness=REPLAYED,
        )

    def purify(
        self, value: Any, *, claim: Claim | None = None, bits: BitSource | None = None
    ) -> Release:
        """Publish a value computed by a base mechanism with `claim` (default: the planned base).

        Any object whatever is mapped into the space; nothing is raised because of the value.
        """
        base = claim if claim is not None else self.base
        if base is None:
            raise ParameterError(
                "claim",
                None,
                expected="what the base mechanism satisfies",
                remedy="pass claim=zd.GaussianDP(...), zd.ZCDP(...), zd.ApproxDP(...), …",
            )
        if not self.purifier.proves(self.epsilon, base):
            raise GuaranteeError(_shortfall(self, base))
        source = SystemBits() if bits is None else bits
        certificate = self.certificate(base, bits=source)
        return Release(
            value=self.purifier.apply(value, source),
            certificate=certificate,
            error=self.purifier.expected_error(),
        )

    def __repr__(self) -> str:
        rows = [
            f"Plan for {self.space!r}: pure ε = {self.epsilon}, δ = 0",
            f"  base must satisfy  ln δ(ε) <= {self.log_delta:.6g},  or ρ <= {float(self.rho):.6g}",
        ]
        if self.sigma is not None:
            rows.append(f"  or Gaussian noise  σ >= {self.sigma:.6g} for l2 sensitivity "
                        f"{float(self.sensitivity or 0):g}")
        rows.append("  channel                                    weight     nats      error")
        for candidate in self.candidates:
            mark = "->" if candidate is self.candidates[0] else "  "
            rows.append(
                f"  {mark} {candidate.name:<38} {float(candidate.weight):9.2e} "
                f"{candidate.budget:9.5g} {candidate.error:10.4g}"
            )
        return "\n".join(rows)
