"""Channels that remove delta, and the plans that choose among them.

Where to look: `channel` (what a purifier is, T0), `finite` (B1), `grid` (boxes, B2), `ball` (l2 and
l1 balls, R(v)), `kernel` (smoothing plus mixing, B4), `smooth` (the last Gaussian step, S2),
`numerical` (numerical error, N), `wasserstein` (the paper's Algorithms 1 and 2). Each is one class
with its condition, its law and its forecast; `search` weighs them, `planner` is `zd.plan`,
`purification_plan` what it returns.
"""
