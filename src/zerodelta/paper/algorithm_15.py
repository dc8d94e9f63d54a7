"""Algorithm 15 (`alg: prop_sampling`): m items drawn in proportion to their weights, exactly.

Its error is √(ln(2K)/(2m)) for K queries at most: `sampling_error` of `tables.sample`.
"""

from __future__ import annotations

from zerodelta.exact.alias_table import proportional_sampling

__all__ = ["proportional_sampling"]
