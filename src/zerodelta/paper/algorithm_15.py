"""Algorithm 15 (`alg: prop_sampling`): m items drawn in proportion to their weights, exactly.

Its error is √(ln(2K)/(2m)) for K queries at most: `algorithm_16.sampling_error`.
"""

from __future__ import annotations
