"""Noise on exact sums, and selection: the blocks everything is built from."""

from zerodelta.mechanisms.gaussian import RoundedGaussian
from zerodelta.mechanisms.k_norm_noise import KNorm
from zerodelta.mechanisms.laplace import RoundedLaplace
from zerodelta.mechanisms.partition_noise import BlockNoise, PartitionNoise
from zerodelta.mechanisms.selection import ExponentialMechanism, PermuteAndFlip

__all__ = [
    "BlockNoise",
    "ExponentialMechanism",
    "KNorm",
    "PartitionNoise",
    "PermuteAndFlip",
    "RoundedGaussian",
    "RoundedLaplace",
]
