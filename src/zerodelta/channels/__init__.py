"""Remove δ by channels: their laws, and the plans that choose among them.

`channel` defines a purifier (T0, N), `mixes` has the channels that mix with a uniform point of
finite spaces, boxes and balls (B1, B2, R(v)), `kernels` those that add noise and mix (B4, S2).
Each is one class with its condition, its law and its forecast. `search` compares them, and
`purification` has `zd.plan`, `zd.purify` and the plan that they share.
"""
