"""Compute numbers that never round the wrong way, and draw noise exactly.

Where to look: `rational` (ε as an exact rational), `logs` (directed logarithms; Arb balls to
floats, outwards), `bits` (randomness; the one technique behind all continuous noise), `float_balls`
(floats with proven radii), `noise`, `argmax` (continuous samplers), `integers`, `joint_ranks`
(integer samplers), `fixed_point` (rows to integers), `sums`, `noise_tails`.
"""
