"""Algorithm 2: publish one of a million items, chosen with a δ, under pure DP.

Algorithm 2 encodes the choice in 20 bits and flips each bit with a small probability. `mix_choice`
(Appendix C) needs no bits, and no half of ε for them: with a small probability it publishes a
uniform item instead.
"""

from __future__ import annotations

import zerodelta as zd

ITEMS = zd.Finite(1 << 20)
CHOSEN = 271_828  # the output of your (ε, δ)-DP mechanism; its claim is asserted, not checked


def main() -> None:
    log_delta = zd.paper.theorem_3_log_delta(code_length=20, base_epsilon="1/2")
    release = zd.paper.purify_choice(CHOSEN, space=ITEMS, epsilon=1, log_delta=log_delta)
    print(f"Algorithm 2 at ε = 1 from (1/2, δ), ln δ = {log_delta:.0f}: item {release.value}")
    print(f"  another item with probability {release.error:.1e}")
    mixed = zd.paper.mix_choice(CHOSEN, space=ITEMS, epsilon=1, delta="1e-13", mixing_weight="1e-6")
    print(f"mixing at ε = 1 from (1, 1e-13): item {mixed.value}")
    print(f"  another item with probability {mixed.error:.1e}")
    print(mixed.certificate.summary)


if __name__ == "__main__":
    main()
