"""dp-accounting: read the δ of a tree of events, and find the noise with which δ can be removed.

pip install 'zerodelta[dp-accounting]'
"""

import dp_accounting as da

import zerodelta as zd
from zerodelta.interop import dp_accounting as bridge


def training(noise_multiplier: float) -> da.DpEvent:
    """Return 1000 steps on Poisson samples of 1 %, and a noisy histogram: any tree of events."""
    step = da.PoissonSampledDpEvent(0.01, da.GaussianDpEvent(noise_multiplier))
    return da.ComposedDpEvent([da.SelfComposedDpEvent(step, 1000), da.LaplaceDpEvent(20.0)])


relation = zd.records.Neighbors.ADD_REMOVE
claim = bridge.claim(training(1.5), neighbors=relation)
for epsilon in (1, 2, 4):
    print(f"ln δ({epsilon}) = {claim.log_delta(epsilon):.2f}")

for space in (zd.Finite(16), zd.Finite(10**6), zd.Ball(100, 1)):
    needed = zd.plan(space, epsilon=1).log_delta
    low, high = 0.1, 1000.0
    while high - low > 1e-3 * high:
        middle = (low + high) / 2
        enough = bridge.claim(training(middle), neighbors=relation).log_delta(1) <= needed
        low, high = (low, middle) if enough else (middle, high)
    print(f"{space!r} at ε = 1: ln δ <= {needed:.1f}, noise multiplier {high:.2f}")

try:
    bridge.claim(training(1.5), neighbors=zd.records.Neighbors.REPLACE)
except zd.errors.ParameterError as refusal:
    print(refusal)
