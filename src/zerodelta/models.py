"""Models that are trained by `Study.minimize`."""

from zerodelta.training.tanh_network import TanhNetwork
from zerodelta.training.torch_model import TorchModel

__all__ = ["TanhNetwork", "TorchModel"]
