"""Opacus: publish a small choice from a training run with δ = 0; a parameter vector is refused.

pip install 'zerodelta[opacus]'
"""

import logging
import warnings

import opacus
import torch

import zerodelta as zd
from zerodelta.interop import opacus as bridge

warnings.simplefilter("ignore")
logging.disable(logging.WARNING)
torch.manual_seed(0)
features = torch.randn(2000, 5)
data = torch.utils.data.TensorDataset(features, (features[:, :1] > 0).float())
model = torch.nn.Linear(5, 1)
engine = opacus.PrivacyEngine()
model, optimizer, loader = engine.make_private(
    module=model,
    optimizer=torch.optim.SGD(model.parameters(), lr=0.5),
    data_loader=torch.utils.data.DataLoader(data, batch_size=20),
    noise_multiplier=1.52,
    max_grad_norm=1.0,
)
for _ in range(10):
    for rows, labels in loader:
        optimizer.zero_grad()
        torch.nn.functional.binary_cross_entropy_with_logits(model(rows), labels).backward()
        optimizer.step()

history = engine.accountant.history
print("history:", history)
exact = bridge.claim(engine, loader, trust_float_noise=True)
print(f"ln δ(1) of the accounting {exact.log_delta(1):.1f}, of all steps seen in float32")
print(f"at least about {bridge.float_floor(history):.1f} at every ε")

chosen = bridge.plan(engine, loader, space=zd.Finite(16), epsilon=1)
release = chosen.purify(11)  # the index of the best of 16 models, say
print(f"one of 16 models: {release.certificate.summary}")
print(f"  replaced by a random one with probability {float(chosen.mixing_weight):.5f}")
for dimension in (100, 1000):
    try:
        bridge.plan(engine, loader, space=zd.Ball(dimension, 1), epsilon=1)
    except zd.errors.GuaranteeError as refusal:
        print(f"{dimension} parameters: {str(refusal).split('. Publish')[0]}.")
