"""Numbers that never round the wrong way, and noise that is drawn exactly.

Where to look: `rational` (ε as an exact rational), `arb` (balls to floats, outwards), `logs`,
`volumes` (directed logarithms), `bits` (randomness), `float_balls` and `lazy` (the one technique
behind all continuous noise), `noise`, `k_norm`, `argmax` (continuous samplers), `integers`
(integer samplers), `fixed_point` (rows to integers).
"""
