"""Channels that remove delta, and the plans that choose among them.

Where to look: `channel` (what a purifier is, T0), `mix` (finite spaces, B1), `lattice_mix` (boxes
and balls, B2), `smooth` (the last Gaussian step, S2), `kernel` (smoothing plus mixing, B4),
`numerical` (numerical error, N), `wasserstein` (the paper's Algorithms 1 and 2). Which of them is
best: `families`, `search`, `smooth_search` (one candidate each), `candidates` (all of
them), `planner`.
"""
